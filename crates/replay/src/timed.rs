//! The servers of a replay from block to block: restarted, analysed, connected to; and what is sent to them.
//!
//! Order of servers: base, placebo, candidates. The placebo is a copy of the base's data directory, page by
//! page. Of servers that somebody else runs it is the base itself, and nothing of them restarts or is
//! analysed.

mod found;

pub use found::{TupleFacts, statements};

use crate::clock::{Ahead, SetClock};
use crate::reach::{Reach, Tables, Who, session};
use crate::request::{Request, Wish};
use crate::servers::{Member, Servers, settings};
use crate::session::{answer_limit, set};
use crate::watched::watched;
use crate::work::{Job, Work};
use deltabench_capture::Protocol;
use deltabench_driver::WireError;
use deltabench_driver::tuples::{Cancel, Executed, TupleText, Tuples, TuplesSpec, Way};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_model::work::replay::TimedStatement;
use deltabench_server::{Cluster, ClusterSpec, Slot, Workspace};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Limit for connecting to a server and preparing a statement.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Which cluster plays a server of the plan in a block, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Place of the server in the plan.
    pub server: usize,
    /// Place of the data directory that it gets.
    pub cluster: usize,
    /// Number in the socket's name.
    pub port: u16,
    /// Whether it runs a new copy of its executable.
    pub own_executable: bool,
}

/// Servers with the tables. Dropping them stops those of our own and removes their data.
pub struct TimedServers {
    home: Home,
    timeout_seconds: u32,
}

/// Sessions of a server's own, beside those of a mix.
const OTHER_CONNECTIONS: u32 = 10;

/// Whose servers they are.
enum Home {
    Ours(Ours),
    /// In the order of the plan.
    Theirs(Vec<Reach>),
}

/// Servers of our own, which restart in each block.
struct Ours {
    // Clusters stop before their directory goes.
    clusters: Vec<Cluster>,
    wishes: Vec<Wish>,
    /// By server: the cluster that plays it.
    playing: Vec<usize>,
    /// That a server has at least.
    connections: u32,
    /// What they start with.
    clock: Option<SetClock>,
    workspace: Workspace,
}

/// What is sent of a statement. Texts and values are secrets: `Debug` does not show them.
pub struct TimedJob {
    way: Way,
    /// Those that it needs: a mix may have it on a copy, too.
    tables: Tables,
    who: Who,
    tuples: Vec<(String, Vec<Option<String>>)>,
}

impl TimedServers {
    /// Takes over servers with tables. Those of our own stop, and the base is copied for the placebo.
    ///
    /// Errors: a server that does not stop cleanly, a full disk.
    pub(crate) fn of(
        servers: Servers<'_>,
        request: &Request<'_>,
        jobs: &[TimedJob],
    ) -> Result<Self, Problem> {
        let (members, workspace, clock) = servers.into_parts();
        let connections = connections(request.mix, jobs);
        let home = match workspace {
            Some(workspace) => {
                let mut ours = Ours::of((members, workspace), request, connections)?;
                ours.clock = clock;
                Home::Ours(ours)
            }
            None => {
                let mut all: Vec<Reach> = members.into_iter().map(|member| member.reach).collect();
                all.splice(0..0, all.first().cloned());
                Home::Theirs(all)
            }
        };
        Ok(Self {
            home,
            timeout_seconds: request.timeout_seconds,
        })
    }

    /// Stops all servers of our own and starts them in this order.
    ///
    /// Must be called on a thread that outlives the servers.
    ///
    /// Errors: a server that does not stop or start.
    pub fn restart(&mut self, starts: &[Start]) -> Result<(), Problem> {
        match &mut self.home {
            Home::Ours(ours) => ours.restart(starts),
            Home::Theirs(_) => Ok(()),
        }
    }

    /// Has new statistics drawn, on all servers of our own at the same time.
    ///
    /// Errors: what a server answers; an interruption.
    pub fn analyze(&self, interrupted: &AtomicBool) -> Result<(), Problem> {
        let Home::Ours(ours) = &self.home else {
            return Ok(());
        };
        Self::on_ours(ours, interrupted, |(reach, _)| reach.analyze())
    }

    /// Does something on all servers of our own at the same time; each has its version.
    fn on_ours(
        ours: &Ours,
        interrupted: &AtomicBool,
        what: impl Fn(&(Reach, u32)) -> Result<(), Problem> + Sync,
    ) -> Result<(), Problem> {
        let wishes = ours.wishes.iter().enumerate();
        let one = |(server, wish): (usize, &Wish)| {
            let reach = ours.reach(server).ok_or_else(no_such_server)?;
            Ok((reach, wish.installation.version_num))
        };
        let all: Vec<(Reach, u32)> = wishes.map(one).collect::<Result<_, Problem>>()?;
        let end = || all.iter().for_each(|(reach, _)| reach.end_sessions());
        let ends = watched(&all, interrupted, what, end);
        ends.into_iter().collect()
    }

