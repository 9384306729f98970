//! `deltabench explain`: where in the server the difference of a cell went.

use crate::afterwards::{ROWS, count_for, counting_plan};
use crate::arguments::conditions::{AS_IS, CacheWord, Checksums, TransportWord};
use crate::arguments::count::Count;
use crate::arguments::explain::{Explain, ExplainFormat};
use crate::bench::{Bench, interrupted};
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::invalidate::meant;
use crate::output::rewrite;
use crate::ready::Ready;
use crate::store::{open, open_store, store_problem};
use crate::targets::check_still_there;
use crate::{count, interrupt};
use deltabench_compare::comparison::Comparison;
use deltabench_lab::{Analysed, EXPLAINED, Judged, changed, explained};
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::SampledCell;
use deltabench_model::units::index;
use deltabench_run::session::SessionEnd;
use deltabench_server::Counter;
use deltabench_store::Store;

/// Explains cells of a run, or of two targets without a run before.
pub fn explain(arguments: Explain, config: &Config) -> Result<u8, Failure> {
    if let Some(path) = &arguments.out {
        check_writable(path).map_err(Failure::Refused)?;
    }
    let shape = Shape {
        lines: index(u64::from(arguments.depth)),
        format: arguments.format,
        out: arguments.out.clone(),
    };
    match arguments.what.as_slice() {
        [] => of_run("last", &arguments, &shape, config),
        [run] => of_run(run, &arguments, &shape, config),
        [base, candidate] => {
            let (base, candidate) = (base.clone(), candidate.clone());
            of_targets(base, candidate, arguments, &shape, config)
        }
        _ => Err(Failure::Refused(
            Problem::new("explain takes a run, or a base and a candidate")
                .hint("`deltabench explain --help` has an example of each"),
        )),
    }
}

/// How an explanation is shown.
struct Shape {
    lines: usize,
    format: ExplainFormat,
    out: Option<std::path::PathBuf>,
}

fn of_targets(
    base: String,
    candidate: String,
    arguments: Explain,
    shape: &Shape,
    config: &Config,
) -> Result<u8, Failure> {
    if !arguments.cells.is_empty() {
        return Err(Failure::Refused(
            Problem::new("--cell is for a run").hint("name workloads with --only or -f"),
        ));
    }
    if arguments.only.is_empty() && arguments.workloads.is_empty() {
        return Err(Failure::Refused(
            Problem::new("no cell is named")
                .detail("without a run, explain does not know what to count")
                .hint("add --only point-query, or -f FILE; `deltabench workloads` lists them"),
        ));
    }
    if arguments
        .conditions
        .output
        .json
        .as_deref()
        .is_some_and(is_stdout)
    {
        return Err(Failure::Refused(
            Problem::new("stdout has the explanation, so the JSON report needs a file")
                .hint("`--format json` writes the explanation as JSON to stdout"),
        ));
    }
    let count = Count {
        base,
        candidates: vec![candidate],
        all: false,
        only: arguments.only,
        insert: false,
        workloads: arguments.workloads,
        not_more_than: None,
        starts: 2,
        clients: 1,
        tables: 1,
        rows: ROWS,
        conditions: arguments.conditions,
    };
    explain_counted(count::ready(&count, config)?, shape, config)
}

