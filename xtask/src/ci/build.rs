//! One build for everything: what clippy reads is what the tests run, and rustdoc reads it in passing.

use super::{cargo, succeed};
use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the build made.
pub struct Built {
    /// The `deltabench` binary.
    pub program: PathBuf,
    pub tests: Vec<TestBinary>,
}

/// A binary of tests.
pub struct TestBinary {
    pub package: String,
    /// Name of the library or binary under test, or of the file of tests.
    pub target: String,
    is_integration: bool,
    executable: PathBuf,
    /// The package's directory, where cargo runs it.
    directory: PathBuf,
}

impl TestBinary {
    /// What cargo says of it when it starts.
    pub fn heading(&self, root: &Path) -> String {
        let file = self
            .executable
            .strip_prefix(root)
            .unwrap_or(&self.executable);
        let kind = if self.is_integration {
            "tests"
        } else {
            "unittests"
        };
        format!(
            "{kind} {} of {} ({})",
            self.target,
            self.package,
            file.display()
        )
    }

    /// As cargo starts it, but each test says how long it took. The harness hides that option; this variable
    /// shows it.
    pub fn timed(&self) -> Command {
        let mut command = self.command();
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["-Z", "unstable-options", "--report-time"]);
        command
    }

    /// Starts it as cargo does.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .env("CARGO_PKG_NAME", &self.package);
        command
    }
}

/// Checks the format.
pub fn fmt(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo(root);
    command.args(["fmt", "--all", "--check"]);
    succeed("fmt", command)
}

/// Compiles, lints and documents the workspace with all its tests.
pub fn build(root: &Path) -> anyhow::Result<Built> {
    let mut command = with_checks(root);
    command
        .args(["test", "--workspace", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start cargo")?;
    let messages = child.stdout.take().context("cargo has no output")?;
    let (mut program, mut tests) = (None, Vec::new());
    for line in BufReader::new(messages).lines() {
        let line = line.context("cannot read what cargo says")?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        match made(&message) {
            Some((true, binary)) => tests.push(binary),
            Some((false, binary)) if binary.target == "deltabench" => {
                program = Some(binary.executable);
            }
            _ => {}
        }
    }
    if !child.wait().context("cannot wait for cargo")?.success() {
        bail!("clippy, doc or build failed: {command:?}");
    }
    Ok(Built {
        program: program.context("cargo made no binary `deltabench`")?,
        tests,
    })
}

/// The documents' examples, compiled by the same means, so that nothing is built again.
pub fn doc_tests(root: &Path) -> Command {
    let mut command = with_checks(root);
    command.args(["test", "--workspace", "--doc"]);
    command
}

/// Cargo with clippy for a compiler of the workspace's crates.
fn with_checks(root: &Path) -> Command {
    let mut command = cargo(root);
    command
        .env(
            "RUSTC_WORKSPACE_WRAPPER",
            root.join("scripts/rustc-checked"),
        )
        // As `cargo clippy` passes `-D warnings` on.
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__")
        // Where a test failed is known without.
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    command
}

/// The binary that a message of cargo is about, and whether it holds tests.
fn made(message: &Value) -> Option<(bool, TestBinary)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = PathBuf::from(message.get("manifest_path")?.as_str()?);
    let target = message.get("target")?;
    let kinds = target.get("kind")?.as_array()?;
    // `path+file:///work/crates/cli#deltabench@0.1.0`, or `...crates/model#0.1.0` of a folder with the same name.
    let id = message.get("package_id")?.as_str()?;
    let directory = manifest.parent()?.to_owned();
    let after = id.rsplit('#').next()?;
    let package = match after.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => directory.file_name()?.to_str()?.to_owned(),
    };
    let binary = TestBinary {
        package,
        target: text(target.get("name")?)?,
        is_integration: kinds.iter().any(|kind| kind == "test"),
        executable: PathBuf::from(message.get("executable")?.as_str()?),
        directory,
    };
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    Some((is_test, binary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_binary_is_known_from_what_cargo_says_of_it() {
        let mut message = json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///work/crates/cli#deltabench@0.1.0",
            "manifest_path": "/work/crates/cli/Cargo.toml",
            "target": { "kind": ["test"], "name": "it" },
            "profile": { "test": true },
            "executable": "/work/target/debug/deps/it-1",
        });
        let (is_test, binary) = made(&message).unwrap();
        assert!(is_test && binary.is_integration);
        assert_eq!(
            binary.heading(Path::new("/work")),
            "tests it of deltabench (target/debug/deps/it-1)"
        );
        assert_eq!(
            binary.command().get_current_dir(),
            Some(Path::new("/work/crates/cli"))
        );
        message["package_id"] = json!("path+file:///work/xtask#0.1.0");
        message["manifest_path"] = json!("/work/xtask/Cargo.toml");
        assert_eq!(made(&message).unwrap().1.package, "xtask");
        message["executable"] = Value::Null;
        assert!(made(&message).is_none());
    }
}
