//! Every number that decides something.
//!
//! All are fixed before data are seen; changing one changes verdicts, so it belongs in the changelog under
//! "Measurement".

/// Blocks that any verdict other than inconclusive takes.
///
/// With fewer, t is so wide that only gross changes pass, and the interval rests on an sd that is known to
/// no better than −40…+150 % (chi-square, 5 degrees of freedom).
/// Source: docs/sources/statistics.md#blocks.
pub const MIN_BLOCKS: usize = 6;

/// Counted rounds that a block needs to give a value.
///
/// With one or two, a single disturbed slice is the block's value and nothing can tell.
pub const MIN_ROUNDS: usize = 3;

/// Counted rounds that a block of whole steps needs: such a step is long and is measured once in a pass.
///
/// What a disturbed pass costs is in the spread over passes, since nothing is left out.
pub const MIN_ROUNDS_OF_STEPS: usize = 1;

/// Blocks of the block cache that an operation takes may differ by this share before it is other work.
///
/// Keys and data are the same, and trees that were built alike differ by far less from block to block; a
/// version with another layout of indexes or filters differs by tens of percent.
pub const WORK_TOLERANCE: f64 = 0.02;

/// Sizes of trees that are read may differ by this share before it is said.
///
/// The debt of compactions differs by a few percent between two databases of one version.
pub const LSM_TOLERANCE: f64 = 0.1;

/// Files in level 0 that two trees may differ by, in the mean over blocks, before it is said.
///
/// Each is a file more to look into; one comes and goes with the moment at which the step ends.
pub const LSM_FILES: f64 = 1.0;

/// Share of a block's round log-ratios that is cut from each end before the mean.
///
/// A burst of other load hits a few rounds; cut, it costs little, and without bursts nearly nothing is lost.
/// Source: docs/sources/measuring-on-linux.md#restarts-and-connections (sd between restarts 1.05 %
///         against 1.21 % with plain means). It was chosen after seeing those data and is fixed for all
///         later ones.
pub const TRIM: f64 = 0.2;

/// Level of the interval for "different": two-sided, so each direction is wrongly called in at most 2.5 %.
pub const LEVEL_DIFFERENT: f64 = 0.95;

/// Level of the interval for "equal within ±δ": two one-sided tests at 5 % each (Schuirmann 1987).
pub const LEVEL_EQUIVALENT: f64 = 0.90;

/// A placebo is suspect below this p.
///
/// Source: docs/sources/statistics.md#placebo.
pub const PLACEBO_P: f64 = 0.01;

/// Chance that any cell of a clean run is called unfit by its placebo (Holm over the cells).
///
/// Without it a clean run of 32 cells had such a cell in a quarter of all runs.
pub const PLACEBO_FALSE: f64 = 0.05;

/// A suspect placebo makes its cell unfit only if it is off by more than this share of δ.
///
/// A quiet host resolves placebo offsets of 0.1 %; they are real (data placement of that copy) and harmless
/// to a question about 3 %. An offset of a third of δ could carry an estimate from "well inside" to the
/// edge.
pub const PLACEBO_RELEVANCE: f64 = 1.0 / 3.0;

/// Error that all looks together may spend on "different", two-sided.
///
/// Spent as [`deltabench_stats::spending::obrien_fleming`] says. Source:
/// docs/sources/statistics.md#looking-early.
pub const ALPHA: f64 = 0.05;

/// Error that all looks together may spend on "equal within ±δ".
///
/// Below 5 % because t at a few blocks spends about a fiftieth more than the normal theory behind the levels;
/// with it, of changes by exactly δ at most 5 % are called no change (simulated in tests/it/pipeline.rs).
pub const ALPHA_EQUIVALENT: f64 = 0.045;

/// Error of "equal within ±δ", one-sided, of the fresh blocks that follow a detection.
///
/// It comes on top of what the looks spend: those runs that go on without a detection spend nearly all of
/// theirs. With 5 % here, up to 9 % of the changes by exactly δ would be called no change, with this at most
/// 5 % are (simulated in tests/it/pipeline.rs). A change that is found and is clearly smaller than δ passes.
pub const ALPHA_FRESH: f64 = 0.01;

/// Exponent of the power family by which the error of "equal" is spent.
///
/// Without spending, four looks at CI90 call up to 10 % of the changes by exactly δ equal. Square: quiet
/// cells may still stop at the first look (sd up to δ/3), and noisy ones keep nearly all for the last.
pub const EQUIVALENT_EXPONENT: f64 = 2.0;

