//! Where the time of servers goes, sampled in slices that do not count.
//!
//! The event costs CPU of the server, little but something; so it is never on while a slice is measured, and
//! what it costs is found out first.

use super::host_problem;
use deltabench_model::plan::{ProfilePlan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::{ProfileScope, SampledStacks, Taken};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::profile::{CostGuard, ProfileSpec, Profiler, RateAdvice};
use deltabench_observe::unwind::{ServerStacks, StackReader};
use deltabench_proc::process_tree;
use std::collections::BTreeSet;

/// A server whose time is sampled.
struct Sampled {
    server: ServerId,
    postmaster: u32,
    pids: BTreeSet<u32>,
    stacks: ServerStacks,
    lost: u64,
    others: u64,
}

/// How often is sampled, and what that is known to cost.
#[derive(Debug, Default)]
struct Pace {
    rate: u32,
    /// Whether slices with and without the event have been looked at.
    guarded: bool,
    /// Absent where they could not tell.
    cost: Option<f64>,
    /// Whether it costs too much at any rate.
    unfit: bool,
}

impl Pace {
    /// Takes what slices with and without the event have shown; the rate may fall, and then is looked at
    /// again.
    fn judge(&mut self, guard: &CostGuard) {
        let advice = guard.advice(self.rate);
        if let Some(RateAdvice::Halve(rate)) = advice {
            self.rate = rate;
            return;
        }
        self.guarded = true;
        self.cost = guard.cost();
        self.unfit = advice == Some(RateAdvice::Unfit);
    }
}

/// The event on the cores of a visit's servers, and what it has seen of each.
pub(super) struct Profiling<'r> {
    plan: ProfilePlan,
    pace: Pace,
    cores: Vec<usize>,
    slice_seconds: f64,
    profiler: Profiler,
    reader: &'r mut StackReader,
    servers: Vec<Sampled>,
}

impl<'r> Profiling<'r> {
    /// Opens the event: on the cores, or where that is not allowed and `plan` lets it, on the processes.
    ///
    /// Errors: neither is allowed.
    pub(super) fn open(
        plan: ProfilePlan,
        cores: &[usize],
        servers: &[(ServerId, u32)],
        slice_seconds: f64,
        reader: &'r mut StackReader,
    ) -> Result<Self, Problem> {
        let mut sampled = Vec::new();
        for &(server, postmaster) in servers {
            let pids = process_tree(postmaster).map_err(host_problem)?;
            sampled.push(Sampled {
                server,
                postmaster,
                stacks: ServerStacks::of(&pids, reader),
                pids: pids.into_iter().collect(),
                lost: 0,
                others: 0,
            });
        }
        let pids: Vec<u32> = sampled
            .iter()
            .flat_map(|one| one.pids.iter().copied())
            .collect();
        let spec = ProfileSpec {
            scope: ProfileScope::Core,
            cores,
            pids: &pids,
            rate: plan.rate,
            slice_seconds,
        };
        let profiler = Profiler::open_best(&spec)?;
        Ok(Self {
            plan,
            pace: Pace {
                rate: plan.rate,
                ..Pace::default()
            },
            cores: cores.to_vec(),
            slice_seconds,
            profiler,
            reader,
            servers: sampled,
        })
    }

    /// Whether what it costs is still to be found out. The biased kind is known to be dear.
    pub(super) fn wants_guard(&self) -> bool {
        !self.pace.guarded && self.profiler.scope() == ProfileScope::Core
    }

    /// Takes what slices with and without the event have shown; the rate may fall, and then is looked at
    /// again.
    ///
    /// Errors: the event cannot be opened again.
    pub(super) fn judge(&mut self, guard: &CostGuard) -> Result<(), Problem> {
        self.pace.judge(guard);
        if !self.pace.guarded {
            self.profiler = Profiler::open(&ProfileSpec {
                scope: ProfileScope::Core,
                cores: &self.cores,
                pids: &[],
                rate: self.pace.rate,
                slice_seconds: self.slice_seconds,
            })?;
        }
        Ok(())
    }

