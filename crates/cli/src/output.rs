//! Where reports go: checked before the run, written after it.

use crate::arguments::conditions::Output;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_compare::exit_code;
use deltabench_lab::Analysed;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_report::{JsonVersion, TerminalOptions};
use deltabench_store::Store;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Where a run's reports are written.
#[derive(Debug)]
pub struct Destinations {
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    lab: PathBuf,
    version: JsonVersion,
    /// Whether the table on the terminal has every note.
    verbose: bool,
}

impl Destinations {
    /// Makes sure that every file asked for can be written, before anything is measured.
    ///
    /// Errors: a directory that is not there, a file that cannot be created.
    pub fn check(output: &Output, config: &Config) -> Result<Self, Problem> {
        check_files(output.json.as_deref(), output.html.as_deref())?;
        check_creatable(&config.lab).map_err(|error| {
            Problem::new(format!(
                "cannot create the lab directory {}",
                config.lab.display()
            ))
            .detail(error.to_string())
            .hint("choose another one with --lab DIR")
        })?;
        Ok(Self {
            json: output.json.clone(),
            html: output.html.clone(),
            lab: config.lab.clone(),
            version: JsonVersion::of(output.json_version),
            verbose: output.verbose,
        })
    }
}

/// Makes sure that a directory is there, or can be made. It is not left behind: the run may still be refused.
fn check_creatable(directory: &Path) -> std::io::Result<()> {
    let lacking = directory.ancestors().take_while(|place| {
        let named = !place.as_os_str().is_empty();
        named && !place.exists()
    });
    let lacking: Vec<&Path> = lacking.collect();
    std::fs::create_dir_all(directory)?;
    for made in lacking {
        // Only while it is empty: another deltabench may have begun to use it.
        let _ = std::fs::remove_dir(made);
    }
    Ok(())
}

/// Makes sure that the files of a report can be written. Only the JSON may go to stdout.
///
/// Errors: a file that cannot be created, a page on stdout.
pub fn check_files(json: Option<&Path>, html: Option<&Path>) -> Result<(), Problem> {
    if html.is_some_and(is_stdout) {
        return Err(Problem::new("the page cannot be written to stdout")
            .hint("name a file, or leave out --html"));
    }
    let mut files = [json, html].into_iter().flatten();
    files.try_for_each(|path| match is_stdout(path) {
        true => Ok(()),
        false => check_writable(path),
    })
}

/// Analyses what the store has of a run, and of the run that confirms it.
pub fn analyse_run(run: &str, plan: &Plan, store: &Store) -> Result<Analysed, Failure> {
    deltabench_lab::analyse(run, plan, store).map_err(Failure::Failed)
}

/// The same without what other hours say, for what shows many runs.
pub fn analyse_this_hour(run: &str, plan: &Plan, store: &Store) -> Result<Analysed, Failure> {
    deltabench_lab::analyse_this_hour(run, plan, store).map_err(Failure::Failed)
}

/// Writes those reports of a run again that lie in the lab, after something was said about it.
pub fn rewrite(run: &str, plan: &Plan, store: &Store, config: &Config) -> Result<(), Failure> {
    // Its files hold plans and results that are nowhere else.
    if plan.work.replay().is_some() {
        say(&format!(
            "the report of {run} stays as it is: a replay is not written again"
        ));
        return Ok(());
    }
    let Analysed {
        comparison,
        context,
        ..
    } = analyse_run(run, plan, store)?;
    let html = config.lab.join(format!("{run}.html"));
    let json = config.lab.join(format!("{run}.json"));
    if html.is_file() {
        write_file(&html, &deltabench_report::html(&comparison, plan, &context))?;
        say(&format!("wrote {} again", html.display()));
    }
    if json.is_file() {
        // Whoever asked for a version reads that one.
        let before = std::fs::read_to_string(&json).unwrap_or_default();
        let version = JsonVersion::of_report(&before);
        let text = deltabench_report::json(version, &comparison, plan, &context);
        write_file(&json, &text)?;
        say(&format!("wrote {} again", json.display()));
    }
    // What it says is in the reports of the run that it belongs to, too.
    let whole = match plan.part_of() {
        // A bisection is written anew when it goes on, or by `deltabench report`.
        Some(whole) if plan.bisects.is_none() => whole,
        _ => return Ok(()),
    };
    let plan = store.plan(whole).map_err(store_problem)?;
    rewrite(whole, &plan, store, config)
}

/// Prints the table and writes the files; returns the exit code.
pub fn publish(analysed: &Analysed, destinations: &Destinations) -> Result<u8, Failure> {
    let Analysed {
        plan,
        comparison,
        context,
        ..
    } = analysed;
    let to_stdout = destinations.json.as_deref().is_some_and(is_stdout);
    let options = options(!to_stdout, destinations.verbose);
    let table = deltabench_report::terminal(comparison, plan, context, options);
    if to_stdout {
        say(&table);
    } else {
        print_stdout(&table)?;
    }
    write_reports(analysed, destinations)?;
    Ok(exit_code(comparison))
}

/// Writes the page and the JSON report of a run.
pub fn write_reports(analysed: &Analysed, destinations: &Destinations) -> Result<(), Failure> {
    let Analysed {
        plan,
        comparison,
        context,
        ..
    } = analysed;
    let place = |asked: &Option<PathBuf>, ending: &str| {
        let own = || destinations.lab.join(format!("{}.{ending}", context.run));
        asked.clone().unwrap_or_else(own)
    };
    let json = deltabench_report::json(destinations.version, comparison, plan, context);
    let json_file = place(&destinations.json, "json");
    let html = deltabench_report::html(comparison, plan, context);
    let mut files = vec![(place(&destinations.html, "html"), html)];
    if is_stdout(&json_file) {
        print_stdout(&json)?;
    } else {
        files.push((json_file, json));
    }
    for (path, text) in files {
        write_file(&path, &text)?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// A table as wide as the terminal and coloured only there.
fn options(stdout: bool, verbose: bool) -> TerminalOptions {
    let is_terminal = if stdout {
        std::io::stdout().is_terminal()
    } else {
        std::io::stderr().is_terminal()
    };
    TerminalOptions {
        width: width(),
        colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        verbose,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_that_can_be_made_is_not_made_before_it_is_needed() {
        let place = tempfile::tempdir().unwrap();
        let lab = place.path().join("a/b");
        check_creatable(&lab).unwrap();
        assert!(!place.path().join("a").exists());
        std::fs::create_dir_all(&lab).unwrap();
        check_creatable(&lab).unwrap();
        assert!(lab.is_dir(), "it was there");
        std::fs::write(place.path().join("file"), "").unwrap();
        assert!(check_creatable(&place.path().join("file/lab")).is_err());
    }
}
