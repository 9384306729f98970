//! Repository chores: `cargo xtask tidy` checks the house rules, `cargo xtask gen` writes the generated
//! pages, `cargo xtask ci` runs everything that CI checks.

mod ci;
mod dist;
mod reference;
mod tidy;
mod web;

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy   house rules: sizes, names, words, arrows between crates, documents
  gen    write the generated pages of docs/reference; with --check fail if one is stale
  web    bundle the report page's script (npm); with --check fail if the committed one differs
  ci     what CI runs: tidy, fmt, clippy, doc, gen --check, test
  dist   what people install without Rust: archive, Debian package, checksums, in target/dist";

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
        ["gen"] => reference::generate(&root()?, false),
        ["gen", "--check"] => reference::generate(&root()?, true),
        ["ci"] => ci::ci(&root()?),
        ["dist"] => dist::dist(&root()?),
        ["web"] => web::web(&root()?, false),
        ["web", "--check"] => web::web(&root()?, true),
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
