//! What `pg_control` says of a data directory, read without `pg_controldata`, which prebuilt trees lack.
//!
//! Source: pg_control.h of PostgreSQL 9.6 to 18. The first fields are at the same places in all of them. The
//! fields of the layout follow a constant number, 1234567.0, whose place differs.

use crate::failure::failed;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Bytes of the file that hold the structure: it is smaller than a sector, so that it is written at once.
const SECTOR: usize = 512;
/// What `floatFormat` has.
const FLOAT_FORMAT: f64 = 1_234_567.0;
/// Fields of four bytes from `blcksz` to `loblksize`.
const LAYOUT_FIELDS: usize = 8;
/// Place of `data_checksum_version` behind `floatFormat`: these fields, and flags in four bytes.
const CHECKSUMS_AT: usize = 8 + 4 * LAYOUT_FIELDS + 4;
/// Place of `xlog_seg_size` behind `floatFormat`.
const SEGMENT_AT: usize = 8 + 4 * 3;

/// What a data directory says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Of the system: a number that initdb draws.
    pub system: u64,
    /// Version of the file itself.
    version: u32,
    /// Version of the system catalogs: each major has its own.
    pub catalog: u32,
    pub state: State,
    /// Where the last checkpoint is in the write-ahead log.
    pub checkpoint: u64,
    /// Sizes of blocks, segments and names, as bytes that are only compared.
    layout: Vec<u8>,
    pub checksums: bool,
    /// Bytes of a segment of the write-ahead log.
    pub wal_segment: u32,
    /// Of the file, in hexadecimal: each checkpoint changes it.
    pub sha256: String,
}

/// What the server last did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was shut down.
    ShutDown,
    /// A standby was shut down.
    ShutDownInRecovery,
    /// It runs, or crashed.
    Running,
    /// It recovers, or crashed meanwhile.
    Recovering,
}

