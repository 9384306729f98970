//! What no run can vary by itself: data size, memory, storage. Each combination is a run of its own.

use crate::keys;
use crate::kinds::{self, DEFAULT_SCALE, ScaleFactor, Size};
use crate::syntax;
use deltabench_document::{Placed, Section};
use deltabench_model::problem::Problem;

/// Rows of each table of a file that names none: as `deltabench compare` has it.
pub const DEFAULT_ROWS: u64 = 1_000_000;

/// Rows of a table: the workloads look up 100 at a time, and ids are PostgreSQL's integers.
const ROWS: Size = Size {
    table: "data",
    key: "rows",
    range: 200..=2_147_483_647,
    default: DEFAULT_ROWS,
};
/// Tables.
const TABLES: std::ops::RangeInclusive<i64> = 1..=10_000;
/// Most repetitions of a part: more would be a study of years.
pub const REPETITIONS_MAX: i64 = 1000;
/// Most parts of one file, repetitions included.
const PARTS_MAX: usize = 10_000;
/// The word for no limit on memory.
const NO_LIMIT: &str = "none";
/// The word for a device without limits.
const AS_IS: &str = "as-is";

/// The axis of repetitions, as `--only` calls it.
const REPETITION: &str = "repetition";

/// One run of the study: one data size, one memory, one storage, one repetition; all servers and cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its place among all parts of the study, from 1, whatever was picked of them: seeds follow from it.
    pub number: u32,
    /// Rows of each table; of the Insert Benchmark those that each client loads; of RocksDB
    /// its keys.
    pub rows: u64,
    pub tables: u32,
    /// Scale of pgbench's tables, or warehouses; of no meaning without them.
    pub scale: ScaleFactor,
    /// Memory of each server, as written; absent: no limit.
    pub memory: Option<String>,
    /// Name or file of the storage profile, as written; absent: the disk as it is.
    pub storage: Option<String>,
    /// Which repetition, from 1; each is a load of its own.
    pub repetition: u32,
    pub of_repetitions: u32,
    /// Where it stands on the axes that have more than one value in the file, in the order of the file:
    /// `("rows", "1000000")`, `("memory", "2GB")`, `("storage", "as-is")`.
    pub coordinates: Vec<(String, String)>,
}

/// A value on an axis of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Rows(u64),
    Tables(u32),
    Scale(ScaleFactor),
    Memory(String),
    Storage(String),
}

impl Value {
    fn word(&self) -> String {
        match self {
            Self::Rows(rows) => rows.to_string(),
            Self::Tables(tables) => tables.to_string(),
            Self::Scale(scale) => scale.to_string(),
            Self::Memory(text) | Self::Storage(text) => text.clone(),
        }
    }
}

/// An axis of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    name: &'static str,
    /// All of the file, and whether each is among those picked.
    values: Vec<(Value, bool)>,
}

/// All axes of parts, in the order of the file, and the repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axes {
    axes: Vec<Axis>,
    /// Numbers of the repetitions, and whether each is among those picked.
    repetitions: Vec<(u32, bool)>,
}

impl Axes {
    /// Reads `[data]` and the axes of `[limits]`.
    pub(crate) fn read(root: &Section<'_>, repetitions: u32) -> Result<Self, Problem> {
        let mut axes = Vec::new();
        let mut add = |section: Option<&Section<'_>>, name: &'static str, values: Vec<Value>| {
            let place = section.map_or(usize::MAX, |section| section.place_of(name));
            let values = values.into_iter().map(|value| (value, true)).collect();
            axes.push((place, Axis { name, values }));
        };
        let data = root.section("data", "[data]")?;
        let data = data.as_ref();
        if let Some(data) = data {
            data.allow(&keys::DATA)?;
        }
        let mut own = kinds::SIZES.into_iter();
        let own = own.find(|size| root.value(size.table).is_some());
        let size = own.unwrap_or(ROWS);
        let owner = root.section(size.table, format!("[{}]", size.table))?;
        let owner = owner.as_ref();
        let rows = owner.map(|owner| owner.numbers(size.key, size.range));
        let rows = rows.transpose()?.flatten();
        let rows = rows.unwrap_or_else(|| vec![size.default]);
        add(owner, size.key, rows.into_iter().map(Value::Rows).collect());
        let tables = data
            .map(|data| data.numbers("tables", TABLES))
            .transpose()?;
        let tables = tables.flatten().unwrap_or_else(|| vec![1]);
        add(
            data,
            "tables",
            tables.into_iter().map(Value::Tables).collect(),
        );
        let (name, scales, place) = scaled_axis(root)?;
        add(place.as_ref(), name, scales);
        let limits = root.section("limits", "[limits]")?;
        let limits = limits.as_ref();
        let memory = texts(limits, "memory", NO_LIMIT, |text| match text {
            NO_LIMIT => Ok(()),
            text => syntax::memory(text),
        })?;
        add(
            limits,
            "memory",
            memory.into_iter().map(Value::Memory).collect(),
        );
        let storage = texts(limits, "storage", AS_IS, |_| Ok(()))?;
        add(
            limits,
            "storage",
            storage.into_iter().map(Value::Storage).collect(),
        );
        axes.sort_by_key(|(place, _)| *place);
        let axes = Self {
            axes: axes.into_iter().map(|(_, axis)| axis).collect(),
            repetitions: (1..=repetitions).map(|number| (number, true)).collect(),
        };
        match axes.count() {
            count if count > PARTS_MAX => Err(root.problem(format!(
                "that makes {count} parts, each a run, but a study has at most {PARTS_MAX}"
            ))),
            _ => Ok(axes),
        }
    }

