//! The pages of a lab, and where they are.

/// A page of a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// What this lab is and what changed in it.
    Home,
    /// All runs.
    Runs,
    /// A run's report, by the run's name.
    Run(String),
    /// What a run has measured so far; only where pages are served.
    Live(String),
    /// The tables of an experiment's execution.
    Execution(String),
    /// A bisection or a replay: the page that its command wrote into the lab.
    Stored(String),
    /// All builds.
    Versions,
    /// A build, by its key.
    Version(String),
    /// All series.
    Cells,
    /// A cell over time on one host: the keys of both.
    Cell(String, String),
    /// All cells over time, as small bands.
    Trends,
    /// The versions of a cell on one host: the keys of both.
    Trend(String, String),
    /// All changes between versions.
    Changes,
    /// A change, by its identifier.
    Change(String),
    /// Any two versions, to be chosen.
    Compare,
    /// Two versions or servers of runs, as they are asked for: the second relative to the first.
    Pair(String, String),
    /// All hosts.
    Hosts,
    /// A host, by its key.
    Host(String),
    /// Everything that has a name.
    Search,
    /// The script that all reports of runs share.
    Script,
    /// Atom of what changed.
    Feed,
    /// The list of runs as JSON.
    ApiRuns,
    /// The JSON report of a run.
    ApiRun(String),
    /// The list of builds as JSON.
    ApiVersions,
    /// The list of hosts as JSON.
    ApiHosts,
    /// Changes between versions as JSON.
    ApiChanges,
}

/// The first parts of the paths of things that have names.
const RUN: &str = "run";
const EXECUTION: &str = "execution";
const STORED: &str = "stored";
const VERSION: &str = "version";
const CELLS: &str = "cells";
const HOST: &str = "host";
const COMPARE: &str = "compare";
const TREND: &str = "trend";
const CHANGE: &str = "change";
/// What the ends of a comparison are called in an address.
const ENDS: (&str, &str) = ("base", "with");
const API: &str = "api/v1";

/// Characters of a series' key that are enough to tell cells of one lab apart.
const KEY: usize = 16;

impl Route {
    /// The versions of a cell by the whole key of its series, on a host.
    pub(crate) fn trend(series: &str, host: &str) -> Self {
        Self::Trend(series.chars().take(KEY).collect(), host.to_owned())
    }

    /// The page at a path; of its query only the ends of a comparison count. `None` where there is none. No
    /// path leads out of the lab: it is taken apart, and its parts are only ever compared with names that the
    /// lab has.
    pub fn of_path(path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let safe = |part: &str| !part.is_empty() && segment(part) == part && !part.starts_with('.');
        let path = path.strip_prefix('/')?;
        let parts: Vec<&str> = path.split('/').collect();
        if path.is_empty() {
            return Some(Self::Home);
        }
        if !parts.iter().all(|part| safe(part)) {
            return None;
        }
        let owned = |name: &str| name.to_owned();
        Some(match parts.as_slice() {
            ["runs"] => Self::Runs,
            ["versions"] => Self::Versions,
            ["cells"] => Self::Cells,
            ["hosts"] => Self::Hosts,
            [COMPARE] => match (asked(query, ENDS.0), asked(query, ENDS.1)) {
                (Some(base), Some(with)) => Self::Pair(base, with),
                _ => Self::Compare,
            },
            ["search"] => Self::Search,
            ["report.js"] => Self::Script,
            ["feed.xml"] => Self::Feed,
            [RUN, name] => Self::Run(owned(name)),
            [RUN, name, "live"] => Self::Live(owned(name)),
            [EXECUTION, name] => Self::Execution(owned(name)),
            [STORED, name] => Self::Stored(owned(name)),
            [VERSION, key] => Self::Version(owned(key)),
            [HOST, key] => Self::Host(owned(key)),
            ["trends"] => Self::Trends,
            ["changes"] => Self::Changes,
            [CHANGE, id] => Self::Change(owned(id)),
            [folder @ (CELLS | TREND), keys] => {
                let (cell, host) = keys.split_once('.')?;
                match *folder {
                    TREND => Self::Trend(owned(cell), owned(host)),
                    _ => Self::Cell(owned(cell), owned(host)),
                }
            }
            ["api", "v1", "runs.json"] => Self::ApiRuns,
            ["api", "v1", "versions.json"] => Self::ApiVersions,
            ["api", "v1", "hosts.json"] => Self::ApiHosts,
            ["api", "v1", "changes.json"] => Self::ApiChanges,
            ["api", "v1", RUN, name] => Self::ApiRun(owned(name.strip_suffix(".json")?)),
            _ => return None,
        })
    }

    /// Its path where pages are served.
    pub fn path(&self) -> String {
        match self {
            Self::Home => "/".to_owned(),
            Self::Live(name) => format!("/{RUN}/{}/live", segment(name)),
            Self::Pair(base, with) => {
                let (base, with) = (written(base), written(with));
                format!("/{COMPARE}?{}={base}&{}={with}", ENDS.0, ENDS.1)
            }
            Self::Script
            | Self::Feed
            | Self::ApiRuns
            | Self::ApiRun(_)
            | Self::ApiVersions
            | Self::ApiHosts
            | Self::ApiChanges => format!("/{}", self.file()),
            _ => {
                let file = self.file();
                format!("/{}", file.strip_suffix(".html").unwrap_or(&file))
            }
        }
    }

