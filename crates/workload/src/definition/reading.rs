//! From the text of a definition file to a [`Definition`].

use super::{Bound, Definition, Kind, Parameter, StepDefinition};
use crate::document::{Document, Placed, Section};
use crate::expression::Expression;
use crate::template::{Named, Shape, Template};
use deltabench_model::plan::Group;
use deltabench_model::problem::{Problem, nearest};
use toml::de::DeValue;

/// Name and version of the file format.
const FORMAT: (&str, u32) = ("deltabench.workload", 1);
/// Placeholders that one statement can have. Source: the protocol counts them in 16 bits.
const MAX_SLOTS: u32 = 65_535;
/// Repetitions of one step.
const MAX_REPEAT: u32 = 1000;
const KEYS: [&str; 12] = [
    "format",
    "version",
    "name",
    "group",
    "label",
    "writes",
    "quick",
    "description",
    "source",
    "notes",
    "parameter",
    "step",
];
const STEP_KEYS: [&str; 3] = ["sql", "repeat", "table"];

/// Reads and checks a whole file.
pub(super) fn definition(document: Document<'_>) -> Result<Definition, Problem> {
    let root = document.parse()?;
    let section = Section::new(document, "the workload".to_owned(), 0, root.get_ref());
    check_format(&section)?;
    section.allow(&KEYS)?;
    let parameters = parameters(document, &section)?;
    let steps = steps(document, &section, &parameters)?;
    let definition = Definition {
        name: name(&section)?,
        group: group(&section)?,
        label: section.text("label")?.0.to_owned(),
        writes: section
            .flag("writes")?
            .ok_or_else(|| section.problem("key `writes` is missing"))?,
        quick: section.flag("quick")?.unwrap_or(false),
        description: section.text("description")?.0.trim().to_owned(),
        source: section.text("source")?.0.trim().to_owned(),
        notes: section.texts("notes")?,
        file: document.file.to_owned(),
        text: document.text.to_owned(),
        parameters,
        steps,
    };
    definition.check_use()?;
    Ok(definition)
}