    /// Makes the copies that writes change anew, on all servers at the same time. Nobody may be connected to
    /// the tables or to the copies.
    ///
    /// Errors: what a server answers; servers of somebody else; an interruption.
    pub fn copy(&self, interrupted: &AtomicBool) -> Result<(), Problem> {
        let Home::Ours(ours) = &self.home else {
            return Err(Problem::new(
                "nothing is copied on servers that already run",
            ));
        };
        Self::on_ours(ours, interrupted, |(reach, version)| reach.copy(*version))
    }

    /// Removes the copies.
    ///
    /// Errors: what a server answers; an interruption.
    pub fn drop_copies(&self, interrupted: &AtomicBool) -> Result<(), Problem> {
        match &self.home {
            Home::Ours(ours) => Self::on_ours(ours, interrupted, |(reach, _)| reach.drop_copy()),
            Home::Theirs(_) => Ok(()),
        }
    }

    /// A connection to a server for one statement: nothing that a read sends can write, and a write has a
    /// copy. A prepared statement is planned with the values in this order until its plan cache has decided.
    ///
    /// Errors: the server cannot be reached, or does not take the statement.
    pub fn connect(
        &self,
        server: usize,
        job: &TimedJob,
        order: &[usize],
    ) -> Result<Tuples, WireError> {
        self.connect_with(server, job, order, &[])
    }

    /// The same in a session with these settings.
    ///
    /// Errors: as [`connect`](Self::connect).
    pub fn connect_with(
        &self,
        server: usize,
        job: &TimedJob,
        order: &[usize],
        settings: &[(String, String)],
    ) -> Result<Tuples, WireError> {
        let tuples: Vec<TupleText<'_>> = job.texts().collect();
        self.open(server, (&job.who, job.tables, settings), (&tuples, order))
    }

    /// A client of a server that sends all these statements: a connection for each role and path. With
    /// `copies` it works on the copy, where writes can.
    ///
    /// Errors: as [`connect`](Self::connect).
    pub fn connect_mix(
        &self,
        server: usize,
        jobs: &[&TimedJob],
        copies: bool,
    ) -> Result<MixedLines, WireError> {
        let tables = if copies { Tables::Copy } else { Tables::Kept };
        let whos = whos(jobs.iter().copied());
        let mut mixed = MixedLines {
            lines: Vec::with_capacity(whos.len()),
            places: vec![(0, 0); jobs.len()],
        };
        for (line, who) in whos.into_iter().enumerate() {
            let mut tuples = Vec::new();
            let its = jobs.iter().zip(&mut mixed.places);
            for (job, place) in its.filter(|(job, _)| job.who == *who) {
                *place = (line, tuples.len());
                tuples.extend(job.texts());
            }
            let order: Vec<usize> = (0..tuples.len()).collect();
            let line = self.open(server, (who, tables, &[]), (&tuples, &order))?;
            mixed.lines.push(line);
        }
        Ok(mixed)
    }

