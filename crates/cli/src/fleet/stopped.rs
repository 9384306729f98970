//! Lanes that stopped because a disk was full or a directory gone: somebody has to make space and resume.

use super::lane::KEPT;
use super::submit::LANES;
use deltabench_fleet::engine::{JobState, Seen};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::spool::{Spool, Stopped};
use deltabench_fleet::state::{UnitState, UnitStatus};

/// Lanes that are not measured, and ended because they could not write. What the engine has forgotten
/// meanwhile was noted when somebody looked before.
pub fn lanes(seen: &[Seen], states: &[UnitStatus], place: (&Spool, &Lanes)) -> Vec<Stopped> {
    let (spool, lanes) = place;
    let is_kept = |state: &JobState| match state {
        JobState::Ended { code, .. } => *code == Some(i32::from(KEPT)),
        _ => false,
    };
    let mut jobs = spool.jobs();
    jobs.retain(|job| job.what == LANES && job.job.is_some());
    // A lane that was handed in again has another end, too.
    let is_last = |one: &Seen| {
        let last = { jobs.iter().rev() }.find(|job| job.elements.contains(&one.element));
        last.is_some_and(|last| last.job.as_ref() == Some(&one.job))
    };
    let now = { seen.iter() }.filter(|one| is_kept(&one.state) && is_last(one));
    let mut all: Vec<u32> = now.map(|one| one.element).collect();
    let before = { spool.outcome() }.map_or_else(Vec::new, |outcome| outcome.stopped);
    let forgotten = |lane: u32| !seen.iter().any(|one| one.element == lane);
    all.extend(
        { before.iter() }
            .map(|one| one.lane)
            .filter(|lane| forgotten(*lane)),
    );
    all.sort_unstable();
    all.dedup();
    let open = |lane: u32| {
        let open = states.iter().filter(|unit| !unit.state.is_done());
        let own = |unit: &&UnitStatus| {
            let own = lanes.lane_of(unit.unit);
            own.is_some_and(|own| own.lane == lane)
        };
        open.filter(own).collect::<Vec<_>>()
    };
    let taken = spool.taken();
    let stopped = |lane: u32| {
        let open = open(lane);
        let host = open.iter().rev().find_map(|unit| unit.host.as_ref());
        // Of a host that got copies nothing may have been fetched since.
        let mut begun = taken.iter().filter(|(begun, _)| *begun == lane);
        let begun = match (begun.next(), begun.next()) {
            (Some((_, node)), None) => Some(node.clone()),
            _ => None,
        };
        let node = host.map(|host| host.node.clone()).or(begun);
        (!open.is_empty()).then_some(Stopped { lane, node })
    };
    all.into_iter().filter_map(stopped).collect()
}

/// Says so of their units: an attempt on a full disk has no end of its own.
pub fn mark(states: &mut [UnitStatus], stopped: &[Stopped], (is_copied, lanes): (bool, &Lanes)) {
    for unit in { states.iter_mut() }.filter(|unit| !unit.state.is_done()) {
        let lane = lanes.lane_of(unit.unit).map(|lane| lane.lane);
        let Some(own) = stopped.iter().find(|one| Some(one.lane) == lane) else {
            continue;
        };
        let is_told = unit.state == UnitState::Interrupted && !unit.text.is_empty();
        if unit.attempts > 0 && !is_told {
            unit.state = UnitState::Interrupted;
            unit.beat = None;
            unit.text = why(own, is_copied);
        }
    }
}

fn why(stopped: &Stopped, is_copied: bool) -> String {
    let host = stopped.node.as_deref().unwrap_or("its host");
    match is_copied {
        true => format!("nothing more can be written to the disk of {host}"),
        false => format!(
            "its lane could not write into the shared directory; what it measured stays on {host}"
        ),
    }
}

