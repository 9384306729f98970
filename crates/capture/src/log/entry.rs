//! An entry of a log, whatever the format of its file.

/// One message of the server with what belongs to it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it was written, as the log has it.
    pub time: String,
    pub user: Option<String>,
    pub database: Option<String>,
    /// What tells sessions apart: its id, or the process.
    pub session: String,
    /// The command that the process says it is at: `PARSE`, `BIND`, `SELECT`; absent in text logs.
    pub tag: Option<String>,
    /// `LOG`, `ERROR` and so on.
    pub severity: String,
    /// The SQLSTATE; absent in text logs.
    pub state: Option<String>,
    pub message: String,
    pub detail: Option<String>,
    /// Whether it says inside of what it was written, as messages of functions do. The server's own words on
    /// an execution never do.
    pub has_context: bool,
    /// The statement that failed, of an error.
    pub statement: Option<String>,
    /// The server's identifier of the statement; absent if it has none.
    pub query_id: Option<i64>,
    /// Whether bytes of it are not UTF-8 and were replaced.
    pub is_lossy: bool,
}

/// What a file has next.
pub(crate) enum Record {
    /// An entry.
    Entry(Box<Entry>),
    /// Something else, which begins at this line.
    Unreadable(u64),
}

/// The text of bytes, and whether some of them were no UTF-8.
pub(crate) fn decoded(bytes: &[u8]) -> (std::borrow::Cow<'_, str>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, std::borrow::Cow::Owned(_));
    (text, is_lossy)
}

/// The clock of a time: as many characters as these.
const CLOCK: usize = "dddd-dd-dd dd:dd:dd".len();
/// Digits of a second's fraction that servers write.
const FRACTION: usize = 6;
/// Letters of a time zone's abbreviation, at most (`ACWST`), and digits of its distance with the sign.
const LETTERS: usize = 5;
const DISTANCE: usize = "+dddd".len();

/// The time at the beginning of a line or a column: a date, a clock and perhaps a zone, or seconds since
/// 1970. Whatever else follows is no part of it: a prefix may go on with names of users.
pub(crate) fn time_of(text: &str) -> &str {
    if !begins_with_time(text) {
        return "";
    }
    let from = match text.as_bytes().get(4) {
        Some(b'-') => CLOCK,
        _ => text.find('.').unwrap_or(text.len()),
    };
    let rest = text.get(from..).unwrap_or_default();
    let fraction = rest.strip_prefix('.').map_or(0, |rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        1 + digits.min(FRACTION)
    });
    let end = from + fraction;
    let zone = text.get(end..).and_then(|rest| rest.strip_prefix(' '));
    let zone = zone.filter(|_| from == CLOCK).map_or(0, |rest| {
        let word = rest.split([' ', '[', ',']).next().unwrap_or_default();
        // RDS has a colon behind the zone.
        let letters = word.split(':').next().unwrap_or_default();
        match is_abbreviation(letters) || is_distance(letters) {
            true => 1 + letters.len(),
            false => 0,
        }
    });
    text.get(..end + zone).unwrap_or_default()
}

/// `UTC`, `CEST`.
fn is_abbreviation(text: &str) -> bool {
    (1..=LETTERS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// `+01`, `-0330`.
fn is_distance(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or_default();
    (2..DISTANCE).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Absent where a column is empty.
pub(crate) fn present(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a line begins like an entry: with a date and a time, or with seconds since 1970 as `%n` writes
/// them.
pub(crate) fn begins_with_time(line: &str) -> bool {
    let bytes = line.as_bytes();
    let shape = b"dddd-dd-dd dd:dd:dd";
    let date = bytes.len() >= shape.len()
        && shape.iter().zip(bytes).all(|(wanted, byte)| match wanted {
            b'd' => byte.is_ascii_digit(),
            wanted => byte == wanted,
        });
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    date || digits == 10 && bytes.get(10) == Some(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_nothing_of_what_follows_it() {
        let date = "2026-11-02 10:11:12";
        for (zone, rest) in [
            ("", ""),
            (".123 UTC", " [77] "),
            (" UTC", ":10.0.0.1(5):app@shop:[77]:"),
            (".123456 CEST", ",smith,"),
            (" +0330", " smith"),
            (" -03", "[77] smith"),
            ("", " smith [77]"),
            ("", " SMITHSON"),
            ("", " UTCsmith"),
            ("", "smith"),
            (".123", " +01smith"),
            (".123456", "789 UTC"),
            ("", " Smith"),
        ] {
            let text = format!("{date}{zone}{rest}");
            assert_eq!(time_of(&text), format!("{date}{zone}"), "{text}");
        }
        assert_eq!(time_of("1762078272.123 smith [77]"), "1762078272.123");
        assert_eq!(time_of("1762078272.123 UTC [77]"), "1762078272.123");
        assert_eq!(time_of("smith"), "");
    }
}
