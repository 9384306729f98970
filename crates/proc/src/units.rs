//! Units that the kernel counts in.

/// Length of one clock tick of user space, nanoseconds.
pub fn tick_ns() -> u64 {
    // SAFETY: plain query without pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    // Linux answers 100 on every architecture in use; a refusal cannot mean anything else.
    1_000_000_000
        / u64::try_from(ticks)
            .ok()
            .filter(|&ticks| ticks > 0)
            .unwrap_or(100)
}

/// Size of a page of memory.
///
/// Units: bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: plain query without pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes > 0)
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_milliseconds_and_pages_powers_of_two() {
        assert!((1_000_000..=10_000_000).contains(&tick_ns()));
        assert!(page_bytes().is_power_of_two());
    }
}
