//! The times of a replay: a run of its own in the lab, which can be resumed.

use super::source::Source;
use super::{Files, answer, as_is, code, json_file, publish, read};
use crate::amounts::span;
use crate::arguments::global::words;
use crate::arguments::replay::ReplayArguments;
use crate::arguments::results::Resume;
use crate::bench::{Bench, Measured};
use crate::clock::{now, seed_from_clock};
use crate::config::Config;
use crate::console::{say, write_file};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::request::{percent, time};
use crate::store::{open, store_problem};
use crate::targets::hold_binaries;
use deltabench_capture::Capture;
use deltabench_kinds::replay::{Loaded, NO_MEMBERS, PlanWish, Replay, add_times, plan};
use deltabench_lab::Judged;
use deltabench_model::exit;
use deltabench_model::plan::{Plan, PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::replayed::{Replayed, ReplayedFile};
use deltabench_model::work::replay::{DataSet, ReplaySetup};
use deltabench_replay::{ClockWish, Consent, Kept, Request, Wish, load_again, sent_sha256};
use deltabench_report::replayed_json;
use deltabench_run::events::Observer;
use deltabench_run::planning::check_share;
use deltabench_run::session::SessionEnd;
use deltabench_server::Workspace;
use deltabench_store::{RunLock, RunState, Store};
use deltabench_workload::Library;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shares of a workload below which a statement may be said not to matter.
const IMPACTS: RangeInclusive<f64> = 0.0..=0.5;

/// How the times are measured.
pub struct Timing {
    blocks: u32,
    budget_seconds: f64,
    impact: f64,
    delta: Option<f64>,
}

impl Timing {
    /// What the options say.
    ///
    /// Errors: a time or a percentage that is none; execution forbidden.
    pub fn of(arguments: &ReplayArguments) -> Result<Self, Problem> {
        if arguments.no_execute {
            return Err(
                Problem::new("without executing a statement there is no time")
                    .hint("add --plans-only, or leave out --no-execute"),
            );
        }
        let delta = arguments.delta.as_deref().map(percent).transpose()?;
        if let Some(delta) = delta {
            check_share("δ", "--delta", delta)?;
        }
        let impact = percent(&arguments.impact)?;
        if !IMPACTS.contains(&impact) {
            return Err(
                Problem::new(format!("an impact of {} % is out of range", impact * 100.0))
                    .hint("use --impact between 0% and 50%"),
            );
        }
        Ok(Self {
            blocks: arguments.blocks,
            budget_seconds: time(&arguments.budget)?,
            impact,
            delta,
        })
    }
}

/// Where a replay is measured, and where its reports go.
pub struct Place<'a> {
    pub bench: Bench,
    pub lock: RunLock,
    pub config: &'a Config,
    /// Other files for the reports.
    pub files: Files<'a>,
}

