//! What a piece of a dump asks for, and what deltabench does with it.

use super::error::DumpError;
use super::words::{Word, all_words, name_of, words};

/// Encodings in which the second byte of a letter may be a quote or a backslash.
///
/// Source: PostgreSQL manual, "Character Set Support": encodings of clients only.
const UNSPLITTABLE: [&str; 9] = [
    "sjis",
    "shift_jis_2004",
    "shiftjis2004",
    "big5",
    "gbk",
    "uhc",
    "gb18030",
    "johab",
    "mskanji",
];
/// Commands of psql that change nothing that matters here.
const HARMLESS: [&str; 12] = [
    "restrict",
    "unrestrict",
    "set",
    "unset",
    "echo",
    "qecho",
    "warn",
    "pset",
    "timing",
    "x",
    "a",
    ".",
];
/// What statements of PostgreSQL begin with.
///
/// Source: PostgreSQL manual, "SQL Commands".
const STATEMENTS: [&str; 56] = [
    "(",
    "abort",
    "alter",
    "analyse",
    "analyze",
    "begin",
    "call",
    "checkpoint",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "do",
    "drop",
    "end",
    "execute",
    "explain",
    "fetch",
    "grant",
    "import",
    "insert",
    "listen",
    "load",
    "lock",
    "merge",
    "move",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "repack",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "security",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
    "values",
    "wait",
    "with",
];
/// Words of a statement that are looked at.
const LOOKED_AT: usize = 24;

/// What is done with a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// It is sent as it is.
    Send,
    /// It is sent, and left out if the server does not know the setting.
    Set {
        name: String,
        /// Absent for a value that is no constant.
        value: Option<String>,
    },
    /// Data follows.
    CopyIn {
        /// For messages: the table as the dump writes it.
        table: String,
    },
    Extension {
        name: String,
    },
    /// It is about properties of another database, or of a role in it; sent with the name of ours.
    AlterDatabase,
    /// `CREATE ROLE`; the role may exist.
    Role {
        name: String,
    },
    /// It is left out.
    Skip(Skipped),
}

/// Why a statement is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// Nothing but comments.
    Nothing,
    /// Databases, tablespaces, passwords and attributes of roles.
    Outside,
    /// It would connect to another server.
    OtherServers,
    /// Settings of the whole server.
    System,
}

impl Skipped {
    /// What is left out.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "comments",
            Self::Outside => "databases, tablespaces, and attributes and passwords of roles",
            Self::OtherServers => "user mappings and subscriptions, which reach other servers",
            Self::System => "settings of the whole server",
        }
    }
}

/// What is done with a command of psql.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The session begins anew, in the database of this name if it says one.
    Connect(Option<String>),
    /// The encoding of what follows.
    Encoding(String),
    Nothing,
}

/// What a statement is.
///
/// Errors: what has no place in a dump that is loaded here.
pub fn item(sql: &[u8], line: u64) -> Result<Item, DumpError> {
    let words = words(sql, LOOKED_AT);
    let refused = |what: &str| {
        Err(DumpError::Refused {
            what: what.to_owned(),
            line,
        })
    };
    let start: Vec<&str> = words.iter().take(4).map(Word::keyword).collect();
    // Editors and shells may mark UTF-8 at the beginning.
    let first = start
        .first()
        .map(|first| first.trim_start_matches('\u{feff}'));
    if first.is_some_and(|first| !STATEMENTS.contains(&first)) {
        return Err(DumpError::NoStatement { line });
    }
    Ok(match start.as_slice() {
        [] => Item::Skip(Skipped::Nothing),
        // Its columns may be many.
        ["copy", ..] => return copy(&all_words(sql), line),
        // Whose objects the next ones are: all roles that are made may take part.
        ["set", "session", "authorization", ..] => Item::Send,
        ["set", "role", ..] | ["set", "default_tablespace", ..] => Item::Skip(Skipped::Outside),
        ["set", ..] => return set(&words, line),
        ["alter", "system", ..] => Item::Skip(Skipped::System),
        ["alter", "database", ..] => match words.get(3).map(Word::keyword) {
            Some("set" | "reset") if !moves_tablespace(&words) => Item::AlterDatabase,
            _ => Item::Skip(Skipped::Outside),
        },
        ["create" | "drop", "database" | "tablespace", ..] => Item::Skip(Skipped::Outside),
        ["alter", "tablespace", ..] => Item::Skip(Skipped::Outside),
        ["comment" | "security", ..] if about_database(&words) => Item::Skip(Skipped::Outside),
        ["grant" | "revoke", ..] if about_database(&words) => Item::Skip(Skipped::Outside),
        ["create", "role" | "user", next, ..] if *next != "mapping" => Item::Role {
            name: words.get(2).map(Word::name).unwrap_or_default(),
        },
        ["alter", "role" | "user", _, "in"] => Item::AlterDatabase,
        ["alter", "role" | "user", _, "with"] => Item::Skip(Skipped::Outside),
        ["create" | "alter" | "drop", "user", "mapping", ..] => Item::Skip(Skipped::OtherServers),
        ["drop", "role" | "user", ..] => Item::Skip(Skipped::Outside),
        ["create" | "alter" | "drop", "subscription", ..] => Item::Skip(Skipped::OtherServers),
        ["comment", "on", "subscription", ..] => Item::Skip(Skipped::OtherServers),
        ["create", "extension", ..] => Item::Extension {
            name: extension(&words),
        },
        ["declare" | "fetch" | "listen" | "notify", ..] => {
            return refused("a statement that no dump has");
        }
        _ => Item::Send,
    })
}

