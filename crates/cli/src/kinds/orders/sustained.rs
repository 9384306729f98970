//! `--sustained`: each server works for minutes without a break, one after another.

use super::arguments::OrdersArguments;
use crate::request::time;
use deltabench_kinds::orders::setup::MIX;
use deltabench_model::plan::{Stopping, Timing};
use deltabench_model::problem::Problem;
use deltabench_run::planning::Request;

/// The configuration of servers that work without a break, unless the user names one: a published one for
/// any machine. The steady one has neither checkpoints nor autovacuum.
pub(super) const CONFIGURATION: &str = "cx10a";

/// Passes of a run that does not say how many: as many as a verdict needs.
const PASSES: u32 = 6;

/// Milliseconds of a slice: a point of the throughput over time.
const SLICE_MS: u32 = 1000;

/// Seconds that are thrown away at the start of a pass: connections, plans, first touches of pages.
const WARMUP_SECONDS: f64 = 5.0;

/// Seconds of a pass at least.
const LEAST_SECONDS: f64 = 10.0;

/// A request with passes without a break, if they are asked for.
///
/// Errors: a time that cannot be read or is too short, servers that cannot be stopped.
pub(super) fn sustained(arguments: &OrdersArguments, request: Request) -> Result<Request, Problem> {
    let Some(text) = &arguments.sustained else {
        return Ok(request);
    };
    let hint = "write for example --sustained 5m";
    let seconds = time(text).map_err(|problem| problem.hint(hint))?;
    if seconds < LEAST_SECONDS {
        let what = format!("{text} is too short for checkpoints and vacuum to show");
        return Err(Problem::new(what).hint(format!("use --sustained {LEAST_SECONDS:.0}s or more")));
    }
    if arguments.quick || arguments.shape.visit_seconds.is_some() {
        return Err(
            Problem::new("--sustained says how long a server works in a block")
                .hint("leave out --quick and --visit-seconds"),
        );
    }
    let mut all = std::iter::once(&arguments.base).chain(&arguments.candidates);
    if all.any(|target| target.starts_with("dsn:")) {
        return Err(
            Problem::new("--sustained needs servers that deltabench starts")
                .detail("while one server works, deltabench stops the others")
                .hint("name versions or builds, for example postgres:18"),
        );
    }
    let timing = Timing {
        blocks: arguments.shape.blocks.unwrap_or(PASSES),
        slice_ms: arguments.shape.slice_ms.unwrap_or(SLICE_MS),
        visit_seconds: seconds,
        warmup_seconds: WARMUP_SECONDS,
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

/// What is measured. Passes of minutes are for the mix unless others are asked for.
pub(super) fn only(arguments: &OrdersArguments) -> Vec<String> {
    match arguments.sustained {
        Some(_) if arguments.only.is_empty() => vec![MIX.to_owned()],
        _ => arguments.only.clone(),
    }
}
