//! A replay: what fails, which plans change, which results differ; as text, as Markdown, as a page, as JSON.
//!
//! The JSON is a contract (`docs/reference/replay.schema.json`): fields are added, never renamed.

mod data;
mod findings;
mod made_up;
mod markdown;
mod mix;
mod page;
mod parting;
mod times;
mod why;
mod writes;

pub use markdown::replayed_markdown;
pub use page::replayed_page;

use crate::lines::wrapped;
use crate::words::{plural, timestamp};
use deltabench_model::replayed::{
    PlanVerdict, ReplayFailure, ReplayVerdict, Replayed, ReplayedClock, ReplayedStatement,
    ResultVerdict,
};
use deltabench_model::units::count;
use findings::{Finding, Section, verdicts};
use std::collections::BTreeMap;

/// Characters of a statement that a line shows.
const TEXT_SHOWN: usize = 96;
/// Statements of a list before the rest is counted.
const SHOWN: usize = 40;
/// Indent of what belongs to a statement.
const INDENT: usize = 10;

/// A replay as JSON.
pub fn replayed_json(replayed: &Replayed) -> String {
    // Plain structs: there is nothing that JSON cannot hold.
    serde_json::to_string_pretty(replayed).unwrap_or_default()
}

/// A replay as text for a terminal.
pub fn replayed_text(replayed: &Replayed, width: usize) -> String {
    let mut lines = Vec::new();
    for place in 1..replayed.servers.len() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(of_candidate(replayed, place, width));
    }
    lines.push(String::new());
    for text in left_out(replayed) {
        lines.extend(wrapped(&text, width, 0, 2));
    }
    lines.join("\n")
}

fn of_candidate(replayed: &Replayed, place: usize, width: usize) -> Vec<String> {
    let mut lines = wrapped(&head(replayed, place), width, 0, 2);
    if let Some(text) = not_compared(replayed, place) {
        lines.extend(wrapped(&text, width, 2, 4));
    }
    if let Some(data) = data::sentence(replayed, place) {
        lines.extend(wrapped(&data, width, 2, 4));
    }
    if let Some(head) = times::head(replayed, place) {
        lines.extend(wrapped(&head, width, 2, 4));
    }
    if let Some(mix) = mix::sentence(replayed, place) {
        lines.extend(wrapped(&mix, width, 2, 4));
    }
    for section in Section::ALL {
        if section == Section::Plan {
            lines.extend(times::lines(replayed, place, width));
        }
        let mut findings = section.findings(replayed, place);
        findings.retain(|finding| !is_in_times(section, finding));
        if !findings.is_empty() {
            lines.push(String::new());
        }
        for finding in findings.iter().take(SHOWN) {
            lines.extend(finding_lines(replayed, section, finding, width));
        }
        let more = findings.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(format!(
                "{:<INDENT$}and {more} more, in the page and in the JSON",
                ""
            ));
        }
    }
    lines
}

/// Whether a row of the times says where a plan changed.
fn is_in_times(section: Section, finding: &Finding<'_>) -> bool {
    let told = |verdict: &ReplayVerdict| section == Section::Plan && times::is_told(verdict);
    matches!(finding, Finding::Statement(_, verdict) if told(verdict))
}

/// What is said of one statement or object: its share, its name and text, what there is to say.
fn named(
    replayed: &Replayed,
    section: Section,
    finding: &Finding<'_>,
) -> (Option<f64>, String, Vec<String>) {
    match finding {
        Finding::Object(object) => (
            None,
            format!("{} (line {} of the dump)", object.what, object.line),
            vec![format!("{} {}", object.sqlstate, object.message)],
        ),
        Finding::Statement(statement, verdict) => {
            let text = short(&statement.text);
            let name = statement.name.as_ref();
            let mut texts = section.texts(replayed, statement, verdict);
            texts.extend(made_up::words(statement));
            (
                statement.share,
                name.map_or(text.clone(), |name| format!("{name}  {text}")),
                texts,
            )
        }
    }
}

fn finding_lines(
    replayed: &Replayed,
    section: Section,
    finding: &Finding<'_>,
    width: usize,
) -> Vec<String> {
    let (share, name, texts) = named(replayed, section, finding);
    let share = share.map_or_else(String::new, |share| format!("{:>6.1} %", share * 100.0));
    let mut lines = vec![format!("{:<INDENT$}{share:<8}  {name}", section.sign())];
    for text in &texts {
        lines.extend(wrapped(text, width, INDENT, INDENT + 2));
    }
    lines
}

