//! Both profiles as one tree: paths that are the same lie on each other, though functions were renamed,
//! split, or put between others.

use deltabench_model::explanation::{Frame, Known, Taken};
use deltabench_model::profile::{NodeId, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// A function that vanished and a new one are one if their costs are within this factor ...
const PAIR_COST: f64 = 3.0;
/// ... and their calls apart by at most this share.
const PAIR_CALLS: f64 = 0.01;
/// So many levels down it is looked for what a new function was put before ...
const LAYERS: usize = 3;
/// ... and that has to be at least one part of so many of its cost.
const LAYER_SHARE: i64 = 3;

/// Both sides merged below their roots.
///
/// Shape: figures are of as many operations as both sides can be scaled to without loss (the least common
/// multiple), given beside the frames. Own instructions of the frames sum to each side exactly.
pub fn merge(base: &Profile, candidate: &Profile) -> (u64, Vec<Frame>) {
    let (left, right) = (base.operations.max(1), candidate.operations.max(1));
    let operations = left / common_divisor(left, right) * right;
    let sides = [
        Side::of(base, operations / left),
        Side::of(candidate, operations / right),
    ];
    let mut merge = Merge {
        sides,
        frames: Vec::new(),
    };
    merge.run();
    let mut frames = merge.frames;
    sum_up(&mut frames);
    (operations, frames)
}

/// What functions are called of which only the address is known, such as stubs of a linker: it differs from
/// build to build.
const UNNAMED: &str = "[unnamed]";

/// A function's name without what compilers append to variants and parts of it, without its recursion, and
/// without the types of its parameters, which versions change.
pub fn plain(name: &str) -> &str {
    if name.starts_with("0x") {
        return UNNAMED;
    }
    const MARKS: [&str; 6] = [
        ".constprop.",
        ".isra.",
        ".part.",
        ".cold",
        ".lto_priv.",
        "'",
    ];
    let marks = MARKS.iter().filter_map(|mark| name.find(mark));
    match marks.chain(parameters(name)).min() {
        Some(end) if end > 0 => name.get(..end).unwrap_or(name),
        _ => name,
    }
}

/// Where the parameters of a function of C++ begin: not those of its templates.
fn parameters(name: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, sign) in name.char_indices() {
        let (before, after) = name.split_at(at);
        match sign {
            _ if before.ends_with("operator") => {}
            '<' => depth += 1,
            '>' if !before.ends_with('-') => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !after.starts_with("(anonymous namespace)") => return Some(at),
            _ => {}
        }
    }
    None
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Fills in what frames took with all that they call.
fn sum_up(frames: &mut [Frame]) {
    for index in (0..frames.len()).rev() {
        let Some(frame) = frames.get_mut(index) else {
            continue;
        };
        frame.base.all += frame.base.own;
        frame.candidate.all += frame.candidate.own;
        let (parent, base, candidate) = (frame.parent, frame.base.all, frame.candidate.all);
        if index > 0
            && let Some(parent) = frames.get_mut(parent.index())
        {
            parent.base.all += base;
            parent.candidate.all += candidate;
        }
    }
}

/// One profile with what is looked up in it.
struct Side<'a> {
    profile: &'a Profile,
    factor: i64,
    children: Vec<Vec<NodeId>>,
    inclusive: Vec<i64>,
    names: BTreeSet<&'a str>,
}

impl<'a> Side<'a> {
    fn of(profile: &'a Profile, factor: u64) -> Self {
        let mut children = vec![Vec::new(); profile.nodes.len()];
        for (index, node) in profile.nodes.iter().enumerate().skip(1) {
            if let Some(list) = children.get_mut(node.parent.index()) {
                list.push(NodeId::at(index));
            }
        }
        let mut side = Self {
            profile,
            factor: i64::try_from(factor).unwrap_or(i64::MAX),
            children,
            inclusive: profile.inclusive(),
            names: BTreeSet::new(),
        };
        side.names = profile.nodes.iter().map(|node| side.named(node)).collect();
        side
    }

