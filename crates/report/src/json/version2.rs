//! Version 2 of the JSON contract, from version 1.
//!
//! - What is not known is absent, everywhere: nothing is `null`.
//! - Blocks count from 1.
//! - An interval is `{"low": …, "high": …, "level": …}`, everywhere.
//! - A cell has an id that stays the same from run to run, `point-query@4`; all that belongs to it names that
//!   one, and servers are named as in the rest of the report.

use deltabench_compare::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT};
use deltabench_model::plan::{DataState, Plan, ServerId};
use deltabench_model::units::index;
use serde_json::{Map, Value, json};

/// A version of the JSON contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JsonVersion {
    /// As it was first: pairs for intervals, places in the plan for cells, blocks from 0.
    One,
    /// As `docs/reference/report.schema.json` says.
    #[default]
    Two,
}

impl JsonVersion {
    /// The version of this number; the current one for numbers that there are not.
    pub fn of(number: u8) -> Self {
        match number {
            1 => Self::One,
            _ => Self::Two,
        }
    }

    /// The version that a report is written in.
    pub fn of_report(text: &str) -> Self {
        let report: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let number = report.get("version").and_then(serde_json::Value::as_u64);
        number.map_or_else(Self::default, |number| {
            Self::of(u8::try_from(number).unwrap_or(0))
        })
    }
}

/// The version of the contract.
pub(super) const VERSION: u32 = 2;

/// What the report of a run refers to by its place in the plan.
#[derive(Debug, Default)]
pub(crate) struct Names {
    cells: Vec<String>,
    servers: Vec<String>,
}

impl Names {
    /// Those of a plan.
    pub(super) fn of(plan: &Plan) -> Self {
        let cells = plan.cells.iter().map(|cell| {
            let mut id = format!("{}@{}", cell.workload, cell.clients);
            if cell.state == DataState::Aged {
                id.push_str("/aged");
            }
            if let Some(rate) = cell.rate {
                id.push_str(&format!("/rate={rate}"));
            }
            id
        });
        let servers = ServerId::each()
            .zip(&plan.servers)
            .map(|(id, _)| plan.server_name(id));
        Self {
            cells: cells.collect(),
            servers: servers.collect(),
        }
    }
}

/// A document, made as version 1, in the form of a version: indented, with a line break at the end.
pub(crate) fn written(version: JsonVersion, mut document: Value, names: &Names) -> String {
    if version == JsonVersion::Two {
        document = upgrade(document, names);
        if let Some(version) = document.get_mut("version") {
            *version = json!(VERSION);
        }
    }
    indented(&document)
}

