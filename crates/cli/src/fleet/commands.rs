//! The commands that go on with an execution, or look at it.

use super::background;
use super::carriage::{Carriage, on_their_hosts};
use super::submit::Submitter;
use super::watch::{self, Watching};
use crate::arguments::fleet::{Resume, Watch};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::store::{open, store_problem};
use deltabench_fleet::engine::{JobState, Seen};
use deltabench_fleet::file::{EngineWord, FleetFile};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::spool::Spool;
use deltabench_fleet::state::{UnitState, UnitStatus, status};
use deltabench_model::exit;
use deltabench_model::problem::{Problem, nearest};
use deltabench_store::Store;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long lanes may take to end after a cancellation.
const ENDING: Duration = Duration::from_secs(120);

/// An execution that the lab knows.
pub struct Known {
    pub store: Store,
    pub spool: Spool,
    pub lanes: Lanes,
    pub file: FleetFile,
}

/// Finds an execution by its name, a beginning of it, or `last`.
pub fn known(wanted: &str, config: &Config) -> Result<Known, Failure> {
    let store = open(config)?;
    let all = store.executions().map_err(store_problem)?;
    let matching: Vec<_> = match wanted {
        "last" => all.last().into_iter().collect(),
        _ => all
            .iter()
            .filter(|one| one.name.starts_with(wanted))
            .collect(),
    };
    let exact = matching.iter().find(|one| one.name == wanted);
    let found = match (exact, matching.as_slice()) {
        (Some(one), _) => *one,
        (None, [one]) => *one,
        (None, several) => {
            let names = |all: &[&deltabench_store::Execution]| -> Vec<String> {
                all.iter().map(|one| one.name.clone()).collect()
            };
            let problem = match several {
                [] => Problem::new(format!("this lab has no execution `{wanted}` on a fleet"))
                    .detail(names(&all.iter().collect::<Vec<_>>()).join("\n")),
                _ => Problem::new(format!("`{wanted}` begins {} names", several.len()))
                    .detail(names(several).join("\n")),
            };
            let near = nearest(wanted, all.iter().map(|one| one.name.as_str()));
            return Err(Failure::Refused(match near {
                Some(near) => problem.hint(format!("did you mean {near}?")),
                None => problem.hint("`deltabench fleet run FILE --on FLEET` starts one"),
            }));
        }
    };
    let spool = Spool::at(&found.spool);
    let lanes = spool.lanes().map_err(Failure::Refused)?;
    let (name, text) = &lanes.fleet;
    let file = FleetFile::read(name, text).map_err(Failure::Refused)?;
    Ok(Known {
        store,
        spool,
        lanes,
        file,
    })
}

/// `deltabench fleet watch`.
pub fn watch(arguments: &Watch, config: &Config) -> Result<u8, Failure> {
    let known = known(&arguments.execution, config)?;
    let place = (&known.spool, &known.lanes);
    let submitter = Submitter::new(&known.file, &known.spool, &known.lanes);
    if arguments.detach {
        return background::start(&submitter, config).map(|()| 0);
    }
    let watching = match arguments.alone {
        true => Watching::Alone,
        false => Watching::ForSomebody,
    };
    watch::watch((known.store, config), place, (&submitter, watching))
}

/// `deltabench fleet gather`.
pub fn gather(wanted: &str, config: &Config) -> Result<u8, Failure> {
    let mut known = known(wanted, config)?;
    let place = (&known.spool, &known.lanes);
    let submitter = Submitter::new(&known.file, &known.spool, &known.lanes);
    let carriage = Carriage::of(&submitter);
    let alive = match &carriage {
        Some(_) => submitter.alive()?,
        None => Vec::new(),
    };
    let fetched = { carriage.as_ref() }.is_none_or(|one| one.fetch_all_idle(&alive));
    let whole = watch::gather(&mut known.store, config, place)?.is_empty();
    let mut states = watch::states(place);
    if let Some(carriage) = &carriage {
        on_their_hosts(&mut states, &alive, place.1);
        if alive.is_empty() {
            carriage.end();
        }
    }
    print_stdout(&watch::table(&states, &known.lanes).join("\n"))?;
    Ok(if whole && fetched {
        0
    } else {
        exit::NOT_MEASURED
    })
}

/// `deltabench fleet after`: writes the report if nobody watches.
pub fn after(lanes_file: &Path, config: &Config) -> Result<u8, Failure> {
    let spool = Spool::at(lanes_file.parent().unwrap_or(Path::new("")));
    let lanes = spool.lanes().map_err(Failure::Refused)?;
    let config = Config {
        lab: lanes.lab.clone(),
        ..config.clone()
    };
    let mut store = lab_of(&config, &lanes.execution)?;
    let place = (&spool, &lanes);
    let whole = watch::gather(&mut store, &config, place)?.is_empty();
    let code = watch::conclude(&store, &config, (&spool, &lanes))?;
    // A scheduler shows whether gathering worked; a regression is no failure of it.
    say(&format!("`deltabench fleet watch` would end with {code}"));
    Ok(if whole { 0 } else { exit::NOT_MEASURED })
}

