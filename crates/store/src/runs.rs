//! Runs: making, finding and listing them.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::count;
use rusqlite::TransactionBehavior;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Part of an experiment that has not been started yet.
    Planned,
    /// Being measured, or killed while it was.
    Running,
    /// All that was planned is measured, or it stopped by its own rule.
    Finished,
    /// Stopped by the user; can be resumed.
    Interrupted,
    /// Stopped by an error; can be resumed.
    Failed,
}

/// The state of a run that was killed while it ran.
pub const STOPPED: &str = "stopped";

impl RunState {
    /// The word stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// The same as people know it: a run that was killed stays `running` in the store.
    pub fn word_if(self, is_measured: bool) -> &'static str {
        match self {
            Self::Running if !is_measured => STOPPED,
            other => other.word(),
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [
            Self::Planned,
            Self::Running,
            Self::Finished,
            Self::Interrupted,
            Self::Failed,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}

/// One line of `deltabench list`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// The run's name.
    pub run: String,
    /// How far it has come.
    pub state: RunState,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: i64,
    /// When the state was set, milliseconds since 1970; for a running one its start or resumption.
    pub state_unix_ms: i64,
    /// The base: its label, or what it runs.
    pub base: String,
    pub candidates: Vec<String>,
    pub cells: u64,
    /// Blocks in which every cell of the plan was visited; by every server where blocks are passes; of a
    /// replay, whose statements take turns, those that have begun.
    pub blocks_done: u64,
    pub blocks_planned: u32,
    /// Visits completed, over all blocks; good records where blocks are passes.
    pub visits_done: u64,
    /// Whether it counts instructions: it has no blocks and no visits, and cannot be resumed.
    pub counts: bool,
    /// The execution of an experiment that it is a part of.
    pub execution: Option<String>,
    /// Which session of how many it is, where a comparison has several.
    pub session: Option<(u32, u32)>,
}

/// How far a run has come, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    pub state: RunState,
    /// When it was made, milliseconds since 1970.
    pub started_unix_ms: i64,
    /// When the state was set, milliseconds since 1970; for a running one its start or resumption.
    pub state_unix_ms: i64,
}

/// What a name in the lab stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Run(String),
    /// An execution of an experiment: its name and its runs, in the order of their parts.
    Execution(String, Vec<String>),
    /// A bisection, by its name.
    Bisection(String),
}

impl Store {
    /// Stores a new run with its plan, durably, before anything is measured: `Running`, or `Planned` if its
    /// turn comes later.
    ///
    /// Errors: `Taken` for a name that the store has, `Misuse` for an empty one and `last`; `Full`, `Sqlite`.
    pub fn create_run(
        &mut self,
        run: &str,
        plan: &Plan,
        state: RunState,
        started_unix_ms: i64,
    ) -> Result<(), StoreError> {
        self.create_runs(&[(run, plan)], state, started_unix_ms)
    }

