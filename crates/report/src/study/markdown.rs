//! The tables of a study for a pull request or a blog post.

use super::context::StudyContext;
use super::lead::{extremes, sentence};
use super::words as study_words;
use crate::grids;
use crate::markdown::section::LIMIT;
use crate::markdown::section::{Section, fit};
use crate::markdown::{escape, fenced};
use crate::{table, words};
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_compare::study::{Figure, GroupSpread, Study, StudyRow, StudyTable};
use deltabench_model::table::{Cell, Column, Line, Look, Row, Span, SpanForm, Table};

/// Markdown (GitHub's dialect): the sentence, what must be known before figures are compared, the tables with
/// their notes and spreads, what the signs mean, the runs, how to make it again.
///
/// Shape: at most 65 000 characters: the longest tables are cut, and say so.
pub(super) fn markdown(study: &Study, context: &StudyContext) -> String {
    let mut sections = vec![opening(study, context)];
    for table in &study.tables {
        sections.push(ratios(study, table));
        let beside = study_words::Beside::ALL.into_iter();
        sections.extend(
            beside
                .filter(|beside| beside.is_in(table))
                .map(|beside| beside_ratios(table, beside)),
        );
        sections.push(spreads(study, table));
        sections.push(Section::list("", table.notes.iter().cloned(), "note"));
    }
    sections.extend(grids::markdown(&study.grids));
    let legend = study_words::legend(study).into_iter();
    sections.push(Section::list("### How to read it\n", legend, "line"));
    sections.push(runs(context));
    sections.push(again(context));
    fit(sections, LIMIT)
}

fn opening(study: &Study, context: &StudyContext) -> Section {
    let mut head = vec![format!("**{}**\n", escape(&sentence(study)))];
    let said = extremes(study).into_iter();
    head.extend(said.map(|text| format!("{}\n", escape(&text))));
    let about = [
        context.about.clone(),
        context.source.as_ref().map(|who| format!("after: {who}")),
        context.scale.as_ref().map(|at| format!("scale: {at}")),
    ];
    head.extend(
        about
            .into_iter()
            .flatten()
            .map(|text| format!("{}\n", escape(&text))),
    );
    let notes = study.notes.iter();
    Section {
        head,
        rows: notes.map(|note| format!("- {}", escape(note))).collect(),
        foot: vec![String::new()],
        what: "note",
    }
}

/// A table with its title in front.
fn section(title: &str, level: &str, table: &Table) -> Section {
    let mut section = table::markdown::section(table);
    section
        .head
        .insert(0, format!("{level} {}\n", escape(title)));
    section
}

/// Lines under the heads of a study's table.
fn under_heads(table: &StudyTable, lines: Vec<Line>) -> Table {
    let names = table.columns.iter().map(study_words::column_name);
    Table {
        corner: "workload".to_owned(),
        columns: names.map(Column::of).collect(),
        lines,
        row_noun: "row",
        ..Table::default()
    }
}

fn ratios(study: &Study, table: &StudyTable) -> Section {
    let spreads = study_words::spreads_of(study, table);
    let mut lines = Vec::new();
    for group in words::GROUPS {
        let of = study_words::rows_of(table, group);
        if of.is_empty() {
            continue;
        }
        let heading = study_words::group_heading(table.worker, Some(group));
        lines.push(Line::Heading(heading.to_owned()));
        lines.extend(of.into_iter().map(|row| figures(table, row)));
        let spread = study_words::spread(&spreads, Some(group));
        lines.extend(spread.and_then(|spread| mean(table, spread)));
    }
    let all = study_words::spread(&spreads, None);
    lines.extend(all.and_then(|spread| mean(table, spread)));
    section(&table.title, "###", &under_heads(table, lines))
}

fn figures(table: &StudyTable, of: &StudyRow) -> Line {
    let cells = (0..table.columns.len()).map(|column| {
        let figure = study_words::figure(of, column);
        figure.map_or_else(Cell::default, |figure| cell(table, column, figure))
    });
    Line::row(of.name.as_str(), cells.collect())
}

