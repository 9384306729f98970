//! The command that makes a comparison again.

use crate::context::ReportContext;
use crate::words;
use deltabench_model::plan::Plan;

/// Commands that make more than one comparison, or have no seed: they are repeated as typed.
const AS_TYPED: [&str; 8] = [
    "bisect",
    "calibrate",
    "confirm",
    "explain",
    "extend",
    "nightly",
    "replay",
    "resume",
];

/// Options before a command that have a value.
const BEFORE: [&str; 2] = ["--lab", "--cache"];

/// Options that name places of the machine that measured; each has a value.
const PLACES: [&str; 4] = ["--lab", "--json", "--html", "--cluster-dir"];

/// The words of the command that makes the same comparison again: targets as they were resolved, the seed
/// that was drawn, no places. As typed where a command made several comparisons, and for a run that confirms
/// another. The seed of an experiment is that of its first part: later parts are as typed.
pub(crate) fn command(plan: &Plan) -> Vec<String> {
    let later = plan.experiment.as_ref().is_some_and(|part| part.part > 1);
    let is_one = subcommand(plan).is_some_and(|name| !AS_TYPED.contains(&name));
    if later || plan.confirms.is_some() || !(plan.work.is_embedded() || is_one) {
        return plan.command.clone();
    }
    let mut words = vec!["deltabench".to_owned()];
    let mut seeded = false;
    let mut rest = plan.command.iter().skip(1);
    while let Some(word) = rest.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if PLACES.contains(&name) {
            if name == word {
                rest.next();
            }
            continue;
        }
        seeded |= name == "--seed";
        words.push(resolved(plan, word));
    }
    if !seeded {
        words.extend(["--seed".to_owned(), plan.seed.to_string()]);
    }
    words
}

/// The first word of what was typed that is neither an option nor the value of one.
fn subcommand(plan: &Plan) -> Option<&str> {
    let mut rest = plan.command.iter().skip(1);
    while let Some(word) = rest.next() {
        if BEFORE.contains(&word.as_str()) {
            rest.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

/// A target as it was resolved; every other word as it is.
fn resolved(plan: &Plan, word: &str) -> String {
    let sides = std::iter::once(plan.base()).chain(plan.candidates());
    let mut found = sides.filter_map(|id| plan.server(id));
    found
        .find(|server| server.installation.asked == word)
        .map_or_else(
            || word.to_owned(),
            |server| server.installation.resolved.clone(),
        )
}

/// What is to be typed to do it again, a line each; what was typed is a comment below.
pub(crate) fn lines(plan: &Plan, context: &ReportContext) -> Vec<String> {
    let again = command(plan);
    let mut lines = vec![words::shell(&again)];
    let mut chosen = Vec::new();
    if let Some(delta) = context.delta_chosen {
        let share = words::share(delta.chosen).replace(' ', "");
        chosen.extend(["--delta".to_owned(), share]);
    }
    if context.planned_base.is_some() {
        let base = crate::context::resolved(plan, plan.base());
        chosen.extend(["--base".to_owned(), base]);
    }
    if !chosen.is_empty() {
        let mut report = ["deltabench", "report", &context.run]
            .map(str::to_owned)
            .to_vec();
        report.append(&mut chosen);
        lines.push(words::shell(&report));
    }
    if again != plan.command {
        let typed = words::shell(&plan.command).replace(['\n', '\r'], " ");
        lines.push(format!("# as typed: {typed}"));
    }
    lines
}
