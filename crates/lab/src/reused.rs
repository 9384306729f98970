//! Servers of an execution that is extended: what earlier runs of the host say of them, through the anchor.
//!
//! Nothing is kept for it: it follows from the runs, and only from those that had ended when the extending
//! run began, so that its report stays the same.

use crate::hosts::RunHost;
use crate::pair::version_key;
use crate::past::Past;
use crate::past_runs::PastRuns;
use crate::series::stored;
use crate::store_problem;
use crate::trend::{HostTrend, trends_of};
use deltabench_compare::comparison::{Metric, Ratio};
use deltabench_compare::fairness::settings_that_differ;
use deltabench_compare::study::{Measured, ViaColumn, ViaFigure, via_verdict};
use deltabench_model::fact::{MachineName, Settings};
use deltabench_model::installation::Setting;
use deltabench_model::occasion::{HostClass, MEASUREMENT_VERSION, Series};
use deltabench_model::plan::{CellId, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Metrics that columns have.
const METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpuPerOperation];

/// Occasions from which on a distant version is judged: of one nobody knows what its hour did.
const LEAST_OF_FAR: usize = 2;

/// What earlier runs stand for in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reused {
    pub columns: Vec<ViaColumn>,
    /// What is to be said of them, and of what could not be used.
    pub notes: Vec<String>,
}

/// What earlier runs are asked for.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The plan that has the anchor as its base.
    pub plan: &'a Plan,
    /// The run that it extends.
    pub extends: &'a str,
    /// The series of its cells.
    pub series: Vec<Series>,
    /// The machine, as runs know it; absent where it cannot keep an identifier.
    pub machine: Option<(String, HostClass)>,
    /// How it is measured.
    pub measured: u32,
    /// Runs that had ended by then, milliseconds since 1970.
    pub before_ms: i64,
    /// The anchor's settings as read back; absent before it was started.
    pub settings: Option<Vec<Setting>>,
}

/// A server of the extended execution that the plan does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierServer {
    pub planned: PlannedServer,
    /// Occasions that have it, the fewest and the most over the cells.
    pub occasions: (usize, usize),
    /// Why it cannot be used, if it cannot: what differs.
    pub why_not: Option<String>,
    /// The runs that have it, oldest first.
    pub measured: Vec<Measured>,
    pub(crate) figures: Vec<ViaFigure>,
}

impl EarlierServer {
    /// Its column, relative to a base that it was compared with through `by`.
    pub(crate) fn column(self, by: &str) -> ViaColumn {
        let server = self.planned.name();
        ViaColumn {
            name: format!("{server} via {by} ({})", occasions(self.occasions)),
            server,
            figures: self.figures,
            measured: self.measured,
        }
    }
}

/// The columns of a run that extends another one; none for any other run.
///
/// Errors: the store cannot be read.
pub fn reused(run: &str, plan: &Plan, store: &Store) -> Result<Reused, Problem> {
    let Some(extends) = plan.extends.as_deref() else {
        return Ok(Reused::default());
    };
    let began = store.began_unix_ms(run).map_err(store_problem)?;
    let host = RunHost::of(run, store).map_err(store_problem)?;
    let (machine, measured) = match host {
        Some(RunHost::Identified { host, measured }) => (Some((host.uid, host.class)), measured),
        _ => (None, MEASUREMENT_VERSION),
    };
    let settings = store.last_fact::<Settings>(run, Some(plan.base()));
    let ask = Ask {
        plan,
        extends,
        series: stored(run, plan, store)?,
        machine,
        measured,
        before_ms: began.unwrap_or(i64::MAX),
        settings: settings.map_err(store_problem)?.map(|Settings(all)| all),
    };
    let anchor = plan.server(plan.base()).map(short).unwrap_or_default();
    let mut reused = Reused::default();
    for server in earlier_servers(&ask, store)? {
        let name = server.planned.name();
        if let Some(why) = &server.why_not {
            let note = format!("{name} of {extends} is not shown: {why}");
            reused.notes.push(note);
            continue;
        }
        reused.columns.push(server.column(&anchor));
    }
    if !reused.columns.is_empty() {
        reused.notes.push(format!(
            "columns with \"via {anchor}\" were not measured in this execution: they come from earlier \
             runs of this host with the same {anchor}; their intervals say what one more run would \
             print, and one occasion of a distant version is not judged"
        ));
    }
    Ok(reused)
}

/// `17.11` of `postgres:17.11`.
pub(crate) fn short(server: &PlannedServer) -> String {
    let name = server.name();
    name.rsplit_once(':')
        .map_or(name.clone(), |(_, end)| end.to_owned())
}

