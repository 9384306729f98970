//! Huge pages for shared buffers: reserved for a run and given back by exactly the number that was added.
//!
//! Why: without them, which physical pages a server happens to get at its start moves its CPU per
//! operation by about as much as the changes that deltabench is asked to find.

use crate::kernel;
use crate::records::HUGE_PAGES_FILE;
use crate::tree;
use crate::workspace::{Inner, Workspace};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_proc::memory::free_huge_pages;
use deltabench_proc::{number, number_in};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a server wants beside its buffers: buffer headers (about 1 %), lock tables, WAL buffers,
/// statistics.
const SHARE_BESIDE: f64 = 1.03;
const BYTES_BESIDE: u64 = 64 << 20;
/// Share of the available memory that may become huge pages: the rest of the machine has to live too.
const MEMORY_SHARE: f64 = 0.8;

/// What was added, kept in the workspace for a sweep after a kill.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// `nr_hugepages` before.
    before: u64,
    /// Pages added by us.
    added: u64,
    /// False while the kernel is being asked; then only what is above `before` can be ours.
    granted: bool,
}

/// Where the kernel is asked.
#[derive(Debug, Clone)]
struct Knobs {
    meminfo: PathBuf,
    number: PathBuf,
}

impl Knobs {
    fn system() -> Self {
        Self {
            meminfo: "/proc/meminfo".into(),
            number: "/proc/sys/vm/nr_hugepages".into(),
        }
    }

    fn read(&self) -> Result<u64, String> {
        if !self.number.exists() {
            return Err("this kernel has no huge pages".to_owned());
        }
        number_in(&self.number)
            .ok_or_else(|| format!("{} contains no number", self.number.display()))
    }

    fn write(&self, pages: u64) -> Result<(), String> {
        std::fs::write(&self.number, pages.to_string())
            .map_err(|error| format!("cannot write {}: {error}", self.number.display()))
    }

    /// Held over every read-and-write of the number, against another deltabench doing the same.
    fn lock(&self) -> Result<File, String> {
        let told =
            |error: std::io::Error| format!("cannot lock {}: {error}", self.number.display());
        let file = File::open(&self.number).map_err(told)?;
        file.lock().map_err(told)?;
        Ok(file)
    }
}

/// Huge pages reserved for the servers of a run. Dropping it gives back exactly what was added.
pub struct HugePages {
    knobs: Knobs,
    workspace: Arc<Inner>,
    added: u64,
    needed: u64,
}

impl HugePages {
    /// Makes sure that there are free huge pages for servers with these shared buffers.
    ///
    /// As root, pages are added to what the machine has. Otherwise free pages that somebody else set up
    /// will do.
    ///
    /// Units:  bytes of `shared_buffers`, one entry for each server; what a server needs beside them is
    /// added here.
    /// Errors: why not, in words for a note.
    pub fn reserve(shared_buffers: &[u64], workspace: &Workspace) -> Result<Self, String> {
        let root = kernel::effective_uid() == 0;
        reserve_from(
            Knobs::system(),
            root,
            shared_buffers,
            Arc::clone(&workspace.inner),
        )
    }

    /// Adds pages again if another program has taken some of those that were free for our servers.
    ///
    /// To be called while none of our servers is running. Any PostgreSQL with `huge_pages = try`, the
    /// default, takes what it finds; the pages are not earmarked.
    ///
    /// Errors: why not, in words.
    pub fn refill(&mut self) -> Result<(), String> {
        let meminfo = std::fs::read_to_string(&self.knobs.meminfo)
            .map_err(|_| "cannot read /proc/meminfo".to_owned())?;
        let missing = self.needed.saturating_sub(free_huge_pages(&meminfo));
        if missing == 0 {
            return Ok(());
        }
        if self.added == 0 {
            return Err(format!(
                "{missing} huge pages are gone, and only root can add some"
            ));
        }
        let _lock = self.knobs.lock()?;
        let before = self.knobs.read()?;
        let record = Record {
            before: before.saturating_sub(self.added),
            added: self.added + missing,
            granted: false,
        };
        write_record(&self.workspace.directory, &record)?;
        self.knobs.write(before.saturating_add(missing))?;
        let given = self.knobs.read()?.saturating_sub(before);
        self.added += given;
        let record = Record {
            added: self.added,
            granted: true,
            ..record
        };
        write_record(&self.workspace.directory, &record)?;
        if given < missing {
            return Err(format!(
                "the kernel gave {given} of {missing} huge pages that were gone"
            ));
        }
        Ok(())
    }

