//! A server that can be started, and what is known of how it was made.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the binaries came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Fetched from the package that carries prebuilt servers.
    Prebuilt,
    /// A directory the user named.
    Path,
    /// Found where a distribution puts it.
    Installed,
    /// Built from source by deltabench.
    Built,
    /// Running somewhere already: reached, never started.
    Remote,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A PostgreSQL server.
    #[default]
    Postgres,
    /// RocksDB: a shared library, worked by a process of ours.
    Rocksdb,
    /// RocksDB: somebody's `db_bench`, which works by itself.
    DbBench,
}

impl Engine {
    /// Whether a shared library is measured.
    #[must_use]
    pub fn is_library(self) -> bool {
        self == Self::Rocksdb
    }

    /// What the file is called whose hash an installation has.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Rocksdb => "library",
            Self::DbBench => "db_bench",
        }
    }
}

/// A resolved target: a tree with `bin/postgres` and `bin/initdb`, and its provenance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Installation {
    /// As the user wrote it, for example `postgres:18`.
    pub asked: String,
    /// What it came to, for example `postgres:18.6`.
    pub resolved: String,
    /// Where the binaries came from.
    pub origin: Origin,
    /// Directory with `postgres`, `initdb` and `pg_ctl`; empty for a remote server. For an embedded engine
    /// the file itself: the shared library, or `db_bench`.
    pub bin_dir: PathBuf,
    /// `server_version_num`: 180006 for 18.6, 90624 for 9.6.24. RocksDB's 10.2.1 is 100201, 6.29.5 is 62905.
    pub version_num: u32,
    /// `postgres --version` without the program's name, for example `18.6`.
    pub version: String,
    /// SHA-256 of `bin/postgres`, or of the embedded engine's file, lower-case hex; empty for a remote
    /// server.
    pub binary_sha256: String,
    /// What a running server says of its own build; absent until one has been started.
    pub build: Option<Build>,
    /// How it was built, if deltabench did it.
    #[serde(default)]
    pub recipe: Option<Recipe>,
    /// Where it is, if it is a server that deltabench does not start.
    #[serde(default)]
    pub remote: Option<Remote>,
    #[serde(default)]
    pub engine: Engine,
}

impl Installation {
    /// The file whose hash it has.
    #[must_use]
    pub fn binary(&self) -> PathBuf {
        match self.engine {
            Engine::Postgres => self.bin_dir.join("postgres"),
            Engine::Rocksdb | Engine::DbBench => self.bin_dir.clone(),
        }
    }
}

/// What a build from source was made of and how: together they are its key in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Name of the variant, for example `o3_native_lto`.
    pub variant: String,
    /// What was built: SHA-256 of the archive, or the commit.
    pub source: String,
    /// `configure` or `meson`.
    pub system: String,
    /// Options of it, in order, without the prefix.
    pub options: Vec<String>,
    /// `CFLAGS`; empty: what the build system takes by itself.
    pub cflags: String,
    pub ldflags: String,
    /// First line of `CC --version`.
    pub compiler: String,
    /// Other variables of the environment that were set, for example `AR=gcc-ar`.
    pub environment: Vec<(String, String)>,
}

/// A server that was there before. Passwords are nowhere in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Remote {
    /// Host name, address, or directory of a local socket (starts with `/`).
    pub host: String,
    pub port: u16,
    /// Role that deltabench logs in as.
    pub user: String,
    /// Database in which deltabench makes its schemas.
    pub database: String,
    /// Whether and how the connection is encrypted.
    pub tls: RemoteTls,
    /// Certificates that are trusted, for [`RemoteTls::VerifyCa`] and above; absent: those of the system.
    pub root_certificate: Option<PathBuf>,
    /// Who tells the counters of its machine, for example `ssh:HOST`; absent: nobody.
    pub agent: Option<String>,
}

/// `sslmode` of a connection. `allow` is not among them: it says the same as `prefer` to whoever reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteTls {
    Disable,
    /// If the server can.
    #[default]
    Prefer,
    /// Always; the certificate is not looked at.
    Require,
    /// Always, with a certificate that a trusted authority signed.
    VerifyCa,
    /// And that is for this host.
    VerifyFull,
}

/// What a server says about how it was compiled (`version()` and the `pg_config` view).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// `select version()`.
    pub version_text: String,
    /// The compiler as `version()` names it, for example `gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0`.
    pub compiler: String,
    /// CFLAGS of the `pg_config` view.
    pub cflags: String,
    /// The configure line of the `pg_config` view.
    pub configure: String,
}

/// One row of `pg_settings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name, for example `shared_buffers`.
    pub name: String,
    /// Value in use, in `unit`s.
    pub value: String,
    /// Unit of value and default; absent for settings without one.
    pub unit: Option<String>,
    /// The value compiled in (`boot_val`); absent where the server has none.
    pub boot_value: Option<String>,
    /// Where the value came from (`source`): `default`, `configuration file`, …
    pub source: String,
}
