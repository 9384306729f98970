//! The files of one limited group: written, read back, read.

use super::device::BlockDevice;
use super::{AppliedMemory, AppliedStorage, LimitReading, refused};
use deltabench_model::plan::StorageProfile;
use deltabench_model::problem::Problem;
use deltabench_proc::cgroup::{CgroupKind, device_value_v1, device_value_v2};
use deltabench_proc::{number, number_in};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The kernel counts in pages.
const PAGE: u64 = 4096;

/// A kernel file is written whole, in one call, and never made.
pub(super) fn put(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

fn write(path: &Path, text: &str) -> Result<(), Problem> {
    put(path, text).map_err(|error| refused("write", path, &error))
}

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Limits memory, and with it closes swap where that is counted.
///
/// Source: cgroup-v1/memory.rst sections 3 and 8; cgroup-v2.rst, "Memory Interface Files".
pub(super) fn set_memory(
    kind: CgroupKind,
    group: &Path,
    asked: u64,
    beside: u64,
) -> Result<AppliedMemory, Problem> {
    let bytes = asked.saturating_sub(beside);
    let (limit, swap) = match kind {
        CgroupKind::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
        CgroupKind::V2 => ("memory.max", "memory.swap.max"),
    };
    let (limit, swap) = (group.join(limit), group.join(swap));
    let swap_closed = swap.exists().then(|| match kind {
        CgroupKind::V1 => {
            // Memory and swap together may never be less than memory alone, so first out of the way.
            let _ = put(&swap, "-1");
            write(&limit, &bytes.to_string())?;
            write(&swap, &bytes.to_string())
        }
        CgroupKind::V2 => write(&swap, "0"),
    });
    let swap_closed = swap_closed.transpose()?.map(|()| true);
    write(&limit, &bytes.to_string())?;
    let held = number_in(&limit).unwrap_or(u64::MAX);
    if held.abs_diff(bytes) >= PAGE {
        return Err(Problem::new("the kernel did not accept the memory limit")
            .detail(format!("{} says {held}, not {bytes}", limit.display())));
    }
    Ok(AppliedMemory {
        interface: kind,
        asked_bytes: asked,
        beside_bytes: beside,
        limit_bytes: held,
        swap_closed,
    })
}

/// The four limits of a profile, with their files in version 1 and their keys in version 2.
fn table(profile: &StorageProfile) -> [(&'static str, &'static str, Option<u64>); 4] {
    [
        (
            "blkio.throttle.read_iops_device",
            "riops",
            profile.read_iops,
        ),
        (
            "blkio.throttle.write_iops_device",
            "wiops",
            profile.write_iops,
        ),
        ("blkio.throttle.read_bps_device", "rbps", profile.read_bytes),
        (
            "blkio.throttle.write_bps_device",
            "wbps",
            profile.write_bytes,
        ),
    ]
}

/// Sets all four limits of a device; an absent one is taken away.
///
/// Source: cgroup-v1/blkio-controller.rst, "Throttling/Upper limit policy files"; cgroup-v2.rst, `io.max`.
pub(super) fn set_storage(
    kind: CgroupKind,
    group: &Path,
    device: &BlockDevice,
    profile: &StorageProfile,
) -> Result<(), Problem> {
    match kind {
        CgroupKind::V1 => {
            for (file, _, value) in table(profile) {
                let line = format!("{} {}", device.number, value.unwrap_or(0));
                write(&group.join(file), &line)?;
            }
            Ok(())
        }
        CgroupKind::V2 => {
            let words: Vec<String> = table(profile)
                .iter()
                .map(|(_, key, value)| {
                    let value = value.map_or("max".to_owned(), |value| value.to_string());
                    format!("{key}={value}")
                })
                .collect();
            let line = format!("{} {}", device.number, words.join(" "));
            write(&group.join("io.max"), &line)
        }
    }
}

/// What the kernel holds for a device.
pub(super) fn read_storage(
    kind: CgroupKind,
    group: &Path,
    device: &BlockDevice,
    profile: &str,
    written_back_counts: bool,
) -> Result<AppliedStorage, Problem> {
    let value = |file: &str, key: &str| -> Option<u64> {
        match kind {
            // The kernel lists no device without a limit.
            CgroupKind::V1 => device_value_v1(&text(&group.join(file))?, &device.number, None)
                .filter(|value| *value > 0),
            CgroupKind::V2 => device_value_v2(&text(&group.join("io.max"))?, &device.number, key),
        }
    };
    let [read_iops, write_iops, read_bytes, write_bytes] = table(&StorageProfile {
        name: String::new(),
        read_iops: None,
        write_iops: None,
        read_bytes: None,
        write_bytes: None,
        cost_per_month: None,
    })
    .map(|(file, key, _)| value(file, key));
    Ok(AppliedStorage {
        interface: kind,
        profile: profile.to_owned(),
        device: device.number.clone(),
        device_name: device.name.clone(),
        read_iops,
        write_iops,
        read_bytes,
        write_bytes,
        written_back_counts,
    })
}

/// Refuses a kernel that holds other limits than it was told.
pub(super) fn check_storage(
    asked: &StorageProfile,
    applied: &AppliedStorage,
) -> Result<(), Problem> {
    let held = [
        applied.read_iops,
        applied.write_iops,
        applied.read_bytes,
        applied.write_bytes,
    ];
    for ((_, key, wanted), held) in table(asked).into_iter().zip(held) {
        if wanted != held {
            let word = |value: Option<u64>| value.map_or("no limit".to_owned(), |v| v.to_string());
            return Err(
                Problem::new("the kernel did not accept a limit of the device").detail(format!(
                    "{key} of {} ({}) is {}, not {}",
                    applied.device_name,
                    applied.device,
                    word(held),
                    word(wanted)
                )),
            );
        }
    }
    Ok(())
}

pub(super) fn read_memory(kind: CgroupKind, group: &Path, reading: &mut LimitReading) {
    let (usage, stat, cache, events, hits) = match kind {
        CgroupKind::V1 => (
            "memory.usage_in_bytes",
            "memory.stat",
            "cache",
            "memory.oom_control",
            None,
        ),
        CgroupKind::V2 => (
            "memory.current",
            "memory.stat",
            "file",
            "memory.events",
            Some("max"),
        ),
    };
    let stat = text(&group.join(stat)).unwrap_or_default();
    let events = text(&group.join(events)).unwrap_or_default();
    reading.memory_bytes = number_in(&group.join(usage));
    reading.page_cache_bytes = number(&stat, cache);
    reading.killed = number(&events, "oom_kill");
    reading.limit_hits = match hits {
        Some(key) => number(&events, key),
        None => number_in(&group.join("memory.failcnt")),
    };
}

pub(super) fn read_traffic(
    kind: CgroupKind,
    group: &Path,
    device: &BlockDevice,
    reading: &mut LimitReading,
) {
    match kind {
        CgroupKind::V1 => {
            let of = |file: &str, operation| {
                let text = text(&group.join(file))?;
                // A group that has done nothing yet lists no device.
                Some(device_value_v1(&text, &device.number, Some(operation)).unwrap_or(0))
            };
            reading.reads = of("blkio.throttle.io_serviced", "Read");
            reading.writes = of("blkio.throttle.io_serviced", "Write");
            reading.read_bytes = of("blkio.throttle.io_service_bytes", "Read");
            reading.write_bytes = of("blkio.throttle.io_service_bytes", "Write");
        }
        CgroupKind::V2 => {
            let Some(text) = text(&group.join("io.stat")) else {
                return;
            };
            let of = |key| Some(device_value_v2(&text, &device.number, key).unwrap_or(0));
            reading.reads = of("rios");
            reading.writes = of("wios");
            reading.read_bytes = of("rbytes");
            reading.write_bytes = of("wbytes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_holds_another_limit_is_found_out() {
        let asked = StorageProfile {
            name: "p".to_owned(),
            read_iops: Some(3000),
            write_iops: None,
            read_bytes: None,
            write_bytes: None,
            cost_per_month: None,
        };
        let applied = AppliedStorage {
            interface: CgroupKind::V1,
            profile: "p".to_owned(),
            device: "254:0".to_owned(),
            device_name: "vda".to_owned(),
            read_iops: Some(3000),
            write_iops: None,
            read_bytes: None,
            write_bytes: None,
            written_back_counts: false,
        };
        assert!(check_storage(&asked, &applied).is_ok());
        let other = AppliedStorage {
            read_iops: None,
            ..applied
        };
        let problem = check_storage(&asked, &other).unwrap_err();
        assert!(
            problem
                .detail
                .unwrap()
                .contains("riops of vda (254:0) is no limit, not 3000")
        );
    }
}
