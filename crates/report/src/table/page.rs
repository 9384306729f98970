//! A table on the page.

use crate::typesetting::{percent, typeset};
use deltabench_model::table::{Bar, Cell, Column, Line, Row, Span, SpanForm, Table, Tone};
use maud::{Markup, html};

/// The table, in a box that can be scrolled where it has a label; its title is its caption.
pub(crate) fn table(table: &Table) -> Markup {
    let bare = html! {
        table class=(table.look.class) {
            @if !table.title.is_empty() { caption { (table.title) (table.reading) } }
            @if table.columns.iter().any(|column| !column.head.is_empty()) { (heads(table)) }
            tbody { @for line in &table.lines { (self::line(table, line)) } }
        }
    };
    html! {
        @if table.label.is_empty() {
            (bare)
        } @else {
            div.scroll tabindex="0" role="region" aria-label=(table.label) { (bare) }
        }
    }
}

fn heads(table: &Table) -> Markup {
    html! {
        thead { tr {
            th scope="col" { (table.corner) }
            @for column in &table.columns { (head(column)) }
        } }
    }
}

fn head(column: &Column) -> Markup {
    html! {
        th scope="col" title=[(!column.about.is_empty()).then_some(&column.about)] {
            (column.head)
            @if !column.unit.is_empty() { br; small { (column.unit) } }
        }
    }
}

fn line(table: &Table, line: &Line) -> Markup {
    html! {
        @match line {
            Line::Heading(text) => {
                tr.group { th colspan=(table.columns.len() + 1) scope="rowgroup" { (text) } }
            }
            Line::Row(Row { name, cells, .. }) => {
                tr { th scope="row" { (name) } @for one in cells { (cell(one)) } }
            }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    let class = match cell.bar {
        Some(_) => Some("bar"),
        None => cell.tone.map(class),
    };
    html! {
        td class=[class] title=[(!cell.tip.is_empty()).then_some(&cell.tip)] {
            @if let Some(one) = &cell.bar { (bar(one)) }
            @for span in &cell.spans { (self::span(span)) }
        }
    }
}

/// A part of a text.
pub(crate) fn span(span: &Span) -> Markup {
    let class = span.tone.map(class);
    html! {
        @match span.form {
            SpanForm::AsIs => (span.text),
            SpanForm::Plain if class.is_none() => (typeset(&span.text)),
            SpanForm::Plain => span class=[class] { (typeset(&span.text)) },
            SpanForm::Strong { sign } => {
                b class=[class] {
                    @if !sign.is_empty() { span aria-hidden="true" { (sign) " " } }
                    (typeset(&span.text))
                }
            }
            SpanForm::Small => small class=[class] { (typeset(&span.text)) },
            SpanForm::Spoken => span.hear { (span.text) },
        }
    }
}

/// The class of a colour.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Worse => "worse",
        Tone::Better => "better",
        Tone::Same => "same",
        Tone::Open => "open",
        Tone::Void => "void",
        Tone::Red => "red",
        Tone::Green => "green",
        Tone::Grey => "grey",
        Tone::Muted => "muted",
    }
}

fn bar(bar: &Bar) -> Markup {
    let at = |value: f64| percent(value.clamp(0.0, 1.0));
    html! {
        @if let Some(value) = bar.value {
            svg width="100%" height="18" role="img" aria-label=(bar.words) {
                rect.mean x="0" y="3" height="12" width=(at(value)) {}
                @if let Some((low, high)) = bar.ends {
                    line.whisker x1=(at(low)) x2=(at(high)) y1="9" y2="9" {}
                    line.whisker x1=(at(low)) x2=(at(low)) y1="5" y2="13" {}
                    line.whisker x1=(at(high)) x2=(at(high)) y1="5" y2="13" {}
                }
            }
        }
    }
}
