//! What is measured of the Insert Benchmark: its steps in order, and what is seen of the server meanwhile.
//!
//! A block is one pass of all steps on each server, one server after another
//! ([`pass_order`](deltabench_run::schedule::pass_order)). Steps depend on each other, so a pass that was cut
//! short is begun again.

use super::blocks::Steps;
use super::reading::InsertReader;
use super::stretched::stretch;
use super::turns::StepsInTurns;
use super::{outlook, setup};
use crate::passes::{self, PassBlocks};
use deltabench_compare::Reader;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::Work;
use deltabench_model::work::insert::InsertSetup;
use deltabench_run::benchmark::{Benchmark, Blocks};
use deltabench_run::occupancy::{
    AtOnce, DISK_BESIDE, MEMORY_BESIDE, Needs, Occupancy, PlannedTime,
};
use deltabench_run::occupancy::{fitting_mb, wal_max};
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_workload::Library;

/// Seconds of set-up: empty clusters, and a copy of each.
const SET_UP_SECONDS: f64 = 10.0;

/// What to do where all servers do not fit at once.
const FEWER: &str = "leave out --turns: then one server runs at a time; or use fewer rows";

/// The Insert Benchmark.
pub struct Insert;

/// The setup of a plan or request of this kind.
fn setup_of(work: &Work) -> Result<&InsertSetup, Problem> {
    work.insert()
        .ok_or_else(|| Problem::new("the plan is not one of the Insert Benchmark"))
}

impl Benchmark for Insert {
    fn check(&self, request: &Request, _: &Library) -> Result<(), Problem> {
        setup::check_request(setup_of(&request.work)?, request)?;
        planning::check_shape(request)?;
        planning::check_load(request)
    }

    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        crate::targets::check_wishes(wishes, false)?;
        let setup = setup_of(&request.work)?;
        wishes.iter().try_for_each(|wish| {
            planning::check_server(request, self, wish)?;
            setup::check_server(setup, &wish.installation)
        })
    }

    fn cells(&self, request: &Request, _: &Library) -> Result<Vec<Cell>, Problem> {
        Ok(setup::cells(setup_of(&request.work)?))
    }

    fn connections(&self, request: &Request) -> u32 {
        let setup = request.work.insert();
        setup.map_or(0, setup::connections)
    }

    /// In passes a server has tables and their WAL only while it is its turn; in turns all have them. What it
    /// begins with lies beside it once more.
    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        let setup = setup_of(&plan.work)?;
        let data = setup::bytes(setup);
        let needs = Needs::holding(plan, data)?;
        // Buffers are not touched before there is something to hold in them.
        let memory_bytes = fitting_mb(data).min(needs.largest_buffers_mb) << 20;
        let written = data.saturating_add(setup::wal_bytes(setup).min(wal_max(plan)));
        let (disk_bytes, disk_once_bytes, at_once) = match setup.turns {
            0 => (DISK_BESIDE, written, AtOnce::One),
            _ => (DISK_BESIDE.saturating_add(written), 0, AtOnce::All(FEWER)),
        };
        Ok(Needs {
            memory_bytes: plan
                .limits
                .memory_bytes
                .unwrap_or(memory_bytes + MEMORY_BESIDE),
            disk_bytes,
            disk_once_bytes,
            at_once,
            ..needs
        })
    }

    fn fit_to_servers(&self, plan: &mut Plan, most: u64) {
        stretch(plan, most);
    }

    fn time(&self, plan: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        let servers = to_f64(count(plan.servers.len()));
        let pass = outlook::pass_seconds(setup_of(&plan.work)?);
        Ok(PlannedTime {
            set_up: SET_UP_SECONDS,
            measuring: f64::from(plan.timing.blocks) * servers * pass,
        })
    }

    fn open_cells(&self, plan: &Plan, block: u32, _: &[Slice]) -> Vec<CellId> {
        passes::open_cells(plan, block)
    }

    fn reader(&self) -> &'static dyn Reader {
        &InsertReader
    }

    fn done(&self, _: usize, steps: usize) -> String {
        format!("{steps} steps are done; deltabench measures the steps of interrupted passes again")
    }

    fn check_confirmable(&self) -> Result<(), Problem> {
        Err(
            Problem::new("`confirm` does not apply to the Insert Benchmark")
                .detail("each of its passes already has a fresh load")
                .hint("measure it again with more passes, or another seed"),
        )
    }

    fn check_extendable(&self, plan: &Plan) -> Result<(), Problem> {
        match setup_of(&plan.work)?.turns {
            0 => Ok(()),
            _ => Err(Problem::new("servers in turns are measured together")
                .detail(
                    "how long each is frozen, and some settings, follow from how many there are",
                )
                .hint("add the server to its file, and run it again: deltabench run FILE")),
        }
    }

    fn begun_again(&self) -> &'static str {
        "passes that lost their server start again"
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        let setup = setup_of(&session.plan.work)?;
        if setup.turns > 0 {
            let kind = StepsInTurns::new(setup);
            return Ok(Box::new(PassBlocks::create(kind, session)?));
        }
        Ok(Box::new(PassBlocks::create(Steps { setup }, session)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;

    #[test]
    fn only_servers_that_are_measured_alone_can_be_added_later() {
        let mut setup = setup::tests::setup();
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.work = Work::Insert(setup.clone());
        assert!(Insert.check_extendable(&plan).is_ok());
        setup.turns = 20;
        plan.work = Work::Insert(setup);
        assert!(Insert.check_extendable(&plan).is_err());
    }

    #[test]
    fn tables_and_wal_of_a_pass_are_there_once_and_not_on_each_server() {
        let setup = setup::tests::setup();
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.work = Work::Insert(setup.clone());
        let needs = Insert.needs(&plan).unwrap();
        assert_eq!(needs.disk_bytes, DISK_BESIDE);
        let written = setup::bytes(&setup) + setup::wal_bytes(&setup);
        assert_eq!(needs.disk_once_bytes, written);
    }
}
