//! How long and how exactly a study measures.

use crate::configured::configured;
use crate::excludes::{Excluded, excludes};
use crate::keys;
use crate::kinds;
use crate::part::REPETITIONS_MAX;
use crate::syntax;
use deltabench_document::{Placed, Section};
use deltabench_model::plan::{Placement, Transport};
use deltabench_model::problem::Problem;
use deltabench_model::timing::{BLOCKS, SLICE_MS, VISIT_SECONDS};
use deltabench_model::work::procedure::{READ_SECONDS, WRITE_SECONDS};

/// Data checksums of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// On for every server.
    #[default]
    On,
    /// Off for every server.
    Off,
    /// Each version's own default.
    AsShipped,
}

/// All of `[measurement]`. What is absent is as `deltabench compare` has it; shares and times are kept as
/// written, and can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Runs of each part, each with a load and a seed of its own.
    pub repetitions: u32,
    /// Most restart blocks of a cell.
    pub blocks: Option<u32>,
    /// Whether every cell gets all blocks.
    pub fixed: bool,
    /// End a cell when its interval is this narrow.
    pub precision: Option<String>,
    /// End each run after this time.
    pub budget: Option<String>,
    /// The smallest change that matters.
    pub delta: Option<String>,
    /// Seconds measured on each server in one visit.
    pub visit_seconds: Option<f64>,
    /// The same in visits to cells that write.
    pub write_seconds: Option<f64>,
    /// Warm-up of each visit, as a time.
    pub warmup: Option<String>,
    /// How long each server works without a break in each block, seconds; absent: in slices that alternate.
    pub sustained_seconds: Option<u32>,
    /// Whether servers run one at a time, each for its turns, however much memory there is.
    pub rotated: bool,
    /// The most servers that run at a time, base and placebo among them; absent: as many as fit into memory.
    pub servers_at_once: Option<u32>,
    /// The published procedure, if that is what is measured: one server at a time.
    pub procedure: Option<Procedure>,
    /// Length of a slice, ms.
    pub slice_ms: Option<u32>,
    /// Operations per second over all clients of a server (open loop).
    pub rate: Option<f64>,
    /// How the client reaches the servers.
    pub transport: Transport,
    pub checksums: Checksums,
    /// Where client and server run; absent: same core for one client, split for more.
    pub placement: Option<Placement>,
    /// Threads of the client; absent: as many as the clients need.
    pub jobs: Option<u32>,
    /// Whether probes of the core run between operations.
    pub probes: bool,
    /// Samples of wait events per second; 0: none.
    pub waits: u32,
    /// Whether counters and the one-second series are collected.
    pub counters: bool,
    /// Whether the instructions of all cells are counted after each run.
    pub count: bool,
    /// The seed of the first run.
    pub seed: Option<u64>,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            repetitions: 1,
            blocks: None,
            fixed: false,
            precision: None,
            budget: None,
            delta: None,
            visit_seconds: None,
            write_seconds: None,
            warmup: None,
            sustained_seconds: None,
            rotated: false,
            servers_at_once: None,
            procedure: None,
            slice_ms: None,
            rate: None,
            transport: Transport::default(),
            checksums: Checksums::default(),
            placement: None,
            jobs: None,
            probes: false,
            waits: 0,
            counters: true,
            count: false,
            seed: None,
        }
    }
}

