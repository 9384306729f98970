//! A number of a definition, which may depend on the size of the data.

use crate::expression::Expression;
use crate::section::{Placed, Section};
use deltabench_document::whole;
use deltabench_model::problem::Problem;
use toml::de::DeValue;

/// An expression and its line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) expression: Expression,
    pub(crate) line: u64,
}

/// A whole number, or an expression in quotes.
pub(crate) fn bound(section: &Section<'_>, key: &str) -> Result<Bound, Problem> {
    let (value, at): Placed<_> = section.required(key)?;
    let expression = match value {
        DeValue::Integer(integer) => whole(integer)
            .map(Expression::Number)
            .ok_or_else(|| section.problem_at(at, format!("`{key}` does not fit 64 bits")))?,
        DeValue::String(text) => {
            Expression::parse(text, section.varied).map_err(|mut problem| {
                problem.error = format!("`{key}`: {}", problem.error);
                section.wrap(at, problem)
            })?
        }
        other => {
            let wanted = "a whole number or an expression in quotes";
            return Err(section.wrong_type(key, at, wanted, other));
        }
    };
    Ok(Bound {
        expression,
        line: section.line_of(at),
    })
}
