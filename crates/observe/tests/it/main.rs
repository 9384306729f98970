//! What only a whole program can show: readings allocate nothing; real servers.

mod real;
mod sampled;

use deltabench_observe::{DeviceClock, Metered, Meters, Postmaster, SliceMeters};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, that is, from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn readings_between_slices_allocate_nothing() {
    let mut meters = SliceMeters::open(&[std::process::id()]).unwrap();
    if let Some(device) = DeviceClock::of(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        meters = meters.with_device(device);
        assert!(meters.end(0, 0).unwrap().device.is_some());
    }
    drop(std::hint::black_box(vec![1_u8; 100]));
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    for _ in 0..10 {
        meters.start();
        std::hint::black_box(meters.end(0, 0));
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

#[test]
fn meters_of_servers_of_this_machine_allocate_nothing_either() {
    let servers = [Postmaster::Local(std::process::id()), Postmaster::Unknown];
    let metered = Metered {
        devices: true,
        short_lived: false,
    };
    let mut meters = Meters::open(&servers, metered).unwrap();
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    for active in [0, 1, 0] {
        meters.start(active);
        std::hint::black_box(meters.end(active, 0));
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
