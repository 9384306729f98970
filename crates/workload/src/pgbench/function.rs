//! Functions and operators, and what they come to.

use super::hash::{fnv1a, murmur2, permute};
use super::random::{MAX_ZIPFIAN, MIN_GAUSSIAN, MIN_ZIPFIAN, exponential, gaussian, zipfian};
use super::value::{Fault, Value};
use crate::seed::{Random, uniform};

/// What a call computes from its arguments. `and`, `or` and `case` are not here: they leave arguments out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// What a function is called, and the fewest and most arguments it takes.
pub(crate) const NAMED: [(&str, Function, usize, usize); 21] = [
    ("abs", Function::Abs, 1, 1),
    ("debug", Function::Debug, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, MOST_ARGUMENTS),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, MOST_ARGUMENTS),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// Arguments of one call, as in pgbench.
pub(crate) const MOST_ARGUMENTS: usize = 16;

impl Function {
    /// Whether the same arguments give the same value.
    pub(crate) fn is_pure(self) -> bool {
        !matches!(
            self,
            Self::Random
                | Self::RandomExponential
                | Self::RandomGaussian
                | Self::RandomZipfian
                | Self::Debug
        )
    }

    /// Whether a last argument that is left out is the variable `default_seed`.
    pub(crate) fn is_seeded(self) -> bool {
        matches!(self, Self::HashFnv1a | Self::HashMurmur2 | Self::Permute)
    }

    /// What it comes to; null if an argument is, but for `is` and `debug`.
    #[inline]
    pub(crate) fn call(self, arguments: &[Value], random: &mut Random) -> Result<Value, Fault> {
        let passes_null = matches!(self, Self::Is | Self::Debug);
        if !passes_null && arguments.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        match *arguments {
            [] => Ok(Value::Double(std::f64::consts::PI)),
            [first, second] if self == Self::Random => drawn(random, first, second),
            [first] if !self.takes_any_number() => self.of_one(first),
            [first, second] if !self.takes_any_number() => self.of_two(first, second),
            [first, second, third] if !self.takes_any_number() => {
                self.of_three(first, second, third, random)
            }
            _ => self.of_many(arguments),
        }
    }

    fn takes_any_number(self) -> bool {
        matches!(self, Self::Least | Self::Greatest)
    }

    fn of_one(self, value: Value) -> Result<Value, Fault> {
        match self {
            Self::Not => Ok(Value::Boolean(!value.boolean()?)),
            Self::Abs => match value {
                Value::Integer(value) => value
                    .checked_abs()
                    .map(Value::Integer)
                    .ok_or_else(|| out_of_range("abs")),
                other => Ok(Value::Double(other.double()?.abs())),
            },
            Self::Int => Ok(Value::Integer(value.integer()?)),
            Self::Double => Ok(Value::Double(value.double()?)),
            Self::Sqrt => Ok(Value::Double(value.double()?.sqrt())),
            Self::Ln => Ok(Value::Double(value.double()?.ln())),
            Self::Exp => Ok(Value::Double(value.double()?.exp())),
            // Debug: pgbench prints it, which a measured client must not.
            _ => Ok(value),
        }
    }

    fn of_two(self, left: Value, right: Value) -> Result<Value, Fault> {
        match self {
            Self::Is => Ok(Value::Boolean(is(left, right))),
            Self::Power => Ok(Value::Double(left.double()?.powf(right.double()?))),
            Self::BitAnd | Self::BitOr | Self::BitXor | Self::ShiftLeft | Self::ShiftRight => Ok(
                Value::Integer(self.of_bits(left.integer()?, right.integer()?)),
            ),
            Self::HashFnv1a => Ok(Value::Integer(fnv1a(left.integer()?, right.integer()?))),
            Self::HashMurmur2 => Ok(Value::Integer(murmur2(left.integer()?, right.integer()?))),
            Self::Modulo => self.of_integers(left.integer()?, right.integer()?),
            _ if is_double(left) || is_double(right) => {
                Ok(self.of_doubles(left.double()?, right.double()?))
            }
            _ => self.of_integers(left.integer()?, right.integer()?),
        }
    }

    fn of_doubles(self, left: f64, right: f64) -> Value {
        // Comparisons of doubles are what the script asks for.
        #[allow(clippy::float_cmp)]
        match self {
            Self::Add => Value::Double(left + right),
            Self::Subtract => Value::Double(left - right),
            Self::Multiply => Value::Double(left * right),
            Self::Equal => Value::Boolean(left == right),
            Self::Unequal => Value::Boolean(left != right),
            Self::Less => Value::Boolean(left < right),
            Self::LessOrEqual => Value::Boolean(left <= right),
            _ => Value::Double(left / right),
        }
    }

