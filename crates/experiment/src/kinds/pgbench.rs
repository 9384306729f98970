//! `[pgbench]`: its tables, its scripts, and how they are sent.

use super::Scaled;
use crate::syntax;
use deltabench_document::{Placed, Section, Value};
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PartitionMethod, PgbenchTables, QueryMode};
use std::fmt::{self, Display};
use toml::de::DeValue;

/// Of `[pgbench]`.
pub(crate) const KEYS: [&str; 15] = [
    "scripts",
    "mode",
    "scale",
    "fillfactor",
    "foreign_keys",
    "partitions",
    "partition_method",
    "unlogged",
    "server_side",
    "init",
    "variables",
    "max_tries",
    "connect",
    "latency_limit",
    "writes",
];
/// Of a mix of scripts of `[pgbench]`.
pub(crate) const MIX_KEYS: [&str; 2] = ["name", "scripts"];
/// Scale factors: 100,000 rows of accounts each; more than these could not be counted.
pub(crate) const SCALE: std::ops::RangeInclusive<i64> = 1..=90_000;
/// Percent of a page that is filled.
const FILLFACTOR: std::ops::RangeInclusive<i64> = 10..=100;
/// Partitions of accounts.
const PARTITIONS: std::ops::RangeInclusive<i64> = 0..=10_000;
/// Tries of a transaction.
const TRIES: std::ops::RangeInclusive<i64> = 0..=4_294_967_295;
/// How often a script is drawn, relative to others.
const WEIGHT_MAX: u32 = 2_147_483_647;
/// The script that `pgbench` sends when none is named.
const DEFAULT_SCRIPT: &str = "tpcb-like";

/// Scale of the tables of a file that names none: as pgbench has it.
pub(crate) const DEFAULT_SCALE: ScaleFactor = ScaleFactor::Factor(1);

/// A scale factor: a number, or what it is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleFactor {
    Factor(u32),
    /// Tables of about half of the memory that a server has.
    HalfMemory,
    /// Tables of about twice the memory that a server has.
    TwiceMemory,
}

impl ScaleFactor {
    /// The published studies' small tables.
    pub const SMALL: Self = Self::Factor(10);
    /// The words for scales; numbers come beside them.
    const WORDS: [(&'static str, Self); 3] = [
        ("small", Self::SMALL),
        ("half-memory", Self::HalfMemory),
        ("twice-memory", Self::TwiceMemory),
    ];

    /// Times the memory of a server; absent for a scale that does not depend on it.
    pub fn times_memory(self) -> Option<f64> {
        match self {
            Self::Factor(_) => None,
            Self::HalfMemory => Some(0.5),
            Self::TwiceMemory => Some(2.0),
        }
    }
}

impl Display for ScaleFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(factor) => write!(f, "{factor}"),
            Self::HalfMemory => f.write_str("half-memory"),
            Self::TwiceMemory => f.write_str("twice-memory"),
        }
    }
}

/// A script as the file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptName {
    /// A built-in script, or a file, relative to the experiment's.
    pub name: String,
    /// How often it is drawn, relative to the others of its mix.
    pub weight: u32,
}

impl ScriptName {
    /// Whether it is the name of a file and not of a built-in script.
    pub fn is_file(&self) -> bool {
        self.name.contains(['/', '.'])
    }
}

/// A workload: one script, or several of which one is drawn for each transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptMix {
    /// Its name; absent: it is called as its script.
    pub name: Option<String>,
    pub scripts: Vec<ScriptName>,
}

/// All of `[pgbench]` but the scale, which is an axis of parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Pgbench {
    pub mixes: Vec<ScriptMix>,
    /// How statements are sent.
    pub mode: QueryMode,
    /// The tables but for their scale and `init`, which are not read here.
    pub tables: PgbenchTables,
    /// A file of SQL that runs after the tables are made, relative to the experiment's.
    pub init: Option<String>,
    pub variables: Vec<(String, String)>,
    /// Most tries of a transaction that failed for serialization or a deadlock; 0: any number.
    pub max_tries: u32,
    /// Whether each transaction has a connection of its own.
    pub reconnects: bool,
    /// Transactions that take longer are late, milliseconds.
    pub latency_limit_ms: Option<f64>,
    /// Whether every script changes data, whatever its statements look like.
    pub writes: bool,
}

