//! Passwords from the places where PostgreSQL's own programs look for them.
//!
//! `PGPASSWORD`, else the file that `PGPASSFILE` names, else `~/.pgpass`. They are looked up for each
//! connection, kept nowhere and printed nowhere.
//!
//! Source: PostgreSQL manual, "The Password File" and "Environment Variables" of libpq.

use deltabench_model::endpoint::Endpoint;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The host of a connection string that names none, and of the socket directory that libpq has built in.
const DEFAULT_HOST: &str = "localhost";

/// Where libpq looks for sockets unless told otherwise: built in by upstream, and by Debian.
const DEFAULT_SOCKETS: [&str; 2] = ["/tmp", "/var/run/postgresql"];

/// Where passwords are looked for.
#[derive(Clone, Default)]
pub struct Passwords {
    given: Option<String>,
    file: Option<PathBuf>,
}

/// What was found for a login.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub password: Option<String>,
    /// Why a file was not looked at, in words.
    pub warning: Option<String>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords")
            .field("given", &self.given.as_ref().map(|_| "***"))
            .field("file", &self.file)
            .finish()
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("warning", &self.warning)
            .finish()
    }
}

impl Passwords {
    /// Those of this process's environment.
    pub fn from_environment() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || set("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
        Self {
            given: set("PGPASSWORD").and_then(|value| value.into_string().ok()),
            file: set("PGPASSFILE").map(PathBuf::from).or_else(home),
        }
    }

    /// The password for a login; none where nothing fits.
    pub fn find(&self, endpoint: &Endpoint, user: &str, database: &str) -> Found {
        if self.given.is_some() {
            return Found {
                password: self.given.clone(),
                warning: None,
            };
        }
        let Some(file) = &self.file else {
            return Found::default();
        };
        match readable(file) {
            Ok(false) => Found::default(),
            Ok(true) => {
                let text = std::fs::read(file).unwrap_or_default();
                let (host, port) = names(endpoint);
                let wanted = [host.as_str(), port.as_str(), database, user];
                let password = text
                    .split(|byte| *byte == b'\n')
                    .filter_map(|line| std::str::from_utf8(line).ok())
                    .find_map(|line| matching(line, &wanted))
                    // The first line that fits decides, even if it says nothing.
                    .filter(|password| !password.is_empty());
                Found {
                    password,
                    warning: None,
                }
            }
            Err(warning) => Found {
                password: None,
                warning: Some(warning),
            },
        }
    }
}

/// Host and port as a password file has them.
fn names(endpoint: &Endpoint) -> (String, String) {
    let (host, port) = match endpoint {
        Endpoint::Tcp { host, port, .. } => (host.clone(), port),
        Endpoint::Unix { directory, port } => (directory.display().to_string(), port),
    };
    let host = if host.is_empty() || DEFAULT_SOCKETS.contains(&host.as_str()) {
        DEFAULT_HOST.to_owned()
    } else {
        host
    };
    (host, port.to_string())
}

/// Whether there is a file; the error says why it is not looked at.
fn readable(file: &Path) -> Result<bool, String> {
    let Ok(metadata) = std::fs::metadata(file) else {
        return Ok(false);
    };
    let name = file.display();
    if !Metadata::is_file(&metadata) {
        return Err(format!("password file {name} is not a plain file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "password file {name} is ignored: others can access it (mode {mode:04o}); use chmod 0600"
        ));
    }
    Ok(true)
}

/// The password, which may be empty, of a line whose first four fields fit.
fn matching(line: &str, wanted: &[&str; 4]) -> Option<String> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line;
    for field in wanted {
        rest = after_field(rest, field)?;
    }
    // A backslash makes the character behind it an ordinary one.
    let mut password = String::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => password.extend(characters.next()),
            _ => password.push(character),
        }
    }
    Some(password)
}

