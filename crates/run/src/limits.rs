//! Memory and device limits of a run's servers, and what the caches hold when a visit starts.
//!
//! Each data directory has control groups of its own for the whole run; whoever plays a server with it
//! starts in them. Loading and copying happen outside, and their pages are dropped from the page cache
//! before a limited server starts: a page counts for whoever brought it in first.

use crate::host::Host;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CacheState, Limits, Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::{
    AppliedLimits, CachedFiles, CgroupKind, DroppedPages, LimitPlan, LimitReading, ObserveError,
    ServerLimits, cached_files, drop_pages, try_limits,
};
use deltabench_server::{Workspace, is_off, megabytes};
use std::path::Path;

/// What a limited server needs beside its shared buffers: processes, WAL buffers, catalogs, some page cache.
const BESIDE_BUFFERS: u64 = 64 << 20;

/// Share of a memory limit that goes to shared buffers unless told otherwise.
///
/// Source: PostgreSQL manual, "Resource Consumption": 25 % of memory is a reasonable starting value.
const BUFFERS_SHARE: f64 = 0.25;

/// Share of a data directory that may stay in the page cache when it is dropped.
const LEFT_SHARE: f64 = 0.01;

/// Makes sure that servers with data in `directory`, which need not exist yet, can be limited so.
///
/// Groups are made, set, read back and removed; nothing else is touched. With [`Limits::or_without`] nothing
/// is refused.
///
/// Errors: what this host does not allow, and how it would.
pub fn check(limits: &Limits, directory: &Path) -> Result<(), Problem> {
    if limits.or_without || *limits == Limits::default() {
        return Ok(());
    }
    try_limits(limits, directory).map(drop)
}

/// Shared buffers that settings ask for, MB; the last one wins.
pub(crate) fn shared_buffers_asked(settings: &[(String, String)]) -> Option<u64> {
    settings
        .iter()
        .rev()
        .find(|(name, _)| name == "shared_buffers")
        .and_then(|(_, value)| megabytes(value))
}

/// Whether a server of ours asks for huge pages where there are some.
pub(crate) fn takes_huge_pages(plan: &Plan, server: &PlannedServer) -> bool {
    let mut settings = plan.settings.iter().chain(&server.settings);
    let asked = settings.rfind(|(name, _)| name.eq_ignore_ascii_case("huge_pages"));
    let declined = asked.is_some_and(|(_, value)| is_off(value));
    server.installation.remote.is_none() && !declined
}

/// Refuses servers of which some take huge pages and some do not, under a memory limit.
fn check_huge_pages(plan: &Plan) -> Result<(), Problem> {
    let servers = plan.servers.iter();
    let mut take = servers.map(|server| takes_huge_pages(plan, server));
    let first = take.next();
    if take.all(|other| Some(other) == first) {
        return Ok(());
    }
    Err(
        Problem::new("huge_pages of the servers cannot differ under a memory limit")
            .detail(
                "the limit becomes smaller by buffers in huge pages, and those in small pages count in it: \
                 one server would have less memory than another",
            )
            .hint("give all servers the same value with --set huge_pages=..., or leave --memory out"),
    )
}

/// Shared buffers under a memory limit, MB.
///
/// Errors: those that were asked for leave the server no room to work.
pub(crate) fn shared_buffers_mb(plan: &Plan, fitting: u64) -> Result<u64, Problem> {
    let asked = shared_buffers_asked(&plan.settings);
    let Some(memory) = plan.limits.memory_bytes else {
        return Ok(asked.unwrap_or(fitting));
    };
    // Groups belong to data directories, which servers exchange: what they leave for buffers is one figure.
    let mut each = plan
        .servers
        .iter()
        .map(|server| shared_buffers_asked(&server.settings).or(asked));
    let asked = each.next().flatten();
    if each.any(|other| other != asked) {
        return Err(Problem::new(
            "shared_buffers of the servers cannot differ under a memory limit",
        )
        .detail("the limit includes shared buffers, and is the same for every server")
        .hint(
            "give all servers the same value with --set shared_buffers=..., or leave --memory out",
        ));
    }
    check_huge_pages(plan)?;
    let share = to_u64(to_f64(memory) * BUFFERS_SHARE).min(memory.saturating_sub(BESIDE_BUFFERS));
    // No more than the data takes.
    let buffers = asked.unwrap_or((share >> 20).clamp(1, fitting));
    if (buffers << 20) + BESIDE_BUFFERS <= memory {
        return Ok(buffers);
    }
    Err(
        Problem::new("the memory limit is too small for the shared buffers")
            .detail(format!(
                "--memory is {} MB, shared_buffers is {buffers} MB, and a server needs {} MB more",
                memory >> 20,
                BESIDE_BUFFERS >> 20
            ))
            .hint(format!(
                "use --memory {}MB or more, or smaller buffers: --set shared_buffers={}MB",
                buffers + (BESIDE_BUFFERS >> 20),
                (memory.saturating_sub(BESIDE_BUFFERS) >> 20).max(1)
            )),
    )
}