    fn named(&self, node: &deltabench_model::profile::Node) -> &'a str {
        let function = self.profile.function(node);
        function.map_or("", |function| plain(&function.name))
    }

    fn name(&self, id: NodeId) -> &'a str {
        let node = self.profile.nodes.get(id.index());
        node.map_or("", |node| self.named(node))
    }

    fn object(&self, ids: &[NodeId]) -> &'a str {
        let known = ids.iter().filter_map(|id| {
            let node = self.profile.nodes.get(id.index())?;
            Some(self.profile.function(node)?.object.as_str())
        });
        known.max_by_key(|object| object.len()).unwrap_or_default()
    }

    fn below(&self, ids: &[NodeId]) -> impl Iterator<Item = NodeId> {
        ids.iter()
            .filter_map(|id| self.children.get(id.index()))
            .flatten()
            .copied()
    }

    /// Own instructions and calls of some nodes together.
    fn taken(&self, ids: &[NodeId]) -> Taken {
        let nodes = ids
            .iter()
            .filter_map(|id| self.profile.nodes.get(id.index()));
        nodes.fold(Taken::default(), |sum, node| Taken {
            own: sum.own + self.factor * node.instructions,
            all: 0,
            calls: sum.calls + self.factor * node.calls,
        })
    }

    fn cost(&self, ids: &[NodeId]) -> i64 {
        let costs = ids.iter().filter_map(|id| self.inclusive.get(id.index()));
        self.factor * costs.sum::<i64>()
    }

    /// What functions of these names cost that are called within a few levels.
    fn cost_below(&self, ids: &[NodeId], names: &BTreeSet<&str>) -> i64 {
        let mut level: Vec<NodeId> = ids.to_vec();
        let mut cost = 0;
        for _ in 0..LAYERS {
            let below = self.below(&level);
            let (found, others) = below.partition(|id| names.contains(self.name(*id)));
            let found: Vec<NodeId> = found;
            cost += self.cost(&found);
            level = others;
        }
        cost
    }
}

/// A function as it is called at one place, on either side.
#[derive(Default)]
struct Entry {
    ids: [Vec<NodeId>; 2],
    was: Option<String>,
}

impl Entry {
    /// The side that it is on, if it is on one only.
    fn one_sided(&self) -> Option<usize> {
        match &self.ids {
            [_, candidate] if candidate.is_empty() => Some(0),
            [base, _] if base.is_empty() => Some(1),
            _ => None,
        }
    }
}

type Entries<'a> = BTreeMap<&'a str, Entry>;

struct Merge<'a> {
    sides: [Side<'a>; 2],
    frames: Vec<Frame>,
}

impl<'a> Merge<'a> {
    fn run(&mut self) {
        let [base, _] = &self.sides;
        let root = Entry {
            ids: [vec![NodeId::ROOT], vec![NodeId::ROOT]],
            was: None,
        };
        let mut waiting = vec![(NodeId::ROOT, base.name(NodeId::ROOT), root)];
        while let Some((parent, name, entry)) = waiting.pop() {
            let frame = self.push(parent, name, &entry);
            let (entries, layers) = self.at(&entry.ids);
            for (name, layer) in &layers {
                self.push(frame, name, layer);
            }
            let next = entries.into_iter().rev();
            waiting.extend(next.map(|(name, entry)| (frame, name, entry)));
        }
    }

    fn push(&mut self, parent: NodeId, name: &str, entry: &Entry) -> NodeId {
        let ([base, candidate], [left, right]) = (&self.sides, &entry.ids);
        let both = entry.was.is_some() || self.frames.is_empty();
        let known = match (base.names.contains(name), candidate.names.contains(name)) {
            (true, false) if !both => Known::Base,
            (false, true) if !both => Known::Candidate,
            _ => Known::Both,
        };
        let objects = [base.object(left), candidate.object(right)];
        let object = objects.into_iter().max_by_key(|object| object.len());
        let frame = Frame {
            parent,
            name: name.to_owned(),
            was: entry.was.clone(),
            object: object.unwrap_or_default().to_owned(),
            known,
            base: base.taken(left),
            candidate: candidate.taken(right),
        };
        self.frames.push(frame);
        NodeId::at(self.frames.len() - 1)
    }

    /// What is called at a place, and the layers there: functions that only one side has between caller and
    /// callee. What they call stands beside them, so that it lies on what the other side calls at once.
    fn at(&self, ids: &[Vec<NodeId>; 2]) -> (Entries<'a>, Entries<'a>) {
        let (mut entries, mut layers) = (Entries::new(), Entries::new());
        for (side, ids) in ids.iter().enumerate() {
            self.gather(&mut entries, side, ids);
        }
        self.pair(&mut entries);
        loop {
            let found = self.layers(&entries);
            if found.is_empty() {
                return (entries, layers);
            }
            for name in found {
                let Some(entry) = entries.remove(name) else {
                    continue;
                };
                for (side, ids) in entry.ids.iter().enumerate() {
                    self.gather(&mut entries, side, ids);
                    let layer = layers.entry(name).or_default();
                    if let Some(list) = layer.ids.get_mut(side) {
                        list.extend(ids);
                    }
                }
            }
        }
    }

