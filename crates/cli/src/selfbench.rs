//! `deltabench selfbench client` and `collecting`: the driver against sysbench and pgbench, and what the
//! one-second series costs, as paired ratios.

use crate::arguments::selfcheck::{
    Selfbench, SelfbenchClient, SelfbenchCollecting, SelfbenchCommand,
};
use crate::config::Config;
use crate::console::{print_stdout, say, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::targets::resolve_servers;
use deltabench_driver::peer::{Peer, SelfbenchRound, SelfbenchRow};
use deltabench_model::installation::Installation;
use deltabench_model::plan::Placement;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_run::selfbench::{self as run, SelfbenchRequest, selfbench as measure};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;
use serde::Serialize;

/// Rows of the table: 50 MB, all in shared buffers.
const ROWS: u64 = 200_000;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.selfbench", 1);

#[derive(Debug, Serialize)]
struct Table {
    format: &'static str,
    version: u32,
    target: String,
    rounds: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    workload: &'static str,
    clients: u32,
    placement: Placement,
    peer: &'static str,
    client_cpu_us_per_op: f64,
    peer_cpu_us_per_op: f64,
    client_cpu_ratio: f64,
    client_cpu_ci95: Option<[f64; 2]>,
    throughput_ratio: f64,
    throughput_ci95: Option<[f64; 2]>,
}

/// `deltabench selfbench`.
pub fn selfbench(arguments: &Selfbench, config: &Config) -> Result<u8, Failure> {
    match &arguments.what {
        SelfbenchCommand::Client(client) => self::client(client, config),
        SelfbenchCommand::Verdict(verdict) => crate::practice::verdict(verdict, config),
        SelfbenchCommand::Collecting(collecting) => self::collecting(collecting, config),
    }
}

fn collecting(arguments: &SelfbenchCollecting, config: &Config) -> Result<u8, Failure> {
    let host = swept_host(&arguments.servers, config)?;
    let installation = target(&arguments.target, config)?;
    let cost = run::collecting(
        &installation,
        arguments.pairs,
        arguments.seconds,
        ROWS,
        &host,
        &mut |text| say(&text),
    )
    .map_err(Failure::Failed)?;
    let logs: Vec<f64> = cost
        .pairs
        .iter()
        .map(|pair| (pair.with / pair.without).ln())
        .collect();
    let (estimate, ci95) = ratio(&logs);
    let interval = ci95.map_or(String::new(), |[low, high]| {
        format!(
            " [{:+.2}, {:+.2}]",
            100.0 * (low - 1.0),
            100.0 * (high - 1.0)
        )
    });
    print_stdout(&format!(
        "{} pairs of {:.0} s, {} samples\nthroughput with the series: {:+.2} %{interval}\nCPU of the \
         sampler: {:.3} % of one core\n",
        cost.pairs.len(),
        arguments.seconds,
        cost.samples,
        100.0 * (estimate - 1.0),
        100.0 * cost.sampler_share
    ))?;
    Ok(0)
}

/// The server to run against.
fn target(name: &str, config: &Config) -> Result<Installation, Failure> {
    let spec = name.parse().map_err(Failure::Refused)?;
    resolve_servers(&[spec], config)
        .map_err(Failure::Refused)?
        .into_iter()
        .next()
        .ok_or_else(|| Failure::Refused(Problem::new("no target given")))
}

fn client(arguments: &SelfbenchClient, config: &Config) -> Result<u8, Failure> {
    if Peer::ALL.iter().all(|peer| peer.program().is_none()) {
        return Err(Failure::Refused(
            Problem::new("neither sysbench nor pgbench is on the PATH")
                .hint("scripts/install-peers.sh installs them through the package manager"),
        ));
    }
    let host = swept_host(&arguments.servers, config)?;
    let installation = target(&arguments.target, config)?;
    let target = installation.resolved.clone();
    let request = SelfbenchRequest {
        installation,
        clients: arguments.clients.clone(),
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        rows: ROWS,
        seed: 1,
    };
    let rows = measure(&request, &host, &mut |text| say(&text)).map_err(Failure::Failed)?;
    let rows = rows.iter().map(row).collect();
    let table = Table {
        format: FORMAT.0,
        version: FORMAT.1,
        target,
        rounds: request.rounds,
        rows,
    };
    publish(&table, arguments)?;
    Ok(0)
}

fn row(measured: &SelfbenchRow) -> Row {
    let cpu = |outcome: &deltabench_driver::peer::PeerOutcome| {
        to_f64(outcome.client_cpu_ns) / 1e3 / to_f64(outcome.operations).max(1.0)
    };
    let rate = |outcome: &deltabench_driver::peer::PeerOutcome| {
        to_f64(outcome.operations) / to_f64(outcome.duration_ns).max(1.0)
    };
    let each = |value: &dyn Fn(&SelfbenchRound) -> f64| -> Vec<f64> {
        measured.rounds.iter().map(value).collect()
    };
    let (client_cpu_ratio, client_cpu_ci95) =
        ratio(&each(&|round| (cpu(&round.own) / cpu(&round.rival)).ln()));
    let (throughput_ratio, throughput_ci95) =
        ratio(&each(&|round| (rate(&round.own) / rate(&round.rival)).ln()));
    Row {
        workload: measured.cell.work.word(),
        clients: measured.cell.clients,
        placement: measured.cell.placement,
        peer: measured.rival.word(),
        client_cpu_us_per_op: mean(&each(&|round| cpu(&round.own))).unwrap_or_default(),
        peer_cpu_us_per_op: mean(&each(&|round| cpu(&round.rival))).unwrap_or_default(),
        client_cpu_ratio,
        client_cpu_ci95,
        throughput_ratio,
        throughput_ci95,
    }
}

/// Geometric mean of the rounds' ratios with its t interval; absent with fewer than two rounds.
fn ratio(logs: &[f64]) -> (f64, Option<[f64; 2]>) {
    let interval = t_interval(logs, 0.95)
        .ok()
        .map(|found| [found.low.exp(), found.high.exp()]);
    (mean(logs).unwrap_or_default().exp(), interval)
}

fn publish(table: &Table, arguments: &SelfbenchClient) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(table).map_err(|error| {
        Failure::Failed(
            Problem::new("the result cannot be written as JSON").detail(error.to_string()),
        )
    })?;
    match arguments.json.as_deref() {
        Some(path) if path.as_os_str() == "-" => print_stdout(&json),
        Some(path) => write_file(path, &json).and_then(|()| print_stdout(&text(table))),
        None => print_stdout(&text(table)),
    }
}

