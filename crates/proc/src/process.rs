//! Processes and their threads.

use crate::cpu::Schedstat;
use crate::error::ProcError;
use crate::file::{field, number, numbers};
use crate::stat::{Stat, name_in_stat};
use crate::units::page_bytes;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(crate) const PROC: &str = "/proc";

/// The files of one process. What it no longer tells, because it has ended or hides it, is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    dir: PathBuf,
}

impl Process {
    /// The process with this number.
    pub fn of(pid: u32) -> Self {
        Self::below(Path::new(PROC), pid)
    }

    /// The same in a directory that looks like `/proc`.
    pub fn below(proc: &Path, pid: u32) -> Self {
        Self {
            dir: proc.join(pid.to_string()),
        }
    }

    /// A thread, by the files that threads have too.
    pub fn thread(pid: u32, tid: u32) -> Self {
        Self {
            dir: thread_dir(pid, tid),
        }
    }

    /// The calling thread.
    pub fn own_thread() -> Self {
        Self {
            dir: Path::new(PROC).join("thread-self"),
        }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    pub(crate) fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok()
    }

    /// Its line of `stat`.
    pub fn stat(&self) -> Option<Stat> {
        Stat::parse(&fs::read(self.dir.join("stat")).ok()?)
    }

    /// The same, or why it cannot be read.
    ///
    /// Errors: `File` or `Format`.
    pub fn stat_or_why(&self) -> Result<Stat, ProcError> {
        let path = self.dir.join("stat");
        let line = fs::read(&path).map_err(|source| ProcError::file("read", &path, source))?;
        Stat::parse(&line).ok_or_else(|| ProcError::Format {
            path,
            found: String::from_utf8_lossy(&line).chars().take(100).collect(),
        })
    }

    /// Its line of `stat`, and the name of its program in there.
    pub fn stat_and_name(&self) -> Option<(Stat, String)> {
        let line = fs::read(self.dir.join("stat")).ok()?;
        Some((Stat::parse(&line)?, name_in_stat(&line)?))
    }

    /// Its `status`, in which [`field`] and [`number`] find lines.
    pub fn status(&self) -> Option<String> {
        self.text("status")
    }

    /// Voluntary and involuntary switches of a thread.
    pub fn switches(&self) -> Option<(u64, u64)> {
        switches(&self.status()?)
    }

    /// The user that it runs as.
    pub fn real_uid(&self) -> Option<u32> {
        let status = self.status()?;
        let first = field(&status, "Uid")?.split_ascii_whitespace().next();
        first?.parse().ok()
    }

    /// Its name, as the kernel has it: at most 15 characters.
    pub fn name(&self) -> Option<String> {
        Some(self.text("comm")?.trim().to_owned())
    }

    /// Its command line or title, with blanks for the ends of words.
    pub fn title(&self) -> Option<String> {
        let bytes = fs::read(self.dir.join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        // What a cut title is followed by is padding; a whole one ends with the activity.
        Some(text.trim_end().to_owned())
    }

    /// Whether it was started with a variable of this value.
    pub fn has_variable(&self, name: &str, value: &str) -> bool {
        let wanted = format!("{name}={value}");
        fs::read(self.dir.join("environ")).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
        })
    }

    /// The program that it runs.
    pub fn program(&self) -> Option<PathBuf> {
        fs::read_link(self.dir.join("exe")).ok()
    }

    /// A path that leads to where it works, for as long as it lives.
    pub fn directory(&self) -> PathBuf {
        self.dir.join("cwd")
    }

    /// The files that it has mapped, one for each mapping; a removed one ends with ` (deleted)`.
    ///
    /// Errors: `File`.
    pub fn mapped_files(&self) -> Result<Vec<String>, ProcError> {
        let path = self.dir.join("maps");
        let maps =
            fs::read_to_string(&path).map_err(|source| ProcError::file("read", &path, source))?;
        Ok(mapped(&maps))
    }

    /// CPU and waiting of its main thread.
    pub fn schedstat(&self) -> Option<Schedstat> {
        Schedstat::parse(&fs::read(self.dir.join("schedstat")).ok()?)
    }

    /// Resident memory, bytes. Source: proc_pid_statm(5), the second number.
    pub fn resident_bytes(&self) -> Option<u64> {
        let statm = fs::read(self.dir.join("statm")).ok()?;
        resident_pages(&statm)?.checked_mul(page_bytes())
    }

    /// The most memory that it had at once, bytes.
    pub fn largest_resident_bytes(&self) -> Option<u64> {
        number(&self.status()?, "VmHWM")
    }

    /// Its memory, with what it shares divided among those who share it, bytes; 0 while it ends. The kernel
    /// walks every page for that.
    pub fn proportional_bytes(&self) -> Option<u64> {
        match fs::read_to_string(self.dir.join("smaps_rollup")) {
            // A process that is ending has no memory any more.
            Ok(text) if text.is_empty() => Some(0),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(0),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(0),
            Ok(text) => number(&text, "Pss"),
            Err(_) => None,
        }
    }

    /// What it has read and written.
    pub fn io(&self) -> Option<Io> {
        Io::parse(&self.text("io")?)
    }

    /// Its hierarchies of control groups, for [`crate::cgroup::membership`].
    ///
    /// Errors: `File`.
    pub fn cgroups(&self) -> Result<String, ProcError> {
        let path = self.dir.join("cgroup");
        fs::read_to_string(&path).map_err(|source| ProcError::file("read", &path, source))
    }
}

