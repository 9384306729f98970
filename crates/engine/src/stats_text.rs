//! The text that the property `rocksdb.stats` gives and that `db_bench` prints.
//!
//! Resolution: bytes are printed as GB with two decimals (5 MB), and mostly again as MB/s since the database
//! was opened. The finer of the two is taken, which is the rate from some tenths of a second on: 5 kB for
//! each second of uptime, and what comes in a twentieth of a second, since uptime has one decimal. Flushed
//! bytes have only GB, with three decimals (0.5 MB). Times of compactions are in hundredths of a second,
//! summed over all levels, stalls in milliseconds. What a step moved is the difference of two readings, with
//! twice that.

/// What the text says, all since the database was opened; what it does not say is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StatsText {
    /// Seconds since the database was opened.
    pub uptime_seconds: Option<f64>,
    /// Bytes that compactions and flushes wrote.
    pub compaction_write_bytes: Option<f64>,
    pub compaction_read_bytes: Option<f64>,
    /// Time of compactions and flushes, summed over their threads.
    pub compaction_seconds: Option<f64>,
    /// CPU of compactions and flushes.
    pub compaction_cpu_seconds: Option<f64>,
    /// Bytes that flushes wrote.
    pub flush_bytes: Option<f64>,
    /// Bytes of the user's puts.
    pub ingest_bytes: Option<f64>,
    /// Bytes of the write-ahead log.
    pub wal_write_bytes: Option<f64>,
    /// Time for which writes were stopped or slowed, summed over their threads.
    pub stall_seconds: Option<f64>,
    /// How often writes were stopped or slowed.
    pub stalls: Option<f64>,
    /// Bytes of all table files now.
    pub level_bytes: Option<f64>,
    /// Files in level 0 now.
    pub level_0_files: Option<f64>,
    /// Bytes that compactions and flushes wrote, per byte that flushes wrote.
    pub write_amplification: Option<f64>,
    /// Bytes of blob files now.
    pub blob_bytes: Option<f64>,
}

const KB: f64 = 1024.0;
const MB: f64 = 1_048_576.0;
const GB: f64 = 1_073_741_824.0;
const TB: f64 = 1_099_511_627_776.0;

/// Reads the text. Where it holds several reports, one after the other, the last one counts.
///
/// Source: `internal_stats.cc` of RocksDB 6 to 10, as recorded beside this file. All sizes are of 1024.
pub fn parse(text: &str) -> StatsText {
    let mut stats = StatsText::default();
    let mut columns: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.first() {
            Some(&"Level") => {
                columns = words;
                // A level without a file has no row.
                stats.level_0_files = Some(0.0);
            }
            // The same again by priority, without a sum.
            Some(&"Priority") => columns.clear(),
            Some(&"Sum") => read_sum(&mut stats, &columns, &words),
            Some(&"L0") => read_level_0(&mut stats, &columns, &words),
            Some(_) => read_line(&mut stats, line),
            None => {}
        }
    }
    stats
}

/// The line of the per-level table that sums it up.
fn read_sum(stats: &mut StatsText, columns: &[&str], words: &[&str]) {
    let Some(size) = columns.iter().position(|name| *name == "Size") else {
        return;
    };
    let number = |name: &str| {
        let place = columns.iter().position(|column| *column == name)?;
        // A size is two words: number and unit.
        let place = if place > size { place + 1 } else { place };
        words.get(place)?.parse::<f64>().ok()
    };
    stats.compaction_seconds = number("Comp(sec)");
    stats.compaction_cpu_seconds = number("CompMergeCPU(sec)");
    stats.write_amplification = number("W-Amp");
    stats.level_bytes = words.get(size).zip(words.get(size + 1)).and_then(bytes);
}

/// Files are `ALL/BEING COMPACTED`.
fn read_level_0(stats: &mut StatsText, columns: &[&str], words: &[&str]) {
    if columns.get(1) == Some(&"Files") {
        let files = words.get(1).and_then(|word| word.split('/').next());
        stats.level_0_files = files.and_then(|files| files.parse().ok());
    }
}

