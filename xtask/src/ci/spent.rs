//! What the checks cost: seconds of the clock and of CPUs, for each phase, job and test.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How many of the longest tests are named.
const NAMED: usize = 12;

/// Ticks in a second of `/proc/stat`: USER_HZ, which is 100 on every machine that we know.
const TICKS: f64 = 100.0;

/// The clock, and what all CPUs have done so far.
#[derive(Clone, Copy)]
pub struct Since {
    began: Instant,
    cpus: Option<Cpus>,
}

/// Ticks since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cpus {
    busy: u64,
    all: u64,
}

impl Since {
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self {
            began: Instant::now(),
            cpus: cpus(&stat),
        }
    }

    /// `405 s, 790 CPU s, CPUs 97 % busy`. The CPUs have the work of others on the machine too.
    pub fn spent(&self) -> String {
        let now = Self::now();
        let seconds = now.began.duration_since(self.began).as_secs();
        let more = now.cpus.zip(self.cpus).and_then(|(now, then)| {
            let part = |of: fn(Cpus) -> u64| f64_of(of(now).checked_sub(of(then))?);
            let (busy, all) = (part(|cpus| cpus.busy)?, part(|cpus| cpus.all)?);
            (all > 0.0).then(|| {
                let share = 100.0 * busy / all;
                format!(", {:.0} CPU s, CPUs {share:.0} % busy", busy / TICKS)
            })
        });
        format!("{seconds} s{}", more.unwrap_or_default())
    }
}

/// A whole number as one that can be divided; absent where it has more digits than 32 bits.
fn f64_of(number: u64) -> Option<f64> {
    u32::try_from(number).ok().map(f64::from)
}

/// The first line of `/proc/stat`: all its times but guests', which are in the user's too (proc_stat(5)).
fn cpus(stat: &str) -> Option<Cpus> {
    let times = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = times
        .split_whitespace()
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let all = times.iter().sum::<u64>();
    // Idle, and idle while a disk works.
    let idle = times.get(3)?.saturating_add(*times.get(4)?);
    Some(Cpus {
        busy: all.checked_sub(idle)?,
        all,
    })
}

/// Waits for a program, and says how long it and all that it has waited for used a CPU.
///
/// Nobody else may wait for this child.
pub fn wait(child: &Child) -> std::io::Result<(ExitStatus, Duration)> {
    use std::os::unix::process::ExitStatusExt;
    let pid = libc::pid_t::try_from(child.id())
        .map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live, exclusively borrowed values of the types that wait4 writes.
        let ended = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if ended == pid {
            let used = duration(usage.ru_utime).saturating_add(duration(usage.ru_stime));
            return Ok((ExitStatus::from_raw(status), used));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
}

/// Tests that said how long they took: `test NAME ... ok <1.234s>`.
#[derive(Default)]
pub struct Longest(Vec<(Duration, String)>);

impl Longest {
    /// Adds the tests of a job's output.
    pub fn add(&mut self, job: &str, output: &str) {
        for line in output.lines() {
            if let Some((name, time)) = timed(line) {
                self.0.push((time, format!("{name} of {job}")));
            }
        }
        self.0.sort_by(|one, two| two.cmp(one));
        self.0.truncate(NAMED);
    }

    pub fn print(&self) {
        for (time, name) in &self.0 {
            println!("ci: {:4.0} s {name}", time.as_secs_f64());
        }
    }
}

fn timed(line: &str) -> Option<(&str, Duration)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = rest.trim_end().strip_suffix("s>")?.rsplit_once('<')?;
    let time = Duration::try_from_secs_f64(time.parse().ok()?).ok()?;
    Some((name, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn waiting_for_a_disk_is_idle_and_guests_are_counted_once() {
        let stat = "cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 1 2 3 4\n";
        let found = cpus(stat);
        assert_eq!(
            found,
            Some(Cpus {
                busy: 171,
                all: 621
            })
        );
        assert_eq!(cpus("intr 1"), None);
    }

    #[test]
    fn the_cpu_of_a_program_includes_what_it_waited_for() {
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("sh -c '{busy}'; exit 3")]);
        let (status, used) = wait(&shell.spawn().unwrap()).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(used >= Duration::from_millis(5), "{used:?}");
    }

    #[test]
    fn the_longest_tests_come_first_whatever_else_a_job_says() {
        let mut longest = Longest::default();
        let lines: String = (0..20)
            .map(|at| format!("test t{at} ... ok <{at}.250s>\nTesting x.trycmd:2 ... ok 20ms\n"))
            .collect();
        longest.add("a", &lines);
        longest.add("b", "test whole ... FAILED <19.500s>\ntest odd ... ok\n");
        let names: Vec<&str> = longest.0.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names.len(), NAMED);
        assert_eq!(names[..3], ["whole of b", "t19 of a", "t18 of a"]);
    }
}
