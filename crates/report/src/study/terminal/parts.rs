//! Figures of a study in parts that stand under each other.

use crate::lines::left;
use crate::study::words as study_words;
use crate::table::tone;
use crate::words;
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_compare::study::{Figure, StudyTable};
use deltabench_model::table::{Cell, Column, Line, Row, Table};

/// What stands at one place, in parts that are put under each other; without a ratio nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parts {
    open: bool,
    ratio: String,
    band: &'static str,
    half: String,
    sign: &'static str,
    efficiency: String,
    verdict: Option<Verdict>,
}

impl Parts {
    /// A figure with its interval, its verdict, and what the table shows beside it.
    pub(super) fn of(table: &StudyTable, column: usize, figure: &Figure) -> Self {
        if column == table.base {
            return Self::plain(&figure.ratio, true);
        }
        let band = study_words::band(table, column, figure);
        Self {
            open: !study_words::is_claim(figure),
            band: band.map_or("", study_words::Band::sign),
            sign: figure.verdict.map_or("", words::sign),
            efficiency: figure
                .efficiency
                .map_or_else(String::new, study_words::efficiency),
            verdict: figure.verdict,
            ..Self::plain(&figure.ratio, false)
        }
    }

    /// A ratio without a verdict; the base's is 1 by definition and has no interval.
    pub(super) fn plain(ratio: &Ratio, base: bool) -> Self {
        Self {
            ratio: study_words::ratio(ratio.estimate),
            half: if base {
                String::new()
            } else {
                study_words::plus_minus(ratio)
            },
            ..Self::default()
        }
    }
}

/// Widest of each part in a table.
#[derive(Debug, Clone, Copy, Default)]
struct Widths {
    open: bool,
    ratio: usize,
    band: usize,
    half: usize,
    sign: usize,
    efficiency: usize,
}

impl Widths {
    fn with(self, cell: &Parts) -> Self {
        let long = |text: &str| text.chars().count();
        Self {
            open: self.open | cell.open,
            ratio: self.ratio.max(long(&cell.ratio)),
            band: self.band.max(long(cell.band)),
            half: self.half.max(long(&cell.half)),
            sign: self.sign.max(long(cell.sign)),
            efficiency: self.efficiency.max(long(&cell.efficiency)),
        }
    }

    fn text(&self, cell: &Parts) -> String {
        let shape = self;
        let mut text = String::new();
        if shape.open {
            text.push(if cell.open { '(' } else { ' ' });
        }
        text.push_str(&format!("{:>width$}", cell.ratio, width = shape.ratio));
        text.push_str(&left(cell.band, shape.band));
        let half = if cell.open {
            format!("{})", cell.half)
        } else {
            cell.half.clone()
        };
        text.push(' ');
        text.push_str(&left(&half, shape.half + 1));
        text.push_str(&left(cell.sign, shape.sign));
        if shape.efficiency > 0 {
            text.push_str(&format!(
                " {:>width$}",
                cell.efficiency,
                width = shape.efficiency
            ));
        }
        text.trim_end().to_owned()
    }
}

/// A line whose figures are still in parts.
pub(super) enum PartsLine {
    /// A group's heading.
    Heading(String),
    /// A name with what stands in each column.
    Row(String, Vec<Parts>),
}

/// The lines under the heads of a study's table.
pub(super) fn aligned(table: &StudyTable, lines: Vec<PartsLine>) -> Table {
    let cells = lines.iter().flat_map(|line| match line {
        PartsLine::Heading(_) => &[],
        PartsLine::Row(_, cells) => cells.as_slice(),
    });
    let widths = cells.fold(Widths::default(), Widths::with);
    let cell = |parts: Parts| {
        let text = if parts.ratio.is_empty() {
            String::new()
        } else {
            widths.text(&parts)
        };
        Cell::from(text).toned(parts.verdict.map(tone))
    };
    let lines = lines.into_iter().map(|line| match line {
        PartsLine::Heading(text) => Line::Heading(text),
        PartsLine::Row(name, cells) => Line::Row(Row {
            name,
            cells: cells.into_iter().map(cell).collect(),
            is_mean: false,
        }),
    });
    Table {
        columns: columns(table),
        lines: lines.collect(),
        ..Table::default()
    }
}

/// The columns of a study's table.
pub(super) fn columns(table: &StudyTable) -> Vec<Column> {
    let names = table.columns.iter().map(study_words::column_name);
    names.map(Column::of_words).collect()
}
