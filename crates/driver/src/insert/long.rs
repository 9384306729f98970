//! A session that keeps a transaction open, again and again.

use super::link::Link;
use super::tally::{Fault, StepTally};
use crate::scan::Loss;
use deltabench_workload::insert::glance_sql;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The session.
#[derive(Debug)]
pub struct Long {
    link: Link,
    held_ns: u64,
    phase: Phase,
}

/// What it does; times in nanoseconds since the start of the step.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Not begun.
    Idle,
    /// BEGIN and a look at the table are under way, since then.
    Beginning(u64),
    /// The transaction is held until then.
    Holding(u64),
    /// COMMIT is under way, since then.
    Committing(u64),
}

impl Long {
    /// Not begun; each transaction is held open so long.
    pub fn new(link: Link, held: Duration) -> Self {
        Self {
            link,
            held_ns: u64::try_from(held.as_nanos()).unwrap_or(u64::MAX),
            phase: Phase::Idle,
        }
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.link.socket()
    }

    /// Since when a statement is under way.
    pub fn sent_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle | Phase::Holding(_) => None,
            Phase::Beginning(sent_ns) | Phase::Committing(sent_ns) => Some(sent_ns),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self, now_ns: u64) -> Result<(), Fault> {
        self.phase = Phase::Beginning(now_ns);
        self.send(&format!("BEGIN; {}", glance_sql(1)))
    }

    /// Commits if it is time; returns how long until it is.
    pub fn wait_ns(&mut self, now_ns: u64) -> Result<u64, Fault> {
        match self.phase {
            Phase::Holding(until_ns) if until_ns <= now_ns => {
                self.phase = Phase::Committing(now_ns);
                self.send("COMMIT")?;
                Ok(u64::MAX)
            }
            Phase::Holding(until_ns) => Ok(until_ns - now_ns),
            _ => Ok(u64::MAX),
        }
    }

    /// Takes what has come.
    pub fn news(&mut self, now_ns: u64, tally: &mut StepTally) -> Result<(), Fault> {
        let received = self.link.receive();
        let Some(answer) = received.map_err(|loss| fault(&loss))? else {
            return Ok(());
        };
        if let Some(error) = &answer.error {
            return Err(Fault::refused(WHOSE, error));
        }
        match self.phase {
            Phase::Beginning(_) => {
                self.phase = Phase::Holding(now_ns.saturating_add(self.held_ns));
                Ok(())
            }
            Phase::Committing(_) => {
                tally.long_transactions += 1;
                self.begin(now_ns)
            }
            Phase::Idle | Phase::Holding(_) => Ok(()),
        }
    }

    fn send(&mut self, sql: &str) -> Result<(), Fault> {
        let text = |out: &mut Vec<u8>| out.extend_from_slice(sql.as_bytes());
        let made = self.link.prepare_text(text);
        made.and_then(|()| self.link.send_next())
            .map_err(|loss| fault(&loss))
    }
}

const WHOSE: &str = "the long transaction";

fn fault(loss: &Loss) -> Fault {
    Fault::lost(WHOSE, loss)
}
