//! The life of a cluster when all goes well.

use crate::lab::small_settings;
use crate::lab::{
    Lab, any_installation, contents, installations, is_running, processes_in, shared_memory_of,
    slot,
};
use crate::query::{query, settings, value};
use deltabench_server::{Cluster, ClusterSpec, Slot, unmet};
use std::os::unix::fs::MetadataExt;

#[test]
fn every_version_starts_takes_the_steady_settings_and_stops_cleanly() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let mut cluster = lab.cluster(&format!("c{number}"), installation);
        let running = cluster.start(&slot(5500), &[]).unwrap().clone();
        let reported = value(&running.endpoint, "show server_version_num");
        assert_eq!(reported, installation.version_num.to_string());
        assert_eq!(
            value(
                &running.endpoint,
                "select rolsuper from pg_roles where rolname = current_user"
            ),
            "t"
        );
        assert_eq!(value(&running.endpoint, "show listen_addresses"), "");
        let asked = small_settings(installation.version_num);
        assert_eq!(
            unmet(&asked, &settings(&running.endpoint)),
            Vec::<String>::new(),
            "{}",
            installation.resolved
        );
        let odd = [("work_mem".to_owned(), "7MB".to_owned())];
        assert_eq!(unmet(&odd, &settings(&running.endpoint)).len(), 1);
        assert!(cluster.is_alive());
        cluster.stop().unwrap();
        assert!(!is_running(running.postmaster_pid) && cluster.endpoint().is_none());
        assert_eq!(shared_memory_of(running.postmaster_pid), 0);
    }
    assert!(processes_in(lab.scratch.path()).is_empty());
}

#[test]
fn each_start_runs_a_new_copy_of_the_executable_that_finds_its_files() {
    let lab = Lab::new();
    let installation = any_installation();
    let mut cluster = lab.cluster("c0", &installation);
    let own = Slot {
        own_executable: true,
        ..slot(5500)
    };
    let mut inodes = Vec::new();
    for _ in 0..2 {
        let running = cluster.start(&own, &[]).unwrap().clone();
        let exe = format!("/proc/{}/exe", running.postmaster_pid);
        let path = std::fs::read_link(&exe).unwrap();
        assert!(path.starts_with(lab.workspace().directory()), "{path:?}");
        assert_eq!(
            std::fs::read(&exe).unwrap(),
            std::fs::read(installation.binary()).unwrap()
        );
        inodes.push(std::fs::metadata(&exe).unwrap().ino());
        // From its share directory, and from its libraries.
        let zone = "select count(*) > 100 from pg_timezone_names";
        assert_eq!(value(&running.endpoint, zone), "t");
        let function = "create or replace function pg_temp.seven() returns int language plpgsql \
             as 'begin return 7; end'; select pg_temp.seven()";
        assert_eq!(value(&running.endpoint, function), "7");
        cluster.stop().unwrap();
    }
    assert_ne!(inodes[0], inodes[1]);
}

#[test]
fn the_server_is_unprivileged_and_its_directories_are_closed() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let pid = cluster.start(&slot(5500), &[]).unwrap().postmaster_pid;
    let process = std::fs::metadata(format!("/proc/{pid}")).unwrap();
    assert_eq!((process.uid(), process.gid()), (lab.user.uid, lab.user.gid));
    assert_ne!(process.uid(), 0);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    if lab.user.switched {
        let groups = status
            .lines()
            .find_map(|line| line.strip_prefix("Groups:"))
            .unwrap();
        assert_eq!(groups.trim(), "", "no groups of ours are kept");
    }
    for directory in [
        cluster.data_dir(),
        lab.workspace().socket_dir().to_path_buf(),
    ] {
        let metadata = std::fs::metadata(&directory).unwrap();
        assert_eq!(
            (metadata.mode() & 0o777, metadata.uid()),
            (0o700, lab.user.uid),
            "{}",
            directory.display()
        );
    }
}

#[test]
fn settings_of_a_start_win_over_the_cluster_s_and_last_for_it_only() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let more = [
        ("work_mem".to_owned(), "7MB".to_owned()),
        ("log_line_prefix".to_owned(), "it's \\%p ".to_owned()),
    ];
    let endpoint = cluster.start(&slot(5500), &more).unwrap().endpoint.clone();
    assert_eq!(value(&endpoint, "show work_mem"), "7MB");
    assert_eq!(value(&endpoint, "show log_line_prefix"), "it's \\%p ");
    cluster.stop().unwrap();
    let endpoint = cluster.start(&slot(5501), &[]).unwrap().endpoint.clone();
    assert_eq!(value(&endpoint, "show work_mem"), "4MB");
}

#[test]
fn checksums_are_as_asked_whatever_the_version_s_default() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let default = if installation.version_num >= 180_000 {
            "on"
        } else {
            "off"
        };
        for (asked, wanted) in [(Some(true), "on"), (Some(false), "off"), (None, default)] {
            let mut cluster = lab.cluster_with(
                &format!("c{number}-{asked:?}").replace(['(', ')'], "_"),
                installation,
                asked,
            );
            let endpoint = cluster.start(&slot(5500), &[]).unwrap().endpoint.clone();
            assert_eq!(
                value(&endpoint, "show data_checksums"),
                wanted,
                "{} {asked:?}",
                installation.resolved
            );
        }
    }
}

