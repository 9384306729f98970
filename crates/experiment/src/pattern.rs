//! Patterns with `*`.

/// Whether `text` is what `pattern` says; `*` stands for anything, also for nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        // The first place leaves the most for the others.
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_anything_and_all_else_is_itself() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "x"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*b*c", "a-b-b-c"),
            ("*b", "bb"),
            ("postgres:18*", "postgres:18.6 cx10a"),
            ("*.*", "18.6"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "x"),
            ("a", "ab"),
            ("ab*ba", "aba"),
            ("a*c", "abd"),
            ("*a*a*", "a"),
            ("b*", "ab"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
