//! The bare system calls of an operation, as the floor under every client: the bytes of
//! the same operations, drawn before, answers received and counted by their length; no drawing, no clock, no
//! histogram.

use super::PeerOutcome;
use crate::connection::Connection;
use crate::error::WireError;
use crate::sys::{self, Poller, Wait};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::units::index;
use deltabench_workload::executable::{Draws, Executable};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Limit for each step of connecting.
const LIMIT: Duration = Duration::from_secs(60);
/// The end of every answer: ReadyForQuery outside a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";
/// As much as our own client receives at once.
const ROOM: usize = 64 * 1024;

/// Connections to a server, and what a slice sends over them.
///
/// Whoever uses it must know that the server is well: it waits for answers without a time limit.
pub(crate) struct Bare<'a> {
    executable: &'a Executable,
    connections: Vec<Connection>,
    /// Which of them have answers; without it, there is one.
    poller: Option<Poller>,
    floor: Floor,
    /// Where answers go, of all connections.
    room: Vec<u8>,
}

impl<'a> Bare<'a> {
    /// Connects, and does one operation to see how long an answer is.
    ///
    /// Errors: no connection, a server that closes.
    pub(crate) fn connect(
        endpoint: &Endpoint,
        login: &Login,
        executable: &'a Executable,
        clients: u32,
    ) -> Result<Self, WireError> {
        let connections = (0..clients.max(1))
            .map(|client| Connection::open(endpoint, login, executable, client, LIMIT))
            .collect::<Result<Vec<_>, _>>()?;
        let mut bare = Self {
            executable,
            connections,
            poller: None,
            floor: Floor {
                requests: Vec::new(),
                ends: Vec::new(),
                answer: 0,
            },
            room: vec![0; ROOM],
        };
        bare.draw(1, 0);
        let sockets = sockets(&bare.connections);
        if let [_, _, ..] = sockets.as_slice() {
            bare.poller = Some(watched(&sockets).map_err(failed)?);
        }
        let first = sockets.first().copied();
        let first = first.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        bare.floor.learn(first, &mut bare.room).map_err(failed)?;
        Ok(bare)
    }

    /// Does the first steps of the same operations as a slice of a lane with this seed, each on whichever
    /// connection is free. They are drawn before the time of the slice.
    ///
    /// Errors: a server that closes or answers something else.
    pub(crate) fn slice(&mut self, operations: u64, seed: u64) -> Result<PeerOutcome, WireError> {
        self.draw(operations, seed);
        let sockets = sockets(&self.connections);
        let (cpu_before_ns, started) = (sys::thread_cpu_ns(), Instant::now());
        match (&mut self.poller, sockets.first()) {
            (Some(poller), _) => self.floor.many(poller, &sockets, &mut self.room),
            (None, Some(socket)) => self.floor.single(*socket, &mut self.room),
            (None, None) => Ok(()),
        }
        .map_err(failed)?;
        Ok(PeerOutcome {
            operations,
            duration_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            client_cpu_ns: sys::thread_cpu_ns().saturating_sub(cpu_before_ns),
        })
    }

    /// Writes the requests of a slice one after the other.
    fn draw(&mut self, operations: u64, seed: u64) {
        self.floor.requests.clear();
        self.floor.ends.clear();
        let mut draws = Draws::new(seed, 0);
        let Some(connection) = self.connections.first_mut() else {
            return;
        };
        for _ in 0..operations {
            connection.draw(self.executable, &mut draws);
            let request = connection.first_request(self.executable);
            self.floor.requests.extend_from_slice(request);
            self.floor.ends.push(self.floor.requests.len());
        }
    }
}

fn failed(error: io::Error) -> WireError {
    WireError::transfer("sending bare requests", error, None)
}

fn sockets(connections: &[Connection]) -> Vec<BorrowedFd<'_>> {
    let sockets = connections.iter().map(|connection| connection.socket());
    sockets.map(|socket| socket.as_fd()).collect()
}

/// The set that tells which of them have answers.
fn watched(sockets: &[BorrowedFd<'_>]) -> io::Result<Poller> {
    let mut poller = Poller::new(sockets.len())?;
    for (token, &socket) in (0..).zip(sockets) {
        poller.add(socket, token)?;
    }
    Ok(poller)
}

struct Floor {
    /// All requests of the slice, and where each ends.
    requests: Vec<u8>,
    ends: Vec<usize>,
    /// Length of the answer, which is always the same.
    answer: usize,
}

/// Requests that were not sent yet.
struct Requests<'a> {
    bytes: &'a [u8],
    ends: std::slice::Iter<'a, usize>,
    start: usize,
}

impl Requests<'_> {
    /// Sends the next one, if there is one.
    fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(&end) = self.ends.next() {
            let request = self.bytes.get(self.start..end).unwrap_or(&[]);
            self.start = end;
            sys::send(socket, request, Wait::Block)?;
        }
        Ok(())
    }
}

/// How much has come.
fn receive(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    match sys::receive(socket, room, Wait::Never)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

impl Floor {
    fn requests(&self) -> Requests<'_> {
        Requests {
            bytes: &self.requests,
            ends: self.ends.iter(),
            start: 0,
        }
    }

    /// Finds out how long the answer is.
    fn learn(&mut self, socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<()> {
        self.requests().send(socket)?;
        loop {
            let count = match sys::receive(socket, room, Wait::Block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => count,
            };
            self.answer += count;
            if room.get(..count).unwrap_or(&[]).ends_with(READY) {
                return Ok(());
            }
        }
    }

    fn single(&self, socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<()> {
        let mut requests = self.requests();
        for _ in 0..self.ends.len() {
            requests.send(socket)?;
            let mut left = self.answer;
            while left > 0 {
                sys::wait_for_input(socket)?;
                left = left.saturating_sub(receive(socket, room)?);
            }
        }
        Ok(())
    }

    fn many(
        &self,
        poller: &mut Poller,
        sockets: &[BorrowedFd<'_>],
        room: &mut [u8],
    ) -> io::Result<()> {
        let mut requests = self.requests();
        let mut left = vec![self.answer; sockets.len()];
        for &socket in sockets {
            requests.send(socket)?;
        }
        let mut done = 0;
        while done < self.ends.len() {
            for nth in 0..poller.wait()? {
                let at = index(poller.ready(nth).unwrap_or(u64::MAX));
                let (Some(&socket), Some(left)) = (sockets.get(at), left.get_mut(at)) else {
                    continue;
                };
                *left = left.saturating_sub(receive(socket, room)?);
                if *left == 0 {
                    *left = self.answer;
                    done += 1;
                    requests.send(socket)?;
                }
            }
        }
        Ok(())
    }
}