/// The lab where an execution was started. On another host that path may be no lab, or another one.
fn lab_of(config: &Config, execution: &str) -> Result<Store, Failure> {
    let store = open(config).ok();
    let mut all = Vec::new();
    if let Some(store) = &store {
        all = store.executions().map_err(store_problem)?;
    }
    match store.filter(|_| all.iter().any(|one| one.name == execution)) {
        Some(store) => Ok(store),
        None => Err(Failure::Refused(
            Problem::new(format!("this host does not see the lab of {execution}"))
                .detail(format!("{} is not it", config.lab.display()))
                .hint(format!(
                    "where the lab is: `deltabench fleet watch {execution}` takes in what is sealed"
                )),
        )),
    }
}

/// `deltabench fleet resume`.
pub fn resume(arguments: &Resume, config: &Config) -> Result<u8, Failure> {
    let mut known = known(&arguments.named.execution, config)?;
    if let Some(unit) = arguments.named.unit {
        check_unit(&known.lanes, unit).map_err(Failure::Refused)?;
        known.spool.try_again(unit).map_err(Failure::Failed)?;
    }
    let place = (&known.spool, &known.lanes);
    let submitter = Submitter::new(&known.file, &known.spool, &known.lanes);
    // Of two that resume at once, the second finds what the first has handed in.
    submitter.begin()?;
    known.spool.revive().map_err(Failure::Failed)?;
    if let Some(carriage) = Carriage::of(&submitter) {
        carriage.fetch_all_idle(&submitter.alive()?);
    }
    for refused in watch::gather(&mut known.store, config, place)? {
        if refused.damaged {
            let aside = refused.attempt.put_aside(&refused.file);
            say(&format!(
                "unit {} is measured again; the damaged file is kept as {}",
                refused.attempt.unit,
                aside.map_err(Failure::Failed)?.display()
            ));
        }
    }
    let lanes = left(place, &submitter)?;
    match lanes.as_slice() {
        [] => {
            say("no lane has to be handed in");
            if !submitter.alive()?.is_empty() {
                submitter.gather_after()?;
            }
        }
        lanes => {
            let names: Vec<String> = lanes.iter().map(ToString::to_string).collect();
            say(&format!("handing in again: lane {}", names.join(", ")));
            submitter.submit(lanes)?;
        }
    }
    submitter.done();
    if arguments.detach {
        return background::detach(&submitter, config);
    }
    let watching = (&submitter, Watching::ForSomebody);
    watch::watch((known.store, config), place, watching)
}

/// Errors: an execution has no such unit.
fn check_unit(lanes: &Lanes, unit: u32) -> Result<(), Problem> {
    if lanes.unit(unit).is_some() {
        return Ok(());
    }
    Err(
        Problem::new(format!("{} has no unit {unit}", lanes.execution))
            .detail(format!("its units are 1 to {}", lanes.units.len())),
    )
}

/// Lanes with a unit that nobody measures and that may still be. A lane of which nothing is heard any more is
/// ended first.
fn left((spool, lanes): (&Spool, &Lanes), submitter: &Submitter<'_>) -> Result<Vec<u32>, Failure> {
    let alive = submitter.alive()?;
    let mut left = Vec::new();
    for lane in &lanes.lanes {
        let states = || lane.units.iter().map(|unit| status(spool, *unit, now().1));
        let own: Vec<&Seen> = alive
            .iter()
            .filter(|one| one.element == lane.lane)
            .collect();
        // The local engine has one node, whatever a lane calls it.
        let is_local = submitter.engine_word() == EngineWord::Local;
        if states().any(|unit| is_silent_there(&unit, &own, is_local)) {
            for seen in &own {
                submitter.end(seen)?;
            }
        } else if !own.is_empty() {
            for seen in own
                .iter()
                .filter(|one| matches!(one.state, JobState::Waiting(_)))
            {
                submitter.hasten(seen)?;
            }
            continue;
        }
        let measured = states().all(|unit| unit.state.is_done());
        let is_split = measured && lane.one_host && spool.whole_on(lane).is_none();
        if is_split || states().any(|unit| may_go_on(spool, &unit)) {
            left.push(lane.lane);
        }
    }
    Ok(left)
}

/// Whether nothing is heard of a unit from the node on which its lane runs. A lane that went elsewhere leaves
/// attempts without an end behind.
fn is_silent_there(unit: &UnitStatus, own: &[&Seen], any_node: bool) -> bool {
    let node = unit.host.as_ref().map(|host| &host.node);
    let there =
        |one: &&Seen| matches!(&one.state, JobState::Running(at) if any_node || Some(at) == node);
    unit.state == UnitState::Silent && own.iter().any(there)
}

fn may_go_on(spool: &Spool, unit: &UnitStatus) -> bool {
    match unit.state {
        UnitState::Sealed | UnitState::Gathered => false,
        UnitState::Failed | UnitState::Unfit => !spool.has_failed(unit.unit),
        _ => true,
    }
}

