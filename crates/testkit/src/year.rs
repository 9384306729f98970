//! A year of a lab on one host: nights with the version of the night before, and comparisons between them.

use crate::labs::{BEGAN, HOUR, add, plan, run_name};
use crate::small_run::{self, Shares};
use deltabench_model::installation::Origin;
use deltabench_model::plan::{Cell, CellId, Plan, Role};
use deltabench_model::units::to_f64;
use deltabench_store::{PlaceboResult, RecordedRatio, RunState, Store};
use std::path::Path;

/// Days of a year, milliseconds.
const YEAR: i64 = 365 * 24 * HOUR;

/// How much is in it.
#[derive(Debug, Clone, Copy)]
pub struct Year {
    /// All runs, nights among them.
    pub runs: u32,
    pub nights: u32,
    /// Cells of a night; the other runs have one of them each.
    pub cells: u32,
}

/// Makes it. Every 40th version is 3 % slower or faster than the ones before, in every fourth cell.
pub fn year(directory: &Path, year: Year) -> Store {
    let mut store = Store::open(directory).unwrap();
    let mut nights = 0;
    for number in 0..year.runs {
        let at = BEGAN + YEAR / i64::from(year.runs) * i64::from(number);
        let is_night = (number + 1) * year.nights / year.runs > nights;
        if is_night {
            add_night(&mut store, (&run_name(number), nights), at, year.cells);
            nights += 1;
        } else {
            comparison(&mut store, number, at, year.cells);
        }
    }
    store
}

/// When something of such a year happens, so many hours after its end.
pub fn after(hours: i64) -> i64 {
    BEGAN + YEAR + hours * HOUR
}

/// Adds a night: the anchor, the build of the night before, and a new one.
pub fn add_night(store: &mut Store, (name, night): (&str, u32), at: i64, cells: u32) {
    let mut plan = with_cells(plan(0), 0, cells);
    let words = ["deltabench", "nightly", "--anchor", "postgres:17.11"];
    plan.command = words.map(str::to_owned).to_vec();
    for server in &mut plan.servers {
        match server.role {
            Role::Candidate => build(&mut server.installation, night + 1),
            _ => {
                server.installation.origin = Origin::Prebuilt;
                server.installation.version_num = 170_011;
            }
        }
    }
    let mut before = plan.servers[2].clone();
    build(&mut before.installation, night);
    plan.servers.insert(2, before);
    let of = |cell: u32| {
        let own = |version| level(version, cell) * luck(u64::from(cell), night, version, 0.001);
        let hour = luck(u64::from(cell) + 1000, night, 0, 0.004);
        vec![
            luck(9, night, cell, 0.001),
            hour * own(night),
            hour * own(night + 1),
        ]
    };
    keep(
        store,
        (name, &plan),
        at,
        &(0..cells).map(of).collect::<Vec<_>>(),
    );
}

/// One of 25 releases against the anchor, in one cell.
fn comparison(store: &mut Store, number: u32, at: i64, cells: u32) {
    let mut plan = with_cells(plan(number), number % cells, 1);
    for server in &mut plan.servers {
        server.installation.origin = Origin::Prebuilt;
        server.installation.version_num = match server.role {
            Role::Candidate => 180_000 + number % 25,
            _ => 170_011,
        };
    }
    let hour = luck(7, number, 1, 0.005);
    let shares = vec![luck(8, number, 2, 0.001), 0.97 * hour];
    keep(store, (&run_name(number), &plan), at, &[shares]);
}

fn with_cells(mut plan: Plan, first: u32, cells: u32) -> Plan {
    let one = plan.cells[0].clone();
    let cell = |number: u32| Cell {
        workload: format!("query-{number}"),
        ..one.clone()
    };
    plan.cells = (first..first + cells).map(cell).collect();
    plan
}

/// The build of a night.
fn build(installation: &mut deltabench_model::installation::Installation, night: u32) {
    installation.resolved = format!("path:/home/somebody/nights/{night:04}");
    installation.bin_dir = format!("/home/somebody/nights/{night:04}/bin").into();
    installation.version = "19devel".to_owned();
    installation.version_num = 190_000;
    installation.binary_sha256 = format!("{:0<64}", format!("{:08x}", 0x9000_0000 + night));
}

fn level(version: u32, cell: u32) -> f64 {
    match (cell % 4, version / 40 % 2) {
        (1, 1) => 0.97,
        (2, 1) => 1.03,
        _ => 1.0,
    }
}

/// Around 1, by at most about three times this share; the same for the same numbers.
fn luck(what: u64, one: u32, other: u32, share: f64) -> f64 {
    let mut seed = what ^ (u64::from(one) << 32) ^ (u64::from(other) << 8);
    let mut uniform = || {
        // splitmix64
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        to_f64((mixed ^ (mixed >> 31)) >> 11) / to_f64(1 << 53)
    };
    // Three uniform values are about normal, of sd 0.5.
    1.0 + 2.0 * share * (uniform() + uniform() + uniform() - 1.5)
}

fn keep(store: &mut Store, (name, plan): (&str, &Plan), at: i64, shares: &[Vec<f64>]) {
    add(store, (name, plan), at);
    let noise = |block: u32, server: u32| luck(at.unsigned_abs(), block, server, 0.002);
    let noise: Shares<'_> = (shares, &noise);
    small_run::keep_servers(store, name, noise);
    let ended = at + HOUR / 6;
    store.finish_run(name, RunState::Finished, ended).unwrap();
    let said: Vec<PlaceboResult> = { (0..).zip(&plan.cells).zip(shares) }
        .map(|((cell, planned), shares)| placebo(cell, planned, shares[0], ended))
        .collect();
    store.add_placebo_results(name, &said).unwrap();
}

fn placebo(cell: u32, planned: &Cell, share: f64, at: i64) -> PlaceboResult {
    let ratio = RecordedRatio {
        estimate: share,
        ci95: Some((share - 0.002, share + 0.002)),
        p: Some((1.0 - (share - 1.0).abs() / 0.003).max(0.001)),
    };
    PlaceboResult {
        cell: CellId(cell),
        workload: planned.workload.clone(),
        clients: planned.clients,
        state: planned.state.word().to_owned(),
        verdict: "no-change".to_owned(),
        throughput: Some(ratio),
        server_cpu: Some(ratio),
        blocks: 8,
        stopping: "fixed".to_owned(),
        host: "secret-host".to_owned(),
        finished_unix_ms: at,
    }
}
