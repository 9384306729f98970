//! Vacuum and checkpoint between writes and reads, and a sleep that fills up the time.

use deltabench_model::fact::Settled;
use deltabench_model::problem::Problem;
use deltabench_run::admin::{connect, run};
use deltabench_run::load::settle_sql;
use deltabench_run::visit::Address;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How often a pause looks for an interruption.
const PAUSE: Duration = Duration::from_millis(50);

/// How settling ended.
pub(crate) enum SettleEnd {
    /// As it should.
    Settled(Settled),
    /// The user wants to stop.
    Interrupted,
    /// The server took too long.
    Stalled,
}

/// What is settled.
pub(crate) struct Settling<'a> {
    /// The running server, with the login of the database of the tables.
    pub(crate) address: &'a Address,
    pub(crate) version_num: u32,
    pub(crate) tables: Vec<String>,
    /// Least seconds of all of it.
    pub(crate) seconds: u64,
    /// How long vacuum and checkpoint may take before the server counts as stalled.
    pub(crate) limit: Duration,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Settling<'_> {
    /// Vacuums all tables at once, writes a checkpoint and waits out the rest of the time. Statements under
    /// way when it ends before its time are for the stop of the server to end.
    ///
    /// Errors: whatever the server answered.
    ///
    /// Source: docs/sources/insert-benchmark.md#steps;
    ///         docs/sources/sysbench-microbenchmarks.md#after-the-writes.
    pub(crate) fn settle(&self) -> Result<SettleEnd, Problem> {
        let started = Instant::now();
        let limit = started + self.limit;
        let tables = self.tables.iter();
        let vacuums =
            tables.map(|table| settle_sql(self.version_num, std::slice::from_ref(table), false));
        if let Some(end) = self.at_once(vacuums.collect(), limit)? {
            return Ok(end);
        }
        let vacuum_seconds = started.elapsed().as_secs_f64();
        if let Some(end) = self.at_once(vec![vec!["CHECKPOINT".to_owned()]], limit)? {
            return Ok(end);
        }
        let checkpoint_seconds = started.elapsed().as_secs_f64() - vacuum_seconds;
        let deadline = started + Duration::from_secs(self.seconds);
        while Instant::now() < deadline {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(SettleEnd::Interrupted);
            }
            std::thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
        }
        Ok(SettleEnd::Settled(Settled {
            vacuum_seconds,
            checkpoint_seconds,
            seconds: started.elapsed().as_secs_f64(),
        }))
    }

    /// Executes lists of statements, each on a connection of its own; why that ended before its time, if it
    /// did.
    fn at_once(
        &self,
        lists: Vec<Vec<String>>,
        limit: Instant,
    ) -> Result<Option<SettleEnd>, Problem> {
        let under_way = lists.len();
        let (tell, told) = sync_channel(under_way);
        for statements in lists {
            let mut client = connect(&self.address.endpoint, &self.address.login)?;
            let tell = tell.clone();
            // Not in a scope: nobody waits for a thread whose server does not answer, and it ends with it.
            std::thread::spawn(move || {
                let end = statements.iter().try_for_each(|sql| run(&mut client, sql));
                // Nobody listens any more after an interruption.
                let _ = tell.send(end);
            });
        }
        drop(tell);
        wait_for(under_way, &told, limit, self.interrupted)
    }
}

/// Waits until so many have told that they are done; why it ended before that, if it did.
fn wait_for(
    under_way: usize,
    told: &Receiver<Result<(), Problem>>,
    limit: Instant,
    interrupted: &AtomicBool,
) -> Result<Option<SettleEnd>, Problem> {
    let mut left = under_way;
    while left > 0 {
        match told.recv_timeout(PAUSE) {
            Ok(end) => {
                end?;
                left -= 1;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Problem::new("a settling thread ended too early"));
            }
            Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => {
                return Ok(Some(SettleEnd::Interrupted));
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() > limit => {
                return Ok(Some(SettleEnd::Stalled));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_hears_an_interruption_and_has_a_limit() {
        let (tell, told) = sync_channel(2);
        let flag = AtomicBool::new(false);
        let later = Instant::now() + Duration::from_secs(600);
        tell.send(Ok(())).unwrap();
        assert!(matches!(wait_for(1, &told, later, &flag), Ok(None)));
        tell.send(Ok(())).unwrap();
        let stalled = wait_for(2, &told, Instant::now(), &flag);
        assert!(
            matches!(stalled, Ok(Some(SettleEnd::Stalled))),
            "one of two"
        );
        flag.store(true, Ordering::Relaxed);
        let interrupted = wait_for(1, &told, later, &flag);
        assert!(matches!(interrupted, Ok(Some(SettleEnd::Interrupted))));
        tell.send(Err(Problem::new("no"))).unwrap();
        assert!(wait_for(1, &told, later, &flag).is_err());
        drop(tell);
        assert!(wait_for(1, &told, later, &flag).is_err(), "a thread died");
    }
}
