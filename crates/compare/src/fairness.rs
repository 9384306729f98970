//! What differs between two servers besides what was asked to differ.
//!
//! A difference that was not asked for is measured together with the one that was. It is not refused
//! (comparing 9.6 with 18 *means* different defaults) but it is said, with the facts, beside the numbers.

use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Installation, Setting};
use deltabench_model::units::to_f64;

use crate::thresholds::{SIZE_LEAST, SIZE_TOLERANCE};
use crate::words;

mod build;
mod settings;
mod values;

/// What is known of one server of the run.
#[derive(Debug, Clone)]
pub struct ServerFacts<'a> {
    /// Its name in sentences, for example `base` or `postgres:18.6`.
    pub name: String,
    pub installation: &'a Installation,
    /// `pg_settings` of the running server.
    pub settings: &'a [Setting],
    pub data_checksums: bool,
    /// Settings that were asked for on this server, in order; later ones win.
    pub asked_settings: &'a [(String, String)],
    /// Size of the loaded relations on disk, bytes; absent when not measured.
    pub relation_bytes: Option<u64>,
    /// Whether shared memory is in huge pages; absent when not known.
    pub huge_pages: Option<bool>,
}

/// Everything that differs, in a fixed order: build, cluster, settings, data.
///
/// Shape: [`Severity::Confounder`] for what is likely to move numbers, [`Severity::Note`] otherwise; never
///        [`Severity::Unfit`]. Each text is one sentence. Kinds: `same-binary`, `build-unknown`,
///        `compiler-differs`, `cflags-differ`, `optimisation-low`, `configure-differs`, `checksums-differ`,
///        `huge-pages-differ`, `assertions-on`, `settings-differ`, `settings-differ-harmless`,
///        `defaults-differ`, `settings-only-in-base`, `settings-only-in-candidate`,
///        `relation-size-differs`.
/// Source: `version()`, the views `pg_config` and `pg_settings` (PostgreSQL manual, 54).
pub fn fairness(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Vec<Finding> {
    let mut findings = build::findings(base, candidate);
    findings.extend(checksums(base, candidate));
    findings.extend(huge_pages(base, candidate));
    findings.extend(settings::findings(base, candidate));
    findings.extend(relation_size(base, candidate));
    findings
}

/// The names of the settings in which two readings of one build differ, without those that every cluster has
/// for itself, and those that hardly move numbers.
pub fn settings_that_differ(one: &[Setting], other: &[Setting]) -> Vec<String> {
    settings::differing(one, other)
}

fn checksums(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Option<Finding> {
    let sentence = on_off("data checksums are", base, candidate, |side| {
        side.data_checksums
    });
    let differ = base.data_checksums != candidate.data_checksums;
    differ.then(|| Finding::new(FindingKind::ChecksumsDiffer, Severity::Confounder, sentence))
}

fn huge_pages(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Option<Finding> {
    let (left, right) = (base.huge_pages?, candidate.huge_pages?);
    let sentence = on_off(
        "huge pages for shared memory are",
        base,
        candidate,
        |side| side.huge_pages == Some(true),
    );
    (left != right)
        .then(|| Finding::new(FindingKind::HugePagesDiffer, Severity::Confounder, sentence))
}

fn on_off<'a>(
    what: &str,
    base: &ServerFacts<'a>,
    candidate: &ServerFacts<'a>,
    is_on: impl Fn(&ServerFacts<'a>) -> bool,
) -> String {
    let word = |side: &ServerFacts<'a>| if is_on(side) { "on" } else { "off" };
    format!(
        "{what} {} in {}, {} in {}",
        word(base),
        base.name,
        word(candidate),
        candidate.name
    )
}

/// A table that is smaller on one side is read with fewer page accesses.
fn relation_size(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Option<Finding> {
    let (left, right) = (base.relation_bytes?, candidate.relation_bytes?);
    let change = to_f64(right) / to_f64(left.max(1)) - 1.0;
    let mebibytes = |bytes: u64| format!("{:.1} MiB", to_f64(bytes) / 1_048_576.0);
    let differs = change.abs() > SIZE_TOLERANCE && left.abs_diff(right) >= SIZE_LEAST;
    differs.then(|| {
        let text = format!(
            "the same rows take {} in {}, {} in {} ({})",
            mebibytes(left),
            base.name,
            mebibytes(right),
            candidate.name,
            words::signed(change),
        );
        Finding::new(FindingKind::RelationSizeDiffers, Severity::Confounder, text)
    })
}

/// `only base has A, B; only postgres:18 has C`; the half without items is left out.
pub fn only_in(base: &str, candidate: &str, left: &[String], right: &[String]) -> String {
    let half = |name: &str, items: &[String]| {
        (!items.is_empty()).then(|| format!("only {name} has {}", items.join(", ")))
    };
    let halves: Vec<String> = [half(base, left), half(candidate, right)]
        .into_iter()
        .flatten()
        .collect();
    halves.join("; ")
}
