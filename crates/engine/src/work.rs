//! A worker: it reads orders, does what they ask for with its library, and answers.

mod crew;
mod figures;
mod hand;
mod idle;
mod mark;
mod meters;
mod session;
mod writer;

use crate::protocol::{Answer, Order};
pub use session::FINISH_CPU_NS;
use session::Session;
use std::io::{BufRead, Write};

/// Why a worker ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// An order could not be read, or is none.
    #[error("orders cannot be read: {0}")]
    Orders(String),
    /// An answer could not be written: whoever ordered is gone.
    #[error("answers cannot be written: {0}")]
    Answers(String),
}

/// Carries orders out until the last one, or until their end; the database is closed then.
///
/// Shape:  one JSON line an order, one JSON line its answer; what cannot be carried out is answered with
///         [`Answer::Failed`], and the worker goes on.
/// Errors: only of reading orders and of writing answers.
pub fn work(input: impl BufRead, mut output: impl Write) -> Result<(), WorkerError> {
    let mut session = None;
    for line in input.lines() {
        let line = line.map_err(|error| WorkerError::Orders(error.to_string()))?;
        let order: Order =
            serde_json::from_str(&line).map_err(|error| WorkerError::Orders(error.to_string()))?;
        let is_last = order == Order::Close;
        if let Some(session) = &mut session {
            Session::thawed(session);
        }
        let answer = carry_out(&mut session, order).unwrap_or_else(Answer::Failed);
        let mut line = serde_json::to_string(&answer)
            .map_err(|error| WorkerError::Answers(error.to_string()))?;
        line.push('\n');
        if let Some(session) = &mut session {
            Session::freezing(session);
        }
        output
            .write_all(line.as_bytes())
            .and_then(|()| output.flush())
            .map_err(|error| WorkerError::Answers(error.to_string()))?;
        if let Some(session) = &mut session {
            Session::answered(session, line.len());
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Carries one order out.
///
/// Errors: the words of [`Answer::Failed`].
fn carry_out(session: &mut Option<Session>, order: Order) -> Result<Answer, String> {
    match order {
        Order::Open(_) if session.is_some() => Err("a database is open".to_owned()),
        Order::Open(order) => {
            let (made, opened) = Session::open(*order)?;
            *session = Some(made);
            Ok(Answer::Opened(Box::new(opened)))
        }
        Order::Close => {
            *session = None;
            Ok(Answer::Closed)
        }
        order => in_session(session.as_mut().ok_or("no database is open")?, order),
    }
}

fn in_session(session: &mut Session, order: Order) -> Result<Answer, String> {
    Ok(match order {
        Order::Prepare(step) => {
            let (duration_ns, figures) = session.prepare(step)?;
            Answer::Prepared {
                duration_ns,
                figures,
            }
        }
        Order::Begin(step) if !step.step.is_measured() => {
            return Err(format!(
                "{} is prepared, and not measured",
                step.step.name()
            ));
        }
        Order::Begin(step) => {
            session.begin(step)?;
            Answer::Ready
        }
        Order::Turn(turn) => Answer::Turned(Box::new(session.turn(turn, false)?)),
        Order::Count(turn) => Answer::Turned(Box::new(session.turn(turn, true)?)),
        Order::Finish => Answer::Finished(session.finish()?),
        Order::Open(_) | Order::Close => return Err("not in a session".to_owned()),
    })
}
