//! What is counted around a visit.
//!
//! A server's own statistics are read before the visit's first connections are opened and after its last are
//! closed, because a backend reports what it did when it ends; the kernel's counters of its processes around
//! each set of connections, because they go with the processes. Both cover every operation of the visit,
//! warm-up included. The device is shared by all servers, so it is counted slice by slice (`Connected`).
//!
//! Nothing here may fail a visit: what cannot be read is absent.

use super::waits::Waits;
use super::{Address, OPERATION_TIMEOUT, Visit};
use crate::admin::{connect, number, query};
use crate::site::Home;
use deltabench_model::counter::VisitCounters;
use deltabench_model::metric::{Basis, METRICS};
use deltabench_model::plan::ServerId;
use deltabench_model::units::to_f64;
use deltabench_observe::server_stats::{StatQuery, fold, moved, readings_apart, stat_queries};
use deltabench_observe::{Counters, DeviceCosts};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Backends of closed connections are waited for at most this long.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(5);

/// The end of the query about tables.
const TABLES: &str = "pg_stat_user_tables";

/// Sessions under the same name as this one: those of the same schema's clients.
const OTHERS: &str = "select count(*) from pg_catalog.pg_stat_activity where pid <> pg_backend_pid() \
    and usename = current_user and application_name = current_setting('application_name')";

type Values = BTreeMap<String, f64>;

/// The counters of all servers of a visit, over its connection sets.
pub(super) struct Collecting {
    servers: Vec<Tally>,
}

/// One server's.
struct Tally {
    server: ServerId,
    address: Address,
    version_num: u32,
    before: Option<(Instant, Values)>,
    kernel: Option<Counters>,
    /// Whether counters of its processes tell nothing of it: other servers of the visit are schemas of this
    /// one, so its processes work for all of them; or its processes end before anybody reads them.
    untold: bool,
    /// Main and background processes, without clients' backends.
    resident: Vec<u32>,
    /// What has been counted, each with the number of connection sets that had it.
    values: BTreeMap<String, (f64, u32)>,
    sets: u32,
    /// Nanoseconds of an operation that were waited, by `wait:TYPE:EVENT`.
    waits: Waits,
    operations: u64,
}

impl Collecting {
    /// For these servers; for none of them where the plan collects nothing.
    pub(super) fn new(visit: &Visit<'_>, present: &[(ServerId, Address)]) -> Self {
        let collected = if visit.plan.observing.counters {
            present
        } else {
            &[]
        };
        let servers = collected
            .iter()
            .map(|(server, address)| Tally {
                server: *server,
                address: address.clone(),
                version_num: visit
                    .plan
                    .server(*server)
                    .map_or(0, |planned| planned.installation.version_num),
                before: None,
                kernel: None,
                untold: visit.executable.reconnects || is_shared(address, present),
                resident: Vec::new(),
                values: BTreeMap::new(),
                sets: 0,
                waits: Waits::new(),
                operations: 0,
            })
            .collect();
        Self { servers }
    }

    /// To be called before the first connections are opened.
    pub(super) fn before(&mut self) {
        for tally in &mut self.servers {
            tally.before = tally.statistics().map(|values| (Instant::now(), values));
            tally.resident = tally.processes();
        }
    }

    /// To be called when a set of connections is open.
    pub(super) fn connected(&mut self) {
        for tally in self.servers.iter_mut().filter(|tally| !tally.untold) {
            let backends: Vec<u32> = tally
                .processes()
                .into_iter()
                .filter(|pid| !tally.resident.contains(pid))
                .collect();
            tally.kernel = tally.address.postmaster.counters(&backends);
        }
    }

    /// To be called before it is closed.
    pub(super) fn disconnecting(&mut self, sums: &Sums) {
        for tally in &mut self.servers {
            let kernel = tally.kernel.take().map(Counters::finish);
            let mut found = kernel.unwrap_or_default();
            if let Some(device) = sums.device.get(&tally.server) {
                found.extend(device_values(device));
            }
            tally.operations += sums.operations;
            tally.sets += 1;
            tally.add(found, 1);
        }
    }

    /// To be called when the last are closed.
    pub(super) fn after(&mut self) {
        for tally in &mut self.servers {
            let Some((read, before)) = tally.before.take() else {
                continue;
            };
            tally.wait_for_backends();
            // Two readings too close to each other show the same on old versions.
            let next = read + readings_apart(tally.version_num);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if let Some(after) = tally.statistics() {
                tally.add(moved(&before, &after), tally.sets);
            }
        }
    }

    /// Nanoseconds of an operation that a server waited, by `wait:TYPE:EVENT`, as sampled.
    pub(super) fn waits(&mut self, sampled: Vec<(ServerId, Waits)>) {
        for (server, waits) in sampled {
            for tally in self.servers.iter_mut().filter(|t| t.server == server) {
                tally.waits.clone_from(&waits);
            }
        }
    }