    /// Pages that the servers need, estimated generously.
    pub fn needed(&self) -> u64 {
        self.needed
    }

    /// Pages that were added to the machine's and will be given back.
    pub fn added(&self) -> u64 {
        self.added
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        // Nobody is left to tell; the record stays for the next sweep if this fails.
        if give_back(&self.knobs, self.added).is_ok() {
            let _ = std::fs::remove_file(self.workspace.directory.join(HUGE_PAGES_FILE));
        }
    }
}

fn reserve_from(
    knobs: Knobs,
    root: bool,
    shared_buffers: &[u64],
    workspace: Arc<Inner>,
) -> Result<HugePages, String> {
    let meminfo = std::fs::read_to_string(&knobs.meminfo)
        .map_err(|_| "cannot read /proc/meminfo".to_owned())?;
    let page = number(&meminfo, "Hugepagesize").ok_or("this kernel has no huge pages")?;
    let needed: u64 = shared_buffers
        .iter()
        .map(|bytes| pages_for(*bytes, page))
        .sum();
    if !root {
        let free = free_huge_pages(&meminfo);
        return if free >= needed {
            Ok(HugePages {
                knobs,
                workspace,
                added: 0,
                needed,
            })
        } else {
            Err(format!(
                "{needed} are needed, {free} are free, and only root can add some"
            ))
        };
    }
    let available = number(&meminfo, "MemAvailable").unwrap_or(0);
    let limit = to_u64(to_f64(available) * MEMORY_SHARE);
    if needed.saturating_mul(page) > limit {
        return Err(format!(
            "{needed} of {} MB are needed, and {} MB of memory are available",
            page >> 20,
            available >> 20
        ));
    }
    add(&knobs, needed, &workspace.directory)?;
    Ok(HugePages {
        knobs,
        workspace,
        added: needed,
        needed,
    })
}

fn pages_for(shared_buffers: u64, page: u64) -> u64 {
    let bytes = to_u64(to_f64(shared_buffers) * SHARE_BESIDE).saturating_add(BYTES_BESIDE);
    bytes.div_ceil(page.max(1))
}

fn add(knobs: &Knobs, pages: u64, directory: &Path) -> Result<(), String> {
    let _lock = knobs.lock()?;
    let before = knobs.read()?;
    // Written first: a kill between the two leaves a record of too much rather than pages that nobody
    // knows of.
    write_record(
        directory,
        &Record {
            before,
            added: pages,
            granted: false,
        },
    )?;
    let asked = knobs.write(before.saturating_add(pages));
    let now = knobs.read()?;
    if asked.is_ok() && now >= before.saturating_add(pages) {
        return write_record(
            directory,
            &Record {
                before,
                added: pages,
                granted: true,
            },
        );
    }
    knobs.write(before)?;
    let _ = std::fs::remove_file(directory.join(HUGE_PAGES_FILE));
    asked?;
    Err(format!(
        "the kernel gave {} of {pages}; its memory is too fragmented",
        now.saturating_sub(before)
    ))
}

fn give_back(knobs: &Knobs, pages: u64) -> Result<(), String> {
    if pages == 0 {
        return Ok(());
    }
    let _lock = knobs.lock()?;
    let now = knobs.read()?;
    knobs.write(now.saturating_sub(pages))
}

