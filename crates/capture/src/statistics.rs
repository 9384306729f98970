//! `pg_stat_statements` as weights: which statement of the log it means, and how often and how long it ran.
//!
//! Source: PostgreSQL documentation, `pg_stat_statements`: `total_time` until 12, `total_exec_time` and
//! `total_plan_time` from 13 on; times in milliseconds, planning not in the time of executing.

use crate::capture::Counted;
use crate::collect::Hashed;
use crate::csv::{fields, is_open};
use crate::fingerprint::Fingerprint;
use crate::id::id;
use crate::kind::in_common;
use crate::known::Known;
use crate::lexer::tokens;
use crate::parts::statements as parts;
use crate::statement::{Protocol, Statement, Unusable, Weight};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64, to_u64};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// A row of the view.
#[derive(Clone)]
pub(crate) struct Row {
    query_id: Option<i64>,
    query: String,
    role: Option<String>,
    database: Option<String>,
    sums: Sums,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    calls: f64,
    ms: f64,
    plan_ms: f64,
    rows: f64,
}

impl Sums {
    fn add(&mut self, other: Self, share: Share) {
        self.calls += other.calls * share.calls;
        self.ms += other.ms * share.executing;
        self.plan_ms += other.plan_ms * share.planning;
        self.rows += other.rows * share.calls;
    }
}

/// What stands for a text that the role may not see.
const HIDDEN: &str = "<insufficient privilege>";

/// What makes the file.
const COPY: &str = "\
psql -c \"COPY (SELECT s.*, r.rolname, d.datname FROM pg_stat_statements s
  LEFT JOIN pg_roles r ON r.oid = s.userid LEFT JOIN pg_database d ON d.oid = s.dbid)
  TO STDOUT CSV HEADER\" > statements.csv";

