//! What a comparison with servers that were there before cannot know.

use super::check::remotes;
use super::{RemoteServer, place, same_server};
use crate::admin::query;
use deltabench_driver::admin::Client;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Remote;
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use std::time::Instant;

/// Round trips of which the median is taken.
const ROUND_TRIPS: usize = 31;

/// Networks whose round trips differ by less are alike, as a share and microseconds.
const ALIKE: (f64, f64) = (0.1, 20.0);

/// Microseconds of the shortest statement there is, the median of some.
///
/// Errors: whatever the server answered.
pub(crate) fn round_trip_us(client: &mut Client) -> Result<f64, Problem> {
    let mut taken = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        query(client, "SELECT 1")?;
        taken.push(started.elapsed().as_nanos());
    }
    taken.sort_unstable();
    let median = taken.get(ROUND_TRIPS / 2).copied().unwrap_or(0);
    Ok(to_f64(u64::try_from(median).unwrap_or(u64::MAX)) / 1e3)
}

/// All findings; none for a plan without such servers. `round_trips_us` are in the plan's order.
pub(crate) fn findings(
    plan: &Plan,
    servers: &[RemoteServer],
    round_trips_us: &[f64],
) -> Vec<Finding> {
    let prewarmed = servers.iter().all(RemoteServer::can_prewarm);
    let named = servers.iter();
    let named: Vec<_> = named.map(|one| (one.place(), one.identity())).collect();
    let mut findings = all(plan, prewarmed, round_trips_us);
    findings.extend(same(&named));
    findings
}

/// The first two servers that have other places and are one. Two databases of one place are known to be.
fn same(servers: &[(String, Option<&str>)]) -> Option<Finding> {
    let mut known = servers.iter().enumerate();
    known.find_map(|(number, (place, identity))| {
        let mut before = servers.iter().take(number);
        let (first, _) = before.find(|(other, its)| {
            other != place && identity.is_some() && its == identity
        })?;
        Some(Finding::new(
            FindingKind::RemoteSame,
            Severity::Confounder,
            format!(
                "{first} and {place} are one server under two names: only the way to it, the database and \
                 the role can differ"
            ),
        ))
    })
}

fn all(plan: &Plan, prewarmed: bool, round_trips_us: &[f64]) -> Vec<Finding> {
    let theirs = remotes(plan);
    if theirs.is_empty() {
        return Vec::new();
    }
    let whom = places(theirs.iter().map(|(_, remote)| *remote));
    let mut findings = vec![
        not_restarted(plan, &whom),
        Finding::new(
            FindingKind::RemoteLeftAsItIs,
            Severity::Note,
            format!(
                "deltabench does not control settings, checkpoints, autovacuum and other work of \
                 {whom}; it makes no checkpoint there{}",
                if prewarmed {
                    ""
                } else {
                    " and, because pg_prewarm is missing, warms caches by reading tables and indexes"
                }
            ),
        ),
    ];
    findings.extend(cpu_unknown(&theirs));
    findings.extend(networks(plan, round_trips_us));
    findings
}

/// Where servers are, each once.
fn places<'a>(remotes: impl Iterator<Item = &'a Remote>) -> String {
    let mut places: Vec<String> = remotes.map(place).collect();
    places.sort_unstable();
    places.dedup();
    places.join(" and ")
}

/// Servers whose processes nobody reads.
fn cpu_unknown(theirs: &[(&PlannedServer, &Remote)]) -> Option<Finding> {
    let remotes = theirs.iter().map(|(_, remote)| *remote);
    let whom = places(remotes.filter(|remote| remote.agent.is_none()));
    (!whom.is_empty()).then(|| {
        Finding::new(
            FindingKind::RemoteCpuUnknown,
            Severity::Note,
            format!(
                "deltabench cannot see from here what an operation costs on {whom}: it has no CPU per \
                 operation, and only the counters of its own tables; an agent there can read them \
                 (agent=ssh:HOST)"
            ),
        )
    })
}

/// What a restart would draw anew is drawn once.
fn not_restarted(plan: &Plan, whom: &str) -> Finding {
    let base = plan.servers.first();
    let elsewhere = plan.servers.iter().any(|server| {
        base.is_some_and(|base| !same_server(&base.installation, &server.installation))
    });
    let severity = if elsewhere {
        Severity::Confounder
    } else {
        Severity::Note
    };
    Finding::new(
        FindingKind::RemoteNotRestarted,
        severity,
        format!(
            "deltabench does not restart {whom} between blocks: what each start of a server changes at \
             random (addresses, placement in memory) stays the same, is part of each difference to \
             another server, and is in no interval"
        ),
    )
}

