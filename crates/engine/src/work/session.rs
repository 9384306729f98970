//! A database from its making to its end: its steps, and what it says of them.

use super::crew::Crew;
use super::figures::{self, Counted, Own, Reading};
use super::hand::Kit;
use super::{idle, mark, meters};
use crate::keys;
use crate::library::{Database, Library, Options, ReadOptions, WriteOptions};
use crate::options::{self, Purpose};
use crate::protocol::{OpenOrder, Opened, StepOrder, TurnOrder, Turned};
use deltabench_model::plan::Group;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::rocksdb::{BlockCache, RocksdbStep, StepFigures};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Option that says how many files of level 0 are too many.
const LEVEL_0_TRIGGER: &str = "level0_file_num_compaction_trigger";

/// Key of a figure of steps that write: CPU of the process from the end of the last turn to that of the step,
/// which flushes or waits there, nanoseconds.
pub const FINISH_CPU_NS: &str = "finish_cpu_ns";

/// A database at work.
pub struct Session {
    library: &'static Library,
    order: OpenOrder,
    /// First two numbers of the library's version, where they matter.
    version: (u32, u32),
    /// What the library said when it was opened for work.
    level_0_trigger: String,
    text: Arc<[u8]>,
    /// The open database; absent if it could not be opened again.
    kit: Option<Arc<Kit>>,
    step: Option<Step>,
    clock: Clock,
    answer_bytes: u64,
}

/// A step that was begun.
struct Step {
    order: StepOrder,
    /// Its threads, if threads do it.
    crew: Option<Crew>,
    /// Before its first turn that was not counted.
    before: Reading,
    /// Whether the largest memory is that of the step.
    knows_rss: bool,
    /// Keys loaded so far, of a step that loads.
    loaded: u64,
    /// Operations from the first turn on that was not counted: what [`Step::before`] is the start of.
    operations: u64,
    counted: Counted,
}

/// Which time was the worker's own.
#[derive(Default)]
struct Clock {
    /// Time in which orders were carried out, those before this one.
    active: Duration,
    /// When this one came.
    since: Option<Instant>,
    /// When the last one was answered, and the flushes and compactions that were frozen then.
    left: Option<(Instant, u32)>,
    /// Time for which they were, summed.
    suspended: Duration,
}

impl Session {
    /// Loads the library and makes an empty database.
    ///
    /// Errors: sizes that make no database; the words of the loader, of the system, of the library.
    pub fn open(order: OpenOrder) -> Result<(Self, Opened), String> {
        let setup = &order.setup;
        if setup.keys == 0 || setup.key_bytes == 0 {
            return Err("a database needs keys of at least one byte".to_owned());
        }
        let library = Library::load(&order.library)?;
        let directory = order.directory.clone();
        let words = |error: std::io::Error| format!("{}: {error}", directory.display());
        std::fs::create_dir(&directory).map_err(words)?;
        let opened = Self::open_in(library, order);
        if opened.is_err() {
            // Whoever asks again asks for an empty one; what was refused is what is to be told.
            let _ = std::fs::remove_dir_all(&directory);
        }
        opened
    }

    /// As [`Session::open`], in a directory that is there and empty.
    fn open_in(library: &'static Library, order: OpenOrder) -> Result<(Self, Opened), String> {
        let mut version = (0, 0);
        if order.cache == BlockCache::HyperClock {
            version = version_of(library, &order.directory)?;
        }
        let mut session = Self {
            library,
            version,
            level_0_trigger: String::new(),
            text: keys::text(order.setup.value_bytes),
            kit: None,
            step: None,
            clock: Clock::default(),
            answer_bytes: 0,
            order,
        };
        let mut opened = session.connect(Purpose::Working)?;
        opened.in_force = options::in_force(&session.order.directory)?;
        let trigger = opened.in_force.get(&format!("CFOptions.{LEVEL_0_TRIGGER}"));
        session.level_0_trigger = trigger.cloned().unwrap_or_else(|| "4".to_owned());
        Ok((session, opened))
    }

    /// Opens the database, closing it first if it is open.
    fn connect(&mut self, purpose: Purpose) -> Result<Opened, String> {
        self.kit = None;
        let taken = options::take(self.library, &self.order, purpose, self.version)?;
        let database = Database::open(self.library, &taken.options, &self.order.directory)?;
        self.kit = Some(Arc::new(Kit {
            library: self.library,
            database,
            reads: ReadOptions::new(self.library),
            writes: WriteOptions::new(self.library, purpose == Purpose::Working),
            setup: self.order.setup.clone(),
            text: Arc::clone(&self.text),
        }));
        Ok(Opened {
            left_out: taken.left_out,
            cache: taken.cache,
            batches: self.library.looks_up_batches(),
            ..Opened::default()
        })
    }

