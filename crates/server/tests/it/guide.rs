//! The guide says what the code does.

use deltabench_server::{Configurations, changes, translations};
use std::fmt::Write;
use std::path::PathBuf;

fn guide() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configurations.md")
}

fn table_of_translations() -> String {
    let mut text = "| asked for | becomes |\n|---|---|\n".to_owned();
    for translation in translations() {
        let (asked, becomes) = (translation.asked, translation.becomes);
        writeln!(text, "| {asked} | {becomes} |").unwrap();
    }
    text
}

fn table_of_versions() -> String {
    let mut text = String::new();
    for (version, brought, last) in changes() {
        for (what, names) in [("brought", brought), ("was the last with", last)] {
            if !names.is_empty() {
                let line = format!("- {version} {what}: {}", names.join(", "));
                writeln!(text, "{}", wrapped(&line)).unwrap();
            }
        }
    }
    text
}

/// Lines of Markdown have a limit.
fn wrapped(line: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        if width + word.len() > 140 {
            text.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += word.len();
    }
    text
}

/// The text with what is between two comments replaced.
fn with_part(text: &str, name: &str, part: &str) -> String {
    let start = text.find(&format!("<!-- {name}:")).unwrap();
    let start = start + text[start..].find("-->\n").unwrap() + 4;
    let end = text.find(&format!("<!-- end of {name} -->")).unwrap();
    format!("{}\n{part}\n{}", &text[..start], &text[end..])
}

#[test]
fn the_tables_of_the_guide_are_those_of_the_code() {
    let text = std::fs::read_to_string(guide()).unwrap();
    let wanted = with_part(&text, "translations", &table_of_translations());
    let wanted = with_part(&wanted, "versions", &table_of_versions());
    if std::env::var_os("DELTABENCH_BLESS").is_some() {
        std::fs::write(guide(), &wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "DELTABENCH_BLESS=1 renews the guide");
    }
}

#[test]
fn the_guide_names_every_family() {
    let text = std::fs::read_to_string(guide()).unwrap();
    for name in Configurations::builtin().unwrap().names() {
        let family = name.split_once("_c").map_or(name, |(family, _)| family);
        assert!(text.contains(&format!("`{family}")), "{name}");
    }
}
