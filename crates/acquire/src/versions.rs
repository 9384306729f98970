//! Which versions the packages come in, and which is meant or nearest.

use crate::platform::Platform;
use deltabench_model::installation::Engine;
use deltabench_model::problem::Problem;
use deltabench_model::target::{Release, RocksdbVersion, TargetSpec};
use std::cmp::Reverse;
use std::fmt;

/// How packages of one release are ordered: third number, then stage (alpha, beta, release,
/// rebuild), then number.
type Revision = (u32, u32, u32);

/// What comes in packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Product {
    /// Servers of PostgreSQL: a tree.
    Postgres,
    /// Libraries of RocksDB: a file.
    Rocksdb,
}

impl Product {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Rocksdb => "RocksDB",
        }
    }

    /// What there is of it, in many.
    pub fn things(self) -> &'static str {
        match self {
            Self::Postgres => "prebuilt servers",
            Self::Rocksdb => "libraries of RocksDB",
        }
    }

    /// Whether npm's registry has it too.
    pub fn is_in_npm(self) -> bool {
        self == Self::Postgres
    }

    /// What the user can do without any package.
    pub fn without_package(self) -> &'static str {
        match self {
            Self::Postgres => "use path:DIR or installed:MAJOR",
            Self::Rocksdb => "use rocksdb:path:LIB.so",
        }
    }

    /// Names the list of its packages: those of PostgreSQL differ by machine.
    pub fn list_name(self, platform: Platform) -> &'static str {
        match self {
            Self::Postgres => platform.maven,
            Self::Rocksdb => "rocksdb",
        }
    }

    /// The file that is measured, below the directory that a package is unpacked into.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Postgres => "bin/postgres",
            Self::Rocksdb => "librocksdb.so",
        }
    }

    /// What an installation names as its place, below that directory.
    pub fn place(self) -> &'static str {
        match self {
            Self::Postgres => "bin",
            Self::Rocksdb => self.binary(),
        }
    }

    /// What is measured.
    pub fn engine(self) -> Engine {
        match self {
            Self::Postgres => Engine::Postgres,
            Self::Rocksdb => Engine::Rocksdb,
        }
    }
}

/// A version of a product, or the series whose newest is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    Postgres(Release),
    Rocksdb(RocksdbVersion),
}

impl Version {
    /// What a target asks for, if it comes in a package.
    pub fn wanted_by(spec: &TargetSpec) -> Option<Self> {
        match spec {
            TargetSpec::Prebuilt(release) => Some(Self::Postgres(release.clone())),
            TargetSpec::Rocksdb(version) => Some(Self::Rocksdb(version.clone())),
            _ => None,
        }
    }

    /// As the user would write it.
    pub fn target(&self) -> TargetSpec {
        match self {
            Self::Postgres(release) => TargetSpec::Prebuilt(release.clone()),
            Self::Rocksdb(version) => TargetSpec::Rocksdb(version.clone()),
        }
    }

    /// What the versions are of.
    pub fn product(&self) -> Product {
        match self {
            Self::Postgres(_) => Product::Postgres,
            Self::Rocksdb(_) => Product::Rocksdb,
        }
    }

    /// With the product's name: `PostgreSQL 17.5`.
    pub fn named(&self) -> String {
        format!("{} {self}", self.product().name())
    }

    /// Whether it is one version, not a series.
    pub fn is_exact(&self) -> bool {
        match self {
            Self::Postgres(release) => release.minor.is_some(),
            Self::Rocksdb(version) => !version.is_series(),
        }
    }

    /// A number that orders series.
    fn series_rank(&self) -> u32 {
        match self {
            Self::Postgres(release) => release.major_rank(),
            Self::Rocksdb(version) => version.number() / 10_000,
        }
    }

    /// The series itself: `17`, `10`.
    pub fn series(&self) -> Self {
        match self {
            Self::Postgres(release) => Self::Postgres(Release {
                major: release.major.clone(),
                minor: None,
            }),
            Self::Rocksdb(version) => Self::Rocksdb(version.major()),
        }
    }

    /// A number that orders the versions of one series; absent for the series itself.
    fn place(&self) -> Option<u32> {
        match self {
            Self::Postgres(release) => release.minor,
            Self::Rocksdb(version) => {
                (*version != version.major()).then(|| version.number() % 10_000)
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(release) => release.fmt(f),
            Self::Rocksdb(version) => version.fmt(f),
        }
    }
}

/// A version as the package's publisher writes it, and the version of the product inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PackageVersion {
    /// As published: `17.5.0`, `10.5.0-1`, `9.6.24`, `18.4.0-beta.17`; `10.10.1.1`.
    pub text: String,
    /// The version inside; always an exact one.
    pub release: Version,
    revision: Revision,
}

