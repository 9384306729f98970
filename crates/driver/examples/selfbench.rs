//! Our client against sysbench and pgbench, on a server that is already there and loaded.
//!
//! `selfbench DIRECTORY PORT DATABASE ROWS ROUNDS [CORE]`: with CORE the client runs there; pin the server
//! yourself.

use deltabench_driver::peer::{
    Peer, PeerOutcome, PeerWork, SelfbenchCell, SelfbenchRow, SelfbenchSpec, selfbench_client,
};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::Placement;
use deltabench_model::units::{micros, seconds, to_f64};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, port, database, rows, rounds, core @ ..] = arguments.as_slice() else {
        return Err("usage: selfbench DIRECTORY PORT DATABASE ROWS ROUNDS [CORE]".into());
    };
    let endpoint = Endpoint::Unix {
        directory: directory.into(),
        port: port.parse()?,
    };
    let login = Login {
        user: "postgres".into(),
        database: database.clone(),
        password: None,
        options: Vec::new(),
    };
    let cores: Vec<usize> = core
        .iter()
        .map(|core| core.parse())
        .collect::<Result<_, _>>()?;
    let placement = if cores.is_empty() {
        Placement::Free
    } else {
        Placement::SameCore
    };
    let operations = |work| {
        if work == PeerWork::Range {
            10_000
        } else {
            40_000
        }
    };
    let cells: Vec<SelfbenchCell> = [1, 4]
        .into_iter()
        .flat_map(|clients| PeerWork::ALL.map(|work| (clients, work)))
        .map(|(clients, work)| SelfbenchCell {
            work,
            clients,
            placement,
            operations: operations(work),
        })
        .collect();
    let spec = SelfbenchSpec {
        endpoint: &endpoint,
        login: &login,
        rows: rows.parse()?,
        peers: &Peer::ALL,
        cells: &cells,
        rounds: rounds.parse()?,
        seed: 1,
    };
    println!(
        "{:<10} {:>7} {:<9} {:>8} {:>8} {:>7} {:>7}",
        "work", "clients", "peer", "own us", "peer us", "cpu", "rate"
    );
    selfbench_client(&spec, &mut |_| Ok(cores.clone()))?
        .iter()
        .for_each(print);
    Ok(())
}

fn print(row: &SelfbenchRow) {
    let cost = |outcome: &PeerOutcome| micros(outcome.client_cpu_ns) / to_f64(outcome.operations);
    let rate = |outcome: &PeerOutcome| to_f64(outcome.operations) / seconds(outcome.duration_ns);
    let over = |value: &dyn Fn(&PeerOutcome, &PeerOutcome) -> f64| {
        median(
            row.rounds
                .iter()
                .map(|round| value(&round.own, &round.peer))
                .collect(),
        )
    };
    println!(
        "{:<10} {:>7} {:<9} {:>8.2} {:>8.2} {:>7.3} {:>7.3}",
        row.cell.work.word(),
        row.cell.clients,
        row.peer.word(),
        over(&|own, _| cost(own)),
        over(&|_, peer| cost(peer)),
        over(&|own, peer| cost(own) / cost(peer)),
        over(&|own, peer| rate(own) / rate(peer)),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
