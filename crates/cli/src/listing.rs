//! `report`, `notes`, `list`, `targets` and `fetch`: what is there, without measuring.

use crate::arguments::catalogue::{Fetch, Targets};
use crate::arguments::conditions::JSON_VERSION;
use crate::arguments::results::{Format, Notes, Report};
use crate::bisect;
use crate::config::Config;
use crate::console::{self, print_stdout, say, write_file};
use crate::failure::Failure;
use crate::invalidate::mark;
use crate::output::analyse_run;
use crate::rebased::relative_to;
use crate::replay;
use crate::request::{first_given, percent};
use crate::store::{measured_now, open, state_word, store_problem};
use crate::study::{self, Wanted};
use crate::targets::resolve;
use crate::text::colour;
use deltabench_acquire::{Availability, Cache};
use deltabench_kinds::shown::WithProgress;
use deltabench_lab::Analysed;

use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_report::words::plural;
use deltabench_report::{DeltaChosen, TerminalOptions};
use deltabench_run::planning;
use deltabench_store::{Found, RunState, RunSummary, STOPPED};
use std::collections::HashSet;

/// `deltabench report`.
pub fn report(arguments: &Report, config: &Config) -> Result<u8, Failure> {
    if arguments.costs && !arguments.format.is_text() {
        return Err(Failure::Refused(
            Problem::new("--costs is a table for the terminal")
                .detail("every other form of the report contains the costs")
                .hint("leave out --costs, or --format"),
        ));
    }
    if arguments.json_version != JSON_VERSION && !arguments.format.is_json() {
        return Err(Failure::Refused(
            Problem::new("--json-version is for the JSON report")
                .hint("leave out --json-version, or write --format json"),
        ));
    }
    let with_progress = with_progress(arguments).map_err(Failure::Refused)?;
    if let Some(path) = &arguments.out {
        console::check_writable(path).map_err(Failure::Refused)?;
    }
    if let [name] = arguments.runs.as_slice()
        && replay::is_in_lab(name, config)
    {
        no_other_question(arguments, "a replay")?;
        return replay::report(name, arguments, config);
    }
    let run = match study::wanted(&arguments.runs, arguments.by, config)? {
        Wanted::Run(run) => run,
        Wanted::Bisection(name) => {
            no_other_question(arguments, "a bisection")?;
            return bisect::report(&name, arguments, config);
        }
        Wanted::Study(runs) => return study::report(&runs, arguments),
    };
    let store = open(config)?;
    let mut plan = store.plan(&run).map_err(store_problem)?;
    if plan.work.replay().is_some() {
        no_other_question(arguments, "a replay")?;
        return replay::report(&run, arguments, config);
    }
    if let Format::OfKind(form) = arguments.format {
        (form.check)(&plan).map_err(Failure::Refused)?;
    }
    let delta_chosen = judge_by(&mut plan, arguments).map_err(Failure::Refused)?;
    let mut analysed = analyse_run(&run, &plan, &store)?;
    analysed.context.delta_chosen = delta_chosen;
    let Analysed {
        comparison,
        context,
        ..
    } = &analysed;
    let options = TerminalOptions {
        width: console::width(),
        colour: arguments.out.is_none() && colour(),
        verbose: arguments.verbose,
    };
    let text = if arguments.costs {
        deltabench_report::costs_table(comparison, &plan, context, options)
    } else if let Some((write, seconds)) = with_progress {
        write(&plan, &context.results, seconds)
    } else {
        let format = arguments.form();
        deltabench_report::render(format, comparison, &plan, context, options)
    };
    match &arguments.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(text.trim_end_matches('\n'))?,
    }
    Ok(deltabench_compare::exit_code(comparison))
}

/// Puts the base and the δ that were chosen for the report into the plan; returns the δ.
///
/// Errors: a target that the run does not have, a δ that is none.
fn judge_by(plan: &mut Plan, arguments: &Report) -> Result<Option<DeltaChosen>, Problem> {
    if let Some(base) = &arguments.base {
        *plan = relative_to(plan, base)?;
    }
    let Some(delta) = arguments.delta.as_deref() else {
        return Ok(None);
    };
    let planned = (!plan.delta_from_noise).then_some(plan.delta);
    let chosen = percent(delta)?;
    planning::check_share("δ", "--delta", chosen)?;
    plan.delta = chosen;
    plan.delta_from_noise = false;
    Ok(Some(DeltaChosen { chosen, planned }))
}

