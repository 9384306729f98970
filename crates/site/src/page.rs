//! A page by its route.

use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::written::Page;
use crate::{
    api, cells, changes, compare, executions, feed, home, hosts, run, runs, search, trends,
    versions,
};
use deltabench_model::problem::Problem;

/// Makes a page, or gives the one that was made before; `None` where the lab has nothing of that name.
///
/// `published` says how it refers to other pages. Errors: the store cannot be read.
pub fn page(lab: &mut Lab, route: &Route, published: bool) -> Result<Option<Page>, Problem> {
    if let Some(page) = lab.kept(route) {
        return Ok(Some(page));
    }
    let made = with_all_words(lab, route, published)?.map(|page| lab.secrets.withhold(page));
    // The file of a stored page may be written again at any time.
    let is_file = matches!(route, Route::Stored(_));
    if let Some(page) = made.as_ref().filter(|page| !page.waits && !is_file) {
        lab.keep(route, page);
    }
    Ok(made)
}

/// The same page, before what is not published is taken out of it.
///
/// Errors: as [`page`].
pub(crate) fn with_all_words(
    lab: &mut Lab,
    route: &Route,
    published: bool,
) -> Result<Option<Page>, Problem> {
    let links = &Links::of(route, published);
    Ok(match route {
        Route::Home => Some(home::page(lab, links)?),
        Route::Runs => Some(runs::page(lab, links)),
        Route::Run(name) => run::page(lab, name, links)?,
        Route::Live(name) => run::live(lab, name, links)?,
        Route::Execution(name) => executions::page(lab, name, links)?,
        Route::Stored(name) => executions::stored(lab, name, links)?,
        Route::Versions => Some(versions::list(lab, links)),
        Route::Version(key) => versions::page(lab, key, links)?,
        Route::Cells => Some(cells::list(lab, links)),
        Route::Cell(cell, host) => cells::page(lab, (cell, host), links)?,
        Route::Trends => Some(trends::list(lab, links)?),
        Route::Trend(cell, host) => trends::page(lab, (cell, host), links)?,
        Route::Changes => Some(changes::list(lab, links)?),
        Route::Change(id) => changes::page(lab, id, links)?,
        Route::Compare => Some(compare::list(lab, links)?),
        Route::Pair(base, with) => Some(compare::page(lab, (base, with), links)?),
        Route::Hosts => Some(hosts::list(lab, links)),
        Route::Host(key) => hosts::page(lab, key, links)?,
        Route::Search => Some(search::page(lab, links)?),
        Route::Script => Some(Page::script(deltabench_report::script().0)),
        Route::Feed => Some(feed::page(lab)?),
        Route::ApiRuns => Some(api::runs(lab)),
        Route::ApiRun(name) => api::run(lab, name)?,
        Route::ApiVersions => Some(api::versions(lab)),
        Route::ApiHosts => Some(api::hosts(lab)),
        Route::ApiChanges => Some(api::changes(lab)?),
    })
}
