//! The seconds of each step, for the script to draw.

use super::data::number::Number;
use crate::context::ReportContext;
use deltabench_model::counter::Mark;
use deltabench_model::figures::{PassSeries, StepSeries};
use deltabench_model::plan::ServerId;
use deltabench_model::units::{count, index, seconds, to_f64};
use serde_json::{Value, json};

/// Numbers of all series together: with more the page would take seconds to open.
const BUDGET: usize = 240_000;
/// Points of a series: no fewer, or stalls would lie beside each other, and no more than can be seen.
const POINTS: (usize, usize) = (120, 900);
/// Digits of a rate or a time that is only drawn.
const DIGITS: usize = 4;
/// Marks of a pass other than checkpoints: more of them would hide the lines.
const MARKS: usize = 60;
/// Kind of the marks that are all drawn.
const CHECKPOINT: &str = "checkpoint";

/// A value for each point; what is not known is drawn as a gap.
type Line = Vec<Option<Number>>;

/// Nothing for runs of anything else.
pub(super) fn data(context: &ReportContext) -> Option<Value> {
    let series = &context.figures.series;
    if series.is_empty() {
        return None;
    }
    let points = points(series);
    let steps = series.iter().map(|step| {
        let servers = step.servers.iter().map(|(id, passes)| {
            let passes = passes.iter();
            let passes = passes.map(|one| pass(*id, one, points, &context.marks));
            json!({"server": id, "passes": passes.collect::<Value>()})
        });
        json!({"name": step.name, "servers": servers.collect::<Value>()})
    });
    Some(json!({"steps": steps.collect::<Value>()}))
}

/// Points that each series may have.
fn points(series: &[StepSeries]) -> usize {
    let servers = series.iter().flat_map(|step| &step.servers);
    let passes: usize = servers.map(|(_, passes)| passes.len()).sum();
    // Six numbers in each point.
    (BUDGET / (6 * passes.max(1))).clamp(POINTS.0, POINTS.1)
}

/// The seconds of a pass: `fold` of them are a point.
///
/// Rates are the mean of a point, times its maximum: `roles` has both for inserts, deletes and queries (per
/// second, milliseconds), empty for what the step lacks. `thinned` counts marks that are not checkpoints, if
/// some of them are not drawn.
fn pass(server: ServerId, pass: &PassSeries, points: usize, marks: &[Mark]) -> Value {
    // A second that was cut short has no rate.
    let whole = index(pass.duration_ns / 1_000_000_000).max(1);
    let lines = |seconds: &Vec<(u64, u64)>| -> (Line, Line) {
        let all = seconds.get(..whole).unwrap_or(seconds);
        let fold = all.len().div_ceil(points).max(1);
        if all
            .iter()
            .all(|(done, slowest_us)| *done == 0 && *slowest_us == 0)
        {
            return (Vec::new(), Vec::new());
        }
        let mean = |chunk: &[(u64, u64)]| {
            let sum: u64 = chunk.iter().map(|(done, _)| done).sum();
            Number::new(to_f64(sum) / to_f64(count(chunk.len())), DIGITS)
        };
        let most = |chunk: &[(u64, u64)]| {
            let us = chunk.iter().map(|(_, us)| *us).max().filter(|us| *us > 0)?;
            Number::new(to_f64(us) / 1e3, DIGITS)
        };
        (
            all.chunks(fold).map(mean).collect(),
            all.chunks(fold).map(most).collect(),
        )
    };
    let seconds_drawn = pass.roles.iter().map(|role| role.len().min(whole)).max();
    let within = |mark: &&Mark| mark.server == Some(server) && pass.reached(mark.at_ns).is_some();
    let (drawn, thinned) = thin(marks.iter().filter(within).collect());
    let drawn = drawn.into_iter().map(|mark| {
        let at = seconds(pass.reached(mark.at_ns).unwrap_or(0));
        json!([Number::new(at, DIGITS), mark.kind])
    });
    json!({
        "pass": pass.pass,
        "fold": seconds_drawn.unwrap_or(0).div_ceil(points).max(1),
        "roles": pass.roles.each_ref().map(lines),
        "marks": drawn.collect::<Value>(),
        "thinned": thinned,
    })
}

/// All checkpoints, and of the others every so many that at most [`MARKS`] are left; how many those were, if
/// that leaves some out.
fn thin(marks: Vec<&Mark>) -> (Vec<&Mark>, Option<usize>) {
    let others = marks.iter().filter(|mark| mark.kind != CHECKPOINT).count();
    let every = others.div_ceil(MARKS).max(1);
    let mut nth = 0;
    let mut drawn = marks;
    drawn.retain(|mark| {
        if mark.kind == CHECKPOINT {
            return true;
        }
        nth += 1;
        (nth - 1) % every == 0
    });
    (drawn, (every > 1).then_some(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checkpoint_stays_and_the_others_are_thinned_over_the_whole_pass() {
        let mark = |at_ns: u64| Mark {
            at_ns,
            server: Some(ServerId(0)),
            kind: if at_ns % 10 == 9 {
                CHECKPOINT
            } else {
                "autovacuum"
            }
            .to_owned(),
            text: String::new(),
        };
        let all: Vec<Mark> = (0..1000).map(mark).collect();
        let (drawn, thinned) = thin(all.iter().collect());
        let (checkpoints, others): (Vec<&Mark>, Vec<&Mark>) =
            drawn.into_iter().partition(|mark| mark.kind == CHECKPOINT);
        assert_eq!((checkpoints.len(), thinned), (100, Some(900)));
        assert!((30..=MARKS).contains(&others.len()), "{}", others.len());
        assert!(
            others.iter().any(|mark| mark.at_ns > 950),
            "none of the end"
        );
        let (drawn, thinned) = thin(all.iter().take(50).collect());
        assert_eq!((drawn.len(), thinned), (50, None));
    }
}
