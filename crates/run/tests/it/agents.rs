//! Servers of others with an agent on their machine: this binary itself, behind a script that stands for ssh.

use crate::lab::{Lab, installations};
use crate::remote::{Notes, Theirs, carry_out, cells, short};
use deltabench_compare::analyse;
use deltabench_compare::comparison::Metric;
use deltabench_model::fact::{AgentFacts, FactKind, HostFacts, ServerHost};
use deltabench_model::finding::Finding;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Plan, ServerId};
use deltabench_observe::agent::{SILENCE, serve};
use deltabench_run::remote;
use deltabench_run::schedule::BlockSchedule;
use deltabench_store::Store;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Set for a process that is the far side of an agent.
const FAR_SIDE: &str = "DELTABENCH_TEST_FAR_SIDE";

/// Not a test of its own: the script below starts it, with the pipe of its answers as descriptor 3, because
/// the test runner writes to stdout.
#[test]
#[ignore = "run by other tests of this module"]
fn far_side() {
    if std::env::var_os(FAR_SIDE).is_none() {
        eprintln!("nothing to do: {FAR_SIDE} is not set");
        return;
    }
    let answers = std::fs::File::options().write(true).open("/dev/fd/3");
    let asked = std::io::stdin().as_fd().try_clone_to_owned();
    serve(asked.unwrap(), answers.unwrap(), SILENCE);
}

/// The directory of the script that stands for ssh in this process. It leaves the number of each agent's
/// process in a file that is called as the host.
fn ssh() -> &'static PathBuf {
    static SSH: OnceLock<PathBuf> = OnceLock::new();
    SSH.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-ssh");
        // What an earlier process left is of no use.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("ssh");
        let script = format!(
            "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n\
             if [ $1 = nowhere ]; then\n  \
             echo 'ssh: Could not resolve hostname nowhere: Name or service not known' >&2; exit 255\nfi\n\
             echo $$ >>'{}'/$1\n\
             {FAR_SIDE}=1 exec '{}' --exact agents::far_side --ignored --nocapture 3>&1 >/dev/null\n",
            directory.display(),
            std::env::current_exe().unwrap().display()
        );
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        // SAFETY: std's own lock is held against readers of the environment in Rust, and the C library reads
        // none of these variables.
        unsafe { std::env::set_var("DELTABENCH_SSH", &file) };
        directory
    })
}

/// Processes of agents that were started for a host, and the last of them.
fn started(host: &str) -> (usize, String) {
    let text = std::fs::read_to_string(ssh().join(host)).unwrap_or_default();
    let last = text.lines().last().unwrap_or_default().to_owned();
    (text.lines().count(), last)
}

fn watched(theirs: &Theirs, host: &str) -> Installation {
    ssh();
    let mut remote = theirs.remote();
    remote.agent = Some(format!("ssh:{host}"));
    remote::installation(&remote).unwrap()
}

/// What a run left.
struct Ran {
    store: Store,
    notes: Vec<String>,
    // The store's.
    _directory: tempfile::TempDir,
}

fn run(plan: &Plan, name: &str, after: &mut dyn FnMut(u32)) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    let lab = Lab::new();
    let mut notes = Notes(Vec::new(), Some(after));
    carry_out(plan, &lab, name, &mut store, &mut notes).unwrap();
    assert!(lab.is_empty());
    Ran {
        store,
        notes: notes.0,
        _directory: directory,
    }
}

fn of_kind<'a>(findings: &'a [Finding], kind: &str) -> Vec<&'a str> {
    let found = findings.iter().filter(|finding| finding.kind == kind);
    found.map(|finding| finding.text.as_str()).collect()
}

#[test]
fn cpu_counters_and_series_of_such_servers_come_from_their_agents() {
    let all = installations();
    let servers = [all.first().unwrap(), all.last().unwrap()].map(Theirs::start);
    let base = watched(&servers[0], "both");
    let candidate = watched(&servers[1], "both");
    let mut plan = short(&[&base, &base, &candidate], cells());
    plan.timing.blocks = 6;
    assert_eq!(remote::check(&plan), Ok(()));
    assert_eq!(started("both").0, 1, "one for both servers");
    let ran = run(&plan, "watched", &mut |_| {});
    assert_eq!(started("both").0, 2, "and one for the run");
    for theirs in &servers {
        assert_eq!(theirs.ours(), Vec::<String>::new());
    }
    let slices = ran.store.slices("watched").unwrap();
    for slice in slices.iter().filter(|slice| slice.void.is_none()) {
        let spent = slice.server_cpu_ns.unwrap();
        // Somebody else's session of the server may be in it, but no other server's work.
        assert!(spent > 0 && spent < 4 * slice.duration_ns, "{slice:?}");
        assert!(slice.switches.is_some() && slice.run_queue_wait_ns.is_some());
        assert!(slice.foreign_cpu_ns.is_some() && slice.idle_cpu_ns.is_some());
    }
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(comparison.cells.len(), 2);
    for compared in comparison.cells.iter().chain(&comparison.placebo_cells) {
        let cpu = compared
            .metrics
            .iter()
            .find(|value| value.metric == Metric::ServerCpuPerOperation)
            .unwrap();
        assert!(cpu.base > 0.0 && cpu.candidate > 0.0, "{cpu:?}");
    }
    let counters = ran.store.counters("watched").unwrap();
    assert_eq!(counters.len(), 6 * 2 * 3);
    for counted in counters {
        let of_processes = counted.values.contains_key("process_user_ns");
        // Base and placebo are in one server, whose processes worked for both.
        assert_eq!(of_processes, counted.server == ServerId(2), "{counted:?}");
    }
    let findings = ran.store.findings("watched").unwrap();
    for none in ["remote-cpu-unknown", "agent-lost", "agent-refused"] {
        assert_eq!(of_kind(&findings, none), Vec::<&str>::new());
    }
    facts_name_machines_and_sources(&ran.store);
    let samples = ran.store.samples("watched").unwrap();
    let of = |wanted: &str| samples.iter().any(|s| s.values.contains_key(wanted));
    assert!(of("server_cpu@0") && of("server_cpu@2") && of("cpu_user@0") && of("cpu_user"));
    assert!(!of("server_cpu@1"), "it is in the base's server");
    assert!(!of("device_reads") && !of("device_read_bytes"));
}

