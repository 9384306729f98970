//! What the looks in time say together, for the search by time.

use super::in_time::unfit;
use super::learnt::{LEAST_BY_TIME, looked_at_again};
use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_bisect::{Climbed, Contrasts, Stairs, Timed, TimedRun};
use deltabench_compare::comparison::{BlockRate, CellComparison};
use deltabench_lab::Judged;
use deltabench_model::bisection::{Asked, BisectedBy, Bisection, Outcome, Together};
use deltabench_model::units::{count, to_f64};
use deltabench_store::{RunState, Store};

/// Standard deviation of what the layout of a build does to CPU per operation. Source: an assumption, see
/// docs/decisions/0024; where an operation is one short loop, builds can differ by far more.
pub const LAYOUT: f64 = 0.003;

/// Standard deviation of what one run adds to the difference of two servers: their load, their place in
/// memory. Source: runs of equal trees, docs/measuring.md.
const OF_A_RUN: f64 = 0.002;

/// The smallest scatter of a pair of blocks that is believed, and that of runs that do not say theirs.
const PAIR: (f64, f64) = (0.001, 0.004_4);

/// Why a run has no values where CPU is asked for.
pub const NO_CPU: &str = "the CPU of an operation is not known here";

/// What was measured in time, by the places of points.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    pub runs: Vec<TimedRun>,
    /// Places with the server of another one, and that one.
    pub same: Vec<(usize, usize)>,
    /// Places that cannot be measured, or that the user leaves out.
    pub skipped: Vec<usize>,
    /// Why the last runs say nothing, the latest last; empty if the last one says something.
    pub doubts: Vec<String>,
    /// What each place costs over the base, as natural logarithms: the value and its standard error.
    costs: Vec<Option<(f64, f64)>>,
    min: f64,
    steps: usize,
    places: usize,
}

/// The values of a run before it is known how much chance does.
struct Values {
    /// Places with the mean of their blocks.
    means: Vec<(usize, f64)>,
    /// The fewest blocks of a place.
    blocks: usize,
    /// Sums of squares around these means, and their degrees of freedom.
    squares: (f64, usize),
}

impl Evidence {
    /// Reads the runs of all looks in time.
    ///
    /// Errors: the lab.
    pub fn of(
        bisection: &Bisection,
        asked: &Asked,
        places: &[usize],
        store: &Store,
    ) -> Result<Self, Failure> {
        let mut evidence = Self {
            min: asked.min.max(LEAST_BY_TIME).ln_1p(),
            steps: usize::try_from(asked.culprits).unwrap_or(usize::MAX),
            places: places.len(),
            ..Self::default()
        };
        let mut values = Vec::new();
        for together in bisection.together() {
            match read(together, asked.metric, places, store)? {
                Ok(None) => {}
                Ok(found) => {
                    evidence.doubts.clear();
                    values.extend(found);
                }
                Err(why) => evidence.doubts.push(why),
            }
        }
        let again = looked_at_again(bisection);
        let is_skipped = |point: &usize| {
            let look = bisection.look(*point).map(|look| &look.outcome);
            let failed = matches!(look, Some(Outcome::Skipped { .. })) && !again.contains(point);
            failed || asked.skip.contains(point)
        };
        let skipped = places
            .iter()
            .enumerate()
            .filter(|(_, point)| is_skipped(point));
        evidence.skipped = skipped.map(|(place, _)| place).collect();
        for run in &mut values {
            run.means
                .retain(|(place, _)| !evidence.skipped.contains(place));
        }
        values.retain(|run| run.means.len() >= 2);
        evidence.runs = runs(values);
        evidence.same = same(bisection, places, &evidence);
        evidence.skip_their_servers(bisection, places);
        evidence.costs = evidence.costs();
        Ok(evidence)
    }

    /// Whether a place has values of its own.
    pub fn is_measured(&self, place: usize) -> bool {
        let mut values = self.runs.iter().flat_map(|run| &run.values);
        values.any(|(one, _)| *one == place)
    }

