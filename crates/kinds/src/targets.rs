//! Whether targets are of the sort that a kind of benchmark measures.

use deltabench_model::installation::Engine;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::planning::ServerWish;

/// Refuses targets that a command cannot measure, before anything of them is fetched: `rocksdb` says whether
/// it measures RocksDB, else it measures PostgreSQL.
///
/// Errors: the first that is of the other kind, or libraries beside a `db_bench`.
pub fn check_targets(specs: &[TargetSpec], rocksdb: bool) -> Result<(), Problem> {
    let kinds = specs.iter().map(|spec| match spec {
        TargetSpec::Rocksdb(_) | TargetSpec::RocksdbPath(_) => (spec.to_string(), Engine::Rocksdb),
        TargetSpec::DbBench(_) => (spec.to_string(), Engine::DbBench),
        _ => (spec.to_string(), Engine::Postgres),
    });
    check_kinds(kinds, rocksdb)
}

/// The same of targets that are there.
///
/// Errors: as [`check_targets`].
pub(crate) fn check_wishes(wishes: &[&ServerWish], rocksdb: bool) -> Result<(), Problem> {
    let kinds = wishes.iter().map(|wish| {
        let installation = &wish.installation;
        (installation.asked.clone(), installation.engine)
    });
    check_kinds(kinds, rocksdb)
}

fn check_kinds(
    kinds: impl Iterator<Item = (String, Engine)>,
    rocksdb: bool,
) -> Result<(), Problem> {
    let mut first: Option<(String, Engine)> = None;
    for (name, engine) in kinds {
        match (engine, rocksdb) {
            (Engine::Postgres, true) => {
                return Err(Problem::new(format!("{name} is not RocksDB"))
                    .detail("the library of RocksDB does its steps, not a server")
                    .hint(
                        "name a version, for example rocksdb:10.2.1; use `deltabench compare` for \
                           servers",
                    ));
            }
            (Engine::Rocksdb | Engine::DbBench, false) => {
                return Err(Problem::new(format!("{name} is not a PostgreSQL server"))
                    .detail("this command measures SQL statements")
                    .hint("use `deltabench rocksdb` for RocksDB"));
            }
            _ => {}
        }
        match &first {
            Some((other, kind)) if *kind != engine => {
                return Err(
                    Problem::new(format!("{other} and {name} cannot be compared"))
                        .detail(
                            "deltabench measures a library in turns of the same operations, but a \
                             db_bench measures itself for a whole step: the difference would come from \
                             the methods",
                        )
                        .hint("compare libraries with libraries, or one db_bench with another"),
                );
            }
            Some(_) => {}
            None => first = Some((name, engine)),
        }
    }
    Ok(())
}
