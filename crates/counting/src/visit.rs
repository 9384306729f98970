//! One cell on one server in one of its starts.

use crate::asleep::{Standing, until_asleep};
use crate::clock::without;
use crate::marks::{Marks, read, total};
use crate::quota::{Quota, window};
use crate::starts::{Client, Counted};
use crate::wal_writer::Stopped;
use deltabench_driver::{Lane, LaneSpec, SliceRequest, WireError};
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::profile::Profile;
use deltabench_model::units::to_f64;
use deltabench_proc::{Process, process_tree};
use deltabench_run::fleet::CountedServer;
use deltabench_run::schedule::parameters;
use deltabench_server::Counter;
use deltabench_workload::executable::Executable;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one operation may take: a statement of seconds takes minutes under a counter.
const LIMIT: Duration = Duration::from_secs(600);

/// What the first operation gets, however little time is left.
const LEAST: Duration = Duration::from_secs(15);

/// What sends operations to a backend under a counter, each only when the backend sleeps.
pub trait Sends {
    /// The backend.
    fn pid(&self) -> u32;

    /// Operations of the cell that one of [`Sends::work`] is: rows, where a statement has several and each is
    /// an operation.
    fn units(&self) -> u64 {
        1
    }

    /// Whether an operation can follow another one before [`Sends::undo`].
    fn repeats(&self) -> bool {
        true
    }

    /// Undoes what operations before have done, if they could not be done again; whether there was something
    /// to undo.
    ///
    /// Errors: whatever the server answered.
    fn undo(&mut self) -> Result<bool, Problem>;

    /// Does so many operations; rows that came back.
    ///
    /// Errors: any of them failed.
    fn work(&mut self, operations: u64) -> Result<u64, Problem>;

    /// Has the backend run a statement that is no operation.
    ///
    /// Errors: the server did not answer.
    fn ask(&mut self, sql: &str) -> Result<(), WireError>;
}

/// A server that has just started, with warm tables and without clients.
#[derive(Debug)]
pub struct AtRest<'a> {
    /// The server.
    pub server: &'a CountedServer<'a>,
    /// Its processes without clients.
    standing: Standing,
    /// The process that writes WAL for others, where a cell of the plan writes any.
    wal_writer: Option<u32>,
}

impl<'a> AtRest<'a> {
    /// Waits until nothing more of a server starts, and has it read its tables.
    ///
    /// Errors: whatever the server answered.
    pub fn of(server: &'a CountedServer<'a>, plan: &Plan) -> Result<Self, Problem> {
        let standing = Standing::of(server.postmaster_pid);
        server.warm()?;
        let wal_writer = match plan.cells.iter().any(|cell| cell.writes) {
            true => server.wal_writer()?,
            false => None,
        };
        Ok(Self {
            server,
            standing,
            wal_writer,
        })
    }

    /// Waits until all clients before this one have ended. A line names a process that stays.
    pub fn wait_alone(&self, client: &Client<'_>) {
        for pid in self.standing.wait_alone() {
            client.note(&format!(
                "process {pid} has not ended for seconds; the count does not wait for it any more"
            ));
        }
    }

    /// Stops the WAL writer for a cell that writes; a line says if it goes on.
    fn stopped_wal_writer(&self, client: &Client<'_>, cell: &Cell) -> Option<Stopped> {
        let pid = self.wal_writer.filter(|_| cell.writes)?;
        let stopped = Stopped::of(pid);
        if stopped.is_none() {
            client.note(&format!(
                "the WAL writer could not be stopped at rest: it works beside {}, and starts may differ",
                cell.workload
            ));
        }
        stopped
    }
}

/// What is counted.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// Who counts, and in which start.
    pub client: &'a Client<'a>,
    /// The server.
    pub at_rest: &'a AtRest<'a>,
    /// The cell.
    pub cell: (CellId, &'a Cell),
}

