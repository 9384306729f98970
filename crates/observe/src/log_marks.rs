//! What a server's log says happened when.

use deltabench_model::counter::Mark;
use deltabench_model::plan::ServerId;
use time::{Date, Month, Time};

/// Checkpoints and runs of autovacuum in a server's log, in its order: `checkpoint` when one starts and when
/// it is complete, `autovacuum` and `autoanalyze` when a table is done.
///
/// Lines must begin with `log_line_prefix = '%m [%p] '` in UTC, as with `configs/steady.conf`; others are
/// passed over, so are all in another language. Autovacuum writes what `log_autovacuum_min_duration` lets
/// it; the steady settings let everything, and keep autovacuum off.
///
/// Source: runtime-config-logging.html; `LogCheckpointStart` and `LogCheckpointEnd` in xlog.c,
/// `heap_vacuum_rel` in vacuumlazy.c and `do_analyze_rel` in analyze.c of 9.6 to 18.
pub fn marks(server: ServerId, log: &str) -> Vec<Mark> {
    let mut lines = log.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some((at_ns, message)) = dated(line) else {
            continue;
        };
        let mut elapsed = elapsed_seconds(message);
        // The rest of a message: lines that begin with a tab.
        while let Some(rest) = lines.next_if(|line| line.starts_with('\t')) {
            elapsed = elapsed_seconds(rest).or(elapsed);
        }
        if let Some((kind, text)) = checkpoint(message).or_else(|| automatic(message, elapsed)) {
            found.push(Mark {
                at_ns,
                server: Some(server),
                kind: kind.to_owned(),
                text,
            });
        }
    }
    found
}

/// When a line of level LOG was written, and its message.
fn dated(line: &str) -> Option<(u64, &str)> {
    let (date, rest) = line.split_once(' ')?;
    let (clock, rest) = rest.split_once(' ')?;
    let rest = rest.strip_prefix("UTC [")?;
    let (pid, message) = rest.split_once("] LOG:  ")?;
    pid.parse::<u32>().ok()?;
    Some((epoch_ns(date, clock)?, message))
}

/// Shape: `2026-11-21`, `17:08:54.123`.
fn epoch_ns(date: &str, clock: &str) -> Option<u64> {
    let mut date = date.split('-');
    let year = date.next()?.parse().ok()?;
    let month: u8 = date.next()?.parse().ok()?;
    let day = date.next()?.parse().ok()?;
    let (clock, millisecond) = clock.split_once('.')?;
    let mut clock = clock.split(':');
    let hour = clock.next()?.parse().ok()?;
    let minute = clock.next()?.parse().ok()?;
    let second = clock.next()?.parse().ok()?;
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    let time = Time::from_hms_milli(hour, minute, second, millisecond.parse().ok()?).ok()?;
    let nanoseconds = date.with_time(time).assume_utc().unix_timestamp_nanos();
    u64::try_from(nanoseconds).ok()
}

fn checkpoint(message: &str) -> Option<(&'static str, String)> {
    let text = if let Some(why) = message.strip_prefix("checkpoint starting:") {
        format!("starts: {}", why.trim())
    } else {
        let facts = message.strip_prefix("checkpoint complete: wrote ")?;
        let (buffers, rest) = facts.split_once(" buffers")?;
        let (_, total) = rest.split_once("total=")?;
        let (seconds, _) = total.split_once(" s")?;
        format!("complete: {buffers} buffers, {seconds} s")
    };
    Some(("checkpoint", text))
}

/// `automatic [aggressive] vacuum [to prevent wraparound] of table "NAME": ...` or `automatic analyze of
/// table "NAME"...`. A quote in a name is not doubled, and nothing behind it holds another one.
fn automatic(message: &str, elapsed: Option<&str>) -> Option<(&'static str, String)> {
    let (what, rest) = message
        .strip_prefix("automatic ")?
        .split_once(" of table \"")?;
    let (name, _) = rest.rsplit_once('"')?;
    let kind = match what {
        "analyze" => "autoanalyze",
        what if what.contains("vacuum") => "autovacuum",
        _ => return None,
    };
    let took = elapsed.map(|seconds| format!(", {seconds} s"));
    Some((kind, format!("{name}{}", took.unwrap_or_default())))
}

