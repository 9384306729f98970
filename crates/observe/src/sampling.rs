//! What a sample of the series consists of.

use crate::device::DeviceClock;
use crate::error::ObserveError;
use crate::meter::{CpuMeter, CpuReading, CpuSource};
use crate::pressure::PressureClock;
use deltabench_model::plan::ServerId;
use deltabench_model::units::{seconds, to_f64};
use deltabench_proc::block::DeviceReading;
use deltabench_proc::cpu::{HostTicks, host_switches};
use deltabench_proc::memory::page_cache_bytes;
use deltabench_proc::network::Traffic;
use deltabench_proc::page_bytes;
use deltabench_proc::{KernelFile, WholeFile, number, resident_pages};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

type Values = BTreeMap<String, f64>;

const MB: f64 = 1024.0 * 1024.0;

/// Readers of everything that belongs to the host.
#[derive(Debug)]
pub(crate) struct HostSampling {
    stat: WholeFile,
    stat_before: Stat,
    pressure: Vec<(&'static str, PressureClock, u64)>,
    memory: Option<WholeFile>,
    network: Option<(WholeFile, Traffic)>,
    device: Option<(DeviceClock, DeviceReading)>,
}

impl HostSampling {
    /// Errors: `File` or `Format` if `/proc/stat` cannot be used; everything else may be missing.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, ObserveError> {
        let path = Path::new("/proc/stat");
        let mut stat = WholeFile::open(path)?;
        let stat_before = stat
            .read(parse_stat)
            .map_err(|source| ObserveError::file("read", path, source))?;
        let pressure = ["cpu", "io", "memory"]
            .into_iter()
            .zip(["pressure_cpu", "pressure_io", "pressure_memory"])
            .filter_map(|(file, key)| {
                let mut clock = PressureClock::open_at(&Path::new("/proc/pressure").join(file))?;
                let now = clock.read();
                Some((key, clock, now))
            })
            .collect();
        let network = WholeFile::open(Path::new("/proc/net/dev")).ok();
        Ok(Self {
            stat,
            stat_before,
            pressure,
            memory: WholeFile::open(Path::new("/proc/meminfo")).ok(),
            network: network.and_then(|mut file| {
                let now = file.read(Traffic::parse).ok()?;
                Some((file, now))
            }),
            device: DeviceClock::of(data_dir).map(|mut clock| {
                let now = clock.read();
                (clock, now)
            }),
        })
    }

    /// Adds what passed since the call before, or opening, which is `over` ago.
    pub(crate) fn sample(&mut self, over: Duration, values: &mut Values) {
        let mut put = |key: &str, value: f64| {
            values.insert(key.to_owned(), value);
        };
        if let Ok(now) = self.stat.read(parse_stat) {
            now.since(&self.stat_before, over, &mut put);
            self.stat_before = now;
        }
        for (key, clock, before) in &mut self.pressure {
            let now = clock.read();
            let waited = seconds(now.saturating_sub(*before)) / over.as_secs_f64();
            put(key, (100.0 * waited).min(100.0));
            *before = now;
        }
        if let Some(memory) = self
            .memory
            .as_mut()
            .and_then(|file| file.read(parse_memory).ok())
        {
            put("memory_available", memory.available);
            put("page_cache", memory.page_cache);
            put("dirty", memory.dirty);
        }
        if let Some((file, before)) = &mut self.network
            && let Ok(now) = file.read(Traffic::parse)
        {
            let rate = |now: u64, then: u64| per_second(now.saturating_sub(then), over) / 1024.0;
            put("network_received_kb", rate(now.received, before.received));
            put("network_sent_kb", rate(now.sent, before.sent));
            *before = now;
        }
        if let Some((clock, before)) = &mut self.device {
            let now = clock.read();
            device_values(&now.since(before), over, &mut put);
            *before = now;
        }
    }
}

/// Readers of one server.
#[derive(Debug)]
pub(crate) struct ServerSampling {
    cpu_key: String,
    resident_key: String,
    meter: CpuMeter,
    before: CpuReading,
    /// Its list of children, to list processes again only when it changes; absent where the kernel keeps
    /// none.
    children: Option<WholeFile>,
    listed: Vec<u8>,
    memory: KernelFile<128>,
}

