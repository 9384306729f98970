//! What the page's script draws from: one JSON value in the page, made from the same values as the rest.
//!
//! Figures are cut to the digits that a reader can use, so that an hour of series stays small. What is not
//! known is `null`, never 0. The form belongs to this version's script alone; the report's JSON is the
//! contract with others.

pub(in crate::html) mod number;
mod series;

use self::number::{Interval, Number, RATIO_DIGITS, VALUE_DIGITS, difference, interval};
use self::series::{marks, series};
use super::strips::{by_block, folded};
use super::{absolute, anchor, explained, grids, steps};
use crate::conditions::Conditions;
use crate::confirmation;
use crate::context::{ReportContext, resolved};
use crate::published::published;
use crate::typesetting::typeset;
use crate::{differences, means, withdrawn, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Cost, GroupSummary, LatencyCurves, Metric, MetricComparison,
    Verdict,
};
use deltabench_model::metric::{self, Better, METRICS};
use deltabench_model::plan::{Group, Plan, Role, ServerId};
use serde_json::{Value, json};

/// Digits of latency curves, which are only drawn.
const CURVE_DIGITS: usize = 4;

/// Base, candidate, ratio, the metric's own verdict, the difference of an operation as it is written.
type MetricValue = (
    Option<Number>,
    Option<Number>,
    Interval,
    Option<&'static str>,
    Option<String>,
);

/// Metric, base, candidate, difference, ratio, the placebo's ratio, place among what moved.
type CostRow = (
    usize,
    Option<Number>,
    Option<Number>,
    Interval,
    Option<Interval>,
    Option<Interval>,
    Option<usize>,
);

