//! Where a server's processor time goes: samples of its stacks at even steps of time.
//!
//! The event is on the *cores* that the servers run on, not on their processes. On a process the kernel arms
//! a timer at each switch to it, which makes a short operation half as dear again and moves samples towards
//! the end of it; on a core the timer runs on, and what is sampled is told apart by process afterwards. The
//! kind on processes is for users without rights, and comes with a warning.
//!
//! Of each sample the kernel gives the registers and the top of the stack, from which [`crate::unwind`] finds
//! the callers: servers are built without frame pointers. It gives its own callers itself.
//!
//! Code that runs with interrupts off is never hit. Its time shows where they come on again; so frames of
//! the kernel are told as system calls only.
//!
//! Source: perf_event_open(2).

mod cost;
mod record;
mod refusal;
mod ring;

pub use cost::{CostGuard, RateAdvice};
pub use record::{Registers, Sample};

use crate::affinity::own_affinity;
use crate::perf_event::{Attributes, Place, flag, open};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::ProfileScope;
use deltabench_model::units::{index, to_u64};
use record::{Record, records};
use refusal::{hanging_kernel, refused};
use ring::Ring;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Samples a second where nothing else is asked for: far below what kernels throttle, and 1 % of the time of
/// an operation.
pub const DEFAULT_RATE: u32 = 997;

/// Bytes of stack with each sample: of the stacks of point queries, 4 KiB hold 80 %, 6 KiB 95 % and 8 KiB
/// 99.9 %.
const STACK_BYTES: u32 = 8192;

/// Bytes of a sample in the ring, at most about: its stack, registers, and the kernel's callers.
const SAMPLE_BYTES: f64 = 9000.0;

/// Least bytes of a ring: 500 samples, those of other programs too, which make a slice longer.
const RING_BYTES_MIN: f64 = 4.0 * 1024.0 * 1024.0;

/// Most bytes of a ring: 2000 samples.
const RING_BYTES_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: (u32, u64) = (1, 0);

/// Bits of `sample_type`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CHAIN: u64 = 1 << 5;
const REGISTERS: u64 = 1 << 12;
const STACK: u64 = 1 << 13;

/// `ioctl` requests of an event: `_IO('$', n)`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// What is to be sampled.
#[derive(Debug, Clone, Copy)]
pub struct ProfileSpec<'a> {
    /// Whose time.
    pub scope: ProfileScope,
    /// The cores that the servers run on.
    pub cores: &'a [usize],
    /// The processes, for [`ProfileScope::Process`]; those that are started later are not sampled.
    pub pids: &'a [u32],
    /// Samples a second and core.
    pub rate: u32,
    /// Seconds that a slice takes, at most about.
    pub slice_seconds: f64,
}

/// Whose time this machine lets us sample.
///
/// Errors: nobody's, with the way out; a kernel that may hang, unless `forced`.
pub fn may_sample(forced: bool) -> Result<ProfileScope, Problem> {
    let release = deltabench_proc::kernel::release().unwrap_or_default();
    hanging_kernel(&release, forced)?;
    let cores = own_affinity()?;
    let spec = ProfileSpec {
        scope: ProfileScope::Core,
        cores: cores.get(..1).unwrap_or_default(),
        pids: &[std::process::id()],
        rate: DEFAULT_RATE,
        slice_seconds: 0.0,
    };
    Profiler::open_best(&spec).map(|profiler| profiler.scope())
}

/// An event that samples, off until [`Profiler::start`].
#[derive(Debug)]
pub struct Profiler {
    scope: ProfileScope,
    rings: Vec<Ring>,
    /// Every event, those that own a ring too.
    events: Vec<File>,
    buffer: Vec<u8>,
}

impl Profiler {
    /// Opens the event on the cores, or where that is not allowed on the processes.
    ///
    /// Errors: neither is allowed; the way out is that of the better kind.
    pub fn open_best(spec: &ProfileSpec<'_>) -> Result<Self, Problem> {
        let of = |scope| Self::open(&ProfileSpec { scope, ..*spec });
        of(ProfileScope::Core).or_else(|refused| of(ProfileScope::Process).map_err(|_| refused))
    }

    /// Opens the event on each core.
    ///
    /// Errors: what the kernel does not allow, with the way out; no core; a machine whose registers are not
    /// known.
    pub fn open(spec: &ProfileSpec<'_>) -> Result<Self, Problem> {
        let attributes = attributes(spec);
        let mut profiler = Self {
            scope: spec.scope,
            rings: Vec::new(),
            events: Vec::new(),
            buffer: Vec::new(),
        };
        for &core in spec.cores {
            profiler
                .open_on(&attributes, spec, core)
                .map_err(|error| refused(&error, spec.scope))?;
        }
        if profiler.rings.is_empty() {
            return Err(Problem::new("cannot sample a server").detail("it has no core or process"));
        }
        Ok(profiler)
    }

