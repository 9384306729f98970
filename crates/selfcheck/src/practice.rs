//! The practice that deltabench replaces: sysbench on one server for a while, then on the other.

use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::thresholds::{LEVEL_DIFFERENT, PRACTICE_CHANGE, PRACTICE_P};
use deltabench_kinds::run_half;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::plan::{Cell, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_run::fleet::{Fleet, Host};
use deltabench_run::load::address_for;
use deltabench_run::remote::only_own;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::welch;
use deltabench_stats::summary::mean;
use serde::Serialize;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations per second, one value for each second of a run.
pub type Seconds = Vec<f64>;

/// Starts the base, runs sysbench's point select on it with one client, stops it, and does the same with the
/// last server of the plan. Nothing is pinned, as in the published scripts.
///
/// `None` when interrupted. Errors: sysbench is not there or fails, a server does not start.
pub fn sequential(
    plan: &Plan,
    run: &str,
    host: &Host,
    seconds: u32,
    interrupted: &AtomicBool,
) -> Result<Option<(Seconds, Seconds)>, Problem> {
    only_own(plan)?;
    let mut fleet = Fleet::create(plan, run_half(&plan.work), run, host, &mut |_| {})?;
    let measured = measure(plan, &mut fleet, seconds, interrupted);
    let dismantled = fleet.dismantle();
    let measured = measured?;
    dismantled.map(|()| measured)
}

fn measure(
    plan: &Plan,
    fleet: &mut Fleet<'_>,
    seconds: u32,
    interrupted: &AtomicBool,
) -> Result<Option<(Seconds, Seconds)>, Problem> {
    let Some(cell) = plan.cells.first() else {
        return Err(Problem::new("the plan has no cell"));
    };
    if fleet.load(&[], interrupted, &mut |_| {})?.is_none() {
        return Ok(None);
    }
    let last = ServerId::at(plan.servers.len().saturating_sub(1));
    let first = one(plan, fleet, cell, plan.base(), seconds)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let second = one(plan, fleet, cell, last, seconds)?;
    Ok(Some((first, second)))
}

fn one(
    plan: &Plan,
    fleet: &mut Fleet<'_>,
    cell: &Cell,
    server: ServerId,
    seconds: u32,
) -> Result<Seconds, Problem> {
    let schedule = BlockSchedule::of(plan, 0);
    let address = fleet.start_one(&schedule, server)?;
    let measured = sysbench(plan, cell, &address, seconds);
    fleet.stop_one(&schedule, server)?;
    measured
}

fn sysbench(plan: &Plan, cell: &Cell, address: &Address, seconds: u32) -> Result<Seconds, Problem> {
    let login = address_for(address, plan.order, cell).login;
    let Endpoint::Unix { directory, port } = &address.endpoint else {
        return Err(Problem::new("sysbench runs only over the local socket"));
    };
    let search_path = login
        .options
        .iter()
        .map(|(name, value)| format!("-c {name}={value}"))
        .collect::<Vec<_>>()
        .join(" ");
    let output = Command::new("sysbench")
        .arg("oltp_point_select")
        .arg("--db-driver=pgsql")
        .arg(format!("--pgsql-host={}", directory.display()))
        .arg(format!("--pgsql-port={port}"))
        .arg(format!("--pgsql-user={}", login.user))
        .arg(format!("--pgsql-db={}", login.database))
        .arg(format!("--tables={}", plan.data.tables))
        .arg(format!("--table-size={}", plan.data.rows))
        .args(["--rand-type=uniform", "--threads=1", "--report-interval=1"])
        .arg(format!("--time={seconds}"))
        .arg("run")
        .env("PGOPTIONS", search_path)
        .output()
        .map_err(|error| {
            Problem::new("sysbench cannot be started")
                .detail(error.to_string())
                .hint("scripts/install-peers.sh installs it through the package manager")
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(Problem::new("sysbench failed").detail(text.trim_end()));
    }
    // The first second has connecting and a cold cache in it.
    Ok(text.lines().filter_map(rate).skip(1).collect())
}

/// `[ 3s ] thds: 1 tps: 41234.12 qps: …` as 41234.12.
fn rate(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once(" tps: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What one pair of identical servers was called.
#[derive(Debug, Clone, Serialize)]
pub struct PairVerdict {
    /// Number of the pair, from 1.
    pub pair: u32,
    /// Relative throughput, second / first.
    pub practice_ratio: f64,
    /// The p of a difference.
    pub practice_p: f64,
    pub deltabench_ratio: Option<f64>,
    pub deltabench_ci95: Option<(f64, f64)>,
    pub deltabench_verdict: &'static str,
}

impl PairVerdict {
    /// What both say of a pair, the practice by [`judged`]; `None` where deltabench compared nothing.
    pub fn of(
        pair: u32,
        (practice_ratio, practice_p): (f64, f64),
        comparison: &Comparison,
    ) -> Option<Self> {
        let cell = comparison.cells.first()?;
        let mut metrics = cell.metrics.iter();
        let ratio = metrics
            .find(|value| value.metric == Metric::Throughput)
            .map(|value| value.ratio);
        Some(Self {
            pair,
            practice_ratio,
            practice_p,
            deltabench_ratio: ratio.map(|ratio| ratio.estimate),
            deltabench_ci95: ratio.and_then(|ratio| ratio.ci95),
            deltabench_verdict: cell.verdict.word(),
        })
    }

    fn by_p(&self) -> bool {
        self.practice_p < PRACTICE_P
    }

    fn by_change(&self) -> bool {
        (self.practice_ratio - 1.0).abs() > PRACTICE_CHANGE
    }

    fn by_deltabench(&self) -> bool {
        [Verdict::Regression.word(), Verdict::Improvement.word()].contains(&self.deltabench_verdict)
    }
}

/// Pairs of a target with itself, so many seconds of sysbench on each, as they are written.
pub fn practice_json(target: &str, seconds: u32, pairs: &[PairVerdict]) -> Value {
    let called = CalledDifferent::of(pairs);
    json!({
        "format": "deltabench.practice",
        "version": 2,
        "target": target,
        "seconds": seconds,
        "pairs": pairs,
        "false_alarms": {
            "t_test": called.by_p,
            "five_percent": called.by_change,
            "deltabench": called.by_deltabench,
        },
    })
}

/// How many pairs were called different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalledDifferent {
    pub pairs: u64,
    /// By the p of the practice.
    pub by_p: u64,
    /// By its sizes alone.
    pub by_change: u64,
    pub by_deltabench: u64,
}

impl CalledDifferent {
    /// Those of so many pairs.
    pub fn of(pairs: &[PairVerdict]) -> Self {
        let different = |called: fn(&PairVerdict) -> bool| {
            count(pairs.iter().filter(|pair| called(pair)).count())
        };
        Self {
            pairs: count(pairs.len()),
            by_p: different(PairVerdict::by_p),
            by_change: different(PairVerdict::by_change),
            by_deltabench: different(PairVerdict::by_deltabench),
        }
    }

    /// The upper end of the exact 95 % interval of the share that so many pairs are.
    pub fn at_most(&self, different: u64) -> f64 {
        clopper_pearson(different, self.pairs, LEVEL_DIFFERENT).high
    }
}

/// Relative throughput, second / first, and the p of Welch's test over seconds.
///
/// Errors: too few seconds for a test.
pub fn judged(first: &Seconds, second: &Seconds) -> Result<(f64, f64), Problem> {
    let few = || Problem::new("sysbench reported too few seconds").hint("use --seconds 10 or more");
    let found = welch(first, second, LEVEL_DIFFERENT).map_err(|_| few())?;
    let (before, after) = (mean(first).ok_or_else(few)?, mean(second).ok_or_else(few)?);
    Ok((after / before, found.p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_line_has_a_rate_and_no_other_line_has() {
        let line = "[ 3s ] thds: 1 tps: 41234.12 qps: 41234.12 (r/w/o: 41234/0/0)";
        assert_eq!(rate(line), Some(41_234.12));
        assert_eq!(rate("    transactions:   123 (41.0 per sec.)"), None);
    }
}
