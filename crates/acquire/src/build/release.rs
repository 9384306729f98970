//! The source of a release: kept from before, from the distribution's archive, or from an address of the
//! user's.

use super::apt::{Apt, Candidate};
use super::archive::{Archive, published_sha256};
use super::probe::Toolbox;
use crate::Sources;
use crate::address::without_credentials;
use crate::cache::Cache;
use crate::command;
use crate::files::{failed, make_directory, read_json, remove_tree, write_private, write_whole};
use crate::platform::Platform;
use crate::tree::sha256_of;
use crate::versions::{self, Product, Version};
use deltabench_model::problem::Problem;
use deltabench_model::target::Release;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

const FORMAT: &str = "deltabench.release";

/// What is kept of a fetched release; version 1 of the format.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: String,
    version: u32,
    revision: u32,
    release: String,
    /// Name of the archive in the same directory.
    file: String,
    sha256: String,
    from: String,
}

/// A release and its source.
pub(super) type Found = (Release, Archive);

/// Where sources of releases come from.
pub(super) struct Releases<'a> {
    pub cache: &'a Cache,
    pub sources: &'a Sources,
    pub tools: &'a Toolbox,
}

impl Releases<'_> {
    /// The kept archive of an exact release, or of the newest one of a major. Needs no network and no lock.
    pub fn kept(&self, wanted: &Release) -> Option<Found> {
        let entries = std::fs::read_dir(self.cache.sources())
            .into_iter()
            .flatten()
            .flatten();
        let mut kept: Vec<Kept> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| read_json(&path))
            .filter(|kept: &Kept| kept.format == FORMAT && kept.version == 1)
            .collect();
        kept.retain(|kept| answers(&kept.release, wanted));
        kept.sort_by_key(|kept| {
            kept.release
                .parse()
                .ok()
                .and_then(|found: Release| found.minor)
        });
        while let Some(newest) = kept.pop() {
            let file = self.cache.sources().join(&newest.file);
            // An archive that was changed or removed is fetched again.
            if let (Ok(release), Ok(archive)) =
                (newest.release.parse(), Archive::open(&file, self.cache))
                && archive.sha256 == newest.sha256
            {
                return Some((release, archive));
            }
        }
        None
    }

    /// The source of a release, fetched if need be. Callers hold the lock of builds.
    pub fn find(&self, wanted: &Release, progress: &mut dyn FnMut(&str)) -> Result<Found, Problem> {
        let kept = self.kept(wanted);
        if let Some(kept) = &kept
            && (wanted.minor.is_some() || self.sources.offline)
        {
            return Ok(kept.clone());
        }
        if self.sources.offline {
            return Err(missing(
                wanted,
                &["offline: nothing is fetched".to_owned()],
                &[],
            ));
        }
        let mut said = Vec::new();
        let mut listed = Vec::new();
        let newest_kept = kept.as_ref().and_then(|(release, _)| release.minor);
        let work = self.cache.in_progress("fetch");
        remove_tree(&work)?;
        make_directory(&work)?;
        let found = self
            .ask_apt(
                wanted,
                newest_kept,
                &work,
                (&mut said, &mut listed),
                progress,
            )
            .and_then(|found| match found {
                None => self.ask_mirror(wanted, newest_kept, &work, &mut said, progress),
                found => Ok(found),
            });
        let _ = remove_tree(&work);
        match (found?, kept) {
            (Some(found), _) => Ok(found),
            (None, Some(kept)) => Ok(kept),
            (None, None) => Err(missing(wanted, &said, &listed)),
        }
    }

    /// From the distribution's archive; nothing when that has no newer one than is kept.
    fn ask_apt(
        &self,
        wanted: &Release,
        newest_kept: Option<u32>,
        work: &Path,
        (said, listed): (&mut Vec<String>, &mut Vec<String>),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Found>, Problem> {
        let apt = match Apt::here(|name| self.tools.find(name), self.cache.root().join("apt")) {
            Ok(apt) => apt,
            Err(why) => {
                said.push(why);
                return Ok(None);
            }
        };
        let candidates = apt.releases(&wanted.major, progress, said)?;
        listed.extend(
            candidates
                .iter()
                .map(|candidate| candidate.release.to_string()),
        );
        let wanted_ones: Vec<&Candidate> = candidates
            .iter()
            .filter(|one| {
                wanted
                    .minor
                    .is_none_or(|minor| one.release.minor == Some(minor))
            })
            .filter(|one| one.release.minor > newest_kept)
            .collect();
        if wanted_ones.is_empty() {
            said.push(match listed.as_slice() {
                [] => format!("apt-get: no source package postgresql-{}", wanted.major),
                listed => format!("apt-get: has the source of {} only", listed.join(", ")),
            });
        }
        for candidate in wanted_ones {
            progress(&format!(
                "fetching the source of {} with apt",
                candidate.release
            ));
            match apt.fetch(candidate, work) {
                Ok((file, sha256)) => {
                    let kept = self.keep(&candidate.release, &file, &sha256, "apt")?;
                    return Ok(Some(kept));
                }
                Err(why) => {
                    let release = candidate.release.to_string();
                    listed.retain(|listed| *listed != release);
                    let line = format!("{release}: {why}");
                    progress(&format!("cannot fetch the source of {line}"));
                    said.push(line);
                }
            }
        }
        Ok(None)
    }

    /// From `BASE/vVERSION/postgresql-VERSION.tar.bz2`, with the checksum beside it.
    fn ask_mirror(
        &self,
        wanted: &Release,
        newest_kept: Option<u32>,
        work: &Path,
        said: &mut Vec<String>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Found>, Problem> {
        let Some(base) = mirror(self.sources)? else {
            said.push("source_mirror: none is configured".to_owned());
            return Ok(None);
        };
        let Some(release) = newest_of(base, wanted) else {
            said.push(format!(
                "{}: cannot list its releases of {wanted}",
                without_credentials(base)
            ));
            return Ok(None);
        };
        if release.minor <= newest_kept {
            return Ok(None);
        }
        let name = format!("postgresql-{release}.tar.bz2");
        let address = format!("{base}/v{release}/{name}");
        let shown = without_credentials(&address);
        progress(&format!("fetching {shown}"));
        let (file, sums) = (work.join(&name), work.join(format!("{name}.sha256")));
        for (address, file) in [(&address, &file), (&format!("{address}.sha256"), &sums)] {
            if let Err(why) = self.download(address, file) {
                said.push(without_credentials(&format!("{address}: {why}")));
                return Ok(None);
            }
        }
        let text = std::fs::read_to_string(&sums).map_err(|error| failed("read", &sums, &error))?;
        let Some(published) = published_sha256(&text) else {
            said.push(format!("{shown}.sha256: contains no checksum"));
            return Ok(None);
        };
        let found = sha256_of(&file)?;
        if found != published {
            return Err(Problem::new(format!("{shown} does not match its checksum"))
                .detail(format!("published: {published}\nfetched:   {found}"))
                .hint("deltabench kept nothing; ask the operators of that mirror"));
        }
        self.keep(&release, &file, &published, &without_credentials(base))
            .map(Some)
    }

    /// Gets one file: copied, or with the client that is here.
    fn download(&self, address: &str, into: &Path) -> Result<(), String> {
        if let Some(path) = address.strip_prefix("file://") {
            return std::fs::copy(path, into)
                .map(drop)
                .map_err(|error| error.to_string());
        }
        // Other users see what a program is called with, and the address may hold a password.
        let asked = into.with_extension("address");
        let (mut command, text) = match (self.tools.find("curl"), self.tools.find("wget")) {
            (Some(curl), _) => {
                let mut command = Command::new(curl);
                command.args(["--fail", "--silent", "--show-error", "--location"]);
                command.args(["--proto", "=https", "--retry", "2"]);
                command.args(["--connect-timeout", "20"]);
                command.args(["--speed-limit", "1000", "--speed-time", "60"]);
                command.arg("--output").arg(into).arg("--config");
                let quoted = address.replace('\\', "\\\\").replace('"', "\\\"");
                (command, format!("url = \"{quoted}\"\n"))
            }
            (None, Some(wget)) => {
                let mut command = Command::new(wget);
                command.args(["--no-verbose", "--tries=3", "--timeout=60"]);
                // It cannot be told to stay with https when it is sent on.
                command.args(["--max-redirect=0", "--output-document"]);
                command.arg(into).arg("--input-file");
                (command, format!("{address}\n"))
            }
            (None, None) => return Err("neither curl nor wget is installed".to_owned()),
        };
        write_private(&asked, &text).map_err(|error| error.to_string())?;
        let output = command::output(command.arg(&asked));
        std::fs::remove_file(&asked).map_err(|error| error.to_string())?;
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(if said.is_empty() {
            output.status.to_string()
        } else {
            said
        })
    }

    /// Moves a verified archive to the kept ones and writes down what it is.
    fn keep(
        &self,
        release: &Release,
        file: &Path,
        sha256: &str,
        from: &str,
    ) -> Result<Found, Problem> {
        let opened = Archive::open(file, self.cache)?;
        if opened.sha256 != sha256 || opened.contents.version != release.to_string() {
            return Err(Problem::new(format!(
                "the fetched archive is not the source of {release}"
            ))
            .detail(format!(
                "it is the source of {} with SHA-256 {}; {from} gave {sha256} for {release}",
                opened.contents.version, opened.sha256
            )));
        }
        let packed = file.extension().unwrap_or_default().to_string_lossy();
        let name = format!("postgresql-{release}.tar.{packed}");
        let place = self.cache.sources().join(&name);
        std::fs::rename(file, &place).map_err(|error| failed("rename", file, &error))?;
        let kept = Kept {
            format: FORMAT.to_owned(),
            version: 1,
            revision: 0,
            release: release.to_string(),
            file: name,
            sha256: sha256.to_owned(),
            from: from.to_owned(),
        };
        write_whole(
            &self
                .cache
                .sources()
                .join(format!("postgresql-{release}.json")),
            &kept,
        )?;
        Ok((release.clone(), Archive::open(&place, self.cache)?))
    }
}

/// The address of the user's, without slashes at its end; it must be one that nobody on the way can change.
pub(super) fn mirror(sources: &Sources) -> Result<Option<&str>, Problem> {
    let Some(base) = &sources.source_mirror else {
        return Ok(None);
    };
    if base.starts_with("https://") || base.starts_with("file://") {
        return Ok(Some(base.trim_end_matches('/')));
    }
    Err(Problem::new(format!(
        "source_mirror cannot be {}",
        without_credentials(base)
    ))
    .detail("archives and their checksums come from the same place: it must be https:// or file://")
    .hint("write https://… (or file:///… for a directory) in the configuration"))
}

fn answers(found: &str, wanted: &Release) -> bool {
    found.parse().is_ok_and(|found: Release| {
        found.major == wanted.major && (wanted.minor.is_none() || wanted.minor == found.minor)
    })
}

/// The release to ask a mirror for: a directory can be looked into, for an address what is known must do.
fn newest_of(base: &str, wanted: &Release) -> Option<Release> {
    if wanted.minor.is_some() {
        return Some(wanted.clone());
    }
    if let Some(dir) = base.strip_prefix("file://") {
        let entries = std::fs::read_dir(PathBuf::from(dir))
            .into_iter()
            .flatten()
            .flatten();
        let found = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix('v')?.parse::<Release>().ok()
        });
        let found = found.filter(|found| found.major == wanted.major && found.minor.is_some());
        return found.max_by_key(|found| found.minor);
    }
    let known = Platform::here().map(|platform| versions::known(Product::Postgres, platform));
    let known = known.unwrap_or_default();
    let newest = versions::newest(&Version::Postgres(wanted.clone()), &known)?;
    match &newest.release {
        Version::Postgres(release) => Some(release.clone()),
        Version::Rocksdb(_) => None,
    }
}

/// The refusal, with what each place answered.
fn missing(wanted: &Release, said: &[String], listed: &[String]) -> Problem {
    let tag = match (wanted.major.split_once('.'), wanted.minor) {
        (None, Some(minor)) => format!("REL_{}_{minor}", wanted.major),
        (None, None) => format!("REL_{}_STABLE", wanted.major),
        (Some((first, second)), Some(minor)) => format!("REL{first}_{second}_{minor}"),
        (Some((first, second)), None) => format!("REL{first}_{second}_STABLE"),
    };
    let near = match listed {
        [] => String::new(),
        listed => format!("apt has {}; ", listed.join(", ")),
    };
    Problem::new(format!("cannot get the source of PostgreSQL {wanted}"))
        .detail(said.join("\n"))
        .hint(format!(
            "{near}use src:FILE+VARIANT for an archive or git:DIR@{tag}+VARIANT for a clone; or set \
             `source_mirror` in the configuration to an address below which \
             vVERSION/postgresql-VERSION.tar.bz2 and its .sha256 are"
        ))
}
