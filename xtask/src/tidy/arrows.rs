//! Which crate may use which: the arrows of ARCHITECTURE.md, read from `cargo metadata`.

use super::Breach;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Every crate of the workspace with the crates of ours it may use, top to bottom. Dependencies for tests
/// only are free.
const ALLOWED: [(&str, &[&str]); 22] = [
    (
        "deltabench",
        &[
            "model",
            "stats",
            "compare",
            "acquire",
            "server",
            "workload",
            "driver",
            "engine",
            "observe",
            "run",
            "kinds",
            "lab",
            "explain",
            "store",
            "report",
            "experiment",
            "selfcheck",
            "proc",
            "document",
        ],
    ),
    (
        "deltabench-selfcheck",
        &[
            "model", "stats", "workload", "driver", "observe", "compare", "run", "kinds", "proc",
        ],
    ),
    (
        "deltabench-lab",
        &["model", "store", "compare", "kinds", "report"],
    ),
    (
        "deltabench-kinds",
        &[
            "model", "stats", "server", "workload", "driver", "engine", "observe", "store",
            "compare", "run", "proc", "report",
        ],
    ),
    ("deltabench-report", &["model", "compare"]),
    (
        "deltabench-run",
        &[
            "model", "acquire", "server", "workload", "driver", "observe", "store", "compare",
            "proc",
        ],
    ),
    ("deltabench-explain", &["model", "stats"]),
    ("deltabench-compare", &["model", "stats"]),
    ("deltabench-driver", &["model", "workload"]),
    ("deltabench-engine", &["model", "server", "proc"]),
    ("deltabench-acquire", &["model", "proc"]),
    ("deltabench-server", &["model", "proc"]),
    ("deltabench-workload", &["model", "document"]),
    ("deltabench-observe", &["model", "proc"]),
    ("deltabench-store", &["model"]),
    ("deltabench-experiment", &["model", "document"]),
    ("deltabench-proc", &["model"]),
    ("deltabench-document", &["model"]),
    ("deltabench-model", &[]),
    ("deltabench-stats", &[]),
    ("deltabench-testkit", &["model", "acquire", "server"]),
    ("xtask", &[]),
];

pub fn check(root: &Path) -> anyhow::Result<Vec<Breach>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    breaches(&metadata)
}

fn breaches(metadata: &Value) -> anyhow::Result<Vec<Breach>> {
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("no packages in cargo metadata")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = word(package, "name")?;
        let path = Path::new(word(package, "manifest_path")?);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            let text =
                format!("crate {name} has no place among the arrows (xtask/src/tidy/arrows.rs)");
            breaches.push(Breach::new(path, 0, text));
            continue;
        };
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        for dependency in
            dependencies.context("a package without dependencies in cargo metadata")?
        {
            let used = word(dependency, "name")?;
            let ours = dependency.get("path").is_some_and(Value::is_string);
            let for_tests = dependency.get("kind").and_then(Value::as_str) == Some("dev");
            let short = used.strip_prefix("deltabench-").unwrap_or(used);
            if ours && !for_tests && !allowed.contains(&short) {
                let text = format!("{name} must not use {used}: no such arrow in ARCHITECTURE.md");
                breaches.push(Breach::new(path, 0, text));
            }
        }
    }
    Ok(breaches)
}

fn word<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("no {key} in cargo metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(package: &str, used: &str, kind: Option<&str>, path: Option<&str>) -> usize {
        let dependency = json!({"name": used, "kind": kind, "path": path});
        let metadata = json!({"packages": [
            {"name": package, "manifest_path": "/x/Cargo.toml", "dependencies": [dependency]},
        ]});
        breaches(&metadata).unwrap().len()
    }

    #[test]
    fn arrows_run_one_way() {
        let here = Some("/x");
        assert_eq!(
            found("deltabench-compare", "deltabench-stats", None, here),
            0
        );
        assert_eq!(
            found("deltabench-stats", "deltabench-compare", None, here),
            1
        );
        assert_eq!(found("deltabench-stats", "deltabench-model", None, here), 1);
        assert_eq!(
            found("deltabench-driver", "deltabench-observe", None, here),
            1
        );
        assert_eq!(
            found("deltabench-report", "deltabench-store", Some("build"), here),
            1
        );
        assert_eq!(found("deltabench", "deltabench-testkit", None, here), 1);
    }

    #[test]
    fn tests_and_libraries_of_others_are_free() {
        assert_eq!(
            found(
                "deltabench-stats",
                "deltabench-testkit",
                Some("dev"),
                Some("/x")
            ),
            0
        );
        assert_eq!(found("deltabench-stats", "statrs", None, None), 0);
    }

    #[test]
    fn a_new_crate_needs_its_arrows() {
        assert_eq!(found("deltabench-bisect", "statrs", None, None), 1);
    }

    #[test]
    fn the_table_itself_has_no_circle() {
        // Top to bottom: a crate only uses crates that stand below it in the table, so nothing comes back.
        let place = |short: &str| {
            let name = format!("deltabench-{short}");
            ALLOWED
                .iter()
                .position(|(known, _)| *known == name)
                .unwrap()
        };
        for (index, (name, uses)) in ALLOWED.iter().enumerate() {
            for used in *uses {
                assert!(
                    place(used) > index || *name == "deltabench-testkit",
                    "{name} uses {used} above it"
                );
                assert_ne!(*used, "testkit");
            }
        }
    }

    #[test]
    fn metadata_that_cannot_be_read_is_an_error() {
        assert!(breaches(&json!({})).is_err());
        assert!(breaches(&json!({"packages": [{"name": "x"}]})).is_err());
    }
}
