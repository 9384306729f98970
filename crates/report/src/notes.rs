//! What a reader may have to know besides the verdicts: once each over all candidates, in the order of what
//! it changes for the reader.

use crate::context::{ReportContext, resolved};
use crate::lines::wrapped;
use crate::remarks::{self, Remark};
use crate::weight::Weight;
use deltabench_compare::comparison::Comparison;
use deltabench_model::figures::Block;
use deltabench_model::finding::{Finding, FindingKind};
use deltabench_model::plan::Plan;

/// Notes that the short form of a report has.
const SHORT: usize = 5;
/// Lines of each of them at most: the full list has the rest of a long one.
pub(crate) const LINES: usize = 2;
/// Lines of all of them together.
const ALL_LINES: usize = 8;

/// A note: one or more sentences of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    weight: Weight,
    texts: Vec<String>,
}

impl Note {
    /// With its word, the first sentence alone.
    fn short(&self) -> String {
        let more = match self.texts.len() {
            0 | 1 => String::new(),
            several => format!(" (and {} more of this kind)", several - 1),
        };
        let first = self.texts.first().map_or("", String::as_str);
        format!("{}: {first}{more}", self.weight.word())
    }
}

/// All notes of a run, those first that change most.
pub(crate) fn notes(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Vec<Note> {
    let counted = comparison.counted_alone().is_some();
    let mut notes: Vec<Note> = Vec::new();
    if !counted {
        notes.extend(
            remarks::weighed(comparison, plan, context)
                .into_iter()
                .map(|Remark { weight, texts }| Note { weight, texts }),
        );
    }
    for block in &context.figures.terminal {
        if let Block::Notes(texts) = block {
            notes.extend(texts.iter().map(|text| Note {
                weight: Weight::Doubt,
                texts: vec![text.clone()],
            }));
        }
    }
    notes.extend(of_findings(&comparison.findings, plan));
    // Stable: what is equally weighty stays in the order of reading.
    notes.sort_by_key(|note| note.weight);
    notes
}

/// The few that change something for the reader, for the end of a report on a terminal, and how many others
/// there are.
pub(crate) fn short(notes: &[Note], width: usize) -> (Vec<String>, usize) {
    let telling = notes.iter().filter(|note| note.weight < Weight::Method);
    let mut lines = Vec::new();
    let mut shown = 0;
    for note in telling.take(SHORT) {
        let next = clipped(&note.short(), width);
        // At 80 columns the five have their ten lines: there the table is longer, too.
        if width >= 100 && lines.len() + next.len() > ALL_LINES {
            break;
        }
        lines.extend(next);
        shown += 1;
    }
    (lines, notes.len() - shown)
}

/// All of them under headings.
pub(crate) fn full(notes: &[Note], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for weight in Weight::ALL {
        let of = notes.iter().filter(|note| note.weight == weight);
        let texts: Vec<&String> = of.flat_map(|note| &note.texts).collect();
        if texts.is_empty() {
            continue;
        }
        lines.push(weight.heading().to_owned());
        let texts = texts.into_iter();
        lines.extend(texts.flat_map(|text| wrapped(text, width, 2, 4)));
    }
    lines
}

/// All notes of a run as text: each once, under headings, those first that change most for the reader.
///
/// Shape: lines of at most `width` columns wherever the words allow; ends with a line break.
pub fn notes_text(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    width: usize,
) -> String {
    let candidates = plan.candidates().into_iter();
    let sides: Vec<String> = candidates.map(|id| resolved(plan, id)).collect();
    let head = match sides.as_slice() {
        [] => resolved(plan, plan.base()),
        sides => format!("{} vs {}", sides.join(", "), resolved(plan, plan.base())),
    };
    let width = width.max(60);
    let mut lines = wrapped(
        &format!("notes on run {}: {head}", context.run),
        width,
        0,
        2,
    );
    lines.extend(full(&notes(comparison, plan, context), width));
    lines.join("\n") + "\n"
}

/// Lines of a text, cut after [`LINES`].
pub(crate) fn clipped(text: &str, width: usize) -> Vec<String> {
    let mut lines = wrapped(text, width, 0, 2);
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            while last.chars().count() + 2 > width {
                let end = last.rfind(' ').unwrap_or(0);
                last.truncate(end);
            }
            last.push_str(" …");
        }
    }
    lines
}

