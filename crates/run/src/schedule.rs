//! Every order and draw of a run, as functions of the plan's seed.
//!
//! Nothing here has state: block 7 is the same whether the run came there in one go or by `resume`.

use crate::remote::same_server;
use deltabench_model::installation::Remote;
use deltabench_model::plan::{Cell, CellId, CellOrder, Placement, Plan, PlannedServer, ServerId};
use deltabench_model::units::{count, index, to_f64, to_u64};
use deltabench_workload::mix;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a draw is for; part of its key, so that one draw never depends on how often another was made.
mod purpose {
    pub(super) const START_ORDER: u64 = 1;
    pub(super) const PORTS: u64 = 2;
    pub(super) const SLOTS: u64 = 3;
    pub(super) const CELL_ORDER: u64 = 4;
    pub(super) const ROTATION: u64 = 5;
    pub(super) const CORE: u64 = 6;
    pub(super) const SLICE_LENGTH: u64 = 7;
    pub(super) const PARAMETERS: u64 = 8;
    pub(super) const PADDING: u64 = 9;
    pub(super) const PASSES: u64 = 10;
    pub(super) const ROWS: u64 = 11;
    pub(super) const TURNS: u64 = 12;
    pub(super) const STEP: u64 = 13;
    pub(super) const INSERT_TURNS: u64 = 14;
}

fn draw(plan: &Plan, purpose: u64, parts: &[u64]) -> Xoshiro256PlusPlus {
    let mut key = vec![purpose];
    key.extend_from_slice(parts);
    Xoshiro256PlusPlus::seed_from_u64(mix(plan.seed, &key))
}

fn permutation(mut random: Xoshiro256PlusPlus, length: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    order.shuffle(&mut random);
    order
}

/// How one block is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSchedule {
    /// Servers in the order in which they are started and prewarmed.
    pub start_order: Vec<usize>,
    /// Which cluster (data directory) plays each server: servers of one installation swap theirs.
    pub slots: Vec<usize>,
    pub ports: Vec<u16>,
    /// Bytes of padding in the environment of each server, which moves the stack: only in a run that measures
    /// again what another did.
    pub padding: Vec<usize>,
    /// Cells in the order in which they are visited.
    pub cells: Vec<CellId>,
}

/// First port of a run's servers, and of a run that measures again what another did.
const PORTS: (u16, u16) = (5500, 5700);

/// Ports from a session's first one to the next session's.
const PORTS_OF_SESSION: u16 = 20;

/// Sessions until ports repeat.
const PORTS_REPEAT: u32 = 10;

/// Most bytes of padding of the environment.
const PADDING_MAX: usize = 4096;

impl BlockSchedule {
    /// The schedule of `block`.
    pub fn of(plan: &Plan, block: u32) -> Self {
        let servers = plan.servers.len();
        let key = [u64::from(block)];
        let mut cells: Vec<CellId> = CellId::each().take(plan.cells.len()).collect();
        if plan.order == CellOrder::Drawn {
            cells.shuffle(&mut draw(plan, purpose::CELL_ORDER, &key));
        }
        let again = plan.is_again();
        let first_port = first_port(plan);
        let mut random = draw(plan, purpose::PADDING, &key);
        let mut padding = || {
            if again {
                random.random_range(0..PADDING_MAX)
            } else {
                0
            }
        };
        let ports = permutation(draw(plan, purpose::PORTS, &key), servers)
            .into_iter()
            .map(|place| first_port + u16::try_from(place).unwrap_or(0))
            .collect();
        Self {
            start_order: permutation(draw(plan, purpose::START_ORDER, &key), servers),
            slots: slots(plan, block),
            ports,
            padding: (0..servers).map(|_| padding()).collect(),
            cells,
        }
    }
}

fn first_port(plan: &Plan) -> u16 {
    let session = plan.session.as_ref().map_or(0, |session| session.number);
    let step = u16::try_from(session % PORTS_REPEAT).unwrap_or(0) * PORTS_OF_SESSION;
    match plan.is_again() {
        true => PORTS.1 + step,
        false => PORTS.0,
    }
}

