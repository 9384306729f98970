//! The far side: answers requests about the machine that it runs on.

use super::find;
use super::lines::{End, Lines};
use super::protocol::{
    Answer, Ask, Hello, PROTOCOL, Reply, Request, SAMPLES_AT_ONCE, Samples, VERSION,
};
use crate::device::{DeviceClock, data_of};
use crate::host_facts::read_host;
use crate::sampler::Sampler;
use crate::server_counters::ServerCounters;
use crate::slice_meters::SliceMeters;
use deltabench_model::counter::Sample;
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use deltabench_proc::host::boot_id;
use deltabench_proc::process_tree;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The far side ends when no request has come for so long.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How the far side came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Nobody asks any more: the near side has closed.
    Closed,
    /// No request came for too long.
    Silent,
    /// What came was no request, or the answer could not be written.
    Broken,
}

/// Answers the requests that come in, one line each, until the other side closes or says nothing for as long
/// as `silence`.
///
/// Reads `/proc`, `/sys` and cgroups. It writes to no file, opens no port, starts no process and needs no
/// rights: what it may not read is absent.
pub fn serve(input: impl Into<OwnedFd>, mut output: impl Write, silence: Duration) -> Served {
    allow_many_files();
    let mut lines = Lines::new(input);
    let mut far = Far::default();
    loop {
        let line = match lines.next(silence) {
            Ok(line) => line,
            Err(End::Closed) => return Served::Closed,
            Err(End::Silent) => return Served::Silent,
            Err(End::Nonsense | End::Failed) => return Served::Broken,
        };
        let Ok(request) = serde_json::from_str::<Request>(&line) else {
            return Served::Broken;
        };
        let answer = far.answer(request.ask);
        let answer = Reply {
            id: request.id,
            answer: answer.unwrap_or_else(Answer::Refused),
        };
        let Ok(mut answer) = serde_json::to_vec(&answer) else {
            return Served::Broken;
        };
        answer.push(b'\n');
        let written = output.write_all(&answer).and_then(|()| output.flush());
        if written.is_err() {
            return Served::Broken;
        }
    }
}

/// What has been opened for the near side.
#[derive(Default)]
struct Far {
    greeted: bool,
    meters: BTreeMap<u64, SliceMeters>,
    counters: BTreeMap<u64, ServerCounters>,
    handles: u64,
    sampler: Option<Sampler>,
    samples: VecDeque<Sample>,
}

impl Far {
    fn answer(&mut self, ask: Ask) -> Result<Answer, Problem> {
        if let Ask::Hello { protocol, version } = ask {
            return self.greet(protocol, &version);
        }
        if !self.greeted {
            return Err(Problem::new("the agent has not been greeted"));
        }
        match ask {
            Ask::Hello { .. } | Ask::Ping => Ok(Answer::Done),
            Ask::Facts => Ok(Answer::Facts(Box::new(read_host()))),
            Ask::Postmaster(backends) => {
                find::postmaster(Path::new("/proc"), &backends).map(Answer::Postmaster)
            }
            Ask::Processes { postmaster } => process_tree(postmaster)
                .map(Answer::Processes)
                .map_err(Problem::from),
            Ask::OpenMeters {
                postmasters,
                device,
            } => self.open_meters(&postmasters, device),
            Ask::Start { meters } => {
                self.metered(meters)?.start();
                Ok(Answer::Done)
            }
            Ask::End {
                meters,
                active,
                client_cpu_ns,
            } => {
                let costs = self.metered(meters)?.end(index(active), client_cpu_ns);
                Ok(Answer::Costs(costs))
            }
            Ask::CloseMeters { meters } => {
                self.meters.remove(&meters);
                Ok(Answer::Done)
            }
            Ask::OpenCounters {
                postmaster,
                backends,
            } => {
                let counters = ServerCounters::open(postmaster).map_err(Problem::from)?;
                let handle = self.handle();
                self.counters
                    .insert(handle, counters.with_hardware(&backends));
                Ok(Answer::Counters(handle))
            }
            Ask::FinishCounters { counters } => {
                let counters = self.counters.remove(&counters).ok_or_else(unknown)?;
                Ok(Answer::Values(counters.finish()))
            }
            Ask::Watch {
                servers,
                interval_ms,
            } => self.watch(servers, Duration::from_millis(interval_ms)),
            Ask::Samples => Ok(Answer::Samples(self.samples())),
        }
    }

    fn greet(&mut self, protocol: u32, version: &str) -> Result<Answer, Problem> {
        if (protocol, version) != (PROTOCOL, VERSION) {
            return Err(other_version(protocol, version));
        }
        self.greeted = true;
        Ok(Answer::Hello(Hello {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
            boot: boot_id(),
        }))
    }

    fn open_meters(&mut self, postmasters: &[u32], device: bool) -> Result<Answer, Problem> {
        let mut meters = SliceMeters::open_hands_off(postmasters).map_err(Problem::from)?;
        let data = postmasters.first().filter(|_| device).copied().map(data_of);
        if let Some(device) = data.and_then(|data| DeviceClock::of(&data)) {
            meters = meters.with_device(device);
        }
        let sources = meters.sources();
        let handle = self.handle();
        self.meters.insert(handle, meters);
        Ok(Answer::Meters {
            meters: handle,
            sources,
        })
    }

    fn metered(&mut self, meters: u64) -> Result<&mut SliceMeters, Problem> {
        self.meters.get_mut(&meters).ok_or_else(unknown)
    }

    fn handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    fn watch(
        &mut self,
        servers: Vec<(ServerId, u32)>,
        interval: Duration,
    ) -> Result<Answer, Problem> {
        if self.sampler.is_none() {
            // Without a server there is no telling where the data is; the host can be watched without.
            let data = servers.first().map(|&(_, pid)| data_of(pid));
            let data = data.unwrap_or_else(|| PathBuf::from("/proc"));
            self.sampler = Some(Sampler::start(&data, interval).map_err(Problem::from)?);
        }
        if let Some(sampler) = &self.sampler {
            sampler.set_servers(servers);
        }
        Ok(Answer::Done)
    }

    fn samples(&mut self) -> Samples {
        let taken = self.sampler.as_ref().map(Sampler::drain);
        self.samples.extend(taken.unwrap_or_default());
        let some = self.samples.len().min(SAMPLES_AT_ONCE);
        Samples {
            samples: self.samples.drain(..some).collect(),
            more: !self.samples.is_empty(),
            now_ns: now_ns(),
        }
    }
}

/// Now, nanoseconds since the Unix epoch.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// What the far side says to a near side of another version.
pub(super) fn other_version(protocol: u32, version: &str) -> Problem {
    Problem::new("the agent is another version of deltabench").detail(format!(
        "there: {VERSION}, protocol {PROTOCOL}; here: {version}, protocol {protocol}"
    ))
}

fn unknown() -> Problem {
    Problem::new("the agent has no such meters")
}

/// A server's threads take a file each, and a session may begin with no more than 1024.
fn allow_many_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit writes the limit that it is given, setrlimit reads it; it lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // Refused, the limit stays as it was.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
