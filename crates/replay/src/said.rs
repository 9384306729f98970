//! What a server said about an error, without the values of the user.

use deltabench_driver::ServerError;

/// Classes of SQLSTATEs whose messages may hold a value: data exceptions.
const OF_DATA: &str = "22";

/// The message of an error without these values, and without what a data exception quotes.
///
/// Shape: `values` as they were sent; what is shorter than two characters is left, because it is nobody's
/// secret and part of many words.
pub fn message(error: &ServerError, values: &[&str]) -> String {
    let mut message = error.message.lines().next().unwrap_or_default().to_owned();
    if error.sqlstate.starts_with(OF_DATA) {
        message = without_quoted(&message);
    }
    let mut values: Vec<&str> = values
        .iter()
        .copied()
        .filter(|value| value.chars().count() > 1)
        .collect();
    // The longest first: one may hold another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values {
        message = message.replace(value, "?");
    }
    message
}

/// What stands in double quotes, as `"?"`.
fn without_quoted(message: &str) -> String {
    let mut parts = message.split('"');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(_quoted) = parts.next() {
        text.push_str("\"?\"");
        text.push_str(parts.next().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sqlstate: &str, message: &str) -> ServerError {
        ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            detail: Some("secret".to_owned()),
            hint: None,
        }
    }

    #[test]
    fn values_do_not_leave_with_a_message() {
        let bad = error("22P02", "invalid input syntax for type integer: \"secret\"");
        assert_eq!(
            message(&bad, &[]),
            "invalid input syntax for type integer: \"?\""
        );
        let syntax = error("42601", "syntax error at or near \"secret\"");
        assert_eq!(
            message(&syntax, &["secret", "e"]),
            "syntax error at or near \"?\""
        );
        let table = error("42P01", "relation \"orders\" does not exist");
        assert_eq!(
            message(&table, &["x"]),
            "relation \"orders\" does not exist"
        );
    }

    #[test]
    fn a_value_within_another_hides_nothing_of_it() {
        let bad = error("42601", "near abcdef");
        assert_eq!(message(&bad, &["bc", "abcdef"]), "near ?");
    }
}
