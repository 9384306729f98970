//! A replay for a ticket or a pull request.

use super::findings::{Finding, Section as Kind};
use super::times::{LEGEND, Row, columns, rows};
use super::{data, head, is_in_times, left_out, mix, named, not_compared, times};
use crate::markdown::escape;
use crate::markdown::section::{LIMIT, Section, fit};
use deltabench_model::replayed::Replayed;

/// Markdown (GitHub's dialect): for each candidate the sentences, the table of times, what fails and differs;
/// then what the answers do not cover, folded.
///
/// Shape: at most 65 000 characters: the longest lists are cut, and say so.
pub fn replayed_markdown(replayed: &Replayed) -> String {
    let candidates = 1..replayed.servers.len();
    let mut sections: Vec<Section> = candidates
        .flat_map(|place| of_candidate(replayed, place))
        .collect();
    let heading = "<details><summary>What the answers rest on, and do not cover</summary>\n";
    let mut rest = Section::list(heading, left_out(replayed), "line");
    rest.foot.push("</details>".to_owned());
    sections.push(rest);
    fit(sections, LIMIT)
}

fn of_candidate(replayed: &Replayed, place: usize) -> Vec<Section> {
    let times = not_compared(replayed, place).into_iter();
    let times = times.chain(data::sentence(replayed, place));
    let times = times.chain(times::head(replayed, place));
    let times = times.chain(mix::sentence(replayed, place));
    let sentences = std::iter::once(head(replayed, place)).chain(times);
    let mut sections = vec![Section {
        rows: sentences
            .map(|text| format!("**{}**\n", escape(&text)))
            .collect(),
        what: "line",
        ..Section::default()
    }];
    for kind in Kind::ALL {
        if kind == Kind::Plan {
            sections.push(table(replayed, place));
        }
        let mut findings = kind.findings(replayed, place);
        findings.retain(|finding| !is_in_times(kind, finding));
        let texts = findings.iter().map(|finding| text(replayed, kind, finding));
        let heading = format!("### {}\n", kind.title());
        sections.push(Section::list(&heading, texts, "statement"));
    }
    sections
}

/// The times; nothing without any.
fn table(replayed: &Replayed, place: usize) -> Section {
    let rows = rows(replayed, place);
    if rows.is_empty() {
        return Section::default();
    }
    Section {
        head: vec![
            format!("| | {} |", columns(replayed).join(" | ")),
            "|---|---|--:|---|---|---|---|".to_owned(),
        ],
        rows: rows.iter().map(line).collect(),
        foot: vec![format!("\n{LEGEND}.\n")],
        what: "statement",
    }
}

fn line(row: &Row) -> String {
    let below = row.below.iter().map(|text| format!("<br>{}", escape(text)));
    let name = format!("{}{}", escape(&row.name), below.collect::<String>());
    let cells = [
        row.sign,
        &name,
        &row.share,
        &escape(&row.ratio),
        &row.milliseconds,
        row.plan,
        &escape(&row.workload),
    ];
    format!("| {} |", cells.join(" | "))
}

/// What is said of one statement or object, in one line.
fn text(replayed: &Replayed, kind: Kind, finding: &Finding<'_>) -> String {
    let (share, name, texts) = named(replayed, kind, finding);
    let share = share.map_or_else(String::new, |share| format!(" ({:.1} %)", share * 100.0));
    format!("{name}{share}: {}", texts.join("; "))
}
