//! Order entry on real servers: what each transaction touches, and that nothing is lost.

use crate::lab::{Lab, ask, cell, executables, installations, plan, value};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_kinds::orders::setup::{MAX_TRIES, Wanted, all_names, setup, workload_of, writes};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Cell, DataState, Plan, ServerId};
use deltabench_model::units::to_f64;
use deltabench_model::work::Work;
use deltabench_model::work::orders::OrdersForm;
use deltabench_model::work::pgbench::QueryMode;
use deltabench_run::load::address_for;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use deltabench_workload::executable::Executable;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Transactions of each type.
const OPERATIONS: u64 = 200;

/// Rows that were inserted, updated and deleted, by table.
const TOUCHED: &str = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables";

/// Other connections whose counts may not have arrived.
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

/// Rows that a transaction inserts, updates and deletes in each table that it changes, on average, by the
/// specification: clauses 2.4 to 2.8, with 10 lines of an order and 10 districts of a delivery. What an order
/// did that was taken back counts too.
fn expected(transaction: &str) -> BTreeMap<&'static str, [f64; 3]> {
    let rows: &[(&str, [f64; 3])] = match transaction {
        "new-order" => &[
            ("district", [0.0, 1.0, 0.0]),
            ("orders", [1.0, 0.0, 0.0]),
            ("new_order", [1.0, 0.0, 0.0]),
            ("order_line", [10.0, 0.0, 0.0]),
            ("stock", [0.0, 10.0, 0.0]),
        ],
        "payment" => &[
            ("warehouse", [0.0, 1.0, 0.0]),
            ("district", [0.0, 1.0, 0.0]),
            ("customer", [0.0, 1.0, 0.0]),
            ("history", [1.0, 0.0, 0.0]),
        ],
        "delivery" => &[
            ("new_order", [0.0, 0.0, 10.0]),
            ("orders", [0.0, 10.0, 0.0]),
            ("order_line", [0.0, 100.0, 0.0]),
            ("customer", [0.0, 10.0, 0.0]),
        ],
        _ => &[],
    };
    rows.iter().copied().collect()
}

fn planned(installation: &Installation, form: OrdersForm) -> Plan {
    let cells = all_names()
        .into_iter()
        .map(|name| {
            let name = workload_of(name);
            cell(&name, writes(&name), DataState::Fresh)
        })
        .collect();
    let mut plan = plan(&[installation], cells, 1000);
    let wanted = Wanted {
        warehouses: 1,
        form,
        only: Vec::new(),
        foreign_keys: true,
        mode: QueryMode::Prepared,
        max_tries: MAX_TRIES,
        latency_limit_ms: None,
    };
    plan.work = Work::Orders(setup(&wanted).unwrap());
    plan
}

/// Sends transactions of a cell with this many clients; all succeed.
fn send(plan: &Plan, address: &Address, (cell, executable): (&Cell, &Executable), clients: u32) {
    let address = address_for(address, plan.order, cell);
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[(address.endpoint, address.login)],
        executable,
        clients,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_secs(60),
        rate: None,
    })
    .unwrap();
    let request = SliceRequest {
        operations: OPERATIONS,
        seed: 7,
        first_operation: 0,
    };
    let outcome = lane.run_slice(0, request);
    let done = (outcome.operations, outcome.failed, outcome.void);
    let name = &cell.workload;
    assert_eq!(done, (OPERATIONS, 0, None), "{name}: {:?}", outcome.errors);
}

/// What has been done to each table, once all who did it have reported.
fn touched(plan: &Plan, address: &Address, cell: &Cell) -> BTreeMap<String, [f64; 3]> {
    let until = Instant::now() + Duration::from_secs(60);
    while value(plan, address, cell, OTHERS) != "0" {
        assert!(Instant::now() < until, "a connection does not end");
    }
    let number = |field: &Option<String>| field.as_ref().unwrap().parse().unwrap();
    let rows = ask(plan, address, cell, TOUCHED).into_iter();
    rows.map(|row| {
        let name = row[0].clone().unwrap();
        (name, [number(&row[1]), number(&row[2]), number(&row[3])])
    })
    .collect()
}

fn check_touched(plan: &Plan, address: &Address, measured: (&Cell, &Executable)) {
    let cell = measured.0;
    let before = touched(plan, address, cell);
    send(plan, address, measured, 1);
    let after = touched(plan, address, cell);
    let expected = expected(cell.workload.trim_start_matches("orders-"));
    for (table, counts) in after {
        let wanted = expected.get(table.as_str()).copied().unwrap_or_default();
        for kind in 0..3 {
            let each = (counts[kind] - before[&table][kind]) / to_f64(OPERATIONS);
            // The lines of 200 orders scatter by 2 %, those of 2000 delivered ones by less.
            let fits = (each - wanted[kind]).abs() <= 0.07 * wanted[kind];
            let what = ["inserted", "updated", "deleted"][kind];
            assert!(
                fits,
                "{} {what} {each} rows of {table}, not {}",
                cell.workload, wanted[kind]
            );
        }
    }
}

/// The newest server tells what was touched as soon as a connection has ended; the oldest one is asked what
/// holds.
#[test]
fn each_transaction_touches_the_rows_of_the_specification_and_loses_nothing() {
    let lab = Lab::new();
    let installations = installations();
    let newest = installations
        .iter()
        .max_by_key(|one| one.version_num)
        .unwrap();
    let oldest = installations
        .iter()
        .min_by_key(|one| one.version_num)
        .unwrap();
    let cases = [
        (newest, &OrdersForm::ALL[..], true),
        (oldest, &[OrdersForm::Functions][..], false),
    ];
    for (number, (installation, forms, counted)) in cases.into_iter().enumerate() {
        // Tables that have the functions serve statements too.
        let loaded = planned(installation, OrdersForm::Functions);
        let mut fleet = lab.fleet(&loaded, &format!("orders-{number}")).unwrap();
        fleet
            .load(&executables(&loaded), &GO_ON, &mut |_| {})
            .unwrap()
            .unwrap();
        let schedule = BlockSchedule::of(&loaded, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        for form in forms {
            let plan = planned(installation, *form);
            let executables = executables(&plan);
            // One after another on the same tables, so that what holds at the end holds for all of them.
            fleet.renew(&schedule, ServerId(0), &plan.cells[0]).unwrap();
            let mut all = plan.cells.iter().zip(&executables);
            let mix = all.next().unwrap();
            for measured in all {
                if counted && installation.version_num >= 150_000 {
                    check_touched(&plan, &address, measured);
                } else {
                    send(&plan, &address, measured, 1);
                }
            }
            // Clients of one warehouse meet.
            send(&plan, &address, mix, 4);
            let broken = fleet
                .broken(&schedule, ServerId(0), &plan.cells[0])
                .unwrap();
            assert_eq!(broken, [""; 0], "{} {}", installation.resolved, form.word());
            // A loss is found: a district whose payments do not add up.
            let loss = "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3 RETURNING 1";
            value(&plan, &address, &plan.cells[0], loss);
            let broken = fleet
                .broken(&schedule, ServerId(0), &plan.cells[0])
                .unwrap();
            assert!(
                broken.iter().any(|what| what.contains("condition 1 ")),
                "{broken:?}"
            );
        }
        fleet.dismantle().unwrap();
    }
    assert!(lab.is_empty());
}