/// Reads `[pgbench]`; `None` when the file has none.
pub(crate) fn pgbench(root: &Section<'_>) -> Result<Option<Pgbench>, Problem> {
    let Some(section) = root.section("pgbench", "[pgbench]")? else {
        return Ok(None);
    };
    section.allow(&KEYS)?;
    let latency_limit_ms = match section.text("latency_limit")? {
        None => None,
        Some((text, at)) => Some(
            syntax::milliseconds("latency_limit", text)
                .map_err(|problem| section.wrap(at, problem))?,
        ),
    };
    let max_tries = section.number("max_tries", TRIES)?.unwrap_or(1);
    if let (0, None, Some((_, at))) = (max_tries, latency_limit_ms, section.value("max_tries")) {
        return Err(section
            .problem_at(at, "`max_tries` is 0, which means no limit")
            .hint("set an end: latency_limit = \"1s\""));
    }
    let modes = QueryMode::ALL.map(|mode| (mode.word(), mode));
    Ok(Some(Pgbench {
        mixes: mixes(&section)?,
        mode: section.word("mode", &modes)?.unwrap_or_default(),
        tables: tables(&section)?,
        init: section.text("init")?.map(|(text, _)| text.to_owned()),
        variables: variables(&section)?,
        max_tries,
        reconnects: section.flag("connect")?.unwrap_or(false),
        latency_limit_ms,
        writes: section.flag("writes")?.unwrap_or(false),
    }))
}

fn tables(section: &Section<'_>) -> Result<PgbenchTables, Problem> {
    let default = PgbenchTables::default();
    let partitions = section
        .number("partitions", PARTITIONS)?
        .unwrap_or(default.partitions);
    let methods =
        [PartitionMethod::Range, PartitionMethod::Hash].map(|method| (method.word(), method));
    let partition_method = section.word("partition_method", &methods)?;
    if let (0, Some((_, at))) = (partitions, section.value("partition_method")) {
        return Err(section
            .problem_at(at, "`partition_method` has no effect without `partitions`")
            .hint("write for example partitions = 10"));
    }
    Ok(PgbenchTables {
        fillfactor: section
            .number("fillfactor", FILLFACTOR)?
            .unwrap_or(default.fillfactor),
        foreign_keys: section
            .flag("foreign_keys")?
            .unwrap_or(default.foreign_keys),
        partitions,
        partition_method: partition_method.unwrap_or(default.partition_method),
        unlogged: section.flag("unlogged")?.unwrap_or(default.unlogged),
        server_side: section.flag("server_side")?.unwrap_or(default.server_side),
        ..default
    })
}

fn variables(section: &Section<'_>) -> Result<Vec<(String, String)>, Problem> {
    let Some(variables) = section.section("variables", "`variables` of [pgbench]")? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for ((name, at), (value, value_at)) in variables.entries() {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        let first_is_good = name.starts_with(|first: char| !first.is_ascii_digit());
        if !first_is_good || !name.chars().all(good) {
            let what = format!("\"{name}\" is not the name of a variable");
            return Err(variables
                .problem_at(at, what)
                .hint("write for example variables = { n = \"3\" }"));
        }
        let text = match value {
            DeValue::String(text) if !text.is_empty() && !text.chars().any(char::is_control) => {
                text.to_string()
            }
            DeValue::Integer(integer) => integer.to_string(),
            DeValue::Float(float) => float.as_str().to_owned(),
            other => {
                let wanted = "a string of one line that is not empty, or a number";
                return Err(variables.wrong_type(name, value_at, wanted, other));
            }
        };
        found.push((name.to_owned(), text));
    }
    Ok(found)
}

/// The values of a factor, in the order of the file.
pub(crate) fn scales(
    section: &Section<'_>,
    scaled: &Scaled,
) -> Result<Option<Vec<ScaleFactor>>, Problem> {
    let key = scaled.key;
    let Some(values) = section.one_or_many(key)? else {
        return Ok(None);
    };
    let scales = values
        .into_iter()
        .map(|value| Ok((scale(section, scaled, value)?, value.1)))
        .collect::<Result<Vec<_>, Problem>>()?;
    section.all_different(key, &scales)?;
    Ok(Some(scales.into_iter().map(|(scale, _)| scale).collect()))
}

