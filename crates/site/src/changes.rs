//! What changed between versions: all of it by state, and each change with what it rests on.

use crate::digest::digest;
use crate::frame::{
    FILTER, Frame, PART, framed, host_link, host_name, host_of, moment, run_link, waits,
};
use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_compare::comparison::{Better, Metric, Ratio};
use deltabench_compare::words::p;
use deltabench_lab::{Change, HostTrend, Version, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::{metric_word, words};
use deltabench_store::{Triage, TriageState};
use deltabench_trend::{By, Estimate, State, Suspicion};
use maud::{Markup, html};

/// Characters of a commit or a hash that people read.
const SHORT: usize = 12;

/// The states in the order of the page, with their words.
const STATES: [(State, &str); 3] = [
    (State::Confirmed, "confirmed"),
    (State::Suspected, "suspected"),
    (State::Refuted, "refuted"),
];

/// A change with its host and what people said of it.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) host: &'a HostTrend,
    pub(crate) change: &'a Change,
    said: Option<&'a Triage>,
}

impl<'a> Told<'a> {
    /// Of all changes of a host, in their order.
    pub(crate) fn of(host: &'a HostTrend, said: &'a [Triage]) -> Vec<Self> {
        let all = host.changes.iter();
        all.map(|change| Self::new(host, change, said)).collect()
    }

    fn new(host: &'a HostTrend, change: &'a Change, said: &'a [Triage]) -> Self {
        Self {
            host,
            change,
            said: said.iter().rev().find(|one| one.change == change.id),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.change.suspicion.state
    }

    /// The word of its state.
    pub(crate) fn word(&self) -> &'static str {
        let mut all = STATES.into_iter();
        let found = all.find(|(state, _)| *state == self.state());
        found.map_or("", |(_, word)| word)
    }

    /// What somebody says it is, unless that was taken back.
    pub(crate) fn explained(&self) -> Option<&'a Triage> {
        self.said.filter(|said| said.state != TriageState::Open)
    }

    fn is_worse(&self) -> bool {
        self.change.suspicion.falls == (self.host.metric.better() == Better::Higher)
    }

    /// The class of its colour: only what is confirmed and unexplained has one.
    pub(crate) fn class(&self) -> &'static str {
        match (self.state(), self.explained(), self.is_worse()) {
            (State::Confirmed, None, true) => "worse",
            (State::Confirmed, None, false) => "better",
            (State::Suspected, None, _) => "open",
            _ => "void",
        }
    }

    /// `slower`, `less CPU`.
    pub(crate) fn way(&self) -> &'static str {
        match (self.is_worse(), self.host.metric) {
            (true, Metric::Throughput) => "slower",
            (false, Metric::Throughput) => "faster",
            (true, _) => "more CPU",
            (false, _) => "less CPU",
        }
    }

    fn version(&self, at: usize) -> Option<&'a Version> {
        self.host.versions.get(at)
    }

    /// `17.5 → 17.6`: both ends by name.
    pub(crate) fn between(&self) -> String {
        let one = &self.change.suspicion;
        let name = |at: usize| self.version(at).map_or("", |known| known.name.as_str());
        format!("{} → {}", name(one.from), name(one.to))
    }

    pub(crate) fn cell(&self) -> &'a str {
        let cell = self.host.cells.get(self.change.suspicion.series);
        cell.map_or("", |cell| cell.name.as_str())
    }

    /// The size that later runs found; the run that raised it was chosen for being large.
    fn size(&self) -> Option<String> {
        let found = self.change.suspicion.found?;
        Some(figure(&found.change))
    }

    /// `confirmed slower, -2.3 % [-3.1, -1.5]`.
    pub(crate) fn in_short(&self) -> String {
        let size = self
            .size()
            .map_or_else(String::new, |size| format!(", {size}"));
        format!("{} {}{size}", self.word(), self.way())
    }

    pub(crate) fn route(&self) -> Route {
        Route::Change(self.change.id.clone())
    }
}

/// The list.
///
/// Errors: the store cannot be read.
pub(crate) fn list(lab: &mut Lab, links: &Links) -> Result<Page, Problem> {
    let (hosts, left) = lab.trends_so_far()?;
    let lab = &*lab;
    let said = lab.store.triages().map_err(store_problem)?;
    let all: Vec<Told<'_>> = hosts
        .iter()
        .flat_map(|host| Told::of(host, &said))
        .collect();
    let body = html! {
        h1 { (sentence(&all)) }
        @if lab.is_part { p { (PART) } } @else {
            p.muted {
                "A change is between two versions that one run has measured. A run makes it suspected; it is "
                "confirmed by later runs of both, in other hours, and the figure is theirs alone. "
                code { "deltabench changes" } " says how to measure one again."
            }
            (waits(lab, left))
            @if !all.is_empty() { (filter(all.len())) }
            @for (state, word) in STATES {
                @let own = of_state(&all, state);
                @if !own.is_empty() {
                    section id=(word) {
                        h2 { (upper(word)) }
                        (table(&own, lab, links))
                    }
                }
            }
        }
    };
    let frame = Frame {
        title: "Changes",
        links,
        body,
        script: Some(FILTER),
    };
    Ok(Page::html(framed(&frame)).that_waits(left > 0))
}

