//! Rules on Rust code: length of functions, names of modules, documentation of what is public.

use super::Breach;
use std::path::Path;
use syn::visit::{self, Visit};

/// Lines of one function, from its `fn` to its closing brace. Doc comments and attributes do not count.
const FUNCTION_LINES: usize = 70;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = [
    "util", "utils", "common", "helper", "helpers", "manager", "managers", "misc",
];

pub fn check(path: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = file_names(path);
    match syn::parse_file(text) {
        Ok(file) => {
            let mut visitor = Visitor {
                path,
                in_test: is_test_path(path),
                breaches: Vec::new(),
            };
            visitor.visit_file(&file);
            breaches.extend(visitor.breaches);
        }
        Err(error) => {
            let line = error.span().start().line;
            breaches.push(Breach::new(path, line, format!("not Rust: {error}")));
        }
    }
    breaches
}

fn file_names(path: &Path) -> Vec<Breach> {
    let words = path.iter().map(|part| part.to_string_lossy());
    words
        .map(|word| word.trim_end_matches(".rs").to_owned())
        .filter(|word| EMPTY_NAMES.contains(&word.as_str()))
        .map(|word| Breach::new(path, 0, empty_name(&word)))
        .collect()
}

fn empty_name(name: &str) -> String {
    format!("a module called {name} says nothing: name it after the noun it holds")
}

/// Whether the file is compiled for tests only, by where it is.
pub fn is_test_path(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "benches") || path.ends_with("tests.rs")
}

struct Visitor<'a> {
    path: &'a Path,
    in_test: bool,
    breaches: Vec<Breach>,
}

impl Visitor<'_> {
    /// Visits what is inside an item, as test code if its attributes say so.
    fn inside(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let outer = self.in_test;
        self.in_test = outer || attributes.iter().any(is_test_attribute);
        visit(self);
        self.in_test = outer;
    }

    /// What other crates use says what it is. The compiler's own lint asks for fields and variants too, and
    /// gets their names a second time.
    fn documented(&mut self, is_public: bool, attributes: &[syn::Attribute], name: &syn::Ident) {
        let is_library = self.path.starts_with("crates") && !self.path.starts_with("crates/cli");
        // `#[doc(hidden)]` says nothing.
        let is_text = |one: &syn::Attribute| matches!(one.meta, syn::Meta::NameValue(_));
        let mut said = attributes.iter().filter(|one| one.path().is_ident("doc"));
        let says = said.any(is_text);
        if is_library && is_public && !self.in_test && !says {
            let text = format!("{name} is public and has no documentation");
            let line = name.span().start().line;
            self.breaches.push(Breach::new(self.path, line, text));
        }
    }

    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last + 1 - first;
        if !self.in_test && lines > FUNCTION_LINES {
            let text = format!(
                "function {} has {lines} lines; at most {FUNCTION_LINES}",
                signature.ident
            );
            self.breaches.push(Breach::new(self.path, first, text));
        }
    }
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    let condition = list.tokens.to_string();
    let words: Vec<&str> = condition
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    list.path.is_ident("cfg") && words.contains(&"test") && !words.contains(&"not")
}