impl Visit<'_> {
    /// How long an operation may take.
    pub fn limit(&self) -> Duration {
        let ends = self.client.ends;
        let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        // What is begun in time gets a moment: an end of its own is clearer than a lost connection.
        left.map_or(LIMIT, |left| left.max(LEAST).min(LIMIT))
    }

    /// Counts all windows of the cell, in which the executable is sent.
    ///
    /// Errors: whatever the server answered, an operation that failed, a counter that wrote nothing; nothing
    /// if who decides about this cell will not.
    pub fn count(&self, executable: &Executable) -> Result<Option<Counted>, Problem> {
        let (_, cell) = self.cell;
        self.at_rest.wait_alone(self.client);
        let (endpoint, login) = self.at_rest.server.prepare(cell)?;
        let refused = |error| {
            Problem::new(format!("cannot prepare {} on a server", cell.workload))
                .detail(format!("{error}"))
        };
        self.at_rest.wait_alone(self.client);
        let mut lane = Lane::connect(&LaneSpec {
            servers: &[(endpoint, login)],
            executable,
            clients: 1,
            jobs: 1,
            cores: &[],
            op_timeout: self.limit(),
            rate: None,
        })
        .map_err(refused)?;
        lane.before_send(Box::new(until_asleep));
        self.windows(&mut Sliced {
            visit: self,
            lane,
            done: 0,
            slices: 0,
        })
    }

    /// As [`Visit::count`] for whatever sends.
    ///
    /// Errors: those of [`Visit::count`].
    pub fn windows(&self, sends: &mut impl Sends) -> Result<Option<Counted>, Problem> {
        let (id, cell) = self.cell;
        let mut connected = Connected {
            visit: self,
            marks: Marks::of(&self.at_rest.server.counts, sends.pid()),
            sends,
            wal_writer: self.at_rest.stopped_wal_writer(self.client, cell),
        };
        let units = connected.sends.units();
        let Some(quota) = connected.warm_up()? else {
            return Ok(None);
        };
        let counting = self.client.plan.observing.counting.unwrap_or_default();
        let mut windows = Vec::new();
        for _ in 0..counting.windows.clamp(1, quota.windows.max(1)) {
            windows.push(connected.window(quota.window)?);
        }
        connected.tell_if_it_waited();
        let empty = connected.mark()?;
        let of_marks = total(&empty)?;
        let empty = without(&read(&empty)?, 1);
        let (mut records, mut profile): (_, Option<Profile>) = (Vec::new(), None);
        for (number, window) in (0..).zip(&windows) {
            let operations = quota.window * units;
            let counted = read(&window.file)?.of(operations);
            let counted = without(&counted, quota.window).minus(&empty);
            let instructions = total(&window.file)?;
            let around = instructions.saturating_sub(of_marks).cast_signed();
            records.push(CountRecord {
                server: self.client.server,
                cell: id,
                start: self.client.start,
                window: number,
                operations,
                instructions,
                of_marks,
                of_clock: around - counted.total(),
                rows: window.rows,
                failed: 0,
                beside: window.beside,
            });
            if self.client.start == 0 {
                profile = Some(counted.after(profile.as_ref()));
            }
        }
        Ok(Some(Counted { records, profile }))
    }
}

/// A window that was worked through.
struct Window {
    file: PathBuf,
    rows: u64,
    beside: Option<f64>,
}

/// A visit with its connection.
struct Connected<'a, S> {
    visit: &'a Visit<'a>,
    sends: &'a mut S,
    marks: Marks,
    wal_writer: Option<Stopped>,
}

