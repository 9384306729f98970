//! Where two plans part: the nodes that only one of them has.

use deltabench_model::replayed::{PlanLine, Replayed};

/// Nodes of each side that a sentence names.
const NAMED: usize = 2;

/// Two plans of one statement.
pub(crate) struct Parting<'a> {
    pub(crate) from: &'a [PlanLine],
    pub(crate) to: &'a [PlanLine],
}

impl<'a> Parting<'a> {
    /// The plans of these names.
    pub(crate) fn of(replayed: &'a Replayed, from: &str, to: &str) -> Self {
        let lines = |id: &str| {
            let plan = replayed.plans.iter().find(|plan| plan.id == id);
            plan.map_or(&[][..], |plan| plan.lines.as_slice())
        };
        Self {
            from: lines(from),
            to: lines(to),
        }
    }

    /// For each line of both plans whether the other plan lacks it.
    pub(crate) fn alone(&self) -> (Vec<bool>, Vec<bool>) {
        (
            alone(self.from, self.to, whole),
            alone(self.to, self.from, whole),
        )
    }

    /// `Index Scan using i on t → Seq Scan on t`.
    pub(crate) fn sentence(&self) -> String {
        let name = |line: &PlanLine| line.node.clone();
        let (from, to) = (
            named(self.from, self.to, name),
            named(self.to, self.from, name),
        );
        if !(from.is_empty() && to.is_empty()) {
            return from_to(&from, &to);
        }
        let (from, to) = (
            named(self.from, self.to, whole),
            named(self.to, self.from, whole),
        );
        if from.is_empty() && to.is_empty() {
            return "the same nodes in another order".to_owned();
        }
        from_to(&from, &to)
    }
}

fn from_to(from: &[String], to: &[String]) -> String {
    match (from, to) {
        (from, []) => format!("no longer {}", from.join(", ")),
        ([], to) => format!("also {}", to.join(", ")),
        (from, to) => format!("{} → {}", from.join(", "), to.join(", ")),
    }
}

/// A node with its conditions.
fn whole(line: &PlanLine) -> String {
    let mut text = line.node.clone();
    for detail in &line.details {
        text.push_str(&format!(" ({detail})"));
    }
    text
}

/// What only `one` has, as many times as it has it more.
fn alone(one: &[PlanLine], other: &[PlanLine], name: impl Fn(&PlanLine) -> String) -> Vec<bool> {
    let mut left: Vec<String> = other.iter().map(&name).collect();
    let mut is_alone = |line: &PlanLine| {
        let text = name(line);
        match left.iter().position(|known| *known == text) {
            Some(place) => {
                left.swap_remove(place);
                false
            }
            None => true,
        }
    };
    one.iter().map(&mut is_alone).collect()
}

/// The first of the nodes that only `one` has.
fn named(
    one: &[PlanLine],
    other: &[PlanLine],
    name: impl Fn(&PlanLine) -> String + Copy,
) -> Vec<String> {
    let alone = alone(one, other, name);
    let lines = one.iter().zip(alone).filter(|(_, alone)| *alone);
    let mut names: Vec<String> = lines.map(|(line, _)| name(line)).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}
