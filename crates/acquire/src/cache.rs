//! The per-user cache: unpacked servers and libraries, version lists, the lock.
//!
//! Layout below the root: `prebuilt/PLATFORM-PACKAGE/` (a tree with its stamp), `rocksdb/PLATFORM-PACKAGE/`
//! (a library with its stamp), `.partial-…` in both (being made), `lists/CLIENT-LIST.json`, `maven/`
//! (Maven's private repository), `lock`; for builds from source `sources/` (archives and what is known of
//! them), `built/` (finished builds), `trees/` (source trees that stay), `logs/` (of builds that failed),
//! `apt/`, `ccache/`, `lock-builds`. Work in progress, which is removed whole without a look, is in
//! `.deltabench/work`, `fetch` and `build`: the root may be a directory where somebody has a `build` of
//! their own. A tree counts only with its stamp, which is written last, before the tree gets its name.

use crate::address::without_credentials;
use crate::files::{failed, make_directory, read_json, remove_tree, write_whole};
use crate::library;
use crate::package_source::{Arrived, Package, PackageSource};
use crate::platform::Platform;
use crate::stamp::{STAMP, STAMP_FORMAT, Stamp};
use crate::tree;
use crate::versions::{PackageVersion, Product, Version};
use deltabench_model::problem::Problem;
use deltabench_proc::host::our_user;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LIST_FORMAT: &str = "deltabench.versions";

/// A directory that keeps what was fetched, for this user's deltabench processes.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    /// When and why no list could be fetched last; of this process only.
    failure: Arc<Mutex<Vec<Failure>>>,
}

/// That the list of a product could not be fetched, when, and why.
type Failure = (Product, Instant, String);

