//! What a replay would send, and to which servers.

use super::draws;
use crate::arguments::replay::ReplayArguments;
use deltabench_capture::{Capture, Kind};
use deltabench_replay::{Survey, Work};
use std::fmt::Write;

/// The words of `--dry-run`. No value is among them.
pub fn outlook(arguments: &ReplayArguments, capture: &Capture, survey: &Survey) -> String {
    let work = Work::of(capture);
    let mut text = String::new();
    let names: Vec<&str> = std::iter::once(&arguments.base)
        .chain(&arguments.candidates)
        .map(String::as_str)
        .collect();
    let from = survey
        .dumped_from
        .as_ref()
        .map_or_else(String::new, |version| format!(" of {version}"));
    let mut line = |words: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format!(
        "new servers of deltabench, on local sockets: {}; no other server gets anything",
        names.join(", ")
    ));
    line(format!(
        "each would load {}{from}: {} statements, rows of {} tables, {} MB",
        arguments.data.display(),
        survey.statements,
        survey.tables,
        survey.data_bytes >> 20
    ));
    if !survey.extensions.is_empty() {
        let extensions: Vec<&str> = survey.extensions.iter().map(String::as_str).collect();
        line(format!(
            "each needs the extensions {}",
            extensions.join(", ")
        ));
    }
    for (why, times) in &survey.skipped {
        line(format!(
            "left out of the dump: {times} statements: {}",
            why.words()
        ));
    }
    let tuples: usize = work.jobs.iter().map(|job| job.tuples.len()).sum();
    line(format!(
        "{} of {} statements with {tuples} sets of values, explained {} times on each server in transactions \
         that only read:",
        work.jobs.len(),
        capture.statements.len(),
        draws(arguments)
    ));
    for job in &work.jobs {
        let what = match job.statement.kind {
            Kind::Read if !arguments.no_execute => "explain, execute once",
            _ => "explain",
        };
        let name = job.statement.name.as_deref().unwrap_or(&job.statement.id);
        line(format!(
            "  {what:<21}  {name}  {} values  {}",
            job.tuples.len(),
            job.statement.normalised
        ));
    }
    if !arguments.no_execute {
        line(
            "a read that calls a volatile function of the database or reads a foreign table would be explained \
             only"
                .to_owned(),
        );
    }
    for left in &work.left_out {
        line(format!(
            "not sent: {} statements: {}",
            left.statements, left.why
        ));
    }
    text.trim_end().to_owned()
}
