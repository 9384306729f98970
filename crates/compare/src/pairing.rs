//! From slices to the rounds in which two servers did the same work.

use crate::interference::{Foreign, disturbed_rounds};
use crate::thresholds::{MIN_ROUNDS, MIN_ROUNDS_OF_STEPS, SECOND_CONTROL_SD};
use crate::witness::{Rounds, hindered, knows_waits, neighbours};
use deltabench_model::finding::Finding;
use deltabench_model::plan::{CacheState, Cell, CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, micros, to_f64};
use deltabench_stats::summary::median;
use std::collections::{BTreeMap, BTreeSet};

/// All slices of a run, by cell. Of two slices of the same place the later one counts: a visit that was
/// interrupted and measured again.
pub(crate) struct Index<'a> {
    cells: BTreeMap<CellId, Rounds<'a>>,
    /// Cells whose typical operation is that of all rounds together, see [`is_pooled`].
    pooled: BTreeSet<CellId>,
    /// Whether the rounds of a visit follow from each other: caches fill, tables grow.
    drifting: bool,
    /// Cells whose rounds are whole steps: long, and one in a block.
    steps: BTreeSet<CellId>,
    /// Cells whose client shares the server's core, so that waits for that core tell who else had it.
    witnessed: BTreeSet<CellId>,
    /// Whether nothing ties the two sides of a block.
    unpaired: bool,
    /// The base, and the placebo that candidates are compared with besides.
    controls: Option<(ServerId, ServerId)>,
    /// Cells in which they are.
    second: BTreeSet<CellId>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(plan: &Plan, slices: &'a [Slice]) -> Self {
        let mut cells: BTreeMap<CellId, Rounds<'a>> = BTreeMap::new();
        for slice in slices {
            let rounds = cells.entry(slice.cell).or_default();
            let round = rounds.entry((slice.block, slice.round)).or_default();
            match round.iter_mut().find(|other| other.server == slice.server) {
                Some(earlier) => *earlier = slice,
                None => round.push(slice),
            }
        }
        let of_kind = |kind: fn(&Plan, &Cell) -> bool| {
            let all = CellId::each().zip(&plan.cells);
            let found = all.filter(|(_, cell)| kind(plan, cell));
            found.map(|(id, _)| id).collect()
        };
        Self {
            cells,
            pooled: of_kind(is_pooled),
            drifting: plan.cache == CacheState::Cold || plan.timing.sustained,
            steps: of_kind(is_whole_step),
            second: of_kind(has_second_control),
            unpaired: plan.work.is_unpaired(),
            controls: plan.second_control().map(|placebo| (plan.base(), placebo)),
            witnessed: of_kind(|plan, cell| plan.shares_core(cell) && !is_pooled(plan, cell)),
        }
    }

    /// What to say of other processes on other cores.
    pub(crate) fn neighbours(&self) -> Option<Finding> {
        let cells = self.witnessed.iter();
        neighbours(cells.filter_map(|cell| self.cells.get(cell)))
    }

    /// Visits of a cell, and its rounds that other load disturbed.
    ///
    /// Of whole steps none is called disturbed here: leaving it out would throw away its whole pass. Their
    /// kinds tell of them.
    pub(crate) fn rounds(&self, cell: CellId) -> CellRounds {
        let mut rounds = CellRounds::default();
        let Some(all) = self.cells.get(&cell) else {
            return rounds;
        };
        if self.steps.contains(&cell) {
            for &(block, _) in all.keys() {
                rounds.visits.entry(block).or_default().1 += 1;
            }
            return rounds;
        }
        let (hindered, foreign) = match self.witnessed.contains(&cell) && knows_waits(all) {
            true => (hindered(all), Foreign::SeenInWaits),
            false => (BTreeSet::new(), Foreign::Disturbs),
        };
        let disturbed = disturbed_rounds(all, foreign);
        for &(block, round) in all.keys() {
            let (disturbances, of) = rounds.visits.entry(block).or_default();
            *of += 1;
            if hindered.contains(&(block, round)) || disturbed.contains(&(block, round)) {
                *disturbances += 1;
                rounds.disturbed.insert((block, round));
            }
        }
        rounds
    }

    /// ln of the time that an operation took on a server in each block: the median over its rounds, without
    /// those `excluded`. Empty for cells whose rounds differ by what they are made of: whole steps, bursts,
    /// caches that fill.
    pub(crate) fn paces(
        &self,
        cell: CellId,
        server: ServerId,
        excluded: &BTreeSet<(u32, u32)>,
    ) -> BTreeMap<u32, f64> {
        let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        if self.steps.contains(&cell) || self.pooled.contains(&cell) {
            return BTreeMap::new();
        }
        for (&(block, round), servers) in self.cells.get(&cell).into_iter().flatten() {
            let slice = servers.iter().find(|slice| slice.server == server);
            if let Some(slice) = slice.filter(|slice| usable(slice))
                && !excluded.contains(&(block, round))
            {
                let pace = to_f64(slice.duration_ns) / to_f64(slice.operations);
                blocks.entry(block).or_default().push(pace.ln());
            }
        }
        blocks.retain(|_, paces| paces.len() >= MIN_ROUNDS);
        let typical = |(block, paces): (u32, Vec<f64>)| Some((block, median(&paces)?));
        blocks.into_iter().filter_map(typical).collect()
    }

    /// Operations of all slices of a server in a cell, by block: void ones too.
    pub(crate) fn operations(&self, cell: CellId, server: ServerId) -> BTreeMap<u32, u64> {
        let mut blocks: BTreeMap<u32, u64> = BTreeMap::new();
        for (&(block, _), servers) in self.cells.get(&cell).into_iter().flatten() {
            let of = servers.iter().find(|slice| slice.server == server);
            *blocks.entry(block).or_default() += of.map_or(0, |slice| slice.operations);
        }
        blocks
    }

    /// CPU of a server between its slices in a block of a cell, microseconds for an operation.
    ///
    /// Over all its good slices, also those of rounds that do not count: a round may be left out just
    /// because this server worked when it should have been idle.
    fn background(&self, cell: CellId, server: ServerId, block: u32) -> Option<f64> {
        let rounds = self.cells.get(&cell)?.range((block, 0)..=(block, u32::MAX));
        let slices = rounds.flat_map(|(_, servers)| servers.iter());
        let known = slices.filter_map(|slice| {
            let counts = slice.server == server && usable(slice);
            Some((
                slice.background_cpu_ns.filter(|_| counts)?,
                slice.operations,
            ))
        });
        let (cpu_ns, operations) = known.fold((0, 0), |sum: (u64, u64), (cpu_ns, operations)| {
            (sum.0 + cpu_ns, sum.1 + operations)
        });
        (operations > 0).then(|| micros(cpu_ns) / to_f64(operations))
    }

    /// The second copy of the base that a candidate is compared with, too.
    pub(crate) fn second(
        &self,
        cell: CellId,
        base: ServerId,
        candidate: ServerId,
    ) -> Option<ServerId> {
        let (control, placebo) = self.controls?;
        (self.second.contains(&cell) && base == control && candidate != placebo).then_some(placebo)
    }

    /// The sd of a candidate's block values in a cell, as a multiple of the placebo's.
    pub(crate) fn sd_of_candidates(&self, cell: CellId) -> f64 {
        if self.second.contains(&cell) {
            SECOND_CONTROL_SD
        } else {
            1.0
        }
    }

    /// The counted rounds of two servers in a cell, without those `excluded`.
    ///
    /// Where there is a [second control](Plan::second_control), only rounds count in which its slice is good,
    /// too.
    pub(crate) fn pair(
        &self,
        cell: CellId,
        base: ServerId,
        candidate: ServerId,
        excluded: &BTreeSet<(u32, u32)>,
    ) -> Pairing<'a> {
        let mut pairing = Pairing::default();
        let control = self.second(cell, base, candidate);
        let mut blocks: BTreeMap<u32, Vec<Round<'a>>> = BTreeMap::new();
        for (&(block, round), servers) in self.cells.get(&cell).into_iter().flatten() {
            let of = |server| servers.iter().copied().find(|slice| slice.server == server);
            let (left, right) = (of(base), of(candidate));
            let second = control.and_then(of);
            pairing.base_errors += left.map_or(0, |slice| slice.failed);
            pairing.candidate_errors += right.map_or(0, |slice| slice.failed);
            if [left, second, right]
                .into_iter()
                .flatten()
                .any(|slice| !usable(slice))
            {
                pairing.void_rounds += 1;
            } else if let (Some(base), Some(candidate)) = (left, right)
                && second.is_some() == control.is_some()
                && !excluded.contains(&(block, round))
            {
                blocks.entry(block).or_default().push(Round {
                    round,
                    base,
                    second,
                    candidate,
                });
            }
        }
        let least = if self.steps.contains(&cell) {
            MIN_ROUNDS_OF_STEPS
        } else {
            MIN_ROUNDS
        };
        pairing.blocks = blocks
            .into_iter()
            .filter(|(_, rounds)| rounds.len() >= least)
            .map(|(block, rounds)| Block {
                block,
                rounds,
                pooled: self.pooled.contains(&cell),
                draws: !self.drifting,
                unpaired: self.unpaired,
                least,
                background: {
                    let servers = [Some(base), Some(candidate), control].into_iter().flatten();
                    let known =
                        servers.map(|server| Some((server, self.background(cell, server, block)?)));
                    // All or none: what only one side is charged with would be a difference.
                    known.collect::<Option<Vec<_>>>().unwrap_or_default()
                },
            })
            .collect();
        pairing
    }
}

