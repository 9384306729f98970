//! SQL with `{table}` and `:name` placeholders, and its expansion to `$1 …`.

use deltabench_model::problem::{Problem, nearest};

/// What a name stands for, as far as its use in SQL matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar,
    /// So many placeholders, for `IN (…)`.
    List(u32),
    /// Two placeholders, `.from` and `.to`.
    Range,
}

/// A parameter that a template may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: Shape,
}

/// A statement before its table is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    /// Indices of its parameters, in the order in which they are drawn and their placeholders numbered.
    pub(crate) parameters: Vec<usize>,
    /// Whether it names the table.
    pub(crate) has_table: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Table,
    /// Consecutive placeholders, from this number (from 1).
    Placeholders {
        first: u32,
        count: u32,
    },
}

impl Template {
    /// Parses one statement.
    ///
    /// Shape: what stands between quotes is left alone; a parameter named twice has the same placeholders.
    pub(crate) fn parse(sql: &str, named: &[Named<'_>]) -> Result<Self, Problem> {
        let mut parser = Parser {
            named,
            rest: sql,
            text: String::new(),
            pieces: Vec::new(),
            used: Vec::new(),
        };
        parser.run()?;
        parser.finish()
    }

    /// The statement for a table.
    pub(crate) fn sql(&self, table: &str) -> String {
        let mut sql = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sql.push_str(text),
                Piece::Table => sql.push_str(table),
                Piece::Placeholders { first, count } => {
                    let numbers = (*first..first + count).map(|number| format!("${number}"));
                    sql.push_str(&numbers.collect::<Vec<_>>().join(", "));
                }
            }
        }
        sql
    }
}

/// A parameter met in the text.
struct Used {
    parameter: usize,
    first: u32,
    from: bool,
    to: bool,
}

struct Parser<'a> {
    named: &'a [Named<'a>],
    rest: &'a str,
    text: String,
    pieces: Vec<Piece>,
    used: Vec<Used>,
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<(), Problem> {
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                '\'' | '"' => self.quoted(letter)?,
                ':' if self.rest.starts_with("::") => self.copy(2),
                ':' if name_at(self.rest, 1).is_some() => self.placeholder()?,
                '{' => self.table()?,
                '$' => {
                    return Err(
                        Problem::new("`$` in SQL").hint("name the parameter: `:name`, not `$1`")
                    );
                }
                ';' => {
                    return Err(
                        Problem::new("`;` in SQL").hint("each statement is a separate [[step]]")
                    );
                }
                '-' if self.rest.starts_with("--") => return Err(comment()),
                '/' if self.rest.starts_with("/*") => return Err(comment()),
                _ => self.copy(letter.len_utf8()),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Template, Problem> {
        self.end_text();
        for used in &self.used {
            let Some(named) = self.named.get(used.parameter) else {
                continue;
            };
            if named.shape == Shape::Range && !(used.from && used.to) {
                let name = named.name;
                return Err(
                    Problem::new(format!("range `{name}` is used by one end only")).hint(format!(
                        "use both :{name}.from and :{name}.to, or a uniform parameter"
                    )),
                );
            }
        }
        let has_table = self.pieces.contains(&Piece::Table);
        let parameters = self.used.iter().map(|used| used.parameter).collect();
        Ok(Template {
            pieces: self.pieces,
            parameters,
            has_table,
        })
    }

    fn copy(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.text.push_str(taken);
        self.rest = rest;
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.pieces
                .push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), Problem> {
        let inside = self.rest.get(1..).unwrap_or_default();
        let end = inside
            .find(quote)
            .ok_or_else(|| Problem::new(format!("a {quote} in SQL is not closed")))?;
        self.copy(end + 2);
        Ok(())
    }

    fn table(&mut self) -> Result<(), Problem> {
        let Some(rest) = self.rest.strip_prefix("{table}") else {
            let end = self.rest.find('}').map_or(self.rest.len(), |end| end + 1);
            let found = self.rest.get(..end).unwrap_or_default();
            return Err(Problem::new(format!("`{found}` in SQL"))
                .hint("the only word in braces is {table}"));
        };
        self.rest = rest;
        self.end_text();
        self.pieces.push(Piece::Table);
        Ok(())
    }

    fn placeholder(&mut self) -> Result<(), Problem> {
        let name = name_at(self.rest, 1).unwrap_or_default();
        let after = self.rest.get(1 + name.len()..).unwrap_or_default();
        let part = if after.starts_with('.') {
            name_at(after, 1)
        } else {
            None
        };
        let parameter = self.named.iter().position(|named| named.name == name);
        let Some((parameter, shape)) = parameter.and_then(|p| Some((p, self.named.get(p)?.shape)))
        else {
            return Err(self.undefined(name));
        };
        let (first, used) = self.number(parameter);
        let (first, count) = match (shape, part) {
            (Shape::Range, Some("from")) => {
                used.from = true;
                (first, 1)
            }
            (Shape::Range, Some("to")) => {
                used.to = true;
                (first + 1, 1)
            }
            (Shape::Range, _) => {
                return Err(
                    Problem::new(format!("`:{name}` is a range and has two ends"))
                        .hint(format!("write :{name}.from or :{name}.to")),
                );
            }
            (_, Some(part)) => {
                return Err(
                    Problem::new(format!("`:{name}.{part}`: `{name}` is not a range"))
                        .hint(format!("write :{name}")),
                );
            }
            (Shape::Scalar, None) => (first, 1),
            (Shape::List(count), None) => {
                if !(in_list(&self.text) && after.trim_start().starts_with(')')) {
                    return Err(Problem::new(format!(
                        "`:{name}` is a list, but this place needs one value"
                    ))
                    .hint(format!(
                        "write IN (:{name}), or leave `count` out of the parameter"
                    )));
                }
                (first, count)
            }
        };
        self.end_text();
        self.pieces.push(Piece::Placeholders { first, count });
        let read = 1 + name.len() + part.map_or(0, |part| 1 + part.len());
        self.rest = self.rest.get(read..).unwrap_or_default();
        Ok(())
    }

    /// The first placeholder of a parameter: the one it has, or the next free one.
    fn number(&mut self, parameter: usize) -> (u32, &mut Used) {
        let width = |used: &Used| match self.named.get(used.parameter).map(|named| named.shape) {
            Some(Shape::List(count)) => count,
            Some(Shape::Range) => 2,
            _ => 1,
        };
        let free = self
            .used
            .last()
            .map_or(1, |last| last.first.saturating_add(width(last)));
        let place = self
            .used
            .iter()
            .position(|used| used.parameter == parameter)
            .unwrap_or_else(|| {
                self.used.push(Used {
                    parameter,
                    first: free,
                    from: false,
                    to: false,
                });
                self.used.len() - 1
            });
        #[allow(clippy::indexing_slicing)] // found or pushed just above
        let used = &mut self.used[place];
        (used.first, used)
    }

    fn undefined(&self, name: &str) -> Problem {
        let known: Vec<&str> = self.named.iter().map(|named| named.name).collect();
        let detail = if known.is_empty() {
            "none is".to_owned()
        } else {
            known.join(", ")
        };
        let problem = Problem::new(format!("parameter `:{name}` is not defined"))
            .detail(format!("defined: {detail}"));
        match nearest(name, known) {
            Some(near) => problem.hint(format!("did you mean `:{near}`?")),
            None => problem.hint(format!("add a [parameter.{name}]")),
        }
    }
}

