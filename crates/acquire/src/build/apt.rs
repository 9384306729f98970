//! Released sources from the distribution's own archive, through its own clients, with a private list of
//! sources.
//!
//! The user's lists are not touched: binary packages are all that most machines have lists of. From the
//! repositories that the machine is set up with, a private root gets the source indexes; a Debian mirror has
//! those of the neighbouring releases too, and each brings another major of PostgreSQL.

use super::archive::published_sha256;
use crate::address::without_credentials;
use crate::command;
use crate::files::{failed, make_directory, write_private};
use deltabench_model::problem::Problem;
use deltabench_model::target::Release;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Point releases come four times a year.
const LISTS_ARE_FRESH: Duration = Duration::from_hours(24);
/// Lists of which some could not be fetched are tried again sooner.
const PARTS_ARE_FRESH: Duration = Duration::from_hours(1);
/// Debian's suites that hold a major each; `testing` has what `unstable` has.
const DEBIAN_SUITES: [&str; 4] = ["oldoldstable", "oldstable", "stable", "unstable"];

/// A release that a package brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub release: Release,
    pub package_version: String,
}

/// The clients, and a root of ours for their lists.
pub(super) struct Apt {
    apt_get: PathBuf,
    apt_cache: PathBuf,
    helper: PathBuf,
    root: PathBuf,
}

/// A repository that the machine is set up with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Repository {
    uri: String,
    suite: String,
    signed_by: Option<String>,
}

impl Apt {
    /// The clients on this machine; the reason when there are none.
    pub fn here(find: impl Fn(&str) -> Option<PathBuf>, root: PathBuf) -> Result<Self, String> {
        let client = |name: &str| find(name).ok_or_else(|| format!("{name} is not installed"));
        Ok(Self {
            apt_get: client("apt-get")?,
            apt_cache: client("apt-cache")?,
            helper: client("/usr/lib/apt/apt-helper")?,
            root,
        })
    }

    /// The releases of a major that the archive lists, newest first; `said` gets what went wrong on the way.
    pub fn releases(
        &self,
        major: &str,
        progress: &mut dyn FnMut(&str),
        said: &mut Vec<String>,
    ) -> Result<Vec<Candidate>, Problem> {
        self.refresh(progress, said)?;
        let package = format!("postgresql-{major}");
        let output = self.run(&self.apt_cache, &["showsrc", &package]);
        let text = match output {
            Ok(text) => text,
            // It knows no such package.
            Err(_) => return Ok(Vec::new()),
        };
        let mut found: Vec<Candidate> = Vec::new();
        for package_version in text
            .lines()
            .filter_map(|line| line.strip_prefix("Version: "))
        {
            let release = upstream(package_version);
            let release = release.filter(|release| release.major == major);
            let Some(release) = release else { continue };
            if found.iter().all(|known| known.release != release) {
                found.push(Candidate {
                    release,
                    package_version: package_version.trim().to_owned(),
                });
            }
        }
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.release.minor));
        Ok(found)
    }

    /// Fetches a release's archive into the directory `into`; the client's words when it cannot.
    pub fn fetch(&self, candidate: &Candidate, into: &Path) -> Result<(PathBuf, String), String> {
        let (major, version) = (&candidate.release.major, &candidate.package_version);
        let package = format!("postgresql-{major}={version}");
        let listed = self.run(
            &self.apt_get,
            &["source", "-qq", "--print-uris", "--download-only", &package],
        )?;
        let (uri, name, sha256) = listed
            .lines()
            .find_map(original)
            .ok_or_else(|| format!("no archive with a SHA-256 is listed for {package}"))?;
        let file = into.join(name);
        let place = file.to_string_lossy().into_owned();
        let sum = format!("SHA256:{sha256}");
        self.run(&self.helper, &["download-file", &uri, &place, &sum])
            .map_err(|said| without_credentials(&format!("{uri}: {said}")))?;
        Ok((file, sha256))
    }

    /// Fetches the source indexes unless those of today are here.
    fn refresh(
        &self,
        progress: &mut dyn FnMut(&str),
        said: &mut Vec<String>,
    ) -> Result<(), Problem> {
        let stamp = self.root.join("updated");
        let age = stamp
            .metadata()
            .and_then(|found| found.modified())
            .ok()
            .and_then(|when| when.elapsed().ok());
        let lacking = std::fs::read_to_string(&stamp).unwrap_or_default();
        let fresh = if lacking.is_empty() {
            LISTS_ARE_FRESH
        } else {
            PARTS_ARE_FRESH
        };
        if age.is_some_and(|age| age < fresh) {
            said.extend((!lacking.is_empty()).then_some(lacking));
            return Ok(());
        }
        let repositories = chosen(
            &configured(Path::new("/etc/apt")),
            &std::fs::read_to_string("/etc/os-release").unwrap_or_default(),
        );
        if repositories.is_empty() {
            said.push("apt-get: no repository of the distribution is set up".to_owned());
            return Ok(());
        }
        for dir in ["lists/partial", "cache/archives/partial", "sources"] {
            make_directory(&self.root.join(dir))?;
        }
        let sources = self.root.join("sources/deltabench.sources");
        write_private(&sources, &stanzas(&repositories))
            .map_err(|error| failed("write", &sources, &error))?;
        progress("fetching the lists of source packages with apt-get");
        // Some suite may not be on this mirror: the others count.
        let lacking = match self.update()? {
            Ok(_) => String::new(),
            Err(error) => format!("apt-get update: {error}"),
        };
        std::fs::write(&stamp, &lacking).map_err(|error| failed("write", &stamp, &error))?;
        said.extend((!lacking.is_empty()).then_some(lacking));
        Ok(())
    }

    /// Fetches the indexes, without what the machine runs before and after it fetches its own.
    fn update(&self) -> Result<Result<String, String>, Problem> {
        let settings = self.root.join("update.conf");
        // A list can be emptied in a file only, and only in one that is read after the machine's own.
        std::fs::write(&settings, "#clear APT::Update;\n")
            .map_err(|error| failed("write", &settings, &error))?;
        let place = settings.to_string_lossy();
        Ok(self.run(&self.apt_get, &["-c", &place, "update", "-q"]))
    }

    /// Runs a client on the private root; the telling lines of what it said when it failed.
    fn run(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        for (name, place) in [
            ("Dir::Etc::sourcelist", PathBuf::from("/dev/null")),
            ("Dir::Etc::sourceparts", self.root.join("sources")),
            ("Dir::State::lists", self.root.join("lists")),
            ("Dir::Cache", self.root.join("cache")),
        ] {
            let mut option = OsString::from(format!("{name}="));
            option.push(place);
            command.arg("-o").arg(option);
        }
        // Translations and the like are for those who install.
        command.args(["-o", "Acquire::Languages=none"]);
        let output = command::output(command.args(arguments)).map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let telling: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("E: "))
            .take(4)
            .collect();
        Err(without_credentials(&match telling.as_slice() {
            [] => format!("{}: {}", output.status, said.trim()),
            lines => lines.join("; "),
        }))
    }
}

