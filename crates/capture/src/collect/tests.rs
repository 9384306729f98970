//! Entries of a log become statements.

use super::*;
use crate::statement::Weight;

fn collector(rate: Option<f64>) -> Collector {
    Collector::new(64, 1, None, Sampling::new(rate, None))
}

fn entry(message: &str) -> Entry {
    Entry {
        time: "2026-11-02 10:00:00.000 UTC".to_owned(),
        user: Some("app".to_owned()),
        database: Some("shop".to_owned()),
        session: "1.2".to_owned(),
        severity: "LOG".to_owned(),
        message: message.to_owned(),
        ..Entry::default()
    }
}

fn collected(entries: &[Entry], rate: Option<f64>) -> (Vec<Statement>, Counted) {
    let mut collector = collector(rate);
    for entry in entries {
        collector.add(entry);
    }
    let statements = collector
        .finish()
        .into_iter()
        .map(|(statement, _)| statement);
    (statements.collect(), collector.counted)
}

fn tagged(message: &str, tag: &str) -> Entry {
    Entry {
        tag: Some(tag.to_owned()),
        ..entry(message)
    }
}

fn with_values(message: &str, detail: &str) -> Entry {
    Entry {
        detail: Some(format!("Parameters: {detail}")),
        ..entry(message)
    }
}

fn near(found: Option<f64>, wanted: f64) -> bool {
    found.is_some_and(|found| (found - wanted).abs() < 1e-9)
}

#[test]
fn executions_with_one_text_are_one_statement_with_planning_and_tuples() {
    let text = "execute s1: select * from t where a = $1";
    let (statements, counted) = collected(
        &[
            entry("duration: 0.5 ms  parse s1: select * from t where a = $1"),
            with_values(
                "duration: 1.5 ms  bind s1: select * from t where a = $1",
                "$1 = 'x'",
            ),
            with_values(&format!("duration: 2 ms  {text}"), "$1 = 'x'"),
            with_values(&format!("duration: 4 ms  {text}"), "$1 = NULL"),
        ],
        None,
    );
    let [statement] = statements.as_slice() else {
        panic!("{statements:?}");
    };
    assert_eq!((statement.calls, counted.executions), (2, 2));
    assert!(
        near(statement.total_ms, 8.0) && near(statement.plan_ms, 2.0),
        "{statement:?}"
    );
    assert_eq!(statement.protocol, Protocol::Prepared);
    let values: Vec<_> = statement
        .tuples
        .iter()
        .map(|tuple| tuple.values.clone())
        .collect();
    assert_eq!(values, [vec![None], vec![Some("x".to_owned())]]);
    assert_eq!(statement.text, "select * from t where a = $1");
}

#[test]
fn durations_follow_texts_where_both_are_logged_apart() {
    let (statements, counted) = collected(
        &[
            tagged("duration: 0.25 ms", "PARSE"),
            tagged("duration: 0.75 ms", "BIND"),
            tagged("execute <unnamed>: select 1", "SELECT"),
            tagged("duration: 3 ms", "SELECT"),
            tagged("duration: 9 ms", "idle"),
            tagged("statement: update t set a = 1", "UPDATE"),
            tagged("statement: select 2", "SELECT"),
        ],
        None,
    );
    assert_eq!(statements.len(), 3);
    assert!(near(statements[0].total_ms, 4.0) && near(statements[0].plan_ms, 1.0));
    assert_eq!(statements[1].total_ms, None);
    assert_eq!((counted.stray_durations, counted.without_duration), (1, 2));
}

#[test]
fn in_text_logs_a_duration_alone_is_planning_only_before_an_extended_statement() {
    let (statements, counted) = collected(
        &[
            entry("duration: 0.5 ms"),
            entry("execute s1: select 1"),
            entry("duration: 2 ms"),
            entry("duration: 8 ms"),
            entry("statement: select 2, 3"),
            entry("duration: 1 ms"),
            entry("duration: 7 ms"),
        ],
        None,
    );
    assert_eq!(counted.stray_durations, 2);
    assert!(near(statements[0].total_ms, 2.5) && near(statements[1].total_ms, 1.0));
}

