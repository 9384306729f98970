//! Options of every command.

use clap::Args;
use deltabench_model::problem::Problem;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Directory that keeps the results
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "deltabench-lab"
    )]
    pub lab: PathBuf,
    /// Directory that keeps downloaded servers [default: /var/cache/deltabench for root, else the user's
    /// cache]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Never use the network
    #[arg(long, global = true)]
    pub offline: bool,
}

/// What was typed, word by word. A path may have bytes that are no text.
pub fn words() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

impl Global {
    /// Refuses an option that is given both before the command and after it: the parser would take one of the
    /// two and say nothing.
    ///
    /// Errors: the option that stands there twice.
    pub fn check_once(words: &[String]) -> Result<(), Problem> {
        let own = || words.iter().skip(1).take_while(|word| *word != "--");
        let known = Self::augment_args(clap::Command::new("all"));
        let valued = known
            .get_arguments()
            .filter(|one| one.get_action().takes_values());
        for long in valued.filter_map(clap::Arg::get_long) {
            let is_it = |word: &&String| {
                let name = word
                    .strip_prefix("--")
                    .and_then(|rest| rest.split('=').next());
                name == Some(long)
            };
            if own().filter(is_it).count() > 1 {
                return Err(Problem::new(format!("--{long} is given twice"))
                    .detail("it stands before the command and after it")
                    .hint(format!("leave out one --{long}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_every_command_stands_there_once() {
        let check = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Global::check_once(&words)
        };
        for line in [
            "deltabench list --lab a",
            "deltabench --lab a list --offline",
            "deltabench --lab a nightly --anchor b c -- --lab d",
            "deltabench --offline list --offline",
        ] {
            assert!(check(line).is_ok(), "{line}");
        }
        for line in [
            "deltabench --lab a list --lab b",
            "deltabench --lab=a list --lab a",
        ] {
            assert_eq!(check(line).unwrap_err().error, "--lab is given twice");
        }
        assert!(check("deltabench --cache a list --cache=b").is_err());
    }
}