/// `17.11` of `17.11-0+deb13u1`; `None` for what is not released yet (`19~beta2-1`).
fn upstream(package_version: &str) -> Option<Release> {
    let version = package_version.trim().rsplit_once('-')?.0;
    let version = version.rsplit_once(':').map_or(version, |(_, rest)| rest);
    let release: Release = version.parse().ok()?;
    release.minor.is_some().then_some(release)
}

/// Address, name and checksum of the original archive, from a line of `--print-uris`:
/// `'URI' postgresql-17_17.11.orig.tar.bz2 21787224 SHA256:…`.
fn original(line: &str) -> Option<(String, String, String)> {
    let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    let mut words = rest.split_whitespace();
    let name = words.next()?;
    let sum = words.nth(1)?.strip_prefix("SHA256:")?;
    let plain = name.contains(".orig.tar.") && !name.contains('/') && !name.ends_with(".asc");
    plain.then_some(())?;
    Some((uri.to_owned(), name.to_owned(), published_sha256(sum)?))
}

/// The repositories in `sources.list` and `sources.list.d` below a directory, whatever they are for.
fn configured(etc: &Path) -> Vec<Repository> {
    let parts = std::fs::read_dir(etc.join("sources.list.d"));
    let parts = parts
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = parts.collect();
    files.sort();
    files.insert(0, etc.join("sources.list"));
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|end| end.to_str()) {
            Some("list") => found.extend(text.lines().filter_map(one_line)),
            Some("sources") => {
                found.extend(paragraphs(&text).iter().flat_map(|lines| stanza(lines)))
            }
            _ => {}
        }
    }
    found
}

/// `deb [signed-by=FILE arch=amd64] URI SUITE COMPONENT…`
fn one_line(line: &str) -> Option<Repository> {
    let rest = line.trim();
    let rest = rest
        .strip_prefix("deb-src ")
        .or_else(|| rest.strip_prefix("deb "))?
        .trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    words.any(|component| component == "main").then_some(())?;
    let mut options = options.split_whitespace();
    Some(Repository {
        uri: uri.trim_end_matches('/').to_owned(),
        suite: suite.to_owned(),
        signed_by: options
            .find_map(|option| option.strip_prefix("signed-by="))
            .map(str::to_owned),
    })
}

