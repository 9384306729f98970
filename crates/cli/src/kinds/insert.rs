//! `deltabench insert`: the Insert Benchmark on two servers or more.

pub mod arguments;
pub mod count;
pub mod experiment;
mod outlook;
mod sizes;

use self::arguments::InsertArguments;
use crate::arguments::shape::{
    CountArguments, Ending, InconclusiveWord, PlacementWord, SessionArguments, Shape,
};
use crate::config::Config;
use crate::failure::Failure;
use crate::kinds::outlook::show;
use crate::ready::{Ready, Sides};
use crate::request::{time, without_workloads};
use deltabench_kinds::insert::setup::{check, threads};
use deltabench_model::plan::{DataSize, Stopping, Timing};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing, RATES};
use deltabench_run::planning::Request;
use sizes::Preset;

/// The configuration of all servers unless another is asked for: the published one, for any machine. The
/// steady one has autovacuum off, which is no way to delete as much as one inserts.
const CONFIGURATION: &str = "cx10a";

/// Runs the benchmark, or says what it would take.
pub fn insert(mut arguments: InsertArguments, config: &Config) -> Result<u8, Failure> {
    let setup = setup(&arguments).map_err(Failure::Refused)?;
    check(&setup).map_err(Failure::Refused)?;
    check_targets(&arguments).map_err(Failure::Refused)?;
    let conditions = &mut arguments.conditions;
    let configuration = &mut conditions.configuration;
    configuration.get_or_insert_with(|| CONFIGURATION.to_owned());
    let request = request(&arguments, setup).map_err(Failure::Refused)?;
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    let ready = Ready::of(request, &sides, config)?;
    let told = outlook::tell(&ready.plan, &ready.host).map_err(Failure::Refused)?;
    show(&told, arguments.dry_run)?;
    if arguments.dry_run {
        return Ok(0);
    }
    ready.measure(false, config)
}

/// Refuses servers that already run, without connecting to them.
fn check_targets(arguments: &InsertArguments) -> Result<(), Problem> {
    let all = std::iter::once(&arguments.base).chain(&arguments.candidates);
    let mut remote = all.filter(|target| target.starts_with("dsn:"));
    match remote.next() {
        None => Ok(()),
        Some(_) => Err(Problem::new(
            "the Insert Benchmark cannot use a server that already runs",
        )
        .detail(
            "each pass needs an empty server without other users, reads its processes and files, and \
             fills its disk",
        )
        .hint("name a version or a build, for example postgres:18 or path:/opt/pg18")),
    }
}

/// The sizes that were asked for.
///
/// Errors: a size, step or time that cannot be read.
fn setup(arguments: &InsertArguments) -> Result<InsertSetup, Problem> {
    let preset = Preset::of(arguments.quick, arguments.published);
    let rows = |text: &Option<String>, option, otherwise| match text {
        Some(text) => sizes::rows(text, option),
        None => Ok(otherwise),
    };
    let long_transaction = arguments.long_transaction.as_deref().map(|text| {
        time(text).map_err(|problem| problem.hint("write for example --long-transaction 60s"))
    });
    let pacing = arguments.pacing.map(Pacing::from);
    Ok(InsertSetup {
        clients: arguments.clients.unwrap_or(preset.clients),
        shared_table: arguments.shared_table,
        partitions: arguments.partitions,
        rows: rows(&arguments.rows, "--rows", preset.rows)?,
        write_rows: rows(&arguments.write_rows, "--write-rows", preset.write_rows)?,
        query_seconds: arguments.seconds.unwrap_or(preset.seconds),
        steps: steps(arguments)?,
        pacing: pacing.unwrap_or(preset.pacing),
        settle_seconds: arguments.settle_seconds.or(preset.settle_seconds),
        long_transaction_seconds: long_transaction
            .transpose()?
            .map(|seconds| u32::try_from(to_u64(seconds)).unwrap_or(u32::MAX)),
        turns: arguments.turns,
    })
}

fn steps(arguments: &InsertArguments) -> Result<Vec<InsertStep>, Problem> {
    if arguments.steps.is_empty() {
        return Ok(InsertStep::published(&arguments.rates));
    }
    arguments.steps.iter().map(named_step).collect()
}

/// The step of that name.
///
/// Errors: there is none, with those that are there.
fn named_step(name: &String) -> Result<InsertStep, Problem> {
    InsertStep::from_name(name.trim()).ok_or_else(|| {
        let known = InsertStep::published(&RATES).into_iter();
        let known: Vec<String> = known.map(InsertStep::name).collect();
        let problem = Problem::new(format!("there is no step `{name}`")).detail(
            "steps are l.i0, l.x, l.i1, l.i2, and qr or qp with a rate, such as qr100 and qp1000",
        );
        match nearest(name, known.iter().map(String::as_str)) {
            Some(other) => problem.hint(format!("did you mean {other}?")),
            None => problem,
        }
    })
}

fn request(arguments: &InsertArguments, setup: InsertSetup) -> Result<Request, Problem> {
    let preset = Preset::of(arguments.quick, arguments.published);
    let blocks = arguments.passes.unwrap_or(preset.passes);
    if blocks == 0 {
        return Err(Problem::new("zero passes measure nothing")
            .hint("use --passes 6 or more for a verdict"));
    }
    let shape = Shape {
        blocks: Some(blocks),
        delta: arguments.delta.clone(),
        ending: Ending {
            fixed: true,
            precision: None,
            budget: arguments.budget.clone(),
            no_pilot: true,
            confirm: false,
            gate: false,
            not_worse_than: None,
            gate_on: Vec::new(),
            on_inconclusive: InconclusiveWord::Fail,
        },
        sessions: SessionArguments::default(),
        probes: false,
        waits: None,
        sample: None,
        force: false,
        counts: CountArguments {
            no_count: true,
            ..CountArguments::default()
        },
        // As published: more connections work at a time than there are clients.
        placement: Some(PlacementWord::Free),
        pin: None,
        jobs: arguments.jobs,
        visit_seconds: None,
        write_seconds: None,
        warmup: None,
        slice_ms: None,
    };
    let request = without_workloads(&shape, &arguments.conditions, false)?;
    Ok(Request {
        jobs: threads(&setup, request.jobs),
        clients: vec![setup.clients],
        data: DataSize {
            tables: setup.tables(),
            rows: setup.rows,
        },
        stopping: Stopping::Fixed,
        timing: Timing {
            visit_seconds: f64::from(setup.query_seconds),
            warmup_seconds: 0.0,
            connections_per_visit: 1,
            sustained: false,
            write_seconds: None,
            warmup_chosen: false,
            rotated: false,
            ..request.timing
        },
        placebo: !arguments.no_placebo,
        work: Work::Insert(setup),
        ..request
    })
}
