use super::parting::Parting;
use super::*;
use deltabench_model::replayed::{
    Covered, ErrorVerdict, LeftOut, MadeUpValues, MixTime, OnServer, PlanChange, PlanLine,
    PlanShare, REPLAYED_FORMAT, ReplayFailure, ReplayTimes, ReplayedData, ReplayedDirectory,
    ReplayedFile, ReplayedLoadFailure, ReplayedMix, ReplayedPlan, ReplayedServer, ReplayedWrite,
    StatementTime, TimeParts, TimeRatio, TimeVerdict, WeightedBy, WorkloadTime,
};

fn server(name: &str, settings: &[(&str, &str)]) -> ReplayedServer {
    ReplayedServer {
        name: name.to_owned(),
        server_version: name.to_owned(),
        binary_sha256: Some("ab".to_owned()),
        settings: settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        data_bytes: Some(64 << 20),
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
        time: None,
        old_plan: None,
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
        made_up: None,
        write: None,
        servers: vec![on("a"), on("b")],
        verdicts: vec![verdict],
    }
}

fn failure(sqlstate: &str, message: &str) -> ReplayFailure {
    ReplayFailure {
        sqlstate: sqlstate.to_owned(),
        message: message.to_owned(),
        tuples: 4,
    }
}

/// Statements that a server did not do, each in its own way.
fn failing() -> Vec<ReplayedStatement> {
    let denied = || failure("42501", "permission denied for table orders");
    let missing = || failure("42P01", "relation \"orders\" does not exist");
    let fails = |name: &str, share: f64, errors: ErrorVerdict| {
        let verdict = ReplayVerdict {
            errors,
            plans: PlanVerdict::Unknown,
            results: ResultVerdict::NotExecuted,
            ..verdict()
        };
        statement(name, share, verdict)
    };
    let mut new = fails("tags_new", 0.2, ErrorVerdict::New);
    new.servers[1].failures = vec![failure("42883", "operator does not exist")];
    let mut late = fails("late", 0.05, ErrorVerdict::TooLong);
    late.servers[1].too_long = 3;
    let mut both = fails("denied", 0.04, ErrorVerdict::Both);
    both.servers[0].failures = vec![denied()];
    both.servers[1].failures = vec![denied()];
    let mut other = fails("other_error", 0.04, ErrorVerdict::Differs);
    other.servers[0].failures = vec![denied()];
    other.servers[1].failures = vec![missing()];
    let mut resolved = fails("merged", 0.03, ErrorVerdict::Resolved);
    resolved.servers[0].failures = vec![missing()];
    let mut unknown = fails("no_memory", 0.03, ErrorVerdict::Unknown);
    unknown.servers[0].unknown = vec!["53200 out of memory".to_owned()];
    vec![new, late, both, other, resolved, unknown]
}

/// Statements that servers did in different ways.
fn differing() -> Vec<ReplayedStatement> {
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
    let flips = |plans: PlanVerdict| ReplayVerdict { plans, ..verdict() };
    let returns = |results: ResultVerdict, cause: &str| ReplayVerdict {
        results,
        differing: 2,
        causes: vec![cause.to_owned()],
        ..verdict()
    };
    let moved = ReplayVerdict {
        differing: 0,
        ..returns(
            ResultVerdict::Moved,
            "data-moved: 0.0 rows for each call, 12.0 in the capture",
        )
    };
    let results = |name: &str, results: ResultVerdict, cause: &str| {
        statement(name, 0.1, returns(results, cause))
    };
    vec![
        statement("by_customer", 0.4, changed),
        results(
            "some_rows",
            ResultVerdict::RowsDiffer,
            "it has a LIMIT without ORDER BY",
        ),
        results("total", ResultVerdict::ResultsDiffer, "it calls random"),
        results(
            "by_day",
            ResultVerdict::OrderDiffers,
            "rows that are equal in ORDER BY have no order",
        ),
        results("today", ResultVerdict::NotRepeatable, "it calls now"),
        statement("old_orders", 0.01, moved),
        results(
            "visit",
            ResultVerdict::NotExecuted,
            "it calls visit, a volatile function of the database",
        ),
        statement("flips", 0.1, flips(PlanVerdict::UnstableBase)),
        statement("flips_now", 0.1, flips(PlanVerdict::UnstableCandidate)),
    ]
}

