//! What a plan will take: said before anything is started.

use crate::host::Host;
use crate::occupancy::{
    AtOnce, Machine, Needs, Occupancy, PlannedTime, by_memory, check, decide, own_servers,
};
use crate::session::benchmark::Benchmark;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index, to_f64};
use std::time::Duration;

/// What a plan will take on this host, about.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Servers, the placebo included.
    pub servers: u64,
    /// How many of them run at a time.
    pub occupancy: Occupancy,
    /// Memory of the servers that run at a time, bytes.
    pub memory_bytes: u64,
    /// Disk of all that deltabench starts, at most, bytes.
    pub disk_bytes: u64,
    /// Loading and copying.
    pub set_up: Duration,
    /// Measuring at most: looks may end cells before. One cell at least, however little time is allowed.
    pub measuring: Duration,
    /// What this host lacks for it, if anything: too little memory or disk.
    pub lacks: Option<Problem>,
}

/// How many of the plan's servers run at a time on this host.
///
/// Errors: not even one fits into memory, too little disk for the data of all, or a socket path that is too
/// long, with how much is missing; workloads whose tables cannot be loaded together.
pub fn occupancy(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    host: &Host,
) -> Result<Occupancy, Problem> {
    decide(plan, host, &benchmark.needs(plan)?)
}

/// How many servers of `plan` fit into the memory of a machine together, if not all of them do. Absent if
/// they fit, if they run one at a time anyway, and if nobody knows the memory.
///
/// Errors: workloads whose tables cannot be loaded together, shared buffers that a limit leaves no room for.
pub fn fitting_together(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    machine: &Machine,
) -> Result<Option<usize>, Problem> {
    let needs = benchmark.needs(plan)?;
    let (Some(memory), true) = (machine.memory_bytes, needs.at_once != AtOnce::One) else {
        return Ok(None);
    };
    let fitting = memory / needs.memory_bytes.max(1);
    Ok((own_servers(plan) > fitting).then(|| index(fitting)))
}

/// What `plan` will take on `host`.
///
/// Errors: workloads whose tables cannot be loaded together, shared buffers that a limit leaves no room for.
pub fn estimate(plan: &Plan, benchmark: &dyn Benchmark, host: &Host) -> Result<Estimate, Problem> {
    let needs = benchmark.needs(plan)?;
    let lacks = check(plan, host, &needs).err();
    estimated(plan, benchmark, (&Machine::here(), &needs), lacks)
}

/// What `plan` will take on a machine that is not here.
///
/// Errors: those of [`estimate`].
pub fn estimate_on(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    machine: &Machine,
) -> Result<Estimate, Problem> {
    let needs = benchmark.needs(plan)?;
    let lacks = machine.check(plan, &needs).err();
    estimated(plan, benchmark, (machine, &needs), lacks)
}

fn estimated(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    (machine, needs): (&Machine, &Needs),
    lacks: Option<Problem>,
) -> Result<Estimate, Problem> {
    let occupancy = by_memory(plan, needs, machine.memory_bytes);
    let own = own_servers(plan);
    let at_once = at_once(plan, occupancy);
    let time = planned_time(plan, benchmark, occupancy, machine.cores)?;
    let allowed = plan.timing.deadline_seconds.unwrap_or(f64::INFINITY);
    let measuring = within(time.measuring, plan, allowed - time.set_up);
    Ok(Estimate {
        servers: count(plan.servers.len()),
        occupancy,
        memory_bytes: at_once.saturating_mul(needs.memory_bytes),
        disk_bytes: needs.disk_once_bytes + own.saturating_mul(needs.disk_bytes),
        set_up: Duration::from_secs_f64(time.set_up),
        measuring: Duration::from_secs_f64(measuring),
        lacks,
    })
}

/// How long a plan takes on a machine with so many cores, about, whatever time is allowed.
///
/// Errors: workloads whose tables cannot be loaded together.
pub(crate) fn planned_time(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    occupancy: Occupancy,
    cores: u64,
) -> Result<PlannedTime, Problem> {
    let loaded = at_once(plan, occupancy).max(1);
    benchmark.time(plan, occupancy, cores.min(loaded))
}

/// How many servers of our own run at a time.
fn at_once(plan: &Plan, occupancy: Occupancy) -> u64 {
    match occupancy {
        Occupancy::Together => own_servers(plan),
        Occupancy::Rotated => 1,
    }
}

/// Seconds of measuring in the time that is left for it. The first block always begins. If its cells can be
/// visited one by one and it takes longer than all the time that is allowed, it ends with the visit in which
/// that happens ([`crate::session::Session::is_overdue`]).
fn within(measuring: f64, plan: &Plan, left: f64) -> f64 {
    let block = measuring / f64::from(plan.timing.blocks.max(1));
    let cell = block / to_f64(count(plan.cells.len().max(1)));
    let first = match plan.timing.deadline_seconds {
        Some(allowed) if !plan.has_whole_steps() && !plan.work.is_embedded() => {
            block.min(allowed + cell)
        }
        _ => block,
    };
    measuring.min(left.max(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    #[test]
    fn a_budget_cuts_the_time_but_not_the_first_block() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.timing.blocks = 4;
        assert!((within(400.0, &plan, f64::INFINITY) - 400.0).abs() < 1e-9);
        assert!((within(400.0, &plan, 250.0) - 250.0).abs() < 1e-9);
        assert!((within(400.0, &plan, -5.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_first_block_that_is_longer_than_all_the_time_ends_after_a_cell() {
        let mut plan = plan_of(&["a", "a", "b"], 10);
        plan.timing.blocks = 4;
        plan.timing.deadline_seconds = Some(1.0);
        // A block of 100 s, 10 s for each cell.
        assert!((within(400.0, &plan, -5.0) - 11.0).abs() < 1e-9);
        plan.timing.deadline_seconds = Some(95.0);
        assert!((within(400.0, &plan, 20.0) - 100.0).abs() < 1e-9);
    }
}