/// Looks are about this share of the largest number of blocks apart.
pub const LOOK_EVERY: f64 = 0.25;

/// Fresh blocks that confirm a difference found before the last look.
pub const CONFIRM_BLOCKS: usize = 6;

/// One-sided p that the fresh blocks must reach, in the direction found.
///
/// So a difference recurs exactly if the 95 % interval of the fresh blocks, which is the one that is printed,
/// leaves out zero on the same side.
pub const CONFIRM_P: f64 = 0.025;

/// Fresh blocks that are enough where a difference is clear.
pub const CLEAR_BLOCKS: usize = 2;

/// A difference is clear where the mean of all blocks, those of the look and the first fresh ones, is so many
/// of its standard errors from zero.
///
/// What a look selects is a small sd as much as a large mean, so a few errors more than the look asks for
/// would not do: docs/decisions/0070-what-is-clear-ends-early.md has what this number leaves right.
pub const CLEAR_ERRORS: f64 = 12.0;

/// Level of Student's interval where measuring stopped after few blocks, because a difference was clear or
/// the interval already narrow enough: the truth is in it 95 times in 100.
///
/// Source: docs/decisions/0070-what-is-clear-ends-early.md.
pub const EARLY_LEVEL: f64 = 0.98;

/// One-sided p that a second run on a fresh load must reach for a difference to have recurred: the share of
/// false recurrences, whatever selected the first run.
pub const RECUR_P: f64 = 0.05;

/// A look stops at a difference only if the fresh blocks would confirm it with this probability, at the size
/// found and the sd of [`SD_LEVEL`]; else the cell is measured on to the next look.
///
/// Six fresh blocks confirm a difference that just crossed the second of four looks in half of all cases, the
/// third in a fifth: stopping there would throw it away. At the last look all blocks count and nothing needs
/// confirming.
pub const CONFIRM_POWER: f64 = 0.9;

/// An interval that allows for the look which ended its cell is said to, from so many times the plain one on.
pub const WIDER_TOLD: f64 = 1.1;

/// A change that the last look has found is said to be too large on average, if what is left without that is
/// less than this share of it.
pub const OVERSTATED_TOLD: f64 = 0.9;

/// What is left of such a change is called hardly anything below this share, which rounds to 0.0 %.
pub const NOTHING_LEFT: f64 = 0.0005;

/// Blocks from which on measuring stops at a width at [`PRECISION_LEVEL`]; from [`MIN_BLOCKS`] on it stops at
/// [`EARLY_LEVEL`].
///
/// Source: docs/sources/statistics.md#looking-early.
pub const PRECISION_MIN_BLOCKS: usize = 8;

/// Level of Student's interval that holds the truth 95 times in 100 after stopping at a width: it stops
/// where the sd happens to look small.
///
/// Source: docs/sources/statistics.md#looking-early.
pub const PRECISION_LEVEL: f64 = 0.97;

/// False regressions and improvements tolerated among those listed (Benjamini-Hochberg), on average.
pub const LISTED_FALSE: f64 = 0.05;

/// Chance of any false failure of the gate (Holm).
pub const GATE_FALSE: f64 = 0.05;

/// Rounds of fewer nanoseconds are judged together with the next ones of their visit: two or three of three
/// slices of 20 or 10 ms, and one of two slices of 40 ms.
pub const DISTURBED_WINDOW_NS: u64 = 75_000_000;

/// So many rounds are judged together at most: one disturbance must not take a whole visit of short ones.
pub const ROUNDS_TOGETHER: usize = 8;

/// Steal above this share of a round's duration disturbs it.
///
/// `/proc/stat` counts in ticks of 10 ms: in a round below 500 ms one tick is above it. So 1 % of steal
/// voids about a tenth of the rounds of 100 ms, and 5 % half of them.
/// Source: docs/sources/statistics.md#disturbed-rounds.
pub const STEAL_SHARE: f64 = 0.02;

/// Foreign CPU above this share of a core, beyond [`FOREIGN_FLOOR_NS`], disturbs a round.
///
/// Source: docs/sources/statistics.md#disturbed-rounds.
pub const FOREIGN_SHARE: f64 = 0.10;

