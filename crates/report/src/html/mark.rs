//! Marks and lines of the plots.

use super::{class, percent};
use crate::axis::{position, ticks};
use crate::words;
use deltabench_compare::comparison::{Ratio, Verdict};
use maud::{Markup, html};

/// The placebo's mark.
pub(super) const DIAMOND: &str = "M-4 0L0-4L4 0L0 4Z";

/// The mark of a mean.
pub(super) const MEAN: &str = "M-7 0L0-5L7 0L0 5Z";

/// Ends of what goes on beyond the axis.
const LEFT: &str = "M5-5L-2 0L5 5";
const RIGHT: &str = "M-5-5L2 0L-5 5";

/// The background of a plot: ticks, the band of ±δ if there is one, the placebo's band, the line at equal.
pub(super) fn background(limit: f64, delta: Option<f64>, placebo: Option<&Ratio>) -> Markup {
    html! {
        @if let Some(delta) = delta { (band("delta", band_between(delta), limit)) }
        @if let Some(ends) = placebo.and_then(words::ci95) { (band("placebo", ends, limit)) }
        @for tick in ticks(limit) { (vertical("tick", tick, limit)) }
        (vertical("equal", 1.0, limit))
    }
}

/// The ends of the band of ±δ: the same factor either way.
pub(super) fn band_between(delta: f64) -> (f64, f64) {
    (1.0 / (1.0 + delta), 1.0 + delta)
}

fn band(class: &str, (low, high): (f64, f64), limit: f64) -> Markup {
    let (from, to) = (position(low, limit), position(high, limit));
    html! { rect class=(class) x=(percent(from)) width=(percent(to - from)) y="0" height="100%" {} }
}

fn vertical(class: &str, ratio: f64, limit: f64) -> Markup {
    let x = percent(position(ratio, limit));
    html! { line class=(class) x1=(x) x2=(x) y1="0" y2="100%" {} }
}

/// An interval with its estimate; the mark's shape says the verdict, arrows say that the axis is too short.
pub(super) fn interval(ratio: &Ratio, limit: f64, verdict: Verdict, y: u32) -> Markup {
    let (low, high) = words::ci95(ratio).unwrap_or((ratio.estimate, ratio.estimate));
    let (from, to) = (
        percent(position(low, limit)),
        percent(position(high, limit)),
    );
    html! {
        g class=(class(verdict)) {
            line.ci x1=(from) x2=(to) y1=(y) y2=(y) {}
            (at(&from, y, if low < 1.0 - limit { LEFT } else { "M0-5V5" }, "cap"))
            (at(&to, y, if high > 1.0 + limit { RIGHT } else { "M0-5V5" }, "cap"))
            (at(&percent(position(ratio.estimate, limit)), y, shape(verdict), "mark"))
        }
    }
}

/// The mean of several cells: a wide diamond on its interval.
pub(super) fn mean(ratio: &Ratio, limit: f64, y: u32) -> Markup {
    let (low, high) = words::ci95(ratio).unwrap_or((ratio.estimate, ratio.estimate));
    let (from, to) = (
        percent(position(low, limit)),
        percent(position(high, limit)),
    );
    html! {
        g.same {
            line.ci x1=(from) x2=(to) y1=(y) y2=(y) {}
            (at(&from, y, if low < 1.0 - limit { LEFT } else { "M0-4V4" }, "cap"))
            (at(&to, y, if high > 1.0 + limit { RIGHT } else { "M0-4V4" }, "cap"))
            (at(&percent(position(ratio.estimate, limit)), y, MEAN, "mark"))
        }
    }
}

/// The placebo's interval in the same cell: thin, with a hollow diamond.
pub(super) fn placebo(ratio: &Ratio, limit: f64, y: u32) -> Markup {
    let (low, high) = words::ci95(ratio).unwrap_or((ratio.estimate, ratio.estimate));
    let (from, to) = (
        percent(position(low, limit)),
        percent(position(high, limit)),
    );
    html! {
        g.nothing {
            line.ci x1=(from) x2=(to) y1=(y) y2=(y) {}
            @if low < 1.0 - limit { (at(&from, y, LEFT, "cap")) }
            @if high > 1.0 + limit { (at(&to, y, RIGHT, "cap")) }
            (at(&percent(position(ratio.estimate, limit)), y, DIAMOND, "mark"))
        }
    }
}

/// A small figure at a place given in percent: an inner picture that may draw outside itself.
pub(super) fn at(x: &str, y: u32, path: &str, class: &str) -> Markup {
    html! { svg x=(x) y=(y) overflow="visible" { path class=(class) d=(path) {} } }
}

/// Down for worse, up for better, a dot for equal, a ring for open, a cross for unfit.
pub(super) fn shape(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "M-6-5H6L0 6Z",
        Verdict::Improvement => "M-6 5H6L0-6Z",
        Verdict::NoChange | Verdict::Inconclusive => "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
        Verdict::Unfit => "M-4-4L4 4M-4 4L4-4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::PreEscaped;

    #[test]
    fn what_goes_on_beyond_the_axis_has_an_arrow_whoever_it_is() {
        let ratio = Ratio {
            estimate: 1.01,
            ci95: Some((0.97, 1.4)),
            ci90: None,
        };
        let drawn = |limit: f64| {
            [
                interval(&ratio, limit, Verdict::Inconclusive, 14),
                mean(&ratio, limit, 12),
                placebo(&ratio, limit, 30),
            ]
            .map(PreEscaped::into_string)
        };
        for text in drawn(0.1) {
            assert!(text.contains(RIGHT) && !text.contains(LEFT), "{text}");
        }
        for text in drawn(0.4) {
            assert!(!text.contains(RIGHT) && !text.contains(LEFT), "{text}");
        }
        for text in drawn(0.02) {
            assert!(text.contains(RIGHT) && text.contains(LEFT), "{text}");
        }
    }
}