    fn gather(&self, entries: &mut Entries<'a>, side: usize, ids: &[NodeId]) {
        let Some(from) = self.sides.get(side) else {
            return;
        };
        for id in from.below(ids) {
            let entry = entries.entry(from.name(id)).or_default();
            if let Some(list) = entry.ids.get_mut(side) {
                list.push(id);
            }
        }
    }

    /// Puts a function that vanished and a new one together if one took the other's place.
    fn pair(&self, entries: &mut Entries<'a>) {
        let [base, candidate] = &self.sides;
        let gone = |name: &&str| !candidate.names.contains(*name);
        let new = |name: &&str| !base.names.contains(*name);
        let mut vanished: Vec<&str> = entries.keys().copied().filter(gone).collect();
        vanished.sort_by_key(|name| entries.get(name).map(|entry| -base.cost(&entry.ids[0])));
        for old in vanished {
            let Some(was) = entries.get(old) else {
                continue;
            };
            let fits = |name: &&str| {
                entries
                    .get(name)
                    .is_some_and(|entry| self.alike(was, entry))
            };
            let distance = |name: &&str| {
                let cost = entries
                    .get(name)
                    .map_or(0, |entry| candidate.cost(&entry.ids[1]));
                (cost - base.cost(&was.ids[0])).abs()
            };
            let names = entries.keys().copied().filter(new);
            let Some(name) = names.filter(fits).min_by_key(distance) else {
                continue;
            };
            let Some(was) = entries.remove(old) else {
                continue;
            };
            if let Some(entry) = entries.get_mut(name) {
                entry.was = Some(old.to_owned());
                let [left, _] = was.ids;
                let [place, _] = &mut entry.ids;
                *place = left;
            }
        }
    }

    /// Whether a vanished and a new function cost about the same and are called as often.
    fn alike(&self, was: &Entry, is: &Entry) -> bool {
        let ([base, candidate], [left, _], [taken, right]) = (&self.sides, &was.ids, &is.ids);
        let number = deltabench_model::units::signed_to_f64;
        let costs = (number(base.cost(left)), number(candidate.cost(right)));
        let calls = (
            number(base.taken(left).calls),
            number(candidate.taken(right).calls),
        );
        taken.is_empty()
            && costs.0 > 0.0
            && costs.1 > 0.0
            && (costs.0 / costs.1).max(costs.1 / costs.0) <= PAIR_COST
            && (calls.0 - calls.1).abs() <= PAIR_CALLS * calls.0.max(calls.1)
    }

    /// Names at a place that are on one side only, and call what the other side calls there itself.
    fn layers(&self, entries: &Entries<'a>) -> Vec<&'a str> {
        let only = |wanted: usize| -> BTreeSet<&'a str> {
            let alone = entries.iter();
            alone
                .filter(|(_, entry)| entry.one_sided() == Some(wanted))
                .map(|(name, _)| *name)
                .collect()
        };
        let alone = [only(0), only(1)];
        let is_layer = |side: usize, name: &str| {
            let (Some(from), Some(others)) = (self.sides.get(side), alone.get(1 - side)) else {
                return false;
            };
            let ids = entries.get(name).and_then(|entry| entry.ids.get(side));
            ids.is_some_and(|ids| {
                let below = from.cost_below(ids, others);
                below > 0 && LAYER_SHARE * below >= from.cost(ids)
            })
        };
        // One side at a time: what is found may answer the other side's question.
        let found = alone.iter().enumerate().map(|(side, names)| {
            let names = names.iter().copied();
            names.filter(|name| is_layer(side, name)).collect()
        });
        let mut found = found.filter(|names: &Vec<&str>| !names.is_empty());
        found.next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{of, trees};
    use proptest::prelude::*;

    /// The path of each frame with the own instructions of both sides.
    fn paths(frames: &[Frame]) -> Vec<(String, i64, i64)> {
        let mut names: Vec<String> = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let above = names.get(frame.parent.index()).filter(|_| index > 0);
            names.push(above.map_or(String::new(), |above| format!("{above}/{}", frame.name)));
        }
        let own = names.into_iter().zip(frames).skip(1);
        own.map(|(name, frame)| (name, frame.base.own, frame.candidate.own))
            .collect()
    }

