//! The blocks of RocksDB: a database for each target, the chain on all of them, and what is kept of it.

use super::blocks::{Course, Loss};
use super::observed::series;
use super::{Session, SessionEnd, store_problem};
use crate::limits::{FleetLimits, Possible};
use crate::residence::{Residence, residence};
use crate::rocksdb::{Shop, StepVisit, Stop, Workers, cache_of, in_memory, step_order};
use crate::schedule::BlockSchedule;
use crate::visit::{Cause, VisitEnd};
use deltabench_compare::fairness::engine::{EngineFacts, fairness};
use deltabench_engine::{Opened, StepOrder};
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::installation::Setting;
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::rocksdb::RocksdbSetup;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{count, index};
use deltabench_observe::{HostFacts, Series, host_findings};
use deltabench_server::Workspace;
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// The fact that says what an engine took and what it left out.
const ENGINE: &str = "engine";

/// The fact that says what the host is.
const HOST: &str = "host";

/// The fact that says what a step came to that is not measured.
const PREPARED: &str = "prepared";

/// How the end of a process reads that the kernel, or a user, has killed.
const KILLED: &str = "signal 9 ";

/// Kind of the finding that cores are few.
const FEW_CORES: &str = "few-cores";

/// Kinds of findings that follow from the files of two targets alone.
const OF_FILES: [&str; 2] = ["options-only-in-base", "options-only-in-candidate"];

/// What the blocks need beside the session itself.
pub(super) struct Chaining<'p> {
    setup: &'p RocksdbSetup,
    course: Course,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    /// Whether this session has stored what its engines say of themselves.
    recorded: bool,
    /// Whether a session before has stored what follows from the host and its limits.
    place_told: bool,
    /// Whether one has stored what follows from what engines say of themselves.
    engines_told: bool,
    /// What is stored already of steps that are not measured: target, block and step.
    prepared: HashSet<(ServerId, u32, String)>,
    /// Processes of each target that the kernel had killed for its memory limit when it was lost last.
    killed: Vec<u64>,
    // Order matters on drop: groups are removed before the directory goes.
    limits: FleetLimits,
    workspace: Workspace,
}

impl AsMut<Course> for Chaining<'_> {
    fn as_mut(&mut self) -> &mut Course {
        &mut self.course
    }
}

/// One go at the chain of a block.
#[derive(Clone, Copy)]
struct Go<'a> {
    block: u32,
    /// Cells without an answer.
    open: &'a [CellId],
    /// The targets, in the order in which they were started.
    order: &'a [usize],
}

