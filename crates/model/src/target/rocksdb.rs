//! Versions of RocksDB as they are asked for.

use crate::problem::Problem;
use std::fmt;
use std::str::FromStr;

/// A version of RocksDB, or the newest of a series: `10.2.1`, `10.10.1.1`, `10`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RocksdbVersion {
    /// One to four numbers; fewer than three stand for the newest that begins with them.
    parts: Vec<u32>,
}

impl RocksdbVersion {
    /// Whether `other` is what was asked for, or one of the series.
    pub fn is_answered_by(&self, other: &Self) -> bool {
        other.parts.starts_with(&self.parts) && (self.is_series() || self == other)
    }

    /// Whether it stands for the newest of a series.
    pub fn is_series(&self) -> bool {
        self.parts.len() < 3
    }

    /// The series of its first number.
    pub fn major(&self) -> Self {
        Self {
            parts: self.parts.iter().take(1).copied().collect(),
        }
    }

    /// A number that orders versions: 62905 for 6.29.5, 100201 for 10.2.1.
    pub fn number(&self) -> u32 {
        let part = |place: usize| self.parts.get(place).copied().unwrap_or(0);
        part(0) * 10_000 + part(1) * 100 + part(2)
    }
}

impl FromStr for RocksdbVersion {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let parts: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        match parts {
            Ok(parts) if parts.len() <= 4 && parts.iter().all(|part| *part < 1000) => {
                Ok(Self { parts })
            }
            _ => Err(
                Problem::new(format!("`{text}` is not a version of RocksDB")).hint(
                    "write a version (rocksdb:10.2.1) or a series (rocksdb:10, rocksdb:8.11)",
                ),
            ),
        }
    }
}

impl fmt::Display for RocksdbVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> RocksdbVersion {
        text.parse().unwrap()
    }

    #[test]
    fn a_series_is_answered_by_its_versions_and_a_version_by_itself() {
        assert!(version("10").is_answered_by(&version("10.2.1")));
        assert!(version("8.11").is_answered_by(&version("8.11.4")));
        assert!(!version("8.1").is_answered_by(&version("8.11.4")));
        assert!(version("10.10.1").is_answered_by(&version("10.10.1")));
        assert!(!version("10.10.1").is_answered_by(&version("10.10.1.1")));
        assert_eq!(version("10.10.1.1").major(), version("10"));
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert!(version("6.29.5") < version("10.2.1"));
        assert_eq!(version("6.29.5").number(), 62_905);
        assert_eq!(version("10.2.1").number(), 100_201);
        for bad in ["", "x", "10.x", "10.2.1.1.1", "10."] {
            assert!(bad.parse::<RocksdbVersion>().is_err(), "{bad}");
        }
    }
}