    /// Skips the places that are known to have the server of a skipped one, and of none with values: a search
    /// that took them for open would come back to them for ever.
    fn skip_their_servers(&mut self, bisection: &Bisection, places: &[usize]) {
        let is_skipped = |place: usize| self.skipped.contains(&place);
        let has_theirs = |(place, point): (usize, &usize)| {
            let made_of = bisection.look(*point)?.made_of.as_deref()?;
            let is_open =
                !self.is_measured(place) && self.same.iter().all(|(one, _)| *one != place);
            let theirs = place_of(bisection, places, made_of, is_skipped);
            theirs
                .filter(|_| is_open && !is_skipped(place))
                .map(|_| place)
        };
        let found: Vec<usize> = places.iter().enumerate().filter_map(has_theirs).collect();
        self.skipped.extend(found);
        self.skipped.sort_unstable();
    }

    /// Another point than this one with values, whose server is made of this.
    pub fn measured(
        &self,
        bisection: &Bisection,
        places: &[usize],
        (number, made_of): (usize, &str),
    ) -> Option<usize> {
        let is_other = |place: usize| places.get(place) != Some(&number);
        let wanted = |place: usize| is_other(place) && self.is_measured(place);
        let place = place_of(bisection, places, made_of, wanted)?;
        places.get(place).copied()
    }

    /// What a point is whose server is made of this, if another point has that server: the same as one with
    /// values, or left out with one that is left out. A server that was only begun with says nothing yet, and
    /// values of its own say all.
    pub fn of_server(
        &self,
        bisection: &Bisection,
        places: &[usize],
        known: (usize, &str),
    ) -> Option<Outcome> {
        let own = places.binary_search(&known.0);
        if own.is_ok_and(|own| self.is_measured(own)) {
            return None;
        }
        if let Some(point) = self.measured(bisection, places, known) {
            return Some(Outcome::Same { point });
        }
        let is_skipped = |place: usize| self.skipped.contains(&place);
        let place = place_of(bisection, places, known.1, is_skipped)?;
        let other = places
            .get(place)
            .copied()
            .filter(|other| *other != known.0)?;
        Some(match bisection.look(other).map(|look| &look.outcome) {
            Some(Outcome::Skipped { step, why }) => {
                let name = bisection.question.points.get(other)?.name.as_str();
                Outcome::Skipped {
                    step: *step,
                    why: format!("the same server as {name}: {why}"),
                }
            }
            // The user leaves it out, and may take it in again.
            _ => Outcome::Same { point: other },
        })
    }

    /// What is known of all steps, and what comes next.
    pub fn climb(&self, weights: &[f64], prices: &[f64]) -> Climbed {
        self.stairs(weights, prices).climb()
    }

    fn stairs<'a>(&'a self, weights: &'a [f64], prices: &'a [f64]) -> Stairs<'a> {
        Stairs {
            timed: Timed {
                points: self.places,
                runs: &self.runs,
                same: &self.same,
                skipped: &self.skipped,
                weights,
                prices,
                layout: LAYOUT,
            },
            min: self.min,
            steps: self.steps,
        }
    }

    /// What a place costs over the base, as natural logarithms: the value and its standard error, layout
    /// included. Nothing if it was not measured.
    pub fn cost(&self, place: usize) -> Option<(f64, f64)> {
        self.costs.get(place).copied().flatten()
    }

    fn costs(&self) -> Vec<Option<(f64, f64)>> {
        let timed = self.stairs(&[], &[]).timed;
        let contrasts = Contrasts::of(&timed);
        let all = (0..self.places).map(|place| contrasts.between(0, place));
        let known = all.map(|one| one.error.is_finite().then_some((one.size, one.error)));
        known.collect()
    }

    /// The smallest step inside the sequence that is searched, as a share.
    pub fn min(&self) -> f64 {
        self.stairs(&[], &[]).least().exp_m1()
    }
}

/// A place that a look in time began with, whose server is made of this, of those that are `wanted`.
fn place_of(
    bisection: &Bisection,
    places: &[usize],
    made_of: &str,
    wanted: impl Fn(usize) -> bool,
) -> Option<usize> {
    let servers = bisection.timed_servers();
    let mut same = servers.filter(|(_, made)| *made == made_of);
    same.find_map(|(point, _)| {
        let place = places.binary_search(&point).ok()?;
        wanted(place).then_some(place)
    })
}

