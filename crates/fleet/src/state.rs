//! What became of each unit, read from the spool alone.

use crate::spool::{Attempt, Beat, EndWord, HostName, Spool};
use deltabench_model::units::to_f64;

/// Seconds without a sign of life beyond what was planned, before an attempt is called silent.
const PATIENCE_SECONDS: f64 = 300.0;
/// How often what was planned until the next sign may have passed.
const PATIENCE_TIMES: f64 = 3.0;

/// Where a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitState {
    /// No host has taken it.
    Waiting,
    Running,
    /// No sign of life for too long.
    Silent,
    /// Measured, and not in the central store yet.
    Sealed,
    Gathered,
    Interrupted,
    Superseded,
    Unfit,
    Failed,
    Cancelled,
}

impl UnitState {
    /// The word printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Silent => "silent",
            Self::Sealed => "sealed",
            Self::Gathered => "gathered",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
            Self::Unfit => "unfit",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it is measured.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Sealed | Self::Gathered)
    }
}

/// A unit, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitStatus {
    pub unit: u32,
    pub state: UnitState,
    /// Its attempts so far.
    pub attempts: u32,
    /// Where the attempt that counts is or was.
    pub host: Option<HostName>,
    /// Its last sign of life.
    pub beat: Option<Beat>,
    /// Why it ended, in words.
    pub text: String,
}

/// Where a unit is at a moment, milliseconds since 1970.
pub fn status(spool: &Spool, unit: u32, now_unix_ms: i64) -> UnitStatus {
    let attempts = spool.attempts(unit);
    let count = attempts.last().map_or(0, |attempt| attempt.number);
    let gathered = attempts.iter().find(|attempt| attempt.gathered().is_some());
    let sealed = || attempts.iter().find(|attempt| !attempt.sealed().is_empty());
    let found = match (gathered, sealed(), attempts.last()) {
        (Some(attempt), ..) => Some((attempt, UnitState::Gathered)),
        (None, Some(attempt), _) => Some((attempt, UnitState::Sealed)),
        (None, None, Some(attempt)) => Some((attempt, of_attempt(attempt, now_unix_ms))),
        (None, None, None) => None,
    };
    let Some((attempt, state)) = found else {
        let state = match spool.is_cancelled() {
            true => UnitState::Cancelled,
            false => UnitState::Waiting,
        };
        return UnitStatus {
            unit,
            state,
            attempts: 0,
            host: None,
            beat: None,
            text: String::new(),
        };
    };
    UnitStatus {
        unit,
        state,
        attempts: count,
        host: attempt.owner().map(|owner| owner.host),
        beat: attempt.beat(),
        text: attempt.end().map(|end| end.text).unwrap_or_default(),
    }
}

/// Where an attempt without a sealed file is.
fn of_attempt(attempt: &Attempt, now_unix_ms: i64) -> UnitState {
    match attempt.end().map(|end| end.word) {
        Some(EndWord::Interrupted) => UnitState::Interrupted,
        Some(EndWord::Superseded) => UnitState::Superseded,
        Some(EndWord::Unfit) => UnitState::Unfit,
        // Its end says that it is sealed, and the file is gone.
        Some(EndWord::Failed | EndWord::Sealed) => UnitState::Failed,
        Some(EndWord::Cancelled) => UnitState::Cancelled,
        None => match is_silent(attempt, now_unix_ms) {
            true => UnitState::Silent,
            false => UnitState::Running,
        },
    }
}

fn is_silent(attempt: &Attempt, now_unix_ms: i64) -> bool {
    let (last, allowance) = match (attempt.beat(), attempt.owner()) {
        (Some(beat), _) => (beat.at_unix_ms, beat.allowance_seconds),
        (None, Some(owner)) => (owner.at_unix_ms, 0.0),
        (None, None) => return false,
    };
    let passed = u64::try_from(now_unix_ms.saturating_sub(last)).unwrap_or(0);
    to_f64(passed) / 1000.0 > PATIENCE_TIMES * allowance + PATIENCE_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Owner;

    #[test]
    fn an_attempt_is_silent_after_what_was_planned_and_five_minutes() {
        let place = tempfile::tempdir().unwrap();
        let spool = Spool::at(place.path());
        std::fs::create_dir(place.path().join("unit-001")).unwrap();
        let owner = Owner {
            host: HostName {
                uid: "u".to_owned(),
                node: "n".to_owned(),
            },
            pid: 1,
            process_start: 1,
            boot_id: None,
            lane: 0,
            at_unix_ms: 1_000,
        };
        let attempt = spool.claim(1, &owner).unwrap();
        let state = |at: i64| status(&spool, 1, at).state;
        assert_eq!(state(1_000 + 300_000), UnitState::Running);
        assert_eq!(state(1_000 + 300_001), UnitState::Silent);
        let beat = Beat {
            at_unix_ms: 500_000,
            blocks: 1,
            of: 2,
            text: String::new(),
            allowance_seconds: 20.0,
        };
        attempt.set_beat(&beat).unwrap();
        assert_eq!(state(500_000 + 360_000), UnitState::Running);
        assert_eq!(state(500_000 + 360_001), UnitState::Silent);
        // A clock that went back says nothing.
        assert_eq!(state(0), UnitState::Running);
    }
}