impl Session<'_> {
    /// Measures all blocks of RocksDB that are not done, and leaves nothing but what is stored.
    pub(super) fn rocksdb(
        &mut self,
        setup: &RocksdbSetup,
        began: Instant,
    ) -> Result<SessionEnd, Problem> {
        let done = self
            .store
            .completed_visits(self.run)
            .map_err(store_problem)?;
        let slices = self.store.slices(self.run).map_err(store_problem)?;
        residence(self.plan, self.host)?;
        let possible = Possible::find(self.plan, self.host)?;
        let workspace = Workspace::create(&self.host.workspaces, self.run, &self.host.user)?;
        let limits = possible.create(self.plan, self.run, 0, &workspace)?;
        let mut chaining = Chaining {
            setup,
            course: Course::new(done, slices, began),
            series: series(self.plan, workspace.directory()),
            recorded: false,
            place_told: self.is_known(HOST)?,
            engines_told: self.is_known(ENGINE)?,
            prepared: self.prepared()?,
            killed: vec![0; self.plan.servers.len()],
            limits,
            workspace,
        };
        let end = self
            .record_place(&chaining)
            .and_then(|()| self.blocks(&mut chaining, Self::chain));
        let Chaining {
            limits, workspace, ..
        } = chaining;
        let removed = limits.remove();
        let cleared = workspace.remove();
        let end = end?;
        removed.and(cleared).map(|()| end)
    }

    /// Stores what is known before any engine has been started.
    fn record_place(&mut self, chaining: &Chaining<'_>) -> Result<(), Problem> {
        let host = HostFacts::read();
        if !chaining.place_told {
            let limits = chaining.limits.findings().iter().cloned();
            // Work comes from the process that does it: nobody sends it from a core of his own.
            let of_host = host_findings(&host)
                .into_iter()
                .filter(|finding| finding.kind != FEW_CORES);
            let crowded = few_cores(self.plan, chaining.setup, &host);
            let small = in_memory(self.plan, host.memory_available_bytes)
                .map(|text| Finding::new("fits-in-memory", Severity::Note, text));
            let own = crowded.into_iter().chain(small);
            let findings: Vec<Finding> = of_host.chain(own).chain(limits).collect();
            self.keep_findings(&findings)?;
        }
        // The facts last: with them it is known that the findings are there.
        let conditions = serde_json::json!({
            "residence": Residence::Together,
            "limits": chaining.limits.applied(),
            "cache": self.plan.cache,
        });
        self.fact(None, "conditions", &conditions)?;
        let facts = serde_json::to_value(&host).unwrap_or_default();
        self.fact(None, HOST, &facts)?;
        self.record_sources()
    }

    /// Whether a fact of this kind is stored.
    fn is_known(&self, kind: &str) -> Result<bool, Problem> {
        let facts = self.store.facts(self.run, kind).map_err(store_problem)?;
        Ok(!facts.is_empty())
    }

    /// What is stored of steps that are not measured.
    fn prepared(&self) -> Result<HashSet<(ServerId, u32, String)>, Problem> {
        let facts = self.store.facts(self.run, PREPARED);
        let facts = facts.map_err(store_problem)?.into_iter();
        let step = |json: &str| {
            let value: serde_json::Value = serde_json::from_str(json).ok()?;
            value.get("step")?.as_str().map(str::to_owned)
        };
        Ok(facts
            .filter_map(|fact| Some((fact.server?, fact.block?, step(&fact.json)?)))
            .collect())
    }

    /// Takes all targets through the chain of a block, as far as a cell is open and not done; what is done
    /// already is done again, because the rest starts from what it leaves.
    fn chain(
        &mut self,
        block: u32,
        open: &[CellId],
        chaining: &mut Chaining<'_>,
    ) -> Result<Option<SessionEnd>, Problem> {
        if chaining.series.is_some() {
            self.mark_block(format!("block {}", block + 1))?;
        }
        let order = BlockSchedule::of(self.plan, block).start_order;
        let go = Go {
            block,
            open,
            order: &order,
        };
        let shop = Shop {
            plan: self.plan,
            setup: chaining.setup,
            host: self.host,
            workspace: &chaining.workspace,
            limits: &chaining.limits,
            interrupted: self.interrupted,
        };
        let mut workers = match Workers::start(&shop, &order) {
            Ok(workers) => workers,
            Err(Stop::Interrupted) => return Ok(Some(SessionEnd::Interrupted)),
            Err(Stop::Problem(problem)) => return Err(problem),
            Err(Stop::Lost(server, cause)) => {
                self.give_up((block, open), &mut chaining.course)?;
                let place = (block, "its start");
                return self
                    .engine_lost(place, server, &cause, chaining)
                    .map(|()| None);
            }
        };
        if !chaining.recorded {
            self.record_engines(&workers, chaining)?;
        }
        if let Some(series) = &mut chaining.series {
            series.set_servers(&workers.postmasters());
        }
        let end = self.links(go, &mut workers, chaining);
        if let Some(series) = &mut chaining.series {
            series.set_servers(&[]);
        }
        match end {
            Ok(None) => {
                for words in workers.stop()? {
                    self.observer.note(&words);
                    let finding = Finding::new("engine-not-closed", Severity::Note, words);
                    self.keep_findings(&[finding])?;
                }
                Ok(None)
            }
            // The databases are of no use to anybody.
            ended => {
                workers.abandon()?;
                ended
            }
        }
    }

    /// The links of a chain, up to the last that is wanted.
    fn links(
        &mut self,
        go: Go<'_>,
        workers: &mut Workers<'_>,
        chaining: &mut Chaining<'_>,
    ) -> Result<Option<SessionEnd>, Problem> {
        let chain = chaining.setup.chain();
        let wanted = |course: &Course, cell| {
            go.open.contains(&cell) && !course.done.contains(&(go.block, cell))
        };
        let planned = u32::try_from(go.open.len()).unwrap_or(u32::MAX);
        let course = &chaining.course;
        let last = chain
            .iter()
            .rposition(|link| link.cell.is_some_and(|cell| wanted(course, cell)));
        let mut visited = 0;
        for (place, link) in chain
            .iter()
            .enumerate()
            .take(last.map_or(0, |last| last + 1))
        {
            let order = step_order(self.plan, go.block, place, link);
            let started = Instant::now();
            let end = match link.cell {
                None => self.prepare(go, order, workers, &mut chaining.prepared)?,
                Some(cell) => {
                    let keeps = wanted(&chaining.course, cell);
                    self.step((go.block, cell), order, keeps, workers, chaining)?
                }
            };
            match end {
                VisitEnd::Interrupted => return Ok(Some(SessionEnd::Interrupted)),
                VisitEnd::Complete => {}
                VisitEnd::Lost(server, cause) => {
                    if let Some(cell) = link.cell {
                        chaining.course.done.insert((go.block, cell));
                    }
                    self.give_up((go.block, go.open), &mut chaining.course)?;
                    let place = (go.block, link.step.name());
                    self.engine_lost(place, server, &cause, chaining)?;
                    return Ok(None);
                }
            }
            let Some(cell) = link.cell.filter(|cell| go.open.contains(cell)) else {
                continue;
            };
            visited += 1;
            chaining.course.visited(go.block, cell, started);
            self.observer.visit(go.block, visited, planned);
        }
        Ok(None)
    }

    /// Stores that the cells of a block that are not done have no slices: a library that crashes at a step
    /// would crash there again, and blocks after this one have their values up to it.
    fn give_up(
        &mut self,
        (block, open): (u32, &[CellId]),
        course: &mut Course,
    ) -> Result<(), Problem> {
        for &cell in open {
            if !course.done.insert((block, cell)) {
                continue;
            }
            self.store
                .begin_visit(self.run, cell, block)
                .and_then(|()| self.store.commit_visit(self.run, cell, block))
                .map_err(store_problem)?;
        }
        Ok(())
    }

    /// Carries an unmeasured link out on one target after another, and stores what is not `known` of it.
    fn prepare(
        &mut self,
        go: Go<'_>,
        order: StepOrder,
        workers: &mut Workers<'_>,
        known: &mut HashSet<(ServerId, u32, String)>,
    ) -> Result<VisitEnd, Problem> {
        for place in go.order {
            let server = ServerId::try_from(*place).unwrap_or(ServerId::MAX);
            let prepared = match workers.prepare(server, order) {
                Ok(prepared) => prepared,
                Err(Stop::Interrupted) => return Ok(VisitEnd::Interrupted),
                Err(Stop::Lost(server, cause)) => return Ok(VisitEnd::Lost(server, cause)),
                Err(Stop::Problem(problem)) => return Err(problem),
            };
            // A block that was cut short goes through its steps again.
            if !known.insert((server, go.block, order.step.name().to_owned())) {
                continue;
            }
            let value = serde_json::json!({
                "step": order.step.name(),
                "duration_ns": prepared.duration_ns,
                "figures": prepared.figures,
            });
            self.store
                .add_facts(
                    self.run,
                    Some(server),
                    Some(go.block),
                    PREPARED,
                    &value.to_string(),
                )
                .map_err(store_problem)?;
        }
        Ok(VisitEnd::Complete)
    }

    /// Visits a cell and, if it `keeps` it, stores what it finds.
    fn step(
        &mut self,
        (block, cell): (u32, CellId),
        order: StepOrder,
        keeps: bool,
        workers: &mut Workers<'_>,
        chaining: &mut Chaining<'_>,
    ) -> Result<VisitEnd, Problem> {
        let visit = StepVisit {
            plan: self.plan,
            setup: chaining.setup,
            block,
            cell,
            order,
        };
        let (store, run) = (&mut *self.store, self.run);
        if !keeps {
            return visit
                .carry_out(workers, &mut |_| Ok(()))
                .map(|report| report.end);
        }
        store.begin_visit(run, cell, block).map_err(store_problem)?;
        let mut taken: Vec<Slice> = Vec::new();
        let report = visit.carry_out(workers, &mut |slice| {
            taken.push(slice.clone());
            store.append(run, slice).map_err(store_problem)
        });
        let end = self.keep_visit(block, cell, report, chaining.series.as_mut())?;
        if end != VisitEnd::Interrupted {
            chaining.course.slices.append(&mut taken);
        }
        Ok(end)
    }

    /// Tells, and stores, that an engine was lost at a step of a block, and counts it.
    ///
    /// Errors: it was one loss too many.
    fn engine_lost(
        &mut self,
        (block, step): (u32, &str),
        server: ServerId,
        cause: &Cause,
        chaining: &mut Chaining<'_>,
    ) -> Result<(), Problem> {
        let name = self.plan.server_name(server);
        let what = match cause.reason {
            VoidReason::NothingDone => "refused to go on",
            VoidReason::Stalled => "was given up",
            VoidReason::ServerLost => "was lost",
        };
        let words = cause.detail.as_deref().unwrap_or("it does not say why");
        let of_limit = killed_by_limit(server, words, chaining);
        let limit = match of_limit {
            false => "",
            true => "; it needed more than the memory limit, and the kernel killed it",
        };
        let told = format!(
            "{name} {what} in block {} at {step}: {words}{limit}",
            block + 1
        );
        self.observer
            .note(&format!("{told}; the rest of this block is given up"));
        let hint = match of_limit {
            false => "what was measured is kept: `deltabench report` shows it",
            true => "use more --memory, or a smaller --cache-size",
        };
        let losses = super::LOSSES_MAX;
        let loss = Loss {
            told,
            tail: String::new(),
            void: "what comes after it in that block is missing",
            give_up: Problem::new(format!("engines were lost {losses} times; giving up"))
                .hint(hint),
        };
        self.count_loss(loss, &mut chaining.course.losses)
    }

    /// Stores what the engines of the session's first block say of themselves; a run that is gone on with
    /// keeps the findings it has.
    fn record_engines(
        &mut self,
        workers: &Workers<'_>,
        chaining: &mut Chaining<'_>,
    ) -> Result<(), Problem> {
        let plan = self.plan;
        let setup = chaining.setup;
        let settings: Vec<Vec<Setting>> = plan
            .servers
            .iter()
            .zip(workers.opened())
            .map(|(server, opened)| settings_of(setup, server, opened))
            .collect();
        if !chaining.engines_told {
            let mut findings = warnings(plan, workers.opened());
            findings.extend(unfair(plan, workers.opened(), &settings));
            self.keep_findings(&findings)?;
        }
        // The facts last: with them it is known that the findings are there.
        for (id, ((server, opened), settings)) in
            (0..).zip(plan.servers.iter().zip(workers.opened()).zip(&settings))
        {
            let value = |found: serde_json::Result<serde_json::Value>| found.unwrap_or_default();
            let build = value(serde_json::to_value(&server.installation.build));
            self.fact(Some(id), "build", &build)?;
            let in_force = value(serde_json::to_value(settings));
            self.fact(Some(id), "settings", &in_force)?;
            let said = serde_json::json!({
                "left_out": opened.left_out,
                "cache": opened.cache,
                "warnings": opened.warnings,
            });
            self.fact(Some(id), ENGINE, &said)?;
        }
        chaining.recorded = true;
        Ok(())
    }

    /// Stores those findings that are not stored yet.
    fn keep_findings(&mut self, findings: &[Finding]) -> Result<(), Problem> {
        let known = self.store.findings(self.run).map_err(store_problem)?;
        for finding in findings.iter().filter(|found| !known.contains(found)) {
            self.store
                .add_finding(self.run, finding)
                .map_err(store_problem)?;
        }
        Ok(())
    }
}

