//! Gathering: sealed files into the central store. It may be killed at any moment and given again.

use crate::lanes::Lanes;
use crate::seal::{named_hash, unseal};
use crate::spool::{Attempt, Spool};
use crate::whole_file::{failed, sync_directory_of};
use deltabench_model::problem::Problem;
use deltabench_store::{Merged, Sealed, Store, StoreError, UnitEvent};
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
    pub refused: Vec<Problem>,
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
    for unit in &lanes.units {
        for attempt in spool.attempts(unit.unit) {
            for sealed in attempt.sealed() {
                let place = (lab, lanes.execution.as_str(), unit.run.as_str());
                match one(store, place, (&attempt, &sealed), now_unix_ms) {
                    Ok(Merged::Already) => {}
                    Ok(Merged::Filled) => gathered.units.push(unit.unit),
                    Ok(Merged::Beside(run)) => gathered.beside.push(run),
                    Err(problem) if problem.of_machine => return Err(problem),
                    Err(problem) => gathered.refused.push(problem),
                }
            }
            keep_event(store, &lanes.execution, &attempt)?;
        }
    }
    Ok(gathered)
}

/// One that gathers at a time; the lock ends with its process.
fn lock(lab: &Path) -> Result<File, Problem> {
    let path = lab.join("gather.lock");
    let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| failed("lock", &path, &error))
}

/// Merges a file, keeps it in the archive of the lab, and marks it in the spool, in this order: whatever is
/// done already is found done the next time.
fn one(
    store: &mut Store,
    (lab, execution, run): (&Path, &str, &str),
    (attempt, sealed): (&Attempt, &Path),
    now_unix_ms: i64,
) -> Result<Merged, Problem> {
    let hash = named_hash(sealed).unwrap_or_default().to_owned();
    let copy = lab.join("gathering");
    std::fs::remove_dir_all(&copy).ok();
    unseal(sealed, &copy)?;
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
    std::fs::remove_dir_all(&copy).ok();
    let merged = merged.map_err(|error| refused(&error, sealed, &copy))?;
    keep(lab, sealed, &hash)?;
    attempt.set_gathered(&hash)?;
    std::fs::remove_file(sealed).map_err(|error| failed("remove", sealed, &error))?;
    Ok(merged)
}

/// What is wrong with a sealed file, by its name; or with the central store.
fn refused(error: &StoreError, sealed: &Path, copy: &Path) -> Problem {
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
        return Problem::of(error).of_machine();
    }
    let copied = copy.join(deltabench_store::FILE_NAME).display().to_string();
    let text = error.to_string().replace(&copied, "it");
    Problem::new(format!("{} cannot be merged", sealed.display()))
        .detail(text)
        .hint("it stays where it is; the other units are not touched by it")
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
    done().map_err(|error| failed("write", &kept, &error))?;
    Ok(kept)
}

fn keep_event(store: &mut Store, execution: &str, attempt: &Attempt) -> Result<(), Problem> {
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
    let kept = store.add_unit_event(execution, &event);
    kept.map_err(|error| Problem::of(&error).of_machine())
}
