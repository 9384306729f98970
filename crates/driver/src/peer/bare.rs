//! The bare system calls of an operation, as the floor under every client: the same prepared bytes sent
//! again and again, answers received and counted by their length, no drawing, no clock, no histogram.

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

/// Does the first step of the executable's first operation `operations` times on `clients` connections.
///
/// Whoever calls it must know that the server is well: it waits for answers without a time limit.
///
/// Errors: no connection, a server that closes or answers something else.
pub(crate) fn run(
    endpoint: &Endpoint,
    login: &Login,
    executable: &Executable,
    clients: u32,
    operations: u64,
) -> Result<PeerOutcome, WireError> {
    let mut connections = Vec::new();
    let mut request = Vec::new();
    for client in 0..clients {
        let mut connection = Connection::open(endpoint, login, executable, client, LIMIT)?;
        connection.draw(executable, &mut Draws::new(1, 0));
        request = connection.first_request(executable).to_vec();
        connections.push(connection);
    }
    let failed = |error| WireError::transfer("sending bare requests", error, None);
    let sockets: Vec<BorrowedFd<'_>> = connections
        .iter()
        .map(|connection| connection.socket().as_fd())
        .collect();
    let mut floor = Floor {
        request,
        answer: 0,
        room: vec![0; ROOM],
    };
    floor
        .learn(
            *sockets
                .first()
                .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?,
        )
        .map_err(failed)?;
    let (cpu_before_ns, started) = (sys::thread_cpu_ns(), Instant::now());
    match sockets.as_slice() {
        [socket] => floor.single(*socket, operations),
        sockets => floor.many(sockets, operations),
    }
    .map_err(failed)?;
    Ok(PeerOutcome {
        operations,
        duration_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        client_cpu_ns: sys::thread_cpu_ns().saturating_sub(cpu_before_ns),
    })
}

struct Floor {
    request: Vec<u8>,
    /// Length of the answer, which is always the same.
    answer: usize,
    room: Vec<u8>,
}

impl Floor {
    /// Finds out how long the answer is.
    fn learn(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        sys::send(socket, &self.request, Wait::Block)?;
        loop {
            let count = match sys::receive(socket, &mut self.room, Wait::Block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => count,
            };
            self.answer += count;
            if self.room.get(..count).unwrap_or(&[]).ends_with(READY) {
                return Ok(());
            }
        }
    }

    /// How much has come.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        match sys::receive(socket, &mut self.room, Wait::Never)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }

    fn single(&mut self, socket: BorrowedFd<'_>, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            sys::send(socket, &self.request, Wait::Block)?;
            let mut left = self.answer;
            while left > 0 {
                sys::wait_for_input(socket)?;
                left = left.saturating_sub(self.receive(socket)?);
            }
        }
        Ok(())
    }

    fn many(&mut self, sockets: &[BorrowedFd<'_>], operations: u64) -> io::Result<()> {
        let mut poller = Poller::new(sockets.len())?;
        let mut left = vec![self.answer; sockets.len()];
        let (mut sent, mut done) = (0, 0);
        for (token, &socket) in (0..).zip(sockets) {
            poller.add(socket, token)?;
            if sent < operations {
                sys::send(socket, &self.request, Wait::Block)?;
                sent += 1;
            }
        }
        while done < operations {
            for nth in 0..poller.wait()? {
                let at = index(poller.ready(nth).unwrap_or(u64::MAX));
                let (Some(&socket), Some(left)) = (sockets.get(at), left.get_mut(at)) else {
                    continue;
                };
                *left = left.saturating_sub(self.receive(socket)?);
                if *left == 0 {
                    *left = self.answer;
                    done += 1;
                    if sent < operations {
                        sys::send(socket, &self.request, Wait::Block)?;
                        sent += 1;
                    }
                }
            }
        }
        Ok(())
    }
}
