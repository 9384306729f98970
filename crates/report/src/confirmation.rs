//! What a cell's verdict is qualified by: whether it recurred, and what weakens it.

use crate::{hours, words};
use deltabench_compare::comparison::{
    CellComparison, Confirmation, Detection, DetectionOutcome, Metric, Recurrence, Verdict,
};
use deltabench_compare::words::p;
use deltabench_model::plan::Stopping;
use deltabench_model::units::count;

/// Whether a difference that was found recurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfirmationStatus {
    /// In another run, on a fresh load.
    FreshLoad,
    /// On fresh blocks of the same run.
    FreshBlocks,
    /// Fresh blocks are still to come, or a fresh load could not tell.
    NotYet,
    DidNotRecur,
}

impl ConfirmationStatus {
    pub(crate) fn of(cell: &CellComparison) -> Option<Self> {
        // Equal after all: there is nothing that could recur.
        if cell.verdict == Verdict::NoChange {
            return None;
        }
        match (cell.confirmation, &cell.detection) {
            (Some(Confirmation::Recurred), _) => Some(Self::FreshLoad),
            (Some(Confirmation::DidNotRecur), _) => Some(Self::DidNotRecur),
            (Some(Confirmation::Open), _) => Some(Self::NotYet),
            (None, Some(detection)) => Some(match detection.outcome {
                DetectionOutcome::Confirming { .. } => Self::NotYet,
                DetectionOutcome::Recurred { .. } => Self::FreshBlocks,
                DetectionOutcome::DidNotRecur { .. } => Self::DidNotRecur,
            }),
            (None, None) => None,
        }
    }

    /// The word in files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::FreshLoad => "fresh-load",
            Self::FreshBlocks => "fresh-blocks",
            Self::NotYet => "not-yet",
            Self::DidNotRecur => "did-not-recur",
        }
    }

    /// A few words for people.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::FreshLoad => "recurred on a fresh load",
            Self::FreshBlocks => "recurred on fresh blocks",
            Self::NotYet => "not confirmed yet",
            Self::DidNotRecur => "did not recur",
        }
    }

    /// A mark behind the verdict's sign.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::FreshLoad | Self::FreshBlocks => '✓',
            Self::NotYet => '…',
            Self::DidNotRecur => '✗',
        }
    }
}

/// What is said of figures that are those of the blocks after a look.
const FROM_FRESH: &str = "figures from";

/// The mark of a cell whose servers never became steady.
pub(crate) const DRIFTING: char = '~';
/// The mark of a cell most of whose rounds were disturbed.
pub(crate) const CONTENDED: char = '!';

/// All marks of a cell, in fixed order.
pub(crate) fn marks(cell: &CellComparison) -> String {
    let status = ConfirmationStatus::of(cell).map(ConfirmationStatus::mark);
    let drifting = cell.drifting.as_ref().map(|_| DRIFTING);
    let contended = cell.interference.contended.then_some(CONTENDED);
    [status, drifting, contended]
        .into_iter()
        .flatten()
        .collect()
}

/// The marks that some cells have, with what they mean; drifting cells have a sentence of their own.
pub(crate) fn legend(cells: &[CellComparison]) -> Vec<(char, &'static str)> {
    let again = "recurred on fresh blocks or a fresh load";
    let contended = "contended: other load disturbed most rounds";
    let meanings = [
        (ConfirmationStatus::FreshBlocks.mark(), again),
        (ConfirmationStatus::NotYet.mark(), "not confirmed yet"),
        (ConfirmationStatus::DidNotRecur.mark(), "did not recur"),
        (CONTENDED, contended),
    ];
    used(cells, &meanings)
}

/// The marks that some cells have, each with one or two words.
pub(crate) fn short_legend(cells: &[CellComparison]) -> Vec<(char, &'static str)> {
    let meanings = [
        (ConfirmationStatus::FreshBlocks.mark(), "recurred"),
        (ConfirmationStatus::NotYet.mark(), "not confirmed yet"),
        (ConfirmationStatus::DidNotRecur.mark(), "did not recur"),
        (DRIFTING, "drifting"),
        (CONTENDED, "contended"),
    ];
    used(cells, &meanings)
}

