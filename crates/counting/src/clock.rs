//! What a backend does because time has passed, and not because of an operation.
//!
//! It sends or writes its statistics when a second has passed since it did so last, and makes new entries for
//! them afterwards. Under a counter an operation takes fifty times as long, and more on a busy machine: this
//! part comes as often as the machine is slow, 9700 instructions each time of the 17 million of a window.
//! Without it, and with a fixed price for the allocator's work, two starts of the same server differ by a few
//! millionths.

use crate::allocator;
use deltabench_model::profile::{Grower, Node, NodeId, Profile};
use deltabench_server::Counter;

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

/// With fewer operations than this, now and then cannot be told from each time: they are so long that a
/// second passes every few of them, and then several tables are reported.
const FEW: i64 = 40;

/// What is called each time is called once, or so many times, in each call of its caller, but for this share
/// of them.
const EACH_TIME: (i64, i64) = (1, 20);

/// Parts of names of what only a report calls, once for each table: after connecting there are forty, as many
/// as some windows have operations.
const OF_REPORTS: [&str; 4] = ["flush", "pending_entry", "send_", "kind_info"];

/// A profile without what the clock called for in so many operations, without our own library, and with the
/// allocator's work at a fixed price.
pub fn without(profile: &Profile, operations: u64) -> Profile {
    let operations = i64::try_from(operations).unwrap_or(i64::MAX);
    let root = profile
        .nodes
        .first()
        .and_then(|node| profile.function(node));
    let mut left = Grower::new(root.map_or("", |root| &root.name));
    // Where each node went; none for those that are left out, with all below them.
    let mut places: Vec<Option<Place>> = Vec::with_capacity(profile.nodes.len());
    for (place, node) in profile.nodes.iter().enumerate() {
        let above = places.get(node.parent.index()).copied().flatten();
        let function = profile.function(node);
        places.push(match (place, above, function) {
            (0, _, function) => {
                if let Some(function) = function {
                    left.name_object(NodeId::ROOT, &function.object);
                }
                left.take(NodeId::ROOT, node.instructions, node.calls);
                Some(Place::at(NodeId::ROOT))
            }
            // What it calls is called by whoever has called it.
            (_, Some(above), Some(function)) if Counter::is_own(&function.name) => Some(above),
            (_, Some(above), Some(function)) if !is_left_out(profile, node, operations) => {
                if above.is_priced && !allocator::fills(&function.name) {
                    Some(above)
                } else {
                    let kept = left.child(above.node, &function.name, &function.object);
                    let price = allocator::price(profile, node);
                    let instructions = price.map_or(node.instructions, |price| price * node.calls);
                    left.take(kept, instructions, node.calls);
                    Some(match price {
                        Some(_) => above.priced(),
                        None => Place::at(kept),
                    })
                }
            }
            _ => None,
        });
    }
    left.grown().of(profile.operations)
}

/// Where a node of a profile went.
#[derive(Clone, Copy)]
struct Place {
    node: NodeId,
    /// Whether all below is in the price of a call that `node` makes. What fills memory is not, and then
    /// `node` itself has called it.
    is_priced: bool,
}

impl Place {
    fn at(node: NodeId) -> Self {
        Self {
            node,
            is_priced: false,
        }
    }

    fn priced(self) -> Self {
        Self {
            is_priced: true,
            ..self
        }
    }
}

fn is_left_out(profile: &Profile, node: &Node, operations: i64) -> bool {
    let driven = |node: &Node| {
        let function = profile.function(node);
        function.is_some_and(|function| DRIVEN.contains(&function.name.as_str()))
    };
    if driven(node) {
        return operations < FEW || node.calls.saturating_mul(2) < operations;
    }
    let parent = profile.nodes.get(node.parent.index());
    // What is called each time and does more only now and then.
    let function = profile.function(node);
    let of_report = |name: &str| OF_REPORTS.iter().any(|part| name.contains(part));
    let of_report = function.is_some_and(|function| of_report(&function.name));
    let left = |parent: &Node| of_report || !is_each_time(node.calls, parent.calls);
    parent.is_some_and(|parent| driven(parent) && left(parent))
}

