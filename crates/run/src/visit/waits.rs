//! What backends wait for, sampled in slices that do not count.
//!
//! A second connection asks `pg_stat_activity` many times a second, which costs CPU of the server; so it is
//! never asked while a slice is measured.

use super::{Address, OPERATION_TIMEOUT};
use crate::admin::connect;
use crate::site::Home;
use deltabench_driver::admin::Client;
use deltabench_model::units::to_f64;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Backends that wait for something other than their client, by what they wait for. From 9.6 on.
const WAITING: &str = "select 'wait:' || wait_event_type || ':' || wait_event, count(*) from \
    pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and wait_event is not null and \
    wait_event_type <> 'Client' group by 1";

/// Keeps the backends of others out, on servers that have any.
const OURS: &str = "usename = current_user and ";

/// The statement for a server.
fn waiting(address: &Address) -> String {
    match address.home {
        Home::Databases => WAITING.to_owned(),
        Home::Schemas(_) => WAITING.replace("where ", &format!("where {OURS}")),
    }
}

/// Nanoseconds of an operation, by what was waited for.
pub(super) type Waits = BTreeMap<String, f64>;

/// Samples of one server.
#[derive(Debug, Default)]
struct Samples {
    taken: u64,
    /// Backends seen waiting, over all samples.
    seen: BTreeMap<String, u64>,
}

/// Does `work` on a server, which returns operations and nanoseconds, and samples what is waited for
/// meanwhile. The result: nanoseconds of an operation spent in each wait, and in all as `wait_ns`.
///
/// `None` if the server could not be asked.
pub(super) fn sampled<T>(
    address: &Address,
    per_second: u32,
    work: impl FnOnce() -> (T, u64, u64),
) -> (T, Option<Waits>) {
    let stop = AtomicBool::new(false);
    let client = connect(&address.endpoint, &address.login);
    std::thread::scope(|scope| {
        let sampler = client.ok().map(|client| {
            let stop = &stop;
            scope.spawn(move || sample(client, &waiting(address), per_second, stop))
        });
        let (result, operations, duration_ns) = work();
        stop.store(true, Ordering::Relaxed);
        let samples = sampler.and_then(|thread| thread.join().ok()).flatten();
        let waits = samples.filter(|samples| samples.taken > 0 && operations > 0);
        let waits = waits.map(|samples| {
            let each = to_f64(duration_ns) / to_f64(samples.taken) / to_f64(operations);
            let mut waits: Waits = samples
                .seen
                .iter()
                .map(|(event, seen)| (event.clone(), each * to_f64(*seen)))
                .collect();
            waits.insert("wait_ns".to_owned(), waits.values().sum());
            waits
        });
        (result, waits)
    })
}

fn sample(
    mut client: Client,
    waiting: &str,
    per_second: u32,
    stop: &AtomicBool,
) -> Option<Samples> {
    // A server that stalls is voided by the slice; nobody may wait for it here.
    client.set_timeout(Some(OPERATION_TIMEOUT)).ok()?;
    let every = Duration::from_secs(1) / per_second.max(1);
    let mut samples = Samples::default();
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for row in client.query(waiting).ok()? {
            if let [Some(event), Some(count)] = row.as_slice() {
                *samples.seen.entry(event.clone()).or_default() += count.parse().unwrap_or(0);
            }
        }
        samples.taken += 1;
        next += every;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Some(samples)
}