    #[inline]
    fn of_integers(self, left: i64, right: i64) -> Result<Value, Fault> {
        let (value, word) = match self {
            Self::Equal => return Ok(Value::Boolean(left == right)),
            Self::Unequal => return Ok(Value::Boolean(left != right)),
            Self::Less => return Ok(Value::Boolean(left < right)),
            Self::LessOrEqual => return Ok(Value::Boolean(left <= right)),
            Self::Add => (left.checked_add(right), "add"),
            Self::Subtract => (left.checked_sub(right), "sub"),
            Self::Multiply => (left.checked_mul(right), "mul"),
            _ if right == 0 => return Err("division by zero".to_owned()),
            // The remainder of the smallest integer and -1 is 0, though their quotient is none.
            Self::Modulo => (Some(left.wrapping_rem(right)), "mod"),
            _ => (left.checked_div(right), "div"),
        };
        value.map(Value::Integer).ok_or_else(|| out_of_range(word))
    }

    /// Shape: shifts take the lowest six bits of the right side, as processors do; C leaves it open.
    fn of_bits(self, left: i64, right: i64) -> i64 {
        let distance = u32::try_from(right & 63).unwrap_or(0);
        match self {
            Self::BitAnd => left & right,
            Self::BitOr => left | right,
            Self::BitXor => left ^ right,
            Self::ShiftLeft => left.wrapping_shl(distance),
            _ => left.wrapping_shr(distance),
        }
    }

    fn of_three(
        self,
        first: Value,
        second: Value,
        third: Value,
        random: &mut Random,
    ) -> Result<Value, Fault> {
        if self == Self::Permute {
            let (value, size, seed) = (first.integer()?, second.integer()?, third.integer()?);
            if size <= 0 {
                return Err("permute size parameter must be greater than zero".to_owned());
            }
            return Ok(Value::Integer(permute(value, size, seed)));
        }
        let (low, high) = range(first, second)?;
        let parameter = third.double()?;
        let number = match self {
            Self::RandomGaussian if parameter.is_nan() || parameter < MIN_GAUSSIAN => {
                return Err(format!(
                    "gaussian parameter must be at least {MIN_GAUSSIAN:.6} (not {parameter:.6})"
                ));
            }
            Self::RandomGaussian => gaussian(random, low, high, parameter),
            Self::RandomZipfian if !(MIN_ZIPFIAN..=MAX_ZIPFIAN).contains(&parameter) => {
                return Err(format!(
                    "zipfian parameter must be in range [{MIN_ZIPFIAN:.3}, {MAX_ZIPFIAN:.0}] \
                     (not {parameter:.6})"
                ));
            }
            Self::RandomZipfian => zipfian(random, low, high, parameter),
            _ if parameter.is_nan() || parameter <= 0.0 => {
                return Err(format!(
                    "exponential parameter must be greater than zero (not {parameter:.6})"
                ));
            }
            _ => exponential(random, low, high, parameter),
        };
        Ok(Value::Integer(number))
    }

    fn of_many(self, arguments: &[Value]) -> Result<Value, Fault> {
        let least = self == Self::Least;
        if arguments.iter().copied().any(is_double) {
            let pick = |best: f64, next: f64| match (least, next < best, next > best) {
                (true, true, _) | (false, _, true) => next,
                _ => best,
            };
            let values = arguments.iter().map(|value| value.double());
            let values = values.collect::<Result<Vec<f64>, _>>()?;
            let best = values.into_iter().reduce(pick);
            return Ok(best.map_or(Value::Null, Value::Double));
        }
        let values = arguments.iter().map(|value| value.integer());
        let values = values.collect::<Result<Vec<i64>, _>>()?.into_iter();
        let best = if least { values.min() } else { values.max() };
        Ok(best.map_or(Value::Null, Value::Integer))
    }
}

fn is_double(value: Value) -> bool {
    matches!(value, Value::Double(_))
}

/// `is null`, `is true` and `is false`.
fn is(value: Value, what: Value) -> bool {
    value == what
}

fn out_of_range(operation: &str) -> Fault {
    format!("bigint {operation} out of range")
}

/// The ends of a range that is not empty, and whose length is an integer.
#[inline]
fn range(low: Value, high: Value) -> Result<(i64, i64), Fault> {
    let (low, high) = (low.integer()?, high.integer()?);
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    match high.checked_sub(low).and_then(|most| most.checked_add(1)) {
        Some(_) => Ok((low, high)),
        None => Err("random range is too large".to_owned()),
    }
}

#[inline]
fn drawn(random: &mut Random, low: Value, high: Value) -> Result<Value, Fault> {
    let (low, high) = range(low, high)?;
    Ok(Value::Integer(uniform(random, low, high)))
}
