//! `deltabench calibrate`: runs whose truth is known, to see what is made of it.
//!
//! The candidate is the base itself (A/A), or the base with a known slowdown. Measuring is the caller's; here
//! is decided what to measure, and counted what came out.

mod measuring;
mod tally;

pub use measuring::{calibration, measured};

use crate::arguments::selfcheck::CalibrateArguments;
use crate::clock::seed_from_clock;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::request::percent;
use crate::text::{paragraph, table};
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::{micros, to_f64, to_u64};
use serde::Serialize;
use std::collections::BTreeSet;
use tally::{Size, Sizes, Tally, Trial, burn_for, packets, share_interval, tally, trials};

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.calibration", 1);

/// Slowdowns that can be asked for, as a share of throughput.
const INJECTABLE: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// Blocks of the run that finds out how long an operation takes.
const SCOUT_BLOCKS: u32 = 2;

/// Widest line.
const WIDEST: usize = 100;

/// One run to carry out: the target as base, placebo and candidate, one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationRun {
    /// Number, from 1; 0 is the scout.
    pub number: u32,
    /// Seed of its plan.
    pub seed: u64,
    /// Most blocks.
    pub blocks: u32,
    /// CPU that every packet costs the candidate on top, nanoseconds; base and placebo get 0, so that all
    /// three have the library. Absent: nobody has it.
    pub burn_ns: Option<u64>,
}

/// Carries out a run; `None` when the user wants to stop.
pub type Runner<'a> =
    &'a mut dyn FnMut(&CalibrationRun) -> Result<Option<(Plan, Comparison)>, Failure>;

/// Refuses a request that makes no sense, before anything is fetched or started.
///
/// Errors: no runs, a share that cannot be read or injected, a file that cannot be written.
pub fn check(arguments: &CalibrateArguments) -> Result<(), Problem> {
    checked(arguments).map(|_| ())
}

/// Carries out all runs and prints what came of them.
///
/// Errors: a request that makes no sense, a run that fails. Interrupted after some runs, it counts these.
pub fn calibrate(arguments: &CalibrateArguments, run: Runner<'_>) -> Result<u8, Failure> {
    let share = checked(arguments).map_err(Failure::Refused)?;
    let seed = arguments.seed.unwrap_or_else(seed_from_clock);
    let planned = |number: u32, blocks: u32, burn_ns: Option<u64>| CalibrationRun {
        number,
        // Kept under 2^53 like every seed that is printed.
        seed: deltabench_workload::mix(seed, &[u64::from(number)]) >> 11,
        blocks,
        burn_ns,
    };
    let burn_ns = match share {
        None => None,
        Some(share) => {
            let Some((plan, scouted)) = run(&planned(0, SCOUT_BLOCKS, Some(0)))? else {
                return Ok(crate::interrupt::STATUS);
            };
            let burn = chosen_burn(&plan, &scouted, share)?;
            say(&format!(
                "a packet costs the candidate {:.2} us more",
                micros(burn)
            ));
            Some(burn)
        }
    };
    let mut done = Vec::new();
    let mut interrupted = false;
    for number in 1..=arguments.runs {
        let Some((plan, comparison)) = run(&planned(number, arguments.blocks, burn_ns))? else {
            interrupted = true;
            break;
        };
        let found = trials(number, burn_ns.unwrap_or(0), &plan, &comparison);
        for trial in &found {
            say(&trial_line(trial, arguments.runs));
        }
        done.extend(found);
    }
    publish(
        arguments,
        &Outcome {
            share,
            burn_ns,
            trials: &done,
        },
    )?;
    Ok(if interrupted {
        crate::interrupt::STATUS
    } else {
        0
    })
}