    /// The events of one core share a ring: only those of one core may.
    fn open_on(
        &mut self,
        attributes: &Attributes,
        spec: &ProfileSpec<'_>,
        core: usize,
    ) -> std::io::Result<()> {
        let pids: Vec<Option<u32>> = match spec.scope {
            ProfileScope::Core => vec![None],
            ProfileScope::Process => spec.pids.iter().copied().map(Some).collect(),
        };
        let mut owner: Option<i32> = None;
        for pid in pids {
            let place = Place {
                pid,
                core: Some(core),
            };
            let event = match open(attributes, place) {
                Ok(event) => event,
                // It has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) => return Err(error),
            };
            match owner {
                None => {
                    self.rings.push(Ring::map(&event, ring_bytes(spec))?);
                    owner = Some(event.as_raw_fd());
                }
                Some(owner) => {
                    let owner = libc::c_ulong::try_from(owner).unwrap_or(0);
                    control(&event, SET_OUTPUT, owner)?;
                }
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Whose time is sampled.
    pub fn scope(&self) -> ProfileScope {
        self.scope
    }

    /// Samples from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(&self) -> std::io::Result<()> {
        self.events
            .iter()
            .try_for_each(|event| control(event, ENABLE, 0))
    }

    /// Samples no more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn stop(&self) -> std::io::Result<()> {
        self.events
            .iter()
            .try_for_each(|event| control(event, DISABLE, 0))
    }

    /// Hands over what was sampled since the last time, and says how many samples had no room. Do it after a
    /// slice, never during one.
    pub fn drain(&mut self, each: &mut dyn FnMut(&Sample<'_>)) -> u64 {
        let mut missing = 0;
        for ring in &mut self.rings {
            ring.take(&mut self.buffer);
            for record in records(&self.buffer, self.scope == ProfileScope::Core) {
                match record {
                    Record::Sample(sample) => each(&sample),
                    Record::Lost(lost) => missing += lost,
                    Record::Other => {}
                }
            }
        }
        missing
    }
}

fn attributes(spec: &ProfileSpec<'_>) -> Attributes {
    let (kind, config) = CPU_CLOCK;
    let (sample_type, flags) = match spec.scope {
        ProfileScope::Core => (CHAIN, flag::EXCLUDE_CHAIN_USER | flag::EXCLUDE_IDLE),
        ProfileScope::Process => (
            0,
            flag::USER_ONLY | flag::EXCLUDE_CHAIN_KERNEL | flag::EXCLUDE_CHAIN_USER,
        ),
    };
    Attributes {
        kind,
        config,
        sample_period: period_ns(spec.rate),
        sample_type: sample_type | IP | TID | TIME | REGISTERS | STACK,
        flags: flags | flag::DISABLED,
        sample_regs_user: record::WANTED_REGISTERS,
        sample_stack_user: STACK_BYTES,
        ..Attributes::default()
    }
}

/// Nanoseconds between samples: a prime, so that they never go in step with anything that ticks.
fn period_ns(rate: u32) -> u64 {
    let wanted = to_u64(1e9 / f64::from(rate.max(1)));
    (2..=wanted).rev().find(|&n| is_prime(n)).unwrap_or(2)
}

fn is_prime(n: u64) -> bool {
    let divides = |d: u64| n.is_multiple_of(d);
    !(2..).take_while(|d| d * d <= n).any(divides)
}

/// Room for twice the samples of a slice: a power of two, as the kernel wants it.
fn ring_bytes(spec: &ProfileSpec<'_>) -> usize {
    let samples = spec.slice_seconds.max(0.05) * f64::from(spec.rate);
    let wanted = (2.0 * samples * SAMPLE_BYTES).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    index(to_u64(wanted).next_power_of_two())
}

fn control(event: &File, request: libc::c_ulong, argument: libc::c_ulong) -> std::io::Result<()> {
    // SAFETY: these requests take a number and touch no memory of ours; the descriptor is open.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), request, argument) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{pin_self, restore};
    use crate::sampler::own_cpu_ns;
    use deltabench_model::units::{count, to_f64};
    use deltabench_testkit::not_tested;
    use std::time::{Duration, Instant};

    /// Samples that are enough to see how they lie.
    const ENOUGH: usize = 100;
    /// How long a busy machine may take for them.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn spin_while(goes_on: impl Fn() -> bool) {
        while goes_on() {
            std::hint::spin_loop();
        }
    }

    /// A time in which was sampled, and when this thread was met in it.
    struct Sampled {
        took: Duration,
        cpu_ns: u64,
        own_ns: Vec<u64>,
    }

    /// Samples for a while and not for a while before and after, while this thread spins.
    fn sampled(profiler: &mut Profiler, tid: u32) -> Sampled {
        let spin_unsampled = || {
            let until = own_cpu_ns() + 10_000_000;
            spin_while(|| own_cpu_ns() < until);
        };
        spin_unsampled();
        let (began, before) = (Instant::now(), own_cpu_ns());
        profiler.start().unwrap();
        // Of the clock and not of the CPU: the ring has room for all that the core does meanwhile.
        let until = Instant::now() + Duration::from_millis(50);
        spin_while(|| Instant::now() < until);
        profiler.stop().unwrap();
        let (took, cpu_ns) = (began.elapsed(), own_cpu_ns() - before);
        spin_unsampled();
        let mut own_ns = Vec::new();
        let missing = profiler.drain(&mut |sample| {
            if sample.pid != std::process::id() || sample.tid != tid {
                return;
            }
            let registers = sample.registers.unwrap();
            assert!(registers.ip > 0 && registers.sp > 0);
            assert!(!sample.stack.is_empty() && sample.stack.len() <= 8192);
            own_ns.push(sample.time_ns);
        });
        assert_eq!((missing, profiler.drain(&mut |_| {})), (0, 0));
        Sampled {
            took,
            cpu_ns,
            own_ns,
        }
    }

    /// Samples of this thread while it spins on one core, until there are enough.
    fn own_samples(scope: ProfileScope) -> Option<Vec<Sampled>> {
        let before = own_affinity().unwrap();
        pin_self(&before[..1]).unwrap();
        // SAFETY: plain system call.
        let tid = u32::try_from(unsafe { libc::gettid() }).unwrap();
        let spec = ProfileSpec {
            scope,
            cores: &before[..1],
            pids: &[tid],
            rate: DEFAULT_RATE,
            slice_seconds: 0.2,
        };
        let opened = Profiler::open(&spec);
        let samples = opened.map(|mut profiler| {
            let (began, mut all, mut number) = (Instant::now(), Vec::new(), 0);
            while number < ENOUGH && began.elapsed() < PATIENCE {
                let one = sampled(&mut profiler, tid);
                number += one.own_ns.len();
                all.push(one);
            }
            all
        });
        restore(&before).unwrap();
        samples
            .map_err(|problem| {
                assert!(problem.hint.is_some(), "{problem}");
                not_tested("samples of a thread's time", problem);
            })
            .ok()
    }

    #[test]
    fn time_of_a_thread_is_sampled_evenly_and_only_between_start_and_stop() {
        for scope in [ProfileScope::Core, ProfileScope::Process] {
            let Some(all) = own_samples(scope) else {
                continue;
            };
            let rate = f64::from(DEFAULT_RATE);
            for Sampled { took, own_ns, .. } in &all {
                let number = to_f64(count(own_ns.len()));
                assert!(
                    number <= took.as_secs_f64() * rate + 2.0,
                    "{number} in {took:?}"
                );
                let (Some(first), Some(last)) = (own_ns.first(), own_ns.last()) else {
                    continue;
                };
                let between = Duration::from_nanos(last - first);
                assert!(between <= *took, "{scope:?}: {between:?} in {took:?}");
            }
            let number: usize = all.iter().map(|one| one.own_ns.len()).sum();
            assert!(number >= ENOUGH, "{scope:?}: {number} in {PATIENCE:?}");
            // While the machine's owner has the core, CPU time may pass without samples.
            let cpu = Duration::from_nanos(all.iter().map(|one| one.cpu_ns).sum());
            let least = cpu.as_secs_f64() * rate / 10.0;
            assert!(
                to_f64(count(number)) >= least,
                "{scope:?}: {number} in {cpu:?}"
            );
        }
    }

    #[test]
    fn the_period_is_a_prime_near_the_rate() {
        assert_eq!(period_ns(997), 1_003_003);
        assert_eq!(period_ns(998), 1_001_989);
        assert!(period_ns(u32::MAX) == 2 && period_ns(0) > 900_000_000);
    }

    #[test]
    fn a_ring_has_room_for_a_slice_and_is_a_power_of_two() {
        let of = |slice_seconds, rate| {
            ring_bytes(&ProfileSpec {
                scope: ProfileScope::Core,
                cores: &[],
                pids: &[],
                rate,
                slice_seconds,
            })
        };
        assert_eq!(of(0.05, 997), 1 << 22);
        assert_eq!(of(0.5, 997), 1 << 24);
        assert_eq!(of(60.0, 997), 1 << 24);
    }
}
