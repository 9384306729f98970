//! Cells of the tables, in words.

use crate::insert::{
    INSERT_METRICS, InsertReport, Quartile, ResponseTimes, ServerFigures, ShareColour, StepColumn,
    StepFigures,
};
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::units::count;
use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing, SLA_SHARE};
use deltabench_report::words::{self, plural};

/// What stands where there is nothing.
pub(crate) const NOTHING: &str = "-";
/// The sign of a missed service level.
pub(crate) const MISSED: &str = "×";

/// How published tables are read.
pub(crate) const THROUGHPUT: &str = "\
    rows inserted per second in l.i*, rows indexed per second in l.x, queries per second in q*; mean \
    over the passes";
/// Likewise.
pub(crate) const QUARTILES: &str = "\
    + best quarter of the range of all servers, - worst quarter where the range is more than a fifth, \
    × background rate missed: not ranked";

/// What was asked for: `2 clients with a table each, …`.
pub(crate) fn setup(setup: &InsertSetup) -> String {
    let tables = match (setup.clients, setup.shared_table) {
        (1, _) => "1 client".to_owned(),
        (clients, true) => format!("{clients} clients on one table"),
        (clients, false) => format!("{clients} clients with a table each"),
    };
    let pacing = match setup.pacing {
        Pacing::Spread => "spread over each second",
        Pacing::Burst => "in a burst at the start of each second",
    };
    let mut parts = vec![tables, format!("{} rows loaded by each", whole(setup.rows))];
    if setup.partitions > 0 {
        parts.push(format!("{} partitions of each table", setup.partitions));
    }
    let writes = |step: &&InsertStep| matches!(step, InsertStep::WriteMany | InsertStep::WriteFew);
    let writes = setup.steps.iter().filter(writes);
    let written: u64 = writes.map(|step| setup.rows_of(*step)).sum();
    if written > 0 {
        parts.push(format!("{} written after that", whole(written)));
    }
    if setup.steps.iter().any(|step| step.queries()) {
        let seconds = plural(u64::from(setup.query_seconds), "second");
        parts.push(format!(
            "queries for {seconds} with background inserts {pacing}"
        ));
    }
    if let Some(seconds) = setup.long_transaction_seconds {
        let held = plural(u64::from(seconds), "second");
        parts.push(format!(
            "a transaction held open for {held}, again and again"
        ));
    }
    if setup.turns > 0 {
        parts.push(format!(
            "each step in {} with the other servers frozen",
            plural(u64::from(setup.turns), "turn")
        ));
    }
    parts.join(", ")
}

/// `400k`, `20M`, or all digits.
fn whole(number: u64) -> String {
    if number >= 1_000_000 && number.is_multiple_of(1_000_000) {
        format!("{}M", number / 1_000_000)
    } else if number >= 1000 && number.is_multiple_of(1000) {
        format!("{}k", number / 1000)
    } else {
        number.to_string()
    }
}

/// How many passes there are: `3 of 6 passes measured`.
pub(crate) fn passes(report: &InsertReport) -> String {
    let measured = report
        .servers
        .iter()
        .flat_map(|row| &row.steps)
        .map(|step| step.passes.len())
        .max()
        .unwrap_or(0);
    let planned = plural(u64::from(report.passes_planned), "pass");
    // The one plural that takes an e.
    let planned = planned.replace("passs", "passes");
    if count(measured) == u64::from(report.passes_planned) {
        planned
    } else {
        format!("{measured} of {planned} measured")
    }
}

/// The sign of a place among the servers.
pub(crate) fn quartile_sign(quartile: Quartile) -> &'static str {
    match quartile {
        Quartile::Worst => "-",
        Quartile::Between => "",
        Quartile::Best => "+",
        Quartile::Missed => MISSED,
    }
}

/// Whether a server is what others are compared with.
pub(crate) fn is_base(row: &ServerFigures) -> bool {
    row.role == Role::Base
}

/// A relative value: `1.00` for the base, two decimals with the verdict's sign where it may be quoted.
/// `alone` where all figures come from one pass.
pub(crate) fn relative_text(
    row: &ServerFigures,
    figures: &StepFigures,
    (short, alone): (bool, bool),
) -> String {
    if is_base(row) {
        let measured = figures.throughput.is_some();
        return if measured { "1.00" } else { NOTHING }.to_owned();
    }
    let Some(relative) = figures.relative.as_ref().filter(|one| one.passes > 0) else {
        return NOTHING.to_owned();
    };
    let sign = words::sign(relative.verdict);
    match relative.ratio.filter(|_| relative.quotable) {
        Some(ratio) => {
            let band = relative.colour.map_or("", band);
            format!("{:.2}{band} {sign}", ratio.estimate)
        }
        None if relative.reason.starts_with("SLA missed") => format!("SLA {sign}"),
        None if relative.verdict == Verdict::Unfit => format!("unfit {sign}"),
        None if alone => {
            let band = relative.colour.map_or("", band);
            let text = |ratio: Ratio| format!("{:.2}{band}", ratio.estimate);
            relative.ratio.map_or_else(|| NOTHING.to_owned(), text)
        }
        None if short => sign.to_owned(),
        None => deltabench_report::CANNOT_TELL.to_owned(),
    }
}

/// The sign of a published colour.
fn band(colour: ShareColour) -> &'static str {
    match colour {
        ShareColour::Slower => "↓",
        ShareColour::Between => "",
        ShareColour::Faster => "↑",
    }
}

/// How the table of relative throughput is read.
pub(crate) const RELATIVE: &str = "\
    ↓ 0.95 and less, ↑ 1.05 and more, as published tables are coloured; verdicts: ▼ slower, \
    ▲ faster, = no change, ? inconclusive, × unfit";

