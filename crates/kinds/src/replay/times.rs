//! What the times of a replay say: of the whole workload, and of each statement.

use super::budget::{LEAST_SECONDS, is_closed, seconds_when_asked, shares};
use super::failures::{Failed, Failures};
use super::mix::MixRecord;
use super::mixed::mixed;
use super::record::{VisitRecord, whole_visits};
use super::setup_of;
use super::visit::{NOTHING_FITS, ROWS_DIFFER, ROWS_VARY, UNEQUAL};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_compare::impact::ServerTimes;
use deltabench_compare::words::{more, things};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::replayed::{
    PlanCause, ReplayTimes, Replayed, StatementTime, TimeParts, TimeRatio, TimeVerdict, WeightedBy,
    WorkloadTime,
};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, index, to_f64};
use deltabench_model::work::replay::{ReplaySetup, TimedStatement, plan_place, report_place};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::{geometric_mean, mean};
use std::collections::{BTreeMap, BTreeSet};

/// Adds to a replay what its visits say. `comparison` is what all cells say, corrected for their number.
///
/// Errors: a record that cannot be read.
pub fn add_times(
    replayed: &mut Replayed,
    plan: &Plan,
    records: &[Record],
    comparison: &Comparison,
) -> Result<(), Problem> {
    let setup = setup_of(&plan.work)?;
    let mut measured = Measured::of(plan, setup, records, comparison)?;
    measured.weigh();
    for (cell, timed) in CellId::each().zip(&setup.statements) {
        let place = usize::try_from(timed.place).ok();
        let statement = place.and_then(|place| replayed.statements.get_mut(place));
        for verdict in statement
            .into_iter()
            .flat_map(|statement| &mut statement.verdicts)
        {
            let server = ServerId::at(plan_place(verdict.server));
            verdict.time = measured.statement((cell, timed), server);
            if let Some(old) = &mut verdict.old_plan {
                old.ratio = measured.with_old_plan(cell, timed, server);
                old.cause = cause(verdict.time.as_ref(), old.ratio);
            }
        }
    }
    replayed.times = Some(measured.whole());
    Ok(())
}

/// Everything that was measured.
struct Measured<'a> {
    plan: &'a Plan,
    setup: &'a ReplaySetup,
    comparison: &'a Comparison,
    /// By block: of the blocks in which all servers were visited.
    visits: BTreeMap<(CellId, ServerId), BTreeMap<u32, VisitRecord>>,
    failures: Failures,
    slices: Vec<Slice>,
    /// Of the workload's time, by cell.
    shares: Vec<f64>,
    times: BTreeMap<ServerId, ServerTimes>,
    /// What each cell is of the workload that is told of a candidate; 0 if it is not in it.
    in_workload: BTreeMap<ServerId, Vec<f64>>,
}

impl<'a> Measured<'a> {
    fn of(
        plan: &'a Plan,
        setup: &'a ReplaySetup,
        records: &[Record],
        comparison: &'a Comparison,
    ) -> Result<Self, Problem> {
        let (mut slices, mut visits) = (Vec::new(), BTreeMap::new());
        let mut failures = Failures::default();
        let whole = whole_visits(records, plan.servers.len());
        for record in records {
            let is_whole = whole.contains(&(record.block, record.cell));
            if let Some(mix) = MixRecord::read(record)? {
                failures.add_mix((record.block, record.cell), &mix);
                if !is_whole {
                    continue;
                }
                slices.extend(mix.slices((record.block, record.cell, record.server)));
                continue;
            }
            let Some(visit) = VisitRecord::read(record)? else {
                continue;
            };
            failures.add((record.block, record.cell), &visit);
            if visit.failed.is_some() || !is_whole {
                continue;
            }
            let place = (record.block, record.cell, record.server);
            let statement = setup.statements.get(record.cell.index());
            slices.extend(statement.and_then(|statement| visit.slice(place, statement)));
            let of: &mut BTreeMap<_, _> = visits.entry((record.cell, record.server)).or_default();
            of.insert(record.block, visit);
        }
        let others = plan.candidates().into_iter().chain(plan.placebo());
        let times = others.map(|server| (server, ServerTimes::of(plan, &slices, server)));
        Ok(Self {
            plan,
            setup,
            comparison,
            visits,
            failures,
            shares: shares(plan, setup, &slices),
            times: times.collect(),
            slices,
            in_workload: BTreeMap::new(),
        })
    }

