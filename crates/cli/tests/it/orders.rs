//! `deltabench orders`: order entry on real servers, and what is refused.

use crate::lab::{Lab, text};
use serde_json::Value;

/// Shortest useful measurement.
const TINY: [&str; 7] = [
    "--no-count",
    "--no-pilot",
    "--huge-pages",
    "off",
    "--warehouses",
    "1",
    "--json",
];

fn run(lab: &Lab, arguments: &[&str]) -> std::process::Output {
    let all = ["orders"].iter().chain(arguments).chain(&TINY);
    let arguments: Vec<&str> = all.chain(&["-"]).copied().collect();
    lab.run(&arguments)
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Transactions that each server has done at least.
fn least_done(lab: &Lab) -> f64 {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let each = "SELECT total(operations) AS done FROM slice GROUP BY server";
    let least = format!("SELECT min(done) FROM ({each})");
    store.query_row(&least, [], |row| row.get(0)).unwrap()
}

#[test]
fn the_mix_is_measured_on_the_oldest_and_the_newest_server_and_nothing_is_lost() {
    let lab = Lab::new();
    let asked = ["postgres:9.6", "postgres:18", "--only", "mix", "-c", "2"];
    let short = [
        "--visit-seconds",
        "0.3",
        "--slice-ms",
        "20",
        "--blocks",
        "2",
    ];
    let output = run(&lab, &[asked, short].concat());
    let errors = text(&output.stderr);
    // Two blocks are too few for a verdict. A condition that fails would make the run unfit: code 4.
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let report = report(&output);
    let results = report["orders"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{results:?}");
    for server in results {
        let per_minute = server["new_orders_per_minute"].as_f64();
        assert!(per_minute.unwrap() > 0.0, "{server}");
        let transactions = server["transactions"].as_array().unwrap();
        assert_eq!(transactions.len(), 5, "{server}");
        let share = |number: usize| transactions[number]["share"].as_f64().unwrap();
        // 45 % are new orders, with five standard deviations of chance: a busy machine does few.
        let scatter = (0.45 * 0.55 / least_done(&lab)).sqrt();
        let off = (share(0) - 0.45).abs();
        assert!(off <= 5.0 * scatter, "{off} {scatter} {server}");
        let all: f64 = (0..5).map(share).sum();
        assert!((all - 1.0).abs() < 1e-6, "{server}");
        assert!(
            transactions.iter().all(|one| one["failed"] == 0),
            "{server}"
        );
    }
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn servers_that_work_without_a_break_run_one_at_a_time() {
    let lab = Lab::new();
    // At a pace, because without one a server and its client keep two cores busy all the time.
    let asked = ["postgres:18", "--only", "mix", "--pace", "20", "-c", "10"];
    let passes = ["--sustained", "10s", "--blocks", "1", "--slice-ms", "500"];
    let output = run(&lab, &[&asked[..], &passes].concat());
    let errors = text(&output.stderr);
    let report = report(&output);
    let [server] = report["orders"].as_array().unwrap().as_slice() else {
        panic!("{report}")
    };
    assert!(server["tps"].as_f64().unwrap() > 0.0, "{errors}");
    let notes = text(&lab.run(&["notes", "last"]).stdout);
    assert!(notes.contains("without a break"), "{notes}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn a_budget_does_not_shorten_passes_whose_length_was_chosen() {
    let lab = Lab::new();
    let asked = [
        "orders",
        "postgres:18",
        "--sustained",
        "5m",
        "--only",
        "mix",
    ];
    let output = lab.run(&[&asked[..], &["--budget", "2m", "--dry-run"]].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("2 min is too short for verdicts") || said.contains("120 s"),
        "{said}"
    );
    assert!(!said.contains("instead of"), "{said}");
}

#[test]
fn what_means_nothing_is_refused_before_anything_starts() {
    let lab = Lab::new();
    let refused = |arguments: &[&str]| {
        let all: Vec<&str> = ["orders", "postgres:18"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let output = lab.run(&all);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(refused(&["-c", "11", "--warehouses", "1"]).contains("--warehouses 2 or more"));
    assert!(refused(&["--warehouses", "0"]).contains("between 1 and"));
    assert!(refused(&["--warehouses", "lots"]).contains("half-memory"));
    assert!(refused(&["--only", "new-oder"]).contains("did you mean `new-order`?"));
    assert!(refused(&["--sustained", "1s"]).contains("too short"));
    assert!(refused(&["--sustained", "30s", "--quick"]).contains("leave out --quick"));
    assert!(refused(&["--sustained", "30s", "--only", "delivery"]).contains("use up the orders"));
    assert!(refused(&["--pace", "1"]).contains("--only mix"));
    let mix = ["--only", "mix", "--pace", "1"];
    let several = [mix.as_slice(), &["-c", "1,2"]].concat();
    assert!(refused(&several).contains("one number of clients"));
    assert!(refused(&mix).contains("are needed"));
    assert!(refused(&["--order", "published"]).contains("--order"));
}
