//! Integer expressions over the size of the data, such as `rows / 2 + 1`.

use crate::varied::Varied;
use deltabench_model::problem::{Problem, nearest};

/// Longest expression read; keeps the parser's recursion shallow.
const MAX_BYTES: usize = 200;

/// An expression, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(i64),
    Rows,
    Tables,
    Binary(Box<Self>, Operator, Box<Self>),
}

/// What the names in an expression stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) rows: i64,
    pub(crate) tables: i64,
}

/// The names that an expression knows.
const NAMES: [&str; 2] = ["rows", "tables"];

/// `+ - * /`; division drops the remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Expression {
    /// Parses the whole of `text`; names of `varied` become their values.
    pub(crate) fn parse(text: &str, varied: Option<&Varied>) -> Result<Self, Problem> {
        let bad = |what: String| Problem::new(format!("bad expression `{text}`: {what}"));
        if text.len() > MAX_BYTES {
            return Err(bad(format!("longer than {MAX_BYTES} bytes")));
        }
        let mut parser = Parser { rest: text, varied };
        let expression = parser.sum().and_then(|expression| match parser.peek() {
            None => Ok(expression),
            Some(letter) => Err(Stop::Unexpected(letter)),
        });
        expression.map_err(|stop| match stop {
            Stop::End => bad("it ends where a number, a name or `(` must follow".to_owned()),
            Stop::Unexpected(letter) => bad(format!("`{letter}` is not expected there")),
            Stop::TooLarge(number) => bad(format!("{number} does not fit 64 bits")),
            Stop::Unknown(name) => {
                let own: Vec<&str> = varied.map(|v| v.names().collect()).unwrap_or_default();
                let more: String = own.iter().map(|name| format!(", {name}")).collect();
                let problem = bad(format!("unknown name `{name}`")).detail(format!(
                    "known names: rows (of each table), tables (how many){more}"
                ));
                match nearest(&name, NAMES.into_iter().chain(own)) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem,
                }
            }
        })
    }

    /// Its value, if it is the same whatever the size of the data.
    ///
    /// Errors: a name of that size, and as [`Expression::value`], as a phrase.
    pub(crate) fn constant(&self) -> Result<i64, &'static str> {
        if self.depends() {
            return Err("depends on the size of the data");
        }
        self.value(Sizes { rows: 0, tables: 0 })
    }

    fn depends(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Rows | Self::Tables => true,
            Self::Binary(left, _, right) => left.depends() || right.depends(),
        }
    }

    /// Its value for data of that size.
    ///
    /// Errors: a division by zero or a value beyond 64 bits, as a phrase.
    pub(crate) fn value(&self, sizes: Sizes) -> Result<i64, &'static str> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Rows => Ok(sizes.rows),
            Self::Tables => Ok(sizes.tables),
            Self::Binary(left, operator, right) => {
                let (left, right) = (left.value(sizes)?, right.value(sizes)?);
                let value = match operator {
                    Operator::Add => left.checked_add(right),
                    Operator::Subtract => left.checked_sub(right),
                    Operator::Multiply => left.checked_mul(right),
                    Operator::Divide if right == 0 => return Err("divides by zero"),
                    Operator::Divide => left.checked_div(right),
                };
                value.ok_or("is beyond 64 bits")
            }
        }
    }
}

/// Why parsing stopped.
enum Stop {
    End,
    Unexpected(char),
    Unknown(String),
    TooLarge(String),
}

