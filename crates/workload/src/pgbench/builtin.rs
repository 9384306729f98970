//! The scripts that pgbench has built in, in `workloads/pgbench`.

use deltabench_model::plan::WorkloadSource;
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::pgbench::PgbenchScript;

macro_rules! script {
    ($name:literal, $called:literal) => {
        (
            $name,
            $called,
            include_str!(concat!("../../../../workloads/pgbench/", $name, ".sql")),
        )
    };
}

/// Name, what pgbench calls it in its output, and text.
const SCRIPTS: [(&str, &str, &str); 3] = [
    script!("tpcb-like", "<builtin: TPC-B (sort of)>"),
    script!("simple-update", "<builtin: simple update>"),
    script!("select-only", "<builtin: select only>"),
];

/// The names of the built-in scripts, as pgbench lists them.
pub fn builtin_names() -> [&'static str; 3] {
    SCRIPTS.map(|(name, ..)| name)
}

/// The whole name of the built-in script that is called so, or the only one whose name begins so.
///
/// Errors: there is none, or there are several.
pub fn builtin_name(name: &str) -> Result<&'static str, Problem> {
    let names = builtin_names();
    let begins = names.into_iter().filter(|known| known.starts_with(name));
    match begins.collect::<Vec<_>>().as_slice() {
        [found] => Ok(*found),
        [] => {
            let problem = Problem::new(format!("no builtin script found for name \"{name}\""))
                .detail(format!("there are {}", names.join(", ")));
            Err(match nearest(name, names) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            })
        }
        several => {
            let what = format!(
                "ambiguous builtin name: {} builtin scripts found for prefix \"{name}\"",
                several.len()
            );
            Err(Problem::new(what).detail(format!("they are {}", several.join(", "))))
        }
    }
}

/// A built-in script, by its name or the beginning of it, with weight 1.
///
/// Errors: as [`builtin_name`].
pub fn builtin(name: &str) -> Result<PgbenchScript, Problem> {
    let whole = builtin_name(name)?;
    let found = SCRIPTS.into_iter().find(|(name, ..)| *name == whole);
    let (_, file, text) = found.unwrap_or_default();
    Ok(PgbenchScript {
        source: WorkloadSource {
            file: file.to_owned(),
            text: text.to_owned(),
        },
        weight: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_cut_short_where_it_is_clear() {
        for (name, whole) in [
            ("tpcb-like", "tpcb-like"),
            ("t", "tpcb-like"),
            ("se", "select-only"),
            ("si", "simple-update"),
        ] {
            assert_eq!(builtin_name(name), Ok(whole));
        }
        let problem = builtin("s").unwrap_err().to_string();
        assert!(problem.contains("2 builtin scripts found"), "{problem}");
        let problem = builtin("select-onyl").unwrap_err().to_string();
        assert!(problem.contains("did you mean `select-only`?"), "{problem}");
        assert!(
            builtin("se")
                .unwrap()
                .source
                .text
                .contains("SELECT abalance")
        );
    }
}