impl ServerSampling {
    /// Errors: `Gone` if there is no such process; `File` if it cannot be read.
    pub(crate) fn open(server: ServerId, postmaster_pid: u32) -> Result<Self, ObserveError> {
        let own = format!("/proc/{postmaster_pid}");
        // Never a cgroup: the slices' meter may have one, and a process can only be in one.
        let mut meter = CpuMeter::open_with(postmaster_pid, CpuSource::Schedstat, "")?;
        let children = Path::new(&own).join(format!("task/{postmaster_pid}/children"));
        let mut sampling = Self {
            cpu_key: format!("server_cpu@{server}"),
            resident_key: format!("server_rss@{server}"),
            before: meter.read(),
            meter,
            children: WholeFile::open(&children).ok(),
            listed: Vec::new(),
            memory: KernelFile::open(&Path::new(&own).join("statm"))?,
        };
        sampling.children_changed();
        Ok(sampling)
    }

    /// Adds what passed since the call before, or opening; `false` if the server has ended.
    pub(crate) fn sample(&mut self, over: Duration, values: &mut Values) -> bool {
        let Ok(resident) = self.memory.read(resident_pages) else {
            return false;
        };
        if self.children_changed() && self.meter.refresh().is_err() {
            return false;
        }
        let now = self.meter.read();
        // A kernel without schedstat says 0 for everything.
        if now.cpu_ns > 0 {
            let share = seconds(now.since(&self.before).cpu_ns) / over.as_secs_f64();
            values.insert(self.cpu_key.clone(), 100.0 * share);
        }
        self.before = now;
        let resident = to_f64(resident) * to_f64(page_bytes()) / MB;
        values.insert(self.resident_key.clone(), resident);
        true
    }

    fn children_changed(&mut self) -> bool {
        let listed = &mut self.listed;
        let Some(children) = &mut self.children else {
            return true;
        };
        let same = children.read(|bytes| {
            let same = bytes == listed.as_slice();
            if !same {
                listed.clear();
                listed.extend_from_slice(bytes);
            }
            Some(same)
        });
        !same.unwrap_or(false)
    }
}

fn per_second(count: u64, over: Duration) -> f64 {
    to_f64(count) / over.as_secs_f64()
}

/// Ticks of all cores, and switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stat {
    ticks: HostTicks,
    switches: u64,
}

impl Stat {
    fn since(&self, before: &Self, over: Duration, put: &mut impl FnMut(&str, f64)) {
        let (now, then) = (&self.ticks, &before.ticks);
        let all = now.all().saturating_sub(then.all());
        if all > 0 {
            let share =
                |now: u64, then: u64| 100.0 * to_f64(now.saturating_sub(then)) / to_f64(all);
            put("cpu_user", share(now.user, then.user));
            put("cpu_system", share(now.system, then.system));
            put("cpu_iowait", share(now.iowait, then.iowait));
            let steal = (now.steal.unwrap_or(0), then.steal.unwrap_or(0));
            put("cpu_steal", share(steal.0, steal.1));
        }
        let switches = self.switches.saturating_sub(before.switches);
        put("context_switches", per_second(switches, over));
    }
}

fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    Some(Stat {
        ticks: HostTicks::parse(bytes)?,
        switches: host_switches(bytes)?,
    })
}

/// Megabytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Memory {
    available: f64,
    page_cache: f64,
    dirty: f64,
}

fn parse_memory(bytes: &[u8]) -> Option<Memory> {
    let text = std::str::from_utf8(bytes).ok()?;
    let of = |name: &str| number(text, name);
    Some(Memory {
        available: to_f64(of("MemAvailable")?) / MB,
        page_cache: to_f64(page_cache_bytes(text)?) / MB,
        dirty: to_f64(of("Dirty")? + of("Writeback")?) / MB,
    })
}

