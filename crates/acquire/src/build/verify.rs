//! Whether a build is what was asked for, by its own words.
//!
//! Build scripts go wrong in silence: one of the published builds is called `o3_nofp` and was made with
//! `-O2`.

use crate::command;
use deltabench_model::problem::Problem;
use std::path::Path;
use std::process::Command;

/// What was asked for.
pub(super) struct Asked<'a> {
    /// `17.11`.
    pub version: &'a str,
    /// Options of `configure`; none for meson, whose trees do not tell theirs.
    pub options: &'a [String],
    pub cflags: &'a str,
    pub ldflags: &'a str,
}

/// Asks the tree's `pg_config` and compares; returns what it says of its options.
///
/// Errors: it cannot be asked; it was built as another version, without an option, or with other flags.
pub(super) fn check(bin_dir: &Path, asked: &Asked<'_>) -> Result<String, Problem> {
    let said = ["--version", "--configure", "--cflags", "--ldflags"].map(|what| ask(bin_dir, what));
    let [version, configured, cflags, ldflags] = said;
    let configured = configured?;
    let mut wrong = Vec::new();
    let version = version?;
    if version.trim() != format!("PostgreSQL {}", asked.version) {
        wrong.push(format!(
            "requested version {}, got {}",
            asked.version,
            version.trim()
        ));
    }
    for option in asked.options {
        // pg_config quotes each word.
        if !configured.contains(&format!("'{option}'")) {
            wrong.push(format!(
                "requested {option}, pg_config --configure says {configured}"
            ));
        }
    }
    for (name, asked, said) in [
        ("cflags", asked.cflags, cflags?),
        ("ldflags", asked.ldflags, ldflags?),
    ] {
        if let Err(why) = holds(asked, &said) {
            wrong.push(format!(
                "{why}: requested `{asked}`, pg_config --{name} says `{said}`"
            ));
        }
    }
    if wrong.is_empty() {
        return Ok(configured);
    }
    Err(Problem::new("the build differs from the request")
        .detail(wrong.join("\n"))
        .hint(
            "deltabench kept nothing; does something in the source tree or the compiler change the \
             flags?",
        ))
}

/// Whether all flags are there, in their order, and none that comes later overrides the level of
/// optimisation.
fn holds(asked: &str, said: &str) -> Result<(), String> {
    let mut left = said.split_whitespace();
    for flag in asked.split_whitespace() {
        if !left.any(|word| word == flag) {
            return Err(format!("{flag} is missing"));
        }
    }
    let level = |flags: &str| {
        let last = flags
            .split_whitespace()
            .rfind(|flag| flag.starts_with("-O"));
        last.map(str::to_owned)
    };
    match (level(asked), level(said)) {
        (Some(asked), Some(said)) if asked != said => Err(format!("{said} comes after {asked}")),
        _ => Ok(()),
    }
}

fn ask(bin_dir: &Path, what: &str) -> Result<String, Problem> {
    let program = bin_dir.join("pg_config");
    let failed = |why: String| {
        Problem::new("the build cannot be checked")
            .detail(format!("{} {what}: {why}", program.display()))
    };
    let output = command::output(Command::new(&program).arg(what))
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_must_be_there_in_order_and_not_be_overridden() {
        assert_eq!(
            holds("-O3 -march=native", "-Wall -g -O3 -march=native"),
            Ok(())
        );
        assert_eq!(holds("", "-Wall -O2"), Ok(()));
        assert_eq!(holds("-O3", "-O2 -Wall -O3 -fwrapv"), Ok(()));
        let missing = holds("-O3 -flto", "-Wall -O3").unwrap_err();
        assert!(missing.contains("-flto is missing"));
        let overridden = holds("-O3", "-Wall -O3 -O2").unwrap_err();
        assert!(overridden.contains("-O2 comes after -O3"));
    }
}
