//! Targets that are built from source: `postgres:17.11+o3`, `src:FILE+o3`, `git:DIR@REF+o3`.

use super::{Release, SourceName};
use crate::problem::Problem;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What to build, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BuildSpec {
    /// Where the source comes from.
    pub source: BuildSource,
    /// Name of the variant: flags and options.
    pub variant: String,
}

/// Where the source of a build comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BuildSource {
    /// A release: `postgres:17.11+…`.
    Release(Release),
    /// What no package has, from what the user's configuration names: `postgres:18beta1`, `postgres:master`.
    Named(SourceName),
    /// An archive: `src:FILE+…`.
    Archive(PathBuf),
    /// A commit of a repository: `git:DIR@REF+…`.
    Git {
        /// The repository's directory.
        directory: PathBuf,
        /// Commit, tag or branch.
        reference: String,
    },
}

impl BuildSpec {
    /// The variant of a named source that is asked for without one: the build system's own flags.
    pub const PLAIN: &str = "def";

    /// A source by its name, built without flags of ours.
    #[must_use]
    pub fn plain(name: SourceName) -> Self {
        Self {
            source: BuildSource::Named(name),
            variant: Self::PLAIN.to_owned(),
        }
    }

    /// The directory of the repository, if it is a commit that is built.
    pub fn directory(&self) -> Option<&Path> {
        match &self.source {
            BuildSource::Git { directory, .. } => Some(directory),
            BuildSource::Release(_) | BuildSource::Named(_) | BuildSource::Archive(_) => None,
        }
    }
}

impl FromStr for BuildSpec {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let bad = |why: &str| Problem::new(format!("bad target `{text}`")).detail(why.to_owned());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        // The last `+`: a file name may hold one too.
        let Some((what, variant)) = rest.rsplit_once('+') else {
            return Err(
                bad("a build from source needs the name of a variant after a `+`")
                    .hint(format!("write {text}+def for the build system's own flags")),
            );
        };
        let named = variant
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if variant.is_empty() || !named {
            return Err(
                bad("the name of a variant is made of letters, digits, `_`, `-` and `.`").hint(
                    format!("write {kind}:{what}+def for the build system's own flags"),
                ),
            );
        }
        let source = match kind {
            "postgres" => match SourceName::of(what) {
                Some(name) => BuildSource::Named(name),
                None => BuildSource::Release(what.parse()?),
            },
            "src" if !what.is_empty() => BuildSource::Archive(PathBuf::from(what)),
            "git" => match what.rsplit_once('@') {
                Some((directory, reference)) if !directory.is_empty() && !reference.is_empty() => {
                    BuildSource::Git {
                        directory: PathBuf::from(directory),
                        reference: reference.to_owned(),
                    }
                }
                _ => {
                    return Err(
                        bad("a git target needs a directory and a commit, tag or branch")
                            .hint(format!("write git:DIR@HEAD+{variant}")),
                    );
                }
            },
            _ => {
                return Err(bad("no source is named")
                    .hint(format!("write src:postgresql-17.11.tar.bz2+{variant}")));
            }
        };
        Ok(Self {
            source,
            variant: variant.to_owned(),
        })
    }
}

impl fmt::Display for BuildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            BuildSource::Release(release) => write!(f, "postgres:{release}")?,
            BuildSource::Named(name) if self.variant == Self::PLAIN => {
                return write!(f, "postgres:{name}");
            }
            BuildSource::Named(name) => write!(f, "postgres:{name}")?,
            BuildSource::Archive(file) => write!(f, "src:{}", file.display())?,
            BuildSource::Git {
                directory,
                reference,
            } => write!(f, "git:{}@{reference}", directory.display())?,
        }
        write!(f, "+{}", self.variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_a_part_is_refused_with_how_to_write_it() {
        let refusal = |text: &str| text.parse::<BuildSpec>().unwrap_err();
        assert!(refusal("src:a.tar").hint.unwrap().contains("src:a.tar+def"));
        assert!(
            refusal("git:dir+o3")
                .hint
                .unwrap()
                .contains("git:DIR@HEAD+o3")
        );
        assert!(refusal("git:@x+o3").hint.is_some());
        assert!(refusal("src:+o3").hint.is_some());
        assert!(refusal("postgres:17+o 3").detail.is_some());
    }

    #[test]
    fn the_variant_is_after_the_last_plus() {
        let spec: BuildSpec = "src:a+b.tar.gz+o3".parse().unwrap();
        assert_eq!(spec.variant, "o3");
        assert_eq!(spec.source, BuildSource::Archive("a+b.tar.gz".into()));
    }
}
