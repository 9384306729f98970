//! Levels as a band: a line with its interval, marks of what happened, and an axis where there is room.

use deltabench_compare::words::signed;
use deltabench_model::units::{count, to_f64};
use deltabench_trend::Estimate;
use maud::{Markup, html};

/// Half of the least span of the axis, as a share: noise is not drawn as large as a difference.
const LEAST: f64 = 0.02;

/// Points that are drawn at most, the newest.
pub(crate) const POINTS: usize = 2000;

/// A value of the band.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Its place on the axis.
    pub(crate) x: f64,
    /// Number of the version.
    pub(crate) version: usize,
    /// Log-ratio to the anchor.
    pub(crate) level: Estimate,
    /// What it is called below the chart, if it is the first or the last.
    pub(crate) name: String,
    /// What is said of it.
    pub(crate) title: String,
    /// Points of one number are joined by a line.
    pub(crate) line: usize,
}

/// Something that happened at a place of the axis.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    /// Class of its colour.
    pub(crate) class: &'static str,
    /// A letter or a number that the list below the chart has, too.
    pub(crate) label: String,
    pub(crate) title: String,
}

impl Mark {
    fn is_note(&self) -> bool {
        self.class == "note"
    }

    /// Whether its label has the place of another one's.
    fn is_beside(&self, other: &Self) -> bool {
        (self.x - other.x).abs() < f64::EPSILON && self.is_note() == other.is_note()
    }
}

/// Width of a label of a mark.
const LABEL: f64 = 14.0;

/// The size of a drawing, and whether it has an axis.
pub(crate) struct Size {
    width: f64,
    height: f64,
    left: f64,
    edge: f64,
    has_axis: bool,
}

/// For a cell of a grid.
pub(crate) const SMALL: Size = Size {
    width: 220.0,
    height: 44.0,
    left: 4.0,
    edge: 5.0,
    has_axis: false,
};
/// For a page.
pub(crate) const LARGE: Size = Size {
    width: 900.0,
    height: 260.0,
    left: 64.0,
    edge: 22.0,
    has_axis: true,
};

/// Where things are in the drawing.
struct Scale<'a> {
    size: &'a Size,
    /// Ends of the axis.
    first: f64,
    last: f64,
    /// Half of the span of ratios.
    far: f64,
}

impl Scale<'_> {
    fn x(&self, value: f64) -> f64 {
        let span = self.last - self.first;
        let share = match span > 0.0 {
            true => (value - self.first) / span,
            false => 0.5,
        };
        let Size {
            width, left, edge, ..
        } = self.size;
        round(left + edge + share * (width - left - 2.0 * edge))
    }

    fn y(&self, log: f64) -> f64 {
        self.y_of(log.exp_m1())
    }

    /// Where a difference is that is given as a share.
    fn y_of(&self, share: f64) -> f64 {
        let Size { height, edge, .. } = self.size;
        let part = (share / self.far).clamp(-1.0, 1.0);
        round(height / 2.0 - part * (height / 2.0 - edge))
    }
}

/// The drawing; nothing where there is nothing to draw.
pub(crate) fn band(points: &[Point], marks: &[Mark], size: &Size, label: &str) -> Markup {
    let points = points
        .get(points.len().saturating_sub(POINTS)..)
        .unwrap_or_default();
    let (Some(first), Some(last)) = (ends(points, f64::min), ends(points, f64::max)) else {
        return html! {};
    };
    let scale = Scale {
        size,
        first,
        last,
        far: far(points),
    };
    let is_inside = |mark: &&Mark| mark.x >= first && mark.x <= last;
    let (wide, high) = (size.width, size.height);
    html! {
        svg.band viewBox=(format!("0 0 {wide} {high}")) role="img" aria-label=(label) {
            @if size.has_axis { (axis(&scale)) }
            @else { line.equal x1="0" x2=(wide) y1=(scale.y(0.0)) y2=(scale.y(0.0)) {} }
            @for run in joined(points) { (joined_band(run, &scale)) }
            @let inside: Vec<&Mark> = marks.iter().filter(is_inside).collect();
            @for (at, mark) in inside.iter().enumerate() {
                // Labels at one place stand beside each other.
                @let before = inside.iter().take(at).filter(|one| one.is_beside(mark));
                (shown(mark, before.count(), &scale))
            }
            @if size.has_axis { (names(points, size)) }
            @if size.has_axis { @for point in points {
                circle cx=(scale.x(point.x)) cy=(scale.y(point.level.value)) r="3" {
                    title { (point.title) }
                }
            } }
        }
    }
}

