//! The built-in driver against the scripts that come with sysbench, and against pgbench: the same SQL, as
//! often, as fast?
//!
//! One server of our own, with `pg_stat_statements`. In each round both sides do the same number of
//! operations on the same tables over a new connection, in random order; a workload that writes gets its
//! tables anew before each side's turn. The server says what it was sent. Results are raw; [`finding`] says
//! what they mean.

pub mod finding;
pub mod json;
pub mod packaged;
pub mod pgbench;
pub mod statements;
pub mod tables;
mod watcher;

use crate::server;
use deltabench_driver::crosscheck::pgbench::run_pgbench;
use deltabench_driver::crosscheck::{OwnRun, ScriptRun, run_own_client, run_script};
use deltabench_driver::peer::PeerOutcome;
use deltabench_kinds::run_half;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Cell, DataSize, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{seconds, to_f64, to_u64};
use deltabench_observe::{own_affinity, pin_tree};
use deltabench_run::fleet::{Fleet, Host};
use deltabench_run::load::address_for;
use deltabench_run::remote::only_own;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use deltabench_workload::executable::Executable;
use deltabench_workload::{Definition, mix};
use packaged::{Packaged, extra_sources, packaged};
use statements::{Counted, Profile};
use std::sync::atomic::{AtomicBool, Ordering};
use watcher::Watcher;

/// Runs of one event for each workload: the median of their client CPU is what starting up costs.
const START_UPS: u64 = 3;

/// Fewest operations of a run: what comes once for each connection must stand out from the rest.
const OPERATIONS_MIN: u64 = 20;

/// A run that deletes leaves at least this share of the rows.
const LEFT_AT_LEAST: u64 = 2;

/// What to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct CrosscheckRequest {
    /// The server to run against.
    pub installation: Installation,
    /// The workloads, from [`packaged::chosen`].
    pub workloads: Vec<Definition>,
    pub rounds: u32,
    /// Seconds of our own client in a round.
    pub seconds: f64,
    pub rows: u64,
    /// Seed of orders and keys.
    pub seed: u64,
}

/// Fewest rows: the largest range that is part of a table at all.
const ROWS_MIN: u64 = 1000;

/// Refuses what cannot be measured.
///
/// Errors: rounds of which no interval can be made, seconds and rows that cannot be.
pub fn check(rounds: u32, seconds: f64, rows: u64) -> Result<(), Problem> {
    if rounds < 2 {
        return Err(Problem::new("an interval needs at least two rounds").hint("use --rounds 2"));
    }
    if !(seconds > 0.0 && seconds <= 60.0) {
        return Err(Problem::new(format!("--seconds {seconds} is out of range"))
            .hint("use more than 0 and at most 60"));
    }
    if rows < ROWS_MIN || i32::try_from(rows).is_err() {
        return Err(Problem::new(format!("--rows {rows} is out of range"))
            .detail("sysbench's ids are 32-bit integers, and its ranges have up to 10000 of them")
            .hint(format!("use between {ROWS_MIN} and {}", i32::MAX)));
    }
    Ok(())
}

/// What was found of one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadCrosscheck {
    pub workload: String,
    /// What sysbench's package has for it.
    pub packaged: Packaged,
    /// What was measured; absent where the package has nothing.
    pub measured: Option<Measured>,
}

/// The two sides of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Operations of each side in each round.
    pub operations: u64,
    /// What one would type after the name of the other tool to see the same, without the connection.
    pub arguments: Vec<String>,
    /// What our own client sends.
    pub own: Profile,
    /// What the other tool sends.
    pub peer: Profile,
    pub rounds: Vec<CrosscheckRound>,
}

/// Both sides, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrosscheckRound {
    /// Our own client.
    pub own: Turn,
    /// The other tool.
    pub peer: Turn,
}

/// One side's turn in a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Operations, duration and client CPU; start-up is not in them.
    pub outcome: PeerOutcome,
    /// Execution time of the statements by the server's own account, milliseconds.
    pub server_ms: f64,
}

