//! Messages of the extended protocol with values as text.
//!
//! Source: PostgreSQL manual, "Message Formats".

use crate::request::{TooLarge, message, zero_ended};

/// Appends the Parse of a statement; `types` are the OIDs of its values, and the server chooses where one is
/// missing or 0.
pub fn parse(out: &mut Vec<u8>, name: &[u8], sql: &str, types: &[u32]) -> Result<(), TooLarge> {
    let count = counted(types.len())?;
    message(out, b'P', |out| {
        zero_ended(out, name);
        zero_ended(out, sql.as_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    })
}

/// Appends the Bind of a statement to the unnamed portal: values and results as text.
pub fn bind(out: &mut Vec<u8>, name: &[u8], values: &[Option<String>]) -> Result<(), TooLarge> {
    let count = counted(values.len())?;
    message(out, b'B', |out| {
        out.push(0);
        zero_ended(out, name);
        // All values as text.
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            // What is longer than a message can be is caught by the message's own length.
            let length = value
                .as_ref()
                .map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value.as_deref().unwrap_or_default().as_bytes());
        }
        // All results as text.
        out.extend_from_slice(&[0, 0]);
    })
}

/// Appends the Execute of the unnamed portal, without a limit of rows, and Sync.
pub fn execute_and_sync(out: &mut Vec<u8>) -> Result<(), TooLarge> {
    message(out, b'E', |out| out.extend_from_slice(&[0, 0, 0, 0, 0]))?;
    message(out, b'S', |_| {})
}

fn counted(count: usize) -> Result<u16, TooLarge> {
    u16::try_from(count).map_err(|_| TooLarge::Placeholders)
}
