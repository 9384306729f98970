//! What failed beside other jobs is run once more, alone.
//!
//! Real servers are started, killed and watched here while more work waits than there are CPUs. A test that
//! such a machine breaks passes alone. Why that is no hole, and what the line is for that it leaves:
//! docs/decisions/0053-failed-tests-run-once-more-alone.md.

use std::process::Command;

/// Tests that are run once more at most. More at once are no bad luck.
const MOST: usize = 3;

/// What of a failed job is run once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// The tests that failed, by their names.
    Tests,
    /// All of it.
    Whole,
    Never,
}

impl Again {
    /// Narrows the steps of a failed job down to what is run once more; false if nothing is.
    pub fn narrow(self, steps: &mut [Command], failed: &[&str]) -> bool {
        match self {
            Self::Whole => true,
            Self::Tests if !failed.is_empty() => {
                for step in steps {
                    step.args(["--exact", "--test-threads=1"]).args(failed);
                }
                true
            }
            // Without names the program itself has died.
            Self::Tests | Self::Never => false,
        }
    }
}

/// Names of the tests that failed, as the harness tells them: `test name ... FAILED <0.9s>`.
pub fn failed_tests(output: &str) -> Vec<&str> {
    output.lines().filter_map(failed_test).collect()
}

fn failed_test(line: &str) -> Option<&str> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    result.starts_with("FAILED").then_some(name)
}

/// Whether so few failed that bad luck may be the reason.
pub fn are_few<'a>(failed: impl Iterator<Item = (Again, &'a str)>) -> bool {
    let tests = failed.map(|(again, output)| match again {
        Again::Tests => failed_tests(output).len(),
        Again::Whole | Again::Never => 1,
    });
    tests.sum::<usize>() <= MOST
}

/// The name of a job without the place of its file: `tests it of deltabench`.
pub fn short(name: &str) -> &str {
    name.split(" (").next().unwrap_or(name)
}

/// What passed alone.
pub fn in_words(name: &str, tests: &[&str]) -> String {
    match tests {
        [] => short(name).to_owned(),
        tests => format!("{} of {}", tests.join(", "), short(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_known_by_what_the_harness_says() {
        let said = "running 3 tests\ntest a::b ... ok <0.1s>\ntest a::c ... FAILED <0.901s>\n\
                    test d ... ignored, slow\n    a::c\ntest result: FAILED. 1 passed; 1 failed";
        assert_eq!(failed_tests(said), ["a::c"]);
    }

    #[test]
    fn a_program_that_died_is_not_run_once_more() {
        let mut steps = [Command::new("true")];
        assert!(!Again::Tests.narrow(&mut steps, &[]));
        assert!(!Again::Never.narrow(&mut steps, &["a"]));
        assert!(Again::Whole.narrow(&mut steps, &[]));
        assert_eq!(steps[0].get_args().count(), 0);
    }
}
