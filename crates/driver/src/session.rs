//! The blocking way over the wire: start-up, authentication, messages one by one.

use crate::error::{ServerError, WireError};
use crate::inbox::Inbox;
use crate::request::{TooLarge, message, zero_ended};
use crate::sys::{self, Wait};
use crate::wire::{OpenError, Wire};
use deltabench_model::endpoint::{Endpoint, Login};
use postgres_protocol::authentication::{md5_hash, sasl};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Protocol version 3.0.
const PROTOCOL: u32 = 3 << 16;
/// CancelRequest: length and code.
///
/// Source: PostgreSQL manual, "Message Formats".
const CANCEL: [u8; 8] = *b"\0\0\0\x10\x04\xd2\x16\x2e";
/// Limit for getting a CancelRequest to the server.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);
/// Far above any message of set-up work; a longer one is nonsense.
const LARGEST_MESSAGE: usize = 64 << 20;

/// A message from the server.
pub struct Message {
    /// Its first byte.
    pub tag: u8,
    pub body: Vec<u8>,
}

/// What names a process of the server, and what proves that we may ask it to give up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendKey {
    /// Process id.
    pub pid: u32,
    secret: [u8; 4],
}

impl BackendKey {
    /// Asks the server to give up what the process is doing: best effort, no answer is waited for.
    pub fn cancel(self, endpoint: &Endpoint) -> Result<(), OpenError> {
        let mut request = CANCEL.to_vec();
        request.extend_from_slice(&self.pid.to_be_bytes());
        request.extend_from_slice(&self.secret);
        Ok(Wire::open(endpoint, CANCEL_LIMIT)?.send(&request)?)
    }
}

/// An authenticated connection that is ready for commands.
#[derive(Debug)]
pub struct Session {
    wire: Wire,
    inbox: Inbox,
    limit: Option<Duration>,
    key: BackendKey,
    /// Whether the server is on this machine.
    local: bool,
}

impl Session {
    /// Connects, authenticates and waits until the server is ready. `limit` holds for each send and receive.
    pub fn connect(endpoint: &Endpoint, login: &Login, limit: Duration) -> Result<Self, WireError> {
        let refused = |error| match error {
            OpenError::Io(source) => WireError::Connect {
                endpoint: endpoint.to_string(),
                source,
            },
            OpenError::Tls(failure) => WireError::Tls {
                endpoint: endpoint.to_string(),
                failure,
            },
        };
        let mut session = Self {
            wire: Wire::open(endpoint, limit).map_err(refused)?,
            inbox: Inbox::new(),
            limit: Some(limit),
            key: BackendKey::default(),
            local: endpoint.is_local(),
        };
        session.start_up(login)?;
        if login.confirm_path {
            session.confirm_path(endpoint, login)?;
        }
        Ok(session)
    }

    /// Process id of the server's end.
    pub fn pid(&self) -> u32 {
        self.key.pid
    }

    /// Changes how long one send or receive may take; `None` means for ever.
    pub fn set_limit(&mut self, limit: Option<Duration>) -> Result<(), WireError> {
        sys::set_timeout(self.wire.socket().as_fd(), limit)
            .map_err(|error| WireError::transfer("setting its time limit", error, None))?;
        self.limit = limit;
        Ok(())
    }

    /// Wire and receive buffer, for a connection of the hot path.
    pub fn into_parts(self) -> (Wire, Inbox, BackendKey) {
        (self.wire, self.inbox, self.key)
    }

    /// Sends all of `bytes`.
    pub fn send(&mut self, bytes: &[u8], doing: &str) -> Result<(), WireError> {
        self.wire
            .send(bytes)
            .map_err(|error| WireError::transfer(doing, error, self.limit))
    }

