//! Connection strings of servers that are there already.

use crate::installation::{Remote, RemoteTls};
use crate::problem::{Problem, nearest};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Keys after the `?`.
const KEYS: [&str; 4] = ["sslmode", "sslrootcert", "host", "agent"];

/// Modes of encryption and their words.
const MODES: [(RemoteTls, &str); 5] = [
    (RemoteTls::Disable, "disable"),
    (RemoteTls::Prefer, "prefer"),
    (RemoteTls::Require, "require"),
    (RemoteTls::VerifyCa, "verify-ca"),
    (RemoteTls::VerifyFull, "verify-full"),
];

/// Port where none is written.
const PORT: u16 = 5432;

impl FromStr for Remote {
    type Err = Problem;

    /// Reads `postgres://USER@HOST[:PORT]/DATABASE[?KEY=VALUE&…]`; user, host and database must be there,
    /// so that nothing of the environment decides where a load goes. `host=/DIR` names a local socket, for
    /// which the place of the host stays empty.
    ///
    /// Errors: another form, an unknown key, a password: it would be stored with the command line.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or_else(|| bad("it does not start with postgres://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place
            .split_once('/')
            .filter(|(_, database)| !database.is_empty())
            .ok_or_else(|| bad("it names no database"))?;
        let (user, address) = authority
            .rsplit_once('@')
            .filter(|(user, _)| !user.is_empty())
            .ok_or_else(|| bad("it names no user"))?;
        if user.contains(':') {
            // Nothing of it is repeated.
            return Err(
                Problem::new("a password in a target would be stored with the run")
                    .detail("deltabench takes passwords from PGPASSWORD, PGPASSFILE or ~/.pgpass")
                    .hint("leave the password out of the target and put it there"),
            );
        }
        let (host, port) = host_and_port(address)?;
        let mut remote = Self {
            host: decoded(host)?,
            port,
            user: decoded(user)?,
            database: decoded(database)?,
            tls: RemoteTls::default(),
            root_certificate: None,
            agent: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            remote.take(pair)?;
        }
        if remote.host.is_empty() {
            return Err(bad("it names no host"));
        }
        Ok(remote)
    }
}

impl Remote {
    fn take(&mut self, pair: &str) -> Result<(), Problem> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        match key {
            "sslmode" => match MODES.iter().find(|(_, word)| *word == value) {
                Some((mode, _)) => self.tls = *mode,
                None => {
                    let words: Vec<&str> = MODES.iter().map(|(_, word)| *word).collect();
                    return Err(bad(&format!("sslmode is one of {}", words.join(", "))));
                }
            },
            "sslrootcert" => self.root_certificate = Some(PathBuf::from(value)),
            "host" if value.starts_with('/') && self.host.is_empty() => self.host = value,
            "host" => return Err(bad("host= names the directory of a local socket")),
            "agent" if value.starts_with("ssh:") => self.agent = Some(value),
            "agent" => return Err(bad("an agent is written agent=ssh:HOST")),
            _ if key.eq_ignore_ascii_case("password") => {
                return Err(bad("a target cannot contain a password"));
            }
            _ => {
                let problem = bad(&format!("unknown key `{key}`"));
                return Err(match nearest(key, KEYS) {
                    Some(near) => problem.hint(format!("did you mean {near}?")),
                    None => problem,
                });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, socket) = if self.host.starts_with('/') {
            ("", Some(format!("host={}", encoded(&self.host))))
        } else {
            (self.host.as_str(), None)
        };
        let bracketed = if host.contains(':') {
            format!("[{}]", encoded_but(host, b":"))
        } else {
            encoded(host)
        };
        write!(f, "postgres://{}@{bracketed}", encoded(&self.user))?;
        if self.port != PORT {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "/{}", encoded(&self.database))?;
        let mode = (self.tls != RemoteTls::default())
            .then(|| MODES.iter().find(|(mode, _)| *mode == self.tls))
            .flatten()
            .map(|(_, word)| format!("sslmode={word}"));
        let certificate = self
            .root_certificate
            .as_ref()
            .map(|file| format!("sslrootcert={}", encoded(&file.display().to_string())));
        let agent = self
            .agent
            .as_ref()
            .map(|agent| format!("agent={}", encoded_but(agent, b":@")));
        let pairs: Vec<String> = [socket, mode, certificate, agent]
            .into_iter()
            .flatten()
            .collect();
        if pairs.is_empty() {
            Ok(())
        } else {
            write!(f, "?{}", pairs.join("&"))
        }
    }
}

