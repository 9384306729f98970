//! The page of a bisection.

use deltabench_report::{
    BISECTED_FORMAT, Bisected, BisectedLook, BisectedPoint, By, Culprit, InTime, LikelyInterval,
    OpenInterval, Quiet, SuspectPoint, TimeChange, Timed, WithoutCulprit, bisected_html,
    bisected_text,
};

fn point(number: usize) -> BisectedPoint {
    BisectedPoint {
        target: format!("git:/src@{number:040}+o2_nofp"),
        name: format!("{number:010x}"),
        date: Some(format!("2024-09-{:02}", number % 28 + 1)),
        subject: Some(format!("Change number {number}, <script>alert(1)</script>")),
    }
}

fn look(number: usize, outcome: &'static str, change: Option<f64>) -> BisectedLook {
    BisectedLook {
        number,
        point: point(number),
        outcome,
        change,
        ci95: None,
        run: (outcome == "counted").then(|| format!("bisect-x-{number}")),
        skipped: (outcome == "skipped").then(|| "does not build: make ended with 2".to_owned()),
        built: number % 20 == 5,
        acquire_seconds: 44.0,
        count_seconds: 17.0,
    }
}

fn culprit(parent: usize, one_of: &[usize], change: f64) -> Culprit {
    let in_time = |change: f64| {
        let change = |share: f64| TimeChange {
            change: change * share,
            ci95: Some((change * share - 0.003, change * share + 0.003)),
        };
        let timed = Timed {
            run: "bisect-x-9".to_owned(),
            is_finished: true,
            blocks: 14,
            clients: 1,
            rows: 20_000,
            by_throughput: false,
            cpu: Some(change(1.0)),
            throughput: Some(change(-0.9)),
            placebo: Some(change(0.0)),
            p: Some(1e-5),
            unfit: None,
        };
        InTime::new(timed, 0.04)
    };
    let (last, others) = one_of.split_last().unwrap();
    let suspect = |number: &usize, skipped: Option<&str>| SuspectPoint {
        point: point(*number),
        skipped: skipped.map(str::to_owned),
    };
    let others = others
        .iter()
        .map(|one| suspect(one, Some("does not build")));
    Culprit {
        parent: point(parent),
        one_of: others.chain([suspect(last, None)]).collect(),
        change,
        ci95: None,
        probability: None,
        instructions: Some((38_000.0, 38_000.0 * (1.0 + change))),
        functions: vec!["+270 LockAcquireExtended: same calls (3), each 90 more".to_owned()],
        in_time: (change > 0.0).then(|| in_time(change)),
        without: (change > 0.0).then_some(WithoutCulprit {
            change: Some(0.001),
            ci95: None,
            why: None,
        }),
    }
}

/// Sixty points: a large step, one down behind a skipped point, one that is not searched to its end.
pub fn bisected() -> Bisected {
    Bisected {
        format: BISECTED_FORMAT.0,
        version: BISECTED_FORMAT.1,
        name: "bisect-x".to_owned(),
        workload: "point-query".to_owned(),
        by: By::Instructions,
        base: point(0),
        candidate: point(60),
        points: 61,
        may_differ: 37,
        base_alone: None,
        min: 0.005,
        layout: None,
        instructions: Some((38_000.0, 39_000.0)),
        change: Some(0.026),
        ci95: None,
        end: "undecided",
        culprits: vec![culprit(24, &[25], 0.04), culprit(39, &[40, 41], -0.02)],
        open: vec![OpenInterval {
            from: point(45),
            to: point(60),
            change: 0.007,
            points: 15,
            likely: None,
        }],
        quiet: Quiet {
            intervals: 3,
            points: 30,
            change: 0.001,
        },
        looks: vec![
            look(0, "counted", Some(0.0)),
            look(60, "counted", Some(0.026)),
            look(25, "counted", Some(0.04)),
            look(24, "counted", Some(0.0004)),
            look(39, "same", Some(0.04)),
            look(40, "skipped", None),
            look(41, "counted", Some(0.019)),
            look(45, "counted", Some(0.019)),
        ],
    }
}

