use crate::fixture::{comparison, context, plan};
use crate::full::{Full, full};
use crate::rich::{large, rich};
use crate::text::two_candidates;
use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_compare::words::microseconds;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::CellId;
use deltabench_report::{TerminalOptions, csv, html, json, markdown, summary, terminal};
use serde_json::Value;

fn page() -> String {
    html(&comparison(), &plan(), &context())
}

impl Full {
    pub fn page(&self) -> String {
        html(&self.comparison, &self.plan, &self.context)
    }
}

#[test]
fn the_page_begins_with_the_sentence_and_has_every_cell_finding_and_hash() {
    let page = page();
    let body = page.split("<main>").nth(1).unwrap();
    // The page sets minus signs and keeps percent signs with their numbers; nothing else differs.
    let plain = |text: &str| text.replace('−', "-").replace('\u{a0}', " ");
    let sentence = plain(&summary(&comparison(), &plan()));
    let body = plain(body);
    assert!(body.starts_with(&format!("<h1>{sentence}</h1>")));
    for cell in comparison().cells {
        let reason = cell
            .reason
            .trim_start_matches("no change ")
            .trim_start_matches("slower ");
        assert!(
            body.contains(&cell.workload) && body.contains(reason),
            "{}",
            cell.workload
        );
    }
    for finding in comparison().findings {
        assert!(page.contains(&finding.text));
    }
    for server in plan().servers {
        assert!(page.contains(&server.installation.binary_sha256));
    }
    assert!(page.contains("deltabench compare postgres:17 postgres:18 --clients 1,4"));
    assert!(page.contains("9731004412345678901"));
}

/// The page without its one script, which names the spaces of XML and licences.
pub fn without_script(page: &str) -> String {
    let (before, rest) = page.split_once("<script>").unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    format!("{before}{after}")
}

fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script id=\"data\" type=\"application/json\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_page_needs_nothing_else_and_stays_small() {
    for page in [page(), full().page(), rich().page()] {
        let own = without_script(&page);
        for outside in ["http://", "https://", "<link", "@import", "url(", "src="] {
            assert!(!own.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        let policy = page
            .split("Content-Security-Policy\" content=\"")
            .nth(1)
            .unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{}",
            &policy[..90]
        );
    }
}

#[test]
fn a_hundred_cells_with_an_hour_of_series_stay_below_five_megabytes() {
    let page = large().page();
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let data = data(&page);
    assert_eq!(data["cells"].as_array().unwrap().len(), 100);
    assert_eq!(data["series"]["at"].as_array().unwrap().len(), 3600);
}

/// Set to make the pages that `scripts/test-web` opens in a browser.
#[test]
fn pages_for_browsers_can_be_written() {
    let Ok(directory) = std::env::var("DELTABENCH_PAGES") else {
        return;
    };
    let pages = [
        ("plain", page()),
        ("full", full().page()),
        ("rich", rich().page()),
        ("large", large().page()),
        ("evil", evil_page()),
        ("nothing", nothing().page()),
        ("started", started().page()),
        ("many", crate::made::many().page()),
        ("explained", crate::explained::explained().page()),
        ("counted", crate::explained::counted().page()),
        ("rocksdb", crate::rocksdb::page()),
        (
            "bisected",
            deltabench_report::bisected_html(&crate::bisected::bisected()),
        ),
        ("study", crate::study::page(&crate::study_fixture::large())),
        (
            "study-small",
            crate::study::page(&crate::study_fixture::small()),
        ),
        ("study-evil", crate::study::evil()),
    ];
    for (name, page) in pages {
        std::fs::write(format!("{directory}/{name}.html"), page).unwrap();
    }
}

