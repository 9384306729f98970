//! What a published page does not say: names of hosts, paths, addresses, users.
//!
//! Pages are made without what names them (command lines, machine names). What is left in findings, settings
//! and targets is replaced in the text of the finished page.

use crate::digest::digest;
use crate::entry::Entry;
use crate::secret::{machine_of, path_word};
use crate::written::{Kind, Page};
use deltabench_lab::store_problem;
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    /// entry, and its page has no others.
    pub(crate) fn stamp(&self) -> &str {
        &self.common
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

    /// JSON without them, value by value: in its text an escape stands before a word.
    fn clean_json(&self, text: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return self.clean(text);
        };
        self.clean_value(&mut value);
        let written = match text.trim_end().contains('\n') {
            true => serde_json::to_string_pretty(&value),
            false => serde_json::to_string(&value),
        };
        let ending = if text.ends_with('\n') { "\n" } else { "" };
        written.map_or_else(|_| self.clean(text), |written| written + ending)
    }

    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean(text),
            Value::Array(all) => all.iter_mut().for_each(|one| self.clean_value(one)),
            Value::Object(all) => all.values_mut().for_each(|one| self.clean_value(one)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
            clean.push_str(&self.clean(before));
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
                false => clean.push_str(&patterns(tag)),
            }
            let (own, after) = after.split_at(verbatim);
            clean.push_str(own);
            rest = after;
        }
        clean.push_str(&self.clean(rest));
        clean
    }

    /// A text without them.
    pub(crate) fn clean(&self, text: &str) -> String {
        if !self.withholds {
            return text.to_owned();
        }
        let sought = self.sought.get_or_init(|| Sought::of(&self.words));
        let mut clean = text.to_owned();
        for (word, instead) in sought.in_text(text) {
            // A longer one may have had it as a part.
            if clean.contains(word) {
                clean = without_word(&clean, word, instead);
            }
        }
        patterns(&clean)
    }
}

/// Bytes by which words are found.
const FIRST: usize = 2;
/// How many pairs of bytes there are.
const PAIRS: usize = 1 << 16;

/// Words to find: a lab has hundreds, and its pages have millions of letters.
#[derive(Debug, Clone)]
struct Sought {
    /// The longest first, because a name may be a part of another one; each with what stands for it.
    words: Vec<(String, String)>,
    /// Whether a word begins with these bytes.
    begins: Vec<bool>,
    /// The places of words, by their first bytes.
    by_first: BTreeMap<[u8; FIRST], Vec<usize>>,
    /// The places of words that a replacement may be a part of: it has parentheses.
    always: Vec<usize>,
}

impl Sought {
    fn of(known: &BTreeMap<String, String>) -> Self {
        let mut words: Vec<_> = known.clone().into_iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let mut all = Self {
            words: Vec::new(),
            begins: vec![false; PAIRS],
            by_first: BTreeMap::new(),
            always: Vec::new(),
        };
        for (at, (word, _)) in words.iter().enumerate() {
            let first = word.as_bytes().first_chunk();
            match first.filter(|_| !word.contains(['(', ')'])) {
                Some(first) => {
                    if let Some(begins) = all.begins.get_mut(pair(*first)) {
                        *begins = true;
                    }
                    all.by_first.entry(*first).or_default().push(at);
                }
                None => all.always.push(at),
            }
        }
        Self { words, ..all }
    }

    /// The words that a text has, the longest first, each with what stands for it.
    fn in_text(&self, text: &str) -> impl Iterator<Item = (&str, &str)> {
        let mut found: BTreeSet<usize> = self.always.iter().copied().collect();
        let mut rest = text.as_bytes();
        while let Some(first) = rest.first_chunk() {
            if self.begins.get(pair(*first)).copied().unwrap_or(false) {
                let own = self.by_first.get(first).into_iter().flatten();
                let is_here = |at: &&usize| {
                    let word = self.words.get(**at);
                    word.is_some_and(|(word, _)| rest.starts_with(word.as_bytes()))
                };
                found.extend(own.filter(is_here));
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        let word = |at: usize| {
            let (word, instead) = self.words.get(at)?;
            Some((word.as_str(), instead.as_str()))
        };
        found.into_iter().filter_map(word)
    }
}

fn pair([one, other]: [u8; FIRST]) -> usize {
    usize::from(one) << 8 | usize::from(other)
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

/// Whether a text has what each of [`patterns`] has: most texts of a page are numbers and words.
fn may_have_patterns(text: &str) -> bool {
    let points = text.bytes().filter(|byte| *byte == b'.');
    text.contains(['/', ':', '=']) || points.take(3).count() == 3
}

/// A text without paths, connection strings and addresses.
fn patterns(text: &str) -> String {
    if !may_have_patterns(text) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let (mut before, mut at, mut copied) = (' ', 0, 0);
    while let Some(rest) = text.get(at..)
        && let Some(next) = rest.chars().next()
    {
        let found = match next {
            '/' if begins_path(before) => path(rest),
            'a'..='z' if !before.is_ascii_alphanumeric() => named(rest),
            '0'..='9' if !before.is_ascii_alphanumeric() && before != '.' => address(rest),
            _ => None,
        };
        let Some((length, instead)) = found else {
            before = next;
            at += next.len_utf8();
            continue;
        };
        clean.push_str(text.get(copied..at).unwrap_or_default());
        clean.push_str(&instead);
        let (taken, _) = rest.split_at(length.min(rest.len()));
        before = taken.chars().next_back().unwrap_or(before);
        at += taken.len();
        copied = at;
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    clean
}

fn begins_path(before: char) -> bool {
    before.is_whitespace() || "\"'`(=:,>;[{|".contains(before)
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
    let (prefix, instead) = BEFORE.iter().find(|(prefix, _)| text.starts_with(prefix))?;
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
    let parts: Vec<&str> = found.split('.').collect();
    let fits = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
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
        let json = secrets.clean_json(r#"{"a":"x\n/home/kim/z","b":["y\nbox7",1.5]}"#);
        assert!(!json.contains("kim") && !json.contains("box7"), "{json}");
        assert!(
            json.contains("1.5") && json.starts_with("{\"a\":"),
            "{json}"
        );
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
        for text in texts.into_iter().chain(named.iter().map(String::as_str)) {
            assert_ne!(patterns(text), text);
        }
        for text in ["10.0.3", "kim", "0.951 [0.940, 0.961]", ""] {
            assert_eq!(patterns(text), text);
        }
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
