//! What a statement does, and which of its functions depend on the moment: from its words alone.

use crate::lexer::{Token, TokenKind};
use crate::parts::statements;
use crate::statement::Kind;
use std::collections::BTreeSet;

/// What is known of a text from its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nature {
    /// What it does. Of several statements in one text: what can be replayed least.
    pub kind: Kind,
    /// Functions whose answer depends on the moment, on luck or on the session; sorted, each once.
    pub volatile: Vec<String>,
}

impl Nature {
    /// The nature of a text.
    pub fn of(tokens: &[Token<'_>]) -> Self {
        let kinds = statements(tokens).into_iter().map(kind);
        let temporary = tokens.iter().any(|token| token.is_word("pg_temp"));
        let kinds = kinds.chain(temporary.then_some(Kind::Temporary));
        let mut volatile: Vec<String> = volatile(tokens).collect();
        volatile.sort();
        volatile.dedup();
        Self {
            kind: kinds.max().unwrap_or(Kind::Utility),
            volatile,
        }
    }
}

/// The tokens that tell a statement from others: without the names that drivers number, of savepoints,
/// cursors and prepared statements that are freed.
pub(crate) fn in_common<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let parts = statements(tokens);
    // What is set may be a secret.
    let hidden: BTreeSet<usize> = parts
        .iter()
        .flat_map(|part| what_is_set(part).iter().chain(set_in_function(part)))
        .map(|token| token.at)
        .collect();
    let shown = |tokens: &[Token<'a>]| {
        let shown = tokens.iter().filter(|token| !hidden.contains(&token.at));
        shown.copied().collect::<Vec<_>>()
    };
    let [part] = parts.as_slice() else {
        return shown(tokens);
    };
    let first = part
        .first()
        .map_or("", |token| token.text)
        .to_ascii_lowercase();
    match first.as_str() {
        "savepoint" | "release" | "deallocate" | "fetch" | "move" | "close" => {
            part.iter().take(1).copied().collect()
        }
        "set" => shown(part),
        "rollback" => part
            .iter()
            .take_while(|token| !token.is_word("to"))
            .copied()
            .collect(),
        "declare" => {
            let (name, rest) = part.split_at_checked(2).unwrap_or_default();
            name.iter().take(1).chain(rest).copied().collect()
        }
        _ => shown(tokens),
    }
}

/// The value of a setting, from its sign on: of `SET`, and of `ALTER ROLE … SET` and its kin.
fn what_is_set<'a, 'b>(part: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let altered = [
        "role",
        "user",
        "database",
        "system",
        "function",
        "procedure",
        "routine",
    ];
    let is = |place: usize, word: &str| part.get(place).is_some_and(|token| token.is_word(word));
    let alters = is(0, "alter") && altered.iter().any(|kind| is(1, kind));
    let set = part.iter().position(|token| token.is_word("set"));
    let begin = set.filter(|at| *at == 0 || alters);
    let sign = |token: &Token<'_>| token.is_word("to") || token.text == "=";
    let sign = begin.and_then(|begin| Some(begin + part.get(begin..)?.iter().position(sign)?));
    sign.and_then(|sign| part.get(sign..)).unwrap_or_default()
}

/// The values of the settings of a function that is created, each from its sign on.
fn set_in_function<'a, 'b>(part: &'b [Token<'a>]) -> Vec<&'b Token<'a>> {
    let is = |place: usize, word: &str| part.get(place).is_some_and(|token| token.is_word(word));
    let kind = if is(1, "or") && is(2, "replace") {
        3
    } else {
        1
    };
    if !is(0, "create") || !(is(kind, "function") || is(kind, "procedure")) {
        return Vec::new();
    }
    // Statements of the body have a SET of their own.
    let body = ["begin", "return"];
    let is_body = |token: &Token<'_>| body.iter().any(|word| token.is_word(word));
    let head = part.split(is_body).next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = head.iter().peekable();
    while rest.by_ref().any(|token| token.is_word("set")) {
        // The name has points, and nothing else.
        let is_name = |token: &&Token<'_>| !token.is_word("to") && token.text != "=";
        while rest
            .next_if(|token| is_name(token) && !token.is_word("set"))
            .is_some()
        {}
        let mut goes_on = rest.peek().is_some_and(|token| !token.is_word("set"));
        while goes_on {
            // The sign or a comma, a sign of a number, and a value.
            found.extend(rest.next());
            found.extend(rest.next_if(|token| token.kind == TokenKind::Operator));
            found.extend(rest.next());
            goes_on = rest.peek().is_some_and(|token| token.is_mark(","));
        }
    }
    found
}