#[test]
fn the_data_of_the_page_says_what_the_comparison_says() {
    let run = rich();
    let data = data(&run.page());
    let cells = data["cells"].as_array().unwrap();
    assert_eq!(cells.len(), run.comparison.cells.len());
    for (cell, said) in run.comparison.cells.iter().zip(cells) {
        assert_eq!(said["verdict"], cell.verdict.word());
        assert_eq!(said["id"], format!("cell-{}-{}", cell.cell, cell.candidate));
        assert!(said["withdrawn"].is_string() == (cell.cell == CellId(2)));
        for (metric, place) in [(Metric::Throughput, 0), (Metric::ServerCpuPerOperation, 1)] {
            let value = &said["values"][place];
            match cell.metrics.iter().find(|one| one.metric == metric) {
                None => assert!(value.is_null()),
                Some(known) => {
                    let close = |said: &Value, wanted: f64| {
                        (said.as_f64().unwrap() / wanted - 1.0).abs() < 1e-4
                    };
                    assert!(
                        close(&value[0], known.base) && close(&value[2][0], known.ratio.estimate)
                    );
                    assert!(close(&value[2][2], known.ratio.ci95.unwrap().1));
                    let difference = known.difference_us.map(|by| microseconds(&by));
                    let words = difference.map(|text| text.replace('-', "−"));
                    assert_eq!(value[4].as_str(), words.as_deref());
                }
            }
        }
        assert_eq!(said["costs"].as_array().unwrap().len(), cell.costs.len());
    }
    // Rounds: hundredths of a percent, in the order measured; what was left out is null.
    let (cell, said) = (&run.comparison.cells[0], &cells[0]["rounds"][0]);
    let first = cell.series[0].throughput.exp_m1() * 1e4;
    assert!((said["blocks"][0][3][0].as_f64().unwrap() - first).abs() <= 0.5);
    assert_eq!(said["blocks"].as_array().unwrap().len(), 16);
}

