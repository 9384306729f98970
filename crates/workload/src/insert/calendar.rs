//! What `dateandtime` of a row is.

use deltabench_model::work::insert::InsertStep;
use std::io::Write as _;
use time::OffsetDateTime;

/// The first second: 2024-01-01 00:00:00, in seconds since 1970-01-01.
const FIRST: u64 = 19_723 * 86_400;

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
    pub fn second(&self, batch: u64) -> u64 {
        self.first + batch.saturating_mul(self.batch) / self.rows_per_second
    }

    /// Where the calendar of the next step begins if each client inserts so many batches in this one.
    pub fn end(&self, batches: u64) -> u64 {
        self.second(batches.saturating_sub(1)) + 1
    }
}

/// Appends the time as the server reads it: `2024-01-01 00:00:00`.
pub(super) fn write_time(out: &mut Vec<u8>, second: u64) {
    let since_1970 = i64::try_from(FIRST.saturating_add(second)).unwrap_or(i64::MAX);
    // Not reached: it takes 8000 years of inserting.
    let time =
        OffsetDateTime::from_unix_timestamp(since_1970).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

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