/// Whether a target that was lost now, with these words, needed more than its memory limit.
fn killed_by_limit(server: ServerId, words: &str, chaining: &mut Chaining<'_>) -> bool {
    let place = index(u64::from(server));
    let reading = chaining.limits.read(place);
    let killed = reading.and_then(|reading| reading.killed).unwrap_or(0);
    let before = chaining.killed.get_mut(place);
    before.is_some_and(|before| is_of_limit(words, before, killed))
}

/// The same by what its group counts `now` and counted `before`, when it was lost last: it was killed, and
/// the kernel has killed one more since. Other crashes of the same group are not the limit's.
fn is_of_limit(words: &str, before: &mut u64, now: u64) -> bool {
    let more = now > *before;
    *before = now;
    more && words.contains(KILLED)
}

/// The options in force, those that were asked for marked.
fn settings_of(setup: &RocksdbSetup, server: &PlannedServer, opened: &Opened) -> Vec<Setting> {
    let asked = |name: &str| {
        let all = setup.options.iter().chain(&server.settings);
        all.into_iter().any(|(other, _)| is_option(name, other))
    };
    let setting = |(name, value): (&String, &String)| Setting {
        name: name.clone(),
        value: value.clone(),
        unit: None,
        boot_value: None,
        source: match asked(name) {
            true => "asked".to_owned(),
            false => "default".to_owned(),
        },
    };
    opened.in_force.iter().map(setting).collect()
}

