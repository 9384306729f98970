//! `deltabench capture`: the statements of a log as a file.

mod shown;

use crate::amounts::thousands;
use crate::arguments::capture::CaptureArguments;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::request::percent;
use deltabench_capture::{Capture, Request, Source, redact};
use deltabench_document::amounts::milliseconds;
use deltabench_model::problem::Problem;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// Reads a log and writes the capture.
pub fn capture(arguments: &CaptureArguments) -> Result<u8, Failure> {
    let request = request(arguments).map_err(Failure::Refused)?;
    check_places(arguments).map_err(Failure::Refused)?;
    let live = std::io::stderr().is_terminal();
    let mut read_lines = |path: &Path, lines: u64| {
        if live {
            say(&format!("{}: {} lines", path.display(), thousands(lines)));
        }
    };
    let mut capture = Capture::of_logs(&request, &mut read_lines).map_err(Failure::Refused)?;
    if arguments.redact {
        redact(&mut capture, key().map_err(Failure::Failed)?);
    }
    capture.write(&arguments.out).map_err(Failure::Failed)?;
    let shown = shown::Shown::of(&capture, &arguments.out);
    match &arguments.json {
        Some(path) if is_stdout(path) => {
            say(&shown.text(width()));
            print_stdout(&shown.json())?;
        }
        json => {
            print_stdout(&shown.text(width()))?;
            if let Some(path) = json {
                write_file(path, &shown.json())?;
                say(&format!("wrote {}", path.display()));
            }
        }
    }
    let out = arguments.out.display();
    let (holds, plans_only) = match arguments.redact {
        true => (
            "its values are made up by the shape of those in the log, its names are real",
            " --plans-only",
        ),
        false if capture.header.source == Source::Statistics => ("it has no values", ""),
        false => ("it holds values of your users", ""),
    };
    say(&format!("wrote {out}; {holds}, and only you can read it"));
    say(&format!(
        "next: deltabench replay {out} BASE CANDIDATE --data DUMP{plans_only}"
    ));
    Ok(0)
}

/// A key that nobody else has, and that is not kept.
fn key() -> Result<[u8; 32], Problem> {
    let mut key = [0; 32];
    let random = File::open(RANDOM).and_then(|mut file| file.read_exact(&mut key));
    random.map_err(|error| {
        Problem::new("there are no random numbers to replace values with")
            .detail(format!("{RANDOM}: {error}"))
    })?;
    Ok(key)
}

/// Where random numbers come from.
const RANDOM: &str = "/dev/urandom";

fn request(arguments: &CaptureArguments) -> Result<Request, Problem> {
    let above = arguments.always_above.as_deref().map(|text| {
        milliseconds(text).ok_or_else(|| {
            Problem::new(format!("`{text}` is not a time"))
                .hint("write for example --always-above 250ms or 2s")
        })
    });
    Ok(Request {
        logs: arguments.logs.clone(),
        statistics: arguments.statements.clone(),
        sample_rate: arguments.sample_rate.as_deref().map(rate).transpose()?,
        always_above_ms: above.transpose()?,
        tuples: arguments.tuples,
        seed: arguments.seed,
        search_path: arguments.search_path.clone(),
    })
}

/// `0.01` as in `postgresql.conf`, or `1%`.
fn rate(text: &str) -> Result<f64, Problem> {
    let share = if text.trim_end().ends_with('%') {
        percent(text).ok()
    } else {
        text.trim().parse().ok()
    };
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| {
            Problem::new(format!("`{text}` is not a share of the executions"))
                .detail("it must be above 0 and at most 1")
                .hint("write for example --sample-rate 0.01 or 1%")
        })
}

/// Refuses what cannot be written, before a long log is read.
fn check_places(arguments: &CaptureArguments) -> Result<(), Problem> {
    let out = &arguments.out;
    if is_stdout(out) {
        return Err(Problem::new("a capture is not written to stdout")
            .detail("it holds values of your users")
            .hint("name a file: --out shop.capture"));
    }
    if out.exists() && !out.is_file() {
        return Err(Problem::new(format!("{} is no file", out.display()))
            .hint("name a file: --out shop.capture"));
    }
    if out.exists() && !arguments.force {
        return Err(Problem::new(format!("{} already exists", out.display()))
            .hint("name another file, or replace it with --force"));
    }
    let same = |log: &Path| {
        log.canonicalize()
            .is_ok_and(|log| out.canonicalize().is_ok_and(|out| log == out))
    };
    if arguments
        .logs
        .iter()
        .chain(&arguments.statements)
        .any(|log| same(log))
    {
        return Err(Problem::new("--out names a file that is read").hint("name another file"));
    }
    check_writable(out)?;
    match &arguments.json {
        Some(json) if json == out => {
            Err(Problem::new("--json and --out name the same file").hint("name two files"))
        }
        Some(json) if !is_stdout(json) => check_writable(json),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_like_the_setting_or_in_percent() {
        assert!((rate("0.01").unwrap() - 0.01).abs() < 1e-12);
        assert!((rate("1%").unwrap() - 0.01).abs() < 1e-12);
        assert!((rate("1").unwrap() - 1.0).abs() < 1e-12);
        for wrong in ["0", "2", "-1", "x", "200%", ""] {
            assert!(rate(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
