//! How a parameter is drawn, as the file says it.

use super::Definition;
use crate::bound::{Bound, bound};
use crate::executable::{Sequence, Value};
use crate::expression::Sizes;
use crate::permutation::Permutation;
use crate::section::{Placed, Section};
use crate::seed::mix;
use crate::template::Shape;
use crate::varied::is_name;
use crate::zipf::Zipf;
use deltabench_model::problem::Problem;

/// Placeholders that one statement can have. Source: the protocol counts them in 16 bits.
pub(super) const MAX_SLOTS: u32 = 65_535;
/// Bytes of a group, groups of a text, letters of a text.
const MAX_TEXT: u32 = 1000;
/// Exponent of a zipf distribution that does not name one: sysbench's.
const EXPONENT: f64 = 0.8;
/// Largest exponent; with it the second rank has a thousandth of the first.
const MAX_EXPONENT: f64 = 10.0;
/// What the order of a shuffled sequence is mixed with.
const ORDER: u64 = u64::from_be_bytes(*b"sequence");

/// A parameter of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    kind: Kind,
    /// Whether it has one value in a whole operation.
    once: bool,
    pub(super) line: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Uniform {
        low: Bound,
        high: Bound,
        count: Option<u32>,
    },
    Zipf {
        low: Bound,
        high: Bound,
        exponent: f64,
        count: Option<u32>,
    },
    Sequence {
        low: Bound,
        high: Option<Bound>,
        shuffled: bool,
        stops: bool,
    },
    Consecutive {
        start: Bound,
        count: u32,
    },
    Range {
        low: Bound,
        high: Bound,
        add: Bound,
    },
    Digits {
        groups: u32,
        width: u32,
    },
    Letters {
        length: u32,
    },
}

impl Parameter {
    /// What stands for it in SQL.
    pub(super) fn shape(&self) -> Shape {
        match &self.kind {
            Kind::Uniform {
                count: Some(count), ..
            }
            | Kind::Zipf {
                count: Some(count), ..
            }
            | Kind::Consecutive { count, .. } => Shape::List(*count),
            Kind::Range { .. } => Shape::Range,
            _ => Shape::Scalar,
        }
    }

    /// Whether it is a sequence.
    pub(super) fn is_sequence(&self) -> bool {
        matches!(self.kind, Kind::Sequence { .. })
    }

    /// Whether it is a sequence that must not start again.
    pub(super) fn stops(&self) -> bool {
        matches!(self.kind, Kind::Sequence { stops: true, .. })
    }
}

/// Reads all parameters.
pub(super) fn parameters(root: &Section<'_>) -> Result<Vec<Parameter>, Problem> {
    let Some((value, at)) = root.value("parameter") else {
        return Ok(Vec::new());
    };
    let header = ("parameter", "tables, each headed [parameter.NAME]");
    let all = root.headed(header, (value, at), "parameter".to_owned())?;
    let read = |((name, _), value): (Placed<&str>, _)| {
        let header = (name, "a table headed [parameter.NAME]");
        let section = root.headed(header, value, format!("parameter `{name}`"))?;
        parameter(name, &section)
    };
    // By name: each has its own stream of random numbers by its place, which must not change.
    let mut named = all.entries();
    named.sort_by_key(|((name, _), _)| *name);
    named.into_iter().map(read).collect()
}

fn parameter(name: &str, section: &Section<'_>) -> Result<Parameter, Problem> {
    if !is_name(name) {
        return Err(section.problem("a name is lower-case letters, digits and `_`, a letter first"));
    }
    Ok(Parameter {
        name: name.to_owned(),
        kind: kind(section)?,
        once: section.flag("once")?.unwrap_or(false),
        line: section.line(),
    })
}

/// The kinds, and how each is read.
const KINDS: [&str; 7] = [
    "uniform",
    "zipf",
    "sequence",
    "consecutive",
    "range",
    "digits",
    "letters",
];

fn kind(section: &Section<'_>) -> Result<Kind, Problem> {
    let (kind, at) = section.required_text("kind")?;
    let bound = |key: &str| bound(section, key);
    let count = || section.size("count", 1..=i64::from(MAX_SLOTS));
    let needed = |key: &str, most: u32| {
        section
            .size(key, 1..=i64::from(most))?
            .ok_or_else(|| section.problem(format!("key `{key}` is missing")))
    };
    match kind {
        "uniform" => {
            section.allow(&["kind", "low", "high", "count", "once"])?;
            Ok(Kind::Uniform {
                low: bound("low")?,
                high: bound("high")?,
                count: count()?,
            })
        }
        "zipf" => {
            section.allow(&["kind", "low", "high", "exponent", "count", "once"])?;
            Ok(Kind::Zipf {
                low: bound("low")?,
                high: bound("high")?,
                exponent: section
                    .fraction("exponent", MAX_EXPONENT)?
                    .unwrap_or(EXPONENT),
                count: count()?,
            })
        }
        "sequence" => sequence(section),
        "consecutive" => {
            section.allow(&["kind", "start", "count"])?;
            Ok(Kind::Consecutive {
                start: bound("start")?,
                count: needed("count", MAX_SLOTS)?,
            })
        }
        "range" => {
            section.allow(&["kind", "low", "high", "add", "once"])?;
            Ok(Kind::Range {
                low: bound("low")?,
                high: bound("high")?,
                add: bound("add")?,
            })
        }
        "digits" => {
            section.allow(&["kind", "groups", "width", "once"])?;
            Ok(Kind::Digits {
                groups: needed("groups", MAX_TEXT)?,
                width: needed("width", MAX_TEXT)?,
            })
        }
        "letters" => {
            section.allow(&["kind", "length", "once"])?;
            Ok(Kind::Letters {
                length: needed("length", MAX_TEXT)?,
            })
        }
        _ => Err(section.unknown_word(at, "kind", kind, &KINDS)),
    }
}

