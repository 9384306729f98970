//! Servers with the tables of a user's data directory: one copy is prepared, the others are made of it.
//!
//! The directory itself is only read. What a copy must never do is taken out of it before its first start
//! with sockets: subscriptions, user mappings, event triggers, slots, passwords, libraries to load.

use crate::dump::reaching_out;
use crate::reach::{DATABASE, ROLE};
use crate::request::{DirectoryData, Request, Wish};
use crate::session::{query, quoted, run};
use deltabench_driver::Client;
use deltabench_model::problem::Problem;
use deltabench_server::{Cluster, ClusterSpec, DataDirectory, SUPERUSER, Workspace, check_upgrade};
use std::collections::{BTreeMap, BTreeSet};

/// Names that deltabench uses itself: the superuser, a role, two databases.
const OURS: [&str; 4] = [SUPERUSER, ROLE, DATABASE, "deltabench_replay_copy"];
/// The database that every server has for work on others.
const MAINTENANCE: &str = "postgres";
/// Bytes of a segment of the write-ahead log in a data directory that initdb makes unless it is told
/// otherwise.
const USUAL_SEGMENT: u32 = 16 << 20;
/// The first version with subscriptions.
const SUBSCRIPTIONS_SINCE: u32 = 100_000;
/// The first version with procedures, and `prokind`.
const PROCEDURES_SINCE: u32 = 110_000;
/// Roles of the server with which a session reaches files, programs or other sessions.
const POWERFUL: &str = "'pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files', \
                        'pg_signal_backend', 'pg_checkpoint', 'pg_create_subscription', 'pg_maintain'";
/// Settings of roles and databases that load libraries, name directories, or have values logged.
const HARMFUL: &str = "^(log_|session_preload|local_preload|dynamic_library|temp_tablespaces|\
                       default_tablespace|debug_|event_triggers)";

/// What is known of a copy once it is prepared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Name of the first superuser, which is a role without its rights now.
    pub superuser: String,
    /// The database that is replayed on.
    pub database: String,
    /// Subscriptions of the directory: none of them is in the copies.
    pub subscriptions: usize,
    /// Its extensions.
    pub extensions: BTreeSet<String>,
    /// Its foreign servers.
    pub foreign_servers: BTreeSet<String>,
    /// Languages that are not trusted, and libraries of functions that belong to no extension.
    pub programs: BTreeSet<String>,
    /// Whether the directory is a base backup, which was recovered in the first copy.
    pub recovered: bool,
    /// Places of the servers whose copy `pg_upgrade` made.
    pub upgraded: Vec<usize>,
}

impl Adopted {
    /// With what functions of the database reach files or other machines, as the account of their server.
    fn reaching(&self) -> Vec<&str> {
        let reaching = reaching_out(&self.extensions, &self.foreign_servers).into_iter();
        reaching
            .chain(self.programs.iter().map(String::as_str))
            .collect()
    }

    /// Refuses copies whose functions could change the directory itself.
    ///
    /// Errors: the account of the servers may write to the directory, the database has functions that reach
    /// files, and the user has not accepted it.
    fn check_account(
        &self,
        request: &Request<'_>,
        directory: &DataDirectory,
    ) -> Result<(), Problem> {
        let reaching = self.reaching();
        if reaching.is_empty() || request.consent.functions {
            return Ok(());
        }
        let Some(place) = directory.changeable_by(request.user) else {
            return Ok(());
        };
        Err(Problem::new(format!(
            "functions of the copies could change {}",
            directory.path().display()
        ))
        .detail(format!(
            "the database has {}, with which functions reach files and other servers as {}, who may write \
             to {}",
            reaching.join(", "),
            request.user.name,
            place.display()
        ))
        .hint(
            "run deltabench as root: then servers run as an account that cannot; or as a user who can only \
             read the directory; or add --allow-functions if you know these functions",
        ))
    }
}

/// `17`, or `9.6`.
fn major(version_num: u32) -> String {
    match version_num >= 100_000 {
        true => (version_num / 10_000).to_string(),
        false => format!("{}.{}", version_num / 10_000, version_num / 100 % 100),
    }
}