fn bytes((number, unit): (&&str, &&str)) -> Option<f64> {
    let unit = match *unit {
        "B" => 1.0,
        "KB" => KB,
        "MB" => MB,
        "GB" => GB,
        "TB" => TB,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * unit)
}

fn read_line(stats: &mut StatsText, line: &str) {
    let Some((what, rest)) = line.split_once(':') else {
        return;
    };
    match what {
        "Uptime(secs)" => stats.uptime_seconds = before(rest, " total"),
        "Flush(GB)" => {
            let flushed = before(rest, ",").map(|flushed| flushed * GB);
            stats.flush_bytes = flushed;
        }
        "Cumulative compaction" => {
            let uptime = stats.uptime_seconds;
            stats.compaction_write_bytes = volume(rest, " GB write", " MB/s write", uptime);
            stats.compaction_read_bytes = volume(rest, " GB read", " MB/s read", uptime);
            // Finer in the table, where there is one.
            stats.compaction_seconds = stats.compaction_seconds.or(before(rest, " seconds"));
        }
        "Cumulative writes" => {
            let ingest = part(rest, "ingest:");
            stats.ingest_bytes =
                ingest.and_then(|rest| volume(rest, " GB", " MB/s", stats.uptime_seconds));
        }
        "Cumulative WAL" => {
            let written = part(rest, "written:");
            stats.wal_write_bytes =
                written.and_then(|rest| volume(rest, " GB", " MB/s", stats.uptime_seconds));
        }
        "Cumulative stall" => stats.stall_seconds = clock(rest),
        "Stalls(count)" => stats.stalls = Some(stalls_by_words(rest)),
        "Write Stall (count)" => {
            // The second such line, of the whole database, knows one cause only.
            let counted = stalls_by_names(rest);
            if rest.contains("total-") {
                stats.stalls = Some(counted);
            }
        }
        "Blob file count" => stats.blob_bytes = part(rest, "total size:").and_then(gigabytes),
        _ => {}
    }
}

/// What follows a word.
fn part<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

/// The number that stands right before a mark.
fn before(text: &str, mark: &str) -> Option<f64> {
    let (head, _) = text.split_once(mark)?;
    head.rsplit([' ', ',']).next()?.parse().ok()
}

fn gigabytes(text: &str) -> Option<f64> {
    before(text, " GB").map(|number| number * GB)
}

/// Bytes that are told twice: as GB, and per second of uptime. The finer of the two, within what the other
/// allows.
fn volume(text: &str, total: &str, rate: &str, uptime: Option<f64>) -> Option<f64> {
    let total = before(text, total)? * GB;
    let Some((rate, uptime)) = before(text, rate).zip(uptime) else {
        return Some(total);
    };
    // Two decimals; the time has one.
    let coarseness = 0.005 * GB;
    let coarseness_of_rate = (0.005 * uptime + 0.05 * rate) * MB;
    let bytes = if coarseness_of_rate < coarseness {
        rate * MB * uptime
    } else {
        total
    };
    Some(bytes.clamp((total - coarseness).max(0.0), total + coarseness))
}

/// `00:01:2.345 H:M:S`.
fn clock(text: &str) -> Option<f64> {
    let (clock, _) = text.split_once(" H:M:S")?;
    let parts: Result<Vec<f64>, _> = clock.trim().split(':').map(str::parse).collect();
    match parts.ok()?.as_slice() {
        [hours, minutes, seconds] => Some(hours * 3600.0 + minutes * 60.0 + seconds),
        _ => None,
    }
}

/// `0 level0_slowdown, 0 level0_slowdown_with_compaction, …, interval 0 total count`: what happened beside a
/// compaction is counted in the name without it too.
fn stalls_by_words(text: &str) -> f64 {
    let causes = text.split(',').map(str::trim).filter_map(|cause| {
        let (number, name) = cause.split_once(' ')?;
        let number: f64 = number.parse().ok()?;
        (!name.ends_with("_with_compaction")).then_some(number)
    });
    causes.sum()
}

