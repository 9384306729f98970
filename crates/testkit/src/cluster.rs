//! A small real cluster: made, started, stopped and removed within a test.

use deltabench_model::endpoint::{Endpoint, Login, Tls};
use deltabench_model::target::TargetSpec;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the installations that real-server tests use: `path:DIR`, separated by commas. Other targets are
/// passed over.
pub const TARGETS_VARIABLE: &str = "DELTABENCH_TEST_TARGETS";

const PORT: u16 = 5432;

/// A running server of an installed PostgreSQL, on a local socket and, where asked, on a loopback TCP port.
#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    port: u16,
    /// What starts the server.
    program: Command,
    server: Child,
}

impl Cluster {
    /// Starts one for each `path:` target of [`TARGETS_VARIABLE`]; says on stderr when there are none.
    ///
    /// `hba` holds lines for `pg_hba.conf`, before the one that trusts everybody else on the local socket.
    pub fn for_each_target(hba: &str, settings: &[&str]) -> Vec<Self> {
        let targets = std::env::var(TARGETS_VARIABLE).unwrap_or_default();
        let specs = targets
            .split(',')
            .filter_map(|text| text.trim().parse().ok());
        let paths = specs.filter_map(|spec| match spec {
            TargetSpec::Path(path) => Some(path),
            _ => None,
        });
        let clusters: Vec<Self> = paths
            .map(|path| Self::start(&path.join("bin"), hba, settings))
            .collect();
        if clusters.is_empty() {
            assert!(
                std::env::var_os("CI").is_none(),
                "{TARGETS_VARIABLE} names no path:DIR target"
            );
            crate::not_tested(
                "servers of the variable",
                format!("{TARGETS_VARIABLE} names no path:DIR target"),
            );
        }
        clusters
    }

    /// Makes and starts a cluster with the programs of `bin`.
    pub fn start(bin: &Path, hba: &str, settings: &[&str]) -> Self {
        let directory = scratch();
        let data = directory.join("data");
        let user = unprivileged();
        if let Some((_, uid)) = &user {
            chown(&directory, Some(*uid), None).unwrap();
        }
        let program = |name: &str| {
            as_user(
                user.as_ref().map(|(name, _)| name.as_str()),
                &bin.join(name),
            )
        };
        initialised(bin, &data, user.as_ref().map(|(_, uid)| *uid), || {
            program("initdb")
        });
        fs::write(
            data.join("pg_hba.conf"),
            format!("{hba}\nlocal all all trust\n"),
        )
        .unwrap();
        if settings.contains(&"ssl=on") {
            certificate(&data, user.as_ref().map(|(_, uid)| *uid));
        }
        let log = fs::File::create(directory.join("log")).unwrap();
        let port = port(settings);
        let mut server = program("postgres");
        server
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-k"])
            .arg(&directory);
        for setting in ["fsync=off", "shared_buffers=32MB", "listen_addresses="]
            .iter()
            .chain(settings)
        {
            server.args(["-c", setting]);
        }
        server
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(log);
        let mut cluster = Self {
            directory,
            port,
            server: server.spawn().unwrap(),
            program: server,
        };
        cluster.wait_until_ready();
        cluster
    }

