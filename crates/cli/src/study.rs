//! The report of several runs: the parts of an experiment, or runs of several hosts.

use crate::arguments::results::{By, Report};
use crate::config::Config;
use crate::console::{self, print_stdout, say, write_file};
use crate::failure::Failure;
use crate::joined::{self, Named};
use crate::output::analyse_this_hour;
use crate::replay::only_reported;
use crate::store::{open_lab, store_problem};
use crate::text::colour;
use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_compare::study::{Axis, Study, StudyTable};
use deltabench_model::exit;
use deltabench_model::problem::Problem;
use deltabench_report::{JsonVersion, StudyFormat, TerminalOptions, render_study, resolved};
use deltabench_site::{Loaded, place_unbegun, study_context, tables_of};
use deltabench_store::Found;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the names of a `report` stand for.
pub enum Wanted {
    /// One run, by its own report.
    Run(String),
    /// A bisection.
    Bisection(String),
    /// Runs of one or more labs, as a study.
    Study(Vec<(PathBuf, String)>),
}

/// What `deltabench report NAME…` asks for. `LAB:NAME` is a run of another lab.
///
/// Errors: a lab that is not there, a name that is none or several.
pub fn wanted(names: &[String], by: Option<By>, config: &Config) -> Result<Wanted, Failure> {
    let mut runs = Vec::new();
    let mut executions = 0;
    for name in names {
        let (lab, name) = lab_and_name(name, config);
        let store = open_lab(&lab)?;
        match store.find_any(name).map_err(Failure::Refused)? {
            Found::Run(run) => runs.push((lab, run)),
            Found::Bisection(name) if names.len() == 1 && lab == config.lab => {
                return Ok(Wanted::Bisection(name));
            }
            Found::Bisection(name) => {
                return Err(Failure::Refused(
                    Problem::new(format!(
                        "{name} is a bisection, and has a report of its own"
                    ))
                    .hint(format!("name it alone: `deltabench report {name}`")),
                ));
            }
            Found::Execution(_, parts) => {
                executions += 1;
                runs.extend(parts.into_iter().map(|run| (lab.clone(), run)));
            }
        }
    }
    match runs.as_slice() {
        [(lab, run)] if executions == 0 && by.is_none() && *lab == config.lab => {
            Ok(Wanted::Run(run.clone()))
        }
        _ => Ok(Wanted::Study(runs)),
    }
}

/// Splits `LAB:NAME`; without a lab it is the one of the options.
fn lab_and_name<'a>(text: &'a str, config: &Config) -> (PathBuf, &'a str) {
    match text.rsplit_once(':') {
        Some((lab, name)) if !lab.is_empty() => (PathBuf::from(lab), name),
        _ => (config.lab.clone(), text),
    }
}

/// `deltabench report` of a study.
pub fn report(runs: &[(PathBuf, String)], arguments: &Report) -> Result<u8, Failure> {
    if arguments.costs || arguments.delta.is_some() {
        return Err(Failure::Refused(
            Problem::new("--costs and --delta apply to one run")
                .detail(format!("you named {} runs", runs.len()))
                .hint("name one run; `deltabench list` shows them"),
        ));
    }
    let format = StudyFormat::try_from(arguments.form()).map_err(Failure::Refused)?;
    let loaded = load(runs, Vec::new(), arguments.base.as_deref())?;
    let mut study = tables(&loaded, arguments.by)?;
    study.notes.extend(rebased(&loaded));
    let options = TerminalOptions {
        width: console::width(),
        colour: arguments.out.is_none() && colour(),
        verbose: arguments.verbose,
    };
    let text = rendered(&study, &loaded, format, options);
    match &arguments.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(text.trim_end_matches('\n'))?,
    }
    Ok(exit_code(&study, &loaded))
}

