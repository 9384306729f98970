//! Where data directories will be.

use super::Check;
use super::room::gibibytes;
use crate::disk::{DiskFacts, Fsync};
use deltabench_model::finding::{FindingKind, Severity};
use deltabench_model::units::to_f64;

/// Data directories of three servers with small tables, their templates and WAL.
const SPACE_LEAST: u64 = 1 << 30;
/// The same with a million rows and aged tables.
const SPACE_COMFORTABLE: u64 = 5 << 30;

/// A commit that takes longer than this leaves nothing else of a write workload to be seen, nanoseconds.
const FSYNC_SLOW_NS: u64 = 20_000_000;
/// No storage that keeps data over a power failure answers faster, nanoseconds.
const FSYNC_NOTHING_NS: u64 = 5_000;
/// 99th percentile over median that is worth telling.
const FSYNC_SPREAD: f64 = 10.0;

/// File systems whose other end is elsewhere, by the beginning of their names.
const REMOTE: [&str; 8] = [
    "nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph", "lustre",
];
/// File systems that write every change to a new place.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

pub(super) fn checks(facts: &DiskFacts) -> Vec<Check> {
    vec![file_system(facts), space(facts), fsync(facts)]
}

fn file_system(facts: &DiskFacts) -> Check {
    const KIND: FindingKind = FindingKind::FileSystem;
    const TITLE: &str = "file system";
    const FIX: &str = "name a directory on a local disk with ext4 or xfs: --cluster-dir";
    let Some(name) = facts.file_system.as_deref() else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(
        KIND,
        TITLE,
        format!("{name} at {}", facts.directory.display()),
    );
    if REMOTE.iter().any(|remote| name.starts_with(remote)) {
        check.found(
            Severity::Confounder,
            "reads and commits of every server wait for another machine or process",
            FIX,
        )
    } else if COPY_ON_WRITE.contains(&name) {
        check.found(
            Severity::Note,
            "the file system writes changed data to new places, so the files of a server scatter \
             during a run",
            FIX,
        )
    } else if matches!(name, "tmpfs" | "ramfs") {
        check.found(
            Severity::Note,
            "data directories are in memory: writes are measured without a disk, and take memory from the \
             servers",
            FIX,
        )
    } else {
        check
    }
}

fn space(facts: &DiskFacts) -> Check {
    const KIND: FindingKind = FindingKind::DiskSpace;
    const TITLE: &str = "disk space";
    let Some(free) = facts.free_bytes else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(KIND, TITLE, format!("{} free", gibibytes(free)));
    let severity = match free {
        _ if free < SPACE_LEAST => Severity::Unfit,
        _ if free < SPACE_COMFORTABLE => Severity::Note,
        _ => return check,
    };
    check.found(
        severity,
        "every server has its own data directory, and a copy to restore it from",
        "free space, or name another directory with --cluster-dir",
    )
}

fn fsync(facts: &DiskFacts) -> Check {
    const KIND: FindingKind = FindingKind::Fsync;
    const TITLE: &str = "fsync";
    let Some(Fsync {
        count,
        median_ns,
        p99_ns,
    }) = facts.fsync
    else {
        return Check::unknown(KIND, TITLE);
    };
    let milliseconds = |ns| to_f64(ns) / 1e6;
    let check = Check::fine(
        KIND,
        TITLE,
        format!(
            "median {:.2} ms, 99 % within {:.2} ms, of {count}",
            milliseconds(median_ns),
            milliseconds(p99_ns)
        ),
    );
    if median_ns < FSYNC_NOTHING_NS {
        check.found(
            Severity::Note,
            "it does nothing here, so commits cost less than on any disk that keeps data",
            "compare writes on storage like that of production: --cluster-dir",
        )
    } else if median_ns > FSYNC_SLOW_NS {
        check.found(
            Severity::Note,
            "commits take so long that write workloads measure mostly the disk",
            "name a directory on a faster disk with --cluster-dir",
        )
    } else if to_f64(p99_ns) > FSYNC_SPREAD * to_f64(median_ns) {
        check.found(
            Severity::Note,
            "some commits take many times as long, which widens the intervals of write workloads",
            "stop other writers, or name a directory on another disk with --cluster-dir",
        )
    } else {
        check
    }
}
