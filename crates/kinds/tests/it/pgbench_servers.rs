//! pgbench's tables on real servers, and its scripts on them.

use crate::lab::{Lab, cell, executables, installations, plan, value};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::plan::{Cell, DataState, ServerId, WorkloadSource};
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{
    PartitionMethod, PgbenchMix, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_run::load::address_for;
use deltabench_run::schedule::BlockSchedule;
use deltabench_workload::pgbench::builtin;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

static GO_ON: AtomicBool = AtomicBool::new(false);

const COUNTS: &str = "SELECT (SELECT count(*) FROM pgbench_accounts) || ' ' || \
    (SELECT count(*) FROM pgbench_tellers) || ' ' || (SELECT count(*) FROM pgbench_branches) || ' ' || \
    (SELECT count(*) FROM pgbench_history)";

fn setup(tables: PgbenchTables, mode: QueryMode) -> PgbenchSetup {
    let mix = |name: &str| PgbenchMix {
        name: format!("pgbench-{name}"),
        scripts: vec![builtin(name).unwrap()],
    };
    PgbenchSetup {
        tables,
        mixes: vec![mix("select-only"), mix("tpcb-like")],
        mode,
        variables: Vec::new(),
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }
}

fn cells() -> [Cell; 2] {
    [
        cell("pgbench-select-only", false, DataState::Fresh),
        cell("pgbench-tpcb-like", true, DataState::Fresh),
    ]
}

#[test]
fn scripts_run_on_tables_that_are_as_they_were_loaded_whatever_was_written() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let modes = QueryMode::ALL;
        let mut plan = plan(&[installation], cells().to_vec(), 1000);
        plan.work = Work::scripts(Some(setup(
            PgbenchTables::default(),
            modes[number % modes.len()],
        )));
        let executables = executables(&plan);
        let run = format!("pgbench-{number}");
        let mut fleet = lab.fleet(&plan, &run).unwrap();
        let readbacks = fleet
            .load(&executables, &GO_ON, &mut |_| {})
            .unwrap()
            .unwrap();
        assert_eq!(
            readbacks[0].sizes[0].rows, 100_011,
            "{}",
            installation.resolved
        );
        // An index scan; and what tpcb-like does to four tables, BEGIN and END left out.
        let plans = &readbacks[0].plans;
        assert!(plans[0][0].contains("Index"), "{plans:?}");
        assert!(
            plans[1]
                .iter()
                .any(|plan| plan.contains("Update on pgbench_branches"))
        );
        let schedule = BlockSchedule::of(&plan, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        for _ in 0..2 {
            fleet.renew(&schedule, ServerId(0), &plan.cells[1]).unwrap();
            for (cell, executable) in plan.cells.iter().zip(&executables) {
                assert_eq!(value(&plan, &address, cell, COUNTS), "100000 10 1 0");
                let address = address_for(&address, plan.order, cell);
                let mut lane = Lane::connect(&LaneSpec {
                    servers: &[(address.endpoint, address.login)],
                    executable,
                    clients: 2,
                    jobs: 1,
                    cores: &[],
                    op_timeout: Duration::from_secs(60),
                    rate: None,
                })
                .unwrap();
                let request = SliceRequest {
                    operations: 60,
                    seed: 5,
                    first_operation: 0,
                };
                let outcome = lane.run_slice(0, request);
                let done = (outcome.operations, outcome.failed, outcome.void);
                assert_eq!(
                    done,
                    (60, 0, None),
                    "{} {:?}",
                    cell.workload,
                    outcome.errors
                );
            }
            let sums = "SELECT (sum(abalance) = (SELECT sum(delta) FROM pgbench_history))::text \
                        || (SELECT count(*) FROM pgbench_history) FROM pgbench_accounts";
            assert_eq!(value(&plan, &address, &plan.cells[1], sums), "true60");
        }
        fleet.dismantle().unwrap();
    }
    assert!(lab.is_empty());
}

#[test]
fn tables_of_every_shape_are_made_where_the_version_can_have_them() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let partitions = if installation.version_num >= 110_000 {
            3
        } else {
            0
        };
        let mut plan = plan(&[installation], cells().to_vec(), 1000);
        let tables = PgbenchTables {
            scale: 2,
            fillfactor: 70,
            foreign_keys: installation.version_num >= 120_000 || partitions == 0,
            partitions,
            partition_method: PartitionMethod::Hash,
            unlogged: true,
            server_side: true,
            init: Some(WorkloadSource {
                file: "mine.sql".to_owned(),
                text: "CREATE TABLE mine (id integer PRIMARY KEY);\n\
                       INSERT INTO mine SELECT generate_series(1, :rows);\n"
                    .to_owned(),
            }),
        };
        plan.work = Work::scripts(Some(PgbenchSetup {
            variables: vec![("rows".to_owned(), "500".to_owned())],
            ..setup(tables, QueryMode::Simple)
        }));
        let run = format!("shapes-{number}");
        let mut fleet = lab.fleet(&plan, &run).unwrap();
        let executables = executables(&plan);
        let readbacks = fleet
            .load(&executables, &GO_ON, &mut |_| {})
            .unwrap()
            .unwrap();
        assert_eq!(readbacks[0].sizes[0].rows, 200_022 + 500);
        let schedule = BlockSchedule::of(&plan, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        let options = "SELECT string_agg(DISTINCT reloptions::text || relpersistence::text, ' ') \
                       FROM pg_class WHERE relname ~ '^pgbench_[abt]' AND relkind = 'r'";
        let read = &plan.cells[0];
        // Beside partitions that are unlogged pgbench of version 18 makes the other tables logged.
        let wanted = match partitions {
            0 => "{fillfactor=70}u",
            _ => "{fillfactor=70}p {fillfactor=70}u",
        };
        assert_eq!(value(&plan, &address, read, options), wanted);
        assert_eq!(value(&plan, &address, read, COUNTS), "200000 20 2 0");
        let visible = "SELECT count(*) FROM pg_class WHERE relnamespace = 'deltabench'::regnamespace \
                       AND relkind = 'r' AND relpages > 0 AND relallvisible < relpages * 0.9";
        assert_eq!(value(&plan, &address, read, visible), "0");
        fleet.dismantle().unwrap();
    }
}
