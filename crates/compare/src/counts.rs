//! What counted instructions say of a run.

use crate::analyse::counts as verdicts;
use crate::comparison::{
    Apart, CellComparison, Comparison, CountedCell, InstructionCounts, ServerCount, Verdict,
};
use crate::thresholds::{COUNT_BESIDE_MAX, COUNT_KEYS_MAX, COUNT_LIMIT, COUNT_SPAN_MAX};
use crate::words::{self, threshold};
use deltabench_model::counts::CountRecord;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Build;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use std::collections::BTreeSet;

/// What the counts of a plan's run say; absent if nothing was counted.
pub fn counted(plan: &Plan, records: &[CountRecord], alone: bool) -> Option<InstructionCounts> {
    let limit = plan.gate.not_worse_than.filter(|_| alone);
    let limit = limit.unwrap_or(COUNT_LIMIT);
    let of = |server: ServerId, cell: CellId| -> Vec<&CountRecord> {
        let own = |record: &&CountRecord| record.server == server && record.cell == cell;
        records.iter().filter(own).collect()
    };
    let mut cells = Vec::new();
    for candidate in plan.candidates() {
        for (cell, _) in CellId::each().zip(&plan.cells) {
            let (base, counted) = (of(plan.base(), cell), of(candidate, cell));
            let by_start = ratios_by(&base, &counted, |record| record.start);
            let by_window = ratios_by(&base, &counted, |record| record.window);
            if let (Some(base), Some(counted)) = (ServerCount::of(&base), ServerCount::of(&counted))
            {
                let found = CountedCell::of((cell, candidate), base, counted, limit);
                cells.push(CountedCell {
                    by_start,
                    by_window,
                    ..found
                });
            }
        }
    }
    (!cells.is_empty()).then_some(InstructionCounts {
        limit,
        alone,
        cells,
    })
}

/// Candidate over base in each start, or in each window, that both had.
fn ratios_by(
    base: &[&CountRecord],
    candidate: &[&CountRecord],
    number: impl Fn(&CountRecord) -> u32,
) -> Vec<f64> {
    let of = |records: &[&CountRecord], wanted: u32| {
        let own = |record: &&CountRecord| number(record) == wanted;
        ServerCount::of(&records.iter().copied().filter(own).collect::<Vec<_>>())
    };
    let numbers: BTreeSet<u32> = base.iter().map(|record| number(record)).collect();
    let ratio = |number| Some(of(candidate, number)?.per_op / of(base, number)?.per_op.max(1.0));
    numbers.into_iter().filter_map(ratio).collect()
}

/// Adds what was counted to a comparison. Where nothing was measured beside, its verdicts are those of the
/// counts.
pub fn add_counts(comparison: &mut Comparison, plan: &Plan, records: &[CountRecord], alone: bool) {
    let Some(counts) = counted(plan, records, alone) else {
        return;
    };
    comparison.findings.extend(findings(plan, &counts));
    if alone {
        comparison.host_ok = true;
        comparison
            .findings
            .retain(|finding| !finding.kind.is_of_time());
        for cell in &mut comparison.cells {
            let found = counts.of_cell(cell.cell, cell.candidate);
            judge(cell, found, counts.limit);
        }
        comparison.counts = verdicts(&comparison.cells);
    }
    comparison.instructions = Some(counts);
}

/// Adds a sentence for each cell whose counted work and measured time say different things. After all that
/// may change its verdict.
pub fn add_apart(comparison: &mut Comparison, plan: &Plan) {
    let Some(counts) = comparison.counted_beside() else {
        return;
    };
    let said = |cell: &CellComparison| {
        let counted = counts.of_cell(cell.cell, cell.candidate)?;
        let name = words::cell_on(plan, cell);
        let change = counted.change();
        let text = match counted.apart(cell)? {
            Apart::TimeAlone => format!(
                "{name}: {}, but {change} instructions: look at waits, caches, the kernel, other clients",
                time_word(cell.verdict)
            ),
            Apart::WorkAlone => format!(
                "{name}: {change} instructions, but no change of throughput beyond ±{}",
                threshold(cell.delta)
            ),
            Apart::Opposite => format!(
                "{name}: {}, but {change} instructions: time and work say the opposite",
                time_word(cell.verdict)
            ),
        };
        Some(Finding::new(
            FindingKind::CountAndTime,
            Severity::Note,
            text,
        ))
    };
    let said: Vec<Finding> = comparison.cells.iter().filter_map(said).collect();
    comparison.findings.extend(said);
}

