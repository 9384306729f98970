//! The blocks of RocksDB: a database for each target, the chain on all of them, and what is kept of it.

use super::chain::{StepVisit, step_order};
use super::check::in_memory;
use super::conditions::{FEW_CORES, few_cores, settings_of, unfair, warnings};
use super::facts::{EngineSaid, PreparedStep};
use super::workers::{OWN_PROGRAM, Stop, WorkerContext, Workers};
use deltabench_engine::StepOrder;
use deltabench_model::fact::{Fact, HostFacts, Settings};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Setting;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::work::rocksdb::RocksdbSetup;
use deltabench_observe::{Series, host_findings, read_host};
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::estimate::occupancy;
use deltabench_run::facts::Conditions;
use deltabench_run::limits::{FleetLimits, Possible};
use deltabench_run::occupancy::Occupancy;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::session::{
    BlockOrder, LOSSES_MAX, Loss, RunProgress, Session, series, store_problem,
};
use deltabench_run::visit::{Cause, VisitEnd};
use deltabench_server::Workspace;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::path::Path;

/// How the end of a process reads that the kernel, or a user, has killed.
const KILLED: &str = "signal 9 ";

/// What the blocks need beside the session itself.
pub(super) struct BlockState<'p> {
    setup: &'p RocksdbSetup,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    /// Whether this session has stored what its engines say of themselves.
    recorded: bool,
    /// Whether a session before has stored what follows from the host and its limits.
    host_recorded: bool,
    /// Whether one has stored what follows from what engines say of themselves.
    engines_recorded: bool,
    /// What is stored already of steps that are not measured: target, block and step.
    prepared: HashSet<(ServerId, u32, String)>,
    /// Processes of each target that the kernel had killed for its memory limit when it was lost last.
    killed: Vec<u64>,
    // Order matters on drop: groups are removed before the directory goes.
    limits: FleetLimits,
    workspace: Workspace,
}

/// One attempt at the chain of a block.
#[derive(Clone, Copy)]
struct ChainAttempt<'a> {
    block: u32,
    /// Cells without an answer.
    open: &'a [CellId],
    /// The targets, in the order in which they were started.
    order: &'a [usize],
}

impl<'p> BlockState<'p> {
    /// Where databases go, with nothing in it.
    pub(super) fn create(
        setup: &'p RocksdbSetup,
        session: &mut Session<'p>,
    ) -> Result<Self, Problem> {
        let (plan, host) = (session.plan, session.host);
        occupancy(plan, session.benchmark, host)?;
        let possible = Possible::find(plan, host)?;
        let workspace = Workspace::create(&host.workspaces, session.run, &host.user)?;
        let limits = possible.create(plan, session.run, 0, &workspace)?;
        Ok(Self {
            setup,
            series: series(plan, workspace.directory()),
            recorded: false,
            host_recorded: is_known::<HostFacts>(session)?,
            engines_recorded: is_known::<EngineSaid>(session)?,
            prepared: prepared(session)?,
            killed: vec![0; plan.servers.len()],
            limits,
            workspace,
        })
    }
}

