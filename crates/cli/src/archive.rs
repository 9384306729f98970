//! `deltabench archive` and `list --sizes`: what runs take on disk, and moving the bulk of old ones to sealed
//! files.

use crate::amounts::{gigabytes, span};
use crate::arguments::archive::ArchiveArguments;
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::store::{measured_now, open, open_to_read, state_word, store_problem};
use deltabench_document::amounts::age;
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_report::words::plural;
use deltabench_store::{Found, RunLock, RunSize, RunState, Sizes, Store, StoreError};

/// Free room for which alone a store is shortened, bytes: its file is written again for that.
const WORTH_SHORTENING: u64 = 1 << 20;

/// Archives runs, takes them back, or checks the sealed files.
pub fn archive(arguments: &ArchiveArguments, config: &Config) -> Result<u8, Failure> {
    let older = older(arguments).map_err(Failure::Refused)?;
    if arguments.check {
        return check(&open(config)?);
    }
    let mut store = match arguments.dry_run {
        true => open_to_read(config)?,
        false => open(config)?,
    };
    let lock = match arguments.dry_run {
        true => None,
        false => Some(lock(&store)?),
    };
    let sizes = store.sizes().map_err(store_problem)?;
    // This command has the lab's lock itself, if it needs it: then no run is measured.
    let measured = match lock {
        Some(_) => None,
        None => measured_now(&store)?,
    };
    let chosen = match older {
        Some(seconds) => by_age(&sizes, seconds, measured.as_deref()),
        None => named((arguments, measured.as_deref()), &store, &sizes)?,
    };
    if arguments.restore {
        restore(&chosen, &mut store, arguments.dry_run)?;
    } else {
        move_out(&chosen, &mut store, arguments.dry_run)?;
    }
    drop(lock);
    Ok(0)
}

/// The age that was given, in seconds.
///
/// Errors: nothing was asked for, or an age that is none.
fn older(arguments: &ArchiveArguments) -> Result<Option<f64>, Problem> {
    let Some(text) = &arguments.older else {
        if arguments.runs.is_empty() && !arguments.check {
            let what = match arguments.restore {
                true => {
                    "name the runs that come back, for example `deltabench archive --restore last`"
                }
                false => "write for example `deltabench archive --older 90d`, or name runs",
            };
            return Err(Problem::new("no runs are named").hint(what));
        }
        return Ok(None);
    };
    let seconds = age(text).ok_or_else(|| {
        Problem::new(format!("--older {text} is not a time"))
            .hint("write for example --older 90d or --older 12h")
    })?;
    Ok(Some(seconds))
}

/// Nothing is measured in the lab meanwhile, and nobody else archives.
fn lock(store: &Store) -> Result<RunLock, Failure> {
    let busy = |problem: Problem| {
        let detail = problem.detail.unwrap_or_default();
        Failure::Refused(
            Problem::new("cannot archive: this lab is busy")
                .detail(detail)
                .hint("wait for the run to end; --dry-run works meanwhile"),
        )
    };
    let locked = store.try_lock_run("archive").map_err(Failure::Failed)?;
    locked.map_err(busy)
}

/// Finished runs that ended so long ago and are not archived. Says which old ones stay, and why.
fn by_age<'a>(sizes: &'a Sizes, seconds: f64, measured_now: Option<&str>) -> Vec<&'a RunSize> {
    let now = now().1;
    let is_old = |run: &&RunSize| seconds_since(run, now) >= seconds && run.sealed.is_none();
    let (finished, others): (Vec<&RunSize>, Vec<&RunSize>) = { sizes.runs.iter() }
        .filter(is_old)
        .partition(|run| run.state == RunState::Finished);
    let begun = others.iter().filter(|run| run.state != RunState::Planned);
    for run in begun {
        say(&format!(
            "{} stays: it is {}, and `deltabench resume` can continue it",
            run.run,
            state_word(&run.run, run.state, measured_now)
        ));
    }
    if finished.is_empty() {
        say(&format!(
            "no finished run outside of the archive is older than {}",
            span(seconds)
        ));
    }
    finished
}

fn seconds_since(run: &RunSize, now_ms: i64) -> f64 {
    let milliseconds = now_ms.saturating_sub(run.state_unix_ms);
    to_f64(u64::try_from(milliseconds).unwrap_or_default()) / 1e3
}

