//! Logs of a server: which format, which order, one entry after another.

mod csv;
pub(crate) mod entry;
mod json;
mod lines;
mod plain;

use deltabench_model::problem::Problem;
use entry::{Entry, Record};
use lines::Lines;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// How entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Csv,
    Plain,
}

impl Format {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Json => "jsonlog",
            Self::Csv => "csvlog",
            Self::Plain => "stderr",
        }
    }
}

/// A file of a log.
pub(crate) struct LogFile {
    pub path: PathBuf,
    pub format: Format,
    /// Absent until its turn comes, and behind it: a log may have more files than a process may open.
    lines: Option<Lines>,
    /// Records up to the first entry, of what cannot be opened again: stdin and pipes.
    again: VecDeque<Record>,
    /// The first entry.
    first: Option<Box<Entry>>,
    /// Lines of all its records, once they were taken.
    read: u64,
}

/// Lines that are looked at to find the format: a rotated file may begin inside an entry.
const LOOKED_AT: usize = 100;

impl LogFile {
    /// Opens a file and finds its format; absent if the file is empty.
    ///
    /// Errors: what cannot be read; a format that is none of a log.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Problem> {
        let mut lines = Lines::open(path).map_err(|error| unreadable(path, &error))?;
        let mut looked = Vec::new();
        let mut format = None;
        while looked.len() < LOOKED_AT && format.is_none() {
            let Some(line) = lines.next().map_err(|error| unreadable(path, &error))? else {
                break;
            };
            format = format_of(&entry::decoded(&line.0).0);
            looked.push(line);
        }
        if looked.iter().all(|(line, _)| line.trim_ascii().is_empty()) {
            return Ok(None);
        }
        let format = format.ok_or_else(|| unknown(path, &looked))?;
        lines.give_back(looked);
        let mut file = Self {
            path: path.to_owned(),
            format,
            lines: None,
            again: VecDeque::new(),
            first: None,
            read: 0,
        };
        // A rotated file may begin inside an entry.
        while file.first.is_none() && file.again.len() < LOOKED_AT {
            let record = record(format, &mut lines).map_err(|error| unreadable(path, &error))?;
            let Some(record) = record else {
                break;
            };
            if let Record::Entry(entry) = &record {
                file.first = Some(entry.clone());
            }
            file.again.push_back(record);
        }
        if path.is_file() {
            file.again.clear();
        } else {
            file.lines = Some(lines);
        }
        Ok(Some(file))
    }

    /// The next entry. The file is open from the first one until there is none.
    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        if let Some(first) = self.again.pop_front() {
            return Ok(Some(first));
        }
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(Lines::open(&self.path)?),
        };
        let record = record(self.format, lines)?;
        if record.is_none() {
            self.read = lines.read();
            self.lines = None;
        }
        Ok(record)
    }

    /// Lines of a file whose records were all taken.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.first.as_deref()
    }

    /// Time of the first entry; nothing if there is none.
    pub(crate) fn begins(&self) -> &str {
        self.first.as_ref().map_or("", |first| &first.time)
    }
}

fn record(format: Format, lines: &mut Lines) -> io::Result<Option<Record>> {
    match format {
        Format::Json => json::next(lines),
        Format::Csv => csv::next(lines),
        Format::Plain => plain::next(lines),
    }
}

fn format_of(line: &str) -> Option<Format> {
    let json = || {
        let object: serde_json::Value = serde_json::from_str(line).ok()?;
        let keys = ["timestamp", "error_severity"];
        keys.iter()
            .all(|key| object.get(key).is_some())
            .then_some(Format::Json)
    };
    let csv = || {
        // `2026-11-02 10:11:12.123 UTC,"app","shop",77,`: the process is the fourth column.
        let start = line.get(..line.find('\n').unwrap_or(line.len()))?;
        let columns: Vec<&str> = start.splitn(8, ',').collect();
        let process = columns.get(3)?;
        let number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        (entry::begins_with_time(line) && number).then_some(Format::Csv)
    };
    let plain = || plain::is_entry(line).then_some(Format::Plain);
    if line.starts_with('{') {
        json()
    } else {
        csv().or_else(plain)
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let problem = Problem::new(format!("cannot read {}", path.display())).detail(error.to_string());
    match error.kind() {
        io::ErrorKind::Unsupported => {
            problem.hint("unpack it, or pipe it: zstdcat FILE | deltabench capture --log -")
        }
        io::ErrorKind::PermissionDenied => {
            problem.hint("read it as the server's user, or copy the file")
        }
        io::ErrorKind::NotFound => problem.hint(
            "the directory is `log` in the data directory, unless log_directory names another",
        ),
        _ => problem.hint("copy the file again, or leave it out"),
    }
}

/// Settings that make a log that can be read.
pub(crate) const SETTINGS: &str = "\
logging_collector = on
log_destination = 'jsonlog'          # 'csvlog' before 15
log_min_duration_sample = 0          # 13 and newer; log_min_duration_statement = 0 before
log_statement_sample_rate = 0.01     # of the executions; 1 logs all
log_parameter_max_length = -1
lc_messages = 'C'
compute_query_id = on                # 14 and newer";

fn unknown(path: &Path, looked: &[lines::Line]) -> Problem {
    let first = looked
        .first()
        .map(|(line, _)| entry::decoded(line).0.into_owned());
    let first = first.unwrap_or_default();
    if first.contains("\"deltabench.capture\"") {
        return Problem::new(format!("{} is a capture already", path.display()))
            .hint("deltabench replay reads it; `--log` takes logs");
    }
    let stderr = looked
        .iter()
        .any(|(line, _)| entry::decoded(line).0.contains("LOG:  "));
    let problem = Problem::new(format!(
        "{} is in no format of a log that deltabench knows",
        path.display()
    ));
    if stderr {
        problem
            .detail("it looks like a text log, but its log_line_prefix has no time or no process")
            .hint(
                "log with log_destination = 'jsonlog' or 'csvlog', or with a log_line_prefix such as \
                 '%m [%p] %q%u@%d '",
            )
    } else {
        problem
            .detail(format!(
                "none of its first {} lines begins an entry of jsonlog, csvlog or a text log",
                looked.len()
            ))
            .hint(format!("set in postgresql.conf of the server:\n{SETTINGS}"))
    }
}
