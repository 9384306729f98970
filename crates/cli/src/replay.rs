//! `deltabench replay`: what other servers do with the user's own statements.

mod as_is;
mod clock;
mod outlook;
mod source;
pub mod timed;

use crate::arguments::conditions::{Checksums, HugePagesWord, Servers};
use crate::arguments::replay::{ReplayArguments, Values, Writes};
use crate::arguments::results::{Format, Report};
use crate::bench::Bench;
use crate::clock::{now, run_name, seed_from_clock};
use crate::config::Config;
use crate::configs::{Chooser, check_named};
use crate::console::{is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::interrupt;
use crate::output::check_files;
use crate::request::{settings, time};
use crate::store::open_store;
use crate::targets::resolve_servers;
use deltabench_capture::Capture;
use deltabench_document::amounts;
use deltabench_model::exit;
use deltabench_model::installation::Installation;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::replayed::{REPLAYED_FORMAT, ReplayTimes, Replayed, TimeVerdict};
use deltabench_model::target::TargetSpec;
use deltabench_model::units::to_u64;
use deltabench_replay::{
    Answer, Consent, Data, DumpFile, End, Request, Stopped, Survey, Wish, check_versions,
    is_of_sessions, is_ours, survey,
};
use deltabench_report::{replayed_json, replayed_markdown, replayed_page, replayed_text};
use deltabench_run::fleet::Host;
use deltabench_server::{ServerUser, Workspace, check_settings};
use source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use timed::{Place, Timing};

/// What every name of a replay begins with.
const PREFIX: &str = "replay-";

/// Replays, or says what would be done.
pub fn replay(arguments: &ReplayArguments, config: &Config) -> Result<u8, Failure> {
    let specs = check(arguments).map_err(Failure::Refused)?;
    let timing = match arguments.plans_only {
        true => None,
        false => Some(Timing::of(arguments).map_err(Failure::Refused)?),
    };
    let capture = Capture::open(&arguments.capture).map_err(Failure::Refused)?;
    if timing.is_some() {
        not_redacted(&capture, arguments).map_err(Failure::Refused)?;
    }
    let clock = clock::wish(arguments, &capture).map_err(Failure::Refused)?;
    let source = Source::of(arguments, config)?;
    let data = source.data();
    let user = source.server_user(arguments.server_user.as_deref());
    let user = user.map_err(Failure::Refused)?;
    if arguments.dry_run {
        let data = (data, user.as_ref());
        let told = outlook::outlook((arguments, &clock), &specs, &capture, data);
        print_stdout(&told.map_err(Failure::Refused)?)?;
        return Ok(0);
    }
    let host = host(arguments, user, config)?;
    let servers = servers((arguments, &source), &specs, config).map_err(Failure::Refused)?;
    let interrupted = interrupt::flag()?;
    let name = format!("{PREFIX}{}", run_name(now().0, seed_from_clock()));
    let store = open_store(config)?;
    let lock = store.lock_run(&name).map_err(Failure::Refused)?;
    let request = Request {
        name: &name,
        servers,
        capture: &capture,
        capture_path: &arguments.capture,
        capture_sha256: sha256(&arguments.capture).map_err(Failure::Refused)?,
        data,
        make_up: arguments.values == Values::MadeUp,
        draws: draws(arguments),
        consent: consent(arguments, &specs),
        mix: arguments.mix,
        copy_limit: copy_limit(arguments).map_err(Failure::Refused)?,
        timed: timing.is_some(),
        clock,
        why: arguments.why,
        timeout_seconds: timeout(arguments).map_err(Failure::Refused)?,
        checksums: checksums(arguments.checksums),
        workspaces: &host.workspaces,
        cache: &host.cache,
        user: &host.user,
        interrupted: &interrupted,
    };
    let bench = Bench {
        store,
        host: host.clone(),
        interrupted: Arc::clone(&interrupted),
    };
    let place = Place {
        bench,
        lock,
        config,
        files: (arguments.json.as_deref(), arguments.html.as_deref()),
    };
    carry_out(&request, timing.as_ref(), place)
}

/// The host; `user` runs the servers if it is not the usual account.
fn host(
    arguments: &ReplayArguments,
    user: Option<ServerUser>,
    config: &Config,
) -> Result<Host, Failure> {
    let mut host = swept_host(&of_machine(arguments), config)?;
    if let Some(user) = user {
        Workspace::check_place(&host.workspaces, &user).map_err(Failure::Refused)?;
        host.user = user;
    }
    Ok(host)
}

/// The servers, which may be on the tables that are there. Says what settings of a data directory they get.
fn servers(
    (arguments, source): (&ReplayArguments, &Source),
    specs: &[TargetSpec],
    config: &Config,
) -> Result<Vec<Wish>, Problem> {
    let data = source.data();
    let servers = match data.is_ours() {
        true => wishes((arguments, source), specs, config)?,
        false => as_is::wishes(specs)?,
    };
    check_distinct(arguments.same_target, &servers)?;
    if let Some(copied) = data.directory() {
        check_versions(copied.directory, &servers)?;
        let told = source::settings_told(copied.directory, arguments.configuration.is_some());
        told?.iter().for_each(|line| say(line));
    }
    Ok(servers)
}

/// Refuses a server that is there twice, unless that is meant.
fn check_distinct(same_target: bool, servers: &[Wish]) -> Result<(), Problem> {
    let is_same = |one: &Wish, other: &Wish| {
        let (first, second) = (&one.installation, &other.installation);
        (&first.bin_dir, &first.remote) == (&second.bin_dir, &second.remote)
            && one.settings == other.settings
    };
    let mut pairs = servers.iter().enumerate().flat_map(|(place, one)| {
        let earlier = servers.iter().take(place);
        earlier.map(move |other| (other, one))
    });
    let same = pairs.find(|(one, other)| is_same(one, other));
    let Some((one, other)) = same.filter(|_| !same_target) else {
        return Ok(());
    };
    let (one, other) = (&one.installation, &other.installation);
    Err(Problem::new(format!(
        "{} and {} are the same server",
        one.asked, other.asked
    ))
    .detail(match one.remote {
        Some(_) => format!("both are {}", one.resolved),
        None => format!(
            "both are {} in {}, with the same settings",
            one.resolved,
            one.bin_dir.display()
        ),
    })
    .hint("to compare a server with itself on purpose (an A/A run), add --same-target"))
}

/// Asks the servers, measures them if times are wanted, and publishes.
fn carry_out(
    request: &Request<'_>,
    timing: Option<&Timing>,
    place: Place<'_>,
) -> Result<u8, Failure> {
    let name = request.name;
    say(&match request.data.is_ours() {
        true => format!(
            "{name}: servers run as {} and need about {} MB in {}",
            request.user.name,
            request.disk_bytes() >> 20,
            request.workspaces.display()
        ),
        false => format!("{name}: on servers as they are, in transactions that only read"),
    });
    if let Some(copied) = request.data.directory() {
        let directory = copied.directory;
        say(&format!(
            "copying {} of {} ({} MB{}); it is only read",
            directory.path().display(),
            directory.major(),
            directory.bytes() >> 20,
            match directory.tablespaces() {
                0 => String::new(),
                1 => ", with a tablespace".to_owned(),
                more => format!(", with {more} tablespaces"),
            }
        ));
        if directory.is_backup() {
            say(
                "it is a base backup: a server of one session recovers the first copy, with its log alone",
            );
        }
        let functions = request.consent.functions;
        say(&source::account_told(directory, request.user, functions));
    }
    let found = deltabench_replay::replay(request, &mut say);
    let Some(found) = answer(found, request.data)? else {
        return Ok(exit::INTERRUPTED);
    };
    let Answer {
        replayed,
        kept,
        broken,
    } = found;
    match timing.zip(kept) {
        None => {
            let end = (request.interrupted, timing.is_some(), broken);
            finish(&replayed, place.files, end, place.config)
        }
        Some((timing, kept)) => timed::measure(replayed, kept, (request, timing), place),
    }
}

/// Refuses to time values that were made up: what they find is not what those of the users find.
fn not_redacted(capture: &Capture, arguments: &ReplayArguments) -> Result<(), Problem> {
    if !capture.header.redacted {
        return Ok(());
    }
    let path = arguments.capture.display();
    Err(Problem::new(format!(
        "the values of {path} are made up (capture --redact)"
    ))
    .detail("most of them find no row, so times would be those of other work")
    .hint("add --plans-only, or capture the log without --redact"))
}

/// A dump with what is in it, which is read once before anything starts.
fn read_dump(path: &Path) -> Result<(DumpFile, Survey), Failure> {
    let dump = DumpFile::find(path).map_err(Failure::Refused)?;
    let survey = survey(&dump).map_err(|error| Failure::Refused(error.problem(dump.path())))?;
    Ok((dump, survey))
}

/// How servers run here.
fn of_machine(arguments: &ReplayArguments) -> Servers {
    Servers {
        server_user: arguments.server_user.clone(),
        cluster_dir: arguments.cluster_dir.clone(),
        huge_pages: HugePagesWord::Off,
    }
}

fn checksums(wanted: Checksums) -> Option<bool> {
    match wanted {
        Checksums::On => Some(true),
        Checksums::Off => Some(false),
        Checksums::Default => None,
    }
}

/// Publishes plans and results; `timing` says whether times were wanted and could not be measured, `broken`
/// why the replay could not go on.
fn finish(
    replayed: &Replayed,
    files: Files<'_>,
    (interrupted, timing, broken): (&AtomicBool, bool, Option<Problem>),
    config: &Config,
) -> Result<u8, Failure> {
    if interrupted.load(Ordering::Relaxed) {
        say("interrupted after the last answer: the report is whole");
    }
    if timing && broken.is_none() {
        say("no time was measured: no statement that only reads was executed on all servers");
    }
    publish(replayed, files, config)?;
    if let Some(problem) = broken {
        return Err(Failure::Failed(problem));
    }
    Ok(match code(replayed)? {
        0 if timing => exit::NOT_MEASURED,
        code => code,
    })
}

/// Other files for JSON and page than those in the lab.
type Files<'a> = (Option<&'a Path>, Option<&'a Path>);

/// The answer of a replay; nothing if the user wants to stop. Says what is left.
fn answer<T>(end: End<T>, data: Data<'_>) -> Result<Option<T>, Failure> {
    if let Some(left) = &end.left {
        say(&left.to_string());
    }
    match end.answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Stopped::Refused(problem)) => Err(Failure::Refused(problem)),
        Err(Stopped::Failed(problem)) => Err(Failure::Failed(problem)),
        Err(Stopped::Interrupted) => {
            say(match (end.left, data) {
                (None, data) if data.is_ours() => {
                    "interrupted; the servers have ended, and their data are removed"
                }
                _ => "interrupted",
            });
            Ok(None)
        }
    }
}

