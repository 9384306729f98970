//! What a server program says about itself without being started.

use crate::failure::failed;
use deltabench_model::problem::Problem;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a server program answers to values for its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Taken,
    /// It does not, in its words.
    Refused(String),
}

/// The settings that the program lists.
///
/// Shape:  lines of name, context, group, type, default, least, largest, two descriptions; between tabs.
/// Errors: it cannot be run, or does not list any.
/// Source: src/backend/utils/misc/help_config.c. Works for root as well.
pub(super) fn describe(postgres: &Path) -> Result<String, Problem> {
    let output = run(postgres, &["--describe-config".to_owned()])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && !text.is_empty() {
        return Ok(text);
    }
    Err(
        Problem::new(format!("{} does not list its settings", postgres.display()))
            .detail(complaint(&output)),
    )
}

/// Whether the program has the setting `name` and takes these values, all at a time.
///
/// Checks of one value against another, and of what only a starting server finds, are not made.
///
/// Errors: it cannot be run.
/// Source: PostgresMain with `-C`: settings are read and checked before a data directory is looked at; root
/// may ask too. The places it wants to know are given, and not looked at.
pub(super) fn ask(
    postgres: &Path,
    name: &str,
    values: &[(String, String)],
) -> Result<Answer, Problem> {
    let mut arguments = vec!["-C".to_owned(), name.to_owned()];
    let places = [
        ("data_directory", "/nonexistent"),
        ("config_file", "/dev/null"),
        ("hba_file", "/dev/null"),
        ("ident_file", "/dev/null"),
    ];
    let places = places.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (name, value) in places.iter().chain(values) {
        arguments.push("-c".to_owned());
        arguments.push(format!("{name}={value}"));
    }
    let output = run(postgres, &arguments)?;
    if output.status.success() {
        return Ok(Answer::Taken);
    }
    Ok(Answer::Refused(complaint(&output)))
}

/// Whether an answer is that there is no such setting.
pub(super) fn is_unknown(complaint: &str) -> bool {
    complaint.contains("unrecognized configuration parameter")
}

fn run(postgres: &Path, arguments: &[String]) -> Result<Output, Problem> {
    Command::new(postgres)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed("run", postgres, &error))
}

/// What the program complains of, without times and process ids; all it said if that is not to be found.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let parts = ["FATAL:  ", "ERROR:  ", "DETAIL:  ", "HINT:  "];
    let told: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let at = parts.iter().filter_map(|part| line.find(part)).min()?;
            Some(line.get(at..)?.replace(":  ", ": "))
        })
        .collect();
    if told.is_empty() {
        format!("{text}{}", output.status)
    } else {
        told.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that says this instead of a server. Another process writes it: one that we hold open for
    /// writing while another test forks cannot be run.
    fn program(directory: &Path, script: &str) -> std::path::PathBuf {
        let path = directory.join("postgres");
        let write = "printf '#!/bin/sh\n%s\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let written = Command::new("/bin/sh")
            .args([
                "-c".as_ref(),
                write.as_ref(),
                path.as_os_str(),
                script.as_ref(),
            ])
            .status()
            .unwrap();
        assert!(written.success());
        path
    }

    #[test]
    fn a_complaint_is_told_without_times_and_process_ids() {
        let scratch = tempfile::tempdir().unwrap();
        let script = "echo '2026-11-21 20:23:00 GMT [7] LOG:  skipping' >&2
echo '2026-11-21 20:23:00 GMT [7] FATAL:  invalid value for parameter \"io_method\": \"io_uring\"' >&2
echo '2026-11-21 20:23:00 GMT [7] HINT:  Available values: sync, worker.' >&2; exit 1";
        let postgres = program(scratch.path(), script);
        let wanted = "FATAL: invalid value for parameter \"io_method\": \"io_uring\"\n\
                      HINT: Available values: sync, worker.";
        assert_eq!(
            ask(&postgres, "io_method", &[]).unwrap(),
            Answer::Refused(wanted.into())
        );
    }

    #[test]
    fn a_program_that_is_no_server_is_told_as_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let postgres = program(scratch.path(), "echo nonsense >&2; exit 3");
        let problem = describe(&postgres).unwrap_err();
        assert!(problem.error.ends_with("does not list its settings"));
        assert!(problem.detail.unwrap().contains("nonsense"));
        let Answer::Refused(told) = ask(&postgres, "work_mem", &[]).unwrap() else {
            panic!("taken");
        };
        assert!(told.contains("nonsense") && told.contains("exit status: 3"));
        assert!(describe(Path::new("/no/such/postgres")).is_err());
    }
}
