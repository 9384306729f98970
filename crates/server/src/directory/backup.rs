//! Base backups: directories that have to be recovered before they can be used.
//!
//! Source: "Continuous Archiving and Point-in-Time Recovery" in the PostgreSQL manual; `read_backup_label`
//! and `read_tablespace_map` in xlogrecovery.c.

use super::not_usable;
use crate::failure::failed;
use deltabench_model::problem::Problem;
use std::path::Path;

/// The file that a base backup has until it is recovered.
pub(crate) const LABEL: &str = "backup_label";
/// Where tablespaces were on the server that was backed up.
const MAP: &str = "tablespace_map";

/// The label of a base backup that a server can recover with the log that is in it; absent if the directory
/// is none.
///
/// Errors: a backup that is not whole without something else.
pub(super) fn label(path: &Path) -> Result<Option<String>, Problem> {
    let file = path.join(LABEL);
    let label = match std::fs::read_to_string(&file) {
        Ok(label) => label,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", &file, &error)),
    };
    if let Some((why, hint)) = objection(&label) {
        return Err(not_usable(path, &format!("{LABEL} is there: {why}"), hint));
    }
    match lacking(path) {
        None => Ok(Some(label)),
        Some(number) => Err(not_usable(
            path,
            &format!(
                "it is a base backup, and {MAP} names tablespace {number}, which pg_tblspc lacks"
            ),
            "make the links in pg_tblspc that tablespace_map names, to the unpacked tablespaces, or take the \
             backup with pg_basebackup -F plain",
        )),
    }
}

/// Why a backup with this label cannot be recovered with what is in it, and what to do.
fn objection(label: &str) -> Option<(&'static str, &'static str)> {
    let says = |line: &str| label.lines().any(|one| one.trim() == line);
    if label.contains("INCREMENTAL FROM") {
        Some((
            "it is an incremental backup",
            "put it together with pg_combinebackup first",
        ))
    } else if !says("BACKUP METHOD: streamed") {
        // Of other methods nobody can say where they end.
        Some((
            "it is a base backup that pg_basebackup did not make",
            "take one with `pg_basebackup -X stream`, or start a copy of DIR once with its own version, wait \
             until it accepts connections, and stop it",
        ))
    } else if !says("BACKUP FROM: primary") {
        Some((
            "it is a base backup of a standby",
            "start a copy of DIR once with its own version, wait until it accepts connections, and stop it \
             (pg_ctl -D COPY start; pg_ctl -D COPY stop)",
        ))
    } else {
        None
    }
}

/// The number of a tablespace that the map names and the directory lacks.
fn lacking(path: &Path) -> Option<String> {
    let map = std::fs::read_to_string(path.join(MAP)).unwrap_or_default();
    let numbers = map.lines().filter_map(|line| line.split(' ').next());
    let mut numbers = numbers.filter(|number| !number.is_empty());
    let missing = numbers.find(|number| !path.join("pg_tblspc").join(number).exists());
    missing.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 15 writes it.
    const OURS: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)
CHECKPOINT LOCATION: 0/2000060
BACKUP METHOD: streamed
BACKUP FROM: primary
START TIME: 2026-11-26 19:00:00 UTC
LABEL: pg_basebackup base backup
START TIMELINE: 1
";

    #[test]
    fn only_a_backup_that_says_where_it_ends_is_taken() {
        assert_eq!(objection(OURS), None);
        for (from, to, why) in [
            ("streamed", "pg_start_backup", "did not make"),
            ("primary", "standby", "of a standby"),
            ("LABEL", "INCREMENTAL FROM LSN: 0/1\nLABEL", "incremental"),
        ] {
            let (found, hint) = objection(&OURS.replace(from, to)).unwrap();
            assert!(found.contains(why) && !hint.is_empty(), "{found}");
        }
        assert!(objection("").is_some());
    }

    #[test]
    fn a_backup_without_its_tablespaces_is_refused_with_their_number() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        assert_eq!(label(place.path()).unwrap(), None);
        write(LABEL, OURS);
        assert_eq!(label(place.path()).unwrap().as_deref(), Some(OURS));
        write(MAP, "16400 /fast disk\n16401 /slow\n");
        std::fs::create_dir_all(place.path().join("pg_tblspc/16400")).unwrap();
        let problem = label(place.path()).unwrap_err();
        assert!(problem.detail.unwrap().contains("tablespace 16401"));
    }
}
