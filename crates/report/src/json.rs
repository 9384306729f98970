//! A comparison as the JSON report: the document of version 1, and of the current version what is made of it.

mod cell;
mod costs;
mod version2;

use crate::context::{self, ReportContext, planned};
use crate::format::{
    Adapted, Burn, Configuration, ConfirmationInvalidation, Counts, DeltaChosen, Experiment,
    Fairness, Gate, GroupSummary, Host, Invalidation, Ledger, Mark, OwnSettings, Pins, Placebo,
    PlanFacts, REPORT_FORMAT, Relative, Remote, Report, Stopping, Target,
};
use crate::remarks::{layout, multiplicity};
use crate::study::json_grids;
use crate::summary::summary;
use crate::words::finite;
use crate::{again, withdrawn};
use cell::Cells;
use deltabench_compare::comparison::{self, Comparison, PlaceboSummary, Ratio};
use deltabench_compare::{exit_code, gate_line};
use deltabench_model::installation;
use deltabench_model::invalidation as model;
use deltabench_model::plan::{self, Plan, ServerId};
use deltabench_model::units::count;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
pub(crate) use version2::{Names, upgraded};

/// A version of the JSON contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JsonVersion {
    /// As it was first: pairs for intervals, places in the plan for cells, blocks from 0.
    One,
    /// As `docs/reference/report.schema.json` says.
    #[default]
    Two,
}

impl JsonVersion {
    /// The version of this number; the current one for numbers that there are not.
    #[must_use]
    pub fn of(number: u8) -> Self {
        match number {
            1 => Self::One,
            _ => Self::Two,
        }
    }

    /// The version that a report is written in.
    #[must_use]
    pub fn of_report(text: &str) -> Self {
        let report: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let number = report.get("version").and_then(serde_json::Value::as_u64);
        number.map_or_else(Self::default, |number| {
            Self::of(u8::try_from(number).unwrap_or(0))
        })
    }
}

