//! A time allowed against the blocks that a verdict needs.

use crate::estimate::planned_time;
use crate::occupancy::{Machine, PlannedTime, by_memory};
use crate::session::benchmark::Benchmark;
use deltabench_compare::blocks_needed;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64, to_u64};

/// The shortest visit that a budget leads to, seconds: 25 rounds of 20 ms.
const SHORTEST_VISIT_SECONDS: f64 = 0.5;

/// By so much visits are shortened at a time, seconds.
const STEP_SECONDS: f64 = 0.05;

/// Makes a plan fit into the time allowed for it: visits get shorter, if they may, until the blocks fit that
/// a verdict needs.
///
/// Shape:  what a reader has to know of it, if anything: shorter visits, or that the time is too short even
///         for the shortest, with what would do; then visits are the shortest. Without a time, the plan stays
///         as it is.
/// Errors: workloads whose tables cannot be loaded together, shared buffers that a limit leaves no room for.
pub fn fit(
    plan: &mut Plan,
    benchmark: &dyn Benchmark,
    may_shorten: bool,
) -> Result<Option<String>, Problem> {
    let Some(allowed) = plan.timing.deadline_seconds else {
        return Ok(None);
    };
    let here = Machine::here();
    let occupancy = by_memory(plan, &benchmark.needs(plan)?, here.memory_bytes);
    let time = |plan: &Plan| planned_time(plan, benchmark, occupancy, here.cores);
    fitted(plan, allowed, may_shorten, &time)
}

fn fitted(
    plan: &mut Plan,
    allowed: f64,
    may_shorten: bool,
    time: &dyn Fn(&Plan) -> Result<PlannedTime, Problem>,
) -> Result<Option<String>, Problem> {
    let needed = to_f64(blocks_needed(plan));
    let asked = plan.timing.visit_seconds;
    let mut tried = plan.clone();
    loop {
        let planned = time(&tried)?;
        let block = planned.measuring / f64::from(plan.timing.blocks.max(1));
        let visit = tried.timing.visit_seconds;
        if planned.set_up + needed * block <= allowed {
            plan.timing.visit_seconds = visit;
            let shortened = visit < asked;
            return Ok(shortened.then(|| {
                format!(
                    "visits last {visit:.2} s instead of {asked} s: {needed} blocks have to fit into \
                     {}",
                    exact(allowed)
                )
            }));
        }
        // To the hundredth: it is printed.
        let shorter = (100.0 * (visit - STEP_SECONDS)).round() / 100.0;
        if !may_shorten || shorter < SHORTEST_VISIT_SECONDS {
            plan.timing.visit_seconds = visit;
            let told = too_short(plan, allowed, needed, (planned.set_up, block));
            return Ok(Some(match visit < asked {
                true => format!("{told}; visits last {visit:.2} s instead of {asked} s"),
                false => told,
            }));
        }
        tried.timing.visit_seconds = shorter;
    }
}

/// What the time holds, and what would do.
fn too_short(plan: &Plan, allowed: f64, needed: f64, (set_up, block): (f64, f64)) -> String {
    let cells = match plan.cells.len() {
        1 => "1 cell".to_owned(),
        several => format!("{several} cells"),
    };
    let left = (allowed - set_up).max(0.0);
    let blocks = match to_u64((left / block).floor()) {
        0 => format!("not even one block of {cells} fits"),
        1 => format!("about 1 block of {cells} fits"),
        some => format!("about {some} blocks of {cells} fit"),
    };
    let fitting = to_u64((to_f64(count(plan.cells.len())) * left / (needed * block)).floor());
    let fewer = if fitting > 0 {
        format!(", or choose at most {fitting} of them")
    } else {
        String::new()
    };
    let wanted = match f64::from(plan.timing.blocks) <= needed {
        true => format!("you asked for {needed}"),
        false => format!("a verdict needs {needed}"),
    };
    format!(
        "{} is too short for verdicts: {blocks}, but {wanted}; allow about --budget {}{fewer}",
        exact(allowed),
        at_least(set_up + needed * block),
    )
}

