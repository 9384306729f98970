//! Is it a regression: records to paired log-ratios to verdicts.
//!
//! [`analyse::analyse`] turns the slices of a run into a [`comparison::Comparison`]; [`exit::exit_code`]
//! turns that into the one number that a script sees; [`costs::add_costs`] adds what each
//! operation cost and what moved; [`fairness::fairness`] says what differs between two
//! servers besides what was asked. Every number that decides something is in [`thresholds`]; formulas and
//! sources are in `docs/measuring.md`.
//!
//! Design decision: the sample is the restart block. Slices and rounds of one server start share its luck
//! (memory placement, address layout), so a thousand of them are one value of the quantity in question;
//! treating rounds as the sample gives 11 % false alarms for the stated 5 %
//! (docs/sources/statistics.md#blocks). The price is that a verdict takes at least
//! [`thresholds::MIN_BLOCKS`] restarts, however many rounds there are.
//!
//! It refuses to call a difference that was not found "the same": equality needs its own test, and without
//! either answer the verdict is inconclusive.

pub mod absolute;
pub mod analyse;
pub mod comparison;
mod confirm;
pub mod costs;
pub mod counts;
pub mod exit;
pub mod fairness;
pub mod forecast;
pub mod gate;
pub mod histograms;
mod history;
pub mod host_speed;
pub mod hosts;
mod hours;
pub mod impact;
pub mod interference;
mod judge;
mod latency;
pub mod ledger;
mod levels;
mod loads;
pub mod looks;
mod multiple;
mod noise;
pub mod odd_host;
mod pace;
mod pairing;
mod pairs;
mod parallel;
mod placebo;
mod probes;
pub mod progress;
pub mod reading;
mod sample;
pub mod segments;
mod selected;
pub mod sensitivity;
mod side;
mod stalls;
mod stopping;
pub mod study;
mod summaries;
pub mod tails;
pub mod thresholds;
mod turns;
mod unpaired;
mod warmth;
mod witness;
pub mod words;

pub use analyse::analyse;
pub use comparison::{Apart, CountedCell, InstructionCounts, ServerCount};
pub use confirm::confirm;
pub use costs::{Machine, add_costs};
pub use counts::{add_apart, add_counts};
pub use exit::exit_code;
pub use fairness::{ServerFacts, fairness};
pub use forecast::{Forecast, block_sd, forecast};
pub use gate::{costs_more, gate_line};
pub use hours::{
    Earlier, EarlierRun, Repeated, SessionTimes, allow_for_slow_hours, combine, foretell,
};
pub use looks::{ended_after, looks};
pub use pairing::is_whole_step;
pub use pairs::Pairs;
pub use progress::progress;
pub use reading::{Reader, Reading, ReadsToo, Records};
pub use stopping::{CellProgress, blocks_needed};
pub use turns::took_turns;
pub use warmth::{are_steady, each_is_steady};
