//! The mean of values of which no more were taken because their interval lay within a band.
//!
//! What stops early for being small is what happened to look small, so its interval holds the truth too
//! seldom: the truth lies farther out. Each end here is that of the test that knows this: a truth is left out
//! only if a value as near to the middle is unlikely *among runs that stop there*. Where such runs are nearly
//! all, that is the plain interval. Where they are few the test leaves nothing out, and the interval that
//! decided, which lies within the band, is the limit: it is wrong no more often than its look may be. An
//! interval that decided at a level below the plain one's is no such limit: then the plain one stays.

use crate::Interval;
use crate::chi_square::sd_at_most;
use crate::normal::quick_tail;
use crate::number::real;
use crate::skewed::SkewedMean;
use crate::student::t_quantile;

/// The sd by which the chance to stop is known is one that the true one exceeds with one less this
/// probability: what stops early has an sd that happened to look small, too.
const SD_LEVEL: f64 = 0.8;

/// What stopped the measurement: the interval at `level` lay within ±`half`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinBand {
    /// Level of the interval that decided.
    pub level: f64,
    /// Half-width of the band, around zero.
    pub half: f64,
}

impl WithinBand {
    /// Whether a mean stops here.
    pub fn stops(&self, mean: &SkewedMean) -> bool {
        let decided = mean.interval(self.level);
        decided.low > -self.half && decided.high < self.half
    }

    /// The two-sided interval for a mean that stopped here: no narrower than the plain one, and within the
    /// band if that decides at a higher level. The plain one for a mean that did not stop, and if the band
    /// decides at no higher level; that one may reach beyond the band.
    ///
    /// Shape:  `level` between 0 and 1.
    /// Source: conditional inference after a stop: Strickland & Casella 2003, "Conditional inference
    ///         following group sequential testing", Biometrical Journal 45; the limit is the repeated
    ///         confidence interval of the look, Jennison & Turnbull 1989, J. R. Statist. Soc. B 51. The mean
    ///         is normal, the sd independent of it and known as its upper limit.
    pub fn interval(&self, mean: &SkewedMean, level: f64) -> Interval {
        let plain = mean.interval(level);
        if self.level <= level || !self.stops(mean) || mean.error() <= 0.0 {
            return plain;
        }
        let limit = mean.interval(self.level);
        let chance = Chance::new(self, mean);
        let tail = (1.0 - level) / 2.0;
        let low = end(plain.low, limit.low, |truth| {
            mean.shifted(-truth).p_above() >= tail * chance.of(truth)
        });
        let high = end(plain.high, limit.high, |truth| {
            mean.shifted(-truth).mirrored().p_above() >= tail * chance.of(truth)
        });
        Interval { low, high }
    }
}

/// How likely as many normal values stop at a band.
struct Chance {
    half: f64,
    /// Standard error of their mean.
    error: f64,
    /// Half-width of the interval that decides, for each estimate of that error, and how often it comes.
    widths: Vec<(f64, f64)>,
}

impl Chance {
    fn new(band: &WithinBand, mean: &SkewedMean) -> Self {
        let df = mean.df();
        let error = sd_at_most(mean.error(), df, SD_LEVEL);
        let t = t_quantile(0.5 + band.level / 2.0, df);
        let most = 1.0 + FAR / (2.0 * df).sqrt();
        // The estimate over the true error is the root of a chi-square over its degrees of freedom.
        let weight =
            |found: f64| ((df - 1.0) * found.ln() + df * (1.0 - found * found) / 2.0).exp();
        let found = (1..=STEPS).map(|step| most * real(step) / real(STEPS));
        let all: f64 = found.clone().map(weight).sum();
        Self {
            half: band.half,
            error,
            widths: found
                .map(|found| (t * found * error, weight(found) / all))
                .collect(),
        }
    }

    /// With this mean.
    fn of(&self, truth: f64) -> f64 {
        let inside = |(width, weight): &(f64, f64)| {
            let room = self.half - width;
            let outside =
                quick_tail((room - truth) / self.error) + quick_tail((room + truth) / self.error);
            if room > 0.0 {
                weight * (1.0 - outside)
            } else {
                0.0
            }
        };
        self.widths.iter().map(inside).sum()
    }
}

