//! What an address asks to compare: versions, or servers of runs.

use crate::builds::Known;
use crate::digest::digest;
use crate::entry::{Entry, Server};
use crate::lab::Lab;
use deltabench_model::plan::Role;

/// An end that this lab has.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) server: Server,
    /// The run that is meant, if one is.
    pub(super) run: Option<String>,
    /// Other builds that have this name, too.
    pub(super) others: usize,
}

/// The end that a text means: the key of a version, its name, a run with a server (`RUN:1`, `RUN:NAME`), or a
/// run with one candidate.
///
/// Errors: why there is none, as a sentence.
pub(super) fn find(lab: &Lab, text: &str) -> Result<Found, String> {
    let (run, server) = text.split_once(':').unwrap_or((text, ""));
    match lab.entry(run) {
        Some(entry) => of_run(entry, server),
        None => version(lab, text),
    }
}

fn of_run(entry: &Entry, asked: &str) -> Result<Found, String> {
    let all = || entry.servers.iter();
    let is = |server: &&Server| {
        let is_number = server.id.0.to_string() == asked;
        is_number || server.role != Role::Placebo && server.name == asked
    };
    let mut candidates = entry.candidates();
    let found = match (asked, candidates.next(), candidates.next()) {
        ("", Some(only), None) => Some(only),
        _ => all().find(is),
    };
    match found {
        Some(server) => Ok(Found {
            server: server.clone(),
            run: Some(entry.name.clone()),
            others: 0,
        }),
        None => {
            let known = all().map(|server| format!("{} is {}", server.id.0, server.name));
            let known: Vec<String> = known.collect();
            Err(format!(
                "Write the number of the server after the run: in {} {}.",
                entry.name,
                known.join(", ")
            ))
        }
    }
}

/// The newest build of a key or a name.
fn version(lab: &Lab, asked: &str) -> Result<Found, String> {
    let all = lab.measured_servers();
    let is_named = |known: &&Known| {
        let server = &known.server;
        let names = [&server.name, &server.version.target];
        let mut names = names.into_iter().map(String::as_str);
        key(server) == asked
            || names.any(|name| name == asked || name.strip_prefix("postgres:") == Some(asked))
    };
    let mut found: Vec<&Known> = all.values().filter(is_named).collect();
    if found.is_empty() {
        let of_number = all
            .values()
            .filter(|one| one.server.version.number == asked);
        found = of_number.collect();
    }
    // Of several builds the one that was measured last.
    match found.iter().max_by_key(|one| one.runs.last()) {
        Some(newest) => Ok(Found {
            server: newest.server.clone(),
            run: None,
            others: found.len().saturating_sub(1),
        }),
        None => Err(format!("No run of this lab has a version “{asked}”.")),
    }
}

/// The key of a version with its settings.
pub(super) fn key(server: &Server) -> String {
    digest(&server.identity)
}
