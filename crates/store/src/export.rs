//! Plain tables in files of their own, for notebooks: an SQLite file, or a directory of CSV files.
//!
//! Which tables there are is the caller's business. The same rows give the same files, byte for byte. What is
//! written stands beside its destination until all of it is there, so that a failure leaves the old file.

use deltabench_model::plan::{CellId, ServerId};
use rusqlite::Connection;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A value of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// Not known, or does not apply.
    Null,
    /// A count, a number of something, nanoseconds.
    Integer(i64),
    /// A measured or computed value.
    Real(f64),
    Text(String),
}

/// A row, in the order of the columns.
pub type ExportRow = Vec<Datum>;

/// A row from values of several types.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::export::Datum::from($value)),*]
    };
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integer.
    Integer,
    /// 64-bit floating point.
    Real,
    Text,
}

impl Kind {
    /// The word in schemas.
    pub fn word(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Text => "text",
        }
    }
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportColumn {
    pub name: &'static str,
    pub kind: Kind,
    pub meaning: &'static str,
}

/// A column of whole numbers.
#[must_use]
pub const fn integer(name: &'static str, meaning: &'static str) -> ExportColumn {
    ExportColumn {
        name,
        kind: Kind::Integer,
        meaning,
    }
}

/// A column of measured or computed values.
#[must_use]
pub const fn real(name: &'static str, meaning: &'static str) -> ExportColumn {
    ExportColumn {
        name,
        kind: Kind::Real,
        meaning,
    }
}

/// A column of words.
#[must_use]
pub const fn text(name: &'static str, meaning: &'static str) -> ExportColumn {
    ExportColumn {
        name,
        kind: Kind::Text,
        meaning,
    }
}

/// The run that a row is of.
pub const RUN: ExportColumn = text("run", "name of the run");
/// The cell.
pub const CELL: ExportColumn = integer("cell", "the cell");
/// The restart block.
pub const BLOCK: ExportColumn = integer("block", "restart block, from 0");
/// The server.
pub const SERVER: ExportColumn = integer("server", "the server");
/// The unit of absolute values.
pub const UNIT: ExportColumn = text("unit", "unit of the absolute values");

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportTable {
    pub name: &'static str,
    pub meaning: &'static str,
    /// Its columns, in order.
    pub columns: &'static [ExportColumn],
}

/// A view, for files that can hold one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub name: &'static str,
    pub meaning: &'static str,
    /// The query behind it.
    pub sql: &'static str,
}

/// A failure to write an export. The destination is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file or directory could not be made or written.
    #[error("cannot write {path}: {source}")]
    File {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite could not do it.
    #[error("cannot write {path}: {source}")]
    Sqlite {
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A row is not of its table.
    #[error("a row of {found} values for table {table}, which has {columns} columns")]
    Misfit {
        table: &'static str,
        /// Values of the row.
        found: usize,
        columns: usize,
    },
}

/// Writes tables.
///
/// Dropped without [`Export::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct Export {
    form: Form,
    /// Written here first.
    part: PathBuf,
    out: PathBuf,
}