/// The share to inject.
fn checked(arguments: &CalibrateArguments) -> Result<Option<f64>, Problem> {
    if arguments.runs == 0 {
        return Err(Problem::new("no runs asked for").hint("write for example --runs 10"));
    }
    if let Some(path) = arguments.json.as_ref().filter(|path| !is_stdout(path)) {
        check_writable(path)?;
    }
    let Some(text) = &arguments.inject else {
        return Ok(None);
    };
    let share = percent(text).map_err(|problem| problem.hint("write for example --inject 3%"))?;
    if !INJECTABLE.contains(&share) {
        return Err(
            Problem::new(format!("cannot inject `{text}`")).hint(format!(
                "--inject takes {} % to {} %",
                100.0 * INJECTABLE.start(),
                100.0 * INJECTABLE.end()
            )),
        );
    }
    Ok(Some(share))
}

/// The burn of a packet that makes the plan's first cell slower by the share.
fn chosen_burn(plan: &Plan, scouted: &Comparison, share: f64) -> Result<u64, Failure> {
    let unknown = || {
        Failure::Failed(
            Problem::new("could not find out how long an operation takes")
                .detail("the first run has no throughput"),
        )
    };
    let cell = scouted.cells.first().ok_or_else(unknown)?;
    let throughput = cell
        .metrics
        .iter()
        .find(|found| found.metric == Metric::Throughput)
        .filter(|found| found.base > 0.0)
        .ok_or_else(unknown)?;
    let per_operation = burn_for(1e9 / throughput.base, share);
    Ok(to_u64(per_operation / to_f64(packets(plan, cell.cell))).max(1))
}

/// All that came out.
#[derive(Clone, Copy)]
struct Outcome<'a> {
    share: Option<f64>,
    burn_ns: Option<u64>,
    trials: &'a [Trial],
}

impl Outcome<'_> {
    fn workloads(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.trials.iter().map(|trial| trial.workload.as_str());
        names.filter(|name| seen.insert(*name)).collect()
    }

    fn of(&self, workload: &str) -> Tally {
        tally(
            self.trials
                .iter()
                .filter(|trial| trial.workload == workload),
        )
    }

    fn runs(&self) -> usize {
        let numbers: BTreeSet<u32> = self.trials.iter().map(|trial| trial.run).collect();
        numbers.len()
    }
}

fn publish(arguments: &CalibrateArguments, outcome: &Outcome<'_>) -> Result<(), Failure> {
    let lines = page(&arguments.target, outcome, width().min(WIDEST)).join("\n");
    match &arguments.json {
        Some(path) if is_stdout(path) => {
            say(&lines);
            print_stdout(&json(&arguments.target, outcome)?)
        }
        Some(path) => {
            print_stdout(&lines)?;
            write_file(path, &json(&arguments.target, outcome)?)
        }
        None => print_stdout(&lines),
    }
}

