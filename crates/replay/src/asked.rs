//! What all servers said of a workload, and the report that follows from it.

use crate::adopted::Adopted;
use crate::asking::{AllRows, Plans, Shapes};
use crate::clock::{CLOCK_MOVED, DATA_MOVED, asks_for_time};
use crate::consent::{Consent, Facts};
use crate::dump::reaching_out;
use crate::request::Request;
use crate::safety::Volatile;
use crate::servers::{Member, Servers};
use crate::session::why_refused;
use crate::shape::Shape;
use crate::timed::TupleFacts;
use crate::verdict::{Outcome, Wanted, mean_rows, on_server, verdict};
use crate::work::{Job, Work};
use crate::writes::Written;
use deltabench_capture::{Capture, Kind};
use deltabench_model::problem::Problem;
use deltabench_model::replayed::{
    Covered, MadeUpValues, OldPlan, PlanVerdict, REPLAYED_FORMAT, ReplayVerdict, Replayed,
    ReplayedClock, ReplayedData, ReplayedDirectory, ReplayedFile, ReplayedLoadFailure,
    ReplayedPlan, ReplayedServer, ReplayedStatement, ReplayedWrite, ResultVerdict,
};
use deltabench_model::units::count;
use std::collections::{BTreeMap, BTreeSet};

/// Less than this share of the captured rows means that the data or the time have moved.
const MOVED: f64 = 0.5;
/// What all servers said.
pub struct Asked {
    /// By server, statement and tuple.
    outcomes: Vec<Vec<Vec<Outcome>>>,
    pub shapes: Shapes,
    /// By statement and tuple: why it was not executed.
    objections: Vec<Vec<Option<String>>>,
    /// Statements and tuples whose result differs between two executions on the base.
    unrepeatable: BTreeSet<(usize, usize)>,
    /// Statements that a copy takes only once with each tuple.
    once: BTreeSet<usize>,
    /// Tuples that a constraint refused on the base, by statement.
    dropped: BTreeMap<usize, u64>,
    pub missing_roles: Vec<String>,
    /// Candidates with the plans of the base, by server and statement.
    pub old_plans: BTreeMap<usize, BTreeMap<usize, OldPlan>>,
    /// Why not all servers were asked everything.
    pub broken: Option<Problem>,
}

impl Asked {
    /// Nothing is known yet.
    pub fn new(work: &Work<'_>, servers: usize) -> Self {
        let each = |job: &Job<'_>| vec![Outcome::default(); job.tuples.len()];
        let of_server: Vec<Vec<Outcome>> = work.jobs.iter().map(each).collect();
        let objections = work.jobs.iter().map(|job| vec![None; job.tuples.len()]);
        Self {
            outcomes: vec![of_server; servers],
            shapes: Shapes::new(),
            objections: objections.collect(),
            unrepeatable: BTreeSet::new(),
            once: BTreeSet::new(),
            dropped: BTreeMap::new(),
            missing_roles: Vec::new(),
            old_plans: BTreeMap::new(),
            broken: None,
        }
    }

    /// Takes in the plans of a server.
    pub fn explained(&mut self, server: usize, plans: &Plans) {
        let outcomes = self.outcomes.get_mut(server).into_iter().flatten();
        for (outcome, answer) in outcomes.flatten().zip(plans.iter().flatten()) {
            outcome.explained(answer);
        }
    }

    /// Takes in the results of a server.
    pub fn executed(&mut self, server: usize, rows: AllRows) {
        let outcomes = self.outcomes.get_mut(server).into_iter().flatten();
        for (outcome, answer) in outcomes.flatten().zip(rows.into_iter().flatten()) {
            if let Some(answer) = answer {
                outcome.executed(answer);
            }
        }
    }

