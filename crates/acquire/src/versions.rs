//! Which versions the packages come in, and which is meant or nearest.

use deltabench_model::problem::Problem;
use deltabench_model::target::Release;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How packages of one release are ordered: third number, then stage (alpha, beta, release,
/// rebuild), then number.
type Revision = (u32, u32, u32);

/// A version as the package's publisher writes it, and the release of PostgreSQL inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PackageVersion {
    /// As published: `17.5.0`, `10.5.0-1`, `9.6.24`, `18.4.0-beta.17`.
    pub text: String,
    /// The release inside; its minor is always stated.
    pub release: Release,
    revision: Revision,
}

impl PackageVersion {
    /// Reads a published version; `None` for forms we do not know, such as packages of release candidates.
    pub fn parse(text: &str) -> Option<Self> {
        let (numbers, suffix) = match text.split_once('-') {
            Some((numbers, suffix)) => (numbers, Some(suffix)),
            None => (text, None),
        };
        let numbers: Vec<u32> = numbers
            .split('.')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        let (major, minor, third) = match numbers.as_slice() {
            [9, second, minor] => (format!("9.{second}"), *minor, 0),
            [9, second, minor, third] => (format!("9.{second}"), *minor, *third),
            [major, minor] if *major >= 10 => (major.to_string(), *minor, 0),
            [major, minor, third] if *major >= 10 => (major.to_string(), *minor, *third),
            _ => return None,
        };
        let (stage, number) = match suffix {
            None => (2, 0),
            Some(suffix) => match suffix.split_once('.') {
                None => (3, suffix.parse().ok()?),
                Some(("alpha", number)) => (0, number.parse().ok()?),
                Some(("beta", number)) => (1, number.parse().ok()?),
                Some(_) => return None,
            },
        };
        Some(Self {
            text: text.to_owned(),
            release: Release {
                major,
                minor: Some(minor),
            },
            revision: (third, stage, number),
        })
    }

    /// A key that orders packages by release, then by how often the release was packaged anew.
    pub fn order(&self) -> (u32, u32, Revision) {
        (
            self.release.major_rank(),
            self.release.minor.unwrap_or(0),
            self.revision,
        )
    }

    /// Whether this package answers the wish: same major, and same minor where one is stated.
    pub fn answers(&self, wanted: &Release) -> bool {
        self.release.major == wanted.major
            && (wanted.minor.is_none() || wanted.minor == self.release.minor)
    }
}

/// The newest package that answers `wanted`.
pub(crate) fn newest<'a>(
    wanted: &Release,
    among: impl IntoIterator<Item = &'a PackageVersion>,
) -> Option<&'a PackageVersion> {
    among
        .into_iter()
        .filter(|version| version.answers(wanted))
        .max_by_key(|version| version.order())
}

/// The last packaging of every release, newest release first.
pub(crate) fn one_per_release(versions: &[PackageVersion]) -> Vec<PackageVersion> {
    let mut best: BTreeMap<(u32, u32), &PackageVersion> = BTreeMap::new();
    for version in versions {
        let (rank, minor, _) = version.order();
        let slot = best.entry((rank, minor)).or_insert(version);
        if version.order() > slot.order() {
            *slot = version;
        }
    }
    best.into_values().rev().cloned().collect()
}

/// The nearest thing that can be had: the closest point release of the same major, else the closest major.
///
/// Of two equally close ones the newer is named.
pub(crate) fn nearest(wanted: &Release, versions: &[PackageVersion]) -> Option<Release> {
    let same_major = versions
        .iter()
        .filter(|version| version.release.major == wanted.major);
    let point = same_major.min_by_key(|version| {
        let minor = version.release.minor.unwrap_or(0);
        (
            minor.abs_diff(wanted.minor.unwrap_or(u32::MAX)),
            Reverse(minor),
        )
    });
    if let Some(version) = point {
        return Some(version.release.clone());
    }
    let rank = |version: &PackageVersion| version.release.major_rank();
    versions
        .iter()
        .min_by_key(|version| {
            (
                rank(version).abs_diff(wanted.major_rank()),
                Reverse(rank(version)),
            )
        })
        .map(|version| Release {
            major: version.release.major.clone(),
            minor: None,
        })
}

/// The refusal of a version that is not among those that can be had.
pub(crate) fn unavailable(wanted: &Release, versions: &[PackageVersion], list: &str) -> Problem {
    let problem = Problem::new(format!("PostgreSQL {wanted} cannot be had prebuilt"));
    let releases = one_per_release(versions);
    let points: Vec<String> = releases
        .iter()
        .rev()
        .filter(|version| version.release.major == wanted.major)
        .map(|version| version.release.to_string())
        .collect();
    let problem = if points.is_empty() {
        let mut majors: Vec<&str> = releases
            .iter()
            .rev()
            .map(|version| version.release.major.as_str())
            .collect();
        majors.dedup();
        problem.detail(format!(
            "the majors that can be had: {} ({list})",
            majors.join(" ")
        ))
    } else {
        problem.detail(format!(
            "the point releases of {} that can be had: {} ({list})",
            wanted.major,
            points.join(" ")
        ))
    };
    match nearest(wanted, versions) {
        Some(near) => problem.hint(format!(
            "the nearest is postgres:{near}; a server of your own goes in as path:DIR or installed:{}",
            wanted.major
        )),
        None => problem.hint("a server of your own goes in as path:DIR"),
    }
}