/// Whether a cell is measured in whole steps. Where an embedded engine is written to, a turn is a whole step:
/// what delays its writers goes by the clock, so it cannot be stopped and go on. In a sustained visit a
/// checkpoint or a vacuum disturbs the rounds, and that is what is measured.
pub fn is_whole_step(plan: &Plan, cell: &Cell) -> bool {
    plan.has_whole_steps()
        || plan.work.gives_totals()
        || plan.timing.sustained
        || (plan.work.is_embedded() && cell.writes)
}

/// Whether the candidates of a cell are compared with the placebo, too: where all three have a slice in each
/// round, or a total of turns. Passes and whole steps have one value each, which nothing ties to others.
fn has_second_control(plan: &Plan, cell: &Cell) -> bool {
    let tied = plan.work.gives_totals() || !is_whole_step(plan, cell);
    plan.second_control().is_some() && !plan.work.is_unpaired() && tied
}

/// The part of what base and placebo are apart that is in a candidate's ratio in a cell.
pub(crate) fn share_of_placebo(plan: &Plan, cell: CellId) -> f64 {
    let second = plan
        .cell(cell)
        .is_some_and(|cell| has_second_control(plan, cell));
    if second { 0.5 } else { 1.0 }
}

/// Whether a cell's work comes in bursts that belong to it, so that its typical operation is that of all its
/// rounds together: trimming would cut just these.
///
/// Visits from cold caches are about their first rounds.
fn is_pooled(plan: &Plan, cell: &Cell) -> bool {
    plan.cache == CacheState::Cold
        || plan.timing.sustained
        || plan.work.comes_in_bursts(&cell.workload)
}

