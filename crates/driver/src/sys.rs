//! The few system calls of the hot path, behind safe functions. The only unsafe code of the crate.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Whether [`receive`] may wait for bytes, and [`send`] for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until bytes come or the socket's time limit is over.
    Block,
    Never,
}

/// The other end is the one that the socket is connected to.
///
/// The calls are made by number because those of the C library can be cancelled by another thread, which
/// costs three times their own instructions and which nobody here does.
const NO_ADDRESS: *const libc::c_void = std::ptr::null();

/// Sends some of `bytes`, perhaps none if it may not wait; a closed peer is an error, never a signal.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], wait: Wait) -> io::Result<usize> {
    let flags = match wait {
        Wait::Block => libc::MSG_NOSIGNAL,
        Wait::Never => libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
    };
    loop {
        // SAFETY: the pointer and length describe a live slice, and the descriptor is borrowed, so it is
        // open.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                socket.as_raw_fd(),
                bytes.as_ptr(),
                bytes.len(),
                flags,
                NO_ADDRESS,
                0_usize,
            )
        };
        if let Some(result) = finished(sent) {
            return result;
        }
    }
}

/// Receives into `room`; 0 means that the peer closed.
pub fn receive(socket: BorrowedFd<'_>, room: &mut [u8], wait: Wait) -> io::Result<usize> {
    let flags = match wait {
        Wait::Block => 0,
        Wait::Never => libc::MSG_DONTWAIT,
    };
    loop {
        // SAFETY: the pointer and length describe a live, exclusively borrowed slice; the descriptor is open.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                socket.as_raw_fd(),
                room.as_mut_ptr(),
                room.len(),
                flags,
                NO_ADDRESS,
                NO_ADDRESS,
            )
        };
        if let Some(result) = finished(received) {
            return result;
        }
    }
}

/// Waits, without a time limit, until bytes (or the end of the stream) can be received.
///
/// On a local socket this and a receive are cheaper than a receive that waits: the latter is also woken,
/// for nothing, when the server takes the request out of the socket's buffer, which costs two more task
/// switches per operation. (5.0 against 6.6 µs with Linux 6.18; `unix_write_space` wakes every sleeper, and
/// only `poll` says what it waits for.)
#[inline]
pub fn wait_for_input(socket: BorrowedFd<'_>) -> io::Result<()> {
    poll(socket, libc::POLLIN)
}

/// As [`wait_for_input`], for at most `limit`; whether there is something. May return early with nothing.
pub fn wait_for_input_within(socket: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let mut wanted = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let time = timespec(limit);
    // SAFETY: the pointers are to one live, exclusively borrowed pollfd and a live timespec; no signal mask
    // is given; the descriptor is open.
    let ready = unsafe { libc::ppoll(&raw mut wanted, 1, &raw const time, std::ptr::null()) };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos().cast_signed()),
    }
}

/// Waits, without a time limit, until bytes (or the end of the stream) can be received, or some be sent.
pub fn wait_for_either(socket: BorrowedFd<'_>) -> io::Result<()> {
    poll(socket, libc::POLLIN | libc::POLLOUT)
}