    /// Stores new runs with their plans, all of them or none, each a millisecond after the one before.
    ///
    /// Errors: as [`Store::create_run`].
    pub fn create_runs(
        &mut self,
        runs: &[(&str, &Plan)],
        state: RunState,
        started_unix_ms: i64,
    ) -> Result<(), StoreError> {
        let mut texts = Vec::new();
        for &(run, plan) in runs {
            if run.is_empty() || run == "last" {
                return Err(self.misuse(format!("`{run}` cannot be the name of a run")));
            }
            let text = serde_json::to_string(plan)
                .map_err(|error| self.misuse(format!("plan: {error}")))?;
            texts.push((run, text));
        }
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "store a plan in", source);
        let step = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        for ((run, text), started) in texts.into_iter().zip(started_unix_ms..) {
            let row = (run, text, started, env!("CARGO_PKG_VERSION"));
            if step.execute(INSERT_RUN, row).map_err(fail)? == 0 {
                return Err(StoreError::Taken {
                    path,
                    what: "run",
                    name: run.to_owned(),
                });
            }
            let id = step.last_insert_rowid();
            step.execute(INSERT_STATE, (id, state.word(), started))
                .map_err(fail)?;
        }
        step.commit().map_err(fail)
    }

    /// Records that a run has ended, and how; or, with `Running`, that it was resumed.
    ///
    /// Errors: `Misuse` while a visit is open, `UnknownRun`, `Full`, `Sqlite`.
    pub fn finish_run(
        &mut self,
        run: &str,
        state: RunState,
        unix_ms: i64,
    ) -> Result<(), StoreError> {
        if self.visit.is_some() {
            return Err(self.misuse("the state of a run with an open visit".to_owned()));
        }
        let run = self.run_id(run)?;
        self.execute(
            INSERT_STATE,
            "store the end of a run in",
            (run, state.word(), unix_ms),
        )
    }

    /// When a run was first measured, milliseconds since 1970; `None` for one that is only planned.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn began_unix_ms(&self, run: &str) -> Result<Option<i64>, StoreError> {
        const SQL: &str =
            "select min(at_unix_ms) from run_state where run = ?1 and state = 'running'";
        let run = self.run_id(run)?;
        let found: Vec<Option<i64>> = self.collect(SQL, [run], |row| row.get(0))?;
        Ok(found.into_iter().flatten().next())
    }

    /// How far a run has come; `None` if there is no such run.
    ///
    /// Errors: `Damaged`, `Sqlite`.
    pub fn reached(&self, run: &str) -> Result<Option<Reached>, StoreError> {
        let found: Vec<(i64, String, i64)> = self.collect(SELECT_REACHED, [run], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        let found = found.into_iter().next();
        found
            .map(|(started_unix_ms, state, state_unix_ms)| {
                Ok(Reached {
                    state: self.state(run, &state)?,
                    started_unix_ms,
                    state_unix_ms,
                })
            })
            .transpose()
    }

    fn state(&self, run: &str, word: &str) -> Result<RunState, StoreError> {
        RunState::from_word(word)
            .ok_or_else(|| self.damaged(format!("unknown state `{word}` of run {run}")))
    }

    /// All runs, oldest first, with all that a list says of them.
    ///
    /// Errors: `Damaged`, `Newer`, `Sqlite`.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        let rows: Vec<(i64, String, String, i64, String, i64)> =
            self.collect(SELECT_RUNS, [], |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                ))
            })?;
        rows.into_iter()
            .map(|(id, run, plan, started_unix_ms, state, state_unix_ms)| {
                let plan = self.parse_plan(&plan)?;
                let state = self.state(&run, &state)?;
                let (whole, done) = self.progress_of(id, &plan)?;
                let server = |id| plan.server(id);
                let named = |id| server(id).map(PlannedServer::name);
                Ok(RunSummary {
                    run,
                    state,
                    started_unix_ms,
                    state_unix_ms,
                    base: named(plan.base()).unwrap_or_default(),
                    candidates: plan.candidates().into_iter().filter_map(named).collect(),
                    cells: count(plan.cells.len()),
                    blocks_done: whole,
                    blocks_planned: plan.timing.blocks,
                    visits_done: done,
                    counts: plan.observing.counting.is_some(),
                    execution: plan.experiment.map(|part| part.execution),
                    session: plan.session.map(|part| (part.number, part.of)),
                })
            })
            .collect()
    }

    /// Blocks in which all was measured, and visits; where blocks are passes those of all servers, and good
    /// records. Not every block of a replay has all of its statements, so one that has begun counts: a visit
    /// is a record of each server.
    pub(crate) fn progress_of(&self, run: i64, plan: &Plan) -> Result<(u64, u64), StoreError> {
        if let Some(file) = self.sealed_file(run)? {
            return Ok(file.done);
        }
        let (done, whole): (Vec<u32>, usize) = if plan.work.has_passes() {
            let records = self.collect_bulk(run, GOOD_RECORDS, [run], |row| row.get(0))?;
            (records, plan.cells.len() * plan.servers.len())
        } else if plan.work.replay().is_some() {
            let servers = i64::try_from(plan.servers.len()).unwrap_or(i64::MAX);
            let visits =
                self.collect_bulk(run, VISITS_OF_REPLAY, [run, servers], |row| row.get(0))?;
            (visits, 1)
        } else {
            let visits = self.visits_of(run)?;
            let blocks = visits.into_iter().map(|(block, _)| block);
            (blocks.collect(), plan.cells.len())
        };
        let mut blocks: BTreeMap<u32, usize> = BTreeMap::new();
        for block in &done {
            *blocks.entry(*block).or_default() += 1;
        }
        let blocks = blocks.values().filter(|parts| **parts >= whole).count();
        Ok((count(blocks), count(done.len())))
    }

    /// The full name of a run from its name, a unique beginning of it, or `last` for the newest that is no
    /// bisection. Runs that confirm another one, and parts of an experiment, have to be named in full.
    ///
    /// Errors: a problem that lists what was meant, or what there is; the execution of an experiment of
    /// several runs.
    pub fn find(&self, wanted: &str) -> Result<String, Problem> {
        // A bisection of the last run is newer than that run, and is none itself.
        let found = match (wanted, self.find_among(wanted, false)) {
            ("last", Ok(found)) => found,
            _ => self.find_any(wanted)?,
        };
        match found {
            Found::Run(run) => Ok(run),
            Found::Execution(_, runs) if runs.len() == 1 => {
                Ok(runs.into_iter().next().unwrap_or_default())
            }
            Found::Execution(execution, runs) => Err(Problem::new(format!(
                "{execution} is an experiment of {} runs",
                runs.len()
            ))
            .detail(runs.join("\n"))
            .hint("name one of them")),
            Found::Bisection(name) => Err(Problem::new(format!("{name} is a bisection"))
                .detail(
                    "it consists of runs that count one point each, and of what they say together",
                )
                .hint(format!(
                    "`deltabench report {name}` prints it, `deltabench resume {name}` goes on"
                ))),
        }
    }

    /// What a name stands for: a run in full, or a unique beginning of the name of a run that stands alone or
    /// of an experiment's execution; `last` is the newest of these that was started.
    ///
    /// Errors: a problem that lists what was meant, or what there is.
    pub fn find_any(&self, wanted: &str) -> Result<Found, Problem> {
        self.find_among(wanted, true)
    }

    /// As [`Store::find_any`], with the bisections or without them.
    fn find_among(&self, wanted: &str, bisections: bool) -> Result<Found, Problem> {
        let mut named = self.named()?;
        named.retain(|entry| bisections || !entry.bisection);
        if named.iter().any(|entry| entry.run == wanted) {
            return Ok(
                match named
                    .iter()
                    .any(|entry| entry.run == wanted && entry.bisection)
                {
                    true => Found::Bisection(wanted.to_owned()),
                    false => Found::Run(wanted.to_owned()),
                },
            );
        }
        // Runs that belong to another answer to their full names only, as the parts of an experiment do.
        let mut names: Vec<&str> = Vec::new();
        for entry in named.iter().filter(|entry| !entry.belongs) {
            let name = entry.execution.as_deref().unwrap_or(&entry.run);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let started = |name: &&&str| {
            let own = |entry: &&Named| entry.execution.as_deref() == Some(**name);
            let parts: Vec<&Named> = named.iter().filter(own).collect();
            parts.is_empty() || parts.iter().any(|part| part.started)
        };
        let Some(newest) = names.iter().rev().find(started).or(names.last()) else {
            return Err(Problem::new("there are no runs in this lab")
                .detail(format!("{} is empty", self.path.display()))
                .hint("start one with `deltabench compare`, or name the lab with --lab DIR"));
        };
        let matching: Vec<&str> = match wanted {
            "last" => vec![newest],
            _ => {
                let begins = |name: &&str| !wanted.is_empty() && name.starts_with(wanted);
                names.iter().copied().filter(begins).collect()
            }
        };
        match matching.as_slice() {
            [one] => Ok(meaning(one, &named)),
            [] => Err(unknown_run(wanted, &names)),
            several => Err(Problem::new(format!(
                "`{wanted}` begins the names of {} runs",
                several.len()
            ))
            .detail(several.join("\n"))
            .hint("write more of the name; `deltabench list` has all of them")),
        }
    }

    /// The names of all runs, oldest first.
    fn named(&self) -> Result<Vec<Named>, Problem> {
        // What belongs to another run, or to a bisection, is what `Plan::part_of` says.
        const SQL: &str = "select r.name, r.plan ->> '$.confirms' is not null \
            or r.plan ->> '$.counts' is not null \
            or r.plan ->> '$.samples' is not null \
            or r.plan ->> '$.sensitivity' is not null \
            or r.plan ->> '$.bisects' is not null \
            or coalesce(r.plan ->> '$.session.number', 1) > 1, \
            r.plan ->> '$.experiment.execution', \
            exists (select 1 from run_state where run = r.id and state <> 'planned'), \
            0, r.started_unix_ms as started_unix_ms, r.id as id from run r \
            union all select b.name, 0, null, 1, 1, b.started_unix_ms, b.id from bisection b \
            order by started_unix_ms, id";
        let named = self.collect(SQL, [], |row| {
            Ok(Named {
                run: row.get(0)?,
                belongs: row.get(1)?,
                execution: row.get(2)?,
                started: row.get(3)?,
                bisection: row.get(4)?,
            })
        })?;
        Ok(named)
    }
}

