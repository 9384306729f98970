//! Everything that two servers did in one cell, ready to be asked about any part of it.

use crate::comparison::BlockRate;
use crate::pairing::{CellRounds, Index, Pairing, Round};
use crate::sample::{BlockValue, Values, server_cpu, throughput};
use crate::thresholds::{CONTENDED_SHARE, MIN_BLOCKS};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use std::collections::BTreeSet;
use std::ops::Range;

/// One pair of servers in one cell.
pub(crate) struct History<'a> {
    /// Blocks in which the cell was visited, with (disturbed, all) rounds, in order.
    visits: Vec<(u32, (u64, u64))>,
    /// With every good round.
    with: Part<'a>,
    /// Without the disturbed ones; absent where there are none.
    without: Option<Part<'a>>,
}

/// The pairs of a history and their block values.
pub(crate) struct Part<'a> {
    pub(crate) pairing: Pairing<'a>,
    throughput: Vec<BlockValue>,
    server_cpu: Vec<BlockValue>,
}

impl<'a> Part<'a> {
    fn new(pairing: Pairing<'a>) -> Self {
        Self {
            throughput: throughput(&pairing),
            server_cpu: server_cpu(&pairing),
            pairing,
        }
    }

    /// Throughput and CPU of both sides in every block.
    pub(crate) fn rates(&self) -> Vec<BlockRate> {
        let blocks = self.throughput.iter();
        let cpu = |block: u32| {
            let mut known = self.server_cpu.iter();
            let found = known.find(|value| value.block == block)?;
            Some((found.base, found.candidate))
        };
        let rate = |value: &BlockValue| BlockRate {
            block: value.block,
            base: value.base,
            candidate: value.candidate,
            server_cpu_us: cpu(value.block),
            switches: self.switches(value.block),
        };
        blocks.map(rate).collect()
    }

    /// Context switches of both sides for an operation in a block; of the base the mean of its copies.
    fn switches(&self, block: u32) -> Option<(f64, f64)> {
        let mut blocks = self.pairing.blocks.iter();
        let rounds = &blocks.find(|one| one.block == block)?.rounds;
        let controls = |round: &Round<'a>| [Some(round.base), round.second];
        let controls = rounds.iter().flat_map(controls).flatten();
        let base = switches_of(controls)?;
        Some((
            base,
            switches_of(rounds.iter().map(|round| round.candidate))?,
        ))
    }
}

/// Context switches for an operation of some slices; `None` unless all know theirs.
fn switches_of<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    let (mut switches, mut operations) = (0, 0);
    for slice in slices {
        switches += slice.switches?;
        operations += slice.operations;
    }
    (operations > 0).then(|| to_f64(switches) / to_f64(operations))
}

/// The block values of both primary metrics in some visits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) throughput: Vec<BlockValue>,
    pub(crate) server_cpu: Vec<BlockValue>,
}

impl<'a> History<'a> {
    pub(crate) fn new(
        index: &Index<'a>,
        rounds: &CellRounds,
        cell: CellId,
        base: ServerId,
        candidate: ServerId,
    ) -> Self {
        let pair = |excluded: &BTreeSet<(u32, u32)>| index.pair(cell, base, candidate, excluded);
        Self {
            visits: rounds.visits.iter().map(|(&b, &c)| (b, c)).collect(),
            with: Part::new(pair(&BTreeSet::new())),
            without: (!rounds.disturbed.is_empty()).then(|| Part::new(pair(&rounds.disturbed))),
        }
    }

    /// Number of visits so far.
    pub(crate) fn visits(&self) -> usize {
        self.visits.len()
    }

    /// Rounds disturbed in the first `visits` visits.
    pub(crate) fn disturbed(&self, visits: usize) -> u64 {
        self.visits
            .iter()
            .take(visits)
            .map(|(_, (disturbed, _))| disturbed)
            .sum()
    }

    /// Whether more than half of the rounds up to there were disturbed.
    ///
    /// Asked for a look, it knows the rounds up to that look only: what comes later cannot change it.
    pub(crate) fn contended(&self, visits: usize) -> bool {
        let all = self.visits.iter().take(visits).map(|(_, (_, all))| all);
        to_f64(self.disturbed(visits)) > CONTENDED_SHARE * to_f64(all.sum())
    }

    /// Whether disturbed rounds count: where they are more than half, and without them the interval is no
    /// wider, or has too few blocks. So no interval gets narrower because half of its rounds are passed.
    pub(crate) fn keeps_disturbed(&self, visits: usize) -> bool {
        let Some(without) = &self.without else {
            return true;
        };
        let width = |part: &Part<'a>| {
            let values = Values::of(&self.part(part, 0..visits).throughput);
            let mean = values.mean().filter(|_| values.logs.len() >= MIN_BLOCKS)?;
            Some(mean.interval(0.95).half_width())
        };
        let is_wider = || {
            let widths = width(without).zip(width(&self.with));
            widths.is_some_and(|(without, with)| without > with)
        };
        self.contended(visits) && !is_wider()
    }

    /// The rounds that count up to there.
    pub(crate) fn counted(&self, visits: usize) -> &Part<'a> {
        match &self.without {
            Some(without) if !self.keeps_disturbed(visits) => without,
            _ => &self.with,
        }
    }

    /// The block values that count in these visits.
    pub(crate) fn sample(&self, visits: Range<usize>) -> Sample {
        self.part(self.counted(visits.end), visits)
    }

    /// The block values with the disturbed rounds, and without them; `None` where none is disturbed.
    pub(crate) fn both(&self, visits: Range<usize>) -> Option<(Sample, Sample)> {
        let without = self.without.as_ref()?;
        (self.disturbed(visits.end) > 0).then(|| {
            (
                self.part(&self.with, visits.clone()),
                self.part(without, visits),
            )
        })
    }

    /// First and last block of these visits; `None` for none.
    pub(crate) fn bounds(&self, visits: &Range<usize>) -> Option<(u32, u32)> {
        let visits = self.visits.get(visits.clone())?;
        Some((visits.first()?.0, visits.last()?.0))
    }

    fn part(&self, part: &Part<'a>, visits: Range<usize>) -> Sample {
        let Some((first, last)) = self.bounds(&visits) else {
            return Sample::default();
        };
        let within = |values: &[BlockValue]| {
            let inside = values
                .iter()
                .filter(|value| (first..=last).contains(&value.block))
                .copied();
            inside.collect()
        };
        Sample {
            throughput: within(&part.throughput),
            server_cpu: within(&part.server_cpu),
        }
    }
}
