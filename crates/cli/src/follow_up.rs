//! How what follows a measurement ends.

use crate::console::say;
use crate::failure::Failure;
use deltabench_model::exit;
use deltabench_run::session::SessionEnd;

/// How what follows a measurement ended; the result of the measurement stands in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// All is done, or there was nothing to do.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// Something that was asked for could not be measured.
    Failed,
}

impl FollowUp {
    /// Says why it failed, if it did.
    pub fn of(end: Result<SessionEnd, Failure>) -> Self {
        match end {
            Ok(SessionEnd::Finished) => Self::Finished,
            Ok(SessionEnd::Interrupted) => Self::Interrupted,
            Err(failure) => {
                say(&failure.problem().to_string());
                Self::Failed
            }
        }
    }

    /// The exit code of the result, if all that was asked for is measured.
    pub fn code(self, of_result: u8) -> u8 {
        match self {
            Self::Finished => of_result,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Failed => exit::NOT_MEASURED,
        }
    }
}
