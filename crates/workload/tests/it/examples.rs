//! The workloads that the published studies of `examples/` ask for.

use crate::SIZE;
use deltabench_experiment::{Chosen, Experiment};
use deltabench_workload::{Definition, Library, published_order};
use std::path::PathBuf;

#[test]
fn every_workload_and_variant_of_the_examples_is_there_at_every_scale() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let library = Library::builtin().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        files += 1;
        let (file, text) = (
            path.display().to_string(),
            std::fs::read_to_string(&path).unwrap(),
        );
        for scale in [None, Some("tiny"), Some("small"), Some("paper")] {
            let workloads = Experiment::read(&file, &text, scale).unwrap().workloads;
            if let Chosen::Named(names) = &workloads.chosen {
                for name in names {
                    library.get(name).unwrap();
                }
            }
            let variants = workloads.variants.iter();
            let sources: Vec<_> = variants
                .map(|variant| library.variant(&variant.of, &variant.parameters).unwrap())
                .collect();
            let with = library.clone().with_sources(&sources).unwrap();
            assert_eq!(with.own().len(), sources.len());
        }
    }
    assert!(files >= 7, "{files}");
}

#[test]
fn the_42_of_2023_are_all_but_those_that_came_in_2025() {
    let text = include_str!("../../../../examples/regressions-2023.toml");
    let paper = Experiment::read("x.toml", text, None).unwrap().workloads;
    let Chosen::Named(mut names) = paper.chosen else {
        panic!("no names")
    };
    let since =
        ["simple", "sum", "order", "distinct", "count"].map(|one| format!("read-only-{one}"));
    let mut wanted: Vec<String> = published_order()
        .iter()
        .filter_map(|step| step.measured())
        .filter(|name| !since.iter().any(|other| other == name))
        .map(|name| match name {
            "delete" => "delete-existing".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    names.sort();
    wanted.sort();
    assert_eq!(names, wanted);
    assert_eq!(names.len(), 42);
}

#[test]
fn read_only_with_both_ranges_is_what_sysbench_sends() {
    let text = include_str!("../../../../examples/io-method-and-storage.toml");
    let paper = Experiment::read("x.toml", text, None).unwrap().workloads;
    let library = Library::builtin().unwrap();
    for (variant, same_as) in paper
        .variants
        .iter()
        .zip(["read-only-100", "read-only-10000"])
    {
        let source = library.variant(&variant.of, &variant.parameters).unwrap();
        let made = Definition::parse(&source.file, &source.text).unwrap();
        let (made, original) = (
            made.compile(&SIZE).unwrap(),
            library.get(same_as).unwrap().compile(&SIZE).unwrap(),
        );
        assert_eq!(
            (made.statements, made.steps),
            (original.statements, original.steps)
        );
    }
    assert_eq!(paper.variants.len(), 2);
}
