//! Whether two servers are the same, whatever they are called.
//!
//! Neighbouring commits often make the same server. What tells them apart is then only what nobody runs: the
//! build's id and what a debugger reads.

use crate::elf;
use crate::files::failed;
use crate::tree::hex;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A checksum of what a server is made of: its programs as they are loaded, and the files that a new cluster
/// is made from. Two servers with the same one do the same work.
///
/// Errors: a file that cannot be read.
pub fn made_of(installation: &Installation) -> Result<String, Problem> {
    let bin = &installation.bin_dir;
    let tree = bin.parent().unwrap_or(bin);
    let mut files = vec![bin.join("postgres"), bin.join("initdb")];
    for place in ["lib", "share"] {
        let mut found = Vec::new();
        collect(&tree.join(place), place == "share", &mut found);
        found.sort();
        files.extend(found);
    }
    let mut digest = Sha256::new();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let name = path.strip_prefix(tree).unwrap_or(&path);
        digest.update(name.as_os_str().as_encoded_bytes());
        for part in elf::loaded(&bytes).unwrap_or_else(|| vec![&bytes]) {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    Ok(hex(&digest.finalize()))
}

/// Adds the files below a directory that servers load or read: libraries, and all of `share` that is no
/// documentation. Another name of a file that is here is no file.
fn collect(dir: &Path, is_share: bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            // Translations change no work, as commits of them do not.
            if !matches!(&*name, "doc" | "man" | "info" | "locale") {
                collect(&path, is_share, found);
            }
        } else if is_library(&name) || is_share && !name.starts_with("README") {
            found.push(path);
        }
    }
}

/// `plpgsql.so`, `libpq.so.5.18`.
fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::installation::{Engine, Origin};
    use std::process::Command;

    /// A tree whose programs are made from a line of C, with `gcc` arguments.
    fn installation(dir: &Path, name: &str, source: &str, arguments: &[&str]) -> Installation {
        let tree = dir.join(name);
        let bin_dir = tree.join("bin");
        std::fs::create_dir_all(&bin_dir).unwrap();
        std::fs::create_dir_all(tree.join("share/postgresql")).unwrap();
        std::fs::write(tree.join("share/postgresql/postgres.bki"), "bki").unwrap();
        std::fs::write(tree.join("share/postgresql/README"), name).unwrap();
        std::fs::write(bin_dir.join("initdb"), "#!/bin/sh\n").unwrap();
        let file = dir.join("source.c");
        std::fs::write(&file, source).unwrap();
        let built = Command::new("cc")
            .args(arguments)
            .arg("-o")
            .args([&bin_dir.join("postgres"), &file])
            .status();
        assert!(built.unwrap().success());
        Installation {
            asked: name.to_owned(),
            resolved: name.to_owned(),
            origin: Origin::Path,
            bin_dir,
            version_num: 170_000,
            version: "17.0".to_owned(),
            binary_sha256: String::new(),
            build: None,
            recipe: None,
            remote: None,
            engine: Engine::Postgres,
        }
    }

    #[test]
    fn servers_are_the_same_if_only_what_nobody_runs_differs() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str, source: &str, arguments: &[&str]| {
            made_of(&installation(dir.path(), name, source, arguments)).unwrap()
        };
        let plain = of(
            "a",
            "int main(void) { return 1; }",
            &["-g", "-Wl,--build-id=0x12"],
        );
        let later = "\n\n/* moved */\nint main(void) { return 1; }";
        assert_eq!(plain, of("b", later, &["-g", "-Wl,--build-id=0x34"]));
        assert_ne!(
            plain,
            of(
                "c",
                "int main(void) { return 2; }",
                &["-g", "-Wl,--build-id=0x12"]
            )
        );
        let other = installation(dir.path(), "d", later, &["-g", "-Wl,--build-id=0x12"]);
        std::fs::write(dir.path().join("d/share/postgresql/postgres.bki"), "other").unwrap();
        assert_ne!(plain, made_of(&other).unwrap(), "other catalogs");
    }

    #[test]
    fn every_library_and_all_that_a_server_reads_counts_and_documentation_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let found = installation(dir.path(), "a", "int main(void) { return 1; }", &[]);
        let tree = dir.path().join("a");
        let mut before = made_of(&found).unwrap();
        for (path, counts) in [
            ("lib/postgresql/utf8_and_win.so", true),
            ("lib/postgresql/pg_stat_statements.so", true),
            ("lib/libpq.so.5.17", true),
            ("lib/libpq.a", false),
            ("share/postgresql/tsearch_data/english.stop", true),
            ("share/postgresql/timezonesets/Default", true),
            ("share/postgresql/extension/plpgsql--1.0.sql", true),
            ("share/doc/postgresql/html/index.html", false),
            ("share/man/man1/psql.1", false),
            ("share/locale/de/postgres.mo", false),
        ] {
            let file = tree.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
            let after = made_of(&found).unwrap();
            assert_eq!(before != after, counts, "{path}");
            before = after;
        }
    }

    #[test]
    fn a_program_that_is_no_elf_file_counts_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let found = installation(dir.path(), "a", "int main(void) { return 1; }", &[]);
        let script = |text: &str| {
            std::fs::write(found.bin_dir.join("postgres"), text).unwrap();
            made_of(&found).unwrap()
        };
        assert_ne!(script("#!/bin/sh\n"), script("#!/bin/sh\nexit 1\n"));
        std::fs::remove_file(found.bin_dir.join("postgres")).unwrap();
        assert!(made_of(&found).is_err());
    }
}
