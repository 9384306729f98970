//! How names, shares, times and amounts are written. What they come to is worked out where they are used;
//! here they are only refused early.

use deltabench_document::amounts;
use deltabench_model::problem::Problem;

/// Least and most share that a measurement can be asked for, percent.
const PERCENT: std::ops::RangeInclusive<f64> = 0.1..=50.0;

/// Least memory that is worth asking for, MB: the smallest shared buffers and room beside them.
const MEMORY_MIN_MB: u64 = 80;

/// A name that can be typed, stored and be a file's: letters, digits, `-` and `_`.
pub(crate) fn name(text: &str) -> Result<(), Problem> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !text.is_empty() && text.chars().all(good) {
        return Ok(());
    }
    let shown: String = text
        .chars()
        .map(|c| if good(c) { c } else { '-' })
        .collect();
    let problem =
        Problem::new(format!("bad name \"{text}\"")).detail("use letters, digits, `-` and `_`");
    Err(match shown.trim_matches('-') {
        "" => problem,
        shown => problem.hint(format!("for example \"{shown}\"")),
    })
}

/// `3%` or `3`, within what can be asked for.
pub(crate) fn percent(key: &str, text: &str) -> Result<(), Problem> {
    match amounts::percent(text) {
        Some(value) if PERCENT.contains(&value) => Ok(()),
        Some(value) => Err(Problem::new(format!(
            "`{key}` is {value} %, but must be {} % to {} %",
            PERCENT.start(),
            PERCENT.end()
        ))),
        None => Err(
            Problem::new(format!("`{key}` is \"{text}\", which is not a percentage"))
                .hint(format!("write for example {key} = \"2%\"")),
        ),
    }
}

/// `90s`, `15m`, `1.5h`: a second or more.
pub(crate) fn time(key: &str, text: &str) -> Result<(), Problem> {
    match amounts::seconds(text) {
        Some(_) => Ok(()),
        None => Err(Problem::new(format!(
            "`{key}` is \"{text}\", which is not a time of at least a second"
        ))
        .hint(format!(
            "write for example {key} = \"15m\", \"90s\" or \"2h\""
        ))),
    }
}

/// `60s`, `5m` as seconds: a whole number of them.
pub(crate) fn whole_seconds(key: &str, text: &str) -> Result<u32, Problem> {
    amounts::whole_seconds(text).ok_or_else(|| {
        Problem::new(format!(
            "`{key}` is \"{text}\", which is not a time of whole seconds"
        ))
        .hint(format!("write for example {key} = \"60s\" or \"5m\""))
    })
}

/// `50ms`, `1.5s` as milliseconds.
pub(crate) fn milliseconds(key: &str, text: &str) -> Result<f64, Problem> {
    amounts::milliseconds(text).ok_or_else(|| {
        Problem::new(format!("`{key}` is \"{text}\", which is not a time"))
            .hint(format!("write for example {key} = \"50ms\" or \"1s\""))
    })
}

/// `512MB`, `1.5GiB`, in units of 1024.
pub(crate) fn memory(text: &str) -> Result<(), Problem> {
    let bad = || {
        Problem::new(format!("\"{text}\" is not an amount of memory"))
            .hint("write for example \"512MB\" or \"2GB\", or \"none\" for no limit")
    };
    let bytes = amounts::bytes(text).ok_or_else(bad)?;
    if bytes < MEMORY_MIN_MB << 20 {
        return Err(
            Problem::new(format!("{text} is too little memory for a server"))
                .hint(format!("write \"{MEMORY_MIN_MB}MB\" or more")),
        );
    }
    Ok(())
}

/// The name of a setting, in lower case; an extension's has a dot.
pub(crate) fn setting_name(text: &str) -> Result<String, Problem> {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
    };
    if text.split('.').all(word) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(
        Problem::new(format!("\"{text}\" is not the name of a setting"))
            .hint("write for example work_mem = \"64MB\""),
    )
}

/// The name of a variable of the environment.
pub(crate) fn variable_name(text: &str) -> Result<(), Problem> {
    let good = |(index, c): (usize, char)| {
        c.is_ascii_alphabetic() || c == '_' || (index > 0 && c.is_ascii_digit())
    };
    if !text.is_empty() && text.chars().enumerate().all(good) {
        return Ok(());
    }
    Err(Problem::new(format!(
        "\"{text}\" is not the name of an environment variable"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_times_and_amounts_are_those_of_the_command_line() {
        for good in ["3%", "0.1", " 50 %"] {
            percent("delta", good).unwrap();
        }
        for bad in ["", "%", "two", "0.05%", "51", "nan", "inf%"] {
            assert!(percent("delta", bad).is_err(), "{bad}");
        }
        for good in ["90s", "15m", "1.5h", "2 h"] {
            time("budget", good).unwrap();
        }
        for bad in ["15", "m", "-3s", "0.5s", "infs", ""] {
            assert!(time("budget", bad).is_err(), "{bad}");
        }
        for good in ["512MB", "1.5 GiB", "524288kB", "80mb"] {
            memory(good).unwrap();
        }
        for bad in ["512", "MB", "-1GB", "infGB", "1PBB", "", "79MB"] {
            assert!(memory(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_settings_are_postgres_own() {
        assert_eq!(setting_name("Work_Mem").unwrap(), "work_mem");
        assert_eq!(
            setting_name("pg_stat_statements.track").unwrap(),
            "pg_stat_statements.track"
        );
        for bad in ["", "work mem", "a..b", "1a", "a=b", "work-mem"] {
            assert!(setting_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_name_is_refused_with_a_good_one() {
        let problem = name("small server").unwrap_err();
        assert_eq!(problem.hint.unwrap(), "for example \"small-server\"");
        assert!(name("").is_err() && name("/").unwrap_err().hint.is_none());
        name("cx10a_c8r32").unwrap();
    }
}
