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
    /// Directory with `postgres`, `initdb` and `pg_ctl`.
    pub bin_dir: PathBuf,
    /// `server_version_num`: 180006 for 18.6, 90624 for 9.6.24.
    pub version_num: u32,
    /// `postgres --version` without the program's name, for example `18.6`.
    pub version: String,
    /// SHA-256 of `bin/postgres`, lower-case hex.
    pub binary_sha256: String,
    /// What a running server says of its own build; absent until one has been started.
    pub build: Option<Build>,
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
