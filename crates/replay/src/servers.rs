//! The servers of a replay: clusters of our own, each with the dump in one database.

use crate::adopted::{self, Adopted};
use crate::clock::{Ahead, SetClock};
use crate::dump::{DumpFile, LoadFailure, Loaded, Loading, load};
use crate::reach::{DATABASE, ROLE, Reach, analyze, superuser};
use crate::request::{Request, Wish};
use crate::session::{connect, query, quoted, run};
use crate::shape::Roots;
use crate::theirs::Theirs;
use crate::watched::watched;
use deltabench_driver::Client;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::problem::Problem;
use deltabench_model::work::replay::DataSet;
use deltabench_server::{
    Cluster, ClusterSpec, SUPERUSER, Slot, Workspace, check_room, settings_under,
};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The usual superuser of production. It owns views, whose tables it may read there: here it may read all
/// tables, without being a superuser.
const PRODUCTION_SUPERUSER: &str = "postgres";
/// First number of the servers' sockets.
const FIRST_PORT: u16 = 5600;
/// Memory of a server's own; it has no influence on plans.
const SHARED_BUFFERS_MB: u64 = 128;
const CONNECTIONS: u32 = 20;
/// Memory that a server takes besides, for loading.
const LOADING_MB: u64 = 128;

/// Settings of a server's own memory and connections, which deltabench chooses whatever the user's are.
const MEMORY: [&str; 5] = [
    "shared_buffers",
    "max_connections",
    "superuser_reserved_connections",
    "reserved_connections",
    "huge_pages",
];
/// Settings that win over the user's: nothing of them changes a plan. They make a server that does not keep
/// its data over a crash, that never analyses by itself, and whose log has no statements.
const OURS: [(&str, &str); 20] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("autovacuum", "off"),
    ("archive_mode", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "256MB"),
    ("min_wal_size", "80MB"),
    ("ssl", "off"),
    ("lc_messages", "C"),
    ("synchronous_standby_names", ""),
    ("track_commit_timestamp", "off"),
    ("log_min_messages", "fatal"),
    ("log_min_error_statement", "panic"),
    ("log_min_duration_statement", "-1"),
    ("log_statement", "none"),
    ("log_duration", "off"),
    ("log_checkpoints", "off"),
    ("log_temp_files", "-1"),
];

/// A server that has the dump.
pub struct Member<'a> {
    pub wish: &'a Wish,
    /// Absent for a server of somebody else.
    cluster: Option<Cluster>,
    pub reach: Reach,
    pub loaded: Loaded,
    /// Tables that it cannot analyse, with the reason.
    pub without_statistics: BTreeSet<String>,
    /// Bytes of the data directory after loading, or of the database of somebody else if the role may ask.
    pub data_bytes: Option<u64>,
}

/// What came of loading, and the tables that cannot be analysed.
type Filled = (Loaded, BTreeSet<String>);

/// All servers of a replay. Dropping them stops them and removes their data.
pub struct Servers<'a> {
    // Clusters stop before their directory goes.
    pub members: Vec<Member<'a>>,
    /// Absent without a server of our own.
    workspace: Option<Workspace>,
    /// What is known of copies of a data directory.
    pub adopted: Option<Adopted>,
    /// How the data sets of servers of somebody else differ.
    pub differences: Vec<String>,
    /// What tells them from others, the base first.
    pub data_sets: Vec<DataSet>,
    /// What a reader should know of such servers.
    pub notes: Vec<String>,
    /// What servers of our own start with; absent: they have the time of the machine.
    pub clock: Option<SetClock>,
    /// Why they do not have the time that was wanted.
    pub without_clock: Option<Problem>,
}

impl<'a> Servers<'a> {
    /// A directory for servers of our own, of which none has started.
    ///
    /// Errors: too little disk or memory, a directory that cannot be made.
    pub fn prepare(request: &Request<'_>) -> Result<Self, Problem> {
        let workspace = match request.data.is_ours() {
            true => Some(Self::workspace(request)?),
            false => None,
        };
        Ok(Self {
            members: Vec::new(),
            workspace,
            adopted: None,
            differences: Vec::new(),
            data_sets: Vec::new(),
            notes: Vec::new(),
            clock: None,
            without_clock: None,
        })
    }