    /// Takes in what the base did with writes: what a constraint refused there is left out.
    pub fn written(&mut self, written: Written) {
        self.executed(0, written.rows);
        self.once = written.once;
        for ((number, place), sqlstate) in written.violations {
            let objections = self.objections.get_mut(number);
            if let Some(entry) = objections.and_then(|row| row.get_mut(place)) {
                let why = why_refused(&sqlstate);
                *entry = Some(format!(
                    "a constraint refuses it on the base ({sqlstate}): {why}"
                ));
                *self.dropped.entry(number).or_default() += 1;
            }
        }
    }

    /// How a statement works on a copy, if it was executed on one.
    fn write(&self, number: usize, job: &Job<'_>) -> Option<ReplayedWrite> {
        let dropped = self.dropped.get(&number).copied().unwrap_or(0);
        let base = self.outcomes.first().and_then(|server| server.get(number));
        let executed = |outcome: &Outcome| outcome.rows.is_some();
        let executed = base.is_some_and(|outcomes| outcomes.iter().any(executed));
        let is_write = job.statement.kind != Kind::Read && (executed || dropped > 0);
        is_write.then(|| ReplayedWrite {
            dropped,
            once: self.once.contains(&number),
        })
    }

    /// What matters of a tuple for its times.
    pub fn facts(&self, place: (usize, usize)) -> TupleFacts {
        let servers = self.outcomes.len();
        let of = |server: usize| self.outcome(server, place);
        let worked = |outcome: &Outcome| outcome.rows.is_some() && outcome.is_answered();
        let changed = |server: &usize| {
            let sides = of(0).zip(of(*server));
            let verdict = sides.map(|(base, candidate)| candidate.plan_verdict(base));
            verdict == Some(PlanVerdict::Changed)
        };
        TupleFacts {
            worked: (0..servers).all(|server| of(server).is_some_and(worked)),
            changed: (1..servers).filter(changed).collect(),
            parallel: self.plans(place).into_iter().any(Shape::is_parallel),
            once: self.once.contains(&place.0),
            slowest: (0..servers).filter_map(|server| of(server)?.took).max(),
        }
    }

    /// The plans of the base for the tuples of a statement that this candidate can plan, too.
    pub fn base_plans(&self, job: usize, server: usize) -> Vec<Wanted> {
        let tuples = self.objections.get(job).map_or(0, Vec::len);
        let one = |tuple: usize| {
            let base = self.outcome(0, (job, tuple))?;
            let verdict = self.outcome(server, (job, tuple))?.plan_verdict(base);
            (verdict != PlanVerdict::Unknown).then(|| Wanted {
                tuple,
                plans: base.plans.keys().cloned().collect(),
                changed: verdict == PlanVerdict::Changed,
            })
        };
        (0..tuples).filter_map(one).collect()
    }

    fn outcome(&self, server: usize, (job, tuple): (usize, usize)) -> Option<&Outcome> {
        self.outcomes.get(server)?.get(job)?.get(tuple)
    }

    /// Notes why tuples are not executed.
    pub fn object(
        &mut self,
        work: &Work<'_>,
        (volatile, writes): (&Volatile, Option<&str>),
        consent: Consent,
    ) {
        for (number, job) in work.jobs.iter().enumerate() {
            for (place, tuple) in job.tuples.iter().enumerate() {
                let plans = self.plans((number, place));
                let facts = Facts {
                    volatile,
                    plans,
                    writes,
                };
                let objection = consent.objection(job, tuple, &facts);
                let entry = self
                    .objections
                    .get_mut(number)
                    .and_then(|row| row.get_mut(place));
                if let Some(entry) = entry {
                    *entry = objection;
                }
            }
        }
    }

    /// All plans of a tuple.
    fn plans(&self, place: (usize, usize)) -> Vec<&Shape> {
        let outcomes = (0..self.outcomes.len()).filter_map(|server| self.outcome(server, place));
        let plans = outcomes.flat_map(|outcome| outcome.plans.keys());
        plans.filter_map(|plan| self.shapes.get(plan)).collect()
    }

