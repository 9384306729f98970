//! What is bisected, as it was typed: a range of commits or releases, or servers in order.

use deltabench_model::problem::Problem;
use deltabench_model::target::{Release, TargetSpec};
use std::path::PathBuf;

/// The variant of commits that come without one: code that a commit leaves alone is less likely to cost
/// something else after it.
pub const VARIANT: &str = "o2_aligned";

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    /// Commits of a repository.
    Commits {
        repository: PathBuf,
        base: String,
        candidate: String,
        variant: String,
    },
    /// Point releases; those with a variant are built.
    Releases {
        base: Release,
        candidate: Release,
        variant: Option<String>,
    },
    /// Servers in order of time.
    Targets(Vec<String>),
}

impl Range {
    /// Reads ranges and lists of targets; absent: it is one word that names a run.
    ///
    /// Errors: a range that lacks a part; a target that is none.
    pub fn read(words: &[String]) -> Result<Option<Self>, Problem> {
        let address = |word: &&String| word.starts_with("dsn:") || word.contains("://");
        for word in words.iter().filter(address) {
            // First, because it refuses what may hold a password, and does not repeat it.
            word.parse::<TargetSpec>()?;
        }
        match words {
            [one] => match one.split_once(':') {
                Some(("git", rest)) => Self::commits(one, rest).map(Some),
                Some(("postgres", rest)) => Self::releases(one, rest).map(Some),
                Some(_) => Err(bad(one, "one target is no range")),
                None => Ok(None),
            },
            several => {
                for text in several {
                    if text.contains("..") && !text.starts_with("path:") {
                        return Err(bad(text, "a range stands alone"));
                    }
                    text.parse::<TargetSpec>()?;
                }
                Ok(Some(Self::Targets(several.to_vec())))
            }
        }
    }

    fn commits(text: &str, rest: &str) -> Result<Self, Problem> {
        let (directory, refs) = rest
            .rsplit_once('@')
            .ok_or_else(|| bad(text, "it names no commits"))?;
        let (refs, variant) = refs.rsplit_once('+').unwrap_or((refs, VARIANT));
        let (base, candidate) = ends(text, refs)?;
        if directory.is_empty() {
            return Err(bad(text, "it names no directory"));
        }
        Ok(Self::Commits {
            repository: PathBuf::from(directory),
            base: base.to_owned(),
            candidate: candidate.to_owned(),
            variant: variant.to_owned(),
        })
    }

    fn releases(text: &str, rest: &str) -> Result<Self, Problem> {
        let (releases, variant) = match rest.rsplit_once('+') {
            Some((releases, variant)) => (releases, Some(variant.to_owned())),
            None => (rest, None),
        };
        let (base, candidate) = ends(text, releases)?;
        Ok(Self::Releases {
            base: base.parse()?,
            candidate: candidate.parse()?,
            variant,
        })
    }
}

fn ends<'a>(text: &str, range: &'a str) -> Result<(&'a str, &'a str), Problem> {
    let found = range.split_once("..");
    let found = found.filter(|(base, candidate)| !base.is_empty() && !candidate.is_empty());
    found
        .filter(|(_, candidate)| !candidate.starts_with('.'))
        .ok_or_else(|| {
            bad(
                text,
                "it does not have a base and a candidate with two dots between them",
            )
        })
}

fn bad(text: &str, why: &str) -> Problem {
    Problem::new(format!("bad range `{text}`")).detail(why).hint(
        "write git:DIR@BASE..CANDIDATE, postgres:17.0..17.6, or two targets or more in order of time",
    )
}