/// Reads `[measurement]`.
pub(crate) fn measurement(root: &Section<'_>) -> Result<Measurement, Problem> {
    let Some(section) = root.section("measurement", "[measurement]")? else {
        return Ok(Measurement::default());
    };
    section.allow(&keys::MEASUREMENT)?;
    let fixed = section.flag("fixed")?.unwrap_or(false);
    let precision = checked(&section, "precision", syntax::percent)?;
    if let (true, Some((_, at))) = (fixed, section.value("precision")) {
        let what = "`fixed` and `precision` exclude each other: one gives every cell all blocks, the other \
                    ends a cell early";
        return Err(section.problem_at(at, what));
    }
    let transports = [
        ("socket", Transport::Socket),
        ("tcp", Transport::Tcp),
        ("tls", Transport::Tls),
    ];
    let checksums = [
        ("on", Checksums::On),
        ("off", Checksums::Off),
        ("default", Checksums::AsShipped),
    ];
    let placements = [
        ("same-core", Placement::SameCore),
        ("split", Placement::Split),
        ("free", Placement::Free),
    ];
    Ok(Measurement {
        repetitions: section
            .number("repetitions", 1..=REPETITIONS_MAX)?
            .unwrap_or(1),
        blocks: section.number(
            "blocks",
            i64::from(*BLOCKS.start())..=i64::from(*BLOCKS.end()),
        )?,
        fixed,
        precision,
        budget: checked(&section, "budget", syntax::time)?,
        delta: checked(&section, "delta", syntax::percent)?,
        sustained_seconds: sustained(root, &section)?,
        write_seconds: match residence(&section)? {
            // Of its tests, in whole seconds.
            Some(Residence::One) => None,
            _ => section.fraction("write_seconds", VISIT_SECONDS)?,
        },
        warmup: checked(&section, "warmup", syntax::time)?,
        rotated: rotated(root, &section)?,
        servers_at_once: servers_at_once(root, &section)?,
        procedure: procedure(root, &section)?,
        visit_seconds: section.fraction("visit_seconds", VISIT_SECONDS)?,
        slice_ms: section.number(
            "slice_ms",
            i64::from(*SLICE_MS.start())..=i64::from(*SLICE_MS.end()),
        )?,
        rate: section.fraction("rate", 0.1..=10e6)?,
        transport: section.word("transport", &transports)?.unwrap_or_default(),
        checksums: section.word("checksums", &checksums)?.unwrap_or_default(),
        placement: section.word("placement", &placements)?,
        jobs: section.number("jobs", 1..=1024)?,
        probes: section.flag("probes")?.unwrap_or(false),
        waits: section.number("waits", 0..=1000)?.unwrap_or(0),
        counters: section.flag("counters")?.unwrap_or(true),
        count: section.flag("count")?.unwrap_or(false),
        // Under 2^53, so that every reader of JSON sees the same number.
        seed: section.number("seed", 0..=9_007_199_254_740_991)?,
    })
}

/// How long the parts of the published procedure take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Procedure {
    /// Seconds of a test that reads.
    pub read_seconds: u32,
    /// Seconds of a test that writes.
    pub write_seconds: u32,
    /// Least seconds of vacuum, checkpoint and sleep; absent: as published.
    pub settle_seconds: Option<u32>,
    /// Seconds of each test before it counts; absent: as published.
    pub warmup_seconds: Option<u32>,
    /// Whether the tables have a primary key (`usepk = 1` of the published script).
    pub primary_key: bool,
    /// Whether the base runs twice.
    pub placebo: bool,
}

/// Seconds of a test.
const TEST_SECONDS: std::ops::RangeInclusive<i64> = 1..=86_400;

/// What the published procedure has its own of.
const NOT_IN_PROCEDURE: Excluded = Excluded {
    by: "residence = \"one\"",
    sections: &[
        ("pgbench", "its tests are those of sysbench"),
        (
            "insert",
            "the Insert Benchmark has one server at a time anyway",
        ),
        ("orders", "its tests are those of sysbench"),
        ("rocksdb", "its tests are those of sysbench"),
    ],
    keys: &[
        ("workloads", "also", "its tests are those of sysbench"),
        ("workloads", "files", "its tests are those of sysbench"),
        ("workloads", "variant", "its tests are those of sysbench"),
        (
            "measurement",
            "precision",
            "every pass is measured to its end",
        ),
        ("measurement", "sustained", "its tests have no break anyway"),
        ("measurement", "slice_ms", "its tests have no slices"),
        ("measurement", "rate", "its clients wait for answers only"),
        ("measurement", "probes", "its tests have no slices"),
        ("measurement", "waits", "its tests have no slices"),
        ("measurement", "count", "its tests are not counted"),
    ],
};

/// Words that hold in the published procedure, whatever a file has elsewhere.
const OWN_WORDS: [(&str, &str, &str); 3] = [
    ("workloads", "order", "published"),
    ("workloads", "state", "fresh"),
    ("limits", "cache", "as-is"),
];

/// What only the published procedure has.
const OF_PROCEDURE: [&str; 3] = ["settle_seconds", "placebo", "primary_key"];

/// Which servers are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Residence {
    /// One, for all of its tests: the published procedure.
    One,
    /// One after another, each for its turns of a visit.
    Rotated,
}

fn residence(section: &Section<'_>) -> Result<Option<Residence>, Problem> {
    section.word(
        "residence",
        &[("one", Residence::One), ("rotated", Residence::Rotated)],
    )
}

/// What has one server at a time anyway, or none.
const NOT_ROTATED: Excluded = Excluded {
    by: "residence = \"rotated\"",
    sections: &[
        (
            "insert",
            "the Insert Benchmark has one server at a time anyway, or all of them with `turns`",
        ),
        ("rocksdb", "its targets are in memory together"),
    ],
    keys: &[(
        "measurement",
        "sustained",
        "then one server works at a time anyway",
    )],
};

