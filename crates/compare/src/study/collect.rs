//! The figures of the runs, laid out so that tables can ask for them by name.

use super::places::{Places, base_name};
use super::{Measured, StudyRun, ViaColumn, ViaFigure, distinct, one_worker};
use crate::absolute::CellResult;
use crate::comparison::{CellComparison, Metric, MetricComparison, Sessions, Verdict};
use crate::pairing::share_of_placebo;
use crate::sample::BlockValue;
use crate::words;
use deltabench_model::plan::{Cell, CellId, DataState, Group, Placement, Plan, ServerId};
use deltabench_model::units::count;
use std::collections::{BTreeMap, BTreeSet};

/// Runs in the same place: repetitions of each other, each with a load of its own.
pub(super) struct Set<'a> {
    pub(super) position: Vec<usize>,
    pub(super) runs: Vec<Collected<'a>>,
}

/// One run.
pub(super) struct Collected<'a> {
    pub(super) source: StudyRun<'a>,
    /// Base and candidates with the names of their columns.
    servers: Vec<(ServerId, String)>,
    /// Cells by row and clients.
    cells: BTreeMap<(String, u32), CellId>,
    /// Rows in the order of the plan.
    rows: Vec<(String, Group)>,
    candidates: BTreeMap<(CellId, ServerId), &'a CellComparison>,
    /// What each server did in each block.
    series: BTreeMap<(CellId, ServerId), Vec<Block>>,
    placebos: BTreeMap<CellId, &'a CellComparison>,
    results: BTreeMap<(CellId, ServerId), &'a CellResult>,
    /// Cells in which the run calls a candidate unfit.
    unfit: BTreeSet<CellId>,
}

/// A server in one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) block: u32,
    /// ln of operations per second.
    pub(super) rate: f64,
    /// ln of CPU per operation in microseconds, where known.
    pub(super) cpu: Option<f64>,
    /// ln of context switches per operation, where known.
    pub(super) switches: Option<f64>,
}

/// All sets, in the order of their parts.
pub(super) fn sets<'a>(places: &Places<'a>) -> Vec<Set<'a>> {
    let plans = || places.runs.iter().map(|(run, _)| run.plan);
    let naming = Naming::new(plans());
    let mut sets: Vec<Set<'a>> = Vec::new();
    for (run, position) in &places.runs {
        let collected = Collected::new(*run, &naming);
        match sets.iter_mut().find(|set| set.position == *position) {
            Some(set) => set.runs.push(collected),
            None => sets.push(Set {
                position: position.clone(),
                runs: vec![collected],
            }),
        }
    }
    sets
}

impl<'a> Set<'a> {
    /// Names of all servers, the base first.
    pub(super) fn servers(&self) -> Vec<&str> {
        let all = self.runs.iter().flat_map(|run| &run.servers);
        distinct(all.map(|(_, name)| name.as_str()))
    }

    /// Numbers of clients, rising.
    pub(super) fn clients(&self) -> BTreeSet<u32> {
        let cells = self.runs.iter().flat_map(|run| run.cells.keys());
        cells.map(|&(_, clients)| clients).collect()
    }

    /// Rows in the order of the plans; those with a cell at this number of clients, or all.
    pub(super) fn rows(&self, clients: Option<u32>) -> Vec<(&str, Group)> {
        let all = self.runs.iter().flat_map(|run| {
            let has =
                |name: &str| clients.is_none_or(|n| run.cells.contains_key(&(name.to_owned(), n)));
            run.rows.iter().filter(move |(name, _)| has(name))
        });
        let mut known = BTreeSet::new();
        all.filter(|(name, _)| known.insert(name.as_str()))
            .map(|(name, group)| (name.as_str(), *group))
            .collect()
    }