#[test]
fn copied_data_is_the_other_cluster_s_byte_for_byte_and_both_can_start() {
    let lab = Lab::new();
    let installation = any_installation();
    let (mut from, mut to) = (
        lab.cluster("c0", &installation),
        lab.cluster("c1", &installation),
    );
    let endpoint = from.start(&slot(5500), &[]).unwrap().endpoint.clone();
    query(
        &endpoint,
        "create table t as select g as k from generate_series(1, 5000) g",
    );
    let running = to.copy_data(&from).unwrap_err();
    assert!(running.error.contains("while its server runs"), "{running}");
    from.stop().unwrap();
    to.start(&slot(5501), &[]).unwrap();
    let running = to.copy_data(&from).unwrap_err();
    assert!(running.error.contains("while its server runs"), "{running}");
    to.stop().unwrap();
    to.copy_data(&from).unwrap();
    assert!(contents(&to.data_dir()) == contents(&from.data_dir()));
    let endpoints = [
        from.start(&slot(5500), &[]).unwrap().endpoint.clone(),
        to.start(&slot(5501), &[]).unwrap().endpoint.clone(),
    ];
    query(&endpoints[1], "update t set k = -k");
    assert_eq!(value(&endpoints[0], "select sum(k) from t"), "12502500");
    assert_eq!(value(&endpoints[1], "select sum(k) from t"), "-12502500");
    assert!(
        to.bytes_on_disk() > 16 << 20,
        "a data directory with a WAL segment"
    );
}

#[test]
fn data_of_another_build_is_refused() {
    let lab = Lab::new();
    let installation = any_installation();
    let mut other = installation.clone();
    other.binary_sha256 = other.binary_sha256.chars().rev().collect();
    let from = lab.cluster("c0", &installation);
    let mut to = lab.cluster("c1", &other);
    let problem = to.copy_data(&from).unwrap_err();
    assert!(problem.detail.unwrap().contains("different builds"));
}

#[test]
fn a_pinned_server_has_pinned_backends() {
    let lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let pinned = Slot {
        affinity: Some(vec![0]),
        ..slot(5500)
    };
    let endpoint = cluster.start(&pinned, &[]).unwrap().endpoint.clone();
    let pid = value(
        &endpoint,
        "select min(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    );
    let own = value(
        &endpoint,
        "select pg_read_file('/proc/self/status', 0, 4000)",
    );
    assert!(
        own.lines().any(|line| line
            .split_ascii_whitespace()
            .eq(["Cpus_allowed_list:", "0"])),
        "{own}"
    );
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.lines().any(|line| {
        line.split_ascii_whitespace()
            .eq(["Cpus_allowed_list:", "0"])
    }));
}

#[test]
fn a_server_asked_to_listens_on_loopback_and_wants_the_password_there() {
    use deltabench_model::endpoint::{Endpoint, Tls};
    use deltabench_model::plan::Transport;
    for installation in installations() {
        let lab = Lab::new();
        let mut cluster = lab.cluster("c0", &installation);
        for (listen, wanted) in [
            (Transport::Tcp, Tls::Off),
            (Transport::Tls, Tls::Unverified),
        ] {
            let asked = Slot {
                listen,
                ..slot(5500)
            };
            let running = cluster.start(&asked, &[]).unwrap().clone();
            let network = running.network.unwrap();
            let Endpoint::Tcp { host, tls, .. } = &network.endpoint else {
                panic!("{:?}", network.endpoint);
            };
            assert_eq!((host.as_str(), tls), ("127.0.0.1", &wanted));
            assert_eq!(
                value(&running.endpoint, "show listen_addresses"),
                "127.0.0.1"
            );
            let ssl = value(&running.endpoint, "show ssl");
            assert_eq!(ssl, if wanted == Tls::Off { "off" } else { "on" });
            let secret =
                "select rolpassword is not null from pg_authid where rolname = current_user";
            assert_eq!(value(&running.endpoint, secret), "t");
            assert!(!cluster.log_tail(1000).contains(&network.password));
            cluster.stop().unwrap();
        }
        let plain = cluster.start(&slot(5500), &[]).unwrap().clone();
        assert_eq!(plain.network, None);
        assert_eq!(value(&plain.endpoint, "show listen_addresses"), "");
    }
}

#[test]
fn nothing_is_left_after_drop() {
    let mut lab = Lab::new();
    let mut cluster = lab.cluster("c0", &any_installation());
    let pid = cluster.start(&slot(5500), &[]).unwrap().postmaster_pid;
    let directory = lab.workspace().directory().to_path_buf();
    // The workspace goes first: its directory has to wait for the server.
    drop(lab.workspace.take());
    assert!(is_running(pid) && directory.exists());
    drop(cluster);
    assert!(!is_running(pid) && !directory.exists());
    assert_eq!(shared_memory_of(pid), 0);
    assert!(processes_in(lab.scratch.path()).is_empty());
}

#[test]
fn a_workspace_in_use_is_not_removed_under_its_server() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("c0", &any_installation());
    let problem = lab.workspace.take().unwrap().remove().unwrap_err();
    assert!(problem.error.contains("still in use"));
    assert!(cluster.data_dir().exists());
}

#[test]
fn two_at_once_make_one_template() {
    let lab = Lab::new();
    let installation = any_installation();
    let own_cache = lab.scratch.path().join("cache");
    let spec = ClusterSpec {
        installation: &installation,
        checksums: None,
        settings: &[],
    };
    let mut clusters = std::thread::scope(|scope| {
        let (lab, own_cache, spec) = (&lab, &own_cache, &spec);
        let makers = ["c0", "c1"].map(|name| {
            scope.spawn(move || {
                Cluster::create(lab.workspace(), name, spec, own_cache, &lab.user).unwrap()
            })
        });
        makers.map(|maker| maker.join().unwrap())
    });
    let cached: Vec<String> = std::fs::read_dir(own_cache.join("initdb"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    assert_eq!(cached.len(), 1, "{cached:?}");
    for (port, cluster) in (5500..).zip(&mut clusters) {
        cluster.start(&slot(port), &[]).unwrap();
    }
}
