//! What the lists of a site follow from.

use crate::digest::digest;
use crate::lab::Lab;
use deltabench_lab::store_problem;
use deltabench_model::problem::Problem;

/// The sources of all pages, with the script of reports (`build.rs`).
pub(super) const PAGES: &str = env!("DELTABENCH_SITE_SOURCES");

/// A hash of all that the pages of a site follow from, but for those that are files in the lab or read such
/// files ([`Route::Stored`], [`Route::Execution`]): whatever a list may read is in it, whether it reads it or
/// not. `execution`: the one that is shown alone.
///
/// It is to be asked for before pages are made. What is stored meanwhile then makes the next one differ.
/// Errors: the store cannot be read.
///
/// [`Route::Stored`]: crate::Route::Stored
/// [`Route::Execution`]: crate::Route::Execution
pub(super) fn state(lab: &mut Lab, execution: Option<&str>) -> Result<String, Problem> {
    let mut all = vec![
        PAGES.to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
        format!("{} {execution:?}", lab.shows_hosts),
        lab.secrets.stamp_of_all(),
        lab.store.content().map_err(store_problem)?,
    ];
    let run = |entry: &crate::entry::Entry| format!("{} {}", entry.name, lab.stamp_of(entry));
    all.extend(lab.entries.iter().map(run));
    all.extend(lab.stored.iter().cloned());
    all.extend(lab.order_of_commits()?);
    Ok(digest(&all.join("\n")))
}
