//! Servers that may use only so much of the machine. Needs root, or cgroups that were given to us.

use crate::lab::{Lab, ask, cell, executables, installations, plan, value};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_kinds::run_half;
use deltabench_model::finding::Severity;
use deltabench_model::plan::{CacheState, Cell, DataState, Limits, Plan, ServerId, StorageProfile};
use deltabench_model::units::to_f64;
use deltabench_run::fleet::Fleet;
use deltabench_run::limits::check;
use deltabench_run::load::address_for;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use deltabench_testkit::not_tested;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

static GO_ON: AtomicBool = AtomicBool::new(false);

const MB: u64 = 1 << 20;

/// Limits of memory, and of a device that counts but holds nothing back.
fn limits(memory: u64, read_iops: u64) -> Limits {
    Limits {
        memory_bytes: Some(memory),
        storage: Some(StorageProfile {
            name: "counting".to_owned(),
            read_iops: Some(read_iops),
            write_iops: None,
            read_bytes: None,
            write_bytes: None,
            cost_per_month: None,
        }),
        or_without: false,
    }
}

/// Whether this machine lets us; says so where it does not. Where groups can be made by hand nothing is
/// refused.
fn allowed(limits: &Limits, lab: &Lab) -> bool {
    match check(limits, &lab.host.workspaces) {
        Ok(()) => true,
        Err(problem) => {
            assert!(problem.hint.is_some());
            assert!(!groups_can_be_made(lab), "{problem}");
            not_tested("limits of memory and storage", problem);
            false
        }
    }
}

/// Whether groups of version 1 with both limits can be made here, for data on a disk. (Those of version 2
/// have rules of their own, about who may have processes.)
fn groups_can_be_made(lab: &Lab) -> bool {
    let limits = [
        ("memory", "memory.limit_in_bytes"),
        ("blkio", "blkio.throttle.read_iops_device"),
    ];
    let data = std::fs::metadata(lab.host.workspaces.parent().unwrap()).unwrap();
    // The major number of a file system without a device is 0.
    let on_disk = (data.dev() >> 8) & 0xfff != 0;
    on_disk
        && limits.into_iter().all(|(controller, limit)| {
            let name = format!("deltabench-test-by-hand-{}", std::process::id());
            let group = Path::new("/sys/fs/cgroup").join(controller).join(name);
            let made = std::fs::create_dir(&group).is_ok();
            let limited = made && group.join(limit).exists();
            let _ = std::fs::remove_dir(&group);
            limited
        })
}

fn loaded<'a>(plan: &'a Plan, lab: &Lab, run: &str) -> Fleet<'a> {
    let mut fleet = lab.fleet(plan, run).unwrap();
    fleet
        .load(&executables(plan), &GO_ON, &mut |_| {})
        .unwrap()
        .unwrap();
    fleet
}

/// Open connections of a cell's clients.
fn connected(plan: &Plan, address: &Address, cell: &Cell) -> Lane {
    let address = address_for(address, plan.order, cell);
    Lane::connect(&LaneSpec {
        servers: &[(address.endpoint, address.login)],
        executable: &executables(plan)[0],
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_secs(60),
        rate: None,
    })
    .unwrap()
}

fn send(lane: &mut Lane, operations: u64, seed: u64) {
    let request = SliceRequest {
        operations,
        seed,
        first_operation: 0,
    };
    let outcome = lane.run_slice(0, request);
    assert_eq!((outcome.operations, outcome.void), (operations, None));
}

fn groups_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
}

#[test]
fn a_limited_server_reads_what_does_not_fit_and_its_groups_go_with_it() {
    let lab = Lab::on_disk();
    let limits = limits(80 * MB, 1_000_000);
    if !allowed(&limits, &lab) {
        return;
    }
    let read = cell("point-query", false, DataState::Fresh);
    let installation = &installations()[0];
    let mut plan = plan(&[installation], vec![read.clone()], 200_000);
    plan.limits = limits;
    let mut fleet = loaded(&plan, &lab, "limited");
    assert_eq!(fleet.shared_buffers_mb(), 16);
    let applied = fleet.applied_limits().remove(0);
    assert!(applied.groups.iter().all(|group| group.exists()));
    let memory = applied.memory.unwrap();
    assert_eq!((memory.limit_bytes, memory.beside_bytes), (80 * MB, 0));
    let schedule = BlockSchedule::of(&plan, 0);
    let address = fleet.start(&schedule).unwrap().remove(0);
    let mut lane = connected(&plan, &address, &read);
    let backend = value(&plan, &address, &read, "select pg_backend_pid()");
    let postmaster = address.own_pid().unwrap();
    assert_ne!(backend, postmaster.to_string());
    assert!(groups_of(postmaster).contains("deltabench-limited-c0"));
    let before = fleet.limit_reading(&schedule, ServerId(0)).unwrap();
    send(&mut lane, 5000, 1);
    let after = fleet.limit_reading(&schedule, ServerId(0)).unwrap();
    assert!(after.memory_bytes.unwrap() <= 80 * MB, "{after:?}");
    assert_eq!(after.killed.unwrap_or(0), 0, "{after:?}");
    let reads = after.reads.unwrap() - before.reads.unwrap();
    assert!(reads > 500, "{reads} reads for 5000 operations");
    fleet.stop().unwrap();
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
    assert!(applied.groups.iter().all(|group| !group.exists()));
}

