//! One cell on one server in one of its starts.

use crate::asleep::{Standing, until_asleep};
use crate::clock::without;
use crate::marks::{Marks, read, total};
use crate::quota::{Quota, Quotas, probes, warm_up, window};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::profile::Profile;
use deltabench_model::units::to_f64;
use deltabench_proc::{Process, process_tree};
use deltabench_run::fleet::CountedServer;
use deltabench_run::schedule::parameters;
use deltabench_server::{Counter, Frozen};
use deltabench_workload::executable::Executable;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one operation may take: a statement of seconds takes minutes under a counter.
const LIMIT: Duration = Duration::from_secs(600);

/// What the first operation gets, however little time is left.
const LEAST: Duration = Duration::from_secs(15);

/// What is counted.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The server.
    pub server: &'a CountedServer<'a>,
    /// Its processes without clients.
    pub standing: &'a Standing,
    /// The process that writes WAL for others, where the cell writes any.
    pub wal_writer: Option<u32>,
    /// Which start of it, from 0.
    pub start: u32,
    /// The cell.
    pub cell: (CellId, &'a Cell),
    /// What it sends.
    pub executable: &'a Executable,
    /// How many operations cells get.
    pub quotas: &'a Quotas,
    /// Whether it is this visit that decides about this cell.
    pub decides: bool,
    /// When the time for all cells is up: no operation may take longer.
    pub ends: Option<Instant>,
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// One for each window.
    pub records: Vec<CountRecord>,
    /// Where the instructions of the first window went, without those of the marks; in the first start.
    pub profile: Option<Profile>,
}

impl Visit<'_> {
    /// How long an operation may take.
    fn limit(&self) -> Duration {
        let left = self
            .ends
            .map(|ends| ends.saturating_duration_since(Instant::now()));
        // What is begun in time gets a moment: an end of its own is clearer than a lost connection.
        left.map_or(LIMIT, |left| left.max(LEAST).min(LIMIT))
    }

    /// Counts all windows of the cell.
    ///
    /// Errors: whatever the server answered, an operation that failed, a counter that wrote nothing;
    /// `given_up` says that the one who decides about this cell will not, and then it is none.
    pub fn count(&self, given_up: impl Fn() -> bool) -> Result<Option<Counted>, Problem> {
        let (id, cell) = self.cell;
        self.standing.wait_alone();
        let (endpoint, login) = self.server.prepare(cell)?;
        let refused = |error| {
            Problem::new(format!("cannot prepare {} on a server", cell.workload))
                .detail(format!("{error}"))
        };
        self.standing.wait_alone();
        let mut lane = Lane::connect(&LaneSpec {
            servers: &[(endpoint, login)],
            executable: self.executable,
            clients: 1,
            op_timeout: self.limit(),
            rate: None,
        })
        .map_err(refused)?;
        lane.before_send(Box::new(until_asleep));
        let pid = lane.backend_pids(0).first().copied().unwrap_or(0);
        let mut connected = Connected {
            visit: self,
            lane,
            pid,
            marks: Marks::of(&self.server.counts, pid),
            done: 0,
            slices: 0,
        };
        // Whether a backend may say on a tuple that its transaction has committed depends on whether WAL was
        // written since: this process does so five times a second, and an operation differs by that.
        let _frozen = self.wal_writer.and_then(Frozen::of);
        let Some(quota) = connected.warm_up(given_up)? else {
            return Ok(None);
        };
        let counting = self.plan.observing.counting.unwrap_or_default();
        let mut windows = Vec::new();
        for _ in 0..counting.windows.max(1) {
            windows.push(connected.window(quota.window)?);
        }
        let empty = connected.mark()?;
        drop(connected);
        let of_marks = total(&empty)?;
        let empty = without(&read(&empty)?, 1);
        let (mut records, mut profile) = (Vec::new(), None);
        for (number, window) in (0..).zip(&windows) {
            let counted = read(&window.file)?.of(quota.window);
            let counted = without(&counted, quota.window).minus(&empty);
            let instructions = total(&window.file)?;
            let around = instructions.saturating_sub(of_marks).cast_signed();
            records.push(CountRecord {
                server: self.server.server,
                cell: id,
                start: self.start,
                window: number,
                operations: quota.window,
                instructions,
                of_marks,
                of_clock: around - counted.total(),
                rows: window.rows,
                failed: window.failed,
                beside: window.beside,
            });
            if self.start == 0 {
                profile.get_or_insert(counted);
            }
        }
        Ok(Some(Counted { records, profile }))
    }
}

