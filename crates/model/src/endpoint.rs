//! Where a server listens and who we are to it.

use crate::installation::{Remote, RemoteTls};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The local socket `DIRECTORY/.s.PGSQL.PORT`.
    Unix {
        directory: PathBuf,
        /// Port number in the socket's name.
        port: u16,
    },
    Tcp {
        /// Host name or address.
        host: String,
        port: u16,
        /// Whether the connection is encrypted.
        tls: Tls,
    },
}

/// Encryption of a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Tls {
    #[default]
    Off,
    /// TLS if the server does it; its certificate is not verified.
    Preferred,
    /// TLS; the server's certificate is not verified. For servers of our own on the loopback address, whose
    /// certificates are made for the run, and for those who ask for no more.
    Unverified,
    /// TLS with a certificate that a trusted authority signed for whomever: one of this file, or else of the
    /// system.
    VerifyCa(Option<PathBuf>),
    /// TLS with a certificate that a trusted authority signed for this host.
    VerifyFull(Option<PathBuf>),
}

impl Endpoint {
    /// Whether the server's processes are on this machine, as far as the address tells.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix { .. } => true,
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl Remote {
    /// Whether it runs on another machine, as far as the address tells.
    pub fn is_elsewhere(&self) -> bool {
        !Endpoint::from(self).is_local()
    }
}

impl From<&Remote> for Endpoint {
    fn from(remote: &Remote) -> Self {
        if remote.host.starts_with('/') {
            return Self::Unix {
                directory: PathBuf::from(&remote.host),
                port: remote.port,
            };
        }
        // `sslrootcert=system` is what libpq calls the certificates of the system.
        let named = remote.root_certificate.clone();
        let authority = named.filter(|file| file != Path::new("system"));
        let tls = match remote.tls {
            RemoteTls::Disable => Tls::Off,
            RemoteTls::Prefer => Tls::Preferred,
            // As libpq: whoever names an authority wants it asked.
            RemoteTls::Require if authority.is_some() => Tls::VerifyCa(authority),
            RemoteTls::Require => Tls::Unverified,
            RemoteTls::VerifyCa => Tls::VerifyCa(authority),
            RemoteTls::VerifyFull => Tls::VerifyFull(authority),
        };
        Self::Tcp {
            host: remote.host.clone(),
            port: remote.port,
            tls,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { directory, port } => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
            Self::Tcp { host, port, tls } => {
                let tls = match tls {
                    Tls::Off | Tls::Preferred => "",
                    _ => " (TLS)",
                };
                write!(f, "{host}:{port}{tls}")
            }
        }
    }
}

/// What the start-up message says. The password is never printed and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Role name.
    pub user: String,
    pub database: String,
    /// Password, for servers that ask for one.
    pub password: Option<String>,
    /// Settings sent with the start-up message, for example `search_path`.
    pub options: Vec<(String, String)>,
    /// Whether the server is asked, before anything else is sent, if it has taken `search_path`: statements
    /// name tables without their schema, and something before somebody else's server may drop the setting.
    pub confirm_path: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("options", &self.options)
            .field("confirm_path", &self.confirm_path)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let login = Login {
            user: "me".into(),
            database: "bench".into(),
            password: Some("secret".into()),
            options: Vec::new(),
            confirm_path: false,
        };
        assert!(!format!("{login:?}").contains("secret"));
    }

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::from(&text.parse::<Remote>().unwrap())
    }

    #[test]
    fn a_connection_string_says_where_and_how() {
        let tls = |text: &str| match endpoint(text) {
            Endpoint::Tcp { tls, .. } => tls,
            Endpoint::Unix { .. } => panic!("{text}"),
        };
        let file = || Some(PathBuf::from("/ca.pem"));
        assert_eq!(tls("postgres://me@h/d"), Tls::Preferred);
        assert_eq!(tls("postgres://me@h/d?sslmode=disable"), Tls::Off);
        assert_eq!(tls("postgres://me@h/d?sslmode=require"), Tls::Unverified);
        assert_eq!(
            tls("postgres://me@h/d?sslmode=require&sslrootcert=/ca.pem"),
            Tls::VerifyCa(file())
        );
        assert_eq!(
            tls("postgres://me@h/d?sslmode=verify-full&sslrootcert=system"),
            Tls::VerifyFull(None)
        );
        let socket = endpoint("postgres://me@/d?host=/run/pg");
        assert_eq!(socket.to_string(), "/run/pg/.s.PGSQL.5432");
    }

    #[test]
    fn only_this_machine_s_addresses_are_local() {
        for (text, local) in [
            ("postgres://me@/d?host=/run/pg", true),
            ("postgres://me@127.0.0.1/d", true),
            ("postgres://me@[::1]/d", true),
            ("postgres://me@localhost/d", true),
            ("postgres://me@db.example/d", false),
            ("postgres://me@10.0.0.1/d", false),
        ] {
            assert_eq!(endpoint(text).is_local(), local, "{text}");
        }
    }
}
