//! The tables of an export. Published: columns are added at the end, never renamed.

use deltabench_kinds::TABLES;
use deltabench_store::export::{
    BLOCK, CELL, ExportColumn, ExportTable, RUN, SERVER, UNIT, View, integer, real, text,
};

/// Name and version, in the table `export`. A column that is added leaves the version; one that changes its
/// meaning raises it.
pub const FORMAT: (&str, u32) = ("deltabench.export", 1);

const CANDIDATE: ExportColumn = integer("candidate", "the server that is compared with the base");
const METRIC: ExportColumn = text("metric", "key of the metric");

pub const EXPORT: ExportTable = ExportTable {
    name: "export",
    meaning: "What wrote this; one row.",
    columns: &[
        text("format", "always `deltabench.export`"),
        integer("version", "version of these tables"),
        text(
            "deltabench_version",
            "version of deltabench that analysed and wrote",
        ),
    ],
};

pub const RUNS: ExportTable = ExportTable {
    name: "runs",
    meaning: "A row for each run.",
    columns: &[
        RUN,
        text("state", "`running`, `finished`, `interrupted` or `failed`"),
        integer("started_unix_ms", "start, milliseconds since 1970"),
        text(
            "seed",
            "the seed, as text: it may be larger than any integer of SQLite",
        ),
        real(
            "delta",
            "the smallest change that matters, as a share; each cell has its own in `verdicts`",
        ),
        text("stopping", "`fixed`, `sequential` or `precision`"),
        integer("blocks_planned", "most restart blocks of a cell"),
        integer("tables", "tables of the data set"),
        integer("rows", "rows of each table"),
        text("command", "the command line"),
        text("host", "the host as observed, JSON"),
        text(
            "conditions",
            "what the machine allowed (huge pages and others), JSON",
        ),
        integer("host_ok", "1 if the host could be trusted, else 0"),
        integer("exit_code", "what `deltabench report` exits with"),
        text(
            "withdrawn",
            "why the whole run is withdrawn; null if it is not",
        ),
    ],
};

pub const SERVERS: ExportTable = ExportTable {
    name: "servers",
    meaning: "A row for each server of a run: the base is number 0.",
    columns: &[
        RUN,
        SERVER,
        text("role", "`base`, `placebo` or `candidate`"),
        text(
            "name",
            "its name in reports: `base`, `placebo` or the candidate's target",
        ),
        text("asked", "the target as requested"),
        text("resolved", "what deltabench resolved it to"),
        text("version", "version of PostgreSQL"),
        integer("version_num", "the same as a number: 180006"),
        text("compiler", "compiler, as the server names it"),
        text("cflags", "flags of the compiler"),
        text("configure", "the configure line"),
        text("binary_sha256", "SHA-256 of bin/postgres"),
        integer(
            "burn_ns",
            "CPU added to every message on purpose; null for an unchanged server",
        ),
    ],
};

pub const CELLS: ExportTable = ExportTable {
    name: "cells",
    meaning: "A row for each cell: a workload at a number of clients.",
    columns: &[
        RUN,
        CELL,
        text("workload", "name of the workload"),
        text("workload_group", "`point`, `range`, `range-agg` or `write`"),
        integer("clients", "concurrent connections for each server"),
        text("state", "state of its tables: `fresh` or `aged`"),
        real(
            "rate",
            "operations per second that were scheduled; null for a closed loop",
        ),
        integer("writes", "1 if it changes data, else 0"),
        integer("statements_per_operation", "SQL statements of an operation"),
        real(
            "published_per_operation",
            "published units of an operation: throughput times this is the published figure",
        ),
        text("published_unit", "the published unit"),
        text(
            "withdrawn",
            "why the cell or its whole run is withdrawn; null if it is not",
        ),
    ],
};