/// A text in at most so many characters.
fn short(text: &str) -> String {
    if text.chars().count() <= TEXT_SHOWN {
        return text.to_owned();
    }
    let cut: String = text.chars().take(TEXT_SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}

/// `postgres:18.6 vs postgres:14.24 on shop.sql …: 1 statement fails, …`.
pub(crate) fn head(replayed: &Replayed, place: usize) -> String {
    let name = |place: usize| server_name(replayed, place);
    format!(
        "{} vs {} on {} ({}): {}",
        name(place),
        name(0),
        base_name(&replayed.capture.path),
        covered(replayed),
        found_words(replayed, place)
    )
}

/// `NOT COMPARED: 12 of 29 statements, 41.2 % of the time, fail on both servers, …`; absent if few do.
fn not_compared(replayed: &Replayed, place: usize) -> Option<String> {
    let found = replayed.not_compared(place)?;
    let weight = replayed.covered.weighted_by.words();
    let share = found.share.map_or_else(String::new, |share| {
        format!(", {:.1} % {weight},", share * 100.0)
    });
    let failure = found.failure.map_or_else(String::new, |failure| {
        format!(
            ", for example with {} {}",
            failure.sqlstate, failure.message
        )
    });
    let way_out = match &replayed.data {
        Some(data) if data.directory.is_none() => {
            "; dump with owners and privileges (without -O and -x), and all schemas of the statements"
        }
        _ => "",
    };
    Some(format!(
        "NOT COMPARED: {} of {}{share} fail on both servers{failure}; what this report says is about the \
         others{way_out}",
        found.statements,
        plural(found.of, "statement"),
    ))
}

/// A server with the settings that not all of them have.
pub(crate) fn server_name(replayed: &Replayed, place: usize) -> String {
    let Some(server) = replayed.servers.get(place) else {
        return String::new();
    };
    let of_all = |setting: &(String, String)| {
        let mut servers = replayed.servers.iter();
        servers.all(|server| server.settings.contains(setting))
    };
    let own = server.settings.iter().filter(|setting| !of_all(setting));
    let settings: Vec<String> = own
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    format!("{}{}", server.name, settings.concat())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or(path)
}

fn covered(replayed: &Replayed) -> String {
    let covered = &replayed.covered;
    let share = covered.share.map_or_else(String::new, |share| {
        format!(", {:.1} % {}", share * 100.0, covered.weighted_by.words())
    });
    format!(
        "{} of {}{share}, {}",
        covered.statements,
        plural(covered.of, "statement"),
        sets(covered.tuples)
    )
}

fn sets(count: u64) -> String {
    match count {
        1 => "1 set of values".to_owned(),
        count => format!("{count} sets of values"),
    }
}

/// `1 statement fails, 2 have another plan, …`.
fn found_words(replayed: &Replayed, place: usize) -> String {
    let with = |section: Section| section.statements(replayed, place);
    let objects = count(Section::Fails.objects(replayed, place).count());
    let (plans, results) = (with(Section::Plan), with(Section::Result));
    let caused = |(_, verdict): &(&ReplayedStatement, &ReplayVerdict)| {
        Section::Result.has(verdict) && !verdict.causes.is_empty()
    };
    let caused = match verdicts(replayed, place).filter(caused).count() {
        0 => String::new(),
        known => format!(" ({known} for known causes)"),
    };
    let verb = |count: u64, one: &str, several: &str| match count {
        1 => format!("1 statement {one}"),
        count => format!("{count} statements {several}"),
    };
    let mut parts = Vec::new();
    if objects > 0 {
        parts.push(format!(
            "{} of the dump cannot be loaded",
            plural(objects, "object")
        ));
    }
    parts.push(verb(with(Section::Fails), "fails", "fail"));
    let late = with(Section::TimeOut);
    if late > 0 {
        parts.push(format!("{late} no longer in time"));
    }
    parts.push(match plans {
        1 => "1 has another plan".to_owned(),
        plans => format!("{plans} have another plan"),
    });
    parts.push(match (replayed.executed, results) {
        (false, _) => "none was executed".to_owned(),
        (true, 1) => format!("1 returns something else{caused}"),
        (true, results) => format!("{results} return something else{caused}"),
    });
    let more = [
        (Section::OtherError, "with another error"),
        (Section::Unstable, "with unstable plans"),
        (Section::Order, "in another order"),
        (Section::Varies, "with results that also differ on the base"),
        (Section::Moved, "with too few rows to compare"),
        (Section::Unknown, "without an answer"),
    ];
    let more = more.map(|(section, what)| (with(section), what));
    let more = more.iter().filter(|(many, _)| *many > 0);
    parts.extend(more.map(|(many, what)| format!("{many} {what}")));
    let failing = [
        (Section::FailsOnBase, "on the base only"),
        (Section::FailsOnBoth, "on both"),
    ];
    let failing = failing.map(|(section, where_)| (with(section), where_));
    parts.extend(failing.iter().filter_map(|(many, where_)| match many {
        0 => None,
        1 => Some(format!("1 fails {where_}")),
        many => Some(format!("{many} fail {where_}")),
    }));
    parts.join(", ")
}

/// Why a server did not do a statement: errors, time-outs, what it could not say.
fn failure_texts(statement: &ReplayedStatement, place: usize) -> Vec<String> {
    let Some(on) = statement.servers.get(place) else {
        return Vec::new();
    };
    let words = |tuples: u64| match statement.tuples {
        1 => String::new(),
        of => format!(" ({tuples} of {of} sets of values)"),
    };
    let failure = |failure: &ReplayFailure| {
        let (sqlstate, message) = (&failure.sqlstate, &failure.message);
        format!("{sqlstate} {message}{}", words(failure.tuples))
    };
    let mut texts: Vec<String> = on.failures.iter().map(failure).collect();
    if on.too_long > 0 {
        texts.push(format!(
            "does not end within the time-out{}",
            words(on.too_long)
        ));
    }
    texts.extend(on.unknown.iter().cloned());
    texts
}

/// What kept a statement from being done on either side.
pub(crate) fn error_texts(statement: &ReplayedStatement, verdict: &ReplayVerdict) -> Vec<String> {
    let (base, candidate) = (
        failure_texts(statement, 0),
        failure_texts(statement, verdict.server),
    );
    if base.is_empty() || base == candidate {
        return candidate;
    }
    let side = |side: &'static str, texts: Vec<String>| {
        texts.into_iter().map(move |text| format!("{side}: {text}"))
    };
    let candidate = side("on the candidate", candidate);
    candidate.chain(side("on the base", base)).collect()
}

