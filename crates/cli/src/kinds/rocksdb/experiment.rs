//! `[rocksdb]` of an experiment, as a request has it.

use super::sizes::SLICE_MS;
use super::{KEY_BYTES, warmup};
use crate::kinds::chain::needed;
use deltabench_compare::looks;
use deltabench_experiment::kinds::Rocksdb;
use deltabench_experiment::{Experiment, Part};
use deltabench_model::plan::{DataSize, Placement, Stopping, Timing};
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep};
use deltabench_run::planning::{Jobs, Request, Selection};

/// Blocks of a file that does not say how many: as the command has it.
const BLOCKS: u32 = 8;

/// Gives a request what the file says of RocksDB, if it does.
pub fn apply(experiment: &Experiment, part: &Part, request: &mut Request) {
    let Some(own) = &experiment.kinds.rocksdb else {
        return;
    };
    let keys = part.rows;
    let setup = setup(experiment, own, keys);
    let measurement = &experiment.measurement;
    request.clients.clone_from(&setup.threads);
    request.data = DataSize {
        tables: 1,
        rows: keys,
    };
    request.timing = Timing {
        blocks: measurement.blocks.unwrap_or(BLOCKS),
        slice_ms: measurement.slice_ms.unwrap_or(SLICE_MS),
        visit_seconds: f64::from(setup.seconds),
        warmup_seconds: warmup(setup.seconds),
        connections_per_visit: 1,
        sustained: false,
        write_seconds: None,
        warmup_chosen: false,
        rotated: false,
        ..request.timing.clone()
    };
    request.selection = Selection::Named(Vec::new());
    request.placement = (Placement::Free, Placement::Free);
    request.jobs = Jobs::Count(1);
    request.checksums = None;
    if let Stopping::Sequential { looks: all } = &mut request.stopping {
        *all = looks(request.timing.blocks);
    }
    request.placebo = own.placebo;
    request.work = Work::Rocksdb(setup);
}

fn setup(experiment: &Experiment, own: &Rocksdb, keys: u64) -> RocksdbSetup {
    // The writer beside readers changes the database, too.
    let makes = |step: &RocksdbStep| step.writes() || step.beside_a_writer() || !step.is_measured();
    let wanted = |step: &RocksdbStep| experiment.wants_workload(step.name());
    let setup = RocksdbSetup {
        workload: own.workload,
        keys,
        key_bytes: KEY_BYTES,
        value_bytes: own.value_bytes,
        threads: experiment.workloads.clients.clone(),
        seconds: own.seconds,
        writer_bytes_per_second: own.writer_bytes_per_second,
        steps: needed(&own.steps, wanted, makes),
        cache_bytes: 0,
        background_jobs: own.background_jobs,
        options: own.options.clone(),
    };
    RocksdbSetup {
        cache_bytes: own.cache_bytes.unwrap_or_else(|| setup.usual_cache_bytes()),
        ..setup
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const FILE: &str = "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
                           servers = [{ target = [\"rocksdb:6.29.5\", \"rocksdb:10.2.1\"] }]\n";

    fn study(rest: &str) -> Experiment {
        Experiment::read("x.toml", &format!("{FILE}{rest}"), None).unwrap()
    }

    #[test]
    fn picked_steps_of_rocksdb_keep_those_that_make_their_database() {
        let study = study("[rocksdb]\n");
        let picked = |only: &str| {
            let study = study.only(&[only.to_owned()]).unwrap();
            let setup = setup(&study, study.kinds.rocksdb.as_ref().unwrap(), 1000);
            let names: Vec<&str> = setup.steps.iter().map(|step| step.name()).collect();
            names.join(" ")
        };
        assert_eq!(picked("fillseq"), "fillseq");
        assert_eq!(
            picked("readwhilewriting"),
            "fillseq drain overwritesome flush_mt_l0 revrangewhilewriting fwdrangewhilewriting \
             readwhilewriting"
        );
        let all = RocksdbStep::published();
        let all: Vec<&str> = all.into_iter().map(RocksdbStep::name).collect();
        assert_eq!(picked("*"), all.join(" "));
    }

    #[test]
    fn what_a_file_says_of_rocksdb_is_what_is_asked_for() {
        let study = study(
            "[rocksdb]\nworkload = \"iodir\"\nkeys = [10_000, 20_000]\nthreads = [1, 4]\nseconds = 10\n\
             background_jobs = 4\noptions = { write_buffer_size = 4194304 }\nplacebo = false\n\
             [measurement]\nblocks = 7\nslice_ms = 50\n",
        );
        let library = deltabench_workload::Library::builtin().unwrap();
        let parts = study.parts();
        let request = crate::kinds::request_of(&study, &parts[1], 7, Path::new(""), &library);
        let request = request.unwrap();
        let setup = request.work.rocksdb().unwrap();
        assert_eq!(
            (setup.keys, request.data.rows, parts.len()),
            (20_000, 20_000, 2)
        );
        assert_eq!(setup.threads, [1, 4]);
        assert_eq!((setup.seconds, setup.background_jobs), (10, 4));
        assert_eq!(
            setup.cache_bytes,
            8 << 20,
            "an eighth of 8.4 MB, at least 8 MB"
        );
        assert_eq!(setup.writer_bytes_per_second, 2 << 20);
        assert_eq!(
            setup.options,
            [("write_buffer_size".to_owned(), "4194304".to_owned())]
        );
        assert_eq!((request.timing.blocks, request.timing.slice_ms), (7, 50));
        assert!((request.timing.warmup_seconds - 2.0).abs() < 1e-9);
        assert!(!request.placebo && request.checksums.is_none());
        assert_eq!(
            parts[1].coordinates,
            [("keys".to_owned(), "20000".to_owned())]
        );
    }
}