/// Foreign CPU of a round that the 10 ms tick can feign: busy time is a sum of rounded counters, and
/// negative remainders are cut to zero.
///
/// With it, of quiet rounds of three slices of 40 ms 0.01 % are voided, with half a core of foreign load 99
/// %, with a quarter of a core half of them, with a tenth 2 % (simulated). Less than that cannot be seen. Six
/// slices of 20 ms, judged together, are cut at zero more often: somewhat more of them are left out.
pub const FOREIGN_FLOOR_NS: u64 = 20_000_000;

/// CPU of servers that should be idle above this share of a core disturbs a round, if it is also above
/// [`IDLE_FLOOR_NS`].
///
/// Source: docs/sources/statistics.md#disturbed-rounds.
pub const IDLE_SHARE: f64 = 0.005;

/// A background process that wakes up costs some tens of microseconds; a round with a few of these is quiet.
pub const IDLE_FLOOR_NS: u64 = 1_000_000;

/// Below this p of "it meets all servers alike" no round is left out because a server was kept off its core:
/// something about a server might keep it off.
///
/// So six times on one server and never on another is enough. Where all are met alike 3 to 9 % of blocks keep
/// all their rounds by chance (docs/measuring.md#which-rounds-count), which only widens the interval.
pub const KEPT_OFF_UNLIKE: f64 = 0.05;

/// Share of a slice in which a server that could run was kept off the core by something else.
pub const PREEMPTED_SHARE: f64 = 0.03;

/// Time per operation in slow blocks over that in fast ones from which the host is said not to be equally
/// fast.
///
/// Restarts alone move a server by about 1 %; a busy hardware thread beside the core costs 30 to 60 %
/// (docs/measuring.md).
pub const SPEED_RANGE: f64 = 1.1;

/// The same of a random access to memory.
pub const MEMORY_RANGE: f64 = 1.25;

/// Blocks on either side of the middle between fast and slow before a difference is said to go with the
/// speed: what one slow block shows is its own luck.
pub const SPEED_SIDE: usize = 3;

/// Chance that any difference is said to go with the host's speed that does not (Holm); for "another hour"
/// that of each cell by itself.
pub const SPEED_FALSE: f64 = 0.05;

/// A difference that goes with the host's speed is told if it moves by more than this share of δ, as with
/// [`PLACEBO_RELEVANCE`].
pub const SPEED_RELEVANCE: f64 = 1.0 / 3.0;

/// Share of a cell's rounds above which what disturbs them is the host as it is: then they count, unless the
/// interval is wider without them (docs/decisions/0069-half-of-the-rounds-is-no-cliff.md).
///
/// Source: docs/sources/statistics.md#disturbed-rounds.
pub const CONTENDED_SHARE: f64 = 0.5;

/// The δ that noise may choose from.
///
/// Not 1 %: what no number of restarts averages - code layout, another session on a virtual machine - moved
/// cells by 1 to 1.7 points here, so a verdict on 1 % is for those who ask for it (`--delta 1%`).
pub const DELTA_LADDER: [f64; 4] = [0.02, 0.03, 0.05, 0.10];

/// Probability that an unchanged cell is shown to be within the δ that noise chose, by the last look.
pub const DELTA_POWER: f64 = 0.8;

/// Rounds, less one for each block, from which on probes of the core say how a cost goes with its speed.
pub const PROBED_ROUNDS: f64 = 12.0;

/// Robust standard deviations beyond which a round tells that slope no more than one at their end.
pub const PROBED_FAR: f64 = 3.0;

/// Most that ln of a cost rises with ln of a probe. Up to 2.2 were seen, of reads of many rows.
pub const PROBE_SLOPE_MAX: f64 = 3.0;

/// Cells from which on the mean of their probes is tested.
pub const PROBED_CELLS: usize = 6;

/// Probability that servers beside which probes take equally long are said to differ, in any cell of a run.
pub const PROBES_FALSE: f64 = 0.01;

/// The sd of a candidate's block values with a second control, as a multiple of the placebo's: the root of
/// (1 + 1/2) / (1 + 1), since a mean of two copies scatters by half of what one does.
pub const SECOND_CONTROL_SD: f64 = 0.866;

/// Blocks that a δ from noise counts on at most where no looks are planned: a plan that ends at a width may
/// have many more, and mostly will not take them.
pub const BLOCKS_OF_NOISE: u32 = 24;

/// Half-widths of the interval that is asked for which resolve a δ: 0.87 for the equivalence interval, and
/// 0.58 (1.28 standard errors) for where an unchanged estimate lies in four cases of five.
pub const RESOLVED_WIDTHS: f64 = 1.45;

