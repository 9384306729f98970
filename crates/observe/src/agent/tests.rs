//! Both sides of an agent in one process.

use super::*;
use crate::agent::lines::Lines;
use crate::agent::protocol::{Hello, Reply, Request};
use crate::host_facts::read_host;
use crate::slice_meters::tests::Worker;
use deltabench_driver::admin::Client;
use deltabench_testkit::Cluster;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

const LONG: Duration = Duration::from_secs(60);

fn link(near: &UnixStream) -> Link {
    let input = File::from(OwnedFd::from(near.try_clone().unwrap()));
    Link::new(input, Lines::new(near.try_clone().unwrap()), None)
}

/// A far side in a thread of this process.
fn far(silence: Duration) -> (UnixStream, JoinHandle<Served>) {
    let (near, far) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        let output = far.try_clone().unwrap();
        serve(far, output, silence)
    });
    (near, thread)
}

/// An agent on this machine, without ssh.
pub(crate) fn loopback() -> Agent {
    Agent::greet("there", link(&far(LONG).0)).unwrap()
}

/// An agent on this machine that can be cut off by shutting the socket down.
pub(crate) fn mortal() -> (Agent, UnixStream) {
    let (near, _) = far(LONG);
    (Agent::greet("there", link(&near)).unwrap(), near)
}

/// An agent whose far side says what it is told to.
fn scripted(script: impl FnOnce(UnixStream) + Send + 'static) -> Result<Agent, Problem> {
    let (near, far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || script(far));
    let link = link(&near);
    drop(near);
    Agent::greet("there", link)
}

fn told(far: &mut UnixStream, id: u64, answer: Answer) {
    let reply = serde_json::to_string(&Reply { id, answer }).unwrap();
    writeln!(far, "{reply}").unwrap();
}

#[test]
fn meters_over_there_read_what_meters_here_do() {
    let agent = loopback();
    let mut workers = [Worker::start(), Worker::start()];
    let pids = workers.each_ref().map(Worker::pid);
    let mut remote = agent.meters(&pids, true).unwrap();
    let mut local = crate::SliceMeters::open(&pids).unwrap();
    for active in [0, 1, 1] {
        remote.start();
        local.start();
        workers[active].work();
        let here = local.end(active, 0).unwrap();
        let there = remote.end(active, 0).unwrap();
        assert!(there.server.cpu_ns > 2_000_000, "{there:?}");
        assert!(there.server.cpu_ns >= here.server.cpu_ns, "read around it");
        assert!(
            there.server.cpu_ns < 2 * here.server.cpu_ns,
            "{here:?} {there:?}"
        );
        assert!(there.idle_cpu_ns < there.server.cpu_ns / 2, "{there:?}");
        assert_eq!(
            there.cpu_pressure_ns.is_some(),
            here.cpu_pressure_ns.is_some()
        );
    }
    remote.start();
    assert_eq!(remote.end(2, 0), None, "there is no third");
    assert_eq!(remote.end(0, 0), None, "not without a start");
    assert_eq!(remote.sources().pressure, local.sources().pressure);
    assert_eq!(agent.news(), []);
}

#[test]
fn a_real_server_is_found_by_its_backends_and_its_work_is_read() {
    for cluster in Cluster::for_each_target("", &["autovacuum=off"]) {
        let (endpoint, login) = (cluster.endpoint(), cluster.login());
        let connect = || Client::connect(&endpoint, &login, LONG).unwrap();
        let mut clients = [connect(), connect()];
        let backends = clients.each_ref().map(Client::backend_pid);
        let agent = loopback();
        let found = agent.find(&backends, &login.user, &login.database);
        assert_eq!(found.unwrap(), cluster.pid());
        assert!(agent.find(&backends, &login.user, "another").is_err());
        assert!(
            agent
                .find(&[cluster.pid()], &login.user, &login.database)
                .is_err()
        );
        let mut there = agent.meters(&[cluster.pid()], false).unwrap();
        let mut here = crate::SliceMeters::open(&[cluster.pid()]).unwrap();
        there.start();
        here.start();
        let sql = "select count(*) from generate_series(1, 100000)";
        clients[1].query(sql).unwrap();
        let here = here.end(0, 0).unwrap().server.cpu_ns;
        let there = there.end(0, 0).unwrap().server.cpu_ns;
        assert!(here > 1_000_000 && there >= here, "{here} {there}");
        assert!(there < here + here / 2, "{here} {there}");
    }
}

