//! A lane on its host: the units that are not measured yet, one after another.

use super::stop::Stop;
use super::submit::drained;
use super::unit::{Place, UnitEnd, measure};
use crate::arguments::fleet::LaneArguments;
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::{Failure, NOT_MEASURED};
use deltabench_fleet::engine::local::terminate;
use deltabench_fleet::file::FleetFile;
use deltabench_fleet::host_lock::{self, Holder, HostLock};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::ship;
use deltabench_fleet::spool::{Avoided, HostName, Owner, Spool};
use deltabench_model::finding::Severity;
use deltabench_model::problem::Problem;
use deltabench_observe::{HostSample, Outcome, host_identity, preflight, read_host};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Exit code of a lane that goes on later: the engine may put it in its queue again (sysexits.h: a failure
/// that passes).
pub const AGAIN: u8 = 75;
/// Exit code of a lane on a host that is unfit.
const UNFIT: u8 = 4;
/// How long to look at other load.
const LOOK: Duration = Duration::from_secs(2);
/// How often to try for the lock.
const PAUSE: Duration = Duration::from_millis(500);
/// How long an older attempt may take to finish its visit.
const OLDER: Duration = Duration::from_secs(180);

/// `deltabench fleet lane`.
pub fn lane(arguments: &LaneArguments, config: &Config) -> Result<u8, Failure> {
    let stop = Stop::listen()?;
    let root = arguments.lanes.parent().unwrap_or(Path::new(""));
    let spool = Spool::at(root);
    let lanes = spool.lanes().map_err(Failure::Refused)?;
    check_program(&lanes).map_err(Failure::Refused)?;
    let (name, text) = &lanes.fleet;
    let file = FleetFile::read(name, text).map_err(Failure::Refused)?;
    let own = lanes.lane(arguments.lane).ok_or_else(|| {
        Failure::Refused(Problem::new(format!("there is no lane {}", arguments.lane)))
    })?;
    let host = host_name(lanes.fixture.is_some()).map_err(Failure::Refused)?;
    say(&format!(
        "lane {} on {} ({})",
        own.lane, host.node, host.uid
    ));
    if let Some(why) = avoided(&spool, &file, &host) {
        say(&format!("this host is avoided: {why}"));
        return Ok(UNFIT);
    }
    let Some(_lock) = locked(&lanes, own.lane, (&file, &host), &stop)? else {
        return Ok(AGAIN);
    };
    if let Some(why) = unfit(&file, &lanes) {
        say(&format!("this host is unfit: {why}"));
        let avoided = Avoided { host, why };
        spool.avoid(&avoided).map_err(Failure::Failed)?;
        return Ok(UNFIT);
    }
    let place = Place {
        spool: &spool,
        lanes: &lanes,
        owner: owner(&host, own.lane),
        local: local_directory(&file, &lanes, &host),
        servers: &arguments.servers,
        config,
        stop: &stop,
    };
    carry_out(&own.units, &place)
}

/// Measures the units; returns the exit code.
fn carry_out(units: &[u32], place: &Place<'_>) -> Result<u8, Failure> {
    let mut failed = false;
    for number in units {
        let spool = place.spool;
        if spool.is_cancelled() || place.stop.is_asked() {
            break;
        }
        if spool.is_sealed(*number) || spool.has_failed(*number) {
            continue;
        }
        let Some(unit) = place.lanes.unit(*number) else {
            continue;
        };
        match measure(unit, place)? {
            UnitEnd::Sealed => {}
            UnitEnd::Failed => failed = true,
            UnitEnd::Unfit => return Ok(UNFIT),
            // Another lane has it, and what follows.
            UnitEnd::Superseded => return Ok(0),
            UnitEnd::Interrupted => return Ok(AGAIN),
            UnitEnd::Cancelled => return Ok(0),
        }
    }
    let left =
        |number: &&u32| !place.spool.is_sealed(**number) && !place.spool.has_failed(**number);
    let is_left = units.iter().any(|number| left(&number));
    Ok(if is_left && !place.spool.is_cancelled() {
        AGAIN
    } else if failed {
        NOT_MEASURED
    } else {
        0
    })
}

/// All units of an execution are measured by one program.
fn check_program(lanes: &Lanes) -> Result<(), Problem> {
    let own = ship::own_hash()?;
    if own == lanes.binary_sha256 {
        return Ok(());
    }
    Err(
        Problem::new("host-has-other-binary: this is not the deltabench of the execution")
            .detail(format!(
                "SHA-256 is {own}, planned was {}",
                lanes.binary_sha256
            ))
            .hint("lanes are started by their engine, from the shared directory"),
    )
}

/// This host. Fixtures may stand for several on one machine: each node is one.
fn host_name(fixture: bool) -> Result<HostName, Problem> {
    let named = std::env::var("DELTABENCH_NODE").or_else(|_| std::env::var("SLURMD_NODENAME"));
    if let (true, Ok(node)) = (fixture, &named) {
        return Ok(HostName {
            uid: node.clone(),
            node: node.clone(),
        });
    }
    let identity = host_identity().ok_or_else(|| {
        Problem::new("this host cannot keep an identifier of its own")
            .detail("nobody could say later where the lane was measured")
            .hint("make /var/lib/deltabench writable, or name a directory in DELTABENCH_STATE")
    })?;
    Ok(HostName {
        uid: identity.uid,
        node: named.unwrap_or_else(|_| deltabench_fleet::engine::local::node()),
    })
}

fn owner(host: &HostName, lane: u32) -> Owner {
    let (pid, process_start) = host_lock::own_process();
    Owner {
        host: host.clone(),
        pid,
        process_start,
        boot_id: deltabench_proc::host::boot_id(),
        lane,
        at_unix_ms: now().1,
    }
}

/// Why this host is avoided, if it is.
fn avoided(spool: &Spool, file: &FleetFile, host: &HostName) -> Option<String> {
    let own = |one: &Avoided| one.host.uid == host.uid || one.host.node == host.node;
    let mut all = spool.avoided();
    all.extend(drained(file));
    all.into_iter().find(own).map(|one| one.why)
}

/// Takes the machine for this lane. An older attempt of the same lane that is still there is ended; others
/// are waited for. `None` where that took too long, or somebody stopped it.
fn locked(
    lanes: &Lanes,
    lane: u32,
    (file, host): (&FleetFile, &HostName),
    stop: &Stop,
) -> Result<Option<HostLock>, Failure> {
    // A fixture stands for one of several hosts on one machine.
    let path = match lanes.fixture {
        Some(_) => local_directory(file, lanes, host).join(host_lock::NAME),
        None => host_lock::path(),
    };
    let holder = Holder::own(&lanes.execution, lane);
    let began = Instant::now();
    let mut told = false;
    let mut wait = Duration::from_secs(60 * u64::from(file.wait_minutes));
    loop {
        let in_the_way = match host_lock::alone(&path, &holder).map_err(Failure::Failed)? {
            Ok(lock) => return Ok(Some(lock)),
            Err(in_the_way) => in_the_way,
        };
        if !told {
            let who = { in_the_way.as_ref() }
                .map_or_else(|| "another measurement".to_owned(), ToString::to_string);
            say(&format!(
                "this host is busy: {} is held by {who}",
                path.display()
            ));
            told = true;
            let own = |one: &&Holder| one.execution == holder.execution && one.lane == lane;
            if let Some(older) = in_the_way.as_ref().filter(own) {
                say(&format!("ending the older attempt, process {}", older.pid));
                terminate(older.pid);
                wait = wait.max(OLDER);
            }
        }
        if began.elapsed() >= wait || stop.is_asked() {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Why this host is unfit, by what costs a few seconds to know.
fn unfit(file: &FleetFile, lanes: &Lanes) -> Option<String> {
    if !file.check || lanes.fixture.is_some() {
        return None;
    }
    let facts = read_host();
    let sample = HostSample::take(LOOK, facts.online_cores);
    let checks = preflight(&facts, sample.as_ref(), None);
    let bad = |outcome| outcome == Outcome::Found(Severity::Unfit);
    let why: Vec<&str> = { checks.iter().filter(|check| bad(check.outcome)) }
        .map(|check| check.title)
        .collect();
    (!why.is_empty()).then(|| why.join(", "))
}

/// Where labs of units are: on a disk of the host, because the store cannot be on a network file system.
fn local_directory(file: &FleetFile, lanes: &Lanes, host: &HostName) -> PathBuf {
    let user = deltabench_proc::host::our_user().unwrap_or(0);
    let place = { file.local.clone() }
        .unwrap_or_else(|| PathBuf::from(format!("/var/tmp/deltabench-fleet-{user}")));
    match lanes.fixture {
        Some(_) => place.join(host.uid.replace('/', "-")),
        None => place,
    }
}