/// Places without values of their own that have the server of one with values, and that one.
fn same(bisection: &Bisection, places: &[usize], evidence: &Evidence) -> Vec<(usize, usize)> {
    let of = |(place, point): (usize, &usize)| {
        let made_of = bisection.look(*point)?.made_of.as_deref()?;
        let other = place_of(bisection, places, made_of, |other| {
            evidence.is_measured(other)
        });
        Some((place, other.filter(|_| !evidence.is_measured(place))?))
    };
    places.iter().enumerate().filter_map(of).collect()
}

/// The values of a look in time; nothing yet of a run that did not come far enough, or why it says nothing.
fn read(
    together: &Together,
    metric: BisectedBy,
    places: &[usize],
    store: &Store,
) -> Result<Result<Option<Values>, String>, Failure> {
    let Some(reached) = store.reached(&together.run).map_err(store_problem)? else {
        return Ok(Ok(None));
    };
    let plan = store.plan(&together.run).map_err(store_problem)?;
    let judged = Judged::of(&together.run, &plan, store).map_err(Failure::Failed)?;
    let comparison = judged.standing(store).map_err(Failure::Failed)?;
    if let Some(why) = unfit(&comparison) {
        return Ok(Err(why));
    }
    let place = |server: usize| places.binary_search(together.points.get(server)?).ok();
    let mut values = Values {
        means: place(0).map(|base| (base, 0.0)).into_iter().collect(),
        blocks: usize::MAX,
        squares: (0.0, 0),
    };
    for cell in &comparison.cells {
        let server = usize::try_from(cell.candidate.0).unwrap_or(usize::MAX);
        let Some(place) = place(server) else { continue };
        let logs = logs(cell, metric);
        if logs.is_empty() && !cell.rates.is_empty() {
            return Ok(Err(NO_CPU.to_owned()));
        }
        values.add(place, &logs);
    }
    let says = values.blocks >= 2 && values.means.len() >= 2;
    Ok(match (says, reached.state) {
        (true, _) => Ok(Some(values)),
        (false, RunState::Finished) => Err("fewer than two blocks count".to_owned()),
        (false, _) => Ok(None),
    })
}

impl Values {
    fn add(&mut self, place: usize, logs: &[f64]) {
        let mean = logs.iter().sum::<f64>() / to_f64(count(logs.len().max(1)));
        let squares = logs.iter().map(|log| (log - mean).powi(2));
        self.squares.0 += squares.sum::<f64>();
        self.squares.1 += logs.len().saturating_sub(1);
        self.blocks = self.blocks.min(logs.len());
        self.means.push((place, mean));
    }
}

/// What a candidate costs over the base in each block, as natural logarithms.
fn logs(cell: &CellComparison, metric: BisectedBy) -> Vec<f64> {
    let cost = |rate: &BlockRate| match metric {
        BisectedBy::Throughput => Some((rate.base / rate.candidate).ln()),
        BisectedBy::Auto | BisectedBy::Count | BisectedBy::Cpu => {
            let (base, candidate) = rate.server_cpu_us?;
            Some((candidate / base).ln())
        }
    };
    let costs = cell.rates.iter().filter_map(cost);
    costs.filter(|log| log.is_finite()).collect()
}

