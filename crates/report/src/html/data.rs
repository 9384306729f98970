//! What the page's script draws from: one JSON value in the page, made from the same values as the rest.
//!
//! Figures are cut to the digits that a reader can use, so that an hour of series stays small. What is not
//! known is `null`, never 0. The form belongs to this version's script alone; the report's JSON is the
//! contract with others.

pub(in crate::html) mod number;
mod series;

use self::number::{Interval, Number, difference, interval};
use self::series::{Series, marks, series};
use super::absolute::{self, ProgressData};
use super::anchor;
use super::grids::{self, GridData};
use super::steps::{self, StepsData};
use super::strips::{by_block, folded};
use crate::conditions::Conditions;
use crate::confirmation;
use crate::context::{ReportContext, resolved};
use crate::published::published;
use crate::summary::shown_summaries;
use crate::{withdrawn, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Cost, GroupSummary, LatencyCurves, Metric, MetricComparison,
    Verdict,
};
use deltabench_model::metric::{self, Better, METRICS};
use deltabench_model::plan::{Plan, Role};
use serde::Serialize;

/// Digits of absolute values, of ratios.
pub(super) const VALUE_DIGITS: usize = 5;
pub(super) const RATIO_DIGITS: usize = 6;
/// Digits of latency curves, which are only drawn.
const CURVE_DIGITS: usize = 4;

#[derive(Serialize)]
struct Page {
    base: String,
    /// What does the work of a cell: `client` or `thread`.
    worker: &'static str,
    sides: Vec<Side>,
    verdicts: Vec<VerdictHead>,
    groups: Vec<(&'static str, &'static str)>,
    metrics: Vec<MetricHead>,
    /// The placebo over all cells, by the metrics.
    placebo: Vec<Option<Interval>>,
    means: Vec<Mean>,
    cells: Vec<Cell>,
    series: Option<Series>,
    marks: Vec<series::MarkAt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<StepsData>,
    grids: Vec<GridData>,
    course: Vec<ProgressData>,
}

#[derive(Serialize)]
struct Side {
    id: u32,
    name: String,
    role: &'static str,
}

#[derive(Serialize)]
pub(super) struct VerdictHead {
    key: &'static str,
    word: &'static str,
    sign: &'static str,
    class: &'static str,
}

#[derive(Serialize)]
struct MetricHead {
    key: String,
    name: String,
    unit: String,
    better: Option<&'static str>,
    meaning: String,
    /// Whether it is one that the whole comparison has, with a δ; else it is a cost.
    compared: bool,
}

#[derive(Serialize)]
struct Mean {
    candidate: u32,
    group: Option<&'static str>,
    words: String,
    ratios: Vec<Option<Interval>>,
}

#[derive(Serialize)]
struct Cell {
    id: String,
    cell: u32,
    name: String,
    workload: String,
    clients: u32,
    group: &'static str,
    candidate: u32,
    verdict: &'static str,
    marks: String,
    reason: String,
    delta: Number,
    withdrawn: Option<String>,
    /// What stands instead of relative throughput where that cannot be told.
    withheld: Option<String>,
    /// By the metrics that are compared.
    values: Vec<Option<Value>>,
    /// The same of the placebo, ratios alone.
    placebo: Vec<Option<Interval>>,
    /// The figure that published studies print: base, candidate, unit.
    published: Option<(Option<Number>, Option<Number>, String)>,
    costs: Vec<CostRow>,
    /// Block, base, candidate.
    rates: Vec<(u32, Option<Number>, Option<Number>)>,
    latency: Option<[Vec<Option<Number>>; 3]>,
    /// Rounds by metric, throughput and CPU.
    rounds: [Option<Rounds>; 2],
}

/// Base, candidate, ratio, the metric's own verdict.
type Value = (
    Option<Number>,
    Option<Number>,
    Interval,
    Option<&'static str>,
);

/// Metric, base, candidate, difference, ratio, the placebo's ratio, place among what moved.
#[derive(Serialize)]
struct CostRow(
    usize,
    Option<Number>,
    Option<Number>,
    Interval,
    Option<Interval>,
    Option<Interval>,
    Option<usize>,
);

/// Rounds of all blocks: what [`super::strips`] draws, in hundredths of a percent.
#[derive(Serialize)]
struct Rounds {
    fold: u32,
    blocks: Vec<BlockRounds>,
}

/// Number, value, part, rounds.
#[derive(Serialize)]
struct BlockRounds(u32, Option<i64>, &'static str, Vec<Option<i64>>);

/// The value, ready to stand inside a script element.
pub(super) fn json(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    dots: u32,
) -> String {
    let maker = Maker {
        comparison,
        plan,
        context,
        conditions: Conditions::new(plan),
        costs: cost_keys(comparison),
        dots,
    };
    super::embedded(&maker.page())
}

struct Maker<'a> {
    comparison: &'a Comparison,
    plan: &'a Plan,
    context: &'a ReportContext,
    conditions: Conditions<'a>,
    costs: Vec<&'a str>,
    dots: u32,
}