fn time_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "slower",
        _ => "faster",
    }
}

fn judge(cell: &mut CellComparison, found: Option<&CountedCell>, limit: f64) {
    let (verdict, reason) = match found {
        Some(found) => (
            found.verdict,
            format!("{} instructions per operation", found.change()),
        ),
        None => (Verdict::Inconclusive, "not counted".to_owned()),
    };
    cell.verdict = verdict;
    cell.alone = verdict;
    cell.reason = reason;
    cell.delta = limit;
    cell.blocks_to_verdict = None;
    cell.minutes_to_verdict = None;
}

/// What makes a count doubtful: starts that differ, other rows, other processes at work.
fn findings(plan: &Plan, counts: &InstructionCounts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for cell in &counts.cells {
        let workload = plan.cell(cell.cell);
        let name = workload.map_or("?", |planned| planned.workload.as_str());
        for (server, count) in [(plan.base(), &cell.base), (cell.candidate, &cell.counted)] {
            found.extend(of_server(
                plan.work.is_embedded(),
                name,
                &plan.server_name(server),
                count,
            ));
        }
        let writes = workload.is_none_or(|planned| planned.writes);
        if !plan.work.is_embedded() && !writes {
            let doubt = cell.base.span.unwrap_or(0.0) + cell.counted.span.unwrap_or(0.0);
            let candidate = plan.server_name(cell.candidate);
            found.extend(of_keys(name, &candidate, &cell.by_window, doubt));
        }
        if (cell.base.rows_per_op - cell.counted.rows_per_op).abs() > f64::EPSILON {
            let text = format!(
                "{name}: {} rows per operation in base, {} in {}: that is not the same work",
                cell.base.rows_per_op,
                cell.counted.rows_per_op,
                plan.server_name(cell.candidate)
            );
            found.push(Finding::new(
                FindingKind::CountRowsDiffer,
                Severity::Confounder,
                text,
            ));
        }
    }
    let mut told: Vec<Finding> = Vec::new();
    for finding in found {
        if !told.contains(&finding) {
            told.push(finding);
        }
    }
    told
}

/// That the ratio of a candidate depends on the keys, by more than starts differ: the windows of a cell that
/// reads have other keys, and nothing else.
fn of_keys(workload: &str, candidate: &str, by_window: &[f64], doubt: f64) -> Option<Finding> {
    let most = by_window.iter().copied().reduce(f64::max)?;
    let least = by_window.iter().copied().reduce(f64::min)?;
    (most - least > COUNT_KEYS_MAX.max(doubt)).then(|| {
        let text = format!(
            "{workload}: windows with other keys give ratios of {candidate} from {least:.4} to {most:.4}: \
             the count is exact for its keys, and other keys give another size"
        );
        Finding::new(FindingKind::CountKeys, Severity::Note, text)
    })
}

fn of_server(embedded: bool, workload: &str, server: &str, count: &ServerCount) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(span) = count.span.filter(|span| *span > COUNT_SPAN_MAX) {
        let text = format!(
            "{workload}: starts of {server} differ by {:.3} % in instructions",
            span * 100.0
        );
        found.push(Finding::new(FindingKind::CountSpan, Severity::Note, text));
    }
    if let Some(beside) = count.beside.filter(|beside| *beside > COUNT_BESIDE_MAX) {
        let (others, counted) = match embedded {
            true => ("threads", "thread of the step"),
            false => ("processes", "backend"),
        };
        let text = format!(
            "{workload}: other {others} of {server} executed {:.1} % as many instructions as the {counted}, \
             and are not counted",
            beside * 100.0
        );
        found.push(Finding::new(FindingKind::CountBeside, Severity::Note, text));
    }
    found
}

/// What a count cannot say, as far as it applies to a plan whose servers were compiled so; in one sentence
/// where it stands beside times.
pub fn caveats(plan: &Plan, builds: &[Build], alone: bool) -> Vec<Finding> {
    let all = each_caveat(plan, builds);
    if alone {
        return all;
    }
    let texts: Vec<&str> = all.iter().map(|finding| finding.text.as_str()).collect();
    vec![Finding::new(
        FindingKind::CountLeavesOut,
        Severity::Note,
        format!("instructions: {}", texts.join("; ")),
    )]
}