impl PackageVersion {
    /// Reads a published version; `None` for forms we do not know, such as packages of release candidates.
    pub fn parse(product: Product, text: &str) -> Option<Self> {
        match product {
            Product::Postgres => Self::of_postgres(text),
            Product::Rocksdb => Self::of_rocksdb(text),
        }
    }

    fn of_rocksdb(text: &str) -> Option<Self> {
        let version: RocksdbVersion = text.parse().ok()?;
        let fourth = text.split('.').nth(3).map_or(Ok(0), str::parse).ok()?;
        (!version.is_series()).then(|| Self {
            text: text.to_owned(),
            release: Version::Rocksdb(version),
            revision: (fourth, 0, 0),
        })
    }

    fn of_postgres(text: &str) -> Option<Self> {
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
            release: Version::Postgres(Release {
                major,
                minor: Some(minor),
            }),
            revision: (third, stage, number),
        })
    }

    /// A key that orders packages by version, then by how often the version was packaged anew.
    pub fn order(&self) -> (u32, u32, Revision) {
        (
            self.release.series_rank(),
            self.release.place().unwrap_or(0),
            self.revision,
        )
    }

    /// Whether this package answers the wish: same series, and same version where one is stated.
    pub fn answers(&self, wanted: &Version) -> bool {
        match (wanted, &self.release) {
            (Version::Postgres(wanted), Version::Postgres(release)) => {
                release.major == wanted.major
                    && (wanted.minor.is_none() || wanted.minor == release.minor)
            }
            (Version::Rocksdb(wanted), Version::Rocksdb(version)) => wanted.is_answered_by(version),
            _ => false,
        }
    }
}

/// The newest package that answers `wanted`.
pub(crate) fn newest<'a>(
    wanted: &Version,
    among: impl IntoIterator<Item = &'a PackageVersion>,
) -> Option<&'a PackageVersion> {
    among
        .into_iter()
        .filter(|version| version.answers(wanted))
        .max_by_key(|version| version.order())
}

/// The last packaging of every version, newest version first.
pub(crate) fn one_per_release(versions: &[PackageVersion]) -> Vec<PackageVersion> {
    let mut best = versions.to_vec();
    best.sort_by_key(|version| Reverse(version.order()));
    best.dedup_by(|next, kept| next.release == kept.release);
    best
}

/// The nearest thing that can be had: the closest version of the same series, else the closest series.
///
/// Of two equally close ones the newer is named.
pub(crate) fn nearest(wanted: &Version, versions: &[PackageVersion]) -> Option<Version> {
    let rank = |version: &PackageVersion| version.release.series_rank();
    let same_series = versions
        .iter()
        .filter(|version| rank(version) == wanted.series_rank());
    let exact = same_series.min_by_key(|version| {
        let place = version.release.place().unwrap_or(0);
        (
            place.abs_diff(wanted.place().unwrap_or(u32::MAX)),
            Reverse(version.order()),
        )
    });
    if let Some(version) = exact {
        return Some(version.release.clone());
    }
    versions
        .iter()
        .min_by_key(|version| {
            (
                rank(version).abs_diff(wanted.series_rank()),
                Reverse(rank(version)),
            )
        })
        .map(|version| version.release.series())
}

/// The refusal of a version that is not among those that can be had.
pub(crate) fn unavailable(wanted: &Version, versions: &[PackageVersion], list: &str) -> Problem {
    let (one, many, own) = match wanted {
        Version::Postgres(release) => (
            "point releases",
            "majors",
            format!(
                "use path:DIR or installed:{} for your own server",
                release.major
            ),
        ),
        Version::Rocksdb(_) => (
            "versions",
            "series",
            "use rocksdb:path:LIB.so for your own library".to_owned(),
        ),
    };
    let problem = Problem::new(format!("there is no prebuilt {}", wanted.named()));
    let series = wanted.series();
    let releases = one_per_release(versions);
    let points: Vec<String> = releases
        .iter()
        .rev()
        .filter(|version| version.release.series() == series)
        .map(|version| version.release.to_string())
        .collect();
    let problem = if points.is_empty() {
        let mut all: Vec<String> = releases
            .iter()
            .rev()
            .map(|version| version.release.series().to_string())
            .collect();
        all.dedup();
        problem.detail(format!("available {many}: {} ({list})", all.join(" ")))
    } else {
        problem.detail(format!(
            "available {one} of {series}: {} ({list})",
            points.join(" ")
        ))
    };
    match nearest(wanted, versions) {
        Some(near) => problem.hint(format!("the nearest is {}; {own}", near.target())),
        None => problem.hint(own),
    }
}

