//! Which libraries are measured, with which block caches.

use super::arguments::BlockCacheWord;
use crate::console::say;
use deltabench_kinds::targets::check_targets;
use deltabench_model::installation::{Engine, Installation};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::work::rocksdb::{BLOCK_CACHE, BlockCache};
use deltabench_run::planning::ServerWish;

/// What is measured, the base first.
pub struct Sides<'a> {
    /// As the user named it.
    pub specs: &'a [TargetSpec],
    /// The caches that each of them has; the base is the first target with the first of them.
    pub caches: &'a [BlockCacheWord],
    /// Options of the candidates only.
    pub own: Vec<(String, String)>,
}

/// The targets as the user named them: a version alone is one of RocksDB.
///
/// Errors: texts that are no targets, targets that are no RocksDB, a `db_bench` beside a library.
pub fn specs(base: &str, candidates: &[String]) -> Result<Vec<TargetSpec>, Problem> {
    let all = std::iter::once(base).chain(candidates.iter().map(String::as_str));
    let specs: Vec<TargetSpec> = all.map(spec).collect::<Result<_, _>>()?;
    check_targets(&specs, true)?;
    Ok(specs)
}

fn spec(text: &str) -> Result<TargetSpec, Problem> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return text.parse().map(TargetSpec::Rocksdb);
    }
    let spec: TargetSpec = text.parse()?;
    match spec {
        TargetSpec::Path(path) => Err(Problem::new(format!("`{text}` is a tree of PostgreSQL"))
            .hint(format!(
                "a library is rocksdb:path:{0}, a program db_bench:{0}",
                path.display()
            ))),
        spec => Ok(spec),
    }
}

impl Sides<'_> {
    /// Refuses what cannot be, before anything is fetched.
    ///
    /// Errors: a cache that a version does not have where no other is asked for; candidates' options without
    /// candidates.
    pub fn check(&self) -> Result<(), Problem> {
        if !self.own.is_empty() && self.specs.len() < 2 {
            return Err(Problem::new("--candidate-option needs a candidate").hint(
                "name the target again: deltabench rocksdb 10.2.1 10.2.1 --candidate-option …",
            ));
        }
        for spec in self.specs {
            self.caches_of(&spec.to_string(), spec.engine(), spec.rocksdb_version())?;
        }
        Ok(())
    }

    /// The caches that a target is measured with, each once, and whether some were left out.
    fn caches_of(
        &self,
        name: &str,
        engine: Engine,
        version: u32,
    ) -> Result<(Vec<BlockCache>, bool), Problem> {
        let mut caches: Vec<BlockCache> = Vec::new();
        let mut left_out = false;
        for word in self.caches {
            let cache = match word {
                BlockCacheWord::Lru => BlockCache::Lru,
                BlockCacheWord::HyperClock => BlockCache::HyperClock,
                BlockCacheWord::Best if BlockCache::HyperClock.is_in(engine, version) => {
                    BlockCache::HyperClock
                }
                BlockCacheWord::Best => BlockCache::Lru,
            };
            if !cache.is_in(engine, version) {
                left_out = true;
            } else if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
        if caches.is_empty() {
            return Err(
                Problem::new(format!("{name} has no HyperClock block cache"))
                    .detail("the C interface has one from 8.1 on, db_bench from 7.7 on")
                    .hint(
                        "use --block-cache best (hyper-clock if the version has it, else lru) or \
                       --block-cache lru",
                    ),
            );
        }
        Ok((caches, left_out))
    }

    /// The base and the candidates: every target with every cache that it has.
    ///
    /// Errors: a target that has none of the caches.
    pub fn wishes(&self, found: &[Installation]) -> Result<(ServerWish, Vec<ServerWish>), Problem> {
        let mut all: Vec<(usize, &Installation, BlockCache)> = Vec::new();
        for (place, installation) in found.iter().enumerate() {
            let name = &installation.resolved;
            let (engine, version) = (installation.engine, installation.version_num);
            let (caches, left_out) = self.caches_of(name, engine, version)?;
            if left_out {
                say(&format!(
                    "left out {name} with hyper-clock: this version does not have it"
                ));
            }
            all.extend(caches.into_iter().map(|cache| (place, installation, cache)));
        }
        let first = all.first().map(|(_, _, cache)| *cache);
        let told = all.iter().any(|(_, _, cache)| Some(*cache) != first);
        let mut wishes = all.into_iter().map(|(place, installation, cache)| {
            let own: &[(String, String)] = if place == 0 { &[] } else { &self.own };
            wish(installation, cache, told, own)
        });
        match wishes.next() {
            Some(base) => Ok((base, wishes.collect())),
            None => Err(Problem::new("no base given")),
        }
    }
}