    /// The next message, whatever it is.
    pub fn receive(&mut self, doing: &str) -> Result<Message, WireError> {
        loop {
            let pending = self.inbox.pending();
            let mut wanted = 5;
            if let Some((&[tag, a, b, c, d], rest)) = pending.split_first_chunk::<5>() {
                let length =
                    usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
                if !(4..LARGEST_MESSAGE).contains(&length) {
                    return Err(WireError::protocol(format!(
                        "message {:?} of length {length}",
                        char::from(tag)
                    )));
                }
                if let Some(body) = rest.get(..length - 4) {
                    let body = body.to_vec();
                    let left = pending.len() - 1 - length;
                    self.inbox.keep(left, 5);
                    return Ok(Message { tag, body });
                }
                wanted = length + 1;
            }
            let left = pending.len();
            self.inbox.keep(left, wanted);
            match self.inbox.receive(&mut self.wire, Wait::Block) {
                Ok(0) => {
                    return Err(WireError::Closed {
                        doing: doing.to_owned(),
                    });
                }
                Ok(_) => {}
                Err(error) => return Err(WireError::transfer(doing, error, self.limit)),
            }
        }
    }

    /// The next message that answers something; notices and the like are passed over.
    pub fn answer(&mut self, doing: &str) -> Result<Message, WireError> {
        loop {
            let message = self.receive(doing)?;
            if !matches!(message.tag, b'N' | b'S' | b'A') {
                return Ok(message);
            }
        }
    }