/// Servers that are not reached in the same way as the base.
fn networks(plan: &Plan, round_trips_us: &[f64]) -> Vec<Finding> {
    let address = |remote: &Option<Remote>| {
        let remote = remote.as_ref();
        remote.map(|remote| (remote.host.clone(), remote.tls))
    };
    let way = |id: ServerId| {
        let number = id.index();
        let server = plan.servers.get(number)?;
        Some((
            address(&server.installation.remote),
            round_trips_us.get(number).copied(),
        ))
    };
    let base = way(plan.base());
    let mut findings = Vec::new();
    for id in plan.candidates() {
        let (Some((ours, our_us)), Some((theirs, their_us))) = (&base, way(id)) else {
            continue;
        };
        if *ours == theirs {
            continue;
        }
        let (Some(our_us), Some(their_us)) = (*our_us, their_us) else {
            continue;
        };
        let apart = (our_us - their_us).abs();
        let alike = apart <= ALIKE.1 || apart <= ALIKE.0 * our_us.min(their_us);
        findings.push(Finding::new(
            FindingKind::NetworkDiffers,
            if alike {
                Severity::Note
            } else {
                Severity::Confounder
            },
            format!(
                "base and {} are reached in different ways: a round trip takes {our_us:.0} µs to base, \
                 {their_us:.0} µs to {}, and each statement of an operation is one",
                plan.server_name(id),
                plan.server_name(id)
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    fn plan(remotes: [Option<&str>; 3]) -> Plan {
        let mut plan = plan_of(&["a", "a", "a"], 1);
        for (server, remote) in plan.servers.iter_mut().zip(remotes) {
            server.installation.remote = remote.map(|text| text.parse().unwrap());
        }
        plan
    }

    fn found(plan: &Plan, round_trips: [f64; 3]) -> Vec<(String, Severity)> {
        let found = all(plan, true, &round_trips).into_iter();
        found
            .map(|finding| (finding.kind.to_string(), finding.severity))
            .collect()
    }

    const ONE: Option<&str> = Some("postgres://me@one/d");
    const TWO: Option<&str> = Some("postgres://me@two/d");

    fn severity(found: &[(String, Severity)], kind: &str) -> Option<Severity> {
        let entry = found.iter().find(|(known, _)| known == kind);
        entry.map(|(_, severity)| *severity)
    }

    #[test]
    fn one_server_under_two_names_is_told_and_two_databases_of_one_place_are_not() {
        let named = |servers: &[(&str, Option<&'static str>)]| {
            let servers = servers
                .iter()
                .map(|(place, its)| ((*place).to_owned(), *its));
            same(&servers.collect::<Vec<_>>()).map(|finding| finding.text)
        };
        let found = named(&[("a:1", Some("7 1.5")), ("b:1", Some("7 1.5"))]).unwrap();
        assert!(found.starts_with("a:1 and b:1 are one server"), "{found}");
        // A restored copy, one place twice, servers that do not say.
        for others in [
            [("a:1", Some("7 1.5")), ("b:1", Some("7 2.5"))],
            [("a:1", Some("7 1.5")), ("a:1", Some("7 1.5"))],
            [("a:1", None), ("b:1", None)],
        ] {
            assert_eq!(named(&others), None);
        }
    }

    #[test]
    fn a_server_that_was_not_restarted_confounds_only_a_comparison_with_another() {
        assert_eq!(found(&plan([None; 3]), [1.0; 3]), []);
        let alone = found(&plan([ONE; 3]), [100.0; 3]);
        assert_eq!(
            severity(&alone, "remote-not-restarted"),
            Some(Severity::Note)
        );
        assert_eq!(severity(&alone, "network-differs"), None);
        let two = found(&plan([ONE, ONE, TWO]), [100.0; 3]);
        assert_eq!(
            severity(&two, "remote-not-restarted"),
            Some(Severity::Confounder)
        );
    }

    #[test]
    fn only_what_no_agent_reads_is_unknown() {
        let unknown = |remotes| {
            let all = all(&plan(remotes), true, &[100.0; 3]);
            let found = all.into_iter().find(|f| f.kind == "remote-cpu-unknown");
            found.map(|finding| finding.text)
        };
        const READ: Option<&str> = Some("postgres://me@two/d?agent=ssh:two");
        assert!(
            unknown([ONE, ONE, TWO])
                .unwrap()
                .contains("one:5432 and two:5432")
        );
        let one = unknown([ONE, ONE, READ]).unwrap();
        assert!(
            one.contains("one:5432") && !one.contains("two:5432"),
            "{one}"
        );
        assert_eq!(unknown([READ; 3]), None);
    }

    #[test]
    fn networks_that_differ_are_told_and_confound_when_their_round_trips_do() {
        let of =
            |remotes, round_trips| severity(&found(&plan(remotes), round_trips), "network-differs");
        assert_eq!(
            of([ONE, ONE, TWO], [100.0, 100.0, 110.0]),
            Some(Severity::Note)
        );
        assert_eq!(
            of([ONE, ONE, TWO], [100.0, 100.0, 300.0]),
            Some(Severity::Confounder)
        );
        assert_eq!(
            of([None, None, TWO], [30.0, 30.0, 300.0]),
            Some(Severity::Confounder)
        );
    }
}