fn ends(points: &[Point], of: fn(f64, f64) -> f64) -> Option<f64> {
    points.iter().map(|point| point.x).reduce(of)
}

/// The span: of values, and of their intervals as far as these do not hide them.
fn far(points: &[Point]) -> f64 {
    let share = |log: f64| (log.exp() - 1.0).abs();
    let values = points.iter().map(|point| share(point.level.value));
    let most = values.fold(LEAST, f64::max);
    let ends = points
        .iter()
        .flat_map(|point| [point.level.low, point.level.high]);
    let ends = ends
        .filter(|log| log.is_finite())
        .map(share)
        .fold(most, f64::max);
    ends.min(3.0 * most)
}

/// The figures of an axis that reaches this far on both sides. Nothing is lower than -100 %.
pub(crate) fn ticks(far: f64) -> [f64; 3] {
    [far, 0.0, -far.min(1.0)]
}

fn axis(scale: &Scale<'_>) -> Markup {
    let Size { width, left, .. } = scale.size;
    let y = |share: f64| scale.y_of(share);
    html! {
        @for share in ticks(scale.far) {
            line.(if share == 0.0 { "equal" } else { "tick" }) x1=(left) x2=(width)
                y1=(y(share)) y2=(y(share)) {}
            text x=(left - 8.0) y=(round(y(share) + 4.0)) text-anchor="end" {
                @if share == 0.0 { "equal" } @else { (signed(share)) }
            }
        }
    }
}

/// Letters of a name below the chart: two of them have room beside each other.
const LETTERS: usize = 52;

/// A name that may be too long for its place, with the whole of it where somebody points at it.
fn short(name: &str) -> Markup {
    let cut = name.char_indices().nth(LETTERS).map(|(at, _)| at);
    html! {
        @match cut.and_then(|at| name.get(..at)) {
            Some(start) => { title { (name) } (start.trim_end()) "…" },
            None => (name),
        }
    }
}

/// What the first and the last point are called, below them.
fn names(points: &[Point], size: &Size) -> Markup {
    let Size {
        width,
        height,
        left,
        ..
    } = size;
    let ends = points.first().zip(points.last());
    html! {
        @if let Some((first, last)) = ends.filter(|_| points.len() > 1) {
            text x=(left) y=(height - 4.0) { (short(&first.name)) }
            text x=(width - 4.0) y=(height - 4.0) text-anchor="end" {
                (short(&last.name))
            }
        }
    }
}

/// Points of one line that follow each other.
fn joined(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.chunk_by(|one, other| one.line == other.line)
}

fn joined_band(points: &[Point], scale: &Scale<'_>) -> Markup {
    let place = |point: &Point, log: f64| format!("{},{}", scale.x(point.x), scale.y(log));
    let lower = points.iter().map(|point| place(point, point.level.low));
    let upper = points
        .iter()
        .rev()
        .map(|point| place(point, point.level.high));
    let around: Vec<String> = lower.chain(upper).collect();
    let along: Vec<String> = { points.iter() }
        .map(|point| place(point, point.level.value))
        .collect();
    html! {
        @if let [only] = points {
            line.whisker x1=(scale.x(only.x)) x2=(scale.x(only.x))
                y1=(scale.y(only.level.low)) y2=(scale.y(only.level.high)) {}
        } @else {
            polygon.around points=(around.join(" ")) {}
            polyline.along points=(along.join(" ")) {}
        }
    }
}

fn shown(mark: &Mark, before: usize, scale: &Scale<'_>) -> Markup {
    let x = scale.x(mark.x);
    let label_x = round(x + LABEL * place(before));
    let Size {
        height, has_axis, ..
    } = scale.size;
    // Notes have a row of their own: a change and a note may be at one place.
    let row = if mark.is_note() { "28" } else { "12" };
    html! {
        g.mark.(mark.class) {
            title { (mark.title) }
            line x1=(x) x2=(x) y1=(if *has_axis { 16.0 } else { 0.0 }) y2=(height) {}
            @if *has_axis { text x=(label_x) y=(row) text-anchor="middle" { (mark.label) } }
        }
    }
}

