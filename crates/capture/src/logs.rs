//! A capture of logs, perhaps with `pg_stat_statements`.

use crate::capture::{Capture, Header, MADE_BY, Source};
use crate::collect::{Collector, Hashed, sort};
use crate::log::entry::Record;
use crate::log::{Format, LogFile, SETTINGS, unreadable};
use crate::sampling::Sampling;
use crate::statement::Obstacle;
use crate::statistics::{joined, read};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What to capture.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files of a log in any order, plain or packed by gzip; directories of them; `-` is stdin. None if there
    /// are only statistics.
    pub logs: Vec<PathBuf>,
    /// `pg_stat_statements` as CSV with a header.
    pub statistics: Option<PathBuf>,
    /// Share of the executions that are logged, 0 to 1; absent: as the log says, else all.
    pub sample_rate: Option<f64>,
    /// Executions of at least this many milliseconds are logged whatever the rate; absent: as the log says.
    pub always_above_ms: Option<f64>,
    /// Most tuples of a statement.
    pub tuples: u32,
    /// Seed of the choice of tuples.
    pub seed: u64,
    /// The `search_path` of sessions that set none in the log.
    pub search_path: Option<String>,
}

/// Most places that a header names.
const PLACES: usize = 5;

impl Capture {
    /// Reads logs. `read` is called after each file with its lines.
    ///
    /// Errors: what cannot be read; no log of a known format; one log in two formats; no statement in it.
    pub fn of_logs(
        request: &Request,
        read_lines: &mut dyn FnMut(&Path, u64),
    ) -> Result<Self, Problem> {
        // Before the log, which may take long.
        let statistics = request.statistics.as_deref().map(read).transpose()?;
        let sampling = Sampling::new(request.sample_rate, request.always_above_ms);
        let mut collector = Collector::new(
            index(u64::from(request.tuples)),
            request.seed,
            request.search_path.clone(),
            sampling,
        );
        let mut files = match (&statistics, request.logs.as_slice()) {
            (Some(_), []) => Vec::new(),
            (_, logs) => opened(logs)?,
        };
        let mut unreadable_at = Vec::new();
        for file in &mut files {
            unreadable_at.extend(take(file, &mut collector)?);
            read_lines(&file.path, file.read());
        }
        let statements = collector.finish();
        let from_statistics = files.is_empty();
        if statements.is_empty() && !from_statistics {
            return Err(nothing(&files, &collector));
        }
        let mut counted = collector.counted;
        let (mut statements, statistics_ratio) = match statistics {
            Some(statistics) => joined(statements, statistics, &mut counted),
            None => (statements, None),
        };
        set_path(&mut statements, request.search_path.as_ref());
        sort(&mut statements);
        unreadable_at.truncate(PLACES);
        let statements = statements
            .into_iter()
            .map(|(statement, _): Hashed| statement);
        Ok(Self {
            header: Header {
                source: match from_statistics {
                    true => Source::Statistics,
                    false => Source::Log,
                },
                files: read_files(&files, request),
                made_by: MADE_BY.to_owned(),
                sample_rate: collector.sampling.rate(),
                always_above_ms: collector.sampling.always_above_ms,
                sampling_changes: collector.sampling.changes,
                slow_above_ms: collector.slow_above_ms(),
                bound_share: collector.bound_share(),
                redacted: false,
                server_version: collector.server_version,
                from: collector.from,
                to: collector.to,
                statistics_ratio,
                seed: request.seed,
                most_tuples: request.tuples,
                settings: collector.settings,
                counted,
                unreadable_at,
            },
            statements: statements.collect(),
        })
    }
}

/// Sets the path of statements that only the statistics have, which do not say it.
fn set_path(statements: &mut [Hashed], path: Option<&String>) {
    for (statement, _) in statements {
        if statement.obstacle() == Some(Obstacle::NotInLog) {
            statement.search_path = path.cloned();
        }
    }
}

/// The names of the files of the log; without one, that of the statistics.
fn read_files(files: &[LogFile], request: &Request) -> Vec<String> {
    let statistics = request.statistics.iter().filter(|_| files.is_empty());
    let paths = files.iter().map(|file| &file.path).chain(statistics);
    paths.map(|path| path.display().to_string()).collect()
}

/// Takes all entries of a file; returns where those begin that could not be understood.
fn take(file: &mut LogFile, collector: &mut Collector) -> Result<Vec<String>, Problem> {
    let mut places = Vec::new();
    loop {
        let record = file
            .next()
            .map_err(|error| unreadable(&file.path, &error))?;
        match record {
            None => break,
            Some(Record::Entry(entry)) => collector.add(&entry),
            Some(Record::Unreadable(line)) => {
                collector.counted.unreadable += 1;
                if places.len() < PLACES {
                    places.push(format!("{}:{line}", file.path.display()));
                }
            }
        }
    }
    collector.counted.lines += file.read();
    Ok(places)
}

