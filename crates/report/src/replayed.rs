//! A replay: what fails, which plans change, which results differ; as text, as a page, as JSON.
//!
//! The JSON is a contract (`docs/reference/replay.schema.json`): fields are added, never renamed.

mod page;
mod parting;

pub use page::replayed_page;

use crate::lines::wrapped;
use crate::words::plural;
use deltabench_model::replayed::{
    ErrorVerdict, PlanVerdict, ReplayFailure, ReplayVerdict, Replayed, ReplayedLoadFailure,
    ReplayedStatement, ResultVerdict,
};
use deltabench_model::units::count;
use parting::Parting;
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
    let found = Found::of(replayed, place);
    let with_errors = |wanted: ErrorVerdict| {
        found.with(
            move |verdict| verdict.errors == wanted,
            |_, statement, verdict| error_texts(statement, verdict),
        )
    };
    let lists: [(&str, Vec<Entry<'_>>); 11] = [
        ("fails", found.failing()),
        ("time-out", with_errors(ErrorVerdict::TooLong)),
        ("error", with_errors(ErrorVerdict::Differs)),
        (
            "plan",
            found.with(|verdict| verdict.plans == PlanVerdict::Changed, plan_texts),
        ),
        (
            "result",
            found.with(ReplayVerdict::results_differ, |_, _, verdict| {
                result_texts(verdict)
            }),
        ),
        ("unstable", found.with(is_unstable, unstable_texts)),
        (
            "order",
            found.with(
                |verdict| verdict.results == ResultVerdict::OrderDiffers,
                |_, _, verdict| result_texts(verdict),
            ),
        ),
        (
            "moved",
            found.with(
                |verdict| verdict.results == ResultVerdict::Moved,
                |_, _, verdict| result_texts(verdict),
            ),
        ),
        ("unknown", with_errors(ErrorVerdict::Unknown)),
        ("both", found.on_both(with_errors(ErrorVerdict::Both))),
        ("base", found.on_base(with_errors(ErrorVerdict::Resolved))),
    ];
    for (sign, entries) in lists {
        if !entries.is_empty() {
            lines.push(String::new());
        }
        for entry in entries.iter().take(SHOWN) {
            lines.extend(entry.lines(sign, width));
        }
        let more = entries.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(format!(
                "{:<INDENT$}and {more} more, in the page and in the JSON",
                ""
            ));
        }
    }
    lines
}

/// What is said of one statement or object.
struct Entry<'a> {
    share: Option<f64>,
    name: String,
    /// Further lines.
    texts: Vec<String>,
    statement: Option<&'a ReplayedStatement>,
}

impl Entry<'_> {
    fn lines(&self, sign: &str, width: usize) -> Vec<String> {
        let share = self.share.map_or_else(
            || " ".repeat(8),
            |share| format!("{:>6.1} %", share * 100.0),
        );
        let text = self
            .statement
            .map_or("", |statement| statement.text.as_str());
        let name = if self.name.is_empty() {
            String::new()
        } else {
            format!("{}  ", self.name)
        };
        let mut lines = vec![
            format!("{sign:<INDENT$}{share}  {name}{}", short(text))
                .trim_end()
                .to_owned(),
        ];
        for text in &self.texts {
            lines.extend(wrapped(text, width, INDENT, INDENT + 2));
        }
        lines
    }
}

/// A text in at most so many characters.
fn short(text: &str) -> String {
    if text.chars().count() <= TEXT_SHOWN {
        return text.to_owned();
    }
    let cut: String = text.chars().take(TEXT_SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}

/// The statements with their verdicts on one candidate.
struct Found<'a> {
    replayed: &'a Replayed,
    place: usize,
    verdicts: Vec<(&'a ReplayedStatement, &'a ReplayVerdict)>,
}

impl<'a> Found<'a> {
    fn of(replayed: &'a Replayed, place: usize) -> Self {
        let of = |statement: &'a ReplayedStatement| {
            let verdict = statement
                .verdicts
                .iter()
                .find(|verdict| verdict.server == place)?;
            Some((statement, verdict))
        };
        Self {
            replayed,
            place,
            verdicts: replayed.statements.iter().filter_map(of).collect(),
        }
    }

    fn count(&self, wanted: impl Fn(&ReplayVerdict) -> bool) -> u64 {
        count(
            self.verdicts
                .iter()
                .filter(|(_, verdict)| wanted(verdict))
                .count(),
        )
    }

    fn with(
        &self,
        wanted: impl Fn(&ReplayVerdict) -> bool,
        texts: impl Fn(&Replayed, &ReplayedStatement, &ReplayVerdict) -> Vec<String>,
    ) -> Vec<Entry<'a>> {
        let found = self.verdicts.iter().filter(|(_, verdict)| wanted(verdict));
        found
            .map(|(statement, verdict)| Entry {
                share: statement.share,
                name: statement.name.clone().unwrap_or_default(),
                texts: texts(self.replayed, statement, verdict),
                statement: Some(statement),
            })
            .collect()
    }

    /// What fails only here: objects of the dump, then statements.
    fn failing(&self) -> Vec<Entry<'a>> {
        let mut entries = objects(new_load_failures(self.replayed, self.place));
        entries.extend(self.with(
            |verdict| verdict.errors == ErrorVerdict::New,
            |_, statement, verdict| error_texts(statement, verdict),
        ));
        entries
    }

    /// What fails on both: objects of the dump, then statements.
    fn on_both(&self, statements: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
        let mut entries = objects(load_failures(self.replayed, &[0, self.place], &[]));
        entries.extend(statements);
        entries
    }

    /// What fails on the base only.
    fn on_base(&self, statements: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
        let mut entries = objects(load_failures(self.replayed, &[0], &[self.place]));
        entries.extend(statements);
        entries
    }
}