/// A target with a cache and options of its own; `told`: whether its name has the cache in it.
fn wish(
    installation: &Installation,
    cache: BlockCache,
    told: bool,
    own: &[(String, String)],
) -> ServerWish {
    let marks: Vec<String> = told
        .then(|| cache.word().to_owned())
        .into_iter()
        .chain(own.iter().map(|(name, value)| format!("{name} = {value}")))
        .collect();
    let label = match marks.as_slice() {
        [] => installation.resolved.clone(),
        _ => format!("{} ({})", installation.resolved, marks.join(", ")),
    };
    let mut settings = vec![(BLOCK_CACHE.to_owned(), cache.word().to_owned())];
    settings.extend(own.iter().cloned());
    ServerWish {
        label: Some(label),
        settings,
        ..ServerWish::plain(installation.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::installation::Origin;

    fn installation(version: &str, version_num: u32) -> Installation {
        let name = format!("rocksdb:{version}");
        Installation {
            asked: name.clone(),
            resolved: name,
            origin: Origin::Prebuilt,
            bin_dir: format!("/x/{version}/librocksdb.so").into(),
            version_num,
            version: version.to_owned(),
            binary_sha256: version.to_owned(),
            build: None,
            recipe: None,
            remote: None,
            engine: Engine::Rocksdb,
        }
    }

    fn labels(caches: &[BlockCacheWord], own: &[(&str, &str)]) -> Result<Vec<String>, Problem> {
        let found = [
            installation("6.29.5", 62_905),
            installation("10.2.1", 100_201),
        ];
        let own = own
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let specs = specs("6.29.5", &["10.2.1".to_owned()])?;
        let sides = Sides {
            specs: &specs,
            caches,
            own: own.collect(),
        };
        sides.check()?;
        let (base, candidates) = sides.wishes(&found)?;
        let all = std::iter::once(&base).chain(&candidates);
        for wish in all.clone() {
            let cache = wish.settings.first().unwrap();
            assert_eq!(cache.0, BLOCK_CACHE, "always said");
        }
        Ok(all.map(|wish| wish.label.clone().unwrap()).collect())
    }

    #[test]
    fn a_list_of_caches_makes_a_target_for_each_that_a_version_has() {
        use BlockCacheWord::{Best, HyperClock, Lru};
        assert_eq!(
            labels(&[Lru], &[]).unwrap(),
            ["rocksdb:6.29.5", "rocksdb:10.2.1"]
        );
        let both = [
            "rocksdb:6.29.5 (lru)",
            "rocksdb:10.2.1 (lru)",
            "rocksdb:10.2.1 (hyper-clock)",
        ];
        assert_eq!(labels(&[Lru, HyperClock], &[]).unwrap(), both);
        assert_eq!(labels(&[Lru, Best], &[]).unwrap(), both);
        assert_eq!(
            labels(&[Best], &[]).unwrap(),
            ["rocksdb:6.29.5 (lru)", "rocksdb:10.2.1 (hyper-clock)"]
        );
        let problem = labels(&[HyperClock], &[]).unwrap_err();
        assert!(problem.hint.unwrap().contains("--block-cache best"));
    }

    #[test]
    fn options_of_the_candidates_are_told_in_their_names() {
        let own = [("write_buffer_size", "4194304")];
        assert_eq!(
            labels(&[BlockCacheWord::Lru], &own).unwrap(),
            [
                "rocksdb:6.29.5",
                "rocksdb:10.2.1 (write_buffer_size = 4194304)"
            ]
        );
    }

    #[test]
    fn a_version_alone_is_one_of_rocksdb_and_nothing_else_is_taken_for_it() {
        let texts = |base: &str, other: &str| {
            let found = specs(base, &[other.to_owned()])?;
            Ok::<Vec<String>, Problem>(found.iter().map(ToString::to_string).collect())
        };
        assert_eq!(
            texts("9.10", "rocksdb:path:/x.so").unwrap(),
            ["rocksdb:9.10", "rocksdb:path:/x.so"]
        );
        let refused = |base: &str, other: &str| texts(base, other).unwrap_err().to_string();
        assert!(refused("10.2.x", "10.2.1").contains("not a version of RocksDB"));
        assert!(refused("10.2.1", "postgres:18").contains("deltabench compare"));
        assert!(refused("10.2.1", "path:/x.so").contains("rocksdb:path:/x.so"));
        assert!(refused("10.2.1", "db_bench:/x").contains("cannot be compared"));
    }
}