/// Place of the first server that can start the directory as it is.
///
/// Errors: there is none; a server is older; one of another version cannot be upgraded to.
pub fn check_versions(directory: &DataDirectory, wishes: &[Wish]) -> Result<usize, Problem> {
    let path = directory.path().display();
    let of_it = |wish: &Wish| major(wish.installation.version_num) == directory.major();
    let Some((first, wish)) = wishes.iter().enumerate().find(|(_, wish)| of_it(wish)) else {
        return Err(Problem::new(format!("no target can start {path}"))
            .detail(format!(
                "the data directory is one of {}, and only a server of that version can read it",
                directory.major()
            ))
            .hint(format!(
                "name a target of {0} as base or candidate, such as installed:{0}: other versions get a copy \
                 that pg_upgrade makes with its programs",
                directory.major()
            )));
    };
    let own = &wish.installation;
    for other in wishes
        .iter()
        .filter(|other| !of_it(other))
        .map(|wish| &wish.installation)
    {
        if other.version_num < own.version_num {
            return Err(
                Problem::new(format!("{} is older than {path}", other.resolved))
                    .detail(format!(
                        "it is one of {}, and pg_upgrade does not go back",
                        directory.major()
                    ))
                    .hint("load a dump with --data DUMP"),
            );
        }
        check_upgrade(own, other)?;
        if directory.control().wal_segment != USUAL_SEGMENT {
            return Err(Problem::new(format!("{path} cannot be upgraded here"))
                .detail("its write-ahead log has segments of another size than 16 MB (initdb --wal-segsize)")
                .hint("compare servers of one major version on it, or load a dump with --data DUMP"));
        }
    }
    Ok(first)
}

/// Makes a stopped cluster for each server.
///
/// Errors: those of [`check_versions`]; a copy that cannot be made, prepared or upgraded; no such database.
pub fn clusters(
    request: &Request<'_>,
    workspace: &Workspace,
    data: DirectoryData<'_>,
) -> Result<(Vec<Cluster>, Adopted), Problem> {
    let directory = data.directory;
    let first = check_versions(directory, &request.servers)?;
    let create = |place: usize, checksums| {
        let wish = request.servers.get(place);
        let wish = wish.ok_or_else(|| Problem::new("a replay without servers"))?;
        let spec = ClusterSpec {
            installation: &wish.installation,
            checksums,
            settings: &[],
        };
        Cluster::create(
            workspace,
            &format!("c{place}"),
            &spec,
            request.cache,
            request.user,
        )
    };
    let mut seed = create(first, None)?;
    seed.adopt(directory, request.interrupted)?;
    let version_num = request
        .servers
        .get(first)
        .map_or(0, |wish| wish.installation.version_num);
    let mut adopted = prepare(&mut seed, version_num, request, data)?;
    adopted.check_account(request, directory)?;
    let mut others = Vec::new();
    for (place, wish) in request
        .servers
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != first)
    {
        let same = major(wish.installation.version_num) == directory.major();
        // pg_upgrade wants both to have checksums, or neither.
        let checksums = (!same).then_some(directory.control().checksums);
        let mut other = create(place, checksums)?;
        match same {
            true => other.copy_adopted(&seed, request.interrupted)?,
            false => {
                other.upgrade_from(&seed, request.interrupted)?;
                adopted.upgraded.push(place);
            }
        }
        others.push(other);
    }
    others.insert(first, seed);
    Ok((others, adopted))
}

/// Prepares a copy before it first listens anywhere.
fn prepare(
    cluster: &mut Cluster,
    version_num: u32,
    request: &Request<'_>,
    data: DirectoryData<'_>,
) -> Result<Adopted, Problem> {
    // Each looks first whether the user wants to stop: there may be hundreds of databases.
    let mut single_user = |database: &str, statements: &[String]| {
        cluster.single_user(database, statements, request.interrupted)
    };
    let asked = single_user("template1", &questions(version_num))?;
    let known = Known::of(&asked);
    known.check_names(data.directory)?;
    let database = known.database(data.database, request)?;
    let superuser = known.superuser.clone();
    single_user("template1", &of_cluster((&known, &database), version_num))?;
    for other in &known.subscribed {
        // Its name is another one now.
        let other = if *other == database {
            DATABASE
        } else {
            other.as_str()
        };
        let forget = "DELETE FROM pg_catalog.pg_subscription_rel".to_owned();
        single_user(other, &[forget])?;
    }
    for other in beside(&known, &database) {
        single_user(&other, &HARMLESS.map(str::to_owned))?;
    }
    let found = single_user(DATABASE, &of_database())?;
    let with = |kind: char| {
        let its = found
            .iter()
            .filter_map(move |value| value.strip_prefix(kind));
        its.map(str::to_owned).collect()
    };
    Ok(Adopted {
        superuser,
        database,
        subscriptions: known.subscriptions,
        extensions: with('e'),
        foreign_servers: with('f'),
        programs: with('l'),
        recovered: data.directory.is_backup(),
        upgraded: Vec::new(),
    })
}

