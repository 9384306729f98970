//! The checks of CI, the same on every machine: one build that lints, documents and compiles, then all
//! tests side by side.

mod again;
mod build;
mod jobs;
mod machine;
mod spent;

use crate::reference;
use crate::tidy::tidy;
use again::Again;
use anyhow::{Context, bail};
use build::{Built, TestBinary};
use jobs::{Job, Pool};
use machine::{Missing, Scratch};
use spent::Since;
use std::path::Path;
use std::process::{Command, Stdio};

/// What takes longest, in the order of starting: package and target. The rest follows as cargo names it.
const LONGEST_FIRST: [(&str, &str); 8] = [
    ("deltabench", "it"),
    ("deltabench-run", "it"),
    ("deltabench-compare", "it"),
    ("deltabench-kinds", "it"),
    ("deltabench-acquire", "it"),
    ("deltabench-engine", "it"),
    ("deltabench-driver", "it"),
    ("deltabench-server", "it"),
];

/// Packages whose tests start no servers and use no program that may have to be installed: they run until all
/// that is here.
const ALONE: [&str; 8] = [
    "deltabench-compare",
    "deltabench-experiment",
    "deltabench-model",
    "deltabench-report",
    "deltabench-stats",
    "deltabench-store",
    "deltabench-workload",
    "xtask",
];

/// Runs every check. Stops at the first that fails before the tests; of those it runs all.
pub fn ci(root: &Path) -> anyhow::Result<()> {
    let start = Since::now();
    // The build may put another in its place; then its path has another name.
    let own = std::env::current_exe().context("where is this program?")?;
    // The network is waited for while the compiler works.
    let place = root.to_owned();
    let installing = std::thread::spawn(move || machine::install(&place));
    announce("tidy");
    tidy(root)?;
    announce("fmt");
    build::fmt(root)?;
    announce("clippy, doc, build");
    let built = build::build(root)?;
    announce("gen");
    reference::check(root, &built.program)?;
    told("built", start);
    let tests = Since::now();
    announce("test");
    let scratch = Scratch::new()?;
    let pool = Pool::new(jobs(root, &own, &built, &scratch)?);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let fetched = machine::fetch(root, &built.program);
            let missing = installing.join().unwrap_or_else(|_| Missing::everything());
            pool.ready(fetched.map(|found| (found, missing)));
        });
        pool.run(std::io::stdout())
    })?;
    ended.print();
    told("tests ended", tests);
    told("tidy, fmt, clippy, doc, gen, test and web ended", start);
    ended.result()
}

/// Everything after the build, in the order of starting.
fn jobs(root: &Path, own: &Path, built: &Built, scratch: &Scratch) -> anyhow::Result<Vec<Job>> {
    let place = |binary: &TestBinary| {
        let long = |&(package, target): &(&str, &str)| {
            binary.package == package && binary.target == target
        };
        LONGEST_FIRST
            .iter()
            .position(long)
            .unwrap_or(LONGEST_FIRST.len())
    };
    let mut binaries: Vec<&TestBinary> = built.tests.iter().collect();
    binaries.sort_by_key(|binary| place(binary));
    let mut jobs: Vec<Job> = binaries
        .into_iter()
        .map(|binary| {
            let mut command = binary.timed();
            scratch.give_to(&mut command);
            machine::hasten_maven(&mut command);
            if place(binary) == 0 {
                command.env("RUST_TEST_THREADS", threads_of_longest().to_string());
            }
            Job {
                name: binary.heading(root),
                steps: vec![command],
                waits: !ALONE.contains(&binary.package.as_str()),
                again: Again::Tests,
            }
        })
        .collect();
    // Beside the first long ones.
    jobs.insert(2.min(jobs.len()), browser(root, own, built)?);
    jobs.push(Job {
        name: "Doc-tests".to_owned(),
        steps: vec![build::doc_tests(root)],
        waits: false,
        again: Again::Never,
    });
    Ok(jobs)
}

/// Tests at a time in the binary that takes longest. Most of its tests measure for a fixed time, or wait for
/// servers to start and end; at the end of the run it has the CPUs alone.
fn threads_of_longest() -> usize {
    std::thread::available_parallelism().map_or(4, |cpus| cpus.get().saturating_mul(2))
}

/// The page's bundle, and the page in a browser.
fn browser(root: &Path, own: &Path, built: &Built) -> anyhow::Result<Job> {
    let pages = built.program.with_file_name("pages");
    std::fs::create_dir_all(&pages).with_context(|| format!("cannot make {}", pages.display()))?;
    let mut bundle = Command::new(own);
    bundle.args(["web", "--check"]).current_dir(root);
    let write = |package: &str, module: &str| -> anyhow::Result<Command> {
        let writes = |binary: &&TestBinary| binary.package == package && binary.target == "it";
        let tests = built.tests.iter().find(writes);
        let tests = tests.with_context(|| format!("no tests of {package}"))?;
        let mut write = tests.command();
        let test = format!("{module}::pages_for_browsers_can_be_written");
        write.args(["--quiet", "--exact", &test]);
        Ok(write)
    };
    let mut reports = write("deltabench-report", "page")?;
    let mut lab = write("deltabench-site", "published")?;
    let mut open = Command::new(root.join("scripts/test-web"));
    open.current_dir(root);
    for step in [&mut reports, &mut lab, &mut open] {
        step.env("DELTABENCH_PAGES", &pages);
    }
    Ok(Job {
        name: "web (scripts/test-web)".to_owned(),
        steps: vec![bundle, reports, lab, open],
        waits: true,
        again: Again::Whole,
    })
}

fn announce(name: &str) {
    // Cargo writes its progress to stderr; the headings belong between its lines.
    eprintln!("== {name}");
}

fn told(what: &str, start: Since) {
    eprintln!("ci: {what} after {}", start.spent());
}

/// Under `cargo xtask` the cargo that the toolchain file asks for.
fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).stdin(Stdio::null());
    command
}

/// Runs a command whose output belongs to this one's.
fn succeed(name: &str, mut command: Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed: {command:?}");
    }
    Ok(())
}
