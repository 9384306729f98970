//! A command that could not do what was asked.

use deltabench_model::problem::Problem;

/// A failure with the exit code it stands for.
#[derive(Debug)]
pub enum Failure {
    /// Bad input or a host that cannot do it: nothing was started. Exit 2.
    Refused(Problem),
    /// Measuring failed. Exit 5.
    Failed(Problem),
}
