//! `deltabench explain`: where in the server the difference of a cell went.

use crate::afterwards::{ROWS, count_for, left_out, plan_to_count};
use crate::arguments::conditions::{AS_IS, CacheWord, Checksums, JSON_VERSION, TransportWord};
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
use crate::replay::only_reported;
use crate::request::{first_given, time};
use crate::store::{open, open_store, store_problem};
use crate::targets::hold_binaries;
use crate::{count, interrupt};
use deltabench_compare::comparison::Comparison;
use deltabench_kinds::run_half;
use deltabench_lab::{Analysed, EXPLAINED, Judged, changed, explained, sample_name};
use deltabench_model::exit;
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::SampledCell;
use deltabench_model::units::index;
use deltabench_observe::profile::may_sample;
use deltabench_run::planning::{SamplesWish, samples};
use deltabench_run::session::SessionEnd;
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
    only_reported(&run, &plan, "`explain`")?;
    let asked = Asked {
        cells: cells(&run, &plan, &store, &arguments.cells)?,
        run: &run,
        plan: &plan,
        arguments,
        config,
    };
    let told = asked.told(&store, shape.lines)?;
    drop(store);
    let missing = asked.missing(&told, wish)?;
    if missing.is_empty() {
        return show(&run, &plan, &told, shape);
    }
    let done = asked.carry_out(missing)?;
    if done.code == exit::INTERRUPTED && !done.is_fresh {
        return Ok(done.code);
    }
    let store = open(config)?;
    let told = asked.told(&store, shape.lines)?;
    rewrite(&run, &plan, &store, config)?;
    // Why there is nothing is said already.
    if done.code != 0 && told.is_empty() {
        return Ok(done.code);
    }
    show(&run, &plan, &told, shape)?;
    Ok(done.code)
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

impl Told {
    fn is_empty(&self) -> bool {
        self.explained.is_empty() && self.sampled.is_empty()
    }
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

    /// Plans what is missing. What the plan alone shows is refused here, before minutes of counting. A count
    /// that cannot be done is left out where time is sampled, and a line says why.
    fn missing(&self, told: &Told, wish: Option<SamplesWish>) -> Result<Missing, Failure> {
        let without = |is_there: &dyn Fn(CellId) -> bool| -> Vec<CellId> {
            let cells = self.cells.iter().copied();
            cells.filter(|cell| !is_there(*cell)).collect()
        };
        let uncounted = without(&|cell| told.explained.iter().any(|one| one.cell == cell));
        let unsampled = without(&|cell| told.sampled.iter().any(|one| one.cell == cell));
        let sampling = match wish.filter(|_| !unsampled.is_empty()) {
            Some(wish) => Some(self.sampling(&unsampled, wish).map_err(Failure::Refused)?),
            None => None,
        };
        let counting = match uncounted.is_empty() {
            true => None,
            false => self.counting(&uncounted)?,
        };
        Ok(Missing { counting, sampling })
    }

    /// The plan that counts cells.
    fn counting(&self, cells: &[CellId]) -> Result<Option<Plan>, Failure> {
        match plan_to_count(self.plan, cells) {
            Ok(counting) => Ok(Some(counting)),
            Err(problem) if self.arguments.sample => {
                say(&left_out(&problem));
                Ok(None)
            }
            Err(problem) => Err(Failure::Refused(problem)),
        }
    }

    /// The plan that samples the time of cells, if their servers are still there.
    fn sampling(&self, cells: &[CellId], wish: SamplesWish) -> Result<Plan, Problem> {
        let benchmark = run_half(&self.plan.work);
        let sampling = samples(self.run, self.plan, cells, wish, benchmark)?;
        hold_binaries(&sampling)?;
        Ok(sampling)
    }

    /// Counts, then samples, also if the count fails. What fails is said at once.
    fn carry_out(&self, missing: Missing) -> Result<Done, Failure> {
        let host = swept_host(&self.arguments.conditions.servers, self.config)?;
        if let Some(sampling) = &missing.sampling {
            check_fits(sampling, &host).map_err(Failure::Refused)?;
        }
        let mut bench = Bench {
            store: open_store(self.config)?,
            host,
            interrupted: interrupt::flag()?,
        };
        let mut done = Done::default();
        if let Some(counting) = missing.counting {
            done.add(self.count(&mut bench, counting));
        }
        if let Some(sampling) = missing.sampling.filter(|_| done.code != exit::INTERRUPTED) {
            done.add(self.sample(&mut bench, &sampling));
        }
        Ok(done)
    }