/// Whether so many calls are one, or a number of them, for each of these.
fn is_each_time(calls: i64, of: i64) -> bool {
    let (part, whole) = EACH_TIME;
    let times = (calls.saturating_add(of / 2) / of.max(1)).max(1);
    let apart = calls
        .saturating_sub(of.saturating_mul(times))
        .saturating_abs();
    apart.saturating_mul(whole) <= of.saturating_mul(part)
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
            // Of several tables each time.
            let tables = grower.child(report, "pgstat_delete_pending_entry", "postgres");
            grower.take(tables, 30 * 9 * flushes, 9 * flushes);
            let below = grower.child(flush, "pgstat_relation_flush_cb", "postgres");
            grower.take(below, 9_000 * flushes, flushes);
            let again = grower.child(work, "pgstat_assoc_relation", "postgres");
            grower.take(again, 600, flushes);
        }
        grower.grown().of(400)
    }

    #[test]
    fn what_comes_once_a_second_is_left_out_and_what_comes_each_time_stays() {
        assert_eq!(
            window(2).total() - window(0).total(),
            700 + 540 + 18_000 + 600
        );
        for flushes in [2, 39] {
            assert_eq!(without(&window(flushes), 400), window(0));
        }
        assert_eq!(without(&window(0), 400), window(0));
    }

    /// The first report after connecting has an entry for each catalogue that was opened.
    #[test]
    fn a_report_of_as_many_tables_as_there_are_operations_is_left_out() {
        let window = |tables: i64| {
            let mut grower = Grower::new("PostgresMain");
            let report = grower.child(NodeId::ROOT, "pgstat_report_stat", "postgres");
            grower.take(report, 2050, 41);
            let look = grower.child(report, "TimestampDifferenceExceeds", "postgres");
            grower.take(look, 492, 82 - i64::from(tables > 0));
            if tables > 0 {
                for name in [
                    "pgstat_relation_flush_cb",
                    "pgstat_delete_pending_entry",
                    "pgstat_get_kind_info",
                ] {
                    let one = grower.child(report, name, "postgres");
                    grower.take(one, 100 * tables, tables);
                    let below = grower.child(one, "pgstat_unlock_entry", "postgres");
                    grower.take(below, 30 * tables, tables);
                }
                let unknown = grower.child(report, "dlist_move", "postgres");
                grower.take(unknown, 7 * 38, 38);
            }
            grower.grown().of(41)
        };
        for tables in [38, 40, 41, 82] {
            assert_eq!(without(&window(tables), 41).total(), 2050 + 492);
        }
        // What a patch adds to each call stays, also if it does it twice.
        let mut grower = Grower::new("PostgresMain");
        let report = grower.child(NodeId::ROOT, "pgstat_report_stat", "postgres");
        grower.take(report, 2050, 41);
        for (name, calls) in [
            ("clock_gettime", 41),
            ("getrusage", 82),
            ("now_and_then", 20),
        ] {
            let more = grower.child(report, name, "postgres");
            grower.take(more, 1000, calls);
        }
        assert_eq!(without(&grower.grown().of(41), 41).total(), 2050 + 2000);
    }

    /// A window in which the allocator found free memory after so many steps.
    fn allocating(steps: i64) -> Profile {
        let mut grower = Grower::new("PostgresMain");
        let palloc = grower.child(NodeId::ROOT, "palloc", "postgres");
        grower.take(palloc, 4000, 100);
        let malloc = grower.child(palloc, "malloc", "libc.so.6");
        grower.take(malloc, 2000, 100);
        let search = grower.child(malloc, "_int_malloc", "libc.so.6");
        grower.take(search, 90 * steps, 40);
        let unlink = grower.child(search, "unlink_chunk.constprop.0", "libc.so.6");
        grower.take(unlink, 30 * steps, steps);
        let calloc = grower.child(palloc, "calloc", "libc.so.6");
        let clear = grower.child(calloc, "__memset_avx2_unaligned_erms", "libc.so.6");
        grower.take(clear, 500, 1);
        grower.grown().of(400)
    }

    #[test]
    fn how_the_allocator_found_free_memory_does_not_matter_and_how_often_it_looked_does() {
        let counted = without(&allocating(40), 400);
        assert_eq!(counted, without(&allocating(300), 400));
        assert_eq!(counted.total(), 4000 + 2000 + 40 * 200 + 500);
    }

    #[test]
    fn what_realloc_copies_is_counted_however_deep_in_the_allocator_it_does() {
        let growing = |copied: i64, path: &[&str]| {
            let mut grower = Grower::new("PostgresMain");
            let repalloc = grower.child(NodeId::ROOT, "repalloc", "postgres");
            let realloc = grower.child(repalloc, "realloc", "libc.so.6");
            grower.take(realloc, 300, 10);
            let inner = grower.child(realloc, "_int_realloc", "libc.so.6");
            grower.take(inner, 100 * copied, 10);
            let end = path
                .iter()
                .fold(inner, |at, name| grower.child(at, name, "libc.so.6"));
            grower.take(end, copied, 4);
            // What it searches for a new block is in the price.
            let search = grower.child(inner, "_int_malloc", "libc.so.6");
            grower.take(search, 7 * copied, 4);
            without(&grower.grown().of(400), 400)
        };
        let copy = "__memcpy_avx_unaligned_erms";
        let counted = growing(8192, &[copy]);
        assert_eq!(counted.total(), 300 + 10 * 320 + 8192);
        assert_eq!(growing(8192, &["_int_malloc", copy]), counted);
        assert_eq!(growing(16_384, &[copy]).total() - counted.total(), 8192);
        let names: Vec<&str> = counted
            .nodes
            .iter()
            .map(|node| counted.function(node).unwrap().name.as_str())
            .collect();
        let parents: Vec<usize> = counted
            .nodes
            .iter()
            .map(|node| node.parent.index())
            .collect();
        assert_eq!(
            names,
            ["PostgresMain", "repalloc", "realloc", "_int_realloc", copy]
        );
        assert_eq!(parents, [0, 0, 1, 2, 2]);
    }

    #[test]
    fn our_own_function_in_a_backend_is_left_out_and_what_it_calls_stays() {
        let reading = |ours: bool| {
            let mut grower = Grower::new("PostgresMain");
            let mut caller = grower.child(NodeId::ROOT, "secure_raw_read", "postgres");
            grower.take(caller, 900, 80);
            if ours {
                caller = grower.child(caller, "dlb", "libdeltabench_mark.so");
                grower.take(caller, 400, 80);
            }
            let read = grower.child(caller, "recv", "libc.so.6");
            grower.take(read, 800, 80);
            grower.grown().of(40)
        };
        assert_eq!(without(&reading(true), 40), reading(false));
    }

    #[test]
    fn of_few_operations_all_of_it_is_left_out() {
        assert_eq!(without(&window(1), 39).total(), 41_000);
    }
}
