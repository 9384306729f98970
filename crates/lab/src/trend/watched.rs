//! What runs made suspect, kept beside the store, so that a further run is judged alone.
//!
//! Kept is what was suspected after all runs, and after some of them, each with a hash of all that it follows
//! from: what these runs measured, and the order of their versions. A run that was withdrawn, restored or
//! measured before others changes that hash from its place on. Then the runs are judged again from the last
//! place before it.

use crate::analysis::ANALYSIS;
use deltabench_store::{Kept, Store};
use deltabench_trend::{Assumed, Build, Run, Suspicion, Watch};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The names under which the places and the suspicions at each are kept.
const PLACES: &str = "watched-places";
const WATCHED: &str = "watched";

/// Suspicions are kept after all runs, and after the last run whose number is a multiple of each of these.
/// What happens to one of the newest runs makes few runs be judged again, what happens to an old one more.
const EVERY: [usize; 3] = [16, 256, 4096];

/// Where suspicions are kept.
pub(super) struct Keeper<'a> {
    pub(super) store: &'a Store,
    /// What tells the hosts and metrics of a lab apart.
    pub(super) of: String,
}

/// A number of runs after which suspicions are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    runs: usize,
    /// A hash of what they measured.
    content: String,
}

/// The watch after these runs. Versions are at their places in `builds`.
pub(super) fn watched(
    runs: &[Run],
    builds: Vec<Build>,
    assumed: Assumed,
    keeper: Option<&Keeper<'_>>,
) -> Watch {
    let Some(keeper) = keeper else {
        let mut watch = Watch::new(builds, assumed);
        runs.iter().for_each(|run| watch.add(run));
        return watch;
    };
    let before = keeper.places();
    let wanted = wanted(runs.len());
    let asked = before.iter().flatten().map(|place| place.runs);
    let contents = Contents::of(runs, &builds, asked.chain(wanted.iter().copied()).collect());
    let fits = |place: &&Place| contents.at.get(&place.runs) == Some(&place.content);
    let slots = before.iter().enumerate();
    let slots = slots.filter_map(|(slot, place)| Some((slot, place.as_ref().filter(fits)?)));
    let last = slots.max_by_key(|(_, place)| place.runs);
    let known = last.and_then(|(slot, place)| {
        let suspicions = keeper.suspicions(slot, &place.content)?;
        Some((place.runs, contents.placed(suspicions)?))
    });
    let (first, suspicions) = known.unwrap_or_default();
    let done = runs.get(..first).unwrap_or_default();
    let mut watch = Watch::after(done, suspicions, builds, assumed);
    let mut after: BTreeMap<usize, Vec<Suspicion>> = BTreeMap::new();
    let mut look = |number: usize, watch: &Watch| {
        if wanted.contains(&number) {
            after.insert(number, watch.suspicions().to_vec());
        }
    };
    look(first, &watch);
    for (number, run) in runs.iter().enumerate().skip(first) {
        watch.add(run);
        look(number + 1, &watch);
    }
    keeper.keep(&before, &wanted, &contents, &after);
    watch
}

/// The numbers of runs after which suspicions are kept: all of them, and less by each of [`EVERY`].
fn wanted(runs: usize) -> Vec<usize> {
    let below = |every: usize| runs.saturating_sub(1) / every * every;
    let all = [runs].into_iter().chain(EVERY.map(below));
    all.collect()
}