fn bad(why: &str) -> Problem {
    Problem::new("bad connection string")
        .detail(why.to_owned())
        .hint("write dsn:postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full")
}

fn host_and_port(address: &str) -> Result<(&str, u16), Problem> {
    let (host, port) = match address
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, "")) => (host, None),
        Some((host, rest)) => {
            let port = rest.strip_prefix(':');
            let port = port.ok_or_else(|| bad("what follows the `]` is not a `:` and a port"))?;
            (host, Some(port))
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    match port {
        None => Ok((host, PORT)),
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => Ok((host, port)),
            // It is not repeated: a password in the wrong place is one all the same.
            _ => Err(bad("what follows the host and a `:` is not a port")),
        },
    }
}

/// `%41` is `A`.
fn decoded(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
            _ => return Err(bad("a `%` needs two hexadecimal digits after it")),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))
}

fn encoded(text: &str) -> String {
    encoded_but(text, b"")
}

/// The same, with some more characters left as they are.
fn encoded_but(text: &str, kept: &[u8]) -> String {
    use fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_comes_back_as_it_was() {
        for text in [
            "postgres://me@db.example/bench",
            "postgres://me%40work@db.example:6432/b%20x?sslmode=verify-full&sslrootcert=/ca.pem",
            "postgres://me@[::1]:6432/bench?agent=ssh:me@db.example",
            "postgres://me@[fe80::1%25eth0]/bench",
            "postgres://me@/bench?host=/var/run/postgresql",
            "postgres://me@h/bench?agent=ssh:me@db%26sslmode%3Ddisable%25%20x",
        ] {
            assert_eq!(text.parse::<Remote>().unwrap().to_string(), text);
        }
        let remote: Remote = "postgresql://me@h/d".parse().unwrap();
        assert_eq!((remote.port, remote.tls), (5432, RemoteTls::Prefer));
    }

    #[test]
    fn a_port_after_a_host_in_brackets_begins_with_a_colon() {
        let port = |address: &str| {
            let remote = format!("postgres://me@{address}/d").parse::<Remote>();
            remote.map(|remote| (remote.host, remote.port))
        };
        assert_eq!(port("[::1]").unwrap(), ("::1".to_owned(), 5432));
        assert_eq!(port("[::1]:5433").unwrap(), ("::1".to_owned(), 5433));
        assert!(port("[::1]5433").is_err() && port("[::1]x:5433").is_err());
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for text in [
            "postgres://me:hunter2@h/d",
            "postgres://me@h/d?password=hunter2",
            "postgres://me@h:hunter2/d",
            "postgres://me@[::1]:hunter2/d",
            "postgres://me@[::1]hunter2/d",
        ] {
            let problem = text.parse::<Remote>().unwrap_err();
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn what_would_leave_the_place_of_the_load_to_chance_is_refused() {
        for text in [
            "host=h dbname=d",
            "postgres://h/d",
            "postgres://me@h",
            "postgres://me@/d",
            "postgres://me@h:x/d",
            "postgres://me@h/d?sslmode=maybe",
            "postgres://me@h/d?sslmod=require",
            "postgres://me@h/%zz",
        ] {
            assert!(text.parse::<Remote>().is_err(), "{text}");
        }
    }
}
