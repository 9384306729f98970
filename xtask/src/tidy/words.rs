//! Words that make a sentence hard to read at first sight: see "Plain English" in CONTRIBUTING.md.
//!
//! Documents count, and code and page scripts outside of comments: there only texts that users read can hold
//! such a phrase. So does the help of arguments, which is written as comments.

use super::{Breach, code};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The phrases, one a line, in lower case.
const PHRASES: &str = include_str!("words.txt");

/// What is kept as it is: the page that lists such phrases, and what programs print.
const FREE: [&str; 2] = ["CONTRIBUTING.md", "docs/reference/"];

/// Where comments are help that users read.
const HELP: &str = "crates/cli/src/";

/// The scripts of the pages: their notes, tips and legends are texts that users read.
const SCRIPTS: &str = "crates/report/web/src/";

/// Every line that uses such a phrase, or begins one that ends on the next line.
pub fn check(path: &Path, text: &str) -> Vec<Breach> {
    let found = all(path, text).into_iter();
    let breach = |(number, phrase)| {
        let text = format!("\"{phrase}\" is not plain English (CONTRIBUTING.md)");
        Breach::new(path, number, text)
    };
    found.map(breach).collect()
}

/// The phrases of a file, with their lines.
fn all(path: &Path, text: &str) -> Vec<(usize, &'static str)> {
    let place = path.to_string_lossy();
    if FREE.iter().any(|start| place.starts_with(start)) || code::is_test_path(path) {
        return Vec::new();
    }
    let lines: Vec<(usize, &str)> = if place.ends_with(".md") {
        prose(text).collect()
    } else if place.starts_with("crates/") && place.ends_with(".rs") {
        texts(text, place.starts_with(HELP)).collect()
    } else if place.starts_with(SCRIPTS) && place.ends_with(".js") {
        scripted(text).collect()
    } else {
        return Vec::new();
    };
    let plain: Vec<(usize, String)> = lines.iter().map(|(at, line)| (*at, words(line))).collect();
    let after = plain.iter().skip(1).map(Some).chain([None]);
    let found = plain.iter().zip(after).filter_map(|((at, line), next)| {
        let next = next.filter(|(after, _)| *after == at + 1);
        Some((*at, begun(line, next.map_or("", |(_, next)| next))?))
    });
    found.collect()
}

/// The lines of a document outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The lines of a source file that are no comments, up to its tests; with `help` the documentation too.
fn texts(text: &str, help: bool) -> impl Iterator<Item = (usize, &str)> {
    let all: Vec<&str> = text.lines().collect();
    // Tests in a file of their own are named where the code goes on.
    let tests = all
        .windows(2)
        .position(|pair| matches!(pair, ["#[cfg(test)]", next] if next.contains('{')));
    let lines = all.into_iter().take(tests.unwrap_or(usize::MAX));
    (1..).zip(lines).filter(move |(_, line)| {
        let line = line.trim_start();
        !line.starts_with("//") || (help && line.starts_with("///"))
    })
}

/// The lines of a page script that are no comments.
fn scripted(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim_start();
        !["//", "/*", "*"]
            .iter()
            .any(|start| line.starts_with(start))
    })
}

/// The first phrase that begins in a line and ends there or on the next; both as [`words`] gives them.
fn begun(line: &str, next: &str) -> Option<&'static str> {
    // By their first words, because tidy looks at every word of every file.
    static ALL: LazyLock<BTreeMap<String, Vec<(&str, String)>>> = LazyLock::new(|| {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for phrase in PHRASES.lines() {
            let first = phrase.split(' ').next().unwrap_or_default();
            let entry = all.entry(first.to_owned()).or_default();
            entry.push((phrase, words(phrase)));
        }
        all
    });
    let whole = || format!("{line}{}", next.trim_start());
    line.split(' ')
        .filter(|word| !word.is_empty())
        .find_map(|word| {
            let (mut known, text) = (ALL.get(word)?.iter(), whole());
            known
                .find(|(_, phrase)| {
                    // Both end in a space, and the next line's own phrases are told there.
                    let at = text.find(phrase.as_str());
                    at.is_some_and(|at| at + 1 < line.len())
                })
                .map(|(phrase, _)| *phrase)
        })
}

/// A text as lower-case words with a space around each.
fn words(text: &str) -> String {
    let split = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_');
    let mut plain = String::from(" ");
    for word in split.filter(|word| !word.is_empty()) {
        plain.extend([&word.to_lowercase(), " "]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        all(Path::new(path), text)
    }

    #[test]
    fn documents_count_outside_of_their_code() {
        let text = "# A\n\nWhoever asks.\nIt is\ntold.\n";
        assert_eq!(at("docs/a.md", text), [(3, "whoever"), (4, "is told")]);
        let text = "# A\n\n```text\nwhoever\n```\nthe end\n";
        assert_eq!(at("docs/a.md", text), []);
        assert_eq!(at("docs/a.md", "It comes today.\n"), []);
        let next = "It is good.\nIt is told.\n";
        assert_eq!(at("docs/a.md", next), [(2, "is told")]);
        assert_eq!(at("CONTRIBUTING.md", "Whoever asks.\n"), []);
    }

    #[test]
    fn code_counts_outside_of_comments_and_tests() {
        let text = "// whoever\nfn a() -> &'static str { \"it is told\" }\n";
        assert_eq!(at("crates/a/src/lib.rs", text), [(2, "is told")]);
        let text =
            "/// As ever.\nfn a() {}\n#[cfg(test)]\nmod tests { const A: &str = \"lest\"; }\n";
        assert_eq!(at("crates/a/src/lib.rs", text), []);
        assert_eq!(at("crates/cli/src/a.rs", text), [(1, "as ever")]);
        let text = "const A: &str = \"lest\";\n";
        assert_eq!(at("crates/a/tests/it/main.rs", text), []);
        let text = "#[cfg(test)]\nmod tests;\nconst A: &str = \"lest\";\n";
        assert_eq!(at("crates/a/src/lib.rs", text), [(3, "lest")]);
    }

    #[test]
    fn page_scripts_count_outside_of_comments() {
        let text = "// whoever\n/** As ever. */\nnote.textContent = 'It is not to be used.';\n";
        let found = [(3, "not to be used")];
        assert_eq!(at("crates/report/web/src/published.js", text), found);
        assert_eq!(at("crates/report/web/src/study/bars.js", text), found);
        assert_eq!(at("crates/report/web/dist/report.js", text), []);
        let text = "/**\n * As ever.\n */\nconst hidden = `${all} lines, as\n  ever`;\n";
        assert_eq!(at("crates/report/web/src/page.js", text), [(4, "as ever")]);
    }
}
