//! When a client's batches are due, and how far its deletes may be from its inserts.

use super::DRIFT;
use deltabench_model::units::{index, to_f64, to_u64};
use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing};

/// A second, nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// A burst that took less than this is followed by a pause until its second is over; nanoseconds.
const PAUSES_BEFORE_NS: u64 = 950_000_000;

/// The batches of one client: each is an insert and, where the step has deletes, a delete.
///
/// As published, batches go to both connections through queues of [`DRIFT`] places, here with the statement
/// under way in one of them; nothing else keeps deletes and inserts together.
#[derive(Debug)]
pub struct Pace {
    kind: Kind,
    /// All batches of the step.
    batches: u64,
    /// Batches that their connections may send.
    issued: u64,
    /// When the last few were due.
    due_ns: [u64; index_of(DRIFT)],
    /// Batches that were never to be issued any more, once it is stopped.
    cut: Option<u64>,
    /// Batches until the end of the turn; all of them where there are no turns.
    held: u64,
}

#[derive(Debug)]
enum Kind {
    /// As soon as there is room.
    Free,
    /// At a constant distance; what is late is made up.
    Spread { first_ns: f64, period_ns: f64 },
    /// All of a second's batches at its start. A second that is late is not made up: the next one begins
    /// when it is over.
    Burst {
        size: u64,
        left: u64,
        began_ns: u64,
        late_ns: u64,
    },
}

impl Pace {
    /// The batches of a client, from 0, in a step.
    pub fn new(setup: &InsertSetup, step: InsertStep, client: u32) -> Self {
        let batch = u64::from(step.batch());
        let kind = match (step.rate(), setup.pacing) {
            (None, _) => Kind::Free,
            (Some(rate), Pacing::Spread) => {
                let period_ns = to_f64(SECOND_NS) * to_f64(batch) / f64::from(rate.max(1));
                let share = f64::from(client) / f64::from(setup.clients.max(1));
                Kind::Spread {
                    first_ns: period_ns * share,
                    period_ns,
                }
            }
            (Some(rate), Pacing::Burst) => {
                let size = u64::from(rate).div_ceil(batch).max(1);
                Kind::Burst {
                    size,
                    left: size,
                    began_ns: 0,
                    late_ns: 0,
                }
            }
        };
        Self {
            kind,
            batches: setup.rows_of(step).div_ceil(batch),
            issued: 0,
            due_ns: [0; index_of(DRIFT)],
            cut: None,
            held: u64::MAX,
        }
    }

    /// Issues no more than so many batches, until this is called again.
    pub fn hold_at(&mut self, batches: u64) {
        self.held = batches;
    }

    /// Whether batches are left behind the end of the turn.
    pub fn is_held(&self) -> bool {
        self.held < self.batches
    }

    /// Batches up to the end of the turn.
    fn until(&self) -> u64 {
        self.batches.min(self.held)
    }

    /// All batches of the step.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Batches that may be sent.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// When a batch was due, from 0; one of the last [`DRIFT`] issued. Nothing is due without a rate.
    pub fn due_ns(&self, batch: u64) -> Option<u64> {
        match self.kind {
            Kind::Free => None,
            _ => self.due_ns.get(index(batch % DRIFT)).copied(),
        }
    }

    /// Issues all that is due and has room. `done` batches have been inserted and deleted. Returns when to
    /// ask again if nothing happens before.
    pub fn issue(&mut self, now_ns: u64, done: u64) -> Option<u64> {
        while self.issued < self.until() && self.issued - done.min(self.issued) < DRIFT {
            let due_ns = self.next_due_ns(now_ns);
            if due_ns > now_ns {
                return Some(due_ns);
            }
            if let Some(place) = self.due_ns.get_mut(index(self.issued % DRIFT)) {
                *place = due_ns;
            }
            self.issued += 1;
            if let Kind::Burst {
                size,
                left,
                began_ns,
                late_ns,
            } = &mut self.kind
            {
                *left -= 1;
                if *left == 0 {
                    *left = *size;
                    let took_ns = now_ns.saturating_sub(*began_ns);
                    if took_ns < PAUSES_BEFORE_NS {
                        *began_ns += SECOND_NS;
                    } else {
                        *late_ns += took_ns.saturating_sub(SECOND_NS);
                        *began_ns = now_ns;
                    }
                }
            }
        }
        let end_ns = self.end_ns();
        (self.issued == self.until() && end_ns > now_ns).then_some(end_ns)
    }

