//! What a kind measured, as a record of the store: its JSON is the payload.

use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::VoidReason;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value as a record of this kind, of a block, a cell and a server. `void` says why it does not count.
///
/// Errors: numbers that JSON cannot hold.
pub(crate) fn record(
    kind: &str,
    value: &impl Serialize,
    (block, cell, server): (u32, CellId, ServerId),
    void: Option<VoidReason>,
) -> Result<Record, Problem> {
    let payload = serde_json::to_string(value).map_err(|error| {
        Problem::new(format!("a record of kind {kind} cannot be stored"))
            .detail(error.to_string())
            .hint("this is a bug in deltabench; please report it")
    })?;
    Ok(Record {
        kind: kind.to_owned(),
        server,
        cell,
        block,
        void,
        payload,
    })
}

/// The value of a record; absent if that is of another kind.
///
/// Errors: this version cannot read it.
pub(crate) fn value<T: DeserializeOwned>(
    kind: &str,
    record: &Record,
) -> Result<Option<T>, Problem> {
    if record.kind != kind {
        return Ok(None);
    }
    let found = serde_json::from_str(&record.payload);
    found.map(Some).map_err(|error| {
        Problem::new(format!(
            "the store contains a record of kind {kind} that cannot be read"
        ))
        .detail(error.to_string())
        .hint("keep a copy of the file and report this")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_from_its_own_kind_and_a_damaged_one_says_which() {
        let place = (3, CellId(1), ServerId(2));
        let mut stored = record("a", &[1.5, 2.5], place, None).unwrap();
        assert_eq!((stored.block, stored.cell, stored.server), place);
        assert_eq!(value::<Vec<f64>>("a", &stored), Ok(Some(vec![1.5, 2.5])));
        assert_eq!(value::<Vec<f64>>("b", &stored), Ok(None));
        stored.payload.pop();
        let damaged = value::<Vec<f64>>("a", &stored).unwrap_err();
        assert!(damaged.error.contains("record of kind a"), "{damaged}");
    }
}
