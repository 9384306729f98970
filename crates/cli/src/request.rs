//! What measuring commands have in common, from what was typed to a request for a plan.

use crate::arguments::conditions::{Checksums, Conditions, TransportWord};
use crate::arguments::global::words;
use crate::arguments::shape::{
    Ending, HoursWord, InconclusiveWord, JobsWord, PlacementWord, Shape,
};
use crate::clock::seed_from_clock;
use crate::defaults;
use crate::limits::limits;
use deltabench_compare::looks;
use deltabench_document::amounts;
use deltabench_model::plan::{
    CacheState, CellOrder, DataSize, DataState, Gate, GatedMetric, Limits, Observing, Pins,
    Placement, ProfilePlan, Stopping, Timing, Transport, WorkloadSource,
};
use deltabench_model::problem::Problem;
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_observe::own_affinity;
use deltabench_run::planning::{Jobs, Request, Selection};
use std::path::Path;

/// What the options that all measuring commands have in common stand for: a request without workloads, one
/// client, fresh tables.
///
/// Errors: a percentage, time, core list or setting that cannot be read.
pub fn without_workloads(
    shape: &Shape,
    conditions: &Conditions,
    quick: bool,
) -> Result<Request, Problem> {
    let seed = conditions.seed.unwrap_or_else(seed_from_clock);
    let request = held(small(Vec::new(), defaults::QUICK_ROWS, 0, seed), conditions)?;
    let timing = timing(shape, quick, &request.limits)?;
    let visit_seconds = timing.visit_seconds;
    Ok(Request {
        pins: shape.pin.as_deref().map(pins).transpose()?,
        placement: placement(shape.placement),
        jobs: jobs(shape.jobs),
        delta: shape.delta.as_deref().map(percent).transpose()?,
        stopping: stopping(&shape.ending, timing.blocks)?,
        gate: in_hours(gate(&shape.ending)?, shape.sessions.gate_hours),
        timing,
        observing: Observing {
            counters: !conditions.no_counters,
            waits_per_second: shape.waits.unwrap_or(0),
            profile: shape
                .sample
                .map(|rate| profile(rate, visit_seconds, shape.force)),
            counting: None,
            counted_after: shape.counts.wanted(),
            sensitivity: false,
            confirmed_after: None,
        },
        probes: shape.probes,
        ..request
    })
}

/// Seconds of a warm-up at most: a day.
const WARMUP_MAX: f64 = 86_400.0;

/// As long as is measured.
fn profile(rate: u32, visit_seconds: f64, forced: bool) -> ProfilePlan {
    let milliseconds = to_u64(visit_seconds * 1e3);
    ProfilePlan {
        rate,
        milliseconds: u32::try_from(milliseconds).unwrap_or(u32::MAX),
        forced,
    }
}

/// A request with what is held on all servers.
///
/// Errors: a setting or a limit that cannot be read.
pub fn held(request: Request, conditions: &Conditions) -> Result<Request, Problem> {
    let (limits, cache) = limits(&conditions.limits)?;
    Ok(Request {
        same_target: conditions.same_target,
        transport: transport(conditions.transport),
        checksums: checksums(conditions.checksums),
        settings: settings(&conditions.settings)?,
        limits,
        cache,
        ..request
    })
}

fn transport(word: TransportWord) -> Transport {
    match word {
        TransportWord::Socket => Transport::Socket,
        TransportWord::Tcp => Transport::Tcp,
        TransportWord::Tls => Transport::Tls,
    }
}

fn checksums(word: Checksums) -> Option<bool> {
    match word {
        Checksums::On => Some(true),
        Checksums::Off => Some(false),
        Checksums::Default => None,
    }
}

/// The request of the doctor's pilot: a cell that reads and one that writes.
pub fn pilot_request() -> Request {
    let names = ["point-query", "update-index"].map(str::to_owned);
    small(
        names.to_vec(),
        defaults::QUICK_ROWS,
        defaults::QUICK_BLOCKS,
        seed_from_clock(),
    )
}

/// A target against itself, one client, everything else as `compare --quick` has it.
pub fn small(only: Vec<String>, rows: u64, blocks: u32, seed: u64) -> Request {
    Request {
        same_target: true,
        selection: Selection::Named(only),
        sources: Vec::new(),
        state: DataState::Fresh,
        order: CellOrder::Drawn,
        rate: None,
        transport: Transport::Socket,
        pins: None,
        jobs: Jobs::Count(1),
        clients: vec![1],
        data: DataSize { tables: 1, rows },
        timing: Timing {
            blocks,
            slice_ms: defaults::SLICE_MS,
            slice_jitter: defaults::SLICE_JITTER,
            visit_seconds: defaults::QUICK_VISIT_SECONDS,
            warmup_seconds: defaults::WARMUP_SECONDS,
            connections_per_visit: defaults::CONNECTIONS_PER_VISIT,
            sustained: false,
            write_seconds: None,
            warmup_chosen: false,
            rotated: false,
            deadline_seconds: None,
        },
        placement: placement(None),
        delta: None,
        stopping: Stopping::Sequential {
            looks: looks(blocks),
        },
        gate: Gate::default(),
        checksums: Some(true),
        settings: Vec::new(),
        limits: Limits::default(),
        cache: CacheState::AsIs,
        observing: Observing::default(),
        probes: false,
        work: Work::default(),
        placebo: true,
        seed,
        command: words(),
    }
}