fn facts_name_machines_and_sources(store: &Store) {
    let agents = store.facts::<AgentFacts>("watched").unwrap();
    let told: Vec<Option<ServerId>> = agents.iter().map(|fact| fact.server).collect();
    assert_eq!(told, [0, 1, 2].map(|id| Some(ServerId(id))));
    let about = &agents[0].fact;
    assert_eq!((about.host.as_str(), about.same_machine), ("both", true));
    assert!(about.round_trip_ns > 0);
    let hosts = store.facts::<ServerHost>("watched").unwrap();
    assert_eq!(hosts.len(), 3);
    assert!(hosts[2].fact.0.online_cores > 0);
    assert_eq!(store.facts::<HostFacts>("watched").unwrap().len(), 1);
    let sources = store.last_json("watched", FactKind::MeterSources).unwrap();
    let sources = sources.unwrap();
    assert_eq!(sources[0]["host"], "both");
    assert_eq!(sources.as_array().unwrap().len(), 1, "{sources}");
}

#[test]
fn a_run_whose_agent_is_killed_goes_on_without_it_and_says_so_once() {
    let all = installations();
    let own = all.first().unwrap();
    let theirs = Theirs::start(all.last().unwrap());
    let target = watched(&theirs, "mortal");
    let plan = {
        let mut plan = short(&[own, own, &target], cells());
        plan.timing.blocks = 3;
        plan
    };
    let ran = run(&plan, "mortal", &mut |done| {
        if done == 1 {
            let (agents, pid) = started("mortal");
            assert_eq!(agents, 1);
            let killed = Command::new("kill").args(["-9", &pid]).status();
            assert!(killed.unwrap().success());
        }
    });
    assert_eq!(started("mortal").0, 1, "it is not started again");
    let slices = ran.store.slices("mortal").unwrap();
    for block in 0..3 {
        for server in 0..3 {
            let mine = |s: &&deltabench_model::slice::Slice| {
                (s.block, s.server) == (block, ServerId(server))
            };
            let mine: Vec<_> = slices.iter().filter(mine).collect();
            assert!(mine.len() >= 2 * 5);
            let known = server != 2 || block == 0;
            assert!(
                mine.iter()
                    .all(|slice| slice.server_cpu_ns.is_some() == known)
            );
        }
    }
    let counters = ran.store.counters("mortal").unwrap();
    let of_lost = counters.iter().filter(|one| one.server == ServerId(2));
    assert!(of_lost.count() >= 3, "each block has its own");
    for counted in counters {
        let known = counted.server != ServerId(2) || counted.block == 0;
        assert_eq!(counted.values.contains_key("process_user_ns"), known);
    }
    let findings = ran.store.findings("mortal").unwrap();
    let lost = of_kind(&findings, "agent-lost");
    assert_eq!(lost.len(), 1, "{findings:?}");
    assert!(lost[0].contains("mortal"), "{lost:?}");
    let noted = ran.notes.iter().filter(|note| lost[0] == note.as_str());
    assert_eq!(noted.count(), 1, "{:?}", ran.notes);
    assert_eq!(of_kind(&findings, "agent-refused"), Vec::<&str>::new());
    assert_eq!(theirs.ours(), Vec::<String>::new());
}

#[test]
fn an_agent_that_cannot_be_had_is_refused_before_anything_is_made() {
    let installation = installations().pop().unwrap();
    let theirs = Theirs::start(&installation);
    let nowhere = watched(&theirs, "nowhere");
    let refused = remote::check(&short(&[&nowhere; 2], cells())).unwrap_err();
    assert!(
        refused.error.contains("no agent on nowhere: no such host"),
        "{refused}"
    );
    assert!(refused.hint.is_some());
    let lab = Lab::new();
    let plan = short(&[&nowhere; 2], cells());
    let refused = lab.fleet(&plan, "nowhere").err();
    assert!(refused.unwrap().error.contains("no agent on nowhere"));
    assert_eq!(theirs.ours(), Vec::<String>::new());
    assert!(lab.is_empty());
}

#[test]
fn the_processes_of_a_server_that_somebody_restarted_are_found_again() {
    let mut theirs = Theirs::start(&installations().pop().unwrap());
    let target = watched(&theirs, "again");
    let plan = short(&[&target; 2], cells());
    let lab = Lab::new();
    let mut fleet = lab.fleet(&plan, "again").unwrap();
    let block = |block| BlockSchedule::of(&plan, block);
    let before = fleet.start(&block(0)).unwrap();
    theirs.restart();
    let after = fleet.start(&block(1)).unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert!(!before.postmaster.is_same(&after.postmaster));
        assert!(before.postmaster.processes().is_empty());
        assert!(after.postmaster.processes().len() > 1);
        assert!(after.postmaster.is_same(&after.postmaster.clone()));
    }
    fleet.dismantle().unwrap();
}
