//! A script cut into SQL commands, as psql's lexer does it: quotes, dollar quotes, comments, brackets and
//! `begin … end` of a function's body hide what would end a command.

use super::parser::{continuation, is_name_letter};
use deltabench_model::problem::Problem;
use std::ops::Range;

/// A place in a script, for problems.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// What the file is called.
    pub(crate) file: &'a str,
    /// The whole script.
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// The line of this byte, from 1.
    pub(crate) fn line(self, at: usize) -> u32 {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let ends = before.iter().filter(|&&byte| byte == b'\n').count();
        u32::try_from(ends).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A problem at this byte; it shows the line, and a mark below the letter if `marked`.
    pub(crate) fn problem(self, at: usize, what: &str, marked: bool) -> Problem {
        let at = at.min(self.text.len());
        let before = self.text.get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let mut detail = line.trim_end().replace('\t', " ");
        if marked {
            let column = self.text.get(start..at).unwrap_or_default().chars().count();
            detail = format!("{detail}\n{:column$}^", "");
        }
        let what = format!("{}:{}: {what}", self.file, self.line(at));
        Problem::new(what).detail(detail)
    }
}

/// Text of SQL that is not plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opaque {
    /// Within quotes of any kind.
    Quotes,
    Comment,
}

/// An SQL command as it is sent, before variables are looked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sql {
    pub(crate) text: String,
    /// Byte of the script at which it begins.
    pub(crate) at: usize,
    /// Parts of the text that are quotes or comments.
    pub(crate) opaque: Vec<(Range<usize>, Opaque)>,
    /// The words outside of quotes, in lower case, of each statement; `\;` begins another one. A bracket that
    /// opens is a word too.
    pub(crate) statements: Vec<Vec<String>>,
}

/// What ended an SQL command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Semicolon,
    /// A backslash, which begins a meta command; the byte of it.
    Backslash(usize),
    Script,
}

/// The place in a script up to which it has been cut.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    source: Source<'a>,
    /// Byte of the script.
    pub(crate) at: usize,
    brackets: u32,
    /// `begin` and `case` of a function's body that are open.
    bodies: u32,
    /// The first words of the statement, outside of brackets.
    first: Vec<String>,
}

