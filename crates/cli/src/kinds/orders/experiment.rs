//! `[orders]` of an experiment, as a request has it.

use super::passes::only;
use super::{data, growth};
use crate::kinds::factor::factor;
use deltabench_experiment::{Experiment, Part};
use deltabench_kinds::orders::setup::{MAX_TRIES, Wanted, check, setup};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_run::planning::Request;

/// Gives a request what the file says of order entry, if it does.
///
/// Errors: transactions that are not there, a size that depends on memory that is not known.
pub fn apply(experiment: &Experiment, part: &Part, request: &mut Request) -> Result<(), Problem> {
    let Some(own) = &experiment.kinds.orders else {
        return Ok(());
    };
    let setup = setup(&Wanted {
        warehouses: factor(part.scale, request.limits.memory_bytes, growth())?,
        form: own.form,
        only: only(
            experiment.measurement.sustained_seconds.is_some(),
            &own.transactions,
        )?,
        foreign_keys: own.foreign_keys,
        mode: own.mode,
        max_tries: own.max_tries.unwrap_or(MAX_TRIES),
        latency_limit_ms: own.latency_limit_ms,
    })?;
    check(&setup, &request.clients)?;
    request.data = data(&setup);
    request.work = Work::Orders(setup);
    Ok(())
}
