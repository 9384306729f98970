//! A connection for each operation: opened before it, closed after it.
//!
//! The latency of an operation has the opening in it. The slice has the closing, too: a connection is
//! opened when the server's process of the one before has closed its end, and the slice ends with that of the
//! last one. What the kernel does then with such a process falls behind it.

use super::Work;
use super::single::{Alone, Single};
use super::turns::Turns;
use crate::connection::Connection;
use crate::error::WireError;
use crate::scan::Loss;
use crate::session::BackendKey;
use crate::slice::Tally;
use crate::sys::{self, Wait};
use crate::watchdog::Changing;
use deltabench_model::endpoint::{Endpoint, Login};
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

/// Where the connections of one client are opened.
#[derive(Debug)]
pub struct Door {
    endpoint: Endpoint,
    login: Login,
    client: u32,
    /// Rows of connections that are closed.
    rows: u64,
    /// The last connection that was opened: for the watchdog, and to ask its server to give up.
    socket: Changing,
    key: Option<BackendKey>,
}

impl Door {
    /// The door of one client.
    pub fn new(endpoint: &Endpoint, login: &Login, client: u32) -> Self {
        Self {
            endpoint: endpoint.clone(),
            login: Login {
                // That was asked on the connection that was tried; it would be a round trip each time.
                confirm_path: false,
                ..login.clone()
            },
            client,
            rows: 0,
            socket: Changing::default(),
            key: None,
        }
    }

    /// The socket of the connection that is open at a moment.
    pub fn socket(&self) -> Changing {
        Arc::clone(&self.socket)
    }

    /// The server's end of the last connection.
    pub fn key(&self) -> Option<BackendKey> {
        self.key
    }

    /// Rows since the last call.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }

    fn open(&mut self, work: &Work<'_>) -> Result<Connection, Loss> {
        let opened = Connection::open(
            &self.endpoint,
            &self.login,
            work.executable,
            self.client,
            work.limit,
        );
        let connection = opened.map_err(|error| match error {
            WireError::Server(error) => Loss::Fatal(Box::new(error)),
            WireError::Timeout { .. } => Loss::Stalled,
            WireError::Protocol { what } => Loss::Nonsense(what),
            other => Loss::Closed(other.to_string()),
        })?;
        let socket = Arc::clone(connection.socket());
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
        self.key = Some(connection.key());
        Ok(connection)
    }

    /// Waits until the server has closed its end of the last connection, on which we have said goodbye; not
    /// at all if there is none.
    fn await_end(&self, work: &Work<'_>) -> Result<(), Loss> {
        let mut last = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = last.take();
        // The watchdog may look at it meanwhile.
        drop(last);
        let Some(socket) = taken else {
            return Ok(());
        };
        let closed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Loss::Stalled,
            _ => Loss::Closed(format!("closing: {error}")),
        };
        sys::set_timeout(socket.as_fd(), Some(work.limit)).map_err(closed)?;
        let mut room = [0; 256];
        loop {
            match sys::receive(socket.as_fd(), &mut room, Wait::Block) {
                // A reset is an end, too.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(closed(error)),
                Ok(0) => return Ok(()),
                Ok(_) => {}
            }
        }
    }
}

/// Does operations until none is left.
pub fn run(door: &mut Door, work: Work<'_>, tally: &mut Tally<'_>) -> Result<(), Loss> {
    let alone = Alone {
        turns: &mut Turns::settled(),
        before_send: None,
        probe: None,
    };
    let mut single = Single::new(work, alone, tally);
    while let Some(number) = single.work.claims.take() {
        single.beat();
        // Else the processes of one client would be two for a moment, and several clients too many. This is
        // the end of the operation before, so no part of this one's latency.
        door.await_end(&single.work)?;
        let started_ns = single.tally.clock.now();
        let mut connection = door.open(&single.work)?;
        single.work.draw(&mut connection, number);
        single.tally.begun(connection.script());
        single.operation(&mut connection, started_ns)?;
        door.rows += connection.take_rows();
    }
    door.await_end(&single.work)
}