#[test]
fn on_our_own_machine_the_client_is_not_foreign() {
    let agent = loopback();
    assert!(agent.about().same_machine);
    assert!(agent.about().round_trip_ns > 0);
    let mut meters = agent.meters(&[std::process::id()], false).unwrap();
    meters.start();
    assert_eq!(meters.end(0, u64::MAX).unwrap().foreign_cpu_ns, 0);
}

#[test]
fn facts_of_the_host_come_over_and_findings_name_it() {
    let agent = loopback();
    let facts = agent.host_facts().unwrap();
    let own = read_host();
    assert_eq!(
        (facts.cpu_model, facts.memory_bytes, facts.kernel),
        (own.cpu_model, own.memory_bytes, own.kernel)
    );
    let poor = HostFacts {
        online_cores: 1,
        clock_source: Some("hpet".to_owned()),
        ..HostFacts::default()
    };
    let findings = agent.findings(&poor, Duration::from_secs(3600));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].text.starts_with("there: "), "{findings:?}");
    let far = agent.findings(&HostFacts::default(), Duration::from_nanos(1));
    assert_eq!(far[0].kind, "agent-far");
}

#[test]
fn samples_are_on_our_clock_however_wrong_the_far_one_is() {
    let hour = 3_600_000_000_000;
    let sample = |at_ns| Sample {
        at_ns,
        over_ns: 1,
        values: BTreeMap::new(),
    };
    let far = Samples {
        now_ns: 50 * hour,
        samples: vec![sample(50 * hour - 2), sample(50 * hour - 1)],
        more: false,
    };
    let at: Vec<u64> = on_our_clock(far, 7 * hour).map(|s| s.at_ns).collect();
    assert_eq!(at, [7 * hour - 2, 7 * hour - 1]);
}

#[test]
fn samples_of_host_and_servers_are_taken_until_told_otherwise() {
    let agent = loopback();
    assert_eq!(agent.samples().unwrap(), []);
    let began = now_ns();
    let watched = vec![(ServerId(3), std::process::id())];
    agent.watch(watched, Duration::from_millis(10)).unwrap();
    let mut all = Vec::new();
    let until = Instant::now() + LONG;
    while all.len() < 5 {
        assert!(Instant::now() < until);
        all.extend(agent.samples().unwrap());
    }
    assert!(all.iter().all(|sample| sample.at_ns > began));
    assert!(all[4].values.contains_key("context_switches"));
    assert!(all[4].values.contains_key("server_rss@3"), "{:?}", all[4]);
    agent.watch(Vec::new(), Duration::from_millis(10)).unwrap();
}

#[test]
fn another_version_is_refused_on_either_side() {
    let (near, thread) = far(LONG);
    let mut raw = link(&near);
    let early = raw.ask(Ask::Facts, LONG).unwrap();
    assert!(matches!(early, Answer::Refused(_)), "not greeted yet");
    let hello = Ask::Hello {
        protocol: PROTOCOL,
        version: "0.0.1".to_owned(),
    };
    let Answer::Refused(refusal) = raw.ask(hello, LONG).unwrap() else {
        panic!("taken for the same version")
    };
    let problem = upgrade("db", refusal).to_string();
    assert!(problem.contains("no agent on db"), "{problem}");
    assert!(
        problem.contains("0.0.1") && problem.contains(VERSION),
        "{problem}"
    );
    drop((raw, near));
    assert_eq!(thread.join().unwrap(), Served::Closed);
    let newer = |mut far: UnixStream| {
        let hello = Hello {
            protocol: PROTOCOL + 1,
            version: VERSION.to_owned(),
            boot: None,
        };
        told(&mut far, 1, Answer::Hello(hello));
        far.read_to_end(&mut Vec::new()).unwrap();
    };
    let problem = scripted(newer).unwrap_err();
    assert!(problem.hint.unwrap().contains("DELTABENCH_AGENT_PROGRAM"));
}

#[test]
fn a_lost_agent_is_told_once_and_everything_else_is_absent() {
    let (agent, socket) = mortal();
    let own = std::process::id();
    let mut meters = agent.meters(&[own], false).unwrap();
    let counters = agent.counters(own, &[]).unwrap();
    meters.start();
    socket.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(meters.end(0, 0), None);
    assert!(agent.is_lost());
    meters.start();
    assert_eq!(meters.end(0, 0), None);
    assert!(counters.finish().is_empty());
    assert!(agent.host_facts().is_err() && agent.samples().is_err());
    let news = agent.news();
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].kind, "agent-lost");
    assert_eq!(agent.news(), []);
}

