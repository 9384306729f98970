//! A table of a definition file, in which sizes can be expressions over those of `[vary]`.

use crate::expression::Expression;
use crate::varied::Varied;
use deltabench_document::Document;
use deltabench_model::problem::Problem;
use std::ops::{Deref, RangeInclusive};
use toml::de::{DeTable, DeValue};

pub(crate) use deltabench_document::{Placed, Value};

/// One table of the file. Beside what every [`deltabench_document::Section`] has, it knows what its
/// expressions may name beside the size of the data.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    table: deltabench_document::Section<'a>,
    pub(crate) varied: Option<&'a Varied>,
}

impl<'a> Deref for Section<'a> {
    type Target = deltabench_document::Section<'a>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(
        document: Document<'a>,
        table: &'a DeTable<'a>,
        varied: Option<&'a Varied>,
    ) -> Self {
        let name = "the workload".to_owned();
        Self {
            table: deltabench_document::Section::new(document, name, 0, table),
            varied,
        }
    }

    /// A table of the same file.
    fn beside(&self, table: deltabench_document::Section<'a>) -> Self {
        Self {
            table,
            varied: self.varied,
        }
    }

    /// The table of a value, as a section that problems call `name`.
    pub(crate) fn headed(
        &self,
        (key, header): (&str, &str),
        (value, at): Placed<Value<'a>>,
        name: String,
    ) -> Result<Self, Problem> {
        let DeValue::Table(table) = value else {
            return Err(self.wrong_type(key, at, header, value));
        };
        let table = deltabench_document::Section::new(self.document(), name, at, table);
        Ok(self.beside(table))
    }

    /// The tables of an array of tables, each as a section called `name` and its number; empty when the key
    /// is absent. `header` is how such tables begin.
    pub(crate) fn sections(
        &self,
        key: &str,
        name: &str,
        header: &str,
    ) -> Result<Vec<Self>, Problem> {
        let Some(tables) = self.table.sections(key, name, header)? else {
            return Ok(Vec::new());
        };
        match (tables.is_empty(), self.value(key)) {
            (true, Some((_, at))) => Err(self.problem_at(at, format!("there is no {key}"))),
            _ => Ok(tables.into_iter().map(|table| self.beside(table)).collect()),
        }
    }

    /// The text of a key, if it is there, as it stands.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<Placed<&'a str>>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(_) => self.required_text(key).map(Some),
        }
    }

    /// A whole number within `range`, or an expression in quotes over the sizes that can be varied.
    pub(crate) fn size(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<u32>, Problem> {
        let (Some(varied), Some((DeValue::String(text), at))) = (self.varied, self.value(key))
        else {
            return self.number(key, range);
        };
        let value = constant(text, varied).map_err(|mut problem| {
            problem.error = format!("`{key}`: {}", problem.error);
            self.wrap(at, problem)
        })?;
        match u32::try_from(value) {
            Ok(number) if range.contains(&value) => Ok(Some(number)),
            _ => {
                let (least, most) = (range.start(), range.end());
                let what = format!("`{key}` is {value}, but must be {least} to {most}");
                Err(self.problem_at(at, what))
            }
        }
    }

    /// A text for people that must be there, with the sizes that it names in braces.
    pub(crate) fn prose(&self, key: &str) -> Result<String, Problem> {
        let (text, at) = self.required_text(key)?;
        self.filled(text, at)
    }

    /// The text of [`Section::prose`], if it is there.
    pub(crate) fn optional_prose(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(_) => self.prose(key).map(Some),
        }
    }

    /// A list of texts for people; empty when the key is absent.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(Vec::new());
        };
        let wanted = "a list of strings";
        let DeValue::Array(items) = value else {
            return Err(self.wrong_type(key, at, wanted, value));
        };
        let text = |item: &toml::Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::String(text) => self.filled(text, item.span().start),
            other => Err(self.wrong_type(key, item.span().start, wanted, other)),
        };
        items.iter().map(text).collect()
    }

    fn filled(&self, text: &str, at: usize) -> Result<String, Problem> {
        let filled = match self.varied {
            Some(varied) if varied.names().next().is_some() => fill(text, varied),
            _ => Ok(text.to_owned()),
        };
        filled
            .map(|text| text.trim().to_owned())
            .map_err(|problem| self.wrap(at, problem))
    }

    /// A number with or without a fraction, above 0 and at most `most`.
    pub(crate) fn fraction(&self, key: &str, most: f64) -> Result<Option<f64>, Problem> {
        let Some((value, at)) = self.value(key) else {
            return Ok(None);
        };
        let text = match value {
            DeValue::Integer(integer) => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            other => return Err(self.wrong_type(key, at, "a number", other)),
        };
        match text.parse::<f64>() {
            Ok(number) if number > 0.0 && number <= most => Ok(Some(number)),
            _ => {
                let what = format!("`{key}` is {text}, but must be above 0 and at most {most}");
                Err(self.problem_at(at, what))
            }
        }
    }
}

/// A text with the values of the expressions that stand in braces.
fn fill(text: &str, varied: &Varied) -> Result<String, Problem> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else {
            return Err(Problem::new("a `{` in a text is not closed"));
        };
        filled.push_str(before);
        filled.push_str(&constant(inside, varied)?.to_string());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The value of an expression over the sizes alone.
fn constant(text: &str, varied: &Varied) -> Result<i64, Problem> {
    let expression = Expression::parse(text, Some(varied))?;
    expression.constant().map_err(|why| {
        let names: Vec<&str> = varied.names().collect();
        Problem::new(format!("bad expression `{text}`: it {why}"))
            .detail(format!("known names: {}", names.join(", ")))
    })
}