fn write_record(directory: &Path, record: &Record) -> Result<(), String> {
    let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
    tree::write_file(&directory.join(HUGE_PAGES_FILE), &text, None)
        .map_err(|problem| format!("{}: {}", problem.error, problem.detail.unwrap_or_default()))
}

/// Gives back what a killed deltabench had reserved according to its workspace; what was done, in words.
pub(crate) fn give_back_stale(directory: &Path) -> Option<String> {
    give_back_recorded(&Knobs::system(), directory)
}

fn give_back_recorded(knobs: &Knobs, directory: &Path) -> Option<String> {
    let path = directory.join(HUGE_PAGES_FILE);
    if !path.exists() {
        return None;
    }
    let given = pages_of(&path, knobs).and_then(|pages| give_back(knobs, pages).map(|()| pages));
    match given {
        Ok(pages) => {
            // So that a sweep cut short does not give them back twice.
            let _ = std::fs::remove_file(&path);
            (pages > 0).then(|| format!("gave {pages} huge pages back"))
        }
        Err(why) => Some(format!("could not give huge pages back: {why}")),
    }
}

/// How many pages a record says are ours.
fn pages_of(record: &Path, knobs: &Knobs) -> Result<u64, String> {
    let told = |error: String| format!("cannot read {}: {error}", record.display());
    let text = std::fs::read_to_string(record).map_err(|error| told(error.to_string()))?;
    let read: Record = serde_json::from_str(&text).map_err(|error| told(error.to_string()))?;
    Ok(if read.granted {
        read.added
    } else {
        read.added.min(knobs.read()?.saturating_sub(read.before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::ServerUser;
    use std::os::unix::fs::PermissionsExt;

    struct Machine {
        scratch: tempfile::TempDir,
        workspace: Option<Workspace>,
    }

    impl Machine {
        fn new(pages: u64, free: u64) -> Self {
            let scratch = tempfile::tempdir_in("/tmp").unwrap();
            std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755))
                .unwrap();
            let meminfo = format!(
                "MemAvailable:    4194304 kB\nHugePages_Free:  {free}\n\
                 HugePages_Rsvd:  1\nHugepagesize:  2048 kB\n"
            );
            std::fs::write(scratch.path().join("meminfo"), meminfo).unwrap();
            std::fs::write(scratch.path().join("nr"), pages.to_string()).unwrap();
            let user = ServerUser::choose(None).unwrap();
            let workspace = Workspace::create(scratch.path(), "run", &user).unwrap();
            Self {
                scratch,
                workspace: Some(workspace),
            }
        }

        fn knobs(&self) -> Knobs {
            Knobs {
                meminfo: self.scratch.path().join("meminfo"),
                number: self.scratch.path().join("nr"),
            }
        }

        fn reserve(&self, root: bool, bytes: &[u64]) -> Result<HugePages, String> {
            reserve_from(
                self.knobs(),
                root,
                bytes,
                Arc::clone(&self.workspace.as_ref().unwrap().inner),
            )
        }

        fn directory(&self) -> &Path {
            self.workspace.as_ref().unwrap().directory()
        }
    }

    const GB: u64 = 1 << 30;

    #[test]
    fn exactly_what_was_added_is_given_back_whatever_others_did_meanwhile() {
        let machine = Machine::new(10, 0);
        let pages = machine.reserve(true, &[GB, GB]).unwrap();
        // 1 GiB * 1.03 + 64 MiB = 1118.72 MiB = 560 pages for each server.
        assert_eq!(
            (pages.needed(), machine.knobs().read().unwrap()),
            (1120, 1130)
        );
        machine.knobs().write(1135).unwrap();
        drop(pages);
        assert_eq!(machine.knobs().read().unwrap(), 15);
        assert!(!machine.directory().join(HUGE_PAGES_FILE).exists());
    }

    #[test]
    fn pages_that_a_neighbour_took_are_added_again_and_all_of_ours_given_back() {
        let machine = Machine::new(10, 0);
        let mut pages = machine.reserve(true, &[GB]).unwrap();
        // One more than needed is free, less the one that is promised: nothing is missing.
        let free = |count: u64| {
            let text =
                format!("Hugepagesize: 2048 kB\nHugePages_Free: {count}\nHugePages_Rsvd: 1\n");
            std::fs::write(machine.scratch.path().join("meminfo"), text).unwrap();
        };
        free(561);
        pages.refill().unwrap();
        assert_eq!((pages.added(), machine.knobs().read().unwrap()), (560, 570));
        free(461);
        pages.refill().unwrap();
        assert_eq!((pages.added(), machine.knobs().read().unwrap()), (660, 670));
        drop(pages);
        assert_eq!(machine.knobs().read().unwrap(), 10);
    }

    #[test]
    fn the_number_never_falls_below_zero() {
        let machine = Machine::new(0, 0);
        let pages = machine.reserve(true, &[GB]).unwrap();
        machine.knobs().write(3).unwrap();
        drop(pages);
        assert_eq!(machine.knobs().read().unwrap(), 0);
    }

    #[test]
    fn more_than_the_machine_can_spare_is_not_even_asked_for() {
        let machine = Machine::new(0, 0);
        let why = machine.reserve(true, &[4 * GB]).err().unwrap();
        assert!(why.contains("4096 MB of memory are available"), "{why}");
        assert_eq!(machine.knobs().read().unwrap(), 0);
    }

    #[test]
    fn without_root_free_pages_will_do_and_none_are_touched() {
        let machine = Machine::new(600, 600);
        drop(machine.reserve(false, &[GB]).unwrap());
        assert_eq!(machine.knobs().read().unwrap(), 600);
        let why = machine.reserve(false, &[GB, GB]).err().unwrap();
        assert!(
            why.contains("599 are free") && why.contains("only root"),
            "{why}"
        );
    }

    #[test]
    fn a_killed_run_is_paid_back_from_its_record_once() {
        let machine = Machine::new(5, 0);
        std::mem::forget(machine.reserve(true, &[GB]).unwrap());
        let said = give_back_recorded(&machine.knobs(), machine.directory()).unwrap();
        assert_eq!(
            (said.as_str(), machine.knobs().read().unwrap()),
            ("gave 560 huge pages back", 5)
        );
        assert_eq!(
            give_back_recorded(&machine.knobs(), machine.directory()),
            None
        );
    }

    #[test]
    fn a_run_killed_before_the_kernel_was_asked_takes_nothing_from_others() {
        let machine = Machine::new(5, 0);
        write_record(
            machine.directory(),
            &Record {
                before: 5,
                added: 560,
                granted: false,
            },
        )
        .unwrap();
        assert_eq!(
            give_back_recorded(&machine.knobs(), machine.directory()),
            None
        );
        assert_eq!(machine.knobs().read().unwrap(), 5);
        assert!(!machine.directory().join(HUGE_PAGES_FILE).exists());
    }

    #[test]
    fn pages_that_cannot_be_given_back_keep_their_record_and_with_it_the_workspace() {
        let mut machine = Machine::new(5, 0);
        let pages = machine.reserve(true, &[GB]).unwrap();
        let (number, hidden) = (
            machine.knobs().number,
            machine.scratch.path().join("hidden"),
        );
        std::fs::rename(&number, &hidden).unwrap();
        drop(pages);
        let directory = machine.directory().to_path_buf();
        let problem = machine.workspace.take().unwrap().remove().unwrap_err();
        assert!(problem.detail.unwrap().contains("huge pages"));
        let said = give_back_recorded(&machine.knobs(), &directory).unwrap();
        assert!(said.contains("could not give"), "{said}");
        std::fs::rename(&hidden, &number).unwrap();
        let said = give_back_recorded(&machine.knobs(), &directory).unwrap();
        assert_eq!(said, "gave 560 huge pages back");
        assert_eq!(machine.knobs().read().unwrap(), 5);
    }
}