#[test]
fn every_look_is_a_mark_that_leads_to_its_row_or_its_culprit() {
    let page = bisected_html(&bisected());
    for number in [0, 60, 24, 39, 40, 45] {
        assert!(
            page.contains(&format!("<a href=\"#look-{number}\"")),
            "{number}"
        );
        assert!(
            page.contains(&format!("<tr id=\"look-{number}\"")),
            "{number}"
        );
    }
    for number in [1, 2] {
        assert!(page.contains(&format!("<a href=\"#culprit-{number}\"")));
        assert!(page.contains(&format!("id=\"culprit-{number}\"")));
    }
    // Shapes beside colours: dots, hollow ones, crosses, diamonds; what was not searched is dashed.
    let (_, chart) = page.split_once("<div class=\"stairs\">").unwrap();
    let chart = chart
        .split_once("</svg></div>")
        .map_or(chart, |(chart, _)| chart);
    let (chart, _) = chart.split_once("stairs-key").unwrap();
    let many = |class: &str| chart.matches(&format!("class=\"{class}\"")).count();
    assert_eq!((many("dot"), many("dot hollow")), (4, 1));
    assert_eq!((many("cross"), many("diamond")), (1, 2));
    assert_eq!(many("rise step worse"), 1);
    assert_eq!(many("rise step better"), 1);
    assert_eq!(many("rise unsearched"), 1);
    assert_eq!(
        many("flat"),
        1,
        "only from 24 to 25 was every point looked at"
    );
}

#[test]
fn the_page_says_what_the_terminal_says_and_runs_nothing() {
    let page = bisected_html(&bisected());
    for said in [
        "in time: CPU per operation +4.0 %",
        "without it the candidate has +0.10 % instructions",
        "one of these 2",
        "not searched to the end: +0.70 %",
        "does not build: make ended with 2",
    ] {
        let said = said.replace("+0.70 %", "+0.70\u{a0}%");
        let plain = page.replace(['\u{a0}', '\u{202f}'], " ");
        assert!(plain.contains(&said.replace('\u{a0}', " ")), "{said}");
    }
    assert_eq!(page.matches("<script").count(), 0);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
}

#[test]
fn a_bisection_without_counts_has_a_page_without_a_chart() {
    let nothing = Bisected {
        end: "same-server",
        instructions: None,
        change: None,
        culprits: Vec::new(),
        open: Vec::new(),
        looks: vec![look(60, "same", None)],
        ..bisected()
    };
    let page = bisected_html(&nothing);
    assert!(page.contains("both ends are the same server"));
    assert!(!page.contains("<svg"), "{page}");
}

/// The same by CPU: intervals at every look, one culprit with a probability, a range that time cannot divide.
pub fn bisected_by_time() -> Bisected {
    let mut bisected = bisected();
    let wide = |change: f64| Some((change - 0.006, change + 0.006));
    bisected.by = By::Cpu;
    bisected.min = 0.01;
    bisected.layout = Some(0.003);
    bisected.ci95 = wide(0.026);
    bisected.culprits.truncate(1);
    bisected.culprits[0].probability = Some(0.97);
    bisected.culprits[0].ci95 = wide(0.04);
    bisected.open[0].likely = Some(LikelyInterval {
        from: point(50),
        to: point(52),
        probability: 0.61,
    });
    for look in &mut bisected.looks {
        if look.outcome == "counted" {
            look.outcome = "timed";
            look.run = Some(match look.number {
                0 | 60 => "bisect-x-1, bisect-x-2, bisect-x-3".to_owned(),
                number => format!("bisect-x-{}", 2 + number % 2),
            });
            look.ci95 = look.change.filter(|_| look.number > 0).and_then(wide);
        }
    }
    bisected
}

#[test]
fn a_search_by_time_shows_intervals_and_how_sure_it_is() {
    let bisected = bisected_by_time();
    let page = bisected_html(&bisected);
    let intervals = bisected
        .looks
        .iter()
        .filter(|look| look.ci95.is_some())
        .count();
    assert_eq!(page.matches("<line class=\"interval\"").count(), intervals);
    assert!(page.contains("CPU of an operation, point after point"));
    let text = bisected_text(&bisected, 300);
    for said in [
        "point-query, 0000000000 → 000000003c: +2.6 % [+2.0, +3.2] CPU per operation; \
         +2.63 % instructions per operation",
        "; 3 looks in time at 6 points, ",
        "between +3.4 and +4.6 %; the step is here with a probability of 97 %, if it is one step and \
         builds scatter by 0.3 %",
        "these fresh blocks show it, too",
        "15 points; likeliest after 0000000032 and up to 0000000034 (61 %)",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(bisected.convicted(), 1);
    assert!(text.contains("search again with +o2_aligned before you believe a step"));
    let mut doubted = bisected;
    let parent = &mut doubted.culprits[0].parent.target;
    *parent = parent.replace("+o2_nofp", "+o2_aligned");
    assert!(!bisected_text(&doubted, 300).contains("+o2_aligned before"));
    doubted.culprits[0].in_time = None;
    assert_eq!(doubted.convicted(), 0);
    doubted.culprits[0].instructions = None;
    doubted.open[0].points = 1;
    let text = bisected_text(&doubted, 300);
    assert!(
        text.contains(
            "fresh blocks next to its parent are missing; `deltabench resume bisect-x` measures"
        ),
        "{text}"
    );
    assert!(text.contains("says whether its code does more"), "{text}");
    assert!(text.contains("not decided: +0.70 % between"), "{text}");
}
