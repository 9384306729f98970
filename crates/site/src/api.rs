//! The same data for programs: lists, and the JSON report of each run.

use crate::changes::Told;
use crate::frame::{host_name, host_of};
use crate::lab::Lab;
use crate::within::hide;
use crate::written::{Kind, Page};
use crate::{hosts, versions};
use deltabench_lab::store_problem;
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
            "state": lab.state_word(entry),
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
            "sha256": Some(&version.sha256).filter(|hash| !hash.is_empty()),
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

/// Changes between versions, in the order in which they were raised. Of a part of a lab there are none.
///
/// Errors: the store cannot be read.
pub(crate) fn changes(lab: &mut Lab) -> Result<Page, Problem> {
    let (hosts, left) = match lab.is_part {
        true => (std::sync::Arc::default(), 0),
        false => match lab.trends()? {
            Ok(hosts) => (hosts, 0),
            Err(left) => (std::sync::Arc::default(), left),
        },
    };
    let lab = &*lab;
    let said = lab.store.triages().map_err(store_problem)?;
    let change = |told: Told<'_>| {
        let one = &told.change.suspicion;
        let version = |at: usize| told.host.versions.get(at).map(|version| &version.name);
        let run = |at: &usize| told.host.runs.get(*at).map(|run| &run.name);
        let found = one.found.as_ref().map(|found| &found.change);
        value!({
            "id": told.change.id,
            "state": told.word(),
            "metric": told.host.metric.key(),
            "cell": told.cell(),
            "host": host_of(lab, told.host).map(|host| &host.key),
            "from": version(one.from),
            "to": version(one.to),
            "way": told.way(),
            "ratio": found.map(|change| change.value.exp()),
            "ci95": found.map(|change| (change.low.exp(), change.high.exp())),
            "raised_by": run(&one.raised),
            "tried_by": one.tries.iter().filter_map(run).collect::<Vec<_>>(),
            "people_say": told.explained().map(|said| value!({
                "state": said.state.word(), "text": said.text,
            })),
        })
    };
    let all = hosts.iter().flat_map(|host| Told::of(host, &said));
    let all: Vec<Value> = all.map(change).collect();
    Ok(page(&value!({"changes": all, "runs_not_known_yet": left})).that_waits(left > 0))
}
