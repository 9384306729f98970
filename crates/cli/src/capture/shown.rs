//! What was captured, as text and as JSON. Neither has a value of the log.

use crate::amounts::thousands;
use deltabench_capture::{
    Basis, Capture, Header, Kind, Protocol, Source, Statement, Summary, Weight,
};
use deltabench_model::units::{count, to_f64};
use deltabench_report::wrapped;
use serde::Serialize;
use std::path::Path;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.captured", 1);

/// A log that has fewer of the bindings than this is not whole.
const WHOLE: f64 = 0.9;

/// Statistics that have so many times the executions of the log are not of the same time.
const OTHER_TIME: f64 = 1.5;

/// Statements that the text lists.
const LISTED: usize = 10;

/// A capture in numbers.
#[derive(Serialize)]
pub struct Shown<'a> {
    format: &'static str,
    version: u32,
    /// The file that was written.
    file: String,
    header: &'a Header,
    summary: Summary,
    /// All of them, without texts and values.
    statements: Vec<Line<'a>>,
}

/// A statement without what is secret.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    normalised: &'a str,
    kind: Kind,
    protocol: Protocol,
    role: Option<&'a str>,
    database: Option<&'a str>,
    share: f64,
    calls: u64,
    total_ms: Option<f64>,
    plan_ms: Option<f64>,
    rows: Option<f64>,
    weight: Weight,
    volatile: &'a [String],
    errors: u64,
    unusable: u64,
    tuples: usize,
    /// Why it cannot be replayed; absent if it can.
    left_out: Option<&'static str>,
}

impl<'a> Line<'a> {
    fn of(statement: &'a Statement, summary: &Summary) -> Self {
        Self {
            id: &statement.id,
            normalised: &statement.normalised,
            kind: statement.kind,
            protocol: statement.protocol,
            role: statement.role.as_deref(),
            database: statement.database.as_deref(),
            share: summary.share(statement).unwrap_or(0.0),
            calls: statement.calls,
            total_ms: statement.total_ms,
            plan_ms: statement.plan_ms,
            rows: statement.rows,
            weight: statement.weight,
            volatile: &statement.volatile,
            errors: statement.errors,
            unusable: statement.unusable.sum(),
            tuples: statement.tuples.len(),
            left_out: statement.obstacle().map(|obstacle| obstacle.word()),
        }
    }
}

impl<'a> Shown<'a> {
    /// What a capture holds that was written to a file.
    pub fn of(capture: &'a Capture, file: &Path) -> Self {
        let summary = Summary::of(capture);
        let line = |statement| Line::of(statement, &summary);
        let mut statements: Vec<Line<'_>> = capture.statements.iter().map(line).collect();
        statements.sort_by(|a, b| b.share.total_cmp(&a.share));
        Self {
            format: FORMAT.0,
            version: FORMAT.1,
            file: file.display().to_string(),
            header: &capture.header,
            statements,
            summary,
        }
    }