/// A permutation of clusters over servers that only exchanges clusters of the same installation. In as many
/// blocks as there are such servers each has each of their clusters once: what one of them owes to its load
/// cancels.
fn slots(plan: &Plan, block: u32) -> Vec<usize> {
    let mut slots: Vec<usize> = (0..plan.servers.len()).collect();
    let same = |a: usize, b: usize| match (plan.servers.get(a), plan.servers.get(b)) {
        (Some(a), Some(b)) => same_server(&a.installation, &b.installation),
        _ => false,
    };
    for first in 0..slots.len() {
        let group: Vec<usize> = (0..slots.len())
            .filter(|other| same(first, *other))
            .collect();
        if group.first() != Some(&first) {
            continue;
        }
        for (server, place) in group.iter().zip(exchanged(plan, block, &group)) {
            if let (Some(slot), Some(cluster)) = (slots.get_mut(*server), group.get(place)) {
                *slot = *cluster;
            }
        }
    }
    slots
}

/// Which place of a group of servers lends each of them its cluster.
fn exchanged(plan: &Plan, block: u32, group: &[usize]) -> Vec<usize> {
    let first = count(group.first().copied().unwrap_or(0));
    let (round, turn) = (
        u64::from(block) / count(group.len()),
        u64::from(block) % count(group.len()),
    );
    let mut places = permutation(draw(plan, purpose::SLOTS, &[round, first]), group.len());
    places.rotate_left(index(turn));
    places
}

/// How one visit to a cell is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitSchedule {
    /// Every round runs the servers in this order, so each server always follows the same one.
    pub rotation: Vec<ServerId>,
    /// Cores of the client; empty means unpinned.
    pub client_cores: Vec<usize>,
    /// Cores of the servers; empty means unpinned.
    pub server_cores: Vec<usize>,
}

impl VisitSchedule {
    /// The schedule of the visit to `cell` in `block`, on a host with these `cores`.
    pub fn of(plan: &Plan, block: u32, cell_id: CellId, cell: &Cell, cores: &[usize]) -> Self {
        let key = [u64::from(block), u64::from(cell_id.0)];
        let rotation = match plan.timing.sustained {
            true => pass_order(plan, block),
            false => rotation(plan, block, cell_id),
        };
        if let Some(pins) = &plan.pins {
            return Self {
                rotation,
                client_cores: pins.client.clone(),
                server_cores: pins.server.clone(),
            };
        }
        let chosen = match cores.len() {
            0 => None,
            count => cores
                .get(draw(plan, purpose::CORE, &key).random_range(0..count))
                .copied(),
        };
        let remote = |server: &PlannedServer| server.installation.remote.is_some();
        // Servers that were there before cannot be placed, so ours beside them are not, either.
        let (any, all) = (
            plan.servers.iter().any(remote),
            plan.servers.iter().all(remote),
        );
        let placement = match plan.placement(cell) {
            _ if any && !all => Placement::Free,
            placement => placement,
        };
        let (client_cores, server_cores) = match (placement, chosen) {
            (Placement::Free, _) | (_, None) => (Vec::new(), Vec::new()),
            (Placement::Split, Some(core)) if cores.len() > 1 => split(plan, cell, cores, core),
            (_, Some(core)) => (vec![core], vec![core]),
        };
        Self {
            rotation,
            client_cores,
            server_cores,
        }
    }
}

/// The rotation of a visit: drawn, and in every second block that of the block before in reverse. So each
/// server follows another one as often as it goes before it, and what one leaves behind in the caches for the
/// next cancels between two copies of the base.
fn rotation(plan: &Plan, block: u32, cell: CellId) -> Vec<ServerId> {
    let mut order: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
    let key = [u64::from(block / 2), u64::from(cell.0)];
    order.shuffle(&mut draw(plan, purpose::ROTATION, &key));
    if block % 2 == 1 {
        order.reverse();
    }
    order
}

