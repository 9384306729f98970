//! Citations: documents and files that comments and documents name must be in the repository, with the
//! section that is named.

use super::Breach;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders whose files are named from the root.
const FOLDERS: [&str; 8] = [
    "configs/",
    "crates/",
    "docs/",
    "examples/",
    "scripts/",
    "tests/",
    "workloads/",
    "xtask/",
];

/// Endings of files of which a path in prose is a citation.
const ENDINGS: [&str; 8] = ["js", "md", "py", "rs", "sh", "sql", "toml", "txt"];

/// Documents that tell of the past, and may name what is gone.
const HISTORY: &str = "CHANGELOG.md";

/// The documents of the repository with their sections, and what else is there.
pub struct Shelf<'a> {
    sections: BTreeMap<&'a Path, BTreeSet<String>>,
    exists: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Shelf<'a> {
    /// The documents among these files. `exists` is asked of a path from the root.
    pub fn new(files: &'a [(PathBuf, String)], exists: &'a dyn Fn(&Path) -> bool) -> Self {
        let documents = files.iter().filter(|(path, _)| is_document(path));
        let sections = documents.map(|(path, text)| (path.as_path(), anchors(text)));
        Self {
            sections: sections.collect(),
            exists,
        }
    }

    /// Every citation of one file that leads nowhere.
    pub fn check(&self, path: &Path, text: &str) -> Vec<Breach> {
        if path.to_string_lossy().contains("tests/data/") || path.ends_with(HISTORY) {
            return Vec::new();
        }
        let cited = if is_document(path) {
            cited_in_document(text)
        } else {
            let Some(marker) = comment_marker(path) else {
                return Vec::new();
            };
            cited_in_comments(text, marker)
        };
        let broken = cited.into_iter().filter_map(|(line, citation)| {
            let text = self.fault(path, &citation)?;
            Some(Breach::new(path, line, text))
        });
        broken.collect()
    }

    /// What is wrong with a citation.
    fn fault(&self, from: &Path, citation: &str) -> Option<String> {
        let (file, anchor) = citation
            .split_once('#')
            .map_or((citation, None), |(file, anchor)| (file, Some(anchor)));
        let mut places: Vec<PathBuf> = from
            .ancestors()
            .skip(1)
            .map(|above| normal(&above.join(file)))
            .collect();
        if file.is_empty() {
            places = vec![from.to_owned()];
        }
        let Some(found) = places.iter().find(|place| (self.exists)(place)) else {
            return Some(format!("cites {file}, which is not in the repository"));
        };
        let sections = self.sections.get(found.as_path())?;
        let anchor = anchor.filter(|anchor| !sections.contains(*anchor))?;
        Some(format!("{} has no section #{anchor}", found.display()))
    }
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// What starts a comment in files of this kind.
fn comment_marker(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "rs" | "js" | "ts" => Some("//"),
        "toml" | "py" | "sh" | "yml" | "yaml" => Some("#"),
        "sql" => Some("--"),
        _ => None,
    }
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name),
            _ => {}
        }
    }
    parts
}

/// The anchors that sections of a document get: as a page of the repository's host makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut name = anchor.clone();
        let mut again = 1;
        while !found.insert(name) {
            name = format!("{anchor}-{again}");
            again += 1;
        }
    }
    found
}

/// The lines of a document that are not in a fence, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// Targets of links, and files named in the text, by line; in fences only files of our own crates, since
/// examples name files of their reader's.
fn cited_in_document(text: &str) -> Vec<(usize, String)> {
    let mut cited = Vec::new();
    for (number, line) in prose(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains(':') {
                cited.push((number, target.to_owned()));
            }
        }
        cited.extend(
            outside_links(line)
                .flat_map(files_named)
                .map(|file| (number, file)),
        );
    }
    let drawn = (1..).zip(text.lines()).flat_map(|(number, line)| {
        let ours = files_named(line).filter(|file| file.starts_with("crates/"));
        ours.map(move |file| (number, file))
    });
    let drawn: Vec<_> = drawn.filter(|found| !cited.contains(found)).collect();
    cited.extend(drawn);
    cited
}

