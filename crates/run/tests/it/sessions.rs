//! What a session does with servers of its own before it measures, and what it stores of them.

use crate::fake_kind::Heard;
use crate::lab::{Lab, cell, executables, installations, plan, value};
use deltabench_kinds::run_half;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Cell, CellOrder, ConfigurationUse, DataState};
use deltabench_run::clock::{Clock, MachineClock};
use deltabench_run::pilot::standalone;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_store::{RunState, Store};
use deltabench_workload::Library;
use std::sync::atomic::AtomicBool;

static GO_ON: AtomicBool = AtomicBool::new(false);

fn cells() -> Vec<Cell> {
    vec![cell("point-query", false, DataState::Fresh)]
}

/// The steady profile switches autovacuum off, and a named configuration leaves it as it is.
#[test]
fn a_server_has_its_own_settings_whatever_cluster_it_plays() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let mut plan = plan(&[installation; 3], cells(), 1000);
    plan.servers[2].configuration = Some(ConfigurationUse::default());
    let mut fleet = lab.fleet(&plan, "exchanged").unwrap();
    let loaded = fleet.load(&executables(&plan), &GO_ON, &mut |_| {});
    loaded.unwrap().unwrap();
    let mut clusters = std::collections::BTreeSet::new();
    for block in 0..3 {
        let schedule = BlockSchedule::of(&plan, block);
        clusters.insert(schedule.slots[2]);
        let addresses = fleet.start(&schedule).unwrap();
        for (server, expected) in ["off", "off", "on"].into_iter().enumerate() {
            let found = value(&plan, &addresses[server], &plan.cells[0], "SHOW autovacuum");
            assert_eq!(found, expected, "server {server} in block {block}");
        }
        fleet.stop().unwrap();
    }
    assert_eq!(
        clusters.len(),
        3,
        "the candidate plays each of the clusters"
    );
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
}

/// In this order cells that read use tables that are made anew, too.
#[test]
fn a_pilot_measures_in_the_published_order() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let mut plan = plan(&[installation; 3], cells(), 1000);
    plan.order = CellOrder::Published;
    let kind = run_half(&plan.work);
    let found = standalone(&plan, kind, "pilot", &lab.host, &GO_ON, &mut |_| {}).unwrap();
    assert_eq!(found.unwrap().workloads, ["point-query"]);
    assert!(lab.is_empty());
}

/// Of a session that was interrupted while it loaded only what came of its limits is stored.
#[test]
fn a_resumed_run_has_the_findings_that_the_session_before_did_not_come_to() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let mut plan = plan(&[installation; 3], cells(), 1000);
    plan.timing.blocks = 1;
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    store.create_run("r", &plan, RunState::Running, 0).unwrap();
    let late = Finding::new(FindingKind::PageCacheKept, Severity::Note, "said before");
    store.add_finding("r", &late).unwrap();
    let clock = MachineClock::begin();
    for _ in 0..2 {
        let end = Session {
            plan: &plan,
            benchmark: run_half(&plan.work),
            run: "r",
            store: &mut store,
            host: &lab.host,
            library: &Library::builtin().unwrap(),
            pilot: false,
            interrupted: &GO_ON,
            observer: &mut Heard::default(),
            clock: &clock,
            began: clock.now(),
        }
        .execute();
        assert_eq!(end.unwrap(), SessionEnd::Finished);
        let findings = store.findings("r").unwrap();
        let times = |kind: &FindingKind| findings.iter().filter(|one| one.kind == *kind).count();
        assert_eq!(findings[0], late);
        assert_eq!(times(&FindingKind::NoHugePages), 1, "{findings:?}");
        assert_eq!(times(&FindingKind::PageCacheKept), 1, "{findings:?}");
    }
    assert_eq!(store.slices("r").unwrap().len() % 3, 0);
}
