//! `deltabench doctor`: what on this host spoils measurements, before anything is measured.

use crate::arguments::selfcheck::DoctorArguments;
use crate::clock::{now, run_name};
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, to_json, width, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::interrupt;
use crate::request::pilot_request;
use crate::targets::resolve_servers;
use crate::text::{colour, paragraph};
use deltabench_compare::forecast::{Minutes, duration};
use deltabench_kinds::run_half;
use deltabench_model::exit;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::Severity;
use deltabench_model::json::{known, unless_blank, unless_empty};
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_observe::{Check, DiskFacts, HostSample, Outcome, preflight, read_host};
use deltabench_run::estimate::occupancy;
use deltabench_run::fleet::Host;
use deltabench_run::pilot::{self, Pilot};
use deltabench_run::planning::{self, ServerWish};
use deltabench_workload::Library;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the disk is written to.
const FSYNC_FOR: Duration = Duration::from_secs(1);

/// Seconds to look at other load: enough for its ticks of 10 ms, short enough to wait for.
const SECONDS: std::ops::RangeInclusive<f64> = 0.2..=60.0;

/// Widest line.
const WIDEST: usize = 100;

/// All that was looked at.
struct Examination {
    pilot: Option<Pilot>,
    facts: HostFacts,
    sample: Option<HostSample>,
    disk: DiskFacts,
    checks: Vec<Check>,
}

impl Examination {
    fn take(arguments: &DoctorArguments, config: &Config) -> Result<Self, Failure> {
        let host = swept_host(&arguments.servers, config)?;
        let facts = read_host();
        let sample = HostSample::take(
            Duration::from_secs_f64(arguments.seconds),
            facts.online_cores,
        );
        // After the sample: waiting for our own writes would count as other load.
        let disk = DiskFacts::probe(&host.workspaces, FSYNC_FOR);
        let checks = preflight(&facts, sample.as_ref(), Some(&disk));
        let pilot = match arguments.no_pilot {
            true => None,
            false => doctor_pilot(&arguments.target, &host, config)?,
        };
        Ok(Self {
            pilot,
            facts,
            sample,
            disk,
            checks,
        })
    }

    fn fit(&self) -> bool {
        count(&self.checks, Outcome::Found(Severity::Unfit)) == 0
    }
}

/// Looks at the host and says what it found.
pub fn doctor(arguments: &DoctorArguments, config: &Config) -> Result<u8, Failure> {
    if !SECONDS.contains(&arguments.seconds) {
        return Err(Failure::Refused(
            Problem::new(format!("cannot look for {} seconds", arguments.seconds)).hint(format!(
                "--seconds takes {} to {}",
                SECONDS.start(),
                SECONDS.end()
            )),
        ));
    }
    let file = arguments.json.as_ref().filter(|path| !is_stdout(path));
    if let Some(path) = file {
        check_writable(path).map_err(Failure::Refused)?;
    }
    let seen = Examination::take(arguments, config)?;
    let lines = |colour| page(&seen, width().min(WIDEST), colour).join("\n");
    match &arguments.json {
        Some(path) if is_stdout(path) => {
            say(&lines(false));
            print_stdout(&json(&seen)?)?;
        }
        Some(path) => {
            print_stdout(&lines(colour()))?;
            write_file(path, &json(&seen)?)?;
        }
        None => print_stdout(&lines(colour()))?,
    }
    Ok(if seen.fit() { 0 } else { exit::UNFIT })
}

fn count(checks: &[Check], outcome: Outcome) -> usize {
    checks
        .iter()
        .filter(|check| check.outcome == outcome)
        .count()
}