/// Reads a file.
///
/// Errors: what cannot be read; no header with `query`, `calls` and a time; a row that is none. No message
/// has a text of the file.
pub(crate) fn read(path: &Path) -> Result<Vec<Row>, Problem> {
    let bytes = std::fs::read(path).map_err(|error| {
        Problem::new(format!("cannot read {}", path.display()))
            .detail(error.to_string())
            .hint(format!("make it on the server:\n{COPY}"))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    let refused = |what: String| {
        Problem::new(format!(
            "{} is no CSV of pg_stat_statements",
            path.display()
        ))
        .detail(what)
        .hint(format!("make it on the server:\n{COPY}"))
    };
    let mut records = records(text);
    let header = records
        .next()
        .and_then(|(_, record)| fields(record))
        .unwrap_or_default();
    let columns: HashMap<String, usize> = header
        .iter()
        .enumerate()
        .map(|(at, name)| (name.trim().to_ascii_lowercase(), at))
        .collect();
    let time = if columns.contains_key("total_exec_time") {
        "total_exec_time"
    } else {
        "total_time"
    };
    for name in ["query", "calls", time] {
        if !columns.contains_key(name) {
            return Err(refused(format!("its first line names no column {name}")));
        }
    }
    let mut rows = Vec::new();
    for (line, record) in records {
        let row = row(record, &columns, time);
        rows.extend(row.ok_or_else(|| refused(format!("line {line} is no row of it")))?);
    }
    if rows.is_empty() {
        return Err(refused("it has no statement".to_owned()));
    }
    Ok(rows)
}

/// Records with the number of their first lines: a text may have several.
fn records(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut rest = text;
    let mut number = 1;
    std::iter::from_fn(move || {
        let mut end = 0;
        let mut open = false;
        let begin = number;
        for line in rest.split_inclusive('\n') {
            open = is_open(line.as_bytes(), open);
            end += line.len();
            number += 1;
            if !open {
                break;
            }
        }
        let (record, after) = rest.split_at_checked(end)?;
        rest = after;
        (end > 0).then(|| (begin, record.trim_end_matches(['\n', '\r'])))
    })
    .filter(|(_, record)| !record.is_empty())
}

/// A row; absent inside if it is a statement that another one executed: its time is in that one's.
fn row(record: &str, columns: &HashMap<String, usize>, time: &str) -> Option<Option<Row>> {
    let fields = fields(record)?;
    let field = |name: &str| {
        let at = *columns.get(name)?;
        fields
            .get(at)
            .map(|field| field.as_ref())
            .filter(|field| !field.is_empty())
    };
    let number = |name: &str| match field(name) {
        None => Some(0.0),
        Some(text) => text.parse::<f64>().ok(),
    };
    if matches!(field("toplevel"), Some("f" | "false")) {
        return Some(None);
    }
    let text = |name: &str| field(name).map(str::to_owned);
    Some(Some(Row {
        query_id: field("queryid").and_then(|id| id.parse().ok()),
        query: text("query").unwrap_or_default(),
        role: text("rolname"),
        database: text("datname"),
        sums: Sums {
            calls: number("calls")?,
            ms: number(time)?,
            plan_ms: number("total_plan_time")?,
            rows: number("rows")?,
        },
    }))
}

/// Statements with the weights of the statistics, and those that only the statistics have.
///
/// A row that means several statements (one text sent in two ways) is divided by their shares of the log: of
/// its calls, its time of executing, and its time of planning. A statement that no row means keeps the weight
/// of the log, multiplied by the ratio of the others' times. Also returns the calls of the statistics / those
/// of the log, of statements in both.
pub(crate) fn joined(
    statements: Vec<Hashed>,
    rows: Vec<Row>,
    counted: &mut Counted,
) -> (Vec<Hashed>, Option<f64>) {
    let mut statements = statements;
    let meant = Meant::of(&statements);
    let mut sums: BTreeMap<usize, Sums> = BTreeMap::new();
    let mut alone: BTreeMap<String, (Hashed, Sums)> = BTreeMap::new();
    let mut inside: BTreeMap<usize, Sums> = BTreeMap::new();
    let (hidden, rows): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.query == HIDDEN);
    counted.hidden += count(hidden.len());
    for row in rows {
        let known = Known::of(&row.query);
        let mut is_found = false;
        for (found, sums) in [
            (meant.by(&row, &known, &statements), &mut sums),
            (meant.around(&row, &known, &statements), &mut inside),
        ] {
            let found = if is_found { Vec::new() } else { found };
            for (at, share) in found.iter().zip(shares(&found, &statements)) {
                sums.entry(*at).or_default().add(row.sums, share);
                is_found = true;
            }
        }
        if !is_found {
            let hashed = only_in_statistics(&row, &known);
            let entry = alone.entry(hashed.0.id.clone());
            let (_, sums) = entry.or_insert_with(|| (hashed, Sums::default()));
            sums.add(row.sums, WHOLE);
        }
    }
    let calls = ratio(
        &statements,
        &sums,
        |statement| to_f64(statement.calls),
        |sums| sums.calls,
    );
    let times = ratio(
        &statements,
        &sums,
        |statement| statement.total_ms.unwrap_or(0.0),
        |sums| sums.ms + sums.plan_ms,
    );
    // A lower bound of a time says nothing of the others.
    let times = times.filter(|_| statements.iter().all(|(s, _)| s.weight != Weight::AtLeast));
    let more = times.or(calls).unwrap_or(1.0);
    for (at, (statement, _)) in statements.iter_mut().enumerate() {
        match (sums.get(&at), inside.get(&at)) {
            (Some(sums), _) => weigh(statement, *sums),
            // Times of its parts, but executions of the whole.
            (None, Some(parts)) => {
                let calls = to_f64(statement.calls) * calls.unwrap_or(1.0);
                weigh(statement, Sums { calls, ..*parts });
            }
            (None, None) => {
                counted.not_in_statistics += 1;
                scale(statement, more);
            }
        }
    }
    counted.only_in_statistics += count(alone.len());
    statements.extend(alone.into_values().map(|(mut hashed, sums)| {
        weigh(&mut hashed.0, sums);
        hashed
    }));
    (statements, calls)
}

/// Which statements of the log an identifier or a fingerprint means.
struct Meant {
    ids: HashMap<i64, Vec<usize>>,
    hashes: HashMap<[u8; 32], Vec<usize>>,
    /// Those of the parts of texts with several statements.
    parts: HashMap<[u8; 32], Vec<usize>>,
}

impl Meant {
    fn of(statements: &[Hashed]) -> Self {
        let mut ids: HashMap<i64, Vec<usize>> = HashMap::new();
        let mut hashes: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
        for (at, (statement, hash)) in statements.iter().enumerate() {
            for id in &statement.query_ids {
                ids.entry(*id).or_default().push(at);
            }
            hashes.entry(*hash).or_default().push(at);
        }
        Self {
            ids,
            hashes,
            parts: of_parts(statements),
        }
    }

    /// Texts of several statements of which a row is one. The server counts each of them by itself.
    fn around(&self, row: &Row, known: &Known, statements: &[Hashed]) -> Vec<usize> {
        Self::fitting(self.parts.get(&known.fingerprint.hash), row, statements)
    }

    fn by(&self, row: &Row, known: &Known, statements: &[Hashed]) -> Vec<usize> {
        let of = |found| Self::fitting(found, row, statements);
        let by_id = of(row.query_id.and_then(|id| self.ids.get(&id)));
        if by_id.is_empty() {
            of(self.hashes.get(&known.fingerprint.hash))
        } else {
            by_id
        }
    }

    /// Of some statements those that a row may mean.
    fn fitting(found: Option<&Vec<usize>>, row: &Row, statements: &[Hashed]) -> Vec<usize> {
        let differ = |one: &Option<String>, other: &Option<String>| {
            one.is_some() && other.is_some() && one != other
        };
        let statement = |at: &usize| statements.get(*at).map(|(statement, _)| statement);
        let found = found.into_iter().flatten().copied();
        let here: Vec<usize> = found
            .filter(|at| statement(at).is_some_and(|s| !differ(&s.database, &row.database)))
            .collect();
        // The statistics have the role of a function that runs as its owner, the log that of the session:
        // another role is no other statement, it only tells statements of several roles apart.
        let same = here.iter().copied();
        let same: Vec<usize> = same
            .filter(|at| statement(at).is_some_and(|s| !differ(&s.role, &row.role)))
            .collect();
        if same.is_empty() { here } else { same }
    }
}

fn of_parts(statements: &[Hashed]) -> HashMap<[u8; 32], Vec<usize>> {
    let mut hashes: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (at, (statement, _)) in statements.iter().enumerate() {
        let found = tokens(&statement.normalised);
        let parts = parts(&found.tokens);
        if parts.len() < 2 {
            continue;
        }
        let own = parts
            .into_iter()
            .map(|part| Fingerprint::of(&in_common(part)).hash);
        for hash in BTreeSet::from_iter(own) {
            hashes.entry(hash).or_default().push(at);
        }
    }
    hashes
}

/// The part of a row that one of several statements gets.
#[derive(Clone, Copy)]
struct Share {
    calls: f64,
    executing: f64,
    planning: f64,
}

const WHOLE: Share = Share {
    calls: 1.0,
    executing: 1.0,
    planning: 1.0,
};

/// Their shares of the log's calls and of its times, among some statements. Planning has a share of its own:
/// it takes most of the time of one way of sending, and little of another's.
fn shares(found: &[usize], statements: &[Hashed]) -> Vec<Share> {
    let found = || {
        found
            .iter()
            .filter_map(|at| statements.get(*at))
            .map(|(statement, _)| statement)
    };
    let shares_of = |part: fn(&Statement) -> f64| {
        let parts: Vec<f64> = found().map(part).collect();
        let all: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / all).collect::<Vec<_>>()
    };
    let calls = shares_of(|statement| to_f64(statement.calls.max(1)));
    let known = |part: fn(&Statement) -> f64| found().all(|statement| part(statement) > 0.0);
    // What the log does not know of one of them is divided as what it knows of all.
    let executing = match known(executing_ms) {
        true => shares_of(executing_ms),
        false => calls.clone(),
    };
    let planning = match known(planning_ms) {
        true => shares_of(planning_ms),
        false => executing.clone(),
    };
    let all = calls.into_iter().zip(executing).zip(planning);
    all.map(|((calls, executing), planning)| Share {
        calls,
        executing,
        planning,
    })
    .collect()
}

