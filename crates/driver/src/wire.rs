//! A connected socket, and TLS over it where that is asked for.

use crate::sys::{self, Wait};
use crate::tls::{TlsFailure, config};
use deltabench_model::endpoint::{Endpoint, Tls};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// SSLRequest: length and code.
///
/// Source: PostgreSQL manual, "Message Formats".
const TLS_REQUEST: [u8; 8] = *b"\0\0\0\x08\x04\xd2\x16\x2f";

/// TLS sends at most so much at a time.
const RECORD: usize = 16 * 1024;

/// Why there is no connection.
#[derive(Debug)]
pub enum OpenError {
    /// The system's reason.
    Io(io::Error),
    /// There is one, but not as it was asked for.
    Tls(TlsFailure),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        TlsFailure::from_io(error).map_or_else(Self::Io, Self::Tls)
    }
}

impl From<TlsFailure> for OpenError {
    fn from(failure: TlsFailure) -> Self {
        Self::Tls(failure)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Wire {
    socket: Arc<OwnedFd>,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    /// Connects. `limit` holds for the connection and each step of TLS, and stays the socket's time limit.
    pub fn open(endpoint: &Endpoint, limit: Duration) -> Result<Self, OpenError> {
        let mut wire = Self {
            socket: Arc::new(connect(endpoint, limit)?),
            tls: None,
        };
        sys::set_timeout(wire.socket.as_fd(), Some(limit))?;
        match endpoint {
            Endpoint::Tcp { host, tls, .. } if *tls != Tls::Off => wire.start_tls(host, tls)?,
            _ => {}
        }
        Ok(wire)
    }

    /// The socket.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Whether what is on the socket is what was sent: no TLS.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Sends all of `bytes`.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => send_all(self.socket.as_fd(), bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                flush(tls, self.socket.as_fd(), Wait::Block)
            }
        }
    }

    /// Sends some of `bytes` without waiting; an error of kind `WouldBlock` if there is no room. What TLS
    /// took goes out with the next call, or with [`send`](Self::send).
    pub fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::send(self.socket.as_fd(), bytes, Wait::Never),
            Some(tls) => {
                flush(tls, self.socket.as_fd(), Wait::Never)?;
                // It would take all of it and keep what the socket has no room for.
                tls.writer().write(bytes.get(..RECORD).unwrap_or(bytes))
            }
        }
    }

    /// Receives into `room`; 0 means that the peer closed.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8], wait: Wait) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::receive(self.socket.as_fd(), room, wait),
            Some(tls) => receive_tls(tls, self.socket.as_fd(), room, wait),
        }
    }

    /// Whether bytes (or the end of the stream) are waiting to be received.
    pub fn has_input(&mut self) -> bool {
        let Some(tls) = &mut self.tls else {
            return sys::has_input(self.socket.as_fd());
        };
        // What is on the socket may be for TLS alone, such as a session ticket.
        match receive_tls(tls, self.socket.as_fd(), &mut [], Wait::Never) {
            Ok(count) => count > 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    fn start_tls(&mut self, host: &str, tls: &Tls) -> Result<(), OpenError> {
        let config = config(tls)?;
        send_all(self.socket.as_fd(), &TLS_REQUEST)?;
        // One byte and no more: what follows it unencrypted would be somebody else's (CVE-2021-23222).
        let mut answer = [0];
        match sys::receive(self.socket.as_fd(), &mut answer, Wait::Block)? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ if answer == *b"S" => {}
            // The server goes on without, on the same connection.
            _ if *tls == Tls::Preferred => return Ok(()),
            _ => return Err(TlsFailure::NotOffered.into()),
        }
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        // What does not fit would be cut off; our requests are bounded by the workload.
        tls.set_buffer_limit(None);
        let mut socket = Plain(self.socket.as_fd(), Wait::Block);
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }
}

fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<OwnedFd> {
    match endpoint {
        Endpoint::Unix { directory, port } => {
            sys::connect_unix(&directory.join(format!(".s.PGSQL.{port}")), limit)
        }
        Endpoint::Tcp { host, port, .. } => {
            let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, limit) {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        sys::notice_dead_peer(stream.as_fd())?;
                        return Ok(stream.into());
                    }
                    Err(error) => failure = error,
                }
            }
            Err(failure)
        }
    }
}

#[inline]
fn send_all(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let sent = sys::send(socket, rest, Wait::Block)?;
        rest = rest.get(sent..).unwrap_or(&[]);
    }
    Ok(())
}

/// Plain text that has come, or else that of the next records. With no room it is only told whether there
/// is any.
fn receive_tls(
    tls: &mut ClientConnection,
    socket: BorrowedFd<'_>,
    room: &mut [u8],
    wait: Wait,
) -> io::Result<usize> {
    let mut state = tls.process_new_packets().map_err(io::Error::other)?;
    loop {
        match state.plaintext_bytes_to_read() {
            0 if state.peer_has_closed() => return Ok(0),
            0 => {}
            waiting if room.is_empty() => return Ok(waiting),
            _ => return tls.reader().read(room),
        }
        if tls.read_tls(&mut Plain(socket, wait))? == 0 {
            return Ok(0);
        }
        state = tls.process_new_packets().map_err(io::Error::other)?;
        // An alert or a new key may have to be sent.
        flush(tls, socket, Wait::Block)?;
    }
}

fn flush(tls: &mut ClientConnection, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut Plain(socket, wait))?;
    }
    Ok(())
}

/// The socket as TLS sees it.
struct Plain<'a>(BorrowedFd<'a>, Wait);

impl Read for Plain<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.0, room, self.1)
    }
}

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::send(self.0, bytes, self.1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_peer_that_is_gone_without_a_word_is_noticed_on_every_tcp_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            tls: Tls::Off,
        };
        let wire = Wire::open(&endpoint, Duration::from_secs(30)).unwrap();
        let option = |level, name| sys::number_option(wire.socket().as_fd(), level, name);
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        let of_tcp = |name| option(libc::IPPROTO_TCP, name);
        assert_eq!(of_tcp(libc::TCP_KEEPIDLE), 30);
        assert_eq!(of_tcp(libc::TCP_KEEPINTVL), 10);
        assert_eq!(of_tcp(libc::TCP_KEEPCNT), 3);
        assert_eq!(of_tcp(libc::TCP_USER_TIMEOUT), 60_000);
    }
}
