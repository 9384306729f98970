//! Where a search looks first: commits that change functions which moved, or may be inlined into one, or
//! which run at all.

use super::learnt::{Commit, commit, profile_of};
use crate::console::say;
use crate::failure::Failure;
use deltabench_acquire::{ByFile, defined_in, touched};
use deltabench_bisect::{Touches, weights};
use deltabench_explain::explain;
use deltabench_model::bisection::Bisection;
use deltabench_model::units::to_f64;
use deltabench_store::Store;
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of an operation by which a function must differ to have moved.
const MOVED: f64 = 10.0;

/// The weight of each place, once both ends are counted; none where the points are no commits, or git does
/// not say what they change.
///
/// Errors: the lab.
pub fn prior(bisection: &Bisection, places: &[usize], store: &Store) -> Result<Vec<f64>, Failure> {
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return Ok(Vec::new());
    };
    let commits: Vec<Option<Commit>> = places
        .iter()
        .map(|place| commit(bisection, *place))
        .collect();
    let (Some(Some(base)), Some(Some(candidate))) = (commits.first(), commits.last()) else {
        return Ok(Vec::new());
    };
    let profiles = (
        profile_of(bisection, *first, store)?,
        profile_of(bisection, *last, store)?,
    );
    let (Some(before), Some(after)) = profiles else {
        return Ok(Vec::new());
    };
    let ends = [base.id.as_str(), candidate.id.as_str()];
    let touched = match touched(&base.repository, (ends[0], ends[1])) {
        Ok(touched) => touched,
        Err(problem) => {
            say(&format!("no prior for the looks: {}", problem.error));
            return Ok(Vec::new());
        }
    };
    let mut ran = Ran::of(&explain(&before, &after, 1));
    // Without it the looks have a weaker prior.
    ran.files = defined_in(&base.repository, &ends, &ran.moved).unwrap_or_default();
    let kind = |commit: &Option<Commit>| {
        let files = commit.as_ref().and_then(|commit| touched.get(&commit.id));
        files.map_or(Touches::Other, |files| ran.kind(files))
    };
    let kinds: Vec<Touches> = commits.iter().map(kind).collect();
    let of = |wanted| kinds.iter().skip(1).filter(|kind| **kind == wanted).count();
    let [moved, near, executed] = [Touches::Moved, Touches::Near, Touches::Executed].map(of);
    if moved + near + executed == 0 {
        return Ok(Vec::new());
    }
    say(&format!(
        "the looks begin with commits that change a function whose instructions changed ({moved}), one in \
         its file that may be inlined ({near}), or one that runs ({executed})"
    ));
    Ok(weights(&kinds))
}

/// The functions that ran on either end.
struct Ran {
    moved: BTreeSet<String>,
    all: BTreeSet<String>,
    /// Those that define one which moved.
    files: BTreeSet<String>,
}

impl Ran {
    fn of(explanation: &deltabench_model::explanation::Explanation) -> Self {
        let mut own: BTreeMap<&str, i64> = BTreeMap::new();
        for frame in &explanation.frames {
            let names = std::iter::once(&frame.name).chain(&frame.was);
            for name in names {
                *own.entry(name).or_default() += frame.candidate.own - frame.base.own;
            }
        }
        let operations = to_f64(explanation.operations.max(1));
        let is_moved = |own: &i64| to_f64(own.unsigned_abs()) / operations >= MOVED;
        let moved = own.iter().filter(|(_, own)| is_moved(own));
        Self {
            moved: moved.map(|(name, _)| (*name).to_owned()).collect(),
            all: own.keys().map(|name| (*name).to_owned()).collect(),
            files: BTreeSet::new(),
        }
    }

    fn kind(&self, touched: &ByFile) -> Touches {
        let is_any =
            |known: &BTreeSet<String>| touched.values().any(|names| !known.is_disjoint(names));
        let is_near = |(file, names): (&String, &BTreeSet<String>)| {
            self.files.contains(file) && !names.is_subset(&self.all)
        };
        if is_any(&self.moved) {
            Touches::Moved
        } else if touched.iter().any(is_near) {
            Touches::Near
        } else if is_any(&self.all) {
            Touches::Executed
        } else {
            Touches::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::profile::Profile;

    /// A profile of 100 operations, in which `main` calls these functions.
    fn profile(functions: &[(&str, i64)]) -> Profile {
        let names = functions.iter().map(|(name, _)| *name);
        let nodes = functions.iter().enumerate();
        serde_json::from_value(serde_json::json!({
            "operations": 100,
            "functions": std::iter::once("main").chain(names).map(|name| (name, "postgres"))
                .collect::<Vec<_>>(),
            "nodes": std::iter::once((0, 0, 100, 100))
                .chain(nodes.map(|(number, (_, own))| (0, number + 1, *own, 100)))
                .collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    #[test]
    fn a_commit_is_as_likely_as_the_function_that_moved_most_in_it() {
        let before = profile(&[("grown", 1000), ("steady", 5000), ("nearly", 1000)]);
        let after = profile(&[
            ("grown.isra.0", 2100),
            ("steady", 5000),
            ("nearly", 1900),
            ("new", 4000),
        ]);
        let mut ran = Ran::of(&explain(&before, &after, 1));
        ran.files = ["grown.c".to_owned()].into();
        let kind_in = |file: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            ran.kind(&[(file.to_owned(), names)].into())
        };
        let kind = |names: &[&str]| kind_in("other.c", names);
        assert_eq!(kind(&["steady", "grown"]), Touches::Moved);
        assert_eq!(kind_in("grown.c", &["steady", "elsewhere"]), Touches::Near);
        assert_eq!(kind_in("grown.c", &["steady"]), Touches::Executed);
        assert_eq!(kind(&["new"]), Touches::Moved);
        assert_eq!(kind(&["nearly"]), Touches::Executed, "by 9 of an operation");
        assert_eq!(kind(&["steady", "elsewhere"]), Touches::Executed);
        assert_eq!(kind(&["elsewhere"]), Touches::Other);
    }
}
