//! `[orders]`: order entry, its size, and how its transactions are sent.

use super::pgbench::ScaleFactor;
use crate::excludes::{Excluded, excludes};
use crate::syntax;
use deltabench_document::Section;
use deltabench_model::problem::Problem;
use deltabench_model::work::orders::OrdersForm;
use deltabench_model::work::pgbench::QueryMode;

/// Of `[orders]`.
pub(crate) const KEYS: [&str; 7] = [
    "warehouses",
    "form",
    "transactions",
    "foreign_keys",
    "mode",
    "max_tries",
    "latency_limit",
];
/// Warehouses, 104 MB each: a run loads at most 10 billion rows.
pub(crate) const WAREHOUSES: std::ops::RangeInclusive<i64> = 1..=20_000;
/// Tries of a transaction.
const TRIES: std::ops::RangeInclusive<i64> = 1..=1_000_000;

/// Warehouses of a file that says nothing: as many as the command has.
pub(crate) const DEFAULT_WAREHOUSES: ScaleFactor = ScaleFactor::Factor(4);

/// All of `[orders]` but the warehouses, which are an axis of parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Orders {
    pub form: OrdersForm,
    /// Names of transactions, and `mix`; empty: all.
    pub transactions: Vec<String>,
    pub foreign_keys: bool,
    /// How statements are sent.
    pub mode: QueryMode,
    /// Most tries of a transaction that failed for serialization or a deadlock; absent: as the command has
    /// it.
    pub max_tries: Option<u32>,
    /// Transactions that take longer are late, milliseconds.
    pub latency_limit_ms: Option<f64>,
}

/// What has no meaning beside order entry.
const EXCLUDED: Excluded = Excluded {
    by: "[orders]",
    sections: &[
        ("pgbench", "write two experiments"),
        ("insert", "write two experiments"),
        ("rocksdb", "write two experiments"),
        (
            "data",
            "its size is `warehouses` of [orders]: leave [data] out",
        ),
    ],
    keys: &[
        (
            "workloads",
            "also",
            "its workloads are `transactions` of [orders]",
        ),
        (
            "workloads",
            "files",
            "its workloads are `transactions` of [orders]",
        ),
        (
            "workloads",
            "state",
            "its tables are always freshly loaded: leave `state` out",
        ),
        (
            "workloads",
            "only",
            "its workloads are `transactions` of [orders]",
        ),
        (
            "workloads",
            "set",
            "its workloads are `transactions` of [orders]",
        ),
        (
            "workloads",
            "variant",
            "its workloads are `transactions` of [orders]",
        ),
    ],
};

/// Reads `[orders]`; `None` when the file has none.
pub(crate) fn orders(root: &Section<'_>) -> Result<Option<Orders>, Problem> {
    let Some(section) = root.section("orders", "[orders]")? else {
        return Ok(None);
    };
    section.allow(&KEYS)?;
    excludes(root, &EXCLUDED)?;
    let latency_limit_ms = match section.text("latency_limit")? {
        None => None,
        Some((text, at)) => Some(
            syntax::milliseconds("latency_limit", text)
                .map_err(|problem| section.wrap(at, problem))?,
        ),
    };
    let forms = OrdersForm::ALL.map(|form| (form.word(), form));
    let modes = QueryMode::ALL.map(|mode| (mode.word(), mode));
    let named = section.list_of_texts("transactions")?.unwrap_or_default();
    Ok(Some(Orders {
        form: section.word("form", &forms)?.unwrap_or_default(),
        transactions: named.into_iter().map(|(name, _)| name.to_owned()).collect(),
        foreign_keys: section.flag("foreign_keys")?.unwrap_or(false),
        mode: section.word("mode", &modes)?.unwrap_or(QueryMode::Prepared),
        max_tries: section.number("max_tries", TRIES)?,
        latency_limit_ms,
    }))
}
