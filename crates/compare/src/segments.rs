//! Where a line of throughput over clients is linear, grows less, is flat or drops.
//!
//! Growth between two numbers of clients is the exponent b in throughput ~ clients^b: 1 is linear, 0 flat.
//! The fewest segments are told that the intervals allow: a change of slope has to be beyond noise, over all
//! pairs of points together, or else the line goes on as before.

use crate::thresholds::{SEGMENT_ALPHA, SEGMENT_FLAT, SEGMENT_FLAT_WIDEST, SEGMENT_LINEAR};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::student::t_quantile;

/// Throughput at a number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub clients: u32,
    /// Transactions or operations per second.
    pub tps: f64,
    /// Its 95 % interval by Student's t over `samples`; absent where there is none.
    pub ci95: Option<(f64, f64)>,
    /// Values behind the interval: blocks, or loads where it holds between them.
    pub samples: u32,
}

/// How throughput goes on over a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slope {
    /// As clients do, or nearly: at least [`SEGMENT_LINEAR`].
    Linear,
    /// It grows, but less.
    Growing,
    /// It neither grows nor drops beyond ±[`SEGMENT_FLAT`].
    Flat,
    /// More clients get less done.
    Dropping,
    /// The intervals allow both growth and none, or there are none.
    CannotTell,
}

impl Slope {
    const KNOWN: [Self; 4] = [Self::Linear, Self::Growing, Self::Flat, Self::Dropping];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Growing => "growing",
            Self::Flat => "flat",
            Self::Dropping => "dropping",
            Self::CannotTell => "cannot-tell",
        }
    }

    /// Exponents that belong to it.
    fn region(self) -> (f64, f64) {
        match self {
            Self::Linear => (SEGMENT_LINEAR, f64::INFINITY),
            Self::Growing => (SEGMENT_FLAT, SEGMENT_LINEAR),
            Self::Flat => (-SEGMENT_FLAT, SEGMENT_FLAT),
            Self::Dropping => (f64::NEG_INFINITY, -SEGMENT_FLAT),
            Self::CannotTell => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

/// A part of the line with one slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    pub slope: Slope,
    /// The number of clients where it begins: the first that is of it. The first segment begins at the first
    /// point.
    pub from: u32,
    /// The number of clients where it ends.
    pub to: u32,
    /// Throughput at its end relative to that at the end of the segment before; in the first to that at its
    /// beginning.
    pub ratio: f64,
    /// Clients at its end relative to the same point.
    pub clients_ratio: f64,
}

/// The segments of a line, each beginning after the last; none for fewer than two points.
///
/// Shape:  in any order; of several points with the same clients the first counts; points that are no
///         positive number are left out.
/// Source: the fewest segments by dynamic programming such that for each pair of points inside of one the
///         interval of its exponent (Welch's t, Bonferroni over all pairs of the line at
///         [`SEGMENT_ALPHA`]) meets the exponents of its slope; of several such the one nearest to the
///         estimates. So a line that is truly of one slope is broken in at most that share of runs. A slope
///         is named only if the interval over the whole segment has no exponent of the other side of it:
///         growth excludes 0, a drop excludes 0, linear growth excludes what is flat, and flat is within
///         ±[`SEGMENT_FLAT_WIDEST`].
pub fn segments(points: &[Point]) -> Vec<Segment> {
    let line = Line::new(points);
    let last = line.points.len().saturating_sub(1);
    if last == 0 {
        return Vec::new();
    }
    // The best way to each point: fewest segments, then nearest.
    let mut best: Vec<Option<Way>> = vec![Some(Way::default())];
    for end in 1..=last {
        let ways = (0..end).flat_map(|start| {
            let before = best.get(start).cloned().flatten();
            let slopes = Slope::KNOWN.into_iter();
            let line = &line;
            slopes.filter_map(move |slope| {
                let before = before.as_ref()?;
                // Two segments of one slope in a row would be one that the intervals do not allow.
                let misfit = line.misfit(slope, start, end)?;
                Some(before.with(slope, start, end, misfit))
            })
        });
        best.push(ways.min_by(Way::order));
    }
    let Some(way) = best.pop().flatten() else {
        return Vec::new();
    };
    line.told(&way)
}

/// The same in words: `linear to 4, flat to 16, drops from 20 (-12 % at 32)`.
pub fn words(segments: &[Segment]) -> String {
    let last = segments.len().saturating_sub(1);
    let texts = segments.iter().enumerate().map(|(place, segment)| {
        let Segment {
            slope, from, to, ..
        } = segment;
        let change = 100.0 * (segment.ratio - 1.0);
        match slope {
            Slope::Linear if place == last && place > 0 => format!("linear from {from}"),
            Slope::Linear => format!("linear to {to}"),
            Slope::Growing if place == last && place > 0 => {
                format!("grows from {from} ({change:+.0} % at {to})")
            }
            Slope::Growing => format!("grows to {to} ({change:+.0} %)"),
            Slope::Flat if place == last && place > 0 => format!("flat from {from}"),
            Slope::Flat => format!("flat to {to}"),
            Slope::Dropping => format!("drops from {from} ({change:+.0} % at {to})"),
            Slope::CannotTell if segments.len() == 1 => {
                format!("cannot tell ({change:+.0} % at {to})")
            }
            Slope::CannotTell => format!("cannot tell from {from} to {to}"),
        }
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return "cannot tell: one number of clients".to_owned();
    }
    texts.join(", ")
}

/// A way through the points: slopes with their ends.
#[derive(Debug, Clone, PartialEq, Default)]
struct Way {
    parts: Vec<(Slope, usize, usize)>,
    misfit: f64,
}

impl Way {
    fn with(&self, slope: Slope, start: usize, end: usize, misfit: f64) -> Self {
        let mut parts = self.parts.clone();
        parts.push((slope, start, end));
        Self {
            parts,
            misfit: self.misfit + misfit,
        }
    }

    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let size = |way: &Self| way.parts.len();
        let by_size = size(self).cmp(&size(other));
        by_size.then(self.misfit.total_cmp(&other.misfit))
    }
}

/// A point on logarithmic scales.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Log {
    clients: u32,
    x: f64,
    y: f64,
    /// Standard error of `y` and its degrees of freedom, where known.
    error: Option<(f64, f64)>,
}