/// Errors: another base, or another way of judging, for what has one question only.
fn no_other_question(arguments: &Report, what: &str) -> Result<(), Failure> {
    if arguments.base.is_some() {
        return Err(Failure::Refused(
            Problem::new("--base is for runs and studies")
                .detail(format!(
                    "this is {what}: its sides are those that you named"
                ))
                .hint("leave out --base"),
        ));
    }
    let of_runs = [
        (arguments.delta.is_some(), "--delta"),
        (arguments.costs, "--costs"),
        (arguments.by.is_some(), "--by"),
    ];
    match first_given(&of_runs) {
        None => Ok(()),
        Some(option) => Err(Failure::Refused(
            Problem::new(format!("{option} is for the report of a run"))
                .detail(format!("this is {what}"))
                .hint(format!("leave out {option}")),
        )),
    }
}

/// `deltabench notes`.
pub fn notes(arguments: &Notes, config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let found = store.find_any(&arguments.run).map_err(Failure::Refused)?;
    let runs = match found {
        Found::Run(run) => vec![run],
        Found::Execution(_, runs) => runs,
        Found::Bisection(name) => {
            return Err(Failure::Refused(
                Problem::new(format!("{name} is a bisection"))
                    .detail("its report says all that there is to say")
                    .hint(format!("`deltabench report {name}`")),
            ));
        }
    };
    let mut texts = Vec::new();
    for run in runs {
        let plan = store.plan(&run).map_err(store_problem)?;
        replay::only_reported(&run, &plan, "`notes`")?;
        let Analysed {
            comparison,
            context,
            ..
        } = analyse_run(&run, &plan, &store)?;
        let width = console::width();
        texts.push(deltabench_report::notes_text(
            &comparison,
            &plan,
            &context,
            width,
        ));
    }
    print_stdout(texts.join("\n").trim_end_matches('\n'))?;
    Ok(0)
}

/// What writes progress lines, and for how many seconds each; absent where none were asked for.
///
/// Errors: progress lines in a form that has none, or for no time.
fn with_progress(arguments: &Report) -> Result<Option<(WithProgress, f64)>, Problem> {
    let Some(seconds) = arguments.progress else {
        return Ok(None);
    };
    let form = match arguments.format {
        Format::OfKind(form) => form.with_progress,
        Format::House(_) => None,
    };
    let Some(write) = form else {
        return Err(Problem::new("--progress is for pgbench's own form")
            .detail("the page already shows each cell over time")
            .hint("add --format pgbench, or leave out --progress"));
    };
    if !(seconds.is_finite() && seconds > 0.0) {
        return Err(Problem::new(format!("--progress {seconds} is not a time"))
            .hint("give seconds above 0, for example --progress 5"));
    }
    Ok(Some((write, seconds)))
}

