//! Lines for a terminal.

use std::io::IsTerminal;

/// Whether stdout shows colour.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Wraps a text after a label: the label stands before its first line and is as wide as the gap before the
/// others. No line is longer than `width` where the words allow.
pub fn paragraph(label: &str, text: &str, width: usize) -> Vec<String> {
    let indent = label.chars().count();
    let mut lines = Vec::new();
    let mut line = label.to_owned();
    let mut empty = true;
    for word in text.split_ascii_whitespace() {
        let wanted = line.chars().count() + usize::from(!empty) + word.chars().count();
        if !empty && wanted > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// A table with its columns aligned: the first to the left, the others to the right, two blanks between.
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_hangs_under_its_label_and_keeps_the_width() {
        let lines = paragraph("fix: ", "one two three four fifteen", 15);
        assert_eq!(lines, ["fix: one two", "     three four", "     fifteen"]);
        assert_eq!(
            paragraph("", "a-word-that-is-too-long for it", 10),
            ["a-word-that-is-too-long", "for it"]
        );
        assert_eq!(paragraph("only ", "", 10), ["only"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "n"], ["x", "100"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), ["name    n", "x     100"]);
    }
}