/// Runs both sides of every workload.
///
/// Shape:  in the order of the request; `None` when `interrupted` was set meanwhile.
/// Errors: a server that cannot be had, or that has no `pg_stat_statements`; a run that fails.
pub fn crosscheck(
    request: &CrosscheckRequest,
    host: &Host,
    interrupted: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Option<Vec<WorkloadCrosscheck>>, Problem> {
    let plan = plan(request);
    let executables = request
        .workloads
        .iter()
        .map(|definition| definition.compile(&plan.data))
        .collect::<Result<Vec<_>, _>>()?;
    only_own(&plan)?;
    let mut fleet = Fleet::create(&plan, run_half(&plan.work), "crosscheck", host, note)?;
    let rows = match fleet.load(&executables, interrupted, note) {
        Ok(None) => Ok(None),
        Ok(Some(_)) => Bench::start(
            &plan,
            (request.rounds, request.seconds),
            &mut fleet,
            interrupted,
        )
        .and_then(|mut bench| bench.all(request, &plan, &executables, note)),
        Err(problem) => Err(problem),
    };
    let dismantled = fleet.dismantle();
    // An interrupt from the terminal ends sysbench too: what looks like a failure is none.
    let rows = if interrupted.load(Ordering::Relaxed) {
        None
    } else {
        rows?
    };
    dismantled.map(|()| rows)
}

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Own,
    Peer,
}

/// The running server and what is being measured on it.
struct Bench<'a, 'p> {
    rounds: u32,
    seconds: f64,
    fleet: &'a mut Fleet<'p>,
    schedule: BlockSchedule,
    address: Address,
    watcher: Watcher,
    /// The one core of client and server.
    cores: Vec<usize>,
    interrupted: &'a AtomicBool,
}

/// One workload with what another tool has for it.
struct Pair<'a> {
    cell: &'a Cell,
    login: Login,
    executable: &'a Executable,
    peer: Peer<'a>,
    /// Most operations of a run.
    operations_max: u64,
    seed: u64,
}

/// What the other tool does.
#[derive(Clone, Copy)]
enum Peer<'a> {
    /// A packaged script of sysbench.
    Sysbench {
        script: &'static str,
        options: &'static [(&'static str, u64)],
        rows: u64,
    },
    Pgbench(pgbench::Script<'a>),
}

impl Peer<'_> {
    fn run(
        &self,
        (endpoint, login): (&Endpoint, &Login),
        cores: &[usize],
        operations: u64,
        seed: u64,
    ) -> Result<PeerOutcome, Problem> {
        match self {
            Self::Sysbench { .. } => match self.sysbench(cores, operations, seed) {
                Some(run) => run_script(&run, endpoint, login),
                None => Err(Problem::new("not a script of sysbench")),
            },
            Self::Pgbench(script) => {
                run_pgbench(&script.run(cores, operations, seed), endpoint, login)
            }
        }
    }

    fn arguments(&self, operations: u64, seed: u64) -> Vec<String> {
        match self {
            Self::Sysbench { .. } => {
                let run = self.sysbench(&[], operations, seed);
                run.map(|run| run.arguments()).unwrap_or_default()
            }
            Self::Pgbench(script) => script.run(&[], operations, seed).arguments(),
        }
    }

    fn sysbench<'b>(&self, cores: &'b [usize], events: u64, seed: u64) -> Option<ScriptRun<'b>> {
        match *self {
            Self::Sysbench {
                script,
                options,
                rows,
            } => Some(ScriptRun {
                script,
                options,
                rows,
                events,
                seed,
                affinity: cores,
            }),
            Self::Pgbench(_) => None,
        }
    }
}

