//! What statements change in their session: the `search_path`, the role, temporary tables; and what of it
//! ends with a transaction.

use crate::kind::temporary_made_by;
use crate::lexer::{Token, TokenKind};
use crate::parts::statements;
use std::collections::BTreeMap;

/// What a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The `search_path`; absent is the default. `SET LOCAL` ends with the transaction.
    Path {
        path: Option<String>,
        local: bool,
    },
    /// The role; absent is that of the login.
    Role {
        role: Option<String>,
        local: bool,
    },
    Begin,
    Commit,
    Rollback,
    /// A temporary table, perhaps with `ON COMMIT DROP`.
    Makes {
        table: String,
        until_commit: bool,
    },
    Drops(Vec<String>),
    DropsAll,
}

/// What a text changes, in order.
pub(crate) fn effects(tokens: &[Token<'_>]) -> Vec<Effect> {
    let parts = statements(tokens).into_iter();
    parts.flat_map(of_statement).collect()
}

/// The `search_path` that a statement makes for its session: absent if it is another one, `Some(None)` if it
/// is the default again.
pub(crate) fn path_set_by(tokens: &[Token<'_>]) -> Option<Option<String>> {
    let mut paths = effects(tokens)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Path { path, local: false } => Some(path),
            _ => None,
        });
    paths.next_back()
}

