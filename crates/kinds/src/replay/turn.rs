//! What a server executes in its turn of a round: as much as every other, and what counts at the same place.
//!
//! A candidate with the plans of the base executes everything with them, too, and finds its caches warmer for
//! that. So the others execute it a second time as well.

use deltabench_model::units::count;
use deltabench_model::work::replay::TimedStatement;

/// A part of a turn: all tuples of a slice, or one of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// With the server's own plans, which counts.
    Own,
    /// With those of the base, in a session for that.
    OldPlan,
    /// With its own plans, which counts nowhere.
    Beside,
}

/// How many parts a turn has.
pub fn parts_of_turn(statement: &TimedStatement) -> u64 {
    count(turn(statement, false, 0).len())
}

/// The parts of a turn, in their order: what counts is first in one round and last in the next.
/// `has_old_plan` says whether the server has a session with the plans of the base.
pub fn turn(statement: &TimedStatement, has_old_plan: bool, round: u32) -> Vec<Part> {
    if statement.old_plans.is_empty() {
        return vec![Part::Own];
    }
    let other = match has_old_plan {
        true => Part::OldPlan,
        false => Part::Beside,
    };
    match round.is_multiple_of(2) {
        true => vec![Part::Own, other],
        false => vec![other, Part::Own],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::budget::tests::{setup, with_old_plan};

    #[test]
    fn all_servers_have_executed_as_much_before_what_counts() {
        let mut statement = setup([0.1; 3]).statements.remove(0);
        assert_eq!(turn(&statement, false, 1), [Part::Own]);
        with_old_plan(&mut statement);
        let own = |has_old_plan: bool, round: u32| {
            let parts = turn(&statement, has_old_plan, round);
            assert_eq!(count(parts.len()), parts_of_turn(&statement));
            parts.iter().position(|part| *part == Part::Own).unwrap()
        };
        for round in 0..4 {
            // A candidate, and the base.
            assert_eq!(own(true, round), own(false, round));
        }
        assert_eq!((own(true, 0), own(true, 1)), (0, 1));
    }
}
