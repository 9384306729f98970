//! What a backend does because time has passed, and not because of an operation.
//!
//! It sends or writes its statistics when a second has passed since it did so last, and makes new entries for
//! them afterwards. Under a counter an operation takes fifty times as long, and more on a busy machine: this
//! part comes as often as the machine is slow, 9700 instructions each time of the 17 million of a window.
//! Without it, two starts of the same server differ by a few millionths.

use deltabench_model::profile::{Grower, NodeId, Profile};

/// Functions that do, or lead to, what the clock calls for: now and then, where an operation would do it each
/// time.
///
/// Source: pgstat_report_stat() in pgstat.c and pgstat_relation.c of PostgreSQL 9.6 to 18, PostgresMain() in
/// postgres.c.
const DRIVEN: [&str; 6] = [
    "pgstat_report_stat",
    "pgstat_assoc_relation",
    "get_tabstat_entry",
    "enable_timeout_after",
    "disable_timeout",
    "ProcessClientReadInterrupt",
];

/// With fewer operations than this, now and then cannot be told from each time.
const FEW: i64 = 8;

/// A profile without what the clock called for in so many operations.
pub fn without(profile: &Profile, operations: u64) -> Profile {
    let operations = i64::try_from(operations).unwrap_or(i64::MAX);
    let root = profile
        .nodes
        .first()
        .and_then(|node| profile.function(node));
    let mut left = Grower::new(root.map_or("", |root| &root.name));
    // Where each node went; none for those that are left out, with all below them.
    let mut places: Vec<Option<NodeId>> = Vec::with_capacity(profile.nodes.len());
    for (place, node) in profile.nodes.iter().enumerate() {
        let parent = places.get(node.parent.index()).copied().flatten();
        let function = profile.function(node);
        let kept = match (place, parent, function) {
            (0, _, function) => {
                if let Some(function) = function {
                    left.name_object(NodeId::ROOT, &function.object);
                }
                Some(NodeId::ROOT)
            }
            (_, Some(parent), Some(function)) if !is_left_out(profile, node, operations) => {
                Some(left.child(parent, &function.name, &function.object))
            }
            _ => None,
        };
        if let Some(kept) = kept {
            left.take(kept, node.instructions, node.calls);
        }
        places.push(kept);
    }
    left.grown().of(profile.operations)
}

fn is_left_out(profile: &Profile, node: &deltabench_model::profile::Node, operations: i64) -> bool {
    let driven = |node: &deltabench_model::profile::Node| {
        let function = profile.function(node);
        function.is_some_and(|function| DRIVEN.contains(&function.name.as_str()))
    };
    if driven(node) {
        return operations < FEW || node.calls.saturating_mul(2) < operations;
    }
    let parent = profile.nodes.get(node.parent.index());
    // What is called each time and does more only now and then.
    parent.is_some_and(|parent| driven(parent) && node.calls.saturating_mul(2) < parent.calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(flushes: i64) -> Profile {
        let mut grower = Grower::new("PostgresMain");
        grower.take(NodeId::ROOT, 1000, 1);
        let work = grower.child(NodeId::ROOT, "exec_execute_message", "postgres");
        grower.take(work, 40_000, 400);
        let report = grower.child(NodeId::ROOT, "pgstat_report_stat", "postgres");
        grower.take(report, 36_000, 401);
        let look = grower.child(report, "GetCurrentTimestamp", "postgres");
        grower.take(look, 4_000, 401);
        if flushes > 0 {
            let flush = grower.child(report, "pgstat_flush_pending_entries", "postgres");
            grower.take(flush, 700, flushes);
            let below = grower.child(flush, "pgstat_relation_flush_cb", "postgres");
            grower.take(below, 9_000 * flushes, flushes);
            let again = grower.child(work, "pgstat_assoc_relation", "postgres");
            grower.take(again, 600, flushes);
        }
        grower.grown().of(400)
    }

    #[test]
    fn what_comes_once_a_second_is_left_out_and_what_comes_each_time_stays() {
        assert_eq!(window(2).total() - window(0).total(), 700 + 18_000 + 600);
        assert_eq!(without(&window(2), 400), window(0));
        assert_eq!(without(&window(0), 400), window(0));
    }

    #[test]
    fn of_few_operations_all_of_it_is_left_out() {
        assert_eq!(without(&window(1), 2).total(), 41_000);
    }
}
