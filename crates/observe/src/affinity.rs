//! Which cores a thread may run on.

use crate::error::ObserveError;
use deltabench_proc::{process_tree, threads};
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};

/// The cores the calling thread may run on, ascending.
///
/// Errors: `Pin` if the kernel has more cores than a `cpu_set_t` holds (1024).
pub fn own_affinity() -> Result<Vec<usize>, ObserveError> {
    affinity_of(0)
}

/// Pins the calling thread to `cores`. Threads it starts later inherit that, other threads do not change.
///
/// Errors: `Pin` if none of the cores exists or is allowed.
pub fn pin_self(cores: &[usize]) -> Result<(), ObserveError> {
    set_affinity(0, cores)
}

/// Gives the calling thread back the cores that [`own_affinity`] told before it was pinned.
///
/// Errors: as [`pin_self`].
pub fn restore(previous: &[usize]) -> Result<(), ObserveError> {
    set_affinity(0, previous)
}

/// Pins every thread of a postmaster and of its children, and returns how many threads that were.
///
/// The postmaster comes first, so that children born meanwhile inherit the cores; the tree is listed again
/// until nothing new turns up. `cores` = [`own_affinity`] of the unpinned driver frees the tree again.
///
/// Errors: `Gone` if the postmaster has ended; `Pin` if the kernel refuses, for example another user's
/// process.
pub fn pin_tree(postmaster_pid: u32, cores: &[usize]) -> Result<usize, ObserveError> {
    let mut pinned = BTreeSet::new();
    loop {
        let before = pinned.len();
        for pid in process_tree(postmaster_pid)? {
            for tid in threads(pid).unwrap_or_default() {
                if pinned.contains(&tid) {
                    continue;
                }
                match set_affinity(tid, cores) {
                    Ok(()) => pinned.insert(tid),
                    // It ended since it was listed.
                    Err(ObserveError::Pin { source, .. })
                        if source.raw_os_error() == Some(libc::ESRCH) =>
                    {
                        false
                    }
                    Err(error) => return Err(error),
                };
            }
        }
        if pinned.len() == before {
            return Ok(pinned.len());
        }
    }
}

fn set_affinity(tid: u32, cores: &[usize]) -> Result<(), ObserveError> {
    let refused = |source| ObserveError::Pin {
        tid,
        cores: cores.to_vec(),
        source,
    };
    let capacity = 8 * size_of::<libc::cpu_set_t>();
    if cores.is_empty() || cores.iter().any(|&core| core >= capacity) {
        return Err(refused(Error::from(ErrorKind::InvalidInput)));
    }
    let id =
        libc::pid_t::try_from(tid).map_err(|_| refused(Error::from(ErrorKind::InvalidInput)))?;
    // SAFETY: a cpu_set_t is a plain bit array; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores {
        // SAFETY: every core is below the capacity of the set, checked above.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: the set is initialised and outlives the call; the size is its own.
    let result =
        unsafe { libc::sched_setaffinity(id, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 {
        Ok(())
    } else {
        Err(refused(Error::last_os_error()))
    }
}

fn affinity_of(tid: u32) -> Result<Vec<usize>, ObserveError> {
    let refused = |source| ObserveError::Pin {
        tid,
        cores: Vec::new(),
        source,
    };
    let id =
        libc::pid_t::try_from(tid).map_err(|_| refused(Error::from(ErrorKind::InvalidInput)))?;
    // SAFETY: a cpu_set_t is a plain bit array; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size into the set.
    let result = unsafe { libc::sched_getaffinity(id, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result != 0 {
        return Err(refused(Error::last_os_error()));
    }
    let capacity = 8 * size_of::<libc::cpu_set_t>();
    // SAFETY: every core asked about is below the capacity of the set.
    Ok((0..capacity)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_proc::ProcError;
    use std::process::{Command, Stdio};

    #[test]
    fn a_pinned_thread_stays_on_its_core_until_restored() {
        // On a thread of its own, so that other tests keep their cores.
        let thread = std::thread::spawn(|| {
            let before = own_affinity().unwrap();
            let core = before[before.len() - 1];
            pin_self(&[core]).unwrap();
            assert_eq!(own_affinity().unwrap(), [core]);
            for _ in 0..100 {
                // SAFETY: plain query without pointers.
                assert_eq!(usize::try_from(unsafe { libc::sched_getcpu() }), Ok(core));
                std::thread::yield_now();
            }
            restore(&before).unwrap();
            assert_eq!(own_affinity().unwrap(), before);
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_whole_tree_is_pinned_and_freed() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60 & echo ready; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0_u8; 6];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        let all = own_affinity().unwrap();
        let tree = process_tree(shell.id()).unwrap();
        assert_eq!(pin_tree(shell.id(), &all[..1]).unwrap(), 3);
        for &pid in &tree {
            assert_eq!(affinity_of(pid).unwrap(), all[..1]);
        }
        pin_tree(shell.id(), &all).unwrap();
        for &pid in &tree {
            assert_eq!(affinity_of(pid).unwrap(), all);
            // SAFETY: plain system call; the ids are a shell that this test started and its children.
            unsafe { libc::kill(libc::pid_t::try_from(pid).unwrap(), libc::SIGKILL) };
        }
        shell.wait().unwrap();
        assert!(matches!(
            pin_tree(shell.id(), &all),
            Err(ObserveError::Kernel(ProcError::Gone { .. }))
        ));
    }

    #[test]
    fn every_thread_of_a_process_is_pinned() {
        // The pinned process is a copy of this test program that holds three threads: it must not be this
        // one, or other tests would lose their cores.
        if std::env::var_os("DELTABENCH_OBSERVE_THREADS").is_some() {
            let (stop, wait) = std::sync::mpsc::sync_channel::<()>(0);
            let idle = std::thread::spawn(move || wait.recv().unwrap_err());
            println!("\nready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            drop(stop);
            idle.join().unwrap();
            return;
        }
        let mut copy = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "affinity::tests::every_thread_of_a_process_is_pinned",
                "--nocapture",
            ])
            .env("DELTABENCH_OBSERVE_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(copy.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap() == "ready"));
        let core = &own_affinity().unwrap()[..1];
        let tids = threads(copy.id()).unwrap();
        assert!(tids.len() >= 2, "{tids:?}");
        pin_tree(copy.id(), core).unwrap();
        for tid in tids {
            assert_eq!(affinity_of(tid).unwrap(), core);
        }
        drop(copy.stdin.take());
        lines.for_each(drop);
        assert!(copy.wait().unwrap().success());
    }

    #[test]
    fn impossible_cores_are_refused() {
        assert!(matches!(pin_self(&[]), Err(ObserveError::Pin { .. })));
        assert!(matches!(
            pin_self(&[1_000_000]),
            Err(ObserveError::Pin { .. })
        ));
        assert!(matches!(pin_self(&[1023]), Err(ObserveError::Pin { .. })));
    }
}