/// The runs that were named.
///
/// Errors: one that is not there, is no run, or is not finished; one that is archived, or is not, to restore.
fn named<'a>(
    (arguments, measured_now): (&ArchiveArguments, Option<&str>),
    store: &Store,
    sizes: &'a Sizes,
) -> Result<Vec<&'a RunSize>, Failure> {
    let mut chosen: Vec<&RunSize> = Vec::new();
    for wanted in &arguments.runs {
        let names = match store.find_any(wanted).map_err(Failure::Refused)? {
            Found::Run(run) => vec![run],
            Found::Execution(_, runs) => runs,
            Found::Bisection(name) => {
                return Err(Failure::Refused(
                    Problem::new(format!("{name} is a bisection"))
                        .detail("it consists of runs that count one point each")
                        .hint("name runs, or archive by age with --older 90d"),
                ));
            }
        };
        let found = |name: &String| sizes.runs.iter().find(|run| run.run == *name);
        for run in names.iter().filter_map(found) {
            if !chosen.iter().any(|known| known.run == run.run) {
                may_move(run, arguments.restore, measured_now).map_err(Failure::Refused)?;
                chosen.push(run);
            }
        }
    }
    Ok(chosen)
}

fn may_move(run: &RunSize, back: bool, measured_now: Option<&str>) -> Result<(), Problem> {
    let name = &run.run;
    match (&run.sealed, back) {
        (None, true) => Err(Problem::new(format!("{name} is not archived"))
            .hint("`deltabench list --sizes` shows which runs are")),
        (Some(file), false) => Err(Problem::new(format!("{name} is archived already"))
            .detail(file.path.display().to_string())
            .hint(format!(
                "`deltabench archive --restore {name}` takes it back"
            ))),
        (None, false) if run.state != RunState::Finished => {
            let state = state_word(name, run.state, measured_now);
            Err(Problem::new(format!("{name} is {state}"))
                .detail("only finished runs are archived: this one may continue")
                .hint("`deltabench resume` continues it"))
        }
        _ => Ok(()),
    }
}

fn move_out(chosen: &[&RunSize], store: &mut Store, dry: bool) -> Result<(), Failure> {
    let (mut moved, mut sealed) = (0, 0);
    for run in chosen {
        let bytes = match dry {
            true => store.sealed_bytes(&run.run).map_err(archive_problem)?,
            false => {
                { store.archive(&run.run, now().1) }
                    .map_err(archive_problem)?
                    .bytes
            }
        };
        moved += run.movable;
        sealed += bytes;
        print_stdout(&format!(
            "{}: {} in the store, {} sealed",
            run.run,
            megabytes(run.movable),
            megabytes(bytes)
        ))?;
    }
    let runs = plural(count(chosen.len()), "run");
    let (from, to) = (megabytes(moved), megabytes(sealed));
    if dry && !chosen.is_empty() {
        let gained = megabytes(moved.saturating_sub(sealed));
        print_stdout(&format!(
            "would move {runs}: {from} of the store become {to} of sealed files, {gained} are gained"
        ))?;
    }
    if dry {
        return Ok(());
    }
    let (_, free) = store.file_bytes().map_err(store_problem)?;
    let shorter = match chosen.is_empty() && free < WORTH_SHORTENING {
        true => return Ok(()),
        false => shorten(store),
    };
    print_stdout(&format!(
        "moved {runs}: {from} of the store are {to} of sealed files now{shorter}"
    ))
}

/// What became of the room in the store's file. A reader or a full disk may keep it from getting shorter; the
/// room is then used by new runs.
fn shorten(store: &mut Store) -> String {
    match store.give_back() {
        Ok(bytes) => format!("; the store's file is {} shorter", megabytes(bytes)),
        Err(error) => format!(
            "; the room stays in the store's file, for new runs or the next `archive`: {error}"
        ),
    }
}

fn restore(chosen: &[&RunSize], store: &mut Store, dry: bool) -> Result<(), Failure> {
    for run in chosen {
        let Some(file) = &run.sealed else { continue };
        if dry {
            print_stdout(&format!(
                "would take back {} from {}",
                run.run,
                file.path.display()
            ))?;
            continue;
        }
        let file = { store.restore(&run.run, now().1) }.map_err(archive_problem)?;
        print_stdout(&format!(
            "{} is in the store again; {} is not needed any more",
            run.run,
            file.path.display()
        ))?;
    }
    Ok(())
}

fn archive_problem(error: StoreError) -> Failure {
    Failure::Failed(error.into())
}

fn check(store: &Store) -> Result<u8, Failure> {
    let mut faults = Vec::new();
    let mut whole = 0;
    for run in store.archived_runs().map_err(store_problem)? {
        match store.fault_of_archive(&run).map_err(store_problem)? {
            None => whole += 1,
            Some(why) => {
                let file = store.archived(&run).map_err(store_problem)?;
                let path = file.map_or_else(String::new, |file| file.path.display().to_string());
                faults.push(format!("{run}: {path}: {why}"));
            }
        }
    }
    if faults.is_empty() {
        print_stdout(&format!("{} can be used", plural(whole, "sealed file")))?;
        return Ok(0);
    }
    let (bad, all) = (count(faults.len()), whole + count(faults.len()));
    Err(Failure::Failed(
        Problem::new(format!(
            "{bad} of {} cannot be used",
            plural(all, "sealed file")
        ))
        .detail(faults.join("\n"))
        .hint("put these files back from a copy of the lab; the runs read as unfit until then"),
    ))
}

