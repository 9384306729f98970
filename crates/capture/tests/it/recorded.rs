//! Logs that servers wrote, in `tests/data`; `DELTABENCH_BLESS=1` on the tests of servers writes them again.

use crate::workload::check;
use deltabench_capture::{Capture, Request};
use std::path::{Path, PathBuf};

pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

pub fn request(logs: &[&Path]) -> Request {
    Request {
        logs: logs.iter().map(|path| path.to_path_buf()).collect(),
        tuples: 64,
        seed: 1,
        ..Request::default()
    }
}

pub fn captured(logs: &[&Path]) -> Capture {
    Capture::of_logs(&request(logs), &mut |_, _| {}).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn recorded_logs_have_the_workload() {
    for (name, major) in [
        ("9.csv", 9),
        ("14.csv", 14),
        ("14.log", 14),
        ("17.json", 17),
        ("18.csv", 18),
        ("18.json", 18),
        ("18.log", 18),
    ] {
        println!("{name}");
        check(&captured(&[&directory().join(name)]), major);
    }
}

/// Rotated, given in the wrong order, the older one packed, and the last line cut.
#[test]
fn a_log_in_parts_is_the_same_log() {
    for name in ["18.json", "18.csv", "18.log"] {
        println!("{name}");
        let text = std::fs::read(directory().join(name)).unwrap();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        // Between two entries, somewhere in the middle.
        let begins = |line: &&[u8]| {
            line.starts_with(b"{") || line.starts_with(b"2026-") && !line.ends_with(b"-- ")
        };
        let middle = (lines.len() / 2..)
            .find(|at| begins(&lines[*at]) && !lines[*at].windows(6).any(|w| w == b"DETAIL"));
        let (old, new) = lines.split_at(middle.unwrap());
        let directory = tempfile::tempdir().unwrap();
        let (old_file, new_file) = (directory.path().join("z.gz"), directory.path().join("a"));
        let mut packed = flate2::write::GzEncoder::new(
            std::fs::File::create(&old_file).unwrap(),
            flate2::Compression::fast(),
        );
        std::io::Write::write_all(&mut packed, &old.concat()).unwrap();
        packed.finish().unwrap();
        std::fs::write(&new_file, new.concat()).unwrap();
        let whole = captured(&[&self::directory().join(name)]);
        let parts = captured(&[&new_file, &old_file]);
        assert_eq!(parts.statements, whole.statements, "{name}");
        let mut cut = new.concat();
        let last = new.last().unwrap().len();
        cut.truncate(cut.len() - last + 40);
        std::fs::write(&new_file, cut).unwrap();
        let cut = captured(&[&new_file, &old_file]);
        assert!(cut.header.counted.unreadable <= 1);
        assert!(cut.header.counted.executions + 1 >= whole.header.counted.executions);
    }
}

/// A server that crashed left half an entry, and the next one went on in the same file.
#[test]
fn entries_after_a_cut_one_are_read() {
    let text = std::fs::read(directory().join("18.csv")).unwrap();
    // In the middle of a quoted value of several lines.
    let at = text
        .windows(10)
        .position(|window| window == b"two\"\" line")
        .unwrap();
    let broken = [&text[..at], b"\n", &text].concat();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("18.csv");
    std::fs::write(&path, broken).unwrap();
    let found = captured(&[&path]).header.counted;
    let whole = captured(&[&self::directory().join("18.csv")])
        .header
        .counted;
    assert_eq!(found.unreadable, 1);
    assert!(found.executions >= whole.executions, "{found:?} {whole:?}");
}

/// Whatever a disk or a rotation leaves of a log: what can be read is read, and nothing ends the program.
#[test]
fn damaged_logs_are_read_or_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("damaged");
    for name in ["18.json", "18.csv", "18.log"] {
        let whole = std::fs::read(directory().join(name)).unwrap();
        let executions = captured(&[&directory().join(name)])
            .header
            .counted
            .executions;
        let (mut read, mut most) = (0, 0);
        for part in 0..40 {
            let mut damaged = whole.clone();
            let at = whole.len() * part / 40;
            match part % 4 {
                0 => damaged.truncate(at),
                1 => damaged.drain(..at).for_each(drop),
                2 => damaged
                    .drain(at..(at + 700).min(whole.len()))
                    .for_each(drop),
                _ => damaged[at..(at + 50).min(whole.len())].fill(b'"'),
            }
            std::fs::write(&path, damaged).unwrap();
            if let Ok(capture) = Capture::of_logs(&request(&[&path]), &mut |_, _| {}) {
                read += 1;
                most = most.max(capture.header.counted.executions);
            }
        }
        assert!(read >= 30, "{name}: {read}");
        assert!(
            most + 5 >= executions && most <= executions,
            "{name}: {most} of {executions}"
        );
    }
}