/// What a cell's rounds say about themselves, whatever was measured in them.
#[derive(Default)]
pub(crate) struct CellRounds {
    /// Blocks in which it was visited, with the number of disturbed rounds and of all.
    pub(crate) visits: BTreeMap<u32, (u64, u64)>,
    /// Disturbed rounds by (block, round).
    pub(crate) disturbed: BTreeSet<(u32, u32)>,
}

/// Whether a slice gives a rate. One without a single success or without duration has none, whatever it is
/// labelled.
fn usable(slice: &Slice) -> bool {
    slice.void.is_none() && slice.operations > 0 && slice.duration_ns > 0
}

/// What two servers did in the same rounds of a cell.
#[derive(Default)]
pub(crate) struct Pairing<'a> {
    /// Blocks with enough counted rounds, in order.
    pub(crate) blocks: Vec<Block<'a>>,
    /// Rounds in which a slice of the two, or of the second control, was void.
    pub(crate) void_rounds: u64,
    /// Failed operations of the base, void slices included.
    pub(crate) base_errors: u64,
    /// Failed operations of the candidate, void slices included.
    pub(crate) candidate_errors: u64,
}

impl Pairing<'_> {
    /// Counted rounds over all blocks.
    pub(crate) fn rounds(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| count(block.rounds.len()))
            .sum()
    }
}

