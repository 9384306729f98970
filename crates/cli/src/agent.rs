//! `deltabench agent`: counters of this machine for a run on another one, which starts it over ssh.

use crate::console::say;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_observe::agent::{SILENCE, Served, serve};
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Answers requests from stdin on stdout until stdin ends.
///
/// Errors: a stdin that is a terminal, where nobody asks anything; requests that are none.
pub fn agent() -> Result<u8, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::Refused(
            Problem::new("a run starts the agent, over ssh")
                .detail("it reads requests from standard input, but that is a terminal")
                .hint(
                    "name this machine in a target on the other one: \
                     dsn:postgres://USER@HOST/DATABASE?agent=ssh:HOST",
                ),
        ));
    }
    // Not through the buffer of `stdin`: what is in there nobody could wait for.
    let input = stdin.as_fd().try_clone_to_owned().map_err(|error| {
        Failure::Failed(Problem::new("cannot read requests").detail(error.to_string()))
    })?;
    match serve(input, std::io::stdout().lock(), SILENCE) {
        Served::Closed => Ok(0),
        Served::Silent => {
            say(&format!(
                "no request for {} s: the agent ends",
                SILENCE.as_secs()
            ));
            Ok(0)
        }
        Served::Broken => Err(Failure::Failed(
            Problem::new("the agent received a request that it cannot read")
                .hint("both sides must be the same build of deltabench"),
        )),
    }
}