/// What follows a field and its colon, if the field is a lone `*` or says `wanted`.
fn after_field<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix("*:") {
        return Some(rest);
    }
    let mut expected = wanted.chars();
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        let literal = match character {
            ':' => {
                let complete = expected.next().is_none();
                return line.get(at + 1..).filter(|_| complete);
            }
            '\\' => characters.next()?.1,
            other => other,
        };
        if expected.next() != Some(literal) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::endpoint::Tls;

    const WANTED: [&str; 4] = ["db.example", "5432", "bench", "me"];

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, Passwords) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let passwords = Passwords {
            given: None,
            file: Some(path),
        };
        (directory, passwords)
    }

    fn tcp(host: &str) -> Endpoint {
        Endpoint::Tcp {
            host: host.to_owned(),
            port: 5432,
            tls: Tls::Off,
        }
    }

    #[test]
    fn a_line_fits_when_each_field_is_the_same_or_a_star() {
        for (line, password) in [
            ("db.example:5432:bench:me:secret", Some("secret")),
            ("*:*:*:*:secret", Some("secret")),
            ("db.example:*:bench:*:se:cr\\:e\\\\t", Some("se:cr:e\\t")),
            ("db.example:5432:bench:me:secret\r", Some("secret")),
            ("db.exampl:5432:bench:me:secret", None),
            ("db.example.:5432:bench:me:secret", None),
            ("db*:5432:bench:me:secret", None),
            ("db.example:5433:bench:me:secret", None),
            ("db.example:5432:bench:you:secret", None),
            ("#db.example:5432:bench:me:secret", None),
            ("db.example:5432:bench:me", None),
            ("db.example:5432:bench:me:", Some("")),
            ("", None),
        ] {
            assert_eq!(matching(line, &WANTED).as_deref(), password, "{line}");
        }
        let odd = ["a:b", "1", "c\\d", "e"];
        assert_eq!(matching("a\\:b:1:c\\\\d:e:x", &odd).as_deref(), Some("x"));
    }

    #[test]
    fn the_first_line_that_fits_is_taken() {
        let text = "# comment\nother:*:*:*:no\n*:*:bench:*:first\ndb.example:*:*:*:second\n";
        let (_kept, passwords) = file(text, 0o600);
        let found = passwords.find(&tcp("db.example"), "me", "bench");
        assert_eq!(found.password.as_deref(), Some("first"));
        let found = passwords.find(&tcp("db.example"), "me", "shop");
        assert_eq!(found.password.as_deref(), Some("second"));
        assert_eq!(
            passwords.find(&tcp("h"), "me", "shop").password,
            None,
            "nothing fits"
        );
    }

    #[test]
    fn a_line_that_fits_and_says_nothing_ends_the_search() {
        let (_kept, passwords) = file("db.example:*:*:*:\n*:*:*:*:other", 0o600);
        let of = |host: &str| passwords.find(&tcp(host), "me", "bench").password;
        assert_eq!(of("db.example"), None);
        assert_eq!(of("elsewhere").as_deref(), Some("other"));
    }

    #[test]
    fn a_file_that_others_can_read_is_passed_over_with_a_warning() {
        for mode in [0o640, 0o604, 0o620] {
            let (_kept, passwords) = file("*:*:*:*:secret", mode);
            let found = passwords.find(&tcp("h"), "me", "bench");
            assert_eq!(found.password, None, "{mode:o}");
            assert!(found.warning.unwrap().contains("chmod 0600"));
        }
        let nowhere = Passwords {
            given: None,
            file: Some("/no/such/file".into()),
        };
        assert_eq!(nowhere.find(&tcp("h"), "me", "d"), Found::default());
    }

    #[test]
    fn a_socket_is_found_by_its_directory_and_the_usual_one_as_localhost() {
        let socket = |directory: &str| Endpoint::Unix {
            directory: directory.into(),
            port: 5433,
        };
        let (_kept, passwords) = file("/run/pg:5433:*:*:one\nlocalhost:5433:*:*:two", 0o600);
        let of = |directory: &str| passwords.find(&socket(directory), "me", "d").password;
        assert_eq!(of("/run/pg").as_deref(), Some("one"));
        assert_eq!(of("/var/run/postgresql").as_deref(), Some("two"));
        assert_eq!(of("/elsewhere"), None);
    }

    #[test]
    fn the_variable_wins_and_nothing_prints_a_password() {
        let (_kept, mut passwords) = file("*:*:*:*:filed", 0o600);
        passwords.given = Some("hunter2".to_owned());
        let found = passwords.find(&tcp("h"), "me", "d");
        assert_eq!(found.password.as_deref(), Some("hunter2"));
        assert!(!format!("{found:?} {passwords:?}").contains("hunter2"));
    }
}