/// Whether a name is that of a replay whose report is in the lab.
pub fn is_in_lab(name: &str, config: &Config) -> bool {
    name.starts_with(PREFIX) && json_file(name, config).is_file()
}

/// `deltabench report` of a replay.
pub fn report(name: &str, arguments: &Report, config: &Config) -> Result<u8, Failure> {
    let replayed = timed::stored(name, config)?;
    let text = match arguments.format {
        Format::House(deltabench_report::Format::Text) => replayed_text(&replayed, width()),
        Format::House(deltabench_report::Format::Json(_)) => replayed_json(&replayed),
        Format::House(deltabench_report::Format::Markdown) => replayed_markdown(&replayed),
        Format::House(deltabench_report::Format::Html) => replayed_page(&replayed),
        _ => {
            return Err(Failure::Refused(
                Problem::new(format!("{name} is a replay"))
                    .detail("its report has four forms: text, markdown, json and html")
                    .hint("name one of them with --format"),
            ));
        }
    };
    match &arguments.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(&text)?,
    }
    code(&replayed)
}

/// Refuses what reads a run in another way than its report, if the run is a replay.
///
/// Errors: it is one.
pub fn only_reported(run: &str, plan: &Plan, command: &str) -> Result<(), Failure> {
    if plan.work.replay().is_none() {
        return Ok(());
    }
    Err(Failure::Refused(
        Problem::new(format!("{command} does not apply to a replay"))
            .detail(format!(
                "the report of {run} has all that is known: plans, results, times and notes"
            ))
            .hint(format!(
                "`deltabench report {run}`, also with --format json"
            )),
    ))
}

