//! `deltabench count --insert`: the statements of the Insert Benchmark, step by step.

use super::named_step;
use crate::arguments::count::Count;
use crate::kinds::chain::needed;
use deltabench_kinds::insert::setup::check;
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing};
use deltabench_run::planning::{Request, Selection};

/// The rate in the names of the steps that query; nothing is done at it.
const RATE: u32 = 100;

/// Rows of the steps that write, as a setup has to have them: windows decide how many are written.
const WRITE_ROWS: u64 = 2500;

/// The request with the steps that are counted; `request` has what all counts have in common.
///
/// Errors: a step that is not there, a number of rows that is none of the load.
pub fn request(arguments: &Count, request: Request) -> Result<Request, Problem> {
    let setup = InsertSetup {
        clients: 1,
        shared_table: false,
        partitions: 0,
        rows: arguments.rows,
        write_rows: WRITE_ROWS,
        query_seconds: 1,
        steps: steps(&arguments.only)?,
        pacing: Pacing::Spread,
        settle_seconds: Some(0),
        long_transaction_seconds: None,
        turns: 0,
    };
    check(&setup)?;
    if arguments.tables != 1 {
        return Err(
            Problem::new("the Insert Benchmark has a table for each client")
                .hint("leave out --tables: one client is counted"),
        );
    }
    Ok(Request {
        selection: Selection::Named(Vec::new()),
        work: Work::Insert(setup),
        ..request
    })
}

/// The steps that are wanted, with all that those start from.
fn steps(only: &[String]) -> Result<Vec<InsertStep>, Problem> {
    let wanted: Vec<InsertStep> = only.iter().map(named_step).collect::<Result<_, _>>()?;
    let mut all = InsertStep::published(&[RATE]);
    // Another rate is another name of the same statements.
    for step in wanted.iter().filter(|step| step.queries()) {
        if !all.contains(step) {
            all.push(*step);
        }
    }
    let writes = |step: &InsertStep| !step.queries();
    Ok(needed(&all, |step| wanted.contains(step), writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::work::insert::LOAD_BATCH;

    #[test]
    fn a_step_is_counted_with_all_that_it_starts_from() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            let steps = steps(&only).unwrap().into_iter().map(InsertStep::name);
            steps.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&[]), "l.i0 l.x l.i1 l.i2 qr100 qp100");
        assert_eq!(names(&["l.x"]), "l.i0 l.x");
        assert_eq!(names(&["qp100"]), "l.i0 l.x l.i1 l.i2 qp100");
        assert_eq!(names(&["qr500"]), "l.i0 l.x l.i1 l.i2 qr500");
        assert!(steps(&["l.i9".to_owned()]).is_err());
        assert_eq!(crate::defaults::COUNTED_ROWS % u64::from(LOAD_BATCH), 0);
    }
}