impl Blocks for BlockState<'_> {
    /// Stores what is known before any engine has been started.
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        let host = read_host();
        if !self.host_recorded {
            let limits = self.limits.findings().iter().cloned();
            // Work comes from the process that does it: nobody sends it from a core of his own.
            let of_host = host_findings(&host)
                .into_iter()
                .filter(|finding| finding.kind != FEW_CORES);
            let crowded = few_cores(session.plan, self.setup, &host);
            let small = in_memory(session.plan, host.memory_available_bytes)
                .map(|text| Finding::new(FindingKind::own("fits-in-memory"), Severity::Note, text));
            let own = crowded.into_iter().chain(small);
            let findings: Vec<Finding> = of_host.chain(own).chain(limits).collect();
            session.keep_findings(&findings)?;
        }
        // The facts last: with them it is known that the findings are there.
        let conditions = Conditions {
            buffers: None,
            residence: Occupancy::Together,
            limits: self.limits.applied(),
            cache: session.plan.cache,
        };
        session.fact(None, &conditions)?;
        session.fact(None, &host)?;
        session.record_sources()
    }

    /// Takes all targets through the chain of a block, as far as a cell is open and not done; what is done
    /// already is done again, because the rest starts from what it leaves.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, open }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        if self.series.is_some() {
            session.mark_block(format!("block {}", block + 1))?;
        }
        let order = BlockSchedule::of(session.plan, block).start_order;
        let attempt = ChainAttempt {
            block,
            open,
            order: &order,
        };
        let context = self.context(session);
        let mut workers = match Workers::start(&context, &order) {
            Ok(workers) => workers,
            Err(Stop::Interrupted) => return Ok(BlockEnd::Interrupted),
            Err(Stop::Problem(problem)) => return Err(problem),
            Err(Stop::Lost(server, cause)) => {
                give_up(session, (block, open), progress)?;
                let place = (block, "its start");
                return self
                    .engine_lost(session, place, (server, &cause), progress)
                    .map(|()| BlockEnd::GoneThrough);
            }
        };
        if !self.recorded {
            self.record_engines(session, &workers)?;
        }
        if let Some(series) = &mut self.series {
            series.set_servers(&workers.postmasters());
        }
        let end = self.links(session, attempt, &mut workers, progress);
        if let Some(series) = &mut self.series {
            series.set_servers(&[]);
        }
        match end {
            Ok(BlockEnd::GoneThrough) => {
                for words in workers.stop()? {
                    session.observer.note(&words);
                    let finding =
                        Finding::new(FindingKind::own("engine-not-closed"), Severity::Note, words);
                    session.keep_findings(&[finding])?;
                }
                Ok(BlockEnd::GoneThrough)
            }
            // The databases are of no use to anybody.
            ended => {
                workers.abandon()?;
                ended
            }
        }
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        let Self {
            limits, workspace, ..
        } = *self;
        let removed = limits.remove();
        let cleared = workspace.remove();
        removed.and(cleared)
    }
}

