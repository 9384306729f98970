//! What a published page does not say: names of hosts, paths, addresses, users.
//!
//! Pages are made without what names them (command lines, machine names). What is left in findings, settings
//! and targets is replaced in the text of the finished page.

use crate::digest::digest;
use crate::entry::Entry;
use crate::secret::{machine_of, path_word};
use crate::written::{Kind, Page};
use aho_corasick::AhoCorasick;
use deltabench_lab::store_problem;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_store::Store;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What stands for a command line.
pub(crate) const COMMAND: &str = "(the command line is not published)";

/// Names that say nothing of who has them.
const COMMON: [&str; 8] = [
    "postgres",
    "root",
    "nobody",
    "localhost",
    "127.0.0.1",
    "::1",
    "server",
    "host",
];
/// Folders of the kernel, which are the same everywhere.
const KERNEL: [&str; 2] = ["/proc/", "/sys/"];
/// What a path of one part begins with to be taken for one.
const TOP: [&str; 10] = [
    "/tmp", "/home", "/root", "/opt", "/usr", "/var", "/etc", "/srv", "/mnt", "/data",
];
/// What comes before a value that names a place or a person.
const BEFORE: [(&str, &str); 9] = [
    ("postgres://", "(address)"),
    ("postgresql://", "(address)"),
    ("ssh:", "(host)"),
    ("hostaddr=", "(host)"),
    ("host=", "(host)"),
    ("user=", "(user)"),
    ("dbname=", "(database)"),
    ("password=", "(password)"),
    ("service=", "(service)"),
];

/// What is withheld; nothing by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets {
    /// Known words, with what stands for them.
    words: BTreeMap<String, String>,
    /// The same, to find them in a text.
    sought: OnceLock<Sought>,
    /// A hash of the words that no run brought in.
    common: String,
    withholds: bool,
}

impl Secrets {
    /// Those of a lab.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(entries: &[Entry], store: &Store) -> Result<Self, Problem> {
        let mut secrets = Self {
            withholds: true,
            ..Self::default()
        };
        for variable in ["USER", "LOGNAME", "HOSTNAME"] {
            secrets.add(&std::env::var(variable).unwrap_or_default(), "(user)");
        }
        secrets.add(&store.lab().display().to_string(), "(path)");
        for host in store.placebo_hosts().map_err(store_problem)? {
            secrets.add(&host, "(host)");
            secrets.add(machine_of(&host), "(host)");
        }
        secrets.common = digest(&format!("{:?}", secrets.words));
        for (word, instead) in entries.iter().flat_map(|entry| &entry.withheld) {
            secrets.add(word, instead);
        }
        Ok(secrets)
    }

    /// Differs if other words are withheld than those of single runs: what a run's own are is a part of its
    /// entry. A page of a run that has words of a later one keeps them until something else of it changes.
    pub(crate) fn stamp(&self) -> &str {
        &self.common
    }

    /// Differs if any word does that is withheld.
    pub(crate) fn stamp_of_all(&self) -> String {
        digest(&format!("{} {:?}", self.withholds, self.words))
    }

    fn add(&mut self, word: &str, instead: &str) {
        if word.len() >= 2 && !COMMON.contains(&word) {
            self.words.insert(word.to_owned(), instead.to_owned());
        }
    }

    /// A page without them.
    pub(crate) fn withhold(&self, page: Page) -> Page {
        if !self.withholds {
            return page;
        }
        let text = match page.kind {
            Kind::Json => self.clean_json(&page.text),
            Kind::Html | Kind::Atom => self.clean_markup(&page.text),
            // Ours, and the same of every lab.
            Kind::Script => return page,
        };
        Page { text, ..page }
    }

    /// JSON without them, value by value: in its text an escape stands before a word. Keys are ours.
    fn clean_json(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('"') {
            let (before, from) = rest.split_at(start);
            clean.push_str(before);
            let (literal, after) = from.split_at(literal(from));
            match after.starts_with(':') {
                true => clean.push_str(literal),
                false => self.clean_literal(literal, &mut clean),
            }
            rest = after;
        }
        clean.push_str(rest);
        clean
    }

    fn clean_literal(&self, literal: &str, clean: &mut String) {
        let value = match literal.contains('\\') {
            true => serde_json::from_str::<String>(literal),
            false => return self.clean_into(literal, clean),
        };
        let written = value.map(|value| serde_json::to_string(&self.clean(&value)));
        match written {
            Ok(Ok(written)) => clean.push_str(&written),
            _ => self.clean_into(literal, clean),
        }
    }

    /// Markup without them: known words in text alone, because a host may be called `main`; paths and
    /// addresses also in attributes. Scripts and styles in the page are our own and stay as they are: the
    /// hash of a script is checked.
    fn clean_markup(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('<') {
            let (before, tag) = rest.split_at(start);
            self.clean_into(before, &mut clean);
            let end = tag.find('>').map_or(tag.len(), |end| end + 1);
            let (tag, after) = tag.split_at(end);
            let closing = match tag {
                "<script>" => "</script>",
                "<style>" => "</style>",
                _ => "",
            };
            let verbatim = match closing {
                "" => 0,
                closing => after.find(closing).unwrap_or(after.len()),
            };
            // The name of the format is an address, and everybody's.
            match tag.starts_with("<feed xmlns=") {
                true => clean.push_str(tag),
                false => patterns(tag, &mut clean),
            }
            let (own, after) = after.split_at(verbatim);
            clean.push_str(own);
            rest = after;
        }
        self.clean_into(rest, &mut clean);
        clean
    }

    /// A text without them.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        self.clean_into(text, &mut clean);
        clean
    }

    fn clean_into(&self, text: &str, clean: &mut String) {
        if !self.withholds {
            return clean.push_str(text);
        }
        let mut found = self.sought().in_text(text).peekable();
        if found.peek().is_none() {
            return patterns(text, clean);
        }
        let mut without = text.to_owned();
        for (word, instead) in found {
            // A longer one may have had it as a part.
            if without.contains(word) {
                without = without_word(&without, word, instead);
            }
        }
        patterns(&without, clean);
    }

    fn sought(&self) -> &Sought {
        self.sought.get_or_init(|| Sought::of(&self.words))
    }

    /// A hash of a page and of all words that are to be taken out of it: as long as it is the same,
    /// [`Secrets::withhold`] gives the same page.
    pub(crate) fn stamp_of(&self, page: &Page) -> String {
        let mut hash = Sha256::new();
        hash.update(&page.text);
        let mut add = |(word, instead): (&str, &str)| {
            for text in [word, instead] {
                hash.update(count(text.len()).to_le_bytes());
                hash.update(text);
            }
        };
        match page.kind {
            _ if !self.withholds => {}
            Kind::Html | Kind::Atom => self.sought().in_text(&page.text).for_each(add),
            // An escape may stand in a word.
            Kind::Json | Kind::Script => { self.words.iter() }
                .for_each(|(word, instead)| add((word.as_str(), instead.as_str()))),
        }
        let withholds = u8::from(self.withholds);
        hash.update([withholds]);
        format!("{:x}", hash.finalize())
    }
}