    /// Counts cells that have no counts, as a separate run.
    fn count(&self, bench: &mut Bench, counting: Plan) -> Result<SessionEnd, Failure> {
        say(&format!(
            "{} has no counts of {}: counting them now",
            self.run,
            of_cells(counting.cells.len())
        ));
        let end = count_for(bench, self.run, counting)?;
        if end == SessionEnd::Interrupted {
            say(&format!("interrupted; `{}` counts again", self.command()));
        }
        Ok(end)
    }

    /// The command that was typed, as far as it says what is measured.
    fn command(&self) -> String {
        let mut words = format!("deltabench explain {}", self.run);
        for cell in &self.arguments.cells {
            words += &format!(" --cell {cell}");
        }
        if self.arguments.sample {
            let Explain { rate, budget, .. } = self.arguments;
            words += &format!(" --sample --rate {rate} --budget {budget}");
        }
        if self.arguments.force {
            words += " --force";
        }
        words
    }

    /// Samples the time of cells of which it was not sampled, as a separate run.
    fn sample(&self, bench: &mut Bench, sampling: &Plan) -> Result<SessionEnd, Failure> {
        let profile = sampling.observing.profile;
        let seconds = profile.map_or(0.0, |profile| f64::from(profile.milliseconds) / 1e3);
        say(&format!(
            "sampling the time of {}: {} restarts, {seconds:.1} s of each server in each",
            of_cells(sampling.cells.len()),
            sampling.timing.blocks
        ));
        let library = library_of(sampling)?;
        let known = bench.store.sampling_for(self.run).map_err(store_problem)?;
        let name = sample_name(self.run, &known);
        let measured = bench.measure_new(sampling, &library, Some(name.clone()), false)?;
        if measured.end == SessionEnd::Interrupted {
            say(&format!(
                "interrupted; `deltabench resume {name}` takes the other samples"
            ));
        }
        Ok(measured.end)
    }
}

/// What cells of a run lack, as plans that can be carried out here.
struct Missing {
    counting: Option<Plan>,
    sampling: Option<Plan>,
}

impl Missing {
    fn is_empty(&self) -> bool {
        self.counting.is_none() && self.sampling.is_none()
    }
}

/// How far counting and sampling came.
#[derive(Debug, Default, PartialEq)]
struct Done {
    /// Whether there is something new.
    is_fresh: bool,
    /// The exit code: that of the first failure, or that the user wants to stop.
    code: u8,
}

impl Done {
    /// Adds how one of them ended; a failure is said at once.
    fn add(&mut self, end: Result<SessionEnd, Failure>) {
        match end {
            Ok(SessionEnd::Finished) => self.is_fresh = true,
            Ok(SessionEnd::Interrupted) => self.code = exit::INTERRUPTED,
            Err(failure) => {
                say(&failure.problem().to_string());
                if self.code == 0 {
                    self.code = failure.code();
                }
            }
        }
    }
}

fn of_cells(cells: usize) -> String {
    match cells {
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
    first_given(&[
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
        (limits.limits_optional, "--limits-optional"),
        (conditions.no_counters, "--no-counters"),
        (output.json.is_some(), "--json"),
        (output.html.is_some(), "--html"),
        (output.json_version != JSON_VERSION, "--json-version"),
        (output.verbose, "--verbose"),
    ])
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
    if told.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_code_and_hides_nothing_new() {
        let of = |ends: Vec<Result<SessionEnd, Failure>>| {
            let mut done = Done::default();
            for end in ends {
                done.add(end);
            }
            (done.is_fresh, done.code)
        };
        let failed = || Err(Failure::Failed(Problem::new("no")));
        let refused = || Err(Failure::Refused(Problem::new("no")));
        let (finished, stopped) = (|| Ok(SessionEnd::Finished), || Ok(SessionEnd::Interrupted));
        assert_eq!(of(vec![finished(), finished()]), (true, 0));
        assert_eq!(of(vec![failed(), finished()]), (true, exit::NOT_MEASURED));
        assert_eq!(of(vec![finished(), refused()]), (true, 2));
        assert_eq!(of(vec![failed(), refused()]), (false, exit::NOT_MEASURED));
        assert_eq!(of(vec![finished(), stopped()]), (true, exit::INTERRUPTED));
        assert_eq!(of(vec![stopped()]), (false, exit::INTERRUPTED));
    }
}