impl Keeper<'_> {
    fn slot(&self, slot: usize) -> String {
        format!("{} {slot}", self.of)
    }

    /// The places of the slots, as far as they are known.
    fn places(&self) -> Vec<Option<Place>> {
        let text = self.store.kept(PLACES, &self.of, ANALYSIS);
        let known = text.and_then(|text| serde_json::from_str(&text).ok());
        known.unwrap_or_default()
    }

    fn suspicions(&self, slot: usize, content: &str) -> Option<Vec<Suspicion>> {
        let text = self.store.kept(WATCHED, &self.slot(slot), content)?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what was suspected after some numbers of runs, in the slots of these.
    fn keep(
        &self,
        before: &[Option<Place>],
        wanted: &[usize],
        contents: &Contents,
        after: &BTreeMap<usize, Vec<Suspicion>>,
    ) {
        let mut places: Vec<Option<Place>> = Vec::new();
        for (slot, runs) in wanted.iter().enumerate() {
            let known = before.get(slot).cloned().flatten();
            let Some(content) = contents.at.get(runs).filter(|_| *runs > 0) else {
                places.push(None);
                continue;
            };
            let place = Place {
                runs: *runs,
                content: content.clone(),
            };
            if known.as_ref() == Some(&place) {
                places.push(known);
                continue;
            }
            // A place before the first one that was judged now stays empty until runs are judged again there.
            let suspicions = after.get(runs).cloned().map(|all| contents.numbered(all));
            let value = suspicions.and_then(|all| serde_json::to_string(&all).ok());
            places.push(value.map(|value| {
                let made_from = place.content.clone();
                let kept = Kept { made_from, value };
                self.store.keep(WATCHED, &self.slot(slot), &kept);
                place
            }));
        }
        if places != before {
            // Names and numbers: they always have a form in JSON.
            let value = serde_json::to_string(&places).unwrap_or_default();
            let made_from = ANALYSIS.to_owned();
            self.store
                .keep(PLACES, &self.of, &Kept { made_from, value });
        }
    }
}

/// Hashes of what the first runs measured, by how many these are.
struct Contents {
    at: BTreeMap<usize, String>,
    /// The places of versions, in the order in which runs have them first: a version that is met later, and
    /// comes before others in the order of versions, changes no number.
    met: Vec<usize>,
}

impl Contents {
    fn of(runs: &[Run], builds: &[Build], asked: Vec<usize>) -> Self {
        let mut hash = Sha256::new();
        hash.update(ANALYSIS);
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut all = Self {
            at: BTreeMap::new(),
            met: Vec::new(),
        };
        let mut bytes = Vec::new();
        for (done, run) in runs.iter().enumerate() {
            if asked.contains(&done) {
                all.at.insert(done, finished(&hash, &numbers, builds));
            }
            bytes.clear();
            all.add(run, &mut numbers, &mut bytes);
            hash.update(&bytes);
        }
        if asked.contains(&runs.len()) {
            let content = finished(&hash, &numbers, builds);
            all.at.insert(runs.len(), content);
        }
        all
    }

    /// Writes all that a watch reads of a run.
    fn add(&mut self, run: &Run, numbers: &mut BTreeMap<usize, usize>, bytes: &mut Vec<u8>) {
        let mut number = |place: usize| {
            let next = numbers.len();
            let number = *numbers.entry(place).or_insert(next);
            if number == next {
                self.met.push(place);
            }
            number
        };
        let Run {
            hour,
            began_ms,
            ended_ms,
            cells,
        } = run;
        put(bytes, *hour);
        bytes.extend(began_ms.to_le_bytes());
        bytes.extend(ended_ms.to_le_bytes());
        put(bytes, cells.len());
        for cell in cells {
            put(bytes, cell.series);
            put(bytes, cell.host);
            put(bytes, number(cell.base));
            bytes.extend(cell.base_copies.to_le_bytes());
            bytes.extend(cell.delta.to_le_bytes());
            bytes.extend(cell.times.to_le_bytes());
            bytes.push(u8::from(cell.is_sound));
            put(bytes, cell.members);
            put(bytes, cell.work);
            for all in [&cell.candidates, &cell.others] {
                put(bytes, all.len());
                for (version, blocks) in all {
                    put(bytes, number(*version));
                    put(bytes, blocks.len());
                    for (block, value) in blocks {
                        bytes.extend(block.to_le_bytes());
                        bytes.extend(value.to_le_bytes());
                    }
                }
            }
        }
    }

