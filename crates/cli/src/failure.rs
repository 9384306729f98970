//! A command that could not do what was asked.

use deltabench_model::problem::Problem;

/// What the exit codes mean, in the help of the program and of its main command.
pub const EXIT_CODES: &str = "Exit codes: 0 no regression, 1 regression, 2 bad request, 3 inconclusive, \
                              4 host unfit, 5 could not measure, 130 interrupted.";

/// A failure with the exit code it stands for.
#[derive(Debug)]
pub enum Failure {
    /// Bad input or a host that cannot do it: nothing was started. Exit 2.
    Refused(Problem),
    /// Measuring failed. Exit 5.
    Failed(Problem),
}

/// Exit code if something that was asked for could not be measured.
pub const NOT_MEASURED: u8 = 5;

impl Failure {
    /// What is in the way.
    pub fn problem(&self) -> &Problem {
        match self {
            Self::Refused(problem) | Self::Failed(problem) => problem,
        }
    }

    /// The same failure with its problem said in another way.
    pub fn said(self, say: impl FnOnce(Problem) -> Problem) -> Self {
        match self {
            Self::Refused(problem) => Self::Refused(say(problem)),
            Self::Failed(problem) => Self::Failed(say(problem)),
        }
    }

    /// The exit code it stands for.
    pub fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 2,
            Self::Failed(_) => NOT_MEASURED,
        }
    }
}
