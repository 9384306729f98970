//! Amounts, times and percents as people write them.

use deltabench_model::units::{to_f64, to_u64};

/// `512MB`, `2GB`, `1.5GiB`; all units count in powers of 1024, as databases' do.
pub fn bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = lower.split_at(split);
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok()?;
    let bytes = number * to_f64(1 << shift);
    (bytes.is_finite() && bytes >= 0.0).then(|| to_u64(bytes))
}

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

/// `90s`, `15m`, `1.5h` as seconds: one or more.
pub fn seconds(text: &str) -> Option<f64> {
    with_unit(text, &[("s", 1.0), ("m", 60.0), ("h", 3600.0)]).filter(|seconds| *seconds >= 1.0)
}

/// `90d`, `12h`, `0d` as seconds: an age.
pub fn age(text: &str) -> Option<f64> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    with_unit(text, &units).filter(|seconds| *seconds >= 0.0)
}

/// `60s`, `5m` as seconds: a whole number of them, one or more.
pub fn whole_seconds(text: &str) -> Option<u32> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let found = units.into_iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(seconds)
    });
    found.filter(|seconds| *seconds >= 1)
}

/// `50ms`, `1.5s` as milliseconds: more than none.
pub fn milliseconds(text: &str) -> Option<f64> {
    with_unit(text, &[("ms", 1.0), ("s", 1000.0)]).filter(|milliseconds| *milliseconds > 0.0)
}

/// Longest time that is read, in the smallest unit of its text: 30 years in milliseconds. Clocks and sums of
/// times hold many of them.
const LONGEST: f64 = 1e12;

/// A number with a unit, times what the first unit that fits stands for; at most [`LONGEST`].
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let read = |(unit, factor): &(&str, f64)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * factor)
    };
    units
        .iter()
        .find_map(read)
        .filter(|number| number.abs() <= LONGEST)
}

/// `3%` or `3` as 3.
pub fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.trim_end_matches('%').trim().parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        assert_eq!(bytes("2MB"), Some(2 << 20));
        assert_eq!(bytes("1.5 GiB"), Some(1536 << 20));
        assert_eq!(bytes("64k"), Some(64 << 10));
        assert_eq!(bytes("524288kB"), Some(512 << 20));
        for bad in ["512", "MB", "-1GB", "infGB", "1PBB", "", "0x10MB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_read_in_powers_of_1000() {
        assert_eq!(whole_number("200k"), Some(200_000));
        assert_eq!(whole_number("1_000"), Some(1000));
        assert_eq!(whole_number("1.5"), None);
    }

    #[test]
    fn a_time_that_no_clock_holds_is_none() {
        assert_eq!(seconds("10h"), Some(36_000.0));
        for bad in ["1e300h", "1e20s", "nans", "infs", "0.5s", "-1h"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        assert_eq!(age("1e300d"), None);
        assert_eq!(milliseconds("1e300s"), None);
    }

    #[test]
    fn ages_have_a_unit_and_may_be_none() {
        assert_eq!(age("90d"), Some(7_776_000.0));
        assert_eq!(age("0d"), Some(0.0));
        assert_eq!(age("1.5h"), Some(5400.0));
        for bad in ["90", "d", "-1d", "infd", "3 weeks", ""] {
            assert_eq!(age(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(seconds("15m"), Some(900.0));
        assert_eq!(seconds(" 1.5 h"), Some(5400.0));
        for bad in ["15", "m", "-3s", "0s", "0.5s", "infs", ""] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        assert_eq!(whole_seconds("5m"), Some(300));
        for bad in ["0s", "1.5m", "5", "-1s", "99999999h"] {
            assert_eq!(whole_seconds(bad), None, "{bad}");
        }
        assert_eq!(milliseconds("1.5s"), Some(1500.0));
        assert_eq!(milliseconds("0ms"), None);
    }

    #[test]
    fn percents_need_no_sign() {
        assert_eq!(percent("3%"), Some(3.0));
        assert_eq!(percent(" 0.5 %"), Some(0.5));
        for bad in ["", "%", "two", "nan", "inf%"] {
            assert_eq!(percent(bad), None, "{bad}");
        }
    }
}
