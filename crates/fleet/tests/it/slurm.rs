//! Lanes on a real cluster of Slurm: six nodes on this machine, plain shell programs for units.
//!
//! All of it shares one cluster and goes side by side, because most of the time is Slurm's waiting.

mod cluster;

use cluster::{Cluster, kill_process, processes_with, wait_for};
use deltabench_fleet::engine::slurm::Slurm;
use deltabench_fleet::engine::{After, Engine, JobState, Seen, Submission};
use deltabench_proc::has_ended;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Three equal nodes, one for limits of time, two for losses.
const NODES: [&str; 6] = ["trio,bare", "trio", "trio", "limit", "frail", "frail"];

/// A variable that the tests have and no job may see.
const OURS: &str = "CARGO_MANIFEST_DIR";

#[test]
fn slurm_carries_lanes() {
    if untested() {
        return;
    }
    assert!(std::env::var_os(OURS).is_some());
    let cluster = Cluster::start(&NODES);
    let engine = cluster.engine("trio");
    hosts_are_listed(&engine);
    std::thread::scope(|scope| {
        scope.spawn(|| a_time_limit_is_announced_and_75_comes_back(&cluster));
        scope.spawn(|| a_lost_node_costs_an_attempt_and_leaves_an_orphan(&cluster));
        an_array_spreads_over_three_nodes(&cluster, &engine);
        dependants_start_as_they_should(&cluster, &engine);
        a_cancelled_element_hears_term(&cluster, &engine);
        a_lane_leaves_an_unfit_host_and_the_others_stay_away(&cluster, &engine);
        a_drained_node_gets_nothing(&cluster, &engine);
    });
    jobs_survive_their_controller(&cluster);
    // Nothing is left but the daemons, which end with the cluster.
    wait_for("the end of all jobs", 120, || {
        cluster.job_processes().is_empty().then_some(())
    });
}

#[test]
fn a_cluster_ends_after_a_panic_with_its_jobs() {
    if untested() {
        return;
    }
    let place = std::sync::Mutex::new(None);
    let panicked = std::panic::catch_unwind(|| {
        let cluster = Cluster::start(&["one"]);
        *place.lock().unwrap() = Some(cluster.conf());
        let directory = cluster.directory("job");
        let script = "trap '' TERM; touch here; while :; do sleep 0.1; done";
        let asked = shell(&directory, script, &[], &[1]);
        cluster.engine("one").submit(&asked).unwrap();
        wait_for("the job", 120, || {
            directory.join("here").exists().then_some(())
        });
        assert!(!processes_with(&cluster.conf()).is_empty());
        panic!("on purpose");
    });
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
    let conf = place.lock().unwrap().take().unwrap();
    assert!(processes_with(&conf).is_empty() && !conf.exists());
}

/// Whether scripts/test could not get Slurm and says so in its last lines. Without that variable a missing
/// Slurm fails the test.
fn untested() -> bool {
    let untested = std::env::var_os("DELTABENCH_WITHOUT_SLURM").is_some();
    assert!(
        untested || Path::new("/usr/sbin/slurmctld").is_file(),
        "Slurm is not installed: run scripts/install-peers.sh slurm (as root)"
    );
    untested
}

/// A submission of a shell script; its arguments are `$1`, …, and the element's number is the last.
fn shell(directory: &Path, script: &str, arguments: &[&str], elements: &[u32]) -> Submission {
    let mut command = vec!["/bin/sh", "-c", script, "unit"];
    command.extend(arguments);
    Submission {
        name: "dlb-test".to_owned(),
        command: command.into_iter().map(Into::into).collect(),
        elements: elements.to_vec(),
        from: 0,
        at_once: None,
        minutes: 5,
        avoid: Vec::new(),
        only: None,
        after: None,
        directory: directory.to_owned(),
        copied: None,
        held: None,
    }
}

fn state(engine: &Slurm, job: &str, element: u32) -> Option<JobState> {
    let seen = engine.look(&[job.to_owned()]).unwrap();
    let found = seen.into_iter().find(|one| one.element == element);
    found.map(|one| one.state)
}

fn ended(how: &str, code: Option<i32>) -> JobState {
    JobState::Ended {
        how: how.to_owned(),
        code,
    }
}

