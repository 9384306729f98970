//! Counted instructions: exact numbers of work, so no interval but what two starts differ by.

use super::{CellComparison, Metric, Verdict};
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::units::{count, to_f64};
use std::collections::BTreeSet;

/// A change of work below this is none, whatever the starts say: cells that write repeat to about that.
const SAME: f64 = 0.001;

/// Work that moved by at most this share of what throughput moved by moved hardly.
const HARDLY: f64 = 1.0 / 3.0;

/// The counted instructions of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionCounts {
    /// Growth that is a regression, as a share.
    pub limit: f64,
    /// Whether the run has nothing else: its verdicts are then those of the counts.
    pub alone: bool,
    /// One for each cell and candidate that was counted on both sides.
    pub cells: Vec<CountedCell>,
}

/// The instructions of a cell, candidate against base.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedCell {
    /// Which cell.
    pub cell: CellId,
    /// Which candidate.
    pub candidate: ServerId,
    /// The base's.
    pub base: ServerCount,
    /// The candidate's.
    pub counted: ServerCount,
    /// Candidate over base.
    pub ratio: f64,
    /// The same with the starts of both servers at the ends that are nearest, and farthest.
    pub ends: (f64, f64),
    /// The same of each start that both sides had.
    pub by_start: Vec<f64>,
    /// The same in each window: windows of a cell have other keys.
    pub by_window: Vec<f64>,
    /// What the limit says to that.
    pub verdict: Verdict,
}

/// How the counted work of a cell and its measured time part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// Its time changed, its work hardly.
    TimeAlone,
    /// Its work changed, neither throughput nor CPU did.
    WorkAlone,
    /// More work in less time, or the reverse.
    Opposite,
}

/// The instructions of a cell on one server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerCount {
    /// User instructions of an operation.
    pub per_op: f64,
    /// What its starts differ by, over their mean; absent with one start.
    pub span: Option<f64>,
    /// Starts.
    pub starts: u32,
    /// Rows of an operation.
    pub rows_per_op: f64,
    /// The most CPU that other processes of the server had in a window, over that of the backend.
    pub beside: Option<f64>,
}

impl ServerCount {
    /// A count of two starts with no others at work beside it.
    #[cfg(test)]
    pub(crate) fn of_two_starts(per_op: f64, span: f64) -> Self {
        Self {
            per_op,
            span: Some(span),
            starts: 2,
            rows_per_op: 1.0,
            beside: None,
        }
    }

    /// What the windows of one server in one cell come to; none without windows.
    pub fn of(records: &[&CountRecord]) -> Option<Self> {
        let starts: BTreeSet<u32> = records.iter().map(|record| record.start).collect();
        let per_op = |records: &mut dyn Iterator<Item = &&CountRecord>| {
            let (mut net, mut operations) = (0, 0);
            for record in records {
                net += record.net();
                operations += record.operations;
            }
            (operations > 0).then(|| to_f64(net) / to_f64(operations))
        };
        let of_start =
            |start: &u32| per_op(&mut records.iter().filter(|record| record.start == *start));
        let each: Vec<f64> = starts.iter().filter_map(of_start).collect();
        let mean = per_op(&mut records.iter())?;
        let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = each.iter().copied().fold(f64::INFINITY, f64::min);
        let operations: u64 = records.iter().map(|record| record.operations).sum();
        let rows: u64 = records.iter().map(|record| record.rows).sum();
        let beside = records.iter().filter_map(|record| record.beside);
        Some(Self {
            per_op: mean,
            span: (each.len() > 1 && mean > 0.0).then(|| (most - least) / mean),
            starts: u32::try_from(starts.len()).unwrap_or(u32::MAX),
            rows_per_op: to_f64(rows) / to_f64(operations.max(1)),
            beside: beside.reduce(f64::max),
        })
    }
}

impl InstructionCounts {
    /// What was counted of a cell and a candidate.
    pub fn of_cell(&self, cell: CellId, candidate: ServerId) -> Option<&CountedCell> {
        let mut cells = self.cells.iter();
        cells.find(|found| found.cell == cell && found.candidate == candidate)
    }

    /// Geometric mean of a candidate's ratios; absent without any.
    pub fn mean(&self, candidate: ServerId) -> Option<f64> {
        let of = self.cells.iter().filter(|cell| cell.candidate == candidate);
        let logs: Vec<f64> = of.map(|cell| cell.ratio.ln()).collect();
        let cells = to_f64(count(logs.len()));
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / cells).exp())
    }
}