/// What is asked of a copy first; a letter before each answer says what it is.
fn questions(version_num: u32) -> Vec<String> {
    let ours = OURS.map(|name| format!("'{name}'")).join(", ");
    let mut all = vec![
        "SELECT 'r' || rolname FROM pg_catalog.pg_authid WHERE oid = 10".to_owned(),
        "SELECT 'd' || datname FROM pg_catalog.pg_database WHERE datallowconn AND NOT datistemplate"
            .to_owned(),
        format!("SELECT 'x' || rolname FROM pg_catalog.pg_authid WHERE oid <> 10 AND rolname IN ({ours})"),
        format!("SELECT 'x' || datname FROM pg_catalog.pg_database WHERE datname IN ({ours})"),
    ];
    if version_num >= SUBSCRIPTIONS_SINCE {
        all.push(
            "SELECT 's' || d.datname FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d \
             ON d.oid = s.subdbid"
                .to_owned(),
        );
    }
    all
}

/// What a copy answered.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    superuser: String,
    databases: BTreeSet<String>,
    /// Databases with subscriptions.
    subscribed: BTreeSet<String>,
    subscriptions: usize,
    /// Names that deltabench uses.
    taken: BTreeSet<String>,
}

impl Known {
    fn of(answers: &[String]) -> Self {
        let mut known = Self::default();
        for (kind, name) in answers
            .iter()
            .filter_map(|answer| answer.split_at_checked(1))
        {
            let name = name.to_owned();
            match kind {
                "r" => known.superuser = name,
                "d" => {
                    known.databases.insert(name);
                }
                "s" => {
                    known.subscriptions += 1;
                    known.subscribed.insert(name);
                }
                _ => {
                    known.taken.insert(name);
                }
            }
        }
        known
    }

    fn check_names(&self, directory: &DataDirectory) -> Result<(), Problem> {
        if self.taken.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.taken.iter().map(String::as_str).collect();
        Err(Problem::new(format!(
            "{} has roles or databases with names of deltabench",
            directory.path().display()
        ))
        .detail(names.join(", "))
        .hint("rename them in a copy of the directory"))
    }

    /// The database that is replayed on: the one that is asked for, that of most captured calls, or the only
    /// one.
    fn database(&self, asked: Option<&str>, request: &Request<'_>) -> Result<String, Problem> {
        let has = |name: &str| self.databases.contains(name);
        let all: Vec<&str> = self.databases.iter().map(String::as_str).collect();
        let there = format!("it has {}", all.join(", "));
        if let Some(name) = asked {
            return match has(name) {
                true => Ok(name.to_owned()),
                false => Err(
                    Problem::new(format!("the data directory has no database {name}"))
                        .detail(there)
                        .hint("name one of them with --database"),
                ),
            };
        }
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for statement in &request.capture.statements {
            if let Some(name) = statement.database.as_deref().filter(|name| has(name)) {
                *calls.entry(name).or_default() += statement.calls;
            }
        }
        if let Some((name, _)) = calls.into_iter().max_by_key(|(_, calls)| *calls) {
            return Ok(name.to_owned());
        }
        let mut users = self.databases.iter().filter(|name| *name != MAINTENANCE);
        match (users.next(), users.next()) {
            (Some(only), None) => Ok(only.clone()),
            (None, _) if has(MAINTENANCE) => Ok(MAINTENANCE.to_owned()),
            _ => Err(Problem::new("the data directory has several databases")
                .detail(there)
                .hint("name the one of the statements with --database")),
        }
    }
}