fn scale(
    section: &Section<'_>,
    scaled: &Scaled,
    (value, at): Placed<Value<'_>>,
) -> Result<ScaleFactor, Problem> {
    let key = scaled.key;
    let word = match value {
        DeValue::String(word) => word,
        DeValue::Integer(_) => {
            let factor = section.as_whole(key, (value, at), &scaled.range)?;
            let factor = u32::try_from(factor)
                .map_err(|_| section.problem_at(at, format!("`{key}` is out of range")))?;
            return Ok(ScaleFactor::Factor(factor));
        }
        other => return Err(section.wrong_type(key, at, "a whole number or a word", other)),
    };
    let known = ScaleFactor::WORDS;
    match known.iter().find(|(name, _)| *name == word.trim()) {
        Some((_, scale)) => Ok(*scale),
        None => {
            let names = known.map(|(name, _)| name);
            Err(section.unknown_word(at, key, word.trim(), &names))
        }
    }
}

/// The workloads of `scripts`; without it that which pgbench sends when nothing is said.
fn mixes(section: &Section<'_>) -> Result<Vec<ScriptMix>, Problem> {
    let key = "scripts";
    let Some(values) = section.one_or_many(key)? else {
        let script = ScriptName {
            name: DEFAULT_SCRIPT.to_owned(),
            weight: 1,
        };
        return Ok(vec![ScriptMix {
            name: None,
            scripts: vec![script],
        }]);
    };
    let mut mixes: Vec<ScriptMix> = Vec::new();
    for (value, at) in values {
        let mix = match value {
            DeValue::Table(_) => {
                let name = "an entry of `scripts` in [pgbench]".to_owned();
                mix(&section.as_section(key, (value, at), name)?)?
            }
            DeValue::String(_) => single(section, key, (value, at))?,
            other => {
                let wanted = "a script, or a table { name, scripts }";
                return Err(section.wrong_type(key, at, wanted, other));
            }
        };
        let same = |other: &&ScriptMix| other.scripts == mix.scripts || other.is_called_as(&mix);
        if mixes.iter().any(|other| same(&other)) {
            return Err(section.problem_at(at, format!("`{key}` has {} twice", mix.shown())));
        }
        mixes.push(mix);
    }
    Ok(mixes)
}

impl ScriptMix {
    fn is_called_as(&self, other: &Self) -> bool {
        self.name.is_some() && self.name == other.name
    }

    /// What a problem calls it.
    fn shown(&self) -> &str {
        let script = self.scripts.first().map_or("", |script| &script.name);
        self.name.as_deref().unwrap_or(script)
    }
}

/// A workload of one script.
fn single(
    section: &Section<'_>,
    key: &str,
    value: Placed<Value<'_>>,
) -> Result<ScriptMix, Problem> {
    let text = section.as_text(key, value)?;
    if text.contains('@') {
        let what = format!("\"{text}\" has a weight, but is a single workload");
        return Err(section.problem_at(value.1, what).hint(format!(
            "a mix is written {{ name = \"mix\", scripts = [\"{text}\", \"other.sql@1\"] }}"
        )));
    }
    let script = ScriptName {
        name: text.to_owned(),
        weight: 1,
    };
    Ok(ScriptMix {
        name: None,
        scripts: vec![script],
    })
}

/// A workload of several scripts.
fn mix(section: &Section<'_>) -> Result<ScriptMix, Problem> {
    section.allow(&MIX_KEYS)?;
    let (name, at) = match section.text("name")? {
        Some(named) => named,
        None => return Err(section.problem("key `name` is missing")),
    };
    syntax::name(name).map_err(|problem| section.wrap(at, problem))?;
    section.required("scripts")?;
    let texts = section.texts("scripts")?.unwrap_or_default();
    let scripts = texts
        .into_iter()
        .map(|text| weighted(section, text))
        .collect::<Result<Vec<_>, _>>()?;
    if scripts.iter().all(|script| script.weight == 0) {
        return Err(section.problem("all weights are 0: nothing would be sent"));
    }
    Ok(ScriptMix {
        name: Some(name.to_owned()),
        scripts,
    })
}

/// `select-only@3`.
fn weighted(section: &Section<'_>, (text, at): Placed<&str>) -> Result<ScriptName, Problem> {
    let Some((name, weight)) = text.rsplit_once('@') else {
        return Ok(ScriptName {
            name: text.to_owned(),
            weight: 1,
        });
    };
    match weight.trim().parse() {
        Ok(weight) if weight <= WEIGHT_MAX && !name.trim().is_empty() => Ok(ScriptName {
            name: name.trim().to_owned(),
            weight,
        }),
        _ => {
            let what = format!("\"{text}\" is not a script and its weight");
            let problem = section.problem_at(at, what);
            Err(problem.hint("write for example \"select-only@3\" or \"my.sql@1\""))
        }
    }
}
