//! Numbers and verdicts in words, alike in every report.

use deltabench_compare::comparison::{
    CellComparison, GroupSummary, Metric, MetricComparison, Ratio, Verdict,
};
use deltabench_model::finding::Severity;
use deltabench_model::plan::{Group, Plan, Role};
use deltabench_model::units::to_f64;
use time::OffsetDateTime;

/// What is printed where a value is not known.
pub const UNKNOWN: &str = "unknown";

/// The word of a verdict for people; files use [`Verdict::word`].
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "slower",
        Verdict::Improvement => "faster",
        Verdict::NoChange => "no change",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Unfit => "unfit",
    }
}

/// A sign that tells verdicts apart without colour.
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "▼",
        Verdict::Improvement => "▲",
        Verdict::NoChange => "=",
        Verdict::Inconclusive => "?",
        Verdict::Unfit => "×",
    }
}

/// The terminal's code for a verdict's colour.
pub fn paint(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression | Verdict::Unfit => "31",
        Verdict::Improvement => "32",
        Verdict::NoChange => "2",
        Verdict::Inconclusive => "33",
    }
}

/// The word of a role in files.
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Base => "base",
        Role::Placebo => "placebo",
        Role::Candidate => "candidate",
    }
}

/// A value that is a number.
pub fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// The word of a severity.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Confounder => "confounder",
        Severity::Unfit => "unfit",
    }
}

/// Verdict and reason in one phrase; the word is not said twice.
pub fn judged(cell: &CellComparison) -> String {
    phrase(cell.verdict, &cell.reason)
}

/// The same of a verdict and a reason.
pub(crate) fn phrase(of: Verdict, reason: &str) -> String {
    let word = verdict(of);
    if reason.is_empty() || reason == word {
        word.to_owned()
    } else if reason.starts_with(word) {
        reason.to_owned()
    } else {
        format!("{word}: {reason}")
    }
}

/// Heading of a group, as published comparisons of this kind use them.
pub fn heading(group: Group) -> &'static str {
    match group {
        Group::Point => "Point queries",
        Group::Range => "Range queries without aggregation",
        Group::RangeAgg => "Range queries with aggregation",
        Group::Write => "Writes",
    }
}

/// The heading in the report of a run: an embedded engine answers no queries.
pub fn heading_in(plan: &Plan, group: Group) -> &'static str {
    if plan.work.is_embedded() {
        embedded_heading(group)
    } else {
        heading(group)
    }
}

/// The heading where an embedded engine is measured.
pub fn embedded_heading(group: Group) -> &'static str {
    match group {
        Group::Point => "Point reads",
        Group::Range => "Ranges",
        group => heading(group),
    }
}

/// All groups in report order.
pub const GROUPS: [Group; 4] = [Group::Point, Group::Range, Group::RangeAgg, Group::Write];

/// A metric of a cell, if it was measured and is a number.
pub fn metric(cell: &CellComparison, wanted: Metric) -> Option<&MetricComparison> {
    cell.metrics
        .iter()
        .find(|m| m.metric == wanted && m.ratio.estimate.is_finite())
}

/// A ratio's 95 % interval, if it has one and its ends are numbers.
pub fn ci95(ratio: &Ratio) -> Option<(f64, f64)> {
    ratio
        .ci95
        .filter(|(low, high)| low.is_finite() && high.is_finite())
}

/// A ratio as change: `+0.2 %`.
pub fn change(ratio: f64) -> String {
    format!("{} %", signed(ratio))
}

fn signed(ratio: f64) -> String {
    let text = format!("{:+.1}", 100.0 * (ratio - 1.0));
    if text == "-0.0" {
        "+0.0".to_owned()
    } else {
        text
    }
}

/// A ratio as change with its interval: `-3.4 % [-4.1, -2.7]`.
pub fn change_interval(ratio: &Ratio) -> String {
    match ci95(ratio) {
        _ if !ratio.estimate.is_finite() => UNKNOWN.to_owned(),
        Some((low, high)) => format!(
            "{} [{}, {}]",
            change(ratio.estimate),
            signed(low),
            signed(high)
        ),
        None => format!("{} [no interval]", change(ratio.estimate)),
    }
}

/// A ratio with its interval: `0.966 [0.958, 0.973]`.
pub fn ratio_interval(ratio: &Ratio) -> String {
    match ci95(ratio) {
        _ if !ratio.estimate.is_finite() => UNKNOWN.to_owned(),
        Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.estimate),
        None => format!("{:.3} [no interval]", ratio.estimate),
    }
}

/// Before the factor by which a ratio may be off either way.
pub const WIDE: &str = "×÷";

/// A ratio with half of its interval, `0.966 ±0.008`; an interval so lopsided that half its width would
/// mislead is a factor: `0.4 ×÷3`.
pub fn ratio_half(ratio: &Ratio) -> String {
    let text = |value: f64| {
        if value < 10.0 {
            format!("{value:.3}")
        } else {
            figure(value)
        }
    };
    let estimate = text(ratio.estimate);
    match ci95(ratio) {
        _ if !ratio.estimate.is_finite() => UNKNOWN.to_owned(),
        None => format!("{estimate} ±?"),
        Some((low, high)) if is_wide(low, high) => {
            format!("{estimate} {WIDE}{}", figure((high / low).sqrt()))
        }
        Some((low, high)) => format!("{estimate} ±{}", text((high - low) / 2.0)),
    }
}

/// What the sign of [`ratio_half`] for a wide interval means.
pub fn wide_meaning() -> String {
    format!("{WIDE}n: the interval is about 1/n to n times the figure")
}

/// Whether the interval of a ratio is so lopsided that half its width would mislead.
fn is_wide(low: f64, high: f64) -> bool {
    high > 2.0 * low
}

