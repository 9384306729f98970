//! Bind, Execute and Sync as a template whose values are overwritten in place.

use deltabench_workload::executable::{Slot, Slots, Statement};

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
    /// Where the statement's name is.
    name: usize,
    statement: usize,
    /// Where each value is, and its width.
    values: Vec<(usize, usize)>,
}

impl Request {
    /// A template for a statement; integers start as 0 and text as blanks.
    pub fn new(index: usize, statement: &Statement) -> Result<Self, TooLarge> {
        let name = statement_name(index)?;
        let count = u16::try_from(statement.slots.len()).map_err(|_| TooLarge::Placeholders)?;
        let mut bytes = Vec::new();
        let mut values = Vec::with_capacity(statement.slots.len());
        let mut name_at = 0;
        message(&mut bytes, b'B', |out| {
            // The unnamed portal.
            out.push(0);
            name_at = out.len();
            zero_ended(out, &name);
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
            name: name_at,
            statement: index,
            values,
        })
    }

    /// Makes it a request for another statement with the same slots.
    pub fn select(&mut self, index: usize) {
        if index == self.statement {
            return;
        }
        if let (Ok(name), Some(place)) = (
            statement_name(index),
            self.bytes.get_mut(self.name..self.name + 4),
        ) {
            place.copy_from_slice(&name);
            self.statement = index;
        }
    }

    /// What to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Slots for Request {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        let place = self
            .values
            .get(slot)
            .and_then(|&(at, width)| self.bytes.get_mut(at..at + width));
        if let Some(place) = place.and_then(|place| place.first_chunk_mut::<8>()) {
            *place = value.to_be_bytes();
        }
    }

    fn text_mut(&mut self, slot: usize) -> &mut [u8] {
        let place = self
            .values
            .get(slot)
            .and_then(|&(at, width)| self.bytes.get_mut(at..at + width));
        place.unwrap_or(&mut [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(slots: Vec<Slot>) -> Statement {
        Statement {
            sql: "select 1".into(),
            slots,
        }
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
}
