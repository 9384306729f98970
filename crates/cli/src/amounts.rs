//! Numbers, sizes and times as people read them.

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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
