//! The package clients that can bring prebuilt servers and libraries, seen alike.

use crate::address::without_credentials;
use crate::stamp::VerifiedBy;
use crate::unpack::UnpackError;
use crate::versions::{PackageVersion, Product};
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// Why a client brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageSourceError {
    /// Neither client is installed (or not the one that a mirror needs).
    #[error("{0}")]
    NoClient(Problem),
    /// The client ran and failed; what it said is mostly a network failure.
    #[error("{client}: {said}")]
    Unreachable {
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

impl PackageSourceError {
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
            .hint("`deltabench targets` lists all that are available here"),
            Self::Checksum { package, said } => Problem::new(format!(
                "cannot use {what}: {package} does not match its checksum"
            ))
            .detail(said)
            .hint(
                "deltabench kept nothing; try again, and ask the operators of the repository or proxy \
                         if it fails again",
            ),
        }
    }
}

/// A fetched package. It may be unpacked, but nothing of it may run before it is verified.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub version: PackageVersion,
    pub file: PathBuf,
}

/// What is known of a fetched package that matches its published checksum.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    pub verified_by: VerifiedBy,
}

/// A client that lists and fetches packages. Callers hold the cache's lock while it works.
pub(crate) trait PackageSource: Sync {
    /// `maven` or `npm`; part of the name of the cached list.
    fn name(&self) -> &'static str;
    /// Where it fetches from when that is not the default; lists of different places are not mixed.
    fn mirror(&self) -> Option<&str>;
    /// Whether the committed list describes what this source has.
    fn has_known_versions(&self) -> bool;
    /// Every version there is, from the network. `work` is an empty directory for the call's files.
    fn versions(&self, work: &Path) -> Result<Vec<PackageVersion>, PackageSourceError>;
    /// Fetches, in the order asked. The files are in `work`, an empty directory.
    fn fetch(
        &self,
        versions: &[PackageVersion],
        work: &Path,
    ) -> Result<Vec<Arrived>, PackageSourceError>;
    /// Compares packages with their published checksums, in the same order; `work` is that of `fetch`.
    fn verify(&self, arrived: &[Arrived], work: &Path) -> Result<Vec<Package>, PackageSourceError>;
    /// Unpacks a package into the existing directory `into`, so that its [`Product::binary`] exists there.
    fn unpack(&self, package: &Path, into: &Path) -> Result<(), UnpackError>;
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
