//! `deltabench fleet check`: what each host says of itself, before an experiment meets it.

use super::read_file;
use super::submit::{drained, engine, out_of_service};
use crate::arguments::fleet::{Check, LookArguments};
use crate::clock::{now, run_name};
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::interrupt;
use deltabench_fleet::engine::{Engine, JobState, Submission};
use deltabench_fleet::file::{EngineWord, FleetFile};
use deltabench_fleet::look::{Answer, Look, Row, ahead_ms, rows, spoiled_servers, who_measures};
use deltabench_fleet::ship;
use deltabench_model::finding::Severity;
use deltabench_model::problem::Problem;
use deltabench_observe::{DiskFacts, HostSample, Outcome, host_identity, preflight, read_host};
use std::ffi::OsString;
use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Exit code if a host is unfit.
const UNFIT: u8 = 4;
/// Time limit of a look, in minutes.
const MINUTES: u32 = 10;
/// How long a host looks at other load, and writes to its disk.
const LOOK: Duration = Duration::from_secs(2);
const FSYNC_FOR: Duration = Duration::from_secs(1);
/// How often answers are looked for: on this machine, and of hosts of a scheduler.
const LOCAL: Duration = Duration::from_millis(200);
const SCHEDULED: Duration = Duration::from_secs(2);

/// Nobody could say later where a lane was measured. Jobs of a scheduler see no home and no variables.
pub const NO_IDENTIFIER: &str =
    "it cannot keep an identifier; as root: install -d -o USER /var/lib/deltabench";

/// A host that was asked.
struct Asked {
    node: String,
    /// The engine's job.
    job: String,
}

/// `deltabench fleet check`.
pub fn check(arguments: &Check, config: &Config) -> Result<u8, Failure> {
    let (file, _) = read_file(&arguments.on)?;
    let (program, hash) = ship::program(&file.shared).map_err(Failure::Failed)?;
    let name = run_name(now().0, u64::from(std::process::id()));
    let directory = file.shared.join("check").join(&name);
    std::fs::create_dir_all(&directory).map_err(|error| cannot_write(&directory, &error))?;
    let clock = || now().1;
    let own = ahead_ms(&directory, "here", &clock).map_err(Failure::Failed)?;
    let engine = engine(&file);
    let (asked, left_out) = ask(
        &file,
        engine.as_ref(),
        (&program, &directory, &name),
        config,
    )?;
    let wait = Duration::from_secs(60 * u64::from(arguments.wait_minutes));
    let answers = answers(&file, engine.as_ref(), (&asked, &directory), wait)?;
    let rows = rows((&hash, own), &answers);
    let mut lines: Vec<String> = rows.iter().flat_map(lines_of).collect();
    lines.extend(left_out);
    print_stdout(&lines.join("\n"))?;
    let unfit = rows.iter().filter(|row| !row.unfit.is_empty()).count();
    if rows.is_empty() {
        return Err(Failure::Refused(
            Problem::new("no host of this fleet takes jobs").detail(lines.join("\n")),
        ));
    }
    std::fs::remove_dir_all(&directory).ok();
    Ok(match unfit {
        0 => 0,
        unfit => {
            say(&format!(
                "exit code 4: {unfit} of {} hosts are unfit",
                rows.len()
            ));
            UNFIT
        }
    })
}

fn cannot_write(place: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(
        Problem::new(format!("cannot write {}", place.display())).detail(error.to_string()),
    )
}

