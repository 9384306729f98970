//! The published studies of `examples/`.

use deltabench_experiment::kinds::{Rocksdb, ScaleFactor};
use deltabench_experiment::{Chosen, Experiment};
use deltabench_model::target::TargetSpec;
use deltabench_model::units::count;
use deltabench_model::work::insert::{InsertStep, Pacing};
use deltabench_model::work::rocksdb::{RocksdbStep, RocksdbWorkload};
use std::path::PathBuf;

/// Every file of `examples/` and its text.
fn examples() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn at(name: &str, text: &str, scale: &str) -> Experiment {
    Experiment::read(&format!("examples/{name}.toml"), text, Some(scale))
        .unwrap_or_else(|problem| panic!("{name} at {scale}: {problem}"))
}

#[test]
fn examples_read_at_every_scale() {
    let examples = examples();
    assert!(examples.len() >= 12, "{}", examples.len());
    for (name, text) in examples {
        let file = format!("examples/{name}.toml");
        let written = Experiment::read(&file, &text, None).unwrap();
        assert_eq!(written.name, name, "a study is called as its file");
        assert!(
            written.source.is_some() && written.about.is_some(),
            "{name}"
        );
        // The second report of a study that published two.
        let more: &[&str] = match name.as_str() {
            "insert-small-io" => &["paper-18", "published"],
            "insert-small-cached" | "large-server" => &["published"],
            "small-server-cached" | "small-server-io-bound" | "io-method-and-storage" => {
                &["published"]
            }
            "pgbench-since-7-4" => &["paper-128mb"],
            "rocksdb-6-to-10" => &["paper-24", "paper-32"],
            _ => &[],
        };
        let scales = [&["tiny", "small", "paper"], more].concat();
        assert_eq!(written.scales, scales, "{name}");
        let mut paper = at(&name, &text, "paper");
        assert_eq!(paper.scale.take().as_deref(), Some("paper"));
        assert_eq!(paper, written, "{name} as written is as published");
        let about = |scale| at(&name, &text, scale).subject().unwrap();
        assert_eq!(about("paper"), written.about.clone().unwrap());
        assert!(about("tiny").starts_with("as written, without a scale: "));
    }
}

#[test]
fn tiny_needs_no_build_but_where_builds_are_what_is_compared() {
    for (name, text) in examples() {
        let tiny = at(&name, &text, "tiny");
        let prebuilt = |server: &deltabench_experiment::Server| {
            matches!(
                server.target,
                TargetSpec::Prebuilt(_) | TargetSpec::Rocksdb(_)
            )
        };
        if name != "builds-2023" {
            assert!(tiny.servers().iter().all(prebuilt), "{name}");
        }
        assert!((2..=5).contains(&tiny.servers().len()), "{name}");
        match (&tiny.kinds.pgbench, &tiny.kinds.insert) {
            (Some(pgbench), _) => {
                let cells = pgbench.mixes.len() * tiny.workloads.clients.len();
                assert!((2..=4).contains(&cells), "{name}: {cells} cells");
                let scale = tiny.parts()[0].scale;
                assert_eq!(scale, ScaleFactor::Factor(2), "{name}");
            }
            (_, Some(insert)) => {
                let waiting = insert.steps.iter().filter(|step| step.queries()).count();
                let seconds = u64::from(insert.query_seconds) * count(waiting);
                assert!(seconds <= 20, "{name}: {seconds} s of queries in a pass");
                let rows = tiny.parts()[0].rows * u64::from(insert.clients);
                assert!((100_000..=400_000).contains(&rows), "{name}");
            }
            (None, None) if tiny.kinds.rocksdb.is_some() => {
                let seconds = tiny.kinds.rocksdb.as_ref().map(|rocksdb| rocksdb.seconds);
                assert_eq!(seconds, Some(1), "{name}");
                let keys = tiny.parts()[0].rows;
                assert!((20_000..=200_000).contains(&keys), "{name}: {keys} keys");
            }
            (None, None) if tiny.kinds.orders.is_some() => {
                assert_eq!(tiny.parts()[0].scale, ScaleFactor::Factor(1), "{name}");
                assert!(tiny.parts().len() == 1 && tiny.workloads.clients.len() <= 2);
            }
            (None, None) => sysbench_at_tiny(&name, &tiny),
        }
        assert!(
            tiny.limits_optional || tiny.parts().iter().all(|part| part.memory.is_none()),
            "{name}: CI may not be allowed to limit memory"
        );
    }
}

fn sysbench_at_tiny(name: &str, tiny: &Experiment) {
    for part in tiny.parts() {
        assert!((20_000..=200_000).contains(&part.rows), "{name}");
    }
    let workloads = match &tiny.workloads.chosen {
        Chosen::Named(names) => names.len() + tiny.workloads.variants.len(),
        other => panic!("{name} at tiny runs {other:?}"),
    };
    let cells = workloads * tiny.workloads.clients.len();
    assert!((2..=4).contains(&cells), "{name}: {cells} cells");
}