fn json_file(name: &str, config: &Config) -> PathBuf {
    config.lab.join(format!("{name}.json"))
}

fn read(path: &Path) -> Result<Replayed, Problem> {
    let bad = |why: String| Problem::new(format!("cannot read {}", path.display())).detail(why);
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let replayed: Replayed = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    if (replayed.format.as_str(), replayed.version) == REPLAYED_FORMAT {
        return Ok(replayed);
    }
    Err(bad(format!(
        "it is {} version {}",
        replayed.format, replayed.version
    )))
}

/// The exit code.
///
/// Errors: no server could do anything with any statement.
fn code(replayed: &Replayed) -> Result<u8, Failure> {
    let fails_in_time = |times: &ReplayTimes| times.failed_on_candidates > 0;
    let in_time = replayed.times.as_ref().is_some_and(fails_in_time);
    if replayed.has_new_failures() || replayed.has_slower() || in_time {
        return Ok(exit::REGRESSION);
    }
    if replayed.has_answer() {
        let mut candidates = 1..replayed.servers.len();
        let open = candidates.any(|place| replayed.not_compared(place).is_some());
        return Ok(match replayed.times.as_ref().map_or(0, of_times) {
            0 if open => exit::INCONCLUSIVE,
            code => code,
        });
    }
    Err(Failure::Failed(
        Problem::new("nothing could be compared")
            .detail("every statement fails on all servers; the report lists why")
            .hint(
                "dump with owners and privileges (without -O and -x), and all schemas of the statements",
            ),
    ))
}