pub const VERDICTS: ExportTable = ExportTable {
    name: "verdicts",
    meaning: "A row for each cell and candidate, the placebo included: what was found.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        text(
            "verdict",
            "`regression`, `improvement`, `no-change`, `inconclusive` or `unfit`, among all cells",
        ),
        text("alone", "what it would be if this were the only cell"),
        text("reason", "why, in words"),
        real("delta", "the smallest change that matters here, as a share"),
        real("p", "two-sided p of \"throughput is equal\""),
        real("p_holm", "the same adjusted for the gate"),
        real("p_bh", "the same adjusted for the listing"),
        integer("blocks", "blocks that count"),
        integer("rounds", "rounds that count"),
        integer("void_rounds", "rounds with a void slice, left out"),
        integer("disturbed_rounds", "rounds that other load disturbed"),
        integer(
            "contended",
            "1 if more than half were disturbed in the blocks behind throughput, else 0",
        ),
        text(
            "drifting",
            "why a server never became steady; null if all did",
        ),
        text(
            "confirmation",
            "in another run: `recurred`, `did-not-recur`, `open`; null without one",
        ),
        integer("base_errors", "operations of the base that failed"),
        integer(
            "candidate_errors",
            "operations of the candidate that failed",
        ),
        text(
            "explanation",
            "the costs that moved too, in words; null if none moved",
        ),
        real(
            "host_slowdown",
            "time per operation in slow blocks over that in fast ones, on the servers outside of the pair",
        ),
        real(
            "host_speed_p",
            "two-sided p of \"throughput's ratio does not go with that\", of this cell alone",
        ),
    ],
};

pub const COMPARISONS: ExportTable = ExportTable {
    name: "comparisons",
    meaning: "A row for each cell, candidate (the placebo included) and metric: the relative values.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        METRIC,
        UNIT,
        text("better", "`higher` or `lower`"),
        real(
            "base",
            "value of the base: the geometric mean of its two copies, if there are two controls",
        ),
        real("candidate_value", "value of the candidate"),
        real(
            "ratio",
            "candidate / base; the paired estimate, so only near the quotient of the two",
        ),
        real(
            "ci95_low",
            "low end of its 95 % interval; null with fewer than two blocks",
        ),
        real("ci95_high", "high end"),
        real("ci90_low", "low end of its 90 % interval"),
        real("ci90_high", "high end"),
        text(
            "verdict",
            "verdict of this metric alone; null if it is not judged",
        ),
        real(
            "another_hour_ci95_low",
            "low end of what another hour would say of `ratio`, 95 %; null where nothing is known of it",
        ),
        real("another_hour_ci95_high", "high end"),
        text(
            "another_hour_from",
            "what that is known from: `sessions`, `pair`, `host`, or `prior` if it is an assumption alone; \
             null where nothing is known",
        ),
        integer(
            "another_hour_assumed",
            "1 if an assumption takes part, else 0; null where nothing is known",
        ),
        real(
            "difference_us",
            "microseconds that an operation takes more on the candidate; of its client's time for \
             throughput, where an open loop has null",
        ),
        real(
            "difference_us_ci95_low",
            "low end of its 95 % interval; null with fewer than two blocks",
        ),
        real("difference_us_ci95_high", "high end"),
    ],
};

pub const COSTS: ExportTable = ExportTable {
    name: "costs",
    meaning: "A row for each cell, candidate (the placebo included) and cost that both sides have.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        text("metric", "key of the metric, or `wait:TYPE:EVENT`"),
        UNIT,
        real("base", "value of the base"),
        real("candidate_value", "value of the candidate"),
        real("difference", "candidate - base, mean over the blocks"),
        real("difference_low", "low end of its 95 % interval"),
        real("difference_high", "high end"),
        real(
            "ratio",
            "candidate / base; null unless both are above 0 in every block",
        ),
        real("ci95_low", "low end of its 95 % interval"),
        real("ci95_high", "high end"),
        integer("blocks", "blocks in which both sides have it"),
        real(
            "surprise",
            "its move as a multiple of the placebo's typical move; null if it did not move",
        ),
        real(
            "p",
            "p of \"it did not move\", adjusted over the costs of the cell; null if it did not move",
        ),
    ],
};

pub const BLOCKS: ExportTable = ExportTable {
    name: "blocks",
    meaning: "A row for each cell, candidate, metric and block behind an interval: the sample.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        METRIC,
        integer(
            "position",
            "from 0, in order of blocks; with looks only the blocks of the decision are here",
        ),
        real("log_ratio", "ln(candidate / base)"),
    ],
};

