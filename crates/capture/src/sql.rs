//! Files of statements as a capture: each statement that is written is one of the workload.

use crate::capture::{Capture, Counted, Header, MADE_BY, Source};
use crate::fingerprint::Fingerprint;
use crate::id::id;
use crate::kind::Nature;
use crate::lexer::{Token, TokenKind, tokens};
use crate::parts::statements;
use crate::session::path_set_by;
use crate::statement::{Protocol, Statement, Tuple, Unusable, Weight};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use std::path::{Path, PathBuf};

impl Capture {
    /// The statements of files, and of all files `*.sql` of directories, sorted by name.
    ///
    /// A statement ends at a semicolon. A comment `-- name: NAME` before it names it, else the file does;
    /// `-- weight: N` counts it as N calls, else it is one. `SET search_path` holds for the rest of its file.
    ///
    /// Errors: what cannot be read, is not UTF-8, has no statement, or has what only `psql` understands.
    pub fn of_sql(paths: &[&Path]) -> Result<Self, Problem> {
        let mut statements = Vec::new();
        let mut files = Vec::new();
        let mut lines = 0;
        for file in all_files(paths)? {
            let bytes = std::fs::read(&file).map_err(|error| unreadable(&file, &error))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let before = error
                    .as_bytes()
                    .iter()
                    .take(error.utf8_error().valid_up_to());
                let line = before.filter(|byte| **byte == b'\n').count() + 1;
                Problem::new(format!("{}:{line} is not UTF-8", file.display()))
                    .hint("convert the file: iconv -t UTF-8")
            })?;
            // Editors of Windows begin a file so. It is no part of the first statement.
            let text = text.trim_start_matches('\u{feff}');
            lines += count(text.lines().count());
            statements.extend(Written::new(&file, text).statements()?);
            files.push(file.display().to_string());
        }
        if statements.is_empty() {
            return Err(Problem::new("there is no statement in the files")
                .detail(files.join("\n"))
                .hint("a statement ends with a semicolon; files of a directory end in .sql"));
        }
        Ok(Self {
            header: Header {
                source: Source::Sql,
                files,
                made_by: MADE_BY.to_owned(),
                sample_rate: 1.0,
                counted: Counted {
                    lines,
                    executions: statements.iter().map(|statement| statement.calls).sum(),
                    ..Counted::default()
                },
                ..Header::default()
            },
            statements,
        })
    }

    /// A capture file, a file of statements (`.sql`), or a directory of such files.
    ///
    /// Errors: as [`Capture::read`] and [`Capture::of_sql`].
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let is_sql = path.extension().is_some_and(|ending| ending == "sql");
        if is_sql || path.is_dir() {
            return Self::of_sql(&[path]);
        }
        Self::read(path)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot read {}", path.display()))
        .detail(error.to_string())
        .hint("name a file of statements (.sql) or a directory with such files")
}

