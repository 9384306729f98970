//! How many threads the client has.

use crate::request::Jobs;
use deltabench_model::plan::{Pins, Placement};
use deltabench_model::threads::ClientThreads;

/// Clients that keep a thread busy for about two thirds of its time with point queries: each of them does
/// 26,000 a second where the server has a core for each (published), and a thread with four clients takes
/// 6.5 µs for one (docs/guide/client.md, docs/decisions/0007).
const CLIENTS_OF_A_THREAD: u32 = 4;

/// The client may have one core in so many: a point query takes 8.3 µs of the client and 22 of the server
/// with 16 clients (docs/decisions/0007), so where all cores are busy the client needs 27 % of them.
const SHARE_OF_CORES: u32 = 3;

/// Where client and servers run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub pins: Option<&'a Pins>,
    pub placement: Placement,
    /// Whether all servers are on other machines.
    pub elsewhere: bool,
}

/// Threads of the client in a plan whose widest cell has so many clients.
pub(super) fn of(jobs: Jobs, clients: u32, place: Place<'_>) -> ClientThreads {
    let (cores, clients_each) = match jobs {
        Jobs::Auto { cores } => (cores, CLIENTS_OF_A_THREAD),
        Jobs::Count(count) => {
            return ClientThreads {
                most: count.clamp(1, clients.max(1)),
                clients_each: 1,
            };
        }
    };
    let room = match (place.pins, place.placement) {
        (Some(pins), _) => u32::try_from(pins.client.len()).unwrap_or(u32::MAX),
        (None, Placement::SameCore) => 1,
        (None, _) if place.elsewhere => cores,
        (None, _) => cores / SHARE_OF_CORES,
    };
    ClientThreads {
        most: clients.div_ceil(clients_each).min(room).max(1),
        clients_each,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPLIT: Place<'_> = Place {
        pins: None,
        placement: Placement::Split,
        elsewhere: false,
    };

    fn auto(clients: u32, cores: u32) -> u32 {
        of(Jobs::Auto { cores }, clients, SPLIT).of(clients)
    }

    #[test]
    fn one_thread_stays_where_it_serves() {
        assert_eq!(auto(16, 2), 1, "the servers need the other core");
        assert_eq!(auto(16, 5), 1);
        assert_eq!(auto(4, 32), 1, "four clients keep no thread busy");
    }

    #[test]
    fn a_large_machine_gets_a_thread_for_every_four_clients_on_a_third_of_its_cores() {
        assert_eq!((auto(5, 32), auto(16, 32), auto(40, 32)), (2, 4, 10));
        assert_eq!(auto(40, 12), 4);
    }

    #[test]
    fn a_cell_has_the_same_threads_alone_and_among_wider_ones() {
        for cores in [12, 48] {
            let wide = of(Jobs::Auto { cores }, 40, SPLIT);
            for clients in [1, 4, 8, 16] {
                assert_eq!(
                    wide.of(clients),
                    auto(clients, cores),
                    "{clients} on {cores}"
                );
            }
        }
    }

    #[test]
    fn threads_go_where_cores_are_for_them() {
        let of = |place| of(Jobs::Auto { cores: 12 }, 40, place).most;
        let placement = Placement::SameCore;
        assert_eq!(of(Place { placement, ..SPLIT }), 1, "one core for all");
        let elsewhere = true;
        assert_eq!(of(Place { elsewhere, ..SPLIT }), 10, "no server is here");
        let pins = Some(&Pins {
            server: vec![2, 3],
            client: vec![0, 1],
        });
        assert_eq!(of(Place { pins, ..SPLIT }), 2);
    }

    #[test]
    fn a_number_is_taken_as_it_is_but_no_thread_is_without_clients() {
        let three = of(Jobs::Count(3), 16, SPLIT);
        assert_eq!((three.of(16), three.of(3), three.of(2)), (3, 3, 2));
        assert_eq!(of(Jobs::Count(3), 2, SPLIT).most, 2);
    }
}
