//! Running other programs.

use std::io::{ErrorKind, Read, Result};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs a program to its end, without standard input, and gives what it printed.
///
/// It does not get the password of the server that is measured.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command)?.wait_with_output()
}

/// What a program prints that answers and ends within `longest`; it is killed when it does not.
///
/// Errors: it cannot be run, takes longer, or fails; with what it printed.
pub(crate) fn answer(
    command: &mut Command,
    longest: Duration,
) -> std::result::Result<String, String> {
    let said = |error: std::io::Error| error.to_string();
    let (mut reader, writer) = std::io::pipe().map_err(said)?;
    command.stderr(writer.try_clone().map_err(said)?);
    let mut child = spawn(command.stdout(writer)).map_err(said)?;
    // Our own ends of the pipe go with the command: else it never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (sender, text) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).trim().to_owned());
    });
    let end = Instant::now() + longest;
    let status = loop {
        match child.try_wait().map_err(said)? {
            Some(status) => break status,
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", longest.as_secs()));
            }
        }
    };
    // Something that it left behind may hold the pipe.
    let text = text
        .recv_timeout(Duration::from_secs(1))
        .unwrap_or_default();
    // gflags, which db_bench is made with, ends --help with 1.
    if status.success() || !text.is_empty() && status.code() == Some(1) {
        return Ok(text);
    }
    Err(format!("{status}\n{text}").trim_end().to_owned())
}

/// Waits up to half a second when the file is "busy": a child that another of our threads forked while the
/// file was being written keeps it open for writing until it execs.
fn spawn(command: &mut Command) -> Result<Child> {
    command.env_remove("PGPASSWORD").stdin(Stdio::null());
    let mut tries = 0;
    loop {
        match command.spawn() {
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
    fn an_answer_is_bounded_and_a_failure_tells_what_was_said() {
        let ask = |script: &str, longest: u64| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", script]);
            answer(&mut shell, Duration::from_millis(longest))
        };
        assert_eq!(ask("echo a; echo b >&2", 60_000).unwrap(), "a\nb");
        let long = ask("head -c 300000 /dev/zero | tr '\\0' x", 60_000).unwrap();
        assert_eq!(long.len(), 300_000);
        let failed = ask("echo why >&2; exit 127", 60_000).unwrap_err();
        assert!(failed.contains("127") && failed.contains("why"), "{failed}");
        assert!(ask("exec sleep 600", 50).unwrap_err().contains("no answer"));
    }

    #[test]
    fn no_other_program_gets_the_password_of_the_server_that_is_measured() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo \"<$PGPASSWORD$OTHER>\""]);
        shell.env("PGPASSWORD", "S3").env("OTHER", "x");
        assert_eq!(output(&mut shell).unwrap().stdout, b"<x>\n");
    }
}
