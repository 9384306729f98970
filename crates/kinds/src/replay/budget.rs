//! Where the time goes: to the statements that can move the workload, and of these to the uncertain ones.

use super::turn::parts_of_turn;
use deltabench_compare::impact::ServerTimes;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::{CellId, Plan, Role, ServerId};
use deltabench_model::replayed::WeightedBy;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::{ReplaySetup, TimedStatement};
use deltabench_run::schedule::parameters;
use deltabench_stats::summary::mean;
use std::collections::BTreeSet;

/// Measured seconds of a visit on each server at least: a few slices.
pub const LEAST_SECONDS: f64 = 0.12;
/// And at most: more only makes the mean of one restart more exact.
const MOST_SECONDS: f64 = 10.0;
/// Part of a block's time that the mix has, and seconds on each server at least.
const MIX_PART: f64 = 0.2;
const LEAST_OF_MIX: f64 = 1.0;
/// Scatter between restarts that is assumed before it is known, as a log.
const ASSUMED_SD: f64 = 0.02;
/// One that moves the workload by too little is visited for [`LEAST_SECONDS`] in one of so many blocks. The
/// workload is the total of all: if most of it had only the first blocks, it would have their luck.
const TURNS: u64 = 3;
/// A round that no visit has: its parameters draw when the turn of a cell is.
const OF_TURNS: u32 = u32::MAX - 2;

/// The cells that a block measures if they are due: all in the first one, then those that may still move the
/// workload, and some of the others. It ends if none may, but not before the workload can have a verdict.
pub fn open_cells(plan: &Plan, setup: &ReplaySetup, block: u32, before: &[Slice]) -> Vec<CellId> {
    let all = CellId::each().take(plan.cells.len());
    if block >= plan.timing.blocks {
        return Vec::new();
    }
    if block == 0 {
        return all.collect();
    }
    let closed = closed(plan, setup, before);
    let matters = all.clone().any(|cell| !closed.contains(&cell));
    if !matters && u64::from(block) >= count(MIN_BLOCKS) {
        return Vec::new();
    }
    all.filter(|cell| !closed.contains(cell) || is_turn(plan, *cell, block))
        .collect()
}

/// The cells that move the workload by too little on all candidates to be measured on.
fn closed(plan: &Plan, setup: &ReplaySetup, before: &[Slice]) -> BTreeSet<CellId> {
    let candidates = times_of_candidates(plan, before);
    let cells = CellId::each().zip(shares(plan, setup, before));
    let closed = cells.filter(|cell| {
        candidates
            .iter()
            .all(|times| is_closed(setup, *cell, times))
    });
    closed.map(|(cell, _)| cell).collect()
}

/// Whether a cell that moves the workload by too little is visited in a block.
fn is_turn(plan: &Plan, cell: CellId, block: u32) -> bool {
    (parameters(plan, 0, cell, OF_TURNS) % TURNS + u64::from(block)).is_multiple_of(TURNS)
}

/// Whether a cell with this share moves the workload by too little on a server to be measured on. What the
/// capture does not weigh may matter.
pub fn is_closed(setup: &ReplaySetup, (cell, share): (CellId, f64), times: &ServerTimes) -> bool {
    let statement = setup.statements.get(cell.index());
    statement.is_some_and(|one| one.share.is_some())
        && times.hardly_matters(cell, share, setup.impact)
}

/// The share of the workload's time on the base that each cell is.
///
/// Without times in the capture it follows from the calls and from what an execution takes here, or took when
/// results were compared; then all cells together are the workload.
pub fn shares(plan: &Plan, setup: &ReplaySetup, slices: &[Slice]) -> Vec<f64> {
    let share = |statement: &TimedStatement| statement.share.unwrap_or(0.0);
    let known: Vec<f64> = setup.statements.iter().map(share).collect();
    if setup.weighted_by == WeightedBy::Time {
        return known;
    }
    let times = ServerTimes::of(plan, slices, plan.base());
    let cells = CellId::each().zip(setup.statements.iter().zip(known));
    let seconds = |(cell, (statement, share)): (CellId, (&TimedStatement, f64))| {
        let asked = || seconds_when_asked(statement);
        share * times.base_seconds(cell).or_else(asked).unwrap_or(0.0)
    };
    let seconds: Vec<f64> = cells.map(seconds).collect();
    let sum: f64 = seconds.iter().sum();
    let of = |seconds: &f64| if sum > 0.0 { seconds / sum } else { 0.0 };
    seconds.iter().map(of).collect()
}

/// The times of all candidates.
pub fn times_of_candidates(plan: &Plan, slices: &[Slice]) -> Vec<ServerTimes> {
    let candidates = plan.candidates().into_iter();
    candidates
        .map(|server| ServerTimes::of(plan, slices, server))
        .collect()
}

