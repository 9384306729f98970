//! Visits with counters, of servers whose true costs are known.

use crate::builder::{BASE, CANDIDATE, PLACEBO, as_run, cell, plan, slice};
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{CellComparison, Comparison};
use deltabench_compare::{Machine, add_costs, analyse};
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{to_f64, to_u64};
use std::collections::BTreeMap;

/// Servers and client on one machine with two cores.
pub fn two_cores(plan: &Plan) -> Vec<Machine> {
    vec![Machine::of_client(Some(2)); plan.servers.len()]
}

/// One counter: its true amount per operation, and how it scatters.
#[derive(Clone)]
pub struct Counter {
    pub key: &'static str,
    pub per_operation: f64,
    /// Of the logarithm, from block to block.
    pub sd: f64,
    /// Of the logarithm, from one copy of the data to another: the same in all blocks.
    pub copy_sd: f64,
    /// Candidate / base.
    pub change: f64,
}

/// A kind of cell, and what the candidate does to it.
#[derive(Clone)]
pub struct World {
    pub blocks: u32,
    pub cells: u32,
    pub clients: u32,
    /// Candidate / base of throughput.
    pub speed: f64,
    /// CPU of an operation, microseconds: user, system.
    pub cpu_us: (f64, f64),
    pub candidate_cpu_us: (f64, f64),
    /// Of the logarithm of CPU, from block to block.
    pub cpu_sd: f64,
    /// The kernel splits CPU by sampling clock ticks: points by which the share of user time is off.
    pub split_sd: f64,
    /// Context switches of an operation: base, candidate.
    pub switches: (f64, f64),
    /// Wait for a core, microseconds of an operation: base, candidate.
    pub run_queue_us: (f64, f64),
    pub counters: Vec<Counter>,
}

pub fn counter(key: &'static str, per_operation: f64, sd: f64) -> Counter {
    Counter {
        key,
        per_operation,
        sd,
        copy_sd: 0.0,
        change: 1.0,
    }
}

/// Point queries: a hundred microseconds, everything in memory.
pub fn reads() -> World {
    World {
        blocks: 12,
        cells: 1,
        clients: 1,
        speed: 1.0,
        cpu_us: (36.0, 12.0),
        candidate_cpu_us: (36.0, 12.0),
        cpu_sd: 0.005,
        split_sd: 0.005,
        switches: (2.0, 2.0),
        run_queue_us: (3.0, 3.0),
        counters: vec![
            counter("device_reads", 0.0, 0.0),
            counter("device_read_bytes", 0.0, 0.0),
            counter("process_voluntary_switches", 1.01, 0.002),
            counter("process_involuntary_switches", 0.02, 0.2),
            counter("process_minor_faults", 0.5, 0.004),
            counter("process_major_faults", 0.0, 0.0),
            counter("database_blocks_hit", 4.0, 0.001),
            counter("database_blocks_read", 0.0, 0.0),
            counter("database_transactions", 1.0, 0.0),
            counter("database_rows_returned", 1.0, 0.0),
            counter("database_rows_fetched", 1.0, 0.0),
            counter("tables_index_scans", 1.0, 0.0),
            counter("tables_seq_scans", 0.0, 0.0),
            counter("wal_bytes", 0.8, 0.5),
            counter("wal_lsn_bytes", 0.9, 0.5),
            counter("memory_pss_bytes", 9e7, 0.002),
        ],
    }
}

/// Updates of one row: records and page images, written by a checkpoint later.
pub fn updates() -> World {
    World {
        counters: vec![
            counter("device_reads", 0.0, 0.0),
            counter("device_writes", 0.8, 0.02),
            counter("device_write_bytes", 9000.0, 0.03),
            counter("process_minor_faults", 0.5, 0.004),
            counter("database_blocks_hit", 12.0, 0.001),
            counter("database_transactions", 1.0, 0.0),
            counter("tables_updates", 1.0, 0.0),
            counter("tables_hot_updates", 0.9, 0.01),
            counter("tables_index_scans", 1.0, 0.0),
            counter("wal_bytes", 600.0, 0.004),
            counter("wal_lsn_bytes", 640.0, 0.004),
            counter("wal_records", 3.1, 0.001),
            counter("wal_full_pages", 0.05, 0.004),
        ],
        ..reads()
    }
}