    /// Whether the client is done, with its turn or with all: its batches are, and the last one's time is
    /// over.
    pub fn is_over(&self, now_ns: u64, done: u64) -> bool {
        done >= self.until() && now_ns >= self.end_ns()
    }

    /// Issues no more.
    pub fn stop(&mut self) {
        self.cut = Some(self.batches - self.issued.min(self.batches));
        self.batches = self.issued;
    }

    /// Batches that were never sent: those that would have been due in the time by which seconds were late
    /// and that is not made up, and those that were left when it was stopped.
    pub fn missed(&self) -> u64 {
        let cut = self.cut.unwrap_or(0);
        match self.kind {
            // Those that are left were due in the lost time: they are not counted twice.
            Kind::Burst { size, late_ns, .. } => cut.max(to_u64(
                (to_f64(late_ns) / to_f64(SECOND_NS) * to_f64(size)).floor(),
            )),
            _ => cut,
        }
    }

    /// When the time of the last batch is over, once all are issued: a second of a burst, or a period.
    fn end_ns(&self) -> u64 {
        match self.kind {
            _ if self.cut.is_some() => 0,
            Kind::Free => 0,
            // The same for all clients, wherever they begin: what the rate needs, and no more.
            Kind::Spread { period_ns, .. } => to_u64(to_f64(self.until()) * period_ns),
            Kind::Burst {
                size,
                left,
                began_ns,
                ..
            } => {
                // After a whole burst it is the start of the next one already.
                let whole = left == size && self.issued > 0;
                began_ns + if whole { 0 } else { SECOND_NS }
            }
        }
    }

    fn next_due_ns(&self, now_ns: u64) -> u64 {
        match self.kind {
            Kind::Free => now_ns,
            Kind::Spread {
                first_ns,
                period_ns,
            } => to_u64(first_ns + to_f64(self.issued) * period_ns),
            Kind::Burst { began_ns, .. } => began_ns,
        }
    }
}