/// `deltabench list`.
pub fn runs(config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let mut lines = Vec::new();
    let archived = store.archived_runs().map_err(store_problem)?;
    let measured = measured_now(&store)?;
    for run in store.runs().map_err(store_problem)? {
        let withdrawn = store.invalidations(&run.run).map_err(store_problem)?;
        let sides = match run.candidates.as_slice() {
            [] => run.base.clone(),
            candidates => format!("{} vs {}", run.base, candidates.join(", ")),
        };
        let state = state_word(&run.run, run.state, measured.as_deref());
        lines.push(format!(
            "{}  {state:<11}  {sides}  {}  {}{}{}{}{}",
            run.run,
            plural(run.cells, "cell"),
            blocks(&run),
            session(&run),
            match state == STOPPED && !run.counts {
                true => next(&run),
                false => String::new(),
            },
            if archived.contains(&run.run) {
                "  archived"
            } else {
                ""
            },
            mark(&withdrawn)
        ));
    }
    for name in store.bisections().map_err(store_problem)? {
        lines.push(bisect::line(
            &store.bisection(&name).map_err(store_problem)?,
        ));
    }
    if lines.is_empty() {
        say(&format!("no runs in {}", config.lab.display()));
        return Ok(0);
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

/// `, session 2 of 4`, where a comparison has several.
fn session(run: &RunSummary) -> String {
    run.session.map_or_else(String::new, |(number, of)| {
        format!(", session {number} of {of}")
    })
}

/// How a run goes on that was killed.
fn next(run: &RunSummary) -> String {
    let name = run.execution.as_deref().unwrap_or(&run.run);
    format!(", `deltabench resume {name}` continues it")
}

/// How far a run has come, in blocks that all cells have.
fn blocks(run: &RunSummary) -> String {
    if run.counts {
        return "a count".to_owned();
    }
    let (done, planned) = (run.blocks_done, run.blocks_planned);
    if run.state == RunState::Finished && done < u64::from(planned) {
        return format!("finished after {done} of at most {planned} blocks");
    }
    format!("{done}/{planned} blocks")
}

/// `deltabench targets`.
pub fn targets(arguments: &Targets, config: &Config) -> Result<u8, Failure> {
    let cache = Cache::open(config.cache.clone()).map_err(Failure::Refused)?;
    let listed = deltabench_acquire::list(&cache, &config.sources).map_err(Failure::Failed)?;
    let mut lines = Vec::new();
    let mut series_seen = HashSet::new();
    // Each product's list is newest first, so the first one of a series is the one that `postgres:MAJOR` and
    // `rocksdb:MAJOR` mean.
    for target in &listed {
        let (how, fetchable) = match &target.availability {
            Availability::Fetchable => ("prebuilt".to_owned(), true),
            Availability::Cached(place) => {
                (format!("prebuilt, cached in {}", place.display()), false)
            }
            Availability::Installed(bin) => (format!("installed in {}", bin.display()), false),
            Availability::Built(bin) => (format!("built, in {}", bin.display()), false),
        };
        let series = target.target.parse::<TargetSpec>();
        let series = series.map(|spec| spec.series());
        let newest = series.is_ok_and(|series| series_seen.insert(series));
        if arguments.all || newest || !fetchable {
            lines.push(format!(
                "{:<20} {:<10} {how}",
                target.target, target.version
            ));
        }
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

/// `deltabench fetch`.
pub fn fetch(arguments: &Fetch, config: &Config) -> Result<u8, Failure> {
    let specs = arguments
        .targets
        .iter()
        .map(|text| text.parse())
        .collect::<Result<Vec<_>, _>>();
    let installations =
        resolve(&specs.map_err(Failure::Refused)?, config).map_err(Failure::Refused)?;
    let lines: Vec<String> = installations
        .iter()
        .map(|found| {
            format!(
                "{}\t{}\t{}",
                found.resolved,
                found.bin_dir.display(),
                found.binary_sha256
            )
        })
        .collect();
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        /// Its options
        #[command(flatten)]
        report: Report,
    }

    #[test]
    fn options_that_judge_a_run_are_refused_for_what_has_one_question() {
        let refused = |option: &str| {
            let words = ["report", "replay-1"].into_iter().chain(option.split(' '));
            let words = words.filter(|word| !word.is_empty());
            let arguments = Alone::try_parse_from(words).unwrap().report;
            no_other_question(&arguments, "a replay")
        };
        assert!(refused("").is_ok());
        for option in ["--base x", "--delta 1%", "--costs", "--by part"] {
            let failure = refused(option).unwrap_err();
            let name = option.split(' ').next().unwrap();
            assert_eq!(failure.code(), 2, "{option}");
            let hint = failure.problem().hint.clone().unwrap();
            assert_eq!(hint, format!("leave out {name}"));
        }
    }

    #[test]
    fn a_count_has_no_blocks_and_a_stopped_run_says_how_it_goes_on() {
        let run = RunSummary {
            run: "r".to_owned(),
            state: RunState::Finished,
            started_unix_ms: 0,
            state_unix_ms: 0,
            base: String::new(),
            candidates: Vec::new(),
            cells: 1,
            blocks_done: 3,
            blocks_planned: 8,
            visits_done: 3,
            counts: false,
            execution: None,
            session: None,
        };
        assert_eq!(blocks(&run), "finished after 3 of at most 8 blocks");
        assert_eq!(next(&run), ", `deltabench resume r` continues it");
        let part = RunSummary {
            execution: Some("e".to_owned()),
            ..run.clone()
        };
        assert_eq!(next(&part), ", `deltabench resume e` continues it");
        let counts = RunSummary {
            counts: true,
            ..run
        };
        assert_eq!(blocks(&counts), "a count");
    }
}