    /// A connection as this role, to these tables.
    fn open(
        &self,
        server: usize,
        (who, tables, settings): (&Who, Tables, &[(String, String)]),
        (tuples, order): (&[TupleText<'_>], &[usize]),
    ) -> Result<Tuples, WireError> {
        let reach = match &self.home {
            Home::Ours(ours) => ours.reach(server),
            Home::Theirs(all) => all.get(server).cloned(),
        };
        let reach = reach.ok_or_else(|| WireError::Protocol {
            what: "it does not run".to_owned(),
        })?;
        if tables == Tables::Copy && !reach.is_ours() {
            return Err(WireError::Protocol {
                what: "nothing is written on servers that already run".to_owned(),
            });
        }
        let mut before = session(self.timeout_seconds, tables);
        before.extend(who.set_path());
        before.extend(settings.iter().map(|setting| set("SET", setting)));
        let spec = TuplesSpec {
            before: &before,
            tuples,
            order,
            limit: CONNECT_LIMIT,
            answer: answer_limit(self.timeout_seconds),
        };
        Tuples::open(&reach.endpoint, &reach.login(who, tables), &spec)
    }

    /// Process id of the postmaster that plays a server of our own.
    pub fn pid(&self, server: usize) -> Option<u32> {
        match &self.home {
            Home::Ours(ours) => {
                let cluster = ours.clusters.get(*ours.playing.get(server)?)?;
                cluster.postmaster_pid()
            }
            Home::Theirs(_) => None,
        }
    }

    /// Process ids of the postmasters of our own.
    pub fn pids(&self) -> Vec<u32> {
        match &self.home {
            Home::Ours(ours) => {
                let clusters = ours.clusters.iter();
                clusters.filter_map(Cluster::postmaster_pid).collect()
            }
            Home::Theirs(_) => Vec::new(),
        }
    }

    /// Stops all servers of our own and removes their data.
    ///
    /// Errors: what cannot be removed.
    pub fn dismantle(self) -> Result<(), Problem> {
        match self.home {
            Home::Ours(ours) => ours.dismantle(),
            Home::Theirs(_) => Ok(()),
        }
    }
}

impl Ours {
    fn of(
        (members, workspace): (Vec<Member<'_>>, Workspace),
        request: &Request<'_>,
        connections: u32,
    ) -> Result<Self, Problem> {
        let mut clusters = Vec::new();
        let mut wishes = Vec::new();
        for member in members {
            let wish = member.wish.clone();
            if let Some(mut cluster) = member.into_cluster() {
                cluster.stop()?;
                clusters.push(cluster);
                wishes.push(wish);
            }
        }
        if let (Some(base), Some(wish)) = (clusters.first(), wishes.first()) {
            let spec = ClusterSpec {
                installation: &wish.installation,
                checksums: request.checksums,
                settings: &[],
            };
            let mut placebo =
                Cluster::create(&workspace, "placebo", &spec, request.cache, request.user)?;
            placebo.copy_data(base)?;
            let wish = wish.clone();
            clusters.insert(1, placebo);
            wishes.insert(1, wish);
        }
        Ok(Self {
            playing: (0..clusters.len()).collect(),
            connections,
            clusters,
            wishes,
            clock: None,
            workspace,
        })
    }

    fn restart(&mut self, starts: &[Start]) -> Result<(), Problem> {
        for cluster in &mut self.clusters {
            cluster.stop()?;
        }
        let ahead = Ahead::of(self.clock.as_ref());
        for start in starts {
            let slot = Slot {
                port: start.port,
                environment: ahead.environment.clone(),
                own_executable: start.own_executable,
                ..Slot::default()
            };
            let wish = self.wishes.get(start.server);
            let cluster = self.clusters.get_mut(start.cluster);
            let (Some(wish), Some(cluster)) = (wish, cluster) else {
                return Err(no_such_server());
            };
            cluster.start(&slot, &settings(wish, self.connections))?;
            if let Some(playing) = self.playing.get_mut(start.server) {
                *playing = start.cluster;
            }
        }
        Ok(())
    }

    fn dismantle(mut self) -> Result<(), Problem> {
        for cluster in &mut self.clusters {
            cluster.abandon();
        }
        drop(std::mem::take(&mut self.clusters));
        self.workspace.remove()
    }

    fn reach(&self, server: usize) -> Option<Reach> {
        let cluster = self.clusters.get(*self.playing.get(server)?)?;
        let name = &self.wishes.get(server)?.installation.resolved;
        Some(Reach::ours(name, cluster.endpoint()?))
    }
}

/// A client of a mix: its connections, and where each statement is.
#[derive(Debug)]
pub struct MixedLines {
    lines: Vec<Tuples>,
    /// By statement: its connection, and the place of its first tuple there.
    places: Vec<(usize, usize)>,
}

impl MixedLines {
    /// Executes a tuple of a statement.
    ///
    /// Errors: as [`Tuples::execute`].
    pub fn execute(&mut self, job: usize, tuple: usize) -> Result<Executed, WireError> {
        let (line, first) = self.places.get(job).copied().unwrap_or_default();
        let line = self
            .lines
            .get_mut(line)
            .ok_or_else(|| WireError::Protocol {
                what: "a client has no such statement".to_owned(),
            })?;
        line.execute(first + tuple)
    }

    /// What another thread ends its executions with.
    pub fn cancels(&self) -> impl Iterator<Item = Cancel> {
        self.lines.iter().map(Tuples::cancel)
    }
}

impl TimedJob {
    /// Whether it needs a copy of the tables.
    pub fn writes(&self) -> bool {
        self.tables == Tables::Copy
    }

    /// All that is sent of it.
    fn texts(&self) -> impl Iterator<Item = TupleText<'_>> {
        let way = self.way;
        self.tuples
            .iter()
            .map(move |(sql, values)| TupleText { way, sql, values })
    }

    /// The tuples of a statement that are measured. `roles` may log in everywhere.
    fn of(job: &Job<'_>, timed: &TimedStatement, roles: &BTreeSet<String>) -> Self {
        let places = timed.tuples.iter().map(|tuple| tuple.place);
        let tuple = |place: u32| {
            let tuple = job.tuples.get(usize::try_from(place).ok()?)?;
            Some((tuple.sql.to_owned(), tuple.tuple.values.clone()))
        };
        Self {
            way: match job.statement.protocol {
                Protocol::Simple => Way::Simple,
                Protocol::Extended => Way::Extended,
                Protocol::Prepared => Way::Prepared,
            },
            tables: Tables::of(job.statement.kind),
            who: Who::of(job.statement, roles),
            tuples: places.filter_map(tuple).collect(),
        }
    }
}

impl fmt::Debug for TimedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedJob")
            .field("way", &self.way)
            .field("tuples", &self.tuples.len())
            .finish_non_exhaustive()
    }
}