/// For the length of an array.
#[allow(clippy::as_conversions)]
const fn index_of(count: u64) -> usize {
    count as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::small_insert;

    fn setup(pacing: Pacing) -> InsertSetup {
        InsertSetup {
            clients: 4,
            write_rows: 5000,
            query_seconds: 10,
            steps: Vec::new(),
            pacing,
            ..small_insert()
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn without_a_rate_only_the_drift_holds_a_client_back() {
        let mut pace = Pace::new(&setup(Pacing::Spread), InsertStep::WriteMany, 1);
        assert_eq!(pace.batches(), 80);
        assert_eq!(pace.issue(0, 0), None);
        assert_eq!(pace.issued(), 8, "eight apart and no more");
        assert_eq!((pace.issue(0, 3), pace.issued()), (None, 11));
        assert_eq!(pace.due_ns(10), None, "nothing is due at any time");
        for done in 0..=80 {
            pace.issue(0, done);
        }
        assert_eq!(pace.issued(), 80);
    }

    #[test]
    fn spread_batches_have_a_constant_distance_and_clients_take_turns() {
        let mut pace = Pace::new(&setup(Pacing::Spread), InsertStep::Range(100), 1);
        assert_eq!(pace.batches(), 20);
        assert_eq!(pace.issue(0, 0), Some(125 * MS), "a quarter of the period");
        assert_eq!(pace.issue(125 * MS, 0), Some(625 * MS));
        // Late: all that was due is sent at once, with the time when it was due.
        assert_eq!(pace.issue(2000 * MS, 0), Some(2125 * MS));
        assert_eq!(pace.issued(), 4);
        assert_eq!(pace.due_ns(3), Some(1625 * MS));
        assert_eq!(pace.missed(), 0);
    }

    #[test]
    fn a_burst_is_all_of_a_second_at_its_start() {
        let mut pace = Pace::new(&setup(Pacing::Burst), InsertStep::Point(100), 1);
        assert_eq!(pace.issue(0, 0), Some(1000 * MS));
        assert_eq!(pace.issued(), 2);
        assert_eq!(pace.issue(1001 * MS, 2), Some(2000 * MS));
        assert_eq!(
            (pace.issued(), pace.due_ns(3)),
            (4, Some(1000 * MS)),
            "both are due at the start of the second"
        );
    }

    #[test]
    fn a_late_second_is_never_made_up_and_what_it_missed_is_counted() {
        let mut pace = Pace::new(&setup(Pacing::Burst), InsertStep::Point(500), 0);
        // Ten batches a second, room for eight; the ninth and tenth can only go after 2.5 s.
        assert_eq!((pace.issue(0, 0), pace.issued()), (None, 8));
        assert_eq!(pace.issue(2500 * MS, 2), None);
        assert_eq!(
            pace.issued(),
            10,
            "the next second has begun, and is full too"
        );
        assert_eq!(pace.missed(), 15, "one and a half seconds of ten");
        assert_eq!(pace.issue(2600 * MS, 10), None);
        assert_eq!(pace.issued(), 18);
        assert_eq!(
            pace.issue(2700 * MS, 18),
            Some(3500 * MS),
            "a second after it began, not at a second of the clock"
        );
        assert_eq!((pace.issued(), pace.missed()), (20, 15));
    }

    #[test]
    fn a_step_lasts_as_long_as_its_rate_needs() {
        for (pacing, client) in [(Pacing::Spread, 0), (Pacing::Spread, 3), (Pacing::Burst, 0)] {
            let mut pace = Pace::new(&setup(pacing), InsertStep::Range(100), client);
            let (mut now_ns, mut turns) = (0, 0);
            while let Some(wake_ns) = pace.issue(now_ns, pace.issued()) {
                assert!(!pace.is_over(now_ns, pace.issued()), "{pacing:?} {now_ns}");
                now_ns = wake_ns;
                turns += 1;
                assert!(turns < 100);
            }
            assert_eq!((now_ns, pace.issued()), (10_000 * MS, 20), "{pacing:?}");
            assert!(pace.is_over(now_ns, 20));
            assert!(!pace.is_over(now_ns, 19), "the last has no answer yet");
        }
    }

    #[test]
    fn a_stopped_client_gets_no_more() {
        let mut pace = Pace::new(&setup(Pacing::Spread), InsertStep::Range(100), 0);
        pace.issue(0, 0);
        pace.stop();
        assert!(pace.is_over(1, 1));
        assert_eq!((pace.issue(9000 * MS, 1), pace.issued()), (None, 1));
        assert_eq!(pace.batches(), 1);
    }

    #[test]
    fn what_a_stopped_client_did_not_send_is_missed() {
        let mut spread = Pace::new(&setup(Pacing::Spread), InsertStep::Range(100), 0);
        spread.issue(2600 * MS, 0);
        assert_eq!(
            (spread.issued(), spread.missed()),
            (6, 0),
            "late, but made up"
        );
        spread.stop();
        assert_eq!(spread.missed(), 20 - 6);
        // Late by 29 s, which counts once and not again for what is left.
        let mut burst = Pace::new(&setup(Pacing::Burst), InsertStep::Range(100), 0);
        burst.issue(0, 0);
        burst.issue(31_000 * MS, 2);
        assert_eq!(burst.missed(), 58);
        burst.stop();
        assert_eq!(burst.missed(), 58);
        // A burst that never ended has lost no second yet.
        let mut stuck = Pace::new(&setup(Pacing::Burst), InsertStep::Range(500), 0);
        stuck.issue(0, 0);
        stuck.stop();
        assert_eq!((stuck.issued(), stuck.missed()), (8, 92));
    }

    #[test]
    fn a_turn_ends_with_the_time_of_its_last_batch_and_the_next_one_goes_on_from_there() {
        let mut free = Pace::new(&setup(Pacing::Spread), InsertStep::WriteMany, 0);
        free.hold_at(3);
        assert_eq!((free.issue(0, 0), free.issued()), (None, 3));
        assert!(!free.is_over(0, 2) && free.is_over(0, 3) && free.is_held());
        free.hold_at(1000);
        assert!(!free.is_held(), "nothing is left behind this turn");
        assert_eq!((free.issue(0, 3), free.issued()), (None, 11));
        let mut spread = Pace::new(&setup(Pacing::Spread), InsertStep::Range(100), 1);
        spread.hold_at(2);
        assert_eq!(spread.issue(0, 0), Some(125 * MS));
        assert_eq!(
            spread.issue(625 * MS, 0),
            Some(1000 * MS),
            "the time of two is over"
        );
        assert!(!spread.is_over(999 * MS, 2) && spread.is_over(1000 * MS, 2));
        spread.hold_at(4);
        assert_eq!(
            (spread.issue(1000 * MS, 2), spread.issued()),
            (Some(1125 * MS), 2)
        );
        let mut burst = Pace::new(&setup(Pacing::Burst), InsertStep::Range(100), 0);
        burst.hold_at(2);
        assert_eq!((burst.issue(0, 0), burst.issued()), (Some(1000 * MS), 2));
        assert!(!burst.is_over(900 * MS, 2) && burst.is_over(1000 * MS, 2));
    }
}
