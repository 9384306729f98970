//! The same pages, served read only to a browser on this machine.
//!
//! The runtime of the server begins with [`serve`] and lives in no process that measures. Nothing here can
//! start a measurement, and nothing changes a record of the lab.

mod answer;
mod door;
mod events;

use crate::lab::Lab;
use answer::{Answer, answer};
pub use door::Door;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use deltabench_model::problem::Problem;
use deltabench_store::Store;

/// Connections at once. A browser opens six.
const CONNECTIONS: usize = 64;
/// Bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// Lines of the head of a request.
const HEAD_LINES: usize = 64;
/// How long a connection may take for the head of a request, the next one on it included.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection lives. A browser that follows a run connects again by itself.
const LIFE: Duration = Duration::from_mins(10);

/// What keeps the threads of this process off cores, or on all of them again if none are named.
pub type KeepOff = Box<dyn Fn(&[usize]) + Send>;

/// What the requests share.
struct Site {
    lab: Mutex<Shown>,
    /// For those that follow a run: an analysis never makes them wait.
    watched: Mutex<Store>,
    door: Door,
    followers: Semaphore,
}

/// The lab, and the cores that its server keeps off.
struct Shown {
    lab: Lab,
    keep_off: KeepOff,
    kept_off: Vec<usize>,
}

/// Serves a lab until the process is asked to end; `ready` is told the address once it listens.
///
/// Errors: the address cannot be used, the lab cannot be read.
pub fn serve(
    lab: Lab,
    (address, door): (SocketAddr, Door),
    keep_off: KeepOff,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .map_err(|error| failed("start the server of pages", &error))?;
    runtime.block_on(async {
        let listener = listen(address).await?;
        let ended = ended();
        ready(
            listener
                .local_addr()
                .map_err(|error| failed("listen", &error))?,
        );
        serve_until(lab, listener, (door, keep_off), ended).await
    })?;
    // A page that is being made is not waited for.
    runtime.shutdown_background();
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Problem> {
    TcpListener::bind(address).await.map_err(|error| {
        Problem::new(format!("cannot listen on {address}"))
            .detail(error.to_string())
            .hint("choose another port with --port N")
    })
}

/// Serves until `ended`.
async fn serve_until(
    lab: Lab,
    listener: TcpListener,
    (door, keep_off): (Door, KeepOff),
    ended: impl Future<Output = ()>,
) -> Result<(), Problem> {
    let watched = Store::open_to_read(lab.directory())?;
    let site = Arc::new(Site {
        lab: Mutex::new(Shown {
            lab,
            keep_off,
            kept_off: Vec::new(),
        }),
        watched: Mutex::new(watched),
        door,
        followers: Semaphore::new(CONNECTIONS / 4),
    });
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Of more than there are places for, the connection is closed at once.
                    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                        let site = Arc::clone(&site);
                        tokio::spawn(async move {
                            connection(stream, site).await;
                            drop(place);
                        });
                    }
                }
                // Out of descriptors, for example: others may end meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = ended => {}
    }
    Ok(())
}

async fn connection(stream: TcpStream, site: Arc<Site>) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<Answer, std::convert::Infallible>(answer(&request, site).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off is no trouble of ours.
    let _ = tokio::time::timeout(LIFE, served).await;
}

/// Until the process is interrupted or told to end.
async fn ended() {
    let interrupted = tokio::signal::ctrl_c();
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupted => {}
        () = terminated => {}
    }
}

fn failed(what: &str, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot {what}"))
        .detail(error.to_string())
        .of_machine()
}

impl Shown {
    /// Looks at the lab again, and keeps off the cores of a run that says which it uses.
    ///
    /// Errors: the store cannot be read.
    fn refresh(&mut self) -> Result<(), Problem> {
        self.lab.refresh()?;
        let cores = self.lab.measured_cores();
        if cores != self.kept_off {
            (self.keep_off)(&cores);
            self.kept_off = cores;
        }
        Ok(())
    }
}
