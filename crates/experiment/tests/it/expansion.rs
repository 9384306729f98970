//! What a file comes to: servers, labels, parts, variants.

use crate::{STUDY, names, pairs, read, with};
use deltabench_experiment::{
    BuildSystem, Checksums, Chosen, DEFAULT_ROWS, Experiment, Measurement, Server, labels,
};
use deltabench_model::plan::{CacheState, CellOrder, DataState, Placement, Transport};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn servers_are_products_in_the_order_of_the_file() {
    let study = read(STUDY);
    assert_eq!(
        names(&study),
        [
            "postgres:14.0 cx10a_c8r32",
            "postgres:14 cx10a_c8r32",
            "postgres:18 cx10b_c8r32 io_workers=2",
            "postgres:18 cx10b_c8r32 io_workers=4",
            "postgres:18 cx10c_c8r32 io_workers=2",
            "postgres:18 cx10c_c8r32 io_workers=4",
            "18 mine",
        ]
    );
    let server = &study.servers()[5];
    let settings = [
        ("io_workers", "4"),
        ("work_mem", "64MB"),
        ("jit", "off"),
        ("pg_stat_statements.track", "all"),
    ];
    assert_eq!(server.settings, pairs(&settings));
    let coordinates = [
        ("target", "postgres:18"),
        ("configuration", "cx10c_c8r32"),
        ("io_workers", "4"),
    ];
    assert_eq!(server.coordinates, pairs(&coordinates));
    assert!(server.optional && !server.is_base);
    let mine = &study.servers()[6];
    let coordinates = [("target", "postgres:18+mine"), ("configuration", "steady")];
    assert_eq!(mine.coordinates, pairs(&coordinates));
    let bases: Vec<bool> = study
        .servers()
        .iter()
        .map(|server| server.is_base)
        .collect();
    assert_eq!(bases.iter().filter(|base| **base).count(), 1);
    assert!(bases[0]);
}

#[test]
fn everything_else_is_told_as_written() {
    let study = read(STUDY);
    assert_eq!(
        (study.file.as_str(), study.text.as_str()),
        ("x.toml", STUDY)
    );
    assert_eq!(study.source.as_deref(), Some("Small Datum, May 2025"));
    let tuned = &study.configurations[0];
    assert_eq!(
        (tuned.name.as_str(), &tuned.include),
        ("tuned", &vec!["cx10a_c8r32".to_owned()])
    );
    let set = [
        ("work_mem", "64MB"),
        ("shared_buffers", "25%"),
        ("random_page_cost", "1.1"),
    ];
    assert_eq!(tuned.set, pairs(&set));
    assert_eq!(tuned.unset, ["vacuum_buffer_usage_limit"]);
    let build = &study.builds[0];
    assert_eq!(
        (build.name.as_str(), build.system),
        ("mine", BuildSystem::Meson)
    );
    assert_eq!(
        (build.cflags.as_deref(), build.ldflags.as_deref()),
        (Some("-O3"), Some(""))
    );
    assert_eq!(build.environment, pairs(&[("AR", "gcc-ar")]));
    let workloads = &study.workloads;
    assert_eq!(workloads.chosen, Chosen::Published);
    assert_eq!(
        (workloads.order, workloads.state),
        (CellOrder::Published, DataState::Aged)
    );
    let variants: Vec<(&str, &[(String, i64)])> = workloads
        .variants
        .iter()
        .map(|variant| (variant.of.as_str(), variant.parameters.as_slice()))
        .collect();
    assert_eq!(
        variants[0],
        ("read-only-100", [("range".to_owned(), 100)].as_slice())
    );
    assert_eq!(variants[1].1, [("range".to_owned(), 10_000)]);
    assert_eq!(
        (study.cache, study.limits_optional),
        (CacheState::Cold, true)
    );
    let measurement = Measurement {
        repetitions: 2,
        blocks: Some(12),
        fixed: false,
        precision: Some("1%".into()),
        budget: Some("2h".into()),
        delta: Some("2%".into()),
        visit_seconds: Some(1.5),
        write_seconds: None,
        warmup: None,
        sustained_seconds: None,
        rotated: false,
        servers_at_once: None,
        procedure: None,
        slice_ms: Some(40),
        rate: Some(1000.0),
        transport: Transport::Tls,
        checksums: Checksums::AsShipped,
        placement: Some(Placement::Split),
        jobs: Some(2),
        probes: true,
        waits: 10,
        counters: false,
        count: true,
        seed: Some(7),
    };
    assert_eq!(study.measurement, measurement);
}

