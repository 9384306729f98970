//! Reading answers whose numbers matter: how many rows a statement touched, and the key that was looked up.

use crate::error::ServerError;
use crate::inbox::Inbox;
use crate::scan::Loss;

/// Tag and length word.
const HEADER: usize = 5;
/// Far above any message that this benchmark's statements are answered with.
const LARGEST_MESSAGE: usize = 16 << 20;

/// The answer to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows that came back.
    pub returned: u64,
    /// Rows inserted, deleted or returned, as the server counts them.
    pub touched: u64,
    /// First field of the first row, if it is a number.
    pub key: Option<i64>,
    /// What went wrong.
    pub error: Option<Box<ServerError>>,
}

/// Reads the answers of one connection, however they are cut into pieces.
#[derive(Debug, Default)]
pub struct Reader {
    waiting: bool,
    completed: bool,
    answer: Answer,
}

impl Reader {
    /// A statement is being sent.
    pub fn expect(&mut self) {
        self.waiting = true;
        self.completed = false;
        self.answer = Answer::default();
    }

    /// Reads all that has been received; the answer once it is complete.
    ///
    /// Errors: a fatal server error, or bytes that are not an answer to a statement.
    pub fn read(&mut self, inbox: &mut Inbox) -> Result<Option<Answer>, Loss> {
        let mut ready = false;
        let (mut left, mut wanted) = (inbox.pending(), HEADER);
        while let Some((&[tag, a, b, c, d], body)) = left.split_first_chunk::<HEADER>() {
            let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            let Some(length) = length
                .checked_sub(4)
                .filter(|length| *length <= LARGEST_MESSAGE)
            else {
                return Err(nonsense(tag, "of an impossible length"));
            };
            let Some((body, after)) = body.split_at_checked(length) else {
                wanted = HEADER + length;
                break;
            };
            ready |= self.message(tag, body)?;
            left = after;
        }
        let left = left.len();
        inbox.keep(left, wanted);
        Ok(ready.then(|| std::mem::take(&mut self.answer)))
    }

    /// Returns whether it ends the answer.
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Loss> {
        match tag {
            b'N' | b'S' | b'A' => {}
            b'E' => {
                let error = Box::new(ServerError::parse(body));
                if error.is_fatal() {
                    return Err(Loss::Fatal(error));
                }
                if !self.waiting {
                    return Err(nonsense(tag, "without a question"));
                }
                self.answer.error.get_or_insert(error);
            }
            _ if !self.waiting => return Err(nonsense(tag, "without a question")),
            // BindComplete and the description of rows.
            b'2' | b'T' => {}
            b'D' => {
                if self.answer.returned == 0 {
                    self.answer.key = first_number(body);
                }
                self.answer.returned += 1;
            }
            b'C' => {
                self.completed = true;
                self.answer.touched += touched(body);
            }
            b'Z' if self.completed || self.answer.error.is_some() => {
                self.waiting = false;
                return Ok(true);
            }
            b'Z' => return Err(nonsense(tag, "before anything was executed")),
            _ => return Err(nonsense(tag, "in an answer")),
        }
        Ok(false)
    }
}

fn nonsense(tag: u8, what: &str) -> Loss {
    Loss::Nonsense(format!("message {:?} {what}", char::from(tag)))
}

/// The first field of a row of text, as a number: behind the number of fields and its length.
pub fn first_number(body: &[u8]) -> Option<i64> {
    let (&[_, _, a, b, c, d], fields) = body.split_first_chunk::<6>()?;
    // A length of -1 is a null.
    let length = usize::try_from(i32::from_be_bytes([a, b, c, d])).ok()?;
    std::str::from_utf8(fields.get(..length)?)
        .ok()?
        .parse()
        .ok()
}

/// The number at the end of `INSERT 0 50`; 0 where there is none.
pub fn touched(tag: &[u8]) -> u64 {
    let digits = tag.strip_suffix(b"\0").unwrap_or(tag);
    let from = digits.iter().rposition(|byte| *byte == b' ');
    let number = digits.get(from.map_or(0, |from| from + 1)..).unwrap_or(&[]);
    std::str::from_utf8(number)
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag], &length[..], body].concat()
    }

    /// What a reader makes of `bytes` in pieces of `size`.
    fn read(bytes: &[u8], size: usize) -> Result<Option<Answer>, Loss> {
        let (mut reader, mut inbox) = (Reader::default(), Inbox::new());
        reader.expect();
        let mut last = None;
        for piece in bytes.chunks(size) {
            assert_eq!(inbox.push(piece), piece.len());
            last = reader.read(&mut inbox)?.or(last);
        }
        Ok(last)
    }

    fn look_up() -> Vec<u8> {
        [
            message(b'T', &[0; 30]),
            message(b'D', b"\0\x01\0\0\0\x0412345"),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    #[test]
    fn numbers_are_found_however_the_answer_is_cut() {
        let row = [b"\0\x01\0\0\0\x05".as_slice(), b"12345"].concat();
        let bytes = [
            message(b'T', &[0; 30]),
            message(b'D', &row),
            message(b'N', b"SNOTICE\0\0"),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        for size in [1, 2, 7, 1000] {
            let answer = read(&bytes, size).unwrap().unwrap();
            assert_eq!(
                (answer.returned, answer.touched, answer.key, answer.error),
                (1, 1, Some(12_345), None)
            );
        }
        let insert = [message(b'C', b"INSERT 0 50\0"), message(b'Z', b"I")].concat();
        assert_eq!(read(&insert, 3).unwrap().unwrap().touched, 50);
        let null = [
            message(b'D', b"\0\x01\xff\xff\xff\xff"),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        assert_eq!(read(&null, 3).unwrap().unwrap().key, None);
    }

    #[test]
    fn an_answer_cut_short_is_not_one() {
        let bytes = look_up();
        for end in 0..bytes.len() - 1 {
            assert_eq!(read(&bytes[..end], 5), Ok(None), "{end}");
        }
    }

    #[test]
    fn errors_are_kept_and_fatal_ones_end_the_connection() {
        let error = |severity: &str| {
            let body = format!("S{severity}\0V{severity}\0C40P01\0Mdeadlock\0\0");
            [message(b'E', body.as_bytes()), message(b'Z', b"I")].concat()
        };
        let answer = read(&error("ERROR"), 4).unwrap().unwrap();
        assert_eq!(answer.error.unwrap().sqlstate, "40P01");
        assert!(matches!(read(&error("FATAL"), 4), Err(Loss::Fatal(_))));
    }

    #[test]
    fn what_is_no_answer_is_noticed() {
        let lies: [Vec<u8>; 5] = [
            message(b'Z', b"I"),
            message(b'G', b""),
            b"\0\0\0\0\0\0".to_vec(),
            b"D\x7f\xff\xff\xff".to_vec(),
            [look_up(), message(b'C', b"SELECT 1\0")].concat(),
        ];
        for lie in lies {
            let read = read(&lie, 1000);
            assert!(matches!(read, Err(Loss::Nonsense(_))), "{lie:?}");
        }
    }
}