/// Asks every host that takes jobs; the others are lines of the table.
fn ask(
    file: &FleetFile,
    engine: &dyn Engine,
    (program, directory, name): (&Path, &Path, &str),
    config: &Config,
) -> Result<(Vec<Asked>, Vec<String>), Failure> {
    let drained = drained(file);
    let (mut asked, mut left_out) = (Vec::new(), Vec::new());
    for node in engine.nodes().map_err(Failure::Failed)? {
        let ours = drained.iter().find(|one| one.host.node == node.name);
        let why = match ours {
            Some(one) => Some(format!("drained by us: {}", one.why)),
            None => out_of_service(&node),
        };
        if let Some(why) = why {
            left_out.push(format!("{:<16} not asked  {why}", node.name));
            continue;
        }
        let mut command: Vec<OsString> = vec![program.into(), "--offline".into()];
        if file.engine == EngineWord::Local {
            command.extend(["--cache".into(), config.cache.clone().into_os_string()]);
        }
        command.extend(["fleet", "look"].map(OsString::from));
        command.extend([file.shared.as_os_str(), directory.as_os_str()].map(OsString::from));
        command.extend([OsString::from("--node"), OsString::from(&node.name)]);
        if let Some(local) = &file.local {
            command.extend(["--local".into(), local.clone().into_os_string()]);
        }
        let submission = Submission {
            name: format!("dlb-check-{name}-{}", node.name),
            command,
            elements: vec![0],
            at_once: None,
            minutes: MINUTES,
            avoid: Vec::new(),
            only: Some(node.name.clone()),
            after: None,
            directory: directory.to_owned(),
            held: None,
        };
        match engine.submit(&submission) {
            Ok(job) => asked.push(Asked {
                node: node.name,
                job,
            }),
            Err(problem) if problem.of_machine => return Err(Failure::Failed(problem)),
            // A host without the features that the fleet file asks for.
            Err(problem) => left_out.push(format!(
                "{:<16} not asked  {}",
                node.name,
                problem.detail.unwrap_or(problem.error)
            )),
        }
    }
    Ok((asked, left_out))
}

/// Waits for answers; those that take too long are cancelled.
fn answers(
    file: &FleetFile,
    engine: &dyn Engine,
    (asked, directory): (&[Asked], &Path),
    wait: Duration,
) -> Result<Vec<Answer>, Failure> {
    let interrupted = interrupt::flag()?;
    let began = Instant::now();
    let jobs: Vec<String> = asked.iter().map(|one| one.job.clone()).collect();
    let has_answer = |one: &&Asked| Look::read(directory, &one.node).is_some();
    let mut states;
    loop {
        // Asked first: what ends after this has answered by then.
        states = engine.look(&jobs).map_err(Failure::Failed)?;
        let waits = states
            .iter()
            .any(|one| !matches!(one.state, JobState::Ended { .. }));
        let late = began.elapsed() >= wait || interrupted.load(Ordering::Relaxed);
        if asked.iter().all(|one| has_answer(&one)) || !waits || late {
            break;
        }
        std::thread::sleep(match file.engine {
            EngineWord::Local => LOCAL,
            EngineWord::Slurm => SCHEDULED,
        });
    }
    let mut answers = Vec::new();
    for one in asked {
        let answer = Look::read(directory, &one.node).ok_or_else(|| {
            let state = states.iter().find(|seen| seen.job == one.job);
            match state.map(|seen| &seen.state) {
                Some(JobState::Waiting(why)) => format!("its job waits: {why}"),
                Some(JobState::Running(_)) => "its job runs and has not said anything".to_owned(),
                Some(JobState::Ended { how, code }) => {
                    let code = code.map_or_else(String::new, |code| format!(" with {code}"));
                    format!("its job ended{code} ({how}); see {}", directory.display())
                }
                None => "its job is gone".to_owned(),
            }
        });
        if answer.is_err() {
            engine.cancel(&one.job, None).map_err(Failure::Failed)?;
        }
        answers.push((one.node.clone(), answer));
    }
    Ok(answers)
}

fn lines_of(row: &Row) -> Vec<String> {
    let word = match row.unfit.is_empty() {
        true => "fit",
        false => "unfit",
    };
    let mut said: Vec<&String> = row.unfit.iter().chain(&row.warnings).collect();
    said.dedup();
    let Some((first, rest)) = said.split_first() else {
        return vec![format!("{:<16} {word}", row.node)];
    };
    let mut lines = vec![format!("{:<16} {word:<9}  {first}", row.node)];
    lines.extend(rest.iter().map(|text| format!("{:28}{text}", "")));
    lines
}

