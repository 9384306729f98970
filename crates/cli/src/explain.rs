//! `deltabench explain`: where in the server the difference of a cell went.

use crate::afterwards::{ROWS, count_for, counting_plan, left_out};
use crate::arguments::conditions::{AS_IS, CacheWord, Checksums, TransportWord};
use crate::arguments::count::Count;
use crate::arguments::explain::{Explain, ExplainFormat};
use crate::bench::{Bench, interrupted, library_of};
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::invalidate::meant;
use crate::output::rewrite;
use crate::ready::Ready;
use crate::request::time;
use crate::store::{open, open_store, store_problem};
use crate::targets::check_still_there;
use crate::{count, interrupt};
use deltabench_compare::comparison::Comparison;
use deltabench_kinds::run_half;
use deltabench_lab::{Analysed, EXPLAINED, Judged, changed, explained, sample_name};
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::SampledCell;
use deltabench_model::units::index;
use deltabench_observe::profile::may_sample;
use deltabench_run::planning::{SamplesWish, samples};
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
    if arguments.sample {
        return Err(Failure::Refused(
            Problem::new("--sample is for a run").hint(format!(
                "`deltabench compare {base} {candidate} --sample` measures and samples both"
            )),
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
    let wish = arguments.sample.then(|| wish(arguments)).transpose();
    let wish = wish.map_err(Failure::Refused)?;
    let store = open(config)?;
    let run = store.find(run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let asked = Asked {
        cells: cells(&run, &plan, &store, &arguments.cells)?,
        run: &run,
        plan: &plan,
        arguments,
        config,
    };
    let mut told = asked.told(&store, shape.lines)?;
    let uncounted = asked.missing(|cell| told.explained.iter().any(|one| one.cell == cell));
    let mut unsampled = asked.missing(|cell| told.sampled.iter().any(|one| one.cell == cell));
    unsampled.retain(|_| wish.is_some());
    drop(store);
    let mut ends = Vec::new();
    if !uncounted.is_empty() {
        ends.extend(asked.count(&uncounted)?);
    }
    if let Some(wish) =
        wish.filter(|_| !unsampled.is_empty() && !ends.contains(&SessionEnd::Interrupted))
    {
        ends.push(asked.sample(&unsampled, wish)?);
    }
    if ends.contains(&SessionEnd::Interrupted) {
        return Ok(interrupted(&plan));
    }
    if !ends.is_empty() {
        let store = open(config)?;
        told = asked.told(&store, shape.lines)?;
        rewrite(&run, &plan, &store, config)?;
    }
    show(&run, &plan, &told, shape)
}

/// The cells that are meant: those that are named, or the ones that changed most.
fn cells(run: &str, plan: &Plan, store: &Store, names: &[String]) -> Result<Vec<CellId>, Failure> {
    if !names.is_empty() {
        let meant = meant(plan, run, names).map_err(Failure::Refused)?;
        return Ok(meant.into_iter().flatten().collect());
    }
    let (comparison, _) = read(run, plan, store).map_err(Failure::Failed)?;
    let mut cells = changed(&comparison);
    cells.truncate(EXPLAINED);
    if cells.is_empty() {
        return Err(Failure::Refused(
            Problem::new(format!("no cell of {run} changed"))
                .hint("name one with --cell NAME to explain it anyway"),
        ));
    }
    Ok(cells)
}

/// How much is to be sampled.
fn wish(arguments: &Explain) -> Result<SamplesWish, Problem> {
    may_sample(arguments.force)?;
    Ok(SamplesWish {
        rate: arguments.rate,
        cell_seconds: time(&arguments.budget)?,
        forced: arguments.force,
    })
}

/// The explanations of a run's cells, and the sampled time of their functions.
struct Told {
    explained: Vec<ExplainedCell>,
    sampled: Vec<SampledCell>,
}

/// Cells of a run that are to be explained.
struct Asked<'a> {
    run: &'a str,
    plan: &'a Plan,
    cells: Vec<CellId>,
    arguments: &'a Explain,
    config: &'a Config,
}

impl Asked<'_> {
    fn told(&self, store: &Store, lines: usize) -> Result<Told, Failure> {
        let Self {
            run, plan, cells, ..
        } = self;
        let (comparison, mut sampled) = read(run, plan, store).map_err(Failure::Failed)?;
        let read = (*plan, &comparison, sampled.as_slice());
        let explained = explained(run, read, store, cells, lines).map_err(Failure::Failed)?;
        sampled.retain(|one| cells.contains(&one.cell));
        Ok(Told { explained, sampled })
    }

    fn missing(&self, is_there: impl Fn(CellId) -> bool) -> Vec<CellId> {
        let cells = self.cells.iter().copied();
        cells.filter(|cell| !is_there(*cell)).collect()
    }

    fn bench(&self) -> Result<Bench, Failure> {
        let host = swept_host(&self.arguments.conditions.servers, self.config)?;
        Ok(Bench {
            store: open_store(self.config)?,
            host,
            interrupted: interrupt::flag()?,
        })
    }

    /// Counts cells that have no counts, as a separate run; nothing, and says why, where
    /// that cannot be done and time is sampled.
    fn count(&self, cells: &[CellId]) -> Result<Option<SessionEnd>, Failure> {
        let counting = counting_plan(self.plan, cells);
        let ready = deltabench_kinds::check_counted(&counting)
            .and_then(|()| Counter::find().map(drop))
            .and_then(|()| check_still_there(&counting));
        match ready {
            Err(problem) if self.arguments.sample => {
                say(&left_out(&problem));
                return Ok(None);
            }
            ready => ready.map_err(Failure::Refused)?,
        }
        let mut bench = self.bench()?;
        say(&format!(
            "{} has no counts of {}: counting them now",
            self.run,
            of_cells(cells)
        ));
        count_for(&mut bench, self.run, counting).map(Some)
    }

    /// Samples the time of cells of which it was not sampled, as a separate run.
    fn sample(&self, cells: &[CellId], wish: SamplesWish) -> Result<SessionEnd, Failure> {
        let benchmark = run_half(&self.plan.work);
        let sampling = samples(self.run, self.plan, cells, wish, benchmark);
        let sampling = sampling.map_err(Failure::Refused)?;
        check_still_there(&sampling).map_err(Failure::Refused)?;
        let mut bench = self.bench()?;
        check_fits(&sampling, &bench.host).map_err(Failure::Refused)?;
        let profile = sampling.observing.profile;
        let seconds = profile.map_or(0.0, |profile| f64::from(profile.milliseconds) / 1e3);
        say(&format!(
            "sampling the time of {}: {} restarts, {seconds:.1} s of each server in each",
            of_cells(cells),
            sampling.timing.blocks
        ));
        let library = library_of(&sampling)?;
        let known = bench.store.sampling_for(self.run).map_err(store_problem)?;
        let name = sample_name(self.run, &known);
        let measured = bench.measure_new(&sampling, &library, Some(name.clone()), false)?;
        if measured.end == SessionEnd::Interrupted {
            say(&format!(
                "`deltabench resume {name}` takes the other samples"
            ));
        }
        Ok(measured.end)
    }
}

fn of_cells(cells: &[CellId]) -> String {
    match cells.len() {
        1 => "this cell".to_owned(),
        several => format!("{several} cells"),
    }
}

/// What a run says now, and where its servers' time went.
fn read(run: &str, plan: &Plan, store: &Store) -> Result<(Comparison, Vec<SampledCell>), Problem> {
    let judged = Judged::of(run, plan, store)?;
    Ok((judged.standing(store)?, judged.sampled(store)?))
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
    let explained = explained(run, (plan, comparison, &[]), &store, &all, shape.lines)
        .map_err(Failure::Failed)?;
    let told = Told {
        explained,
        sampled: Vec::new(),
    };
    show(run, plan, &told, shape)
}

fn show(run: &str, plan: &Plan, told: &Told, shape: &Shape) -> Result<u8, Failure> {
    let Told { explained, sampled } = told;
    if explained.is_empty() && sampled.is_empty() {
        return Err(Failure::Failed(
            Problem::new(format!("{run} has nothing to explain"))
                .detail("instructions were not counted on both sides"),
        ));
    }
    let text = match shape.format {
        ExplainFormat::Text => {
            let counted = deltabench_report::explained_text(explained, plan, width());
            let time = deltabench_report::sampled_text(sampled, plan, width());
            let parts = [counted, time].into_iter().filter(|part| !part.is_empty());
            format!(
                "run {run}, base {}\n\n{}",
                deltabench_report::resolved(plan, plan.base()),
                parts.collect::<Vec<_>>().join("\n")
            )
        }
        ExplainFormat::Markdown => {
            let time = deltabench_report::sampled_markdown(sampled, plan);
            deltabench_report::explained_markdown(explained, plan) + &time
        }
        ExplainFormat::Json => deltabench_report::explained_json(run, (explained, sampled), plan),
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
