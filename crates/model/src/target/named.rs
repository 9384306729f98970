//! States of PostgreSQL's source that no package has, by the names that people use: `18beta1`, `master`.

use std::fmt;

/// A beta, a release candidate, or a branch, tag or commit before one of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceName(String);

/// Words of versions before a release, as `configure` writes them.
const STAGES: [&str; 3] = ["alpha", "beta", "rc"];

impl SourceName {
    /// The name, if the text is one: `18beta1`, `18rc1`, `REL_18_STABLE`, `REL_18_BETA1`, `master~20`.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.~^".contains(c);
        let is_reference = ["REL_", "REL9_", "master"].iter().any(|start| {
            let rest = text.strip_prefix(start);
            rest.is_some_and(|rest| match *start {
                "master" => rest.is_empty() || rest.starts_with(['~', '^']),
                _ => rest.starts_with(|c: char| c.is_ascii_digit()),
            })
        });
        let named = pre_release(text).is_some() || (is_reference && text.chars().all(plain));
        named.then(|| Self(text.to_owned()))
    }

    /// The version that its source has; absent for a branch.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        pre_release(&self.0).map(|_| self.0.as_str())
    }

    /// What PostgreSQL's repository calls it: `REL_18_BETA1`, `REL_18_STABLE`.
    #[must_use]
    pub fn reference(&self) -> String {
        match self.version() {
            Some(version) => release_tag(version),
            None => self.0.clone(),
        }
    }

    /// A number that orders majors, as [`super::Release::major_rank`]; absent for `master`.
    #[must_use]
    pub fn major_rank(&self) -> Option<u32> {
        let digits = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit());
            let (number, rest) = text.split_at(end.unwrap_or(text.len()));
            Some((number.parse::<u32>().ok()?, rest.to_owned()))
        };
        let rest = self.0.trim_start_matches("REL").trim_start_matches('_');
        let (first, rest) = digits(rest)?;
        if first >= 10 {
            return Some(first * 100);
        }
        let (second, _) = digits(rest.trim_start_matches(['_', '.']))?;
        Some(first * 100 + second)
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The numbers before and after the stage of a version before a release.
fn pre_release(text: &str) -> Option<(&str, u32)> {
    let (number, stage) = STAGES.iter().find_map(|word| text.split_once(word))?;
    let parts: Vec<u32> = number
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let is_major = match parts.as_slice() {
        [9, _] => true,
        [major] => *major >= 10,
        _ => false,
    };
    is_major
        .then(|| stage.parse().ok())
        .flatten()
        .map(|stage| (number, stage))
}

/// The tag that PostgreSQL's repository gives a version: `REL_17_0`, `REL_19_BETA1`, `REL9_6_24`.
#[must_use]
pub fn release_tag(version: &str) -> String {
    let name = version.replace('.', "_").to_uppercase();
    let of_before_10 = version
        .split('.')
        .next()
        .is_some_and(|major| major.len() == 1);
    let name = match STAGES
        .iter()
        .find_map(|word| name.find(&word.to_uppercase()))
    {
        Some(at) => {
            let (major, rest) = name.split_at(at);
            format!("{major}_{rest}")
        }
        None => name,
    };
    if of_before_10 {
        return format!("REL{name}");
    }
    format!("REL_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_tag_that_the_repository_gave_it() {
        assert_eq!(release_tag("17.0"), "REL_17_0");
        assert_eq!(release_tag("19beta1"), "REL_19_BETA1");
        assert_eq!(release_tag("18rc2"), "REL_18_RC2");
        assert_eq!(release_tag("9.6.24"), "REL9_6_24");
        assert_eq!(release_tag("9.6beta1"), "REL9_6_BETA1");
    }

    #[test]
    fn a_name_says_what_the_repository_calls_it_and_which_major_it_is_of() {
        for (text, reference, version, rank) in [
            ("18beta1", "REL_18_BETA1", Some("18beta1"), Some(1800)),
            ("18rc1", "REL_18_RC1", Some("18rc1"), Some(1800)),
            ("9.6beta2", "REL9_6_BETA2", Some("9.6beta2"), Some(906)),
            ("REL_18_STABLE", "REL_18_STABLE", None, Some(1800)),
            ("REL_18_STABLE~20", "REL_18_STABLE~20", None, Some(1800)),
            ("REL9_6_STABLE", "REL9_6_STABLE", None, Some(906)),
            ("REL_18_BETA1", "REL_18_BETA1", None, Some(1800)),
            ("master", "master", None, None),
            ("master~3", "master~3", None, None),
        ] {
            let name = SourceName::of(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(name.to_string(), text);
            assert_eq!(name.reference(), reference);
            assert_eq!(name.version(), version);
            assert_eq!(name.major_rank(), rank, "{text}");
        }
    }

    #[test]
    fn other_words_are_no_names() {
        for text in [
            "18",
            "17.5",
            "latest",
            "18beta",
            "18beta1x",
            "beta1",
            "8beta1",
            "masters",
            "REL_STABLE",
            "REL_18 STABLE",
            "REL_18_STABLE@{1}",
            "18.1rc1",
            "",
        ] {
            assert_eq!(SourceName::of(text), None, "{text}");
        }
    }
}
