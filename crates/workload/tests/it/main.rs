//! The built-in workloads do what the published ones do.
// The lints' exception for tests stops at helper functions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use deltabench_model::plan::{DataSize, Group};
use deltabench_workload::executable::{Executable, Random, Slot, Slots};
use deltabench_workload::{Definition, Library, stream};

const SIZE: DataSize = DataSize {
    tables: 8,
    rows: 10_000,
};

/// Every built-in workload: name, group, label, SQL statements of an operation.
///
/// Source: reference of the published tests, table 1.4.
const TABLE: [(&str, Group, &str, u32); 25] = [
    ("point-query", Group::Point, "100", 1),
    ("random-points-10", Group::Point, "10", 1),
    ("random-points-100", Group::Point, "100", 1),
    ("random-points-1000", Group::Point, "1000", 1),
    ("hot-points", Group::Point, "100", 1),
    ("points-covered-pk", Group::Point, "100", 1),
    ("points-notcovered-pk", Group::Point, "100", 1),
    ("points-covered-si", Group::Point, "100", 1),
    ("points-notcovered-si", Group::Point, "100", 1),
    ("range-covered-pk", Group::Range, "100", 1),
    ("range-notcovered-pk", Group::Range, "100", 1),
    ("range-covered-si", Group::Range, "100", 1),
    ("range-notcovered-si", Group::Range, "100", 1),
    ("read-only-count", Group::RangeAgg, "1000", 1),
    ("read-only-distinct", Group::RangeAgg, "1000", 13),
    ("read-only-order", Group::RangeAgg, "1000", 13),
    ("read-only-simple", Group::RangeAgg, "1000", 13),
    ("read-only-sum", Group::RangeAgg, "1000", 13),
    ("read-only-10", Group::RangeAgg, "10", 16),
    ("read-only-100", Group::RangeAgg, "100", 16),
    ("read-only-10000", Group::RangeAgg, "10000", 16),
    ("update-inlist", Group::Write, "100", 1),
    ("update-index", Group::Write, "100", 1),
    ("update-nonindex", Group::Write, "100", 1),
    ("update-one", Group::Write, "100", 1),
];

/// Slots that remember what was drawn.
#[derive(Debug, Default, Clone, PartialEq)]
struct Drawn {
    numbers: Vec<i64>,
    text: Vec<u8>,
}

impl Drawn {
    fn of(slots: &[Slot]) -> Self {
        let text = slots.iter().find_map(|slot| match slot {
            Slot::Text(bytes) => Some(vec![0; *bytes]),
            Slot::BigInt => None,
        });
        Self {
            numbers: vec![i64::MIN; slots.len()],
            text: text.unwrap_or_default(),
        }
    }
}

impl Slots for Drawn {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        self.numbers[slot] = value;
    }

    fn text_mut(&mut self, _slot: usize) -> &mut [u8] {
        &mut self.text
    }
}

fn definition(name: &str) -> Definition {
    Library::builtin().unwrap().get(name).unwrap().clone()
}

fn executable(name: &str) -> Executable {
    definition(name).compile(&SIZE).unwrap()
}

/// The SQL of each step for the first table, and what is drawn for it.
fn operation(executable: &Executable, random: &mut Random) -> Vec<(String, usize, Drawn)> {
    let mut table = 0;
    let mut sent = Vec::new();
    for step in &executable.steps {
        if step.draws_table {
            table = executable.draw_table(random);
        }
        let statement = &executable.statements[step.statement(table).unwrap()];
        let mut drawn = Drawn::of(&statement.slots);
        step.fill(random, &mut drawn);
        sent.push((statement.sql.clone(), table, drawn));
    }
    sent
}

/// What many operations of a workload with one step draw.
fn many(name: &str, operations: usize) -> Vec<Drawn> {
    let executable = executable(name);
    let mut random = stream(1, &[2, 3]);
    (0..operations)
        .map(|_| operation(&executable, &mut random).remove(0).2)
        .collect()
}