/// Whether `SECTION.name` of an option file is the option that was asked for by its `name`.
fn is_option(name: &str, asked: &str) -> bool {
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    name == asked || last(name) == last(asked)
}

/// What programs say of themselves that makes their figures doubtful.
fn warnings(plan: &Plan, opened: &[Opened]) -> Vec<Finding> {
    let compared = (0..).zip(plan.servers.iter().zip(opened));
    compared
        .filter(|(_, (server, _))| server.role != Role::Placebo)
        .flat_map(|(id, (_, opened)): (ServerId, _)| {
            let name = plan.server_name(id);
            opened.warnings.iter().map(move |warning| {
                let text = format!("{name} says of itself: {warning}");
                Finding::new("engine-warning", Severity::Confounder, text)
            })
        })
        .collect()
}

/// What differs between the base and each candidate beside what was asked to differ.
fn unfair(plan: &Plan, opened: &[Opened], settings: &[Vec<Setting>]) -> Vec<Finding> {
    let facts = |id: ServerId| {
        let place = index(u64::from(id));
        let server = plan.servers.get(place)?;
        let opened = opened.get(place)?;
        Some(EngineFacts {
            name: plan.server_name(id),
            installation: &server.installation,
            settings: settings.get(place)?,
            asked: &server.settings,
            left_out: &opened.left_out,
            cache: &opened.cache,
            wanted: cache_of(server),
        })
    };
    let Some(base) = facts(plan.base()) else {
        return Vec::new();
    };
    let mut files: Vec<&Path> = Vec::new();
    let mut findings = Vec::new();
    for candidate in plan.candidates().into_iter().filter_map(facts) {
        let known = files.contains(&candidate.installation.bin_dir.as_path());
        files.push(&candidate.installation.bin_dir);
        let found = fairness(&base, &candidate).into_iter();
        // The same library with another cache lacks the same options.
        findings.extend(found.filter(|f| !(known && OF_FILES.contains(&f.kind.as_str()))));
    }
    findings
}