/// `…, total-delays: 0, total-stops: 0`.
fn stalls_by_names(text: &str) -> f64 {
    let causes = text.split(',').filter_map(|cause| {
        let (name, number) = cause.trim().split_once(": ")?;
        let number: f64 = number.parse().ok()?;
        name.starts_with("total-").then_some(number)
    });
    causes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, wanted: f64, within: f64) {
        let found = found.unwrap();
        assert!(
            (found - wanted).abs() <= within,
            "{found} is not {wanted} +- {within}"
        );
    }

    /// All three were recorded from 60,000 puts of 20 + 400 bytes: 25.2 MB with what a batch adds to each.
    const RECORDED: [&str; 3] = [
        include_str!("stats_text/6.29.5.txt"),
        include_str!("stats_text/8.11.4.txt"),
        include_str!("stats_text/10.2.1.txt"),
    ];

    #[test]
    fn every_version_tells_all_of_it_and_bytes_are_finer_than_two_decimals_of_a_gigabyte() {
        for text in RECORDED {
            let stats = parse(text);
            // Uptime has one decimal: half of it is 2 % of these 2.8 seconds.
            near(stats.ingest_bytes, 60_000.0 * 435.0, 0.02 * 26.1e6);
            near(stats.wal_write_bytes, 60_000.0 * 435.0, 0.02 * 26.1e6);
            near(stats.uptime_seconds, 2.6, 0.3);
            near(stats.flush_bytes, 24.7e6, 0.6e6);
            near(stats.stall_seconds, 0.0, 0.0);
            near(stats.stalls, 0.0, 0.0);
            near(stats.level_0_files, 2.0, 1.0);
            near(stats.blob_bytes, 0.0, 0.0);
            near(stats.level_bytes, 18.5e6, 0.6e6);
            near(stats.write_amplification, 3.1, 0.2);
            let amplified = stats.compaction_write_bytes.unwrap() / stats.flush_bytes.unwrap();
            near(Some(amplified), stats.write_amplification.unwrap(), 0.15);
            assert!(stats.compaction_read_bytes.unwrap() > 40e6);
            assert!(stats.compaction_cpu_seconds.unwrap() < stats.compaction_seconds.unwrap());
        }
    }

    #[test]
    fn times_of_compactions_are_read_from_the_table() {
        let stats = parse(RECORDED[0]);
        near(stats.compaction_seconds, 1.74, 1e-9);
        near(stats.compaction_cpu_seconds, 0.25, 1e-9);
        near(stats.level_bytes, 17.61 * MB, 1.0);
    }

    #[test]
    fn a_rate_never_leads_away_from_the_total() {
        let text = "Uptime(secs): 100.0 total, 1.0 interval\n\
            Cumulative compaction: 2.00 GB write, 10.00 MB/s write, \
            0.00 GB read, 0.01 MB/s read, 3.5 seconds";
        let stats = parse(text);
        near(stats.compaction_write_bytes, 1.995 * GB, 1.0);
        near(stats.compaction_read_bytes, MB, 1.0);
        near(stats.compaction_seconds, 3.5, 1e-9);
    }

    #[test]
    fn stalls_are_counted_once_whatever_the_version_calls_them() {
        let old = "Stalls(count): 5 level0_slowdown, 3 level0_slowdown_with_compaction, 2 level0_numfiles, \
            1 level0_numfiles_with_compaction, 4 stop for pending_compaction_bytes, \
            6 slowdown for pending_compaction_bytes, 7 memtable_compaction, 8 memtable_slowdown, \
            interval 9 total count\nCumulative stall: 01:02:3.500 H:M:S, 12.5 percent";
        near(parse(old).stalls, 32.0, 0.0);
        near(parse(old).stall_seconds, 3723.5, 1e-9);
        let new = "Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 3, \
            l0-file-count-limit-delays: 5, total-delays: 19, total-stops: 13\n\
            Write Stall (count): write-buffer-manager-limit-stops: 0, ";
        near(parse(new).stalls, 32.0, 0.0);
    }

    #[test]
    fn what_is_not_told_is_absent_and_the_last_report_counts() {
        assert_eq!(parse("nothing of the kind: 3 GB"), StatsText::default());
        let twice =
            "Flush(GB): cumulative 1.000, interval 1\nFlush(GB): cumulative 2.000, interval 1";
        near(parse(twice).flush_bytes, 2.0 * GB, 1.0);
    }
}
