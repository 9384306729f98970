//! Tables that a definition brings along.

use crate::bound::Bound;
use crate::expression::Sizes;
use crate::sbtest;
use crate::section::Section;
use deltabench_model::plan::DataSize;
use deltabench_model::problem::{Problem, nearest};

/// Bytes of heap and indexes that a row is taken to have when the file does not say.
const ROW_BYTES: u32 = 200;
/// Most bytes of a row that a file may claim.
const MAX_ROW_BYTES: u32 = 1_000_000;

/// A table of the user's: how it is made and filled.
///
/// Shape: its rows must come out the same on every server, so `fill` may not use random numbers of the
/// server, which differ between versions; hashes of the row's number do not.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    pub name: String,
    /// Bytes of heap and indexes of one row, as the file estimates them.
    pub row_bytes: u32,
    file: String,
    create: String,
    rows: Bound,
    fill: String,
    indexes: Vec<String>,
}

impl TableDefinition {
    /// The statement that creates it, empty; `schema` must exist.
    pub fn create_sql(&self, schema: &str) -> String {
        self.create.replace(TABLE, &self.qualified(schema))
    }

    /// How many rows it has.
    ///
    /// Errors: an expression without a value for that size, or one below 1.
    pub fn rows(&self, size: &DataSize) -> Result<u64, Problem> {
        let sizes = Sizes {
            rows: sbtest::checked_rows(size)?,
            tables: i64::from(size.tables),
        };
        let problem = |what: String| {
            let (file, line, name) = (&self.file, self.rows.line, &self.name);
            Problem::new(format!("{file}:{line}: table `{name}`: {what}"))
                .detail(format!("rows = {}, tables = {}", sizes.rows, sizes.tables))
        };
        let rows = self.rows.expression.value(sizes);
        let rows = rows.map_err(|why| problem(format!("the expression {why}")))?;
        u64::try_from(rows)
            .ok()
            .filter(|rows| *rows > 0)
            .ok_or_else(|| problem(format!("{rows} rows")))
    }

    /// The statement that fills it with [`TableDefinition::rows`] rows.
    ///
    /// Errors: as for the number of rows.
    pub fn fill_sql(&self, schema: &str, size: &DataSize) -> Result<String, Problem> {
        let rows = self.rows(size)?.to_string();
        let sql = self.fill.replace(TABLE, &self.qualified(schema));
        Ok(sql.replace(ROWS, &rows))
    }

    /// Statements for the filled table: its indexes and constraints.
    pub fn index_sql(&self, schema: &str) -> Vec<String> {
        let table = self.qualified(schema);
        let indexes = self.indexes.iter();
        indexes.map(|sql| sql.replace(TABLE, &table)).collect()
    }

    /// Statements that leave it as the next measurement should find it, as [`crate::Sbtest::settle_sql`].
    pub fn settle_sql(&self, schema: &str) -> Vec<String> {
        vec![format!(
            "VACUUM (FREEZE, ANALYZE) {}",
            self.qualified(schema)
        )]
    }

    /// Bytes of heap and indexes when filled, by the file's own estimate.
    ///
    /// Errors: as for the number of rows.
    pub fn estimate_bytes(&self, size: &DataSize) -> Result<u64, Problem> {
        Ok(self.rows(size)?.saturating_mul(u64::from(self.row_bytes)))
    }

    fn qualified(&self, schema: &str) -> String {
        format!("\"{}\".{}", schema.replace('"', "\"\""), self.name)
    }
}

const TABLE: &str = "{table}";
const ROWS: &str = "{rows}";

/// Reads the file's own tables; `None` if it has none.
pub(crate) fn tables(root: &Section<'_>) -> Result<Option<Vec<TableDefinition>>, Problem> {
    let sections = root.sections("table", "table", "table")?;
    let mut tables: Vec<TableDefinition> = Vec::new();
    for section in &sections {
        let table = table(section)?;
        if tables.iter().any(|known| known.name == table.name) {
            let what = format!("a table `{}` already exists", table.name);
            return Err(section.problem(what));
        }
        tables.push(table);
    }
    Ok((!tables.is_empty()).then_some(tables))
}

fn table(section: &Section<'_>) -> Result<TableDefinition, Problem> {
    section.allow(&["name", "create", "rows", "fill", "indexes", "row_bytes"])?;
    let (name, at) = section.required_text("name")?;
    let letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if !name.starts_with(|first: char| first.is_ascii_lowercase())
        || !name.chars().all(|other| letter(other) || other == '_')
    {
        let what = format!("name \"{name}\" is not lower-case letters, digits and `_`");
        return Err(section.problem_at(at, what));
    }
    let (create, at) = section.required_text("create")?;
    check_braces(section, at, create, false)?;
    let (fill, at) = section.required_text("fill")?;
    check_braces(section, at, fill, true)?;
    if fill.to_ascii_lowercase().contains("random") {
        let problem = Problem::new("`fill` has random numbers of the server");
        let detail = "they differ between versions, so the servers would not have the same rows";
        let hint = "use a hash of the row's number, for example hashint4(i) or md5(i::text)";
        return Err(section.wrap(at, problem.detail(detail).hint(hint)));
    }
    let indexes = section.texts("indexes")?;
    let at = section.value("indexes").map_or(0, |(_, at)| at);
    for sql in &indexes {
        check_braces(section, at, sql, false)?;
    }
    Ok(TableDefinition {
        name: name.to_owned(),
        row_bytes: section
            .number::<u32>("row_bytes", 1..=i64::from(MAX_ROW_BYTES) - 1)?
            .unwrap_or(ROW_BYTES),
        file: section.document().file.to_owned(),
        create: create.trim().to_owned(),
        rows: crate::bound::bound(section, "rows")?,
        fill: fill.trim().to_owned(),
        indexes,
    })
}

/// Refuses SQL that names another table than `{table}`, or words in braces that nothing replaces.
fn check_braces(
    section: &Section<'_>,
    at: usize,
    sql: &str,
    with_rows: bool,
) -> Result<(), Problem> {
    let known: &[&str] = if with_rows {
        &["table", "rows"]
    } else {
        &["table"]
    };
    let mut rest = sql;
    while let Some((_, after)) = rest.split_once('{') {
        let (word, tail) = after.split_once('}').unwrap_or((after, ""));
        if !known.contains(&word) {
            let problem = Problem::new(format!("`{{{word}}}` in SQL"))
                .detail(format!("known: {}", known.join(", ")));
            return Err(section.wrap(
                at,
                match nearest(word, known.iter().copied()) {
                    Some(near) => problem.hint(format!("did you mean `{{{near}}}`?")),
                    None => problem,
                },
            ));
        }
        rest = tail;
    }
    if !sql.contains(TABLE) {
        let problem = Problem::new("SQL without {table}");
        let hint = "write {table} instead of the table's name: deltabench loads the table into a separate \
             schema";
        return Err(section.wrap(at, problem.hint(hint)));
    }
    if with_rows && !sql.contains(ROWS) {
        let problem = Problem::new("`fill` without {rows}");
        return Err(section.wrap(at, problem.hint("for example generate_series(1, {rows})")));
    }
    Ok(())
}
