//! Files of callgrind with the callers of each function kept apart (`--separate-callers`).
//!
//! Source: "Callgrind Format Specification" of the Valgrind documentation, section 3.1 to 3.3. Taken are
//! costs by function, calls, and compressed names and positions; lines of source and jumps are passed over.

use deltabench_model::profile::{Grower, NodeId, Profile};
use std::collections::{HashMap, HashSet};

/// Name of the node that holds what was not done below the root.
pub const OUTSIDE: &str = "[outside]";

/// What was counted between two marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its number in the order in which a process wrote them, from 1.
    pub number: u32,
    /// Why it was written: `--dump-before=NAME`, `Program termination`.
    pub trigger: String,
    /// Instructions of the process in this time, as the file says; the profile sums to it.
    pub total: i64,
    /// The same by call path.
    pub profile: Profile,
    /// Of what is in no profile of [`read_calls`]: instructions of the library's own threads.
    pub of_threads: i64,
}

/// A file that cannot be read as one of callgrind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// A line that is none of the format.
    #[error("line {line} is not a line of callgrind: {text}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// The file ends before its last part does, as after a killed process.
    #[error("the file ends in the middle of a part")]
    Cut,
    /// What functions took is not what the file says was counted.
    #[error("functions of part {number} sum to {sum} instructions, and its last line says {total}")]
    Sum {
        number: u32,
        sum: i64,
        /// As the file says.
        total: i64,
    },
}

/// Reads all parts of a file.
///
/// Shape: paths begin below `root`, the function whose calls are of interest (`PostgresMain`); what was done
/// outside of it is below a node [`OUTSIDE`]. A path longer than the counter keeps is completed by its
/// caller, by the one with most instructions where there are several. Recursion counts as one path (`f'2` is
/// `f`).
/// Errors: a file that is of another format, or cut off, or whose functions do not sum to its total.
pub fn read(text: &str, root: &str) -> Result<Vec<Part>, Unread> {
    read_below(text, Root::Function(root))
}

/// Reads all parts of a file, and of them only what was done in calls of a library: of functions whose names
/// begin with `prefix`.
///
/// Shape: paths begin below a node `name` with the outermost of these functions. What was done outside of
/// them is in no profile, though it is in [`Part::total`].
/// Errors: those of [`read`].
pub fn read_calls(text: &str, prefix: &str, name: &str) -> Result<Vec<Part>, Unread> {
    read_below(text, Root::Calls { prefix, name })
}

/// What profiles begin with.
#[derive(Clone, Copy)]
enum Root<'a> {
    /// A function that all of interest is done below.
    Function(&'a str),
    /// Calls of functions whose names begin so, below a node of this name; everything else is left out.
    Calls { prefix: &'a str, name: &'a str },
}

impl<'a> Root<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Function(name) | Self::Calls { name, .. } => name,
        }
    }

    /// The frames below the root; the innermost one is first.
    fn below<'f>(self, frames: &'f [&'a str]) -> Option<&'f [&'a str]> {
        let last = |is: &dyn Fn(&str) -> bool| frames.iter().rposition(|name| is(name));
        match self {
            Self::Function(root) => frames.get(..last(&|name| name == root)?),
            Self::Calls { prefix, .. } => frames.get(..=last(&|name| name.starts_with(prefix))?),
        }
    }
}

fn read_below(text: &str, root: Root<'_>) -> Result<Vec<Part>, Unread> {
    let mut reading = Reading::default();
    let mut parts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let refused = || Unread::Line {
            line: index + 1,
            text: line.chars().take(80).collect(),
        };
        if let Some(total) = reading.line(line).ok_or_else(refused)? {
            parts.push(reading.part(total, root)?);
        }
    }
    if reading.begun || parts.is_empty() {
        return Err(Unread::Cut);
    }
    Ok(parts)
}

/// What is known at a line of the file. Names are those of the text.
#[derive(Default)]
struct Reading<'a> {
    /// Names by number, apart for functions and objects.
    functions: HashMap<u32, &'a str>,
    objects: HashMap<u32, &'a str>,
    number: u32,
    trigger: &'a str,
    /// How many columns a position has, and which cost is instructions.
    positions: usize,
    instructions: usize,
    /// Whether costs were read since the last total.
    begun: bool,
    object: &'a str,
    at: Option<usize>,
    called: Called<'a>,
    contexts: Vec<Context<'a>>,
    known: HashMap<&'a str, usize>,
}

