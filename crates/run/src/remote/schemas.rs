//! Schemas of ours on servers of others: made with a mark, dropped by it.
//!
//! A schema's comment says which run made it, and in which process of which machine. While that process
//! lives its connection to the server holds an advisory lock by the schema's name. A schema is dropped only
//! if it is our role's, has such a comment, its maker was on this machine and is no more, and nobody holds
//! the lock. One whose maker was on another machine is told and left.

use crate::admin::{failed, number, query, text};
use deltabench_driver::admin::Client;
use deltabench_driver::{ServerError, WireError};
use deltabench_model::problem::Problem;
use deltabench_proc::Process;
use deltabench_proc::host::{boot_id, host_name};
use serde::{Deserialize, Serialize};

/// Start of the names of all schemas of deltabench.
const PREFIX: &str = "deltabench_";

/// Most bytes of a run's name in a schema's: an identifier has 63.
const RUN_BYTES: usize = 36;

/// First version that drops functions and procedures by one word.
const ROUTINE_SINCE: u64 = 110_000;

/// Name and version of the comment.
const FORMAT: (&str, u32) = ("deltabench.schema", 1);

/// What a schema's comment says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    format: String,
    version: u32,
    pub(super) run: String,
    /// Name of the machine, and the kernel's id of its boot: process ids of another boot mean nothing.
    pub(super) host: String,
    boot_id: String,
    /// The process, and when it started, in clock ticks since the boot.
    process: u32,
    started: Option<u64>,
}

/// Who made a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    We,
    /// A process of this machine that is no more.
    Dead,
    /// A process of this machine that lives.
    Alive,
    /// A process of another machine.
    Elsewhere,
}

impl Mark {
    /// That of this process.
    pub(super) fn ours(run: &str) -> Self {
        let process = std::process::id();
        Self {
            format: FORMAT.0.to_owned(),
            version: FORMAT.1,
            run: run.to_owned(),
            host: host_name().unwrap_or_default(),
            boot_id: boot_id().unwrap_or_default(),
            process,
            started: started(process),
        }
    }

    /// The mark in a schema's comment, if it has one.
    pub(super) fn read(comment: Option<&str>) -> Option<Self> {
        let mark: Self = serde_json::from_str(comment?).ok()?;
        ((mark.format.as_str(), mark.version) == FORMAT).then_some(mark)
    }

    /// The comment.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn maker(&self) -> Maker {
        let ours = Self::ours(&self.run);
        if *self == ours {
            return Maker::We;
        }
        if self.host != ours.host {
            return Maker::Elsewhere;
        }
        if self.boot_id == ours.boot_id && started(self.process) == self.started {
            return Maker::Alive;
        }
        Maker::Dead
    }
}

/// When a process started; absent if there is none.
fn started(process: u32) -> Option<u64> {
    Some(Process::of(process).stat()?.start_ticks)
}

/// The name of the schema of a run's server. It needs no quotes, and a run has it to itself.
pub(super) fn name(run: &str, place: usize) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let mut middle: String = run.chars().map(safe).collect();
    if middle.len() > RUN_BYTES {
        let hash = run.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        middle.truncate(RUN_BYTES - 17);
        middle = format!("{middle}_{hash:016x}");
    }
    format!("{PREFIX}{middle}_{place}")
}

/// Takes the advisory lock of a schema; false if somebody else has it.
pub(super) fn lock(client: &mut Client, schema: &str) -> Result<bool, Problem> {
    locking(client, "pg_try_advisory_lock", schema)
}

/// Gives it back.
pub(super) fn unlock(client: &mut Client, schema: &str) -> Result<(), Problem> {
    locking(client, "pg_advisory_unlock", schema).map(drop)
}

fn locking(client: &mut Client, function: &str, schema: &str) -> Result<bool, Problem> {
    let sql = format!("SELECT {function}(hashtext('deltabench'), hashtext('{schema}'))");
    let rows = query(client, &sql)?;
    Ok(rows.into_iter().next().map(text).as_deref() == Some("t"))
}

/// Makes a schema with its mark, in one transaction.
///
/// Errors: it already exists, and whose it is; no right to make it.
pub(super) fn make(client: &mut Client, schema: &str, mark: &str) -> Result<(), Problem> {
    let comment = mark.replace('\'', "''");
    let sql = format!("CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS '{comment}'");
    client.execute(&sql).map_err(|error| {
        if error.sqlstate() != Some("42P06") {
            return failed(&sql, &error);
        }
        let whose = match find(client, schema).ok().flatten() {
            Some((mark, true)) => format!("run {} on {} created it", mark.run, mark.host),
            Some((mark, false)) => {
                format!("it has the mark of run {}, and another owner", mark.run)
            }
            None => "it has no mark of deltabench".to_owned(),
        };
        Problem::new(format!("schema {schema} already exists"))
            .detail(whose)
            .hint("deltabench does not touch it; drop it if nobody needs it, and run again")
    })
}