#[derive(Debug)]
enum Form {
    Sqlite(Connection),
    CsvDirectory(Vec<(&'static str, BufWriter<File>)>),
    Finished,
}

impl Export {
    /// Begins an SQLite file with these tables and views.
    ///
    /// `out` is replaced when the export is finished. Errors: `File`, `Sqlite`.
    pub fn sqlite(out: &Path, tables: &[ExportTable], views: &[View]) -> Result<Self, ExportError> {
        let part = beside(out);
        let fail = |source| ExportError::Sqlite {
            path: part.clone(),
            source,
        };
        let connection = Connection::open(&part).map_err(fail)?;
        let export = Self {
            form: Form::Sqlite(connection),
            part: part.clone(),
            out: out.to_owned(),
        };
        // Nothing else reads this file yet, and a failed one is removed: no journal is needed.
        let mut sql = "pragma journal_mode = off; pragma synchronous = off; begin;\n".to_owned();
        for table in tables {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|column| format!("{} {}", column.name, column.kind.word()))
                .collect();
            sql.push_str(&format!(
                "create table {} ({});\n",
                table.name,
                columns.join(", ")
            ));
        }
        for view in views {
            sql.push_str(&format!("create view {} as {};\n", view.name, view.sql));
        }
        if let Form::Sqlite(connection) = &export.form {
            connection.execute_batch(&sql).map_err(fail)?;
        }
        Ok(export)
    }

    /// Begins a directory with a CSV file (RFC 4180, line breaks as LF) for each table; the first line names
    /// the columns, a value that is not known is an empty field.
    ///
    /// Files of these names in `out` are replaced when the export is finished, others stay. Errors: `File`.
    pub fn csv_directory(out: &Path, tables: &[ExportTable]) -> Result<Self, ExportError> {
        let part = beside(out);
        let fail = |path: &Path| {
            let path = path.to_owned();
            |source| ExportError::File { path, source }
        };
        // Not one that is there already: it would be somebody else's.
        std::fs::create_dir(&part).map_err(fail(&part))?;
        let mut export = Self {
            form: Form::Finished,
            part: part.clone(),
            out: out.to_owned(),
        };
        let mut files = Vec::new();
        for table in tables {
            let path = part.join(csv_name(table.name));
            let mut file = BufWriter::new(File::create(&path).map_err(fail(&path))?);
            let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            writeln!(file, "{}", names.join(",")).map_err(fail(&path))?;
            files.push((table.name, file));
        }
        export.form = Form::CsvDirectory(files);
        Ok(export)
    }

    /// Appends rows to a table.
    ///
    /// Errors: `Misfit`, `File`, `Sqlite`.
    pub fn rows(
        &mut self,
        table: &ExportTable,
        rows: impl IntoIterator<Item = Vec<Datum>>,
    ) -> Result<(), ExportError> {
        let (columns, part) = (table.columns.len(), &self.part);
        let fits = |row: &[Datum]| match row.len() == columns {
            true => Ok(()),
            false => Err(ExportError::Misfit {
                table: table.name,
                found: row.len(),
                columns,
            }),
        };
        match &mut self.form {
            Form::Sqlite(connection) => {
                let fail = |source| ExportError::Sqlite {
                    path: part.clone(),
                    source,
                };
                let marks = vec!["?"; columns].join(", ");
                let sql = format!("insert into {} values ({marks})", table.name);
                let mut insert = connection.prepare(&sql).map_err(fail)?;
                for row in rows {
                    fits(&row)?;
                    insert
                        .execute(rusqlite::params_from_iter(&row))
                        .map_err(fail)?;
                }
            }
            Form::CsvDirectory(files) => {
                let Some((name, file)) = files.iter_mut().find(|(name, _)| *name == table.name)
                else {
                    return Ok(());
                };
                for row in rows {
                    fits(&row)?;
                    let fields: Vec<String> = row.iter().map(field).collect();
                    writeln!(file, "{}", fields.join(",")).map_err(|source| ExportError::File {
                        path: part.join(csv_name(name)),
                        source,
                    })?;
                }
            }
            Form::Finished => {}
        }
        Ok(())
    }

    /// Puts what was written in its place.
    ///
    /// Errors: `File`, `Sqlite`.
    pub fn finish(mut self) -> Result<(), ExportError> {
        let (part, out) = (self.part.clone(), self.out.clone());
        let fail = |path: &Path| {
            let path = path.to_owned();
            |source| ExportError::File { path, source }
        };
        match std::mem::replace(&mut self.form, Form::Finished) {
            Form::Sqlite(connection) => {
                let sqlite = |source| ExportError::Sqlite {
                    path: part.clone(),
                    source,
                };
                connection.execute_batch("commit").map_err(sqlite)?;
                connection.close().map_err(|(_, source)| sqlite(source))?;
                std::fs::rename(&part, &out).map_err(fail(&out))
            }
            Form::CsvDirectory(files) => {
                std::fs::create_dir_all(&out).map_err(fail(&out))?;
                for (name, mut file) in files {
                    let (from, to) = (part.join(csv_name(name)), out.join(csv_name(name)));
                    file.flush().map_err(fail(&from))?;
                    std::fs::rename(&from, &to).map_err(fail(&to))?;
                }
                Ok(())
            }
            Form::Finished => Ok(()),
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // What is left here was not finished; a failure to remove it is not worth more than the first one.
        let _ = remove(&self.part);
    }
}

/// Where an export stands until it is whole: in the same directory, so that a rename is enough. Nothing is
/// there yet: a name that was taken is left alone.
fn beside(out: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}-{number}", std::process::id()));
        out.with_file_name(name)
    };
    (0..)
        .map(name)
        .find(|path| std::fs::symlink_metadata(path).is_err())
        .unwrap_or_else(|| name(0))
}

