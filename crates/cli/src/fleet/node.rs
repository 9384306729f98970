//! Scripts for the nodes of a cluster: what Slurm runs as root before a job, after it, and on idle hosts.

/// How a script finds servers that a killed deltabench left.
const OURS: &str = include_str!("node/ours.sh");

/// Slurm's `Prolog`: brings a host into a steady state, and notes what it was.
pub fn prolog() -> String {
    include_str!("node/prolog.sh").to_owned()
}

/// Slurm's `Epilog`: undoes the prolog and removes what a killed deltabench left.
pub fn epilog() -> String {
    include_str!("node/epilog.sh").replace("#OURS\n", OURS)
}

/// Slurm's `HealthCheckProgram`: says why a host is unfit, and drains it.
pub fn health() -> String {
    include_str!("node/health.sh").replace("#OURS\n", OURS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    const TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
    const HUGE_PAGES: &str = "proc/sys/vm/nr_hugepages";
    const GROUP: &str = "sys/fs/cgroup/job/deltabench-run-c0";
    const LOCK: &str = "var/tmp/deltabench-host.lock";

    /// A host that is a directory.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            host.write(GOVERNOR, "powersave");
            host.write(THP, "[always] madvise never");
            host.write(TURBO, "0");
            host.write(HUGE_PAGES, "3");
            host.write("proc/swaps", "Filename Type\n/dev/swap1 partition\n");
            fs::create_dir_all(host.path("sys/fs/cgroup/other")).unwrap();
            fs::create_dir_all(host.path(GROUP)).unwrap();
            host.write(LOCK, "");
            for (program, text) in [
                ("swapon", "echo \"$@\" >>\"$ROOT/swapon\""),
                ("swapoff", "echo \"$@\" >>\"$ROOT/swapoff\""),
                ("scontrol", "echo \"$*\" >>\"$ROOT/scontrol\""),
                ("timedatectl", "cat \"$ROOT/clock\""),
                ("df", "cat \"$ROOT/disk\""),
            ] {
                let place = format!("bin/{program}");
                host.write(&place, &format!("#!/bin/sh\n{text}\n"));
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(host.path(&place), executable).unwrap();
            }
            host.write("clock", "yes\n");
            host.free(100);
            host
        }

        fn path(&self, place: &str) -> PathBuf {
            self.0.path().join(place)
        }

        fn write(&self, place: &str, text: &str) {
            fs::create_dir_all(self.path(place).parent().unwrap()).unwrap();
            fs::write(self.path(place), text).unwrap();
        }

        fn read(&self, place: &str) -> String {
            let text = fs::read_to_string(self.path(place)).unwrap_or_default();
            text.trim_end().to_owned()
        }

        fn free(&self, gib: u64) {
            self.write("disk", &format!("head\nfs 1 1 {} 1% /\n", gib << 20));
        }

        /// What a script prints, and its exit code.
        fn run(&self, script: &str) -> (String, i32) {
            let bin = self.path("bin");
            let output = Command::new("sh")
                .args(["-c", script])
                .env("ROOT", self.0.path())
                .env("PATH", format!("{}:/usr/sbin:/usr/bin:/bin", bin.display()))
                .env("SLURMD_NODENAME", "n7")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{said}");
            (said, output.status.code().unwrap())
        }

        /// A process called `postgres` that works in a directory; the host sees it.
        fn server(&self, directory: &Path) -> Server {
            let program = self.path("bin/postgres");
            if !program.exists() {
                fs::copy("/bin/sleep", &program).unwrap();
            }
            // What runs the tests may ignore the signal that servers do not.
            let mut command = Command::new("env");
            command
                .arg("--default-signal=INT")
                .arg(program)
                .arg("60")
                .current_dir(directory)
                .stdin(Stdio::null());
            let child = command.spawn().unwrap();
            let name = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&name).unwrap() != "postgres\n" {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let seen = self.path(&format!("proc/{}", child.id()));
            std::os::unix::fs::symlink(format!("/proc/{}", child.id()), seen).unwrap();
            Server(child)
        }
    }

    /// Ends with the test.
    struct Server(Child);

    impl Server {
        fn has_ended(&mut self) -> bool {
            self.0.try_wait().unwrap().is_some()
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A file that another process may find locked.
    fn locked(path: &Path) -> fs::File {
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.lock().unwrap();
        file
    }

    #[test]
    fn the_epilog_puts_back_what_the_prolog_set() {
        let host = Host::new();
        let wanted = "THP=never TURBO=off SWAP=off HUGE_PAGES=512\n";
        host.write("etc/default/deltabench-node", wanted);
        let (said, code) = host.run(&prolog());
        assert_eq!(code, 0);
        assert!(
            said.contains("scaling_governor: powersave -> performance"),
            "{said}"
        );
        assert!(said.contains("enabled: always -> never"), "{said}");
        assert!(said.contains("swap off: /dev/swap1"), "{said}");
        let values = |host: &Host| [GOVERNOR, THP, TURBO, HUGE_PAGES].map(|place| host.read(place));
        assert_eq!(values(&host), ["performance", "never", "1", "512"]);
        // A job that comes back without an epilog between.
        host.run(&prolog());
        let (said, code) = host.run(&epilog());
        assert_eq!(code, 0, "{said}");
        assert_eq!(values(&host), ["powersave", "always", "0", "3"]);
        assert_eq!(host.read("swapon").lines().next(), Some("/dev/swap1"));
        // Once.
        let (said, code) = host.run(&epilog());
        assert_eq!((said.as_str(), code), ("", 0));
    }

    #[test]
    fn the_prolog_changes_no_swap_turbo_or_huge_pages_unasked() {
        let host = Host::new();
        let (_, code) = host.run(&prolog());
        assert_eq!(code, 0);
        assert_eq!(
            (host.read(TURBO), host.read(HUGE_PAGES)),
            ("0".into(), "3".into())
        );
        assert_eq!(
            (host.read(THP), host.read("swapoff")),
            ("madvise".into(), String::new())
        );
    }

    #[test]
    fn the_epilog_leaves_what_somebody_changed_meanwhile() {
        let host = Host::new();
        host.run(&prolog());
        host.write(GOVERNOR, "schedutil");
        let (said, code) = host.run(&epilog());
        assert!(said.contains("left alone") && code == 0, "{said}");
        assert_eq!(host.read(GOVERNOR), "schedutil");
        assert!(!host.path(GROUP).exists() && host.path("sys/fs/cgroup/other").exists());
    }

    #[test]
    fn the_epilog_ends_servers_that_a_kill_left_and_no_others() {
        let host = Host::new();
        let (ours, used, other) = (
            host.path("ws/data"),
            host.path("used/data"),
            host.path("other"),
        );
        for directory in [&ours, &used, &other] {
            fs::create_dir_all(directory).unwrap();
        }
        let user = fs::metadata(&ours).unwrap().uid();
        let record =
            |user: u32| format!("{{\"format\": \"deltabench.workspace\", \"server_uid\": {user}}}");
        host.write("ws/owner.json", &record(user));
        host.write("used/owner.json", &record(user));
        host.write("strange/owner.json", "{}");
        host.write("another/owner.json", &record(user + 1));
        let _at_work = locked(&host.path("used/owner.json"));
        let mut ours = host.server(&ours);
        let mut used = host.server(&used);
        let mut others: Vec<Server> = ["other", "strange", "another"]
            .iter()
            .map(|place| host.server(&host.path(place)))
            .collect();
        let (said, _) = host.run(&health());
        assert_eq!(said, format!("servers were left: {} \n", ours.0.id()));
        {
            let _lane = locked(&host.path(LOCK));
            assert_eq!(host.run(&health()), (String::new(), 0));
            let (said, code) = host.run(&epilog());
            assert!(
                said.contains("lock of this host is held") && code == 1,
                "{said}"
            );
            assert!(!ours.has_ended());
        }
        let (said, _) = host.run(&epilog());
        assert!(
            said.contains(&format!("stopped server {}", ours.0.id())),
            "{said}"
        );
        assert!(ours.has_ended() && !used.has_ended());
        assert!(others.iter_mut().all(|server| !server.has_ended()));
    }

    #[test]
    fn an_unfit_host_is_drained_with_its_reasons() {
        let host = Host::new();
        assert_eq!(host.run(&health()), (String::new(), 0));
        assert_eq!(host.read("scontrol"), "");
        host.free(1);
        host.write("clock", "no\n");
        let (said, code) = host.run(&health());
        assert_eq!(code, 1);
        assert_eq!(
            said,
            "only 1 GB are free in /var/tmp; the clock is not synchronised\n"
        );
        fs::remove_file(host.path(LOCK)).unwrap();
        std::os::unix::fs::symlink("elsewhere", host.path(LOCK)).unwrap();
        let (linked, _) = host.run(&health());
        assert!(
            linked.contains("the lock of the host is a link"),
            "{linked}"
        );
        fs::remove_file(host.path(LOCK)).unwrap();
        let told = host.read("scontrol");
        let wanted = "update NodeName=n7 State=DRAIN Reason=deltabench: only 1 GB are free";
        assert!(told.starts_with(wanted), "{told}");
        let (said, code) = host.run(&epilog());
        assert!(said.contains("only 1 GB") && code == 1, "{said}");
    }

    #[test]
    fn shellcheck_finds_nothing() {
        // scripts/test says so in its last lines.
        if std::env::var_os("DELTABENCH_WITHOUT_SHELLCHECK").is_some() {
            return;
        }
        for script in [prolog(), epilog(), health()] {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), script).unwrap();
            let output = Command::new("shellcheck")
                .arg(file.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}");
        }
    }
}
