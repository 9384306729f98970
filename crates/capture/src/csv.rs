//! Values between commas, as PostgreSQL writes them: `"` around what needs it, doubled inside.

use std::borrow::Cow;

/// Whether a quote is open at the end of a line, if it was `before`.
pub(crate) fn is_open(line: &[u8], before: bool) -> bool {
    let quotes = line.iter().filter(|byte| **byte == b'"').count();
    before != (quotes % 2 == 1)
}

/// The fields of a record; absent if a quote stands where none may be.
pub(crate) fn fields(record: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted(inside)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (field, after) = rest.split_at_checked(end)?;
                if field.contains('"') {
                    return None;
                }
                (Cow::Borrowed(field), after)
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() || after == "\r" => return Some(fields),
            None => return None,
        }
    }
}

/// A field whose opening quote is gone, and what follows the closing one.
fn quoted(inside: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut from = 0;
    let mut doubled = false;
    loop {
        let at = from + inside.get(from..)?.find('"')?;
        let after = inside.get(at + 1..)?;
        if after.starts_with('"') {
            doubled = true;
            from = at + 2;
            continue;
        }
        let field = inside.get(..at)?;
        let field = match doubled {
            true => Cow::Owned(field.replace("\"\"", "\"")),
            false => Cow::Borrowed(field),
        };
        return Some((field, after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_fields_come_back(written in proptest::collection::vec(".{0,12}|[\"\n,]{0,9}", 2..9)) {
            let quoted: Vec<String> =
                written.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
            let record = quoted.join(",");
            prop_assert!(!is_open(record.as_bytes(), false));
            let found = fields(&record).unwrap();
            prop_assert_eq!(found, written);
        }
    }

    #[test]
    fn fields_are_what_was_written() {
        let fields = |text| fields(text).map(|fields| fields.join("|"));
        assert_eq!(
            fields("a,\"b\"\"c\",,\"d,\ne\"").as_deref(),
            Some("a|b\"c||d,\ne")
        );
        assert_eq!(fields(",").as_deref(), Some("|"));
        assert_eq!(fields("a,\"b\"\r").as_deref(), Some("a|b"));
        assert_eq!(fields("\"a"), None);
        assert_eq!(fields("\"a\"b,c"), None);
        assert_eq!(fields("a\"b"), None);
    }
}