fn placeholders(count: usize) -> String {
    (1..=count)
        .map(|number| format!("${number}"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn every_workload_is_the_published_one_by_name_group_label_and_statements() {
    let library = Library::builtin().unwrap();
    let found: Vec<(&str, Group, &str, u32)> = library
        .all()
        .iter()
        .map(|d| {
            (
                d.name.as_str(),
                d.group,
                d.label.as_str(),
                d.statements_per_operation(),
            )
        })
        .collect();
    assert_eq!(found, TABLE);
    for definition in library.all() {
        assert_eq!(
            definition.writes,
            definition.group == Group::Write,
            "{}",
            definition.name
        );
        let steps = definition.compile(&SIZE).unwrap().steps.len();
        assert_eq!(
            steps,
            usize::try_from(definition.statements_per_operation()).unwrap()
        );
    }
}

#[test]
fn every_file_of_the_folder_is_built_in_under_its_own_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/sysbench");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut names: Vec<String> = TABLE.iter().map(|row| format!("{}.toml", row.0)).collect();
    names.sort();
    assert_eq!(files, names);
    for row in TABLE {
        let text = std::fs::read_to_string(format!("{folder}/{}.toml", row.0)).unwrap();
        assert_eq!(Definition::parse("file", &text).unwrap().name, row.0);
    }
}

#[test]
fn eight_workloads_are_quick() {
    let library = Library::builtin().unwrap();
    let names: Vec<&str> = library
        .quick()
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "point-query",
            "hot-points",
            "points-covered-si",
            "range-notcovered-pk",
            "range-covered-si",
            "read-only-sum",
            "update-index",
            "update-nonindex",
        ]
    );
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let library = Library::builtin().unwrap();
    assert_eq!(
        library.get("point-qurey").unwrap_err().hint.unwrap(),
        "did you mean `point-query`?"
    );
    assert_eq!(
        library.get("tpcc").unwrap_err().hint.unwrap(),
        "`deltabench workloads` lists them"
    );
}

#[test]
fn single_statements_are_the_published_text() {
    let in_list = |columns: &str, key: &str, count| {
        format!(
            "SELECT {columns} FROM sbtest1 WHERE {key} IN ({})",
            placeholders(count)
        )
    };
    let between = |columns: &str, key: &str| {
        format!("SELECT {columns} FROM sbtest1 WHERE {key} BETWEEN $1 AND $2")
    };
    for (name, sql) in [
        (
            "point-query",
            "SELECT c FROM sbtest1 WHERE id=$1".to_owned(),
        ),
        ("random-points-10", in_list("c", "id", 10)),
        ("random-points-100", in_list("c", "id", 100)),
        ("random-points-1000", in_list("c", "id", 1000)),
        ("hot-points", in_list("c", "id", 100)),
        ("points-covered-pk", in_list("id", "id", 100)),
        ("points-notcovered-pk", in_list("id, c", "id", 100)),
        ("points-covered-si", in_list("k", "k", 100)),
        ("points-notcovered-si", in_list("k, c", "k", 100)),
        ("range-covered-pk", between("id", "id")),
        ("range-notcovered-pk", between("id, c", "id")),
        ("range-covered-si", between("k", "k")),
        ("range-notcovered-si", between("k, c", "k")),
        ("read-only-count", between("count(c)", "id")),
        (
            "update-index",
            "UPDATE sbtest1 SET k=k+1 WHERE id=$1".to_owned(),
        ),
        (
            "update-nonindex",
            "UPDATE sbtest1 SET c=$1 WHERE id=$2".to_owned(),
        ),
        (
            "update-one",
            "UPDATE sbtest1 SET c=$1 WHERE id=$2".to_owned(),
        ),
        ("update-inlist", {
            let ids: Vec<String> = (2..=11).map(|number| format!("${number}")).collect();
            format!("UPDATE sbtest1 SET c=$1 WHERE id IN ({})", ids.join(", "))
        }),
    ] {
        let executable = executable(name);
        assert_eq!(executable.statements.len(), 8, "{name}");
        assert_eq!(executable.statements[0].sql, sql);
        assert_eq!(
            executable.statements[7].sql,
            sql.replace("sbtest1", "sbtest8")
        );
        assert_eq!(
            executable.statements[0].slots.len(),
            sql.matches('$').count(),
            "{name}"
        );
    }
}