#[inline]
fn poll(socket: BorrowedFd<'_>, events: libc::c_short) -> io::Result<()> {
    let mut wanted = libc::pollfd {
        fd: socket.as_raw_fd(),
        events,
        revents: 0,
    };
    loop {
        // SAFETY: the pointer is to one live, exclusively borrowed pollfd; its descriptor is open.
        let ready = unsafe { libc::poll(&raw mut wanted, 1, -1) };
        if ready > 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Ends both directions; whoever waits on the socket sees the end of the stream.
pub fn shut_down(socket: BorrowedFd<'_>) {
    // SAFETY: no pointers; the descriptor is open. A failure means that the connection is gone already.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Whether bytes (or the end of the stream) are waiting to be received.
pub fn has_input(socket: BorrowedFd<'_>) -> bool {
    let mut byte = [0_u8; 1];
    let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
    // SAFETY: the pointer and length describe a live array; the descriptor is open.
    unsafe {
        libc::recv(
            socket.as_raw_fd(),
            byte.as_mut_ptr().cast(),
            byte.len(),
            flags,
        ) >= 0
    }
}

/// The result of a transfer, or `None` when a signal interrupted it and it must be tried again.
fn finished(result: libc::c_long) -> Option<io::Result<usize>> {
    if let Ok(count) = usize::try_from(result) {
        return Some(Ok(count));
    }
    let error = io::Error::last_os_error();
    (error.kind() != io::ErrorKind::Interrupted).then_some(Err(error))
}

/// Sets how long a blocking send or receive may take; `None` means for ever.
pub fn set_timeout(socket: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
    // Zero would mean "for ever" to the kernel.
    let limit = limit.map_or(Duration::ZERO, |limit| limit.max(Duration::from_micros(1)));
    let value = libc::timeval {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_usec: libc::suseconds_t::from(limit.subsec_micros()),
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &value)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &value)
}

/// What a TCP socket is told so that a peer that is gone without a word ends every wait within about a
/// minute: asked after 30 s of silence, then every 10 s; given up after three questions without an answer
/// or 60 s. Level, option and value.
const DEAD_PEER: [(libc::c_int, libc::c_int, libc::c_int); 5] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 30),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 60_000),
];

/// Lets the kernel notice, on a TCP socket, that the peer is gone without a word.
pub fn notice_dead_peer(socket: BorrowedFd<'_>) -> io::Result<()> {
    for (level, option, value) in &DEAD_PEER {
        set_option(socket, *level, *option, value)?;
    }
    Ok(())
}

/// Sets an option of a socket; `T` is the type that the kernel wants for it.
fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<T>())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let pointer: *const T = value;
    // SAFETY: the pointer and size describe a live value, which the kernel only reads; the descriptor is
    // open.
    let status =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer.cast(), size) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Connects to a local socket; gives up after `limit` when the queue of its connections stays full.
pub fn connect_unix(path: &Path, limit: Duration) -> io::Result<OwnedFd> {
    // SAFETY: sockaddr_un is plain numbers, for which all zero is a value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let bytes = path.as_os_str().as_bytes();
    // The name ends with a zero.
    if bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path is too long for a local socket, or contains a zero byte",
        ));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the result is checked before use.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socket just returned this descriptor, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // A full queue cannot be polled for (a connect that may not wait fails at once); the kernel waits for
    // room in it as long as a send may take.
    set_timeout(socket.as_fd(), Some(limit))?;
    let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let pointer: *const libc::sockaddr_un = &raw const address;
    loop {
        // SAFETY: the pointer and size describe a live address; the descriptor is open.
        if unsafe { libc::connect(socket.as_raw_fd(), pointer.cast(), size) } == 0 {
            return Ok(socket);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the server accepted no connection within {limit:?}"),
                ));
            }
            _ => return Err(error),
        }
    }
}

/// An option of a socket that is a number.
#[cfg(test)]
pub fn number_option(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> i32 {
    let mut value: libc::c_int = -1;
    let mut size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap();
    let pointer: *mut libc::c_int = &raw mut value;
    // SAFETY: the pointers are to live values, and the size is that of the first; the descriptor is open.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            pointer.cast(),
            &raw mut size,
        )
    };
    assert_eq!(status, 0);
    value
}

