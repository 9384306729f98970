//! The user's configuration: a small TOML file and the options of every command.

use crate::arguments::global::Global;
use deltabench_acquire::{Cache, NamedSources, Sources};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::target::SourceName;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Keys of the configuration file.
const KEYS: [&str; 6] = [
    "mirror",
    "cache",
    "source_mirror",
    "jobs",
    "postgres_git",
    "postgres_archives",
];

/// What every command needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    pub lab: PathBuf,
    /// Downloads and initialised directories.
    pub cache: PathBuf,
    /// Where servers are fetched from.
    pub sources: Sources,
}

impl Config {
    /// Reads the configuration file, if there is one; options win over it.
    ///
    /// Errors: a file that cannot be read, an unknown key, a value that is not a string.
    pub fn load(global: &Global) -> Result<Self, Problem> {
        let file = file();
        let file = match &file {
            Some(path) if path.exists() => read(path)?,
            _ => File::default(),
        };
        let cache = global
            .cache
            .clone()
            .or(file.cache)
            .unwrap_or_else(Cache::default_root);
        Ok(Self {
            lab: absolute(&global.lab)?,
            cache: absolute(&cache)?,
            sources: Sources {
                mirror: file.mirror,
                offline: global.offline,
                source_mirror: file.source_mirror,
                jobs: file.jobs,
                named: file.named,
                ..Sources::default()
            },
        })
    }
}

/// Makes a path absolute: servers have another working directory.
fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    std::path::absolute(path).map_err(|error| {
        Problem::new(format!("bad path {}", path.display())).detail(error.to_string())
    })
}

fn file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("DELTABENCH_CONFIG") {
        return Some(path.into());
    }
    let home = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(home.join("deltabench").join("config.toml"))
}

/// What the configuration file says.
#[derive(Debug, Default)]
struct File {
    mirror: Option<String>,
    cache: Option<PathBuf>,
    source_mirror: Option<String>,
    jobs: Option<NonZeroUsize>,
    named: NamedSources,
}

/// What is wrong with the file, and what to write instead.
type Wrong = (String, Option<String>);

fn read(path: &Path) -> Result<File, Problem> {
    let bad = |why: String| {
        Problem::new(format!("bad configuration file {}", path.display())).detail(why)
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    parse(&text).map_err(|(why, hint)| match hint {
        Some(hint) => bad(why).hint(hint),
        None => bad(why),
    })
}

fn parse(text: &str) -> Result<File, Wrong> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| (error.to_string(), None))?;
    let mut file = File::default();
    for (key, value) in &table {
        let word = || {
            let word = value.as_str().map(str::to_owned);
            word.ok_or_else(|| (format!("`{key}` must be a string"), None))
        };
        match key.as_str() {
            "mirror" => file.mirror = Some(word()?),
            "cache" => file.cache = Some(PathBuf::from(word()?)),
            "source_mirror" => file.source_mirror = Some(word()?),
            "jobs" => {
                let jobs = value
                    .as_integer()
                    .and_then(|jobs| usize::try_from(jobs).ok());
                let jobs = jobs.and_then(NonZeroUsize::new);
                file.jobs = Some(
                    jobs.ok_or_else(|| (format!("`{key}` must be a number from 1 on"), None))?,
                );
            }
            "postgres_git" => file.named.clone = Some(absolute_only(key, value)?),
            "postgres_archives" => file.named.archives = archives(value)?,
            _ => {
                let hint = match nearest(key, KEYS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its keys are {}", KEYS.join(", ")),
                };
                return Err((format!("unknown key `{key}`"), Some(hint)));
            }
        }
    }
    Ok(file)
}

/// A path that means the same wherever deltabench is started.
fn absolute_only(key: &str, value: &toml::Value) -> Result<PathBuf, Wrong> {
    match value.as_str().map(PathBuf::from) {
        Some(path) if path.is_absolute() => Ok(path),
        _ => Err((
            format!("`{key}` must be a path"),
            Some(format!("write it from / on: \"{key}\" = \"/src/...\"")),
        )),
    }
}

fn archives(value: &toml::Value) -> Result<BTreeMap<SourceName, PathBuf>, Wrong> {
    let Some(table) = value.as_table() else {
        return Err((
            "`postgres_archives` must be a table".to_owned(),
            Some("write [postgres_archives] and below it \"18beta1\" = \"/src/FILE\"".to_owned()),
        ));
    };
    let named = table.iter().map(|(key, value)| {
        let name = SourceName::of(key).ok_or_else(|| {
            (
                format!("`{key}` of postgres_archives names no source"),
                Some("names are 18beta1, 18rc1, REL_18_STABLE and master".to_owned()),
            )
        })?;
        Ok((name, absolute_only(key, value)?))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_and_unknown_ones_refused_with_the_nearest() {
        let text =
            "mirror = \"file:///m\"\ncache = \"/c\"\nsource_mirror = \"file:///s\"\njobs = 4";
        let file = parse(text).unwrap();
        assert_eq!(file.mirror.as_deref(), Some("file:///m"));
        assert_eq!(file.cache, Some(PathBuf::from("/c")));
        assert_eq!(file.source_mirror.as_deref(), Some("file:///s"));
        assert_eq!(file.jobs, NonZeroUsize::new(4));
        assert!(parse("jobs = 0").unwrap_err().0.contains("from 1 on"));
        assert!(
            parse("mirror = 3")
                .unwrap_err()
                .0
                .contains("must be a string")
        );
        let (why, hint) = parse("miror = \"x\"").unwrap_err();
        assert!(why.contains("miror") && hint.unwrap().contains("mirror"));
        let (_, hint) = parse("nonsense = 1").unwrap_err();
        assert!(hint.unwrap().starts_with("its keys are mirror, cache"));
    }
    #[test]
    fn sources_have_names_that_targets_use_and_paths_from_the_root_on() {
        let text =
            "postgres_git = \"/src/postgres\"\n[postgres_archives]\n18beta1 = \"/src/b.tar\"";
        let named = parse(text).unwrap().named;
        assert_eq!(named.clone, Some(PathBuf::from("/src/postgres")));
        let beta = SourceName::of("18beta1").unwrap();
        assert_eq!(
            named.archives.get(&beta),
            Some(&PathBuf::from("/src/b.tar"))
        );
        for (text, said) in [
            ("postgres_git = \"src\"", "must be a path"),
            ("postgres_git = 3", "must be a path"),
            ("postgres_archives = \"/a\"", "must be a table"),
            ("[postgres_archives]\n17 = \"/a\"", "`17`"),
            (
                "[postgres_archives]\nmaster = \"a\"",
                "`master` must be a path",
            ),
        ] {
            let (why, hint) = parse(text).unwrap_err();
            assert!(why.contains(said) && hint.is_some(), "{why}");
        }
    }
}
