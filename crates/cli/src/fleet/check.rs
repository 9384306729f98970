//! `deltabench fleet check`: what each host says of itself, before an experiment meets it.

mod copies;

use super::disk::{local_directory, make_local};
use super::read_file;
use super::submit::{drained, engine, out_of_service};
use crate::arguments::fleet::{Check, LookArguments};
use crate::clock::{now, run_name};
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::interrupt;
use deltabench_fleet::engine::{Engine, JobState, Node, Submission};
use deltabench_fleet::file::{Copying, EngineWord, FleetFile};
use deltabench_fleet::look::{Answer, Look, Row, ahead_ms, rows, spoiled_servers, who_measures};
use deltabench_fleet::ship;
use deltabench_fleet::spool::Avoided;
use deltabench_model::exit;
use deltabench_model::finding::Severity;
use deltabench_model::problem::Problem;
use deltabench_observe::{DiskFacts, HostSample, Outcome, host_identity, preflight, read_host};
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

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
    let wait = Duration::from_secs(60 * u64::from(arguments.wait_minutes));
    let (own, answers, left_out) = match file.copy {
        Copying::Shared => by_jobs(&file, &program, wait, config)?,
        Copying::Sbcast => copies::ask(&file, &program, wait)?,
    };
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
    Ok(match unfit {
        0 => 0,
        unfit => {
            say(&format!(
                "exit code 4: {unfit} of {} hosts are unfit",
                rows.len()
            ));
            exit::UNFIT
        }
    })
}

/// What our clock is ahead of theirs, what hosts said, and lines for those that were not asked.
type Told = (i64, Vec<Answer>, Vec<String>);

/// Each host writes its answer into the shared directory.
fn by_jobs(
    file: &FleetFile,
    program: &Path,
    wait: Duration,
    config: &Config,
) -> Result<Told, Failure> {
    let name = run_name(now().0, u64::from(std::process::id()));
    let directory = file.shared.join("check").join(&name);
    std::fs::create_dir_all(&directory).map_err(|error| cannot_write(&directory, &error))?;
    let clock = || now().1;
    let own = ahead_ms(&directory, "here", &clock).map_err(Failure::Failed)?;
    let engine = engine(file);
    let place = (program, directory.as_path(), name.as_str());
    let (asked, left_out) = ask(file, engine.as_ref(), place, config)?;
    let answers = answers(file, engine.as_ref(), (&asked, &directory), wait)?;
    // What a host said that did not answer is kept.
    if answers.iter().all(|(_, answer)| answer.is_ok()) && !answers.is_empty() {
        std::fs::remove_dir_all(&directory).ok();
    }
    Ok((own, answers, left_out))
}

/// Why a host is not asked, as a line of the table.
fn left_out(node: &Node, drained: &[Avoided]) -> Option<String> {
    let ours = drained.iter().find(|one| one.host.node == node.name);
    let why = match ours {
        Some(one) => Some(format!("drained by us: {}", one.why)),
        None => out_of_service(node),
    };
    why.map(|why| not_asked(&node.name, &why))
}

fn not_asked(node: &str, why: &str) -> String {
    format!("{node:<16} not asked  {why}")
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
    let (mut asked, mut left) = (Vec::new(), Vec::new());
    for node in engine.nodes().map_err(Failure::Failed)? {
        if let Some(line) = left_out(&node, &drained) {
            left.push(line);
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
            from: 0,
            at_once: None,
            minutes: MINUTES,
            avoid: Vec::new(),
            only: Some(node.name.clone()),
            after: None,
            directory: directory.to_owned(),
            copied: None,
            held: None,
        };
        match engine.submit(&submission) {
            Ok(job) => asked.push(Asked {
                node: node.name,
                job,
            }),
            Err(problem) if problem.of_machine => return Err(Failure::Failed(problem)),
            // A host without the features that the fleet file asks for.
            Err(problem) => left.push(not_asked(
                &node.name,
                &problem.detail.unwrap_or(problem.error),
            )),
        }
    }
    Ok((asked, left))
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
    // Whoever reads what is printed compares the clocks.
    let ahead_ms = match arguments.print {
        true => Ok(clock()),
        false => ahead_ms(&arguments.answers, &arguments.node, &clock),
    };
    let look = Look {
        node: arguments.node.clone(),
        boot_id: deltabench_proc::host::boot_id(),
        binary_sha256: ship::own_hash().map_err(Failure::Failed)?,
        ahead_ms: ahead_ms.map_err(Failure::Failed)?,
        unfit,
        warnings,
    };
    match arguments.print {
        true => print_stdout(&serde_json::to_string(&look).unwrap_or_default())?,
        false => look.write(&arguments.answers).map_err(Failure::Failed)?,
    }
    Ok(0)
}
