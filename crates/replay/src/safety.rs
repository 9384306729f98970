//! What is not executed: a transaction that only reads does not stop every function.

use crate::session::query;
use deltabench_capture::{Token, tokens};
use deltabench_driver::Client;
use deltabench_model::problem::Problem;
use std::collections::BTreeSet;

/// Functions of the server itself that do something to it, to the session or to others.
///
/// Source: PostgreSQL manual, "System Administration Functions" and "Large Objects".
const HARMFUL: [&str; 17] = [
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
    "gin_clean_pending_list",
    "lowrite",
    "pg_current_xact_id",
    "pg_export_snapshot",
    "txid_current",
];
/// Beginnings of names of such functions.
const HARMFUL_FAMILIES: [&str; 22] = [
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
    "brin_",
    "pg_clear_",
    "pg_copy_",
    "pg_restore_",
    "pg_sync_",
];
/// Volatile functions of the server that only tell something; all others of it are refused, those that we do
/// not know included.
const TELLING: &str = "'array_sample', 'array_shuffle', 'clock_timestamp', 'current_query', 'currval',
  'gen_random_uuid', 'lastval', 'pg_blocking_pids', 'pg_current_wal_flush_lsn', 'pg_current_wal_insert_lsn',
  'pg_current_wal_lsn', 'pg_current_xlog_insert_location', 'pg_current_xlog_location', 'pg_database_size',
  'pg_indexes_size', 'pg_is_in_recovery', 'pg_is_wal_replay_paused', 'pg_is_xlog_replay_paused',
  'pg_jit_available', 'pg_last_committed_xact', 'pg_last_wal_receive_lsn', 'pg_last_wal_replay_lsn',
  'pg_last_xact_replay_timestamp', 'pg_last_xlog_receive_location', 'pg_last_xlog_replay_location',
  'pg_partition_ancestors', 'pg_partition_tree', 'pg_relation_size', 'pg_sequence_last_value',
  'pg_table_size', 'pg_tablespace_size', 'pg_total_relation_size', 'pg_xact_commit_timestamp',
  'pg_xact_status', 'random', 'random_normal', 'setseed', 'timeofday', 'txid_status', 'uuidv4',
  'uuidv7'";

/// Functions of the server that change something which a copy has of its own.
const WRITING: [&str; 1] = ["nextval"];

/// Volatile functions of the user on a server, and views that call one.
const VOLATILE: &str = "WITH RECURSIVE
  functions AS (
    SELECT p.oid, p.proname AS name FROM pg_catalog.pg_proc p
      JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
      WHERE p.provolatile = 'v'
        AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype,
          'pg_catalog.event_trigger'::pg_catalog.regtype)
        AND n.nspname NOT IN ('pg_catalog', 'information_schema')),
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

