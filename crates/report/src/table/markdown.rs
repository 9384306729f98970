//! A table in Markdown.

use crate::markdown::quoting::escape;
use crate::markdown::section::Section;
use deltabench_model::table::{Align, Cell, Line, SpanForm, Table};

/// The table with its title as a part that may be cut; nothing where it has no rows.
pub(crate) fn section(table: &Table) -> Section {
    if table.lines.is_empty() {
        return Section::default();
    }
    let reading = escape(&table.reading);
    let folded = table.look.folded;
    let title = match (table.title.as_str(), folded) {
        ("", _) => None,
        (title, true) => Some(format!(
            "<details><summary>{}{reading}</summary>\n",
            escape(title)
        )),
        (title, false) => Some(format!("**{}**{reading}\n", escape(title))),
    };
    let mut head: Vec<String> = title.into_iter().collect();
    head.extend(heads(table));
    Section {
        head,
        rows: rows(table),
        foot: vec![if folded { "\n</details>\n" } else { "" }.to_owned()],
        what: table.row_noun,
    }
}

/// Heads, and how the columns are aligned.
pub(crate) fn heads(table: &Table) -> Vec<String> {
    let heads = table.columns.iter().map(|column| escape(&column.head));
    let heads = std::iter::once(escape(&table.corner)).chain(heads);
    let rules = table.columns.iter().map(|column| match column.align {
        Align::Right => "--:",
        Align::Left => "---",
    });
    let names = if table.look.numbered { "--:" } else { "---" };
    let rules: Vec<&str> = std::iter::once(names).chain(rules).collect();
    let rules = if table.look.compact {
        format!("| {} |", rules.join(" | "))
    } else {
        format!("|{}|", rules.join("|"))
    };
    vec![row(heads), rules]
}

/// A line of Markdown for each line of the table.
pub(crate) fn rows(table: &Table) -> Vec<String> {
    let lines = table.lines.iter().map(|line| match line {
        Line::Heading(text) => {
            let empty = table.columns.iter().map(|_| String::new());
            row(std::iter::once(format!("**{}**", escape(text))).chain(empty))
        }
        Line::Row(one) => {
            let name = escape(&one.name);
            let name = if one.is_mean {
                format!("*{name}*")
            } else {
                name
            };
            row(std::iter::once(name).chain(one.cells.iter().map(cell)))
        }
    });
    lines.collect()
}

fn row(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.collect();
    format!("| {} |", fields.join(" | "))
}

fn cell(cell: &Cell) -> String {
    let spans = cell.spans.iter().map(|span| match span.form {
        SpanForm::Spoken => String::new(),
        SpanForm::AsIs => span.seen(),
        SpanForm::Strong { .. } => format!("**{}**", escape(&span.seen())),
        SpanForm::Plain | SpanForm::Small => escape(&span.seen()),
    });
    spans.collect()
}