/// Measures what plans and results leave, and publishes all of it.
pub fn measure(
    mut replayed: Replayed,
    kept: Kept,
    (request, timing): (&Request<'_>, &Timing),
    place: Place<'_>,
) -> Result<u8, Failure> {
    let setup = setup(&replayed, (request, timing), &kept);
    let wish = |wish: &'_ Wish| (wish.installation.clone(), wish.named_settings.clone());
    let named: Vec<_> = request.servers.iter().map(wish).collect();
    let plan = plan(PlanWish {
        seed: seed_from_clock(),
        servers: named
            .iter()
            .map(|(found, settings)| (found, settings.as_slice()))
            .collect(),
        replayed: &replayed,
        setup,
        blocks: timing.blocks,
        delta: timing.delta,
        checksums: request.checksums,
        command: words(),
    });
    replayed.notes.extend(without_mix(request.mix, &plan));
    // What is known stays known if the rest is killed.
    write_file(
        &json_file(request.name, place.config),
        &replayed_json(&replayed),
    )?;
    let mut place = place;
    let created = place
        .bench
        .store
        .create_run(request.name, &plan, RunState::Running, now().1);
    created.map_err(store_problem)?;
    let loaded = Loaded {
        servers: kept.servers,
        jobs: kept.jobs,
    };
    carry_out(&mut replayed, (request.name, &plan), loaded, place)
}

/// What the times are measured with.
fn setup(
    replayed: &Replayed,
    (request, timing): (&Request<'_>, &Timing),
    kept: &Kept,
) -> ReplaySetup {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.display().to_string()
    };
    ReplaySetup {
        capture: ReplayedFile {
            path: absolute(request.capture_path),
            sha256: request.capture_sha256.clone(),
        },
        data: replayed.data.as_ref().map(|data| ReplayedFile {
            path: absolute(Path::new(&data.path)),
            sha256: Some(data.sha256.clone()),
        }),
        directory_database: directory_database(replayed),
        weighted_by: replayed.covered.weighted_by,
        settings: request
            .servers
            .iter()
            .map(|wish| wish.settings.clone())
            .collect(),
        budget_seconds: timing.budget_seconds,
        impact: timing.impact,
        timeout_seconds: request.timeout_seconds,
        made_up: request.make_up,
        functions_allowed: request.consent.functions,
        sent_sha256: Some(sent_sha256(&kept.jobs)),
        data_sets: kept.data_sets.clone(),
        clock: replayed.clock.as_ref().and_then(|clock| clock.at),
        mix: request.mix,
        statements: kept.statements.clone(),
    }
}

/// Why the plan has no mix though one is wanted.
fn without_mix(wanted: Option<u32>, plan: &Plan) -> Option<String> {
    let has_mix = plan.work.replay().is_some_and(|setup| setup.mix.is_some());
    (wanted.is_some() && !has_mix).then(|| NO_MEMBERS.to_owned())
}

/// The database of the data directory that was copied, if one was.
fn directory_database(replayed: &Replayed) -> Option<String> {
    let directory = replayed.data.as_ref()?.directory.as_ref()?;
    Some(directory.database.clone())
}

/// Measures a stored plan, or what is left of it, and publishes.
fn carry_out(
    replayed: &mut Replayed,
    (run, plan): (&str, &Plan),
    loaded: Loaded,
    place: Place<'_>,
) -> Result<u8, Failure> {
    let Place {
        mut bench,
        lock,
        config,
        files,
    } = place;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let mut progress = Progress::new(bench.planned(plan));
    let setup = plan.work.replay();
    progress.note(&format!(
        "measuring {} statements{} in {} blocks of all servers; for about {}",
        setup.map_or(0, |setup| setup.statements.len()),
        match setup.and_then(|setup| setup.mix) {
            Some(1) => ", and all of them as a mix of one client".to_owned(),
            Some(clients) => format!(", and all of them as a mix of {clients} clients"),
            None => String::new(),
        },
        plan.timing.blocks,
        span(setup.map_or(0.0, |setup| setup.budget_seconds))
    ));
    let benchmark = Replay::with(loaded);
    let measured = bench.measure_with(
        &benchmark,
        (run, plan),
        &library,
        (lock, false),
        &mut progress,
    );
    drop(progress);
    let Measured { end, judged } = match measured {
        Ok(measured) => measured,
        Err(failure) => {
            // What is known is told, as far as it can be read.
            if let Ok(judged) = Judged::of(run, plan, &bench.store) {
                with_times(replayed, judged, &bench.store)?;
            }
            replayed.break_off(failure.problem());
            publish(replayed, files, config)?;
            return Err(failure);
        }
    };
    with_times(replayed, judged, &bench.store)?;
    publish(replayed, files, config)?;
    if end == SessionEnd::Interrupted {
        say(&format!("interrupted; `deltabench resume {run}` continues"));
        return Ok(exit::INTERRUPTED);
    }
    code(replayed)
}

/// Adds what a run has measured.
fn with_times(replayed: &mut Replayed, judged: Judged, store: &Store) -> Result<(), Failure> {
    let (run, plan) = (judged.run().to_owned(), judged.plan().clone());
    let records = store.records(&run).map_err(store_problem)?;
    let comparison = judged.into_comparison();
    add_times(replayed, &plan, &records, &comparison).map_err(Failure::Failed)
}

/// A replay of the lab, with its times as far as they are measured.
pub fn stored(name: &str, config: &Config) -> Result<Replayed, Failure> {
    let mut replayed = read(&json_file(name, config)).map_err(Failure::Refused)?;
    let store = open(config)?;
    let known = store.runs().map_err(store_problem)?;
    if known.iter().any(|run| run.run == name) {
        let plan = store.plan(name).map_err(store_problem)?;
        let judged = Judged::of(name, &plan, &store).map_err(Failure::Failed)?;
        with_times(&mut replayed, judged, &store)?;
    }
    Ok(replayed)
}

/// Measures the rest of a replay that was interrupted or killed: the dump is loaded again.
pub fn resume(
    run: &str,
    plan: &Plan,
    arguments: &Resume,
    (mut bench, config): (Bench, &Config),
) -> Result<u8, Failure> {
    let setup = plan.work.replay();
    let setup = setup.ok_or_else(|| Failure::Failed(Problem::new("the plan is not a replay's")))?;
    let output = &arguments.output;
    let files = (output.json.as_deref(), output.html.as_deref());
    let reached = bench.store.reached(run).map_err(store_problem)?;
    if reached.is_some_and(|reached| reached.state == RunState::Finished) {
        return print_again(run, files, config);
    }
    let mut replayed = read(&json_file(run, config)).map_err(Failure::Refused)?;
    replayed.go_on();
    let lock = bench.store.lock_run(run).map_err(Failure::Refused)?;
    hold_binaries(plan).map_err(Failure::Refused)?;
    let capture_path = PathBuf::from(&setup.capture.path);
    let found = super::sha256(&capture_path).map_err(Failure::Refused)?;
    same_file(&setup.capture, found.as_deref()).map_err(Failure::Refused)?;
    let capture = Capture::open(&capture_path).map_err(Failure::Refused)?;
    let source = same_source(setup, arguments, (&mut bench, config))?;
    let (host, interrupted) = (bench.host.clone(), Arc::clone(&bench.interrupted));
    let request = Request {
        name: run,
        servers: wishes(plan, setup).map_err(Failure::Refused)?,
        capture: &capture,
        capture_path: &capture_path,
        capture_sha256: setup.capture.sha256.clone(),
        data: source.data(),
        make_up: setup.made_up,
        draws: 1,
        consent: consented(setup),
        // It was small enough before.
        copy_limit: u64::MAX,
        mix: setup.mix,
        timed: true,
        why: false,
        clock: same_clock(setup),
        timeout_seconds: setup.timeout_seconds,
        checksums: plan.checksums,
        workspaces: &host.workspaces,
        cache: &host.cache,
        user: &host.user,
        interrupted: &interrupted,
    };
    let done = bench.store.records(run).map_err(store_problem)?.len();
    say(&format!(
        "resuming {run}: {done} visits of servers are done"
    ));
    let again = load_again(&request, setup.statements.clone(), &mut say);
    let kept = answer(again, request.data)?;
    let Some(kept) = kept else {
        return Ok(exit::INTERRUPTED);
    };
    check_same(plan, setup, &kept).map_err(Failure::Refused)?;
    { bench.store.finish_run(run, RunState::Running, now().1) }.map_err(store_problem)?;
    let place = Place {
        bench,
        lock,
        config,
        files,
    };
    let loaded = Loaded {
        servers: kept.servers,
        jobs: kept.jobs,
    };
    carry_out(&mut replayed, (run, plan), loaded, place)
}

/// The time of day that servers had before.
fn same_clock(setup: &ReplaySetup) -> ClockWish {
    ClockWish {
        at: setup.clock,
        why: "as when the replay began".to_owned(),
        required: true,
    }
}

/// What is executed of statements that have been executed before. What they call was looked at then; what the
/// account of the servers may change is looked at again.
fn consented(setup: &ReplaySetup) -> Consent {
    Consent {
        reads: true,
        functions: setup.functions_allowed,
        writes: setup.statements.iter().any(|one| one.write.is_some()),
    }
}

/// Publishes a replay that is finished.
fn print_again(run: &str, files: Files<'_>, config: &Config) -> Result<u8, Failure> {
    say(&format!("{run} is finished"));
    let replayed = stored(run, config)?;
    publish(&replayed, files, config)?;
    code(&replayed)
}

/// The servers of a plan as they were wished for: without the placebo, which is made of the base.
///
/// Errors: one that already ran cannot be reached, or is another version now.
fn wishes(plan: &Plan, setup: &ReplaySetup) -> Result<Vec<Wish>, Problem> {
    let servers = plan
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    let wish = |(server, settings): (&PlannedServer, &Vec<(String, String)>)| {
        Ok(Wish {
            theirs: as_is::access(&server.installation)?,
            installation: server.installation.clone(),
            settings: settings.clone(),
            named_settings: server.settings.clone(),
        })
    };
    servers.zip(&setup.settings).map(wish).collect()
}

/// The dump or data directory that a replay began with; the bench gets the account that may run servers on
/// copies of it.
fn same_source(
    setup: &ReplaySetup,
    arguments: &Resume,
    (bench, config): (&mut Bench, &Config),
) -> Result<Source, Failure> {
    let source = Source::again(setup)?;
    let cluster_dir = arguments.servers.cluster_dir.as_deref();
    let written = source.check_written(&config.lab, cluster_dir);
    written.map_err(Failure::Refused)?;
    let user = source.server_user(arguments.servers.server_user.as_deref());
    if let Some(user) = user.map_err(Failure::Refused)? {
        Workspace::check_place(&bench.host.workspaces, &user).map_err(Failure::Refused)?;
        bench.host.user = user;
    }
    if let (Some(known), Some(sha256)) = (&setup.data, source.sha256()) {
        same_file(known, Some(sha256)).map_err(Failure::Refused)?;
    }
    Ok(source)
}

/// Refuses other data, and other values, than those that a replay began with.
fn check_same(plan: &Plan, setup: &ReplaySetup, kept: &Kept) -> Result<(), Problem> {
    check_data_sets(plan, setup, &kept.data_sets)?;
    same_values(setup, &sent_sha256(&kept.jobs))
}

/// Refuses servers that have other data than those that a replay began with, and says which restarted.
fn check_data_sets(plan: &Plan, setup: &ReplaySetup, found: &[DataSet]) -> Result<(), Problem> {
    let servers = plan
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    for (server, (known, found)) in servers.zip(setup.data_sets.iter().zip(found)) {
        let name = &server.installation.resolved;
        if found.is_other(known) {
            return Err(Problem::new(format!("{name} has another data set now"))
                .detail("the replay began with another cluster or database there")
                .hint("start a new one: `deltabench replay` with the same arguments"));
        }
        if found.is_other_start(known) {
            say(&format!(
                "{name} restarted since the replay began, or is another restore of the same files: what was \
                 measured before was measured on other caches, or on other rows"
            ));
        }
    }
    Ok(())
}

/// Refuses texts and values that are not those that a replay began with; `found` is their hash.
fn same_values(setup: &ReplaySetup, found: &str) -> Result<(), Problem> {
    if setup
        .sent_sha256
        .as_deref()
        .is_none_or(|known| known == found)
    {
        return Ok(());
    }
    Err(
        Problem::new("the values of the statements are not what they were")
            .detail("other values were made up from the tables than when the replay began")
            .hint("start a new one: `deltabench replay` with the same arguments"),
    )
}

/// Refuses a file that is not the one that a replay began with.
fn same_file(known: &ReplayedFile, found: Option<&str>) -> Result<(), Problem> {
    if known.sha256.as_deref() == found {
        return Ok(());
    }
    Err(Problem::new(format!("{} is not what it was", known.path))
        .detail("the replay began with other content")
        .hint("start a new one: `deltabench replay` with the same arguments"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::replayed::WeightedBy;
    use deltabench_model::work::Work;

    fn setup() -> ReplaySetup {
        let file = || ReplayedFile {
            path: String::new(),
            sha256: None,
        };
        ReplaySetup {
            capture: file(),
            data: Some(file()),
            directory_database: Some("shop".to_owned()),
            weighted_by: WeightedBy::Time,
            impact: 0.001,
            budget_seconds: 60.0,
            settings: Vec::new(),
            data_sets: Vec::new(),
            clock: None,
            timeout_seconds: 60,
            made_up: true,
            functions_allowed: false,
            sent_sha256: None,
            mix: None,
            statements: Vec::new(),
        }
    }

    #[test]
    fn a_replay_that_goes_on_allows_no_functions_that_the_user_did_not_allow() {
        let mut setup = setup();
        assert!(consented(&setup).reads && !consented(&setup).functions);
        setup.functions_allowed = true;
        assert!(consented(&setup).functions);
        // Of an older plan nobody knows.
        let mut old = serde_json::to_value(&setup).unwrap();
        old.as_object_mut().unwrap().remove("functions_allowed");
        let old: ReplaySetup = serde_json::from_value(old).unwrap();
        assert!(!consented(&old).functions);
    }

    #[test]
    fn a_replay_does_not_go_on_with_other_values_than_it_began_with() {
        let mut setup = setup();
        same_values(&setup, "a").unwrap();
        setup.sent_sha256 = Some("a".to_owned());
        same_values(&setup, "a").unwrap();
        let refused = same_values(&setup, "b").unwrap_err();
        assert!(refused.error.contains("not what they were") && refused.hint.is_some());
    }

    #[test]
    fn a_mix_that_is_wanted_and_not_planned_is_told() {
        let mut plan = deltabench_testkit::small_run::plan();
        let mut planned = setup();
        plan.work = Work::Replay(planned.clone());
        assert!(without_mix(None, &plan).is_none());
        assert!(without_mix(Some(2), &plan).is_some_and(|why| why.contains("no statement fits")));
        planned.mix = Some(2);
        plan.work = Work::Replay(planned);
        assert!(without_mix(Some(2), &plan).is_none());
    }
}