/// The views of the user on a server with their queries: no catalog says that one calls a function of the
/// server itself.
const VIEWS: &str = "SELECT c.relname, pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// What has effects of its own on a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volatile {
    pub functions: BTreeSet<String>,
    /// Views that call one of them.
    pub views: BTreeSet<String>,
    /// Volatile functions of the server itself, but those that only tell something.
    pub of_server: BTreeSet<String>,
    /// Views that call one of these, or another function that does something.
    pub harmful_views: BTreeSet<String>,
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
        let of_server = format!(
            "SELECT proname FROM pg_catalog.pg_proc
               WHERE provolatile = 'v' AND pronamespace = 'pg_catalog'::pg_catalog.regnamespace
                 AND prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
                 AND NOT 'pg_catalog.internal'::pg_catalog.regtype::pg_catalog.oid = ANY (proargtypes)
                 AND proname NOT IN ({TELLING})"
        );
        let names = query(client, &of_server)?.into_iter().flatten();
        found.of_server = names.flatten().collect();
        let views: Vec<(String, String)> = query(client, VIEWS)?
            .into_iter()
            .filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(name), Some(text)]) => Some((name, text)),
                _ => None,
            })
            .collect();
        found.add_views(&views);
        Ok(found)
    }

    /// What has effects on this server or on another one.
    pub fn merge(&mut self, other: Self) {
        let Self {
            functions,
            views,
            of_server,
            harmful_views,
        } = other;
        self.functions.extend(functions);
        self.views.extend(views);
        self.of_server.extend(of_server);
        self.harmful_views.extend(harmful_views);
    }

    /// Finds the views that do something, and those that read such a view.
    fn add_views(&mut self, views: &[(String, String)]) {
        loop {
            let others = views
                .iter()
                .filter(|(name, _)| !self.harmful_views.contains(name));
            let harmful: Vec<String> = others
                .filter(|(_, text)| self.objection(&tokens(text).tokens, true).is_some())
                .map(|(name, _)| name.clone())
                .collect();
            if harmful.is_empty() {
                return;
            }
            self.harmful_views.extend(harmful);
        }
    }

    /// Why a read is not executed; absent if it may be. With `allowed`, functions of the user may be.
    pub fn objection(&self, tokens: &[Token<'_>], allowed: bool) -> Option<String> {
        self.objection_but(tokens, allowed, &[])
    }

    /// Why a write is not executed on a copy; absent if it may be.
    pub fn objection_to_write(&self, tokens: &[Token<'_>], allowed: bool) -> Option<String> {
        self.objection_but(tokens, allowed, &WRITING)
    }

    /// `fine` are functions that may be called.
    fn objection_but(&self, tokens: &[Token<'_>], allowed: bool, fine: &[&str]) -> Option<String> {
        let mut names = tokens.iter().enumerate().filter_map(|(at, token)| {
            let name = token.name().filter(|name| !fine.contains(&name.as_str()))?;
            let next = tokens.get(at + 1);
            let called = next.is_some_and(|next| next.is_mark("(")) && !is_target(tokens, at);
            Some((name, called))
        });
        names.find_map(|(name, called)| {
            if called && (is_harmful(&name) || self.of_server.contains(&name)) {
                return Some(format!("it calls {name}"));
            }
            if called && !allowed && self.functions.contains(&name) {
                return Some(format!(
                    "it calls {name}, a volatile function of the database"
                ));
            }
            if self.harmful_views.contains(&name) {
                return Some(format!("the view {name} does more than read"));
            }
            let view = !allowed && self.views.contains(&name);
            view.then(|| format!("the view {name} calls a volatile function of the database"))
        })
    }
}

/// Whether the name in this place is the table of an `INSERT INTO t (…)`.
fn is_target(tokens: &[Token<'_>], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|place| tokens.get(place));
    let into = |back: usize| before(back).is_some_and(|token| token.is_word("into"));
    into(1) || (before(1).is_some_and(|token| token.is_mark(".")) && into(3))
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

    fn volatile() -> Volatile {
        Volatile {
            functions: BTreeSet::from(["send_mail".to_owned()]),
            views: BTreeSet::from(["outbox".to_owned()]),
            of_server: BTreeSet::from(["query_to_xml".to_owned()]),
            harmful_views: BTreeSet::new(),
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
            "select txid_current()",
            "select brin_summarize_new_values('i')",
            "select query_to_xml('delete from t', true, true, '')",
        ] {
            assert!(objection(text, true).is_some(), "{text}");
        }
    }

    #[test]
    fn a_write_may_take_a_number_from_a_sequence_and_a_table_is_no_function() {
        let mut known = volatile();
        known.of_server.insert("nextval".to_owned());
        let write = |text: &str| known.objection_to_write(&tokens(text).tokens, false);
        assert_eq!(write("insert into t values (nextval('s'))"), None);
        assert_eq!(write("insert into shop.lo_items (a) values (1)"), None);
        assert_eq!(write("insert into dblink_hosts (a) values (1)"), None);
        assert!(write("insert into t select * from dblink('host=x', 'q')").is_some());
        assert!(write("update t set a = send_mail(1)").is_some());
        let read = tokens("select nextval('s')");
        assert!(known.objection(&read.tokens, true).is_some());
    }

    #[test]
    fn a_view_that_takes_a_lock_is_not_read_and_neither_is_one_that_reads_it() {
        let mut known = volatile();
        let view = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        known.add_views(&[
            view("open_jobs", " SELECT id FROM my_jobs"),
            view(
                "my_jobs",
                " SELECT id FROM jobs WHERE pg_try_advisory_lock(id)",
            ),
            view("outbox", " SELECT send_mail(id) FROM mails"),
            view("all_jobs", " SELECT id, \"pg_notify\" FROM jobs"),
        ]);
        let expected = ["my_jobs", "open_jobs"].map(str::to_owned);
        assert_eq!(known.harmful_views, BTreeSet::from(expected));
        let read = |text: &str| known.objection(&tokens(text).tokens, true);
        assert!(read("select * from open_jobs").is_some());
        assert!(read("select * from all_jobs, outbox").is_none());
    }

    #[test]
    fn what_one_server_has_counts_for_all() {
        let mut all = Volatile::default();
        all.merge(volatile());
        all.merge(Volatile {
            harmful_views: BTreeSet::from(["my_jobs".to_owned()]),
            ..Volatile::default()
        });
        let says = |text: &str, allowed: bool| all.objection(&tokens(text).tokens, allowed);
        assert!(says("select * from my_jobs", true).is_some());
        assert!(says("select query_to_xml('x', true, true, '')", true).is_some());
        assert!(says("select send_mail(1)", false).is_some());
        assert!(says("select * from outbox", false).is_some());
    }
}
