//! Commits of the lab's builds, in the order of their history.

use deltabench_acquire::commits_in_order;
use deltabench_model::installation::Installation;
use std::collections::BTreeSet;
use std::path::Path;

/// The names of the builds' commits in the order of their history, by the clone that has most of them. Those
/// that it does not have are left out: two clones do not say which commit comes first.
pub fn commits(builds: &[&Installation]) -> Vec<String> {
    let recipes = builds.iter().filter_map(|build| build.recipe.as_ref());
    let ids: Vec<&str> = recipes.map(|recipe| recipe.source.as_str()).collect();
    let clones: BTreeSet<&str> = builds.iter().filter_map(|build| clone(build)).collect();
    let order = |clone: &str| commits_in_order(Path::new(clone), &ids).unwrap_or_default();
    let all = clones.into_iter().map(order);
    all.max_by_key(Vec::len).unwrap_or_default()
}

/// The clone that a build was made from: `/src/pg` of `git:/src/pg@master+o2`.
fn clone(build: &Installation) -> Option<&str> {
    let place = build.asked.strip_prefix("git:")?;
    let (clone, _) = place.rsplit_once('@')?;
    Some(clone)
}

/// How somebody can ask for this very build again.
pub fn target(build: &Installation) -> String {
    let commit = build.recipe.as_ref().zip(clone(build));
    match commit {
        Some((recipe, clone)) => {
            let short = recipe.source.get(..12).unwrap_or(&recipe.source);
            format!("git:{clone}@{short}+{}", recipe.variant)
        }
        None if build.resolved.starts_with("postgres:") => build.resolved.clone(),
        None => build.asked.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::installation::Recipe;
    use deltabench_testkit::small_run;

    #[test]
    fn a_build_can_be_asked_for_again() {
        let mut build = small_run::plan().servers[0].installation.clone();
        assert_eq!(target(&build), "postgres:17.11");
        build.resolved = "path".to_owned();
        build.asked = "path:/opt/x".to_owned();
        assert_eq!(target(&build), "path:/opt/x");
        build.asked = "git:/src/a@b/pg@master+o3".to_owned();
        build.recipe = Some(Recipe {
            variant: "o3".to_owned(),
            source: "0123456789abcdef".to_owned(),
            system: "meson".to_owned(),
            options: Vec::new(),
            cflags: String::new(),
            ldflags: String::new(),
            compiler: String::new(),
            environment: Vec::new(),
        });
        assert_eq!(target(&build), "git:/src/a@b/pg@0123456789ab+o3");
        assert!(commits(&[&build]).is_empty(), "the clone is not there");
    }
}
