//! The stages of a pass, and what is kept of its tests.

use super::pass::{Load, LoadEnd, Pass};
use super::record::TestRecord;
use super::stages::{Stage, settling, stages, warmup};
use crate::passes::{PassAlone, PassEnd, Place, Turn, settled};
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::{seconds, to_f64};
use deltabench_model::work::procedure::ProcedureSetup;
use deltabench_observe::{own_affinity, pin_self, pin_tree, restore};
use deltabench_run::schedule::VisitSchedule;
use deltabench_run::session::Session;
use deltabench_run::visit::host_problem;
use deltabench_workload::executable::Executable;

/// The load and all tests, one after another.
pub(super) struct Tests<'p> {
    setup: &'p ProcedureSetup,
    /// What this process may run on when no pass is under way.
    cores: Vec<usize>,
}

impl<'p> Tests<'p> {
    pub(super) fn new(setup: &'p ProcedureSetup) -> Self {
        Self {
            setup,
            cores: own_affinity().unwrap_or_default(),
        }
    }
}

impl PassAlone for Tests<'_> {
    fn pass(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem> {
        let plan = session.plan;
        let pass = Pass {
            plan,
            block: turn.block,
            server: turn.server,
            position: turn.position,
            address: turn.address,
            data_dir: place.data_dir(turn)?,
            client_cores: self.pin(plan, turn)?,
            interrupted: session.interrupted,
        };
        let name = plan.server_name(turn.server);
        session.observer.doing(&format!("loading {name}"));
        let load_seconds = match pass.load(self.setup.primary_key) {
            Ok(None) => return Ok(PassEnd::Interrupted),
            Ok(Some(seconds)) => seconds,
            Err(problem) => return turn.lost_or(problem, CellId::default()),
        };
        let rows = to_f64(plan.data.rows) * f64::from(plan.data.tables);
        session.observer.note(&format!(
            "{name}: {rows:.0} rows in {load_seconds:.1} s, {:.0} a second",
            rows / load_seconds.max(1e-9)
        ));
        let mut reached = CellId::default();
        for stage in stages(plan, self.setup) {
            if let Stage::Test { cell, .. } = stage {
                reached = cell;
            }
            match self.stage(session, (turn, &pass, &mut *place), stage, load_seconds) {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(end),
                Err(problem) => return turn.lost_or(problem, reached),
            }
        }
        Ok(PassEnd::Complete)
    }

    fn after(&mut self) -> Result<(), Problem> {
        restore(&self.cores).map_err(host_problem)
    }
}

impl Tests<'_> {
    /// Pins client and server where the plan wants it, for the whole pass; cores of the client.
    fn pin(&self, plan: &Plan, turn: Turn<'_>) -> Result<Vec<usize>, Problem> {
        let Some(first) = plan.cells.first() else {
            return Ok(Vec::new());
        };
        let placed = VisitSchedule::of(plan, turn.block, CellId::default(), first, &self.cores);
        if !placed.server_cores.is_empty() {
            pin_tree(turn.address.own_pid()?, &placed.server_cores).map_err(host_problem)?;
        }
        if !placed.client_cores.is_empty() {
            pin_self(&placed.client_cores).map_err(host_problem)?;
        }
        Ok(placed.client_cores)
    }

    /// A part of a pass; what ended the pass, if something did.
    fn stage(
        &mut self,
        session: &mut Session<'_>,
        (turn, pass, place): (Turn<'_>, &Pass<'_>, &mut Place<'_>),
        stage: Stage,
        load_seconds: f64,
    ) -> Result<Option<PassEnd>, Problem> {
        let plan = session.plan;
        let compiled = |workload: &str| -> Result<Executable, Problem> {
            session.library.get(workload)?.compile(&plan.data)
        };
        match stage {
            Stage::Settle => {
                session.observer.doing("vacuum, checkpoint, sleep");
                let end = pass.settle(settling(plan, self.setup))?;
                settled(session, turn, CellId::default(), end)
            }
            Stage::WarmUp {
                workload,
                clients,
                seconds,
            } => {
                let executable = compiled(workload)?;
                session.observer.doing(&format!("warm-up: {workload}"));
                let load = Load {
                    executable: &executable,
                    clients,
                    jobs: plan.jobs.of(clients),
                    warmup_seconds: 0,
                    seconds,
                    cell: None,
                };
                Ok(match pass.send(load, load_seconds)? {
                    LoadEnd::Recorded(_) => None,
                    LoadEnd::Interrupted => Some(PassEnd::Interrupted),
                    LoadEnd::Lost(reason) => Some(turn.lost(CellId::default(), reason)),
                })
            }
            Stage::Test { cell, seconds } => {
                let Some(planned) = plan.cell(cell) else {
                    return Ok(None);
                };
                let executable = compiled(&planned.workload)?;
                session.doing(cell);
                let load = Load {
                    executable: &executable,
                    clients: planned.clients,
                    jobs: plan.threads(planned),
                    warmup_seconds: warmup(self.setup, seconds),
                    seconds,
                    cell: Some(cell),
                };
                Ok(match pass.send(load, load_seconds)? {
                    LoadEnd::Recorded(record) => {
                        let line = line(plan, &record, planned);
                        place.keep(session, turn, &record.record()?, &line)?
                    }
                    LoadEnd::Interrupted => Some(PassEnd::Interrupted),
                    LoadEnd::Lost(reason) => Some(turn.lost(cell, reason)),
                })
            }
        }
    }
}

/// What a test came to, for who watches.
fn line(plan: &Plan, record: &TestRecord, cell: &Cell) -> String {
    let published = cell.published.per_operation * to_f64(record.operations)
        / seconds(record.duration_ns.max(1));
    format!(
        "{}: {} at {} clients, {published:.0} {}",
        plan.server_name(record.server),
        cell.workload,
        cell.clients,
        cell.published.unit
    )
}