/// `deltabench list --sizes`.
pub fn sizes(config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let sizes = store.sizes().map_err(store_problem)?;
    if sizes.runs.is_empty() {
        say(&format!("no runs in {}", config.lab.display()));
        return Ok(0);
    }
    print_stdout(&table(&sizes, measured_now(&store)?.as_deref()))?;
    Ok(0)
}

fn table(sizes: &Sizes, measured_now: Option<&str>) -> String {
    let sealed_bytes = |run: &RunSize| run.sealed.as_ref().map_or(0, |file| file.bytes);
    let mut runs: Vec<&RunSize> = sizes.runs.iter().collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.in_store + sealed_bytes(run)));
    let widest = runs
        .iter()
        .map(|run| run.run.len())
        .max()
        .unwrap_or_default();
    let mut lines = vec![format!(
        "{:<widest$}  {:<11}  {:>9}  {:>9}  {:>9}",
        "run", "state", "in store", "can move", "sealed"
    )];
    for run in runs {
        let sealed = run.sealed.as_ref();
        lines.push(format!(
            "{:<widest$}  {:<11}  {:>9}  {:>9}  {:>9}",
            run.run,
            state_word(&run.run, run.state, measured_now),
            megabytes(run.in_store),
            // What is not finished stays, and what is archived has nothing left to move.
            match run.state == RunState::Finished && sealed.is_none() {
                true => megabytes(run.movable),
                false => "-".to_owned(),
            },
            sealed.map_or_else(|| "-".to_owned(), |file| megabytes(file.bytes))
        ));
    }
    let of_runs: u64 = sizes.runs.iter().map(|run| run.in_store).sum();
    let shared = sizes.file.saturating_sub(of_runs + sizes.free);
    let movable = sizes.runs.iter();
    let movable = movable.filter(|run| run.state == RunState::Finished && run.sealed.is_none());
    lines.push(format!(
        "{}: {} in the store's file ({} of runs, {} shared, {} free), {} in sealed files",
        plural(count(sizes.runs.len()), "run"),
        megabytes(sizes.file),
        megabytes(of_runs),
        megabytes(shared),
        megabytes(sizes.free),
        megabytes(sizes.runs.iter().map(sealed_bytes).sum())
    ));
    lines.push(format!(
        "`deltabench archive` can move {} of finished runs; `--older 90d --dry-run` says what that gains",
        megabytes(movable.map(|run| run.movable).sum())
    ));
    lines.join("\n")
}

/// `4.1 MB`; from 1000 MB on in GB.
fn megabytes(bytes: u64) -> String {
    let megabytes = to_f64(bytes) / to_f64(1 << 20);
    match megabytes < 1000.0 {
        true => format!("{megabytes:.1} MB"),
        false => gigabytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, state: RunState, ended_ms: i64) -> RunSize {
        RunSize {
            run: name.to_owned(),
            state,
            state_unix_ms: ended_ms,
            in_store: 3 << 20,
            movable: 2 << 20,
            sealed: None,
        }
    }

    #[test]
    fn only_finished_runs_of_that_age_move() {
        let now = now().1;
        let day = 86_400_000;
        let runs = vec![
            run("old", RunState::Finished, now - 100 * day),
            run("stopped", RunState::Interrupted, now - 100 * day),
            run("young", RunState::Finished, now - 80 * day),
            // A clock that was set back.
            run("later", RunState::Finished, now + day),
        ];
        let sizes = Sizes {
            runs,
            file: 13 << 20,
            free: 0,
        };
        let names = |seconds: f64| {
            let chosen = by_age(&sizes, seconds, None);
            chosen.iter().map(|run| run.run.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(age("90d").unwrap()), ["old"]);
        assert_eq!(names(age("0d").unwrap()), ["old", "young", "later"]);
        assert!(names(age("1000d").unwrap()).is_empty());
        let text = table(&sizes, None);
        assert!(
            text.contains("stopped  interrupted     3.0 MB          -"),
            "{text}"
        );
        assert!(
            text.contains("13.0 MB in the store's file (12.0 MB of runs, 1.0 MB shared"),
            "{text}"
        );
        assert!(
            text.contains("can move 6.0 MB of finished runs; `--older 90d --dry-run`"),
            "{text}"
        );
    }
}
