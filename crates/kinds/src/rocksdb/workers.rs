//! The targets of one block: a process and a database for each.

use deltabench_engine::{
    Engine, EngineError, EngineSpec, Opened, Prepared, StepOrder, TurnOrder, Turned,
};
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::work::rocksdb::{
    BLOCK_CACHE, BlockCache, RocksdbSetup, RocksdbStep, StepFigures,
};
use deltabench_observe::Postmaster;
use deltabench_run::fleet::Host;
use deltabench_run::limits::FleetLimits;
use deltabench_run::visit::Cause;
use deltabench_server::{Counter, Workspace};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// This same program, whatever became of its file: a worker is started from it.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// What every target does without where one of them cannot, and what is done instead.
const NOT_BATCHED: (&str, &str) = (
    "multiread_batched",
    "a library of this run has no rocksdb_batched_multi_get_cf; all use rocksdb_multi_get",
);

/// Why a chain could not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The user wants to stop.
    Interrupted,
    Lost(ServerId, Cause),
    /// Something that is no target's fault.
    Problem(Problem),
}

impl Stop {
    /// The same where nothing goes on after it.
    pub(crate) fn problem(self, plan: &Plan) -> Problem {
        match self {
            Self::Interrupted => Problem::new("interrupted"),
            Self::Lost(server, cause) => {
                let problem = Problem::new(format!("{} was lost", plan.server_name(server)));
                match cause.detail {
                    Some(words) => problem.detail(words),
                    None => problem,
                }
            }
            Self::Problem(problem) => problem,
        }
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// What workers are made of.
pub(crate) struct WorkerContext<'a, 'i> {
    pub(crate) plan: &'a Plan,
    pub(crate) setup: &'a RocksdbSetup,
    pub(crate) host: &'a Host,
    pub(crate) workspace: &'a Workspace,
    pub(crate) limits: &'a FleetLimits,
    /// The program of workers of libraries.
    pub(crate) worker: &'a Path,
    /// What they run under, to be counted.
    pub(crate) counter: Option<&'a Counter>,
    pub(crate) interrupted: &'i AtomicBool,
}

/// All targets of a block, each with a database that nobody has used before. What is left of them goes with
/// [`Workers::stop`], else with the run's workspace.
pub(crate) struct Workers<'i> {
    /// In the plan's order.
    engines: Vec<Engine<'i>>,
    opened: Vec<Opened>,
    places: Vec<PathBuf>,
}

/// The block cache of a server.
pub(crate) fn cache_of(server: &PlannedServer) -> BlockCache {
    let mut settings = server.settings.iter().rev();
    let found = settings.find(|(name, _)| name == BLOCK_CACHE);
    found
        .and_then(|(_, word)| BlockCache::from_word(word))
        .unwrap_or_default()
}

/// The options of a server's own, without its block cache.
fn options_of(server: &PlannedServer) -> Vec<(String, String)> {
    let options = server
        .settings
        .iter()
        .filter(|(name, _)| name != BLOCK_CACHE);
    options.cloned().collect()
}

impl<'i> Workers<'i> {
    /// Starts all targets in this order, each frozen when the next one starts.
    ///
    /// Errors: as [`Stop`]; a library that cannot be loaded or does not take its options is a problem.
    pub(crate) fn start(context: &WorkerContext<'_, 'i>, order: &[usize]) -> Result<Self, Stop> {
        let mut started: Vec<Option<(Engine<'i>, Opened)>> = Vec::new();
        started.resize_with(context.plan.servers.len(), || None);
        let mut places = Vec::new();
        for &place in order {
            let home = home(context.workspace, place);
            places.push(home.clone());
            let made = start_one(context, place, &home)?;
            if let Some(entry) = started.get_mut(place) {
                *entry = Some(made);
            }
        }
        let all: Option<Vec<_>> = started.into_iter().collect();
        let all = all.ok_or_else(|| Problem::new("the schedule of a block lacks a target"))?;
        let (engines, mut opened): (Vec<_>, Vec<Opened>) = all.into_iter().unzip();
        tell_of_batches(context.plan, context.setup, &mut opened);
        Ok(Self {
            engines,
            opened,
            places,
        })
    }

    /// Whether all targets can look many keys up in one go.
    pub(super) fn batch(&self) -> bool {
        self.opened.iter().all(|opened| opened.batches)
    }

    /// What each target said when its database was opened.
    pub(crate) fn opened(&self) -> &[Opened] {
        &self.opened
    }

    /// The numbers of their processes, in the plan's order.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.engines.iter().map(Engine::pid).collect()
    }