/// A file of the user's, with its text.
///
/// Errors: it cannot be read.
pub fn source(path: &Path) -> Result<WorkloadSource, Problem> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(WorkloadSource { file, text }),
        Err(error) => Err(Problem::new(format!("cannot read {file}"))
            .detail(error.to_string())
            .hint("`deltabench workloads show point-query` prints a definition to start from")),
    }
}

fn timing(shape: &Shape, quick: bool, limits: &Limits) -> Result<Timing, Problem> {
    let budget = shape.ending.budget.as_deref().map(time).transpose()?;
    let (visit_seconds, slice_ms) = match (&limits.storage, limits.memory_bytes) {
        (Some(_), _) => (
            defaults::THROTTLED_VISIT_SECONDS,
            defaults::THROTTLED_SLICE_MS,
        ),
        (None, Some(_)) => (
            defaults::SQUEEZED_VISIT_SECONDS,
            defaults::SQUEEZED_SLICE_MS,
        ),
        (None, None) if shape.ending.precision.is_some() => {
            (defaults::PRECISION_VISIT_SECONDS, defaults::SLICE_MS)
        }
        (None, None) if quick => (defaults::QUICK_VISIT_SECONDS, defaults::SLICE_MS),
        (None, None) => (defaults::VISIT_SECONDS, defaults::SLICE_MS),
    };
    let visit_seconds = shape.visit_seconds.unwrap_or(visit_seconds);
    let chosen = shape.warmup.as_deref().map(warmup).transpose()?;
    let warmup_seconds = match (chosen, limits.memory_bytes) {
        (Some(seconds), _) => seconds,
        (None, Some(_)) => defaults::SQUEEZED_WARMUP_SECONDS,
        // Of a visit shorter than that, no more is thrown away than is measured.
        (None, None) => visit_seconds.min(defaults::WARMUP_SECONDS),
    };
    Ok(Timing {
        blocks: shape
            .blocks
            .unwrap_or(match (&shape.ending.precision, quick) {
                // Who asks for a width asks for the blocks that it takes.
                (Some(_), _) => defaults::PRECISION_BLOCKS,
                (None, true) if shape.sessions.sessions.is_some() => defaults::QUICK_SESSION_BLOCKS,
                (None, false) if shape.sessions.sessions.is_some() => defaults::SESSION_BLOCKS,
                (None, true) => defaults::QUICK_BLOCKS,
                (None, false) => defaults::BLOCKS,
            }),
        slice_ms: shape.slice_ms.unwrap_or(slice_ms),
        slice_jitter: defaults::SLICE_JITTER,
        visit_seconds,
        warmup_seconds,
        // New connections would need the warm-up again.
        connections_per_visit: match chosen {
            Some(_) => 1,
            None => defaults::CONNECTIONS_PER_VISIT,
        },
        sustained: false,
        write_seconds: shape.write_seconds,
        warmup_chosen: chosen.is_some(),
        rotated: false,
        deadline_seconds: budget.or(quick.then_some(defaults::QUICK_DEADLINE_SECONDS)),
    })
}

/// Seconds of a warm-up that the user chose.
///
/// Errors: no time, or one of more than a day.
fn warmup(text: &str) -> Result<f64, Problem> {
    let seconds = time(text).map_err(|problem| problem.hint("write for example --warmup 10m"))?;
    if seconds > WARMUP_MAX {
        return Err(Problem::new(format!("a warm-up of {text} is too long"))
            .detail("every visit to a cell has it, on each server")
            .hint("write for example --warmup 10m"));
    }
    Ok(seconds)
}

/// When a cell has been measured enough. A look asks about throughput, so none ends a cell whose gate names
/// something else: what is open of that would stay open.
///
/// Errors: a percentage that cannot be read.
pub fn stopping(ending: &Ending, blocks: u32) -> Result<Stopping, Problem> {
    let is_other = |metric: &GatedMetric| *metric != GatedMetric::Throughput;
    Ok(match &ending.precision {
        Some(text) => Stopping::Precision {
            half_width: percent(text)?,
        },
        None if ending.fixed || ending.gate_on.iter().any(is_other) => Stopping::Fixed,
        None => Stopping::Sequential {
            looks: looks(blocks),
        },
    })
}

