//! The tables of published reports, with the verdicts that these lack.

use super::words;
use crate::insert::{
    BUCKETS, INSERT_METRICS, InsertReport, Quartile, ResponseTimes, ServerFigures, ShareColour,
    StepColumn, StepFigures, is_published,
};
use deltabench_model::metric::MetricInfo;
use deltabench_model::table::{Bar, Cell, Column, Line, Look, Span, SpanForm, Table, Tone};
use deltabench_model::work::insert::InsertRole;
use deltabench_report::table::tone;
use deltabench_report::words as house;

/// A published table of servers and steps.
const LOOK: Look = Look {
    folded: false,
    compact: true,
    numbered: false,
    class: "steps",
};
/// What it is, for who hears a page.
const LABEL: &str = "table of servers and steps";

/// A row for each server with a cell for each of these steps.
fn by_step(
    report: &InsertReport,
    places: &[usize],
    cell: impl Fn(&ServerFigures, &StepFigures) -> Cell,
) -> Table {
    let heads = places.iter().filter_map(|place| report.steps.get(*place));
    let rows = report.servers.iter().map(|row| {
        let figures = places.iter().filter_map(|place| row.steps.get(*place));
        let cells = figures.map(|figures| cell(row, figures));
        Line::row(row.name.as_str(), cells.collect())
    });
    Table {
        corner: "server".to_owned(),
        columns: heads.map(|step| Column::of(step.name.as_str())).collect(),
        lines: rows.collect(),
        row_noun: "server",
        label: LABEL.to_owned(),
        look: LOOK,
        ..Table::default()
    }
}

fn all(report: &InsertReport) -> Vec<usize> {
    (0..report.steps.len()).collect()
}

/// Throughput over the passes.
pub(super) fn absolute(report: &InsertReport) -> Table {
    by_step(report, &all(report), |_, figures| {
        let mean = figures.throughput.map(|throughput| throughput.mean);
        let sign = figures.quartile.map_or("", words::quartile_sign);
        let text = mean.map_or_else(
            || words::NOTHING.to_owned(),
            |mean| format!("{}{sign}", house::number(mean)),
        );
        let ranked = match figures.quartile {
            Some(Quartile::Worst) => Some(Tone::Red),
            Some(Quartile::Best) => Some(Tone::Green),
            Some(Quartile::Missed) => Some(Tone::Grey),
            Some(Quartile::Between) | None => None,
        };
        Cell::from(text).toned(ranked).tipped(interval(figures))
    })
}

/// The mean over passes with its interval, in words.
fn interval(figures: &StepFigures) -> String {
    let Some(spread) = figures.throughput else {
        return String::new();
    };
    let ends = spread.ci95.map_or_else(
        || "no interval".to_owned(),
        |(low, high)| format!("{} to {}", house::number(low), house::number(high)),
    );
    let passes = u64::from(spread.passes);
    format!("{} [{ends}], passes: {passes}", house::number(spread.mean))
}

/// Throughput against the base; `short` where there is room for a sign alone.
pub(super) fn relative(report: &InsertReport, short: bool) -> Table {
    let alone = words::one_pass(report);
    by_step(report, &all(report), |row, figures| {
        let cell = Cell::from(words::relative_text(row, figures, (short, alone)));
        let Some(relative) = &figures.relative else {
            return cell;
        };
        let band = match relative.colour {
            Some(ShareColour::Slower) => Tone::Red,
            Some(ShareColour::Faster) => Tone::Green,
            Some(ShareColour::Between) | None => Tone::Grey,
        };
        let ratio = relative.ratio.as_ref().filter(|_| relative.quotable);
        let ratio = ratio.map(|ratio| format!("{}, ", house::ratio_interval(ratio)));
        cell.toned(Some(band))
            .tipped(ratio.unwrap_or_default() + &relative.reason)
    })
}

/// Rows inserted beside queries, the target first; `all_steps`, or those with such a target.
pub(super) fn service(report: &InsertReport, all_steps: bool) -> Table {
    let with_target = |place: &usize| {
        let step = report.steps.get(*place);
        all_steps || step.is_some_and(|step| step.target.is_some())
    };
    let places: Vec<usize> = all(report).into_iter().filter(with_target).collect();
    let mut table = by_step(report, &places, |_, figures| {
        let cell = Cell::from(words::background(figures));
        let Some(service) = figures.service else {
            return cell;
        };
        cell.toned((!service.met).then_some(Tone::Red))
            .tipped(format!("{} of the target", house::share(service.share())))
    });
    let steps = places.iter().filter_map(|place| report.steps.get(*place));
    let targets = steps.map(|step| Cell::from(words::target(step)));
    table
        .lines
        .insert(0, Line::row("target", targets.collect()));
    table
}

/// Metrics of each step on each server, under these keys.
pub(super) fn metrics(report: &InsertReport, keys: &[&str]) -> Table {
    let mut lines = Vec::new();
    for (place, step) in report.steps.iter().enumerate() {
        for row in &report.servers {
            let figures = row.steps.get(place);
            let figures = figures.filter(|figures| figures.throughput.is_some());
            lines.extend(figures.map(|figures| {
                let cells = keys.iter().map(|key| words::metric(figures, key).into());
                Line::row(format!("{} {}", step.name, row.name), cells.collect())
            }));
        }
    }
    Table {
        columns: keys.iter().copied().map(Column::of).collect(),
        lines,
        row_noun: "line",
        label: LABEL.to_owned(),
        look: LOOK,
        ..Table::default()
    }
}

/// A server with what it did in the step that is shown.
pub(super) type OfStep<'a> = (&'a ServerFigures, &'a StepFigures);

