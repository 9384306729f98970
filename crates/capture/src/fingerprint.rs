//! What executions of one statement have in common: the text without values, comments and blanks.
//!
//! Literals, parameters and the length of lists never matter, operators always do. Lists are those of `IN`,
//! `ARRAY[]` and the rows of `VALUES`: neighbours that are alike and have a value in them are one. `true`,
//! `false` and `null` are literals where a value may stand. There is no parser: a schema that is written in
//! one text and not in another makes two statements.

use crate::lexer::{Token, TokenKind};
use sha2::{Digest, Sha256};

/// A text without values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// For people: words in lower case, `?` for values.
    pub normalised: String,
    /// SHA-256 of its tokens: `a ? 'b'` (an operator) and `a 'b' ?` differ.
    pub hash: [u8; 32],
}

/// What a piece of the normalised text is, for the hash and for the blanks between pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Word,
    Quoted,
    Value,
    Operator,
    Mark,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    role: Role,
    text: String,
}

impl Piece {
    fn is(&self, role: Role, text: &str) -> bool {
        self.role == role && self.text == text
    }
}

/// Nested deeper than this, lists stay as they are.
const DEEPEST: usize = 100;

impl Fingerprint {
    /// The fingerprint of a statement's tokens.
    pub fn of(tokens: &[Token<'_>]) -> Self {
        let mut pieces = pieces(tokens);
        while pieces.last().is_some_and(|last| last.is(Role::Mark, ";")) {
            pieces.pop();
        }
        let pieces = fold(&pieces, 0, false);
        let mut hash = Sha256::new();
        for piece in &pieces {
            hash.update(match piece.role {
                Role::Word => b"w",
                Role::Quoted => b"q",
                Role::Value => b"v",
                Role::Operator => b"o",
                Role::Mark => b"m",
            });
            hash.update(&piece.text);
            hash.update([0]);
        }
        Self {
            normalised: written(&pieces),
            hash: hash.finalize().into(),
        }
    }
}

/// Words after which a sign belongs to the number that follows. After other words it may be an operator
/// between two operands.
const BEFORE_OPERAND: [&str; 34] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "by",
    "case",
    "distinct",
    "else",
    "exists",
    "from",
    "having",
    "ilike",
    "in",
    "is",
    "like",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "returning",
    "select",
    "set",
    "similar",
    "some",
    "symmetric",
    "then",
    "to",
    "using",
    "values",
    "when",
    "where",
    "with",
];

fn pieces(tokens: &[Token<'_>]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let role = match token.kind {
            TokenKind::Word if is_value(token, &pieces) => Role::Value,
            TokenKind::Word => Role::Word,
            TokenKind::Quoted => Role::Quoted,
            TokenKind::Literal | TokenKind::Parameter => Role::Value,
            // pg_stat_statements before 10, and our own normalised texts.
            TokenKind::Operator if token.text == "?" && expects_operand(&pieces) => Role::Value,
            TokenKind::Operator => Role::Operator,
            TokenKind::Mark => Role::Mark,
        };
        if role == Role::Value {
            if is_signed(&pieces) && is_number(token) {
                pieces.pop();
            }
            // 'a' and 'b' on two lines are one string.
            let before = pieces.last().is_some_and(|last| last.role == Role::Value);
            if before && token.text.ends_with('\'') {
                continue;
            }
        }
        let text = match role {
            Role::Value => "?".to_owned(),
            Role::Word => token.text.to_ascii_lowercase(),
            _ => token.text.to_owned(),
        };
        pieces.push(Piece { role, text });
    }
    pieces
}

/// Whether a word is a literal: `true`, `false` or `null` not after `is`, `not` or `set`.
fn is_value(token: &Token<'_>, before: &[Piece]) -> bool {
    let literal = ["true", "false", "null"];
    if !literal.iter().any(|word| token.is_word(word)) {
        return false;
    }
    let syntax = ["is", "not", "set", "default"];
    let last = before.last();
    !last.is_some_and(|last| last.role == Role::Word && syntax.contains(&last.text.as_str()))
}