/// Steps of the sum over estimated errors.
const STEPS: usize = 48;

/// Standard deviations of an estimated error beyond which hardly any is.
const FAR: f64 = 4.5;

/// The first truth from `near` on towards `far` that is not held; `far` if all are.
fn end(near: f64, far: f64, held: impl Fn(f64) -> bool) -> f64 {
    const PARTS: usize = 24;
    let at = |part: usize| near + (far - near) * real(part) / real(PARTS);
    let Some(out) = (0..=PARTS).find(|part| !held(at(*part))) else {
        return far;
    };
    if out == 0 {
        return near;
    }
    let (mut inside, mut outside) = (at(out - 1), at(out));
    for _ in 0..20 {
        let middle = f64::midpoint(inside, outside);
        if held(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAND: WithinBand = WithinBand {
        level: 0.994,
        half: 0.03,
    };

    fn mean(centre: f64, error: f64) -> SkewedMean {
        SkewedMean::assumed(centre, error, 5.0, 0.0)
    }

    #[test]
    fn what_stops_in_any_case_has_the_plain_interval() {
        let found = mean(0.001, 0.001);
        let (ours, plain) = (BAND.interval(&found, 0.95), found.interval(0.95));
        assert!((ours.low - plain.low).abs() < 1e-5 && (ours.high - plain.high).abs() < 1e-5);
    }

    #[test]
    fn what_stops_seldom_is_as_wide_as_what_decided_and_within_the_band() {
        let found = mean(-0.008, 0.0045);
        assert!(BAND.stops(&found));
        let (ours, plain) = (BAND.interval(&found, 0.95), found.interval(0.95));
        let limit = found.interval(BAND.level);
        assert!(ours.low < plain.low && ours.high >= plain.high);
        assert!(ours.low >= limit.low && ours.low > -BAND.half && ours.high < BAND.half);
        assert!(
            ours.low < (plain.low + limit.low) / 2.0,
            "{ours:?} {limit:?}"
        );
    }

    #[test]
    fn a_mirrored_mean_has_the_mirrored_interval() {
        let skewed = |sign: f64| SkewedMean::assumed(sign * 0.005, 0.0045, 5.0, sign * 0.3);
        let (one, other) = (
            BAND.interval(&skewed(1.0), 0.95),
            BAND.interval(&skewed(-1.0), 0.95),
        );
        assert!((one.low + other.high).abs() < 1e-9 && (one.high + other.low).abs() < 1e-9);
    }

    #[test]
    fn what_did_not_stop_has_the_plain_interval() {
        for found in [mean(-0.02, 0.0045), mean(0.0, 0.02), mean(0.001, 0.0)] {
            assert_eq!(BAND.interval(&found, 0.95), found.interval(0.95));
        }
    }

    #[test]
    fn a_band_that_decides_at_a_lower_level_leaves_the_plain_interval() {
        for level in [0.93, 0.949, 0.95] {
            let band = WithinBand { level, ..BAND };
            for found in [mean(-0.008, 0.0045), mean(0.0, 0.001)] {
                assert!(band.stops(&found), "{level} {found:?}");
                assert_eq!(band.interval(&found, 0.95), found.interval(0.95));
            }
        }
        // It may reach beyond the band, as at a last look.
        let (band, near) = (
            WithinBand {
                level: 0.93,
                ..BAND
            },
            mean(-0.0185, 0.0049),
        );
        assert!(band.stops(&near) && band.interval(&near, 0.95).low < -BAND.half);
    }

    #[test]
    fn the_farther_out_the_seldomer_it_stops() {
        let found = mean(0.0, 0.004);
        let chance = Chance::new(&BAND, &found);
        assert!(chance.of(0.0) > chance.of(0.01) && chance.of(0.01) > chance.of(0.02));
        assert!((chance.of(0.01) - chance.of(-0.01)).abs() < 1e-12);
        let quiet = Chance::new(&BAND, &mean(0.0, 0.0005));
        assert!((quiet.of(0.0) - 1.0).abs() < 1e-6, "{}", quiet.of(0.0));
        assert!(quiet.of(0.04) < 1e-6);
    }
}
