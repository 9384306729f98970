//! What is done to the tables before and after a visit, outside of what is measured.

use crate::section::Section;
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;

/// Longest pause of a `wait`, seconds: that of the published step.
const MAX_WAIT: u32 = 1200;

/// One `[[before]]` or `[[after]]` of a definition, done on a connection of its own on every server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chore {
    /// `VACUUM (ANALYZE)` of each table.
    Vacuum,
    /// `ANALYZE` of each table.
    Analyze,
    Checkpoint,
    /// The published step after a write phase: vacuum and analyze, checkpoint, then wait until
    /// [`settle_seconds`] have passed since its start.
    Settle,
    /// Nothing for so many seconds.
    Wait(u32),
    /// One statement; one for each table where it says `{table}`.
    Sql(String),
}

impl Chore {
    /// The statements to run in order, on a connection whose `search_path` is the schema of the tables;
    /// `tables` are their names. None of them may run inside a transaction.
    pub fn statements(&self, tables: &[String]) -> Vec<String> {
        let each = |verb: &str| -> Vec<String> {
            tables
                .iter()
                .map(|table| format!("{verb} {table}"))
                .collect()
        };
        match self {
            Self::Vacuum => each("VACUUM (ANALYZE)"),
            Self::Analyze => each("ANALYZE"),
            Self::Checkpoint => vec!["CHECKPOINT".to_owned()],
            Self::Settle => {
                let mut statements = each("VACUUM (ANALYZE)");
                statements.push("CHECKPOINT".to_owned());
                statements
            }
            Self::Wait(_) => Vec::new(),
            Self::Sql(sql) if sql.contains(TABLE) => tables
                .iter()
                .map(|table| sql.replace(TABLE, table))
                .collect(),
            Self::Sql(sql) => vec![sql.clone()],
        }
    }

    /// Seconds that the chore takes at least, its statements included.
    pub fn seconds(&self, size: &DataSize) -> u64 {
        match self {
            Self::Settle => settle_seconds(size),
            Self::Wait(seconds) => u64::from(*seconds),
            _ => 0,
        }
    }
}

const TABLE: &str = "{table}";

/// How long the published step after a write phase takes: 60 s and one more for each million rows of all
/// tables, at most 20 minutes.
pub fn settle_seconds(size: &DataSize) -> u64 {
    let rows = size.rows.saturating_mul(u64::from(size.tables));
    (rows / 1_000_000)
        .saturating_add(60)
        .min(u64::from(MAX_WAIT))
}

/// Reads the chores under `key`.
pub(crate) fn chores(root: &Section<'_>, key: &str) -> Result<Vec<Chore>, Problem> {
    let sections = root.sections(key, key, key)?;
    sections.iter().map(chore).collect()
}

fn chore(section: &Section<'_>) -> Result<Chore, Problem> {
    section.allow(&["run", "sql", "seconds"])?;
    let words = [
        ("vacuum", Chore::Vacuum),
        ("analyze", Chore::Analyze),
        ("checkpoint", Chore::Checkpoint),
        ("settle", Chore::Settle),
        ("wait", Chore::Wait(0)),
    ];
    let places: Vec<(&str, usize)> = (0..words.len())
        .filter_map(|place| words.get(place).map(|(word, _)| (*word, place)))
        .collect();
    let chosen = section.word("run", &places)?;
    let sql = section.optional_text("sql")?;
    let seconds = section.number::<u32>("seconds", 1..=i64::from(MAX_WAIT))?;
    let chore = match (chosen.and_then(|place| words.get(place)), sql) {
        (Some((_, chore)), None) => chore.clone(),
        (None, Some((sql, at))) => {
            if sql.contains(';') {
                let problem = Problem::new("`;` in SQL");
                let hint = "each statement is a separate table";
                return Err(section.wrap(at, problem.hint(hint)));
            }
            Chore::Sql(sql.trim().to_owned())
        }
        _ => return Err(section.problem("needs `run` or `sql`, but not both")),
    };
    match (chore, seconds) {
        (Chore::Wait(_), Some(seconds)) => Ok(Chore::Wait(seconds)),
        (Chore::Wait(_), None) => Err(section.problem("key `seconds` is missing")),
        (_, Some(_)) => Err(section.problem("`seconds` belongs to run = \"wait\"")),
        (chore, None) => Ok(chore),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chores_name_every_table() {
        let tables = ["a".to_owned(), "b".to_owned()];
        assert_eq!(
            Chore::Settle.statements(&tables),
            ["VACUUM (ANALYZE) a", "VACUUM (ANALYZE) b", "CHECKPOINT"]
        );
        assert_eq!(
            Chore::Sql("REINDEX TABLE {table}".into()).statements(&tables),
            ["REINDEX TABLE a", "REINDEX TABLE b"]
        );
        assert_eq!(
            Chore::Sql("SELECT 1".into()).statements(&tables),
            ["SELECT 1"]
        );
        assert!(Chore::Wait(3).statements(&tables).is_empty());
    }

    #[test]
    fn settling_takes_as_long_as_published() {
        let seconds = |tables, rows| settle_seconds(&DataSize { tables, rows });
        assert_eq!(seconds(1, 1), 60);
        assert_eq!(seconds(8, 10_000_000), 140);
        assert_eq!(seconds(8, 1_000_000_000), 1200);
        let size = DataSize { tables: 2, rows: 1 };
        assert_eq!(Chore::Wait(7).seconds(&size), 7);
        assert_eq!(Chore::Vacuum.seconds(&size), 0);
    }
}