#[test]
fn a_cold_server_starts_with_nothing_of_its_data_in_the_page_cache() {
    let lab = Lab::on_disk();
    let read = cell("point-query", false, DataState::Fresh);
    let installation = &installations()[0];
    let mut plan = plan(&[installation], vec![read.clone()], 20_000);
    plan.cache = CacheState::Cold;
    let mut fleet = loaded(&plan, &lab, "cold");
    let schedule = BlockSchedule::of(&plan, 0);
    let first = fleet.start(&schedule).unwrap().remove(0);
    ask(&plan, &first, &read, "SELECT sum(length(c)) FROM sbtest1");
    let warm = fleet.cached(&schedule, ServerId(0)).unwrap();
    let cold = fleet
        .prepare_caches(&schedule, ServerId(0), &read)
        .unwrap()
        .unwrap();
    assert_ne!(cold.own_pid(), first.own_pid());
    let started = fleet.cached(&schedule, ServerId(0)).unwrap();
    // What a start reads: catalogs, the latest segment of WAL, and read-ahead around them.
    assert!(
        started.resident_bytes < warm.resident_bytes,
        "{started:?} {warm:?}"
    );
    assert!(fleet.limit_findings().is_empty());
    fleet.stop().unwrap();
    fleet.dismantle().unwrap();
}

#[test]
fn what_a_machine_cannot_limit_is_refused_or_told() {
    let lab = Lab::on_disk();
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let read = cell("point-query", false, DataState::Fresh);
    let installation = &installations()[0];
    let mut plan = plan(&[installation], vec![read], 1000);
    plan.limits = Limits {
        memory_bytes: None,
        ..limits(0, 2000)
    };
    assert!(check(&plan.limits, in_memory.path()).is_err());
    let mut host = lab.host.clone();
    host.workspaces = in_memory.path().to_owned();
    std::fs::set_permissions(
        in_memory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let refused = Fleet::create(&plan, run_half(&plan.work), "refused", &host, &mut |_| {})
        .err()
        .unwrap();
    assert!(refused.error.contains("block device"), "{refused}");
    assert_eq!(std::fs::read_dir(in_memory.path()).unwrap().count(), 0);
    plan.limits.or_without = true;
    check(&plan.limits, in_memory.path()).unwrap();
    let fleet = Fleet::create(&plan, run_half(&plan.work), "without", &host, &mut |_| {}).unwrap();
    let finding = &fleet.limit_findings()[0];
    assert_eq!(
        (finding.kind.word(), finding.severity),
        ("limits-missing", Severity::Confounder)
    );
    assert!(finding.text.contains("storage counting") && finding.text.contains("tmpfs"));
    assert!(fleet.applied_limits().is_empty());
    fleet.dismantle().unwrap();
}

#[test]
fn shared_buffers_that_leave_no_room_are_refused_before_anything_is_made() {
    let lab = Lab::on_disk();
    let read = cell("point-query", false, DataState::Fresh);
    let installation = &installations()[0];
    let mut plan = plan(&[installation], vec![read], 1000);
    plan.limits.memory_bytes = Some(512 * MB);
    plan.settings = vec![("shared_buffers".to_owned(), "480MB".to_owned())];
    let refused = lab.fleet(&plan, "tight").err().unwrap();
    let hint = refused.hint.unwrap();
    assert!(
        hint.contains("--memory 544MB") && hint.contains("shared_buffers=448MB"),
        "{hint}"
    );
    assert!(!lab.host.workspaces.exists());
}

/// The figures of docs/guide/storage.md: run with `--ignored --nocapture`, about three minutes.
#[test]
#[ignore = "loads 1.5 GB and measures for a minute"]
fn a_table_of_three_times_the_memory_is_read_at_a_steady_rate_and_a_cap_holds() {
    let lab = Lab::on_disk();
    let limits = limits(512 * MB, 1_000_000);
    if !allowed(&limits, &lab) {
        return;
    }
    let read = cell("point-query", false, DataState::Fresh);
    let installation = &installations()[0];
    for (run, cap) in [("steady", 1_000_000), ("capped", 2000)] {
        let mut plan = plan(&[installation], vec![read.clone()], 2_700_000);
        plan.limits = limits.clone();
        plan.limits.storage.as_mut().unwrap().read_iops = Some(cap);
        let mut fleet = loaded(&plan, &lab, run);
        let schedule = BlockSchedule::of(&plan, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        let cached = fleet.cached(&schedule, ServerId(0)).unwrap();
        println!(
            "{run}: data {} MB, cached {} MB",
            cached.bytes / MB,
            cached.resident_bytes / MB
        );
        let mut lane = connected(&plan, &address, &read);
        let began = Instant::now();
        let mut seed = 0;
        while began.elapsed() < Duration::from_secs(15) {
            let (before, started, mut operations) = (
                fleet.limit_reading(&schedule, ServerId(0)).unwrap(),
                Instant::now(),
                0,
            );
            while started.elapsed() < Duration::from_secs(1) {
                seed += 1;
                send(&mut lane, 200, seed);
                operations += 200;
            }
            let after = fleet.limit_reading(&schedule, ServerId(0)).unwrap();
            let reads = after.reads.unwrap() - before.reads.unwrap();
            println!(
                "{:5.1} s: {operations} operations, {:.0} reads/s, {:.3} reads/operation, {} MB",
                began.elapsed().as_secs_f64(),
                to_f64(reads) / started.elapsed().as_secs_f64(),
                to_f64(reads) / to_f64(operations),
                after.memory_bytes.unwrap() / MB
            );
        }
        println!("{:?}", fleet.limit_reading(&schedule, ServerId(0)).unwrap());
        fleet.stop().unwrap();
        fleet.dismantle().unwrap();
    }
}
