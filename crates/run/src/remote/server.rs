//! A server that was there before, for as long as a run uses it.

use super::access::{Access, fit};
use super::agents::{Agents, find_again};
use super::schemas::{Mark, drop_schema, lock, make, sweep, unlock};
use super::{place, schemas};
use crate::admin::{query, text};
use crate::site::{Home, Schemas, Site, WORK_SUFFIX, limit};
use deltabench_driver::admin::Client;
use deltabench_model::installation::Remote;
use deltabench_model::problem::Problem;
use deltabench_observe::Postmaster;
use std::time::Duration;

/// Limit for each answer when a run goes away without being told to: longer than dropping tables takes.
const FAREWELL: Duration = Duration::from_secs(60);

/// First version that may end a session for being idle.
const IDLE_LIMIT_SINCE: u32 = 140_000;

/// One server, and what the run has made on it. Dropping it drops that.
pub(crate) struct RemoteServer {
    remote: Remote,
    access: Access,
    /// Holds the locks of our schemas, and does nothing else for long.
    guard: Client,
    version_num: u32,
    /// Schemas of ours, without those of cells that write.
    made: Vec<String>,
    mark: String,
    /// How `pg_prewarm` is called, if it may be.
    prewarm: Option<String>,
    /// When the server was started, as it says.
    started: String,
    /// The same in all sessions of one server, and in no other; absent if it may not be asked.
    identity: Option<String>,
    restarted: bool,
    /// Its main process, if an agent tells.
    postmaster: Postmaster,
}