    /// Its file in a published site, relative to the site's directory.
    pub fn file(&self) -> String {
        let named = |folder: &str, name: &str| format!("{folder}/{}.html", segment(name));
        match self {
            Self::Home => "index.html".to_owned(),
            Self::Runs => "runs.html".to_owned(),
            // A published site has no run under way: the report says how far it is.
            Self::Run(name) | Self::Live(name) => named(RUN, name),
            Self::Execution(name) => named(EXECUTION, name),
            Self::Stored(name) => named(STORED, name),
            Self::Versions => "versions.html".to_owned(),
            Self::Version(key) => named(VERSION, key),
            Self::Cells => "cells.html".to_owned(),
            Self::Cell(cell, host) => named(CELLS, &format!("{cell}.{host}")),
            Self::Trends => "trends.html".to_owned(),
            Self::Trend(cell, host) => named(TREND, &format!("{cell}.{host}")),
            Self::Changes => "changes.html".to_owned(),
            Self::Change(id) => named(CHANGE, id),
            Self::Compare => "compare.html".to_owned(),
            Self::Pair(base, with) => named(COMPARE, &format!("{base}.{with}")),
            Self::Hosts => "hosts.html".to_owned(),
            Self::Host(key) => named(HOST, key),
            Self::Search => "search.html".to_owned(),
            Self::Script => "report.js".to_owned(),
            Self::Feed => "feed.xml".to_owned(),
            Self::ApiRuns => format!("{API}/runs.json"),
            Self::ApiRun(name) => format!("{API}/{RUN}/{}.json", segment(name)),
            Self::ApiVersions => format!("{API}/versions.json"),
            Self::ApiHosts => format!("{API}/hosts.json"),
            Self::ApiChanges => format!("{API}/changes.json"),
        }
    }
}

/// A name as part of a path, on disk and in addresses alike: what is no letter, digit, `.`, `_`, `+` or `-`
/// becomes `_`.
pub(crate) fn segment(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let text = name.chars().map(|c| if kept(c) { c } else { '_' });
    text.collect()
}

/// A value of a query; `None` where it is absent or empty.
fn asked(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let value = read(value);
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// What a form wrote into a query: blanks as `+`, and bytes as `%3A`.
fn read(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        // A number may have a sign before it, and a byte of an address has none.
        let hex = hex.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value as it is written into a query.
fn written(value: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    let of = |byte: u8| match kept(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.bytes().map(of).collect()
}

/// How pages refer to each other.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    /// Folders above the page, where pages are files; absent where they are served.
    depth: Option<usize>,
}

impl Links {
    /// Those of a page: relative for a published one.
    pub(crate) fn of(route: &Route, published: bool) -> Self {
        let depth = route.file().matches('/').count();
        Self {
            depth: published.then_some(depth),
        }
    }

    /// Whether pages are served, and any of them can be asked for.
    pub(crate) fn served(&self) -> bool {
        self.depth.is_none()
    }

    /// Where a page is, seen from here.
    pub(crate) fn to(&self, route: &Route) -> String {
        match self.depth {
            None => route.path(),
            Some(depth) => format!("{}{}", "../".repeat(depth), route.file()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_back_to_its_page() {
        let name = || "20261124-193847-4e97".to_owned();
        let routes = [
            Route::Home,
            Route::Runs,
            Route::Run(name()),
            Route::Live(name()),
            Route::Execution(name()),
            Route::Stored(name()),
            Route::Versions,
            Route::Version(name()),
            Route::Cells,
            Route::Cell("ab".to_owned(), "cd".to_owned()),
            Route::Trends,
            Route::Trend("ab".to_owned(), "cd".to_owned()),
            Route::Changes,
            Route::Change("0123abcd".to_owned()),
            Route::Compare,
            Route::Pair(name(), "postgres:18.6 jit=on & more+".to_owned()),
            Route::Hosts,
            Route::Host(name()),
            Route::Search,
            Route::Script,
            Route::Feed,
            Route::ApiRuns,
            Route::ApiRun(name()),
            Route::ApiVersions,
            Route::ApiHosts,
            Route::ApiChanges,
        ];
        for route in routes {
            assert_eq!(Route::of_path(&route.path()), Some(route.clone()));
        }
    }

    #[test]
    fn no_path_leads_out_of_the_lab() {
        let bad = [
            "",
            "runs",
            "/../x",
            "/run/..",
            "/run/.a",
            "//runs",
            "/run/a%2fb",
            "/run/",
            "/x",
        ];
        for path in bad {
            assert_eq!(Route::of_path(path), None, "{path}");
        }
    }

    #[test]
    fn only_two_digits_after_a_percent_sign_are_a_byte() {
        assert_eq!(read("a+b%3A%41%2b"), "a b:A+");
        assert_eq!(read("5%+5%zz%é%4"), "5% 5%zz%é%4");
    }

    #[test]
    fn links_of_files_climb_and_those_of_a_server_do_not() {
        let run = Route::Run("r".to_owned());
        assert_eq!(Links::of(&run, true).to(&Route::Home), "../index.html");
        assert_eq!(Links::of(&run, false).to(&Route::Runs), "/runs");
        let api = Links::of(&Route::ApiRun("r".to_owned()), true);
        assert_eq!(api.to(&run), "../../../run/r.html");
    }
}
