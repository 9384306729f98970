//! Resolving against a source made of files.

use super::*;
use crate::package_source::{Arrived, Package};
use crate::stamp::VerifiedBy;
use crate::unpack::package::{OPENS, library_jar, server_jar, shared_library};
use crate::unpack::{self, UnpackError};
use deltabench_model::installation::Engine;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A source of packages made on the spot, which counts its calls.
#[derive(Clone, Default)]
struct Fake {
    versions: Arc<Mutex<Vec<&'static str>>>,
    lists: Arc<AtomicUsize>,
    fetches: Arc<AtomicUsize>,
    down: Arc<AtomicBool>,
    corrupt: Arc<AtomicBool>,
    /// What the server says, when that is not what the package says.
    lies: Option<&'static str>,
    knows: bool,
    /// The jar of every version of RocksDB; servers are carried where there is none.
    rocksdb: Option<Arc<Mutex<Vec<u8>>>>,
}

impl Fake {
    fn with(versions: &[&'static str]) -> Self {
        Self {
            versions: Arc::new(Mutex::new(versions.to_vec())),
            ..Self::default()
        }
    }

    /// A source of RocksDB's libraries, all made of this source.
    fn of_rocksdb(versions: &[&'static str], source: &str) -> Self {
        let jar = library_jar(&shared_library(source));
        Self {
            rocksdb: Some(Arc::new(Mutex::new(jar))),
            ..Self::with(versions)
        }
    }

    fn product(&self) -> Product {
        match self.rocksdb {
            None => Product::Postgres,
            Some(_) => Product::Rocksdb,
        }
    }

    fn calls(&self) -> (usize, usize) {
        (
            self.lists.load(Ordering::SeqCst),
            self.fetches.load(Ordering::SeqCst),
        )
    }

    fn reach(&self) -> Result<(), PackageSourceError> {
        match self.down.load(Ordering::SeqCst) {
            true => Err(PackageSourceError::Unreachable {
                client: "fake",
                said: "network is down".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

impl PackageSource for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn mirror(&self) -> Option<&str> {
        None
    }

    fn has_known_versions(&self) -> bool {
        self.knows
    }

    fn versions(&self, _work: &Path) -> Result<Vec<PackageVersion>, PackageSourceError> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.reach()?;
        Ok(self
            .versions
            .lock()
            .unwrap()
            .iter()
            .filter_map(|text| PackageVersion::parse(self.product(), text))
            .collect())
    }

    fn fetch(
        &self,
        versions: &[PackageVersion],
        work: &Path,
    ) -> Result<Vec<Arrived>, PackageSourceError> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.reach()?;
        versions
            .iter()
            .map(|version| {
                let release = version.release.to_string();
                let file = work.join(&version.text);
                let jar = match &self.rocksdb {
                    None => server_jar(self.lies.unwrap_or(&release)),
                    Some(jar) => jar.lock().unwrap().clone(),
                };
                std::fs::write(&file, jar).unwrap();
                Ok(Arrived {
                    version: version.clone(),
                    file,
                })
            })
            .collect()
    }

    fn verify(
        &self,
        arrived: &[Arrived],
        _work: &Path,
    ) -> Result<Vec<Package>, PackageSourceError> {
        let verified = arrived.iter().map(|one| {
            if self.corrupt.load(Ordering::SeqCst) {
                let (package, said) = (one.version.text.clone(), "sums differ".to_owned());
                return Err(PackageSourceError::Checksum { package, said });
            }
            let sha256 = "0".repeat(64);
            Ok(Package {
                sha256,
                verified_by: VerifiedBy::Sha256,
            })
        });
        verified.collect()
    }

    fn unpack(&self, package: &Path, into: &Path) -> Result<(), UnpackError> {
        match self.product() {
            Product::Postgres => unpack::jar(package, into),
            Product::Rocksdb => {
                let name = Platform::here().unwrap().library;
                unpack::one(package, name, &into.join("librocksdb.so"))
            }
        }
    }
}

fn wish(text: &str) -> Version {
    Version::Postgres(text.parse().unwrap())
}

struct Lab {
    _dir: tempfile::TempDir,
    cache: Cache,
    fake: Fake,
    said: Mutex<Vec<String>>,
}

impl Lab {
    fn with(fake: Fake) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().join("cache")).unwrap();
        Self {
            _dir: dir,
            cache,
            fake,
            said: Mutex::default(),
        }
    }

    fn prebuilt<'a>(&self, cache: &'a Cache, offline: bool) -> Prebuilt<'a> {
        let platform = Platform::of("linux", "x86_64").unwrap();
        Prebuilt {
            cache,
            product: self.fake.product(),
            platform,
            source: Ok(Box::new(self.fake.clone())),
            offline,
        }
    }