#[test]
fn transactions_are_the_published_text_in_order() {
    let point = "SELECT c FROM T WHERE id=$1";
    let range = "FROM T WHERE id BETWEEN $1 AND $2";
    let simple = format!("SELECT c {range}");
    let sum = format!("SELECT SUM(k) {range}");
    let order = format!("SELECT c {range} ORDER BY c");
    let distinct = format!("SELECT DISTINCT c {range} ORDER BY c");
    for (name, ranges) in [
        ("read-only-simple", vec![&simple]),
        ("read-only-sum", vec![&sum]),
        ("read-only-order", vec![&order]),
        ("read-only-distinct", vec![&distinct]),
        ("read-only-10", vec![&simple, &sum, &order, &distinct]),
        ("read-only-10000", vec![&simple, &sum, &order, &distinct]),
    ] {
        let mut expected = vec!["BEGIN"];
        expected.extend([point; 10]);
        expected.extend(ranges.iter().map(|sql| sql.as_str()));
        expected.push("COMMIT");
        let sent = operation(&executable(name), &mut stream(1, &[]));
        let sql: Vec<String> = sent
            .iter()
            .map(|(sql, table, _)| sql.replace(&format!("sbtest{}", table + 1), "T"))
            .collect();
        assert_eq!(sql, expected, "{name}");
    }
}

#[test]
fn points_share_a_table_and_each_range_draws_its_own() {
    let executable = executable("read-only-10");
    let draws: Vec<usize> = (0..16)
        .filter(|&step| executable.steps[step].draws_table)
        .collect();
    assert_eq!(draws, [1, 11, 12, 13, 14]);
    let mut random = stream(5, &[]);
    let mut differed = 0;
    for _ in 0..1000 {
        let sent = operation(&executable, &mut random);
        assert!(sent[1..11].iter().all(|(_, table, _)| *table == sent[1].1));
        let ids: Vec<i64> = sent[1..11]
            .iter()
            .map(|(_, _, drawn)| drawn.numbers[0])
            .collect();
        assert!(
            ids.iter().any(|id| *id != ids[0]),
            "ten points must be ten draws"
        );
        differed += u32::from(sent[1].1 != sent[11].1);
    }
    // One in eight pairs of draws agrees.
    assert!((830..920).contains(&differed), "{differed}");
}

#[test]
fn ids_are_independent_and_uniform_over_the_rows() {
    for name in [
        "point-query",
        "random-points-100",
        "points-covered-si",
        "points-notcovered-pk",
        "update-index",
    ] {
        let width = executable(name).steps[0].values[0].slots();
        let drawn = many(name, 200_000 / width);
        let mut bands = [0_u32; 10];
        for id in drawn.iter().flat_map(|drawn| &drawn.numbers) {
            assert!((1..=10_000).contains(id), "{name}: {id}");
            bands[usize::try_from((id - 1) / 1000).unwrap()] += 1;
        }
        assert!(
            bands.iter().all(|count| (19_400..20_600).contains(count)),
            "{name}: {bands:?}"
        );
        let all: Vec<i64> = drawn
            .iter()
            .flat_map(|drawn| drawn.numbers.clone())
            .collect();
        assert!(
            all.contains(&1) && all.contains(&10_000),
            "{name} must reach both ends"
        );
    }
}

#[test]
fn hot_points_are_the_same_hundred_rows_in_the_middle() {
    let expected: Vec<i64> = (5_001..=5_100).collect();
    for drawn in many("hot-points", 100) {
        assert_eq!(drawn.numbers, expected);
    }
}

