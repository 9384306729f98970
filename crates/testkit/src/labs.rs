//! Whole labs of small runs.

use crate::small_run;
use deltabench_model::fact::MachineName;
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion, Series};
use deltabench_model::plan::Plan;
use deltabench_model::units::to_f64;
use deltabench_store::{RunState, Store};
use std::path::Path;

/// 2026-11-01, milliseconds since 1970.
pub(crate) const BEGAN: i64 = 1_793_491_200_000;
pub(crate) const HOUR: i64 = 3_600_000;

/// Makes a lab of so many finished runs, an hour apart, on one host that calls itself `secret-host`. Their
/// servers lie in `/home/somebody/pg`, and one of ten candidates is 5 % slower in one cell.
pub fn lab(directory: &Path, runs: u32) -> Store {
    let mut store = Store::open(directory).unwrap();
    for number in 0..runs {
        let at = BEGAN + i64::from(number) * HOUR;
        let name = run_name(number);
        let plan = plan(number);
        add(&mut store, (&name, &plan), at);
        let loss = if number % 10 == 9 { 0.95 } else { 1.0 };
        let more = 1.0 + to_f64(u64::from(number % 7)) / 1000.0;
        small_run::keep(&mut store, &name, [loss, more, 1.0]);
        store
            .finish_run(&name, RunState::Finished, at + HOUR / 6)
            .unwrap();
    }
    store
}

/// The same with so many cells in each run, as a lab of nights has them.
pub fn wide_lab(directory: &Path, (runs, cells): (u32, u32)) -> Store {
    let mut store = Store::open(directory).unwrap();
    for number in 0..runs {
        let loss = if number % 10 == 9 { 0.95 } else { 1.0 };
        add_wide(
            &mut store,
            (&run_name(number), number),
            number,
            (cells, loss),
        );
    }
    store
}

/// Adds a run to it, so many hours after the first one: its first cell has this share of the base's
/// throughput.
pub fn add_wide(
    store: &mut Store,
    (name, number): (&str, u32),
    hour: u32,
    (cells, share): (u32, f64),
) {
    let at = BEGAN + i64::from(hour) * HOUR;
    let mut plan = plan(number);
    let first = plan.cells[0].clone();
    let cell = |number: u32| deltabench_model::plan::Cell {
        workload: format!("query-{number}"),
        ..first.clone()
    };
    plan.cells = (0..cells).map(cell).collect();
    add(store, (name, &plan), at);
    let more = 1.0 + to_f64(u64::from(number % 7)) / 1000.0;
    let mut shares: Vec<f64> = (0..cells).map(|_| more).collect();
    shares[0] = share;
    small_run::keep_of(store, name, &shares);
    store
        .finish_run(name, RunState::Finished, at + HOUR / 6)
        .unwrap();
}

/// Adds a finished run with the versions of run `number`, so many hours after the first one: its first cell
/// has this share of the base's throughput.
pub fn again(store: &mut Store, (name, number): (&str, u32), hour: u32, share: f64) {
    let at = BEGAN + i64::from(hour) * HOUR;
    add(store, (name, &plan(number)), at);
    small_run::keep(store, name, [share, 1.0, 1.0]);
    store
        .finish_run(name, RunState::Finished, at + HOUR / 6)
        .unwrap();
}

/// The name of a run of such a lab.
pub fn run_name(number: u32) -> String {
    format!("20261101-000000-{number:04x}")
}

/// Stores a run that begins, with its host and its series.
pub fn add(store: &mut Store, run: (&str, &Plan), at: i64) {
    add_as(store, run, at, |_, _| {});
}

/// The same, with something else about its host or its series.
pub fn add_as(
    store: &mut Store,
    (name, plan): (&str, &Plan),
    at: i64,
    change: impl Fn(&mut Occasion, &mut [Series]),
) {
    store.create_run(name, plan, RunState::Running, at).unwrap();
    let machine = MachineName("secret-host".to_owned());
    store.add_fact(name, (None, None), &machine).unwrap();
    let mut occasion = Occasion {
        host: HostIdentity {
            uid: "0123456789abcdef0123".to_owned(),
            class: HostClass {
                cpu_model: Some("A processor".to_owned()),
                cores: 2,
                memory_gib: Some(8),
                virtual_machine: Some(true),
            },
            kernel: Some("6.1".to_owned()),
            microcode: None,
        },
        uid: format!("uid-{name}"),
        boot_id: None,
        measurement_version: 1,
        at_unix_ms: at,
    };
    let series = |cell: &deltabench_model::plan::Cell| {
        let slug = format!("{}@{}", cell.workload, cell.clients);
        Series {
            key: format!("{:0<64}", slug.replace(['-', '@'], "0")),
            content: format!("{{\"workload\":\"{slug}\"}}"),
            slug,
        }
    };
    let mut series: Vec<Series> = plan.cells.iter().map(series).collect();
    change(&mut occasion, &mut series);
    store.add_occasion(name, &occasion, &series).unwrap();
}

/// The plan of a run of such a lab.
pub fn plan(number: u32) -> Plan {
    let mut plan = small_run::plan();
    plan.command = [
        "deltabench",
        "compare",
        "path:/home/somebody/pg/17",
        "secret-option",
    ]
    .map(str::to_owned)
    .to_vec();
    for server in &mut plan.servers {
        let is_base = server.installation.resolved == "postgres:17.11";
        let build = match is_base {
            true => "a".repeat(64),
            false => format!("{:0<64}", format!("{:04x}", number % 25 + 1)),
        };
        server.installation.binary_sha256 = build;
        server.installation.bin_dir = "/home/somebody/pg/bin".into();
        if !is_base {
            server.installation.resolved = format!("postgres:18.{}", number % 25);
            server.installation.version = format!("18.{}", number % 25);
        }
    }
    plan
}
