//! What others do with the machine during a short look.

use crate::affinity::{own_affinity, pin_self, restore};
use crate::core_speed::core_speed;
use crate::host_clock::HostClock;
use crate::pressure::PressureClock;
use deltabench_model::fact::CoreSpeed;
use deltabench_model::units::{seconds, to_f64};
use deltabench_proc::memory::swapped_pages;
use deltabench_proc::tick_ns;
use deltabench_proc::{Process, process_ids};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Cores that are looked at, and for how long each: neighbours come and go within tenths of a second.
const CORES_LOOKED_AT: usize = 8;
const CORE_LOOK: Duration = Duration::from_millis(250);

/// A program beside us that used CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Its name, as the kernel has it: at most 15 characters, no arguments.
    pub name: String,
    /// CPU of all processes of that name, percent of one core.
    pub core_percent: f64,
}

/// Other load, sampled while nothing of ours runs. What cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostSample {
    /// How long was looked.
    pub seconds: f64,
    /// Share of all cores' time that others used, percent.
    pub foreign_percent: f64,
    /// Share of all cores' time that the hypervisor took, percent.
    pub steal_percent: Option<f64>,
    /// Share of the time in which some task waited for a core, percent.
    pub pressure_percent: Option<f64>,
    /// Pages that went to swap or came from it.
    pub swapped_pages: Option<u64>,
    /// Programs that used CPU, most first.
    pub neighbours: Vec<Neighbour>,
    /// The core whose speed changed most while it did the same work again and again; looked at afterwards.
    pub core_speed: Option<CoreSpeed>,
}

impl HostSample {
    /// Looks for so long, asleep. `None` on a host without `/proc/stat`.
    ///
    /// Resolution: a neighbour's CPU counts in ticks of 10 ms, so 2 s tell 0.5 % of a core.
    pub fn take(length: Duration, online_cores: u64) -> Option<Self> {
        let mut clock = HostClock::open().ok()?;
        let mut pressure = PressureClock::open();
        let started = Instant::now();
        let before = (
            clock.read(),
            pressure.as_mut().map(PressureClock::read),
            swapped_pages(),
            processes(),
        );
        std::thread::sleep(length);
        let waited = pressure.as_mut().map(PressureClock::read).zip(before.1);
        let host = clock.read().since(&before.0);
        let took = started.elapsed().as_secs_f64();
        let cores_time = took * to_f64(online_cores.max(1));
        let share = |ns: u64| 100.0 * seconds(ns) / cores_time;
        Some(Self {
            seconds: took,
            foreign_percent: share(host.busy_ns).min(100.0),
            steal_percent: Some(share(host.steal_ns)),
            pressure_percent: waited
                .map(|(now, then)| 100.0 * seconds(now.saturating_sub(then)) / took),
            swapped_pages: swapped_pages()
                .zip(before.2)
                .map(|(now, then)| now.saturating_sub(then)),
            neighbours: neighbours(&before.3, &processes(), took),
            core_speed: most_changing_core(),
        })
    }
}

/// Looks at some of the cores that we may run on, one after the other; `None` where we cannot choose one.
fn most_changing_core() -> Option<CoreSpeed> {
    let cores = own_affinity().ok()?;
    let looked_at = cores.iter().take(CORES_LOOKED_AT).filter_map(|&core| {
        pin_self(&[core]).ok()?;
        Some(core_speed(CORE_LOOK))
    });
    let most = looked_at.max_by(|one, other| one.swing().total_cmp(&other.swing()));
    restore(&cores).ok()?;
    most
}

/// A process by number and start, so that a number used again is not taken for the same.
type Identity = (u32, u64);

/// Name and CPU ticks of every process but this one.
fn processes() -> BTreeMap<Identity, (String, u64)> {
    let own = std::process::id();
    let ids = process_ids(Path::new("/proc")).unwrap_or_default();
    ids.into_iter()
        .filter(|&pid| pid != own)
        .filter_map(|pid| {
            let (stat, name) = Process::of(pid).stat_and_name()?;
            Some((
                (pid, stat.start_ticks),
                (name, stat.user_ticks + stat.system_ticks),
            ))
        })
        .collect()
}

fn neighbours(
    before: &BTreeMap<Identity, (String, u64)>,
    after: &BTreeMap<Identity, (String, u64)>,
    took: f64,
) -> Vec<Neighbour> {
    let mut ticks: BTreeMap<&str, u64> = BTreeMap::new();
    for (identity, (name, now)) in after {
        // One that was not there before has spent all its CPU since.
        let then = before.get(identity).map_or(0, |(_, then)| *then);
        *ticks.entry(name).or_default() += now.saturating_sub(then);
    }
    let mut named: Vec<Neighbour> = ticks
        .into_iter()
        .filter(|(_, ticks)| *ticks > 0)
        .map(|(name, ticks)| Neighbour {
            name: name.to_owned(),
            core_percent: 100.0 * seconds(ticks * tick_ns()) / took,
        })
        .collect();
    named.sort_by(|one, other| other.core_percent.total_cmp(&one.core_percent));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(u32, u64, &str, u64)]) -> BTreeMap<Identity, (String, u64)> {
        rows.iter()
            .map(|(pid, start, name, ticks)| ((*pid, *start), ((*name).to_owned(), *ticks)))
            .collect()
    }

    #[test]
    fn neighbours_are_added_up_by_name_most_first() {
        let before = table(&[(1, 5, "init", 50), (7, 9, "cc1", 10), (8, 9, "cc1", 10)]);
        let after = table(&[
            (1, 5, "init", 50),
            (7, 9, "cc1", 30),
            (8, 99, "rustc", 120),
            (9, 99, "cc1", 5),
        ]);
        let found = neighbours(&before, &after, 2.0);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["rustc", "cc1"]);
        let ratio = found[0].core_percent / found[1].core_percent;
        assert!((ratio - 120.0 / 25.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_busy_neighbour_is_seen_by_name_and_we_are_not() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let look = || HostSample::take(Duration::from_millis(300), 2).unwrap();
        let sees = |sample: &HostSample| sample.neighbours.iter().any(|one| one.name == "sh");
        let mut sample = look();
        // Others may have the cores for longer than one look takes.
        for _ in 0..20 {
            if sees(&sample) {
                break;
            }
            sample = look();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(sample.seconds >= 0.3 && sample.foreign_percent > 0.0);
        assert!(sees(&sample), "{sample:?}");
        let own = Process::of(std::process::id()).name();
        assert!(
            processes()
                .keys()
                .all(|(pid, _)| *pid != std::process::id()),
            "{own:?}"
        );
    }
}
