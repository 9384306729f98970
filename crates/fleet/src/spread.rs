//! Repetitions on different hosts, as long as there are hosts without one.

use crate::lanes::{Lane, Lanes};
use std::collections::BTreeSet;

/// The nodes that a lane keeps away from because of its repetitions: `usable` are the nodes that lanes may
/// get, `taken` those on which lanes have begun.
pub fn nodes_to_keep_away(
    lanes: &Lanes,
    lane: u32,
    usable: &[String],
    taken: &[(u32, String)],
) -> Vec<String> {
    let own = lanes.lane(lane).map(|lane| parts(lanes, lane));
    let is_like = |other: u32| lanes.lane(other).map(|other| parts(lanes, other)) == own;
    kept_away(lane, &is_like, usable, taken)
}

/// Other lanes have measured the same parts on these nodes, and another node has none of them yet. Nothing if
/// every node has: then any will do. A lane may always go on where it was.
fn kept_away(
    lane: u32,
    is_like: &dyn Fn(u32) -> bool,
    usable: &[String],
    taken: &[(u32, String)],
) -> Vec<String> {
    let used: BTreeSet<&String> = { taken.iter() }
        .filter(|(other, _)| *other != lane && is_like(*other))
        .map(|(_, node)| node)
        .collect();
    if usable.iter().all(|node| used.contains(node)) {
        return Vec::new();
    }
    let was_here = |node: &str| taken.iter().any(|(one, at)| *one == lane && at == node);
    let away = used.into_iter().filter(|node| !was_here(node));
    away.cloned().collect()
}

/// What a lane measures, whatever its repetition is.
fn parts<'a>(lanes: &'a Lanes, lane: &Lane) -> BTreeSet<&'a [(String, String)]> {
    let units = lane.units.iter().filter_map(|unit| lanes.unit(*unit));
    units
        .filter_map(|unit| Some(unit.plan.experiment.as_ref()?.coordinates.as_slice()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_keep_to_different_hosts_while_one_has_none() {
        let usable = ["n1", "n2", "n3"].map(str::to_owned);
        // Even lanes measure one part, odd ones another.
        let away = |lane: u32, taken: &[(u32, &str)]| {
            let taken: Vec<(u32, String)> = { taken.iter() }
                .map(|(lane, node)| (*lane, (*node).to_owned()))
                .collect();
            kept_away(lane, &|other| other % 2 == lane % 2, &usable, &taken)
        };
        assert_eq!(away(4, &[]), [""; 0]);
        assert_eq!(away(4, &[(0, "n2"), (1, "n1"), (2, "n3")]), ["n2", "n3"]);
        // One that was interrupted goes on where its lab is.
        assert_eq!(away(2, &[(0, "n2"), (4, "n3"), (2, "n3")]), ["n2"]);
        // Fewer hosts than repetitions: a preference, no reason to wait.
        assert_eq!(away(6, &[(0, "n1"), (2, "n2"), (4, "n3")]), [""; 0]);
    }
}