fn remove(part: &Path) -> Result<(), ExportError> {
    let done = if part.is_dir() {
        std::fs::remove_dir_all(part)
    } else {
        std::fs::remove_file(part)
    };
    match done {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(ExportError::File {
            path: part.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

fn csv_name(table: &str) -> String {
    format!("{table}.csv")
}

fn field(datum: &Datum) -> String {
    match datum {
        Datum::Null => String::new(),
        Datum::Integer(value) => value.to_string(),
        Datum::Real(value) if value.is_nan() => String::new(),
        Datum::Real(value) => value.to_string(),
        Datum::Text(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Datum::Text(text) => text.clone(),
    }
}

impl ToSql for Datum {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Datum {
    fn from(value: u32) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<ServerId> for Datum {
    fn from(server: ServerId) -> Self {
        server.0.into()
    }
}

impl From<CellId> for Datum {
    fn from(cell: CellId) -> Self {
        cell.0.into()
    }
}

impl From<u64> for Datum {
    /// Above 2^63 - 1 it is rounded to a real, as SQLite itself does with such a literal.
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(
            |_| Self::Real(deltabench_model::units::to_f64(value)),
            Self::Integer,
        )
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<f64> for Datum {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<String> for Datum {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: ExportTable = ExportTable {
        name: "points",
        meaning: "a point",
        columns: &[
            ExportColumn {
                name: "x",
                kind: Kind::Integer,
                meaning: "where",
            },
            ExportColumn {
                name: "y",
                kind: Kind::Real,
                meaning: "how high",
            },
            ExportColumn {
                name: "label",
                kind: Kind::Text,
                meaning: "what",
            },
        ],
    };
    const VIEW: View = View {
        name: "high",
        meaning: "a high point",
        sql: "select * from points where y > 1",
    };

    fn rows() -> Vec<Vec<Datum>> {
        vec![
            vec![1_u32.into(), 0.1.into(), "a, \"b\"".into()],
            vec![2_u64.into(), f64::INFINITY.into(), None::<String>.into()],
            vec![Datum::Null, f64::NAN.into(), "plain".into()],
        ]
    }

    fn sqlite(out: &Path) {
        let mut export = Export::sqlite(out, &[TABLE], &[VIEW]).unwrap();
        export.rows(&TABLE, rows()).unwrap();
        export.finish().unwrap();
    }

    #[test]
    fn an_sqlite_export_holds_tables_and_views_and_is_the_same_each_time() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one.db"), place.path().join("two.db"));
        sqlite(&one);
        sqlite(&two);
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        let raw = Connection::open(&one).unwrap();
        let all: Vec<(Option<i64>, Option<f64>, Option<String>)> = raw
            .prepare("select x, y, label from points order by rowid")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let expected = [
            (Some(1), Some(0.1), Some("a, \"b\"".to_owned())),
            (Some(2), Some(f64::INFINITY), None),
            (None, None, Some("plain".to_owned())),
        ];
        assert_eq!(all, expected);
        let high: i64 = raw
            .query_row("select count(*) from high", [], |row| row.get(0))
            .unwrap();
        assert_eq!(high, 1);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_csv_directory_has_a_file_for_each_table_and_keeps_what_else_is_there() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("tables");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("notes.txt"), "mine").unwrap();
        std::fs::write(out.join("points.csv"), "old").unwrap();
        let mut export = Export::csv_directory(&out, &[TABLE]).unwrap();
        for row in rows() {
            export.rows(&TABLE, [row]).unwrap();
        }
        export.finish().unwrap();
        assert_eq!(
            std::fs::read_to_string(out.join("points.csv")).unwrap(),
            "x,y,label\n1,0.1,\"a, \"\"b\"\"\"\n2,inf,\n,,plain\n"
        );
        assert!(out.join("notes.txt").is_file());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_export_that_is_not_finished_leaves_the_old_file_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("one.db");
        std::fs::write(&out, "old").unwrap();
        let mut export = Export::sqlite(&out, &[TABLE], &[]).unwrap();
        let error = export.rows(&TABLE, [vec![Datum::Null]]).unwrap_err();
        assert!(matches!(error, ExportError::Misfit { .. }), "{error}");
        drop(export);
        drop(Export::csv_directory(&out, &[TABLE]).unwrap());
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        let nowhere = place.path().join("no/such/one.db");
        assert!(matches!(
            Export::sqlite(&nowhere, &[TABLE], &[]),
            Err(ExportError::Sqlite { .. })
        ));
    }
}