    /// Whether all servers have explained a tuple and nothing speaks against executing it.
    pub fn may_execute(&self, job: usize, tuple: usize) -> bool {
        let objection = self.objections.get(job).and_then(|row| row.get(tuple));
        let explained = (0..self.outcomes.len()).all(|server| {
            let outcome = self.outcome(server, (job, tuple));
            outcome.is_some_and(|outcome| outcome.failed.is_none() && !outcome.plans.is_empty())
        });
        explained && objection.is_some_and(Option::is_none)
    }

    /// Whether any candidate returned something else than the base.
    pub fn differs(&self, work: &Work<'_>, job: usize, tuple: usize) -> bool {
        let orders = work.jobs.get(job).is_some_and(|job| job.promises.orders);
        let rows = |server: usize| self.outcome(server, (job, tuple))?.rows.as_ref();
        let Some(base) = rows(0) else {
            return false;
        };
        let mut others = (1..self.outcomes.len()).filter_map(rows);
        others.any(|other| base.difference(other, orders).is_some())
    }

    /// Takes in what the base returned when it was asked again.
    pub fn again(&mut self, work: &Work<'_>, again: AllRows) {
        for (number, answers) in again.into_iter().enumerate() {
            let orders = work.jobs.get(number).is_some_and(|job| job.promises.orders);
            for (place, answer) in answers.into_iter().enumerate() {
                let mut second = Outcome::default();
                let Some(answer) = answer else {
                    continue;
                };
                second.executed(answer);
                let first = self
                    .outcome(0, (number, place))
                    .and_then(|outcome| outcome.rows.as_ref());
                let same = match (first, &second.rows) {
                    (Some(first), Some(second)) => first.difference(second, orders).is_none(),
                    _ => true,
                };
                if !same {
                    self.unrepeatable.insert((number, place));
                }
            }
        }
    }