/// Cores of the client from `first` on, one for each thread, and those of the servers.
///
/// The servers of all cells have equally many, also in runs that measure some of the cells again.
fn split(plan: &Plan, cell: &Cell, cores: &[usize], first: usize) -> (Vec<usize>, Vec<usize>) {
    let start = cores.iter().position(|core| *core == first).unwrap_or(0);
    let mut turned = cores.to_vec();
    turned.rotate_left(start);
    let mut servers = turned.split_off(cores_of_client(plan, plan.jobs.most, cores.len()));
    servers.sort_unstable();
    turned.truncate(index(u64::from(plan.threads(cell))));
    (turned, servers)
}

/// Cores that the client side gets under `split`, of so many, with so many threads in the widest cell: one
/// for each, and no more than half of them while a server is here.
pub fn cores_of_client(plan: &Plan, threads: u32, cores: usize) -> usize {
    let mut remotes = plan
        .servers
        .iter()
        .map(|server| &server.installation.remote);
    let room = match remotes.all(|remote| remote.as_ref().is_some_and(Remote::is_elsewhere)) {
        true => cores,
        false => cores / 2,
    };
    index(u64::from(threads)).min(room).max(1)
}

/// Operations of each slice of a round, from the visit's calibrated `operations`, with the plan's jitter.
pub fn jittered(plan: &Plan, block: u32, cell: CellId, round: u32, operations: u64) -> u64 {
    let key = [u64::from(block), u64::from(cell.0), u64::from(round)];
    let jitter = plan.timing.slice_jitter;
    let factor = 1.0 + jitter * draw(plan, purpose::SLICE_LENGTH, &key).random_range(-1.0..=1.0);
    to_u64(to_f64(operations) * factor).max(1)
}

/// Seed of the parameter stream that every server gets in a round; never the same in two rounds.
pub fn parameters(plan: &Plan, block: u32, cell: CellId, round: u32) -> u64 {
    let key = [u64::from(block), u64::from(cell.0), u64::from(round)];
    draw(plan, purpose::PARAMETERS, &key).random()
}

/// The order in which servers have their passes in a block.
///
/// Shape: over as many blocks as there are servers, each stands in each place once; for two servers and an
/// even number of blocks, each is first as often as the other.
pub fn pass_order(plan: &Plan, block: u32) -> Vec<ServerId> {
    let servers = u32::try_from(plan.servers.len()).unwrap_or(u32::MAX).max(1);
    let (group, place) = (u64::from(block / servers), block % servers);
    let mut order: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
    order.shuffle(&mut draw(plan, purpose::PASSES, &[group, 0]));
    // Each block of the group turns it by another number of places, in an order that is drawn too.
    let turns = permutation(draw(plan, purpose::PASSES, &[group, 1]), order.len());
    let turn = turns.get(usize::try_from(place).unwrap_or(0)).copied();
    order.rotate_left(turn.unwrap_or(0));
    order
}

/// The order in which servers have their turns in a round of a step of the Insert Benchmark: over as many
/// rounds as there are servers each has each place once.
pub fn insert_turn_order(plan: &Plan, block: u32, cell: CellId, round: u32) -> Vec<ServerId> {
    let servers = u32::try_from(plan.servers.len()).unwrap_or(u32::MAX).max(1);
    let key = [
        u64::from(block),
        u64::from(cell.0),
        u64::from(round / servers),
    ];
    let mut order: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
    order.shuffle(&mut draw(plan, purpose::INSERT_TURNS, &key));
    order.rotate_left(usize::try_from(round % servers).unwrap_or(0));
    order
}

/// Seed of the rows and keys of the Insert Benchmark in a block: the same for every server.
pub fn pass_seed(plan: &Plan, block: u32) -> u64 {
    draw(plan, purpose::ROWS, &[u64::from(block)]).random()
}

/// The order in which servers have their turns in a round of a step of RocksDB: another in each round.
pub fn turn_order(plan: &Plan, block: u32, cell: CellId, round: u32) -> Vec<ServerId> {
    let key = [u64::from(block), u64::from(cell.0), u64::from(round)];
    let mut order: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
    order.shuffle(&mut draw(plan, purpose::TURNS, &key));
    order
}

