//! A fake server: speaks as much of PostgreSQL's protocol as the driver needs, and misbehaves on request.

use deltabench_model::endpoint::{Endpoint, Login};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far more than a busy machine needs for anything that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes wrong. Executions are counted from 1 over all connections; BEGIN and COMMIT count like any
/// other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// From this execution on, nothing is answered.
    Stall {
        /// First execution without an answer.
        from: u64,
    },
    /// This one execution is answered late.
    Freeze { at: u64, pause: Duration },
    /// From this execution on, no connection is answered for a while.
    FreezeAll {
        /// First execution without an answer.
        at: u64,
        pause: Duration,
    },
    /// This execution is answered by closing the connection, and no new one is taken.
    Die { at: u64 },
    /// This execution is answered by FATAL 57P01, and then the connection is closed.
    Terminate { at: u64 },
    /// This execution is answered by these bytes and nothing else.
    Lie { at: u64, bytes: Vec<u8> },
    /// This execution's answer lacks its ReadyForQuery.
    NotReady { at: u64 },
    /// Every `every`-th execution that is neither BEGIN nor COMMIT fails.
    Fail {
        /// Distance between failures.
        every: u64,
        sqlstate: &'static str,
    },
    /// Each execution is preceded by a notice and a changed setting.
    Chatter,
}

/// How start-up goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authentication {
    /// No password.
    #[default]
    Trust,
    /// Password in clear text.
    Cleartext,
    /// MD5 with the salt `salt`.
    Md5,
    /// A method that nobody speaks.
    Unknown,
    /// No answer at all.
    Silence,
}

/// How a fake server behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    pub rows: u64,
    pub row_bytes: usize,
    /// Pause before each answer.
    pub pause: Duration,
    /// Pause before a start-up is answered.
    pub start_up_pause: Duration,
    /// Answers are written in pieces of this many bytes.
    pub pieces: Option<usize>,
    /// What goes wrong.
    pub troubles: Vec<Trouble>,
    /// How start-up goes.
    pub authentication: Authentication,
}

/// What a fake server has been sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Bodies of Bind messages, in the order of arrival.
    pub binds: Vec<Vec<u8>>,
    /// SQL of prepared statements by name, with the OIDs of their parameters.
    pub statements: HashMap<String, (String, Vec<u32>)>,
    pub queries: Vec<String>,
    /// Parameters of start-up messages.
    pub start_ups: Vec<Vec<(String, String)>>,
    /// Passwords as they came.
    pub passwords: Vec<String>,
    /// Connections that said goodbye.
    pub goodbyes: u64,
    /// Process ids of CancelRequests.
    pub cancels: Vec<u32>,
}

#[derive(Debug, Default)]
struct Shared {
    behaviour: Behaviour,
    executions: AtomicU64,
    /// Executions that are neither BEGIN nor COMMIT.
    work: AtomicU64,
    ending: AtomicBool,
    /// When a freeze of all connections ends.
    frozen_until: Mutex<Option<Instant>>,
    record: Mutex<Record>,
    /// A signal for each CancelRequest.
    cancelled: Condvar,
    /// Connections being served, and a signal for each one that ends.
    open: Mutex<HashMap<u32, UnixStream>>,
    changed: Condvar,
}