    /// Finds out what the parts of each candidate's workload are: what a part adds to it, and what the whole
    /// is said to take, are of the same time. Captured shares stay shares of all captured time.
    fn weigh(&mut self) {
        let candidates = self.plan.candidates().into_iter();
        let weighed = candidates.map(|server| {
            let mut parts = self.comparable(report_place(server.index()));
            let sum: f64 = parts.iter().sum();
            if self.setup.weighted_by == WeightedBy::Calls && sum > 0.0 {
                parts.iter_mut().for_each(|part| *part /= sum);
            }
            (server, parts)
        });
        self.in_workload = weighed.collect();
    }

    /// The copies of the base that candidates are compared with.
    fn controls(&self) -> impl Iterator<Item = ServerId> {
        std::iter::once(self.plan.base()).chain(self.plan.second_control())
    }

    fn share(&self, cell: CellId) -> f64 {
        self.shares.get(cell.index()).copied().unwrap_or(0.0)
    }

    /// What the times of a statement say of a candidate; absent if nothing was measured.
    fn statement(
        &self,
        (cell, timed): (CellId, &TimedStatement),
        server: ServerId,
    ) -> Option<StatementTime> {
        let mut cells = self.comparison.cells.iter();
        let found = cells.find(|found| found.cell == cell && found.candidate == server)?;
        let mut metrics = found.metrics.iter();
        let speed = metrics.find(|metric| metric.metric == Metric::Throughput)?;
        // Of throughput, so that the ends change places.
        let ratio = TimeRatio {
            estimate: 1.0 / speed.ratio.estimate,
            low: speed.ratio.ci95.map(|(_, high)| 1.0 / high),
            high: speed.ratio.ci95.map(|(low, _)| 1.0 / low),
        };
        let share = self.share(cell);
        // What failed in some blocks has only the others, which says nothing of it; but for a single
        // conflict.
        let failed = self.failures.finally(cell);
        let part = self.in_workload.get(&server);
        let part = part.and_then(|parts| parts.get(cell.index())).copied();
        let part = part.unwrap_or(0.0);
        let adds = |ratio: f64| part * (ratio - 1.0);
        let times = self.times.get(&server);
        let hardly = times.is_some_and(|times| is_closed(self.setup, (cell, share), times));
        let (verdict, why) = match failed {
            Some(failed) => (TimeVerdict::Unfit, Some(self.failed_words(failed))),
            None => verdict(found, hardly),
        };
        let visits = self.visits.get(&(cell, server)).into_iter();
        let visits = visits.flat_map(BTreeMap::values);
        Some(StatementTime {
            verdict,
            why,
            ratio,
            impact: (part > 0.0).then(|| TimeRatio {
                estimate: adds(ratio.estimate),
                low: ratio.low.map(adds),
                high: ratio.high.map(adds),
            }),
            delta: found.delta,
            base_ms: 1e3 / speed.base,
            candidate_ms: 1e3 / speed.candidate,
            blocks: found.blocks,
            executions: visits.map(VisitRecord::executions).sum(),
            parts: self.parts(cell, timed, server),
        })
    }

    /// The time of a candidate with the plans of the base / of the base; a t interval over blocks.
    fn with_old_plan(
        &self,
        cell: CellId,
        timed: &TimedStatement,
        server: ServerId,
    ) -> Option<TimeRatio> {
        let controls = self
            .controls()
            .map(|control| self.visits.get(&(cell, control)));
        let controls: Vec<&BTreeMap<u32, VisitRecord>> = controls.collect::<Option<_>>()?;
        let log = |(block, visit): (&u32, &VisitRecord)| {
            let old = visit.old_plan.as_ref()?;
            // The drawn tuples, which all have.
            let has = |place: u32| old.tuples.iter().any(|tuple| tuple.place == place);
            let control =
                |visits: &&BTreeMap<u32, VisitRecord>| visits.get(block)?.mean_ns(timed, has);
            let base = controls.iter().map(control).collect::<Option<Vec<f64>>>()?;
            Some(old.mean_ns(timed, |_| true)?.ln() - geometric_mean(&base)?.ln())
        };
        let visits = self.visits.get(&(cell, server))?.iter();
        let logs: Vec<f64> = visits.filter_map(log).collect();
        let interval = t_interval(&logs, 0.95).ok();
        Some(TimeRatio {
            estimate: mean(&logs)?.exp(),
            low: interval.map(|interval| interval.low.exp()),
            high: interval.map(|interval| interval.high.exp()),
        })
    }

