//! Ratios of one base over the runs that measured them.

use super::Point;
use crate::band;
use crate::frame::class;
use deltabench_compare::words::signed;
use deltabench_model::units::{count, to_f64};
use deltabench_report::words;
use maud::{Markup, html};

/// Size of the drawing.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Room for the figures of the axis on the left, and above and below.
const LEFT: f64 = 64.0;
const EDGE: f64 = 16.0;
/// Half of the least span of the axis, as a share: noise is not drawn as large as a difference.
const LEAST: f64 = 0.02;

/// A dot with its interval for each point, in the order of the runs; nothing for a single one.
pub(super) fn chart(points: &[&Point<'_>]) -> Markup {
    let far = { points.iter() }
        .flat_map(|point| {
            let (low, high) = point.outcome.ci95.unwrap_or((1.0, 1.0));
            [Some(low), Some(high), point.outcome.ratio]
        })
        .flatten()
        .filter(|value| value.is_finite())
        .map(|value| (value - 1.0).abs())
        .fold(LEAST, f64::max);
    let y = |ratio: f64| HEIGHT / 2.0 - (ratio - 1.0) / far * (HEIGHT / 2.0 - EDGE);
    let step = (WIDTH - LEFT - EDGE) / to_f64(count(points.len())).max(1.0);
    let x = |place: usize| LEFT + (to_f64(count(place)) + 0.5) * step;
    if points.len() < 2 {
        return html! {};
    }
    html! {
        figure.plot.chart-of {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
                aria-label="ratio of each run to its base, in the order of the table from below" {
                @for share in band::ticks(far) {
                    line.(if share == 0.0 { "equal" } else { "tick" }) x1=(LEFT) x2=(WIDTH)
                        y1=(round(y(1.0 + share))) y2=(round(y(1.0 + share))) {}
                    text x=(LEFT - 8.0) y=(round(y(1.0 + share) + 4.0)) text-anchor="end" {
                        @if share == 0.0 { "equal" } @else { (signed(share)) }
                    }
                }
                @for (place, point) in points.iter().enumerate() {
                    (dot(point, round(x(place)), y))
                }
            }
            figcaption.legend {
                "Oldest run on the left. The dot is the ratio of a run, the line its interval in that hour."
            }
        }
    }
}

fn dot(point: &Point<'_>, x: f64, y: impl Fn(f64) -> f64) -> Markup {
    let outcome = point.outcome;
    let Some(ratio) = outcome.ratio else {
        return html! {};
    };
    let candidate = point.entry.server(outcome.candidate);
    let name = candidate.map_or("", |server| server.name.as_str());
    let when = words::date(point.entry.started_unix_ms);
    html! {
        g class=(if outcome.withdrawn { "gone" } else { class(outcome) }) {
            title { (name) " " (outcome.change) ", " (when) }
            @if let Some((low, high)) = outcome.ci95 {
                line.whisker x1=(x) x2=(x) y1=(round(y(low))) y2=(round(y(high))) {}
            }
            circle cx=(x) cy=(round(y(ratio))) r="3.5" {}
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
