//! A server that answers each statement as a test says, over both protocols, with as much of transactions
//! and of skipping to the next Sync as PostgreSQL has.

use deltabench_model::endpoint::{Endpoint, Login};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// What a statement comes to.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A command that has no rows.
    Done,
    /// Columns, and rows of texts.
    Rows(Vec<&'static str>, Vec<Vec<Option<&'static str>>>),
    /// An error.
    Fail(&'static str),
    /// No answer for so long, on this connection alone.
    Hang(Duration),
    /// The start of `COPY … FROM STDIN`.
    CopyIn,
}

type Play = Box<dyn FnMut(&str) -> Reply + Send>;

struct Shared {
    play: Mutex<Play>,
    /// Statements in the order in which they were executed, with their parameters; `sync` for each Sync.
    log: Mutex<Vec<String>>,
    /// Answers are written in pieces of so many bytes.
    piece: usize,
    open: Mutex<Vec<UnixStream>>,
}

/// The server, until dropped.
pub struct Puppet {
    directory: TempDir,
    shared: Arc<Shared>,
}

impl Puppet {
    /// Starts listening; `play` answers all statements but BEGIN, COMMIT, END and ROLLBACK.
    pub fn start(piece: usize, play: impl FnMut(&str) -> Reply + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.1")).unwrap();
        let shared = Arc::new(Shared {
            play: Mutex::new(Box::new(play)),
            log: Mutex::default(),
            piece,
            open: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        // Ends with the test: nobody can connect to it any more.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                shared
                    .open
                    .lock()
                    .unwrap()
                    .push(stream.try_clone().unwrap());
                std::thread::spawn(move || Serving::new(&stream, &shared).serve());
            }
        });
        Self { directory, shared }
    }

    /// Where it listens and who may come.
    pub fn address(&self) -> (Endpoint, Login) {
        let login = Login {
            user: "puppet".into(),
            database: "puppet".into(),
            password: None,
            options: Vec::new(),
            confirm_path: false,
        };
        let directory = self.directory.path().to_owned();
        (Endpoint::Unix { directory, port: 1 }, login)
    }

    /// What was executed since the last call.
    pub fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.log.lock().unwrap())
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

struct Serving<'a> {
    stream: &'a UnixStream,
    shared: &'a Shared,
    out: Vec<u8>,
    state: u8,
    /// After an error of the extended protocol: until the next Sync.
    skipping: bool,
    statements: HashMap<String, String>,
    /// The statement that was bound, with its parameters, and what it comes to once it is known.
    bound: String,
    reply: Option<Reply>,
}

/// Text up to a zero, and the rest.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap();
    let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
    (text, &bytes[end + 1..])
}

fn number(bytes: &[u8]) -> (usize, &[u8]) {
    let (number, rest) = bytes.split_first_chunk::<2>().unwrap();
    (usize::from(u16::from_be_bytes(*number)), rest)
}

impl<'a> Serving<'a> {
    fn new(stream: &'a UnixStream, shared: &'a Shared) -> Self {
        Self {
            stream,
            shared,
            out: Vec::new(),
            state: b'I',
            skipping: false,
            statements: HashMap::new(),
            bound: String::new(),
            reply: None,
        }
    }

    fn body(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        self.out.push(tag);
        let length = u32::try_from(body.len() + 4).unwrap();
        self.out.extend_from_slice(&length.to_be_bytes());
        self.out.extend_from_slice(body);
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        let mut stream = self.stream;
        out.chunks(self.shared.piece)
            .try_for_each(|piece| stream.write_all(piece))
    }

    fn ready(&mut self) -> io::Result<()> {
        let state = [self.state];
        self.message(b'Z', &state);
        self.flush()
    }

    fn serve(mut self) -> io::Result<()> {
        self.body()?;
        self.message(b'R', &[0; 4]);
        self.message(b'K', &[0, 0, 0, 1, 0, 0, 0, 0]);
        self.ready()?;
        loop {
            let mut tag = [0];
            self.stream.read_exact(&mut tag)?;
            let body = self.body()?;
            match tag[0] {
                b'S' => {
                    self.skipping = false;
                    self.shared.log.lock().unwrap().push("sync".into());
                    self.ready()?;
                }
                b'Q' => self.query(&text(&body).0)?,
                b'X' => return Ok(()),
                _ if self.skipping => {}
                tag => self.extended(tag, &body),
            }
        }
    }

