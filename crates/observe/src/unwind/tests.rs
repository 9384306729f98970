//! Stacks of this very program.

use super::*;
use crate::affinity::{own_affinity, pin_self, restore};
use crate::profile::{DEFAULT_RATE, ProfileSpec, Profiler};
use deltabench_model::sampled::ProfileScope;
use deltabench_testkit::not_tested;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Spins below functions of known names; what is behind the call keeps it from being a jump.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn deltabench_test_leaf(milliseconds: u64) -> u64 {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut turns = 0_u64;
    while Instant::now() < end {
        for _ in 0..2000 {
            turns = black_box(turns + 1);
        }
    }
    turns
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn deltabench_test_PostgresMain(milliseconds: u64) -> u64 {
    black_box(deltabench_test_leaf(black_box(milliseconds))) + 1
}

#[test]
fn a_sampled_stack_leads_from_the_leaf_to_its_callers() {
    let before = own_affinity().unwrap();
    pin_self(&before[..1]).unwrap();
    let own = std::process::id();
    // SAFETY: plain system call.
    let tid = u32::try_from(unsafe { libc::gettid() }).unwrap();
    let spec = ProfileSpec {
        scope: ProfileScope::Core,
        cores: &before[..1],
        pids: &[tid],
        rate: DEFAULT_RATE,
        slice_seconds: 0.2,
    };
    let opened = Profiler::open(&spec).or_else(|_| {
        Profiler::open(&ProfileSpec {
            scope: ProfileScope::Process,
            ..spec
        })
    });
    let Ok(mut profiler) = opened else {
        not_tested("sampled stacks", "perf_event_open is not allowed here");
        return;
    };
    let mut reader = StackReader::new();
    let mut stacks = ServerStacks::of(&[own], &mut reader);
    profiler.start().unwrap();
    // Long enough for a machine that gives this thread a fraction of a core.
    black_box(deltabench_test_PostgresMain(black_box(1000)));
    profiler.stop().unwrap();
    restore(&before).unwrap();
    profiler.drain(&mut |sample| {
        if sample.tid == tid {
            assert!(!stacks.is_unknown(sample));
            stacks.add(sample, &mut reader);
        }
    });
    let counts = stacks.take();
    assert_eq!(stacks.take(), StackCounts::default());
    let main = reader.names.number("deltabench_test_PostgresMain");
    let leaf = reader.names.number("deltabench_test_leaf");
    let through: u64 = counts
        .stacks
        .iter()
        .filter(|(stack, _)| stack.first() == Some(&main) && stack.get(1) == Some(&leaf))
        .map(|(_, seen)| seen)
        .sum();
    let all = counts.samples();
    assert!(all >= 20, "{all} samples");
    // A few fall beside: before the call and behind it.
    assert!(
        through * 10 >= all * 9,
        "{through} of {all}: {counts:?} {:?}",
        reader.names
    );
    assert!(counts.truncated * 10 <= all);
}

fn rooted(names: &[&str]) -> Option<usize> {
    let mut known = Names::default();
    let stack: Vec<u32> = names.iter().map(|name| known.number(name)).collect();
    root(&stack, &known)
}

#[test]
fn a_stack_begins_at_the_main_function_of_its_process() {
    let backend = [
        "ExecScan",
        "PostgresMain",
        "BackendMain",
        "PostmasterMain",
        "main",
    ];
    assert_eq!(rooted(&backend), Some(1));
    let worker = [
        "ExecScan",
        "ParallelWorkerMain",
        "BackgroundWorkerMain",
        "PostmasterMain",
    ];
    assert_eq!(rooted(&worker), Some(2));
    assert_eq!(rooted(&["ServerLoop", "PostmasterMain", "main"]), Some(1));
    assert_eq!(rooted(&["ExecScan", "ExecutorRun"]), None);
    assert_eq!(rooted(&[]), None);
}
