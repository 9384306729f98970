//! What Slurm says of its limits and of lanes that could not write. A script plays its commands.

use super::{Fleet, text};
use deltabench_store::Store;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

/// Slurm's commands: each says what a file says. `sbatch` also does what a process that watches does when the
/// lane of unit 1 has begun on n2 and its host is asked later: it makes the attempt.
const COMMANDS: [(&str, &str); 4] = [
    ("scontrol", "cat \"$SAYS/config\""),
    (
        "squeue",
        "case $* in *=RUNNING*) ;; *) cat \"$SAYS/queue\" ;; esac",
    ),
    ("sacct", "exit 1"),
    (
        "sbatch",
        "attempt=${2%/log/*}/unit-001/attempt-1; mkdir -p \"$attempt\"
         cp \"$SAYS/owner\" \"$attempt/owner.json\"; cat \"$SAYS/job\"",
    ),
];

const OWNER: &str = r#"{"host": {"uid": "u", "node": "n2"}, "pid": 1, "process_start": 1,
    "boot_id": null, "lane": 0, "at_unix_ms": 1}"#;

struct Played {
    fleet: Fleet,
}

impl Played {
    fn new() -> Self {
        let played = Self {
            fleet: Fleet::new(),
        };
        fs::create_dir(played.place("bin")).unwrap();
        for (name, script) in COMMANDS {
            let file = played.place("bin").join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        played.says("owner", OWNER);
        played.says("config", "MaxArraySize   = 1001\nMaxJobCount    = 3\n");
        let file = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\ncopy = \"sbcast\"\n\
             spool = \"{}\"\n",
            played.place("spool").display()
        );
        played.says("copied.toml", &file);
        played
    }

    fn place(&self, name: &str) -> PathBuf {
        self.fleet.lab.path().join(name)
    }

    fn says(&self, name: &str, text: &str) {
        fs::write(self.place(name), text).unwrap();
    }

    fn gives(&self, words: &[&str]) -> Output {
        let mut command = self.fleet.on("a", words);
        command.env(
            "PATH",
            format!("{}:/usr/bin:/bin", self.place("bin").display()),
        );
        command.env("SAYS", self.fleet.lab.path());
        command.output().unwrap()
    }

    fn run(&self, more: &[&str]) -> Output {
        let words = ["run", "study.toml", "--engine-fixture", "ms=1", "--on"];
        self.gives(&[&words[..], more].concat())
    }
}

#[test]
fn more_lanes_than_slurm_holds_are_refused_before_anything_is_there() {
    let played = Played::new();
    let file = fs::read_to_string(played.place("copied.toml")).unwrap();
    let shared = file.replace("copy = \"sbcast\"\nspool", "shared");
    played.says("shared.toml", &shared);
    for file in ["copied.toml", "shared.toml"] {
        for more in [&[][..], &["--dry-run"][..]] {
            let output = played.run(&[&[file, "--repetitions", "3"][..], more].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{file} {more:?}: {said}");
            for line in [
                "error: 3 lanes are more jobs than Slurm holds\n",
                "detail: MaxJobCount is 3 in its slurm.conf;",
                "hint: by = \"repetition\" in [lanes] of the fleet file makes fewer lanes;",
            ] {
                assert!(said.contains(line), "{file} {more:?}: {said}");
            }
            assert_eq!(text(&output.stdout), "", "{file} {more:?}");
        }
    }
    assert!(!played.place("spool").exists());
    assert!(Store::open_existing(&played.place("lab")).is_err());
}

/// A host without a shared directory, the disk of which got full while a lane measured.
#[test]
fn a_lane_that_could_not_write_is_told_to_whoever_looks_until_it_is_handed_in_again() {
    let played = Played::new();
    played.says("job", "7\n");
    // 73, as wait(2) has it.
    played.says(
        "queue",
        "7|0|FAILED|n2|18688|NonZeroExitCode\n7|1|PENDING||0|Resources\n",
    );
    let begun = played.run(&["copied.toml", "--detach"]);
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    let name = played.fleet.spool_name();
    let to_do = format!(
        "lane 0 ended with 73: nothing more can be written to the disk of n2; \
         `deltabench fleet resume {name}` goes on, there if you make space, else on another host\n"
    );
    let unit = "interrupted  n2               nothing more can be written to the disk of n2\n";
    let watched = "a process watches in the background, and writes ";
    // While the other lane waits. The process in the background says it, too.
    let log = played.fleet.spool().join("log/watch.txt");
    let said = || fs::read_to_string(&log).unwrap_or_default();
    super::wait_for("its word", || said().contains(&to_do).then_some(()));
    let status = played.gives(&["status"]);
    let printed = text(&status.stdout);
    assert_eq!(status.status.code(), Some(0), "{}", text(&status.stderr));
    assert!(
        printed.contains(&to_do) && printed.contains(unit),
        "{printed}"
    );
    assert!(printed.contains(watched), "{printed}");
    let list = text(&played.gives(&["list"]).stdout);
    assert!(list.contains("no end yet"), "{list}");
    // That one ends as well, and then Slurm forgets both.
    played.says(
        "queue",
        "7|0|FAILED|n2|18688|NonZeroExitCode\n7|1|COMPLETED|n1|0|None\n",
    );
    let ended = || {
        played
            .fleet
            .spool()
            .join("outcome.json")
            .exists()
            .then_some(())
    };
    super::wait_for("the end", ended);
    played.says("queue", "");
    let status = played.gives(&["status"]);
    let printed = text(&status.stdout);
    assert_eq!(status.status.code(), Some(5), "{printed}");
    assert!(
        printed.contains(&to_do) && printed.contains(unit),
        "{printed}"
    );
    let act =
        format!("somebody has to act: 4 units not measured; `deltabench fleet resume {name}`");
    assert!(printed.contains(&act), "{printed}");
    let list = text(&played.gives(&["list"]).stdout);
    let act = format!("somebody has to act, `deltabench fleet status {name}` says how\n");
    assert!(list.contains(&act), "{list}");
    let watched = played.gives(&["watch"]);
    let said = text(&watched.stderr);
    assert_eq!(watched.status.code(), Some(5), "{said}");
    assert!(said.contains(&to_do) && said.contains(unit), "{said}");
    let detached = played.gives(&["watch", "--detach"]);
    let said = text(&detached.stderr);
    assert_eq!(detached.status.code(), Some(0), "{said}");
    assert!(said.contains("has ended with exit code 5"), "{said}");
    // Handed in again, it has another end.
    played.says("job", "8\n");
    played.says(
        "queue",
        "8|0|COMPLETED|n1|0|None\n8|1|COMPLETED|n1|0|None\n",
    );
    let resumed = played.gives(&["resume"]);
    let said = text(&resumed.stderr);
    assert_eq!(
        resumed.status.code(),
        Some(5),
        "nothing is measured: {said}"
    );
    assert!(said.contains("handing in again: lane 0, 1"), "{said}");
    let printed = text(&played.gives(&["status"]).stdout);
    assert!(
        !said.contains("ended with 73") && !printed.contains("ended with 73"),
        "{said}{printed}"
    );
}
