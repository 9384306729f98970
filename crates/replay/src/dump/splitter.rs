//! The statements of a dump, one at a time, as psql would find them.
//!
//! Memory is bounded by the longest statement; the data of a COPY is given out in pieces.
//!
//! Source: PostgreSQL manual, "Lexical Structure" and "psql"; `psqlscan.l` for bodies of SQL functions.

use super::error::DumpError;
use super::scan::{Bytes, End, LONGEST, begins_word, beyond_comment, beyond_dollar, in_word};
use std::io::Read;

/// Bytes that are read at a time.
const READ: usize = 256 << 10;
/// Data of a COPY that is given out at a time, or a row more.
const COPY_PIECE: usize = 64 << 10;

/// A part of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A comment of one line between statements, without its dashes.
    Comment(String),
    /// A statement without its semicolon.
    Statement {
        /// In the dump's own encoding.
        sql: Vec<u8>,
        /// Where it begins, from 1.
        line: u64,
    },
    /// A command of psql with its arguments, without the backslash.
    Command {
        text: String,
        /// Where it is, from 1.
        line: u64,
    },
}

/// Splits a dump.
#[derive(Debug)]
pub struct Splitter<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where in the buffer the next piece begins.
    start: usize,
    ended: bool,
    line: u64,
    /// Whether a backslash escapes in plain strings, as with `standard_conforming_strings = off`.
    escapes: bool,
}

/// A byte of the buffer, which grows as far as needed.
impl<R: Read> Bytes for Splitter<R> {
    type Error = DumpError;

    fn byte(&mut self, at: usize) -> Result<Option<u8>, DumpError> {
        while at >= self.buffer.len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        Ok(self.buffer.get(at).copied())
    }
}