fn of_statement(part: &[Token<'_>]) -> Vec<Effect> {
    let is = |at: usize, word: &str| part.get(at).is_some_and(|token| token.is_word(word));
    let path = |path| Effect::Path { path, local: false };
    let role = |role| Effect::Role { role, local: false };
    let first = part.first().map_or("", |token| token.text);
    match first.to_ascii_lowercase().as_str() {
        "set" => of_set(part.get(1..).unwrap_or_default())
            .into_iter()
            .collect(),
        "select" => set_config(part).into_iter().chain(made(part)).collect(),
        "reset" if is(1, "search_path") || is(1, "all") => vec![path(None)],
        "reset" if is(1, "role") || is(1, "session") => vec![role(None)],
        // What poolers send between clients.
        "discard" if is(1, "all") => vec![path(None), role(None), Effect::DropsAll],
        "discard" if is(1, "temp") || is(1, "temporary") => vec![Effect::DropsAll],
        "begin" => vec![Effect::Begin],
        "start" if is(1, "transaction") => vec![Effect::Begin],
        "commit" | "end" if !is(1, "prepared") => vec![Effect::Commit],
        "rollback" | "abort" if !is(1, "prepared") && !part.iter().any(|t| t.is_word("to")) => {
            vec![Effect::Rollback]
        }
        "drop" if is(1, "table") => vec![Effect::Drops(tables(part.get(2..).unwrap_or_default()))],
        _ => made(part).into_iter().collect(),
    }
}

fn made(part: &[Token<'_>]) -> Option<Effect> {
    let table = temporary_made_by(part)?;
    let until_commit = part.windows(3).any(|words| {
        let wanted = ["on", "commit", "drop"];
        words
            .iter()
            .zip(wanted)
            .all(|(token, word)| token.is_word(word))
    });
    Some(Effect::Makes {
        table,
        until_commit,
    })
}

/// Behind `SET`.
fn of_set(tokens: &[Token<'_>]) -> Option<Effect> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    let local = is(0, "local");
    let of_authorization = |at: usize| is(at, "session") && is(at + 1, "authorization");
    let begin = usize::from(local || is(0, "session") && !of_authorization(0));
    let value = |at: usize| {
        let mut values = tokens.get(at..).unwrap_or_default();
        if values
            .first()
            .is_some_and(|sign| sign.is_word("to") || sign.text == "=")
        {
            values = values.get(1..).unwrap_or_default();
        }
        values
    };
    let role = |values: &[Token<'_>]| {
        let role = values.first()?;
        let is_none = role.is_word("none") || role.is_word("default");
        let role = if is_none { None } else { Some(name(role)?) };
        Some(Effect::Role { role, local })
    };
    if of_authorization(begin) {
        return role(value(begin + 2));
    }
    if is(begin, "role") {
        return role(value(begin + 1));
    }
    if is(begin, "schema") {
        let path = Some(tokens.get(begin + 1)?.text.to_owned());
        return Some(Effect::Path { path, local });
    }
    let sign = tokens.get(begin + 1)?;
    if !is(begin, "search_path") || !(sign.is_word("to") || sign.text == "=") {
        return None;
    }
    let values = value(begin + 1);
    let default = values.first().is_some_and(|value| value.is_word("default"));
    let path: Vec<&str> = values
        .iter()
        .filter(|value| value.kind != TokenKind::Mark)
        .map(|value| value.text)
        .collect();
    let path = (!default).then(|| path.join(", "));
    Some(Effect::Path { path, local })
}

/// `SELECT set_config('search_path', 'a, b', false)`.
fn set_config(part: &[Token<'_>]) -> Option<Effect> {
    let at = part.iter().position(|token| token.is_word("set_config"))?;
    let [_, open, setting, _, value, _, local, ..] = part.get(at..)? else {
        return None;
    };
    let is_path = setting
        .string()
        .is_some_and(|setting| setting.eq_ignore_ascii_case("search_path"));
    if !open.is_mark("(") || !is_path {
        return None;
    }
    let path = match value.string()? {
        path if path.is_empty() => "''".to_owned(),
        path => path,
    };
    let no = ["false", "'f'", "'false'", "'off'"];
    let local = !no.iter().any(|no| local.text.eq_ignore_ascii_case(no));
    Some(Effect::Path {
        path: Some(path),
        local,
    })
}

/// A name, which may be written as a string.
fn name(token: &Token<'_>) -> Option<String> {
    token.name().or_else(|| token.string())
}

/// The names of a list, without their schemas.
fn tables(tokens: &[Token<'_>]) -> Vec<String> {
    let syntax = ["if", "exists", "cascade", "restrict"];
    let named = tokens.split(|token| token.is_mark(","));
    named
        .filter_map(|tokens| {
            let words = tokens.iter().filter(|token| token.kind != TokenKind::Mark);
            let mut words = words.filter(|token| !syntax.iter().any(|word| token.is_word(word)));
            words.next_back().and_then(name)
        })
        .collect()
}

/// What holds at a moment.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    pub path: Option<String>,
    pub role: Option<String>,
    /// Temporary tables, and whether they end with the transaction.
    pub temporary: BTreeMap<String, bool>,
}

/// What statements have changed in a session.
#[derive(Default)]
pub(crate) struct State {
    pub now: Scope,
    /// What holds after a `COMMIT`.
    kept: Scope,
    /// What held at `BEGIN`; absent outside of a transaction.
    before: Option<Scope>,
    has_failed: bool,
}

impl State {
    pub(crate) fn apply(&mut self, effect: &Effect) {
        let is_inside = self.before.is_some();
        match effect {
            // Outside of a transaction that is known it has no effect, or an end that the log may not have.
            Effect::Path { local: true, .. } | Effect::Role { local: true, .. } if !is_inside => {}
            Effect::Path { path, local } => {
                self.change(*local, |scope| scope.path.clone_from(path));
            }
            Effect::Role { role, local } => {
                self.change(*local, |scope| scope.role.clone_from(role));
            }
            Effect::Makes {
                table,
                until_commit,
            } => self.change(false, |scope| {
                scope.temporary.insert(table.clone(), *until_commit);
            }),
            Effect::Drops(tables) => self.change(false, |scope| {
                scope.temporary.retain(|table, _| !tables.contains(table));
            }),
            Effect::DropsAll => self.change(false, |scope| scope.temporary.clear()),
            Effect::Begin => {
                self.has_failed = false;
                self.before = Some(self.kept.clone());
            }
            Effect::Commit if self.has_failed => self.roll_back(),
            Effect::Commit => {
                self.kept.temporary.retain(|_, until_commit| !*until_commit);
                self.before = None;
                self.now = self.kept.clone();
            }
            Effect::Rollback => self.roll_back(),
        }
    }

    /// A statement failed: its transaction can only be rolled back.
    pub(crate) fn fail(&mut self) {
        self.has_failed = self.before.is_some();
    }

    fn change(&mut self, local: bool, change: impl Fn(&mut Scope)) {
        change(&mut self.now);
        if !local {
            change(&mut self.kept);
        }
    }

    fn roll_back(&mut self) {
        self.has_failed = false;
        if let Some(before) = self.before.take() {
            self.kept = before;
        }
        self.now = self.kept.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn after(texts: &[&str]) -> (Option<String>, Option<String>, Vec<String>) {
        let mut state = State::default();
        for text in texts {
            let failed = text.strip_prefix("!");
            match failed {
                Some(_) => state.fail(),
                None => effects(&tokens(text).tokens)
                    .iter()
                    .for_each(|e| state.apply(e)),
            }
        }
        let tables = state.now.temporary.into_keys().collect();
        (state.now.path, state.now.role, tables)
    }

    fn path_after(texts: &[&str]) -> String {
        after(texts).0.unwrap_or_else(|| "default".to_owned())
    }

    #[test]
    fn what_a_transaction_changes_ends_with_it_or_stays() {
        let set = "set search_path to a";
        assert_eq!(path_after(&["begin", set, "commit"]), "a");
        assert_eq!(path_after(&["begin", set, "rollback"]), "default");
        assert_eq!(path_after(&["begin", set, "!", "commit"]), "default");
        assert_eq!(path_after(&["begin", set, "rollback to s", "commit"]), "a");
        let local = "set local search_path to b";
        assert_eq!(path_after(&["begin", local]), "b");
        assert_eq!(
            path_after(&[set, "begin; set local search_path to b", "end"]),
            "a"
        );
        assert_eq!(path_after(&[local]), "default");
        assert_eq!(path_after(&["set schema 'c'"]), "'c'");
        assert_eq!(
            path_after(&["select set_config(E'search_path', $$c$$, 'f')"]),
            "c"
        );
        assert_eq!(
            path_after(&["select set_config('search_path', 'c, d', false)"]),
            "c, d"
        );
        assert_eq!(
            path_after(&["select pg_catalog.set_config('search_path', '', false)"]),
            "''"
        );
        assert_eq!(
            path_after(&["select set_config('search_path', 'c', true)"]),
            "default"
        );
        assert_eq!(
            path_after(&["select set_config('work_mem', '1', false)"]),
            "default"
        );
    }

    #[test]
    fn roles_are_those_of_the_session() {
        let role = |texts: &[&str]| after(texts).1.unwrap_or_else(|| "login".to_owned());
        assert_eq!(role(&["SET ROLE Owner"]), "owner");
        assert_eq!(role(&["set session role to 'My role'"]), "My role");
        assert_eq!(role(&["set role a", "set role none"]), "login");
        assert_eq!(role(&["set role a", "reset role"]), "login");
        assert_eq!(role(&["set session authorization b"]), "b");
        assert_eq!(role(&["set role a", "reset all"]), "a");
        assert_eq!(role(&["set role a", "discard all"]), "login");
        assert_eq!(role(&["begin", "set local role a", "commit"]), "login");
        assert_eq!(
            role(&["set session characteristics as transaction read only"]),
            "login"
        );
    }

    #[test]
    fn temporary_tables_end() {
        let tables = |texts: &[&str]| after(texts).2.join(" ");
        let make = "create temp table t (a int)";
        assert_eq!(tables(&[make]), "t");
        assert_eq!(
            tables(&[
                make,
                "create temp table u (a int)",
                "drop table if exists t, pg_temp.v"
            ]),
            "u"
        );
        assert_eq!(tables(&["select a into temp table \"U\" from t"]), "U");
        let both = "select set_config('search_path', 'c', false) into temp v";
        assert_eq!(tables(&[both]), "v");
        assert_eq!(path_after(&[both]), "c");
        assert_eq!(tables(&[make, "discard temp"]), "");
        assert_eq!(tables(&[make, "discard all"]), "");
        assert_eq!(tables(&["begin", make, "rollback"]), "");
        let dropped = "create temp table t (a int) on commit drop";
        assert_eq!(tables(&["begin", dropped]), "t");
        assert_eq!(tables(&["begin", dropped, "commit"]), "");
    }

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
