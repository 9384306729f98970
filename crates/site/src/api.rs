//! The same data for programs: lists, and the JSON report of each run.

use crate::frame::host_name;
use crate::lab::Lab;
use crate::within::hide;
use crate::written::{Kind, Page};
use crate::{hosts, versions};
use deltabench_model::problem::Problem;
use deltabench_report::{JsonVersion, json, words};
use serde_json::{Value, json as value};

fn page(value: &Value) -> Page {
    Page {
        kind: Kind::Json,
        text: format!("{value:#}\n"),
        waits: false,
        later: false,
    }
}

/// All runs, oldest first.
pub(crate) fn runs(lab: &Lab) -> Page {
    let run = |entry: &crate::entry::Entry| {
        let names: Vec<&str> = entry
            .candidates()
            .map(|server| server.name.as_str())
            .collect();
        let cells: Vec<&str> = entry.cells.iter().map(|cell| cell.name.as_str()).collect();
        value!({
            "run": entry.name,
            "state": entry.state.word(),
            "kind": entry.kind,
            "started": words::timestamp(entry.started_unix_ms),
            "base": entry.base().map(|server| &server.name),
            "candidates": names,
            "cells": cells,
            "host": entry.host.as_ref().map(|host| &host.key),
            "execution": entry.execution,
            "belongs_to": entry.belongs.as_ref().map(|(_, of)| of),
            "withdrawn": entry.withdrawn,
            "blocks_done": entry.blocks_done,
            "blocks_planned": entry.blocks_planned,
        })
    };
    let runs: Vec<Value> = lab.entries.iter().map(run).collect();
    page(&value!({"runs": runs})).that_waits(lab.measured.is_some())
}

/// The JSON report of a run; `None` for one that is not there.
///
/// Errors: the store cannot be read.
pub(crate) fn run(lab: &mut Lab, name: &str) -> Result<Option<Page>, Problem> {
    let Some(entry) = lab.entry(name).cloned() else {
        return Ok(None);
    };
    if lab.must_wait() {
        let text = value!({"run": entry.name, "after_the_run": lab.measured});
        return Ok(Some(page(&text).for_later()));
    }
    let analysed = lab.analysed(&entry.name)?;
    let mut plan = analysed.plan.clone();
    hide(&mut plan, lab);
    let text = json(
        JsonVersion::default(),
        &analysed.comparison,
        &plan,
        &analysed.context,
    );
    Ok(Some(Page {
        kind: Kind::Json,
        text,
        waits: false,
        later: false,
    }))
}

/// All builds.
pub(crate) fn versions(lab: &Lab) -> Page {
    let all = versions::all(lab).into_iter().map(|(version, runs)| {
        let runs: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        value!({
            "key": version.key,
            "target": version.target,
            "version": version.number,
            "sha256": Some(version.sha256).filter(|hash| !hash.is_empty()),
            "runs": runs,
        })
    });
    page(&value!({"versions": all.collect::<Vec<Value>>()}))
}

/// All hosts.
pub(crate) fn hosts(lab: &Lab) -> Page {
    let all = hosts::all(lab).into_iter().map(|(host, runs)| {
        value!({
            "key": host.key,
            "name": host_name(host, lab),
            "class": host.class,
            "kernel": host.kernel,
            "microcode": host.microcode,
            "runs": runs.len(),
        })
    });
    page(&value!({"hosts": all.collect::<Vec<Value>>()}))
}