/// What is sent of these statements of a workload.
///
/// Errors: the workload is not the one that they are from.
pub fn jobs(
    work: &Work<'_>,
    statements: &[TimedStatement],
    roles: &BTreeSet<String>,
) -> Result<Vec<TimedJob>, Problem> {
    let job = |timed: &TimedStatement| {
        let place = usize::try_from(timed.place).ok();
        let job = place.and_then(|place| work.jobs.get(place));
        let job = job.filter(|job| job.statement.id == timed.id)?;
        let job = TimedJob::of(job, timed, roles);
        (job.tuples.len() == timed.tuples.len()).then_some(job)
    };
    let jobs: Option<Vec<TimedJob>> = statements.iter().map(job).collect();
    jobs.ok_or_else(|| Problem::new("the capture does not have the statements of the replay"))
}

/// A hash of all texts and values that are sent, by which they are known again.
pub fn sent_sha256(jobs: &[TimedJob]) -> String {
    let mut hash = Sha256::new();
    // With its length, so that no end of one is taken for the begin of the next.
    let mut add = |text: &str| {
        hash.update(count(text.len()).to_le_bytes());
        hash.update(text);
    };
    for (sql, values) in jobs.iter().flat_map(|job| &job.tuples) {
        add(sql);
        add(&values.len().to_string());
        for value in values {
            add(if value.is_some() { "value" } else { "null" });
            value.iter().for_each(|value| add(value));
        }
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The roles and paths of statements, each once.
fn whos<'a>(jobs: impl Iterator<Item = &'a TimedJob>) -> Vec<&'a Who> {
    let mut whos: Vec<&Who> = Vec::new();
    for job in jobs {
        if !whos.contains(&&job.who) {
            whos.push(&job.who);
        }
    }
    whos
}

/// Connections that a server has to take: each client of a mix has one for each role and path.
fn connections(mix: Option<u32>, jobs: &[TimedJob]) -> u32 {
    let whos = u32::try_from(whos(jobs.iter()).len()).unwrap_or(u32::MAX);
    let of_mix = mix.map_or(0, |clients| whos.saturating_mul(clients));
    OTHER_CONNECTIONS.saturating_add(of_mix)
}

fn no_such_server() -> Problem {
    Problem::new("a server of the replay does not run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_capture::Statement;

    fn job(role: &str, path: &str) -> TimedJob {
        let statement: Statement = serde_json::from_value(serde_json::json!({
            "id": "1", "normalised": "select ?", "text": "select 1", "protocol": "simple", "role": role,
            "search_path": path, "kind": "read", "calls": 1, "weight": "log"
        }))
        .unwrap();
        TimedJob {
            way: Way::Simple,
            tables: Tables::Kept,
            who: Who::of(
                &statement,
                &BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            ),
            tuples: Vec::new(),
        }
    }

    #[test]
    fn what_is_sent_is_known_again_and_nothing_else_is_taken_for_it() {
        type Sent<'a> = &'a [(&'a str, &'a [Option<&'a str>])];
        let sent = |tuples: Sent<'_>| {
            let owned = |value: &Option<&str>| value.map(str::to_owned);
            let tuples = tuples
                .iter()
                .map(|(sql, values)| ((*sql).to_owned(), values.iter().map(owned).collect()));
            let job = TimedJob {
                tuples: tuples.collect(),
                ..job("a", "x")
            };
            sent_sha256(&[job])
        };
        let all: [Sent<'_>; 7] = [
            &[("select $1", &[Some("7")])],
            &[("select $1", &[Some("8")])],
            &[("select $1 ", &[Some("7")])],
            &[("select $1", &[None])],
            &[("select $1", &[Some("")])],
            &[("select $1", &[Some("7"), Some("8")])],
            &[("select $1", &[Some("7")]), ("8", &[])],
        ];
        let found: BTreeSet<String> = all.iter().map(|one| sent(one)).collect();
        assert_eq!(found.len(), all.len());
        assert!(found.contains(&sent(all[0])), "the same again");
    }

    #[test]
    fn each_client_of_a_mix_has_a_connection_for_each_role_and_path() {
        let jobs = [
            job("a", "x"),
            job("a", "y"),
            job("b", "x"),
            job("a", "x"),
            job("a", "z"),
            job("b", "z"),
        ];
        assert_eq!(connections(Some(8), &jobs), OTHER_CONNECTIONS + 5 * 8);
        assert_eq!(connections(None, &jobs), OTHER_CONNECTIONS);
    }
}