    /// The time of the tuples with another plan, and of the rest.
    fn parts(&self, cell: CellId, timed: &TimedStatement, server: ServerId) -> Option<TimeParts> {
        let number = u32::try_from(server.index()).ok()?;
        let tuples = timed.tuples.iter();
        let changed: BTreeSet<u32> = tuples
            .filter(|tuple| tuple.changed.contains(&number))
            .map(|tuple| tuple.place)
            .collect();
        let ratio = |wanted: bool| {
            let mean = |server: ServerId| {
                let visits = self.visits.get(&(cell, server))?;
                let of = |visit: &VisitRecord| {
                    visit.mean_ns(timed, |place| changed.contains(&place) == wanted)
                };
                let means: Vec<f64> = visits.values().filter_map(of).collect();
                (!means.is_empty()).then(|| means.iter().sum::<f64>() / to_f64(count(means.len())))
            };
            let controls = self.controls().map(mean).collect::<Option<Vec<f64>>>()?;
            Some(mean(server)? / geometric_mean(&controls)?)
        };
        Some(TimeParts {
            changed: ratio(true)?,
            changed_tuples: count(changed.len()),
            same: ratio(false)?,
        })
    }

    fn whole(&self) -> ReplayTimes {
        let placebo = self.plan.placebo();
        let placebo = placebo.and_then(|server| Some((None, self.times.get(&server)?)));
        let candidates = self.plan.candidates().into_iter().filter_map(|server| {
            let place = report_place(server.index());
            Some((place, self.times.get(&server)?))
        });
        let whole = |(place, times): (Option<usize>, &ServerTimes)| {
            let comparable = self.comparable(place);
            let whole = times.whole(&comparable, self.plan.delta)?;
            let (statements, share) = self.extent(&comparable);
            let verdict = match whole.verdict {
                Verdict::Regression => TimeVerdict::Slower,
                Verdict::Improvement => TimeVerdict::Faster,
                Verdict::NoChange => TimeVerdict::NoChange,
                _ => TimeVerdict::Inconclusive,
            };
            let time = WorkloadTime {
                server: place,
                verdict,
                delta: self.plan.delta,
                statements,
                share,
                ratio: TimeRatio {
                    estimate: whole.ratio.estimate,
                    low: whole.ratio.ci95.map(|(low, _)| low),
                    high: whole.ratio.ci95.map(|(_, high)| high),
                },
            };
            Some((time, whole.off))
        };
        let placebo = placebo.and_then(whole);
        let off = placebo.as_ref().is_some_and(|(_, off)| *off);
        let mut workload: Vec<WorkloadTime> =
            candidates.filter_map(whole).map(|(time, _)| time).collect();
        for time in workload
            .iter_mut()
            .filter(|_| off || !self.comparison.host_ok)
        {
            if time.verdict != TimeVerdict::Inconclusive {
                time.verdict = TimeVerdict::Unfit;
            }
        }
        let (statements, share) = self.extent(&self.comparable(None));
        let different = self.comparison.placebo_cells.iter();
        ReplayTimes {
            blocks: self
                .slices
                .iter()
                .map(|slice| slice.block + 1)
                .max()
                .unwrap_or(0),
            planned_blocks: self.plan.timing.blocks,
            statements,
            share,
            impact: self.setup.impact,
            workload,
            placebo: placebo.map(|(time, _)| time),
            placebo_different: count(different.filter(|cell| cell.verdict.is_change()).count()),
            failed_on_candidates: count(self.failed_on_candidates()),
            mix: mixed(
                self.setup,
                self.comparison,
                (&self.slices, self.controls().collect()),
            ),
            notes: self.notes(off),
        }
    }

    /// How many statements have a share here, and what they are of the workload by time.
    fn extent(&self, shares: &[f64]) -> (u64, Option<f64>) {
        let by_time = self.setup.weighted_by == WeightedBy::Time;
        let some = shares.iter().filter(|share| **share > 0.0).count();
        (count(some), by_time.then(|| shares.iter().sum()))
    }