/// Decisions on how much to measure take the sd that the true one exceeds with one less this probability.
///
/// Six blocks know their sd to −40…+150 %, and what looks settled is often what looks quieter than it is.
pub const SD_LEVEL: f64 = 0.8;

/// Level of the upper limit of sd behind the longer time of a forecast.
pub const FORECAST_SD_LEVEL: f64 = 0.9;

/// Blocks beyond which a forecast is not worth a number.
pub const FORECAST_LIMIT: usize = 1000;

/// The same as a multiple of the blocks that a cell has: nobody measures ten times as long, and the sd of a
/// few blocks does not say how long that would take.
pub const FORECAST_TIMES: usize = 10;

/// Share by which the size of the relations may differ before it is a finding.
pub const SIZE_TOLERANCE: f64 = 0.01;

/// Bytes below which a difference of size is none: a workload without rows has a few pages, or has not.
pub const SIZE_LEAST: u64 = 1 << 17;

/// How far the two sides of a crosscheck may be apart in speed, as a share.
///
/// Not less, because the server does not do quite the same for both: libpq asks for a description of the
/// rows with every execution and sends parameters as text. That is 0.4 to 1.5 us for each short
/// statement, which without the client takes 10 to 25 (postgres:18 on two cores, one of them shared).
pub const CROSSCHECK_MARGIN: f64 = 0.10;

/// How far calls and transactions for each operation may be apart in a crosscheck.
///
/// They are exact, but for the statistics collector of versions before 15, which may lose a message.
pub const CROSSCHECK_COUNTS: f64 = 0.01;

/// Level of the interval that must hold 0 when rows are compared in a crosscheck.
///
/// There are some seventy comparisons in a run: less than one run in a thousand finds a difference where
/// there is none.
pub const CROSSCHECK_ROWS_LEVEL: f64 = 0.99999;

/// Difference of rows for each call that is none, as a share: a range cut off at the table's end.
pub const CROSSCHECK_ROWS: f64 = 0.002;

/// Rows in all that say nothing: two runs of a few operations may both miss the same number by chance.
pub const CROSSCHECK_ROWS_FEW: f64 = 10.0;

/// How far plans for each call may be apart in a crosscheck.
pub const CROSSCHECK_PLANS: f64 = 0.1;

/// The most of pgbench's client CPU that ours may take: the goal.
pub const CLIENT_CPU_GOAL: f64 = 0.75;

/// One server after the other is said to call them different below this p, as deltabench is at
/// [`LEVEL_DIFFERENT`].
pub const PRACTICE_P: f64 = 0.05;

/// The share beyond which it is said to call them different where only sizes are looked at.
pub const PRACTICE_CHANGE: f64 = 0.05;

/// δ on the log scale: ln(1 + δ), used as ±.
///
/// Symmetric in the factor, so base and candidate can change places, and throughput and time per operation
/// of the same change get the same verdict: the band is 1/(1+δ) … 1+δ. For δ = 3 % its lower end is −2.91 %,
/// so "no change beyond ±3 %" is never said of a loss of more than 2.91 %.
/// Source: as the 0.80 … 1.25 band of bioequivalence; docs/sources/statistics.md#paired-log-ratios.
pub fn log_delta(delta: f64) -> f64 {
    delta.ln_1p()
}

/// Share of δ that a trend over a warm-up may come to. Source: docs/sources/statistics.md#warm-up.
pub const TREND_SHARE: f64 = 0.25;

/// A trend with a larger p than this is noise.
pub const TREND_P: f64 = 0.05;

/// CPU of processes that come and go is told from this share of CPU per operation on: the smallest δ from
/// noise. The kernel counts it in ticks of 10 ms, and one of them is up to 1 % of the CPU of a short run.
pub const SHORT_LIVED_SHARE: f64 = 0.02;

/// False ones tolerated among the costs of a cell that are listed as moved (Benjamini-Hochberg), on average.
pub const MOVED_FALSE: f64 = 0.05;

/// A cost that moved by less than this share is not listed, however surely it moved.
pub const MOVED_LEAST: f64 = 0.005;

/// Costs listed for a cell at most.
pub const MOVED_LISTED: usize = 8;

/// A move of a time below this share of what an operation takes is not listed.
pub const MOVED_TIME_SHARE: f64 = 0.002;

