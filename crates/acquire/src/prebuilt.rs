//! A prebuilt server or library: from the cache, or fetched into it.

use crate::Sources;
use crate::cache::{Cache, Cached, KeptList, Locked};
use crate::clients::choose;
use crate::package_source::{Arrived, PackageSource, PackageSourceError};
use crate::platform::Platform;
use crate::versions::{self, PackageVersion, Product, Version};
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use std::path::Path;
use std::time::Duration;

/// New point releases come four times a year; a list of today is new enough.
pub(crate) const LIST_IS_FRESH: Duration = Duration::from_hours(24);
/// A wish that is not in a list older than this is looked for in a new one: it may have been released since.
const LIST_IS_BRAND_NEW: Duration = Duration::from_hours(1);

/// Fetches all prebuilt targets among `specs` that are not in the cache, in one call of the client for the
/// servers and one for RocksDB's libraries.
///
/// Saves seconds against one [`resolve`](crate::resolve) after the other;
/// [`resolve`](crate::resolve) then finds them in the cache.
///
/// Errors: those of [`resolve`](crate::resolve), for the first target that has one.
pub fn prefetch(
    specs: &[TargetSpec],
    cache: &Cache,
    sources: &Sources,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    for product in [Product::Postgres, Product::Rocksdb] {
        let wanted: Vec<Version> = specs
            .iter()
            .filter_map(Version::wanted_by)
            .filter(|version| version.product() == product)
            .collect();
        if !wanted.is_empty() {
            Prebuilt::new(product, cache, sources)?.prefetch(&wanted, progress)?;
        }
    }
    Ok(())
}

pub(crate) fn resolve(
    wanted: &Version,
    cache: &Cache,
    sources: &Sources,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, Problem> {
    Prebuilt::new(wanted.product(), cache, sources)?.resolve(wanted, progress)
}

/// What a wish comes to before anything is fetched.
enum Plan {
    Have(Box<Cached>),
    Fetch(PackageVersion),
}

/// A list of versions and how it was come by.
pub(crate) struct VersionList {
    pub versions: Vec<PackageVersion>,
    pub age: Duration,
    /// Why no newer list could be fetched, if that was tried.
    pub stale: Option<PackageSourceError>,
}

impl VersionList {
    fn fresh(kept: KeptList) -> Self {
        Self {
            versions: kept.versions,
            age: kept.age,
            stale: None,
        }
    }

    /// The kept list in place of one that could not be reached; `error` itself when that does not help.
    fn old(kept: Option<KeptList>, error: PackageSourceError) -> Result<Self, PackageSourceError> {
        match kept {
            Some(kept) if error.is_unreachable() => Ok(Self {
                versions: kept.versions,
                age: kept.age,
                stale: Some(error),
            }),
            _ => Err(error),
        }
    }
}

/// Everything that resolving needs.
pub(crate) struct Prebuilt<'a> {
    cache: &'a Cache,
    product: Product,
    platform: Platform,
    /// The client, or why there is none: what is in the cache needs none.
    source: Result<Box<dyn PackageSource>, Problem>,
    offline: bool,
}

impl<'a> Prebuilt<'a> {
    /// The binaries of a product, from the package source that this machine has.
    pub fn new(product: Product, cache: &'a Cache, sources: &Sources) -> Result<Self, Problem> {
        let platform = Platform::here()?;
        let search = std::env::var_os("PATH");
        let source = choose(
            search.as_deref(),
            product,
            platform,
            sources.mirror.as_deref(),
            cache.maven_repository(),
        )
        .map_err(|error| error.into_problem(product, product.things()));
        Ok(Self {
            cache,
            product,
            platform,
            source,
            offline: sources.offline,
        })
    }

    /// What is fetched.
    pub fn product(&self) -> Product {
        self.product
    }

    fn source(&self) -> Result<&dyn PackageSource, PackageSourceError> {
        match &self.source {
            Ok(source) => Ok(source.as_ref()),
            Err(problem) => Err(PackageSourceError::NoClient(problem.clone())),
        }
    }

    /// The binaries of this platform that are here already.
    pub fn cached(&self) -> Vec<Cached> {
        self.cache.cached(self.product, self.platform)
    }

    /// The committed list.
    pub fn known(&self) -> Vec<PackageVersion> {
        versions::known(self.product, self.platform)
    }

