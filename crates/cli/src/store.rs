//! The lab's store, opened.

use crate::cluster_dirs;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words::plural;
use deltabench_store::{LOCK_NAME, RunState, Store, StoreError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Opens a lab that must be there.
pub fn open(config: &Config) -> Result<Store, Failure> {
    there(Store::open_existing(&config.lab), config)
}

/// Opens another lab than that of the options.
///
/// Errors: there is none.
pub fn open_lab(lab: &Path) -> Result<Store, Failure> {
    let store = Store::open_existing(lab).map_err(|error| {
        Failure::Refused(
            Problem::new(format!("there is no lab in {}", lab.display()))
                .detail(error.to_string())
                .hint("write LAB:RUN for a run of another lab, or --lab DIR for all of them"),
        )
    })?;
    warn_of_lost_files(&store)?;
    Ok(store)
}

/// Opens a lab that must be there, to read it alone.
pub fn open_to_read(config: &Config) -> Result<Store, Failure> {
    there(Store::open_to_read(&config.lab), config)
}

fn there(opened: Result<Store, StoreError>, config: &Config) -> Result<Store, Failure> {
    let store = opened.map_err(|error| match error {
        StoreError::Missing { .. } => Failure::Refused(
            Problem::new(format!("there is no lab in {}", config.lab.display()))
                .hint("name the directory of an earlier run with --lab DIR"),
        ),
        other => store_problem(other),
    })?;
    warn_of_lost_files(&store)?;
    Ok(store)
}

/// Runs whose sealed files are gone read as unfit, and what looks at many runs leaves them out: said here,
/// for every command, once.
pub fn warn_of_lost_files(store: &Store) -> Result<(), Failure> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let lost = store.lost_archives().map_err(store_problem)?;
    if let Some(first) = lost.first().filter(|_| !SAID.swap(true, Ordering::Relaxed)) {
        say(&format!(
            "warning: the sealed {} of {}, for example of {first}, cannot be used; such runs read as \
             unfit, and trends leave them out; `deltabench archive --check` lists them",
            if lost.len() == 1 { "file" } else { "files" },
            plural(count(lost.len()), "archived run")
        ));
    }
    Ok(())
}

/// The lab's store, made if there is none.
pub fn open_store(config: &Config) -> Result<Store, Failure> {
    let store = Store::open(&config.lab).map_err(|error| {
        let problem = unusable(error.to_string());
        Failure::Refused(match &error {
            StoreError::Newer { .. } | StoreError::Foreign { .. } | StoreError::Full { .. } => {
                problem.hint(error.hint())
            }
            _ => problem,
        })
    })?;
    cluster_dirs::lab_is_there(&config.lab);
    Ok(store)
}

/// A lab in which nothing can be written; the detail says why.
pub fn unusable(detail: String) -> Problem {
    Problem::new("the lab directory cannot be used")
        .detail(detail)
        .hint("make it writable for this user, or name another lab with --lab DIR")
}

/// The run that is measured now.
///
/// Errors: the store cannot be read.
pub fn measured_now(store: &Store) -> Result<Option<String>, Failure> {
    let is_locked = deltabench_proc::locks::is_locked(&store.lab().join(LOCK_NAME));
    store.measured(is_locked).map_err(store_problem)
}

/// The state of a run in a word.
pub fn state_word(run: &str, state: RunState, measured_now: Option<&str>) -> &'static str {
    state.word_if(measured_now == Some(run))
}

/// A store that fails, as exit code 5.
pub fn store_problem(error: StoreError) -> Failure {
    Failure::Failed(deltabench_lab::store_problem(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_store::FREE_SPACE;

    #[test]
    fn a_lab_that_cannot_be_made_has_a_hint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = Config {
            lab: file.path().to_owned(),
            cache: file.path().to_owned(),
            sources: deltabench_acquire::Sources::default(),
        };
        let refused = open_store(&config).unwrap_err();
        assert_eq!(refused.code(), 2);
        let text = refused.problem().to_string();
        assert!(
            text.contains("or name another lab with --lab DIR"),
            "{text}"
        );
    }

    #[test]
    fn a_command_that_cannot_write_to_the_store_says_what_to_do() {
        let failed = store_problem(StoreError::Full {
            path: "/lab/deltabench.sqlite".into(),
            source: rusqlite::Error::InvalidQuery,
        });
        assert_eq!(failed.problem().hint.as_deref(), Some(FREE_SPACE));
    }
}