/// A move of an event below so many per operation is not listed: one in a thousand operations.
pub const MOVED_EVENTS: f64 = 0.001;

/// The same for events that are neither good nor bad, and cheap: rows, buffers found. The catalog look-ups of
/// a visit's own sessions come to about one in a hundred operations and differ between versions.
pub const MOVED_CHEAP_EVENTS: f64 = 0.02;

/// By how much the statistics of a database may differ between servers for one session that a visit opens,
/// by the metric.
///
/// Source: two sessions of 18.6 against two of 14.24 (that of a client, and the one that reads statistics):
/// 800 buffer hits, 225 rows fetched, 251 returned, 18 buffer reads, one transaction. Half of that and a
/// quarter more.
pub const SESSION_EVENTS: [(&str, f64); 6] = [
    ("blocks_hit_per_op", 500.0),
    ("blocks_read_per_op", 12.0),
    ("io_reads_per_op", 12.0),
    ("rows_fetched_per_op", 150.0),
    ("rows_returned_per_op", 160.0),
    ("transactions_per_op", 0.7),
];

/// Connections that each client of a visit opens, one after another, at most.
pub const SESSIONS_OF_CLIENT: f64 = 2.0;

/// A move of a volume below so many bytes per operation is not listed.
pub const MOVED_BYTES: f64 = 10.0;

/// A move of a size below so many megabytes is not listed.
pub const MOVED_MB: f64 = 16.0;

/// The placebo's moves of a cost are taken from cells in which an operation costs at most this factor more
/// or less of it.
///
/// Read-only cells write a few bytes of WAL, doubling and halving from block to block; that says nothing
/// about the 300 bytes of an update.
pub const MOVED_COMPARABLE: f64 = 4.0;

/// Cells that the placebo's moves are known from beside those of the run.
///
/// With one cell, t of one degree of freedom would list nothing that is not a hundred times as large as what
/// the placebo happened to move, while a quiet host shows placebo moves of 0.1 % that harm nobody. The price:
/// where copies of the data differ by a percent, a run of one cell lists that.
pub const MOVED_PRIOR: f64 = 4.0;

/// "All of it" is said of a part if the interval of the rest lies within this share of the whole.
pub const REST_SHARE: f64 = 0.2;

/// "Most of it" likewise.
pub const MOST_SHARE: f64 = 0.5;

/// "Same" is said of a cost if its 95 % interval lies within the first, or the second, and so on.
pub const SAME_LADDER: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

/// Growth exponent of throughput over clients from which a segment is called linear: 1.8 times for twice the
/// clients. Real servers share caches and locks, so that an exact 1 is never measured.
pub const SEGMENT_LINEAR: f64 = 0.85;

/// Growth exponent within which a segment is called flat: ±7 % for twice the clients.
pub const SEGMENT_FLAT: f64 = 0.1;

/// Growth exponents that the interval of a segment must lie within for it to be called flat: from 19 % less
/// to 23 % more for twice the clients.
pub const SEGMENT_FLAT_WIDEST: f64 = 0.3;

/// Share of lines of one slope that may be broken into several segments by chance.
pub const SEGMENT_ALPHA: f64 = 0.05;

/// The smallest change of a slow quantile of latency that matters.
///
/// Quantiles scatter more than means: on a quiet machine p99 of a point query is known to some 3 % after 14
/// blocks, p99.9 to 10 %.
pub const TAIL_DELTA: f64 = 0.10;

/// Chance that any stalls are told of that are luck (Holm).
pub const STALLS_FALSE: f64 = 0.05;

/// Stalls are told of if they move throughput by more than this share of δ, as with [`PLACEBO_RELEVANCE`].
pub const STALLS_RELEVANCE: f64 = 1.0 / 3.0;

/// An operation is a stall from this many times the p99 of the quicker side.
pub const STALL_FROM: f64 = 2.0;

/// Slower operations that a percentile of a latency curve needs on either side: fewer are a matter of chance.
pub const SLOWER_OPERATIONS: f64 = 10.0;

/// The colour bands of published tables: a relative figure at or below this is red.
pub const BAND_LOW: f64 = 0.95;

/// At or above this is green; between them grey.
pub const BAND_HIGH: f64 = 1.05;

/// Share of the range of absolute values at each end that published tables colour.
pub const RANGE_END: f64 = 0.25;

/// Values of which the worst is at least this share of the best are alike: none is red.
pub const RANGE_ALIKE: f64 = 0.8;