/// What is called by the next lines.
#[derive(Default)]
struct Called<'a> {
    object: Option<&'a str>,
    context: Option<usize>,
    /// Calls whose cost is on the next line.
    pending: bool,
}

/// A function with its callers.
struct Context<'a> {
    /// The function first, then who called it, and so on.
    frames: Vec<&'a str>,
    object: &'a str,
    instructions: i64,
    calls: i64,
    /// Who calls it here, with the instructions of all calls.
    callers: HashMap<usize, i64>,
}

impl<'a> Reading<'a> {
    /// Takes a line. `Some(Some(total))` at the end of a part; `None` if it is no line of the format.
    fn line(&mut self, line: &'a str) -> Option<Option<i64>> {
        if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            self.costs(line)?;
            return Some(None);
        }
        if line.is_empty() || line.starts_with('#') {
            return Some(None);
        }
        // Names may hold both signs: the first of them says what the line is.
        let end = line.find(['=', ':'])?;
        let (key, value) = (line.get(..end)?, line.get(end + 1..)?.trim());
        match (key, line.get(end..=end)?) {
            ("totals", ":") => return Some(Some(first_number(value)?)),
            (_, ":") => self.header(key, value)?,
            (_, _) => self.name(key, value)?,
        }
        Some(None)
    }

    fn header(&mut self, key: &str, value: &'a str) -> Option<()> {
        match key {
            "part" => self.number = value.parse().ok()?,
            "desc" => {
                if let Some(trigger) = value.strip_prefix("Trigger:") {
                    self.trigger = trigger.trim();
                }
            }
            "positions" => self.positions = value.split_whitespace().count(),
            "events" => {
                self.instructions = value.split_whitespace().position(|event| event == "Ir")?;
                self.begun = true;
            }
            "version" if value != "1" => return None,
            _ => {}
        }
        Some(())
    }

    fn name(&mut self, key: &str, value: &'a str) -> Option<()> {
        match key {
            "ob" => self.object = named(&mut self.objects, value)?,
            "cob" => self.called.object = Some(named(&mut self.objects, value)?),
            "fn" => {
                let name = named(&mut self.functions, value)?;
                self.at = Some(self.context(name, self.object));
            }
            "cfn" => {
                let name = named(&mut self.functions, value)?;
                let object = self.called.object.unwrap_or(self.object);
                self.called.context = Some(self.context(name, object));
            }
            "calls" => {
                let calls = first_number(value)?;
                let context = self.contexts.get_mut(self.called.context?)?;
                context.calls += calls;
                self.called.pending = true;
            }
            "fl" | "fi" | "fe" | "cfi" | "cfl" | "jump" | "jcnd" => {}
            _ => return None,
        }
        Some(())
    }

    /// A line of costs: of the function itself, or after `calls=` of what it called.
    fn costs(&mut self, line: &str) -> Option<()> {
        let column = self.positions.max(1) + self.instructions;
        let cost = match line.split_ascii_whitespace().nth(column) {
            Some(cost) => signed(cost)?,
            None => 0,
        };
        let at = self.at?;
        if std::mem::take(&mut self.called.pending) {
            let called = self.called.context.take()?;
            self.called.object = None;
            let callers = &mut self.contexts.get_mut(called)?.callers;
            *callers.entry(at).or_default() += cost;
        } else {
            self.contexts.get_mut(at)?.instructions += cost;
        }
        Some(())
    }

    fn context(&mut self, name: &'a str, object: &'a str) -> usize {
        let contexts = &mut self.contexts;
        let index = *self.known.entry(name).or_insert_with(|| {
            contexts.push(Context {
                frames: name.split('\'').filter(|part| !is_level(part)).collect(),
                object: "",
                instructions: 0,
                calls: 0,
                callers: HashMap::new(),
            });
            contexts.len() - 1
        });
        if let Some(context) = contexts.get_mut(index)
            && object != "???"
        {
            context.object = object.rsplit('/').next().unwrap_or(object);
        }
        index
    }

    /// Ends a part. Names by number stay: a later part may refer to them.
    fn part(&mut self, total: i64, root: Root<'_>) -> Result<Part, Unread> {
        let contexts = std::mem::take(&mut self.contexts);
        self.known.clear();
        (self.at, self.called, self.begun) = (None, Called::default(), false);
        let sum = contexts.iter().map(|context| context.instructions).sum();
        if sum != total {
            let number = self.number;
            return Err(Unread::Sum { number, sum, total });
        }
        let (profile, of_threads) = Paths::of(&contexts, root).profile();
        Ok(Part {
            number: self.number,
            trigger: std::mem::take(&mut self.trigger).to_owned(),
            total,
            profile,
            of_threads,
        })
    }
}