/// The page for the terminal.
fn page(seen: &Examination, width: usize, colour: bool) -> Vec<String> {
    let facts = &seen.facts;
    let memory = facts
        .memory_bytes
        .map(|bytes| format!("{:.1} GiB", to_f64(bytes) / to_f64(1 << 30)));
    let kernel = facts
        .kernel
        .as_ref()
        .map(|kernel| format!("Linux {kernel}"));
    let host: Vec<String> = [
        facts.cpu_model.clone(),
        Some(format!("{} cores", facts.online_cores)),
        memory,
        kernel,
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut lines = paragraph("", &host.join(", "), width);
    lines.push(String::new());
    for check in &seen.checks {
        lines.extend(check_lines(check, width, colour));
    }
    lines.push(String::new());
    if let Some(pilot) = &seen.pilot {
        lines.extend(pilot_lines(pilot, width));
        lines.push(String::new());
    }
    lines.extend(paragraph("", &summary(seen), width));
    lines
}

/// How long answers take, for one cell: a row for each precision.
fn pilot_lines(pilot: &Pilot, width: usize) -> Vec<String> {
    let what = format!(
        "time to an answer on {} with loading: half of all runs need at most this, nine of ten at most \
         the time in brackets",
        pilot.workloads.join(" and ")
    );
    let mut lines = paragraph("", &what, width);
    lines.push(format!(
        "  {:<8} {:>18} {:>18}",
        "within", "throughput", "CPU per operation"
    ));
    for row in pilot.forecast.rows() {
        lines.push(format!(
            "  {:<8} {:>18} {:>18}",
            format!("±{} %", row.half_width * 100.0),
            time(row.throughput),
            time(row.server_cpu)
        ));
    }
    lines
}

fn time(minutes: Option<Minutes>) -> String {
    match minutes {
        None => "not here".to_owned(),
        Some(found) => match found.at_most {
            Some(most) => format!("{} ({})", duration(found.likely), duration(most)),
            None => duration(found.likely),
        },
    }
}

fn check_lines(check: &Check, width: usize, colour: bool) -> Vec<String> {
    let (word, code) = match check.outcome {
        Outcome::Fine => ("ok", "32"),
        Outcome::Unknown => ("-", "2"),
        Outcome::Found(Severity::Note) => ("note", "33"),
        Outcome::Found(Severity::Confounder) => ("bad", "31"),
        Outcome::Found(Severity::Unfit) => ("unfit", "1;31"),
    };
    let mut lines = paragraph(&format!("{word:<7}{:<15}", check.title), &check.seen, width);
    let gap = " ".repeat(22);
    if !check.effect.is_empty() {
        lines.extend(paragraph(&gap, &check.effect, width));
        lines.extend(paragraph(&format!("{gap}fix: "), &check.fix, width));
    }
    if colour && let Some(first) = lines.first_mut() {
        *first = first.replacen(word, &format!("\x1b[{code}m{word}\x1b[0m"), 1);
    }
    lines
}

fn summary(seen: &Examination) -> String {
    let found = |severity| count(&seen.checks, Outcome::Found(severity));
    let counted = |number: usize, what: &str| match number {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{number} {what}s")),
    };
    let bad: Vec<String> = [
        counted(found(Severity::Note), "note"),
        counted(found(Severity::Confounder), "bad finding"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let with = if bad.is_empty() {
        String::new()
    } else {
        format!(", with {}", bad.join(" and "))
    };
    if seen.fit() {
        return format!("fit{with}");
    }
    let why: Vec<&str> = seen
        .checks
        .iter()
        .filter(|check| check.outcome == Outcome::Found(Severity::Unfit))
        .map(|check| check.title)
        .collect();
    format!("unfit ({}){with}", why.join(", "))
}

fn json(seen: &Examination) -> Result<String, Failure> {
    let sample = seen.sample.as_ref().map(|sample| {
        // Names of programs that used CPU with the percent of one core that they used, most first.
        let neighbours = sample.neighbours.iter();
        let neighbours =
            neighbours.map(|one| json!({"name": one.name, "core_percent": one.core_percent}));
        known(json!({
            "seconds": sample.seconds,
            "foreign_percent": sample.foreign_percent,
            "steal_percent": sample.steal_percent,
            "pressure_percent": sample.pressure_percent,
            "swapped_pages": sample.swapped_pages,
            "neighbours": neighbours.collect::<Value>(),
            "core_speed": sample.core_speed,
        }))
    });
    let fsync = seen.disk.fsync;
    let disk = known(json!({
        "directory": seen.disk.directory.display().to_string(),
        "file_system": seen.disk.file_system,
        "free_bytes": seen.disk.free_bytes,
        "fsync_count": fsync.map(|fsync| fsync.count),
        "fsync_median_ns": fsync.map(|fsync| fsync.median_ns),
        "fsync_p99_ns": fsync.map(|fsync| fsync.p99_ns),
    }));
    let forecast = seen.pilot.iter().flat_map(|pilot| pilot.forecast.rows());
    // Minutes to an interval of this half-width; absent where it cannot be had.
    let pilot = forecast.map(|row| {
        known(json!({
            "half_width": row.half_width,
            "throughput_minutes": row.throughput.map(|found| found.likely),
            "server_cpu_minutes": row.server_cpu.map(|found| found.likely),
        }))
    });
    to_json(&known(json!({
        "format": "deltabench.doctor",
        "version": 2,
        "deltabench_version": env!("CARGO_PKG_VERSION"),
        "fit": seen.fit(),
        "host": seen.facts,
        "sample": sample,
        "disk": disk,
        "pilot": unless_empty(pilot),
        "checks": seen.checks.iter().map(line).collect::<Value>(),
    })))
}

fn line(check: &Check) -> Value {
    let outcome = match check.outcome {
        Outcome::Fine => "ok",
        Outcome::Unknown => "unknown",
        Outcome::Found(Severity::Note) => "note",
        Outcome::Found(Severity::Confounder) => "confounder",
        Outcome::Found(Severity::Unfit) => "unfit",
    };
    known(json!({
        "kind": check.kind,
        "outcome": outcome,
        "seen": check.seen,
        "effect": unless_blank(&check.effect),
        "fix": unless_blank(&check.fix),
    }))
}

/// Half a minute of base against placebo, to say how long answers take on this host.
fn doctor_pilot(target: &str, host: &Host, config: &Config) -> Result<Option<Pilot>, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let spec = target.parse().map_err(Failure::Refused)?;
    let found = resolve_servers(&[spec], config).map_err(Failure::Refused)?;
    let Some(base) = found.first() else {
        return Ok(None);
    };
    let base = ServerWish::plain(base.clone());
    let request = pilot_request();
    let kind = run_half(&request.work);
    let plan = planning::plan(request, kind, (&base, &[]), &library).map_err(Failure::Refused)?;
    occupancy(&plan, kind, host).map_err(Failure::Refused)?;
    let run = format!("{}-doctor", run_name(now().0, plan.seed));
    let interrupted = interrupt::flag()?;
    pilot::standalone(&plan, kind, &run, host, &interrupted, &mut |text| {
        say(&text)
    })
    .map_err(Failure::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examination(foreign_percent: f64) -> Examination {
        let facts = HostFacts {
            cpu_model: Some("AMD EPYC".to_owned()),
            online_cores: 2,
            memory_bytes: Some(24 << 30),
            turbo: Some(false),
            ..HostFacts::default()
        };
        let sample = HostSample {
            seconds: 2.0,
            foreign_percent,
            ..HostSample::default()
        };
        let disk = DiskFacts::default();
        let checks = preflight(&facts, Some(&sample), Some(&disk));
        Examination {
            pilot: None,
            facts,
            sample: Some(sample),
            disk,
            checks,
        }
    }

    #[test]
    fn every_check_is_a_line_and_findings_say_effect_and_fix() {
        let lines = page(&examination(30.0), 100, false);
        assert_eq!(lines[0], "AMD EPYC, 2 cores, 24.0 GiB");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 100),
            "{lines:#?}"
        );
        assert!(
            lines.contains(&"ok     turbo          off".to_owned()),
            "{lines:#?}"
        );
        assert!(lines.contains(&"-      SMT            this host does not report it".to_owned()));
        let place = |start: &str| {
            lines
                .iter()
                .position(|line| line.starts_with(start))
                .unwrap()
        };
        let load = place("bad    other load     others use 30 % of the cores");
        assert!(lines[load + 1].starts_with("                      other programs compete"));
        assert!(place("                      fix: judge by CPU") < load);
        assert_eq!(lines.last().unwrap(), "fit, with 1 note and 1 bad finding");
    }

    #[test]
    fn a_host_without_a_core_left_is_unfit_and_says_why() {
        let seen = examination(90.0);
        assert!(!seen.fit());
        assert_eq!(summary(&seen), "unfit (other load), with 1 note");
        assert_eq!(summary(&examination(1.0)), "fit, with 1 note");
    }

    #[test]
    fn colour_marks_the_word_and_nothing_else() {
        let seen = examination(90.0);
        let plain = page(&seen, 100, false).join("\n");
        let coloured = page(&seen, 100, true).join("\n");
        assert!(coloured.contains("\x1b[1;31munfit\x1b[0m  other load"));
        let mut stripped = coloured.replace("\x1b[0m", "");
        for code in ["32", "2", "33", "31", "1;31"] {
            stripped = stripped.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn the_json_leaves_out_what_is_not_known() {
        let text = json(&examination(90.0)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["format"], "deltabench.doctor");
        assert_eq!(value["fit"], false);
        assert_eq!(value["sample"]["foreign_percent"], 90.0);
        assert!(value["disk"].get("free_bytes").is_none());
        let checks = value["checks"].as_array().unwrap();
        let load = checks
            .iter()
            .find(|check| check["kind"] == "other-load")
            .unwrap();
        assert_eq!(load["outcome"], "unfit");
        assert!(load["effect"].as_str().unwrap().contains("compete"));
    }
}