impl<R: Read> Splitter<R> {
    /// Splits what `input` gives.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            ended: false,
            line: 1,
            escapes: false,
        }
    }

    /// Whether plain strings have escapes from here on.
    pub fn set_escapes(&mut self, escapes: bool) {
        self.escapes = escapes;
    }

    /// The next piece; absent at the end.
    ///
    /// Errors: the file cannot be read or ends within a string, a statement that is too long.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, DumpError> {
        self.compact();
        if self.line == 1 && self.start == 0 {
            self.check_beginning()?;
        }
        let mut at = self.start;
        while self
            .byte(at)?
            .is_some_and(|byte| byte.is_ascii_whitespace())
        {
            at += 1;
        }
        self.take(at);
        match (self.byte(at)?, self.byte(at + 1)?) {
            (None, _) => Ok(None),
            (Some(b'-'), Some(b'-')) => {
                let text = self.rest_of_line(at + 2)?;
                Ok(Some(Piece::Comment(text.trim().to_owned())))
            }
            (Some(b'\\'), _) => {
                let line = self.line;
                let text = self.rest_of_line(at + 1)?;
                Ok(Some(Piece::Command {
                    text: text.trim().to_owned(),
                    line,
                }))
            }
            _ => self.statement().map(Some),
        }
    }

    /// Appends data of the COPY whose statement was the piece before to `out`, whole rows; false if it has
    /// ended.
    ///
    /// Errors: the file cannot be read, or ends before the data does.
    pub fn copy_data(&mut self, out: &mut Vec<u8>) -> Result<bool, DumpError> {
        self.compact();
        // How far a row without an end has been searched.
        let mut searched = 0;
        loop {
            let pending = self.buffer.get(self.start..).unwrap_or_default();
            let unread = pending.get(searched..).unwrap_or_default();
            let end = unread.iter().position(|byte| *byte == b'\n');
            let Some(length) = end.map(|end| searched + end) else {
                searched = pending.len();
                if pending.len() > LONGEST {
                    return Err(DumpError::TooLong { line: self.line });
                }
                if pending == b"\\." {
                    self.take(self.buffer.len());
                    return Ok(false);
                }
                if !self.fill()? {
                    return Err(DumpError::CutData { line: self.line });
                }
                continue;
            };
            searched = 0;
            let row = pending.get(..=length).unwrap_or_default();
            self.line += 1;
            self.start += length + 1;
            if matches!(row, b"\\.\n" | b"\\.\r\n") {
                return Ok(false);
            }
            out.extend_from_slice(row);
            if out.len() >= COPY_PIECE {
                return Ok(true);
            }
        }
    }

    /// Leaves out what is left of the line of a COPY statement.
    ///
    /// Errors: the file cannot be read.
    pub fn skip_line(&mut self) -> Result<(), DumpError> {
        self.rest_of_line(self.start).map(drop)
    }

    /// Reads more; false at the end of the file.
    fn fill(&mut self) -> Result<bool, DumpError> {
        if self.ended {
            return Ok(false);
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ, 0);
        let room = self.buffer.get_mut(filled..).unwrap_or_default();
        let read = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        let read = read.map_err(DumpError::Read)?;
        self.ended = read == 0;
        Ok(read > 0)
    }

    /// Forgets what has been given out, once it is worth the copying.
    fn compact(&mut self) {
        if self.start > READ && self.start * 2 > self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Counts everything before `at` as given out.
    fn take(&mut self, at: usize) {
        let taken = self.buffer.get(self.start..at).unwrap_or_default();
        let lines = taken.iter().filter(|byte| **byte == b'\n').count();
        self.line += u64::try_from(lines).unwrap_or(u64::MAX);
        self.start = at;
    }

    /// What stands between `from` and the end of the line, which is given out with its end.
    fn rest_of_line(&mut self, from: usize) -> Result<String, DumpError> {
        let mut at = from;
        while self.byte(at)?.is_some_and(|byte| byte != b'\n') {
            at += 1;
        }
        let text = self.buffer.get(from..at).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        self.take((at + 1).min(self.buffer.len()));
        Ok(text)
    }

    /// Refuses encodings in which statements cannot be found, and passes over a mark of UTF-8.
    fn check_beginning(&mut self) -> Result<(), DumpError> {
        let first = [self.byte(0)?, self.byte(1)?, self.byte(2)?];
        match first {
            [Some(0xff), Some(0xfe), _] | [Some(0xfe), Some(0xff), _] => Err(DumpError::Utf16),
            [Some(0xef), Some(0xbb), Some(0xbf)] => {
                self.start = 3;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The statement that begins here.
    fn statement(&mut self) -> Result<Piece, DumpError> {
        let (from, line) = (self.start, self.line);
        let mut shape = Shape::default();
        let mut at = from;
        loop {
            if at - from > LONGEST {
                return Err(DumpError::TooLong { line });
            }
            let Some(byte) = self.byte(at)? else {
                return Ok(self.give_out(from, (at, at), line));
            };
            at = match (byte, self.byte(at + 1)?) {
                (b';', _) if shape.at_top() => {
                    return Ok(self.give_out(from, (at, at + 1), line));
                }
                (b'-', Some(b'-')) => self.beyond_line(at)?,
                (b'/', Some(b'*')) => Self::ended(beyond_comment(self, at)?, line)?,
                (b'\'', _) => self.beyond_string(at, self.escapes, line)?,
                (b'"', _) => self.beyond(at + 1, b'"', line)?,
                (b'e' | b'E', Some(b'\'')) => self.beyond_string(at + 1, true, line)?,
                (b'$', _) => Self::ended(beyond_dollar(self, at)?, line)?,
                (b'(', _) => shape.open(at),
                (b')', _) => shape.close(at),
                (b'\\', _) => {
                    let here = self.line_at(at);
                    let text = self.rest_of_line(at)?;
                    let text = text.split_whitespace().next().unwrap_or_default();
                    return Err(DumpError::Command {
                        command: text.to_owned(),
                        line: here,
                    });
                }
                (byte, _) if begins_word(byte) => {
                    let end = self.beyond_word(at)?;
                    shape.word(self.buffer.get(at..end).unwrap_or_default());
                    end
                }
                (byte, _) if byte.is_ascii_digit() => self.beyond_word(at)?,
                _ => at + 1,
            };
        }
    }

    fn give_out(&mut self, from: usize, (end, next): (usize, usize), line: u64) -> Piece {
        let sql = self.buffer.get(from..end).unwrap_or_default();
        let sql = sql.trim_ascii_end().to_vec();
        self.take(next);
        Piece::Statement { sql, line }
    }

    fn line_at(&self, at: usize) -> u64 {
        let before = self.buffer.get(self.start..at).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        self.line + u64::try_from(lines).unwrap_or(u64::MAX)
    }

    fn beyond_line(&mut self, from: usize) -> Result<usize, DumpError> {
        let mut at = from;
        while self.byte(at)?.is_some_and(|byte| byte != b'\n') {
            at += 1;
        }
        Ok(at)
    }

    /// Where a comment or a string ends that begins in this line.
    fn ended(end: End, line: u64) -> Result<usize, DumpError> {
        match end {
            End::At(end) => Ok(end),
            End::Open => Err(DumpError::Cut { line }),
            End::TooLong => Err(DumpError::TooLong { line }),
        }
    }

    /// Behind the string whose quote is at `from`.
    fn beyond_string(&mut self, from: usize, escapes: bool, line: u64) -> Result<usize, DumpError> {
        if !escapes {
            return self.beyond(from + 1, b'\'', line);
        }
        let mut at = from + 1;
        loop {
            match self.byte(at)? {
                Some(b'\\') => at += 2,
                Some(b'\'') if self.byte(at + 1)? == Some(b'\'') => at += 2,
                Some(b'\'') => return Ok(at + 1),
                Some(_) => at += 1,
                None => return Err(DumpError::Cut { line }),
            }
            if at - from > LONGEST {
                return Err(DumpError::TooLong { line });
            }
        }
    }

    /// Behind the next quote that is not doubled.
    fn beyond(&mut self, from: usize, quote: u8, line: u64) -> Result<usize, DumpError> {
        let mut at = from;
        loop {
            let pending = self.buffer.get(at..).unwrap_or_default();
            match pending.iter().position(|byte| *byte == quote) {
                Some(length) if self.byte(at + length + 1)? == Some(quote) => at += length + 2,
                Some(length) => return Ok(at + length + 1),
                None => {
                    at = self.buffer.len().max(at);
                    if self.byte(at)?.is_none() {
                        return Err(DumpError::Cut { line });
                    }
                }
            }
            if at - from > LONGEST {
                return Err(DumpError::TooLong { line });
            }
        }
    }

    fn beyond_word(&mut self, from: usize) -> Result<usize, DumpError> {
        let mut at = from;
        while self.byte(at)?.is_some_and(in_word) {
            at += 1;
        }
        Ok(at)
    }
}

/// Whether a semicolon would end the statement: outside of parentheses and of the body of an SQL function.
#[derive(Debug, Default)]
struct Shape {
    parentheses: u32,
    /// First letters of the words that the statement begins with.
    beginning: Vec<u8>,
    /// Blocks that are open in the body of a function.
    blocks: u32,
}

impl Shape {
    fn at_top(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn open(&mut self, at: usize) -> usize {
        self.parentheses += 1;
        at + 1
    }

    fn close(&mut self, at: usize) -> usize {
        self.parentheses = self.parentheses.saturating_sub(1);
        at + 1
    }

    fn word(&mut self, word: &[u8]) {
        const BEGINNING: usize = 4;
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted.as_bytes());
        if self.beginning.len() < BEGINNING {
            let known = ["create", "or", "replace", "function", "procedure"];
            let letter = known.iter().find(|name| is(name));
            let letter = letter.and_then(|name| name.as_bytes().first());
            self.beginning.push(letter.copied().unwrap_or(b' '));
        }
        let makes_function = matches!(
            self.beginning.as_slice(),
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p', ..]
        );
        if !makes_function || self.parentheses > 0 {
            return;
        }
        if is("begin") || (is("case") && self.blocks > 0) {
            self.blocks += 1;
        } else if is("end") {
            self.blocks = self.blocks.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives out a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(room.len());
            let (given, rest) = self.0.split_at(length);
            room[..length].copy_from_slice(given);
            self.0 = rest;
            Ok(length)
        }
    }

    fn split(text: &str, drops: usize) -> Vec<String> {
        let mut splitter = Splitter::new(Drops(text.as_bytes(), drops));
        let mut found = Vec::new();
        while let Some(piece) = splitter.next_piece().unwrap() {
            match piece {
                Piece::Statement { sql, .. } => found.push(String::from_utf8(sql).unwrap()),
                Piece::Comment(text) => found.push(format!("-- {text}")),
                Piece::Command { text, .. } => found.push(format!("\\{text}")),
            }
        }
        found
    }

    #[test]
    fn semicolons_in_strings_names_comments_and_bodies_end_nothing() {
        let whole = [
            "select ';', 'it''s;', E'\\';', \"a;\"\"b\", e'\\\\'",
            "select $$;$$, $a$;$b$;$a$, $1, a$b$c",
            "select 1 /* ; /* ; */ ; */ -- ;\n, 2",
            "create rule r as on insert to t do (select 1; select 2)",
            "create or replace function f() returns int language sql begin atomic select 1; \
             select case when true then 1 end; end",
            "CREATE PROCEDURE p() BEGIN ATOMIC; END",
            "create function g(\"begin\" int) returns int as 'begin;' language sql",
            "begin",
            "end",
            "select 'é;' as ü",
        ];
        for drops in [1, 3, 1 << 20] {
            assert_eq!(split(&(whole.join(";\n") + ";"), drops), whole, "{drops}");
        }
    }

    #[test]
    fn commands_and_comments_are_told_apart_from_statements() {
        let text = "\u{feff}-- PostgreSQL database dump\n\\restrict ab'c\nselect 1;\n\
                    \\connect -reuse-previous=on \"dbname='x'\"\n";
        assert_eq!(
            split(text, 2),
            [
                "-- PostgreSQL database dump",
                "\\restrict ab'c",
                "select 1",
                "\\connect -reuse-previous=on \"dbname='x'\""
            ]
        );
    }

    #[test]
    fn strings_with_escapes_end_elsewhere_if_the_dump_says_so() {
        let text = r"select '\';' , 'x'; select 2;";
        let mut plain = Splitter::new(text.as_bytes());
        let Some(Piece::Statement { sql, .. }) = plain.next_piece().unwrap() else {
            panic!("a statement");
        };
        assert_eq!(sql, br"select '\'");
        let mut escaped = Splitter::new(text.as_bytes());
        escaped.set_escapes(true);
        let Some(Piece::Statement { sql, .. }) = escaped.next_piece().unwrap() else {
            panic!("a statement");
        };
        assert_eq!(sql, br"select '\';' , 'x'");
    }

    #[test]
    fn data_of_a_copy_is_given_out_to_its_end_mark_and_lines_are_counted() {
        let text = "COPY t (a) FROM stdin;\na;b\n\\\\.\n'\n\\.\n\nselect\n1;\n\\foo";
        for drops in [1, 1000] {
            let mut splitter = Splitter::new(Drops(text.as_bytes(), drops));
            splitter.next_piece().unwrap().unwrap();
            splitter.skip_line().unwrap();
            let mut data = Vec::new();
            while splitter.copy_data(&mut data).unwrap() {}
            assert_eq!(data, b"a;b\n\\\\.\n'\n");
            let next = splitter.next_piece().unwrap().unwrap();
            assert!(matches!(next, Piece::Statement { line: 7, .. }), "{next:?}");
            let next = splitter.next_piece().unwrap().unwrap();
            assert!(matches!(next, Piece::Command { line: 9, .. }), "{next:?}");
        }
    }

    #[test]
    fn what_ends_within_something_is_cut() {
        for text in [
            "select 'a",
            "select \"a",
            "select $$a",
            "select /* a",
            "select E'a\\'",
        ] {
            let cut = Splitter::new(text.as_bytes()).next_piece();
            assert!(matches!(cut, Err(DumpError::Cut { line: 1 })), "{text}");
        }
        let mut copy = Splitter::new(&b"copy t from stdin;\n1\n2"[..]);
        copy.next_piece().unwrap();
        copy.skip_line().unwrap();
        let cut = copy.copy_data(&mut Vec::new());
        assert!(
            matches!(cut, Err(DumpError::CutData { line: 3 })),
            "{cut:?}"
        );
        let mut open = Splitter::new(&b"select 1"[..]);
        let piece = open.next_piece().unwrap().unwrap();
        let sql = b"select 1".to_vec();
        assert_eq!(piece, Piece::Statement { sql, line: 1 });
    }

    #[test]
    fn commands_within_statements_and_other_encodings_are_refused() {
        let found = Splitter::new(&b"select 1\n\\gexec\n"[..]).next_piece();
        let Err(DumpError::Command { command, line: 2 }) = found else {
            panic!("{found:?}");
        };
        assert_eq!(command, "\\gexec");
        let found = Splitter::new(&b"\xff\xfes\0e\0"[..]).next_piece();
        assert!(matches!(found, Err(DumpError::Utf16)));
    }

    proptest! {
        #[test]
        fn where_reads_end_does_not_matter(
            parts in prop::collection::vec("[a-z$'\"();/*\\- \n]{0,12}", 0..6),
            drops in 1_usize..9,
        ) {
            let text = parts.join(";");
            let all = |drops: usize| {
                let mut splitter = Splitter::new(Drops(text.as_bytes(), drops));
                let mut found = Vec::new();
                loop {
                    match splitter.next_piece() {
                        Ok(Some(piece)) => found.push(format!("{piece:?}")),
                        Ok(None) => return found,
                        Err(error) => {
                            found.push(format!("{error:?}"));
                            return found;
                        }
                    }
                }
            };
            prop_assert_eq!(all(drops), all(1 << 20));
        }
    }
}