impl<'a, 'p> Bench<'a, 'p> {
    fn start(
        plan: &Plan,
        (rounds, seconds): (u32, f64),
        fleet: &'a mut Fleet<'p>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Problem> {
        let schedule = BlockSchedule::of(plan, 0);
        let address = fleet.start_one(&schedule, ServerId(0))?;
        let server = plan.servers.first();
        let version_num = server.map_or(0, |server| server.installation.version_num);
        let watcher = Watcher::start(&address, version_num)?;
        let cores: Vec<usize> = own_affinity()
            .unwrap_or_default()
            .into_iter()
            .take(1)
            .collect();
        pin_tree(address.own_pid()?, &cores).map_err(|error| {
            Problem::new("the server cannot be pinned").detail(error.to_string())
        })?;
        Ok(Self {
            rounds,
            seconds,
            fleet,
            schedule,
            address,
            watcher,
            cores,
            interrupted,
        })
    }

    fn all(
        &mut self,
        request: &CrosscheckRequest,
        plan: &Plan,
        executables: &[Executable],
        note: &mut dyn FnMut(String),
    ) -> Result<Option<Vec<WorkloadCrosscheck>>, Problem> {
        let mut rows = Vec::new();
        for ((number, cell), executable) in (0..).zip(&plan.cells).zip(executables) {
            let name = &cell.workload;
            let found = packaged(name)
                .ok_or_else(|| Problem::new(format!("{name} is not known to a crosscheck")))?;
            let measured = match found {
                Packaged::Nothing(_) => None,
                Packaged::Script { script, options } => {
                    note(format!("{name} and {script}"));
                    let pair = Pair {
                        cell,
                        login: address_for(&self.address, plan.order, cell).login,
                        executable,
                        peer: Peer::Sysbench {
                            script,
                            options,
                            rows: request.rows,
                        },
                        operations_max: match script {
                            "oltp_delete" => request.rows / LEFT_AT_LEAST,
                            _ => u64::MAX,
                        },
                        seed: mix(request.seed, &[number]),
                    };
                    match self.pair(&pair)? {
                        None => return Ok(None),
                        measured => measured,
                    }
                }
            };
            rows.push(WorkloadCrosscheck {
                workload: name.clone(),
                packaged: found,
                measured,
            });
        }
        Ok(Some(rows))
    }

    /// Both sides of one workload; `None` when interrupted.
    fn pair(&mut self, pair: &Pair<'_>) -> Result<Option<Measured>, Problem> {
        self.renew(pair)?;
        let operations = self.operations(pair)?;
        let (start_up, peer_short) = self.start_up(pair)?;
        let shortest = u64::from(pair.cell.clients);
        let (_, own_short) = self.turn(pair, Side::Own, shortest, 0, true)?;
        let (mut rounds, mut own, mut peer) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let key = u64::from(round) + 1;
            let sides = if mix(pair.seed, &[key, 1]).is_multiple_of(2) {
                [Side::Own, Side::Peer]
            } else {
                [Side::Peer, Side::Own]
            };
            for side in sides {
                self.renew(pair)?;
                let turn = self.turn(pair, side, operations, key, round == 0)?;
                match side {
                    Side::Own => own.push(turn),
                    Side::Peer => peer.push((turn.0.less(&start_up), turn.1)),
                }
            }
        }
        for (own, peer) in own.iter().zip(&peer) {
            rounds.push(CrosscheckRound {
                own: Turn::of(own),
                peer: Turn::of(peer),
            });
        }
        let counted = |turns: Vec<(PeerOutcome, Counted)>| -> Vec<Counted> {
            turns.into_iter().map(|(_, counted)| counted).collect()
        };
        Ok(Some(Measured {
            operations,
            arguments: pair.peer.arguments(operations, mix(pair.seed, &[1, 3])),
            own: Profile::of(&own_short, &counted(own)),
            peer: Profile::of(&peer_short, &counted(peer)),
            rounds,
        }))
    }

    /// Gives a workload that writes tables nobody has written to.
    fn renew(&mut self, pair: &Pair<'_>) -> Result<(), Problem> {
        if pair.cell.writes {
            self.fleet.renew(&self.schedule, ServerId(0), pair.cell)?;
        }
        Ok(())
    }

    /// What starting the other tool costs, and what its shortest run sends.
    fn start_up(&mut self, pair: &Pair<'_>) -> Result<(PeerOutcome, Counted), Problem> {
        let mut runs = Vec::new();
        for number in 0..START_UPS {
            // The last is the one that is counted in full.
            let last = number + 1 == START_UPS;
            let shortest = u64::from(pair.cell.clients);
            runs.push(self.turn(pair, Side::Peer, shortest, 0, last)?);
        }
        let counted = runs.last().map(|(_, counted)| counted.clone());
        runs.sort_by_key(|(outcome, _)| outcome.client_cpu_ns);
        let median = runs.get(runs.len() / 2).map(|(outcome, _)| *outcome);
        median
            .zip(counted)
            .ok_or_else(|| Problem::new("no start-up was measured"))
    }