    /// An order has come.
    pub fn thawed(&mut self) {
        let now = Instant::now();
        if let Some((left, jobs)) = self.clock.left.take() {
            self.clock.suspended += (now - left) * jobs;
        }
        self.clock.since = Some(now);
    }

    /// It is about to be answered; the worker is frozen from here on.
    pub fn freezing(&mut self) {
        let jobs = self.kit.as_ref().map_or(0, |kit| idle::jobs(&kit.database));
        let now = Instant::now();
        if let Some(since) = self.clock.since.take() {
            self.clock.active += now - since;
        }
        self.clock.left = Some((now, u32::try_from(jobs).unwrap_or(u32::MAX)));
    }

    /// An answer of so many bytes was written.
    pub fn answered(&mut self, bytes: usize) {
        self.answer_bytes += count(bytes);
    }

    fn kit(&self) -> Result<&Arc<Kit>, String> {
        let kit = self.kit.as_ref();
        kit.ok_or_else(|| "the database is not open: opening it again has failed".to_owned())
    }

    fn read(&self) -> Result<Reading, String> {
        let running = self
            .clock
            .since
            .map_or(Duration::ZERO, |since| since.elapsed());
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let own = Own {
            active_ns: ns(self.clock.active + running),
            suspended_job_ns: ns(self.clock.suspended),
            answer_bytes: self.answer_bytes,
        };
        Ok(Reading::of(&self.kit()?.database, own))
    }

    /// Carries a step out that nobody measures; how long it took, nanoseconds, and what moved.
    ///
    /// Errors: the library's words; a step that is measured and has no end of its own.
    pub fn prepare(&mut self, order: StepOrder) -> Result<(u64, StepFigures), String> {
        let began = Instant::now();
        let setup = &self.order.setup;
        let operations = match order.step {
            RocksdbStep::Drain | RocksdbStep::FlushMtL0 => 0,
            // Finishing loads all keys that no turn has loaded.
            RocksdbStep::Fillseq => 0,
            RocksdbStep::Overwritesome => (setup.keys / 10).max(1),
            step => return Err(format!("{} is measured, and not prepared", step.name())),
        };
        self.begin(order)?;
        let mut done = Ok(());
        if operations > 0 {
            let turn = TurnOrder {
                number: 0,
                operations,
                counted: false,
                settle: false,
            };
            done = self
                .turn(turn, false)
                .and_then(|turned| all_went_well(&turned));
        }
        let done = done.and_then(|()| match order.step {
            // How many files a load leaves in level 0 is chance, and every one of them costs an iterator.
            RocksdbStep::Drain | RocksdbStep::FlushMtL0 => idle::empty_level_0(
                &self.kit()?.database,
                LEVEL_0_TRIGGER,
                &self.level_0_trigger,
            ),
            _ => Ok(()),
        });
        if let Err(words) = done {
            self.step = None;
            return Err(words);
        }
        let figures = self.finish()?;
        let duration = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok((duration, figures))
    }

    /// Gets ready for a step.
    ///
    /// Errors: another one was begun and not finished; the library's words.
    pub fn begin(&mut self, order: StepOrder) -> Result<(), String> {
        if let Some(step) = &self.step {
            let begun = step.order.step.name();
            return Err(format!("{begun} is not finished"));
        }
        if order.step == RocksdbStep::Fillseq {
            self.connect(Purpose::Loading)?;
        }
        let crew = match order.step {
            RocksdbStep::Drain | RocksdbStep::FlushMtL0 => None,
            _ => Some(Crew::new(self.kit()?, order)?),
        };
        self.step = Some(Step {
            order,
            crew,
            knows_rss: meters::forget_largest_rss(),
            before: self.read()?,
            loaded: 0,
            operations: 0,
            counted: Counted::default(),
        });
        Ok(())
    }