fn of_run(run: &str, arguments: &Explain, shape: &Shape, config: &Config) -> Result<u8, Failure> {
    if let Some(option) = of_targets_only(arguments) {
        return Err(Failure::Refused(
            Problem::new(format!("{option} is for two targets"))
                .detail("the cells of a run are counted under the run's own conditions")
                .hint("leave it out; --cell names cells of a run"),
        ));
    }
    let store = open(config)?;
    let run = store.find(run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let (comparison, sampled) = read(&run, &plan, &store).map_err(Failure::Failed)?;
    let named: Vec<CellId> = match arguments.cells.as_slice() {
        [] => Vec::new(),
        names => {
            let meant = meant(&plan, &run, names).map_err(Failure::Refused)?;
            meant.into_iter().flatten().collect()
        }
    };
    let mut cells = match named.as_slice() {
        [] => changed(&comparison),
        named => named.to_vec(),
    };
    if named.is_empty() {
        cells.truncate(EXPLAINED);
    }
    if cells.is_empty() {
        return Err(Failure::Refused(
            Problem::new(format!("no cell of {run} changed"))
                .hint("name one with --cell NAME to explain it anyway"),
        ));
    }
    let told = |store: &Store, comparison: &Comparison| {
        let read = (&plan, comparison, sampled.as_slice());
        explained(&run, read, store, &cells, shape.lines).map_err(Failure::Failed)
    };
    let mut found = told(&store, &comparison)?;
    let is_missing = |cell: &CellId| found.iter().all(|explained| explained.cell != *cell);
    let missing: Vec<CellId> = cells.iter().copied().filter(is_missing).collect();
    if !missing.is_empty() {
        drop(store);
        let Some(store) = count_now(&run, &plan, &missing, arguments, config)? else {
            say(&format!(
                "interrupted; `deltabench explain {run}` counts again"
            ));
            return Ok(interrupt::STATUS);
        };
        let (comparison, _) = read(&run, &plan, &store).map_err(Failure::Failed)?;
        found = told(&store, &comparison)?;
        rewrite(&run, &plan, &store, config)?;
    }
    show(&run, &plan, &found, shape)
}

/// What a run says now, and where its servers' time went.
fn read(run: &str, plan: &Plan, store: &Store) -> Result<(Comparison, Vec<SampledCell>), Problem> {
    let judged = Judged::of(run, plan, store)?;
    Ok((judged.standing(store)?, judged.sampled()?))
}

/// The first option given that has a meaning with two targets only.
fn of_targets_only(arguments: &Explain) -> Option<&'static str> {
    let conditions = &arguments.conditions;
    let (limits, output) = (&conditions.limits, &conditions.output);
    let given = [
        (!arguments.only.is_empty(), "--only"),
        (!arguments.workloads.is_empty(), "-f"),
        (conditions.transport != TransportWord::Socket, "--transport"),
        (conditions.seed.is_some(), "--seed"),
        (conditions.same_target, "--same-target"),
        (!conditions.settings.is_empty(), "--set"),
        (conditions.configuration.is_some(), "--config"),
        (
            conditions.candidate_configuration.is_some(),
            "--candidate-config",
        ),
        (!conditions.candidate_settings.is_empty(), "--candidate-set"),
        (limits.memory.is_some(), "--memory"),
        (limits.storage != AS_IS, "--storage"),
        (limits.cache_state != CacheWord::AsIs, "--cache-state"),
        (conditions.checksums != Checksums::On, "--checksums"),
        (output.json.is_some(), "--json"),
        (output.html.is_some(), "--html"),
    ];
    given
        .iter()
        .find(|(is_given, _)| *is_given)
        .map(|(_, option)| *option)
}

/// Counts cells of a run that has no counts of them, as a separate run; nothing if the user stops
/// it.
fn count_now(
    run: &str,
    plan: &Plan,
    cells: &[CellId],
    arguments: &Explain,
    config: &Config,
) -> Result<Option<Store>, Failure> {
    let counting = counting_plan(plan, cells);
    deltabench_kinds::check_counted(&counting).map_err(Failure::Refused)?;
    Counter::find().map_err(Failure::Refused)?;
    check_still_there(&counting).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.conditions.servers, config)?;
    say(&format!(
        "{run} has no counts of {}: counting them now",
        match cells.len() {
            1 => "this cell".to_owned(),
            several => format!("{several} cells"),
        }
    ));
    let mut bench = Bench {
        store: open_store(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    let end = count_for(&mut bench, run, counting)?;
    Ok((end == SessionEnd::Finished).then_some(bench.store))
}

/// Counts as a new run and explains all of its cells.
fn explain_counted(ready: Ready, shape: &Shape, config: &Config) -> Result<u8, Failure> {
    let (analysed, end) = ready.measure_only(config)?;
    let Analysed {
        plan,
        comparison,
        context,
        ..
    } = &analysed;
    if end == SessionEnd::Interrupted {
        return Ok(interrupted(plan));
    }
    let store = open(config)?;
    let all: Vec<CellId> = CellId::each().take(plan.cells.len()).collect();
    let run = &context.run;
    let found = explained(run, (plan, comparison, &[]), &store, &all, shape.lines)
        .map_err(Failure::Failed)?;
    show(run, plan, &found, shape)
}

fn show(run: &str, plan: &Plan, cells: &[ExplainedCell], shape: &Shape) -> Result<u8, Failure> {
    if cells.is_empty() {
        return Err(Failure::Failed(
            Problem::new(format!("{run} has nothing to explain"))
                .detail("instructions were not counted on both sides"),
        ));
    }
    let text = match shape.format {
        ExplainFormat::Text => {
            let text = deltabench_report::explained_text(cells, plan, width());
            format!(
                "run {run}, base {}\n\n{text}",
                deltabench_report::resolved(plan, plan.base())
            )
        }
        ExplainFormat::Markdown => deltabench_report::explained_markdown(cells, plan),
        ExplainFormat::Json => deltabench_report::explained_json(run, cells, plan),
    };
    match &shape.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(text.trim_end_matches('\n'))?,
    }
    say(&format!(
        "`deltabench report {run} --format html --out FILE` draws it as a flame graph"
    ));
    Ok(0)
}
