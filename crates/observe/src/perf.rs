//! Whether the processor's event counters can be used.

/// First layout of `perf_event_attr`, which every kernel takes. Source: perf_event_open(2),
/// `PERF_ATTR_SIZE_VER0`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// `exclude_kernel` and `exclude_hv`: what an ordinary user may count.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;

/// Tries to count cycles of this thread; `None` where that cannot be asked.
pub(crate) fn hardware_counters() -> Option<bool> {
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).ok()?,
        flags: USER_ONLY,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which live through the call; the descriptor
    // that it returns is closed here and used by nobody else.
    unsafe {
        let descriptor = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            libc::c_long::from(0),
            libc::c_long::from(-1),
            libc::c_long::from(-1),
            libc::c_ulong::default(),
        );
        let Ok(descriptor) = libc::c_int::try_from(descriptor) else {
            return Some(false);
        };
        if descriptor < 0 {
            return Some(false);
        }
        libc::close(descriptor);
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_the_first_layout() {
        assert_eq!(size_of::<Attributes>(), 64);
        assert!(hardware_counters().is_some());
    }
}
