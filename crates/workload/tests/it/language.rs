//! The language as users write it: mixes, shared parameters, sequences, tables of their own.

use crate::operation;
use deltabench_model::plan::{DataSize, Group};
use deltabench_workload::executable::{Draws, TableChoice, Value};
use deltabench_workload::{Chore, Definition};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SIZE: DataSize = DataSize {
    tables: 2,
    rows: 1000,
};

const HEAD: &str = r#"format = "deltabench.workload"
version = 1
name = "mine"
group = "write"
writes = true
description = "d"
source = "s"
"#;

fn read(body: &str) -> Definition {
    Definition::parse("mine.toml", &format!("{HEAD}{body}")).unwrap()
}

fn refused(body: &str) -> String {
    let text = format!("{HEAD}{body}");
    Definition::parse("mine.toml", &text)
        .unwrap_err()
        .to_string()
}

const MIX: &str = r#"
[parameter.id]
kind = "uniform"
low = 1
high = "rows"

[[script]]
name = "look"
weight = 3
[[script.step]]
sql = "SELECT c FROM {table} WHERE id=:id"

[[script]]
name = "change"
weight = 1
[[script.step]]
sql = "BEGIN"
[[script.step]]
sql = "UPDATE {table} SET k=k+1 WHERE id=:id"
[[script.step]]
sql = "UPDATE {table} SET k=k-1 WHERE id=:id"
table = "keep"
[[script.step]]
sql = "COMMIT"
"#;

#[test]
fn scripts_are_drawn_by_weight() {
    let definition = read(MIX);
    // (3 x 1 + 1 x 4) / 4 = 1.75.
    assert_eq!(definition.statements_per_operation(), 2);
    let rate = definition.published_rate(&SIZE, 1);
    assert!((rate.per_operation - 1.75).abs() < 1e-12);
    let executable = definition.compile(&SIZE).unwrap();
    assert!((executable.statements_per_operation() - 1.75).abs() < 1e-12);
    let mut draws = Draws::new(1, 0);
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    for _ in 0..40_000 {
        let sent = operation(&executable, &mut draws);
        *counts.entry(sent.len()).or_default() += 1;
        assert!(sent.len() == 1 || sent[1].table() == sent[2].table());
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [1, 4]);
    assert!((29_600..30_400).contains(&counts[&1]), "{counts:?}");
    let samples = definition.sample(&SIZE, 1).unwrap();
    let shares: Vec<(Option<&str>, f64, usize)> = samples
        .iter()
        .map(|s| (s.script.as_deref(), s.share, s.statements.len()))
        .collect();
    assert_eq!(shares, [(Some("look"), 0.75, 1), (Some("change"), 0.25, 4)]);
}

#[test]
fn mistakes_in_a_mix_are_named() {
    for (body, what) in [
        (
            MIX.replace("weight = 1\n", ""),
            "mine.toml:20: script 2: key `weight` is missing",
        ),
        (
            MIX.replace("weight = 1\n", "weight = 0\n"),
            "script 2: `weight` is 0, but must be 1",
        ),
        (
            MIX.replace("weight = 1\n", "weihgt = 1\n"),
            "did you mean `weight`?",
        ),
        (
            MIX.replace("COMMIT", "SELECT 1"),
            "the transaction of script 2, step 1 is not closed",
        ),
        (
            MIX.replace("table = \"keep\"", "table = \"tern\""),
            "script 2, step 3: unknown table",
        ),
        (
            format!("{MIX}\n[[step]]\nsql = \"SELECT 1\"\n"),
            "a [[step]] that belongs to none",
        ),
        (
            format!("{MIX}\n[[script]]\nweight = 1\n"),
            "script 3: key `step` is missing",
        ),
        (
            MIX.replace(
                "weight = 1\n[[script.step]]\nsql = \"BEGIN\"",
                "weight = 1\n[[script.step]]\nsql = \"BEGIN\"\ntable = \"keep\"",
            ),
            "but the statement has no {table}",
        ),
        (
            MIX.replace(
                "sql = \"UPDATE {table} SET k=k+1 WHERE id=:id\"",
                "sql = \"UPDATE {table} SET k=k+1 WHERE id=:id\"\ntable = \"keep\"",
            ),
            "script 2, step 2: no table to keep",
        ),
    ] {
        let problem = refused(&body);
        assert!(problem.contains(what), "wanted {what}\n{problem}");
    }
}

