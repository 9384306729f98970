//! A run from its plan to its last slice; also the rest of a run that was killed.

use crate::events::{BlockProgress, Observer};
use crate::fleet::{Fleet, Host, ServerReadback, login};
use crate::load::schema_of;
use crate::schedule::{BlockSchedule, VisitSchedule};
use crate::visit::{Address, Visit, VisitEnd};
use deltabench_compare::{ServerFacts, analyse, fairness};
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index};
use deltabench_observe::{CpuMeter, HostFacts, host_findings, own_affinity};
use deltabench_store::Store;
use deltabench_workload::Library;
use deltabench_workload::executable::Executable;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// After this many lost servers in one session the run ends.
const LOSSES_MAX: u32 = 3;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Every block is done, or the deadline came after one.
    Finished,
    /// The user stopped it; `resume` goes on.
    Interrupted,
}

/// One session of a run: all of it, or what was left.
pub struct Session<'a> {
    /// The plan, as stored.
    pub plan: &'a Plan,
    /// The run's name.
    pub run: &'a str,
    /// Where slices go.
    pub store: &'a mut Store,
    /// Where servers live.
    pub host: &'a Host,
    /// The workload definitions.
    pub library: &'a Library,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
    /// Who hears about progress.
    pub observer: &'a mut dyn Observer,
}

/// What the blocks need beside the session itself.
struct Measuring<'f, 'p> {
    fleet: &'f mut Fleet<'p>,
    executables: Vec<Executable>,
    cores: Vec<usize>,
    done: HashSet<(u32, CellId)>,
    losses: u32,
    cpu_source_known: bool,
    began: Instant,
    blocks_done: u32,
}

