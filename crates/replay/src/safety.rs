//! What is not executed: a transaction that only reads does not stop every function.

use crate::session::query;
use deltabench_capture::Token;
use deltabench_driver::Client;
use deltabench_model::problem::Problem;
use std::collections::BTreeSet;

/// Functions of the server itself that do something to it, to the session or to others.
///
/// Source: PostgreSQL manual, "System Administration Functions" and "Large Objects".
const HARMFUL: [&str; 12] = [
    "pg_cancel_backend",
    "pg_terminate_backend",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_notify",
    "pg_promote",
    "pg_log_backend_memory_contexts",
    "set_config",
    "pg_sleep",
    "pg_sleep_for",
    "pg_sleep_until",
    "pg_stat_reset",
];
/// Beginnings of names of such functions.
const HARMFUL_FAMILIES: [&str; 17] = [
    "pg_advisory",
    "pg_try_advisory",
    "lo_",
    "dblink",
    "pg_read_",
    "pg_ls_",
    "pg_logical_",
    "pg_stat_reset_",
    "pg_replication_",
    "pg_switch_",
    "pg_create_",
    "pg_drop_",
    "pg_backup_",
    "pg_start_",
    "pg_stop_",
    "pg_wal_replay_",
    "pg_file_",
];

/// Volatile functions of the user on a server, and views that call one.
const VOLATILE: &str = "WITH RECURSIVE
  functions AS (
    SELECT p.oid, p.proname AS name FROM pg_catalog.pg_proc p
      JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
      WHERE p.provolatile = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema')),
  views(oid) AS (
    SELECT r.ev_class FROM pg_catalog.pg_rewrite r
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
        AND d.objid = r.oid
      JOIN functions f ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid = f.oid
    UNION
    SELECT r.ev_class FROM views v
      JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid = v.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid)
  SELECT 'f', name FROM functions
  UNION SELECT 'v', c.relname FROM views JOIN pg_catalog.pg_class c ON c.oid = views.oid";

/// What has effects of its own on a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volatile {
    pub functions: BTreeSet<String>,
    /// Views that call one of them.
    pub views: BTreeSet<String>,
}

impl Volatile {
    /// Asks a server.
    ///
    /// Errors: what it answers.
    pub fn of(client: &mut Client) -> Result<Self, Problem> {
        let mut found = Self::default();
        for row in query(client, VOLATILE)? {
            match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(kind), Some(name)]) if kind == "f" => found.functions.insert(name),
                Ok([Some(_), Some(name)]) => found.views.insert(name),
                _ => false,
            };
        }
        Ok(found)
    }

    /// Why a statement is not executed; absent if it may be. With `allowed`, functions of the user may be.
    pub fn objection(&self, tokens: &[Token<'_>], allowed: bool) -> Option<String> {
        let mut names = tokens.iter().enumerate().filter_map(|(at, token)| {
            let name = token.name()?;
            let called = tokens.get(at + 1).is_some_and(|next| next.is_mark("("));
            Some((name, called))
        });
        names.find_map(|(name, called)| {
            if called && is_harmful(&name) {
                return Some(format!("it calls {name}"));
            }
            if called && !allowed && self.functions.contains(&name) {
                return Some(format!(
                    "it calls {name}, a volatile function of the database"
                ));
            }
            let view = !allowed && self.views.contains(&name);
            view.then(|| format!("the view {name} calls a volatile function of the database"))
        })
    }
}

fn is_harmful(name: &str) -> bool {
    HARMFUL.contains(&name)
        || HARMFUL_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_capture::tokens;

    fn volatile() -> Volatile {
        Volatile {
            functions: BTreeSet::from(["send_mail".to_owned()]),
            views: BTreeSet::from(["outbox".to_owned()]),
        }
    }

    fn objection(text: &str, allowed: bool) -> Option<String> {
        volatile().objection(&tokens(text).tokens, allowed)
    }

    #[test]
    fn volatile_functions_and_views_that_call_them_are_objected_to() {
        for text in [
            "select send_mail(1)",
            "select shop.\"send_mail\" (1)",
            "select U&\"send\\005Fmail\"(1)",
            "select * from shop.outbox",
            "SELECT SEND_MAIL(1)",
        ] {
            assert!(objection(text, false).is_some(), "{text}");
            assert!(objection(text, true).is_none(), "{text}");
        }
        assert!(objection("select send_mail from t", false).is_none());
        assert!(objection("select lower('send_mail(1)')", false).is_none());
    }

    #[test]
    fn what_harms_the_server_is_never_executed() {
        for text in [
            "select pg_terminate_backend(pid) from pg_stat_activity",
            "select pg_catalog.set_config('role', 'x', false)",
            "select lo_unlink(3)",
            "select * from dblink('host=x', 'delete from t') as t(a int)",
            "select pg_try_advisory_lock(1)",
            "select pg_create_restore_point('x')",
            "select pg_wal_replay_pause()",
        ] {
            assert!(objection(text, true).is_some(), "{text}");
        }
    }
}
