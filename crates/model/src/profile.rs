//! Where the instructions of operations went: a tree of call paths with what each of them took.

pub use crate::id::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Instructions and calls by call path, of so many operations.
///
/// Shape: `nodes` is never empty, and a node comes after its parent; no two nodes have the same parent and
/// the same function. Every instruction is in one node, so the nodes sum to the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Profile {
    /// How many operations these are.
    pub operations: u64,
    /// The functions that nodes refer to.
    pub functions: Vec<Function>,
    /// The call paths; the first is the root.
    pub nodes: Vec<Node>,
}

/// A function of the server or of a library that it uses; `[name, object]` in files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(String, String)", into = "(String, String)")]
pub struct Function {
    /// Its name as the binary has it, with what the compiler appended (`.isra.0`).
    pub name: String,
    /// File name of the program or library that holds it; empty where that is not known.
    pub object: String,
}

/// A function as it is called on one path; `[parent, function, instructions, calls]` in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(NodeId, u32, i64, i64)", into = "(NodeId, u32, i64, i64)")]
pub struct Node {
    /// The path that calls it; the root's is the root.
    pub parent: NodeId,
    /// Index in [`Profile::functions`].
    pub function: u32,
    /// What it executed itself, without what it calls. Below 0 where more was subtracted than there was.
    pub instructions: i64,
    /// How often it was called on this path, recursion included.
    pub calls: i64,
}

impl Profile {
    /// The function of a node; the nodes of a profile have one each.
    pub fn function(&self, node: &Node) -> Option<&Function> {
        self.functions.get(place(node.function))
    }

    /// Instructions of all nodes together.
    pub fn total(&self) -> i64 {
        self.nodes.iter().map(|node| node.instructions).sum()
    }

    /// Instructions of each node with all that it calls, in the order of the nodes.
    pub fn inclusive(&self) -> Vec<i64> {
        let mut sums: Vec<i64> = self.nodes.iter().map(|node| node.instructions).collect();
        for (index, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let below = sums.get(index).copied().unwrap_or_default();
            if let Some(sum) = sums.get_mut(node.parent.index()) {
                *sum += below;
            }
        }
        sums
    }

    /// The same for a number of operations.
    #[must_use]
    pub fn of(self, operations: u64) -> Self {
        Self { operations, ..self }
    }

    /// What is left of it after `empty` is taken away, path by path; the operations stay.
    pub fn minus(&self, empty: &Self) -> Self {
        self.with(empty, -1).of(self.operations)
    }

    /// Together with what was counted before, path by path.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        let operations = self.operations + before.operations;
        before.with(&self, 1).of(operations)
    }

    fn with(&self, other: &Self, sign: i64) -> Self {
        let root = self.nodes.first().and_then(|node| self.function(node));
        let mut grower = Grower::new(root.map_or("", |root| &root.name));
        grower.add(self, 1);
        grower.add(other, sign);
        grower.grown()
    }
}

/// A profile in the making: paths are added in any order.
#[derive(Debug)]
pub struct Grower {
    profile: Profile,
    functions: HashMap<Function, u32>,
    children: HashMap<(NodeId, String), NodeId>,
}

impl Grower {
    /// Begins with a root of that name.
    pub fn new(root: &str) -> Self {
        let function = Function {
            name: root.to_owned(),
            object: String::new(),
        };
        let node = Node {
            parent: NodeId::ROOT,
            function: 0,
            instructions: 0,
            calls: 0,
        };
        Self {
            profile: Profile {
                operations: 1,
                functions: vec![function.clone()],
                nodes: vec![node],
            },
            functions: HashMap::from([(function, 0)]),
            children: HashMap::new(),
        }
    }