/// A window that was worked through.
struct Window {
    file: PathBuf,
    rows: u64,
    failed: u64,
    beside: Option<f64>,
}

/// A visit with its connection.
struct Connected<'a> {
    visit: &'a Visit<'a>,
    lane: Lane,
    pid: u32,
    marks: Marks,
    /// Operations done so far: where sequences go on.
    done: u64,
    /// Slices so far: each has keys of its own, the same on every server and in every start.
    slices: u32,
}

impl Connected<'_> {
    /// Works until nothing is new to the backend any more; decides how many operations the cell gets, or
    /// waits for who does. Ends with a mark.
    fn warm_up(&mut self, given_up: impl Fn() -> bool) -> Result<Option<Quota>, Problem> {
        let cell = self.visit.cell.0.index();
        let quotas = self.visit.quotas;
        let settled = match self.visit.decides {
            true => quotas.known(cell),
            false => match quotas.wait(cell, given_up) {
                None => return Ok(None),
                quota => quota,
            },
        };
        self.mark()?;
        self.work(1)?;
        let first = total(&self.mark()?)?;
        let before = settled.unwrap_or_else(|| Quota {
            warm_up: warm_up(first),
            probes: probes(first),
            window: 0,
        });
        if before.warm_up > 0 {
            self.work(before.warm_up)?;
            self.mark()?;
        }
        self.work(before.probes)?;
        let probe = total(&self.mark()?)?;
        let quota = settled.unwrap_or_else(|| Quota {
            window: window(probe / before.probes.max(1)),
            ..before
        });
        if settled.is_none() {
            quotas.decide(cell, quota);
        }
        Ok(Some(quota))
    }

    /// Counts a window; begins and ends with a mark, the first of which is there.
    fn window(&mut self, operations: u64) -> Result<Window, Problem> {
        let before = self.cpu_ns();
        let outcome = self.work(operations)?;
        let file = self.mark()?;
        let beside = before.zip(self.cpu_ns()).and_then(|(before, after)| {
            let of = |after: u64, before: u64| to_f64(after.saturating_sub(before));
            let (own, others) = (of(after.0, before.0), of(after.1, before.1));
            (own > 0.0).then(|| others / own)
        });
        Ok(Window {
            file,
            rows: outcome.rows,
            failed: outcome.failed,
            beside,
        })
    }

    /// CPU of the backend and of all other processes of its server, ns.
    fn cpu_ns(&self) -> Option<(u64, u64)> {
        let run_ns = |pid: u32| Process::of(pid).schedstat().map(|found| found.cpu_ns);
        let own = run_ns(self.pid)?;
        let tree = process_tree(self.visit.server.postmaster_pid).ok()?;
        let others = tree.into_iter().filter(|pid| *pid != self.pid);
        Some((own, others.filter_map(run_ns).sum()))
    }

    fn work(&mut self, operations: u64) -> Result<SliceOutcome, Problem> {
        let (id, cell) = self.visit.cell;
        let outcome = self.lane.run_slice(
            0,
            SliceRequest {
                operations,
                seed: parameters(self.visit.plan, 0, id, self.slices),
                first_operation: self.done,
            },
        );
        self.done += operations;
        self.slices += 1;
        if outcome.void.is_none() && outcome.failed == 0 {
            return Ok(outcome);
        }
        let errors = outcome.errors.iter().map(|error| error.sqlstate.clone());
        let why = outcome.void_detail.clone().unwrap_or_default();
        let facts: Vec<String> = errors
            .chain([why])
            .filter(|text| !text.is_empty())
            .collect();
        Err(Problem::new(format!(
            "operations of {} failed under the counter",
            cell.workload
        ))
        .detail(facts.join("; ")))
    }

    /// Marks the end of what came before; the file says what that was.
    fn mark(&mut self) -> Result<PathBuf, Problem> {
        self.lane.ask(0, Counter::MARK_SQL).map_err(|error| {
            Problem::new("the server did not answer a mark of the counter")
                .detail(error.to_string())
        })?;
        self.marks.next()
    }
}
