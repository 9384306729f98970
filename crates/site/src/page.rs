//! A page by its route.

use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::{api, cells, executions, feed, home, hosts, run, runs, search, versions};
use deltabench_model::problem::Problem;

/// What a page is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Html,
    Json,
    Atom,
}

impl Kind {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Atom => "application/atom+xml; charset=utf-8",
        }
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub kind: Kind,
    pub text: String,
    /// Whether it says less than it would if no run were measured: it is to be asked for again later.
    pub waits: bool,
    /// Whether it only says that the page wanted is made after a run.
    pub later: bool,
}

impl Page {
    /// A page for people.
    pub(crate) fn html(text: String) -> Self {
        Self {
            kind: Kind::Html,
            text,
            waits: false,
            later: false,
        }
    }

    /// The same, of which a part waits for the end of a run.
    pub(crate) fn that_waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// The same, as a stand-in for a page that is made after a run.
    pub(crate) fn for_later(self) -> Self {
        Self {
            waits: true,
            later: true,
            ..self
        }
    }
}

/// Makes a page, or gives the one that was made before; `None` where the lab has nothing of that name.
///
/// `published` says how it refers to other pages. Errors: the store cannot be read.
pub fn page(lab: &mut Lab, route: &Route, published: bool) -> Result<Option<Page>, Problem> {
    if let Some(page) = lab.kept(route) {
        return Ok(Some(page));
    }
    let links = &Links::of(route, published);
    let made = match route {
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
        Route::Hosts => Some(hosts::list(lab, links)),
        Route::Host(key) => hosts::page(lab, key, links)?,
        Route::Search => Some(search::page(lab, links)?),
        Route::Feed => Some(feed::page(lab)?),
        Route::ApiRuns => Some(api::runs(lab)),
        Route::ApiRun(name) => api::run(lab, name)?,
        Route::ApiVersions => Some(api::versions(lab)),
        Route::ApiHosts => Some(api::hosts(lab)),
    };
    let made = made.map(|page| lab.secrets.withhold(page));
    if let Some(page) = made.as_ref().filter(|page| !page.waits) {
        lab.keep(route, page);
    }
    Ok(made)
}
