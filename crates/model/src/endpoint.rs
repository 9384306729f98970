//! Where a server listens and who we are to it.

use std::fmt;
use std::path::PathBuf;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The local socket `DIRECTORY/.s.PGSQL.PORT`.
    Unix {
        /// Directory of the socket.
        directory: PathBuf,
        /// Port number in the socket's name.
        port: u16,
    },
    /// TCP.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
        /// Whether the connection is encrypted.
        tls: Tls,
    },
}

/// Encryption of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// None.
    #[default]
    Off,
    /// TLS; the server's certificate is not verified. For servers of our own on the loopback address, whose
    /// certificates are made for the run.
    Unverified,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { directory, port } => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
            Self::Tcp { host, port, tls } => {
                let tls = if *tls == Tls::Off { "" } else { " (TLS)" };
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
    /// Database name.
    pub database: String,
    /// Password, for servers that ask for one.
    pub password: Option<String>,
    /// Settings sent with the start-up message, for example `search_path`.
    pub options: Vec<(String, String)>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("options", &self.options)
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
        };
        assert!(!format!("{login:?}").contains("secret"));
    }
}
