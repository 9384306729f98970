//! One file, several sizes: `[scale.NAME]` laid over the rest of the file.

use deltabench_document::{Document, Section};
use deltabench_model::problem::{Problem, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key that holds the scales.
pub(crate) const SCALE: &str = "scale";

/// Keys that say what the file is, which is the same at every scale.
const FIXED: [&str; 4] = ["format", "version", "name", SCALE];

/// Two keys of a table of which only one may be there. A scale that has one of them means it instead of the
/// other one of the file.
const INSTEAD: [(&str, &str, &str); 5] = [
    ("workloads", "set", "only"),
    ("workloads", "also", "only"),
    ("measurement", "fixed", "precision"),
    ("measurement", "sustained", "visit_seconds"),
    ("insert", "rates", "steps"),
];

/// The names of the scales, in the order of the file.
///
/// Errors: a scale that is no table, a name that cannot be typed, a key that a scale cannot change.
pub(crate) fn names(
    document: Document<'_>,
    table: &DeTable<'_>,
    known: &[&str],
) -> Result<Vec<String>, Problem> {
    let allowed: Vec<&str> = known
        .iter()
        .copied()
        .filter(|key| !FIXED.contains(key))
        .collect();
    let root = Section::new(document, "the experiment".to_owned(), 0, table);
    let mut names = Vec::new();
    for ((name, at), section) in root.named_sections(SCALE)? {
        check_name(&section, name, at)?;
        for ((key, at), _) in section.entries() {
            if FIXED.contains(&key) {
                return Err(section.problem_at(at, format!("`{key}` is the same at every scale")));
            }
        }
        section.allow(&allowed)?;
        names.push(name.to_owned());
    }
    Ok(names)
}

fn check_name(section: &Section<'_>, name: &str, at: usize) -> Result<(), Problem> {
    match crate::syntax::name(name) {
        Ok(()) => Ok(()),
        Err(problem) => Err(section.wrap(at, problem)),
    }
}

/// The file as it is at a scale; without one, as written. The scales themselves are gone.
///
/// Errors: a scale that is not there.
pub(crate) fn at_scale<'a>(
    file: &str,
    table: &DeTable<'a>,
    scale: Option<&str>,
) -> Result<DeTable<'a>, Problem> {
    let mut body = table.clone();
    let scales = body.remove(SCALE);
    let Some(asked) = scale else {
        return Ok(body);
    };
    let scales = match scales.as_ref().map(Spanned::get_ref) {
        Some(DeValue::Table(scales)) => Some(scales),
        _ => None,
    };
    let Some(DeValue::Table(over)) =
        scales.and_then(|scales| scales.get(asked).map(Spanned::get_ref))
    else {
        let names: Vec<&str> = scales
            .into_iter()
            .flat_map(DeTable::keys)
            .map(|name| name.get_ref().as_ref())
            .collect();
        return Err(no_such_scale(file, asked, &names));
    };
    for (parent, one, other) in INSTEAD {
        displace(&mut body, over, parent, (one, other));
    }
    lay(&mut body, over);
    Ok(body)
}

fn no_such_scale(file: &str, asked: &str, names: &[&str]) -> Problem {
    let problem = Problem::new(format!("{file} has no scale `{asked}`"));
    let problem = match names {
        [] => problem.detail("it has no scales"),
        _ => problem.detail(format!("its scales are {}", names.join(", "))),
    };
    match nearest(asked, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean --scale {near}?")),
        None => problem.hint("leave --scale out for the file as written"),
    }
}

/// Takes the one of two keys out of the body that the scale means to replace by the other.
fn displace(body: &mut DeTable<'_>, over: &DeTable<'_>, parent: &str, keys: (&str, &str)) {
    let Some(DeValue::Table(over)) = over.get(parent).map(Spanned::get_ref) else {
        return;
    };
    // `fixed = false` asks for nothing.
    let asks = |key: &str| {
        let value = over.get(key).map(Spanned::get_ref);
        value.is_some_and(|value| !matches!(value, DeValue::Boolean(false)))
    };
    if let Some(DeValue::Table(table)) = body.get_mut(parent).map(Spanned::get_mut) {
        if asks(keys.0) {
            table.remove(keys.1);
        }
        if asks(keys.1) {
            table.remove(keys.0);
        }
    }
}

/// Tables merge key by key, everything else replaces.
fn lay<'a>(body: &mut DeTable<'a>, over: &DeTable<'a>) {
    for (key, value) in over.iter() {
        let name: &str = key.get_ref();
        match (body.get_mut(name).map(Spanned::get_mut), value.get_ref()) {
            (Some(DeValue::Table(below)), DeValue::Table(above)) => lay(below, above),
            // A key that was there stays in its place, and with it the order of axes; the value brings its
            // own place along, for problems.
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// `problem` with the scale that was read, if it was one.
pub(crate) fn with_scale(problem: Problem, scale: Option<&str>) -> Problem {
    let Some(scale) = scale else {
        return problem;
    };
    let read = format!("read at scale `{scale}`");
    let detail = match &problem.detail {
        Some(detail) => format!("{detail}\n{read}"),
        None => read,
    };
    problem.detail(detail)
}
