//! `publish` and `web`: the pages of a lab.

use crate::arguments::site::{PublishArguments, WebArguments};
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_site::Lab;

/// `deltabench publish`.
pub fn publish(arguments: &PublishArguments, config: &Config) -> Result<u8, Failure> {
    let mut lab = open(config, arguments.with_hosts)?;
    let execution = arguments.execution.as_deref();
    let done = deltabench_site::publish(&mut lab, &arguments.directory, execution).map_err(
        |problem| match problem.of_machine {
            true => Failure::Failed(problem),
            false => Failure::Refused(problem),
        },
    )?;
    say(&format!(
        "{}: {} files written, {} unchanged, {} removed",
        arguments.directory.display(),
        done.written,
        done.unchanged,
        done.removed
    ));
    Ok(0)
}

fn open(config: &Config, shows_hosts: bool) -> Result<Lab, Failure> {
    Lab::open(&config.lab, shows_hosts).map_err(|problem: Problem| {
        Failure::Refused(problem.hint("name the lab with --lab DIR"))
    })
}

/// `deltabench web`.
pub fn web(_arguments: &WebArguments, _config: &Config) -> Result<u8, Failure> {
    Ok(0)
}
