//! From the text of an expression to its tree.
//!
//! Precedence, lowest first: `or`; `and`; `not`; `is`, `isnull`, `notnull`; comparisons, which do not
//! associate; `| & # << >>` and, before an operand, `~`; `+ -`; `* / %`; a sign.

use super::expression::Expression;
use super::function::{Function, MOST_ARGUMENTS, NAMED};
use super::value::{Value, double};
use deltabench_model::problem::nearest;

/// Most tokens of one expression, so that its tree cannot be too deep to walk.
const MOST_TOKENS: usize = 1000;
/// Most expressions within each other.
const DEEPEST: usize = 60;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// What, in pgbench's words.
    pub(crate) what: String,
    /// Byte of the text at which the offending token begins.
    pub(crate) at: usize,
    /// What may have been meant.
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// An operator, a bracket or a comma.
    Sign(&'static str),
    /// A word that is no function's name, in lower case.
    Keyword(&'static str),
    /// `:name`.
    Variable(String),
    Integer(i64),
    /// 9223372036854775808, which is an integer only after a minus.
    PastLargest,
    Double(f64),
    /// A function's name, as it was written.
    Name(String),
}

const KEYWORDS: [&str; 14] = [
    "and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end", "true",
    "false", "null",
];
/// Longer ones first, because the longest is meant.
const SIGNS: [&str; 21] = [
    "<>", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">", "|", "&", "#", "~",
    "(", ")", ",",
];

/// Reads the expression that begins at byte `start` of `text` and ends with the line, or where `\` before its
/// end does not go on to the next. Each variable's name becomes a number by `intern`.
///
/// Returns the tree and the byte after the expression: at the newline or the end.
pub(crate) fn expression(
    text: &str,
    start: usize,
    intern: &mut dyn FnMut(&str) -> usize,
) -> Result<(Expression, usize), Mistake> {
    let (tokens, end) = tokens(text, start)?;
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        end,
        depth: 0,
        intern,
    };
    let tree = parser.operand_of(0)?;
    if parser.peek().is_some() {
        return Err(parser.unexpected());
    }
    Ok((tree, end))
}

/// The tokens of a command, with the bytes at which they begin, and the byte after them.
fn tokens(text: &str, start: usize) -> Result<(Vec<(Token, usize)>, usize), Mistake> {
    let mut tokens = Vec::new();
    let mut at = start;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next().filter(|&first| first != '\n') else {
            return Ok((tokens, at));
        };
        if matches!(first, ' ' | '\t' | '\r' | '\x0c' | '\x0b') {
            at += 1;
        } else if let Some(length) = continuation(rest) {
            at += length;
        } else {
            let (token, length) = token(rest).map_err(|what| Mistake {
                what,
                at,
                hint: None,
            })?;
            tokens.push((token, at));
            at += length;
        }
        if tokens.len() > MOST_TOKENS {
            return Err(Mistake {
                what: format!("expression has more than {MOST_TOKENS} parts"),
                at,
                hint: Some("use several \\set commands".to_owned()),
            });
        }
    }
}

/// Bytes of a `\` at the end of a line, by which a command goes on.
pub(crate) fn continuation(text: &str) -> Option<usize> {
    let marks = ["\\\n", "\\\r\n"];
    let mark = marks.into_iter().find(|mark| text.starts_with(mark))?;
    Some(mark.len())
}

/// Letters that names are made of.
pub(crate) fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
}

/// The part of the text, from its beginning, that is made of such letters.
fn run(text: &str, is: impl Fn(char) -> bool) -> &str {
    let end = text.find(|letter| !is(letter)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The first token and its length.
fn token(text: &str) -> Result<(Token, usize), String> {
    if let Some(named) = text.strip_prefix(':') {
        let name = run(named, is_name_letter);
        if !name.is_empty() {
            return Ok((Token::Variable(name.to_owned()), name.len() + 1));
        }
    }
    let word = run(text, is_name_letter);
    if word.starts_with(|first: char| !first.is_ascii_digit()) {
        let keyword = KEYWORDS
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(word));
        let token = keyword.map_or_else(|| Token::Name(word.to_owned()), Token::Keyword);
        return Ok((token, word.len()));
    }
    if let Some(length) = number_length(text) {
        let number = text.get(..length).unwrap_or_default();
        return Ok((number_token(number)?, length));
    }
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign));
    match sign {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => {
            let letter = text.chars().next().unwrap_or(' ');
            Err(format!("unexpected character ({letter})"))
        }
    }
}

/// Bytes of the number that the text begins with, if it does.
fn number_length(text: &str) -> Option<usize> {
    let digits = |at: usize| run(text.get(at..).unwrap_or_default(), |d| d.is_ascii_digit()).len();
    let whole = digits(0);
    let has_point = text.get(whole..)?.starts_with('.');
    let decimals = if has_point { digits(whole + 1) } else { 0 };
    if whole == 0 && decimals == 0 {
        return None;
    }
    let mantissa = whole + usize::from(has_point) + decimals;
    let rest = text.get(mantissa..)?;
    let exponent = rest.strip_prefix(['e', 'E']).map_or(0, |rest| {
        let sign = usize::from(rest.starts_with(['-', '+']));
        match digits(mantissa + 1 + sign) {
            0 => 0,
            digits => 1 + sign + digits,
        }
    });
    Some(mantissa + exponent)
}

