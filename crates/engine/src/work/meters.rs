//! What the process says of itself: CPU, waiting for cores, bytes, memory.

use deltabench_proc::{Process, threads};

/// CPU of all threads of this process so far, nanoseconds.
pub fn process_cpu() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place for the time is ours; every Linux has this clock for one's own process.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// CPU of this process so far outside the kernel and inside, nanoseconds.
pub fn user_and_system_cpu() -> (u64, u64) {
    // SAFETY: all fields are plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the place for the answer is ours.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    let whole = |time: libc::timeval| part(time.tv_sec) * 1_000_000_000 + part(time.tv_usec) * 1000;
    (whole(usage.ru_utime), whole(usage.ru_stime))
}

/// Time that the threads which live now have waited for a core, nanoseconds; absent where the kernel keeps
/// none.
pub fn run_queue_wait() -> Option<u64> {
    let own = std::process::id();
    // A thread may have ended since they were listed.
    let told = threads(own).ok()?.into_iter();
    let waits = told.filter_map(|thread| Process::thread(own, thread).schedstat());
    waits
        .map(|stat| stat.wait_ns)
        .reduce(|sum, wait| sum + wait)
}

/// Bytes that the process wrote, to files or past the page cache, and bytes that came from devices for it.
pub fn written_and_read() -> Option<(u64, u64)> {
    let io = Process::of(std::process::id()).io()?;
    Some((io.written_chars, io.read_bytes))
}

/// Forgets how much memory it had; whether the kernel lets it.
///
/// Source: proc_pid_clear_refs(5), since Linux 4.0.
pub fn forget_largest_rss() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The most memory that it had at once since that was last forgotten, bytes.
pub fn largest_rss() -> Option<u64> {
    Process::of(std::process::id()).largest_resident_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_the_process_grows_with_its_work() {
        let (before, parts) = (process_cpu(), user_and_system_cpu());
        let mut sum = 0_u64;
        while process_cpu() < before + 30_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = user_and_system_cpu();
        assert!(
            after.0 + after.1 >= parts.0 + parts.1 + 20_000_000,
            "{parts:?} {after:?}"
        );
    }

    #[test]
    fn memory_that_was_given_back_before_is_not_the_most_of_a_step() {
        let large = std::hint::black_box(vec![1_u8; 64 << 20]);
        let most = largest_rss().unwrap();
        assert!(most > 64 << 20);
        drop(large);
        assert!(forget_largest_rss());
        let now = largest_rss().unwrap();
        assert!(now < most - (32 << 20), "{now} {most}");
    }
}
