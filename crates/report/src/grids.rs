//! Grids of absolute figures over numbers of clients, alike in every report.

use crate::lines::{left, wrapped};
use crate::markdown::quoting::escape;
use crate::markdown::section::Section;
use crate::study::words as study_words;
use crate::table::{self, tone};
use crate::words;
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_compare::segments;
use deltabench_compare::study::{Absolute, Grid, GridColumn, GridPoint};
use deltabench_model::table::{Cell, Column, Line, Look, Span, SpanForm, Table, Tone};

/// Grids that a terminal shows; of many more nobody reads all there.
const SHOWN: usize = 12;

/// A figure of a grid's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Operations per second.
    Throughput,
    /// Mean latency.
    Average,
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
}

impl Value {
    pub(crate) const ALL: [Self; 5] = [
        Self::Throughput,
        Self::Average,
        Self::P50,
        Self::P95,
        Self::P99,
    ];

    /// The key in files.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Average => "latency_us_average",
            Self::P50 => "latency_us_p50",
            Self::P95 => "latency_us_p95",
            Self::P99 => "latency_us_p99",
        }
    }

    /// The unit in files.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "ops/s",
            _ => "us",
        }
    }

    /// What it is called, with the unit it is shown in.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Throughput => "throughput, ops/s",
            Self::Average => "latency, average, ms",
            Self::P50 => "latency, median, ms",
            Self::P95 => "latency, 95th percentile, ms",
            Self::P99 => "latency, 99th percentile, ms",
        }
    }

    /// In the unit of files.
    pub(crate) fn of(self, point: &GridPoint) -> Option<Absolute> {
        match self {
            Self::Throughput => Some(point.throughput),
            Self::Average => point.average_us,
            Self::P50 => point.p50_us,
            Self::P95 => point.p95_us,
            Self::P99 => point.p99_us,
        }
    }

    /// As it is shown, with half of its interval in percent: `14210`, `±0.4`.
    fn shown(self, point: &GridPoint) -> Option<(String, String)> {
        let value = self.of(point)?;
        let scale = if self == Self::Throughput { 1.0 } else { 1e-3 };
        let as_ratio = Ratio {
            estimate: value.estimate,
            ci95: value.ci95,
            ci90: None,
        };
        let text = words::figure(value.estimate * scale);
        Some((text, study_words::plus_minus(&as_ratio)))
    }

    /// Whether some point of the grid has it.
    pub(crate) fn is_in(self, grid: &Grid) -> bool {
        let mut points = grid.columns.iter().flat_map(|column| &column.points);
        points.any(|point| point.as_ref().is_some_and(|point| self.of(point).is_some()))
    }
}

/// A cell in words: value, half of its interval; for throughput what it is relative to the first column.
pub(crate) struct Shown {
    pub(crate) value: String,
    pub(crate) half: String,
    /// `1.007 ±0.3 ▲`, in parentheses where it is no claim; empty in the first column.
    pub(crate) relative: String,
    pub(crate) verdict: Option<Verdict>,
}

/// What stands at a number of clients in a column; nothing where nothing was measured.
pub(crate) fn shown(column: &GridColumn, row: usize, value: Value) -> Option<Shown> {
    let point = column.points.get(row)?.as_ref()?;
    let (text, half) = value.shown(point)?;
    let throughput = value == Value::Throughput;
    let relative = point.relative.filter(|_| throughput);
    Some(Shown {
        value: text,
        half,
        relative: relative.map_or_else(String::new, |ratio| relative_words(&ratio, point.verdict)),
        verdict: point.verdict.filter(|_| throughput),
    })
}

fn relative_words(ratio: &Ratio, verdict: Option<Verdict>) -> String {
    let text = format!(
        "{} {}",
        study_words::ratio(ratio.estimate),
        study_words::plus_minus(ratio)
    );
    let sign = verdict.map_or("", words::sign);
    match verdict {
        Some(Verdict::Inconclusive | Verdict::Unfit) => format!("({text}){sign}"),
        _ => format!("{text} {sign}").trim_end().to_owned(),
    }
}

/// `postgres:18.6: linear to 4, flat from 6`, for each column; then where client and server ran.
pub(crate) fn segment_lines(grid: &Grid) -> Vec<String> {
    let told = |column: &GridColumn| match (column.segments.as_slice(), grid.apart.as_slice()) {
        ([], [_, ..]) => None,
        (segments, _) => Some(format!("{}: {}", column.name, segments::words(segments))),
    };
    let columns = grid.columns.iter().filter_map(told);
    columns.chain(grid.placement.clone()).collect()
}

/// `1 client`.
pub(crate) fn row_name(grid: &Grid, clients: u32) -> String {
    words::plural(u64::from(clients), grid.worker)
}

/// What the figures are.
pub(crate) const LEGEND: &str = "absolute figures with half of their 95 % interval in %, then relative \
                                 to the first column; a change of slope is named only if the intervals \
                                 show it";