/// Seconds as the user named them, not rounded up: `1 s`, `90 s`, `25 min`, `10 h`.
fn exact(seconds: f64) -> String {
    let text = match seconds {
        _ if seconds < 100.0 => (seconds, "s"),
        _ if seconds < 6000.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    let (number, unit) = (format!("{:.1}", text.0), text.1);
    format!("{} {unit}", number.trim_end_matches(".0"))
}

/// Seconds as a time that is not shorter, in the form that options take.
fn at_least(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    if minutes < 100.0 {
        format!("{minutes:.0}m")
    } else {
        format!("{:.1}h", (minutes / 6.0).ceil() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    /// A minute of set-up; each cell takes its visit and half a second on each server.
    fn time(plan: &Plan) -> Result<PlannedTime, Problem> {
        let visits = to_f64(count(plan.cells.len() * plan.servers.len()));
        let block = visits * (plan.timing.visit_seconds + 0.5);
        Ok(PlannedTime {
            set_up: 60.0,
            measuring: f64::from(plan.timing.blocks) * block,
        })
    }

    fn plan() -> Plan {
        let mut plan = plan_of(&["a", "a", "b"], 10);
        plan.timing.blocks = 24;
        plan.timing.visit_seconds = 1.5;
        plan
    }

    fn fitted_within(minutes: f64, may_shorten: bool) -> (f64, Option<String>) {
        let mut plan = plan();
        let note = fitted(&mut plan, 60.0 * minutes, may_shorten, &time).unwrap();
        (plan.timing.visit_seconds, note)
    }

    #[test]
    fn visits_stay_as_they_are_where_six_blocks_fit() {
        // Six blocks of 60 s and the set-up take 7 min.
        assert_eq!(fitted_within(7.0, true), (1.5, None));
    }

    #[test]
    fn visits_get_just_so_much_shorter_that_six_blocks_fit() {
        let (visit, note) = fitted_within(5.5, true);
        // 6 blocks of 30 visits in 270 s: 1.5 s each, half a second of them beside the visit.
        assert!((visit - 1.0).abs() < 1e-9, "{visit}");
        let note = note.unwrap();
        assert!(
            note.starts_with("visits last 1.00 s instead of 1.5 s"),
            "{note}"
        );
    }

    #[test]
    fn a_time_that_holds_no_verdict_is_told_with_what_would_do() {
        // The shortest visits: 30 s a block, 4 min in all. Visits that were asked for stay.
        let told = |minutes, may_shorten| {
            let (visit, note) = fitted_within(minutes, may_shorten);
            let wanted = if may_shorten { 0.5 } else { 1.5 };
            assert!((visit - wanted).abs() < 1e-9, "{visit}");
            note.unwrap()
        };
        let holds = "about 4 blocks of 10 cells fit, but a verdict needs 6; allow about --budget";
        let shortened = "; visits last 0.50 s instead of 1.5 s";
        let note = told(3.0, true);
        assert!(
            note.ends_with(&format!(
                "{holds} 4m, or choose at most 6 of them{shortened}"
            )),
            "{note}"
        );
        let note = told(5.5, false);
        assert!(
            note.ends_with(&format!("{holds} 7m, or choose at most 7 of them")),
            "{note}"
        );
        let note = told(0.5, true);
        assert!(note.starts_with("30 s is too short for verdicts"), "{note}");
        let end = format!("allow about --budget 4m{shortened}");
        assert!(note.ends_with(&end), "{note}");
    }

    #[test]
    fn a_short_time_is_told_as_it_was_given() {
        let mut plan = plan();
        let note = fitted(&mut plan, 1.0, true, &time).unwrap().unwrap();
        assert!(note.starts_with("1 s is too short for verdicts"), "{note}");
        plan.timing.blocks = 1;
        plan.cells.truncate(1);
        let note = fitted(&mut plan, 1.0, true, &time).unwrap().unwrap();
        let told = "not even one block of 1 cell fits, but you asked for 1; allow";
        assert!(note.contains(told), "{note}");
        assert_eq!(exact(90.0), "90 s");
        assert_eq!(exact(1.5), "1.5 s");
        assert_eq!(exact(1500.0), "25 min");
        assert_eq!(exact(5400.0), "90 min");
        assert_eq!(exact(36_000.0), "10 h");
    }

    #[test]
    fn the_time_to_allow_is_never_too_short() {
        assert_eq!(at_least(180.5), "4m");
        assert_eq!(at_least(122.0 * 60.0), "2.1h");
        assert_eq!(at_least(120.0 * 60.0), "2.0h");
    }
}
