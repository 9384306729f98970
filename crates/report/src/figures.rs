//! What a kind of benchmark shows beside its verdicts ([`deltabench_model::figures::Figures`]), written.

use crate::lines::wrapped;
use crate::markdown::quoting::escape;
use crate::markdown::section::Section;
use crate::table;
use crate::typesetting::typeset;
use deltabench_model::figures::{Block, Curves, Figures, Fold, PageSection};
use deltabench_model::units::{count, to_f64};
use maud::{Markup, html};

/// On a terminal; what only a page can show is left out, and notes are among those of the run.
pub(crate) fn terminal(figures: &Figures, width: usize) -> Vec<String> {
    let lines = figures.terminal.iter().flat_map(|block| match block {
        Block::Text(text) => wrapped(text, width, 0, 2),
        Block::Table(table) => table::terminal::lines(table, width, false),
        _ => Vec::new(),
    });
    lines.collect()
}

/// In Markdown; what only a page can show is left out.
pub(crate) fn markdown(figures: &Figures) -> Vec<Section> {
    let sections = figures.markdown.iter().map(|block| match block {
        Block::Heading(text) => paragraph(&format!("### {}", escape(text))),
        Block::Text(text) => paragraph(&escape(text)),
        Block::Table(table) => table::markdown::section(table),
        Block::Notes(notes) => Section::list("**Notes**\n", notes.iter().cloned(), "note"),
        _ => Section::default(),
    });
    sections.collect()
}

fn paragraph(text: &str) -> Section {
    Section {
        head: vec![format!("{text}\n")],
        ..Section::default()
    }
}

/// The sections of a page that stand above the cells, or those among the details.
pub(crate) fn page(figures: &Figures, details: bool) -> Markup {
    let of = |section: &&PageSection| section.name.is_none() == details;
    html! {
        @for section in figures.page.iter().filter(of) {
            section id=(section.id) {
                h2 { (section.heading) }
                @for one in &section.blocks { (block(one)) }
            }
        }
    }
}

fn block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Heading(text) => h3 { (text) },
            Block::Text(text) => p { (typeset(text)) },
            Block::Legend(spans) => {
                p.legend { @for span in spans { (table::page::span(span)) } }
            }
            Block::Table(one) => (table::page::table(one)),
            Block::Notes(notes) => {
                @if !notes.is_empty() {
                    h3 { "Notes" }
                    ul.findings { @for note in notes { li { (typeset(note)) } } }
                }
            }
            Block::Fold(one) => (fold(one)),
            Block::PassChoice => {
                div.controls.scripted #step-controls {
                    label { span { "pass" } select #step-pass {} }
                }
            }
            Block::Series(place) => div.columns.scripted data-step=(place) {},
            Block::Curves(one) => (curves(one)),
        }
    }
}

fn fold(fold: &Fold) -> Markup {
    html! {
        details class=[(!fold.class.is_empty()).then_some(fold.class)] open[fold.open] {
            summary {
                (fold.title)
                @if !fold.subtitle.is_empty() { " " small { (fold.subtitle) } }
            }
            @for one in &fold.blocks { (block(one)) }
        }
    }
}

fn curves(curves: &Curves) -> Markup {
    let class = if curves.of_base {
        "curve"
    } else {
        "curve side"
    };
    html! {
        p.metric { (curves.title) }
        div.warmup {
            span.scale { span { (curves.scale.0) } span { (curves.scale.1) } }
            svg width="100%" height="60" viewBox="0 0 1000 100" preserveAspectRatio="none"
                role="img" aria-label=(curves.label) {
                @for line in &curves.lines {
                    path class=(class) d=(path(line, curves.most)) {}
                }
            }
        }
        @if curves.lines.is_empty() { p.muted { "-" } }
    }
}

/// Values in order as a line; what is not known is a gap.
fn path(values: &[Option<f64>], most: f64) -> String {
    let last = to_f64(count(values.len().saturating_sub(1))).max(1.0);
    let mut path = String::new();
    let mut pen = 'M';
    for (place, value) in (0_u32..).zip(values) {
        let Some(value) = value else {
            pen = 'M';
            continue;
        };
        let x = 1000.0 * f64::from(place) / last;
        let y = 100.0 * (1.0 - value / most);
        path.push_str(&format!("{pen}{x:.0} {y:.1}"));
        pen = 'L';
    }
    path
}
