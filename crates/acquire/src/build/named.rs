//! Sources by the names that people use, from what the user's configuration names.

use super::archive::Contents;
use deltabench_model::problem::Problem;
use deltabench_model::target::{BuildSource, BuildSpec, SourceName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where sources are that no package has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedSources {
    /// A clone of PostgreSQL's repository.
    pub clone: Option<PathBuf>,
    /// Archives by the name of what they hold. They win over the clone.
    pub archives: BTreeMap<SourceName, PathBuf>,
}

impl NamedSources {
    /// Where the source of this name is.
    ///
    /// Errors: the user's configuration names neither an archive nor a clone.
    pub(super) fn find(&self, name: &SourceName) -> Result<Place<'_>, Problem> {
        match (self.archives.get(name), &self.clone) {
            (Some(file), _) => Ok(Place::Archive(file)),
            (None, Some(directory)) => Ok(Place::Clone(directory)),
            (None, None) => Err(unknown(name)),
        }
    }
}

/// Where a source is.
pub(super) enum Place<'a> {
    Archive(&'a Path),
    Clone(&'a Path),
}

fn unknown(name: &SourceName) -> Problem {
    Problem::new(format!("deltabench knows no source of postgres:{name}"))
        .detail(
            "no package has betas, release candidates, branches and commits; deltabench builds them from a \
             clone or an archive that you name once in ~/.config/deltabench/config.toml",
        )
        .hint(format!(
            "write postgres_git = \"/src/postgres\" for a clone of PostgreSQL's repository, or for an \
             archive\n\
             [postgres_archives]\n\
             \"{name}\" = \"/src/postgresql-{name}.tar.bz2\""
        ))
}

/// Refuses a source that is not of the version that its name says.
pub(super) fn check(spec: &BuildSpec, contents: &Contents, place: &str) -> Result<(), Problem> {
    let BuildSource::Named(name) = &spec.source else {
        return Ok(());
    };
    let is_it = match name.version() {
        Some(version) => version == contents.version,
        None => name
            .major_rank()
            .is_none_or(|rank| rank == contents.major_rank()),
    };
    if is_it {
        return Ok(());
    }
    Err(
        Problem::new(format!("{place} is not the source of postgres:{name}"))
            .detail(format!("it is PostgreSQL {}", contents.version))
            .hint("correct the name in ~/.config/deltabench/config.toml"),
    )
}

/// What a clone may call a source, in order: PostgreSQL's own branch as the clone fetched it last, before a
/// branch of the user's.
pub(super) fn references(name: &SourceName) -> [String; 2] {
    let reference = name.reference();
    [format!("refs/remotes/origin/{reference}"), reference]
}
