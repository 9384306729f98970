//! `deltabench nightly`: the newest version with an anchor and the version of the night before, then what
//! seems to have changed once more, in other hours.

mod tries;

use crate::arguments::global::Global;
use crate::arguments::shape::{HoursWord, InconclusiveWord};
use crate::arguments::trend::NightlyArguments;
use crate::arguments::{Arguments, Command};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::interrupt;
use crate::kinds;
use crate::kinds::workloads::{self, arguments::Compare};
use crate::pause;
use crate::ready::{self, Sides};
use crate::request::{self, first_given};
use crate::store::{open_store, store_problem, unusable};
use crate::targets::resolve_servers;
use crate::trend::{METRICS, Night, changes_of_runs, hosts, places};
use clap::{Args, Parser};
use deltabench_compare::comparison::Metric;
use deltabench_compare::thresholds::HOUR_APART_MS;
use deltabench_lab::{HostTrend, Version, is_night, version_key};
use deltabench_model::exit;
use deltabench_model::fact::ToldByNight;
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::plan::{PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::to_f64;
use deltabench_observe::host_identity;
use deltabench_report::words;
use deltabench_run::session::SessionEnd;
use deltabench_store::{LOCK_NAME, RunState, Store};
use deltabench_trend::TRIED_FOR_MS;
use std::collections::BTreeSet;
use std::fs::File;
use tries::{Try, tries};

/// Exit codes of a comparison after which its result can be looked at.
const HAS_A_RESULT: [u8; 3] = [0, 1, 3];

/// Carries out a night.
pub fn nightly(arguments: &NightlyArguments, config: &Config) -> Result<u8, Failure> {
    let gap = gap(arguments).map_err(Failure::Refused)?;
    let options = &arguments.options;
    check(options)?;
    let (anchor, new) = sides(arguments, config).map_err(Failure::Refused)?;
    let alone = alone(config)?;
    let left = Left::of(&open_store(config)?, alone.is_some())?;
    left.lines.iter().for_each(|line| say(line));
    let before = runs_so_far(config)?;
    let is_dry = options.iter().any(|option| option == "--dry-run");
    match third(&anchor, &new, config)? {
        Third::Same => say(&format!(
            "{} is the build of the night before: it is not measured again",
            new.installation.resolved
        )),
        known => {
            let mut targets = vec![arguments.anchor.clone()];
            targets.extend(known.target());
            targets.push(arguments.new.clone());
            let code = compare(&targets, options, config)?;
            if is_dry || !HAS_A_RESULT.contains(&code) {
                return Ok(code);
            }
        }
    }
    if is_dry {
        return Ok(0);
    }
    let end = try_again((arguments.tries, gap), (&anchor, &new), options, config)?;
    let code = conclude(&before, left.untold, config)?;
    drop(alone);
    Ok(match end {
        FollowUp::Interrupted => exit::INTERRUPTED,
        _ => code,
    })
}

/// The pause before a try, seconds.
fn gap(arguments: &NightlyArguments) -> Result<f64, Problem> {
    let gap = request::pause(&arguments.gap)?;
    if arguments.tries > 0 && gap * 1e3 < to_f64(HOUR_APART_MS.unsigned_abs()) {
        return Err(
            Problem::new(format!("--gap {} is too short", arguments.gap))
                .detail("runs within 10 minutes have the same luck: such a try would not count")
                .hint("leave it out, or measure without tries: --tries 0"),
        );
    }
    Ok(gap)
}

/// The anchor and the new version; they differ.
fn sides(
    arguments: &NightlyArguments,
    config: &Config,
) -> Result<(PlannedServer, PlannedServer), Problem> {
    let specs = [&arguments.anchor, &arguments.new].map(|text| text.parse::<TargetSpec>());
    let specs = specs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let found = resolve_servers(&specs, config)?;
    let [anchor, new] = found.as_slice() else {
        return Err(Problem::new("a night needs an anchor and a new version"));
    };
    if anchor.remote.is_some() || new.remote.is_some() {
        return Err(
            Problem::new("a night cannot use a server that already runs (`dsn:`)")
                .detail("nobody knows whether it is the same build tomorrow")
                .hint("name a version, a directory, or a commit"),
        );
    }
    let (anchor, new) = (server(anchor), server(new));
    if version_key(&anchor) == version_key(&new) {
        return Err(
            Problem::new("the new version is the anchor: both are one build")
                .hint("name an older version with --anchor, one that stays"),
        );
    }
    Ok((anchor, new))
}

fn server(installation: &Installation) -> PlannedServer {
    PlannedServer::new(Role::Candidate, installation.clone())
}

/// Whether `compare` understands the options and could measure with them, and a night can use them.
fn check(options: &[String]) -> Result<(), Failure> {
    let compare = readable(options).map_err(Failure::Refused)?;
    check_compare(&compare).map_err(Failure::Refused)?;
    let request = workloads::request(&compare).map_err(Failure::Refused)?;
    let sides = Sides {
        base: &compare.base,
        candidates: &compare.candidates,
        conditions: &compare.conditions,
    };
    ready::check(&request, &sides).map(drop)
}

/// The options as those of a comparison.
fn readable(options: &[String]) -> Result<Box<Compare>, Problem> {
    if let Some(name) = options
        .iter()
        .find(|option| option.starts_with("--candidate-set"))
    {
        return Err(
            Problem::new(format!("{name}: a night compares builds, not settings"))
                .hint("set it for all with --set, or measure it with `deltabench compare`"),
        );
    }
    if let Some(name) = options.iter().find(|option| is_global(option)) {
        return Err(Problem::new(format!("{name} stands after --"))
            .detail("it is for the whole night")
            .hint("write it before --"));
    }
    match parsed(&["a".to_owned(), "b".to_owned()], options)? {
        kinds::Command::Compare(compare) => Ok(compare),
        _ => Err(Problem::new(
            "the options after -- are not those of `compare`",
        )),
    }
}

/// Refuses what a night says and does itself.
fn check_compare(compare: &Compare) -> Result<(), Problem> {
    // The first one stands for the version of the night.
    if let Some(target) = compare.candidates.get(1) {
        return Err(Problem::new(format!("after --: `{target}` is a target"))
            .detail("a night measures its anchor, the version of the night before, and the new one")
            .hint("write only options of `deltabench compare` there, for example -- --quick"));
    }
    let (shape, conditions) = (&compare.shape, &compare.conditions);
    let (ending, hours) = (&shape.ending, &shape.sessions);
    let again = [
        (hours.sessions.is_some(), "--sessions"),
        (hours.gap.is_some(), "--gap"),
        (ending.confirm, "--confirm"),
        (hours.sensitivity, "--sensitivity"),
    ];
    let is_open_a_pass = ending.on_inconclusive == InconclusiveWord::Pass;
    let gates = [
        (ending.gate, "--gate"),
        (ending.not_worse_than.is_some(), "--not-worse-than"),
        (!ending.gate_on.is_empty(), "--gate-on"),
        (hours.gate_hours == HoursWord::Another, "--gate-hours"),
        (is_open_a_pass, "--on-inconclusive"),
    ];
    let configured = [
        (conditions.configuration.is_some(), "--config"),
        (
            conditions.candidate_configuration.is_some(),
            "--candidate-config",
        ),
        (compare.sustained.is_some(), "--sustained"),
    ];
    for (options, why, way_out) in [
        (
            &again[..],
            "a night is one run, and its tries measure again in other hours what is suspected",
            "--tries and --gap of `nightly` stand before --",
        ),
        (
            &gates,
            "a night ends with 1 if a regression is confirmed, and with 3 if one is suspected",
            "`deltabench compare` has gates",
        ),
        (
            &configured,
            "a night looks for builds with the usual configuration, and would never find the one before",
            "--set changes a setting of all servers",
        ),
    ] {
        if let Some(name) = first_given(options) {
            let what = format!("after --: a night cannot use {name}");
            return Err(Problem::new(what)
                .detail(why)
                .hint(format!("leave out {name}; {way_out}")));
        }
    }
    Ok(())
}

/// Whether an option is one of every command.
fn is_global(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    let known = Global::augment_args(clap::Command::new("night"));
    let mut longs = known.get_arguments().filter_map(clap::Arg::get_long);
    longs.any(|long| name.strip_prefix("--") == Some(long))
}

/// A comparison as if it had been typed.
fn parsed(targets: &[String], options: &[String]) -> Result<kinds::Command, Problem> {
    let words = ["deltabench", "compare"].map(str::to_owned).into_iter();
    let words = words.chain(targets.iter().chain(options).cloned());
    match Arguments::try_parse_from(words).map(|parsed| parsed.command) {
        Ok(Command::Measure(measure)) => Ok(measure),
        Ok(_) => Err(Problem::new(
            "the options after -- are not those of `compare`",
        )),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            Err(Problem::new(format!("after --: {first}"))
                .hint("write options of `deltabench compare` there, for example -- --quick"))
        }
    }
}

