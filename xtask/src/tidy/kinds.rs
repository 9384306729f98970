//! No kind of benchmark is named in code outside of its room, so that a new one is one folder and one row.
//!
//! Names of modules, types, functions, fields and variables count; texts and comments do not, nor does code
//! that is compiled for tests.

use super::code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Where all kinds may be named: their rooms, the enum of them with their setups, what a user types (commands
/// and tables of experiment files), what speaks their protocols, and small setups for tests.
const ROOMS: [&str; 8] = [
    "crates/cli/src/kinds",
    "crates/driver/",
    "crates/engine/",
    "crates/experiment/src/kinds",
    "crates/kinds/",
    "crates/model/src/work",
    "crates/testkit/src/kinds",
    "crates/workload/",
];

/// Words of a name that say a kind, and where each may stand because something else is meant: RocksDB is a
/// product whose libraries are fetched, pgbench and sysbench are programs that deltabench is compared with.
/// The word of the Insert Benchmark is one of SQL and of maps, too: see [`says_insert`].
const WORDS: [(&str, &[&str]); 3] = [
    (
        "pgbench",
        &[
            "crates/cli/src/arguments/selfcheck.rs",
            "crates/cli/src/crosscheck",
            "crates/selfcheck/src/crosscheck",
        ],
    ),
    (
        "rocksdb",
        &[
            "crates/acquire/",
            "crates/model/src/installation.rs",
            "crates/model/src/target",
        ],
    ),
    (
        "sysbench",
        &[
            "crates/cli/src/crosscheck",
            "crates/selfcheck/src/crosscheck",
            "crates/selfcheck/src/practice.rs",
        ],
    ),
];

/// Every file that names a kind where it must not, with what is to be said of it.
pub fn find(files: &[(PathBuf, String)]) -> BTreeMap<PathBuf, String> {
    let found = files.iter().filter_map(|(path, text)| {
        let text_path = path.to_string_lossy();
        let ours = text_path.starts_with("crates/") && text_path.contains("/src/");
        let free = is_in(&text_path, &ROOMS);
        if !ours || free || code::is_test_path(path) || !text_path.ends_with(".rs") {
            return None;
        }
        let words: Vec<&str> = WORDS
            .iter()
            .filter(|(_, others)| !is_in(&text_path, others))
            .map(|(word, _)| *word)
            .collect();
        let module = module_name(path);
        let named = module.filter(|name| says_kind(name, &words) || name == "insert");
        let mut reader = Reader { named, words };
        reader.visit_file(&syn::parse_file(text).ok()?);
        let name = reader.named?;
        let text =
            format!("`{name}` names a kind of benchmark: that belongs to the kind's own room");
        Some((path.clone(), text))
    });
    found.collect()
}

/// Whether a path begins with one of these.
fn is_in(path: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| path.starts_with(start))
}

fn module_name(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

/// The first name in a file that says a kind.
struct Reader<'a> {
    named: Option<String>,
    /// Words that say a kind here.
    words: Vec<&'a str>,
}

impl Reader<'_> {
    fn meet(&mut self, name: &syn::Ident, says: bool) {
        if says && self.named.is_none() {
            self.named = Some(name.to_string());
        }
    }
}

/// Whether a name has a word that says a kind: `PgbenchSetup`, `rocksdb_report`, `InsertStep`.
fn says_kind(name: &str, words: &[&str]) -> bool {
    let plain = name.to_lowercase();
    words.iter().any(|word| plain.contains(word)) || says_insert(name)
}

/// Whether a name is that of something of the Insert Benchmark: a type `InsertStep`, not `Inserted`.
fn says_insert(name: &str) -> bool {
    let rest = name.strip_prefix("Insert");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, _) = code::attributes_and_name(item);
        if !attributes.iter().any(code::is_test_attribute) {
            visit::visit_item(self, item);
        }
    }

    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        let says = says_kind(&name.to_string(), &self.words);
        self.meet(name, says);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.meet(&item.ident, item.ident == "insert");
        visit::visit_item_mod(self, item);
    }

    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        self.meet(&path.ident, path.ident == "insert");
        visit::visit_use_path(self, path);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // The last part may be a function of a map or set.
        let modules = path.segments.iter().rev().skip(1);
        for segment in modules {
            self.meet(&segment.ident, segment.ident == "insert");
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> bool {
        !find(&[(PathBuf::from(path), text.to_owned())]).is_empty()
    }

    #[test]
    fn a_kind_is_named_in_its_own_room_only() {
        let text = "pub struct PgbenchSetup;";
        assert!(named("crates/run/src/plan.rs", text));
        for free in [
            "crates/kinds/src/pgbench.rs",
            "crates/cli/src/kinds.rs",
            "crates/experiment/src/kinds/pgbench.rs",
            "crates/model/src/work/pgbench.rs",
            "crates/run/tests/it/a.rs",
        ] {
            assert!(!named(free, text), "{free}");
        }
        assert!(named(
            "crates/run/src/rocksdb/chain.rs",
            "use crate::rocksdb::x;"
        ));
        assert!(
            named("crates/run/src/pgbench.rs", ""),
            "the name of the file"
        );
    }

    #[test]
    fn products_and_programs_are_named_where_they_are_meant() {
        let product = "pub enum Engine { Rocksdb }";
        assert!(!named("crates/model/src/installation.rs", product));
        assert!(!named("crates/acquire/src/versions.rs", product));
        assert!(named(
            "crates/acquire/src/versions.rs",
            "struct PgbenchSetup;"
        ));
        assert!(named("crates/report/src/remarks.rs", product));
        let program = "fn sysbench_version() {}";
        assert!(!named("crates/selfcheck/src/practice.rs", program));
        assert!(named(
            "crates/selfcheck/src/practice.rs",
            "struct PgbenchRun;"
        ));
    }

    #[test]
    fn inserting_is_not_the_insert_benchmark() {
        let here = |text: &str| named("crates/run/src/a.rs", text);
        assert!(!here(
            "fn f(m: &mut Set) { m.insert(1); let _ = Set::insert; } struct Inserted;"
        ));
        assert!(here("use deltabench_model::insert::InsertSetup;"));
        assert!(here("fn f() { insert::steps() }"));
        assert!(here("mod insert;"));
    }

    #[test]
    fn words_and_tests_are_free() {
        let text =
            "// pgbench\nconst A: &str = \"pgbench\"; #[cfg(test)] mod tests { struct Sysbench; }";
        assert!(!named("crates/run/src/a.rs", text));
    }
}
