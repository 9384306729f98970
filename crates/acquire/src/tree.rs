//! Installation trees on this disk: what is in them, and where distributions put them.

use crate::command;
use crate::platform::Platform;
use crate::versions::{self, Product, Version};
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::problem::Problem;
use deltabench_model::target::{Release, TargetSpec};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where distributions, the project's own packages and `make install` put servers; `*` is any name.
/// `/usr/local/bin` and `/usr/bin` are left out: they hold links, and the tree behind them is in this list.
const PLACES: [&str; 9] = [
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/lib/postgresql*/bin",
    "usr/libexec/postgresql*",
    "usr/local/pgsql/bin",
    "usr/local/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "opt/postgresql*/bin",
];

/// What a server binary says of itself, and its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `postgres --version` without the program's name: `15.18 (Debian 15.18-0+deb12u1)`.
    pub said: String,
    /// `15.18`, `19beta1`.
    pub version: String,
    /// As `server_version_num`.
    pub version_num: u32,
}

impl Facts {
    /// The major, `15` or `9.6`.
    pub fn major(&self) -> String {
        major_of(self.version_num)
    }
}

/// The tree at a directory that the user named; `DIR` or `DIR/bin` may be given.
pub(crate) fn at_path(dir: &Path) -> Result<Installation, Problem> {
    let spec = TargetSpec::Path(dir.to_owned());
    let dir = dir.canonicalize().map_err(|error| {
        Problem::new(format!("no server at {}", dir.display()))
            .detail(format!("cannot open {}: {error}", dir.display()))
            .hint("name a directory that contains bin/postgres; `deltabench targets` lists those found \
                   here")
    })?;
    let bin_dir = bin_of(&dir)?;
    let facts = facts(&bin_dir)?;
    Ok(Installation {
        asked: spec.to_string(),
        resolved: format!(
            "path:{}",
            bin_dir
                .parent()
                .filter(|_| bin_dir.ends_with("bin"))
                .unwrap_or(&bin_dir)
                .display()
        ),
        origin: Origin::Path,
        version_num: facts.version_num,
        version: facts.version,
        binary_sha256: sha256_of(&bin_dir.join("postgres"))?,
        bin_dir,
        build: None,
        recipe: None,
        remote: None,
        engine: deltabench_model::installation::Engine::Postgres,
    })
}

/// The newest tree of the wanted release where distributions put them.
pub(crate) fn installed(wanted: &Release) -> Result<Installation, Problem> {
    installed_below(Path::new("/"), wanted)
}

fn installed_below(root: &Path, wanted: &Release) -> Result<Installation, Problem> {
    let trees = search(root);
    let fits = |facts: &Facts| {
        facts.version.parse::<Release>().is_ok_and(|found| {
            found.major == wanted.major && (wanted.minor.is_none() || wanted.minor == found.minor)
        }) || (wanted.minor.is_none() && major_of(facts.version_num) == wanted.major)
    };
    let best = trees
        .iter()
        .filter(|(_, facts)| fits(facts))
        .max_by_key(|(_, facts)| facts.version_num);
    let Some((bin_dir, facts)) = best else {
        return Err(not_installed(wanted, &trees));
    };
    Ok(Installation {
        asked: TargetSpec::Installed(wanted.clone()).to_string(),
        resolved: format!("installed:{}", facts.version),
        origin: Origin::Installed,
        bin_dir: bin_dir.clone(),
        version_num: facts.version_num,
        version: facts.version.clone(),
        binary_sha256: sha256_of(&bin_dir.join("postgres"))?,
        build: None,
        recipe: None,
        remote: None,
        engine: deltabench_model::installation::Engine::Postgres,
    })
}

fn not_installed(wanted: &Release, trees: &[(PathBuf, Facts)]) -> Problem {
    let problem = Problem::new(format!("no installed PostgreSQL {wanted} found"));
    let known = Platform::here()
        .map(|platform| versions::known(Product::Postgres, platform))
        .unwrap_or_default();
    let prebuilt = match versions::newest(&Version::Postgres(wanted.clone()), &known) {
        Some(_) => format!("deltabench fetches postgres:{wanted} prebuilt; "),
        None => String::new(),
    };
    let rank = |facts: &Facts| {
        let release = Release {
            major: facts.major(),
            minor: None,
        };
        release.major_rank().abs_diff(wanted.major_rank())
    };
    let Some((_, near)) = trees.iter().min_by_key(|(_, facts)| rank(facts)) else {
        return problem
            .detail("no PostgreSQL server was found where distributions put them")
            .hint(format!("{prebuilt}path:DIR accepts any directory"));
    };
    let found: Vec<String> = trees
        .iter()
        .map(|(bin, facts)| format!("{} in {}", facts.version, bin.display()))
        .collect();
    problem
        .detail(format!("found: {}", found.join("\n")))
        .hint(format!(
            "the nearest is installed:{}; {prebuilt}path:DIR accepts any other directory",
            near.major()
        ))
}