/// The number in `elapsed: 0.05 s` or, before 10, `elapsed 0.25 sec`.
fn elapsed_seconds(line: &str) -> Option<&str> {
    let (_, usage) = line.rsplit_once("system usage: ")?;
    let (_, rest) = usage.rsplit_once("elapsed")?;
    rest.trim_start_matches(':').split_ascii_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: &str) -> Vec<Mark> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/log");
        let log = std::fs::read_to_string(format!("{dir}/{version}.log")).unwrap();
        marks(ServerId(7), &log)
    }

    fn texts(marks: &[Mark]) -> Vec<String> {
        marks
            .iter()
            .map(|mark| format!("{}: {}", mark.kind, mark.text))
            .collect()
    }

    #[test]
    fn checkpoints_and_autovacuum_are_found_in_real_logs_of_all_ages() {
        let old = read("9.6");
        assert_eq!(old[0].server, Some(ServerId(7)));
        assert_eq!(old[0].at_ns, 1_795_281_462_258_000_000);
        assert_eq!(
            texts(&old),
            [
                "checkpoint: starts: immediate force wait",
                "checkpoint: complete: 1203 buffers, 0.026 s",
                "autoanalyze: postgres.public.t, 2.38 s",
                "checkpoint: starts: immediate force wait",
                "checkpoint: complete: 3497 buffers, 0.019 s",
                "checkpoint: starts: immediate force wait",
                "checkpoint: complete: 108 buffers, 0.006 s",
                "autoanalyze: postgres.public.big, 0.25 s",
                "autovacuum: postgres.public.odd \"name: x, 0.20 s",
                "autoanalyze: postgres.public.odd \"name: x, 0.02 s",
            ]
        );
        assert_eq!(
            texts(&read("14"))[3..],
            [
                "checkpoint: complete: 108 buffers, 0.005 s",
                "autovacuum: postgres.public.big, 0.00 s",
                "autoanalyze: postgres.public.big, 0.05 s",
            ]
        );
        assert_eq!(
            texts(&read("18")),
            [
                "checkpoint: starts: immediate force wait",
                "checkpoint: complete: 121 buffers, 0.215 s",
                "autoanalyze: postgres.public.m3, 0.44 s",
                "autovacuum: postgres.public.odd \"name: x, 0.05 s",
                "autoanalyze: postgres.public.odd \"name: x, 0.00 s",
            ]
        );
    }

    #[test]
    fn times_are_utc_to_the_millisecond() {
        assert_eq!(
            epoch_ns("2026-11-21", "17:17:42.258"),
            Some(1_795_281_462_258_000_000)
        );
        assert_eq!(epoch_ns("2026-13-21", "17:17:42.258"), None);
        assert_eq!(epoch_ns("2026-11-21", "17:17:42"), None);
    }

    #[test]
    fn what_is_not_a_line_of_ours_is_passed_over() {
        for line in [
            "",
            "checkpoint starting: time",
            "2026-11-21 17:17:42.258 CET [1] LOG:  checkpoint starting: time",
            "2026-11-21 17:17:42.258 UTC [x] LOG:  checkpoint starting: time",
            "2026-11-21 17:17:42.258 UTC [1] STATEMENT:  checkpoint starting: time",
            "2026-11-21 17:17:42.258 UTC [1] LOG:  statement: checkpoint starting: time",
            "2026-11-21 17:17:42.258 UTC [1] LOG:  automatic nonsense of table \"a\"",
            "2026-11-21 17:17:42.258 UTC [1] LOG:  checkpoint complete: wrote",
            "\tcheckpoint starting: time",
        ] {
            assert_eq!(marks(ServerId(0), line), [], "{line}");
        }
    }

    #[test]
    fn every_kind_of_vacuum_is_one() {
        for what in [
            "vacuum",
            "aggressive vacuum",
            "vacuum to prevent wraparound",
            "aggressive vacuum to prevent wraparound",
        ] {
            let line = format!(
                "2026-11-21 17:17:42.258 UTC [1] LOG:  automatic {what} of table \"a.b.c\": index scans: 0"
            );
            assert_eq!(texts(&marks(ServerId(0), &line)), ["autovacuum: a.b.c"]);
        }
    }
}
