//! The near side's pipes to a far side: a request, its answer, a time limit.

use super::lines::{End, Lines};
use super::protocol::{Answer, Ask, Reply, Request};
use super::ssh::Session;
use deltabench_model::problem::Problem;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// Lines that a login shell over there may print before the first answer.
const NOISE: usize = 100;

/// An open connection. One that failed is of no further use.
#[derive(Debug)]
pub(super) struct Link {
    // The order matters: the far side ends when its input does, and ssh is waited for at last.
    input: File,
    lines: Lines,
    session: Option<Session>,
    requests: u64,
}

impl Link {
    pub(super) fn new(input: File, lines: Lines, session: Option<Session>) -> Self {
        Self {
            input,
            lines,
            session,
            requests: 0,
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// Errors: why no answer came in time; not a refusal, which is an answer.
    pub(super) fn ask(&mut self, ask: Ask, limit: Duration) -> Result<Answer, Lost> {
        self.requests += 1;
        let first = self.requests == 1;
        let request = Request {
            id: self.requests,
            ask,
        };
        let mut line = serde_json::to_vec(&request).map_err(|_| Lost::Nonsense)?;
        line.push(b'\n');
        self.input.write_all(&line).map_err(|_| Lost::Closed)?;
        let until = Instant::now() + limit;
        let mut noise = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.next(left).map_err(|end| match end {
                End::Closed | End::Failed => Lost::Closed,
                End::Silent => Lost::Silent(limit),
                End::Nonsense => Lost::Nonsense,
            })?;
            match serde_json::from_str::<Reply>(&line) {
                Ok(reply) if reply.id == self.requests => return Ok(reply.answer),
                Err(_) if first && noise < NOISE => noise += 1,
                _ => return Err(Lost::Nonsense),
            }
        }
    }

    /// Closes the pipes and says why the far side is lost.
    pub(super) fn close(self, host: &str, lost: Lost) -> Problem {
        let Self {
            input,
            lines,
            mut session,
            ..
        } = self;
        drop((input, lines));
        match (lost, &mut session) {
            (Lost::Closed, Some(session)) => session.autopsy(),
            (Lost::Closed, None) => Problem::new(format!("the agent on {host} has ended")),
            (Lost::Silent(limit), _) => Problem::new(format!(
                "the agent on {host} did not answer within {} s",
                limit.as_secs()
            )),
            (Lost::Nonsense, _) => Problem::new(format!(
                "the agent on {host} sent an answer that deltabench cannot read"
            ))
            .hint("both sides must be the same build of deltabench"),
        }
    }
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The connection has ended.
    Closed,
    /// Nothing came in time.
    Silent(Duration),
    /// What came was no answer.
    Nonsense,
}