    /// What the visit has counted.
    pub(super) fn finish(self, visit: &Visit<'_>) -> Vec<VisitCounters> {
        let counted = |tally: Tally| VisitCounters {
            server: tally.server,
            cell: visit.cell_id,
            block: visit.block,
            operations: tally.operations,
            values: tally.counted(),
        };
        self.servers
            .into_iter()
            .filter(|tally| tally.operations > 0)
            .map(counted)
            .collect()
    }
}

/// What one connection set did.
pub(super) struct Sums {
    pub(super) operations: u64,
    /// The device while a server's slices ran.
    pub(super) device: BTreeMap<ServerId, DeviceCosts>,
}

impl Tally {
    fn statistics(&self) -> Option<Values> {
        statistics(&self.address, &self.queries())
    }

    /// What the server is asked. A server that was there before has other users, and other tables of ours:
    /// of its counters only those of the cell's own tables can be told apart.
    fn queries(&self) -> Vec<StatQuery> {
        if self.address.home == Home::Databases {
            return stat_queries(self.version_num);
        }
        let own = format!("where schemaname = '{}'", self.address.schema());
        let table = |query: &StatQuery| query.sql.ends_with(TABLES);
        let queries = stat_queries(self.version_num).into_iter().filter(table);
        let narrowed = |query: StatQuery| StatQuery {
            sql: format!("{} {own}", query.sql),
            ..query
        };
        queries.map(narrowed).collect()
    }

    /// Main process and all below it; empty where nobody can tell, or nothing of them is counted.
    fn processes(&self) -> Vec<u32> {
        match self.untold {
            true => Vec::new(),
            false => self.address.postmaster.processes(),
        }
    }

    /// A backend's last report comes with its end.
    fn wait_for_backends(&self) {
        let mut elsewhere = match self.address.postmaster.local_pid() {
            Some(_) => None,
            None => connect(&self.address.endpoint, &self.address.login).ok(),
        };
        let until = Instant::now() + GONE_WITHIN;
        while Instant::now() < until {
            let gone = match &mut elsewhere {
                Some(client) => number(client, OTHERS) == Ok(0),
                None => self
                    .processes()
                    .iter()
                    .all(|pid| self.resident.contains(pid)),
            };
            if gone {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Adds what was counted over so many sets of connections.
    fn add(&mut self, found: Values, sets: u32) {
        for (key, value) in found {
            let gauge = is_gauge(&key);
            let (sum, counted) = self.values.entry(key).or_insert((0.0, 0));
            *sum = if gauge { value } else { *sum + value };
            *counted += sets;
        }
    }

    /// Everything; a counter that one of the connection sets lacks is not known for the visit. Waits are
    /// scaled to all operations, which is what counters are divided by.
    fn counted(self) -> Values {
        let operations = to_f64(self.operations);
        let waits = self
            .waits
            .iter()
            .map(|(event, ns)| (event.clone(), ns * operations));
        let counted = self
            .values
            .iter()
            .filter(|(key, (_, sets))| *sets == self.sets || is_gauge(key))
            .map(|(key, (sum, _))| (key.clone(), *sum));
        counted.chain(waits).collect()
    }
}

/// What a server answers to these queries in the database of the address; absent if it refuses one.
pub fn statistics(address: &Address, queries: &[StatQuery]) -> Option<Values> {
    let mut client = connect(&address.endpoint, &address.login).ok()?;
    client.set_timeout(Some(OPERATION_TIMEOUT)).ok()?;
    let mut values = Values::new();
    for wanted in queries {
        let rows = query(&mut client, &wanted.sql).ok()?;
        if let Some(row) = rows.first() {
            fold(wanted, row, &mut values);
        }
    }
    Some(values)
}

fn is_gauge(counter: &str) -> bool {
    METRICS
        .iter()
        .any(|metric| metric.counter == counter && metric.basis == Basis::Gauge)
}

/// Whether more than one server of a visit is this one. Where nobody can tell their processes, or two agents
/// do, their addresses say so.
fn is_shared(address: &Address, present: &[(ServerId, Address)]) -> bool {
    let same = |(_, other): &&(ServerId, Address)| {
        other.endpoint == address.endpoint || other.postmaster.is_same(&address.postmaster)
    };
    present.iter().filter(same).count() > 1
}

fn device_values(device: &DeviceCosts) -> [(String, f64); 6] {
    let value = |key: &str, value: u64| (key.to_owned(), to_f64(value));
    [
        value("device_reads", device.reads),
        value("device_read_bytes", device.read_bytes),
        value("device_writes", device.writes),
        value("device_write_bytes", device.write_bytes),
        value("device_read_ns", device.read_ns),
        value("device_write_ns", device.write_ns),
    ]
}
