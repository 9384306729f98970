//! The capture file: JSON lines, a header and then a line for each statement.

use crate::statement::Statement;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What the header calls the format.
pub const FORMAT: &str = "deltabench.capture";
/// The version that this program writes and reads.
pub const VERSION: u32 = 1;

/// What a header says of its maker.
pub(crate) const MADE_BY: &str = concat!("deltabench ", env!("CARGO_PKG_VERSION"));

/// What the statements were taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A server's log, perhaps with `pg_stat_statements`.
    #[default]
    Log,
    /// Files of statements.
    Sql,
    /// `pg_stat_statements` alone.
    Statistics,
}

/// What was read, and what of it is not in the statements. All are counts of the log, before the sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Lines of all files.
    pub lines: u64,
    /// Entries that are no executions: connections, checkpoints, other messages.
    pub other: u64,
    /// Executions of statements.
    pub executions: u64,
    /// Statements that ended with an error.
    pub errors: u64,
    /// Entries that could not be understood.
    pub unreadable: u64,
    /// Entries with bytes that are not UTF-8.
    pub not_utf8: u64,
    /// Executions without a duration, of those that have one otherwise.
    pub without_duration: u64,
    /// Durations that belong to no statement of the log.
    pub stray_durations: u64,
    /// Durations in another language than English.
    pub foreign: u64,
    /// Statements of `pg_stat_statements` whose text the role that read it may not see.
    pub hidden: u64,
    /// Statements of `pg_stat_statements` that are not in the log.
    pub only_in_statistics: u64,
    /// Statements of the log that are not in `pg_stat_statements`.
    pub not_in_statistics: u64,
}

/// The first line of a capture file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Header {
    /// What was read.
    pub source: Source,
    /// The files that were read.
    pub files: Vec<String>,
    /// The deltabench that made the capture.
    pub made_by: String,
    /// Version of the captured server, if the log says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Time of the first entry, as the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Time of the last entry, as the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Share of the executions that the log has, 0 to 1.
    pub sample_rate: f64,
    /// Executions of at least this many milliseconds are in the log whatever the sample rate; absent: sampled
    /// like all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_above_ms: Option<f64>,
    /// Times that the sampling changed while the log was written; the other fields have the last state.
    #[serde(default)]
    pub sampling_changes: u64,
    /// The shortest execution in milliseconds, of a log that seems to have only slow ones; absent else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_above_ms: Option<f64>,
    /// Share of the executions in the extended protocol whose binding is in the log, too: 1 if the log has
    /// everything, about the rate if it is a sample. Absent if it has too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_share: Option<f64>,
    /// Calls in `pg_stat_statements` / in the log after the sampling, of statements in both; absent without
    /// statistics. About 1 if both are of the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics_ratio: Option<f64>,
    /// Whether values were replaced by others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Seed of the choice of tuples.
    pub seed: u64,
    /// Most tuples of a statement.
    pub most_tuples: u32,
    /// Settings of the captured server that the log names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What was read, and what of it is not in the statements.
    pub counted: Counted,
    /// Where the first entries stand that could not be understood: `FILE:LINE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable_at: Vec<String>,
}

/// The header with what only the file needs.
#[derive(Serialize, Deserialize)]
struct FirstLine {
    format: String,
    version: u32,
    /// Number of lines that follow: a file that was cut is refused.
    statements: u64,
    #[serde(flatten)]
    header: Header,
}

/// What can be read of any version.
#[derive(Deserialize)]
struct AnyVersion {
    format: String,
    version: u32,
}

/// The statements of a workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Capture {
    /// Where they are from.
    pub header: Header,
    /// The statements, those with the most time first.
    pub statements: Vec<Statement>,
}

