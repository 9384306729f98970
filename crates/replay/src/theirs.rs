//! Servers that somebody else runs, used as they are: what is checked before a statement of the user is sent.
//!
//! Nothing is created, changed, analysed or restarted there. A transaction that only reads stops writes, but
//! not everything that a powerful role may do, so the role must not be powerful.

use crate::reach::Reach;
use crate::session::query;
use deltabench_driver::Client;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_model::work::replay::DataSet;
use std::collections::{BTreeMap, BTreeSet};

/// Roles that may do to a server what a transaction that only reads does not stop, and what managed services
/// call their superusers. The first ones are those of PostgreSQL.
///
/// Source: PostgreSQL manual, "Predefined Roles"; the services' manuals.
const POWERFUL: [&str; 10] = [
    "pg_execute_server_program",
    "pg_write_server_files",
    "pg_read_server_files",
    "pg_signal_backend",
    "pg_signal_autovacuum_worker",
    "rds_superuser",
    "rds_replication",
    "cloudsqlsuperuser",
    "alloydbsuperuser",
    "azure_pg_admin",
];

/// Roles whose rights the login has or can take, of which it should have none: superusers, those that may
/// drop replication slots, and those above.
fn powers() -> String {
    let names = POWERFUL.map(|name| format!("'{name}'")).join(", ");
    format!(
        "SELECT r.rolname,
             CASE WHEN r.rolsuper THEN 'superuser' WHEN r.rolreplication THEN 'replication' END
           FROM pg_catalog.pg_roles r
           WHERE (r.rolsuper OR r.rolreplication OR r.rolname IN ({names}))
             AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER')
           ORDER BY r.rolname <> current_user, r.rolname"
    )
}

/// Tables that the login may change.
const WRITABLE: &str = "SELECT count(*)::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
      AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')";

/// Relations of the user with their estimated rows and their pages.
const RELATIONS: &str = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname),
      c.relkind::text, c.reltuples::float8::text, c.relpages::text
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm', 'p', 'i', 'I', 'v', 'f') AND n.nspname NOT LIKE 'pg\\_%'
      AND n.nspname <> 'information_schema'";

/// What decides plans, times of reads and the meaning of values: everything but what only writes, logs,
/// connections, replication and files are about. Categories would be translated. Names with a dot are those
/// of extensions and applications, whose values may be secrets.
const SETTINGS: &str = "SELECT name, setting || coalesce(unit, '') FROM pg_catalog.pg_settings
    WHERE (context <> 'internal'
           OR name IN ('server_encoding', 'block_size', 'data_checksums', 'debug_assertions'))
      AND name !~ '[.]'
      AND name !~ '^(log_|logging_|syslog_|event_|ssl|unix_socket_|listen_|krb_|gss_|bonjour|authenti)'
      AND name !~ '^(archive_|restore_|recovery_(target|end|init)|primary_|promote_|synchron(ous|ized)_)'
      AND name !~ '^(wal_|min_wal|max_wal|autovacuum_|vacuum_|bgwriter_|checkpoint_|commit_|fsync)'
      AND name !~ '^(full_page|max_slot|tcp_|client_|password_|scram_|update_process|trace_|transaction_)'
      AND name !~ '^(debug_(print|pretty|logical)|session_replication|track_(act|commit|counts|func))'
      AND name !~ '(_timeout|_interval|_file|_directory|_directories|_name|_command|_per_subscription)$'
      AND name !~ '^(max_(connections|logical_|replication_|sync_|active_repl)|superuser_|reserved_)'
      AND name NOT IN ('port', 'search_path', 'lc_messages', 'default_transaction_read_only', 'exit_on_error',
                       'restart_after_crash', 'allow_in_place_tablespaces', 'summarize_wal')";

/// Which cluster this is; a service may forbid to ask.
const SYSTEM: &str = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";

/// Which database, and since when its server runs.
const RUNNING: &str = "SELECT oid::text,
      EXTRACT(EPOCH FROM pg_catalog.pg_postmaster_start_time())::numeric::text
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

