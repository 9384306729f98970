//! Where everything came from, and how to do it again.

use crate::again;
use crate::context::{ReportContext, resolved};
use crate::table::page;
use crate::{origin, words};
use deltabench_model::installation::{Build, Setting};
use deltabench_model::plan::{CellOrder, Placement, Plan, ServerId, Stopping, Transport};
use deltabench_model::table::{Cell, Column, Line, Look, Table};
use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings that name a server's own place and so always differ.
const PLACES: [&str; 9] = [
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "port",
    "unix_socket_directories",
    "log_directory",
];

pub(super) fn section(plan: &Plan, context: &ReportContext) -> Markup {
    let sides: Vec<ServerId> = std::iter::once(plan.base())
        .chain(plan.candidates())
        .collect();
    html! {
        section #provenance {
            h2 { "Provenance" }
            h3 { "How to repeat it" }
            pre tabindex="0" { code { (again::lines(plan, context).join("\n")) } }
            (facts("The plan", &plan_rows(plan, context)))
            (targets(plan, context, &sides))
            (settings(plan, context, &sides))
            (facts("The host", &flat(&context.host)))
            (facts("Conditions", &flat(&context.conditions)))
        }
    }
}

fn facts(title: &str, rows: &[(String, String)]) -> Markup {
    html! {
        @if !rows.is_empty() {
            details open {
                summary { (title) }
                dl { @for (name, value) in rows { div { dt { (name) } dd { (value) } } } }
            }
        }
    }
}

fn plan_rows(plan: &Plan, context: &ReportContext) -> Vec<(String, String)> {
    let mut rows = if context.figures.setup.is_empty() {
        of_servers(plan)
    } else {
        context.figures.setup.clone()
    };
    rows.extend(choices(plan));
    if !plan.jobs.is_one() {
        let threads = plan.jobs.most.to_string();
        rows.push(("threads of the client, at most", threads));
    }
    if let Some(experiment) = &plan.experiment {
        rows.push(("experiment", origin::part(experiment)));
        rows.push(("execution", experiment.execution.clone()));
    }
    if let Some(deadline) = plan.timing.deadline_seconds {
        rows.push(("deadline", format!("{deadline} s")));
    }
    let rows = rows.into_iter();
    let mut rows: Vec<(String, String)> =
        rows.map(|(name, value)| (name.to_owned(), value)).collect();
    rows.extend(
        plan.settings
            .iter()
            .map(|(name, value)| (format!("setting {name}"), value.clone())),
    );
    rows
}

/// `12`, or `12 in each of 4 sessions`.
fn blocks_planned(plan: &Plan) -> String {
    let blocks = plan.timing.blocks;
    match &plan.session {
        Some(part) => format!("{blocks} in each of {} sessions", part.of),
        None => blocks.to_string(),
    }
}

/// What is asked of servers.
fn of_servers(plan: &Plan) -> Vec<(&'static str, String)> {
    let timing = &plan.timing;
    let checksums =
        plan.checksums.map_or(
            "each version's own default",
            |on| if on { "on" } else { "off" },
        );
    vec![
        ("seed", plan.seed.to_string()),
        (
            "smallest change that matters",
            format!("±{}", words::share(plan.delta)),
        ),
        ("blocks", blocks_planned(plan)),
        (
            "visit",
            match timing.write_seconds {
                None => format!(
                    "{} s measured after {} s warm-up",
                    timing.visit_seconds, timing.warmup_seconds
                ),
                Some(writes) => format!(
                    "{} s measured, {writes} s of cells that write, after {} s warm-up",
                    timing.visit_seconds, timing.warmup_seconds
                ),
            },
        ),
        (
            "slice",
            format!(
                "{} ms ±{}",
                timing.slice_ms,
                words::share(timing.slice_jitter)
            ),
        ),
        (
            "connections in a visit",
            timing.connections_per_visit.to_string(),
        ),
        (
            "data",
            format!(
                "{} of {} rows",
                words::plural(u64::from(plan.data.tables), "table"),
                plan.data.rows
            ),
        ),
        (
            "placement, one client",
            placement(plan.placement_single).to_owned(),
        ),
        (
            "placement, more clients",
            placement(plan.placement_multi).to_owned(),
        ),
        ("checksums", checksums.to_owned()),
    ]
}

