//! Rounds of operations that take longer than a slice should.

use crate::lab::{Lab, cell, executables, installations, plan};
use deltabench_model::plan::{CellId, DataState};
use deltabench_model::slice::Slice;
use deltabench_observe::own_affinity;
use deltabench_proc::{Process, process_tree};
use deltabench_run::load::address_for;
use deltabench_run::schedule::{BlockSchedule, VisitSchedule};
use deltabench_run::visit::{Address, Visit, VisitEnd};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

#[test]
fn servers_take_turns_in_long_operations_and_none_stays_stopped() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let scan = cell("scan", false, DataState::Fresh);
    let mut plan = plan(&[installation; 3], vec![scan.clone()], 50_000);
    // Far less than a scan takes.
    plan.timing.slice_ms = 1;
    plan.timing.warmup_seconds = 0.01;
    assert!(plan.interleaves(&scan));
    let mut fleet = lab.fleet(&plan, "interleaved").unwrap();
    let go_on = AtomicBool::new(false);
    let executables = executables(&plan);
    fleet.load(&executables, &go_on, &mut |_| {}).unwrap();
    let addresses = fleet.start(&BlockSchedule::of(&plan, 0)).unwrap();
    let servers: Vec<Address> = addresses
        .iter()
        .map(|address| address_for(address, plan.order, &scan))
        .collect();
    let cores = own_affinity().unwrap();
    let visit = Visit {
        plan: &plan,
        block: 0,
        cell_id: CellId(0),
        cell: &scan,
        executable: &executables[0],
        servers: &servers,
        schedule: &VisitSchedule::of(&plan, 0, CellId(0), &scan, &cores),
        scouted: None,
        interrupted: &go_on,
    };
    // On a busy machine the client waits for the core too, and a warm-up of milliseconds may not show that
    // the server's process works alone.
    let mut visits = (0..5).map(|_| rounds_of(&visit));
    let rounds = visits.find(|rounds| began_together(&rounds[&0]));
    let rounds = rounds.expect("turns in one of five visits");
    assert!(rounds.len() >= 5, "{}", rounds.len());
    let mut ended_ns = 0;
    for slices in rounds.values() {
        assert_eq!(slices.len(), 3);
        let began_ns = slices[0].started_ns;
        assert!(
            began_ns >= ended_ns,
            "durations leave out the turns of others"
        );
        assert!(began_together(slices), "all are under way");
        for slice in slices {
            assert_eq!((slice.operations, slice.failed), (1, 0));
            assert_eq!(slice.void, None);
            let cpu_ns = slice.server_cpu_ns.unwrap();
            assert!(cpu_ns > 0);
            let others_ns = slice.idle_cpu_ns.unwrap();
            assert!(
                others_ns < cpu_ns / 4,
                "{others_ns} {cpu_ns}: they are stopped"
            );
        }
        ended_ns = began_ns + slices.iter().map(|slice| slice.duration_ns).sum::<u64>();
    }
    for server in &servers {
        for pid in process_tree(server.own_pid().unwrap()).unwrap() {
            let stat = Process::of(pid).stat();
            assert!(stat.is_none_or(|stat| !stat.is_stopped()), "{pid}");
        }
    }
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
}

fn rounds_of(visit: &Visit<'_>) -> BTreeMap<u32, Vec<Slice>> {
    let mut rounds: BTreeMap<u32, Vec<Slice>> = BTreeMap::new();
    let mut sink = |slice: &Slice| {
        rounds.entry(slice.round).or_default().push(slice.clone());
        Ok(())
    };
    let report = visit.carry_out(&mut sink, &mut None).unwrap();
    assert_eq!(report.end, VisitEnd::Complete);
    rounds
}

fn began_together(slices: &[Slice]) -> bool {
    slices
        .iter()
        .all(|slice| slice.started_ns == slices[0].started_ns)
}
