//! A comparison as the JSON report: the document of version 1, and of the current version what is made of it.
//!
//! What the fields mean is said in `docs/reference/report.schema.json`, and tests hold reports of every kind
//! against it. Fields may be added; none is renamed or changes its meaning without a new version. What is not
//! known is left out, never null, 0 or NaN.

mod cell;
mod costs;
mod explain;
pub(crate) mod interval;
pub(crate) mod version2;

use crate::context::{ConfirmationWithdrawn, DeltaChosen, ReportContext, SessionLine};
use crate::ledger::coverage_json;
use crate::remarks::{layout, multiplicity};
use crate::study::json::json_grids;
use crate::summary::summary;
use crate::words::finite;
use crate::{again, hours, means, placed};
use cell::Cells;
use deltabench_compare::comparison::{Comparison, GroupSummary, PlaceboSummary};
use deltabench_compare::{exit_code, gate_line};
use deltabench_model::counter::Mark;
use deltabench_model::installation::Remote;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::json::{known, unless_blank, unless_empty};
use deltabench_model::plan::{ConfigurationUse, ExperimentPart, Group, Plan, ServerId, Stopping};
pub use explain::explained_json;
pub(crate) use interval::{interval, relative};
use serde_json::{Value, json};
pub use version2::{JsonVersion, of_no_run};
pub(crate) use version2::{Names, indented, written};

