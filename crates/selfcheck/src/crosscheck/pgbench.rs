//! The built-in driver against pgbench itself: its built-in scripts, each way of sending, on the same tables.

use super::tables::{Judge, TablesFound, compare_tables};
use super::{Bench, Measured, Pair, Peer, cell, watcher};
use crate::server;
use deltabench_driver::crosscheck::pgbench::{PgbenchRun, installed, major, pgbench_version};
use deltabench_kinds::run_half;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{DataSize, Plan};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup, PgbenchTables, QueryMode};
use deltabench_run::executables::compile;
use deltabench_run::fleet::{Fleet, Host};
use deltabench_run::load::address_for;
use deltabench_run::remote::only_own;
use deltabench_workload::executable::Executable;
use deltabench_workload::pgbench::builtin;
use deltabench_workload::{Library, mix};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The built-in scripts, by the names that pgbench has for them.
pub const SCRIPTS: [&str; 3] = ["select-only", "simple-update", "tpcb-like"];

/// The built-in scripts of these names; all of them without names.
///
/// Errors: a name that is not known, or is there twice.
pub fn chosen(only: &[String]) -> Result<Vec<&'static str>, Problem> {
    if only.is_empty() {
        return Ok(SCRIPTS.to_vec());
    }
    let mut found: Vec<&'static str> = Vec::new();
    for name in only {
        let script = SCRIPTS.into_iter().find(|known| known == name);
        match script {
            Some(script) if found.contains(&script) => {
                return Err(Problem::new(format!("{name} is named twice")));
            }
            Some(script) => found.push(script),
            None => {
                let problem = Problem::new(format!("no built-in script `{name}` of pgbench"))
                    .detail(format!("there are {}", SCRIPTS.join(", ")));
                return Err(match nearest(name, SCRIPTS) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint("leave --only out to compare all of them"),
                });
            }
        }
    }
    Ok(found)
}

/// What to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct PgbenchRequest {
    /// The server to run against.
    pub installation: Installation,
    /// Scripts, of [`SCRIPTS`].
    pub scripts: Vec<&'static str>,
    /// Ways of sending.
    pub modes: Vec<QueryMode>,
    pub clients: Vec<u32>,
    pub rounds: u32,
    /// Seconds of our own client in a round.
    pub seconds: f64,
    /// Scale factor of the tables.
    pub scale: u32,
    /// Seed of orders and keys.
    pub seed: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct PgbenchFound {
    /// The pgbench that was run.
    pub program: PathBuf,
    /// How it makes its tables and how we make them.
    pub tables: Vec<TablesFound>,
    /// What each sends, and how fast.
    pub rows: Vec<ScriptCrosscheck>,
}

/// What was found of one script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptCrosscheck {
    pub script: &'static str,
    /// How statements were sent.
    pub mode: QueryMode,
    pub clients: u32,
    /// The two sides.
    pub measured: Measured,
}

/// A built-in script as pgbench runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script<'a> {
    program: &'a Path,
    major: u32,
    name: &'static str,
    mode: QueryMode,
    clients: u32,
}

impl Script<'_> {
    pub(super) fn run<'b>(
        &'b self,
        cores: &'b [usize],
        transactions: u64,
        seed: u64,
    ) -> PgbenchRun<'b> {
        PgbenchRun {
            program: self.program,
            major: self.major,
            builtin: self.name,
            mode: self.mode,
            clients: self.clients,
            transactions,
            seed,
            affinity: cores,
        }
    }
}