/// What somebody has to do, a line for each lane.
pub fn to_do(stopped: &[Stopped], is_copied: bool, execution: &str) -> Vec<String> {
    let line = |one: &Stopped| {
        let lane = one.lane;
        let what = why(one, is_copied);
        let then = match is_copied {
            true => format!(
                "`deltabench fleet resume {execution}` goes on, there if you make space, else on another host"
            ),
            false => format!("make space, then `deltabench fleet resume {execution}` goes on"),
        };
        format!("lane {lane} ended with {KEPT}: {what}; {then}")
    };
    stopped.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_fleet::lanes::Lane;
    use deltabench_fleet::spool::{HostName, Outcome};

    fn execution() -> Lanes {
        let lane = |lane| Lane {
            lane,
            units: vec![lane + 1],
            minutes: 31,
            one_host: false,
        };
        Lanes {
            execution: "study".to_owned(),
            lanes: (0..2).map(lane).collect(),
            ..Lanes::default()
        }
    }

    fn unit(unit: u32, state: UnitState) -> UnitStatus {
        UnitStatus {
            unit,
            state,
            attempts: 1,
            host: Some(HostName {
                uid: "u".to_owned(),
                node: "n2".to_owned(),
            }),
            beat: None,
            text: String::new(),
        }
    }

    fn ended(job: &str, element: u32, code: i32) -> Seen {
        Seen {
            job: job.to_owned(),
            element,
            state: JobState::Ended {
                how: "FAILED".to_owned(),
                code: Some(code),
            },
        }
    }

    #[test]
    fn a_lane_that_could_not_write_is_named_until_it_is_handed_in_again() {
        let place = tempfile::tempdir().unwrap();
        let (spool, lanes) = (Spool::at(place.path()), execution());
        let mut states = [unit(1, UnitState::Gathered), unit(2, UnitState::Silent)];
        let found = |seen: &[Seen]| super::lanes(seen, &states, (&spool, &lanes));
        let expected = Stopped {
            lane: 1,
            node: Some("n2".to_owned()),
        };
        spool.take(1, "n3").unwrap();
        std::fs::create_dir(place.path().join("jobs")).unwrap();
        for (name, elements) in [("7", vec![0, 1]), ("8", vec![1])] {
            let mut job = spool.intend(LANES, (0, &elements), 1).unwrap();
            assert_eq!(found(&[ended("7", 1, 73)]).len(), usize::from(name == "8"));
            job.job = Some(name.to_owned());
            spool.set_job(&job).unwrap();
        }
        assert_eq!(found(&[ended("7", 1, 73), ended("8", 1, 5)]), []);
        assert_eq!(found(&[]), []);
        // Whatever is measured needs nobody.
        let stopped = found(&[ended("7", 0, 73), ended("8", 1, 73)]);
        assert_eq!(stopped, std::slice::from_ref(&expected));
        let outcome = Outcome {
            code: 5,
            missing: 1,
            stopped: stopped.clone(),
            at_unix_ms: 1,
        };
        spool.set_outcome(&outcome).unwrap();
        assert_eq!(found(&[]), [expected], "the engine has forgotten it");
        assert_eq!(found(&[ended("8", 1, 5)]), []);
        mark(&mut states, &stopped, (true, &lanes));
        let said = (states[1].state, states[1].text.as_str());
        assert_eq!(
            said,
            (
                UnitState::Interrupted,
                "nothing more can be written to the disk of n2"
            )
        );
        let lines = to_do(&stopped, true, "study");
        assert!(lines[0].starts_with(
            "lane 1 ended with 73: nothing more can be written to the disk of n2; `deltabench"
        ));
        spool.forget_outcome();
        assert_eq!(spool.outcome(), None);
        // Before its host is asked.
        let mut unit = unit(2, UnitState::Waiting);
        unit.host = None;
        let found = super::lanes(&[ended("8", 1, 73)], &[unit], (&spool, &lanes));
        assert_eq!(found[0].node.as_deref(), Some("n3"));
    }
}
