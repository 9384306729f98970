//! `[insert]`: the sizes of the Insert Benchmark.

use crate::configured::configured;
use crate::excludes::{Excluded, excludes};
use crate::syntax;
use deltabench_document::Section;
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::insert::{self, InsertStep, Pacing};

/// Of `[insert]`.
pub(crate) const KEYS: [&str; 13] = [
    "clients",
    "rows",
    "write_rows",
    "rates",
    "seconds",
    "steps",
    "shared_table",
    "partitions",
    "pacing",
    "settle_seconds",
    "long_transaction",
    "turns",
    "placebo",
];
/// Clients, each of which has up to four connections.
const CLIENTS: std::ops::RangeInclusive<i64> = 1..=1000;
/// Rows of one client.
pub(crate) const ROWS: std::ops::RangeInclusive<i64> = 1000..=100_000_000_000;
/// Rows of one client in the two steps that write.
const WRITE_ROWS: std::ops::RangeInclusive<i64> = 500..=100_000_000_000;
/// Background rows per second of one client.
const RATES: std::ops::RangeInclusive<i64> = 1..=1_000_000;
/// Partitions of a table.
const PARTITIONS: std::ops::RangeInclusive<i64> = 0..=1000;
/// Turns of a step.
const TURNS: std::ops::RangeInclusive<i64> = 0..=1000;
/// Seconds of a step of queries.
const SECONDS: std::ops::RangeInclusive<i64> = 1..=604_800;

/// All of `[insert]` but the rows, which are an axis of parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    pub clients: u32,
    /// Rows that each client inserts in `l.i1` and `l.i2`.
    pub write_rows: u64,
    /// Seconds of each step of queries.
    pub query_seconds: u32,
    /// The steps, in order.
    pub steps: Vec<InsertStep>,
    /// Whether all clients share one table.
    pub shared_table: bool,
    /// Ranges of the key that each table is cut into; 0: none.
    pub partitions: u32,
    /// How background rates are kept.
    pub pacing: Pacing,
    /// Least seconds of settling; absent: as published.
    pub settle_seconds: Option<u32>,
    /// A session that holds a transaction open so long, again and again; absent: none.
    pub long_transaction_seconds: Option<u32>,
    /// Turns that each step is cut into, the other servers frozen meanwhile; 0: one server runs at a time.
    pub turns: u32,
    /// Whether the base runs twice.
    pub placebo: bool,
}

/// Reads `[insert]`; `None` when the file has none.
pub(crate) fn insert(root: &Section<'_>) -> Result<Option<Insert>, Problem> {
    let Some(section) = root.section("insert", "[insert]")? else {
        return Ok(None);
    };
    section.allow(&KEYS)?;
    excludes(root, &EXCLUDED)?;
    configured(root)?;
    let long_transaction_seconds = match section.text("long_transaction")? {
        None => None,
        Some((text, at)) => Some(
            syntax::whole_seconds("long_transaction", text)
                .map_err(|problem| section.wrap(at, problem))?,
        ),
    };
    let pacings = [Pacing::Spread, Pacing::Burst].map(|pacing| (pacing.word(), pacing));
    Ok(Some(Insert {
        clients: section.number("clients", CLIENTS)?.unwrap_or(1),
        write_rows: section
            .number("write_rows", WRITE_ROWS)?
            .unwrap_or(insert::WRITE_ROWS),
        query_seconds: section
            .number("seconds", SECONDS)?
            .unwrap_or(insert::QUERY_SECONDS),
        steps: steps(&section)?,
        shared_table: section.flag("shared_table")?.unwrap_or(false),
        partitions: section.number("partitions", PARTITIONS)?.unwrap_or(0),
        pacing: section.word("pacing", &pacings)?.unwrap_or_default(),
        settle_seconds: section.number("settle_seconds", 0..=86_400)?,
        long_transaction_seconds,
        turns: section.number("turns", TURNS)?.unwrap_or(0),
        placebo: section.flag("placebo")?.unwrap_or(true),
    }))
}

/// Whether its servers have turns, and so are in memory together.
pub(crate) fn is_in_turns(root: &Section<'_>) -> Result<bool, Problem> {
    let Some(section) = root.section("insert", "[insert]")? else {
        return Ok(false);
    };
    let turns: Option<u32> = section.number("turns", TURNS)?;
    Ok(turns.is_some_and(|turns| turns > 0))
}

fn steps(section: &Section<'_>) -> Result<Vec<InsertStep>, Problem> {
    let rates = section.numbers("rates", RATES)?;
    let Some(named) = section.list_of_texts("steps")? else {
        let rates = rates.unwrap_or_else(|| insert::RATES.to_vec());
        return Ok(InsertStep::published(&rates));
    };
    if let (Some(_), Some((_, at))) = (rates, section.value("rates")) {
        return Err(section
            .problem_at(
                at,
                "`rates` and `steps` exclude each other: steps have their rates",
            )
            .hint("write for example steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]"));
    }
    if let ([], Some((_, at))) = (named.as_slice(), section.value("steps")) {
        return Err(section.problem_at(at, "`steps` is an empty list"));
    }
    let read = |(name, at): (&str, usize)| match InsertStep::from_name(name) {
        Some(step) => Ok(step),
        None => Err(unknown_step(section, name, at)),
    };
    named.into_iter().map(read).collect()
}

fn unknown_step(section: &Section<'_>, name: &str, at: usize) -> Problem {
    let known: Vec<String> = InsertStep::published(&[100, 500, 1000])
        .iter()
        .map(|step| step.name())
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let problem = Problem::new(format!("unknown step \"{name}\"")).detail(format!(
        "known: {}; queries at other rates too",
        known.join(", ")
    ));
    section.wrap(
        at,
        match nearest(name, known.iter().copied()) {
            Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
            None => problem,
        },
    )
}

const STEPS_END: &str = "a step ends after its rows: leave this key out";

/// What has no meaning beside the Insert Benchmark.
const EXCLUDED: Excluded = Excluded {
    by: "[insert]",
    sections: &[
        (
            "workloads",
            "its steps are the workloads: leave [workloads] out",
        ),
        ("pgbench", "write two experiments"),
        (
            "data",
            "its sizes are `rows` and `write_rows` of [insert]: leave [data] out",
        ),
    ],
    keys: &[
        (
            "measurement",
            "precision",
            "every pass is measured: leave this key out",
        ),
        ("measurement", "visit_seconds", STEPS_END),
        ("measurement", "write_seconds", STEPS_END),
        ("measurement", "warmup", STEPS_END),
        ("measurement", "sustained", STEPS_END),
        ("measurement", "slice_ms", STEPS_END),
        (
            "measurement",
            "rate",
            "background rates are `rates` of [insert]",
        ),
        ("measurement", "probes", STEPS_END),
        ("measurement", "waits", STEPS_END),
        (
            "limits",
            "cache",
            "a pass continues with what the earlier steps left",
        ),
    ],
};
