//! The package clients that can bring prebuilt servers and libraries, seen alike.

use crate::address::without_credentials;
use crate::maven::Maven;
use crate::npm::Npm;
use crate::unpack::UnpackError;
use crate::versions::{PackageVersion, Product};
use deltabench_model::problem::Problem;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why a client brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CarrierError {
    /// Neither client is installed (or not the one that a mirror needs).
    #[error("{0}")]
    NoClient(Problem),
    /// The client ran and failed; what it said is mostly a network failure.
    #[error("{client}: {said}")]
    Unreachable {
        /// Which client.
        client: &'static str,
        /// Its own words.
        said: String,
    },
    /// The package is not there.
    #[error("no package {package}: {said}")]
    Missing {
        /// Name and version of the package.
        package: String,
        /// The client's words.
        said: String,
    },
    /// The package does not match its published checksum.
    #[error("{package}: {said}")]
    Checksum {
        /// Name and version of the package.
        package: String,
        /// What was expected and what came.
        said: String,
    },
    /// A file could not be read or written.
    #[error("{0}")]
    File(Problem),
}

impl CarrierError {
    /// Whether trying again later, elsewhere or with what is already here makes sense.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoClient(_))
    }

    /// As the user is told.
    pub fn into_problem(self, product: Product, what: &str) -> Problem {
        match self {
            Self::NoClient(problem) | Self::File(problem) => problem,
            Self::Unreachable { client, said } => {
                Problem::new(format!("cannot fetch {what}: {client} failed"))
                    .detail(said)
                    .hint(format!(
                        "check the network, name a Maven repository you can reach as mirror in the \
                         configuration, or {}",
                        product.without_package()
                    ))
            }
            Self::Missing { package, said } => Problem::new(format!(
                "cannot fetch {what}: there is no package {package}"
            ))
            .detail(said)
            .hint("`deltabench targets` lists all that can be had here"),
            Self::Checksum { package, said } => Problem::new(format!(
                "cannot use {what}: {package} does not match its checksum"
            ))
            .detail(said)
            .hint(
                "nothing was kept; try again, and if it fails again ask whoever runs the \
                         repository or proxy",
            ),
        }
    }
}

/// How a package's bytes were verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VerifiedBy {
    /// SHA-256 published beside the package, compared by us.
    Sha256,
    /// SHA-1 published beside the package, compared by Maven; packages of before 2021 have nothing better.
    Sha1,
    /// SHA-512 of the npm registry's record, compared by npm and by us.
    Sha512,
}

/// A fetched and verified package.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub version: PackageVersion,
    pub file: PathBuf,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    pub verified_by: VerifiedBy,
}

/// A client that lists and fetches packages. Callers hold the cache's lock during `versions` and `fetch`.
pub(crate) trait Carrier {
    /// `maven` or `npm`; part of the name of the cached list.
    fn name(&self) -> &'static str;
    /// Where it fetches from when that is not the default; lists of different places are not mixed.
    fn mirror(&self) -> Option<&str>;
    /// Whether the committed list describes what this carrier has.
    fn has_known_versions(&self) -> bool;
    /// Every version there is, from the network. `work` is an empty directory for the call's files.
    fn versions(&self, work: &Path) -> Result<Vec<PackageVersion>, CarrierError>;
    /// Fetches and verifies, in the order asked. The files are in `work`, an empty directory.
    fn fetch(&self, versions: &[PackageVersion], work: &Path)
    -> Result<Vec<Package>, CarrierError>;
    /// Unpacks a package into the existing directory `into`, so that its [`Product::binary`] exists there.
    fn unpack(&self, package: &Path, into: &Path) -> Result<(), UnpackError>;
}

/// The packages' names for one kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Platform {
    /// Suffix of the Maven artifact; also names our directories.
    pub maven: &'static str,
    /// Suffix of the npm package.
    pub npm: &'static str,
    /// Name of RocksDB's library in its package, which holds those of all machines.
    pub library: &'static str,
}

impl Platform {
    /// The machine this program was built for.
    pub fn here() -> Result<Self, Problem> {
        Self::of(std::env::consts::OS, std::env::consts::ARCH)
    }

    pub(crate) fn of(system: &str, machine: &str) -> Result<Self, Problem> {
        match (system, machine) {
            ("linux", "x86_64") => Ok(Self {
                maven: "linux-amd64",
                npm: "linux-x64",
                library: "librocksdbjni-linux64.so",
            }),
            ("linux", "aarch64") => Ok(Self {
                maven: "linux-arm64v8",
                npm: "linux-arm64",
                library: "librocksdbjni-linux-aarch64.so",
            }),
            _ => Err(Problem::new(format!(
                "there are no prebuilt servers for {system} on {machine}"
            ))
            .detail("prebuilt servers and libraries are used on Linux x86_64 and aarch64")
            .hint("use path:DIR, installed:MAJOR or rocksdb:path:LIB.so")),
        }
    }
}

