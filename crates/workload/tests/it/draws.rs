//! What the parameters of the built-in workloads are drawn from.

use crate::{SIZE, definition, executable, many, operation, operation_of};
use deltabench_model::plan::DataSize;
use deltabench_workload::Library;
use deltabench_workload::executable::Draws;
use std::collections::BTreeSet;

#[test]
fn ids_are_independent_and_uniform_over_the_rows() {
    for name in [
        "point-query",
        "random-points-100",
        "points-covered-si",
        "points-notcovered-pk",
        "update-index",
        "delete",
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
        let all: BTreeSet<i64> = drawn.iter().flat_map(|one| one.numbers.clone()).collect();
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
        ("read-write-10", 12, 9),
        ("read-write-100", 13, 99),
    ] {
        let executable = executable(name);
        let mut draws = Draws::new(9, 0);
        let mut starts = Vec::new();
        for _ in 0..5_000 {
            let numbers = operation(&executable, &mut draws).remove(step).numbers;
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
fn points_share_a_table_and_each_range_draws_its_own() {
    let executable = executable("read-only-10");
    let mut draws = Draws::new(5, 0);
    let mut differed = 0;
    for _ in 0..1000 {
        let sent = operation(&executable, &mut draws);
        assert!(sent[1..11].iter().all(|one| one.table() == sent[1].table()));
        let ids: BTreeSet<i64> = sent[1..11].iter().map(|one| one.numbers[0]).collect();
        assert!(ids.len() > 1, "ten points must be ten draws");
        differed += u32::from(sent[1].table() != sent[11].table());
    }
    // One in eight pairs of draws agrees.
    assert!((830..920).contains(&differed), "{differed}");
}

#[test]
fn what_is_deleted_is_put_back_with_new_contents() {
    for (name, delete) in [("write-only", 3), ("read-write-10", 17)] {
        let executable = executable(name);
        let mut draws = Draws::new(2, 0);
        let mut ids = BTreeSet::new();
        for _ in 0..500 {
            let sent = operation(&executable, &mut draws);
            let (gone, back) = (&sent[delete], &sent[delete + 1]);
            assert_eq!(gone.numbers[0], back.numbers[0]);
            assert_eq!(gone.table(), back.table());
            assert!(
                (1..=10_000).contains(&back.numbers[1]),
                "k is drawn over the rows"
            );
            assert_ne!(back.numbers[0], back.numbers[1], "k is a draw of its own");
            assert_eq!((back.texts[2].len(), back.texts[3].len()), (119, 59));
            ids.insert(gone.numbers[0]);
        }
        assert!(
            ids.len() > 480,
            "{}: a new row for each operation",
            ids.len()
        );
    }
}

#[test]
fn texts_are_groups_of_eleven_digits() {
    for name in [
        "update-nonindex",
        "update-inlist",
        "update-one",
        "update-zipf",
        "insert",
    ] {
        let drawn = many(name, 50);
        for one in &drawn {
            for text in one.texts.iter().filter(|text| !text.is_empty()) {
                let groups: Vec<&[u8]> = text.split(|byte| *byte == b'-').collect();
                assert_eq!(groups.len(), if text.len() == 119 { 10 } else { 5 });
                let digits =
                    |group: &&[u8]| group.len() == 11 && group.iter().all(u8::is_ascii_digit);
                assert!(groups.iter().all(digits), "{name}");
            }
            assert!(name != "update-one" || one.numbers[1] == 1);
        }
        assert_ne!(drawn[0].texts, drawn[1].texts, "{name}");
    }
}

#[test]
fn zipf_makes_the_first_rows_hot_in_order() {
    let drawn = many("update-zipf", 100_000);
    let mut counts = vec![0_u32; 10_001];
    for one in &drawn {
        counts[usize::try_from(one.numbers[1]).unwrap()] += 1;
    }
    let total: f64 = (1..=10_000_u32)
        .map(|rank| f64::from(rank).powf(-0.8))
        .sum();
    for rank in [1_u32, 2, 3, 10] {
        let expected = 100_000.0 * f64::from(rank).powf(-0.8) / total;
        let found = f64::from(counts[usize::try_from(rank).unwrap()]);
        assert!(
            (found - expected).abs() < 4.5 * expected.sqrt(),
            "{rank}: {found} {expected}"
        );
    }
    assert_eq!(counts[0], 0);
}

#[test]
fn every_client_scans_its_own_table_and_nothing_is_drawn() {
    let executable = executable("scan");
    let mut draws = Draws::new(1, 0);
    for client in [0, 1, 7, 8, 9, 8] {
        let sent = operation_of(&executable, &mut draws, client);
        assert_eq!(sent[0].table(), Some(client % 8 + 1));
    }
}

#[test]
fn every_row_of_every_table_is_deleted_once_over_all_slices() {
    let size = DataSize {
        tables: 3,
        rows: 1000,
    };
    let executable = definition("delete-existing").compile(&size).unwrap();
    assert_eq!(executable.operations_max, Some(3000));
    let mut gone = BTreeSet::new();
    let mut first = 0;
    let mut seen = Vec::new();
    // Slices of uneven length, each with a seed of its own, as a visit has them.
    for (seed, length) in [(1, 7), (2, 1000), (3, 993), (4, 1), (5, 999)] {
        let mut draws = Draws::new(seed, first);
        for _ in 0..length {
            let one = operation(&executable, &mut draws).remove(0);
            assert!(gone.insert((one.table().unwrap(), one.numbers[0])));
            seen.push(one.numbers[0]);
        }
        first += length;
    }
    assert_eq!(first, 3000);
    assert!(
        gone.iter()
            .all(|(table, id)| (1..=3).contains(table) && (1..=1000).contains(id))
    );
    // Each id comes three times in a row, once for each table.
    let ids: Vec<i64> = seen.into_iter().step_by(3).collect();
    let rising = ids.windows(2).filter(|pair| pair[1] > pair[0]).count();
    assert!((450..550).contains(&rising), "not in order: {rising}");
}

#[test]
fn the_same_seed_sends_the_same_operations_to_every_server() {
    for definition in Library::builtin().unwrap().all() {
        let name = &definition.name;
        // Two servers, each with its own copy of the workload, as the driver has them.
        let draw = |seed: u64| {
            let executable = definition.compile(&SIZE).unwrap();
            let mut draws = Draws::new(seed, 40);
            (0..20)
                .map(|_| operation(&executable, &mut draws))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1), "{name}");
        let fixed = ["scan", "delete-existing", "connect"].contains(&name.as_str());
        assert_eq!(draw(1) == draw(2), fixed, "{name}");
    }
}

#[test]
fn a_slice_that_goes_on_draws_as_one_that_never_stopped_where_only_the_number_counts() {
    let executable = executable("delete-existing");
    let mut whole = Draws::new(1, 0);
    let all: Vec<_> = (0..30)
        .map(|_| operation(&executable, &mut whole))
        .collect();
    let mut later = Draws::new(99, 20);
    let rest: Vec<_> = (0..10)
        .map(|_| operation(&executable, &mut later))
        .collect();
    assert_eq!(all[20..], rest);
}