    /// What does the work of every run: `client` or `thread`.
    pub(super) fn worker(&self) -> &'static str {
        one_worker(self.runs.iter().map(|run| run.source.plan.work.worker()))
    }

    /// What is compared in every run: `server` or `target`.
    pub(super) fn subject(&self) -> &'static str {
        let mut subjects = self.runs.iter().map(|run| run.source.plan.work.subject());
        let first = subjects.next().unwrap_or("server");
        if subjects.all(|other| other == first) {
            first
        } else {
            "server"
        }
    }

    /// `4 clients`, `1 thread`.
    pub(super) fn workers(&self, number: u32) -> String {
        words::things(number, self.worker())
    }

    /// Whether some run has a cell of this row and number of clients.
    pub(super) fn has(&self, row: &str, clients: u32) -> bool {
        let key = (row.to_owned(), clients);
        self.runs.iter().any(|run| run.cells.contains_key(&key))
    }

    /// How client and server share cores at a number of clients, in one row or in all, as the plans decide.
    pub(super) fn placed(&self, row: Option<&str>, clients: u32) -> Vec<Option<Placement>> {
        let cells = self.runs.iter().flat_map(|run| {
            let plan = run.source.plan;
            let own = run.cells.iter().filter(move |((name, number), _)| {
                *number == clients && row.is_none_or(|row| row == name)
            });
            own.filter_map(|(_, id)| Some(plan.placed(plan.cell(*id)?)))
        });
        distinct(cells)
    }

    /// Of these numbers of clients those that are placed as the largest, and the others: no line joins both.
    pub(super) fn by_placement(&self, row: Option<&str>, clients: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let last = clients.last().map(|last| self.placed(row, *last));
        let alike = |clients: &u32| last.as_ref() == Some(&self.placed(row, *clients));
        clients.iter().partition(|clients| alike(clients))
    }

    /// Whether a row is a mix of scripts.
    pub(super) fn is_of_scripts(&self, row: &str) -> bool {
        self.runs.iter().any(|run| {
            let plan = run.source.plan;
            let mut cells = run.cells.iter().filter(|((name, _), _)| name == row);
            cells.any(|(_, id)| {
                let cell = plan.cell(*id);
                cell.is_some_and(|cell| plan.work.has_script(&cell.workload))
            })
        })
    }

    /// The servers that earlier runs stand for, each once, without those that a run here has measured.
    pub(super) fn via(&self) -> Vec<&'a ViaColumn> {
        let measured = self.servers();
        let mut known = BTreeSet::new();
        let all = self.runs.iter().flat_map(|run| run.source.via);
        all.filter(|via| !measured.contains(&via.server.as_str()))
            .filter(|via| known.insert(via.name.as_str()))
            .collect()
    }

    /// When and where a server was measured with this number of clients, oldest first.
    pub(super) fn measured(&self, server: &str, clients: u32) -> Vec<Measured> {
        let has = |run: &&Collected<'a>| {
            run.servers.iter().any(|(_, name)| name == server)
                && run.cells.keys().any(|(_, number)| *number == clients)
        };
        let of = |run: &Collected<'a>| {
            let StudyRun {
                run,
                plan,
                host,
                began_unix_ms,
                ..
            } = run.source;
            Measured {
                began_unix_ms,
                run: run.to_owned(),
                execution: plan.experiment.as_ref().map(|part| part.execution.clone()),
                host: host.to_owned(),
            }
        };
        let mut all: Vec<Measured> = self.runs.iter().filter(has).map(of).collect();
        all.sort();
        all
    }

    /// What earlier runs say of such a server in a cell. Repetitions have it from the same runs, so that the
    /// first counts.
    pub(super) fn via_figure(
        &self,
        name: &str,
        (row, clients): (&str, u32),
        metric: Metric,
    ) -> Option<&'a ViaFigure> {
        let key = (row.to_owned(), clients);
        self.runs.iter().find_map(|run| {
            let cell = run.cells.get(&key)?;
            let via = run.source.via.iter().find(|via| via.name == name)?;
            let mut figures = via.figures.iter();
            figures.find(|figure| figure.cell == *cell && figure.metric == metric)
        })
    }

    /// The runs that have a cell and a server, without those that were withdrawn or whose host was unfit; all
    /// of them where there is no other.
    pub(super) fn usable(&self, row: &str, clients: u32, server: &str) -> Usable<'_, 'a> {
        let all: Vec<Place<'_, 'a>> = self
            .runs
            .iter()
            .filter_map(|run| run.place(row, clients, server))
            .collect();
        let good: Vec<Place<'_, 'a>> = all.iter().copied().filter(|place| !place.void()).collect();
        let void = good.is_empty() && !all.is_empty();
        Usable {
            places: if void { all } else { good },
            void,
        }
    }
}

/// What may be used of a cell, and if nothing may, all of it.
pub(super) struct Usable<'s, 'a> {
    pub(super) places: Vec<Place<'s, 'a>>,
    /// Whether all was withdrawn or measured on unfit hosts.
    pub(super) void: bool,
}

impl<'s, 'a> Usable<'s, 'a> {
    /// Those that have values of a metric relative to the base.
    pub(super) fn with(mut self, metric: Metric) -> Self {
        self.places.retain(|place| place.metric(metric).is_some());
        self
    }

    /// Whether a relative figure from it is not to be used: all of it is void or was called unfit.
    pub(super) fn unfit(&self) -> bool {
        self.void || (!self.places.is_empty() && self.places.iter().all(Place::unfit))
    }
}

/// A server in a cell of a run.
#[derive(Clone, Copy)]
pub(super) struct Place<'s, 'a> {
    pub(super) run: &'s Collected<'a>,
    cell: CellId,
    server: ServerId,
}

