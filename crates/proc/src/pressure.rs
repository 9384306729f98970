//! Time in which some task waited for a resource.
//!
//! Source: Documentation/accounting/psi.rst.

use crate::file::numbers;

/// `total` of the line `some`, nanoseconds.
pub fn total_ns(bytes: &[u8]) -> Option<u64> {
    numbers(some(bytes, b"total=")?).next()?.checked_mul(1000)
}

/// `avg10` of the line `some`: the share of the last 10 s, percent.
pub fn avg10(text: &str) -> Option<f64> {
    let word = some(text.as_bytes(), b"avg10=")?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// What follows this key in the line `some`, which is the first.
fn some<'a>(bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let line = bytes.split(|&byte| byte == b'\n').next()?;
    line.strip_prefix(b"some ")?
        .split(|&byte| byte == b' ')
        .find_map(|word| word.strip_prefix(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_some_is_read() {
        let text = b"some avg10=0.03 avg60=0.08 avg300=0.28 total=2610313317\n\
                     full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(total_ns(text), Some(2_610_313_317_000));
        assert_eq!(avg10(std::str::from_utf8(text).unwrap()), Some(0.03));
        assert_eq!(total_ns(b"full avg10=0.00 total=5\n"), None);
        assert_eq!(total_ns(b""), None);
    }
}
