//! Running other programs.

use std::io::{ErrorKind, Result};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Runs a program to its end, without standard input, and gives what it printed.
///
/// Waits up to half a second when its file is "busy": a child that another of our threads forked
/// while the file was
/// being written keeps it open for writing until it execs.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
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