#[test]
fn a_file_of_one_line_has_the_defaults_of_compare() {
    let small = with("servers = [{ target = \"postgres:18\" }]\n");
    assert_eq!(small.measurement, Measurement::default());
    assert_eq!(
        (&small.workloads.chosen, &small.workloads.clients),
        (&Chosen::Quick, &vec![1])
    );
    let parts = small.parts();
    assert_eq!(parts.len(), 1);
    assert_eq!((parts[0].rows, parts[0].tables), (DEFAULT_ROWS, 1));
    assert_eq!((parts[0].repetition, parts[0].of_repetitions), (1, 1));
    assert_eq!((&parts[0].memory, &parts[0].storage), (&None, &None));
    assert!(parts[0].coordinates.is_empty() && small.servers()[0].is_base);
}

#[test]
fn parts_are_a_product_whose_first_axis_varies_slowest() {
    let parts = read(STUDY).parts();
    assert_eq!(parts.len(), 2 * 2 * 2 * 2);
    let told: Vec<(u64, Option<&str>, Option<&str>, u32)> = parts
        .iter()
        .map(|part| {
            (
                part.rows,
                part.storage.as_deref(),
                part.memory.as_deref(),
                part.repetition,
            )
        })
        .collect();
    let numbers: Vec<u32> = parts.iter().map(|part| part.number).collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<u32>>());
    assert_eq!(told[0], (200_000, Some("gp3-3000"), Some("2GB"), 1));
    assert_eq!(told[1], (200_000, Some("gp3-3000"), Some("2GB"), 2));
    assert_eq!(told[2], (200_000, Some("gp3-3000"), None, 1));
    assert_eq!(told[4], (200_000, None, Some("2GB"), 1));
    assert_eq!(told[8], (50_000_000, Some("gp3-3000"), Some("2GB"), 1));
    // Tables do not vary, so they are no coordinate; the limits stand in the order of the file.
    let coordinates = [
        ("rows", "50000000"),
        ("storage", "as-is"),
        ("memory", "none"),
    ];
    assert_eq!(parts[15].coordinates, pairs(&coordinates));
}

#[test]
fn the_base_is_found_by_label_target_or_name() {
    let base = |base: &str| {
        let study = read(&STUDY.replace("base = \"postgres:14.0\"", &format!("base = \"{base}\"")));
        study
            .servers()
            .iter()
            .position(|server| server.is_base)
            .unwrap()
    };
    assert_eq!(base("postgres:14"), 1);
    assert_eq!(base("postgres:14 cx10a_c8r32"), 1);
    assert_eq!(base("18 mine"), 6);
    assert_eq!(base("postgres:18+mine"), 6);
    assert_eq!(base("postgres:18+mine steady"), 6);
}

fn resolved(experiment: &Experiment, to: &[&str]) -> Vec<String> {
    let pairs: Vec<(&Server, &str)> = experiment
        .servers()
        .iter()
        .zip(to.iter().copied())
        .collect();
    labels(&pairs)
}

#[test]
fn labels_hold_what_tells_servers_apart_and_no_more() {
    let plain = with("servers = [{ target = [\"postgres:17\", \"postgres:18\"] }]\n");
    assert_eq!(
        resolved(&plain, &["postgres:17.11", "postgres:18.6"]),
        ["postgres:17.11", "postgres:18.6"]
    );
    let one = with(
        "[[servers]]\ntarget = [\"postgres:17\", \"postgres:18\"]\nconfiguration = \"cx7\"\n\
         settings.work_mem = \"1GB\"\n",
    );
    assert_eq!(names(&one), ["postgres:17", "postgres:18"]);
    let study = read(STUDY);
    let six = "postgres:18.6";
    assert_eq!(
        resolved(
            &study,
            &[
                "postgres:14.0",
                "postgres:14.24",
                six,
                six,
                six,
                six,
                "postgres:18.6+mine"
            ]
        )[5..],
        ["postgres:18.6 cx10c_c8r32 io_workers=4", "18 mine"]
    );
}

#[test]
fn settings_that_only_entries_differ_in_are_told_too() {
    let study = with(
        "[[servers]]\ntarget = \"postgres:18\"\nsettings = { jit = true, work_mem = \"4MB\" }\n\
         [[servers]]\ntarget = \"postgres:18\"\nsettings = { work_mem = \"4MB\" }\n\
         [[servers]]\ntarget = \"postgres:17\"\nsettings = { work_mem = \"8MB\" }\n",
    );
    assert_eq!(
        names(&study),
        ["postgres:18 jit=on", "postgres:18", "postgres:17"]
    );
}

#[test]
fn a_configuration_beside_none_is_steady_and_can_be_named() {
    let study =
        with("servers = [{ target = \"postgres:18\", configuration = [\"steady\", \"cx7\"] }]\n");
    assert_eq!(names(&study), ["postgres:18 steady", "postgres:18 cx7"]);
    let configurations: Vec<Option<&str>> = study
        .servers()
        .iter()
        .map(|server| server.configuration.as_deref())
        .collect();
    assert_eq!(configurations, [None, Some("cx7")]);
}

