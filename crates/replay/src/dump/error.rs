//! What can be wrong with a dump.

use deltabench_model::problem::Problem;
use std::io;
use std::path::Path;

/// A dump that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file, or the program that reads it.
    #[error("reading fails: {0}")]
    Read(io::Error),
    /// It ends within a string, a name or a comment.
    #[error("it ends within the statement that begins at line {line}")]
    Cut { line: u64 },
    /// It ends within the data of a COPY.
    #[error("it ends at line {line}, within the data of a table")]
    CutData { line: u64 },
    /// It has the first line of pg_dump and not the last.
    #[error("it lacks the last line, `-- PostgreSQL database dump complete`")]
    NoEnd,
    #[error("line {line} begins a statement or a row of more than 256 MB")]
    TooLong { line: u64 },
    /// psql would do something that is no SQL.
    #[error("line {line} has psql's command `{command}`")]
    Command { command: String, line: u64 },
    /// A statement that has no place in a dump.
    #[error("line {line} has {what}")]
    Refused { what: String, line: u64 },
    /// Something that is no SQL, such as a line of a log.
    #[error("line {line} begins no statement of SQL")]
    NoStatement { line: u64 },
    /// Statements cannot be found in this encoding.
    #[error("it is in UTF-16")]
    Utf16,
    /// Statements cannot be found in this encoding.
    #[error("its encoding is {encoding}")]
    Encoding { encoding: String },
    #[error("it has no statement")]
    Empty,
    /// Tables of more than one database.
    #[error("it holds several databases: {}", names.join(", "))]
    Databases { names: Vec<String> },
}

impl DumpError {
    /// The refusal of a dump.
    pub fn problem(&self, path: &Path) -> Problem {
        let problem =
            Problem::new(format!("cannot load {}", path.display())).detail(self.to_string());
        match self {
            Self::Cut { .. } | Self::CutData { .. } | Self::NoEnd => {
                problem.hint(
                    "the dump is cut: copy it again, or dump again; or the file is something else, such as a \
                     log",
                )
            }
            Self::Command { .. } => problem.hint(
                "deltabench carries out no command of psql; dump with `pg_dump DATABASE > FILE`, or put \
                 everything into one file of SQL",
            ),
            Self::Utf16 => problem.hint(
                "redirection in PowerShell writes UTF-16: dump with `pg_dump --file FILE DATABASE`",
            ),
            Self::Encoding { .. } => problem.hint("dump with `pg_dump --encoding UTF8`"),
            Self::Databases { .. } => {
                problem.hint("dump one of them: `pg_dump DATABASE > FILE`")
            }
            Self::Refused { .. } => problem.hint("remove that statement from the file"),
            Self::NoStatement { .. } => problem.hint(
                "name the output of `pg_dump DATABASE > FILE`; statements and logs are the first argument",
            ),
            Self::Empty => problem.hint("name the output of `pg_dump DATABASE > FILE`"),
            Self::Read(_) | Self::TooLong { .. } => problem,
        }
    }
}
