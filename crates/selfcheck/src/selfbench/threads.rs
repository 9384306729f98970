//! What more threads of our client bring where nothing else is the limit: against a server that answers at
//! once, on as many cores as there are threads. As many clients of one thread each, at the same time on the
//! same cores, show what the machine itself loses when more of its cores are busy.

use crate::MeanRatio;
use deltabench_driver::peer::{PeerWork, Stub};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::endpoint::Login;
use deltabench_model::problem::Problem;
use deltabench_model::units::{index, seconds, to_f64, to_u64};
use deltabench_observe::{own_affinity, pin_self, restore};
use deltabench_stats::summary::mean;
use std::panic::resume_unwind;
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

/// What some clients did at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    pub operations: f64,
    /// Operations per second; of several clients, added up.
    pub rate: f64,
    pub client_cpu_ns: f64,
}

/// One round: the same work on each core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadsRound {
    /// One client with one thread, on one core.
    pub one: Done,
    /// One client with all threads.
    pub all: Done,
    /// As many clients as threads, with one thread each.
    pub apart: Done,
}

/// Some threads against one.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadsRow {
    pub jobs: u32,
    pub rounds: Vec<ThreadsRound>,
}

impl ThreadsRow {
    /// Operations per second of all threads / of one.
    pub fn throughput(&self) -> MeanRatio {
        self.ratio(|round| round.all.rate / round.one.rate)
    }

    /// Operations per second of all threads / of as many clients apart.
    pub fn throughput_apart(&self) -> MeanRatio {
        self.ratio(|round| round.all.rate / round.apart.rate)
    }

    /// CPU of an operation with all threads / with as many clients apart.
    pub fn client_cpu_apart(&self) -> MeanRatio {
        let each = |done: &Done| done.client_cpu_ns / done.operations.max(1.0);
        self.ratio(|round| each(&round.all) / each(&round.apart))
    }

    /// Operations per second of all threads, mean over the rounds.
    pub fn rate(&self) -> f64 {
        mean(
            &self
                .rounds
                .iter()
                .map(|round| round.all.rate)
                .collect::<Vec<f64>>(),
        )
        .unwrap_or_default()
    }

    fn ratio(&self, of: impl Fn(&ThreadsRound) -> f64) -> MeanRatio {
        let logs = self.rounds.iter().map(|round| of(round).ln());
        MeanRatio::of_logs(&logs.collect::<Vec<f64>>())
    }
}

impl Done {
    fn of(slice: &SliceOutcome) -> Self {
        let operations = to_f64(slice.operations);
        Self {
            operations,
            rate: operations / seconds(slice.duration_ns).max(1e-9),
            client_cpu_ns: to_f64(slice.client_cpu_ns),
        }
    }

    fn beside(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            rate: self.rate + other.rate,
            client_cpu_ns: self.client_cpu_ns + other.client_cpu_ns,
        }
    }
}

/// Refuses more threads than this process has cores for.
///
/// Errors: the first such number.
pub fn check_cores(jobs: &[u32]) -> Result<(), Problem> {
    let cores = own_affinity().map_err(|error| cannot(&error))?;
    jobs.iter()
        .try_for_each(|jobs| chosen(*jobs, &cores).map(drop))
}

/// A core for each thread.
///
/// Errors: there are fewer.
fn chosen(jobs: u32, cores: &[usize]) -> Result<&[usize], Problem> {
    let chosen = { usize::try_from(jobs).ok() }.and_then(|jobs| cores.get(..jobs));
    chosen.filter(|chosen| !chosen.is_empty()).ok_or_else(|| {
        Problem::new(format!("{jobs} threads need {jobs} cores"))
            .detail(format!("this process may use {}", cores.len()))
            .hint(format!("use --jobs {} or fewer", cores.len()))
    })
}

/// Measures each number of threads against one, in turns; the order changes from round to round.
/// `directory` takes the sockets of the stubs.
///
/// Errors: fewer cores than threads, a stub that cannot listen.
pub fn threads(request: &ThreadsRequest, directory: &Path) -> Result<Vec<ThreadsRow>, Problem> {
    let cores = own_affinity().map_err(|error| cannot(&error))?;
    let rows = request.jobs.iter();
    let rows = rows.map(|&jobs| row(request, chosen(jobs, &cores)?, directory));
    let rows = rows.collect();
    restore(&cores).map_err(|error| cannot(&error))?;
    rows
}

fn row(request: &ThreadsRequest, cores: &[usize], directory: &Path) -> Result<ThreadsRow, Problem> {
    let jobs = u32::try_from(cores.len()).unwrap_or(u32::MAX);
    let mut all = Side::open(cores, directory.join("all"))?;
    let mut apart = (0..)
        .zip(cores.chunks(1))
        .map(|(number, core): (u32, _)| Side::open(core, directory.join(number.to_string())))
        .collect::<Result<Vec<Side<'_>>, Problem>>()?;
    let one = |apart: &mut [Side<'_>], operations, seed| match apart.first_mut() {
        Some(first) => first.slice(operations, seed),
        None => Err(Problem::new("no core")),
    };
    let operations = to_u64(one(&mut apart, PILOT, 0)?.rate * request.seconds).max(1000);
    let more = operations * u64::from(jobs);
    let mut rounds = Vec::new();
    // The first round warms all of them up.
    for seed in 0..=u64::from(request.rounds) {
        let round = match seed % 2 {
            0 => ThreadsRound {
                one: one(&mut apart, operations, seed)?,
                all: all.slice(more, seed)?,
                apart: together(&mut apart, operations, seed)?,
            },
            _ => ThreadsRound {
                apart: together(&mut apart, operations, seed)?,
                all: all.slice(more, seed)?,
                one: one(&mut apart, operations, seed)?,
            },
        };
        rounds.push(round);
    }
    rounds.remove(0);
    Ok(ThreadsRow { jobs, rounds })
}

/// A slice of each at the same time.
fn together(sides: &mut [Side<'_>], operations: u64, seed: u64) -> Result<Done, Problem> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = sides
            .iter_mut()
            .map(|side| scope.spawn(move || side.slice(operations, seed)))
            .collect();
        let mut sum = None;
        for thread in threads {
            let done = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            sum = Some(sum.map_or(done, |sum: Done| sum.beside(done)));
        }
        sum.ok_or_else(|| Problem::new("no core"))
    })
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
        let clients = index(u64::from(CLIENTS_OF_A_THREAD));
        let stub = Stub::start(&directory, cores, clients).map_err(|error| cannot(&error))?;
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
            cores,
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

    fn slice(&mut self, operations: u64, seed: u64) -> Result<Done, Problem> {
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
            None => Ok(Done::of(&outcome)),
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
        for ThreadsRound { one, all, apart } in &rows[0].rounds {
            assert!(one.operations >= 1000.0 && one.rate > 0.0 && one.client_cpu_ns > 0.0);
            assert_eq!(
                (all.operations, apart.operations),
                (one.operations, one.operations)
            );
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
