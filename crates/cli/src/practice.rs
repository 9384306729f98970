//! `deltabench selfbench verdict`: how often identical servers are called different, by the practice that
//! deltabench replaces and by deltabench, in turns on the same machine.

use crate::arguments::selfcheck::{CalibrateArguments, SelfbenchVerdict};
use crate::bench::Bench;
use crate::calibrate::{CalibrationRun, calibration};
use crate::clock::{now, run_name, seed_from_clock};
use crate::config::Config;
use crate::console::{print_stdout, say, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::store::open_store;
use crate::targets::resolve_servers;
use crate::{interrupt, output};
use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_run::planning::{self, ServerWish};
use deltabench_run::practice::{Seconds, sequential};
use deltabench_run::session::SessionEnd;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::welch;
use deltabench_stats::summary::mean;
use deltabench_workload::Library;
use serde::Serialize;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.practice", 1);

/// A difference is called one below this p by both.
const P: f64 = 0.05;

/// What one pair of identical servers was said to be.
#[derive(Debug, Clone, Serialize)]
struct Said {
    /// Number of the pair, from 1.
    pair: u32,
    /// Relative throughput, second / first.
    practice_ratio: f64,
    practice_p: f64,
    deltabench_ratio: Option<f64>,
    deltabench_ci95: Option<(f64, f64)>,
    deltabench_verdict: &'static str,
}

/// Runs the pairs and prints both rates.
pub fn verdict(arguments: &SelfbenchVerdict, config: &Config) -> Result<u8, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let spec = arguments.target.parse().map_err(Failure::Refused)?;
    let found = resolve_servers(&[spec], config).map_err(Failure::Refused)?;
    let Some(target) = found.first() else {
        return Err(Failure::Refused(Problem::new("no target given")));
    };
    let target = ServerWish::plain(target.clone());
    let host = swept_host(&arguments.servers, config)?;
    let mut bench = Bench {
        store: open_store(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    let mut said = Vec::new();
    for pair in 1..=arguments.pairs {
        let request = calibration(
            &as_calibration(arguments),
            &CalibrationRun {
                number: pair,
                seed: seed_from_clock(),
                blocks: 1000,
                burn_ns: None,
            },
        )
        .map_err(Failure::Refused)?;
        let mut plan = planning::plan(request, &target, std::slice::from_ref(&target), &library)
            .map_err(Failure::Refused)?;
        // Its whole time counts, as the other way's does: a look would quote the blocks up to it.
        plan.stopping = Stopping::Fixed;
        let Some(one) = one_pair(pair, &plan, arguments, &library, &mut bench)? else {
            say("interrupted");
            break;
        };
        say(&line(&one));
        said.push(one);
    }
    publish(arguments, &said)
}

/// Both sides as `calibrate` would run them, within the time that the two runs of sysbench take.
fn as_calibration(arguments: &SelfbenchVerdict) -> CalibrateArguments {
    CalibrateArguments {
        target: arguments.target.clone(),
        runs: 1,
        inject: None,
        only: vec!["point-query".to_owned()],
        blocks: 1000,
        rows: arguments.rows,
        budget: Some(format!("{}s", 2 * arguments.seconds)),
        delta: None,
        seed: None,
        json: None,
        servers: arguments.servers.clone(),
    }
}

fn one_pair(
    pair: u32,
    plan: &Plan,
    arguments: &SelfbenchVerdict,
    library: &Library,
    bench: &mut Bench,
) -> Result<Option<Said>, Failure> {
    let name = run_name(now().0, plan.seed);
    let measured = sequential(
        plan,
        &format!("{name}-practice"),
        &bench.host,
        arguments.seconds,
        &bench.interrupted,
    );
    let Some((first, second)) = measured.map_err(Failure::Failed)? else {
        return Ok(None);
    };
    let (practice_ratio, practice_p) = judged(&first, &second).map_err(Failure::Failed)?;
    let (run, end) = bench.measure_new(plan, library, Some(name), false)?;
    if end == SessionEnd::Interrupted {
        return Ok(None);
    }
    let comparison = output::analyse_run(&run, plan, &bench.store)?.comparison;
    let Some(cell) = comparison.cells.first() else {
        return Ok(None);
    };
    let ratio = cell
        .metrics
        .iter()
        .find(|value| value.metric == Metric::Throughput)
        .map(|value| value.ratio);
    Ok(Some(Said {
        pair,
        practice_ratio,
        practice_p,
        deltabench_ratio: ratio.map(|ratio| ratio.estimate),
        deltabench_ci95: ratio.and_then(|ratio| ratio.ci95),
        deltabench_verdict: cell.verdict.word(),
    }))
}

/// Relative throughput and the p of Welch's test over seconds.
fn judged(first: &Seconds, second: &Seconds) -> Result<(f64, f64), Problem> {
    let few = || Problem::new("sysbench reported too few seconds").hint("use --seconds 10 or more");
    let found = welch(first, second, 0.95).map_err(|_| few())?;
    let (before, after) = (mean(first).ok_or_else(few)?, mean(second).ok_or_else(few)?);
    Ok((after / before, found.p))
}

fn line(said: &Said) -> String {
    let ours = said.deltabench_ci95.map_or(String::new(), |(low, high)| {
        format!(" [{low:.3}, {high:.3}]")
    });
    format!(
        "pair {}: sysbench A then B {:.3} (p = {:.4}); deltabench {:.3}{ours} {}",
        said.pair,
        said.practice_ratio,
        said.practice_p,
        said.deltabench_ratio.unwrap_or(f64::NAN),
        said.deltabench_verdict,
    )
}

fn publish(arguments: &SelfbenchVerdict, said: &[Said]) -> Result<u8, Failure> {
    let pairs = u64::try_from(said.len()).unwrap_or(u64::MAX);
    if pairs == 0 {
        return Ok(interrupt::STATUS);
    }
    let count = |wrong: &dyn Fn(&Said) -> bool| {
        u64::try_from(said.iter().filter(|one| wrong(one)).count()).unwrap_or(u64::MAX)
    };
    let by_p = count(&|one| one.practice_p < P);
    let by_five_percent = count(&|one| (one.practice_ratio - 1.0).abs() > 0.05);
    let different = [Verdict::Regression.word(), Verdict::Improvement.word()];
    let ours = count(&|one| different.contains(&one.deltabench_verdict));
    let row = |name: &str, wrong: u64| {
        let upper = clopper_pearson(wrong, pairs, 0.95).high;
        format!(
            "{name:<62} {wrong:>3} of {pairs}  (at most {:.0} %)",
            upper * 100.0
        )
    };
    let seconds = arguments.seconds;
    let lines = [
        format!(
            "{} against itself, {pairs} pairs in turns on this machine, {} s each way for both",
            arguments.target,
            2 * seconds
        ),
        row(
            &format!("sysbench {seconds} s on A, then on B; two-sample t over seconds, p < 5 %"),
            by_p,
        ),
        row("the same, called different beyond ±5 %", by_five_percent),
        row("deltabench, called regression or improvement", ours),
    ];
    print_stdout(&lines.join("\n"))?;
    if let Some(path) = &arguments.json {
        let value = serde_json::json!({
            "format": FORMAT.0, "version": FORMAT.1, "target": arguments.target,
            "seconds": seconds, "pairs": said,
            "false_alarms": { "t_test": by_p, "five_percent": by_five_percent, "deltabench": ours },
        });
        write_file(path, &format!("{value:#}\n"))?;
    }
    Ok(0)
}
