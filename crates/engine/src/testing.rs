//! Engines made of shell scripts, for tests.

use crate::engine::Engine;
use crate::protocol::Opened;
use crate::spec::{EngineError, EngineSpec};
use deltabench_model::installation::{Engine as Kind, Installation, Origin};
use deltabench_model::work::rocksdb::{BlockCache, RocksdbSetup, RocksdbStep, RocksdbWorkload};
use deltabench_server::ServerUser;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A script that plays a worker or a `db_bench`, and where it works.
pub struct Bench {
    _scratch: tempfile::TempDir,
    installation: Installation,
    user: ServerUser,
    directory: PathBuf,
    log: PathBuf,
    pub setup: RocksdbSetup,
    pub options: Vec<(String, String)>,
    pub cache: BlockCache,
    pub interrupted: AtomicBool,
}

impl Bench {
    /// A script that reads orders and answers them.
    pub fn worker(script: &str) -> Self {
        Self::new(script, Kind::Rocksdb)
    }

    /// A script that has flags.
    pub fn db_bench(script: &str) -> Self {
        Self::new(script, Kind::DbBench)
    }

    fn new(script: &str, engine: Kind) -> Self {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        let open = |path: &Path| {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        };
        open(scratch.path());
        let program = scratch.path().join("program");
        // Written by another process: were it open for writing here, a fork of another test's would keep
        // it from being run.
        let draft = scratch.path().join("draft");
        std::fs::write(&draft, format!("#!/bin/sh\n{script}")).unwrap();
        let copied = std::process::Command::new("cp")
            .arg(&draft)
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        open(&program);
        Self {
            installation: Installation {
                asked: "rocksdb:fake".into(),
                resolved: "rocksdb:fake".into(),
                origin: Origin::Path,
                bin_dir: program,
                version_num: 70_803,
                version: "7.8.3".into(),
                binary_sha256: String::new(),
                build: None,
                recipe: None,
                remote: None,
                engine,
            },
            user: ServerUser::choose(None).unwrap(),
            directory: scratch.path().join("engine"),
            log: scratch.path().join("log"),
            setup: RocksdbSetup {
                workload: RocksdbWorkload::Byrx,
                keys: 1000,
                key_bytes: 20,
                value_bytes: 400,
                threads: vec![1],
                seconds: 1,
                writer_bytes_per_second: 2 << 20,
                steps: RocksdbStep::ALL.to_vec(),
                cache_bytes: 8 << 20,
                background_jobs: 2,
                options: Vec::new(),
            },
            options: Vec::new(),
            cache: BlockCache::Lru,
            interrupted: AtomicBool::new(false),
            _scratch: scratch,
        }
    }

    pub(crate) fn spec(&self) -> EngineSpec<'_, '_> {
        EngineSpec {
            installation: &self.installation,
            worker: &self.installation.bin_dir,
            directory: &self.directory,
            log: &self.log,
            user: &self.user,
            setup: &self.setup,
            cache: self.cache,
            options: &self.options,
            counter: None,
            cores: None,
            cgroups: &[],
            interrupted: &self.interrupted,
        }
    }

    pub(crate) fn start(&self) -> Result<(Engine<'_>, Opened), EngineError> {
        Engine::start(self.spec())
    }

    /// Where the engine works.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills a process, and waits until it is dead.
    pub fn kill(&self, pid: u32) {
        let pid = libc::pid_t::try_from(pid).unwrap();
        // SAFETY: two integers; the pid is that of a child of this test, which has not been reaped.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    }
}

/// Whether there is such a process.
pub fn is_running(pid: u32) -> bool {
    deltabench_proc::Process::of(pid).stat().is_some()
}
