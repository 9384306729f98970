//! Where an engine works in a test.

use crate::lab::setup;
use deltabench_engine::{Engine, EngineError, EngineSpec, Opened};
use deltabench_model::installation::{Engine as Kind, Installation, Origin};
use deltabench_model::work::rocksdb::{BlockCache, RocksdbSetup};
use deltabench_server::ServerUser;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A directory that the server user can reach, and what is started in it.
pub struct Place {
    scratch: tempfile::TempDir,
    worker: PathBuf,
    installation: Installation,
    user: ServerUser,
    /// 20,000 keys of 420 bytes, steps of a second.
    pub setup: RocksdbSetup,
    /// Never set here.
    pub interrupted: AtomicBool,
}

impl Place {
    /// For a library or a `db_bench`.
    pub fn new(program: &Path, engine: Kind) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scratch.path(), open).unwrap();
        // The directory that it was built in may be closed to the server user.
        let worker = scratch.path().join("worker");
        // Written by another process: were it open for writing here, a fork of another test's would keep it
        // from being run.
        let copied = std::process::Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_deltabench-engine-worker"))
            .arg(&worker)
            .status();
        assert!(copied.unwrap().success());
        Self {
            worker,
            installation: Installation {
                asked: program.display().to_string(),
                resolved: program.display().to_string(),
                origin: Origin::Path,
                bin_dir: program.to_path_buf(),
                version_num: 0,
                version: String::new(),
                binary_sha256: String::new(),
                build: None,
                recipe: None,
                remote: None,
                engine,
            },
            user: ServerUser::choose(None).unwrap(),
            setup: setup(),
            interrupted: AtomicBool::new(false),
            scratch,
        }
    }

    /// Starts an engine in it, once.
    pub fn start(&self) -> Result<(Engine<'_>, Opened), EngineError> {
        self.start_in("engine")
    }

    /// Starts another one in it.
    pub fn start_in(&self, name: &str) -> Result<(Engine<'_>, Opened), EngineError> {
        Engine::start(EngineSpec {
            installation: &self.installation,
            worker: &self.worker,
            directory: &self.scratch.path().join(name),
            log: &self.scratch.path().join("log"),
            user: &self.user,
            setup: &self.setup,
            cache: BlockCache::Lru,
            options: &[],
            counter: None,
            cores: None,
            cgroups: &[],
            interrupted: &self.interrupted,
        })
    }
}