/// Makes the calling thread's timers exact; the kernel's default lets them be 50 µs late, to save wake-ups.
pub fn exact_timers() {
    // SAFETY: no pointers. It cannot fail for a positive number; if it did, timers would only be late.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// CPU time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live, exclusively borrowed timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert!(
        status == 0,
        "CLOCK_THREAD_CPUTIME_ID exists since Linux 2.6.12"
    );
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Waits for a child process; whether it ended well, and its CPU time (user and system) in nanoseconds.
///
/// Nobody else may wait for this child.
pub fn wait_for(child: u32) -> io::Result<(bool, u64)> {
    let pid =
        libc::pid_t::try_from(child).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live, exclusively borrowed values of the types that wait4 writes.
        let ended = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if ended == pid {
            let cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
            return Ok((
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
                cpu_ns,
            ));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let part = |value: i64, scale| u64::try_from(value).unwrap_or(0) * scale;
    part(time.tv_sec, 1_000_000_000) + part(time.tv_usec, 1_000)
}

/// Restricts the calling thread, and what it starts, to some cores; none means no restriction.
pub fn pin_thread(cores: &[usize]) -> io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    // SAFETY: cpu_set_t is an array of numbers, for which all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores {
        if core >= size_of::<libc::cpu_set_t>() * 8 {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: the index was checked against the size of the set.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: the pointer and size describe a live set; 0 is the calling thread.
    let status =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the calling thread may use one core only, and process `pid` that one only, too.
pub fn shares_only_core(pid: u32) -> bool {
    let theirs = libc::pid_t::try_from(pid).map(cores).unwrap_or_default();
    theirs.len() == 1 && own_cores() == theirs
}

/// The cores that the calling thread may use; none if that cannot be read.
pub fn own_cores() -> Vec<usize> {
    cores(0)
}

/// The cores that a thread may use; 0 is the calling thread.
fn cores(pid: libc::pid_t) -> Vec<usize> {
    // SAFETY: cpu_set_t is an array of numbers, for which all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer and size describe a live, exclusively borrowed set.
    let status =
        unsafe { libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if status != 0 {
        return Vec::new();
    }
    (0..size_of::<libc::cpu_set_t>() * 8)
        // SAFETY: the set is live; every index is inside it.
        .filter(|at| unsafe { libc::CPU_ISSET(*at, &set) })
        .collect()
}

/// Makes the calling thread wait for its turn when it is woken (SCHED_BATCH), or not; returns whether that
/// was done. Left alone: a thread with another policy than the default.
pub fn wait_for_turn(wait: bool) -> bool {
    let (from, to) = if wait {
        (libc::SCHED_OTHER, libc::SCHED_BATCH)
    } else {
        (libc::SCHED_BATCH, libc::SCHED_OTHER)
    };
    if policy() != from {
        return false;
    }
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live sched_param; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, to, &raw const priority) == 0 }
}

/// Scheduling policy of the calling thread.
pub fn policy() -> i32 {
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) }
}

