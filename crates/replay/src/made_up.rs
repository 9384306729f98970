//! Values for statements whose capture has none, made up from rows of the tables.
//!
//! The server says with which columns parameters are compared, and a sample of the tables' pages gives the
//! values. The sample and the choice depend on the seed and on the tables only: a replay that is resumed
//! makes up the same. Values come from tables of the user, so they are secrets like those of a capture.

mod conditions;
mod sources;
mod text;
mod values;

use crate::asking::{Asking, Connected};
use crate::reach::Tables;
use crate::request::Request;
use crate::said::{self, Known};
use crate::session::{ErrorClass, quoted};
use crate::substitutes::{MadeUp, wanting};
use crate::work::Job;
use conditions::{Conditions, Table};
use deltabench_capture::{Statement, Tuple, statements, tokens};
use deltabench_driver::admin::text_row;
use deltabench_driver::{Client, WireError};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use sources::{Kind, Parameter, Place, sources};
use std::collections::BTreeMap;
use text::{parameters, preparable, row_counts};
use values::{Chance, Rows, as_captured, tuples};

/// The first version that can be made to plan without values.
const FIRST: u32 = 120_000;
/// The first one that explains a statement with parameters.
const FIRST_GENERIC: u32 = 160_000;
/// Pages of a table that are read, so about as many rows as `ANALYZE` reads.
const PAGES: u64 = 300;
/// Rows of a table without such pages.
const ROWS: u32 = 10_000;
/// Bytes of a value, as the table has it.
const LONGEST: u32 = 2_000;
/// Tuples of a statement if the capture does not say how many.
const TUPLES: u32 = 64;
/// The name of a statement that is prepared.
const PREPARED: &str = "deltabench_made_up";

/// Makes values up for all statements of a capture that lack them, from the tables of this server.
///
/// Errors: a lost connection, an interruption.
pub fn make_up(request: &Request<'_>, server: &Asking<'_>) -> Result<MadeUp, Problem> {
    let mut made = MadeUp::default();
    let header = &request.capture.header;
    let mut maker = Maker {
        server,
        connected: None,
        seed: header.seed,
        most: match header.most_tuples {
            0 => TUPLES,
            most => most,
        },
        samples: BTreeMap::new(),
    };
    for statement in wanting(request.capture) {
        made.add(statement, maker.make(statement)?);
    }
    Ok(made)
}

/// Makes values up on one server.
struct Maker<'a, 'b> {
    server: &'a Asking<'b>,
    connected: Option<Connected>,
    seed: u64,
    most: u32,
    /// Rows by the statement that reads them.
    samples: BTreeMap<String, Rows>,
}

/// What is made up, or why nothing is; or why the replay cannot go on.
type Made<T> = Result<Result<T, String>, Problem>;

/// The value inside, or an early end with the reason.
macro_rules! made {
    ($made:expr) => {
        match $made? {
            Ok(made) => made,
            Err(why) => return Ok(Err(why)),
        }
    };
}

impl Maker<'_, '_> {
    fn make(&mut self, statement: &Statement) -> Made<Vec<Tuple>> {
        self.server.check_interruption()?;
        let sql = preparable(&statement.text);
        if statements(&tokens(&sql).tokens).len() != 1 {
            return Ok(Err("it is several statements".to_owned()));
        }
        if parameters(&sql).is_empty() {
            let folded = statement.text == statement.normalised && sql.contains('?');
            return Ok(match folded {
                true => {
                    Err("the capture has its text without parameters: make it again".to_owned())
                }
                false => Ok(as_captured(&sql, vec![(Vec::new(), 1.0)])),
            });
        }
        if self.server.version_num < FIRST {
            return Ok(Err(
                "the base is older than 12, and plans no statement without values".to_owned(),
            ));
        }
        let job = Job::bare(statement);
        let who = self.server.who(&job);
        if self.connected.as_ref().is_none_or(|open| open.who != who) {
            self.connected = None;
            match self.server.open(who, &job, Tables::Kept)? {
                Ok(open) => self.connected = Some(open),
                Err(_) => return Ok(Err("the base does not take its search_path".to_owned())),
            }
        }
        let types = made!(self.types(&job, &sql));
        let conditions = made!(self.conditions(&job, &sql, types.len()));
        self.values(&job, &sql, (&types, &conditions))
    }

    /// The types of the parameters.
    fn types(&mut self, job: &Job<'_>, sql: &str) -> Made<Vec<Kind>> {
        // Of the statement before, if there was one.
        made!(self.ask(job, "DEALLOCATE ALL", &[]));
        made!(self.ask(job, &format!("PREPARE {PREPARED} AS {sql}"), &[]));
        let rows = made!(self.ask(job, TYPES, &[PREPARED]));
        Ok(Ok(rows.into_iter().filter_map(Kind::read).collect()))
    }