/// `deltabench fleet cancel`.
pub fn cancel(wanted: &str, config: &Config) -> Result<u8, Failure> {
    let mut known = known(wanted, config)?;
    known.spool.cancel().map_err(Failure::Failed)?;
    let submitter = Submitter::new(&known.file, &known.spool, &known.lanes);
    submitter.cancel()?;
    let began = Instant::now();
    while began.elapsed() < ENDING && !submitter.alive()?.is_empty() {
        std::thread::sleep(Duration::from_millis(300));
    }
    let alive = submitter.alive()?;
    let place = (&known.spool, &known.lanes);
    let carriage = Carriage::of(&submitter);
    { carriage.iter() }.for_each(Carriage::fetch_all);
    watch::gather(&mut known.store, config, place)?;
    { carriage.iter() }.for_each(Carriage::end);
    let name = &known.lanes.execution;
    if !alive.is_empty() {
        return Err(Failure::Failed(
            Problem::new(format!(
                "{} lanes of {name} have not ended yet",
                alive.len()
            ))
            .hint(format!("`deltabench fleet watch {name}` shows them")),
        ));
    }
    say(&format!(
        "{name} is cancelled; what is measured is in the lab, except units that wait for the rest of their \
         lane, and `deltabench fleet resume {name}` goes on"
    ));
    Ok(0)
}

/// `deltabench fleet logs`.
pub fn logs(wanted: &str, unit: Option<u32>, config: &Config) -> Result<u8, Failure> {
    let known = known(wanted, config)?;
    let lane = unit.map(|unit| lane_with(&known.lanes, unit)).transpose();
    let lane = lane.map_err(Failure::Refused)?.flatten();
    let directory = known.spool.log_directory();
    let entries = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|path| lane.is_none() || lane_of_log(path) == lane);
    for file in files {
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        print_stdout(&format!("{}\n{}", file.display(), text.trim_end()))?;
    }
    Ok(0)
}

/// Errors: an execution has no such unit.
fn lane_with(lanes: &Lanes, unit: u32) -> Result<Option<u32>, Problem> {
    check_unit(lanes, unit)?;
    Ok(lanes.lane_of(unit).map(|lane| lane.lane))
}

/// The lane whose output a file has. The engine names it: its job, the lane that the job begins with if that
/// is not 0, and the element last.
fn lane_of_log(path: &Path) -> Option<u32> {
    let stem = path.file_stem()?.to_str()?;
    let (job, element) = stem.rsplit_once(['-', '_'])?;
    let from = job.rsplit_once('+').map(|(_, from)| from.parse::<u32>());
    let from = from.transpose().ok()?.unwrap_or(0);
    from.checked_add(element.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_fleet::spool::HostName;

    #[test]
    fn the_output_of_a_lane_is_known_by_the_name_of_its_file() {
        let lane = |name: &str| lane_of_log(Path::new(name));
        assert_eq!(lane("/x/log/job-1-3.txt"), Some(3));
        assert_eq!(lane("/x/log/17_3.txt"), Some(3));
        assert_eq!(lane("/x/log/n1-17+1001_3.txt"), Some(1004));
        assert_eq!(lane("/x/log/watch.txt"), None);
    }

    #[test]
    fn a_unit_that_there_is_not_is_refused_with_those_that_there_are() {
        let lanes = Lanes {
            execution: "study".to_owned(),
            units: vec![deltabench_fleet::lanes::Unit {
                unit: 1,
                run: "study-a".to_owned(),
                plan: deltabench_testkit::small_run::plan(),
                seconds: 1.0,
            }],
            ..Lanes::default()
        };
        assert_eq!(lane_with(&lanes, 1), Ok(None));
        let refused = lane_with(&lanes, 99).unwrap_err().to_string();
        assert!(refused.contains("study has no unit 99") && refused.contains("1 to 1"));
    }

    #[test]
    fn a_lane_that_went_elsewhere_is_not_silent_because_of_its_lost_host() {
        let unit = |state| UnitStatus {
            unit: 1,
            state,
            attempts: 1,
            host: Some(HostName {
                uid: "u".to_owned(),
                node: "n1".to_owned(),
            }),
            beat: None,
            text: String::new(),
        };
        let seen = |state| Seen {
            job: "7".to_owned(),
            element: 0,
            state,
        };
        let at = |node: &str| seen(JobState::Running(node.to_owned()));
        let silent = unit(UnitState::Silent);
        assert!(is_silent_there(&silent, &[&at("n1")], false));
        assert!(!is_silent_there(&silent, &[&at("n2")], false));
        assert!(is_silent_there(&silent, &[&at("n2")], true));
        assert!(!is_silent_there(
            &unit(UnitState::Running),
            &[&at("n1")],
            true
        ));
        let waits = seen(JobState::Waiting("Priority".to_owned()));
        assert!(!is_silent_there(&silent, &[&waits], true));
    }
}
