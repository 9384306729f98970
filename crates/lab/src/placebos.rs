//! What runs said about their placebos: the ledger of false alarms, and of intervals.

use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_compare::ledger::{
    Coverage, Entry, FalseAlarmRate, RunTally, Tally, coverage, p_of_interval, summarise, tallies,
};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::units::{count, index};
use deltabench_report::LedgerLine as FalseAlarms;
use deltabench_store::{LedgerLine, PlaceboResult, RecordedRatio};
use std::collections::BTreeMap;

/// How the ledger calls a plan that measures all its blocks, whatever they say.
const FIXED: &str = "fixed";

/// What a run's placebo came to, for the store: judged at this time, on this host.
pub(crate) fn results(
    comparison: &Comparison,
    plan: &Plan,
    host: &str,
    finished_unix_ms: i64,
) -> Vec<PlaceboResult> {
    let stopping = match comparison.stopping {
        Stopping::Fixed => FIXED,
        Stopping::Sequential { .. } => "sequential",
        Stopping::Precision { .. } => "precision",
    };
    let result = |cell: &CellComparison| {
        let recorded = |metric| {
            let found = cell.metrics.iter().find(|found| found.metric == metric)?;
            Some(RecordedRatio {
                estimate: found.ratio.estimate,
                ci95: found.ratio.ci95,
                p: found.p(),
            })
        };
        PlaceboResult {
            cell: cell.cell,
            workload: cell.workload.clone(),
            clients: cell.clients,
            state: plan
                .cell(cell.cell)
                .map_or_else(String::new, |planned| planned.state.word().to_owned()),
            verdict: cell.verdict.word().to_owned(),
            throughput: recorded(Metric::Throughput),
            server_cpu: recorded(Metric::ServerCpuPerOperation),
            blocks: cell.blocks,
            stopping: stopping.to_owned(),
            host: host.to_owned(),
            finished_unix_ms,
        }
    };
    comparison.placebo_cells.iter().map(result).collect()
}

/// The ledger by run, for whoever asks what had been said by the end of many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// The host of each run, and when it was judged, milliseconds since 1970.
    runs: BTreeMap<String, (String, i64)>,
    /// When each run of a host was judged, oldest first, and what all had said by then.
    hosts: BTreeMap<String, Vec<(i64, Tally)>>,
}

impl Ledger {
    pub(crate) fn of(lines: &[LedgerLine]) -> Self {
        let mut ledger = Self::default();
        for line in lines {
            let result = &line.result;
            let known = ledger.runs.entry(line.run.clone());
            known.or_insert_with(|| (result.host.clone(), result.finished_unix_ms));
        }
        let tallies = tallies(&{ lines.iter().filter_map(entry) }.collect::<Vec<_>>());
        let ended = |(run, own)| Some((ledger.runs.get(run)?, own));
        let mut runs: Vec<(&(String, i64), &RunTally)> = tallies.iter().filter_map(ended).collect();
        runs.sort_by_key(|((_, end), _)| *end);
        for ((host, end), own) in runs {
            let host = ledger.hosts.entry(host.clone()).or_default();
            let mut all = host.last().map(|(_, all)| all.clone()).unwrap_or_default();
            all.add(own);
            host.push((*end, all));
        }
        ledger
    }

    /// What had been said by the end of a run about the placebos of its host, over all workloads; `None`
    /// before the first. Later runs do not change it, nor does the host that asks: a report stays the same.
    ///
    /// Machine and end count for a run that is not in the ledger.
    pub(crate) fn so_far(&self, run: &str, machine: &str, ended_ms: i64) -> Option<FalseAlarms> {
        let own = self.runs.get(run);
        let (host, end) = own.map_or((machine, ended_ms), |(host, end)| (host.as_str(), *end));
        let runs = self.hosts.get(host)?;
        let until = runs.partition_point(|(at, _)| *at <= end);
        let (_, said) = runs.get(until.checked_sub(1)?)?;
        let all = said.over_all();
        (all.total > 0).then(|| FalseAlarms {
            flagged: all.flagged(),
            total: all.total,
            upper_bound: all.upper95,
            coverage: said.coverage(),
        })
    }
}

/// What a line says; `None` for a cell with too few blocks for a verdict. It cannot raise a false alarm, and
/// counting it would make the rate look smaller than it is.
fn entry(line: &LedgerLine) -> Option<Entry> {
    let verdict = verdict(&line.result.verdict)?;
    let is_judged = index(u64::from(line.result.blocks)) >= MIN_BLOCKS;
    is_judged.then(|| Entry {
        run: line.run.clone(),
        workload: label(&line.result),
        verdict,
        throughput_p: p(line.result.throughput, line.result.blocks),
        server_cpu_p: p(line.result.server_cpu, line.result.blocks),
    })
}

/// The ledger, counted.
#[derive(Debug)]
pub struct Placebos<'a> {
    /// The host that counts; absent for all of them.
    pub host: Option<&'a str>,
    /// Each workload, then all together.
    pub rows: Vec<FalseAlarmRate>,
    /// How often their intervals hold 0.
    pub coverage: Vec<Coverage>,
    /// Of the cells counted, those of plans that end a cell by what was measured of its candidates.
    pub may_stop: u64,
    /// The runs that were counted, oldest first.
    pub runs: Vec<CountedRun<'a>>,
    /// Cells of other hosts, which do not count.
    pub elsewhere: u64,
    /// Cells with too few blocks to be called different, which do not count.
    pub too_short: u64,
}