/// A share without needless zeros: `3 %`, `2.5 %`.
pub fn share(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The δ of some cells: `±3 %`, or `±1 % to ±3 %` where they have their own.
pub fn deltas<'a>(cells: impl IntoIterator<Item = &'a CellComparison>) -> String {
    let (low, high) = cells
        .into_iter()
        .map(|cell| cell.delta)
        .filter(|delta| delta.is_finite())
        .fold((f64::INFINITY, 0.0), |(low, high), delta| {
            (delta.min(low), delta.max(high))
        });
    if !low.is_finite() {
        "±δ".to_owned()
    } else if share(low) == share(high) {
        format!("±{}", share(high))
    } else {
        format!("±{} to ±{}", share(low), share(high))
    }
}

/// `geometric mean of 3`, or `of 2 of 3` where a cell has no estimate.
pub fn mean_of(summary: &GroupSummary) -> String {
    if summary.cells == summary.of {
        format!("geometric mean of {}", summary.of)
    } else {
        format!("geometric mean of {} of {}", summary.cells, summary.of)
    }
}

/// A probability: `0.031`, `< 0.001`.
pub fn p_value(p: f64) -> String {
    if !p.is_finite() {
        UNKNOWN.to_owned()
    } else if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// A positive number with three to four digits that matter: `0.53`, `12.3`, `456`, `12345`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        UNKNOWN.to_owned()
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// `base → candidate`.
pub fn from_to(metric: &MetricComparison) -> String {
    format!("{} → {}", number(metric.base), number(metric.candidate))
}

/// Bytes as megabytes (2^20).
pub fn megabytes(bytes: u64) -> f64 {
    to_f64(bytes) / 1_048_576.0
}

/// What does the work of a cell: `client`, or `thread` of an embedded engine.
pub fn worker(plan: &Plan) -> &'static str {
    if plan.work.is_embedded() {
        "thread"
    } else {
        "client"
    }
}

/// The head of a column of their numbers.
pub fn workers_head(plan: &Plan) -> &'static str {
    if plan.work.is_embedded() {
        "threads"
    } else {
        "clients"
    }
}

/// What runs a target: `server`, or `target` where it is an embedded engine.
pub fn server(plan: &Plan) -> &'static str {
    if plan.work.is_embedded() {
        "target"
    } else {
        "server"
    }
}

/// What an operation that failed is called: a `server error`, or a `failed operation` of an embedded engine.
pub fn error(plan: &Plan) -> &'static str {
    if plan.work.is_embedded() {
        "failed operation"
    } else {
        "server error"
    }
}

/// `4 clients`, or `4 threads` of an embedded engine.
pub fn workers(plan: &Plan, number: u32) -> String {
    plural(u64::from(number), worker(plan))
}

/// `1 client`, `4 clients`.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// A number with three digits that matter, however small: `0`, `0.0063`, `12.3`, `12345`, `3.1e-7`.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let size = value.abs();
    if size.total_cmp(&0.0).is_eq() {
        "0".to_owned()
    } else if size >= 1.0 {
        number(value)
    } else if size >= 0.1 {
        format!("{value:.3}")
    } else if size >= 0.01 {
        format!("{value:.4}")
    } else if size >= 0.001 {
        format!("{value:.5}")
    } else {
        format!("{value:.1e}")
    }
}

/// Milliseconds since 1970 as `2025-11-21 10:43 UTC`.
pub fn date(unix_ms: i64) -> String {
    let time = time_of(unix_ms);
    format!(
        "{} {:02}:{:02} UTC",
        time.date(),
        time.hour(),
        time.minute()
    )
}

/// The day of a moment, milliseconds since 1970: `2025-11-21`, in UTC.
pub fn day(unix_ms: i64) -> String {
    time_of(unix_ms).date().to_string()
}

/// Milliseconds since 1970 as `2025-11-21T10:43:00`, in UTC (ISO 8601).
pub fn timestamp(unix_ms: i64) -> String {
    let time = time_of(unix_ms);
    let (hour, minute, second) = time.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}", time.date())
}

/// That moment; the epoch for one that no clock shows.
fn time_of(unix_ms: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// The command as it would be typed in a POSIX shell.
pub fn shell(command: &[String]) -> String {
    let quoted: Vec<String> = command.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_never_print_minus_zero_or_nan() {
        assert_eq!(change(0.9999), "+0.0 %");
        assert_eq!(change(0.966), "-3.4 %");
        let ratio = Ratio {
            estimate: 1.002,
            ci95: Some((0.991, f64::NAN)),
            ci90: None,
        };
        assert_eq!(change_interval(&ratio), "+0.2 % [no interval]");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @…`.
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_709_210_096_000), "2024-02-29 12:34 UTC");
        assert_eq!(date(1_767_225_599_000), "2025-12-31 23:59 UTC");
        assert_eq!(date(-60_000), "1969-12-31 23:59 UTC");
        assert_eq!(timestamp(1_709_210_096_000), "2024-02-29T12:34:56");
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["deltabench", "compare", "path:/my dir", "it's", ""].map(str::to_owned);
        assert_eq!(
            shell(&words),
            r"deltabench compare 'path:/my dir' 'it'\''s' ''"
        );
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(
            [0.5312, 12.34, 456.7, 12345.0, f64::NAN].map(number),
            ["0.53", "12.3", "457", "12345", "unknown"]
        );
    }
    #[test]
    fn small_figures_keep_three_digits_too() {
        assert_eq!(
            [0.0, 0.123_45, 0.012_345, 0.006_3, 3.14e-7, -0.25, 21_400.0].map(figure),
            [
                "0", "0.123", "0.0123", "0.00630", "3.1e-7", "-0.250", "21400"
            ]
        );
    }
}