fn compare(targets: &[String], options: &[String], config: &Config) -> Result<u8, Failure> {
    say(&format!("deltabench compare {}", targets.join(" ")));
    let command = parsed(targets, options).map_err(Failure::Refused)?;
    kinds::measure(command, config)
}

/// The third version of a night.
enum Third {
    /// The version that was measured last, by how it can be asked for.
    Before(String),
    /// None: it is the first night, or the build is gone.
    Nothing,
    /// The new version is that one.
    Same,
}

impl Third {
    fn target(&self) -> Option<String> {
        match self {
            Self::Before(target) => Some(target.clone()),
            Self::Nothing | Self::Same => None,
        }
    }
}

/// Looks for the version of the night before.
fn third(anchor: &PlannedServer, new: &PlannedServer, config: &Config) -> Result<Third, Failure> {
    let Some(host) = this_host(&METRICS[..1], config)?.into_iter().next() else {
        return Ok(Third::Nothing);
    };
    check_in_place(&host, new).map_err(Failure::Refused)?;
    let (base, own) = (version_key(anchor), version_key(new));
    let name = |at: usize| {
        host.versions
            .get(at)
            .map_or("", |version| version.name.as_str())
    };
    let is_old = |at: usize| {
        host.versions
            .get(at)
            .is_some_and(|version| version.identity == base)
    };
    if let Some(era) = host.eras().iter().find(|era| is_old(era.before)) {
        say(&format!(
            "note: {} follows {} since {}: name it with --anchor",
            name(era.after),
            name(era.before),
            words::date(era.at_unix_ms)
        ));
    }
    let last = host.last_beside(&base, new, |_| true);
    let earlier = host.last_beside(&base, new, |version| version.identity != own);
    let version = |at: Option<usize>| at.and_then(|at| host.versions.get(at));
    let is_measured = version(last).is_some_and(|last| last.identity == own);
    if is_measured && (earlier.is_none() || host.has_step(&own)) {
        return Ok(Third::Same);
    }
    let Some(earlier) = version(earlier).filter(|earlier| earlier.identity != base) else {
        if let Some(other) = version(host.last_beside_any(&base)) {
            say(&other_line(other, new));
        }
        return Ok(Third::Nothing);
    };
    let target = places::target(&earlier.installation);
    let found = target.parse::<TargetSpec>();
    let found = found.and_then(|spec| resolve_servers(&[spec], config));
    let is_there = |found: &Vec<Installation>| {
        let mut all = found.iter().map(server);
        all.any(|found| version_key(&found) == earlier.identity)
    };
    if found.as_ref().is_ok_and(is_there) {
        return Ok(Third::Before(target));
    }
    say(&format!(
        "note: {} of the night before is not there any more; only anchor and new version are measured",
        earlier.name
    ));
    Ok(Third::Nothing)
}