    fn statement(
        &self,
        (number, job): (usize, &Job<'_>),
        (redacted, is_set): (bool, bool),
    ) -> ReplayedStatement {
        let of = |server: usize| {
            let outcomes = self
                .outcomes
                .get(server)
                .and_then(|server| server.get(number));
            outcomes.map_or(&[][..], Vec::as_slice)
        };
        let mut objections: Vec<String> = self
            .objections
            .get(number)
            .into_iter()
            .flatten()
            .flatten()
            .cloned()
            .collect();
        objections.dedup();
        let again = |tuple: usize| self.unrepeatable.contains(&(number, tuple));
        let candidates = 1..self.outcomes.len();
        let mut verdicts: Vec<_> = candidates
            .map(|server| ReplayVerdict {
                old_plan: self.old_plan(server, number),
                ..verdict(job, (of(0), of(server)), server, (&again, &objections))
            })
            .collect();
        // Values that were made up find other rows.
        let moved = moved(job, mean_rows(job, of(0)), is_set);
        let moved = moved.filter(|_| !redacted && !job.made_up);
        if let Some(moved) = moved {
            verdicts
                .iter_mut()
                .for_each(|verdict| note_moved(verdict, &moved));
        }
        ReplayedStatement {
            id: job.statement.id.clone(),
            name: job.statement.name.clone(),
            text: job.statement.normalised.clone(),
            kind: job.statement.kind.word().to_owned(),
            calls: job.statement.calls,
            share: job.share,
            tuples: count(job.tuples.len()),
            made_up: job.made_up.then(|| MadeUpValues {
                captured_rows: job.statement.rows,
                base_rows: mean_rows(job, of(0)),
            }),
            write: self.write(number, job),
            servers: (0..self.outcomes.len())
                .map(|server| on_server(job, of(server)))
                .collect(),
            verdicts,
        }
    }

    /// The candidate with the plans of the base, if it was asked for them.
    fn old_plan(&self, server: usize, job: usize) -> Option<OldPlan> {
        self.old_plans.get(&server)?.get(&job).cloned()
    }

    /// How the candidates differ from the base.
    pub fn report(
        &self,
        request: &Request<'_>,
        work: &Work<'_>,
        servers: &Servers<'_>,
    ) -> Replayed {
        let statements = work.jobs.iter().enumerate();
        let statements: Vec<_> = statements
            .map(|job| {
                self.statement(
                    job,
                    (request.capture.header.redacted, servers.clock.is_some()),
                )
            })
            .collect();
        let plans = self.shapes.iter().map(|(id, shape)| ReplayedPlan {
            id: id.clone(),
            lines: shape.lines(),
        });
        Replayed {
            format: REPLAYED_FORMAT.0.to_owned(),
            version: REPLAYED_FORMAT.1,
            name: request.name.to_owned(),
            capture: ReplayedFile {
                path: request.capture_path.display().to_string(),
                sha256: request.capture_sha256.clone(),
            },
            data: data(request, servers),
            servers: servers.members.iter().map(server).collect(),
            draws: request.draws(),
            differences: servers.differences.clone(),
            clock: clock(request, work, servers),
            executed: request.consent.reads,
            covered: self.covered(work, count(request.capture.statements.len())),
            load_failures: load_failures(servers),
            statements,
            plans: plans.collect(),
            left_out: work.left_out.clone(),
            notes: notes_of_capture(request.capture)
                .into_iter()
                .chain(self.notes(request, servers))
                .collect(),
            times: None,
        }
    }

    /// What any server answered: the rest is not compared with anything.
    fn covered(&self, work: &Work<'_>, of: u64) -> Covered {
        let mut covered = Covered {
            statements: 0,
            of,
            tuples: 0,
            share: work.share.map(|_| 0.0),
            weighted_by: work.weighted_by,
        };
        for (number, job) in work.jobs.iter().enumerate() {
            let answered = |place: usize| {
                let mut servers = 0..self.outcomes.len();
                servers.any(|server| {
                    let outcome = self.outcome(server, (number, place));
                    outcome.is_some_and(Outcome::is_answered)
                })
            };
            let tuples = job.tuples.iter().enumerate();
            let weights: Vec<f64> = tuples
                .filter(|(place, _)| answered(*place))
                .map(|(_, tuple)| tuple.weight)
                .collect();
            covered.statements += u64::from(!weights.is_empty());
            covered.tuples += count(weights.len());
            if let (Some(sum), Some(share)) = (&mut covered.share, job.share) {
                *sum += share * weights.iter().sum::<f64>();
            }
        }
        covered
    }

    fn notes(&self, request: &Request<'_>, servers: &Servers<'_>) -> Vec<String> {
        if !request.data.is_ours() {
            return self.notes_as_is(servers);
        }
        let mut notes: Vec<String> = servers.members.iter().flat_map(unanalysed).collect();
        if !self.missing_roles.is_empty() {
            notes.push(format!(
                "role-missing: the {} has no {}; their statements are replayed by a role that may read and \
                 change all tables, without row security",
                if servers.adopted.is_some() { "data directory" } else { "dump" },
                self.missing_roles.join(", ")
            ));
        }
        if let Some(adopted) = &servers.adopted {
            notes.extend(servers.notes.iter().cloned());
            notes.extend(of_directory(adopted, servers));
        }
        let Some((_, survey)) = request.data.dump() else {
            return notes;
        };
        notes.extend(locale(survey.locale.as_deref()));
        let skipped = &survey.skipped;
        if skipped
            .iter()
            .any(|(why, _)| *why == crate::dump::Skipped::OtherServers)
        {
            notes.push(
                "user mappings and subscriptions of the dump are left out, so foreign tables cannot be read"
                    .to_owned(),
            );
        }
        let reaching = survey.reaching_out();
        if !reaching.is_empty() {
            notes.push(format!(
                "network: the dump has {}: its functions, indexes and materialized views may have reached \
                 other machines while it was loaded and statements were explained; deltabench does not \
                 stop them",
                reaching.join(", ")
            ));
        }
        notes
    }

    /// Of servers that somebody else runs.
    fn notes_as_is(&self, servers: &Servers<'_>) -> Vec<String> {
        let mut notes = servers.notes.clone();
        let users = servers.members.iter().map(|member| member.reach.user());
        let users: BTreeSet<&str> = users.collect();
        if !self.missing_roles.is_empty() {
            notes.push(format!(
                "role-missing: statements of {} are replayed by {}, with its rights and row security",
                self.missing_roles.join(", "),
                users.into_iter().collect::<Vec<_>>().join(" and ")
            ));
        }
        notes.push(
            "as they are: deltabench has changed no table and drawn no statistics on these servers, so \
             plans are those of the statistics that were there; what was executed is in their counters, and \
             in their logs as they are set"
                .to_owned(),
        );
        notes
    }
}

/// What a reader should know of the capture.
fn notes_of_capture(capture: &Capture) -> Option<String> {
    capture.header.redacted.then(|| {
        "redacted: the values of the capture are made up, by the shape of those in the log; plans are those \
         of values that find few rows, and a type that checks its values (an enum) refuses them everywhere"
            .to_owned()
    })
}

/// Tables without statistics: their plans are guesses of the server.
fn unanalysed(member: &Member<'_>) -> Option<String> {
    let tables: Vec<&str> = member
        .without_statistics
        .iter()
        .map(String::as_str)
        .collect();
    let server = &member.wish.installation.resolved;
    let first = tables.first()?;
    let more = match tables.len() {
        1 => String::new(),
        many => format!(", and {} more", many - 1),
    };
    Some(format!(
        "not-analysed: {server} has no statistics of {first}{more}: plans that read it are not those of \
         production"
    ))
}

/// What the servers have, in the report.
fn data(request: &Request<'_>, servers: &Servers<'_>) -> Option<ReplayedData> {
    if let Some((file, survey)) = request.data.dump() {
        return Some(ReplayedData {
            path: file.path().display().to_string(),
            sha256: survey.sha256.clone(),
            bytes: survey.bytes,
            dumped_from: survey.dumped_from.clone(),
            directory: None,
        });
    }
    let (copied, adopted) = request.data.directory().zip(servers.adopted.as_ref())?;
    let directory = copied.directory;
    Some(ReplayedData {
        path: directory.path().display().to_string(),
        sha256: directory.control().sha256.clone(),
        bytes: directory.bytes(),
        dumped_from: None,
        directory: Some(ReplayedDirectory {
            major: directory.major().to_owned(),
            identity: directory.control().identity(),
            database: adopted.database.clone(),
            upgraded: adopted.upgraded.clone(),
        }),
    })
}

/// What was taken out of copies of a data directory, and how those of other versions were made.
fn of_directory(adopted: &Adopted, servers: &Servers<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if adopted.recovered {
        notes.push(
            "the directory is a base backup: a server of one session recovered a copy of it with the \
             write-ahead log that is in it; unlogged tables are empty"
                .to_owned(),
        );
    }
    let upgraded = adopted
        .upgraded
        .iter()
        .filter_map(|place| servers.members.get(*place));
    let upgraded: Vec<&str> = upgraded
        .map(|member| member.wish.installation.resolved.as_str())
        .collect();
    if !upgraded.is_empty() {
        notes.push(format!(
            "pg_upgrade made the copy of {}: it has the same pages, and all servers draw new statistics",
            upgraded.join(", ")
        ));
    }
    notes.push(
        "the copies have no passwords, user mappings, subscriptions and slots, event triggers are disabled, \
         and only the superuser of deltabench has its rights; so foreign tables cannot be read"
            .to_owned(),
    );
    if adopted.subscriptions > 0 {
        notes.push(format!(
            "{}: no copy connects to a publisher",
            match adopted.subscriptions {
                1 => "1 subscription of the directory is not in the copies".to_owned(),
                many => format!("{many} subscriptions of the directory are not in the copies"),
            }
        ));
    }
    let reaching = reaching_out(&adopted.extensions, &adopted.foreign_servers);
    if !reaching.is_empty() {
        notes.push(format!(
            "network: the database has {}: its functions and indexes may have reached other machines while \
             statements were explained; deltabench does not stop them",
            reaching.join(", ")
        ));
    }
    notes
}

/// What the locale of the databases may change.
fn locale(dumped: Option<&str>) -> Option<String> {
    let of_production = match dumped {
        Some("C" | "POSIX" | "C.UTF-8") => return None,
        Some(locale) => format!("the dumped one has {locale}"),
        None => "the dump does not say that of production".to_owned(),
    };
    Some(format!(
        "locale: the databases here have the locale C, {of_production}: the order of text, and whether an \
         index can answer LIKE, may differ from production; all servers are alike"
    ))
}

/// Too few rows to compare are no agreement.
fn note_moved(verdict: &mut ReplayVerdict, moved: &str) {
    if verdict.results == ResultVerdict::NotExecuted {
        return;
    }
    if verdict.results == ResultVerdict::Same {
        verdict.results = ResultVerdict::Moved;
    }
    verdict.causes.push(moved.to_owned());
}

/// How far the data are from those of the capture, in words. `is_set`: the clock of the servers was.
fn moved(job: &Job<'_>, found: Option<f64>, is_set: bool) -> Option<String> {
    let (captured, found) = (job.statement.rows?, found?);
    if captured < 1.0 || found >= captured * MOVED {
        return None;
    }
    let (finding, why) = match (asks_for_time(job.statement), is_set) {
        (true, false) => (CLOCK_MOVED, "it asks for the time, and the rows are older"),
        (true, true) => (
            CLOCK_MOVED,
            "it asks for the time; at the one that the servers were given, the rows are others",
        ),
        (false, _) => (
            DATA_MOVED,
            "the tables have other rows than the captured server had",
        ),
    };
    Some(format!(
        "{finding}: {found:.1} rows for each call, {captured:.1} in the capture: {why}"
    ))
}

/// The time of day that the servers had; absent where it does not matter.
fn clock(request: &Request<'_>, work: &Work<'_>, servers: &Servers<'_>) -> Option<ReplayedClock> {
    let jobs = work.jobs.iter();
    let statements = count(jobs.filter(|job| asks_for_time(job.statement)).count());
    let at = servers.clock.as_ref().map(|clock| clock.at);
    let why = match &servers.without_clock {
        None => request.clock.why.clone(),
        Some(problem) => {
            let detail = problem.detail.as_ref().and_then(|text| text.lines().next());
            let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
            format!("it could not be set: {}{detail}", problem.error)
        }
    };
    (at.is_some() || statements > 0).then_some(ReplayedClock {
        at,
        why,
        statements,
    })
}

fn server(member: &crate::servers::Member<'_>) -> ReplayedServer {
    let installation = &member.wish.installation;
    ReplayedServer {
        name: installation.resolved.clone(),
        server_version: installation.version.clone(),
        binary_sha256: Some(installation.binary_sha256.clone()).filter(|sha256| !sha256.is_empty()),
        settings: member.wish.named_settings.clone(),
        data_bytes: member.data_bytes,
    }
}

/// What servers refused of the dump, each once.
fn load_failures(servers: &Servers<'_>) -> Vec<ReplayedLoadFailure> {
    let mut found: BTreeMap<(u64, String), ReplayedLoadFailure> = BTreeMap::new();
    for (place, member) in servers.members.iter().enumerate() {
        for failure in member.failures() {
            let entry = found.entry((failure.line, failure.sqlstate.clone()));
            let entry = entry.or_insert_with(|| ReplayedLoadFailure {
                servers: Vec::new(),
                line: failure.line,
                what: failure.what.clone(),
                sqlstate: failure.sqlstate.clone(),
                message: failure.message.clone(),
            });
            entry.servers.push(place);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_that_is_unknown_or_another_is_told() {
        assert_eq!(locale(Some("C")), None);
        assert!(locale(Some("de_DE.UTF-8")).unwrap().contains("de_DE.UTF-8"));
        assert!(locale(None).unwrap().contains("does not say"));
    }
}
