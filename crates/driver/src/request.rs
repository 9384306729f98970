//! Bind, Execute and Sync as a template whose values are overwritten in place; or a query as text.

use deltabench_workload::executable::{Outbox, Piece, Slot, Slots, Statement};
use std::io::Write as _;

/// OID of `bigint`.
const BIGINT: u32 = 20;
/// OID of `varchar`.
const VARCHAR: u32 = 1043;

/// What limits a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Placeholders are counted in 16 bits.
    #[error("more than 65535 placeholders in one statement")]
    Placeholders,
    /// Messages are counted in 31 bits.
    #[error("a message of more than 1 GiB")]
    Message,
    /// Names are made for 65536 statements.
    #[error("more than 65536 statements")]
    Statements,
}

/// Name of a prepared statement: four hex digits, so that all names have one width.
pub fn statement_name(index: usize) -> Result<[u8; 4], TooLarge> {
    let index = u16::try_from(index).map_err(|_| TooLarge::Statements)?;
    let digit = |shift: u32| char::from_digit(u32::from((index >> shift) & 15), 16).unwrap_or('0');
    let byte = |shift| u8::try_from(digit(shift)).unwrap_or(b'0');
    Ok([byte(12), byte(8), byte(4), byte(0)])
}

/// Appends a message: tag, length, body.
pub fn message(
    out: &mut Vec<u8>,
    tag: u8,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), TooLarge> {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = i32::try_from(out.len() - start).map_err(|_| TooLarge::Message)?;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Appends text and its final zero.
pub fn zero_ended(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends a Parse message for a statement.
pub fn parse(out: &mut Vec<u8>, index: usize, statement: &Statement) -> Result<(), TooLarge> {
    let name = statement_name(index)?;
    let count = u16::try_from(statement.slots.len()).map_err(|_| TooLarge::Placeholders)?;
    message(out, b'P', |out| {
        zero_ended(out, &name);
        zero_ended(out, statement.sql.as_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for slot in &statement.slots {
            let oid = match slot {
                Slot::BigInt => BIGINT,
                Slot::Text(_) => VARCHAR,
            };
            out.extend_from_slice(&oid.to_be_bytes());
        }
    })
}

/// One round trip, ready to be sent again and again.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    statement: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Bind, Execute and Sync.
    Bound {
        /// Where the statement's name is.
        name: usize,
        /// Where each value is, and its width.
        values: Vec<(usize, usize)>,
    },
    /// A simple query.
    Text(Text),
}

/// A statement whose values are spelled out.
#[derive(Debug)]
struct Text {
    /// The statements it can be, in pieces.
    candidates: Vec<(usize, Vec<OwnedPiece>)>,
    chosen: usize,
    values: Vec<Literal>,
}

#[derive(Debug)]
enum OwnedPiece {
    Sql(Vec<u8>),
    Slot(usize),
}

#[derive(Debug)]
enum Literal {
    Number(i64),
    Letters(Vec<u8>),
}

impl Request {
    /// A template for a prepared statement; integers start as 0 and text as blanks.
    pub fn new(index: usize, statement: &Statement) -> Result<Self, TooLarge> {
        let statement_name = statement_name(index)?;
        let count = u16::try_from(statement.slots.len()).map_err(|_| TooLarge::Placeholders)?;
        let mut bytes = Vec::new();
        let mut values = Vec::with_capacity(statement.slots.len());
        let mut name = 0;
        message(&mut bytes, b'B', |out| {
            // The unnamed portal.
            out.push(0);
            name = out.len();
            zero_ended(out, &statement_name);
            // One format for all parameters: binary.
            out.extend_from_slice(&[0, 1, 0, 1]);
            out.extend_from_slice(&count.to_be_bytes());
            for slot in &statement.slots {
                let (width, fill) = match *slot {
                    Slot::BigInt => (8, 0),
                    Slot::Text(width) => (width, b' '),
                };
                // Wider than a message can be is caught by the message's own length.
                out.extend_from_slice(&i32::try_from(width).unwrap_or(i32::MAX).to_be_bytes());
                values.push((out.len(), width));
                out.resize(out.len() + width, fill);
            }
            // One format for all results: binary.
            out.extend_from_slice(&[0, 1, 0, 1]);
        })?;
        // Unnamed portal, no row limit.
        message(&mut bytes, b'E', |out| {
            out.extend_from_slice(&[0, 0, 0, 0, 0])
        })?;
        message(&mut bytes, b'S', |_| {})?;
        Ok(Self {
            bytes,
            statement: index,
            form: Form::Bound { name, values },
        })
    }

    /// A request for one of some statements of the same slots, sent as text.
    pub fn text(candidates: &[(usize, &Statement)]) -> Result<Self, TooLarge> {
        let slots = candidates.first().map_or(&[][..], |(_, s)| &s.slots);
        let values = slots.iter().map(|slot| match *slot {
            Slot::BigInt => Literal::Number(i64::MIN),
            Slot::Text(width) => Literal::Letters(vec![b' '; width]),
        });
        let mut text = Text {
            candidates: Vec::with_capacity(candidates.len()),
            chosen: 0,
            values: values.collect(),
        };
        let mut bytes = Vec::new();
        for (index, statement) in candidates {
            let pieces = statement.pieces().into_iter().map(OwnedPiece::from);
            text.candidates.push((*index, pieces.collect()));
            text.chosen = text.candidates.len() - 1;
            // The longest that it can be: whatever is drawn later fits.
            text.write(&mut bytes)?;
        }
        text.chosen = 0;
        Ok(Self {
            bytes,
            statement: candidates.first().map_or(0, |(index, _)| *index),
            form: Form::Text(text),
        })
    }

    /// Makes it a request for another statement with the same slots.
    pub fn select(&mut self, index: usize) {
        if index == self.statement {
            return;
        }
        let selected = match &mut self.form {
            Form::Bound { name, .. } => {
                let place = self.bytes.get_mut(*name..*name + 4);
                match (statement_name(index), place) {
                    (Ok(name), Some(place)) => {
                        place.copy_from_slice(&name);
                        true
                    }
                    _ => false,
                }
            }
            Form::Text(text) => text.select(index),
        };
        if selected {
            self.statement = index;
        }
    }

    /// Whether it is a simple query, whose rows come described.
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Text(_))
    }

    /// What to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Text {
    fn select(&mut self, index: usize) -> bool {
        let known = |(candidate, _): &(usize, Vec<OwnedPiece>)| *candidate == index;
        match self.candidates.iter().position(known) {
            Some(place) => {
                self.chosen = place;
                true
            }
            None => false,
        }
    }

    /// Writes the message anew. `bytes` keeps its memory.
    fn write(&self, bytes: &mut Vec<u8>) -> Result<(), TooLarge> {
        bytes.clear();
        let pieces = self.candidates.get(self.chosen).map(|(_, pieces)| pieces);
        message(bytes, b'Q', |out| {
            for piece in pieces.into_iter().flatten() {
                match piece {
                    OwnedPiece::Sql(sql) => out.extend_from_slice(sql),
                    OwnedPiece::Slot(slot) => self.literal(*slot, out),
                }
            }
            out.push(0);
        })
    }

    fn literal(&self, slot: usize, out: &mut Vec<u8>) {
        match self.values.get(slot) {
            // In brackets: `- -1` may be meant, but `--1` would be a comment.
            Some(Literal::Number(number)) if *number < 0 => {
                let _ = write!(out, "({number})");
            }
            // Writing to a Vec cannot fail.
            Some(Literal::Number(number)) => {
                let _ = write!(out, "{number}");
            }
            Some(Literal::Letters(text)) => {
                out.push(b'\'');
                out.extend_from_slice(text);
                out.push(b'\'');
            }
            None => {}
        }
    }
}