/// The pieces of a line that are neither the text nor the target of a link.
fn outside_links(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some((before, link)) = text.split_once("](") else {
            return rest.take();
        };
        rest = link.split_once(')').map(|(_, after)| after);
        Some(before.rsplit_once('[').map_or(before, |(before, _)| before))
    })
}

/// Files named in comments, by line.
fn cited_in_comments(text: &str, marker: &str) -> Vec<(usize, String)> {
    let lines = (1..).zip(text.lines());
    let comments = lines.filter_map(|(number, line)| Some((number, line.split_once(marker)?.1)));
    comments
        .flat_map(|(number, comment)| files_named(comment).map(move |file| (number, file)))
        .collect()
}

/// Documents by any path, and other files by their path from the root; with `#section`, if there is one.
fn files_named(prose: &str) -> impl Iterator<Item = String> {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | '#');
    let words = prose.split(move |c| !in_path(c));
    words
        .map(|word| word.trim_end_matches(['.', '/', '#']))
        .filter(|word| {
            let file = word.split('#').next().unwrap_or_default();
            let Some((stem, ending)) = file.rsplit_once('.') else {
                return false;
            };
            let from_root = FOLDERS.iter().any(|folder| file.starts_with(folder));
            let placeholder = file.contains("NAME") || file.contains("FILE");
            !stem.is_empty()
                && !placeholder
                && (ending == "md" || from_root && ENDINGS.contains(&ending))
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In parts, so that what the tests hold is no comment of this file.
    const COMMENT: &str = concat!("/", "/");

    const DOCUMENT: &str =
        "# Title\n## Two words, `code`\n```\n## fenced\n```\n## Twice\n## Twice\n";

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let files = [(PathBuf::from("docs/a.md"), DOCUMENT.to_owned())];
        let exists = |path: &Path| {
            [
                "docs",
                "docs/a.md",
                "docs/b.md",
                "docs/i.png",
                "crates/x/src/y.rs",
            ]
            .iter()
            .any(|known| path == Path::new(known))
        };
        let shelf = Shelf::new(&files, &exists);
        let breaches = shelf.check(Path::new(path), text).into_iter();
        breaches.map(|breach| (breach.line, breach.text)).collect()
    }

    #[test]
    fn a_comment_cites_what_is_there() {
        let code = |text: &str| found("crates/x/src/y.rs", &format!("{COMMENT} {text}\n"));
        assert!(
            code("See docs/a.md#two-words-code, docs/a.md. And (docs/b.md), src/y.rs.").is_empty()
        );
        assert!(found("crates/x/src/y.rs", "let x = \"no.md\";\n").is_empty());
        assert_eq!(
            code("Source: measurement.md 3.9."),
            [(
                1,
                "cites measurement.md, which is not in the repository".to_owned()
            )]
        );
        assert_eq!(
            found("w.toml", "a = 1 # docs/a.md#fenced\n"),
            [(1, "docs/a.md has no section #fenced".to_owned())]
        );
        assert_eq!(code("crates/x/src/gone.rs, crates/x/src/y.rs").len(), 1);
    }

    #[test]
    fn a_document_links_to_what_is_there() {
        let fine =
            "# T\n[a](a.md#twice-1), [a](../docs/a.md), ![i](i.png), [o](https://x.org/no)\n";
        assert!(found("docs/b.md", fine).is_empty());
        assert!(
            found(
                "README.md",
                "# T\n[docs](docs/) and `docs/a.md`, [a.md](docs/a.md)\n"
            )
            .is_empty()
        );
        assert_eq!(
            found(
                "docs/a.md",
                "# T\n[gone](#gone), `crates/x/src/gone.rs`, [a](no/a.md)\n"
            )
            .len(),
            3
        );
        assert!(
            found(
                "docs/b.md",
                "# T\n```sh\ncat no.md crates/x/src/y.rs\n```\n"
            )
            .is_empty()
        );
        assert_eq!(
            found("docs/b.md", "# T\n```text\n1 crates/x/src/gone.rs\n```\n").len(),
            1
        );
    }

    #[test]
    fn the_past_may_name_what_is_gone() {
        assert!(found("CHANGELOG.md", "# T\nmoved from docs/old.md\n").is_empty());
    }
}
