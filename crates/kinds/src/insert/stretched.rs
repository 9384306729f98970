//! What servers in turns do by the clock, which goes on while they are frozen.
//!
//! Of N servers each works for one N-th of the time. With N times the interval it looks for work for
//! autovacuum, and begins a checkpoint, after as much work of its own as alone.

use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::units::to_u64;
use deltabench_server::{Normal, normalise};

/// Intervals in seconds: name, default, largest value, and that before 9.6.
const INTERVALS: [(&str, u64, u64, u64); 2] = [
    ("autovacuum_naptime", 60, 2_147_483, 2_147_483),
    ("checkpoint_timeout", 300, 86_400, 3600),
];

/// The first version with the largest values.
const LARGER_SINCE: u32 = 90_600;

/// Stretches the intervals of a plan in turns for so many servers; nothing happens to another plan.
pub(super) fn stretch(plan: &mut Plan, factor: u64) {
    if plan.work.insert().is_none_or(|setup| setup.turns == 0) {
        return;
    }
    let of_all = plan.settings.clone();
    for server in &mut plan.servers {
        for interval in INTERVALS {
            stretch_one(server, &of_all, factor, interval);
        }
    }
}

fn stretch_one(
    server: &mut PlannedServer,
    of_all: &[(String, String)],
    factor: u64,
    (name, default, largest, largest_before): (&str, u64, u64, u64),
) {
    let mut own = server.settings.iter().rev().chain(of_all.iter().rev());
    let asked = own.find(|(set, _)| set.eq_ignore_ascii_case(name));
    let seconds = match asked.map(|(_, value)| normalise(value, Some("s"))) {
        None => default,
        Some(Normal::Microseconds(us)) => to_u64((us / 1e6).ceil()),
        // The server refuses it, and says why.
        Some(_) => return,
    };
    let version_num = server.installation.version_num;
    let limit = match version_num < LARGER_SINCE {
        true => largest_before,
        false => largest,
    };
    let stretched = seconds.saturating_mul(factor).min(limit);
    server
        .settings
        .retain(|(set, _)| !set.eq_ignore_ascii_case(name));
    server
        .settings
        .push((name.to_owned(), format!("{stretched}s")));
}

#[cfg(test)]
mod tests {
    use super::super::setup::tests::setup;
    use super::*;
    use crate::fixture::plan_of;
    use deltabench_model::work::Work;

    fn settings(
        turns: u32,
        of_all: &[(&str, &str)],
        own: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let mut setup = setup();
        setup.turns = turns;
        plan.work = Work::Insert(setup);
        plan.settings = owned(of_all);
        for server in &mut plan.servers {
            server.settings = owned(own);
            server.installation.version_num = 180_006;
        }
        stretch(&mut plan, 3);
        assert!(
            plan.servers
                .windows(2)
                .all(|pair| pair[0].settings == pair[1].settings)
        );
        plan.servers.remove(0).settings
    }

    #[test]
    fn intervals_of_servers_in_turns_are_longer_by_their_number_and_those_of_passes_stay() {
        let text = |settings: Vec<(String, String)>| -> Vec<String> {
            let all = settings.into_iter();
            all.map(|(name, value)| format!("{name}={value}")).collect()
        };
        let set = [("autovacuum_naptime", "10s"), ("work_mem", "1MB")];
        assert_eq!(text(settings(0, &set, &[])), Vec::<String>::new());
        assert_eq!(
            text(settings(20, &set, &[])),
            ["autovacuum_naptime=30s", "checkpoint_timeout=900s"]
        );
        assert_eq!(
            text(settings(
                20,
                &set,
                &[("checkpoint_timeout", "30min"), ("autovacuum_naptime", "1")]
            )),
            ["autovacuum_naptime=3s", "checkpoint_timeout=5400s"]
        );
        assert_eq!(
            text(settings(20, &[("checkpoint_timeout", "1d")], &[]))[1],
            "checkpoint_timeout=86400s"
        );
    }
}