struct Line {
    points: Vec<Log>,
    /// For each pair of points, by the later and then by the earlier one.
    exponents: Vec<Vec<Exponent>>,
}

/// The exponent between two points: estimate and half of its interval, which is infinite where unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Exponent {
    estimate: f64,
    half: f64,
}

impl Exponent {
    fn meets(self, (low, high): (f64, f64)) -> bool {
        self.estimate + self.half >= low && self.estimate - self.half <= high
    }
}

impl Line {
    fn new(points: &[Point]) -> Self {
        let mut sorted: Vec<Log> = points.iter().filter_map(log).collect();
        sorted.sort_by_key(|point| point.clients);
        sorted.dedup_by_key(|point| point.clients);
        let n = to_f64(count(sorted.len()));
        let pairs = (n * (n - 1.0) / 2.0).max(1.0);
        let level = 1.0 - SEGMENT_ALPHA / 2.0 / pairs;
        let exponents = (0..).zip(&sorted).map(|(end, to)| {
            let before = sorted.iter().take(end);
            before.map(|from| exponent(from, to, level)).collect()
        });
        Self {
            exponents: exponents.collect(),
            points: sorted,
        }
    }

    fn exponent(&self, start: usize, end: usize) -> Option<Exponent> {
        self.exponents.get(end)?.get(start).copied()
    }