    /// One side's run, and what the server counted meanwhile.
    fn turn(
        &mut self,
        pair: &Pair<'_>,
        side: Side,
        operations: u64,
        key: u64,
        transactions: bool,
    ) -> Result<(PeerOutcome, Counted), Problem> {
        // Without BEGIN and COMMIT the statements say it all.
        let several = pair.cell.statements_per_operation > 1;
        let transactions = transactions && (several || self.watcher.has_current_transactions());
        let endpoint = &self.address.endpoint;
        let work = || match side {
            Side::Own => {
                let run = OwnRun {
                    jobs: 1,
                    executable: pair.executable,
                    clients: pair.cell.clients,
                    operations,
                    seed: mix(pair.seed, &[key, 2]),
                    affinity: &self.cores,
                };
                run_own_client(&run, endpoint, &pair.login)
            }
            Side::Peer => {
                let place = (endpoint, &pair.login);
                pair.peer
                    .run(place, &self.cores, operations, mix(pair.seed, &[key, 3]))
            }
        };
        let done = |outcome: &PeerOutcome| outcome.operations;
        self.watcher
            .count(&pair.login.database, transactions, done, work)
            .map_err(|problem| self.with_log(problem))
    }

    /// How many operations our own client does in the asked seconds, roughly.
    fn operations(&mut self, pair: &Pair<'_>) -> Result<u64, Problem> {
        // pgbench gives each of its clients the same number.
        let clients = u64::from(pair.cell.clients.max(1));
        let mut operations = OPERATIONS_MIN * clients;
        let enough = loop {
            let (outcome, _) = self.turn(pair, Side::Own, operations, 0, false)?;
            let took = seconds(outcome.duration_ns).max(1e-6);
            if took >= self.seconds / 4.0 {
                break to_u64(to_f64(operations) * self.seconds / took);
            }
            operations *= 4;
        };
        let most = pair.executable.operations_max.unwrap_or(u64::MAX);
        let most = most.min(pair.operations_max);
        Ok((enough.max(OPERATIONS_MIN).min(most) / clients).max(1) * clients)
    }

    fn with_log(&self, problem: Problem) -> Problem {
        let detail = problem.detail.clone().unwrap_or_default();
        let tail = self.fleet.log_tail(&self.schedule, ServerId(0));
        problem.detail(format!("{detail}\nend of the server's log:\n{tail}"))
    }
}

impl Turn {
    fn of((outcome, counted): &(PeerOutcome, Counted)) -> Self {
        Self {
            outcome: *outcome,
            server_ms: counted.time_ms(),
        }
    }
}

/// A plan of one server with all workloads, so that a fleet can be made of it.
fn plan(request: &CrosscheckRequest) -> Plan {
    let data = DataSize {
        tables: 1,
        rows: request.rows,
    };
    let cells = request.workloads.iter();
    Plan {
        settings: watcher::settings(request.installation.version_num),
        workloads: extra_sources(),
        ..server::plan(
            &request.installation,
            cells.map(|definition| cell(definition, &data, 1)).collect(),
            data,
            request.seed,
        )
    }
}

fn cell(definition: &Definition, data: &DataSize, clients: u32) -> Cell {
    Cell {
        workload: definition.name.clone(),
        group: definition.group,
        clients,
        writes: definition.writes,
        statements_per_operation: definition.statements_per_operation(),
        state: Default::default(),
        rate: None,
        published: definition.published_rate(data, clients),
        reconnects: definition.reconnects(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_both_ends() {
        assert_eq!(check(6, 0.5, 100_000), Ok(()));
        for rows in [999, 3_000_000_000] {
            let hint = check(6, 0.5, rows).unwrap_err().hint.unwrap();
            assert_eq!(hint, "use between 1000 and 2147483647");
        }
    }
}