    #[test]
    fn a_function_that_took_anothers_place_lies_on_it_with_all_that_it_calls() {
        let base = of(&[("a", 5, 1), ("a/old", 100, 10), ("a/old/b", 50, 10)]);
        let candidate = of(&[("a", 5, 1), ("a/new", 150, 10), ("a/new/b", 70, 10)]);
        let (_, frames) = merge(&base, &candidate);
        let all = [("/a", 5, 5), ("/a/new", 100, 150), ("/a/new/b", 50, 70)];
        let all = all.map(|(path, base, candidate)| (path.to_owned(), base, candidate));
        assert_eq!(paths(&frames), all);
        assert_eq!(frames[2].was.as_deref(), Some("old"));
    }

    #[test]
    fn a_new_function_of_other_cost_or_calls_takes_nobodys_place() {
        for new in [("a/new", 400, 10), ("a/new", 100, 11)] {
            let (_, frames) = merge(&of(&[("a/old", 100, 10)]), &of(&[new]));
            let known: Vec<Known> = frames.iter().skip(2).map(|frame| frame.known).collect();
            assert_eq!(known, [Known::Candidate, Known::Base], "{new:?}");
        }
    }

    #[test]
    fn a_layer_between_caller_and_callee_does_not_part_what_they_call() {
        let base = of(&[
            ("scan/exec/fetch/next", 900, 1),
            ("scan/exec", 30, 1),
            ("scan/exec/fetch", 20, 1),
        ]);
        let candidate = of(&[("scan/next", 910, 1), ("scan", 40, 1)]);
        let (_, frames) = merge(&base, &candidate);
        let paths = paths(&frames);
        assert!(
            paths.contains(&("/scan/next".to_owned(), 900, 910)),
            "{paths:?}"
        );
        assert!(
            paths.contains(&("/scan/exec".to_owned(), 30, 0)),
            "{paths:?}"
        );
    }

    #[test]
    fn what_compilers_append_to_names_is_cut() {
        for name in [
            "f.isra.0",
            "f.constprop.3.isra.1",
            "f.part.2",
            "f.cold",
            "f'2",
        ] {
            assert_eq!(plain(name), "f");
        }
        assert_eq!(plain("operator.cpp"), "operator.cpp");
        assert_eq!(plain("(below main)"), "(below main)");
        assert_eq!(plain("0x00000000000876180"), UNNAMED);
    }

    #[test]
    fn a_function_of_another_version_is_the_same_whatever_its_parameters() {
        for (name, short) in [
            ("a::Cache::Lookup(a::Slice const&, int)", "a::Cache::Lookup"),
            ("a::Status::operator=(a::Status&&)", "a::Status::operator="),
            (
                "e<(a::Kind)3, b>::type a::Read<b>(long)",
                "e<(a::Kind)3, b>::type a::Read<b>",
            ),
            ("a::Key::operator<(a::Key)", "a::Key::operator<"),
            (
                "a::Key::operator()(char const*) const",
                "a::Key::operator()",
            ),
            (
                "a::(anonymous namespace)::Posix::Read(long)",
                "a::(anonymous namespace)::Posix::Read",
            ),
        ] {
            assert_eq!(plain(name), short);
        }
        let (_, frames) = merge(&of(&[("f.isra.0", 1, 1), ("f", 2, 1)]), &of(&[("f", 3, 2)]));
        assert_eq!(paths(&frames), [("/f".to_owned(), 3, 3)]);
    }

    proptest! {
        #[test]
        fn each_side_sums_to_what_it_was(base in trees(), candidate in trees(), more in 1..5_u64) {
            let (base, candidate) = (base.of(6), candidate.of(4 * more));
            let (operations, frames) = merge(&base, &candidate);
            prop_assert_eq!(operations % 6, 0);
            prop_assert_eq!(operations % (4 * more), 0);
            let scaled = |profile: &Profile| {
                profile.total() * i64::try_from(operations / profile.operations).unwrap()
            };
            prop_assert_eq!(frames[0].base.all, scaled(&base));
            prop_assert_eq!(frames[0].candidate.all, scaled(&candidate));
            for (index, frame) in frames.iter().enumerate() {
                let below = frames.iter().skip(1).filter(|at| at.parent.index() == index);
                let sum: i64 = below.map(Frame::difference).sum();
                // The difference of a path is its own and that of what it calls.
                prop_assert_eq!(frame.difference(), frame.candidate.own - frame.base.own + sum);
            }
        }

        #[test]
        fn a_tree_lies_on_itself(tree in trees()) {
            let (_, frames) = merge(&tree, &tree);
            prop_assert!(frames.iter().all(|frame| frame.base == frame.candidate));
        }
    }
}