    /// How far the steps from `start` to `end` are from a slope; nothing where the intervals exclude it.
    fn misfit(&self, slope: Slope, start: usize, end: usize) -> Option<f64> {
        let region = slope.region();
        let pairs = (start..end).flat_map(|one| (one + 1..=end).map(move |two| (one, two)));
        for (one, two) in pairs {
            if !self.exponent(one, two)?.meets(region) {
                return None;
            }
        }
        let distance = |exponent: Exponent| {
            let away = exponent.estimate.clamp(region.0, region.1) - exponent.estimate;
            away.powi(2)
        };
        let steps = (start..end).filter_map(|one| self.exponent(one, one + 1));
        // Steps say how it goes, the whole what it comes to.
        let whole = self.exponent(start, end)?;
        Some(steps.map(distance).sum::<f64>() + distance(whole))
    }

    fn told(&self, way: &Way) -> Vec<Segment> {
        let told = way.parts.iter().filter_map(|&(slope, start, end)| {
            let (before, to) = (self.points.get(start)?, self.points.get(end)?);
            let first = self.points.get(if start == 0 { 0 } else { start + 1 })?;
            let known = self.is_known(slope, start, end)?;
            Some(Segment {
                slope: if known { slope } else { Slope::CannotTell },
                from: first.clients,
                to: to.clients,
                ratio: (to.y - before.y).exp(),
                clients_ratio: (to.x - before.x).exp(),
            })
        });
        let mut merged: Vec<Segment> = Vec::new();
        for segment in told {
            match merged.last_mut().filter(|last| last.slope == segment.slope) {
                Some(last) => {
                    last.to = segment.to;
                    last.ratio *= segment.ratio;
                    last.clients_ratio *= segment.clients_ratio;
                }
                None => merged.push(segment),
            }
        }
        merged
    }

    /// Whether the interval over a whole segment excludes what its name denies.
    fn is_known(&self, slope: Slope, start: usize, end: usize) -> Option<bool> {
        let (from, to) = (self.points.get(start)?, self.points.get(end)?);
        let whole = exponent(from, to, 1.0 - SEGMENT_ALPHA / 2.0);
        let (low, high) = (whole.estimate - whole.half, whole.estimate + whole.half);
        Some(match slope {
            Slope::Linear => low > SEGMENT_FLAT,
            Slope::Growing => low > 0.0,
            Slope::Flat => high < SEGMENT_FLAT_WIDEST && low > -SEGMENT_FLAT_WIDEST,
            Slope::Dropping => high < 0.0,
            Slope::CannotTell => false,
        })
    }
}

fn log(point: &Point) -> Option<Log> {
    let usable = point.tps.is_finite() && point.tps > 0.0 && point.clients > 0;
    let error = point.ci95.and_then(|(low, high)| {
        let df = f64::from(point.samples.checked_sub(1).filter(|df| *df > 0)?);
        let half = (high / low).ln() / 2.0;
        let known = half.is_finite() && half >= 0.0;
        known.then(|| (half / t_quantile(0.975, df), df))
    });
    usable.then(|| Log {
        clients: point.clients,
        x: f64::from(point.clients).ln(),
        y: point.tps.ln(),
        error,
    })
}

/// The exponent of two points, the first with fewer clients, with this probability below the upper end.
fn exponent(from: &Log, to: &Log, level: f64) -> Exponent {
    let width = to.x - from.x;
    let half = match (from.error, to.error) {
        (Some(one), Some(two)) => welch(one, two, level) / width,
        _ => f64::INFINITY,
    };
    Exponent {
        estimate: (to.y - from.y) / width,
        half,
    }
}

/// Half of the interval of a difference (Welch and Satterthwaite).
fn welch(one: (f64, f64), two: (f64, f64), level: f64) -> f64 {
    let (a, b) = (one.0.powi(2), two.0.powi(2));
    let parts = a.powi(2) / one.1 + b.powi(2) / two.1;
    if parts <= 0.0 {
        return 0.0;
    }
    let df = (a + b).powi(2) / parts;
    t_quantile(level, df) * (a + b).sqrt()
}
