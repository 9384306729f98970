//! Where an execution is, for somebody who did not watch.

use super::background;
use super::carriage::on_their_hosts;
use super::commands::known;
use super::outlook::counts;
use super::stopped;
use super::submit::Submitter;
use super::watch::{UNDO, avoided_line, lost, states, table, waiting};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::store::{open, store_problem};
use deltabench_fleet::engine::Seen;
use deltabench_fleet::file::Copying;
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::spool::{Outcome, Spool};
use deltabench_fleet::state::{UnitState, status as unit_status};
use deltabench_report::words::{date, plural};

/// `deltabench fleet status`: the exit code is that of the end, and 0 before it.
pub fn status(wanted: &str, config: &Config) -> Result<u8, Failure> {
    let known = known(wanted, config)?;
    let place = (&known.spool, &known.lanes);
    let submitter = Submitter::new(&known.file, &known.spool, &known.lanes);
    let is_copied = known.file.copy == Copying::Sbcast;
    let seen = submitter.look()?;
    let alive: Vec<Seen> = { seen.iter() }
        .filter(|one| one.is_alive())
        .cloned()
        .collect();
    let mut states = states(place);
    lost(&mut states, &alive, place.1);
    if is_copied {
        on_their_hosts(&mut states, &alive, place.1);
    }
    let found = stopped::lanes(&seen, &states, place);
    stopped::mark(&mut states, &found, (is_copied, place.1));
    let name = &known.lanes.execution;
    let mut lines = vec![format!("{name}: {}", counts(&known.lanes))];
    lines.extend(table(&states, &known.lanes));
    lines.extend(waiting(&alive));
    let avoided = known.spool.avoided();
    lines.extend(avoided.iter().map(avoided_line));
    if !avoided.is_empty() {
        lines.push(UNDO.to_owned());
    }
    let watched = background::watches(&known.spool)?;
    lines.extend(watched.iter().cloned());
    let outcome = known.spool.outcome().filter(|_| alive.is_empty());
    lines.extend(match &outcome {
        _ if known.spool.is_cancelled() => vec![cancelled(name)],
        Some(outcome) => ended(outcome, name),
        None => going_on((alive.is_empty(), is_copied, watched.is_some()), name),
    });
    lines.extend(stopped::to_do(&found, is_copied, name));
    print_stdout(&lines.join("\n"))?;
    Ok(outcome.map_or(0, |outcome| outcome.code))
}

fn cancelled(name: &str) -> String {
    format!("cancelled; `deltabench fleet resume {name}` goes on")
}

fn ended(outcome: &Outcome, name: &str) -> Vec<String> {
    let code = outcome.code;
    let mut lines = vec![format!(
        "ended at {} with exit code {code}",
        date(outcome.at_unix_ms)
    )];
    if outcome.missing > 0 {
        lines.push(format!(
            "somebody has to act: {} not measured; `deltabench fleet resume {name}` goes on, \
             `deltabench fleet logs {name}` says more",
            units(outcome.missing)
        ));
    }
    lines
}

/// What is known as long as nobody has seen the end.
fn going_on((is_over, is_copied, is_watched): (bool, bool, bool), name: &str) -> Vec<String> {
    let line = match (is_over, is_watched) {
        (_, true) => return Vec::new(),
        (true, false) => format!(
            "no lane waits or runs, and nobody has reported: `deltabench fleet watch {name}` does"
        ),
        // The job that gathers needs nobody.
        (false, false) if !is_copied => return Vec::new(),
        (false, false) => format!(
            "nobody watches in the background: `deltabench fleet watch --detach {name}` copies and fetches"
        ),
    };
    vec![line]
}

/// `deltabench fleet list`.
pub fn list(config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let mut lines = Vec::new();
    for execution in store.executions().map_err(store_problem)? {
        let spool = Spool::at(&execution.spool);
        let name = &execution.name;
        lines.push(match spool.lanes() {
            Ok(lanes) => format!("{name}  {}", in_short(&spool, &lanes)),
            Err(problem) => format!("{name}  {}", problem.error),
        });
    }
    if lines.is_empty() {
        say(&format!(
            "no execution on a fleet in {}",
            config.lab.display()
        ));
        return Ok(0);
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

/// What the spool alone says: no engine is asked.
fn in_short(spool: &Spool, lanes: &Lanes) -> String {
    let state = |unit: u32| unit_status(spool, unit, now().1).state;
    let gathered = { lanes.units.iter() }
        .filter(|unit| state(unit.unit) == UnitState::Gathered)
        .count();
    let name = &lanes.execution;
    let how = match spool.outcome() {
        _ if spool.is_cancelled() => cancelled(name),
        Some(outcome) if outcome.missing > 0 => format!(
            "ended with exit code {}: somebody has to act, `deltabench fleet status {name}` says how",
            outcome.code
        ),
        Some(outcome) => format!("ended with exit code {}", outcome.code),
        None => format!("no end yet: `deltabench fleet status {name}`"),
    };
    format!("{gathered} of {} gathered  {how}", units_of(lanes))
}

fn units_of(lanes: &Lanes) -> String {
    units(u32::try_from(lanes.units.len()).unwrap_or(u32::MAX))
}

fn units(many: u32) -> String {
    plural(u64::from(many), "unit")
}