/// What the exit code answers.
///
/// Errors: a percentage that cannot be read.
pub fn gate(ending: &Ending) -> Result<Gate, Problem> {
    let not_worse_than = ending.not_worse_than.as_deref().map(percent).transpose()?;
    Ok(Gate {
        on: ending.gate || not_worse_than.is_some() || !ending.gate_on.is_empty(),
        not_worse_than,
        inconclusive_passes: ending.on_inconclusive == InconclusiveWord::Pass,
        metrics: ending.gate_on.clone(),
        another_hour: false,
    })
}

/// To say that a gate's answer has to hold in another hour is to ask for a gate.
fn in_hours(gate: Gate, hours: HoursWord) -> Gate {
    let another_hour = hours == HoursWord::Another;
    Gate {
        on: gate.on || another_hour,
        another_hour,
        ..gate
    }
}

fn placement(asked: Option<PlacementWord>) -> (Placement, Placement) {
    match asked {
        None => (Placement::SameCore, Placement::Split),
        Some(PlacementWord::SameCore) => (Placement::SameCore, Placement::SameCore),
        Some(PlacementWord::Split) => (Placement::Split, Placement::Split),
        Some(PlacementWord::Free) => (Placement::Free, Placement::Free),
    }
}

fn jobs(asked: Option<JobsWord>) -> Jobs {
    match asked {
        Some(JobsWord::Count(count)) => Jobs::Count(count),
        Some(JobsWord::Auto) | None => Jobs::Auto {
            cores: own_affinity().map_or(1, |cores| u32::try_from(cores.len()).unwrap_or(1)),
        },
    }
}

/// `server=0,client=1`, `server=2-5+7,client=0-1`.
fn pins(text: &str) -> Result<Pins, Problem> {
    let bad = || {
        Problem::new(format!("`{text}` does not say which cores"))
            .hint("write for example --pin server=0,client=1 or --pin server=2-5+7,client=0-1")
    };
    let (mut server, mut client) = (None, None);
    for part in text.split(',') {
        let (side, list) = part.split_once('=').ok_or_else(bad)?;
        let place = match side.trim() {
            "server" => &mut server,
            "client" => &mut client,
            _ => return Err(bad()),
        };
        if place.replace(cores(list).ok_or_else(bad)?).is_some() {
            return Err(bad());
        }
    }
    match (server, client) {
        (Some(server), Some(client)) => Ok(Pins { server, client }),
        _ => Err(bad()),
    }
}

/// Refuses cores given by hand that this process may not run on; servers that run elsewhere have none here.
///
/// Errors: the first of them.
pub fn check_pins(pins: Option<&Pins>, servers_here: bool) -> Result<(), Problem> {
    match (pins, own_affinity()) {
        (Some(pins), Ok(there)) => check_cores(pins, servers_here, &there),
        _ => Ok(()),
    }
}

fn check_cores(pins: &Pins, servers_here: bool, there: &[usize]) -> Result<(), Problem> {
    let of_servers = pins.server.iter().filter(|_| servers_here);
    let mut asked = of_servers.chain(&pins.client);
    let Some(core) = asked.find(|core| !there.contains(core)) else {
        return Ok(());
    };
    let list = match (there.first(), there.last()) {
        (Some(first), Some(last)) if first < last && last - first + 1 == there.len() => {
            format!("{first}-{last}")
        }
        _ => {
            let each: Vec<String> = there.iter().map(usize::to_string).collect();
            each.join("+")
        }
    };
    // The kernel leaves out cores that are not there without a word, as long as one is.
    Err(Problem::new(format!("core {core} is not there"))
        .detail(format!("this process may use {list}"))
        .hint("write --pin with these cores"))
}

/// `0`, `2-5`, `2-5+7`; at most 4096 cores.
fn cores(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= 4096 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

/// `90s`, `15m`, `1.5h` as seconds.
pub fn time(text: &str) -> Result<f64, Problem> {
    amounts::seconds(text).ok_or_else(|| {
        Problem::new(format!("`{}` is not a time", text.trim()))
            .hint("write for example --budget 15m, 90s or 2h")
    })
}

/// A pause, `45m` or `0s`, as seconds.
///
/// Errors: no time.
pub fn pause(text: &str) -> Result<f64, Problem> {
    match text.trim() {
        "0" | "0s" | "0m" | "0h" => Ok(0.0),
        text => time(text).map_err(|problem| Problem {
            hint: Some("write for example --gap 45m, 2h or 0s".to_owned()),
            ..problem
        }),
    }
}

/// `3%` or `3` as 0.03.
pub fn percent(text: &str) -> Result<f64, Problem> {
    let share = amounts::percent(text).map(|percent| percent / 100.0);
    share.ok_or_else(|| {
        Problem::new(format!("`{text}` is not a percentage")).hint("write for example 2% or 0.5%")
    })
}

/// The first option that is given, of several that have no meaning here.
pub fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    let mut given = options.iter().filter(|(is_given, _)| *is_given);
    given.next().map(|(_, option)| *option)
}

