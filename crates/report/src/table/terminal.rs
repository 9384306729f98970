//! A table on a terminal, in as many pieces as the width needs.

use crate::lines::{left, wrapped};
use deltabench_model::table::{Align, Cell, Line, Row, Table, Tone};

/// Widest that a head's word makes its column; longer ones are broken.
const HEAD: usize = 20;
/// Between columns.
const GAP: usize = 2;

/// Title and figures in lines of at most `width` columns; what does not fit beside the rest follows below.
/// A name that is too long has a line of its own.
pub(crate) fn lines(table: &Table, width: usize, colour: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let title = format!("{}{}", table.title, table.reading);
    if !title.is_empty() {
        lines.extend(wrapped(&title, width, 0, 2));
    }
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|place| column_width(table, place))
        .collect();
    let names = names_width(table, width);
    let pieces = pieces(&widths, width.saturating_sub(names));
    let several = pieces.len() > 1 && !table.look.compact;
    for (nth, (from, to)) in pieces.into_iter().enumerate() {
        let corner = if several {
            format!("columns {}-{to} of {}", from + 1, widths.len())
        } else {
            String::new()
        };
        if several && nth > 0 {
            lines.push(String::new());
        }
        let piece = Piece {
            table,
            names,
            from,
            widths: widths.get(from..to).unwrap_or_default(),
        };
        lines.extend(piece.head(&corner));
        for line in &table.lines {
            match line {
                Line::Heading(text) => lines.push(text.clone()),
                Line::Row(row) => lines.extend(piece.row(row, colour)),
            }
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Columns for the names of rows: a third of the line at most, unless the table is compact.
fn names_width(table: &Table, width: usize) -> usize {
    let longest = table.rows().map(|row| length(&row.name) + 2).max();
    if table.look.compact {
        longest.unwrap_or(2)
    } else {
        longest.unwrap_or(0).clamp(16, (width / 3).max(20))
    }
}

fn column_width(table: &Table, place: usize) -> usize {
    let cells = table.rows().filter_map(|row| row.cells.get(place));
    let head = table.columns.get(place).map_or("", |column| &column.head);
    let head = if table.look.compact {
        length(head)
    } else {
        head.split(' ').map(length).max().unwrap_or(0).min(HEAD)
    };
    cells
        .map(|cell| length(&cell.text()))
        .max()
        .unwrap_or(0)
        .max(head)
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

/// Columns that stand beside each other.
struct Piece<'a> {
    table: &'a Table,
    names: usize,
    from: usize,
    widths: &'a [usize],
}

impl Piece<'_> {
    /// The heads, broken at spaces and standing on the first row.
    fn head(&self, corner: &str) -> Vec<String> {
        let columns = self.table.columns.iter().skip(self.from).zip(self.widths);
        let heads: Vec<Vec<String>> = columns
            .map(|(column, width)| broken(&column.head, *width))
            .collect();
        let corner = wrapped(corner, self.names.saturating_sub(GAP), 0, 0);
        let tall = heads.iter().map(Vec::len).chain([corner.len()]).max();
        let tall = tall.unwrap_or(0);
        let part = |lines: &[String], nth: usize| {
            let above = tall - lines.len();
            let line = nth.checked_sub(above).and_then(|nth| lines.get(nth));
            line.cloned().unwrap_or_default()
        };
        let lines = (0..tall).map(|nth| {
            let texts = heads.iter().map(|head| (part(head, nth), None));
            self.line(&part(&corner, nth), texts)
        });
        lines.collect()
    }

    fn row(&self, row: &Row, colour: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let mut name = format!("  {}", row.name);
        if length(&name) > self.names {
            lines.push(std::mem::take(&mut name));
        }
        let code = |cell: &Cell| cell.tone.and_then(paint).filter(|_| colour);
        let cells = row.cells.iter().skip(self.from);
        lines.push(self.line(&name, cells.map(|cell| (cell.text(), code(cell)))));
        lines
    }

    fn line(
        &self,
        name: &str,
        texts: impl Iterator<Item = (String, Option<&'static str>)>,
    ) -> String {
        let mut line = left(name, self.names);
        let columns = self.table.columns.iter().skip(self.from).zip(self.widths);
        for ((text, code), (column, width)) in texts.zip(columns) {
            let blank = " ".repeat(width.saturating_sub(length(&text)));
            let text = match code {
                Some(code) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
                None => text,
            };
            line.push_str(&" ".repeat(GAP));
            line.push_str(&match column.align {
                Align::Right => blank + &text,
                Align::Left => text + &blank,
            });
        }
        line
    }
}

/// The terminal's code for the colour of a verdict.
fn paint(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Worse | Tone::Void => Some("31"),
        Tone::Better => Some("32"),
        Tone::Same => Some("2"),
        Tone::Open => Some("33"),
        Tone::Red | Tone::Green | Tone::Grey | Tone::Muted => None,
    }
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
    use deltabench_model::table::{Column, Look};

    #[test]
    fn columns_of_a_compact_table_that_do_not_fit_stand_below() {
        let table = Table {
            columns: ["one", "two", "three"].map(Column::of).to_vec(),
            lines: vec![Line::row("name", ["1", "2", "3"].map(Cell::from).to_vec())],
            look: Look {
                compact: true,
                ..Look::default()
            },
            ..Table::default()
        };
        assert_eq!(
            lines(&table, 16, false),
            [
                "        one  two",
                "  name    1    2",
                "        three",
                "  name      3"
            ]
        );
        assert_eq!(lines(&table, 80, false).len(), 2);
        assert_eq!(lines(&table, 3, false).len(), 6);
    }

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