    /// Their processes, for the one-second series.
    pub(crate) fn postmasters(&self) -> Vec<(ServerId, Postmaster)> {
        let numbered = ServerId::each().zip(self.pids());
        // A program that is started for each step has no process now.
        let there = numbered.filter(|(_, pid)| *pid != 0);
        there
            .map(|(id, pid)| (id, Postmaster::Local(pid)))
            .collect()
    }

    pub(crate) fn prepare(&mut self, server: ServerId, step: StepOrder) -> Result<Prepared, Stop> {
        self.with(server, |engine| engine.prepare(step))
    }

    pub(super) fn begin(&mut self, server: ServerId, step: StepOrder) -> Result<(), Stop> {
        self.with(server, |engine| engine.begin(step))
    }

    pub(super) fn turn(&mut self, server: ServerId, turn: TurnOrder) -> Result<Turned, Stop> {
        self.with(server, |engine| engine.turn(turn))
    }

    pub(super) fn finish(&mut self, server: ServerId) -> Result<StepFigures, Stop> {
        self.with(server, Engine::finish)
    }

    fn with<T>(
        &mut self,
        server: ServerId,
        ask: impl FnOnce(&mut Engine<'i>) -> Result<T, EngineError>,
    ) -> Result<T, Stop> {
        let engine = self
            .engines
            .get_mut(server.index())
            .ok_or_else(|| Problem::new(format!("the plan has no server {server}")))?;
        ask(engine).map_err(|error| stop(server, error))
    }

    /// Closes all databases and removes them; what there is to say of those that would not close. Their
    /// processes are gone in any case.
    ///
    /// Errors: files that cannot be removed.
    pub(crate) fn stop(self) -> Result<Vec<String>, Problem> {
        let stopped: Vec<Result<(), EngineError>> =
            self.engines.into_iter().map(Engine::stop).collect();
        remove_all(&self.places)?;
        let failed = stopped.into_iter().filter_map(Result::err);
        Ok(failed.map(|error| error.to_string()).collect())
    }

    /// Ends all processes without closing their databases, and removes them.
    ///
    /// Errors: files that cannot be removed.
    pub(crate) fn abandon(self) -> Result<(), Problem> {
        drop(self.engines);
        remove_all(&self.places)
    }
}

/// Adds to what was left out that keys are looked up by a lesser call than some targets have: each target
/// does the same, so that versions are compared and not calls.
fn tell_of_batches(plan: &Plan, setup: &RocksdbSetup, opened: &mut [Opened]) {
    let asked = setup.steps.contains(&RocksdbStep::Multireadrandom);
    // A program that works by itself has a flag for it.
    if plan.has_whole_steps() || !asked || opened.iter().all(|opened| opened.batches) {
        return;
    }
    let (name, instead) = NOT_BATCHED;
    for opened in opened {
        let told = (name.to_owned(), instead.to_owned());
        opened.left_out.push(told);
    }
}

fn remove_all(places: &[PathBuf]) -> Result<(), Problem> {
    let removed: Vec<Result<(), Problem>> = places.iter().map(|place| remove(place)).collect();
    removed.into_iter().collect()
}

/// Where a target's database of a block is, with nothing else.
pub(super) fn home(workspace: &Workspace, place: usize) -> PathBuf {
    workspace
        .directory()
        .join("clusters")
        .join(format!("e{place}"))
}

/// Starts one target, with a database in `home`; what was there before is removed.
pub(super) fn start_one<'i>(
    context: &WorkerContext<'_, 'i>,
    place: usize,
    home: &Path,
) -> Result<(Engine<'i>, Opened), Stop> {
    let server = context
        .plan
        .servers
        .get(place)
        .ok_or_else(|| Problem::new(format!("the plan has no server {place}")))?;
    // What a block that was cut short has left.
    remove(home)?;
    let log = home.with_extension("log");
    let cores = context
        .plan
        .pins
        .as_ref()
        .map(|pins| pins.server.as_slice());
    let groups = context.limits.of(place);
    let options = options_of(server);
    let spec = EngineSpec {
        installation: &server.installation,
        worker: context.worker,
        counter: context.counter,
        directory: home,
        log: &log,
        user: &context.host.user,
        setup: context.setup,
        cache: cache_of(server),
        options: &options,
        cores,
        cgroups: groups.map_or(&[], |groups| groups.groups()),
        interrupted: context.interrupted,
    };
    let id = ServerId::at(place);
    Engine::start(spec).map_err(|error| match error {
        EngineError::Failed(words) => {
            let problem = Problem::new(format!("{} cannot open a database", server.name()));
            let problem = problem.detail(words);
            let asked = !options.is_empty() || !context.setup.options.is_empty();
            Stop::Problem(match asked {
                true => problem.hint("leave out options that this version does not take"),
                false => problem,
            })
        }
        error => stop(id, error),
    })
}

/// What the end of an engine is for a chain.
pub(super) fn stop(server: ServerId, error: EngineError) -> Stop {
    let lost = |reason, words| {
        let detail = Some(words);
        Stop::Lost(server, Cause { reason, detail })
    };
    match error {
        EngineError::Interrupted => Stop::Interrupted,
        EngineError::Lost(words) => lost(VoidReason::ServerLost, words),
        EngineError::Stalled(words) => lost(VoidReason::Stalled, words),
        EngineError::Failed(words) => lost(VoidReason::NothingDone, words),
    }
}

/// Removes a database with all that is beside it.
pub(super) fn remove(home: &Path) -> Result<(), Problem> {
    match std::fs::remove_dir_all(home) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::new(format!("cannot remove {}", home.display())).detail(error.to_string()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rocksdb_plan;

    #[test]
    fn look_ups_are_batched_only_where_all_can_and_all_are_told_the_same() {
        let plan = rocksdb_plan(&["a", "b"]);
        let mut setup = plan.work.rocksdb().cloned().unwrap();
        setup.steps = RocksdbStep::ALL.to_vec();
        let opened = |batches| Opened {
            batches,
            ..Opened::default()
        };
        let told = |setup: &RocksdbSetup, mut opened: [Opened; 2]| {
            tell_of_batches(&plan, setup, &mut opened);
            opened.map(|opened| opened.left_out)
        };
        let [old, new] = told(&setup, [opened(false), opened(true)]);
        assert_eq!(old, new, "the newer one does without, too");
        assert_eq!(old[0].0, "multiread_batched");
        let none: [Vec<(String, String)>; 2] = Default::default();
        assert_eq!(told(&setup, [opened(true), opened(true)]), none);
        setup.steps = RocksdbStep::published();
        assert_eq!(told(&setup, [opened(false), opened(true)]), none);
    }

    #[test]
    fn the_cache_is_a_setting_and_no_option() {
        let mut plan = rocksdb_plan(&["a", "b"]);
        let server = &mut plan.servers[0];
        assert_eq!(cache_of(server), BlockCache::Lru);
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        server.settings = vec![
            setting(BLOCK_CACHE, "hyper-clock"),
            setting("write_buffer_size", "1048576"),
        ];
        assert_eq!(cache_of(server), BlockCache::HyperClock);
        assert_eq!(
            options_of(server),
            [setting("write_buffer_size", "1048576")]
        );
    }
}
