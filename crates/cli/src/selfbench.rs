//! `deltabench selfbench`: the driver against sysbench and pgbench, what the one-second series costs, and how
//! often identical servers are called different.

mod verdict;

use crate::arguments::selfcheck::{
    Selfbench, SelfbenchClient, SelfbenchCollecting, SelfbenchCommand, SelfbenchThreads,
};
use crate::config::Config;
use crate::console::{is_stdout, print_stdout, say, write_json};
use crate::crosscheck::with_interval;
use crate::failure::Failure;
use crate::host::swept_host;
use crate::output::check_files;
use crate::targets::resolve_servers;
use deltabench_driver::peer::Peer;
use deltabench_model::installation::Installation;
use deltabench_model::plan::Placement;
use deltabench_model::problem::Problem;
use deltabench_selfcheck::MeanRatio;
use deltabench_selfcheck::selfbench as selfcheck;
use deltabench_selfcheck::selfbench::{SelfbenchJson, SelfbenchRequest, ThreadsRequest};

/// `deltabench selfbench`.
pub fn selfbench(arguments: &Selfbench, config: &Config) -> Result<u8, Failure> {
    match &arguments.what {
        SelfbenchCommand::Client(client) => self::client(client, config),
        SelfbenchCommand::Threads(threads) => self::threads(threads),
        SelfbenchCommand::Verdict(verdict) => verdict::verdict(verdict, config),
        SelfbenchCommand::Collecting(collecting) => self::collecting(collecting, config),
    }
}

fn collecting(arguments: &SelfbenchCollecting, config: &Config) -> Result<u8, Failure> {
    let host = swept_host(&arguments.servers, config)?;
    let installation = target(&arguments.target, config)?;
    let (pairs, seconds) = (arguments.pairs, arguments.seconds);
    let cost = selfcheck::collecting(&installation, pairs, seconds, &host, &mut |text| say(&text))
        .map_err(Failure::Failed)?;
    let ratio = cost.ratio();
    let interval = ratio.ci95.map_or(String::new(), |[low, high]| {
        format!(
            " [{:+.2}, {:+.2}]",
            100.0 * (low - 1.0),
            100.0 * (high - 1.0)
        )
    });
    print_stdout(&format!(
        "{} pairs of {seconds:.0} s, {} samples\nthroughput with the series: {:+.2} %{interval}\nCPU of the \
         sampler: {:.3} % of one core\n",
        cost.pairs.len(),
        cost.samples,
        100.0 * (ratio.estimate - 1.0),
        100.0 * cost.sampler_share
    ))?;
    Ok(0)
}

fn threads(arguments: &SelfbenchThreads) -> Result<u8, Failure> {
    selfcheck::check_cores(&arguments.jobs).map_err(Failure::Refused)?;
    let request = ThreadsRequest {
        jobs: arguments.jobs.clone(),
        rounds: arguments.rounds,
        seconds: arguments.seconds,
    };
    let name = format!("deltabench-selfbench-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let made = std::fs::create_dir(&directory);
    made.map_err(|error| Failure::Failed(Problem::new("no directory").detail(error.to_string())))?;
    let rows = selfcheck::threads(&request, &directory);
    // Only sockets were in it.
    let _ = std::fs::remove_dir_all(&directory);
    let mut lines = vec![
        format!(
            "{} paired rounds against a server that answers at once; each thread has a core and 8 clients",
            request.rounds
        ),
        format!(
            "{:>7} {:>10} {:>24} {:>26} {:>26}",
            "threads",
            "ops/s",
            "ops/s / one thread",
            "ops/s / clients apart",
            "CPU/op / clients apart"
        ),
    ];
    for row in rows.map_err(Failure::Failed)? {
        let of = |ratio: MeanRatio| with_interval(ratio.estimate, ratio.ci95);
        lines.push(format!(
            "{:>7} {:>10.0} {:>24} {:>26} {:>26}",
            row.jobs,
            row.rate(),
            of(row.throughput()),
            of(row.throughput_apart()),
            of(row.client_cpu_apart()),
        ));
    }
    print_stdout(&lines.join("\n"))?;
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
    check_files(arguments.json.as_deref(), None).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let request = SelfbenchRequest {
        installation: target(&arguments.target, config)?,
        clients: arguments.clients.clone(),
        jobs: arguments.jobs.clone(),
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        seed: 1,
    };
    let measured = selfcheck::selfbench(&request, &host, &mut |text| say(&text));
    let found = SelfbenchJson::of(&request, &measured.map_err(Failure::Failed)?);
    match arguments.json.as_deref() {
        Some(path) if is_stdout(path) => write_json(path, &found)?,
        Some(path) => write_json(path, &found).and_then(|()| print_stdout(&text(&found)))?,
        None => print_stdout(&text(&found))?,
    }
    Ok(0)
}

fn text(table: &SelfbenchJson) -> String {
    let mut lines = vec![
        format!(
            "{}, {} paired rounds; ratios are deltabench / peer with 95 % interval",
            table.target, table.rounds
        ),
        format!(
            "{:<9} {:>7} {:>7} {:<10} {:<10} {:>17} {:>22} {:>22}",
            "workload",
            "clients",
            "threads",
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
            "{:<9} {:>7} {:>7} {:<10} {:<10} {:>8.2} / {:>6.2} {:>22} {:>22}",
            row.workload,
            row.clients,
            row.jobs,
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