/// The exit code of times that are not slower.
fn of_times(times: &ReplayTimes) -> u8 {
    let any = |wanted: TimeVerdict| times.workload.iter().any(|whole| whole.verdict == wanted);
    if times.workload.is_empty() && times.blocks == 0 {
        exit::NOT_MEASURED
    } else if times.workload.is_empty() {
        exit::INCONCLUSIVE
    } else if any(TimeVerdict::Unfit) {
        exit::UNFIT
    } else if any(TimeVerdict::Inconclusive) {
        exit::INCONCLUSIVE
    } else {
        0
    }
}

/// Prints what came out, and writes the page and the JSON.
fn publish(replayed: &Replayed, (json, html): Files<'_>, config: &Config) -> Result<(), Failure> {
    let text = replayed_text(replayed, width());
    let json = json.map_or_else(|| json_file(&replayed.name, config), Path::to_owned);
    let own = || config.lab.join(format!("{}.html", replayed.name));
    let html = html.map_or_else(own, Path::to_owned);
    if is_stdout(&json) {
        say(&text);
        print_stdout(&replayed_json(replayed))?;
    } else {
        print_stdout(&text)?;
        write_file(&json, &replayed_json(replayed))?;
        say(&format!("wrote {}", json.display()));
    }
    write_file(&html, &replayed_page(replayed))?;
    say(&format!("wrote {}", html.display()));
    Ok(())
}

/// Refuses what cannot be done, before anything is read.
fn check(arguments: &ReplayArguments) -> Result<Vec<TargetSpec>, Problem> {
    timeout(arguments)?;
    copy_limit(arguments)?;
    let targets = std::iter::once(&arguments.base).chain(&arguments.candidates);
    let specs: Vec<TargetSpec> = targets.map(|text| text.parse()).collect::<Result<_, _>>()?;
    as_is::check(arguments, &specs)?;
    let named = [&arguments.configuration, &arguments.candidate_configuration];
    check_named(named.map(Option::as_deref))?;
    check_own(&arguments.settings)?;
    check_own(&arguments.candidate_settings)?;
    check_files(arguments.json.as_deref(), arguments.html.as_deref())?;
    Ok(specs)
}

/// Refuses settings that servers of a replay do not take from the user: reports would name values that no
/// server has.
fn check_own(texts: &[String]) -> Result<(), Problem> {
    let own = settings(texts)?;
    check_settings(&own)?;
    let chosen = |name: &str| Problem::new(format!("a replay chooses {name} itself"));
    for (name, _) in &own {
        if is_ours(name) {
            let detail = "every server of a replay has the same memory, keeps nothing over a crash and \
                          logs no statement";
            let hint = format!("leave out {name}; `deltabench compare` measures it");
            return Err(chosen(name).detail(detail).hint(hint));
        }
        if is_of_sessions(name) {
            let detail = "every session of a replay has its own: what only reads changes nothing, nothing \
                          waits for ever, and values are printed in one way";
            let hint = match name.eq_ignore_ascii_case("statement_timeout") {
                true => "--timeout is the limit of a statement".to_owned(),
                false => format!("leave out {name}"),
            };
            return Err(chosen(name).detail(detail).hint(hint));
        }
    }
    Ok(())
}

