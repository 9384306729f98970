//! A comparison in the text format of Go's benchmarks, which `benchstat` and others read.

use crate::context::{ReportContext, resolved};
use crate::withdrawn;
use deltabench_compare::CountedCell;
use deltabench_compare::comparison::{BlockRate, CellComparison, Comparison};
use deltabench_model::plan::{CellId, DataState, Plan, ServerId};

/// Go's benchmark format: for each server a line per cell and restart block, so that
/// `benchstat -col server FILE` compares the servers.
///
/// Shape: `BenchmarkPointQuery/clients=1 1 46728.97 ns/op 11000 server-cpu-ns/op 21400 ops/s`; configuration
/// lines (`server: postgres:17.11`) apply to the lines after them. The number of iterations is 1: a block is
///        one measurement. What is withdrawn has a line `withdrawn: REASON` before it, which benchstat
///        prints over a table of its own. A count has a line per cell, with its instructions alone.
/// Units: nanoseconds of wall time for an operation of all clients together, of CPU of the server for one
///        (left out where it is not known), counted instructions (likewise), and operations per second.
///
/// benchstat does not pair the blocks, and knows neither placebo nor δ: its intervals are wider than ours,
/// and its word is not the gate's.
/// Source: the Go project's proposal 14313, "Go Benchmark Data Format", and `benchstat -h`.
pub fn benchstat(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let mut lines = vec![
        configuration("deltabench", &context.deltabench_version),
        configuration("run", &context.run),
        "Unit ops/s better=higher".to_owned(),
    ];
    let cells: Vec<&CellComparison> = comparison.cells.iter().collect();
    // The base stands in every candidate's cell; it is said once. A base alone has its placebo's.
    let mut base: Vec<&CellComparison> = Vec::new();
    let alone = comparison.placebo_cells.iter();
    let alone = alone.filter(|_| cells.is_empty());
    for cell in cells.iter().copied().chain(alone) {
        if base.iter().all(|seen| seen.cell != cell.cell) {
            base.push(cell);
        }
    }
    let run = (comparison, plan, context);
    let of_base = |rate: &BlockRate| (rate.base, rate.server_cpu_us.map(|(base, _)| base));
    let counted = |found: &CountedCell| found.base.per_op;
    lines.extend(section(run, plan.base(), &base, (of_base, counted)));
    for candidate in plan.candidates() {
        let of = cells.iter().filter(|cell| cell.candidate == candidate);
        let of: Vec<&CellComparison> = of.copied().collect();
        let own = |rate: &BlockRate| {
            let cpu = rate.server_cpu_us.map(|(_, candidate)| candidate);
            (rate.candidate, cpu)
        };
        let counted = |found: &CountedCell| found.counted.per_op;
        lines.extend(section(run, candidate, &of, (own, counted)));
    }
    lines.join("\n") + "\n"
}

/// A server's rate and CPU in a block, and its counted instructions of an operation.
type Side = (
    fn(&BlockRate) -> (f64, Option<f64>),
    fn(&CountedCell) -> f64,
);

/// The lines of one server.
fn section(
    (comparison, plan, context): (&Comparison, &Plan, &ReportContext),
    server: ServerId,
    cells: &[&CellComparison],
    (side, counted): Side,
) -> Vec<String> {
    let counts = comparison.instructions.as_ref();
    let mut lines = vec![
        String::new(),
        configuration("server", &resolved(plan, server)),
    ];
    for cell in cells {
        let name = name(plan, cell.cell, cell);
        let usable = |value: &f64| value.is_finite() && *value > 0.0;
        let sides = cell.rates.iter().map(side);
        let known = sides.filter(|(rate, _)| usable(rate));
        let withdrawn = withdrawn::of_cell(context, cell.cell);
        let instructions = counts.and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
        let instructions = instructions.map(|found| format!(" {} instructions/op", counted(found)));
        let without_time = instructions.as_ref().filter(|_| cell.rates.is_empty());
        let without_time = without_time.map(|counted| format!("{name} 1{counted}"));
        let instructions = instructions.unwrap_or_default();
        lines.extend(
            withdrawn
                .iter()
                .map(|reason| configuration("withdrawn", reason)),
        );
        lines.extend(known.map(|(rate, cpu)| {
            let cpu = cpu
                .filter(usable)
                .map(|us| format!(" {} server-cpu-ns/op", 1e3 * us));
            let cpu = cpu.unwrap_or_default();
            format!(
                "{name} 1 {} ns/op{cpu}{instructions} {rate} ops/s",
                1e9 / rate
            )
        }));
        lines.extend(without_time);
        // Without a value the key is gone.
        lines.extend(withdrawn.map(|_| "withdrawn:".to_owned()));
    }
    lines
}

/// `BenchmarkPointQuery/clients=1`, with state and rate where they are not the usual ones.
fn name(plan: &Plan, id: CellId, cell: &CellComparison) -> String {
    let mut name = format!(
        "Benchmark{}/clients={}",
        camel(&cell.workload),
        cell.clients
    );
    let Some(planned) = plan.cell(id) else {
        return name;
    };
    if planned.state != DataState::default() {
        name.push_str(&format!("/state={}", planned.state.word()));
    }
    if let Some(rate) = planned.rate {
        name.push_str(&format!("/rate={rate}"));
    }
    name
}

/// A workload's name as Go would have it: letters and digits, each word with a capital.
fn camel(workload: &str) -> String {
    let words = workload.split(|c: char| !c.is_alphanumeric());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    };
    words.map(capital).collect()
}

fn configuration(key: &str, value: &str) -> String {
    format!("{key}: {}", one_line(value))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_go() {
        assert_eq!(camel("range-covered-si"), "RangeCoveredSi");
        assert_eq!(camel("read-only-10000"), "ReadOnly10000");
        assert_eq!(camel("my.load_x"), "MyLoadX");
    }
}
