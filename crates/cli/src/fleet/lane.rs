//! A lane on its host: the units that are not measured yet, one after another.

use super::admission::{Admission, admission};
use super::check::NO_IDENTIFIER;
use super::disk;
use super::stop::Stop;
use super::submit::{Away, avoided_nodes, drained, engine};
use super::unit::{Place, UnitEnd, in_words, measure};
use crate::arguments::fleet::LaneArguments;
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_fleet::engine::local::terminate;
use deltabench_fleet::engine::slurm;
use deltabench_fleet::file::{Copying, EngineWord, FleetFile};
use deltabench_fleet::host_lock::{self, Holder, HostLock};
use deltabench_fleet::lanes::{Lane, Lanes};
use deltabench_fleet::ship;
use deltabench_fleet::spool::{Avoided, EndWord, FAILURES, HostName, Owner, Spool};
use deltabench_model::exit;
use deltabench_model::finding::Severity;
use deltabench_model::problem::Problem;
use deltabench_observe::{HostSample, Outcome, host_identity, preflight, read_host};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Exit code of a lane that goes on later: the engine may put it in its queue again (sysexits.h: a failure
/// that passes).
pub const AGAIN: u8 = 75;
/// Exit code of a lane whose measurements the shared directory does not take (sysexits.h: cannot create).
pub const KEPT: u8 = 73;
/// How long to look at other load.
const LOOK: Duration = Duration::from_secs(2);
/// How often to try for the lock.
const PAUSE: Duration = Duration::from_millis(500);
/// How long an older attempt may take to finish its visit.
const OLDER: Duration = Duration::from_secs(180);

/// `deltabench fleet lane`.
pub fn lane(arguments: &LaneArguments, config: &Config) -> Result<u8, Failure> {
    let stop = Stop::listen()?;
    // Servers have another working directory.
    let place = std::path::absolute(&arguments.lanes).unwrap_or_else(|_| arguments.lanes.clone());
    let spool = Spool::at(place.parent().unwrap_or(Path::new("")));
    let lanes = spool.lanes().map_err(Failure::Refused)?;
    check_program(&lanes).map_err(Failure::Refused)?;
    let (name, text) = &lanes.fleet;
    let file = FleetFile::read(name, text).map_err(Failure::Refused)?;
    let own = lanes.lane(arguments.lane).ok_or_else(|| {
        Failure::Refused(Problem::new(format!("there is no lane {}", arguments.lane)))
    })?;
    let read = (&spool, &lanes, &file);
    let host = match host_name(lanes.fixture.is_some()) {
        Ok(host) => host,
        // It ends its lanes at once, is idle again, and would be given all of them.
        Err((node, why)) => {
            let uid = node.clone();
            return refuse(read, (&HostName { uid, node }, own.lane), &why);
        }
    };
    say(&format!(
        "lane {} on {} ({})",
        own.lane, host.node, host.uid
    ));
    if let Some(why) = avoided(&spool, &file, &host) {
        say(&format!("this host is avoided: {why}"));
        return leave((&spool, &lanes, &file), (&host, own.lane), &why);
    }
    let local = local_directory((&spool, &lanes, &file), &host);
    let _lock = match locked(&lanes, own.lane, (&file, &local), &stop) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(AGAIN),
        // A disk that is full, or a link in its place.
        Err(problem) => return refuse(read, (&host, own.lane), &in_words(&problem)),
    };
    let disk = disk::local_directory(file.local.as_deref());
    let made = disk::make_local(&disk, file.local.is_none());
    if let Some(why) = made.err().or_else(|| unfit(&file, &lanes)) {
        return refuse((&spool, &lanes, &file), (&host, own.lane), &why);
    }
    if let Err(problem) = spread((&spool, &lanes, &file), own.lane, &host) {
        say(&problem.to_string());
    }
    { own.units.iter() }.for_each(|unit| spool.sweep(*unit, &host.uid));
    let servers = disk::servers_on(&disk, &arguments.servers);
    let place = Place {
        spool: &spool,
        lanes: &lanes,
        owner: owner(&host, own.lane),
        local,
        servers: &servers,
        config,
        stop: &stop,
    };
    match admitted(own, &file, &place)? {
        Admission::Admitted | Admission::Untold => {}
        Admission::Stopped => return Ok(AGAIN),
        Admission::Unfit(why) => return refuse((&spool, &lanes, &file), (&host, own.lane), &why),
    }
    match ended(own, &place) {
        exit::UNFIT => leave(
            (&spool, &lanes, &file),
            (&host, own.lane),
            "a unit found it unfit",
        ),
        code => Ok(code),
    }
}

/// Measures the units; returns the exit code.
fn ended(lane: &Lane, place: &Place<'_>) -> u8 {
    let ended = carry_out(lane, place).unwrap_or_else(|failure| {
        // What was measured stays here, and the next lane on this host seals it.
        say(&failure.problem().to_string());
        KEPT
    });
    // What is left there goes on here later.
    std::fs::remove_dir(place.local.join(&place.lanes.execution)).ok();
    ended
}

