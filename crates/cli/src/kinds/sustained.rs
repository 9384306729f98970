//! `--sustained`: each server works for minutes without a break, one after another.

use crate::arguments::conditions::Conditions;
use crate::arguments::shape::Shape;
use crate::request::{first_given, time};
use deltabench_experiment::{Chosen, Experiment, Server};
use deltabench_model::plan::{CacheState, CellOrder, Stopping, Timing};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::to_u64;
use deltabench_run::planning::Request;
use std::iter;

/// The configuration of servers that work without a break, unless the user names one: a published one for
/// any machine. The steady one has neither checkpoints nor autovacuum.
const CONFIGURATION: &str = "cx10a";

/// With [`CONFIGURATION`], checkpoints in a pass: its own distance of half an hour leaves most passes
/// without.
const CHECKPOINTS: f64 = 3.0;

/// Shortest distance of checkpoints that a server takes, seconds.
const CHECKPOINT_LEAST_SECONDS: f64 = 30.0;

/// Passes of a run that does not say how many: a verdict needs six, and two more make the interval a sixth
/// narrower (0.84 standard deviations of a pass instead of 1.05).
const PASSES: u32 = 8;

/// Milliseconds of a slice: a point of the throughput over time.
const SLICE_MS: u32 = 1000;

/// Seconds that are thrown away at the start of a pass, twice as many in fact because the server has just
/// started: connections, plans, first touches of pages.
const WARMUP_SECONDS: f64 = 5.0;

/// Seconds of a pass at least.
const LEAST_SECONDS: f64 = 10.0;

/// Slices of a pass at least.
const LEAST_SLICES: f64 = 10.0;

/// Gives conditions the configuration that passes need, unless the user names one.
///
/// Errors: a time that cannot be read; candidates with a configuration beside a base without one, whose
/// distance of checkpoints would be that of the base.
pub fn configure(asked: Option<&str>, conditions: &mut Conditions) -> Result<(), Problem> {
    let Some(text) = asked.filter(|_| conditions.configuration.is_none()) else {
        return Ok(());
    };
    let seconds = seconds(text)?;
    if conditions.candidate_configuration.is_some() {
        return Err(
            Problem::new("--candidate-config and --sustained need --config, too")
                .detail("without one, all servers of passes get the same distance of checkpoints")
                .hint(format!(
                    "name one for the base, for example --config {CONFIGURATION}"
                )),
        );
    }
    let distance = (seconds / CHECKPOINTS).max(CHECKPOINT_LEAST_SECONDS);
    conditions.configuration = Some(CONFIGURATION.to_owned());
    let is_set = |text: &String| {
        let name = text.split('=').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("checkpoint_timeout")
    };
    if !conditions.settings.iter().any(is_set) {
        let setting = format!("checkpoint_timeout={}s", to_u64(distance));
        conditions.settings.push(setting);
    }
    Ok(())
}

fn seconds(text: &str) -> Result<f64, Problem> {
    time(text).map_err(|problem| problem.hint("write for example --sustained 5m"))
}

/// What was typed with `--sustained`.
pub struct Typed<'a> {
    /// Its time.
    sustained: Option<&'a str>,
    /// Whether short visits were asked for.
    quick: bool,
    shape: &'a Shape,
    /// All servers, the base first.
    targets: Vec<&'a String>,
}

impl<'a> Typed<'a> {
    /// What was typed in a command with these servers, the base apart, and these options; `quick` are short
    /// visits.
    pub fn new(
        sustained: Option<&'a String>,
        quick: bool,
        shape: &'a Shape,
        (base, candidates): (&'a String, &'a [String]),
    ) -> Self {
        Self {
            sustained: sustained.map(String::as_str),
            quick,
            shape,
            targets: iter::once(base).chain(candidates).collect(),
        }
    }
}

/// A request with passes without a break, if they are asked for.
///
/// Errors: a time that cannot be read or is too short, servers that cannot be stopped, options that mean
/// nothing there.
pub fn sustained(typed: &Typed<'_>, request: Request) -> Result<Request, Problem> {
    let Some(text) = typed.sustained else {
        return Ok(request);
    };
    let seconds = seconds(text)?;
    let shape = typed.shape;
    let given = [
        (typed.quick, "--quick"),
        (shape.visit_seconds.is_some(), "--visit-seconds"),
        (shape.write_seconds.is_some(), "--write-seconds"),
        (shape.ending.precision.is_some(), "--precision"),
        (shape.waits.is_some(), "--waits"),
        (shape.sample.is_some(), "--sample"),
        (shape.sessions.sensitivity, "--sensitivity"),
        (request.cache == CacheState::Cold, "--cache-state cold"),
    ];
    if let Some(option) = first_given(&given) {
        return Err(
            Problem::new(format!("{option} and --sustained exclude each other"))
                .detail(
                    "all passes are measured to their end, and have only the counters of slices",
                )
                .hint(format!("leave out {option}")),
        );
    }
    if typed
        .targets
        .iter()
        .any(|target| target.starts_with("dsn:"))
    {
        return Err(remote());
    }
    in_passes(request, seconds, shape.blocks, shape.slice_ms)
}

