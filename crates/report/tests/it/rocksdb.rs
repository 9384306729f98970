//! RocksDB in every form.

use crate::full::{Full, full};
use crate::rocksdb_fixture::rocksdb_run;
use deltabench_compare::study::{Axis, StudyRun, study};
use deltabench_kinds::rocksdb::shown::FORM;
use deltabench_report::{
    Format, StudyContext, StudyFormat, TerminalOptions, costs_table, html, json, markdown, render,
    render_study,
};
use serde_json::Value;

fn form(format: Format, full: &Full, width: usize) -> String {
    let options = TerminalOptions {
        width,
        colour: false,
        verbose: false,
    };
    render(format, &full.comparison, &full.plan, &full.context, options)
}

/// The page of six blocks.
pub fn page() -> String {
    let full = rocksdb_run(6);
    html(&full.comparison, &full.plan, &full.context)
}

#[test]
fn six_blocks_on_a_terminal_of_120_columns() {
    insta::assert_snapshot!(form(Format::Text, &rocksdb_run(6), 120));
}

#[test]
fn the_costs_of_a_step() {
    let full = rocksdb_run(6);
    let options = TerminalOptions {
        width: 120,
        colour: false,
        verbose: false,
    };
    let text = costs_table(&full.comparison, &full.plan, &full.context, options);
    let to = text.find("revrangewhilewriting").unwrap();
    let legend = text.find("Costs are from all blocks").unwrap();
    insta::assert_snapshot!(format!("{}{}", &text[..to], &text[legend..]));
}

#[test]
fn six_blocks_in_markdown() {
    let full = rocksdb_run(6);
    let text = markdown(&full.comparison, &full.plan, &full.context);
    let from = text.find("### RocksDB").unwrap();
    let to = from + text[from..].find("</details>").unwrap();
    insta::assert_snapshot!(&text[from..to]);
}

#[test]
fn the_published_file_of_two_blocks() {
    let full = rocksdb_run(2);
    let text = form(Format::OfKind("rocksdb"), &full, 80);
    let columns = |line: &str| line.split('\t').count();
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.iter().all(|row| columns(row) == 28), "{text}");
    // A header, then five targets, nine steps, two blocks.
    assert_eq!(rows.len(), 1 + 5 * 9 * 2);
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with('#') || line.contains(".base.block1"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_published_file_is_of_rocksdb_alone() {
    let other = full();
    assert!((FORM.check)(&other.plan).is_err());
    assert_eq!(form(Format::OfKind("rocksdb"), &other, 80), "");
    assert!((FORM.check)(&rocksdb_run(2).plan).is_ok());
}

#[test]
fn tables_keep_the_width() {
    for width in [60, 80, 100, 160] {
        let text = form(Format::Text, &rocksdb_run(6), width);
        let from = text.find("RocksDB, byrx").unwrap();
        for line in text[from..].lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_json_has_every_block_and_both_pairs_of_caches() {
    let full = rocksdb_run(6);
    let report: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    ))
    .unwrap();
    let rocksdb = &report["rocksdb"];
    assert_eq!(rocksdb["steps"].as_array().unwrap().len(), 9);
    let block = &rocksdb["steps"][0]["targets"][0]["blocks"][5];
    assert_eq!(block["block"], 6);
    assert_eq!(block["turns"].as_array().unwrap().len(), 1);
    let read = &rocksdb["steps"][1]["targets"][0]["blocks"][5];
    assert_eq!(read["turns"].as_array().unwrap().len(), 10);
    assert!((block["published"]["w_amp"].as_f64().unwrap() - 3.4).abs() < 0.1);
    let caches = rocksdb["caches"].as_array().unwrap();
    let pairs: Vec<(&Value, &Value)> = caches
        .iter()
        .map(|pair| (&pair["lru"], &pair["hyper_clock"]))
        .collect();
    assert_eq!(pairs, [(&0.into(), &2.into()), (&3.into(), &4.into())]);
    let ratio = caches[1]["steps"][2]["ratio"].as_f64().unwrap();
    assert!((ratio - 1.12).abs() < 0.02, "{ratio}");
}

/// Words that are about servers and their clients, and so are wrong here.
const OF_SERVERS: [&str; 14] = [
    "client",
    "connection",
    "statement",
    "postgres",
    "PostgreSQL",
    "binaries",
    "checksums",
    "WAL",
    "buffers touched",
    "query",
    "queries",
    "a server",
    "server error",
    "server CPU",
];

#[test]
fn nothing_is_said_of_clients_and_servers() {
    let mut full = rocksdb_run(6);
    full.context.host = Value::Null;
    let text = [
        form(Format::Text, &full, 120),
        form(Format::Markdown, &full, 120),
        body(&html(&full.comparison, &full.plan, &full.context)),
    ];
    text.iter().for_each(|text| nothing_of_servers(text));
}

fn nothing_of_servers(text: &str) {
    for word in OF_SERVERS {
        let found = text.lines().find(|line| line.contains(word));
        assert_eq!(found, None, "{word}");
    }
}

#[test]
fn nothing_is_said_of_clients_and_servers_in_a_study() {
    let full = rocksdb_run(6);
    let place = |run: &'static str, host: &'static str| StudyRun {
        run,
        plan: &full.plan,
        comparison: &full.comparison,
        results: &full.context.results,
        host,
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    };
    let study = study(&[place("r1", "one"), place("r2", "other")]).unwrap();
    let told = |axis: Axis| {
        study
            .tables
            .iter()
            .find(|table| table.axis == axis)
            .unwrap()
    };
    assert!(told(Axis::Servers).title.ends_with(", 1 thread, host one"));
    assert_eq!(told(Axis::Clients).axis_name, "threads");
    let context = StudyContext {
        execution: "rocksdb".to_owned(),
        ..StudyContext::default()
    };
    let options = TerminalOptions {
        width: 120,
        colour: false,
        verbose: false,
    };
    let form = |format| render_study(format, &study, &context, options);
    for text in [
        form(StudyFormat::Text),
        form(StudyFormat::Markdown),
        body(&form(StudyFormat::Html)),
    ] {
        nothing_of_servers(&text);
        assert!(text.contains("Point reads"), "{text}");
        for word in ["Point queries", "Servers", "servers"] {
            let found = text.lines().find(|line| line.contains(word));
            assert_eq!(found, None, "{word}");
        }
    }
}

/// What a page shows: its text without tags, styles, data and script.
fn body(page: &str) -> String {
    let from = page.find("<main>").unwrap();
    let to = page.find("</main>").unwrap();
    let mut text = String::new();
    let mut inside = false;
    for letter in page[from..to].chars() {
        match letter {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push('\n');
            }
            letter if !inside => text.push(letter),
            _ => {}
        }
    }
    text
}

#[test]
fn the_page_has_the_caches_and_a_line_for_each_block_of_turns() {
    let page = page();
    assert!(page.contains("HyperClock against LRU"));
    let from = page.find("Turn by turn").unwrap();
    let to = from + page[from..].find("</section>").unwrap();
    // Six steps that read, of four targets in six blocks.
    assert_eq!(page[from..to].matches("<path").count(), 6 * 4 * 6);
    assert!(page.contains("By threads"));
}