/// The newest first.
fn of_state<'a>(all: &[Told<'a>], state: State) -> Vec<Told<'a>> {
    let own = all.iter().rev().filter(|one| one.state() == state);
    own.copied().collect()
}

fn upper(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn sentence(all: &[Told<'_>]) -> String {
    let number = |wanted: State| {
        let own = all
            .iter()
            .filter(|one| one.state() == wanted && one.explained().is_none());
        own.count()
    };
    match (number(State::Confirmed), number(State::Suspected)) {
        (0, 0) => "No change between versions is confirmed or suspected".to_owned(),
        (confirmed, suspected) => format!(
            "{} confirmed, {suspected} suspected",
            words::plural(count(confirmed), "change")
        ),
    }
}

fn filter(number: usize) -> Markup {
    html! {
        form.controls.filter {
            label { span { "text" } input type="search" name="q" placeholder="cell or version"; }
            label { span { "metric" } select name="metric" {
                option value="" { "both" }
                @for metric in crate::lab::METRICS {
                    option value=(metric.key()) { (metric_word(metric)) }
                }
            } }
            label { span { "people say" } select name="said" {
                option value="" { "anything" }
                option value="open" { "nothing yet" }
                option value="explained" { "explained" }
                option value="expected" { "expected" }
            } }
            span.muted aria-live="polite" { b #count { (number) } " shown" }
        }
    }
}

/// A row for each change.
pub(crate) fn table(changes: &[Told<'_>], lab: &Lab, links: &Links) -> Markup {
    html! {
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "change" } th scope="col" { "cell" } th scope="col" { "between" }
                th scope="col" { "size, by later runs" } th scope="col" { "raised by" }
                th scope="col" { "host" } th scope="col" { "people say" }
            } }
            tbody { @for told in changes { (row(told, lab, links)) } }
        } }
    }
}

fn row(told: &Told<'_>, lab: &Lab, links: &Links) -> Markup {
    let one = &told.change.suspicion;
    let text = lab.secrets.clean(&format!(
        "{} {} {}",
        told.change.id,
        told.cell(),
        told.between()
    ));
    let run = told.host.runs.get(one.raised);
    let said = told.explained().map_or("open", |said| said.state.word());
    html! {
        tr data-text=(text.to_lowercase()) data-metric=(told.host.metric.key()) data-said=(said) {
            th scope="row" {
                a href=(links.to(&told.route())) { b class=(told.class()) { (told.word()) " " (told.way()) } }
            }
            td { (told.cell()) }
            td.sides { (told.between()) }
            td.figures data-name="size" { (told.size().as_deref().unwrap_or("not tried yet")) }
            td { @if let Some(run) = run.and_then(|run| lab.entry(&run.name)) {
                (run_link(run, links)) " " small { (moment(run.started_unix_ms)) }
            } }
            td { @if let Some(host) = host_of(lab, told.host) { (host_link(host, lab, links)) } }
            td { @if let Some(said) = told.explained() { b { (said.state.word()) } ": " (said.text) } }
        }
    }
}

/// A change; `None` for one that no run shows.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab, id: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let hosts = match lab.trends()? {
        Ok(hosts) => hosts,
        Err(left) => return Ok(Some(later(lab, left, links))),
    };
    let lab = &*lab;
    let said = lab.store.triages().map_err(store_problem)?;
    let mut all = { hosts.iter() }.flat_map(|host| host.changes.iter().map(move |one| (host, one)));
    let Some((host, change)) = all.find(|(_, change)| change.id == id) else {
        return Ok(None);
    };
    let told = Told::new(host, change, &said);
    let title = format!("{} {}, {}", told.cell(), told.way(), told.between());
    let history: Vec<&Triage> = said.iter().filter(|one| one.change == id).collect();
    let body = html! {
        h1 { (title) }
        p { b class=(told.class()) { (told.word()) } ": " (verdict(&told)) }
        (ends(&told, lab, links))
        section { h2 { "What it rests on" } (story(&told, lab, links)) }
        section #triage {
            h2 { "What people say" }
            @if history.is_empty() {
                p { "Nothing yet: " code { "deltabench triage " (id) " --explained TEXT" } "." }
            }
            ul.findings { @for one in &history {
                li { b { (one.state.word()) } ": " (one.text) " " small { (moment(one.at_unix_ms)) } }
            } }
        }
    };
    let frame = Frame {
        title: &title,
        links,
        body,
        script: None,
    };
    Ok(Some(Page::html(framed(&frame))))
}

