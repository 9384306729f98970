//! What is written beside a tree when it is whole.

use crate::files::read_json;
use deltabench_model::installation::Build;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the file.
pub(crate) const STAMP: &str = "deltabench-installation.json";
/// Name of its format.
pub(crate) const STAMP_FORMAT: &str = "deltabench.installation";

/// How a package's bytes were verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VerifiedBy {
    /// SHA-256 published beside the package, compared by us.
    Sha256,
    /// SHA-1 published beside the package, compared by Maven; packages of before 2021 have nothing better.
    Sha1,
    /// SHA-512 of the npm registry's record, compared by npm and by us.
    Sha512,
}

/// What is written beside a tree when it is whole; version 1 of the format.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) revision: u32,
    /// Name of the client that brought it.
    #[serde(rename = "carrier")]
    pub(crate) source: String,
    pub(crate) package: String,
    pub(crate) package_sha256: String,
    pub(crate) package_verified_by: VerifiedBy,
    /// The server's own version, `17.5`; the library's, `10.2.1`.
    pub(crate) server_version: String,
    /// As `server_version_num`; [`RocksdbVersion::number`](deltabench_model::target::RocksdbVersion::number).
    pub(crate) server_version_num: u32,
    /// SHA-256 of the file that is measured.
    pub(crate) binary_sha256: String,
    pub(crate) binary_bytes: u64,
    /// How the file was made, where the file itself says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<Build>,
}

impl Stamp {
    /// The stamp in a directory, if there is one that we can read.
    pub(crate) fn beside(dir: &Path) -> Option<Self> {
        let stamp: Self = read_json(&dir.join(STAMP))?;
        (stamp.format == STAMP_FORMAT && stamp.version == 1).then_some(stamp)
    }
}