/// `**0.930↓ ±0.4 ▼**`; what is no claim stands in parentheses.
fn cell(table: &StudyTable, column: usize, figure: &Figure) -> Cell {
    let ratio = study_words::ratio(figure.ratio.estimate);
    if column == table.base {
        return ratio.into();
    }
    let band = study_words::band(table, column, figure).map_or("", study_words::Band::sign);
    let mut text = format!("{ratio}{band} {}", study_words::plus_minus(&figure.ratio));
    if let Some(efficiency) = figure.efficiency {
        text.push_str(&format!(", {}", study_words::efficiency(efficiency)));
    }
    let sign = figure.verdict.map_or("", words::sign);
    match figure.verdict {
        Some(Verdict::Regression | Verdict::Improvement) => {
            let form = SpanForm::Strong { sign: "" };
            Cell {
                spans: vec![Span::set(format!("{text} {sign}"), form, None)],
                ..Cell::default()
            }
        }
        _ if !study_words::is_claim(figure) => format!("({text}){sign}").into(),
        Some(_) => format!("{text} {sign}").into(),
        None => text.into(),
    }
}

/// The geometric means of a group; nothing where no column has one.
fn mean(table: &StudyTable, spread: &GroupSpread) -> Option<Line> {
    let of = study_words::spread_heading(table.worker, spread.of);
    let means: Vec<Option<Ratio>> = (0..table.columns.len())
        .map(|column| study_words::column_spread(spread, column)?.geometric)
        .collect();
    let cells = means.iter().enumerate().map(|(column, mean)| {
        let Some(mean) = mean else {
            return Cell::default();
        };
        let ratio = study_words::ratio(mean.estimate);
        if column == table.base {
            ratio.into()
        } else {
            format!("{ratio} {}", study_words::plus_minus(mean)).into()
        }
    });
    let known = means.iter().any(Option::is_some);
    known.then(|| {
        Line::Row(Row {
            name: format!("geometric mean ({of})"),
            cells: cells.collect(),
            is_mean: true,
        })
    })
}

fn beside_ratios(table: &StudyTable, beside: study_words::Beside) -> Section {
    let lines = table.rows.iter().map(|of| {
        let cells = (0..table.columns.len()).map(|column| {
            let text = study_words::figure(of, column)
                .and_then(|figure| beside.text(table, column, figure));
            text.unwrap_or_default().into()
        });
        Line::row(of.name.as_str(), cells.collect())
    });
    let lines = under_heads(table, lines.collect());
    section(&beside.title(table), "####", &lines)
}

/// The spreads, folded; nothing where the table has none.
fn spreads(study: &Study, table: &StudyTable) -> Section {
    let lines = study_words::spreads_of(study, table)
        .into_iter()
        .flat_map(|spread| {
            let columns = table.columns.iter().enumerate();
            let others = columns.filter(|(column, _)| *column != table.base);
            others.filter_map(move |(column, head)| {
                let of = study_words::column_spread(spread, column)?;
                let mut cells: Vec<Cell> =
                    vec![head.name.as_str().into(), of.count.to_string().into()];
                cells.extend(study_words::spread_figures(of).map(Cell::from));
                let group = study_words::spread_heading(table.worker, spread.of);
                Some(Line::row(group, cells))
            })
        });
    let mut columns = vec![Column::of_words("column"), Column::of("rows")];
    columns.extend(study_words::SPREAD_HEADS.map(Column::of));
    table::markdown::section(&Table {
        title: "Spread of the ratios by group".to_owned(),
        corner: "group".to_owned(),
        columns,
        lines: lines.collect(),
        row_noun: "row",
        look: Look {
            folded: true,
            ..Look::default()
        },
        ..Table::default()
    })
}

fn runs(context: &StudyContext) -> Section {
    let lines = context.runs.iter().map(|run| {
        let mut texts = vec![
            run.run.clone(),
            run.place(),
            run.state.clone(),
            run.host.clone(),
        ];
        texts.extend(run.began_unix_ms.map(words::date));
        texts.retain(|text| !text.is_empty());
        let withdrawn = run.withdrawn.as_ref();
        texts.extend(withdrawn.map(|reason| format!("withdrawn: {reason}")));
        texts.join(", ")
    });
    Section::list("### The runs\n", lines, "run")
}

fn again(context: &StudyContext) -> Section {
    if context.command.is_empty() {
        return Section::default();
    }
    Section {
        head: vec![
            "### How to repeat it\n".to_owned(),
            fenced("sh", &words::shell(&context.command)),
        ],
        foot: vec![format!(
            "deltabench {}",
            escape(&context.deltabench_version)
        )],
        ..Section::default()
    }
}