fn check_format(section: &Section<'_>) -> Result<(), Problem> {
    let (format, at) = section.text("format")?;
    if format != FORMAT.0 {
        return Err(section.problem_at(
            at,
            format!("`format` is \"{format}\", not \"{}\"", FORMAT.0),
        ));
    }
    let (_, at) = section.required("version")?;
    match section.number("version", 1..u32::MAX)? {
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

fn name(section: &Section<'_>) -> Result<String, Problem> {
    let (name, at) = section.text("name")?;
    let good = name.split('-').all(|word| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    if good {
        return Ok(name.to_owned());
    }
    Err(section.problem_at(
        at,
        format!("name \"{name}\" is not lower-case words joined by `-`"),
    ))
}

fn group(section: &Section<'_>) -> Result<Group, Problem> {
    let (word, at) = section.text("group")?;
    let groups = [Group::Point, Group::Range, Group::RangeAgg, Group::Write];
    groups
        .into_iter()
        .find(|group| group.word() == word)
        .ok_or_else(|| unknown_word(section, at, "group", word, &groups.map(Group::word)))
}

fn unknown_word(
    section: &Section<'_>,
    at: usize,
    key: &str,
    word: &str,
    known: &[&str],
) -> Problem {
    let problem = Problem::new(format!("unknown {key} \"{word}\""))
        .detail(format!("known: {}", known.join(", ")));
    section.wrap(
        at,
        match nearest(word, known.iter().copied()) {
            Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
            None => problem,
        },
    )
}

fn parameters(document: Document<'_>, root: &Section<'_>) -> Result<Vec<Parameter>, Problem> {
    let Some((value, at)) = root.value("parameter") else {
        return Ok(Vec::new());
    };
    let DeValue::Table(table) = value else {
        return Err(root.wrong_type(
            "parameter",
            at,
            "tables, each headed [parameter.NAME]",
            value,
        ));
    };
    let mut parameters = Vec::new();
    for (key, value) in table {
        let (name, at): (&str, usize) = (key.get_ref(), key.span().start);
        let DeValue::Table(keys) = value.get_ref() else {
            return Err(root.wrong_type(
                name,
                at,
                "a table headed [parameter.NAME]",
                value.get_ref(),
            ));
        };
        let section = Section::new(document, format!("parameter `{name}`"), at, keys);
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.bytes().all(letters)
            || !name.starts_with(|letter: char| letter.is_ascii_lowercase())
        {
            return Err(
                section.problem("a name is lower-case letters, digits and `_`, a letter first")
            );
        }
        parameters.push(Parameter {
            name: name.to_owned(),
            kind: kind(document, &section)?,
            line: document.line(at),
        });
    }
    Ok(parameters)
}

fn kind(document: Document<'_>, section: &Section<'_>) -> Result<Kind, Problem> {
    let (kind, at) = section.text("kind")?;
    let bound = |key: &str| bound(document, section, key);
    let needed = |key: &str, most: u32| {
        section
            .number(key, 1..most + 1)?
            .ok_or_else(|| section.problem(format!("key `{key}` is missing")))
    };
    match kind {
        "uniform" => {
            section.allow(&["kind", "low", "high", "count"])?;
            let count = section.number("count", 1..MAX_SLOTS + 1)?;
            Ok(Kind::Uniform {
                low: bound("low")?,
                high: bound("high")?,
                count,
            })
        }
        "consecutive" => {
            section.allow(&["kind", "start", "count"])?;
            Ok(Kind::Consecutive {
                start: bound("start")?,
                count: needed("count", MAX_SLOTS)?,
            })
        }
        "range" => {
            section.allow(&["kind", "low", "high", "add"])?;
            Ok(Kind::Range {
                low: bound("low")?,
                high: bound("high")?,
                add: bound("add")?,
            })
        }
        "digits" => {
            section.allow(&["kind", "groups", "width"])?;
            Ok(Kind::Digits {
                groups: needed("groups", 1000)?,
                width: needed("width", 1000)?,
            })
        }
        _ => Err(unknown_word(
            section,
            at,
            "kind",
            kind,
            &["uniform", "consecutive", "range", "digits"],
        )),
    }
}

fn bound(document: Document<'_>, section: &Section<'_>, key: &str) -> Result<Bound, Problem> {
    let (value, at): Placed<_> = section.required(key)?;
    let expression = match value {
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Expression::Number)
            .map_err(|_| section.problem_at(at, format!("`{key}` does not fit 64 bits")))?,
        DeValue::String(text) => Expression::parse(text).map_err(|mut problem| {
            problem.error = format!("`{key}`: {}", problem.error);
            section.wrap(at, problem)
        })?,
        other => {
            return Err(section.wrong_type(
                key,
                at,
                "an integer or an expression in quotes",
                other,
            ));
        }
    };
    Ok(Bound {
        expression,
        line: document.line(at),
    })
}

fn steps(
    document: Document<'_>,
    root: &Section<'_>,
    parameters: &[Parameter],
) -> Result<Vec<StepDefinition>, Problem> {
    let (value, at) = root.required("step")?;
    let DeValue::Array(items) = value else {
        return Err(root.wrong_type("step", at, "tables, each headed [[step]]", value));
    };
    let shape = |parameter: &Parameter| match &parameter.kind {
        Kind::Uniform {
            count: Some(count), ..
        }
        | Kind::Consecutive { count, .. } => Shape::List(*count),
        Kind::Range { .. } => Shape::Range,
        Kind::Uniform { count: None, .. } | Kind::Digits { .. } => Shape::Scalar,
    };
    let named: Vec<Named<'_>> = parameters
        .iter()
        .map(|parameter| Named {
            name: &parameter.name,
            shape: shape(parameter),
        })
        .collect();
    let mut steps = Vec::new();
    for (number, item) in (1..).zip(items) {
        let at = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            return Err(root.wrong_type(
                "step",
                at,
                "tables, each headed [[step]]",
                item.get_ref(),
            ));
        };
        let section = Section::new(document, format!("step {number}"), at, table);
        let drawn = steps.iter().any(|step: &StepDefinition| step.draws_table);
        let line = document.line(at);
        steps.push(step(&section, &named, drawn, line)?);
    }
    if steps.is_empty() {
        return Err(root.problem_at(at, "there is no step"));
    }
    Ok(steps)
}

fn step(
    section: &Section<'_>,
    named: &[Named<'_>],
    drawn: bool,
    line: u64,
) -> Result<StepDefinition, Problem> {
    section.allow(&STEP_KEYS)?;
    let (sql, at) = section.text("sql")?;
    let template =
        Template::parse(sql.trim(), named).map_err(|problem| section.wrap(at, problem))?;
    let slots: u64 = template
        .parameters
        .iter()
        .filter_map(|&place| named.get(place))
        .map(|named| match named.shape {
            Shape::Scalar => 1,
            Shape::Range => 2,
            Shape::List(count) => u64::from(count),
        })
        .sum();
    if slots > u64::from(MAX_SLOTS) {
        return Err(section.problem_at(
            at,
            format!("{slots} placeholders, more than the {MAX_SLOTS} that fit"),
        ));
    }
    let draws_table = match section.value("table") {
        None => template.has_table,
        Some((_, at)) if !template.has_table => {
            return Err(section.problem_at(at, "`table` is set, but the statement has no {table}"));
        }
        Some(_) => match section.text("table")? {
            ("draw", _) => true,
            ("keep", _) if drawn => false,
            ("keep", at) => {
                return Err(section.problem_at(at, "no table to keep: no earlier step draws one"));
            }
            (word, at) => return Err(unknown_word(section, at, "table", word, &["draw", "keep"])),
        },
    };
    let repeat = section.number("repeat", 1..MAX_REPEAT + 1)?.unwrap_or(1);
    Ok(StepDefinition {
        template,
        repeat,
        draws_table,
        line,
    })
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
            "x.toml:12: parameter `id`: `low` must be an integer or an expression",
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
            "x.toml:6: the workload: `writes` must be true or false, not an integer",
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
