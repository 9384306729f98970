use super::*;
use deltabench_model::replayed::{
    Covered, LeftOut, OnServer, PlanChange, PlanLine, PlanShare, REPLAYED_FORMAT, ReplayFailure,
    ReplayedData, ReplayedFile, ReplayedPlan, ReplayedServer, WeightedBy,
};

fn server(name: &str, settings: &[(&str, &str)]) -> ReplayedServer {
    ReplayedServer {
        name: name.to_owned(),
        server_version: name.to_owned(),
        binary_sha256: "ab".to_owned(),
        settings: settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        data_bytes: 64 << 20,
    }
}

fn plan(id: &str, nodes: &[(u32, &str, &str)]) -> ReplayedPlan {
    let line = |(depth, node, detail): &(u32, &str, &str)| PlanLine {
        depth: *depth,
        node: (*node).to_owned(),
        details: vec![(*detail).to_owned()],
    };
    ReplayedPlan {
        id: id.to_owned(),
        lines: nodes.iter().map(line).collect(),
    }
}

fn verdict() -> ReplayVerdict {
    ReplayVerdict {
        server: 1,
        errors: ErrorVerdict::None,
        plans: PlanVerdict::Same,
        changed: 0,
        changed_share: 0.0,
        changes: Vec::new(),
        results: ResultVerdict::Same,
        differing: 0,
        causes: Vec::new(),
    }
}

fn statement(name: &str, share: f64, verdict: ReplayVerdict) -> ReplayedStatement {
    let on = |plan: &str| OnServer {
        plans: vec![PlanShare {
            plan: plan.to_owned(),
            tuples: 4,
            share: 1.0,
        }],
        rows: Some(7),
        ..OnServer::default()
    };
    ReplayedStatement {
        id: name.to_owned(),
        name: Some(name.to_owned()),
        text: "select * from orders where note < ? and x = '<script>'".to_owned(),
        kind: "read".to_owned(),
        calls: 10,
        share: Some(share),
        tuples: 4,
        servers: vec![on("a"), on("b")],
        verdicts: vec![verdict],
    }
}

/// A replay with one finding of each sort.
pub(crate) fn replayed() -> Replayed {
    let mut failing = statement(
        "tags_new",
        0.2,
        ReplayVerdict {
            errors: ErrorVerdict::New,
            plans: PlanVerdict::Unknown,
            results: ResultVerdict::NotExecuted,
            ..verdict()
        },
    );
    failing.servers[1].failures.push(ReplayFailure {
        sqlstate: "42883".to_owned(),
        message: "operator does not exist".to_owned(),
        tuples: 4,
    });
    let changed = ReplayVerdict {
        plans: PlanVerdict::Changed,
        changed: 1,
        changed_share: 0.31,
        changes: vec![PlanChange {
            from: "a".to_owned(),
            to: "b".to_owned(),
            tuples: 1,
        }],
        ..verdict()
    };
    let differing = ReplayVerdict {
        results: ResultVerdict::RowsDiffer,
        differing: 2,
        causes: vec!["it has a LIMIT without ORDER BY".to_owned()],
        ..verdict()
    };
    let unstable = ReplayVerdict {
        plans: PlanVerdict::UnstableBase,
        ..verdict()
    };
    let mut late = statement(
        "late",
        0.05,
        ReplayVerdict {
            errors: ErrorVerdict::TooLong,
            ..verdict()
        },
    );
    late.servers[1].too_long = 3;
    let mut both = statement(
        "denied",
        0.04,
        ReplayVerdict {
            errors: ErrorVerdict::Both,
            plans: PlanVerdict::Unknown,
            results: ResultVerdict::NotExecuted,
            ..verdict()
        },
    );
    let denied = ReplayFailure {
        sqlstate: "42501".to_owned(),
        message: "permission denied for table orders".to_owned(),
        tuples: 4,
    };
    both.servers[0].failures.push(denied.clone());
    both.servers[1].failures.push(denied.clone());
    let mut other = both.clone();
    other.name = Some("other_error".to_owned());
    other.verdicts[0].errors = ErrorVerdict::Differs;
    other.servers[1].failures[0].sqlstate = "42P01".to_owned();
    other.servers[1].failures[0].message = "relation \"orders\" does not exist".to_owned();
    let moved = ReplayVerdict {
        results: ResultVerdict::Moved,
        causes: vec!["data-moved: 0.0 rows for each call, 12.0 in the capture".to_owned()],
        ..verdict()
    };
    Replayed {
        format: REPLAYED_FORMAT.0.to_owned(),
        version: REPLAYED_FORMAT.1,
        name: "replay-x".to_owned(),
        capture: ReplayedFile {
            path: "/x/shop.sql".to_owned(),
            sha256: Some("cd".to_owned()),
        },
        data: ReplayedData {
            path: "/x/shop.dump".to_owned(),
            sha256: "ef".to_owned(),
            bytes: 1000,
            dumped_from: Some("14.24".to_owned()),
        },
        servers: vec![
            server("postgres:14.24", &[]),
            server("postgres:18.6", &[("random_page_cost", "9")]),
        ],
        draws: 3,
        executed: true,
        covered: Covered {
            statements: 6,
            of: 9,
            tuples: 24,
            share: Some(0.98),
            weighted_by: WeightedBy::Time,
        },
        load_failures: vec![
            ReplayedLoadFailure {
                servers: vec![1],
                line: 12,
                what: "CREATE AGGREGATE public.accum".to_owned(),
                sqlstate: "42883".to_owned(),
                message: "function array_append(anyarray, anyelement) does not exist".to_owned(),
            },
            ReplayedLoadFailure {
                servers: vec![0, 1],
                line: 15,
                what: "CREATE FUNCTION public.old".to_owned(),
                sqlstate: "58P01".to_owned(),
                message: "could not access file \"?\": No such file or directory".to_owned(),
            },
        ],
        statements: vec![
            failing,
            statement("by_customer", 0.4, changed),
            statement("some_rows", 0.1, differing),
            statement("flips", 0.1, unstable),
            late,
            both,
            other,
            statement("old_orders", 0.01, moved),
        ],
        plans: vec![
            plan(
                "a",
                &[
                    (0, "Sort", "Sort Key: at"),
                    (
                        1,
                        "Index Scan using i on orders",
                        "Index Cond: customer = ?",
                    ),
                ],
            ),
            plan(
                "b",
                &[
                    (0, "Sort", "Sort Key: at"),
                    (1, "Seq Scan on orders", "Filter: customer = ?"),
                ],
            ),
        ],
        left_out: vec![LeftOut {
            why: "copies rows".to_owned(),
            statements: 1,
            share: Some(0.02),
            examples: vec!["copy t from stdin".to_owned()],
        }],
        notes: Vec::new(),
    }
}

