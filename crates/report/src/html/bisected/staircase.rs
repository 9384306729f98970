//! Points across, cost up: what was measured, and where it changed. What was measured in time has a bar for
//! its interval.
//!
//! Shapes say what colours say: a filled dot is measured, a hollow one has the server of another point, a
//! cross could not be measured, a diamond is a culprit. What was not searched is dashed.

use super::super::typeset;
use super::{anchor, class};
use crate::bisected::{Bisected, BisectedLook, percent, words};
use deltabench_model::units::{count, to_f64};
use maud::{Markup, html};

/// Height of the chart, px.
const HEIGHT: &str = "280";
/// Room for marks at the edges, percent of the chart.
const EDGE: (f64, f64) = (3.0, 12.0);
/// Lines across at most.
const LEVELS: f64 = 6.0;

/// The staircase with its key; nothing before both ends are counted.
pub(super) fn section(bisected: &Bisected) -> Markup {
    let scale = Scale::of(bisected);
    let Some(scale) = scale else {
        return html! {};
    };
    let levels = scale.levels();
    html! {
        section #staircase {
            h2 { (bisected.by.title()) }
            div.stairs {
                div.levels aria-hidden="true" {
                    @for level in &levels {
                        span style={ "top:" (place(scale.y(*level))) } { (typeset(&percent(*level))) }
                    }
                }
                svg width="100%" height=(HEIGHT) role="group" aria-label=(spoken(bisected)) {
                    @for level in &levels {
                        @let y = place(scale.y(*level));
                        line.level-line x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    (stairs(bisected, &scale))
                    @for look in &bisected.looks { (mark(bisected, look, &scale)) }
                }
                p.between {
                    span { (words(&bisected.base)) }
                    span { (words(&bisected.candidate)) }
                }
            }
            (key())
        }
    }
}

/// What who hears the page is told of the chart.
fn spoken(bisected: &Bisected) -> String {
    let change = bisected.change.map_or_else(String::new, percent);
    format!(
        "staircase of {} points, {change} in all, {} culprits; each mark leads to its look",
        bisected.points,
        bisected.culprits.len()
    )
}

/// Where points and changes stand, in percent of the chart.
struct Scale {
    last: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(bisected: &Bisected) -> Option<Self> {
        let changes = bisected.looks.iter().flat_map(|look| {
            let ends = look.ci95.map(|(low, high)| [low, high]);
            look.change.into_iter().chain(ends.into_iter().flatten())
        });
        let (low, high) = changes.fold((f64::MAX, f64::MIN), |(low, high), change| {
            (low.min(change), high.max(change))
        });
        (low < high).then(|| Self {
            last: to_f64(count(bisected.points.saturating_sub(1).max(1))),
            low,
            high,
        })
    }

    fn x(&self, number: usize) -> f64 {
        EDGE.0 + (100.0 - 2.0 * EDGE.0) * to_f64(count(number)) / self.last
    }

    /// The highest change is at the top.
    fn y(&self, change: f64) -> f64 {
        EDGE.1 + (100.0 - 2.0 * EDGE.1) * (self.high - change) / (self.high - self.low)
    }

    /// Round changes between the lowest and the highest.
    fn levels(&self) -> Vec<f64> {
        let least = (self.high - self.low) / LEVELS;
        let decade = 10f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * decade);
        let step = steps.into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * decade);
        let mut levels = Vec::new();
        let mut level = (self.low / step).ceil() * step;
        while level <= self.high + step / 1e6 {
            // What is nothing but an error of rounding is 0.
            levels.push(if level.abs() < step / 1e6 { 0.0 } else { level });
            level += step;
        }
        levels
    }
}