    /// The node of a function that is called at `parent`, made if it is not there yet.
    ///
    /// Shape: nodes are told apart by name; the first object that is known of one stays.
    pub fn child(&mut self, parent: NodeId, name: &str, object: &str) -> NodeId {
        let key = (parent, name.to_owned());
        if let Some(known) = self.children.get(&key).copied() {
            self.name_object(known, object);
            return known;
        }
        let function = self.number(name, object);
        let node = NodeId::at(self.profile.nodes.len());
        self.profile.nodes.push(Node {
            parent,
            function,
            instructions: 0,
            calls: 0,
        });
        self.children.insert(key, node);
        node
    }

    /// Adds to what a node took.
    pub fn take(&mut self, node: NodeId, instructions: i64, calls: i64) {
        if let Some(node) = self.profile.nodes.get_mut(node.index()) {
            node.instructions += instructions;
            node.calls += calls;
        }
    }

    /// Says which object the function of a node is in, where that was not known.
    pub fn name_object(&mut self, node: NodeId, object: &str) {
        let Some(at) = self.profile.nodes.get(node.index()).copied() else {
            return;
        };
        let function = self.profile.function(&at).cloned();
        if let Some(function) = function.filter(|function| function.object.is_empty())
            && !object.is_empty()
        {
            let number = self.number(&function.name, object);
            if let Some(at) = self.profile.nodes.get_mut(node.index()) {
                at.function = number;
            }
        }
    }

    /// Adds a whole profile `sign` times.
    fn add(&mut self, other: &Profile, sign: i64) {
        let mut ids: Vec<NodeId> = Vec::with_capacity(other.nodes.len());
        for (index, node) in other.nodes.iter().enumerate() {
            let Some(function) = other.function(node) else {
                continue;
            };
            let id = if index == 0 {
                self.name_object(NodeId::ROOT, &function.object);
                NodeId::ROOT
            } else {
                let parent = ids.get(node.parent.index()).copied().unwrap_or_default();
                self.child(parent, &function.name, &function.object)
            };
            self.take(id, sign * node.instructions, sign * node.calls);
            ids.push(id);
        }
    }

    /// The profile, without paths on which nothing was done and functions that no path has.
    pub fn grown(self) -> Profile {
        let nodes = &self.profile.nodes;
        let mut wanted: Vec<bool> = nodes
            .iter()
            .map(|node| node.instructions != 0 || node.calls != 0)
            .collect();
        for (index, node) in nodes.iter().enumerate().rev() {
            if index == 0 || wanted.get(index).copied().unwrap_or_default() {
                set(&mut wanted, node.parent.index(), true);
            }
        }
        let mut left = Profile {
            operations: self.profile.operations,
            functions: Vec::new(),
            nodes: Vec::new(),
        };
        let (mut ids, mut numbers) = (vec![NodeId::ROOT; nodes.len()], HashMap::new());
        for (index, node) in nodes.iter().enumerate() {
            if !wanted.get(index).copied().unwrap_or_default() {
                continue;
            }
            set(&mut ids, index, NodeId::at(left.nodes.len()));
            let number = *numbers.entry(node.function).or_insert_with(|| {
                left.functions.extend(self.profile.function(node).cloned());
                small(left.functions.len().saturating_sub(1))
            });
            left.nodes.push(Node {
                parent: ids.get(node.parent.index()).copied().unwrap_or_default(),
                function: number,
                ..*node
            });
        }
        left
    }

    fn number(&mut self, name: &str, object: &str) -> u32 {
        let function = Function {
            name: name.to_owned(),
            object: object.to_owned(),
        };
        let functions = &mut self.profile.functions;
        *self
            .functions
            .entry(function)
            .or_insert_with_key(|function| {
                functions.push(function.clone());
                small(functions.len() - 1)
            })
    }
}

/// A profile as it stands in a file, before it is looked at.
#[derive(Deserialize)]
struct Stored {
    operations: u64,
    functions: Vec<Function>,
    nodes: Vec<Node>,
}

