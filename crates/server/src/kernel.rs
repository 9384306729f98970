//! The system calls that the standard library does not have, each behind a safe function.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Effective user id of this process.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Effective group id of this process.
pub(crate) fn effective_gid() -> u32 {
    // SAFETY: getegid takes nothing and cannot fail.
    unsafe { libc::getegid() }
}

/// One account of the user database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The account called `name`.
pub(crate) fn account_by_name(name: &str) -> Option<Account> {
    let name = CString::new(name).ok()?;
    look_up(|entry, buffer, size, found| {
        // SAFETY: `name` is NUL-terminated; the other pointers are valid for the call, `buffer` for
        // `size` bytes.
        unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, size, found) }
    })
}

/// The account with this user id.
pub(crate) fn account_by_uid(uid: u32) -> Option<Account> {
    look_up(|entry, buffer, size, found| {
        // SAFETY: all pointers are valid for the call, `buffer` for `size` bytes.
        unsafe { libc::getpwuid_r(uid, entry, buffer, size, found) }
    })
}

type LookUp<'a> = &'a mut libc::passwd;

fn look_up(
    call: impl Fn(LookUp<'_>, *mut libc::c_char, usize, &mut *mut libc::passwd) -> libc::c_int,
) -> Option<Account> {
    let mut buffer: Vec<libc::c_char> = vec![0; 16 << 10];
    // SAFETY: `passwd` is plain data for which all-zero bytes are a valid value.
    let mut entry: libc::passwd = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut found: *mut libc::passwd = std::ptr::null_mut();
    let status = call(&mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: on success pw_name points to a NUL-terminated string inside `buffer`, which is still alive.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    Some(Account {
        name: name.to_string_lossy().into_owned(),
        uid: entry.pw_uid,
        gid: entry.pw_gid,
    })
}

/// A handle on the process that has this pid now; `None` where the kernel has no pidfd (before 5.3).
///
/// Errors: `ESRCH` when there is no such process.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<Option<OwnedFd>> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let no_flags: libc::c_uint = 0;
    // SAFETY: pidfd_open takes two integers and returns a new descriptor or -1.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, no_flags) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ENOSYS) {
            Ok(None)
        } else {
            Err(error)
        };
    }
    let raw = i32::try_from(result).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel just gave us this descriptor and nothing else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(raw) }))
}

