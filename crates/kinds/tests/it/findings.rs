//! Every finding of a kind has its meaning.

use deltabench_kinds::FINDINGS;
use std::collections::BTreeSet;
use std::path::Path;

/// What stands in quotes after `start`, in all files below a directory.
fn quoted(directory: &Path, start: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(quoted(&path, start));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let parts = text.split(start).skip(1);
        found.extend(parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())));
    }
    found
}

#[test]
fn the_findings_of_all_kinds_are_listed_with_what_they_mean() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let used = quoted(&source, "FindingKind::own(\"");
    let listed: BTreeSet<String> = FINDINGS
        .iter()
        .map(|(word, _)| (*word).to_owned())
        .collect();
    assert_eq!(used, listed);
    assert_eq!(listed.len(), FINDINGS.len());
    let known = deltabench_model::finding::FINDINGS;
    assert!(
        known
            .iter()
            .all(|(word, meaning)| !listed.contains(*word) && meaning.ends_with('.'))
    );
}