#[test]
fn a_sampled_log_counts_what_it_leaves_out() {
    let (statements, _) = collected(&[entry("duration: 2 ms  statement: select 1")], Some(0.01));
    assert_eq!(statements[0].calls, 100);
    assert!(near(statements[0].total_ms, 200.0));
    // All texts are logged, but few durations.
    let mut entries = vec![entry("statement: select 1"); 9];
    entries.push(entry("duration: 2 ms"));
    let (statements, _) = collected(&entries, Some(0.01));
    assert_eq!(statements[0].calls, 9);
    assert!(near(statements[0].total_ms, 18.0));
}

#[test]
fn durations_of_slow_executions_only_say_nothing_of_the_others() {
    let mut entries = vec![entry("statement: select 1"); 1000];
    entries.push(entry("duration: 1500 ms"));
    entries.push(entry("duration: 1 ms  statement: select a from b"));
    let (statements, _) = collected(&entries, None);
    assert_eq!(
        (statements[0].calls, statements[0].weight),
        (1000, Weight::AtLeast)
    );
    assert!(near(statements[0].total_ms, 1500.0), "{statements:?}");
    assert_eq!(statements[1].weight, Weight::Log);
    // A rate that does not explain what is missing.
    let (statements, _) = collected(&entries, Some(0.5));
    assert_eq!(statements[0].weight, Weight::AtLeast);
    // One of many was lost.
    let mut entries: Vec<Entry> = (0..9)
        .flat_map(|_| [entry("statement: select 1"), entry("duration: 2 ms")])
        .collect();
    entries.push(entry("statement: select 1"));
    let (statements, _) = collected(&entries, None);
    assert!(near(statements[0].total_ms, 20.0), "{statements:?}");
    assert_eq!(statements[0].weight, Weight::Log);
}

#[test]
fn planning_of_executions_without_a_text_is_not_that_of_others() {
    // log_duration with log_statement = mod: reads have durations only.
    let mut read = vec![
        tagged("duration: 5 ms", "PARSE"),
        tagged("duration: 5 ms", "BIND"),
        tagged("duration: 9 ms", "SELECT"),
    ];
    let write = [
        tagged("duration: 1 ms", "PARSE"),
        tagged("duration: 1 ms", "BIND"),
        tagged("execute <unnamed>: update t set a = 1", "UPDATE"),
        tagged("duration: 2 ms", "UPDATE"),
    ];
    read.extend(write);
    let (statements, counted) = collected(&read, None);
    assert!(near(statements[0].plan_ms, 2.0), "{statements:?}");
    assert_eq!(counted.stray_durations, 3);
    // Text logs do not say which is which.
    for entry in &mut read {
        entry.tag = None;
    }
    let (statements, counted) = collected(&read, None);
    assert_eq!(statements[0].plan_ms, None);
    assert_eq!(counted.stray_durations, 5);
    // A statement that was long enough for its text takes no planning of others.
    let (statements, _) = collected(
        &[
            entry("duration: 5 ms"),
            entry("duration: 300 ms  execute <unnamed>: select 1"),
            entry("execute <unnamed>: select 1"),
            entry("duration: 1 ms"),
        ],
        Some(0.5),
    );
    assert_eq!(statements[0].plan_ms, None);
}

#[test]
fn a_process_number_that_comes_again_is_another_session() {
    let set = entry("duration: 1 ms  statement: set search_path = a");
    let select = entry("duration: 1 ms  statement: select * from t");
    let path = |between: Entry| {
        let mut after = select.clone();
        after.user.clone_from(&between.user);
        let (statements, _) = collected(&[set.clone(), between, after], None);
        let found = statements
            .into_iter()
            .find(|s| s.normalised == "select * from t");
        found.unwrap().search_path
    };
    assert_eq!(path(entry("checkpoint")).as_deref(), Some("a"));
    let mut other = entry("checkpoint");
    other.user = Some("batch".to_owned());
    let ends = [
        "starting PostgreSQL 18.1 on x",
        "database system is ready to accept connections",
        "connection received: host=[local]",
        "connection authorized: user=app",
        "disconnection: session time: 0:00:01",
    ];
    for between in ends.into_iter().map(entry).chain([other]) {
        assert_eq!(path(between.clone()), None, "{}", between.message);
    }
}