    fn workspace(request: &Request<'_>) -> Result<Workspace, Problem> {
        let servers = u64::try_from(request.servers.len()).unwrap_or(u64::MAX);
        let memory = servers.saturating_mul((SHARED_BUFFERS_MB + LOADING_MB) << 20);
        check_room(request.workspaces, request.disk_bytes(), memory).map_err(|problem| {
            problem.hint(
                "keep the servers on another disk with --cluster-dir DIR, or name fewer candidates",
            )
        })?;
        Workspace::create(request.workspaces, request.name, request.user)
    }

    /// Starts an empty server for each target, which has all extensions of the dump; or looks at those of
    /// somebody else.
    ///
    /// Must be called on a thread that outlives the servers.
    ///
    /// Errors: an extension that a server lacks, a setting that it does not take; a role that may do too
    /// much, a database that is another one.
    pub fn start(&mut self, request: &'a Request<'_>) -> Result<(), Problem> {
        let Some(workspace) = &self.workspace else {
            return self.look(request);
        };
        let (mut clusters, adopted) = match request.data.directory() {
            Some(data) => {
                let (clusters, adopted) = adopted::clusters(request, workspace, data)?;
                (clusters, Some(adopted))
            }
            None => {
                let wishes = request.servers.iter().enumerate();
                let make = |(place, wish)| create((request, workspace), place, wish);
                (wishes.map(make).collect::<Result<Vec<_>, _>>()?, None)
            }
        };
        let wanted = SetClock::of(&request.clock, workspace.directory());
        let started = wanted.and_then(|clock| {
            let endpoints = start_all(&mut clusters, &request.servers, clock.as_ref())?;
            Ok((endpoints, clock))
        });
        let endpoints = match started {
            Ok((endpoints, clock)) => {
                self.clock = clock;
                endpoints
            }
            Err(problem) if request.clock.at.is_none() || request.clock.required => {
                return Err(problem);
            }
            // A setting that a server does not take is refused once more.
            Err(problem) => {
                self.without_clock = Some(problem);
                start_all(&mut clusters, &request.servers, None)?
            }
        };
        let started = request.servers.iter().zip(clusters).zip(endpoints);
        self.members = started
            .map(|((wish, cluster), endpoint)| Member::ours(wish, cluster, endpoint))
            .collect();
        self.adopted = adopted;
        self.have_database(request)
    }

    /// Makes sure that each server has what the tables need, and makes an empty database for a dump.
    fn have_database(&self, request: &Request<'_>) -> Result<(), Problem> {
        if let Some(adopted) = &self.adopted {
            return self.check_extensions(&adopted.extensions);
        }
        let Some((_, survey)) = request.data.dump() else {
            return Ok(());
        };
        self.check_extensions(&survey.extensions)?;
        for member in &self.members {
            let mut client = connect(&member.reach.endpoint, &superuser("postgres"))?;
            run(
                &mut client,
                &format!("CREATE DATABASE {DATABASE} TEMPLATE template0"),
            )?;
        }
        Ok(())
    }

    /// Looks at servers of somebody else, and compares their data sets before anything is sent.
    fn look(&mut self, request: &'a Request<'_>) -> Result<(), Problem> {
        let mut all: Vec<Theirs> = Vec::new();
        for wish in &request.servers {
            let name = &wish.installation.resolved;
            let theirs = wish.theirs.clone();
            let theirs =
                theirs.ok_or_else(|| Problem::new("a server has no tables").detail(name))?;
            let reach = Reach::theirs(name, theirs, request.name);
            let found = Theirs::of(&reach)?;
            self.notes.extend(found.notes(name, all.first()));
            if let Some(base) = all.first() {
                self.differences.extend(base.differences(&found, name)?);
            }
            self.members.push(Member {
                wish,
                cluster: None,
                reach,
                loaded: Loaded::default(),
                without_statistics: BTreeSet::new(),
                data_bytes: found.bytes,
            });
            self.data_sets.push(found.data_set.clone());
            all.push(found);
        }
        self.notes.dedup();
        Ok(())
    }