/// A run among the others of its lab.
struct Named {
    run: String,
    /// Whether it belongs to another run.
    belongs: bool,
    execution: Option<String>,
    /// Whether it was ever more than planned.
    started: bool,
    /// Whether it is a bisection, and no run.
    bisection: bool,
}

/// The run, or the execution with its runs, that goes by this name.
fn meaning(name: &str, named: &[Named]) -> Found {
    let parts: Vec<String> = named
        .iter()
        .filter(|entry| entry.execution.as_deref() == Some(name) && !entry.belongs)
        .map(|entry| entry.run.clone())
        .collect();
    if named
        .iter()
        .any(|entry| entry.run == name && entry.bisection)
    {
        Found::Bisection(name.to_owned())
    } else if parts.is_empty() {
        Found::Run(name.to_owned())
    } else {
        Found::Execution(name.to_owned(), parts)
    }
}

const INSERT_RUN: &str = "insert into run (name, plan, started_unix_ms, written_by) \
    values (?1, ?2, ?3, ?4) on conflict (name) do nothing";

const INSERT_STATE: &str = "insert into run_state (run, state, at_unix_ms) values (?1, ?2, ?3)";

const SELECT_REACHED: &str = "select r.started_unix_ms, s.state, s.at_unix_ms \
    from run r join run_state s on s.id = (select max(id) from run_state where run = r.id) where r.name = ?1";

const SELECT_RUNS: &str = "select r.id, r.name, r.plan, r.started_unix_ms, s.state, s.at_unix_ms \
    from run r join run_state s on s.id = (select max(id) from run_state where run = r.id) \
    order by r.started_unix_ms, r.id";

/// The blocks of good records; of two of the same place only the later one.
const GOOD_RECORDS: &str = "select block from record where run = ?1 and void is null and id in \
    (select max(id) from record where run = ?1 group by kind, block, cell, server)";

/// The block of each statement that was visited on all servers, once for each.
const VISITS_OF_REPLAY: &str = "select block from record where run = ?1 and void is null \
    group by block, cell having count(distinct server) >= ?2";

/// How many runs an error message lists.
const LISTED: usize = 8;

fn unknown_run(wanted: &str, names: &[&str]) -> Problem {
    let newest: Vec<&str> = names.iter().rev().take(LISTED).copied().collect();
    let problem = Problem::new(format!("there is no run `{wanted}` in this lab"))
        .detail(format!("newest first: {}", newest.join(", ")));
    match nearest(wanted, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint("`deltabench list` shows all; `last` is the newest"),
    }
}