/// Every server tree below the usual places of `root`, newest first, each once.
pub(crate) fn search(root: &Path) -> Vec<(PathBuf, Facts)> {
    let mut bins: Vec<PathBuf> = PLACES
        .iter()
        .flat_map(|place| expand(root, place))
        .filter_map(|dir| dir.canonicalize().ok())
        .filter(|dir| lacking(dir).is_none())
        .collect();
    bins.sort();
    bins.dedup();
    let mut trees: Vec<(PathBuf, Facts)> = bins
        .into_iter()
        .filter_map(|bin| facts(&bin).ok().map(|facts| (bin, facts)))
        .collect();
    trees.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.version_num));
    trees
}

/// The directories that a place with at most one `*` per part stands for.
fn expand(root: &Path, place: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in place.split('/') {
        found = match part.split_once('*') {
            None => found.into_iter().map(|dir| dir.join(part)).collect(),
            Some((start, end)) => found
                .iter()
                .flat_map(|dir| matching(dir, start, end))
                .collect(),
        };
    }
    found
}

fn matching(dir: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let fits = |name: &str| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect()
}

/// `dir/bin` or `dir` itself, whichever holds the server.
fn bin_of(dir: &Path) -> Result<PathBuf, Problem> {
    let below = dir.join("bin");
    let place = if below.join("postgres").exists() || !dir.join("postgres").exists() {
        below
    } else {
        dir.to_owned()
    };
    match lacking(&place) {
        None => Ok(place),
        Some(why) => Err(Problem::new(format!("no server at {}", dir.display()))
            .detail(why)
            .hint(
                "name a directory that contains bin/postgres and bin/initdb; `deltabench targets` \
                 lists those found here",
            )),
    }
}

/// What keeps a directory from being one with server programs; `None` when it is one.
pub(crate) fn lacking(bin_dir: &Path) -> Option<String> {
    ["postgres", "initdb"]
        .iter()
        .find_map(|name| executable(&bin_dir.join(name)).err())
}

/// Errors: why a file cannot be run.
pub(crate) fn executable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(found) if !found.is_file() => Err(format!("{} is not a file", path.display())),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            Err(format!("{} is not executable", path.display()))
        }
        Ok(_) => Ok(()),
    }
}

