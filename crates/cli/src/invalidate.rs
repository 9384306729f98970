//! `deltabench invalidate`: withdraws a run, or cells of it. Nothing is deleted.

use crate::arguments::results::InvalidateArguments;
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::output::rewrite;
use crate::store::{open, store_problem};
use deltabench_lab::cell_label;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::{Problem, nearest};

/// Stores the withdrawal, once for each cell that is meant.
pub fn invalidate(arguments: &InvalidateArguments, config: &Config) -> Result<u8, Failure> {
    let reason = arguments.reason.split_whitespace().collect::<Vec<_>>();
    if reason.is_empty() {
        return Err(Failure::Refused(
            Problem::new("a withdrawal needs a reason")
                .hint("say why with --reason TEXT: every report of the run will show it"),
        ));
    }
    let reason = reason.join(" ");
    let mut store = open(config)?;
    let run = store.find(&arguments.run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let known = store.invalidations(&run).map_err(store_problem)?;
    for cell in meant(&plan, &run, &arguments.cells).map_err(Failure::Refused)? {
        let what = match cell.and_then(|id| plan_cell(&plan, id)) {
            Some(cell) => format!("{} of {run}", cell_label(cell)),
            None => run.clone(),
        };
        if known
            .iter()
            .any(|earlier| earlier.cell == cell && earlier.reason == reason)
        {
            say(&format!("{what} is withdrawn for this reason already"));
            continue;
        }
        let withdrawal = Invalidation {
            cell,
            reason: reason.clone(),
            at_unix_ms: now().1,
        };
        store
            .invalidate(&run, &withdrawal)
            .map_err(|error| Failure::Failed(error.into()))?;
        say(&format!("withdrew {what}: {reason}"));
    }
    rewrite(&run, &plan, &store, config)?;
    Ok(0)
}

/// What `list` says of a run's withdrawals; empty without any.
pub fn mark(invalidations: &[Invalidation]) -> String {
    let whole = invalidations.iter().find(|one| one.cell.is_none());
    if let Some(whole) = whole {
        return format!("  withdrawn: {}", whole.reason);
    }
    let mut cells: Vec<CellId> = invalidations.iter().filter_map(|one| one.cell).collect();
    cells.sort_unstable();
    cells.dedup();
    match cells.len() {
        0 => String::new(),
        1 => "  1 cell withdrawn".to_owned(),
        several => format!("  {several} cells withdrawn"),
    }
}

/// The cells that are meant, in the plan's order; `None` is the whole run.
pub fn meant(plan: &Plan, run: &str, wanted: &[String]) -> Result<Vec<Option<CellId>>, Problem> {
    if wanted.is_empty() {
        return Ok(vec![None]);
    }
    let mut found: Vec<CellId> = Vec::new();
    for name in wanted {
        let cells = CellId::each().zip(&plan.cells);
        let of_name: Vec<CellId> = cells
            .filter(|(_, cell)| cell.workload == *name || cell_label(cell) == *name)
            .map(|(id, _)| id)
            .collect();
        if of_name.is_empty() {
            return Err(unknown_cell(plan, run, name));
        }
        found.extend(of_name);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found.into_iter().map(Some).collect())
}

fn unknown_cell(plan: &Plan, run: &str, wanted: &str) -> Problem {
    let labels: Vec<String> = plan.cells.iter().map(cell_label).collect();
    let names = plan.cells.iter().map(|cell| cell.workload.as_str());
    // Without `@` a name is meant, with it a cell.
    let near = if wanted.contains('@') {
        nearest(wanted, labels.iter().map(String::as_str))
    } else {
        nearest(wanted, names)
    };
    let problem = Problem::new(format!("run {run} has no cell `{wanted}`"))
        .detail(format!("its cells: {}", labels.join(", ")));
    match near {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint("a cell is written NAME or NAME@CLIENTS"),
    }
}

fn plan_cell(plan: &Plan, id: CellId) -> Option<&Cell> {
    plan.cell(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::small_run::plan;

    fn withdrawn(cell: Option<CellId>) -> Invalidation {
        Invalidation {
            cell,
            reason: "a backup ran".to_owned(),
            at_unix_ms: 5,
        }
    }

    #[test]
    fn a_name_means_all_its_numbers_of_clients_and_a_label_one() {
        let plan = plan();
        let cells = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            meant(&plan, "r", &names)
        };
        assert_eq!(cells(&[]), Ok(vec![None]));
        assert_eq!(
            cells(&["point-query"]),
            Ok(vec![Some(CellId(0)), Some(CellId(1))])
        );
        let two = cells(&["update-index@1", "point-query@4", "update-index"]);
        assert_eq!(two, Ok(vec![Some(CellId(1)), Some(CellId(2))]));
    }

    #[test]
    fn an_unknown_cell_is_refused_with_the_nearest() {
        for (wanted, near) in [
            ("point-qurey", "`point-query`"),
            ("point-query@40", "`point-query@4`"),
            ("tpcc", "NAME@CLIENTS"),
        ] {
            let problem = meant(&plan(), "r", &[wanted.to_owned()]).unwrap_err();
            assert!(problem.error.contains(wanted), "{problem}");
            assert!(problem.hint.unwrap().contains(near), "{wanted}");
        }
    }

    #[test]
    fn a_list_marks_runs_and_counts_cells_once() {
        assert_eq!(mark(&[]), "");
        assert_eq!(
            mark(&[withdrawn(Some(CellId(1))), withdrawn(Some(CellId(1)))]),
            "  1 cell withdrawn"
        );
        assert_eq!(
            mark(&[withdrawn(Some(CellId(1))), withdrawn(Some(CellId(0)))]),
            "  2 cells withdrawn"
        );
        let whole = [withdrawn(Some(CellId(1))), withdrawn(None)];
        assert_eq!(mark(&whole), "  withdrawn: a backup ran");
    }
}