/// A replay with each finding.
pub(crate) fn replayed() -> Replayed {
    Replayed {
        format: REPLAYED_FORMAT.0.to_owned(),
        version: REPLAYED_FORMAT.1,
        name: "replay-x".to_owned(),
        capture: ReplayedFile {
            path: "/x/shop.sql".to_owned(),
            sha256: Some("cd".to_owned()),
        },
        data: Some(ReplayedData {
            path: "/x/shop.dump".to_owned(),
            sha256: "ef".to_owned(),
            bytes: 1000,
            dumped_from: Some("14.24".to_owned()),
            directory: None,
        }),
        servers: vec![
            server("postgres:14.24", &[]),
            server("postgres:18.6", &[("random_page_cost", "9")]),
        ],
        draws: 3,
        differences: Vec::new(),
        clock: None,
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
            ReplayedLoadFailure {
                servers: vec![0],
                line: 18,
                what: "CREATE FUNCTION public.later".to_owned(),
                sqlstate: "42601".to_owned(),
                message: "syntax error at or near \"?\"".to_owned(),
            },
        ],
        statements: failing().into_iter().chain(differing()).collect(),
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
        times: None,
    }
}

fn ratio(estimate: f64, half: f64) -> TimeRatio {
    TimeRatio {
        estimate,
        low: Some(estimate - half),
        high: Some(estimate + half),
    }
}

fn time(verdict: TimeVerdict, estimate: f64, share: f64) -> StatementTime {
    StatementTime {
        verdict,
        why: None,
        ratio: ratio(estimate, 0.01),
        impact: Some(ratio(share * (estimate - 1.0), share * 0.01)),
        delta: 0.03,
        base_ms: 0.1,
        candidate_ms: 0.1 * estimate,
        blocks: 10,
        executions: 4000,
        parts: None,
    }
}

/// The same with a time of each sort.
fn timed() -> Replayed {
    let mut replayed = replayed();
    let verdicts = [
        ("by_customer", TimeVerdict::Slower, 1.318),
        ("some_rows", TimeVerdict::Unfit, 2.0),
        ("flips", TimeVerdict::NoChange, 1.001),
    ];
    for (name, verdict, estimate) in verdicts {
        let mut all = replayed.statements.iter_mut();
        let found = all.find(|one| one.name.as_deref() == Some(name)).unwrap();
        found.verdicts[0].time = Some(time(verdict, estimate, found.share.unwrap()));
    }
    let more = [
        ("steady_slow", TimeVerdict::Slower, 1.04, 0.06),
        ("better", TimeVerdict::Faster, 0.8, 0.03),
        ("open", TimeVerdict::Inconclusive, 1.02, 0.02),
        ("tiny", TimeVerdict::DoesNotMatter, 1.5, 0.0001),
    ];
    for (name, verdict, estimate, share) in more {
        let mut own = self::verdict();
        own.time = Some(time(verdict, estimate, share));
        replayed.statements.push(statement(name, share, own));
    }
    for statement in &mut replayed.statements {
        let verdict = &mut statement.verdicts[0];
        let Some(time) = &mut verdict.time else {
            continue;
        };
        if verdict.changed > 0 {
            time.parts = Some(TimeParts {
                changed: 9.4,
                changed_tuples: 1,
                same: 1.003,
            });
        }
        if time.verdict == TimeVerdict::Unfit {
            time.why = Some("it returns another number of rows".to_owned());
        }
    }
    replayed.times = Some(ReplayTimes {
        blocks: 8,
        planned_blocks: 10,
        statements: 7,
        share: Some(0.931),
        impact: 0.001,
        workload: vec![WorkloadTime {
            server: Some(1),
            verdict: TimeVerdict::Slower,
            ratio: ratio(1.129, 0.012),
            delta: 0.05,
            statements: 6,
            share: Some(0.887),
        }],
        placebo: Some(WorkloadTime {
            server: None,
            verdict: TimeVerdict::NoChange,
            ratio: ratio(1.001, 0.004),
            delta: 0.05,
            statements: 7,
            share: Some(0.931),
        }),
        placebo_different: 1,
        failed_on_candidates: 0,
        mix: None,
        notes: vec!["not timed: gone: it failed with 57014 while it was timed".to_owned()],
    });
    replayed
}

