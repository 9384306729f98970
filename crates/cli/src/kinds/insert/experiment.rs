//! `[insert]` of an experiment, as a request has it.

use crate::kinds::chain::needed;
use deltabench_experiment::kinds::Insert;
use deltabench_experiment::{Experiment, Part};
use deltabench_kinds::insert::setup::threads;
use deltabench_model::plan::{DataSize, Placement, Stopping, Timing};
use deltabench_model::work::Work;
use deltabench_model::work::insert::InsertSetup;
use deltabench_run::planning::Request;

/// Passes of a file that does not say how many: as many as a verdict needs.
const PASSES: u32 = 6;

/// Gives a request what the file says of the Insert Benchmark, if it does.
pub fn apply(experiment: &Experiment, part: &Part, request: &mut Request) {
    let Some(own) = &experiment.kinds.insert else {
        return;
    };
    let setup = setup(experiment, own, part.rows);
    request.data = DataSize {
        tables: setup.tables(),
        rows: setup.loaded_rows() / u64::from(setup.tables().max(1)),
    };
    request.timing = Timing {
        blocks: experiment.measurement.blocks.unwrap_or(PASSES),
        visit_seconds: f64::from(setup.query_seconds),
        warmup_seconds: 0.0,
        connections_per_visit: 1,
        sustained: false,
        write_seconds: None,
        warmup_chosen: false,
        rotated: false,
        ..request.timing.clone()
    };
    if experiment.measurement.placement.is_none() {
        // As published: more connections work at a time than there are clients.
        request.placement = (Placement::Free, Placement::Free);
    }
    request.jobs = threads(&setup, request.jobs);
    request.stopping = Stopping::Fixed;
    request.placebo = own.placebo;
    request.work = Work::Insert(setup);
}

fn setup(experiment: &Experiment, own: &Insert, rows: u64) -> InsertSetup {
    InsertSetup {
        clients: own.clients,
        shared_table: own.shared_table,
        partitions: own.partitions,
        rows,
        write_rows: own.write_rows,
        query_seconds: own.query_seconds,
        steps: needed(
            &own.steps,
            |step| experiment.wants_workload(&step.name()),
            |step| !step.queries(),
        ),
        pacing: own.pacing,
        settle_seconds: own.settle_seconds,
        long_transaction_seconds: own.long_transaction_seconds,
        turns: own.turns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(rest: &str) -> Experiment {
        let text = format!(
            "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
             servers = [{{ target = \"postgres:18\", configuration = \"cx10a\" }}]\n{rest}"
        );
        Experiment::read("x.toml", &text, None).unwrap()
    }

    #[test]
    fn picked_steps_keep_those_that_make_their_tables() {
        let study = study("[insert]\nrates = [100, 500]\n");
        let picked = |only: &str| {
            let study = study.only(&[only.to_owned()]).unwrap();
            let setup = setup(&study, study.kinds.insert.as_ref().unwrap(), 1000);
            let names: Vec<String> = setup.steps.iter().map(|step| step.name()).collect();
            names.join(" ")
        };
        assert_eq!(picked("l.i1"), "l.i0 l.x l.i1");
        assert_eq!(picked("qp*"), "l.i0 l.x l.i1 l.i2 qp100 qp500");
        assert_eq!(picked("qr100"), "l.i0 l.x l.i1 l.i2 qr100");
        assert_eq!(picked("*"), "l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500");
    }
}
