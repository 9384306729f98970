//! Lines that tell what a run takes, before it begins: what they have in common.

use crate::amounts::gigabytes;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::units::count;

/// Prints the lines where nothing else is done (`alone`), else beside the progress.
pub fn show(lines: &[String], alone: bool) -> Result<(), Failure> {
    if alone {
        return print_stdout(&lines.join("\n"));
    }
    for line in lines {
        say(line);
    }
    Ok(())
}

/// `rocksdb:6.29.5 (base), rocksdb:6.29.5 (placebo), rocksdb:10.2.1`.
pub fn sides(plan: &Plan) -> String {
    let names = ServerId::each().zip(&plan.servers);
    let names = names.map(|(id, server)| match plan.server_name(id) {
        name if name == server.name() => name,
        role => format!("{} ({role})", server.name()),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The room that it needs, bytes.
pub fn room(disk: u64, memory: u64) -> String {
    format!(
        "  room     at most {} of disk, {} of memory",
        gigabytes(disk),
        gigabytes(memory)
    )
}

/// That there are too few blocks for a verdict, if there are; `blocks` is what they are called.
pub fn few(plan: &Plan, blocks: &str) -> Option<String> {
    let planned = plan.timing.blocks;
    (count(MIN_BLOCKS) > u64::from(planned)).then(|| {
        format!(
            "  note     a verdict needs {MIN_BLOCKS} {blocks}: with {planned} the report has estimates and \
             says \"cannot tell\""
        )
    })
}

/// That there is no placebo, if there could be one.
pub fn without_placebo(plan: &Plan) -> Option<String> {
    (plan.placebo().is_none() && plan.servers.len() > 1).then(|| {
        format!(
            "  note     without a placebo nobody can tell how often this run calls equal {}s different",
            plan.work.subject()
        )
    })
}
