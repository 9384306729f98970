//! What more threads of our client bring where nothing else is the limit: against a server that answers at
//! once, on as many cores as there are threads.

use crate::MeanRatio;
use deltabench_driver::peer::{PeerWork, Stub};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::endpoint::Login;
use deltabench_model::problem::Problem;
use deltabench_model::units::{seconds, to_f64, to_u64};
use deltabench_observe::{own_affinity, pin_self, restore};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clients of each thread.
const CLIENTS_OF_A_THREAD: u32 = 8;

/// Operations of the slice that finds out how many make the wanted time.
const PILOT: u64 = 20_000;

/// Rows of which one is asked for; the stub has none.
const ROWS: u64 = 1_000_000;

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadsRequest {
    /// Threads, one row each; each has a core and eight clients.
    pub jobs: Vec<u32>,
    /// Paired rounds of each row.
    pub rounds: u32,
    /// Seconds of each of the two in a round.
    pub seconds: f64,
}

/// Some threads against one.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadsRow {
    pub jobs: u32,
    /// One thread and so many, in the same round.
    pub rounds: Vec<[SliceOutcome; 2]>,
}

impl ThreadsRow {
    /// Operations per second of all threads / of one.
    pub fn throughput(&self) -> MeanRatio {
        self.ratio(|slice| to_f64(slice.operations) / seconds(slice.duration_ns).max(1e-9))
    }

    /// CPU of an operation with all threads / with one.
    pub fn client_cpu(&self) -> MeanRatio {
        self.ratio(|slice| to_f64(slice.client_cpu_ns) / to_f64(slice.operations).max(1.0))
    }

    /// Operations per second of all threads, mean over the rounds.
    pub fn rate(&self) -> f64 {
        let slices = self.rounds.iter().map(|[_, all]| all);
        let (operations, time) = slices.fold((0.0, 0.0), |(operations, time), slice| {
            (
                operations + to_f64(slice.operations),
                time + seconds(slice.duration_ns),
            )
        });
        operations / f64::max(time, 1e-9)
    }

    fn ratio(&self, of: impl Fn(&SliceOutcome) -> f64) -> MeanRatio {
        let log = |[one, all]: &[SliceOutcome; 2]| (of(all) / of(one)).ln();
        MeanRatio::of_logs(&self.rounds.iter().map(log).collect::<Vec<f64>>())
    }
}

/// Measures each number of threads against one, in turns; which comes first changes from round to round.
/// `directory` takes the sockets of the stubs.
///
/// Errors: fewer cores than threads, a stub that cannot listen.
pub fn threads(request: &ThreadsRequest, directory: &Path) -> Result<Vec<ThreadsRow>, Problem> {
    let cores = own_affinity().map_err(|error| cannot(&error))?;
    let rows = request.jobs.iter().map(|&jobs| {
        let chosen = { usize::try_from(jobs).ok() }.and_then(|jobs| cores.get(..jobs));
        let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) else {
            return Err(Problem::new(format!("{jobs} threads need {jobs} cores"))
                .detail(format!("this process may use {}", cores.len())));
        };
        row(request, chosen, directory)
    });
    let rows = rows.collect();
    restore(&cores).map_err(|error| cannot(&error))?;
    rows
}

fn row(request: &ThreadsRequest, cores: &[usize], directory: &Path) -> Result<ThreadsRow, Problem> {
    let jobs = u32::try_from(cores.len()).unwrap_or(u32::MAX);
    let first = cores.get(..1).unwrap_or(cores);
    let mut one = Side::open(first, directory.join("one"))?;
    let mut all = Side::open(cores, directory.join("all"))?;
    let pilot = one.slice(PILOT, 0)?;
    let rate = to_f64(pilot.operations) / seconds(pilot.duration_ns).max(1e-9);
    let operations = to_u64(rate * request.seconds).max(1000);
    let more = operations * u64::from(jobs);
    all.slice(PILOT, 0)?;
    let mut rounds = Vec::new();
    for round in 1..=request.rounds {
        let seed = u64::from(round);
        rounds.push(match round % 2 {
            0 => [one.slice(operations, seed)?, all.slice(more, seed)?],
            _ => {
                let all = all.slice(more, seed)?;
                [one.slice(operations, seed)?, all]
            }
        });
    }
    Ok(ThreadsRow { jobs, rounds })
}

/// A client and the stub that answers it, on the same cores.
struct Side<'a> {
    cores: &'a [usize],
    // Before the stub: its threads end with their clients.
    lane: Lane,
    _stub: Stub,
}

impl<'a> Side<'a> {
    fn open(cores: &'a [usize], directory: PathBuf) -> Result<Self, Problem> {
        let stub = Stub::start(&directory, cores).map_err(|error| cannot(&error))?;
        let login = Login {
            user: "deltabench".to_owned(),
            database: "deltabench".to_owned(),
            password: None,
            options: Vec::new(),
            confirm_path: false,
        };
        let jobs = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        let lane = Lane::connect(&LaneSpec {
            servers: &[(stub.endpoint(), login)],
            executable: &PeerWork::Point.executable(ROWS),
            clients: jobs.saturating_mul(CLIENTS_OF_A_THREAD),
            jobs,
            op_timeout: Duration::from_secs(30),
            rate: None,
        })
        .map_err(|error| cannot(&error))?;
        Ok(Self {
            cores,
            lane,
            _stub: stub,
        })
    }

    fn slice(&mut self, operations: u64, seed: u64) -> Result<SliceOutcome, Problem> {
        pin_self(self.cores).map_err(|error| cannot(&error))?;
        let outcome = self.lane.run_slice(
            0,
            SliceRequest {
                operations,
                seed,
                first_operation: 0,
            },
        );
        match &outcome.void_detail {
            None => Ok(outcome),
            Some(detail) => Err(Problem::new("the stub was lost").detail(detail.clone())),
        }
    }
}

fn cannot(error: &dyn std::fmt::Display) -> Problem {
    Problem::new("the client cannot be measured against a stub").detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_pairs_every_round_and_both_do_all_their_operations() {
        let directory = tempfile::tempdir().unwrap();
        let request = ThreadsRequest {
            jobs: vec![1],
            rounds: 3,
            seconds: 0.01,
        };
        let rows = threads(&request, directory.path()).unwrap();
        assert_eq!((rows.len(), rows[0].jobs, rows[0].rounds.len()), (1, 1, 3));
        for [one, all] in &rows[0].rounds {
            assert_eq!(one.operations, all.operations);
            assert_eq!((one.rows, one.failed), (one.operations, 0));
        }
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "no socket is left");
    }

    #[test]
    fn more_threads_than_cores_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let request = ThreadsRequest {
            jobs: vec![100_000],
            rounds: 1,
            seconds: 0.01,
        };
        let refused = threads(&request, directory.path()).unwrap_err();
        assert!(refused.to_string().contains("need 100000 cores"));
    }
}