/// The name of the temporary table that a statement makes, without its schema.
pub(crate) fn temporary_made_by(tokens: &[Token<'_>]) -> Option<String> {
    let creates = tokens.first()?.is_word("create");
    let begin = if creates {
        tokens.iter().position(|token| token.is_word("table"))?
    } else {
        let into = tokens.iter().position(|token| token.is_word("into"))?;
        into + 1
    };
    // Most statements have neither word, and are not looked at any further.
    if Nature::of(tokens).kind != Kind::Temporary {
        return None;
    }
    let syntax = ["table", "temp", "temporary", "if", "not", "exists"];
    let rest = tokens.iter().skip(begin + 1);
    let mut rest = rest.skip_while(|token| syntax.iter().any(|word| token.is_word(word)));
    let mut name = rest.next()?;
    if rest.next().is_some_and(|point| point.is_mark(".")) {
        name = rest.next()?;
    }
    name.name()
}

fn kind(tokens: &[Token<'_>]) -> Kind {
    let word = |at: usize| {
        let token = tokens.get(at).filter(|token| token.kind == TokenKind::Word);
        token.map_or_else(String::new, |token| token.text.to_ascii_lowercase())
    };
    let next = word(1);
    match word(0).as_str() {
        "insert" | "update" | "delete" | "merge" => Kind::Write,
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
            Kind::Transaction
        }
        "prepare" if next == "transaction" => Kind::Transaction,
        "set" if next == "transaction" => Kind::Transaction,
        "copy" => Kind::Copy,
        "call" | "do" => Kind::Call,
        "declare" | "fetch" | "move" | "close" => Kind::Cursor,
        "create" if ["temp", "temporary"].contains(&next.as_str()) => Kind::Temporary,
        "create" if next == "local" || next == "global" => Kind::Temporary,
        "select" | "table" | "values" | "with" => of_query(tokens),
        "" if tokens.first().is_some_and(|token| token.is_mark("(")) => of_query(tokens),
        _ => Kind::Utility,
    }
}

/// A query may write in a part of its own, lock rows, make a table, or call functions that do more.
fn of_query(tokens: &[Token<'_>]) -> Kind {
    let mut kind = functions(tokens)
        .filter_map(effect)
        .max()
        .unwrap_or(Kind::Read);
    let mut depth = 0_i32;
    let mut from = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        let follows = |wanted: &[&str]| {
            let next = tokens.get(at + 1);
            next.is_some_and(|next| wanted.iter().any(|word| next.is_word(word)))
        };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let begins = before.is_some_and(|before| before.is_mark("(") || before.is_mark(")"));
        let writes = ["insert", "update", "delete", "merge"];
        from |= depth == 0 && token.is_word("from");
        let found = if begins && writes.iter().any(|word| token.is_word(word)) {
            // Not `for update of (…)`, whose word stands after `for`.
            Some(Kind::Write)
        } else if token.is_word("for") && follows(&["update", "share", "no", "key"]) {
            Some(Kind::Lock)
        } else if depth == 0 && !from && token.is_word("into") && kind != Kind::Write {
            let temporary = follows(&["temp", "temporary"]);
            Some(if temporary {
                Kind::Temporary
            } else {
                Kind::Utility
            })
        } else {
            None
        };
        kind = kind.max(found.unwrap_or(kind));
    }
    kind
}

/// Names that are called, without schema.
fn functions<'b>(tokens: &'b [Token<'_>]) -> impl Iterator<Item = String> + use<'b> {
    tokens.windows(2).filter_map(|pair| match pair {
        [name, bracket] if bracket.is_mark("(") => name.name(),
        _ => None,
    })
}

/// Functions that change something, by their names or the beginnings of their names.
const EFFECTS: [(&str, Kind); 26] = [
    ("nextval", Kind::Write),
    ("setval", Kind::Write),
    ("pg_notify", Kind::Write),
    ("lo_", Kind::Write),
    ("lowrite", Kind::Write),
    ("pg_advisory_", Kind::Lock),
    ("pg_try_advisory_", Kind::Lock),
    ("set_config", Kind::Utility),
    ("dblink", Kind::Call),
    ("http_", Kind::Call),
    ("lo_export", Kind::Call),
    ("lo_import", Kind::Call),
    ("pg_backup_", Kind::Call),
    ("pg_cancel_backend", Kind::Call),
    ("pg_create_", Kind::Call),
    ("pg_drop_", Kind::Call),
    ("pg_logical_", Kind::Call),
    ("pg_promote", Kind::Call),
    ("pg_reload_conf", Kind::Call),
    ("pg_replication_", Kind::Call),
    ("pg_rotate_", Kind::Call),
    ("pg_start_backup", Kind::Call),
    ("pg_stat_reset", Kind::Call),
    ("pg_stop_backup", Kind::Call),
    ("pg_switch_", Kind::Call),
    ("pg_terminate_backend", Kind::Call),
];

fn effect(name: String) -> Option<Kind> {
    let found = EFFECTS.iter().filter(|(begin, _)| name.starts_with(begin));
    found.map(|(_, kind)| *kind).max()
}

/// Functions without brackets.
const MOMENTS: [&str; 5] = [
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
];

const VOLATILE: [&str; 23] = [
    "clock_timestamp",
    "currval",
    "gen_random_bytes",
    "gen_random_uuid",
    "lastval",
    "nextval",
    "now",
    "pg_backend_pid",
    "pg_current_wal_lsn",
    "pg_current_xact_id",
    "random",
    "random_normal",
    "setseed",
    "setval",
    "statement_timestamp",
    "timeofday",
    "transaction_timestamp",
    "txid_current",
    "uuid_generate_v1",
    "uuid_generate_v1mc",
    "uuid_generate_v4",
    "uuidv4",
    "uuidv7",
];

/// Strings that mean a moment if they are read as a time.
const SPECIAL: [&str; 4] = ["'now'", "'today'", "'tomorrow'", "'yesterday'"];

fn volatile<'b>(tokens: &'b [Token<'_>]) -> impl Iterator<Item = String> + use<'b> {
    let called = functions(tokens).filter(|name| VOLATILE.contains(&name.as_str()));
    let words = tokens.iter().filter_map(|token| {
        let text = token.text.to_ascii_lowercase();
        let moment = match token.kind {
            TokenKind::Word => MOMENTS.contains(&text.as_str()),
            TokenKind::Literal => SPECIAL.contains(&text.as_str()),
            _ => false,
        };
        moment.then_some(text)
    });
    called.chain(words).chain(ages(tokens))
}

/// `age(x)` counts from today; `age(x, y)` does not.
fn ages<'b>(tokens: &'b [Token<'_>]) -> impl Iterator<Item = String> + use<'b> {
    let calls = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| match pair {
            [name, bracket] => name.is_word("age") && bracket.is_mark("("),
            _ => false,
        });
    let from_today = calls.filter(|(at, _)| {
        let mut depth = 0_i32;
        let inside = tokens.iter().skip(at + 1).take_while(|token| {
            depth += i32::from(token.is_mark("(")) - i32::from(token.is_mark(")"));
            depth > 0
        });
        // Good enough: a comma in a nested call hides the moment, and nothing more.
        !inside.into_iter().any(|token| token.is_mark(","))
    });
    from_today.map(|_| "age".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn kind(text: &str) -> Kind {
        Nature::of(&tokens(text).tokens).kind
    }

    #[test]
    fn the_kind_is_that_of_what_the_statement_does() {
        let cases = [
            ("SELECT 1", Kind::Read),
            ("(select 1) union (select 2)", Kind::Read),
            ("values (1)", Kind::Read),
            ("table t", Kind::Read),
            ("with a as (select 1) select * from a", Kind::Read),
            (
                "select \"update\" from t where a = 'for update'",
                Kind::Read,
            ),
            (
                "select extract(day from at), updated, into_stock from t",
                Kind::Read,
            ),
            ("/* for update */ select 1", Kind::Read),
            ("select * from t for update skip locked", Kind::Lock),
            ("select * from t FOR NO KEY UPDATE", Kind::Lock),
            ("select pg_advisory_xact_lock(1)", Kind::Lock),
            ("update t set a = 1", Kind::Write),
            (
                "with a as (delete from t returning *) select * from a",
                Kind::Write,
            ),
            (
                "with a as (select 1) insert into t select * from a",
                Kind::Write,
            ),
            ("select nextval('s')", Kind::Write),
            ("select 1; update t set a = 2", Kind::Write),
            (
                "merge into t using s on true when matched then do nothing",
                Kind::Write,
            ),
            ("select * into x from t", Kind::Utility),
            ("select * into temp x from t", Kind::Temporary),
            ("create temp table x (a int)", Kind::Temporary),
            ("create table x (a int)", Kind::Utility),
            ("select * from pg_temp.x", Kind::Temporary),
            ("set search_path to x", Kind::Utility),
            ("explain analyze select 1", Kind::Utility),
            ("execute p(1)", Kind::Utility),
            ("", Kind::Utility),
            ("begin", Kind::Transaction),
            ("BEGIN; select 1; commit", Kind::Transaction),
            (
                "set transaction isolation level serializable",
                Kind::Transaction,
            ),
            ("prepare transaction 'x'", Kind::Transaction),
            ("rollback to savepoint a", Kind::Transaction),
            ("declare c cursor for select 1", Kind::Cursor),
            ("fetch 10 from c", Kind::Cursor),
            ("copy t from stdin", Kind::Copy),
            ("call p()", Kind::Call),
            ("do $$ begin end $$", Kind::Call),
            (
                "select pg_terminate_backend(pid) from pg_stat_activity",
                Kind::Call,
            ),
            ("select dblink_exec('x', 'y')", Kind::Call),
            ("select pg_catalog.\"nextval\"('s')", Kind::Write),
        ];
        for (text, wanted) in cases {
            assert_eq!(kind(text), wanted, "{text}");
        }
    }

    #[test]
    fn functions_that_depend_on_the_moment_are_named() {
        let text = "select now(), NOW(), current_date, age(a), random(), 'today'::date, now from t";
        let nature = Nature::of(&tokens(text).tokens);
        assert_eq!(
            nature.volatile,
            ["'today'", "age", "current_date", "now", "random"]
        );
        let text = "select a.now, age(a, b), lower('x'), current_dates from t";
        assert!(Nature::of(&tokens(text).tokens).volatile.is_empty());
    }

    #[test]
    fn a_temporary_table_has_a_name() {
        let made = |text: &str| temporary_made_by(&tokens(text).tokens);
        assert_eq!(
            made("CREATE TEMP TABLE IF NOT EXISTS Scratch (a int)").as_deref(),
            Some("scratch")
        );
        assert_eq!(
            made("create temporary table pg_temp.x as select 1").as_deref(),
            Some("x")
        );
        assert_eq!(
            made("select 1 into temp table y from t").as_deref(),
            Some("y")
        );
        assert_eq!(made("select 1 into temp z").as_deref(), Some("z"));
        assert_eq!(made("create table x (a int)"), None);
    }

    #[test]
    fn names_that_drivers_number_are_no_difference() {
        let common = |text: &str| {
            let common = in_common(&tokens(text).tokens);
            crate::fingerprint::Fingerprint::of(&common).normalised
        };
        assert_eq!(common("SAVEPOINT sp_17"), "savepoint");
        assert_eq!(common("rollback to savepoint sp_17;"), "rollback");
        assert_eq!(
            common("declare c_1 no scroll cursor for select 1"),
            "declare no scroll cursor for select ?"
        );
        assert_eq!(common("set app.token to word"), "set app.token");
        assert_eq!(
            common("select 1; set app.token to word; select 2"),
            "select ?; set app.token; select ?"
        );
        assert_eq!(
            common("alter role app set app.token = word"),
            "alter role app set app.token"
        );
        assert_eq!(
            common("alter routine f(int) set app.token = word"),
            "alter routine f(int) set app.token"
        );
        for kind in ["function", "procedure"] {
            let text = format!(
                "create or replace {kind} f(a int = 5) set app.token = word, -word set b to word \
                 set c from current language sql begin atomic update t set a = b; end"
            );
            assert_eq!(
                common(&text),
                format!(
                    "create or replace {kind} f(a int = ?) set app.token set b set c from current \
                     language sql begin atomic update t set a = b; end"
                )
            );
        }
        assert_eq!(common("fetch forward 100 from c_1"), "fetch");
        assert_eq!(common("select 1; savepoint a"), "select ?; savepoint a");
    }
}
