//! Which machine this is: a random identifier in a file of its own, and the class of the machine.

use crate::host_facts::read_host;
use deltabench_model::occasion::{HostClass, HostIdentity, MEASUREMENT_VERSION, Occasion};
use deltabench_proc::host::{boot_id, our_user, random_uuid};
use sha2::{Digest, Sha256};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Name of the file with the identifier.
const FILE: &str = "host-uid";

/// Where root keeps it. Other users of the machine read it there, if they have none of their own.
const OF_ROOT: &str = "/var/lib/deltabench";

/// What tells installations of an operating system apart (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// Modes of what is made: other users of the machine read it.
const DIRECTORY_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// Which machine this is; `None` where its identifier can be neither read nor kept.
///
/// A machine that was cloned with its files is another one if it has another machine-id.
pub fn host_identity() -> Option<HostIdentity> {
    let facts = read_host();
    let machine_id = std::fs::read_to_string(MACHINE_ID).ok();
    let places = places(our_user() == Some(0), machine_id.as_deref(), |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    });
    Some(HostIdentity {
        uid: uid_in(&places)?,
        class: HostClass::of(&facts),
        kernel: facts.kernel,
        microcode: facts.microcode,
    })
}

/// A run that is measured here from now on; `None` where this machine cannot be told from others.
pub fn occasion(at_unix_ms: i64) -> Option<Occasion> {
    Some(Occasion {
        host: host_identity()?,
        uid: random_uuid()?,
        boot_id: boot_id(),
        measurement_version: MEASUREMENT_VERSION,
        at_unix_ms,
    })
}

/// The files that may have it, the first choice first: it is made in the first that can be made.
///
/// A user's own comes before that of root, so that a machine does not become another one when root measures
/// for the first time. Machines may share a home, or be clones of one image: the file has the hash of this
/// one's machine-id in its name.
fn places(
    is_root: bool,
    machine_id: Option<&str>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    if let Some(directory) = variable("DELTABENCH_STATE") {
        return vec![directory.join(FILE)];
    }
    let base = variable("XDG_STATE_HOME").filter(|base| base.is_absolute());
    let base = base.or_else(|| Some(variable("HOME")?.join(".local/state")));
    // Before the first boot an image has `uninitialized` (machine-id(5)).
    let known = machine_id.map(str::trim);
    let known = known.filter(|id| !id.is_empty() && *id != "uninitialized");
    let file = known.map_or_else(|| FILE.to_owned(), |id| format!("{FILE}-{}", hashed(id)));
    let own = base.map(|base| base.join("deltabench").join(&file));
    let of_root = Path::new(OF_ROOT).join(&file);
    let mut places: Vec<PathBuf> = own.into_iter().chain([of_root]).collect();
    if is_root {
        places.reverse();
    }
    places
}

/// The first digits of a hash that nobody can turn back: a machine-id is not to be shown as it is.
fn hashed(machine_id: &str) -> String {
    let mut hash = format!("{:x}", Sha256::digest(format!("deltabench {machine_id}")));
    hash.truncate(16);
    hash
}

/// The identifier in the first file that has one; else a new one in the first that can be made. A file that
/// is there and cannot be read may have one: nothing behind it is taken or made.
fn uid_in(places: &[PathBuf]) -> Option<String> {
    let mut open = Vec::new();
    for file in places {
        match read(file) {
            Ok(Some(uid)) => return Some(uid),
            Ok(None) => open.push(file),
            Err(_) => break,
        }
    }
    open.into_iter().find_map(|file| create(file))
}

/// `None` for a file that is not there or has nothing in it.
fn read(file: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|uid| !uid.is_empty())),
        // A home may be /dev/null.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Of two processes that make it at once, the second takes what the first has made. A file without an
/// identifier is replaced.
fn create(file: &Path) -> Option<String> {
    let directory = file.parent()?;
    if !directory.exists() {
        std::fs::create_dir_all(directory).ok()?;
        allow(directory, DIRECTORY_MODE);
    }
    let uid = random_uuid()?;
    // A link to a whole file, so that nobody reads half of it.
    let own = directory.join(format!("{FILE}.{uid}"));
    let mut made = File::create_new(&own).ok()?;
    let written = writeln!(made, "{uid}").and_then(|()| made.sync_all());
    allow(&own, FILE_MODE);
    let linked = written.and_then(|()| std::fs::hard_link(&own, file));
    let kept = match linked {
        Ok(()) => Some(uid),
        Err(_) => match read(file).ok()? {
            Some(uid) => Some(uid),
            None => {
                std::fs::rename(&own, file).ok()?;
                read(file).ok()?
            }
        },
    };
    // Gone already where it was renamed.
    std::fs::remove_file(&own).ok();
    kept
}