    /// An answer that has come before anything was asked, without waiting for one.
    pub fn early_answer(&mut self, doing: &str) -> Result<Option<Message>, WireError> {
        while !self.inbox.is_empty() || self.wire.has_input() {
            let message = self.receive(doing)?;
            if !matches!(message.tag, b'N' | b'S' | b'A') {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Receives until ReadyForQuery, giving each message to `each`; an error of the server is returned at
    /// the end.
    pub fn until_ready(
        &mut self,
        doing: &str,
        mut each: impl FnMut(&Message) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let mut failure = None;
        loop {
            let message = self.receive(doing)?;
            match message.tag {
                b'Z' => return failure.map_or(Ok(()), |error| Err(WireError::Server(error))),
                b'E' => {
                    let error = ServerError::parse(&message.body);
                    if error.is_fatal() {
                        return Err(WireError::Server(error));
                    }
                    failure.get_or_insert(error);
                }
                b'N' | b'S' | b'A' => {}
                _ => each(&message)?,
            }
        }
    }

    /// Asks whether the session has the `search_path` that it was asked to have.
    fn confirm_path(&mut self, endpoint: &Endpoint, login: &Login) -> Result<(), WireError> {
        let mut options = login.options.iter().rev();
        let Some((_, asked)) = options.find(|(name, _)| name == "search_path") else {
            return Ok(());
        };
        let mut out = Vec::new();
        let sql = b"SELECT pg_catalog.current_setting('search_path')";
        message(&mut out, b'Q', |out| zero_ended(out, sql))?;
        self.send(&out, "asking for search_path")?;
        let mut found = String::new();
        self.until_ready("asking for search_path", |message| {
            if message.tag == b'D' {
                // One field: behind the number of fields and its length.
                let field = message.body.get(6..).unwrap_or_default();
                found = String::from_utf8_lossy(field).into_owned();
            }
            Ok(())
        })?;
        if found == *asked {
            return Ok(());
        }
        Err(WireError::SearchPath {
            endpoint: endpoint.to_string(),
            asked: asked.clone(),
            found,
        })
    }

    fn start_up(&mut self, login: &Login) -> Result<(), WireError> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        let fixed = [("user", &login.user), ("database", &login.database)];
        let options = login
            .options
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        for (name, value) in fixed.into_iter().chain(options) {
            zero_ended(&mut out, name.as_bytes());
            zero_ended(&mut out, value.as_bytes());
        }
        out.push(0);
        let length = u32::try_from(out.len())
            .map_err(|_| WireError::protocol("a start-up message of 4 GiB"))?;
        out.splice(..4, length.to_be_bytes());
        self.send(&out, "starting up")?;
        self.authenticate(login)?;
        let mut key = BackendKey::default();
        self.until_ready("starting up", |message| {
            if let (b'K', Some(&[a, b, c, d, secret @ ..])) =
                (message.tag, message.body.first_chunk::<8>())
            {
                let pid = u32::from_be_bytes([a, b, c, d]);
                key = BackendKey { pid, secret };
            }
            Ok(())
        })?;
        self.key = key;
        Ok(())
    }

    fn authenticate(&mut self, login: &Login) -> Result<(), WireError> {
        loop {
            let (method, body) = self.authentication_request()?;
            match method {
                0 => return Ok(()),
                // Whoever sits between could ask for it just as well.
                3 if self.wire.is_plain() && !self.local => {
                    let what = "the server asks for the password in clear text over an unencrypted \
                                connection; use sslmode=require or above";
                    return Err(WireError::Authentication {
                        what: what.to_owned(),
                    });
                }
                3 => {
                    let password = password(login, "a password")?;
                    self.send_answer(|out| zero_ended(out, password.as_bytes()))?;
                }
                5 => {
                    let salt = body
                        .first_chunk::<4>()
                        .ok_or_else(|| WireError::protocol("md5 without salt"))?;
                    let password = password(login, "a password (md5)")?;
                    let hash = md5_hash(login.user.as_bytes(), password.as_bytes(), *salt);
                    self.send_answer(|out| zero_ended(out, hash.as_bytes()))?;
                }
                10 => self.scram(login, &body)?,
                other => {
                    let what = format!(
                        "the server asks for method {other}, which deltabench does not speak"
                    );
                    return Err(WireError::Authentication { what });
                }
            }
        }
    }

    /// The method of an authentication request, and the rest of its body.
    fn authentication_request(&mut self) -> Result<(u32, Vec<u8>), WireError> {
        loop {
            let message = self.receive("authenticating")?;
            match message.tag {
                b'R' => {
                    let first = message.body.split_first_chunk::<4>();
                    let (method, rest) = first
                        .ok_or_else(|| WireError::protocol("an empty authentication request"))?;
                    return Ok((u32::from_be_bytes(*method), rest.to_vec()));
                }
                b'E' => return Err(WireError::Server(ServerError::parse(&message.body))),
                b'N' => {}
                tag => {
                    return Err(WireError::protocol(format!(
                        "message {:?} at start-up",
                        char::from(tag)
                    )));
                }
            }
        }
    }

    fn scram(&mut self, login: &Login, offered: &[u8]) -> Result<(), WireError> {
        let name = sasl::SCRAM_SHA_256.as_bytes();
        if !offered
            .split(|byte| *byte == 0)
            .any(|method| method == name)
        {
            let what = "the server offers no SASL method that deltabench speaks (SCRAM-SHA-256)"
                .to_owned();
            return Err(WireError::Authentication { what });
        }
        let refused = |error: io::Error| WireError::Authentication {
            what: error.to_string(),
        };
        let password = password(login, "a password (SCRAM-SHA-256)")?;
        let mut scram =
            sasl::ScramSha256::new(password.as_bytes(), sasl::ChannelBinding::unsupported());
        self.send_answer(|out| {
            zero_ended(out, name);
            let first = scram.message();
            out.extend_from_slice(&i32::try_from(first.len()).unwrap_or(0).to_be_bytes());
            out.extend_from_slice(first);
        })?;
        scram.update(&self.sasl_step(11)?).map_err(refused)?;
        self.send_answer(|out| out.extend_from_slice(scram.message()))?;
        scram.finish(&self.sasl_step(12)?).map_err(refused)
    }

    fn sasl_step(&mut self, wanted: u32) -> Result<Vec<u8>, WireError> {
        match self.authentication_request()? {
            (method, body) if method == wanted => Ok(body),
            (method, _) => Err(WireError::protocol(format!(
                "authentication step {method} instead of {wanted}"
            ))),
        }
    }

    fn send_answer(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        let mut out = Vec::new();
        message(&mut out, b'p', body)?;
        self.send(&out, "authenticating")
    }
}

impl From<TooLarge> for WireError {
    fn from(error: TooLarge) -> Self {
        Self::protocol(error.to_string())
    }
}

fn password<'a>(login: &'a Login, wanted: &str) -> Result<&'a str, WireError> {
    login
        .password
        .as_deref()
        .ok_or_else(|| WireError::Authentication {
            what: format!(
                "the server asks user {} for {wanted}, but none is given",
                login.user
            ),
        })
}
