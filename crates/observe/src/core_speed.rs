//! How fast a core is right now: the same arithmetic, and the same walk through memory, again and again.
//!
//! A guest beside us on the same physical core takes from what this core can do at once, and one that fills
//! the shared cache makes each miss longer. Neither is in steal, in pressure or in anybody's CPU time; only
//! doing the same work again shows it. So does a clock that changes, and a core that is not like the others.

use deltabench_model::fact::CoreSpeed;
use deltabench_model::units::{count, index, to_f64, to_u64};
use std::arch::asm;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Steps of arithmetic that are timed together: some 8 µs, so that few are interrupted and the clock does not
/// count.
const STEPS: u32 = 10_000;

/// Time after which a core that was idle has come up to its clock.
const RAMP: Duration = Duration::from_millis(30);

/// What is walked through: 64 MB, more than most cores' share of the last cache. With pages of 4 kB a hop
/// also looks up its page, as a server without huge pages does.
const PLACES: usize = 1 << 20;

/// A place is a cache line, so that no two hops share one.
const LINE: usize = 64 / size_of::<u32>();

/// Hops of a walk: 1 to 4 ms.
const HOPS: u32 = 10_000;

/// Looks for about so long, busy, on the core or cores that the calling thread may run on. Getting ready
/// takes 30 ms before, and the walk some more after.
///
/// The first look of a process takes some 20 ms more, and its 64 MB stay.
pub fn core_speed(length: Duration) -> CoreSpeed {
    let began = Instant::now();
    while began.elapsed() < RAMP {
        timed_arithmetic();
    }
    let started = Instant::now();
    let mut times = vec![timed_arithmetic()];
    while started.elapsed() < length {
        times.push(timed_arithmetic());
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = index(to_u64(share * to_f64(count(times.len() - 1))));
        times.get(place).copied().unwrap_or(f64::NAN)
    };
    CoreSpeed {
        arithmetic_ns: [at(0.05), at(0.5), at(0.95)],
        memory_ns: timed_walk(),
    }
}

/// Nanoseconds of one step.
fn timed_arithmetic() -> f64 {
    let started = Instant::now();
    black_box(arithmetic(black_box(STEPS)));
    started.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
}

/// Eight sums of which each step needs two others: enough at once to fill a core that is alone, so that a
/// second hardware thread on it takes from this one.
fn arithmetic(steps: u32) -> u64 {
    let mut sums = [1_u64, 2, 3, 4, 5, 6, 7, 8];
    for step in 0..u64::from(steps) {
        let [a, b, c, d, e, f, g, h] = &mut sums;
        *a = a.wrapping_add(step);
        *b ^= step;
        *c = c.wrapping_add(*a);
        *d ^= *b;
        *e = e.wrapping_add(step.wrapping_mul(3));
        *f ^= step + 1;
        *g = g.wrapping_add(*f);
        *h ^= *e;
        // SAFETY: no instruction at all; it only makes the compiler have all eight in each step, which it
        // would otherwise work out for many steps at once.
        unsafe {
            asm!(
                "/* {0} {1} {2} {3} {4} {5} {6} {7} */",
                in(reg) *a, in(reg) *b, in(reg) *c, in(reg) *d,
                in(reg) *e, in(reg) *f, in(reg) *g, in(reg) *h,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// Nanoseconds of one hop.
fn timed_walk() -> f64 {
    static PATH: OnceLock<Vec<u32>> = OnceLock::new();
    // Each walk begins where the last one ended, or its places would be in a cache still.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let path = PATH.get_or_init(path);
    let mut place = NEXT.load(Ordering::Relaxed);
    let started = Instant::now();
    for _ in 0..HOPS {
        place = path.get(index(u64::from(place))).copied().unwrap_or(0);
    }
    let took = started.elapsed().as_secs_f64() * 1e9 / f64::from(HOPS);
    NEXT.store(black_box(place), Ordering::Relaxed);
    took
}

/// At each line the place of the next one: all lines in one circle, in an order that no prefetcher guesses.
///
/// Source: a linear congruential sequence modulo a power of two visits everything if its factor is 1 more
/// than a multiple of 4 and its increment is odd (Hull & Dobell 1962).
fn path() -> Vec<u32> {
    let mut path = vec![0_u32; PLACES * LINE];
    let next = |line: usize| (line.wrapping_mul(0x2545_F491).wrapping_add(0x3C6E_F35F)) % PLACES;
    for line in 0..PLACES {
        let to = u32::try_from(next(line) * LINE).unwrap_or(0);
        if let Some(place) = path.get_mut(line * LINE) {
            *place = to;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_path_comes_by_every_line_once() {
        let path = path();
        let mut seen = HashSet::new();
        let mut place = 0_usize;
        while seen.insert(place) {
            assert_eq!(place % LINE, 0);
            place = usize::try_from(path[place]).unwrap();
        }
        assert_eq!((seen.len(), place), (PLACES, 0));
    }

    #[test]
    fn a_look_has_times_of_this_world_in_order() {
        let speed = core_speed(Duration::from_millis(5));
        let [fast, typical, slow] = speed.arithmetic_ns;
        assert!(
            0.0 < fast && fast <= typical && typical <= slow,
            "{speed:?}"
        );
        // A core does a step of eight operations in 0.1 to 1000 ns, and a hop takes as long or longer.
        assert!(fast > 0.1 && typical < 1e3, "{speed:?}");
        assert!(speed.memory_ns > 0.5 && speed.memory_ns < 1e6, "{speed:?}");
        assert!(speed.swing() >= 1.0);
    }

    #[test]
    fn arithmetic_is_done_step_by_step() {
        // 1 + 0, 2 ^ 0, 3 + 1, 4 ^ 2, 5 + 0, 6 ^ 1, 7 + 7, 8 ^ 5
        assert_eq!(arithmetic(1), 1 + 2 + 4 + 6 + 5 + 7 + 14 + 13);
        assert_ne!(arithmetic(1000), arithmetic(1001));
    }
}