/// Milliseconds of executing in the log, without planning.
fn executing_ms(statement: &Statement) -> f64 {
    statement.total_ms.unwrap_or(0.0) - planning_ms(statement)
}

/// Milliseconds of planning in the log.
fn planning_ms(statement: &Statement) -> f64 {
    statement.plan_ms.unwrap_or(0.0)
}

/// How much more the statistics have than the log, of statements that are in both.
fn ratio(
    statements: &[Hashed],
    sums: &BTreeMap<usize, Sums>,
    ours: fn(&Statement) -> f64,
    theirs: fn(&Sums) -> f64,
) -> Option<f64> {
    let both = || {
        let both = sums.iter();
        both.filter_map(|(at, sums)| Some((&statements.get(*at)?.0, sums)))
    };
    let ours: f64 = both().map(|(statement, _)| ours(statement)).sum();
    let theirs: f64 = both().map(|(_, sums)| theirs(sums)).sum();
    (ours > 0.0 && theirs > 0.0).then(|| theirs / ours)
}

fn weigh(statement: &mut Statement, sums: Sums) {
    // Planning is not tracked by default: the log's share of it stands in.
    let logged = statement.plan_ms.zip(statement.total_ms);
    let logged = logged
        .map(|(plan, total)| plan / (total - plan))
        .filter(|share| share.is_finite());
    statement.plan_ms = match logged {
        _ if sums.plan_ms > 0.0 => Some(sums.plan_ms),
        Some(share) => Some(sums.ms * share),
        None => None,
    };
    statement.calls = to_u64(sums.calls);
    statement.total_ms = Some(sums.ms + statement.plan_ms.unwrap_or(0.0));
    statement.rows = (sums.calls > 0.0).then(|| sums.rows / sums.calls);
    statement.weight = Weight::Statistics;
}