pub const BLOCK_RATES: ExportTable = ExportTable {
    name: "block_rates",
    meaning: "A row for each cell, candidate and block: throughput of both sides.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        BLOCK,
        real("base", "operations per second of the base"),
        real("candidate_value", "operations per second of the candidate"),
    ],
};

pub const ROUNDS: ExportTable = ExportTable {
    name: "rounds",
    meaning: "A row for each cell, candidate and round that counts.",
    columns: &[
        RUN,
        CELL,
        CANDIDATE,
        BLOCK,
        integer("round", "round in the visit, from 0"),
        real("throughput_log_ratio", "ln(candidate / base) of throughput"),
        real(
            "server_cpu_log_ratio",
            "the same of CPU per operation; null where the host cannot tell",
        ),
    ],
};

pub const SLICES: ExportTable = ExportTable {
    name: "slices",
    meaning: "A row for each slice, as measured: one server doing one piece of work.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        integer(
            "round",
            "round in the visit, from 0; every server has one slice in it, with the same parameters",
        ),
        integer("position", "position in the round, from 0"),
        SERVER,
        integer("connection", "connection set in the visit, from 0"),
        integer("started_ns", "start, nanoseconds since 1970"),
        integer("duration_ns", "first send to last answer"),
        integer("operations", "operations that succeeded"),
        integer("failed", "operations that ended with a server error"),
        integer("rows", "rows that servers returned"),
        integer("server_cpu_ns", "CPU of all processes of the server"),
        integer(
            "run_queue_wait_ns",
            "time those processes waited for a core",
        ),
        integer("client_cpu_ns", "CPU of the client's threads"),
        integer("foreign_cpu_ns", "CPU used on the host by others"),
        integer("steal_ns", "time stolen by the hypervisor"),
        integer("idle_cpu_ns", "CPU of the run's other servers"),
        integer(
            "background_cpu_ns",
            "CPU of the server between its slice before and this one",
        ),
        integer(
            "probe_ns",
            "what a probe of the core took between operations of the slice; null where there were none",
        ),
        integer(
            "probing_ns",
            "CPU of all probes, which is in no other duration or CPU",
        ),
        integer("switches", "times a process of the server got a core"),
        integer(
            "cpu_pressure_ns",
            "time in which some task of the host waited for a core",
        ),
        integer(
            "schedule_lag_ns",
            "open loop: longest delay of a send that the client caused",
        ),
        text(
            "void",
            "why it does not count: `server-lost`, `stalled`, `nothing-done`; null for a good one",
        ),
        real(
            "latency_us_p50",
            "median latency, microseconds; null without operations",
        ),
        real("latency_us_p99", "99th percentile"),
    ],
};

pub const SLICE_ERRORS: ExportTable = ExportTable {
    name: "slice_errors",
    meaning: "A row for each slice and SQLSTATE that servers answered with.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        integer("round", "round in the visit"),
        integer("position", "position in the round"),
        SERVER,
        text("sqlstate", "five characters"),
        integer("count", "how often it occurred"),
        text("first_message", "the first message seen with it"),
    ],
};

pub const COUNTERS: ExportTable = ExportTable {
    name: "counters",
    meaning: "A row for each visit, server and counter: its change, or the value of a gauge at the \
              end. A value that deltabench could not read has no row.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        SERVER,
        integer(
            "operations",
            "operations of the visit's connections, warm-up included",
        ),
        text(
            "counter",
            "its key, or `wait:TYPE:EVENT` in nanoseconds; `metrics.counter` names the metric made of it",
        ),
        real("value", "as counted"),
    ],
};

pub const SAMPLES: ExportTable = ExportTable {
    name: "samples",
    meaning: "A row for each second and series of the host, or of a server.",
    columns: &[
        RUN,
        integer("at_ns", "when, nanoseconds since 1970"),
        integer(
            "over_ns",
            "nanoseconds since the previous sample; rates refer to them",
        ),
        text("series", "key of the series"),
        integer("server", "the server; null for the host"),
        real("value", "rate or size, in the unit of the series"),
    ],
};

