//! A comparison as a test report for CI.

use crate::again;
use crate::conditions::Conditions;
use crate::confirmation::notes;
use crate::context::{ReportContext, resolved};
use crate::remarks::remarks;
use crate::summary::summary;
use crate::{differences, withdrawn, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_compare::exit_code;
use deltabench_compare::gate::{GateResult, gate_reasons, gate_results};
use deltabench_model::finding::Severity;
use deltabench_model::plan::{GatedMetric, Plan, ServerId};
use deltabench_model::units::count;

/// JUnit's XML: a test suite for each candidate, a test case for each of its cells, and one for the host.
///
/// Shape: a test fails exactly where the exit code is not 0, by the same rule (the plan's gate):
///
/// | the cell | test case |
/// |---|---|
/// | passes | passed; skipped if it was withdrawn |
/// | fails | `failure` of type `regression` |
/// | has no answer | `failure` of type `inconclusive`; skipped if the gate lets such cells pass |
/// | lacks a figure that the gate asks for | `failure` of type `inconclusive` |
/// | is not trusted | `failure` of type `unfit` |
///
/// If nothing at all was measured, every case is an `error`.
/// Source: the attributes and elements of the schema that Jenkins and others validate against; there are no
///         times in it, since a cell's rounds are spread over the whole run.
pub fn junit(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let gate = std::iter::zip(gate_results(comparison), gate_reasons(comparison));
    let judged: Vec<(&CellComparison, Gated)> = comparison.cells.iter().zip(gate).collect();
    let mut candidates = plan.candidates();
    if candidates.is_empty() {
        // A server that is measured alone: the host may be unfit all the same.
        candidates.push(plan.base());
    }
    let suites: Vec<Suite> = candidates
        .into_iter()
        .map(|candidate| {
            let cells = judged
                .iter()
                .filter(|(cell, _)| cell.candidate == candidate);
            let cases =
                cells.map(|(cell, gated)| Case::cell(cell, gated, (comparison, plan, context)));
            Suite {
                candidate,
                cases: std::iter::once(Case::host(comparison))
                    .chain(cases)
                    .collect(),
            }
        })
        .collect();
    let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let mut lines = vec![
        r#"<?xml version="1.0" encoding="UTF-8"?>"#.to_owned(),
        format!(r#"<testsuites name="deltabench" {}>"#, totals(&all)),
    ];
    for suite in &suites {
        lines.extend(suite.lines(comparison, plan, context));
    }
    lines.push("</testsuites>\n".to_owned());
    lines.join("\n")
}

/// What became of a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Skipped,
    Failure(&'static str),
    Error,
}

/// What a cell is to the gate, and what the gate has against it.
type Gated = (GateResult, Vec<String>);

struct Case {
    class: String,
    name: String,
    outcome: Outcome,
    message: String,
    output: Vec<String>,
}

impl Case {
    fn cell(
        cell: &CellComparison,
        (result, against): &Gated,
        (comparison, plan, context): (&Comparison, &Plan, &ReportContext),
    ) -> Self {
        let withdrawn = withdrawn::of_cell(context, cell.cell);
        let lenient = comparison.gate.inconclusive_passes;
        let outcome = match result {
            _ if exit_code(comparison) == 5 => Outcome::Error,
            GateResult::Failed => Outcome::Failure("regression"),
            GateResult::Open if lenient => Outcome::Skipped,
            GateResult::Open | GateResult::Unmeasured | GateResult::Unknown => {
                Outcome::Failure("inconclusive")
            }
            GateResult::Untrusted => Outcome::Failure("unfit"),
            GateResult::Passed if withdrawn.is_some() => Outcome::Skipped,
            GateResult::Passed => Outcome::Passed,
        };
        let mut texts: Vec<String> = withdrawn
            .map(|reason| format!("withdrawn ({reason})"))
            .into_iter()
            .collect();
        // What the gate asks for comes first: the cell's own words are about throughput.
        texts.extend(against.iter().cloned());
        texts.push(if cell.blocks == 0 {
            "not measured".to_owned()
        } else {
            words::judged(cell)
        });
        texts.extend(notes(cell, &comparison.stopping));
        Self {
            class: format!("deltabench.{}", cell.group.word()),
            name: Conditions::new(plan).name(cell),
            outcome,
            message: texts.join("; "),
            output: output(cell, comparison, plan),
        }
    }

    /// The host, which is in every suite: its fault is nobody's regression, and nor is a run that did not
    /// come to its end.
    fn host(comparison: &Comparison) -> Self {
        let unfit = comparison.findings.iter();
        let unfit: Vec<&str> = unfit
            .filter(|finding| finding.severity == Severity::Unfit)
            .map(|finding| finding.text.as_str())
            .collect();
        let (outcome, message) = if comparison.host_ok && comparison.unfinished {
            (
                Outcome::Failure("inconclusive"),
                "the run did not come to its end".to_owned(),
            )
        } else if comparison.host_ok {
            (Outcome::Passed, String::new())
        } else if unfit.is_empty() {
            (Outcome::Failure("unfit"), "host unfit".to_owned())
        } else {
            (
                Outcome::Failure("unfit"),
                format!("host unfit: {}", unfit.join("; ")),
            )
        };
        Self {
            class: "deltabench".to_owned(),
            name: "host".to_owned(),
            outcome,
            message,
            output: Vec::new(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let head = format!(
            r#"    <testcase classname="{}" name="{}""#,
            escape(&self.class),
            escape(&self.name)
        );
        let message = escape(&self.message);
        let result = match self.outcome {
            Outcome::Passed => None,
            Outcome::Skipped => Some(format!(r#"      <skipped message="{message}"/>"#)),
            Outcome::Failure(kind) => Some(format!(
                r#"      <failure message="{message}" type="{kind}">{message}</failure>"#
            )),
            Outcome::Error => Some(format!(
                r#"      <error message="{message}" type="not-measured">{message}</error>"#
            )),
        };
        let mut lines: Vec<String> = result.into_iter().collect();
        if !self.output.is_empty() {
            let output = escape(&self.output.join("\n"));
            lines.push(format!("      <system-out>{output}</system-out>"));
        }
        if lines.is_empty() {
            return vec![format!("{head}/>")];
        }
        lines.insert(0, format!("{head}>"));
        lines.push("    </testcase>".to_owned());
        lines
    }
}

struct Suite {
    candidate: ServerId,
    cases: Vec<Case>,
}

impl Suite {
    fn lines(&self, comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Vec<String> {
        let base = resolved(plan, plan.base());
        let name = match self.candidate == plan.base() {
            true => base,
            false => format!("{} vs {base}", resolved(plan, self.candidate)),
        };
        let timestamp = context
            .started_unix_ms
            .map(|start| format!(r#" timestamp="{}""#, words::timestamp(start)))
            .unwrap_or_default();
        let cases: Vec<&Case> = self.cases.iter().collect();
        let mut lines = vec![
            format!(
                r#"  <testsuite name="{}" {} skipped="{}"{timestamp}>"#,
                escape(&name),
                totals(&cases),
                skipped(&self.cases)
            ),
            "    <properties>".to_owned(),
        ];
        let properties = [
            ("run", context.run.clone()),
            ("deltabench_version", context.deltabench_version.clone()),
            ("command", words::shell(&plan.command)),
            ("again", words::shell(&again::command(plan))),
            ("seed", plan.seed.to_string()),
            ("exit_code", exit_code(comparison).to_string()),
        ];
        lines.extend(properties.iter().map(|(name, value)| {
            format!(
                r#"      <property name="{name}" value="{}"/>"#,
                escape(value)
            )
        }));
        lines.push("    </properties>".to_owned());
        lines.extend(self.cases.iter().flat_map(Case::lines));
        let mut said = withdrawn::sentences(plan, context);
        said.extend(summary(comparison, plan).lines().map(str::to_owned));
        said.extend(remarks(comparison, plan, context));
        let said = escape(&said.join("\n"));
        lines.push(format!("    <system-out>{said}</system-out>"));
        lines.push("  </testsuite>".to_owned());
        lines
    }
}

/// The counts that a suite begins with.
///
/// Shape: without `skipped`, which a single suite has and all together have not.
fn totals(cases: &[&Case]) -> String {
    let of = |wanted: fn(&Outcome) -> bool| {
        count(cases.iter().filter(|case| wanted(&case.outcome)).count())
    };
    format!(
        r#"tests="{}" failures="{}" errors="{}""#,
        cases.len(),
        of(|outcome| matches!(outcome, Outcome::Failure(_))),
        of(|outcome| matches!(outcome, Outcome::Error)),
    )
}

/// Cases that neither passed nor failed.
fn skipped(cases: &[Case]) -> u64 {
    let skipped = cases.iter().filter(|case| case.outcome == Outcome::Skipped);
    count(skipped.count())
}

/// The figures of a cell, a line each.
///
/// Shape: p95, p99.9 and the longest operation only where the gate asks for them.
fn output(cell: &CellComparison, comparison: &Comparison, plan: &Plan) -> Vec<String> {
    let metrics = [
        ("throughput", Metric::Throughput, None),
        ("CPU/op", Metric::ServerCpuPerOperation, None),
        ("p50", Metric::LatencyP50, None),
        ("p95", Metric::LatencyP95, Some(GatedMetric::P95)),
        ("p99", Metric::LatencyP99, None),
        ("p99.9", Metric::LatencyP999, Some(GatedMetric::P999)),
        ("longest", Metric::LatencyMax, Some(GatedMetric::Longest)),
    ];
    let asked = &comparison.gate.metrics;
    let shown = metrics
        .into_iter()
        .filter(|(.., only)| only.is_none_or(|metric| asked.contains(&metric)));
    let figures = shown.filter_map(|(name, metric, _)| {
        let value = words::metric(cell, metric)?;
        let difference = differences::written(cell, metric, plan);
        let difference = difference.map(|text| format!(", {text}"));
        Some(format!(
            "{name}: {} ({} {}){}",
            words::ratio_interval(&value.ratio),
            words::from_to(value),
            metric.unit(),
            difference.unwrap_or_default()
        ))
    });
    let mut lines: Vec<String> = figures.collect();
    let counts = comparison.instructions.as_ref();
    let counted = counts.and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
    lines.extend(counted.map(|found| {
        let change = 100.0 * (found.ratio - 1.0);
        format!(
            "instr/op: {:.4} ({:.0} → {:.0} instructions), {change:+.2} %",
            found.ratio, found.base.per_op, found.counted.per_op
        )
    }));
    lines.extend(
        cell.explanation
            .iter()
            .map(|text| format!("what moved: {text}")),
    );
    lines
}

/// Text for XML 1.0: what it forbids is replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