/// Keeps the lanes that wait away from this host, if repetitions are to be on different ones. It happens
/// before anything is measured.
fn spread((spool, lanes, file): Whole<'_>, lane: u32, host: &HostName) -> Result<(), Problem> {
    spool.take(lane, &host.node)?;
    let (true, Some(job)) = (file.spread, own_job(file, lane)) else {
        return Ok(());
    };
    let engine = engine(file);
    let away = Away::of(file, spool, engine.as_ref())?;
    engine.avoid(&job, &|lane| away.for_lane(lanes, lane))
}

/// The array of a lane that runs here, if an engine has others hosts for it.
fn own_job(file: &FleetFile, lane: u32) -> Option<String> {
    let number = |name: &str| std::env::var(name).ok();
    let job = number("SLURM_ARRAY_JOB_ID").filter(|_| file.engine == EngineWord::Slurm)?;
    let own: u32 = number("SLURM_ARRAY_TASK_ID")?.parse().ok()?;
    Some(slurm::named(&job, lane.checked_sub(own)?))
}

/// An execution: its spool, its lanes, its fleet.
type Whole<'a> = (&'a Spool, &'a Lanes, &'a FleetFile);

/// A host, and the lane on it.
type OnHost<'a> = (&'a HostName, u32);

/// The first lane of an execution on a host begins with a server against itself.
fn admitted(lane: &Lane, file: &FleetFile, place: &Place<'_>) -> Result<Admission, Failure> {
    let (spool, host) = (place.spool, &place.owner.host);
    let is_wanted = file.admission && place.lanes.fixture.is_none();
    let is_left =
        |unit: &&u32| !spool.is_done(**unit, lane, &host.uid) && !spool.has_failed(**unit);
    let unit = lane.units.iter().find(is_left);
    let unit = unit.and_then(|unit| place.lanes.unit(*unit));
    let Some(unit) = unit.filter(|_| is_wanted && !spool.has_admitted(host)) else {
        return Ok(Admission::Admitted);
    };
    say("a server against itself, for a minute");
    let found = match admission(unit, place) {
        Ok(found) => found,
        // The unit meets the same, and its end says why.
        Err(failure) => {
            say(&failure.problem().to_string());
            return Ok(Admission::Untold);
        }
    };
    if matches!(found, Admission::Admitted) {
        spool.admit(host).map_err(Failure::Failed)?;
    }
    Ok(found)
}

/// Avoids this host from now on, and leaves it.
fn refuse(whole: Whole<'_>, place: OnHost<'_>, why: &str) -> Result<u8, Failure> {
    say(&format!("this host is unfit: {why}"));
    avoid(whole.0, place.0, why)?;
    leave(whole, place, why)
}

fn avoid(spool: &Spool, host: &HostName, why: &str) -> Result<(), Failure> {
    let avoided = Avoided {
        host: host.clone(),
        why: why.to_owned(),
    };
    spool.avoid(&avoided).map_err(Failure::Failed)
}

/// Ends a lane on a host that is unfit: where the engine has others it goes there. It also keeps the lanes
/// away that wait, because a host that ends its lanes at once would draw all of them.
fn leave(
    (spool, lanes, file): Whole<'_>,
    (host, lane): OnHost<'_>,
    why: &str,
) -> Result<u8, Failure> {
    // Another node of this machine was found unfit: the engine knows nodes only, and would come back to this.
    if !avoided_nodes(file, spool).contains(&host.node) {
        avoid(spool, host, why)?;
    }
    let Some(job) = own_job(file, lane) else {
        return Ok(exit::UNFIT);
    };
    let engine = engine(file);
    let went = Away::of(file, spool, engine.as_ref()).and_then(|away| {
        let away = |lane| away.for_lane(lanes, lane);
        // What keeps the others away is a help; that this lane leaves is not.
        if let Err(problem) = engine.avoid(&job, &away) {
            say(&problem.to_string());
        }
        engine.elsewhere(&job, lane, &away(lane))
    });
    Ok(match went {
        Ok(true) => {
            say(&format!("lane goes on elsewhere than on {}", host.node));
            AGAIN
        }
        Ok(false) => exit::UNFIT,
        Err(problem) => {
            say(&problem.to_string());
            exit::UNFIT
        }
    })
}