/// A server in threads of this process, listening on a local socket until dropped.
#[derive(Debug)]
pub struct FakeServer {
    directory: PathBuf,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl FakeServer {
    /// Starts listening.
    pub fn start(behaviour: Behaviour) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("deltabench-fake-{}-{number}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(".s.PGSQL.1")).unwrap();
        let shared = Arc::new(Shared {
            behaviour,
            ..Shared::default()
        });
        let accepting = Arc::clone(&shared);
        let listener = std::thread::spawn(move || accept(&listener, &accepting));
        Self {
            directory,
            shared,
            listener: Some(listener),
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix {
            directory: self.directory.clone(),
            port: 1,
        }
    }

    /// A login it takes.
    pub fn login(&self) -> Login {
        Login {
            user: "fake".into(),
            database: "fake".into(),
            password: Some("secret".into()),
            options: Vec::new(),
            confirm_path: false,
        }
    }

    /// Endpoint and login.
    pub fn address(&self) -> (Endpoint, Login) {
        (self.endpoint(), self.login())
    }

    /// What it has been sent so far.
    pub fn record(&self) -> Record {
        self.shared.record.lock().unwrap().clone()
    }

    /// Executions so far.
    pub fn executions(&self) -> u64 {
        self.shared.executions.load(Ordering::SeqCst)
    }

    /// Waits until there were this many CancelRequests; false if that takes longer than a minute.
    pub fn was_cancelled(&self, times: usize) -> bool {
        let record = self.shared.record.lock().unwrap();
        let limit = PATIENCE;
        let (record, _) = self
            .shared
            .cancelled
            .wait_timeout_while(record, limit, |record| record.cancels.len() < times)
            .unwrap();
        record.cancels.len() == times
    }

    /// Waits until every connection that was made has ended; false if that takes longer than a minute.
    pub fn all_closed(&self) -> bool {
        let open = self.shared.open.lock().unwrap();
        let limit = PATIENCE;
        let (open, _) = self
            .shared
            .changed
            .wait_timeout_while(open, limit, |open| !open.is_empty())
            .unwrap();
        open.is_empty()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        for (_, stream) in self.shared.open.lock().unwrap().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the listener, which then sees that it must end.
        let _ = UnixStream::connect(self.directory.join(".s.PGSQL.1"));
        if let Some(listener) = self.listener.take() {
            let joined = listener.join();
            let _ = std::fs::remove_dir_all(&self.directory);
            assert!(
                joined.is_ok() || std::thread::panicking(),
                "the fake server panicked"
            );
        }
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    let mut serving = Vec::new();
    for (number, stream) in (1..).zip(listener.incoming()) {
        let Ok(stream) = stream else { break };
        if shared.ending.load(Ordering::SeqCst) {
            break;
        }
        shared
            .open
            .lock()
            .unwrap()
            .insert(number, stream.try_clone().unwrap());
        let shared = Arc::clone(shared);
        serving.push(std::thread::spawn(move || {
            let end = Serving {
                stream: &stream,
                shared: &shared,
                number,
                in_transaction: b'I',
            }
            .serve();
            let _ = stream.shutdown(Shutdown::Both);
            shared.open.lock().unwrap().remove(&number);
            shared.changed.notify_all();
            if let Err(error) = end {
                // The peer closing at any moment is normal; nonsense from the driver is not.
                assert!(
                    error.kind() != io::ErrorKind::InvalidData,
                    "the driver sent nonsense: {error}"
                );
            }
        }));
    }
    for thread in serving {
        assert!(
            thread.join().is_ok() || std::thread::panicking(),
            "a fake connection panicked"
        );
    }
}

/// One connection.
struct Serving<'a> {
    stream: &'a UnixStream,
    shared: &'a Shared,
    number: u32,
    in_transaction: u8,
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "as asked")
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    out.extend_from_slice(body);
}

fn error_body(severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    format!("S{severity}\0V{severity}\0C{sqlstate}\0M{text}\0\0").into_bytes()
}

/// The text up to the next zero, and what follows it.
fn zero_ended(bytes: &[u8]) -> io::Result<(String, &[u8])> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .ok_or_else(|| nonsense("text without end"))?;
    Ok((
        String::from_utf8_lossy(&bytes[..end]).into_owned(),
        &bytes[end + 1..],
    ))
}