impl Cache {
    /// Where the cache is unless the user says otherwise.
    ///
    /// `$DELTABENCH_CACHE`; else `/var/cache/deltabench` for root, whose servers run as another user that
    /// cannot read root's home; else `$XDG_CACHE_HOME/deltabench` or `~/.cache/deltabench`.
    pub fn default_root() -> PathBuf {
        root_for(our_user() == Some(0), |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        })
    }

    /// Opens the cache at `root`, making its directories (0755) where they are missing.
    ///
    /// Errors: the directories cannot be made; the one below the system's temporary directory is not ours.
    pub fn open(root: PathBuf) -> Result<Self, Problem> {
        Self::open_beside(root, &temporary_root())
    }

    /// `temporary` is the root that everybody can make before we do.
    fn open_beside(root: PathBuf, temporary: &Path) -> Result<Self, Problem> {
        let root = std::path::absolute(&root).map_err(|error| failed("make", &root, &error))?;
        let cache = Self {
            root,
            failure: Arc::default(),
        };
        for dir in [
            cache.root.clone(),
            cache.trees(Product::Postgres),
            cache.root.join("lists"),
        ] {
            make_directory(&dir).map_err(|problem| {
                problem.hint("set DELTABENCH_CACHE to a directory that you can write to")
            })?;
            if dir == temporary {
                check_ours(&dir)?;
            }
        }
        Ok(cache)
    }

    /// The cache's directory, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Why no list of a product could be fetched within the last minute.
    pub(crate) fn recent_failure(&self, product: Product) -> Option<String> {
        let failures = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failures
            .iter()
            .find(|(of, when, _)| *of == product && when.elapsed() < Duration::from_secs(60))
            .map(|(_, _, why)| why.clone())
    }

    /// Notes that no list of a product could be fetched now.
    pub(crate) fn note_failure(&self, product: Product, why: &str) {
        let mut failures = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|(of, _, _)| *of != product);
        failures.push((product, Instant::now(), why.to_owned()));
    }

    fn trees(&self, product: Product) -> PathBuf {
        self.root.join(match product {
            Product::Postgres => "prebuilt",
            Product::Rocksdb => "rocksdb",
        })
    }

    /// A directory for work in progress: it may be removed with everything in it.
    pub(crate) fn in_progress(&self, name: &str) -> PathBuf {
        self.root.join(".deltabench").join(name)
    }

    /// Archives of sources, and what is known of them.
    pub(crate) fn sources(&self) -> PathBuf {
        self.root.join("sources")
    }

    /// Finished builds.
    pub(crate) fn built(&self) -> PathBuf {
        self.root.join("built")
    }

    /// Maven's private repository: the user's own is not filled, nor trusted.
    pub(crate) fn maven_repository(&self) -> PathBuf {
        self.root.join("maven")
    }

    /// Waits until no other process changes the cache; it is free again when the value is dropped.
    pub(crate) fn lock(&self, progress: &mut dyn FnMut(&str)) -> Result<Locked<'_>, Problem> {
        let file = self.lock_file("lock", "fetching", progress)?;
        Ok(Locked {
            cache: self,
            _file: file,
        })
    }

    /// Waits until no other process builds from source; a lock of its own, since a build takes minutes.
    ///
    /// Whoever has the file open holds the lock: what a build starts holds it too.
    pub(crate) fn lock_builds(&self, progress: &mut dyn FnMut(&str)) -> Result<File, Problem> {
        for dir in [self.sources(), self.built()] {
            make_directory(&dir)?;
        }
        self.lock_file("lock-builds", "building from source", progress)
    }

    fn lock_file(
        &self,
        name: &str,
        what: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<File, Problem> {
        let path = self.root.join(name);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| failed("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress(&format!("waiting for another deltabench that is {what}"));
                file.lock().map_err(|error| failed("lock", &path, &error))?;
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
        }
        Ok(file)
    }

    /// Whole trees for this platform, in no order. Needs no lock.
    pub(crate) fn cached(&self, product: Product, platform: Platform) -> Vec<Cached> {
        let prefix = format!("{}-", platform.maven);
        let entries = std::fs::read_dir(self.trees(product))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let text = name.to_str()?.strip_prefix(&prefix)?;
                let version = PackageVersion::parse(product, text)?;
                self.cached_version(platform, version)
            })
            .collect()
    }

    /// The tree of one package, if it is whole.
    pub(crate) fn cached_version(
        &self,
        platform: Platform,
        version: PackageVersion,
    ) -> Option<Cached> {
        let dir = self.tree_dir(platform, &version);
        let stamp = Stamp::beside(&dir)?;
        let product = version.release.product();
        let whole = stamp.package == version.text
            && (product != Product::Postgres || tree::lacking(&dir.join("bin")).is_none())
            && dir
                .join(product.binary())
                .metadata()
                .is_ok_and(|found| found.len() == stamp.binary_bytes);
        whole.then_some(Cached {
            version,
            dir,
            stamp,
        })
    }

    fn tree_dir(&self, platform: Platform, version: &PackageVersion) -> PathBuf {
        self.trees(version.release.product())
            .join(format!("{}-{}", platform.maven, version.text))
    }

    fn list_file(
        &self,
        source: &dyn PackageSource,
        product: Product,
        platform: Platform,
    ) -> PathBuf {
        let of = product.list_name(platform);
        self.root
            .join("lists")
            .join(format!("{}-{of}.json", source.name()))
    }

    /// The list kept from the last time, if it came from the same place. Needs no lock.
    pub(crate) fn kept_list(
        &self,
        source: &dyn PackageSource,
        product: Product,
        platform: Platform,
    ) -> Option<KeptList> {
        let file: ListFile = read_json(&self.list_file(source, product, platform))?;
        let mirror = source.mirror().map(without_credentials);
        if file.format != LIST_FORMAT || file.version != 1 || file.mirror != mirror {
            return None;
        }
        let versions = file
            .versions
            .iter()
            .filter_map(|text| PackageVersion::parse(product, text))
            .collect();
        let fetched = UNIX_EPOCH.checked_add(Duration::from_secs(file.fetched_unix_s))?;
        // A time in the future says nothing about the age: such a list counts as old.
        Some(KeptList {
            versions,
            age: SystemTime::now()
                .duration_since(fetched)
                .unwrap_or(Duration::MAX),
        })
    }
}

