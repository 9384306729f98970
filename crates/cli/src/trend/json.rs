//! Trends and changes as JSON.

use super::{newest, shown::ratio};
use deltabench_lab::{Change, HostChange, HostTrend, TrendCell};
use deltabench_model::json::known;
use deltabench_store::Triage;
use deltabench_trend::{By, Estimate, State};
use serde_json::{Value, json};

/// A file of this format.
pub fn file(format: &str, hosts: Vec<Value>) -> Value {
    json!({
        "format": format,
        "version": 1,
        "deltabench_version": env!("CARGO_PKG_VERSION"),
        "hosts": hosts,
    })
}

/// Levels and changes of some cells of a host.
pub fn trend(host: &HostTrend, cells: &[usize], anchor: Option<usize>, said: &[Triage]) -> Value {
    let cell = |at: &usize| {
        let cell = host.cells.get(*at)?;
        let anchor = anchor.or_else(|| host.usual_base(*at))?;
        let network = host.network(*at, anchor);
        let level = |version: usize| {
            let level = network.as_ref()?.level(version)?;
            Some(json!({
                "version": version,
                "relative": interval(&level.change),
                "runs": level.runs,
                "direct": level.direct,
            }))
        };
        let levels: Vec<Value> = (0..host.versions.len()).filter_map(level).collect();
        let own = host
            .changes
            .iter()
            .filter(|one| one.suspicion.series == *at);
        Some(known(json!({
            "cell": cell.name,
            "series": cell.key,
            // Of a mean its cells.
            "mean_of": (!cell.members.is_empty()).then(|| members(host, cell)),
            "runs": host.runs_of(*at),
            "disturbed_runs": host.disturbed(|cell| cell == *at).0,
            "anchor": anchor,
            "levels": levels,
            // Standard deviation of the log-ratio of distant versions from hour to hour.
            "hours_sd": network.as_ref().map(|one| one.sd),
            "assumed": network.as_ref().map(|one| one.assumed),
            "rests_on_anchor": network.as_ref().map(|one| one.rests_on_anchor),
            "changes": own.map(|one| change(host, one, said)).collect::<Value>(),
        })))
    };
    let mut value = of_host(host);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("cells".to_owned(), cells.iter().filter_map(cell).collect());
    }
    value
}

fn members(host: &HostTrend, mean: &TrendCell) -> Vec<Value> {
    let cell = |cell: &TrendCell| json!({"cell": cell.name, "series": cell.key});
    host.members(mean).map(cell).collect()
}

/// Changes of a host.
pub fn changes(host: &HostTrend, changes: &[&Change], said: &[Triage]) -> Value {
    let mut value = of_host(host);
    if let Some(fields) = value.as_object_mut() {
        let all = changes.iter().map(|one| change(host, one, said));
        fields.insert("changes".to_owned(), all.collect());
    }
    value
}

fn of_host(host: &HostTrend) -> Value {
    let version = |(number, version): (usize, &deltabench_lab::Version)| {
        json!({
            "version": number,
            "name": version.name,
            "binary_sha256": version.installation.binary_sha256,
            "line": version.line,
            "first_measured_unix_ms": version.first_ms,
        })
    };
    let host_change = |one: &HostChange| json!({"at_unix_ms": one.at_unix_ms, "what": one.what});
    json!({
        "host": host.machine,
        "host_changes": host.host_changes.iter().map(host_change).collect::<Value>(),
        "metric": host.metric.key(),
        "runs": host.runs.iter().map(|run| &run.name).collect::<Vec<_>>(),
        "versions": host.versions.iter().enumerate().map(version).collect::<Value>(),
        "order_unknown": host.unplaced,
    })
}

fn change(host: &HostTrend, change: &Change, said: &[Triage]) -> Value {
    let one = &change.suspicion;
    let run = |at: usize| host.runs.get(at).map(|run| run.name.as_str());
    let said = newest(change, said).map(|said| {
        json!({"state": said.state.word(), "text": said.text, "at_unix_ms": said.at_unix_ms})
    });
    known(json!({
        "id": change.id,
        "cell": host.cells.get(one.series).map(|cell| &cell.name),
        "from": one.from,
        "to": one.to,
        "falls": one.falls,
        "state": match one.state {
            State::Suspected => "suspected",
            State::Confirmed => "confirmed",
            State::Refuted => "refuted",
        },
        "by": match one.by {
            By::Step => "step",
            By::Level => "level",
        },
        "earliest": one.earliest,
        "raised": run(one.raised),
        "tries": one.tries.iter().map(|at| run(*at)).collect::<Vec<_>>(),
        "relative": one.found.as_ref().map(|found| interval(&found.change)),
        "since": one.since.map(|(change, runs)| json!({"relative": interval(&change), "runs": runs})),
        "delta": one.delta,
        "p": one.found.map(|found| found.p),
        "p_limit": one.found.map(|found| found.limit),
        "triage": said,
    }))
}

fn interval(estimate: &Estimate) -> Value {
    let ratio = ratio(estimate);
    json!({"ratio": ratio.estimate, "ci95": ratio.ci95})
}
