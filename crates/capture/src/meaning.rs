//! What a token stands for: the name of an identifier, the text of a string.
//!
//! Source: PostgreSQL documentation, "Identifiers and Key Words" and "Constants". `UESCAPE` is a token of its
//! own: the escapes of such a name or string stay as they are.

use crate::lexer::{Token, TokenKind};

impl Token<'_> {
    /// The name that a word or a quoted identifier stands for: `shop` for `Shop`, `"shop"` and
    /// `U&"sh\006Fp"`. Absent for all else.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text.to_ascii_lowercase()),
            TokenKind::Quoted => {
                let (prefix, quoted) = self.text.split_at_checked(self.text.find('"')?)?;
                let name = unquoted(quoted, '"').replace("\"\"", "\"");
                Some(if prefix.is_empty() {
                    name
                } else {
                    unicode(&name)
                })
            }
            _ => None,
        }
    }

    /// The text that a string stands for: `it's` for `'it''s'`, `E'it\'s'` and `$$it's$$`. Of a bit string
    /// its digits. Absent for all else.
    pub fn string(&self) -> Option<String> {
        if self.kind != TokenKind::Literal {
            return None;
        }
        if self.text.starts_with('$') {
            return Some(of_dollars(self.text).to_owned());
        }
        let (prefix, quoted) = self.text.split_at_checked(self.text.find('\'')?)?;
        let inside = parts(quoted, prefix.eq_ignore_ascii_case("e"));
        Some(match prefix {
            "e" | "E" => escaped(&inside),
            "u&" | "U&" => unicode(&inside),
            _ => inside,
        })
    }
}

/// What stands in quotes, of which the last may be missing.
fn unquoted(text: &str, quote: char) -> &str {
    let inside = text.strip_prefix(quote).unwrap_or(text);
    inside.strip_suffix(quote).unwrap_or(inside)
}

/// What stands between `$tag$` and `$tag$`, of which the last may be missing.
fn of_dollars(text: &str) -> &str {
    let tag = text.match_indices('$').nth(1).map_or(0, |(end, _)| end + 1);
    let (tag, inside) = text.split_at_checked(tag).unwrap_or(("", text));
    inside.strip_suffix(tag).unwrap_or(inside)
}

/// The parts of a string, each in its quotes, without these and with single quotes for doubled ones. Escapes
/// stay.
fn parts(text: &str, escapes: bool) -> String {
    let mut inside = String::new();
    let mut is_open = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if is_open && letters.next_if_eq(&'\'').is_some() => inside.push('\''),
            '\'' => is_open = !is_open,
            '\\' if is_open && escapes => {
                inside.push('\\');
                inside.extend(letters.next());
            }
            _ if is_open => inside.push(letter),
            // Blanks between two parts.
            _ => {}
        }
    }
    inside
}

/// `E'…'` with its escapes undone.
fn escaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let letter = behind.chars().next();
        let after = |length: usize| behind.get(length..).unwrap_or_default();
        let read = |from: usize, radix: u32, most: usize| {
            let digits = after(from)
                .chars()
                .take_while(|digit| digit.is_digit(radix));
            let digits: String = digits.take(most).collect();
            let number = u32::from_str_radix(&digits, radix).ok()?;
            Some((number, after(from + digits.len())))
        };
        let byte = match letter {
            Some('0'..='7') => read(0, 8, 3),
            Some('x') => read(1, 16, 2),
            _ => None,
        };
        let point = match letter {
            Some('u') => read(1, 16, 4),
            Some('U') => read(1, 16, 8),
            _ => None,
        };
        if let Some((number, after)) = byte {
            // The server takes the last eight bits.
            bytes.extend(number.to_le_bytes().first());
            rest = after;
        } else if let Some((number, after)) = point {
            let letter = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend(letter.to_string().bytes());
            rest = after;
        } else {
            let plain = match letter {
                Some('b') => Some('\u{8}'),
                Some('f') => Some('\u{c}'),
                Some('n') => Some('\n'),
                Some('r') => Some('\r'),
                Some('t') => Some('\t'),
                other => other,
            };
            bytes.extend(plain.map(String::from).unwrap_or_default().bytes());
            rest = after(letter.map_or(0, char::len_utf8));
        }
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `U&'…'` or `U&"…"` with `\0061` and `\+000061` as letters.
fn unicode(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        found.push_str(before);
        let (begin, length) = if behind.starts_with('+') {
            (1, 6)
        } else {
            (0, 4)
        };
        let digits = behind.get(begin..begin + length);
        let letter = digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .and_then(char::from_u32);
        rest = if let Some(letter) = letter {
            found.push(letter);
            behind.get(begin + length..).unwrap_or_default()
        } else {
            // A doubled one stands for itself.
            found.push('\\');
            behind.strip_prefix('\\').unwrap_or(behind)
        };
    }
    found.push_str(rest);
    found
}

#[cfg(test)]
mod tests {
    use crate::lexer::{Token, tokens};

    fn first<'a>(text: &'a str) -> Token<'a> {
        let found = tokens(text).tokens;
        assert_eq!(found.len(), 1, "{text}");
        found[0]
    }

    #[test]
    fn a_name_is_that_of_the_server() {
        let cases = [
            ("Shop", "shop"),
            ("\"Shop\"", "Shop"),
            ("\"a\"\"b\"\"\"", "a\"b\""),
            (r#"U&"d\0061t\+000061""#, "data"),
            (r#"u&"a\\b""#, r"a\b"),
            (r#"U&"a\zz""#, r"a\zz"),
            ("\"été", "été"),
        ];
        for (text, wanted) in cases {
            assert_eq!(first(text).name().as_deref(), Some(wanted), "{text}");
        }
        for other in ["'a'", "1", "$1", "="] {
            assert_eq!(first(other).name(), None, "{other}");
        }
    }

    #[test]
    fn a_string_is_what_the_server_reads() {
        let cases = [
            ("'it''s'", "it's"),
            ("''", ""),
            ("'a'\n  'b'", "ab"),
            (r"'a\n'", r"a\n"),
            ("N'é'", "é"),
            (r"E'it\'s'", "it's"),
            (r"e'\\\x41\101\u00e9\U0001F600\n\q'", "\\AAé😀\nq"),
            (r"E'\xc3\xa9'", "é"),
            (r"U&'d\0061t\+000061'", "data"),
            ("$$it's$$", "it's"),
            ("$q$a $$ b$q$", "a $$ b"),
            ("B'101'", "101"),
            ("'open", "open"),
        ];
        for (text, wanted) in cases {
            assert_eq!(first(text).string().as_deref(), Some(wanted), "{text}");
        }
        for other in ["a", "\"a\"", "1.5", "$1", "="] {
            assert_eq!(first(other).string(), None, "{other}");
        }
    }
}