/// The database.
const DATABASE: &str = "SELECT pg_catalog.pg_database_size(oid)::text, datcollate, datctype,
      CASE WHEN pg_catalog.pg_is_in_recovery() THEN 't' ELSE 'f' END
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

/// Estimated rows or pages that differ by less are called the same: ANALYZE estimates them.
const ALIKE: f64 = 0.05;
/// Differences of one sort that are told one by one.
const TOLD: usize = 10;

/// What a server of somebody else has.
#[derive(Debug, Default)]
pub struct Theirs {
    /// By name: kind, estimated rows, pages.
    relations: BTreeMap<String, (String, f64, f64)>,
    settings: BTreeMap<String, String>,
    /// Bytes of the database; absent where the role may not ask.
    pub bytes: Option<u64>,
    collate: [String; 2],
    is_standby: bool,
    pub data_set: DataSet,
    /// Tables that the role may change.
    writable: u64,
}

impl Theirs {
    /// Looks at a server, and changes nothing.
    ///
    /// Errors: it cannot be reached; a role that may do too much; a statement that it refuses.
    pub fn of(reach: &Reach) -> Result<Self, Problem> {
        let mut client = reach.own()?;
        check_role(reach, &mut client)?;
        let mut found = Self::read(&mut client).map_err(|problem| reach.named(problem))?;
        found.data_set = data_set(&mut client);
        // Our own sessions have a path of their own.
        let path = query(&mut reach.plain()?, "SHOW search_path");
        let path = path.map_err(|problem| reach.named(problem))?;
        let path = path.into_iter().flatten().flatten().next();
        let named = path.map(|path| ("search_path".to_owned(), path));
        found.settings.extend(named);
        Ok(found)
    }

    fn read(client: &mut Client) -> Result<Self, Problem> {
        let mut found = Self::default();
        for row in query(client, RELATIONS)? {
            if let Ok([Some(name), Some(kind), Some(rows), Some(pages)]) =
                <[Option<String>; 4]>::try_from(row)
            {
                let number = |text: String| text.parse().unwrap_or(0.0);
                found
                    .relations
                    .insert(name, (kind, number(rows), number(pages)));
            }
        }
        for row in query(client, SETTINGS)? {
            if let Ok([Some(name), Some(value)]) = <[Option<String>; 2]>::try_from(row) {
                found.settings.insert(name, value);
            }
        }
        // It needs CONNECT, which the role has.
        for row in query(client, DATABASE)? {
            if let Ok([bytes, Some(collate), Some(ctype), Some(standby)]) =
                <[Option<String>; 4]>::try_from(row)
            {
                found.bytes = bytes.and_then(|bytes| bytes.parse().ok());
                found.collate = [collate, ctype];
                found.is_standby = standby == "t";
            }
        }
        let writable = query(client, WRITABLE)?
            .into_iter()
            .flatten()
            .flatten()
            .next();
        found.writable = writable.and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(found)
    }

    /// What a reader should know of this server; `base` is absent for the base itself.
    pub fn notes(&self, name: &str, base: Option<&Self>) -> Vec<String> {
        let mut notes = Vec::new();
        if base.is_some_and(|base| self.data_set.is_same_server(&base.data_set)) {
            notes.push(format!(
                "one-server: {name} is the server and the database of the base; only roles and connections \
                 can differ"
            ));
        }
        if self.writable > 0 {
            notes.push(format!(
                "role: on {name} it may change {} tables; deltabench's transactions only read, and a role \
                 that may only read is safer",
                self.writable
            ));
        }
        if self.is_standby {
            notes.push(format!(
                "standby: {name} replays the log of a primary while it is measured"
            ));
        }
        notes
    }