/// How many first words say whether a statement makes a function.
const FIRST: usize = 4;

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self {
            source,
            at: 0,
            brackets: 0,
            bodies: 0,
            first: Vec::new(),
        }
    }

    fn rest(&self) -> &'a str {
        self.source.text.get(self.at..).unwrap_or_default()
    }

    /// The next SQL command, which may be empty, and what ended it.
    ///
    /// Errors: quotes or brackets that are not closed, psql's `:'name'`.
    pub(crate) fn command(&mut self) -> Result<(Sql, End), Problem> {
        let mut sql = Sql {
            statements: vec![Vec::new()],
            at: self.at,
            ..Sql::default()
        };
        loop {
            if sql.text.is_empty() {
                sql.at = self.at;
            }
            if self.rest().is_empty() {
                return self.finished(sql, End::Script);
            }
            if let Some(end) = self.piece(&mut sql)? {
                return self.finished(sql, end);
            }
        }
    }

    fn finished(&self, sql: Sql, end: End) -> Result<(Sql, End), Problem> {
        let open = self.brackets > 0 || self.bodies > 0;
        if open && end != End::Semicolon {
            let what =
                "the statement is not complete: a bracket, or the body of a function, is open";
            return Err(self.source.problem(sql.at, what, false));
        }
        Ok((sql, end))
    }

    /// Takes the next bytes.
    fn take(&mut self, sql: &mut Sql, length: usize) {
        let taken = self.rest().get(..length).unwrap_or_default();
        sql.text.push_str(taken);
        self.at += length;
    }

    /// Takes the next bytes, which are quotes or a comment.
    fn take_opaque(&mut self, sql: &mut Sql, length: usize, kind: Opaque) {
        let start = sql.text.len();
        self.take(sql, length);
        sql.opaque.push((start..sql.text.len(), kind));
    }

    /// Takes one token, or says what ends the command.
    fn piece(&mut self, sql: &mut Sql) -> Result<Option<End>, Problem> {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            ' ' | '\t' | '\n' | '\r' | '\x0c' | '\x0b' if sql.text.is_empty() => self.at += 1,
            '-' if rest.starts_with("--") => {
                let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
                if sql.text.is_empty() {
                    self.at += length;
                } else {
                    self.take_opaque(sql, length, Opaque::Comment);
                }
            }
            '/' if rest.starts_with("/*") => {
                let length = comment_length(rest).ok_or_else(|| self.open("comment"))?;
                self.take_opaque(sql, length, Opaque::Comment);
            }
            '\'' => self.string(sql, 0, false)?,
            '"' => self.identifier(sql, 0)?,
            '$' => self.dollar(sql)?,
            '(' => {
                self.brackets += 1;
                word(sql, "(");
                self.take(sql, 1);
            }
            ')' => {
                self.brackets = self.brackets.saturating_sub(1);
                self.take(sql, 1);
            }
            ';' => {
                self.take(sql, 1);
                if self.brackets == 0 && self.bodies == 0 {
                    self.first.clear();
                    return Ok(Some(End::Semicolon));
                }
            }
            '\\' => return Ok(self.backslash(sql)),
            ':' => self.colon(sql)?,
            letter if is_name_letter(letter) => self.name(sql, letter)?,
            other => self.take(sql, other.len_utf8()),
        }
        Ok(None)
    }

    fn open(&self, what: &str) -> Problem {
        let what = format!("a {what} begins here and does not end");
        self.source.problem(self.at, &what, true)
    }

    /// A string from its quote, which stands after `prefix` bytes.
    fn string(&mut self, sql: &mut Sql, prefix: usize, escapes: bool) -> Result<(), Problem> {
        let length = string_length(self.rest().get(prefix..).unwrap_or_default(), escapes);
        let length = length.ok_or_else(|| self.open("quoted string"))?;
        self.take_opaque(sql, prefix + length, Opaque::Quotes);
        Ok(())
    }

    /// A quoted identifier from its quote, which stands after `prefix` bytes.
    fn identifier(&mut self, sql: &mut Sql, prefix: usize) -> Result<(), Problem> {
        let rest = self.rest().get(prefix + 1..).unwrap_or_default();
        // A doubled quote ends one and begins another, which comes to the same.
        let end = rest
            .find('"')
            .ok_or_else(|| self.open("quoted identifier"))?;
        word(sql, "\"");
        self.take_opaque(sql, prefix + end + 2, Opaque::Quotes);
        Ok(())
    }

    /// `$tag$ … $tag$`, `$1`, or a lone `$`.
    fn dollar(&mut self, sql: &mut Sql) -> Result<(), Problem> {
        let rest = self.rest();
        let after = rest.get(1..).unwrap_or_default();
        let tag = name_length(after);
        let is_tag = !after.starts_with(|first: char| first.is_ascii_digit());
        if !is_tag || !after.get(tag..).unwrap_or_default().starts_with('$') {
            // A parameter takes all letters after it, so that no tag begins among them.
            let length = if is_tag { 0 } else { identifier_length(after) };
            self.take(sql, 1 + length);
            return Ok(());
        }
        let mark = rest.get(..tag + 2).unwrap_or_default();
        let inside = rest.get(mark.len()..).unwrap_or_default();
        let end = inside.find(mark).ok_or_else(|| self.open("dollar quote"))?;
        self.take_opaque(sql, end + 2 * mark.len(), Opaque::Quotes);
        Ok(())
    }

    fn backslash(&mut self, sql: &mut Sql) -> Option<End> {
        let rest = self.rest();
        match rest.as_bytes().get(1) {
            Some(b';') => {
                sql.text.push(';');
                self.at += 2;
                if self.brackets == 0 && self.bodies == 0 {
                    self.first.clear();
                    sql.statements.push(Vec::new());
                }
                None
            }
            Some(b':') => {
                sql.text.push(':');
                self.at += 2;
                None
            }
            _ => {
                self.at += 1;
                Some(End::Backslash(self.at - 1))
            }
        }
    }

    fn colon(&mut self, sql: &mut Sql) -> Result<(), Problem> {
        let rest = self.rest();
        if rest.starts_with("::") || rest.starts_with(":=") {
            self.take(sql, 2);
            return Ok(());
        }
        let after = rest.get(1..).unwrap_or_default();
        let quote = after
            .chars()
            .next()
            .filter(|first| matches!(first, '\'' | '"'));
        if let Some(quote) = quote {
            let name = name_length(after.get(1..).unwrap_or_default());
            let closed = after.get(1 + name..).unwrap_or_default().starts_with(quote);
            if name > 0 && closed {
                let found = rest.get(..name + 3).unwrap_or_default();
                let what = format!("`{found}` is psql's, pgbench does not quote variables");
                return Err(self
                    .source
                    .problem(self.at, &what, true)
                    .hint("in simple mode write the quotes around it: ':name'"));
            }
        }
        self.take(sql, 1 + name_length(after));
        Ok(())
    }

    /// A name or a number, and the string that a letter may begin.
    fn name(&mut self, sql: &mut Sql, first: char) -> Result<(), Problem> {
        let rest = self.rest();
        let is_quote =
            |at: usize, quote: char| rest.get(at..).is_some_and(|r| r.starts_with(quote));
        if is_quote(1, '\'') && "bBxXnNeE".contains(first) {
            return self.string(sql, 1, matches!(first, 'e' | 'E'));
        }
        if matches!(first, 'u' | 'U') && rest.get(1..).is_some_and(|rest| rest.starts_with('&')) {
            if is_quote(2, '\'') {
                return self.string(sql, 2, false);
            }
            if is_quote(2, '"') {
                return self.identifier(sql, 2);
            }
        }
        let length = identifier_length(rest);
        let name = rest.get(..length).unwrap_or_default().to_ascii_lowercase();
        if !first.is_ascii_digit() {
            self.body(&name);
        }
        word(sql, &name);
        self.take(sql, length);
        Ok(())
    }

    /// Counts `begin` and `end` of the body of a function that is being made.
    fn body(&mut self, name: &str) {
        if self.brackets > 0 {
            return;
        }
        if self.first.len() < FIRST {
            self.first.push(name.to_owned());
        }
        let words: Vec<&str> = self.first.iter().map(String::as_str).collect();
        let makes = matches!(
            words.as_slice(),
            ["create", "function" | "procedure", ..]
                | ["create", "or", "replace", "function" | "procedure", ..]
        );
        match name {
            "begin" if makes => self.bodies += 1,
            "case" if makes && self.bodies > 0 => self.bodies += 1,
            "end" if makes => self.bodies = self.bodies.saturating_sub(1),
            _ => {}
        }
    }

    /// The next word of a meta command, and the byte at which it begins; none at the end of its line, which
    /// is taken then.
    pub(crate) fn word(&mut self) -> Option<(&'a str, usize)> {
        let space = |letter: char| matches!(letter, ' ' | '\t' | '\r' | '\x0c' | '\x0b');
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if first == '\n' {
                self.at += 1;
                return None;
            } else if space(first) {
                self.at += 1;
            } else if let Some(length) = continuation(rest) {
                self.at += length;
            } else {
                let end = rest.find(|letter| space(letter) || letter == '\n');
                let found = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                // A continuation may follow directly.
                let before = found.strip_suffix('\\').filter(|before| {
                    let mark = rest.get(before.len()..).unwrap_or_default();
                    continuation(mark).is_some()
                });
                let found = before.unwrap_or(found);
                self.at += found.len();
                return Some((found, self.at - found.len()));
            }
        }
    }
}