/// The versions in a Maven `maven-metadata.xml`, in its order; forms we do not know are left out.
pub(crate) fn from_metadata(xml: &str) -> Vec<PackageVersion> {
    xml.split("<version>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</version>"))
        .filter_map(|(text, _)| PackageVersion::parse(text.trim()))
        .collect()
}

/// The committed list for one platform; how it was made is said at its top.
pub(crate) fn known(platform: &str) -> Vec<PackageVersion> {
    include_str!("../known_versions.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(of, _)| *of == platform)
        .filter_map(|(_, text)| PackageVersion::parse(text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> PackageVersion {
        PackageVersion::parse(text).unwrap()
    }

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn published_versions_name_the_release_inside() {
        for (text, inside) in [
            ("17.5.0", "17.5"),
            ("9.6.24", "9.6.24"),
            ("9.6.24.1", "9.6.24"),
            ("10.5.0-1", "10.5"),
            ("15.5.1", "15.5"),
            ("18.4.0-beta.17", "18.4"),
        ] {
            assert_eq!(package(text).release.to_string(), inside, "{text}");
        }
        for text in [
            "19.0.0-rc1",
            "1.2.3",
            "8.4.22",
            "",
            "17",
            "17.x.0",
            "17.5.0-beta",
        ] {
            assert_eq!(PackageVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn order_is_by_number_not_by_letter_and_rebuilds_win() {
        let ascending = [
            "9.6.10",
            "9.6.24",
            "10.4.0",
            "10.18.0",
            "15.5.0-alpha.21",
            "15.5.0-beta.9",
            "15.5.0-beta.11",
            "15.5.0",
            "15.5.0-1",
            "15.5.1",
            "15.10.0",
            "18.0.0",
        ];
        let mut sorted: Vec<PackageVersion> =
            ascending.iter().rev().map(|text| package(text)).collect();
        sorted.sort_by_key(PackageVersion::order);
        let texts: Vec<&str> = sorted.iter().map(|version| version.text.as_str()).collect();
        assert_eq!(texts, ascending);
    }

    #[test]
    fn a_major_means_its_newest_point_release_in_its_newest_packaging() {
        let list = known("linux-amd64");
        let newest_of =
            |text: &str| newest(&release(text), &list).map(|version| version.text.as_str());
        assert_eq!(newest_of("9.6"), Some("9.6.24"));
        assert_eq!(newest_of("10.5"), Some("10.5.0-1"));
        assert_eq!(newest_of("15.5"), Some("15.5.1"));
        assert_eq!(newest_of("11"), Some("11.22.1"));
        assert_eq!(newest_of("17.99"), None);
        assert_eq!(newest_of("19"), None);
    }

    #[test]
    fn the_known_lists_are_whole_and_cover_9_6_to_18() {
        let list = known("linux-amd64");
        let lines = include_str!("../known_versions.txt")
            .lines()
            .filter(|line| line.starts_with("linux-amd64 "));
        assert_eq!(
            lines.count(),
            list.len(),
            "every line is a version we can read"
        );
        for major in ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"] {
            assert!(newest(&release(major), &list).is_some(), "{major}");
        }
        assert!(newest(&release("17"), &known("linux-arm64v8")).is_some());
        assert!(known("plan9").is_empty());
    }

    #[test]
    fn metadata_is_read_and_strange_entries_are_passed_over() {
        let xml = "<metadata><versioning><latest>19.0.0-rc1</latest><versions>\n <version>9.6.24</version>\n\
                   <version> 18.6.0 </version><version>19.0.0-rc1</version><version>17.0.0";
        let texts: Vec<String> = from_metadata(xml)
            .into_iter()
            .map(|version| version.text)
            .collect();
        assert_eq!(texts, ["9.6.24", "18.6.0"]);
    }

    #[test]
    fn the_nearest_is_a_point_release_of_the_same_major_else_the_nearest_major() {
        let list: Vec<PackageVersion> =
            ["9.6.24", "10.23.0", "17.4.0", "17.6.0", "17.11.0", "18.6.0"]
                .map(package)
                .into();
        for (wanted, near) in [
            ("17.99", "17.11"),
            ("17.5", "17.6"),
            ("17.0", "17.4"),
            ("19", "18"),
            ("9.4", "9.6"),
            ("14.2", "17"),
        ] {
            assert_eq!(
                nearest(&release(wanted), &list).unwrap().to_string(),
                near,
                "{wanted}"
            );
        }
        assert_eq!(nearest(&release("17"), &[]), None);
    }

    #[test]
    fn the_refusal_lists_what_can_be_had() {
        let list: Vec<PackageVersion> = ["9.6.24", "17.4.0", "17.5.0", "17.5.1", "18.6.0"]
            .map(package)
            .into();
        let point = unavailable(&release("17.99"), &list, "list of today");
        assert_eq!(
            point.detail.unwrap(),
            "the point releases of 17 that can be had: 17.4 17.5 (list of today)"
        );
        assert!(
            point
                .hint
                .unwrap()
                .starts_with("the nearest is postgres:17.5;")
        );
        let major = unavailable(&release("19"), &list, "list of today");
        assert_eq!(major.error, "PostgreSQL 19 cannot be had prebuilt");
        assert_eq!(
            major.detail.unwrap(),
            "the majors that can be had: 9.6 17 18 (list of today)"
        );
    }
}