/// `NAME=VALUE` each.
pub fn settings(texts: &[String]) -> Result<Vec<(String, String)>, Problem> {
    texts.iter().map(|text| setting(text)).collect()
}

fn setting(text: &str) -> Result<(String, String), Problem> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((
            name.trim().to_ascii_lowercase(),
            value.trim().trim_matches('\'').to_owned(),
        )),
        _ => {
            Err(Problem::new(format!("`{text}` is not a setting"))
                .hint("write --set work_mem=64MB"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_settings_are_read_as_written() {
        assert!((percent("3%").unwrap() - 0.03).abs() < 1e-12);
        assert!((percent("0.5").unwrap() - 0.005).abs() < 1e-12);
        assert!(percent("small").unwrap_err().hint.unwrap().contains("2%"));
        assert_eq!(
            setting("Work_Mem = '64MB'").unwrap(),
            ("work_mem".into(), "64MB".into())
        );
        assert!(setting("work_mem").is_err());
    }

    #[test]
    fn a_gate_on_another_hour_is_a_gate() {
        let gate = in_hours(Gate::default(), HoursWord::Another);
        assert!(gate.on && gate.another_hour);
        let gate = in_hours(Gate::default(), HoursWord::Measured);
        assert_eq!(gate, Gate::default());
    }

    #[test]
    fn no_look_ends_a_cell_whose_gate_names_more_than_throughput() {
        use GatedMetric::{Cpu, P99, Throughput};
        let of = |metrics: &[GatedMetric], precision: Option<&str>| {
            let ending = Ending {
                fixed: false,
                precision: precision.map(str::to_owned),
                budget: None,
                no_pilot: false,
                confirm: false,
                gate: true,
                gate_on: metrics.to_vec(),
                not_worse_than: None,
                on_inconclusive: InconclusiveWord::Fail,
            };
            stopping(&ending, 24).unwrap()
        };
        let looks = Stopping::Sequential { looks: looks(24) };
        assert_eq!(of(&[], None), looks);
        assert_eq!(of(&[Throughput], None), looks);
        assert_eq!(of(&[Throughput, P99], None), Stopping::Fixed);
        assert_eq!(of(&[Cpu], None), Stopping::Fixed);
        let width = Stopping::Precision { half_width: 0.01 };
        assert_eq!(of(&[Cpu], Some("1%")), width, "it was asked for");
    }

    #[test]
    fn cores_that_are_not_there_are_refused_where_something_would_run_on_them() {
        let refused = |text: &str, servers_here: bool, there: &[usize]| {
            check_cores(&pins(text).unwrap(), servers_here, there)
        };
        assert_eq!(refused("server=0-2,client=3", true, &[0, 1, 2, 3]), Ok(()));
        let missing = refused("server=0-63,client=1", true, &[0, 1, 2, 3]).unwrap_err();
        assert_eq!(missing.error, "core 4 is not there");
        assert_eq!(missing.detail.unwrap(), "this process may use 0-3");
        let missing = refused("server=0,client=9", true, &[0, 2]).unwrap_err();
        assert_eq!(missing.error, "core 9 is not there");
        assert_eq!(missing.detail.unwrap(), "this process may use 0+2");
        // A server elsewhere is refused its cores with another reason, but the client runs here.
        assert_eq!(refused("server=63,client=1", false, &[0, 1]), Ok(()));
        assert!(refused("server=0,client=63", false, &[0, 1]).is_err());
    }

    #[test]
    fn times_have_a_unit() {
        assert!((time("15m").unwrap() - 900.0).abs() < 1e-9);
        assert!((time("1.5h").unwrap() - 5400.0).abs() < 1e-9);
        for bad in ["15", "m", "-3s", "0s", "infs", ""] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn cores_are_numbers_ranges_and_sums_of_them() {
        let pins = pins("server=2-4+7,client=0").unwrap();
        assert_eq!((pins.server, pins.client), (vec![2, 3, 4, 7], vec![0]));
        for bad in [
            "server=0",
            "server=0,client=x",
            "server=3-1,client=0",
            "0,1",
            "server=0,server=1",
        ] {
            assert!(super::pins(bad).is_err(), "{bad}");
        }
    }
}