fn objects<'a>(failures: impl Iterator<Item = &'a ReplayedLoadFailure>) -> Vec<Entry<'a>> {
    failures
        .map(|failure| Entry {
            share: None,
            name: format!("{} (line {} of the dump)", failure.what, failure.line),
            texts: vec![format!("{} {}", failure.sqlstate, failure.message)],
            statement: None,
        })
        .collect()
}

/// Objects that a candidate refused and the base took.
pub(crate) fn new_load_failures(
    replayed: &Replayed,
    place: usize,
) -> impl Iterator<Item = &ReplayedLoadFailure> + use<'_> {
    load_failures(replayed, &[place], &[0])
}

/// Objects that these servers refused and those took.
pub(crate) fn load_failures<'a>(
    replayed: &'a Replayed,
    refused: &[usize],
    took: &[usize],
) -> impl Iterator<Item = &'a ReplayedLoadFailure> + use<'a> {
    let (refused, took) = (refused.to_vec(), took.to_vec());
    replayed.load_failures.iter().filter(move |failure| {
        let by = |place: &usize| failure.servers.contains(place);
        refused.iter().all(by) && !took.iter().any(by)
    })
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
    let found = Found::of(replayed, place);
    let objects = count(new_load_failures(replayed, place).count());
    let fails = found.count(|verdict| verdict.errors == ErrorVerdict::New);
    let plans = found.count(|verdict| verdict.plans == PlanVerdict::Changed);
    let results = found.count(ReplayVerdict::results_differ);
    let with = |wanted: ErrorVerdict| found.count(|verdict| verdict.errors == wanted);
    let late = with(ErrorVerdict::TooLong);
    let unstable = found.count(is_unstable);
    let known = found.count(|verdict| verdict.results_differ() && !verdict.causes.is_empty());
    let caused = match known {
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
    parts.push(verb(fails, "fails", "fail"));
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
    let moved = found.count(|verdict| verdict.results == ResultVerdict::Moved);
    let more = [
        (with(ErrorVerdict::Differs), "with another error"),
        (unstable, "with unstable plans"),
        (moved, "with too few rows to compare"),
        (with(ErrorVerdict::Unknown), "without an answer"),
    ];
    let more = more.iter().filter(|(many, _)| *many > 0);
    parts.extend(more.map(|(many, what)| format!("{many} {what}")));
    let failing = [
        (with(ErrorVerdict::Resolved), "on the base only"),
        (with(ErrorVerdict::Both), "on both"),
    ];
    parts.extend(failing.iter().filter_map(|(many, where_)| match many {
        0 => None,
        1 => Some(format!("1 fails {where_}")),
        many => Some(format!("{many} fail {where_}")),
    }));
    parts.join(", ")
}

fn is_unstable(verdict: &ReplayVerdict) -> bool {
    matches!(
        verdict.plans,
        PlanVerdict::UnstableBase | PlanVerdict::UnstableCandidate
    )
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

/// For which values a plan changed, and what it is now.
fn plan_texts(
    replayed: &Replayed,
    statement: &ReplayedStatement,
    verdict: &ReplayVerdict,
) -> Vec<String> {
    let mut texts = vec![changed_for(statement, verdict)];
    for change in verdict.changes.iter().take(3) {
        let parting = Parting::of(replayed, &change.from, &change.to);
        let of = match verdict.changes.len() {
            1 => String::new(),
            _ => format!("{} of them: ", change.tuples),
        };
        texts.push(format!("{of}{}", parting.sentence()));
    }
    texts
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

pub(crate) fn result_texts(verdict: &ReplayVerdict) -> Vec<String> {
    let what = match verdict.results {
        ResultVerdict::RowsDiffer => "another number of rows",
        ResultVerdict::ResultsDiffer => "as many rows, with other values",
        ResultVerdict::OrderDiffers => "the same rows in another order",
        ResultVerdict::NotRepeatable => "another result, also between two executions on the base",
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
fn unstable_texts(
    _: &Replayed,
    statement: &ReplayedStatement,
    verdict: &ReplayVerdict,
) -> Vec<String> {
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
        statement.kind == "read"
            && verdicts.all(|verdict| verdict.results == ResultVerdict::NotExecuted)
    };
    let only_explained = replayed
        .statements
        .iter()
        .filter(|statement| statement.kind != "read")
        .count();
    if only_explained > 0 {
        texts.push(format!(
            "explained and not executed: {} (writes and locks)",
            plural(count(only_explained), "statement")
        ));
    }
    if replayed.executed {
        let unexecuted = replayed.statements.iter().filter(explained);
        texts.extend(not_executed(unexecuted));
    }
    texts.extend(replayed.notes.iter().cloned());
    texts.push(format!(
        "no time was measured: another plan may be faster or slower. Each server drew its statistics {}, \
         after loading {} ({} on disk)",
        match replayed.draws {
            1 => "once".to_owned(),
            draws => format!("{draws} times"),
        },
        base_name(&replayed.data.path),
        megabytes(replayed.servers.first().map_or(0, |server| server.data_bytes))
    ));
    texts
}

/// Reads that were only explained, by reason.
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