impl TryFrom<Stored> for Profile {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let in_order = |(index, node): (usize, &Node)| {
            node.parent.index() < index.max(1) && place(node.function) < stored.functions.len()
        };
        if stored.nodes.is_empty() || !stored.nodes.iter().enumerate().all(in_order) {
            return Err("a profile's node names a parent or a function that is not there");
        }
        Ok(Self {
            operations: stored.operations,
            functions: stored.functions,
            nodes: stored.nodes,
        })
    }
}

impl From<(String, String)> for Function {
    fn from((name, object): (String, String)) -> Self {
        Self { name, object }
    }
}

impl From<Function> for (String, String) {
    fn from(function: Function) -> Self {
        (function.name, function.object)
    }
}

impl From<(NodeId, u32, i64, i64)> for Node {
    fn from((parent, function, instructions, calls): (NodeId, u32, i64, i64)) -> Self {
        Self {
            parent,
            function,
            instructions,
            calls,
        }
    }
}

impl From<Node> for (NodeId, u32, i64, i64) {
    fn from(node: Node) -> Self {
        (node.parent, node.function, node.instructions, node.calls)
    }
}

pub(crate) fn place(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

pub(crate) fn small(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn set<T>(values: &mut [T], index: usize, value: T) {
    if let Some(at) = values.get_mut(index) {
        *at = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of paths `a/b/c` with instructions and calls.
    fn of(paths: &[(&str, i64, i64)]) -> Profile {
        let mut grower = Grower::new("main");
        for (path, instructions, calls) in paths {
            let node = path
                .split('/')
                .filter(|name| !name.is_empty())
                .fold(NodeId::ROOT, |at, name| grower.child(at, name, "server"));
            grower.take(node, *instructions, *calls);
        }
        grower.grown()
    }

    #[test]
    fn a_node_sums_to_itself_and_what_it_calls() {
        let profile = of(&[("", 1, 0), ("a", 10, 1), ("a/b", 100, 2), ("c", 1000, 1)]);
        assert_eq!(profile.inclusive(), [1111, 110, 100, 1000]);
        assert_eq!(profile.total(), 1111);
    }

    #[test]
    fn what_is_subtracted_path_by_path_is_gone_and_what_was_more_stays_below_zero() {
        let empty = of(&[("", 1, 0), ("mark", 50, 1), ("a", 4, 1)]);
        let left = of(&[("", 1, 0), ("a", 10, 3), ("mark", 50, 1)]).minus(&empty);
        assert_eq!(left, of(&[("a", 6, 2)]));
        let below = of(&[("a", 1, 1)]).minus(&empty);
        assert_eq!(below.total(), 1 - 55);
    }

    #[test]
    fn what_is_taken_away_leaves_the_operations() {
        let window = of(&[("a", 10, 1), ("a/b", 5, 2)]).of(100);
        let both = of(&[("a", 20, 2), ("a/b", 10, 4)]).of(200);
        let left = both.minus(&window);
        assert_eq!((left.operations, left.total()), (200, 15));
        assert_eq!(left.of(100), window);
    }

    #[test]
    fn two_windows_are_one_profile() {
        let first = of(&[("a", 10, 1), ("a/b", 5, 2)]).of(100);
        let second = of(&[("a/b", 7, 3), ("c", 1, 1)]).of(50);
        let both = of(&[("a", 10, 1), ("a/b", 12, 5), ("c", 1, 1)]).of(150);
        assert_eq!(second.after(Some(&first)), both);
        assert_eq!(first.clone().after(None), first);
    }

    #[test]
    fn a_file_gives_back_the_profile_and_a_node_without_parent_is_refused() {
        let profile = of(&[("a", 10, 1), ("a/b", -5, 2)]).of(7);
        let text = serde_json::to_string(&profile).unwrap();
        assert!(
            text.contains(r#""nodes":[[0,0,0,0],[0,1,10,1],[1,2,-5,2]]"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        let broken = text.replace("[1,2,-5,2]", "[2,2,-5,2]");
        let refused = serde_json::from_str::<Profile>(&broken).unwrap_err();
        assert!(refused.to_string().contains("not there"), "{refused}");
    }
}
