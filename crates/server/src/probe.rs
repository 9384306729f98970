//! Does a server let its superuser in? One start-up message on the socket and, where it has to be told
//! something, one command.
//!
//! The same for every version: 9.6 does not say in `postmaster.pid` when it is ready, and what counts
//! in the end is that a connection is accepted.

use crate::SUPERUSER;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Limit for each read and write.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest message that a server sends before it is ready; more means that it is no PostgreSQL.
const LONGEST_MESSAGE: u32 = 64 << 10;

/// What the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Ready,
    /// Nobody listens, or it is still starting.
    NotYet,
    /// It is up and will not have us: SQLSTATE and message.
    Refused(String, String),
}

/// Asks the server behind a socket.
pub(crate) fn probe(socket: &Path) -> Answer {
    UnixStream::connect(socket)
        .and_then(|stream| talk(stream, None))
        .unwrap_or(Answer::NotYet)
}

/// Runs a command that gives no rows.
///
/// Errors: what the server or the system says.
pub(crate) fn command(socket: &Path, sql: &str) -> io::Result<()> {
    match talk(UnixStream::connect(socket)?, Some(sql))? {
        Answer::Ready => Ok(()),
        Answer::NotYet => Err(io::Error::other("the server is not ready")),
        Answer::Refused(sqlstate, message) => {
            Err(io::Error::other(format!("{message} (SQLSTATE {sqlstate})")))
        }
    }
}

fn talk(mut stream: UnixStream, mut sql: Option<&str>) -> io::Result<Answer> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(&startup_message())?;
    loop {
        let (kind, body) = read_message(&mut stream)?;
        match kind {
            b'Z' => match sql.take() {
                Some(sql) => stream.write_all(&query(sql))?,
                None => {
                    // Terminate, so that the backend leaves without a line in the log.
                    stream.write_all(&[b'X', 0, 0, 0, 4])?;
                    return Ok(Answer::Ready);
                }
            },
            b'E' => return Ok(refusal(&body)),
            b'R' if body.iter().any(|byte| *byte != 0) => {
                return Ok(Answer::Refused(
                    "28000".into(),
                    "the server asks for a password".into(),
                ));
            }
            _ => {}
        }
    }
}

/// Source: PostgreSQL manual, "Message Formats", StartupMessage: length, 3.0, pairs of strings, NUL.
fn startup_message() -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for word in ["user", SUPERUSER, "database", "postgres", ""] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [length.to_be_bytes().as_slice(), &body].concat()
}

/// Source: PostgreSQL manual, "Message Formats", Query.
fn query(sql: &str) -> Vec<u8> {
    let length = u32::try_from(sql.len() + 5).unwrap_or(u32::MAX);
    [b"Q", length.to_be_bytes().as_slice(), sql.as_bytes(), b"\0"].concat()
}

fn read_message(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut kind = [0_u8; 1];
    let mut length = [0_u8; 4];
    stream.read_exact(&mut kind)?;
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if !(4..=LONGEST_MESSAGE).contains(&length) {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut body = vec![0_u8; usize::try_from(length - 4).unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let [kind] = kind;
    Ok((kind, body))
}

/// Source: PostgreSQL manual, "Error and Notice Message Fields": `C` is the SQLSTATE, `M` the message.
fn refusal(body: &[u8]) -> Answer {
    let field = |wanted: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        let text = fields.find_map(|field| field.strip_prefix(&[wanted]));
        String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
    };
    match field(b'C').as_str() {
        // cannot_connect_now: starting up or in recovery.
        "57P03" => Answer::NotYet,
        sqlstate => Answer::Refused(sqlstate.to_owned(), field(b'M')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], length.as_slice(), body].concat()
    }

    fn answer_to(reply: Vec<u8>) -> Answer {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let mut start = vec![0_u8; startup_message().len()];
            theirs.read_exact(&mut start).unwrap();
            theirs.write_all(&reply).unwrap();
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            let mut goodbye = Vec::new();
            // A client that leaves without reading all of the reply resets the connection.
            let _ = theirs.read_to_end(&mut goodbye);
            goodbye
        });
        let answer = talk(ours, None).unwrap_or(Answer::NotYet);
        let goodbye = server.join().unwrap();
        assert_eq!(goodbye == b"X\0\0\0\x04", answer == Answer::Ready);
        answer
    }

    #[test]
    fn a_server_is_ready_only_when_it_says_so() {
        let welcome = [
            message(b'R', &[0; 4]),
            message(b'S', b"a\0b\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        assert_eq!(answer_to(welcome), Answer::Ready);
        assert_eq!(
            answer_to(message(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0")),
            Answer::NotYet
        );
        assert_eq!(
            answer_to(message(b'E', b"SFATAL\0C53300\0Mtoo many clients\0\0")),
            Answer::Refused("53300".into(), "too many clients".into())
        );
        assert!(matches!(
            answer_to(message(b'R', &[0, 0, 0, 3])),
            Answer::Refused(..)
        ));
    }

    #[test]
    fn nonsense_and_silence_are_not_ready() {
        assert_eq!(
            answer_to(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            Answer::NotYet
        );
        assert_eq!(answer_to(Vec::new()), Answer::NotYet);
        assert_eq!(probe(Path::new("/no/such/socket")), Answer::NotYet);
    }
}
