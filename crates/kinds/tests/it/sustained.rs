//! Servers that work without a break, each as fast as it can: no pace is asked for.

use crate::lab::{Lab, cell, installations, plan};
use deltabench_kinds::run_half;
use deltabench_model::plan::{DataState, Plan, ServerId, Timing};
use deltabench_model::slice::Slice;
use deltabench_run::clock::{Clock, MachineClock};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_store::{RunState, Store};
use deltabench_workload::Library;
use std::sync::atomic::AtomicBool;

struct Ear(Vec<String>, Vec<BlockProgress>);

impl Observer for Ear {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn visit(&mut self, _: u32, _: u32, _: u32) {}
    fn pilot(&mut self, _: &Pilot) {}
    fn block(&mut self, progress: &BlockProgress) {
        self.1.push(progress.clone());
    }
}

/// A base and a placebo that write for a second each, in slices of 50 ms.
fn planned() -> Plan {
    let installation = installations().pop().unwrap();
    let write = cell("update-index", true, DataState::Fresh);
    let mut plan = plan(&[&installation; 2], vec![write], 1000);
    plan.timing = Timing {
        sustained: true,
        slice_ms: 50,
        slice_jitter: 0.0,
        visit_seconds: 1.0,
        warmup_seconds: 0.1,
        warmup_chosen: true,
        ..plan.timing
    };
    plan
}

#[test]
fn without_a_pace_each_server_works_without_a_break_while_the_other_one_does_not_run() {
    let lab = Lab::new();
    let plan = planned();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    store.create_run("r", &plan, RunState::Running, 0).unwrap();
    let mut ear = Ear(Vec::new(), Vec::new());
    let clock = MachineClock::begin();
    let end = Session {
        plan: &plan,
        benchmark: run_half(&plan.work),
        run: "r",
        store: &mut store,
        host: &lab.host,
        library: &Library::builtin().unwrap(),
        pilot: false,
        interrupted: &AtomicBool::new(false),
        observer: &mut ear,
        clock: &clock,
        began: clock.now(),
    }
    .execute();
    assert_eq!(end, Ok(SessionEnd::Finished), "{:?}", ear.0);
    let slices = store.slices("r").unwrap();
    let passes = [0, 1].map(|server| {
        let own = |slice: &&Slice| slice.server == ServerId(server);
        slices.iter().filter(own).collect::<Vec<&Slice>>()
    });
    let ended = |slice: &Slice| slice.started_ns + slice.duration_ns;
    for pass in &passes {
        // All slices have the operations of the first: nothing but the server says how long they take.
        assert!(pass.len() >= 10, "{} slices", pass.len());
        for slice in pass {
            assert!(slice.void.is_none() && slice.failed == 0, "{slice:?}");
            assert_eq!(slice.operations, passes[0][0].operations);
            assert!(slice.operations > 0 && slice.schedule_lag_ns.is_none());
        }
        assert!(pass.is_sorted_by(|one, next| ended(one) <= next.started_ns));
    }
    // One pass ends before the other one begins.
    let spans = passes.map(|pass| (pass[0].started_ns, ended(pass[pass.len() - 1])));
    let [(first, first_end), (second, second_end)] = spans;
    assert!(first_end < second || second_end < first, "{spans:?}");
    let findings = store.findings("r").unwrap();
    let says = |text: &str| findings.iter().any(|finding| finding.text.contains(text));
    assert!(says("works alone and without a break"), "{findings:?}");
    assert!(says("update-index at 1 client, pass 1: "), "{findings:?}");
    let [block] = ear.1.as_slice() else {
        panic!("{:?}", ear.1);
    };
    let comparison = block.comparison.as_ref().unwrap();
    assert_eq!(comparison.placebo_cells[0].blocks, 1);
    assert!(lab.is_empty());
}
