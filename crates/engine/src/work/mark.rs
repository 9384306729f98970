//! Marks of a counter: where a turn begins and ends for valgrind's callgrind, if the worker runs under it.
//!
//! A mark is a request to the counter: a few instructions that do nothing on a processor and that valgrind
//! takes for a call. No library of it and no symbol of ours is needed, so a stripped program has marks too,
//! and it is the thread that works that makes them.
//!
//! Source: `valgrind.h` (VALGRIND_DO_CLIENT_REQUEST_EXPR) and `callgrind.h` of Valgrind 3.19.

/// The first of callgrind's requests: `VG_USERREQ_TOOL_BASE('C', 'T')`.
const OF_CALLGRIND: u64 = (0x43 << 24) | (0x54 << 16);
/// Write what was counted since the last time, and begin again.
const DUMP: u64 = OF_CALLGRIND;
/// Begin again.
const ZERO: u64 = OF_CALLGRIND + 1;
/// Count from here on.
const START: u64 = OF_CALLGRIND + 4;
/// Do not count any more: everything but turns goes ten times as fast.
const STOP: u64 = OF_CALLGRIND + 5;

/// A turn begins.
pub fn begin() {
    request(START);
    request(ZERO);
}

/// It is over.
pub fn end() {
    request(DUMP);
    request(STOP);
}

/// Asks for something without arguments.
#[cfg(target_arch = "x86_64")]
fn request(what: u64) {
    let asked = [what, 0, 0, 0, 0, 0];
    // SAFETY: `rdi` is turned by 128 bits in all and exchanged registers are the same, so that nothing
    // changes but flags; under valgrind `rdx` too, and `asked` is read there.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") asked.as_ptr(),
            inout("rdx") 0_u64 => _,
            options(nostack)
        );
    }
}

/// Asks for something without arguments.
#[cfg(target_arch = "aarch64")]
fn request(what: u64) {
    let asked = [what, 0, 0, 0, 0, 0];
    // SAFETY: `x12` is turned by 128 bits in all and `x10` stays what it is; under valgrind `x3` changes,
    // and `asked` is read there.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") asked.as_ptr(),
            inout("x3") 0_u64 => _,
            options(nostack)
        );
    }
}

/// There is no counter for other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn request(_: u64) {}