fn root_for(is_root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    if let Some(dir) = variable("DELTABENCH_CACHE") {
        return dir;
    }
    if is_root {
        return PathBuf::from("/var/cache/deltabench");
    }
    let base = variable("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
    base.or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .map_or_else(temporary_root, |base| base.join("deltabench"))
}

/// The root for who has no home.
fn temporary_root() -> PathBuf {
    std::env::temp_dir().join("deltabench")
}

/// Refuses a directory that somebody else could put programs into, which we would run.
fn check_ours(dir: &Path) -> Result<(), Problem> {
    let found = std::fs::symlink_metadata(dir).map_err(|error| failed("read", dir, &error))?;
    let why = if found.is_dir() {
        foreign(found.uid(), found.mode(), our_user())
    } else {
        Some("it is a link".to_owned())
    };
    match why {
        None => Ok(()),
        Some(why) => Err(Problem::new(format!(
            "{} is not a safe place for a cache",
            dir.display()
        ))
        .detail(format!("{why}, and deltabench would run servers from it"))
        .hint("name a directory of your own with --cache DIR, or set HOME")),
    }
}

/// Why a directory with that owner and mode is not `ours` alone; root could do everything anyway.
fn foreign(owner: u32, mode: u32, ours: Option<u32>) -> Option<String> {
    if owner != 0 && Some(owner) != ours {
        return Some(format!("it belongs to user ID {owner}"));
    }
    let others = mode & 0o022;
    (others != 0).then(|| format!("others can write to it (mode {:o})", mode & 0o7777))
}

/// A list of versions kept in the cache.
pub(crate) struct KeptList {
    pub versions: Vec<PackageVersion>,
    pub age: Duration,
}

/// A whole tree in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub version: PackageVersion,
    pub dir: PathBuf,
    pub stamp: Stamp,
}

/// A fetched list of versions; version 1 of the format.
#[derive(Serialize, Deserialize)]
struct ListFile {
    format: String,
    version: u32,
    revision: u32,
    mirror: Option<String>,
    fetched_unix_s: u64,
    versions: Vec<String>,
}

/// The right to change the cache.
pub(crate) struct Locked<'a> {
    cache: &'a Cache,
    _file: File,
}

impl Locked<'_> {
    /// An empty directory for a client's files. What an earlier, killed process left is removed.
    pub fn work_dir(&self) -> Result<PathBuf, Problem> {
        let dir = self.cache.in_progress("work");
        remove_tree(&dir)?;
        make_directory(&dir)?;
        Ok(dir)
    }

    /// Removes the files of the call; a failure only costs space until the next call.
    pub fn clear_work_dir(&self) {
        let _ = remove_tree(&self.cache.in_progress("work"));
    }

    /// Keeps a fetched list with its date.
    pub fn keep_list(
        &self,
        source: &dyn PackageSource,
        product: Product,
        platform: Platform,
        versions: &[PackageVersion],
    ) -> Result<(), Problem> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let file = ListFile {
            format: LIST_FORMAT.to_owned(),
            version: 1,
            revision: 0,
            mirror: source.mirror().map(without_credentials),
            fetched_unix_s: now.as_secs(),
            versions: versions
                .iter()
                .map(|version| version.text.clone())
                .collect(),
        };
        write_whole(&self.cache.list_file(source, product, platform), &file)
    }

    /// Removes partial trees: those of processes that were killed, as the caller has the lock.
    pub fn remove_partials(&self, product: Product) -> Result<(), Problem> {
        let entries = std::fs::read_dir(self.cache.trees(product));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name
                .to_str()
                .is_some_and(|name| name.starts_with(".partial-"))
            {
                remove_tree(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Unpacks a package into a partial tree. Nothing of it runs before it is verified and kept.
    pub fn unpack<'a>(
        &'a self,
        source: &dyn PackageSource,
        platform: Platform,
        arrived: &Arrived,
    ) -> Result<Unpacked<'a>, Problem> {
        let version = &arrived.version;
        let trees = self.cache.trees(version.release.product());
        let partial = trees.join(format!(".partial-{}-{}", platform.maven, version.text));
        make_directory(&partial)?;
        let unpacked = Unpacked {
            cache: self.cache,
            platform,
            version: version.clone(),
            partial,
        };
        let filled = source.unpack(&arrived.file, &unpacked.partial);
        filled.map_err(|error| {
            Problem::new(format!(
                "cannot unpack the package of {}",
                version.release.named()
            ))
            .detail(error.to_string())
            .hint(format!(
                "deltabench kept nothing; is there space in {}?",
                trees.display()
            ))
        })?;
        Ok(unpacked)
    }
}

