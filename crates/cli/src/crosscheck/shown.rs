//! The table of a crosscheck for a terminal.

use crate::text::{paragraph, table};
use deltabench_compare::thresholds::CROSSCHECK_MARGIN;
use deltabench_selfcheck::crosscheck::finding::{Finding, Speed, WorkloadFinding};
use deltabench_selfcheck::crosscheck::json::CrosscheckJson;

/// Widest line of running text.
pub(super) const WIDEST: usize = 110;

/// Everything, as lines.
pub(super) fn text(found: &CrosscheckJson) -> String {
    let mut lines = vec![
        format!(
            "{} and {}; {} rows, {} rounds; one client on the server's core",
            found.target, found.sysbench, found.table_rows, found.rounds
        ),
        "ratios are deltabench / sysbench with 95 % interval; client CPU and server time in us per operation"
            .to_owned(),
        String::new(),
    ];
    let mut rows = vec![heading()];
    rows.extend(found.findings().map(|(row, finding)| cells(row, finding)));
    if rows.len() > 1 {
        lines.extend(table(&rows));
        lines.push(String::new());
    }
    lines.extend(missing(found));
    for (row, finding) in found.findings() {
        let label = format!("{}: ", row.workload);
        for difference in finding.differences.iter().chain(&finding.remarks) {
            lines.extend(paragraph(&label, difference, WIDEST));
        }
    }
    lines.extend(transactions(found));
    lines.extend(conclusion(found));
    lines.join("\n").trim_end().to_owned()
}

fn heading() -> Vec<String> {
    [
        "workload",
        "sysbench script",
        "SQL",
        "counts",
        "calls/op",
        "client CPU",
        "server time",
        "throughput",
        "less client CPU",
        "speed",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn cells(row: &WorkloadFinding, finding: &Finding) -> Vec<String> {
    let same = |same: bool| if same { "same" } else { "DIFFER" }.to_owned();
    let throughput = &finding.throughput;
    let pair = |own: f64, sysbench: f64| format!("{own:.1} / {sysbench:.1}");
    vec![
        row.workload.clone(),
        row.script.unwrap_or_default().to_owned(),
        same(finding.same_sql),
        same(finding.same_counts),
        format!("{:.0}", finding.calls_per_operation.own),
        pair(
            finding.client_cpu_us_per_op.own,
            finding.client_cpu_us_per_op.peer,
        ),
        pair(finding.server_us_per_op.own, finding.server_us_per_op.peer),
        with_interval(throughput.throughput_ratio, throughput.throughput_ci95),
        with_interval(throughput.less_client_ratio, throughput.less_client_ci95),
        word(finding.speed).to_owned(),
    ]
}

pub(super) fn word(speed: Speed) -> &'static str {
    match speed {
        Speed::Within => "same",
        Speed::ClientCost => "client cost",
        Speed::Apart => "APART",
        Speed::Open => "open",
    }
}

/// `0.97 [0.95, 0.99]`.
pub fn with_interval(ratio: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) => format!("{ratio:.2} [{low:.2}, {high:.2}]"),
        None => format!("{ratio:.2}"),
    }
}

/// Workloads without a script.
fn missing(found: &CrosscheckJson) -> Vec<String> {
    let rows = found.rows.iter();
    let mut lines: Vec<Vec<String>> = rows
        .filter_map(|row| Some(vec![row.workload.clone(), row.no_script?.to_owned()]))
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let widest = lines
        .iter()
        .filter_map(|line| line.first())
        .map(String::len)
        .max();
    let widest = widest.unwrap_or(0);
    let mut shown = vec!["no packaged script:".to_owned()];
    for line in &mut lines {
        if let [name, why] = line.as_slice() {
            shown.push(format!("  {name:<widest$}  {why}"));
        }
    }
    shown.push(String::new());
    shown
}

/// Why there are fewer calls than a published table has statements.
fn transactions(found: &CrosscheckJson) -> Vec<String> {
    let uncounted = |finding: &Finding| {
        let once = &finding.once_per_connection;
        let begins = |texts: &[String]| texts.iter().any(|text| text == "BEGIN");
        begins(&once.own) && begins(&once.peer)
    };
    if !found.findings().any(|(_, finding)| uncounted(finding)) {
        return Vec::new();
    }
    let why = "this server counts a prepared BEGIN or COMMIT once for each connection; transactions for each \
               operation, from pg_stat_database, are compared instead";
    paragraph("calls/op: ", why, WIDEST)
}

/// What the words in the last column mean, as far as they are there.
fn conclusion(found: &CrosscheckJson) -> Vec<String> {
    let speeds: Vec<Speed> = found.findings().map(|(_, finding)| finding.speed).collect();
    meanings(&speeds)
}

/// What the words mean that stand for speeds.
pub(super) fn meanings(speeds: &[Speed]) -> Vec<String> {
    let margin = CROSSCHECK_MARGIN * 100.0;
    let meaning = |speed: Speed| match speed {
        Speed::Within => format!("throughput is within {margin:.0} %"),
        Speed::ClientCost => format!(
            "throughput differs because the clients do: without their own CPU it is within {margin:.0} % \
             (client and server share a core, so what one uses the other waits for)"
        ),
        Speed::Apart => format!(
            "more than {margin:.0} % apart, also without the CPU of the clients: see docs/guide/crosscheck.md"
        ),
        Speed::Open => "the intervals are too wide: use more --rounds or --seconds".to_owned(),
    };
    [Speed::Within, Speed::ClientCost, Speed::Apart, Speed::Open]
        .into_iter()
        .filter(|speed| speeds.contains(speed))
        .flat_map(|speed| paragraph(&format!("{}: ", word(speed)), &meaning(speed), WIDEST))
        .collect()
}
