//! Reading a TOML file strictly: every problem says file, line and key.

use crate::varied::Varied;
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::count;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    /// What its expressions may name beside the size of the data, once that is known.
    pub(crate) varied: Option<&'a Varied>,
}

impl<'a> Document<'a> {
    /// A file as it is read first.
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let varied = None;
        Self { file, text, varied }
    }

    /// Parses the whole file.
    pub(crate) fn parse(self) -> Result<Spanned<DeTable<'a>>, Problem> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.at(
                at,
                Problem::new(format!("not TOML: {}", error.message().trim_end())),
            )
        })
    }

    /// `problem` with the place of byte `offset` in front.
    pub(crate) fn at(&self, offset: usize, mut problem: Problem) -> Problem {
        problem.error = format!("{}:{}: {}", self.file, self.line(offset), problem.error);
        problem
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, offset: usize) -> u64 {
        let newlines = self
            .text
            .bytes()
            .take(offset)
            .filter(|&byte| byte == b'\n')
            .count();
        count(newlines) + 1
    }
}

/// One table of the file, with only known keys.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    document: Document<'a>,
    /// How problems call it, for example `step 2`.
    name: String,
    at: usize,
    table: &'a DeTable<'a>,
}

/// A value and where it stands.
pub(crate) type Placed<T> = (T, usize);

impl<'a> Section<'a> {
    pub(crate) fn new(
        document: Document<'a>,
        name: String,
        at: usize,
        table: &'a DeTable<'a>,
    ) -> Self {
        Self {
            document,
            name,
            at,
            table,
        }
    }

