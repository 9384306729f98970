//! Lines for a terminal.

/// Filled up with blanks on the right.
pub(crate) fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// Breaks a text at spaces, but not before a percent sign; the first line is indented by `first`, the others
/// by `next`.
pub fn wrapped(text: &str, width: usize, first: usize, next: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut used = first;
    let mut empty = true;
    // A number stays with its percent sign.
    let glued = text.replace(" %", "\u{a0}%");
    for word in glued.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if !empty && used + 1 + length > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(next)));
            used = next;
            empty = true;
        }
        if !empty {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word.replace('\u{a0}', " "));
        used += length;
        empty = false;
    }
    lines.push(line);
    lines
}

/// A text whose commands, in backticks, stay on one line when [`wrapped`] breaks it.
pub fn unbroken(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(at, part)| match at % 2 {
            0 => part.to_owned(),
            _ => part.replace(' ', "\u{a0}"),
        })
        .collect();
    parts.join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_the_width_and_lose_no_word() {
        let text = "one two three 4.5 % four five six seven eight nine ten";
        let lines = wrapped(text, 16, 0, 2);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 16),
            "{lines:?}"
        );
        assert_eq!(
            lines
                .join(" ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            text
        );
    }
}
