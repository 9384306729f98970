//! `deltabench calibrate`: runs whose truth is known, carried out and shown.

use crate::arguments::selfcheck::CalibrateArguments;
use crate::bench::Bench;
use crate::clock::{now, run_name, seed_from_clock};
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_json};
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::interrupt;
use crate::request::{percent, small, time};
use crate::store::open_store;
use crate::targets::resolve_servers;
use crate::text::{paragraph, table};
use deltabench_compare::comparison::Comparison;
use deltabench_kinds::run_half;
use deltabench_model::exit;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::{micros, to_f64};
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_selfcheck::calibrate::{
    Calibration, CalibrationRequest, CalibrationRun, INJECTABLE, Outcome, Sizes, Tally, Trial,
    calibration_json, share_interval, tally,
};
use deltabench_workload::Library;

/// Widest line.
const WIDEST: usize = 100;

/// Carries out all runs and prints what came of them; interrupted after some runs, it counts these.
pub fn calibrate(arguments: &CalibrateArguments, config: &Config) -> Result<u8, Failure> {
    let checked = checked(arguments).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    calibration_request(arguments, (checked.blocks, checked.seed))
        .and_then(|request| run_half(&request.work).check(&request, &library))
        .map_err(Failure::Refused)?;
    let mut calibration = Calibration::new(checked);
    let spec = arguments.target.parse().map_err(Failure::Refused)?;
    let found = resolve_servers(&[spec], config).map_err(Failure::Refused)?;
    let Some(target) = found.into_iter().next() else {
        return Err(Failure::Refused(Problem::new("no target given")));
    };
    let target = ServerWish::plain(target);
    let mut bench = Bench {
        host: swept_host(&arguments.servers, config)?,
        store: open_store(config)?,
        interrupted: interrupt::flag()?,
    };
    let mut interrupted = false;
    while let Some(run) = calibration.next_run() {
        let request = calibration_request(arguments, (run.blocks, run.seed));
        let request = request.map_err(Failure::Refused)?;
        let Some((plan, comparison)) = measured(&mut bench, request, &run, &target, &library)?
        else {
            interrupted = true;
            break;
        };
        let trials = calibration.take(&run, &plan, &comparison);
        for trial in trials.map_err(Failure::Failed)? {
            say(&trial_line(trial, arguments.runs));
        }
        if let (0, Some(burn)) = (run.number, calibration.outcome().and_then(|it| it.burn_ns)) {
            say(&format!(
                "a packet costs the candidate {:.2} us more",
                micros(burn)
            ));
        }
    }
    if let Some(outcome) = calibration.outcome() {
        publish(arguments, &outcome)?;
    }
    Ok(if interrupted { exit::INTERRUPTED } else { 0 })
}

/// What to carry out.
///
/// Errors: no runs, a share that cannot be read or injected, a file that cannot be written.
fn checked(arguments: &CalibrateArguments) -> Result<CalibrationRequest, Problem> {
    if arguments.runs == 0 {
        return Err(Problem::new("zero runs measure nothing").hint("write for example --runs 10"));
    }
    if let Some(path) = arguments.json.as_ref().filter(|path| !is_stdout(path)) {
        check_writable(path)?;
    }
    Ok(CalibrationRequest {
        runs: arguments.runs,
        share: arguments.inject.as_deref().map(share).transpose()?,
        blocks: arguments.blocks,
        seed: arguments.seed.unwrap_or_else(seed_from_clock),
    })
}

/// The share to inject.
fn share(text: &str) -> Result<f64, Problem> {
    let share = percent(text).map_err(|problem| problem.hint("write for example --inject 3%"))?;
    if INJECTABLE.contains(&share) {
        return Ok(share);
    }
    Err(
        Problem::new(format!("cannot inject `{text}`")).hint(format!(
            "--inject takes {} % to {} %",
            100.0 * INJECTABLE.start(),
            100.0 * INJECTABLE.end()
        )),
    )
}

/// The request of one run: a target against itself, one client.
///
/// Errors: a percentage or time that cannot be read.
fn calibration_request(
    arguments: &CalibrateArguments,
    (blocks, seed): (u32, u64),
) -> Result<Request, Problem> {
    let mut request = small(arguments.only.clone(), arguments.rows, blocks, seed);
    request.timing.deadline_seconds = arguments.budget.as_deref().map(time).transpose()?;
    request.delta = arguments.delta.as_deref().map(percent).transpose()?;
    Ok(request)
}

