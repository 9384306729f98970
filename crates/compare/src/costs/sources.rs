//! Where the costs of a pair of servers come from.

use super::blocks::{BlockCost, Controls, CostSample, Part};
use crate::history::History;
use crate::pairing::{Block, Index};
use deltabench_model::counter::VisitCounters;
use deltabench_model::metric::{Basis, METRICS, MetricInfo};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{micros, seconds, to_f64};
use std::collections::{BTreeMap, BTreeSet};

/// Key of the counter that is there wherever waits were sampled.
const WAITS_SAMPLED: &str = "wait_ns";
const WAIT_PREFIX: &str = "wait:";
/// Nanoseconds to microseconds.
const US: f64 = 1e-3;

/// All that the costs of a pair are made from.
pub(super) struct Sampled {
    /// In the registry's order, then sampled waits.
    pub(super) samples: Vec<CostSample>,
    /// Operations per second of base and candidate over all its blocks.
    pub(super) rates: Option<(f64, f64)>,
    /// The one side that knows the time of its reads, if only one does: it has `track_io_timing` on.
    pub(super) times_reads: Option<OneSide>,
}

/// One side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OneSide {
    Base,
    Candidate,
}

/// The machine that a server of a run was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its cores that were online; absent where nobody could tell.
    pub cores: Option<u32>,
    /// Whether the client was on it, too.
    pub holds_client: bool,
}

impl Machine {
    /// The one that deltabench ran on.
    pub fn of_client(cores: Option<u32>) -> Self {
        Self {
            cores,
            holds_client: true,
        }
    }

    /// Busy time of the whole machine during a slice of its server; `None` unless every part of it is known.
    fn busy_seconds(self, slice: &Slice) -> Option<f64> {
        let client_ns = match self.holds_client {
            true => slice.client_cpu_ns,
            false => 0,
        };
        let servers = slice.server_cpu_ns? + slice.idle_cpu_ns?;
        Some(seconds(servers + slice.foreign_cpu_ns? + client_ns))
    }

    /// Percent of all its cores for a second of one.
    fn percent(self) -> Option<f64> {
        let cores = self.cores.filter(|&cores| cores > 0)?;
        Some(100.0 / f64::from(cores))
    }
}