/// The value, ready to stand inside a script element.
pub(super) fn text(
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
    fn page(&self) -> Value {
        let servers = || ServerId::each().zip(&self.plan.servers);
        let names: Vec<String> = servers()
            .map(|(id, server)| side_name(self.plan, id, server.role))
            .collect();
        let sides = servers().zip(&names);
        let sides = sides.map(|((id, server), name)| {
            json!({"id": id, "name": name, "role": words::role(server.role)})
        });
        let groups = words::GROUPS.map(|group| (group.word(), words::heading_in(self.plan, group)));
        let cells = self.comparison.cells.iter().map(|cell| self.cell(cell));
        let steps = steps::data(self.context);
        let has_steps = steps.is_some();
        let mut page = json!({
            "base": resolved(self.plan, self.plan.base()),
            // What does the work of a cell: `client` or `thread`.
            "worker": words::worker(self.plan),
            "sides": sides.collect::<Value>(),
            "verdicts": VERDICTS.map(verdict_head),
            "groups": groups,
            "metrics": self.metrics(),
            "placebo": Metric::ALL.map(|metric| self.placebo(metric)),
            "means": self.means(),
            "cells": cells.collect::<Value>(),
            "series": series(&names, &self.context.samples),
            "marks": marks(&self.context.samples, &self.context.marks),
            "steps": steps,
            "grids": grids::data(&self.context.grids),
            "course": absolute::data(self.plan, self.context),
        });
        if let (Value::Object(fields), false) = (&mut page, has_steps) {
            fields.shift_remove("steps");
        }
        if let (Value::Object(fields), false) = (&mut page, self.context.explained.is_empty()) {
            let explained = explained::data(self.plan, &self.context.explained);
            fields.insert("explained".to_owned(), explained);
        }
        page
    }

    /// The placebo over all cells.
    fn placebo(&self, metric: Metric) -> Option<Interval> {
        let placebo = self.comparison.placebo.as_ref()?;
        match metric {
            Metric::Throughput => {
                let few = withheld::of_placebo(self.plan, self.comparison);
                interval(&placebo.throughput).filter(|_| few.is_none())
            }
            Metric::ServerCpuPerOperation => interval(placebo.server_cpu.as_ref()?),
            _ => None,
        }
    }

    /// Those that the whole comparison has, with a δ, and then the costs.
    fn metrics(&self) -> Value {
        let compared = Metric::ALL.iter().map(|one| {
            json!({
                "key": one.key(),
                "name": metric_name(*one),
                "unit": words_unit(one.unit()),
                "better": one.better().word(),
                "meaning": metric::metric(one.key()).map_or("", |info| info.meaning),
                "compared": true,
            })
        });
        let costs = self.costs.iter().map(|key| cost_head(key));
        compared.chain(costs).collect()
    }

    fn means(&self) -> Value {
        let candidates = self.plan.candidates().into_iter();
        let shown =
            candidates.flat_map(|candidate| means::shown(self.comparison, self.plan, candidate));
        shown
            .map(|summary| mean(summary, self.comparison, self.context))
            .collect()
    }

    fn cell(&self, cell: &CellComparison) -> Value {
        let placebo = self.comparison.placebo_cells.iter();
        let placebo = placebo.into_iter().find(|other| other.cell == cell.cell);
        let told = |cell: &CellComparison, metric| {
            metric != Metric::Throughput || withheld::of_cell(self.plan, cell.blocks).is_none()
        };
        let values = Metric::ALL.map(|metric| {
            let found = words::metric(cell, metric).filter(|_| told(cell, metric));
            let difference = differences::written(cell, metric, self.plan);
            found.map(|found| value(found, difference.as_deref().map(typeset)))
        });
        let of_placebo = Metric::ALL.map(|metric| {
            let placebo = placebo.filter(|placebo| told(placebo, metric))?;
            interval(&words::metric(placebo, metric)?.ratio)
        });
        let figures = published(cell, self.plan).filter(crate::published::Published::differs);
        let rates = cell.rates.iter();
        let rates: Vec<(u32, Option<Number>, Option<Number>)> = rates
            .map(|rate| (rate.block, figure(rate.base), figure(rate.candidate)))
            .collect();
        json!({
            "id": anchor(cell),
            "cell": cell.cell,
            "name": self.conditions.label(cell),
            "workload": cell.workload,
            "clients": cell.clients,
            "group": cell.group.word(),
            "candidate": cell.candidate,
            "verdict": cell.verdict.word(),
            "marks": confirmation::marks(cell),
            "reason": super::reason(cell),
            "delta": Number::new(cell.delta, RATIO_DIGITS).unwrap_or_default(),
            "withdrawn": withdrawn::of_cell(self.context, cell.cell),
            // What stands instead of relative throughput where that cannot be told.
            "withheld": withheld::of_cell(self.plan, cell.blocks),
            // By the metrics that are compared; of the placebo ratios alone.
            "values": values,
            "placebo": of_placebo,
            "published": figures.map(|figure| {
                (absolute(figure.base), absolute(figure.candidate), figure.unit)
            }),
            "costs": self.cost_rows(cell, placebo),
            "rates": rates,
            "latency": cell.latency.as_ref().map(curves),
            "rounds": [
                self.rounds(cell, Metric::Throughput),
                self.rounds(cell, Metric::ServerCpuPerOperation),
            ],
        })
    }

    fn cost_rows(&self, cell: &CellComparison, placebo: Option<&CellComparison>) -> Vec<CostRow> {
        let of_placebo = |key: &str| {
            let cost = placebo?.costs.iter().find(|cost| cost.key == key)?;
            interval(cost.ratio.as_ref()?)
        };
        let rows = cell.costs.iter().filter_map(|cost| {
            let place = self.costs.iter().position(|key| *key == cost.key)?;
            let moved = cell.moved.iter().position(|moved| moved.key == cost.key);
            Some((
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

    /// Rounds of all blocks: what [`super::strips`] draws, in hundredths of a percent. A block is its number,
    /// value, part and rounds.
    fn rounds(&self, cell: &CellComparison, wanted: Metric) -> Option<Value> {
        let metric = words::metric(cell, wanted)?;
        let blocks = by_block(cell, metric, super::strips::value_of(wanted)?);
        let (fold, dots) = folded(&blocks, self.dots);
        let rows = blocks.iter().zip(dots).map(|(block, dots)| {
            let hundredths = number::hundredths_of_percent;
            let dots = dots.into_iter().map(|log| log.and_then(hundredths));
            let dots: Vec<Option<i64>> = dots.collect();
            let value = hundredths(block.value);
            json!([block.number, value, block.part.words().trim(), dots])
        });
        Some(json!({"fold": fold, "blocks": rows.collect::<Value>()}))
    }
}

pub(super) const VERDICTS: [Verdict; 5] = [
    Verdict::Regression,
    Verdict::Improvement,
    Verdict::Inconclusive,
    Verdict::NoChange,
    Verdict::Unfit,
];

pub(super) fn verdict_head(verdict: Verdict) -> Value {
    json!({
        "key": verdict.word(),
        "word": words::verdict(verdict),
        "sign": words::sign(verdict),
        "class": super::class(verdict),
    })
}

fn side_name(plan: &Plan, id: ServerId, role: Role) -> String {
    match role {
        Role::Placebo => format!("{} again (placebo)", resolved(plan, id)),
        Role::Base | Role::Candidate => resolved(plan, id),
    }
}

pub(super) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ServerCpuPerOperation => "CPU/op",
        Metric::LatencyP50 => "latency p50",
        Metric::LatencyP95 => "latency p95",
        Metric::LatencyP99 => "latency p99",
        Metric::LatencyP999 => "latency p99.9",
        Metric::LatencyMax => "longest",
    }
}

pub(super) fn words_unit(unit: &str) -> String {
    match unit.strip_prefix("us") {
        Some(rest) => format!("µs{rest}"),
        None => unit.to_owned(),
    }
}

fn value(metric: &MetricComparison, difference: Option<String>) -> MetricValue {
    let ratio = interval(&metric.ratio).unwrap_or_default();
    (
        figure(metric.base),
        figure(metric.candidate),
        ratio,
        metric.verdict.map(Verdict::word),
        difference,
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

fn mean(summary: &GroupSummary, comparison: &Comparison, context: &ReportContext) -> Value {
    json!({
        "candidate": summary.candidate,
        "group": summary.group.map(Group::word),
        "words": means::name(summary, comparison, context),
        "ratios": [
            interval(&summary.throughput),
            summary.server_cpu.as_ref().and_then(interval),
        ],
    })
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

fn cost_head(key: &str) -> Value {
    let Some(info) = metric::metric(key) else {
        let name = key.strip_prefix("wait:").unwrap_or(key);
        return json!({
            "key": key,
            "name": format!("wait {}", name.replacen(':', " ", 1)),
            "unit": "µs/op",
            "better": Better::Lower.word(),
            "meaning": "time that backends waited for this, sampled",
            "compared": false,
        });
    };
    json!({
        "key": info.key,
        "name": words_unit(info.name).replace(" us/o", " µs/o"),
        "unit": words_unit(info.unit),
        "better": info.better.map(Better::word),
        "meaning": info.meaning,
        "compared": false,
    })
}