/// Contexts on their way into a tree.
struct Paths<'a> {
    contexts: &'a [Context<'a>],
    root: Root<'a>,
    objects: HashMap<&'a str, &'a str>,
    grower: Grower,
    nodes: HashMap<usize, NodeId>,
}

impl<'a> Paths<'a> {
    fn of(contexts: &'a [Context<'a>], root: Root<'a>) -> Self {
        let named = |context: &Context<'a>| Some((*context.frames.first()?, context.object));
        let objects = contexts.iter().filter_map(named);
        Self {
            contexts,
            root,
            objects: objects.filter(|(_, object)| !object.is_empty()).collect(),
            grower: Grower::new(root.name()),
            nodes: HashMap::new(),
        }
    }

    /// The tree, and what of the rest was done by functions of the same files.
    fn profile(mut self) -> (Profile, i64) {
        let files = self.files();
        let mut of_threads = 0;
        let root_object = self.objects.get(self.root.name()).copied();
        self.grower
            .name_object(NodeId::ROOT, root_object.unwrap_or_default());
        for (index, context) in self.contexts.iter().enumerate() {
            if let Some(node) = self.node(index) {
                self.grower.take(node, context.instructions, context.calls);
                continue;
            }
            let mut objects = context.frames.iter().map(|name| self.objects.get(name));
            if objects.any(|object| object.is_some_and(|object| files.contains(object))) {
                of_threads += context.instructions;
            }
        }
        (self.grower.grown(), of_threads)
    }

    /// The files of the functions whose calls a profile is of.
    fn files(&self) -> HashSet<&'a str> {
        let Root::Calls { prefix, .. } = self.root else {
            return HashSet::new();
        };
        let objects = self.objects.iter();
        let called = objects.filter(|(name, _)| name.starts_with(prefix));
        called.map(|(_, object)| *object).collect()
    }

    /// The node of a context; where its path does not reach the root, below who called it; none if it is left
    /// out.
    fn node(&mut self, index: usize) -> Option<NodeId> {
        let mut waiting = vec![index];
        let mut seen = HashSet::from([index]);
        let mut node = loop {
            let at = waiting.last().copied()?;
            if let Some(known) = self.nodes.get(&at).copied() {
                waiting.pop();
                break known;
            }
            let context = self.contexts.get(at)?;
            if let Some(path) = self.root.below(&context.frames) {
                let path = path.iter().rev();
                let node = self.down(NodeId::ROOT, path.copied(), context.object);
                self.nodes.insert(at, node);
                continue;
            }
            match caller(context, &seen) {
                Some(above) => {
                    seen.insert(above);
                    waiting.push(above);
                }
                None if matches!(self.root, Root::Calls { .. }) => return None,
                None => {
                    let outside = self.grower.child(NodeId::ROOT, OUTSIDE, "");
                    let path = context.frames.iter().rev().copied();
                    let node = self.down(outside, path, context.object);
                    self.nodes.insert(at, node);
                }
            }
        };
        while let Some(below) = waiting.pop() {
            let context = self.contexts.get(below);
            let name = context.and_then(|context| context.frames.first());
            let object = context.map_or("", |context| context.object);
            node = self
                .grower
                .child(node, name.copied().unwrap_or_default(), object);
            self.nodes.insert(below, node);
        }
        Some(node)
    }

    /// The node at the end of a path; the last function's object is known, that of its callers by name.
    fn down(&mut self, from: NodeId, path: impl Iterator<Item = &'a str>, object: &str) -> NodeId {
        let mut path = path.peekable();
        let mut node = from;
        while let Some(name) = path.next() {
            let by_name = self.objects.get(name).copied().unwrap_or_default();
            let object = if path.peek().is_none() {
                object
            } else {
                by_name
            };
            node = self.grower.child(node, name, object);
        }
        node
    }
}

/// Who calls a function most, by instructions, among those that were not asked yet.
fn caller(context: &Context<'_>, seen: &HashSet<usize>) -> Option<usize> {
    let callers = context.callers.iter();
    let others = callers.filter(|(caller, _)| !seen.contains(caller));
    others
        .max_by_key(|(caller, cost)| (**cost, std::cmp::Reverse(**caller)))
        .map(|(caller, _)| *caller)
}

