//! The lab's store, opened.

use crate::config::Config;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_store::{Store, StoreError};

/// Opens a lab that must be there.
pub fn open(config: &Config) -> Result<Store, Failure> {
    Store::open_existing(&config.lab).map_err(|error| match error {
        StoreError::Missing { .. } => Failure::Refused(
            Problem::new(format!("there is no lab in {}", config.lab.display()))
                .hint("name the directory of an earlier run with --lab DIR"),
        ),
        other => store_problem(other),
    })
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
