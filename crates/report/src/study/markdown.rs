//! The tables of a study for a pull request or a blog post.

use super::context::StudyContext;
use super::lead::{extremes, sentence};
use super::words as study_words;
use crate::grids;
use crate::markdown::section::{Section, fit};
use crate::markdown::table::row;
use crate::markdown::{LIMIT, escape, fenced};
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Figure, GroupSpread, Study, StudyRow, StudyTable};

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

/// The head of a table: its title, the columns, how they are aligned.
fn head(title: &str, table: &StudyTable, level: &str) -> Vec<String> {
    let columns = table.columns.iter().map(study_words::column_name);
    let heads = std::iter::once("workload".to_owned()).chain(columns.map(|name| escape(&name)));
    vec![
        format!("{level} {}\n", escape(title)),
        row(heads.collect()),
        format!("|---|{}", "--:|".repeat(table.columns.len())),
    ]
}

fn ratios(study: &Study, table: &StudyTable) -> Section {
    let spreads = study_words::spreads_of(study, table);
    let mut rows = Vec::new();
    for group in words::GROUPS {
        let of = study_words::rows_of(table, group);
        if of.is_empty() {
            continue;
        }
        rows.push(heading(
            table,
            study_words::group_heading(table.worker, Some(group)),
        ));
        rows.extend(of.into_iter().map(|row| figures(table, row)));
        let spread = study_words::spread(&spreads, Some(group));
        rows.extend(spread.and_then(|spread| mean(table, spread)));
    }
    let all = study_words::spread(&spreads, None);
    rows.extend(all.and_then(|spread| mean(table, spread)));
    Section {
        head: head(&table.title, table, "###"),
        rows,
        foot: vec![String::new()],
        what: "row",
    }
}

/// A group's heading as a row without figures.
fn heading(table: &StudyTable, text: &str) -> String {
    let mut fields = vec![format!("**{text}**")];
    fields.extend(table.columns.iter().map(|_| String::new()));
    row(fields)
}

fn figures(table: &StudyTable, of: &StudyRow) -> String {
    let mut fields = vec![escape(&of.name)];
    fields.extend((0..table.columns.len()).map(|column| {
        let figure = study_words::figure(of, column);
        figure.map_or_else(String::new, |figure| cell(table, column, figure))
    }));
    row(fields)
}

/// `**0.930↓ ±0.4 ▼**`; what is no claim stands in parentheses.
fn cell(table: &StudyTable, column: usize, figure: &Figure) -> String {
    let ratio = study_words::ratio(figure.ratio.estimate);
    if column == table.base {
        return ratio;
    }
    let band = study_words::band(table, column, figure).map_or("", study_words::Band::sign);
    let mut text = format!("{ratio}{band} {}", study_words::plus_minus(&figure.ratio));
    if let Some(efficiency) = figure.efficiency {
        text.push_str(&format!(", {}", study_words::efficiency(efficiency)));
    }
    let sign = figure.verdict.map_or("", words::sign);
    match figure.verdict {
        Some(Verdict::Regression | Verdict::Improvement) => format!("**{text} {sign}**"),
        _ if !study_words::is_claim(figure) => format!("({text}){sign}"),
        Some(_) => format!("{text} {sign}"),
        None => text,
    }
}

fn mean(table: &StudyTable, spread: &GroupSpread) -> Option<String> {
    let of = study_words::group_heading(table.worker, spread.group);
    let mut fields = vec![format!("*geometric mean ({of})*")];
    let mut known = false;
    for column in 0..table.columns.len() {
        let geometric =
            study_words::column_spread(spread, column).and_then(|spread| spread.geometric);
        known |= geometric.is_some();
        fields.push(geometric.map_or_else(String::new, |mean| {
            let ratio = study_words::ratio(mean.estimate);
            if column == table.base {
                ratio
            } else {
                format!("{ratio} {}", study_words::plus_minus(&mean))
            }
        }));
    }
    known.then(|| row(fields))
}

fn beside_ratios(table: &StudyTable, beside: study_words::Beside) -> Section {
    let rows = table.rows.iter().map(|of| {
        let mut fields = vec![escape(&of.name)];
        fields.extend((0..table.columns.len()).map(|column| {
            let figure = study_words::figure(of, column);
            figure
                .and_then(|figure| beside.text(figure))
                .unwrap_or_default()
        }));
        row(fields)
    });
    Section {
        head: head(&beside.title(table), table, "####"),
        rows: rows.collect(),
        foot: vec![String::new()],
        what: "row",
    }
}

/// The spreads, folded; nothing where the table has none.
fn spreads(study: &Study, table: &StudyTable) -> Section {
    let spreads = study_words::spreads_of(study, table);
    let rows: Vec<String> = spreads
        .iter()
        .flat_map(|spread| {
            let columns = table.columns.iter().enumerate();
            columns
                .filter(|(column, _)| *column != table.base)
                .filter_map(|(column, head)| {
                    let of = study_words::column_spread(spread, column)?;
                    let mut fields = vec![
                        study_words::group_heading(table.worker, spread.group).to_owned(),
                        escape(&head.name),
                        of.count.to_string(),
                    ];
                    fields.extend(study_words::spread_figures(of));
                    Some(row(fields))
                })
        })
        .collect();
    if rows.is_empty() {
        return Section::default();
    }
    let mut heads: Vec<String> = ["group", "column", "rows"].map(str::to_owned).to_vec();
    heads.extend(study_words::SPREAD_HEADS.map(str::to_owned));
    Section {
        head: vec![
            "<details><summary>Spread of the ratios by group</summary>\n".to_owned(),
            row(heads),
            format!("|---|---|{}", "--:|".repeat(6)),
        ],
        rows,
        foot: vec!["\n</details>\n".to_owned()],
        what: "row",
    }
}

fn runs(context: &StudyContext) -> Section {
    let lines = context.runs.iter().map(|run| {
        let mut texts = vec![
            run.run.clone(),
            run.place(),
            run.state.clone(),
            run.host.clone(),
        ];
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
            "### How to make it again\n".to_owned(),
            fenced("sh", &words::shell(&context.command)),
        ],
        foot: vec![format!(
            "deltabench {}",
            escape(&context.deltabench_version)
        )],
        ..Section::default()
    }
}
