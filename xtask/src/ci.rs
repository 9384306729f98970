//! The checks of CI, one after the other, the same on every machine.

use crate::reference::generate;
use crate::tidy::tidy;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Environment of a step.
type Environment = &'static [(&'static str, &'static str)];

/// Cargo's own steps before the tests: name, arguments, environment.
///
/// All use the dev profile, so that what one builds the next finds. Quick ones come first.
const CHECKS: [(&str, &[&str], Environment); 3] = [
    ("fmt", &["fmt", "--all", "--check"], &[]),
    (
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    ),
    (
        "doc",
        &["doc", "--workspace", "--no-deps", "--quiet"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    ),
];

/// Runs every check and stops at the first that fails.
pub fn ci(root: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    announce("tidy");
    tidy(root, false)?;
    for (name, arguments, environment) in CHECKS {
        cargo(root, name, arguments, environment)?;
    }
    announce("gen");
    generate(root, true)?;
    cargo(
        root,
        "test",
        &["test", "--workspace", "--no-fail-fast"],
        &[],
    )?;
    println!(
        "ci: tidy, fmt, clippy, doc, gen and test passed in {} s",
        start.elapsed().as_secs()
    );
    Ok(())
}

fn announce(name: &str) {
    // Cargo writes its progress to stderr; the headings belong between its lines.
    eprintln!("== {name}");
}

fn cargo(
    root: &Path,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> anyhow::Result<()> {
    announce(name);
    // Under `cargo xtask` this is the cargo that the toolchain file asks for.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("{name} failed: cargo {}", arguments.join(" "));
    }
    Ok(())
}
