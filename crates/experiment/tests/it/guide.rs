//! The guide says what is read.

use crate::{HEAD, refused};
use deltabench_experiment::{Experiment, known_keys};

fn guide() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/experiments.md"
    );
    std::fs::read_to_string(path).unwrap()
}

/// All blocks of that language in the guide.
fn quoted(language: &str) -> Vec<String> {
    let guide = guide();
    let fence = format!("```{language}\n");
    let blocks = guide.split(&fence).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_key_is_in_the_table_with_a_meaning_and_no_other() {
    let guide = guide();
    let (_, table) = guide.split_once("\n## All keys\n").unwrap();
    let mut told: Vec<&str> = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 3, "{line}");
        assert!(cells[2].trim().len() > 2, "{line}");
        told.push(cells[0].trim().trim_matches('`'));
    }
    let mut known = Vec::new();
    for (table, keys) in known_keys() {
        for key in keys {
            known.push(match (table, key) {
                ("", "scale") => "scale.NAME".to_owned(),
                // Their keys stand for them.
                ("", "servers" | "configurations" | "builds" | "workloads") => continue,
                ("", "pgbench" | "insert" | "orders" | "rocksdb") => continue,
                ("", "data" | "limits" | "measurement") => continue,
                ("", key) => key.to_owned(),
                ("configurations" | "builds", key) => format!("{table}.NAME.{key}"),
                (table, key) => format!("{table}.{key}"),
            });
        }
    }
    // Scales stand last, as in a file.
    let scale = known.iter().position(|key| key == "scale.NAME").unwrap();
    let last = known.remove(scale);
    known.push(last);
    assert_eq!(told, known);
}

#[test]
fn every_example_reads() {
    let examples = quoted("toml");
    assert!(examples.len() >= 6);
    for text in examples {
        let head = if text.starts_with("format =") {
            ""
        } else {
            HEAD
        };
        // Keys of the whole file stand before all tables.
        let server = "\n[[servers]]\ntarget = \"postgres:18\"\n";
        let server = if text.contains("[[servers]]") {
            ""
        } else {
            server
        };
        let whole = format!("{head}{text}{server}");
        let scales = Experiment::read("guide.toml", &whole, None).unwrap().scales;
        for scale in scales {
            Experiment::read("guide.toml", &whole, Some(&scale)).unwrap();
        }
    }
}

#[test]
fn the_numbers_and_labels_of_the_guide_are_right() {
    let examples = quoted("toml");
    let parts = examples
        .iter()
        .find(|text| text.contains("repetitions = 3"))
        .unwrap();
    let server = "[[servers]]\ntarget = \"postgres:18\"\n";
    assert_eq!(crate::with(&format!("{server}{parts}")).parts().len(), 12);
    let servers = examples
        .iter()
        .find(|text| text.starts_with("base ="))
        .unwrap();
    assert_eq!(
        crate::names(&crate::with(servers)),
        [
            "postgres:17 cx10a_c8r32",
            "postgres:18 cx10b_c8r32",
            "postgres:18 cx10c_c8r32",
            "postgres:18 cx10d_c8r32",
        ]
    );
    let sweep = examples
        .iter()
        .find(|text| text.contains("io_workers = ["))
        .unwrap();
    assert_eq!(
        crate::names(&crate::with(sweep))[0],
        "postgres:18 io_workers=2"
    );
}

#[test]
fn the_problem_in_the_guide_is_what_is_said() {
    let wrong = quoted("toml")[0].replacen("rows =", "row =", 1);
    let problem = refused(&wrong).replacen("x.toml", "study.toml", 1);
    assert_eq!(quoted("text")[0].trim_end(), problem);
}
