//! How numbers are set on the page.

/// A share of a length as CSS and SVG take it.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A text whose negative numbers have a real minus sign and whose percent signs stay with their number;
/// hyphens in names stay.
pub(crate) fn typeset(text: &str) -> String {
    let mut set = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let minus =
            c == '-' && " [(".contains(before) && rest.peek().is_some_and(char::is_ascii_digit);
        let glued = c == ' ' && rest.peek() == Some(&'%');
        set.push(match c {
            _ if minus => '−',
            _ if glued => '\u{a0}',
            c => c,
        });
        before = c;
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_negative_numbers_get_a_minus_sign_and_percent_signs_are_not_parted() {
        assert_eq!(
            typeset("range-16 -3.4 % [-4.1, -2.7]"),
            "range-16 −3.4\u{a0}% [−4.1, −2.7]"
        );
    }
}
