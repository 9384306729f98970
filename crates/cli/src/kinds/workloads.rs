//! `deltabench compare`: sysbench's workloads on two servers or more.

pub mod arguments;
pub mod experiment;

use self::arguments::{Compare, OrderWord, StateWord};
use crate::config::Config;
use crate::defaults;
use crate::failure::Failure;
use crate::kinds::{pgbench, sustained, sustained::Typed};
use crate::ready::{Sides, carry_out};
use crate::request::{source, without_workloads};
use deltabench_model::plan::{CellOrder, DataSize, DataState, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_run::planning::{Request, Selection};
use std::path::PathBuf;

/// Runs a new comparison.
pub fn compare(mut arguments: Compare, config: &Config) -> Result<u8, Failure> {
    let asked = arguments.sustained.as_deref();
    sustained::configure(asked, &mut arguments.conditions).map_err(Failure::Refused)?;
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    let request = request(&arguments).map_err(Failure::Refused)?;
    carry_out(request, &sides, &arguments.shape, config)
}

/// The request that the arguments stand for.
///
/// Errors: a percentage, time, core list, setting or file that cannot be read.
pub fn request(arguments: &Compare) -> Result<Request, Problem> {
    let default_rows = if arguments.quick {
        defaults::QUICK_ROWS
    } else {
        defaults::ROWS
    };
    let (sources, work) = files(&arguments.workloads)?;
    let request = without_workloads(&arguments.shape, &arguments.conditions, arguments.quick)?;
    Ok(Request {
        selection: selection(arguments),
        sources,
        state: match arguments.state {
            StateWord::Fresh => DataState::Fresh,
            StateWord::Aged => DataState::Aged,
        },
        order: arguments.order.into(),
        rate: arguments.rate,
        clients: arguments.clients.clone(),
        data: DataSize {
            tables: arguments.tables,
            rows: arguments.rows.unwrap_or(default_rows),
        },
        work,
        ..in_passes(arguments, request)?
    })
}

/// The request with passes without a break, if they are asked for.
///
/// Errors: those of [`sustained::sustained`]; no workload is named, an order that has no passes.
fn in_passes(arguments: &Compare, request: Request) -> Result<Request, Problem> {
    let is_named = !arguments.only.is_empty() || !arguments.workloads.is_empty();
    if arguments.sustained.is_some() && !is_named {
        return Err(Problem::new("--sustained without a workload")
            .detail("each workload takes minutes on each server in each of 8 blocks")
            .hint("name those that matter, for example --only update-index,insert"));
    }
    if arguments.sustained.is_some() {
        sustained::check_workloads(&arguments.only, arguments.order.into())?;
    }
    let typed = Typed::new(
        arguments.sustained.as_ref(),
        arguments.quick,
        &arguments.shape,
        (&arguments.base, &arguments.candidates),
    );
    sustained::sustained(&typed, request)
}

impl From<OrderWord> for CellOrder {
    fn from(word: OrderWord) -> Self {
        match word {
            OrderWord::Drawn => Self::Drawn,
            OrderWord::Published => Self::Published,
        }
    }
}

/// What the user's own files come to: workloads, and scripts for pgbench.
///
/// Errors: a file that cannot be read.
pub fn files(paths: &[PathBuf]) -> Result<(Vec<WorkloadSource>, Work), Problem> {
    let is_script = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "sql");
    let (scripts, files): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_script);
    let sources = files.into_iter().map(|path| source(path));
    let sources = sources.collect::<Result<_, _>>()?;
    Ok((sources, Work::scripts(pgbench::of_scripts(&scripts)?)))
}

fn selection(arguments: &Compare) -> Selection {
    let own_only = !arguments.workloads.is_empty() && !arguments.quick;
    match (
        arguments.all || arguments.order == OrderWord::Published,
        own_only,
    ) {
        _ if !arguments.only.is_empty() => Selection::Named(arguments.only.clone()),
        (true, _) => Selection::All,
        (false, true) => Selection::Named(Vec::new()),
        (false, false) => Selection::Quick,
    }
}
