//! What initdb reads beside the server's own program: catalogs and samples of settings.

use crate::failure::failed;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Endings of these files: `postgres.bki`, `system_views.sql`, `postgresql.conf.sample`, `sql_features.txt`.
const ENDINGS: [&str; 4] = ["bki", "sql", "sample", "txt"];

/// Where they are, below a tree.
const PLACES: [&str; 3] = ["share/postgresql", "share/pgsql", "share"];

/// The catalogs themselves.
const CATALOG: &str = "postgres.bki";

/// A checksum of the files from which initdb makes a cluster, 16 hexadecimal digits. Two builds can have the
/// same program and other catalogs: a function's volatility is in none of the programs.
///
/// They are looked for where `postgres.bki` is, below `share` next to `bin`. Where that is elsewhere
/// (packages of a distribution), the program alone tells versions apart.
///
/// Errors: a file that cannot be read.
pub(crate) fn checksum(installation: &Installation) -> Result<String, Problem> {
    let tree = installation
        .bin_dir
        .parent()
        .unwrap_or(&installation.bin_dir);
    let shares = PLACES.map(|place| tree.join(place));
    let mut files = Vec::new();
    let share = shares.iter().find(|share| share.join(CATALOG).is_file());
    let share = share.cloned().unwrap_or_default();
    if !share.as_os_str().is_empty() {
        collect(&share, &mut files);
    }
    files.sort();
    let mut digest = Sha256::new();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let name = path.strip_prefix(&share).unwrap_or(&path);
        digest.update(name.as_os_str().as_encoded_bytes());
        digest.update(bytes.len().to_le_bytes());
        digest.update(&bytes);
    }
    let digest = digest.finalize();
    Ok(digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else if path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ENDINGS.contains(&ending))
        {
            found.push(path);
        }
    }
}