/// The slices and counters of a run.
pub(super) struct Sources<'a> {
    plan: &'a Plan,
    /// In the plan's order.
    machines: &'a [Machine],
    slices: Index<'a>,
    counters: BTreeMap<(ServerId, CellId, u32), &'a VisitCounters>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        slices: &'a [Slice],
        counters: &'a [VisitCounters],
        machines: &'a [Machine],
    ) -> Self {
        Self {
            plan,
            machines,
            slices: Index::new(plan, slices),
            counters: counters
                .iter()
                .map(|counted| ((counted.server, counted.cell, counted.block), counted))
                .collect(),
        }
    }

    /// Every cost that both sides of a pair have. A candidate is compared with the same copies of the base as
    /// its throughput and its CPU are.
    pub(super) fn sampled(&self, cell: CellId, server: ServerId) -> Sampled {
        let base = self.plan.compared_with(server);
        let rounds = self.slices.rounds(cell);
        let history = History::new(&self.slices, &rounds, cell, base, server);
        let pairing = &history.counted(history.visits()).pairing;
        let visits = Visits {
            blocks: pairing.blocks.iter().map(|block| block.block).collect(),
            base: self.side(base, cell),
            second: { self.slices.second(cell, base, server) }
                .map(|placebo| self.side(placebo, cell)),
            candidate: self.side(server, cell),
        };
        let registered = METRICS.iter().filter_map(|metric| match metric.basis {
            Basis::Slices => self.slice_cost(metric, cell, &pairing.blocks),
            _ => visits.metric(metric),
        });
        let samples = registered.chain(visits.waits());
        Sampled {
            samples: samples.filter(|sample| !sample.blocks.is_empty()).collect(),
            rates: rates(&pairing.blocks),
            times_reads: visits.times_reads(),
        }
    }

    fn side(&self, server: ServerId, cell: CellId) -> Side<'_> {
        let counters = self
            .counters
            .range((server, cell, 0)..=(server, cell, u32::MAX));
        Side {
            slices: self.slices.operations(cell, server),
            counters: counters
                .map(|((_, _, block), counted)| (*block, *counted))
                .collect(),
        }
    }

    /// A cost that the slices themselves know; `None` for what is judged anyway, CPU per operation apart.
    fn slice_cost(
        &self,
        metric: &MetricInfo,
        cell: CellId,
        blocks: &[Block<'_>],
    ) -> Option<CostSample> {
        let units = self.units(cell);
        let of: &dyn Fn(&Block<'_>, &Slice) -> Option<f64> = match metric.key {
            "server_cpu_us_per_op" => &|block, slice| block.cpu_us(slice),
            "background_cpu_us_per_op" => &|block, slice| block.background_us(slice),
            "machine_cpu_percent_per_op" => &|_, slice| Some(self.busy_percent(slice)? / units?),
            "context_switches_per_op" => &|_, slice| slice.switches.map(to_f64),
            "run_queue_wait_us_per_op" => &|_, slice| slice.run_queue_wait_ns.map(micros),
            "client_cpu_us_per_op" => &|_, slice| Some(micros(slice.client_cpu_ns)),
            _ => return None,
        };
        Some(CostSample {
            key: metric.key.to_owned(),
            blocks: blocks
                .iter()
                .filter_map(|block| totals(block, of))
                .collect(),
        })
    }

    /// Published units of an operation.
    fn units(&self, cell: CellId) -> Option<f64> {
        let published = &self.plan.cell(cell)?.published;
        let units = published.per_operation;
        (units > 0.0).then_some(units)
    }

    /// Seconds of a slice in which its server's machine was busy, times percent of all cores.
    fn busy_percent(&self, slice: &Slice) -> Option<f64> {
        let machine = self.machines.get(slice.server.index())?;
        Some(machine.percent()? * machine.busy_seconds(slice)?)
    }
}

/// Operations per second of both sides, all of these blocks together: of the base both copies as one, as its
/// costs are.
fn rates(blocks: &[Block<'_>]) -> Option<(f64, f64)> {
    let rounds = || blocks.iter().flat_map(|block| &block.rounds);
    let base = rounds().flat_map(|round| std::iter::once(round.base).chain(round.second));
    let candidate = rounds().map(|round| round.candidate);
    Some((per_second(base)?, per_second(candidate)?))
}

fn per_second<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    let (operations, time) = slices.fold((0.0, 0.0), |(operations, time), slice| {
        (
            operations + to_f64(slice.operations),
            time + seconds(slice.duration_ns),
        )
    });
    (time > 0.0).then(|| operations / time)
}

/// A cost of a block, over the rounds in which all sides know it.
fn totals(block: &Block<'_>, of: &dyn Fn(&Block<'_>, &Slice) -> Option<f64>) -> Option<BlockCost> {
    let part = |slice: &Slice| {
        Some(Part {
            counted: of(block, slice)?,
            over: to_f64(slice.operations),
        })
    };
    let (mut base, mut second, mut candidate) = (Vec::new(), Vec::new(), Vec::new());
    for round in &block.rounds {
        let controls = (part(round.base), round.second.map(part));
        if let ((Some(one), None | Some(Some(_))), Some(other)) = (controls, part(round.candidate))
        {
            base.push(one);
            second.extend(controls.1.flatten());
            candidate.push(other);
        }
    }
    let sum = |parts: &[Part]| Part {
        counted: parts.iter().map(|part| part.counted).sum(),
        over: parts.iter().map(|part| part.over).sum(),
    };
    let enough = base.len() >= block.least;
    let controls = Controls {
        base: sum(&base),
        second: (!second.is_empty()).then(|| sum(&second)),
    };
    enough.then(|| BlockCost::pooled(block.block, controls, sum(&candidate)))
}