    /// Suspicions with the numbers of versions instead of their places.
    fn numbered(&self, all: Vec<Suspicion>) -> Vec<Suspicion> {
        let numbers = self.met.iter().enumerate();
        let numbers: BTreeMap<usize, usize> = numbers.map(|(at, place)| (*place, at)).collect();
        let number = |place: usize| numbers.get(&place).copied().unwrap_or(place);
        all.into_iter()
            .map(|one| one.with_versions(number))
            .collect()
    }

    /// The reverse of it; `None` where a number is that of no version.
    fn placed(&self, all: Vec<Suspicion>) -> Option<Vec<Suspicion>> {
        let is_known = |one: &Suspicion| one.from.max(one.to).max(one.earliest) < self.met.len();
        let place = |number: usize| self.met.get(number).copied().unwrap_or(number);
        let placed = |one: Suspicion| is_known(&one).then(|| one.with_versions(place));
        all.into_iter().map(placed).collect()
    }
}

/// The hash so far, with the order of the versions met: lines and branches are part of it.
fn finished(hash: &Sha256, numbers: &BTreeMap<usize, usize>, builds: &[Build]) -> String {
    let mut hash = hash.clone();
    let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
    let mut bytes = Vec::new();
    for (place, number) in numbers {
        put(&mut bytes, *number);
        if let Some(build) = builds.get(*place) {
            // Lines are numbered in the order of versions, so versions met later may move them.
            let next = lines.len();
            put(&mut bytes, *lines.entry(build.line).or_insert(next));
            bytes.extend(build.branch.to_le_bytes());
        }
    }
    hash.update(&bytes);
    format!("{:x}", hash.finalize())
}

