//! The time of day that servers of a replay have.

use crate::arguments::replay::ReplayArguments;
use deltabench_capture::Capture;
use deltabench_model::problem::Problem;
use deltabench_replay::{ClockWish, asks_for_time};
use deltabench_report::timestamp;
use time::{Date, Month, Time, UtcOffset};

/// The words of `--clock` that are no time.
const NOW: &str = "now";
const CAPTURE: &str = "capture";

/// Whether the user asks for another time than that of the machine.
pub fn is_set_by(arguments: &ReplayArguments) -> bool {
    arguments.clock.as_deref().is_some_and(|clock| clock != NOW)
}

/// The time that servers of our own get.
///
/// Errors: a time that is none; that of the capture is asked for, and it has none.
pub fn wish(arguments: &ReplayArguments, capture: &Capture) -> Result<ClockWish, Problem> {
    chosen(
        arguments.clock.as_deref(),
        arguments.data.is_some(),
        capture,
    )
}

/// `own`: the servers are our own.
fn chosen(clock: Option<&str>, own: bool, capture: &Capture) -> Result<ClockWish, Problem> {
    let of_machine = |why: String| ClockWish {
        at: None,
        why,
        required: false,
    };
    match clock {
        Some(NOW) => Ok(of_machine("--clock now asks for it".to_owned())),
        Some(CAPTURE) => Ok(ClockWish {
            at: Some(of_capture(capture).map_err(|why| {
                Problem::new("the capture does not say its time")
                    .detail(why)
                    .hint(EXAMPLE)
            })?),
            why: OF_CAPTURE.to_owned(),
            required: true,
        }),
        Some(text) => Ok(ClockWish {
            at: Some(moment(text).map_err(|why| {
                Problem::new(format!("`{text}` is not a time"))
                    .detail(why)
                    .hint(EXAMPLE)
            })?),
            why: "--clock asks for it".to_owned(),
            required: true,
        }),
        None if !own => Ok(of_machine(
            "deltabench gives servers that already run no other time".to_owned(),
        )),
        None if !capture.statements.iter().any(asks_for_time) => {
            Ok(of_machine("no statement asks for the time".to_owned()))
        }
        None => Ok(match of_capture(capture) {
            Ok(at) => ClockWish {
                at: Some(at),
                why: OF_CAPTURE.to_owned(),
                required: false,
            },
            Err(why) => of_machine(format!("{why}; --clock TIME gives the servers another one")),
        }),
    }
}

/// What a message proposes.
const EXAMPLE: &str = "write for example --clock '2026-11-23 13:00 UTC' or '2026-11-23 14:00+01'";
/// Why servers have the time of the capture.
const OF_CAPTURE: &str = "the end of the capture";

/// What `--dry-run` says of it.
pub fn outlook(wish: &ClockWish) -> Option<String> {
    let at = timestamp(wish.at?.saturating_mul(1000));
    Some(format!(
        "the clocks of all of them would begin at {at} UTC at each start: {}",
        wish.why
    ))
}

/// The time of the last entry of a capture, seconds since 1970.
///
/// Errors: why it is not known.
fn of_capture(capture: &Capture) -> Result<i64, String> {
    match &capture.header.to {
        None => Err("the capture has no time".to_owned()),
        Some(text) => {
            moment(text).map_err(|why| format!("the capture ends at `{text}`, and {why}"))
        }
    }
}

/// Zones by their abbreviations, in minutes east of UTC: those that logs use, as far as they mean one zone.
/// IST and CST mean several.
///
/// Source: `timezonesets/Default` of PostgreSQL.
const ZONES: [(&str, i32); 29] = [
    ("", 0),
    ("z", 0),
    ("utc", 0),
    ("gmt", 0),
    ("uct", 0),
    ("wet", 0),
    ("west", 60),
    ("bst", 60),
    ("cet", 60),
    ("cest", 120),
    ("sast", 120),
    ("eet", 120),
    ("eest", 180),
    ("msk", 180),
    ("jst", 540),
    ("kst", 540),
    ("aest", 600),
    ("aedt", 660),
    ("nzst", 720),
    ("nzdt", 780),
    ("est", -300),
    ("edt", -240),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("akst", -540),
    ("hst", -600),
];