/// What a command of psql is.
///
/// Errors: one that would do something.
pub fn command(text: &str, line: u64) -> Result<Command, DumpError> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match name {
        "connect" | "c" => Ok(Command::Connect(database(rest))),
        "encoding" => {
            let name = rest.trim().trim_matches('\'').to_owned();
            check_encoding(&name)?;
            Ok(Command::Encoding(name))
        }
        name if HARMLESS.contains(&name) => Ok(Command::Nothing),
        name => Err(DumpError::Command {
            command: format!("\\{name}"),
            line,
        }),
    }
}

/// The name of the database in the arguments of `\connect`: bare, quoted, or in a connection string.
fn database(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    let arguments = arguments
        .strip_prefix("-reuse-previous=on")
        .unwrap_or(arguments)
        .trim();
    let inner = arguments.trim_matches('"');
    let name = match inner.strip_prefix("dbname=") {
        Some(name) => name.trim_matches('\''),
        None => inner.split_whitespace().next()?,
    };
    (name != "-" && !name.is_empty()).then(|| name.to_owned())
}

/// `COPY t (a) FROM stdin`, and nothing else.
fn copy(words: &[Word], line: u64) -> Result<Item, DumpError> {
    let from = words.iter().position(|word| word.keyword() == "from");
    let source = from.and_then(|from| words.get(from + 1)).map(Word::keyword);
    if source != Some("stdin") {
        return Err(DumpError::Refused {
            what: "a COPY that is not FROM stdin".to_owned(),
            line,
        });
    }
    Ok(Item::CopyIn {
        table: name_of(words.get(1..).unwrap_or_default()),
    })
}

/// `SET [SESSION | LOCAL] name = value`.
fn set(words: &[Word], line: u64) -> Result<Item, DumpError> {
    let scoped = words.get(1).map(Word::keyword);
    let skipped = match scoped {
        Some("session" | "local") => 2,
        _ => 1,
    };
    let name = words.get(skipped).map(Word::keyword).unwrap_or_default();
    let value = words.get(skipped + 2).map(Word::constant);
    if name == "client_encoding" {
        check_encoding(value.as_deref().unwrap_or_default()).map_err(|error| match error {
            DumpError::Encoding { encoding } => DumpError::Refused {
                what: format!("client_encoding {encoding}, in which a letter may contain a quote"),
                line,
            },
            other => other,
        })?;
    }
    Ok(Item::Set {
        name: name.to_owned(),
        value,
    })
}

fn check_encoding(name: &str) -> Result<(), DumpError> {
    let lower = name.to_ascii_lowercase();
    if UNSPLITTABLE.contains(&lower.as_str()) {
        return Err(DumpError::Encoding {
            encoding: name.to_owned(),
        });
    }
    Ok(())
}

/// `ALTER DATABASE x SET TABLESPACE y`.
fn moves_tablespace(words: &[Word]) -> bool {
    words.get(4).map(Word::keyword) == Some("tablespace")
}

/// Whether a comment, label or grant is about a database, a tablespace or a role.
fn about_database(words: &[Word]) -> bool {
    let on = words.iter().position(|word| word.keyword() == "on");
    let about = on.and_then(|on| words.get(on + 1)).map(Word::keyword);
    matches!(about, Some("database" | "tablespace"))
}

