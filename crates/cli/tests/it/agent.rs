//! The agent of a server on another machine: the binary itself behind a program that stands for ssh.

use crate::lab::text;
use deltabench_observe::agent::{Agent, Programs};
use deltabench_observe::{Metered, Meters, Postmaster};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_deltabench");

/// Runs the command in a shell, as sshd does, and keeps what it was called with.
const HERE: &str = r#"echo "$@" >"$0.called"; for last; do :; done; exec sh -c "$last""#;

/// Programs with a script in the place of ssh.
fn programs(directory: &Path, script: &str, deltabench: &str) -> Programs {
    let path = directory.join("ssh");
    let mut file = std::fs::File::create(&path).unwrap();
    write!(file, "#!/bin/sh\n{script}\n").unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755))
        .unwrap();
    Programs {
        ssh: path.into_os_string(),
        deltabench: deltabench.to_owned(),
    }
}

#[test]
fn an_agent_behind_ssh_reads_cpu_facts_and_samples() {
    let directory = tempfile::tempdir().unwrap();
    let programs = programs(directory.path(), HERE, BINARY);
    let agent = Agent::start_with("ssh:me@db", &programs).unwrap();
    let called = std::fs::read_to_string(directory.path().join("ssh.called")).unwrap();
    let expected =
        "-o BatchMode=yes -o ConnectTimeout=10 -o ClearAllForwardings=yes -a -x -T me@db";
    assert_eq!(called.trim(), format!("{expected} {BINARY} agent"));
    assert!(agent.about().round_trip_ns > 0 && agent.about().same_machine);
    assert!(agent.host_facts().unwrap().online_cores >= 1);
    let mut child = Command::new("sh")
        .args([
            "-c",
            "read go; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; read end",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let server = Postmaster::Remote(agent.clone(), child.id());
    let metered = Metered {
        devices: true,
        short_lived: false,
    };
    let mut meters = Meters::open(std::slice::from_ref(&server), metered).unwrap();
    let counters = server.counters(&[]).unwrap();
    meters.start(0);
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    let mut done = [0_u8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut done).unwrap();
    let costs = meters.end(0, 0);
    assert!(costs.server.unwrap().cpu_ns > 5_000_000, "{costs:?}");
    let counted = counters.finish();
    assert!(
        counted["process_user_ns"] + counted["process_system_ns"] > 1e6,
        "{counted:?}"
    );
    let stranger = agent.find(&[child.id()], "me", "shop").unwrap_err();
    assert!(stranger.detail.unwrap().contains("sh"));
    drop(child.stdin.take());
    child.wait().unwrap();
    agent.watch(Vec::new(), Duration::from_millis(10)).unwrap();
    let mut samples = Vec::new();
    while samples.is_empty() {
        samples = agent.samples().unwrap();
    }
    assert!(samples[0].values.contains_key("context_switches"));
    assert_eq!(agent.news(), []);
}

#[test]
fn an_agent_that_cannot_be_had_says_why_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let unknown =
        "echo 'ssh: Could not resolve hostname db: Name or service not known' >&2; exit 255";
    let denied = "echo 'me@db: Permission denied (publickey).' >&2; exit 255";
    for (script, deltabench, error) in [
        (unknown, BINARY, "no agent on me@db: no such host"),
        (
            denied,
            BINARY,
            "no agent on me@db: it refuses a login without a password",
        ),
        (
            HERE,
            "/no/deltabench",
            "no agent on me@db: there is no executable /no/deltabench",
        ),
        (
            HERE,
            "true",
            "no agent on me@db: true ended there with exit code 0",
        ),
        (
            HERE,
            "yes",
            "the agent on me@db sent an answer that deltabench cannot read",
        ),
    ] {
        let programs = programs(directory.path(), script, deltabench);
        let problem = Agent::start_with("ssh:me@db", &programs).unwrap_err();
        assert_eq!(problem.error, error);
        assert!(problem.hint.is_some(), "{problem}");
    }
}

#[test]
fn an_agent_that_is_killed_is_lost_and_told_once() {
    let directory = tempfile::tempdir().unwrap();
    // The first shell's number is that of the agent: each step replaces the one before.
    let script = format!("echo $$ >\"$0.pid\"; {HERE}");
    let deltabench = format!("exec {BINARY}");
    let programs = programs(directory.path(), &script, &deltabench);
    let agent = Agent::start_with("ssh:db", &programs).unwrap();
    let own = Postmaster::Remote(agent.clone(), std::process::id());
    let mut meters = Meters::open(&[own], Metered::default()).unwrap();
    meters.start(0);
    assert!(meters.end(0, 0).server.is_some());
    let pid = std::fs::read_to_string(directory.path().join("ssh.pid")).unwrap();
    let killed = Command::new("kill").args(["-9", pid.trim()]).status();
    assert!(killed.unwrap().success());
    meters.start(0);
    assert_eq!(
        meters.end(0, 0),
        deltabench_observe::MachineCosts::default()
    );
    let news = agent.news();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].kind == "agent-lost" && news[0].text.contains("db"));
}

#[test]
fn nobody_has_to_end_an_agent_and_it_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(BINARY)
        .arg("agent")
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let mut child = Command::new(BINARY)
        .arg("agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "hello").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("a request that it cannot read"));
}
