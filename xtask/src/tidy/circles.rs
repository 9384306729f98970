//! No circle of files inside a crate: who uses whom is read from `use` and from paths in code.
//!
//! A name counts for the file that defines it, also when it is reached through a module that imports it.
//! Between a module and those above or below it every arrow is free; so is code that is compiled for tests.
//! What is written inside macros is not seen.

use super::code;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Imports that lead to imports that lead to … are followed so far.
const IMPORTS: usize = 16;

/// A place in a crate: the names of the modules on the way to it, from the root.
type Place = Vec<String>;

/// What is known of a module.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// The module that has this file to itself: another one for a module written inside a file.
    of_file: Place,
    items: BTreeSet<String>,
    /// Names brought in, with the place that they come from.
    imports: Vec<(String, Place)>,
    /// Places of which all names are brought in.
    globs: Vec<Place>,
    /// Paths in code.
    paths: Vec<Place>,
}

/// The modules of a crate.
type Modules = BTreeMap<Place, Module>;

/// Every file that is in a circle, with what is to be said of it.
pub fn find(files: &[(PathBuf, String)]) -> BTreeMap<PathBuf, String> {
    let mut crates: BTreeMap<&Path, Modules> = BTreeMap::new();
    for (path, text) in files {
        let Some((source, place)) = source_and_place(path) else {
            continue;
        };
        let Ok(file) = syn::parse_file(text) else {
            continue;
        };
        let modules = crates.entry(source).or_default();
        let mut reader = Reader {
            file: path,
            of_file: place.clone(),
            place,
            modules,
        };
        reader.open();
        reader.visit_file(&file);
    }
    let told = crates.values().flat_map(circles).map(|(file, used)| {
        let text = format!(
            "uses {}, which leads back to it: break the circle",
            used.display()
        );
        (file, text)
    });
    told.collect()
}

/// The folder of the crate's root and the module of a file; none for files that no library or program is
/// made of.
fn source_and_place(path: &Path) -> Option<(&Path, Place)> {
    let source = path.ancestors().find(|above| above.ends_with("src"))?;
    let inside = path.strip_prefix(source).ok()?;
    if inside.extension()? != "rs" || inside.starts_with("bin") || code::is_test_path(inside) {
        return None;
    }
    let mut place: Place = inside
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into())
        .collect();
    let root = place.len() == 1 && matches!(place.first()?.as_str(), "lib" | "main");
    if root || place.last()? == "mod" {
        place.pop();
    }
    Some((source, place))
}

/// Reads one file into the modules of its crate.
struct Reader<'a> {
    file: &'a Path,
    of_file: Place,
    place: Place,
    modules: &'a mut Modules,
}

impl Reader<'_> {
    fn open(&mut self) {
        let module = self.modules.entry(self.place.clone()).or_default();
        module.file = self.file.to_owned();
        module.of_file.clone_from(&self.of_file);
    }

    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.place.clone()).or_default()
    }

    fn import(&mut self, path: &mut Place, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.import(path, &step.tree);
                path.pop();
            }
            syn::UseTree::Name(last) => self.bring(path, &last.ident.to_string(), &last.ident),
            syn::UseTree::Rename(last) => self.bring(path, &last.ident.to_string(), &last.rename),
            syn::UseTree::Glob(_) => {
                let from = path.clone();
                self.module().globs.push(from);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(path, tree);
                }
            }
        }
    }

    fn bring(&mut self, path: &[String], name: &str, under: &syn::Ident) {
        let mut from = path.to_vec();
        let mut under = under.to_string();
        if name == "self" {
            under = from.last().cloned().unwrap_or_default();
        } else {
            from.push(name.to_owned());
        }
        self.module().imports.push((under, from));
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = code::attributes_and_name(item);
        if attributes.iter().any(code::is_test_attribute) {
            return;
        }
        let name = name.map(ToString::to_string);
        self.module().items.extend(name);
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() {
            self.place.push(item.ident.to_string());
            self.open();
            visit::visit_item_mod(self, item);
            self.place.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&mut Place::new(), &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let place = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string());
            let place = place.collect();
            self.module().paths.push(place);
        }
        visit::visit_path(self, path);
    }
}