/// Adds a word to the statement.
fn word(sql: &mut Sql, word: &str) {
    if let Some(words) = sql.statements.last_mut() {
        words.push(word.to_owned());
    }
}

/// Bytes of the name that the text begins with.
pub(crate) fn name_length(text: &str) -> usize {
    text.find(|letter| !is_name_letter(letter))
        .unwrap_or(text.len())
}

/// Bytes of the identifier, in which `$` may stand, that the text begins with.
fn identifier_length(text: &str) -> usize {
    text.find(|letter| !(is_name_letter(letter) || letter == '$'))
        .unwrap_or(text.len())
}

/// Bytes of a comment, in which others may stand.
fn comment_length(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

/// Bytes of a string from its quote, with the strings that continue it on the next lines.
fn string_length(text: &str, escapes: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let letter = rest.chars().next()?;
        at += letter.len_utf8();
        match letter {
            '\\' if escapes => at += text.get(at..)?.chars().next()?.len_utf8(),
            '\'' if text.get(at..)?.starts_with('\'') => at += 1,
            '\'' => match continued(text.get(at..)?) {
                Some(length) => at += length,
                None => return Some(at),
            },
            _ => {}
        }
    }
}

/// Bytes up to and with the quote of a string that continues one: between them are spaces with a newline.
fn continued(text: &str) -> Option<usize> {
    let mut at = 0;
    let mut newline = false;
    loop {
        let rest = text.get(at..)?;
        let letter = rest.chars().next()?;
        match letter {
            '\n' | '\r' => newline = true,
            ' ' | '\t' | '\x0c' | '\x0b' => {}
            '-' if rest.starts_with("--") => {
                at += rest.find(['\n', '\r'])?;
                continue;
            }
            '\'' if newline => return Some(at + 1),
            _ => return None,
        }
        at += letter.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(String, End)> {
        let mut scanner = Scanner::new(Source {
            file: "f.sql",
            text,
        });
        let mut commands = Vec::new();
        loop {
            let (sql, end) = scanner.command().unwrap();
            commands.push((sql.text, end));
            match end {
                End::Script => return commands,
                End::Backslash(_) => while scanner.word().is_some() {},
                End::Semicolon => {}
            }
        }
    }

    fn statements(text: &str) -> Vec<String> {
        let texts = cut(text).into_iter().map(|(text, _)| text);
        texts.filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn only_a_semicolon_outside_of_everything_ends_a_statement() {
        for whole in [
            "select ';';",
            "select 'it''s;';",
            "select e'\\';';",
            "select \"a;\"\"b\";",
            "select $$;$$;",
            "select $a$;$$;$b$;$a$;",
            "select (1;2);",
            "select 1 -- ;\n+ 2;",
            "select /* ; /* ; */ ; */ 1;",
            "select 1 +/* ; */ 2;",
            "select 'a'\n  -- ;\n  ';';",
            "select b'1;', x'f;', n'a;', u&';', u&\";\";",
            "select a$b$c;",
            "select $1a$b$;",
            "create function f() returns int begin atomic select 1; select case when true then 2 end; end;",
            "create or replace procedure p() begin atomic insert into t values (1); end;",
            "select 1::int, array[1,2][1:2], ':x';",
            ";",
        ] {
            assert_eq!(statements(whole), [whole]);
            assert_eq!(cut(whole).len(), 2, "{whole}");
        }
        assert_eq!(
            statements("begin;\nselect 1 ;end;"),
            ["begin;", "select 1 ;", "end;"]
        );
        assert_eq!(
            statements("select 'a' 'b;' ; x"),
            ["select 'a' 'b;' ;", "x"]
        );
        assert_eq!(
            statements("select typee'a;'; b"),
            ["select typee'a;';", "b"]
        );
    }

    #[test]
    fn spaces_and_comments_before_a_statement_are_left_out() {
        assert_eq!(
            statements("-- one;\n\n  -- two\n select 1; -- three"),
            ["select 1;"]
        );
        assert_eq!(statements("/* kept */ select 1;"), ["/* kept */ select 1;"]);
    }

    #[test]
    fn a_backslash_ends_a_statement_or_joins_two() {
        assert_eq!(
            statements("select 1\n\\set x 1\nselect 2;"),
            ["select 1\n", "select 2;"]
        );
        let joined = "select 1\\; select 2 \\;;";
        assert_eq!(statements(joined), ["select 1; select 2 ;;"]);
        let mut scanner = Scanner::new(Source {
            file: "f",
            text: joined,
        });
        assert_eq!(scanner.command().unwrap().0.statements.len(), 3);
        assert_eq!(statements("select a\\:b;"), ["select a:b;"]);
    }

    #[test]
    fn words_of_a_meta_command_end_with_its_line() {
        let text = "\\set x\\\n 1 \\\r\n+2\\3  \t\nselect";
        let mut scanner = Scanner::new(Source { file: "f", text });
        scanner.command().unwrap();
        let mut words = Vec::new();
        while let Some((word, at)) = scanner.word() {
            assert!(text[at..].starts_with(word));
            words.push(word);
        }
        assert_eq!(words, ["set", "x", "1", "+2\\3"]);
        assert_eq!(scanner.rest(), "select");
    }

    #[test]
    fn what_is_open_is_refused_with_its_line() {
        for (text, line, what) in [
            ("select 1;\nselect 'a", 2, "quoted string"),
            ("select e'\\'", 1, "quoted string"),
            ("\nselect \"a", 2, "quoted identifier"),
            ("select $a$ $b$", 1, "dollar quote"),
            ("select 1;\n/* /* */", 2, "comment"),
            ("select 1;\n\nselect (1;", 3, "a bracket"),
            ("select (1\n\\set x 1", 1, "a bracket"),
            ("select 1;\nselect :'a'", 2, "`:'a'` is psql's"),
            ("select :\"a\"", 1, "`:\"a\"` is psql's"),
        ] {
            let mut scanner = Scanner::new(Source {
                file: "f.sql",
                text,
            });
            let problem = loop {
                match scanner.command() {
                    Ok(_) => {}
                    Err(problem) => break problem,
                }
            };
            let begin = format!("f.sql:{line}: ");
            assert!(problem.error.starts_with(&begin), "{text}: {problem}");
            assert!(problem.error.contains(what), "{text}: {problem}");
        }
    }
}
