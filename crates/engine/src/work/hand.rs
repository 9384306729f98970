//! What one thread does in a turn of a step.

use super::meters;
use crate::keys::Source;
use crate::library::{Counting, Database, Library, Lookup, ReadOptions, WriteOptions};
use crate::protocol::StepOrder;
use deltabench_model::units::index;
use deltabench_model::work::rocksdb::{MULTI_READ_BATCH, RocksdbSetup, RocksdbStep, SEEK_NEXTS};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Name of our own count beside those of the performance context: keys that were found and for which no block
/// was looked at.
pub const FOUND_IN_MEMTABLES: &str = "found_in_memtables";

/// Bytes of each value that a walk copies, so that it has read it. `db_bench` copies as many.
const COPIED_BYTES: usize = 256;

/// What all threads of a database share.
pub struct Kit {
    pub library: &'static Library,
    pub database: Database,
    pub reads: ReadOptions,
    pub writes: WriteOptions,
    pub setup: RocksdbSetup,
    /// What values are cut from.
    pub text: Arc<[u8]>,
}

impl Kit {
    /// Keys and values for a thread.
    pub fn source(&self) -> Source {
        let setup = &self.setup;
        Source::new(
            setup.keys,
            setup.key_bytes,
            setup.value_bytes,
            Arc::clone(&self.text),
        )
    }
}

/// A turn as its threads see it together.
pub struct Moment {
    pub seed: u64,
    pub number: u32,
    /// Threads that are not done yet.
    running: AtomicUsize,
    /// Set when none is left.
    over: AtomicBool,
    /// CPU of the process at that moment, nanoseconds.
    cpu_at_end: AtomicU64,
}

impl Moment {
    /// Before it begins.
    pub fn new(seed: u64, number: u32, threads: usize) -> Self {
        Self {
            seed,
            number,
            running: AtomicUsize::new(threads),
            over: AtomicBool::new(false),
            cpu_at_end: AtomicU64::new(0),
        }
    }

    /// Whether all threads that count are done.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// CPU of the process when the last thread was done.
    pub fn cpu_at_end(&self) -> u64 {
        self.cpu_at_end.load(Ordering::Acquire)
    }

    /// One thread is done. Only [`Leaving`] says it.
    fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.cpu_at_end
                .store(meters::process_cpu(), Ordering::Release);
            self.over.store(true, Ordering::Release);
        }
    }
}

/// Leaves a turn when it is dropped: a hand that panics leaves it, too, and the writer, which works until all
/// hands are done, ends.
struct Leaving<'a>(&'a Moment);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let Self(moment) = self;
        moment.leave();
    }
}

/// One thread's part of a turn.
pub struct Job {
    pub operations: u64,
    /// The first key of a load.
    pub first_key: u64,
    pub counted: bool,
    /// Where latencies go; empty.
    pub histogram: Histogram<u64>,
    pub moment: Arc<Moment>,
}

/// What became of it.
pub struct Done {
    pub operations: u64,
    /// Operations that the library refused.
    pub failed: u64,
    /// Keys found or gone over.
    pub rows: u64,
    /// Before the first operation.
    pub began: Instant,
    /// After the last one.
    pub ended: Instant,
    /// Latencies of those that succeeded, nanoseconds.
    pub histogram: Histogram<u64>,
    pub counted: BTreeMap<String, u64>,
    pub first_error: Option<String>,
}

/// What an operation is.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Load,
    Overwrite,
    Get,
    MultiGet,
    Forward,
    Backward,
}

impl Doing {
    fn of(step: RocksdbStep) -> Option<Self> {
        Some(match step {
            RocksdbStep::Fillseq => Self::Load,
            RocksdbStep::Overwritesome | RocksdbStep::Overwriteandwait => Self::Overwrite,
            RocksdbStep::Readrandom | RocksdbStep::Readwhilewriting => Self::Get,
            RocksdbStep::Multireadrandom => Self::MultiGet,
            RocksdbStep::Fwdrange | RocksdbStep::Fwdrangewhilewriting => Self::Forward,
            RocksdbStep::Revrangewhilewriting => Self::Backward,
            RocksdbStep::Drain | RocksdbStep::FlushMtL0 => return None,
        })
    }
}

/// A thread's own things for a step.
pub struct Hand {
    kit: Arc<Kit>,
    doing: Doing,
    batched: bool,
    thread: u32,
    source: Source,
    lookup: Lookup,
    copy: [u8; COPIED_BYTES],
}

impl Hand {
    /// For the thread with that number; nothing for steps that no thread does.
    pub fn new(kit: &Arc<Kit>, order: StepOrder, thread: u32) -> Option<Self> {
        Some(Self {
            kit: Arc::clone(kit),
            doing: Doing::of(order.step)?,
            batched: order.batched,
            thread,
            source: kit.source(),
            lookup: Lookup::of(0),
            copy: [0; COPIED_BYTES],
        })
    }

