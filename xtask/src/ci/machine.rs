//! What the tests need of a machine beside the compiler: servers, libraries, other programs, a browser.

use anyhow::{Context, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables for the tests.
pub type Environment = Vec<(String, String)>;

/// Real servers: the oldest prebuilt major, one of the middle, the newest.
const SERVERS: [&str; 3] = ["postgres:9.6", "postgres:14", "postgres:18"];

/// Libraries: the oldest, the middle and the newest that the tests know.
const LIBRARIES: [&str; 3] = ["rocksdb:6.29.5", "rocksdb:7.10.2", "rocksdb:10.2.1"];

/// A program that deltabench is checked against or drives.
struct Peer {
    program: &'static str,
    /// What `scripts/install-peers.sh` calls it.
    package: &'static str,
    /// What is not tested without it.
    tests: &'static str,
    /// Set for the tests where it is missing.
    without: &'static str,
}

const PEERS: [Peer; 6] = [
    Peer {
        program: "sysbench",
        package: "sysbench",
        tests: "crosscheck",
        without: "DELTABENCH_WITHOUT_SYSBENCH",
    },
    Peer {
        program: "pgbench",
        package: "pgbench",
        tests: "crosscheck --pgbench",
        without: "DELTABENCH_WITHOUT_PGBENCH",
    },
    Peer {
        program: "db_bench",
        package: "rocksdb-tools",
        tests: "db_bench:PATH",
        without: "DELTABENCH_WITHOUT_DB_BENCH",
    },
    Peer {
        program: "valgrind",
        package: "valgrind",
        tests: "count",
        without: "DELTABENCH_WITHOUT_VALGRIND",
    },
    Peer {
        program: "slurmd",
        package: "slurm",
        tests: "lanes on a cluster of Slurm",
        without: "DELTABENCH_WITHOUT_SLURM",
    },
    Peer {
        program: "shellcheck",
        package: "shellcheck",
        tests: "scripts of nodes in shellcheck",
        without: "DELTABENCH_WITHOUT_SHELLCHECK",
    },
];

/// Programs that are not here and could not be brought.
#[derive(Default)]
pub struct Missing(Vec<&'static Peer>);

impl Missing {
    /// All that may be missing.
    pub fn everything() -> Self {
        Self(PEERS.iter().collect())
    }

    /// A line for each.
    pub fn in_words(&self) -> Vec<String> {
        let line = |peer: &&Peer| {
            let Peer {
                program,
                package,
                tests,
                ..
            } = peer;
            format!(
                "NOT TESTED: {tests}, because {program} is missing and cannot be installed \
                 (scripts/install-peers.sh {package}, as root)"
            )
        };
        self.0.iter().map(line).collect()
    }

    /// What tells the tests to do without them.
    pub fn environment(&self) -> Environment {
        let variable = |peer: &&Peer| (peer.without.to_owned(), "1".to_owned());
        self.0.iter().map(variable).collect()
    }
}

/// Brings what only a package manager has, if this is root. Where it cannot be had the rest is tested all the
/// same.
pub fn install(root: &Path) -> Missing {
    let missing = |peer: &&Peer| !is_here(peer.program);
    if is_root() {
        for peer in PEERS.iter().filter(missing) {
            quietly(
                root,
                &["timeout", "300", "scripts/install-peers.sh", peer.package],
            );
        }
    }
    quietly(root, &["scripts/test-web", "--prepare"]);
    Missing(PEERS.iter().filter(missing).collect())
}

fn is_here(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs a command, and tells what it said only if it failed.
fn quietly(root: &Path, words: &[&str]) {
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => eprintln!(
            "{}: {}\n{}{}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        ),
        Err(error) => eprintln!("{}: {error}", words.join(" ")),
    }
}

/// Where the tests have their temporary files; goes when it is dropped.
///
/// In memory where there is room: a server of a test lives for seconds, and to make and remove its thousand
/// files costs a disk's file system more than all that the test does with it. What is about disks
/// asks for one.
pub struct Scratch(Option<PathBuf>);

/// A file system in memory that every Linux has.
const MEMORY: &str = "/dev/shm";

/// Bytes that must be free there, and in memory beside them.
const ROOM_KB: u64 = 6 << 20;

impl Scratch {
    pub fn new() -> anyhow::Result<Self> {
        if !has_room() {
            return Ok(Self(None));
        }
        let prefix = Path::new(MEMORY).join("dbci-");
        for left in std::fs::read_dir(MEMORY)?
            .flatten()
            .map(|entry| entry.path())
        {
            // Of a process that was killed.
            let owner = left
                .to_str()
                .and_then(|path| path.strip_prefix(prefix.to_str()?));
            if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = std::fs::remove_dir_all(&left);
            }
        }
        let place = PathBuf::from(format!("{}{}", prefix.display(), std::process::id()));
        std::fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
        // Servers run as somebody else.
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o1777))?;
        Ok(Self(Some(place)))
    }

    /// Makes a command use it.
    pub fn give_to(&self, command: &mut Command) {
        if let Some(place) = &self.0 {
            command.env("TMPDIR", place);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = std::fs::remove_dir_all(place);
        }
    }
}