impl Session<'_> {
    /// Sets servers up, measures all blocks that are not done, and takes everything down again.
    ///
    /// Errors: anything that makes measuring impossible; what was measured before stays in the store.
    pub fn execute(&mut self) -> Result<SessionEnd, Problem> {
        let executables = compile(self.plan, self.library)?;
        let done = self
            .store
            .completed_visits(self.run)
            .map_err(store_problem)?;
        let facts = HostFacts::read();
        let mut notes = Vec::new();
        let mut fleet =
            Fleet::create(self.plan, self.run, self.host, &mut |text| notes.push(text))?;
        for note in &notes {
            self.observer.note(note);
        }
        let end = self
            .set_up(&mut fleet, &executables, &facts)
            .and_then(|()| {
                let mut measuring = Measuring {
                    fleet: &mut fleet,
                    executables,
                    cores: own_affinity().unwrap_or_default(),
                    done: done.into_iter().collect(),
                    losses: 0,
                    cpu_source_known: false,
                    began: Instant::now(),
                    blocks_done: 0,
                };
                self.blocks(&mut measuring)
            });
        let dismantled = fleet.dismantle();
        let end = end?;
        dismantled.map(|()| end)
    }

    fn set_up(
        &mut self,
        fleet: &mut Fleet<'_>,
        executables: &[Executable],
        host: &HostFacts,
    ) -> Result<(), Problem> {
        let mut readbacks = Vec::new();
        for (place, server) in self.plan.servers.iter().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            let id = u32::try_from(place).unwrap_or(u32::MAX);
            let name = self.plan.server_name(id);
            self.observer.note(&format!(
                "loading {name} ({})",
                server.installation.resolved
            ));
            readbacks.push(fleet.load(place, executables)?);
        }
        self.record(fleet, &readbacks, host)
    }

    /// Stores what servers and host are, and what follows from it; a resumed run keeps the findings it has.
    fn record(
        &mut self,
        fleet: &Fleet<'_>,
        readbacks: &[ServerReadback],
        host: &HostFacts,
    ) -> Result<(), Problem> {
        let conditions = serde_json::json!({
            "huge_pages": fleet.has_huge_pages(),
            "shared_buffers_mb": fleet.shared_buffers_mb(),
        });
        self.fact(None, "conditions", &conditions)?;
        self.fact(
            None,
            "host",
            &serde_json::to_value(host).unwrap_or_default(),
        )?;
        for (id, readback) in (0..).zip(readbacks) {
            self.fact(
                Some(id),
                "build",
                &serde_json::to_value(&readback.build).unwrap_or_default(),
            )?;
            self.fact(
                Some(id),
                "settings",
                &serde_json::to_value(&readback.settings).unwrap_or_default(),
            )?;
            self.fact(
                Some(id),
                "plans",
                &serde_json::to_value(&readback.plans).unwrap_or_default(),
            )?;
            self.fact(Some(id), "relation_bytes", &readback.relation_bytes.into())?;
        }
        if !self
            .store
            .findings(self.run)
            .map_err(store_problem)?
            .is_empty()
        {
            return Ok(());
        }
        let mut findings = host_findings(host);
        findings.extend(plan_findings(self.plan, readbacks));
        findings.extend(self.fairness(fleet, readbacks));
        if !fleet.has_huge_pages() {
            findings.push(Finding::new(
                "no-huge-pages",
                Severity::Note,
                "shared buffers are in 4 KiB pages: expect about twice the spread between restarts",
            ));
        }
        for finding in &findings {
            self.store
                .add_finding(self.run, finding)
                .map_err(store_problem)?;
        }
        Ok(())
    }

    fn fairness(&self, fleet: &Fleet<'_>, readbacks: &[ServerReadback]) -> Vec<Finding> {
        // The stored plan knows the installation as files; the readback knows it as a running server.
        let described: Vec<_> = self
            .plan
            .servers
            .iter()
            .zip(readbacks)
            .map(|(server, readback)| {
                let mut installation = server.installation.clone();
                installation.build = Some(readback.build.clone());
                installation
            })
            .collect();
        let facts = |id: u32| -> Option<ServerFacts<'_>> {
            let place = index(u64::from(id));
            let readback = readbacks.get(place)?;
            Some(ServerFacts {
                name: self.plan.server_name(id),
                installation: described.get(place)?,
                settings: &readback.settings,
                data_checksums: readback
                    .settings
                    .iter()
                    .any(|s| s.name == "data_checksums" && s.value == "on"),
                asked_settings: fleet.asked_settings(place),
                relation_bytes: Some(readback.relation_bytes),
                huge_pages: Some(fleet.has_huge_pages()),
            })
        };
        let Some(base) = facts(self.plan.base()) else {
            return Vec::new();
        };
        self.plan
            .candidates()
            .into_iter()
            .filter_map(facts)
            .flat_map(|candidate| fairness(&base, &candidate))
            .collect()
    }

    fn fact(
        &mut self,
        server: Option<u32>,
        kind: &str,
        value: &serde_json::Value,
    ) -> Result<(), Problem> {
        self.store
            .add_facts(self.run, server, None, kind, &value.to_string())
            .map_err(store_problem)
    }

    fn blocks(&mut self, measuring: &mut Measuring<'_, '_>) -> Result<SessionEnd, Problem> {
        for block in 0..self.plan.timing.blocks {
            let schedule = BlockSchedule::of(self.plan, block);
            let is_done = |cell: &CellId| measuring.done.contains(&(block, *cell));
            if schedule.cells.iter().all(is_done) {
                continue;
            }
            let started = Instant::now();
            while schedule
                .cells
                .iter()
                .any(|cell| !measuring.done.contains(&(block, *cell)))
            {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(SessionEnd::Interrupted);
                }
                if let Some(end) = self.block(block, &schedule, measuring)? {
                    return Ok(end);
                }
            }
            measuring.blocks_done += 1;
            self.report(block, measuring)?;
            let last = started.elapsed().as_secs_f64();
            let elapsed = measuring.began.elapsed().as_secs_f64();
            if self
                .plan
                .timing
                .deadline_seconds
                .is_some_and(|deadline| elapsed + last > deadline)
            {
                break;
            }
        }
        Ok(SessionEnd::Finished)
    }

    /// Starts the servers and visits the block's open cells, until all are done or a server is lost.
    fn block(
        &mut self,
        block: u32,
        schedule: &BlockSchedule,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<Option<SessionEnd>, Problem> {
        let addresses = measuring.fleet.start(schedule)?;
        self.record_cpu_source(&addresses, measuring)?;
        let planned = u32::try_from(schedule.cells.len()).unwrap_or(u32::MAX);
        for (number, &cell) in (1..).zip(&schedule.cells) {
            if measuring.done.contains(&(block, cell)) {
                continue;
            }
            match self.visit(block, cell, &addresses, measuring)? {
                VisitEnd::Interrupted => {
                    measuring.fleet.stop()?;
                    return Ok(Some(SessionEnd::Interrupted));
                }
                VisitEnd::Complete => {
                    measuring.done.insert((block, cell));
                    self.observer.visit(block, number, planned);
                }
                VisitEnd::Lost(server, reason) => {
                    measuring.done.insert((block, cell));
                    self.lost(block, cell, server, reason.word(), schedule, measuring)?;
                    // The loss has been told; that the lost server does not stop cleanly is no news.
                    let _ = measuring.fleet.stop();
                    return Ok(None);
                }
            }
        }
        measuring.fleet.stop()?;
        Ok(None)
    }

    /// Stores, once a session, where the CPU figures come from.
    fn record_cpu_source(
        &mut self,
        addresses: &[Address],
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<(), Problem> {
        let Some(first) = addresses.first().filter(|_| !measuring.cpu_source_known) else {
            return Ok(());
        };
        let meter = CpuMeter::open(first.postmaster_pid).map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        measuring.cpu_source_known = true;
        self.fact(None, "cpu_source", &meter.source().word().into())
    }

    fn visit(
        &mut self,
        block: u32,
        cell_id: CellId,
        addresses: &[Address],
        measuring: &Measuring<'_, '_>,
    ) -> Result<VisitEnd, Problem> {
        let place = index(u64::from(cell_id));
        let (Some(cell), Some(executable)) =
            (self.plan.cells.get(place), measuring.executables.get(place))
        else {
            return Err(Problem::new(format!("the plan has no cell {cell_id}")));
        };
        let schedule = VisitSchedule::of(self.plan, block, cell_id, cell, &measuring.cores);
        let servers: Vec<Address> = addresses
            .iter()
            .map(|address| with_schema(address, cell))
            .collect();
        let visit = Visit {
            plan: self.plan,
            block,
            cell_id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            interrupted: self.interrupted,
        };
        let (store, run) = (&mut *self.store, self.run);
        store
            .begin_visit(run, cell_id, block)
            .map_err(store_problem)?;
        let end = visit.carry_out(&mut |slice| store.append(run, slice).map_err(store_problem));
        match &end {
            Ok(VisitEnd::Complete | VisitEnd::Lost(..)) => {
                store
                    .commit_visit(run, cell_id, block)
                    .map_err(store_problem)?;
            }
            Ok(VisitEnd::Interrupted) | Err(_) => store.abandon_visit().map_err(store_problem)?,
        }
        end
    }

    fn lost(
        &mut self,
        block: u32,
        cell: CellId,
        server: u32,
        how: &str,
        schedule: &BlockSchedule,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<(), Problem> {
        measuring.losses += 1;
        let name = self.plan.server_name(server);
        let workload = self
            .plan
            .cells
            .get(index(u64::from(cell)))
            .map_or("?", |cell| cell.workload.as_str());
        let tail = measuring.fleet.log_tail(schedule, server);
        self.observer.note(&format!(
            "{name} was lost ({how}) in block {block} at {workload}; its log ends:\n{tail}"
        ));
        let text =
            format!("{name} was lost ({how}) in block {block} at {workload}; that slice is void");
        let finding = Finding::new("server-lost", Severity::Confounder, text.clone());
        self.store
            .add_finding(self.run, &finding)
            .map_err(store_problem)?;
        if measuring.losses >= LOSSES_MAX {
            return Err(
                Problem::new(format!("servers were lost {LOSSES_MAX} times; giving up"))
                    .detail(format!("{text}\n{tail}"))
                    .hint("what was measured is kept: `deltabench report` shows it"),
            );
        }
        Ok(())
    }

    fn report(&mut self, block: u32, measuring: &Measuring<'_, '_>) -> Result<(), Problem> {
        let slices = self.store.slices(self.run).map_err(store_problem)?;
        let findings = self.store.findings(self.run).map_err(store_problem)?;
        let elapsed = measuring.began.elapsed().as_secs_f64();
        let left = self.plan.timing.blocks.saturating_sub(block + 1);
        self.observer.block(&BlockProgress {
            done: block + 1,
            planned: self.plan.timing.blocks,
            elapsed_seconds: elapsed,
            remaining_seconds: elapsed / f64::from(measuring.blocks_done.max(1)) * f64::from(left),
            comparison: (!slices.is_empty()).then(|| analyse(self.plan, &slices, findings)),
        });
        Ok(())
    }
}

fn compile(plan: &Plan, library: &Library) -> Result<Vec<Executable>, Problem> {
    plan.cells
        .iter()
        .map(|cell| library.get(&cell.workload)?.compile(&plan.data))
        .collect()
}

fn with_schema(address: &Address, cell: &Cell) -> Address {
    Address {
        login: login(Some(&schema_of(cell))),
        ..address.clone()
    }
}

/// A finding for every cell whose statements a server plans differently from the base.
fn plan_findings(plan: &Plan, readbacks: &[ServerReadback]) -> Vec<Finding> {
    let Some(base) = readbacks.get(index(u64::from(plan.base()))) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (id, readback) in (0..).zip(readbacks) {
        for ((cell, ours), theirs) in plan.cells.iter().zip(&base.plans).zip(&readback.plans) {
            if ours != theirs {
                findings.push(Finding::new(
                    "plan-differs",
                    Severity::Confounder,
                    format!(
                        "{} at {} clients is planned differently: {} in base, {} in {}",
                        cell.workload,
                        cell.clients,
                        one_line(ours),
                        one_line(theirs),
                        plan.server_name(id)
                    ),
                ));
            }
        }
    }
    findings
}

fn one_line(plans: &[String]) -> String {
    let words = |plan: &String| plan.split_whitespace().collect::<Vec<_>>().join(" ");
    plans.iter().map(words).collect::<Vec<_>>().join("; ")
}

fn store_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new("the results could not be stored")
        .detail(error.to_string())
        .hint("what was committed is safe; free some disk and run `deltabench resume`")
}

/// Number of visits that a plan has in all.
#[must_use]
pub fn visits(plan: &Plan) -> u64 {
    u64::from(plan.timing.blocks) * count(plan.cells.len())
}
