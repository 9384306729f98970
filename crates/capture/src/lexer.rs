//! The text of a statement as tokens, by PostgreSQL's lexical rules.
//!
//! Source: PostgreSQL documentation, "Lexical Structure". Strings follow `standard_conforming_strings = on`,
//! the default since 9.1.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// A keyword or an identifier without quotes.
    Word,
    /// An identifier in double quotes.
    Quoted,
    /// A number, string, bit string or dollar-quoted string.
    Literal,
    /// `$1`.
    Parameter,
    /// Characters of an operator.
    Operator,
    /// A bracket, comma, semicolon, point, colon, or `::`.
    Mark,
}

/// A piece of the text. Comments and blanks are between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// As it was written.
    pub text: &'a str,
    /// Byte of the text at which it begins.
    pub at: usize,
}

impl Token<'_> {
    /// Whether it is this word, in any case; `word` is in lower case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this mark.
    pub fn is_mark(&self, mark: &str) -> bool {
        self.kind == TokenKind::Mark && self.text == mark
    }
}

/// Tokens of a text, and whether it ends inside one: a string, a quoted identifier or a comment without end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens<'a> {
    /// All of them, in order.
    pub tokens: Vec<Token<'a>>,
    /// Whether the text is cut.
    pub is_cut: bool,
    /// Whether strings were read as with `standard_conforming_strings = off`. Other servers read the text in
    /// another way.
    pub escapes: bool,
}

impl<'a> Tokens<'a> {
    /// Those that are certainly no part of a value: in a cut text, the ones before its first literal.
    pub fn certain(&self) -> &[Token<'a>] {
        let literal = |token: &Token<'_>| token.kind == TokenKind::Literal;
        let end = self.tokens.iter().position(literal);
        let end = end.filter(|_| self.is_cut).unwrap_or(self.tokens.len());
        self.tokens.get(..end).unwrap_or_default()
    }
}

/// Splits a text into tokens. Every text has some: what is no SQL becomes marks.
pub fn tokens(text: &str) -> Tokens<'_> {
    lexed(text, false)
}

/// The tokens of a text that a server executed.
///
/// A backslash outside of strings is no SQL, and neither is a word right behind a string that ends in one:
/// strings then follow `standard_conforming_strings = off`. If both readings are whole and differ, only the
/// first word is certain, and the text counts as cut.
pub fn executed_tokens(text: &str) -> Tokens<'_> {
    let found = tokens(text);
    let goes_on = !found.is_cut && goes_on_behind_backslash(&found);
    let is_standard = !has_backslash(&found) && !goes_on;
    if is_standard && (found.is_cut || !text.contains("\\'")) {
        return found;
    }
    let escaped = lexed(text, true);
    let is_whole = !escaped.is_cut && !has_backslash(&escaped);
    match (is_standard, is_whole) {
        (true, false) => found,
        (true, true) if found.tokens == escaped.tokens => found,
        (false, true) => escaped,
        (true, true) => unknown(found),
        (false, false) => unknown(escaped),
    }
}

