//! The file that `deltabench init` writes.

use crate::names;
use deltabench_experiment::{Chosen, Experiment, STARTER, known_keys};

fn uncommented() -> String {
    let key = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let mut text = String::new();
    for line in STARTER.lines() {
        // `set` stands instead of `only`.
        if line.starts_with("only =") {
            continue;
        }
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let asked = bare.starts_with('[') || key(bare);
        text.push_str(if asked { bare } else { line });
        text.push('\n');
    }
    text
}

#[test]
fn the_starter_reads_at_every_scale() {
    let written = Experiment::read("s.toml", STARTER, None).unwrap();
    assert_eq!(written.scales, ["tiny", "paper"]);
    for scale in &written.scales {
        let experiment = Experiment::read("s.toml", STARTER, Some(scale)).unwrap();
        assert_eq!(names(&experiment), ["postgres:17", "postgres:18"]);
        assert!(experiment.servers()[0].is_base);
        let large = experiment.workloads.chosen == Chosen::Published;
        assert_eq!(large, scale == "paper");
    }
    let repetitions = |scale| {
        let experiment = Experiment::read("s.toml", STARTER, scale).unwrap();
        experiment.parts().len()
    };
    assert_eq!((repetitions(None), repetitions(Some("paper"))), (1, 3));
}

/// The same without the lines of some tables; those after them stay.
fn without(headers: &[&str]) -> String {
    let mut dropping = false;
    let mut text = String::new();
    // Servers that stand behind it are its own.
    let mut of_rocksdb = false;
    for line in uncommented().lines() {
        if line.starts_with('[') {
            of_rocksdb =
                line.starts_with("[rocksdb") || of_rocksdb && line.starts_with("[[servers");
            let header = if of_rocksdb { "[rocksdb" } else { line };
            dropping = headers.iter().any(|asked| header.starts_with(asked));
        }
        if !dropping {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn the_insert_benchmark_of_the_starter_can_be_asked_for() {
    let others = [
        "[[",
        "[rocksdb",
        "[workloads",
        "[pgbench",
        "[orders",
        "[data",
        "[limits",
        "[measurement",
        "[scale",
    ];
    let servers = "[[servers]]\ntarget = \"postgres:17\"\nconfiguration = \"cx10a\"\n";
    let text = without(&others).replace("\nrates =", "\n# rates =") + servers;
    let experiment = Experiment::read("s.toml", &text, None).unwrap();
    let insert = experiment.kinds.insert.unwrap();
    assert_eq!(insert.steps.len(), 3);
    assert_eq!(insert.long_transaction_seconds, Some(60));
    assert_eq!(experiment.workloads.chosen, Chosen::NONE);
}

#[test]
fn order_entry_of_the_starter_can_be_asked_for() {
    let text = uncommented();
    let (_, behind) = text.split_once("\n[orders]").unwrap();
    let (own, _) = behind.split_once("\n[insert]").unwrap();
    let servers = "[[servers]]\ntarget = \"postgres:17\"\nconfiguration = \"cx10a\"\n";
    let text = format!("{}[orders]{own}\n{servers}", crate::HEAD);
    let experiment = Experiment::read("s.toml", &text, None).unwrap();
    let orders = experiment.kinds.orders.as_ref().unwrap();
    assert_eq!(orders.transactions, ["mix"]);
    assert_eq!(experiment.parts().len(), 2);
}

#[test]
fn rocksdb_of_the_starter_can_be_asked_for() {
    let text = uncommented();
    let (_, behind) = text.split_once("\n[rocksdb]").unwrap();
    let (own, _) = behind.split_once("\n[data]").unwrap();
    let text = format!("{}[rocksdb]{own}\n", crate::HEAD);
    let experiment = Experiment::read("s.toml", &text, None).unwrap();
    let rocksdb = experiment.kinds.rocksdb.as_ref().unwrap();
    assert_eq!((rocksdb.steps.len(), rocksdb.options.len()), (3, 1));
    assert_eq!(rocksdb.cache_bytes, Some(1 << 30));
    assert_eq!(experiment.workloads.clients, [1, 4]);
    assert_eq!(experiment.servers().len(), 4);
}

#[test]
fn what_the_starter_explains_can_be_asked_for() {
    // They stand instead of visits.
    let instead = [
        "sustained",
        "residence",
        "primary_key",
        "settle_seconds",
        "placebo",
    ];
    let kept = |line: &&str| {
        !instead
            .iter()
            .any(|key| line.starts_with(&format!("{key} = ")))
    };
    let text = without(&["[insert", "[rocksdb", "[orders"]);
    let text: Vec<&str> = text.lines().filter(kept).collect();
    let text = text.join("\n");
    let experiment = Experiment::read("s.toml", &text, None).unwrap();
    let pgbench = experiment.kinds.pgbench.as_ref().unwrap();
    assert_eq!((pgbench.mixes.len(), experiment.parts().len()), (3, 2));
    assert_eq!(experiment.servers().len(), 2 + 3 + 1);
    assert_eq!(experiment.workloads.variants.len(), 2);
    assert_eq!(experiment.configurations.len(), 1);
    assert_eq!(experiment.builds[0].ldflags.as_deref(), Some(""));
    assert_eq!(experiment.measurement.seed, Some(7));
}

#[test]
fn every_key_of_the_format_is_in_the_starter() {
    let text = format!("{}\nonly = []", uncommented());
    for (table, keys) in known_keys() {
        for key in keys {
            let header = |open: &str| {
                let place = [table, key].into_iter().filter(|part| !part.is_empty());
                let place: Vec<&str> = place.collect();
                text.contains(&format!("\n{open}{}", place.join(".")))
            };
            let found = text.contains(&format!("\n{key} = ")) || header("[") || header("[[");
            assert!(found, "`{key}` of [{table}]");
        }
    }
}