impl<'s, 'a> Place<'s, 'a> {
    /// What it did in each block.
    pub(super) fn blocks(&self) -> &'s [Block] {
        let found = self.run.series.get(&(self.cell, self.server));
        found.map_or(&[], Vec::as_slice)
    }

    /// The sessions of its run, each of which is a load.
    pub(super) fn sessions(&self) -> Option<Sessions> {
        self.run.source.comparison.sessions
    }

    /// Values of its blocks by load.
    pub(super) fn loads<T>(&self, blocks: impl Iterator<Item = (u32, T)>) -> Vec<Vec<T>> {
        Sessions::split(self.sessions(), blocks)
    }

    /// What it did in absolute numbers, where that is known. Of a base both of its copies, where candidates
    /// are compared with both, as its blocks are.
    pub(super) fn results(&self) -> Vec<&'a CellResult> {
        let plan = self.run.source.plan;
        let is_base = self.server == plan.base() && !plan.candidates().is_empty();
        let second = { plan.second_control() }.filter(|_| is_base && self.share_of_placebo() < 1.0);
        let copies = std::iter::once(self.server).chain(second);
        copies
            .filter_map(|server| self.run.results.get(&(self.cell, server)).copied())
            .collect()
    }

    /// Its comparison with the base; absent for the base itself.
    pub(super) fn comparison(&self) -> Option<&'a CellComparison> {
        let found = self.run.candidates.get(&(self.cell, self.server));
        found.copied()
    }

    pub(super) fn metric(&self, metric: Metric) -> Option<&'a MetricComparison> {
        let mut all = self.comparison()?.metrics.iter();
        all.find(|found| found.metric == metric && !found.blocks.is_empty())
    }

    pub(super) fn planned(&self) -> Option<&'a Cell> {
        let plan = self.run.source.plan;
        plan.cell(self.cell)
    }

    /// The placebo beside it.
    pub(super) fn placebo(&self) -> Option<&'a CellComparison> {
        self.run.placebos.get(&self.cell).copied()
    }

    /// The part of what base and placebo are apart that is in its ratio.
    pub(super) fn share_of_placebo(&self) -> f64 {
        share_of_placebo(self.run.source.plan, self.cell)
    }

    /// Whether somebody withdrew it.
    pub(super) fn withdrawn(&self) -> bool {
        let mut all = self.run.source.withdrawn.iter();
        all.any(|withdrawal| withdrawal.cell.is_none_or(|cell| cell == self.cell))
    }

    /// Whether it says nothing about any server.
    fn void(&self) -> bool {
        !self.run.source.comparison.host_ok || self.withdrawn()
    }

    /// Whether its run calls its cell unfit.
    fn unfit(&self) -> bool {
        self.run.unfit.contains(&self.cell)
    }
}

impl<'a> Collected<'a> {
    fn new(source: StudyRun<'a>, naming: &Naming) -> Self {
        let plan = source.plan;
        let comparison = source.comparison;
        let mut rows: Vec<(String, Group)> = Vec::new();
        let mut cells = BTreeMap::new();
        let mut known = BTreeSet::new();
        for (id, cell) in CellId::each().zip(&plan.cells) {
            let name = unique(naming.row(cell), |name| {
                !cells.contains_key(&(name.to_owned(), cell.clients))
            });
            if known.insert(name.clone()) {
                rows.push((name.clone(), cell.group));
            }
            cells.insert((name, cell.clients), id);
        }
        let sides = comparison.cells.iter();
        let placebos = comparison.placebo_cells.iter();
        let both = sides.clone().chain(placebos.clone());
        let unfit = sides.clone().filter(|side| side.verdict == Verdict::Unfit);
        Self {
            servers: servers(plan),
            cells,
            rows,
            candidates: sides
                .map(|side| ((side.cell, side.candidate), side))
                .collect(),
            series: series(plan, both, source.results),
            results: source
                .results
                .iter()
                .map(|result| ((result.cell, result.server), result))
                .collect(),
            placebos: placebos.map(|side| (side.cell, side)).collect(),
            unfit: unfit.map(|side| side.cell).collect(),
            source,
        }
    }

    fn place(&self, row: &str, clients: u32, server: &str) -> Option<Place<'_, 'a>> {
        let cell = *self.cells.get(&(row.to_owned(), clients))?;
        let (server, _) = self.servers.iter().find(|(_, name)| name == server)?;
        Some(Place {
            run: self,
            cell,
            server: *server,
        })
    }
}

/// The base, then the candidates.
fn servers(plan: &Plan) -> Vec<(ServerId, String)> {
    let mut servers: Vec<(ServerId, String)> = vec![(plan.base(), base_name(plan))];
    for candidate in plan.candidates() {
        let name = plan.server_name(candidate);
        let name = unique(name, |name| servers.iter().all(|(_, other)| other != name));
        servers.push((candidate, name));
    }
    servers
}