/// The attributes of an item and the name that it defines, modules aside.
pub fn attributes_and_name(item: &syn::Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    match item {
        syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Impl(item) => (&item.attrs, None),
        syn::Item::Mod(item) => (&item.attrs, None),
        syn::Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// Whether an item is public everywhere; modules say what they are in their own files.
fn is_public(item: &syn::Item) -> bool {
    let visibility = match item {
        syn::Item::Const(item) => &item.vis,
        syn::Item::Enum(item) => &item.vis,
        syn::Item::Fn(item) => &item.vis,
        syn::Item::Static(item) => &item.vis,
        syn::Item::Struct(item) => &item.vis,
        syn::Item::Trait(item) => &item.vis,
        syn::Item::Type(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, syn::Visibility::Public(_))
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if let (attributes, Some(name)) = attributes_and_name(item)
            && !attributes.iter().any(is_test_attribute)
        {
            self.documented(is_public(item), attributes, name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        for member in &item.items {
            let (attributes, name) = match member {
                syn::TraitItem::Const(member) => (&member.attrs, &member.ident),
                syn::TraitItem::Fn(member) => (&member.attrs, &member.sig.ident),
                syn::TraitItem::Type(member) => (&member.attrs, &member.ident),
                _ => continue,
            };
            self.documented(is_public, attributes, name);
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        self.documented(is_public, &item.attrs, &item.ident);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.inside(&item.attrs, |visitor| {
            visitor.measure(&item.sig, &item.block);
            visit::visit_item_fn(visitor, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.inside(&item.attrs, |visitor| {
            let is_public = matches!(item.vis, syn::Visibility::Public(_));
            visitor.documented(is_public, &item.attrs, &item.sig.ident);
            visitor.measure(&item.sig, &item.block);
            visit::visit_impl_item_fn(visitor, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.inside(&item.attrs, |visitor| {
            if let Some(block) = &item.default {
                visitor.measure(&item.sig, block);
            }
            visit::visit_trait_item_fn(visitor, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.inside(&item.attrs, |visitor| visit::visit_item_impl(visitor, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = item.ident.to_string();
        if EMPTY_NAMES.contains(&name.as_str()) {
            let line = item.mod_token.span.start().line;
            self.breaches
                .push(Breach::new(self.path, line, empty_name(&name)));
        }
        self.inside(&item.attrs, |visitor| visit::visit_item_mod(visitor, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        check(Path::new(path), text)
            .into_iter()
            .map(|breach| (breach.line, breach.text))
            .collect()
    }

    /// A function that takes `lines` lines in all.
    fn function(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "let _ = 1;\n".repeat(lines - 2))
    }

    #[test]
    fn functions_may_have_70_lines_with_their_signature() {
        assert!(found("a.rs", &function("fn fits()", 70)).is_empty());
        let long = [(1, "function long has 71 lines; at most 70".to_owned())];
        assert_eq!(found("a.rs", &function("pub fn long()", 71)), long);
        assert_eq!(found("a.rs", &function("fn long(\n)", 70)), long);
        assert!(
            found(
                "a.rs",
                &function("/// doc\n/// doc\n#[inline]\nfn fits()", 70)
            )
            .is_empty()
        );
    }

    #[test]
    fn methods_and_provided_functions_count_too() {
        let long = function("fn long(&self)", 71);
        assert_eq!(found("a.rs", &format!("impl X {{\n{long}}}")).len(), 1);
        assert_eq!(found("a.rs", &format!("trait X {{\n{long}}}")).len(), 1);
        assert_eq!(
            found("a.rs", &format!("mod inner {{ fn outer() {{\n{long}}} }}")).len(),
            2
        );
    }

    #[test]
    fn test_code_may_be_long() {
        let long = function("fn long()", 90);
        assert!(found("a.rs", &format!("#[test]\n{long}")).is_empty());
        assert!(found("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{long}}}")).is_empty());
        assert!(
            found(
                "a.rs",
                &format!("#[cfg(all(test, unix))]\nmod tests {{\n{long}}}")
            )
            .is_empty()
        );
        assert!(found("crates/x/tests/it/main.rs", &long).is_empty());
        assert_eq!(
            found("a.rs", &format!("#[cfg(not(test))]\nmod real {{\n{long}}}")).len(),
            1
        );
        assert_eq!(
            found("a.rs", &format!("#[cfg(test)]\nmod tests {{}}\n{long}")).len(),
            1
        );
    }

    #[test]
    fn what_is_public_says_what_it_is() {
        let text = "pub struct X { pub field: u8 }\n/// Says.\npub fn f() {}\nfn g() {}\n\
                    pub(crate) fn h() {}\nimpl X { pub fn new() {} }\n\
                    impl X { pub const A: u8 = 0; }\n/// Says.\npub trait T { fn t(); }\n\
                    #[cfg(test)]\nmod tests { pub fn i() {} }";
        let lines = |path| -> Vec<usize> { found(path, text).iter().map(|one| one.0).collect() };
        assert_eq!(lines("crates/x/src/a.rs"), [1, 6, 7, 9]);
        assert!(lines("crates/cli/src/a.rs").is_empty());
    }

    #[test]
    fn modules_have_names_that_say_something() {
        assert_eq!(found("crates/x/src/utils.rs", "").len(), 1);
        assert_eq!(found("crates/x/src/common/mod.rs", "").len(), 1);
        assert_eq!(found("crates/x/tests/helpers.rs", "").len(), 1);
        assert_eq!(
            found("a.rs", "//! doc\n\nmod manager { }\n")
                .first()
                .map(|breach| breach.0),
            Some(3)
        );
        assert!(found("crates/x/src/commoner.rs", "mod utilities {}").is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_a_breach() {
        let breaches = found("a.rs", "\nfn broken( {\n");
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].1.starts_with("not Rust"), "{breaches:?}");
    }
}