struct Parser<'a> {
    rest: &'a str,
    varied: Option<&'a Varied>,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .find(|letter| !wanted(letter))
            .unwrap_or(self.rest.len());
        self.take(end)
    }

    fn sum(&mut self) -> Result<Expression, Stop> {
        let mut left = self.product()?;
        while let Some(operator) = match self.peek() {
            Some('+') => Some(Operator::Add),
            Some('-') => Some(Operator::Subtract),
            _ => None,
        } {
            self.take(1);
            left = Expression::Binary(Box::new(left), operator, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, Stop> {
        let mut left = self.atom()?;
        while let Some(operator) = match self.peek() {
            Some('*') => Some(Operator::Multiply),
            Some('/') => Some(Operator::Divide),
            _ => None,
        } {
            self.take(1);
            left = Expression::Binary(Box::new(left), operator, Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, Stop> {
        match self.peek() {
            None => Err(Stop::End),
            Some('(') => {
                self.take(1);
                let inner = self.sum()?;
                match self.peek() {
                    Some(')') => {
                        self.take(1);
                        Ok(inner)
                    }
                    Some(letter) => Err(Stop::Unexpected(letter)),
                    None => Err(Stop::End),
                }
            }
            Some(letter) if letter.is_ascii_digit() => {
                let digits = self.take_while(|letter| letter.is_ascii_digit());
                digits
                    .parse()
                    .map(Expression::Number)
                    .map_err(|_| Stop::TooLarge(digits.to_owned()))
            }
            Some(letter) if letter.is_alphabetic() => {
                match self.take_while(|letter| letter.is_alphanumeric() || letter == '_') {
                    "rows" => Ok(Expression::Rows),
                    "tables" => Ok(Expression::Tables),
                    name => match self.varied.and_then(|varied| varied.get(name)) {
                        Some(value) => Ok(Expression::Number(value)),
                        None => Err(Stop::Unknown(name.to_owned())),
                    },
                }
            }
            Some(letter) => Err(Stop::Unexpected(letter)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(rows: i64) -> Sizes {
        Sizes { rows, tables: 3 }
    }

    proptest! {
        #[test]
        fn nothing_written_makes_the_parser_fall(text in "[rowstabl0-9+*/() -]{0,40}") {
            if let Ok(expression) = Expression::parse(&text, None) {
                let _ = expression.value(of(1000));
            }
        }

        #[test]
        fn sums_of_products_are_what_they_are(a in 0_i64..1000, b in 0_i64..1000, c in 1_i64..1000) {
            let text = format!("{a}+ {b} *rows/{c} - tables");
            prop_assert_eq!(
                Expression::parse(&text, None).unwrap().value(of(77)),
                Ok(a + b * 77 / c - 3)
            );
        }
    }

    #[test]
    fn expressions_have_the_usual_precedence_and_integer_division() {
        for (text, value) in [
            ("7", 7),
            ("rows", 1001),
            (" rows/2 + 1 ", 501),
            ("rows - 10 - 1", 990),
            ("2 + 3 * 4", 14),
            ("(2 + 3) * 4", 20),
            ("100 / 10 / 5", 2),
            ("0 - 5", -5),
            ("rows * tables", 3003),
        ] {
            assert_eq!(
                Expression::parse(text, None).unwrap().value(of(1001)),
                Ok(value),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_expressions_say_what_is_wrong() {
        for (text, what) in [
            ("", "it ends"),
            ("rows +", "it ends"),
            ("(rows", "it ends"),
            ("rows)", "`)` is not expected"),
            ("rows rows", "`r` is not expected"),
            ("1.5", "`.` is not expected"),
            ("row / 2", "unknown name `row`"),
            ("99999999999999999999", "does not fit"),
        ] {
            let error = Expression::parse(text, None).unwrap_err().error;
            assert!(error.contains(what), "{text}: {error}");
        }
        assert_eq!(
            Expression::parse("row", None).unwrap_err().hint.unwrap(),
            "did you mean `rows`?"
        );
        assert!(
            Expression::parse(&"(".repeat(1000), None)
                .unwrap_err()
                .error
                .contains("longer than")
        );
    }

    #[test]
    fn values_that_cannot_be_are_errors() {
        assert_eq!(
            Expression::parse("1 / (rows - rows)", None)
                .unwrap()
                .value(of(5)),
            Err("divides by zero")
        );
        assert_eq!(
            Expression::parse("rows * rows", None)
                .unwrap()
                .value(of(i64::MAX)),
            Err("is beyond 64 bits")
        );
    }
}