/// Runs both sides of every script.
///
/// Shape:  `None` when `interrupted` was set meanwhile.
/// Errors: no pgbench; a server that cannot be had, or has no `pg_stat_statements`; a run that fails.
pub fn crosscheck_pgbench(
    request: &PgbenchRequest,
    host: &Host,
    interrupted: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Option<PgbenchFound>, Problem> {
    let program = installed(&request.installation)?;
    let plan = plan(request)?;
    let executables = executables(&plan)?;
    only_own(&plan)?;
    let mut fleet = Fleet::create(&plan, run_half(&plan.work), "crosscheck", host, note)?;
    let found = match fleet.load(&executables, interrupted, note) {
        Ok(None) => Ok(None),
        Ok(Some(_)) => {
            let pace = (request.rounds, request.seconds);
            Bench::start(&plan, pace, &mut fleet, interrupted)
                .and_then(|mut bench| all(request, &plan, &program, &mut bench, interrupted, note))
        }
        Err(problem) => Err(problem),
    };
    let dismantled = fleet.dismantle();
    // An interrupt from the terminal ends pgbench too: what looks like a failure is none.
    let found = if interrupted.load(Ordering::Relaxed) {
        None
    } else {
        found?
    };
    dismantled.map(|()| found)
}

fn all(
    request: &PgbenchRequest,
    plan: &Plan,
    program: &Path,
    bench: &mut Bench<'_, '_>,
    interrupted: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Option<PgbenchFound>, Problem> {
    let major = major(&pgbench_version(program)?);
    note("tables, made by each".to_owned());
    let version_num = request.installation.version_num;
    let judge = Judge {
        program,
        major,
        version_num,
    };
    let Some(tables) = compare_tables(&bench.address, &judge, request.scale, interrupted)? else {
        return Ok(None);
    };
    let mut rows = Vec::new();
    for &mode in &request.modes {
        let mut sent = plan.clone();
        let setup = plan.work.pgbench().cloned();
        sent.work = Work::scripts(setup.map(|setup| PgbenchSetup { mode, ..setup }));
        let executables = executables(&sent)?;
        for ((number, cell), executable) in (0..).zip(&plan.cells).zip(&executables) {
            let name = SCRIPTS
                .into_iter()
                .find(|name| workload(name) == cell.workload);
            let Some(name) = name else { continue };
            note(format!("{name}, {}, {} clients", mode.word(), cell.clients));
            let pair = Pair {
                cell,
                login: address_for(&bench.address, plan.order, cell).login,
                executable,
                peer: Peer::Pgbench(Script {
                    program,
                    major,
                    name,
                    mode,
                    clients: cell.clients,
                }),
                operations_max: u64::MAX,
                seed: mix(request.seed, &[number]),
            };
            let Some(measured) = bench.pair(&pair)? else {
                return Ok(None);
            };
            rows.push(ScriptCrosscheck {
                script: name,
                mode,
                clients: cell.clients,
                measured,
            });
        }
    }
    Ok(Some(PgbenchFound {
        program: program.to_owned(),
        tables,
        rows,
    }))
}

fn workload(script: &str) -> String {
    format!("pgbench-{script}")
}

fn executables(plan: &Plan) -> Result<Vec<Executable>, Problem> {
    compile(plan, &Library::of_plan(plan)?)
}

/// A plan of one server with all scripts at all client counts, so that a fleet can be made of it.
fn plan(request: &PgbenchRequest) -> Result<Plan, Problem> {
    let mixes = request.scripts.iter().map(|name| {
        Ok(PgbenchMix {
            name: workload(name),
            scripts: vec![builtin(name)?],
        })
    });
    let setup = PgbenchSetup {
        tables: PgbenchTables {
            scale: request.scale,
            ..PgbenchTables::default()
        },
        mixes: mixes.collect::<Result<Vec<_>, Problem>>()?,
        mode: QueryMode::Simple,
        variables: Vec::new(),
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    };
    let data = DataSize {
        tables: 1,
        rows: u64::from(request.scale) * 100_000,
    };
    let library = Library::builtin()?.with_pgbench(Some(&setup))?;
    let mut cells = Vec::new();
    for mix in &setup.mixes {
        for &clients in &request.clients {
            cells.push(cell(library.get(&mix.name)?, &data, clients));
        }
    }
    Ok(Plan {
        settings: watcher::settings(request.installation.version_num),
        work: Work::scripts(Some(setup)),
        ..server::plan(&request.installation, cells, data, request.seed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_asked_for_by_their_names() {
        let asked = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names)
        };
        assert_eq!(asked(&[]).unwrap(), SCRIPTS);
        assert_eq!(asked(&["tpcb-like"]).unwrap(), ["tpcb-like"]);
        let refused = |names: &[&str]| asked(names).unwrap_err().to_string();
        assert!(refused(&["select-onyl"]).contains("did you mean `select-only`?"));
        assert!(refused(&["select-only", "select-only"]).contains("twice"));
    }
}
