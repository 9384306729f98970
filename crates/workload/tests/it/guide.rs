//! The guide shows what is there.

use deltabench_model::plan::DataSize;
use deltabench_workload::Definition;

fn read(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap()
}

/// All blocks of that language in the guide.
fn quoted(language: &str) -> Vec<String> {
    let guide = read("docs/guide/workloads.md");
    let fence = format!("```{language}\n");
    let blocks = guide.split(&fence).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_guide_quotes_the_file_and_the_problem_as_they_are() {
    let file = read("workloads/sysbench/read-only-sum.toml");
    let (before, rest) = file.split_once("notes = [\n").unwrap();
    let (_, after) = rest.split_once("\n]\n").unwrap();
    assert_eq!(quoted("toml")[0], format!("{before}{after}"));

    let wrong = quoted("toml")[0].replacen("high", "hgih", 1);
    let problem = Definition::parse("workloads/sysbench/example.toml", &wrong).unwrap_err();
    assert_eq!(quoted("text")[0].trim_end(), problem.to_string());
}

#[test]
fn every_whole_example_of_the_guide_reads_and_compiles() {
    let size = DataSize {
        tables: 2,
        rows: 10_000,
    };
    let mut whole = 0;
    for text in quoted("toml") {
        if text.starts_with("format =") {
            let definition = Definition::parse("guide.toml", &text).unwrap();
            assert!(!definition.sample(&size, 1).unwrap().is_empty());
            whole += 1;
        }
    }
    assert!(whole >= 3, "{whole}");
}
