//! Listening on the loopback address: a port, a password and, where asked, a certificate for one start.
//!
//! The local socket stays, for set-up work: it is in a directory that only we can enter, and trusts. The
//! loopback address is everybody's on this host, so a password drawn for the start is wanted there.

use crate::failure::failed;
use crate::tree::{self, Owner};
use deltabench_model::endpoint::{Endpoint, Tls};
use deltabench_model::plan::Transport;
use deltabench_model::problem::Problem;
use std::fmt;
use std::fmt::Write as _;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

/// The only address that a server of ours listens on.
pub(crate) const HOST: &str = "127.0.0.1";
/// Names of files in the data directory.
pub(crate) const CERTIFICATE: &str = "deltabench.crt";
pub(crate) const KEY: &str = "deltabench.key";

/// How to reach a server over TCP.
#[derive(Clone, PartialEq, Eq)]
pub struct Network {
    /// Address, with TLS if the server was started for it.
    pub endpoint: Endpoint,
    /// Password of the superuser on that address; of this start only.
    pub password: String,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("endpoint", &self.endpoint)
            .field("password", &"***")
            .finish()
    }
}

impl Network {
    /// Chooses a port and a password and writes what the server needs; absent for servers that only listen on
    /// their local socket.
    ///
    /// Errors: no free port, a full disk.
    pub(crate) fn prepare(
        transport: Transport,
        data: &Path,
        owner: Option<Owner>,
    ) -> Result<Option<Self>, Problem> {
        let tls = match transport {
            Transport::Socket => return Ok(None),
            Transport::Tcp => Tls::Off,
            Transport::Tls => Tls::Unverified,
        };
        if tls != Tls::Off {
            write_certificate(data, owner)?;
        }
        // Any way of sending the password: it is of no use to anybody after this start.
        let rules = format!("local all all trust\nhost all all {HOST}/32 md5\n");
        tree::write_file(&data.join("pg_hba.conf"), &rules, owner)?;
        Ok(Some(Self {
            endpoint: Endpoint::Tcp {
                host: HOST.to_owned(),
                port: free_port()?,
                tls,
            },
            password: password()?,
        }))
    }

    /// The port, which is also the number in the local socket's name.
    pub(crate) fn port(&self) -> u16 {
        match &self.endpoint {
            Endpoint::Unix { port, .. } | Endpoint::Tcp { port, .. } => *port,
        }
    }

    /// Settings of a start.
    pub(crate) fn settings(&self) -> &'static [(&'static str, &'static str)] {
        match self.endpoint {
            Endpoint::Tcp {
                tls: Tls::Unverified,
                ..
            } => &[
                ("listen_addresses", HOST),
                ("ssl", "on"),
                ("ssl_cert_file", CERTIFICATE),
                ("ssl_key_file", KEY),
            ],
            _ => &[("listen_addresses", HOST)],
        }
    }

    /// The statement that makes the password known to the server.
    pub(crate) fn set_password(&self) -> String {
        format!(
            "ALTER ROLE {} PASSWORD '{}'",
            crate::SUPERUSER,
            self.password
        )
    }
}

/// A port that nobody listens on right now. Somebody else may take it before the server does; the start then
/// fails and says so.
fn free_port() -> Result<u16, Problem> {
    TcpListener::bind((HOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Problem::new(format!("no free port on {HOST}")).detail(error.to_string()))
}

/// 128 random bits in hexadecimal.
fn password() -> Result<String, Problem> {
    let source = Path::new("/dev/urandom");
    let mut bits = [0_u8; 16];
    std::fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bits))
        .map_err(|error| failed("read", source, &error))?;
    Ok(bits.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn write_certificate(data: &Path, owner: Option<Owner>) -> Result<(), Problem> {
    let names = vec!["localhost".to_owned(), HOST.to_owned()];
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Problem::new("cannot make a certificate").detail(error.to_string()))?;
    tree::write_file(&data.join(CERTIFICATE), &made.cert.pem(), owner)?;
    tree::write_file(&data.join(KEY), &made.signing_key.serialize_pem(), owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_only_where_it_is_asked_to() {
        let data = tempfile::tempdir().unwrap();
        let prepare = |transport| Network::prepare(transport, data.path(), None).unwrap();
        assert_eq!(prepare(Transport::Socket), None);
        assert!(std::fs::read_dir(data.path()).unwrap().next().is_none());
        let tcp = prepare(Transport::Tcp).unwrap();
        assert_eq!(tcp.settings(), [("listen_addresses", "127.0.0.1")]);
        assert!(!data.path().join(KEY).exists());
        let tls = prepare(Transport::Tls).unwrap();
        assert!(tls.settings().contains(&("ssl", "on")));
        assert!(data.path().join(KEY).exists() && data.path().join(CERTIFICATE).exists());
        assert_ne!(tcp.password, tls.password);
    }

    #[test]
    fn a_password_is_wanted_on_the_network_and_never_printed() {
        let data = tempfile::tempdir().unwrap();
        let network = Network::prepare(Transport::Tcp, data.path(), None)
            .unwrap()
            .unwrap();
        assert_eq!(network.password.len(), 32);
        assert!(!format!("{network:?}").contains(&network.password));
        assert!(network.set_password().contains(&network.password));
        let rules = std::fs::read_to_string(data.path().join("pg_hba.conf")).unwrap();
        assert!(
            rules
                .lines()
                .filter(|line| line.starts_with("host"))
                .all(|line| line.ends_with("md5"))
        );
    }
}
