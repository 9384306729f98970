//! What was sampled of a server's time in a visit: how often each stack of functions was seen.

use crate::explanation::TimeChange;
use crate::id::{CellId, ServerId};
use crate::problem::Problem;
use crate::profile::{place, small};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// What records of samples are called in a store.
pub const KIND: &str = "samples";

/// Stacks of one server in one visit.
///
/// Shape: stacks as a tree; every sample is in one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledStacks {
    #[serde(flatten)]
    pub taken: Taken,
    /// Names of functions and system calls.
    pub functions: Vec<String>,
    /// Each with its parent (itself for those without one), the place of its function, and the samples in
    /// which it was the last of the stack. A node comes after its parent.
    pub nodes: Vec<(u32, u32, u64)>,
}

/// Whose time is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileScope {
    /// All that some cores do, the kernel included.
    #[default]
    Core,
    /// Only some processes, and only outside of the kernel: all that users without rights may do. The event
    /// itself makes short operations dearer, so shares of functions are biased.
    Process,
}

/// How stacks of a visit were taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Taken {
    pub scope: ProfileScope,
    /// Samples per second and core.
    pub rate: u32,
    /// What sampling added to the CPU of an operation on the base in this visit, as a share; absent where
    /// nobody looked, or that could not tell.
    pub cost: Option<f64>,
    /// Samples whose stack does not reach the main function of its process; they are in the tree.
    pub truncated: u64,
    /// Samples that had no room in memory; they are nowhere.
    pub lost: u64,
    /// Samples of other processes on the same cores, the client too; they are nowhere.
    pub others: u64,
}

/// Share of false ones among functions that are called different, at most, on average.
const FALSE: f64 = 0.05;

/// A function, and how much its time differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTime {
    /// Its name, without what the compiler appended.
    pub name: String,
    /// Nanoseconds per operation.
    pub change: TimeChange,
    /// Chance of such a difference between equal servers, adjusted for the number of functions.
    pub p: f64,
}

impl FunctionTime {
    /// Whether it is called different.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.p <= FALSE
    }
}

/// What samples say of a candidate, or of the placebo.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledTime {
    /// Functions by their own time, the surest difference first.
    pub own: Vec<FunctionTime>,
    /// The same by their time with all that they call.
    pub inclusive: Vec<FunctionTime>,
    /// Blocks.
    pub blocks: usize,
    /// Samples of the base and of the other side.
    pub samples: (u64, u64),
    /// Share of stacks that reach the main function of their process.
    pub complete: f64,
    /// How many times as much as counting the functions scatter.
    pub overdispersion: f64,
    /// Share of its time by which a function of equal servers differs for good, as the square.
    pub lasting: f64,
    /// A difference of a function with a hundredth of the time that is too small to be seen, nanoseconds.
    pub unseen_ns: f64,
}

/// A cell of which the servers' time was sampled, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledCell {
    /// Which cell.
    pub cell: CellId,
    /// The candidate; the other side is the base.
    pub candidate: ServerId,
    /// What its samples say.
    pub time: SampledTime,
    /// What those of the placebo say, if there is one.
    pub placebo: Option<SampledTime>,
    /// Whether shares are biased, because only processes could be sampled and only outside of the kernel.
    pub biased: bool,
    /// Samples per second and core: the fewest of all blocks.
    pub rate: u32,
    /// What sampling added to the CPU of an operation, as a share: the median over blocks.
    pub cost: Option<f64>,
    /// Samples of both sides that had no room in memory.
    pub lost: u64,
}

