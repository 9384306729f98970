//! One connection: send, wait, receive; the end of one operation being the start of the next.

use super::Work;
use super::turns::Turns;
use crate::connection::Connection;
use crate::error::ServerError;
use crate::scan::Loss;
use crate::slice::Tally;
use deltabench_model::units::count;

/// Does all operations, one after the other.
pub fn run(connection: &mut Connection, work: Work<'_>, tally: &mut Tally<'_>) -> Result<(), Loss> {
    tally.max_in_flight = u32::from(work.operations > 0);
    let mut started_ns = tally.clock.now();
    for _ in 0..work.operations {
        connection.draw(work.executable, work.draws);
        tally.sent += 1;
        work.watchdog.beat(tally.sent);
        match operation(connection, work.turns)? {
            None => {
                let now_ns = tally.clock.now();
                tally.succeeded(now_ns - started_ns);
                started_ns = now_ns;
            }
            Some(error) => {
                tally.failed(&error);
                if connection.in_transaction() {
                    connection.send_rollback()?;
                    connection.answer()?;
                    super::rolled_back(connection)?;
                }
                started_ns = tally.clock.now();
            }
        }
    }
    Ok(())
}

/// All steps of the operation drawn last; the error that ended it, if any.
#[inline]
fn operation(
    connection: &mut Connection,
    turns: &mut Turns,
) -> Result<Option<Box<ServerError>>, Loss> {
    let mut step = 0;
    let mut waits = 0;
    while connection.send_step(step)? {
        waits += connection.answer()?;
        if let Some(error) = connection.take_error() {
            return Ok(Some(error));
        }
        step += 1;
    }
    turns.note(count(step), waits, connection.local_pid());
    Ok(super::left_open(connection))
}