/// The files in the order of their first entries.
fn opened(paths: &[PathBuf]) -> Result<Vec<LogFile>, Problem> {
    let mut seen = BTreeSet::new();
    let mut files: Vec<LogFile> = Vec::new();
    for path in all_files(paths)? {
        // The same file by two names is one.
        if path.canonicalize().is_ok_and(|path| !seen.insert(path)) {
            continue;
        }
        files.extend(LogFile::open(&path)?);
    }
    if files.is_empty() {
        return Err(Problem::new("there is no log to read")
            .detail("the files are empty, or no file of the directory ends in .json, .csv or .log")
            .hint("name the files of the log: --log /var/log/postgresql/*.json"));
    }
    files.sort_by(|a, b| (a.begins(), &a.path).cmp(&(b.begins(), &b.path)));
    for pair in files.windows(2) {
        let [one, other] = pair else { continue };
        if one.format != other.format {
            return Err(Problem::new("the log has two formats")
                .detail(format!(
                    "{} is {}, {} is {}: the same executions may be in both",
                    one.path.display(),
                    one.format.word(),
                    other.path.display(),
                    other.format.word()
                ))
                .hint("name the files of one format only, the first that there is of .json, .csv, .log"));
        }
        if one.first().is_some() && one.first() == other.first() {
            return Err(Problem::new(format!(
                "{} and {} begin with the same entry",
                one.path.display(),
                other.path.display()
            ))
            .detail("they are copies: each execution would count twice")
            .hint("leave one of them out"));
        }
    }
    Ok(files)
}

/// The files named, and of directories those of the first format that there is.
fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
        let inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let of = |ending: &str| {
            let is = |path: &&PathBuf| {
                let name = path.to_string_lossy();
                let name = name.strip_suffix(".gz").unwrap_or(&name);
                name.ends_with(ending)
            };
            inside.iter().filter(is).cloned().collect::<Vec<_>>()
        };
        let found = [".json", ".csv", ".log"].into_iter().map(of);
        files.extend(
            found
                .into_iter()
                .find(|files| !files.is_empty())
                .unwrap_or_default(),
        );
    }
    Ok(files)
}

/// Why there is no statement, and what to set.
fn nothing(files: &[LogFile], collector: &Collector) -> Problem {
    let counted = &collector.counted;
    let format = files.first().map_or(Format::Json, |file| file.format);
    let why = if counted.foreign > 0 {
        format!(
            "{} durations are in another language than English",
            counted.foreign
        )
    } else if counted.stray_durations > 0 {
        format!(
            "{} durations have no text: log_duration logs times alone",
            counted.stray_durations
        )
    } else if counted.errors > 0 {
        format!(
            "{} statements ended with an error; no other statement is logged",
            counted.errors
        )
    } else {
        "no entry is the execution of a statement".to_owned()
    };
    Problem::new("there is no statement in the log")
        .detail(format!(
            "{} lines of {} files ({}): {} entries of other things, {} not understood\n{why}",
            counted.lines,
            files.len(),
            format.word(),
            counted.other,
            counted.unreadable
        ))
        .hint(format!(
            "set in postgresql.conf of the server, and wait:\n{SETTINGS}"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_alone_are_a_capture_whose_reads_keep_their_parameters() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("statements.csv");
        let rows = "query,calls,total_exec_time,rows\n\
                    \"SELECT a FROM t WHERE b IN ($1, $2)\",7,14,21\n\
                    UPDATE t SET a = $1,1,2,1\nSELECT 'cut,1,1,1\n";
        std::fs::write(&path, rows).unwrap();
        let request = Request {
            statistics: Some(path.clone()),
            search_path: Some("shop".to_owned()),
            tuples: 64,
            ..Request::default()
        };
        let capture = Capture::of_logs(&request, &mut |_, _| {}).unwrap();
        assert_eq!(capture.header.source, Source::Statistics);
        assert_eq!(capture.header.files, [path.display().to_string()]);
        let of = |calls: u64| {
            let mut statements = capture.statements.iter();
            statements.find(|statement| statement.calls == calls && statement.rows != Some(0.0))
        };
        let read = of(7).unwrap();
        assert_eq!(read.text, "SELECT a FROM t WHERE b IN ($1, $2)");
        assert_eq!(
            (read.rows, read.search_path.as_deref()),
            (Some(3.0), Some("shop"))
        );
        assert!(read.lacks_values() && read.tuples.is_empty());
        let writes = capture.statements.iter();
        let mut writes = writes.filter(|statement| statement.normalised.starts_with("update"));
        let write = writes.next().unwrap();
        assert!(!write.lacks_values() && write.text == write.normalised);
        let mut cut = capture.statements.iter();
        let cut = cut
            .find(|statement| statement.normalised == "select")
            .unwrap();
        assert_eq!(cut.text, cut.normalised);
    }

    #[test]
    fn files_that_wait_for_their_turn_are_closed() {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..9)
            .map(|number| {
                let path = directory.path().join(format!("{number}.log"));
                let line = format!(
                    "2026-11-02 10:0{number}:00 UTC [7] LOG:  duration: 1 ms  statement: select 1\n"
                );
                std::fs::write(&path, line.repeat(2)).unwrap();
                path
            })
            .collect();
        let open = || {
            let own = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let open = own.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            open.filter(|path| path.starts_with(directory.path()))
                .count()
        };
        let mut files = opened(&paths).unwrap();
        assert_eq!((files.len(), open()), (9, 0));
        assert!(files[0].next().unwrap().is_some());
        assert_eq!(open(), 1);
        assert!(files[0].next().unwrap().is_some() && files[0].next().unwrap().is_none());
        assert_eq!((files[0].read(), open()), (2, 0));
    }
}
