//! Lines that tell what a run takes, before it begins: what they have in common.

use crate::afterwards::SECONDS;
use crate::amounts::{gigabytes, span};
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_kinds::{run_half, show_half};
use deltabench_model::counts::CountedAfter;
use deltabench_model::plan::{CellId, Plan, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_observe::own_affinity;
use deltabench_run::estimate::estimate;
use deltabench_run::fleet::Host;
use deltabench_run::schedule::VisitSchedule;

/// Prints the lines where nothing else is done (`alone`), else as a part of the progress.
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
    let names = names.map(|(id, server)| match server.role {
        Role::Candidate => plan.called(id),
        Role::Base | Role::Placebo => format!("{} ({})", server.name(), plan.server_name(id)),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// What follows a comparison, beside what its plan says.
pub struct Follows {
    /// How many sessions, and the seconds from the end of one to the start of the next.
    pub sessions: Option<(u32, f64)>,
    pub confirm: bool,
    pub sensitivity: bool,
}

/// What a comparison would measure, in lines.
///
/// Errors: it does not fit on this host.
pub fn comparison(plan: &Plan, host: &Host, follows: &Follows) -> Result<Vec<String>, Problem> {
    let found = estimate(plan, run_half(&plan.work), host)?;
    if let Some(lacking) = found.lacks {
        return Err(lacking);
    }
    let one = (found.set_up + found.measuring).as_secs_f64();
    let mut lines = vec![
        sides(plan),
        format!(
            "  cells    {}; {}",
            plan.cells.len(),
            show_half(&plan.work).block(plan)
        ),
    ];
    let cores = own_affinity().unwrap_or_default();
    lines.extend(client(plan, &cores).map(|client| format!("  client   {client}")));
    lines.push(format!(
        "  run      set-up about {}, measuring at most {}",
        span(found.set_up.as_secs_f64()),
        span(found.measuring.as_secs_f64())
    ));
    if let Some((of, gap)) = follows.sessions {
        let all = f64::from(of) * one + f64::from(of.saturating_sub(1)) * gap;
        lines.push(format!(
            "  sessions {of}, each a run like this with a fresh load; {} between the end of one and \
             the start of the next",
            span(gap)
        ));
        lines.push(format!("  time     at most {} in all", span(all)));
    } else {
        lines.push(format!("  time     at most {}", span(one)));
    }
    lines.extend(after(plan, follows));
    // Servers that run already take nothing more.
    lines.extend((found.memory_bytes > 0).then(|| room(found.disk_bytes, found.memory_bytes)));
    // Sessions answer together.
    let alone = follows.sessions.is_none();
    lines.extend(few(plan, "blocks").filter(|_| alone));
    lines.extend(without_placebo(plan));
    Ok(lines)
}

/// The threads of the client and their places among these cores, if there are several.
pub fn client(plan: &Plan, cores: &[usize]) -> Option<String> {
    if plan.jobs.is_one() {
        return None;
    }
    let widest = CellId::each()
        .zip(&plan.cells)
        .max_by_key(|(_, cell)| cell.clients);
    let placed = widest.map(|(id, cell)| VisitSchedule::of(plan, 0, id, cell, cores));
    let place = match placed.map(|at| (at.client_cores.len(), at.server_cores.len())) {
        Some((client @ 1.., server @ 1..)) => {
            format!(", cores: {client} for the client, {server} for the servers")
        }
        Some((client @ 1.., 0)) => format!(", cores: {client} for the client"),
        _ => String::new(),
    };
    Some(format!("at most {} threads{place}", plan.jobs.most))
}

/// What is measured once the time of the run is over.
fn after(plan: &Plan, follows: &Follows) -> impl Iterator<Item = String> + use<> {
    let again = "  then     changes of at most 5 % again, not in this time";
    let varied = "  then     changes under other conditions, not in this time";
    let compared = !plan.candidates().is_empty();
    let counted = plan.observing.counted_after.filter(|_| compared);
    let counted = counted.map(|wanted| match wanted {
        CountedAfter::Changed => {
            format!("  then     instructions of the cells that changed, at most {SECONDS} s more")
        }
        CountedAfter::All => "  then     instructions of all cells, not in this time".to_owned(),
    });
    let confirmed = follows.confirm.then(|| again.to_owned());
    let varied = follows.sensitivity.then(|| varied.to_owned());
    confirmed.into_iter().chain(varied).chain(counted)
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
            "  note     without a placebo this run cannot show how often it calls equal {}s different",
            plan.work.subject()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::bench;
    use deltabench_model::plan::Role;
    use deltabench_store::Store;

    #[test]
    fn an_outlook_says_what_follows_and_what_is_missing_for_a_verdict() {
        let place = tempfile::tempdir().unwrap();
        let host = bench(place.path(), Store::open(place.path()).unwrap(), false).host;
        let mut plan = deltabench_testkit::small_run::plan();
        let told =
            |plan: &Plan, follows: &Follows| comparison(plan, &host, follows).unwrap().join("\n");
        let mut follows = Follows {
            sessions: None,
            confirm: false,
            sensitivity: false,
        };
        let text = told(&plan, &follows);
        assert!(text.contains("\n  room     at most"), "{text}");
        assert!(
            !text.contains("  then ") && !text.contains("  note "),
            "{text}"
        );
        plan.timing.blocks = 3;
        plan.servers.retain(|server| server.role != Role::Placebo);
        plan.observing.counted_after = Some(CountedAfter::All);
        (follows.confirm, follows.sensitivity) = (true, true);
        let text = told(&plan, &follows);
        assert_eq!(text.matches(", not in this time").count(), 3, "{text}");
        assert!(text.contains("a verdict needs 6 blocks: with 3"), "{text}");
        assert!(text.contains("without a placebo"), "{text}");
        follows.sessions = Some((4, 60.0));
        let text = told(&plan, &follows);
        assert!(
            !text.contains("a verdict needs"),
            "sessions answer together: {text}"
        );
    }
}
