//! Source archives: what is in one, found out once for each, and unpacking.

use crate::cache::Cache;
use crate::files::{failed, make_directory, read_json, write_whole};
use crate::tree::{self, sha256_of};
use crate::unpack;
use bzip2::read::MultiBzDecoder;
use deltabench_model::problem::Problem;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const FORMAT: &str = "deltabench.source";

/// The file of a source tree that tells its version: `configure`, or `meson.build` where there is none.
pub(super) const VERSION_FILES: [&str; 2] = ["configure", "meson.build"];
/// Part of the parser as C: with it, bison and flex are not needed.
pub(super) const PARSER: &str = "src/backend/parser/gram.c";

/// What is known of a source tree without building it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    /// `17.11`, `19devel`.
    pub version: String,
    /// As `server_version_num`.
    pub version_num: u32,
    pub has_configure: bool,
    /// Whether it has `meson.build`.
    pub has_meson: bool,
    /// Whether the parser comes as C.
    pub has_parser: bool,
}

impl Contents {
    /// As [`deltabench_model::target::Release::major_rank`]: 1700 for 17.11, 906 for 9.6.24.
    pub fn major_rank(&self) -> u32 {
        let rank = self.version_num / 100;
        if rank >= 1000 { rank / 100 * 100 } else { rank }
    }

    /// Puts together what a tree's files say; the reason when it is no source tree of PostgreSQL.
    pub fn read(
        configure: Option<&str>,
        meson: Option<&str>,
        has_parser: bool,
    ) -> Result<Self, String> {
        let said = configure
            .and_then(|text| quoted_after(text, "PACKAGE_VERSION="))
            .or_else(|| meson.and_then(|text| quoted_after(text, "version: ")));
        let Some(version) = said else {
            return Err(match (configure, meson) {
                (None, None) => "it has neither `configure` nor `meson.build`".to_owned(),
                _ => "`configure` does not say PACKAGE_VERSION".to_owned(),
            });
        };
        let version_num = tree::version_number(version).ok_or_else(|| {
            format!("its version is `{version}`, which is not a version of PostgreSQL")
        })?;
        Ok(Self {
            version: version.to_owned(),
            version_num,
            has_configure: configure.is_some(),
            has_meson: meson.is_some(),
            has_parser,
        })
    }
}

/// The text between quotes that follows `mark` at the start of a line.
fn quoted_after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(mark)?;
        rest.strip_prefix('\'')?.split('\'').next()
    })
}

/// A source archive on this disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archive {
    pub file: PathBuf,
    pub sha256: String,
    /// The one directory that everything in it is below.
    pub root: PathBuf,
    pub contents: Contents,
}

/// What is kept of an archive that was looked into; version 1 of the format.
#[derive(Serialize, Deserialize)]
struct Known {
    format: String,
    version: u32,
    revision: u32,
    root: PathBuf,
    contents: Contents,
}

impl Archive {
    /// Looks into an archive; what it holds is remembered by its checksum.
    ///
    /// Errors: a file that cannot be read, does not match the `.sha256` beside its name or, where that is a
    /// link, beside itself, or holds no source tree.
    pub fn open(file: &Path, cache: &Cache) -> Result<Self, Problem> {
        let named = file;
        let file = file
            .canonicalize()
            .map_err(|error| failed("read", file, &error))?;
        if file.is_dir() {
            return Err(
                Problem::new(format!("{} is a directory, not an archive", file.display())).hint(
                    format!(
                        "a repository is git:{}@HEAD+VARIANT, an installed tree path:{}",
                        file.display(),
                        file.display()
                    ),
                ),
            );
        }
        let sha256 = sha256_of(&file)?;
        check_beside(named, &sha256)?;
        check_beside(&file, &sha256)?;
        let kept = cache.sources().join(format!("{sha256}.json"));
        let known: Option<Known> = read_json(&kept);
        let known = known.filter(|known| known.format == FORMAT && known.version == 1);
        let (root, contents) = match known {
            Some(known) => (known.root, known.contents),
            None => {
                let (root, contents) = look_into(&file)?;
                let known = Known {
                    format: FORMAT.to_owned(),
                    version: 1,
                    revision: 0,
                    root: root.clone(),
                    contents: contents.clone(),
                };
                make_directory(&cache.sources())?;
                write_whole(&kept, &known)?;
                (root, contents)
            }
        };
        Ok(Self {
            file,
            sha256,
            root,
            contents,
        })
    }

    /// The file's name without what says how it is packed: `postgresql-17.11`.
    pub fn name(&self) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let mut name = name.as_ref();
        for end in [
            ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".orig",
        ] {
            name = name.strip_suffix(end).unwrap_or(name);
        }
        name.to_owned()
    }

    /// Unpacks the tree into the existing directory `into`, with the files' own times: `make` goes by them.
    pub fn unpack(&self, into: &Path) -> Result<(), Problem> {
        unpack::source(stream(&self.file)?, &self.file, into, &self.root).map_err(|error| {
            Problem::new(format!("cannot unpack {}", self.file.display())).detail(error.to_string())
        })
    }
}