/// The mark of a schema, and whether our role owns it; `None` if there is no such schema, or no mark on it.
fn find(client: &mut Client, schema: &str) -> Result<Option<(Mark, bool)>, Problem> {
    let sql = format!(
        "SELECT obj_description(oid, 'pg_namespace'), pg_get_userbyid(nspowner) = current_user \
         FROM pg_namespace WHERE nspname = '{schema}'"
    );
    let rows = query(client, &sql)?;
    Ok(rows.first().and_then(|row| {
        let mark = Mark::read(row.first()?.as_deref())?;
        Some((mark, row.get(1)?.as_deref() == Some("t")))
    }))
}

/// Drops a schema of deltabench; nothing to do if it is not there.
///
/// Errors: it is not ours, or something in another schema depends on what is in it.
pub(super) fn drop_schema(client: &mut Client, schema: &str) -> Result<(), Problem> {
    let there = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'");
    if number(client, &there)? == 0 {
        return Ok(());
    }
    let not_dropped =
        |why: String| Problem::new(format!("schema {schema} was not dropped")).detail(why);
    let kept = |why: String| {
        not_dropped(why).hint(format!(
            "remove the cause, then run: DROP SCHEMA {schema} CASCADE"
        ))
    };
    match find(client, schema)? {
        Some((_, true)) => {}
        _ => {
            let why = "it has no mark of deltabench, or another owner";
            return Err(not_dropped(why.to_owned()).hint("ask its owner what is in it"));
        }
    }
    // Partitions that others have attached to our tables would go with them unasked.
    let outside = format!(
        "SELECT count(*) FROM pg_depend AS d \
         JOIN pg_class AS t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid \
         LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid \
         LEFT JOIN pg_class AS v ON v.oid = r.ev_class \
         LEFT JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid \
         LEFT JOIN pg_class AS i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid \
         WHERE t.relnamespace = '{schema}'::regnamespace AND d.deptype IN ('n', 'a') \
         AND coalesce(v.relnamespace, c.connamespace, i.relnamespace) <> t.relnamespace"
    );
    match number(client, &outside)? {
        0 => {}
        dependants => {
            return Err(kept(format!(
                "{dependants} views, foreign keys or tables in other schemas depend on what is in it"
            )));
        }
    }
    // Never CASCADE: functions, defaults and columns of others that use what is in it would go with it.
    let sql = format!("DROP SCHEMA {schema} RESTRICT");
    empty(client, schema)
        .and_then(|()| {
            client
                .execute(&sql)
                .map_err(|error| in_the_way(&sql, &error))
        })
        .map_err(|refused| kept(refused.detail.unwrap_or(refused.error)))
}

/// Drops what our role has in a schema: tables, and what workloads of users may have made beside them. What
/// is of others stays.
///
/// Errors: something that stays depends on it.
fn empty(client: &mut Client, schema: &str) -> Result<(), Problem> {
    let version_num = number(client, "SELECT current_setting('server_version_num')")?;
    let routine = match version_num {
        ROUTINE_SINCE.. => "ROUTINE",
        _ => "FUNCTION",
    };
    let relation = |kinds: &str| {
        format!(
            "SELECT '{schema}.' || quote_ident(relname) FROM pg_class WHERE relkind IN ({kinds}) \
             AND relnamespace = '{schema}'::regnamespace AND pg_get_userbyid(relowner) = current_user"
        )
    };
    let routines = format!(
        "SELECT '{schema}.' || quote_ident(proname) || '(' || pg_get_function_identity_arguments(oid) || ')' \
         FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace \
         AND pg_get_userbyid(proowner) = current_user"
    );
    let types = format!(
        "SELECT '{schema}.' || quote_ident(typname) FROM pg_type \
         WHERE typnamespace = '{schema}'::regnamespace AND pg_get_userbyid(typowner) = current_user \
         AND (typtype IN ('d', 'e', 'r') OR typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c'))"
    );
    let kinds = [
        ("VIEW", relation("'v'")),
        ("MATERIALIZED VIEW", relation("'m'")),
        ("TABLE", relation("'r', 'p'")),
        ("SEQUENCE", relation("'S'")),
        (routine, routines),
        ("TYPE", types),
    ];
    // Twice: tables may use functions, and functions tables.
    drop_kinds(client, &kinds).or_else(|_| drop_kinds(client, &kinds))
}

