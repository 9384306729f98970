//! Rules on lines: length, number, marks of unfinished work, titles, tables, registry hosts.

use super::Breach;
use std::path::Path;

/// Lines of one file.
const FILE_LINES: usize = 800;
/// Pages that `cargo xtask gen` writes: as long as what they list.
const GENERATED: &str = "docs/reference/";
/// Characters of one line of code or settings.
const CODE_COLUMNS: usize = 110;
/// Characters of one line of a document.
const DOCUMENT_COLUMNS: usize = 160;

/// Hosts of package registries, in parts, so that this list does not hold what it forbids. Packages are named
/// by coordinates and fetched by their ordinary clients, which know where to go.
const HOSTS: [&[&str]; 8] = [
    &["crates", "io"],
    &["maven", "org"],
    &["repo", "maven", "apache", "org"],
    &["sonatype", "org"],
    &["npmjs", "org"],
    &["npmjs", "com"],
    &["pypi", "org"],
    &["pythonhosted", "org"],
];

pub fn check(path: &Path, text: &str) -> Vec<Breach> {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if name.ends_with(".lock") || name == "package-lock.json" {
        return Vec::new();
    }
    let mut breaches = hosts(path, text);
    // Real outputs of other tools are kept as they came.
    if path.to_string_lossy().contains("tests/data/") {
        return breaches;
    }
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().into_owned());
    let columns = match extension.as_deref() {
        Some("rs" | "toml") => CODE_COLUMNS,
        Some("md") => DOCUMENT_COLUMNS,
        _ => return breaches,
    };
    breaches.extend(sizes(path, text, columns));
    breaches.extend(unfinished(path, text));
    breaches.extend(unmerged(path, text));
    if extension.as_deref() == Some("md") {
        breaches.extend(titles(path, text));
        breaches.extend(tables(path, text));
    }
    breaches
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

fn sizes(path: &Path, text: &str, columns: usize) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let lines = text.lines().count();
    let generated = path.to_string_lossy().contains(GENERATED);
    if lines > FILE_LINES && !generated {
        breaches.push(Breach::new(
            path,
            0,
            format!("{lines} lines; at most {FILE_LINES}"),
        ));
    }
    for (number, line) in numbered(text) {
        let length = line.chars().count();
        // An address cannot be broken.
        if length > columns && !line.contains("://") {
            breaches.push(Breach::new(
                path,
                number,
                format!("{length} characters; at most {columns}"),
            ));
        }
    }
    breaches
}

/// Marks of unfinished work must name the issue that will finish it.
fn unfinished(path: &Path, text: &str) -> Vec<Breach> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut breaches = Vec::new();
    for (number, line) in numbered(text) {
        let Some(mark) = line.split(|c| !word(c)).find(|found| marks.contains(found)) else {
            continue;
        };
        let named = line
            .split('#')
            .skip(1)
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        // A document may speak about the mark itself, in backticks.
        let quoted = line.contains(&format!("`{mark}`"));
        if !named && !quoted {
            breaches.push(Breach::new(
                path,
                number,
                format!("{mark} without the number of an issue"),
            ));
        }
    }
    breaches
}

/// What a merge leaves where it could not decide.
fn unmerged(path: &Path, text: &str) -> Vec<Breach> {
    let is_mark = |line: &str| {
        ["<<<<<<< ", ">>>>>>> "]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    let lines = numbered(text).filter(|(_, line)| is_mark(line));
    lines
        .map(|(number, _)| Breach::new(path, number, "a conflict of a merge".to_owned()))
        .collect()
}

fn titles(path: &Path, text: &str) -> Vec<Breach> {
    let mut fenced = false;
    let mut titles = Vec::new();
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && line.starts_with("# ") {
            titles.push(number);
        }
    }
    match titles.as_slice() {
        [_] => Vec::new(),
        [] => vec![Breach::new(
            path,
            0,
            "no title: a document starts with one line `# Title`",
        )],
        [_, second, ..] => vec![Breach::new(
            path,
            *second,
            "a second title: use ## for sections",
        )],
    }
}

/// A table whose rows were joined into a paragraph: the line below its head is no longer a line of its own.
fn tables(path: &Path, text: &str) -> Vec<Breach> {
    let mut fenced = false;
    let mut breaches = Vec::new();
    for (number, line) in numbered(text) {
        fenced ^= line.trim_start().starts_with("```");
        let rule = |part: &str| part.len() > 2 && part.trim_matches(':').chars().all(|c| c == '-');
        let ruled = line.split('|').any(|part| rule(part.trim()));
        let alone = line.chars().all(|c| "|:- >".contains(c));
        if ruled && !alone && !fenced && line.contains('|') && !line.contains("`|--") {
            breaches.push(Breach::new(
                path,
                number,
                "a table in the middle of a line: give each row its own line",
            ));
        }
    }
    breaches
}