fn text(table: &Table) -> String {
    let mut lines = vec![
        format!(
            "{}, {} paired rounds; ratios are deltabench / peer with 95 % interval",
            table.target, table.rounds
        ),
        format!(
            "{:<9} {:>7} {:<10} {:<9} {:>17} {:>22} {:>22}",
            "workload",
            "clients",
            "placement",
            "peer",
            "client CPU us/op",
            "client CPU ratio",
            "throughput ratio"
        ),
    ];
    for row in &table.rows {
        let placement = if row.placement == Placement::SameCore {
            "same-core"
        } else {
            "split"
        };
        lines.push(format!(
            "{:<9} {:>7} {:<10} {:<9} {:>8.2} / {:>6.2} {:>22} {:>22}",
            row.workload,
            row.clients,
            placement,
            row.peer,
            row.client_cpu_us_per_op,
            row.peer_cpu_us_per_op,
            with_interval(row.client_cpu_ratio, row.client_cpu_ci95),
            with_interval(row.throughput_ratio, row.throughput_ci95),
        ));
    }
    lines.join("\n")
}

fn with_interval(ratio: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) => format!("{ratio:.2} [{low:.2}, {high:.2}]"),
        None => format!("{ratio:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_geometric_mean_of_its_rounds() {
        let (ratio, interval) = ratio(&[0.5_f64.ln(), 2.0_f64.ln()]);
        assert!((ratio - 1.0).abs() < 1e-12);
        let [low, high] = interval.unwrap();
        assert!(low < 0.5 && high > 2.0);
        assert_eq!(with_interval(0.7, None), "0.70");
    }
}
