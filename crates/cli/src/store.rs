//! The lab's store, opened.

use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words::plural;
use deltabench_store::{Store, StoreError};
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
    Store::open(&config.lab).map_err(|error| {
        Failure::Refused(Problem::new("the lab directory cannot be used").detail(error.to_string()))
    })
}

/// A store that fails, as exit code 5.
pub fn store_problem(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(deltabench_lab::store_problem(error))
}