fn place(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// The lines between points that were measured.
fn stairs(bisected: &Bisected, scale: &Scale) -> Markup {
    let mut measured: Vec<(usize, f64, &BisectedLook)> = bisected
        .looks
        .iter()
        .filter_map(|look| Some((look.number, look.change?, look)))
        .collect();
    measured.sort_by_key(|(number, ..)| *number);
    html! {
        @for pair in measured.windows(2) {
            @if let [(from, before, _), (to, after, look)] = pair {
                @let (left, right) = (place(scale.x(*from)), place(scale.x(*to)));
                @let (y, end) = (place(scale.y(*before)), place(scale.y(*after)));
                line class=(if to - from > 1 { "passed" } else { "flat" })
                    x1=(left) x2=(right) y1=(y) y2=(y) {}
                line class=(rise(bisected, look)) x1=(right) x2=(right) y1=(y) y2=(end) {}
            }
        }
    }
}

/// What a change at this look is: a culprit's, one that was not searched to its end, or a small one.
fn rise(bisected: &Bisected, look: &BisectedLook) -> String {
    if let Some((_, change)) = culprit(bisected, look) {
        return format!("rise step {}", class(change));
    }
    let mut open = bisected.open.iter();
    match open.any(|open| open.to.target == look.point.target) {
        true => "rise unsearched".to_owned(),
        false => "rise".to_owned(),
    }
}

/// The number and the change of the culprit that a look shows.
fn culprit(bisected: &Bisected, look: &BisectedLook) -> Option<(usize, f64)> {
    let shows = |one: &crate::bisected::Culprit| {
        let last = one.one_of.last();
        last.is_some_and(|last| last.point.target == look.point.target)
    };
    let number = bisected.culprits.iter().position(shows)?;
    Some((number + 1, bisected.culprits.get(number)?.change))
}

fn mark(bisected: &Bisected, look: &BisectedLook, scale: &Scale) -> Markup {
    let culprit = culprit(bisected, look);
    let change = look.change.map_or_else(String::new, percent);
    let what = match look.outcome {
        "counted" | "timed" => change,
        "same" => format!("{change}, the same server as another point"),
        _ => look.skipped.clone().unwrap_or_else(|| "skipped".to_owned()),
    };
    let said = match culprit {
        Some((number, _)) => format!("culprit {number}: {}: {what}", words(&look.point)),
        None => format!("{}: {what}", words(&look.point)),
    };
    let (target, tone) = match culprit {
        Some((number, change)) => (format!("culprit-{number}"), Some(class(change))),
        None => (anchor(look), None),
    };
    // What has no count stands at the foot.
    let y = look.change.map_or(97.0, |change| scale.y(change));
    html! {
        @if let Some((low, high)) = look.ci95 {
            @let x = place(scale.x(look.number));
            line.interval x1=(x) x2=(x) y1=(place(scale.y(high))) y2=(place(scale.y(low))) {}
        }
        a href={ "#" (target) } aria-label=(typeset(&said)) class=[tone] {
            svg x=(place(scale.x(look.number))) y=(place(y)) width="1" height="1" {
                title { (typeset(&said)) }
                circle.around r="12" {}
                @match (culprit, look.outcome) {
                    (Some((number, change)), _) => {
                        path.diamond d="M0 -8L8 0L0 8L-8 0Z" {}
                        // Beyond the end of the step, where no line is.
                        text y=(if change > 0.0 { "-13" } else { "23" }) { (number) }
                    }
                    (None, "counted" | "timed") => circle.dot r="4" {},
                    (None, "same") => circle.dot.hollow r="4" {},
                    _ => path.cross d="M-4 -4L4 4M-4 4L4 -4" {},
                }
            }
        }
    }
}

fn key() -> Markup {
    let shapes = [
        ("measured", html! { circle.dot cx="8" cy="7" r="4" {} }),
        (
            "the same server as another point",
            html! { circle.dot.hollow cx="8" cy="7" r="4" {} },
        ),
        (
            "could not be measured",
            html! { path.cross d="M4 3L12 11M4 11L12 3" {} },
        ),
        ("culprit", html! { path.diamond d="M8 0L15 7L8 14L1 7Z" {} }),
        (
            "points between were not looked at",
            html! { line.passed x1="0" x2="16" y1="7" y2="7" {} },
        ),
    ];
    html! {
        p.legend.stairs-key {
            @for (name, shape) in &shapes {
                span { svg.key width="16" height="14" aria-hidden="true" { (shape) } (name) }
            }
        }
    }
}
