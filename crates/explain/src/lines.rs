//! The lines that say most of a difference: a few paths and functions that share no instruction.

use deltabench_model::explanation::{
    Explanation, Frame, FunctionCounts, Known, Line, Place, Taken,
};
use deltabench_model::profile::{NodeId, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// Below this share of the whole difference nothing is worth a line.
const WORTH: f64 = 0.05;
/// A path is followed while one call holds this share of what is left of the difference.
const ALMOST_ALL: f64 = 0.85;
/// Within a line this share is worth being named.
const MOST: f64 = 0.5;
/// A path with more than this share of the whole is taken apart though little parts of it get lost by that.
const TOO_COARSE: f64 = 0.35;
/// A function that is called on at least so many paths has a line of its own ...
const PATHS: usize = 2;
/// ... unless this share of its difference is on one of them.
const ON_ONE_PATH: f64 = 0.9;
/// A function is called elsewhere, and not more or less often, if calls lost on some paths and gained on
/// others make up for each other to this share.
const MADE_UP: f64 = 0.5;
/// Lines that one explanation has at most, where nobody asks for more or fewer.
pub const LINES: usize = 12;

/// Explains the difference of two profiles of the same work in at most `lines` lines.
///
/// Shape: the lines are disjoint: each instruction is in one line or in none.
pub fn explain(base: &Profile, candidate: &Profile, lines: usize) -> Explanation {
    let (operations, frames) = crate::merged::merge(base, candidate);
    let functions = count(&frames, operations);
    let mut search = Search::of(&frames, operations);
    search.calls_moved();
    search.functions_everywhere();
    search.sum_up();
    search.walk(0);
    let mut found = search.lines;
    found.sort_by_key(|line| std::cmp::Reverse(line.difference().abs()));
    found.truncate(lines);
    Explanation {
        operations,
        frames,
        lines: found,
        functions,
    }
}

/// How many functions differ in what they do themselves.
fn count(frames: &[Frame], operations: u64) -> FunctionCounts {
    let mut own: BTreeMap<&str, i64> = BTreeMap::new();
    for frame in frames {
        *own.entry(&frame.name).or_default() += frame.candidate.own - frame.base.own;
    }
    let differ = own.values().filter(|own| **own != 0);
    let slight = |own: &&i64| own.unsigned_abs() < operations;
    FunctionCounts {
        all: deltabench_model::units::count(own.len()),
        differ: deltabench_model::units::count(differ.clone().count()),
        slightly: deltabench_model::units::count(differ.filter(slight).count()),
    }
}

/// Frames that belong together: a function with the new and vanished ones below it, which are what it was
/// split into or put together from.
struct Unit {
    /// The function, then the others.
    frames: Vec<NodeId>,
    parent: usize,
    /// What is left of it, own and with what is called; calls are those of the function.
    base: Taken,
    candidate: Taken,
    /// Whether this unit or one below it differs by enough for a line: more here and less there may be
    /// nothing further up.
    peak: bool,
    /// Whether its own instructions went to a line for its function everywhere.
    gone: bool,
}

/// The tree with what is left of it once functions have lines of their own.
struct Search<'a> {
    frames: &'a [Frame],
    /// Parents first.
    units: Vec<Unit>,
    children: Vec<Vec<usize>>,
    whole: i64,
    /// Less than one instruction in each of so many operations is worth no line.
    operations: u64,
    lines: Vec<Line>,
}