    /// The same with so many repetitions of each combination.
    ///
    /// Errors: too many parts.
    pub(crate) fn repeated(mut self, repetitions: u32) -> Result<Self, Problem> {
        self.repetitions = (1..=repetitions).map(|number| (number, true)).collect();
        match self.count() {
            count if count > PARTS_MAX => Err(Problem::new(format!(
                "{repetitions} repetitions make {count} parts, but a study has at most {PARTS_MAX}"
            ))
            .detail("each part is a run, and so is each of its repetitions")
            .hint("ask for fewer with --repetitions, or leave parts out with --only")),
            _ => Ok(self),
        }
    }

    fn count(&self) -> usize {
        let all = self.axes.iter().map(|axis| axis.values.len());
        all.fold(self.repetitions.len(), usize::saturating_mul)
    }

    /// Every combination that is picked: the first axis of the file varies slowest, repetitions fastest.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let start = Part {
            number: 1,
            rows: DEFAULT_ROWS,
            tables: 1,
            scale: DEFAULT_SCALE,
            memory: None,
            storage: None,
            repetition: 1,
            of_repetitions: u32::try_from(self.repetitions.len()).unwrap_or(u32::MAX),
            coordinates: Vec::new(),
        };
        let mut parts = vec![(start, true)];
        for axis in &self.axes {
            let on_axis = |(part, picked): &(Part, bool)| {
                let (part, picked) = (part.clone(), *picked);
                let values = axis.values.iter();
                values.map(move |(value, kept)| (at(&part, axis, value), picked && *kept))
            };
            parts = parts.iter().flat_map(on_axis).collect();
        }
        let repeated = |(part, picked): (Part, bool)| {
            self.repetitions.iter().map(move |&(repetition, kept)| {
                let part = Part {
                    repetition,
                    ..part.clone()
                };
                (part, picked && kept)
            })
        };
        let numbered = (1..).zip(parts.into_iter().flat_map(repeated));
        numbered
            .filter(|(_, (_, picked))| *picked)
            .map(|(number, (part, _))| Part { number, ..part })
            .collect()
    }

    /// The words on an axis, `repetition` included; empty for something that is no axis.
    pub(crate) fn words(&self, axis: &str) -> Vec<String> {
        if axis == REPETITION {
            let picked = self.repetitions.iter().filter(|(_, kept)| *kept);
            return picked.map(|(number, _)| number.to_string()).collect();
        }
        let named = self.axes.iter().filter(|other| other.name == axis);
        let values = named.flat_map(|axis| &axis.values);
        let picked = values.filter(|(_, kept)| *kept);
        picked.map(|(value, _)| value.word()).collect()
    }

    /// Keeps the values of an axis whose words `keep` accepts.
    pub(crate) fn keep(&mut self, axis: &str, keep: impl Fn(&str) -> bool) {
        if axis == REPETITION {
            for (number, kept) in &mut self.repetitions {
                *kept = *kept && keep(&number.to_string());
            }
        }
        for axis in self.axes.iter_mut().filter(|other| other.name == axis) {
            for (value, kept) in &mut axis.values {
                *kept = *kept && keep(&value.word());
            }
        }
    }
}

/// The axis of the tables that have a factor for their size, with the section that it is in.
fn scaled_axis<'a>(
    root: &Section<'a>,
) -> Result<(&'static str, Vec<Value>, Option<Section<'a>>), Problem> {
    let [first, ..] = &kinds::SCALED;
    let own = kinds::SCALED.iter();
    let scaled = own
        .rev()
        .find(|scaled| root.value(scaled.table).is_some())
        .unwrap_or(first);
    let section = root.section(scaled.table, format!("[{}]", scaled.table))?;
    let scales = section
        .as_ref()
        .map(|section| kinds::scales(section, scaled));
    let scales = scales.transpose()?.flatten();
    let scales = scales.unwrap_or_else(|| vec![scaled.default]);
    let values = scales.into_iter().map(Value::Scale).collect();
    Ok((scaled.key, values, section))
}

fn at(part: &Part, axis: &Axis, value: &Value) -> Part {
    let mut part = part.clone();
    match value {
        Value::Rows(rows) => part.rows = *rows,
        Value::Tables(tables) => part.tables = *tables,
        Value::Scale(scale) => part.scale = *scale,
        Value::Memory(text) => part.memory = Some(text.clone()).filter(|text| text != NO_LIMIT),
        Value::Storage(text) => part.storage = Some(text.clone()).filter(|text| text != AS_IS),
    }
    if axis.values.len() > 1 {
        part.coordinates.push((axis.name.to_owned(), value.word()));
    }
    part
}

fn texts(
    section: Option<&Section<'_>>,
    key: &str,
    without: &str,
    check: impl Fn(&str) -> Result<(), Problem>,
) -> Result<Vec<String>, Problem> {
    let Some(section) = section else {
        return Ok(vec![without.to_owned()]);
    };
    let Some(texts) = section.texts(key)? else {
        return Ok(vec![without.to_owned()]);
    };
    let read = |(text, at): Placed<&str>| {
        check(text).map_err(|problem| section.wrap(at, problem))?;
        Ok(text.to_owned())
    };
    texts.into_iter().map(read).collect()
}
