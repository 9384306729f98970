//! perf_event_open(2).

use std::fs::File;
use std::os::fd::FromRawFd;

/// `perf_event_attr` up to what a sample of registers and stack needs. Kernels that know less of it (before
/// 3.7) take it as long as the rest is 0.
///
/// Source: perf_event_open(2), `PERF_ATTR_SIZE_VER3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) breakpoint_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clock: i32,
}

/// Bits of `flags`.
pub(crate) mod flag {
    /// Does nothing until it is told to.
    pub(crate) const DISABLED: u64 = 1;
    /// Not in the kernel.
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// Not in the hypervisor.
    pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// Not while the core has nothing to do.
    pub(crate) const EXCLUDE_IDLE: u64 = 1 << 7;
    /// Chains without their part in the kernel.
    pub(crate) const EXCLUDE_CHAIN_KERNEL: u64 = 1 << 21;
    /// Chains without their part in the program.
    pub(crate) const EXCLUDE_CHAIN_USER: u64 = 1 << 22;
    /// What an ordinary user may look at.
    pub(crate) const USER_ONLY: u64 = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
}

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 1 << 3;

/// Where an event happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The process, or 0 for the calling thread; absent: all of them, on one core.
    pub(crate) pid: Option<u32>,
    /// The core; absent: wherever the process runs.
    pub(crate) core: Option<usize>,
}

/// Opens an event.
pub(crate) fn open(attributes: &Attributes, place: Place) -> std::io::Result<File> {
    let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).map_err(invalid)?,
        ..*attributes
    };
    let pid = match place.pid {
        Some(pid) => libc::pid_t::try_from(pid).map_err(invalid)?,
        None => -1,
    };
    let core = match place.core {
        Some(core) => libc::c_int::try_from(core).map_err(invalid)?,
        None => -1,
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which live through the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            libc::c_long::from(pid),
            libc::c_long::from(core),
            libc::c_long::from(-1),
            CLOEXEC,
        )
    };
    match libc::c_int::try_from(descriptor) {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_their_layout() {
        assert_eq!(size_of::<Attributes>(), 96);
        assert_eq!(std::mem::offset_of!(Attributes, sample_regs_user), 80);
    }
}