/// Waits until bytes come on one of several sockets. Edge-triggered: whoever is told must receive all there
/// is.
#[derive(Debug)]
pub struct Poller {
    set: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Poller {
    /// An empty set with room for `capacity` sockets' news at a time.
    pub fn new(capacity: usize) -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before use.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: epoll_create1 just returned this descriptor, and nobody else has it.
        let set = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self {
            set,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)],
            ready: 0,
        })
    }

    /// Adds a socket; `token` is what [`Poller::ready`] gives when it has news.
    pub fn add(&mut self, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET).cast_unsigned(),
            u64: token,
        };
        // SAFETY: the pointer is to a live event; both descriptors are open.
        let status = unsafe {
            libc::epoll_ctl(
                self.set.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                &raw mut event,
            )
        };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Waits without a time limit; returns how many sockets have news.
    pub fn wait(&mut self) -> io::Result<usize> {
        self.wait_ms(-1)
    }

    /// Waits for at most `limit`; returns how many sockets have news. May return early with none.
    ///
    /// To the nanosecond with Linux 5.11 and later; before, to the next millisecond, which shows as lag.
    pub fn wait_for(&mut self, limit: Duration) -> io::Result<usize> {
        let time = timespec(limit);
        // SAFETY: pointers and count describe the live vector of events and a live timespec; no signal mask
        // is given, so its size does not matter; the descriptor is open.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.set.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.room(),
                &raw const time,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        if let Ok(ready) = usize::try_from(ready) {
            self.ready = ready;
            return Ok(ready);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {
                self.ready = 0;
                Ok(0)
            }
            Some(libc::ENOSYS) => {
                self.wait_ms(i32::try_from(limit.as_millis() + 1).unwrap_or(i32::MAX))
            }
            _ => Err(error),
        }
    }

    fn wait_ms(&mut self, limit: i32) -> io::Result<usize> {
        loop {
            // SAFETY: pointer and count describe the live vector of events; no signal mask is given, so its
            // size does not matter; the descriptor is open.
            let ready = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait,
                    self.set.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    self.room(),
                    limit,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            };
            if let Ok(ready) = usize::try_from(ready) {
                self.ready = ready;
                return Ok(ready);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn room(&self) -> i32 {
        i32::try_from(self.events.len()).unwrap_or(i32::MAX)
    }

    /// Token of the `nth` ready socket of the last wait.
    pub fn ready(&self, nth: usize) -> Option<u64> {
        self.events
            .get(..self.ready)?
            .get(nth)
            .map(|event| event.u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Instant;

    #[test]
    fn a_local_server_that_takes_no_connection_is_given_up_at_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: no pointers; the descriptor is open.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let patience = Duration::from_secs(30);
        let _queued = connect_unix(&path, patience).unwrap();
        let started = Instant::now();
        let refused = connect_unix(&path, Duration::from_millis(50)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut, "{refused}");
        assert!(started.elapsed() < patience);
        let (mut queued, _) = listener.accept().unwrap();
        drop(connect_unix(&path, patience).unwrap());
        io::Write::write_all(&mut queued, b"x").unwrap();
    }

    #[test]
    fn a_local_socket_that_cannot_be_is_refused() {
        let limit = Duration::from_secs(30);
        let missing = connect_unix(Path::new("/no/such/socket"), limit).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let long = format!("/{}", "x".repeat(107));
        let refused = connect_unix(Path::new(&long), limit).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_receive_gives_up_at_its_time_limit() {
        let (near, _far) = UnixStream::pair().unwrap();
        set_timeout(near.as_fd(), Some(Duration::from_millis(5))).unwrap();
        let error = receive(near.as_fd(), &mut [0; 8], Wait::Block).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn sending_to_a_closed_peer_is_an_error_not_a_signal() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        assert_eq!(
            send(near.as_fd(), b"x", Wait::Block).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn the_poller_names_the_socket_that_has_input() {
        let (first, _first_far) = UnixStream::pair().unwrap();
        let (second, second_far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new(2).unwrap();
        poller.add(first.as_fd(), 7).unwrap();
        poller.add(second.as_fd(), 8).unwrap();
        assert!(!has_input(second.as_fd()));
        send(second_far.as_fd(), b"x", Wait::Block).unwrap();
        assert!(has_input(second.as_fd()));
        assert_eq!(poller.wait().unwrap(), 1);
        assert_eq!((poller.ready(0), poller.ready(1)), (Some(8), None));
    }

    #[test]
    fn a_child_gives_its_end_and_its_cpu_time() {
        let spawn = |script: &str| {
            std::process::Command::new("sh")
                .args(["-c", script])
                .spawn()
                .unwrap()
                .id()
        };
        let (success, idle_ns) = wait_for(spawn("exit 0")).unwrap();
        assert!(success);
        assert!(!wait_for(spawn("exit 3")).unwrap().0);
        assert!(!wait_for(spawn("kill -9 $$")).unwrap().0);
        let (_, busy_ns) =
            wait_for(spawn("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")).unwrap();
        assert!(busy_ns > idle_ns);
    }

    #[test]
    fn a_thread_with_one_core_shares_it_with_its_own_process_only_if_that_has_one_too() {
        assert!(!shares_only_core(0x7fff_fff0), "there is no such process");
        std::thread::spawn(|| {
            let first = own_cores()[0];
            pin_thread(&[first]).unwrap();
            assert_eq!(own_cores(), [first]);
            let child = std::process::Command::new("sleep").arg("60").spawn();
            let mut child = child.unwrap();
            assert!(shares_only_core(child.id()), "a child inherits its cores");
            child.kill().unwrap();
            child.wait().unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_core_that_cannot_be_is_refused() {
        assert!(pin_thread(&[100_000]).is_err());
        pin_thread(&[]).unwrap();
    }

    #[test]
    fn thread_cpu_time_grows_with_work() {
        let before = thread_cpu_ns();
        let mut sum = 0_u64;
        while thread_cpu_ns() - before < 100_000 {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
    }
}