impl Maker<'_> {
    fn page(&self) -> Page {
        let servers = (0..).zip(&self.plan.servers);
        let sides: Vec<Side> = servers
            .map(|(id, server)| Side {
                id,
                name: side_name(self.plan, id, server.role),
                role: words::role(server.role),
            })
            .collect();
        let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
        let of_metrics = |read: &dyn Fn(Metric) -> Option<Interval>| Metric::ALL.map(read).to_vec();
        let placebo = self.comparison.placebo.as_ref();
        Page {
            base: resolved(self.plan, self.plan.base()),
            worker: words::worker(self.plan),
            sides,
            verdicts: VERDICTS.into_iter().map(verdict_head).collect(),
            groups: words::GROUPS
                .map(|group| (group.word(), words::heading_in(self.plan, group)))
                .to_vec(),
            metrics: self.metrics(),
            placebo: of_metrics(&|metric| {
                let placebo = placebo?;
                match metric {
                    Metric::Throughput => {
                        let few = withheld::of_placebo(self.plan, self.comparison);
                        interval(&placebo.throughput).filter(|_| few.is_none())
                    }
                    Metric::ServerCpuPerOperation => interval(placebo.server_cpu.as_ref()?),
                    Metric::LatencyP50 | Metric::LatencyP99 => None,
                }
            }),
            means: self.means(),
            cells: self
                .comparison
                .cells
                .iter()
                .map(|cell| self.cell(cell))
                .collect(),
            series: series(&names, &self.context.samples),
            marks: marks(&self.context.samples, &self.context.marks),
            steps: steps::data(self.context),
            grids: grids::data(&self.context.grids),
            course: absolute::data(self.plan, self.context),
        }
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let compared = Metric::ALL.iter().map(|one| {
            let info = metric::metric(one.key());
            MetricHead {
                key: one.key().to_owned(),
                name: metric_name(*one).to_owned(),
                unit: words_unit(one.unit()),
                better: Some(better(one.better())),
                meaning: info.map_or_else(String::new, |info| info.meaning.to_owned()),
                compared: true,
            }
        });
        compared
            .chain(self.costs.iter().map(|key| cost_head(key)))
            .collect()
    }

    fn means(&self) -> Vec<Mean> {
        let candidates = self.plan.candidates().into_iter();
        let shown =
            candidates.flat_map(|candidate| shown_summaries(self.comparison, self.plan, candidate));
        shown
            .map(|summary| mean(summary, self.comparison, self.context))
            .collect()
    }

    fn cell(&self, cell: &CellComparison) -> Cell {
        let placebo = self.comparison.placebo_cells.iter();
        let placebo = placebo.into_iter().find(|other| other.cell == cell.cell);
        let told = |cell: &CellComparison, metric| {
            metric != Metric::Throughput || withheld::of_cell(self.plan, cell.blocks).is_none()
        };
        Cell {
            id: anchor(cell),
            cell: cell.cell,
            name: self.conditions.label(cell),
            workload: cell.workload.clone(),
            clients: cell.clients,
            group: cell.group.word(),
            candidate: cell.candidate,
            verdict: cell.verdict.word(),
            marks: confirmation::marks(cell),
            reason: super::reason(cell),
            delta: Number::new(cell.delta, RATIO_DIGITS).unwrap_or_default(),
            withdrawn: withdrawn::of_cell(self.context, cell.cell),
            values: Metric::ALL
                .map(|metric| {
                    let found = words::metric(cell, metric);
                    found.filter(|_| told(cell, metric)).map(value)
                })
                .to_vec(),
            withheld: withheld::of_cell(self.plan, cell.blocks),
            placebo: Metric::ALL
                .map(|metric| {
                    let placebo = placebo.filter(|placebo| told(placebo, metric))?;
                    interval(&words::metric(placebo, metric)?.ratio)
                })
                .to_vec(),
            published: published(cell, self.plan)
                .filter(crate::published::Published::differs)
                .map(|figure| {
                    (
                        absolute(figure.base),
                        absolute(figure.candidate),
                        figure.unit,
                    )
                }),
            costs: self.cost_rows(cell, placebo),
            rates: cell
                .rates
                .iter()
                .map(|rate| (rate.block, figure(rate.base), figure(rate.candidate)))
                .collect(),
            latency: cell.latency.as_ref().map(curves),
            rounds: [
                self.rounds(cell, Metric::Throughput),
                self.rounds(cell, Metric::ServerCpuPerOperation),
            ],
        }
    }

    fn cost_rows(&self, cell: &CellComparison, placebo: Option<&CellComparison>) -> Vec<CostRow> {
        let of_placebo = |key: &str| {
            let cost = placebo?.costs.iter().find(|cost| cost.key == key)?;
            interval(cost.ratio.as_ref()?)
        };
        let rows = cell.costs.iter().filter_map(|cost| {
            let place = self.costs.iter().position(|key| *key == cost.key)?;
            let moved = cell.moved.iter().position(|moved| moved.key == cost.key);
            Some(CostRow(
                Metric::ALL.len() + place,
                figure(cost.base),
                figure(cost.candidate),
                difference(&cost.difference),
                cost.ratio.as_ref().and_then(interval),
                of_placebo(&cost.key),
                moved,
            ))
        });
        rows.collect()
    }

    fn rounds(&self, cell: &CellComparison, wanted: Metric) -> Option<Rounds> {
        let metric = words::metric(cell, wanted)?;
        let blocks = by_block(cell, metric, super::strips::value_of(wanted)?);
        let (fold, dots) = folded(&blocks, self.dots);
        let rows = blocks.iter().zip(dots).map(|(block, dots)| {
            let hundredths = number::hundredths_of_percent;
            BlockRounds(
                block.number,
                hundredths(block.value),
                block.part.words().trim(),
                dots.into_iter()
                    .map(|log| log.and_then(hundredths))
                    .collect(),
            )
        });
        Some(Rounds {
            fold,
            blocks: rows.collect(),
        })
    }
}

