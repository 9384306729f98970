//! Commits of the lab's builds, in the order of their history.

use deltabench_acquire::commits_in_order;
use deltabench_model::installation::Installation;
use std::collections::BTreeMap;
use std::path::Path;

/// The names of the builds' commits in the order of their history, clone by clone. Those of a clone that is
/// not there any more are left out.
pub fn commits(builds: &[&Installation]) -> Vec<String> {
    let mut clones: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for build in builds {
        let source = build.recipe.as_ref().map(|recipe| recipe.source.as_str());
        if let Some((clone, source)) = clone(build).zip(source) {
            clones.entry(clone).or_default().push(source);
        }
    }
    let known = clones.into_iter();
    known
        .flat_map(|(clone, ids)| commits_in_order(Path::new(clone), &ids).unwrap_or_default())
        .collect()
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
