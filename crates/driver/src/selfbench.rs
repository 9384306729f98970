//! Our own client against the peers, in the same minutes on the same server.

use crate::crosscheck::{OwnRun, own_lane, own_slice};
use crate::lane::Lane;
use crate::peer::bare::Bare;
use crate::peer::{Peer, PeerOutcome, PeerRun, PeerWork, cannot, on_cores, run_whole};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::Placement;
use deltabench_model::problem::Problem;
use deltabench_workload::mix;
use std::io;

/// Slices of a run of our own client, and of the one that takes turns with it: in a run of 1.5 s, the default
/// of `selfbench client`, they last 40 ms.
const TURNS: u64 = 40;

/// Start-up runs of a peer for each cell; the median counts.
const START_UPS: usize = 5;

/// What to compare.
#[derive(Debug, Clone, Copy)]
pub struct SelfbenchSpec<'a> {
    /// A server with table `sbtest1` (`id` integer primary key, `k` integer, `c` and `pad` character).
    pub endpoint: &'a Endpoint,
    /// Who we are to it.
    pub login: &'a Login,
    /// Rows of `sbtest1`.
    pub rows: u64,
    /// Peers to compare with; those that are not installed are left out.
    pub peers: &'a [Peer],
    /// Work, clients, placement and operations of each row of the result.
    pub cells: &'a [SelfbenchCell],
    /// Rounds: in each, every client has one run, in random order.
    pub rounds: u32,
    /// Seed of orders and keys.
    pub seed: u64,
}

/// One comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfbenchCell {
    pub work: PeerWork,
    pub clients: u32,
    /// Threads of our client.
    pub jobs: u32,
    /// Cores of client and server.
    pub placement: Placement,
    pub operations: u64,
}

/// A comparison with one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerComparison {
    pub cell: SelfbenchCell,
    pub rival: Rival,
    /// Our run and the peer's of each round.
    pub rounds: Vec<SelfbenchRound>,
}

/// A pair of runs of the same round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelfbenchRound {
    /// Our own client.
    pub own: PeerOutcome,
    pub rival: PeerOutcome,
}

/// Who our client is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    Peer(Peer),
    /// Our own client with one thread.
    OneThread,
    /// The system calls alone: the bytes of the same operations sent and received in a loop that draws
    /// nothing, reads no clock and keeps no histogram.
    Bare,
}

impl Rival {
    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Peer(peer) => peer.word(),
            Self::OneThread => "one thread",
            Self::Bare => "bare",
        }
    }
}

/// Compares our client with every installed peer and with the bare system calls, or, if it has several
/// threads, with itself with one; cell by cell; raw pairs, for the caller to analyse.
///
/// `place` is called before each cell: it pins the server (its postmaster, so that new server processes
/// inherit) and returns the cores for the client, none for all. Every run uses new connections. Our own CPU
/// is that of the threads that send and receive; a peer's is that of its process less the median of five
/// start-ups. The bare system calls, or our client with one thread, take turns with our client, slice by
/// slice with the same operations: the host's speed changes from second to second.
///
/// Errors: the first run that fails, ours or a peer's.
pub fn selfbench_client(
    spec: &SelfbenchSpec<'_>,
    place: &mut dyn FnMut(&SelfbenchCell) -> Result<Vec<usize>, Problem>,
) -> Result<Vec<PeerComparison>, Problem> {
    let peers: Vec<Peer> = spec
        .peers
        .iter()
        .copied()
        .filter(|peer| peer.program().is_some())
        .collect();
    let mut rows = Vec::new();
    for (number, cell) in (0..).zip(spec.cells) {
        let cores = place(cell)?;
        rows.extend(compare(spec, cell, number, &peers, &cores)?);
    }
    Ok(rows)
}