fn sequence(section: &Section<'_>) -> Result<Kind, Problem> {
    section.allow(&["kind", "low", "high", "order", "at_end"])?;
    let orders = [("ascending", false), ("shuffled", true)];
    let shuffled = section.word("order", &orders)?.unwrap_or(false);
    let ends = [("stop", true), ("restart", false)];
    let stops = section.word("at_end", &ends)?.unwrap_or(true);
    let high = match section.value("high") {
        None if shuffled => return Err(section.problem("a shuffled sequence needs `high`")),
        None => None,
        Some(_) => Some(bound(section, "high")?),
    };
    Ok(Kind::Sequence {
        low: bound(section, "low")?,
        high,
        shuffled,
        stops,
    })
}

impl Definition {
    /// A parameter for data of that size; `number` is its place among the parameters.
    pub(super) fn value(
        &self,
        number: u32,
        parameter: &Parameter,
        sizes: Sizes,
    ) -> Result<Value, Problem> {
        let of = |bound: &Bound| self.bound_value(parameter, bound, sizes);
        let between = |low: &Bound, high: &Bound| self.between(parameter, low, high, sizes);
        let value = match &parameter.kind {
            Kind::Uniform { low, high, count } => {
                let (low, high) = between(low, high)?;
                let count = count.unwrap_or(1);
                Value::Uniform { low, high, count }
            }
            Kind::Zipf {
                low,
                high,
                exponent,
                count,
            } => {
                let (low, high) = between(low, high)?;
                Value::Zipf {
                    low,
                    rank: Zipf::new(width(low, high), *exponent),
                    count: count.unwrap_or(1),
                }
            }
            Kind::Sequence {
                low,
                high,
                shuffled,
                ..
            } => {
                let (low, high) = match high {
                    Some(high) => between(low, high)?,
                    None => (of(low)?, i64::MAX),
                };
                let count = width(low, high);
                let order = shuffled.then(|| Permutation::new(count, self.order(parameter)));
                Value::Sequence(Sequence { low, count, order })
            }
            Kind::Consecutive { start, count } => Value::Consecutive {
                start: of(start)?,
                count: *count,
            },
            Kind::Range { low, high, add } => {
                let (low, high) = between(low, high)?;
                let add = of(add)?;
                Value::Range { low, high, add }
            }
            Kind::Digits { groups, width } => Value::Digits {
                groups: *groups,
                width: *width,
            },
            Kind::Letters { length } => Value::Letters { length: *length },
        };
        Ok(if parameter.once {
            let value = Box::new(value);
            Value::Shared { number, value }
        } else {
            value
        })
    }

    /// Seed of the order of a shuffled sequence: the same in every run, because it goes on from slice to
    /// slice.
    fn order(&self, parameter: &Parameter) -> u64 {
        let letters = self.name.bytes().chain([0]).chain(parameter.name.bytes());
        mix(ORDER, &letters.map(u64::from).collect::<Vec<_>>())
    }

    fn bound_value(
        &self,
        parameter: &Parameter,
        bound: &Bound,
        sizes: Sizes,
    ) -> Result<i64, Problem> {
        bound.expression.value(sizes).map_err(|why| {
            let name = &parameter.name;
            let what = format!("parameter `{name}`: the expression {why}");
            self.problem_at(bound.line, what).detail(said(sizes))
        })
    }

    fn between(
        &self,
        parameter: &Parameter,
        low: &Bound,
        high: &Bound,
        sizes: Sizes,
    ) -> Result<(i64, i64), Problem> {
        let least = self.bound_value(parameter, low, sizes)?;
        let most = self.bound_value(parameter, high, sizes)?;
        if least > most {
            let name = &parameter.name;
            let what = format!("parameter `{name}`: low {least} is above high {most}");
            return Err(self.problem_at(low.line, what).detail(said(sizes)));
        }
        Ok((least, most))
    }
}

/// How many integers there are from `low` to `high`.
fn width(low: i64, high: i64) -> u64 {
    high.abs_diff(low).saturating_add(1)
}

fn said(sizes: Sizes) -> String {
    format!("rows = {}, tables = {}", sizes.rows, sizes.tables)
}