impl Capture {
    /// A checksum of the statements with their values, in hexadecimal.
    pub fn sha256(&self) -> String {
        // Plain structs: there is nothing that JSON cannot hold.
        let text = serde_json::to_vec(&self.statements).unwrap_or_default();
        let digest = Sha256::digest(&text);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a capture file.
    ///
    /// Errors: a file that cannot be read, is no capture, has another version or was cut. No message has a
    /// value of the file.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let unreadable = |error: std::io::Error| {
            Problem::new(format!("cannot read {}", path.display())).detail(error.to_string())
        };
        let file = File::open(path).map_err(|error| {
            unreadable(error).hint("`deltabench capture --log FILE --out FILE` makes a capture")
        })?;
        let mut lines = BufReader::new(file).split(b'\n');
        let first = lines.next().transpose().map_err(unreadable)?;
        let first = first_line(&first.unwrap_or_default(), path)?;
        let mut statements = Vec::new();
        for (line, number) in lines.zip(2_u64..) {
            let line = line.map_err(unreadable)?;
            let statement = serde_json::from_slice(&line);
            statements.push(statement.map_err(|error| {
                damaged(path).detail(format!("line {number}, column {}", error.column()))
            })?);
        }
        if count(statements.len()) != first.statements {
            return Err(damaged(path).detail(format!(
                "it has {} of {} statements",
                statements.len(),
                first.statements
            )));
        }
        Ok(Self {
            header: first.header,
            statements,
        })
    }

    /// Writes the file whole or not at all, readable for its owner only.
    ///
    /// Errors: a directory that is missing or full.
    pub fn write(&self, path: &Path) -> Result<(), Problem> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".new-{}", std::process::id()));
        let new = Path::new(&name);
        let written = self.write_to(new);
        let written = written.and_then(|()| std::fs::rename(new, path));
        written.map_err(|error| {
            // Only our own file; what matters is reported below.
            let _ = std::fs::remove_file(new);
            Problem::new(format!("cannot write {}", path.display()))
                .detail(error.to_string())
                .hint("name a file in a directory that exists and has space")
        })
    }

    fn write_to(&self, path: &Path) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = BufWriter::new(options.open(path)?);
        let first = FirstLine {
            format: FORMAT.to_owned(),
            version: VERSION,
            statements: count(self.statements.len()),
            header: self.header.clone(),
        };
        serde_json::to_writer(&mut file, &first)?;
        file.write_all(b"\n")?;
        for statement in &self.statements {
            serde_json::to_writer(&mut file, statement)?;
            file.write_all(b"\n")?;
        }
        file.into_inner()?.sync_all()
    }
}

/// The header of a file of this version.
fn first_line(line: &[u8], path: &Path) -> Result<FirstLine, Problem> {
    let any: Option<AnyVersion> = serde_json::from_slice(line).ok();
    let any = any.filter(|any| any.format == FORMAT).ok_or_else(|| {
        Problem::new(format!("{} is no capture", path.display()))
            .detail(format!("its first line is no header of {FORMAT}"))
            .hint(
                "`deltabench capture --log FILE --out FILE` makes one from a log; a file of statements \
                 ends in .sql",
            )
    })?;
    if any.version != VERSION {
        return Err(Problem::new(format!(
            "{} is a capture of version {}",
            path.display(),
            any.version
        ))
        .detail(format!("this deltabench reads version {VERSION}"))
        .hint("use the deltabench that made it, or make the capture again"));
    }
    serde_json::from_slice(line)
        .map_err(|error| damaged(path).detail(format!("line 1, column {}", error.column())))
}

fn damaged(path: &Path) -> Problem {
    Problem::new(format!("{} is damaged", path.display())).hint("make the capture again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::tests::statement;
    use std::os::unix::fs::PermissionsExt;

    fn capture() -> Capture {
        let mut second = statement();
        second.id = "00".to_owned();
        second.total_ms = None;
        second.tuples[0].values = vec![Some("line\nbreak".to_owned()), Some(String::new()), None];
        Capture {
            header: Header {
                files: vec!["a.json".to_owned()],
                sample_rate: 0.01,
                counted: Counted {
                    lines: 7,
                    ..Counted::default()
                },
                ..Header::default()
            },
            statements: vec![statement(), second],
        }
    }

    #[test]
    fn a_capture_is_read_as_it_was_written_and_only_its_owner_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shop.capture");
        capture().write(&path).unwrap();
        capture().write(&path).unwrap();
        assert_eq!(Capture::read(&path).unwrap(), capture());
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_whole_capture_of_this_version_is_refused_without_a_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shop.capture");
        capture().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let problem = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Capture::read(&path).unwrap_err().to_string()
        };
        let newer = text.replace("\"version\":1", "\"version\":2");
        assert!(problem(&newer).contains("version 2"));
        let cut = text.lines().take(2).collect::<Vec<_>>().join("\n");
        assert!(problem(&cut).contains("1 of 2 statements"));
        let broken = problem(&text.replace("\"n\":3.0", "\"n\":\"secret\""));
        assert!(broken.contains("line 2"), "{broken}");
        assert!(!broken.contains("secret"), "{broken}");
        assert!(problem("select 1").contains("is no capture"));
        assert!(problem("").contains("is no capture"));
        assert!(problem("{\"format\":\"other\",\"version\":1}").contains("is no capture"));
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing/shop.capture");
        let problem = capture().write(&path).unwrap_err().to_string();
        assert!(problem.contains("cannot write"), "{problem}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }
}