/// `another plan for 4 of 64 sets of values, 31 % of the statement`.
pub(crate) fn changed_for(statement: &ReplayedStatement, verdict: &ReplayVerdict) -> String {
    if statement.tuples == 1 {
        return "another plan".to_owned();
    }
    if verdict.changed == statement.tuples {
        return format!("another plan for all {} sets of values", statement.tuples);
    }
    format!(
        "another plan for {} of {} sets of values, {:.0} % of the statement",
        verdict.changed,
        statement.tuples,
        verdict.changed_share * 100.0
    )
}

pub(crate) fn result_texts(statement: &ReplayedStatement, verdict: &ReplayVerdict) -> Vec<String> {
    let what = match verdict.results {
        ResultVerdict::RowsDiffer if statement.kind == "write" => {
            "another number of rows changed, on a copy"
        }
        ResultVerdict::RowsDiffer => "another number of rows",
        ResultVerdict::ResultsDiffer => "as many rows, with other values",
        ResultVerdict::OrderDiffers => "the same rows in another order",
        ResultVerdict::NotRepeatable => {
            "results that also differ between two executions on the base"
        }
        ResultVerdict::Same => "the same result",
        ResultVerdict::Moved => "the same result, of too few rows to say something",
        ResultVerdict::NotExecuted => "not executed",
    };
    let many = match verdict.differing {
        0 | 1 => String::new(),
        many => format!(" for {many} sets of values"),
    };
    let mut texts = vec![format!("{what}{many}")];
    if !verdict.causes.is_empty() {
        let word = match verdict.results {
            ResultVerdict::NotExecuted | ResultVerdict::Moved => "because",
            _ => "known causes",
        };
        texts.push(format!("{word}: {}", verdict.causes.join("; ")));
    }
    texts
}

/// Where plans flip with the statistics.
fn unstable_texts(statement: &ReplayedStatement, verdict: &ReplayVerdict) -> Vec<String> {
    let unstable = |place: usize| statement.servers.get(place).map_or(0, |on| on.unstable);
    vec![match verdict.plans {
        PlanVerdict::UnstableBase => format!(
            "the plan on the base changes with each ANALYZE, for {} of {} sets of values: no difference \
             between the servers",
            unstable(0),
            statement.tuples
        ),
        _ => format!(
            "the plan on the candidate changes with each ANALYZE, for {} of {} sets of values; on the \
             base it does not",
            unstable(verdict.server),
            statement.tuples
        ),
    }]
}