#[test]
fn targets_that_came_to_the_same_version_are_told_apart_by_what_was_asked() {
    let study = with(
        "[[servers]]\ntarget = [\"postgres:18\", \"postgres:18.6\", \"path:/opt/pg\"]\n\
         [[servers]]\ntarget = \"postgres:17\"\nlabel = \"postgres:18.5\"\n\
         [[servers]]\ntarget = \"path:/opt/other\"\n",
    );
    assert_eq!(
        resolved(
            &study,
            &[
                "postgres:18.6",
                "postgres:18.6",
                "postgres:18.5",
                "x",
                "postgres:18.6"
            ]
        ),
        [
            "postgres:18.6 (postgres:18)",
            "postgres:18.6",
            "postgres:18.5 (path:/opt/pg)",
            "postgres:18.5",
            "postgres:18.6 (path:/opt/other)",
        ]
    );
}

#[test]
fn labels_that_still_clash_are_numbered() {
    let study = with(
        "[[servers]]\ntarget = [\"postgres:18\", \"postgres:17\"]\n\
         [[servers]]\ntarget = \"postgres:16\"\nlabel = \"x (postgres:18)\"\n",
    );
    assert_eq!(
        resolved(&study, &["x", "x", "y"]),
        ["x (postgres:18) #1", "x (postgres:17)", "x (postgres:18)"]
    );
}

proptest! {
    #[test]
    fn products_have_the_right_size_and_nothing_is_there_twice(
        entries in prop::collection::vec(
            (1..4usize, 0..4usize, prop::collection::vec(1..4usize, 0..3)),
            1..4,
        ),
        sizes in prop::array::uniform4(1..4usize),
        repetitions in 1..4usize,
        same_version in any::<bool>(),
    ) {
        let (text, count) = written(&entries, &sizes, repetitions);
        let study = with(&text);
        prop_assert_eq!(study.servers().len(), count);
        let all_different = |words: Vec<String>| {
            words.iter().collect::<BTreeSet<_>>().len() == words.len()
        };
        prop_assert!(all_different(names(&study)));
        let servers = study.servers().iter();
        let coordinates: Vec<String> =
            servers.map(|server| format!("{:?}", server.coordinates)).collect();
        prop_assert!(all_different(coordinates));
        let targets: Vec<String> = study
            .servers()
            .iter()
            .map(|server| if same_version { "postgres:18.6".into() } else { server.target.to_string() })
            .collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let labels = resolved(&study, &targets);
        prop_assert_eq!(labels.len(), count);
        prop_assert!(all_different(labels));
        let parts = study.parts();
        prop_assert_eq!(parts.len(), sizes.iter().product::<usize>() * repetitions);
        let places: Vec<String> = parts
            .iter()
            .map(|part| format!("{:?} {}", part.coordinates, part.repetition))
            .collect();
        prop_assert!(all_different(places));
    }
}

/// A file with so many targets, configurations and values of settings in each entry, and so many values on
/// each axis; and how many servers that is.
fn written(
    entries: &[(usize, usize, Vec<usize>)],
    sizes: &[usize; 4],
    repetitions: usize,
) -> (String, usize) {
    let list = |count: usize, word: &dyn Fn(usize) -> String| {
        let words: Vec<String> = (0..count).map(word).collect();
        format!("[{}]", words.join(", "))
    };
    let (mut text, mut count) = (String::new(), 0);
    for (number, (targets, configurations, settings)) in entries.iter().enumerate() {
        let minor = |index: usize| format!("\"postgres:1{}.{index}\"", 4 + number);
        text.push_str(&format!(
            "[[servers]]\ntarget = {}\n",
            list(*targets, &minor)
        ));
        if *configurations > 0 {
            let names = list(*configurations, &|index| format!("\"c{index}\""));
            text.push_str(&format!("configuration = {names}\n"));
        }
        for (number, values) in settings.iter().enumerate() {
            let values = list(*values, &|index| index.to_string());
            text.push_str(&format!("settings.s{number} = {values}\n"));
        }
        count += targets * (*configurations).max(1) * settings.iter().product::<usize>();
    }
    let [rows, tables, memory, storage] = *sizes;
    text.push_str(&format!(
        "[limits]\nstorage = {}\nmemory = {}\n[data]\nrows = {}\ntables = {}\n\
         [measurement]\nrepetitions = {}\n",
        list(storage, &|index| format!("\"p{index}\"")),
        list(memory, &|index| format!("\"{}GB\"", index + 1)),
        list(rows, &|index| (index + 1000).to_string()),
        list(tables, &|index| (index + 1).to_string()),
        repetitions
    ));
    (text, count)
}
