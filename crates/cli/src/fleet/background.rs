//! Watching without a person: one process for an execution, which outlives its terminal.

use super::submit::Submitter;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_fleet::file::Copying;
use deltabench_fleet::spool::Spool;
use deltabench_model::problem::Problem;
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The output of the process, in the directory of the logs.
const OUTPUT: &str = "watch.txt";

/// Leaves lanes that are handed in. Where hosts see the spool, the job that gathers needs nobody.
///
/// Errors: those of [`start`].
pub fn detach(submitter: &Submitter<'_>, config: &Config) -> Result<u8, Failure> {
    let (file, _, _) = submitter.execution();
    match file.copy {
        Copying::Shared => Ok(0),
        Copying::Sbcast => start(submitter, config).map(|()| 0),
    }
}

/// Starts the process, unless it is there, or somebody has seen the end.
///
/// Errors: a spool that cannot be written; a program that cannot start; those of the engine.
pub fn start(submitter: &Submitter<'_>, config: &Config) -> Result<(), Failure> {
    let (_, spool, lanes) = submitter.execution();
    let name = &lanes.execution;
    let end = match spool.outcome() {
        _ if spool.is_cancelled() => Some("is cancelled".to_owned()),
        Some(outcome) => Some(format!("has ended with exit code {}", outcome.code)),
        None => None,
    };
    if let Some(end) = end
        && submitter.alive()?.is_empty()
    {
        say(&format!(
            "{name} {end}; `deltabench fleet status {name}` says more"
        ));
        return Ok(());
    }
    let path = spool.log_directory().join(OUTPUT);
    let Some(lock) = spool.watch_alone().map_err(Failure::Failed)? else {
        say(&format!(
            "a process in the background watches {name} already: {}",
            path.display()
        ));
        return Ok(());
    };
    let output = OpenOptions::new().create(true).append(true).open(&path);
    let child = output.and_then(|output| started(name, config, (lock, output)));
    let pid = child.map_err(|error| {
        Failure::Failed(
            Problem::new("cannot watch in the background")
                .detail(format!("{}: {error}", path.display()))
                .hint(format!("deltabench fleet watch {name}")),
        )
    })?;
    say(&format!(
        "process {pid} watches {name} in the background, and writes {}",
        path.display()
    ));
    Ok(())
}

/// That a process watches in the background, as a line; `None` if none does.
///
/// Errors: a spool that cannot be written.
pub fn watches(spool: &Spool) -> Result<Option<String>, Failure> {
    let path = spool.log_directory().join(OUTPUT);
    let free = spool.watch_alone().map_err(Failure::Failed)?;
    Ok(match free {
        Some(_) => None,
        None => Some(format!(
            "a process watches in the background, and writes {}",
            path.display()
        )),
    })
}

fn started(name: &str, config: &Config, (lock, output): (File, File)) -> std::io::Result<u32> {
    let errors = output.try_clone()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--lab").arg(&config.lab);
    command.arg("--cache").arg(&config.cache);
    command.args(["--offline", "fleet", "watch", "--alone", name]);
    command
        // The lock goes with it, and ends with it.
        .stdin(Stdio::from(lock))
        .stdout(output)
        .stderr(errors)
        // Not what ends the command that starts it: a signal of the terminal, or of a script.
        .process_group(0);
    Ok(command.spawn()?.id())
}