/// What the table of relative throughput is called.
pub(crate) fn relative_title(report: &InsertReport) -> &'static str {
    match one_pass(report) {
        true => "Relative throughput, one pass: no interval, no verdict",
        false => "Relative throughput",
    }
}

/// Whether all figures come from one pass, as published ones do.
pub(crate) fn one_pass(report: &InsertReport) -> bool {
    let all = report.servers.iter().flat_map(|row| &row.steps);
    let passes = all.filter_map(|figures| Some(figures.relative.as_ref()?.passes));
    passes.max() == Some(1)
}

/// Whether some relative value has enough passes to be told, or all come from one.
pub(crate) fn any_told(report: &InsertReport) -> bool {
    if one_pass(report) {
        return true;
    }
    let mut all = report.servers.iter().flat_map(|row| &row.steps);
    all.any(|figures| {
        let relative = figures.relative.as_ref();
        relative.is_some_and(|one| one.quotable || one.verdict == Verdict::Unfit)
    })
}

/// Background inserts: the rate, with a sign where it is below 95 % of the target.
pub(crate) fn background(figures: &StepFigures) -> String {
    figures.service.map_or_else(
        || NOTHING.to_owned(),
        |service| {
            let sign = if service.met { "" } else { MISSED };
            format!("{}{sign}", rows(service.rate))
        },
    )
}

/// Rows per second that are to be inserted.
pub(crate) fn target(column: &StepColumn) -> String {
    column
        .target
        .map(rows)
        .unwrap_or_else(|| NOTHING.to_owned())
}

/// Rows per second; a rate that is held need not have its last digits.
fn rows(rate: f64) -> String {
    if rate >= 10.0 {
        format!("{rate:.0}")
    } else {
        words::number(rate)
    }
}

/// How the table of background inserts is read.
pub(crate) fn service_legend() -> String {
    format!(
        "rows inserted per second during the queries, all clients together; {MISSED} below {} of the \
         target: the step has failed, and is neither ranked nor judged",
        words::share(SLA_SHARE)
    )
}

/// What settling took on each server; absent where none is known.
pub(crate) fn settled(report: &InsertReport) -> Option<String> {
    let of = |row: &ServerFigures| {
        let passes = report.settled.iter().filter(|one| one.server == row.server);
        let (mut vacuum, mut checkpoint, mut passed) = (0.0, 0.0, 0);
        for one in passes {
            vacuum += one.vacuum_seconds;
            checkpoint += one.checkpoint_seconds;
            passed += 1;
        }
        let mean = |sum: f64| words::number(sum / f64::from(passed));
        (passed > 0).then(|| format!("{} {} + {}", row.name, mean(vacuum), mean(checkpoint)))
    };
    let texts: Vec<String> = report.servers.iter().filter_map(of).collect();
    (!texts.is_empty()).then(|| {
        format!(
            "Settling before the queries, seconds of vacuum + checkpoint, mean over the passes: {}",
            texts.join("; ")
        )
    })
}

/// A figure of a metrics line.
pub(crate) fn metric(figures: &StepFigures, key: &str) -> String {
    let place = INSERT_METRICS.iter().position(|metric| metric.key == key);
    let value = place.and_then(|place| figures.metrics.get(place).copied().flatten());
    value.map_or_else(|| NOTHING.to_owned(), words::figure)
}

/// Percent with three decimals as published: what is there but rounds to nothing is `nonzero`.
pub(crate) fn percent(percent: f64) -> String {
    if percent <= 0.0 {
        return String::new();
    }
    let text = format!("{percent:.3}");
    if text == "0.000" {
        "nonzero".to_owned()
    } else {
        text
    }
}

/// A time with the unit that suits it.
pub(crate) fn time(us: f64) -> String {
    if us >= 1e6 {
        format!("{} s", words::figure(us / 1e6))
    } else if us >= 1e3 {
        format!("{} ms", words::figure(us / 1e3))
    } else {
        format!("{} µs", words::figure(us))
    }
}

/// Percentiles and the slowest, in the order of the published ones.
pub(crate) fn exact(response: &ResponseTimes) -> Vec<String> {
    let times = response.percentiles_us.iter().chain([&response.max_us]);
    times.map(|us| time(*us)).collect()
}

/// What the run is about, for the head of every form.
pub(crate) fn head(plan: &Plan, report: &InsertReport) -> String {
    let asked = plan.work.insert().map(setup).unwrap_or_default();
    format!("{asked}; {}", passes(report))
}

/// What a step does, in a few words.
pub(crate) fn meaning(column: &StepColumn) -> String {
    match column.step {
        InsertStep::LoadRows => "inserts in the order of the key, no secondary indexes".to_owned(),
        InsertStep::Index => "creation of three secondary indexes".to_owned(),
        InsertStep::WriteMany => "inserts and deletes of 50 rows".to_owned(),
        InsertStep::WriteFew => "inserts and deletes of 5 rows".to_owned(),
        InsertStep::Range(rate) => {
            format!("range queries while each client inserts and deletes {rate} rows per second")
        }
        InsertStep::Point(rate) => {
            format!("point queries while each client inserts and deletes {rate} rows per second")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_round_to_nothing_are_nonzero_and_nothing_is_empty() {
        assert_eq!(
            [0.0, 0.000_4, 0.000_5, 12.345_6, 100.0].map(percent),
            ["", "nonzero", "0.001", "12.346", "100.000"]
        );
    }

    #[test]
    fn rows_are_short_where_nothing_is_lost() {
        assert_eq!(
            [20_000_000, 400_000, 1_234, 999].map(whole),
            ["20M", "400k", "1234", "999"]
        );
        assert_eq!(
            [12.0, 1500.0, 2_500_000.0].map(time),
            ["12.0 µs", "1.50 ms", "2.50 s"]
        );
    }
}