/// Name, servers, parts, workloads (`None`: the published set) and client counts.
type Wanted = (&'static str, usize, usize, Option<usize>, &'static [u32]);

#[test]
fn paper_is_as_large_as_published() {
    let wanted: &[Wanted] = &[
        ("builds-2023", 5, 1, Some(42), &[1, 4]),
        ("insert-io-workers", 6, 1, Some(10), &[20]),
        ("insert-small-cached", 11, 1, Some(10), &[1]),
        ("insert-small-io", 11, 1, Some(10), &[1]),
        ("io-method-and-storage", 4, 4, Some(2), &[1, 10, 50]),
        ("large-server", 4, 1, None, &[40]),
        ("orders-12-to-18", 7, 2, Some(1), &[1, 6]),
        (
            "pgbench-since-7-4",
            10,
            9,
            Some(2),
            &[1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32],
        ),
        ("regressions-2023", 6, 1, Some(42), &[1, 4]),
        ("rocksdb-6-to-10", 34, 1, Some(5), &[1]),
        (
            "scaleup",
            2,
            1,
            None,
            &[1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48],
        ),
        ("small-server-cached", 11, 1, None, &[1]),
        ("small-server-io-bound", 11, 1, None, &[1]),
    ];
    let examples = examples();
    for &(name, servers, parts, workloads, clients) in wanted {
        let (_, text) = examples.iter().find(|(other, _)| other == name).unwrap();
        let paper = at(name, text, "paper");
        assert_eq!(paper.servers().len(), servers, "{name}");
        assert_eq!(paper.parts().len(), parts, "{name}");
        assert_eq!(paper.workloads.clients, clients, "{name}");
        let variants = paper.workloads.variants.len();
        let steps = paper
            .kinds
            .insert
            .as_ref()
            .map_or(0, |insert| insert.steps.len());
        let scripts = paper
            .kinds
            .pgbench
            .as_ref()
            .map_or(0, |own| own.mixes.len());
        let measured = |rocksdb: &Rocksdb| {
            let measured = rocksdb.steps.iter().filter(|step| step.is_measured());
            measured.count()
        };
        let orders = paper.kinds.orders.as_ref();
        let transactions = orders.map_or(0, |own| own.transactions.len());
        let links = paper.kinds.rocksdb.as_ref().map_or(0, measured);
        let found = match &paper.workloads.chosen {
            Chosen::Named(names) => {
                Some(names.len() + variants + steps + scripts + transactions + links)
            }
            Chosen::Published | Chosen::Quick => None,
        };
        assert_eq!(found, workloads, "{name}");
    }
    assert_eq!(
        examples.len(),
        wanted.len(),
        "every example is in this table"
    );
}

#[test]
fn the_insert_benchmark_is_as_large_as_published() {
    let sizes = |name: &str| {
        let examples = examples();
        let (_, text) = examples.iter().find(|(other, _)| other == name).unwrap();
        let paper = at(name, text, "paper");
        let insert = paper.kinds.insert.as_ref().unwrap();
        assert_eq!(insert.steps, InsertStep::published(&[100, 500, 1000]));
        assert_eq!((insert.query_seconds, insert.pacing), (1800, Pacing::Burst));
        (paper.parts()[0].rows, insert.write_rows)
    };
    const M: u64 = 1_000_000;
    assert_eq!(sizes("insert-small-cached"), (20 * M, 50 * M));
    assert_eq!(sizes("insert-small-io"), (800 * M, 5 * M));
    assert_eq!(sizes("insert-io-workers"), (200 * M, 5 * M));
}

#[test]
fn rocksdb_is_as_large_as_published() {
    const M: u64 = 1_000_000;
    let examples = examples();
    let (name, text) = examples
        .iter()
        .find(|(name, _)| name == "rocksdb-6-to-10")
        .unwrap();
    // Keys, threads, GB of block cache, background jobs.
    for (scale, wanted) in [
        ("paper", (20 * M, 1, 20, 4)),
        ("paper-24", (40 * M, 16, 48, 12)),
        ("paper-32", (50 * M, 24, 90, 8)),
    ] {
        let paper = at(name, text, scale);
        let rocksdb = paper.kinds.rocksdb.as_ref().unwrap();
        let cache = rocksdb.cache_bytes.unwrap() >> 30;
        let found = (
            paper.parts()[0].rows,
            rocksdb.threads[0],
            cache,
            rocksdb.background_jobs,
        );
        assert_eq!(found, wanted, "{scale}");
        assert_eq!(rocksdb.workload, RocksdbWorkload::Byrx);
        assert_eq!((rocksdb.seconds, rocksdb.value_bytes), (1800, 400));
        assert_eq!(rocksdb.steps, RocksdbStep::published());
        let cached = |word: &str| {
            let has = |setting: &(String, String)| setting.1 == word;
            let servers = paper.servers().iter();
            servers
                .filter(|server| server.settings.iter().any(has))
                .count()
        };
        assert_eq!((cached("lru"), cached("hyper-clock")), (18, 16));
        assert_eq!(paper.servers()[0].name(), "rocksdb:6.29.5 lru");
    }
}