    fn query(&mut self, sql: &str) -> io::Result<()> {
        for sql in sql.split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
            let reply = self.play(sql);
            if let Reply::Rows(columns, _) = &reply {
                self.describe(columns);
            }
            if !self.execute(&reply) {
                break;
            }
        }
        self.skipping = false;
        self.ready()
    }

    fn extended(&mut self, tag: u8, body: &[u8]) {
        match tag {
            b'P' => {
                let (name, rest) = text(body);
                let (sql, rest) = text(rest);
                let sql = sql.trim_end_matches(';').to_owned();
                assert_eq!(rest, [0, 0], "no types are given");
                let known = self.statements.contains_key(&name) && !name.is_empty();
                assert!(!known, "{name} is prepared twice");
                if let Some(sqlstate) = sql.strip_prefix("unknown ") {
                    // Becomes known when somebody has created it.
                    if !self
                        .shared
                        .log
                        .lock()
                        .unwrap()
                        .iter()
                        .any(|sql| sql == "create")
                    {
                        return self.error(sqlstate);
                    }
                }
                self.statements.insert(name, sql);
                self.message(b'1', b"");
            }
            b'C' => {
                assert_eq!(body[0], b'S');
                self.statements.remove(&text(&body[1..]).0);
                self.message(b'3', b"");
            }
            b'B' => self.bind(body),
            b'D' => {
                assert_eq!(body, b"P\0");
                let bound = self.bound.clone();
                let reply = self.play(&bound);
                match &reply {
                    Reply::Rows(columns, _) => self.describe(columns),
                    _ => self.message(b'n', b""),
                }
                self.reply = Some(reply);
            }
            b'E' => {
                assert_eq!(body, [0; 5]);
                let reply = self.reply.take().unwrap();
                self.execute(&reply);
            }
            tag => panic!("message {:?}", char::from(tag)),
        }
    }

    fn bind(&mut self, body: &[u8]) {
        let (portal, rest) = text(body);
        assert_eq!(portal, "");
        let (name, rest) = text(rest);
        let (formats, rest) = number(rest);
        let (count, mut rest) = number(rest);
        assert_eq!(formats, 0, "all parameters are text");
        let mut bound = self.statements[&name].clone();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            let (value, after) = after.split_at(usize::try_from(length).unwrap_or(0));
            let value = String::from_utf8(value.to_vec()).unwrap();
            bound += &if length < 0 {
                " [null]".to_owned()
            } else {
                format!(" [{value}]")
            };
            rest = after;
        }
        assert_eq!(rest, [0, 1, 0, 0], "all results are text");
        self.bound = bound;
        self.message(b'2', b"");
    }

    /// What a statement comes to, which may depend on the transaction.
    fn play(&mut self, sql: &str) -> Reply {
        self.shared.log.lock().unwrap().push(sql.to_owned());
        match sql.to_ascii_uppercase().as_str() {
            "ROLLBACK" | "COMMIT" | "END" => self.state = b'I',
            _ if self.state == b'E' => return Reply::Fail("25P02"),
            "BEGIN" => self.state = b'T',
            _ => return (self.shared.play.lock().unwrap())(sql),
        }
        Reply::Done
    }

    fn describe(&mut self, columns: &[&str]) {
        let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
        for column in columns {
            body.extend_from_slice(column.as_bytes());
            body.extend_from_slice(&[0; 19]);
        }
        self.message(b'T', &body);
    }

    fn execute(&mut self, reply: &Reply) -> bool {
        match reply {
            Reply::Fail(sqlstate) => {
                self.error(sqlstate);
                return false;
            }
            Reply::CopyIn => {
                self.message(b'G', &[0; 3]);
                return false;
            }
            Reply::Hang(time) => std::thread::sleep(*time),
            Reply::Done => {}
            Reply::Rows(_, rows) => {
                for row in rows {
                    let mut body = u16::try_from(row.len()).unwrap().to_be_bytes().to_vec();
                    for value in row {
                        let length = value.map_or(-1, |text| i32::try_from(text.len()).unwrap());
                        body.extend_from_slice(&length.to_be_bytes());
                        body.extend_from_slice(value.unwrap_or_default().as_bytes());
                    }
                    self.message(b'D', &body);
                }
            }
        }
        self.message(b'C', b"DONE\0");
        true
    }

    fn error(&mut self, sqlstate: &str) {
        let body = format!("SERROR\0VERROR\0C{sqlstate}\0Mas asked\0\0");
        self.message(b'E', body.as_bytes());
        self.skipping = true;
        if self.state == b'T' {
            self.state = b'E';
        }
    }
}