#[test]
fn ranges_have_the_published_width_and_start_anywhere() {
    for (name, step, add) in [
        ("range-covered-pk", 0, 100),
        ("range-notcovered-pk", 0, 100),
        ("range-covered-si", 0, 100),
        ("range-notcovered-si", 0, 100),
        ("read-only-count", 0, 999),
        ("read-only-sum", 11, 999),
        ("read-only-10", 14, 9),
        ("read-only-100", 11, 99),
        ("read-only-10000", 12, 9_999),
    ] {
        let executable = executable(name);
        let mut random = stream(9, &[]);
        let mut starts = Vec::new();
        for _ in 0..5_000 {
            let numbers = operation(&executable, &mut random).remove(step).2.numbers;
            assert_eq!(numbers[1] - numbers[0], add, "{name}");
            starts.push(numbers[0]);
        }
        assert!(
            starts.iter().all(|start| (1..=10_000).contains(start)),
            "{name}"
        );
        assert!(
            starts.iter().min() < Some(&20) && starts.iter().max() > Some(&9_980),
            "{name}"
        );
    }
}

#[test]
fn updates_set_119_characters_in_ten_groups() {
    for (name, ids) in [
        ("update-nonindex", 1),
        ("update-inlist", 10),
        ("update-one", 1),
    ] {
        let executable = executable(name);
        let mut slots = vec![Slot::Text(119)];
        slots.extend(vec![Slot::BigInt; ids]);
        assert!(
            executable
                .statements
                .iter()
                .all(|statement| statement.slots == slots),
            "{name}"
        );
        let drawn = many(name, 50);
        for one in &drawn {
            let text = String::from_utf8(one.text.clone()).unwrap();
            let groups: Vec<&str> = text.split('-').collect();
            assert_eq!(groups.len(), 10);
            assert!(
                groups
                    .iter()
                    .all(|group| group.len() == 11
                        && group.bytes().all(|byte| byte.is_ascii_digit()))
            );
            assert!(name != "update-one" || one.numbers[1] == 1);
        }
        assert_ne!(drawn[0].text, drawn[1].text);
    }
}

#[test]
fn the_same_seed_sends_the_same_operations() {
    for row in TABLE {
        let executable = executable(row.0);
        let draw = |seed: u64| {
            let mut random = stream(seed, &[7]);
            (0..20)
                .map(|_| operation(&executable, &mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1), "{}", row.0);
        assert_ne!(draw(1), draw(2), "{}", row.0);
    }
}

#[test]
fn all_but_the_table_stays_the_same_when_there_is_one_table() {
    let one = definition("read-only-sum")
        .compile(&DataSize {
            tables: 1,
            rows: 10_000,
        })
        .unwrap();
    let sql: Vec<&str> = one
        .statements
        .iter()
        .map(|statement| statement.sql.as_str())
        .collect();
    assert_eq!(
        sql,
        [
            "BEGIN",
            "SELECT c FROM sbtest1 WHERE id=$1",
            "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2",
            "COMMIT",
        ]
    );
    assert_eq!(one.steps.len(), 13);
}

#[test]
fn every_workload_compiles_for_a_single_row() {
    for definition in Library::builtin().unwrap().all() {
        assert!(
            definition.compile(&DataSize { tables: 1, rows: 1 }).is_ok(),
            "{}",
            definition.name
        );
    }
}

#[test]
fn samples_have_no_placeholder_left() {
    for row in TABLE {
        let sample = executable(row.0).sample_sql(1);
        assert_eq!(sample.len(), usize::try_from(row.3).unwrap());
        assert!(sample.iter().all(|sql| !sql.contains('$')), "{sample:?}");
        assert_eq!(sample, executable(row.0).sample_sql(1));
    }
}

#[test]
fn the_guide_quotes_the_file_and_the_problem_as_they_are() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).unwrap();
    let guide = read("docs/guide/workloads.md");
    let quoted = |fence: &str| {
        guide
            .split(fence)
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap()
            .to_owned()
    };

    let file = read("workloads/sysbench/read-only-sum.toml");
    let (before, rest) = file.split_once("notes = [\n").unwrap();
    let (_, after) = rest.split_once("\n]\n").unwrap();
    assert_eq!(quoted("```toml\n"), format!("{before}{after}"));

    let wrong = quoted("```toml\n").replacen("high", "hgih", 1);
    let problem = Definition::parse("workloads/sysbench/example.toml", &wrong).unwrap_err();
    assert_eq!(quoted("```text\n").trim_end(), problem.to_string());
}
