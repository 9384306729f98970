//! Built-in workloads with other sizes.

use crate::{SIZE, operation};
use deltabench_model::plan::DataState;
use deltabench_model::problem::Problem;
use deltabench_workload::executable::Draws;
use deltabench_workload::{Definition, Library};

fn owned(values: &[(&str, i64)]) -> Vec<(String, i64)> {
    let values = values.iter();
    values
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

fn variant(of: &str, values: &[(&str, i64)]) -> Definition {
    let library = Library::builtin().unwrap();
    let source = library.variant(of, &owned(values)).unwrap();
    Definition::parse(&source.file, &source.text).unwrap()
}

fn refused(of: &str, values: &[(&str, i64)]) -> Problem {
    let library = Library::builtin().unwrap();
    library.variant(of, &owned(values)).unwrap_err()
}

/// The sizes of every workload that has some, as `show` prints them.
const SIZES: &[(&str, &[(&str, i64)])] = &[
    ("hot-points", &[("count", 100)]),
    ("points-covered-pk", &[("count", 100)]),
    ("points-covered-si", &[("count", 100)]),
    ("points-notcovered-pk", &[("count", 100)]),
    ("points-notcovered-si", &[("count", 100)]),
    ("random-points-1000", &[("count", 1000)]),
    ("random-points-100", &[("count", 100)]),
    ("random-points-10", &[("count", 10)]),
    ("range-covered-pk", &[("range", 100)]),
    ("range-covered-si", &[("range", 100)]),
    ("range-notcovered-pk", &[("range", 100)]),
    ("range-notcovered-si", &[("range", 100)]),
    ("read-only-count", &[("range", 1000)]),
    ("read-only-distinct", &[("range", 1000), ("points", 10)]),
    ("read-only-order", &[("range", 1000), ("points", 10)]),
    ("read-only-10000", &[("range", 10_000), ("points", 10)]),
    ("read-only-100", &[("range", 100), ("points", 10)]),
    ("read-only-10", &[("range", 10), ("points", 10)]),
    ("read-only-simple", &[("range", 1000), ("points", 10)]),
    ("read-only-sum", &[("range", 1000), ("points", 10)]),
    ("read-write-100", &[("range", 100), ("points", 10)]),
    ("read-write-10", &[("range", 10), ("points", 10)]),
    ("update-inlist", &[("count", 10)]),
];

#[test]
fn these_can_be_varied_and_by_these_sizes() {
    let library = Library::builtin().unwrap();
    let all = library.all().iter();
    let found: Vec<(String, Vec<(String, i64)>)> = all
        .filter(|definition| definition.state().is_none() && !definition.varied().is_empty())
        .map(|definition| (definition.name.clone(), definition.varied().to_vec()))
        .collect();
    let wanted = SIZES.iter();
    let wanted: Vec<_> = wanted
        .map(|(name, sizes)| ((*name).to_owned(), owned(sizes)))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_variant_with_the_sizes_as_they_are_sends_what_the_original_sends() {
    let library = Library::builtin().unwrap();
    for (name, sizes) in SIZES {
        let original = library.get(name).unwrap().compile(&SIZE).unwrap();
        let same = variant(name, sizes);
        let sent = same.compile(&SIZE).unwrap();
        assert_eq!(
            (sent.statements, sent.steps, sent.scripts),
            (original.statements, original.steps, original.scripts),
            "{name}"
        );
        assert_eq!((same.published, same.quick), (None, false), "{name}");
    }
}

#[test]
fn each_size_changes_what_is_sent_and_what_is_said() {
    let library = Library::builtin().unwrap();
    for (name, sizes) in SIZES {
        let original = library.get(name).unwrap();
        for (size, value) in *sizes {
            let other = variant(name, &[(size, value + 7)]);
            let (was, is) = (
                original.compile(&SIZE).unwrap(),
                other.compile(&SIZE).unwrap(),
            );
            assert_ne!(
                (was.statements, was.steps),
                (is.statements, is.steps),
                "{name} {size}"
            );
            assert_ne!(other.description, original.description, "{name} {size}");
            assert_eq!(
                (other.group, other.writes),
                (original.group, original.writes)
            );
        }
    }
}

#[test]
fn a_name_says_each_size_once_and_drops_the_number_that_is_no_longer_true() {
    let name = |of: &str, values: &[(&str, i64)]| variant(of, values).name;
    assert_eq!(
        name("read-only-100", &[("range", 500)]),
        "read-only-range=500"
    );
    assert_eq!(
        name("read-only-10000", &[("range", 500)]),
        "read-only-range=500"
    );
    assert_eq!(
        name("read-only-100", &[("points", 1)]),
        "read-only-100-points=1"
    );
    let both = [("points", 1), ("range", 500)];
    assert_eq!(name("read-only-100", &both), "read-only-range=500-points=1");
    assert_eq!(
        name("range-covered-pk", &[("range", 5)]),
        "range-covered-pk-range=5"
    );
    assert_eq!(
        name("random-points-10", &[("count", 50)]),
        "random-points-count=50"
    );
    assert_eq!(
        name("update-inlist", &[("count", 1)]),
        "update-inlist-count=1"
    );
}

#[test]
fn lists_ranges_and_repetitions_have_the_sizes_asked_for() {
    let drawn = |of: &str, values: &[(&str, i64)]| {
        let executable = variant(of, values).compile(&SIZE).unwrap();
        operation(&executable, &mut Draws::new(3, 0))
    };
    let list = drawn("random-points-100", &[("count", 7)]);
    assert_eq!((list.len(), list[0].numbers.len()), (1, 7));
    let update = drawn("update-inlist", &[("count", 3)]);
    assert_eq!(update[0].numbers.len(), 4, "the new text and three ids");
    let range = drawn("range-notcovered-si", &[("range", 20)]);
    assert_eq!(range[0].numbers[1] - range[0].numbers[0], 20);
    let transaction = drawn("read-only-100", &[("range", 500), ("points", 2)]);
    assert_eq!(transaction.len(), 8);
    for statement in &transaction[3..7] {
        assert_eq!(statement.numbers[1] - statement.numbers[0], 499);
    }
    let definition = variant("read-only-100", &[("range", 500), ("points", 2)]);
    assert_eq!(definition.statements_per_operation(), 8);
    assert_eq!(definition.label, "500");
    assert_eq!(
        definition.description,
        "Transaction: 2 point reads, four ranges of 500 rows (plain, sum, sorted, distinct)."
    );
    assert_eq!(definition.notes[0], "8 statements: BEGIN and COMMIT count.");
}

#[test]
fn a_variant_is_a_file_of_the_users() {
    let library = Library::builtin().unwrap();
    let sources: Vec<_> = [("read-only-100", 500), ("update-inlist", 3)]
        .into_iter()
        .map(|(of, value)| {
            let size = library.get(of).unwrap().varied()[0].0.clone();
            library.variant(of, &[(size, value)]).unwrap()
        })
        .collect();
    assert_eq!(sources[0].file, "read-only-range=500.toml");
    assert!(
        sources[0]
            .text
            .starts_with("# workloads/sysbench/read-only-100.toml with range = 500\n"),
        "{}",
        sources[0].text
    );
    let with = library.clone().with_sources(&sources).unwrap();
    let own: Vec<&str> = with.own().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(own, ["read-only-range=500", "update-inlist-count=3"]);
    assert_eq!(with.published().len(), 32);
    assert_eq!(
        with.state("read-only-range=500.pre"),
        Some(DataState::Fresh)
    );
    let again = [sources[0].clone(), sources[0].clone()];
    assert!(library.clone().with_sources(&again).is_err());

    let further = with.variant("read-only-range=500", &owned(&[("points", 1)]));
    let further = further.unwrap();
    assert_eq!(further.file, "read-only-range=500-points=1.toml");
}

#[test]
fn what_cannot_be_varied_is_refused_with_what_can() {
    let unknown = refused("read-only-100", &[("rang", 5)]);
    assert_eq!(unknown.error, "workload `read-only-100` has no size `rang`");
    assert_eq!(unknown.detail.unwrap(), "it has range = 100, points = 10");
    assert_eq!(unknown.hint.unwrap(), "did you mean `range`?");
    let far = refused("read-only-100", &[("temperature", 5)]);
    assert_eq!(
        far.hint.unwrap(),
        "`deltabench workloads show read-only-100` prints it"
    );
    let none = refused("point-query", &[("range", 5)]);
    assert_eq!(none.error, "workload `point-query` has no size to vary");
    assert!(none.detail.unwrap().contains("random-points-10, "));
    let misspelt = refused("read-olny-100", &[("range", 5)]);
    assert_eq!(misspelt.hint.unwrap(), "did you mean `read-only-100`?");
    let fresh = refused("read-only-100.pre", &[("range", 5)]);
    assert!(fresh.hint.unwrap().starts_with("vary `read-only-100`"));
    assert!(refused("scan", &[]).error.contains("no size to vary"));
    assert!(refused("hot-points", &[]).error.contains("without a size"));
    let twice = refused("hot-points", &[("count", 5), ("count", 6)]);
    assert!(twice.error.contains("given twice"));
}

#[test]
fn a_size_out_of_range_is_refused() {
    for (of, size, value, why) in [
        ("read-only-100", "range", 0, "must be 1 to 1000000000"),
        ("read-only-100", "range", -3, "must be 1 to 1000000000"),
        ("range-covered-pk", "range", 1_000_000_001, "must be 1 to"),
        (
            "read-only-100",
            "points",
            1001,
            "`repeat` is 1001, but must be 1 to 1000",
        ),
        (
            "hot-points",
            "count",
            65_536,
            "`count` is 65536, but must be 1 to 65535",
        ),
        (
            "update-inlist",
            "count",
            65_535,
            "65536 placeholders, more than the 65535",
        ),
    ] {
        let problem = refused(of, &[(size, value)]);
        assert_eq!(
            problem.error,
            format!("workload `{of}` cannot have {size} = {value}")
        );
        let detail = problem.detail.unwrap();
        assert!(detail.contains(why), "{of}: {detail}");
    }
}

/// A file of the user's with sizes.
const OWN: &str = r#"format = "deltabench.workload"
version = 1
name = "own"
group = "point"
label = "{many}"
published = "x range=1" # which row
writes = false
quick = true
description = "Reads {many} rows, {many * 2 + 1} at most."
source = "s"
vary = { many = 3, wide = 10 }

[parameter.ids]
kind = "uniform"
low = "wide"
high = "rows"
count = "many + 1"

[[step]]
sql = "SELECT c FROM {table} WHERE id IN (:ids)"
"#;

#[test]
fn a_file_of_ones_own_has_sizes_too() {
    let definition = Definition::parse("own.toml", OWN).unwrap();
    assert_eq!(definition.varied(), owned(&[("many", 3), ("wide", 10)]));
    assert_eq!(definition.label, "3");
    assert_eq!(definition.description, "Reads 3 rows, 7 at most.");
    let library = Library::builtin().unwrap();
    let source = deltabench_model::plan::WorkloadSource {
        file: "own.toml".to_owned(),
        text: OWN.to_owned(),
    };
    let library = library.with_sources(&[source]).unwrap();
    let made = library.variant("own", &owned(&[("many", 1)])).unwrap();
    let wanted = OWN
        .replace("name = \"own\"", "name = \"own-many=1\"")
        .replace("many = 3", "many = 1")
        .replace("published = \"x range=1\" # which row\n", "")
        .replace("quick = true\n", "");
    assert_eq!(made.text, format!("# own.toml with many = 1\n{wanted}"));
}

#[test]
fn mistakes_with_sizes_name_their_line() {
    let problem = |from: &str, to: &str| {
        assert!(OWN.contains(from), "{from}");
        let text = OWN.replacen(from, to, 1);
        Definition::parse("x.toml", &text).unwrap_err().to_string()
    };
    for (from, to, what) in [
        (
            "many = 3",
            "many = 0",
            "x.toml:11: vary: `many` is 0, but must be 1 to",
        ),
        (
            "many = 3",
            "many = \"3\"",
            "x.toml:11: vary: `many` must be a whole number",
        ),
        (
            "many = 3",
            "rows = 3",
            "x.toml:11: vary: `rows` cannot be the name",
        ),
        (
            "many = 3",
            "Many = 3",
            "x.toml:11: vary: `Many` cannot be the name",
        ),
        (
            "many = 3",
            "many = 3, more = 1",
            "x.toml:11: vary: `more` is not used",
        ),
        (
            "vary = {",
            "vary = 3 # {",
            "`vary` must be a table headed [vary]",
        ),
        (
            "\"many + 1\"",
            "\"mayn + 1\"",
            "x.toml:17: parameter `ids`: `count`: bad expression",
        ),
        ("\"many + 1\"", "\"mayn + 1\"", "did you mean `many`?"),
        (
            "\"many + 1\"",
            "\"rows\"",
            "it depends on the size of the data",
        ),
        (
            "\"many + 1\"",
            "\"many * 70000\"",
            "`count` is 210000, but must be 1 to 65535",
        ),
        (
            "{many * 2 + 1}",
            "{mayn}",
            "x.toml:9: the workload: bad expression `mayn`",
        ),
        (
            "{many * 2 + 1}",
            "{many",
            "x.toml:9: the workload: a `{` in a text is not closed",
        ),
        (
            "\"own\"",
            "\"own-many=4\"",
            "x.toml:3: the workload: name \"own-many=4\" says many=4",
        ),
        ("\"own\"", "\"own-x=3\"", "says x=3, but [vary] does not"),
    ] {
        let found = problem(from, to);
        assert!(
            found.contains(what),
            "{from} -> {to}\nwanted {what}\n{found}"
        );
    }
    assert!(Definition::parse("x.toml", &OWN.replace("\"own\"", "\"own-many=3\"")).is_ok());
}
