//! The threads of a step. They live as long as the step and sleep between its turns.

use super::hand::{Done, Hand, Job, Kit, Moment};
use super::meters;
use super::writer::{Writer, Written};
use crate::protocol::{StepOrder, TurnOrder, Turned};
use deltabench_model::units::count;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest latency that is told apart, nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Significant digits of latencies.
const DIGITS: u8 = 3;

/// Threads for one step.
pub struct Crew {
    members: Vec<Member<Job, Done>>,
    writer: Option<Member<Arc<Moment>, Written>>,
    seed: u64,
    /// CPU of the process at the end of the latest turn, nanoseconds.
    cpu_at_end: u64,
    /// Histograms of turns before, to be filled again: new memory would be touched first in a turn.
    spare: Vec<Histogram<u64>>,
}

/// A thread that gets jobs and tells what became of them; it ends when it gets no more.
struct Member<J, D> {
    jobs: Option<SyncSender<J>>,
    done: Receiver<D>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static, D: Send + 'static> Member<J, D> {
    fn spawn(name: String, mut work: impl FnMut(J) -> D + Send + 'static) -> Result<Self, String> {
        let (jobs, orders) = sync_channel(1);
        let (results, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            for job in orders {
                if results.send(work(job)).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread.map_err(|error| format!("a thread cannot be made: {error}"))?),
        })
    }

    fn order(&self, job: J) -> Result<(), String> {
        let jobs = self.jobs.as_ref();
        let sent = jobs.is_some_and(|jobs| jobs.send(job).is_ok());
        sent.then_some(())
            .ok_or_else(|| "a thread of the step has ended".to_owned())
    }

    fn result(&self) -> Result<D, String> {
        let result = self.done.recv();
        result.map_err(|_| "a thread of the step has ended".to_owned())
    }
}

impl<J, D> Drop for Member<J, D> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so, and has been missed where its result was awaited.
            let _ = thread.join();
        }
    }
}

impl Crew {
    /// Gets threads ready.
    ///
    /// Errors: the step is not done by threads; no thread can be made.
    pub fn new(kit: &Arc<Kit>, order: StepOrder) -> Result<Self, String> {
        let step = order.step;
        let mut members = Vec::new();
        for place in 0..order.threads.max(1) {
            let Some(mut hand) = Hand::new(kit, order, place) else {
                return Err(format!("{} does not run in turns", step.name()));
            };
            let name = format!("work-{place}");
            members.push(Member::spawn(name, move |job| hand.carry_out(job))?);
        }
        let mut writer = None;
        if step.beside_a_writer() && kit.setup.writer_bytes_per_second > 0 {
            let mut beside = Writer::new(kit, order.threads);
            let write = move |moment: Arc<Moment>| beside.write(&moment);
            writer = Some(Member::spawn("writer".to_owned(), write)?);
        }
        Ok(Self {
            members,
            writer,
            seed: order.seed,
            cpu_at_end: meters::process_cpu(),
            spare: Vec::new(),
        })
    }

    /// Does a turn; where a step loads, from this key on.
    ///
    /// Errors: a thread of it has ended.
    pub fn turn(&mut self, order: TurnOrder, first_key: u64) -> Result<Turned, String> {
        while self.spare.len() < self.members.len() {
            self.spare.push(histogram()?);
        }
        let waited = meters::run_queue_wait();
        let moment = Arc::new(Moment::new(self.seed, order.number, self.members.len()));
        if let Some(writer) = &self.writer {
            writer.order(Arc::clone(&moment))?;
        }
        let members = count(self.members.len());
        let cpu = meters::process_cpu();
        let mut next_key = first_key;
        for (place, member) in (0..members).zip(&self.members) {
            let share = order.operations / members + u64::from(place < order.operations % members);
            member.order(Job {
                operations: share,
                first_key: next_key,
                counted: order.counted,
                histogram: self.spare.pop().map_or_else(histogram, Ok)?,
                moment: Arc::clone(&moment),
            })?;
            next_key += share;
        }
        let results: Result<Vec<Done>, String> = self.members.iter().map(Member::result).collect();
        let results = results?;
        let written = match &self.writer {
            Some(writer) => writer.result()?,
            None => Written::default(),
        };
        let waited_then = meters::run_queue_wait();
        let mut turned = together(&results)?;
        for mut done in results {
            done.histogram.reset();
            self.spare.push(done.histogram);
        }
        self.cpu_at_end = moment.cpu_at_end();
        turned.cpu_ns = self.cpu_at_end.saturating_sub(cpu);
        turned.run_queue_wait_ns = waited
            .zip(waited_then)
            .map(|(before, after)| after.saturating_sub(before));
        turned.writer_operations = written.operations;
        turned.failed += written.failed;
        turned.first_error = turned.first_error.or(written.first_error);
        Ok(turned)
    }

    /// CPU of the process at the end of the latest turn, nanoseconds.
    pub fn cpu_at_end(&self) -> u64 {
        self.cpu_at_end
    }
}

fn histogram() -> Result<Histogram<u64>, String> {
    let made = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
    made.map_err(|error| format!("histogram: {error}"))
}

/// What all threads did in a turn.
fn together(results: &[Done]) -> Result<Turned, String> {
    let began: Option<Instant> = results.iter().map(|done| done.began).min();
    let ended: Option<Instant> = results.iter().map(|done| done.ended).max();
    let duration = began
        .zip(ended)
        .map_or(Duration::ZERO, |(began, ended)| ended - began);
    let mut turned = Turned {
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        ..Turned::default()
    };
    let mut latencies = histogram()?;
    for done in results {
        turned.operations += done.operations;
        turned.failed += done.failed;
        turned.rows += done.rows;
        if turned.first_error.is_none() {
            turned.first_error.clone_from(&done.first_error);
        }
        for (name, counted) in &done.counted {
            *turned.counted.entry(name.clone()).or_default() += counted;
        }
        let added = latencies.add(&done.histogram);
        added.map_err(|error| format!("histogram: {error}"))?;
    }
    assert!(
        latencies.len() == turned.operations,
        "each operation has its latency"
    );
    V2Serializer::new()
        .serialize(&latencies, &mut turned.latency_histogram)
        .map_err(|error| format!("histogram: {error}"))?;
    Ok(turned)
}
