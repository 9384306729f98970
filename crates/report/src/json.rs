//! A comparison as the JSON report.

use crate::context::{ReportContext, planned};
use crate::format::{
    Cell, Counts, Fairness, Host, MetricValue, Metrics, Placebo, PlanFacts, REPORT_FORMAT,
    Relative, Report, Target,
};
use crate::summary::summary;
use deltabench_compare::comparison::{
    Better, CellComparison, Comparison, Metric, MetricComparison, PlaceboSummary, Ratio, Verdict,
};
use deltabench_compare::exit_code;
use deltabench_model::plan::{Plan, ServerId};

/// The JSON report (see [`crate::format`]), indented, with a line break at the end.
#[must_use]
pub fn json(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    // Only maps with keys that are not strings and failing writers make this fail; there is neither.
    let mut text =
        serde_json::to_string_pretty(&report(comparison, plan, context)).unwrap_or_default();
    text.push('\n');
    text
}

fn report(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Report {
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
        seed: plan.seed.to_string(),
        base: target(plan, context, plan.base()),
        candidates: plan
            .candidates()
            .into_iter()
            .filter_map(|id| target(plan, context, id))
            .collect(),
        placebo: comparison.placebo.as_ref().map(placebo),
        delta: finite(comparison.delta),
        host: Host {
            ok: comparison.host_ok,
            facts: context.host.clone(),
            conditions: context.conditions.clone(),
        },
        plan: plan_facts(plan),
        counts: counts(comparison),
        fairness: comparison
            .findings
            .iter()
            .map(|f| Fairness {
                kind: f.kind.clone(),
                severity: f.severity,
                text: f.text.clone(),
            })
            .collect(),
        cells: comparison.cells.iter().map(cell).collect(),
        placebo_cells: comparison.placebo_cells.iter().map(cell).collect(),
    }
}

fn target(plan: &Plan, context: &ReportContext, id: ServerId) -> Option<Target> {
    let installation = &planned(plan, id)?.installation;
    let build = context.build(plan, id);
    Some(Target {
        target: installation.asked.clone(),
        resolved: installation.resolved.clone(),
        version: installation.version.clone(),
        version_num: installation.version_num,
        origin: installation.origin,
        sha256: installation.binary_sha256.clone(),
        version_text: build.map(|build| build.version_text.clone()),
        compiler: build.map(|build| build.compiler.clone()),
        cflags: build.map(|build| build.cflags.clone()),
        configure: build.map(|build| build.configure.clone()),
    })
}

fn placebo(placebo: &PlaceboSummary) -> Placebo {
    Placebo {
        throughput: relative(&placebo.throughput),
        server_cpu_us_per_op: placebo.server_cpu.as_ref().and_then(relative),
        cells: placebo.cells,
        flagged: placebo.flagged,
    }
}

fn relative(ratio: &Ratio) -> Option<Relative> {
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
        settings: plan
            .settings
            .iter()
            .map(|(name, value)| [name.clone(), value.clone()])
            .collect(),
    }
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

fn cell(cell: &CellComparison) -> Cell {
    Cell {
        workload: cell.workload.clone(),
        group: cell.group.word(),
        clients: cell.clients,
        candidate: cell.candidate_name.clone(),
        verdict: cell.verdict.word(),
        reason: cell.reason.clone(),
        blocks: cell.blocks,
        rounds: cell.rounds,
        void_rounds: cell.void_rounds,
        base_errors: cell.base_errors,
        candidate_errors: cell.candidate_errors,
        metrics: metrics(&cell.metrics),
    }
}

fn metrics(measured: &[MetricComparison]) -> Metrics {
    let mut metrics = Metrics::default();
    for value in measured {
        let place = match value.metric {
            Metric::Throughput => &mut metrics.throughput,
            Metric::ServerCpuPerOperation => &mut metrics.server_cpu_us_per_op,
            Metric::LatencyP50 => &mut metrics.latency_us_p50,
            Metric::LatencyP99 => &mut metrics.latency_us_p99,
        };
        *place = Some(metric(value));
    }
    metrics
}

fn metric(value: &MetricComparison) -> MetricValue {
    MetricValue {
        unit: value.metric.unit(),
        better: match value.metric.better() {
            Better::Higher => "higher",
            Better::Lower => "lower",
        },
        base: finite(value.base),
        candidate: finite(value.candidate),
        ratio: finite(value.ratio.estimate),
        ci95: interval(value.ratio.ci95),
        ci90: interval(value.ratio.ci90),
        verdict: value.verdict.map(Verdict::word),
        block_ratios: value
            .blocks
            .iter()
            .map(|log| log.exp())
            .filter_map(finite)
            .collect(),
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn interval(ends: Option<(f64, f64)>) -> Option<[f64; 2]> {
    let (low, high) = ends?;
    Some([finite(low)?, finite(high)?])
}
