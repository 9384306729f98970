//! The tables of a study on the terminal.

mod parts;

use super::context::StudyContext;
use super::lead::{extremes, sentence};
use super::words as study_words;
use crate::grids;
use crate::lines::wrapped;
use crate::terminal::TerminalOptions;
use crate::{table, words};
use deltabench_compare::study::{GroupSpread, Study, StudyTable};
use deltabench_model::table::{Cell, Line, Table};
use parts::{Parts, PartsLine, aligned, columns};

/// The sentence, every table with its notes and spreads, what the signs mean, what must be known before
/// figures are compared, the runs.
pub(super) fn terminal(study: &Study, context: &StudyContext, options: TerminalOptions) -> String {
    let width = options.width.max(60);
    let mut lines = wrapped(&sentence(study), width, 0, 2);
    let extremes = extremes(study).into_iter();
    lines.extend(extremes.flat_map(|text| wrapped(&text, width, 0, 2)));
    for table in &study.tables {
        lines.push(String::new());
        lines.extend(wrapped(&table.title, width, 0, 2));
        lines.extend(table::terminal::lines(
            &ratios(study, table),
            width,
            options.colour,
        ));
        for beside in study_words::Beside::ALL {
            if beside.is_in(table) {
                lines.push(String::new());
                lines.extend(wrapped(&beside.title(table), width, 0, 2));
                let beside = beside_ratios(table, beside);
                lines.extend(table::terminal::lines(&beside, width, options.colour));
            }
        }
        lines.extend(spread_lines(study, table, width));
        lines.extend(notes(&table.notes, width));
    }
    lines.extend(grids::terminal(&study.grids, width, options.colour));
    lines.push(String::new());
    lines.extend(wrapped(&study_words::legend(study).join("; "), width, 0, 2));
    lines.extend(notes(&study.notes, width));
    lines.extend(runs(context, width));
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n"
}

fn notes(notes: &[String], width: usize) -> Vec<String> {
    let lines = notes.iter();
    lines
        .flat_map(|note| wrapped(&format!("note: {note}"), width, 0, 2))
        .collect()
}

fn runs(context: &StudyContext, width: usize) -> Vec<String> {
    let lines = context.runs.iter().flat_map(|run| {
        let mut texts = vec![format!("run {}", run.run)];
        texts.extend(Some(run.place()).filter(|place| !place.is_empty()));
        texts.extend([run.state.clone(), run.host.clone()]);
        texts.extend(run.began_unix_ms.map(words::date));
        texts.retain(|text| !text.is_empty());
        let withdrawn = run.withdrawn.as_ref();
        texts.extend(withdrawn.map(|reason| format!("withdrawn: {reason}")));
        wrapped(&texts.join(", "), width, 0, 2)
    });
    lines.collect()
}

/// The ratios, with the geometric mean below each group.
fn ratios(study: &Study, table: &StudyTable) -> Table {
    let spreads = study_words::spreads_of(study, table);
    let mut lines = Vec::new();
    for group in words::GROUPS {
        let rows = study_words::rows_of(table, group);
        if rows.is_empty() {
            continue;
        }
        lines.push(PartsLine::Heading(
            study_words::group_heading(table.worker, Some(group)).to_owned(),
        ));
        lines.extend(rows.into_iter().map(|row| {
            let cells = (0..table.columns.len()).map(|column| {
                let figure = study_words::figure(row, column);
                figure.map_or_else(Parts::default, |figure| Parts::of(table, column, figure))
            });
            PartsLine::Row(row.name.clone(), cells.collect())
        }));
        let spread = study_words::spread(&spreads, Some(group));
        lines.extend(spread.and_then(|spread| mean(table, spread)));
    }
    let all = study_words::spread(&spreads, None);
    if let Some(line) = all.and_then(|spread| mean(table, spread)) {
        lines.extend([
            PartsLine::Heading(study_words::group_heading(table.worker, None).to_owned()),
            line,
        ]);
    }
    aligned(table, lines)
}

/// The geometric mean of a group as a row without signs; nothing where no column has one.
fn mean(table: &StudyTable, spread: &GroupSpread) -> Option<PartsLine> {
    let cells: Vec<Option<Parts>> = (0..table.columns.len())
        .map(|column| {
            let geometric =
                study_words::column_spread(spread, column).and_then(|spread| spread.geometric);
            geometric.map(|mean| Parts::plain(&mean, column == table.base))
        })
        .collect();
    let known = cells.iter().any(Option::is_some);
    let cells = cells.into_iter().map(Option::unwrap_or_default);
    known.then(|| PartsLine::Row("geometric mean".to_owned(), cells.collect()))
}

fn beside_ratios(table: &StudyTable, beside: study_words::Beside) -> Table {
    let lines = table.rows.iter().map(|row| {
        let cells = (0..table.columns.len()).map(|column| {
            let text = study_words::figure(row, column)
                .and_then(|figure| beside.text(table, column, figure));
            Cell::from(text.unwrap_or_default())
        });
        Line::row(row.name.clone(), cells.collect())
    });
    Table {
        columns: columns(table),
        lines: lines.collect(),
        ..Table::default()
    }
}

/// The spreads as published: a line for each group and column.
fn spread_lines(study: &Study, table: &StudyTable, width: usize) -> Vec<String> {
    let spreads = study_words::spreads_of(study, table);
    let name = |column: usize| {
        table
            .columns
            .get(column)
            .map_or("", |one| one.name.as_str())
    };
    let others = || (0..table.columns.len()).filter(|column| *column != table.base);
    let widest = others()
        .map(|column| name(column).chars().count() + 2)
        .chain(["Range queries without aggregation".len()])
        .max()
        .unwrap_or(0)
        // The figures take 51 columns.
        .min(width.saturating_sub(51));
    let mut lines = Vec::new();
    for spread in spreads {
        let known = others()
            .filter_map(|column| Some((column, study_words::column_spread(spread, column)?)));
        let rows = known.map(|(column, of)| {
            let figures = study_words::spread_figures(of).map(|text| format!("{text:>8}"));
            let start = fitted(&format!("  {}", name(column)), widest);
            format!("{start}{:>5}  {}", of.count, figures.join(" "))
        });
        let rows: Vec<String> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        if lines.is_empty() {
            let heads = study_words::SPREAD_HEADS.map(|head| format!("{head:>8}"));
            lines.push(String::new());
            let start = fitted("spread of the ratios", widest);
            lines.push(format!("{start}{:>5}  {}", "rows", heads.join(" ")));
        }
        lines.push(study_words::spread_heading(table.worker, spread.of).to_owned());
        lines.extend(rows);
    }
    lines
}

/// Filled up with blanks, or cut in the middle, where names differ least.
fn fitted(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text:<width$}");
    }
    let half = width.saturating_sub(1) / 2;
    let start: String = text.chars().take(half).collect();
    let end = text.chars().skip(length - (width - half).saturating_sub(1));
    format!("{start}…{}", end.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_in_its_middle_to_the_width() {
        let cut = fitted("postgres:18.6 cx10c_c8r32 io_workers=4", 20);
        assert_eq!(cut.chars().count(), 20);
        assert!(
            cut.starts_with("postgres:") && cut.ends_with("workers=4"),
            "{cut}"
        );
        assert_eq!(fitted("short", 8), "short   ");
    }
}
