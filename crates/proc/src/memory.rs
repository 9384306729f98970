//! Main memory of the host.

use crate::cgroup;
use crate::file::number;
use std::fs;
use std::path::Path;

/// Bytes of page cache in a text of `/proc/meminfo`.
///
/// Source: proc_meminfo(5). `Cached` holds shared memory, and with it the servers' shared buffers, which are
/// no page cache.
pub fn page_cache_bytes(meminfo: &str) -> Option<u64> {
    let of = |name: &str| number(meminfo, name);
    Some((of("Cached")? + of("Buffers")?).saturating_sub(of("Shmem")?))
}

/// Huge pages that nobody has and nobody was promised, in a text of `/proc/meminfo`.
pub fn free_huge_pages(meminfo: &str) -> u64 {
    let count = |name: &str| number(meminfo, name).unwrap_or(0);
    count("HugePages_Free").saturating_sub(count("HugePages_Rsvd"))
}

/// Memory that programs can still have, in bytes, counting the limit of our control group; `None` where the
/// host does not tell.
pub fn memory_available() -> Option<u64> {
    available_below(Path::new("/"))
}

pub(crate) fn available_below(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let machine = number(&meminfo, "MemAvailable")?;
    Some(cgroup::memory_limit(root).map_or(machine, |limit| limit.min(machine)))
}

/// Pages that went to swap or came from it since the start of the machine. Source: proc_vmstat(5).
pub fn swapped_pages() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    Some(number(&text, "pswpin")? + number(&text, "pswpout")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_buffers_are_no_page_cache() {
        let text = "Buffers: 1024 kB\nCached: 4096 kB\nSwapCached: 77 kB\nShmem: 3072 kB\n";
        assert_eq!(page_cache_bytes(text), Some(2048 << 10));
        assert_eq!(page_cache_bytes("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn promised_huge_pages_are_not_free() {
        assert_eq!(free_huge_pages("HugePages_Free: 9\nHugePages_Rsvd: 2\n"), 7);
        assert_eq!(free_huge_pages("MemTotal: 9 kB\n"), 0);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_holds_if_it_is_below_what_is_available() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/meminfo", "MemAvailable: 1024 kB\n");
        assert_eq!(available_below(root.path()), Some(1 << 20));
        put(
            "proc/self/mounts",
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        );
        put("proc/self/cgroup", "0::/a/b\n");
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(available_below(root.path()), Some(1 << 20));
        put("sys/fs/cgroup/a/memory.max", "524288\n");
        assert_eq!(available_below(root.path()), Some(1 << 19));
        put("sys/fs/cgroup/a/memory.max", "5242880000\n");
        assert_eq!(available_below(root.path()), Some(1 << 20));
    }
}