/// What a block does with a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Measured seconds on a server that executes a slice once ([`passes`]); a turn may have another part
    /// beside it ([`parts_of_turn`]).
    pub seconds: f64,
    /// Whether it is visited. An execution that takes longer than the cell's part of the block waits until
    /// the parts of several blocks are enough for it, so that it takes no time from others.
    pub is_due: bool,
}

/// The parts of these cells in the `seconds` of a block, by weight and scatter.
///
/// Shape: as many as `cells`, in their order.
pub fn parts(
    plan: &Plan,
    setup: &ReplaySetup,
    (block, cells, before): (u32, &[CellId], &[Slice]),
    seconds: f64,
) -> Vec<Part> {
    let is_mix = |cell: &CellId| setup.clients_of(*cell).is_some();
    let for_mix = match cells.iter().any(is_mix) {
        true => MIX_PART * seconds,
        false => 0.0,
    };
    let shares = shares(plan, setup, before);
    let candidates = times_of_candidates(plan, before);
    let closed = closed(plan, setup, before);
    let need = |cell: &CellId| {
        let matters = !closed.contains(cell);
        let share = shares
            .get(cell.index())
            .filter(|_| matters)
            .copied()
            .unwrap_or(0.0);
        let known = candidates.iter().filter_map(|times| times.sd(*cell));
        share * known.fold(ASSUMED_SD, f64::max)
    };
    let needs: Vec<f64> = cells.iter().map(need).collect();
    let sum: f64 = needs.iter().sum();
    let servers = ServerId::each().take(plan.servers.len());
    let servers = servers.map(|server| passes(plan, server)).sum::<u64>();
    let servers = to_f64(servers.max(1));
    let turn = |cell: &CellId| setup.statements.get(cell.index()).map_or(1, parts_of_turn);
    let in_turn = cells.iter().filter(|cell| closed.contains(cell)).map(turn);
    let in_turn = to_f64(in_turn.sum::<u64>());
    let seconds = (seconds - for_mix - in_turn * LEAST_SECONDS * servers).max(0.0);
    let part = |(cell, need): (&CellId, &f64)| {
        if is_mix(cell) {
            return Part {
                seconds: (for_mix / servers).clamp(LEAST_OF_MIX, MOST_SECONDS),
                is_due: true,
            };
        }
        let part = if sum > 0.0 {
            need / sum
        } else {
            1.0 / to_f64(count(needs.len()))
        };
        let mine = (part * seconds / servers / to_f64(turn(cell))).max(LEAST_SECONDS);
        let statement = setup.statements.get(cell.index());
        let once = seconds_of_one(*cell, before)
            .or_else(|| statement.and_then(seconds_when_asked))
            .unwrap_or(0.0);
        let visits = to_f64(count(blocks(*cell, before).len()));
        Part {
            seconds: mine.min(MOST_SECONDS),
            is_due: once <= mine || (visits + 1.0) * once <= mine * f64::from(block + 1),
        }
    };
    cells.iter().zip(&needs).map(part).collect()
}

/// How often a part of a turn executes its tuples on a server.
///
/// Two servers that somebody else runs are three sides: base and placebo are one server, which executes
/// everything twice and finds caches warm the second time. So the candidates do, too.
pub fn passes(plan: &Plan, server: ServerId) -> u64 {
    let is_alone = plan.server(server).is_some_and(|server| {
        server.role == Role::Candidate && server.installation.remote.is_some()
    });
    if is_alone && plan.placebo().is_some() {
        2
    } else {
        1
    }
}

/// The blocks in which a cell was measured.
fn blocks(cell: CellId, slices: &[Slice]) -> BTreeSet<u32> {
    let its = slices.iter().filter(|slice| slice.cell == cell);
    its.map(|slice| slice.block).collect()
}

/// Seconds of an execution, the mean of all servers in the last block that has the cell.
fn seconds_of_one(cell: CellId, slices: &[Slice]) -> Option<f64> {
    let last = blocks(cell, slices).pop_last()?;
    let its = slices
        .iter()
        .filter(|slice| (slice.cell, slice.block) == (cell, last));
    let seconds = |slice: &Slice| to_f64(slice.duration_ns) / 1e9 / to_f64(slice.operations.max(1));
    mean(&its.map(seconds).collect::<Vec<f64>>())
}

