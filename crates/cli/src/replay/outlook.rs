//! What a replay would send, and to which servers.

use super::clock;
use super::source::{account_told, settings_told};
use super::{COPY_LIMIT, consent, draws, timeout};
use crate::amounts::span;
use crate::arguments::replay::{ReplayArguments, Values};
use crate::request::time;
use deltabench_capture::{Capture, Kind};
use deltabench_kinds::replay::LEAST_SECONDS;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::{count, to_f64};
use deltabench_replay::{ClockWish, Consent, Data, Job, Survey, Work, wanting};
use deltabench_server::{DataDirectory, ServerUser};
use std::collections::BTreeMap;
use std::path::Path;

/// The words of `--dry-run`. No value is among them.
///
/// Errors: those of [`copying`].
pub fn outlook(
    (arguments, clock): (&ReplayArguments, &ClockWish),
    specs: &[TargetSpec],
    capture: &Capture,
    (data, user): (Data<'_>, Option<&ServerUser>),
) -> Result<String, Problem> {
    let mut lines = match data {
        Data::Dump { file, survey } => loading(arguments, file.path(), survey),
        Data::Directory(data) => copying(arguments, data.directory, user)?,
        Data::AsIs => looking(specs),
    };
    lines.extend(clock::outlook(clock));
    lines.extend(sending((arguments, specs), capture, data.is_ours()));
    Ok(lines.join("\n"))
}

/// What deltabench does on servers that already run, before a statement of the user.
fn looking(specs: &[TargetSpec]) -> Vec<String> {
    let mut lines = vec!["servers that already run, and nothing else:".to_owned()];
    let place = |spec: &TargetSpec| match spec {
        TargetSpec::Dsn(remote) => Some(format!(
            "  {}:{}, database {}, as {}",
            remote.host, remote.port, remote.database, remote.user
        )),
        _ => None,
    };
    lines.extend(specs.iter().filter_map(place));
    lines.push(
        "first: the role must be no superuser and no member of a powerful role; tables, sizes and settings \
         are compared; nothing is created, changed, analysed or restarted"
            .to_owned(),
    );
    lines
}

/// The targets as they were named.
fn targets(arguments: &ReplayArguments) -> String {
    let all = std::iter::once(&arguments.base).chain(&arguments.candidates);
    all.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// What deltabench does with a data directory; `user` runs the servers.
///
/// Errors: its settings cannot be read.
fn copying(
    arguments: &ReplayArguments,
    directory: &DataDirectory,
    user: Option<&ServerUser>,
) -> Result<Vec<String>, Problem> {
    let mut lines = vec![
        format!(
            "new servers of deltabench, on local sockets: {}; deltabench sends nothing to any other server",
            targets(arguments)
        ),
        format!(
            "each would get a copy of {} of {} ({} MB), which is only read; pg_upgrade makes those of other \
             versions; the copies lose passwords, subscriptions, user mappings and slots before they listen",
            directory.path().display(),
            directory.major(),
            directory.bytes() >> 20
        ),
    ];
    if directory.is_backup() {
        lines.push(
            "it is a base backup: a server of one session would recover the first copy, with the write-ahead \
             log that is in it and nothing else"
                .to_owned(),
        );
    }
    let told = user.map(|user| account_told(directory, user, arguments.allow_functions));
    lines.extend(told);
    lines.extend(settings_told(directory, arguments.configuration.is_some())?);
    Ok(lines)
}

fn loading(arguments: &ReplayArguments, data: &Path, survey: &Survey) -> Vec<String> {
    let dumped = survey.dumped_from.as_ref();
    let from = dumped.map_or_else(String::new, |version| format!(" of {version}"));
    let mut lines = vec![
        format!(
            "new servers of deltabench, on local sockets: {}; deltabench sends nothing to any other server",
            targets(arguments)
        ),
        format!(
            "each would load {}{from}: {} statements, rows of {} tables, {} MB",
            data.display(),
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

fn sending(
    (arguments, specs): (&ReplayArguments, &[TargetSpec]),
    capture: &Capture,
    own: bool,
) -> Vec<String> {
    let work = Work::of(capture);
    let tuples: usize = work.jobs.iter().map(|job| job.tuples.len()).sum();
    let mut lines = vec![format!(
        "{} of {} statements with {tuples} sets of values, explained {} on each server in transactions that \
         only read, {} s at most for each:",
        work.jobs.len(),
        capture.statements.len(),
        match own {
            true => format!("{} times", draws(arguments)),
            false => "once".to_owned(),
        },
        timeout(arguments).unwrap_or(0)
    )];
    let consent = consent(arguments, specs);
    for job in &work.jobs {
        lines.extend(of_statement(job, consent));
    }
    lines.extend(making_up(arguments, capture));
    if consent.reads {
        lines.push(format!(
            "may execute: once for each set of values, if {}; again on the base if a result differs",
            consent.conditions().join(", and ")
        ));
    }
    if consent.writes {
        lines.push(format!(
            "writes and locks: on a new copy of the tables for each statement on each server, if the \
             database has no more than {}{}",
            arguments.copy_limit.as_deref().unwrap_or(COPY_LIMIT),
            match consent.functions {
                true => "",
                false =>
                    ", no extension or language that reaches other machines, and no SECURITY DEFINER \
                     function of a superuser",
            }
        ));
    }
    if !arguments.plans_only {
        lines.push(format!(
            "then executed again and again for {}, in up to {}: {} that all of them have executed; the \
             base twice, as itself and as {}",
            arguments.budget,
            match own {
                true => format!("{} restarts of all servers", arguments.blocks),
                false => format!("{} blocks with new connections", arguments.blocks),
            },
            if consent.writes { "statements" } else { "reads" },
            if own { "its own copy" } else { "placebo" }
        ));
    }
    lines.extend(too_short((arguments, specs), work.jobs.len(), consent));
    if let Some(clients) = arguments.mix {
        lines.push(format!(
            "and a mix: {clients} clients at once send them without a pause, drawn by calls"
        ));
    }
    let left_out = work.left_out.iter();
    lines.extend(
        left_out.map(|left| format!("not sent: {} statements: {}", left.statements, left.why)),
    );
    lines
}

/// That the time is over before each statement was visited once on each server, if it is.
fn too_short(
    (arguments, specs): (&ReplayArguments, &[TargetSpec]),
    statements: usize,
    consent: Consent,
) -> Option<String> {
    let budget = time(&arguments.budget).ok()?;
    // The base runs twice.
    let visits = count(statements) * count(specs.len() + 1);
    let least = to_f64(visits) * LEAST_SECONDS;
    let measured = !arguments.plans_only && consent.reads;
    (measured && least > budget).then(|| {
        format!(
            "note: {} is too short: one visit to each statement on each server takes {} or more; allow \
             several times that with --budget",
            arguments.budget,
            span(least)
        )
    })
}

/// What would be sent of statements without values.
fn making_up(arguments: &ReplayArguments, capture: &Capture) -> Option<String> {
    let wanting = match arguments.values {
        Values::MadeUp => wanting(capture).count(),
        Values::Captured => 0,
    };
    (wanting > 0).then(|| {
        format!(
            "{wanting} statements without values, counted below as not sent, are sent with values that are \
             made up: the base says what their parameters are compared with, and rows of these tables are \
             read there"
        )
    })
}

/// What would be sent of a statement, and why some of it would only be explained.
fn of_statement(job: &Job<'_>, consent: Consent) -> Vec<String> {
    let mut objections: BTreeMap<String, usize> = BTreeMap::new();
    for tuple in &job.tuples {
        if let Some(objection) = consent.objection_of_text(job, tuple) {
            *objections.entry(objection).or_default() += 1;
        }
    }
    let (of, explained) = (job.tuples.len(), objections.values().sum::<usize>());
    let what = match explained == of {
        true => "explain",
        false => "explain, may execute",
    };
    let name = job.statement.name.as_deref().unwrap_or(&job.statement.id);
    let text = &job.statement.normalised;
    let mut lines = vec![format!("  {what:<20}  {name}  {of} values  {text}")];
    // Of writes, and of --no-execute, the user knows.
    if consent.reads && (consent.writes || job.statement.kind == Kind::Read) {
        let why = |(objection, values): (String, usize)| {
            format!(
                "  {:<20}  not executed for {values} of {of}: {objection}",
                ""
            )
        };
        lines.extend(objections.into_iter().map(why));
    }
    lines
}
