//! The statements of the Insert Benchmark, counted on one backend.
//!
//! The steps follow each other on one server, as in a pass. Each has a connection of its own, on which its
//! statements follow one another: an insert and the delete that belongs to it, a query, or the creation of
//! the indexes. Their rates, and what they do to each other side by side, are left out: a rate means nothing
//! where an operation takes fifty times as long. Nothing vacuums by itself; the table is vacuumed, with
//! statistics, before the first deletes and before the first queries.

use super::pass::steps;
use deltabench_counting::{AtRest, Client, Sends, Visit, count_servers, until_asleep};
use deltabench_driver::WireError;
use deltabench_driver::insert::{OneByOne, OneByOneSpec, partitions};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_run::admin::{connect, run};
use deltabench_run::fleet::CountedServer;
use deltabench_run::load::settle_sql;
use deltabench_run::schedule::pass_seed;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::Counter;
use deltabench_workload::insert::table_name;

/// Queries before the first that is counted: each of three prepared statements gets its lasting plan with the
/// sixth execution.
const QUERIES_BEFORE: u64 = 60;

/// Why the steps of a run that measured them are not counted.
pub fn measured_steps() -> Problem {
    Problem::new("the steps of a measured run cannot be counted")
        .detail("a count goes through the steps by itself, with one client on a small table")
        .hint("use `deltabench count BASE CANDIDATE --insert`, then `deltabench explain last`")
}

/// Counts all steps of a plan on all of its servers.
///
/// Errors: anything that makes counting impossible; what was counted before stays in the store.
pub fn count(
    setup: &InsertSetup,
    session: &mut Session<'_>,
    counter: &Counter,
) -> Result<SessionEnd, Problem> {
    count_servers(session, counter, &[], |server, client| {
        all_steps(setup, server, client)
    })
}

/// Where a pass stands.
struct Pass<'a> {
    plan: &'a Plan,
    endpoint: Endpoint,
    login: Login,
    /// Steps done.
    steps: u32,
    /// Seconds of the calendar that are over.
    second: u64,
    /// Rows of the table when the indexes are made.
    rows: u64,
}

fn all_steps(
    setup: &InsertSetup,
    server: &CountedServer<'_>,
    client: &Client<'_>,
) -> Result<(), Problem> {
    let at_rest = AtRest::of(server, client.plan)?;
    let Some(first) = client.plan.cells.first() else {
        return Ok(());
    };
    let (endpoint, login) = server.prepare(first)?;
    let mut pass = Pass {
        plan: client.plan,
        endpoint,
        login,
        steps: 0,
        second: 0,
        rows: 0,
    };
    let mut before = None;
    for (cell, step) in steps(setup) {
        if client.over() {
            return Ok(());
        }
        if is_settled(before, step) {
            at_rest.wait_alone(client);
            pass.settle(client)?;
        }
        at_rest.wait_alone(client);
        if !pass.step(setup, &at_rest, client, (cell, step))? {
            return Ok(());
        }
        before = Some(step);
    }
    Ok(())
}

/// Whether the table is vacuumed between these steps.
fn is_settled(before: Option<InsertStep>, step: InsertStep) -> bool {
    let deletes = |step: InsertStep| matches!(step, InsertStep::WriteMany | InsertStep::WriteFew);
    match before {
        None => false,
        Some(before) => deletes(step) && !deletes(before) || step.queries() && !before.queries(),
    }
}

