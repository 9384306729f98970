//! Order entry: five transactions in the way of TPC-C, and their mix, on tables of their own.
//!
//! They are scripts, and are measured as [`crate::workloads`] are; what is special are the tables, the
//! conditions that must hold on them, and the figures.

mod figures;
mod findings;
mod loading;
pub mod setup;

use crate::shown::{JudgedRun, Show, Shown};
use crate::workloads::{BlockState, Workloads, WorkloadsReader, needs_of, time_of};
use deltabench_compare::Reader;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{Cell, Group, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::work::orders::OrdersSetup;
use deltabench_run::benchmark::{Benchmark, Blocks, OwnTables};
use deltabench_run::load::DataSet;
use deltabench_run::occupancy::{Needs, Occupancy, PlannedTime};
use deltabench_run::planning::{Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_store::Store;
use deltabench_workload::Library;
use loading::OrdersData;
use std::sync::Arc;

/// Order entry.
pub struct Orders;

impl Orders {
    fn tables(&self, plan: &Plan) -> Result<DataSet, Problem> {
        DataSet::of(plan, &Library::of_plan(plan)?, self.own_tables(plan)?)
    }
}

fn setup_of(plan: &Plan) -> Result<&OrdersSetup, Problem> {
    let setup = plan.work.orders();
    setup.ok_or_else(|| Problem::new("the plan has no order entry"))
}

impl Show for Orders {
    fn block(&self, plan: &Plan) -> String {
        Workloads.block(plan)
    }

    /// `10 warehouses, statements`.
    fn data(&self, plan: &Plan) -> String {
        let told = |setup: &OrdersSetup| match setup.warehouses {
            1 => format!("1 warehouse, {}", setup.form.word()),
            several => format!("{several} warehouses, {}", setup.form.word()),
        };
        plan.work.orders().map(told).unwrap_or_default()
    }

    fn shown(&self, judged: &JudgedRun<'_>, _: &Store) -> Result<Shown, Problem> {
        Ok(Shown {
            figures: figures::figures(judged.plan, judged.results),
            ..Shown::default()
        })
    }
}

impl Benchmark for Orders {
    fn check(&self, request: &Request, library: &Library) -> Result<(), Problem> {
        Workloads.check(request, library)?;
        match request.work.orders() {
            Some(setup) => setup::check(setup, &request.clients),
            None => Ok(()),
        }
    }

    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        Workloads.check_servers(request, wishes)
    }

    /// Those of the scripts. A call of a function looks like a read, so the transaction says what it is.
    fn cells(&self, request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
        let form = request.work.orders().map(|setup| setup.form);
        let form = form.unwrap_or_default();
        let marked = |cell: Cell| {
            let writes = setup::writes(&cell.workload);
            let group = if writes { Group::Write } else { cell.group };
            Cell {
                writes,
                group,
                statements_per_operation: setup::whole_statements(&cell.workload, form),
                ..cell
            }
        };
        let cells = Workloads.cells(request, library)?;
        Ok(cells.into_iter().map(marked).collect())
    }

    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        needs_of(plan, self.tables(plan)?.bytes(plan)?)
    }

    fn time(&self, plan: &Plan, held: Occupancy, at_once: u64) -> Result<PlannedTime, Problem> {
        Ok(time_of(plan, &self.tables(plan)?, held, at_once))
    }

    fn own_tables(&self, plan: &Plan) -> Result<Option<Arc<dyn OwnTables>>, Problem> {
        let data = OrdersData::new(setup_of(plan)?.clone(), plan.seed);
        Ok(Some(Arc::new(data)))
    }

    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        findings::findings(plan)
    }

    fn reader(&self) -> &'static dyn Reader {
        &WorkloadsReader
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        Ok(Box::new(BlockState::create(session)?))
    }
}