/// Statements on what all databases share.
fn of_cluster((known, database): (&Known, &str), version_num: u32) -> Vec<String> {
    let superuser = quoted(&known.superuser);
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let mut all = vec![
        // Roles have no passwords, limits and attributes, as after loading a dump. What row security asks for
        // stays.
        "UPDATE pg_catalog.pg_authid SET rolsuper = (oid = 10), rolcreaterole = (oid = 10), \
         rolcreatedb = (oid = 10), rolreplication = (oid = 10), rolconnlimit = -1, rolpassword = NULL, \
         rolvaliduntil = NULL"
            .to_owned(),
        format!(
            "DELETE FROM pg_catalog.pg_auth_members WHERE roleid = 10 OR roleid IN (SELECT oid FROM \
             pg_catalog.pg_authid WHERE rolname IN ({POWERFUL}))"
        ),
        format!(
            "UPDATE pg_catalog.pg_db_role_setting SET setconfig = ARRAY(SELECT one FROM \
             pg_catalog.unnest(setconfig) AS one WHERE one !~* '{HARMFUL}')"
        ),
        "DELETE FROM pg_catalog.pg_db_role_setting WHERE setconfig = '{}'".to_owned(),
    ];
    if known.superuser != SUPERUSER {
        all.push(format!(
            "UPDATE pg_catalog.pg_authid SET rolname = '{SUPERUSER}', rolcanlogin = true WHERE oid = 10"
        ));
        all.push(format!("CREATE ROLE {superuser} LOGIN BYPASSRLS"));
        all.push(format!(
            "UPDATE pg_catalog.pg_db_role_setting SET setrole = (SELECT oid FROM pg_catalog.pg_authid WHERE \
             rolname = {}) WHERE setrole = 10",
            literal(&known.superuser)
        ));
    }
    if version_num >= SUBSCRIPTIONS_SINCE {
        all.push("DELETE FROM pg_catalog.pg_subscription".to_owned());
    }
    all.push(format!(
        "UPDATE pg_catalog.pg_database SET datconnlimit = -1 WHERE datname = {}",
        literal(database)
    ));
    all.push(format!(
        "ALTER DATABASE {} RENAME TO {DATABASE}",
        quoted(database)
    ));
    if database == MAINTENANCE || !known.databases.contains(MAINTENANCE) {
        all.push(format!("CREATE DATABASE {MAINTENANCE} TEMPLATE template0"));
    }
    all
}

/// The databases beside the one that is replayed on: our own sessions connect to some of them, and a trigger
/// on logins would work there with all rights.
fn beside(known: &Known, database: &str) -> Vec<String> {
    let others = known.databases.iter().filter(|name| *name != database);
    others.cloned().chain(["template1".to_owned()]).collect()
}

/// Statements that every database gets before a server of it first listens.
const HARMLESS: [&str; 2] = [
    "UPDATE pg_catalog.pg_event_trigger SET evtenabled = 'D'",
    // With them sessions would log in to other servers.
    "DELETE FROM pg_catalog.pg_user_mapping",
];

/// Statements on the database itself, and what it has: a letter before each name says what it is.
fn of_database() -> Vec<String> {
    let asked = [
        "SELECT 'e' || extname FROM pg_catalog.pg_extension",
        "SELECT 'fthe foreign server ' || srvname FROM pg_catalog.pg_foreign_server",
        "SELECT 'lthe language ' || lanname FROM pg_catalog.pg_language WHERE NOT lanpltrusted \
         AND lanname NOT IN ('internal', 'c')",
        "SELECT DISTINCT 'lthe library ' || p.probin FROM pg_catalog.pg_proc p \
         JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
         WHERE l.lanname = 'c' AND p.oid >= 16384 AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d \
         WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid \
         AND d.deptype = 'e')",
    ];
    HARMLESS
        .into_iter()
        .chain(asked)
        .map(str::to_owned)
        .collect()
}

/// Gives what the first superuser owned to the role that has its name now: views, foreign keys and SECURITY
/// DEFINER functions would work with all rights.
///
/// Errors: what the server answers.
pub fn reassign(client: &mut Client, superuser: &str, version_num: u32) -> Result<(), Problem> {
    if superuser == SUPERUSER {
        return Ok(());
    }
    let routines = match version_num >= PROCEDURES_SINCE {
        true => {
            "SELECT pg_catalog.format('ALTER ROUTINE %s', p.oid::pg_catalog.regprocedure) AS change, \
                 p.oid, 'pg_catalog.pg_proc'::pg_catalog.regclass FROM pg_catalog.pg_proc p \
                 WHERE p.proowner = 10 AND p.prosecdef AND p.prokind <> 'a'"
        }
        false => {
            "SELECT pg_catalog.format('ALTER FUNCTION %s', p.oid::pg_catalog.regprocedure) AS change, \
                  p.oid, 'pg_catalog.pg_proc'::pg_catalog.regclass FROM pg_catalog.pg_proc p \
                  WHERE p.proowner = 10 AND p.prosecdef AND NOT p.proisagg"
        }
    };
    let changes = query(client, &format!(
        "SELECT change FROM (
           SELECT pg_catalog.format('ALTER SCHEMA %I', n.nspname) AS change, n.oid AS object,
             'pg_catalog.pg_namespace'::pg_catalog.regclass AS class
             FROM pg_catalog.pg_namespace n WHERE n.nspowner = 10
           UNION ALL
           SELECT pg_catalog.format('ALTER TABLE %I.%I', n.nspname, c.relname), c.oid,
             'pg_catalog.pg_class'::pg_catalog.regclass
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE c.relowner = 10 AND n.nspname !~ '^(pg_toast|pg_temp)'
               AND (c.relkind IN ('r', 'p', 'v', 'm', 'f') OR c.relkind = 'S' AND NOT EXISTS (
                 SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')
                   AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass))
           UNION ALL {routines}) AS owned
         WHERE owned.object >= 16384 AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
           WHERE d.objid = owned.object AND d.classid = owned.class AND d.deptype = 'e')"
    ))?;
    for change in changes.into_iter().flatten().flatten() {
        run(client, &format!("{change} OWNER TO {}", quoted(superuser)))?;
    }
    Ok(())
}

