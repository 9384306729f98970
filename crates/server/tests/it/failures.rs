//! Starts that fail, servers that die.

use crate::lab::{
    Lab, any_installation, cache, installations, is_running, processes_in, shared_memory_of, slot,
};
use crate::query::value;
use deltabench_server::{Cluster, ClusterSpec, Template};
use deltabench_testkit::not_tested;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

fn pair(name: &str, value: &str) -> [(String, String); 1] {
    [(name.to_owned(), value.to_owned())]
}

fn kill_hard(pid: u32) {
    assert!(
        Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Shared memory files that these processes have mapped.
fn segments_of(pids: &[u32]) -> BTreeSet<String> {
    let maps = pids
        .iter()
        .map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
    maps.flat_map(|text| {
        let paths = text
            .lines()
            .filter_map(|line| line.split_ascii_whitespace().nth(5).map(str::to_owned));
        paths
            .filter(|path| path.starts_with("/dev/shm/"))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn a_setting_that_the_version_lacks_is_refused_by_name() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let mut cluster = lab.cluster(&format!("c{number}"), installation);
        let problem = cluster
            .start(&slot(5500), &pair("io_methodd", "worker"))
            .unwrap_err();
        let wanted = format!(
            "{} does not know setting `io_methodd`",
            installation.resolved
        );
        assert_eq!(problem.error, wanted);
        assert!(
            problem
                .detail
                .unwrap()
                .contains("unrecognized configuration parameter")
        );
        assert!(cluster.endpoint().is_none());
        // The failed start spoils nothing.
        cluster.start(&slot(5500), &[]).unwrap();
    }
}

#[test]
fn a_value_that_the_server_refuses_is_told_in_its_own_words() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let mut cluster = lab.cluster(&format!("c{number}"), installation);
        for (name, bad) in [
            ("wal_level", "maximal"),
            ("shared_buffers", "8kB"),
            ("fsync", "perhaps"),
            ("work_mem", "64mb"),
        ] {
            let problem = cluster.start(&slot(5500), &pair(name, bad)).unwrap_err();
            let wanted = format!(
                "{} refuses the value of setting `{name}`",
                installation.resolved
            );
            assert_eq!(problem.error, wanted, "{:?}", problem.detail);
        }
        let problem = cluster
            .start(&slot(5500), &pair("port", "5432"))
            .unwrap_err();
        assert!(problem.error.contains("cannot be chosen"));
    }
    assert!(processes_in(lab.scratch.path()).is_empty());
}

#[test]
fn a_start_that_fails_shows_the_end_of_the_log_and_leaves_no_process() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    std::fs::remove_file(cluster.data_dir().join("global/pg_control")).unwrap();
    let problem = cluster.start(&slot(5500), &[]).unwrap_err();
    assert!(
        problem.error.contains("ended while it was starting"),
        "{problem}"
    );
    assert!(problem.detail.unwrap().contains("pg_control"));
    assert!(cluster.log_tail(5).contains("pg_control"));
    assert!(processes_in(lab.scratch.path()).is_empty());
}

#[test]
fn a_second_server_on_a_taken_port_fails_without_harm_to_the_first() {
    let lab = Lab::new();
    let installation = any_installation();
    let (mut first, mut second) = (
        lab.cluster("c0", &installation),
        lab.cluster("c1", &installation),
    );
    let endpoint = first.start(&slot(5500), &[]).unwrap().endpoint.clone();
    let problem = second.start(&slot(5500), &[]).unwrap_err();
    assert!(problem.detail.unwrap().contains(".s.PGSQL.5500"));
    assert_eq!(value(&endpoint, "select 1"), "1");
    second.start(&slot(5501), &[]).unwrap();
}