#[test]
fn a_candidate_has_its_own_coverage_and_without_a_total_its_verdicts() {
    let mut replayed = timed();
    let head = |replayed: &Replayed| super::times::head(replayed, 1).unwrap();
    assert!(head(&replayed).contains("(88.7 % of the captured time) +12.9 %"));
    replayed.covered.weighted_by = WeightedBy::Calls;
    let whole = &mut replayed.times.as_mut().unwrap().workload;
    whole[0].share = None;
    assert!(head(&replayed).contains("(6 statements, by their calls) +12.9 %"));
    assert!(replayed_text(&replayed, 120).contains("of calls  time on candidate"));
    assert!(replayed_page(&replayed).contains("<th>of calls</th>"));
    replayed.times.as_mut().unwrap().workload.clear();
    let head = head(&replayed);
    assert!(head.starts_with("no total of the workload"), "{head}");
    assert!(head.contains("slower"), "{head}");
}

#[test]
fn a_copied_data_directory_is_told_with_its_version_and_who_upgraded_it() {
    let mut replayed = timed();
    let data = replayed.data.as_mut().unwrap();
    data.path = "/var/lib/postgresql/15/main".to_owned();
    data.bytes = 264 << 20;
    data.directory = Some(ReplayedDirectory {
        major: "15".to_owned(),
        identity: "system 7, checkpoint 0/1".to_owned(),
        database: "shop".to_owned(),
        upgraded: vec![1],
    });
    let text = replayed_text(&replayed, 1000);
    let line = "  data: a copy of a data directory of 15 (264 MB, with its bloat and order of rows), \
                database shop; pg_upgrade made that of postgres:18.6 random_page_cost=9";
    assert!(text.lines().any(|one| one == line), "{text}");
    assert!(text.contains("by ANALYZE and without VACUUM"), "{text}");
    assert!(replayed_markdown(&replayed).contains("**data: a copy of a data directory of 15"));
    let page = replayed_page(&replayed);
    assert!(page.contains("of 15, system 7, checkpoint 0/1") && !page.contains("after loading"));
}

#[test]
fn servers_as_they_are_say_how_their_data_sets_differ_and_nothing_of_a_dump() {
    let mut replayed = timed();
    replayed.data = None;
    let last = |replayed: &Replayed| replayed_text(replayed, 120).replace("\n  ", " ");
    let text = last(&replayed);
    assert!(
        text.contains("data sets of the servers are alike"),
        "{text}"
    );
    assert!(text.contains("in each all connections are new"), "{text}");
    assert!(
        !text.contains("after loading") && !text.contains("restart"),
        "{text}"
    );
    replayed.differences = vec!["pages, base → new: s.orders 100 → 160".to_owned()];
    assert!(last(&replayed).contains("the data sets differ: pages, base → new: s.orders"));
    assert!(replayed_page(&replayed).contains("s.orders 100 → 160"));
}

#[test]
fn what_was_executed_once_in_a_block_says_so() {
    let mut replayed = timed();
    let said = |replayed: &Replayed| replayed_text(replayed, 120).contains("executed once in each");
    assert!(!said(&replayed));
    let verdicts = replayed
        .statements
        .iter_mut()
        .flat_map(|one| &mut one.verdicts);
    for time in verdicts.filter_map(|verdict| verdict.time.as_mut()) {
        time.executions = u64::from(time.blocks);
    }
    assert!(said(&replayed));
}