/// Whether servers run one at a time, each for its turns.
///
/// Errors: what has one server at a time anyway.
fn rotated(root: &Section<'_>, section: &Section<'_>) -> Result<bool, Problem> {
    let rotated = residence(section)? == Some(Residence::Rotated);
    if rotated {
        excludes(root, &NOT_ROTATED)?;
    }
    Ok(rotated)
}

/// What has one server at a time anyway.
const NOT_IN_GROUPS: Excluded = Excluded {
    by: "`servers_at_once`",
    sections: &[(
        "insert",
        "the Insert Benchmark has one server at a time anyway, unless [insert] has `turns`",
    )],
    keys: &[
        (
            "measurement",
            "residence",
            "`residence` has one server at a time",
        ),
        (
            "measurement",
            "sustained",
            "then one server works at a time anyway",
        ),
    ],
};

/// The most servers that run at a time.
///
/// Errors: what has one server at a time anyway.
fn servers_at_once(root: &Section<'_>, section: &Section<'_>) -> Result<Option<u32>, Problem> {
    // Fewer than two compare nothing.
    let most = section.number("servers_at_once", 2..=1000)?;
    if most.is_some() && !kinds::is_in_turns(root)? {
        excludes(root, &NOT_IN_GROUPS)?;
    }
    Ok(most)
}

/// The published procedure, if the file asks for one server at a time.
///
/// Errors: keys that mean nothing beside it, or without it; servers with the steady settings that nobody
/// asked for; an order that is drawn.
fn procedure(root: &Section<'_>, section: &Section<'_>) -> Result<Option<Procedure>, Problem> {
    if residence(section)? != Some(Residence::One) {
        for key in OF_PROCEDURE {
            if let Some((_, at)) = section.value(key) {
                return Err(section
                    .problem_at(at, format!("`{key}` is for the published procedure only"))
                    .hint("add residence = \"one\", or leave this key out"));
            }
        }
        return Ok(None);
    }
    excludes(root, &NOT_IN_PROCEDURE)?;
    configured(root)?;
    for (table, key, own) in OWN_WORDS {
        let Some(section) = root.section(table, format!("[{table}]"))? else {
            continue;
        };
        if let Some((word, at)) = section.text(key)?.filter(|(word, _)| *word != own) {
            let what = format!("`{key} = \"{word}\"` and residence = \"one\" exclude each other");
            return Err(section
                .problem_at(at, what)
                .hint(format!("write {key} = \"{own}\", or leave it out")));
        }
    }
    Ok(Some(Procedure {
        read_seconds: section
            .number("visit_seconds", TEST_SECONDS)?
            .unwrap_or(READ_SECONDS),
        write_seconds: section
            .number("write_seconds", TEST_SECONDS)?
            .unwrap_or(WRITE_SECONDS),
        settle_seconds: section.number("settle_seconds", 0..=86_400)?,
        warmup_seconds: match section.text("warmup")? {
            None => None,
            Some((text, at)) => Some(
                syntax::whole_seconds("warmup", text)
                    .map_err(|problem| section.wrap(at, problem))?,
            ),
        },
        primary_key: section.flag("primary_key")?.unwrap_or(true),
        placebo: section.flag("placebo")?.unwrap_or(true),
    }))
}

/// Keys that mean nothing where servers work without a break.
const NOT_SUSTAINED: [&str; 5] = [
    "visit_seconds",
    "write_seconds",
    "precision",
    "probes",
    "waits",
];

/// How long each server works without a break.
///
/// Errors: a time that cannot be read, keys that mean nothing beside it, servers with the steady settings
/// that nobody asked for.
fn sustained(root: &Section<'_>, section: &Section<'_>) -> Result<Option<u32>, Problem> {
    let Some((text, at)) = section.text("sustained")? else {
        return Ok(None);
    };
    let seconds = syntax::whole_seconds("sustained", text);
    let seconds = seconds.map_err(|problem| section.wrap(at, problem))?;
    for key in NOT_SUSTAINED {
        if let Some((_, at)) = section.value(key) {
            let what = format!("`{key}` and `sustained` exclude each other");
            return Err(section
                .problem_at(at, what)
                .detail(
                    "all passes are measured to their end, and have only the counters of slices",
                )
                .hint("leave one of them out"));
        }
    }
    configured(root)?;
    Ok(Some(seconds))
}

/// A text that `check` can read, kept as it is.
fn checked(
    section: &Section<'_>,
    key: &str,
    check: fn(&str, &str) -> Result<(), Problem>,
) -> Result<Option<String>, Problem> {
    let read = |(text, at): Placed<&str>| match check(key, text) {
        Ok(()) => Ok(text.to_owned()),
        Err(problem) => Err(section.wrap(at, problem)),
    };
    section.text(key)?.map(read).transpose()
}