/// What is shown while runs are not known yet.
pub(crate) fn later(lab: &Lab, left: usize, links: &Links) -> Page {
    let frame = Frame {
        title: "Not known yet",
        links,
        body: html! { h1 { "Not known yet" } (waits(lab, left)) },
        script: None,
    };
    Page::html(framed(&frame)).for_later()
}

/// How sure it is, and what it does not say.
fn verdict(told: &Told<'_>) -> Markup {
    let one = &told.change.suspicion;
    html! {
        @match &one.found {
            None => { "no later run has both versions yet." },
            Some(found) => {
                (metric_word(told.host.metric)) " " b { (figure(&found.change)) } " in "
                (words::plural(count(one.tries.len()), "later run")) " (" (p(found.p))
                ", at most " (words::p_value(found.limit)) " here)."
                @if one.state == State::Confirmed && !one.matters() {
                    " Less than δ = " (words::share(one.delta))
                    ": the place of code in memory may do as much."
                }
            },
        }
        @if let Some((since, runs)) = &one.since {
            " Since then " (figure(since)) " in " (words::plural(count(*runs), "run")) "."
        }
        @if told.host.holds_another(told.change) {
            " Another confirmed change lies inside of this range."
        }
    }
}

/// Both versions, with commits where they are known.
fn ends(told: &Told<'_>, lab: &Lab, links: &Links) -> Markup {
    let one = &told.change.suspicion;
    let end = |word: &str, at: usize| {
        let Some(version) = told.version(at) else {
            return html! {};
        };
        let build = &version.installation;
        let commit = build
            .recipe
            .as_ref()
            .and_then(|recipe| recipe.source.get(..SHORT));
        let known = lab.measured_servers().get(&version.identity);
        let server = known.map(|known| &known.server);
        html! { div {
            dt { (word) }
            dd {
                @match server {
                    Some(server) => {
                        a href=(links.to(&Route::Version(server.version.key.clone()))) { (version.name) }
                    },
                    None => (version.name),
                }
                br; span.hash {
                    @if let Some(commit) = commit { "commit " (commit) ", " }
                    "executable " (build.binary_sha256.get(..SHORT).unwrap_or("not known"))
                }
            }
        } }
    };
    html! { dl.ends { (end("before", one.from)) (end("after", one.to)) } }
}

/// Suspicion and tries as a list, and where to look further.
fn story(told: &Told<'_>, lab: &Lab, links: &Links) -> Markup {
    let one = &told.change.suspicion;
    let run = |at: usize| {
        let entry = told.host.runs.get(at).and_then(|run| lab.entry(&run.name));
        html! { @if let Some(entry) = entry {
            (run_link(entry, links)) " " small { (moment(entry.started_unix_ms)) }
        } }
    };
    let ends = told.version(one.from).zip(told.version(one.to));
    let cell = told.host.cells.get(one.series);
    let host = host_of(lab, told.host);
    html! {
        ol {
            li {
                @match one.by {
                    By::Step => { "Suspected by " (run(one.raised)) ", which has both side by side." },
                    By::Level => {
                        "Suspected by the levels of all runs up to " (run(one.raised)) "."
                        @if let Some(first) = told.version(one.earliest) {
                            " " (first.name) " is the first version that may differ."
                        }
                    },
                }
                " Its own figure is not shown: it was chosen for being large."
            }
            @for at in &one.tries { li { "Measured again by " (run(*at)) "." } }
            @if one.tries.is_empty() { li { "Not measured again yet." } }
        }
        ul {
            @if let Some((cell, host)) = cell.zip(host) {
                li {
                    a href=(links.to(&Route::trend(&cell.key, &host.key))) { (cell.name) " over time" }
                    " on " (host_name(host, lab))
                }
            }
            @if let Some((from, to)) = ends.filter(|_| links.served() || has_page(one)) {
                li {
                    a href=(links.to(&Route::Pair(digest(&from.identity), digest(&to.identity)))) {
                        "all cells of these two versions"
                    }
                }
            }
        }
    }
}

/// Whether the versions of a change are compared on a page where pages are files: those of confirmed ones.
pub(crate) fn has_page(change: &Suspicion) -> bool {
    change.state == State::Confirmed
}

/// The pages of all changes.
///
/// Errors: the store cannot be read.
pub(crate) fn all(lab: &mut Lab) -> Result<Vec<Route>, Problem> {
    if lab.is_part {
        return Ok(Vec::new());
    }
    let hosts = lab.trends()?.unwrap_or_default();
    let changes = hosts.iter().flat_map(|host| &host.changes);
    Ok(changes.map(|one| Route::Change(one.id.clone())).collect())
}

/// `-2.3 % [-3.1, -1.5]`.
pub(crate) fn figure(estimate: &Estimate) -> String {
    words::change_interval(&Ratio {
        estimate: estimate.value.exp(),
        ci95: Some((estimate.low.exp(), estimate.high.exp())),
        ci90: None,
    })
}