/// Why the version of the night before is not measured again.
fn other_line(before: &Version, new: &PlannedServer) -> String {
    let differs = match before.installation.origin == new.installation.origin {
        true => "another major version, or built or set in another way",
        false => "from another place, and so perhaps built in another way",
    };
    format!(
        "note: the night before measured {}, which is not of the line of {}: it is {differs}. Only anchor \
         and new version are measured, and no step between the two is judged",
        before.name,
        new.name()
    )
}

/// A directory that holds another build each night leaves nothing to compare with.
fn check_in_place(host: &HostTrend, new: &PlannedServer) -> Result<(), Problem> {
    let build = &new.installation;
    let is_other = |known: &&Version| {
        let known = &known.installation;
        build.origin == Origin::Path
            && known.bin_dir == build.bin_dir
            && known.binary_sha256 != build.binary_sha256
    };
    let Some(earlier) = host.versions.iter().find(is_other) else {
        return Ok(());
    };
    Err(Problem::new(format!(
        "{} held another build in an earlier night",
        build.asked
    ))
    .detail(format!(
        "{} is gone, so a step from it cannot be measured, and no change confirmed",
        earlier.name
    ))
    .hint("give each build a directory, for example path:/opt/nightly-2026-11-25, or name commits"))
}

/// What the lab knows of this machine as it is now, metric by metric.
fn this_host(metrics: &[Metric], config: &Config) -> Result<Vec<HostTrend>, Failure> {
    let store = open_store(config)?;
    let mut all = hosts(&store, metrics, None)?;
    match host_identity() {
        Some(here) => all.retain(|host| host.machine == here.uid && host.class == here.class),
        // It cannot keep an identifier: the newest runs are those of this lab's own machine.
        None => {
            let newest = all.first().map(|host| host.machine.clone());
            all.retain(|host| Some(&host.machine) == newest.as_ref());
        }
    }
    Ok(all)
}

