//! A table for spreadsheets.

use deltabench_model::table::{Cell, Column, Line, Table};

/// Comma-separated values (RFC 4180, line breaks as LF): the heads, then a line for each row.
pub fn comma_separated(table: &Table) -> String {
    separated(table, ",", field)
}

/// Tab-separated values: the heads, then a line for each row. What is a tab or a line break is a blank.
pub fn tab_separated(table: &Table) -> String {
    separated(table, "\t", |text| text.replace(['\t', '\n', '\r'], " "))
}

/// Lines of fields under these heads.
pub(crate) fn flat(heads: &[&str], lines: Vec<Vec<String>>) -> Table {
    let (corner, heads) = heads.split_first().unwrap_or((&"", &[]));
    let lines = lines.into_iter().map(|fields| {
        let mut fields = fields.into_iter();
        let name = fields.next().unwrap_or_default();
        Line::row(name, fields.map(Cell::from).collect())
    });
    Table {
        corner: (*corner).to_owned(),
        columns: heads.iter().copied().map(Column::of).collect(),
        lines: lines.collect(),
        ..Table::default()
    }
}

fn separated(table: &Table, separator: &str, field: fn(&str) -> String) -> String {
    let heads = table.columns.iter().map(|column| column.head.clone());
    let heads: Vec<String> = std::iter::once(table.corner.clone()).chain(heads).collect();
    let mut text = String::new();
    let mut add = |fields: Vec<String>| {
        let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
        text.push_str(&fields.join(separator));
        text.push('\n');
    };
    add(heads);
    for row in table.rows() {
        let cells = row.cells.iter().map(|cell| cell.text());
        add(std::iter::once(row.name.clone()).chain(cells).collect());
    }
    text
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number with all its digits; an empty field for what is none.
pub fn number(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

/// The same; an empty field for what is not known.
pub fn optional(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_commas_or_quotes_is_quoted() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("plain"), "plain");
    }
}
