//! From the text of a definition file to a [`Definition`].

use super::parameter::parameters;
use super::script::scripts;
use super::{Definition, Rate};
use crate::chore::chores;
use crate::section::Section;
use crate::table::tables;
use crate::varied::{Varied, says};
use deltabench_document::Document;
use deltabench_model::plan::Group;
use deltabench_model::problem::Problem;

/// Name and version of the file format.
const FORMAT: (&str, u32) = ("deltabench.workload", 1);
/// Operations of a slice that a file may ask for.
const MAX_OPERATIONS: u32 = 1_000_000_000;
const KEYS: [&str; 23] = [
    "format",
    "version",
    "name",
    "group",
    "label",
    "published",
    "published_rate",
    "differs",
    "writes",
    "quick",
    "pre",
    "slice_operations",
    "reconnect",
    "description",
    "source",
    "notes",
    "vary",
    "table",
    "parameter",
    "step",
    "script",
    "before",
    "after",
];

/// Reads and checks a whole file.
pub(super) fn definition(document: Document<'_>) -> Result<Definition, Problem> {
    let root = document.parse()?;
    let section = Section::root(document, root.get_ref(), None);
    check_format(&section)?;
    section.allow(&KEYS)?;
    let varied = Varied::read(&section)?;
    let section = Section::root(document, root.get_ref(), Some(&varied));
    let parameters = parameters(&section)?;
    let tables = tables(&section)?;
    let scripts = scripts(&section, &parameters, tables.is_some())?;
    varied.check_used(document)?;
    let text = |key: &str| section.optional_prose(key);
    let writes = section
        .flag("writes")?
        .ok_or_else(|| section.problem("key `writes` is missing"))?;
    let slice_operations =
        section.number::<u32>("slice_operations", 1..=i64::from(MAX_OPERATIONS) - 1)?;
    let definition = Definition {
        name: name(&section, &varied)?,
        group: group(&section)?,
        label: text("label")?.unwrap_or_default(),
        published: text("published")?,
        differs: text("differs")?,
        writes,
        quick: section.flag("quick")?.unwrap_or(false),
        description: section.prose("description")?,
        source: section.prose("source")?,
        notes: section.texts("notes")?,
        file: document.file.to_owned(),
        text: document.text.to_owned(),
        pre: pre(&section, writes)?,
        state: None,
        rate: section
            .word("published_rate", &RATES)?
            .unwrap_or(Rate::Statements),
        slice_operations: slice_operations.map(u64::from),
        reconnects: section.flag("reconnect")?.unwrap_or(false),
        varied: varied.values(),
        parameters,
        scripts,
        tables,
        before: chores(&section, "before")?,
        after: chores(&section, "after")?,
        program: None,
    };
    definition.check_use()?;
    Ok(definition)
}

/// What published studies count, by its word.
const RATES: [(&str, Rate); 2] = [
    ("statements", Rate::Statements),
    ("rows-of-one-client", Rate::RowsOfOneClient),
];

fn pre(section: &Section<'_>, writes: bool) -> Result<bool, Problem> {
    let pre = section.flag("pre")?.unwrap_or(false);
    match section.value("pre") {
        Some((_, at)) if pre && writes => {
            let what =
                "`pre` is for tests that only read: each test that writes has its own tables";
            Err(section.problem_at(at, what))
        }
        _ => Ok(pre),
    }
}

fn check_format(section: &Section<'_>) -> Result<(), Problem> {
    let (format, at) = section.required_text("format")?;
    if format != FORMAT.0 {
        return Err(section.problem_at(
            at,
            format!("`format` is \"{format}\", not \"{}\"", FORMAT.0),
        ));
    }
    let (_, at) = section.required("version")?;
    match section.number::<u32>("version", 1..=i64::from(u32::MAX) - 1)? {
        Some(version) if version > FORMAT.1 => Err(section.wrap(
            at,
            Problem::new(format!(
                "version {version} is newer than this deltabench, which reads {}",
                FORMAT.1
            ))
            .hint("upgrade deltabench"),
        )),
        _ => Ok(()),
    }
}

fn name(section: &Section<'_>, varied: &Varied) -> Result<String, Problem> {
    let (name, at) = section.required_text("name")?;
    let plain = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let wrong = name
        .split('-')
        .find(|word| !plain(word) && !says(word, varied));
    let problem = match wrong {
        None => return Ok(name.to_owned()),
        Some(word) if word.contains('=') => {
            let what = format!("name \"{name}\" says {word}, but [vary] does not");
            Problem::new(what).hint("such a part of a name must repeat a value of [vary]")
        }
        Some(_) => Problem::new(format!(
            "name \"{name}\" is not lower-case words joined by `-`"
        )),
    };
    Err(section.wrap(at, problem))
}