/// Sends a signal to the very process that `pidfd` was opened on.
pub(crate) fn pidfd_signal(pidfd: &OwnedFd, signal: i32) -> io::Result<()> {
    let no_info: *const libc::siginfo_t = std::ptr::null();
    let no_flags: libc::c_uint = 0;
    // SAFETY: the descriptor is open; a null siginfo means "as kill() would"; no memory is touched.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            no_info,
            no_flags,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Waits until the process behind `pidfd` has ended; false when `limit` passes first.
pub(crate) fn pidfd_wait(pidfd: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        // Rounded up, so that a limit below a millisecond does not turn into a busy loop of the caller's.
        let milliseconds = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let mut entry = libc::pollfd {
            fd: pidfd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid pollfd.
        let result = unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
        match result {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Sends a signal to a pid.
pub(crate) fn kill(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: two integers; pid is positive, so it names one process and never a group.
    let result = unsafe { libc::kill(pid, signal) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Makes `to` share the blocks of `from`; fails where the file system cannot.
pub(crate) fn reflink(from: &File, to: &File) -> io::Result<()> {
    // SAFETY: FICLONE takes a descriptor; both files are open.
    let result = unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Writes out everything of the file system that `directory` is on.
pub(crate) fn sync_file_system(directory: &Path) -> io::Result<()> {
    let file = File::open(directory)?;
    // SAFETY: an open descriptor.
    let result = unsafe { libc::syncfs(file.as_raw_fd()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Bytes that unprivileged users can still write to the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let answer = file_system(path)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Whether programs on the file system of `path` may be started.
pub(crate) fn may_execute(path: &Path) -> io::Result<bool> {
    Ok(file_system(path)?.f_flag & libc::ST_NOEXEC == 0)
}

/// Whether this process may make something in a directory: also not if its file system is read only.
pub(crate) fn may_write(directory: &Path) -> io::Result<()> {
    let name = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: a NUL-terminated path and constants; nothing is written to memory.
    let result = unsafe {
        libc::faccessat(
            libc::AT_FDCWD,
            name.as_ptr(),
            libc::W_OK | libc::X_OK,
            libc::AT_EACCESS,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn file_system(path: &Path) -> io::Result<libc::statvfs> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a NUL-terminated path and room for one statvfs.
    let result = unsafe { libc::statvfs(name.as_ptr(), answer.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs succeeded and filled the structure.
    Ok(unsafe { answer.assume_init() })
}

/// Removes the System V segment `id` if it has this key and owner and nobody is attached to it.
pub(crate) fn remove_shared_memory(id: i32, key: i32, uid: u32) -> bool {
    let mut status = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: IPC_STAT fills one shmid_ds.
    if unsafe { libc::shmctl(id, libc::IPC_STAT, status.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: IPC_STAT succeeded and filled the structure.
    let status = unsafe { status.assume_init() };
    if status.shm_perm.uid != uid || status.shm_perm.__key != key || status.shm_nattch != 0 {
        return false;
    }
    // SAFETY: IPC_RMID ignores the third argument.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) == 0 }
}

/// Asks the kernel to send `signal` to this process when the thread that forked it ends. For `pre_exec`
/// only.
pub(crate) fn die_with_parent(signal: libc::c_ulong, parent: u32) -> io::Result<()> {
    // A shell starts background jobs with SIGQUIT ignored, which is inherited: then the signal would be lost
    // on a server that has not installed its handler yet.
    let number = libc::c_int::try_from(signal).unwrap_or(libc::SIGKILL);
    // SAFETY: signal takes a number and a constant; async-signal-safe. It fails for SIGKILL, which cannot be
    // ignored in the first place.
    unsafe { libc::signal(number, libc::SIG_DFL) };
    // SAFETY: PR_SET_PDEATHSIG takes one integer; async-signal-safe.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have died before the call above: then nobody will ever send the signal.
    // SAFETY: getppid takes nothing and cannot fail.
    let now = unsafe { libc::getppid() };
    if u32::try_from(now) == Ok(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Moves the calling process into the control group whose `cgroup.procs` this is. For `pre_exec` only: a
/// process with other threads would move them too.
pub(crate) fn join_cgroup(procs: &File) -> io::Result<()> {
    // A zero stands for whoever writes it.
    const OURSELVES: &[u8] = b"0";
    let mut procs = procs;
    match io::Write::write(&mut procs, OURSELVES)? {
        1 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// A set of cores, made before the fork because building it allocates nothing but checks its input.
#[derive(Clone, Copy)]
pub(crate) struct CoreSet(libc::cpu_set_t);

impl CoreSet {
    /// The set of these cores; `None` if one of them is beyond what the kernel interface can name.
    pub(crate) fn new(cores: &[usize]) -> Option<Self> {
        // SAFETY: cpu_set_t is a plain bit mask; all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        for &core in cores {
            if core >= size_of::<libc::cpu_set_t>() * 8 {
                return None;
            }
            // SAFETY: `core` was checked to be inside the mask.
            unsafe { libc::CPU_SET(core, &mut set) };
        }
        Some(Self(set))
    }

    /// Pins the calling process. Async-signal-safe.
    pub(crate) fn apply(&self) -> io::Result<()> {
        // SAFETY: pid 0 is the caller; the mask lives as long as `self`.
        let result =
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_number_and_strangers_are_not() {
        let root = account_by_name("root").unwrap();
        assert_eq!(
            (root.uid, account_by_uid(0).unwrap().name.as_str()),
            (0, "root")
        );
        assert_eq!(account_by_name("no-such-user-of-deltabench"), None);
    }

    #[test]
    fn a_child_that_ends_wakes_its_waiter_and_one_that_lives_does_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pidfd = pidfd_open(child.id()).unwrap().unwrap();
        assert!(!pidfd_wait(&pidfd, Duration::from_millis(1)).unwrap());
        pidfd_signal(&pidfd, libc::SIGKILL).unwrap();
        assert!(pidfd_wait(&pidfd, Duration::from_secs(10)).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn a_core_beyond_the_mask_is_refused() {
        assert!(CoreSet::new(&[0]).is_some());
        assert!(CoreSet::new(&[1 << 20]).is_none());
    }

    #[test]
    fn free_space_of_the_temporary_directory_is_known() {
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
    }

    #[test]
    fn a_file_system_says_whether_programs_may_be_started_from_it() {
        assert!(may_execute(Path::new("/bin/sh")).unwrap());
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        // A later mount hides an earlier one.
        let mut seen = std::collections::BTreeMap::new();
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            let (place, options) = (words.next().unwrap(), words.nth(1).unwrap());
            seen.insert(place, options.split(',').any(|option| option == "noexec"));
        }
        for (place, noexec) in seen {
            if let Ok(may) = may_execute(Path::new(place)) {
                assert_eq!(may, !noexec, "{place}");
            }
        }
    }
}
