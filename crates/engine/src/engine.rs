//! An engine as the rest of deltabench sees it: a database of one target, told what to do.

use crate::db_bench::DbBench;
use crate::process::Worker;
use crate::protocol::{Opened, StepOrder, TurnOrder, Turned};
use crate::spec::{EngineError, EngineSpec, Prepared};
use deltabench_model::installation::Engine as Kind;
use deltabench_model::work::rocksdb::StepFigures;

/// A database of one target, and the process that works it. Between two calls it is frozen: nothing of it
/// uses a core. Dropping it kills the process; the directory is the caller's to remove.
pub struct Engine<'i> {
    inner: Inner<'i>,
}

enum Inner<'i> {
    Worker(Worker<'i>),
    DbBench(Box<DbBench<'i>>),
}

impl<'i> Engine<'i> {
    /// Starts it with an empty database. Must be called on a thread that outlives the engine: the kernel
    /// ends the process with the thread that started it.
    ///
    /// Errors: the library's words about an option or about itself; a directory that cannot be made.
    pub fn start(spec: EngineSpec<'_, 'i>) -> Result<(Self, Opened), EngineError> {
        let made = spec.user.make_directory(spec.directory);
        made.map_err(|problem| EngineError::of_problem(&problem))?;
        let (inner, opened) = match spec.installation.engine {
            Kind::Rocksdb => {
                let (worker, opened) = Worker::start(spec)?;
                (Inner::Worker(worker), opened)
            }
            Kind::DbBench => {
                let (bench, opened) = DbBench::start(spec)?;
                (Inner::DbBench(Box::new(bench)), opened)
            }
            Kind::Postgres => {
                let what = &spec.installation.resolved;
                return Err(EngineError::Failed(format!(
                    "{what} is not an embedded engine"
                )));
            }
        };
        Ok((Self { inner }, opened))
    }

    /// Process id of the worker; 0 for a `db_bench` between its steps, which has no process then.
    pub fn pid(&self) -> u32 {
        match &self.inner {
            Inner::Worker(worker) => worker.pid(),
            Inner::DbBench(bench) => bench.pid(),
        }
    }

    /// Carries an unmeasured step out.
    ///
    /// Errors: see [`EngineError`]; after anything but [`EngineError::Failed`] the engine is of no more use.
    pub fn prepare(&mut self, order: StepOrder) -> Result<Prepared, EngineError> {
        match &mut self.inner {
            Inner::Worker(worker) => worker.prepare(order),
            Inner::DbBench(bench) => bench.prepare(order),
        }
    }

    /// Gets ready for a measured step.
    ///
    /// Errors: as [`Engine::prepare`].
    pub fn begin(&mut self, order: StepOrder) -> Result<(), EngineError> {
        match &mut self.inner {
            Inner::Worker(worker) => worker.begin(order),
            Inner::DbBench(bench) => bench.begin(order),
        }
    }

    /// Does some of the step that was begun. A `db_bench` does all of it, whatever the number of
    /// operations, and never counts: its turn that is to be counted does nothing.
    ///
    /// Errors: as [`Engine::prepare`].
    pub fn turn(&mut self, order: TurnOrder) -> Result<Turned, EngineError> {
        match &mut self.inner {
            Inner::Worker(worker) => worker.turn(order),
            Inner::DbBench(bench) => bench.turn(order),
        }
    }

    /// As [`Engine::turn`] in front of the counter that the engine was started under, which writes down what
    /// it counted.
    ///
    /// Errors: as [`Engine::prepare`]; a `db_bench`, which has no turns that could be counted.
    pub fn count(&mut self, order: TurnOrder) -> Result<Turned, EngineError> {
        match &mut self.inner {
            Inner::Worker(worker) => worker.count(order),
            Inner::DbBench(_) => Err(EngineError::Failed(
                "a db_bench cannot be counted: it does whole steps".to_owned(),
            )),
        }
    }

    /// Ends the step that was begun, waiting where it waits.
    ///
    /// Errors: as [`Engine::prepare`].
    pub fn finish(&mut self) -> Result<StepFigures, EngineError> {
        match &mut self.inner {
            Inner::Worker(worker) => worker.finish(),
            Inner::DbBench(bench) => bench.finish(),
        }
    }

    /// Closes the database and ends the process; by force if it will not go.
    ///
    /// Errors: the library's words about closing, or how it ended instead. The process is gone in any case.
    pub fn stop(self) -> Result<(), EngineError> {
        match self.inner {
            Inner::Worker(worker) => worker.stop(),
            Inner::DbBench(_) => Ok(()),
        }
    }
}
