//! What `dateandtime` of a row is.

use deltabench_model::insert::InsertStep;
use std::io::Write as _;

/// The first second: 2024-01-01 00:00:00, in days since 1970-01-01.
const FIRST_DAY: u64 = 19_723;
/// Seconds of a day.
const DAY: u64 = 86_400;

/// Which second a batch of rows belongs to. All rows of a batch have the same, as published.
///
/// The published client takes the wall clock. Here it is counted: in steps with a rate, a batch has the
/// second in which it is due; in the others each client inserts a fixed number of rows per second of the
/// calendar, about what one client of the published studies does. Each step begins where the calendar of
/// the step before it ended, with the next second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    first: u64,
    rows_per_second: u64,
    batch: u64,
}

impl Calendar {
    /// The calendar of a step that begins `first` seconds after the benchmark did.
    #[must_use]
    pub fn new(step: InsertStep, first: u64) -> Self {
        let rows_per_second = match step {
            InsertStep::LoadRows | InsertStep::Index => 20_000,
            InsertStep::WriteMany => 5_000,
            InsertStep::WriteFew => 2_000,
            InsertStep::Range(rate) | InsertStep::Point(rate) => u64::from(rate.max(1)),
        };
        Self {
            first,
            rows_per_second,
            batch: u64::from(step.batch()),
        }
    }

    /// The second of a client's batch, counted from 0; since the start of the benchmark.
    #[must_use]
    pub fn second(&self, batch: u64) -> u64 {
        self.first + batch.saturating_mul(self.batch) / self.rows_per_second
    }

    /// Where the calendar of the next step begins if each client inserts so many batches in this one.
    #[must_use]
    pub fn end(&self, batches: u64) -> u64 {
        self.second(batches.saturating_sub(1)) + 1
    }
}

/// Appends the time as the server reads it: `2024-01-01 00:00:00`.
pub(super) fn write_time(out: &mut Vec<u8>, second: u64) {
    let (year, month, day) = date(FIRST_DAY + second / DAY);
    let of_day = second % DAY;
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    );
}

/// Year, month and day of a number of days since 1970-01-01.
///
/// Source: Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`, for days from 1970 on.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(second: u64) -> String {
        let mut out = Vec::new();
        write_time(&mut out, second);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_dates_of_the_calendar() {
        assert_eq!(text(0), "2024-01-01 00:00:00");
        assert_eq!(text(59 * DAY + 3661), "2024-02-29 01:01:01");
        assert_eq!(text(366 * DAY - 1), "2024-12-31 23:59:59");
        assert_eq!(text(366 * DAY), "2025-01-01 00:00:00");
    }

    #[test]
    fn a_batch_has_the_second_in_which_it_is_due() {
        let calendar = Calendar::new(InsertStep::Point(100), 1000);
        let seconds: Vec<u64> = (0..5).map(|batch| calendar.second(batch)).collect();
        assert_eq!(seconds, [1000, 1000, 1001, 1001, 1002]);
        assert_eq!(calendar.end(4), 1002);
        assert_eq!(
            calendar.end(0),
            1001,
            "no second belongs to two steps, even if nothing is inserted"
        );
    }
}