/// Seed of the keys of the step in this place of the chain of RocksDB: the same for every server of a block.
pub fn step_seed(plan: &Plan, block: u32, place: u64) -> u64 {
    draw(plan, purpose::STEP, &[u64::from(block), place]).random()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::Pins;
    use deltabench_model::threads::ClientThreads;

    #[test]
    fn every_cell_is_visited_once_and_every_server_started_once_in_each_block() {
        let plan = plan_of(&["a", "a", "b"], 5);
        for block in 0..50 {
            let schedule = BlockSchedule::of(&plan, block);
            let sorted = |mut values: Vec<usize>| {
                values.sort_unstable();
                values
            };
            assert_eq!(sorted(schedule.start_order.clone()), vec![0, 1, 2]);
            let mut cells = schedule.cells.clone();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4].map(CellId));
            let mut ports = schedule.ports.clone();
            ports.sort_unstable();
            assert_eq!(ports, vec![5500, 5501, 5502]);
        }
    }

    #[test]
    fn base_and_placebo_swap_their_clusters_and_the_candidate_keeps_its_own() {
        let plan = plan_of(&["a", "a", "b"], 1);
        let slots: Vec<Vec<usize>> = (0..64)
            .map(|block| BlockSchedule::of(&plan, block).slots)
            .collect();
        assert!(slots.iter().all(|slot| slot[2] == 2));
        for pair in slots.chunks(2) {
            assert_ne!(
                pair[0], pair[1],
                "each has either cluster once in two blocks"
            );
        }
        let begins = slots.iter().step_by(2).filter(|slot| slot[0] == 1).count();
        assert!((8..=24).contains(&begins), "{begins} of 32 pairs begin so");
        let same = plan_of(&["a", "a", "a"], 1);
        for start in [0, 3, 30] {
            for server in 0..3 {
                let blocks = start..start + 3;
                let mut had: Vec<usize> =
                    blocks.map(|block| slots_of(&same, block)[server]).collect();
                had.sort_unstable();
                assert_eq!(had, [0, 1, 2], "server {server} from block {start}");
            }
        }
    }

    fn slots_of(plan: &Plan, block: u32) -> Vec<usize> {
        BlockSchedule::of(plan, block).slots
    }

    #[test]
    fn in_two_blocks_a_server_follows_another_as_often_as_it_goes_before_it() {
        let plan = plan_of(&["a", "a", "b", "c"], 3);
        let rotation = |block: u32| {
            let cell = (CellId(1), &plan.cells[1]);
            VisitSchedule::of(&plan, block, cell.0, cell.1, &[0, 1]).rotation
        };
        let follows = |order: &[ServerId]| -> Vec<(ServerId, ServerId)> {
            let next = order.iter().cycle().skip(1);
            order.iter().copied().zip(next.copied()).collect()
        };
        let mut firsts = std::collections::HashSet::new();
        for block in (0..200).step_by(2) {
            let (one, other) = (rotation(block), rotation(block + 1));
            firsts.insert(one.clone());
            let mut turned: Vec<_> = follows(&other).into_iter().map(|(a, b)| (b, a)).collect();
            let mut pairs = follows(&one);
            turned.sort_unstable();
            pairs.sort_unstable();
            assert_eq!(pairs, turned);
        }
        assert_eq!(firsts.len(), 24, "every order is drawn at some time");
    }

    #[test]
    fn a_schedule_depends_on_seed_and_block_only() {
        let plan = plan_of(&["a", "a", "b"], 8);
        assert_eq!(
            BlockSchedule::of(&plan, 3),
            BlockSchedule::of(&plan.clone(), 3)
        );
        let mut other = plan.clone();
        other.seed += 1;
        let differs =
            (0..8).any(|block| BlockSchedule::of(&plan, block) != BlockSchedule::of(&other, block));
        assert!(differs);
    }

    #[test]
    fn servers_get_equal_parameters_in_a_round_and_new_ones_in_the_next() {
        let plan = plan_of(&["a", "a", "b"], 2);
        let seeds: std::collections::HashSet<u64> = (0..100)
            .map(|round| parameters(&plan, 0, CellId(0), round))
            .collect();
        assert_eq!(seeds.len(), 100);
        let lengths: Vec<u64> = (0..200)
            .map(|round| jittered(&plan, 0, CellId(0), round, 1000))
            .collect();
        assert!(lengths.iter().all(|length| (800..=1200).contains(length)));
        assert!(lengths.iter().max() > lengths.iter().min());
    }

    #[test]
    fn a_confirmation_has_other_ports_and_padding_and_the_published_order_is_kept() {
        let mut plan = plan_of(&["a", "a", "b"], 9);
        assert_eq!(BlockSchedule::of(&plan, 0).padding, vec![0, 0, 0]);
        plan.confirms = Some("20261121-112000-cdef".to_owned());
        let schedule = BlockSchedule::of(&plan, 0);
        assert!(schedule.ports.iter().all(|port| *port >= PORTS.1));
        assert!(schedule.padding.iter().any(|bytes| *bytes > 0));
        plan.order = CellOrder::Published;
        assert_eq!(
            BlockSchedule::of(&plan, 4).cells,
            CellId::each().take(9).collect::<Vec<_>>()
        );
    }

    #[test]
    fn every_server_stands_in_every_place_equally_often() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..20 {
            let mut plan = plan_of(&["a", "a", "b"], 1);
            plan.seed = seed;
            for group in 0..4 {
                for place in 0..3 {
                    let there = (0..3).map(|block| pass_order(&plan, 3 * group + block)[place]);
                    let mut there: Vec<ServerId> = there.collect();
                    there.sort_unstable();
                    assert_eq!(
                        there,
                        [0, 1, 2].map(ServerId),
                        "group {group}, place {place}"
                    );
                }
            }
            seen.insert(pass_order(&plan, 0));
        }
        assert_eq!(seen.len(), 6, "every order is drawn at some time");
        let plan = plan_of(&["a", "b"], 1);
        assert_ne!(pass_order(&plan, 0), pass_order(&plan, 1));
        assert_ne!(pass_seed(&plan, 0), pass_seed(&plan, 1));
    }

    #[test]
    fn turns_and_keys_of_a_step_are_drawn_anew() {
        let plan = plan_of(&["a", "a", "b"], 1);
        let orders: std::collections::HashSet<Vec<ServerId>> = (0..100)
            .map(|round| turn_order(&plan, 0, CellId(0), round))
            .collect();
        assert_eq!(orders.len(), 6, "every order is drawn at some time");
        assert_eq!(
            turn_order(&plan, 1, CellId(2), 3),
            turn_order(&plan, 1, CellId(2), 3)
        );
        assert_ne!(step_seed(&plan, 0, 1), step_seed(&plan, 0, 2));
        assert_ne!(step_seed(&plan, 0, 1), step_seed(&plan, 1, 1));
    }

    #[test]
    fn cores_given_by_hand_are_used_as_given() {
        let mut plan = plan_of(&["a", "b"], 1);
        plan.pins = Some(Pins {
            server: vec![2, 3],
            client: vec![1],
        });
        let visit = VisitSchedule::of(&plan, 0, CellId(0), &plan.cells[0], &[0, 1]);
        assert_eq!(
            (visit.client_cores, visit.server_cores),
            (vec![1], vec![2, 3])
        );
    }

    #[test]
    fn a_client_has_a_core_for_each_thread_and_the_servers_of_all_cells_the_same_number() {
        let mut plan = plan_of(&["a", "b"], 4);
        plan.placement_single = Placement::Split;
        plan.jobs = ClientThreads {
            most: 3,
            clients_each: 1,
        };
        let cores: Vec<usize> = (0..8).collect();
        for block in 0..20 {
            for (id, cell) in CellId::each().zip(&plan.cells) {
                let visit = VisitSchedule::of(&plan, block, id, cell, &cores);
                let threads = index(u64::from(cell.clients.min(3)));
                assert_eq!(
                    visit.client_cores.len(),
                    threads,
                    "{} clients",
                    cell.clients
                );
                assert_eq!(visit.server_cores.len(), 5);
                assert!(visit.server_cores.is_sorted());
                let mut both = [visit.client_cores, visit.server_cores].concat();
                both.sort_unstable();
                both.dedup();
                assert_eq!(both.len(), threads + 5, "no core is of both");
            }
        }
        let few = VisitSchedule::of(&plan, 0, CellId(3), &plan.cells[3], &[4, 6]);
        assert_eq!((few.client_cores.len(), few.server_cores.len()), (1, 1));
        // A run that measures one of the cells again.
        plan.cells.truncate(1);
        let again = VisitSchedule::of(&plan, 0, CellId(0), &plan.cells[0], &cores);
        assert_eq!((again.client_cores.len(), again.server_cores.len()), (1, 5));
    }

    #[test]
    fn a_client_of_many_threads_leaves_half_of_the_cores_to_servers_that_are_here() {
        let mut plan = plan_of(&["a", "b"], 8);
        assert_eq!(cores_of_client(&plan, 8, 8), 4);
        for (server, dsn) in plan
            .servers
            .iter_mut()
            .zip(["postgres://me@localhost/d", "postgres://me@h/d"])
        {
            server.installation.remote = dsn.parse().ok();
        }
        assert_eq!(cores_of_client(&plan, 8, 8), 4, "one of them is here");
        plan.servers.remove(0);
        assert_eq!(cores_of_client(&plan, 8, 8), 8);
    }

    #[test]
    fn servers_are_not_placed_beside_one_that_cannot_be() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let cell = plan.cells[0].clone();
        let placed = |plan: &Plan| {
            let visit = VisitSchedule::of(plan, 0, CellId(0), &cell, &[0, 1]);
            (visit.client_cores.len(), visit.server_cores.len())
        };
        assert_eq!(placed(&plan), (1, 1));
        plan.servers[2].installation.remote = "postgres://me@h/d".parse().ok();
        assert_eq!(placed(&plan), (0, 0));
        for server in &mut plan.servers {
            server.installation.remote = "postgres://me@h/d".parse().ok();
        }
        assert_eq!(placed(&plan).0, 1, "the client stays where it is");
    }

    #[test]
    fn one_client_shares_a_core_and_many_are_split_from_the_server() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let mut cell = plan.cells[0].clone();
        let visit = VisitSchedule::of(&plan, 0, CellId(0), &cell, &[0, 1]);
        assert_eq!(visit.client_cores, visit.server_cores);
        cell.clients = 4;
        let visit = VisitSchedule::of(&plan, 0, CellId(0), &cell, &[0, 1]);
        assert_eq!((visit.client_cores.len(), visit.server_cores.len()), (1, 1));
        assert_ne!(visit.client_cores, visit.server_cores);
        plan.placement_multi = Placement::Free;
        assert!(
            VisitSchedule::of(&plan, 0, CellId(0), &cell, &[0, 1])
                .client_cores
                .is_empty()
        );
    }

    #[test]
    fn over_as_many_turns_as_servers_each_has_each_place_once_and_steps_differ() {
        let plan = plan_of(&["a", "a", "b"], 2);
        let orders = |cell: u32| -> Vec<Vec<ServerId>> {
            let rounds = 0..12;
            rounds
                .map(|round| insert_turn_order(&plan, 1, CellId(cell), round))
                .collect()
        };
        for group in orders(0).chunks(3) {
            for place in 0..3 {
                let mut there: Vec<ServerId> = group.iter().map(|order| order[place]).collect();
                there.sort_unstable();
                assert_eq!(there, [0, 1, 2].map(ServerId));
            }
        }
        assert_ne!(orders(0), orders(1));
    }
}
