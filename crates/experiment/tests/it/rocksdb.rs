//! `[rocksdb]`.

use crate::{HEAD, refused};
use deltabench_experiment::{Chosen, Experiment, Part};
use deltabench_model::work::rocksdb::RocksdbWorkload;

/// A file that measures RocksDB.
fn rocksdb_file(servers: &str, rest: &str) -> String {
    format!("{HEAD}[[servers]]\n{servers}\n{rest}")
}

fn keys(parts: &[Part]) -> Vec<String> {
    let all = parts.iter().flat_map(|part| &part.coordinates);
    all.map(|(axis, value)| format!("{axis} {value}")).collect()
}

const TWO_VERSIONS: &str = "target = [\"rocksdb:6.29.5\", \"rocksdb:10.2.1\"]";

#[test]
fn every_key_of_rocksdb_is_told_as_written() {
    let text = rocksdb_file(
        TWO_VERSIONS,
        "[rocksdb]\nworkload = \"iobuf\"\nkeys = [10_000, 20_000]\nvalue_bytes = 100\nthreads = [1, 4]\n\
         seconds = 3\nwriter_rate = \"1MB\"\nsteps = [\"fillseq\", \"drain\", \"readrandom\"]\n\
         cache_size = \"64MB\"\nbackground_jobs = 3\nplacebo = false\n\
         options = { allow_mmap_reads = true, ttl = 0 }\n[scale.tiny]\nrocksdb.keys = 1000\n",
    );
    let written = crate::read(&text);
    let rocksdb = written.kinds.rocksdb.clone().unwrap();
    assert_eq!(rocksdb.workload, RocksdbWorkload::Iobuf);
    assert_eq!((rocksdb.value_bytes, rocksdb.seconds), (100, 3));
    assert_eq!(rocksdb.writer_bytes_per_second, 1 << 20);
    assert_eq!(
        (rocksdb.cache_bytes, rocksdb.background_jobs),
        (Some(64 << 20), 3)
    );
    let names: Vec<&str> = rocksdb.steps.iter().map(|step| step.name()).collect();
    assert_eq!(names, ["fillseq", "drain", "readrandom"]);
    let options = crate::pairs(&[("allow_mmap_reads", "true"), ("ttl", "0")]);
    assert_eq!(rocksdb.options, options);
    assert!(!rocksdb.placebo);
    assert_eq!(written.workloads.clients, [1, 4]);
    assert_eq!(written.workloads.chosen, Chosen::NONE);
    assert_eq!(keys(&written.parts()), ["keys 10000", "keys 20000"]);
    let only = |filter: &str| written.only(&[filter.to_owned()]).unwrap();
    assert_eq!(only("keys=20_000").parts()[0].rows, 20_000);
    assert_eq!(only("clients=4").workloads.clients, [4]);
    let tiny = Experiment::read("x.toml", &text, Some("tiny")).unwrap();
    assert_eq!(tiny.parts()[0].rows, 1000);
}

#[test]
fn block_caches_are_an_axis_of_servers_that_have_them() {
    let text = rocksdb_file(
        "target = \"rocksdb:6.29.5\"\nsettings = { ttl = 0 }",
        "[[servers]]\ntarget = [\"rocksdb:8.11.4\", \"rocksdb:10.2.1\"]\n\
         block_cache = [\"lru\", \"hyper-clock\"]\n[rocksdb]\n",
    );
    let study = crate::read(&text);
    assert_eq!(
        crate::names(&study),
        [
            "rocksdb:6.29.5 lru",
            "rocksdb:8.11.4 lru",
            "rocksdb:8.11.4 hyper-clock",
            "rocksdb:10.2.1 lru",
            "rocksdb:10.2.1 hyper-clock",
        ]
    );
    let servers = study.servers();
    assert_eq!(
        servers[0].settings,
        crate::pairs(&[("block_cache", "lru"), ("ttl", "0")])
    );
    assert_eq!(
        servers[2].coordinates,
        crate::pairs(&[("target", "rocksdb:8.11.4"), ("block_cache", "hyper-clock")])
    );
    let hyper = study.only(&["block_cache=hyper*".to_owned()]).unwrap();
    assert_eq!(hyper.servers().len(), 3, "and the base");
    let plain = crate::read(&rocksdb_file(TWO_VERSIONS, "[rocksdb]\n"));
    assert_eq!(crate::names(&plain), ["rocksdb:6.29.5", "rocksdb:10.2.1"]);
}

/// What an entry has more, what the file says, and what the problem must then say.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "",
        "[rocksdb]\nkeys = 10\n",
        "`keys` is 10, but must be 1000 to",
    ),
    (
        "",
        "[rocksdb]\nworkload = \"byrxx\"\n",
        "did you mean \"byrx\"?",
    ),
    (
        "",
        "[rocksdb]\nsteps = [\"fillsek\"]\n",
        "did you mean \"fillseq\"?",
    ),
    ("", "[rocksdb]\nsteps = []\n", "`steps` is an empty list"),
    (
        "",
        "[rocksdb]\ncache_size = \"64\"\n",
        "which is not a size",
    ),
    (
        "",
        "[rocksdb]\noptions = { wal_dir = \"/x\" }\n",
        "option `wal_dir` cannot be chosen",
    ),
    ("", "[rocksdb]\nthread = 1\n", "did you mean `threads`?"),
    (
        "",
        "[rocksdb]\n[data]\nrows = 1000\n",
        "[data] and [rocksdb] exclude each other",
    ),
    (
        "",
        "[rocksdb]\n[insert]\n",
        "[insert] and [rocksdb] exclude each other",
    ),
    (
        "",
        "[rocksdb]\n[measurement]\nprobes = true\n",
        "`probes` of [measurement] and [rocksdb] exclude each other",
    ),
    (
        "",
        "[rocksdb]\n[measurement]\ntransport = \"tcp\"\n",
        "`transport` of [measurement] and [rocksdb] exclude each other",
    ),
    (
        "configuration = \"cx10a\"",
        "[rocksdb]\n",
        "`configuration` applies only to servers",
    ),
    (
        "block_cache = \"clock\"",
        "[rocksdb]\n",
        "known: lru, hyper-clock",
    ),
    (
        "block_cache = [\"lru\", \"hyper-clock\"]",
        "[rocksdb]\n",
        "rocksdb:6.29.5 has no block cache \"hyper-clock\"",
    ),
    (
        "settings = { block_cache = \"lru\" }",
        "[rocksdb]\n",
        "cannot choose the block cache",
    ),
    ("", "", "rocksdb:6.29.5 is not a server"),
    (
        "[[servers]]\ntarget = \"postgres:18\"",
        "[rocksdb]\n",
        "postgres:18 is a server, but this file measures [rocksdb]",
    ),
    (
        "[[servers]]\ntarget = \"db_bench:/x\"",
        "[rocksdb]\n",
        "db_bench:/x is not compared with rocksdb:6.29.5",
    ),
];

#[test]
fn what_rocksdb_cannot_have_is_refused_with_its_line() {
    for (server, rest, what) in MISTAKES {
        let problem = refused(&rocksdb_file(&format!("{TWO_VERSIONS}\n{server}"), rest));
        assert!(problem.starts_with("error: x.toml:"), "{problem}");
        assert!(
            problem.contains(what),
            "{server} {rest}\nwanted {what}\n{problem}"
        );
    }
    let server = refused(&format!(
        "{HEAD}[[servers]]\ntarget = \"postgres:18\"\nblock_cache = \"lru\"\n"
    ));
    assert!(
        server.contains("`block_cache` applies only to targets of RocksDB"),
        "{server}"
    );
}
