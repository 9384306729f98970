//! Reasons in words, with percent figures.

use crate::comparison::{CellComparison, Difference};
use deltabench_model::plan::Plan;
use deltabench_model::units::to_u64;

/// A share as `3.4 %`; two decimals below 0.1 %, so that a small number is not printed as zero.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value.abs() < 0.095 {
        format!("{value:.2} %")
    } else {
        format!("{value:.1} %")
    }
}

/// A share with its sign, `+3.4 %`.
pub fn signed(share: f64) -> String {
    let text = percent(share);
    if share < 0.0 {
        text
    } else {
        format!("+{text}")
    }
}

/// A share with its sign and without the unit, for the ends of an interval: `+3.4`.
pub fn bare(share: f64) -> String {
    let text = signed(share);
    text.trim_end_matches(" %").to_owned()
}

/// The ends of an interval of ratios: `[-0.6, +0.1]`, in percent.
pub fn ends((low, high): (f64, f64)) -> String {
    format!("[{}, {}]", bare(low - 1.0), bare(high - 1.0))
}

/// A threshold, without needless zeros: `3 %`, `2.5 %`.
pub fn threshold(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Decimals of a difference: two digits of its interval's width, and no more than hundredths of a nanosecond.
/// Where there is no width, as with a few blocks alike, a thousandth of the difference stands for it.
fn decimals(difference: &Difference) -> usize {
    let (low, high) = difference
        .ci95
        .unwrap_or((difference.estimate, difference.estimate));
    let width = (high - low).max(difference.estimate.abs() / 1000.0);
    // Nothing, without any width: there is no digit to tell.
    if width < 1e-9 {
        return 0;
    }
    let digits = (1.0 - width.log10().floor()).clamp(0.0, 5.0);
    usize::try_from(to_u64(digits)).unwrap_or(0)
}

/// A difference with the digits of [`microseconds`], without its unit and its interval: `+0.62`.
pub(crate) fn bare_microseconds(difference: &Difference) -> String {
    with_sign(difference.estimate, decimals(difference))
}

/// With its sign and so many decimals; what rounds to zero is no loss and no gain: `+0.00`.
fn with_sign(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => format!("+{zero}"),
        _ => text,
    }
}

/// A difference for each operation with its interval: `+0.62 µs/op [+0.40, +0.84]`.
pub fn microseconds(difference: &Difference) -> String {
    let digits = decimals(difference);
    let estimate = format!("{} µs/op", with_sign(difference.estimate, digits));
    match difference.ci95 {
        Some((low, high)) => {
            let (low, high) = (with_sign(low, digits), with_sign(high, digits));
            format!("{estimate} [{low}, {high}]")
        }
        None => estimate,
    }
}

/// A large number to two digits, with separators: `20,000`, `830`.
pub fn rounded(value: f64) -> String {
    let unit = 10.0_f64.powf(value.max(10.0).log10().floor() - 1.0);
    let digits = format!("{:.0}", (value / unit).round() * unit);
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 more block`, `12 more passes`; `repeat` is the word of the plan ([`Work::repeat`]).
///
/// [`Work::repeat`]: deltabench_model::work::Work::repeat
pub fn more(number: usize, repeat: &str) -> String {
    if number == 1 {
        format!("1 more {repeat}")
    } else {
        format!("{number} more {}", several(repeat))
    }
}

/// `blocks`, `passes`.
pub fn several(repeat: &str) -> String {
    let end = if repeat.ends_with('s') { "es" } else { "s" };
    format!("{repeat}{end}")
}

/// Names that a sentence lists before it only counts the rest: the cells themselves have the facts.
const LISTED: usize = 4;

/// `a, b`, or `a, b, c, d and 3 more`.
pub fn first_of(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `p = 0.0123`, or `p < 0.0001`.
pub fn p(p: f64) -> String {
    if p < 0.0001 {
        "p < 0.0001".to_owned()
    } else {
        format!("p = {p:.4}")
    }
}

/// `1 client`, `4 clients`.
pub fn things(number: u32, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

/// `4 clients`, or `4 threads` where that is what does the plan's work.
pub fn workers(plan: &Plan, number: u32) -> String {
    things(number, plan.work.worker())
}

/// A cell: `scan at 4 clients`.
pub(crate) fn cell(plan: &Plan, cell: &CellComparison) -> String {
    workload_at(plan, &cell.workload, cell.clients)
}

/// The same by its workload and clients.
pub(crate) fn workload_at(plan: &Plan, workload: &str, clients: u32) -> String {
    format!("{workload} at {}", workers(plan, clients))
}

/// The same with its candidate, if there are several.
pub(crate) fn cell_on(plan: &Plan, of: &CellComparison) -> String {
    match plan.candidates().len() {
        0 | 1 => cell(plan, of),
        _ => format!("{} on {}", cell(plan, of), of.candidate_name),
    }
}

/// The distance of a ratio from 1, without sign.
pub fn distance(ratio: f64) -> f64 {
    (ratio - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_digits_of_its_interval_and_no_negative_zero() {
        let text = |estimate, ci95| microseconds(&Difference { estimate, ci95 });
        let known = text(0.6149, Some((0.4, 0.842)));
        assert_eq!(known, "+0.61 µs/op [+0.40, +0.84]");
        let nothing = text(-0.001, Some((-0.21, 0.2)));
        assert_eq!(nothing, "+0.00 µs/op [-0.21, +0.20]");
        assert_eq!(text(1000.0 / 3.0, None), "+333.33 µs/op");
        assert_eq!(text(0.0, None), "+0 µs/op");
    }

    #[test]
    fn percents_are_short_and_never_a_false_zero() {
        assert_eq!(percent(0.034), "3.4 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(percent(0.000_99), "0.1 %");
        assert_eq!(signed(-0.012), "-1.2 %");
        assert_eq!(signed(0.012), "+1.2 %");
        assert_eq!(
            (threshold(0.03), threshold(0.025), threshold(0.1)),
            ("3 %".into(), "2.5 %".into(), "10 %".into())
        );
        assert_eq!(
            (more(1, "block"), more(12, "block"), more(2, "pass")),
            (
                "1 more block".into(),
                "12 more blocks".into(),
                "2 more passes".into()
            )
        );
    }

    #[test]
    fn a_long_list_counts_its_rest() {
        let names: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        assert_eq!(first_of(&names), "a, b, c, d and 2 more");
        assert_eq!(first_of(&names[..4]), "a, b, c, d");
    }
}
