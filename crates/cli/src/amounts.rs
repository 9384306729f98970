//! Numbers, sizes and times as people read and write them.

use deltabench_document::amounts::whole_number;
use deltabench_model::units::to_f64;
use std::time::Duration;

/// `400,000`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of rows in an argument: `200000`, `200k`, `6M`.
///
/// Errors: it cannot be read; what to write instead.
pub fn row_count(text: &str) -> Result<u64, String> {
    whole_number(text).ok_or_else(|| "write for example 200000, 200k or 6M".to_owned())
}

/// `0.4 GB`, below that in MB.
pub fn size(bytes: u64) -> String {
    let megabytes = to_f64(bytes) / to_f64(1 << 20);
    if megabytes < 100.0 {
        format!("{megabytes:.0} MB")
    } else {
        gigabytes(bytes)
    }
}

/// `1.5 GB`.
pub fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", to_f64(bytes) / to_f64(1 << 30))
}

/// `40 s`, `12 min`, `7.5 h`, `3.1 days`.
pub fn span(seconds: f64) -> String {
    let seconds = Duration::from_secs_f64(seconds).as_secs_f64();
    match seconds {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        _ if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// The same without days: the pages of studies have hours.
pub fn hours(seconds: f64) -> String {
    match seconds {
        _ if seconds < 172_800.0 => span(seconds),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(400_000), "400,000");
        assert_eq!(thousands(20_000_000), "20,000,000");
        assert_eq!(size(84_000_000), "80 MB");
        assert_eq!(size(8_400_000_000), "7.8 GB");
        assert_eq!(span(20.0), "20 s");
        assert_eq!(span(1500.0), "25 min");
        assert_eq!(span(30_000.0), "8.3 h");
        assert_eq!(span(300_000.0), "3.5 days");
        assert_eq!(hours(300_000.0), "83 h");
        assert_eq!(hours(30_000.0), "8.3 h");
    }

    #[test]
    fn every_option_for_rows_takes_them_as_people_write_them() {
        for command in [
            "compare a b",
            "count a b",
            "calibrate",
            "crosscheck",
            "selfbench verdict",
        ] {
            let words = |rows: &str| {
                let all = format!("deltabench {command} --rows={rows}");
                all.split(' ').map(str::to_owned).collect::<Vec<_>>()
            };
            for (rows, expected) in [
                ("200k", "200000"),
                ("1.5M", "1500000"),
                ("6000000", "6000000"),
                ("20_000", "20000"),
            ] {
                let parsed = Arguments::try_parse_from(words(rows)).unwrap();
                let parsed = format!("{parsed:?}");
                let is_read = parsed.contains(&format!("rows: {expected}"))
                    || parsed.contains(&format!("rows: Some({expected})"));
                assert!(is_read, "{command}: {parsed}");
            }
            for bad in ["many", "1.5", "-1", "3T", "k"] {
                let refused = Arguments::try_parse_from(words(bad)).unwrap_err();
                assert!(refused.to_string().contains("200k"), "{command}: {refused}");
            }
        }
    }
}