#[test]
fn times_are_told_with_plan_regressions_first() {
    insta::assert_snapshot!(replayed_text(&timed(), 120));
    let page = replayed_page(&timed());
    for text in [
        "Server time",
        "1.318 [1.308, 1.328]",
        "9.400 times as long",
        "+12.9 % [+11.7, +14.1]",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(timed().has_slower() && !replayed().has_slower());
}

#[test]
fn markdown_has_the_sentences_the_times_and_what_differs() {
    let text = replayed_markdown(&timed());
    insta::assert_snapshot!(text);
    let found = replayed_markdown(&replayed());
    insta::assert_snapshot!(found);
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
    assert!(!page.contains("script-src"));
}

#[test]
fn whatever_is_found_is_in_the_text_and_on_the_page() {
    let replayed = replayed();
    let (text, page) = (replayed_text(&replayed, 2000), replayed_page(&replayed));
    // What HTML writes in other ways is the same to a reader.
    let page = page
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    for section in Section::ALL {
        let findings = section.findings(&replayed, 1);
        assert!(!findings.is_empty(), "{section:?} is not in the fixture");
        let title = format!("<h2>{}</h2>", section.title());
        let (_, below) = page.split_once(&title).unwrap();
        let (below, _) = below.split_once("<h2>").unwrap();
        for finding in findings {
            let (name, texts) = match finding {
                Finding::Object(object) => (object.what.clone(), vec![object.message.clone()]),
                Finding::Statement(statement, verdict) => (
                    statement.name.clone().unwrap(),
                    section.texts(&replayed, statement, verdict),
                ),
            };
            let line = |line: &str| line.starts_with(section.sign()) && line.contains(&name);
            assert!(text.lines().any(line), "{section:?} {name}: {text}");
            for said in std::iter::once(&name).chain(&texts) {
                assert!(text.contains(said), "{section:?} {said}: {text}");
                assert!(below.contains(said), "{section:?} {said}: {below}");
            }
        }
    }
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

#[test]
fn the_page_gives_no_class_of_all_pages_another_style() {
    let classes = |style: &str| -> Vec<String> {
        let pieces = style.split('.').skip(1);
        let name = |piece: &str| {
            let end = piece.find(|next: char| !next.is_ascii_alphanumeric() && next != '-');
            piece[..end.unwrap_or(piece.len())].to_owned()
        };
        let names = pieces.map(name);
        names
            .filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
            .collect()
    };
    let all = classes(include_str!("../html/style.css"));
    let own = classes(include_str!("page.css"));
    let both: Vec<&String> = own.iter().filter(|name| all.contains(name)).collect();
    assert_eq!(both, [""; 0]);
    assert!(all.contains(&"numbers".to_owned()) && own.contains(&"replayed".to_owned()));
}

#[test]
fn a_write_that_fails_on_the_base_is_not_said_to_be_only_explained() {
    let mut replayed = replayed();
    let write = replayed.statements.first_mut().unwrap();
    write.kind = "write".to_owned();
    let verdict = &mut write.verdicts[0];
    verdict.results = ResultVerdict::NotExecuted;
    verdict.causes = Vec::new();
    let said = |replayed: &Replayed| {
        left_out(replayed)
            .join("\n")
            .contains("explained and not executed")
    };
    assert!(!said(&replayed));
    replayed.statements[0].verdicts[0].causes = vec!["a write is only explained".to_owned()];
    assert!(said(&replayed));
}

#[test]
fn writes_say_that_they_were_committed_on_a_copy_and_a_mix_has_a_sentence() {
    let mut replayed = timed();
    let write = replayed.statements.iter_mut().find(|one| {
        one.verdicts[0]
            .time
            .as_ref()
            .is_some_and(|time| time.verdict == TimeVerdict::Slower)
    });
    let write = write.unwrap();
    write.kind = "write".to_owned();
    write.write = Some(ReplayedWrite {
        dropped: 3,
        once: true,
    });
    replayed.times.as_mut().unwrap().mix = Some(ReplayedMix {
        name: "mix".to_owned(),
        clients: 4,
        statements: 5,
        of: 7,
        share_of_calls: 0.8,
        candidates: vec![MixTime {
            server: Some(1),
            verdict: TimeVerdict::Slower,
            why: None,
            delta: 0.05,
            throughput: ratio(0.9, 0.01),
            base_per_second: 4000.0,
            candidate_per_second: 3600.0,
            cpu: Some(ratio(1.1, 0.01)),
            p99: None,
            base_failed: 0.0,
            failed: 0.0125,
            blocks: 10,
        }],
        placebo: None,
    });
    let says = [
        "committed on a copy, which takes each set of values once; 3 of 4 sets of values left out",
        "mix of 5 statements by 4 clients: 4000 → 3600 statements per second, -10.0 % [-11.0, -9.0], slower; \
         CPU of a statement +10.0 % [+9.0, +11.0]; failed 0.0 % → 1.2 % of the statements",
        "mix: 5 of the measured statements, 80.0 % of their calls",
        "2 statements left out, because a copy takes its values once",
        "writes: committed on a copy of the database",
    ];
    for text in [
        replayed_text(&replayed, 4000),
        replayed_markdown(&replayed).replace('\\', ""),
        replayed_page(&replayed),
    ] {
        for says in says {
            assert!(text.contains(says), "{says}: {text}");
        }
    }
}

#[test]
fn values_that_were_made_up_are_called_so_in_every_form() {
    let mut replayed = replayed();
    let text = |replayed: &Replayed| {
        [
            replayed_text(replayed, 300),
            replayed_markdown(replayed),
            replayed_page(replayed),
        ]
    };
    for form in text(&replayed) {
        assert!(!form.contains("made up"), "{form}");
    }
    for statement in &mut replayed.statements {
        statement.made_up = Some(MadeUpValues {
            captured_rows: Some(2.9),
            base_rows: Some(3.1),
        });
    }
    let of_statement = "values made up: 3.1 rows for each call on the base, 2.9 in the capture";
    for form in text(&replayed) {
        assert!(form.contains(of_statement), "{form}");
        assert!(
            form.contains("find between a third and three times the rows"),
            "{form}"
        );
    }
    let json: serde_json::Value = serde_json::from_str(&replayed_json(&replayed)).unwrap();
    assert_eq!(json["statements"][0]["made_up"]["base_rows"], 3.1);
}

#[test]
fn what_fails_on_both_servers_is_said_first_if_it_is_much() {
    let mut replayed = replayed();
    assert_eq!(replayed.not_compared(1), None, "8 % of the time");
    assert!(!replayed_text(&replayed, 400).contains("NOT COMPARED"));
    for statement in &mut replayed.statements {
        if statement.servers[0].failures.is_empty() {
            continue;
        }
        // Half of their values.
        statement.tuples = 8;
        statement.share = Some(0.2);
    }
    let found = replayed.not_compared(1).unwrap();
    assert_eq!(found.statements, 2, "one of three fails on the base only");
    assert!((found.share.unwrap() - 0.2).abs() < 1e-9, "{found:?}");
    let said = "NOT COMPARED: 2 of 15 statements, 20.0 % of the time, fail on both servers, for example with \
                42501 permission denied for table orders; what this report says is about the others; dump \
                with owners and privileges";
    let text = replayed_text(&replayed, 2000);
    assert!(text.lines().nth(1).unwrap().contains(said), "{text}");
    assert!(replayed_page(&replayed).contains("NOT COMPARED: 2 of 15 statements"));
    assert!(replayed_markdown(&replayed).contains("**NOT COMPARED: 2 of 15 statements"));
    // Without weights statements count.
    replayed.covered.share = None;
    for statement in &mut replayed.statements {
        statement.share = None;
        statement.tuples = 4;
    }
    assert_eq!(replayed.not_compared(1), None, "2 of 15");
    replayed.statements.truncate(6);
    let found = replayed.not_compared(1).unwrap();
    assert_eq!((found.statements, found.share), (2, None));
}