impl From<Piece<'_>> for OwnedPiece {
    fn from(piece: Piece<'_>) -> Self {
        match piece {
            Piece::Text(sql) => Self::Sql(sql.as_bytes().to_vec()),
            Piece::Slot(slot) => Self::Slot(slot),
        }
    }
}

impl Slots for Request {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        match &mut self.form {
            Form::Bound { values, .. } => {
                let place = values
                    .get(slot)
                    .and_then(|&(at, width)| self.bytes.get_mut(at..at + width));
                if let Some(place) = place.and_then(|place| place.first_chunk_mut::<8>()) {
                    *place = value.to_be_bytes();
                }
            }
            Form::Text(text) => {
                if let Some(Literal::Number(number)) = text.values.get_mut(slot) {
                    *number = value;
                }
            }
        }
    }

    fn text_mut(&mut self, slot: usize) -> &mut [u8] {
        match &mut self.form {
            Form::Bound { values, .. } => {
                let place = values
                    .get(slot)
                    .and_then(|&(at, width)| self.bytes.get_mut(at..at + width));
                place.unwrap_or(&mut [])
            }
            Form::Text(text) => match text.values.get_mut(slot) {
                Some(Literal::Letters(letters)) => letters,
                _ => &mut [],
            },
        }
    }

    fn finish(&mut self) {
        if let Form::Text(text) = &self.form {
            // It fitted with the longest values when it was made.
            let _ = text.write(&mut self.bytes);
        }
    }
}