/// Nobody knows what is a value.
fn unknown(mut tokens: Tokens<'_>) -> Tokens<'_> {
    tokens.tokens.truncate(1);
    tokens.is_cut = true;
    tokens
}

fn has_backslash(tokens: &Tokens<'_>) -> bool {
    tokens.tokens.iter().any(|token| token.is_mark("\\"))
}

/// Whether a word begins right behind `\'`, as in `'it\'s' -- it's`.
fn goes_on_behind_backslash(tokens: &Tokens<'_>) -> bool {
    tokens.tokens.windows(2).any(|pair| {
        let [one, other] = pair else { return false };
        let is_plain = one.kind == TokenKind::Literal && one.text.starts_with('\'');
        let follows = other.at == one.at + one.text.len();
        let is_word = other.kind == TokenKind::Word || other.kind == TokenKind::Literal;
        is_plain && one.text.ends_with("\\'") && follows && is_word
    })
}

fn lexed(text: &str, escapes: bool) -> Tokens<'_> {
    let mut lexer = Lexer {
        text,
        escapes,
        bytes: text.as_bytes(),
        at: 0,
        signs_end: 0,
        is_cut: false,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    Tokens {
        tokens,
        is_cut: lexer.is_cut,
        escapes,
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where a run of `+` and `-` ends, each of which is a token.
    signs_end: usize,
    is_cut: bool,
    /// Whether a backslash escapes in every string.
    escapes: bool,
}

const OPERATOR: &[u8] = b"+-*/<>=~!@#%^&|`?";
/// An operator of several characters may end in `+` or `-` only if it has one of these.
const ENDS_IN_SIGN: &[u8] = b"~!@#%^&|`?";

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let length = self.rest().iter().take_while(|&&byte| wanted(byte)).count();
        self.at += length;
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks_and_comments();
        let begin = self.at;
        let first = *self.bytes.get(begin)?;
        let kind = match first {
            b'\'' => self.string(0, self.escapes),
            b'"' => self.quoted(0),
            b'$' => self.dollar(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            _ if begins_word(first) => self.word(),
            _ if OPERATOR.contains(&first) => self.operator(),
            b':' if matches!(self.peek(1), b':' | b'=') => self.mark(2),
            b'.' if self.peek(1) == b'.' => self.mark(2),
            _ => self.mark(1),
        };
        let text = self.text.get(begin..self.at).unwrap_or_default();
        Some(Token {
            kind,
            text,
            at: begin,
        })
    }

    fn mark(&mut self, length: usize) -> TokenKind {
        self.at += length;
        TokenKind::Mark
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
            match (self.peek(0), self.peek(1)) {
                (b'-', b'-') => self.skip_while(|byte| byte != b'\n' && byte != b'\r'),
                (b'/', b'*') => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// A comment in `/* */`, which may contain others.
    fn skip_comment(&mut self) {
        let mut depth = 0_u32;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => depth += 1,
                (b'*', b'/') => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
        self.is_cut = true;
    }

    /// A string whose quote stands `prefix` bytes further on.
    fn string(&mut self, prefix: usize, escapes: bool) -> TokenKind {
        self.at += prefix + 1;
        self.until_quote(b'\'', escapes);
        // Behind the end of a line another part of the same string may follow.
        while let Some(blanks) = self.continued() {
            self.at += blanks + 1;
            self.until_quote(b'\'', escapes);
        }
        TokenKind::Literal
    }

    /// Bytes of blanks with the end of a line before a quote.
    fn continued(&self) -> Option<usize> {
        let blanks = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        let blanks = blanks.count();
        let has_end = self.rest().get(..blanks)?.contains(&b'\n');
        (has_end && self.rest().get(blanks) == Some(&b'\'')).then_some(blanks)
    }

    fn quoted(&mut self, prefix: usize) -> TokenKind {
        self.at += prefix + 1;
        self.until_quote(b'"', false);
        TokenKind::Quoted
    }

    /// To behind the closing quote; a doubled one is part of what it encloses.
    fn until_quote(&mut self, quote: u8, escapes: bool) {
        while self.at < self.bytes.len() {
            let byte = self.peek(0);
            let doubled = byte == quote && self.peek(1) == quote;
            if doubled || escapes && byte == b'\\' {
                self.at += 2;
                continue;
            }
            self.at += 1;
            if byte == quote {
                return;
            }
        }
        // A backslash may be the last byte.
        self.at = self.bytes.len();
        self.is_cut = true;
    }

    /// `$1`, `$$ … $$`, `$tag$ … $tag$`, or a lone `$`.
    fn dollar(&mut self) -> TokenKind {
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
            return TokenKind::Parameter;
        }
        let rest = self.rest();
        let mut tag = rest.iter().skip(1);
        let length = tag
            .position(|&byte| !begins_word(byte) && !byte.is_ascii_digit())
            .filter(|&length| rest.get(length + 1) == Some(&b'$'));
        let Some(delimiter) = length.and_then(|length| rest.get(..length + 2)) else {
            return self.mark(1);
        };
        self.at += delimiter.len();
        let mut windows = self.rest().windows(delimiter.len());
        match windows.position(|window| window == delimiter) {
            Some(length) => self.at += length + delimiter.len(),
            None => {
                self.at = self.bytes.len();
                self.is_cut = true;
            }
        }
        TokenKind::Literal
    }

    fn number(&mut self) -> TokenKind {
        let digits = |byte: u8| byte.is_ascii_digit() || byte == b'_';
        let radix = matches!(self.peek(1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B');
        if self.peek(0) == b'0' && radix && self.peek(2).is_ascii_hexdigit() {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit() || byte == b'_');
            return TokenKind::Literal;
        }
        self.skip_while(digits);
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.skip_while(digits);
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            self.at += 1 + sign;
            self.skip_while(digits);
        }
        TokenKind::Literal
    }

    /// A word, or a string or identifier with a prefix: `E''`, `B''`, `X''`, `N''`, `U&''`, `U&""`.
    fn word(&mut self) -> TokenKind {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'e' | b'E', b'\'', _) => self.string(1, true),
            (b'b' | b'B' | b'x' | b'X', b'\'', _) => self.string(1, false),
            (b'n' | b'N', b'\'', _) => self.string(1, self.escapes),
            (b'u' | b'U', b'&', b'\'') => self.string(2, false),
            (b'u' | b'U', b'&', b'"') => self.quoted(2),
            _ => {
                self.skip_while(continues_word);
                TokenKind::Word
            }
        }
    }

    fn operator(&mut self) -> TokenKind {
        if self.at < self.signs_end {
            self.at += 1;
            return TokenKind::Operator;
        }
        let rest = self.rest();
        let all = rest.iter().take_while(|byte| OPERATOR.contains(byte));
        let mut length = all.count();
        let comment = |pair: &[u8]| pair == b"--" || pair == b"/*";
        let inside = rest.get(..length).unwrap_or_default();
        if let Some(at) = inside.windows(2).position(comment) {
            length = at;
        }
        let inside = rest.get(..length).unwrap_or_default();
        if !inside.iter().any(|byte| ENDS_IN_SIGN.contains(byte)) {
            let signs = inside.iter().rev();
            let signs = signs.take_while(|byte| matches!(byte, b'+' | b'-')).count();
            self.signs_end = self.at + length;
            length = (length - signs).max(1);
        }
        self.at += length.max(1);
        TokenKind::Operator
    }
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;

    fn lexed(text: &str) -> Vec<(TokenKind, &str)> {
        let found = tokens(text);
        assert!(!found.is_cut, "{text}");
        let tokens = found.tokens.into_iter();
        tokens.map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn strings_end_where_the_server_ends_them() {
        let cases = [
            "'a''b'",
            r"'a\'",
            r"E'a\'b'",
            "e'\\\\'",
            "U&'d\\0061t'",
            "B'101'",
            "x'1F'",
            "$$a'b$$",
            "$q$ $$ 'x' $r$ $q$",
            "N'é'",
            "''",
            "$été$x$été$",
            "'a\nb'",
        ];
        for case in cases {
            assert_eq!(lexed(case), [(Literal, case)], "{case}");
        }
        assert_eq!(lexed("\"a\"\"b\""), [(Quoted, "\"a\"\"b\"")]);
        assert_eq!(lexed("U&\"d\\0061t\""), [(Quoted, "U&\"d\\0061t\"")]);
    }

    #[test]
    fn numbers_and_parameters_are_one_token() {
        for case in [
            "0", "1.5", ".5", "1.", "1e10", "1.5E-3", "0x1F", "1_000", "0b11",
        ] {
            assert_eq!(lexed(case), [(Literal, case)], "{case}");
        }
        assert_eq!(lexed("$12"), [(Parameter, "$12")]);
        assert_eq!(
            lexed("1..2"),
            [(Literal, "1"), (Mark, ".."), (Literal, "2")]
        );
        assert_eq!(lexed("1e"), [(Literal, "1"), (Word, "e")]);
    }

    #[test]
    fn comments_are_nothing_and_may_be_nested() {
        assert_eq!(
            lexed("a/* b /* 'c */ */d--'\ne"),
            [(Word, "a"), (Word, "d"), (Word, "e")]
        );
        assert_eq!(lexed("-- only"), []);
        assert_eq!(lexed("a -- b\rc"), [(Word, "a"), (Word, "c")]);
    }

    #[test]
    fn operators_are_as_long_as_the_server_makes_them() {
        let one = |text: &str| {
            lexed(text)
                .iter()
                .map(|(_, text)| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(one("a<-1"), ["a", "<", "-", "1"]);
        assert_eq!(one("a@-1"), ["a", "@-", "1"]);
        assert_eq!(one("a->>'b'"), ["a", "->>", "'b'"]);
        assert_eq!(one("a<=b--c"), ["a", "<=", "b"]);
        assert_eq!(one("a*/*x*/b"), ["a", "*", "b"]);
        assert_eq!(one("a::int[]"), ["a", "::", "int", "[", "]"]);
        assert_eq!(one("- - 1"), ["-", "-", "1"]);
        assert_eq!(one("a ?| b"), ["a", "?|", "b"]);
        assert_eq!(one("x$1y"), ["x$1y"]);
    }

    #[test]
    fn a_backslash_outside_of_strings_shows_strings_with_escapes() {
        let escapes = |text: &str| executed_tokens(text).escapes;
        assert!(escapes("select 'it\\'s', 'that\\'s'"));
        assert!(escapes("select 'it\\'s' -- it's"));
        assert!(!escapes("select 'C:\\' -- it's"));
        assert!(!escapes("select 'C:\\', E'it\\'s'"));
        assert!(!tokens("select 'it\\'s', 'that\\'s'").escapes);
    }

    #[test]
    fn a_text_that_both_kinds_of_strings_can_be_in_is_not_known() {
        for text in [
            "select 'a\\', secret --'",
            "select N'a\\' || secret /*'*/",
            "select 'C:\\' -- it's",
        ] {
            let found = executed_tokens(text);
            assert_eq!((found.tokens.len(), found.is_cut), (1, true), "{text}");
        }
        for text in [
            "select a like 'b' escape '\\' and c = 'd'",
            "select a like 'b' escape '\\' or c like 'd' escape '\\'",
            "select E'it\\'s', 'b'",
            "select 'C:\\', E'it\\'s'",
        ] {
            assert_eq!(executed_tokens(text), tokens(text), "{text}");
        }
    }

    #[test]
    fn a_run_of_signs_takes_as_long_as_it_is() {
        // A second look at the rest of the run for each sign would take minutes.
        const MANY: usize = 200_000;
        for sign in ["+", "+-"] {
            let found = tokens(&sign.repeat(MANY)).tokens.len();
            assert_eq!(found, sign.len() * MANY);
        }
        assert_eq!(tokens("a<+-+--b\n+c").tokens.len(), 7);
    }

    #[test]
    fn nothing_behind_a_literal_of_a_cut_text_is_certain() {
        let certain = |text: &str| {
            let found = tokens(text);
            let certain = found.certain().iter();
            certain
                .map(|token| token.text)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(certain("a = 'it' secret' b"), "a =");
        assert_eq!(certain("a = 'it' or b"), "a = 'it' or b");
    }

    #[test]
    fn a_text_that_ends_inside_a_token_is_cut() {
        for case in ["'a", "E'a\\", "\"a", "/* a", "$$ a $", "$q$ $$", "e'\\'"] {
            assert!(tokens(case).is_cut, "{case}");
        }
        assert!(!tokens("a $ b").is_cut);
    }
}