#[test]
fn the_role_is_that_of_set_role() {
    let (statements, _) = collected(
        &[
            entry("duration: 1 ms  statement: set role owner"),
            entry("duration: 1 ms  statement: select * from t"),
        ],
        None,
    );
    let found = statements
        .iter()
        .find(|s| s.normalised == "select * from t");
    assert_eq!(found.unwrap().role.as_deref(), Some("owner"));
}

#[test]
fn several_statements_have_no_identifier_of_their_own() {
    let mut several = entry("duration: 1 ms  statement: select 1; select a from b");
    several.query_id = Some(7);
    let mut one = entry("duration: 1 ms  statement: select a from b");
    one.query_id = Some(7);
    let (statements, _) = collected(&[several, one], None);
    let ids: Vec<_> = statements
        .iter()
        .map(|s| (s.normalised.len(), s.query_ids.len()))
        .collect();
    assert!(ids.contains(&("select a from b".len(), 1)), "{ids:?}");
    assert_eq!(ids.iter().map(|(_, ids)| ids).sum::<usize>(), 1);
}

#[test]
fn errors_of_another_language_are_known_by_their_state() {
    let mut failed = entry("Division durch Null");
    failed.severity = "FEHLER".to_owned();
    failed.state = Some("22012".to_owned());
    failed.statement = Some("select 1/0".to_owned());
    let mut notice = entry("duration: 1 ms  statement: select 7");
    notice.severity = "NOTICE".to_owned();
    let entries = [
        entry("duration: 1 ms  statement: select 4/2"),
        failed,
        notice,
        entry("продолжительность: 1.5 мс  оператор: select 1"),
    ];
    let (statements, counted) = collected(&entries, None);
    assert_eq!(
        (statements.len(), counted.errors, counted.foreign),
        (1, 1, 1)
    );
    assert_eq!(statements[0].errors, 1);
}

#[test]
fn a_value_that_ends_in_dots_is_whole_if_others_are_longer() {
    let text = "duration: 1 ms  execute <unnamed>: select $1::text";
    let cut = |entries: &[Entry]| collected(entries, None).0[0].unusable.cut;
    let dotted = with_values(text, "$1 = 'and so on...'");
    assert_eq!(cut(std::slice::from_ref(&dotted)), 1);
    let longer = with_values(text, "$1 = 'more bytes than that'");
    assert_eq!(cut(&[longer, dotted.clone()]), 0);
    assert_eq!(cut(&[with_values(text, "$1 = 'few'"), dotted.clone()]), 1);
    assert_eq!(
        cut(&[entry("starting PostgreSQL 12.4 on x"), dotted.clone()]),
        0
    );
    assert_eq!(cut(&[entry("starting PostgreSQL 13.4 on x"), dotted]), 1);
}

#[test]
fn a_log_of_slow_executions_is_known_by_its_shortest_one() {
    let slow = |entries: &[Entry]| {
        let mut collector = collector(None);
        entries.iter().for_each(|entry| collector.add(entry));
        collector.finish();
        collector.slow_above_ms()
    };
    let mut entries = vec![
        entry("duration: 300 ms  statement: select 1"),
        entry("duration: 250.5 ms  statement: select 1"),
    ];
    assert!(near(slow(&entries), 250.5));
    entries.push(entry("statement: select 2"));
    assert_eq!(slow(&entries), None);
    entries.pop();
    entries.push(entry("duration: 0.2 ms  statement: select 1"));
    assert_eq!(slow(&entries), None);
}

