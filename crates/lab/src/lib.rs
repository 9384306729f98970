//! What a lab knows of its runs: the one way back from the store to a reader.
//!
//! [`Judged`] is a run judged by its own records, each read once. [`Analysed`] is that with what was said of
//! the run since: the run that measured its regressions again, and withdrawals. Whoever shows a run, on a
//! terminal or elsewhere, starts from one of these; nothing is measured here and nothing written, except
//! what a run's placebo came to.

mod analysed;
mod analysis;
mod counted;
mod explained;
mod history;
mod hosts;
mod judged;
mod names;
mod night;
mod pair;
mod past;
mod past_runs;
mod placebos;
mod records;
mod reused;
mod sampled;
mod sensitivity;
mod series;
mod sessions;
mod threads;
mod through;
mod told;
mod trend;
mod withdrawal;

pub use analysed::{Analysed, analyse, analyse_among, analyse_this_hour};
pub use analysis::ANALYSIS;
pub use counted::counted_cells;
pub use explained::{EXPLAINED, changed, explained};
pub use hosts::{HostChange, RunHost};
pub use judged::Judged;
pub use names::{confirmation_name, count_name, sample_name};
pub use night::is_night;
pub use pair::version_key;
pub use past_runs::PastRuns;
pub use placebos::{CountedRun, Placebos};
pub use reused::{Ask, EarlierServer, Reused, earlier_servers, reused};
pub use sensitivity::sensitivity_name;
pub use series::{series_of, stored as series_of_run};
pub use sessions::session_name;
pub use threads::{further_threads, side_by_side};
pub use through::through;
pub use trend::{
    Change, ComparedCell, Era, HostTrend, Judging, KnownRuns, TrendCell, TrendPoint, TrendRun,
    Version, trends, version_line, workload,
};
pub use withdrawal::cell_label;

use deltabench_model::problem::Problem;
use deltabench_store::StoreError;

/// A store that cannot be read or written, in the words of who looks at results.
pub fn store_problem(error: StoreError) -> Problem {
    Problem::new("the results could not be read or stored")
        .detail(error.to_string())
        .hint(error.hint())
        .of_machine()
}
