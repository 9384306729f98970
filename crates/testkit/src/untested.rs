//! What a machine does not let a test do.

use std::fmt::Display;
use std::io::Write;

/// Tells whoever runs the tests that this one could not test something here, and why: `cargo xtask ci`
/// repeats the line at its end.
///
/// It goes to the standard error of the process itself. What a test prints the harness keeps, and throws away
/// if the test passes, as one does that returns early.
pub fn not_tested(what: &str, why: impl Display) {
    let _ = std::io::stderr().write_all(line(what, why).as_bytes());
}

/// A line of its own, whatever others have begun to write.
fn line(what: &str, why: impl Display) -> String {
    let why = why.to_string().replace('\n', " ");
    format!("\nNOT TESTED: {what}, because {why}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A test that passes and could not test anything. The test below runs it, in a process of its own.
    #[test]
    #[ignore = "run by the other test of this module"]
    fn passes() {
        not_tested("this", "that\nis so");
        eprintln!("swallowed");
    }

    #[test]
    fn the_harness_shows_the_line_of_a_test_that_passes() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["untested::tests::passes", "--exact", "--ignored"])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert_eq!(said, "\nNOT TESTED: this, because that is so\n");
    }
}