    /// How the data set of `other` differs from this one, the base's.
    ///
    /// Errors: the base has no table; they have none in common.
    pub fn differences(&self, other: &Self, name: &str) -> Result<Vec<String>, Problem> {
        if self.tables().next().is_none() {
            return Err(Problem::new("the database of the base has no table")
                .hint("name the database that the statements are of"));
        }
        let mine: BTreeSet<&String> = self.relations.keys().collect();
        let its: BTreeSet<&String> = other.relations.keys().collect();
        if !self.tables().any(|table| its.contains(table)) {
            return Err(Problem::new("the two databases have no table in common")
                .detail(format!("{name} has nothing of what the base has"))
                .hint("name the same database on both servers: two restores of one snapshot"));
        }
        let mut told = Vec::new();
        let missing = mine.difference(&its).map(|name| (*name).clone());
        told.extend(few(&format!("{name} lacks"), missing.collect()));
        let more = its.difference(&mine).map(|name| (*name).clone());
        told.extend(few(&format!("only {name} has"), more.collect()));
        let (mut rows, mut pages, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for (relation, (kind, base_rows, base_pages)) in &self.relations {
            let Some((_, their_rows, their_pages)) = other.relations.get(relation) else {
                continue;
            };
            // Views have none, and the rows of an index are those of its table.
            let has_rows = matches!(kind.as_str(), "r" | "m" | "p");
            let never = |rows: f64, pages: f64| rows < 0.0 || (rows == 0.0 && pages > 0.0);
            if has_rows && (never(*base_rows, *base_pages) != never(*their_rows, *their_pages)) {
                unknown.push(relation.clone());
            } else if has_rows && differs(*base_rows, *their_rows) {
                rows.push(format!("{relation} {base_rows:.0} → {their_rows:.0}"));
            }
            if differs(*base_pages, *their_pages) {
                pages.push(format!("{relation} {base_pages:.0} → {their_pages:.0}"));
            }
        }
        told.extend(few(
            &format!("only one of base and {name} has statistics of (ANALYZE it)"),
            unknown,
        ));
        told.extend(few(&format!("estimated rows, base → {name}:"), rows));
        told.extend(few(&format!("pages, base → {name}:"), pages));
        told.extend(self.sizes(other, name));
        let settings = self.settings.iter().filter_map(|(setting, base)| {
            let its = other.settings.get(setting)?;
            (base != its).then(|| format!("{setting} {base} → {its}"))
        });
        let settings: Vec<String> = settings.collect();
        if !settings.is_empty() {
            // All of them: the one that matters may be the last.
            told.push(format!("settings, base → {name}: {}", settings.join(", ")));
        }
        Ok(told)
    }

    /// The names of what can have rows.
    fn tables(&self) -> impl Iterator<Item = &String> {
        let all = self.relations.iter();
        let tables = all.filter(|(_, (kind, _, _))| matches!(kind.as_str(), "r" | "p" | "m" | "f"));
        tables.map(|(name, _)| name)
    }

    fn sizes(&self, other: &Self, name: &str) -> Vec<String> {
        let mut told = Vec::new();
        if let (Some(base), Some(its)) = (self.bytes, other.bytes)
            && differs(to_f64(base), to_f64(its))
        {
            told.push(format!(
                "size of the database, base → {name}: {} MB → {} MB",
                base >> 20,
                its >> 20
            ));
        }
        if self.collate != other.collate {
            told.push(format!(
                "locale, base → {name}: {} → {}",
                self.collate.join(" "),
                other.collate.join(" ")
            ));
        }
        told
    }
}

/// Which data set this is, as far as the role may ask.
fn data_set(client: &mut Client) -> DataSet {
    let mut first = |sql| {
        let rows = query(client, sql).unwrap_or_default();
        rows.into_iter().next().unwrap_or_default().into_iter()
    };
    let system = first(SYSTEM).next().flatten();
    let mut running = first(RUNNING);
    DataSet {
        system,
        database: running.next().flatten(),
        started: running.next().flatten(),
    }
}

/// Whether two counts are more apart than estimates of the same.
fn differs(one: f64, other: f64) -> bool {
    (one - other).abs() > ALIKE * one.abs().max(other.abs()) + 1.0
}

/// A sentence with the first of some; none without any.
fn few(what: &str, all: Vec<String>) -> Option<String> {
    let more = all.len().saturating_sub(TOLD);
    let first: Vec<String> = all.into_iter().take(TOLD).collect();
    let rest = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!first.is_empty()).then(|| format!("{what} {}{rest}", first.join(", ")))
}