fn number_token(number: &str) -> Result<Token, String> {
    if number == "9223372036854775808" {
        return Ok(Token::PastLargest);
    }
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = number.parse().map(Token::Integer);
        return value.map_err(|_| format!("bigint constant overflow ({number})"));
    }
    let value = double(number).map(Token::Double);
    value.ok_or_else(|| format!("double constant overflow ({number})"))
}

struct Parser<'a> {
    tokens: &'a [(Token, usize)],
    next: usize,
    /// Byte after the last token.
    end: usize,
    depth: usize,
    intern: &'a mut dyn FnMut(&str) -> usize,
}

/// What an operator between two operands makes of them.
enum Infix {
    Call(Function),
    /// The sides change places: `>` is `<` the other way round.
    Swapped(Function),
    And,
    Or,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.next += 1;
        token
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), Mistake> {
        if self.takes(wanted) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn mistake(&self, token: usize, what: String) -> Mistake {
        let at = self.tokens.get(token).map_or(self.end, |(_, at)| *at);
        Mistake {
            what,
            at,
            hint: None,
        }
    }

    fn unexpected(&self) -> Mistake {
        let what = match self.peek() {
            Some(_) => "syntax error",
            None => "syntax error, unexpected end of the command",
        };
        self.mistake(self.next, what.to_owned())
    }

    /// Reads an operand and all operators after it that bind at least as strongly as `strength`.
    fn operand_of(&mut self, strength: u8) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("expression is more than {DEEPEST} levels deep");
            return Err(self.mistake(self.next, what));
        }
        let mut left = self.operand()?;
        // The place of a comparison that was read here: another one cannot follow it.
        let mut compared = false;
        loop {
            if let Some(is) = self.postfix(strength)? {
                left = is(left);
                compared = false;
                continue;
            }
            let infix = self.peek().and_then(infix);
            let Some((binds, infix)) = infix.filter(|(binds, _)| *binds >= strength) else {
                break;
            };
            if binds == COMPARE && compared {
                return Err(self.unexpected());
            }
            compared = binds == COMPARE;
            self.next += 1;
            let right = self.operand_of(binds + 1)?;
            left = infix.of(left, right);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `is …`, `isnull` and `notnull`.
    fn postfix(
        &mut self,
        strength: u8,
    ) -> Result<Option<impl FnOnce(Expression) -> Expression + use<>>, Mistake> {
        let Some(Token::Keyword(word @ ("is" | "isnull" | "notnull"))) = self.peek() else {
            return Ok(None);
        };
        let word = *word;
        if IS < strength {
            return Ok(None);
        }
        self.next += 1;
        let (value, negated) = match word {
            "isnull" => (Value::Null, false),
            "notnull" => (Value::Null, true),
            _ => {
                let negated = self.takes(&Token::Keyword("not"));
                let value = match self.peek() {
                    Some(Token::Keyword("null")) => Value::Null,
                    Some(Token::Keyword("true")) => Value::Boolean(true),
                    Some(Token::Keyword("false")) => Value::Boolean(false),
                    _ => return Err(self.unexpected()),
                };
                self.next += 1;
                (value, negated)
            }
        };
        Ok(Some(move |operand| {
            let is = call(Function::Is, [operand, Expression::Constant(value)]);
            if negated {
                call(Function::Not, [is])
            } else {
                is
            }
        }))
    }

    fn operand(&mut self) -> Result<Expression, Mistake> {
        let place = self.next;
        let Some(token) = self.take() else {
            self.next = place;
            return Err(self.unexpected());
        };
        let constant = |value| Ok(Expression::Constant(value));
        match token {
            Token::Integer(value) => constant(Value::Integer(value)),
            Token::Double(value) => constant(Value::Double(value)),
            Token::Keyword("null") => constant(Value::Null),
            Token::Keyword("true") => constant(Value::Boolean(true)),
            Token::Keyword("false") => constant(Value::Boolean(false)),
            Token::Variable(name) => Ok(Expression::Variable((self.intern)(&name))),
            Token::Sign("(") => {
                let inside = self.operand_of(0)?;
                self.expect(&Token::Sign(")"))?;
                Ok(inside)
            }
            Token::Sign("+") => self.operand_of(SIGN),
            Token::Sign("-") if self.takes(&Token::PastLargest) => {
                constant(Value::Integer(i64::MIN))
            }
            Token::Sign("-") => {
                let zero = Expression::Constant(Value::Integer(0));
                Ok(call(Function::Subtract, [zero, self.operand_of(SIGN)?]))
            }
            Token::Sign("~") => {
                let ones = Expression::Constant(Value::Integer(-1));
                Ok(call(Function::BitXor, [ones, self.operand_of(BITS + 1)?]))
            }
            Token::Keyword("not") => Ok(call(Function::Not, [self.operand_of(NOT)?])),
            Token::Keyword("case") => self.case(),
            Token::Name(name) => self.function(&name, place),
            _ => {
                self.next = place;
                Err(self.unexpected())
            }
        }
    }

    fn case(&mut self) -> Result<Expression, Mistake> {
        let mut branches = Vec::new();
        self.expect(&Token::Keyword("when"))?;
        loop {
            let condition = self.operand_of(0)?;
            self.expect(&Token::Keyword("then"))?;
            branches.push((condition, self.operand_of(0)?));
            if !self.takes(&Token::Keyword("when")) {
                break;
            }
        }
        let otherwise = if self.takes(&Token::Keyword("else")) {
            self.operand_of(0)?
        } else {
            Expression::Constant(Value::Null)
        };
        self.expect(&Token::Keyword("end"))?;
        Ok(Expression::Case(branches.into(), Box::new(otherwise)))
    }

    fn function(&mut self, name: &str, place: usize) -> Result<Expression, Mistake> {
        let mut known = NAMED.into_iter();
        let Some((known, function, fewest, most)) =
            known.find(|(known, ..)| known.eq_ignore_ascii_case(name))
        else {
            let mut mistake = self.mistake(place, format!("unexpected function name ({name})"));
            let names = NAMED.map(|(name, ..)| name);
            let near = nearest(&name.to_ascii_lowercase(), names);
            mistake.hint = Some(match (near, self.peek()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, Some(Token::Sign("("))) => format!("there are {}", names.join(", ")),
                (None, _) => format!("a variable is written `:{name}`"),
            });
            return Err(mistake);
        };
        if self.peek() != Some(&Token::Sign("(")) {
            return Err(self.unexpected());
        }
        self.next += 1;
        let mut arguments = self.arguments()?;
        if arguments.len() < fewest || arguments.len() > most {
            let what = match (arguments.len(), most) {
                (0, MOST_ARGUMENTS) => "at least one argument expected",
                (_, MOST_ARGUMENTS) => "too many function arguments, maximum is 16",
                _ => "unexpected number of arguments",
            };
            return Err(self.mistake(place, format!("{what} ({known})")));
        }
        if function.is_seeded() && arguments.len() < most {
            arguments.push(Expression::Variable((self.intern)("default_seed")));
        }
        Ok(Expression::Call(function, arguments.into()))
    }

    /// What stands between the brackets of a call, and the closing one.
    fn arguments(&mut self) -> Result<Vec<Expression>, Mistake> {
        let mut arguments = Vec::new();
        if self.takes(&Token::Sign(")")) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.operand_of(0)?);
            if !self.takes(&Token::Sign(",")) {
                self.expect(&Token::Sign(")"))?;
                return Ok(arguments);
            }
        }
    }
}