/// Measures the units, as long as the spool can be written.
fn carry_out(lane: &Lane, place: &Place<'_>) -> Result<u8, Failure> {
    let mut failed = false;
    let is_left = |unit: u32| {
        let spool = place.spool;
        !spool.is_done(unit, lane, &place.owner.host.uid) && !spool.has_failed(unit)
    };
    for number in &lane.units {
        let spool = place.spool;
        if spool.is_cancelled() || place.stop.is_asked() {
            break;
        }
        if !is_left(*number) {
            continue;
        }
        let Some(unit) = place.lanes.unit(*number) else {
            continue;
        };
        match measure(unit, place)? {
            UnitEnd::Kept => return Ok(KEPT),
            UnitEnd::Ended(EndWord::Sealed) => {}
            UnitEnd::Ended(EndWord::Failed) => {
                failed = true;
                if let Some(code) = broken(place)? {
                    return Ok(code);
                }
            }
            UnitEnd::Ended(EndWord::Unfit) => return Ok(exit::UNFIT),
            // Another lane has it, and what follows.
            UnitEnd::Ended(EndWord::Superseded | EndWord::Cancelled) => return Ok(0),
            UnitEnd::Ended(EndWord::Interrupted) => return Ok(AGAIN),
        }
    }
    let is_left = lane.units.iter().any(|unit| is_left(*unit));
    Ok(if is_left && !place.spool.is_cancelled() {
        AGAIN
    } else if failed {
        exit::NOT_MEASURED
    } else {
        0
    })
}

/// How a lane ends on a host on which unit after unit fails: another host takes what is left. If that has
/// happened elsewhere too it is no fault of the hosts; then the lane stops, so that not all units fail.
fn broken(place: &Place<'_>) -> Result<Option<u8>, Failure> {
    let units: Vec<u32> = place.lanes.units.iter().map(|unit| unit.unit).collect();
    let (spool, host) = (place.spool, &place.owner.host);
    let Some(last) = spool.is_broken(host, &units) else {
        return Ok(None);
    };
    let is_alike = |one: &Avoided| one.host.uid != host.uid && one.why.starts_with(IN_A_ROW);
    if spool.avoided().iter().any(is_alike) {
        say("units in a row failed here as on another host: this lane stops");
        return Ok(Some(exit::NOT_MEASURED));
    }
    avoid(
        spool,
        host,
        &format!("{IN_A_ROW} {FAILURES} units failed, the last one: {last}"),
    )?;
    Ok(Some(exit::UNFIT))
}

/// What says why a host is avoided on which units fail.
const IN_A_ROW: &str = "in a row";

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

/// This host, or its node and why it is none. Fixtures may stand for several on one machine: each node is
/// one.
fn host_name(fixture: bool) -> Result<HostName, (String, String)> {
    let named = std::env::var("DELTABENCH_NODE").or_else(|_| std::env::var("SLURMD_NODENAME"));
    if let (true, Ok(node)) = (fixture, &named) {
        return Ok(HostName {
            uid: node.clone(),
            node: node.clone(),
        });
    }
    let node = named.unwrap_or_else(|_| deltabench_fleet::engine::local::node());
    match host_identity() {
        Some(identity) => Ok(HostName {
            uid: identity.uid,
            node,
        }),
        None => Err((node, NO_IDENTIFIER.to_owned())),
    }
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
    (file, local): (&FleetFile, &Path),
    stop: &Stop,
) -> Result<Option<HostLock>, Problem> {
    // A fixture stands for one of several hosts on one machine.
    let path = match lanes.fixture {
        Some(_) => local.join(host_lock::NAME),
        None => host_lock::path(),
    };
    let holder = Holder::own(&lanes.execution, lane);
    let began = Instant::now();
    let mut told = false;
    let mut wait = Duration::from_secs(60 * u64::from(file.wait_minutes));
    loop {
        let in_the_way = match host_lock::alone(&path, &holder)? {
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
            let own = |one: &&Holder| {
                one.execution == holder.execution && one.lane == lane && one.is_ours(&path)
            };
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
    let why: Vec<String> = { checks.iter().filter(|check| bad(check.outcome)) }
        .map(|check| format!("{}: {}", check.title, check.seen))
        .collect();
    (!why.is_empty()).then(|| why.join("; "))
}

/// Where labs of units are: on a disk of the host, because the store cannot be on a network file system. A
/// host that got copies has all of the execution in one place.
fn local_directory((spool, lanes, file): Whole<'_>, host: &HostName) -> PathBuf {
    if let (Copying::Sbcast, Some(home)) = (file.copy, spool.shared()) {
        return home.to_owned();
    }
    let place = disk::local_directory(file.local.as_deref());
    match lanes.fixture {
        Some(_) => place.join(host.uid.replace('/', "-")),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_on_another_node_of_an_unfit_machine_keeps_away_from_that_node_too() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().display();
        let text = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"local\"\nshared = \"{shared}\"\n"
        );
        let file = FleetFile::read("lab.toml", &text).unwrap();
        let spool = Spool::of(place.path(), "study");
        std::fs::create_dir_all(spool.root()).unwrap();
        let host = |node: &str| HostName {
            uid: "u".to_owned(),
            node: node.to_owned(),
        };
        let lanes = Lanes::default();
        let whole = (&spool, &lanes, &file);
        assert_eq!(
            refuse(whole, (&host("n1"), 0), "cold").unwrap(),
            exit::UNFIT
        );
        let why = avoided(&spool, &file, &host("n2")).unwrap();
        assert_eq!(why, "cold");
        leave(whole, (&host("n2"), 0), &why).unwrap();
        assert_eq!(avoided_nodes(&file, &spool), ["n1", "n2"]);
    }
}