/// Seconds since 1970 of `2026-11-23 13:07:19.120 CET`; a time without a zone is one of UTC.
///
/// Errors: what cannot be read, in words.
fn moment(text: &str) -> Result<i64, String> {
    let bad = || "a time is written as 2026-11-23 13:07:19, with a zone behind it".to_owned();
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10).ok_or_else(bad)?;
    let rest = rest.trim_start_matches(['T', ' ']);
    let clock_ends = rest.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'));
    let (clock, zone) = rest
        .split_at_checked(clock_ends.unwrap_or(rest.len()))
        .ok_or_else(bad)?;
    let date = date_of(date).ok_or_else(bad)?;
    let clock = clock_of(clock).ok_or_else(bad)?;
    let zone = zone.trim();
    let offset = zone_of(zone).ok_or_else(|| {
        format!("deltabench does not know the zone `{zone}`, or it means several")
    })?;
    Ok(date.with_time(clock).assume_offset(offset).unix_timestamp())
}

fn date_of(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = Month::try_from(parts.next()?.parse::<u8>().ok()?).ok()?;
    Date::from_calendar_date(year, month, parts.next()?.parse().ok()?).ok()
}

/// Of `13:07`, `13:07:19` and `13:07:19.120`; midnight if it is empty. Parts of a second do not count.
fn clock_of(text: &str) -> Option<Time> {
    if text.is_empty() {
        return Some(Time::MIDNIGHT);
    }
    let whole = text.split('.').next()?;
    let mut parts = whole.split(':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    Time::from_hms(hour, minute, second).ok()
}

/// Of an abbreviation, or of `+01`, `+05:30`, `-0330`.
fn zone_of(text: &str) -> Option<UtcOffset> {
    let known = ZONES
        .iter()
        .find(|(name, _)| text.eq_ignore_ascii_case(name));
    if let Some((_, minutes)) = known {
        return UtcOffset::from_whole_seconds(minutes * 60).ok();
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let rest = text.get(1..)?;
    if !rest.chars().all(|c| c.is_ascii_digit() || c == ':') {
        return None;
    }
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { "0" } else { minutes };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    UtcOffset::from_whole_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_capture::Header;

    /// A capture of one statement that ends at this time.
    fn capture(to: Option<&str>, sql: &str) -> Capture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sql");
        std::fs::write(&path, sql).unwrap();
        let header = Header {
            to: to.map(str::to_owned),
            ..Header::default()
        };
        Capture {
            header,
            ..Capture::open(&path).unwrap()
        }
    }

    #[test]
    fn servers_of_ours_get_the_time_of_the_capture_if_a_statement_asks_for_it() {
        let noon = Some("2026-11-23 12:00:00 UTC");
        let asking = capture(noon, "SELECT a FROM t WHERE at > now() - interval '1 day'");
        let at = |clock, own, capture: &Capture| chosen(clock, own, capture).unwrap().at;
        assert_eq!(at(None, true, &asking), Some(1_795_435_200));
        assert_eq!(at(None, false, &asking), None, "servers that already run");
        assert_eq!(at(Some("now"), true, &asking), None);
        assert_eq!(at(Some("2026-11-23"), true, &asking), Some(1_795_392_000));
        let other = capture(noon, "SELECT a FROM t");
        assert_eq!(at(None, true, &other), None, "the time does not matter");
        assert_eq!(at(Some("capture"), true, &other), Some(1_795_435_200));
        let timeless = capture(None, "SELECT 'yesterday'::date");
        let wish = chosen(None, true, &timeless).unwrap();
        assert!(wish.at.is_none() && wish.why.contains("the capture has no time"));
        assert!(chosen(Some("capture"), true, &timeless).is_err());
        assert!(chosen(Some("noon"), true, &asking).is_err());
    }

    #[test]
    fn times_of_logs_and_of_users_are_read() {
        let noon = moment("2026-11-23 12:00:00 UTC").unwrap();
        assert_eq!(noon, 1_795_435_200);
        for same in [
            "2026-11-23 12:00:00.913 GMT",
            "2026-11-23 12:00",
            "2026-11-23T12:00:00Z",
            "2026-11-23 13:00:00.120 CET",
            "2026-11-23 13:00+01",
            "2026-11-23T17:30:00+05:30",
            "2026-11-23 09:00:00 -03",
            "2026-11-23 08:30:00-0330",
            "2026-11-23 07:00:00.5 EST",
        ] {
            assert_eq!(moment(same).unwrap(), noon, "{same}");
        }
        assert_eq!(moment("2026-11-23").unwrap(), noon - 12 * 3600);
        for bad in [
            "yesterday",
            "2026-13-01",
            "2026-11-23 25:00",
            "12:00",
            "2026-11-23 12:00 +x",
        ] {
            assert!(moment(bad).is_err(), "{bad}");
        }
        let several = moment("2026-11-23 12:00:00 IST").unwrap_err();
        assert!(several.contains("`IST`"), "{several}");
    }
}
