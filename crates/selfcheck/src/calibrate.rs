//! Runs whose truth is known, to see what is made of it.
//!
//! The candidate is the base itself (A/A), or the base with a known slowdown. Measuring is the caller's; here
//! is decided what to measure, and counted what came out.

mod tally;

pub use tally::{Size, Sizes, Tally, Trial, share_interval, tally};

use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_model::json::known;
use deltabench_model::plan::{Plan, Role};
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tally::{burn_for, packets, trials};

/// Slowdowns that can be asked for, as a share of throughput.
pub const INJECTABLE: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// Blocks of the run that finds out how long an operation takes.
const SCOUT_BLOCKS: u32 = 2;

/// One run to carry out: the target as base, placebo and candidate, one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationRun {
    /// Number, from 1; 0 is the scout.
    pub number: u32,
    pub seed: u64,
    pub blocks: u32,
    /// CPU that every packet costs the candidate on top, nanoseconds; base and placebo get 0, so that all
    /// three have the library. Absent: nobody has it.
    pub burn_ns: Option<u64>,
}

impl CalibrationRun {
    /// Gives the candidates of a plan their slowdown.
    pub fn burden(&self, plan: &mut Plan) {
        for server in &mut plan.servers {
            let is_candidate = server.role == Role::Candidate;
            let burn = |burn_ns| if is_candidate { burn_ns } else { 0 };
            server.burn_ns = self.burn_ns.map(burn);
        }
    }
}

/// What to carry out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationRequest {
    /// Runs, the scout not counted.
    pub runs: u32,
    /// The slowdown of the candidate, as a share of throughput; absent in A/A runs.
    pub share: Option<f64>,
    /// Most blocks of a run.
    pub blocks: u32,
    /// Seed of the first run.
    pub seed: u64,
}

/// A calibration on its way: which run comes next, and what the runs so far came to.
#[derive(Debug)]
pub struct Calibration {
    request: CalibrationRequest,
    burn_ns: Option<u64>,
    done: u32,
    trials: Vec<Trial>,
}

impl Calibration {
    /// One of which nothing is done yet.
    pub fn new(request: CalibrationRequest) -> Self {
        Self {
            request,
            burn_ns: None,
            done: 0,
            trials: Vec::new(),
        }
    }

    /// The run to carry out next; `None` after the last one.
    ///
    /// A slowdown needs a scout first: how much CPU a share of an operation is depends on how long it takes.
    pub fn next_run(&self) -> Option<CalibrationRun> {
        let scouting = self.request.share.is_some() && self.burn_ns.is_none();
        let (number, blocks, burn_ns) = match scouting {
            true => (0, SCOUT_BLOCKS, Some(0)),
            false => (self.done + 1, self.request.blocks, self.burn_ns),
        };
        (number <= self.request.runs).then_some(CalibrationRun {
            number,
            // Kept under 2^53 like every seed that is printed.
            seed: deltabench_workload::mix(self.request.seed, &[u64::from(number)]) >> 11,
            blocks,
            burn_ns,
        })
    }

    /// Takes what a run came to; its trials, none of the scout.
    ///
    /// Errors: the scout does not say how long an operation takes.
    pub fn take(
        &mut self,
        run: &CalibrationRun,
        plan: &Plan,
        comparison: &Comparison,
    ) -> Result<&[Trial], Problem> {
        let before = self.trials.len();
        match self.request.share.filter(|_| run.number == 0) {
            Some(share) => self.burn_ns = Some(chosen_burn(plan, comparison, share)?),
            None => {
                let burn_ns = self.burn_ns.unwrap_or(0);
                self.done = run.number;
                self.trials
                    .extend(trials(run.number, burn_ns, plan, comparison));
            }
        }
        Ok(self.trials.get(before..).unwrap_or_default())
    }

    /// What came out so far; `None` before the first run that counts has begun.
    pub fn outcome(&self) -> Option<Outcome<'_>> {
        let scouted = self.request.share.is_none() || self.burn_ns.is_some();
        scouted.then_some(Outcome {
            share: self.request.share,
            burn_ns: self.burn_ns,
            trials: &self.trials,
        })
    }
}

