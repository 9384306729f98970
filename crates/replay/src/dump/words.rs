//! The first words of a statement in the dump's own encoding.

use super::scan::{End, begins_word, beyond_comment, beyond_dollar, in_word};
use deltabench_capture::{Token, TokenKind};
use std::convert::Infallible;

/// A word, name, string or sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it was written.
    text: String,
    /// In lower case, if it is no quoted name and no string.
    keyword: String,
    /// Where it ends in the statement.
    end: usize,
}

impl Word {
    fn of(text: &[u8], end: usize) -> Self {
        let text = String::from_utf8_lossy(text).into_owned();
        let quoted = text.starts_with(['"', '\'', '$']);
        let keyword = match quoted {
            true => String::new(),
            false => text.to_ascii_lowercase(),
        };
        Self { text, keyword, end }
    }

    /// Where it ends in the statement.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The keyword; empty for a quoted name and for a string.
    pub fn keyword(&self) -> &str {
        &self.keyword
    }

    /// The name that it stands for.
    pub fn name(&self) -> String {
        let name = self
            .as_token(TokenKind::Quoted, '"')
            .and_then(|token| token.name());
        name.unwrap_or_else(|| self.keyword.clone())
    }

    /// The constant that it stands for.
    pub fn constant(&self) -> String {
        let string = |sign: char| self.as_token(TokenKind::Literal, sign)?.string();
        let constant = string('\'').or_else(|| string('$'));
        constant.unwrap_or_else(|| self.text.clone())
    }

    /// The word as a token of this kind; absent if it does not begin with the sign of that.
    fn as_token(&self, kind: TokenKind, sign: char) -> Option<Token<'_>> {
        let text = self.text.as_str();
        text.starts_with(sign)
            .then_some(Token { kind, text, at: 0 })
    }
}

/// The name that words begin with, as it is written: `public."Order Items"`.
pub fn name_of(words: &[Word]) -> String {
    let only = usize::from(words.first().is_some_and(|word| word.keyword == "only"));
    let mut name = String::new();
    let mut pieces = words.iter().skip(only);
    while let Some(piece) = pieces.next() {
        name.push_str(&piece.text);
        match pieces.next() {
            Some(point) if point.text == "." => name.push('.'),
            _ => break,
        }
    }
    name
}

/// What a statement does, in its first words and without values: `CREATE AGGREGATE public.f`.
pub fn summary(sql: &[u8]) -> String {
    /// Words that say enough.
    const WORDS: usize = 9;
    let mut summary = String::new();
    for word in words(sql, WORDS) {
        if word.text.starts_with(['(', '\'', '$', '=']) {
            break;
        }
        let joined = word.text == "." || summary.ends_with('.') || word.text == ",";
        if !summary.is_empty() && !joined {
            summary.push(' ');
        }
        summary.push_str(&word.text);
    }
    summary
}

/// All words of a statement.
pub fn all_words(sql: &[u8]) -> Vec<Word> {
    words(sql, usize::MAX)
}

/// At most `most` words of a statement; comments are passed over. A setting with a point in its name is one
/// word.
pub fn words(sql: &[u8], most: usize) -> Vec<Word> {
    let mut words = Vec::new();
    let mut at = 0;
    while words.len() < most {
        at = beyond_blanks(sql, at);
        let Some(first) = sql.get(at) else {
            break;
        };
        let end = match first {
            b'"' | b'\'' => beyond_quote(sql, at, *first),
            b'$' => ended(sql, beyond_dollar(&mut &*sql, at)),
            byte if begins_word(*byte) => beyond(sql, at, in_word),
            byte if byte.is_ascii_digit() => {
                beyond(sql, at, |byte| byte.is_ascii_digit() || byte == b'.')
            }
            _ => at + 1,
        };
        words.push(Word::of(sql.get(at..end).unwrap_or_default(), end));
        at = end;
    }
    join_settings(words)
}

/// `set x . y = 1` as `set x.y = 1`.
fn join_settings(mut words: Vec<Word>) -> Vec<Word> {
    let is_set = words.first().is_some_and(|word| word.keyword == "set");
    let point = words.iter().position(|word| word.text == ".");
    let whole = |point: &usize| is_set && *point > 1 && *point + 1 < words.len();
    if let Some(point) = point.filter(whole) {
        let parts: Vec<Word> = words.drain(point - 1..=point + 1).collect();
        let end = parts.last().map_or(0, Word::end);
        let joined: String = parts.into_iter().map(|word| word.text).collect();
        words.insert(point - 1, Word::of(joined.as_bytes(), end));
    }
    words
}

fn beyond(sql: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let rest = sql.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| belongs(**byte)).count()
}

fn beyond_quote(sql: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from + 1;
    while let Some(byte) = sql.get(at) {
        at += 1;
        if *byte == quote {
            if sql.get(at) != Some(&quote) {
                break;
            }
            at += 1;
        }
    }
    at
}

/// Where something ends; what is open goes on to the end of the statement.
fn ended(sql: &[u8], found: Result<End, Infallible>) -> usize {
    match found {
        Ok(End::At(end)) => end,
        Ok(End::Open | End::TooLong) => sql.len(),
    }
}

fn beyond_blanks(sql: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        at = beyond(sql, at, |byte| byte.is_ascii_whitespace());
        let rest = sql.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            at = beyond(sql, at, |byte| byte != b'\n');
        } else if rest.starts_with(b"/*") {
            at = ended(sql, beyond_comment(&mut &*sql, at));
        } else {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_stands_between_blanks_comments_and_signs() {
        let found = words(b"/* x */ CREATE -- y\n TABLE \"a \"\"b\".c(d", 9);
        let texts: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(
            texts,
            ["CREATE", "TABLE", "\"a \"\"b\"", ".", "c", "(", "d"]
        );
        assert_eq!(found[0].keyword(), "create");
        assert_eq!(
            (found[2].keyword(), found[2].name().as_str()),
            ("", "a \"b")
        );
        assert_eq!(name_of(&found[2..]), "\"a \"\"b\".c");
        assert_eq!(words(b"a b c", 2).len(), 2);
        assert_eq!(words(b"/* no /* end */", 9), []);
        assert_eq!(words(b"/* a /* b */ c */ d", 9)[0].keyword(), "d");
        assert_eq!(
            summary(b"CREATE AGGREGATE a . b(int) (sfunc = x)"),
            "CREATE AGGREGATE a.b"
        );
        assert_eq!(
            summary(b"INSERT INTO t VALUES ('secret')"),
            "INSERT INTO t VALUES"
        );
    }

    #[test]
    fn names_and_constants_lose_only_their_own_quotes() {
        let found = words(b"\"a\"\"\" 'it''' $$x y$$ $q$ $$ $q$ $1 $a 'open", 9);
        assert_eq!(found[0].name(), "a\"");
        let constants: Vec<String> = found.iter().skip(1).map(Word::constant).collect();
        assert_eq!(
            constants,
            ["it'", "x y", " $$ ", "$", "1", "$", "a", "open"]
        );
        assert!(found[2].keyword().is_empty());
    }
}