    /// The conditions of its plan without values.
    fn conditions(&mut self, job: &Job<'_>, sql: &str, parameters: usize) -> Made<Conditions> {
        let rows = if self.server.version_num >= FIRST_GENERIC {
            let explain = format!("EXPLAIN (GENERIC_PLAN, VERBOSE, COSTS OFF, FORMAT JSON) {sql}");
            made!(self.ask(job, &explain, &[]))
        } else {
            for setting in GENERIC {
                made!(self.ask(job, setting, &[]));
            }
            let nulls = vec!["NULL"; parameters].join(", ");
            let explain =
                format!("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) EXECUTE {PREPARED}({nulls})");
            made!(self.ask(job, &explain, &[]))
        };
        let text: String = rows.into_iter().flatten().flatten().collect();
        let unreadable = || "its plan cannot be read".to_owned();
        Ok(Conditions::read(&text).ok_or_else(unreadable))
    }

    fn values(
        &mut self,
        job: &Job<'_>,
        sql: &str,
        (types, conditions): (&[Kind], &Conditions),
    ) -> Made<Vec<Tuple>> {
        let counts = row_counts(sql);
        let mut parameters = Vec::new();
        for (kind, number) in types.iter().zip(1_u32..) {
            let mut parameter = Parameter {
                kind: kind.clone(),
                fixed: counts.get(&number).copied(),
                place: None,
            };
            if let Some(compared) = conditions.chosen(number)
                && let Some(table) = conditions.tables.get(&compared.alias)
            {
                let expression = &compared.expression;
                let kind = made!(self.type_of(job, (table, &compared.alias), expression));
                let compared = compared.clone();
                parameter.place = Some(Place { compared, kind });
            }
            parameters.push(parameter);
        }
        let (sources, wanted) = match sources(&parameters) {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let mut samples = Vec::new();
        for (alias, expressions) in &wanted {
            let Some(table) = conditions.tables.get(alias) else {
                return Ok(Err("its plan cannot be read".to_owned()));
            };
            samples.push(made!(self.sample(job, (table, alias), expressions)));
        }
        let chance = Chance::of(self.seed, &job.statement.id);
        let drawn = tuples(&sources, &samples, index(u64::from(self.most)), chance);
        Ok(Ok(as_captured(sql, drawn)))
    }

    /// The type of an expression of a table.
    fn type_of(
        &mut self,
        job: &Job<'_>,
        ((schema, name), alias): (&Table, &str),
        expression: &str,
    ) -> Made<Kind> {
        let (schema, name, alias) = (quoted(schema), quoted(name), quoted(alias));
        let sql = format!(
            "{KIND} FROM (SELECT pg_catalog.pg_typeof({expression})::pg_catalog.oid AS it
               FROM (SELECT 1) AS deltabench_one LEFT JOIN {schema}.{name} AS {alias} ON false) AS u
             JOIN pg_catalog.pg_type t ON t.oid = u.it"
        );
        let rows = made!(self.ask(job, &sql, &[]));
        let unknown = || "the type of its column is not known".to_owned();
        let found = rows.into_iter().find_map(Kind::read);
        Ok(found.ok_or_else(unknown))
    }

    /// Rows of a table with these expressions, from some of its pages.
    fn sample(
        &mut self,
        job: &Job<'_>,
        ((schema, name), alias): (&Table, &str),
        expressions: &[(String, String)],
    ) -> Made<Rows> {
        let found = made!(self.ask(job, ROOT, &[schema, name]));
        let found = found.into_iter().next().and_then(|row| {
            let [table, pages] = <[Option<String>; 2]>::try_from(row).ok()?;
            Some((table?, pages?.parse::<u64>().ok()?))
        });
        let Some((table, pages)) = found else {
            return Ok(Err(format!("{schema}.{name} is not there")));
        };
        let alias = quoted(alias);
        let wanted: Vec<String> = expressions
            .iter()
            .map(|(expression, kind)| format!("CAST({expression} AS {kind})::pg_catalog.text"))
            .collect();
        let known = expressions.iter();
        let known: Vec<String> = known.map(|(it, _)| usable(it)).collect();
        let some = match pages > PAGES {
            true => format!(
                " TABLESAMPLE SYSTEM (100.0 * {PAGES} / {pages}) REPEATABLE ({})",
                self.seed
            ),
            false => String::new(),
        };
        let (wanted, known) = (wanted.join(", "), known.join(" AND "));
        for (sampled, end) in [(some.as_str(), ""), ("", "LIMIT")] {
            let limit = match end {
                "" => String::new(),
                end => format!(" {end} {ROWS}"),
            };
            let sql =
                format!("SELECT {wanted} FROM {table} AS {alias}{sampled} WHERE {known}{limit}");
            if !self.samples.contains_key(&sql) {
                let rows = made!(self.ask(job, &sql, &[]));
                let whole = rows.into_iter().map(|row| row.into_iter().collect());
                let whole: Option<Rows> = whole.collect();
                self.samples.insert(sql.clone(), whole.unwrap_or_default());
            }
            if let Some(rows) = self.samples.get(&sql).filter(|rows| !rows.is_empty()) {
                return Ok(Ok(rows.clone()));
            }
        }
        Ok(Err(format!("{schema}.{name} has no row with values")))
    }