    /// Rounds of slices to take.
    pub(super) fn rounds(&self) -> u64 {
        if self.pace.unfit {
            return 0;
        }
        let wanted = f64::from(self.plan.milliseconds) / 1e3;
        to_u64((wanted / self.slice_seconds.max(1e-6)).ceil()).max(1)
    }

    /// Does work with the event on, and throws away what it saw.
    ///
    /// Errors: the kernel's.
    pub(super) fn disturb<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Problem> {
        let done = self.with_event(work)?;
        self.profiler.drain(&mut |_| {});
        Ok(done)
    }

    /// Does work on a server with the event on, and counts the stacks that it saw of it.
    ///
    /// Errors: the kernel's.
    pub(super) fn sample<T>(
        &mut self,
        server: ServerId,
        work: impl FnOnce() -> T,
    ) -> Result<T, Problem> {
        let done = self.with_event(work)?;
        let Some(own) = self.servers.iter_mut().find(|one| one.server == server) else {
            return Ok(done);
        };
        // Workers that were born in the slice; those that ended in it are others.
        own.pids
            .extend(process_tree(own.postmaster).unwrap_or_default());
        let reader = &mut *self.reader;
        let lost = self.profiler.drain(&mut |sample| {
            if !own.pids.contains(&sample.pid) {
                own.others += 1;
                return;
            }
            if own.stacks.is_unknown(sample) {
                own.stacks.look_again(&[sample.pid], reader);
            }
            own.stacks.add(sample, reader);
        });
        own.lost += lost;
        Ok(done)
    }

    fn with_event<T>(&self, work: impl FnOnce() -> T) -> Result<T, Problem> {
        self.profiler.start().map_err(host_problem)?;
        let done = work();
        self.profiler.stop().map_err(host_problem)?;
        Ok(done)
    }

    /// What was seen of each server.
    pub(super) fn finish(self) -> Vec<(ServerId, SampledStacks)> {
        let Self {
            pace,
            profiler,
            reader,
            servers,
            ..
        } = self;
        let of = |mut one: Sampled| {
            let counts = one.stacks.take();
            let taken = Taken {
                scope: profiler.scope(),
                rate: pace.rate,
                cost: pace.cost,
                truncated: counts.truncated,
                lost: one.lost,
                others: one.others,
            };
            let name = |number| reader.names.name(number);
            (one.server, SampledStacks::of(taken, &counts.stacks, name))
        };
        servers.into_iter().map(of).collect()
    }
}

/// CPU of an operation, nanoseconds; absent where it was not measured.
pub(super) fn cpu_ns_per_operation(cpu_ns: Option<u64>, operations: u64) -> Option<f64> {
    (operations > 0).then_some(())?;
    cpu_ns.map(|cpu_ns| to_f64(cpu_ns) / to_f64(operations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(with: f64) -> CostGuard {
        CostGuard {
            with: vec![with; CostGuard::SLICES],
            without: vec![100.0; CostGuard::SLICES],
        }
    }

    #[test]
    fn a_rate_falls_until_it_is_cheap_and_a_cost_that_nobody_knows_is_none() {
        let mut pace = Pace {
            rate: 997,
            ..Pace::default()
        };
        pace.judge(&guard(108.0));
        assert_eq!((pace.rate, pace.guarded), (498, false), "looked at again");
        pace.judge(&guard(102.0));
        assert_eq!((pace.rate, pace.guarded, pace.unfit), (498, true, false));
        assert!((pace.cost.unwrap() - 0.02).abs() < 1e-9);
        for (seen, unfit, cost) in [
            (CostGuard::default(), false, None),
            (guard(120.0), true, Some(20)),
        ] {
            let mut pace = Pace {
                rate: 250,
                ..Pace::default()
            };
            pace.judge(&seen);
            let percent = pace.cost.map(|cost| to_u64((cost * 100.0).round()));
            assert_eq!((pace.guarded, pace.unfit, percent), (true, unfit, cost));
        }
    }
}