/// The limits of a run's servers, by data directory.
pub struct FleetLimits {
    groups: Vec<ServerLimits>,
    findings: Vec<Finding>,
    /// Whether pages of the data directory may be in the cache that count for somebody else.
    strange: Vec<bool>,
    cache: CacheState,
    memory: bool,
}

/// What a run's limits come to on this host, before anything is made.
pub struct Possible {
    plan: Option<LimitPlan>,
    findings: Vec<Finding>,
}

impl Possible {
    /// What this host allows of the plan's limits.
    ///
    /// Errors: something that it does not allow, unless the plan goes without.
    pub fn find(plan: &Plan, host: &Host) -> Result<Self, Problem> {
        let limits = &plan.limits;
        let mut findings = Vec::new();
        let mut allowed = Limits::default();
        let parts = [
            limits.memory_bytes.map(|bytes| Limits {
                memory_bytes: Some(bytes),
                ..Limits::default()
            }),
            limits.storage.clone().map(|storage| Limits {
                storage: Some(storage),
                ..Limits::default()
            }),
        ];
        // Both together where both can be had: a group is divided for all controllers at once.
        let parts = match try_limits(limits, &host.workspaces) {
            Ok(_) => {
                allowed = limits.clone();
                [None, None]
            }
            Err(_) => parts,
        };
        for part in parts.into_iter().flatten() {
            match try_limits(&part, &host.workspaces) {
                Ok(_) => {
                    allowed.memory_bytes = allowed.memory_bytes.or(part.memory_bytes);
                    allowed.storage = allowed.storage.or(part.storage);
                }
                Err(problem) if limits.or_without => findings.push(missing(&part, &problem)),
                Err(problem) => return Err(problem),
            }
        }
        let nothing = allowed == Limits::default();
        let plan = (!nothing)
            .then(|| LimitPlan::find(&allowed, &host.workspaces))
            .transpose()?;
        Ok(Self { plan, findings })
    }

    /// Makes the groups of all servers.
    ///
    /// Shape:  `huge_bytes` of each server's shared memory will be in huge pages.
    /// Errors: the kernel refuses.
    pub fn create(
        self,
        plan: &Plan,
        run: &str,
        huge_bytes: u64,
        workspace: &Workspace,
    ) -> Result<FleetLimits, Problem> {
        let servers = plan.servers.len();
        let mut groups = Vec::new();
        if let Some(found) = &self.plan {
            let names: Vec<String> = (0..servers)
                .map(|place| format!("{run}-c{place}"))
                .collect();
            let all: Vec<_> = names
                .iter()
                .flat_map(|name| found.directories(name))
                .collect();
            workspace.note_cgroups(&all)?;
            for name in &names {
                groups.push(found.create(name, huge_bytes)?);
            }
        }
        let mut findings = self.findings;
        if let Some(first) = groups.first() {
            findings.extend(partial(first.applied()));
        }
        Ok(FleetLimits {
            memory: groups.iter().any(|group| group.applied().memory.is_some()),
            groups,
            findings,
            strange: vec![true; servers],
            cache: plan.cache,
        })
    }
}

/// The finding of a limit that was asked for and cannot be had.
fn missing(part: &Limits, problem: &Problem) -> Finding {
    let what = match (&part.memory_bytes, &part.storage) {
        (Some(bytes), _) => format!("memory of {} MB", bytes >> 20),
        (None, Some(profile)) => format!("storage {}", profile.name),
        (None, None) => "nothing".to_owned(),
    };
    let detail = problem.detail.as_deref().unwrap_or_default();
    Finding::new(
        FindingKind::LimitsMissing,
        Severity::Confounder,
        format!(
            "servers ran without the requested limit ({what}): {}; {detail}",
            problem.error
        ),
    )
}