/// `3 occasions`, `1 to 3 occasions`.
fn occasions((least, most): (usize, usize)) -> String {
    match (least, most) {
        (1, 1) => "1 occasion".to_owned(),
        (least, most) if least == most => format!("{most} occasions"),
        (least, most) => format!("{least} to {most} occasions"),
    }
}

/// The servers of what is extended that the plan does not have, oldest execution first, each with what
/// earlier runs say of it, or why they say nothing.
///
/// Errors: the store cannot be read.
pub fn earlier_servers(ask: &Ask<'_>, store: &Store) -> Result<Vec<EarlierServer>, Problem> {
    // Other parts of the same execution are no earlier occasion.
    let own = execution(ask.plan);
    let counts = |past: &Past| own.is_none() || past.brief.execution != own;
    of_servers(wanted(ask, store)?, ask, &counts, store)
}

/// The execution that a plan is a part of.
fn execution(plan: &Plan) -> Option<String> {
    Some(plan.experiment.as_ref()?.execution.clone())
}

/// What runs say of these servers, relative to the base of a plan.
///
/// Errors: the store cannot be read.
pub(crate) fn of_servers(
    wanted: Vec<PlannedServer>,
    ask: &Ask<'_>,
    counts: &dyn Fn(&Past) -> bool,
    store: &Store,
) -> Result<Vec<EarlierServer>, Problem> {
    let (runs, refused) = usable_runs(ask, counts, store)?;
    let trends = trends_of(runs.clone(), store, &METRICS, &|_| Vec::new())?;
    let base = ask.plan.server(ask.plan.base()).map(version_key);
    let mut all = Vec::new();
    for planned in wanted {
        let key = version_key(&planned);
        let mut figures = Vec::new();
        for trend in &trends {
            let at = |key: &str| trend.versions.iter().position(|one| one.identity == key);
            let pair = base.as_deref().and_then(at).zip(at(&key));
            let found = pair.map(|pair| of_trend(trend, pair, ask));
            figures.extend(found.unwrap_or_default());
        }
        let counts = figures.iter().map(|one: &(ViaFigure, usize)| one.1);
        let occasions = (counts.clone().min(), counts.max());
        let figures: Vec<ViaFigure> = figures.into_iter().map(|(figure, _)| figure).collect();
        all.push(EarlierServer {
            occasions: (occasions.0.unwrap_or(0), occasions.1.unwrap_or(0)),
            why_not: match figures.is_empty() {
                true => Some(why_not(ask, &planned, &refused, store)?),
                false => None,
            },
            measured: measured(&key, &runs, store)?,
            planned,
            figures,
        });
    }
    Ok(all)
}

/// Candidates of the extended run, and of those that it extends itself, without those of the plan.
fn wanted(ask: &Ask<'_>, store: &Store) -> Result<Vec<PlannedServer>, Problem> {
    let own: Vec<String> = ask.plan.servers.iter().map(version_key).collect();
    let mut chain = Vec::new();
    let mut next = Some(ask.extends.to_owned());
    while let Some(run) = next.take() {
        let plan = store.plan(&run).map_err(store_problem)?;
        next.clone_from(&plan.extends);
        chain.push(plan);
    }
    let mut wanted: Vec<PlannedServer> = Vec::new();
    for plan in chain.iter().rev() {
        for planned in plan
            .candidates()
            .into_iter()
            .filter_map(|id| plan.server(id))
        {
            let key = version_key(planned);
            let known = wanted.iter().any(|other| version_key(other) == key);
            if !known && !own.contains(&key) && planned.burn_ns.is_none() {
                wanted.push(planned.clone());
            }
        }
    }
    Ok(wanted)
}

/// The runs that have a version, oldest first.
fn measured(key: &str, runs: &[Arc<Past>], store: &Store) -> Result<Vec<Measured>, Problem> {
    let mut all = Vec::new();
    let has = |past: &&Arc<Past>| past.brief.servers.iter().any(|one| version_key(one) == key);
    for past in runs.iter().filter(has) {
        let machine = store.last_fact(&past.name, None).map_err(store_problem)?;
        all.push(Measured {
            began_unix_ms: Some(past.began_ms),
            run: past.name.clone(),
            execution: past.brief.execution.clone(),
            host: machine.map_or_else(String::new, |MachineName(name)| name),
        });
    }
    all.sort();
    Ok(all)
}

