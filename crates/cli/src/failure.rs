//! A command that could not do what was asked.

use deltabench_model::exit;
use deltabench_model::problem::Problem;

/// What the exit codes mean, in the help of the program and of its main command.
pub const EXIT_CODES: &str = "Exit codes: 0 no regression, 1 regression, 2 bad request, 3 inconclusive, \
                              4 host unfit, 5 could not measure, 130 interrupted.";

/// A failure with the exit code it stands for.
#[derive(Debug)]
pub enum Failure {
    /// Bad input or a host that cannot do it: nothing was started.
    Refused(Problem),
    /// Measuring failed.
    Failed(Problem),
}

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
            Self::Refused(_) => exit::REFUSED,
            Self::Failed(_) => exit::NOT_MEASURED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_documents_have_every_code_with_its_meaning() {
        let all: Vec<String> = { exit::MEANINGS.iter() }
            .map(|(code, meaning)| format!("{code} {meaning}"))
            .collect();
        let all = format!("{}.", all.join(", "));
        assert!(EXIT_CODES.ends_with(&all), "{EXIT_CODES}");
        let documents = [
            include_str!("../../../README.md"),
            include_str!("../../../ARCHITECTURE.md"),
            include_str!("main.rs"),
        ];
        for text in documents {
            let words = text.lines().map(|line| line.trim_start_matches("//!"));
            let words: Vec<&str> = words.flat_map(str::split_whitespace).collect();
            assert!(words.join(" ").contains(&all), "{all}");
        }
    }
}