#[test]
fn a_server_killed_under_us_is_noticed_cleared_and_starts_again() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let mut cluster = lab.cluster(&format!("c{number}"), installation);
        let mut other = lab.cluster(&format!("d{number}"), installation);
        let pid = cluster.start(&slot(5500), &[]).unwrap().postmaster_pid;
        let segments =
            std::fs::read_to_string(cluster.log_path().with_file_name("shared_memory")).unwrap();
        assert!(segments.starts_with("/dev/shm/PostgreSQL."), "{segments}");
        let mapped = segments_of(&processes_in(lab.scratch.path()));
        assert!(segments.lines().all(|path| mapped.contains(path)));
        kill_hard(pid);
        wait_until("its end is noticed", || !cluster.is_alive());
        let problem = cluster.stop().unwrap_err();
        assert!(
            problem.error.contains("ended on its own (signal: 9"),
            "{problem}"
        );
        assert!(
            problem
                .detail
                .unwrap()
                .contains("ready to accept connections")
        );
        assert!(
            processes_in(lab.scratch.path()).is_empty(),
            "no backend outlives it"
        );
        assert_eq!(shared_memory_of(pid), 0);
        // Also what only backends had mapped, which from 15 on hold statistics in a segment of their own.
        for path in &mapped {
            assert!(
                !std::path::Path::new(path).exists(),
                "{path} of {}",
                installation.resolved
            );
        }
        assert!(
            other
                .copy_data(&cluster)
                .unwrap_err()
                .detail
                .unwrap()
                .contains("did not stop cleanly")
        );
        cluster.stop().unwrap();
        cluster.start(&slot(5500), &[]).unwrap();
        cluster.stop().unwrap();
        other.copy_data(&cluster).unwrap();
    }
}

#[test]
fn a_crashed_backend_ends_the_server_instead_of_restarting_it_cold() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let endpoint = cluster.start(&slot(5500), &[]).unwrap().endpoint.clone();
    let postmaster = cluster.postmaster_pid().unwrap();
    let pid: u32 = value(
        &endpoint,
        // The oldest one stays; a connection that has just ended may be gone before it is killed.
        "select pid from pg_stat_activity where pid <> pg_backend_pid() order by backend_start limit 1",
    )
    .parse()
    .unwrap();
    kill_hard(pid);
    wait_until("the server ends", || !cluster.is_alive());
    assert!(
        cluster
            .stop()
            .unwrap_err()
            .error
            .contains("ended on its own")
    );
    assert!(!is_running(postmaster));
}

#[test]
fn a_tree_out_of_the_server_user_s_reach_is_refused_with_the_directory_in_the_way() {
    let lab = Lab::new();
    if !lab.user.switched {
        not_tested(
            "a tree out of the reach of the server's user",
            "only root starts servers as another user",
        );
        return;
    }
    let mut installation = any_installation();
    let closed = lab.scratch.path().join("closed");
    std::fs::create_dir_all(closed.join("bin")).unwrap();
    for program in ["postgres", "initdb"] {
        std::fs::write(closed.join("bin").join(program), "").unwrap();
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    installation.bin_dir = closed.join("bin");
    let spec = ClusterSpec {
        installation: &installation,
        checksums: None,
        settings: &[],
    };
    let problem = Cluster::create(lab.workspace(), "c0", &spec, &cache(), &lab.user)
        .err()
        .unwrap();
    assert!(
        problem
            .error
            .contains(&format!("user `{}` cannot access", lab.user.name)),
        "{problem}"
    );
    assert!(
        problem
            .detail
            .unwrap()
            .starts_with(&format!("{} has mode 0700", closed.display()))
    );
    assert!(problem.hint.unwrap().contains("--server-user"));
}

#[test]
fn an_initdb_that_fails_shows_its_output_and_leaves_no_template() {
    let lab = Lab::new();
    let mut installation = any_installation();
    let tree = lab.scratch.path().join("broken");
    std::fs::create_dir_all(&tree).unwrap();
    for (program, script) in [
        ("postgres", "#!/bin/sh\n"),
        ("initdb", "#!/bin/sh\necho no luck today\nexit 3\n"),
    ] {
        std::fs::write(tree.join(program), script).unwrap();
        std::fs::set_permissions(tree.join(program), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    installation.bin_dir = tree;
    let own_cache = lab.scratch.path().join("cache");
    let problem = Template::obtain(&installation, None, &own_cache, lab.workspace()).unwrap_err();
    assert!(
        problem.error.contains("initdb of") && problem.error.contains("exit status: 3"),
        "{problem}"
    );
    assert!(problem.detail.unwrap().contains("no luck today"));
    let left = std::fs::read_dir(own_cache.join("initdb"))
        .unwrap()
        .flatten();
    assert!(
        left.map(|entry| entry.file_name())
            .all(|name| name.to_str().unwrap().ends_with(".lock"))
    );
    // Nor anything in the workspace but what it was made with.
    assert_eq!(
        std::fs::read_dir(lab.workspace().directory())
            .unwrap()
            .count(),
        3
    );
}