    /// Rows of a statement, or what the server says.
    fn ask(&mut self, job: &Job<'_>, sql: &str, values: &[&str]) -> Made<Vec<Vec<Option<String>>>> {
        let gone = || Problem::new("a connection is gone");
        let client = &mut self.connected.as_mut().ok_or_else(gone)?.client;
        match rows(client, sql, values) {
            Ok(rows) => Ok(Ok(rows)),
            Err(WireError::Server(error)) if ErrorClass::of(&error) == ErrorClass::Useless => {
                Err(self.server.lost(&WireError::Server(error), job))
            }
            Err(WireError::Server(error)) => {
                let known = Known::of(&job.statement.text, std::iter::empty());
                let said = said::message(&error, &known);
                Ok(Err(format!("the base refuses: {} {said}", error.sqlstate)))
            }
            Err(error) => Err(self.server.lost(&error, job)),
        }
    }
}

fn rows(
    client: &mut Client,
    sql: &str,
    values: &[&str],
) -> Result<Vec<Vec<Option<String>>>, WireError> {
    // In the extended protocol the parameters of what is prepared or explained would be those of the command.
    if values.is_empty() {
        return client.query(sql);
    }
    let values: Vec<Option<String>> = values.iter().map(|it| Some((*it).to_owned())).collect();
    let mut rows = Vec::new();
    client.with_values(sql, &[], &values, &mut |row| {
        rows.push(text_row(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Whether a row has a value that is no NULL, and not so long that a sample of them fills the memory.
fn usable(expression: &str) -> String {
    format!("pg_catalog.pg_column_size({expression}) <= {LONGEST}")
}

/// Before 16: plans without values, and with all partitions.
const GENERIC: [&str; 2] = [
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_partition_pruning = off",
];

/// What is asked of a type `t`: its name, category, and those of its elements.
const KIND: &str = "SELECT pg_catalog.format_type(t.oid, NULL), (CASE t.typtype WHEN 'd'
      THEN (SELECT b.typcategory FROM pg_catalog.pg_type b WHERE b.oid = t.typbasetype)
      ELSE t.typcategory END)::text,
    (SELECT pg_catalog.format_type(e.oid, NULL) FROM pg_catalog.pg_type e
      WHERE e.oid = t.typelem AND t.typcategory = 'A'),
    (SELECT e.typcategory::text FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND t.typcategory = 'A')";

/// The types of a prepared statement's parameters.
const TYPES: &str = "SELECT pg_catalog.format_type(t.oid, NULL), t.typcategory::text,
    (SELECT pg_catalog.format_type(e.oid, NULL) FROM pg_catalog.pg_type e
      WHERE e.oid = t.typelem AND t.typcategory = 'A'),
    (SELECT e.typcategory::text FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND t.typcategory = 'A')
  FROM pg_catalog.pg_prepared_statements p
    CROSS JOIN pg_catalog.unnest(p.parameter_types) WITH ORDINALITY u(it, place)
    JOIN pg_catalog.pg_type t ON t.oid = u.it::pg_catalog.oid
  WHERE p.name = $1 ORDER BY u.place";

/// The table whose partition a table is, or itself, with its pages.
const ROOT: &str = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname),
    ((pg_catalog.pg_relation_size(c.oid) + coalesce((SELECT pg_catalog.sum(pg_catalog.pg_relation_size(relid))
        FROM pg_catalog.pg_partition_tree(c.oid)), 0)::pg_catalog.int8)
      / pg_catalog.current_setting('block_size')::pg_catalog.int8)::pg_catalog.text
  FROM pg_catalog.pg_class x JOIN pg_catalog.pg_namespace s ON s.oid = x.relnamespace
    JOIN pg_catalog.pg_class c ON c.oid = coalesce(pg_catalog.pg_partition_root(x.oid)::pg_catalog.oid, x.oid)
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE s.nspname = $1 AND x.relname = $2";