/// As iostat reckons them. Source: Documentation/block/stat.rst.
fn device_values(spent: &DeviceReading, over: Duration, put: &mut impl FnMut(&str, f64)) {
    let costs = &spent.costs;
    put("device_reads", per_second(costs.reads, over));
    put(
        "device_read_kb",
        per_second(costs.read_bytes, over) / 1024.0,
    );
    put("device_writes", per_second(costs.writes, over));
    put(
        "device_write_kb",
        per_second(costs.write_bytes, over) / 1024.0,
    );
    let mut mean = |key: &str, sum: u64, requests: u64, scale: f64| {
        if requests > 0 {
            put(key, to_f64(sum) / to_f64(requests) / scale);
        }
    };
    mean("device_read_await", costs.read_ns, costs.reads, 1e6);
    mean("device_write_await", costs.write_ns, costs.writes, 1e6);
    let (bytes, requests) = (
        costs.read_bytes + costs.write_bytes,
        costs.reads + costs.writes,
    );
    mean("device_request_kb", bytes, requests, 1024.0);
    put("device_queue", per_second(spent.queue_ms, over) / 1e3);
    let busy = per_second(spent.busy_ms, over) / 1e3;
    put("device_utilisation", (100.0 * busy).min(100.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_proc::block::DeviceCosts;

    const SECOND: Duration = Duration::from_secs(1);

    fn close(values: &Values, expected: &[(&str, f64)]) {
        for (key, value) in expected {
            assert!((values[*key] - value).abs() < 1e-9, "{key}: {values:?}");
        }
        assert_eq!(values.len(), expected.len(), "{values:?}");
    }

    fn collected(fill: impl FnOnce(&mut dyn FnMut(&str, f64))) -> Values {
        let mut values = Values::new();
        fill(&mut |key, value| {
            values.insert(key.to_owned(), value);
        });
        values
    }

    #[test]
    fn shares_are_of_all_cores_and_guest_time_counts_once() {
        let before =
            b"cpu  100 10 50 1000 20 3 2 5 90 9\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 9 0\nctxt 500\n";
        let after = b"cpu  130 20 60 1090 40 6 7 37 90 9\nintr 9 0\nctxt 650\nbtime 1\n";
        let (before, after) = (parse_stat(before).unwrap(), parse_stat(after).unwrap());
        let two_seconds = 2 * SECOND;
        let values = collected(|mut put| after.since(&before, two_seconds, &mut put));
        close(
            &values,
            &[
                ("cpu_user", 20.0),
                ("cpu_system", 9.0),
                ("cpu_iowait", 10.0),
                ("cpu_steal", 16.0),
                ("context_switches", 75.0),
            ],
        );
        let still = collected(|mut put| after.since(&after, SECOND, &mut put));
        close(&still, &[("context_switches", 0.0)]);
        assert_eq!(parse_stat(b"intr 9\n"), None);
    }

    #[test]
    fn shared_buffers_are_no_page_cache() {
        let text = b"MemTotal: 9 kB\nMemAvailable:  2048 kB\nBuffers: 1024 kB\nCached: 4096 kB\n\
            SwapCached: 77 kB\nDirty: 512 kB\nWriteback: 512 kB\nShmem: 3072 kB\n";
        let expected = Memory {
            available: 2.0,
            page_cache: 2.0,
            dirty: 1.0,
        };
        assert_eq!(parse_memory(text), Some(expected));
        assert_eq!(parse_memory(b"MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn device_figures_are_those_of_iostat_and_a_mean_of_nothing_is_absent() {
        let spent = DeviceReading {
            costs: DeviceCosts {
                reads: 0,
                read_bytes: 0,
                writes: 20,
                write_bytes: 20 * 8192,
                read_ns: 0,
                write_ns: 60_000_000,
            },
            busy_ms: 500,
            queue_ms: 3000,
        };
        let values = collected(|mut put| device_values(&spent, 2 * SECOND, &mut put));
        close(
            &values,
            &[
                ("device_reads", 0.0),
                ("device_read_kb", 0.0),
                ("device_writes", 10.0),
                ("device_write_kb", 80.0),
                ("device_write_await", 3.0),
                ("device_request_kb", 8.0),
                ("device_queue", 1.5),
                ("device_utilisation", 25.0),
            ],
        );
    }
}
