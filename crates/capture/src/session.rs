//! What statements change in their session: the `search_path`.

use crate::lexer::{Token, TokenKind};

/// The `search_path` that `SET`, `RESET` or `DISCARD` makes: absent if the statement is another one,
/// `Some(None)` if it is the default again. `SET LOCAL` is none: it ends with a transaction.
pub(crate) fn path_set_by(tokens: &[Token<'_>]) -> Option<Option<String>> {
    let session = |token: &&Token<'_>| !token.is_word("session");
    let tokens: Vec<&Token<'_>> = tokens.iter().filter(session).collect();
    match tokens.as_slice() {
        [reset, name, ..] if reset.is_word("reset") => {
            (name.is_word("search_path") || name.is_word("all")).then_some(None)
        }
        // What poolers send between clients.
        [discard, all, ..] if discard.is_word("discard") => all.is_word("all").then_some(None),
        [set, name, sign, values @ ..] if set.is_word("set") && name.is_word("search_path") => {
            let assigns = sign.is_word("to") || sign.text == "=";
            let default = values.first().is_some_and(|value| value.is_word("default"));
            let values = values.iter().take_while(|value| !value.is_mark(";"));
            let path: Vec<&str> = values
                .filter(|value| value.kind != TokenKind::Mark)
                .map(|value| value.text)
                .collect();
            assigns.then(|| (!default).then(|| path.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    #[test]
    fn a_path_is_what_set_and_reset_make_it() {
        let path = |text: &str| path_set_by(&tokens(text).tokens);
        assert_eq!(
            path("set search_path to a,b"),
            Some(Some("a, b".to_owned()))
        );
        assert_eq!(
            path("SET SESSION search_path = 'a'"),
            Some(Some("'a'".to_owned()))
        );
        assert_eq!(path("set search_path to default"), Some(None));
        assert_eq!(path("reset all"), Some(None));
        assert_eq!(path("DISCARD ALL;"), Some(None));
        assert_eq!(path("discard plans"), None);
        assert_eq!(path("set local search_path to a"), None);
        assert_eq!(path("set work_mem to 1"), None);
        assert_eq!(path("select 1"), None);
    }
}
