//! What a package of deltabench has beside the program: man pages, and completions of shells.

use crate::arguments::{Arguments, CompletionsArguments, ReferenceArguments};
use crate::console::print_stdout;
use crate::failure::Failure;
use clap::CommandFactory;
use deltabench_model::problem::Problem;

/// `deltabench reference`: the pages of docs/reference, or the man pages.
pub fn reference(arguments: &ReferenceArguments) -> Result<u8, Failure> {
    let Some(directory) = &arguments.man else {
        return crate::reference::reference();
    };
    clap_mangen::generate_to(Arguments::command(), directory).map_err(|error| {
        let problem = Problem::new(format!("cannot write man pages to {}", directory.display()));
        Failure::Refused(problem.detail(error.to_string()))
    })?;
    Ok(0)
}

/// `deltabench completions SHELL`.
pub fn completions(arguments: &CompletionsArguments) -> Result<u8, Failure> {
    let mut text = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "deltabench", &mut text);
    print_stdout(String::from_utf8_lossy(&text).trim_end())?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn every_command_has_a_man_page() {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ReferenceArguments {
            man: Some(directory.path().to_owned()),
        };
        assert_eq!(reference(&arguments).ok(), Some(0));
        for command in Arguments::command().get_subcommands() {
            let page = directory
                .path()
                .join(format!("deltabench-{}.1", command.get_name()));
            let has =
                std::fs::read_to_string(&page).is_ok_and(|text| text.contains(".SH SYNOPSIS"));
            assert_eq!(has, !command.is_hide_set(), "{}", page.display());
        }
        // Its options stand below the headings of --help.
        let compare =
            std::fs::read_to_string(directory.path().join("deltabench-compare.1")).unwrap();
        for heading in ["HOW IT MEASURES", "MEMORY AND STORAGE", "ON THIS MACHINE"] {
            assert!(compare.contains(&format!(".SH \"{heading}\"")), "{heading}");
        }
    }

    #[test]
    fn man_pages_need_a_directory() {
        let arguments = ReferenceArguments {
            man: Some(PathBuf::from("/nowhere/at/all")),
        };
        assert!(matches!(reference(&arguments), Err(Failure::Refused(_))));
    }
}