fn comment() -> Problem {
    Problem::new("a comment in SQL").hint("put comments into the TOML, after #")
}

/// Whether SQL text ends with `IN (`.
fn in_list(text: &str) -> bool {
    let Some(before) = text.trim_end().strip_suffix('(') else {
        return false;
    };
    let before = before.trim_end().to_ascii_lowercase();
    before
        .strip_suffix("in")
        .is_some_and(|rest| !rest.ends_with(|letter: char| letter.is_alphanumeric()))
}

/// The name that starts at byte `at`, if one does.
fn name_at(text: &str, at: usize) -> Option<&str> {
    let text = text.get(at..)?;
    if !text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
        return None;
    }
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .unwrap_or(text.len());
    text.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: [Named<'static>; 4] = [
        Named {
            name: "id",
            shape: Shape::Scalar,
        },
        Named {
            name: "ids",
            shape: Shape::List(3),
        },
        Named {
            name: "span",
            shape: Shape::Range,
        },
        Named {
            name: "text",
            shape: Shape::Scalar,
        },
    ];

    fn expanded(sql: &str) -> String {
        Template::parse(sql, &NAMED).unwrap().sql("t1")
    }

    fn refused(sql: &str) -> String {
        Template::parse(sql, &NAMED).unwrap_err().to_string()
    }

    #[test]
    fn placeholders_are_numbered_as_they_come() {
        assert_eq!(
            expanded(
                "UPDATE {table} SET c=:text WHERE id IN (:ids) OR k BETWEEN :span.from AND :span.to OR :id"
            ),
            "UPDATE t1 SET c=$1 WHERE id IN ($2, $3, $4) OR k BETWEEN $5 AND $6 OR $7"
        );
        let template = Template::parse("SELECT :text WHERE :id in ( :ids )", &NAMED).unwrap();
        assert_eq!(template.parameters, [3, 0, 1]);
        assert!(!template.has_table);
    }

    #[test]
    fn a_parameter_named_twice_keeps_its_placeholder() {
        assert_eq!(expanded("SELECT :id, :text, :id"), "SELECT $1, $2, $1");
        assert_eq!(
            expanded("k <= :span.to AND k >= :span.from AND j > :id"),
            "k <= $2 AND k >= $1 AND j > $3"
        );
    }

    #[test]
    fn quotes_casts_and_slices_are_left_alone() {
        for sql in [
            "SELECT ':id {x} $1 ; --'",
            "SELECT \":id\"",
            "SELECT '1'::int",
            "SELECT a[1:2]",
            "SELECT 'it''s'",
        ] {
            assert_eq!(expanded(sql), sql);
        }
    }

    #[test]
    fn misuse_says_what_to_write() {
        for (sql, what) in [
            ("WHERE id = :ids", "`:ids` is a list"),
            ("WHERE id IN (:ids, 1)", "`:ids` is a list"),
            ("WHERE id = ANY(:ids)", "`:ids` is a list"),
            ("WHERE id BETWEEN :span", "write :span.from or :span.to"),
            (
                "WHERE id BETWEEN :span.form AND 1",
                "write :span.from or :span.to",
            ),
            ("WHERE id = :span.from", "by one end only"),
            ("WHERE id = :id.from", "`id` is not a range"),
            ("WHERE id = :idd", "did you mean `:id`?"),
            ("WHERE id = :something", "add a [parameter.something]"),
            ("WHERE id = $1", "name the parameter"),
            ("SELECT 1; SELECT 2", "separate [[step]]"),
            ("SELECT 1 -- one", "comment"),
            ("SELECT /* one */ 1", "comment"),
            ("SELECT 'open", "not closed"),
            ("FROM {tabel}", "`{tabel}` in SQL"),
        ] {
            let problem = refused(sql);
            assert!(problem.contains(what), "{sql}: {problem}");
        }
    }
}