/// A run, carried out; `None` when the user wants to stop.
fn measured(
    bench: &mut Bench,
    request: Request,
    run: &CalibrationRun,
    target: &ServerWish,
    library: &Library,
) -> Result<Option<(Plan, Comparison)>, Failure> {
    let kind = run_half(&request.work);
    let sides = (target, std::slice::from_ref(target));
    let mut plan = planning::plan(request, kind, sides, library).map_err(Failure::Refused)?;
    run.burden(&mut plan);
    check_fits(&plan, &bench.host).map_err(Failure::Refused)?;
    let name = format!("{}-{}", run_name(now().0, plan.seed), run.number);
    let measured = bench.measure_new(&plan, library, Some(name), false)?;
    Ok(
        (measured.end != SessionEnd::Interrupted)
            .then(|| (plan, measured.judged.into_comparison())),
    )
}

fn publish(arguments: &CalibrateArguments, outcome: &Outcome<'_>) -> Result<(), Failure> {
    let lines = page(&arguments.target, outcome, width().min(WIDEST)).join("\n");
    let json = calibration_json(&arguments.target, outcome);
    match &arguments.json {
        Some(path) if is_stdout(path) => say(&lines),
        _ => print_stdout(&lines)?,
    }
    match &arguments.json {
        Some(path) => write_json(path, &json),
        None => Ok(()),
    }
}

fn trial_line(trial: &Trial, runs: u32) -> String {
    let size = &trial.throughput;
    let interval = size.ci95.map_or_else(String::new, |(low, high)| {
        format!(" [{}, {}]", change(low), change(high))
    });
    format!(
        "run {} of {runs}: {}: {}, throughput {}{interval}, true value {}",
        trial.run,
        trial.workload,
        trial.verdict.word(),
        change(size.estimate),
        change(size.truth)
    )
}

/// A ratio as a change in percent.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    // No minus sign before what is printed as zero.
    let shown = if percent.abs() < 0.005 { 0.0 } else { percent };
    format!("{shown:+.2} %").replace('-', "−")
}