/// Asks `postgres --version`; this works as root too.
pub(crate) fn facts(bin_dir: &Path) -> Result<Facts, Problem> {
    let program = bin_dir.join("postgres");
    let failed = |detail: String| {
        Problem::new(format!("{} --version failed", program.display()))
            .detail(detail)
            .hint("is it built for this machine, and are its libraries here (ldd)?")
    };
    let output = command::output(Command::new(&program).arg("--version"))
        .map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() {
        return Err(failed(format!(
            "{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    parse_version(&said).ok_or_else(|| {
        failed(format!(
            "it said `{said}`, not `postgres (PostgreSQL) VERSION`"
        ))
    })
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn parse_version(said: &str) -> Option<Facts> {
    let (_, rest) = said.split_once("(PostgreSQL) ")?;
    let version = rest.split_whitespace().next()?;
    Some(Facts {
        said: rest.to_owned(),
        version: version.to_owned(),
        version_num: version_number(version)?,
    })
}

/// `server_version_num` of a version: 180006 for 18.6, 90624 for 9.6.24, 190000 for 19devel and 19beta1.
pub(crate) fn version_number(version: &str) -> Option<u32> {
    let digits = version.split(|c: char| c.is_ascii_alphabetic()).next()?;
    let numbers: Vec<u32> = digits
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    match numbers.as_slice() {
        [major] if *major >= 10 => Some(major * 10_000),
        [major, minor] if *major >= 10 => Some(major * 10_000 + minor),
        [major, second] => Some(major * 10_000 + second * 100),
        [major, second, minor] => Some(major * 10_000 + second * 100 + minor),
        _ => None,
    }
}

fn major_of(version_num: u32) -> String {
    let major = version_num / 10_000;
    if major >= 10 {
        major.to_string()
    } else {
        format!("{major}.{}", version_num / 100 % 100)
    }
}

/// SHA-256 of a file as lower-case hex.
///
/// Errors: a file that cannot be read.
pub fn sha256_of(path: &Path) -> Result<String, Problem> {
    digest_of::<Sha256>(path).map(|digest| hex(&digest))
}

/// The digest of a file, read in pieces.
pub(crate) fn digest_of<D: Digest>(path: &Path) -> Result<Vec<u8>, Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(format!("cannot read {}", path.display())).detail(error.to_string())
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut digest = D::new();
    let mut piece = vec![0_u8; 1 << 16];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(digest.finalize().to_vec()),
            Ok(length) => digest.update(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, says: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn server(bin_dir: &Path, version: &str) {
        program(
            &bin_dir.join("postgres"),
            &format!("postgres (PostgreSQL) {version}"),
        );
        program(&bin_dir.join("initdb"), "");
    }

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_of_version_has_its_number() {
        for (said, version, number) in [
            ("postgres (PostgreSQL) 18.6", "18.6", 180_006),
            ("postgres (PostgreSQL) 9.6.24", "9.6.24", 90_624),
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                "15.18",
                150_018,
            ),
            ("postgres (PostgreSQL) 19devel", "19devel", 190_000),
            ("postgres (PostgreSQL) 19beta1", "19beta1", 190_000),
            ("postgres (PostgreSQL) 10rc1", "10rc1", 100_000),
            ("postgres (PostgreSQL) 9.6beta2", "9.6beta2", 90_600),
        ] {
            let facts = parse_version(said).unwrap();
            assert_eq!(
                (facts.version.as_str(), facts.version_num),
                (version, number),
                "{said}"
            );
        }
        for said in [
            "",
            "postgres (EnterpriseDB) 15.2",
            "postgres (PostgreSQL) ",
            "postgres (PostgreSQL) x.y",
        ] {
            assert_eq!(parse_version(said), None, "{said}");
        }
    }

    #[test]
    fn a_path_may_name_the_tree_or_its_bin() {
        let dir = tempfile::tempdir().unwrap();
        server(&dir.path().join("pg/bin"), "17.5");
        let real = dir.path().canonicalize().unwrap();
        for given in ["pg", "pg/bin", "pg/../pg"] {
            let found = at_path(&dir.path().join(given)).unwrap();
            assert_eq!(found.bin_dir, real.join("pg/bin"), "{given}");
            assert_eq!(
                found.resolved,
                format!("path:{}", real.join("pg").display())
            );
            assert_eq!(
                (found.version.as_str(), found.version_num, found.origin),
                ("17.5", 170_005, Origin::Path)
            );
            assert_eq!(found.binary_sha256.len(), 64);
            assert_eq!(found.build, None);
        }
    }

    #[test]
    fn a_path_without_a_whole_server_says_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let detail = |name: &str| at_path(&dir.path().join(name)).unwrap_err().detail.unwrap();
        assert!(detail("absent").contains("No such file"));
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        assert!(detail("empty").contains("empty/bin/postgres"));
        program(
            &dir.path().join("half/bin/postgres"),
            "postgres (PostgreSQL) 17.5",
        );
        assert!(detail("half").contains("half/bin/initdb"));
        server(&dir.path().join("plain/bin"), "17.5");
        let binary = dir.path().join("plain/bin/postgres");
        std::fs::set_permissions(binary, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(detail("plain").contains("not executable"));
        server(&dir.path().join("other/bin"), "17.5");
        program(&dir.path().join("other/bin/postgres"), "mysqld 8");
        assert!(detail("other").contains("mysqld 8"));
        std::fs::write(
            dir.path().join("other/bin/postgres"),
            "#!/bin/sh\necho broken >&2; exit 3\n",
        )
        .unwrap();
        assert!(detail("other").contains("broken"));
    }

    #[test]
    fn installed_trees_are_found_where_distributions_put_them() {
        let dir = tempfile::tempdir().unwrap();
        for (place, version) in [
            (
                "usr/lib/postgresql/15/bin",
                "15.18 (Debian 15.18-0+deb12u1)",
            ),
            ("usr/lib/postgresql/17/bin", "17.5"),
            ("usr/pgsql-17/bin", "17.6"),
            ("usr/local/pgsql/bin", "9.6.24"),
            ("opt/homebrew/opt/postgresql@14/bin", "14.2"),
            ("usr/local/bin", "16.1"),
        ] {
            server(&dir.path().join(place), version);
        }
        let found = |text: &str| installed_below(dir.path(), &release(text));
        let major = found("17").unwrap();
        assert_eq!(
            (major.asked.as_str(), major.resolved.as_str()),
            ("installed:17", "installed:17.6")
        );
        assert_eq!(found("17.5").unwrap().version, "17.5");
        assert_eq!(found("15").unwrap().version, "15.18");
        assert_eq!(found("9.6").unwrap().version_num, 90_624);
        assert_eq!(found("14").unwrap().origin, Origin::Installed);
        let problem = found("16").unwrap_err();
        assert!(problem.detail.unwrap().contains("15.18 in "));
        assert!(problem.hint.unwrap().contains("installed:17"));
        assert!(found("15.2").is_err());
        assert!(
            !found("19")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("postgres:19"),
            "19 is not prebuilt"
        );
    }

    #[test]
    fn without_any_server_the_prebuilt_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let problem = installed_below(dir.path(), &release("16")).unwrap_err();
        assert!(problem.hint.unwrap().contains("postgres:16"));
    }

    #[test]
    fn a_link_to_a_tree_is_not_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        server(&dir.path().join("usr/lib/postgresql/15/bin"), "15.18");
        std::os::unix::fs::symlink("15", dir.path().join("usr/lib/postgresql/current")).unwrap();
        assert_eq!(search(dir.path()).len(), 1);
    }
}