impl SampledStacks {
    /// From stacks of numbers of names, the outermost function first; `name` gives the name of a number.
    #[must_use]
    pub fn of<'n>(
        taken: Taken,
        stacks: &BTreeMap<Vec<u32>, u64>,
        name: impl Fn(u32) -> Option<&'n str>,
    ) -> Self {
        let mut tree = Self {
            taken,
            functions: Vec::new(),
            nodes: Vec::new(),
        };
        let mut functions: HashMap<u32, u32> = HashMap::new();
        let mut places: HashMap<(Option<u32>, u32), u32> = HashMap::new();
        for (stack, seen) in stacks {
            let mut at = None;
            for &number in stack {
                let function = *functions.entry(number).or_insert_with(|| {
                    tree.functions
                        .push(name(number).unwrap_or("[unknown]").to_owned());
                    small(tree.functions.len() - 1)
                });
                at = Some(*places.entry((at, function)).or_insert_with(|| {
                    let own = small(tree.nodes.len());
                    tree.nodes.push((at.unwrap_or(own), function, 0));
                    own
                }));
            }
            if let Some((.., samples)) = at.and_then(|at| tree.nodes.get_mut(place(at))) {
                *samples += seen;
            }
        }
        tree
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.nodes.iter().map(|(.., samples)| samples).sum()
    }

    /// Each stack that was seen, the outermost function first, with its samples.
    #[must_use]
    pub fn stacks(&self) -> Vec<(Vec<&str>, u64)> {
        let seen = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, (.., samples))| *samples > 0);
        seen.map(|(at, (.., samples))| (self.stack(small(at)), *samples))
            .collect()
    }

    fn stack(&self, node: u32) -> Vec<&str> {
        let mut names = Vec::new();
        let mut at = node;
        while let Some((parent, function, _)) = self.nodes.get(place(at)) {
            let name = self.functions.get(place(*function));
            names.push(name.map_or("[unknown]", String::as_str));
            // A damaged file may name a later node; a stack of that would have no end.
            if *parent >= at {
                break;
            }
            at = *parent;
        }
        names.reverse();
        names
    }

    /// As the payload of a record.
    #[must_use]
    pub fn payload(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the payload of a record.
    ///
    /// Errors: it is none of this program's.
    pub fn from_payload(payload: &str) -> Result<Self, Problem> {
        serde_json::from_str(payload).map_err(|error| {
            Problem::new("a record of samples is damaged").detail(error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["PostgresMain", "exec_simple_query", "ExecScan", "[sendto]"];

    fn sampled() -> SampledStacks {
        let stacks = BTreeMap::from([
            (vec![0], 2),
            (vec![0, 1, 2], 7),
            (vec![0, 1, 2, 2], 1),
            (vec![0, 3], 4),
            (vec![3], 1),
        ]);
        let taken = Taken {
            rate: 997,
            cost: Some(0.01),
            others: 5,
            ..Taken::default()
        };
        SampledStacks::of(taken, &stacks, |number| NAMES.get(place(number)).copied())
    }

    #[test]
    fn stacks_come_back_from_their_tree_and_from_a_record() {
        let tree = sampled();
        assert_eq!(tree.samples(), 15);
        assert_eq!(tree.nodes.len(), 6, "paths are shared: {:?}", tree.nodes);
        let read = SampledStacks::from_payload(&tree.payload()).unwrap();
        assert_eq!(read, tree);
        let stacks: BTreeMap<Vec<&str>, u64> = read.stacks().into_iter().collect();
        let expected = BTreeMap::from([
            (vec![NAMES[0]], 2),
            (vec![NAMES[0], NAMES[1], NAMES[2]], 7),
            (vec![NAMES[0], NAMES[1], NAMES[2], NAMES[2]], 1),
            (vec![NAMES[0], NAMES[3]], 4),
            (vec![NAMES[3]], 1),
        ]);
        assert_eq!(stacks, expected);
        assert!(SampledStacks::from_payload("{}").is_err());
        let stored =
            r#"{"scope":"core","rate":997,"cost":0.01,"truncated":0,"lost":0,"others":5,"func"#;
        assert!(tree.payload().starts_with(stored), "{}", tree.payload());
    }

    #[test]
    fn a_damaged_tree_has_no_endless_stacks() {
        let mut tree = sampled();
        tree.nodes[0].0 = 3;
        tree.nodes[1].0 = 99;
        assert!(tree.stacks().iter().all(|(names, _)| names.len() <= 6));
    }
}