/// What the locale of this machine may have changed in an index. The database then gets the version of this
/// machine: without that no copy could be made for writes.
///
/// Errors: what the server answers.
pub fn collation_moved(client: &mut Client, version_num: u32) -> Result<Option<String>, Problem> {
    /// The first version that notes the version of a database's collation.
    const SINCE: u32 = 150_000;
    if version_num < SINCE {
        return Ok(None);
    }
    let rows = query(
        client,
        "SELECT datcollversion, pg_catalog.pg_database_collation_actual_version(oid) \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()",
    )?;
    let versions = rows.into_iter().next().map(<[Option<String>; 2]>::try_from);
    Ok(match versions {
        Some(Ok([Some(made), Some(here)])) if made != here => {
            run(
                client,
                &format!("ALTER DATABASE {DATABASE} REFRESH COLLATION VERSION"),
            )?;
            Some(format!(
                "collation: the directory was made with version {made} of its locale, and this machine has \
                 {here}: an index on text may not find all rows here; all servers are alike"
            ))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known::of(&["rpostgres", "dpostgres", "dshop", "sshop", "sshop"].map(str::to_owned))
    }

    #[test]
    fn a_copy_is_known_by_its_answers() {
        let known = known();
        assert_eq!(
            (known.superuser.as_str(), known.subscriptions),
            ("postgres", 2)
        );
        assert_eq!(known.subscribed.len(), 1);
        assert!(known.taken.is_empty() && known.databases.contains("shop"));
        let taken = Known::of(&["xdeltabench".to_owned()]);
        assert_eq!(taken.taken.len(), 1);
    }

    #[test]
    fn what_reaches_files_of_the_machine_is_named_wherever_it_is() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let adopted = Adopted {
            extensions: set(&["hstore", "plperlu"]),
            foreign_servers: set(&["the foreign server files"]),
            programs: set(&["the library /usr/lib/shop.so"]),
            ..Adopted::default()
        };
        let found = [
            "plperlu",
            "the foreign server files",
            "the library /usr/lib/shop.so",
        ];
        assert_eq!(adopted.reaching(), found);
        let harmless = Adopted {
            extensions: set(&["hstore", "plpgsql"]),
            ..Adopted::default()
        };
        assert!(harmless.reaching().is_empty());
    }

    #[test]
    fn no_database_keeps_its_triggers_and_user_mappings() {
        assert_eq!(beside(&known(), "shop"), ["postgres", "template1"]);
        assert_eq!(beside(&known(), "postgres"), ["shop", "template1"]);
        let own = of_database();
        assert!(
            HARMLESS
                .iter()
                .all(|one| own.iter().any(|other| other == one))
        );
        let setting = "event_triggers";
        let harmful = HARMFUL.trim_start_matches("^(").trim_end_matches(')');
        assert!(harmful.split('|').any(|one| setting.starts_with(one)));
    }

    #[test]
    fn every_statement_of_a_server_of_one_session_is_one_line() {
        for version_num in [90_600, 170_011] {
            let all = questions(version_num).into_iter().chain(of_database());
            let mut all: Vec<String> = all.collect();
            all.extend(of_cluster((&known(), "o'shop"), version_num));
            assert!(
                all.iter()
                    .all(|one| !one.contains('\n') && !one.contains("  ")),
                "{all:?}"
            );
            let subscriptions = all.iter().filter(|one| one.contains("pg_subscription"));
            assert_eq!(
                subscriptions.count() > 0,
                version_num >= SUBSCRIPTIONS_SINCE
            );
            assert!(all.iter().any(|one| one.contains("datname = 'o''shop'")));
        }
    }

    #[test]
    fn the_database_for_maintenance_is_made_anew_if_it_is_the_replayed_one() {
        let makes = |database: &str| {
            let all = of_cluster((&known(), database), 170_000);
            all.iter()
                .any(|one| one.starts_with("CREATE DATABASE postgres"))
        };
        assert!(makes("postgres") && !makes("shop"));
    }

    #[test]
    fn versions_are_named_as_their_directories_are() {
        assert_eq!(
            (major(90_624), major(180_006)),
            ("9.6".to_owned(), "18".to_owned())
        );
    }
}