fn used(cells: &[CellComparison], meanings: &[(char, &'static str)]) -> Vec<(char, &'static str)> {
    let is_used = |mark: char| cells.iter().any(|cell| marks(cell).contains(mark));
    let meanings = meanings.iter().copied();
    meanings.filter(|(mark, _)| is_used(*mark)).collect()
}

/// What is to be said after a cell's reason: how it was found and confirmed, and what an answer would take.
pub(crate) fn notes(cell: &CellComparison, stopping: &Stopping) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(detection) = &cell.detection {
        notes.extend(found(cell, detection, stopping));
    }
    notes.extend(cell.recurrence.as_ref().map(on_a_fresh_load));
    notes.extend(hours::note(cell));
    notes.extend(to_verdict(cell));
    notes
}

/// The same as [`notes`], without what the mark behind the sign says already.
pub(crate) fn beyond_marks(cell: &CellComparison, stopping: &Stopping) -> Vec<String> {
    let mut notes = notes(cell, stopping);
    let again = [
        ConfirmationStatus::FreshLoad,
        ConfirmationStatus::FreshBlocks,
    ];
    if ConfirmationStatus::of(cell).is_some_and(|status| again.contains(&status)) {
        notes.retain(|note| !note.contains(FROM_FRESH));
    }
    notes
}

/// `recurred 2.0 h later on a fresh load: -1.5 % [-3.2, +0.2] there, one-sided p = 0.0389`.
fn on_a_fresh_load(found: &Recurrence) -> String {
    let later = found
        .seconds_later
        .map(|seconds| format!(" {} later", span(seconds)));
    let later = later.unwrap_or_default();
    let there = format!(
        "{} there, one-sided {}",
        words::change_interval(&found.again),
        p(found.p)
    );
    match found.outcome {
        Confirmation::Recurred => format!("recurred{later} on a fresh load: {there}"),
        // The reason says that it did not recur.
        Confirmation::DidNotRecur => format!("on a fresh load{later}: {there}"),
        Confirmation::Open => format!(
            "still open{later} on a fresh load: {there}; both together {}",
            words::change_interval(&found.together)
        ),
    }
}

/// `40 s`, `12 min`, `2.0 h`.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        _ if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// How it was found and what became of it, without what the reason has already.
fn found(cell: &CellComparison, detection: &Detection, stopping: &Stopping) -> Option<String> {
    let told = cell.reason.contains(&format!("look {}", detection.look));
    let found = format!("found at look {}", look(detection.look, stopping));
    let after = |text: String| {
        if told {
            text
        } else {
            format!("{found}; {text}")
        }
    };
    match detection.outcome {
        DetectionOutcome::Recurred { .. } => {
            let fresh = words::metric(cell, Metric::Throughput)?.blocks.len();
            let fresh = words::plural(count(fresh), "fresh block");
            Some(after(format!("{FROM_FRESH} {fresh}")))
        }
        _ if told => None,
        DetectionOutcome::Confirming { blocks_left } => Some(after(format!(
            "not confirmed yet: {} to go",
            words::plural(u64::from(blocks_left), "fresh block")
        ))),
        DetectionOutcome::DidNotRecur { p } => Some(after(format!(
            "did not recur on fresh blocks (one-sided p = {p:.2})"
        ))),
    }
}

/// `2 of 5`, or `2` where the plan has no looks.
pub(crate) fn look(look: u32, stopping: &Stopping) -> String {
    match stopping {
        Stopping::Sequential { looks } => format!("{look} of {}", looks.len()),
        _ => look.to_string(),
    }
}

/// `≈ 7 more minutes`, else blocks unless the reason has them.
fn to_verdict(cell: &CellComparison) -> Option<String> {
    if cell.verdict != Verdict::Inconclusive {
        return None;
    }
    if let Some(minutes) = cell.minutes_to_verdict.filter(|m| m.is_finite()) {
        return Some(format!("≈ {}", more_minutes(minutes)));
    }
    let blocks = cell.blocks_to_verdict?;
    if ["more block", "more pass"]
        .iter()
        .any(|said| cell.reason.contains(said))
    {
        return None;
    }
    Some(format!(
        "≈ {}",
        words::plural(u64::from(blocks), "more block")
    ))
}

/// Minutes, or hours from two on, never 0.
pub(crate) fn more_minutes(minutes: f64) -> String {
    if minutes >= 120.0 {
        return format!("{:.1} more hours", minutes / 60.0);
    }
    let whole = minutes.ceil().max(1.0);
    if whole < 1.5 {
        "1 more minute".to_owned()
    } else {
        format!("{whole:.0} more minutes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_is_never_zero_minutes_and_long_ones_are_hours() {
        assert_eq!(more_minutes(0.2), "1 more minute");
        assert_eq!(more_minutes(6.3), "7 more minutes");
        assert_eq!(more_minutes(198.0), "3.3 more hours");
    }
}
