//! What a cell is over all runs of a lab: its identity by content.

use crate::store_problem;
use deltabench_model::occasion::{MEASUREMENT_VERSION, Series};
use deltabench_model::plan::{Cell, CellId, DataState, Placement, Plan};
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Slices of this length and more do not make a series of their own, milliseconds.
const USUAL_SLICE_MS: u32 = 40;

/// Fields of a series that say how its work is measured.
const HOW_IT_IS_MEASURED: [&str; 3] = ["measurement", "draws_executables", "probes"];

/// The series of a plan's cells that this program measures, in their order; `text` gives the definition of a
/// workload by its name.
///
/// Two cells have the same key if they do the same work in the same way: what only the servers differ in is
/// not in it.
pub fn series_of(plan: &Plan, text: impl Fn(&str) -> Option<String>) -> Vec<Series> {
    let of = |cell: (CellId, &Cell)| {
        series(
            plan,
            cell,
            text(&cell.1.workload),
            Some(MEASUREMENT_VERSION),
        )
    };
    CellId::each().zip(&plan.cells).map(of).collect()
}

/// The series of a stored run. Runs of versions before did not keep the text of the workloads that come with
/// deltabench, so theirs are series of their own.
///
/// Errors: the store cannot be read.
pub fn stored(run: &str, plan: &Plan, store: &Store) -> Result<Vec<Series>, Problem> {
    let known = store.series(run).map_err(store_problem)?;
    let of = |cell| series(plan, cell, None, None);
    Ok(match known.len() == plan.cells.len() {
        true => known,
        false => CellId::each().zip(&plan.cells).map(of).collect(),
    })
}

/// What is done, as a hash: two series of one work differ only in how deltabench measured. Of their contents
/// it leaves out what versions of deltabench changed.
pub(crate) fn work(series: &Series) -> String {
    let mut content: Value = serde_json::from_str(&series.content).unwrap_or_default();
    if let Some(fields) = content.as_object_mut() {
        HOW_IT_IS_MEASURED.iter().for_each(|field| {
            fields.remove(*field);
        });
    }
    sha256(&canonical(content).to_string())
}

/// `measured`: the version of how it is measured, where that is known.
fn series(
    plan: &Plan,
    (id, cell): (CellId, &Cell),
    text: Option<String>,
    measured: Option<u32>,
) -> Series {
    let own: Vec<&str> = plan.workloads.iter().map(|one| one.text.as_str()).collect();
    let content = json!({
        "workload": cell.workload,
        "text_sha256": text.as_deref().map(sha256),
        // Without the text of this one, those of all that the user wrote.
        "own_sha256": (text.is_none() && !own.is_empty()).then(|| sha256(&own.join("\n"))),
        "measurement": measured,
        "probes": plan.probes_core(cell).then_some(true),
        "clients": cell.clients,
        "rate": cell.rate,
        "state": cell.state.word(),
        "placement": plan.placement(cell),
        "data": plan.data,
        "settings": plan.settings,
        "checksums": plan.checksums,
        "limits": plan.limits,
        "cache": plan.cache,
        "transport": plan.transport,
        "order": plan.order,
        "pins": plan.pins,
        "client_threads": (plan.threads(cell) > 1).then(|| plan.threads(cell)),
        // The servers have the others.
        "client_cores": (plan.pins.is_none() && plan.placement(cell) == Placement::Split)
            .then_some(plan.jobs.most)
            .filter(|most| *most > 1),
        "work": plan.work.of_cell(id),
        // Until November 2026 slices had 40 ms unless somebody asked, and keys did not have them.
        "slice_ms": Some(plan.timing.slice_ms).filter(|ms| *ms < USUAL_SLICE_MS),
        "draws_executables": plan.draws_executables(),
    });
    let content = canonical(content).to_string();
    Series {
        key: sha256(&content),
        slug: slug(cell),
        content,
    }
}

/// `point-query@1`, `update-index@4 aged`, `point-query@1 at 500/s`.
fn slug(cell: &Cell) -> String {
    let mut slug = format!("{}@{}", cell.workload, cell.clients);
    if cell.state == DataState::Aged {
        slug.push_str(" aged");
    }
    if let Some(rate) = cell.rate {
        slug.push_str(&format!(" at {rate}/s"));
    }
    slug
}

fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// Keys in order and nothing that is null: a field that a later version adds changes no key while it is
/// absent.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known = fields.into_iter().filter(|(_, value)| !value.is_null());
            let mut known: Vec<_> = known.collect();
            known.sort_by(|(one, _), (other, _)| one.cmp(other));
            let known = known
                .into_iter()
                .map(|(key, value)| (key, canonical(value)));
            Value::Object(known.collect::<Map<_, _>>())
        }
        Value::Array(list) => list.into_iter().map(canonical).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::small_run;

    #[test]
    fn a_key_is_what_the_work_is_and_not_who_does_it() {
        let plan = small_run::plan();
        let keys = |plan: &Plan, text: &str| -> Vec<String> {
            let all = series_of(plan, |_| Some(text.to_owned()));
            all.into_iter().map(|one| one.key).collect()
        };
        let known = keys(&plan, "select 1");
        let mut distinct = known.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 3);
        let mut other = plan.clone();
        other.servers[2].installation.binary_sha256 = "ef".to_owned();
        other.seed = 7;
        other.timing.blocks = 99;
        assert_eq!(keys(&other, "select 1"), known);
        assert_ne!(keys(&plan, "select 2"), known);
        let cell = &plan.cells[0];
        let measured = |by| series(&plan, (CellId(0), cell), Some("select 1".to_owned()), by).key;
        assert_eq!(measured(Some(MEASUREMENT_VERSION)), known[0]);
        for other in [None, Some(MEASUREMENT_VERSION + 1)] {
            assert_ne!(measured(other), known[0], "measured in another way");
        }
        other.timing.slice_ms = 20;
        assert_ne!(keys(&other, "select 1"), known, "colder caches");
        other.timing.slice_ms = 200;
        assert_eq!(keys(&other, "select 1"), known);
        let of = |plan: &Plan, measured| {
            work(&series(plan, (CellId(0), &plan.cells[0]), None, measured))
        };
        let known_work = of(&other, Some(1));
        assert_eq!(of(&other, None), known_work, "measured in another way");
        let mut others = [other.clone(), other.clone(), other.clone()];
        others[0].data.rows += 1;
        others[1].cells[0].clients = 2;
        others[2].timing.slice_ms = 20;
        for plan in &others {
            assert_ne!(of(plan, Some(1)), known_work);
        }
        other.data.rows += 1;
        assert_ne!(keys(&other, "select 1"), known);
        let slugs = series_of(&plan, |_| None).into_iter().map(|one| one.slug);
        let expected = ["point-query@1", "point-query@4", "update-index@1"];
        assert_eq!(slugs.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn content_has_its_keys_in_order_and_nothing_absent() {
        let given = json!({"b": {"d": 1, "c": null, "a": [{"z": 1, "y": 2}]}, "a": 0});
        let expected = r#"{"a":0,"b":{"a":[{"y":2,"z":1}],"d":1}}"#;
        assert_eq!(canonical(given).to_string(), expected);
    }
}