/// The paragraphs of a deb822 file, without comments.
fn paragraphs(text: &str) -> Vec<Vec<&str>> {
    let mut all = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.trim().is_empty(), all.last_mut()) {
            (false, Some(current)) => current.push(line),
            _ => all.push(Vec::new()),
        }
    }
    all
}

/// Each address and suite of one paragraph.
fn stanza(lines: &[&str]) -> Vec<Repository> {
    let field = |wanted: &str| {
        lines.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    let is_off = field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    let has_main =
        field("Components").is_some_and(|all| all.split_whitespace().any(|one| one == "main"));
    if is_off || !has_main {
        return Vec::new();
    }
    // A key that is written out in the file is left to the keys that the machine trusts anyway.
    let signed_by = field("Signed-By").filter(|value| value.starts_with('/'));
    let suites = field("Suites").unwrap_or_default();
    let uris = field("URIs").unwrap_or_default().split_whitespace();
    uris.flat_map(|uri| {
        suites.split_whitespace().map(move |suite| Repository {
            uri: uri.trim_end_matches('/').to_owned(),
            suite: suite.to_owned(),
            signed_by: signed_by.map(str::to_owned),
        })
    })
    .collect()
}

/// The repositories to ask: the distribution's own, and those that add to its release (`bookworm-pgdg`).
fn chosen(configured: &[Repository], os_release: &str) -> Vec<Repository> {
    let value = |name: &str| {
        os_release.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?.strip_prefix('=')?;
            Some(rest.trim_matches('"').to_owned())
        })
    };
    let is_debian = value("ID").as_deref() == Some("debian");
    let codename = value("VERSION_CODENAME").unwrap_or_default();
    let mut all: Vec<Repository> = Vec::new();
    for repository in configured {
        let suite = repository.suite.as_str();
        let own = suite == codename
            || DEBIAN_SUITES.contains(&suite)
            || matches!(suite, "testing" | "sid");
        let suites: Vec<&str> = if own && is_debian {
            DEBIAN_SUITES.to_vec()
        } else if own || (!codename.is_empty() && suite.starts_with(&format!("{codename}-"))) {
            vec![suite]
        } else {
            Vec::new()
        };
        for suite in suites {
            let known = |known: &Repository| known.uri == repository.uri && known.suite == suite;
            if !all.iter().any(known) {
                all.push(Repository {
                    suite: suite.to_owned(),
                    ..repository.clone()
                });
            }
        }
    }
    all
}