    fn resolve(&self, wanted: &str) -> Result<Installation, Problem> {
        let mut say = |line: &str| self.said.lock().unwrap().push(line.to_owned());
        self.prebuilt(&self.cache, false)
            .resolve(&self.wish(wanted), &mut say)
    }

    fn offline(&self, wanted: &str) -> Result<Installation, Problem> {
        self.prebuilt(&self.cache, true)
            .resolve(&self.wish(wanted), &mut |_| {})
    }

    fn wish(&self, text: &str) -> Version {
        match self.fake.product() {
            Product::Postgres => wish(text),
            Product::Rocksdb => Version::Rocksdb(text.parse().unwrap()),
        }
    }

    /// Names in the directory of trees, half-made ones included.
    fn trees(&self) -> Vec<String> {
        let dir = match self.fake.product() {
            Product::Postgres => "prebuilt",
            Product::Rocksdb => "rocksdb",
        };
        let entries = std::fs::read_dir(self.cache.root().join(dir)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn age_list(&self) {
        let file = self.cache.root().join("lists/fake-linux-amd64.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let mut list: serde_json::Value = serde_json::from_str(&text).unwrap();
        list["fetched_unix_s"] = 1.into();
        std::fs::write(&file, list.to_string()).unwrap();
    }

    fn last_words(&self) -> String {
        self.said
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

#[test]
fn a_major_is_fetched_once_and_then_found_without_any_call() {
    let lab = Lab::with(Fake::with(&["17.4.0", "18.0.0", "18.6.0", "18.5.0"]));
    let first = lab.resolve("18").unwrap();
    assert_eq!(
        (first.asked.as_str(), first.resolved.as_str()),
        ("postgres:18", "postgres:18.6")
    );
    assert_eq!(
        (first.version_num, first.origin, first.build.clone()),
        (180_006, Origin::Prebuilt, None)
    );
    assert_eq!(
        first.binary_sha256,
        crate::tree::sha256_of(&first.bin_dir.join("postgres")).unwrap()
    );
    assert_eq!(lab.fake.calls(), (1, 1));
    assert_eq!(lab.resolve("18").unwrap(), first);
    assert_eq!(lab.offline("18").unwrap(), first);
    assert_eq!(lab.fake.calls(), (1, 1));
    assert_eq!(lab.trees(), ["linux-amd64-18.6.0"]);
    assert!(!lab.cache.root().join(".deltabench/work").exists());
}

#[test]
fn a_known_point_release_needs_no_list() {
    let lab = Lab::with(Fake {
        knows: true,
        ..Fake::with(&[])
    });
    assert_eq!(lab.resolve("17.5").unwrap().version, "17.5");
    assert_eq!(lab.fake.calls(), (0, 1));
}

#[test]
fn a_new_point_release_is_fetched_when_the_list_is_a_day_old() {
    let lab = Lab::with(Fake::with(&["18.5.0"]));
    assert_eq!(lab.resolve("18").unwrap().version, "18.5");
    lab.fake.versions.lock().unwrap().push("18.6.0");
    assert_eq!(
        lab.resolve("18").unwrap().version,
        "18.5",
        "the list of today is kept"
    );
    lab.age_list();
    assert_eq!(lab.resolve("18").unwrap().version, "18.6");
}

#[test]
fn a_new_packaging_of_a_cached_release_is_not_fetched() {
    let lab = Lab::with(Fake::with(&["18.5.0"]));
    lab.resolve("18").unwrap();
    lab.fake.versions.lock().unwrap().push("18.5.0-1");
    lab.age_list();
    assert!(
        lab.resolve("18")
            .unwrap()
            .bin_dir
            .ends_with("linux-amd64-18.5.0/bin")
    );
    assert_eq!(lab.fake.calls(), (2, 1));
}

#[test]
fn without_a_network_the_newest_cached_one_serves_and_that_is_said() {
    let lab = Lab::with(Fake::with(&["18.5.0"]));
    lab.resolve("18").unwrap();
    lab.age_list();
    lab.fake.down.store(true, Ordering::SeqCst);
    assert_eq!(lab.resolve("18").unwrap().version, "18.5", "old list");
    assert!(lab.last_words().contains("network is down"));
    std::fs::remove_dir_all(lab.cache.root().join("lists")).unwrap();
    assert_eq!(lab.resolve("18").unwrap().version, "18.5", "no list");
    assert!(lab.last_words().contains("network is down") && lab.last_words().contains("18.5"));
    let calls = lab.fake.calls();
    let problem = lab.resolve("17").unwrap_err();
    assert_eq!(
        lab.fake.calls(),
        calls,
        "a network that was down a moment ago is not asked again"
    );
    assert!(
        problem.error.contains("PostgreSQL 17")
            && problem.detail.unwrap().contains("network is down")
    );
}

#[test]
fn a_list_without_its_package_falls_back_to_the_cache_too() {
    let lab = Lab::with(Fake::with(&["18.5.0"]));
    lab.resolve("18").unwrap();
    lab.fake.versions.lock().unwrap().push("18.6.0");
    lab.age_list();
    lab.prebuilt(&lab.cache, false)
        .list(Duration::ZERO, &mut |_| {})
        .unwrap();
    lab.fake.down.store(true, Ordering::SeqCst);
    assert_eq!(lab.resolve("18").unwrap().version, "18.5");
    assert!(lab.last_words().contains("cannot fetch PostgreSQL 18.6"));
}

#[test]
fn a_package_that_fails_its_checksum_is_refused_and_nothing_is_left() {
    let lab = Lab::with(Fake::with(&["18.5.0", "18.6.0"]));
    lab.resolve("18.5").unwrap();
    lab.fake.corrupt.store(true, Ordering::SeqCst);
    let problem = lab.resolve("18").unwrap_err();
    assert!(
        problem.error.contains("does not match its checksum"),
        "no fallback hides it: {problem}"
    );
    assert_eq!(lab.trees(), ["linux-amd64-18.5.0"]);
    assert!(!lab.cache.root().join(".deltabench/work").exists());
}

#[test]
fn a_package_that_holds_another_release_is_refused_and_nothing_is_left() {
    let lab = Lab::with(Fake {
        lies: Some("17.1"),
        ..Fake::with(&["18.6.0"])
    });
    let problem = lab.resolve("18").unwrap_err();
    assert!(problem.error.contains("another release") && problem.detail.unwrap().contains("17.1"));
    assert_eq!(lab.trees(), Vec::<String>::new());
}

#[test]
fn versions_that_cannot_be_had_are_refused_with_the_nearest() {
    let lab = Lab::with(Fake::with(&["9.6.24", "17.5.0", "18.6.0"]));
    for (wanted, near) in [
        ("17.99", "postgres:17.5"),
        ("19", "postgres:18"),
        ("9.4", "postgres:9.6"),
    ] {
        assert!(
            lab.resolve(wanted)
                .unwrap_err()
                .hint
                .unwrap()
                .contains(near),
            "{wanted}"
        );
    }
    assert_eq!(
        lab.fake.calls(),
        (1, 0),
        "the list of a moment ago is not fetched again"
    );
    lab.fake.versions.lock().unwrap().push("19.0.0");
    lab.age_list();
    assert_eq!(lab.resolve("19").unwrap().version, "19.0");
}

#[test]
fn offline_names_what_the_cache_holds() {
    let lab = Lab::with(Fake::with(&["17.5.0", "18.6.0"]));
    assert!(
        lab.offline("18")
            .unwrap_err()
            .detail
            .unwrap()
            .contains("contains no servers")
    );
    lab.resolve("18").unwrap();
    assert_eq!(lab.offline("18.6").unwrap().resolved, "postgres:18.6");
    let problem = lab.offline("17").unwrap_err();
    assert!(
        problem.detail.unwrap().contains("contains 18.6")
            && problem.hint.unwrap().contains("postgres:18")
    );
    assert_eq!(lab.fake.calls(), (1, 1));
}

#[test]
fn half_made_and_damaged_trees_do_not_count_and_are_replaced() {
    let lab = Lab::with(Fake::with(&["18.6.0"]));
    let trees = lab.cache.root().join("prebuilt");
    for half_made in [
        ".partial-linux-amd64-18.6.0/bin",
        ".partial-linux-amd64-17.5.0",
        "linux-amd64-18.6.0/bin",
    ] {
        std::fs::create_dir_all(trees.join(half_made)).unwrap();
    }
    let found = lab.resolve("18").unwrap();
    assert_eq!(lab.trees(), ["linux-amd64-18.6.0"]);
    std::fs::write(found.bin_dir.join("postgres"), "short").unwrap();
    assert!(lab.offline("18").is_err());
    assert_eq!(lab.resolve("18").unwrap(), found);
    assert_eq!(lab.fake.calls(), (1, 2));
}

#[test]
fn several_are_fetched_in_one_call_and_only_the_missing_ones() {
    let lab = Lab::with(Fake::with(&["16.9.0", "17.5.0", "18.6.0"]));
    let prefetch = |wanted: &[&str]| {
        let releases: Vec<Version> = wanted.iter().map(|text| wish(text)).collect();
        lab.prebuilt(&lab.cache, false)
            .prefetch(&releases, &mut |_| {})
    };
    prefetch(&["17", "18", "18.6"]).unwrap();
    assert_eq!(lab.fake.calls(), (1, 1));
    assert_eq!(lab.trees(), ["linux-amd64-17.5.0", "linux-amd64-18.6.0"]);
    prefetch(&["17", "18"]).unwrap();
    assert_eq!(lab.fake.calls(), (1, 1));
    assert!(prefetch(&["16", "19"]).unwrap_err().error.contains("19"));
}

#[test]
fn many_at_once_make_one_tree_with_one_fetch() {
    let lab = Lab::with(Fake::with(&["18.6.0"]));
    let found: Vec<Installation> = std::thread::scope(|scope| {
        let resolve = || {
            // A cache value of its own, as another process has; the lock is one of open files.
            let cache = Cache::open(lab.cache.root().to_owned()).unwrap();
            lab.prebuilt(&cache, false)
                .resolve(&wish("18"), &mut |_| {})
                .unwrap()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(resolve)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(lab.fake.calls(), (1, 1));
    assert_eq!(lab.trees(), ["linux-amd64-18.6.0"]);
}

#[test]
fn without_a_client_the_cache_still_serves() {
    let lab = Lab::with(Fake::with(&["18.6.0"]));
    lab.resolve("18").unwrap();
    let mut prebuilt = lab.prebuilt(&lab.cache, false);
    prebuilt.source = Err(Problem::new("no client can fetch prebuilt servers"));
    let mut said = String::new();
    let found = prebuilt
        .resolve(&wish("18"), &mut |line| said = line.to_owned())
        .unwrap();
    assert_eq!(found.version, "18.6");
    assert!(said.contains("no client"), "{said}");
    let problem = prebuilt.resolve(&wish("17"), &mut |_| {}).unwrap_err();
    assert_eq!(problem.error, "no client can fetch prebuilt servers");
}

#[test]
fn a_series_of_rocksdb_is_its_newest_library_fetched_once() {
    let lab = Lab::with(Fake::of_rocksdb(
        &["9.11.2", "10.2.1", "10.10.1", "10.10.1.1"],
        OPENS,
    ));
    let found = lab.resolve("10").unwrap();
    assert_eq!(
        (found.asked.as_str(), found.resolved.as_str()),
        ("rocksdb:10", "rocksdb:10.10.1.1")
    );
    assert_eq!(
        (
            found.version.as_str(),
            found.version_num,
            found.engine,
            found.origin
        ),
        ("10.10.1.1", 101_001, Engine::Rocksdb, Origin::Prebuilt)
    );
    assert!(
        found
            .bin_dir
            .ends_with("rocksdb/linux-amd64-10.10.1.1/librocksdb.so")
    );
    assert_eq!(
        found.binary_sha256,
        crate::tree::sha256_of(&found.bin_dir).unwrap()
    );
    assert_eq!(
        found.build.as_ref().unwrap().version_text,
        "RocksDB 10.10.1.1"
    );
    assert_eq!(lab.resolve("10").unwrap(), found);
    assert_eq!(lab.offline("10").unwrap(), found);
    assert_eq!(lab.fake.calls(), (1, 1));
    assert_eq!(lab.resolve("10.10.1").unwrap().version, "10.10.1");
    assert_eq!(lab.resolve("10.2").unwrap().version, "10.2.1");
    assert!(!lab.cache.root().join(".deltabench/work").exists());
}

#[test]
fn versions_of_rocksdb_that_cannot_be_had_are_refused_with_the_nearest() {
    let lab = Lab::with(Fake::of_rocksdb(
        &["8.11.4", "10.2.1", "10.4.2", "11.0.4"],
        OPENS,
    ));
    for (wanted, near) in [
        ("10.3.0", "rocksdb:10.2.1"),
        ("10.99.0", "rocksdb:10.4.2"),
        ("10.3", "rocksdb:10.2.1"),
        ("12", "rocksdb:11"),
        ("3.1.0", "rocksdb:8"),
    ] {
        let problem = lab.resolve(wanted).unwrap_err();
        assert!(
            problem.error.contains(&format!("RocksDB {wanted}")),
            "{problem}"
        );
        let hint = problem.hint.unwrap();
        assert!(hint.contains(&format!("{near};")), "{wanted}: {hint}");
        assert!(hint.contains("rocksdb:path:LIB.so"), "{hint}");
    }
    let detail = lab.resolve("10.3.0").unwrap_err().detail.unwrap();
    assert!(detail.starts_with("available versions of 10: 10.2.1 10.4.2 ("));
    let detail = lab.resolve("12").unwrap_err().detail.unwrap();
    assert!(
        detail.starts_with("available series: 8 10 11 ("),
        "{detail}"
    );
    assert_eq!(lab.fake.calls(), (1, 0));
    let detail = lab.offline("10").unwrap_err().detail.unwrap();
    assert!(
        detail.contains("contains no libraries of RocksDB"),
        "{detail}"
    );
}

#[test]
fn a_library_without_the_c_interface_is_refused_and_nothing_is_left() {
    let lab = Lab::with(Fake::of_rocksdb(&["10.2.1"], "int Java_org_rocksdb_open;"));
    let problem = lab.resolve("10.2.1").unwrap_err();
    assert!(
        problem.error.contains("RocksDB 10.2.1 cannot be measured"),
        "{problem}"
    );
    assert!(problem.detail.unwrap().contains("no C interface"));
    assert_eq!(lab.trees(), Vec::<String>::new());
    assert!(!lab.cache.root().join(".deltabench/work").exists());
}

#[test]
fn a_jar_without_this_machine_s_library_and_a_broken_one_are_refused_and_nothing_is_left() {
    let lab = Lab::with(Fake::of_rocksdb(&["10.2.1"], OPENS));
    let jar = lab.fake.rocksdb.clone().unwrap();
    let whole = jar.lock().unwrap().clone();
    for (bytes, why) in [
        (server_jar("17.5"), "librocksdbjni-linux"),
        (whole[..whole.len() / 2].to_vec(), "cannot read"),
        (library_jar(b"no library"), "not a 64-bit ELF file"),
    ] {
        *jar.lock().unwrap() = bytes;
        let problem = lab.resolve("10.2.1").unwrap_err();
        assert!(problem.to_string().contains(why), "{why}: {problem}");
        assert_eq!(lab.trees(), Vec::<String>::new());
    }
    *jar.lock().unwrap() = whole;
    lab.resolve("10.2.1").unwrap();
    lab.fake.corrupt.store(true, Ordering::SeqCst);
    std::fs::write(
        lab.cache
            .root()
            .join("rocksdb/linux-amd64-10.2.1/librocksdb.so"),
        "short",
    )
    .unwrap();
    let problem = lab.resolve("10.2.1").unwrap_err();
    assert!(
        problem.error.contains("does not match its checksum"),
        "{problem}"
    );
    lab.fake.corrupt.store(false, Ordering::SeqCst);
    assert_eq!(lab.resolve("10.2.1").unwrap().version, "10.2.1");
}

#[test]
fn a_server_and_a_library_of_one_version_and_their_lists_are_not_mixed() {
    let servers = Lab::with(Fake::with(&["10.2.0", "10.2.1"]));
    let libraries = Lab {
        cache: servers.cache.clone(),
        ..Lab::with(Fake::of_rocksdb(&["10.2.1"], OPENS))
    };
    let library = libraries.resolve("10").unwrap();
    assert!(servers.offline("10").is_err());
    let server = servers.resolve("10").unwrap();
    assert!(server.bin_dir.ends_with("prebuilt/linux-amd64-10.2.1/bin"));
    assert_eq!(libraries.offline("10").unwrap(), library);
    servers.fake.down.store(true, Ordering::SeqCst);
    servers.age_list();
    servers.resolve("10").unwrap();
    assert!(servers.last_words().contains("network is down"));
    // That the servers' list cannot be had says nothing about the libraries'.
    std::fs::remove_file(servers.cache.root().join("lists/fake-rocksdb.json")).unwrap();
    assert_eq!(libraries.resolve("10").unwrap(), library);
    assert_eq!(libraries.fake.calls(), (2, 1));
}
