//! What follows a run: its differences once more, what they depend on, and instructions of its cells, each a
//! run of its own beside it.

use crate::bench::{Bench, library_of};
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::output::{Destinations, analyse_run};
use crate::sensitivity;
use crate::store::store_problem;
use crate::targets::hold_binaries;
use deltabench_lab::{Analysed, Judged, changed, count_name, counted_cells};
use deltabench_model::counts::{CountedAfter, Counting};
use deltabench_model::plan::{
    CacheState, Cell, CellId, Gate, Limits, Observing, Plan, Role, Stopping, Transport,
};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_run::session::SessionEnd;
use deltabench_server::Counter;
use deltabench_store::Store;
use deltabench_workload::Library;

/// Rows that cells are counted on which were measured on more: the counter needs time for each, and what an
/// operation does hardly depends on it.
pub const ROWS: u64 = crate::defaults::COUNTED_ROWS;

/// Seed of a count that names none: counts of different days are the same numbers.
pub const SEED: u64 = 1;

/// Seconds that nobody asked for may take.
pub const SECONDS: u32 = 90;

/// Of these, what setting up takes, with two starts of two servers side by side.
const SET_UP_SECONDS: u64 = 34;

/// Seconds of a cell in one start.
const CELL_SECONDS: u64 = 3;

/// Refuses to count afterwards what cannot be counted, if it was asked for; else leaves it out where a server
/// is not ours.
///
/// Errors: what is in the way.
pub fn checked(mut plan: Plan) -> Result<Plan, Problem> {
    let all: Vec<CellId> = CellId::each().take(plan.cells.len()).collect();
    match plan.observing.counted_after {
        Some(CountedAfter::All) => {
            plan_to_count(&plan, &all)?;
        }
        Some(CountedAfter::Changed)
            if plan.servers.iter().any(|s| s.installation.remote.is_some()) =>
        {
            plan.observing.counted_after = None;
        }
        _ => {}
    }
    Ok(plan)
}

/// Whether all cells of a run are counted, or no cell has to be: what can be said without its result.
pub fn all_counted(run: &str, plan: &Plan, store: &Store) -> Result<bool, Failure> {
    let none = plan.observing.counted_after.is_none();
    let done = || counted_cells(run, plan, store).map_err(store_problem);
    Ok(none || done()?.len() == plan.cells.len())
}

/// Counts what the plan wants counted of a run that is over, and reads the run again with it. What
/// stands in the way is said, and the result stays as it was.
pub fn counted(bench: &mut Bench, analysed: Analysed) -> Result<(Analysed, FollowUp), Failure> {
    let nothing = |analysed| Ok((analysed, FollowUp::Finished));
    let (run, plan) = (analysed.context.run.clone(), analysed.plan.clone());
    let Some(wanted) = plan.observing.counted_after else {
        return nothing(analysed);
    };
    let mut cells = match wanted {
        CountedAfter::Changed => countable(&plan, changed(&analysed.comparison)),
        CountedAfter::All => CellId::each().take(plan.cells.len()).collect(),
    };
    let done = counted_cells(&run, &plan, &bench.store).map_err(store_problem)?;
    cells.retain(|cell| !done.contains(cell));
    if cells.is_empty() {
        return nothing(analysed);
    }
    let what = match wanted {
        CountedAfter::Changed => {
            cells.truncate(fitting(&plan));
            let what = match cells.len() {
                1 => "the cell that changed".to_owned(),
                several => format!("{several} cells that changed"),
            };
            format!("{what} ({SECONDS} s at most; --no-count leaves it out)")
        }
        CountedAfter::All => "all cells".to_owned(),
    };
    let failed = |problem: &Problem| {
        say(&left_out(problem));
        match wanted {
            // Nobody asked for it.
            CountedAfter::Changed => FollowUp::Finished,
            CountedAfter::All => FollowUp::Failed,
        }
    };
    let mut counting = match plan_to_count(&plan, &cells) {
        Ok(counting) => counting,
        Err(problem) => return Ok((analysed, failed(&problem))),
    };
    if wanted == CountedAfter::Changed {
        counting.observing.counting = Some(Counting {
            seconds: Some(SECONDS),
            ..Counting::default()
        });
    }
    say(&format!("counting the instructions of {what}"));
    let after = match count_for(bench, &run, counting) {
        Ok(SessionEnd::Finished) => FollowUp::Finished,
        Ok(SessionEnd::Interrupted) => {
            say(&format!("`deltabench resume {run}` counts again"));
            FollowUp::Interrupted
        }
        Err(failure) => failed(failure.problem()),
    };
    Ok((analyse_run(&run, &plan, &bench.store)?, after))
}

