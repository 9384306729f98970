//! A server that answers every request at once with one short row, as the other end for a client whose own
//! limit is wanted.

use crate::sys;
use deltabench_model::endpoint::Endpoint;
use std::io::{self, Read, Write};
use std::iter::repeat_n;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// AuthenticationOk, BackendKeyData with zeros, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\0\0\0\0\0Z\0\0\0\x05I";
/// ParseComplete, BindComplete.
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
/// A row of one column of eight bytes, and the end of a SELECT of one row.
const ROW: &[u8] = b"D\0\0\0\x12\0\x01\0\0\0\x08deltabenC\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";
/// No request of a client is longer.
const ROOM: usize = 64 * 1024;

/// Threads of this process that answer on a local socket, until dropped.
#[derive(Debug)]
pub struct Stub {
    directory: PathBuf,
    ending: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Stub {
    /// Listens in a new directory. So many connections one after the other have threads on the first of these
    /// cores, the next on the second, and so on.
    ///
    /// Errors: the directory exists, or no socket can be made in it.
    pub fn start(directory: &Path, cores: &[usize], connections: usize) -> io::Result<Self> {
        std::fs::create_dir(directory)?;
        let listener = UnixListener::bind(socket(directory))?;
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let cores = cores.iter().flat_map(|&core| repeat_n(core, connections));
        let cores: Vec<usize> = cores.collect();
        Ok(Self {
            directory: directory.to_owned(),
            ending,
            listener: Some(std::thread::spawn(move || accept(&listener, &seen, &cores))),
        })
    }

    /// Where it listens; any login will do.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix {
            directory: self.directory.clone(),
            port: 1,
        }
    }
}

impl Drop for Stub {
    /// Connections end with their clients, which must be gone by now.
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let woken = UnixStream::connect(socket(&self.directory));
        drop(woken);
        if let Some(listener) = self.listener.take() {
            // What panicked has nothing left to clean up.
            let _ = listener.join();
        }
        // A directory that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join(".s.PGSQL.1")
}

fn accept(listener: &UnixListener, ending: &AtomicBool, cores: &[usize]) {
    let mut serving = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        let Ok(stream) = stream else { break };
        if ending.load(Ordering::Relaxed) {
            break;
        }
        let core = number.checked_rem(cores.len()).and_then(|at| cores.get(at));
        let core = core.copied();
        serving.push(std::thread::spawn(move || {
            // On another core it answers all the same.
            let _ = sys::pin_thread(core.as_slice());
            // A client that goes ends it.
            let _ = serve(stream);
        }));
    }
    for thread in serving {
        let _ = thread.join();
    }
}

fn serve(mut stream: UnixStream) -> io::Result<()> {
    let mut inbox = Inbox {
        bytes: vec![0; ROOM],
        start: 0,
        end: 0,
    };
    let start_up = inbox.message(&mut stream, 0)?;
    inbox.start += start_up;
    stream.write_all(WELCOME)?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        let length = inbox.message(&mut stream, 1)?;
        match inbox.bytes.get(inbox.start) {
            Some(b'P') => answer.extend_from_slice(PARSED),
            Some(b'B') => answer.extend_from_slice(BOUND),
            Some(b'E') => answer.extend_from_slice(ROW),
            Some(b'S') => {
                answer.extend_from_slice(READY);
                stream.write_all(&answer)?;
                answer.clear();
            }
            Some(b'X') => return Ok(()),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        inbox.start += length;
    }
}

/// What has come and was not looked at.
struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Waits for a whole message with so many bytes before its length; returns how long it is with them.
    fn message(&mut self, stream: &mut UnixStream, tag: usize) -> io::Result<usize> {
        loop {
            let seen = self.bytes.get(self.start..self.end).unwrap_or(&[]);
            if let Some(length) = seen.get(tag..).and_then(<[u8]>::first_chunk::<4>) {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(ROOM) + tag;
                if length <= seen.len() {
                    return Ok(length);
                }
            }
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            match stream.read(room)? {
                // It left, or sent more than there is room for.
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.end += count,
            }
        }
    }
}
