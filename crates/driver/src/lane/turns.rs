//! One client that takes turns with its server on one core.
//!
//! The server sends an answer of more than 8 KiB in pieces. The first wakes the client, which by the
//! kernel's default takes the core from the server at once, receives a part, finds that there is no more
//! and goes back to sleep: two more task switches for nothing. A thread under SCHED_BATCH does not
//! take the core when it is woken; it runs when the server waits for the next request, and finds the whole
//! answer. Its share of the core stays the same. With answers in one piece the
//! default is better by 5 %, because a server that is interrupted after its last send finds the next
//! request without waiting for it. (docs/decisions/0007 has the figures.)

use crate::sys;

/// Round trips that are looked at before the lane makes up its mind.
const SAMPLE: u64 = 32;
/// One round trip in so many with an answer in pieces is enough: it saves about this many times what a
/// round trip with a short answer loses.
const WORTH: u64 = 8;

/// What a lane knows about its answers; decided once, so that all servers and slices after that are
/// treated alike.
#[derive(Debug, Default)]
pub struct Turns {
    trips: u64,
    /// Waits above one for each round trip.
    extra_waits: u64,
    patient: Option<bool>,
    /// Whether the thread's policy is ours right now.
    changed: bool,
}

impl Turns {
    /// Of a thread that keeps its policy.
    pub fn settled() -> Self {
        Self {
            patient: Some(false),
            ..Self::default()
        }
    }

    /// A slice begins.
    pub fn begin(&mut self) {
        if self.patient == Some(true) {
            self.changed = sys::wait_for_turn(true);
        }
    }

    /// The slice is over; the thread belongs to the caller again.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.changed) {
            sys::wait_for_turn(false);
        }
    }

    /// An operation was done; `backend` is the server process that answered, if it is on this machine.
    #[inline]
    pub fn note(&mut self, trips: u64, waits: u64, backend: Option<u32>) {
        if self.patient.is_none() {
            self.trips += trips;
            self.extra_waits += waits.saturating_sub(trips);
            if self.trips >= SAMPLE {
                self.decide(backend.is_some_and(sys::shares_only_core));
            }
        }
    }

    #[cold]
    fn decide(&mut self, one_core: bool) {
        self.patient = Some(one_core && self.extra_waits * WORTH >= self.trips);
        self.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_patient_when_answers_come_in_pieces_on_a_shared_core() {
        for (extra_waits, one_core, patient) in [
            (0, true, false),
            (3, true, false),
            (4, true, true),
            (64, true, true),
            (64, false, false),
        ] {
            let mut turns = Turns {
                trips: SAMPLE,
                extra_waits,
                ..Turns::default()
            };
            turns.decide(one_core);
            assert_eq!(turns.patient, Some(patient), "{extra_waits} {one_core}");
            turns.end();
        }
    }

    #[test]
    fn the_thread_gets_its_policy_back() {
        let before = sys::policy();
        let mut turns = Turns {
            patient: Some(true),
            ..Turns::default()
        };
        turns.begin();
        assert!(turns.changed && sys::policy() != before);
        turns.end();
        assert_eq!(sys::policy(), before);
    }
}