/// Runs with their noise, which all of them tell together.
fn runs(values: Vec<Values>) -> Vec<TimedRun> {
    let (least, usual) = PAIR;
    let squares: f64 = values.iter().map(|run| run.squares.0).sum();
    let freedom: usize = values.iter().map(|run| run.squares.1).sum();
    let block = match freedom {
        0 => usual,
        some => (squares / to_f64(count(some))).sqrt().max(least),
    };
    let run = |values: Values| TimedRun {
        pair: (block.powi(2) / to_f64(count(values.blocks)) + OF_A_RUN.powi(2)).sqrt(),
        values: values.means,
    };
    values.into_iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::bisect::learnt::tests::{ASKED, bisection};
    use deltabench_model::bisection::{FailedStep, Happened, Look};

    fn values(logs: &[f64]) -> Values {
        let mut values = Values {
            means: vec![(0, 0.0)],
            blocks: usize::MAX,
            squares: (0.0, 0),
        };
        values.add(3, logs);
        values
    }

    #[test]
    fn the_noise_of_a_run_is_that_of_all_blocks_of_all_runs_and_what_a_run_has_of_its_own() {
        let found = runs(vec![
            values(&[0.02, 0.04]),
            values(&[0.01, 0.03, 0.02, 0.02]),
        ]);
        // Squares: 2 × 0.01², 2 × 0.01²; four degrees of freedom.
        let block: f64 = 0.01;
        let wanted = |blocks: f64| (block.powi(2) / blocks + OF_A_RUN.powi(2)).sqrt();
        assert!((found[0].pair - wanted(2.0)).abs() < 1e-12);
        assert!((found[1].pair - wanted(4.0)).abs() < 1e-12);
        assert_eq!(found[0].values.len(), 2);
        assert!((found[0].values[1].1 - 0.03).abs() < 1e-12);
    }

    #[test]
    fn blocks_that_happen_to_agree_are_not_believed_to_have_no_noise() {
        let found = runs(vec![values(&[0.02, 0.02])]);
        let wanted = (PAIR.0.powi(2) / 2.0 + OF_A_RUN.powi(2)).sqrt();
        assert!((found[0].pair - wanted).abs() < 1e-12);
    }

    /// A look at all three points began; the one in the middle then did not run.
    fn with_one_that_does_not_run() -> Bisection {
        let together = Together {
            run: "bisect-a-1".to_owned(),
            points: vec![0, 5, 9],
            made_of: ["a", "b", "c"].map(str::to_owned).to_vec(),
            built: Vec::new(),
            acquire_seconds: 0.0,
        };
        bisection(vec![Happened::Together(together), look(5, skipped(), None)])
    }

    fn look(point: usize, outcome: Outcome, made_of: Option<&str>) -> Happened {
        Happened::Look(Look {
            point,
            outcome,
            made_of: made_of.map(str::to_owned),
            acquire_seconds: 0.0,
            count_seconds: 0.0,
            built: false,
        })
    }

    fn skipped() -> Outcome {
        Outcome::Skipped {
            step: FailedStep::Run,
            why: "initdb failed".to_owned(),
        }
    }

    fn evidence(bisection: &Bisection, asked: &Asked) -> (Evidence, Vec<usize>) {
        let lab = tempfile::tempdir().unwrap();
        let store = Store::open(lab.path()).unwrap();
        let places: Vec<usize> = (0..10).collect();
        let evidence = Evidence::of(bisection, asked, &places, &store);
        (evidence.map_err(|_| ()).unwrap(), places)
    }

    #[test]
    fn a_point_with_the_server_of_one_that_does_not_run_is_not_looked_at_again_and_again() {
        let mut known = with_one_that_does_not_run();
        let (before, places) = evidence(&known, &ASKED);
        assert_eq!(before.skipped, [5]);
        let of = |made_of: &str| before.of_server(&known, &places, (6, made_of));
        let Some(Outcome::Skipped { step, why }) = of("b") else {
            panic!("it cannot run either: {:?}", of("b"));
        };
        assert_eq!(step, FailedStep::Run);
        assert_eq!(why, "the same server as 5: initdb failed");
        assert_eq!(of("c"), None, "that run has no values");
        // As earlier versions stored it.
        let same = Outcome::Same { point: 5 };
        known.happened.push(look(6, same, Some("b")));
        assert_eq!(evidence(&known, &ASKED).0.skipped, [5, 6]);
    }

    #[test]
    fn a_point_with_the_server_of_one_that_the_user_leaves_out_is_left_out_as_long_as_that_is() {
        let mut known = with_one_that_does_not_run();
        known.happened.truncate(1);
        let asked = Asked {
            skip: vec![5],
            ..ASKED
        };
        let (before, places) = evidence(&known, &asked);
        let same = before.of_server(&known, &places, (6, "b"));
        assert_eq!(same, Some(Outcome::Same { point: 5 }));
        known
            .happened
            .push(look(6, Outcome::Same { point: 5 }, Some("b")));
        assert_eq!(evidence(&known, &asked).0.skipped, [5, 6]);
        assert_eq!(evidence(&known, &ASKED).0.skipped, [0; 0]);
    }
}
