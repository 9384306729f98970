//! What other hours say: of each cell, and how it is known.

use crate::context::{ReportContext, SessionLine};
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, HoursFrom, Metric};
use deltabench_compare::thresholds::{HOUR_APART_MS, MIN_BLOCKS};
use deltabench_compare::words::ends;
use deltabench_model::plan::Plan;
use deltabench_model::units::{count, index};

/// `-1.3 % [-1.7, -0.9] this hour; another hour: [-2.9, +0.3]`, where that is known.
pub(crate) fn note(cell: &CellComparison) -> Option<String> {
    let speed = cell.metric(Metric::Throughput)?;
    let hours = speed.hours.as_ref()?;
    let enough = index(u64::from(cell.blocks)) >= MIN_BLOCKS;
    let another = ends(hours.another.ci95.filter(|_| enough)?);
    let measured = words::change_interval(&speed.ratio);
    Some(match hours.from {
        HoursFrom::Sessions(number) => {
            let over = words::plural(u64::from(number), "session");
            format!("{measured} over {over}; another hour: {another}")
        }
        HoursFrom::EarlierPairs(pairs) => {
            let pairs = words::plural(u64::from(pairs), "earlier pair");
            format!("{measured} this hour; another hour: {another} (from {pairs} of this host)")
        }
    })
}

/// From what another hour is known, in a word: `sessions`, `earlier-pairs` or `unknown`; absent where nothing
/// is compared.
pub(crate) fn known_from(comparison: &Comparison) -> Option<&'static str> {
    let measured = comparison.cells.iter().any(|cell| cell.blocks > 0);
    let hours = { comparison.cells.iter() }
        .find_map(|cell| cell.metric(Metric::Throughput)?.hours.as_ref());
    measured.then(|| hours.map_or("unknown", |hours| hours.from.word()))
}

/// What could make an answer another one: sessions that are missing or too near each other.
pub(crate) fn doubts(plan: &Plan, context: &ReportContext) -> Vec<String> {
    let mut list = Vec::new();
    let of = plan.sessions();
    let finished = context
        .sessions
        .iter()
        .filter(|line| line.ended_unix_ms.is_some())
        .count();
    if of > 1 && count(finished) < u64::from(of) {
        list.push(format!(
            "{finished} of {of} sessions are finished, and the others do not count: `deltabench resume \
             {}` continues",
            context.run
        ));
    }
    for line in { context.sessions.iter() }.filter(|line| !line.left_out.is_empty()) {
        let why = line.left_out.join("; ");
        list.push(match line.counts {
            true => format!("session {} counts in part: {why}", line.run),
            false => format!("session {} does not count: {why}", line.run),
        });
    }
    let near = counting(context).windows(2).any(|pair| match pair {
        [one, next] => {
            let ends = one.ended_unix_ms.zip(next.began_unix_ms);
            ends.is_some_and(|(end, begin)| begin - end < HOUR_APART_MS)
        }
        _ => false,
    });
    if near {
        list.push(
            "some sessions are less than 10 minutes apart: their loads differ, but their hour does not, so \
             another hour may differ more"
                .to_owned(),
        );
    }
    list
}

/// That another hour is not known, and the option that measures it, where the command has it.
pub(crate) fn unknown(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let unknown = known_from(comparison) == Some("unknown") && is_judged(comparison);
    if !unknown || plan.is_again() || plan.session.is_some() {
        return None;
    }
    let whole = plan.work.has_passes() || plan.work.is_embedded() || plan.experiment.is_some();
    let measured = if whole {
        ""
    } else {
        "; --sessions 4 measures several"
    };
    Some(format!(
        "another hour: unknown, because this is one session, and this host has no earlier pair of such \
         runs{measured}"
    ))
}

/// What the two intervals mean, and which sessions are behind them.
pub(crate) fn meaning(comparison: &Comparison, context: &ReportContext) -> Vec<String> {
    let mut list = Vec::new();
    let counting = counting(context).into_iter();
    let began = counting.filter_map(|line| line.began_unix_ms);
    let began: Vec<String> = began.map(words::timestamp).collect();
    if began.len() > 1 {
        list.push(format!("sessions started {} UTC", began.join(", ")));
    }
    match known_from(comparison) {
        Some("sessions") => list.push(
            "\"over sessions\" is the interval of the mean. \"another hour\" holds the figure of one more \
             session in 95 of 100 cases. Costs, latency curves and what moved are those of the first session \
             that counts"
                .to_owned(),
        ),
        Some("earlier-pairs") => list.push(
            "\"another hour\" holds the figure of one more run in 95 of 100 cases, if hours differ as in \
             earlier pairs of runs of this host"
                .to_owned(),
        ),
        _ => {}
    }
    list
}

fn is_judged(comparison: &Comparison) -> bool {
    let enough = |cell: &CellComparison| index(u64::from(cell.blocks)) >= MIN_BLOCKS;
    comparison.cells.iter().any(enough)
}

/// The finished sessions on which the result rests, in their order.
fn counting(context: &ReportContext) -> Vec<&SessionLine> {
    let counts = |line: &&SessionLine| line.counts && line.ended_unix_ms.is_some();
    context.sessions.iter().filter(counts).collect()
}