/// What the limits that were set do not limit.
fn partial(applied: &AppliedLimits) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(memory) = applied
        .memory
        .as_ref()
        .filter(|memory| memory.beside_bytes > 0)
    {
        findings.push(Finding::new(
            FindingKind::MemoryBesideHugePages,
            Severity::Note,
            format!(
                "{} of the {} MB of each server are shared memory in huge pages, which the kernel does not \
                 count; it limits the rest, page cache included, to {} MB",
                memory.beside_bytes >> 20,
                memory.asked_bytes >> 20,
                memory.limit_bytes >> 20
            ),
        ));
    }
    if let Some(storage) = &applied.storage
        && (storage.write_iops.is_some() || storage.write_bytes.is_some())
        && !storage.written_back_counts
    {
        let why = match storage.interface {
            CgroupKind::V1 => "control groups of version 1 do not count",
            CgroupKind::V2 => "without memory control the kernel does not count",
        };
        findings.push(Finding::new(
            FindingKind::WriteLimitsPartial,
            Severity::Note,
            format!(
                "the write limits of {} apply to what a server syncs itself (WAL, checkpoints); {why} \
                 pages that the kernel writes back for it",
                storage.profile
            ),
        ));
    }
    findings
}

impl FleetLimits {
    /// What is set for the server in each data directory; empty without limits.
    pub fn applied(&self) -> Vec<AppliedLimits> {
        let applied = self.groups.iter().map(ServerLimits::applied);
        applied.cloned().collect()
    }

    /// What is to be known about them so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Those of the server in a place; none without limits.
    pub fn of(&self, place: usize) -> Option<&ServerLimits> {
        self.groups.get(place)
    }

    /// What the groups of a place have counted so far.
    pub fn read(&self, place: usize) -> Option<LimitReading> {
        self.of(place).map(ServerLimits::read)
    }

    /// Removes all groups; the servers must have ended.
    ///
    /// Errors: the first that cannot be removed; all others are.
    pub fn remove(self) -> Result<(), Problem> {
        let removed: Vec<Result<(), Problem>> =
            self.groups.into_iter().map(ServerLimits::remove).collect();
        removed.into_iter().collect()
    }

    /// Does work that is not measured without the device's limits of `place`.
    pub(crate) fn unhindered<T>(
        &self,
        place: usize,
        work: impl FnOnce() -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let Some(limits) = self.of(place) else {
            return work();
        };
        limits.lift_storage()?;
        let done = work();
        limits.restore_storage()?;
        done
    }

    /// Adds to a server's problem that the kernel killed some of its processes for its limit, if it did.
    pub(crate) fn explain(&self, place: usize, problem: Problem) -> Problem {
        let killed = self.read(place).and_then(|reading| reading.killed);
        match killed.filter(|killed| *killed > 0) {
            Some(killed) => {
                let known = problem.detail.clone().map(|known| format!("{known}\n"));
                problem
                    .detail(format!(
                        "{}the kernel killed {killed} of its processes since the run began because they \
                         needed more than the memory limit",
                        known.unwrap_or_default()
                    ))
                    .hint("use more --memory, or smaller buffers: --set shared_buffers=...")
            }
            None => problem,
        }
    }

    /// Notes that the pages of a data directory have been brought in by somebody else.
    pub(crate) fn mark_strange(&mut self, place: usize) {
        if let Some(strange) = self.strange.get_mut(place) {
            *strange = true;
        }
    }

    /// Drops the pages of a stopped server's data directory where the server would profit from them: it is
    /// to start cold, or its memory is limited and they do not count for it.
    ///
    /// Errors: a file that cannot be written back or looked into.
    pub(crate) fn before_start(
        &mut self,
        place: usize,
        data: &Path,
    ) -> Result<Option<DroppedPages>, Problem> {
        let strange = self.strange.get(place).copied().unwrap_or(false);
        if !(self.cache == CacheState::Cold || (self.memory && strange)) {
            return Ok(None);
        }
        let dropped = drop_pages(data).map_err(told)?;
        if let Some(strange) = self.strange.get_mut(place) {
            *strange = false;
        }
        if to_f64(dropped.resident_after) > to_f64(dropped.bytes) * LEFT_SHARE
            && !self
                .findings
                .iter()
                .any(|f| f.kind == FindingKind::PageCacheKept)
        {
            self.findings.push(Finding::new(
                FindingKind::PageCacheKept,
                Severity::Confounder,
                format!(
                    "{} of {} MB of a server's data stayed in the page cache, and deltabench could \
                     not drop them: something else may have these files open or locked",
                    dropped.resident_after >> 20,
                    dropped.bytes >> 20
                ),
            ));
        }
        Ok(Some(dropped))
    }
}

