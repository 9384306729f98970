//! What parameters are compared with, from the conditions of a plan.

use super::text::number;
use deltabench_capture::{Token, TokenKind, tokens};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of a plan's nodes that hold conditions.
const CONDITIONS: [&str; 8] = [
    "Index Cond",
    "Recheck Cond",
    "Filter",
    "Join Filter",
    "Hash Cond",
    "Merge Cond",
    "TID Cond",
    "One-Time Filter",
];
/// Operators whose sides have nothing in common.
const COMPUTING: [&str; 12] = [
    "+", "-", "*", "/", "%", "||", "->", "->>", "#>", "#>>", "^", "@@",
];
/// Functions around a column whose values deltabench computes: they are cheap, and do nothing else.
const FUNCTIONS: [&str; 6] = ["lower", "upper", "btrim", "date", "abs", "date_trunc"];

/// A table of a plan: schema and name.
pub type Table = (String, String);

/// What a parameter is compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared {
    /// The name of the table in the plan.
    pub alias: String,
    /// What has the values, in SQL: the column, or an expression of it.
    pub expression: String,
    /// As if the parameter stood on the right side: `<`, `=`, `~~`.
    pub operator: String,
}

/// The conditions of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Tables by their names in the plan.
    pub tables: BTreeMap<String, Table>,
    /// By parameter, in an order that does not depend on the plan.
    pub compared: BTreeMap<u32, BTreeSet<Compared>>,
}

impl Conditions {
    /// Of a plan as `EXPLAIN (VERBOSE, FORMAT JSON)` prints it; absent if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let explained: Value = serde_json::from_str(text).ok()?;
        let plan = explained.get(0)?.get("Plan")?;
        let mut nodes = Vec::new();
        collect(plan, &mut nodes);
        let mut found = Self::default();
        let mut returned = BTreeSet::new();
        for node in &nodes {
            let text = |key: &str| node.get(key).and_then(Value::as_str);
            if let (Some(alias), Some(schema), Some(name)) =
                (text("Alias"), text("Schema"), text("Relation Name"))
            {
                let table = (schema.to_owned(), name.to_owned());
                found.tables.insert(alias.to_owned(), table);
            }
            // Before 17 what a subplan returns looks like a parameter.
            let subplan = text("Subplan Name").unwrap_or_default();
            returned.extend(tokens(subplan).tokens.iter().filter_map(number));
        }
        for node in nodes {
            let conditions = CONDITIONS.iter().filter_map(|key| node.get(key)?.as_str());
            for condition in conditions {
                found.add(condition);
            }
        }
        found
            .compared
            .retain(|number, _| !returned.contains(number));
        Some(found)
    }

    /// Of all that a parameter is compared with, what is in the table with the most parameters: their values
    /// then come from one row.
    pub fn chosen(&self, parameter: u32) -> Option<&Compared> {
        let has = |alias: &str| {
            let all = self.compared.values();
            all.filter(|all| all.iter().any(|one| one.alias == alias))
                .count()
        };
        let all = self.compared.get(&parameter)?.iter();
        // The first one of several that are equal.
        all.rev().max_by_key(|compared| has(&compared.alias))
    }

    fn add(&mut self, condition: &str) {
        let found = tokens(condition).tokens;
        for (place, token) in found.iter().enumerate() {
            let Some(number) = number(token) else {
                continue;
            };
            let around = enclosing(&found, place);
            let compared = around
                .into_iter()
                .find_map(|clause| self.compared(condition, clause, number));
            self.compared.entry(number).or_default().extend(compared);
        }
    }

    /// What a parameter is compared with in a clause; absent if it has no column.
    fn compared(&self, condition: &str, clause: &[Token<'_>], parameter: u32) -> Option<Compared> {
        let is_it = |token: &Token<'_>| number(token) == Some(parameter);
        let at = clause.iter().position(is_it)?;
        let (middle, operator) = operator(clause)?;
        let (left, right) = (clause.get(..middle)?, clause.get(middle + 1..)?);
        let is_right = at > middle;
        let (other, own) = if is_right {
            (left, right)
        } else {
            (right, left)
        };
        // Of a value that is computed with, nothing is known.
        let is_computed = |token: &Token<'_>| token.kind == TokenKind::Operator;
        if COMPUTING.contains(&operator) || own.iter().any(is_computed) {
            return None;
        }
        let (alias, column) = self.column(other)?;
        let expression = self.operand(condition, other, &alias).unwrap_or(column);
        Some(Compared {
            alias,
            expression,
            operator: match (is_right, operator) {
                (false, "<") => ">",
                (false, "<=") => ">=",
                (false, ">") => "<",
                (false, ">=") => "<=",
                (_, operator) => operator,
            }
            .to_owned(),
        })
    }

    /// The first column of some tokens, with the name of its table.
    fn column(&self, tokens: &[Token<'_>]) -> Option<(String, String)> {
        tokens.windows(3).find_map(|three| {
            let [table, point, column] = three else {
                return None;
            };
            let alias = name(table).filter(|_| point.is_mark("."))?;
            name(column)?;
            let written = format!("{}.{}", table.text, column.text);
            self.tables.contains_key(&alias).then_some((alias, written))
        })
    }

    /// A whole side of a comparison as an expression of one table, if it is a simple one.
    fn operand(&self, condition: &str, side: &[Token<'_>], alias: &str) -> Option<String> {
        for (place, token) in side.iter().enumerate() {
            let next = side.get(place + 1);
            let is_function = token.kind == TokenKind::Word
                && next.is_some_and(|next| next.is_mark("("))
                && !FUNCTIONS.iter().any(|known| token.is_word(known));
            let qualifies = next.is_some_and(|next| next.is_mark("."));
            let is_other = qualifies && name(token).is_some_and(|name| name != alias);
            if is_function || is_other || number(token).is_some() {
                return None;
            }
        }
        let (first, last) = (side.first()?, side.last()?);
        let text = condition.get(first.at..last.at + last.text.len())?;
        let depth: i64 = side.iter().map(|token| nesting(token)).sum();
        (depth == 0).then(|| text.to_owned())
    }
}

fn collect<'a>(node: &'a Value, nodes: &mut Vec<&'a Value>) {
    nodes.push(node);
    let below = node.get("Plans").and_then(Value::as_array);
    for node in below.into_iter().flatten() {
        collect(node, nodes);
    }
}

/// A name as the catalogs have it.
fn name(token: &Token<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.to_owned()),
        TokenKind::Quoted => {
            let inner = token.text.strip_prefix('"')?.strip_suffix('"')?;
            Some(inner.replace("\"\"", "\""))
        }
        _ => None,
    }
}