/// What may be chosen besides: stopping, order, way to the servers, cores, gate.
fn choices(plan: &Plan) -> Vec<(&'static str, String)> {
    let stopping = match &plan.stopping {
        Stopping::Fixed => "after all blocks".to_owned(),
        Stopping::Sequential { looks } => {
            let looks: Vec<String> = looks.iter().map(ToString::to_string).collect();
            format!(
                "at the look that gives its answer (looks after {} blocks)",
                looks.join(", ")
            )
        }
        Stopping::Precision { half_width } => {
            let width = words::share(*half_width);
            format!("when throughput and CPU per operation are within ±{width}")
        }
    };
    let order = match plan.order {
        CellOrder::Drawn => "drawn for each block",
        CellOrder::Published => {
            "as published: each cell starts from the tables that earlier cells left"
        }
    };
    let transport = match plan.transport {
        Transport::Socket => "local socket",
        Transport::Tcp => "TCP",
        Transport::Tls => "TLS",
    };
    let mut rows = vec![("a cell ends", stopping)];
    // An embedded engine has no connections, and its chain is its order.
    if !plan.work.is_embedded() {
        rows.push(("order of the cells", order.to_owned()));
        rows.push(("connection", transport.to_owned()));
    }
    if plan.delta_from_noise {
        rows.push(("each cell's δ", "from its placebo's noise".to_owned()));
    }
    // A count has a limit without a gate.
    let counted = plan.observing.counting.is_some();
    let limit = plan
        .gate
        .not_worse_than
        .filter(|_| plan.gate.on || !counted);
    if plan.gate.on || limit.is_some() {
        let fails = limit.map_or("any regression".to_owned(), |limit| {
            format!("a loss shown to be more than {}", words::share(limit))
        });
        let open = if plan.gate.inconclusive_passes {
            "pass"
        } else {
            "fail"
        };
        rows.push((
            "gate fails on",
            format!("{fails}; cells without an answer {open}"),
        ));
    }
    rows
}

fn placement(placement: Placement) -> &'static str {
    match placement {
        Placement::SameCore => "client and server on one core, drawn for each visit",
        Placement::Split => "client on cores of its own, servers on the others",
        Placement::Free => "not pinned",
    }
}

fn targets(plan: &Plan, context: &ReportContext, sides: &[ServerId]) -> Markup {
    let known = |text: Option<String>| text.unwrap_or_else(|| words::UNKNOWN.to_owned());
    let file = |read: fn(&deltabench_model::installation::Installation) -> String| -> Vec<String> {
        sides
            .iter()
            .map(|id| known(plan.server(*id).map(|server| read(&server.installation))))
            .collect()
    };
    let build = |read: fn(&Build) -> String| -> Vec<String> {
        sides
            .iter()
            .map(|id| known(context.build(plan, *id).map(read)))
            .collect()
    };
    let embedded = plan.work.is_embedded();
    let name = |engine: &'static str, server: &'static str| if embedded { engine } else { server };
    let rows = [
        ("asked for", file(|i| i.asked.clone())),
        ("resolved", file(|i| i.resolved.clone())),
        (
            name("file", "binaries"),
            file(|i| i.bin_dir.display().to_string()),
        ),
        (
            name("SHA-256 of it", "SHA-256 of postgres"),
            file(|i| i.binary_sha256.clone()),
        ),
        (
            name("version", "version()"),
            build(|b| b.version_text.clone()),
        ),
        ("compiler", build(|b| b.compiler.clone())),
        ("CFLAGS", build(|b| b.cflags.clone())),
        (
            name("built with", "configure"),
            build(|b| b.configure.clone()),
        ),
    ];
    let told = |values: &[String]| values.iter().any(|value| !value.is_empty());
    let rows = rows
        .into_iter()
        .filter(|(_, values)| !embedded || told(values));
    let mut rows: Vec<(String, Vec<String>)> = rows
        .map(|(name, values)| (name.to_owned(), values))
        .collect();
    rows.extend(made(plan, sides));
    let placebo = plan.placebo().map(|id| resolved(plan, id));
    html! {
        details open {
            summary { "The targets" }
            (table(plan, sides, &rows))
            @if let Some(placebo) = placebo { p.muted { "The placebo is a second copy of " (placebo) "." } }
        }
    }
}

