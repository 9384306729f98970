//! Which packaged script of sysbench does what which workload does.

use deltabench_model::plan::WorkloadSource;
use deltabench_model::problem::{Problem, nearest};
use deltabench_workload::{Definition, Library};

/// What sysbench's package has for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packaged {
    /// A script that does the same with these options.
    Script {
        /// Its name, without `.lua`.
        script: &'static str,
        /// Options beside those that every run has.
        options: &'static [(&'static str, u64)],
    },
    /// No script, and why the nearest one is none.
    Nothing(&'static str),
}

/// Workloads that are there for their packaged script only.
const EXTRA: [(&str, &str); 2] = [
    (
        "workloads/crosscheck/select-random-points.toml",
        include_str!("../../../../workloads/crosscheck/select-random-points.toml"),
    ),
    (
        "workloads/crosscheck/select-random-ranges.toml",
        include_str!("../../../../workloads/crosscheck/select-random-ranges.toml"),
    ),
];

const NO_ID_LIST: &str = "no packaged script reads a list of ids";
const NO_K_LIST: &str =
    "select_random_points reads whole rows for 10 values of k; see select-random-points";
const NO_RANGE: &str = "the ranges of oltp_read_only read c, and are part of a transaction";
const NO_K_RANGE: &str =
    "select_random_ranges counts ten ranges of k at once; see select-random-ranges";

/// `oltp_read_only` with one kind of range, of 1000 rows.
macro_rules! one_range {
    ($simple:literal, $sum:literal, $order:literal, $distinct:literal) => {
        Packaged::Script {
            script: "oltp_read_only",
            options: &[
                ("range_size", 1000),
                ("simple_ranges", $simple),
                ("sum_ranges", $sum),
                ("order_ranges", $order),
                ("distinct_ranges", $distinct),
            ],
        }
    };
}