/// The request of an experiment's part with passes without a break, if the file asks for them.
///
/// Errors: servers that cannot be stopped, those of [`in_passes`]; workloads that nobody named.
pub fn of_experiment(experiment: &Experiment, request: Request) -> Result<Request, Problem> {
    let wanted = &experiment.measurement;
    let Some(seconds) = wanted.sustained_seconds else {
        return Ok(request);
    };
    let is_there = |server: &Server| matches!(server.target, TargetSpec::Dsn(_));
    if experiment.servers().iter().any(is_there) {
        return Err(remote());
    }
    if request.cache == CacheState::Cold {
        return Err(
            Problem::new("`cache = \"cold\"` and `sustained` exclude each other")
                .detail("a pass of minutes fills its caches")
                .hint("leave out one of them"),
        );
    }
    match &experiment.workloads.chosen {
        Chosen::Named(names) => check_workloads(names, request.order)?,
        _ => {
            return Err(Problem::new("`sustained` without a workload")
                .detail("each workload takes minutes on each server in each of 8 blocks")
                .hint("name those that matter, for example only = [\"update-index\"]"));
        }
    }
    in_passes(request, f64::from(seconds), wanted.blocks, wanted.slice_ms)
}

/// The workload that takes rows away until there is none.
const USES_UP: &str = "delete";

/// Refuses sysbench's workloads that cannot have passes.
///
/// Errors: one that uses up its rows, an order that has no passes.
pub fn check_workloads(names: &[String], order: CellOrder) -> Result<(), Problem> {
    if names.iter().any(|name| name == USES_UP) {
        return Err(
            Problem::new(format!("`{USES_UP}` uses up its rows within seconds"))
                .detail("most of what it does in a pass of minutes would find nothing")
                .hint("measure `delete-existing` without a break"),
        );
    }
    if order == CellOrder::Published {
        return Err(Problem::new(
            "the published order and passes without a break exclude each other",
        )
        .detail("in the published order tests write on into each other's tables")
        .hint("leave out the order: each pass begins with new tables"));
    }
    Ok(())
}

/// Why servers that already run cannot have passes.
fn remote() -> Problem {
    Problem::new("passes without a break need servers that deltabench starts")
        .detail("while one server works, deltabench stops the others")
        .hint("name versions or builds, for example postgres:18")
}

/// A request whose servers work for these seconds without a break in each block.
///
/// Errors: passes or slices that are too short or too long, a workload that uses up its orders.
fn in_passes(
    request: Request,
    seconds: f64,
    blocks: Option<u32>,
    slice_ms: Option<u32>,
) -> Result<Request, Problem> {
    if seconds < LEAST_SECONDS {
        let what = format!("{seconds:.0} s are too short for checkpoints and vacuum to show");
        return Err(
            Problem::new(what).hint(format!("let a pass last {LEAST_SECONDS:.0} s or more"))
        );
    }
    let slice_ms = slice_ms.unwrap_or(SLICE_MS);
    if f64::from(slice_ms) / 1e3 > seconds / LEAST_SLICES {
        return Err(Problem::new(format!(
            "slices of {slice_ms} ms are too long for passes of {seconds:.0} s"
        ))
        .hint(format!(
            "leave out the length of slices: it is {SLICE_MS} ms"
        )));
    }
    let timing = Timing {
        blocks: blocks.unwrap_or(PASSES),
        slice_ms,
        visit_seconds: seconds,
        warmup_seconds: match request.timing.warmup_chosen {
            true => request.timing.warmup_seconds,
            false => WARMUP_SECONDS,
        },
        connections_per_visit: 1,
        sustained: true,
        ..request.timing
    };
    Ok(Request {
        timing,
        stopping: Stopping::Fixed,
        ..request
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        conditions: Conditions,
    }

    fn configured(options: &[&str]) -> Result<Conditions, Problem> {
        let words = std::iter::once(&"passes").chain(options);
        let mut conditions = Alone::try_parse_from(words).unwrap().conditions;
        configure(Some("5m"), &mut conditions).map(|()| conditions)
    }

    #[test]
    fn the_distance_of_checkpoints_is_that_of_the_user_if_he_has_one() {
        let usual = configured(&[]).unwrap();
        assert_eq!(usual.settings, ["checkpoint_timeout=100s"]);
        assert_eq!(usual.configuration.as_deref(), Some(CONFIGURATION));
        for own in ["checkpoint_timeout=30min", " Checkpoint_Timeout = 30min"] {
            assert_eq!(configured(&["--set", own]).unwrap().settings, [own]);
        }
        let other = configured(&["--set", "checkpoint_timeout_x=1"]).unwrap();
        assert_eq!(other.settings.len(), 2);
        let refused = configured(&["--candidate-config", "default"]).unwrap_err();
        assert!(refused.hint.unwrap().contains("--config cx10a"));
        let both = ["--config", "cx10a", "--candidate-config", "default"];
        assert!(configured(&both).unwrap().settings.is_empty());
    }
}