#[test]
fn what_cannot_be_executed_again_is_counted() {
    let text = "duration: 1 ms  execute <unnamed>: select $1::text";
    let mut lossy = entry("duration: 1 ms  statement: select 'x'");
    lossy.is_lossy = true;
    let (statements, counted) = collected(
        &[
            with_values(text, "$1 = 'abc...'"),
            with_values(text, "$1 = 'abc"),
            entry(text),
            entry("duration: 1 ms  statement: select 'cut"),
            // standard_conforming_strings = off: a replay would send something else.
            entry(r"duration: 1 ms  statement: select 'it\'s', 'that\'s'"),
            lossy,
        ],
        None,
    );
    let found = |protocol| {
        statements
            .iter()
            .find(|s| s.protocol == protocol)
            .unwrap()
            .unusable
    };
    let extended = found(Protocol::Extended);
    assert_eq!(
        (extended.cut, extended.broken, extended.without_values),
        (1, 1, 1)
    );
    let simple = statements
        .iter()
        .filter(|statement| statement.protocol == Protocol::Simple);
    assert_eq!(
        simple
            .map(|statement| statement.unusable.broken)
            .sum::<u64>(),
        3
    );
    assert_eq!((counted.executions, counted.not_utf8), (6, 1));
    assert!(
        statements
            .iter()
            .all(|statement| statement.obstacle().is_some())
    );
}

#[test]
fn a_sample_shows_because_bindings_are_missing() {
    let mut whole = collector(None);
    let mut sample = collector(None);
    for number in 0..400 {
        let bind = entry("duration: 1 ms  bind s1: select 1");
        let execute = entry("duration: 1 ms  execute s1: select 1");
        whole.add(&bind);
        whole.add(&execute);
        for (at, entry) in [bind, execute].iter().enumerate() {
            if (number + at * 3) % 5 == 0 {
                sample.add(entry);
            }
        }
    }
    assert!(near(whole.bound_share(), 1.0));
    assert!(sample.bound_share().is_none(), "80 are too few");
    for _ in 0..100 {
        sample.add(&entry("duration: 1 ms  execute s1: select 1"));
    }
    assert!(sample.bound_share() < Some(0.5));
}

#[test]
fn errors_are_counted_and_end_what_began() {
    let mut failed = entry("division by zero");
    failed.severity = "ERROR".to_owned();
    failed.statement = Some("select 1/0".to_owned());
    let (statements, counted) = collected(
        &[
            entry("statement: select 1/0"),
            failed,
            entry("duration: 1 ms  statement: select 4/2"),
        ],
        None,
    );
    assert_eq!(statements.len(), 1);
    assert_eq!(
        (statements[0].calls, statements[0].errors, counted.errors),
        (1, 1, 1)
    );
}

#[test]
fn sessions_have_their_own_path_and_temporary_tables() {
    let mut other = entry("duration: 1 ms  statement: select * from scratch");
    other.session = "3.4".to_owned();
    let (statements, _) = collected(
        &[
            entry("duration: 1 ms  statement: set search_path = a"),
            entry("duration: 1 ms  statement: create temp table scratch (a int)"),
            entry("duration: 1 ms  statement: select * from scratch"),
            other,
        ],
        None,
    );
    let paths: Vec<_> = statements
        .iter()
        .filter(|statement| statement.normalised == "select * from scratch")
        .map(|statement| (statement.kind.word(), statement.search_path.as_deref()))
        .collect();
    assert!(paths.contains(&("temporary", Some("a"))), "{paths:?}");
    assert!(paths.contains(&("read", None)), "{paths:?}");
}

#[test]
fn rows_that_are_fetched_later_are_time_and_no_execution() {
    let (statements, counted) = collected(
        &[
            entry("duration: 1 ms  execute <unnamed>/C_1: select 1"),
            entry("duration: 2 ms  execute fetch from <unnamed>/C_1: select 1"),
            entry("execute fetch from <unnamed>/C_1: select 1"),
            entry("duration: 3 ms"),
        ],
        None,
    );
    assert_eq!(
        (statements.len(), statements[0].calls, counted.executions),
        (1, 1, 1)
    );
    assert!(near(statements[0].total_ms, 6.0), "{statements:?}");
}