/// Whether programs can be run there, and servers find room.
fn has_room() -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = Command::new("df")
        .args(["--output=avail", "-k", MEMORY])
        .output();
    let free = free.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let number = |text: &str| {
        text.split_whitespace()
            .find_map(|word| word.parse::<u64>().ok())
    };
    let available = memory.lines().find(|line| line.starts_with("MemAvailable"));
    runs_programs(&mounts)
        && free.is_ok_and(|free| number(&free) >= Some(ROOM_KB))
        && available.and_then(number) >= Some(2 * ROOM_KB)
}

/// Whether the file system in memory is one, and programs in it can be run.
fn runs_programs(mounts: &str) -> bool {
    mounts.lines().any(
        |line| match line.split(' ').collect::<Vec<_>>().as_slice() {
            [_, place, kind, options, ..] => {
                *place == MEMORY
                    && *kind == "tmpfs"
                    && options.split(',').all(|one| one != "noexec")
            }
            _ => false,
        },
    )
}

/// Has Java begin at once: Maven's processes live for a second or two, in which its better compiler does not
/// pay.
pub fn hasten_maven(command: &mut Command) {
    if std::env::var_os("MAVEN_OPTS").is_none() {
        command.env("MAVEN_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1");
    }
}

/// Fetches servers and libraries, and says where they are.
pub fn fetch(root: &Path, program: &Path) -> anyhow::Result<Environment> {
    let binaries = fetched(root, program, &SERVERS)?;
    let tree = |binary: &String| {
        let tree = Path::new(binary).parent()?.to_str()?;
        Some(tree.to_owned())
    };
    let trees: Option<Vec<String>> = binaries.iter().map(tree).collect();
    let trees = trees.context("servers in strange places")?;
    // The driver's tests use SCRAM passwords, which the oldest does not have; whole comparisons cover it.
    let targets: String = trees
        .iter()
        .skip(1)
        .map(|tree| format!("path:{tree},"))
        .collect();
    let libraries = fetched(root, program, &LIBRARIES)?;
    let variables = [
        ("DELTABENCH_TEST_TREES", trees.join(":")),
        ("DELTABENCH_TEST_TARGETS", targets),
        ("DELTABENCH_TEST_ROCKSDB", libraries.join(":")),
    ];
    Ok(variables
        .map(|(name, value)| (name.to_owned(), value))
        .into())
}

/// The second column of what `deltabench fetch` prints: a directory of binaries, or a library.
fn fetched(root: &Path, program: &Path, targets: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(program);
    hasten_maven(&mut command);
    let output = command
        .arg("fetch")
        .args(targets)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .context("cannot start deltabench")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "deltabench fetch failed: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    print!("{said}");
    let second = |line: &str| line.split('\t').nth(1).map(str::to_owned);
    let places: Option<Vec<String>> = said.lines().map(second).collect();
    places
        .filter(|places| places.len() == targets.len())
        .context("what `deltabench fetch` printed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_runs_no_programs_is_no_place_for_tests() {
        let mounts =
            |options: &str| format!("/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs {options} 0 0\n");
        assert!(runs_programs(&mounts("rw,relatime,size=24684084k")));
        assert!(!runs_programs(&mounts(
            "rw,nosuid,nodev,noexec,size=65536k"
        )));
        assert!(!runs_programs("/dev/vda / ext4 rw 0 0\n"));
    }

    #[test]
    fn what_is_missing_is_told_to_the_tests_and_to_the_reader() {
        let all = Missing::everything();
        assert_eq!(all.environment().len(), PEERS.len());
        assert!(
            all.in_words()
                .iter()
                .all(|line| line.starts_with("NOT TESTED: "))
        );
        assert!(Missing::default().in_words().is_empty());
    }
}
