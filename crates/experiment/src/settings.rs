//! Settings of PostgreSQL and options of RocksDB as a file has them: strings, numbers, booleans, and lists of
//! them where a sweep is allowed.

use crate::syntax;
use deltabench_document::{Placed, Section, Value, whole};
use deltabench_model::problem::Problem;
use toml::de::DeValue;

/// A setting and its values, in the order of the file; more than one is a sweep.
pub(crate) type Swept = (String, Vec<String>);

/// How a yes or no is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Booleans {
    /// `on` and `off`, as PostgreSQL has it.
    Switches,
    /// `true` and `false`, as RocksDB has it.
    Words,
}

impl Booleans {
    fn word(self, value: bool) -> &'static str {
        match (self, value) {
            (Self::Switches, true) => "on",
            (Self::Switches, false) => "off",
            (Self::Words, true) => "true",
            (Self::Words, false) => "false",
        }
    }
}

/// All settings of a table. An extension's name has a dot, which TOML reads as a table inside: they come out
/// as one name.
///
/// Errors: a name that is none, a setting twice, a value that is no value.
pub(crate) fn sweeps(section: &Section<'_>, booleans: Booleans) -> Result<Vec<Swept>, Problem> {
    let mut found = Vec::new();
    collect(section, "", booleans, &mut found)?;
    Ok(found)
}

/// All of `settings` of an entry of servers; none where it has no such table.
///
/// Errors: as [`sweeps`].
pub(crate) fn own(section: &Section<'_>, booleans: Booleans) -> Result<Vec<Swept>, Problem> {
    match section.section("settings", format!("`settings` of {}", section.name()))? {
        Some(settings) => sweeps(&settings, booleans),
        None => Ok(Vec::new()),
    }
}

/// The settings of a table in which each has one value.
///
/// Errors: as [`sweeps`], and a list.
pub(crate) fn fixed(
    section: &Section<'_>,
    booleans: Booleans,
) -> Result<Vec<(String, String)>, Problem> {
    for ((key, _), (value, at)) in section.entries() {
        if matches!(value, DeValue::Array(_)) {
            let what = format!("`{key}` must have one value here, not a list");
            let problem = section.problem_at(at, what);
            return Err(problem.hint("write a sweep in `settings` of [[servers]]"));
        }
    }
    let one = |(name, values): Swept| Some((name, values.into_iter().next()?));
    Ok(sweeps(section, booleans)?
        .into_iter()
        .filter_map(one)
        .collect())
}

fn collect(
    section: &Section<'_>,
    prefix: &str,
    booleans: Booleans,
    found: &mut Vec<Swept>,
) -> Result<(), Problem> {
    for ((key, key_at), value) in section.entries() {
        let full = format!("{prefix}{key}");
        if let (DeValue::Table(_), _) = value {
            let inside = section.as_section(key, value, format!("settings `{full}`"))?;
            collect(&inside, &format!("{full}."), booleans, found)?;
            continue;
        }
        let name = syntax::setting_name(&full).map_err(|problem| section.wrap(key_at, problem))?;
        if found.iter().any(|(other, _)| *other == name) {
            return Err(section.problem_at(key_at, format!("`{name}` appears twice")));
        }
        let read =
            |value: Placed<Value<'_>>| Ok((written(section, key, value, booleans)?, value.1));
        let values = section.as_list(key, value)?;
        let values = values
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, Problem>>()?;
        section.all_different(key, &values)?;
        found.push((name, values.into_iter().map(|(value, _)| value).collect()));
    }
    Ok(())
}

/// A value as a configuration file has it.
fn written(
    section: &Section<'_>,
    key: &str,
    (value, at): Placed<Value<'_>>,
    booleans: Booleans,
) -> Result<String, Problem> {
    match value {
        DeValue::String(text) if text.chars().any(char::is_control) => {
            Err(section.problem_at(at, format!("`{key}` has a control character in it")))
        }
        DeValue::String(text) => Ok(text.trim().to_owned()),
        DeValue::Boolean(value) => Ok(booleans.word(*value).to_owned()),
        DeValue::Integer(integer) => match whole(integer) {
            Some(number) => Ok(number.to_string()),
            None => {
                Err(section.problem_at(at, format!("`{key}` is {integer}, which is too large")))
            }
        },
        DeValue::Float(float) if float.as_str().parse().is_ok_and(f64::is_finite) => {
            Ok(float.as_str().to_owned())
        }
        other => Err(section.wrong_type(key, at, "a string, a number, true or false", other)),
    }
}