/// The burn of a packet that makes the plan's first cell slower by the share.
fn chosen_burn(plan: &Plan, scouted: &Comparison, share: f64) -> Result<u64, Problem> {
    let unknown = || {
        Problem::new("could not find out how long an operation takes")
            .detail("the first run has no throughput")
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
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// The slowdown that was asked for, as a share of throughput; absent where there is none.
    pub share: Option<f64>,
    /// What a packet cost the candidate for it.
    pub burn_ns: Option<u64>,
    /// What came out.
    pub trials: &'a [Trial],
}

impl<'a> Outcome<'a> {
    /// The workloads, each once.
    pub fn workloads(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let names = self.trials.iter().map(|trial| trial.workload.as_str());
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// The trials of a workload, counted.
    pub fn of(&self, workload: &str) -> Tally {
        tally(
            self.trials
                .iter()
                .filter(|trial| trial.workload == workload),
        )
    }

    /// Runs that have a trial.
    pub fn runs(&self) -> usize {
        let numbers: BTreeSet<u32> = self.trials.iter().map(|trial| trial.run).collect();
        numbers.len()
    }
}

/// All that came out of a target, as it is written.
pub fn calibration_json(target: &str, outcome: &Outcome<'_>) -> Value {
    let workloads = outcome.workloads().into_iter().map(|workload| {
        let mut counted = json!({"workload": workload});
        if let (Value::Object(all), Value::Object(counts)) =
            (&mut counted, counts(&outcome.of(workload)))
        {
            all.extend(counts);
        }
        counted
    });
    let trials = outcome.trials.iter().map(|trial| {
        known(json!({
            "run": trial.run,
            "workload": trial.workload,
            "verdict": trial.verdict.word(),
            "contended": trial.contended,
            "throughput": size(&trial.throughput),
            "server_cpu_us_per_op": trial.server_cpu.as_ref().map(size),
        }))
    });
    known(json!({
        "format": "deltabench.calibration",
        "version": 2,
        "deltabench_version": env!("CARGO_PKG_VERSION"),
        "target": target,
        "runs": outcome.runs(),
        "injected": outcome.share,
        "burn_ns_per_packet": outcome.burn_ns,
        "workloads": workloads.collect::<Value>(),
        "all": counts(&tally(outcome.trials.iter())),
        "trials": trials.collect::<Value>(),
    }))
}

fn counts(counted: &Tally) -> Value {
    let sizes = |sizes: Sizes| {
        json!({
            "truth": sizes.truth,
            "estimate": sizes.estimate,
            "covered": sizes.covered,
            "intervals": sizes.intervals,
        })
    };
    known(json!({
        "cells": counted.trials,
        "regressions": counted.regressions,
        "improvements": counted.improvements,
        "no_change": counted.no_change,
        "open": counted.open,
        // Other load disturbed most of their rounds: the truth of their throughput is not known.
        "contended": counted.contended,
        "regression_share_ci95": share_interval(counted.regressions, counted.trials),
        "throughput": counted.throughput.map(sizes),
        "server_cpu_us_per_op": counted.server_cpu.map(sizes),
    }))
}

fn size(size: &Size) -> Value {
    known(json!({"truth": size.truth, "estimate": size.estimate, "ci95": size.ci95}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(share: Option<f64>) -> CalibrationRequest {
        CalibrationRequest {
            runs: 5,
            share,
            blocks: 14,
            seed: 1,
        }
    }

    #[test]
    fn every_run_has_a_seed_of_its_own_and_a_slowdown_is_scouted_first() {
        let plain = Calibration::new(request(None));
        let first = plain.next_run().unwrap();
        assert_eq!((first.number, first.burn_ns), (1, None));
        assert!(plain.outcome().is_some());
        let injected = Calibration::new(request(Some(0.03)));
        let scout = injected.next_run().unwrap();
        assert_eq!(
            (scout.number, scout.blocks, scout.burn_ns),
            (0, SCOUT_BLOCKS, Some(0))
        );
        assert_ne!(first.seed, scout.seed);
        assert!(
            injected.outcome().is_none(),
            "nothing that counts has begun"
        );
    }
}
