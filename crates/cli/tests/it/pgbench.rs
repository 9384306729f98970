//! `deltabench pgbench`: scripts on real servers, and what is refused.

use crate::lab::{Lab, text};
use deltabench_observe::sees_short_lived;
use serde_json::Value;

/// Shortest useful measurement.
const TINY: [&str; 9] = [
    "--no-count",
    "--visit-seconds",
    "0.05",
    "--slice-ms",
    "5",
    "--huge-pages",
    "off",
    "--blocks",
    "2",
];

/// What people write: a distribution, a condition, a value that comes from the server.
const SCRIPT: &str = "\\set aid random_zipfian(1, 100000 * :scale, 1.1)\n\
                      \\set kind random(1, 4)\n\
                      SELECT bid AS found FROM pgbench_accounts WHERE aid = :aid \\gset\n\
                      \\if :kind = 1\n\
                      UPDATE pgbench_tellers SET tbalance = tbalance + :step WHERE tid = :found;\n\
                      \\else\n\
                      SELECT tbalance FROM pgbench_tellers WHERE tid = :found;\n\
                      \\endif\n";

fn run(lab: &Lab, arguments: &[&str]) -> std::process::Output {
    let arguments: Vec<&str> = ["pgbench"]
        .iter()
        .chain(arguments)
        .chain(&TINY)
        .copied()
        .collect();
    lab.run(&arguments)
}

#[test]
fn scripts_are_measured_on_the_oldest_and_the_newest_server() {
    let lab = Lab::new();
    let script = lab.path().join("my.sql");
    std::fs::write(&script, SCRIPT).unwrap();
    let servers = ["postgres:9.6", "postgres:18"];
    let options = [
        "--each",
        "-b",
        "select-only",
        "-f",
        script.to_str().unwrap(),
        "-D",
        "step=7",
        "-c",
        "1,3",
        "-M",
        "prepared",
        "--no-pilot",
        "--json",
        "-",
    ];
    let arguments: Vec<&str> = servers.iter().chain(&options).copied().collect();
    let output = run(&lab, &arguments);
    let errors = text(&output.stderr);
    // Two blocks are too few for a verdict.
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2, "2 scripts, 2 client counts");
    for cell in cells {
        let base = cell["metrics"]["throughput"]["base"].as_f64();
        assert!(base.unwrap() > 0.0, "{cell}");
    }
}

#[test]
fn a_base_is_measured_alone() {
    let lab = Lab::new();
    let output = run(&lab, &["postgres:18", "-S", "--json", "-"]);
    let errors = text(&output.stderr);
    assert!(
        output
            .status
            .code()
            .is_some_and(|code| code != 2 && code != 5),
        "{errors}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["format"], "deltabench.report");
}

#[test]
fn a_connection_for_each_transaction_costs_what_all_of_its_processes_cost() {
    let lab = Lab::new();
    let servers = ["postgres:9.6", "postgres:18"];
    let options = ["-S", "-C", "-c", "1,2", "--no-pilot", "--json", "-"];
    let output = run(&lab, &[&servers[..], &options[..]].concat());
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let base = |metric: &str| cell["metrics"][metric]["base"].as_f64();
        assert!(base("throughput").unwrap() > 0.0, "{cell}");
        // A look-up costs a server 20 us, a new process hundreds. Without a control group nobody can tell.
        let cpu = base("server_cpu_us_per_op");
        assert_eq!(cpu.is_some(), sees_short_lived(), "{cell}");
        assert!(cpu.is_none_or(|cpu| cpu > 300.0), "{cell}");
    }
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn what_cannot_be_is_refused_by_name_before_anything_starts() {
    let lab = Lab::new();
    let script = lab.path().join("broken.sql");
    std::fs::write(&script, "SELECT 1;\n\\setshell x date\n").unwrap();
    let broken = script.to_str().unwrap();
    let refused: [(&[&str], &str); 14] = [
        (&["-T", "60"], "--visit-seconds 60"),
        (&["-t", "100"], "-t/--transactions"),
        (&["-j", "0"], "1 to 1024"),
        (&["-S", "-C", "-R", "10"], "at a rate"),
        (&["-i"], "--scale"),
        (&["-n"], "restored tables"),
        (&["-b", "tpcc"], "tpcc"),
        (&["-f", "nowhere.sql"], "nowhere.sql"),
        (&["-f", broken], "broken.sql:2"),
        (&["-b", "select-only@0"], "weight"),
        (&["-S", "-s", "0"], "pgbench_accounts"),
        (&["-S", "--max-tries", "0"], "--latency-limit"),
        (&["-S", "-F", "5"], "--fillfactor"),
        (&["-S", "-D", "a b"], "--define"),
    ];
    for (arguments, word) in refused {
        let arguments: Vec<&str> = ["postgres:18"].iter().chain(arguments).copied().collect();
        let output = run(&lab, &arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
    let old = run(&lab, &["postgres:9.6", "-S", "--partitions", "2"]);
    let said = text(&old.stderr);
    assert_eq!(old.status.code(), Some(2), "{said}");
    assert!(said.contains("partition"), "{said}");
}

#[test]
fn the_driver_makes_and_sends_what_pgbench_makes_and_sends() {
    // scripts/test says so in its last lines.
    if std::env::var_os("DELTABENCH_WITHOUT_PGBENCH").is_some() {
        return;
    }
    let lab = Lab::new();
    let clusters = lab.clusters();
    let output = lab.run(&[
        "crosscheck",
        "--pgbench",
        "--rounds",
        "2",
        "--seconds",
        "0.05",
        "--protocol",
        "simple,prepared",
        "--huge-pages",
        "off",
        "--json",
        "-",
        "--cluster-dir",
        clusters.to_str().unwrap(),
    ]);
    let errors = text(&output.stderr);
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(output.status.code(), Some(0), "{found:#}");
    assert_eq!(
        found["rows"].as_array().unwrap().len(),
        6,
        "3 scripts, 2 protocols"
    );
    assert_eq!(found["tables"].as_array().unwrap().len(), 6);
    for row in found["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["same_sql"], &row["same_counts"]),
            (&true.into(), &true.into()),
            "{row:#}"
        );
        let cpu = &row["client_cpu_us_per_op"];
        assert!(cpu["deltabench"].as_f64().unwrap() > 0.0, "{row:#}");
        // Its start-up is subtracted: of turns as short as these nothing may be left.
        assert!(cpu["pgbench"].as_f64().is_some(), "{row:#}");
    }
}