/// A partial tree of a package; dropping it removes it.
pub(crate) struct Unpacked<'a> {
    cache: &'a Cache,
    platform: Platform,
    version: PackageVersion,
    partial: PathBuf,
}

impl Unpacked<'_> {
    /// Gives the tree of a package that was verified its name.
    ///
    /// Errors: it does not hold what its name says.
    pub fn keep(self, source: &dyn PackageSource, package: &Package) -> Result<(), Problem> {
        let (partial, dir) = (
            &self.partial,
            self.cache.tree_dir(self.platform, &self.version),
        );
        stamp(source, &self.version, package, partial)?;
        // Without a stamp, what is there now is half-made by something other than us, or damaged.
        remove_tree(&dir)?;
        std::fs::rename(partial, &dir).map_err(|error| failed("rename", partial, &error))
    }
}

impl Drop for Unpacked<'_> {
    fn drop(&mut self) {
        let _ = remove_tree(&self.partial);
    }
}

/// Checks what was unpacked into `partial`, and writes the stamp.
fn stamp(
    source: &dyn PackageSource,
    of: &PackageVersion,
    package: &Package,
    partial: &Path,
) -> Result<(), Problem> {
    let name = &of.text;
    let (version_num, build) = match &of.release {
        Version::Postgres(release) => (server_in(partial, name, &release.to_string())?, None),
        Version::Rocksdb(version) => (
            version.number(),
            Some(library::packaged(
                &partial.join(Product::Rocksdb.binary()),
                version,
            )?),
        ),
    };
    let binary = partial.join(of.release.product().binary());
    let size = binary
        .metadata()
        .map_err(|error| failed("read", &binary, &error))?
        .len();
    let stamp = Stamp {
        format: STAMP_FORMAT.to_owned(),
        version: 1,
        revision: 1,
        source: source.name().to_owned(),
        package: name.clone(),
        package_sha256: package.sha256.clone(),
        package_verified_by: package.verified_by,
        server_version: of.release.to_string(),
        server_version_num: version_num,
        binary_sha256: tree::sha256_of(&binary)?,
        binary_bytes: size,
        build,
    };
    write_whole(&partial.join(STAMP), &stamp)
}