#[test]
fn a_greeting_of_the_login_shell_is_no_answer_and_does_no_harm() {
    let noisy = |mut far: UnixStream| {
        writeln!(far, "Welcome to db!\n").unwrap();
        let output = far.try_clone().unwrap();
        serve(far, output, LONG);
    };
    assert!(scripted(noisy).unwrap().host_facts().is_ok());
    let talker = |mut far: UnixStream| {
        // Until the other side has had enough.
        while writeln!(far, "welcome").is_ok() {}
    };
    let problem = scripted(talker).unwrap_err();
    assert!(problem.error.contains("cannot read"), "{problem}");
}

#[test]
fn an_answer_to_another_question_is_a_loss() {
    let confused = |far: UnixStream| {
        let mut output = far.try_clone().unwrap();
        for line in BufReader::new(far).lines() {
            let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
            let answer = match request.ask {
                Ask::Hello { protocol, version } => Answer::Hello(Hello {
                    protocol,
                    version,
                    boot: None,
                }),
                Ask::Ping => Answer::Done,
                _ => Answer::Postmaster(1),
            };
            told(&mut output, request.id, answer);
        }
    };
    let agent = scripted(confused).unwrap();
    assert!(!agent.about().same_machine);
    assert_eq!(agent.find(&[5], "me", "shop").unwrap(), 1);
    assert!(agent.host_facts().is_err() && agent.is_lost());
}

#[test]
fn samples_without_end_are_a_loss() {
    let endless = |far: UnixStream| {
        let mut output = far.try_clone().unwrap();
        for line in BufReader::new(far).lines() {
            let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
            let answer = match request.ask {
                Ask::Hello { protocol, version } => Answer::Hello(Hello {
                    protocol,
                    version,
                    boot: None,
                }),
                Ask::Samples => Answer::Samples(Samples {
                    now_ns: 1,
                    samples: Vec::new(),
                    more: true,
                }),
                _ => Answer::Done,
            };
            told(&mut output, request.id, answer);
        }
    };
    let agent = scripted(endless).unwrap();
    assert!(agent.samples().is_err() && agent.is_lost());
}

#[test]
fn a_far_side_that_says_nothing_is_not_waited_for_forever() {
    let (near, _far) = UnixStream::pair().unwrap();
    let limit = Duration::from_millis(20);
    let lost = link(&near).ask(Ask::Ping, limit).unwrap_err();
    assert_eq!(lost, link::Lost::Silent(limit));
}

#[test]
fn the_far_side_ends_when_nobody_asks() {
    let (_near, thread) = far(Duration::from_millis(20));
    assert_eq!(thread.join().unwrap(), Served::Silent);
    let (near, thread) = far(LONG);
    drop(near);
    assert_eq!(thread.join().unwrap(), Served::Closed);
    let (mut near, thread) = far(LONG);
    writeln!(near, "{{\"id\": 1, \"ask\": \"format-disk\"}}").unwrap();
    assert_eq!(thread.join().unwrap(), Served::Broken);
}

#[test]
fn the_last_clone_of_an_agent_ends_its_far_side() {
    let (near, thread) = far(LONG);
    let agent = Agent::greet("there", link(&near)).unwrap();
    drop(near);
    let meters = agent.meters(&[std::process::id()], false).unwrap();
    drop(agent);
    assert!(!thread.is_finished());
    drop(meters);
    assert_eq!(thread.join().unwrap(), Served::Closed);
}

#[test]
fn only_a_host_is_taken_for_a_host() {
    assert_eq!(host_of("ssh:me@db.example").unwrap(), "me@db.example");
    assert_eq!(host_of("ssh:[fe80::1%eth0]").unwrap(), "[fe80::1%eth0]");
    for spec in ["ssh:", "db", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:a\nb"] {
        assert!(host_of(spec).is_err(), "{spec}");
    }
    for spec in [
        "ssh:$(id)",
        "ssh:a;b",
        "ssh:`id`",
        "ssh:me@-oProxyCommand=x",
    ] {
        assert!(host_of(spec).is_err(), "{spec}");
    }
}
