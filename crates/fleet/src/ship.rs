//! Programs that travel: deltabench itself and servers, once for an execution, with their hashes.

use crate::tree::{self, bytes_of, copied};
use crate::whole_file::{left_over, sha256, sweep, sync_directory_of};
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
    /// SHA-256 over all of its tree: libraries and shared files measure, too.
    pub tree_sha256: String,
    /// Its tree in the shared directory. Hosts that get copies have it below a directory of theirs.
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
    sweep(&shared.join("bin"), is_left);
    let kept = shared
        .join("bin")
        .join(format!("deltabench-{}", short(&hash)));
    if !kept.exists() || sha256(&kept)? != hash {
        let beside = kept.with_extension(format!("new-{}", std::process::id()));
        let done = || -> io::Result<()> {
            fs::create_dir_all(shared.join("bin"))?;
            fs::copy(own, &beside)?;
            fs::File::open(&beside)?.sync_all()?;
            fs::rename(&beside, &kept)?;
            sync_directory_of(&kept)
        };
        done().map_err(|error| left_over("write", (&kept, &beside), &error))?;
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
    let all = shared.join("servers");
    sweep(&all, is_left);
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
            let tree_sha256 = tree::hash(tree)?;
            let kept = all.join(short(&tree_sha256));
            copied(tree, &kept, &tree_sha256)?;
            shipped.push(Shipped {
                binary_sha256: hash.clone(),
                tree_sha256,
                tree: kept,
                within,
            });
        }
    }
    Ok(shipped)
}

/// Names trees by their path below the directory of each host, because hosts get copies.
pub fn below_each_host(shipped: &mut [Shipped], shared: &Path) {
    for sent in shipped {
        if let Ok(below) = sent.tree.strip_prefix(shared) {
            sent.tree = below.to_owned();
        }
    }
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
        let sent = shipped.iter().find(|sent| sent.binary_sha256 == wanted);
        if found.exists() && sha256(&found)? == wanted && is_as_sent(installation, sent)? {
            continue;
        }
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
        let tree = local.join("servers").join(short(&sent.tree_sha256));
        // Only a path that is not whole is below `local`.
        copied(&local.join(&sent.tree), &tree, &sent.tree_sha256)?;
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

/// Whether what is here already is all that was sent, and not only its program. What did not travel is the
/// host's own.
fn is_as_sent(installation: &Installation, sent: Option<&Shipped>) -> Result<bool, Problem> {
    match (sent, tree_of(installation)) {
        (Some(sent), Some((tree, _))) => Ok(tree::hash(tree)? == sent.tree_sha256),
        _ => Ok(true),
    }
}

/// What a copy is called before it is whole.
fn is_left(name: &str) -> bool {
    name.contains(".new-")
}

/// The first digits of a hash.
pub fn short(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}
