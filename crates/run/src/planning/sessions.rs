//! The plans of a comparison in several sessions.

use deltabench_model::plan::{Plan, SessionPart, Stopping};
use deltabench_workload::mix;

/// Makes the seed of a session another one than that of the first.
const SESSION_SEED: u64 = 0x5e_55_10;

/// The plans of `of` sessions of what `plan` asks, in their order: the first keeps its seed, each further one
/// draws everything anew, as a run that confirms another does. `first` names the first run.
///
/// No look ends a cell early: in one session and not in another, that would give sessions of unlike
/// precision, with estimates that the looks have selected.
pub fn sessions(first: &str, plan: &Plan, of: u32, gap_seconds: f64) -> Vec<Plan> {
    let one = |number: u32| {
        let mut session = plan.clone();
        session.session = Some(SessionPart {
            first: first.to_owned(),
            number,
            of,
            gap_seconds,
        });
        if let Stopping::Sequential { .. } = session.stopping {
            session.stopping = Stopping::Fixed;
        }
        if number > 1 {
            // As wide as seeds from the clock: readers of JSON keep 53 bits.
            session.seed = mix(plan.seed, &[SESSION_SEED, u64::from(number)]) >> 11;
        }
        session
    };
    (1..=of).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use crate::schedule::BlockSchedule;
    use std::collections::BTreeSet;

    #[test]
    fn each_session_draws_seed_ports_and_environments_anew() {
        let mut plan = plan_of(&["a", "a", "b"], 2);
        plan.stopping = Stopping::Sequential { looks: vec![6, 8] };
        let all = sessions("20260101-first", &plan, 4, 2700.0);
        let seeds: BTreeSet<u64> = all.iter().map(|session| session.seed).collect();
        assert_eq!((all.len(), seeds.len()), (4, 4));
        assert_eq!(all[0].seed, plan.seed);
        let schedule = |session: &Plan| BlockSchedule::of(session, 0);
        let ports = |session: &Plan| schedule(session).ports.into_iter().min();
        let ports: BTreeSet<Option<u16>> = all.iter().map(ports).collect();
        assert_eq!(ports.len(), 4);
        assert!(schedule(&all[0]).padding.iter().all(|bytes| *bytes == 0));
        assert!(schedule(&all[2]).padding.iter().any(|bytes| *bytes > 0));
        for (number, session) in (1..).zip(&all) {
            let part = session.session.as_ref().unwrap();
            assert_eq!((part.number, part.of), (number, 4));
            assert_eq!(session.stopping, Stopping::Fixed);
        }
    }
}