    /// Refuses a dump whose extensions a server lacks, with all of them.
    fn check_extensions(&self, wanted: &BTreeSet<String>) -> Result<(), Problem> {
        let mut lacking = Vec::new();
        for member in &self.members {
            let mut client = connect(&member.reach.endpoint, &superuser("postgres"))?;
            let rows = query(
                &mut client,
                "SELECT name FROM pg_catalog.pg_available_extensions",
            )?;
            let there: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
            let missing: Vec<&str> = wanted.difference(&there).map(String::as_str).collect();
            if !missing.is_empty() {
                let name = &member.wish.installation.resolved;
                lacking.push(format!("{name} has no {}", missing.join(", ")));
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let of = if self.adopted.is_some() {
            "data directory"
        } else {
            "dump"
        };
        Err(
            Problem::new(format!("a server lacks extensions of the {of}"))
                .detail(lacking.join("\n"))
                .hint(
                    "name a tree that has them (path:DIR, installed:18), or dump without them: \
                 `pg_dump --extension=plpgsql` (14 and later)",
                ),
        )
    }

    /// Loads the dump into all servers at the same time.
    ///
    /// Errors: those of [`load`]; rows that the base did not take.
    pub fn load(&mut self, request: &Request<'_>, dump: &DumpFile) -> Result<(), Problem> {
        let all = self.members.iter().map(|member| member.reach.clone());
        let all: Vec<Reach> = all.collect();
        let members = &mut self.members;
        // A long statement ends with its server.
        let end = || {
            for cluster in members
                .iter_mut()
                .filter_map(|member| member.cluster.as_mut())
            {
                cluster.abandon();
            }
        };
        let results = watched(
            &all,
            request.interrupted,
            |reach| fill(dump, reach, request.interrupted),
            end,
        );
        for (member, result) in self.members.iter_mut().zip(results) {
            (member.loaded, member.without_statistics) = result?;
            member.data_bytes = member.cluster.as_ref().map(Cluster::bytes_on_disk);
        }
        let base = self.members.first().map(|member| &member.loaded);
        let lost = base.and_then(|loaded| loaded.failures.iter().find(|failure| failure.of_data));
        match lost {
            Some(failure) => Err(Problem::new("the base does not take the rows of the dump")
                .detail(failure.to_string())
                .hint(way_out(&failure.sqlstate))),
            None => Ok(()),
        }
    }

    /// Has statistics of copies of a data directory drawn, on all servers at the same time.
    ///
    /// Errors: what a server answers.
    pub fn draw_first(&mut self, request: &Request<'_>) -> Result<(), Problem> {
        let Some(adopted) = &self.adopted else {
            return Ok(());
        };
        let members = self.members.iter();
        let all: Vec<(Reach, u32)> = members
            .map(|member| (member.reach.clone(), member.wish.installation.version_num))
            .collect();
        let end = || all.iter().for_each(|(reach, _)| reach.end_sessions());
        let drawn = watched(
            &all,
            request.interrupted,
            |(reach, version_num)| {
                let mut client = reach.own()?;
                adopted::reassign(&mut client, &adopted.superuser, *version_num)?;
                // No VACUUM: it would take the bloat away.
                let without = analyze(&mut client, "ANALYZE")?;
                Ok((
                    without,
                    adopted::collation_moved(&mut client, *version_num)?,
                ))
            },
            end,
        );
        for (member, drawn) in self.members.iter_mut().zip(drawn) {
            let (without, note) = drawn?;
            member.without_statistics = without;
            member.data_bytes = member.cluster.as_ref().map(Cluster::bytes_on_disk);
            self.notes.extend(note);
        }
        self.notes.dedup();
        Ok(())
    }

    /// Makes the roles that replay on servers of our own, and lets them log in.
    ///
    /// Shape:  the roles of `wanted` that are on all servers and log in there.
    /// Errors: a server that refuses.
    pub fn prepare_roles(&self, wanted: &BTreeSet<String>) -> Result<BTreeSet<String>, Problem> {
        let mut everywhere = wanted.clone();
        everywhere.remove(SUPERUSER);
        if self.workspace.is_none() {
            // Each has one login, and nothing is made there.
            everywhere.retain(|role| {
                self.members
                    .iter()
                    .all(|member| member.reach.user() == role)
            });
            return Ok(everywhere);
        }
        for member in &self.members {
            let mut client = member.reach.own()?;
            let rows = query(&mut client, "SELECT rolname FROM pg_catalog.pg_roles")?;
            let there: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
            everywhere = everywhere.intersection(&there).cloned().collect();
            for role in &member.loaded.roles {
                run(
                    &mut client,
                    &format!("ALTER ROLE {} NOSUPERUSER", quoted(role)),
                )?;
            }
            for role in &everywhere {
                run(
                    &mut client,
                    &format!("ALTER ROLE {} LOGIN NOSUPERUSER", quoted(role)),
                )?;
            }
            make_replayer(&mut client)?;
            let superuser = self
                .adopted
                .as_ref()
                .map(|adopted| adopted.superuser.as_str());
            let superuser = superuser.unwrap_or(PRODUCTION_SUPERUSER);
            if there.contains(superuser) && superuser != SUPERUSER {
                let role = quoted(superuser);
                run(&mut client, &format!("ALTER ROLE {role} BYPASSRLS"))?;
                run(&mut client, &format!("GRANT {ROLE} TO {role}"))?;
            }
        }
        Ok(everywhere)
    }

    /// The servers, the directory that those of our own live in, and their clock: drop the servers first.
    pub fn into_parts(self) -> (Vec<Member<'a>>, Option<Workspace>, Option<SetClock>) {
        (self.members, self.workspace, self.clock)
    }

    /// Stops all servers and removes their data.
    ///
    /// Errors: what cannot be removed.
    pub fn dismantle(self) -> Result<(), Problem> {
        let Self {
            mut members,
            workspace,
            ..
        } = self;
        for cluster in members
            .iter_mut()
            .filter_map(|member| member.cluster.as_mut())
        {
            cluster.abandon();
        }
        drop(members);
        workspace.map_or(Ok(()), Workspace::remove)
    }
}

impl<'a> Member<'a> {
    /// A server of our own without tables.
    fn ours(wish: &'a Wish, cluster: Cluster, endpoint: Endpoint) -> Self {
        Self {
            wish,
            cluster: Some(cluster),
            reach: Reach::ours(&wish.installation.resolved, endpoint),
            loaded: Loaded::default(),
            without_statistics: BTreeSet::new(),
            data_bytes: None,
        }
    }

    /// Its data directory with its server, if it is our own.
    pub fn into_cluster(self) -> Option<Cluster> {
        self.cluster
    }

    /// The names of partitions with those of their roots.
    ///
    /// Errors: what the server answers.
    pub fn roots(&self) -> Result<Roots, Problem> {
        if self.wish.installation.version_num < FIRST_WITH_PARTITIONS {
            return Ok(Roots::default());
        }
        let mut client = self.reach.own()?;
        let rows = query(&mut client, PARTITIONS)?;
        let pair = |row: Vec<Option<String>>| match <[Option<String>; 2]>::try_from(row) {
            Ok([Some(name), Some(root)]) => Some((name, root)),
            _ => None,
        };
        Ok(Roots {
            names: rows.into_iter().filter_map(pair).collect(),
        })
    }

    /// What of the dump it refused.
    pub fn failures(&self) -> &[LoadFailure] {
        &self.loaded.failures
    }
}

/// Makes an empty server.
fn create(
    (request, workspace): (&Request<'_>, &Workspace),
    place: usize,
    wish: &Wish,
) -> Result<Cluster, Problem> {
    let spec = ClusterSpec {
        installation: &wish.installation,
        checksums: request.checksums,
        // Not in the cluster's: clusters of one installation are exchanged between blocks.
        settings: &[],
    };
    let name = format!("c{place}");
    Cluster::create(workspace, &name, &spec, request.cache, request.user)
}

/// Starts all servers with one clock; those that run stop first.
fn start_all(
    clusters: &mut [Cluster],
    wishes: &[Wish],
    clock: Option<&SetClock>,
) -> Result<Vec<Endpoint>, Problem> {
    for cluster in clusters.iter_mut() {
        cluster.stop()?;
    }
    let ahead = Ahead::of(clock);
    let mut endpoints = Vec::new();
    for (port, (cluster, wish)) in (FIRST_PORT..).zip(clusters.iter_mut().zip(wishes)) {
        let slot = Slot {
            port,
            environment: ahead.environment.clone(),
            ..Slot::default()
        };
        let endpoint = cluster.start(&slot, &settings(wish, 0))?.endpoint.clone();
        ahead.check(&mut connect(&endpoint, &superuser("postgres"))?)?;
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

/// The first version with declarative partitioning.
const FIRST_WITH_PARTITIONS: u32 = 100_000;

/// Each partition with the table or index at its root.
const PARTITIONS: &str = "WITH RECURSIVE up(oid, above) AS (
    SELECT c.oid, i.inhparent FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid WHERE c.relispartition
    UNION ALL
    SELECT up.oid, i.inhparent FROM up
      JOIN pg_catalog.pg_class c ON c.oid = up.above AND c.relispartition
      JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid)
  SELECT part.relname, root.relname FROM up
    JOIN pg_catalog.pg_class part ON part.oid = up.oid
    JOIN pg_catalog.pg_class root ON root.oid = up.above
    WHERE NOT root.relispartition";

/// Loads the dump into a server, and has statistics drawn.
fn fill(dump: &DumpFile, reach: &Reach, interrupted: &AtomicBool) -> Result<Filled, Problem> {
    let loading = Loading {
        dump,
        endpoint: &reach.endpoint,
        login: &superuser(DATABASE),
        interrupted,
    };
    let named = |problem| reach.named(problem);
    let loaded = load(&loading).map_err(named)?;
    let mut client = reach.own()?;
    disable_triggers(&mut client)?;
    // Makes pages all-visible, as in production, so that index-only scans are planned.
    let without = analyze(&mut client, "VACUUM ANALYZE")?;
    Ok((loaded, without))
}

/// What a server runs with: what every server of ours needs, so many connections at least, the user's
/// settings, and ours over them.
pub fn settings(wish: &Wish, connections: u32) -> Vec<(String, String)> {
    let ours = |name: &str| MEMORY.iter().any(|known| name.eq_ignore_ascii_case(known));
    let users = wish.settings.iter().filter(|(name, _)| !ours(name));
    let users: Vec<(String, String)> = users.cloned().collect();
    let mut settings = settings_under(
        &users,
        SHARED_BUFFERS_MB,
        CONNECTIONS.max(connections),
        false,
    );
    settings.extend(OURS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    if wish.installation.version_num >= WITH_SUBSCRIPTIONS {
        // A subscription of a data directory could connect to production.
        settings.push((SUBSCRIPTIONS.to_owned(), "0".to_owned()));
    }
    settings
}

/// Whether servers of ours have a value of our own for a setting, whatever the user's is.
pub fn is_ours(name: &str) -> bool {
    let own = OURS.map(|(own, _)| own);
    let mut all = MEMORY.iter().chain(&own).chain([&SUBSCRIPTIONS]);
    all.any(|known| name.eq_ignore_ascii_case(known))
}

/// The first version with subscriptions.
const WITH_SUBSCRIPTIONS: u32 = 100_000;
/// The setting that lets subscriptions work.
const SUBSCRIPTIONS: &str = "max_logical_replication_workers";

/// What to do about rows that the base refuses.
fn way_out(sqlstate: &str) -> &'static str {
    match sqlstate {
        "22021" | "22P05" => {
            "the bytes of these rows are not of the dump's encoding, as in a database with SQL_ASCII: dump \
             with `pg_dump --encoding` and the encoding that they have"
        }
        _ => "use a base that is no older than the dumped server",
    }
}

/// Event triggers of the dump would run for everybody who logs in: nobody replays them.
fn disable_triggers(client: &mut Client) -> Result<(), Problem> {
    let rows = query(client, "SELECT evtname FROM pg_catalog.pg_event_trigger")?;
    for name in rows.into_iter().flatten().flatten() {
        run(
            client,
            &format!("ALTER EVENT TRIGGER {} DISABLE", quoted(&name)),
        )?;
    }
    Ok(())
}

/// A role that may read and change all tables, and nothing of the server. Row security does not bind it: the
/// owner of a table, who most often sends statements, is not bound either.
fn make_replayer(client: &mut Client) -> Result<(), Problem> {
    run(client, &format!("CREATE ROLE {ROLE} LOGIN BYPASSRLS"))?;
    let rows = query(
        client,
        "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname NOT LIKE 'pg\\_%' \
         AND nspname <> 'information_schema'",
    )?;
    for schema in rows.into_iter().flatten().flatten() {
        let schema = quoted(&schema);
        run(client, &format!("GRANT USAGE ON SCHEMA {schema} TO {ROLE}"))?;
        run(
            client,
            &format!("GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {ROLE}"),
        )?;
        run(
            client,
            &format!("GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {ROLE}"),
        )?;
        run(
            client,
            &format!("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {ROLE}"),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_ours_wins_and_settings_of_the_planner_stay() {
        let wish = Wish {
            installation: deltabench_testkit::installations::installed("pg"),
            settings: vec![
                ("autovacuum".to_owned(), "on".to_owned()),
                ("random_page_cost".to_owned(), "1.1".to_owned()),
                ("Shared_Buffers".to_owned(), "64GB".to_owned()),
                ("Max_connections".to_owned(), "4".to_owned()),
                ("superuser_reserved_connections".to_owned(), "90".to_owned()),
                ("timezone".to_owned(), "Europe/Berlin".to_owned()),
            ],
            named_settings: Vec::new(),
            theirs: None,
        };
        let settings = settings(&wish, 44);
        let set = |wanted: &str| {
            let its = settings.iter();
            its.filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(set("max_connections"), ["44"]);
        assert!(set("superuser_reserved_connections").is_empty());
        let last = |name: &str| {
            settings
                .iter()
                .rfind(|(known, _)| known == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(last("autovacuum"), "off");
        assert_eq!(last("random_page_cost"), "1.1");
        assert_eq!(last("timezone"), "Europe/Berlin");
        let buffers = settings
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("shared_buffers"));
        let buffers: Vec<&String> = buffers.map(|(_, value)| value).collect();
        assert_eq!(buffers, ["128MB"]);
        let planner = [
            "_cost",
            "enable_",
            "work_mem",
            "statistics_target",
            "parallel",
            "jit",
            "cache_size",
        ];
        for (name, _) in OURS {
            assert!(planner.iter().all(|word| !name.contains(word)), "{name}");
        }
    }

    #[test]
    fn each_setting_that_a_server_does_not_take_from_the_user_is_ours() {
        let wish = |settings| Wish {
            installation: deltabench_testkit::installations::installed("pg"),
            settings,
            named_settings: Vec::new(),
            theirs: None,
        };
        let names: Vec<String> = { settings(&wish(Vec::new()), 0).into_iter() }
            .map(|(name, _)| name)
            .chain(MEMORY.map(str::to_uppercase))
            .chain(["random_page_cost".to_owned()])
            .collect();
        for name in names {
            let given = wish(vec![(name.clone(), "users".to_owned())]);
            let all = settings(&given, 0);
            let mut its = all.iter().rev();
            let last = its.find(|(known, _)| known.eq_ignore_ascii_case(&name));
            let taken = last.is_some_and(|(_, value)| value == "users");
            assert_eq!(is_ours(&name), !taken, "{name}");
        }
    }

    #[test]
    fn rows_in_another_encoding_have_a_way_out_of_their_own() {
        assert!(way_out("22021").contains("--encoding"));
        assert!(way_out("22P04").contains("base"));
    }
}
