//! Workloads: statements that are sent over connections, in short slices that alternate between the servers.
//! The scripts of [`crate::pgbench`] are measured so, too.
//!
//! A block restarts all servers. Each open cell is visited once, in random order; one that writes gets a
//! database made anew.

mod background;
mod blocks;
pub(crate) mod cells;
mod reading;
mod sampling;
mod takes;

use crate::pgbench::{self, PgbenchData};
use crate::shown::{JudgedRun, Show, Shown};
pub(crate) use blocks::BlockState;
use deltabench_compare::Reader;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{Cell, Plan};
use deltabench_model::problem::Problem;
use deltabench_run::benchmark::{Benchmark, Blocks, OwnTables};
use deltabench_run::load::DataSet;
use deltabench_run::occupancy::{Needs, Occupancy, PlannedTime};
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_store::Store;
use deltabench_workload::{Definition, Library};
pub use reading::WorkloadsReader;
use std::sync::Arc;
pub(crate) use takes::{needs_of, time_of};

/// Workloads of the library, of the user's, and mixes of pgbench's scripts.
pub struct Workloads;

impl Workloads {
    /// The tables of a plan's servers.
    fn tables(&self, plan: &Plan) -> Result<DataSet, Problem> {
        DataSet::of(plan, &Library::of_plan(plan)?, self.own_tables(plan)?)
    }
}

/// Refuses what cannot be had where each operation has a connection of its own.
///
/// Errors: a rate, or samples of processes that have ended by then.
fn check_reconnecting(request: &Request, cells: &[Cell], library: &Library) -> Result<(), Problem> {
    let found = cells.iter().find(|cell| {
        let definition = library.get(&cell.workload);
        definition.is_ok_and(Definition::reconnects)
    });
    let Some(cell) = found else {
        return Ok(());
    };
    let name = &cell.workload;
    if request.rate.is_some() {
        return Err(Problem::new(format!("{name} cannot be measured at a rate"))
            .detail("it opens a connection for each operation, and a client waits for each of them")
            .hint("leave out --rate; --clients says how many connections are opened at a time"));
    }
    if request.observing.profile.is_some() {
        return Err(
            Problem::new(format!("the time of {name} cannot be sampled"))
                .detail("the server's process of each of its connections ends after one operation")
                .hint("leave out --sample, or the workload"),
        );
    }
    Ok(())
}

impl Show for Workloads {
    fn block(&self, plan: &Plan) -> String {
        let timing = &plan.timing;
        let writes = timing.write_seconds.map_or_else(String::new, |seconds| {
            format!(" ({seconds} s of cells that write)")
        });
        let warm = match timing.warmup_chosen {
            true => format!(", after {} s of warm-up", timing.warmup_seconds),
            false => String::new(),
        };
        format!(
            "at most {} blocks, {} s on each server in a visit{writes}{warm}",
            timing.blocks, timing.visit_seconds
        )
    }

    /// `2 x 1000000`, `scale 10`, or both.
    fn data(&self, plan: &Plan) -> String {
        let rows = format!("{} x {}", plan.data.tables, plan.data.rows);
        let Some(setup) = plan.work.pgbench() else {
            return rows;
        };
        let scale = format!("scale {}", setup.tables.scale);
        if plan.cells.iter().all(|cell| setup.has(&cell.workload)) {
            return scale;
        }
        format!("{rows}, {scale}")
    }

    fn shown(&self, judged: &JudgedRun<'_>, _: &Store) -> Result<Shown, Problem> {
        let scripts = judged.plan.work.has_scripts();
        let figures = scripts.then(|| pgbench::shown::figures(judged.plan, judged.results));
        Ok(Shown {
            figures: figures.unwrap_or_default(),
            ..Shown::default()
        })
    }
}

impl Benchmark for Workloads {
    fn check(&self, request: &Request, library: &Library) -> Result<(), Problem> {
        planning::check_shape(request)?;
        planning::check_visits(request)?;
        check_reconnecting(request, &self.cells(request, library)?, library)?;
        if let Some(setup) = request.work.pgbench() {
            pgbench::check(setup, request.order)?;
        }
        sampling::check(request)?;
        planning::check_load(request)
    }

    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        crate::targets::check_wishes(wishes, false)?;
        wishes.iter().try_for_each(|wish| {
            planning::check_server(request, self, wish)?;
            sampling::check_server(request, wish)?;
            match request.work.pgbench() {
                Some(setup) => pgbench::check_server(setup, &wish.installation),
                None => Ok(()),
            }
        })
    }

    fn cells(&self, request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
        cells::cells(request, library)
    }

    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        needs_of(plan, self.tables(plan)?.bytes(plan)?)
    }

    fn time(&self, plan: &Plan, held: Occupancy, at_once: u64) -> Result<PlannedTime, Problem> {
        Ok(time_of(plan, &self.tables(plan)?, held, at_once))
    }

    fn own_tables(&self, plan: &Plan) -> Result<Option<Arc<dyn OwnTables>>, Problem> {
        let found = PgbenchData::of(plan)?;
        Ok(found.map(|data| -> Arc<dyn OwnTables> { Arc::new(data) }))
    }

    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        pgbench::findings(plan)
    }

    fn reader(&self) -> &'static dyn Reader {
        &WorkloadsReader
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        Ok(Box::new(BlockState::create(session)?))
    }
}
