//! Expressions: trees, made by [`super::parser`], and their value.

use super::function::{Function, MOST_ARGUMENTS};
use super::value::{Fault, Value};
use crate::seed::Random;

/// An expression of `\set`, `\if` or `\elif`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    /// The value of this variable.
    Variable(usize),
    /// A function of arguments that are all computed first.
    Call(Function, Box<[Expression]>),
    /// `and`: the right side is computed only if the left is true.
    And(Box<[Expression; 2]>),
    /// `or`: the right side is computed only if the left is false.
    Or(Box<[Expression; 2]>),
    /// `case`: conditions and values in turn, and at last the value if none holds.
    Case(Box<[(Expression, Expression)]>, Box<Expression>),
}

/// What variables hold while an expression is computed.
pub(crate) trait Scope {
    /// The value of a variable.
    ///
    /// Errors: it was never set, or its text is no value.
    fn value(&self, variable: usize) -> Result<Value, Fault>;
}

impl Expression {
    /// What it comes to.
    #[inline]
    pub(crate) fn evaluate(&self, scope: &impl Scope, random: &mut Random) -> Result<Value, Fault> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(variable) => scope.value(*variable),
            Self::Call(function, arguments) => match &**arguments {
                [one] => function.call(&[one.evaluate(scope, random)?], random),
                [one, two] => {
                    let one = one.evaluate(scope, random)?;
                    let two = two.evaluate(scope, random)?;
                    function.call(&[one, two], random)
                }
                many => {
                    let mut values = [Value::Null; MOST_ARGUMENTS];
                    for (place, argument) in values.iter_mut().zip(many) {
                        *place = argument.evaluate(scope, random)?;
                    }
                    let values = values.get(..many.len()).unwrap_or_default();
                    function.call(values, random)
                }
            },
            Self::And(sides) => Self::both(sides, false, scope, random),
            Self::Or(sides) => Self::both(sides, true, scope, random),
            Self::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if condition.evaluate(scope, random)?.truth() {
                        return value.evaluate(scope, random);
                    }
                }
                otherwise.evaluate(scope, random)
            }
        }
    }

    /// `and` or `or`, of which the left side alone decides if it is `decides`. A null on the left makes null
    /// of both, as in pgbench and unlike SQL.
    fn both(
        sides: &[Self; 2],
        decides: bool,
        scope: &impl Scope,
        random: &mut Random,
    ) -> Result<Value, Fault> {
        let [left, right] = sides;
        let left = left.evaluate(scope, random)?;
        if left == Value::Null || left.boolean()? == decides {
            return Ok(left);
        }
        match right.evaluate(scope, random)? {
            Value::Null => Ok(Value::Null),
            right => Ok(Value::Boolean(right.boolean()?)),
        }
    }

    /// The same expression with what is always the same computed, as far as it can be; `known` says which
    /// variables never change.
    pub(crate) fn fold(self, known: &impl Fn(usize) -> Option<Value>) -> Self {
        let all = |parts: Box<[Self]>| -> Box<[Self]> {
            parts.into_iter().map(|part| part.fold(known)).collect()
        };
        let two = |sides: Box<[Self; 2]>| Box::new((*sides).map(|side| side.fold(known)));
        let (folded, pure) = match self {
            Self::Variable(variable) => {
                return known(variable).map_or(Self::Variable(variable), Self::Constant);
            }
            Self::Call(function, arguments) => {
                (Self::Call(function, all(arguments)), function.is_pure())
            }
            Self::And(sides) => (Self::And(two(sides)), true),
            Self::Or(sides) => (Self::Or(two(sides)), true),
            Self::Case(branches, otherwise) => {
                let branches = branches.into_iter();
                let branches = branches.map(|(when, then)| (when.fold(known), then.fold(known)));
                let otherwise = Box::new(otherwise.fold(known));
                (Self::Case(branches.collect(), otherwise), true)
            }
            constant @ Self::Constant(_) => return constant,
        };
        if pure && folded.parts_are_constant() {
            // No variable and nothing random is in it; what fails is left to fail when it is its turn.
            let mut random = crate::seed::stream(0, &[]);
            if let Ok(value) = folded.evaluate(&Nothing, &mut random) {
                return Self::Constant(value);
            }
        }
        folded
    }

    fn parts_are_constant(&self) -> bool {
        let constant = |part: &Self| matches!(part, Self::Constant(_));
        match self {
            Self::Constant(_) => true,
            Self::Variable(_) => false,
            Self::Call(_, arguments) => arguments.iter().all(constant),
            Self::And(sides) | Self::Or(sides) => sides.iter().all(constant),
            Self::Case(branches, otherwise) => {
                let branch = |(when, then): &(Self, Self)| constant(when) && constant(then);
                branches.iter().all(branch) && constant(otherwise)
            }
        }
    }
}

/// A scope without variables.
struct Nothing;

impl Scope for Nothing {
    fn value(&self, _: usize) -> Result<Value, Fault> {
        Err("no variable is known".to_owned())
    }
}
