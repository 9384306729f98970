//! Repository chores: `cargo xtask tidy` checks the house rules, `cargo xtask ci` everything that CI checks.

mod ci;
mod tidy;

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy   house rules: sizes, names, arrows between crates, documents
  ci     what CI runs: tidy, fmt, clippy, doc, test";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::tidy(&root()?),
        ["ci"] => ci::ci(&root()?),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("which command?\n{USAGE}"),
        _ => bail!("no such command: {}\n{USAGE}", words.join(" ")),
    }
}

/// The repository: the directory above this crate's.
fn root() -> anyhow::Result<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .map(PathBuf::from)
        .context("xtask has no directory above it")
}
