//! What a site's folder holds and what it was made from.

use super::{cannot_write, replace};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::Path;

/// Its file. Without a leading dot, so that copying the folder with `*` takes it along.
pub(super) const MANIFEST: &str = "deltabench-site.json";
/// A file that is there while a site is brought up to date. If it is there before, that was cut short once:
/// pages may be newer than the list says, and of the same length.
const UNFINISHED: &str = "deltabench-site.unfinished";
/// What it says it is. Version 1 also had what runs found, which is next to the store now.
const FORMAT: (&str, u32) = ("deltabench.site", 2);

/// The list of files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    /// By path within the folder.
    pub(super) files: BTreeMap<String, File>,
    /// Whether whoever published last was cut short. Files that are not as listed are left out then.
    #[serde(skip)]
    pub(super) was_cut_short: bool,
}

/// A file that was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct File {
    /// Of what it was made from; absent for one that is made each time.
    pub(super) inputs: Option<String>,
    /// Hash of the page and of the words that were taken out of it: what is made from other inputs may be the
    /// same. Absent for pages of runs, which change with each of their inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) page: Option<String>,
    /// Hash of its bytes.
    pub(super) bytes: String,
    /// How many these are; absent where an older version has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) length: Option<u64>,
}

impl File {
    /// Whether it is there, as long as it was written.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let there = std::fs::metadata(path).ok().filter(Metadata::is_file);
        there.is_some_and(|there| self.length.is_none_or(|length| there.len() == length))
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            format: FORMAT.0.to_owned(),
            version: FORMAT.1,
            files: BTreeMap::new(),
            was_cut_short: false,
        }
    }
}

impl Manifest {
    /// That of a folder; an empty one of a folder that is empty or not there.
    ///
    /// Errors: a folder with files of somebody else, one of a newer version, one that cannot be read.
    pub(super) fn open(directory: &Path) -> Result<Self, Problem> {
        std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
        let path = directory.join(MANIFEST);
        let Ok(text) = std::fs::read_to_string(&path) else {
            let mut files =
                std::fs::read_dir(directory).map_err(|error| cannot_write(directory, &error))?;
            return match files.next() {
                None => Ok(Self::default()),
                Some(_) => Err(foreign(
                    directory,
                    "it has files, and no deltabench-site.json",
                )),
            };
        };
        let known: Self = serde_json::from_str(&text)
            .map_err(|error| foreign(directory, &format!("{MANIFEST}: {error}")))?;
        let (format, newest) = FORMAT;
        if known.format != format || !(1..=newest).contains(&known.version) {
            let what = format!("{MANIFEST} is of format {} {}", known.format, known.version);
            return Err(foreign(directory, &what));
        }
        let mut known = Self {
            version: newest,
            was_cut_short: directory.join(UNFINISHED).exists(),
            ..known
        };
        if known.was_cut_short {
            let is_as_listed = |name: &String, file: &mut File| {
                let there = std::fs::read_to_string(directory.join(name));
                there.is_ok_and(|text| hash(&text) == file.bytes)
            };
            known.files.retain(is_as_listed);
        }
        Ok(known)
    }

    /// Writes it, and that pages may be newer from now on.
    ///
    /// Errors: it cannot be written.
    pub(super) fn begin(&self, directory: &Path) -> Result<(), Problem> {
        self.save(directory)?;
        replace(&directory.join(UNFINISHED), "")
    }

    /// Writes it as that of all pages.
    ///
    /// Errors: it cannot be written.
    pub(super) fn finish(&self, directory: &Path) -> Result<(), Problem> {
        self.save(directory)?;
        let path = directory.join(UNFINISHED);
        std::fs::remove_file(&path).map_err(|error| cannot_write(&path, &error))
    }

    /// Writes it, if it differs from what is there.
    fn save(&self, directory: &Path) -> Result<(), Problem> {
        let path = directory.join(MANIFEST);
        // Strings, numbers and lists alone: they always have a form in JSON.
        let text = serde_json::to_string(self).unwrap_or_default();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        replace(&path, &text)
    }
}

fn foreign(directory: &Path, why: &str) -> Problem {
    Problem::new(format!(
        "{} is not a site of deltabench",
        directory.display()
    ))
    .detail(why)
    .hint("name a directory that is empty or not there yet")
}

/// SHA-256 of a text.
pub(super) fn hash(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}
