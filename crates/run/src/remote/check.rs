//! What cannot be done with servers that were there before, refused before anything is made.

use super::access::{Access, fit};
use super::agents::Agents;
use super::{place, same_server};
use crate::admin::query;
use deltabench_model::installation::{Remote, RemoteTls};
use deltabench_model::plan::{CacheState, DataState, Limits, Plan, PlannedServer, Transport};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;

/// Connections that set-up work, counters and the guard of the schemas take beside the clients.
const SPARE: u64 = 6;

/// Refuses what a plan asks of servers that were there before and that cannot be had of them; looks at those
/// servers, and changes nothing. Nothing to do for a plan without any. Their agents are started and ended.
///
/// Errors: see [`mod@super`]; a server that is not what it was when the plan was made; an agent that cannot
/// be had, or does not find its server.
pub fn check(plan: &Plan) -> Result<(), Problem> {
    check_servers(plan)?;
    let mut agents = Agents::default();
    for (_, remote) in remotes(plan) {
        if remote.agent.is_some() {
            let access = Access::of(remote);
            let client = &mut access.connect()?;
            agents.postmaster(remote, &access, client)?;
        }
    }
    Ok(())
}

/// As [`check`], without agents.
pub(crate) fn check_servers(plan: &Plan) -> Result<(), Problem> {
    let theirs: Vec<(&PlannedServer, &Remote)> = remotes(plan);
    if theirs.is_empty() {
        return Ok(());
    }
    check_plan(plan, theirs.len() == plan.servers.len())?;
    for (server, remote) in &theirs {
        check_server(server)?;
        check_certificate(remote)?;
    }
    for (place, (server, remote)) in theirs.iter().enumerate() {
        let settings = [plan.settings.as_slice(), &server.settings].concat();
        let access = Access::of(remote);
        let first = theirs
            .iter()
            .position(|(other, _)| same_server(&other.installation, &server.installation));
        if first == Some(place) {
            check_here(plan, server, remote, &access)?;
        }
        if !settings.is_empty() {
            access.try_settings(&settings)?;
        }
    }
    Ok(())
}

/// Refuses a plan with servers that were there before, for work that pins, watches or restarts its servers.
///
/// Errors: it has one.
pub fn only_own(plan: &Plan) -> Result<(), Problem> {
    match remotes(plan).first() {
        None => Ok(()),
        Some((server, _)) => Err(Problem::new("this needs a server that deltabench starts")
            .detail(format!("{} already runs", server.installation.asked))
            .hint("name postgres:VERSION, path:DIR or installed:MAJOR")),
    }
}

/// The servers of a plan that were there before.
pub(super) fn remotes(plan: &Plan) -> Vec<(&PlannedServer, &Remote)> {
    let remote = |server: &'_ PlannedServer| server.installation.remote.is_some();
    plan.servers
        .iter()
        .filter(|server| remote(server))
        .filter_map(|server| Some((server, server.installation.remote.as_ref()?)))
        .collect()
}

fn cannot(what: &str, why: &str, hint: &str) -> Problem {
    Problem::new(format!(
        "{what} is not available on a server that deltabench did not start"
    ))
    .detail(why)
    .hint(hint)
}

fn check_plan(plan: &Plan, all: bool) -> Result<(), Problem> {
    if plan.cells.iter().any(|cell| cell.state == DataState::Aged) {
        return Err(cannot(
            "the aged state",
            "deltabench makes it once in a separate database and copies that as files",
            "leave out --state aged and workloads that need it",
        ));
    }
    if plan.limits != Limits::default() {
        return Err(cannot(
            "a memory or storage limit",
            "limits are control groups around the server's processes",
            "leave out --memory and --storage",
        ));
    }
    if plan.cache == CacheState::Cold {
        return Err(cannot(
            "a cold cache",
            "deltabench would have to restart the server and drop its pages",
            "leave out --cache-state cold",
        ));
    }
    let pinned = plan
        .pins
        .as_ref()
        .is_some_and(|pins| !pins.server.is_empty());
    if all && pinned {
        return Err(cannot(
            "pinning to cores",
            "deltabench pins only its own processes",
            "leave out --pin",
        ));
    }
    if all && plan.transport != Transport::Socket {
        return Err(cannot(
            "another transport",
            "its connection string says how to connect",
            "leave out --transport, and say sslmode= in the target",
        ));
    }
    Ok(())
}

fn check_server(server: &PlannedServer) -> Result<(), Problem> {
    if server.burn_ns.is_some() {
        return Err(cannot(
            "a known slowdown",
            "the server's processes load it when they start",
            "use a target that deltabench starts",
        ));
    }
    Ok(())
}

fn check_certificate(remote: &Remote) -> Result<(), Problem> {
    let looked_at = !matches!(remote.tls, RemoteTls::Disable | RemoteTls::Prefer);
    if remote.root_certificate.is_some() && !looked_at {
        return Err(Problem::new("this sslmode ignores sslrootcert")
            .detail(format!("dsn:{remote}"))
            .hint("use sslmode=verify-full"));
    }
    Ok(())
}

/// Looks at a server.
fn check_here(
    plan: &Plan,
    server: &PlannedServer,
    remote: &Remote,
    access: &Access,
) -> Result<(), Problem> {
    let mut client = access.connect()?;
    let (version, version_num) = fit(&mut client, remote)?;
    if version_num != server.installation.version_num {
        return Err(Problem::new(format!(
            "{} runs {version} now, but ran {} when this run was planned",
            place(remote),
            server.installation.version
        ))
        .hint("start a new run"));
    }
    let sharing = |(_, other): &&(&PlannedServer, &Remote)| {
        (&other.host, other.port) == (&remote.host, remote.port)
    };
    let servers = count(remotes(plan).iter().filter(sharing).count());
    let clients = plan.cells.iter().map(|cell| cell.clients).max();
    let wanted = u64::from(clients.unwrap_or(1)) * servers + SPARE;
    check_room(&Room::ask(&mut client)?, wanted, &place(remote))
}

