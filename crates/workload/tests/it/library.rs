//! What can be asked for by name, and in which order.

use deltabench_model::plan::{DataState, WorkloadSource};
use deltabench_workload::{Library, PublishedStep, published_order};
use std::collections::BTreeSet;

fn names(definitions: &[&deltabench_workload::Definition]) -> Vec<String> {
    definitions.iter().map(|d| d.name.clone()).collect()
}

#[test]
fn every_file_of_the_folder_is_built_in_under_its_own_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/sysbench");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let library = Library::builtin().unwrap();
    let known: BTreeSet<String> = library
        .names()
        .filter(|name| !name.ends_with(".pre"))
        .map(|name| format!("{name}.toml"))
        .collect();
    let beside = BTreeSet::from(["connect.toml".to_owned()]);
    assert_eq!(files, &known - &beside);
    assert_eq!(known.len(), files.len() + beside.len());
    for definition in library.all() {
        let name = definition.name.trim_end_matches(".pre");
        let folder = match name {
            "connect" => "workloads",
            _ => "workloads/sysbench",
        };
        assert_eq!(definition.file(), format!("{folder}/{name}.toml"));
    }
}

#[test]
fn eight_workloads_are_quick() {
    assert_eq!(
        names(&Library::builtin().unwrap().quick()),
        [
            "hot-points",
            "point-query",
            "points-covered-si",
            "range-covered-si",
            "range-notcovered-pk",
            "read-only-sum",
            "update-index",
            "update-nonindex",
        ]
    );
}

#[test]
fn fifteen_tests_have_a_variant_on_fresh_tables() {
    let library = Library::builtin().unwrap();
    assert_eq!(
        names(&library.pre()),
        [
            "point-query.pre",
            "points-covered-pk.pre",
            "points-covered-si.pre",
            "points-notcovered-pk.pre",
            "points-notcovered-si.pre",
            "random-points-1000.pre",
            "random-points-100.pre",
            "random-points-10.pre",
            "range-covered-pk.pre",
            "range-covered-si.pre",
            "range-notcovered-pk.pre",
            "range-notcovered-si.pre",
            "read-only-10000.pre",
            "read-only-100.pre",
            "read-only-10.pre",
        ]
    );
    let size = crate::SIZE;
    for pre in library.pre() {
        let post = library.get(pre.name.trim_end_matches(".pre")).unwrap();
        assert_eq!((pre.state(), post.state()), (Some(DataState::Fresh), None));
        assert_eq!(library.state(&pre.name), Some(DataState::Fresh));
        let (before, after) = (pre.compile(&size).unwrap(), post.compile(&size).unwrap());
        assert_eq!(before.statements, after.statements);
        assert_eq!(before.steps, after.steps);
    }
    assert_eq!(
        library
            .get("random-points-10.pre")
            .unwrap()
            .published
            .as_deref(),
        Some("random-points.pre range=10")
    );
}

#[test]
fn the_published_order_measures_each_of_the_47_once() {
    let library = Library::builtin().unwrap();
    let measured: Vec<&str> = published_order()
        .iter()
        .filter_map(|step| step.measured())
        .collect();
    assert_eq!(measured.len(), 47);
    let found: BTreeSet<&str> = measured.iter().copied().collect();
    let wanted: BTreeSet<String> = library
        .published()
        .iter()
        .chain(&library.pre())
        .map(|definition| match definition.name.as_str() {
            "delete-existing" => "delete".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    assert_eq!(found, wanted.iter().map(String::as_str).collect());
    for step in published_order() {
        if let PublishedStep::WarmUp { workload, .. } = step {
            assert!(!library.get(workload).unwrap().writes);
        }
    }
    let after = |first: &str, second: &str| {
        let place = |name| measured.iter().position(|other| *other == name).unwrap();
        place(first) < place(second)
    };
    assert!(after("point-query.pre", "update-inlist") && after("read-write-100", "scan"));
    assert!(after("range-notcovered-si", "delete") && measured.last() == Some(&"insert"));
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let library = Library::builtin().unwrap();
    let hint = |name: &str| library.get(name).unwrap_err().hint.unwrap();
    assert_eq!(hint("point-qurey"), "did you mean `point-query`?");
    assert_eq!(hint("point-query.per"), "did you mean `point-query.pre`?");
    assert_eq!(hint("tpcc"), "`deltabench workloads` lists them");
}

#[test]
fn files_of_the_user_come_after_and_may_not_take_a_name() {
    let source = |file: &str, name: &str, more: &str| WorkloadSource {
        file: file.to_owned(),
        text: format!(
            "format = \"deltabench.workload\"\nversion = 1\nname = \"{name}\"\ngroup = \"point\"\n\
             writes = false\nquick = true\ndescription = \"d\"\nsource = \"s\"\n{more}\n\
             [[step]]\nsql = \"SELECT 1 FROM {{table}}\"\n"
        ),
    };
    let builtin = || Library::builtin().unwrap();
    let mine = [
        source("a.toml", "mine", "pre = true"),
        source("b.toml", "other", ""),
    ];
    let library = builtin().with_sources(&mine).unwrap();
    assert_eq!(names(&library.own()), ["mine", "other"]);
    assert_eq!(library.state("mine.pre"), Some(DataState::Fresh));
    assert_eq!(
        library.names().collect::<Vec<_>>()[49..],
        ["mine", "mine.pre", "other"]
    );
    let mut plan = deltabench_testkit::small_run::plan();
    plan.workloads = vec![source("c.toml", "connect", "")];
    let stored = Library::of_plan(&plan).unwrap();
    assert_eq!(
        stored.get("connect").unwrap().file(),
        "c.toml",
        "made before ours was there"
    );
    assert_eq!(names(&stored.own()), ["connect"]);
    assert!(builtin().with_sources(&plan.workloads).is_err());
    let same = |l: &Library| (l.quick().len(), l.pre().len(), l.published().len());
    assert_eq!(
        same(&library),
        (8, 15, 32),
        "the user's are not part of the published sets"
    );

    let taken = builtin()
        .with_sources(&[source("a.toml", "scan", "")])
        .unwrap_err();
    assert_eq!(taken.error, "a.toml: a workload `scan` already exists");
    assert_eq!(
        taken.detail.unwrap(),
        "it is in workloads/sysbench/scan.toml"
    );
    let twice = [source("a.toml", "mine", ""), source("b.toml", "mine", "")];
    assert!(builtin().with_sources(&twice).is_err());
    let broken = [source("c.toml", "mine", "lable = 1")];
    assert!(
        builtin()
            .with_sources(&broken)
            .unwrap_err()
            .error
            .starts_with("c.toml:9: ")
    );
}
