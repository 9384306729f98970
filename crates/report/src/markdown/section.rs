//! Parts of a text that may be cut.

use super::quoting::escape;
use crate::words;
use deltabench_model::units::count;

/// A heading, a list of rows that may be cut from its end, and what follows them.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Lines before the rows.
    pub(crate) head: Vec<String>,
    /// Rows: a line each, or a few that belong together.
    pub(crate) rows: Vec<String>,
    /// Lines after them.
    pub(crate) foot: Vec<String>,
    /// What a row is, for the count of those left out.
    pub(crate) what: &'static str,
}

impl Section {
    /// A heading with a list; nothing where the list is empty.
    pub(crate) fn list(
        heading: &str,
        texts: impl IntoIterator<Item = String>,
        what: &'static str,
    ) -> Self {
        let rows: Vec<String> = texts
            .into_iter()
            .map(|text| format!("- {}", escape(&text)))
            .collect();
        if rows.is_empty() {
            return Self::default();
        }
        Self {
            head: vec![heading.to_owned()],
            rows,
            foot: vec![String::new()],
            what,
        }
    }
}

/// Most characters of the whole: what a comment on a pull request may have.
pub(crate) const LIMIT: usize = 65_000;
/// Characters that the count of what was left out may take, in each section.
const NOTE: usize = 120;

/// All sections in one text of at most `limit` characters: rows are cut from the section that is longest at
/// that moment, from its end, and their number is said there.
pub(crate) fn fit(sections: Vec<Section>, limit: usize) -> String {
    let length = |text: &String| text.chars().count() + 1;
    let mut kept: Vec<Vec<usize>> = sections
        .iter()
        .map(|section| section.rows.iter().map(length).collect())
        .collect();
    let fixed: usize = sections
        .iter()
        .flat_map(|section| section.head.iter().chain(&section.foot))
        .map(length)
        .sum();
    let mut total: usize = kept.iter().flatten().sum();
    let room = limit.saturating_sub(fixed + sections.len() * NOTE);
    while total > room {
        let longest = kept
            .iter_mut()
            .max_by_key(|rows| rows.iter().sum::<usize>());
        // Without a row to cut nothing is left that could be shorter.
        let Some(size) = longest.and_then(Vec::pop) else {
            break;
        };
        total -= size;
    }
    let mut lines: Vec<String> = Vec::new();
    for (section, kept) in std::iter::zip(sections, kept) {
        let left_out = section.rows.len() - kept.len();
        lines.extend(section.head);
        lines.extend(section.rows.into_iter().take(kept.len()));
        if left_out > 0 {
            lines.push(format!(
                "… and {} more; the page and the JSON have them all",
                words::plural(count(left_out), section.what)
            ));
        }
        lines.extend(section.foot);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(rows: usize, length: usize) -> Section {
        Section {
            head: vec!["head".to_owned()],
            rows: (0..rows).map(|_| "x".repeat(length)).collect(),
            foot: vec!["foot".to_owned()],
            what: "row",
        }
    }

    #[test]
    fn the_longest_list_is_cut_and_says_by_how_much() {
        let text = fit(vec![section(10, 10), section(100, 50)], 2000);
        assert!(text.chars().count() <= 2000, "{}", text.len());
        let kept = |length| {
            text.lines()
                .filter(|line| *line == "x".repeat(length))
                .count()
        };
        assert_eq!(kept(10), 10);
        assert!(kept(50) > 25 && kept(50) < 100, "{}", kept(50));
        assert!(
            text.contains(&format!("… and {} rows more;", 100 - kept(50))),
            "{text}"
        );
    }

    #[test]
    fn what_fits_is_not_cut() {
        let text = fit(vec![section(10, 10)], 2000);
        assert!(!text.contains("more;"));
        assert_eq!(text.lines().count(), 12);
    }
}