/// The figures of a version on a host, with the occasions behind each.
fn of_trend(
    trend: &HostTrend,
    (anchor, version): (usize, usize),
    ask: &Ask<'_>,
) -> Vec<(ViaFigure, usize)> {
    let figure = |(cell, series): (CellId, &Series)| {
        let at = trend
            .cells
            .iter()
            .position(|known| known.key == series.key)?;
        let again = trend.network(at, anchor)?.again(version)?;
        let ends = (again.change.low.exp(), again.change.high.exp());
        let judged = !again.is_far || again.runs >= LEAST_OF_FAR;
        let figure = ViaFigure {
            cell,
            metric: trend.metric,
            ratio: Ratio {
                estimate: again.change.value.exp(),
                ci95: Some(ends),
                ci90: None,
            },
            verdict: judged.then(|| via_verdict(trend.metric, ends, ask.plan.delta)),
            occasions: u32::try_from(again.runs).unwrap_or(u32::MAX),
        };
        Some((figure, again.runs))
    };
    CellId::each().zip(&ask.series).filter_map(figure).collect()
}

/// Why runs may not stand for another one, by their names.
type Refused = BTreeMap<String, String>;

/// The runs that may stand for another one, and why others may not, by their names.
fn usable_runs(
    ask: &Ask<'_>,
    counts: &dyn Fn(&Past) -> bool,
    store: &Store,
) -> Result<(Vec<Arc<Past>>, Refused), Problem> {
    let mut refused = BTreeMap::new();
    let mut usable = Vec::new();
    let is_earlier = |past: &Past| past.ended_ms <= ask.before_ms && counts(past);
    let past = PastRuns::read(store)?;
    for past in past.all().iter().filter(|past| is_earlier(past)) {
        match differs(ask, past, store)? {
            None => usable.push(Arc::clone(past)),
            Some(why) => {
                refused.insert(past.name.clone(), why);
            }
        }
    }
    Ok((usable, refused))
}

/// What keeps a run from standing for another one.
fn differs(ask: &Ask<'_>, past: &Past, store: &Store) -> Result<Option<String>, Problem> {
    let Some((machine, class)) = &ask.machine else {
        return Ok(Some("this machine keeps no identifier".to_owned()));
    };
    let RunHost::Identified { host, measured } = &past.brief.host else {
        return Ok(Some("its host did not identify itself".to_owned()));
    };
    if host.uid != *machine || host.class != *class {
        return Ok(Some("it was measured on another host".to_owned()));
    }
    if *measured != ask.measured {
        return Ok(Some(format!(
            "it was measured in another way (version {measured}, now {})",
            ask.measured
        )));
    }
    let Some(settings) = &ask.settings else {
        return Ok(None);
    };
    let base = ask.plan.server(ask.plan.base()).map(version_key);
    let servers = ServerId::each().zip(&past.brief.servers);
    for (id, _) in servers.filter(|(_, planned)| Some(version_key(planned)) == base) {
        let there = store.last_fact::<Settings>(&past.name, Some(id));
        // A copy of the base is not asked for its settings.
        if let Some(Settings(there)) = there.map_err(store_problem)? {
            let names = settings_that_differ(settings, &there);
            if !names.is_empty() {
                return Ok(Some(format!(
                    "settings of the anchor were others: {}",
                    names.join(", ")
                )));
            }
        }
    }
    Ok(None)
}

/// Why no run says anything of a version.
fn why_not(
    ask: &Ask<'_>,
    planned: &PlannedServer,
    refused: &BTreeMap<String, String>,
    store: &Store,
) -> Result<String, Problem> {
    let mut run = Some(ask.extends.to_owned());
    while let Some(name) = run {
        let plan = store.plan(&name).map_err(store_problem)?;
        let has = |one: &PlannedServer| version_key(one) == version_key(planned);
        if plan.servers.iter().any(has) {
            if let Some(why) = refused.get(&name) {
                return Ok(why.clone());
            }
            let base = |plan: &Plan| plan.server(plan.base()).map(version_key);
            if base(&plan) != base(ask.plan) {
                return Ok("it was measured beside another build of the anchor".to_owned());
            }
            if let Some(why) = other_cells(ask, &stored(&name, &plan, store)?) {
                return Ok(why);
            }
        }
        run = plan.extends;
    }
    Ok("its run is not finished, was withdrawn, or its host was unfit".to_owned())
}

/// What differs between cells of the same name.
pub(crate) fn other_cells(ask: &Ask<'_>, there: &[Series]) -> Option<String> {
    for own in &ask.series {
        let same = there.iter().find(|other| other.slug == own.slug)?;
        if same.key == own.key {
            return None;
        }
        let parsed = |series: &Series| {
            let value: Option<serde_json::Value> = serde_json::from_str(&series.content).ok();
            value?.as_object().cloned()
        };
        let (one, other) = parsed(own).zip(parsed(same))?;
        let names: Vec<&String> = { one.keys().chain(other.keys()) }
            .filter(|name| one.get(*name) != other.get(*name))
            .collect();
        if let Some(name) = names.first() {
            return Some(format!(
                "{} is another cell now: `{name}` differs",
                own.slug
            ));
        }
    }
    None
}
