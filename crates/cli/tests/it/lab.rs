//! A directory of its own for each test, and the binary run in it.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Shortest useful measurement: enough to go through every part, far too little for a verdict.
pub const TINY: [&str; 9] = [
    "--no-count",
    "--rows",
    "2000",
    "--visit-seconds",
    "0.03",
    "--slice-ms",
    "3",
    "--huge-pages",
    "off",
];

pub struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("dbt").tempdir().unwrap();
        // The unprivileged user that runs the servers must be able to enter.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    /// A directory of programs with a `valgrind` that does this.
    pub fn valgrind(&self, script: &str) -> PathBuf {
        let programs = self.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        let valgrind = programs.join("valgrind");
        std::fs::write(&valgrind, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&valgrind, PermissionsExt::from_mode(0o755)).unwrap();
        programs
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn clusters(&self) -> PathBuf {
        self.path().join("c")
    }

    /// Where the identifier of the machine is kept.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The binary with this test's lab and clusters.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(&self.clusters(), arguments)
    }

    /// The same with its clusters elsewhere.
    pub fn command_in(&self, clusters: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deltabench"));
        command
            .args(arguments)
            .arg("--lab")
            .arg(self.path().join("lab"))
            // Never the identifier of the machine itself.
            .env("DELTABENCH_STATE", self.state())
            .current_dir(self.path());
        if [
            "bisect", "compare", "count", "explain", "extend", "insert", "pgbench", "replay",
            "resume", "rocksdb", "run",
        ]
        .contains(&arguments[0])
        {
            command.arg("--cluster-dir").arg(clusters);
        }
        command.env_remove("COLUMNS").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        let errors = std::fs::File::create(self.path().join("stderr")).unwrap();
        self.command(arguments)
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap()
    }

    /// Waits until the started binary has said `text` on stderr.
    pub fn wait_for(&self, child: &mut Child, text: &str) {
        let limit = Instant::now() + Duration::from_secs(180);
        loop {
            let said = std::fs::read_to_string(self.path().join("stderr")).unwrap();
            if said.contains(text) {
                return;
            }
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "ended with {ended:?} before saying {text:?}:\n{said}"
            );
            assert!(
                Instant::now() < limit,
                "did not say {text:?} in time:\n{said}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processes of servers whose data is in this test's directory.
    pub fn servers(&self) -> Vec<u32> {
        let clusters = self.clusters();
        let of_ours = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|cwd| cwd.starts_with(&clusters))
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter(of_ours)
            .collect()
    }

    /// Directories of runs that are still there.
    pub fn workspaces(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.clusters()) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    }

    /// Waits until a server of the started binary is there.
    pub fn wait_for_servers(&self, child: &mut Child) {
        while self.servers().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn wait_until_no_servers(&self) {
        let limit = Instant::now() + Duration::from_secs(90);
        while !self.servers().is_empty() {
            assert!(
                Instant::now() < limit,
                "servers are left: {:?}",
                self.servers()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn report(&self) -> Value {
        let output = self.run(&["report", "last", "--format", "json"]);
        assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn join<'a>(first: &[&'a str], second: &[&'a str]) -> Vec<&'a str> {
    first.iter().chain(second).copied().collect()
}

/// Sends a signal to a process of this test.
pub fn signal(pid: u32, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}
