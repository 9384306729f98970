//! The time of day, and what is made of it.

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

/// A seed that differs from run to run; under 2^53, so that every reader of the JSON sees the same number.
pub fn seed_from_clock() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    deltabench_workload::mix(u64::from(now.subsec_nanos()), &[now.as_secs()]) >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_time_and_seed() {
        assert_eq!(run_name(1_795_260_000, 0xab_cdef), "20261121-112000-cdef");
    }
}