fn nesting(token: &Token<'_>) -> i64 {
    match token.text {
        "(" | "[" if token.kind == TokenKind::Mark => 1,
        ")" | "]" if token.kind == TokenKind::Mark => -1,
        _ => 0,
    }
}

/// The clauses around a token, from the innermost bracket outwards, each without those that `AND` or `OR`
/// connect with it.
fn enclosing<'a, 'b>(tokens: &'a [Token<'b>], place: usize) -> Vec<&'a [Token<'b>]> {
    let mut clauses = Vec::new();
    let (mut from, mut to) = (place, place + 1);
    loop {
        let connects = |token: &Token<'_>| token.is_word("and") || token.is_word("or");
        let mut depth = 0;
        while let Some(token) = from.checked_sub(1).and_then(|at| tokens.get(at)) {
            depth -= nesting(token);
            if depth < 0 || depth == 0 && connects(token) {
                break;
            }
            from -= 1;
        }
        depth = 0;
        while let Some(token) = tokens.get(to) {
            depth += nesting(token);
            if depth < 0 || depth == 0 && connects(token) {
                break;
            }
            to += 1;
        }
        clauses.push(tokens.get(from..to).unwrap_or_default());
        // Out of its bracket.
        let mut open = from;
        let mut depth = 0;
        let outer = loop {
            let Some(at) = open.checked_sub(1) else {
                return clauses;
            };
            open = at;
            depth += tokens.get(at).map_or(0, nesting);
            if depth > 0 {
                break at;
            }
        };
        from = outer;
        let mut close = to;
        depth = 0;
        while let Some(token) = tokens.get(close) {
            depth += nesting(token);
            close += 1;
            if depth < 0 {
                break;
            }
        }
        to = close;
    }
}

/// The operator of a comparison: the first one outside of all brackets.
fn operator<'a>(clause: &[Token<'a>]) -> Option<(usize, &'a str)> {
    let mut depth = 0;
    let mut first: Option<(usize, &'a str)> = None;
    for (place, token) in clause.iter().enumerate() {
        depth += nesting(token);
        if depth == 0 && token.kind == TokenKind::Operator && first.is_none() {
            first = Some((place, token.text));
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(condition: &str) -> Vec<String> {
        let plan = serde_json::json!([{"Plan": {
            "Node Type": "Seq Scan", "Schema": "shop", "Relation Name": "orders", "Alias": "o",
            "Filter": condition,
            "Plans": [{"Node Type": "Seq Scan", "Schema": "shop", "Relation Name": "Customers",
                       "Alias": "C 1", "Subplan Name": "InitPlan 1 (returns $9)"}]
        }}]);
        let found = Conditions::read(&plan.to_string()).unwrap();
        let all = found.compared.iter().flat_map(|(number, all)| {
            all.iter().map(move |one| {
                format!("{number} {} {} {}", one.alias, one.expression, one.operator)
            })
        });
        all.collect()
    }

    #[test]
    fn each_parameter_gets_what_it_is_compared_with() {
        assert_eq!(
            found("((o.customer_id = $1) AND (o.at > $2) AND ($3 >= o.id))"),
            ["1 o o.customer_id =", "2 o o.at >", "3 o o.id <="]
        );
        assert_eq!(
            found("((o.name)::text = ($1)::text) OR (\"C 1\".id = ANY ($2))"),
            ["1 o (o.name)::text =", "2 C 1 \"C 1\".id ="]
        );
        assert_eq!(found("(lower(o.name) = $1)"), ["1 o lower(o.name) ="]);
        assert_eq!(found("(o.tags @> ARRAY[$1])"), ["1 o o.tags @>"]);
        assert_eq!(
            found("(o.id = ANY (ARRAY[$1, $2]))"),
            ["1 o o.id =", "2 o o.id ="]
        );
    }

    #[test]
    fn what_is_no_column_of_a_table_is_none() {
        assert!(found("(o.total > $9)").is_empty());
        assert!(found("(cte.total > $1)").is_empty());
        assert!(found("($1 < count(*))").is_empty());
        assert!(found("(o.at > (now() - $1))").is_empty());
        assert!(found("(o.total > ($1 * o.fee))").is_empty());
        assert!(found("(($1 IS NULL) OR (o.total > 1))").is_empty());
        // Its value is computed by what may do anything.
        assert_eq!(found("(shop.fee(o.id) = $1)"), ["1 o o.id ="]);
    }
}