/// Checks that an unpacked package holds the server that it says, and gives the number of its version.
fn server_in(partial: &Path, package: &str, version: &str) -> Result<u32, Problem> {
    let bin_dir = partial.join("bin");
    if let Some(why) = tree::lacking(&bin_dir) {
        return Err(Problem::new(format!("the package {package} contains no server")).detail(why));
    }
    let facts = tree::facts(&bin_dir)?;
    if facts.version != version {
        return Err(
            Problem::new(format!("the package {package} contains another release"))
                .detail(format!("its server says it is {}", facts.said)),
        );
    }
    Ok(facts.version_num)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_default_root_is_readable_by_the_server_user_when_we_are_root() {
        let none = |_: &str| None;
        assert_eq!(root_for(true, none), Path::new("/var/cache/deltabench"));
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/a"));
        assert_eq!(root_for(true, home), Path::new("/var/cache/deltabench"));
        assert_eq!(
            root_for(false, home),
            Path::new("/home/a/.cache/deltabench")
        );
        let xdg = |name: &str| match name {
            "XDG_CACHE_HOME" => Some(PathBuf::from("/x")),
            _ => home(name),
        };
        assert_eq!(root_for(false, xdg), Path::new("/x/deltabench"));
        let own = |name: &str| (name == "DELTABENCH_CACHE").then(|| PathBuf::from("/own"));
        assert_eq!(root_for(true, own), Path::new("/own"));
        let relative = |name: &str| (name == "XDG_CACHE_HOME").then(|| PathBuf::from("x"));
        assert_eq!(
            root_for(false, relative),
            std::env::temp_dir().join("deltabench")
        );
    }

    #[test]
    fn opening_makes_directories_that_others_can_enter() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().join("a/b")).unwrap();
        for made in [
            dir.path().join("a"),
            cache.root().to_owned(),
            cache.trees(Product::Postgres),
        ] {
            assert_eq!(
                made.metadata().unwrap().permissions().mode() & 0o777,
                0o755,
                "{}",
                made.display()
            );
        }
    }

    #[test]
    fn a_temporary_root_that_others_own_or_can_write_to_is_refused() {
        assert_eq!(foreign(1000, 0o40755, Some(1000)), None);
        assert_eq!(foreign(0, 0o40755, Some(1000)), None);
        for (owner, mode, ours) in [
            (1001, 0o40755, Some(1000)),
            (1001, 0o40755, Some(0)),
            (1001, 0o40755, None),
            (1000, 0o40775, Some(1000)),
            (1000, 0o40757, Some(1000)),
            (0, 0o41777, Some(1000)),
        ] {
            assert!(foreign(owner, mode, ours).is_some(), "{owner} {mode:o}");
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("deltabench");
        let open = || Cache::open_beside(root.clone(), &root).map(drop);
        open().unwrap();
        let set = |mode| std::fs::set_permissions(&root, Permissions::from_mode(mode)).unwrap();
        set(0o777);
        let problem = open().unwrap_err();
        assert!(problem.detail.unwrap().contains("mode 777"));
        assert!(problem.hint.unwrap().contains("--cache"));
        // A directory that the user named is theirs to share.
        Cache::open_beside(root.clone(), &dir.path().join("other")).unwrap();
        set(0o755);
        let real = dir.path().join("real");
        std::fs::rename(&root, &real).unwrap();
        std::os::unix::fs::symlink(&real, &root).unwrap();
        assert!(open().unwrap_err().detail.unwrap().contains("a link"));
    }

    #[test]
    fn what_the_user_has_in_the_root_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().to_owned()).unwrap();
        let own = ["work", "build", "fetch"].map(|name| dir.path().join(name).join("own"));
        for file in &own {
            make_directory(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let locked = cache.lock(&mut |_| {}).unwrap();
        let work = locked.work_dir().unwrap();
        assert!(work.is_dir() && work.starts_with(dir.path().join(".deltabench")));
        locked.clear_work_dir();
        assert!(!work.exists());
        assert!(own.iter().all(|file| file.exists()));
    }

    #[test]
    fn a_root_that_cannot_be_made_is_a_problem_with_a_way_out() {
        let problem = Cache::open(PathBuf::from("/proc/deltabench")).unwrap_err();
        assert!(problem.error.contains("/proc/deltabench"));
        assert!(problem.hint.unwrap().contains("DELTABENCH_CACHE"));
    }

    #[test]
    fn a_kept_list_of_another_mirror_or_format_does_not_count_and_a_future_one_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().to_owned()).unwrap();
        let platform = Platform::of("linux", "x86_64").unwrap();
        let client = |program: &str, mirror: Option<&str>| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(program);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            let search = Some(dir.path().as_os_str());
            clients::choose(search, Product::Postgres, platform, mirror, PathBuf::new()).unwrap()
        };
        let kept_list = |program: &str, mirror: Option<&str>| {
            let client = client(program, mirror);
            cache.kept_list(client.as_ref(), Product::Postgres, platform)
        };
        let maven = client("mvn", None);
        let file = cache.list_file(maven.as_ref(), Product::Postgres, platform);
        let write = |version: u32, mirror: &str, time: u64| {
            let text = format!(
                r#"{{"format":"deltabench.versions","version":{version},"revision":7,"mirror":{mirror},
                "fetched_unix_s":{time},"versions":["17.5.0","what"],"new_field":1}}"#
            );
            std::fs::write(&file, text).unwrap();
        };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        write(1, "null", now - 3600);
        let list = kept_list("mvn", None).unwrap();
        assert_eq!(list.versions.len(), 1);
        assert!(list.age >= Duration::from_secs(3600) && list.age < Duration::from_secs(3700));
        assert!(kept_list("mvn", Some("file:///m")).is_none());
        assert!(kept_list("npm", None).is_none());
        write(1, "\"file:///m\"", now + 86_400);
        assert!(kept_list("mvn", None).is_none());
        assert_eq!(
            kept_list("mvn", Some("file:///m")).unwrap().age,
            Duration::MAX
        );
        write(2, "null", now);
        assert!(kept_list("mvn", None).is_none());
        std::fs::write(&file, "{").unwrap();
        assert!(kept_list("mvn", None).is_none());
    }
}
