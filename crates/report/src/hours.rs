//! What other hours say: of each cell, and how it is known.

use crate::context::ReportContext;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Hours, HoursFrom, Metric};
use deltabench_compare::thresholds::{
    HOUR_APART_MS, HOURS_ASSUMED, HOURS_ASSUMED_UNSTEADY, HOURS_OF_CHANGE, HOURS_SWITCH_US,
    MIN_BLOCKS, SESSIONS_OF_A_DAY_MS,
};
use deltabench_compare::words::ends;
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::units::{count, index, to_f64};
use std::collections::BTreeSet;

/// `-1.3 % [-1.7, -0.9] this hour; another hour: [-2.9, +0.3] (assumed)`, where that is known.
pub fn note(cell: &CellComparison) -> Option<String> {
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
        HoursFrom::Pair(runs) => {
            let long_run = words::change_interval(&hours.long_run);
            let assumed = if hours.assumed {
                " (in part assumed)"
            } else {
                ""
            };
            format!(
                "{measured} this hour; {long_run} over {runs} runs; another hour: {another}{assumed}"
            )
        }
        HoursFrom::Host(repetitions) => {
            let from = words::plural(u64::from(repetitions), "repetition");
            let assumed = if hours.assumed {
                ", in part assumed"
            } else {
                ""
            };
            format!(
                "{measured} this hour; another hour: {another} (from {from} on this host{assumed})"
            )
        }
        HoursFrom::Prior => {
            format!("{measured} this hour; another hour: {another} (assumed)")
        }
    })
}

/// From what another hour is known, in a word: `sessions`, `pair`, `host`, `prior` or `unknown`, that of the
/// cell that knows least; absent where nothing is compared.
pub(crate) fn known_from(comparison: &Comparison) -> Option<&'static str> {
    let mut cells = comparison.cells.iter().filter(|cell| cell.blocks > 0);
    let measured = cells.clone().next().is_some();
    let of = |cell: &CellComparison| cell.metric(Metric::Throughput)?.hours.as_ref().map(|_| ());
    if cells.any(|cell| of(cell).is_none()) {
        return Some("unknown");
    }
    let known = known(comparison);
    let least = LEAST_FIRST.into_iter().find(|word| {
        let mut hours = known.iter();
        hours.any(|hours| hours.from.word() == *word)
    });
    measured.then_some(least.unwrap_or("unknown"))
}

/// Whether an assumption takes part in what another hour would say of the throughput of any cell; absent
/// where nothing is known of it.
pub(crate) fn is_assumed(comparison: &Comparison) -> Option<bool> {
    let known = known(comparison);
    (!known.is_empty()).then(|| known.iter().any(|hours| hours.assumed))
}

/// The words of what another hour may be known from.
const LEAST_FIRST: [&str; 4] = ["prior", "host", "pair", "sessions"];

/// What is known of other hours, of the cells whose lines say it.
fn told(comparison: &Comparison) -> Vec<&Hours> {
    let cells = comparison.cells.iter();
    cells
        .filter(|cell| note(cell).is_some())
        .filter_map(|cell| cell.metric(Metric::Throughput)?.hours.as_ref())
        .collect()
}

