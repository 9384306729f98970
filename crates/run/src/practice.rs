//! The practice that deltabench replaces: sysbench on one server for a while, then on the other.

use crate::fleet::{Fleet, Host};
use crate::load::address_for;
use crate::remote::only_own;
use crate::schedule::BlockSchedule;
use crate::visit::Address;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::plan::{Cell, Plan, ServerId};
use deltabench_model::problem::Problem;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations per second, one value for each second of a run.
pub type Seconds = Vec<f64>;

/// Starts the base, runs sysbench's point select on it with one client, stops it, and does the same with the
/// last server of the plan. Nothing is pinned, as in the published scripts.
///
/// `None` when interrupted. Errors: sysbench is not there or fails, a server does not start.
pub fn sequential(
    plan: &Plan,
    run: &str,
    host: &Host,
    seconds: u32,
    interrupted: &AtomicBool,
) -> Result<Option<(Seconds, Seconds)>, Problem> {
    only_own(plan)?;
    let mut fleet = Fleet::create(plan, run, host, &mut |_| {})?;
    let measured = measure(plan, &mut fleet, seconds, interrupted);
    let dismantled = fleet.dismantle();
    let measured = measured?;
    dismantled.map(|()| measured)
}

fn measure(
    plan: &Plan,
    fleet: &mut Fleet<'_>,
    seconds: u32,
    interrupted: &AtomicBool,
) -> Result<Option<(Seconds, Seconds)>, Problem> {
    let Some(cell) = plan.cells.first() else {
        return Err(Problem::new("the plan has no cell"));
    };
    if fleet.load(&[], interrupted, &mut |_| {})?.is_none() {
        return Ok(None);
    }
    let last = ServerId::try_from(plan.servers.len().saturating_sub(1)).unwrap_or(0);
    let first = one(plan, fleet, cell, plan.base(), seconds)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let second = one(plan, fleet, cell, last, seconds)?;
    Ok(Some((first, second)))
}

fn one(
    plan: &Plan,
    fleet: &mut Fleet<'_>,
    cell: &Cell,
    server: ServerId,
    seconds: u32,
) -> Result<Seconds, Problem> {
    let schedule = BlockSchedule::of(plan, 0);
    let address = fleet.start_one(&schedule, server)?;
    let measured = sysbench(plan, cell, &address, seconds);
    fleet.stop_one(&schedule, server)?;
    measured
}

fn sysbench(plan: &Plan, cell: &Cell, address: &Address, seconds: u32) -> Result<Seconds, Problem> {
    let login = address_for(address, plan.order, cell).login;
    let Endpoint::Unix { directory, port } = &address.endpoint else {
        return Err(Problem::new("sysbench is run over the local socket only"));
    };
    let search_path = login
        .options
        .iter()
        .map(|(name, value)| format!("-c {name}={value}"))
        .collect::<Vec<_>>()
        .join(" ");
    let output = Command::new("sysbench")
        .arg("oltp_point_select")
        .arg("--db-driver=pgsql")
        .arg(format!("--pgsql-host={}", directory.display()))
        .arg(format!("--pgsql-port={port}"))
        .arg(format!("--pgsql-user={}", login.user))
        .arg(format!("--pgsql-db={}", login.database))
        .arg(format!("--tables={}", plan.data.tables))
        .arg(format!("--table-size={}", plan.data.rows))
        .args(["--rand-type=uniform", "--threads=1", "--report-interval=1"])
        .arg(format!("--time={seconds}"))
        .arg("run")
        .env("PGOPTIONS", search_path)
        .output()
        .map_err(|error| {
            Problem::new("sysbench cannot be started")
                .detail(error.to_string())
                .hint("scripts/install-peers.sh installs it through the package manager")
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(Problem::new("sysbench failed").detail(text.trim_end()));
    }
    // The first second has connecting and a cold cache in it.
    Ok(text.lines().filter_map(rate).skip(1).collect())
}

/// `[ 3s ] thds: 1 tps: 41234.12 qps: …` as 41234.12.
fn rate(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once(" tps: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_line_has_a_rate_and_no_other_line_has() {
        let line = "[ 3s ] thds: 1 tps: 41234.12 qps: 41234.12 (r/w/o: 41234/0/0)";
        assert_eq!(rate(line), Some(41_234.12));
        assert_eq!(rate("    transactions:   123 (41.0 per sec.)"), None);
    }
}
