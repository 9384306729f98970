//! Gathering: sealed files into the central store. It may be killed at any moment and given again.

use crate::lanes::{Lane, Lanes};
use crate::seal::{Unsealing, named_hash, unseal};
use crate::spool::{Attempt, Owner, Spool};
use crate::whole_file::{failed, left_over, remove, sync_directory_of};
use deltabench_model::problem::Problem;
use deltabench_store::{Merged, Sealed, Store, StoreError, UnitEvent};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What came of gathering.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Units whose measurements are new in the central store.
    pub units: Vec<u32>,
    /// Runs of attempts beside the one that counts.
    pub beside: Vec<String>,
    /// What could not be taken in, and why. The file stays where it is.
    pub refused: Vec<Refused>,
}

/// A sealed file that was not taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub attempt: Attempt,
    pub file: PathBuf,
    /// Its content is wrong, and stays wrong: only measuring again helps.
    pub damaged: bool,
    pub why: Problem,
}

/// Takes in all sealed files of an execution. `lab` is the directory of the central store.
///
/// Errors: the central store or its directory cannot be written; what is wrong with a sealed file is in the
/// result.
pub fn gather(
    store: &mut Store,
    lab: &Path,
    (spool, lanes): (&Spool, &Lanes),
    now_unix_ms: i64,
) -> Result<Gathered, Problem> {
    let _lock = lock(lab)?;
    let mut gathered = Gathered::default();
    let told = store.unit_events(&lanes.execution);
    let told = told.map_err(|error| Problem::of(&error).of_machine())?;
    // Each would be a transaction, and nothing new.
    let told: BTreeSet<Told> = told.into_iter().map(Told::of).collect();
    for unit in &lanes.units {
        spool.sweep(unit.unit, "");
        let wanted = wanted(spool, lanes.lane_of(unit.unit));
        for attempt in in_order(spool, unit.unit, &wanted) {
            let files = match wanted {
                Wanted::Nothing => Vec::new(),
                _ => attempt.sealed(),
            };
            for sealed in files {
                let place = (lab, lanes.execution.as_str(), unit.run.as_str());
                match one(store, place, (&attempt, &sealed), now_unix_ms) {
                    Ok(Merged::Already) => {}
                    Ok(Merged::Filled) => gathered.units.push(unit.unit),
                    Ok(Merged::Beside(run)) => gathered.beside.push(run),
                    Err((why, _)) if why.of_machine => return Err(why),
                    Err((why, damaged)) => gathered.refused.push(Refused {
                        attempt: attempt.clone(),
                        file: sealed.clone(),
                        damaged,
                        why,
                    }),
                }
            }
            keep_event(store, &lanes.execution, &attempt, &told)?;
        }
    }
    Ok(gathered)
}

/// What of a lane may be taken in.
enum Wanted {
    All,
    /// Nothing yet: one host has to measure all of it.
    Nothing,
    /// This host has; what others measured stands beside.
    First(String),
}

fn wanted(spool: &Spool, lane: Option<&Lane>) -> Wanted {
    match lane {
        // Also after a cancellation: who goes on with it may be another host.
        Some(lane) if lane.one_host => spool.whole_on(lane).map_or(Wanted::Nothing, Wanted::First),
        _ => Wanted::All,
    }
}

/// The attempts at a unit in the order in which they count.
fn in_order(spool: &Spool, unit: u32, wanted: &Wanted) -> Vec<Attempt> {
    let mut attempts = spool.attempts(unit);
    if let Wanted::First(uid) = wanted {
        let is_of = |owner: Owner| owner.host.uid == *uid;
        attempts.sort_by_key(|attempt| !attempt.owner().is_some_and(is_of));
    }
    attempts
}

/// One that gathers at a time; the lock ends with its process.
fn lock(lab: &Path) -> Result<File, Problem> {
    let path = lab.join("gather.lock");
    let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| failed("lock", &path, &error))
}

/// What is wrong, and whether it is the content of the file.
type Wrong = (Problem, bool);