/// The private list of sources.
fn stanzas(repositories: &[Repository]) -> String {
    let one = |repository: &Repository| {
        let signed_by = match &repository.signed_by {
            Some(file) => format!("Signed-By: {file}\n"),
            None => String::new(),
        };
        format!(
            "Types: deb-src\nURIs: {}\nSuites: {}\nComponents: main\n{signed_by}",
            repository.uri, repository.suite
        )
    };
    let all: Vec<String> = repositories.iter().map(one).collect();
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";

    fn of(text: &str, name: &str, os_release: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sources.list.d")).unwrap();
        std::fs::write(dir.path().join("sources.list.d").join(name), text).unwrap();
        chosen(&configured(dir.path()), os_release)
            .iter()
            .map(|found| {
                let key = found.signed_by.as_deref().unwrap_or("-");
                format!("{} {} {key}", found.uri, found.suite)
            })
            .collect()
    }

    #[test]
    fn a_debian_mirror_is_asked_for_its_neighbouring_releases_too() {
        let text = "Types: deb\n# a comment\nURIs: http://m.example/debian/\nSuites: bookworm \
                    bookworm-updates\nComponents: main contrib\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: \
                    http://other.example\nSuites: nodistro\nComponents: main\n\nEnabled: no\nURIs: \
                    http://off.example\nSuites: bookworm\nComponents: main\n";
        assert_eq!(
            of(text, "debian.sources", DEBIAN),
            [
                "http://m.example/debian oldoldstable /k.gpg",
                "http://m.example/debian oldstable /k.gpg",
                "http://m.example/debian stable /k.gpg",
                "http://m.example/debian unstable /k.gpg",
                "http://m.example/debian bookworm-updates /k.gpg",
            ]
        );
    }

    #[test]
    fn the_older_form_of_lists_is_read_and_other_distributions_keep_to_their_release() {
        let text = "# deb http://no.example jammy main\ndeb [arch=amd64 signed-by=/u.gpg] \
                    http://u.example/ubuntu jammy main universe\ndeb http://u.example/ubuntu \
                    jammy-pgdg main\ndeb http://u.example/ubuntu jammy universe\n";
        assert_eq!(
            of(text, "ubuntu.list", "ID=ubuntu\nVERSION_CODENAME=jammy\n"),
            [
                "http://u.example/ubuntu jammy /u.gpg",
                "http://u.example/ubuntu jammy-pgdg -"
            ]
        );
        assert_eq!(of(text, "ubuntu.list", ""), [""; 0]);
    }

    /// A client of ours on a private root in `dir`.
    fn client(dir: &Path, script: &str) -> Apt {
        let program = dir.join("client");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        for name in ["lists/partial", "cache/archives/partial", "sources"] {
            make_directory(&dir.join(name)).unwrap();
        }
        Apt {
            apt_get: program.clone(),
            apt_cache: program.clone(),
            helper: program,
            root: dir.to_owned(),
        }
    }

    #[test]
    fn what_the_machine_runs_around_its_own_updates_is_not_run() {
        if !Path::new("/usr/bin/apt-get").exists() {
            deltabench_testkit::not_tested("updates through apt-get", "there is none here");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let ran = dir.path().join("ran");
        let hooks = ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"].map(|hook| {
            let told = format!("echo {hook} >>{}", ran.display());
            format!("APT::Update::{hook} {{ \"{told}\"; }};\n")
        });
        let settings = dir.path().join("hooks.conf");
        std::fs::write(&settings, hooks.concat()).unwrap();
        let script = format!(
            "APT_CONFIG={} exec /usr/bin/apt-get \"$@\"",
            settings.display()
        );
        let apt = client(dir.path(), &script);
        apt.update().unwrap().unwrap();
        assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());
    }

    #[test]
    fn passwords_in_the_machine_s_lists_are_neither_told_nor_readable() {
        let dir = tempfile::tempdir().unwrap();
        let apt = client(
            dir.path(),
            "echo 'E: https://u:S3@m.example/x failed' >&2; exit 1",
        );
        assert_eq!(
            apt.update().unwrap().unwrap_err(),
            "https://m.example/x failed"
        );
        let uri = "https://u:S3@m.example/x.orig.tar.bz2";
        let line = format!("'{uri}' x.orig.tar.bz2 12 SHA256:{}", "ab".repeat(32));
        let script = format!(
            "case \"$*\" in *download-file*) echo 'E: no' >&2; exit 1;; esac\necho \"{line}\""
        );
        let apt = client(dir.path(), &script);
        let candidate = Candidate {
            release: "17.11".parse().unwrap(),
            package_version: "17.11-1".to_owned(),
        };
        let said = apt.fetch(&candidate, dir.path()).unwrap_err();
        assert_eq!(said, "https://m.example/x.orig.tar.bz2: no");
        let list = dir.path().join("list");
        std::fs::write(&list, "old, for everybody").unwrap();
        write_private(&list, uri).unwrap();
        assert_eq!(std::fs::read_to_string(&list).unwrap(), uri);
        assert_eq!(list.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_releases_that_are_out_are_candidates() {
        let release = |text: &str| upstream(text).map(|release| release.to_string());
        assert_eq!(release("17.11-0+deb13u1").as_deref(), Some("17.11"));
        assert_eq!(release("1:18.6-3").as_deref(), Some("18.6"));
        assert_eq!(release("9.6.24-0+deb9u1").as_deref(), Some("9.6.24"));
        assert_eq!(release("19~beta2-1"), None);
        assert_eq!(release("17.11"), None);
    }

    #[test]
    fn the_original_archive_is_told_from_the_packaging() {
        let sum = "ab".repeat(32);
        let line = |name: &str| format!("'http://m.example/p/{name}' {name} 12 SHA256:{sum}");
        let found = original(&line("postgresql-17_17.11.orig.tar.bz2")).unwrap();
        assert_eq!(
            found.0,
            "http://m.example/p/postgresql-17_17.11.orig.tar.bz2"
        );
        assert_eq!(
            (found.1.as_str(), found.2),
            ("postgresql-17_17.11.orig.tar.bz2", sum.clone())
        );
        assert_eq!(original(&line("postgresql-17_17.11-0.debian.tar.xz")), None);
        assert_eq!(
            original(&line("postgresql-17_17.11.orig.tar.bz2.asc")),
            None
        );
        assert_eq!(original("Need to get 21.8 MB"), None);
    }
}
