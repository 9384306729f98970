//! A worker to give orders to, with a database in a directory of its own.

use deltabench_engine::{Answer, OpenOrder, Opened, Order, StepOrder, TurnOrder, Turned};
use deltabench_model::work::rocksdb::{
    BlockCache, RocksdbSetup, RocksdbStep, RocksdbWorkload, StepFigures, WRITER_BYTES_PER_SECOND,
};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Keys of a test's database: they fit into one memtable, so that no compaction's timing shows.
pub const KEYS: u64 = 20_000;

/// All libraries to test with, oldest first.
pub fn libraries() -> Vec<PathBuf> {
    let listed = std::env::var_os("DELTABENCH_TEST_ROCKSDB").unwrap_or_default();
    let libraries: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    assert!(
        !libraries.is_empty(),
        "no RocksDB to test with: set DELTABENCH_TEST_ROCKSDB=LIB.so[:LIB.so...], oldest first; \
         `deltabench rocksdb` keeps those that it fetched in rocksdb/ of its cache"
    );
    libraries
}

/// Whether that library has a HyperClock cache.
pub fn has_hyper_clock(library: &Path) -> bool {
    let bytes = std::fs::read(library).unwrap();
    let name = b"rocksdb_cache_create_hyper_clock_opts\0";
    bytes.windows(name.len()).any(|window| window == name)
}

/// A setup that tests change.
pub fn setup() -> RocksdbSetup {
    RocksdbSetup {
        workload: RocksdbWorkload::Byrx,
        keys: KEYS,
        key_bytes: 20,
        value_bytes: 400,
        threads: vec![1],
        seconds: 1,
        writer_bytes_per_second: WRITER_BYTES_PER_SECOND,
        steps: RocksdbStep::ALL.to_vec(),
        cache_bytes: 64 << 20,
        background_jobs: 2,
        options: Vec::new(),
    }
}

/// What to open.
pub fn opening(library: &Path, setup: RocksdbSetup) -> OpenOrder {
    OpenOrder {
        library: library.to_path_buf(),
        directory: PathBuf::new(),
        setup,
        cache: BlockCache::Lru,
        options: Vec::new(),
    }
}

/// A worker of the test's.
pub struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

impl Worker {
    /// One that has been told nothing yet.
    pub fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_deltabench-engine-worker"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        }
    }

    /// One with an open database.
    pub fn open(library: &Path, setup: RocksdbSetup) -> Self {
        let mut worker = Self::start();
        worker.opened(opening(library, setup));
        worker
    }

    /// One with all keys loaded and nothing left in level 0.
    pub fn loaded(library: &Path, setup: RocksdbSetup) -> Self {
        let mut worker = Self::open(library, setup);
        for step in [
            RocksdbStep::Fillseq,
            RocksdbStep::Drain,
            RocksdbStep::FlushMtL0,
        ] {
            worker.prepare(step);
        }
        worker
    }

    /// Gives an order, in a line of one's own making.
    pub fn say(&mut self, line: &str) -> Option<Answer> {
        writeln!(self.orders.as_ref().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).ok()
    }

    /// Gives an order.
    pub fn ask(&mut self, order: &Order) -> Answer {
        let line = serde_json::to_string(order).unwrap();
        let answer = self.say(&line);
        answer.unwrap_or_else(|| panic!("no answer to {line}: {:?}", self.child.wait()))
    }

    /// Opens a database in a place of the test's.
    pub fn try_open(&mut self, mut order: OpenOrder) -> Result<Opened, String> {
        order.directory = self.directory.path().join("db");
        match self.ask(&Order::Open(Box::new(order))) {
            Answer::Opened(opened) => Ok(*opened),
            Answer::Failed(words) => Err(words),
            other => panic!("{other:?}"),
        }
    }

    /// As [`Worker::try_open`], which must succeed.
    pub fn opened(&mut self, order: OpenOrder) -> Opened {
        let library = order.library.clone();
        let opened = self.try_open(order);
        opened.unwrap_or_else(|words| panic!("{}: {words}", library.display()))
    }

    /// Carries an unmeasured step out.
    pub fn prepare(&mut self, step: RocksdbStep) -> StepFigures {
        match self.ask(&Order::Prepare(one_thread(step))) {
            Answer::Prepared { figures, .. } => figures,
            other => panic!("{}: {other:?}", step.name()),
        }
    }

    /// Begins a step.
    pub fn begin(&mut self, order: StepOrder) {
        assert_eq!(self.ask(&Order::Begin(order)), Answer::Ready, "{order:?}");
    }

    /// Does a turn, all of which must succeed.
    pub fn turn(&mut self, number: u32, operations: u64, counted: bool) -> Turned {
        let order = Order::Turn(TurnOrder {
            number,
            operations,
            counted,
            settle: false,
        });
        match self.ask(&order) {
            Answer::Turned(turned) => {
                assert_eq!(turned.first_error, None);
                *turned
            }
            other => panic!("{order:?}: {other:?}"),
        }
    }

    /// Ends a step.
    pub fn finish(&mut self) -> StepFigures {
        match self.ask(&Order::Finish) {
            Answer::Finished(figures) => figures,
            other => panic!("{other:?}"),
        }
    }

    /// Removes the files of its database under it.
    pub fn lose_files(&self) {
        std::fs::remove_dir_all(self.directory.path().join("db")).unwrap();
    }

    /// A whole step of one counted turn.
    pub fn counted(&mut self, step: RocksdbStep, operations: u64) -> Turned {
        self.begin(one_thread(step));
        let turned = self.turn(0, operations, true);
        self.finish();
        turned
    }

    /// Closes the database; how the process ended.
    pub fn close(mut self) -> ExitStatus {
        assert_eq!(self.ask(&Order::Close), Answer::Closed);
        self.child.wait().unwrap()
    }

    /// Gives no more orders; how the process ended.
    pub fn leave(mut self) -> ExitStatus {
        self.orders = None;
        self.child.wait().unwrap()
    }
}

/// A step by one thread.
pub fn one_thread(step: RocksdbStep) -> StepOrder {
    StepOrder {
        step,
        threads: 1,
        seed: 42,
        batched: true,
    }
}