/// Merges a file, keeps it in the archive of the lab, and marks it in the spool, in this order: whatever is
/// done already is found done the next time.
fn one(
    store: &mut Store,
    (lab, execution, run): (&Path, &str, &str),
    (attempt, sealed): (&Attempt, &Path),
    now_unix_ms: i64,
) -> Result<Merged, Wrong> {
    let hash = named_hash(sealed).unwrap_or_default().to_owned();
    let copy = lab.join("gathering");
    remove(&copy);
    unseal(sealed, &copy).map_err(|error| {
        remove(&copy);
        match error {
            Unsealing::Damaged(problem) => (problem, true),
            Unsealing::Failed(problem) => (problem, false),
        }
    })?;
    let bytes = std::fs::metadata(sealed).map_or(0, |data| data.len());
    let merged = store.merge(Sealed {
        lab: &copy,
        sha256: &hash,
        bytes,
        execution,
        unit: attempt.unit,
        attempt: attempt.number,
        run,
        at_unix_ms: now_unix_ms,
    });
    remove(&copy);
    let merged = merged.map_err(|error| refused(&error, sealed, &copy))?;
    let beside = is_beside(&merged, store, (&hash, run));
    let beside = beside.map_err(|error| refused(&error, sealed, &copy))?;
    let kept = keep(lab, sealed, &hash)
        .and_then(|_| attempt.set_gathered(&hash, beside))
        .and_then(|()| {
            std::fs::remove_file(sealed).map_err(|error| failed("remove", sealed, &error))
        });
    kept.map_err(|problem| (problem, false))?;
    Ok(merged)
}

/// Whether the central store has a file beside the one that counts. Somebody who was killed before the mark
/// may have merged it.
fn is_beside(
    merged: &Merged,
    store: &Store,
    (hash, run): (&str, &str),
) -> Result<bool, StoreError> {
    Ok(match merged {
        Merged::Filled => false,
        Merged::Beside(_) => true,
        Merged::Already => store.sealed_as(hash)?.is_some_and(|name| name != run),
    })
}

/// What is wrong with a sealed file, by its name; or with the central store.
fn refused(error: &StoreError, sealed: &Path, copy: &Path) -> Wrong {
    let of_file = match error {
        StoreError::Newer { path, .. }
        | StoreError::Foreign { path }
        | StoreError::Damaged { path, .. }
        | StoreError::UnknownKind { path, .. }
        | StoreError::UnknownRun { path, .. }
        | StoreError::Sqlite { path, .. } => path.starts_with(copy),
        _ => false,
    };
    if !of_file {
        return (Problem::of(error).of_machine(), false);
    }
    let damaged = matches!(
        error,
        StoreError::Damaged { .. } | StoreError::Foreign { .. }
    );
    let copied = copy.join(deltabench_store::FILE_NAME).display().to_string();
    let text = error.to_string().replace(&copied, "it");
    let problem = Problem::new(format!("{} cannot be merged", sealed.display()))
        .detail(text)
        .hint("it stays where it is; the other units are not touched by it");
    (problem, damaged)
}

/// Copies a file into the archive, durably.
fn keep(lab: &Path, sealed: &Path, hash: &str) -> Result<PathBuf, Problem> {
    let archive = lab.join("archive");
    let kept = archive.join(format!("{hash}.sqlite.gz"));
    let beside = archive.join(format!("{hash}.new"));
    let done = || {
        std::fs::create_dir_all(&archive)?;
        std::fs::copy(sealed, &beside)?;
        File::open(&beside)?.sync_all()?;
        std::fs::rename(&beside, &kept)?;
        sync_directory_of(&kept)
    };
    done().map_err(|error| left_over("write", (&kept, &beside), &error))?;
    Ok(kept)
}

/// What tells an event from the others of an execution.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Told(u32, u32, String, i64);

impl Told {
    fn of(event: UnitEvent) -> Self {
        Self(event.unit, event.attempt, event.state, event.at_unix_ms)
    }
}

fn keep_event(
    store: &mut Store,
    execution: &str,
    attempt: &Attempt,
    told: &BTreeSet<Told>,
) -> Result<(), Problem> {
    let (Some(end), Some(owner)) = (attempt.end(), attempt.owner()) else {
        return Ok(());
    };
    let event = UnitEvent {
        unit: attempt.unit,
        attempt: attempt.number,
        state: end.word.word().to_owned(),
        host: format!("{} ({})", owner.host.node, owner.host.uid),
        at_unix_ms: end.at_unix_ms,
        text: end.text,
    };
    if told.contains(&Told::of(event.clone())) {
        return Ok(());
    }
    let kept = store.add_unit_event(execution, &event);
    kept.map_err(|error| Problem::of(&error).of_machine())
}