#[test]
fn a_parameter_drawn_once_is_the_same_in_all_steps_of_an_operation() {
    let executable = read(
        r#"
[parameter.id]
kind = "zipf"
low = 11
high = "rows + 10"
exponent = 1
once = true
[parameter.ids]
kind = "uniform"
low = 1
high = "rows"
count = 5
once = true
[parameter.word]
kind = "letters"
length = 9
once = true
[[step]]
sql = "SELECT :id, :word FROM {table} WHERE id IN (:ids)"
[[step]]
sql = "SELECT :word, :id FROM {table} WHERE id IN (:ids)"
"#,
    )
    .compile(&SIZE)
    .unwrap();
    let mut draws = Draws::new(4, 0);
    let mut words = Vec::new();
    for _ in 0..100 {
        let sent = operation(&executable, &mut draws);
        let (first, second) = (&sent[0], &sent[1]);
        assert_eq!(
            (first.numbers[0], &first.texts[1]),
            (second.numbers[1], &second.texts[0])
        );
        assert_eq!(first.numbers[2..], second.numbers[2..]);
        assert!((11..=1010).contains(&first.numbers[0]));
        assert!(first.texts[1].iter().all(u8::is_ascii_lowercase));
        words.push(first.texts[1].clone());
    }
    words.sort();
    words.dedup();
    assert_eq!(words.len(), 100, "every operation draws anew");
}

#[test]
fn sequences_ascend_or_are_shuffled_and_end_or_start_again() {
    let body = |more: &str| {
        format!(
            "[parameter.id]\nkind = \"sequence\"\nlow = \"rows + 1\"\n{more}\n\
             [[step]]\nsql = \"DELETE FROM {{table}} WHERE id=:id\"\n"
        )
    };
    let drawn = |more: &str| -> Vec<i64> {
        let executable = read(&body(more)).compile(&SIZE).unwrap();
        let mut draws = Draws::new(1, 0);
        (0..8)
            .map(|_| operation(&executable, &mut draws)[0].numbers[0])
            .collect()
    };
    let most = |more: &str| read(&body(more)).compile(&SIZE).unwrap().operations_max;
    assert_eq!(drawn(""), (1001..=1008).collect::<Vec<_>>());
    let four = "high = \"rows + 4\"";
    let again = format!("{four}\nat_end = \"restart\"");
    assert_eq!(
        drawn(&again),
        [1001, 1002, 1003, 1004, 1001, 1002, 1003, 1004]
    );
    assert_eq!((most(four), most(&again)), (Some(4), None));
    let mut shuffled = drawn("high = \"rows + 8\"\norder = \"shuffled\"");
    assert_ne!(shuffled, (1001..=1008).collect::<Vec<_>>());
    shuffled.sort_unstable();
    assert_eq!(shuffled, (1001..=1008).collect::<Vec<_>>());
    assert!(refused(&body("order = \"shuffled\"")).contains("a shuffled sequence needs `high`"));
    assert!(refused(&body("order = \"shufled\"")).contains("did you mean \"shuffled\"?"));
    assert!(refused(&body("once = true")).contains("unknown key `once`"));
    let repeated = body("").replace("[[step]]", "[[step]]\nrepeat = 2");
    assert!(refused(&repeated).contains("sequence `id` has one value for each operation"));
    let empty = read(&body("high = 5")).compile(&SIZE).unwrap_err();
    assert!(empty.error.contains("low 1001 is above high 5"), "{empty}");
}

