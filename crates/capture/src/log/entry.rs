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
