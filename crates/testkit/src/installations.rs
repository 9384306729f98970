//! The servers to test with.

use deltabench_model::installation::{Engine, Installation, Origin};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every tree in `DELTABENCH_TEST_TREES`, else what a distribution has installed. No server is a
/// failure, not a skip.
pub fn installations() -> Vec<Installation> {
    let listed = std::env::var_os("DELTABENCH_TEST_TREES").unwrap_or_default();
    let mut trees: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|p| !p.as_os_str().is_empty())
        .collect();
    if trees.is_empty() {
        trees = of_distribution();
    }
    assert!(
        !trees.is_empty(),
        "no PostgreSQL to test with: set DELTABENCH_TEST_TREES=DIR[:DIR...], each with bin/postgres"
    );
    trees.iter().map(|tree| installation(tree)).collect()
}

/// One with all programs of a package, `pg_upgrade` among them, which prebuilt trees lack: the package that
/// brings pgbench (`scripts/install-peers.sh`) brings it. None is a failure, not a skip.
pub fn whole_installation() -> Installation {
    let trees = of_distribution();
    let whole = trees
        .iter()
        .find(|tree| tree.join("bin/pg_upgrade").exists());
    let tree = whole.expect("no PostgreSQL with pg_upgrade: scripts/install-peers.sh pgbench");
    installation(tree)
}

/// What a distribution has installed.
fn of_distribution() -> Vec<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut trees: Vec<PathBuf> = installed
        .map(|entry| entry.path())
        .chain([PathBuf::from("/usr")])
        .filter(|tree| tree.join("bin/postgres").exists())
        .collect();
    trees.sort();
    trees
}

fn installation(tree: &Path) -> Installation {
    let bin_dir = tree.join("bin");
    let binary = bin_dir.join("postgres");
    let output = Command::new(&binary).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let version = text
        .trim()
        .strip_prefix("postgres (PostgreSQL) ")
        .unwrap()
        .to_owned();
    let numbers: Vec<u32> = version
        .split([' ', '.'])
        .map_while(|part| part.parse().ok())
        .collect();
    let version_num = match numbers.as_slice() {
        [9, second, minor] => 90_000 + second * 100 + minor,
        [major, minor, ..] => major * 10_000 + minor,
        _ => panic!("cannot read version {version}"),
    };
    let hash = Sha256::digest(std::fs::read(&binary).unwrap());
    Installation {
        asked: format!("path:{}", tree.display()),
        resolved: format!("postgres:{}", version.split(' ').next().unwrap()),
        origin: Origin::Path,
        bin_dir,
        version_num,
        version,
        binary_sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        build: None,
        recipe: None,
        remote: None,
        engine: Engine::Postgres,
    }
}

/// An installation that no test starts.
pub fn installed(name: &str) -> Installation {
    Installation {
        asked: name.to_owned(),
        resolved: name.to_owned(),
        origin: Origin::Path,
        bin_dir: format!("/opt/{name}/bin").into(),
        version_num: 170_005,
        version: "17.5".to_owned(),
        binary_sha256: format!("sha-{name}"),
        build: None,
        recipe: None,
        remote: None,
        engine: Engine::Postgres,
    }
}
