//! The runs of a calibration, on real servers.

use super::CalibrationRun;
use crate::arguments::selfcheck::CalibrateArguments;
use crate::bench::Bench;
use crate::clock::{now, run_name};
use crate::config::Config;
use crate::failure::Failure;
use crate::host::swept_host;
use crate::request::{percent, small, time};
use crate::store::open_store;
use crate::targets::resolve_servers;
use crate::{interrupt, output};
use deltabench_model::plan::Role;
use deltabench_model::problem::Problem;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_workload::Library;

/// `deltabench calibrate`: runs whose truth is known.
pub fn measured(arguments: &CalibrateArguments, config: &Config) -> Result<u8, Failure> {
    super::check(arguments).map_err(Failure::Refused)?;
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
    let mut run = |wanted: &CalibrationRun| {
        let request = calibration(arguments, wanted).map_err(Failure::Refused)?;
        let mut plan = planning::plan(request, &target, std::slice::from_ref(&target), &library)
            .map_err(Failure::Refused)?;
        for server in &mut plan.servers {
            let is_candidate = server.role == Role::Candidate;
            server.burn_ns = wanted
                .burn_ns
                .map(|burn_ns| if is_candidate { burn_ns } else { 0 });
        }
        let name = format!("{}-{}", run_name(now().0, plan.seed), wanted.number);
        let (run, end) = bench.measure_new(&plan, &library, Some(name), false)?;
        if end == SessionEnd::Interrupted {
            return Ok(None);
        }
        let comparison = output::analyse_run(&run, &plan, &bench.store)?.comparison;
        Ok(Some((plan, comparison)))
    };
    super::calibrate(arguments, &mut run)
}

/// The request of a run whose truth is known: a target against itself, one client.
///
/// Errors: a percentage or time that cannot be read.
pub fn calibration(
    arguments: &CalibrateArguments,
    run: &CalibrationRun,
) -> Result<Request, Problem> {
    let mut request = small(arguments.only.clone(), arguments.rows, run.blocks, run.seed);
    request.timing.deadline_seconds = arguments.budget.as_deref().map(time).transpose()?;
    request.delta = arguments.delta.as_deref().map(percent).transpose()?;
    Ok(request)
}
