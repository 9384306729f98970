//! A step by one thread, or by several.
//!
//! Each thread has clients of its own, with their tables and connections, so threads share nothing while they
//! work. The calling thread has the long transaction too.

use super::meeting::Crew;
use super::tally::{Fault, StepTally};
use super::traffic::Traffic;
use super::turns::Turns;
use super::{End, StepSpec, roles};
use crate::scan::Loss;
use std::io;
use std::thread::{Builder, ScopedJoinHandle};

/// Ends the step of all threads when it is dropped.
struct Dismissal<'c> {
    crew: &'c Crew,
    /// Whether this is an end as planned, which is no concern of the others.
    is_planned: bool,
}

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        if !self.is_planned {
            self.crew.stop();
        }
    }
}

/// The step in the calling thread, which has the long transaction if there is one, and one more thread for
/// each of the others. `tally` has the counts of all in the end.
///
/// A thread that cannot be started makes the step a lost one.
pub fn run(
    first: &mut Traffic,
    others: &mut [Traffic],
    spec: &StepSpec<'_>,
    (tally, turns): (&mut StepTally, Option<Turns<'_>>),
) -> End {
    let batches = turns.as_ref().map(|turns| turns.batches);
    let crew = &match Crew::new(batches, !others.is_empty()) {
        Ok(crew) => crew,
        Err(error) => return first.not_begun(no_thread(&error)),
    };
    let mut refused = None;
    let mut ends = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(others.len());
        for traffic in others {
            let begun = Builder::new().spawn_scoped(scope, move || beside(traffic, spec, crew));
            match begun {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    refused = Some(no_thread(&error));
                    crew.stop();
                }
            }
        }
        // Whatever happens: nobody waits for a thread that has ended.
        let dismissal = Dismissal {
            crew,
            is_planned: false,
        };
        let mut ends = vec![first.run(spec, tally, crew.first(threads.len(), turns))];
        drop(dismissal);
        for thread in threads {
            let (end, counts) = joined(thread);
            tally.add(counts);
            ends.push(end);
        }
        ends
    });
    if let (Some(end), Some(refused)) = (ends.first_mut(), refused) {
        end.fault = Some(refused);
    }
    End::of_all(ends)
}

fn no_thread(error: &io::Error) -> Fault {
    Fault::lost("a thread of the client", &Loss::Closed(error.to_string()))
}

/// The part of another thread.
fn beside(traffic: &mut Traffic, spec: &StepSpec<'_>, crew: &Crew) -> (End, StepTally) {
    let mut dismissal = Dismissal {
        crew,
        is_planned: false,
    };
    let mut tally = StepTally::new(roles(spec.step));
    let end = traffic.run(spec, &mut tally, crew.other());
    dismissal.is_planned = end.fault.is_none();
    drop(dismissal);
    (end, tally)
}

/// What a thread came to; a panic in it goes on in this one.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