/// Refuses a role that may do more than read.
fn check_role(reach: &Reach, client: &mut Client) -> Result<(), Problem> {
    let rows = query(client, &powers()).map_err(|problem| reach.named(problem))?;
    let mut powers = Vec::new();
    for row in rows {
        if let Ok([Some(role), power]) = <[Option<String>; 2]>::try_from(row) {
            powers.push(match power {
                Some(power) => format!("{role} ({power})"),
                None => role,
            });
        }
    }
    if powers.is_empty() {
        return Ok(());
    }
    let user = reach.user();
    Err(Problem::new("this role may do too much to replay statements of others")
        .detail(format!(
            "{}: {user} is, or may become, {}; a transaction that only reads does not stop what they may do",
            reach.name,
            powers.join(", ")
        ))
        .hint(
            "use a role that may only read: CREATE ROLE replayer LOGIN; GRANT pg_read_all_data TO replayer \
             (14 and newer), else GRANT SELECT ON ALL TABLES IN SCHEMA … TO replayer",
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theirs(relations: &[(&str, &str, f64, f64)]) -> Theirs {
        let relation = |(name, kind, rows, pages): &(&str, &str, f64, f64)| {
            ((*name).to_owned(), ((*kind).to_owned(), *rows, *pages))
        };
        Theirs {
            relations: relations.iter().map(relation).collect(),
            ..Theirs::default()
        }
    }

    #[test]
    fn what_differs_between_two_data_sets_is_told_and_noise_of_estimates_is_not() {
        let mut base = theirs(&[
            ("s.orders", "r", 1000.0, 100.0),
            ("s.gone", "r", 5.0, 1.0),
            ("s.stale", "r", 70.0, 9.0),
            ("s.orders_pkey", "i", 1000.0, 10.0),
        ]);
        let mut other = theirs(&[
            ("s.orders", "r", 1020.0, 160.0),
            ("s.new", "r", 5.0, 1.0),
            ("s.stale", "r", -1.0, 9.0),
            ("s.orders_pkey", "i", 1.0, 10.0),
        ]);
        base.settings
            .insert("work_mem".to_owned(), "4096kB".to_owned());
        other
            .settings
            .insert("work_mem".to_owned(), "65536kB".to_owned());
        base.collate = ["C", "C"].map(str::to_owned);
        other.collate = ["de_DE", "de_DE"].map(str::to_owned);
        let told = base.differences(&other, "new").unwrap();
        assert_eq!(
            told,
            [
                "new lacks s.gone",
                "only new has s.new",
                "only one of base and new has statistics of (ANALYZE it) s.stale",
                "pages, base → new: s.orders 100 → 160",
                "locale, base → new: C C → de_DE de_DE",
                "settings, base → new: work_mem 4096kB → 65536kB",
            ]
        );
        assert_eq!(base.differences(&base, "same").unwrap(), [""; 0]);
        base.data_set = DataSet {
            system: Some("7".to_owned()),
            database: Some("5".to_owned()),
            started: Some("now".to_owned()),
        };
        let same = base.notes("same", Some(&base));
        assert!(
            same[0].contains("is the server and the database of the base"),
            "{same:?}"
        );
        assert_eq!(base.notes("base", None), [""; 0]);
        let only_a_view = theirs(&[("public.pg_stat_statements", "v", 0.0, 0.0)]);
        assert!(only_a_view.differences(&base, "new").is_err());
        assert!(theirs(&[]).differences(&base, "new").is_err());
        let elsewhere = theirs(&[("x.y", "r", 1.0, 1.0)]);
        assert!(base.differences(&elsewhere, "new").is_err());
    }

    #[test]
    fn many_differences_are_counted() {
        let many: Vec<String> = (0..13).map(|number| number.to_string()).collect();
        assert!(few("x", many).unwrap().ends_with("9, and 3 more"));
    }
}
