//! Programs that travel: deltabench itself and servers, once for an execution, with their hashes.

use crate::whole_file::{failed, sha256};
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Digits of a hash in names.
const DIGITS: usize = 12;

/// A tree of a server in the shared directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipped {
    /// SHA-256 of the server's program, by which plans name it.
    pub binary_sha256: String,
    /// Its tree in the shared directory.
    pub tree: PathBuf,
    /// The program's directory, or the embedded engine's file, in that tree.
    pub within: PathBuf,
}

/// What runs, even where its file was replaced meanwhile.
const OWN: &str = "/proc/self/exe";

/// SHA-256 of this program.
///
/// Errors: a program that cannot be read.
pub fn own_hash() -> Result<String, Problem> {
    sha256(Path::new(OWN))
}

/// Copies this program into the shared directory; returns where it is and its hash.
///
/// Errors: a program that cannot be read; a directory that cannot be written.
pub fn program(shared: &Path) -> Result<(PathBuf, String), Problem> {
    let own = Path::new(OWN);
    let hash = own_hash()?;
    let kept = shared
        .join("bin")
        .join(format!("deltabench-{}", short(&hash)));
    if !kept.exists() || sha256(&kept)? != hash {
        let beside = kept.with_extension(format!("new-{}", std::process::id()));
        let done = || -> io::Result<()> {
            fs::create_dir_all(shared.join("bin"))?;
            fs::copy(own, &beside)?;
            fs::File::open(&beside)?.sync_all()?;
            fs::rename(&beside, &kept)
        };
        done().map_err(|error| failed("write", &kept, &error))?;
    }
    Ok((kept, hash))
}

/// Whether hosts get a copy of it. What was installed or named by its path is the host's own.
fn travels(installation: &Installation) -> bool {
    matches!(installation.origin, Origin::Prebuilt | Origin::Built)
        && !installation.binary_sha256.is_empty()
}

/// The tree that a server needs, and where in it its program is.
fn tree_of(installation: &Installation) -> Option<(&Path, PathBuf)> {
    let place = installation.bin_dir.as_path();
    // Libraries and shared files are found beside the directory of the programs.
    let tree = place.parent()?;
    Some((tree, place.strip_prefix(tree).ok()?.to_owned()))
}

/// The trees that plans need, each once: where they are here, and how large.
pub fn trees<'a>(plans: impl Iterator<Item = &'a Plan>) -> Vec<(String, PathBuf, u64)> {
    let mut trees: Vec<(String, PathBuf, u64)> = Vec::new();
    for plan in plans {
        for server in plan
            .servers
            .iter()
            .filter(|server| travels(&server.installation))
        {
            let hash = &server.installation.binary_sha256;
            if trees.iter().any(|(known, ..)| known == hash) {
                continue;
            }
            if let Some((tree, _)) = tree_of(&server.installation) {
                trees.push((hash.clone(), tree.to_owned(), bytes_of(tree)));
            }
        }
    }
    trees
}

/// Copies the servers of plans into the shared directory, where they are not there yet.
///
/// Errors: a tree that cannot be read; a directory that cannot be written.
pub fn servers<'a>(
    shared: &Path,
    plans: impl Iterator<Item = &'a Plan>,
) -> Result<Vec<Shipped>, Problem> {
    let mut shipped: Vec<Shipped> = Vec::new();
    for plan in plans {
        for server in plan
            .servers
            .iter()
            .filter(|server| travels(&server.installation))
        {
            let installation = &server.installation;
            let hash = &installation.binary_sha256;
            if shipped.iter().any(|known| known.binary_sha256 == *hash) {
                continue;
            }
            let Some((tree, within)) = tree_of(installation) else {
                continue;
            };
            let kept = shared.join("servers").join(short(hash));
            copied(tree, &kept)?;
            shipped.push(Shipped {
                binary_sha256: hash.clone(),
                tree: kept,
                within,
            });
        }
    }
    Ok(shipped)
}

/// Makes the servers of a plan run on this host: where they are, or from a copy on a local disk. A server is
/// never run from a network file system.
///
/// Errors: `host-has-other-binary` for a program with another hash; one that is not here and did not travel.
pub fn settle(plan: &mut Plan, shipped: &[Shipped], local: &Path) -> Result<(), Problem> {
    for server in &mut plan.servers {
        let installation = &mut server.installation;
        if installation.remote.is_some() || installation.binary_sha256.is_empty() {
            continue;
        }
        let wanted = installation.binary_sha256.clone();
        let found = installation.binary();
        if found.exists() && sha256(&found)? == wanted {
            continue;
        }
        let sent = shipped.iter().find(|sent| sent.binary_sha256 == wanted);
        let Some(sent) = sent else {
            let what = match found.exists() {
                true => format!(
                    "{} has another hash than planned: {}",
                    found.display(),
                    sha256(&found)?
                ),
                false => format!("{} is not there", found.display()),
            };
            return Err(Problem::new(format!(
                "host-has-other-binary: {} is not what was planned",
                installation.resolved
            ))
            .detail(format!("{what}; planned was SHA-256 {wanted}"))
            .hint("name servers that travel (postgres:VERSION, git:…), or install the same everywhere"));
        };
        let tree = local.join("servers").join(short(&wanted));
        copied(&sent.tree, &tree)?;
        installation.bin_dir = tree.join(&sent.within);
        let now = sha256(&installation.binary())?;
        if now != wanted {
            return Err(Problem::new(format!(
                "host-has-other-binary: the copy of {} is another one",
                installation.resolved
            ))
            .detail(format!("SHA-256 is {now}, planned was {wanted}"))
            .hint(format!(
                "remove {} and {}",
                tree.display(),
                sent.tree.display()
            )));
        }
    }
    Ok(())
}

/// The first digits of a hash.
pub fn short(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

/// Copies a tree, if it is not there: beside, then moved to its place.
fn copied(from: &Path, to: &Path) -> Result<(), Problem> {
    if to.exists() {
        return Ok(());
    }
    let beside = to.with_extension(format!("new-{}", std::process::id()));
    let done = || -> io::Result<()> {
        fs::remove_dir_all(&beside).ok();
        copy_tree(from, &beside)?;
        match fs::rename(&beside, to) {
            // Another lane was quicker.
            Err(_) if to.exists() => fs::remove_dir_all(&beside),
            moved => moved,
        }
    };
    done().map_err(|error| failed("copy to", to, &error))
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn bytes_of(tree: &Path) -> u64 {
    let entries = fs::read_dir(tree).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |data| data.len()),
        _ => 0,
    };
    entries.map(size).sum()
}
