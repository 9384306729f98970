//! What a replay would send, and to which servers.

use crate::arguments::replay::ReplayArguments;
use deltabench_capture::{Capture, Kind};
use deltabench_replay::{Survey, Work};

/// The words of `--dry-run`. No value is among them.
pub fn outlook(arguments: &ReplayArguments, capture: &Capture, survey: &Survey) -> String {
    let mut lines = loading(arguments, survey);
    lines.extend(sending(arguments, capture));
    lines.join("\n")
}

fn loading(arguments: &ReplayArguments, survey: &Survey) -> Vec<String> {
    let names: Vec<&str> = std::iter::once(&arguments.base)
        .chain(&arguments.candidates)
        .map(String::as_str)
        .collect();
    let dumped = survey.dumped_from.as_ref();
    let from = dumped.map_or_else(String::new, |version| format!(" of {version}"));
    let mut lines = vec![
        format!(
            "new servers of deltabench, on local sockets: {}; deltabench sends nothing to any other server",
            names.join(", ")
        ),
        format!(
            "each would load {}{from}: {} statements, rows of {} tables, {} MB",
            arguments.data.display(),
            survey.statements,
            survey.tables,
            survey.data_bytes >> 20
        ),
    ];
    if !survey.extensions.is_empty() {
        let extensions: Vec<&str> = survey.extensions.iter().map(String::as_str).collect();
        lines.push(format!(
            "each needs the extensions {}",
            extensions.join(", ")
        ));
    }
    let reaching = survey.reaching_out();
    if !reaching.is_empty() {
        lines.push(format!(
            "warning: the dump has {}: its own functions, indexes and materialized views may reach other \
             machines",
            reaching.join(", ")
        ));
    }
    let skipped = survey.skipped.iter();
    lines.extend(
        skipped.map(|(why, times)| {
            format!("left out of the dump: {times} statements: {}", why.words())
        }),
    );
    lines
}

fn sending(arguments: &ReplayArguments, capture: &Capture) -> Vec<String> {
    let work = Work::of(capture);
    let tuples: usize = work.jobs.iter().map(|job| job.tuples.len()).sum();
    let mut lines = vec![format!(
        "{} of {} statements with {tuples} sets of values, explained {} times on each server in transactions \
         that only read:",
        work.jobs.len(),
        capture.statements.len(),
        arguments.draws
    )];
    for job in &work.jobs {
        let what = match job.statement.kind {
            Kind::Read if !arguments.no_execute => "explain, execute once",
            _ => "explain",
        };
        let name = job.statement.name.as_deref().unwrap_or(&job.statement.id);
        let (values, text) = (job.tuples.len(), &job.statement.normalised);
        lines.push(format!("  {what:<21}  {name}  {values} values  {text}"));
    }
    if !arguments.no_execute {
        lines.push(
            "only explained: a read that calls a volatile function of the database, or reads a foreign table"
                .to_owned(),
        );
    }
    let left_out = work.left_out.iter();
    lines.extend(
        left_out.map(|left| format!("not sent: {} statements: {}", left.statements, left.why)),
    );
    lines
}