/// One restart block.
pub(crate) struct Block<'a> {
    pub(crate) block: u32,
    pub(crate) rounds: Vec<Round<'a>>,
    /// Whether its typical operation is that of all rounds together, and not of a trimmed mean.
    pub(crate) pooled: bool,
    /// Whether its rounds are draws of one kind, so that their scatter tells how skewed their sum is.
    pub(crate) draws: bool,
    /// Whether nothing ties its two sides, so that its ratio is of two samples ([`crate::unpaired`]).
    pub(crate) unpaired: bool,
    /// Counted rounds that any value of it needs.
    pub(crate) least: usize,
    /// CPU of base, candidate and second control between their slices, microseconds for an operation; empty
    /// unless all are known.
    pub(crate) background: Vec<(ServerId, f64)>,
}

impl Block<'_> {
    /// CPU that a slice of the block is charged with, microseconds: its own, and its share of what the server
    /// did between slices. `None` unless its own is known and above zero.
    pub(crate) fn cpu_us(&self, slice: &Slice) -> Option<f64> {
        let own = slice.server_cpu_ns.filter(|&cpu| cpu > 0)?;
        Some(micros(own) + self.background_us(slice).unwrap_or(0.0))
    }

    /// The share of a slice of the block in what its server did between slices, microseconds; `None` where
    /// nobody read that.
    pub(crate) fn background_us(&self, slice: &Slice) -> Option<f64> {
        let mut known = self.background.iter();
        let (_, each) = known.find(|(server, _)| *server == slice.server)?;
        Some(each * to_f64(slice.operations))
    }

    /// ln(candidate / base) of a round's CPU per operation; `None` unless all are known and above zero.
    pub(crate) fn server_cpu(&self, round: &Round<'_>) -> Option<f64> {
        let cost = |slice: &Slice| Some(self.cpu_us(slice)? / to_f64(slice.operations));
        round.against_base(cost)
    }
}

/// One counted round: all its slices are good.
pub(crate) struct Round<'a> {
    pub(crate) round: u32,
    pub(crate) base: &'a Slice,
    /// That of a second copy of the base, where there is a second control.
    pub(crate) second: Option<&'a Slice>,
    pub(crate) candidate: &'a Slice,
}

impl Round<'_> {
    /// ln(candidate / base) of throughput; `None` where a slice has none.
    pub(crate) fn throughput(&self) -> Option<f64> {
        let rate = |slice: &Slice| to_f64(slice.operations) / to_f64(slice.duration_ns);
        self.against_base(|slice| Some(rate(slice)))
    }

    /// ln of the candidate's value over that of the base, or over the mean of its two copies.
    pub(crate) fn against_base(&self, of: impl Fn(&Slice) -> Option<f64>) -> Option<f64> {
        let base = of(self.base)?;
        let control = match self.second {
            Some(second) => (base * of(second)?).sqrt(),
            None => base,
        };
        Some((of(self.candidate)? / control).ln())
    }
}