impl RemoteServer {
    /// Connects and sweeps up what killed runs have left.
    ///
    /// Errors: those of [`super::installation`]; an agent that cannot be had, or does not find the server.
    pub(crate) fn open(
        remote: &Remote,
        run: &str,
        agents: &mut Agents,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Problem> {
        let access = Access::of(remote);
        let mut guard = access.connect()?;
        let (_, version_num) = fit(&mut guard, remote)?;
        prepare(&mut guard, version_num)?;
        let postmaster = agents.postmaster(remote, &access, &mut guard)?;
        sweep(&mut guard, &place(remote), note)?;
        Ok(Self {
            prewarm: prewarm(&mut guard)?,
            started: started(&mut guard)?,
            identity: identity(&mut guard),
            remote: remote.clone(),
            access,
            guard,
            version_num,
            made: Vec::new(),
            mark: Mark::ours(run).text(),
            restarted: false,
            postmaster,
        })
    }

    /// Whether it is that server.
    pub(crate) fn is(&self, remote: &Remote) -> bool {
        self.remote == *remote
    }

    /// `HOST:PORT`.
    pub(crate) fn place(&self) -> String {
        place(&self.remote)
    }

    /// What tells it from other servers; absent if it does not say.
    pub(crate) fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Whether tables can be brought into shared buffers there.
    pub(crate) fn can_prewarm(&self) -> bool {
        self.prewarm.is_some()
    }

    /// Its main process, where an agent tells.
    pub(crate) fn postmaster(&self) -> &Postmaster {
        &self.postmaster
    }

    /// Whether it has been restarted since the run began.
    pub(crate) fn was_restarted(&self) -> bool {
        self.restarted
    }

    /// Makes the schema of a run's server; its name.
    ///
    /// Errors: it is there already; whatever the server answered.
    pub(crate) fn make(&mut self, run: &str, number: usize) -> Result<String, Problem> {
        let schema = schemas::name(run, number);
        if !lock(&mut self.guard, &schema)? {
            return Err(Problem::new(format!("schema {schema} is in use"))
                .detail("another deltabench holds its lock")
                .hint("wait for that run to end"));
        }
        make(&mut self.guard, &schema, &self.mark)?;
        self.made.push(schema.clone());
        Ok(schema)
    }

    /// How set-up work and clients come to a schema, with these settings in each session.
    pub(crate) fn site(&self, schema: &str, settings: &[(String, String)]) -> Site {
        let mut login = self.access.login.clone();
        // Whoever looks at the server's sessions sees whose they are.
        login.options = vec![("application_name".to_owned(), schema.to_owned())];
        login.options.extend(settings.iter().cloned());
        Site {
            endpoint: self.access.endpoint.clone(),
            home: Home::Schemas(Box::new(Schemas {
                login,
                kept: schema.to_owned(),
                mark: self.mark.clone(),
                prewarm: self.prewarm.clone(),
            })),
        }
    }

    /// Looks whether the server is still there and still the one that was started when the run began; makes
    /// the connection that holds the locks anew if it was lost.
    ///
    /// Errors: it cannot be reached; somebody else has taken a lock.
    pub(crate) fn look_after(&mut self) -> Result<(), Problem> {
        if started(&mut self.guard).as_ref() == Ok(&self.started) {
            return Ok(());
        }
        let mut guard = self.access.connect()?;
        prepare(&mut guard, self.version_num)?;
        for schema in &self.made {
            if !lock(&mut guard, schema)? {
                return Err(
                    Problem::new(format!("somebody else took schema {schema}")).detail(format!(
                        "the connection to {} that guards it was lost",
                        place(&self.remote)
                    )),
                );
            }
        }
        let since = started(&mut guard)?;
        if since != self.started {
            self.restarted = true;
            self.started = since;
            self.postmaster = find_again(&self.postmaster, &self.remote, &mut guard);
        }
        self.guard = guard;
        Ok(())
    }

    /// Drops what was made.
    ///
    /// Errors: the first that could not be dropped; all others are.
    pub(crate) fn dismantle(&mut self) -> Result<(), Problem> {
        let made = std::mem::take(&mut self.made);
        if made.is_empty() {
            return Ok(());
        }
        let gone = self.look_after().and_then(|()| limit(&mut self.guard));
        let results: Vec<Result<(), Problem>> = made
            .iter()
            .map(|schema| {
                gone.clone()?;
                drop_schema(&mut self.guard, &format!("{schema}{WORK_SUFFIX}"))
                    .and(drop_schema(&mut self.guard, schema))
                    .and(unlock(&mut self.guard, schema))
            })
            .collect();
        let result: Result<(), Problem> = results.into_iter().collect();
        result.map_err(|problem| {
            let left = format!("on {}: {}", place(&self.remote), made.join(", "));
            let detail = problem.detail.clone().unwrap_or_default();
            problem.detail(format!(
                "{detail}\nleft until the next run there removes them: {left}"
            ))
        })
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        // Nobody is left to tell; what stays behind is found by the next sweep.
        let _ = self.guard.set_timeout(Some(FAREWELL));
        let _ = self.dismantle();
    }
}

/// Makes a connection fit to be kept for a whole run.
fn prepare(guard: &mut Client, version_num: u32) -> Result<(), Problem> {
    limit(guard)?;
    if version_num >= IDLE_LIMIT_SINCE {
        query(guard, "SET idle_session_timeout = 0")?;
    }
    Ok(())
}

fn started(client: &mut Client) -> Result<String, Problem> {
    let rows = query(client, "SELECT pg_postmaster_start_time()")?;
    Ok(rows.into_iter().next().map(text).unwrap_or_default())
}

/// Which cluster it is, and when it was started: a restored copy is the same cluster, and another start. A
/// service may forbid to ask.
fn identity(client: &mut Client) -> Option<String> {
    let sql = "SELECT system_identifier || ' ' || extract(epoch FROM pg_postmaster_start_time()) \
               FROM pg_catalog.pg_control_system()";
    let rows = query(client, sql).ok()?;
    rows.into_iter()
        .next()
        .map(text)
        .filter(|known| !known.is_empty())
}

/// The qualified name of `pg_prewarm`, where it is installed and we may call it. Only that of the extension:
/// anybody may have put another function of that name somewhere.
fn prewarm(client: &mut Client) -> Result<Option<String>, Problem> {
    let sql = "SELECT quote_ident(n.nspname) || '.pg_prewarm' FROM pg_extension AS e \
               JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid \
               AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e' \
               JOIN pg_proc AS p ON p.oid = d.objid JOIN pg_namespace AS n ON n.oid = p.pronamespace \
               WHERE e.extname = 'pg_prewarm' AND p.proname = 'pg_prewarm' \
               AND p.proargtypes[0] = 'regclass'::regtype \
               AND has_function_privilege(p.oid, 'EXECUTE') \
               AND has_schema_privilege(n.oid, 'USAGE')";
    let rows = query(client, sql)?;
    Ok(rows.into_iter().next().map(text))
}
