//! Where reports go: checked before the run, written after it.

use crate::arguments::conditions::Output;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::invalidate;
use crate::store::store_problem;
use deltabench_compare::absolute;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::costs::{Machine, add_costs};
use deltabench_compare::host_speed;
use deltabench_compare::study::{StudyRun, grids_of};
use deltabench_compare::{Records, analyse, confirm, ended_after, exit_code};
use deltabench_kinds::insert::{self, InsertReport, Settled};
use deltabench_kinds::reader;
use deltabench_kinds::rocksdb::{self, RocksdbReport};
use deltabench_model::figures::Figures;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{CellId, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_observe::CoreSpeed;
use deltabench_report::{
    CellWarmUp, JsonVersion, LedgerLine, ReportContext, ServerFacts, TerminalOptions,
};
use deltabench_run::session::TIME_UP;
use deltabench_run::visit::WarmUp;
use deltabench_store::{Fact, RunSummary, Store};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Where a run's reports are written.
#[derive(Debug)]
pub struct Destinations {
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    lab: PathBuf,
    version: JsonVersion,
}

impl Destinations {
    /// Makes sure that every file asked for can be written, before anything is measured.
    ///
    /// Errors: a directory that is not there, a file that cannot be created.
    pub fn check(output: &Output, config: &Config) -> Result<Self, Problem> {
        for path in [&output.json, &output.html]
            .into_iter()
            .flatten()
            .filter(|path| !is_stdout(path))
        {
            check_writable(path)?;
        }
        std::fs::create_dir_all(&config.lab).map_err(|error| {
            Problem::new(format!(
                "cannot create the lab directory {}",
                config.lab.display()
            ))
            .detail(error.to_string())
            .hint("choose another one with --lab DIR")
        })?;
        Ok(Self {
            json: output.json.clone(),
            html: output.html.clone(),
            lab: config.lab.clone(),
            version: JsonVersion::of(output.json_version),
        })
    }
}

/// A run, analysed.
pub struct Analysed {
    /// What the data say.
    pub comparison: Comparison,
    /// What the reports need beside it.
    pub context: ReportContext,
    /// The steps of the Insert Benchmark; absent for runs of anything else.
    pub insert: Option<InsertReport>,
}

/// The name of the run that confirms another.
pub fn confirmation_name(run: &str) -> String {
    format!("{run}-confirm")
}

/// Analyses what the store has of a run, and of the run that confirms it.
pub fn analyse_run(run: &str, plan: &Plan, store: &Store) -> Result<Analysed, Failure> {
    let mut comparison = analyse_alone(run, plan, store)?;
    let again = confirmation_name(run);
    let known = store.runs().map_err(store_problem)?;
    let mut confirmation_withdrawn = Vec::new();
    if known.iter().any(|summary| summary.run == again) {
        let second_plan = store.plan(&again).map_err(store_problem)?;
        let mut second = analyse_alone(&again, &second_plan, store)?;
        let withdrawn = store.invalidations(&again).map_err(store_problem)?;
        invalidate::leave_out(&mut second, &withdrawn);
        confirm(&mut comparison, &second);
        confirmation_withdrawn = invalidate::of_confirmation(&again, &second_plan, &withdrawn);
    }
    let mut context = context(run, plan, store)?;
    context.confirmation_withdrawn = confirmation_withdrawn;
    invalidate::withdraw(&mut comparison, &context.invalidations);
    let itself = StudyRun {
        run,
        plan,
        comparison: &comparison,
        results: &context.results,
        host: "",
        withdrawn: &context.invalidations,
    };
    // A run that confirms another shows that one's cells again.
    context.grids = if context.results.is_empty() {
        Vec::new()
    } else {
        grids_of(itself).map_err(Failure::Failed)?
    };
    let insert = insert_figures(run, plan, store, &comparison)?;
    context.figures = match &insert {
        Some(report) => deltabench_kinds::insert::shown::figures(plan, report),
        None => figures(run, plan, store, &comparison, &context)?,
    };
    Ok(Analysed {
        comparison,
        context,
        insert,
    })
}

fn analyse_alone(run: &str, plan: &Plan, store: &Store) -> Result<Comparison, Failure> {
    let slices = store.slices(run).map_err(store_problem)?;
    let findings = store.findings(run).map_err(store_problem)?;
    let mut plan = plan.clone();
    if let Some(blocks) = ended_by_time(run, &slices, store)? {
        plan.stopping = ended_after(&plan.stopping, blocks);
    }
    let steps = store.steps(run).map_err(store_problem)?;
    let counters = store.counters(run).map_err(store_problem)?;
    let records = Records {
        slices: &slices,
        findings: &findings,
        counters: &counters,
        steps: &steps,
    };
    let reading = reader(&plan.work).read(&plan, &records);
    let counters = reading.counters.clone();
    let mut comparison = analyse(&plan, &slices, reading);
    let visits = stored_visits(run, store)?;
    comparison.findings.extend(core_speeds(&visits));
    mark_drifting(&mut comparison, &warm_ups(visits));
    let machines = machines(run, &plan, store)?;
    add_costs(&mut comparison, &plan, &slices, &counters, &machines);
    Ok(comparison)
}

/// What the kind of benchmark shows beside the verdicts.
fn figures(
    run: &str,
    plan: &Plan,
    store: &Store,
    comparison: &Comparison,
    context: &ReportContext,
) -> Result<Figures, Failure> {
    if let Some(report) = rocksdb_figures(run, plan, store, comparison)? {
        return Ok(deltabench_kinds::rocksdb::shown::figures(
            run, plan, &report,
        ));
    }
    Ok(if plan.work.pgbench().is_some() {
        deltabench_kinds::pgbench::shown::figures(plan, &context.results)
    } else {
        Figures::default()
    })
}

/// The figures of the Insert Benchmark; `None` for runs of anything else.
fn insert_figures(
    run: &str,
    plan: &Plan,
    store: &Store,
    comparison: &Comparison,
) -> Result<Option<InsertReport>, Failure> {
    if !plan.work.has_passes() {
        return Ok(None);
    }
    let steps = store.steps(run).map_err(store_problem)?;
    let machines = machines(run, plan, store)?;
    // Its servers are all of this machine.
    let cores = machines.first().and_then(|machine| machine.cores);
    let mut report = insert::insert_report(plan, &steps, comparison, cores);
    if let Some(report) = &mut report {
        report.settled = settled(run, store)?;
    }
    Ok(report)
}

/// The figures of RocksDB; `None` for runs of anything else.
fn rocksdb_figures(
    run: &str,
    plan: &Plan,
    store: &Store,
    comparison: &Comparison,
) -> Result<Option<RocksdbReport>, Failure> {
    if !plan.work.is_embedded() {
        return Ok(None);
    }
    let slices = store.slices(run).map_err(store_problem)?;
    let counters = store.counters(run).map_err(store_problem)?;
    Ok(rocksdb::rocksdb_report(
        plan, &slices, &counters, comparison,
    ))
}

/// What settling took in each pass. Of a pass that was begun again the last time counts.
fn settled(run: &str, store: &Store) -> Result<Vec<Settled>, Failure> {
    #[derive(serde::Deserialize)]
    struct Seconds {
        vacuum_seconds: f64,
        checkpoint_seconds: f64,
        seconds: f64,
    }
    let mut passes = BTreeMap::new();
    for fact in store.facts(run, "settled").map_err(store_problem)? {
        let (Some(server), Some(pass)) = (fact.server, fact.block) else {
            continue;
        };
        let took: Option<Seconds> = parsed(Some(fact.json))?;
        passes.extend(took.map(|took| {
            let settled = Settled {
                server,
                pass,
                vacuum_seconds: took.vacuum_seconds,
                checkpoint_seconds: took.checkpoint_seconds,
                seconds: took.seconds,
            };
            ((pass, server), settled)
        }));
    }
    Ok(passes.into_values().collect())
}

/// The machines of the servers: the one that measured, or those that agents tell of.
fn machines(run: &str, plan: &Plan, store: &Store) -> Result<Vec<Machine>, Failure> {
    #[derive(serde::Deserialize)]
    struct Host {
        online_cores: Option<u32>,
    }
    #[derive(serde::Deserialize)]
    struct Agent {
        same_machine: bool,
    }
    let last = |kind: &str, server: Option<ServerId>| -> Result<Option<String>, Failure> {
        let facts = store.facts(run, kind).map_err(store_problem)?;
        let mut mine = facts.into_iter().filter(|fact| fact.server == server);
        Ok(mine.next_back().map(|fact| fact.json))
    };
    let cores = |json: Option<String>| -> Result<Option<u32>, Failure> {
        let host: Option<Host> = parsed(json)?;
        Ok(host.and_then(|host| host.online_cores))
    };
    let here = Machine::of_client(cores(last("host", None)?)?);
    let of = |(id, server): (ServerId, &PlannedServer)| {
        if server.installation.remote.is_none() {
            return Ok(here);
        }
        let agent: Option<Agent> = parsed(last("agent", Some(id))?)?;
        Ok(Machine {
            cores: cores(last("server_host", Some(id))?)?,
            holds_client: agent.is_some_and(|agent| agent.same_machine),
        })
    };
    (0..).zip(&plan.servers).map(of).collect()
}

/// The blocks of a run that its time ended, unless it was gone on with since.
fn ended_by_time(run: &str, slices: &[Slice], store: &Store) -> Result<Option<u32>, Failure> {
    let facts = store.facts(run, TIME_UP).map_err(store_problem)?;
    let said: Option<u32> = parsed(facts.into_iter().next_back().map(|fact| fact.json))?;
    let done = slices.iter().map(|slice| slice.block + 1).max();
    Ok(said.filter(|blocks| Some(*blocks) == done))
}

/// What is stored of the beginning of a visit.
#[derive(serde::Deserialize)]
struct StoredVisit {
    cell: CellId,
    warm_up: Option<WarmUp>,
    core_speed: Option<CoreSpeed>,
}

fn stored_visits(run: &str, store: &Store) -> Result<Vec<StoredVisit>, Failure> {
    let facts = store.facts(run, "warm_up").map_err(store_problem)?;
    let visit = |fact: Fact| serde_json::from_str(&fact.json).map_err(store_problem);
    facts.into_iter().map(visit).collect()
}

/// The warm-ups of all visits, by cell.
fn warm_ups(visits: Vec<StoredVisit>) -> BTreeMap<CellId, Vec<WarmUp>> {
    let mut cells: BTreeMap<CellId, Vec<WarmUp>> = BTreeMap::new();
    for visit in visits {
        cells.entry(visit.cell).or_default().extend(visit.warm_up);
    }
    cells
}

/// What the looks at the cores before the visits say of the machine.
fn core_speeds(visits: &[StoredVisit]) -> Option<Finding> {
    let usual = |look: &CoreSpeed| {
        let [_, usual, _] = look.arithmetic_ns;
        usual
    };
    let looks = || visits.iter().filter_map(|visit| visit.core_speed);
    let arithmetic: Vec<f64> = looks().map(|look| usual(&look)).collect();
    let memory: Vec<f64> = looks().map(|look| look.memory_ns).collect();
    host_speed::core_speeds(&arithmetic, &memory)
}

fn shown_warm_up(cell: CellId, visits: &[WarmUp]) -> CellWarmUp {
    let number = |found: usize| u32::try_from(found).unwrap_or(u32::MAX);
    // The last visit stands for the others: its servers have seen the cell most often.
    let curves = visits.last().map(|visit| visit.us_per_operation.clone());
    CellWarmUp {
        cell,
        visits: number(visits.len()),
        steady: number(visits.iter().filter(|visit| visit.steady).count()),
        us_per_operation: curves.unwrap_or_default(),
    }
}

/// What the placebos of the run's host had said by the run's end.
fn ledger_line(run: &RunSummary, store: &Store) -> Result<Option<LedgerLine>, Failure> {
    let lines = store.placebo_results().map_err(store_problem)?;
    let row = crate::ledger::so_far(&lines, &run.run, run.state_unix_ms);
    Ok(row.map(|row| LedgerLine {
        flagged: row.flagged(),
        total: row.total,
        upper_bound: row.upper95,
    }))
}

/// A cell drifts when most of its visits began before its servers were steady.
fn mark_drifting(comparison: &mut Comparison, warm_ups: &BTreeMap<CellId, Vec<WarmUp>>) {
    for cell in &mut comparison.cells {
        let visits = warm_ups.get(&cell.cell).map_or(&[][..], Vec::as_slice);
        let unsteady = visits.iter().filter(|visit| !visit.steady).count();
        if 2 * unsteady > visits.len() {
            cell.drifting = Some(format!(
                "not steady after the longest warm-up in {unsteady} of {} visits",
                visits.len()
            ));
        }
    }
}

/// Keeps what a run's placebo came to for the ledger.
pub fn remember_placebo(run: &str, plan: &Plan, store: &mut Store) -> Result<(), Failure> {
    let comparison = analyse_alone(run, plan, store)?;
    store
        .add_placebo_results(run, &crate::ledger::results(&comparison, plan))
        .map_err(store_problem)
}

fn context(run: &str, plan: &Plan, store: &Store) -> Result<ReportContext, Failure> {
    let fact = |kind: &str| store.facts(run, kind).map_err(store_problem);
    let last = |kind: &str, server: Option<u32>| -> Result<Option<String>, Failure> {
        Ok(fact(kind)?
            .into_iter()
            .rev()
            .find(|fact| fact.server == server)
            .map(|fact| fact.json))
    };
    let mut servers = Vec::new();
    for (server, _) in (0..).zip(&plan.servers) {
        servers.push(ServerFacts {
            server,
            build: parsed(last("build", Some(server))?)?,
            settings: parsed(last("settings", Some(server))?)?.unwrap_or_default(),
        });
    }
    let summary = store
        .runs()
        .map_err(store_problem)?
        .into_iter()
        .find(|summary| summary.run == run);
    let ledger = match &summary {
        Some(summary) => ledger_line(summary, store)?,
        None => None,
    };
    Ok(ReportContext {
        run: run.to_owned(),
        state: summary
            .as_ref()
            .map_or(String::new(), |summary| summary.state.word().to_owned()),
        started_unix_ms: summary.map(|summary| summary.started_unix_ms),
        deltabench_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: parsed(last("host", None)?)?.unwrap_or_default(),
        conditions: parsed(last("conditions", None)?)?.unwrap_or_default(),
        servers,
        ledger,
        warm_up: warm_ups(stored_visits(run, store)?)
            .into_iter()
            .map(|(cell, visits)| shown_warm_up(cell, &visits))
            .collect(),
        invalidations: store.invalidations(run).map_err(store_problem)?,
        confirmation_withdrawn: Vec::new(),
        delta_chosen: None,
        samples: store.samples(run).map_err(store_problem)?,
        marks: store.marks(run).map_err(store_problem)?,
        results: if absolute::is_shown(plan) {
            absolute::results(&store.slices(run).map_err(store_problem)?)
        } else {
            Vec::new()
        },
        grids: Vec::new(),
        figures: Figures::default(),
    })
}

fn parsed<T: serde::de::DeserializeOwned>(json: Option<String>) -> Result<Option<T>, Failure> {
    json.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(store_problem)
}

/// Writes those reports of a run again that lie in the lab, after something was said about it.
pub fn rewrite(run: &str, plan: &Plan, store: &Store, config: &Config) -> Result<(), Failure> {
    let Analysed {
        comparison,
        context,
        ..
    } = analyse_run(run, plan, store)?;
    let html = config.lab.join(format!("{run}.html"));
    let json = config.lab.join(format!("{run}.json"));
    if html.is_file() {
        write_file(&html, &deltabench_report::html(&comparison, plan, &context))?;
        say(&format!("wrote {} again", html.display()));
    }
    if json.is_file() {
        // Whoever asked for a version reads that one.
        let before = std::fs::read_to_string(&json).unwrap_or_default();
        let version = JsonVersion::of_report(&before);
        let text = deltabench_report::json(version, &comparison, plan, &context);
        write_file(&json, &text)?;
        say(&format!("wrote {} again", json.display()));
    }
    // What a confirming run says is in the reports of the run that it confirms.
    match &plan.confirms {
        Some(confirmed) => {
            let plan = store.plan(confirmed).map_err(store_problem)?;
            rewrite(confirmed, &plan, store, config)
        }
        None => Ok(()),
    }
}

/// Prints the table and writes the files; returns the exit code.
pub fn publish(
    run: &str,
    plan: &Plan,
    store: &Store,
    destinations: &Destinations,
) -> Result<u8, Failure> {
    let Analysed {
        comparison,
        context,
        ..
    } = analyse_run(run, plan, store)?;
    let json = deltabench_report::json(destinations.version, &comparison, plan, &context);
    let html = deltabench_report::html(&comparison, plan, &context);
    let to_stdout = destinations.json.as_deref().is_some_and(is_stdout);
    let table = terminal(&comparison, plan, &context, !to_stdout);
    if to_stdout {
        say(&table);
        print_stdout(&json)?;
    } else {
        print_stdout(&table)?;
    }
    let json_file = destinations
        .json
        .clone()
        .unwrap_or_else(|| destinations.lab.join(format!("{run}.json")));
    let html_file = destinations
        .html
        .clone()
        .unwrap_or_else(|| destinations.lab.join(format!("{run}.html")));
    let mut files = vec![(html_file, html)];
    if !to_stdout {
        files.push((json_file, json));
    }
    for (path, text) in files {
        write_file(&path, &text)?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(exit_code(&comparison))
}

/// The table, as wide as the terminal and coloured only there.
pub fn terminal(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    stdout: bool,
) -> String {
    let is_terminal = if stdout {
        std::io::stdout().is_terminal()
    } else {
        std::io::stderr().is_terminal()
    };
    let colour = is_terminal && std::env::var_os("NO_COLOR").is_none();
    let options = TerminalOptions {
        width: width(),
        colour,
    };
    deltabench_report::terminal(comparison, plan, context, options)
}
