//! A grid of figures under wrapped heads, in as many pieces as the width needs.

use crate::lines::{left, wrapped};
use crate::study::words as study_words;
use crate::words;
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_compare::study::{Figure, Table};

/// Widest that a head's word makes its column; longer ones are broken.
const HEAD: usize = 20;
/// Between columns.
const GAP: usize = 2;

/// What stands at one place of the grid, in parts that are put under each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cell {
    open: bool,
    ratio: String,
    band: &'static str,
    half: String,
    sign: &'static str,
    efficiency: String,
    verdict: Option<Verdict>,
    /// Instead of all these.
    text: String,
}

impl Cell {
    /// A figure with its interval, its verdict, and what table shows beside it.
    pub(crate) fn of(table: &Table, column: usize, figure: &Figure) -> Self {
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
    pub(crate) fn plain(ratio: &Ratio, base: bool) -> Self {
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

    /// Words alone.
    pub(crate) fn text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Words in the colour of a verdict.
    pub(crate) fn judged_text(text: String, verdict: Option<Verdict>) -> Self {
        Self {
            verdict,
            ..Self::text(text)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ratio.is_empty() && self.text.is_empty()
    }
}

/// A line of the grid.
pub(crate) enum Line {
    /// A group's heading.
    Head(String),
    /// A name and a cell for each column.
    Row(String, Vec<Cell>),
}

/// Widest of each part in a grid, so that figures stand under each other.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    open: bool,
    ratio: usize,
    band: usize,
    half: usize,
    sign: usize,
    efficiency: usize,
}

pub(crate) struct Grid {
    heads: Vec<String>,
    lines: Vec<Line>,
    shape: Shape,
}

impl Grid {
    pub(crate) fn new(table: &Table, lines: Vec<Line>) -> Self {
        let heads = table.columns.iter().map(study_words::column_name);
        Self::plain(heads.collect(), lines)
    }

    /// A grid under these heads.
    pub(crate) fn plain(heads: Vec<String>, lines: Vec<Line>) -> Self {
        let mut shape = Shape::default();
        let long = |text: &str| text.chars().count();
        for line in &lines {
            let Line::Row(_, cells) = line else { continue };
            for cell in cells {
                shape.open |= cell.open;
                shape.ratio = shape.ratio.max(long(&cell.ratio));
                shape.band = shape.band.max(long(cell.band));
                shape.half = shape.half.max(long(&cell.half));
                shape.sign = shape.sign.max(long(cell.sign));
                shape.efficiency = shape.efficiency.max(long(&cell.efficiency));
            }
        }
        Self {
            heads,
            lines,
            shape,
        }
    }

    /// The grid in lines of at most `width` columns; what does not fit beside the rest follows below.
    pub(crate) fn lines(&self, width: usize, colour: bool) -> Vec<String> {
        let names = self.names(width);
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|place| self.width(place))
            .collect();
        let pieces = pieces(&widths, width.saturating_sub(names));
        let several = pieces.len() > 1;
        let mut lines = Vec::new();
        for (nth, (from, to)) in pieces.into_iter().enumerate() {
            if nth > 0 {
                lines.push(String::new());
            }
            let of = widths.get(from..to).unwrap_or_default();
            let corner = if several {
                format!("columns {}-{to} of {}", from + 1, widths.len())
            } else {
                String::new()
            };
            lines.extend(self.head(names, from, of, &corner));
            for line in &self.lines {
                lines.extend(self.line(line, names, from, of, colour));
            }
        }
        lines
    }

    /// Columns for the names of rows: a third of the line at most.
    fn names(&self, width: usize) -> usize {
        let names = self.lines.iter().filter_map(|line| match line {
            Line::Row(name, _) => Some(name.chars().count() + 2),
            Line::Head(_) => None,
        });
        names.max().unwrap_or(0).clamp(16, (width / 3).max(20))
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.lines.iter().filter_map(|line| match line {
            Line::Row(_, cells) => cells.get(column),
            Line::Head(_) => None,
        });
        let head = self.heads.get(column);
        let words = head.map_or(0, |head| {
            head.split(' ')
                .map(|word| word.chars().count())
                .max()
                .unwrap_or(0)
        });
        cells
            .map(|cell| self.cell(cell).chars().count())
            .max()
            .unwrap_or(0)
            .max(words.min(HEAD))
    }

    fn cell(&self, cell: &Cell) -> String {
        if cell.is_empty() || !cell.text.is_empty() {
            return cell.text.clone();
        }
        let shape = self.shape;
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

    /// The heads, broken at spaces and standing on the first row.
    fn head(&self, names: usize, from: usize, widths: &[usize], corner: &str) -> Vec<String> {
        let heads: Vec<Vec<String>> = self
            .heads
            .iter()
            .skip(from)
            .zip(widths)
            .map(|(head, width)| broken(head, *width))
            .collect();
        let corner = wrapped(corner, names.saturating_sub(GAP), 0, 0);
        let tall = heads.iter().map(Vec::len).chain([corner.len()]).max();
        let tall = tall.unwrap_or(0);
        let part = |lines: &[String], nth: usize| {
            let above = tall - lines.len();
            let line = nth.checked_sub(above).and_then(|nth| lines.get(nth));
            line.cloned().unwrap_or_default()
        };
        let lines = (0..tall).map(|nth| {
            let mut line = left(&part(&corner, nth), names);
            for (head, width) in heads.iter().zip(widths) {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&left(&part(head, nth), *width));
            }
            line
        });
        lines.collect()
    }

    fn line(
        &self,
        line: &Line,
        names: usize,
        from: usize,
        widths: &[usize],
        colour: bool,
    ) -> Vec<String> {
        let (name, cells) = match line {
            Line::Head(text) => return vec![text.clone()],
            Line::Row(name, cells) => (format!("  {name}"), cells),
        };
        let mut lines = Vec::new();
        // A name that is too long has a line of its own.
        let start = if name.chars().count() > names {
            lines.push(name);
            " ".repeat(names)
        } else {
            left(&name, names)
        };
        let mut text = start;
        for (cell, width) in cells.iter().skip(from).zip(widths) {
            let plain = self.cell(cell);
            let rest = " ".repeat(width.saturating_sub(plain.chars().count()));
            text.push_str(&" ".repeat(GAP));
            match cell.verdict.filter(|_| colour) {
                Some(verdict) => {
                    let code = words::paint(verdict);
                    text.push_str(&format!("\u{1b}[{code}m{plain}\u{1b}[0m{rest}"));
                }
                None => text.push_str(&(plain + &rest)),
            }
        }
        lines.push(text);
        lines
    }
}

/// From where to where columns stand beside each other; at least one does.
fn pieces(widths: &[usize], room: usize) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let (mut from, mut used) = (0, 0);
    for (place, width) in widths.iter().enumerate() {
        if place > from && used + GAP + width > room {
            pieces.push((from, place));
            (from, used) = (place, 0);
        }
        used += GAP + width;
    }
    if from < widths.len() {
        pieces.push((from, widths.len()));
    }
    pieces
}

/// Broken at spaces, and within words that are longer than a line.
fn broken(text: &str, width: usize) -> Vec<String> {
    let lines = wrapped(text, width, 0, 0).into_iter();
    lines
        .flat_map(|line| {
            let signs: Vec<char> = line.chars().collect();
            let parts = signs.chunks(width.max(1));
            parts
                .map(|part| part.iter().collect())
                .collect::<Vec<String>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_is_lost_or_shown_twice_however_narrow() {
        let widths = [10, 12, 30, 5, 5, 5];
        for room in [1, 12, 24, 40, 200] {
            let pieces = pieces(&widths, room);
            let all: Vec<usize> = pieces.iter().flat_map(|(from, to)| *from..*to).collect();
            assert_eq!(all, [0, 1, 2, 3, 4, 5], "{room}");
        }
        assert!(pieces(&[], 20).is_empty());
    }

    #[test]
    fn a_long_word_of_a_head_is_broken() {
        assert_eq!(broken("abcdef gh", 4), ["abcd", "ef", "gh"]);
    }
}
