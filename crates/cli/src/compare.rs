//! `deltabench compare` and `deltabench resume`: from the request to the exit code.

use crate::Failure;
use crate::arguments::{Checksums, Compare, HugePagesWord, PlacementWord, Resume, Servers};
use crate::config::Config;
use crate::output::{self, Destinations, say, store_problem};
use crate::progress::Progress;
use crate::{interrupt, listing};
use deltabench_acquire::Cache;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{DataSize, Placement, Plan, Timing};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::count;
use deltabench_run::events::Observer;
use deltabench_run::fleet::{self, Host, HugePagesWish};
use deltabench_run::planning::{self, Request};
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::{ServerUser, Workspace, sweep};
use deltabench_store::{RunLock, RunState, Store};
use deltabench_workload::Library;
use std::time::{SystemTime, UNIX_EPOCH};

/// A quick run stops after the block that would end past this many seconds of measuring.
const QUICK_DEADLINE_SECONDS: f64 = 500.0;

/// Runs a new comparison.
pub fn compare(arguments: Compare, config: &Config) -> Result<u8, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let plan = make_plan(&arguments, config, &library).map_err(Failure::Refused)?;
    fleet::check_fit(&plan, &host).map_err(Failure::Refused)?;
    let mut store = open_store(config)?;
    let (seconds, started) = now();
    let run = run_name(seconds, plan.seed);
    let lock = store.lock_run(&run).map_err(Failure::Refused)?;
    store
        .create_run(&run, &plan, started)
        .map_err(store_problem)?;
    let said = format!(
        "run {run}, seed {}; servers run as {}",
        plan.seed, host.user.name
    );
    Job {
        run,
        plan,
        store,
        host,
        library,
        destinations,
        lock,
    }
    .measure(&said)
}

/// Goes on with a run.
pub fn resume(arguments: &Resume, config: &Config) -> Result<u8, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let mut store = listing::open(config)?;
    let run = store.find(&arguments.run).map_err(Failure::Refused)?;
    let lock = store.lock_run(&run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let visits = deltabench_run::session::visits(&plan);
    let done = count(store.completed_visits(&run).map_err(store_problem)?.len());
    if done == visits {
        say(&format!("{run} is finished: all {visits} visits are done"));
        return output::publish(&run, &plan, &store, &destinations);
    }
    check_still_there(&plan).map_err(Failure::Refused)?;
    fleet::check_fit(&plan, &host).map_err(Failure::Refused)?;
    store
        .finish_run(&run, RunState::Running, now().1)
        .map_err(store_problem)?;
    let said = format!("resuming {run}: {done} of {visits} visits are done");
    Job {
        run,
        plan,
        store,
        host,
        library,
        destinations,
        lock,
    }
    .measure(&said)
}

/// A run that is ours to carry out.
struct Job {
    run: String,
    plan: Plan,
    store: Store,
    host: Host,
    library: Library,
    destinations: Destinations,
    lock: RunLock,
}