fn each_caveat(plan: &Plan, builds: &[Build]) -> Vec<Finding> {
    let note =
        |kind: &'static str, text: &str| Finding::new(FindingKind::own(kind), Severity::Note, text);
    let any = |is: &dyn Fn(&Cell) -> bool| plan.cells.iter().any(is);
    let (own_code, alone, later) = match plan.work.is_embedded() {
        true => (
            "a count includes what calls of the library execute, but not the code of the kernel and \
             the worker",
            "each target has one thread: a count includes no waits for locks of others, and no effects \
             of others on caches",
            "a count includes the thread of the step, but not the threads for flushes and compactions \
             and the work that writes leave to them",
        ),
        false => (
            "a count includes the server's code, but not the kernel's",
            "each server has one client: a count includes no waits for locks of others, and no effects \
             of others on caches",
            "counts of cells that write do not include what background processes write later",
        ),
    };
    let mut found = vec![
        note(
            "count-is-not-time",
            "instructions are not time: a count does not include misses of caches and branches, or waits",
        ),
        note("count-no-kernel", own_code),
        note(
            "count-dispatch",
            "the counter hides some instruction sets of the CPU: checksums, bit counts and copies may \
             run another variant than without it",
        ),
        note("count-one-client", alone),
    ];
    if plan.work.has_passes() || any(&|cell| plan.work.comes_in_bursts(&cell.workload)) {
        found.push(note(
            "count-no-rates",
            "a count leaves out what a step does at a rate, because a rate has no meaning if an \
             operation takes fifty times as long",
        ));
    }
    if !plan.work.is_embedded() {
        found.push(note(
            "count-allocator",
            "calls of malloc and free are counted, their search for free memory at a fixed price: it depends \
             on all that a backend did before",
        ));
    }
    let small = |build: &Build| {
        build
            .cflags
            .split_ascii_whitespace()
            .any(|flag| flag == "-Os")
    };
    if builds.iter().any(small) {
        found.push(note(
            "count-small-builds",
            "a server was compiled for size (-Os): a count includes calls that -O2 would inline; for \
             production, count builds from source",
        ));
    }
    if any(&|cell| cell.writes) {
        found.push(note("count-writes", later));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_differ_and_others_at_work_are_told() {
        let quiet = ServerCount::of_two_starts(1e5, 0.0004);
        assert_eq!(of_server(false, "scan", "postgres:18", &quiet), []);
        let loud = ServerCount {
            beside: Some(0.02),
            ..ServerCount::of_two_starts(1e5, 0.000_8)
        };
        let kinds: Vec<FindingKind> = of_server(false, "scan", "postgres:18", &loud)
            .into_iter()
            .map(|finding| finding.kind)
            .collect();
        assert_eq!(kinds, [FindingKind::CountSpan, FindingKind::CountBeside]);
        let told = of_server(true, "readrandom", "rocksdb:10.2.1", &loud);
        assert!(told[1].text.contains("other threads of rocksdb:10.2.1"));
    }

    #[test]
    fn windows_whose_ratios_differ_by_their_keys_are_told() {
        let window = |window, instructions| CountRecord {
            server: ServerId(0),
            cell: CellId(0),
            start: 0,
            window,
            operations: 10,
            instructions,
            of_marks: 0,
            of_clock: 0,
            rows: 0,
            failed: 0,
            beside: None,
        };
        let base = [window(0, 9_000), window(1, 10_000)];
        let ratios = |second| {
            let candidate = [window(0, 9_900), window(1, second)];
            let [base, candidate] = [&base, &candidate].map(|all| all.iter().collect::<Vec<_>>());
            ratios_by(&base, &candidate, |record| record.window)
        };
        let of_keys = |ratios: &[f64], doubt| of_keys("points", "postgres:18", ratios, doubt);
        assert_eq!(of_keys(&ratios(11_010), 0.0), None);
        let told = of_keys(&ratios(10_900), 0.0001).unwrap();
        let said = "of postgres:18 from 1.0900 to 1.1000";
        assert!(told.text.contains(said), "{}", told.text);
        // What starts differ by may be all of it.
        assert_eq!(of_keys(&ratios(10_900), 0.02), None);
        assert_eq!(of_keys(&[], 0.0), None);
    }
}