impl CountedCell {
    /// Judges what was counted on both sides: growth above `limit`, a share, is a regression.
    pub fn of(
        (cell, candidate): (CellId, ServerId),
        base: ServerCount,
        counted: ServerCount,
        limit: f64,
    ) -> Self {
        let ratio = counted.per_op / base.per_op.max(1.0);
        let doubt = base.span.unwrap_or(0.0) + counted.span.unwrap_or(0.0);
        let ends = (ratio * (1.0 - doubt), ratio * (1.0 + doubt));
        let verdict = if ends.0 > 1.0 + limit {
            Verdict::Regression
        } else if ends.1 > 1.0 + limit {
            Verdict::Inconclusive
        } else if ends.1 < 1.0 - limit {
            Verdict::Improvement
        } else {
            Verdict::NoChange
        };
        Self {
            cell,
            candidate,
            base,
            counted,
            ratio,
            ends,
            by_start: Vec::new(),
            by_window: Vec::new(),
            verdict,
        }
    }

    /// Whether the starts, or a thousandth, hold no change at all.
    pub fn is_same(&self) -> bool {
        let (low, high) = self.ends;
        (low <= 1.0 && high >= 1.0) || (self.ratio - 1.0).abs() < SAME
    }

    /// How it parts from what was measured of the same cell; `None` where both say the same, or one of them
    /// nothing.
    pub fn apart(&self, measured: &CellComparison) -> Option<Apart> {
        let throughput = measured.metric(Metric::Throughput)?.ratio.estimate;
        let cpu = measured.metric(Metric::ServerCpuPerOperation);
        let cpu = cpu.and_then(|cpu| cpu.verdict);
        let work = self.ratio.ln();
        let hardly = work.abs() <= throughput.ln().abs() * HARDLY;
        match (measured.verdict, self.verdict) {
            (Verdict::Regression, Verdict::Improvement)
            | (Verdict::Improvement, Verdict::Regression) => Some(Apart::Opposite),
            (Verdict::Regression | Verdict::Improvement, Verdict::NoChange) if hardly => {
                Some(Apart::TimeAlone)
            }
            (Verdict::NoChange, Verdict::Regression | Verdict::Improvement)
                if cpu != Some(self.verdict) =>
            {
                Some(Apart::WorkAlone)
            }
            _ => None,
        }
    }

    /// What the starts of one server differ by, at most; absent with one start each.
    pub fn span(&self) -> Option<f64> {
        let spans = [self.base.span, self.counted.span];
        spans.into_iter().flatten().reduce(f64::max)
    }

    /// The change in words: `+3.37 %`.
    pub fn change(&self) -> String {
        format!("{:+.2} %", (self.ratio - 1.0) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: u32, window: u32, instructions: u64) -> CountRecord {
        CountRecord {
            server: ServerId(0),
            cell: CellId(0),
            start,
            window,
            operations: 100,
            instructions,
            of_marks: 216_000,
            of_clock: 10_000,
            rows: 100,
            failed: 0,
            beside: None,
        }
    }

    #[test]
    fn marks_are_taken_off_and_windows_of_a_start_count_together() {
        let records = [
            record(0, 0, 4_640_000),
            record(0, 1, 4_642_000),
            record(1, 0, 4_640_200),
            record(1, 1, 4_642_000),
        ];
        let found = ServerCount::of(&records.iter().collect::<Vec<_>>()).unwrap();
        assert!((found.per_op - 44_150.5).abs() < 1e-9, "{found:?}");
        // One start has 200 more over 200 operations.
        assert!((found.span.unwrap() - 1.0 / 44_150.5).abs() < 1e-12);
        assert_eq!((found.starts, found.rows_per_op), (2, 1.0));
        let one = ServerCount::of(&[&records[0]]).unwrap();
        assert_eq!(one.span, None, "one start says nothing of others");
        assert_eq!(ServerCount::of(&[]), None);
    }

    #[test]
    fn what_the_starts_leave_open_is_no_verdict() {
        for (at, span, verdict) in [
            (45_627.0, 0.000_004, Verdict::Regression),
            (44_140.0, 0.000_004, Verdict::NoChange),
            (44_540.0, 0.000_004, Verdict::NoChange),
            (44_582.0, 0.000_4, Verdict::Inconclusive),
            (43_000.0, 0.000_004, Verdict::Improvement),
        ] {
            let cell = CountedCell::of(
                (CellId(0), ServerId(1)),
                ServerCount::of_two_starts(44_140.0, span),
                ServerCount::of_two_starts(at, span),
                0.01,
            );
            assert_eq!(cell.verdict, verdict, "{at}");
        }
        let cell = CountedCell::of(
            (CellId(0), ServerId(1)),
            ServerCount::of_two_starts(44_140.0, 0.0),
            ServerCount::of_two_starts(45_627.0, 0.0),
            0.01,
        );
        assert_eq!(cell.change(), "+3.37 %");
    }
}
