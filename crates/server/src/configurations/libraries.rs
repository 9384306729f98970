//! The libraries that an installation has for its servers to load.

use deltabench_model::installation::Installation;
use std::path::{Path, PathBuf};

/// Where an installation keeps its libraries, if that could be found out.
pub(super) struct Libraries(Option<PathBuf>);

impl Libraries {
    /// Looks where builds put them beside `bin`: in the one that has plpgsql, which all builds make.
    pub(super) fn of(installation: &Installation) -> Self {
        Self::beside(&installation.bin_dir)
    }

    fn beside(bin_dir: &Path) -> Self {
        let Some(tree) = bin_dir.parent() else {
            return Self(None);
        };
        let lib = ["lib", "lib64"].map(|name| tree.join(name));
        // Beneath them what Debian's meson takes, such as lib/x86_64-linux-gnu.
        let beneath = lib.iter().flat_map(|lib| {
            let entries = std::fs::read_dir(lib).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        });
        let places = lib.iter().cloned().chain(beneath);
        let candidates = places.flat_map(|place| [place.join("postgresql"), place]);
        Self(
            candidates
                .into_iter()
                .find(|directory| directory.join("plpgsql.so").is_file()),
        )
    }

    /// Of an installation of which nothing is known.
    #[cfg(test)]
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    /// Whether a library is known not to be there.
    pub(super) fn lack(&self, name: &str) -> bool {
        self.0
            .as_ref()
            .is_some_and(|directory| !directory.join(file_name(name)).is_file())
    }

    /// The names of a list of libraries: those that are there or may be, and those that are not.
    pub(super) fn sort<'a>(&self, list: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        list.split(',')
            .map(|name| name.trim().trim_matches('"'))
            .filter(|name| !name.is_empty())
            .partition(|name| {
                let own = name.strip_prefix("$libdir/").unwrap_or(name);
                // Paths elsewhere are the user's business.
                own.contains('/') || !self.lack(own)
            })
    }
}

fn file_name(library: &str) -> String {
    format!("{}.so", library.trim_end_matches(".so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(directory: &str) -> (tempfile::TempDir, Libraries) {
        let scratch = tempfile::tempdir().unwrap();
        let lib = scratch.path().join(directory);
        std::fs::create_dir_all(&lib).unwrap();
        for name in ["plpgsql.so", "pg_stat_statements.so"] {
            std::fs::write(lib.join(name), "").unwrap();
        }
        let libraries = Libraries::beside(&scratch.path().join("bin"));
        (scratch, libraries)
    }

    #[test]
    fn libraries_are_found_where_builds_put_them() {
        for place in [
            "lib",
            "lib/postgresql",
            "lib64",
            "lib/x86_64-linux-gnu/postgresql",
        ] {
            let (_scratch, libraries) = installed(place);
            assert!(!libraries.lack("pg_stat_statements"), "{place}");
            assert!(libraries.lack("llvmjit"), "{place}");
        }
    }

    #[test]
    fn a_list_is_sorted_into_what_is_there_and_what_is_not() {
        let (_scratch, libraries) = installed("lib");
        assert_eq!(
            libraries.sort("pg_stat_statements, $libdir/pg_hint_plan,\"auto_explain\", /opt/x.so"),
            (
                vec!["pg_stat_statements", "/opt/x.so"],
                vec!["$libdir/pg_hint_plan", "auto_explain"]
            )
        );
    }

    #[test]
    fn nothing_is_known_to_lack_where_libraries_are_not_found() {
        let libraries = Libraries::beside(Path::new("/no/such/bin"));
        assert!(!libraries.lack("llvmjit"));
        assert_eq!(libraries.sort("a,b").1, Vec::<&str>::new());
    }
}