/// Whether the threads of a target have to share cores with its flushes and compactions.
fn few_cores(plan: &Plan, setup: &RocksdbSetup, host: &HostFacts) -> Option<Finding> {
    let allowed = host.allowed_cores.unwrap_or(host.online_cores);
    let cores = match &plan.pins {
        Some(pins) => count(pins.server.len()),
        None => allowed.min(host.online_cores),
    };
    let threads = setup.chain().iter().map(|link| link.threads).max()?;
    let writer = u32::from(setup.steps.iter().any(|step| step.beside_a_writer()));
    let jobs = setup.background_jobs;
    let wanted = u64::from(threads) + u64::from(writer) + u64::from(jobs);
    (cores > 0 && wanted > cores).then(|| {
        let beside = match writer {
            0 => "",
            _ => ", the writer beside them",
        };
        let text = format!(
            "{cores} cores have to do for up to {threads} reading or writing threads{beside} and {jobs} \
             background jobs of a target: while it compacts, its throughput says how they share cores, too; \
             CPU per operation does less"
        );
        Finding::new(FEW_CORES, Severity::Note, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::rocksdb_plan;

    #[test]
    fn options_that_were_asked_for_are_known_by_their_names_in_any_section() {
        let plan = rocksdb_plan(&["a", "b"]);
        let mut setup = plan.work.rocksdb().cloned().unwrap();
        setup.options = vec![("block_based_table_factory.block_size".into(), "4096".into())];
        let mut server = plan.servers[0].clone();
        server.settings = vec![("write_buffer_size".into(), "1".into())];
        let names = [
            "CFOptions.write_buffer_size",
            "DBOptions.db_write_buffer_size",
            "TableOptions.block_size",
        ];
        let opened = Opened {
            in_force: names.map(|name| (name.to_owned(), "1".to_owned())).into(),
            ..Opened::default()
        };
        let sources: Vec<String> = settings_of(&setup, &server, &opened)
            .into_iter()
            .map(|setting| setting.source)
            .collect();
        assert_eq!(sources, ["asked", "default", "asked"]);
    }

    #[test]
    fn the_memory_limit_is_blamed_for_its_own_kills_only() {
        let (killed, crashed) = (
            "x ended by signal 9 (killed) in readrandom",
            "x ended by signal 11 (segmentation fault) in readrandom",
        );
        let mut before = 0;
        assert!(is_of_limit(killed, &mut before, 1));
        assert!(!is_of_limit(crashed, &mut before, 1));
        assert!(!is_of_limit(killed, &mut before, 1), "by somebody else");
        assert!(!is_of_limit(crashed, &mut before, 2));
        assert!(is_of_limit(killed, &mut before, 3));
    }

    #[test]
    fn cores_are_few_when_threads_and_jobs_have_to_share_them() {
        let mut plan = rocksdb_plan(&["a", "b"]);
        let mut setup = plan.work.rocksdb().cloned().unwrap();
        let told = |plan: &Plan, setup: &RocksdbSetup, cores| {
            let host = HostFacts {
                online_cores: cores,
                ..HostFacts::default()
            };
            few_cores(plan, setup, &host).map(|finding| finding.text)
        };
        // One thread, the writer and two background jobs.
        assert!(
            told(&plan, &setup, 3)
                .unwrap()
                .starts_with("3 cores have to do for up to 1")
        );
        assert_eq!(told(&plan, &setup, 4), None);
        setup.threads = vec![1, 4];
        assert!(told(&plan, &setup, 4).is_some());
        plan.pins = Some(deltabench_model::plan::Pins {
            server: (0..8).collect(),
            client: vec![0],
        });
        assert_eq!(told(&plan, &setup, 4), None);
    }

    #[test]
    fn what_two_files_lack_is_told_once_for_all_that_run_them() {
        let mut plan = rocksdb_plan(&["a", "a", "b", "b"]);
        plan.servers[1].role = Role::Placebo;
        let of = |name: &str| Opened {
            in_force: [(format!("DBOptions.{name}"), "1".to_owned())].into(),
            ..Opened::default()
        };
        let opened = [of("x"), of("x"), of("y"), of("y")];
        let setup = plan.work.rocksdb().cloned().unwrap();
        let pairs = plan.servers.iter().zip(&opened);
        let settings: Vec<Vec<Setting>> = pairs
            .map(|(server, opened)| settings_of(&setup, server, opened))
            .collect();
        let kinds: Vec<String> = unfair(&plan, &opened, &settings)
            .into_iter()
            .map(|finding| finding.kind)
            .filter(|kind| OF_FILES.contains(&kind.as_str()))
            .collect();
        assert_eq!(kinds, OF_FILES);
    }

    #[test]
    fn a_warning_is_told_once_and_not_of_the_placebo() {
        let plan = rocksdb_plan(&["a", "a", "b"]);
        let opened = Opened {
            warnings: vec!["Assertions are enabled".to_owned()],
            ..Opened::default()
        };
        let told = warnings(&plan, &[opened.clone(), opened.clone(), opened]);
        let texts: Vec<&str> = told.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "base says of itself: Assertions are enabled",
                "b says of itself: Assertions are enabled"
            ]
        );
    }
}