/// The releases from a base to a candidate, of those that there are: in one series all between them; else the
/// first of each later series and, in the candidate's, all up to it. Releases of a series after its first
/// are no ancestors of the next series.
///
/// Shape:  `variant` as it is written after a release, with its `+`.
/// Errors: an end that there is not, or a candidate that is not newer than the base.
pub fn releases(
    (base, candidate): (&Release, &Release),
    variant: &str,
    all: &[Release],
) -> Result<Vec<Release>, Problem> {
    let mut all: Vec<&Release> = all.iter().collect();
    let place = |release: &Release| (release.major_rank(), release.minor.unwrap_or(0));
    all.sort_by_key(|release| place(release));
    let end = |wanted: &Release| {
        let mut series = all.iter().rev().filter(|one| one.major == wanted.major);
        let found = series.find(|one| wanted.minor.is_none() || one.minor == wanted.minor);
        found.copied().cloned().ok_or_else(|| {
            Problem::new(format!("postgres:{wanted} is not available"))
                .hint("`deltabench targets --all` lists all releases")
        })
    };
    let (base, candidate) = (end(base)?, end(candidate)?);
    if place(&base) == place(&candidate) {
        return Err(Problem::new(format!("both ends are {base}")).hint("name an older base"));
    }
    if place(&base) > place(&candidate) {
        return Err(
            Problem::new(format!("{candidate} is not newer than {base}"))
                .hint(format!("write postgres:{candidate}..{base}{variant}")),
        );
    }
    let first_of_series = |release: &Release| {
        let mut series = all.iter().filter(|one| one.major == release.major);
        series.next().is_some_and(|first| *first == release)
    };
    let between = |release: &&&Release| {
        let inside = place(release) > place(&base) && place(release) < place(&candidate);
        let on_the_way = release.major == candidate.major
            || first_of_series(release) && release.major != base.major;
        inside && on_the_way
    };
    let between = all
        .iter()
        .filter(between)
        .map(|release| (**release).clone());
    let ends = (
        std::iter::once(base.clone()),
        std::iter::once(candidate.clone()),
    );
    Ok(ends.0.chain(between).chain(ends.1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Option<Range>, Problem> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Range::read(&words)
    }

    #[test]
    fn ranges_and_lists_are_read_and_a_single_word_is_a_run() {
        assert_eq!(read(&["last"]).unwrap(), None);
        let commits = |variant: &str| Range::Commits {
            repository: "/src/pg".into(),
            base: "REL_17_0".to_owned(),
            candidate: "HEAD~3".to_owned(),
            variant: variant.to_owned(),
        };
        let found = read(&["git:/src/pg@REL_17_0..HEAD~3+o3"]).unwrap();
        assert_eq!(found, Some(commits("o3")));
        assert_eq!(
            read(&["git:/src/pg@REL_17_0..HEAD~3"]).unwrap(),
            Some(commits(VARIANT))
        );
        let Some(Range::Releases { variant, .. }) = read(&["postgres:17.0..17.6+o3"]).unwrap()
        else {
            panic!()
        };
        assert_eq!(variant.as_deref(), Some("o3"));
        let Some(Range::Targets(targets)) = read(&["path:/a/../b", "path:/c"]).unwrap() else {
            panic!()
        };
        assert_eq!(targets.len(), 2);
    }

    #[test]
    fn half_ranges_are_refused_with_what_to_write() {
        for words in [
            &["git:/src/pg"][..],
            &["git:/src/pg@HEAD"],
            &["git:@a..b"],
            &["git:/src/pg@..b"],
            &["git:/src/pg@a...b"],
            &["postgres:17"],
            &["path:/a"],
            &["postgres:17.0..17.1", "postgres:17.2"],
        ] {
            let hint = read(words).unwrap_err().hint;
            assert!(hint.unwrap().contains("BASE..CANDIDATE"), "{words:?}");
        }
        assert!(read(&["postgres:x..17.1"]).is_err());
        let server = read(&["dsn:postgres://me@h/d"]).unwrap_err();
        assert!(server.hint.unwrap().contains("BASE..CANDIDATE"));
        assert!(read(&["nonsense", "postgres:17"]).is_err());
    }

    #[test]
    fn a_password_is_not_repeated() {
        for words in [
            &["dsn:postgres://me:hunter2@h/d..postgres:18"][..],
            &["dsn:host=h password=hunter2"],
            &["git:https://me:hunter2@h/pg@a..b"],
            &["postgres://me:hunter2@h/a..b"],
            &["postgres:17", "dsn:postgres://me:hunter2@h/d..e"],
            &["postgres:17", "path:ssh://me:hunter2@h/.."],
        ] {
            let refused = read(words).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    fn between(base: &str, candidate: &str) -> Result<String, Problem> {
        let all = [
            "18.0", "18.2", "18.1", "17.0", "17.2", "17.5", "16.1", "16.4", "9.6.24",
        ];
        let all: Vec<Release> = all.iter().map(|text| text.parse().unwrap()).collect();
        let ends = (&base.parse().unwrap(), &candidate.parse().unwrap());
        let found = releases(ends, "+o3", &all)?;
        let words: Vec<String> = found.iter().map(Release::to_string).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn releases_of_one_series_are_all_between_and_of_several_those_on_the_way() {
        assert_eq!(between("17.0", "17.5").unwrap(), "17.0 17.2 17.5");
        assert_eq!(between("17", "18").unwrap(), "17.5 18.0 18.1 18.2");
        assert_eq!(
            between("9.6.24", "18.1").unwrap(),
            "9.6.24 16.1 17.0 18.0 18.1"
        );
        assert_eq!(between("16.4", "17.0").unwrap(), "16.4 17.0");
        assert!(between("17.3", "17.5").unwrap_err().error.contains("17.3"));
        let reversed = between("17.5", "17.0").unwrap_err();
        assert!(reversed.hint.unwrap().contains("postgres:17.0..17.5+o3"));
        let equal = between("17", "17.5").unwrap_err().to_string();
        assert!(equal.contains("both ends are 17.5") && equal.contains("older base"));
    }
}