impl<S: Sends> Connected<'_, S> {
    /// Works until nothing is new to the backend any more; decides how many operations the cell gets, or
    /// waits for who does. Ends with a mark.
    fn warm_up(&mut self) -> Result<Option<Quota>, Problem> {
        let cell = self.visit.cell.0.index();
        let client = self.visit.client;
        let quotas = client.quotas;
        let settled = match client.decides() {
            true => quotas.known(cell),
            false => match quotas.wait(cell, || client.over()) {
                None => return Ok(None),
                quota => quota,
            },
        };
        self.mark()?;
        self.work(1)?;
        let first = total(&self.mark()?)?;
        let repeats = self.sends.repeats();
        let before = settled.unwrap_or_else(|| Quota::by_first(first, repeats));
        if before.warm_up > 0 {
            self.work(before.warm_up)?;
            self.mark()?;
        }
        let mut quota = before;
        if before.probes > 0 {
            self.work(before.probes)?;
            let probe = total(&self.mark()?)?;
            quota.window = window(probe / before.probes);
        }
        let quota = settled.unwrap_or(quota);
        if settled.is_none() {
            quotas.decide(cell, quota);
        }
        Ok(Some(quota))
    }

    /// Counts a window; begins and ends with a mark, the first of which is there.
    fn window(&mut self, operations: u64) -> Result<Window, Problem> {
        let before = self.cpu_ns();
        let rows = self.work(operations)?;
        let file = self.mark()?;
        let beside = before.zip(self.cpu_ns()).and_then(|(before, after)| {
            let of = |after: u64, before: u64| to_f64(after.saturating_sub(before));
            let (own, others) = (of(after.0, before.0), of(after.1, before.1));
            (own > 0.0).then(|| others / own)
        });
        Ok(Window { file, rows, beside })
    }

    /// CPU of the backend and of all other processes of its server, ns.
    fn cpu_ns(&self) -> Option<(u64, u64)> {
        let run_ns = |pid: u32| Process::of(pid).schedstat().map(|found| found.cpu_ns);
        let backend = self.sends.pid();
        let own = run_ns(backend)?;
        let tree = process_tree(self.visit.at_rest.server.postmaster_pid).ok()?;
        let others = tree.into_iter().filter(|pid| *pid != backend);
        Some((own, others.filter_map(run_ns).sum()))
    }

    /// Does operations from the latest mark on.
    fn work(&mut self, operations: u64) -> Result<u64, Problem> {
        if self.attended(S::undo)? {
            self.mark()?;
        }
        self.attended(|sends| sends.work(operations))
    }

    /// Has statements done that may wait for the WAL writer.
    fn attended<T>(&mut self, done: impl FnOnce(&mut S) -> T) -> T {
        let backend = self.sends.pid();
        match &self.wal_writer {
            Some(stopped) => stopped.while_working(backend, || done(self.sends)),
            None => done(self.sends),
        }
    }

    fn tell_if_it_waited(&self) {
        let (_, cell) = self.visit.cell;
        if self.wal_writer.as_ref().is_some_and(Stopped::went_on) {
            self.visit.client.note(&format!(
                "a statement of {} waited for seconds, so the WAL writer goes on, and starts may differ",
                cell.workload
            ));
        }
    }

    /// Marks the end of what came before; the file says what that was.
    fn mark(&mut self) -> Result<PathBuf, Problem> {
        self.sends.ask(Counter::MARK_SQL).map_err(|error| {
            Problem::new("the server did not answer a mark of the counter")
                .detail(error.to_string())
        })?;
        self.marks.next()
    }
}

/// Operations of an executable, in slices.
struct Sliced<'a> {
    visit: &'a Visit<'a>,
    lane: Lane,
    /// Operations done so far: where sequences go on.
    done: u64,
    /// Slices so far: each has keys of its own, the same on every server and in every start.
    slices: u32,
}

impl Sends for Sliced<'_> {
    fn pid(&self) -> u32 {
        self.lane.backend_pids(0).first().copied().unwrap_or(0)
    }

    fn undo(&mut self) -> Result<bool, Problem> {
        Ok(false)
    }

    fn work(&mut self, operations: u64) -> Result<u64, Problem> {
        let (id, cell) = self.visit.cell;
        let outcome = self.lane.run_slice(
            0,
            SliceRequest {
                operations,
                seed: parameters(self.visit.client.plan, 0, id, self.slices),
                first_operation: self.done,
            },
        );
        self.done += operations;
        self.slices += 1;
        if outcome.void.is_none() && outcome.failed == 0 {
            return Ok(outcome.rows);
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

    fn ask(&mut self, sql: &str) -> Result<(), WireError> {
        self.lane.ask(0, sql)
    }
}