/// A lock of the nights of a lab, which ends with the process. A night waits for minutes between its runs,
/// and another one may begin then.
const NIGHT_LOCK: &str = "night.lock";

/// Held while no other night of this lab is under way; absent if one is.
fn alone(config: &Config) -> Result<Option<File>, Failure> {
    // Made with the directory, if there was none.
    let path = open_store(config)?.lab().join(NIGHT_LOCK);
    let mut options = File::options();
    let opened = options.create(true).write(true).truncate(false).open(&path);
    let file = opened
        .map_err(|error| Failure::Refused(unusable(format!("{}: {error}", path.display()))))?;
    Ok(file.try_lock().is_ok().then_some(file))
}

/// What is left of earlier nights that were stopped before their end.
struct Left {
    /// A line for each unfinished run.
    lines: Vec<String>,
    /// Finished runs: no night has said what they found.
    untold: BTreeSet<String>,
}

impl Left {
    /// `is_alone`: no other night is under way, to which these runs may belong.
    fn of(store: &Store, is_alone: bool) -> Result<Self, Failure> {
        let mut left = Self {
            lines: Vec::new(),
            untold: BTreeSet::new(),
        };
        // A run that is measured now is not left over; the night itself will be refused.
        let is_busy = deltabench_proc::locks::is_locked(&store.lab().join(LOCK_NAME));
        if is_busy || !is_alone {
            return Ok(left);
        }
        let untold = store.untold().map_err(store_problem)?;
        for run in store.runs().map_err(store_problem)? {
            let is_fresh = now().1 - run.state_unix_ms <= TRIED_FOR_MS;
            let plan = store.plan(&run.run).map_err(store_problem)?;
            if run.state == RunState::Planned || !is_fresh || !is_night(&plan.command) {
                continue;
            }
            if run.state == RunState::Finished {
                // What counts instructions belongs to a run that says all.
                if untold.contains(&run.run) && !run.counts {
                    left.untold.insert(run.run);
                }
                continue;
            }
            left.lines.push(format!(
                "note: {} of an earlier night ended after {} of {} blocks and counts for nothing yet: \
                 `deltabench resume {}` continues it",
                run.run, run.blocks_done, run.blocks_planned, run.run
            ));
        }
        Ok(left)
    }
}

/// The runs of the lab.
fn runs_so_far(config: &Config) -> Result<BTreeSet<String>, Failure> {
    let runs = open_store(config)?.runs().map_err(store_problem)?;
    Ok(runs.into_iter().map(|run| run.run).collect())
}

/// Measures again what is suspected, a run for each pair of versions. One that cannot be measured does not
/// end the others.
fn try_again(
    (most, gap): (usize, f64),
    (anchor, new): (&PlannedServer, &PlannedServer),
    options: &[String],
    config: &Config,
) -> Result<FollowUp, Failure> {
    let flag = interrupt::flag()?;
    let (anchor, new) = (version_key(anchor), version_key(new));
    let mut done: BTreeSet<(String, String)> = BTreeSet::new();
    while done.len() < most {
        let known = this_host(&METRICS, config)?;
        let open = tries(&known, (&anchor, &new), now().1);
        let is_new = |one: &&Try| !done.contains(&(one.from.clone(), one.to.clone()));
        let Some(next) = open.iter().find(is_new) else {
            break;
        };
        let ended = known.iter().filter_map(HostTrend::ended_ms).max();
        let what = format!("the try of {} against {}", next.to, next.from);
        let pause = pause::pause(
            ended.unwrap_or(0),
            gap,
            (&what, "deltabench nightly"),
            &flag,
        );
        if pause == SessionEnd::Interrupted {
            return Ok(FollowUp::Interrupted);
        }
        done.insert((next.from.clone(), next.to.clone()));
        let options = tries::only(options, &next.workloads);
        match compare(&[next.from.clone(), next.to.clone()], &options, config) {
            Ok(exit::INTERRUPTED) => return Ok(FollowUp::Interrupted),
            Ok(_) => {}
            Err(failure) => say(&failure.problem().to_string()),
        }
    }
    Ok(FollowUp::Finished)
}