impl World {
    /// Changes what the candidate counts.
    pub fn change(mut self, key: &'static str, change: f64) -> Self {
        let found = self.counters.iter_mut().find(|counter| counter.key == key);
        found.unwrap().change = change;
        self
    }

    pub fn plan(&self) -> Plan {
        let cells = (0..self.cells).map(|_| cell(self.clients, false)).collect();
        let mut plan = as_run(plan(cells));
        plan.timing.blocks = self.blocks;
        plan
    }

    /// A run, compared, with its costs.
    pub fn compare(&self, simulation: &mut Simulation) -> Comparison {
        let (slices, counters) = self.run(simulation);
        let plan = self.plan();
        let mut comparison = analyse(&plan, &slices, Vec::new());
        add_costs(
            &mut comparison,
            &plan,
            &slices,
            &counters,
            &two_cores(&plan),
        );
        comparison
    }

    pub fn run(&self, simulation: &mut Simulation) -> (Vec<Slice>, Vec<VisitCounters>) {
        let (mut slices, mut counters) = (Vec::new(), Vec::new());
        for cell in 0..self.cells {
            for server in [BASE, PLACEBO, CANDIDATE] {
                let copies: Vec<f64> = self
                    .counters
                    .iter()
                    .map(|counter| counter.copy_sd * simulation.normal())
                    .collect();
                for block in 0..self.blocks {
                    let visit = self.visit(simulation, (CellId(cell), server, block), &copies);
                    slices.extend(visit.0);
                    counters.push(visit.1);
                }
            }
        }
        (slices, counters)
    }

    fn visit(
        &self,
        simulation: &mut Simulation,
        (cell, server, block): (CellId, ServerId, u32),
        copies: &[f64],
    ) -> (Vec<Slice>, VisitCounters) {
        let new = server == CANDIDATE;
        let of = |(base, candidate): (f64, f64)| if new { candidate } else { base };
        let (user, system) = if new {
            self.candidate_cpu_us
        } else {
            self.cpu_us
        };
        let luck = (self.cpu_sd * simulation.normal()).exp();
        let rate = 10_000.0 * if new { self.speed } else { 1.0 } / luck;
        let mut slices = Vec::new();
        for round in 0..6 {
            let cpu = luck * (user + system) * (0.01 * simulation.normal()).exp();
            let rate = rate * (0.01 * simulation.normal()).exp();
            let mut slice = slice(server, block, round, rate, Some(cpu));
            let operations = to_f64(slice.operations);
            let mut counted =
                |per: f64, sd: f64| to_u64(per * operations * (sd * simulation.normal()).exp());
            slice.cell = cell;
            slice.switches = Some(counted(of(self.switches), 0.002));
            slice.run_queue_wait_ns = Some(counted(1e3 * of(self.run_queue_us), 0.2));
            slice.client_cpu_ns = counted(15_000.0, 0.01);
            slice.foreign_cpu_ns = Some(counted(1000.0, 0.2));
            slice.idle_cpu_ns = Some(counted(50.0, 0.3));
            slice.steal_ns = Some(0);
            slices.push(slice);
        }
        let operations = 200_000_u64;
        let share = user / (user + system) + self.split_sd * simulation.normal();
        let cpu = 1e3 * luck * (user + system) * to_f64(operations);
        let mut values = BTreeMap::from([
            ("process_user_ns".to_owned(), cpu * share),
            ("process_system_ns".to_owned(), cpu * (1.0 - share)),
        ]);
        for (counter, copy) in self.counters.iter().zip(copies) {
            let change = if new { counter.change } else { 1.0 };
            let over = if counter.key.starts_with("device") {
                slices.iter().map(|slice| slice.operations).sum()
            } else if counter.key == "memory_pss_bytes" {
                1
            } else {
                operations
            };
            let noise = (copy + counter.sd * simulation.normal()).exp();
            let value = counter.per_operation * change * noise * to_f64(over);
            values.insert(counter.key.to_owned(), value);
        }
        let counters = VisitCounters {
            server,
            cell,
            block,
            operations,
            values,
        };
        (slices, counters)
    }
}

pub fn said(cell: &CellComparison) -> &str {
    cell.explanation.as_deref().unwrap_or("")
}

pub fn moved(cell: &CellComparison) -> Vec<&str> {
    cell.moved.iter().map(|moved| moved.key.as_str()).collect()
}
