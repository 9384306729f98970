//! What servers may use of the machine, from options and storage profiles.

use crate::arguments::conditions::{AS_IS, CacheWord, LimitArguments};
use deltabench_document::amounts;
use deltabench_model::plan::{CacheState, Limits, StorageProfile};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::to_u64;
use std::path::Path;

/// The profiles that come with deltabench: name and file.
const PROFILES: [(&str, &str); 3] = [
    (
        "gp3-3000",
        include_str!("../../../configs/storage/gp3-3000.toml"),
    ),
    (
        "gp3-10000",
        include_str!("../../../configs/storage/gp3-10000.toml"),
    ),
    (
        "io2-16000",
        include_str!("../../../configs/storage/io2-16000.toml"),
    ),
];

/// Keys of a profile.
const KEYS: [&str; 5] = [
    "read_iops",
    "write_iops",
    "read_mb_per_s",
    "write_mb_per_s",
    "cost_per_month",
];

/// Least memory that is worth asking for: the smallest shared buffers and some room.
const MEMORY_MIN: u64 = 80 << 20;

/// MB of a profile, as the kernel's and PostgreSQL's.
const MEGABYTE: f64 = 1_048_576.0;

/// The limits and the state of the caches that were asked for.
///
/// Errors: a size that cannot be read or is too small, a profile that is not known or not right.
pub fn limits(arguments: &LimitArguments) -> Result<(Limits, CacheState), Problem> {
    let limits = Limits {
        memory_bytes: arguments.memory.as_deref().map(memory).transpose()?,
        storage: storage(&arguments.storage)?,
        or_without: arguments.limits_optional,
    };
    let cache = match arguments.cache_state {
        CacheWord::AsIs => CacheState::AsIs,
        CacheWord::Cold => CacheState::Cold,
        CacheWord::Prewarmed => CacheState::Prewarmed,
    };
    Ok((limits, cache))
}

/// `512MB`, `2GB`, `1.5GiB`.
pub fn memory(text: &str) -> Result<u64, Problem> {
    let bad = || {
        Problem::new(format!("`{text}` is not an amount of memory"))
            .hint("write for example --memory 512MB or 2GB")
    };
    let bytes = amounts::bytes(text).ok_or_else(bad)?;
    if bytes < MEMORY_MIN {
        return Err(
            Problem::new(format!("{text} is too little memory for a server")).hint(format!(
                "use --memory {}MB or more",
                MEMORY_MIN.div_ceil(1 << 20)
            )),
        );
    }
    Ok(bytes)
}

/// A profile by name or file; `None` for the device as it is.
fn storage(asked: &str) -> Result<Option<StorageProfile>, Problem> {
    if asked == AS_IS {
        return Ok(None);
    }
    if let Some((name, text)) = PROFILES.iter().find(|(name, _)| *name == asked) {
        return parse(name, name, text).map(Some);
    }
    let path = Path::new(asked);
    let is_file = asked.contains('/') || path.extension().is_some_and(|end| end == "toml");
    if !is_file {
        let known = PROFILES.iter().map(|(name, _)| *name).chain([AS_IS]);
        let names: Vec<&str> = known.clone().collect();
        let problem = Problem::new(format!("there is no storage profile `{asked}`"))
            .detail(format!("known are {}", names.join(", ")));
        return Err(match nearest(asked, known) {
            Some(near) => problem.hint(format!("did you mean --storage {near}?")),
            None => problem.hint("name one of these, or a file: --storage ./mine.toml"),
        });
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(format!("cannot read {asked}"))
            .detail(error.to_string().to_lowercase())
            .hint("name a storage profile that is there: --storage ./mine.toml")
    })?;
    let name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    parse(asked, &name, &text).map(Some)
}

