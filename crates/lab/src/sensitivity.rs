//! What the ratios of a run depend on: its changed cells under other conditions.

use crate::judged::Judged;
use crate::store_problem;
use crate::withdrawal::leave_out;
use deltabench_compare::comparison::{CellComparison, Comparison, Difference, Metric, Ratio};
use deltabench_compare::sensitivity::{Depends, Sensitive, sensitive};
use deltabench_compare::words::microseconds;
use deltabench_model::figures::{Block, Figures, PageSection};
use deltabench_model::json::known;
use deltabench_model::plan::{Plan, Varied};
use deltabench_model::problem::Problem;
use deltabench_model::table::{Cell, Column, Line, Table};
use deltabench_report::words;
use deltabench_store::Store;
use serde_json::{Value, json};

const TITLE: &str = "What the ratios depend on";

/// The name of the run that measures the changed cells of another one under this condition.
pub fn sensitivity_name(run: &str, varied: Varied) -> String {
    format!("{run}-{}", varied.word())
}

/// Adds to a run's figures what its changed cells are under the conditions that were measured.
///
/// Errors: the store cannot be read.
pub(crate) fn add(
    run: &str,
    (plan, comparison): (&Plan, &Comparison),
    store: &Store,
    figures: &mut Figures,
) -> Result<(), Problem> {
    let others = others(run, store)?;
    let of_cell = |cell: &CellComparison| -> Vec<Sensitive> {
        let same = |other: &&CellComparison| {
            other.workload == cell.workload
                && other.clients == cell.clients
                && other.candidate == cell.candidate
        };
        let there = others.iter().filter_map(|(varied, other)| {
            let found = other.cells.iter().find(same)?;
            sensitive(cell, found, *varied)
        });
        there.collect()
    };
    let changed = comparison.cells.iter().map(|cell| (cell, of_cell(cell)));
    let changed: Vec<_> = changed.filter(|(_, found)| !found.is_empty()).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let lines = changed
        .iter()
        .flat_map(|(cell, found)| lines(cell, found, plan));
    let table = Table {
        corner: "condition".to_owned(),
        columns: [
            "throughput",
            "per operation",
            "against this run",
            "the ratio",
        ]
        .map(Column::of)
        .to_vec(),
        lines: lines.collect(),
        row_noun: "condition",
        label: TITLE.to_owned(),
        ..Table::default()
    };
    figures.terminal.push(Block::Text(TITLE.to_owned()));
    figures.terminal.push(Block::Table(table.clone()));
    figures.markdown.push(Block::Heading(TITLE.to_owned()));
    figures.markdown.push(Block::Table(table.clone()));
    figures.page.push(PageSection {
        id: "sensitivity",
        heading: TITLE,
        name: Some("conditions"),
        blocks: vec![Block::Table(table)],
    });
    let values = changed.iter().map(|(cell, found)| value(run, cell, found));
    figures.json.push(("sensitivity", values.collect()));
    Ok(())
}

/// What the runs under other conditions say, without what was withdrawn of them.
fn others(run: &str, store: &Store) -> Result<Vec<(Varied, Comparison)>, Problem> {
    let mut others = Vec::new();
    for varied in Varied::ALL {
        let name = sensitivity_name(run, varied);
        if store.reached(&name).map_err(store_problem)?.is_none() {
            continue;
        }
        let plan = store.plan(&name).map_err(store_problem)?;
        let withdrawn = store.invalidations(&name).map_err(store_problem)?;
        let mut comparison = Judged::of(&name, &plan, store)?.into_comparison();
        leave_out(&mut comparison, &withdrawn);
        if comparison.host_ok {
            others.push((varied, comparison));
        }
    }
    Ok(others)
}

fn lines(cell: &CellComparison, found: &[Sensitive], plan: &Plan) -> Vec<Line> {
    let workers = words::workers(plan, cell.clients);
    let on = match plan.candidates().len() {
        1 => String::new(),
        _ => format!(" on {}", cell.candidate_name),
    };
    let mut lines = vec![Line::Heading(format!("{} at {workers}{on}", cell.workload))];
    if let Some(own) = cell.metric(Metric::Throughput) {
        let texts = figures_of(&own.ratio, own.difference_us);
        lines.push(line("this run", texts, (String::new(), "")));
    }
    lines.extend(found.iter().map(|one| {
        let depends = match one.depends {
            Depends::Yes => "depends on it",
            Depends::AsAssumed => "depends (assumed)",
            Depends::NotShown => "does not show it",
            Depends::Unknown => "cannot tell",
        };
        let against = words::ratio_interval(&one.against);
        let texts = figures_of(&one.throughput, one.difference_us);
        line(one.varied.words(), texts, (against, depends))
    }));
    lines
}

fn figures_of(ratio: &Ratio, difference: Option<Difference>) -> [String; 2] {
    let difference = difference.map(|difference| microseconds(&difference));
    [words::ratio_interval(ratio), difference.unwrap_or_default()]
}

fn line(name: &str, [ratio, difference]: [String; 2], last: (String, &str)) -> Line {
    let texts = [ratio, difference, last.0, last.1.to_owned()];
    Line::row(name.to_owned(), texts.map(Cell::from).to_vec())
}

fn value(run: &str, cell: &CellComparison, found: &[Sensitive]) -> Value {
    let interval = |ends: Option<(f64, f64)>| ends.map(|(low, high)| json!([low, high]));
    let conditions = found.iter().map(|one| {
        let depends = match one.depends {
            Depends::Yes => Some(true),
            Depends::NotShown => Some(false),
            Depends::AsAssumed | Depends::Unknown => None,
        };
        let as_assumed = (one.depends == Depends::AsAssumed).then_some(true);
        known(json!({
            "varied": one.varied.word(),
            "run": sensitivity_name(run, one.varied),
            "ratio": words::finite(one.throughput.estimate),
            "ci95": interval(one.throughput.ci95),
            "difference_us": one.difference_us.map(|by| known(json!({
                "estimate": words::finite(by.estimate),
                "ci95": interval(by.ci95),
            }))),
            "against": words::finite(one.against.estimate),
            "against_ci95": interval(one.against.ci95),
            "depends": depends,
            "depends_as_assumed": as_assumed,
        }))
    });
    known(json!({
        "cell": cell.cell,
        "candidate": cell.candidate_name,
        "conditions": conditions.collect::<Value>(),
    }))
}
