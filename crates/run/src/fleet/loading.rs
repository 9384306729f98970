//! What is loaded into a fleet's servers before the blocks.

use super::member::Member;
use super::{Fleet, LOADING_PORT, PAUSE, no_such_server, place_of};
use crate::admin::run;
use crate::aging;
use crate::load::{self, DataSet, Making, ShortVisits};
use crate::occupancy::Occupancy;
use crate::readback::{ServerReadback, read_back};
use crate::remote::{self, same_server};
use crate::schedule::BlockSchedule;
use crate::site::{Site, Tables};
use crate::visit::host_problem;
use deltabench_model::plan::{Cell, CellId, DataState, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::{own_affinity, pin_tree};
use deltabench_proc::mounts::{mount_of, mounts};
use deltabench_proc::writeback::Writeback;
use deltabench_server::{Slot, unmet};
use deltabench_workload::executable::Executable;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// How often statements are ended again after an interruption.
const AGAIN: Duration = Duration::from_secs(1);

/// Cancels all other statements in sessions of one name, which is that of a run's schema.
const CANCEL: &str = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
    AND datname = current_database() AND usename = current_user \
    AND application_name = current_setting('application_name')";

impl Fleet<'_> {
    /// Loads every server and reads back what it is; all are stopped again when this returns.
    ///
    /// Each installation is loaded once, and aged once if a cell asks for it; installations at the same
    /// time, as far as there are cores and memory. Other servers of an installation get a copy of the data
    /// directory, byte-identical data, so that between base and placebo no placement of rows differs; or, on
    /// a server that was there before, a copy of the rows in their order.
    ///
    /// Shape:  in the plan's order; `None` when `interrupted` was set meanwhile, which ends the statements
    ///         under way. `executables` are those of the plan's cells, in order.
    /// Errors: with the tail of the server's log.
    pub fn load(
        &mut self,
        executables: &[Executable],
        interrupted: &AtomicBool,
        note: &mut dyn FnMut(String),
    ) -> Result<Option<Vec<ServerReadback>>, Problem> {
        let leaders: Vec<usize> = (0..self.members.len())
            .filter(|place| self.leader(*place) == *place)
            .collect();
        let at_once = match self.occupancy {
            Occupancy::Together => std::thread::available_parallelism().map_or(1, usize::from),
            Occupancy::Rotated => 1,
        };
        let mut readbacks: Vec<Option<ServerReadback>> = vec![None; self.members.len()];
        for chunk in leaders.chunks(at_once) {
            note(format!("loading {}", self.names(chunk)));
            for (place, readback) in self.load_at_once(chunk, executables, interrupted)? {
                if let Some(entry) = readbacks.get_mut(place) {
                    *entry = readback;
                }
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        for place in 0..self.members.len() {
            let leader = self.leader(place);
            let aging = match readbacks.get(leader) {
                Some(Some(readback)) => readback.aging.clone(),
                _ => None,
            };
            if leader != place {
                self.copy(leader, place, interrupted)?;
                if interrupted.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let readback = self.read_copy(place, executables)?;
                if let Some(entry) = readbacks.get_mut(place) {
                    *entry = Some(ServerReadback {
                        aging,
                        copy_of: Some(leader),
                        ..readback
                    });
                }
            }
        }
        self.check_settings(&readbacks)?;
        self.keep_pristine()?;
        Ok(readbacks.into_iter().collect())
    }

    /// The first server with the same installation.
    pub(super) fn leader(&self, place: usize) -> usize {
        let installation = |server: &PlannedServer| server.installation.clone();
        let Some(ours) = self.plan.servers.get(place).map(installation) else {
            return place;
        };
        let mut servers = self.plan.servers.iter();
        let first = servers.position(|server| same_server(&server.installation, &ours));
        first.unwrap_or(place)
    }

    fn names(&self, places: &[usize]) -> String {
        let name = |place: &usize| {
            self.plan
                .servers
                .get(*place)
                .map(|s| s.installation.resolved.as_str())
        };
        places
            .iter()
            .filter_map(name)
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// Loads these servers at the same time, each with a thread of its own, and stops them. If the user
    /// interrupts, a server of ours ends at once, with what it does.
    fn load_at_once(
        &mut self,
        places: &[usize],
        executables: &[Executable],
        interrupted: &AtomicBool,
    ) -> Result<Vec<(usize, Option<ServerReadback>)>, Problem> {
        let (plan, tables) = (self.plan, self.tables.clone());
        // Here and not in the threads: a server ends with the thread that started it.
        for &place in places {
            self.start_to_load(place)?;
        }
        let mut addresses = Vec::new();
        for &place in places {
            let server = self.planned(place)?;
            let version_num = server.installation.version_num;
            let (site, pid) = (self.site(place, place)?, self.postmaster_pid(place)?);
            addresses.push((place, site, pid, version_num));
        }
        let loaded = std::thread::scope(|scope| {
            let loading = Loading {
                plan,
                tables: &tables,
                executables,
                interrupted,
            };
            let loaders: Vec<_> = addresses
                .iter()
                .map(|(place, site, pid, version_num)| {
                    let load = move || loading.one(site, *pid, *version_num);
                    (*place, scope.spawn(load))
                })
                .collect();
            let sites = addresses.iter().map(|(place, site, ..)| (*place, site));
            let sites: Vec<(usize, &Site)> = sites.collect();
            let threads = loaders.iter().map(|(_, loader)| loader);
            watch(threads.collect(), interrupted, || {
                end_loads(&mut self.members, &sites);
            });
            let died = || Err(Problem::new("a loading thread ended too early"));
            loaders
                .into_iter()
                .map(|(place, loader)| (place, loader.join().unwrap_or_else(|_| died())))
                .collect::<Vec<_>>()
        });
        let mut readbacks = Vec::new();
        for (place, result) in loaded {
            let readback = match result {
                // Its server was ended, or a signal to all processes came to it first.
                Err(_) if interrupted.load(Ordering::Relaxed) => None,
                other => other.map_err(|problem| self.with_log(problem, place))?,
            };
            self.halt(place)?;
            readbacks.push((place, readback));
        }
        Ok(readbacks)
    }

    /// As [`Fleet::renew`], on these servers before a visit to a cell, which pins them afterwards. If all are
    /// our own, several do it at the same time, on all cores: all of them where no disk sees the tables
    /// ([`Making::Cached`]; [`Fleet::forget_cached`] them after the visit), else as many as there are cores,
    /// because most of it is waiting for the disk. Who is left for last differs from block to block and from
    /// cell to cell.
    ///
    /// Errors: those of [`Fleet::renew`], of the first server that has one.
    pub fn renew_all(
        &self,
        schedule: &BlockSchedule,
        servers: &[ServerId],
        (cell_id, cell): (CellId, &Cell),
    ) -> Result<(), Problem> {
        let possible = self.making(cell)?;
        let making = self
            .short_visits()
            .begin(cell_id, possible, Writeback::read());
        let at_once = match making {
            _ if !self.remotes.is_empty() => 1,
            Making::Cached => servers.len().max(1),
            Making::Synced => std::thread::available_parallelism().map_or(1, usize::from),
        };
        turned(&schedule.start_order, servers, cell_id)
            .chunks(at_once)
            .try_for_each(|chunk| {
                at_the_same_time(chunk, |server| {
                    self.renew_unpinned(schedule, server, (cell, making))
                })
            })
    }

    /// To be called when a visit went through. Drops the tables that [`Fleet::renew_all`] has made for it, if
    /// no disk has seen them: the kernel would write them while others are measured.
    ///
    /// Errors: whatever a server answered, with the tail of its log.
    pub fn forget_cached(
        &self,
        schedule: &BlockSchedule,
        servers: &[ServerId],
    ) -> Result<(), Problem> {
        match self.short_visits().end() {
            true => at_the_same_time(servers, |server| self.clear(schedule, server)),
            false => Ok(()),
        }
    }

    fn short_visits(&self) -> MutexGuard<'_, ShortVisits> {
        self.short_visits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How tables for a cell may be made on all servers. Workloads of users and scripts may ask for a
    /// checkpoint or a vacuum in mid-visit.
    fn making(&self, cell: &Cell) -> Result<Making, Problem> {
        let ours = self.library.is_builtin(&cell.workload);
        let file_system = mount_of(&mounts(Path::new("/")), self.directory());
        if !ours || !file_system.is_some_and(|mount| load::delays(&mount)) {
            return Ok(Making::Synced);
        }
        let bytes = self.tables.bytes(self.plan)?;
        Ok(load::making(self.plan, cell, bytes, Writeback::read()))
    }

    /// As [`Fleet::renew`], on all cores that are ours: the visit before has pinned the server to its own.
    fn renew_unpinned(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
        made: (&Cell, Making),
    ) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        if let Some(pid) = self.postmaster_pid(place)? {
            let freed = own_affinity().and_then(|cores| pin_tree(pid, &cores));
            freed.map_err(|error| self.with_log(host_problem(error), place))?;
        }
        self.renew_as(schedule, server, made)
    }

    /// Gives the server in `to` the data of the one in `from`.
    ///
    /// Errors: as [`Fleet::load`]; none of a statement that was ended because the user interrupted.
    fn copy(&mut self, from: usize, to: usize, interrupted: &AtomicBool) -> Result<(), Problem> {
        if self.own(to).is_some() {
            return self.copy_data(from, to);
        }
        let (source, target) = (self.site(from, from)?, self.site(to, to)?);
        let (plan, tables) = (self.plan, &self.tables);
        let copied = std::thread::scope(|scope| {
            let copying = scope.spawn(|| remote::copy(&source, &target, plan, tables));
            watch(vec![&copying], interrupted, || drop(cancel(&target)));
            let died = |_| Err(Problem::new("a thread that copies rows ended too early"));
            copying.join().unwrap_or_else(died)
        });
        match copied {
            Err(_) if interrupted.load(Ordering::Relaxed) => Ok(()),
            other => other,
        }
    }

    fn read_copy(
        &mut self,
        place: usize,
        executables: &[Executable],
    ) -> Result<ServerReadback, Problem> {
        let plan = self.plan;
        self.start_to_load(place)?;
        let site = self.site(place, place)?;
        let readback = read_back(&site, (plan, &self.tables), executables)
            .map_err(|problem| self.with_log(problem, place))?;
        self.halt(place)?;
        Ok(readback)
    }

    fn check_settings(&self, readbacks: &[Option<ServerReadback>]) -> Result<(), Problem> {
        for (place, readback) in readbacks.iter().enumerate() {
            let Some(readback) = readback else { continue };
            let failures = unmet(self.asked_settings(place), &readback.settings);
            if !failures.is_empty() {
                let name = &self.planned(place)?.installation.resolved;
                return Err(Problem::new(format!("{name} did not accept every setting"))
                    .detail(failures.join("\n")));
            }
        }
        Ok(())
    }

    fn start_to_load(&mut self, place: usize) -> Result<(), Problem> {
        if self.own(place).is_none() {
            return Ok(());
        }
        let settings = self.asked_settings(place).to_vec();
        let slot = Slot {
            port: LOADING_PORT + u16::try_from(place).unwrap_or(0),
            ..Slot::default()
        };
        self.refill_huge_pages()?;
        // In nobody's groups: the pages that loading brings in count for us, and are dropped later.
        self.limits.mark_strange(place);
        self.cluster(place)?.start(&slot, &settings).map(drop)
    }

    /// Stops a server of ours.
    fn halt(&mut self, place: usize) -> Result<(), Problem> {
        let member = self.members.get_mut(place).ok_or_else(no_such_server)?;
        member.stop()
    }
}

/// Waits until threads have ended. When the user interrupts, `end` is called, and again each second: a thread
/// may begin another statement.
fn watch<T>(
    threads: Vec<&ScopedJoinHandle<'_, T>>,
    interrupted: &AtomicBool,
    mut end: impl FnMut(),
) {
    let mut ended: Option<Instant> = None;
    while !threads.iter().all(|thread| thread.is_finished()) {
        let again = ended.is_none_or(|at| at.elapsed() >= AGAIN);
        if again && interrupted.load(Ordering::Relaxed) {
            end();
            ended = Some(Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends what servers do that are being loaded: a server of ours itself, on another our statements.
fn end_loads(members: &mut [Member], sites: &[(usize, &Site)]) {
    for (place, site) in sites {
        match members.get_mut(*place) {
            Some(Member::Own(cluster)) => cluster.abandon(),
            // It is tried again: nothing can be done with a server that does not answer.
            Some(Member::Remote { .. }) => drop(cancel(site)),
            None => {}
        }
    }
}

/// Cancels the statements of set-up work on a server that was there before.
///
/// Errors: whatever it answered.
fn cancel(site: &Site) -> Result<(), Problem> {
    let mut client = site.open(Tables::Kept(DataState::Fresh))?;
    run(&mut client, CANCEL)
}

/// Does the same on several servers, each in a thread of its own; the problem of the first that has one.
fn at_the_same_time(
    servers: &[ServerId],
    work: impl Fn(ServerId) -> Result<(), Problem> + Sync,
) -> Result<(), Problem> {
    let ends: Vec<_> = std::thread::scope(|scope| {
        let start = |server: &ServerId| {
            let (server, work) = (*server, &work);
            scope.spawn(move || work(server))
        };
        let threads: Vec<_> = servers.iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let died = || Err(Problem::new("a thread that makes tables ended too early"));
    ends.into_iter()
        .try_for_each(|end| end.unwrap_or_else(|_| died()))
}

/// These servers in the drawn order of a block, begun at another one for each cell. A pilot has fewer servers
/// than the order names.
fn turned(start_order: &[usize], servers: &[ServerId], cell: CellId) -> Vec<ServerId> {
    let drawn = start_order.iter().map(|server| ServerId::at(*server));
    let mut order: Vec<ServerId> = drawn.filter(|server| servers.contains(server)).collect();
    let first = cell.index().checked_rem(order.len()).unwrap_or(0);
    order.rotate_left(first);
    order
}

/// What is loaded on every server.
#[derive(Clone, Copy)]
struct Loading<'a> {
    plan: &'a Plan,
    tables: &'a DataSet,
    executables: &'a [Executable],
    interrupted: &'a AtomicBool,
}

impl Loading<'_> {
    /// All that is to be done to one server before the blocks; `None` when interrupted.
    fn one(
        self,
        site: &Site,
        pid: Option<u32>,
        version_num: u32,
    ) -> Result<Option<ServerReadback>, Problem> {
        let plan = self.plan;
        load::load_fresh(site, plan, self.tables)?;
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut aging = None;
        let aged = load::states(plan).contains(&DataState::Aged);
        if let Some(pid) = pid.filter(|_| aged) {
            let report = aging::age(&site.endpoint, pid, version_num, plan, self.interrupted)?;
            if report.is_none() {
                return Ok(None);
            }
            aging = report;
        }
        let readback = read_back(site, (plan, self.tables), self.executables)?;
        Ok(Some(ServerReadback { aging, ..readback }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_left_for_last_in_turn_and_none_that_is_not_there_is_named() {
        let all = [0, 1, 2].map(ServerId::at);
        let last = |cell| *turned(&[2, 0, 1], &all, CellId(cell)).last().unwrap();
        assert_eq!([0, 1, 2, 3].map(last), [1, 2, 0, 1].map(ServerId::at));
        let pilot = turned(&[2, 0, 1], &all[..2], CellId(1));
        assert_eq!(pilot, [1, 0].map(ServerId::at));
    }
}