/// Waits until all of these have ended.
fn all_ended(engine: &Slurm, job: &str, count: usize) -> Vec<Seen> {
    wait_for("all elements", 120, || {
        let seen = engine.look(&[job.to_owned()]).unwrap();
        let over = |one: &Seen| matches!(one.state, JobState::Ended { .. });
        (seen.len() == count && seen.iter().all(over)).then_some(seen)
    })
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn hosts_are_listed(engine: &Slurm) {
    let nodes = engine.nodes().unwrap();
    assert_eq!(nodes.len(), NODES.len());
    assert_eq!(nodes[0].features, ["trio", "bare"]);
    assert_eq!((nodes[0].state.as_str(), nodes[0].cores), ("idle", 2));
    assert_eq!((nodes[0].memory_mib, nodes[0].reason.as_str()), (1000, ""));
}

fn an_array_spreads_over_three_nodes(cluster: &Cluster, engine: &Slurm) {
    let directory = cluster.directory("it's 100% \"awkward\" #1");
    // Of what Slurm says, the node; then times from which overlaps can be told.
    let script =
        "begin=$(date +%s%N); sleep 0.6; printf '%s|' \"$@\" >said.$3; pwd >>said.$3; env >env.$3
                  echo \"$SLURMD_NODENAME $begin $(date +%s%N)\" >time.$3; echo told $3";
    let elements: Vec<u32> = (1..=12).collect();
    let mut asked = shell(
        &directory,
        script,
        &["a  b", "\"q\" 'r' $HOME \\"],
        &elements,
    );
    asked.at_once = Some(3);
    let job = engine.submit(&asked).unwrap();
    assert_eq!(engine.preview(&asked)[1], "#!/bin/sh");
    for seen in all_ended(engine, &job, 12) {
        assert_eq!(seen.state, ended("COMPLETED", Some(0)), "{seen:?}");
        assert_eq!(seen.job, job);
    }
    let mut times: Vec<(String, u128, u128)> = Vec::new();
    for element in elements {
        let said = read(&directory.join(format!("said.{element}")));
        let place = directory.display();
        assert_eq!(said, format!("a  b|\"q\" 'r' $HOME \\|{element}|{place}\n"));
        let environment = read(&directory.join(format!("env.{element}")));
        assert!(environment.contains("SLURM_JOB_ID="), "{environment}");
        assert!(!environment.contains(OURS), "{environment}");
        let output = read(&directory.join(format!("{job}_{element}.txt")));
        assert_eq!(output, format!("told {element}\n"));
        let time = read(&directory.join(format!("time.{element}")));
        let words: Vec<&str> = time.split_whitespace().collect();
        times.push((
            words[0].to_owned(),
            words[1].parse().unwrap(),
            words[2].parse().unwrap(),
        ));
    }
    let nodes: BTreeSet<&str> = times.iter().map(|(node, ..)| node.as_str()).collect();
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    for (node, begin, end) in &times {
        let beside = |(_, other, until): &&(String, u128, u128)| other <= begin && begin < until;
        let running = times.iter().filter(beside).count();
        assert!(running <= 3, "{running} at once");
        let same = times
            .iter()
            .filter(|one| one.0 == *node && beside(one))
            .count();
        assert_eq!(same, 1, "{node} is exclusive: {begin} to {end}");
    }
    assert!(directory.join("dlb-test-1.sh").exists());
}

fn dependants_start_as_they_should(cluster: &Cluster, engine: &Slurm) {
    let directory = cluster.directory("dependants");
    let run = |script: &str, after: Option<After>| {
        let mut asked = shell(&directory, script, &[], &[1]);
        asked.after = after;
        engine.submit(&asked).unwrap()
    };
    let good = run("sleep 1; date +%s%N >good", None);
    let bad = run("sleep 1; exit 5", None);
    let both = vec![good.clone(), bad.clone()];
    let of_good = run("date +%s%N >of_good", Some(After::Success(vec![good])));
    let of_bad = run(
        "date +%s%N >of_bad",
        Some(After::Success(vec![bad.clone()])),
    );
    let of_both = run("date +%s%N >of_both", Some(After::End(both)));
    assert_eq!(
        all_ended(engine, &bad, 1)[0].state,
        ended("FAILED", Some(5))
    );
    assert_eq!(
        all_ended(engine, &of_good, 1)[0].state,
        ended("COMPLETED", Some(0))
    );
    assert_eq!(
        all_ended(engine, &of_both, 1)[0].state,
        ended("COMPLETED", Some(0))
    );
    let never = &all_ended(engine, &of_bad, 1)[0].state;
    assert!(
        matches!(never, JobState::Ended { how, .. } if how == "CANCELLED"),
        "{never:?}"
    );
    let at = |name: &str| read(&directory.join(name)).trim().parse::<u128>().unwrap();
    assert!(at("good") < at("of_good") && at("good") < at("of_both"));
    assert!(!directory.join("of_bad").exists());
}

fn a_cancelled_element_hears_term(cluster: &Cluster, engine: &Slurm) {
    let directory = cluster.directory("cancelled");
    let script =
        "trap 'echo term >term.$1; exit 0' TERM; echo $$ >pid.$1; while :; do sleep 0.1; done";
    let job = engine
        .submit(&shell(&directory, script, &[], &[1, 2]))
        .unwrap();
    let runs = |element: u32| {
        directory
            .join(format!("pid.{element}"))
            .exists()
            .then_some(())
    };
    wait_for("both", 120, || runs(1).and(runs(2)));
    engine.cancel(&job, Some(1)).unwrap();
    wait_for("TERM", 120, || {
        directory.join("term.1").exists().then_some(())
    });
    let over = wait_for("an end", 120, || {
        state(engine, &job, 1).filter(|state| matches!(state, JobState::Ended { .. }))
    });
    assert!(
        matches!(&over, JobState::Ended { how, .. } if how == "CANCELLED"),
        "{over:?}"
    );
    assert!(matches!(state(engine, &job, 2), Some(JobState::Running(_))));
    engine.cancel(&job, None).unwrap();
    all_ended(engine, &job, 2);
    // What has ended or was never there can be cancelled again.
    engine.cancel(&job, Some(1)).unwrap();
    engine.cancel("999999", None).unwrap();
    assert_eq!(engine.look(&["999999".to_owned()]).unwrap(), []);
}

fn a_lane_leaves_an_unfit_host_and_the_others_stay_away(cluster: &Cluster, engine: &Slurm) {
    let directory = cluster.directory("unfit");
    let script = "echo $SLURMD_NODENAME >>nodes.$1; while [ ! -e stop ]; do sleep 0.1; done";
    let mut asked = shell(&directory, script, &[], &[1, 2, 3]);
    asked.at_once = Some(1);
    asked.name = "dlb-unfit-1-lanes".to_owned();
    asked.only = Some("n2".to_owned());
    let job = engine.submit(&asked).unwrap();
    assert_eq!(
        engine.find("dlb-unfit-1-lanes", 0).unwrap(),
        Some(job.clone())
    );
    assert_eq!(engine.find("dlb-unfit-1", 0).unwrap(), None);
    let nodes = |element: u32| read(&directory.join(format!("nodes.{element}")));
    wait_for("the first", 120, || (nodes(1) == "n2\n").then_some(()));
    engine.cancel(&job, None).unwrap();
    all_ended(engine, &job, 3);
    fs::remove_file(directory.join("nodes.1")).unwrap();
    asked.only = None;
    asked.name = "dlb-unfit-2-lanes".to_owned();
    let job = engine.submit(&asked).unwrap();
    wait_for("the first", 120, || (!nodes(1).is_empty()).then_some(()));
    let first = nodes(1).trim().to_owned();
    let others: Vec<String> = ["n1", "n2", "n3"]
        .into_iter()
        .filter(|node| *node != first)
        .map(str::to_owned)
        .collect();
    let unfit = vec![first.clone(), others[0].clone()];
    // Each has nodes of its own that it keeps away from, until the next word.
    engine
        .avoid(&job, &|lane| vec![format!("n{lane}")])
        .unwrap();
    let excluded = |element: u32| {
        let told = cluster.told("scontrol", &["show", "job", &format!("{job}_{element}")]);
        let mut words = told.split_whitespace();
        let found = words.find_map(|word| word.strip_prefix("ExcNodeList="));
        found.unwrap_or_default().to_owned()
    };
    assert_eq!([excluded(2), excluded(3)], ["n2", "n3"]);
    engine.avoid(&job, &|_| unfit.clone()).unwrap();
    assert!(engine.elsewhere(&job, 1, &unfit).unwrap());
    // Slurm holds it back for two minutes unless somebody asks.
    fs::write(directory.join("stop"), "").unwrap();
    wait_for("the second start", 90, || {
        engine.hasten(&job, 1).unwrap();
        (nodes(1).lines().count() == 2).then_some(())
    });
    for seen in all_ended(engine, &job, 3) {
        assert_eq!(seen.state, ended("COMPLETED", Some(0)));
    }
    assert_eq!(nodes(1), format!("{first}\n{}\n", others[1]));
    for element in [2, 3] {
        assert_eq!(nodes(element), format!("{}\n", others[1]), "it waited");
    }
}

fn a_drained_node_gets_nothing(cluster: &Cluster, engine: &Slurm) {
    let directory = cluster.directory("drained");
    assert!(engine.drain("ALL", "no such host").is_err());
    engine.drain("n1", "fsync is slow | ticket 12").unwrap();
    let nodes = engine.nodes().unwrap();
    assert_eq!(nodes[0].reason, "fsync is slow | ticket 12");
    assert!(nodes[0].state.starts_with("drain"), "{nodes:?}");
    let mut asked = shell(
        &directory,
        "echo $SLURMD_NODENAME >node.$1; sleep 0.3",
        &[],
        &[1, 2, 3, 4],
    );
    asked.avoid = vec!["n2".to_owned()];
    let job = engine.submit(&asked).unwrap();
    for seen in all_ended(engine, &job, 4) {
        assert_eq!(seen.state, ended("COMPLETED", Some(0)));
        let node = read(&directory.join(format!("node.{}", seen.element)));
        assert_eq!(node, "n3\n", "n1 is drained and n2 avoided");
    }
    // What Slurm refuses leaves no script behind, and the reason is Slurm's own.
    asked.avoid = vec!["no-such-node".to_owned()];
    let refused = engine.submit(&asked).unwrap_err();
    assert!(!refused.of_machine, "{refused}");
    let detail = refused.detail.unwrap();
    assert!(
        detail.contains("sbatch: error: ") && detail.contains("no-such-node"),
        "{detail}"
    );
    assert!(!directory.join("dlb-test-2.sh").exists());
    engine.undrain("n1", "somebody else's reason").unwrap();
    assert!(engine.nodes().unwrap()[0].state.starts_with("drain"));
    let why = "fsync is slow | ticket 12";
    engine.undrain("n1", why).unwrap();
    // With a star until Slurm hears of it again.
    assert!(engine.nodes().unwrap()[0].state.starts_with("idle"));
    // It was not drained, so there is nothing to undo.
    engine.undrain("n1", why).unwrap();
}

fn a_time_limit_is_announced_and_75_comes_back(cluster: &Cluster) {
    let engine = cluster.engine("limit");
    let directory = cluster.directory("limit");
    let script = "[ \"${SLURM_RESTART_COUNT:-0}\" = 1 ] && { echo again >again; exit 0; }
                  trap 'echo usr1 >usr1; exit 75' USR1; touch ready; while :; do sleep 0.1; done";
    let mut asked = shell(&directory, script, &[], &[7]);
    asked.minutes = 1;
    let job = engine.submit(&asked).unwrap();
    wait_for("USR1", 75, || directory.join("usr1").exists().then_some(()));
    // Requeued, and held back for two minutes unless somebody asks.
    wait_for("a second place in the queue", 120, || {
        matches!(state(&engine, &job, 7), Some(JobState::Waiting(_))).then_some(())
    });
    engine.hasten(&job, 7).unwrap();
    let over = &all_ended(&engine, &job, 1)[0].state;
    assert_eq!(*over, ended("COMPLETED", Some(0)));
    assert_eq!(read(&directory.join("again")), "again\n");
    engine.hasten(&job, 7).unwrap();
}

fn a_lost_node_costs_an_attempt_and_leaves_an_orphan(cluster: &Cluster) {
    let engine = cluster.engine("frail");
    let directory = cluster.directory("frail");
    // An attempt beats until there is a file of its name, and ends by itself.
    let script = "n=${SLURM_RESTART_COUNT:-0}; echo $$ $PPID $SLURMD_NODENAME >attempt.$n
                  while [ ! -e stop.$n ]; do echo . >>beat.$n; sleep 0.1; done; echo over >over.$n";
    let job = engine
        .submit(&shell(&directory, script, &[], &[1]))
        .unwrap();
    let attempt = |number: u32| {
        let said = read(&directory.join(format!("attempt.{number}")));
        let words: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
        (words.len() == 3).then_some(words)
    };
    let first = wait_for("the first attempt", 120, || attempt(0));
    let (orphan, step): (u32, u32) = (first[0].parse().unwrap(), first[1].parse().unwrap());
    cluster.kill(&first[2]);
    kill_process(step);
    wait_for("NODE_FAIL", 90, || {
        matches!(state(&engine, &job, 1), Some(JobState::Waiting(_))).then_some(())
    });
    engine.hasten(&job, 1).unwrap();
    let second = wait_for("the second attempt", 90, || attempt(1));
    assert_ne!(first[2], second[2], "it runs elsewhere");
    assert_eq!(
        state(&engine, &job, 1),
        Some(JobState::Running(second[2].clone()))
    );
    // Two attempts at once: nobody ended the first.
    assert!(!has_ended(orphan));
    let beats = fs::metadata(directory.join("beat.0")).unwrap().len();
    wait_for("a beat of the orphan", 120, || {
        (fs::metadata(directory.join("beat.0")).unwrap().len() > beats).then_some(())
    });
    let lost = engine.nodes().unwrap();
    let lost = lost.iter().find(|node| node.name == first[2]).unwrap();
    assert!(lost.state.starts_with("down"), "{lost:?}");
    for number in 0..2 {
        fs::write(directory.join(format!("stop.{number}")), "").unwrap();
    }
    let over = &all_ended(&engine, &job, 1)[0].state;
    assert_eq!(*over, ended("COMPLETED", Some(0)));
    wait_for("the orphan's own end", 120, || {
        has_ended(orphan).then_some(())
    });
    assert_eq!(read(&directory.join("over.0")), "over\n");
}

fn jobs_survive_their_controller(cluster: &Cluster) {
    let engine = cluster.engine("trio");
    let directory = cluster.directory("controller");
    let script = "touch here.$1; while [ ! -e stop ]; do sleep 0.1; done";
    let job = engine
        .submit(&shell(&directory, script, &[], &[1, 2]))
        .unwrap();
    wait_for("both", 120, || {
        (directory.join("here.1").exists() && directory.join("here.2").exists()).then_some(())
    });
    cluster.wait_until_saved(&job);
    cluster.kill("slurmctld");
    let hasty = Slurm {
        patience: Duration::ZERO,
        ..engine.clone()
    };
    let start = Instant::now();
    let told = hasty.look(std::slice::from_ref(&job)).unwrap_err();
    assert!(told.of_machine && told.hint.unwrap().contains("go on"));
    assert!(start.elapsed() < Duration::from_secs(60));
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| engine.look(std::slice::from_ref(&job)).unwrap());
        cluster.start_controller();
        let seen = looking.join().unwrap();
        let running = |one: &Seen| matches!(one.state, JobState::Running(_));
        assert!(seen.len() == 2 && seen.iter().all(running), "{seen:?}");
    });
    fs::write(directory.join("stop"), "").unwrap();
    for seen in all_ended(&engine, &job, 2) {
        assert_eq!(seen.state, ended("COMPLETED", Some(0)));
    }
    // Submitted while the controller is away: it is there once when it is back.
    let late = cluster.directory("late");
    cluster.kill("slurmctld");
    let asked = shell(&late, "echo here >>here", &[], &[1]);
    let job = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| engine.submit(&asked).unwrap());
        cluster.start_controller();
        submitting.join().unwrap()
    });
    all_ended(&engine, &job, 1);
    assert_eq!(read(&late.join("here")), "here\n");
}
