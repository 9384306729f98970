//! Where each server of a run came from, in words: configuration, build, place.

use deltabench_model::installation::{Recipe, Remote, RemoteTls};
use deltabench_model::plan::{Adapted, ExperimentPart, PlannedServer};

/// What is known of a server besides its target, as names and values; only what applies.
pub(crate) fn facts(server: &PlannedServer) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if server.label.is_some() && server.name() != server.installation.resolved {
        rows.push(("called", server.name()));
    }
    if !server.coordinates.is_empty() {
        rows.push(("coordinates", pairs(&server.coordinates, " ")));
    }
    if let Some(used) = &server.configuration {
        rows.push(("configuration", used.name.clone()));
        rows.push(("adapted to its version", adapted(&used.adapted)));
    }
    if !server.settings.is_empty() {
        rows.push(("own settings", pairs(&server.settings, " = ")));
    }
    rows.extend(server.installation.recipe.iter().flat_map(recipe));
    rows.extend(server.installation.remote.iter().flat_map(remote));
    rows
}

/// The names that [`facts`] may have, in order.
pub(crate) const NAMES: [&str; 15] = [
    "called",
    "coordinates",
    "configuration",
    "adapted to its version",
    "own settings",
    "build variant",
    "build source",
    "build system",
    "build options",
    "build CFLAGS",
    "build LDFLAGS",
    "build compiler",
    "build environment",
    "reached at",
    "connection",
];

fn adapted(list: &[Adapted]) -> String {
    let texts: Vec<String> = list
        .iter()
        .map(|one| {
            let asked = format!("{} = {}", one.asked.0, one.asked.1);
            let became = match one.became.as_slice() {
                [] => "dropped".to_owned(),
                became => format!("became {}", pairs(became, " = ")),
            };
            format!("{asked} {became} ({})", one.why)
        })
        .collect();
    if texts.is_empty() {
        "nothing".to_owned()
    } else {
        texts.join("; ")
    }
}

fn recipe(recipe: &Recipe) -> Vec<(&'static str, String)> {
    let list = [
        ("build variant", recipe.variant.clone()),
        ("build source", recipe.source.clone()),
        ("build system", recipe.system.clone()),
        ("build options", recipe.options.join(" ")),
        ("build CFLAGS", recipe.cflags.clone()),
        ("build LDFLAGS", recipe.ldflags.clone()),
        ("build compiler", recipe.compiler.clone()),
        ("build environment", pairs(&recipe.environment, "=")),
    ];
    let known = list.into_iter().filter(|(_, value)| !value.is_empty());
    known.collect()
}

fn remote(remote: &Remote) -> Vec<(&'static str, String)> {
    let place = format!(
        "{} port {}, database {} as {}",
        remote.host, remote.port, remote.database, remote.user
    );
    let tls = match remote.tls {
        RemoteTls::Disable => "not encrypted",
        RemoteTls::Prefer => "encrypted if the server can",
        RemoteTls::Require => "encrypted, certificate not checked",
        RemoteTls::VerifyCa => "encrypted, with a certificate that a trusted authority signed",
        RemoteTls::VerifyFull => "encrypted, with a trusted certificate for this host",
    };
    let agent = match &remote.agent {
        Some(agent) => format!("counters of its machine from {agent}"),
        None => "no counters of its machine: no agent".to_owned(),
    };
    let trusted = remote.root_certificate.as_ref();
    let trusted = trusted.map_or_else(String::new, |file| format!(", trusting {}", file.display()));
    vec![
        ("reached at", place),
        ("connection", format!("{tls}{trusted}; {agent}")),
    ]
}

/// `part 2 of 4 of the experiment NAME, repetition 1: storage gp3-3000, rows 1000000`.
pub(crate) fn part(part: &ExperimentPart) -> String {
    let mut text = format!(
        "part {} of {} of the experiment {}",
        part.part, part.of, part.experiment
    );
    if let Some(scale) = &part.scale {
        text.push_str(&format!(" at scale {scale}"));
    }
    if let Some((group, of)) = part.group {
        text.push_str(&format!(", group {group} of {of} of its servers"));
    }
    if part.repetition > 1 {
        text.push_str(&format!(", repetition {}", part.repetition));
    }
    if !part.coordinates.is_empty() {
        text.push_str(&format!(" ({})", pairs(&part.coordinates, " ")));
    }
    text
}

fn pairs(list: &[(String, String)], between: &str) -> String {
    let texts: Vec<String> = list
        .iter()
        .map(|(name, value)| format!("{name}{between}{value}"))
        .collect();
    texts.join(", ")
}