/// The requests of all steps of a workload.
#[derive(Debug)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// One for each step, in order.
    pub fn new(requests: Vec<Request>) -> Self {
        Self(requests)
    }

    /// The request of a step.
    #[inline]
    pub fn get(&self, step: usize) -> Option<&Request> {
        self.0.get(step)
    }
}

impl Outbox for Requests {
    type Slots = Request;

    #[inline]
    fn step(&mut self, step: usize, statement: usize) -> Option<&mut Request> {
        let request = self.0.get_mut(step)?;
        request.select(statement);
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(slots: Vec<Slot>) -> Statement {
        Statement::prepared("select 1", slots)
    }

    #[test]
    fn a_request_is_bind_execute_sync_with_the_values_in_place() {
        let mut request =
            Request::new(0x12, &statement(vec![Slot::BigInt, Slot::Text(3)])).unwrap();
        request.set_big_int(0, 258);
        request.text_mut(1).copy_from_slice(b"abc");
        let mut expected = b"B\0\0\0\x2b\x000012\0".to_vec();
        expected.extend_from_slice(
            b"\0\x01\0\x01\0\x02\0\0\0\x08\0\0\0\0\0\0\x01\x02\0\0\0\x03abc\0\x01\0\x01",
        );
        let length = u8::try_from(expected.len() - 1).unwrap();
        expected[4] = length;
        expected.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
        assert_eq!(request.bytes(), expected);
    }

    #[test]
    fn selecting_another_statement_changes_only_the_name() {
        let mut request = Request::new(1, &statement(vec![Slot::BigInt])).unwrap();
        let before = request.bytes().to_vec();
        request.select(0xabc);
        let changed: Vec<usize> = (0..before.len())
            .filter(|at| before[*at] != request.bytes()[*at])
            .collect();
        assert_eq!(&request.bytes()[6..10], b"0abc");
        assert!(changed.iter().all(|at| (6..10).contains(at)));
        request.select(1);
        assert_eq!(request.bytes(), before);
    }

    #[test]
    fn limits_of_the_protocol_are_refused() {
        assert_eq!(statement_name(65_536).unwrap_err(), TooLarge::Statements);
        let many = statement(vec![Slot::BigInt; 65_536]);
        assert_eq!(Request::new(0, &many).unwrap_err(), TooLarge::Placeholders);
    }

    #[test]
    fn a_slot_that_is_not_there_changes_nothing() {
        let mut request = Request::new(0, &statement(vec![Slot::Text(2)])).unwrap();
        let before = request.bytes().to_vec();
        request.set_big_int(0, 7);
        request.set_big_int(5, 7);
        assert!(request.text_mut(9).is_empty());
        assert_eq!(request.bytes(), before);
    }

    #[test]
    fn a_text_request_spells_its_values_out_each_time() {
        let statement = |table: &str| Statement {
            prepared: false,
            ..Statement::prepared(
                format!("insert into {table} values ($1, $2, '$1')"),
                vec![Slot::BigInt, Slot::Text(2)],
            )
        };
        let (first, second) = (statement("t1"), statement("t2"));
        let mut request = Request::text(&[(4, &first), (5, &second)]).unwrap();
        assert!(request.is_text());
        let mut sent = |index, number| {
            request.select(index);
            request.set_big_int(0, number);
            request.text_mut(1).copy_from_slice(b"ab");
            request.finish();
            request.bytes().to_vec()
        };
        assert_eq!(
            sent(4, 12),
            b"Q\0\0\0\x2binsert into t1 values (12, 'ab', '$1')\0"
        );
        assert_eq!(
            sent(5, -3),
            b"Q\0\0\0\x2dinsert into t2 values ((-3), 'ab', '$1')\0"
        );
        assert_eq!(
            sent(9, 1),
            b"Q\0\0\0\x2ainsert into t2 values (1, 'ab', '$1')\0",
            "an unknown statement changes nothing"
        );
    }
}
