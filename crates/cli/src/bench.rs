//! What commands measure with: the lab, the host, the targets, and a run from its plan to its end.

use crate::Failure;
use crate::arguments::{HugePagesWord, Servers};
use crate::config::Config;
use crate::interrupt;
use crate::ledger::this_host;
use crate::output::{self, Destinations, say, store_problem};
use crate::progress::Progress;
use deltabench_acquire::Cache;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::installation::{Engine, Installation};
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::events::Observer;
use deltabench_run::fleet::{Host, HugePagesWish};
use deltabench_run::residence::residence;
use deltabench_run::rocksdb::check_targets;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_run::{limits, planning, remote};
use deltabench_server::{ServerUser, Workspace, sweep};
use deltabench_store::{RunLock, RunState, Store};
use deltabench_workload::Library;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// The fact that names the machine a run is measured on, as the ledger does.
pub const MACHINE: &str = "machine";

/// Exit code of a run in which nothing was compared.
const NOTHING_COMPARED: u8 = 5;
/// Exit code of a run on a host that is unfit.
const UNFIT: u8 = 4;

/// What measures runs: where results go, where servers live, and whether to stop.
pub struct Bench {
    /// Where results go.
    pub store: Store,
    /// Where servers live.
    pub host: Host,
    /// Set when the user wants to stop.
    pub interrupted: Arc<AtomicBool>,
}

impl Bench {
    /// Measures a plan as a new run, named by the clock or as asked; returns its name and how it ended.
    pub fn measure_new(
        &mut self,
        plan: &Plan,
        library: &Library,
        name: Option<String>,
        pilot: bool,
    ) -> Result<(String, SessionEnd), Failure> {
        let (seconds, started) = now();
        let run = name.unwrap_or_else(|| run_name(seconds, plan.seed));
        let lock = self.store.lock_run(&run).map_err(Failure::Refused)?;
        self.store
            .create_run(&run, plan, RunState::Running, started)
            .map_err(store_problem)?;
        let said = format!(
            "run {run}, seed {}; {}",
            plan.seed,
            run_as(plan, &self.host)
        );
        let end = self.measure(&run, plan, library, lock, pilot, &said)?;
        Ok((run, end))
    }

