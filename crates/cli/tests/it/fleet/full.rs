//! Disks that are full, at each stage: nothing is lost, and all goes on when there is space again.

use super::{Fleet, json, text, wait_for};
use deltabench_store::{RunState, Store};
use deltabench_testkit::not_tested;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Size of a disk in MiB: labs of fixtures have less than one, reports a few.
const MIB: u32 = 24;

/// A small file system of its own.
struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Makes it, if this process may: only root may.
    fn at(place: PathBuf) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let options = format!("size={MIB}m,mode=755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]);
        let mounted = mount.arg(&place).output().unwrap();
        mounted.status.success().then_some(Self { place })
    }

    fn filler(&self) -> PathBuf {
        self.place.join("filler")
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        self.fill_but(0);
    }

    /// Leaves some KiB.
    fn fill_but(&self, kib: u64) {
        let mut filler = fs::File::create(self.filler()).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        let length = filler.metadata().unwrap().len();
        filler.set_len(length - kib * 1024).unwrap();
    }

    fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut umount = Command::new("umount");
        let done = umount.arg("--lazy").arg(&self.place).status();
        assert!(std::thread::panicking() || done.unwrap().success());
    }
}

impl Fleet {
    /// Waits until an attempt has done a visit.
    fn has_visited(&self, unit: u32, attempt: u32) {
        let beat = self.attempt(unit, attempt).join("beat.json");
        wait_for("a visit", || {
            (json(&beat)?["text"] == "measuring").then_some(())
        });
    }

    fn ended(&self, child: Child, disk: &Path) -> String {
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        let code = output.status.code();
        assert_eq!(code, Some(5), "{}: {said}", disk.display());
        said
    }

    /// Somebody has made space on the host.
    fn use_again(&self) {
        let words = ["drain", "a", "--undo", "--on", "lab.toml"];
        let output = self.on("a", &words).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    fn resume(&self) -> Child {
        let mut command = self.on("a", &["resume"]);
        command.stdout(std::process::Stdio::null());
        command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    }
}

#[test]
fn where_disks_are_full_nothing_is_lost_and_all_goes_on_with_space() {
    let fleet = Fleet::new();
    let disk = |name: &str| Disk::at(fleet.lab.path().join(name));
    let (Some(local), Some(spool), Some(lab)) = (disk("local"), disk("shared/x"), disk("lab"))
    else {
        not_tested("full disks of a fleet", "only root can mount a file system");
        return;
    };
    // Of the host, before its lane begins.
    local.fill();
    let output = fleet.run("a", "ms=200,blocks=4", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let full = |said: &str| {
        let line = said.lines().find(|line| line.contains("host a is avoided"));
        assert!(
            line.is_some_and(|line| line.to_lowercase().contains("no space left")),
            "{said}"
        );
    };
    full(&said);
    local.empty();
    fleet.use_again();
    // Of the host, in a unit.
    let (first, second) = fleet.first_lane();
    let child = fleet.resume();
    fleet.has_visited(first, 2);
    local.fill();
    full(&fleet.ended(child, &local.place));
    assert_eq!(fleet.word(first, 2).as_deref(), Some("unfit"));
    local.empty();
    fleet.use_again();
    // Of the spool, when the unit is measured.
    let child = fleet.resume();
    fleet.has_visited(first, 3);
    spool.fill();
    let said = fleet.ended(child, &spool.place);
    assert!(
        said.contains("into the shared directory; what it measured stays on a; make space"),
        "{said}"
    );
    spool.empty();
    // Of the lab, when the second unit comes in; the lane goes on.
    let child = fleet.resume();
    wait_for("the second unit", || {
        fleet.attempt(second, 1).exists().then_some(())
    });
    lab.fill();
    let said = fleet.ended(child, &lab.place);
    assert!(
        said.contains("then give the command again: nothing is lost"),
        "{said}"
    );
    lab.empty();
    let watched = fleet.on("a", &["watch"]).output().unwrap();
    assert_eq!(watched.status.code(), Some(1), "{}", text(&watched.stderr));
    assert_eq!(fleet.word(first, 4).as_deref(), Some("sealed"));
    // One more occasion than units: the one in the middle of which the disk was full went on in its lab, and
    // what was only not sealed or not gathered was not touched.
    let occasions: usize = fleet.measured().iter().map(|run| run.4).sum();
    assert_eq!(occasions, 5);
    fleet.assert_whole();
}

/// KiB that are enough for the last visit of a unit, and not for a copy of its lab.
const ROOM_KIB: u64 = 200;

#[test]
fn where_the_disk_of_the_host_has_no_room_to_seal_the_lab_stays_there_whole() {
    let fleet = Fleet::new();
    let Some(local) = Disk::at(fleet.lab.path().join("local")) else {
        not_tested("full disks of a fleet", "only root can mount a file system");
        return;
    };
    let only = ["--only", "repetition=1,rows=2000", "--detach"];
    // The last visit is long enough to be under way still when the disk is filled, also on a busy machine.
    let begun = fleet.run("a", "ms=3000,blocks=2", &only);
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    fleet.has_visited(1, 1);
    local.fill_but(ROOM_KIB);
    let said = fleet.ended(fleet.resume(), &local.place);
    assert!(
        said.contains("host a is avoided: no space left to write "),
        "{said}"
    );
    assert_eq!(fleet.word(1, 1).as_deref(), Some("unfit"));
    let lab = local
        .place
        .join("a")
        .join(fleet.spool_name())
        .join("unit-001");
    let names = fs::read_dir(&lab).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let other: Vec<String> = names
        .filter(|name| !name.starts_with("deltabench.sqlite"))
        .collect();
    assert!(other.is_empty(), "of the copy nothing is left: {other:?}");
    let store = Store::open_existing(&lab).unwrap();
    let run = store.runs().unwrap().remove(0);
    assert_eq!(run.state, RunState::Finished);
    assert_eq!(store.completed_visits(&run.run).unwrap().len(), 2);
    drop(store);
    local.empty();
    fleet.use_again();
    let output = fleet.on("a", &["resume"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(fleet.word(1, 2).as_deref(), Some("sealed"));
    // It was only sealed.
    let occasions: Vec<usize> = fleet.measured().iter().map(|run| run.4).collect();
    assert_eq!(occasions, [1]);
}
