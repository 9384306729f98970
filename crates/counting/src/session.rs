//! All cells of servers, in all their starts.

use crate::starts::{Client, Targets, all_starts};
use crate::visit::{AtRest, Visit};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_run::executables::compile;
use deltabench_run::fleet::{CountedServer, Fleet};
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::Counter;
use deltabench_workload::executable::Executable;
use std::time::Instant;

/// Loads the plan's servers, counts all its cells on each of them, and takes them down again. What was
/// counted is stored cell by cell.
///
/// Errors: anything that makes counting impossible; what was counted before stays in the store.
pub fn count(session: &mut Session<'_>, counter: &Counter) -> Result<SessionEnd, Problem> {
    let executables = compile(session.plan, session.library)?;
    count_servers(session, counter, &executables, |server, client| {
        let at_rest = AtRest::of(server, client.plan)?;
        for (cell, executable) in CellId::each().zip(&client.plan.cells).zip(&executables) {
            if client.over() {
                return Ok(());
            }
            let visit = Visit {
                client,
                at_rest: &at_rest,
                cell,
            };
            let Some(counted) = visit.count(executable)? else {
                return Ok(());
            };
            if !client.tell(cell.0, counted) {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// As [`count`] for servers whose cells `cells` counts, one start of a server each time. `executables` are
/// those of the plan's cells that have one, whose tables are loaded.
///
/// Errors: those of [`count`] and of `cells`.
pub fn count_servers<'a>(
    session: &mut Session<'a>,
    counter: &Counter,
    executables: &[Executable],
    cells: impl Fn(&CountedServer<'a>, &Client<'_>) -> Result<(), Problem> + Sync,
) -> Result<SessionEnd, Problem> {
    let began = Instant::now();
    let (mut fleet, facts) = session.fleet()?;
    let loaded =
        may_load_library(&fleet).and_then(|()| session.load(&mut fleet, executables, &facts));
    let end = loaded.and_then(|()| {
        let mut servers = Servers {
            fleet: &mut fleet,
            counter,
        };
        all_starts(session, &mut servers, (counter, began), cells)
    });
    let taken_down = fleet.dismantle();
    let end = end?;
    taken_down.map(|()| end)
}

/// Servers that are counted load a library of ours from the run's directory. Where the kernel takes no
/// programs from, it takes no library either, and loading tables first would be for nothing.
fn may_load_library(fleet: &Fleet<'_>) -> Result<(), Problem> {
    if fleet.has_own_programs()? {
        return Ok(());
    }
    Err(Problem::new("instructions cannot be counted here")
        .detail(
            "a counted server loads a library from the directory of the run, and that is on a file system \
             that is mounted noexec",
        )
        .hint("name another directory with --cluster-dir"))
}

/// The servers of a fleet.
struct Servers<'f, 'a> {
    fleet: &'f mut Fleet<'a>,
    counter: &'f Counter,
}

impl<'a> Targets for Servers<'_, 'a> {
    type Started = CountedServer<'a>;

    fn start(&mut self, servers: &[ServerId], start: u32) -> Result<Vec<Self::Started>, Problem> {
        // Call paths are kept of the first start.
        let counter = match start {
            0 => self.counter.clone(),
            _ => self.counter.shallow(),
        };
        // A start takes seconds under the counter, on one core.
        for server in servers {
            self.fleet.launch_counted(*server, &counter)?;
        }
        let started = servers.iter().map(|server| self.fleet.counted(*server));
        started.collect()
    }

    fn end(&mut self, server: ServerId) -> Result<(), Problem> {
        self.fleet.abandon(server)
    }

    fn explained(&self, problem: Problem, server: ServerId) -> Problem {
        self.fleet.explained(problem, server)
    }
}