fn parse(file: &str, name: &str, text: &str) -> Result<StorageProfile, Problem> {
    let bad = |why: String| Problem::new(format!("bad storage profile {file}")).detail(why);
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| bad(error.to_string()))?;
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let problem = bad(format!("unknown key `{key}`"));
        return Err(match nearest(key, KEYS) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!("its keys are {}", KEYS.join(", "))),
        });
    }
    let number = |key: &str| -> Result<Option<f64>, Problem> {
        let Some(value) = table.get(key) else {
            return Ok(None);
        };
        let number = value
            .as_float()
            .or_else(|| value.as_integer()?.to_string().parse().ok());
        match number {
            Some(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            _ => Err(bad(format!("`{key}` must be a number above 0"))
                .hint("leave a key out for no limit")),
        }
    };
    // More than the kernel's 32 bits of operations are no limit to any disk.
    let operations = |key: &str| -> Result<Option<u64>, Problem> {
        match number(key)? {
            Some(value) if (1.0..=4e9).contains(&value) => Ok(Some(to_u64(value))),
            Some(_) => Err(bad(format!("`{key}` must be between 1 and 4 billion"))),
            None => Ok(None),
        }
    };
    let bytes = |key: &str| -> Result<Option<u64>, Problem> {
        Ok(number(key)?.map(|megabytes| to_u64(megabytes * MEGABYTE).max(1)))
    };
    let profile = StorageProfile {
        name: name.to_owned(),
        read_iops: operations("read_iops")?,
        write_iops: operations("write_iops")?,
        read_bytes: bytes("read_mb_per_s")?,
        write_bytes: bytes("write_mb_per_s")?,
        cost_per_month: number("cost_per_month")?,
    };
    let limits = [
        profile.read_iops,
        profile.write_iops,
        profile.read_bytes,
        profile.write_bytes,
    ];
    if limits == [None; 4] {
        return Err(bad("it limits nothing".to_owned()).hint(format!(
            "give it one of {}, or use --storage {AS_IS}",
            KEYS.join(", ")
        )));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_of_1024() {
        assert_eq!(memory("512MB").unwrap(), 512 << 20);
        assert_eq!(memory("1.5 GiB").unwrap(), 1536 << 20);
        assert_eq!(memory("524288kB").unwrap(), 512 << 20);
        for bad in ["512", "MB", "-1GB", "infGB", "1PBB", "", "0x10MB"] {
            assert!(memory(bad).is_err(), "{bad}");
        }
        let small = memory("16MB").unwrap_err();
        assert!(small.hint.unwrap().contains("--memory 80MB"));
    }

    #[test]
    fn every_profile_that_comes_along_limits_all_four() {
        for (name, _) in PROFILES {
            let profile = storage(name).unwrap().unwrap();
            assert_eq!(profile.name, name);
            assert!(profile.read_iops.is_some() && profile.write_iops.is_some());
            assert!(profile.read_bytes.is_some() && profile.write_bytes.is_some());
        }
        let first = storage("gp3-3000").unwrap().unwrap();
        assert_eq!(
            (first.read_iops, first.read_bytes, first.cost_per_month),
            (Some(3000), Some(125 << 20), None)
        );
        assert_eq!(storage("as-is").unwrap(), None);
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is_near() {
        let problem = storage("gp3-300").unwrap_err();
        assert!(problem.detail.unwrap().contains("io2-16000"));
        assert!(problem.hint.unwrap().contains("gp3-3000"));
        let hint = |text: &str| parse("f", "f", text).unwrap_err();
        assert!(hint("read_iop = 1").hint.unwrap().contains("read_iops"));
        assert!(
            hint("read_iops = \"many\"")
                .detail
                .unwrap()
                .contains("number")
        );
        assert!(hint("read_iops = 0").detail.unwrap().contains("above 0"));
        assert!(
            hint("read_iops = 0.5")
                .detail
                .unwrap()
                .contains("4 billion")
        );
        assert!(
            hint("cost_per_month = 8")
                .detail
                .unwrap()
                .contains("nothing")
        );
        assert!(hint("read_iops =").error.contains("bad storage profile f"));
        let unread = storage("./no/such.toml").unwrap_err();
        assert!(unread.error.contains("no/such.toml"));
        assert!(unread.hint.unwrap().contains("--storage"));
    }

    #[test]
    fn a_file_of_ones_own_is_named_by_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nas-slow.toml");
        std::fs::write(&path, "read_mb_per_s = 12.5\ncost_per_month = 9\n").unwrap();
        let profile = storage(&path.display().to_string()).unwrap().unwrap();
        assert_eq!(profile.name, "nas-slow");
        assert_eq!(profile.read_bytes, Some(13_107_200));
        assert_eq!((profile.read_iops, profile.write_bytes), (None, None));
        assert_eq!(profile.cost_per_month, Some(9.0));
    }
}