    /// Refuses keys that are not in `known`.
    pub(crate) fn allow(&self, known: &[&str]) -> Result<(), Problem> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let problem = Problem::new(format!("unknown key `{name}` in {}", self.name))
                .detail(format!("known keys: {}", known.join(", ")));
            let problem = match nearest(name, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            };
            return Err(self.document.at(key.span().start, problem));
        }
        Ok(())
    }

    /// A problem with the section as a whole.
    pub(crate) fn problem(&self, what: impl std::fmt::Display) -> Problem {
        self.document
            .at(self.at, Problem::new(format!("{}: {what}", self.name)))
    }

    /// A problem with what stands at `at`.
    pub(crate) fn problem_at(&self, at: usize, what: impl std::fmt::Display) -> Problem {
        self.document
            .at(at, Problem::new(format!("{}: {what}", self.name)))
    }

    /// Puts name and place in front of a problem found inside a value of this section.
    pub(crate) fn wrap(&self, at: usize, mut problem: Problem) -> Problem {
        problem.error = format!("{}: {}", self.name, problem.error);
        self.document.at(at, problem)
    }

    /// The value of `key`, if there is one.
    pub(crate) fn value(&self, key: &str) -> Option<Placed<&'a DeValue<'a>>> {
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some((value.get_ref(), value.span().start))
    }

    /// The value of a key that must be there.
    pub(crate) fn required(&self, key: &str) -> Result<Placed<&'a DeValue<'a>>, Problem> {
        self.value(key)
            .ok_or_else(|| self.problem(format!("key `{key}` is missing")))
    }

    /// A text that must be there and not be empty.
    pub(crate) fn text(&self, key: &str) -> Result<Placed<&'a str>, Problem> {
        let (value, at) = self.required(key)?;
        match value {
            DeValue::String(text) if text.trim().is_empty() => {
                Err(self.problem_at(at, format!("`{key}` is empty")))
            }
            DeValue::String(text) => Ok((text, at)),
            other => Err(self.wrong_type(key, at, "a string", other)),
        }
    }

    /// A yes or no.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some((DeValue::Boolean(flag), _)) => Ok(Some(*flag)),
            Some((other, at)) => Err(self.wrong_type(key, at, "true or false", other)),
        }
    }

    /// A whole number within `range`.
    pub(crate) fn number(&self, key: &str, range: Range<u32>) -> Result<Option<u32>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let DeValue::Integer(integer) = value else {
            return Err(self.wrong_type(key, at, "an integer", value));
        };
        match u32::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(self.outside(key, at, integer, &range)),
        }
    }

    /// A whole number within `range`, or an expression in quotes over the sizes that can be varied.
    pub(crate) fn size(&self, key: &str, range: Range<u32>) -> Result<Option<u32>, Problem> {
        let (Some(varied), Some((DeValue::String(text), at))) =
            (self.document.varied, self.value(key))
        else {
            return self.number(key, range);
        };
        let value = varied.constant(text).map_err(|mut problem| {
            problem.error = format!("`{key}`: {}", problem.error);
            self.wrap(at, problem)
        })?;
        match u32::try_from(value) {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(self.outside(key, at, value, &range)),
        }
    }

    fn outside(
        &self,
        key: &str,
        at: usize,
        found: impl std::fmt::Display,
        range: &Range<u32>,
    ) -> Problem {
        let (least, most) = (range.start, range.end.saturating_sub(1));
        self.problem_at(
            at,
            format!("`{key}` is {found}, but must be {least} to {most}"),
        )
    }

    /// A text for people that must be there, with the sizes that it names in braces.
    pub(crate) fn prose(&self, key: &str) -> Result<String, Problem> {
        let (text, at) = self.text(key)?;
        self.filled(text, at)
    }

    /// The text of [`Section::prose`], if it is there.
    pub(crate) fn optional_prose(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(_) => self.prose(key).map(Some),
        }
    }

    fn filled(&self, text: &str, at: usize) -> Result<String, Problem> {
        let filled = self.document.varied.map(|varied| varied.fill(text));
        let filled = filled.unwrap_or_else(|| Ok(text.to_owned()));
        filled
            .map(|text| text.trim().to_owned())
            .map_err(|problem| self.wrap(at, problem))
    }

    /// A number with or without a fraction, above 0 and at most `most`.
    pub(crate) fn fraction(&self, key: &str, most: f64) -> Result<Option<f64>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let (text, number) = match value {
            DeValue::Integer(integer) => (integer.as_str(), integer.as_str().parse::<f64>()),
            DeValue::Float(float) => (float.as_str(), float.as_str().parse::<f64>()),
            other => return Err(self.wrong_type(key, at, "a number", other)),
        };
        match number {
            Ok(number) if number > 0.0 && number <= most => Ok(Some(number)),
            _ => Err(self.problem_at(
                at,
                format!("`{key}` is {text}, but must be above 0 and at most {most}"),
            )),
        }
    }

    /// One of some words; `None` when the key is absent.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, Problem> {
        if self.value(key).is_none() {
            return Ok(None);
        }
        let (word, at) = self.text(key)?;
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == word) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Err(self.unknown_word(at, key, word, &names))
    }

    /// A word that is none of those known.
    pub(crate) fn unknown_word(&self, at: usize, key: &str, word: &str, known: &[&str]) -> Problem {
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

    /// The text of a key, if it is there.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<Placed<&'a str>>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(_) => self.text(key).map(Some),
        }
    }

    /// The tables of an array of tables, each as a section called `name` and its number; empty when the key
    /// is absent. `header` is how such tables begin.
    pub(crate) fn sections(
        &self,
        key: &str,
        name: &str,
        header: &str,
    ) -> Result<Vec<Section<'a>>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(Vec::new());
        };
        let wanted = format!("tables, each headed [[{header}]]");
        let DeValue::Array(items) = value else {
            return Err(self.wrong_type(key, at, &wanted, value));
        };
        if items.is_empty() {
            return Err(self.problem_at(at, format!("there is no {key}")));
        }
        let section = |(number, item): (u32, &'a Spanned<DeValue<'a>>)| {
            let at = item.span().start;
            let DeValue::Table(table) = item.get_ref() else {
                return Err(self.wrong_type(key, at, &wanted, item.get_ref()));
            };
            let name = format!("{name} {number}");
            Ok(Section::new(self.document, name, at, table))
        };
        (1..).zip(items.iter()).map(section).collect()
    }

    /// The line on which the section begins.
    pub(crate) fn line(&self) -> u64 {
        self.document.line(self.at)
    }

    /// The line of a byte.
    pub(crate) fn line_of(&self, at: usize) -> u64 {
        self.document.line(at)
    }

    /// How problems call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file it is in.
    pub(crate) fn document(&self) -> Document<'a> {
        self.document
    }

    /// Its keys and values, in order.
    pub(crate) fn entries(
        &self,
    ) -> impl Iterator<Item = (Placed<&'a str>, &'a Spanned<DeValue<'a>>)> {
        self.table.iter().map(|(key, value)| {
            let name: &str = key.get_ref();
            ((name, key.span().start), value)
        })
    }

    /// A list of texts; empty when the key is absent.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(items) = value else {
            return Err(self.wrong_type(key, at, "an array of strings", value));
        };
        let text = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::String(text) => self.filled(text, item.span().start),
            other => Err(self.wrong_type(key, item.span().start, "an array of strings", other)),
        };
        items.iter().map(text).collect()
    }

    /// "must be this, is that".
    pub(crate) fn wrong_type(
        &self,
        key: &str,
        at: usize,
        wanted: &str,
        found: &DeValue<'_>,
    ) -> Problem {
        self.problem_at(
            at,
            format!("`{key}` must be {wanted}, not {}", described(found)),
        )
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let document = Document::new("f", "a\nb\n");
        assert_eq!(
            [0, 1, 2, 4].map(|offset| document.line(offset)),
            [1, 1, 2, 3]
        );
    }

    #[test]
    fn what_is_not_toml_is_refused_with_its_line() {
        let error = Document::new("f.toml", "a = 1\nb = = 2\n")
            .parse()
            .unwrap_err()
            .error;
        assert!(error.starts_with("f.toml:2: not TOML: "), "{error}");
    }
}