const OWN: &str = r#"
[[table]]
name = "accounts"
create = "CREATE TABLE {table} (id bigint NOT NULL, balance bigint NOT NULL)"
rows = "rows * tables"
fill = "INSERT INTO {table} SELECT i, hashint8(i) FROM generate_series(1, {rows}) AS i"
indexes = ["ALTER TABLE {table} ADD PRIMARY KEY (id)"]
row_bytes = 70

[parameter.id]
kind = "uniform"
low = 1
high = "rows * tables"

[[step]]
sql = "UPDATE accounts SET balance=balance+1 WHERE id=:id"
"#;

#[test]
fn tables_of_the_users_own_are_made_and_filled() {
    let definition = read(OWN);
    let [table] = definition.tables().unwrap() else {
        panic!("one table");
    };
    assert_eq!(
        table.create_sql("a\"b"),
        "CREATE TABLE \"a\"\"b\".accounts (id bigint NOT NULL, balance bigint NOT NULL)"
    );
    assert_eq!(table.rows(&SIZE), Ok(2000));
    assert_eq!(
        table.fill_sql("s", &SIZE).unwrap(),
        "INSERT INTO \"s\".accounts SELECT i, hashint8(i) FROM generate_series(1, 2000) AS i"
    );
    assert_eq!(
        table.index_sql("s"),
        ["ALTER TABLE \"s\".accounts ADD PRIMARY KEY (id)"]
    );
    assert_eq!(
        table.settle_sql("s"),
        ["VACUUM (FREEZE, ANALYZE) \"s\".accounts"]
    );
    assert_eq!(table.estimate_bytes(&SIZE), Ok(140_000));
    assert_eq!(definition.table_names(&SIZE), ["accounts"]);
    let executable = definition.compile(&SIZE).unwrap();
    assert_eq!(executable.statements.len(), 1);
    assert_eq!(executable.steps[0].table, TableChoice::Keep);
    assert_eq!(crate::definition("scan").tables(), None);
    assert_eq!(
        crate::definition("scan").table_names(&SIZE),
        ["sbtest1", "sbtest2"]
    );
}

#[test]
fn mistakes_in_tables_are_named() {
    for (from, to, what) in [
        ("fill = \"", "fil = \"", "did you mean `fill`?"),
        (
            "hashint8(i)",
            "random()*9",
            "mine.toml:13: table 1: `fill` has random numbers of the server",
        ),
        ("1, {rows}", "1, {row}", "did you mean `{rows}`?"),
        ("1, {rows}", "1, 100", "`fill` without {rows}"),
        (
            "CREATE TABLE {table}",
            "CREATE TABLE accounts",
            "mine.toml:11: table 1: SQL without {table}",
        ),
        (
            "UPDATE accounts",
            "UPDATE {table}",
            "{table} in SQL, but the file has its own tables",
        ),
        (
            "name = \"accounts\"",
            "name = \"Accounts\"",
            "is not lower-case letters",
        ),
        (
            "rows = \"rows * tables\"",
            "rows = \"row\"",
            "did you mean `rows`?",
        ),
        (
            "[\"ALTER TABLE {table}",
            "[\"ALTER TABLE {tabel}",
            "`{tabel}` in SQL",
        ),
    ] {
        let problem = refused(&OWN.replacen(from, to, 1));
        assert!(problem.contains(what), "wanted {what}\n{problem}");
    }
    let none = read(&OWN.replacen("\"rows * tables\"", "\"rows - 1000\"", 1));
    let problem = none.tables().unwrap()[0].rows(&SIZE).unwrap_err();
    assert!(
        problem
            .error
            .contains("mine.toml:12: table `accounts`: 0 rows"),
        "{problem}"
    );
}