pub const MARKS: ExportTable = ExportTable {
    name: "marks",
    meaning: "A row for each event at a moment.",
    columns: &[
        RUN,
        integer("at_ns", "when, nanoseconds since 1970"),
        integer("server", "the server it happened on; null for the run"),
        text(
            "kind",
            "`checkpoint`, `autovacuum`, `autoanalyze` or `block`",
        ),
        text("text", "the facts, short"),
    ],
};

pub const FINDINGS: ExportTable = ExportTable {
    name: "findings",
    meaning: "A row for each finding: confounders, doubts, facts of the host.",
    columns: &[
        RUN,
        text("kind", "stable key"),
        text("severity", "`note`, `confounder` or `unfit`"),
        text("text", "the facts, in a sentence"),
    ],
};

pub const SETTINGS: ExportTable = ExportTable {
    name: "settings",
    meaning: "A row for each server and setting, as read back from the running server.",
    columns: &[
        RUN,
        SERVER,
        text("name", "name of the setting"),
        text("value", "value in use, in `unit`s"),
        text("unit", "unit; null for settings without one"),
        text("boot_value", "the value compiled in"),
        text("source", "where the value came from"),
    ],
};

pub const WITHDRAWALS: ExportTable = ExportTable {
    name: "withdrawals",
    meaning: "A row for each withdrawal of a run or a cell.",
    columns: &[
        RUN,
        integer("cell", "the cell; null for the whole run"),
        text("reason", "why"),
        integer("at_unix_ms", "when, milliseconds since 1970"),
    ],
};

pub const METRICS: ExportTable = ExportTable {
    name: "metrics",
    meaning: "A row for each metric that this version knows.",
    columns: &[
        text("metric", "key"),
        text("name", "column head"),
        UNIT,
        text("better", "`higher`, `lower`; null where neither is"),
        text(
            "basis",
            "`slices`, `slice-ends`, `requests`, `visit` or `gauge`",
        ),
        text(
            "counter",
            "key of the raw counter; null for fields of the slices",
        ),
        real(
            "scale",
            "value = counter / operations x this; for a gauge, counter x this",
        ),
        text("source", "what is read"),
        text("versions", "PostgreSQL versions or hosts that have it"),
        text("meaning", "what it says"),
    ],
};

/// Every table, in the order of the published page.
pub fn tables() -> Vec<ExportTable> {
    let measured = [
        EXPORT,
        RUNS,
        SERVERS,
        CELLS,
        VERDICTS,
        COMPARISONS,
        COSTS,
        BLOCKS,
        BLOCK_RATES,
        ROUNDS,
        SLICES,
        SLICE_ERRORS,
        COUNTERS,
    ];
    let beside = [SAMPLES, MARKS, FINDINGS, SETTINGS, WITHDRAWALS, METRICS];
    [&measured[..], &TABLES, &beside].concat()
}

/// Views over them; only in an SQLite file.
pub const VIEWS: [View; 2] = [
    View {
        name: "results",
        meaning: "`comparisons` with the names of cell and candidate and with the verdict, without the \
                  placebo.",
        sql: "\
select c.run, l.workload, l.workload_group, l.clients, l.state, s.name as candidate,
       c.metric, c.unit, c.better, c.base, c.candidate_value, c.ratio, c.ci95_low, c.ci95_high,
       v.verdict, v.reason, v.delta, v.p_bh, v.blocks, l.withdrawn
  from comparisons c
  join cells l on l.run = c.run and l.cell = c.cell
  join servers s on s.run = c.run and s.server = c.candidate
  join verdicts v on v.run = c.run and v.cell = c.cell and v.candidate = c.candidate
 where s.role = 'candidate'",
    },
    View {
        name: "visit_costs",
        meaning: "What each operation cost in each visit: `counters` divided as `metrics` says. Only the \
                  metrics of basis `visit` and `gauge`.",
        sql: "\
select c.run, c.cell, c.block, c.server, m.metric, m.unit,
       case when m.basis = 'gauge' then c.value else c.value / c.operations end * m.scale as value
  from counters c
  join metrics m on m.counter = c.counter
 where m.basis = 'gauge' or (m.basis = 'visit' and c.operations > 0)",
    },
];