    /// Does its part of a turn.
    pub fn carry_out(&mut self, job: Job) -> Done {
        let leaving = Leaving(&job.moment);
        self.source
            .begin(job.moment.seed, job.moment.number, self.thread);
        let counting = job.counted.then(|| Counting::begin(self.kit.library));
        let mut tally = Tally::begin(job.histogram);
        let mut in_memtables = 0;
        match self.doing {
            Doing::Load => self.load(job.first_key, job.operations, &mut tally),
            Doing::Overwrite => self.overwrite(job.operations, &mut tally),
            Doing::Get => match &counting {
                None => self.get(job.operations, &mut tally),
                Some(counting) => {
                    in_memtables = self.get_counted(job.operations, counting, &mut tally);
                }
            },
            Doing::MultiGet => self.multi_get(job.operations, &mut tally),
            Doing::Forward => self.walk(job.operations, true, &mut tally),
            Doing::Backward => self.walk(job.operations, false, &mut tally),
        }
        drop(leaving);
        let mut done = tally.done();
        if let Some(counting) = counting {
            done.counted = counting.counts();
            if matches!(self.doing, Doing::Get) {
                done.counted
                    .insert(FOUND_IN_MEMTABLES.to_owned(), in_memtables);
            }
        }
        done
    }

    fn load(&mut self, first: u64, operations: u64, tally: &mut Tally) {
        for number in first..first + operations {
            let (key, value) = self.source.entry(number);
            let put = self.kit.database.put(&self.kit.writes, key, value);
            tally.note(1, put.map(|()| 0));
        }
    }

    fn overwrite(&mut self, operations: u64, tally: &mut Tally) {
        for _ in 0..operations {
            let (key, value) = self.source.any_entry();
            let put = self.kit.database.put(&self.kit.writes, key, value);
            tally.note(1, put.map(|()| 0));
        }
    }

    fn get(&mut self, operations: u64, tally: &mut Tally) {
        for _ in 0..operations {
            let key = self.source.any_key();
            let got = self.kit.database.get(&self.kit.reads, key);
            tally.note(1, got.map(|value| u64::from(value.is_some())));
        }
    }

    /// As [`Hand::get`]; how many keys were found without a block, which memtables do and nothing else.
    fn get_counted(&mut self, operations: u64, counting: &Counting, tally: &mut Tally) -> u64 {
        let mut without_blocks = 0;
        for _ in 0..operations {
            let before = counting.blocks();
            let key = self.source.any_key();
            let got = self.kit.database.get(&self.kit.reads, key);
            let found = matches!(got, Ok(Some(_)));
            without_blocks += u64::from(found && counting.blocks() == before);
            tally.note(1, got.map(|value| u64::from(value.is_some())));
        }
        without_blocks
    }

    /// An operation is a key, as published; each key of a look-up waited for all of it.
    fn multi_get(&mut self, operations: u64, tally: &mut Tally) {
        let mut left = operations;
        while left > 0 {
            let keys = left.min(u64::from(MULTI_READ_BATCH));
            self.lookup.keys.resize(index(keys), Vec::new());
            for key in &mut self.lookup.keys {
                key.clear();
                key.extend_from_slice(self.source.any_key());
            }
            let found =
                self.kit
                    .database
                    .multi_get(&self.kit.reads, &mut self.lookup, self.batched);
            tally.note(keys, found);
            left -= keys;
        }
    }

    fn walk(&mut self, operations: u64, forward: bool, tally: &mut Tally) {
        for _ in 0..operations {
            let mut cursor = self.kit.database.cursor(&self.kit.reads);
            cursor.seek(self.source.any_key());
            let mut rows = 0;
            for _ in 0..SEEK_NEXTS {
                let Some((_, value)) = cursor.entry() else {
                    break;
                };
                let copied = value.len().min(COPIED_BYTES);
                if let (Some(to), Some(from)) = (self.copy.get_mut(..copied), value.get(..copied)) {
                    to.copy_from_slice(from);
                }
                black_box(&self.copy);
                rows += 1;
                if forward {
                    cursor.forward();
                } else {
                    cursor.backward();
                }
            }
            let status = cursor.status();
            // Ending it is part of its work: it lets go of what it held in memory.
            drop(cursor);
            tally.note(1, status.map(|()| rows));
        }
    }
}

/// Counts and latencies of one thread's part. The clock is read once for each operation: an operation ends
/// where the next one begins, so that making its key is part of it, as in `db_bench`.
struct Tally {
    done: Done,
}

impl Tally {
    fn begin(histogram: Histogram<u64>) -> Self {
        let now = Instant::now();
        Self {
            done: Done {
                operations: 0,
                failed: 0,
                rows: 0,
                began: now,
                ended: now,
                histogram,
                counted: BTreeMap::new(),
                first_error: None,
            },
        }
    }

    #[inline]
    fn note(&mut self, operations: u64, result: Result<u64, String>) {
        let now = Instant::now();
        let done = &mut self.done;
        let latency = u64::try_from((now - done.ended).as_nanos()).unwrap_or(u64::MAX);
        done.ended = now;
        match result {
            Ok(rows) => {
                done.operations += operations;
                done.rows += rows;
                done.histogram.saturating_record_n(latency, operations);
            }
            Err(words) => {
                done.failed += operations;
                done.first_error.get_or_insert(words);
            }
        }
    }

    fn done(self) -> Done {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_its_last_hand_panics() {
        let moment = Moment::new(1, 1, 2);
        drop(Leaving(&moment));
        assert!(!moment.is_over(), "another hand works");
        let panicked = std::panic::catch_unwind(|| {
            let _leaving = Leaving(&moment);
            panic!("as a hand whose library does what it must not");
        });
        assert!(panicked.is_err() && moment.is_over());
    }
}