fn all_files(paths: &[&Path]) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.to_path_buf());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
        let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        inside.retain(|path| path.extension().is_some_and(|ending| ending == "sql"));
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// A file of statements.
struct Written<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Written<'a> {
    fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text }
    }

    fn statements(&self) -> Result<Vec<Statement>, Problem> {
        let found = tokens(self.text);
        if found.is_cut {
            let last = found.tokens.last().map_or(0, |token| token.at);
            return Err(self.refusal(last, "ends inside a string or comment"));
        }
        // The protocol ends a text there.
        if let Some(at) = self.text.find('\0') {
            return Err(self
                .refusal(at, "has a byte 0, which no statement can have")
                .hint("is it a text? `file` says what it is"));
        }
        if let Some(token) = found.tokens.iter().find(|token| token.text == "\\") {
            return Err(self
                .refusal(token.at, "is a command of psql")
                .hint("write plain SQL statements, each with a semicolon at its end"));
        }
        let parts = statements(&found.tokens);
        let several = parts.len() > 1;
        let mut path = None;
        let mut written = Vec::new();
        let mut before = 0;
        for (part, number) in parts.into_iter().zip(1..) {
            let (Some(first), Some(last)) = (part.first(), part.last()) else {
                continue;
            };
            let comments = self.text.get(before..first.at).unwrap_or_default();
            let end = last.at + last.text.len();
            let text = self.text.get(first.at..end).unwrap_or_default();
            before = end;
            if reads_data(part) {
                return Err(self
                    .refusal(first.at, "reads rows from the file")
                    .hint("load data with `--data` of `deltabench replay`"));
            }
            if let Some(set) = path_set_by(part) {
                path = set;
            }
            let number = several.then_some(number);
            let mut statement = self.statement((part, text), comments, number)?;
            statement.search_path.clone_from(&path);
            written.push(statement);
        }
        Ok(written)
    }

    fn statement(
        &self,
        (part, text): (&[Token<'_>], &str),
        comments: &str,
        number: Option<u32>,
    ) -> Result<Statement, Problem> {
        let at = part.first().map_or(0, |token| token.at);
        let name = noted(comments, "name").map_or_else(|| self.name(number), str::to_owned);
        let calls = match noted(comments, "weight").map(str::parse::<u64>) {
            None => 1,
            Some(Ok(calls)) if calls > 0 => calls,
            Some(_) => {
                return Err(self
                    .refusal(at, "has a weight that is no number of calls")
                    .hint("write a whole number above 0: -- weight: 3"));
            }
        };
        let fingerprint = Fingerprint::of(part);
        let nature = Nature::of(part);
        let without_values = part.iter().any(|token| token.kind == TokenKind::Parameter);
        let tuple = Tuple {
            text: None,
            values: Vec::new(),
            ms: None,
            n: to_f64(calls),
        };
        let replayed = nature.kind.is_replayed() && !without_values;
        Ok(Statement {
            id: id(&fingerprint.hash, &["file", &name]),
            name: Some(name),
            normalised: fingerprint.normalised,
            text: text.to_owned(),
            protocol: Protocol::Simple,
            role: None,
            database: None,
            search_path: None,
            kind: nature.kind,
            calls,
            total_ms: None,
            plan_ms: None,
            rows: None,
            weight: Weight::File,
            volatile: nature.volatile,
            query_ids: Vec::new(),
            errors: 0,
            unusable: Unusable {
                without_values: if without_values { calls } else { 0 },
                ..Unusable::default()
            },
            tuples: if replayed { vec![tuple] } else { Vec::new() },
        })
    }

    fn name(&self, number: Option<u32>) -> String {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        match number {
            Some(number) => format!("{stem}-{number}"),
            None => stem.into_owned(),
        }
    }

    fn refusal(&self, at: usize, what: &str) -> Problem {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Problem::new(format!("{}:{line} {what}", self.file.display()))
    }
}

/// `COPY … FROM STDIN`, whose rows follow in a script.
fn reads_data(part: &[Token<'_>]) -> bool {
    part.first().is_some_and(|first| first.is_word("copy"))
        && part.iter().any(|token| token.is_word("stdin"))
}

/// What a comment `-- key: value` says, the last one of several.
fn noted<'a>(comments: &'a str, key: &str) -> Option<&'a str> {
    let mut notes = comments.lines().filter_map(|line| {
        let (found, value) = line.trim().strip_prefix("--")?.split_once(':')?;
        (found.trim() == key).then(|| value.trim())
    });
    notes.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Kind, Obstacle};

    fn of_texts(texts: &[(&str, &str)]) -> Result<Capture, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in texts {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        Capture::open(directory.path()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn each_statement_of_a_directory_is_one_with_a_name() {
        let capture = of_texts(&[
            ("2.sql", "select 2\n"),
            (
                "10.sql",
                "-- name: first\n-- weight: 3\nselect 1;\n\nset search_path = 'a', \"B\";\n\
             select ';' from t;",
            ),
            ("README.md", "select 3;"),
        ])
        .unwrap();
        let names: Vec<_> = capture
            .statements
            .iter()
            .map(|s| s.name.clone().unwrap())
            .collect();
        assert_eq!(names, ["first", "10-2", "10-3", "2"]);
        let first = &capture.statements[0];
        assert_eq!((first.calls, first.text.as_str()), (3, "select 1"));
        assert_eq!(first.tuples.len(), 1);
        let third = &capture.statements[2];
        assert_eq!(third.text, "select ';' from t");
        assert_eq!(third.search_path.as_deref(), Some("'a', \"B\""));
        assert_eq!(capture.statements[1].kind, Kind::Utility);
        assert_eq!(capture.statements[3].search_path, None);
        assert_eq!(capture.header.counted.executions, 6);
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_part_of_the_first_statement() {
        let text = "\u{feff}-- name: path\r\nset search_path to app;\r\nselect 1;\r\n";
        let capture = of_texts(&[("a.sql", text), ("b.sql", "\u{feff}select 2")]).unwrap();
        let [path, one, two] = capture.statements.as_slice() else {
            panic!("{:?}", capture.statements);
        };
        assert_eq!(path.name.as_deref(), Some("path"));
        assert_eq!(one.search_path.as_deref(), Some("app"));
        assert_eq!((two.kind, two.text.as_str()), (Kind::Read, "select 2"));
    }

    #[test]
    fn statements_with_one_text_differ_by_name() {
        let capture = of_texts(&[("a.sql", "select 1"), ("b.sql", "select 2")]).unwrap();
        assert_eq!(
            capture.statements[0].normalised,
            capture.statements[1].normalised
        );
        assert_ne!(capture.statements[0].id, capture.statements[1].id);
    }

    #[test]
    fn parameters_without_values_are_an_obstacle() {
        let capture = of_texts(&[("a.sql", "select * from t where a = $1")]).unwrap();
        assert_eq!(capture.statements[0].obstacle(), Some(Obstacle::NoValues));
    }

    #[test]
    fn what_cannot_be_a_statement_is_refused_with_its_line() {
        let refused = |text: &str| of_texts(&[("a.sql", text)]).unwrap_err();
        assert!(refused("select 1;\n\\d t\n").contains("a.sql:2 is a command of psql"));
        assert!(refused("select 1;\nselect 'x").contains("a.sql:2 ends inside"));
        assert!(refused("-- weight: much\nselect 1").contains("a.sql:2 has a weight"));
        assert!(refused("copy t from stdin;\n").contains("a.sql:1 reads rows"));
        assert!(refused("select 1;\nselect 2\0;").contains("a.sql:2 has a byte 0"));
        assert!(refused("-- nothing\n").contains("no statement"));
        let missing = Capture::open(Path::new("/nowhere/a.sql")).unwrap_err();
        assert!(missing.to_string().contains("cannot read"));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sql");
        std::fs::write(&path, b"select 1;\nselect '\xe9'").unwrap();
        let problem = Capture::open(&path).unwrap_err().to_string();
        assert!(problem.contains("a.sql:2 is not UTF-8"), "{problem}");
    }
}
