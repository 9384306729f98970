//! `deltabench replay` of a capture without values, on real servers.

use crate::lab::{Lab, text};
use crate::replaying::{answer, shop};
use serde_json::Value;

/// `pg_stat_statements` of the shop; the last column is what is expected of the statement.
const STATISTICS: [(&str, f64); 9] = [
    (
        "SELECT total FROM orders WHERE customer_id = $1 AND at >= $2 ORDER BY id LIMIT $3",
        2.0,
    ),
    (
        "SELECT name FROM customers WHERE id IN ($1, $2) ORDER BY id",
        2.0,
    ),
    (
        "SELECT count(*) FROM orders WHERE id BETWEEN $1 AND $2",
        1.0,
    ),
    (
        "SELECT id FROM customers WHERE name LIKE $1 AND lower(city) = $2",
        9.0,
    ),
    (
        "SELECT id FROM orders WHERE at > now() - interval $1 AND tags @> array[$2]",
        1.0,
    ),
    ("SELECT status FROM orders WHERE id = $1 FOR UPDATE", 1.0),
    ("SELECT count(*) FROM orders", 1.0),
    ("SELECT date_trunc($1, at) FROM orders WHERE id = $2", 1.0),
    ("DELETE FROM orders WHERE id = $1", 1.0),
];

/// The capture of it in a lab.
fn capture(lab: &Lab) {
    let row =
        |(query, rows): &(&str, f64)| format!("shop_owner,\"{query}\",100,50,{}\n", rows * 100.0);
    let rows: String = STATISTICS.iter().map(row).collect();
    let csv = format!("rolname,query,calls,total_exec_time,rows\n{rows}");
    std::fs::write(lab.path().join("statements.csv"), csv).unwrap();
    let made = lab.run(&[
        "capture",
        "--statements",
        "statements.csv",
        "--search-path",
        "shop, public",
        "--out",
        "shop.capture",
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains("makes them up for reads"));
}

fn find<'a>(answer: &'a Value, begins: &str) -> &'a Value {
    let statements = answer["statements"].as_array().unwrap();
    let is_it = |one: &&Value| one["text"].as_str().unwrap().starts_with(begins);
    statements
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{begins}: {answer:#}"))
}

#[test]
fn values_are_made_up_for_reads_that_have_none_and_stay_secret() {
    let lab = Lab::new();
    shop(&lab);
    capture(&lab);
    let arguments =
        "replay shop.capture postgres:17 postgres:18 --data shop.dump --plans-only --draws 1";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let refused = lab.run(&[arguments.as_slice(), &["--values", "captured"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("leave out --values captured"));
    let replayed = lab.run(&[arguments.as_slice(), &["--json", "-"]].concat());
    let answer = answer(&replayed);
    let statements = answer["statements"].as_array().unwrap();
    assert_eq!(statements.len(), 7, "{answer:#}");
    for statement in statements {
        assert_eq!(statement["verdicts"][0]["errors"], "none", "{statement:#}");
    }
    let found = |begins: &str| {
        let rows = &find(&answer, begins)["made_up"]["base_rows"];
        rows.as_f64().unwrap_or_else(|| panic!("{begins}: {rows}"))
    };
    // Rows of one order: its customer has it, and some more.
    assert!((1.0..=10.0).contains(&found("select total")));
    assert!((1.0..=2.0).contains(&found("select name")));
    assert!(found("select id from customers") > 1.0);
    assert!(found("select status") > 0.9);
    let left_out = answer["left_out"].to_string();
    assert!(
        left_out.contains("type text is compared with no column"),
        "{left_out}"
    );
    assert!(
        left_out.contains("none are made up for writes"),
        "{left_out}"
    );
    // Each name of a customer has it.
    for shown in [text(&replayed.stdout), text(&replayed.stderr)] {
        assert!(!shown.contains("Neill"), "{shown}");
    }
}

#[test]
fn a_replay_that_goes_on_makes_up_the_values_that_it_began_with() {
    let lab = Lab::new();
    shop(&lab);
    capture(&lab);
    let arguments = "replay shop.capture postgres:18 postgres:18 --data shop.dump --draws 1 --same-target \
                     --blocks 2 --budget 8s";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let mut child = lab.start(&arguments);
    lab.wait_for(&mut child, "block 1/2");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let whole = lab.run(&["resume", "last", "--json", "-"]);
    assert_eq!(
        answer(&whole)["times"]["blocks"],
        2,
        "{}",
        text(&whole.stderr)
    );
}
