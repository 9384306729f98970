//! `deltabench selfbench verdict`: how often identical servers are called different, by the practice that
//! deltabench replaces and by deltabench, in turns on the same machine.

use super::target;
use crate::arguments::selfcheck::SelfbenchVerdict;
use crate::bench::Bench;
use crate::clock::{now, run_name, seed_from_clock};
use crate::config::Config;
use crate::console::{is_stdout, print_stdout, say, write_json};
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::interrupt;
use crate::output::check_files;
use crate::request::small;
use crate::store::open_store;
use deltabench_kinds::run_half;
use deltabench_model::exit;
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_selfcheck::practice::{
    CalledDifferent, PairVerdict, judged, practice_json, sequential,
};
use deltabench_workload::Library;

/// Blocks that no run gets to: its time ends it.
const BLOCKS: u32 = 1000;

/// Runs the pairs and prints both rates.
pub fn verdict(arguments: &SelfbenchVerdict, config: &Config) -> Result<u8, Failure> {
    check_files(arguments.json.as_deref(), None).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let request = request(arguments);
    let kind = run_half(&request.work);
    kind.check(&request, &library).map_err(Failure::Refused)?;
    let target = ServerWish::plain(target(&arguments.target, config)?);
    let mut bench = Bench {
        host: swept_host(&arguments.servers, config)?,
        store: open_store(config)?,
        interrupted: interrupt::flag()?,
    };
    let mut pairs = Vec::new();
    for pair in 1..=arguments.pairs {
        let plan = plan(arguments, &target, &library).map_err(Failure::Refused)?;
        check_fits(&plan, &bench.host).map_err(Failure::Refused)?;
        let Some(one) = one_pair(pair, &plan, arguments, &library, &mut bench)? else {
            say("interrupted");
            break;
        };
        say(&pair_line(&one));
        pairs.push(one);
    }
    publish(arguments, &pairs)
}

fn request(arguments: &SelfbenchVerdict) -> Request {
    let only = vec!["point-query".to_owned()];
    let mut request = small(only, arguments.rows, BLOCKS, seed_from_clock());
    request.timing.deadline_seconds = Some(2.0 * f64::from(arguments.seconds));
    request
}

/// Both sides as `calibrate` would run them, within the time that the two runs of sysbench take.
fn plan(
    arguments: &SelfbenchVerdict,
    target: &ServerWish,
    library: &Library,
) -> Result<Plan, Problem> {
    let request = request(arguments);
    let kind = run_half(&request.work);
    let sides = (target, std::slice::from_ref(target));
    let mut plan = planning::plan(request, kind, sides, library)?;
    // Its whole time counts, as the other way's does: a look would quote the blocks up to it.
    plan.stopping = Stopping::Fixed;
    Ok(plan)
}

fn one_pair(
    pair: u32,
    plan: &Plan,
    arguments: &SelfbenchVerdict,
    library: &Library,
    bench: &mut Bench,
) -> Result<Option<PairVerdict>, Failure> {
    let measured = sequential(
        plan,
        &format!("{}-practice", run_name(now().0, plan.seed)),
        &bench.host,
        arguments.seconds,
        &bench.interrupted,
    );
    let Some((first, second)) = measured.map_err(Failure::Failed)? else {
        return Ok(None);
    };
    let practice = judged(&first, &second).map_err(Failure::Failed)?;
    let measured = bench.measure_new(plan, library, None, false)?;
    if measured.end == SessionEnd::Interrupted {
        return Ok(None);
    }
    Ok(PairVerdict::of(
        pair,
        practice,
        &measured.judged.into_comparison(),
    ))
}

fn pair_line(said: &PairVerdict) -> String {
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

fn publish(arguments: &SelfbenchVerdict, pairs: &[PairVerdict]) -> Result<u8, Failure> {
    if pairs.is_empty() {
        return Ok(exit::INTERRUPTED);
    }
    let called = CalledDifferent::of(pairs);
    let row = |name: &str, wrong: u64| {
        format!(
            "{name:<62} {wrong:>3} of {}  (at most {:.0} %)",
            called.pairs,
            called.at_most(wrong) * 100.0
        )
    };
    let seconds = arguments.seconds;
    let lines = [
        format!(
            "{} against itself, {} pairs in turns on this machine, {} s each way for both",
            arguments.target,
            called.pairs,
            2 * seconds
        ),
        row(
            &format!("sysbench {seconds} s on A, then on B; two-sample t over seconds, p < 5 %"),
            called.by_p,
        ),
        row("the same, called different beyond ±5 %", called.by_change),
        row(
            "deltabench, called regression or improvement",
            called.by_deltabench,
        ),
    ];
    let lines = lines.join("\n");
    match &arguments.json {
        Some(path) if is_stdout(path) => say(&lines),
        _ => print_stdout(&lines)?,
    }
    if let Some(path) = &arguments.json {
        write_json(path, &practice_json(&arguments.target, seconds, pairs))?;
    }
    Ok(0)
}