    /// Measures a stored plan, or what is left of it; `said` is told first.
    pub fn measure(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
        lock: RunLock,
        pilot: bool,
        said: &str,
    ) -> Result<SessionEnd, Failure> {
        let machine = serde_json::Value::from(this_host()).to_string();
        self.store
            .add_facts(run, None, None, MACHINE, &machine)
            .map_err(store_problem)?;
        let mut progress = Progress::new();
        progress.note(said);
        let end = Session {
            plan,
            run,
            store: &mut self.store,
            host: &self.host,
            library,
            pilot,
            interrupted: &self.interrupted,
            observer: &mut progress,
        }
        .execute();
        let state = match &end {
            Ok(SessionEnd::Finished) => RunState::Finished,
            Ok(SessionEnd::Interrupted) => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        let finished = self.store.finish_run(run, state, now().1);
        drop(lock);
        let end = end.map_err(Failure::Failed)?;
        finished.map_err(store_problem)?;
        output::remember_placebo(run, plan, &mut self.store)?;
        Ok(end)
    }

    /// Measures a stored run that is not finished, or what is left of it; `pilot` is for one that has not
    /// begun.
    pub fn go_on(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
        pilot: bool,
    ) -> Result<SessionEnd, Failure> {
        let lock = self.store.lock_run(run).map_err(Failure::Refused)?;
        check_still_there(plan).map_err(Failure::Refused)?;
        self.store
            .finish_run(run, RunState::Running, now().1)
            .map_err(store_problem)?;
        // A run has either visits or steps.
        let visits = self.store.completed_visits(run).map_err(store_problem)?;
        let steps = self.store.steps(run).map_err(store_problem)?;
        let fresh = visits.is_empty() && steps.is_empty();
        let said = if fresh {
            format!(
                "run {run}, seed {}; {}",
                plan.seed,
                run_as(plan, &self.host)
            )
        } else if plan.insert.is_some() {
            format!(
                "resuming {run}: {} steps are done, those of passes that were cut short are measured again",
                steps.len()
            )
        } else if plan.rocksdb.is_some() {
            format!(
                "resuming {run}: {} visits are done; a block that was cut short is gone through again",
                visits.len()
            )
        } else {
            format!("resuming {run}: {} visits are done", visits.len())
        };
        let pilot = pilot && fresh;
        self.measure(run, plan, library, lock, pilot, &said)
    }

    /// Measures the small regressions of `run` again: fresh load, other ports, other environment size.
    pub fn confirm(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
    ) -> Result<SessionEnd, Failure> {
        check_confirmable(plan).map_err(Failure::Refused)?;
        let name = output::confirmation_name(run);
        let known = self.store.runs().map_err(store_problem)?;
        if known.iter().any(|summary| summary.run == name) {
            return Err(Failure::Refused(
                Problem::new(format!("{run} has been confirmed already"))
                    .detail(format!("{name} is in the lab"))
                    .hint(format!(
                        "`deltabench report {run}` shows what came of it, `deltabench resume {name}` goes on \
                         with it"
                    )),
            ));
        }
        let comparison = output::analyse_run(run, plan, &self.store)?.comparison;
        let Some(confirmation) = planning::confirmation(run, plan, &comparison) else {
            say("nothing to confirm: no cell is slower by at most 5 % and not withdrawn");
            return Ok(SessionEnd::Finished);
        };
        say(&format!(
            "measuring {} cells again, on a fresh load",
            confirmation.cells.len()
        ));
        let (name, end) = self.measure_new(&confirmation, library, Some(name), false)?;
        if end == SessionEnd::Interrupted {
            say(&format!(
                "`deltabench resume {name}` goes on with the confirmation"
            ));
        }
        Ok(end)
    }

    /// Prints and writes what a run says; returns the exit code.
    pub fn publish(
        &self,
        run: &str,
        plan: &Plan,
        end: SessionEnd,
        destinations: &Destinations,
    ) -> Result<u8, Failure> {
        let code = output::publish(run, plan, &self.store, destinations)?;
        if end == SessionEnd::Interrupted {
            say("interrupted; `deltabench resume` goes on");
            return Ok(interrupt::STATUS);
        }
        if code == NOTHING_COMPARED && plan.servers.len() == 1 {
            return alone(&self.store, run);
        }
        Ok(code)
    }
}

/// Who does the work of a plan.
fn run_as(plan: &Plan, host: &Host) -> String {
    let what = match plan.rocksdb {
        Some(_) => "workers",
        None => "servers",
    };
    format!("{what} run as {}", host.user.name)
}

/// Whether regressions of a run can be measured again by themselves.
fn check_confirmable(plan: &Plan) -> Result<(), Problem> {
    let (what, why, again) = if plan.insert.is_some() {
        (
            "the Insert Benchmark",
            "each of its passes is on a fresh load already",
            "measure it again with more passes, or another seed",
        )
    } else if plan.rocksdb.is_some() {
        (
            "RocksDB",
            "each of its blocks is on fresh databases already, and no step can be left out",
            "measure it again with more --blocks, or another --seed",
        )
    } else {
        return Ok(());
    };
    Err(
        Problem::new(format!("a run of {what} is not confirmed by another"))
            .detail(why)
            .hint(again),
    )
}

/// The exit code of a finished run of one server: nothing was asked, so it is 0 if it was measured.
fn alone(store: &Store, run: &str) -> Result<u8, Failure> {
    let slices = store.slices(run).map_err(store_problem)?;
    let findings = store.findings(run).map_err(store_problem)?;
    let unfit = |finding: &Finding| finding.severity == Severity::Unfit;
    Ok(if slices.iter().all(|slice| slice.void.is_some()) {
        NOTHING_COMPARED
    } else if findings.iter().any(unfit) {
        UNFIT
    } else {
        0
    })
}

/// Seconds and milliseconds since 1970.
pub fn now() -> (u64, i64) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (
        now.as_secs(),
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
    )
}

/// The host as asked for, after what killed runs left there has been cleared away.
pub fn swept_host(arguments: &Servers, config: &Config) -> Result<Host, Failure> {
    let host = host(arguments, config).map_err(Failure::Refused)?;
    for swept in sweep(&host.workspaces) {
        say(&swept);
    }
    Ok(host)
}

/// The built-in workloads and those that a plan brings.
pub fn library_of(plan: &Plan) -> Result<Library, Failure> {
    Library::of_plan(plan).map_err(Failure::Failed)
}

/// Finds every target; also the place where downloads and builds happen, and where servers that are there
/// already are asked what they are.
pub fn resolve(specs: &[TargetSpec], config: &Config) -> Result<Vec<Installation>, Problem> {
    let cache = Cache::open(config.cache.clone())?;
    let mut progress = |text: &str| say(text);
    let find = |spec: &TargetSpec, progress: &mut dyn FnMut(&str)| match spec {
        TargetSpec::Dsn(remote) => remote::installation(remote),
        spec => deltabench_acquire::resolve(spec, &cache, &config.sources, progress),
    };
    // What needs no download is looked at first: a wrong path should not cost a minute of fetching, nor a
    // missing compiler or any of these several minutes of building.
    deltabench_acquire::check(specs, &cache, &config.sources)?;
    let is_at_hand = |spec: &&TargetSpec| {
        !matches!(
            spec,
            TargetSpec::Prebuilt(_) | TargetSpec::Built(_) | TargetSpec::Rocksdb(_)
        )
    };
    for spec in specs.iter().filter(is_at_hand) {
        find(spec, &mut progress)?;
    }
    deltabench_acquire::prefetch(specs, &cache, &config.sources, &mut progress)?;
    specs.iter().map(|spec| find(spec, &mut progress)).collect()
}

