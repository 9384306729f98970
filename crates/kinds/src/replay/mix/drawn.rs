//! Which statement has which number: the same on every server.

use deltabench_model::units::{index, to_f64};
use deltabench_model::work::replay::{ReplaySetup, TimedStatement};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The statements of a setup that a mix has, by their places: those that do the same work on all servers, and
/// can be executed again and again.
pub fn members(setup: &ReplaySetup) -> Vec<usize> {
    let fits = |statement: &TimedStatement| {
        statement.unfit.is_empty() && statement.write.is_none_or(|write| !write.once)
    };
    let statements = setup.statements.iter().enumerate();
    statements
        .filter(|(_, statement)| fits(statement))
        .map(|(place, _)| place)
        .collect()
}

/// Draws statements with their tuples by number, each as often as it was called.
#[derive(Debug)]
pub struct Drawn {
    seed: u64,
    /// Statement among the members, tuple of it, and the share of all up to it.
    up_to: Vec<(usize, usize, f64)>,
}

impl Drawn {
    /// Of these members of a setup.
    pub fn of(setup: &ReplaySetup, members: &[usize], seed: u64) -> Self {
        let mut up_to = Vec::new();
        let mut sum = 0.0;
        let statements = members
            .iter()
            .filter_map(|place| setup.statements.get(*place));
        for (member, statement) in statements.enumerate() {
            let all: f64 = statement.tuples.iter().map(|tuple| tuple.weight).sum();
            let calls = to_f64(statement.calls.max(1));
            for (tuple, timed) in statement.tuples.iter().enumerate() {
                sum += calls * timed.weight / all.max(f64::MIN_POSITIVE);
                up_to.push((member, tuple, sum));
            }
        }
        up_to.iter_mut().for_each(|(_, _, up_to)| *up_to /= sum);
        Self { seed, up_to }
    }

    /// The member and its tuple of this number.
    pub fn number(&self, number: u64) -> (usize, usize) {
        let seed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let drawn: f64 = Xoshiro256PlusPlus::seed_from_u64(seed).random();
        let place = self.up_to.partition_point(|(_, _, up_to)| *up_to <= drawn);
        let last = self.up_to.len().saturating_sub(1);
        let found = self.up_to.get(place.min(last));
        found.map_or((index(0), 0), |(member, tuple, _)| (*member, *tuple))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::budget::tests::setup;
    use deltabench_model::work::replay::TimedWrite;

    #[test]
    fn statements_are_drawn_by_their_calls_and_the_same_again() {
        let mut setup = setup([0.1; 3]);
        setup.statements[0].calls = 60;
        setup.statements[1].calls = 30;
        setup.statements[2].calls = 10;
        let members = members(&setup);
        let drawn = Drawn::of(&setup, &members, 7);
        let mut found = [0_u32; 3];
        for number in 0..10_000 {
            let (member, tuple) = drawn.number(number);
            assert_eq!(
                (member, tuple),
                Drawn::of(&setup, &members, 7).number(number)
            );
            found[member] += 1;
        }
        for (found, expected) in found.into_iter().zip([6000, 3000, 1000]) {
            assert!(found.abs_diff(expected) < 300, "{found} of {expected}");
        }
        let other = Drawn::of(&setup, &members, 8);
        assert!((0..20).any(|number| other.number(number) != drawn.number(number)));
    }

    #[test]
    fn what_differs_or_can_be_done_once_only_is_not_in_it() {
        let mut setup = setup([0.1; 3]);
        setup.statements[0].unfit = vec![(2, "it returns another number of rows".to_owned())];
        setup.statements[1].write = Some(TimedWrite { once: true });
        setup.statements[2].write = Some(TimedWrite { once: false });
        assert_eq!(members(&setup), [2]);
    }
}