/// Mean throughput with its interval, a bar for each server, and the verdict.
pub(super) fn bars(column: &StepColumn, rows: &[OfStep<'_>]) -> Table {
    let spreads = || rows.iter().filter_map(|(_, figures)| figures.throughput);
    let ends = spreads().map(|one| one.ci95.map_or(one.mean, |(_, high)| high.max(one.mean)));
    // An interval over two passes may be wider than the values: it is cut, and the text has it.
    let means = spreads().map(|one| one.mean).fold(0.0, f64::max);
    let most = ends.fold(0.0, f64::max).min(1.3 * means);
    let bar = |figures: &StepFigures| {
        let spread = figures.throughput.filter(|_| most > 0.0);
        Bar {
            value: spread.map(|one| one.mean / most),
            ends: spread
                .and_then(|one| one.ci95)
                .map(|(low, high)| (low / most, high / most)),
            words: interval(figures),
        }
    };
    let lines = rows.iter().map(|(row, figures)| {
        let drawn = Cell {
            bar: Some(bar(figures)),
            ..Cell::default()
        };
        Line::row(
            row.name.as_str(),
            vec![drawn, interval(figures).into(), judged(figures)],
        )
    });
    Table {
        title: "Throughput".to_owned(),
        reading: format!(", {}, mean over passes with 95 % interval", column.unit),
        columns: vec![Column::default(); 3],
        lines: lines.collect(),
        look: Look {
            class: "bars",
            ..Look::default()
        },
        ..Table::default()
    }
}

fn judged(figures: &StepFigures) -> Cell {
    let Some(relative) = &figures.relative else {
        return Cell::default();
    };
    let sign = house::sign(relative.verdict);
    let mut spans = vec![Span::set(
        house::verdict(relative.verdict),
        SpanForm::Strong { sign },
        Some(tone(relative.verdict)),
    )];
    let ratio = relative.ratio.as_ref().filter(|_| relative.quotable);
    spans.extend(ratio.map(|ratio| format!(" {}", house::ratio_interval(ratio)).into()));
    spans.push(" ".into());
    spans.push(Span::set(relative.reason.as_str(), SpanForm::Small, None));
    Cell {
        spans,
        ..Cell::default()
    }
}

/// Response times of each role; where there are queries they come first, as published.
pub(super) fn responses(column: &StepColumn, rows: &[OfStep<'_>]) -> Vec<Table> {
    let order = if column.step.queries() {
        [InsertRole::Query, InsertRole::Insert, InsertRole::Delete]
    } else {
        [InsertRole::Insert, InsertRole::Delete, InsertRole::Query]
    };
    let tables = order.into_iter().map(|role| response(column, role, rows));
    tables.filter(|table| !table.lines.is_empty()).collect()
}

fn response(column: &StepColumn, role: InsertRole, rows: &[OfStep<'_>]) -> Table {
    let lines = rows.iter().filter_map(|(row, figures)| {
        let mut all = figures.response.iter();
        let times = all.find(|times| times.role == role)?;
        let shares = times.percent.iter();
        let mut cells: Vec<Cell> = shares.map(|share| words::percent(*share).into()).collect();
        cells.extend(words::exact(times).into_iter().map(Cell::from));
        if let Some(slowest) = cells.last_mut() {
            slowest.tone = ranked(times);
        }
        Some(Line::row(row.name.as_str(), cells))
    });
    let buckets = BUCKETS
        .iter()
        .map(|(name, _)| name.replace("us", " µs").replace("ms", " ms"));
    let exact = ["slower", "p50", "p95", "p99", "p99.9", "max"].map(str::to_owned);
    let since = match column.target {
        Some(_) if role != InsertRole::Query => ", from the time when it was due",
        _ => "",
    };
    Table {
        title: format!("Response times of each {}, % up to{since}", role.word()),
        corner: "server".to_owned(),
        columns: buckets.chain(exact).map(Column::of).collect(),
        lines: lines.collect(),
        label: "response times".to_owned(),
        look: Look {
            class: "steps response",
            ..Look::default()
        },
        ..Table::default()
    }
}

fn ranked(times: &ResponseTimes) -> Option<Tone> {
    match times.quartile {
        Some(Quartile::Worst) => Some(Tone::Red),
        Some(Quartile::Best) => Some(Tone::Green),
        _ => None,
    }
}

/// The metrics line of each server in a step: published figures, or those that are ours.
pub(super) fn metrics_of_step(rows: &[OfStep<'_>], published: bool) -> Table {
    let known = |metric: &&MetricInfo| {
        let mut all = rows.iter();
        is_published(metric) == published
            && all.any(|(_, figures)| words::metric(figures, metric.key) != words::NOTHING)
    };
    let shown: Vec<&MetricInfo> = INSERT_METRICS.iter().filter(known).collect();
    let columns = shown.iter().map(|metric| Column {
        head: metric.key.replace('_', " "),
        unit: metric.unit.replace("us", "µs"),
        about: metric.meaning.to_owned(),
        ..Column::default()
    });
    let lines = rows.iter().map(|(row, figures)| {
        let cells = shown
            .iter()
            .map(|metric| words::metric(figures, metric.key).into());
        Line::row(row.name.as_str(), cells.collect())
    });
    let title = if published {
        "Metrics, as published"
    } else {
        "Sizes, and known pitfalls"
    };
    Table {
        title: title.to_owned(),
        corner: "server".to_owned(),
        columns: columns.collect(),
        lines: lines.collect(),
        label: "metrics".to_owned(),
        look: Look {
            class: "steps response",
            ..Look::default()
        },
        ..Table::default()
    }
}
