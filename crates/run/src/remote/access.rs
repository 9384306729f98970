//! Logging in to a server that was there before, and what it is.

use super::place;
use crate::admin::{pathless, query, text};
use crate::build::build;
use deltabench_driver::admin::Client;
use deltabench_driver::passwords::Passwords;
use deltabench_driver::{ServerError, TlsFailure, WireError};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::{Engine, Installation, Origin, Remote};
use deltabench_model::problem::Problem;
use std::time::Duration;

/// Limit for each step of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// First version that is supported.
const OLDEST: u32 = 90_600;

/// How a server is reached, with the password where there is one.
pub(super) struct Access {
    remote: Remote,
    pub(super) endpoint: Endpoint,
    /// Without settings of the session but for the name of the program and a path of its own.
    pub(super) login: Login,
    /// Why a password file was not looked at.
    warning: Option<String>,
}

impl Access {
    /// Looks for the password in the usual places.
    pub(super) fn of(remote: &Remote) -> Self {
        let endpoint = Endpoint::from(remote);
        let passwords = Passwords::from_environment();
        let found = passwords.find(&endpoint, &remote.user, &remote.database);
        Self {
            remote: remote.clone(),
            endpoint,
            login: Login {
                user: remote.user.clone(),
                database: remote.database.clone(),
                password: found.password,
                // Nothing that others have put into `public` is called by mistake.
                options: vec![
                    ("application_name".to_owned(), "deltabench".to_owned()),
                    ("search_path".to_owned(), "pg_catalog".to_owned()),
                ],
                confirm_path: true,
            },
            warning: found.warning,
        }
    }

    /// Connects.
    ///
    /// Errors: in words for whoever wrote the connection string.
    pub(super) fn connect(&self) -> Result<Client, Problem> {
        Client::connect(&self.endpoint, &self.login, CONNECT_TIMEOUT)
            .map_err(|error| self.refused(&error))
    }

    /// Connects with settings of the session, and disconnects.
    ///
    /// Errors: those of [`Access::connect`]; a setting that no session may change.
    pub(super) fn try_settings(&self, settings: &[(String, String)]) -> Result<(), Problem> {
        let mut login = self.login.clone();
        login.options.extend(settings.iter().cloned());
        let tried = Client::connect(&self.endpoint, &login, CONNECT_TIMEOUT);
        tried.map(drop).map_err(|error| {
            if matches!(error, WireError::SearchPath { .. }) {
                return self.refused(&error);
            }
            let asked: Vec<String> = settings
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            Problem::new(format!(
                "{} does not accept a setting for a session",
                place(&self.remote)
            ))
            .detail(format!("{error}\nrequested: {}", asked.join(", ")))
            .hint(
                "on a server that it did not start, deltabench can change only what SET allows; \
                 configure the server itself, or leave the setting out",
            )
        })
    }

    fn refused(&self, error: &WireError) -> Problem {
        let at = place(&self.remote);
        let Remote { user, database, .. } = &self.remote;
        match error {
            WireError::Connect { source, .. } => Problem::new(format!("cannot reach {at}"))
                .detail(source.to_string())
                .hint(
                    "does the server run, does it listen there, and does a firewall let deltabench \
                       through?",
                ),
            WireError::Tls { failure, .. } => untrusted(&at, failure),
            WireError::SearchPath { .. } => pathless(&at, error),
            WireError::Authentication { .. } if self.login.password.is_none() => {
                self.no_password(&at)
            }
            WireError::Authentication { what } => {
                Problem::new(format!("cannot log in to {at} as {user}")).detail(what.clone())
            }
            WireError::Server(error) => match error.sqlstate.as_str() {
                "28P01" => Problem::new(format!("{at} rejects the password of user {user}"))
                    .detail(error.to_string())
                    .hint(
                        "correct it in PGPASSWORD, or in the first matching line of the password \
                           file",
                    ),
                "28000" => Problem::new(format!("{at} rejects user {user}"))
                    .detail(error.to_string())
                    .hint("its pg_hba.conf decides; it may want TLS (sslmode=require)"),
                "3D000" => Problem::new(format!("{at} has no database {database}"))
                    .detail(error.to_string())
                    .hint("deltabench creates schemas, not databases: name one that exists"),
                "53300" => {
                    Problem::new(format!("{at} has no free connection")).detail(error.to_string())
                }
                "57P03" => Problem::new(format!("{at} accepts no connections now"))
                    .detail(error.to_string()),
                _ => told(&at, error),
            },
            other => Problem::new(format!("cannot log in to {at}")).detail(other.to_string()),
        }
    }

    fn no_password(&self, at: &str) -> Problem {
        let Remote {
            host,
            port,
            user,
            database,
            ..
        } = &self.remote;
        let mut detail =
            "PGPASSWORD is not set, and no line of the password file (PGPASSFILE, else ~/.pgpass) \
                          matches"
                .to_owned();
        if let Some(warning) = &self.warning {
            detail = warning.clone();
        }
        Problem::new(format!("{at} asks for the password of user {user}"))
            .detail(detail)
            .hint(format!(
                "add the line {host}:{port}:{database}:{user}:PASSWORD to ~/.pgpass (chmod 0600), or set \
                 PGPASSWORD"
            ))
    }
}