    /// The shares of cells that do the same work on a candidate, in this place of the report, as on the base;
    /// without one, on all candidates.
    fn comparable(&self, place: Option<usize>) -> Vec<f64> {
        let wanted = place.and_then(|place| u32::try_from(plan_place(place)).ok());
        let other = |statement: &TimedStatement| {
            let mut unfit = statement.unfit.iter();
            unfit.any(|(server, _)| wanted.is_none_or(|wanted| wanted == *server))
        };
        // Of one block nobody knows how far it scatters.
        let is_known = |cell: CellId| {
            let blocks = self.slices.iter().filter(|slice| slice.cell == cell);
            blocks
                .map(|slice| slice.block)
                .collect::<BTreeSet<u32>>()
                .len()
                >= 2
        };
        let cells = CellId::each().zip(self.shares.iter().zip(&self.setup.statements));
        let share = |(cell, (share, statement)): (CellId, (&f64, &TimedStatement))| {
            let is_out =
                other(statement) || self.failures.finally(cell).is_some() || !is_known(cell);
            if is_out { 0.0 } else { *share }
        };
        cells.map(share).collect()
    }

    /// Statements that failed on candidates only.
    fn failed_on_candidates(&self) -> usize {
        let candidates: BTreeSet<ServerId> = self.plan.candidates().into_iter().collect();
        let only =
            |failed: &Failed| !failed.servers.is_empty() && failed.servers.is_subset(&candidates);
        let failed = self.failures.iter();
        failed.filter(|(_, failed)| only(failed)).count()
    }

    /// `off`: two copies of the base differ in what the whole workload takes.
    fn notes(&self, off: bool) -> Vec<String> {
        let failed = self.failures.iter().filter_map(|(cell, failed)| {
            let name = &self.plan.cell(cell)?.workload;
            let words = self.failed_words(failed);
            Some(match failed.is_final() {
                true => format!("no verdict for {name}: {words}"),
                false => {
                    format!(
                        "{name}: {words}, because of other work there; that block does not count"
                    )
                }
            })
        });
        let off = off.then(|| {
            "the workload has no verdict: two copies of the base differ in it (placebo)".to_owned()
        });
        let findings = self.comparison.findings.iter();
        failed
            .chain(self.without_time())
            .chain(self.not_restarted())
            .chain(off)
            .chain(findings.map(|finding| finding.text.clone()))
            .collect()
    }

    /// What servers that somebody else runs leave out of the intervals.
    fn not_restarted(&self) -> Option<String> {
        let mut servers = self.plan.servers.iter();
        let is_there = servers.any(|server| server.installation.remote.is_some());
        is_there.then(|| {
            "not-restarted: the servers did not restart between blocks: what each start changes at random \
             (addresses, placement in memory), and what one machine, network or sample of statistics does, \
             is part of each difference and in no interval; the placebo is the base itself"
                .to_owned()
        })
    }

    /// Statements that no block had time for.
    fn without_time(&self) -> impl Iterator<Item = String> {
        let measured: BTreeSet<CellId> = self.slices.iter().map(|slice| slice.cell).collect();
        let is_through = self.slices.iter().any(|slice| slice.block > 0);
        let cells = CellId::each().zip(&self.setup.statements);
        cells.filter_map(move |(cell, statement)| {
            let seconds = seconds_when_asked(statement).filter(|took| *took > LEAST_SECONDS)?;
            let is_left = is_through && !measured.contains(&cell) && !self.failures.has(cell);
            let name = &self.plan.cell(cell).filter(|_| is_left)?.workload;
            Some(format!(
                "no time for {name}: an execution takes {seconds:.1} s, longer than its part of the budget; \
                 give more with --budget"
            ))
        })
    }

    fn failed_words(&self, failed: &Failed) -> String {
        let names: Vec<String> = failed
            .servers
            .iter()
            .map(|server| self.plan.server_name(*server))
            .collect();
        let on = match names.is_empty() {
            true => String::new(),
            false => format!(" on {}", names.join(" and ")),
        };
        if failed.sqlstate == NOTHING_FITS {
            return NO_MEMBERS.to_owned();
        }
        let blocks = things(
            u32::try_from(failed.blocks.len()).unwrap_or(u32::MAX),
            "block",
        );
        let of_rows = match failed.sqlstate.as_str() {
            UNEQUAL => Some("constraints refused other executions on one server than on the base"),
            ROWS_DIFFER => Some("rows-differ: it changed another number of rows on a candidate"),
            ROWS_VARY => Some("it changed another number of rows on two copies of the base"),
            _ => None,
        };
        if let Some(what) = of_rows {
            return format!("{what} while it was timed, in {blocks}");
        }
        format!(
            "it failed with {}{on} while it was timed, in {blocks}",
            failed.sqlstate
        )
    }
}