#[test]
fn chores_before_and_after_a_visit_are_data() {
    let definition = read(
        r#"
slice_operations = 500
[[before]]
run = "vacuum"
[[before]]
sql = "SELECT pg_stat_reset()"
[[after]]
run = "wait"
seconds = 5
[[after]]
run = "settle"
[[step]]
sql = "DELETE FROM {table}"
"#,
    );
    assert_eq!(
        definition.before(),
        [Chore::Vacuum, Chore::Sql("SELECT pg_stat_reset()".into())]
    );
    assert_eq!(definition.after(), [Chore::Wait(5), Chore::Settle]);
    assert_eq!(
        definition.compile(&SIZE).unwrap().slice_operations,
        Some(500)
    );
    assert_eq!(definition.group, Group::Write);
    let with = |chore: &str| {
        refused(&format!(
            "[[before]]\n{chore}\n[[step]]\nsql = \"SELECT 1\"\n"
        ))
    };
    for (chore, what) in [
        (
            "run = \"vacum\"",
            "mine.toml:9: before 1: unknown run \"vacum\"",
        ),
        ("run = \"vacum\"", "did you mean \"vacuum\"?"),
        ("run = \"wait\"", "key `seconds` is missing"),
        (
            "run = \"vacuum\"\nseconds = 3",
            "`seconds` belongs to run = \"wait\"",
        ),
        (
            "run = \"vacuum\"\nsql = \"SELECT 1\"",
            "needs `run` or `sql`",
        ),
        ("seconds = 3", "needs `run` or `sql`"),
        ("sql = \"SELECT 1; SELECT 2\"", "`;` in SQL"),
    ] {
        let problem = with(chore);
        assert!(problem.contains(what), "wanted {what}\n{problem}");
    }
}

#[test]
fn a_zipf_parameter_has_the_exponent_of_sysbench_unless_it_names_one() {
    let body = |more: &str| {
        format!(
            "[parameter.id]\nkind = \"zipf\"\nlow = 1\nhigh = \"rows\"\n{more}\n\
             [[step]]\nsql = \"DELETE FROM {{table}} WHERE id=:id\"\n"
        )
    };
    let value = |more: &str| read(&body(more)).compile(&SIZE).unwrap().steps[0].values[0].clone();
    assert_eq!(value(""), value("exponent = 0.8"));
    assert_ne!(value(""), value("exponent = 1.2"));
    assert!(matches!(
        value("exponent = 2"),
        Value::Zipf {
            low: 1,
            count: 1,
            ..
        }
    ));
    assert!(refused(&body("exponent = 0")).contains("must be above 0 and at most 10"));
    assert!(refused(&body("exponent = \"1\"")).contains("`exponent` must be a number"));
    assert!(refused(&body("exponent = nan")).contains("must be above 0"));
}

#[test]
fn pre_is_only_for_tests_that_read() {
    let problem = refused("pre = true\n[[step]]\nsql = \"SELECT 1\"\n");
    assert!(
        problem.contains("mine.toml:8: the workload: `pre` is for tests that only read"),
        "{problem}"
    );
}

proptest! {
    /// Lines of good files in any order, cut and doubled: read or refused with a place, never worse.
    #[test]
    fn whatever_is_written_is_read_or_refused_with_its_place(
        picks in proptest::collection::vec((0_usize..60, 0_usize..80), 0..40),
    ) {
        let all: Vec<&str> = MIX.lines().chain(OWN.lines()).collect();
        let mut text = HEAD.to_owned();
        for (line, cut) in picks {
            let line = all[line % all.len()];
            let kept: String = line.chars().take(if cut > 20 { 200 } else { cut }).collect();
            text.push_str(&kept);
            text.push('\n');
        }
        match Definition::parse("any.toml", &text) {
            Ok(definition) => { let _ = definition.compile(&SIZE); }
            Err(problem) => prop_assert!(problem.error.starts_with("any.toml:"), "{}", problem),
        }
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text in "\\PC{0,200}") {
        prop_assert!(Definition::parse("any.toml", &text).is_err());
    }
}
