//! What a dump holds, read once before anything is loaded.

use super::error::DumpError;
use super::file::DumpFile;
use super::item::{Command, Item, Skipped, command, item};
use super::splitter::{Piece, Splitter};
use deltabench_model::units::count;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Read};

/// The first and the last line of `pg_dump` and of `pg_dumpall`.
const FIRST: [&str; 2] = [
    "PostgreSQL database dump",
    "PostgreSQL database cluster dump",
];
const LAST: [&str; 2] = [
    "PostgreSQL database dump complete",
    "PostgreSQL database cluster dump complete",
];
/// What a line says of the dumped server.
const DUMPED_FROM: &str = "Dumped from database version ";

/// What a dump holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// Bytes of text, uncompressed.
    pub bytes: u64,
    /// Bytes of them that are rows of tables.
    pub data_bytes: u64,
    pub statements: u64,
    /// Tables with data.
    pub tables: u64,
    /// Of the text, in hexadecimal.
    pub sha256: String,
    /// The version that was dumped, if the dump says so.
    pub dumped_from: Option<String>,
    /// By name.
    pub extensions: BTreeSet<String>,
    /// Foreign servers that it makes, as messages name them.
    pub foreign_servers: BTreeSet<String>,
    /// What will be left out, and how often.
    pub skipped: Vec<(Skipped, u64)>,
    /// The locale of the database as it was dumped, if the dump says so.
    pub locale: Option<String>,
}

/// Extensions whose functions and tables reach other machines, and languages whose functions may.
const REACHING_OUT: [&str; 13] = [
    "dblink",
    "postgres_fdw",
    "file_fdw",
    "mysql_fdw",
    "oracle_fdw",
    "tds_fdw",
    "redis_fdw",
    "mongo_fdw",
    "http",
    "pgsql_http",
    "pg_net",
    "plsh",
    "pg_cron",
];

impl Survey {
    /// Extensions and foreign servers with which the dump may reach other machines while it is loaded and
    /// explained.
    pub fn reaching_out(&self) -> Vec<&str> {
        reaching_out(&self.extensions, &self.foreign_servers)
    }
}

/// Those of these extensions, and the foreign servers, with which statements may reach other machines.
pub fn reaching_out<'a>(
    extensions: &'a BTreeSet<String>,
    foreign_servers: &'a BTreeSet<String>,
) -> Vec<&'a str> {
    let untrusted = |name: &str| name.starts_with("pl") && name.ends_with('u');
    let names = extensions.iter().map(String::as_str);
    names
        .filter(|name| REACHING_OUT.contains(name) || untrusted(name))
        .chain(foreign_servers.iter().map(String::as_str))
        .collect()
}

/// Reads a dump to its end.
///
/// Errors: one that cannot be read, is cut, or holds what cannot be loaded.
pub fn survey(dump: &DumpFile) -> Result<Survey, DumpError> {
    let mut hashed = Hashed {
        input: dump.open().map_err(DumpError::Read)?,
        hash: Sha256::new(),
        bytes: 0,
    };
    let mut splitter = Splitter::new(&mut hashed);
    let mut looked = Looked::default();
    looked.all(&mut splitter)?;
    // What is behind the last statement has been read, too.
    looked.found.bytes = hashed.bytes;
    looked.found.sha256 = hashed
        .hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    looked.judged()
}

/// Hashes what is read.
struct Hashed<R> {
    input: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(room)?;
        self.hash.update(room.get(..read).unwrap_or_default());
        self.bytes += count(read);
        Ok(read)
    }
}

#[derive(Default)]
struct Looked {
    found: Survey,
    /// Whether pg_dump's first and last lines were there.
    begun: bool,
    complete: bool,
    /// The database of what comes now, and those that have tables.
    database: Option<String>,
    databases: BTreeSet<Option<String>>,
}