/// Places in the order of things.
pub(crate) fn place(at: usize) -> f64 {
    to_f64(count(at))
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, value: f64, line: usize) -> Point {
        Point {
            x,
            version: 0,
            level: Estimate {
                value,
                low: value - 0.01,
                high: value + 0.01,
            },
            name: format!("v{x}"),
            title: String::new(),
            line,
        }
    }

    #[test]
    fn lines_are_not_joined_and_noise_is_not_drawn_large() {
        let points = [
            point(0.0, 0.0, 0),
            point(1.0, 0.001, 0),
            point(2.0, 0.002, 1),
        ];
        let text = band(&points, &[], &LARGE, "levels").into_string();
        assert_eq!(text.matches("<polygon").count(), 1);
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(text.contains(">v0</text>") && text.contains(">v2</text>"));
        assert!(
            text.contains("+2.0 %") && text.contains("class=\"whisker\""),
            "{text}"
        );
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn a_version_twice_as_fast_has_an_axis_that_ends_at_minus_100() {
        let points = [point(0.0, 0.0, 0), point(1.0, 2.2_f64.ln(), 0)];
        let text = band(&points, &[], &LARGE, "levels").into_string();
        assert!(!text.contains("NaN"), "{text}");
        assert!(text.contains(">-100.0 %</text>"), "{text}");
        // The lower figure is below the line of equal.
        let scale = Scale {
            size: &LARGE,
            first: 0.0,
            last: 1.0,
            far: far(&points),
        };
        let [high, equal, low] = ticks(scale.far).map(|share| scale.y_of(share));
        assert!(high < equal && equal < low, "{high} {equal} {low}");
        assert!((equal - scale.y(0.0)).abs() < f64::EPSILON);
    }

    #[test]
    fn long_names_do_not_lie_on_each_other() {
        let long = |x: f64| Point {
            name: format!("postgres:18.6 ({})", "ü = off, ".repeat(60)),
            ..point(x, 0.0, 0)
        };
        let text = band(&[long(0.0), long(1.0)], &[], &LARGE, "levels").into_string();
        let shown: Vec<&str> = { text.split("</title>").skip(1) }
            .filter_map(|rest| rest.split_once("</text>").map(|(name, _)| name))
            .filter(|name| name.starts_with("postgres"))
            .collect();
        assert_eq!(shown.len(), 2, "{text}");
        for name in shown {
            assert!(name.chars().count() <= LETTERS + 1 && name.ends_with('…'));
        }
        assert!(text.contains(&"ü = off, ".repeat(60)), "{text}");
    }

    #[test]
    fn labels_of_one_place_stand_beside_each_other() {
        let mark = |class, label: &str| Mark {
            x: 1.0,
            class,
            label: label.to_owned(),
            title: String::new(),
        };
        let points = [point(0.0, 0.0, 0), point(2.0, 0.0, 0)];
        let marks = [mark("note", "1"), mark("worse", "▼"), mark("note", "2")];
        let text = band(&points, &marks, &LARGE, "").into_string();
        let label = |x: f64, row: u32, label: &str| {
            format!("<text x=\"{x}\" y=\"{row}\" text-anchor=\"middle\">{label}</text>")
        };
        for label in [
            label(482.0, 28, "1"),
            label(482.0, 12, "▼"),
            label(496.0, 28, "2"),
        ] {
            assert!(text.contains(&label), "{label}: {text}");
        }
    }

    #[test]
    fn one_wide_interval_does_not_hide_the_others() {
        let mut points = vec![point(0.0, 0.0, 0), point(1.0, -0.05, 0)];
        points.push(Point {
            level: Estimate {
                value: 0.0,
                low: -2.0,
                high: f64::INFINITY,
            },
            ..point(2.0, 0.0, 0)
        });
        let text = band(&points, &[], &LARGE, "levels").into_string();
        assert!(text.contains("+14.6 %"), "{text}");
        assert!(!text.contains("inf") && band(&[], &[], &SMALL, "").into_string().is_empty());
    }
}