/// Findings of one kind are one note; those that say the same of several candidates are one sentence.
fn of_findings(findings: &[Finding], plan: &Plan) -> Vec<Note> {
    let mut names: Vec<String> = plan
        .candidates()
        .into_iter()
        .map(|id| resolved(plan, id))
        .collect();
    names.dedup();
    let mut kinds: Vec<(&FindingKind, Weight, Vec<Said>)> = Vec::new();
    for finding in findings {
        let weight = Weight::of(finding, plan);
        let said = Said::of(&finding.text, &names);
        let mut known = kinds.iter_mut();
        match known.find(|(kind, of, _)| **kind == finding.kind && *of == weight) {
            Some((_, _, list)) => add(list, said),
            None => kinds.push((&finding.kind, weight, vec![said])),
        }
    }
    let notes = kinds.into_iter().map(|(_, weight, list)| Note {
        weight,
        texts: list.iter().map(|said| said.text(names.len())).collect(),
    });
    notes.collect()
}

/// Where the name of a candidate stood in a sentence.
const NAME: &str = "\u{1}";

/// A sentence, and the candidates of which it is said.
struct Said {
    sentence: String,
    of: Vec<String>,
}

impl Said {
    /// Takes the name out of a sentence about one candidate.
    fn of(text: &str, names: &[String]) -> Self {
        // A name may be the beginning of another.
        let mut longest: Vec<&String> = names.iter().collect();
        longest.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let found = longest.into_iter().find(|name| text.contains(*name));
        let Some(name) = found.filter(|_| names.len() > 1) else {
            return Self {
                sentence: text.to_owned(),
                of: Vec::new(),
            };
        };
        Self {
            sentence: text.replace(name, NAME),
            of: vec![name.clone()],
        }
    }

    fn text(&self, candidates: usize) -> String {
        let who = match self.of.as_slice() {
            all if all.len() > 1 && all.len() == candidates => "each candidate".to_owned(),
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            names => names.concat(),
        };
        self.sentence.replace(NAME, &who)
    }
}

fn add(list: &mut Vec<Said>, said: Said) {
    match list
        .iter_mut()
        .find(|known| known.sentence == said.sentence)
    {
        Some(known) => {
            for name in said.of {
                if !known.of.contains(&name) {
                    known.of.push(name);
                }
            }
        }
        None => list.push(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str], names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut list = Vec::new();
        for text in texts {
            add(&mut list, Said::of(text, &names));
        }
        list.iter().map(|said| said.text(names.len())).collect()
    }

    #[test]
    fn what_is_said_of_several_candidates_is_one_sentence() {
        let names = ["rocksdb:11", "rocksdb:11 (lru)", "rocksdb:9"];
        let texts = [
            "base has A, rocksdb:11 has B",
            "base has A, rocksdb:11 (lru) has B",
            "base has A, rocksdb:9 has C",
        ];
        assert_eq!(
            said(&texts, &names),
            [
                "base has A, rocksdb:11 and rocksdb:11 (lru) has B",
                "base has A, rocksdb:9 has C"
            ]
        );
        let all = ["settings of only pg:1", "settings of only pg:2"];
        assert_eq!(
            said(&all, &["pg:1", "pg:2"]),
            ["settings of only each candidate"]
        );
        assert_eq!(said(&["2 cores", "2 cores"], &["a", "b"]), ["2 cores"]);
    }

    #[test]
    fn a_long_note_is_cut_at_a_word_and_says_so() {
        let lines = clipped("note: one two three four five six seven eight", 16);
        assert_eq!(lines, ["note: one two", "  three four …"]);
        assert_eq!(clipped("note: one", 16), ["note: one"]);
    }
}