/// Writes a number in the same way on every machine.
fn put(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend(deltabench_model::units::count(number).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_trend::{Measured, State};

    const ASSUMED: Assumed = Assumed { sd: 0.005, df: 4.0 };

    /// A run of an hour: versions with their level in percent, the first one as base.
    fn run(hour: usize, percents: &[(usize, f64)]) -> Run {
        let blocks = |percent: f64| -> BTreeMap<u32, f64> {
            let value = |block: u32| (percent + 0.02 * f64::from(block % 3)) / 100.0;
            (0..12).map(|block| (block, value(block))).collect()
        };
        let (base, own) = percents[0];
        let others = percents.iter().skip(1);
        let began_ms = 3_600_000 * i64::try_from(hour).unwrap();
        Run {
            hour,
            began_ms,
            ended_ms: began_ms + 60_000,
            cells: vec![Measured {
                series: 0,
                host: 0,
                delta: 0.01,
                base,
                candidates: others
                    .map(|(at, level)| (*at, blocks(level - own)))
                    .collect(),
                base_copies: 1,
                times: 1.0,
                is_sound: true,
                others: BTreeMap::new(),
                members: 1,
                work: 0,
            }],
        }
    }

    fn builds(number: usize) -> Vec<Build> {
        let build = |at| Build {
            line: usize::from(at > 0),
            branch: 17,
        };
        (0..number).map(build).collect()
    }

    /// Nights with versions 1, 2, 3, …, of which some are slower than the one before.
    fn nights(number: usize) -> Vec<Run> {
        let level = |at: usize| if at % 5 == 4 { -8.0 } else { 0.0 };
        let night = |at: usize| {
            run(
                24 * at,
                &[(0, 0.0), (at, level(at)), (at + 1, level(at + 1))],
            )
        };
        (1..=number).map(night).collect()
    }

    fn fresh(runs: &[Run], builds: &[Build]) -> Vec<Suspicion> {
        watched(runs, builds.to_vec(), ASSUMED, None)
            .suspicions()
            .to_vec()
    }

    fn with(store: &Store, runs: &[Run], builds: &[Build]) -> Vec<Suspicion> {
        let keeper = Keeper {
            store,
            of: "throughput here".to_owned(),
        };
        let watch = watched(runs, builds.to_vec(), ASSUMED, Some(&keeper));
        watch.suspicions().to_vec()
    }

    #[test]
    fn whatever_happens_to_runs_and_versions_the_same_is_suspected_with_and_without_what_was_kept()
    {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let mut runs = nights(40);
        let all = builds(50);
        let check = |runs: &[Run], builds: &[Build], what: &str| {
            let found = with(&store, runs, builds);
            assert_eq!(found, fresh(runs, builds), "{what}");
            assert_eq!(with(&store, runs, builds), found, "{what}, once more");
            found
        };
        let first = check(&runs, &all, "for the first time");
        assert!(first.len() > 6 && first.iter().all(|one| one.state == State::Suspected));
        runs.push(run(24 * 50, &[(3, 0.0), (4, -8.0)]));
        let tried = check(&runs, &all, "a new run");
        assert!(tried.iter().any(|one| one.state == State::Confirmed));
        // Withdrawn: the newest, one in the middle, and one of the first.
        let newest = runs.pop().unwrap();
        assert_eq!(check(&runs, &all, "the newest is gone"), first);
        runs.push(newest);
        let middle = runs.remove(33);
        assert_ne!(check(&runs, &all, "one in the middle is gone"), tried);
        runs.insert(33, middle);
        assert_eq!(check(&runs, &all, "it is there again"), tried);
        // It came into the lab later, and was measured before others.
        runs.insert(2, run(24 * 2 + 5, &[(3, 0.0), (4, -8.0)]));
        assert_ne!(check(&runs, &all, "one before others"), tried);
        runs.remove(2);
        // A version that no run had, in the middle of the order and of a line: all others move.
        let moved = |at: usize| if at >= 20 { at + 1 } else { at };
        let before = check(&runs, &all, "as it was");
        let mut later: Vec<Run> = runs.clone();
        for cell in later.iter_mut().flat_map(|run| &mut run.cells) {
            let own = std::mem::take(&mut cell.candidates).into_iter();
            cell.candidates = own.map(|(at, blocks)| (moved(at), blocks)).collect();
        }
        later.push(run(24 * 60, &[(0, 0.0), (20, -8.0), (21, 0.0)]));
        let found = check(&later, &builds(51), "a version between others");
        assert_eq!(found.len(), before.len() + 1);
        // Another order of the versions is another history.
        let mut other = all.clone();
        other[7].line = 2;
        let found = with(&store, &runs, &other);
        assert_eq!(found, fresh(&runs, &other));
        assert_ne!(found, before);
    }

    #[test]
    fn what_was_kept_is_used_and_only_new_runs_are_judged() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let (runs, all) = (nights(40), builds(50));
        let found = with(&store, &runs, &all);
        // After 40, 32, 0 and 0 runs. Somebody writes that nothing was suspected after 40.
        let places = store.kept(PLACES, "throughput here", ANALYSIS).unwrap();
        let places: Vec<Option<Place>> = serde_json::from_str(&places).unwrap();
        let numbers: Vec<Option<usize>> = { places.iter() }
            .map(|place| place.as_ref().map(|place| place.runs))
            .collect();
        assert_eq!(numbers, [Some(40), Some(32), None, None]);
        let nothing = Kept {
            made_from: places[0].clone().unwrap().content,
            value: "[]".to_owned(),
        };
        store.keep(WATCHED, "throughput here 0", &nothing);
        assert!(with(&store, &runs, &all).is_empty(), "it is believed");
        let one_less = with(&store, &runs[..39], &all);
        assert!(!one_less.is_empty(), "from the place after 32 runs");
        assert_eq!(with(&store, &runs, &all), found);
        // A text that is none is as good as nothing.
        store.keep(
            WATCHED,
            "throughput here 0",
            &Kept {
                value: "[".to_owned(),
                ..nothing
            },
        );
        assert_eq!(with(&store, &runs, &all), found);
    }
}
