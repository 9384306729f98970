//! Numbers and sizes as people write and read them.

use deltabench_model::units::{to_f64, to_u64};
use std::time::Duration;

/// `400k`, `20M`, `1.5G`, `4000000`: a whole number, units in powers of 1000.
pub fn whole_number(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [('k', 1e3), ('M', 1e6), ('G', 1e9)];
    let found = units.iter().find_map(|(unit, factor)| {
        let number =
            text.strip_suffix([*unit, unit.to_ascii_lowercase(), unit.to_ascii_uppercase()])?;
        Some((number, *factor))
    });
    match found {
        None => text.replace('_', "").parse().ok(),
        Some((number, factor)) => whole(number.trim(), factor),
    }
}

/// A number times a power of ten, if it comes to a whole one.
fn whole(number: &str, factor: f64) -> Option<u64> {
    let value: f64 = number.parse().ok()?;
    let all = value * factor;
    let near = (all - all.round()).abs() < 1e-6;
    let fits = (0.0..=to_f64(1 << 50)).contains(&all);
    (near && fits).then(|| to_u64(all.round()))
}

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
    fn numbers_are_read_in_powers_of_1000() {
        assert_eq!(whole_number("200k"), Some(200_000));
        assert_eq!(whole_number("1_000"), Some(1000));
        assert_eq!(whole_number("1.5"), None);
    }

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