impl Looked {
    fn all<R: Read>(&mut self, splitter: &mut Splitter<R>) -> Result<(), DumpError> {
        let mut data = Vec::new();
        while let Some(piece) = splitter.next_piece()? {
            match piece {
                Piece::Comment(text) => self.comment(&text),
                Piece::Command { text, line } => {
                    if let Command::Connect(Some(name)) = command(&text, line)? {
                        self.database = Some(name);
                    }
                }
                Piece::Statement { sql, line } => {
                    self.found.statements += 1;
                    let item = item(&sql, line)?;
                    follow_escapes(&item, splitter);
                    let has_data = matches!(item, Item::CopyIn { .. });
                    self.statement(item, &sql);
                    if has_data {
                        splitter.skip_line()?;
                        let mut more = true;
                        while more {
                            data.clear();
                            more = splitter.copy_data(&mut data)?;
                            self.found.data_bytes += count(data.len());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn comment(&mut self, text: &str) {
        self.begun |= FIRST.contains(&text);
        self.complete |= LAST.contains(&text);
        if let Some(version) = text.strip_prefix(DUMPED_FROM) {
            self.found.dumped_from.get_or_insert(version.to_owned());
        }
    }

    fn statement(&mut self, item: Item, sql: &[u8]) {
        match item {
            Item::Extension { name } => {
                self.found.extensions.insert(name);
            }
            Item::CopyIn { .. } => {
                self.found.tables += 1;
                self.databases.insert(self.database.clone());
            }
            Item::Skip(why) => {
                self.found.locale = self.found.locale.take().or_else(|| locale(sql));
                self.skip(why);
            }
            Item::Send => {
                let insert = sql
                    .get(..6)
                    .is_some_and(|start| start.eq_ignore_ascii_case(b"insert"));
                self.found.foreign_servers.extend(foreign_server(sql));
                if is_large_object(sql) {
                    // Two digits are a byte.
                    self.found.data_bytes += count(sql.len()) / 2;
                } else if insert {
                    self.found.data_bytes += count(sql.len());
                    self.databases.insert(self.database.clone());
                }
            }
            Item::Set { .. } | Item::AlterDatabase | Item::Role { .. } => {}
        }
    }

    fn skip(&mut self, why: Skipped) {
        match self
            .found
            .skipped
            .iter_mut()
            .find(|(known, _)| *known == why)
        {
            Some((_, times)) => *times += 1,
            None => self.found.skipped.push((why, 1)),
        }
    }

    fn judged(mut self) -> Result<Survey, DumpError> {
        if self.begun && !self.complete {
            return Err(DumpError::NoEnd);
        }
        let nothing = self
            .found
            .skipped
            .iter()
            .find(|(why, _)| *why == Skipped::Nothing);
        if self.found.statements == nothing.map_or(0, |(_, times)| *times) {
            return Err(DumpError::Empty);
        }
        if self.databases.len() > 1 {
            let name = |name: Option<String>| name.unwrap_or_else(|| "the first".to_owned());
            return Err(DumpError::Databases {
                names: self.databases.into_iter().map(name).collect(),
            });
        }
        self.found
            .skipped
            .retain(|(why, _)| *why != Skipped::Nothing);
        Ok(self.found)
    }
}

/// `SELECT pg_catalog.lowrite(0, '\x…')`.
fn is_large_object(sql: &[u8]) -> bool {
    let words = super::words::words(sql, 4);
    let keywords: Vec<&str> = words.iter().map(super::words::Word::keyword).collect();
    matches!(keywords.as_slice(), ["select", .., "lowrite"])
}

/// `CREATE SERVER archive FOREIGN DATA WRAPPER …`.
fn foreign_server(sql: &[u8]) -> Option<String> {
    let words = super::words::words(sql, 6);
    let mut keywords = words.iter().map(super::words::Word::keyword);
    if (keywords.next(), keywords.next()) != (Some("create"), Some("server")) {
        return None;
    }
    let exists = words.get(2).is_some_and(|word| word.keyword() == "if");
    let name = words.get(if exists { 5 } else { 2 })?.name();
    Some(format!("the foreign server {name}"))
}

/// Follows what the dump says about backslashes in strings.
pub(super) fn follow_escapes<R: Read>(item: &Item, splitter: &mut Splitter<R>) {
    if let Item::Set { name, value } = item
        && name == "standard_conforming_strings"
    {
        let off = value.as_deref().map(str::to_ascii_lowercase);
        splitter.set_escapes(matches!(off.as_deref(), Some("off" | "false" | "0" | "no")));
    }
}

/// The locale that `CREATE DATABASE` names.
fn locale(sql: &[u8]) -> Option<String> {
    let words = super::words::words(sql, 40);
    let mut keywords = words.iter().map(super::words::Word::keyword);
    if (keywords.next(), keywords.next()) != (Some("create"), Some("database")) {
        return None;
    }
    let named = |wanted: &str| {
        let place = words.iter().position(|word| word.keyword() == wanted)?;
        Some(words.get(place + 2)?.constant())
    };
    named("locale").or_else(|| named("lc_collate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Survey, DumpError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sql");
        std::fs::write(&path, text).unwrap();
        survey(&DumpFile::find(&path).unwrap())
    }

    const WHOLE: &str = "--\n-- PostgreSQL database dump\n--\n\n\\restrict a\n\n\
        -- Dumped from database version 15.19 (Debian)\nSET transaction_timeout = 0;\n\
        CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA public;\n\
        CREATE USER MAPPING FOR a SERVER s;\n\
        CREATE TABLE t (a int);\nCOPY t (a) FROM stdin;\n1\n22\n\\.\n\nINSERT INTO t VALUES (1);\n\
        --\n-- PostgreSQL database dump complete\n--\n";

    #[test]
    fn a_survey_says_what_the_dump_holds() {
        let found = of(WHOLE).unwrap();
        assert_eq!(
            (found.statements, found.tables, found.data_bytes),
            (6, 1, 5 + 24)
        );
        assert_eq!(found.bytes, count(WHOLE.len()));
        assert_eq!(found.dumped_from.as_deref(), Some("15.19 (Debian)"));
        assert_eq!(found.extensions, BTreeSet::from(["hstore".to_owned()]));
        assert_eq!(found.skipped, [(Skipped::OtherServers, 1)]);
        assert_eq!(found.sha256.len(), 64);
    }

    #[test]
    fn a_dump_that_is_cut_anywhere_after_its_first_line_is_refused() {
        let last = WHOLE.find("dump complete").unwrap();
        for length in (40..last).step_by(7) {
            assert!(of(&WHOLE[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn nothing_and_several_databases_are_refused() {
        assert!(matches!(of("-- x\n"), Err(DumpError::Empty)));
        let two =
            "\\connect a\nINSERT INTO t VALUES (1);\n\\connect b\nINSERT INTO t VALUES (1);\n";
        let Err(DumpError::Databases { names }) = of(two) else {
            panic!("two databases");
        };
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_log_is_no_dump_and_a_mark_of_utf_8_is_no_word() {
        for text in [
            "2026-11-26 19:00:00 UTC [7] LOG:  checkpoint complete; wrote 3 buffers\n",
            "{\"timestamp\":\"2026-11-26 19:00:00 UTC\",\"message\":\"SELECT 1;\"}\n",
            "2026-11-26 19:00:00.000 UTC,\"postgres\",\"shop\",7,\"SELECT 1;\"\n",
            "waiting for server to start.... done; server started\n",
        ] {
            let found = of(text);
            assert!(
                matches!(found, Err(DumpError::NoStatement { line: 1 })),
                "{text}"
            );
        }
        assert_eq!(of("\u{feff}SET a = 1;\nselect 1;").unwrap().statements, 2);
        assert_eq!(of("(SELECT 1);\nTABLE t;").unwrap().statements, 2);
    }

    #[test]
    fn extensions_that_reach_out_are_known() {
        let sql = "CREATE EXTENSION dblink; CREATE EXTENSION plpython3u; CREATE EXTENSION hstore; \
                   CREATE EXTENSION plpgsql;";
        assert_eq!(of(sql).unwrap().reaching_out(), ["dblink", "plpython3u"]);
        let sql = "CREATE EXTENSION sqlite_fdw; CREATE SERVER IF NOT EXISTS \"Old one\" FOREIGN DATA WRAPPER \
                   sqlite_fdw; CREATE SERVER archive FOREIGN DATA WRAPPER \
                   sqlite_fdw; CREATE TABLE server (a int);";
        let found = of(sql).unwrap();
        let named = ["the foreign server Old one", "the foreign server archive"];
        assert_eq!(found.reaching_out(), named);
    }

    #[test]
    fn large_objects_are_data() {
        let sql = format!(
            "SELECT pg_catalog.lowrite(0, '\\x{}');\n",
            "ab".repeat(5000)
        );
        let found = of(&sql).unwrap().data_bytes;
        assert!((5000..5100).contains(&found), "{found}");
        assert_eq!(of("SELECT 1, 'lowrite';").unwrap().data_bytes, 0);
    }

    #[test]
    fn the_locale_is_that_of_the_dumped_database() {
        let sql = "CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc \
                   LOCALE = 'de_DE.UTF-8';\nselect 1;";
        assert_eq!(of(sql).unwrap().locale.as_deref(), Some("de_DE.UTF-8"));
    }
}