    /// Its local socket.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Unix {
            directory: self.directory.clone(),
            port: self.port,
        }
    }

    /// Its port on 127.0.0.1, for a cluster that was started with `listen_addresses=127.0.0.1`.
    pub fn tcp_endpoint(&self) -> Endpoint {
        Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: self.port,
            tls: Tls::Off,
        }
    }

    /// The same with TLS, for a cluster that was started with `ssl=on` too.
    pub fn tls_endpoint(&self) -> Endpoint {
        Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: self.port,
            tls: Tls::Unverified,
        }
    }

    /// The certificate of a cluster that was started with `ssl=on`: its own, for `localhost`.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("data/server.crt")
    }

    /// Its superuser, who needs no password.
    pub fn login(&self) -> Login {
        Login {
            user: "postgres".into(),
            database: "postgres".into(),
            password: None,
            options: Vec::new(),
            confirm_path: false,
        }
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Stops the server, whoever is connected; its data directory, as a clean shutdown leaves it.
    pub fn stop(&mut self) -> PathBuf {
        self.shut_down();
        self.directory.join("data")
    }

    /// Stops the server, whoever is connected, and starts it again.
    pub fn restart(&mut self) {
        self.shut_down();
        self.server = self.program.spawn().unwrap();
        self.wait_until_ready();
    }

    fn shut_down(&mut self) {
        let stopped = Command::new("kill")
            .args(["-INT", &self.server.id().to_string()])
            .status();
        assert!(stopped.unwrap().success());
        self.server.wait().unwrap();
    }

    /// Waits until it takes connections.
    fn wait_until_ready(&mut self) {
        let limit = Instant::now() + Duration::from_secs(120);
        let socket = self.directory.join(format!(".s.PGSQL.{}", self.port));
        loop {
            if answers(&socket) {
                return;
            }
            let gone = self.server.try_wait().unwrap().is_some();
            if gone || Instant::now() > limit {
                panic!(
                    "no server: {}",
                    fs::read_to_string(self.directory.join("log")).unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // One that was stopped is reaped, and its number may be somebody else's.
        if matches!(self.server.try_wait(), Ok(None)) {
            // SIGQUIT: the data is thrown away, so there is nothing to write back.
            let _ = Command::new("kill")
                .args(["-QUIT", &self.server.id().to_string()])
                .status();
            let _ = self.server.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Puts a new data directory at `data`. initdb runs once for each server and user: what it made is kept next
/// to the program of the tests, where `cargo clean` removes it, and copied from then on.
///
/// So two clusters of one server have one system identifier.
fn initialised(bin: &Path, data: &Path, owner: Option<u32>, initdb: impl Fn() -> Command) {
    let kept = kept(bin, owner);
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let lock = fs::File::create(kept.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if kept.exists() {
        drop(lock);
        return succeed(Command::new("cp").arg("-a").arg(&kept).arg(data));
    }
    succeed(
        initdb()
            .args([
                "-N",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(data),
    );
    // It gets its name last, so that whoever is killed leaves no half of one.
    let draft = kept.with_extension("draft");
    let _ = fs::remove_dir_all(&draft);
    succeed(Command::new("cp").arg("-a").arg(data).arg(&draft));
    fs::rename(&draft, &kept).unwrap();
}

/// Where the data directory of a server is kept for this user.
fn kept(bin: &Path, owner: Option<u32>) -> PathBuf {
    let postgres = bin.join("postgres");
    let found = fs::metadata(&postgres).unwrap();
    let what = format!(
        "{postgres:?} {} {:?}",
        found.len(),
        found.modified().unwrap()
    );
    let hash = Sha256::digest(what.as_bytes());
    let key: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let user = owner.map_or_else(|| "own".to_owned(), |uid| uid.to_string());
    let tests = std::env::current_exe().unwrap();
    let place = tests.parent().unwrap().join("deltabench-initdb");
    place.join(format!("{key}-{user}"))
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// A certificate and its key, under the names that the server looks for.
fn certificate(data: &Path, owner: Option<u32>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in [
        ("server.crt", made.cert.pem()),
        ("server.key", made.signing_key.serialize_pem()),
    ] {
        let path = data.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, owner, None).unwrap();
    }
}

/// Whether a start-up message is answered by a request to authenticate; a server still starting answers
/// with an error.
fn answers(socket: &Path) -> bool {
    let start_up = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return false;
    };
    let mut tag = [0];
    stream.write_all(start_up).is_ok() && stream.read_exact(&mut tag).is_ok() && tag == *b"R"
}

fn scratch() -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!(
        "deltabench-cluster-{}-{number}",
        std::process::id()
    ));
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Whom to run the server as: nobody else, unless we are root.
fn unprivileged() -> Option<(String, u32)> {
    let id = |args: &[&str]| {
        let output = Command::new("id")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse::<u32>()
            .ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| id(&["-u", name]).map(|uid| ((*name).to_owned(), uid)))
}

fn as_user(user: Option<&str>, program: &Path) -> Command {
    let Some(user) = user else {
        return Command::new(program);
    };
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .args(["--clear-groups", "--"])
        .arg(program);
    command
}

/// The number in the socket's name; for a cluster that listens on TCP, a port that is free now.
fn port(settings: &[&str]) -> u16 {
    if !settings
        .iter()
        .any(|setting| setting.starts_with("listen_addresses="))
    {
        return PORT;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