/// In several sessions only the blocks of each session's answer are in the sample.
#[test]
fn a_block_that_is_not_in_the_figures_takes_no_value_of_another() {
    let mut run = rich();
    let metric = &mut run.comparison.cells[0].metrics[0];
    let (left_out, values) = (3, metric.blocks.clone());
    let place = metric.numbers.iter().position(|number| *number == left_out);
    metric.blocks.remove(place.unwrap());
    metric.numbers.remove(place.unwrap());
    let data = data(&run.page());
    let blocks = data["cells"][0]["rounds"][0]["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), values.len());
    for (block, value) in blocks.iter().zip(&values) {
        if block[0] == left_out {
            assert_eq!(block[2], "(after the decision)");
        } else {
            let said = block[1].as_f64().unwrap();
            assert!((said - value.exp_m1() * 1e4).abs() <= 0.5, "{block}");
            assert_eq!(block[2], "");
        }
    }
}

#[test]
fn numbers_that_are_none_are_null_in_the_data() {
    let mut run = rich();
    let cell = &mut run.comparison.cells[0];
    cell.metrics[0].base = f64::NAN;
    cell.metrics[2].ratio.ci95 = Some((f64::NAN, f64::INFINITY));
    cell.costs[0].difference.ci95 = None;
    cell.costs[0].base = f64::INFINITY;
    run.context.samples[3]
        .values
        .insert("cpu_user".to_owned(), f64::NAN);
    let page = run.page();
    let data = data(&page);
    assert!(data["cells"][0]["values"][0][0].is_null());
    assert!(data["cells"][0]["values"][2][2][1].is_null());
    assert!(data["cells"][0]["costs"][0][1].is_null());
    assert!(data["series"]["columns"][0]["values"][3].is_null());
    assert!(!without_script(&page).contains("NaN"));
}

#[test]
fn what_got_slower_stands_first_with_its_cause_and_leads_to_the_card() {
    let page = rich().page();
    let head = page.split("id=\"cells\"").next().unwrap();
    let slower = head.find("What got slower").unwrap();
    let faster = head.find("What got faster").unwrap();
    assert!(slower < faster);
    assert!(
        head[slower..faster].contains("href=\"#cell-4-2\"")
            && head[slower..faster].contains("user CPU +5.6")
    );
    assert!(head[faster..].contains("href=\"#cell-5-3\""));
    assert!(page.contains("<article id=\"cell-4-2\""));
    let nothing = {
        let mut run = full();
        run.comparison
            .cells
            .retain(|cell| cell.verdict != Verdict::Regression);
        run.page()
    };
    let open = "No cell was found slower, but 3 of 7 cells have no answer.";
    assert!(nothing.contains(open));
}

#[test]
fn a_withdrawal_is_a_banner_before_all_else_and_stands_at_its_cell_everywhere() {
    let mut run = rich();
    let page = run.page();
    let banner = page.find("class=\"banner\"").unwrap();
    assert!(banner < page.find("<h1>").unwrap());
    // Static forest, table and card of both candidates.
    assert_eq!(
        page.matches("withdrawn: another job ran on the host")
            .count(),
        4
    );
    assert_eq!(page.matches("class=\"withdrawn\"").count(), 6);
    run.context.invalidations[0].cell = None;
    assert!(run.page().contains("this whole run: another job"));
    assert!(!full().page().contains("class=\"banner\""));
}

#[test]
fn plans_that_differ_and_changed_defaults_come_before_other_findings() {
    let page = rich().page();
    let list = page.split("id=\"findings\"").nth(1).unwrap();
    let place = |text: &str| list.find(text).unwrap();
    assert!(place("is planned differently") < place("io_method is new"));
    assert!(place("io_method is new") < place("base was built by gcc"));
    assert!(place("base was built by gcc") < place("4 KiB pages"));
    let card = page.split("<article id=\"cell-4-2\"").nth(1).unwrap();
    assert!(
        card.split("</article>")
            .next()
            .unwrap()
            .contains("plan differs")
    );
}

/// A run that was stopped before its first visit.
fn started() -> Full {
    let mut run = full();
    for cell in &mut run.comparison.cells {
        (cell.metrics, cell.series) = (Vec::new(), Vec::new());
        (cell.blocks, cell.rounds) = (0, 0);
        (cell.verdict, cell.detection) = (Verdict::Inconclusive, None);
    }
    run.comparison.placebo_cells.clear();
    (run.comparison.placebo, run.context.warm_up) = (None, Vec::new());
    run
}

/// One that has not even cells.
fn nothing() -> Full {
    let mut run = started();
    run.comparison.cells.clear();
    run.comparison.findings.clear();
    run
}

#[test]
fn a_run_without_measurements_has_a_page_too() {
    assert!(started().page().contains("nothing measured"));
    assert!(nothing().page().contains("Nothing was measured."));
}

fn evil_page() -> String {
    const EVIL: &str = "</title><img src=x onerror=alert(1)>\"'&";
    let (mut comparison, mut plan, mut context) = (comparison(), plan(), context());
    comparison
        .findings
        .push(Finding::new(FindingKind::own(EVIL), Severity::Note, EVIL));
    for cell in &mut comparison.cells {
        (cell.workload, cell.reason, cell.candidate_name) =
            (EVIL.to_owned(), EVIL.to_owned(), EVIL.to_owned());
    }
    plan.servers[2].installation.resolved = EVIL.to_owned();
    plan.servers[2].installation.binary_sha256 = EVIL.to_owned();
    plan.command.push(EVIL.to_owned());
    plan.settings.push((EVIL.to_owned(), EVIL.to_owned()));
    (context.run, context.state) = (EVIL.to_owned(), EVIL.to_owned());
    context.host = serde_json::json!({ EVIL: EVIL });
    for facts in &mut context.servers {
        facts.settings[0].value = EVIL.to_owned();
        facts.build.as_mut().unwrap().configure = EVIL.to_owned();
    }
    assert!(!markdown(&comparison, &plan, &context).contains("<img"));
    html(&comparison, &plan, &context)
}

#[test]
fn the_page_escapes_whatever_it_is_given() {
    let page = evil_page();
    let at = page
        .find("<img")
        .map(|at| &page[at.saturating_sub(200)..at + 20]);
    assert_eq!(at, None);
    assert_eq!(
        page.split("</head>")
            .next()
            .unwrap()
            .matches("</title>")
            .count(),
        1
    );
    assert!(page.contains("&lt;img") && page.contains("\\u003cimg"));
}

#[test]
fn the_same_comparison_gives_the_same_bytes() {
    let all = || {
        let (comparison, plan, context) = (comparison(), plan(), context());
        [
            terminal(
                &comparison,
                &plan,
                &context,
                TerminalOptions {
                    width: 100,
                    colour: true,
                    verbose: false,
                },
            ),
            json(
                deltabench_report::JsonVersion::One,
                &comparison,
                &plan,
                &context,
            ),
            csv(&comparison, &plan, &context),
            markdown(&comparison, &plan, &context),
            html(&comparison, &plan, &context),
        ]
    };
    assert_eq!(all(), all());
}

#[test]
fn two_candidates_have_a_plot_each() {
    let (comparison, plan) = two_candidates();
    let page = html(&comparison, &plan, &context());
    assert_eq!(page.matches("<table class=\"forest\">").count(), 2);
    assert_eq!(page.matches("<article ").count(), 16);
    assert_eq!(page.matches("<h1>").count(), 2);
}
