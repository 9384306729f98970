//! The user's configuration: a small TOML file and the options of every command.

use crate::arguments::Global;
use deltabench_acquire::{Cache, Sources};
use deltabench_model::problem::{Problem, nearest};
use std::path::{Path, PathBuf};

/// Keys of the configuration file.
const KEYS: [&str; 2] = ["mirror", "cache"];

/// What every command needs to know.
#[derive(Debug)]
pub struct Config {
    /// Results.
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
        let (mirror, cache) = match &file {
            Some(path) if path.exists() => read(path)?,
            _ => (None, None),
        };
        let cache = global
            .cache
            .clone()
            .or(cache)
            .unwrap_or_else(Cache::default_root);
        Ok(Self {
            lab: absolute(&global.lab)?,
            cache: absolute(&cache)?,
            sources: Sources {
                mirror,
                offline: global.offline,
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

fn read(path: &Path) -> Result<(Option<String>, Option<PathBuf>), Problem> {
    let bad = |why: String| {
        Problem::new(format!("bad configuration file {}", path.display())).detail(why)
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    parse(&text).map_err(|(why, hint)| match hint {
        Some(hint) => bad(why).hint(hint),
        None => bad(why),
    })
}

type Parsed = (Option<String>, Option<PathBuf>);

fn parse(text: &str) -> Result<Parsed, (String, Option<String>)> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| (error.to_string(), None))?;
    let mut parsed: Parsed = (None, None);
    for (key, value) in &table {
        let Some(value) = value.as_str() else {
            return Err((format!("`{key}` must be a string"), None));
        };
        match key.as_str() {
            "mirror" => parsed.0 = Some(value.to_owned()),
            "cache" => parsed.1 = Some(PathBuf::from(value)),
            _ => {
                let hint = nearest(key, KEYS).map(|near| format!("did you mean `{near}`?"));
                return Err((format!("unknown key `{key}`"), hint));
            }
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_and_unknown_ones_refused_with_the_nearest() {
        let (mirror, cache) = parse("mirror = \"file:///m\"\ncache = \"/c\"").unwrap();
        assert_eq!(
            (mirror.as_deref(), cache),
            (Some("file:///m"), Some(PathBuf::from("/c")))
        );
        let (why, hint) = parse("miror = \"x\"").unwrap_err();
        assert!(why.contains("miror") && hint.unwrap().contains("mirror"));
    }
}