    /// Does some of it; `marked`: between marks of a counter of instructions.
    ///
    /// Errors: no step was begun, or none that is done in turns; a thread of it has ended; a key of a load
    ///         was refused; what was to be worked off after it failed.
    pub fn turn(&mut self, mut order: TurnOrder, marked: bool) -> Result<Turned, String> {
        let first = !order.counted && self.step.as_ref().is_some_and(|step| step.operations == 0);
        let before = if first { Some(self.read()?) } else { None };
        let keys = self.order.setup.keys;
        let step = self.step.as_mut().ok_or("no step was started")?;
        let crew = step.crew.as_mut().ok_or("the step is not done in turns")?;
        step.before = before.unwrap_or_else(|| step.before.clone());
        if step.order.step == RocksdbStep::Fillseq {
            order.operations = order.operations.min(keys - step.loaded);
        }
        if marked {
            mark::begin();
        }
        let turned = crew.turn(order, step.loaded);
        if marked {
            mark::end();
        }
        let turned = turned?;
        if step.order.step == RocksdbStep::Fillseq {
            // Every step after it would work on a smaller database.
            all_went_well(&turned)?;
        }
        step.loaded += order.operations;
        if order.counted {
            step.counted.operations += turned.operations;
            if step.order.step.group() == Group::Range {
                step.counted.moves += turned.rows;
            }
            for (name, counted) in &turned.counted {
                *step.counted.counts.entry(name.clone()).or_default() += counted;
            }
        }
        if !order.counted || step.operations > 0 {
            step.operations += turned.operations;
        }
        if order.settle {
            idle::wait(&self.kit()?.database)?;
        }
        Ok(turned)
    }

    /// Ends the step: waits where it waits; what moved from its first turn on that was not counted.
    ///
    /// Errors: no step was begun; the library's words.
    pub fn finish(&mut self) -> Result<StepFigures, String> {
        let mut drained = None;
        match self.step.as_ref().map(|step| step.order.step) {
            None => return Err("no step was started".to_owned()),
            Some(RocksdbStep::Fillseq) => {
                self.load_the_rest()?;
                self.kit()?.database.flush()?;
            }
            Some(RocksdbStep::Overwriteandwait) => {
                drained = Some(idle::wait(&self.kit()?.database)?);
            }
            Some(_) => {}
        }
        let cpu = meters::process_cpu();
        let after = self.read()?;
        let Some(step) = self.step.take() else {
            return Err("no step was started".to_owned());
        };
        let mut figures = after.since(&step.before);
        figures.extend(figures::gauges(&self.kit()?.database, step.knows_rss));
        figures.extend(figures::scaled(&step.counted, step.operations));
        if let Some(drained) = drained {
            let ns = u64::try_from(drained.as_nanos()).unwrap_or(u64::MAX);
            figures.insert("drain_ns".to_owned(), to_f64(ns));
        }
        if let (true, Some(crew)) = (step.order.step.writes(), &step.crew) {
            // What a version puts off is paid for, too.
            let ns = cpu.saturating_sub(crew.cpu_at_end());
            figures.insert(FINISH_CPU_NS.to_owned(), to_f64(ns));
        }
        let loaded = step.order.step == RocksdbStep::Fillseq;
        // Its threads hold the database open.
        drop(step);
        if loaded {
            self.connect(Purpose::Working)?;
        }
        Ok(figures)
    }

    /// Loads what the turns of a load have not: the database has all its keys after it, whatever became of
    /// its rounds.
    fn load_the_rest(&mut self) -> Result<(), String> {
        let Some(step) = &mut self.step else {
            return Ok(());
        };
        let rest = self.order.setup.keys - step.loaded;
        let (Some(crew), true) = (&mut step.crew, rest > 0) else {
            return Ok(());
        };
        let turn = TurnOrder {
            number: u32::MAX,
            operations: rest,
            counted: false,
            settle: false,
        };
        all_went_well(&crew.turn(turn, step.loaded)?)?;
        step.loaded += rest;
        Ok(())
    }
}

/// A state that lacks some of its writes is not the state that was asked for.
fn all_went_well(turned: &Turned) -> Result<(), String> {
    turned.first_error.clone().map_or(Ok(()), Err)
}

/// The version of a library, which tells it only in the option file of a database. None is left behind.
fn version_of(library: &'static Library, directory: &Path) -> Result<(u32, u32), String> {
    let beside = directory.join("version");
    drop(Database::open(library, &Options::new(library), &beside)?);
    let version = options::version(&options::in_force(&beside)?);
    let removed = std::fs::remove_dir_all(&beside);
    removed.map_err(|error| format!("{}: {error}", beside.display()))?;
    version
}