impl<'a> Search<'a> {
    fn of(frames: &'a [Frame], operations: u64) -> Self {
        let mut units: Vec<Unit> = Vec::new();
        let mut unit_of = Vec::with_capacity(frames.len());
        for (index, frame) in frames.iter().enumerate() {
            let parent = unit_of.get(frame.parent.index()).copied().unwrap_or(0);
            match units.get_mut(parent) {
                Some(unit) if frame.known != Known::Both => {
                    unit.frames.push(NodeId::at(index));
                    unit.base.own += frame.base.own;
                    unit.candidate.own += frame.candidate.own;
                    unit_of.push(parent);
                }
                _ => {
                    unit_of.push(units.len());
                    units.push(Unit {
                        frames: vec![NodeId::at(index)],
                        parent,
                        base: frame.base,
                        candidate: frame.candidate,
                        peak: false,
                        gone: false,
                    });
                }
            }
        }
        let mut children = vec![Vec::new(); units.len()];
        for (index, unit) in units.iter().enumerate().skip(1) {
            if let Some(list) = children.get_mut(unit.parent) {
                list.push(index);
            }
        }
        let mut search = Self {
            frames,
            units,
            children,
            whole: frames.first().map_or(0, Frame::difference),
            operations,
            lines: Vec::new(),
        };
        search.sum_up();
        search
    }

    fn unit(&self, unit: usize) -> Option<&Unit> {
        self.units.get(unit)
    }

