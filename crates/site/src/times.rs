//! What differs between executions that one report shows: a study that grows has parts of different times.

use deltabench_compare::comparison::Comparison;
use deltabench_compare::fairness::settings_that_differ;
use deltabench_lab::{store_problem, version_key};
use deltabench_model::finding::Severity;
use deltabench_model::installation::Setting;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_report::{ReportContext, words};
use deltabench_store::Store;
use std::collections::{BTreeMap, BTreeSet};

/// Facts of a run that may be others at another time.
#[derive(Debug, Default)]
pub struct Circumstances {
    /// By what they are called.
    facts: BTreeMap<&'static str, String>,
    /// The base as runs know it, and its settings as read back.
    base: (String, Vec<Setting>),
}

impl Circumstances {
    /// Those of a run.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(context: &ReportContext, plan: &Plan, store: &Store) -> Result<Self, Problem> {
        let occasion = store.occasions(&context.run).map_err(store_problem)?.pop();
        let mut facts = BTreeMap::new();
        if let Some(occasion) = occasion {
            let unknown = || "unknown".to_owned();
            facts.insert("kernel", occasion.host.kernel.unwrap_or_else(unknown));
            facts.insert("microcode", occasion.host.microcode.unwrap_or_else(unknown));
            let way = format!("version {}", occasion.measurement_version);
            facts.insert("the way of measuring", way);
        }
        let base = plan.server(plan.base()).map(version_key);
        let mut servers = context.servers.iter();
        let settings = servers.find(|facts| facts.server == plan.base());
        Ok(Self {
            facts,
            base: (
                base.unwrap_or_default(),
                settings.map_or_else(Vec::new, |facts| facts.settings.clone()),
            ),
        })
    }
}

/// A run with what is said of its time.
#[derive(Clone, Copy)]
pub(crate) struct Timed<'a> {
    pub(crate) run: &'a str,
    pub(crate) plan: &'a Plan,
    pub(crate) comparison: &'a Comparison,
    pub(crate) host: &'a str,
    pub(crate) began_unix_ms: Option<i64>,
    pub(crate) is_elsewhere: bool,
    pub(crate) circumstances: &'a Circumstances,
}

impl<'a> Timed<'a> {
    /// The execution of the run; its own name outside of one.
    fn execution(&self) -> &'a str {
        let part = self.plan.experiment.as_ref();
        part.map_or(self.run, |part| &part.execution)
    }
}

/// An execution with its runs.
type Execution<'a> = (&'a str, Vec<Timed<'a>>);

/// Sentences on executions and what differs between them; none for runs of one execution.
pub(crate) fn notes(loaded: &[Timed<'_>]) -> Vec<String> {
    let mut executions: Vec<Execution<'_>> = Vec::new();
    for one in loaded {
        let name = one.execution();
        match executions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(*one),
            None => executions.push((name, vec![*one])),
        }
    }
    if executions.len() < 2 {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "measured at {} times: {}",
        executions.len(),
        each(&executions, when)
    )];
    notes.extend(elsewhere(&executions));
    notes.extend(facts(&executions));
    notes.extend(base_settings(&executions));
    notes.extend(confounders(loaded));
    notes
}

/// `NAME: …; NAME: …`.
fn each(executions: &[Execution<'_>], of: impl Fn(&[Timed<'_>]) -> String) -> String {
    let texts = { executions.iter() }.map(|(name, runs)| format!("{name}: {}", of(runs)));
    texts.collect::<Vec<_>>().join("; ")
}

/// When and where the runs of an execution were measured.
fn when(runs: &[Timed<'_>]) -> String {
    let first = runs.iter().filter_map(|run| run.began_unix_ms).min();
    let mut texts = vec![first.map_or_else(|| "not measured yet".to_owned(), words::date)];
    let mut hosts: Vec<&str> = runs.iter().map(|run| run.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    texts.extend(hosts.into_iter().map(str::to_owned));
    texts.join(", ")
}

/// Executions that do not have the base.
fn elsewhere(executions: &[Execution<'_>]) -> Vec<String> {
    let not_here = |(_, runs): &&Execution<'_>| runs.iter().any(|run| run.is_elsewhere);
    let note = |(name, _): &Execution<'_>| {
        format!(
            "{name} did not measure the base: columns with \"via\" show servers that only it has, through \
             a server that both have; their intervals say what one more run would print, hours included"
        )
    };
    executions.iter().filter(not_here).map(note).collect()
}

/// Facts that are not the same in all executions.
fn facts(executions: &[Execution<'_>]) -> Vec<String> {
    let all = executions.iter().flat_map(|(_, runs)| runs);
    let names: BTreeSet<&'static str> = all
        .flat_map(|run| run.circumstances.facts.keys().copied())
        .collect();
    let differs = |name: &&'static str| {
        let values = |runs: &[Timed<'_>]| -> String {
            let found = { runs.iter() }.filter_map(|run| run.circumstances.facts.get(name));
            let found: BTreeSet<&str> = found.map(String::as_str).collect();
            match found.is_empty() {
                true => "unknown".to_owned(),
                false => found.into_iter().collect::<Vec<_>>().join(" and "),
            }
        };
        let known: BTreeSet<String> = executions.iter().map(|(_, runs)| values(runs)).collect();
        (known.len() > 1).then(|| format!("{name} differs: {}", each(executions, values)))
    };
    names.iter().filter_map(differs).collect()
}

/// Settings that the base read back otherwise than in the first run with this base.
fn base_settings(executions: &[Execution<'_>]) -> Vec<String> {
    let runs: Vec<Timed<'_>> = { executions.iter() }
        .flat_map(|(_, runs)| runs.iter().copied())
        .filter(|run| !run.circumstances.base.1.is_empty())
        .collect();
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let (key, settings) = &first.circumstances.base;
    let differs = |run: &Timed<'_>| {
        let (other, theirs) = &run.circumstances.base;
        let names = settings_that_differ(settings, theirs);
        (other == key && run.execution() != first.execution() && !names.is_empty()).then(|| {
            format!(
                "settings of the base differ between {} and {}: {}",
                first.run,
                run.run,
                names.join(", ")
            )
        })
    };
    runs.iter().filter_map(differs).collect()
}

/// `, whose base is SERVER`, of a run that does not have the base of the report.
fn own_base(run: &Timed<'_>) -> String {
    let base = run.plan.server(run.plan.base());
    let base = base.filter(|_| run.is_elsewhere);
    base.map_or_else(String::new, |base| {
        format!(", whose base is {}", base.name())
    })
}

/// What each run found that differs between its own servers besides what was asked: compilers, flags. All are
/// compared with one base, so it matters here as it does there.
fn confounders(loaded: &[Timed<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in loaded {
        let all = run.comparison.findings.iter();
        for finding in all.filter(|finding| finding.severity == Severity::Confounder) {
            let note = format!("in {}{}: {}", run.execution(), own_base(run), finding.text);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}