/// Compares with the checksum in `FILE.sha256`, if there is one.
fn check_beside(file: &Path, sha256: &str) -> Result<(), Problem> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".sha256");
    let beside = PathBuf::from(beside);
    let text = match std::fs::read_to_string(&beside) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(failed("read", &beside, &error)
                .hint("write the SHA-256 as `sha256sum` prints it, or remove the file"));
        }
    };
    let published = published_sha256(&text).ok_or_else(|| {
        Problem::new(format!("{} contains no checksum", beside.display()))
            .detail(format!("it says `{}`", text.lines().next().unwrap_or("")))
            .hint("write the SHA-256 as `sha256sum` prints it, or remove the file")
    })?;
    if published == sha256 {
        return Ok(());
    }
    Err(
        Problem::new(format!("{} does not match its checksum", file.display()))
            .detail(format!(
                "{} says {published}, the file has {sha256}",
                beside.display()
            ))
            .hint("fetch it again"),
    )
}

/// The checksum in the first word of `sha256sum`'s output.
pub(super) fn published_sha256(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    (word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| word.to_lowercase())
}

/// The decompressed stream, by the first bytes of the file.
fn stream(file: &Path) -> Result<Box<dyn Read>, Problem> {
    let broken = |error: std::io::Error| failed("read", file, &error);
    let mut opened = File::open(file).map_err(broken)?;
    let mut start = Vec::new();
    opened
        .by_ref()
        .take(6)
        .read_to_end(&mut start)
        .map_err(broken)?;
    opened.seek(SeekFrom::Start(0)).map_err(broken)?;
    let opened = BufReader::new(opened);
    match start.as_slice() {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(opened))),
        [b'B', b'Z', b'h', ..] => Ok(Box::new(MultiBzDecoder::new(opened))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Ok(Box::new(XzDecoder::new_multi_decoder(opened))),
        _ => Err(
            Problem::new(format!("{} is not a source archive", file.display()))
                .detail("it is not packed with gzip, bzip2 or xz")
                .hint("write src:postgresql-17.11.tar.bz2+VARIANT"),
        ),
    }
}

/// The root directory of an archive and what is known of the tree in it.
fn look_into(file: &Path) -> Result<(PathBuf, Contents), Problem> {
    let no_source = |why: String| {
        Problem::new(format!(
            "{} contains no source of PostgreSQL",
            file.display()
        ))
        .detail(why)
    };
    let broken = |error: std::io::Error| failed("read", file, &error);
    let mut archive = tar::Archive::new(stream(file)?);
    let mut root: Option<PathBuf> = None;
    let mut texts: [Option<String>; 2] = [None, None];
    let mut has_parser = false;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if entry.header().entry_type() == tar::EntryType::XGlobalHeader {
            continue;
        }
        let path = entry.path().map_err(broken)?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let Some(first) = path.components().next() else {
            continue;
        };
        let first = Path::new(first.as_os_str());
        let root = root.get_or_insert_with(|| first.to_owned());
        let Ok(inner) = path.strip_prefix(&*root) else {
            return Err(no_source(format!(
                "it has more than one directory at its top: {} and {}",
                root.display(),
                first.display()
            )));
        };
        has_parser |= inner == Path::new(PARSER);
        for (name, text) in VERSION_FILES.iter().zip(&mut texts) {
            if inner == Path::new(name) {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(broken)?;
                *text = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    let [configure, meson] = &texts;
    let contents =
        Contents::read(configure.as_deref(), meson.as_deref(), has_parser).map_err(no_source)?;
    let root = root.unwrap_or_default();
    Ok((root, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_as_the_tree_writes_it() {
        let configure = "#! /bin/sh\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='17.11'\n";
        let contents = Contents::read(Some(configure), None, true).unwrap();
        assert_eq!(
            (contents.version.as_str(), contents.major_rank()),
            ("17.11", 1700)
        );
        let meson = "project('postgresql',\n  ['c'],\n  version: '19devel',\n)";
        let contents = Contents::read(None, Some(meson), false).unwrap();
        assert_eq!(
            (contents.version.as_str(), contents.major_rank()),
            ("19devel", 1900)
        );
        let old = Contents::read(Some("PACKAGE_VERSION='9.6.24'\n"), None, true).unwrap();
        assert_eq!(old.major_rank(), 906);
        assert!(
            Contents::read(None, None, false)
                .unwrap_err()
                .contains("neither")
        );
        assert!(
            Contents::read(Some(""), None, false)
                .unwrap_err()
                .contains("PACKAGE_VERSION")
        );
        let other = Contents::read(Some("PACKAGE_VERSION='1.x'"), None, false);
        assert!(other.unwrap_err().contains("`1.x`"));
    }

    #[test]
    fn a_checksum_is_the_first_word_and_nothing_else_is_one() {
        let sum = "AB".repeat(32);
        assert_eq!(
            published_sha256(&format!("{sum}  postgresql-17.11.tar.bz2\n")),
            Some(sum.to_lowercase())
        );
        assert_eq!(published_sha256("<html>"), None);
        assert_eq!(published_sha256(""), None);
    }
}