/// A document as text, indented, with a line break at the end.
pub(crate) fn indented(document: &Value) -> String {
    // Only maps with keys that are not strings and failing writers make this fail; there is neither.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// A document that belongs to no run, as version 2 has it: what deltabench says of the host and of itself.
pub fn of_no_run(document: Value) -> Value {
    upgrade(document, &Names::default())
}

fn upgrade(value: Value, names: &Names) -> Value {
    match value {
        Value::Array(values) => values
            .into_iter()
            .map(|value| upgrade(value, names))
            .collect(),
        Value::Object(fields) => Value::Object(object(fields, names)),
        value => value,
    }
}

fn object(fields: Map<String, Value>, names: &Names) -> Map<String, Value> {
    let mut upgraded = Map::new();
    for (key, value) in fields {
        if value.is_null() {
            continue;
        }
        let value = match (key.as_str(), &value) {
            ("cell", Value::Number(_)) => named(&value, &names.cells),
            ("server", Value::Number(_)) => named(&value, &names.servers),
            ("rates", Value::Array(_)) => from_one(value),
            ("host_speed", Value::Object(_)) => blocks_from_one(value),
            _ => value,
        };
        let level = match key.as_str() {
            key if key.ends_with("ci90") => LEVEL_EQUIVALENT,
            _ => LEVEL_DIFFERENT,
        };
        let is_interval = key.ends_with("ci95") || key.ends_with("ci90");
        let value = match value.as_array().map(Vec::as_slice) {
            Some([low, high]) if is_interval => interval(low, high, level),
            _ => upgrade(value, names),
        };
        upgraded.insert(key, value);
    }
    match upgraded.keys().any(|key| key.ends_with("low")) {
        true => ends_as_intervals(&upgraded),
        false => upgraded,
    }
}

/// `throughput_low` and `throughput_high`, or `low` and `high`, as the interval that they are the ends of.
fn ends_as_intervals(fields: &Map<String, Value>) -> Map<String, Value> {
    let stem = |key: &str, end: &str| -> Option<String> {
        let stem = key.strip_suffix(end)?;
        (stem.is_empty() || stem.ends_with('_')).then(|| stem.to_owned())
    };
    let mut joined = Map::new();
    for (key, value) in fields {
        if let Some(stem) = stem(key, "low")
            && let Some(high) = fields.get(&format!("{stem}high"))
        {
            joined.insert(
                format!("{stem}ci95"),
                interval(value, high, LEVEL_DIFFERENT),
            );
            continue;
        }
        let is_upper_end =
            stem(key, "high").is_some_and(|stem| fields.contains_key(&format!("{stem}low")));
        if !is_upper_end {
            joined.insert(key.clone(), value.clone());
        }
    }
    joined
}

fn interval(low: &Value, high: &Value, level: f64) -> Value {
    json!({"low": low, "high": high, "level": level})
}

/// What has this place; the place itself where the plan has no such thing.
fn named(place: &Value, names: &[String]) -> Value {
    let name = place.as_u64().and_then(|place| names.get(index(place)));
    name.map_or_else(|| place.clone(), |name| json!(name))
}

/// Counts the blocks of a list from 1.
fn from_one(mut blocks: Value) -> Value {
    for one in blocks.as_array_mut().into_iter().flatten() {
        if let Some(block) = one.get_mut("block")
            && let Some(number) = block.as_u64()
        {
            *block = json!(number + 1);
        }
    }
    blocks
}

fn blocks_from_one(mut value: Value) -> Value {
    if let Some(blocks) = value.get_mut("blocks") {
        *blocks = from_one(blocks.take());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_null_intervals_have_one_shape_and_blocks_count_from_one() {
        let names = Names {
            cells: vec!["point-query@1".to_owned()],
            servers: vec!["base".to_owned(), "placebo".to_owned()],
        };
        let old = json!({
            "version": 1,
            "turbo": null,
            "cells": [{
                "cell": 0,
                "metrics": {"throughput": {"ratio": 1.0, "ci95": [0.9, 1.1], "ci90": [0.95, 1.05]}},
                "rates": [{"block": 0, "base": 1.0, "server_cpu_us": [1.0, 2.0]}],
                "host_speed": {"slowdown": 1.1, "blocks": [{"block": 3, "slowdown": 1.0}]},
            }],
            "steps": [{
                "throughput_low": 1.0, "throughput_high": 2.0, "relative": {"low": 0.9, "high": 1.0},
            }],
            "turns": {"steps": [{"cell": 7, "server": 1, "blocks": [{"block": 1}]}]},
        });
        let new: Value = serde_json::from_str(&written(JsonVersion::Two, old, &names)).unwrap();
        let band =
            |low: f64, high: f64, level: f64| json!({"low": low, "high": high, "level": level});
        assert_eq!(
            new,
            json!({
                "version": 2,
                "cells": [{
                    "cell": "point-query@1",
                    "metrics": {"throughput": {
                        "ratio": 1.0, "ci95": band(0.9, 1.1, 0.95), "ci90": band(0.95, 1.05, 0.9),
                    }},
                    "rates": [{"block": 1, "base": 1.0, "server_cpu_us": [1.0, 2.0]}],
                    "host_speed": {"slowdown": 1.1, "blocks": [{"block": 4, "slowdown": 1.0}]},
                }],
                "steps": [{
                    "throughput_ci95": band(1.0, 2.0, 0.95), "relative": {"ci95": band(0.9, 1.0, 0.95)},
                }],
                "turns": {"steps": [{"cell": 7, "server": "placebo", "blocks": [{"block": 1}]}]},
            })
        );
    }
}