    /// The list kept from an earlier call, however old.
    pub fn kept(&self) -> Option<Vec<PackageVersion>> {
        let source = self.source().ok()?;
        self.cache
            .kept_list(source, self.product, self.platform)
            .map(|kept| kept.versions)
    }

    fn newest_cached(&self, wanted: &Version) -> Option<Cached> {
        self.cached()
            .into_iter()
            .filter(|cached| cached.version.answers(wanted))
            .max_by_key(|cached| cached.version.order())
    }

    fn resolve(
        &self,
        wanted: &Version,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, Problem> {
        let cached = match self.plan(wanted, progress)? {
            Plan::Have(cached) => *cached,
            Plan::Fetch(version) => self.fetch_or_fall_back(wanted, version, progress)?,
        };
        Ok(Installation {
            asked: wanted.target().to_string(),
            resolved: cached.version.release.target().to_string(),
            origin: Origin::Prebuilt,
            bin_dir: cached.dir.join(self.product.place()),
            version_num: cached.stamp.server_version_num,
            version: cached.stamp.server_version,
            binary_sha256: cached.stamp.binary_sha256,
            build: cached.stamp.build,
            recipe: None,
            remote: None,
            engine: self.product.engine(),
        })
    }

    fn prefetch(&self, wanted: &[Version], progress: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        let mut missing: Vec<PackageVersion> = Vec::new();
        for release in wanted {
            if let Plan::Fetch(version) = self.plan(release, progress)?
                && !missing.contains(&version)
            {
                missing.push(version);
            }
        }
        let fallbacks = wanted
            .iter()
            .all(|release| self.newest_cached(release).is_some());
        match self.fetch(&missing, progress) {
            // Older point releases in the cache may do: `resolve` takes them and says so, target by target.
            Err(error) if error.is_unreachable() && fallbacks => Ok(()),
            Err(error) => Err(error.into_problem(self.product, &named(self.product, &missing))),
            Ok(()) => Ok(()),
        }
    }

    fn plan(&self, wanted: &Version, progress: &mut dyn FnMut(&str)) -> Result<Plan, Problem> {
        let cached = self.newest_cached(wanted);
        if self.offline {
            return cached
                .map(|cached| Plan::Have(Box::new(cached)))
                .ok_or_else(|| self.offline_without(wanted));
        }
        if wanted.is_exact() {
            if let Some(cached) = cached {
                return Ok(Plan::Have(Box::new(cached)));
            }
            return self.find_point_release(wanted, progress).map(Plan::Fetch);
        }
        let list = match (self.list(LIST_IS_FRESH, progress), cached.clone()) {
            (Ok(list), _) => list,
            (Err(error), Some(cached)) if error.is_unreachable() => {
                progress(&format!(
                    "cannot get a list of versions ({}): {}",
                    first_line(&error),
                    falling_back(&cached)
                ));
                return Ok(Plan::Have(Box::new(cached)));
            }
            (Err(error), _) => return Err(error.into_problem(self.product, &wanted.named())),
        };
        let listed = versions::newest(wanted, &list.versions);
        match (listed, cached) {
            (Some(listed), Some(cached)) if cached.version.order() < listed.order() => {
                self.newer_or_cached(&list, listed, cached, progress)
            }
            (_, Some(cached)) => Ok(Plan::Have(Box::new(cached))),
            (Some(listed), None) => Ok(Plan::Fetch(listed.clone())),
            (None, None) => Err(self.not_listed(wanted, list, progress)),
        }
    }

    /// The cache has an older packaging than the list: a newer release is worth a fetch, a
    /// repackaged one is not.
    fn newer_or_cached(
        &self,
        list: &VersionList,
        listed: &PackageVersion,
        cached: Cached,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Plan, Problem> {
        if listed.release == cached.version.release {
            return Ok(Plan::Have(Box::new(cached)));
        }
        if let Some(error) = &list.stale {
            // The list is old because nothing can be reached now: fetching would fail as well.
            progress(&format!(
                "no new list of versions ({}): {}",
                first_line(error),
                falling_back(&cached)
            ));
            return Ok(Plan::Have(Box::new(cached)));
        }
        Ok(Plan::Fetch(listed.clone()))
    }

    /// The package of an exact release; asks for the list only when none at hand names it.
    fn find_point_release(
        &self,
        wanted: &Version,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PackageVersion, Problem> {
        let source = self
            .source()
            .map_err(|error| error.into_problem(self.product, &wanted.named()))?;
        let kept = self.cache.kept_list(source, self.product, self.platform);
        if let Some(version) = kept
            .as_ref()
            .and_then(|kept| versions::newest(wanted, &kept.versions))
        {
            return Ok(version.clone());
        }
        if source.has_known_versions()
            && let Some(version) = versions::newest(wanted, &self.known())
        {
            return Ok(version.clone());
        }
        let list = self
            .list(LIST_IS_BRAND_NEW, progress)
            .map_err(|error| error.into_problem(self.product, &wanted.named()))?;
        match versions::newest(wanted, &list.versions) {
            Some(version) => Ok(version.clone()),
            None => Err(self.not_listed(wanted, list, progress)),
        }
    }

    /// The refusal of a release that is in no list; a list that is not brand-new is renewed first to be sure.
    fn not_listed(
        &self,
        wanted: &Version,
        list: VersionList,
        progress: &mut dyn FnMut(&str),
    ) -> Problem {
        let list = match list.age > LIST_IS_BRAND_NEW && list.stale.is_none() {
            true => self.list(LIST_IS_BRAND_NEW, progress).unwrap_or(list),
            false => list,
        };
        let age = match &list.stale {
            None => "list of today".to_owned(),
            Some(error) => format!(
                "an old list, because there is no new one: {}",
                first_line(error)
            ),
        };
        let problem = versions::unavailable(wanted, &list.versions, &age);
        let other_client = self.source().is_ok_and(|source| source.name() == "npm")
            && versions::newest(wanted, &self.known()).is_some();
        if other_client {
            return problem.hint(format!(
                "the packages that the `mvn` client fetches have {wanted}: install Maven"
            ));
        }
        problem
    }

    /// A list no older than `oldest`, fetched if need be; an older one when none can be fetched.
    pub fn list(
        &self,
        oldest: Duration,
        progress: &mut dyn FnMut(&str),
    ) -> Result<VersionList, PackageSourceError> {
        let source = self.source()?;
        let kept = || self.cache.kept_list(source, self.product, self.platform);
        let fresh = || {
            kept()
                .filter(|list| list.age <= oldest)
                .map(VersionList::fresh)
        };
        if let Some(list) = fresh() {
            return Ok(list);
        }
        if let Some(said) = self.cache.recent_failure(self.product) {
            // Waiting for the same silence once per target helps nobody.
            let error = PackageSourceError::Unreachable {
                client: source.name(),
                said,
            };
            return VersionList::old(kept(), error);
        }
        let lock = self
            .cache
            .lock(progress)
            .map_err(PackageSourceError::File)?;
        // Whoever held the lock may have fetched it.
        if let Some(list) = fresh() {
            return Ok(list);
        }
        progress(&format!(
            "asking {} for the list of {}",
            source.name(),
            self.product.things()
        ));
        let work = lock.work_dir().map_err(PackageSourceError::File)?;
        let fetched = source.versions(&work);
        lock.clear_work_dir();
        match fetched {
            Ok(versions) => {
                lock.keep_list(source, self.product, self.platform, &versions)
                    .map_err(PackageSourceError::File)?;
                Ok(VersionList {
                    versions,
                    age: Duration::ZERO,
                    stale: None,
                })
            }
            Err(error) => {
                if let PackageSourceError::Unreachable { said, .. } = &error {
                    self.cache.note_failure(self.product, said);
                }
                let why = first_line(&error);
                let list = VersionList::old(kept(), error)?;
                progress(&format!(
                    "cannot get a new list of versions ({why}); using an old one"
                ));
                Ok(list)
            }
        }
    }

    fn fetch_or_fall_back(
        &self,
        wanted: &Version,
        version: PackageVersion,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Cached, Problem> {
        let what = version.release.named();
        match self.fetch(std::slice::from_ref(&version), progress) {
            Ok(()) => self
                .cache
                .cached_version(self.platform, version)
                .ok_or_else(|| {
                    Problem::new(format!("{what} was fetched but is no longer in the cache"))
                }),
            Err(error) => match self.newest_cached(wanted) {
                Some(cached) if error.is_unreachable() => {
                    progress(&format!(
                        "cannot fetch {what} ({}): {}",
                        first_line(&error),
                        falling_back(&cached)
                    ));
                    Ok(cached)
                }
                _ => Err(error.into_problem(self.product, &what)),
            },
        }
    }

    /// Brings packages into the cache; those that are there already cost nothing.
    fn fetch(
        &self,
        wanted: &[PackageVersion],
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), PackageSourceError> {
        let is_missing = |version: &&PackageVersion| {
            self.cache
                .cached_version(self.platform, (*version).clone())
                .is_none()
        };
        if wanted.iter().all(|version| !is_missing(&version)) {
            return Ok(());
        }
        let source = self.source()?;
        let lock = self
            .cache
            .lock(progress)
            .map_err(PackageSourceError::File)?;
        // Whoever held the lock may have brought them.
        let missing: Vec<PackageVersion> = wanted.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        progress(&format!(
            "fetching {} with {}",
            named(self.product, &missing),
            source.name()
        ));
        let work = lock.work_dir().map_err(PackageSourceError::File)?;
        let outcome = source.fetch(&missing, &work).and_then(|arrived| {
            progress(&format!(
                "unpacking {}, and checking with {}",
                named(self.product, &missing),
                source.name()
            ));
            self.install(&lock, source, &arrived, &work)
        });
        lock.clear_work_dir();
        outcome
    }

    /// Unpacks packages, several at the same time, while the client asks for their published checksums; keeps
    /// those that match.
    fn install(
        &self,
        lock: &Locked<'_>,
        source: &dyn PackageSource,
        arrived: &[Arrived],
        work: &Path,
    ) -> Result<(), PackageSourceError> {
        let platform = self.platform;
        lock.remove_partials(self.product)
            .map_err(PackageSourceError::File)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = arrived.len().div_ceil(cores).max(1);
        let unpack = |share: &[Arrived]| {
            let unpacked = share.iter().map(|one| lock.unpack(source, platform, one));
            unpacked.collect::<Result<Vec<_>, Problem>>()
        };
        let (unpacked, packages) = std::thread::scope(|scope| {
            let shares = arrived.chunks(share);
            let unpacking: Vec<_> = shares
                .map(|share| scope.spawn(move || unpack(share)))
                .collect();
            let packages = source.verify(arrived, work);
            let died = |_| Err(Problem::new("a thread that unpacks ended too early"));
            let unpacked = unpacking
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(died));
            (unpacked.collect::<Result<Vec<_>, Problem>>(), packages)
        });
        // First: a package that is damaged may not unpack either.
        let packages = packages?;
        let unpacked = unpacked.map_err(PackageSourceError::File)?;
        for (tree, package) in unpacked.into_iter().flatten().zip(&packages) {
            tree.keep(source, package)
                .map_err(PackageSourceError::File)?;
        }
        Ok(())
    }

    fn offline_without(&self, wanted: &Version) -> Problem {
        let cached: Vec<PackageVersion> = self
            .cached()
            .into_iter()
            .map(|cached| cached.version)
            .collect();
        let problem = Problem::new(format!(
            "{} is not in the cache, and deltabench is offline",
            wanted.named()
        ));
        if cached.is_empty() {
            return problem
                .detail(format!(
                    "the cache in {} contains no {}",
                    self.cache.root().display(),
                    match self.product {
                        Product::Postgres => "servers",
                        Product::Rocksdb => self.product.things(),
                    }
                ))
                .hint(format!(
                    "run once without --offline, or {}",
                    self.product.without_package()
                ));
        }
        let names: Vec<String> = versions::one_per_release(&cached)
            .iter()
            .rev()
            .map(|version| version.release.to_string())
            .collect();
        let near = versions::nearest(wanted, &cached)
            .map(|near| format!("; the nearest cached one is {}", near.target()));
        problem
            .detail(format!(
                "the cache in {} contains {}",
                self.cache.root().display(),
                names.join(" ")
            ))
            .hint(format!(
                "run once without --offline{}",
                near.unwrap_or_default()
            ))
    }
}

fn named(product: Product, versions: &[PackageVersion]) -> String {
    let names: Vec<String> = versions
        .iter()
        .map(|version| version.release.to_string())
        .collect();
    format!("{} {}", product.name(), names.join(" and "))
}

fn falling_back(cached: &Cached) -> String {
    format!("using the newest in the cache, {}", cached.version.release)
}

fn first_line(error: &PackageSourceError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

#[cfg(test)]
mod tests;
