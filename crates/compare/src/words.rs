//! Reasons in words, with percent figures.

use deltabench_model::plan::Plan;

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

/// `1 more block`, `12 more blocks`.
pub fn more_blocks(number: usize) -> String {
    if number == 1 {
        "1 more block".to_owned()
    } else {
        format!("{number} more blocks")
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

/// The distance of a ratio from 1, without sign.
pub fn distance(ratio: f64) -> f64 {
    (ratio - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (more_blocks(1), more_blocks(12)),
            ("1 more block".into(), "12 more blocks".into())
        );
    }
}