#[test]
fn the_text_says_what_fails_first_and_then_plans_and_results() {
    let text = replayed_text(&replayed(), 110);
    insta::assert_snapshot!(text);
}

#[test]
fn the_page_has_both_plans_and_nothing_of_a_statement_is_markup() {
    let page = replayed_page(&replayed());
    assert!(page.contains("<mark>Seq Scan on orders</mark>"));
    assert!(page.contains("<mark>Index Scan using i on orders</mark>"));
    assert!(!page.contains("<mark>Sort</mark>"));
    assert!(
        !page.contains("<script"),
        "statements are escaped, and there is no script"
    );
    assert!(page.contains("&lt;script&gt;"));
    assert!(page.contains("default-src 'none'"));
    for title in [
        "Ends in time on the base only",
        "Other errors",
        "Too few rows to compare",
        "Fails on both, and is not compared",
    ] {
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains("could not access file") && page.contains("permission denied"));
    assert!(!page.contains("Fails on the base only"));
}

#[test]
fn a_replay_is_read_again_from_its_json() {
    let read: Replayed = serde_json::from_str(&replayed_json(&replayed())).unwrap();
    assert_eq!(read, replayed());
    assert!(read.has_new_failures());
    let mut fine = read;
    fine.load_failures[0].servers.push(0);
    fine.statements.remove(0);
    assert!(fine.has_new_failures(), "one no longer ends in time");
    fine.statements
        .retain(|one| one.name.as_deref() != Some("late"));
    assert!(!fine.has_new_failures());
    fine.covered.statements = 0;
    assert!(!fine.has_answer());
}

#[test]
fn nodes_that_only_one_plan_has_are_said_to_be_gone_or_new() {
    let mut replayed = replayed();
    replayed.plans[1].lines = vec![replayed.plans[0].lines[1].clone()];
    let sentence = |from: &str, to: &str| Parting::of(&replayed, from, to).sentence();
    assert_eq!(sentence("a", "b"), "no longer Sort");
    assert_eq!(sentence("b", "a"), "also Sort");
}

#[test]
fn plans_of_the_same_nodes_part_at_their_conditions() {
    let mut replayed = replayed();
    replayed.plans[1] = replayed.plans[0].clone();
    replayed.plans[1].id = "b".to_owned();
    replayed.plans[1].lines[1].details[0] = "Filter: customer = ?".to_owned();
    let sentence = Parting::of(&replayed, "a", "b").sentence();
    assert_eq!(
        sentence,
        "Index Scan using i on orders (Index Cond: customer = ?) → Index Scan using i on orders (Filter: \
         customer = ?)"
    );
}
