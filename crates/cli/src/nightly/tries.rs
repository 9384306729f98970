//! What a night tries again.

use crate::trend::places::target;
use deltabench_lab::HostTrend;
use deltabench_trend::{State, TRIED_FOR_MS, TRIES};
use std::collections::{BTreeMap, BTreeSet};

/// Two versions, by how they can be asked for, and what to measure on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    pub from: String,
    pub to: String,
    /// By name.
    pub workloads: BTreeSet<String>,
}

/// Whether it is of another version than that of the night, how often it was tried, and when it was raised.
type Turn = (bool, usize, i64);

/// What is suspected of the cells that nights of this base measure today, was raised within a week and can be
/// tried further, over all metrics. What a night says of its own version (`new`, by identity) comes first:
/// that is what it was asked. Then comes what was tried least, and of that what was raised first.
pub fn tries(hosts: &[HostTrend], (base, new): (&str, &str), now_ms: i64) -> Vec<Try> {
    let mut pairs: BTreeMap<(String, String), (Turn, BTreeSet<String>)> = BTreeMap::new();
    for host in hosts {
        let own = host.series_beside(base);
        for one in host.changes.iter().map(|change| &change.suspicion) {
            let raised = host.runs.get(one.raised).map_or(0, |run| run.began_unix_ms);
            let is_open = one.state == State::Suspected && one.tries.len() < TRIES;
            let ends = host.versions.get(one.from).zip(host.versions.get(one.to));
            let Some((from, to)) = ends else {
                continue;
            };
            let pair = (target(&from.installation), target(&to.installation));
            let can_be_asked = from.is_plain && to.is_plain && pair.0 != pair.1;
            let is_fresh = now_ms - raised <= TRIED_FOR_MS;
            if !(is_open && is_fresh && can_be_asked && own.contains(&one.series)) {
                continue;
            }
            let turn = (to.identity != new, one.tries.len(), raised);
            let (first, workloads) = pairs.entry(pair).or_insert((turn, BTreeSet::new()));
            *first = turn.min(*first);
            workloads.extend(host.workloads(one.series));
        }
    }
    let mut all: Vec<_> = pairs.into_iter().collect();
    all.sort_by_key(|(_, (turn, _))| *turn);
    let one = |((from, to), (_, workloads))| Try {
        from,
        to,
        workloads,
    };
    all.into_iter().map(one).collect()
}

/// The options of a night with these workloads only, and all blocks of each: a try is there for its figure,
/// and one that ended at the look that answers it would be off by what that look chose.
pub fn only(options: &[String], workloads: &BTreeSet<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--all" => {}
            "--only" => {
                rest.next();
            }
            given if given.starts_with("--only=") => {}
            _ => kept.push(option.clone()),
        }
    }
    let names: Vec<&str> = workloads.iter().map(String::as_str).collect();
    kept.push(format!("--only={}", names.join(",")));
    let is_precise = |option: &String| option.starts_with("--precision");
    if !kept
        .iter()
        .any(|option| option == "--fixed" || is_precise(option))
    {
        kept.push("--fixed".to_owned());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use crate::trend::{METRICS, hosts};
    use deltabench_model::plan::PlannedServer;
    use deltabench_store::{RunState, Store};
    use deltabench_testkit::{labs, small_run};

    fn version(number: u32) -> PlannedServer {
        let mut server = labs::plan(number).servers[2].clone();
        server.installation.version_num += number;
        server
    }

    /// A run of so many hours ago with these candidates; `base`: another one than the anchor.
    fn run(
        store: &mut Store,
        (name, hours_ago): (&str, i64),
        (base, candidates): (Option<u32>, Vec<PlannedServer>),
        (shares, noise): (&[Vec<f64>], f64),
    ) {
        let mut plan = labs::plan(0);
        let words = ["deltabench", "nightly", "--anchor", "a", "b"];
        plan.command = words.map(str::to_owned).to_vec();
        plan.servers.truncate(2);
        for server in &mut plan.servers {
            if let Some(number) = base {
                server.installation = version(number).installation;
            }
        }
        plan.servers.extend(candidates);
        let at = now().1 - hours_ago * 3_600_000;
        labs::add(store, (name, &plan), at);
        let luck = |block: u32, server: u32| 1.0 + noise * f64::from((block + server) % 3);
        small_run::keep_servers(store, name, (shares, &luck));
        store
            .finish_run(name, RunState::Finished, at + 600_000)
            .unwrap();
    }

    /// A night of so many hours ago: base, the version before, and the new one with this share of its
    /// throughput in each of three cells.
    fn night(store: &mut Store, (name, number): (&str, u32), hours_ago: i64, shares: [f64; 3]) {
        let both = vec![version(number - 1), version(number)];
        let shares = shares.map(|share| vec![1.0, 1.0, share]);
        run(store, (name, hours_ago), (None, both), (&shares, 0.002));
    }

    /// What is tried, as versions and the number of workloads, in a night of this version.
    fn asked(store: &Store, new: u32) -> Vec<(String, String, usize)> {
        let hosts = hosts(store, &METRICS, None).unwrap();
        let identity = |name: &str| {
            let mut all = hosts[0].versions.iter();
            let found = all.find(|version| version.name == name);
            found.unwrap().identity.clone()
        };
        let (base, new) = (
            identity("postgres:17.11"),
            identity(&format!("postgres:18.{new}")),
        );
        let all = tries(&hosts, (&base, &new), now().1).into_iter();
        all.map(|one| (one.from, one.to, one.workloads.len()))
            .collect()
    }

    fn of(from: &str, to: &str, workloads: usize) -> (String, String, usize) {
        let name = |number: &str| format!("postgres:18.{number}");
        (name(from), name(to), workloads)
    }

    #[test]
    fn what_the_night_was_asked_is_tried_first() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        night(&mut store, ("old", 2), 30, [0.9, 1.0, 1.0]);
        night(&mut store, ("own", 3), 5, [1.0, 0.9, 0.8]);
        assert_eq!(asked(&store, 3), [of("2", "3", 2), of("1", "2", 1)]);
        // In a later night both are old: that which was raised first comes first.
        assert_eq!(asked(&store, 1), [of("1", "2", 1), of("2", "3", 2)]);
    }

    #[test]
    fn of_two_that_are_old_the_one_that_was_tried_less_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        night(&mut store, ("old", 2), 30, [0.9, 1.0, 1.0]);
        night(&mut store, ("own", 3), 10, [1.0, 0.9, 0.8]);
        // A try that cannot tell: its blocks are far apart.
        let shares = [0.96, 1.0, 1.0].map(|share| vec![1.0, share]);
        let both = (Some(1), vec![version(2)]);
        run(&mut store, ("try", 5), both, (&shares, 0.05));
        assert_eq!(asked(&store, 1), [of("2", "3", 2), of("1", "2", 1)]);
    }

    #[test]
    fn other_workloads_are_taken_out_of_the_options() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let workloads = BTreeSet::from(["scan".to_owned(), "hot-points".to_owned()]);
        for given in [
            &["--quick", "--only", "a,b", "--rows", "9"][..],
            &["--quick", "--only=a,b", "--rows", "9"],
            &["--quick", "--all", "--rows", "9"],
        ] {
            let found = only(&words(given), &workloads);
            let expected = [
                "--quick",
                "--rows",
                "9",
                "--only=hot-points,scan",
                "--fixed",
            ];
            assert_eq!(found, expected);
        }
        for given in [&["--fixed"][..], &["--precision", "1"], &["--precision=1"]] {
            let found = only(&words(given), &workloads);
            assert_eq!(found.len(), given.len() + 1, "{found:?}");
        }
    }
}
