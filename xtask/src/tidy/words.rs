//! Words that make a sentence hard to read at first sight: see "Plain English" in CONTRIBUTING.md.
//!
//! Documents count, and code outside of comments: there only texts that users read can hold such a phrase.
//! So does the help of arguments, which is written as comments.

use super::code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The phrases, one a line, in lower case.
const PHRASES: &str = include_str!("words.txt");

/// What is kept as it is: the past, the page that lists such phrases, and what programs print.
const FREE: [&str; 3] = ["CHANGELOG.md", "CONTRIBUTING.md", "docs/reference/"];

/// Where comments are help that users read.
const HELP: &str = "crates/cli/src/";

/// Every file that uses such a phrase, with the first one.
pub fn find(files: &[(PathBuf, String)]) -> BTreeMap<PathBuf, String> {
    let found = files.iter().filter_map(|(path, text)| {
        let (number, phrase) = first(path, text)?;
        let text = format!("line {number}: \"{phrase}\" is not plain English (CONTRIBUTING.md)");
        Some((path.clone(), text))
    });
    found.collect()
}

/// The first phrase of a file, with its line.
fn first(path: &Path, text: &str) -> Option<(usize, &'static str)> {
    let place = path.to_string_lossy();
    if FREE.iter().any(|start| place.starts_with(start)) || code::is_test_path(path) {
        return None;
    }
    let lines: Box<dyn Iterator<Item = (usize, &str)>> = if place.ends_with(".md") {
        Box::new(prose(text))
    } else if place.starts_with("crates/") && place.ends_with(".rs") {
        let help = place.starts_with(HELP);
        Box::new(texts(text, help))
    } else {
        return None;
    };
    lines
        .into_iter()
        .find_map(|(number, line)| Some((number, phrase_in(line)?)))
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
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    (1..).zip(lines).filter(move |(_, line)| {
        let line = line.trim_start();
        !line.starts_with("//") || (help && line.starts_with("///"))
    })
}

/// The phrase that a line uses, as whole words.
fn phrase_in(line: &str) -> Option<&'static str> {
    let words = |text: &str| {
        let split = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_');
        let words = split.filter(|word| !word.is_empty());
        let plain: Vec<String> = words.map(str::to_lowercase).collect();
        format!(" {} ", plain.join(" "))
    };
    let line = words(line);
    PHRASES.lines().find(|phrase| line.contains(&words(phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, text: &str) -> Option<(usize, &'static str)> {
        first(Path::new(path), text)
    }

    #[test]
    fn documents_count_outside_of_their_code() {
        assert_eq!(
            at("docs/a.md", "# A\n\nWhoever asks.\n"),
            Some((3, "whoever"))
        );
        assert_eq!(
            at("docs/a.md", "# A\n\n```text\nwhoever\n```\nthe end\n"),
            None
        );
        assert_eq!(at("docs/a.md", "It comes today.\n"), None);
        assert_eq!(at("CONTRIBUTING.md", "Whoever asks.\n"), None);
    }

    #[test]
    fn code_counts_outside_of_comments_and_tests() {
        let text = "// whoever\nfn a() -> &'static str { \"it is told\" }\n";
        assert_eq!(at("crates/a/src/lib.rs", text), Some((2, "is told")));
        let text =
            "/// As ever.\nfn a() {}\n#[cfg(test)]\nmod tests { const A: &str = \"lest\"; }\n";
        assert_eq!(at("crates/a/src/lib.rs", text), None);
        assert_eq!(at("crates/cli/src/a.rs", text), Some((1, "as ever")));
        assert_eq!(
            at("crates/a/tests/it/main.rs", "const A: &str = \"lest\";\n"),
            None
        );
    }
}