fn scale(statement: &mut Statement, ratio: f64) {
    statement.calls = to_u64(to_f64(statement.calls) * ratio);
    for ms in [&mut statement.total_ms, &mut statement.plan_ms]
        .into_iter()
        .flatten()
    {
        *ms *= ratio;
    }
}

fn only_in_statistics(row: &Row, known: &Known) -> Hashed {
    let hash = known.fingerprint.hash;
    // Its parameters are needed to make values up for them.
    let text = match known.may_get_values() {
        true => &row.query,
        false => &known.fingerprint.normalised,
    };
    let apart = [
        "statistics",
        row.role.as_deref().unwrap_or(""),
        row.database.as_deref().unwrap_or(""),
    ];
    let statement = Statement {
        id: id(&hash, &apart),
        name: None,
        normalised: known.fingerprint.normalised.clone(),
        text: text.clone(),
        protocol: Protocol::Extended,
        role: row.role.clone(),
        database: row.database.clone(),
        search_path: None,
        kind: known.nature.kind,
        calls: 0,
        total_ms: None,
        plan_ms: None,
        rows: None,
        weight: Weight::Statistics,
        volatile: known.nature.volatile.clone(),
        query_ids: BTreeSet::from_iter(row.query_id).into_iter().collect(),
        errors: 0,
        unusable: Unusable::default(),
        tuples: Vec::new(),
    };
    (statement, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Obstacle;

    fn rows(text: &str) -> Result<Vec<Row>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("statements.csv");
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|problem| problem.to_string())
    }

    fn statement(text: &str, query_id: i64, calls: u64, ms: f64) -> Hashed {
        let known = Known::of(text);
        let row = Row {
            query_id: Some(query_id),
            query: text.to_owned(),
            role: Some("app".to_owned()),
            database: None,
            sums: Sums::default(),
        };
        let (mut statement, hash) = only_in_statistics(&row, &known);
        statement.id = format!("{query_id}-{calls}");
        statement.calls = calls;
        statement.total_ms = Some(ms);
        statement.weight = Weight::Log;
        (statement, hash)
    }

    const HEADER: &str =
        "userid,toplevel,queryid,query,calls,total_exec_time,total_plan_time,rows,rolname\n";

    fn joined_with(statements: Vec<Hashed>, text: &str) -> (Vec<Statement>, Counted) {
        let mut counted = Counted::default();
        let rows = rows(&format!("{HEADER}{text}")).unwrap();
        let (all, _) = joined(statements, rows, &mut counted);
        (
            all.into_iter().map(|(statement, _)| statement).collect(),
            counted,
        )
    }

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-6)
    }

    #[test]
    fn a_row_weighs_the_statement_with_its_identifier_or_its_text() {
        let log = vec![
            statement("select a\nfrom t", 1, 10, 5.0),
            statement("select b where c = 1", 2, 1, 1.0),
        ];
        let (all, counted) = joined_with(
            log,
            "10,t,1,\"select a\nfrom t\",1000,400.5,100,2000,app\n\
             10,t,77,select b where c = $1,50,30,0,50,app\n\
             10,f,2,nested,1,1,1,1,app\n",
        );
        assert_eq!(
            (
                all.len(),
                counted.only_in_statistics,
                counted.not_in_statistics
            ),
            (2, 0, 0)
        );
        assert_eq!(all[0].calls, 1000);
        assert!(
            near(all[0].total_ms, 500.5) && near(all[0].plan_ms, 100.0) && near(all[0].rows, 2.0)
        );
        assert_eq!((all[1].calls, all[1].plan_ms), (50, None));
        assert!(
            all.iter()
                .all(|statement| statement.weight == Weight::Statistics)
        );
    }

    #[test]
    fn a_row_of_two_statements_is_divided_and_what_is_missing_is_scaled() {
        let log = vec![
            statement("select a", 1, 30, 2.0),
            statement("select a", 1, 10, 2.0),
            statement("select z", 9, 8, 2.0),
        ];
        let (all, counted) = joined_with(
            log,
            "10,t,1,select a,4000,400,0,0,app\n10,t,5,select y,7,6,0,0,\n",
        );
        let calls: Vec<u64> = all.iter().map(|statement| statement.calls).collect();
        assert_eq!(calls, [3000, 1000, 800, 7]);
        let times: Vec<f64> = all
            .iter()
            .map(|statement| statement.total_ms.unwrap().round())
            .collect();
        assert!(
            times
                .iter()
                .zip([200.0, 200.0, 200.0, 6.0])
                .all(|(a, b)| near(Some(*a), b)),
            "{times:?}"
        );
        assert_eq!(
            (all[2].weight, all[3].weight),
            (Weight::Log, Weight::Statistics)
        );
        assert_eq!(all[3].obstacle(), Some(Obstacle::NotInLog));
        assert_eq!(
            (counted.only_in_statistics, counted.not_in_statistics),
            (1, 1)
        );
    }

    #[test]
    fn a_row_of_two_ways_of_sending_is_divided_by_what_each_executes_and_plans() {
        // As pgbench sends an UPDATE: prepared, and planned each time.
        let mut prepared = statement("update a", 1, 100, 8.0);
        prepared.0.plan_ms = Some(2.0);
        let mut extended = statement("update a", 1, 20, 10.0);
        extended.0.plan_ms = Some(8.0);
        let with = |planned: u32| {
            let log = vec![prepared.clone(), extended.clone()];
            let (all, _) = joined_with(log, &format!("10,t,1,update a,120,4,{planned},0,app\n"));
            assert_eq!((all[0].calls, all[1].calls), (100, 20));
            let times = |statement: &Statement| (statement.total_ms, statement.plan_ms);
            [times(&all[0]), times(&all[1])]
        };
        let same = |found: (Option<f64>, Option<f64>), (total, plan): (f64, f64)| {
            assert!(near(found.0, total) && near(found.1, plan), "{found:?}");
        };
        // 4 ms of executing are 6 : 2, and planning is to that as in the log.
        let [first, second] = with(0);
        same(first, (4.0, 1.0));
        same(second, (5.0, 4.0));
        // Planning that the statistics know is divided as in the log, 2 : 8.
        let [first, second] = with(20);
        same(first, (7.0, 4.0));
        same(second, (17.0, 16.0));
    }

    #[test]
    fn a_log_without_its_sample_rate_shows_in_the_ratio_of_calls() {
        let rows = rows(&format!("{HEADER}10,t,1,select a,1000,4,0,0,app\n")).unwrap();
        let log = vec![statement("select a", 1, 10, 1.0)];
        let (_, ratio) = joined(log, rows, &mut Counted::default());
        assert!(near(ratio, 100.0));
    }

    #[test]
    fn the_role_only_divides_rows_among_statements() {
        // After SET ROLE the log has the login, the statistics the role.
        let (all, counted) = joined_with(
            vec![statement("select a", 1, 30, 3.0)],
            "10,t,1,select a,4,4,0,0,owner\n",
        );
        assert_eq!(
            (all.len(), all[0].weight, all[0].calls),
            (1, Weight::Statistics, 4)
        );
        assert_eq!(counted.only_in_statistics, 0);
        let mut other = statement("select a", 1, 30, 3.0);
        other.0.role = Some("batch".to_owned());
        let (all, _) = joined_with(
            vec![statement("select a", 1, 30, 3.0), other],
            "10,t,1,select a,4,4,0,0,batch\n10,t,1,select a,9,9,0,0,app\n",
        );
        let calls: Vec<u64> = all.iter().map(|statement| statement.calls).collect();
        assert_eq!(calls, [9, 4]);
    }

    #[test]
    fn rows_of_the_parts_of_a_text_are_its_time() {
        let (all, counted) = joined_with(
            vec![
                statement("select 1; select a from b where c = 'x'", 8, 10, 3.0),
                statement("select z", 9, 10, 1.0),
            ],
            "10,t,1,select $1,40,4,0,0,app\n10,t,2,select a from b where c = $1,40,6,0,0,app\n\
             10,t,9,select z,40,4,0,0,app\n",
        );
        assert_eq!((all.len(), counted.only_in_statistics), (2, 0));
        assert_eq!((all[0].calls, all[0].weight), (40, Weight::Statistics));
        assert!(near(all[0].total_ms, 10.0), "{:?}", all[0]);
    }

    #[test]
    fn a_text_that_the_role_may_not_see_is_no_statement() {
        let (all, counted) = joined_with(
            vec![statement("select a", 1, 30, 3.0)],
            "10,t,1,select a,4,4,0,0,app\n11,t,,<insufficient privilege>,900,9000,0,0,app\n",
        );
        assert_eq!(
            (all.len(), counted.hidden, counted.only_in_statistics),
            (1, 1, 0)
        );
    }

    #[test]
    fn rows_of_another_database_weigh_others() {
        let mut here = statement("select a", 1, 30, 3.0);
        here.0.database = Some("shop".to_owned());
        let rows = rows("queryid,query,calls,total_exec_time,datname\n1,select a,4,4,other\n");
        let (all, _) = joined(vec![here], rows.unwrap(), &mut Counted::default());
        assert_eq!((all.len(), all[0].0.weight), (2, Weight::Log));
    }

    #[test]
    fn what_is_no_such_file_is_refused_without_its_texts() {
        assert!(
            rows("a,b\n1,2\n")
                .err()
                .unwrap()
                .contains("no column query")
        );
        assert!(rows(HEADER).err().unwrap().contains("no statement"));
        let problem = rows(&format!("{HEADER}1,t,1,secret,many,1,1,1,app\n"))
            .err()
            .unwrap();
        assert!(
            problem.contains("line 2") && !problem.contains("secret"),
            "{problem}"
        );
        assert!(rows("query,calls,total_time\nselect 1,2,3.5\n").is_ok());
    }
}