/// The page for the terminal.
fn page(target: &str, outcome: &Outcome<'_>, width: usize) -> Vec<String> {
    let runs = outcome.runs();
    let what = match (outcome.share, outcome.burn_ns) {
        (Some(share), Some(burn)) => format!(
            "{runs} runs of {target} against itself, slowed down by {:.1} % ({:.2} us of CPU for each \
             packet)",
            100.0 * share,
            micros(burn)
        ),
        _ => format!("{runs} runs of {target} against itself"),
    };
    let mut lines = paragraph("", &what, width);
    lines.push(String::new());
    if outcome.trials.is_empty() {
        lines.push("no cell was measured".to_owned());
        return lines;
    }
    let mut rows = vec![
        ["workload", "cells", "slower", "faster", "equal", "open"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut named: Vec<(&str, Tally)> = outcome
        .workloads()
        .into_iter()
        .map(|name| (name, outcome.of(name)))
        .collect();
    let all = tally(outcome.trials.iter());
    if named.len() > 1 {
        named.push(("all", all.clone()));
    }
    rows.extend(
        named
            .iter()
            .map(|(name, counted)| verdict_row(name, counted)),
    );
    lines.extend(table(&rows));
    lines.push(String::new());
    let head = ["95 % intervals", "true", "estimated", "has true value"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, counted) in &named {
        rows.extend(size_row(&format!("{name}, throughput"), counted.throughput));
        rows.extend(size_row(&format!("{name}, CPU/op"), counted.server_cpu));
    }
    lines.extend(table(&rows));
    lines.push(String::new());
    lines.extend(paragraph("", &conclusion(outcome.share, &all), width));
    if outcome.share.is_some() && all.contended > 0 {
        let text = format!(
            "other load disturbed most rounds of {} of {} cells: there a burn costs more throughput \
             than its length, so compare only CPU/op with the true value",
            all.contended, all.trials
        );
        lines.extend(paragraph("", &text, width));
    }
    lines
}

fn verdict_row(name: &str, counted: &Tally) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(
        [
            counted.trials,
            counted.regressions,
            counted.improvements,
            counted.no_change,
            counted.open,
        ]
        .map(|number| number.to_string()),
    );
    row
}

fn size_row(name: &str, sizes: Option<Sizes>) -> Option<Vec<String>> {
    let sizes = sizes?;
    Some(vec![
        name.to_owned(),
        change(sizes.truth),
        change(sizes.estimate),
        format!("{} of {}", sizes.covered, sizes.intervals),
    ])
}

fn conclusion(share: Option<f64>, all: &Tally) -> String {
    let (what, found) = match share {
        Some(_) => ("detected", all.regressions),
        None => ("false alarms", all.regressions + all.improvements),
    };
    let (low, high) = share_interval(found, all.trials);
    let mut text = format!(
        "{what}: {found} of {} cells, {:.0} % (95 % interval {:.1} % to {:.1} %)",
        all.trials,
        100.0 * to_f64(found) / to_f64(all.trials.max(1)),
        100.0 * low,
        100.0 * high
    );
    if share.is_some() && all.improvements > 0 {
        text.push_str(&format!("; called faster: {}", all.improvements));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::conditions::{HugePagesWord, Servers};
    use deltabench_compare::comparison::Verdict;
    use deltabench_selfcheck::calibrate::Size;

    fn trial(run: u32, workload: &str, verdict: Verdict, truth: f64, estimate: f64) -> Trial {
        Trial {
            run,
            workload: workload.to_owned(),
            verdict,
            throughput: Size {
                truth,
                estimate,
                ci95: Some((estimate - 0.008, estimate + 0.008)),
            },
            server_cpu: Some(Size {
                truth: 1.0 / truth,
                estimate: 1.0 / estimate,
                ci95: Some((1.0 / estimate - 0.004, 1.0 / estimate + 0.004)),
            }),
            contended: false,
        }
    }

    #[test]
    fn the_page_holds_detection_sizes_and_coverage() {
        let trials = [
            trial(1, "point-query", Verdict::Regression, 0.97, 0.968),
            trial(2, "point-query", Verdict::Regression, 0.97, 0.973),
            trial(3, "point-query", Verdict::Inconclusive, 0.97, 0.985),
        ];
        let outcome = Outcome {
            share: Some(0.03),
            burn_ns: Some(1270),
            trials: &trials,
        };
        let lines = page("postgres:18", &outcome, 100);
        for wanted in [
            "3 runs of postgres:18 against itself, slowed down by 3.0 % (1.27 us of CPU for each packet)",
            "workload     cells  slower  faster  equal  open",
            "point-query      3       2       0      0     1",
            "point-query, throughput  −3.00 %    −2.47 %          2 of 3",
            "point-query, CPU/op      +3.09 %    +2.53 %          2 of 3",
            "detected: 2 of 3 cells, 67 % (95 % interval 9.4 % to 99.2 %)",
        ] {
            assert!(
                lines.iter().any(|line| line == wanted),
                "{wanted}: {lines:#?}"
            );
        }
        assert!(!lines.iter().any(|line| line.starts_with("other load")));
        let disturbed = trials.clone().map(|trial| Trial {
            contended: true,
            ..trial
        });
        let outcome_disturbed = Outcome {
            trials: &disturbed,
            ..outcome
        };
        let text = page("postgres:18", &outcome_disturbed, 200).join("\n");
        assert!(
            text.contains("disturbed most rounds of 3 of 3 cells"),
            "{text}"
        );
        let value: serde_json::Value = calibration_json("postgres:18", &outcome);
        assert_eq!(value["all"]["regressions"], 2);
        assert_eq!(value["trials"][2]["verdict"], "inconclusive");
        assert_eq!(value["all"]["throughput"]["covered"], 2);
    }

    #[test]
    fn without_injection_what_is_flagged_is_a_false_alarm() {
        let trials = [
            trial(1, "a", Verdict::Improvement, 1.0, 1.02),
            trial(1, "b", Verdict::NoChange, 1.0, 0.9999),
        ];
        let outcome = Outcome {
            share: None,
            burn_ns: None,
            trials: &trials,
        };
        let lines = page("postgres:18", &outcome, 100);
        assert_eq!(lines[0], "1 runs of postgres:18 against itself");
        assert!(
            lines.iter().any(|line| line.starts_with("all ")),
            "{lines:#?}"
        );
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("false alarms: 1 of 2 cells, 50 %")
        );
        let empty = Outcome {
            trials: &[],
            ..outcome
        };
        assert_eq!(
            page("x", &empty, 100).last().unwrap(),
            "no cell was measured"
        );
    }

    #[test]
    fn changes_are_signed_and_nothing_is_plus_nothing() {
        assert_eq!(change(0.97), "−3.00 %");
        assert_eq!(change(1.015), "+1.50 %");
        assert_eq!(change(0.999_99), "+0.00 %");
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        let with = |runs: u32, inject: Option<&str>| CalibrateArguments {
            target: "postgres:18".to_owned(),
            runs,
            inject: inject.map(str::to_owned),
            only: vec!["point-query".to_owned()],
            blocks: 14,
            rows: 1000,
            budget: None,
            delta: None,
            seed: None,
            json: None,
            servers: Servers {
                server_user: None,
                cluster_dir: None,
                huge_pages: HugePagesWord::Try,
            },
        };
        assert!(checked(&with(0, None)).is_err());
        for bad in ["much", "0%", "60%", "-3%"] {
            assert!(checked(&with(1, Some(bad))).is_err(), "{bad}");
        }
        assert_eq!(checked(&with(1, None)).unwrap().share, None);
        let share = checked(&with(1, Some("3%"))).unwrap().share.unwrap();
        assert!((share - 0.03).abs() < 1e-12);
    }
}