/// Finds targets of which all have to be servers.
///
/// Errors: those of [`resolve`], and before anything is fetched a target that is none.
pub fn resolve_servers(
    specs: &[TargetSpec],
    config: &Config,
) -> Result<Vec<Installation>, Problem> {
    check_targets(specs, false)?;
    resolve(specs, config)
}

/// The host as the options describe it.
pub fn host(arguments: &Servers, config: &Config) -> Result<Host, Problem> {
    let user = ServerUser::choose(arguments.server_user.as_deref())?;
    let workspaces = match &arguments.cluster_dir {
        Some(directory) => std::path::absolute(directory).map_err(|error| {
            Problem::new(format!("bad directory {}", directory.display())).detail(error.to_string())
        })?,
        None => Workspace::default_parent(&user, &config.lab),
    };
    let huge_pages = match arguments.huge_pages {
        HugePagesWord::Try => HugePagesWish::Try,
        HugePagesWord::On => HugePagesWish::On,
        HugePagesWord::Off => HugePagesWish::Off,
    };
    Ok(Host {
        workspaces,
        cache: config.cache.clone(),
        user,
        huge_pages,
    })
}

/// Whether a plan can be carried out on this host, as far as can be said before anything is started.
pub fn check_fits(plan: &Plan, host: &Host) -> Result<(), Problem> {
    residence(plan, host)?;
    limits::check(&plan.limits, &host.workspaces)?;
    remote::check(plan)
}

/// A run's binaries must be the ones it began with.
pub fn check_still_there(plan: &Plan) -> Result<(), Problem> {
    let own = |server: &&PlannedServer| server.installation.remote.is_none();
    for server in plan.servers.iter().filter(own) {
        let installation = &server.installation;
        let binary = match installation.engine {
            Engine::Postgres => installation.bin_dir.join("postgres"),
            // It is the file itself.
            Engine::Rocksdb | Engine::DbBench => installation.bin_dir.clone(),
        };
        let now = deltabench_acquire::sha256_of(&binary)?;
        if now != installation.binary_sha256 {
            return Err(
                Problem::new(format!("{} is another binary now", installation.resolved))
                    .detail(format!(
                        "{} had SHA-256 {}, now {now}",
                        binary.display(),
                        installation.binary_sha256
                    ))
                    .hint("start a new comparison"),
            );
        }
    }
    Ok(())
}

/// The lab's store, made if there is none.
pub fn open_store(config: &Config) -> Result<Store, Failure> {
    Store::open(&config.lab).map_err(|error| {
        Failure::Refused(Problem::new("the lab directory cannot be used").detail(error.to_string()))
    })
}

/// A run's name: its start and the end of its seed.
pub fn run_name(unix_seconds: u64, seed: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(i64::try_from(unix_seconds).unwrap_or(0))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}-{:04x}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        seed & 0xffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_time_and_seed() {
        assert_eq!(run_name(1_795_260_000, 0xab_cdef), "20261121-112000-cdef");
    }
    #[test]
    fn a_server_on_its_own_that_was_measured_is_no_failure() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        let plan = crate::fixture::plan();
        store.create_run("r", &plan, RunState::Running, 0).unwrap();
        let code = |store: &Store| alone(store, "r").unwrap_or(u8::MAX);
        let step = |void: serde_json::Value| {
            serde_json::from_value(serde_json::json!({
                "server": 0, "cell": 0, "block": 0, "position": 0, "started_ns": 1, "duration_ns": 1,
                "operations": 1, "server_cpu_ns": null, "run_queue_wait_ns": null, "switches": null,
                "client_cpu_ns": 1, "foreign_cpu_ns": null, "steal_ns": null, "cpu_pressure_ns": null,
                "roles": [], "seconds": [], "clients": [], "values": {}, "void": void,
                "void_detail": null,
            }))
            .unwrap()
        };
        assert_eq!(code(&store), NOTHING_COMPARED, "nothing was measured");
        store.add_step("r", &step("server-lost".into())).unwrap();
        assert_eq!(code(&store), NOTHING_COMPARED, "its only step is void");
        store.add_step("r", &step(serde_json::Value::Null)).unwrap();
        assert_eq!(code(&store), 0);
        let unfit = Finding::new("host", Severity::Unfit, "no".to_owned());
        store.add_finding("r", &unfit).unwrap();
        assert_eq!(code(&store), UNFIT);
    }
}
