//! `[vary]`: the sizes of a definition that can be asked for with other values.

use deltabench_document::{Document, Section};
use deltabench_model::problem::{Problem, nearest};
use std::cell::Cell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest value: no table of `integer` ids has more rows worth of one statement.
const MAX_VALUE: u32 = 1_000_000_000;
/// Names that stand for something else: the size of the data, and the workload in an experiment's file.
const TAKEN: [&str; 3] = ["rows", "tables", "of"];
/// Keys that hold for the definition as it is written and not for a variant of it.
const NOT_OF_VARIANTS: [&str; 2] = ["published", "quick"];

/// The sizes of a definition being read, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Varied {
    sizes: Vec<Size>,
}

#[derive(Debug)]
struct Size {
    name: String,
    value: u32,
    at: usize,
    used: Cell<bool>,
}

impl Varied {
    /// Reads `[vary]`; nothing where there is none.
    pub(crate) fn read(root: &Section<'_>) -> Result<Self, Problem> {
        let Some((value, at)) = root.value("vary") else {
            return Ok(Self::default());
        };
        let DeValue::Table(table) = value else {
            return Err(root.wrong_type("vary", at, "a table headed [vary]", value));
        };
        let section = Section::new(root.document(), "vary".to_owned(), at, table);
        let mut sizes = Vec::new();
        for ((name, at), _) in section.entries() {
            if !is_name(name) || TAKEN.contains(&name) {
                let what = format!("`{name}` cannot be the name of a size");
                let hint = format!(
                    "lower-case letters, digits and `_`, a letter first, and none of {}",
                    TAKEN.join(", ")
                );
                return Err(section.wrap(at, Problem::new(what).hint(hint)));
            }
            let value = section.number(name, 1..=i64::from(MAX_VALUE))?;
            sizes.push(Size {
                name: name.to_owned(),
                value: value.unwrap_or(1),
                at,
                used: Cell::new(false),
            });
        }
        sizes.sort_by_key(|size| size.at);
        Ok(Self { sizes })
    }

    /// The value of a name, which is used from now on.
    pub(crate) fn get(&self, name: &str) -> Option<i64> {
        let size = self.sizes.iter().find(|size| size.name == name)?;
        size.used.set(true);
        Some(i64::from(size.value))
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.sizes.iter().map(|size| size.name.as_str())
    }

    /// Names and values, in the order of the file.
    pub(crate) fn values(&self) -> Vec<(String, i64)> {
        let sizes = self.sizes.iter();
        sizes
            .map(|size| (size.name.clone(), i64::from(size.value)))
            .collect()
    }

    /// Refuses a size that changes nothing; to be asked before texts are filled in.
    pub(crate) fn check_used(&self, document: Document<'_>) -> Result<(), Problem> {
        match self.sizes.iter().find(|size| !size.used.get()) {
            Some(size) => {
                let what = format!("vary: `{}` is not used by any parameter or step", size.name);
                Err(document.at(size.at, Problem::new(what)))
            }
            None => Ok(()),
        }
    }
}

/// Whether a word can be the name of something in a file.
pub(crate) fn is_name(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(letters) && name.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// Whether a word of a workload's name says a size, as `range=500` does, and says it as it is.
pub(crate) fn says(word: &str, varied: &Varied) -> bool {
    varied
        .sizes
        .iter()
        .any(|size| *word == format!("{}={}", size.name, size.value))
}

/// The name of a variant: that of the workload without the number at its end that would no longer be true,
/// and each size that was asked for.
///
/// Shape: `read-only-100` with `range = 500` is `read-only-range=500`, with `points = 1` it is
/// `read-only-100-points=1`; in the order of the file, so that one set of sizes has one name.
pub(crate) fn name(of: &str, defaults: &[(String, i64)], values: &[(String, i64)]) -> String {
    let asked = |name: &str| values.iter().find(|(other, _)| other == name);
    let gone = defaults
        .iter()
        .filter(|(name, _)| asked(name).is_some())
        .find_map(|(_, default)| of.strip_suffix(&format!("-{default}")));
    let mut text = gone.unwrap_or(of).to_owned();
    for (name, value) in defaults.iter().filter_map(|(name, _)| asked(name)) {
        text.push_str(&format!("-{name}={value}"));
    }
    text
}

/// Refuses what is not among the sizes of a workload, and what is asked for twice.
pub(crate) fn check_asked(
    of: &str,
    defaults: &[(String, i64)],
    values: &[(String, i64)],
) -> Result<(), Problem> {
    let names = || defaults.iter().map(|(name, _)| name.as_str());
    let known = format!("it has {}", said(defaults));
    for (place, (name, value)) in values.iter().enumerate() {
        if !names().any(|known| known == name) {
            let problem =
                Problem::new(format!("workload `{of}` has no size `{name}`")).detail(known);
            return Err(match nearest(name, names()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("`deltabench workloads show {of}` prints it")),
            });
        }
        if values.iter().take(place).any(|(other, _)| other == name) {
            return Err(Problem::new(format!(
                "`{name}` of workload `{of}` is given twice"
            )));
        }
        if !(1..=i64::from(MAX_VALUE)).contains(value) {
            let what = format!("workload `{of}` cannot have {name} = {value}");
            let range = format!("`{name}` must be 1 to {MAX_VALUE}");
            return Err(Problem::new(what).detail(range));
        }
    }
    Ok(())
}

/// The text of a variant: that of its workload with another name, other sizes, and without what holds for
/// the published one alone.
pub(crate) fn text(
    document: Document<'_>,
    name: &str,
    values: &[(String, i64)],
) -> Result<String, Problem> {
    let root = document.parse()?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (key, value) in root.get_ref() {
        let word: &str = key.get_ref();
        match value.get_ref() {
            _ if word == "name" => edits.push((value.span(), format!("\"{name}\""))),
            _ if NOT_OF_VARIANTS.contains(&word) => {
                edits.push((whole_lines(document.text, key, value), String::new()));
            }
            DeValue::Table(table) if word == "vary" => edits.extend(sizes(table, values)),
            _ => {}
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut text = format!("# {} with {}\n", document.file, said(values));
    let mut at = 0;
    for (range, by) in edits {
        text.push_str(document.text.get(at..range.start).unwrap_or_default());
        text.push_str(&by);
        at = range.end;
    }
    text.push_str(document.text.get(at..).unwrap_or_default());
    Ok(text)
}

fn sizes(table: &DeTable<'_>, values: &[(String, i64)]) -> Vec<(Range<usize>, String)> {
    let edit = |(name, asked): &(String, i64)| {
        let (_, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        Some((value.span(), asked.to_string()))
    };
    values.iter().filter_map(edit).collect()
}

/// From a key to the end of the line on which its value ends.
fn whole_lines<K, V>(text: &str, key: &Spanned<K>, value: &Spanned<V>) -> Range<usize> {
    let end = value.span().end;
    let rest = text.get(end..).unwrap_or_default();
    let line = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
    key.span().start..end + line
}

/// `range = 500, points = 1`.
pub(crate) fn said(values: &[(String, i64)]) -> String {
    join(
        values
            .iter()
            .map(|(name, value)| format!("{name} = {value}")),
    )
}

fn join(words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words.map(|word| word.as_ref().to_owned()).collect();
    words.join(", ")
}