impl Infix {
    fn of(self, left: Expression, right: Expression) -> Expression {
        match self {
            Self::Call(function) => call(function, [left, right]),
            Self::Swapped(function) => call(function, [right, left]),
            Self::And => Expression::And(Box::new([left, right])),
            Self::Or => Expression::Or(Box::new([left, right])),
        }
    }
}

fn call<const N: usize>(function: Function, arguments: [Expression; N]) -> Expression {
    Expression::Call(function, Box::new(arguments))
}

/// How strongly an operator between two operands binds, and what it makes of them.
fn infix(token: &Token) -> Option<(u8, Infix)> {
    let sign = match token {
        Token::Sign(sign) => sign,
        Token::Keyword("and") => return Some((AND, Infix::And)),
        Token::Keyword("or") => return Some((OR, Infix::Or)),
        _ => return None,
    };
    let (binds, function) = match *sign {
        "<" => (COMPARE, Function::Less),
        "<=" => (COMPARE, Function::LessOrEqual),
        "=" => (COMPARE, Function::Equal),
        "<>" | "!=" => (COMPARE, Function::Unequal),
        ">" => return Some((COMPARE, Infix::Swapped(Function::Less))),
        ">=" => return Some((COMPARE, Infix::Swapped(Function::LessOrEqual))),
        "|" => (BITS, Function::BitOr),
        "&" => (BITS, Function::BitAnd),
        "#" => (BITS, Function::BitXor),
        "<<" => (BITS, Function::ShiftLeft),
        ">>" => (BITS, Function::ShiftRight),
        "+" => (SUM, Function::Add),
        "-" => (SUM, Function::Subtract),
        "*" => (PRODUCT, Function::Multiply),
        "/" => (PRODUCT, Function::Divide),
        "%" => (PRODUCT, Function::Modulo),
        _ => return None,
    };
    Some((binds, Infix::Call(function)))
}