/// A name: `(17) name` says it for the first time, `(17)` again, anything else is not compressed.
fn named<'a>(names: &mut HashMap<u32, &'a str>, value: &'a str) -> Option<&'a str> {
    let numbered = value
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .and_then(|(number, rest)| Some((number.parse().ok()?, rest.trim_start())));
    match numbered {
        Some((number, "")) => names.get(&number).copied(),
        Some((number, name)) => {
            names.insert(number, name);
            Some(name)
        }
        None => Some(value),
    }
}

fn first_number(text: &str) -> Option<i64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// A cost. That of a call which was under way at a mark is below 0, and written as what is missing to 2^64.
fn signed(text: &str) -> Option<i64> {
    text.parse::<u64>().ok().map(u64::cast_signed)
}

/// Whether a part of a name is the level of a recursion (`'2`).
fn is_level(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths kept whole; names, and no positions. Made from `recursion.c` beside it, marks before `mark`.
    const PARTS: &str = include_str!("../tests/data/callgrind/3.19/parts.out");
    /// The same with 4 callers of each function, jumps, and two columns of relative positions.
    const SHORT: &str = include_str!("../tests/data/callgrind/3.19/instr.out");

    /// Instructions and calls at a path below `main`.
    fn at(profile: &Profile, path: &[&str]) -> Option<(i64, i64)> {
        let down = |parent: usize, name: &&str| {
            let mut nodes = profile.nodes.iter().enumerate().skip(1);
            nodes.find_map(|(index, node)| {
                let is_it = profile.function(node).unwrap().name == **name;
                (node.parent.index() == parent && is_it).then_some(index)
            })
        };
        let index = path.iter().try_fold(0, down)?;
        let node = profile.nodes[index];
        Some((node.instructions, node.calls))
    }

    #[test]
    fn windows_between_marks_come_in_order_with_their_calls() {
        let parts = read(PARTS, "main").unwrap();
        let totals: Vec<i64> = parts.iter().map(|part| part.total).collect();
        assert_eq!(totals, [2719, 2721, 5416, 6, 11]);
        assert_eq!(parts[1].trigger, "--dump-before=mark");
        assert_eq!(parts[4].trigger, "Program termination");
        let window = &parts[2].profile;
        // work(10) calls fib(6) ten times, which takes 25 calls each.
        assert_eq!(at(window, &["work", "fib"]).unwrap().1, 250);
        assert_eq!(
            at(window, &["work", "deep1", "deep2", "deep3"]).unwrap().1,
            10
        );
        assert_eq!(
            at(window, &["work", "even", "odd", "even", "odd"])
                .unwrap()
                .1,
            10
        );
        assert_eq!(
            at(window, &["work", "fib", "fib"]),
            None,
            "recursion is one path"
        );
        assert_eq!(window.functions[1].object, "recursion");
    }

    #[test]
    fn paths_longer_than_the_counter_keeps_are_completed_by_their_callers() {
        let (whole, short) = (read(PARTS, "main").unwrap(), read(SHORT, "main").unwrap());
        for (whole, short) in whole.iter().zip(&short) {
            assert_eq!(whole.total, short.total);
            assert_eq!(short.profile.total(), short.total);
        }
        for path in [&["work", "fib"][..], &["work", "deep1", "deep2", "deep3"]] {
            let of = |parts: &[Part]| at(&parts[2].profile, path);
            assert_eq!(of(&short), of(&whole), "{path:?}");
        }
    }

    #[test]
    fn twice_the_work_less_once_the_work_is_once_the_work() {
        let parts = read(PARTS, "main").unwrap();
        let twice = parts[2].profile.minus(&parts[1].profile);
        let once = parts[1].profile.minus(&parts[3].profile);
        let path = ["work", "deep1", "deep2", "deep3"];
        assert_eq!(at(&twice, &path), at(&once, &path));
        assert_eq!(twice.total(), 5416 - 2721);
    }

    #[test]
    fn what_is_not_below_the_root_is_told_apart_and_nothing_is_lost() {
        let part = &read(PARTS, "work").unwrap()[2];
        assert_eq!(part.profile.total(), 5416);
        assert!(at(&part.profile, &["fib"]).is_some());
        assert!(at(&part.profile, &[OUTSIDE]).is_some());
    }

    #[test]
    fn a_call_that_was_under_way_at_a_mark_may_cost_less_than_nothing() {
        assert_eq!(signed("17"), Some(17));
        assert_eq!(signed("18446744073709551599"), Some(-17));
        assert_eq!(signed("x"), None);
    }

    #[test]
    fn calls_of_a_library_begin_with_the_outermost_and_nothing_else_is_in_them() {
        for text in [PARTS, SHORT] {
            let part = &read_calls(text, "deep", "calls").unwrap()[2];
            let path = ["deep1", "deep2", "deep3"];
            assert_eq!(at(&part.profile, &path).unwrap().1, 10);
            assert_eq!(at(&part.profile, &["deep2"]), None, "deep1 called it");
            assert_eq!(at(&part.profile, &[OUTSIDE]), None);
            let whole = &read(text, "work").unwrap()[2].profile;
            assert_eq!(part.profile.functions[0].name, "calls");
            let each = |end: usize| at(whole, &path[..end]).unwrap().0;
            assert_eq!(part.profile.total(), (1..=3).map(each).sum::<i64>());
            // The whole program is one file, so all else is as if threads of the library had done it.
            let named = part.total - part.profile.total();
            assert!((1..=named).contains(&part.of_threads), "{part:?}");
        }
    }

    #[test]
    fn a_file_that_is_cut_or_changed_or_of_another_format_is_refused() {
        let cut = &PARTS[..PARTS.rfind("totals").unwrap()];
        assert_eq!(read(cut, "main"), Err(Unread::Cut));
        assert_eq!(read("", "main"), Err(Unread::Cut));
        let changed = PARTS.replacen("totals: 2719", "totals: 2720", 1);
        let refused = read(&changed, "main").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "functions of part 1 sum to 2719 instructions, and its last line says 2720"
        );
        let foreign = read("events: Ir\nfn=main\n0 x", "main").unwrap_err();
        assert_eq!(
            foreign.to_string(),
            "line 3 is not a line of callgrind: 0 x"
        );
        assert!(read("<html>", "main").is_err());
        assert!(
            read("fn=(12)\n", "main").is_err(),
            "a number that has no name"
        );
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;

        /// Nodes of a made-up tree: parent among those before, name, instructions, calls.
        fn trees() -> impl Strategy<Value = Vec<(usize, usize, i64, i64)>> {
            let node = (
                any::<prop::sample::Index>(),
                0..6_usize,
                0..900_i64,
                1..50_i64,
            );
            prop::collection::vec(node, 0..40).prop_map(|nodes| {
                let place = |(index, (parent, name, cost, calls)): (
                    usize,
                    (prop::sample::Index, _, _, _),
                )| { (parent.index(index + 1), name, cost, calls) };
                nodes.into_iter().enumerate().map(place).collect()
            })
        }

        /// The name of node `index` as callgrind writes it, and the tree that is meant.
        fn written(tree: &[(usize, usize, i64, i64)]) -> (String, Profile) {
            let mut names = vec!["root'(below main)".to_owned()];
            let (mut grower, mut ids) = (Grower::new("root"), vec![NodeId::ROOT]);
            let mut calls_of: Vec<Vec<(usize, i64)>> = vec![Vec::new()];
            for (parent, name, cost, calls) in tree {
                let name = format!("f{name}");
                let id = grower.child(ids[*parent], &name, "server");
                grower.take(id, *cost, *calls);
                names.push(format!("{name}'{}", names[*parent]));
                ids.push(id);
                calls_of.push(Vec::new());
                calls_of[*parent].push((ids.len() - 1, *calls));
            }
            let mut text =
                "version: 1\npart: 1\npositions: instr line\nevents: Dr Ir\n\nob=(3) /x/server\n"
                    .to_owned();
            let mut total = 0;
            for (index, name) in names.iter().enumerate() {
                let cost = if index == 0 { 0 } else { tree[index - 1].2 };
                total += cost;
                text += &format!("fn=({index}) {name}\n0x1f 7 3 {cost}\n");
                for (called, calls) in &calls_of[index] {
                    text += &format!(
                        "cob=(3)\ncfn=({called}) {}\ncalls={calls} +3 *\n* +1 9 12345\n",
                        names[*called]
                    );
                }
            }
            text += &format!("totals: 4 {total}\n");
            (text.replace("totals: 4 ", "totals: "), grower.grown())
        }

        proptest! {
            #[test]
            fn a_made_up_tree_comes_back_as_it_was_written(tree in trees()) {
                let (text, meant) = written(&tree);
                let part = &read(&text, "root").unwrap()[0];
                prop_assert_eq!(part.profile.total(), part.total);
                prop_assert_eq!(part.profile.inclusive()[0], part.total);
                let nothing = part.profile.minus(&meant);
                prop_assert_eq!(nothing.nodes.len(), 1, "{:?}", nothing);
            }
        }
    }
}
