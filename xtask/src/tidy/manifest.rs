//! Rules on `Cargo.toml`: every crate takes the lints of the workspace.

use super::Breach;
use std::path::Path;

pub fn check(path: &Path, text: &str) -> Vec<Breach> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            return vec![Breach::new(
                path,
                0,
                format!("not TOML: {}", error.message()),
            )];
        }
    };
    let shared = table
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool);
    if table.contains_key("package") && shared != Some(true) {
        return vec![Breach::new(
            path,
            0,
            "lacks the lints of the workspace: [lints] workspace = true",
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_takes_the_lints_of_the_workspace() {
        let breaches = |text: &str| check(Path::new("Cargo.toml"), text).len();
        assert_eq!(
            breaches("[package]\nname = \"x\"\n[lints]\nworkspace = true\n"),
            0
        );
        assert_eq!(breaches("[package]\nname = \"x\"\n"), 1);
        assert_eq!(
            breaches("[package]\nname = \"x\"\n[lints]\nworkspace = false\n"),
            1
        );
        assert_eq!(
            breaches("[package]\nname = \"x\"\n[lints.clippy]\nall = \"warn\"\n"),
            1
        );
        assert_eq!(breaches("[workspace]\nmembers = []\n"), 0);
        assert_eq!(breaches("[package\n"), 1);
    }
}
