//! A connection that does one thing.

use super::answer::Answer;
use super::link::Link;
use super::tally::{Fault, StepTally, Timing};
use crate::scan::Loss;
use crate::session::BackendKey;
use crate::slice::Clock;
use deltabench_model::work::insert::InsertRole;

/// How often a statement is sent again.
const RETRIES_MAX: u32 = 100;

/// A connection that does one thing, one statement at a time.
#[derive(Debug)]
pub struct Station {
    /// Where the next statement is prepared.
    pub link: Link,
    role: InsertRole,
    /// Statements sent.
    pub started: u64,
    /// Statements answered.
    pub done: u64,
    under_way: Option<UnderWay>,
}

/// A statement without an answer.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    due_ns: Option<u64>,
    /// When it was sent first.
    first_sent_ns: u64,
    /// When it was sent last.
    sent_ns: u64,
    retries: u32,
}

impl Station {
    /// At rest.
    pub fn new(link: Link, role: InsertRole) -> Self {
        Self {
            link,
            role,
            started: 0,
            done: 0,
            under_way: None,
        }
    }

    /// The server's end, if a statement is under way.
    pub fn unanswered(&self) -> Option<BackendKey> {
        self.under_way.map(|_| self.link.key())
    }

    /// When the statement under way was sent last.
    pub fn sent_ns(&self) -> Option<u64> {
        self.under_way.map(|under_way| under_way.sent_ns)
    }

    /// Whether nothing is under way.
    pub fn is_free(&self) -> bool {
        self.under_way.is_none()
    }

    /// Sends what the link has ready.
    pub fn send(
        &mut self,
        due_ns: Option<u64>,
        now_ns: u64,
        tally: &mut StepTally,
    ) -> Result<(), Fault> {
        self.started += 1;
        self.under_way = Some(UnderWay {
            due_ns,
            first_sent_ns: now_ns,
            sent_ns: now_ns,
            retries: 0,
        });
        tally.sent(self.role, due_ns, now_ns);
        self.link.send_next().map_err(|loss| self.fault(&loss))
    }

    /// Takes what has come: the answer that ends a statement, the rows that it stands for, and when it came.
    pub fn receive(
        &mut self,
        clock: Clock,
        tally: &mut StepTally,
    ) -> Result<Option<(Answer, u64, u64)>, Fault> {
        let received = self.link.receive().map_err(|loss| self.fault(&loss))?;
        let (Some(answer), Some(mut under_way)) = (received, self.under_way) else {
            return Ok(None);
        };
        let now_ns = clock.now();
        let error = answer.error.as_ref();
        if error.is_some_and(|error| error.is_transient()) && under_way.retries < RETRIES_MAX {
            tally.retried(self.role);
            under_way.retries += 1;
            under_way.sent_ns = now_ns;
            self.under_way = Some(under_way);
            self.link.resend().map_err(|loss| self.fault(&loss))?;
            return Ok(None);
        }
        self.under_way = None;
        self.done += 1;
        let timing = Timing {
            due_ns: under_way.due_ns,
            sent_ns: under_way.first_sent_ns,
            now_ns,
        };
        let rows = tally.answered(self.role, timing, &answer)?;
        Ok(Some((answer, rows, now_ns)))
    }

    /// The connection cannot go on.
    pub fn fault(&self, loss: &Loss) -> Fault {
        Fault::lost(&format!("a connection of role {}", self.role.word()), loss)
    }
}
