//! What a replay says of statements whose values were made up.

use crate::words::plural;
use deltabench_model::replayed::{Replayed, ReplayedStatement};
use deltabench_model::units::count;

/// Beyond this many times as many rows, or as few, the values are not like those of production.
const FAR: f64 = 3.0;

/// `values made up: 3.1 rows for each call, 2.9 in the capture`: below the row of such a statement.
pub(super) fn words(statement: &ReplayedStatement) -> Option<String> {
    let made_up = statement.made_up?;
    Some(match (made_up.base_rows, made_up.captured_rows) {
        (Some(found), Some(captured)) => format!(
            "values made up: {} rows for each call on the base, {} in the capture",
            rows(found),
            rows(captured)
        ),
        _ => "values made up".to_owned(),
    })
}

/// In a table, behind the name of a statement.
pub(super) fn mark(statement: &ReplayedStatement) -> &'static str {
    match statement.made_up {
        Some(_) => " (values made up)",
        None => "",
    }
}

fn rows(mean: f64) -> String {
    format!("{mean:.1}")
}

/// How many statements have such values, and how well these find rows.
pub(super) fn notes(replayed: &Replayed) -> Option<String> {
    let made_up = || replayed.statements.iter().filter_map(|one| one.made_up);
    let all = count(made_up().count());
    if all == 0 {
        return None;
    }
    let both = made_up().filter_map(|it| Some((it.base_rows?, it.captured_rows?)));
    let both: Vec<(f64, f64)> = both.collect();
    let near =
        |(found, captured): &&(f64, f64)| *found <= captured * FAR && *captured <= found * FAR;
    let compared = match both.len() {
        0 => String::new(),
        of => format!(
            "; {} of {of} find between a third and three times the rows that the capture has for each call",
            both.iter().filter(near).count()
        ),
    };
    Some(format!(
        "values made up: for {}, because the capture has none: from rows of the tables that their parameters \
         are compared with; numbers that are compared with no column are 1, LIMIT is 10, OFFSET is 0; each \
         set of values counts the same{compared}",
        plural(all, "statement")
    ))
}