fn is_number(token: &Token<'_>) -> bool {
    let first = token.text.as_bytes().first();
    token.kind == TokenKind::Literal
        && first.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Whether the last piece is a minus that makes the next number negative, and no operator between operands.
fn is_signed(pieces: &[Piece]) -> bool {
    let sign = pieces
        .last()
        .is_some_and(|last| last.is(Role::Operator, "-"));
    let before = pieces.split_last().map_or(pieces, |(_, before)| before);
    sign && !before.is_empty() && expects_operand(before)
}

/// Whether an operand must follow: what comes next is no operator between two of them.
fn expects_operand(pieces: &[Piece]) -> bool {
    pieces.last().is_some_and(|last| match last.role {
        Role::Operator => true,
        Role::Mark => matches!(last.text.as_str(), "(" | "[" | "," | ":" | ":="),
        Role::Word => BEFORE_OPERAND.contains(&last.text.as_str()),
        Role::Quoted | Role::Value => false,
    })
}

/// For each opening bracket the place of the one that closes it.
fn closings(pieces: &[Piece]) -> Vec<Option<usize>> {
    let mut closings = vec![None; pieces.len()];
    let mut open = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if piece.role != Role::Mark {
            continue;
        }
        match piece.text.as_str() {
            "(" | "[" => open.push(at),
            ")" | "]" => {
                let place = open.pop().and_then(|begin: usize| closings.get_mut(begin));
                if let Some(place) = place {
                    *place = Some(at);
                }
            }
            _ => {}
        }
    }
    closings
}

/// Pieces with their lists folded; `in_array` inside of `ARRAY[…]`, whose inner brackets are lists, too.
fn fold(pieces: &[Piece], depth: usize, in_array: bool) -> Vec<Piece> {
    if depth > DEEPEST {
        return pieces.to_vec();
    }
    let closings = closings(pieces);
    let mut folded: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut at = 0;
    // Where the last row of a VALUES list begins in `folded`, while such a list goes on.
    let mut row: Option<usize> = None;
    while let Some(piece) = pieces.get(at) {
        let Some(close) = closings.get(at).copied().flatten() else {
            if !piece.is(Role::Mark, ",") {
                row = None;
            }
            folded.push(piece.clone());
            at += 1;
            continue;
        };
        let last = folded.last();
        let after = |word: &str| last.is_some_and(|last| last.is(Role::Word, word));
        let array = piece.text == "[" && (after("array") || in_array);
        let list = array || piece.text == "(" && after("in");
        let first_row = piece.text == "(" && after("values");
        let next_row = row.filter(|_| last.is_some_and(|last| last.is(Role::Mark, ",")));
        let inside = pieces.get(at + 1..close).unwrap_or_default();
        let mut inside = fold(inside, depth + 1, array);
        if list {
            inside = one_of_each(inside);
        }
        let begin = folded.len();
        folded.push(piece.clone());
        folded.append(&mut inside);
        folded.extend(pieces.get(close).cloned());
        row = (first_row || next_row.is_some()).then_some(begin);
        if let Some(before) = next_row
            && is_repeated(&folded, before, begin)
        {
            // The comma goes, too.
            folded.truncate(begin - 1);
            row = Some(before);
        }
        at = close + 1;
    }
    folded
}

/// Whether the row at `begin` is the one at `before` again, with a value in it.
fn is_repeated(folded: &[Piece], before: usize, begin: usize) -> bool {
    let row = folded.get(begin..).unwrap_or_default();
    folded.get(before..begin - 1) == Some(row) && has_value(row)
}

fn has_value(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| piece.role == Role::Value)
}