fn trial_line(trial: &Trial, runs: u32) -> String {
    let size = &trial.throughput;
    let interval = size.ci95.map_or_else(String::new, |(low, high)| {
        format!(" [{}, {}]", change(low), change(high))
    });
    format!(
        "run {} of {runs}: {}: {}, throughput {}{interval}, in truth {}",
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
    let head = ["95 % intervals", "true", "estimated", "held the truth"];
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
            "other load disturbed most rounds of {} of {} cells: there a burn costs more throughput than its \
             length, and only CPU/op can be held against the truth",
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

/// The file.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    deltabench_version: &'static str,
    target: &'a str,
    runs: usize,
    /// Share of throughput asked for; absent in A/A runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    injected: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burn_ns_per_packet: Option<u64>,
    workloads: Vec<Row<'a>>,
    all: Counts,
    trials: Vec<TrialRow<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    workload: &'a str,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Serialize)]
struct Counts {
    cells: u64,
    regressions: u64,
    improvements: u64,
    no_change: u64,
    open: u64,
    /// Cells of which other load disturbed most rounds: the truth of their throughput is not known.
    contended: u64,
    /// Exact 95 % interval of the share of cells called slower.
    regression_share_ci95: (f64, f64),
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput: Option<SizeRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpu_us_per_op: Option<SizeRow>,
}

/// Geometric means of ratios, candidate / base.
#[derive(Serialize)]
struct SizeRow {
    truth: f64,
    estimate: f64,
    covered: u64,
    intervals: u64,
}

#[derive(Serialize)]
struct TrialRow<'a> {
    run: u32,
    workload: &'a str,
    verdict: &'static str,
    contended: bool,
    throughput: RatioRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpu_us_per_op: Option<RatioRow>,
}

#[derive(Serialize)]
struct RatioRow {
    truth: f64,
    estimate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95: Option<(f64, f64)>,
}

impl From<Size> for RatioRow {
    fn from(size: Size) -> Self {
        Self {
            truth: size.truth,
            estimate: size.estimate,
            ci95: size.ci95,
        }
    }
}

impl From<&Tally> for Counts {
    fn from(counted: &Tally) -> Self {
        let row = |sizes: Sizes| SizeRow {
            truth: sizes.truth,
            estimate: sizes.estimate,
            covered: sizes.covered,
            intervals: sizes.intervals,
        };
        Self {
            cells: counted.trials,
            regressions: counted.regressions,
            improvements: counted.improvements,
            no_change: counted.no_change,
            open: counted.open,
            contended: counted.contended,
            regression_share_ci95: share_interval(counted.regressions, counted.trials),
            throughput: counted.throughput.map(row),
            server_cpu_us_per_op: counted.server_cpu.map(row),
        }
    }
}

fn json(target: &str, outcome: &Outcome<'_>) -> Result<String, Failure> {
    let document = Document {
        format: FORMAT.0,
        version: FORMAT.1,
        deltabench_version: env!("CARGO_PKG_VERSION"),
        target,
        runs: outcome.runs(),
        injected: outcome.share,
        burn_ns_per_packet: outcome.burn_ns,
        workloads: outcome
            .workloads()
            .into_iter()
            .map(|workload| Row {
                workload,
                counts: Counts::from(&outcome.of(workload)),
            })
            .collect(),
        all: Counts::from(&tally(outcome.trials.iter())),
        trials: outcome
            .trials
            .iter()
            .map(|trial| TrialRow {
                run: trial.run,
                workload: &trial.workload,
                verdict: trial.verdict.word(),
                contended: trial.contended,
                throughput: trial.throughput.into(),
                server_cpu_us_per_op: trial.server_cpu.map(RatioRow::from),
            })
            .collect(),
    };
    serde_json::to_string_pretty(&document).map_err(|error| {
        Failure::Failed(Problem::new("cannot write JSON").detail(error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::conditions::{HugePagesWord, Servers};
    use deltabench_compare::comparison::Verdict;

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
        let value: serde_json::Value =
            serde_json::from_str(&json("postgres:18", &outcome).unwrap()).unwrap();
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
    fn every_run_has_a_seed_of_its_own_and_an_interrupt_ends_them() {
        let arguments = CalibrateArguments {
            target: "postgres:18".to_owned(),
            runs: 5,
            inject: None,
            only: vec!["point-query".to_owned()],
            blocks: 14,
            rows: 1000,
            budget: None,
            delta: None,
            seed: Some(1),
            json: None,
            servers: Servers {
                server_user: None,
                cluster_dir: None,
                huge_pages: HugePagesWord::Try,
            },
        };
        let mut asked: Vec<CalibrationRun> = Vec::new();
        let code = calibrate(&arguments, &mut |run| {
            asked.push(*run);
            Ok(None)
        });
        assert_eq!(code.unwrap(), crate::interrupt::STATUS);
        assert_eq!((asked[0].number, asked[0].burn_ns), (1, None));
        let injected = CalibrateArguments {
            inject: Some("3%".to_owned()),
            ..arguments
        };
        let code = calibrate(&injected, &mut |run| {
            asked.push(*run);
            Ok(None)
        });
        assert_eq!(code.unwrap(), crate::interrupt::STATUS);
        let scout = asked[1];
        assert_eq!(
            (scout.number, scout.blocks, scout.burn_ns),
            (0, SCOUT_BLOCKS, Some(0))
        );
        assert_ne!(asked[0].seed, scout.seed);
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
        assert_eq!(checked(&with(1, None)).unwrap(), None);
        let share = checked(&with(1, Some("3%"))).unwrap().unwrap();
        assert!((share - 0.03).abs() < 1e-12);
    }
}