fn hosts(path: &Path, text: &str) -> Vec<Breach> {
    let hosts: Vec<String> = HOSTS.iter().map(|parts| parts.join(".")).collect();
    let mut breaches = Vec::new();
    for (number, line) in numbered(text) {
        if let Some(host) = hosts.iter().find(|host| line.contains(host.as_str())) {
            let last = host.rsplit('.').next().unwrap_or_default();
            let text = format!(
                "host name of a package registry (ends in .{last}): name the package instead"
            );
            breaches.push(Breach::new(path, number, text));
        }
    }
    breaches
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

    fn lines(path: &str, text: &str) -> Vec<usize> {
        found(path, text)
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn lines_may_have_110_characters_and_documents_160() {
        let (fits, long) = ("é".repeat(110), "x".repeat(111));
        assert_eq!(lines("a.rs", &format!("{fits}\n{long}\n")), [2]);
        assert_eq!(lines("a.toml", &format!("{long}\n{fits}\n")), [1]);
        assert_eq!(
            lines(
                "a.md",
                &format!("# T\n{long}\n{}\n{}\n", "y".repeat(160), "y".repeat(161))
            ),
            [4]
        );
        assert_eq!(lines("a.txt", &long), [0_usize; 0]);
        assert_eq!(
            lines(
                "a.rs",
                &format!("// {} https://example.com", "x".repeat(110))
            ),
            [0_usize; 0]
        );
    }

    #[test]
    fn files_may_have_800_lines() {
        assert!(found("a.rs", &"x\n".repeat(800)).is_empty());
        assert_eq!(
            found("a.rs", &"x\n".repeat(801)),
            [(0, "801 lines; at most 800".to_owned())]
        );
        let page = format!("# Commands\n{}", "x\n".repeat(800));
        assert!(found("docs/reference/commands.md", &page).is_empty());
    }

    #[test]
    fn a_conflict_of_a_merge_does_not_stay() {
        let page = "# T\n<<<<<<< HEAD\none\n=======\nother\n>>>>>>> branch\n";
        assert_eq!(lines("a.md", page), [2, 6]);
    }

    #[test]
    fn unfinished_work_names_its_issue() {
        let mark = concat!("TO", "DO");
        assert_eq!(
            lines(
                "a.rs",
                &format!("// {mark}: later\n// {mark}(#12): later\n")
            ),
            [1]
        );
        assert_eq!(
            lines("a.rs", &format!("// {}(#x)\n", concat!("FIX", "ME"))),
            [1]
        );
        assert!(
            lines("a.rs", &format!("let {mark}S = 1; // {mark}_list\n")).is_empty(),
            "other words"
        );
        assert!(lines("a.md", &format!("# T\nno `{mark}` without an issue\n")).is_empty());
    }

    #[test]
    fn a_document_has_one_title() {
        assert_eq!(lines("a.md", "# One\n## Two\n"), [0_usize; 0]);
        assert_eq!(lines("a.md", "## Two\n"), [0]);
        assert_eq!(lines("a.md", "# One\n\n# Two\n"), [3]);
        assert!(lines("a.md", "# One\n```sh\n# a comment\n```\n").is_empty());
        assert!(lines("a.rs", "// no title\n").is_empty());
    }

    #[test]
    fn each_row_of_a_table_has_its_own_line() {
        let table = "# T\n\n| a | b |\n|---|--:|\n| 1 | --no-x |\n\n  | c |\n  | :-- |\n";
        assert_eq!(lines("a.md", table), [0_usize; 0]);
        assert_eq!(lines("a.md", "# T\n| a | b | |---|---| | 1 | 2 |\n"), [2]);
        assert_eq!(lines("a.md", "# T\n| a | | --- | :-: |\n"), [2]);
        assert!(lines("a.md", "# T\nno `|---|` inside a line; a - b | c --- d\n").is_empty());
        assert!(lines("a.md", "# T\n```text\n| a |---| b |\n```\n").is_empty());
        assert!(lines("a.rs", "// | a |---| b |\n").is_empty());
    }

    #[test]
    fn registry_hosts_are_found_in_any_text_file_but_lock_files() {
        for parts in HOSTS {
            let text = format!("see https://x.{}/y\n", parts.join("."));
            for path in [
                "a.rs",
                "run",
                "docs/a.txt",
                "crates/x/tests/data/tool/1/out.txt",
            ] {
                assert_eq!(lines(path, &text), [1], "{path}: {text}");
            }
            assert!(lines("Cargo.lock", &text).is_empty());
            assert!(lines("tools/package-lock.json", &text).is_empty());
        }
        let namespace = ["http://maven", "apache", "org/POM/4.0.0"].join(".");
        assert!(
            lines(
                "a.rs",
                &format!("// org.postgresql maven npm {namespace}\n")
            )
            .is_empty()
        );
    }

    #[test]
    fn outputs_of_other_tools_keep_their_size() {
        assert!(found("crates/x/tests/data/tool/1/out.md", &"x".repeat(500)).is_empty());
    }
}
