//! What servers did by themselves in passes without a break.

use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Cell, ServerId};
use deltabench_model::problem::Problem;
use deltabench_report::words;
use deltabench_run::fleet::Background;
use deltabench_run::session::Session;

/// Stores it as a note; nothing if nothing was counted.
///
/// Errors: a store that cannot be written.
pub(super) fn tell(
    session: &mut Session<'_>,
    (block, cell): (u32, &Cell),
    counted: &[(ServerId, Background)],
) -> Result<(), Problem> {
    if counted.is_empty() {
        return Ok(());
    }
    let mut all = counted.to_vec();
    all.sort_by_key(|(server, _)| *server);
    let of = |(server, own): &(ServerId, Background)| {
        format!(
            "{} {}, {} vacuum and {} analyze runs, {} MB more",
            session.plan.server_name(*server),
            words::plural(own.checkpoints, "checkpoint"),
            own.vacuums,
            own.analyzes,
            own.bytes >> 20
        )
    };
    let text = format!(
        "{} at {}, pass {}: {}",
        cell.workload,
        words::plural(u64::from(cell.clients), "client"),
        block + 1,
        all.iter().map(of).collect::<Vec<_>>().join("; ")
    );
    let kind = FindingKind::own("sustained-background");
    session.keep_findings(&[Finding::new(kind, Severity::Note, text)])
}