/// The grids on a terminal.
pub(crate) fn terminal(grids: &[Grid], width: usize, colour: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for grid in grids.iter().take(SHOWN) {
        lines.push(String::new());
        lines.extend(wrapped(&grid.title, width, 0, 2));
        let (speed, latencies) = Value::ALL.split_at(1);
        lines.extend(table::terminal::lines(&layout(grid, speed), width, colour));
        let segments = segment_lines(grid).into_iter();
        lines.extend(segments.flat_map(|text| wrapped(&text, width, 0, 2)));
        if latencies.iter().any(|value| value.is_in(grid)) {
            let latencies = layout(grid, latencies);
            lines.extend(table::terminal::lines(&latencies, width, colour));
        }
    }
    if !grids.is_empty() {
        lines.extend(wrapped(LEGEND, width, 0, 2));
    }
    let more = grids.len().saturating_sub(SHOWN);
    if more > 0 {
        let text = format!("{more} more of these are on the page, in Markdown, CSV and JSON");
        lines.extend(wrapped(&text, width, 0, 2));
    }
    lines
}

fn layout(grid: &Grid, values: &[Value]) -> Table {
    let mut lines = Vec::new();
    let known = values.iter().filter(|value| value.is_in(grid));
    for &value in known {
        lines.push(Line::Heading(value.title().to_owned()));
        let widths: Vec<(usize, usize)> = grid
            .columns
            .iter()
            .map(|column| widest(grid, column, value))
            .collect();
        for (row, &clients) in grid.clients.iter().enumerate() {
            let columns = grid.columns.iter().zip(&widths);
            let cells = columns.map(|(column, widths)| {
                let shown = shown(column, row, value);
                shown.map_or_else(Cell::default, |shown| cell(&shown, *widths))
            });
            lines.push(Line::row(row_name(grid, clients), cells.collect()));
        }
    }
    let names = grid.columns.iter().map(|one| one.name.as_str());
    Table {
        columns: names.map(Column::of_words).collect(),
        lines,
        ..Table::default()
    }
}

/// Widest value and half of a column, so that figures stand under each other.
fn widest(grid: &Grid, column: &GridColumn, value: Value) -> (usize, usize) {
    let all = (0..grid.clients.len()).filter_map(|row| shown(column, row, value));
    all.fold((0, 0), |(value, half), shown| {
        (
            value.max(shown.value.chars().count()),
            half.max(shown.half.chars().count()),
        )
    })
}

fn cell(shown: &Shown, (value, half): (usize, usize)) -> Cell {
    let text = format!(
        "{:>value$} {}  {}",
        shown.value,
        left(&shown.half, half),
        shown.relative
    );
    Cell::from(text.trim_end()).toned(shown.verdict.map(tone))
}

/// The grids for a pull request or a blog post.
pub(crate) fn markdown(grids: &[Grid]) -> Vec<Section> {
    let mut sections = Vec::new();
    for grid in grids {
        for value in Value::ALL.into_iter().filter(|value| value.is_in(grid)) {
            sections.push(markdown_table(grid, value));
        }
        let lines = segment_lines(grid).into_iter();
        sections.push(Section::list("", lines, "line"));
    }
    if !grids.is_empty() {
        let legend = std::iter::once(LEGEND.to_owned());
        sections.push(Section::list("", legend, "line"));
    }
    sections
}

fn markdown_table(grid: &Grid, value: Value) -> Section {
    let lines = grid.clients.iter().enumerate().map(|(row, clients)| {
        let cells = grid.columns.iter().map(|column| {
            let shown = shown(column, row, value);
            shown.map_or_else(Cell::default, |shown| {
                let text = format!("{} {}, {}", shown.value, shown.half, shown.relative);
                text.trim_end_matches([' ', ',']).into()
            })
        });
        Line::row(clients.to_string(), cells.collect())
    });
    let mut section = table::markdown::section(&of_columns(
        grid,
        format!("{}s", grid.worker),
        lines.collect(),
    ));
    let title = format!("### {}: {}\n", escape(&grid.title), value.title());
    section.head.insert(0, title);
    section
}

fn of_columns(grid: &Grid, corner: String, lines: Vec<Line>) -> Table {
    let names = grid.columns.iter().map(|one| one.name.as_str());
    Table {
        corner,
        columns: names.map(Column::of).collect(),
        lines,
        row_noun: "row",
        look: Look {
            numbered: true,
            ..Look::default()
        },
        ..Table::default()
    }
}

/// The figures of a value for a page.
pub(crate) fn page_table(grid: &Grid, value: Value) -> Table {
    let lines = grid.clients.iter().enumerate().map(|(row, clients)| {
        let cells = grid.columns.iter().map(|column| {
            let shown = shown(column, row, value);
            shown.map_or_else(Cell::default, |shown| page_cell(&shown))
        });
        Line::row(row_name(grid, *clients), cells.collect())
    });
    Table {
        label: grid.title.clone(),
        look: Look {
            class: "costs",
            ..Look::default()
        },
        ..of_columns(grid, value.title().to_owned(), lines.collect())
    }
}

fn page_cell(shown: &Shown) -> Cell {
    let small = |text: &str, tone| Span::set(text, SpanForm::Small, tone);
    let mut spans = vec![
        Span::from(format!("{} ", shown.value)),
        small(&shown.half, Some(Tone::Muted)),
    ];
    if !shown.relative.is_empty() {
        spans.push(" ".into());
        spans.push(small(&shown.relative, shown.verdict.map(tone)));
        let spoken = |verdict| format!(" {}", words::verdict(verdict));
        spans.extend(
            shown
                .verdict
                .map(|verdict| Span::set(spoken(verdict), SpanForm::Spoken, None)),
        );
    }
    Cell {
        spans,
        ..Cell::default()
    }
}
