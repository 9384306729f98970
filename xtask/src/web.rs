//! The bundle of the report page's script: made from `crates/report/web` with the versions of its lock file.
//!
//! The result is committed, so that building deltabench needs no node.

use anyhow::{Context, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the build writes, all of it committed.
const RESULTS: [&str; 3] = ["report.js", "report.sha256", "LICENSES.txt"];

/// Builds the bundle, or checks that the committed one has the same bytes.
pub fn web(root: &Path, check: bool) -> anyhow::Result<()> {
    let source = root.join("crates/report/web");
    let made = root.join("target/web");
    run(
        &source,
        "npm",
        &["ci", "--no-audit", "--no-fund", "--loglevel=error"],
    )?;
    let out = made.display().to_string();
    run(&source, "node", &["build.js", &out])?;
    let committed = source.join("dist");
    fs::create_dir_all(&committed)
        .with_context(|| format!("cannot make {}", committed.display()))?;
    for name in RESULTS {
        let (new, old) = (made.join(name), committed.join(name));
        let bytes = fs::read(&new).with_context(|| format!("cannot read {}", new.display()))?;
        if !check {
            fs::write(&old, bytes).with_context(|| format!("cannot write {}", old.display()))?;
        } else if fs::read(&old).ok() != Some(bytes) {
            bail!(
                "{} is not what its sources give: cargo xtask web",
                old.display()
            );
        }
    }
    println!(
        "web: crates/report/web/dist {}",
        if check {
            "is what its sources give"
        } else {
            "is written"
        }
    );
    Ok(())
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {program}: node with npm is needed"))?;
    if !status.success() {
        bail!("{program} {} failed", arguments.join(" "));
    }
    Ok(())
}