/// Configuration, build and place of each side; a property that no side has is left out.
fn made(plan: &Plan, sides: &[ServerId]) -> Vec<(String, Vec<String>)> {
    let of: Vec<Vec<(&str, String)>> = sides
        .iter()
        .map(|id| plan.server(*id).map(origin::facts).unwrap_or_default())
        .collect();
    let value = |facts: &[(&str, String)], wanted: &str| {
        let found = facts.iter().find(|(name, _)| *name == wanted);
        found.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
    };
    let known = |name: &&str| of.iter().flatten().any(|(has, _)| has == name);
    origin::NAMES
        .into_iter()
        .filter(known)
        .map(|name| {
            let values = of.iter().map(|facts| value(facts, name));
            (name.to_owned(), values.collect())
        })
        .collect()
}

/// A property per row, a side per column; ≠ marks rows whose values differ.
fn table(plan: &Plan, sides: &[ServerId], rows: &[(String, Vec<String>)]) -> Markup {
    let differ = |values: &[String]| values.iter().any(|value| Some(value) != values.first());
    let columns = sides.iter().map(|id| {
        let role = if *id == plan.base() {
            "base"
        } else {
            "candidate"
        };
        Column::of_words(format!("{role} {}", resolved(plan, *id)))
    });
    let lines = rows.iter().map(|(name, values)| {
        let sign = if differ(values) { "≠ " } else { "" };
        let cells = values.iter().map(Cell::as_is);
        Line::row(format!("{sign}{name}"), cells.collect())
    });
    page::table(&Table {
        corner: "≠ differs".to_owned(),
        columns: columns.collect(),
        lines: lines.collect(),
        label: "properties by side".to_owned(),
        look: Look {
            class: "sides",
            ..Look::default()
        },
        ..Table::default()
    })
}

fn settings(plan: &Plan, context: &ReportContext, sides: &[ServerId]) -> Markup {
    if sides.iter().all(|id| {
        context
            .facts(*id)
            .is_none_or(|facts| facts.settings.is_empty())
    }) {
        return html! {};
    }
    let all = by_name(context, sides);
    let (differing, set): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|(_, row)| row.differs || row.set)
        .partition(|(_, row)| row.differs);
    let rows = |list: Vec<(String, SettingRow)>| {
        list.into_iter()
            .map(|(name, row)| (name, row.values))
            .collect::<Vec<_>>()
    };
    let (differing, set) = (rows(differing), rows(set));
    let what = if plan.work.is_embedded() {
        "Options"
    } else {
        "Settings"
    };
    html! {
        details open {
            summary { (what) " that differ (" (differing.len()) ")" }
            @if differing.is_empty() { p { "none" } } @else { (table(plan, sides, &differing)) }
        }
        details {
            summary { (what) " the same on all sides, but not at their default (" (set.len()) ")" }
            @if set.is_empty() { p { "none" } } @else { (table(plan, sides, &set)) }
        }
    }
}

struct SettingRow {
    values: Vec<String>,
    differs: bool,
    set: bool,
}

fn by_name(context: &ReportContext, sides: &[ServerId]) -> BTreeMap<String, SettingRow> {
    let of = |id: ServerId| {
        context
            .facts(id)
            .map(|facts| facts.settings.as_slice())
            .unwrap_or_default()
    };
    let names = sides
        .iter()
        .flat_map(|id| of(*id))
        .map(|setting| setting.name.clone());
    names
        .filter(|name| !PLACES.contains(&name.as_str()))
        .map(|name| {
            let found: Vec<Option<&Setting>> = sides
                .iter()
                .map(|id| of(*id).iter().find(|setting| setting.name == name))
                .collect();
            let values: Vec<String> = found.iter().map(|setting| value(*setting)).collect();
            let differs = values.iter().any(|value| Some(value) != values.first());
            let set = found
                .iter()
                .flatten()
                .any(|setting| setting.source != "default" && setting.source != "override");
            (
                name,
                SettingRow {
                    values,
                    differs,
                    set,
                },
            )
        })
        .collect()
}

fn value(setting: Option<&Setting>) -> String {
    match setting {
        None => "not there".to_owned(),
        Some(Setting {
            value,
            unit: Some(unit),
            ..
        }) => format!("{value} × {unit}"),
        Some(Setting { value, .. }) if value.is_empty() => "(empty)".to_owned(),
        Some(Setting { value, .. }) => value.clone(),
    }
}

/// A JSON value as names and values; names of inner fields are joined with dots.
fn flat(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    rows
}

fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, inner) in fields {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(&name, inner, rows);
            }
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(scalar).collect();
            rows.push((name.to_owned(), texts.join(", ")));
        }
        single => rows.push((name.to_owned(), scalar(single))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