/// Those of the cells that a count can do; all of them if there is none: then the reason is printed.
fn countable(plan: &Plan, cells: Vec<CellId>) -> Vec<CellId> {
    let can =
        |cell: &CellId| deltabench_kinds::check_counted(&counting_plan(plan, &[*cell])).is_ok();
    let found: Vec<CellId> = cells.iter().copied().filter(can).collect();
    match found.is_empty() {
        true => cells,
        false => found,
    }
}

/// Measures what a run that came to this end was planned with, as far as it is left: its differences once
/// more, and what they depend on. Then as [`conclude`].
pub fn follow(
    bench: &mut Bench,
    judged: Judged,
    library: &Library,
    end: SessionEnd,
    destinations: &Destinations,
) -> Result<u8, Failure> {
    let (mut after, mut again) = (FollowUp::of(Ok(end)), None);
    if after == FollowUp::Finished {
        (after, again) = bench.confirm_planned(&judged, library);
    }
    if after == FollowUp::Finished {
        after = sensitivity::wanted(bench, &judged, library);
    }
    let analysed = bench.analysed(judged, again)?;
    conclude(bench, analysed, (end, after), destinations)
}

/// Counts what is still to be counted of a run, then publishes it; returns the exit code. Nothing is counted
/// if the run, or what followed it, did not come to its end.
pub fn conclude(
    bench: &mut Bench,
    mut analysed: Analysed,
    (end, mut after): (SessionEnd, FollowUp),
    destinations: &Destinations,
) -> Result<u8, Failure> {
    let mut again =
        "`deltabench list` shows what failed, and `deltabench resume NAME` measures it \
                     again"
            .to_owned();
    if (end, after) == (SessionEnd::Finished, FollowUp::Finished) {
        (analysed, after) = counted(bench, analysed)?;
        // A count itself cannot be resumed.
        again = format!("`deltabench resume {}` counts again", analysed.context.run);
    }
    let code = bench.publish(&analysed, end, destinations)?;
    if after == FollowUp::Failed {
        say(&format!(
            "exit code 5: not all that you asked for was measured. The result above is valid; {again}"
        ));
    }
    Ok(after.code(code))
}

/// Counts for a run, as the next run that does.
pub fn count_for(bench: &mut Bench, run: &str, mut counting: Plan) -> Result<SessionEnd, Failure> {
    let library = library_of(&counting)?;
    let known = bench.store.counting_for(run).map_err(store_problem)?;
    counting.counts = Some(run.to_owned());
    let name = count_name(run, &known);
    let measured = bench.measure_new(&counting, &library, Some(name), false)?;
    Ok(measured.end)
}

/// Why there is no count, in one line: the result that it would go with stands.
pub fn left_out(problem: &Problem) -> String {
    let more = problem.detail.iter().chain(&problem.hint);
    let more: Vec<&str> = more.map(|text| text.lines().next().unwrap_or("")).collect();
    format!(
        "instructions are not counted: {}: {}",
        problem.error,
        more.join("; ")
    )
}

/// Cells that a machine as ours counts in the time.
fn fitting(plan: &Plan) -> usize {
    let servers = plan
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let turns = count(servers.count().div_ceil(cores)) * u64::from(Counting::default().starts);
    let left = u64::from(SECONDS).saturating_sub(SET_UP_SECONDS * turns / 2);
    usize::try_from(left / (turns * CELL_SECONDS))
        .unwrap_or(0)
        .max(1)
}

/// The plan that counts some cells of a run, if it can be carried out here.
///
/// Errors: what is in the way.
pub fn plan_to_count(plan: &Plan, cells: &[CellId]) -> Result<Plan, Problem> {
    deltabench_kinds::check_counted_after(&plan.work)?;
    let counting = counting_plan(plan, cells);
    deltabench_kinds::check_counted(&counting)?;
    Counter::find()?;
    hold_binaries(&counting)?;
    Ok(counting)
}