/// The name in `CREATE EXTENSION [IF NOT EXISTS] name`.
fn extension(words: &[Word]) -> String {
    let optional = words.get(2).map(Word::keyword) == Some("if");
    let place = if optional { 5 } else { 2 };
    words.get(place).map(Word::name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Item {
        item(sql.as_bytes(), 7).unwrap()
    }

    #[test]
    fn what_belongs_to_another_place_is_left_out() {
        for sql in [
            "CREATE DATABASE shop WITH TEMPLATE = template0",
            "COMMENT ON DATABASE shop IS 'x'",
            "GRANT CONNECT ON DATABASE shop TO app",
            "SET default_tablespace = fast",
            "ALTER ROLE app WITH SUPERUSER PASSWORD 'md5x'",
            "ALTER DATABASE shop OWNER TO app",
            "ALTER DATABASE shop SET TABLESPACE fast",
            "CREATE TABLESPACE fast LOCATION '/x'",
        ] {
            assert_eq!(of(sql), Item::Skip(Skipped::Outside), "{sql}");
        }
        for sql in [
            "CREATE USER MAPPING FOR app SERVER far OPTIONS (password 'x')",
            "CREATE SUBSCRIPTION s CONNECTION 'host=x' PUBLICATION p",
            "ALTER SUBSCRIPTION s OWNER TO app",
        ] {
            assert_eq!(of(sql), Item::Skip(Skipped::OtherServers), "{sql}");
        }
        assert_eq!(of("ALTER SYSTEM SET x = 1"), Item::Skip(Skipped::System));
        assert_eq!(of(" -- only this"), Item::Skip(Skipped::Nothing));
        for sql in [
            "ALTER DATABASE shop SET search_path TO shop",
            "ALTER ROLE app IN DATABASE shop SET work_mem TO '8MB'",
            "ALTER ROLE ALL IN DATABASE \"my shop\" RESET ALL",
        ] {
            assert_eq!(of(sql), Item::AlterDatabase, "{sql}");
        }
    }

    #[test]
    fn what_makes_objects_is_sent() {
        for sql in [
            "CREATE TABLE t (a int)",
            "ALTER TABLE ONLY public.t OWNER TO app",
            "GRANT SELECT ON TABLE t TO app",
            "COMMENT ON TABLE t IS 'on database'",
            "SELECT pg_catalog.setval('s', 3, true)",
            "SET SESSION AUTHORIZATION 'app'",
            "ALTER ROLE app SET work_mem TO '8MB'",
            "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO reader",
        ] {
            assert_eq!(of(sql), Item::Send, "{sql}");
        }
        let app = || Item::Role {
            name: "app".to_owned(),
        };
        assert_eq!(of("CREATE ROLE app"), app());
        assert_eq!(of("create user App with login"), app());
        let named = |name: &str| Item::Extension {
            name: name.to_owned(),
        };
        assert_eq!(
            of("CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\" WITH SCHEMA public"),
            named("uuid-ossp")
        );
        assert_eq!(of("create extension Hstore"), named("hstore"));
    }

    #[test]
    fn only_a_copy_from_the_dump_itself_is_loaded() {
        let columns: Vec<String> = (0..1600).map(|number| format!("c{number}")).collect();
        let wide = of(&format!("COPY t ({}) FROM stdin", columns.join(", ")));
        assert!(matches!(wide, Item::CopyIn { .. }));
        let copied = of("COPY public.\"Order Items\" (id, \"from\") FROM stdin");
        let table = "public.\"Order Items\"".to_owned();
        assert_eq!(copied, Item::CopyIn { table });
        for sql in [
            "COPY t FROM '/etc/passwd'",
            "COPY t FROM PROGRAM 'x'",
            "COPY t TO stdout",
        ] {
            let refused = item(sql.as_bytes(), 7);
            assert!(
                matches!(refused, Err(DumpError::Refused { line: 7, .. })),
                "{sql}"
            );
        }
    }

    #[test]
    fn settings_have_a_name_and_a_value() {
        let set = |name: &str, value: &str| Item::Set {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        };
        assert_eq!(
            of("SET statement_timeout = 0"),
            set("statement_timeout", "0")
        );
        assert_eq!(
            of("SET client_encoding = 'UTF8'"),
            set("client_encoding", "UTF8")
        );
        assert_eq!(of("set local x.y TO on"), set("x.y", "on"));
        assert!(item(b"SET client_encoding = 'SJIS'", 1).is_err());
    }

    #[test]
    fn commands_of_psql_are_known_or_refused() {
        let connected = |text: &str| command(text, 1).unwrap();
        let to = |name: &str| Command::Connect(Some(name.to_owned()));
        assert_eq!(connected("connect shop"), to("shop"));
        assert_eq!(
            connected("connect -reuse-previous=on \"dbname='my shop'\""),
            to("my shop")
        );
        assert_eq!(connected("connect - app"), Command::Connect(None));
        assert_eq!(connected("restrict abc"), Command::Nothing);
        assert_eq!(
            connected("encoding LATIN1"),
            Command::Encoding("LATIN1".to_owned())
        );
        for text in ["! rm", "i other.sql", "copy t from 'x'", "o file"] {
            assert!(
                matches!(command(text, 3), Err(DumpError::Command { line: 3, .. })),
                "{text}"
            );
        }
    }
}