impl BlockState<'_> {
    /// What workers of a session are made of.
    pub(super) fn context<'c, 's: 'c>(&'c self, session: &Session<'s>) -> WorkerContext<'c, 's> {
        WorkerContext {
            plan: session.plan,
            setup: self.setup,
            host: session.host,
            workspace: &self.workspace,
            limits: &self.limits,
            worker: Path::new(OWN_PROGRAM),
            counter: None,
            interrupted: session.interrupted,
        }
    }

    /// Opens a database on each target, stores what the engines say of themselves, and closes them again;
    /// whether all can look many keys up in one go. Nothing if the user wants to stop.
    pub(super) fn introduce(&mut self, session: &mut Session<'_>) -> Result<Option<bool>, Problem> {
        let order = BlockSchedule::of(session.plan, 0).start_order;
        let context = self.context(session);
        let workers = match Workers::start(&context, &order) {
            Ok(workers) => workers,
            Err(Stop::Interrupted) => return Ok(None),
            Err(stop) => return Err(stop.problem(session.plan)),
        };
        self.record_engines(session, &workers)?;
        let batch = workers.batch();
        workers.abandon()?;
        Ok(Some(batch))
    }

    /// The links of a chain, up to the last that is wanted.
    fn links(
        &mut self,
        session: &mut Session<'_>,
        attempt: ChainAttempt<'_>,
        workers: &mut Workers<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        let chain = self.setup.chain();
        let wanted = |progress: &RunProgress, cell| {
            attempt.open.contains(&cell) && !progress.is_done(attempt.block, cell)
        };
        let planned = u32::try_from(attempt.open.len()).unwrap_or(u32::MAX);
        let last = chain
            .iter()
            .rposition(|link| link.cell.is_some_and(|cell| wanted(progress, cell)));
        let mut visited = 0;
        for (place, link) in chain
            .iter()
            .enumerate()
            .take(last.map_or(0, |last| last + 1))
        {
            let order = step_order(session.plan, attempt.block, place, link);
            let started = session.clock.now();
            match link.cell {
                Some(cell) => session.doing(cell),
                None => session.observer.doing(link.step.name()),
            }
            let end = match link.cell {
                None => prepare(session, attempt, order, workers, &mut self.prepared)?,
                Some(cell) => {
                    let keeps = wanted(progress, cell);
                    let place = (attempt.block, cell, order);
                    self.step(session, place, keeps, workers, progress)?
                }
            };
            match end {
                VisitEnd::Interrupted => return Ok(BlockEnd::Interrupted),
                VisitEnd::Complete => {}
                VisitEnd::Lost(server, cause) => {
                    if let Some(cell) = link.cell {
                        progress.set_done(attempt.block, cell);
                    }
                    give_up(session, (attempt.block, attempt.open), progress)?;
                    let place = (attempt.block, link.step.name());
                    self.engine_lost(session, place, (server, &cause), progress)?;
                    return Ok(BlockEnd::GoneThrough);
                }
            }
            let Some(cell) = link.cell.filter(|cell| attempt.open.contains(cell)) else {
                continue;
            };
            visited += 1;
            progress.visited((attempt.block, cell), started, session.clock);
            session.observer.visit(attempt.block, visited, planned);
        }
        Ok(BlockEnd::GoneThrough)
    }

    /// Visits a cell and, if it `keeps` it, stores what it finds.
    fn step(
        &mut self,
        session: &mut Session<'_>,
        (block, cell, order): (u32, CellId, StepOrder),
        keeps: bool,
        workers: &mut Workers<'_>,
        progress: &mut RunProgress,
    ) -> Result<VisitEnd, Problem> {
        let visit = StepVisit {
            plan: session.plan,
            setup: self.setup,
            block,
            cell,
            order,
        };
        let (store, run) = (&mut *session.store, session.run);
        if !keeps {
            return visit
                .carry_out(workers, &mut |_| Ok(()))
                .map(|report| report.end);
        }
        store.begin_visit(run, cell, block).map_err(store_problem)?;
        let mut taken: Vec<Slice> = Vec::new();
        let report = visit.carry_out(workers, &mut |slice| {
            taken.push(slice.clone());
            store.append(run, slice).map_err(store_problem)
        });
        let end = session.keep_visit(block, cell, report, self.series.as_mut())?;
        if end != VisitEnd::Interrupted {
            progress.slices.append(&mut taken);
        }
        Ok(end)
    }

    /// Tells, and stores, that an engine was lost at a step of a block, and counts it.
    ///
    /// Errors: it was one loss too many.
    fn engine_lost(
        &mut self,
        session: &mut Session<'_>,
        (block, step): (u32, &str),
        (server, cause): (ServerId, &Cause),
        progress: &mut RunProgress,
    ) -> Result<(), Problem> {
        let name = session.plan.server_name(server);
        let what = match cause.reason {
            VoidReason::NothingDone => "stopped with an error",
            VoidReason::Stalled => "did not answer in time",
            VoidReason::ServerLost => "was lost",
        };
        let words = cause.detail.as_deref().unwrap_or("it gave no reason");
        let of_limit = self.killed_by_limit(server, words);
        let limit = match of_limit {
            false => "",
            true => "; it needed more than the memory limit, and the kernel killed it",
        };
        let message = format!(
            "{name} {what} in block {} at {step}: {words}{limit}",
            block + 1
        );
        session.observer.note(&format!(
            "{message}; deltabench skips the rest of this block"
        ));
        let hint = match of_limit {
            false => "deltabench kept what it measured: `deltabench report` shows it",
            true => "use more --memory, or a smaller --cache-size",
        };
        let losses = LOSSES_MAX;
        let loss = Loss {
            message,
            tail: String::new(),
            void: "later steps of that block are missing",
            give_up: Problem::new(format!("engines were lost {losses} times; giving up"))
                .hint(hint),
        };
        session.count_loss(loss, progress)
    }

    /// Stores what the engines of the session's first block say of themselves; a run that is gone on with
    /// keeps the findings it has.
    fn record_engines(
        &mut self,
        session: &mut Session<'_>,
        workers: &Workers<'_>,
    ) -> Result<(), Problem> {
        let plan = session.plan;
        let setup = self.setup;
        let settings: Vec<Vec<Setting>> = plan
            .servers
            .iter()
            .zip(workers.opened())
            .map(|(server, opened)| settings_of(setup, server, opened))
            .collect();
        if !self.engines_recorded {
            let mut findings = warnings(plan, workers.opened());
            findings.extend(unfair(plan, workers.opened(), &settings));
            session.keep_findings(&findings)?;
        }
        // The facts last: with them it is known that the findings are there.
        for (id, ((server, opened), settings)) in
            ServerId::each().zip(plan.servers.iter().zip(workers.opened()).zip(&settings))
        {
            if let Some(build) = &server.installation.build {
                session.fact(Some(id), build)?;
            }
            session.fact(Some(id), &Settings(settings.clone()))?;
            let said = EngineSaid {
                left_out: opened.left_out.clone(),
                cache: opened.cache.clone(),
                warnings: opened.warnings.clone(),
            };
            session.fact(Some(id), &said)?;
        }
        self.recorded = true;
        Ok(())
    }

    /// Whether a target that was lost now, with these words, needed more than its memory limit.
    fn killed_by_limit(&mut self, server: ServerId, words: &str) -> bool {
        let place = server.index();
        let reading = self.limits.read(place);
        let killed = reading.and_then(|reading| reading.killed).unwrap_or(0);
        let before = self.killed.get_mut(place);
        before.is_some_and(|before| is_of_limit(words, before, killed))
    }
}