/// Gives what we made its mode, whatever the umask is. Where that fails only we can read it.
fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_keeps_its_identifier_and_another_place_is_another_machine() {
        let place = tempfile::tempdir().unwrap();
        let [own, root] = ["own", "root"].map(|name| place.path().join(name).join(FILE));
        let both = [own.clone(), root.clone()];
        let first = uid_in(&both).unwrap();
        assert_eq!(first.len(), 36);
        assert_eq!(uid_in(&both), Some(first.clone()));
        let files = std::fs::read_dir(own.parent().unwrap()).unwrap().count();
        assert!(files == 1 && !root.exists(), "nothing else is made");
        let other = uid_in(std::slice::from_ref(&root)).unwrap();
        assert_ne!(other, first);
        assert_eq!(uid_in(&both), Some(first), "root came later");
        std::fs::remove_file(&own).unwrap();
        assert_eq!(
            uid_in(&both),
            Some(other),
            "root's, without one of their own"
        );
    }

    #[test]
    fn what_cannot_be_kept_in_one_place_is_kept_in_the_next() {
        let place = tempfile::tempdir().unwrap();
        let nowhere = PathBuf::from("/proc/nowhere").join(FILE);
        let own = place.path().join(FILE);
        let uid = uid_in(&[nowhere.clone(), own.clone()]);
        assert!(uid.is_some() && uid == read(&own).unwrap());
        assert_eq!(uid_in(&[nowhere]), None);
    }

    #[test]
    fn an_empty_file_is_mended_and_others_may_read_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let file = directory.join(FILE);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        uid_in(std::slice::from_ref(&file)).unwrap();
        assert_eq!((mode(&directory), mode(&file)), (DIRECTORY_MODE, FILE_MODE));
        std::fs::write(&file, "\n").unwrap();
        allow(&file, 0o600);
        let uid = uid_in(std::slice::from_ref(&file));
        assert!(uid.is_some() && uid == read(&file).unwrap());
        assert_eq!(mode(&file), FILE_MODE);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        // What is no text is not replaced.
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        let behind = place.path().join("behind").join(FILE);
        assert_eq!(uid_in(&[file.clone(), behind.clone()]), None);
        assert_eq!(std::fs::read(&file).unwrap(), [0xff, 0xfe]);
        assert!(!behind.exists());
    }

    #[test]
    fn the_file_is_where_it_was_named_or_that_of_root_or_of_the_user_on_this_machine() {
        let of = |is_root, machine_id, known: &[(&str, &str)]| {
            places(is_root, machine_id, |name| {
                let found = known.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| PathBuf::from(value))
            })
        };
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (home, root) = (("HOME", "/home/me"), "/var/lib/deltabench/host-uid");
        let mine = "/home/me/.local/state/deltabench/host-uid";
        assert_eq!(of(true, None, &[home]), paths(&[root, mine]));
        assert_eq!(of(false, Some("\n"), &[home]), paths(&[mine, root]));
        let state = [home, ("XDG_STATE_HOME", "/s")];
        let own = "/s/deltabench/host-uid";
        assert_eq!(of(false, None, &state), paths(&[own, root]));
        let named = [home, ("DELTABENCH_STATE", "/d")];
        assert_eq!(of(true, Some("a"), &named), paths(&["/d/host-uid"]));
        assert_eq!(of(false, Some("uninitialized"), &[]), paths(&[root]));
        // Nodes of one home, and clones of one image.
        assert_ne!(of(true, Some("a"), &[]), of(true, Some("b"), &[]));
        let node = |id| of(false, Some(id), &[home])[0].clone();
        assert_ne!(node("a"), node("b"));
        assert_eq!(node("a\n"), node("a"));
        let name = node("a").display().to_string();
        assert_eq!(name.len(), mine.len() + 17, "{name}");
    }
}