/// The module in which what a path names is defined; `None` for paths into other crates.
fn defining(modules: &Modules, from: &[String], path: &[String], left: usize) -> Option<Place> {
    let left = left.checked_sub(1)?;
    let mut at = from.to_vec();
    let mut steps = path.iter().peekable();
    while let Some(step) = steps.next_if(|step| matches!(step.as_str(), "crate" | "self" | "super"))
    {
        match step.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            _ => {}
        }
    }
    let absolute = steps.len() < path.len();
    let mut known = absolute;
    while let Some(step) = steps.next() {
        let below: Place = at.iter().cloned().chain([step.clone()]).collect();
        if modules.contains_key(&below) {
            at = below;
            known = true;
            continue;
        }
        let module = modules.get(&at)?;
        if module.items.contains(step) {
            return Some(at);
        }
        let rest: Place = steps.cloned().collect();
        let named = module.imports.iter().filter(|(name, _)| name == step);
        let named = named.map(|(_, from)| from.clone());
        let globs = module
            .globs
            .iter()
            .map(|glob| [glob.as_slice(), std::slice::from_ref(step)].concat());
        let mut onward = named.chain(globs).map(|mut path| {
            // An import that starts with the name it brings in is that of another crate.
            let again = path.len() == 1 && path.first() == Some(step);
            path.extend(rest.clone());
            (path, again)
        });
        let found = onward.find_map(|(path, again)| {
            (!again)
                .then(|| defining(modules, &at, &path, left))
                .flatten()
        });
        return found.or_else(|| known.then_some(at));
    }
    known.then_some(at)
}

/// Whether one of them is above the other.
fn related(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn circles(modules: &Modules) -> BTreeMap<PathBuf, PathBuf> {
    let mut uses: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for (place, module) in modules {
        let globs = module.globs.iter();
        let paths = module
            .imports
            .iter()
            .map(|(_, from)| from)
            .chain(globs)
            .chain(&module.paths);
        for path in paths {
            let defined = defining(modules, place, path, IMPORTS);
            let Some(used) = defined.and_then(|place| modules.get(&place)) else {
                continue;
            };
            if !related(&used.of_file, &module.of_file) {
                uses.entry(&module.file).or_default().insert(&used.file);
            }
        }
    }
    let mut found = BTreeMap::new();
    for (file, used) in &uses {
        let back = used.iter().find(|used| reaches(&uses, used, file));
        found.extend(back.map(|back| (file.to_path_buf(), back.to_path_buf())));
    }
    found
}

/// Whether a file uses another one, by any number of steps.
fn reaches(uses: &BTreeMap<&Path, BTreeSet<&Path>>, from: &Path, to: &Path) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        if file == to {
            return true;
        }
        if seen.insert(file) {
            next.extend(uses.get(file).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| {
            let path = Path::new("crates/x/src").join(path);
            (path, (*text).to_owned())
        });
        let files: Vec<_> = files.collect();
        let names = find(&files).into_keys();
        names
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let (a, b) = (
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f(_: crate::a::A) {}"),
        );
        assert_eq!(
            found(&[("lib.rs", "mod a; mod b;"), a, b]),
            ["a.rs", "b.rs"]
        );
        assert!(found(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", "pub struct B;")]).is_empty());
    }

    #[test]
    fn three_files_are_a_circle_too_and_what_leads_there_is_not_in_it() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b; pub fn a() { b::b() }"),
            ("b.rs", "pub fn b() { super::c::c() }"),
            ("c.rs", "use super::a::*; pub fn c() { a() }"),
            ("d.rs", "use crate::a::a;"),
        ];
        assert_eq!(found(&files), ["a.rs", "b.rs", "c.rs"]);
    }

    #[test]
    fn parents_and_children_may_use_each_other() {
        let files = [
            ("lib.rs", "mod a; pub struct L;"),
            ("a.rs", "mod b; use b::B; pub struct A;"),
            ("a/b.rs", "use super::A; use crate::L; pub struct B;"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn a_name_counts_for_the_file_that_defines_it() {
        let through_the_parent = [
            ("a.rs", "mod b; mod c; use b::B; pub use c::*;"),
            ("a/b.rs", "use super::C; pub struct B;"),
            ("a/c.rs", "use super::B; pub struct C;"),
        ];
        assert_eq!(found(&through_the_parent), ["b.rs", "c.rs"]);
    }

    #[test]
    fn tests_and_other_crates_are_free() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b::B; use std::fmt; pub struct A; fn f() -> fmt::Result { log::info(); Ok(()) }",
            ),
            (
                "b.rs",
                "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
            ),
            ("b/tests.rs", "use crate::a::A;"),
        ];
        assert!(found(&files).is_empty());
    }
}