/// `deltabench fleet look`: what this host says of itself.
pub fn look(arguments: &LookArguments) -> Result<u8, Failure> {
    let (mut unfit, mut warnings) = (Vec::new(), Vec::new());
    let place = local_directory(arguments.local.as_deref());
    let facts = read_host();
    let sample = HostSample::take(LOOK, facts.online_cores);
    let disk = match make_local(&place, arguments.local.is_none()) {
        Ok(()) => Some(DiskFacts::probe(&place, FSYNC_FOR)),
        Err(why) => {
            unfit.push(why);
            None
        }
    };
    for check in preflight(&facts, sample.as_ref(), disk.as_ref()) {
        let text = format!("{}: {}", check.title, check.seen);
        match check.outcome {
            Outcome::Found(Severity::Unfit) => unfit.push(text),
            Outcome::Found(Severity::Confounder) => warnings.push(text),
            _ => {}
        }
    }
    if host_identity().is_none() {
        unfit.push(NO_IDENTIFIER.to_owned());
    }
    match who_measures() {
        Ok(None) => {}
        Ok(Some(who)) => unfit.push(format!("somebody measures there: {who}")),
        Err(problem) => unfit.push(problem.error),
    }
    match spoiled_servers(&arguments.shared) {
        Ok(spoiled) => unfit.extend(
            spoiled
                .iter()
                .map(|name| format!("it sees another server in servers/{name} than was shipped")),
        ),
        Err(problem) => unfit.push(problem.error),
    }
    let clock = || now().1;
    let ahead_ms = ahead_ms(&arguments.answers, &arguments.node, &clock);
    let look = Look {
        node: arguments.node.clone(),
        boot_id: deltabench_proc::host::boot_id(),
        binary_sha256: ship::own_hash().map_err(Failure::Failed)?,
        ahead_ms: ahead_ms.map_err(Failure::Failed)?,
        unfit,
        warnings,
    };
    look.write(&arguments.answers).map_err(Failure::Failed)?;
    Ok(0)
}

/// Where labs of units are on a host.
pub fn local_directory(named: Option<&Path>) -> PathBuf {
    let user = deltabench_proc::host::our_user().unwrap_or(0);
    named.map_or_else(
        || PathBuf::from(format!("/var/tmp/deltabench-fleet-{user}")),
        Path::to_owned,
    )
}

/// Makes it. In a directory that everybody writes, somebody may have taken its name: it has to be ours, and
/// others can write nothing in it.
///
/// Errors: why labs cannot be there.
pub fn make_local(place: &Path, in_public: bool) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", place.display());
    if !in_public {
        return std::fs::create_dir_all(place).map_err(cannot);
    }
    let us = deltabench_proc::host::our_user();
    // Servers that root starts run as another user, from copies in it.
    let mode = if us == Some(0) { 0o711 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot(error)),
        _ => {}
    }
    let found = std::fs::symlink_metadata(place).map_err(cannot)?;
    if !found.is_dir() || Some(found.uid()) != us {
        return Err(format!(
            "{} belongs to somebody else or is a link: see who made it, or set `local` in the fleet file",
            place.display()
        ));
    }
    std::fs::set_permissions(place, Permissions::from_mode(mode)).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_are_in_a_directory_of_ours_and_not_behind_a_link() {
        let public = tempfile::tempdir().unwrap();
        let place = public.path().join("deltabench-fleet-7");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        make_local(&place, true).unwrap();
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o066, 0, "{mode:o}");
        let link = public.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        let why = make_local(&link, true).unwrap_err();
        assert!(why.contains("is a link"), "{why}");
        // Whoever names a place may name a link.
        make_local(&link, false).unwrap();
        // Only root can give directories away; others have those of root.
        let theirs = match std::os::unix::fs::chown(&place, Some(12_345), None) {
            Ok(()) => place,
            Err(_) => PathBuf::from("/usr"),
        };
        assert!(make_local(&theirs, true).is_err());
    }
}
