//! Which crate may use which: the arrows of ARCHITECTURE.md against what `cargo metadata` says.

use super::Breach;
use anyhow::{Context, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the arrows are written, a line each: crates, `->`, crates of ours that they may use.
const DRAWN: &str = "ARCHITECTURE.md";
/// What follows the arrow of a crate that may use all others but those after `but`.
const EVERYTHING: &str = "everything";

/// Crates with those that they may use, top to bottom.
struct Arrows(Vec<(String, Vec<String>)>);

impl Arrows {
    fn read(text: &str) -> Self {
        let lines = text
            .lines()
            .skip_while(|line| *line != "## Who may use whom");
        let arrows = lines.filter_map(|line| line.split_once("->"));
        let each = arrows.flat_map(|(users, used)| {
            let used: Vec<String> = used.split_whitespace().map(str::to_owned).collect();
            let users = users.split(',').map(|user| user.trim().to_owned());
            users.map(move |user| (user, used.clone()))
        });
        Self(each.collect())
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(user, _)| user == name)
    }

    /// Whether `user` may use `used`; absent where nothing is drawn for `user`.
    fn allow(&self, user: &str, used: &str) -> Option<bool> {
        let (_, drawn) = self.0.get(self.place(user)?)?;
        let named = drawn.iter().any(|name| name == used);
        let everything = drawn.first().is_some_and(|word| word == EVERYTHING);
        Some(named != everything)
    }

    /// Names after an arrow that are no crates.
    fn unknown(&self) -> impl Iterator<Item = String> {
        let words = ["no", "crate", "of", "ours", "but", EVERYTHING];
        let drawn = self.0.iter().flat_map(|(_, drawn)| drawn);
        let unknown =
            drawn.filter(move |name| self.place(name).is_none() && !words.contains(&name.as_str()));
        unknown.map(|name| format!("an arrow points to {name}, which is no crate"))
    }

    /// Arrows to what does not stand below.
    fn upward(&self) -> impl Iterator<Item = String> {
        let all = self.0.iter().enumerate();
        let each =
            all.flat_map(|(at, (user, drawn))| drawn.iter().map(move |used| (at, user, used)));
        each.filter_map(|(at, user, used)| {
            let up = self.place(used)? <= at;
            up.then(|| format!("the arrow from {user} to {used} does not point down"))
        })
    }
}

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
    let text = fs::read_to_string(root.join(DRAWN)).context(DRAWN)?;
    let arrows = Arrows::read(&text);
    let wrong = arrows
        .upward()
        .chain(arrows.unknown())
        .map(|text| Breach::new(Path::new(DRAWN), 0, text));
    Ok(wrong.chain(breaches(&metadata, &arrows)?).collect())
}

fn breaches(metadata: &Value, arrows: &Arrows) -> anyhow::Result<Vec<Breach>> {
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("no packages in cargo metadata")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = word(package, "name")?;
        let path = Path::new(word(package, "manifest_path")?);
        let user = short(name);
        if arrows.place(user).is_none() {
            let text = format!("crate {name} has no place among the arrows of {DRAWN}");
            breaches.push(Breach::new(path, 0, text));
            continue;
        }
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        for dependency in
            dependencies.context("a package without dependencies in cargo metadata")?
        {
            let used = word(dependency, "name")?;
            let ours = dependency.get("path").is_some_and(Value::is_string);
            let for_tests = dependency.get("kind").and_then(Value::as_str) == Some("dev");
            if ours && !for_tests && arrows.allow(user, short(used)) == Some(false) {
                let text = format!("{name} must not use {used}: no such arrow in {DRAWN}");
                breaches.push(Breach::new(path, 0, text));
            }
        }
    }
    Ok(breaches)
}

/// What ARCHITECTURE.md calls a package.
fn short(package: &str) -> &str {
    match package {
        "deltabench" => "cli",
        name => name.strip_prefix("deltabench-").unwrap_or(name),
    }
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

    fn drawn() -> Arrows {
        Arrows::read(include_str!("../../../ARCHITECTURE.md"))
    }

    fn found(package: &str, used: &str, kind: Option<&str>, path: Option<&str>) -> usize {
        let dependency = json!({"name": used, "kind": kind, "path": path});
        let metadata = json!({"packages": [
            {"name": package, "manifest_path": "/x/Cargo.toml", "dependencies": [dependency]},
        ]});
        breaches(&metadata, &drawn()).unwrap().len()
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
        assert_eq!(found("deltabench-nobody", "statrs", None, None), 1);
    }

    #[test]
    fn what_points_up_is_found() {
        assert_eq!(drawn().upward().next(), None);
        let arrows = Arrows::read("## Who may use whom\na -> b\nb, c -> c\n");
        assert_eq!(arrows.upward().count(), 1);
        assert_eq!(drawn().unknown().next(), None);
        assert_eq!(
            Arrows::read("## Who may use whom\na -> bc\n")
                .unknown()
                .count(),
            1
        );
    }

    #[test]
    fn metadata_that_cannot_be_read_is_an_error() {
        assert!(breaches(&json!({}), &drawn()).is_err());
        assert!(breaches(&json!({"packages": [{"name": "x"}]}), &drawn()).is_err());
    }
}
