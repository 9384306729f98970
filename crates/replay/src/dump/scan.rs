//! What two readers of SQL share: where comments and strings between dollars end, and what a word is made of.
//!
//! Source: PostgreSQL manual, "Lexical Structure".

/// A statement longer than this is refused: the server would not take much more.
pub const LONGEST: usize = 256 << 20;

/// Bytes that may still be read while they are looked at.
pub trait Bytes {
    /// Why they cannot be read.
    type Error;

    /// The byte in this place; absent beyond the end.
    ///
    /// Errors: it cannot be read.
    fn byte(&mut self, at: usize) -> Result<Option<u8>, Self::Error>;
}

/// Bytes that are all there.
impl Bytes for &[u8] {
    type Error = std::convert::Infallible;

    fn byte(&mut self, at: usize) -> Result<Option<u8>, Self::Error> {
        Ok(self.get(at).copied())
    }
}

/// Where something ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Before this place.
    At(usize),
    /// Nowhere: the bytes end before.
    Open,
    /// Not within the length of a statement.
    TooLong,
}

/// Behind a comment, which may hold others.
///
/// Errors: those of the bytes.
pub fn beyond_comment<B: Bytes>(bytes: &mut B, from: usize) -> Result<End, B::Error> {
    let (mut at, mut depth) = (from, 0_u32);
    while at - from <= LONGEST {
        match (bytes.byte(at)?, bytes.byte(at + 1)?) {
            (Some(b'/'), Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (Some(b'*'), Some(b'/')) if depth == 1 => return Ok(End::At(at + 2)),
            (Some(b'*'), Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            (Some(_), _) => at += 1,
            (None, _) => return Ok(End::Open),
        }
    }
    Ok(End::TooLong)
}

/// Behind a string between `$tag$`, or behind a `$` that begins none.
///
/// Errors: those of the bytes.
pub fn beyond_dollar<B: Bytes>(bytes: &mut B, from: usize) -> Result<End, B::Error> {
    let mut at = from + 1;
    while bytes.byte(at)?.is_some_and(in_tag) {
        at += 1;
    }
    let is_number = bytes
        .byte(from + 1)?
        .is_some_and(|byte| byte.is_ascii_digit());
    if bytes.byte(at)? != Some(b'$') || is_number {
        return Ok(End::At(from + 1));
    }
    at += 1;
    let tag = at - from;
    // Bytes before `at` that are the beginning of the tag. A `$` is only at its ends, so that one which does
    // not fit may begin it anew.
    let mut fit = 0;
    while at - from <= LONGEST {
        let Some(byte) = bytes.byte(at)? else {
            return Ok(End::Open);
        };
        fit = match bytes.byte(from + fit)? == Some(byte) {
            true => fit + 1,
            false => usize::from(byte == b'$'),
        };
        at += 1;
        if fit == tag {
            return Ok(End::At(at));
        }
    }
    Ok(End::TooLong)
}

/// Whether a word may begin so.
pub fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Whether a word may go on so.
pub fn in_word(byte: u8) -> bool {
    in_tag(byte) || byte == b'$'
}

fn in_tag(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_between_dollars_ends_at_its_own_tag() {
        let end = |text: &str| beyond_dollar(&mut text.as_bytes(), 0).unwrap();
        for (text, length) in [
            ("$$a$b$$c", 7),
            ("$$$$", 4),
            ("$a$$b$$$a$x", 10),
            ("$a$$a$x", 6),
            ("$1", 1),
            ("$1$ $1$", 1),
            ("$a b", 1),
            ("$", 1),
        ] {
            assert_eq!(end(text), End::At(length), "{text}");
        }
        assert_eq!(end("$a$ $a"), End::Open);
    }

    #[test]
    fn a_comment_ends_with_those_in_it() {
        let end = |text: &str| beyond_comment(&mut text.as_bytes(), 0).unwrap();
        assert_eq!(end("/* a /* b */ c */ d"), End::At(17));
        assert_eq!(end("/* a /* b */"), End::Open);
        assert_eq!(end("/*/"), End::Open);
    }
}