/// Seconds of an execution on the slowest server when results were compared, the mean of all tuples.
pub fn seconds_when_asked(statement: &TimedStatement) -> Option<f64> {
    let tuples = statement.tuples.iter();
    mean(
        &tuples
            .filter_map(|tuple| tuple.slowest_seconds)
            .collect::<Vec<f64>>(),
    )
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use deltabench_model::installation::{Remote, RemoteTls};

    use deltabench_model::units::to_u64;
    use deltabench_model::work::replay::{OldPlanSettings, TimedTuple};
    use deltabench_testkit::small_replay;
    use deltabench_testkit::small_run::{bare_slice, plan};

    /// Statements of a third of the time each, that took so long when results were compared.
    pub fn setup(seconds: [f64; 3]) -> ReplaySetup {
        let statement = |(place, seconds): (u32, f64)| TimedStatement {
            id: place.to_string(),
            place,
            share: Some(1.0 / 3.0),
            calls: 1,
            tuples: vec![TimedTuple {
                place: 0,
                weight: 1.0,
                changed: Vec::new(),
                slowest_seconds: Some(seconds),
            }],
            write: None,
            parallel: false,
            old_plans: Vec::new(),
            unfit: Vec::new(),
        };
        ReplaySetup {
            budget_seconds: 600.0,
            statements: (0..).zip(seconds).map(statement).collect(),
            ..small_replay()
        }
    }

    /// Gives a statement settings with which a candidate has the plan of the base.
    pub fn with_old_plan(statement: &mut TimedStatement) {
        statement.old_plans.push(OldPlanSettings {
            server: 2,
            settings: vec![("enable_seqscan".to_owned(), "off".to_owned())],
        });
    }

    #[test]
    fn a_statement_that_all_servers_execute_twice_is_measured_half_as_long() {
        let (plan, mut setup) = (plan(), setup([0.01; 3]));
        let cells = [CellId(0), CellId(1), CellId(2)];
        with_old_plan(&mut setup.statements[1]);
        let parts = parts(&plan, &setup, (0, &cells, &[]), 27.0);
        // Of three servers and three statements.
        for (part, wanted) in parts.iter().zip([3.0, 1.5, 3.0]) {
            assert!((part.seconds - wanted).abs() < 1e-9, "{parts:?}");
        }
    }

    /// Goes through ten blocks of a minute; seconds that each cell took on a server, by block.
    fn blocks(took: [f64; 3], asked: [f64; 3]) -> Vec<[Option<f64>; 3]> {
        let (plan, setup) = (plan(), setup(asked));
        let cells = [CellId(0), CellId(1), CellId(2)];
        let mut slices: Vec<Slice> = Vec::new();
        let block = |block: u32| {
            let parts = parts(&plan, &setup, (block, &cells, &slices), 60.0);
            let visits = [0, 1, 2].map(|cell| {
                let part: &Part = &parts[cell];
                part.is_due.then(|| part.seconds.max(took[cell]))
            });
            for (cell, visit) in cells.into_iter().zip(visits) {
                for server in (0..3).map(ServerId).filter(|_| visit.is_some()) {
                    slices.push(Slice {
                        server,
                        cell,
                        block,
                        duration_ns: to_u64(took[cell.index()] * 1e9),
                        operations: 1,
                        ..bare_slice()
                    });
                }
            }
            visits
        };
        (0..10).map(block).collect()
    }

    #[test]
    fn an_execution_waits_for_the_parts_of_several_blocks_and_takes_none_from_others() {
        // As long as found before, and far longer than that.
        for asked in [30.0, 0.01] {
            let found = blocks([30.0, 0.01, 0.01], [asked, 0.01, 0.01]);
            let of = |cell: usize| found.iter().filter_map(move |visits| visits[cell]);
            let slow: f64 = of(0).sum();
            // A part is 60 s / 3 servers / 3 cells in each of ten blocks; the first visit may be a surprise.
            assert!(slow > 30.0 && slow <= 66.7 + 30.0, "{asked}: {found:?}");
            for cell in [1, 2] {
                assert_eq!(of(cell).count(), 10, "{found:?}");
                assert!(of(cell).all(|seconds| seconds > 6.6), "{found:?}");
            }
        }
    }

    #[test]
    fn one_that_the_whole_budget_is_too_short_for_is_never_due() {
        let found = blocks([900.0, 0.01, 0.01], [900.0, 0.01, 0.01]);
        assert!(found.iter().all(|visits| visits[0].is_none()), "{found:?}");
    }

    #[test]
    fn a_candidate_of_somebody_else_executes_as_often_as_the_server_that_is_base_and_placebo() {
        let own = plan();
        let times = |plan: &Plan| {
            let servers = ServerId::each().take(plan.servers.len());
            servers
                .map(|server| passes(plan, server))
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&own), [1, 1, 1]);
        let mut theirs = own;
        for server in &mut theirs.servers {
            server.installation.remote = Some(Remote {
                host: "old".to_owned(),
                port: 5432,
                user: "replayer".to_owned(),
                database: "shop".to_owned(),
                tls: RemoteTls::Disable,
                root_certificate: None,
                agent: None,
            });
        }
        assert_eq!(times(&theirs), [1, 1, 2]);
    }
}
