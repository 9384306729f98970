//! Where the time of servers goes, sampled in slices that do not count.
//!
//! The event costs CPU of the server, little but something; so it is never on while a slice is measured, and
//! what it costs is found out first.

use super::host_problem;
use deltabench_model::plan::{ProfilePlan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::{SampledStacks, Taken};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::profile::{CostGuard, ProfileScope, ProfileSpec, Profiler, RateAdvice};
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

/// The event on the cores of a visit's servers, and what it has seen of each.
pub(super) struct Profiling {
    plan: ProfilePlan,
    rate: u32,
    cores: Vec<usize>,
    slice_seconds: f64,
    profiler: Profiler,
    reader: StackReader,
    servers: Vec<Sampled>,
    cost: Option<f64>,
    unfit: bool,
}

impl Profiling {
    /// Opens the event: on the cores, or where that is not allowed and `plan` lets it, on the processes.
    ///
    /// Errors: neither is allowed.
    pub(super) fn open(
        plan: ProfilePlan,
        cores: &[usize],
        servers: &[(ServerId, u32)],
        slice_seconds: f64,
    ) -> Result<Self, Problem> {
        let mut reader = StackReader::new();
        let mut sampled = Vec::new();
        for &(server, postmaster) in servers {
            let pids = process_tree(postmaster).map_err(host_problem)?;
            sampled.push(Sampled {
                server,
                postmaster,
                stacks: ServerStacks::of(&pids, &mut reader),
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
        let profiler = Profiler::open(&spec).or_else(|refused| {
            let biased = ProfileSpec {
                scope: ProfileScope::Process,
                ..spec
            };
            // Which of both is refused for what is the same to whoever reads it: the better kind's way out.
            Profiler::open(&biased).map_err(|_| refused)
        })?;
        Ok(Self {
            plan,
            rate: plan.rate,
            cores: cores.to_vec(),
            slice_seconds,
            profiler,
            reader,
            servers: sampled,
            cost: None,
            unfit: false,
        })
    }

    /// Whether what it costs is still to be found out. The biased kind is known to be dear.
    pub(super) fn wants_guard(&self) -> bool {
        self.cost.is_none() && self.profiler.scope() == ProfileScope::Core
    }

    /// Takes what slices with and without the event have shown; the rate may fall, and then is looked at
    /// again.
    ///
    /// Errors: the event cannot be opened again.
    pub(super) fn judge(&mut self, guard: &CostGuard) -> Result<(), Problem> {
        let cost = guard.cost().unwrap_or(0.0);
        match guard.advice(self.rate) {
            Some(RateAdvice::Halve(rate)) => {
                self.rate = rate;
                self.profiler = Profiler::open(&ProfileSpec {
                    scope: ProfileScope::Core,
                    cores: &self.cores,
                    pids: &[],
                    rate,
                    slice_seconds: self.slice_seconds,
                })?;
            }
            Some(RateAdvice::Unfit) => {
                self.cost = Some(cost);
                self.unfit = true;
            }
            Some(RateAdvice::Keep(_)) | None => self.cost = Some(cost),
        }
        Ok(())
    }

    /// Rounds of slices to take.
    pub(super) fn rounds(&self) -> u64 {
        if self.unfit {
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
        let reader = &mut self.reader;
        let drained = self.profiler.drain(&mut |sample| {
            if !own.pids.contains(&sample.pid) {
                own.others += 1;
                return;
            }
            if own.stacks.is_unknown(sample) {
                own.stacks.look_again(&[sample.pid], reader);
            }
            own.stacks.add(sample, reader);
        });
        own.lost += drained.lost;
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
            rate,
            profiler,
            reader,
            servers,
            cost,
            ..
        } = self;
        let of = |mut one: Sampled| {
            let counts = one.stacks.take();
            let taken = Taken {
                scope: profiler.scope().word().to_owned(),
                rate,
                cost,
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