/// Says what changed, and returns the exit code of the night. `left`: runs of earlier nights of which nothing
/// was said.
fn conclude(
    before: &BTreeSet<String>,
    left: BTreeSet<String>,
    config: &Config,
) -> Result<u8, Failure> {
    for run in &left {
        say(&format!(
            "note: {run} is of an earlier night that was stopped before its end; what it found is said here"
        ));
    }
    let mut own = left;
    own.extend(runs_so_far(config)?.difference(before).cloned());
    let mut store = open_store(config)?;
    let mut code = 0;
    for host in this_host(&METRICS, config)? {
        let night = changes_of_runs(&host, &own, &store)?;
        print_stdout(&night.lines.join("\n"))?;
        code = code_with(code, &night);
    }
    for run in store.untold().map_err(store_problem)?.intersection(&own) {
        let told = ToldByNight(now().1);
        { store.add_fact(run, (None, None), &told) }.map_err(store_problem)?;
    }
    Ok(code)
}

/// The exit code of a night with what one more metric says. One in which other load disturbed all cells must
/// not look like one without a change.
fn code_with(code: u8, night: &Night) -> u8 {
    match (code, night) {
        (_, Night { regressed, .. }) if *regressed => exit::REGRESSION,
        (0 | exit::UNFIT, Night { is_open, .. }) if *is_open => exit::INCONCLUSIVE,
        (0, Night { could_say, .. }) if !could_say => exit::UNFIT,
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_a_killed_night_left_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let mut plan = deltabench_testkit::small_run::plan();
        let night = ["deltabench", "--lab", "x", "nightly", "--anchor", "a", "b"];
        for (name, command, state) in [
            ("killed", &night[..], RunState::Running),
            ("finished", &night, RunState::Finished),
            (
                "compared",
                &["deltabench", "compare", "--", "nightly"],
                RunState::Running,
            ),
        ] {
            plan.command = words(command);
            store.create_run(name, &plan, state, now().1).unwrap();
        }
        let left = Left::of(&store, true).unwrap();
        let told = left.lines;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("killed of an earlier night ended after 0 of 8 blocks"));
        assert_eq!(left.untold, BTreeSet::from(["finished".to_owned()]));
        // Another night is under way: it will say what its runs found.
        assert!(Left::of(&store, false).unwrap().lines.is_empty());
        let fact = ToldByNight(5);
        store.add_fact("finished", (None, None), &fact).unwrap();
        assert!(Left::of(&store, true).unwrap().untold.is_empty());
    }

    #[test]
    fn the_night_after_a_killed_one_tells_what_its_try_confirmed() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let hour = 3_600_000;
        // Killed after its try, and before its report.
        for (name, ago) in [("raised", 5), ("tried", 3)] {
            let mut plan = deltabench_testkit::labs::plan(8);
            plan.command = words(&["deltabench", "nightly", "--anchor", "a", "b"]);
            // The candidate follows the base in their order.
            plan.servers[2].installation.version_num += 2;
            let at = now().1 - ago * hour;
            deltabench_testkit::labs::add(&mut store, (name, &plan), at);
            deltabench_testkit::small_run::keep(&mut store, name, [0.9, 1.0, 1.0]);
            { store.finish_run(name, RunState::Finished, at + hour / 6) }.unwrap();
        }
        let left = Left::of(&store, true).unwrap().untold;
        let both = ["raised", "tried"].map(str::to_owned);
        assert_eq!(left, BTreeSet::from(both));
        let host = hosts(&store, &METRICS, None).unwrap().remove(0);
        let night = changes_of_runs(&host, &left, &store).unwrap();
        let said = night.lines.join("\n");
        assert!(night.regressed && said.contains("confirmed"), "{said}");
        assert!(said.contains("raised by raised, tried by tried"), "{said}");
        // Without these runs the night would say nothing of it.
        let none = changes_of_runs(&host, &BTreeSet::new(), &store).unwrap();
        assert!(!none.regressed && !none.is_open);
    }

    #[test]
    fn a_night_that_other_load_disturbed_does_not_say_that_nothing_changed() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let mut night = |name: &str, cells: usize| {
            let plan = deltabench_testkit::labs::plan(8);
            let at = now().1 - 3_600_000;
            deltabench_testkit::labs::add(&mut store, (name, &plan), at);
            let mut slices = deltabench_testkit::small_run::slices([0.5, 1.0, 1.0]);
            for slice in &mut slices {
                let is_disturbed = usize::try_from(slice.cell.0).unwrap() < cells;
                slice.steal_ns = is_disturbed.then_some(slice.duration_ns / 10);
            }
            deltabench_testkit::small_run::keep_slices(&mut store, name, &slices);
            store
                .finish_run(name, RunState::Finished, at + 600_000)
                .unwrap();
            let host = hosts(&store, &METRICS, None).unwrap().remove(0);
            changes_of_runs(&host, &BTreeSet::from([name.to_owned()]), &store).unwrap()
        };
        let some = night("some", 1);
        let words: Vec<&str> = some
            .lines
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        let said = words.join(" ");
        assert!(
            some.could_say && said.contains("disturbed 1 of 3 cells of these runs"),
            "{said}"
        );
        assert_eq!(code_with(0, &some), 0);
        let all = night("all", 3);
        assert!(!all.could_say && !all.regressed, "{}", all.lines.join(" "));
        assert_eq!(
            [0, 1, 3].map(|code| code_with(code, &all)),
            [exit::UNFIT, 1, 3]
        );
    }

    #[test]
    fn options_are_those_of_compare() {
        assert!(check(&words(&["--quick", "--only", "scan"])).is_ok());
        let refused = |given: &[&str]| {
            let refused = check(&words(given)).unwrap_err();
            assert!(matches!(refused, Failure::Refused(_)), "{refused:?}");
            refused.problem().to_string()
        };
        let wrong = refused(&["--quikc"]);
        assert!(
            wrong.contains("after --: unexpected argument '--quikc'"),
            "{wrong}"
        );
        let lab = refused(&["--lab=x"]);
        assert!(lab.contains("--lab=x stands after --"), "{lab}");
        let setting = refused(&["--candidate-set", "jit=on"]);
        assert!(setting.contains("builds, not settings"), "{setting}");
        for (given, why) in [
            (&["--quick", "b"][..], "`b` is a target"),
            (&["--sessions", "3"], "cannot use --sessions"),
            (&["--gap", "1h"], "cannot use --gap"),
            (&["--confirm"], "cannot use --confirm"),
            (&["--sensitivity"], "cannot use --sensitivity"),
            (&["--gate"], "cannot use --gate\n"),
            (&["--not-worse-than", "2%"], "cannot use --not-worse-than"),
            (&["--gate-on", "cpu"], "cannot use --gate-on"),
            (&["--gate-hours", "another"], "cannot use --gate-hours"),
            (
                &["--on-inconclusive", "pass"],
                "cannot use --on-inconclusive",
            ),
            (&["--config", "cx10a"], "cannot use --config"),
            (
                &["--candidate-config", "cx10a"],
                "cannot use --candidate-config",
            ),
            (
                &["--only", "scan", "--sustained", "5m"],
                "cannot use --sustained",
            ),
        ] {
            let refused = refused(given);
            assert!(refused.contains(why), "{refused}");
            assert!(refused.contains("hint:"), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_before_both_builds_are_made() {
        for (given, why) in [
            (&["--only", "nosuch"][..], "unknown workload `nosuch`"),
            (&["--blocks", "0"], "zero blocks"),
            (&["--clients", "1000"], "max_connections"),
            (&["--workload", "/nowhere.toml"], "cannot read"),
        ] {
            let refused = check(&words(given)).unwrap_err();
            assert!(matches!(refused, Failure::Refused(_)), "{refused:?}");
            let told = refused.problem().to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
