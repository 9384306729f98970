//! Servers made slower by a known amount.

use crate::lab::{Lab, any_installation, installations, slot};
use crate::query::Session;
use deltabench_server::{Burn, Slot};

/// CPU of a process so far, nanoseconds.
fn cpu_ns(pid: &str) -> f64 {
    let line = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

fn slowed(port: u16, burn: &Burn, ns: u64) -> Slot {
    Slot {
        environment: burn.environment(ns),
        ..slot(port)
    }
}

#[test]
fn every_statement_costs_what_is_burnt_on_every_version() {
    const BURNT: u64 = 20_000;
    const OPERATIONS: u32 = 2000;
    const TURNS: u32 = 20;
    // On two cores a client that has idled through a burn must be woken from another core, which bills the
    // server as much again. Servers inherit the core of the thread that starts them.
    let core = deltabench_observe::own_affinity().unwrap()[0];
    deltabench_observe::pin_self(&[core]).unwrap();
    let lab = Lab::new();
    let burn = Burn::build(lab.workspace().directory()).unwrap();
    for (place, installation) in (0_u16..).zip(installations()) {
        let mut servers = [0, BURNT].map(|ns| {
            let mut cluster = lab.cluster(&format!("c{place}-{ns}"), &installation);
            let port = 5500 + 2 * place + u16::from(ns > 0);
            let endpoint = cluster
                .start(&slowed(port, &burn, ns), &[])
                .unwrap()
                .endpoint
                .clone();
            let mut session = Session::open(&endpoint);
            let pid = session.query("select pg_backend_pid()")[0][0]
                .clone()
                .unwrap();
            (cluster, session, pid)
        });
        // The median of differences in turn: what else runs on this machine in some of them does not count.
        let mut added: Vec<f64> = (0..TURNS)
            .map(|_| {
                let spent = servers.each_mut().map(|(_, session, pid)| {
                    let before = cpu_ns(pid);
                    for _ in 0..OPERATIONS / TURNS {
                        assert_eq!(session.query("select 1").len(), 1);
                    }
                    cpu_ns(pid) - before
                });
                (spent[1] - spent[0]) * f64::from(TURNS) / f64::from(OPERATIONS)
            })
            .collect();
        added.sort_by(f64::total_cmp);
        let median = added[added.len() / 2];
        println!("{}: {median} ns", installation.version);
        assert!(
            (15_000.0..30_000.0).contains(&median),
            "{}: {added:?} ns",
            installation.version
        );
        for (cluster, ..) in &mut servers {
            cluster.stop().unwrap();
        }
    }
}

#[test]
fn a_library_that_cannot_be_loaded_is_an_error_and_no_server_stays() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let missing = Slot {
        environment: vec![("LD_PRELOAD".to_owned(), "/no/such/library.so".to_owned())],
        ..slot(5500)
    };
    let problem = cluster.start(&missing, &[]).unwrap_err();
    assert!(
        problem.error.contains("did not load a library"),
        "{problem}"
    );
    assert!(!cluster.is_alive());
    cluster.start(&slot(5500), &[]).unwrap();
    cluster.stop().unwrap();
}