/// Why there is no mix.
pub const NO_MEMBERS: &str = "no statement fits the mix: each does other work on a candidate, or a copy of \
                              the tables takes it only once";

/// With the old plan a statement is as fast as before if less of the change is left at the far end of its
/// interval, on the log scale: a wide interval that holds "as before" proves nothing.
const MOST_LEFT: f64 = 0.5;

/// Whose part it is, from the times of a candidate with its own plans and with those of the base. A part is
/// told if the interval says that it is there.
fn cause(time: Option<&StatementTime>, old: Option<TimeRatio>) -> PlanCause {
    let all = time.and_then(|time| {
        let (new, old) = (time.ratio, old?);
        Some((time.verdict, (new.low?, new.high?), (old.low?, old.high?)))
    });
    let Some((verdict, new, old)) = all else {
        return PlanCause::Open;
    };
    // Whether the old plan undoes something, whether something is left with it, and how much at most.
    let (undoes, left, most) = match verdict {
        TimeVerdict::Slower => (old.1 < new.0, old.0 > 1.0, old.1.ln() / new.0.ln()),
        TimeVerdict::Faster => (old.0 > new.1, old.1 < 1.0, old.0.ln() / new.1.ln()),
        _ => return PlanCause::Open,
    };
    match (undoes, left) {
        (true, false) if most > MOST_LEFT => PlanCause::Open,
        (true, false) => PlanCause::Planner,
        (false, true) => PlanCause::Executor,
        (true, true) => PlanCause::Both,
        (false, false) => PlanCause::Open,
    }
}

/// What a cell says of a statement that moves the workload by hardly anything, or not.
fn verdict(found: &CellComparison, hardly: bool) -> (TimeVerdict, Option<String>) {
    match found.verdict {
        Verdict::Unfit => (TimeVerdict::Unfit, Some(found.reason.clone())),
        _ if hardly => (TimeVerdict::DoesNotMatter, None),
        Verdict::Regression => (TimeVerdict::Slower, None),
        Verdict::Improvement => (TimeVerdict::Faster, None),
        Verdict::NoChange => (TimeVerdict::NoChange, None),
        Verdict::Inconclusive => {
            let more = |blocks: u32| more(index(u64::from(blocks)), "block");
            let missing = |blocks| format!("needs about {}", more(blocks));
            (
                TimeVerdict::Inconclusive,
                found.blocks_to_verdict.map(missing),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(verdict: TimeVerdict, low: f64, high: f64) -> StatementTime {
        StatementTime {
            verdict,
            why: None,
            ratio: ratio(low, high),
            impact: None,
            delta: 0.02,
            base_ms: 1.0,
            candidate_ms: 1.0,
            blocks: 6,
            executions: 60,
            parts: None,
        }
    }

    fn ratio(low: f64, high: f64) -> TimeRatio {
        TimeRatio {
            estimate: f64::midpoint(low, high),
            low: Some(low),
            high: Some(high),
        }
    }

    #[test]
    fn the_planner_is_told_where_the_old_plan_undoes_the_change_and_the_executor_where_it_does_not()
    {
        let of = |verdict, new: (f64, f64), old: (f64, f64)| {
            cause(
                Some(&time(verdict, new.0, new.1)),
                Some(ratio(old.0, old.1)),
            )
        };
        let slower = TimeVerdict::Slower;
        assert_eq!(of(slower, (2.0, 2.2), (0.97, 1.03)), PlanCause::Planner);
        assert_eq!(of(slower, (2.0, 2.2), (1.9, 2.3)), PlanCause::Executor);
        assert_eq!(of(slower, (2.0, 2.2), (1.2, 1.3)), PlanCause::Both);
        assert_eq!(of(slower, (1.1, 1.4), (0.9, 1.2)), PlanCause::Open);
        assert_eq!(
            of(slower, (1.5, 1.6), (0.9, 1.4)),
            PlanCause::Open,
            "too wide"
        );
        let faster = TimeVerdict::Faster;
        assert_eq!(of(faster, (0.5, 0.6), (0.98, 1.02)), PlanCause::Planner);
        assert_eq!(of(faster, (0.5, 0.6), (0.5, 0.55)), PlanCause::Executor);
        assert_eq!(
            of(TimeVerdict::Inconclusive, (0.9, 1.6), (1.0, 1.0)),
            PlanCause::Open
        );
        assert_eq!(cause(None, Some(ratio(1.0, 1.1))), PlanCause::Open);
    }
}