/// Whether a fact of this kind is stored.
fn is_known<T: Fact + DeserializeOwned>(session: &Session<'_>) -> Result<bool, Problem> {
    let facts = session
        .store
        .facts::<T>(session.run)
        .map_err(store_problem)?;
    Ok(!facts.is_empty())
}

/// What is stored of steps that are not measured.
fn prepared(session: &Session<'_>) -> Result<HashSet<(ServerId, u32, String)>, Problem> {
    let facts = session.store.facts::<PreparedStep>(session.run);
    let facts = facts.map_err(store_problem)?.into_iter();
    Ok(facts
        .filter_map(|found| Some((found.server?, found.block?, found.fact.step)))
        .collect())
}

/// Stores that the cells of a block that are not done have no slices: a library that crashes at a step
/// would crash there again, and blocks after this one have their values up to it.
fn give_up(
    session: &mut Session<'_>,
    (block, open): (u32, &[CellId]),
    progress: &mut RunProgress,
) -> Result<(), Problem> {
    for &cell in open {
        if !progress.set_done(block, cell) {
            continue;
        }
        session
            .store
            .begin_visit(session.run, cell, block)
            .and_then(|()| session.store.commit_visit(session.run, cell, block))
            .map_err(store_problem)?;
    }
    Ok(())
}

/// Carries an unmeasured link out on one target after another, and stores what is not `known` of it.
fn prepare(
    session: &mut Session<'_>,
    attempt: ChainAttempt<'_>,
    order: StepOrder,
    workers: &mut Workers<'_>,
    known: &mut HashSet<(ServerId, u32, String)>,
) -> Result<VisitEnd, Problem> {
    for place in attempt.order {
        let server = ServerId::at(*place);
        let prepared = match workers.prepare(server, order) {
            Ok(prepared) => prepared,
            Err(Stop::Interrupted) => return Ok(VisitEnd::Interrupted),
            Err(Stop::Lost(server, cause)) => return Ok(VisitEnd::Lost(server, cause)),
            Err(Stop::Problem(problem)) => return Err(problem),
        };
        // A block that was cut short goes through its steps again.
        if !known.insert((server, attempt.block, order.step.name().to_owned())) {
            continue;
        }
        let done = PreparedStep {
            step: order.step.name().to_owned(),
            duration_ns: prepared.duration_ns,
            figures: prepared.figures,
        };
        session
            .store
            .add_fact(session.run, (Some(server), Some(attempt.block)), &done)
            .map_err(store_problem)?;
    }
    Ok(VisitEnd::Complete)
}

/// The same by what its group counts `now` and counted `before`, when it was lost last: it was killed, and
/// the kernel has killed one more since. Other crashes of the same group are not the limit's.
fn is_of_limit(words: &str, before: &mut u64, now: u64) -> bool {
    let more = now > *before;
    *before = now;
    more && words.contains(KILLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_limit_is_blamed_for_its_own_kills_only() {
        let (killed, crashed) = (
            "x ended by signal 9 (killed) in readrandom",
            "x ended by signal 11 (segmentation fault) in readrandom",
        );
        let mut before = 0;
        assert!(is_of_limit(killed, &mut before, 1));
        assert!(!is_of_limit(crashed, &mut before, 1));
        assert!(!is_of_limit(killed, &mut before, 1), "by somebody else");
        assert!(!is_of_limit(crashed, &mut before, 2));
        assert!(is_of_limit(killed, &mut before, 3));
    }
}
