//! What a host's own earlier runs say of how much a ratio moves from hour to hour.
//!
//! Runs that compared the same builds with the same work some minutes apart are repetitions: what their
//! ratios differ by, beyond what their blocks explain, is what the hour does. Nothing is kept for this:
//! it follows from the records, as everything does.

use crate::judged::Judged;
use crate::store_problem;
use crate::withdrawal::leave_out;
use deltabench_compare::comparison::CellComparison;
use deltabench_compare::foretell;
use deltabench_compare::thresholds::HOUR_APART_MS;
use deltabench_model::fact::MachineName;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{RunState, Store};
use std::collections::BTreeMap;

/// Runs that are read at most, the newest: each is judged anew.
const MOST: usize = 12;

/// What earlier figures may stand for: the cell, whether both sides are one build, and whether each start
/// drew where an executable lies. Equal builds move less from hour to hour than different ones, and what a
/// place for the whole run added to the hours is in the intervals of runs that draw it.
type Kind = (String, bool, bool);

/// Adds to a run of one session what another hour would say, by the pairs of runs that its host had finished
/// before it began. Later runs change nothing, so that a report stays the same.
///
/// Errors: the store cannot be read.
pub(crate) fn add(judged: &mut Judged, store: &Store) -> Result<(), Problem> {
    let own: Vec<Pair> = pairs(&judged.plan).collect();
    if own.is_empty() {
        return Ok(());
    }
    let wanted: Vec<Kind> = own.iter().map(|pair| pair.kind.clone()).collect();
    let earlier = earlier(&judged.run, &wanted, store)?;
    if earlier.is_empty() {
        return Ok(());
    }
    let mut figures: BTreeMap<Kind, BTreeMap<String, Vec<CellComparison>>> = BTreeMap::new();
    for Repetition { run, plan, same } in earlier {
        let withdrawn = store.invalidations(&run).map_err(store_problem)?;
        let mut found = Judged::of(&run, &plan, store)?.into_comparison();
        leave_out(&mut found, &withdrawn);
        for pair in pairs(&plan).filter(|pair| found.host_ok && same.contains(&pair.same)) {
            let cells = found.cells.iter().find(|cell| pair.is(cell));
            let cells = cells.filter(|cell| cell.says_something());
            let sets = figures.entry(pair.kind).or_default();
            sets.entry(pair.same).or_default().extend(cells.cloned());
        }
    }
    foretell(&mut judged.comparison, |cell, metric| {
        let pair = own.iter().find(|pair| pair.is(cell));
        let sets = pair
            .and_then(|pair| figures.get(&pair.kind))
            .into_iter()
            .flatten();
        let blocks = |cell: &CellComparison| Some(cell.metric(metric)?.blocks.clone());
        sets.map(|(_, set)| set.iter().filter_map(blocks).collect())
            .collect()
    });
    Ok(())
}

/// A run that repeats a comparison, or is repeated.
struct Repetition {
    run: String,
    plan: Plan,
    /// The comparisons of it that count, as [`Pair::same`].
    same: Vec<String>,
}

/// A candidate in a cell of a plan.
struct Pair {
    cell: CellId,
    candidate: ServerId,
    kind: Kind,
    /// What two runs must have in common for this to be the same comparison in both.
    same: String,
}

impl Pair {
    fn is(&self, cell: &CellComparison) -> bool {
        self.cell == cell.cell && self.candidate == cell.candidate
    }
}

fn pairs(plan: &Plan) -> impl Iterator<Item = Pair> {
    let server = |id: ServerId| {
        plan.server(id).map(|server| {
            let build = &server.installation;
            format!(
                "{} {} {:?} {:?}",
                build.resolved, build.binary_sha256, server.settings, server.burn_ns
            )
        })
    };
    let base = server(plan.base()).unwrap_or_default();
    // What both sides have in common.
    let held = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        plan.data,
        plan.settings,
        plan.checksums,
        plan.limits,
        plan.cache,
        plan.transport,
        plan.order,
        plan.pins,
        plan.workloads,
        plan.work
    );
    let drawn = plan.draws_executables();
    let candidates: Vec<(ServerId, String)> = { plan.candidates().into_iter() }
        .filter_map(|id| Some((id, server(id)?)))
        .collect();
    CellId::each().zip(&plan.cells).flat_map(move |(id, cell)| {
        let (base, held, candidates) = (base.clone(), held.clone(), candidates.clone());
        candidates.into_iter().map(move |(candidate, server)| Pair {
            cell: id,
            candidate,
            kind: (name(cell), server == base, drawn),
            same: format!(
                "{base} {server} {held} {:?} {}",
                plan.placement(cell),
                name(cell)
            ),
        })
    })
}

fn name(cell: &Cell) -> String {
    format!(
        "{}@{} {} {:?}",
        cell.workload,
        cell.clients,
        cell.state.word(),
        cell.rate
    )
}

/// The newest runs that this host had finished before a run began, and that repeat one of the wanted
/// comparisons in different hours; oldest first.
fn earlier(run: &str, wanted: &[Kind], store: &Store) -> Result<Vec<Repetition>, Problem> {
    let read = || {
        let machine = store.last_fact::<MachineName>(run, None)?;
        let began = store.began_unix_ms(run)?;
        let (Some(machine), Some(began)) = (machine, began) else {
            return Ok(Vec::new());
        };
        let mut runs = Vec::new();
        for summary in store.runs()? {
            let finished = summary.state == RunState::Finished && summary.state_unix_ms < began;
            if !finished || summary.run == run || summary.candidates.is_empty() {
                continue;
            }
            let begun = store.began_unix_ms(&summary.run)?;
            let of = store.last_fact::<MachineName>(&summary.run, None)?;
            if let Some(begun) = begun.filter(|_| of.is_some_and(|of| of.0 == machine.0)) {
                let plan = store.plan(&summary.run)?;
                // Another condition is another question, and what samples or counts is no measurement.
                let other = plan.observing.counting.is_some()
                    || plan.sensitivity.is_some()
                    || plan.samples.is_some();
                if other {
                    continue;
                }
                runs.push((summary.run, plan, begun, summary.state_unix_ms));
            }
        }
        Ok::<_, deltabench_store::StoreError>(runs)
    };
    let mut runs = read().map_err(store_problem)?;
    runs.sort_by_key(|(_, _, begun, _)| *begun);
    // Of runs in one hour only the first counts: they share its luck.
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    let mut number: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<Repetition> = Vec::new();
    for (run, plan, begun, ended) in runs {
        let mut same = Vec::new();
        for pair in pairs(&plan).filter(|pair| wanted.contains(&pair.kind)) {
            let near = last
                .get(&pair.same)
                .is_some_and(|end| begun - end < HOUR_APART_MS);
            if !near {
                last.insert(pair.same.clone(), ended);
                *number.entry(pair.same.clone()).or_default() += 1;
                same.push(pair.same);
            }
        }
        kept.push(Repetition { run, plan, same });
    }
    let repeats = |same: &String| number.get(same).is_some_and(|number| *number > 1);
    kept.retain(|one| one.same.iter().any(repeats));
    let skip = kept.len().saturating_sub(MOST);
    Ok(kept.into_iter().skip(skip).collect())
}