impl Job {
    fn measure(mut self, said: &str) -> Result<u8, Failure> {
        let interrupted = interrupt::flag().map_err(|error| {
            Failure::Failed(Problem::new("signals cannot be handled").detail(error.to_string()))
        })?;
        let mut progress = Progress::new();
        progress.note(said);
        let end = Session {
            plan: &self.plan,
            run: &self.run,
            store: &mut self.store,
            host: &self.host,
            library: &self.library,
            interrupted: &interrupted,
            observer: &mut progress,
        }
        .execute();
        let state = match &end {
            Ok(SessionEnd::Finished) => RunState::Finished,
            Ok(SessionEnd::Interrupted) => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        let finished = self.store.finish_run(&self.run, state, now().1);
        drop(self.lock);
        let end = end.map_err(Failure::Failed)?;
        finished.map_err(store_problem)?;
        let code = output::publish(&self.run, &self.plan, &self.store, &self.destinations)?;
        if end == SessionEnd::Interrupted {
            say(&format!(
                "interrupted; `deltabench resume {}` goes on",
                self.run
            ));
            return Ok(interrupt::STATUS);
        }
        Ok(code)
    }
}

/// Seconds and milliseconds since 1970.
fn now() -> (u64, i64) {
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

fn make_plan(arguments: &Compare, config: &Config, library: &Library) -> Result<Plan, Problem> {
    let request = request(arguments)?;
    planning::check(&request, library)?;
    let specs = std::iter::once(&arguments.base)
        .chain(&arguments.candidates)
        .map(|text| text.parse::<TargetSpec>())
        .collect::<Result<Vec<_>, _>>()?;
    let installations = resolve(&specs, config)?;
    match installations.as_slice() {
        [base, candidates @ ..] => planning::plan(request, base, candidates, library),
        [] => Err(Problem::new("no base given")),
    }
}

fn request(arguments: &Compare) -> Result<Request, Problem> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Kept under 2^53 so that every reader of the JSON sees the same number.
    let from_clock =
        deltabench_workload::mix(u64::from(now.subsec_nanos()), &[now.as_secs()]) >> 11;
    let default_rows = if arguments.quick { 200_000 } else { 1_000_000 };
    Ok(Request {
        same_target: arguments.same_target,
        workloads: arguments.only.clone(),
        clients: arguments.clients.clone(),
        data: DataSize {
            tables: arguments.tables,
            rows: arguments.rows.unwrap_or(default_rows),
        },
        timing: timing(arguments),
        placement: placement(arguments.placement),
        delta: percent(&arguments.delta)?,
        checksums: match arguments.checksums {
            Checksums::On => Some(true),
            Checksums::Off => Some(false),
            Checksums::Default => None,
        },
        settings: arguments
            .settings
            .iter()
            .map(|text| setting(text))
            .collect::<Result<_, _>>()?,
        seed: arguments.seed.unwrap_or(from_clock),
        command: std::env::args().collect(),
    })
}

fn timing(arguments: &Compare) -> Timing {
    let quick = arguments.quick;
    Timing {
        blocks: arguments.blocks.unwrap_or(if quick { 14 } else { 24 }),
        slice_ms: arguments.slice_ms,
        slice_jitter: 0.2,
        visit_seconds: arguments
            .visit_seconds
            .unwrap_or(if quick { 0.8 } else { 1.5 }),
        warmup_seconds: 0.3,
        connections_per_visit: 2,
        deadline_seconds: quick.then_some(QUICK_DEADLINE_SECONDS),
    }
}

fn placement(asked: Option<PlacementWord>) -> (Placement, Placement) {
    match asked {
        None => (Placement::SameCore, Placement::Split),
        Some(PlacementWord::SameCore) => (Placement::SameCore, Placement::SameCore),
        Some(PlacementWord::Split) => (Placement::Split, Placement::Split),
        Some(PlacementWord::Free) => (Placement::Free, Placement::Free),
    }
}

/// Finds every target; also the place where downloads happen.
pub fn resolve(specs: &[TargetSpec], config: &Config) -> Result<Vec<Installation>, Problem> {
    let cache = Cache::open(config.cache.clone())?;
    let mut progress = |text: &str| say(text);
    let find = |spec: &TargetSpec, progress: &mut dyn FnMut(&str)| {
        deltabench_acquire::resolve(spec, &cache, &config.sources, progress)
    };
    // What needs no download is looked at first: a wrong path should not cost a minute of fetching.
    for spec in specs
        .iter()
        .filter(|spec| !matches!(spec, TargetSpec::Prebuilt(_)))
    {
        find(spec, &mut progress)?;
    }
    deltabench_acquire::prefetch(specs, &cache, &config.sources, &mut progress)?;
    specs.iter().map(|spec| find(spec, &mut progress)).collect()
}

/// The host as the options describe it.
fn host(arguments: &Servers, config: &Config) -> Result<Host, Problem> {
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

/// A run's binaries must be the ones it began with.
fn check_still_there(plan: &Plan) -> Result<(), Problem> {
    for server in &plan.servers {
        let installation = &server.installation;
        let binary = installation.bin_dir.join("postgres");
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

fn open_store(config: &Config) -> Result<Store, Failure> {
    Store::open(&config.lab).map_err(|error| {
        Failure::Refused(Problem::new("the lab directory cannot be used").detail(error.to_string()))
    })
}

fn run_name(unix_seconds: u64, seed: u64) -> String {
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

/// `3%` or `3` as 0.03.
pub fn percent(text: &str) -> Result<f64, Problem> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    match number {
        Some(value) if value.is_finite() => Ok(value / 100.0),
        _ => Err(Problem::new(format!("`{text}` is not a percentage"))
            .hint("write for example --delta 2%")),
    }
}

fn setting(text: &str) -> Result<(String, String), Problem> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((
            name.trim().to_ascii_lowercase(),
            value.trim().trim_matches('\'').to_owned(),
        )),
        _ => {
            Err(Problem::new(format!("`{text}` is not a setting"))
                .hint("write --set work_mem=64MB"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_settings_are_read_as_written() {
        assert!((percent("3%").unwrap() - 0.03).abs() < 1e-12);
        assert!((percent("0.5").unwrap() - 0.005).abs() < 1e-12);
        assert!(percent("small").unwrap_err().hint.unwrap().contains("2%"));
        assert_eq!(
            setting("Work_Mem = '64MB'").unwrap(),
            ("work_mem".into(), "64MB".into())
        );
        assert!(setting("work_mem").is_err());
    }

    #[test]
    fn a_run_is_named_by_its_time_and_seed() {
        assert_eq!(run_name(1_795_260_000, 0xab_cdef), "20261121-112000-cdef");
    }
}