impl Control {
    /// Reads that of a data directory.
    ///
    /// Errors: it cannot be read; it is none of this kind of machine.
    pub fn of(directory: &Path) -> Result<Self, Problem> {
        let path = directory.join("global/pg_control");
        let bytes = std::fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        Self::read(&bytes).map_err(|why| {
            Problem::new(format!("{} is not usable here", path.display())).detail(why)
        })
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let hash = Sha256::digest(bytes);
        let bytes = bytes.get(..SECTOR).ok_or("the file is cut")?;
        let version = four(bytes, 8)?;
        // Versions are small numbers: with the other order of bytes they are large.
        if version > 0xFFFF {
            return Err(match version.swap_bytes() > 0xFFFF {
                true => "it is no pg_control".to_owned(),
                false => "it was made on a machine with another order of bytes".to_owned(),
            });
        }
        let mut places = (0..SECTOR).step_by(8);
        let format = places.find(|place| {
            bytes.get(*place..*place + 8) == Some(FLOAT_FORMAT.to_ne_bytes().as_slice())
        });
        let format = format.ok_or("it was made on a machine with other floats")?;
        let layout = bytes.get(format..format + 8 + 4 * LAYOUT_FIELDS);
        Ok(Self {
            system: eight(bytes, 0)?,
            version,
            catalog: four(bytes, 12)?,
            state: state(four(bytes, 16)?)?,
            checkpoint: eight(bytes, 32)?,
            layout: layout.ok_or("the file is cut")?.to_vec(),
            checksums: four(bytes, format + CHECKSUMS_AT)? != 0,
            wal_segment: four(bytes, format + SEGMENT_AT)?,
            sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// Why a server that makes data directories such as `own` cannot use this one; absent if it can.
    pub fn objection(&self, own: &Self) -> Option<String> {
        if (self.version, self.catalog) != (own.version, own.catalog) {
            return Some(format!(
                "the directory has catalogs of version {}, and the server needs version {}",
                self.catalog, own.catalog
            ));
        }
        (self.without_segment() != own.without_segment()).then(|| {
            "the directory was made by a server that was built with other sizes of blocks or names".to_owned()
        })
    }

    /// The layout without the size of segments of the write-ahead log, which every server can read (11+).
    fn without_segment(&self) -> Vec<u8> {
        let mut layout = self.layout.clone();
        if let Some(segment) = layout.get_mut(SEGMENT_AT..SEGMENT_AT + 4) {
            segment.fill(0);
        }
        layout
    }

    /// What tells this state of this directory from every other.
    pub fn identity(&self) -> String {
        format!(
            "system {}, checkpoint {:X}/{:X}",
            self.system,
            self.checkpoint >> 32,
            self.checkpoint & 0xFFFF_FFFF
        )
    }
}

/// Source: `DBState`.
fn state(number: u32) -> Result<State, String> {
    match number {
        1 => Ok(State::ShutDown),
        2 => Ok(State::ShutDownInRecovery),
        0 | 3 | 6 => Ok(State::Running),
        4 | 5 => Ok(State::Recovering),
        other => Err(format!("{other} is no state of a server")),
    }
}

fn four(bytes: &[u8], place: usize) -> Result<u32, String> {
    let field = bytes
        .get(place..place + 4)
        .and_then(|field| field.try_into().ok());
    field
        .map(u32::from_ne_bytes)
        .ok_or_else(|| "the file is cut".to_owned())
}

fn eight(bytes: &[u8], place: usize) -> Result<u64, String> {
    let field = bytes
        .get(place..place + 8)
        .and_then(|field| field.try_into().ok());
    field
        .map(u64::from_ne_bytes)
        .ok_or_else(|| "the file is cut".to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file as 17 writes it, with the fields that are read.
    pub fn file(state: u32) -> Vec<u8> {
        let mut bytes = vec![0; 8192];
        let mut put =
            |place: usize, field: &[u8]| bytes[place..place + field.len()].copy_from_slice(field);
        put(0, &7_500_000_000_000_000_001_u64.to_ne_bytes());
        put(8, &1300_u32.to_ne_bytes());
        put(12, &202_406_281_u32.to_ne_bytes());
        put(16, &state.to_ne_bytes());
        put(32, &0x1_0152_8A40_u64.to_ne_bytes());
        put(208, &8_u32.to_ne_bytes());
        put(216, &FLOAT_FORMAT.to_ne_bytes());
        let fields = [8192_u32, 131_072, 8192, 16 << 20, 64, 32, 1996, 2048, 1, 1];
        for (place, field) in fields.iter().enumerate() {
            put(224 + 4 * place, &field.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn the_fields_are_found_whatever_the_place_of_the_layout() {
        let found = Control::read(&file(1)).unwrap();
        assert_eq!(found.state, State::ShutDown);
        assert_eq!(
            (found.catalog, found.checksums, found.wal_segment),
            (202_406_281, true, 16 << 20)
        );
        assert_eq!(
            found.identity(),
            "system 7500000000000000001, checkpoint 1/1528A40"
        );
        let mut moved = file(6);
        moved.copy_within(208..400, 216);
        let moved = Control::read(&moved).unwrap();
        assert_eq!((moved.state, moved.layout), (State::Running, found.layout));
    }

    #[test]
    fn other_machines_and_other_files_are_refused_by_name() {
        let refused = |bytes: &[u8]| Control::read(bytes).unwrap_err();
        let mut other = file(1);
        other[8..12].reverse();
        assert!(refused(&other).contains("order of bytes"));
        let mut floats = file(1);
        floats[216..224].fill(1);
        assert!(refused(&floats).contains("floats"));
        assert!(refused(&file(1)[..100]).contains("cut"));
        assert!(refused(&vec![0xAB; 8192]).contains("no pg_control"));
        assert!(refused(&file(77)).contains("state"));
    }

    #[test]
    fn catalogs_and_block_sizes_must_be_those_of_the_server() {
        let own = Control::read(&file(1)).unwrap();
        let other = |change: fn(&mut Vec<u8>)| {
            let mut bytes = file(1);
            change(&mut bytes);
            Control::read(&bytes).unwrap().objection(&own)
        };
        assert_eq!(other(|_| ()), None);
        assert!(other(|file| file[12] = 0).unwrap().contains("catalogs"));
        assert!(other(|file| file[225] = 0x40).unwrap().contains("sizes"));
        // Segments of the log may be larger; so may nothing else.
        assert_eq!(other(|file| file[239] = 4), None);
    }
}