    /// As JSON.
    pub fn json(&self) -> String {
        // Plain structs: there is nothing that JSON cannot hold.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// For people, in lines of at most `width` characters.
    pub fn text(&self, width: usize) -> String {
        let mut lines = self.taken();
        lines.extend(self.replayed());
        lines.extend(self.doubts());
        let mut text: Vec<String> = Vec::new();
        for line in lines {
            let indent = line.chars().take_while(|letter| *letter == ' ').count();
            text.extend(wrapped(line.trim_start(), width, indent, indent + 2));
        }
        text.push(String::new());
        text.extend(self.largest(width));
        text.join("\n")
    }

    /// What was read and how much of it are statements.
    fn taken(&self) -> Vec<String> {
        let (summary, header) = (&self.summary, self.header);
        let counted = &header.counted;
        let files = match header.files.as_slice() {
            [file] if file == "-" => "stdin".to_owned(),
            [file] => file.clone(),
            files => format!("{} files", files.len()),
        };
        if header.source == Source::Statistics {
            return self.of_statistics(&files);
        }
        let mut lines = vec![format!(
            "captured {} with {} from {} of {files}{}",
            number(summary.statements, "statement"),
            number(summary.calls, "execution"),
            number(counted.lines, "line"),
            period(header)
        )];
        lines.push(match header.always_above_ms {
            _ if header.sample_rate >= 1.0 && header.slow_above_ms.is_some() => format!(
                "only slow executions are in the log: none took less than {} ms; what all others take is not \
                 known",
                header.slow_above_ms.unwrap_or_default()
            ),
            _ if header.sample_rate >= 1.0 => {
                "each entry is one execution, because no sample rate is known".to_owned()
            }
            None => format!(
                "the log has {} of the executions",
                share(header.sample_rate)
            ),
            Some(ms) => format!(
                "the log has {} of the executions, and all of at least {ms} ms",
                share(header.sample_rate)
            ),
        });
        if let Some(ms) = header.slow_above_ms.filter(|_| header.sample_rate < 1.0) {
            lines.push(format!(
                "executions shorter than {ms} ms are not in it (log_min_duration_sample)"
            ));
        }
        let what = match summary.basis {
            Basis::Time => "of the time",
            Basis::Calls => "of the executions (times are not known of all)",
        };
        let write = match summary.most_write {
            0 => String::new(),
            write => format!("; {write} of them write"),
        };
        let has = if summary.most == 1 { "has" } else { "have" };
        lines.push(format!(
            "{} {has} 99 % {what}{write}",
            number(summary.most, "statement")
        ));
        lines
    }

    /// What was read where there is no log.
    fn of_statistics(&self, files: &str) -> Vec<String> {
        let summary = &self.summary;
        vec![
            format!(
                "captured {} with {} from pg_stat_statements ({files})",
                number(summary.statements, "statement"),
                number(summary.calls, "execution")
            ),
            "there is no log, so no statement has its values: `deltabench replay` makes them up for reads, \
             from the tables of the base"
                .to_owned(),
        ]
    }

    fn replayed(&self) -> Vec<String> {
        let summary = &self.summary;
        let mut lines = vec![format!(
            "{} can be replayed: {}",
            number(summary.replayed, "statement"),
            share(summary.replayed_share)
        )];
        if !summary.left_out.is_empty() {
            lines.push("not replayed:".to_owned());
        }
        for left_out in &summary.left_out {
            lines.push(format!(
                "  {} in {}: {}",
                share(left_out.share),
                number(left_out.statements, "statement"),
                left_out.meaning
            ));
        }
        lines
    }

    /// What speaks against the sample rate.
    fn of_sampling(&self) -> Vec<String> {
        let header = self.header;
        let mut lines = Vec::new();
        if header.sampling_changes > 0 {
            lines.push(format!(
                "note: the sampling changed {} while the log was written; before, the log does not say \
                 it, and each entry counts as one execution: name --sample-rate and --always-above, or \
                 leave the older files out",
                number(header.sampling_changes, "time")
            ));
        }
        let bound = header.bound_share.filter(|bound| *bound < WHOLE);
        if let Some(bound) = bound.filter(|_| header.sample_rate >= 1.0) {
            lines.push(format!(
                "note: the log seems to be a sample, or without fast steps: only {} of the executions in the \
                 extended protocol have their binding in it; if it is a sample, name --sample-rate",
                share(bound)
            ));
        }
        let ratio = header.statistics_ratio;
        if let Some(ratio) = ratio.filter(|ratio| !(1.0 / OTHER_TIME..OTHER_TIME).contains(ratio)) {
            lines.push(format!(
                "note: pg_stat_statements has {ratio:.2} times the executions of the log: it covers another \
                 time, or the sample rate is another one (--sample-rate)"
            ));
        }
        lines
    }

    /// What makes the capture less than the workload.
    fn doubts(&self) -> Vec<String> {
        let mut lines = self.of_sampling();
        lines.extend(self.of_executions().into_iter().flatten());
        lines.extend(self.of_statements().into_iter().flatten());
        let of_log = || {
            let statements = self.statements.iter();
            statements.filter(|statement| statement.weight != Weight::Statistics)
        };
        if of_log().next().is_some() && of_log().all(|statement| statement.role.is_none()) {
            lines.push(
                "no role and no database in the log: statements of different ones are one; log with \
                 log_line_prefix = '%m [%p] %q%u@%d '"
                    .to_owned(),
            );
        }
        let places = format!(", the first at {}", self.header.unreadable_at.join(", "));
        let unreadable = self.header.counted.unreadable;
        lines.extend(remark(unreadable, "entry", "not understood", &places));
        lines
    }

    fn of_executions(&self) -> [Option<String>; 6] {
        let counted = &self.header.counted;
        [
            remark(
                counted.foreign,
                "duration",
                "in another language than English, and not read",
                "; set lc_messages = 'C' on the server",
            ),
            remark(
                counted.errors,
                "execution",
                "ended with an error",
                "; they do not count",
            ),
            remark(
                self.summary.unusable,
                "execution",
                "values or text are not whole",
                "; other executions stand for them",
            ),
            remark(
                counted.without_duration,
                "execution",
                "no duration in the log",
                "",
            ),
            remark(
                counted.stray_durations,
                "duration",
                "no statement for a duration",
                "",
            ),
            remark(
                counted.not_utf8,
                "entry",
                "bytes that are not UTF-8",
                "; their values cannot be used",
            ),
        ]
    }

    fn of_statements(&self) -> [Option<String>; 5] {
        let (summary, counted) = (&self.summary, &self.header.counted);
        let at_least = self.statements.iter();
        let at_least = at_least.filter(|statement| statement.weight == Weight::AtLeast);
        [
            remark(
                count(at_least.count()),
                "statement",
                "most executions have no duration",
                "; times are lower bounds, of the slow ones (log_min_duration_statement)",
            ),
            remark(
                counted.hidden,
                "statement",
                "pg_stat_statements hides the text",
                "; read it as a role that has pg_read_all_stats",
            ),
            remark(
                counted.not_in_statistics,
                "statement",
                "not in pg_stat_statements",
                "; their weights are those of the log, scaled like the others",
            ),
            remark(
                summary.few_tuples,
                "statement",
                "fewer than 5 different values",
                "; log a larger share, or for longer",
            ),
            remark(
                summary.volatile,
                "statement",
                "now(), random() or the like in the text",
                "; results depend on the moment",
            ),
        ]
    }

    /// The statements with the most time.
    fn largest(&self, width: usize) -> Vec<String> {
        let mut lines = vec![format!(
            "{:>7} {:>13} {:>11}  {:<11} {:<8} statement",
            "share", "executions", "mean ms", "kind", "sent"
        )];
        for statement in self.statements.iter().take(LISTED) {
            let mean = statement.total_ms.filter(|_| statement.calls > 0);
            let least = if statement.weight == Weight::AtLeast {
                "≥ "
            } else {
                ""
            };
            let mean = mean.map(|ms| format!("{least}{:.3}", ms / to_f64(statement.calls)));
            let line = format!(
                "{:>7} {:>13} {:>11}  {:<11} {:<8} {}",
                share(statement.share),
                thousands(statement.calls),
                mean.unwrap_or_default(),
                statement.kind.word(),
                statement.protocol.word(),
                statement.normalised
            );
            lines.push(cut(&line, width));
        }
        if let Some(more) = self
            .statements
            .len()
            .checked_sub(LISTED)
            .filter(|more| *more > 0)
        {
            let rest = self.statements.iter().skip(LISTED);
            let rest: f64 = rest.map(|statement| statement.share).sum();
            lines.push(format!("{:>7} in {more} more", share(rest)));
        }
        lines
    }
}

/// A line as wide as the terminal; what is cut off shows as an ellipsis.
fn cut(line: &str, width: usize) -> String {
    let line = line.replace(['\n', '\t'], " ");
    if line.chars().count() <= width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A line on how many there are; absent if there are none.
fn remark(of: u64, noun: &str, before: &str, after: &str) -> Option<String> {
    (of > 0).then(|| format!("{before}: {}{after}", number(of, noun)))
}

fn number(of: u64, noun: &str) -> String {
    let noun = match (of, noun) {
        (1, noun) => noun.to_owned(),
        (_, "entry") => "entries".to_owned(),
        (_, noun) => format!("{noun}s"),
    };
    format!("{} {noun}", thousands(of))
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn period(header: &Header) -> String {
    match (&header.from, &header.to) {
        (Some(from), Some(to)) => format!(", {from} to {to}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_always_written_is_required_by_the_schema() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sql");
        std::fs::write(&path, "select 1; commit;").unwrap();
        let capture = Capture::open(&path).unwrap();
        // Nothing in it that may be absent.
        let least: Value = serde_json::from_str(&Shown::of(&capture, &path).json()).unwrap();
        let schema = include_str!("../../../../docs/reference/captured.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        for (written, described) in [
            ("", ""),
            ("/header", "/$defs/header"),
            ("/header/counted", "/$defs/header/properties/counted"),
            ("/summary", "/$defs/summary"),
            (
                "/summary/left_out/0",
                "/$defs/summary/properties/left_out/items",
            ),
            ("/statements/0", "/$defs/statement"),
        ] {
            let written = least.pointer(written).unwrap().as_object().unwrap();
            let mut written: Vec<&str> = written.keys().map(String::as_str).collect();
            let required = schema.pointer(described).unwrap()["required"].as_array();
            let required = required.unwrap().iter();
            let mut required: Vec<&str> = required.map(|name| name.as_str().unwrap()).collect();
            written.sort_unstable();
            required.sort_unstable();
            assert_eq!(required, written, "{described}");
        }
    }
}