/// The JSON report of a version, indented, with a line break at the end.
///
/// Its fields are those of [`crate::format`], in version 2 with other forms of intervals, cells and blocks.
#[must_use]
pub fn json(
    version: JsonVersion,
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> String {
    // Only maps with keys that are not strings and failing writers make this fail; there is neither.
    let mut text =
        serde_json::to_string_pretty(&report(comparison, plan, context)).unwrap_or_default();
    text.push('\n');
    match version {
        JsonVersion::One => text,
        JsonVersion::Two => upgraded(&text, &Names::of(plan)),
    }
}

fn report(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Report {
    let cells = Cells { plan, context };
    Report {
        format: REPORT_FORMAT.0,
        version: REPORT_FORMAT.1,
        run: context.run.clone(),
        state: context.state.clone(),
        summary: summary(comparison, plan),
        exit_code: exit_code(comparison),
        started_unix_ms: context.started_unix_ms,
        deltabench_version: context.deltabench_version.clone(),
        command: plan.command.clone(),
        again: again::command(plan),
        seed: plan.seed.to_string(),
        base: target(plan, context, plan.base()),
        candidates: plan
            .candidates()
            .into_iter()
            .filter_map(|id| target(plan, context, id))
            .collect(),
        placebo: comparison.placebo.as_ref().map(placebo),
        ledger: context.ledger.map(|ledger| Ledger {
            flagged: ledger.flagged,
            total: ledger.total,
            upper_bound: finite(ledger.upper_bound),
        }),
        delta: finite(comparison.delta),
        delta_chosen: context.delta_chosen.and_then(chosen),
        stopping: stopping(&comparison.stopping),
        gate: gate(comparison, plan),
        host: Host {
            ok: comparison.host_ok,
            facts: context.host.clone(),
            conditions: context.conditions.clone(),
        },
        plan: plan_facts(plan),
        counts: counts(comparison),
        summaries: comparison
            .summaries
            .iter()
            .map(|summary| group(summary, comparison, context))
            .collect(),
        multiplicity: multiplicity(comparison),
        not_averaged: layout(plan).into_iter().collect(),
        fairness: fairness(comparison),
        cells: cells.all(&comparison.cells),
        placebo_cells: cells.all(&comparison.placebo_cells),
        invalidations: context.invalidations.iter().map(invalidation).collect(),
        confirmation_invalidations: context
            .confirmation_withdrawn
            .iter()
            .map(confirmation)
            .collect(),
        marks: context.marks.iter().map(|of| mark(of, plan)).collect(),
        figures: figures(context, false),
        grids: json_grids(&context.grids),
        details: figures(context, true),
    }
}

/// What the kind says of its figures over numbers of clients, or else; indented as the rest, of which it
/// becomes a part.
fn figures(context: &ReportContext, of_grids: bool) -> BTreeMap<&'static str, Box<RawValue>> {
    let figures = &context.figures;
    let all = figures.json.iter();
    all.filter(|_| figures.grids_in_text == of_grids)
        .filter_map(|(name, text)| {
            let text = text.replace('\n', "\n  ");
            Some((*name, RawValue::from_string(text).ok()?))
        })
        .collect()
}

fn invalidation(withdrawal: &model::Invalidation) -> Invalidation {
    Invalidation {
        cell: withdrawal.cell,
        reason: withdrawal.reason.clone(),
        at_unix_ms: withdrawal.at_unix_ms,
    }
}

fn confirmation(withdrawal: &context::ConfirmationWithdrawn) -> ConfirmationInvalidation {
    ConfirmationInvalidation {
        run: withdrawal.run.clone(),
        cell: withdrawal.cell.clone(),
        reason: withdrawal.reason.clone(),
        at_unix_ms: withdrawal.at_unix_ms,
    }
}

fn chosen(delta: context::DeltaChosen) -> Option<DeltaChosen> {
    Some(DeltaChosen {
        chosen: finite(delta.chosen)?,
        planned: delta.planned.and_then(finite),
    })
}

fn mark(mark: &deltabench_model::counter::Mark, plan: &Plan) -> Mark {
    Mark {
        at_unix_ms: mark.at_ns / 1_000_000,
        server: mark.server.map(|server| plan.server_name(server)),
        kind: mark.kind.clone(),
        text: mark.text.clone(),
    }
}

fn fairness(comparison: &Comparison) -> Vec<Fairness> {
    let findings = comparison.findings.iter();
    findings
        .map(|f| Fairness {
            kind: f.kind.clone(),
            severity: f.severity,
            text: f.text.clone(),
        })
        .collect()
}

fn stopping(stopping: &plan::Stopping) -> Stopping {
    let (mode, looks, half_width) = match stopping {
        plan::Stopping::Fixed => ("fixed", None, None),
        plan::Stopping::Sequential { looks } => ("sequential", Some(looks.clone()), None),
        plan::Stopping::Precision { half_width } => ("precision", None, finite(*half_width)),
    };
    Stopping {
        mode,
        looks,
        half_width,
    }
}

fn gate(comparison: &Comparison, plan: &Plan) -> Gate {
    let gate = &comparison.gate;
    Gate {
        on: gate.on,
        not_worse_than: gate.not_worse_than.and_then(finite),
        inconclusive_passes: gate.inconclusive_passes,
        line: gate_line(comparison, plan),
    }
}

fn group(
    summary: &comparison::GroupSummary,
    comparison: &Comparison,
    context: &ReportContext,
) -> GroupSummary {
    GroupSummary {
        void_cells: withdrawn::void_cells(summary, comparison, context),
        candidate: summary.candidate_name.clone(),
        group: summary.group.map(plan::Group::word),
        cells: summary.cells,
        of: summary.of,
        throughput: relative(&summary.throughput),
        server_cpu_us_per_op: summary.server_cpu.as_ref().and_then(relative),
    }
}

fn target(plan: &Plan, context: &ReportContext, id: ServerId) -> Option<Target> {
    let server = planned(plan, id)?;
    let installation = &server.installation;
    let build = context.build(plan, id);
    Some(Target {
        target: installation.asked.clone(),
        resolved: installation.resolved.clone(),
        version: installation.version.clone(),
        version_num: installation.version_num,
        label: server.label.clone(),
        coordinates: settings(&server.coordinates),
        configuration: server.configuration.as_ref().map(configuration),
        recipe: installation.recipe.clone(),
        remote: installation.remote.as_ref().map(remote),
        origin: installation.origin,
        sha256: installation.binary_sha256.clone(),
        version_text: build.map(|build| build.version_text.clone()),
        compiler: build.map(|build| build.compiler.clone()),
        cflags: build.map(|build| build.cflags.clone()),
        configure: build.map(|build| build.configure.clone()),
    })
}

fn configuration(used: &plan::ConfigurationUse) -> Configuration {
    let adapted = used.adapted.iter().map(|one| Adapted {
        asked: [one.asked.0.clone(), one.asked.1.clone()],
        became: settings(&one.became),
        why: one.why.clone(),
    });
    Configuration {
        name: used.name.clone(),
        adapted: adapted.collect(),
    }
}

fn remote(remote: &installation::Remote) -> Remote {
    let certificate = remote.root_certificate.as_ref();
    Remote {
        host: remote.host.clone(),
        port: remote.port,
        user: remote.user.clone(),
        database: remote.database.clone(),
        tls: remote.tls,
        root_certificate: certificate.map(|file| file.display().to_string()),
        agent: remote.agent.clone(),
    }
}

fn experiment(part: &plan::ExperimentPart) -> Experiment {
    Experiment {
        name: part.experiment.clone(),
        execution: part.execution.clone(),
        scale: part.scale.clone(),
        part: part.part,
        of: part.of,
        repetition: part.repetition,
        coordinates: settings(&part.coordinates),
    }
}

fn placebo(placebo: &PlaceboSummary) -> Placebo {
    Placebo {
        throughput: relative(&placebo.throughput),
        server_cpu_us_per_op: placebo.server_cpu.as_ref().and_then(relative),
        cells: placebo.cells,
        flagged: placebo.flagged,
    }
}

pub(crate) fn relative(ratio: &Ratio) -> Option<Relative> {
    Some(Relative {
        ratio: finite(ratio.estimate)?,
        ci95: interval(ratio.ci95),
    })
}

fn plan_facts(plan: &Plan) -> PlanFacts {
    PlanFacts {
        blocks: plan.timing.blocks,
        slice_ms: plan.timing.slice_ms,
        visit_seconds: plan.timing.visit_seconds,
        warmup_seconds: plan.timing.warmup_seconds,
        tables: plan.data.tables,
        rows: plan.data.rows,
        checksums: plan.checksums,
        settings: settings(&plan.settings),
        own_settings: own_settings(plan),
        memory_bytes: plan.limits.memory_bytes,
        storage: plan.limits.storage.clone(),
        cache: plan.cache,
        delta_from_noise: plan.delta_from_noise,
        order: plan.order,
        transport: plan.transport,
        pins: plan.pins.as_ref().map(pins),
        burns: burns(plan),
        confirms: plan.confirms.clone(),
        experiment: plan.experiment.as_ref().map(experiment),
    }
}

fn settings(settings: &[(String, String)]) -> Vec<[String; 2]> {
    settings
        .iter()
        .map(|(name, value)| [name.clone(), value.clone()])
        .collect()
}

fn own_settings(plan: &Plan) -> Vec<OwnSettings> {
    let servers = (0..).zip(&plan.servers);
    servers
        .filter(|(_, server)| !server.settings.is_empty())
        .map(|(id, server)| OwnSettings {
            server: plan.server_name(id),
            settings: settings(&server.settings),
        })
        .collect()
}

fn pins(pins: &plan::Pins) -> Pins {
    let cores = |cores: &[usize]| cores.iter().map(|core| count(*core)).collect();
    Pins {
        server: cores(&pins.server),
        client: cores(&pins.client),
    }
}

fn burns(plan: &Plan) -> Vec<Burn> {
    let servers = (0..).zip(&plan.servers);
    servers
        .filter_map(|(id, server)| {
            Some(Burn {
                server: plan.server_name(id),
                burn_ns: server.burn_ns?,
            })
        })
        .collect()
}

fn counts(comparison: &Comparison) -> Counts {
    let counts = comparison.counts;
    Counts {
        regression: counts.regression,
        improvement: counts.improvement,
        no_change: counts.no_change,
        inconclusive: counts.inconclusive,
        unfit: counts.unfit,
    }
}

pub(crate) fn interval(ends: Option<(f64, f64)>) -> Option<[f64; 2]> {
    let (low, high) = ends?;
    Some([finite(low)?, finite(high)?])
}