pub(super) const VERDICTS: [Verdict; 5] = [
    Verdict::Regression,
    Verdict::Improvement,
    Verdict::Inconclusive,
    Verdict::NoChange,
    Verdict::Unfit,
];

pub(super) fn verdict_head(verdict: Verdict) -> VerdictHead {
    VerdictHead {
        key: verdict.word(),
        word: words::verdict(verdict),
        sign: words::sign(verdict),
        class: super::class(verdict),
    }
}

fn side_name(plan: &Plan, id: u32, role: Role) -> String {
    match role {
        Role::Placebo => format!("{} again (placebo)", resolved(plan, id)),
        Role::Base | Role::Candidate => resolved(plan, id),
    }
}

pub(super) fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

pub(super) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ServerCpuPerOperation => "CPU/op",
        Metric::LatencyP50 => "latency p50",
        Metric::LatencyP99 => "latency p99",
    }
}

pub(super) fn words_unit(unit: &str) -> String {
    match unit.strip_prefix("us") {
        Some(rest) => format!("µs{rest}"),
        None => unit.to_owned(),
    }
}

fn value(metric: &MetricComparison) -> Value {
    let ratio = interval(&metric.ratio).unwrap_or_default();
    (
        figure(metric.base),
        figure(metric.candidate),
        ratio,
        metric.verdict.map(Verdict::word),
    )
}

fn figure(value: f64) -> Option<Number> {
    Number::new(value, VALUE_DIGITS)
}

fn absolute(value: Option<f64>) -> Option<Number> {
    value.and_then(figure)
}

fn curves(latency: &LatencyCurves) -> [Vec<Option<Number>>; 3] {
    let all = |values: &[f64], digits| {
        values
            .iter()
            .map(|value| Number::new(*value, digits))
            .collect()
    };
    [
        all(&latency.percentiles, 7),
        all(&latency.base_us, CURVE_DIGITS),
        all(&latency.candidate_us, CURVE_DIGITS),
    ]
}

fn mean(summary: &GroupSummary, comparison: &Comparison, context: &ReportContext) -> Mean {
    Mean {
        candidate: summary.candidate,
        group: summary.group.map(deltabench_model::plan::Group::word),
        words: withdrawn::mean_name(summary, comparison, context),
        ratios: vec![
            interval(&summary.throughput),
            summary.server_cpu.as_ref().and_then(interval),
        ],
    }
}

/// The costs that some cell has, in the registry's order, then sampled waits by name.
fn cost_keys(comparison: &Comparison) -> Vec<&str> {
    let costs = || comparison.cells.iter().flat_map(|cell| &cell.costs);
    let has = |key: &str| costs().any(|cost| cost.key == key);
    let known = METRICS.iter().map(|info| info.key).filter(|key| has(key));
    let unknown = |cost: &&Cost| metric::metric(&cost.key).is_none();
    let mut others: Vec<&str> = costs()
        .filter(unknown)
        .map(|cost| cost.key.as_str())
        .collect();
    others.sort_unstable();
    others.dedup();
    known.chain(others).collect()
}

fn cost_head(key: &str) -> MetricHead {
    let Some(info) = metric::metric(key) else {
        let name = key.strip_prefix("wait:").unwrap_or(key);
        return MetricHead {
            key: key.to_owned(),
            name: format!("wait {}", name.replacen(':', " ", 1)),
            unit: "µs/op".to_owned(),
            better: Some(better(Better::Lower)),
            meaning: "time that backends waited for this, sampled".to_owned(),
            compared: false,
        };
    };
    MetricHead {
        key: info.key.to_owned(),
        name: words_unit(info.name).replace(" us/o", " µs/o"),
        unit: words_unit(info.unit),
        better: info.better.map(better),
        meaning: info.meaning.to_owned(),
        compared: false,
    }
}