/// Prints the tables of an execution and writes its page and its JSON; returns the exit code.
pub fn publish(
    execution: &str,
    runs: &[String],
    known: Vec<Loaded>,
    config: &Config,
) -> Result<u8, Failure> {
    let runs: Vec<(PathBuf, String)> = runs
        .iter()
        .map(|run| (config.lab.clone(), run.clone()))
        .collect();
    let loaded = load(&runs, known, None)?;
    let study = tables(&loaded, None)?;
    let options = TerminalOptions {
        width: console::width(),
        colour: colour(),
        verbose: false,
    };
    let text = rendered(&study, &loaded, StudyFormat::Text, options);
    print_stdout(text.trim_end_matches('\n'))?;
    for format in [StudyFormat::Html, StudyFormat::Json(JsonVersion::default())] {
        let path = config.lab.join(format!("{execution}.{}", format.word()));
        write_file(&path, &rendered(&study, &loaded, format, options))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(exit_code(&study, &loaded))
}

/// Loads these runs, but those that are known, relative to the base that is named, or to one that they have
/// in common. Of a run without that base other runs show the servers.
fn load(
    runs: &[(PathBuf, String)],
    known: Vec<Loaded>,
    base: Option<&str>,
) -> Result<Vec<Loaded>, Failure> {
    let mut known: BTreeMap<String, Loaded> = known
        .into_iter()
        .map(|one| (one.run.clone(), one))
        .collect();
    let mut named = Vec::new();
    for (lab, run) in runs {
        let plan = match known.get(run) {
            Some(known) => known.plan.clone(),
            None => {
                let plan = open_lab(lab)?.plan(run).map_err(store_problem)?;
                only_reported(run, &plan, "a study")?;
                plan
            }
        };
        named.push(Named {
            lab: lab.clone(),
            run: run.clone(),
            plan,
        });
    }
    let plans = joined::relative(&named, base).map_err(Failure::Refused)?;
    let mut loaded = Vec::new();
    for (one, relative) in named.iter().zip(plans) {
        loaded.push(match known.remove(&one.run) {
            Some(known) => known,
            None => {
                let store = open_lab(&one.lab)?;
                let is_elsewhere = relative.is_none();
                let plan = relative.unwrap_or_else(|| one.plan.clone());
                let analysed = analyse_this_hour(&one.run, &plan, &store)?;
                let found = Loaded::of(&one.lab, analysed, &store).map_err(Failure::Failed)?;
                Loaded {
                    is_elsewhere,
                    ..found
                }
            }
        });
    }
    joined::connect(&mut loaded, &named)?;
    place_unbegun(&mut loaded);
    Ok(loaded)
}

fn tables(loaded: &[Loaded], by: Option<By>) -> Result<Study, Failure> {
    let mut study = tables_of(loaded).map_err(Failure::Refused)?;
    let Some(by) = by else { return Ok(study) };
    let axis = Axis::from(by);
    study.tables.retain(|table| table.axis == axis);
    if study.tables.is_empty() {
        return Err(Failure::Refused(
            Problem::new(format!("nothing varies along {}", by.word()))
                .detail(format!("deltabench looked at {} runs", loaded.len()))
                .hint("leave out --by to see all tables"),
        ));
    }
    let kept: Vec<String> = study
        .tables
        .iter()
        .map(|table| table.title.clone())
        .collect();
    study.spreads.retain(|spread| kept.contains(&spread.table));
    Ok(study)
}

/// That the runs are relative to another server than they were planned for.
fn rebased(loaded: &[Loaded]) -> Vec<String> {
    let mut notes: Vec<String> = loaded
        .iter()
        .filter_map(|loaded| {
            let base = resolved(&loaded.plan, loaded.plan.base());
            let planned = loaded.planned_base.as_ref()?;
            Some(format!(
                "relative to {base}, chosen for this report; planned relative to {planned}, which \
                 decided when cells had enough blocks"
            ))
        })
        .collect();
    notes.sort();
    notes.dedup();
    notes
}

fn rendered(
    study: &Study,
    loaded: &[Loaded],
    format: StudyFormat,
    options: TerminalOptions,
) -> String {
    render_study(format, study, &study_context(loaded), options)
}

/// The exit code of a study by its tables and the codes of its runs.
fn exit_code(study: &Study, loaded: &[Loaded]) -> u8 {
    let codes: Vec<u8> = loaded
        .iter()
        .map(|loaded| deltabench_compare::exit_code(&loaded.comparison))
        .collect();
    code_of(&study.tables, &codes)
}

/// 1 if tables of throughput say that something is slower, 4 if all of it is unfit, 3 if something is open or
/// not measured yet, else 0. CPU per operation fails nothing, as in a run on its own; its verdicts are not
/// corrected for their number. What several loads say together counts, not what one of them said alone. A
/// study of servers on their own has no verdicts: the worst code of its runs counts.
fn code_of(tables: &[StudyTable], codes: &[u8]) -> u8 {
    let judged =
        |table: &&StudyTable| table.axis == Axis::Servers && table.metric == Metric::Throughput;
    let verdicts: Vec<Verdict> = tables
        .iter()
        .filter(judged)
        .flat_map(|table| &table.rows)
        .flat_map(|row| row.figures.iter().flatten())
        .filter_map(|figure| figure.verdict)
        .collect();
    if verdicts.is_empty() {
        let worst_first = [
            exit::REGRESSION,
            exit::NOT_MEASURED,
            exit::UNFIT,
            exit::INCONCLUSIVE,
        ];
        let worst = worst_first.into_iter().find(|code| codes.contains(code));
        return worst.unwrap_or(exit::NO_REGRESSION);
    }
    let any = |verdict: Verdict| verdicts.contains(&verdict);
    let unfinished = codes.contains(&exit::NOT_MEASURED);
    if any(Verdict::Regression) {
        exit::REGRESSION
    } else if verdicts.iter().all(|verdict| *verdict == Verdict::Unfit) {
        exit::UNFIT
    } else if unfinished || any(Verdict::Inconclusive) || any(Verdict::Unfit) {
        exit::INCONCLUSIVE
    } else {
        exit::NO_REGRESSION
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::comparison::Ratio;
    use deltabench_compare::study::{Column, Figure, StudyRow};
    use deltabench_model::bisection::{BISECTION_FORMAT, Question};
    use deltabench_model::plan::Group;

    fn table(metric: Metric, verdict: Verdict) -> StudyTable {
        let figure = Figure {
            ratio: Ratio {
                estimate: 1.0,
                ci95: None,
                ci90: None,
            },
            absolute: 1.0,
            relative: None,
            verdict: Some(verdict),
            repetitions: 1,
            efficiency: None,
            cpu: None,
            switches: None,
            per_cost: None,
        };
        StudyTable {
            axis: Axis::Servers,
            axis_name: "server".to_owned(),
            title: String::new(),
            metric,
            worker: "client",
            coordinates: Vec::new(),
            columns: Vec::<Column>::new(),
            base: 0,
            of_ratios: false,
            rows: vec![StudyRow {
                name: "point-query".to_owned(),
                group: Group::Point,
                figures: vec![None, Some(figure)],
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn more_cpu_per_operation_alone_is_no_regression_of_a_study() {
        let code = |speed, cpu| {
            let tables = [
                table(Metric::Throughput, speed),
                table(Metric::ServerCpuPerOperation, cpu),
            ];
            code_of(&tables, &[3])
        };
        assert_eq!(code(Verdict::Inconclusive, Verdict::Regression), 3);
        assert_eq!(code(Verdict::NoChange, Verdict::Regression), 0);
        assert_eq!(code(Verdict::NoChange, Verdict::Inconclusive), 0);
        assert_eq!(code(Verdict::Regression, Verdict::NoChange), 1);
        assert_eq!(code(Verdict::Unfit, Verdict::NoChange), 4);
        assert_eq!(code_of(&[], &[0, 3]), 3);
    }

    #[test]
    fn a_bisection_is_found_as_one_whatever_is_asked_of_its_report() {
        let lab = tempfile::tempdir().unwrap();
        let config = Config {
            lab: lab.path().to_owned(),
            cache: lab.path().to_owned(),
            sources: deltabench_acquire::Sources::default(),
        };
        let question = Question {
            format: BISECTION_FORMAT.0.to_owned(),
            version: BISECTION_FORMAT.1,
            points: Vec::new(),
            base_alone: None,
            plan: deltabench_testkit::small_run::plan(),
        };
        let mut store = deltabench_store::Store::open(lab.path()).unwrap();
        store.create_bisection("bisect-a", &question, 0).unwrap();
        for by in [None, Some(By::Part)] {
            let found = wanted(&["bisect-a".to_owned()], by, &config).ok();
            assert!(matches!(found, Some(Wanted::Bisection(_))), "{by:?}");
        }
    }
}
