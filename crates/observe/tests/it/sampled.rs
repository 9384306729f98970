//! Samples of real servers: stacks reach their main function, and sampling is cheap.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use deltabench_driver::admin::Client;
use deltabench_model::sampled::ProfileScope;
use deltabench_model::units::to_f64;
use deltabench_observe::profile::{CostGuard, DEFAULT_RATE, ProfileSpec, Profiler};
use deltabench_observe::unwind::{ServerStacks, StackReader};
use deltabench_observe::{CpuMeter, own_affinity, pin_self, pin_tree, restore};
use deltabench_proc::process_tree;
use deltabench_testkit::{Cluster, not_tested};
use std::time::{Duration, Instant};

/// Milliseconds of a slice, and how many are taken of each kind; more of them to measure what it costs.
const SLICE_MS: u64 = 60;

fn slices() -> usize {
    let asked = std::env::var("DELTABENCH_TEST_SAMPLED_SLICES").ok();
    asked.and_then(|number| number.parse().ok()).unwrap_or(6)
}

fn table(cluster: &Cluster) -> Client {
    let limit = Duration::from_secs(60);
    let mut client = Client::connect(&cluster.endpoint(), &cluster.login(), limit).unwrap();
    for sql in [
        "create table t (a int primary key, b int)",
        "insert into t select i, i from generate_series(1, 10000) as i",
        "vacuum analyze t",
    ] {
        client.execute(sql).unwrap();
    }
    client
}

/// CPU of an operation, nanoseconds.
fn slice(client: &mut Client, meter: &mut CpuMeter) -> f64 {
    let before = meter.read();
    let end = Instant::now() + Duration::from_millis(SLICE_MS);
    let mut operations = 0_u32;
    while Instant::now() < end {
        for row in 0..20 {
            let query = format!("select b from t where a = {}", 1 + row * 499);
            client.query(&query).unwrap();
            operations += 1;
        }
    }
    let spent = meter.read().since(&before);
    to_f64(spent.cpu_ns) / f64::from(operations)
}

#[test]
fn stacks_of_a_server_reach_its_main_function() {
    let before = own_affinity().unwrap();
    let core = &before[..1];
    for cluster in Cluster::for_each_target("", &["autovacuum=off"]) {
        let mut client = table(&cluster);
        pin_tree(cluster.pid(), core).unwrap();
        pin_self(core).unwrap();
        let pids = process_tree(cluster.pid()).unwrap();
        let mut meter = CpuMeter::open(cluster.pid()).unwrap();
        let mut reader = StackReader::new();
        let mut stacks = ServerStacks::of(&pids, &mut reader);
        for scope in [ProfileScope::Core, ProfileScope::Process] {
            let spec = ProfileSpec {
                scope,
                cores: core,
                pids: &pids,
                rate: DEFAULT_RATE,
                slice_seconds: 0.06,
            };
            let Ok(mut profiler) = Profiler::open(&spec) else {
                not_tested("what sampling costs", "perf_event_open is not allowed here");
                continue;
            };
            let mut guard = CostGuard::default();
            let mut lost = 0;
            let mut others = 0_u64;
            let mut unwinding = Duration::ZERO;
            slice(&mut client, &mut meter);
            for _ in 0..slices() {
                guard.without.push(slice(&mut client, &mut meter));
                profiler.start().unwrap();
                guard.with.push(slice(&mut client, &mut meter));
                profiler.stop().unwrap();
                let began = Instant::now();
                lost += profiler.drain(&mut |sample| {
                    if pids.contains(&sample.pid) {
                        stacks.add(sample, &mut reader);
                    } else {
                        others += 1;
                    }
                });
                unwinding += began.elapsed();
            }
            let counts = stacks.take();
            let samples = counts.samples();
            let complete = 1.0 - to_f64(counts.truncated) / to_f64(samples);
            let of = |wanted: &str| -> u64 {
                let has = |stack: &[u32]| {
                    let mut names = stack.iter().map(|&number| reader.names.name(number));
                    names.any(|name| name == Some(wanted))
                };
                let seen = counts.stacks.iter().filter(|(stack, _)| has(stack));
                seen.map(|(_, seen)| seen).sum()
            };
            eprintln!(
                "{scope:?}: {samples} samples, {others} of others, {lost} lost, {:.2} % complete in {} \
                 stacks, {:.1} us each to unwind, cost {:+.1} %",
                complete * 100.0,
                counts.stacks.len(),
                unwinding.as_secs_f64() * 1e6 / to_f64(samples),
                guard.cost().unwrap() * 100.0,
            );
            assert!(samples >= 10, "{samples}");
            assert!(complete >= 0.98, "{complete}");
            // A busy machine reads the ring late.
            assert!(lost < samples + others, "{lost}");
            assert!(of("exec_simple_query") * 2 > samples);
            let calls = scope == ProfileScope::Core;
            assert_eq!(of("[sendto]") + of("[epoll_wait]") > 0, calls, "{counts:?}");
        }
        restore(&before).unwrap();
    }
}
