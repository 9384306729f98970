//! What the benchmark takes, said before it begins.

use crate::amounts::{span, thousands};
use crate::kinds::outlook::{few, room, sides, without_placebo};
use deltabench_kinds::insert::outlook::pass_seconds;
use deltabench_kinds::run_half;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_run::estimate::estimate;
use deltabench_run::fleet::Host;

/// Lines about what is going to be done, how long it takes and what room it needs.
///
/// Errors: it does not fit on this host.
pub fn tell(plan: &Plan, host: &Host) -> Result<Vec<String>, Problem> {
    let Some(setup) = plan.work.insert() else {
        return Ok(Vec::new());
    };
    let found = estimate(plan, run_half(&plan.work), host)?;
    if let Some(lacking) = found.lacks {
        return Err(lacking);
    }
    let passes = plan.timing.blocks;
    let mut lines = vec![
        format!("Insert Benchmark: {}", sides(plan)),
        format!("  steps    {}", steps(setup)),
        format!("  rows     {}", rows(setup)),
        format!(
            "  passes   {passes} on each of {} servers, {} each if rates are kept; {}",
            plan.servers.len(),
            span(pass_seconds(setup)),
            at_once(setup)
        ),
        format!(
            "  time     about {}",
            span((found.set_up + found.measuring).as_secs_f64())
        ),
        room(found.disk_bytes, found.memory_bytes),
    ];
    let threads = plan.jobs.of(setup.clients);
    lines.extend((threads > 1).then(|| format!("  client   {threads} threads, not pinned")));
    lines.extend(few(plan, "passes"));
    let pass = pass_seconds(setup) * to_f64(count(plan.servers.len()));
    let allowed = plan.timing.deadline_seconds;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < found.set_up.as_secs_f64() + pass) {
        lines.push(format!(
            "  note     one pass on all servers takes about {}, and --budget is {}: deltabench always \
             measures one",
            span(pass),
            span(allowed)
        ));
    }
    lines.extend(without_placebo(plan));
    Ok(lines)
}

fn at_once(setup: &InsertSetup) -> String {
    match setup.turns {
        0 => "one server runs at a time".to_owned(),
        turns => {
            format!("all run at once, {turns} turns in each step, the others frozen meanwhile")
        }
    }
}

fn steps(setup: &InsertSetup) -> String {
    let names: Vec<String> = setup.steps.iter().map(|step| step.name()).collect();
    let mut text = names.join(" ");
    if setup.steps.iter().any(|step| step.queries()) {
        text.push_str(&format!(
            "; {} s of queries each, rates {}, {} s to settle before them",
            setup.query_seconds,
            setup.pacing.word(),
            setup.settle_seconds()
        ));
    }
    text
}

fn rows(setup: &InsertSetup) -> String {
    let tables = setup.tables();
    let mut text = format!(
        "{} {} and {tables} {}; each client loads {}",
        setup.clients,
        if setup.clients == 1 {
            "client"
        } else {
            "clients"
        },
        if tables == 1 { "table" } else { "tables" },
        thousands(setup.rows)
    );
    let writes = [InsertStep::WriteMany, InsertStep::WriteFew];
    let written: u64 = setup
        .steps
        .iter()
        .filter(|step| writes.contains(step))
        .map(|step| setup.rows_of(*step))
        .sum();
    if written > 0 {
        text.push_str(&format!(" and writes {}", thousands(written)));
    }
    text
}