/// The elements of a list without those that are like the one before.
fn one_of_each(inside: Vec<Piece>) -> Vec<Piece> {
    let query = ["select", "with", "values", "table"];
    let first = inside.first();
    if first.is_some_and(|piece| piece.role == Role::Word && query.contains(&piece.text.as_str())) {
        return inside;
    }
    let mut elements: Vec<&[Piece]> = Vec::new();
    let mut depth = 0_usize;
    let mut begin = 0;
    for (at, piece) in inside.iter().enumerate() {
        match piece.text.as_str() {
            "(" | "[" if piece.role == Role::Mark => depth += 1,
            ")" | "]" if piece.role == Role::Mark => depth = depth.saturating_sub(1),
            "," if piece.role == Role::Mark && depth == 0 => {
                elements.extend(inside.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    elements.extend(inside.get(begin..));
    elements.dedup_by(|next, before| next == before && has_value(before));
    let comma = Piece {
        role: Role::Mark,
        text: ",".to_owned(),
    };
    elements.join(std::slice::from_ref(&comma))
}

/// Words before an opening bracket that are no functions.
const NO_FUNCTION: [&str; 40] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "by",
    "case",
    "conflict",
    "distinct",
    "else",
    "except",
    "filter",
    "from",
    "having",
    "in",
    "intersect",
    "is",
    "join",
    "lateral",
    "like",
    "limit",
    "materialized",
    "not",
    "offset",
    "on",
    "or",
    "over",
    "returning",
    "select",
    "set",
    "then",
    "union",
    "using",
    "values",
    "when",
    "where",
    "with",
    "ilike",
    "some",
    "into",
];

/// The text of pieces, with blanks where people expect them.
fn written(pieces: &[Piece]) -> String {
    let mut text = String::new();
    let mut before: Option<&Piece> = None;
    for piece in pieces {
        if before.is_some_and(|before| has_blank(before, piece)) {
            text.push(' ');
        }
        text.push_str(&piece.text);
        before = Some(piece);
    }
    text
}

fn has_blank(before: &Piece, piece: &Piece) -> bool {
    let opens = before.role == Role::Mark && matches!(before.text.as_str(), "(" | "[" | "." | "::");
    let closes = piece.role == Role::Mark
        && matches!(
            piece.text.as_str(),
            ")" | "]" | "," | ";" | "." | "::" | "["
        );
    if opens || closes {
        return false;
    }
    let bracket = piece.is(Role::Mark, "(");
    let called = match before.role {
        Role::Word => !NO_FUNCTION.contains(&before.text.as_str()),
        Role::Quoted => true,
        _ => false,
    };
    !(bracket && called)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;
    use proptest::prelude::*;

    fn normalised(text: &str) -> String {
        Fingerprint::of(&tokens(text).tokens).normalised
    }

    fn hash(text: &str) -> [u8; 32] {
        Fingerprint::of(&tokens(text).tokens).hash
    }

    #[test]
    fn a_text_is_written_in_one_way() {
        let cases = [
            (
                "SELECT a,b FROM t WHERE x=1 AND y = 'z';",
                "select a, b from t where x = ? and y = ?",
            ),
            (
                "select count( * ) from T -- now\n where a in (1,2, 3)",
                "select count(*) from t where a in (?)",
            ),
            (
                "INSERT INTO t (a,b) VALUES ($1,$2),($3,$4) ,($5,$6)",
                "insert into t(a, b) values (?, ?)",
            ),
            (
                "select a::int, array[1,2]::int[], '{1}'::text",
                "select a::int, array[?]::int[], ?::text",
            ),
            (
                "select interval '1 day', date '2026-01-01'",
                "select interval ?, date ?",
            ),
            (
                "select -1, a - 1, a -1, (-1), 2*-1",
                "select ?, a - ?, a - ?, (?), ? * ?",
            ),
            (
                "select a is null, b is not null, null, x = TRUE",
                "select a is null, b is not null, ?, x = ?",
            ),
            ("select 'a'\n'b'", "select ?"),
            (
                "select \"User\".\"Name\" from s . t",
                "select \"User\".\"Name\" from s.t",
            ),
            ("x IN ($1 /*, ... */)", "x in (?)"),
            ("where (a,b) in ((1,2),(3,4))", "where (a, b) in ((?, ?))"),
            ("array[[1,2],[3,4]]", "array[[?]]"),
            ("a in ($1::uuid, $2::uuid)", "a in (?::uuid)"),
            ("f(1, 2)", "f(?, ?)"),
            ("a in (b, c)", "a in (b, c)"),
            ("a in (select 1, 2 from t)", "a in (select ?, ? from t)"),
            (
                "values (1, now()), (2, now()), (3, default)",
                "values (?, now()), (?, default)",
            ),
            ("tags ? 'a'", "tags ? ?"),
        ];
        for (text, wanted) in cases {
            assert_eq!(normalised(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_operator_that_looks_like_a_value_is_none() {
        assert_ne!(hash("select a ? 'b'"), hash("select a 'b' ?"));
        assert_eq!(hash("select a ? 'b'"), hash("select a ? $1"));
    }

    #[test]
    fn a_normalised_text_has_the_fingerprint_of_its_statement() {
        for text in [
            "select a, -1 from t where tags ? 'a' and b in (1, 2) limit 5",
            "insert into t values (1, 'x', null), (2, $1, true)",
            "select x between 1 and 2, array[1, 2], f(3)",
        ] {
            assert_eq!(hash(&normalised(text)), hash(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_read() {
        let deep = format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(normalised(&deep).len() > 200_000);
    }

    const OPERATORS: [&str; 14] = [
        "=", "<", ">", "<=", ">=", "<>", "+", "-", "||", "->>", "@>", "~*", "?", "&&",
    ];

    fn literal() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>()
                .prop_filter("finite", |x| x.is_finite())
                .prop_map(|x| format!("{x:e}")),
            "[^'\\\\\u{0}]{0,12}".prop_map(|text| format!("'{text}'")),
            "[^'\\\\\u{0}]{0,6}".prop_map(|text| format!("E'{text}\\'--'")),
            "[^$\u{0}]{0,12}".prop_map(|text| format!("$q${text}$q$")),
            (1..99_u8).prop_map(|number| format!("${number}")),
            Just("null".to_owned()),
            Just("true".to_owned()),
        ]
    }

    fn list() -> impl Strategy<Value = String> {
        proptest::collection::vec(literal(), 1..9).prop_map(|literals| literals.join(","))
    }

    fn blank() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(" ".to_owned()),
            Just("\n\t".to_owned()),
            Just(" /* ' /* \" */ */ ".to_owned()),
            Just(" -- it's\n".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn literals_and_lists_never_matter(
            (a, b) in (literal(), literal()),
            (c, d) in (list(), list()),
            (e, f) in (list(), list()),
            (space, other) in (blank(), blank()),
            rows in 1..5_usize,
        ) {
            let text = |value: &str, list: &str, array: &str, space: &str, rows: usize| {
                let row = format!("({value},{space}{value})");
                format!(
                    "SELECT{space}x.a,y FROM t{space}x WHERE a ={value} AND b in ({list}) and{space}c = \
                     any(array[{array}]) and (d, e) in (values{space}{})",
                    vec![row; rows].join(",")
                )
            };
            let one = text(&a, &c, &e, &space, rows);
            let two = text(&b, &d, &f, &other, 1);
            prop_assert_eq!(normalised(&one), normalised(&two));
            prop_assert_eq!(hash(&one), hash(&two));
        }

        #[test]
        fn operators_always_matter(
            (left, right) in (0..OPERATORS.len(), 0..OPERATORS.len()),
            (a, b) in (literal(), literal()),
        ) {
            let text = |operator: &str, value: &str| format!("select * from t where a {operator} {value}");
            let one = hash(&text(OPERATORS[left], &a));
            let two = hash(&text(OPERATORS[right], &b));
            prop_assert_eq!(one == two, left == right);
        }

        #[test]
        fn any_text_has_a_fingerprint(text in "[ -~\u{e9}\n]{0,200}") {
            let found = tokens(&text);
            Fingerprint::of(&found.tokens);
            let written: usize = found.tokens.iter().map(|token| token.text.len()).sum();
            prop_assert!(written <= text.len());
        }
    }
}