/// The JSON report of a version, indented, with a line break at the end.
pub fn json(
    version: JsonVersion,
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> String {
    let report = report(comparison, plan, context);
    written(version, report, &Names::of(plan))
}

fn report(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Value {
    let cells = Cells {
        plan,
        context,
        counts: comparison.instructions.as_ref(),
    };
    let candidates = plan.candidates().into_iter();
    let candidates = candidates.filter_map(|id| target(plan, context, id));
    let groups = comparison.summaries.iter();
    let groups = groups.map(|summary| group(summary, comparison, context));
    let withdrawals = context.confirmation_withdrawn.iter();
    let report = known(json!({
        "format": "deltabench.report",
        "version": 1,
        "run": context.run,
        "state": unless_blank(&context.state),
        "summary": summary(comparison, plan),
        "exit_code": exit_code(comparison),
        "started_unix_ms": context.started_unix_ms,
        "deltabench_version": context.deltabench_version,
        "command": plan.command,
        "again": again::command(plan),
        // As digits: JSON numbers lose digits above 2^53.
        "seed": plan.seed.to_string(),
        "base": target(plan, context, plan.base()),
        "candidates": candidates.collect::<Value>(),
        "placebo": comparison.placebo.as_ref().map(placebo),
        "ledger": context.ledger.as_ref().map(|ledger| known(json!({
            "flagged": ledger.flagged,
            "total": ledger.total,
            "upper_bound": finite(ledger.upper_bound),
            "coverage": coverage_json(&ledger.coverage),
        }))),
        "delta": finite(comparison.delta),
        "delta_chosen": context.delta_chosen.and_then(chosen),
        "planned_base": context.planned_base.map(|base| target(plan, context, base)),
        "stopping": stopping(&comparison.stopping),
        "sessions": unless_empty(context.sessions.iter().map(session)),
        "another_hour": hours::known_from(comparison),
        "another_hour_assumed": hours::is_assumed(comparison),
        "gate": gate(comparison, plan),
        "host": known(json!({
            "ok": comparison.host_ok,
            "facts": context.host,
            "conditions": context.conditions,
        })),
        "plan": plan_facts(plan),
        "counts": counts(comparison),
        "summaries": groups.collect::<Value>(),
        "multiplicity": multiplicity(comparison),
        "not_averaged": Vec::from_iter(layout(plan)),
        "placement_note": placed::large_changes(comparison, plan),
        "fairness": fairness(comparison),
        "cells": cells.all(&comparison.cells),
        "placebo_cells": cells.all(&comparison.placebo_cells),
        "invalidations": unless_empty(context.invalidations.iter().map(invalidation)),
        "confirmation_invalidations": unless_empty(withdrawals.map(confirmation)),
        "marks": unless_empty(context.marks.iter().map(|of| mark(of, plan))),
    }));
    let grids = unless_empty(json_grids(&context.grids)).map(|grids| ("grids", grids));
    with(report, context.figures.json.iter().cloned().chain(grids))
}

/// An object with more fields.
fn with(mut object: Value, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.extend(
            more.into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
    }
    object
}

fn invalidation(withdrawal: &Invalidation) -> Value {
    known(json!({
        "cell": withdrawal.cell,
        "reason": withdrawal.reason,
        "at_unix_ms": withdrawal.at_unix_ms,
    }))
}

fn confirmation(withdrawal: &ConfirmationWithdrawn) -> Value {
    known(json!({
        "run": withdrawal.run,
        "cell": withdrawal.cell,
        "reason": withdrawal.reason,
        "at_unix_ms": withdrawal.at_unix_ms,
    }))
}

fn chosen(delta: DeltaChosen) -> Option<Value> {
    let planned = delta.planned.and_then(finite);
    Some(known(
        json!({"chosen": finite(delta.chosen)?, "planned": planned}),
    ))
}

fn mark(mark: &Mark, plan: &Plan) -> Value {
    known(json!({
        "at_unix_ms": mark.at_ns / 1_000_000,
        "server": mark.server.map(|server| plan.server_name(server)),
        "kind": mark.kind,
        "text": mark.text,
    }))
}

fn fairness(comparison: &Comparison) -> Value {
    let findings = comparison.findings.iter();
    findings
        .map(|f| json!({"kind": f.kind, "severity": f.severity, "text": f.text}))
        .collect()
}

fn session(line: &SessionLine) -> Value {
    known(json!({
        "run": line.run,
        "state": line.state,
        "began_unix_ms": line.began_unix_ms,
        "ended_unix_ms": line.ended_unix_ms,
        "counts": line.counts,
        "left_out": unless_empty(line.left_out.iter().map(|why| why.as_str().into())),
    }))
}

fn stopping(stopping: &Stopping) -> Value {
    match stopping {
        Stopping::Fixed => json!({"mode": "fixed"}),
        Stopping::Sequential { looks } => json!({"mode": "sequential", "looks": looks}),
        Stopping::Precision { half_width } => {
            known(json!({"mode": "precision", "half_width": finite(*half_width)}))
        }
    }
}

fn gate(comparison: &Comparison, plan: &Plan) -> Value {
    let gate = &comparison.gate;
    known(json!({
        "on": gate.on,
        "not_worse_than": gate.not_worse_than.and_then(finite),
        "inconclusive_passes": gate.inconclusive_passes,
        "metrics": unless_empty(gate.metrics.iter().map(|metric| metric.word().into())),
        "another_hour": gate.another_hour.then_some(true),
        "line": gate_line(comparison, plan),
    }))
}

fn group(summary: &GroupSummary, comparison: &Comparison, context: &ReportContext) -> Value {
    known(json!({
        "candidate": summary.candidate_name,
        "group": summary.group.map(Group::word),
        "cells": summary.cells,
        "of": summary.of,
        "void_cells": means::void_cells(summary, comparison, context),
        "throughput": relative(&summary.throughput),
        "server_cpu_us_per_op": summary.server_cpu.as_ref().and_then(relative),
    }))
}

fn target(plan: &Plan, context: &ReportContext, id: ServerId) -> Option<Value> {
    let server = plan.server(id)?;
    let installation = &server.installation;
    let build = context.build(plan, id);
    let coordinates = Some(&server.coordinates).filter(|list| !list.is_empty());
    Some(known(json!({
        "target": installation.asked,
        "resolved": installation.resolved,
        "version": installation.version,
        "version_num": installation.version_num,
        "label": server.label,
        "coordinates": coordinates,
        "configuration": server.configuration.as_ref().map(configuration),
        "recipe": installation.recipe,
        "remote": installation.remote.as_ref().map(remote),
        "origin": installation.origin,
        "sha256": installation.binary_sha256,
        "version_text": build.map(|build| &build.version_text),
        "compiler": build.map(|build| &build.compiler),
        "cflags": build.map(|build| &build.cflags),
        "configure": build.map(|build| &build.configure),
    })))
}

fn configuration(used: &ConfigurationUse) -> Value {
    let adapted = used.adapted.iter();
    let adapted =
        adapted.map(|one| json!({"asked": one.asked, "became": one.became, "why": one.why}));
    json!({"name": used.name, "adapted": adapted.collect::<Value>()})
}

fn remote(remote: &Remote) -> Value {
    let certificate = remote.root_certificate.as_ref();
    known(json!({
        "host": remote.host,
        "port": remote.port,
        "user": remote.user,
        "database": remote.database,
        "tls": remote.tls,
        "root_certificate": certificate.map(|file| file.display().to_string()),
        "agent": remote.agent,
    }))
}

fn experiment(part: &ExperimentPart) -> Value {
    known(json!({
        "name": part.experiment,
        "execution": part.execution,
        "scale": part.scale,
        "part": part.part,
        "of": part.of,
        "group": part.group.map(|(group, _)| group),
        "groups": part.group.map(|(_, of)| of),
        "repetition": part.repetition,
        "coordinates": part.coordinates,
    }))
}

fn placebo(placebo: &PlaceboSummary) -> Value {
    known(json!({
        "throughput": relative(&placebo.throughput),
        "server_cpu_us_per_op": placebo.server_cpu.as_ref().and_then(relative),
        "cells": placebo.cells,
        "flagged": placebo.flagged,
    }))
}

fn plan_facts(plan: &Plan) -> Value {
    let servers = ServerId::each().zip(&plan.servers);
    let own_settings = servers.clone().filter_map(|(id, server)| {
        let settings = Some(&server.settings).filter(|settings| !settings.is_empty())?;
        Some(json!({"server": plan.server_name(id), "settings": settings}))
    });
    let burns = servers.filter_map(|(id, server)| {
        Some(json!({"server": plan.server_name(id), "burn_ns": server.burn_ns?}))
    });
    let pins = plan.pins.as_ref();
    known(json!({
        "blocks": plan.timing.blocks,
        "slice_ms": plan.timing.slice_ms,
        "visit_seconds": plan.timing.visit_seconds,
        "write_seconds": plan.timing.write_seconds,
        "warmup_seconds": plan.timing.warmup_seconds,
        "tables": plan.data.tables,
        "rows": plan.data.rows,
        "checksums": plan.checksums,
        "settings": plan.settings,
        "delta_from_noise": plan.delta_from_noise,
        "order": plan.order,
        "unpaired": plan.work.is_unpaired().then_some(true),
        "transport": plan.transport,
        "client_threads": (!plan.jobs.is_one()).then_some(plan.jobs.most),
        "pins": pins.map(|pins| json!({"server": pins.server, "client": pins.client})),
        "own_settings": unless_empty(own_settings),
        "memory_bytes": plan.limits.memory_bytes,
        "storage": plan.limits.storage,
        "cache": plan.cache,
        "burns": unless_empty(burns),
        "confirms": plan.confirms,
        "experiment": plan.experiment.as_ref().map(experiment),
    }))
}

fn counts(comparison: &Comparison) -> Value {
    let counts = comparison.counts;
    json!({
        "regression": counts.regression,
        "improvement": counts.improvement,
        "no-change": counts.no_change,
        "inconclusive": counts.inconclusive,
        "unfit": counts.unfit,
    })
}