/// A run that the ledger comes from.
#[derive(Debug)]
pub struct CountedRun<'a> {
    pub run: &'a str,
    /// Placebo cells that were judged.
    pub cells: u64,
    /// Of these called different.
    pub flagged: u64,
    /// Version of deltabench that judged them.
    pub written_by: &'a str,
    /// When, milliseconds since 1970.
    pub finished_unix_ms: i64,
}

impl<'a> Placebos<'a> {
    /// Counts what one host, or all, said.
    pub fn count(lines: impl IntoIterator<Item = &'a LedgerLine>, host: Option<&'a str>) -> Self {
        let (here, elsewhere): (Vec<&LedgerLine>, Vec<&LedgerLine>) = lines
            .into_iter()
            .partition(|line| host.is_none_or(|host| line.result.host == host));
        let (judged, short): (Vec<_>, Vec<_>) = here
            .into_iter()
            .filter_map(|line| Some((line, verdict(&line.result.verdict)?)))
            .partition(|(line, _)| index(u64::from(line.result.blocks)) >= MIN_BLOCKS);
        let entries: Vec<Entry> = { judged.iter() }
            .filter_map(|(line, _)| entry(line))
            .collect();
        let may_stop = { judged.iter() }.filter(|(line, _)| line.result.stopping != FIXED);
        let mut runs: Vec<CountedRun<'_>> = Vec::new();
        for (line, verdict) in &judged {
            let flagged = u64::from(verdict.is_change());
            match runs.last_mut().filter(|row| row.run == line.run) {
                Some(row) => {
                    row.cells += 1;
                    row.flagged += flagged;
                }
                None => runs.push(CountedRun {
                    run: &line.run,
                    cells: 1,
                    flagged,
                    written_by: &line.written_by,
                    finished_unix_ms: line.result.finished_unix_ms,
                }),
            }
        }
        Self {
            host,
            rows: summarise(&entries),
            coverage: coverage(&entries),
            may_stop: count(may_stop.count()),
            runs,
            elsewhere: count(elsewhere.len()),
            too_short: count(short.len()),
        }
    }
}

/// p of "both are equal". Versions before did not keep it.
fn p(ratio: Option<RecordedRatio>, blocks: u32) -> Option<f64> {
    let ratio = ratio?;
    ratio
        .p
        .or_else(|| p_of_interval(ratio.estimate, ratio.ci95?, blocks))
}

fn verdict(word: &str) -> Option<Verdict> {
    [
        Verdict::Regression,
        Verdict::Improvement,
        Verdict::NoChange,
        Verdict::Inconclusive,
        Verdict::Unfit,
    ]
    .into_iter()
    .find(|verdict| verdict.word() == word)
}

fn label(result: &PlaceboResult) -> String {
    let mut label = result.workload.clone();
    if result.state == "aged" {
        label.push_str(", aged");
    }
    if result.clients != 1 {
        label.push_str(&format!(", {} clients", result.clients));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::ledger_lines;

    #[test]
    fn this_host_is_counted_and_others_only_when_asked() {
        let lines = ledger_lines();
        let here = Placebos::count(&lines, Some("here"));
        let all = here.rows.last().unwrap();
        assert_eq!((all.total, all.flagged()), (3, 1));
        assert_eq!((here.elsewhere, here.too_short), (1, 1));
        let names: Vec<_> = here
            .rows
            .iter()
            .map(|row| row.workload.as_deref())
            .collect();
        let labels = ["hot-points", "point-query", "point-query, 4 clients"];
        assert_eq!(names[..3], labels.map(Some));
        let everywhere = Placebos::count(&lines, None);
        assert_eq!(everywhere.rows.last().unwrap().total, 4);
        assert_eq!(everywhere.elsewhere, 0);
    }

    #[test]
    fn intervals_are_counted_by_the_p_that_was_kept_or_by_their_ends() {
        let mut lines = ledger_lines();
        let ratio = |ci95, p| {
            Some(RecordedRatio {
                estimate: 0.99,
                ci95,
                p,
            })
        };
        lines[0].result.throughput = ratio(Some((0.98, 1.001)), None);
        lines[1].result.throughput = ratio(Some((0.98, 0.999)), None);
        lines[2].result.throughput = ratio(Some((0.98, 0.999)), Some(0.6));
        lines[2].result.stopping = "sequential".to_owned();
        let counted = Placebos::count(&lines, Some("here"));
        let held: Vec<u64> = counted.coverage.iter().map(|row| row.held).collect();
        assert_eq!(held, [1, 1, 2], "CPU is not known of any");
        assert_eq!((counted.coverage[0].cells, counted.may_stop), (3, 1));
    }

    #[test]
    fn a_report_counts_what_was_known_when_its_run_ended() {
        let mut lines = ledger_lines();
        lines[2].result.finished_unix_ms = 20;
        lines[3].result.finished_unix_ms = 20;
        let ledger = Ledger::of(&lines);
        let total = |run, ended| ledger.so_far(run, "here", ended).map(|row| row.total);
        assert_eq!(total("r1", 99), Some(2), "r2 ended later");
        assert_eq!(total("r2", 0), Some(3));
        assert_eq!(total("r3", 0), Some(1), "its own host, not this one");
        let whole = Placebos::count(&lines, Some("here"));
        let found = ledger.so_far("r2", "", 0).unwrap();
        assert_eq!(found.coverage, whole.coverage);
        assert!((found.upper_bound - whole.rows.last().unwrap().upper95).abs() < 1e-15);
    }
}