/// Drops all objects of these kinds: those of one kind at once, because they may use each other, but
/// functions one by one, because tables may use some of them.
///
/// Errors: the first that could not be dropped; all others are.
fn drop_kinds(client: &mut Client, kinds: &[(&str, String)]) -> Result<(), Problem> {
    let mut result = Ok(());
    for (kind, sql) in kinds {
        let names: Vec<String> = query(client, sql)?.into_iter().map(text).collect();
        let at_once = match *kind {
            "ROUTINE" | "FUNCTION" => 1,
            _ => names.len().max(1),
        };
        for names in names.chunks(at_once) {
            let sql = format!("DROP {kind} {} RESTRICT", names.join(", "));
            let dropped = client
                .execute(&sql)
                .map_err(|error| in_the_way(&sql, &error));
            result = result.and(dropped);
        }
    }
    result
}

/// With the server's list of what depends on what was to be dropped.
fn in_the_way(sql: &str, error: &WireError) -> Problem {
    let refused = failed(sql, error);
    match error {
        WireError::Server(ServerError {
            detail: Some(detail),
            ..
        }) => refused.detail(format!("{error}: {detail}\nin: {sql}")),
        _ => refused,
    }
}

/// Drops what is left of runs of this machine that were killed, and tells what other machines have left.
///
/// Errors: what the server answered.
pub(super) fn sweep(
    client: &mut Client,
    at: &str,
    note: &mut dyn FnMut(String),
) -> Result<(), Problem> {
    let sql = format!(
        "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace \
         WHERE nspname ~ '^{PREFIX}[a-z0-9_]+$' AND pg_get_userbyid(nspowner) = current_user \
         ORDER BY nspname"
    );
    for row in query(client, &sql)? {
        let [Some(schema), comment] = row.as_slice() else {
            continue;
        };
        let Some(mark) = Mark::read(comment.as_deref()) else {
            continue;
        };
        let maker = mark.maker();
        let locked = schema
            .strip_suffix(crate::site::WORK_SUFFIX)
            .unwrap_or(schema);
        if maker == Maker::Alive || !lock(client, locked)? {
            continue;
        }
        let swept = match maker {
            Maker::Elsewhere => {
                note(format!(
                    "{at}: run {} on {} left schema {schema}; if that run has ended: DROP SCHEMA \
                     {schema} CASCADE",
                    mark.run, mark.host
                ));
                Ok(())
            }
            _ => drop_schema(client, schema).map(|()| {
                note(format!(
                    "{at}: dropped schema {schema} of run {}, which was killed",
                    mark.run
                ));
            }),
        };
        unlock(client, locked)?;
        if let Err(problem) = swept {
            note(format!("{at}: {problem}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_short_and_one_run_s_own() {
        assert_eq!(
            name("20261121-112000-cdef", 2),
            "deltabench_20261121_112000_cdef_2"
        );
        let long = |end: &str| name(&format!("{}{end}", "a\"; drop ".repeat(20)), 12);
        assert_ne!(long("x"), long("y"));
        for name in [long("x"), name("Ünïcode.run", 0)] {
            assert!(name.len() + "_work".len() <= 63, "{name}");
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{name}"
            );
        }
    }

    #[test]
    fn a_mark_says_whether_its_maker_lives() {
        let ours = Mark::ours("r");
        assert_eq!(Mark::read(Some(&ours.text())), Some(ours.clone()));
        assert_eq!(ours.maker(), Maker::We);
        let changed = |change: fn(&mut Mark)| {
            let mut mark = ours.clone();
            change(&mut mark);
            mark.maker()
        };
        assert_eq!(changed(|mark| mark.host.push('x')), Maker::Elsewhere);
        assert_eq!(changed(|mark| mark.boot_id.push('x')), Maker::Dead);
        assert_eq!(changed(|mark| mark.started = Some(1)), Maker::Dead);
        let other = |mark: &mut Mark| {
            mark.process = 1;
            mark.started = started(1);
        };
        assert_eq!(changed(other), Maker::Alive);
    }

    #[test]
    fn other_comments_are_no_marks() {
        for comment in [None, Some(""), Some("deltabench"), Some("{}")] {
            assert_eq!(Mark::read(comment), None, "{comment:?}");
        }
        let mut newer = Mark::ours("r");
        newer.version += 1;
        assert_eq!(Mark::read(Some(&newer.text())), None);
    }
}