/// The versions in a Maven `maven-metadata.xml`, in its order; forms we do not know are left out.
pub(crate) fn from_metadata(product: Product, xml: &str) -> Vec<PackageVersion> {
    xml.split("<version>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</version>"))
        .filter_map(|(text, _)| PackageVersion::parse(product, text.trim()))
        .collect()
}

/// The committed list of a product for one platform; how it was made is said at its top.
pub(crate) fn known(product: Product, platform: Platform) -> Vec<PackageVersion> {
    let list = product.list_name(platform);
    include_str!("../known_versions.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(of, _)| *of == list)
        .filter_map(|(_, text)| PackageVersion::parse(product, text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> PackageVersion {
        PackageVersion::parse(Product::Postgres, text).unwrap()
    }

    fn release(text: &str) -> Version {
        Version::Postgres(text.parse().unwrap())
    }

    fn amd64() -> Platform {
        Platform::of("linux", "x86_64").unwrap()
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
            assert_eq!(
                PackageVersion::parse(Product::Postgres, text),
                None,
                "{text}"
            );
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
        let list = known(Product::Postgres, amd64());
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
        let list = known(Product::Postgres, amd64());
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
        let arm = Platform::of("linux", "aarch64").unwrap();
        assert!(newest(&release("17"), &known(Product::Postgres, arm)).is_some());
    }

    #[test]
    fn metadata_is_read_and_strange_entries_are_passed_over() {
        let xml = "<metadata><versioning><latest>19.0.0-rc1</latest><versions>\n <version>9.6.24</version>\n\
                   <version> 18.6.0 </version><version>19.0.0-rc1</version><version>17.0.0";
        let texts: Vec<String> = from_metadata(Product::Postgres, xml)
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
    fn the_study_of_rocksdb_says_which_published_versions_no_package_has_and_what_is_nearest() {
        let published = [
            "6.29.5", "7.10.2", "8.11.4", "9.0.1", "9.1.2", "9.2.2", "9.3.2", "9.4.1", "9.5.2",
            "9.6.2", "9.7.4", "9.8.4", "9.9.3", "9.10.0", "9.11.2", "10.0.1", "10.1.3", "10.2.1",
        ];
        let list = known(Product::Rocksdb, amd64());
        let mut rows = Vec::new();
        for text in published {
            let wanted = Version::Rocksdb(text.parse().unwrap());
            if newest(&wanted, &list).is_none() {
                rows.push(format!("| {text} | {} |", nearest(&wanted, &list).unwrap()));
            }
        }
        let page = include_str!("../../../docs/studies/rocksdb-6-to-10.md");
        let said: Vec<&str> = page
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("| 9."))
            .collect();
        assert_eq!(said, rows);
        let study = include_str!("../../../examples/rocksdb-6-to-10.toml");
        for row in rows {
            let series: Vec<&str> = row.trim_start_matches("| ").split('.').take(2).collect();
            assert!(
                study.contains(&format!("\"rocksdb:{}\"", series.join("."))),
                "{row}"
            );
        }
    }

    #[test]
    fn the_refusal_lists_what_can_be_had() {
        let list: Vec<PackageVersion> = ["9.6.24", "17.4.0", "17.5.0", "17.5.1", "18.6.0"]
            .map(package)
            .into();
        let point = unavailable(&release("17.99"), &list, "list of today");
        assert_eq!(
            point.detail.unwrap(),
            "available point releases of 17: 17.4 17.5 (list of today)"
        );
        assert!(
            point
                .hint
                .unwrap()
                .starts_with("the nearest is postgres:17.5;")
        );
        let major = unavailable(&release("19"), &list, "list of today");
        assert_eq!(major.error, "there is no prebuilt PostgreSQL 19");
        assert_eq!(
            major.detail.unwrap(),
            "available majors: 9.6 17 18 (list of today)"
        );
    }
}