/// What was counted over the visits of a pair.
struct Visits<'a> {
    blocks: Vec<u32>,
    base: Side<'a>,
    /// The second copy of the base, where the candidate is compared with both.
    second: Option<Side<'a>>,
    candidate: Side<'a>,
}

/// One server in one cell, by block.
struct Side<'a> {
    slices: BTreeMap<u32, u64>,
    counters: BTreeMap<u32, &'a VisitCounters>,
}

impl Side<'_> {
    /// What a counter says of a block; `None` where it was not read, and for nonsense: a statistic that was
    /// reset half-way went backwards.
    fn part(&self, block: u32, counter: &str, metric: (Basis, f64)) -> Option<Part> {
        let counted = self.counters.get(&block)?;
        let value = match counted.values.get(counter) {
            Some(value) => *value,
            // A wait that was never seen is not in a visit's samples.
            None if counter.starts_with(WAIT_PREFIX)
                && counted.values.contains_key(WAITS_SAMPLED) =>
            {
                0.0
            }
            None => return None,
        };
        let (basis, scale) = metric;
        let over = match basis {
            Basis::Gauge => 1.0,
            Basis::SliceEnds => to_f64(self.slices.get(&block).copied().unwrap_or(0)),
            Basis::Requests(requests) => counted.values.get(requests).copied()?,
            Basis::Visit | Basis::Slices | Basis::Pass(_) => to_f64(counted.operations),
        };
        (over > 0.0 && value.is_finite() && value >= 0.0).then_some(Part {
            counted: scale * value,
            over,
        })
    }

    fn has(&self, counter: &str) -> bool {
        let mut visits = self.counters.values();
        visits.any(|counted| counted.values.contains_key(counter))
    }
}

impl Visits<'_> {
    fn metric(&self, metric: &MetricInfo) -> Option<CostSample> {
        self.counter(metric.key, metric.counter, (metric.basis, metric.scale))
    }

    /// Every wait that was seen on a server.
    fn waits(&self) -> Vec<CostSample> {
        let servers = [
            Some(&self.base),
            self.second.as_ref(),
            Some(&self.candidate),
        ];
        let keys: BTreeSet<&String> = { servers.into_iter().flatten() }
            .flat_map(|server| server.counters.values())
            .flat_map(|counted| counted.values.keys())
            .filter(|key| key.starts_with(WAIT_PREFIX))
            .collect();
        keys.into_iter()
            .filter_map(|key| self.counter(key, key, (Basis::Visit, US)))
            .collect()
    }

    fn counter(&self, key: &str, counter: &str, metric: (Basis, f64)) -> Option<CostSample> {
        let blocks = self.blocks.iter().filter_map(|&block| {
            let of = |side: &Side<'_>| side.part(block, counter, metric);
            let controls = Controls {
                base: of(&self.base)?,
                second: match &self.second {
                    Some(second) => Some(of(second)?),
                    None => None,
                },
            };
            Some(BlockCost::pooled(block, controls, of(&self.candidate)?))
        });
        Some(CostSample {
            key: key.to_owned(),
            blocks: blocks.collect(),
        })
    }

    /// The one side whose reads are timed. Where it is off, the statistic is missing or stays at zero, even
    /// if blocks are read.
    fn times_reads(&self) -> Option<OneSide> {
        const TIME: &str = "database_block_read_ns";
        const READS: &str = "database_blocks_read";
        let sum = |side: &Side<'_>, counter: &str| -> f64 {
            let visits = side.counters.values();
            visits
                .filter_map(|counted| counted.values.get(counter))
                .sum()
        };
        let timed = |side: &Side<'_>| sum(side, TIME) > 0.0;
        let untimed = |side: &Side<'_>| {
            !side.counters.is_empty() && (!side.has(TIME) || !timed(side)) && sum(side, READS) > 0.0
        };
        if untimed(&self.base) && timed(&self.candidate) {
            Some(OneSide::Candidate)
        } else if timed(&self.base) && untimed(&self.candidate) {
            Some(OneSide::Base)
        } else {
            None
        }
    }
}