/// Bytes of a process and its ended children. Source: proc_pid_io(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Fetched from the storage layer.
    pub read_bytes: u64,
    /// Sent towards the storage layer. What was dirtied and then thrown away still counts: the same work was
    /// done for it.
    pub write_bytes: u64,
    /// Handed to `write` and its like, whatever became of them.
    pub written_chars: u64,
}

impl Io {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self {
            read_bytes: number(text, "read_bytes")?,
            write_bytes: number(text, "write_bytes")?,
            written_chars: number(text, "wchar")?,
        })
    }
}

/// The second number of `statm`: resident memory in pages.
pub fn resident_pages(statm: &[u8]) -> Option<u64> {
    numbers(statm).nth(1)
}

fn switches(status: &str) -> Option<(u64, u64)> {
    let voluntary = number(status, "voluntary_ctxt_switches")?;
    Some((voluntary, number(status, "nonvoluntary_ctxt_switches")?))
}

/// The path is the last column, and only paths have a slash.
fn mapped(maps: &str) -> Vec<String> {
    let path = |line: &str| {
        line.find('/')
            .and_then(|start| line.get(start..).map(str::to_owned))
    };
    maps.lines().filter_map(path).collect()
}

/// Whether a process does not exist, or has run its last instruction: [`Stat::has_ended`]. A file that cannot
/// be read is one of a process that is gone.
pub fn has_ended(pid: u32) -> bool {
    Process::of(pid).stat().is_none_or(|stat| stat.has_ended())
}

/// The numbers of all processes in a directory that looks like `/proc`.
///
/// # Errors
/// The directory cannot be read.
pub fn process_ids(proc: &Path) -> std::io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(proc)? {
        ids.extend(id_of(&entry?));
    }
    Ok(ids)
}

fn id_of(entry: &fs::DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

/// The threads of a process.
///
/// Errors: `Gone` if the process does not exist.
pub fn threads(pid: u32) -> Result<Vec<u32>, ProcError> {
    let path = task_dir(pid);
    let gone = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => ProcError::Gone { pid },
        _ if source.raw_os_error() == Some(libc::ESRCH) => ProcError::Gone { pid },
        _ => ProcError::file("read", &path, source),
    };
    let ids = process_ids(&path).map_err(gone)?;
    if ids.is_empty() {
        return Err(ProcError::Gone { pid });
    }
    Ok(ids)
}

/// The directory of a thread in `/proc`.
pub fn thread_dir(pid: u32, tid: u32) -> PathBuf {
    task_dir(pid).join(tid.to_string())
}

fn task_dir(pid: u32) -> PathBuf {
    Path::new(PROC).join(pid.to_string()).join("task")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lists_each_of_its_threads() {
        let (stop, wait) = std::sync::mpsc::sync_channel::<()>(0);
        let before = threads(std::process::id()).unwrap();
        let thread = std::thread::spawn(move || wait.recv().unwrap_err());
        let after = threads(std::process::id()).unwrap();
        assert!(after.iter().any(|tid| !before.contains(tid)));
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn a_process_has_ended_when_it_is_a_zombie_and_when_it_is_reaped() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(!has_ended(child.id()));
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !has_ended(child.id()) {
            assert!(
                std::time::Instant::now() < deadline,
                "a zombie counts as alive"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(Process::of(child.id()).stat().unwrap().state, b'Z');
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }

    #[test]
    fn files_of_a_process_are_read_by_their_documented_fields() {
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                  cancelled_write_bytes: 7\n";
        let read = Io::parse(io).unwrap();
        assert_eq!(
            (read.read_bytes, read.write_bytes, read.written_chars),
            (5, 6, 2)
        );
        assert_eq!(Io::parse("rchar: 1\n"), None);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t8\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(switches(status), Some((8, 9)));
        assert_eq!(resident_pages(b"5 2 1 1 0 1 0\n"), Some(2));
        let maps = "7f00-7f01 rw-s 00000000 00:01 12  /dev/shm/PostgreSQL.7 (deleted)\n\
                    7ffe-7fff rw-p 00000000 00:00 0   [stack]\n8000-8001 r-xp 0 08:01 3 /a b/c.so\n";
        assert_eq!(
            mapped(maps),
            ["/dev/shm/PostgreSQL.7 (deleted)", "/a b/c.so"]
        );
    }

    #[test]
    fn this_process_tells_of_itself() {
        let own = Process::of(std::process::id());
        assert_eq!(own.program().unwrap(), std::env::current_exe().unwrap());
        assert!(own.largest_resident_bytes().unwrap() >= own.resident_bytes().unwrap() / 2);
        assert!(own.real_uid().is_some() && own.name().is_some() && own.title().is_some());
        assert!(
            own.mapped_files()
                .unwrap()
                .iter()
                .any(|path| path.starts_with('/'))
        );
        let nobody = Process::of(u32::MAX);
        assert!(
            nobody.stat().is_none() && nobody.status().is_none() && !nobody.has_variable("A", "1")
        );
    }
}