/// How much of a data directory the page cache holds.
pub(crate) fn cached(data: &Path) -> Result<CachedFiles, Problem> {
    cached_files(data).map_err(told)
}

fn told(error: ObserveError) -> Problem {
    let why = std::error::Error::source(&error).map(ToString::to_string);
    Problem::new(error.to_string()).detail(why.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_observe::{AppliedMemory, AppliedStorage};

    const MB: u64 = 1 << 20;

    fn buffers(memory: Option<u64>, asked: &[&str]) -> Result<u64, Problem> {
        let mut plan = plan_of(&["a"], 1);
        plan.limits.memory_bytes = memory;
        let setting = |value: &&str| ("shared_buffers".to_owned(), (*value).to_owned());
        plan.settings = asked.iter().map(setting).collect();
        shared_buffers_mb(&plan, 1280)
    }

    #[test]
    fn a_quarter_of_limited_memory_goes_to_shared_buffers_unless_told_otherwise() {
        assert_eq!(buffers(None, &[]).unwrap(), 1280);
        assert_eq!(buffers(Some(512 * MB), &[]).unwrap(), 128);
        assert_eq!(buffers(Some(80 * MB), &[]).unwrap(), 16);
        assert_eq!(
            buffers(Some(64 << 30), &[]).unwrap(),
            1280,
            "no more than the data takes"
        );
        assert_eq!(buffers(Some(512 * MB), &["1GB", "448MB"]).unwrap(), 448);
        let tight = buffers(Some(512 * MB), &["449MB"]).unwrap_err();
        assert!(
            tight
                .hint
                .unwrap()
                .starts_with("use --memory 513MB or more")
        );
    }

    #[test]
    fn under_a_memory_limit_servers_have_buffers_of_one_kind() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.limits.memory_bytes = Some(512 * MB);
        let off = vec![("Huge_Pages".to_owned(), "0".to_owned())];
        plan.servers[2].settings.clone_from(&off);
        let refused = shared_buffers_mb(&plan, 1280).unwrap_err();
        assert!(refused.error.contains("huge_pages"), "{refused}");
        plan.limits.memory_bytes = None;
        shared_buffers_mb(&plan, 1280).unwrap();
        plan.limits.memory_bytes = Some(512 * MB);
        plan.settings = off;
        shared_buffers_mb(&plan, 1280).unwrap();
    }

    fn storage(interface: CgroupKind, written_back_counts: bool) -> AppliedLimits {
        AppliedLimits {
            storage: Some(AppliedStorage {
                interface,
                profile: "gp3-3000".to_owned(),
                device: "254:0".to_owned(),
                device_name: "vda".to_owned(),
                read_iops: Some(3000),
                write_iops: Some(3000),
                read_bytes: None,
                write_bytes: None,
                written_back_counts,
            }),
            ..AppliedLimits::default()
        }
    }

    #[test]
    fn what_the_limits_do_not_limit_is_told() {
        let kinds = |applied: &AppliedLimits| -> Vec<String> {
            partial(applied)
                .iter()
                .map(|f| f.kind.to_string())
                .collect()
        };
        assert_eq!(
            kinds(&storage(CgroupKind::V1, false)),
            ["write-limits-partial"]
        );
        assert!(kinds(&storage(CgroupKind::V2, true)).is_empty());
        let mut reads = storage(CgroupKind::V1, false);
        reads.storage.as_mut().unwrap().write_iops = None;
        assert!(kinds(&reads).is_empty());
        let beside = AppliedLimits {
            memory: Some(AppliedMemory {
                interface: CgroupKind::V1,
                asked_bytes: 512 * MB,
                beside_bytes: 128 * MB,
                limit_bytes: 384 * MB,
                swap_closed: Some(true),
            }),
            ..AppliedLimits::default()
        };
        let [finding] = partial(&beside).try_into().unwrap();
        assert!(finding.text.contains("128 of the 512 MB") && finding.text.contains("to 384 MB"));
    }

    #[test]
    fn a_limit_that_cannot_be_had_names_itself_and_the_reason() {
        let part = Limits {
            memory_bytes: Some(512 * MB),
            ..Limits::default()
        };
        let problem = Problem::new("no").detail("because");
        let finding = missing(&part, &problem);
        assert_eq!(finding.severity, Severity::Confounder);
        assert!(
            finding.text.ends_with("(memory of 512 MB): no; because"),
            "{}",
            finding.text
        );
    }
}