/// What is known of other hours, of each cell of which something is.
fn known(comparison: &Comparison) -> Vec<&Hours> {
    let cells = comparison.cells.iter();
    cells
        .filter_map(|cell| cell.metric(Metric::Throughput)?.hours.as_ref())
        .collect()
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
    let near = context
        .counting_sessions()
        .windows(2)
        .any(|pair| match pair {
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

/// That another hour is not known or assumed, if only in part, and the option that measures it, where the
/// command has it.
pub(crate) fn unknown(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Option<String> {
    let known = told(comparison);
    let assumed = known.iter().filter(|hours| hours.assumed).count();
    let is_judged = is_judged(comparison) && !plan.is_again() && plan.session.is_none();
    let why = match assumed {
        _ if !is_judged => return None,
        0 if !known.is_empty() => return None,
        0 if context.planned_base.is_some() => {
            let why = "other runs are only asked about the planned base";
            return Some(format!("another hour: not told, because {why}"));
        }
        0 => "unknown, because this is one session",
        _ if known.iter().all(|hours| hours.from == HoursFrom::Prior) => {
            "assumed, because this is one session, and this host has measured too little like it again"
        }
        _ if only_by_host_speed(&known) => {
            "in part assumed, because ratios seem to go with the speed of this host"
        }
        _ => "in part assumed, because this host has measured too little like this run again",
    };
    let whole = plan.work.has_passes() || plan.work.is_embedded() || plan.experiment.is_some();
    let measured = if whole {
        ""
    } else {
        "; --sessions 4 measures several"
    };
    Some(format!("another hour: {why}{measured}"))
}

/// Whether no assumption takes part other than how far apart the speeds of hours are.
fn only_by_host_speed(known: &[&Hours]) -> bool {
    let mut assumed = known.iter().filter(|hours| hours.assumed);
    assumed.all(|hours| hours.by_host_speed && matches!(hours.from, HoursFrom::Pair(_)))
}

/// What the two intervals mean, and which sessions are behind them.
pub(crate) fn meaning(comparison: &Comparison, context: &ReportContext) -> Vec<String> {
    let mut list = Vec::new();
    let known = told(comparison);
    let any = |is: fn(&Hours) -> bool| known.iter().any(|hours| is(hours));
    list.extend(started(context, any(|hours| hours.by_slow_hours)));
    if any(|hours| matches!(hours.from, HoursFrom::Sessions(_))) {
        list.push(
            "\"over sessions\" is the interval of the mean. \"another hour\" holds the figure of one more \
             session in 95 of 100 cases. Costs, latency curves and what moved are those of the first session \
             that counts"
                .to_owned(),
        );
    }
    if any(|hours| matches!(hours.from, HoursFrom::Pair(_))) {
        list.push(
            "\"over runs\" is the mean of this run and of earlier ones of the same comparison on this host. \
             \"another hour\" holds the figure of one more run in 95 of 100 cases"
                .to_owned(),
        );
    }
    if any(|hours| matches!(hours.from, HoursFrom::Host(_))) {
        list.push(
            "\"another hour\" from repetitions holds the figure of one more run in 95 of 100 cases, if hours \
             differ as in comparisons that this host measured again"
                .to_owned(),
        );
    }
    if any(|hours| hours.assumed) {
        list.push(format!(
            "\"another hour\" that is assumed, if only in part, holds the figure of one more run in 95 of \
             100 cases, if hours differ by about {:.1} % (standard deviation). On a virtual machine it is \
             {:.1} % between versions of two branches or made in different ways, and {:.0} % of what they \
             differ by. Where one side makes more context switches for one client, it allows for \
             {HOURS_SWITCH_US:.1} µs more or less for each of them, and where the ratio goes with the host's \
             speed for that",
            100.0 * HOURS_ASSUMED,
            100.0 * HOURS_ASSUMED_UNSTEADY,
            100.0 * HOURS_OF_CHANGE
        ));
    }
    list.extend(by_host_speed(comparison));
    list
}

/// When the sessions started, and what they say of states that last longer.
fn started(context: &ReportContext, allows_for_slow: bool) -> Option<String> {
    let sessions = context.session_times();
    let [first, .., last] = sessions.as_slice() else {
        return None;
    };
    let span_ms = last.began_ms - first.began_ms;
    let began = sessions.iter().map(|one| words::timestamp(one.began_ms));
    let times = began.collect::<Vec<String>>().join(", ");
    let longer = match allows_for_slow {
        false if span_ms >= SESSIONS_OF_A_DAY_MS => {
            return Some(format!("sessions started {times} UTC"));
        }
        true => format!(
            "allows for slow hours of a virtual machine, as separate runs would: {:.1} % and {:.0} % of \
             what the versions differ by, less for each session",
            100.0 * HOURS_ASSUMED_UNSTEADY,
            100.0 * HOURS_OF_CHANGE
        ),
        false => "does not know a state of the host that lasts longer".to_owned(),
    };
    let hours = to_f64(u64::try_from(span_ms).unwrap_or(0)) / 3.6e6;
    Some(format!(
        "sessions started {times} UTC, within {hours:.1} h: \"another hour\" {longer}"
    ))
}

/// The cells whose other hours are wider because their ratio goes with the host's speed.
fn by_host_speed(comparison: &Comparison) -> Option<String> {
    let is_wider = |cell: &&CellComparison| {
        let speed = cell.metric(Metric::Throughput);
        let hours = speed.and_then(|speed| speed.hours.as_ref());
        note(cell).is_some() && hours.is_some_and(|hours| hours.by_host_speed)
    };
    let candidates: BTreeSet<ServerId> =
        comparison.cells.iter().map(|cell| cell.candidate).collect();
    let name = |cell: &CellComparison| {
        let clients = match cell.clients {
            1 => String::new(),
            several => format!(" at {several} clients"),
        };
        let of = match candidates.len() {
            0 | 1 => String::new(),
            _ => format!(" of {}", cell.candidate_name),
        };
        format!("{}{clients}{of}", cell.workload)
    };
    let cells = comparison.cells.iter().filter(is_wider);
    let names: Vec<String> = cells.map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "\"another hour\" is wider for {}, because the ratio seems to go with the speed of the host: \
             hours may be as fast as the fast blocks of this run, or as slow as its slow ones",
            names.join(", ")
        )
    })
}

fn is_judged(comparison: &Comparison) -> bool {
    let enough = |cell: &CellComparison| index(u64::from(cell.blocks)) >= MIN_BLOCKS;
    comparison.cells.iter().any(enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::{Earlier, analyse, foretell};
    use deltabench_testkit::small_run::{plan, slices};

    #[test]
    fn another_hour_is_explained_only_if_a_line_says_it() {
        let plan = plan();
        let mut comparison = analyse(&plan, &slices([0.8, 0.7, 0.95]), Vec::new());
        let nothing = |_: &CellComparison, _: Metric| Earlier {
            pair: Vec::new(),
            cell: Vec::new(),
            others: Vec::new(),
            is_unsteady: false,
        };
        foretell(&mut comparison, nothing);
        let context = ReportContext::default();
        assert!(comparison.cells.iter().all(|cell| note(cell).is_some()));
        let told = meaning(&comparison, &context).join(" ");
        assert!(told.contains("\"another hour\" that is assumed"), "{told}");
        assert!(!told.contains("fast blocks of this run"), "{told}");
        let hours = comparison.cells[1].metrics[0].hours.as_mut();
        hours.unwrap().by_host_speed = true;
        let told = meaning(&comparison, &context).join(" ");
        let of = format!("is wider for {}", comparison.cells[1].workload);
        assert!(told.contains(&of), "{told}");
        for cell in &mut comparison.cells {
            cell.blocks = 4;
        }
        assert!(comparison.cells.iter().all(|cell| note(cell).is_none()));
        assert_eq!(meaning(&comparison, &context), Vec::<String>::new());
        assert_eq!(unknown(&comparison, &plan, &context), None);
    }
}
