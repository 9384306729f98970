//! What sampling costs, found out before anything is sampled.

/// More than this of an operation's CPU, and the rate is halved: samples then say too much about themselves.
const DEAR: f64 = 0.05;

/// More than this even at [`RATE_MIN`], and the host cannot be sampled.
const UNFIT: f64 = 0.10;

/// No rate below this: a profile would take hours.
const RATE_MIN: u32 = 250;

/// CPU per operation of slices with and without the event, taken in turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostGuard {
    pub with: Vec<f64>,
    pub without: Vec<f64>,
}

/// What follows from the cost of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateAdvice {
    Keep(u32),
    /// Try again at this rate.
    Halve(u32),
    /// Do not sample here.
    Unfit,
}

impl CostGuard {
    /// Slices of each kind that are enough.
    pub const SLICES: usize = 4;

    /// What the event adds to the CPU of an operation, as a share of it: medians against each other, so that
    /// one disturbed slice on each side does no harm. Absent before both kinds have been seen.
    pub fn cost(&self) -> Option<f64> {
        let (with, without) = (middle(&self.with)?, middle(&self.without)?);
        (without > 0.0).then(|| with / without - 1.0)
    }

    /// What follows for this rate; absent before both kinds have been seen.
    pub fn advice(&self, rate: u32) -> Option<RateAdvice> {
        let cost = self.cost()?;
        Some(if cost <= DEAR || (rate <= RATE_MIN && cost <= UNFIT) {
            RateAdvice::Keep(rate)
        } else if rate > RATE_MIN {
            RateAdvice::Halve((rate / 2).max(RATE_MIN))
        } else {
            RateAdvice::Unfit
        })
    }
}

/// The middle value, or the mean of the middle two.
fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(with: f64) -> CostGuard {
        CostGuard {
            with: vec![with, with, with, 90.0],
            without: vec![10.0, 10.0, 70.0, 10.0],
        }
    }

    #[test]
    fn a_dear_rate_is_halved_down_to_the_least_and_then_refused() {
        assert_eq!(guard(10.4).advice(997), Some(RateAdvice::Keep(997)));
        assert_eq!(guard(10.6).advice(997), Some(RateAdvice::Halve(498)));
        assert_eq!(guard(10.6).advice(498), Some(RateAdvice::Halve(250)));
        assert_eq!(guard(10.9).advice(250), Some(RateAdvice::Keep(250)));
        assert_eq!(guard(11.1).advice(250), Some(RateAdvice::Unfit));
        assert_eq!(guard(15.0).advice(997), Some(RateAdvice::Halve(498)));
    }

    #[test]
    fn nothing_follows_from_nothing() {
        assert_eq!(CostGuard::default().advice(997), None);
        assert!((guard(10.5).cost().unwrap() - 0.05).abs() < 1e-9);
    }
}