/// The client to use: `mvn` where it is, else `npm`; a mirror is a Maven repository and needs `mvn`, and
/// npm's registry has no library of RocksDB.
pub(crate) fn choose(
    search: Option<&OsStr>,
    product: Product,
    platform: Platform,
    mirror: Option<&str>,
    maven_repository: PathBuf,
) -> Result<Box<dyn Carrier>, CarrierError> {
    if let Some(program) = program("mvn", search) {
        return Ok(Box::new(Maven {
            program,
            product,
            platform,
            mirror: mirror.map(str::to_owned),
            repository: maven_repository,
        }));
    }
    let none = Problem::new(format!("no client to fetch {} with", product.things()));
    if let Some(mirror) = mirror {
        return Err(CarrierError::NoClient(
            none.detail(format!(
                "the mirror {} is a Maven repository and `mvn` is not on PATH",
                without_credentials(mirror)
            ))
            .hint(
                "install Maven (Debian: apt-get install maven), or take the mirror out of the \
                     configuration",
            ),
        ));
    }
    if product == Product::Rocksdb {
        return Err(CarrierError::NoClient(
            none.detail("only `mvn` can fetch them, and it is not on PATH; npm does not have them")
                .hint(format!(
                    "install Maven (Debian: apt-get install maven), or {}",
                    product.without_package()
                )),
        ));
    }
    if let Some(program) = program("npm", search) {
        return Ok(Box::new(Npm { program, platform }));
    }
    Err(CarrierError::NoClient(none.detail("neither `mvn` nor `npm` is on PATH").hint(
        "install Maven or npm (Debian: apt-get install maven, or npm), or use path:DIR or installed:MAJOR",
    )))
}

fn program(name: &str, search: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(search?)
        .map(|dir| dir.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

/// The lines a client said that tell something, without colours, marks and advice; at most six.
pub(crate) fn telling_lines(said: &str) -> String {
    let said = without_colours(said);
    let mut lines: Vec<&str> = Vec::new();
    for line in said.lines() {
        let line = line
            .trim()
            .trim_start_matches("[ERROR]")
            .trim_start_matches("[WARNING]")
            .trim();
        let line = line.split(" -> [Help").next().unwrap_or(line);
        // What went wrong comes after the goal and our project's name.
        let line = line
            .split_once(" on project fetch: ")
            .map_or(line, |(_, fact)| fact);
        if !line.is_empty() && !is_advice(line) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.truncate(6);
    without_credentials(&lines.join("\n"))
}

/// Takes out the terminal's colour codes, which Maven prints even when asked not to.
fn without_colours(said: &str) -> String {
    let mut parts = said.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}

fn is_advice(line: &str) -> bool {
    const STARTS: [&str; 8] = [
        "To see the full stack trace",
        "Re-run Maven",
        "For more information",
        "[Help ",
        "[INFO]",
        "npm warn",
        "npm error A complete log",
        "npm error Log files",
    ];
    STARTS.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_programs(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        dir
    }

    fn chosen(names: &[&str], mirror: Option<&str>) -> Result<&'static str, Problem> {
        chosen_for(Product::Postgres, names, mirror)
    }

    fn chosen_for(
        product: Product,
        names: &[&str],
        mirror: Option<&str>,
    ) -> Result<&'static str, Problem> {
        let dir = with_programs(names);
        let platform = Platform::of("linux", "x86_64").unwrap();
        choose(
            Some(dir.path().as_os_str()),
            product,
            platform,
            mirror,
            PathBuf::new(),
        )
        .map(|carrier| carrier.name())
        .map_err(|error| error.into_problem(product, "x"))
    }

    #[test]
    fn libraries_of_rocksdb_are_never_looked_for_with_npm() {
        let chosen = |names: &[&str]| chosen_for(Product::Rocksdb, names, None);
        assert_eq!(chosen(&["mvn", "npm"]).unwrap(), "maven");
        for names in [&["npm"][..], &[]] {
            let problem = chosen(names).unwrap_err();
            assert!(problem.error.contains("libraries of RocksDB"), "{problem}");
            assert!(problem.hint.unwrap().contains("rocksdb:path:LIB.so"));
        }
    }

    #[test]
    fn maven_comes_first_then_npm_and_without_both_both_are_named() {
        assert_eq!(chosen(&["mvn", "npm"], None).unwrap(), "maven");
        assert_eq!(chosen(&["npm"], None).unwrap(), "npm");
        let problem = chosen(&[], None).unwrap_err();
        assert_eq!(
            problem.detail.unwrap(),
            "neither `mvn` nor `npm` is on PATH"
        );
        assert!(
            choose(
                None,
                Product::Postgres,
                Platform::of("linux", "aarch64").unwrap(),
                None,
                PathBuf::new()
            )
            .is_err()
        );
    }

    #[test]
    fn a_mirror_is_never_passed_over_by_npm() {
        assert_eq!(chosen(&["mvn", "npm"], Some("file:///m")).unwrap(), "maven");
        let problem = chosen(&["npm"], Some("file:///m")).unwrap_err();
        assert!(problem.detail.unwrap().contains("file:///m"));
    }

    #[test]
    fn other_machines_are_told_what_they_can_use() {
        let problem = Platform::of("macos", "aarch64").unwrap_err();
        assert!(problem.hint.unwrap().contains("installed:MAJOR"));
    }

    #[test]
    fn the_client_s_advice_is_cut_and_its_facts_are_kept() {
        let said = "\u{1b}[0m[INFO] Scanning\n\u{1b}[0m[WARNING] Connection refused\n\
                    [ERROR] Failed to execute goal a:b on project fetch: Failed to run x -> [Help 1]\n\
                    [ERROR] \n[ERROR] Re-run Maven using -X\n\
                    [ERROR] Failed to run x -> [Help 1]\n\u{1b}[0m\n";
        assert_eq!(telling_lines(said), "Connection refused\nFailed to run x");
        assert_eq!(telling_lines("\u{1b}[0m\n"), "");
        assert_eq!(telling_lines("[ERROR] https://u:S3@m/x"), "https://m/x");
    }
}