/// The length of the literal of JSON at the beginning, with its quotes.
fn literal(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Words to find: a lab has hundreds, and its pages have millions of letters.
#[derive(Debug, Clone)]
struct Sought {
    /// The longest first, because a name may be a part of another one; each with what stands for it.
    words: Vec<(String, String)>,
    /// Finds their places; absent where they are too many for it.
    finder: Option<AhoCorasick>,
    /// The places of words that a replacement may be a part of: it has parentheses.
    always: Vec<usize>,
}

impl Sought {
    fn of(known: &BTreeMap<String, String>) -> Self {
        let mut words: Vec<_> = known.clone().into_iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let always = words.iter().enumerate();
        let always = always.filter(|(_, (word, _))| word.contains(['(', ')']));
        Self {
            finder: AhoCorasick::new(words.iter().map(|(word, _)| word)).ok(),
            always: always.map(|(at, _)| at).collect(),
            words,
        }
    }

    /// The words that a text has, the longest first, each with what stands for it.
    fn in_text(&self, text: &str) -> impl Iterator<Item = (&str, &str)> {
        let mut found = self.always.clone();
        match &self.finder {
            Some(finder) => {
                let places = finder.find_overlapping_iter(text);
                found.extend(places.map(|place| place.pattern().as_usize()));
            }
            None => found.extend(0..self.words.len()),
        }
        // The places are those of the longest first.
        found.sort_unstable();
        found.dedup();
        let word = |at: usize| {
            let (word, instead) = self.words.get(at)?;
            Some((word.as_str(), instead.as_str()))
        };
        found.into_iter().filter_map(word)
    }
}

/// Replaces a word where it stands alone, and is no key of JSON.
fn without_word(text: &str, word: &str, instead: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = from.get(word.len()..).unwrap_or_default();
        let joined = before.chars().next_back().or(clean.chars().next_back());
        let alone = !joined.is_some_and(is_part) && !after.starts_with(is_part);
        clean.push_str(before);
        clean.push_str(match alone && !after.starts_with("\":") {
            true => instead,
            false => word,
        });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

/// Writes a text without paths, connection strings and addresses.
fn patterns(text: &str, clean: &mut String) {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric();
    let (mut before, mut next, mut copied) = (b' ', 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        let last = std::mem::replace(&mut before, byte);
        // What begins inside of what was replaced is gone.
        if at < next {
            continue;
        }
        let rest = || text.get(at..).unwrap_or_default();
        let found = match byte {
            b'/' if begins_path(before_of(text, (at, last))) => path(rest()),
            b'd' | b'h' | b'p' | b's' | b'u' if !is_name(last) => named(rest()),
            b'0'..=b'9' if !is_name(last) && last != b'.' => address(rest()),
            _ => None,
        };
        if let Some((length, instead)) = found {
            clean.push_str(text.get(copied..at).unwrap_or_default());
            clean.push_str(&instead);
            next = at + length;
            copied = next;
        }
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
}

/// The letter before a place, of which this is the last byte; a blank at the beginning.
fn before_of(text: &str, (at, last): (usize, u8)) -> char {
    if last.is_ascii() {
        return char::from(last);
    }
    let before = text.get(..at).unwrap_or_default();
    before.chars().next_back().unwrap_or(' ')
}

fn begins_path(before: char) -> bool {
    let opens = matches!(
        before,
        '"' | '\'' | '`' | '(' | '=' | ':' | ',' | '>' | ';' | '[' | '{' | '|'
    );
    opens || before.is_whitespace()
}

/// The length of the path at the beginning, with what stands for it.
fn path(text: &str) -> Option<(usize, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._+~%-".contains(c);
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let path = text.get(..length)?.trim_end_matches(['.', '/']);
    let parts = path.split('/').filter(|part| !part.is_empty()).count();
    let is_kernel = KERNEL.iter().any(|kernel| path.starts_with(kernel));
    let is_path = parts > 1 || TOP.contains(&path);
    (is_path && !is_kernel).then(|| (path.len(), path_word(path)))
}

/// A value that its own beginning names.
fn named(text: &str) -> Option<(usize, String)> {
    // Nearly all texts end here: two bytes are compared without a call.
    let first: &[u8; 2] = text.as_bytes().first_chunk()?;
    let begins = |prefix: &str| prefix.as_bytes().first_chunk() == Some(first);
    let mut known = BEFORE.iter();
    let (prefix, instead) = known.find(|(prefix, _)| begins(prefix) && text.starts_with(prefix))?;
    let value = text.get(prefix.len()..)?;
    let ends = |c: char| c.is_whitespace() || "\"'`<>(),;\\".contains(c);
    let length = value.find(ends).unwrap_or(value.len());
    (length > 0).then(|| (prefix.len() + length, format!("{prefix}{instead}")))
}

/// An address of four numbers that is not this machine itself.
fn address(text: &str) -> Option<(usize, String)> {
    let length = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let found = text
        .get(..length.unwrap_or(text.len()))?
        .trim_end_matches('.');
    // Most numbers of a page have one point.
    let has_four_parts = found.bytes().filter(|byte| *byte == b'.').count() == 3;
    let fits = has_four_parts && found.split('.').all(|part| part.parse::<u8>().is_ok());
    let is_own = found.starts_with("127.") || found == "0.0.0.0";
    (fits && !is_own).then(|| (found.len(), "(address)".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets {
            withholds: true,
            ..Secrets::default()
        };
        secrets.add("main", "(host)");
        secrets.add("db1.example", "(host)");
        secrets
    }

    #[test]
    fn a_feed_stays_one_and_json_is_cleaned_value_by_value() {
        let secrets = Secrets {
            words: BTreeMap::from([("box7".to_owned(), "(host)".to_owned())]),
            withholds: true,
            ..Secrets::default()
        };
        let feed = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>on box7</title></feed>";
        let clean = secrets.clean_markup(feed);
        assert_eq!(clean, feed.replace("box7", "(host)"));
        let json = r#"{"a":"x\n/home/kim/z","box7":["y\nbox7", 1.5, "\"box7", "\\", "box7"]}"#;
        let home = path_word("/home/kim/z");
        let clean = secrets.clean_json(json);
        let wanted = r#"{"a":"x\nHOME","box7":["y\n(host)", 1.5, "\"(host)", "\\", "(host)"]}"#;
        assert_eq!(clean, wanted.replace("HOME", &home));
    }

    #[test]
    fn paths_and_addresses_are_replaced_and_what_looks_like_them_is_not() {
        let clean = secrets().clean(
            "path:/home/kim/pg/bin and /tmp, 1200 ops/s, a/b, 10.0.3.4:5432, 127.0.0.1, 9.6.24; see \
             /proc/sys/vm/x; dsn:postgres://kim:pw@db1/x?a=b ssh:db1 host=db1 user=kim",
        );
        for secret in ["kim", "/home", "/tmp", "10.0", "pw", "db1"] {
            assert!(!clean.contains(secret), "{secret} in {clean}");
        }
        for kept in ["1200 ops/s", "a/b", "127.0.0.1", "9.6.24", "/proc/sys/vm/x"] {
            assert!(clean.contains(kept), "{kept} not in {clean}");
        }
    }

    #[test]
    fn each_secret_is_replaced_where_nothing_else_is_in_the_text() {
        let texts = ["10.0.3.4", "at 10.0.3.4.", "/home/kim", "x /srv/a"];
        let named = BEFORE.map(|(prefix, _)| format!("{prefix}kim"));
        let without = |text: &str| {
            let mut clean = String::new();
            patterns(text, &mut clean);
            clean
        };
        for text in texts.into_iter().chain(named.iter().map(String::as_str)) {
            assert_ne!(without(text), text);
        }
        for text in [
            "10.0.3",
            "kim",
            "0.951 [0.940, 0.961]",
            "",
            "é/a/b",
            "1.2.3.4.5",
        ] {
            assert_eq!(without(text), text);
        }
        let blank = format!("\u{2003}{}", path_word("/srv/a"));
        for (text, clean) in [
            ("10.0.3.4.", "(address)."),
            ("\u{2003}/srv/a", blank.as_str()),
            (
                "host=é1 user=kim,host=b",
                "host=(host) user=(user),host=(host)",
            ),
        ] {
            assert_eq!(without(text), clean);
        }
    }

    #[test]
    fn a_stamp_differs_if_a_page_or_a_word_in_it_does() {
        let of = |words: &[&str], text: &str| {
            let mut secrets = Secrets {
                withholds: true,
                ..Secrets::default()
            };
            words.iter().for_each(|word| secrets.add(word, "(host)"));
            secrets.stamp_of(&Page::html(text.to_owned()))
        };
        let known = of(&["box7"], "on box7 and box9");
        assert_eq!(known, of(&["box7", "elsewhere"], "on box7 and box9"));
        assert_ne!(known, of(&["box7", "box9"], "on box7 and box9"));
        assert_ne!(known, of(&["box7"], "on box7 and box8"));
        assert_ne!(known, of(&[], "on box7 and box9"));
        let shown = Secrets::default().stamp_of(&Page::html("on box7".to_owned()));
        assert_ne!(shown, of(&[], "on box7"));
    }

    #[test]
    fn a_host_called_like_a_tag_or_a_key_breaks_nothing() {
        let page = Page::html(
            "<main class=\"main\"><p>main</p></main><script>main(\"/a/b\")</script>\
             <script id=\"data\">{\"main\": \"main\", \"at\": \"db1.example\"}</script>"
                .to_owned(),
        );
        let clean = secrets().withhold(page).text;
        let expected = "<main class=\"main\"><p>(host)</p></main><script>main(\"/a/b\")</script>\
             <script id=\"data\">{\"main\": \"(host)\", \"at\": \"(host)\"}</script>";
        assert_eq!(clean, expected);
    }

    #[test]
    fn words_that_are_parts_of_others_or_of_replacements_are_found_as_if_sought_one_by_one() {
        let secrets = |words: &[&str]| {
            let mut secrets = Secrets {
                withholds: true,
                ..Secrets::default()
            };
            words.iter().for_each(|word| secrets.add(word, "(host)"));
            secrets
        };
        let of = secrets(&["db", "db1", "db1 (Intel, 2 cores)", "x(host)y", "é1"]);
        let text = "db1 (Intel, 2 cores), db1, db, db10, adb, x(host)y, \u{e9}1 db";
        let clean = "(host), (host), (host), db10, adb, (host), (host) (host)";
        assert_eq!(of.clean(text), clean);
        // What stood before a shorter word is replaced first: then the word stands alone.
        let of = secrets(&["abcdef", "/q1"]);
        assert_eq!(of.clean("abcdef/q1 abcde/q1"), "(host)(host) abcde/q1");
        assert_eq!(secrets(&[]).clean("db"), "db");
    }

    #[test]
    fn two_paths_stay_apart() {
        let clean = secrets().clean("path:/opt/pg17 path:/opt/pg18");
        let (one, other) = clean.split_once(' ').unwrap();
        assert_ne!(one, other.trim());
    }
}