impl Pass<'_> {
    fn settle(&self, client: &Client<'_>) -> Result<(), Problem> {
        let server = self.plan.server(client.server);
        let version_num = server.map_or(0, |server| server.installation.version_num);
        let mut admin = connect(&self.endpoint, &self.login)?;
        settle_sql(version_num, &[table_name(1)], true)
            .iter()
            .try_for_each(|sql| run(&mut admin, sql))
    }

    /// Counts a step; whether to go on.
    fn step(
        &mut self,
        setup: &InsertSetup,
        at_rest: &AtRest<'_>,
        client: &Client<'_>,
        (cell, step): (CellId, InsertStep),
    ) -> Result<bool, Problem> {
        let Some(planned) = self.plan.cell(cell) else {
            return Ok(false);
        };
        let visit = Visit {
            client,
            at_rest,
            cell: (cell, planned),
        };
        let statements = OneByOne::connect(OneByOneSpec {
            step,
            partitions: partitions(setup),
            endpoint: &self.endpoint,
            login: &self.login,
            seed: pass_seed(self.plan, 0),
            steps: self.steps,
            second: self.second,
            op_timeout: visit.limit(),
            before_send: until_asleep,
        })
        .map_err(|error| failed(step, &error))?;
        let mut sends = Step {
            statements,
            step,
            units: match step {
                InsertStep::Index => self.rows.max(1),
                step if step.queries() => 1,
                step => u64::from(step.batch()),
            },
            rows: 0,
        };
        match step {
            InsertStep::LoadRows => {
                let statements = setup.rows / u64::from(step.batch());
                if !unless_over(&mut sends, statements, || client.over())? {
                    return Ok(false);
                }
            }
            step if step.queries() => {
                sends.work(QUERIES_BEFORE)?;
            }
            _ => {}
        }
        let counted = visit.windows(&mut sends)?;
        self.steps += 1;
        self.second = sends.statements.second();
        if step == InsertStep::LoadRows {
            self.rows = sends.rows;
        }
        Ok(counted.is_some_and(|counted| client.tell(cell, counted)))
    }
}

/// Does operations one by one, for as long as the count goes on; whether it did all of them. A load takes
/// minutes where the counter is slow.
fn unless_over(
    sends: &mut impl Sends,
    operations: u64,
    over: impl Fn() -> bool,
) -> Result<bool, Problem> {
    for _ in 0..operations {
        if over() {
            return Ok(false);
        }
        sends.work(1)?;
    }
    Ok(true)
}

/// The operations of a step.
struct Step {
    statements: OneByOne,
    step: InsertStep,
    units: u64,
    /// Rows that its statements touched.
    rows: u64,
}

impl Sends for Step {
    fn pid(&self) -> u32 {
        self.statements.pid()
    }

    fn units(&self) -> u64 {
        self.units
    }

    fn repeats(&self) -> bool {
        self.step != InsertStep::Index
    }

    fn undo(&mut self) -> Result<bool, Problem> {
        let undone = self.statements.undo();
        undone.map_err(|error| failed(self.step, &error))
    }

    fn work(&mut self, operations: u64) -> Result<u64, Problem> {
        let rows = self.statements.work(operations);
        let rows = rows.map_err(|error| failed(self.step, &error))?;
        self.rows += rows;
        Ok(rows)
    }

    fn ask(&mut self, sql: &str) -> Result<(), WireError> {
        self.statements.ask(sql)
    }
}

fn failed(step: InsertStep, error: &WireError) -> Problem {
    Problem::new(format!("{} failed under the counter", step.name())).detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what it does.
    struct Done(u64);

    impl Sends for Done {
        fn pid(&self) -> u32 {
            0
        }

        fn undo(&mut self) -> Result<bool, Problem> {
            Ok(false)
        }

        fn work(&mut self, operations: u64) -> Result<u64, Problem> {
            self.0 += operations;
            Ok(0)
        }

        fn ask(&mut self, _: &str) -> Result<(), WireError> {
            Ok(())
        }
    }

    #[test]
    fn a_load_ends_with_the_count() {
        let mut sends = Done(0);
        assert!(unless_over(&mut sends, 200, || false).unwrap());
        assert_eq!(sends.0, 200);
        let looks = std::cell::Cell::new(0);
        let over = || looks.replace(looks.get() + 1) == 3;
        let mut sends = Done(0);
        assert!(!unless_over(&mut sends, 200, over).unwrap());
        assert_eq!(sends.0, 3);
    }

    #[test]
    fn the_table_is_vacuumed_before_deletes_and_before_queries() {
        let steps = InsertStep::published(&[100]);
        let mut before = None;
        let settled: Vec<String> = steps
            .into_iter()
            .filter(|step| {
                let settled = is_settled(before, *step);
                before = Some(*step);
                settled
            })
            .map(InsertStep::name)
            .collect();
        assert_eq!(settled, ["l.i1", "qr100"]);
    }
}