/// All rounds of a cell.
fn compare(
    spec: &SelfbenchSpec<'_>,
    cell: &SelfbenchCell,
    number: u64,
    peers: &[Peer],
    cores: &[usize],
) -> Result<Vec<PeerComparison>, Problem> {
    let mut rivals = vec![Contender::InTurns];
    for &peer in peers {
        let run = peer_run(spec, cell, peer, cores);
        rivals.push(Contender::Peer(run, start_up(spec, &run)?));
    }
    let mut rows: Vec<PeerComparison> = rivals
        .iter()
        .map(|contender| PeerComparison {
            cell: *cell,
            rival: contender.rival(cell),
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..spec.rounds {
        let key = |what: u64| mix(spec.seed, &[number, u64::from(round), what]);
        let mut order: Vec<usize> = (0..rivals.len()).collect();
        order.sort_by_key(|&at| key(deltabench_model::units::count(at)));
        let mut own = None;
        let mut theirs = vec![None; rivals.len()];
        for at in order {
            let (Some(contender), Some(place)) = (rivals.get(at), theirs.get_mut(at)) else {
                continue;
            };
            *place = Some(match contender {
                Contender::InTurns => {
                    let turns = in_turns(spec, cell, cores, key(u64::MAX))?;
                    own = Some(turns.own);
                    turns.rival
                }
                Contender::Peer(run, start_up) => {
                    run_whole(run, spec.endpoint, spec.login)?.less(start_up)
                }
            });
        }
        for (row, rival) in rows.iter_mut().zip(theirs) {
            if let (Some(own), Some(rival)) = (own, rival) {
                row.rounds.push(SelfbenchRound { own, rival });
            }
        }
    }
    Ok(rows)
}

/// Who takes part in a round.
enum Contender<'a> {
    /// Our own client, and another that takes turns with it.
    InTurns,
    /// A peer, and what its start-up costs.
    Peer(PeerRun<'a>, PeerOutcome),
}

impl Contender<'_> {
    fn rival(&self, cell: &SelfbenchCell) -> Rival {
        match self {
            Self::InTurns if cell.jobs > 1 => Rival::OneThread,
            Self::InTurns => Rival::Bare,
            Self::Peer(run, _) => Rival::Peer(run.peer),
        }
    }
}

/// Who takes turns with our own client.
enum Partner<'a> {
    Bare(Bare<'a>),
    OneThread(Box<Lane>),
}

/// Our own client and the one that takes turns with it, over connections of their own.
fn in_turns(
    spec: &SelfbenchSpec<'_>,
    cell: &SelfbenchCell,
    cores: &[usize],
    seed: u64,
) -> Result<SelfbenchRound, Problem> {
    let executable = cell.work.executable(spec.rows);
    let run = OwnRun {
        executable: &executable,
        clients: cell.clients,
        jobs: cell.jobs,
        operations: cell.operations,
        seed,
        affinity: cores,
    };
    let work = || {
        let mut own = own_lane(&run, spec.endpoint, spec.login)?;
        let mut partner = match cell.jobs {
            1 => Partner::Bare(
                Bare::connect(spec.endpoint, spec.login, &executable, cell.clients)
                    .map_err(io::Error::other)?,
            ),
            _ => {
                let one = OwnRun { jobs: 1, ..run };
                Partner::OneThread(Box::new(own_lane(&one, spec.endpoint, spec.login)?))
            }
        };
        let mut sum = SelfbenchRound::default();
        for (turn, operations) in slices(cell.operations) {
            let seed = mix(seed, &[turn]);
            // Drawn, so that neither has the better place.
            let first = seed.is_multiple_of(2);
            for ours in [first, !first] {
                match (ours, &mut partner) {
                    (true, _) => sum.own.add(&own_slice(&mut own, operations, seed)?),
                    (false, Partner::OneThread(lane)) => {
                        sum.rival.add(&own_slice(lane, operations, seed)?);
                    }
                    (false, Partner::Bare(bare)) => {
                        let slice = bare.slice(operations, seed).map_err(io::Error::other)?;
                        sum.rival.add(&slice);
                    }
                }
            }
        }
        Ok(sum)
    };
    on_cores(cores, work).map_err(|error| cannot("our own client", &error))
}

/// The slices of a run, numbered, each with its operations.
fn slices(operations: u64) -> impl Iterator<Item = (u64, u64)> {
    let turns = TURNS.min(operations.max(1));
    (0..turns).map(move |turn| {
        let until = |turn: u64| operations * turn / turns;
        (turn, until(turn + 1) - until(turn))
    })
}

fn peer_run<'a>(
    spec: &SelfbenchSpec<'_>,
    cell: &SelfbenchCell,
    peer: Peer,
    cores: &'a [usize],
) -> PeerRun<'a> {
    let SelfbenchCell {
        work,
        clients,
        jobs,
        operations,
        ..
    } = *cell;
    PeerRun {
        peer,
        work,
        clients,
        jobs,
        operations,
        rows: spec.rows,
        affinity: cores,
    }
}

/// The start-up run with the median CPU time.
fn start_up(spec: &SelfbenchSpec<'_>, run: &PeerRun<'_>) -> Result<PeerOutcome, Problem> {
    let shortest = PeerRun {
        operations: u64::from(run.clients),
        ..*run
    };
    let mut outcomes = Vec::with_capacity(START_UPS);
    for _ in 0..START_UPS {
        outcomes.push(run_whole(&shortest, spec.endpoint, spec.login)?);
    }
    outcomes.sort_by_key(|outcome| outcome.client_cpu_ns);
    outcomes
        .get(START_UPS / 2)
        .copied()
        .ok_or_else(|| Problem::new("no start-up was measured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_all_operations_of_a_run() {
        for operations in [1, 39, 40, 1000, 123_457] {
            let all: Vec<(u64, u64)> = slices(operations).collect();
            assert_eq!(all.iter().map(|(_, some)| some).sum::<u64>(), operations);
            assert!(all.iter().all(|(_, some)| *some > 0), "{operations}");
            let numbers = (0..).zip(&all);
            assert!(numbers.into_iter().all(|(number, slice)| slice.0 == number));
        }
    }
}
