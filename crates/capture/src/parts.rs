//! Where the statements of a text begin and end.

use crate::lexer::Token;

/// The statements of a text, without their semicolons. Semicolons in the body of a function (`BEGIN ATOMIC`)
/// and in brackets (`CREATE RULE … DO (a; b)`) do not end one.
pub fn statements<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut statements = Vec::new();
    let mut begin = 0;
    let (mut body, mut brackets) = (0_u32, 0_u32);
    let mut before: Option<&Token<'_>> = None;
    for (at, token) in tokens.iter().enumerate() {
        if token.is_word("atomic") && before.is_some_and(|before| before.is_word("begin")) {
            body = 1;
        } else if body > 0 && token.is_word("case") {
            body += 1;
        } else if body > 0 && token.is_word("end") {
            body -= 1;
        } else if token.is_mark("(") {
            brackets += 1;
        } else if token.is_mark(")") {
            brackets = brackets.saturating_sub(1);
        } else if body == 0 && brackets == 0 && token.is_mark(";") {
            statements.extend(tokens.get(begin..at));
            begin = at + 1;
        }
        before = Some(token);
    }
    statements.extend(tokens.get(begin..));
    statements.retain(|statement| !statement.is_empty());
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    #[test]
    fn the_body_of_a_function_does_not_end_its_statement() {
        let text = "create function f() returns int begin atomic; select case when true then 1 end; \
                    select 2; end; select 3;";
        let found = tokens(text);
        let count = statements(&found.tokens).len();
        assert_eq!(count, 2);
    }

    #[test]
    fn brackets_keep_the_commands_of_a_rule_together() {
        let count = |text: &str| statements(&tokens(text).tokens).len();
        assert_eq!(
            count("create rule r as on insert to t do also (select (1); delete from u); select 2"),
            2
        );
        assert_eq!(count("select 1); select 2"), 2);
    }
}