fn told(at: &str, error: &ServerError) -> Problem {
    let problem = Problem::new(format!("cannot log in to {at}")).detail(error.to_string());
    match &error.hint {
        Some(hint) => problem.hint(hint.clone()),
        None if error.message.contains("startup parameter") => problem.hint(
            "a connection pooler between deltabench and the server does not pass settings on: name the \
             server itself",
        ),
        None => problem,
    }
}

fn untrusted(at: &str, failure: &TlsFailure) -> Problem {
    match failure {
        TlsFailure::NotOffered => Problem::new(format!("{at} does not support TLS"))
            .hint("switch it on (ssl = on), or use sslmode=disable if you trust the network"),
        TlsFailure::Untrusted(why) => {
            Problem::new(format!("the certificate of {at} is not trusted"))
                .detail(why.clone())
                .hint(
                    "name its authority with sslrootcert=FILE, and use the server name of the \
                     certificate; sslmode=verify-ca does not check the name",
                )
        }
        TlsFailure::NoRoots(why) => Problem::new("there are no trusted certificates")
            .detail(why.clone())
            .hint("name a file with sslrootcert=FILE"),
        TlsFailure::Handshake(why) => {
            Problem::new(format!("{at} and deltabench cannot agree on TLS")).detail(why.clone())
        }
    }
}

/// What a server is that was there before, as it says itself.
///
/// Errors: it cannot be reached or logged in to, is none of ours, too old or a standby, or its role may not
/// make a schema.
pub fn installation(remote: &Remote) -> Result<Installation, Problem> {
    let mut client = Access::of(remote).connect()?;
    let (version, version_num) = fit(&mut client, remote)?;
    found(&mut client, remote, version, version_num)
}

/// A server that was there before, and how to log in to it to read only: it gets no schema.
#[derive(Debug, Clone)]
pub struct Readable {
    pub installation: Installation,
    pub endpoint: Endpoint,
    /// With the password, where there is one; the path of the session is only `pg_catalog`.
    pub login: Login,
}

/// The same of a server on which nothing is made; a standby will do.
///
/// Errors: it cannot be reached or logged in to, is none of ours, or too old.
pub fn readable(remote: &Remote) -> Result<Readable, Problem> {
    let access = Access::of(remote);
    let mut client = access.connect()?;
    let Says {
        version,
        version_num,
        ..
    } = Says::of(&mut client, remote)?;
    Ok(Readable {
        installation: found(&mut client, remote, version, version_num)?,
        endpoint: access.endpoint,
        login: access.login,
    })
}

fn found(
    client: &mut Client,
    remote: &Remote,
    version: String,
    version_num: u32,
) -> Result<Installation, Problem> {
    let number = version.split(' ').next().unwrap_or_default();
    Ok(Installation {
        asked: format!("dsn:{remote}"),
        resolved: format!("postgres:{number}@{}/{}", place(remote), remote.database),
        origin: Origin::Remote,
        bin_dir: std::path::PathBuf::new(),
        version_num,
        build: Some(build(client)?),
        version,
        binary_sha256: String::new(),
        recipe: None,
        remote: Some(remote.clone()),
        engine: Engine::Postgres,
    })
}

/// What a server says of itself.
struct Says {
    /// In words.
    version: String,
    version_num: u32,
    is_standby: bool,
    /// Whether our role may make a schema.
    may_create: bool,
}

impl Says {
    /// Errors: another product, too old.
    fn of(client: &mut Client, remote: &Remote) -> Result<Self, Problem> {
        let at = place(remote);
        let rows = query(client, "SELECT version()")?;
        let says = rows.into_iter().next().map(text).unwrap_or_default();
        if !says.starts_with("PostgreSQL ") {
            return Err(Problem::new(format!("{at} is not a PostgreSQL server")).detail(says));
        }
        let sql = "SELECT current_setting('server_version'), current_setting('server_version_num'), \
                   pg_is_in_recovery(), has_database_privilege(current_database(), 'CREATE')";
        let rows = query(client, sql)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let field = |place: usize| row.get(place).cloned().flatten().unwrap_or_default();
        let version_num = field(1).parse().unwrap_or(0);
        if version_num < OLDEST {
            return Err(Problem::new(format!("{at} is too old"))
                .detail(says)
                .hint("deltabench measures 9.6 and later"));
        }
        Ok(Self {
            version: field(0),
            version_num,
            is_standby: field(2) == "t",
            may_create: field(3) == "t",
        })
    }
}

/// Version of a server that can be measured, in words and as a number.
///
/// Errors: another product, too old, a standby, no right to make a schema.
pub(super) fn fit(client: &mut Client, remote: &Remote) -> Result<(String, u32), Problem> {
    let at = place(remote);
    let says = Says::of(client, remote)?;
    if says.is_standby {
        return Err(Problem::new(format!("{at} is a standby"))
            .detail("a server in recovery accepts no writes")
            .hint("name the primary"));
    }
    if !says.may_create {
        let Remote { user, database, .. } = remote;
        return Err(Problem::new(format!(
            "user {user} may not create a schema in database {database} on {at}"
        ))
        .hint(format!(
            "have its owner run: GRANT CREATE ON DATABASE \"{database}\" TO \"{user}\""
        )));
    }
    Ok((says.version, says.version_num))
}