/// The plan of a run as one that counts some of its cells, in this order, with one client each.
fn counting_plan(plan: &Plan, cells: &[CellId]) -> Plan {
    let mut counted: Vec<Cell> = Vec::new();
    for cell in cells.iter().filter_map(|id| plan.cell(*id)) {
        let alone = Cell {
            clients: 1,
            rate: None,
            ..cell.clone()
        };
        if !counted.contains(&alone) {
            counted.push(alone);
        }
    }
    let mut again = plan.clone();
    again.cells = counted;
    again.seed = SEED;
    again.servers.retain(|server| server.role != Role::Placebo);
    again.data.tables = 1;
    again.data.rows = again.data.rows.min(ROWS);
    again.work = again.work.on_small_tables();
    again.stopping = Stopping::Fixed;
    // Limits of a time are none of instructions.
    again.gate = Gate::default();
    again.transport = Transport::Socket;
    again.cache = CacheState::AsIs;
    again.limits = Limits::default();
    again.pins = None;
    again.confirms = None;
    again.bisects = None;
    again.session = None;
    again.sensitivity = None;
    again.experiment = None;
    again.observing = Observing {
        counters: false,
        counting: Some(Counting::default()),
        ..Observing::default()
    };
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::{SensitivityPart, Varied};
    use deltabench_model::work::Work;
    use deltabench_model::work::insert::{InsertSetup, InsertStep};
    use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep, RocksdbWorkload};
    use deltabench_run::planning;
    use deltabench_testkit::small_insert;

    #[test]
    fn cells_at_several_numbers_of_clients_are_counted_once_and_without_a_placebo() {
        let mut plan = deltabench_testkit::small_run::plan();
        let first = plan.cells.remove(0);
        plan.cells = [1, 4, 8]
            .map(|clients| Cell {
                clients,
                ..first.clone()
            })
            .to_vec();
        plan.data.rows = 1_000_000;
        plan.gate.not_worse_than = Some(0.05);
        plan.cache = CacheState::Cold;
        plan.data.tables = 4;
        plan.observing.counted_after = Some(CountedAfter::All);
        plan.session = planning::sessions("r", &plan, 2, 0.0).remove(1).session;
        plan.sensitivity = Some(SensitivityPart {
            of: "r".to_owned(),
            varied: Varied::Tcp,
        });
        let counted = counting_plan(&plan, &[CellId(2), CellId(0)]);
        assert_eq!(
            counted.cells,
            [Cell {
                clients: 1,
                ..first
            }]
        );
        assert!(
            counted
                .servers
                .iter()
                .all(|server| server.role != Role::Placebo)
        );
        assert_eq!((counted.data.tables, counted.data.rows), (1, ROWS));
        assert_eq!(counted.gate, Gate::default());
        assert!(counted.observing.counting.is_some());
        assert_eq!(counted.observing.counted_after, None);
        // It belongs to nothing that would move its ports and environment.
        assert_eq!((&counted.session, &counted.sensitivity), (&None, &None));
        assert!(!counted.is_again());
        deltabench_kinds::check_counted(&counted).unwrap();
    }

    #[test]
    fn servers_that_were_there_before_are_not_counted_and_whoever_asks_for_it_is_told() {
        let mut plan = deltabench_testkit::small_run::plan();
        plan.cells.truncate(1);
        if let Some(server) = plan.servers.first_mut() {
            server.installation.remote = Some(deltabench_model::installation::Remote {
                host: "db.example".to_owned(),
                port: 5432,
                user: "u".to_owned(),
                database: "d".to_owned(),
                tls: Default::default(),
                root_certificate: None,
                agent: None,
            });
        }
        let wanted = |after| {
            let mut plan = plan.clone();
            plan.observing.counted_after = after;
            checked(plan).map(|plan| plan.observing.counted_after)
        };
        assert_eq!(wanted(Some(CountedAfter::Changed)), Ok(None));
        assert_eq!(wanted(None), Ok(None));
        let refused = wanted(Some(CountedAfter::All)).unwrap_err();
        assert!(refused.error.ends_with("cannot be counted"), "{refused:?}");
        assert!(refused.hint.unwrap().contains("as a target"));
    }

    #[test]
    fn steps_of_a_measured_run_are_not_counted_though_all_of_them_are_named() {
        let refused = |work: Work, cells: Vec<Cell>| {
            let mut plan = deltabench_testkit::small_run::plan();
            (plan.work, plan.cells) = (work, cells);
            let all: Vec<CellId> = CellId::each().take(plan.cells.len()).collect();
            plan_to_count(&plan, &all).unwrap_err()
        };
        let insert = InsertSetup {
            rows: 20_000,
            write_rows: 2500,
            steps: vec![InsertStep::LoadRows],
            ..small_insert()
        };
        let cells = deltabench_kinds::insert::setup::cells(&insert);
        let of_insert = refused(Work::Insert(insert), cells);
        let rocksdb = RocksdbSetup {
            workload: RocksdbWorkload::default(),
            keys: 10_000,
            key_bytes: 20,
            value_bytes: 400,
            threads: vec![1],
            seconds: 1,
            writer_bytes_per_second: 0,
            steps: vec![RocksdbStep::Fillseq],
            cache_bytes: 1 << 26,
            background_jobs: 1,
            options: Vec::new(),
        };
        let cells = rocksdb.cells();
        let of_rocksdb = refused(Work::Rocksdb(rocksdb), cells);
        for (problem, command) in [(of_insert, "--insert"), (of_rocksdb, "--only STEP")] {
            let error = "the steps of a measured run cannot be counted";
            assert_eq!(problem.error, error);
            assert!(problem.hint.unwrap().contains(command));
        }
    }

    #[test]
    fn what_is_in_the_way_of_a_count_that_nobody_asked_for_is_one_line() {
        let problem = Problem::new("there is no valgrind")
            .detail("it is not on PATH\nnowhere")
            .hint("install it");
        assert_eq!(
            left_out(&problem),
            "instructions are not counted: there is no valgrind: it is not on PATH; install it"
        );
    }
}
