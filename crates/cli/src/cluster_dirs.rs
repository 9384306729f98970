//! Directories of clusters that users name (`--cluster-dir`): the lab remembers them, so that the next
//! command finds what a killed run left there, whatever directory that command has.

use crate::console::say;
use deltabench_proc::host::host_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The directory of the lab that has a file for each of them.
const RECORDS: &str = "cluster-dirs";
/// A directory that is not there is forgotten after this time: a run makes it only when it starts servers.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Names that are tried for the file of a record.
const MOST: u32 = 10_000;
/// A directory that is noted as soon as the lab is there: a request that is refused makes no lab.
static WAITING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Record {
    /// The machine: others that share the lab have other disks.
    host: String,
    path: PathBuf,
}

/// Notes a directory that a run is going to use, in the lab or as soon as that is made. A lab that cannot be
/// written to is said, and is no reason to stop.
pub fn remember(lab: &Path, directory: &Path) {
    if !lab.is_dir() {
        *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory.to_owned());
        return;
    }
    let record = Record {
        host: host_name().unwrap_or_default(),
        path: directory.to_owned(),
    };
    if let Err(error) = note(&lab.join(RECORDS), &record) {
        say(&format!(
            "cannot note {} in the lab: {}; if this run is killed, its files stay there until a run with the \
             same --cluster-dir",
            directory.display(),
            error.to_string().to_lowercase()
        ));
    }
}

/// Notes what waits for the lab, which is there now.
pub fn lab_is_there(lab: &Path) {
    let waiting = WAITING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(directory) = waiting {
        remember(lab, &directory);
    }
}

fn note(records: &Path, record: &Record) -> std::io::Result<()> {
    std::fs::create_dir_all(records)?;
    let known = all(records).into_iter().find(|(_, one)| one == record);
    let text = serde_json::to_string(record)?;
    if let Some((file, _)) = known {
        // Written again: the time of the file is that of the last use.
        return std::fs::write(file, text);
    }
    for number in 1..=MOST {
        let file = records.join(format!("{number}.json"));
        match std::fs::File::create_new(&file) {
            Ok(mut file) => return std::io::Write::write_all(&mut file, text.as_bytes()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("too many directories"))
}

/// Those that runs of this lab have used on this machine and that are still there. Forgets the others.
pub fn remembered(lab: &Path) -> BTreeSet<PathBuf> {
    let host = host_name().unwrap_or_default();
    let mut found = BTreeSet::new();
    for (file, record) in all(&lab.join(RECORDS)) {
        if record.host != host {
            continue;
        }
        if record.path.exists() {
            found.insert(record.path);
        } else if is_old(&file) {
            // A file that cannot be removed is looked at again.
            let _ = std::fs::remove_file(file);
        }
    }
    found
}

/// All records with their files; what cannot be read is none.
fn all(records: &Path) -> Vec<(PathBuf, Record)> {
    let files = std::fs::read_dir(records).into_iter().flatten().flatten();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path, serde_json::from_str(&text).ok()?))
    };
    files.filter_map(|file| read(file.path())).collect()
}

fn is_old(file: &Path) -> bool {
    let time = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    let age = time.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_remembered_once_and_forgotten_a_day_after_it_is_gone() {
        let lab = tempfile::tempdir().unwrap();
        assert!(remembered(lab.path()).is_empty());
        let [one, two] = ["one", "two"].map(|name| lab.path().join(name));
        for directory in [&one, &two, &one] {
            remember(lab.path(), directory);
        }
        std::fs::create_dir(&one).unwrap();
        assert_eq!(remembered(lab.path()), BTreeSet::from([one.clone()]));
        let records = lab.path().join(RECORDS);
        let files = || std::fs::read_dir(&records).unwrap().flatten();
        assert_eq!(files().count(), 2, "the second may still be made");
        for file in files() {
            let long_ago = std::time::SystemTime::now() - 2 * KEPT;
            let file = std::fs::File::options().write(true).open(file.path());
            file.unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(remembered(lab.path()), BTreeSet::from([one]));
        assert_eq!(files().count(), 1);
    }

    #[test]
    fn directories_of_another_machine_and_files_of_somebody_else_are_left_alone() {
        let lab = tempfile::tempdir().unwrap();
        let records = lab.path().join(RECORDS);
        let record = Record {
            host: "elsewhere".to_owned(),
            path: lab.path().to_owned(),
        };
        note(&records, &record).unwrap();
        std::fs::write(records.join("2.json"), "notes of mine").unwrap();
        assert!(remembered(lab.path()).is_empty());
        remember(lab.path(), lab.path());
        assert_eq!(
            remembered(lab.path()),
            BTreeSet::from([lab.path().to_owned()])
        );
        let text = std::fs::read_to_string(records.join("2.json")).unwrap();
        assert_eq!(text, "notes of mine");
    }
}
