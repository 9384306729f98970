//! A table of a file, read strictly: every problem says file, line and key.

use crate::document::Document;
use deltabench_model::problem::{Problem, nearest};
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A value and the byte at which it stands.
pub type Placed<T> = (T, usize);

/// A value of the file, as TOML has it.
pub type Value<'a> = &'a DeValue<'a>;

/// One table of the file.
#[derive(Debug)]
pub struct Section<'a> {
    document: Document<'a>,
    /// How problems call it, for example `[measurement]`.
    name: String,
    at: usize,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// A table that problems call `name` and that stands at byte `at`.
    pub fn new(document: Document<'a>, name: String, at: usize, table: &'a DeTable<'a>) -> Self {
        Self {
            document,
            name,
            at,
            table,
        }
    }

    /// The file that it is in.
    pub fn document(&self) -> Document<'a> {
        self.document
    }

    /// The line on which it begins.
    pub fn line(&self) -> u64 {
        self.line_of(self.at)
    }

    /// The line of a byte.
    pub fn line_of(&self, at: usize) -> u64 {
        self.document.line(at)
    }

    /// Its keys and values, in the order of the file.
    pub fn entries(&self) -> Vec<(Placed<&'a str>, Placed<Value<'a>>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                ((name, key.span().start), placed(value))
            })
            .collect();
        entries.sort_by_key(|((_, at), _)| *at);
        entries
    }

    /// How problems call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The byte at which it stands.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Refuses keys that are not in `known`.
    ///
    /// Errors: with file, line and key.
    pub fn allow(&self, known: &[&str]) -> Result<(), Problem> {
        for ((key, at), _) in self.entries() {
            if known.contains(&key) {
                continue;
            }
            let problem = Problem::new(format!("unknown key `{key}` in {}", self.name))
                .detail(format!("known keys: {}", known.join(", ")));
            let problem = match nearest(key, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            };
            return Err(self.document.at(at, problem));
        }
        Ok(())
    }

    /// A problem with the section as a whole.
    pub fn problem(&self, what: impl Display) -> Problem {
        self.problem_at(self.at, what)
    }

    /// A problem with what stands at `at`.
    pub fn problem_at(&self, at: usize, what: impl Display) -> Problem {
        self.document
            .at(at, Problem::new(format!("{}: {what}", self.name)))
    }

    /// Puts name and place in front of a problem found inside a value of this section.
    pub fn wrap(&self, at: usize, mut problem: Problem) -> Problem {
        problem.error = format!("{}: {}", self.name, problem.error);
        self.document.at(at, problem)
    }

    /// "must be this, not that".
    pub fn wrong_type(&self, key: &str, at: usize, wanted: &str, found: Value<'_>) -> Problem {
        let found = described(found);
        self.problem_at(at, format!("`{key}` must be {wanted}, not {found}"))
    }

    /// A word that is none of those known.
    pub fn unknown_word(&self, at: usize, key: &str, word: &str, known: &[&str]) -> Problem {
        let problem = Problem::new(format!("unknown {key} \"{word}\""))
            .detail(format!("known: {}", known.join(", ")));
        self.wrap(
            at,
            match nearest(word, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                None => problem,
            },
        )
    }

    /// The value of `key`, if there is one.
    pub fn value(&self, key: &str) -> Option<Placed<Value<'a>>> {
        self.table.get(key).map(placed)
    }

    /// Where `key` itself stands; past everything when it is absent.
    pub fn place_of(&self, key: &str) -> usize {
        let found = self.table.get_key_value(key);
        found.map_or(usize::MAX, |(key, _)| key.span().start)
    }

    /// The value of a key that must be there.
    ///
    /// Errors: with file, line and key.
    pub fn required(&self, key: &str) -> Result<Placed<Value<'a>>, Problem> {
        self.value(key)
            .ok_or_else(|| self.problem(format!("key `{key}` is missing")))
    }

    /// The text that a value is: not empty, in one line.
    ///
    /// Errors: with file, line and key.
    pub fn as_text(&self, key: &str, (value, at): Placed<Value<'a>>) -> Result<&'a str, Problem> {
        let DeValue::String(text) = value else {
            return Err(self.wrong_type(key, at, "a string", value));
        };
        if text.trim().is_empty() {
            return Err(self.problem_at(at, format!("`{key}` is empty")));
        }
        if text.chars().any(char::is_control) {
            let what = format!("`{key}` has a line break or another control character in it");
            return Err(self.problem_at(at, what));
        }
        Ok(text.trim())
    }

    /// The text of a key that must be there, as it stands: it may have several lines.
    ///
    /// Errors: with file, line and key.
    pub fn required_text(&self, key: &str) -> Result<Placed<&'a str>, Problem> {
        let (value, at) = self.required(key)?;
        match value {
            DeValue::String(text) if text.trim().is_empty() => {
                Err(self.problem_at(at, format!("`{key}` is empty")))
            }
            DeValue::String(text) => Ok((text, at)),
            other => Err(self.wrong_type(key, at, "a string", other)),
        }
    }

    /// The text of a key, if it is there.
    ///
    /// Errors: with file, line and key.
    pub fn text(&self, key: &str) -> Result<Option<Placed<&'a str>>, Problem> {
        let read = |value: Placed<Value<'a>>| Ok((self.as_text(key, value)?, value.1));
        self.value(key).map(read).transpose()
    }

    /// Prose of a key, if it is there: it may have several lines, and be empty.
    ///
    /// Errors: with file, line and key.
    pub fn prose(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some((DeValue::String(text), _)) => {
                Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
            }
            Some((other, at)) => Err(self.wrong_type(key, at, "a string", other)),
        }
    }

    /// A text of one line, which may be empty: no flags are an answer too. `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn flags(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.value(key) {
            Some((DeValue::String(text), _)) if text.trim().is_empty() => Ok(Some(String::new())),
            Some(value) => Ok(Some(self.as_text(key, value)?.to_owned())),
            None => Ok(None),
        }
    }

    /// A yes or no.
    ///
    /// Errors: with file, line and key.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some((DeValue::Boolean(flag), _)) => Ok(Some(*flag)),
            Some((other, at)) => Err(self.wrong_type(key, at, "true or false", other)),
        }
    }

    /// The whole number that a value is, within `range`.
    ///
    /// Errors: with file, line and key.
    pub fn as_whole(
        &self,
        key: &str,
        (value, at): Placed<Value<'_>>,
        range: &RangeInclusive<i64>,
    ) -> Result<i64, Problem> {
        let DeValue::Integer(integer) = value else {
            return Err(self.wrong_type(key, at, "a whole number", value));
        };
        whole(integer)
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                let what = format!("`{key}` is {integer}, but must be {least} to {most}");
                self.problem_at(at, what)
            })
    }

    /// A whole number within `range`, in the type that holds the range.
    ///
    /// Errors: with file, line and key.
    pub fn number<T: TryFrom<i64>>(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        self.narrow(key, value, &range).map(Some)
    }

    fn narrow<T: TryFrom<i64>>(
        &self,
        key: &str,
        value: Placed<Value<'_>>,
        range: &RangeInclusive<i64>,
    ) -> Result<T, Problem> {
        T::try_from(self.as_whole(key, value, range)?)
            .map_err(|_| self.problem_at(value.1, format!("`{key}` is out of range")))
    }

    /// A number with or without a fraction, within `range`.
    ///
    /// Errors: with file, line and key.
    pub fn fraction(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let text = match value {
            DeValue::Integer(integer) => integer.to_string(),
            DeValue::Float(float) => float.as_str().to_owned(),
            other => return Err(self.wrong_type(key, at, "a number", other)),
        };
        match text.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let (least, most) = (range.start(), range.end());
                let what = format!("`{key}` is {text}, but must be {least} to {most}");
                Err(self.problem_at(at, what))
            }
        }
    }

    /// One of some words; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn word<T: Copy>(&self, key: &str, known: &[(&str, T)]) -> Result<Option<T>, Problem> {
        let Some((word, at)) = self.text(key)? else {
            return Ok(None);
        };
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == word) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Err(self.unknown_word(at, key, word, &names))
    }

    /// One value, or the values of a list that is not empty; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn one_or_many(&self, key: &str) -> Result<Option<Vec<Placed<Value<'a>>>>, Problem> {
        self.value(key)
            .map(|value| self.as_list(key, value))
            .transpose()
    }

    /// The values of a list that is not empty; a value that is none stands for a list of one.
    ///
    /// Errors: with file, line and key.
    pub fn as_list(
        &self,
        key: &str,
        value: Placed<Value<'a>>,
    ) -> Result<Vec<Placed<Value<'a>>>, Problem> {
        match value {
            (DeValue::Array(items), at) if items.is_empty() => {
                Err(self.problem_at(at, format!("`{key}` is an empty list")))
            }
            (DeValue::Array(items), _) => Ok(items.iter().map(placed).collect()),
            one => Ok(vec![one]),
        }
    }

    /// One text or a list of different ones; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<Placed<&'a str>>>, Problem> {
        let Some(values) = self.one_or_many(key)? else {
            return Ok(None);
        };
        let read = |value: Placed<Value<'a>>| Ok((self.as_text(key, value)?, value.1));
        let texts = values
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, Problem>>()?;
        self.all_different(key, &texts)?;
        Ok(Some(texts))
    }

    /// One whole number or a list of different ones, each within `range`; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn numbers<T: TryFrom<i64> + PartialEq + Display + Copy>(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<Vec<T>>, Problem> {
        let Some(values) = self.one_or_many(key)? else {
            return Ok(None);
        };
        let read = |value: Placed<Value<'a>>| Ok((self.narrow(key, value, &range)?, value.1));
        let numbers = values
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, Problem>>()?;
        self.all_different(key, &numbers)?;
        Ok(Some(
            numbers.into_iter().map(|(number, _)| number).collect(),
        ))
    }

    /// Refuses a list that has a value twice.
    ///
    /// Errors: with file, line and key.
    pub fn all_different<T: PartialEq + Display>(
        &self,
        key: &str,
        values: &[Placed<T>],
    ) -> Result<(), Problem> {
        for (index, (value, at)) in values.iter().enumerate() {
            if values.iter().take(index).any(|(other, _)| other == value) {
                return Err(self.problem_at(*at, format!("`{key}` has {value} twice")));
            }
        }
        Ok(())
    }

    /// A list of different strings, which may be empty; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn list_of_texts(&self, key: &str) -> Result<Option<Vec<Placed<&'a str>>>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let DeValue::Array(items) = value else {
            return Err(self.wrong_type(key, at, "a list of strings", value));
        };
        let read = |item: &'a Spanned<DeValue<'a>>| {
            let value = placed(item);
            Ok((self.as_text(key, value)?, value.1))
        };
        let texts = items
            .iter()
            .map(read)
            .collect::<Result<Vec<_>, Problem>>()?;
        self.all_different(key, &texts)?;
        Ok(Some(texts))
    }

    /// The same as texts of one's own; none when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn owned_texts(&self, key: &str) -> Result<Vec<String>, Problem> {
        let texts = self.list_of_texts(key)?.unwrap_or_default();
        Ok(texts.into_iter().map(|(text, _)| text.to_owned()).collect())
    }

    /// The table of a key, as a section that problems call `name`; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn section(
        &self,
        key: &str,
        name: impl Into<String>,
    ) -> Result<Option<Section<'a>>, Problem> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        self.as_section(key, value, name.into()).map(Some)
    }

    /// The tables that the keys of the table `key` head, by name, in the order of the file: `[key.NAME]`.
    ///
    /// Errors: with file, line and key.
    pub fn named_sections(
        &self,
        key: &str,
    ) -> Result<Vec<(Placed<&'a str>, Section<'a>)>, Problem> {
        let Some(parent) = self.section(key, format!("[{key}]"))? else {
            return Ok(Vec::new());
        };
        let read = |(name, value): (Placed<&'a str>, Placed<Value<'a>>)| {
            let header = format!("[{key}.{}]", name.0);
            Ok((name, parent.as_section(name.0, value, header)?))
        };
        parent.entries().into_iter().map(read).collect()
    }

    /// The tables of a list of tables, each called `name` and its number; `None` when the key is absent.
    ///
    /// Errors: with file, line and key.
    pub fn sections(
        &self,
        key: &str,
        name: &str,
        header: &str,
    ) -> Result<Option<Vec<Section<'a>>>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let wanted = format!("tables, each headed [[{header}]]");
        let DeValue::Array(items) = value else {
            return Err(self.wrong_type(key, at, &wanted, value));
        };
        let read = |(number, item): (u32, &'a Spanned<DeValue<'a>>)| match item.get_ref() {
            DeValue::Table(table) => {
                let (name, at) = (format!("{name} {number}"), item.span().start);
                Ok(Section::new(self.document, name, at, table))
            }
            other => Err(self.wrong_type(key, item.span().start, &wanted, other)),
        };
        let sections = (1..).zip(items.iter()).map(read);
        sections.collect::<Result<Vec<_>, Problem>>().map(Some)
    }

    /// The table that a value is, as a section.
    ///
    /// Errors: with file, line and key.
    pub fn as_section(
        &self,
        key: &str,
        (value, at): Placed<Value<'a>>,
        name: String,
    ) -> Result<Section<'a>, Problem> {
        match value {
            DeValue::Table(table) => Ok(Section::new(self.document, name, at, table)),
            other => Err(self.wrong_type(key, at, "a table", other)),
        }
    }
}

fn placed<'a>(value: &'a Spanned<DeValue<'a>>) -> Placed<Value<'a>> {
    (value.get_ref(), value.span().start)
}

/// The number, if it is one of 64 bits.
pub fn whole(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn described(value: Value<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