    fn name(&self, unit: usize) -> &'a str {
        let frame = self.unit(unit).and_then(|unit| unit.frames.first());
        let frame = frame.and_then(|frame| self.frames.get(frame.index()));
        frame.map_or("", |frame| frame.name.as_str())
    }

    /// Units by the function that they are of.
    fn paths(&self) -> BTreeMap<&'a str, Vec<usize>> {
        let mut paths: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for index in 1..self.units.len() {
            paths.entry(self.name(index)).or_default().push(index);
        }
        paths
    }

    fn worth(&self, difference: i64) -> bool {
        difference.unsigned_abs() >= self.operations && share(difference, self.whole) >= WORTH
    }

    fn left(&self, unit: usize) -> i64 {
        let unit = self.unit(unit);
        unit.map_or(0, |unit| unit.candidate.all - unit.base.all)
    }

    fn left_own(&self, unit: usize) -> i64 {
        let unit = self.unit(unit);
        unit.map_or(0, |unit| unit.candidate.own - unit.base.own)
    }

    /// Takes functions together that are called on one path where they were called on another, as an
    /// allocator is when a block is full a little later. They have a line for what is left over all paths,
    /// if any.
    fn calls_moved(&mut self) {
        let mut found: Vec<(i64, &str, Vec<usize>)> = Vec::new();
        for (name, units) in self
            .paths()
            .into_iter()
            .filter(|(_, units)| units.len() > 1)
        {
            let units = self.outermost(units);
            if self.calls_made_up(&units) {
                let costs = units.iter().filter_map(|unit| self.unit(*unit));
                let cost = costs.map(|unit| unit.base.all + unit.candidate.all).sum();
                found.push((cost, name, units));
            }
        }
        // Callers before callees: what they take along is not looked at again.
        found.sort_by_key(|(cost, name, _)| (std::cmp::Reverse(*cost), *name));
        let mut gone: BTreeSet<usize> = BTreeSet::new();
        for (_, name, units) in found {
            if units.iter().any(|unit| gone.contains(unit)) {
                continue;
            }
            let all: Vec<usize> = units.iter().flat_map(|unit| self.below(*unit)).collect();
            gone.extend(&all);
            self.everywhere(Place::EverywhereWithCalls, name, &units, &all);
        }
    }

    /// Those units that are not below another of them.
    fn outermost(&self, units: Vec<usize>) -> Vec<usize> {
        let wanted: BTreeSet<usize> = units.iter().copied().collect();
        let inside = |unit: usize| {
            let mut at = self.unit(unit).map_or(0, |unit| unit.parent);
            while at != 0 && !wanted.contains(&at) {
                at = self.unit(at).map_or(0, |unit| unit.parent);
            }
            at != 0
        };
        units.into_iter().filter(|unit| !inside(*unit)).collect()
    }

    /// Whether calls that are fewer on some paths are more on others, and cost a line's worth either way.
    fn calls_made_up(&self, units: &[usize]) -> bool {
        let (mut more, mut fewer) = ((0, 0), (0, 0));
        for unit in units.iter().filter_map(|unit| self.unit(*unit)) {
            let calls = unit.candidate.calls - unit.base.calls;
            let sum = if calls > 0 { &mut more } else { &mut fewer };
            if calls != 0 {
                let difference = unit.candidate.all - unit.base.all;
                *sum = (sum.0 + calls.abs(), sum.1 + difference);
            }
        }
        made_up(more.0, fewer.0)
            && more.1 > 0
            && fewer.1 < 0
            && self.worth(more.1)
            && self.worth(fewer.1)
    }

    /// A unit with all below it.
    fn below(&self, unit: usize) -> Vec<usize> {
        let mut all = vec![unit];
        let mut next = 0;
        while let Some(at) = all.get(next).copied() {
            next += 1;
            all.extend(self.children.get(at).into_iter().flatten());
        }
        all
    }

    /// Gives units a line of their own, if they are worth it, and takes them from the tree.
    fn everywhere(&mut self, place: Place, name: &str, called: &[usize], all: &[usize]) {
        let mut line = Line {
            place,
            names: vec![name.to_owned()],
            with: Vec::new(),
            frames: Vec::new(),
            base: 0,
            candidate: 0,
            base_calls: 0,
            candidate_calls: 0,
            time: None,
            inner: Vec::new(),
        };
        for unit in called.iter().filter_map(|unit| self.unit(*unit)) {
            line.base_calls += unit.base.calls;
            line.candidate_calls += unit.candidate.calls;
        }
        for at in all {
            let with = self.with(*at);
            if let Some(unit) = self.units.get_mut(*at).filter(|unit| !unit.gone) {
                unit.gone = true;
                line.with.extend(with);
                line.base += std::mem::take(&mut unit.base.own);
                line.candidate += std::mem::take(&mut unit.candidate.own);
                line.frames.extend(&unit.frames);
            }
        }
        line.with.sort();
        line.with.dedup();
        if self.worth(line.difference()) {
            self.lines.push(line);
        }
    }

    /// New and vanished functions of a unit.
    fn with(&self, unit: usize) -> Vec<String> {
        let others = self
            .unit(unit)
            .into_iter()
            .flat_map(|unit| unit.frames.iter().skip(1));
        let others = others.filter_map(|frame| self.frames.get(frame.index()));
        let names: BTreeSet<&str> = others.map(|frame| frame.name.as_str()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Gives a line to each function whose own difference lies on many paths, none of which says much alone,
    /// or makes up for itself.
    fn functions_everywhere(&mut self) {
        for (name, units) in self.paths() {
            let parts: Vec<i64> = units.iter().map(|unit| self.left_own(*unit)).collect();
            let whole: i64 = parts.iter().sum();
            let moved = parts.iter().filter(|part| **part != 0).count();
            let most = parts.iter().map(|part| part.abs()).max().unwrap_or(0);
            let more: i64 = parts.iter().filter(|part| **part > 0).sum();
            let many = moved >= PATHS && self.worth(whole) && share(most, whole) <= ON_ONE_PATH;
            if many || (self.worth(most) && made_up(more, more - whole)) {
                self.everywhere(Place::Everywhere, name, &units, &units);
            }
        }
    }

    /// Sums what is left, from the leaves up.
    fn sum_up(&mut self) {
        for unit in &mut self.units {
            (unit.base.all, unit.candidate.all) = (unit.base.own, unit.candidate.own);
        }
        for index in (1..self.units.len()).rev() {
            let Some((parent, base, candidate)) = self
                .unit(index)
                .map(|unit| (unit.parent, unit.base.all, unit.candidate.all))
            else {
                continue;
            };
            if let Some(parent) = self.units.get_mut(parent) {
                parent.base.all += base;
                parent.candidate.all += candidate;
            }
        }
        for index in (0..self.units.len()).rev() {
            let worth = self.worth(self.left(index)) || self.worth(self.left_own(index));
            let (peak, parent) = self
                .unit(index)
                .map_or((false, 0), |unit| (unit.peak || worth, unit.parent));
            for at in [index, parent] {
                if let Some(unit) = self.units.get_mut(at) {
                    unit.peak |= peak;
                }
            }
        }
    }

    /// What a unit calls, the largest difference first.
    fn by_difference(&self, unit: usize) -> Vec<usize> {
        let mut below = self.children.get(unit).cloned().unwrap_or_default();
        below.sort_by_key(|at| std::cmp::Reverse(self.left(*at).abs()));
        below
    }

    /// Down from a unit, to the places that hold its difference.
    fn walk(&mut self, from: usize) {
        let mut waiting = vec![from];
        while let Some(mut unit) = waiting.pop() {
            let mut large = self.large(unit);
            while let [only] = large.as_slice()
                && self.holds(*only, unit, ALMOST_ALL)
            {
                unit = *only;
                large = self.large(unit);
            }
            let difference = self.left(unit);
            let told: i64 = large.iter().map(|at| self.left(*at)).sum();
            let itself = self.left_own(unit);
            let itself = if self.worth(itself) { itself } else { 0 };
            let lost = difference - told - itself;
            let keeps = self.worth(lost) && self.worth(difference);
            let splits = !keeps || share(difference, self.whole) > TOO_COARSE;
            if unit == 0 || (!large.is_empty() && splits) {
                if itself != 0 {
                    let line = self.line(unit, Place::Itself);
                    self.lines.push(line);
                }
                waiting.extend(large);
            } else if self.worth(difference) {
                let mut line = self.line(unit, Place::Path);
                line.inner = self.inner(unit);
                self.lines.push(line);
            }
        }
    }

    /// What a unit calls that is worth a line, or has something below them that is.
    fn large(&self, unit: usize) -> Vec<usize> {
        let below = self.by_difference(unit).into_iter();
        below
            .filter(|at| self.unit(*at).is_some_and(|unit| unit.peak))
            .collect()
    }

    /// Whether a child has at least a share of its parent's difference, and nothing beside it is as large.
    fn holds(&self, child: usize, parent: usize, at_least: f64) -> bool {
        let (part, whole) = (self.left(child), self.left(parent));
        part.signum() == whole.signum()
            && share(part, whole) >= at_least
            && share(whole - part, whole) <= 1.0 - at_least
    }

    /// Further down within a line: calls that hold most of it, and what holds most of these.
    fn inner(&self, unit: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for first in self.by_difference(unit) {
            if share(self.left(first), self.left(unit)) < MOST {
                continue;
            }
            let mut end = first;
            while let Some(next) = self.by_difference(end).first().copied()
                && self.holds(next, end, ALMOST_ALL)
            {
                end = next;
            }
            lines.push(self.line(end, Place::Path));
        }
        lines
    }

    fn line(&self, unit: usize, place: Place) -> Line {
        let none = (Taken::default(), Taken::default());
        let (base, candidate) = self
            .unit(unit)
            .map_or(none, |unit| (unit.base, unit.candidate));
        let figure = |taken: Taken| match place {
            Place::Itself => taken.own,
            _ => taken.all,
        };
        Line {
            place,
            names: self.path(unit),
            with: self.with(unit),
            frames: self
                .unit(unit)
                .map_or_else(Vec::new, |unit| unit.frames.clone()),
            base: figure(base),
            candidate: figure(candidate),
            base_calls: base.calls,
            candidate_calls: candidate.calls,
            time: None,
            inner: Vec::new(),
        }
    }

    /// Names from below the root to a unit; the root's own for the root.
    fn path(&self, unit: usize) -> Vec<String> {
        let mut names = Vec::new();
        let first = self.unit(unit).and_then(|unit| unit.frames.first());
        let mut at = first.copied().unwrap_or(NodeId::ROOT);
        while let Some(frame) = self.frames.get(at.index()) {
            if at != NodeId::ROOT || names.is_empty() {
                names.push(frame.name.clone());
            }
            if at == NodeId::ROOT {
                break;
            }
            at = frame.parent;
        }
        names.reverse();
        names
    }
}

/// How large a part is of a whole, both without sign.
fn share(part: i64, whole: i64) -> f64 {
    let number = |value: i64| deltabench_model::units::signed_to_f64(value).abs();
    number(part) / number(whole)
}

/// Whether more on one side and less on the other come to little, both without sign.
fn made_up(more: i64, less: i64) -> bool {
    more.min(less) > 0 && share(more.min(less), more.max(less)) >= MADE_UP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{of, trees};
    use proptest::prelude::*;

    fn told(explanation: &Explanation) -> Vec<(Place, String, i64)> {
        let lines = explanation.lines.iter();
        lines
            .map(|line| (line.place, line.names.join("/"), line.difference()))
            .collect()
    }

    #[test]
    fn a_path_is_followed_to_the_function_that_does_more() {
        let base = of(&[
            ("a", 100, 1),
            ("a/b", 200, 1),
            ("a/b/c", 300, 1),
            ("d", 50, 1),
        ]);
        let candidate = of(&[
            ("a", 103, 1),
            ("a/b", 200, 1),
            ("a/b/c", 390, 1),
            ("d", 50, 1),
        ]);
        let explanation = explain(&base, &candidate, LINES);
        assert_eq!(told(&explanation), [(Place::Path, "a/b/c".to_owned(), 90)]);
        let accounted = explanation.accounted().unwrap();
        assert!((accounted - 90.0 / 93.0).abs() < 1e-12, "{accounted}");
        let functions = FunctionCounts {
            all: 5,
            differ: 2,
            slightly: 0,
        };
        assert_eq!(explanation.functions, functions);
    }

    #[test]
    fn a_new_function_is_named_with_the_one_that_calls_it() {
        let base = of(&[("a", 1000, 1), ("a/b", 500, 1)]);
        let candidate = of(&[("a", 1000, 1), ("a/b", 500, 1), ("a/spin", 10_000, 1)]);
        let explanation = explain(&base, &candidate, LINES);
        assert_eq!(told(&explanation), [(Place::Path, "a".to_owned(), 10_000)]);
        assert_eq!(explanation.lines[0].with, ["spin"]);
    }

    #[test]
    fn a_function_that_was_split_and_is_called_everywhere_has_one_line() {
        let side = |split: bool| {
            let paths = (0..20).flat_map(|caller| {
                let path = format!("f{caller}/release");
                match split {
                    false => vec![(path, 54, 1)],
                    true => vec![(path.clone(), 11, 1), (format!("{path}/internal"), 51, 1)],
                }
            });
            let paths: Vec<(String, i64, i64)> = paths.collect();
            of(&paths
                .iter()
                .map(|(path, cost, calls)| (path.as_str(), *cost, *calls))
                .collect::<Vec<_>>())
        };
        let explanation = explain(&side(false), &side(true), LINES);
        assert_eq!(
            told(&explanation),
            [(Place::Everywhere, "release".to_owned(), 160)]
        );
        let line = &explanation.lines[0];
        assert_eq!(line.with, ["internal"]);
        assert_eq!((line.base, line.candidate), (20 * 54, 20 * 62));
        assert_eq!((line.base_calls, line.candidate_calls), (20, 20));
        assert_eq!(explanation.accounted(), Some(1.0));
    }

    #[test]
    fn an_allocation_that_only_moved_is_no_difference() {
        let base = of(&[
            ("a/alloc", 100, 10),
            ("a/alloc/grow", 300, 1),
            ("b/alloc", 100, 10),
            ("c", 70, 1),
        ]);
        let candidate = of(&[
            ("a/alloc", 100, 10),
            ("b/alloc", 100, 10),
            ("b/alloc/grow", 300, 1),
            ("c", 90, 1),
        ]);
        let explanation = explain(&base, &candidate, LINES);
        assert_eq!(told(&explanation), [(Place::Path, "c".to_owned(), 20)]);
    }

    #[test]
    fn what_moved_calls_leave_is_a_line_with_all_that_is_called() {
        let base = of(&[
            ("a/alloc", 100, 10),
            ("a/alloc/grow", 300, 1),
            ("b/alloc", 100, 10),
            ("c", 20, 1),
        ]);
        let candidate = of(&[
            ("a/alloc", 50, 5),
            ("b/alloc", 150, 15),
            ("b/alloc/grow", 360, 1),
            ("c", 20, 1),
        ]);
        let explanation = explain(&base, &candidate, LINES);
        let place = Place::EverywhereWithCalls;
        assert_eq!(told(&explanation), [(place, "alloc".to_owned(), 60)]);
        let line = &explanation.lines[0];
        assert_eq!((line.base, line.candidate), (500, 560));
        assert_eq!((line.base_calls, line.candidate_calls), (20, 20));
    }

    #[test]
    fn the_same_work_has_nothing_to_explain() {
        let base = of(&[("a", 100, 1)]).of(10);
        let explanation = explain(&base, &base, LINES);
        assert!(explanation.lines.is_empty());
        assert_eq!(explanation.accounted(), None);
        let hardly = of(&[("a", 109, 1)]).of(10);
        assert!(explain(&base, &hardly, LINES).lines.is_empty());
    }

    /// A point query as counted on two servers, 200 times.
    #[test]
    fn postgres_18_locks_more_dearly_than_17() {
        let read = |text: &str| serde_json::from_str::<Profile>(text).unwrap();
        let base = read(include_str!(
            "../tests/data/postgres/point-query-17.11.json"
        ));
        let candidate = read(include_str!("../tests/data/postgres/point-query-18.6.json"));
        let explanation = explain(&base, &candidate, LINES);
        let first: Vec<&str> = explanation
            .lines
            .iter()
            .take(5)
            .filter_map(|line| line.names.last().map(String::as_str))
            .collect();
        for name in [
            "LockAcquireExtended",
            "FastPathUnGrantRelationLock",
            "LWLockRelease",
        ] {
            assert!(first.contains(&name), "{first:?}");
        }
        assert!(explanation.accounted().unwrap() > 0.7);
    }

    proptest! {
        #[test]
        fn no_instruction_is_in_two_lines_and_all_lines_say_what_their_frames_do(
            base in trees(), candidate in trees(),
        ) {
            let explanation = explain(&base, &candidate, usize::MAX);
            let frames = &explanation.frames;
            let mut owner: Vec<Option<usize>> = vec![None; frames.len()];
            let is_path = |line: &Line| line.place == Place::Path;
            for (number, line) in explanation.lines.iter().enumerate() {
                for frame in line.frames.iter().filter(|_| !is_path(line)) {
                    let before = owner[frame.index()].replace(number);
                    prop_assert_eq!(before, None, "twice: {:?}", line);
                }
            }
            for (number, line) in explanation.lines.iter().enumerate() {
                let own = frames.iter().zip(&owner).filter(|(_, own)| **own == Some(number));
                let base: i64 = own.map(|(frame, _)| frame.base.own).sum();
                prop_assert!(is_path(line) || base == line.base, "{:?}", line);
            }
            // No path is within another's.
            let heads: Vec<NodeId> =
                explanation.lines.iter().filter(|line| is_path(line)).map(|line| line.frames[0]).collect();
            for head in &heads {
                let mut at = *head;
                while at != NodeId::ROOT {
                    at = frames[at.index()].parent;
                    prop_assert!(!heads.contains(&at));
                }
            }
        }
    }
}