/// What the answers do not cover.
pub(crate) fn left_out(replayed: &Replayed) -> Vec<String> {
    let mut texts = Vec::new();
    for left in &replayed.left_out {
        let share = left.share.map_or_else(String::new, |share| {
            format!(
                ", {:.1} % {}",
                share * 100.0,
                replayed.covered.weighted_by.words()
            )
        });
        texts.push(format!(
            "not replayed: {}{share}: {}",
            plural(left.statements, "statement"),
            left.why
        ));
    }
    let explained = |statement: &&ReplayedStatement| {
        let mut verdicts = statement.verdicts.iter();
        verdicts.all(|verdict| verdict.results == ResultVerdict::NotExecuted)
    };
    let statements = || replayed.statements.iter();
    let only_explained = statements().filter(|statement| is_only_explained(statement));
    let only_explained = count(only_explained.count());
    if only_explained > 0 {
        texts.push(format!(
            "explained and not executed: {} (writes and locks)",
            plural(only_explained, "statement")
        ));
    }
    if replayed.executed {
        let unexecuted = statements().filter(explained);
        texts.extend(not_executed(
            unexecuted.filter(|statement| !is_only_explained(statement)),
        ));
    }
    texts.extend(made_up::notes(replayed));
    texts.extend(replayed.clock.as_ref().map(clock));
    texts.extend(writes::notes(replayed));
    texts.extend(replayed.notes.iter().cloned());
    texts.extend(times::notes(replayed));
    texts.extend(mix::note(replayed));
    let each = match replayed.times {
        Some(_) => "plans and results: each",
        None => "no time was measured: another plan may be faster or slower. Each",
    };
    let Some(data) = &replayed.data else {
        texts.push(match replayed.differences.is_empty() {
            true => "the data sets of the servers are alike, by tables, estimated rows, pages and settings"
                .to_owned(),
            false => format!("the data sets differ: {}", replayed.differences.join("; ")),
        });
        texts.push(format!("{each} server has the statistics that were there"));
        return texts;
    };
    let base = replayed.servers.first();
    let on_disk = base.and_then(|server| server.data_bytes);
    texts.push(format!(
        "{each} server drew its statistics {}, {}{}",
        match replayed.draws {
            1 => "once".to_owned(),
            draws => format!("{draws} times"),
        },
        data::drawn_on(data),
        on_disk.map_or_else(String::new, |bytes| format!(
            " ({} on disk)",
            megabytes(bytes)
        ))
    ));
    texts
}

/// The time of day that the servers had.
fn clock(clock: &ReplayedClock) -> String {
    let asking = match clock.statements {
        1 => "1 statement asks for the time".to_owned(),
        many => format!("{many} statements ask for the time"),
    };
    match clock.at {
        Some(at) => format!(
            "clock: on all servers it begins at {} UTC at each start: {}; {asking}",
            timestamp(at.saturating_mul(1000)),
            clock.why
        ),
        None => format!("clock: that of this machine: {}; {asking}", clock.why),
    }
}

/// Whether it is a write or lock that nobody wanted to be executed.
fn is_only_explained(statement: &ReplayedStatement) -> bool {
    let mut verdicts = statement.verdicts.iter();
    let mut causes = verdicts.clone().flat_map(|verdict| &verdict.causes);
    statement.kind != "read"
        && statement.write.is_none()
        && verdicts.all(|verdict| verdict.results == ResultVerdict::NotExecuted)
        && causes.any(|cause| cause.ends_with(ONLY_EXPLAINED))
}

/// How the cause ends that a write was not executed because writes were not wanted.
const ONLY_EXPLAINED: &str = "is only explained";

/// Statements that were only explained, by reason.
fn not_executed<'a>(statements: impl Iterator<Item = &'a ReplayedStatement>) -> Vec<String> {
    let mut by_cause: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for statement in statements {
        let causes = statement
            .verdicts
            .first()
            .map(|verdict| verdict.causes.join("; "));
        if let Some(causes) = causes.filter(|causes| !causes.is_empty()) {
            let name = statement.name.clone();
            let name = name.unwrap_or_else(|| short(&statement.text));
            by_cause.entry(causes).or_default().push(name);
        }
    }
    let words = |(cause, names): (String, Vec<String>)| match names.as_slice() {
        [name] => format!("not executed: {name}: {cause}"),
        names => format!("not executed: {} statements: {cause}", names.len()),
    };
    by_cause.into_iter().map(words).collect()
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes >> 20)
}

#[cfg(test)]
pub(crate) mod tests;