/// A delete that costs so many times the CPU of an insert is worth a word: its planner looks through the dead
/// entries at the tail of the index, which no throughput shows by itself.
///
/// Source: docs/sources/insert-benchmark.md#deletes: 10 to 100 times.
pub const DELETE_CPU_FACTOR: f64 = 5.0;

/// A schedule that lags so many seconds behind is worth a word.
pub const LAG_SECONDS: f64 = 1.0;

/// Growth of counted instructions that is a regression where the user names no other, as a share.
///
/// Starts of one server differ by a fifth of it at most, as a rule, so this is no limit of noise: below 1 %
/// of instructions hardly any time is to be seen, and between two major versions nearly every cell moves by
/// some tenths.
pub const COUNT_LIMIT: f64 = 0.01;

/// Starts whose counts differ by more than this, as a share, are told. Usual is 0.01 %
/// (docs/guide/counting.md).
pub const COUNT_SPAN_MAX: f64 = 0.000_5;

/// Windows of a cell, which have other keys, whose ratios differ by more than this are told.
pub const COUNT_KEYS_MAX: f64 = 0.002;

/// CPU of a server's other processes in a window, over that of its backend, from which on it is told: it is
/// work that is not counted.
pub const COUNT_BESIDE_MAX: f64 = 0.01;

/// Below this p of "slower and faster are equally likely" a ledger of placebos prefers a side. Small, because
/// the ledger is looked at again and again as it grows.
pub const LOPSIDED: f64 = 0.01;

/// Milliseconds from the end of a run to the start of the next from which on they are of different hours:
/// runs that are nearer share neighbours and the host's clock.
pub const HOUR_APART_MS: i64 = 600_000;

/// Degrees of freedom that what is assumed of hours is worth.
pub const HOURS_ASSUMED_DF: f64 = 4.0;

/// What is assumed of hours: sd of the true log-ratio from hour to hour. It takes part until what was
/// measured again is worth as much.
///
/// 95 % of hosts then have a standard deviation of a run about its mean over many hours between 0.35 and
/// 1.7 %. Repeated runs of 17 against 18 on our machine had 0.7 %, consecutive point releases in published
/// tables 1.0 to 1.2 % with all noise.
pub const HOURS_ASSUMED: f64 = 0.005;

/// The same on a virtual machine, of sides of two branches or made in different ways. There hours may be
/// slow, and slow hours moved the reads of 14.24 against 18.6 by 0.3 to 3.4 %: docs/decisions/0064.
pub const HOURS_ASSUMED_UNSTEADY: f64 = 0.009;

/// Milliseconds from the start of the first session to that of the last from which on sessions have met what
/// a host does in a day. Four within 1.7 h held 17 of 32 figures of slow hours: docs/error-rates.md.
pub const SESSIONS_OF_A_DAY_MS: i64 = 12 * 3_600_000;

/// Of such sides hours are assumed to move a ratio by this share of its logarithm, too (standard deviation).
/// Slow hours took 13 % of what `hot-points` of 14.24 against 18.6 gains: docs/decisions/0064.
pub const HOURS_OF_CHANGE: f64 = 0.05;

/// What else is assumed of hours: microseconds of time by which the price of a context switch differs from
/// hour to hour (standard deviation). It counts for the switches that one side makes more for each operation.
///
/// 14.24 against 18.6 with updates, 2.5 to 2.8 switches against 1.0 in 40 to 60 us, differed by 6 to 7 %
/// (standard deviation of the logarithm) over three hours on our machine: docs/decisions/0055.
pub const HOURS_SWITCH_US: f64 = 1.5;

/// The same in CPU of the server, which differed by 4 %.
pub const HOURS_SWITCH_CPU_US: f64 = 1.0;

/// By the price of switches hours move no more than this share of what the sides differ by (as a logarithm):
/// that price is a part of the difference. It was a fifth where we saw it.
pub const SWITCHING_MOST: f64 = 0.25;

/// From this share of the variance between hours on, a part that is assumed makes it "in part assumed".
pub const ASSUMED_PART: f64 = 0.1;

/// From this share of a run's variance about many hours on, what goes with the host's speed is told and makes
/// another hour "in part assumed", if the blocks alone show it ([`SPEED_FALSE`]): an interval is then a tenth
/// wider. What chance leaves in other cells only widens theirs a little.
pub const SPEED_PART: f64 = 0.2;