/// What may be executed.
fn consent(arguments: &ReplayArguments, specs: &[TargetSpec]) -> Consent {
    let is_theirs = |spec: &TargetSpec| matches!(spec, TargetSpec::Dsn(_));
    Consent {
        reads: !arguments.no_execute,
        functions: arguments.allow_functions,
        // Nothing is ever written on servers of somebody else.
        writes: !arguments.no_execute
            && arguments.writes == Writes::Copy
            && !specs.iter().any(is_theirs),
    }
}

/// Bytes of a database that is still copied for writes.
fn copy_limit(arguments: &ReplayArguments) -> Result<u64, Problem> {
    let text = arguments.copy_limit.as_deref().unwrap_or(COPY_LIMIT);
    amounts::bytes(text).ok_or_else(|| {
        Problem::new(format!("`{text}` is not a size"))
            .hint("write for example --copy-limit 4GB or 500MB")
    })
}

/// How often each server draws statistics.
fn draws(arguments: &ReplayArguments) -> u32 {
    arguments.draws.unwrap_or(DRAWS)
}

/// How often it does if nothing is asked for.
const DRAWS: u32 = 3;

/// The largest database that is copied for writes if nothing is asked for.
const COPY_LIMIT: &str = "4GB";

/// The limit of a statement, seconds.
fn timeout(arguments: &ReplayArguments) -> Result<u32, Problem> {
    let seconds = time(&arguments.timeout).map_err(|problem| Problem {
        hint: Some("write for example --timeout 60s or 5m".to_owned()),
        ..problem
    })?;
    Ok(u32::try_from(to_u64(seconds.ceil()))
        .unwrap_or(u32::MAX)
        .clamp(1, MOST_SECONDS))
}

/// What a server takes as a time-out: milliseconds in 31 bits.
const MOST_SECONDS: u32 = 2_000_000;

/// The hash of a file, or of the statements in the files of a directory.
fn sha256(path: &Path) -> Result<Option<String>, Problem> {
    if path.is_dir() {
        return Ok(Some(Capture::open(path)?.sha256()));
    }
    deltabench_acquire::sha256_of(path).map(Some)
}

/// The servers with their settings. Downloads and builds happen here.
fn wishes(
    (arguments, source): (&ReplayArguments, &Source),
    specs: &[TargetSpec],
    config: &Config,
) -> Result<Vec<Wish>, Problem> {
    let named = arguments.configuration.as_deref();
    let of_directory = match named {
        Some(_) => None,
        None => source::configuration(source)?,
    };
    let of_base = of_directory
        .as_ref()
        .map(|(name, _)| name.as_str())
        .or(named);
    let of_candidates = arguments.candidate_configuration.as_deref().or(of_base);
    let mut chooser = Chooser::new(&[], None)?;
    for name in [named, arguments.candidate_configuration.as_deref()]
        .into_iter()
        .flatten()
    {
        chooser = chooser.knowing(name, Path::new(""))?;
    }
    if let Some((name, settings)) = &of_directory {
        chooser = chooser.knowing_settings(name, settings)?;
    }
    let of_all = settings(&arguments.settings)?;
    let own = settings(&arguments.candidate_settings)?;
    let wish = |name: Option<&str>, own: &[(String, String)], installation: &Installation| {
        let fitted = chooser.fitted(name, own, &of_all, installation)?;
        let configuration = name.map(|name| ("configuration".to_owned(), name.to_owned()));
        let named = configuration
            .into_iter()
            .chain(of_all.iter().chain(own).cloned());
        Ok(Wish {
            installation: installation.clone(),
            settings: of_all.iter().cloned().chain(fitted.settings).collect(),
            named_settings: named.collect(),
            theirs: None,
        })
    };
    let found = resolve_servers(specs, config)?;
    let servers = found
        .iter()
        .enumerate()
        .map(|(place, installation)| match place {
            0 => wish(of_base, &[], installation),
            _ => wish(of_candidates, &own, installation),
        });
    servers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_its_report_in_the_lab_is_a_replay() {
        let lab = tempfile::tempdir().unwrap();
        let config = Config {
            lab: lab.path().to_owned(),
            cache: lab.path().to_owned(),
            sources: deltabench_acquire::Sources::default(),
        };
        std::fs::write(lab.path().join("replay-1.json"), "{}").unwrap();
        std::fs::write(lab.path().join("other.json"), "{}").unwrap();
        assert!(is_in_lab("replay-1", &config));
        assert!(!is_in_lab("replay-2", &config));
        assert!(!is_in_lab("other", &config));
        assert!(read(&lab.path().join("replay-1.json")).is_err());
    }
}