const fn script(script: &'static str, options: &'static [(&'static str, u64)]) -> Packaged {
    Packaged::Script { script, options }
}

/// Every workload that can be asked for, and what the package has for it.
const TABLE: [(&str, Packaged); 35] = [
    ("hot-points", Packaged::Nothing(NO_ID_LIST)),
    ("point-query", script("oltp_point_select", &[])),
    ("points-covered-pk", Packaged::Nothing(NO_ID_LIST)),
    ("points-covered-si", Packaged::Nothing(NO_K_LIST)),
    ("points-notcovered-pk", Packaged::Nothing(NO_ID_LIST)),
    ("points-notcovered-si", Packaged::Nothing(NO_K_LIST)),
    ("random-points-1000", Packaged::Nothing(NO_ID_LIST)),
    ("random-points-100", Packaged::Nothing(NO_ID_LIST)),
    ("random-points-10", Packaged::Nothing(NO_ID_LIST)),
    ("range-covered-pk", Packaged::Nothing(NO_RANGE)),
    ("range-covered-si", Packaged::Nothing(NO_K_RANGE)),
    ("range-notcovered-pk", Packaged::Nothing(NO_RANGE)),
    ("range-notcovered-si", Packaged::Nothing(NO_K_RANGE)),
    (
        "scan",
        Packaged::Nothing("no packaged script reads a whole table"),
    ),
    (
        "read-only-count",
        Packaged::Nothing("oltp_read_only has no counting range"),
    ),
    ("read-only-distinct", one_range!(0, 0, 0, 1)),
    ("read-only-order", one_range!(0, 0, 1, 0)),
    (
        "read-only-10000",
        script("oltp_read_only", &[("range_size", 10_000)]),
    ),
    (
        "read-only-100",
        script("oltp_read_only", &[("range_size", 100)]),
    ),
    (
        "read-only-10",
        script("oltp_read_only", &[("range_size", 10)]),
    ),
    ("read-only-simple", one_range!(1, 0, 0, 0)),
    ("read-only-sum", one_range!(0, 1, 0, 0)),
    ("delete", script("oltp_delete", &[])),
    (
        "delete-existing",
        Packaged::Nothing("oltp_delete draws ids, and is compared as delete"),
    ),
    ("insert", script("oltp_insert", &[])),
    (
        "read-write-100",
        script("oltp_read_write", &[("range_size", 100)]),
    ),
    (
        "read-write-10",
        script("oltp_read_write", &[("range_size", 10)]),
    ),
    ("update-index", script("oltp_update_index", &[])),
    (
        "update-inlist",
        Packaged::Nothing("no packaged script updates a list of ids"),
    ),
    ("update-nonindex", script("oltp_update_non_index", &[])),
    (
        "update-one",
        script("oltp_update_non_index", &[("table_size", 1)]),
    ),
    (
        "update-zipf",
        Packaged::Nothing("sysbench 1.0 has no zipfian distribution; 1.1 brings it"),
    ),
    ("write-only", script("oltp_write_only", &[])),
    ("select-random-points", script("select_random_points", &[])),
    ("select-random-ranges", script("select_random_ranges", &[])),
];

/// What the package has for a workload; `None` for one that is not known here.
pub fn packaged(workload: &str) -> Option<Packaged> {
    let mut table = TABLE.iter();
    table
        .find(|(name, _)| *name == workload)
        .map(|(_, found)| *found)
}

/// The workloads of the files that only a crosscheck uses.
pub(crate) fn extra_sources() -> Vec<WorkloadSource> {
    let source = |(file, text): &(&str, &str)| WorkloadSource {
        file: (*file).to_owned(),
        text: (*text).to_owned(),
    };
    EXTRA.iter().map(source).collect()
}

/// The workloads to compare: those asked for, in that order, or all in the order of published reports.
///
/// Errors: a name that is not known, or asked for twice; a `.pre` name, which is the same SQL.
pub fn chosen(only: &[String]) -> Result<Vec<Definition>, Problem> {
    let library = Library::builtin()?.with_sources(&extra_sources())?;
    // No script of sysbench opens connections.
    let has_script =
        |found: &&Definition| found.state().is_none() && !Definition::reconnects(found);
    let all = || library.all().iter().filter(has_script);
    if only.is_empty() {
        return Ok(all().cloned().collect());
    }
    let mut definitions: Vec<Definition> = Vec::new();
    for name in only {
        if definitions.iter().any(|known| known.name == *name) {
            return Err(Problem::new(format!("{name} is named twice")));
        }
        let found = all().find(|definition| definition.name == *name);
        definitions.push(found.cloned().ok_or_else(|| unknown(name, all()))?);
    }
    Ok(definitions)
}

fn unknown<'a>(name: &str, all: impl Iterator<Item = &'a Definition>) -> Problem {
    let names: Vec<&str> = all.map(|definition| definition.name.as_str()).collect();
    let problem = Problem::new(format!("no workload `{name}` to compare with sysbench"))
        .detail(format!("known workloads: {}", names.join(", ")));
    match name.strip_suffix(".pre") {
        Some(same) if names.contains(&same) => {
            problem.hint(format!("it sends the same SQL as {same}: use {same}"))
        }
        _ => match nearest(name, names.iter().copied()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint("leave --only out to compare all of them"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_its_place_in_the_table_and_the_other_way_round() {
        let names: Vec<String> = chosen(&[])
            .unwrap()
            .into_iter()
            .map(|found| found.name)
            .collect();
        assert_eq!(names, TABLE.map(|(name, _)| name));
    }

    #[test]
    fn range_sizes_are_those_of_the_definitions() {
        let mut checked = 0;
        for definition in chosen(&[]).unwrap() {
            let Some(Packaged::Script { options, .. }) = packaged(&definition.name) else {
                continue;
            };
            if let Some((_, size)) = options.iter().find(|(name, _)| *name == "range_size") {
                assert_eq!(definition.label, size.to_string(), "{}", definition.name);
                checked += 1;
            }
        }
        assert_eq!(checked, 9);
    }

    #[test]
    fn every_packaged_script_is_used() {
        let mut scripts: Vec<&str> = TABLE
            .iter()
            .filter_map(|(_, found)| match found {
                Packaged::Script { script, .. } => Some(*script),
                Packaged::Nothing(_) => None,
            })
            .collect();
        scripts.sort_unstable();
        scripts.dedup();
        assert_eq!(
            scripts,
            [
                "oltp_delete",
                "oltp_insert",
                "oltp_point_select",
                "oltp_read_only",
                "oltp_read_write",
                "oltp_update_index",
                "oltp_update_non_index",
                "oltp_write_only",
                "select_random_points",
                "select_random_ranges",
            ]
        );
    }

    #[test]
    fn a_bad_name_is_refused_with_the_way_out() {
        let refused = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names).unwrap_err().to_string()
        };
        assert!(refused(&["point-qery"]).contains("did you mean `point-query`?"));
        assert!(refused(&["point-query.pre"]).contains("the same SQL as point-query"));
        assert!(refused(&["scan", "scan"]).contains("scan is named twice"));
        assert!(refused(&["zzzzzzzz"]).contains("leave --only out"));
    }
}