impl Serving<'_> {
    fn record(&self, note: impl FnOnce(&mut Record)) {
        note(&mut self.shared.record.lock().unwrap());
    }

    fn exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn length(&mut self) -> io::Result<usize> {
        let bytes = self.exact(4)?;
        let length = usize::try_from(u32::from_be_bytes(bytes.try_into().unwrap())).unwrap();
        if (4..1 << 26).contains(&length) {
            Ok(length - 4)
        } else {
            Err(nonsense("absurd length"))
        }
    }

    fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let tag = self.exact(1)?[0];
        let length = self.length()?;
        Ok((tag, self.exact(length)?))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let piece = self.shared.behaviour.pieces.unwrap_or(bytes.len()).max(1);
        bytes
            .chunks(piece)
            .try_for_each(|piece| self.stream.write_all(piece))
    }

    fn serve(mut self) -> io::Result<()> {
        self.start_up()?;
        let mut out = Vec::new();
        let mut statement = String::new();
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                b'P' => {
                    self.parse(&body)?;
                    message(&mut out, b'1', b"");
                }
                b'B' => {
                    statement = zero_ended(zero_ended(&body)?.1)?.0;
                    self.record(|record| record.binds.push(body));
                }
                b'E' => self.execute(&statement, &mut out)?,
                b'S' => {
                    if !out.is_empty() && !out.ends_with(NO_READY) {
                        message(&mut out, b'Z', &[self.in_transaction]);
                    } else {
                        out.truncate(out.len().saturating_sub(NO_READY.len()));
                    }
                    let answer = std::mem::take(&mut out);
                    self.send(&answer)?;
                }
                b'Q' => self.query(&body)?,
                b'X' => {
                    self.record(|record| record.goodbyes += 1);
                    return Ok(());
                }
                _ => return Err(nonsense("unknown message")),
            }
        }
    }

    /// Says nothing until the peer leaves.
    fn silence(&mut self) -> io::Result<()> {
        io::copy(&mut self.stream, &mut io::sink())?;
        Err(gone())
    }

    fn start_up(&mut self) -> io::Result<()> {
        let length = self.length()?;
        let body = self.exact(length)?;
        if let Some(&[0x04, 0xd2, 0x16, 0x2e, a, b, c, d]) = body.first_chunk() {
            let pid = u32::from_be_bytes([a, b, c, d]);
            self.record(|record| record.cancels.push(pid));
            self.shared.cancelled.notify_all();
            return Err(gone());
        }
        let mut parameters = Vec::new();
        let mut rest = &body[4..];
        while rest.len() > 1 {
            let (name, after) = zero_ended(rest)?;
            let (value, after) = zero_ended(after)?;
            parameters.push((name, value));
            rest = after;
        }
        self.record(|record| record.start_ups.push(parameters));
        std::thread::sleep(self.shared.behaviour.start_up_pause);
        let asked: &[u8] = match self.shared.behaviour.authentication {
            Authentication::Trust => b"",
            Authentication::Cleartext => b"\0\0\0\x03",
            Authentication::Md5 => b"\0\0\0\x05salt",
            Authentication::Unknown => b"\0\0\0\x09",
            Authentication::Silence => return self.silence(),
        };
        if !asked.is_empty() {
            let mut out = Vec::new();
            message(&mut out, b'R', asked);
            self.send(&out)?;
            let (_, password) = self.receive()?;
            let (password, _) = zero_ended(&password)?;
            self.record(|record| record.passwords.push(password));
        }
        let mut out = Vec::new();
        message(&mut out, b'R', &[0; 4]);
        message(&mut out, b'S', b"server_version\x0015.1\0");
        message(
            &mut out,
            b'K',
            &[self.number.to_be_bytes(), [0; 4]].concat(),
        );
        message(&mut out, b'Z', b"I");
        self.send(&out)
    }

    fn parse(&mut self, body: &[u8]) -> io::Result<()> {
        let (name, rest) = zero_ended(body)?;
        let (sql, rest) = zero_ended(rest)?;
        let oids = rest[2..]
            .chunks(4)
            .map(|oid| u32::from_be_bytes(oid.try_into().unwrap()))
            .collect();
        self.record(|record| {
            record.statements.insert(name, (sql, oids));
        });
        Ok(())
    }

    fn query(&mut self, body: &[u8]) -> io::Result<()> {
        let (sql, _) = zero_ended(body)?;
        let mut out = Vec::new();
        if sql == "ROLLBACK" {
            self.in_transaction = b'I';
        }
        if let Some(code) = sql.strip_prefix("fail ") {
            message(&mut out, b'E', &error_body("ERROR", code, "as asked"));
        } else {
            message(&mut out, b'C', format!("{sql}\0").as_bytes());
        }
        message(&mut out, b'Z', &[self.in_transaction]);
        self.record(|record| record.queries.push(sql));
        self.send(&out)
    }

    fn execute(&mut self, statement: &str, out: &mut Vec<u8>) -> io::Result<()> {
        let count = self.shared.executions.fetch_add(1, Ordering::SeqCst) + 1;
        let sql = self
            .shared
            .record
            .lock()
            .unwrap()
            .statements
            .get(statement)
            .map(|known| known.0.clone());
        let sql = sql.ok_or_else(|| nonsense("unknown statement"))?;
        let control = matches!(sql.as_str(), "BEGIN" | "COMMIT");
        let work = self
            .shared
            .work
            .fetch_add(u64::from(!control), Ordering::SeqCst)
            + 1;
        std::thread::sleep(self.shared.behaviour.pause);
        let mut ready = true;
        for trouble in &self.shared.behaviour.troubles {
            match trouble {
                Trouble::Stall { from } if count >= *from => {
                    return self.silence();
                }
                Trouble::Freeze { at, pause } if count == *at => self.rest(*pause),
                Trouble::FreezeAll { at, pause } if count >= *at => self.freeze(*pause),
                Trouble::Die { at } if count == *at => return Err(gone()),
                Trouble::Terminate { at } if count == *at => {
                    let text = "terminating connection due to administrator command";
                    message(out, b'E', &error_body("FATAL", "57P01", text));
                    self.stream.write_all(out)?;
                    return Err(gone());
                }
                Trouble::Lie { at, bytes } if count == *at => {
                    out.extend_from_slice(bytes);
                    out.extend_from_slice(NO_READY);
                    return Ok(());
                }
                Trouble::NotReady { at } if count == *at => ready = false,
                Trouble::Fail { every, sqlstate } if !control && work.is_multiple_of(*every) => {
                    message(out, b'2', b"");
                    message(out, b'E', &error_body("ERROR", sqlstate, "as asked"));
                    if self.in_transaction == b'T' {
                        self.in_transaction = b'E';
                    }
                    return Ok(());
                }
                Trouble::Chatter => {
                    message(out, b'N', &error_body("NOTICE", "00000", "by the way"));
                    message(out, b'S', b"TimeZone\0UTC\0");
                }
                _ => {}
            }
        }
        self.answer(&sql, out);
        if !ready {
            out.extend_from_slice(NO_READY);
        }
        Ok(())
    }

    /// Sleeps, but not after the test has ended.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.shared.ending.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }

    /// Waits until the one freeze of all connections is over; the first to come starts it.
    fn freeze(&self, pause: Duration) {
        let until = *self
            .shared
            .frozen_until
            .lock()
            .unwrap()
            .get_or_insert_with(|| Instant::now() + pause);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }

    fn answer(&mut self, sql: &str, out: &mut Vec<u8>) {
        message(out, b'2', b"");
        match sql {
            "BEGIN" => self.in_transaction = b'T',
            "COMMIT" => self.in_transaction = b'I',
            _ => {
                let width = self.shared.behaviour.row_bytes;
                let mut row = vec![0, 1];
                row.extend_from_slice(&u32::try_from(width).unwrap().to_be_bytes());
                row.resize(6 + width, b'Z');
                for _ in 0..self.shared.behaviour.rows {
                    message(out, b'D', &row);
                }
            }
        }
        message(out, b'C', b"SELECT\0");
    }
}

/// Ends an answer that must not be followed by ReadyForQuery; never sent.
const NO_READY: &[u8] = b"<no ready for query>";
