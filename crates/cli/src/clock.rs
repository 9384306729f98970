//! The time of day, and what is made of it.

use deltabench_model::problem::Problem;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds and milliseconds since 1970.
pub fn now() -> (u64, i64) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (
        now.as_secs(),
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
    )
}

/// A run's name: its start and the end of its seed.
pub fn run_name(unix_seconds: u64, seed: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(i64::try_from(unix_seconds).unwrap_or(0))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}-{:04x}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        seed & 0xffff
    )
}

/// The names of a run that starts now: that of this second, then those of the seconds after it, for a lab
/// that has the first already.
pub fn run_names(unix_seconds: u64, seed: u64) -> impl Iterator<Item = String> {
    (unix_seconds..).map(move |second| run_name(second, seed))
}

/// A seed that differs from run to run; under 2^53, so that every reader of the JSON sees the same number.
pub fn seed_from_clock() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    deltabench_workload::mix(u64::from(now.subsec_nanos()), &[now.as_secs()]) >> 11
}

/// A moment that somebody wrote, milliseconds since 1970: `2026-11-25`, `2026-11-25T10:30`, both in UTC, or
/// `now`.
///
/// Errors: another form, a day that no calendar has, a time to come.
pub fn moment(text: &str) -> Result<i64, Problem> {
    if text == "now" {
        return Ok(now().1);
    }
    let at = parsed(text).ok_or_else(|| {
        Problem::new(format!("`{text}` is no moment"))
            .hint("write 2026-11-25T10:30, in UTC, or now")
    })?;
    if at > now().1 {
        return Err(Problem::new(format!("{text} is still to come"))
            .hint("times are in UTC; write now for this moment"));
    }
    Ok(at)
}

fn parsed(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, clock) = text.split_once(['T', ' ']).unwrap_or((text, "0:0"));
    let numbers = |text: &str, by: char| -> Option<Vec<u16>> {
        text.split(by).map(|part| part.parse().ok()).collect()
    };
    let (day, clock) = (numbers(day, '-')?, numbers(clock, ':')?);
    let [year, month, day] = day.as_slice() else {
        return None;
    };
    let (hour, minute, second) = match clock.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let small = |number: u16| u8::try_from(number).ok();
    let month = time::Month::try_from(small(*month)?).ok()?;
    let date = time::Date::from_calendar_date(i32::from(*year), month, small(*day)?).ok()?;
    let at = date
        .with_hms(small(hour)?, small(minute)?, small(second)?)
        .ok()?;
    at.assume_utc().unix_timestamp().checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_a_minute_or_now() {
        assert_eq!(moment("2026-11-21T11:20").unwrap(), 1_795_260_000_000);
        assert_eq!(moment("2026-11-21 11:20:00Z").unwrap(), 1_795_260_000_000);
        assert_eq!(moment("2026-11-21").unwrap(), 1_795_219_200_000);
        assert!(moment("now").is_ok());
        for bad in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-11-21T25:00",
            "2026-11-21T1",
            "11:20",
        ] {
            assert!(
                moment(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("is no moment"),
                "{bad}"
            );
        }
        assert!(
            moment("2199-01-01")
                .unwrap_err()
                .to_string()
                .contains("still to come")
        );
    }

    #[test]
    fn a_run_is_named_by_its_time_and_seed() {
        assert_eq!(run_name(1_795_260_000, 0xab_cdef), "20261121-112000-cdef");
        let names: Vec<String> = run_names(1_795_260_059, 1).take(2).collect();
        assert_eq!(names, ["20261121-112059-0001", "20261121-112100-0001"]);
    }
}
