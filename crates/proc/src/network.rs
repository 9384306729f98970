//! What went over the network.

use crate::file::numbers;

/// Bytes over all interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that came in.
    pub received: u64,
    /// Bytes that went out.
    pub sent: u64,
}

impl Traffic {
    /// Reads `/proc/net/dev`.
    ///
    /// Source: proc_pid_net(5): two head lines; after each name 8 numbers received, 8 sent, bytes first.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut sum = Self::default();
        for line in bytes.split(|&byte| byte == b'\n').skip(2) {
            let Some(colon) = line.iter().rposition(|&byte| byte == b':') else {
                continue;
            };
            let mut fields = numbers(line.get(colon + 1..)?);
            sum.received += fields.next()?;
            sum.sent += fields.nth(7)?;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_added_up_over_interfaces() {
        let text = b"Inter-|   Receive   |  Transmit\n face |bytes packets\n    \
            lo: 100 2 0 0 0 0 0 0 200 2 0 0 0 0 0 0\neth0:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n";
        let expected = Traffic {
            received: 107,
            sent: 208,
        };
        assert_eq!(Traffic::parse(text), Some(expected));
        assert_eq!(Traffic::parse(b"a\nb\n"), Some(Traffic::default()));
    }
}
