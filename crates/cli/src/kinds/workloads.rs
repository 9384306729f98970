//! `deltabench compare`: sysbench's workloads on two servers or more.

pub mod arguments;
pub mod experiment;

use self::arguments::{Compare, OrderWord, StateWord};
use crate::config::Config;
use crate::defaults;
use crate::failure::Failure;
use crate::kinds::{pgbench, sustained, sustained::Typed};
use crate::ready::{Sides, carry_out};
use crate::request::{first_given, source, without_workloads};
use deltabench_model::plan::{CellOrder, DataSize, DataState, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_run::planning::{Request, Selection, uses_sbtest};
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
    check_sizes(&arguments, &request).map_err(Failure::Refused)?;
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

/// Refuses a size and a state of sysbench's tables that were typed and that nothing uses.
///
/// Errors: the first of them.
fn check_sizes(arguments: &Compare, request: &Request) -> Result<(), Problem> {
    let scripts_only =
        request.selection == Selection::Named(Vec::new()) && request.sources.is_empty();
    if scripts_only && arguments.state == StateWord::Aged {
        return Err(
            Problem::new("--state aged is for workloads, and only scripts are measured")
                .detail("scripts run on freshly loaded tables")
                .hint("leave out --state"),
        );
    }
    let given = [
        (arguments.rows.is_some(), "--rows"),
        (arguments.tables != 1, "--tables"),
    ];
    match first_given(&given).filter(|_| !uses_sbtest(request)) {
        None => Ok(()),
        Some(option) => Err(Problem::new(format!(
            "{option} is for sysbench's tables, and no workload uses them"
        ))
        .detail("no script has `sbtest` in it")
        .hint(format!(
            "leave out {option}; `deltabench pgbench A B --scale N -f my.sql` has pgbench's tables \
             of another size"
        ))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        compare: Compare,
    }

    /// Why a script and these options are refused, if they are.
    fn refusal(script: &str, options: &[&str]) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("my.sql");
        std::fs::write(&file, script).unwrap();
        let words = ["compare", "a", "b", "--workload", file.to_str().unwrap()];
        let compare = Alone::try_parse_from(words.iter().chain(options));
        let compare = compare.unwrap().compare;
        let request = request(&compare).unwrap();
        check_sizes(&compare, &request)
            .err()
            .map(|problem| problem.error)
    }

    #[test]
    fn a_size_that_no_workload_uses_is_refused_if_it_was_typed() {
        let (own, usual) = ("SELECT 1;", "SELECT c FROM sbtest1 LIMIT 1;");
        assert_eq!(refusal(own, &[]), None);
        let sizes = [&["--rows", "10M"], &["--tables", "8"]];
        for size in sizes {
            let refused = refusal(own, size).unwrap();
            assert!(refused.starts_with(&format!("{} is for sysbench's", size[0])));
            assert_eq!(refusal(usual, size), None);
            assert_eq!(refusal(own, &[size[0], size[1], "--only", "scan"]), None);
            assert_eq!(refusal(own, &[size[0], size[1], "--quick"]), None);
        }
        let aged = ["--state", "aged"];
        for script in [own, usual] {
            assert!(refusal(script, &aged).unwrap().contains("--state aged"));
        }
        assert_eq!(refusal(own, &["--state", "aged", "--only", "scan"]), None);
    }
}