/// How many connections a server has left for our role.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room {
    /// `max_connections`, and those that it keeps for others.
    most: u64,
    reserved: u64,
    used: u64,
    /// Limit of the role and of the database, and their use; no limit where negative.
    role: (i64, u64),
    database: (i64, u64),
}

impl Room {
    fn ask(client: &mut deltabench_driver::admin::Client) -> Result<Self, Problem> {
        // A backend has a database; those of the server itself have none, except autovacuum's workers.
        let sql = "SELECT current_setting('max_connections'), \
             CASE WHEN r.rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::int \
               + coalesce(current_setting('reserved_connections', true), '0')::int END, \
             (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL), \
             r.rolconnlimit, (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid), \
             d.datconnlimit, (SELECT count(*) FROM pg_stat_activity WHERE datid = d.oid) \
             FROM pg_roles r, pg_database d \
             WHERE r.rolname = current_user AND d.datname = current_database()";
        let rows = query(client, sql)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let signed = |place: usize| {
            let field = row.get(place).cloned().flatten().unwrap_or_default();
            field.parse::<i64>().unwrap_or(0)
        };
        let number = |place: usize| u64::try_from(signed(place)).unwrap_or(0);
        Ok(Self {
            most: number(0),
            reserved: number(1),
            used: number(2),
            role: (signed(3), number(4)),
            database: (signed(5), number(6)),
        })
    }

    /// Connections that are left, and what bounds them.
    fn left(&self) -> (u64, String) {
        let Self {
            most,
            reserved,
            used,
            ..
        } = self;
        let server = (
            most.saturating_sub(*reserved).saturating_sub(*used),
            format!("max_connections = {most}, {reserved} kept for others, {used} in use"),
        );
        let limited = |what: &str, (limit, used): (i64, u64)| {
            let limit = u64::try_from(limit).ok()?;
            let why = format!("the {what} may have {limit}, {used} in use");
            Some((limit.saturating_sub(used), why))
        };
        let others = [
            limited("role", self.role),
            limited("database", self.database),
        ];
        let all = others.into_iter().flatten();
        all.fold(
            server,
            |least, one| if one.0 < least.0 { one } else { least },
        )
    }
}

fn check_room(room: &Room, wanted: u64, at: &str) -> Result<(), Problem> {
    let (left, why) = room.left();
    if wanted <= left {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{at} has {left} connections left, but this run needs {wanted}"
    ))
    .detail(format!(
        "{why}; a run needs its clients on each server at the same time, and {SPARE} more for set-up"
    ))
    .hint("use fewer --clients, or allow the server or the role more connections"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::{Limits, Pins};

    fn refusal(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        // Nobody listens there, and nobody is asked before the plan itself is refused.
        let remote: Remote = "postgres://me@127.0.0.1:1/d".parse().unwrap();
        for server in &mut plan.servers {
            server.installation.remote = Some(remote.clone());
        }
        change(&mut plan);
        check(&plan).unwrap_err().to_string()
    }

    #[test]
    fn what_only_a_server_of_our_own_can_give_is_refused_with_its_option() {
        assert!(refusal(|plan| plan.cells[0].state = DataState::Aged).contains("--state aged"));
        assert!(refusal(|plan| plan.cache = CacheState::Cold).contains("--cache-state"));
        assert!(refusal(|plan| plan.transport = Transport::Tls).contains("--transport"));
        assert!(refusal(|plan| plan.servers[2].burn_ns = Some(1)).contains("slowdown"));
        let memory = Limits {
            memory_bytes: Some(1 << 30),
            ..Limits::default()
        };
        assert!(refusal(|plan| plan.limits = memory).contains("--memory"));
        let pins = Pins {
            server: vec![0],
            client: vec![1],
        };
        assert!(refusal(|plan| plan.pins = Some(pins)).contains("cores"));
        let rooted = refusal(|plan| {
            let remote = plan.servers[0].installation.remote.as_mut().unwrap();
            remote.root_certificate = Some("/ca.pem".into());
        });
        assert!(rooted.contains("verify-full"), "{rooted}");
        assert!(refusal(|_| ()).contains("cannot reach"));
    }

    #[test]
    fn a_plan_without_such_servers_is_nobody_s_business_here() {
        assert_eq!(check(&plan_of(&["a", "a", "b"], 1)), Ok(()));
    }

    #[test]
    fn the_narrowest_limit_bounds_the_connections() {
        let room = |role: (i64, u64), database: (i64, u64)| Room {
            most: 100,
            reserved: 3,
            used: 47,
            role,
            database,
        };
        assert_eq!(room((-1, 9), (-1, 9)).left().0, 50);
        assert_eq!(room((20, 9), (-1, 9)).left().0, 11);
        assert_eq!(room((20, 9), (10, 12)).left().0, 0);
        let crowded = room((20, 9), (-1, 9));
        assert!(check_room(&crowded, 11, "h:1").is_ok());
        let refused = check_room(&crowded, 12, "h:1").unwrap_err();
        assert!(refused.error.contains("11 connections left"), "{refused}");
        assert!(refused.detail.unwrap().contains("role may have 20"));
    }
}
