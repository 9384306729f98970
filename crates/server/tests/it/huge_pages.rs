//! Huge pages of the real kernel: taken by the server, given back afterwards. Needs root.

use crate::lab::{Lab, any_installation, slot};
use deltabench_server::{HugePages, sweep};
use deltabench_testkit::not_tested;
use std::sync::{Mutex, MutexGuard, PoisonError};

static KERNEL: Mutex<()> = Mutex::new(());

/// Tests that change the machine's number of pages take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    KERNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn pages() -> u64 {
    std::fs::read_to_string("/proc/sys/vm/nr_hugepages")
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_server_that_asks_for_huge_pages_has_them_and_they_are_given_back() {
    let _turn = turn();
    let lab = Lab::new();
    if !lab.user.switched {
        not_tested("huge pages of a server", "only root can add them");
        return;
    }
    let mut reserved = HugePages::reserve(&[16 << 20], lab.workspace()).unwrap();
    assert!(reserved.added() > 0 && pages() >= reserved.added());
    let mut cluster = lab.cluster("c0", &any_installation());
    let on = [("huge_pages".to_owned(), "on".to_owned())];
    // The pages are for everybody: any server on this machine that may have some takes what it finds.
    let mut started = cluster.start(&slot(5500), &on);
    for _ in 0..20 {
        if started.is_ok() {
            break;
        }
        reserved.refill().unwrap();
        started = cluster.start(&slot(5500), &on);
    }
    let pid = started.unwrap().postmaster_pid;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    assert!(maps.lines().any(|line| line.split_ascii_whitespace().eq([
        "KernelPageSize:",
        "2048",
        "kB"
    ])));
    cluster.stop().unwrap();
    drop(cluster);
    // Counted right around the drop: another deltabench on this machine may add and give back its own.
    let (added, before) = (reserved.added(), pages());
    drop(reserved);
    assert_eq!(pages(), before - added);
    assert!(
        sweep(&lab.parent()).is_empty(),
        "a live workspace is left alone"
    );
}

#[test]
fn a_server_that_cannot_have_its_huge_pages_does_not_start_without_them() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    // More than any machine has set up: another program may set some up while this one runs.
    let settings = [("huge_pages", "on"), ("shared_buffers", "4TB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let problem = cluster.start(&slot(5500), &settings).unwrap_err();
    assert!(
        problem.error.contains("cannot get its shared memory"),
        "{problem}"
    );
    assert!(problem.hint.unwrap().contains("huge pages"));
}
