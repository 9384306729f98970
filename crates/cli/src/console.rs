//! What is said on stdout and stderr, and files that are written.

use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_store::FREE_SPACE;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Whether a destination is stdout.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file for writing without touching what is in it. Stdout needs no check.
pub fn check_writable(path: &Path) -> Result<(), Problem> {
    if is_stdout(path) {
        return Ok(());
    }
    let existed = path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| {
            Problem::new(format!("cannot write {}", path.display()))
                .detail(error.to_string())
                .hint("name a file in a directory that exists")
        })?;
    if !existed {
        // Only our own empty file is removed; a failure here shows again when the report is written.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Columns of the terminal, or a default where there is none.
pub fn width() -> usize {
    let from_environment = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    from_environment
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(120)
}

/// Says a line on stderr; nobody listening there is no reason to stop a run.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes to stdout; a reader that went away is not a failure.
pub fn print_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Failed(
            Problem::new("cannot write to stdout").detail(error.to_string()),
        )),
        _ => Ok(()),
    }
}

/// Writes a report file; `-` is stdout.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(path) {
        return print_stdout(text.trim_end_matches('\n'));
    }
    let written = replace(path, |file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let problem =
            Problem::new(format!("cannot write {}", path.display())).detail(error.to_string());
        Failure::Failed(match is_full(&error) {
            true => problem.hint(FREE_SPACE),
            false => problem,
        })
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Gives a file new content. What was in it stays until all of the new content is on the disk. Devices and
/// pipes are written to as they are, and so are files in directories in which we can make none.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let Some((place, draft, mut file)) = begin_draft(path)? else {
        return write(&mut File::create(path)?);
    };
    let written = write(&mut file).and_then(|()| fs::rename(&draft, place));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(draft);
    }
    written
}

/// A new file that is to become the one of this name: the place of that, its own place, and itself. Absent
/// where the file cannot be replaced without a change of what it is.
///
/// Errors: a file that may not be written to; a disk that is full.
fn begin_draft(path: &Path) -> io::Result<Option<(PathBuf, PathBuf, File)>> {
    let is_there = path.symlink_metadata().is_ok();
    let place = match path.canonicalize() {
        // The end of a symbolic link.
        Ok(place) => place,
        Err(_) if !is_there => path.to_owned(),
        Err(_) => return Ok(None),
    };
    let old = match is_there {
        true => match place.metadata() {
            Ok(old) if old.is_file() && old.nlink() == 1 => Some(old),
            _ => return Ok(None),
        },
        false => None,
    };
    if old.is_some() {
        // A file that may not be written to is not replaced either.
        File::options().append(true).open(&place)?;
    }
    let Some(name) = place.file_name() else {
        return Ok(None);
    };
    let mut own_name = OsString::from(".");
    own_name.push(name);
    own_name.push(format!(".{}.new", std::process::id()));
    let draft = place.with_file_name(own_name);
    let file = match File::create(&draft) {
        Err(error) if is_full(&error) => return Err(error),
        Err(_) => return Ok(None),
        Ok(file) => file,
    };
    if old.is_none_or(|old| become_like(&file, &old).is_ok()) {
        return Ok(Some((place, draft, file)));
    }
    // It is written to in its place, which tells if that fails.
    let _ = fs::remove_file(draft);
    Ok(None)
}

/// Gives a file the owner and the mode of another one.
fn become_like(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

/// A value as JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let written = serde_json::to_value(value).map(deltabench_report::of_no_run);
    written
        .and_then(|value| serde_json::to_string_pretty(&value))
        .map_err(|error| {
            Failure::Failed(
                Problem::new("the result cannot be written as JSON").detail(error.to_string()),
            )
        })
}

/// Writes a value as JSON; `-` is stdout.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write_file(path, &to_json(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_stays_whole_until_the_new_one_is() {
        let place = tempfile::tempdir().unwrap();
        let report = place.path().join("r.html");
        write_file(&report, "old, and whole").unwrap();
        let full = |file: &mut File| {
            file.write_all(b"new, and to")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        };
        let new = place.path().join("new.html");
        for path in [&report, &new] {
            let error = replace(path, full).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        assert_eq!(fs::read_to_string(&report).unwrap(), "old, and whole");
        assert_eq!(names(place.path()), ["r.html"], "no torn file is left");
        write_file(&report, "new").unwrap();
        assert_eq!(fs::read_to_string(&report).unwrap(), "new");
        assert_eq!(names(place.path()), ["r.html"]);
    }

    #[test]
    fn a_file_that_is_replaced_stays_what_it_is() {
        let place = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| place.path().join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write_file(&link, "through a link").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "through a link");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
        fs::hard_link(&file, &other).unwrap();
        write_file(&file, "two names").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "two names");
        symlink("not there yet", place.path().join("dangling")).unwrap();
        write_file(&place.path().join("dangling"), "made").unwrap();
        let made = fs::read_to_string(place.path().join("not there yet"));
        assert_eq!(made.unwrap(), "made");
        write_file(Path::new("/dev/null"), "gone").unwrap();
    }

    #[test]
    fn a_hyphen_is_stdout_and_no_file() {
        let hyphen = Path::new("-");
        check_writable(hyphen).unwrap();
        write_file(hyphen, "a report\n").unwrap();
        write_json(hyphen, &[1]).unwrap();
        assert!(!hyphen.exists());
    }
}
