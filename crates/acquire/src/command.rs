//! Running other programs.

use std::io::{ErrorKind, Result};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Runs a program to its end, without standard input, and gives what it printed.
///
/// It does not get the password of the server that is measured.
/// Waits up to half a second when its file is "busy": a child that another of our threads forked
/// while the file was
/// being written keeps it open for writing until it execs.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    command.env_remove("PGPASSWORD");
    let mut tries = 0;
    loop {
        match command.stdin(Stdio::null()).output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < 50 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_program_gets_the_password_of_the_server_that_is_measured() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo \"<$PGPASSWORD$OTHER>\""]);
        shell.env("PGPASSWORD", "S3").env("OTHER", "x");
        assert_eq!(output(&mut shell).unwrap().stdout, b"<x>\n");
    }
}