/// `name`, or `name (2)` and so on: the first that is free.
fn unique(name: String, free: impl Fn(&str) -> bool) -> String {
    if free(&name) {
        return name;
    }
    let mut numbered = (2_u64..).map(|number| format!("{name} ({number})"));
    numbered.find(|name| free(name)).unwrap_or(name)
}

/// The base's own blocks are in the comparison with every other server; the first that has a block counts.
/// A server without another to compare with has what it did in all.
fn series<'a>(
    plan: &Plan,
    sides: impl Iterator<Item = &'a CellComparison>,
    results: &[CellResult],
) -> BTreeMap<(CellId, ServerId), Vec<Block>> {
    let mut series: BTreeMap<(CellId, ServerId), BTreeMap<u32, Block>> = BTreeMap::new();
    for side in sides {
        for rate in &side.rates {
            let (cpu, switches) = (rate.server_cpu_us.unzip(), rate.switches.unzip());
            for (server, speed, cpu, switches) in [
                (plan.base(), rate.base, cpu.0, switches.0),
                (side.candidate, rate.candidate, cpu.1, switches.1),
            ] {
                if speed > 0.0 {
                    let blocks = series.entry((side.cell, server)).or_default();
                    blocks.entry(rate.block).or_insert(Block {
                        block: rate.block,
                        rate: speed.ln(),
                        cpu: cpu.filter(|&cpu| cpu > 0.0).map(f64::ln),
                        switches: switches.filter(|&count| count > 0.0).map(f64::ln),
                    });
                }
            }
        }
    }
    let alone = results.iter().filter(|_| plan.servers.len() == 1);
    for result in alone {
        let of = (result.cell, result.server);
        let blocks = result.blocks.iter().filter_map(|(block, tally)| {
            let rate = tally.per_second().filter(|rate| *rate > 0.0)?.ln();
            let alone = Block {
                block: *block,
                rate,
                cpu: None,
                switches: None,
            };
            Some((*block, alone))
        });
        series.insert(of, blocks.collect());
    }
    let sorted = series
        .into_iter()
        .map(|(key, blocks)| (key, blocks.into_values().collect()));
    sorted.collect()
}

/// The block log-ratios behind a metric, with their blocks.
pub(super) fn block_values(metric: &MetricComparison) -> Vec<BlockValue> {
    let values = std::iter::zip(&metric.numbers, &metric.blocks);
    let value = |(&block, &log_ratio): (&u32, &f64)| BlockValue {
        block,
        base: metric.base,
        candidate: metric.candidate,
        log_ratio,
        typical: log_ratio,
        third: 0.0,
        one_control: log_ratio,
        timed: log_ratio,
        probes: None,
    };
    values.map(value).collect()
}

/// What tells rows of one workload apart.
struct Naming {
    /// Workloads in several states of the data.
    states: BTreeSet<String>,
    /// Workloads at several scheduled rates.
    rates: BTreeSet<String>,
}

impl Naming {
    fn new<'a>(plans: impl Iterator<Item = &'a Plan>) -> Self {
        let mut states: BTreeMap<&str, BTreeSet<DataWord>> = BTreeMap::new();
        let mut rates: BTreeMap<&str, BTreeSet<Option<u64>>> = BTreeMap::new();
        for cell in plans.flat_map(|plan| &plan.cells) {
            let state = states.entry(&cell.workload).or_default();
            state.insert(cell.state.word());
            let rate = rates.entry(&cell.workload).or_default();
            rate.insert(cell.rate.map(f64::to_bits));
        }
        let several = |counts: Vec<(&str, usize)>| {
            let many = counts.into_iter().filter(|(_, number)| *number > 1);
            many.map(|(name, _)| name.to_owned()).collect()
        };
        Self {
            states: several(
                states
                    .iter()
                    .map(|(name, all)| (*name, all.len()))
                    .collect(),
            ),
            rates: several(rates.iter().map(|(name, all)| (*name, all.len())).collect()),
        }
    }

    fn row(&self, cell: &Cell) -> String {
        let mut name = cell.workload.clone();
        if self.states.contains(&name) && cell.state != DataState::Fresh {
            name = format!("{name}, {}", cell.state.word());
        }
        match cell.rate {
            Some(rate) if self.rates.contains(&cell.workload) => format!("{name}, {rate} ops/s"),
            _ => name,
        }
    }
}

type DataWord = &'static str;

/// A number of things as files count them.
pub(super) fn number(things: usize) -> u32 {
    u32::try_from(count(things)).unwrap_or(u32::MAX)
}