fn group(section: &Section<'_>) -> Result<Group, Problem> {
    let groups = [Group::Point, Group::Range, Group::RangeAgg, Group::Write];
    let group = section.word("group", &groups.map(|group| (group.word(), group)))?;
    group.ok_or_else(|| section.problem("key `group` is missing"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A definition without fault.
    pub(in super::super) const GOOD: &str = r#"format = "deltabench.workload"
version = 1
name = "example"
group = "point"
label = "1"
writes = false
description = "d"
source = "s"

[parameter.id]
kind = "uniform"
low = 1
high = "rows"

[[step]]
sql = "SELECT c FROM {table} WHERE id=:id"
"#;

    /// The problem with GOOD after a replacement.
    pub(in super::super) fn refused(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Definition::parse("x.toml", &GOOD.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    }

    /// What to replace in [`GOOD`], by what, and what the problem must then say.
    const MISTAKES: &[(&str, &str, &str)] = &[
        (
            "label",
            "lable",
            "x.toml:5: unknown key `lable` in the workload",
        ),
        ("label", "lable", "did you mean `label`?"),
        (
            "high =",
            "hgih =",
            "x.toml:13: unknown key `hgih` in parameter `id`",
        ),
        ("high =", "hgih =", "did you mean `high`?"),
        (
            "sql =",
            "repaet = 2\nsql =",
            "x.toml:16: unknown key `repaet` in step 1",
        ),
        (
            "\"point\"",
            "\"pionts\"",
            "x.toml:4: the workload: unknown group \"pionts\"",
        ),
        ("\"point\"", "\"pionts\"", "did you mean \"point\"?"),
        (
            "uniform",
            "unifrom",
            "x.toml:11: parameter `id`: unknown kind \"unifrom\"",
        ),
        (
            "low = 1",
            "low = true",
            "x.toml:12: parameter `id`: `low` must be a whole number or an expression",
        ),
        (
            "\"rows\"",
            "\"rows +\"",
            "x.toml:13: parameter `id`: `high`: bad expression `rows +`: it ends",
        ),
        ("\"rows\"", "\"row\"", "did you mean `rows`?"),
        (
            "high = \"rows\"",
            "",
            "x.toml:10: parameter `id`: key `high` is missing",
        ),
        (
            "kind = \"uniform\"",
            "kind = \"range\"",
            "x.toml:10: parameter `id`: key `add` is missing",
        ),
        (
            "low = 1",
            "low = 1\ncount = 0",
            "x.toml:13: parameter `id`: `count` is 0, but must be 1 to 65535",
        ),
        (
            "low = 1",
            "low = 1\ncount = 2",
            "x.toml:17: step 1: `:id` is a list",
        ),
        (
            "=:id",
            "=:ids",
            "x.toml:16: step 1: parameter `:ids` is not defined",
        ),
        ("=:id", "=:ids", "did you mean `:id`?"),
        (
            "=:id",
            "=1",
            "x.toml:10: parameter `id` is not used by any step",
        ),
        (
            "writes = false",
            "writes = 0",
            "x.toml:6: the workload: `writes` must be true or false, not a whole number",
        ),
        (
            "name = \"example\"",
            "name = \"An example\"",
            "x.toml:3: the workload: name \"An example\" is not",
        ),
        (
            "version = 1",
            "version = 2",
            "x.toml:2: the workload: version 2 is newer",
        ),
        (
            ".workload",
            ".plan",
            "x.toml:1: the workload: `format` is \"deltabench.plan\"",
        ),
        (
            "source = \"s\"",
            "source = \" \"",
            "x.toml:8: the workload: `source` is empty",
        ),
        (
            "source = \"s\"",
            "",
            "the workload: key `source` is missing",
        ),
        (
            "[[step]]",
            "[step]",
            "x.toml:15: the workload: `step` must be tables, each headed [[step]]",
        ),
        ("[[step]]", "[[stpe]]", "did you mean `step`?"),
        ("label = \"1\"", "label = \"1", "x.toml:5: not TOML"),
    ];

    #[test]
    fn problems_name_file_line_and_key() {
        for (from, to, what) in MISTAKES {
            let problem = refused(from, to);
            assert!(
                problem.contains(what),
                "{from} -> {to}\nwanted {what}\n{problem}"
            );
        }
    }

    #[test]
    fn transactions_are_closed_and_writes_declared() {
        let with = |sql: &str| refused("[[step]]", &format!("[[step]]\nsql = \"{sql}\"\n[[step]]"));
        assert!(with("BEGIN").contains("x.toml:15: the transaction of step 1 is not closed"));
        assert!(with("COMMIT").contains("x.toml:15: step 1 is COMMIT, but no transaction is open"));
        assert!(
            with("UPDATE {table} SET k=1")
                .contains("x.toml:15: step 1 is UPDATE, but `writes` is false")
        );
    }
}
