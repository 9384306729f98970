use crate::costs_fixture::{costed, withdrawn_cell};
use crate::fixture;
use crate::full::{Full, full};
use deltabench_compare::comparison::{CellComparison, Estimates, Metric, Ratio, Verdict};
use deltabench_compare::words::microseconds;
use deltabench_model::plan::{SensitivityPart, Varied};
use deltabench_report::{
    TerminalOptions, costs_table, csv, html, json, junit, markdown, notes_text, terminal,
};
use serde_json::Value;

impl Full {
    fn plain() -> Self {
        Self {
            comparison: fixture::comparison(),
            plan: fixture::plan(),
            context: fixture::context(),
        }
    }

    fn at_width(&self, width: usize) -> String {
        let options = TerminalOptions {
            width,
            colour: false,
            verbose: false,
        };
        terminal(&self.comparison, &self.plan, &self.context, options)
    }

    /// Everything, in lines as long as its sentences.
    fn text(&self) -> String {
        let options = TerminalOptions {
            width: 2000,
            colour: false,
            verbose: true,
        };
        terminal(&self.comparison, &self.plan, &self.context, options)
    }

    fn markdown(&self) -> String {
        markdown(&self.comparison, &self.plan, &self.context)
    }

    fn html(&self) -> String {
        let page = html(&self.comparison, &self.plan, &self.context);
        page.replace('−', "-").replace('\u{a0}', " ")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&json(
            deltabench_report::JsonVersion::One,
            &self.comparison,
            &self.plan,
            &self.context,
        ))
        .unwrap()
    }

    fn csv(&self) -> String {
        csv(&self.comparison, &self.plan, &self.context)
    }
}

#[test]
fn the_full_table_on_a_terminal_of_80_columns() {
    insta::assert_snapshot!(full().at_width(80));
}

#[test]
fn the_full_table_on_a_terminal_of_100_columns() {
    insta::assert_snapshot!(full().at_width(100));
}

#[test]
fn the_full_table_on_a_terminal_of_160_columns() {
    insta::assert_snapshot!(full().at_width(160));
}

#[test]
fn each_form_has_the_microseconds_of_time_and_cpu_of_each_cell() {
    let full = Full::plain();
    let xml = junit(&full.comparison, &full.plan, &full.context);
    let (page, markdown, short, whole) = (
        full.html(),
        full.markdown(),
        full.at_width(200),
        full.text(),
    );
    let mut unchanged = 0;
    for cell in &full.comparison.cells {
        let of = |wanted| cell.metric(wanted).and_then(|found| found.difference_us);
        let (time, cpu) = (of(Metric::Throughput), of(Metric::ServerCpuPerOperation));
        let time = microseconds(&time.unwrap());
        // One cell was measured without CPU.
        let cpu = cpu.map(|cpu| microseconds(&cpu));
        assert_eq!(cpu.is_none(), cell.workload == "update-nonindex");
        let with_cpu = cpu.as_ref().map(|cpu| format!(", CPU {cpu}"));
        let both = format!("\n    time {time}{}\n", with_cpu.unwrap_or_default());
        assert!(whole.contains(&both), "{both} {whole}");
        for text in std::iter::once(time).chain(cpu) {
            let in_column = format!("| {} |", text.replace(" µs/op", ""));
            assert!(markdown.contains(&in_column), "{in_column} {markdown}");
            assert!(xml.contains(&format!("), {text}")), "{text} {xml}");
            let in_table = format!("<br><small>{text}</small></td>");
            let on_card = format!("<br><small>{text}</small></p>");
            assert!(page.contains(&in_table), "{in_table}");
            assert!(page.contains(&on_card), "{on_card}");
            assert!(!short.contains(&text), "{text} {short}");
        }
        unchanged += usize::from(!cell.verdict.is_change());
    }
    assert_eq!(unchanged, 7);
}

#[test]
fn what_a_change_took_more_is_told_once_where_it_has_a_place_of_its_own() {
    let mut full = Full::plain();
    let cell = &mut full.comparison.cells[4];
    let of = |metric| microseconds(&cell.metric(metric).unwrap().difference_us.unwrap());
    let time = of(Metric::Throughput);
    let cpu = of(Metric::ServerCpuPerOperation).replace(" µs/op", "");
    cell.reason = format!("slower by 4.6 % to 6.4 %; {time}; then more");
    let short = full.at_width(200);
    assert!(
        short.contains(&format!("  {time}, CPU {cpu}; then more")),
        "{short}"
    );
    let whole = full.text();
    assert_eq!(whole.matches(&time).count(), 1, "{whole}");
    assert!(
        whole.contains("slower by 4.6 % to 6.4 %; then more"),
        "{whole}"
    );
    // Once in what changed, once among all cells.
    let markdown = full.markdown();
    let bare = time.replace(" µs/op", "");
    assert_eq!(markdown.matches(&bare).count(), 2, "{markdown}");
    assert!(!markdown.contains(&time.replace('[', "\\[")), "{markdown}");
}

#[test]
fn throughput_of_an_open_loop_has_no_microseconds() {
    let mut full = Full::plain();
    let cell = &mut full.comparison.cells[0];
    for one in &mut cell.metrics {
        if one.metric == Metric::Throughput {
            one.difference_us = None;
        }
    }
    let cpu = cell.metric(Metric::ServerCpuPerOperation).unwrap();
    let cpu = microseconds(&cpu.difference_us.unwrap());
    let whole = full.text();
    assert!(whole.contains(&format!("\n    CPU {cpu}\n")), "{whole}");
    let cell_of = |text: String| {
        let row = text
            .lines()
            .find(|row| row.starts_with("| point-query | 1 |"));
        row.unwrap_or_default().to_owned()
    };
    let row = cell_of(full.markdown());
    assert!(row.contains("1.003] | - | 1.004"), "{row}");
    for cell in &mut full.comparison.cells {
        cell.metrics.retain(|one| one.metric != Metric::Throughput);
    }
    let markdown = full.markdown();
    assert!(!markdown.contains("Δ µs/op"), "{markdown}");
    assert!(markdown.contains("| Δ CPU µs/op |"), "{markdown}");
}

#[test]
fn a_report_of_eight_cells_fits_a_terminal_of_45_lines() {
    for full in [full(), Full::plain(), costed(), withdrawn_cell()] {
        for width in [120, 200] {
            let text = full.at_width(width);
            assert!(text.lines().count() <= 45, "{text}");
        }
    }
}

#[test]
fn the_short_form_has_five_notes_and_names_the_command_for_the_others() {
    let short = full().at_width(200);
    let is_note = |line: &&str| {
        ["note: ", "confounder: "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    assert_eq!(short.lines().filter(is_note).count(), 5, "{short}");
    let first = short.lines().find(is_note).unwrap();
    assert!(first.starts_with("confounder: "), "{first}");
    let after: Vec<&str> = short.lines().filter(is_note).skip(1).collect();
    assert!(
        after
            .iter()
            .any(|line| line.starts_with("note: another hour: ")),
        "{short}"
    );
    let more = "more notes: `deltabench notes 20251121-1043-7f3a`";
    assert!(short.contains(more) && !full().text().contains(more));
    let Full {
        comparison,
        plan,
        context,
    } = full();
    let all = deltabench_report::notes_text(&comparison, &plan, &context, 2000);
    for finding in &comparison.findings {
        assert_eq!(all.matches(&finding.text).count(), 1, "{}", finding.text);
    }
    let place = |heading| {
        all.find(heading)
            .unwrap_or_else(|| panic!("{heading}: {all}"))
    };
    assert!(place("What else differs between") < place("What makes an answer less certain"));
    assert!(place("What makes an answer less certain") < place("How the answers were found"));
    assert!(
        full()
            .text()
            .contains(&all.lines().skip(1).collect::<Vec<_>>().join("\n"))
    );
}

#[test]
fn the_head_line_names_a_delta_only_if_all_cells_without_change_have_it() {
    let head = |full: &Full| full.at_width(200).lines().next().unwrap().to_owned();
    assert!(head(&Full::plain()).contains(", 6 no change beyond ±3 %, "));
    assert!(head(&full()).contains(", 4 no change, "));
}

#[test]
fn the_full_markdown() {
    insta::assert_snapshot!(full().markdown());
}

#[test]
fn the_full_json_of_three_cells() {
    let mut full = full();
    let kept = ["range-covered-si", "read-only-sum", "update-index"];
    full.comparison
        .cells
        .retain(|cell| kept.contains(&cell.workload.as_str()));
    full.comparison.placebo_cells.clear();
    for metric in full
        .comparison
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.metrics)
    {
        metric.blocks.truncate(2);
    }
    for warm_up in &mut full.context.warm_up {
        for curve in &mut warm_up.us_per_operation {
            curve.truncate(2);
        }
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&full.json()).unwrap());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 110, 120, 140, 160] {
        for line in full().at_width(width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

/// That some words are on the terminal, in Markdown and on the page of one run, and of the plain one nowhere.
fn only_in(full: &Full, words: &str) {
    let plain = Full::plain();
    let unescaped = |text: String| text.replace('\\', "");
    for (form, shown, absent) in [
        ("terminal", full.text(), plain.text()),
        (
            "Markdown",
            unescaped(full.markdown()),
            unescaped(plain.markdown()),
        ),
        ("page", full.html(), plain.html()),
    ] {
        assert!(shown.contains(words), "{form} lacks {words}: {shown}");
        assert!(!absent.contains(words), "plain {form} has {words}");
    }
}

#[test]
fn each_fact_is_said_in_every_form_and_only_where_it_applies() {
    let full = full();
    for words in [
        "figures from 6 fresh blocks",
        "2.0 h later",
        "≈ 7 more minutes",
        "over TLS",
        "500/s",
        "aged",
        "gate failed: slower in 1 of 8 cells",
        "the gate fails by chance in at most 5 % of runs (Holm)",
        "other load: 44 of 3584 rounds left out",
        "throughput 0.969 [0.926, 1.014] with the disturbed rounds, 0.986 [0.943, 1.031] without",
        "! contended",
        "of update-nonindex at 1 client; none was left out",
        "~ drifting: point-query at 4 clients (not steady",
        "false alarms on this host so far: 2 of 312 placebo cells (at most 2.0 %)",
    ] {
        only_in(&full, words);
    }
    let published = "48320 → 48852 queries/s (16 for each operation)";
    assert!(full.markdown().contains(published) && full.html().contains(published));
    assert!(
        !full.text().contains("queries/s"),
        "the terminal has one unit"
    );
    assert!(!Full::plain().markdown().contains("queries/s"));
}

#[test]
fn what_every_run_rests_on_is_said_in_every_form() {
    let plain = Full::plain();
    for text in [plain.text(), plain.markdown(), plain.html()] {
        for words in [
            "8 cells: on average at most 5 % of the listed regressions and improvements are false \
             (Benjamini-Hochberg)",
            "both binaries' own code layout is the same in every restart: differences below about 1 % \
             can come from layout, not from the change",
            "geometric mean of 8",
            "called different in 0 of 8 cells",
        ] {
            assert!(text.contains(words), "{words} is missing in {text}");
        }
    }
}

#[test]
fn one_binary_on_both_sides_has_one_layout() {
    let mut plain = Full::plain();
    let hash = plain.plan.servers[0].installation.binary_sha256.clone();
    plain.plan.servers[2].installation.binary_sha256 = hash;
    for text in [plain.text(), plain.markdown(), plain.html()] {
        assert!(!text.contains("code layout"));
    }
    assert_eq!(plain.json()["not_averaged"], serde_json::json!([]));
}

#[test]
fn a_single_verdict_needs_no_correction_and_no_mean() {
    let mut plain = Full::plain();
    plain.comparison.cells.truncate(1);
    plain.comparison.summaries.truncate(1);
    (
        plain.comparison.summaries[0].cells,
        plain.comparison.summaries[0].of,
    ) = (1, 1);
    for text in [plain.text(), plain.markdown(), plain.html()] {
        assert!(!text.contains("on average at most"));
        assert!(!text.contains("geometric mean of"));
    }
    assert!(plain.json().get("multiplicity").is_none());
}

#[test]
fn a_cell_that_waits_for_fresh_blocks_or_did_not_recur_has_its_mark() {
    let text = full().text();
    for line in [
        "\n▼✓ range-covered-si ",
        "\n?✗ range-notcovered-pk ",
        "\n?… read-only-sum ",
        "\n=~ point-query ",
        "\n=! update-nonindex ",
        "✓ recurred, … not confirmed yet, ✗ did not recur, ~ drifting, ! contended\n",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    let plain = Full::plain().text();
    for mark in ['✓', '✗', '…', '~', '!'] {
        // The plain text has a ~ in the name of a compiler.
        let of = plain.replace("ubuntu1~18", "").matches(mark).count();
        assert_eq!(of, 0, "{mark} in {plain}");
    }
}

#[test]
fn a_note_does_not_repeat_the_reason() {
    let mut full = full();
    full.comparison.cells[4].reason = "slower by 4.6 % to 6.4 %, beyond ±3 %".to_owned();
    full.comparison.cells[5].reason = "too early".to_owned();
    full.comparison.cells[5].minutes_to_verdict = None;
    let text = full.text();
    for words in [
        "beyond ±3 %; found at look 2 of 4; figures from 6 fresh blocks; recurred",
        "too early; found at look 3 of 4; not confirmed yet: 3 fresh blocks to go; ≈ 3 more blocks",
    ] {
        assert!(text.contains(words), "{words} is missing in {text}");
    }
}

#[test]
fn estimates_that_hardly_move_are_not_told_twice() {
    let mut full = full();
    let seen = &mut full.comparison.cells[7].interference;
    seen.with_voided = seen.without_voided;
    assert!(full.text().contains("44 of 3584 rounds left out"));
    assert!(!full.text().contains("with the disturbed rounds"));
}

#[test]
fn several_sessions_are_offered_only_where_the_run_itself_can_have_them() {
    let mut full = Full::plain();
    let offered =
        "another hour: unknown, because this is one session; --sessions 4 measures several";
    assert!(full.at_width(200).contains(offered));
    full.plan.sensitivity = Some(SensitivityPart {
        of: "r".to_owned(),
        varied: Varied::Tcp,
    });
    assert!(!full.at_width(200).contains("another hour: unknown"));
}

#[test]
fn an_answer_that_hangs_on_the_disturbed_rounds_is_the_first_note() {
    let changed = |cell: &CellComparison| cell.verdict == Verdict::Regression;
    let with_disturbed = |low: f64, high: f64| {
        let mut full = full();
        let cell = full
            .comparison
            .cells
            .iter_mut()
            .find(|cell| changed(cell))
            .unwrap();
        let (own, name) = (throughput(cell), cell.workload.clone());
        let estimates = |ratio| {
            Some(Estimates {
                throughput: ratio,
                server_cpu: None,
            })
        };
        let seen = &mut cell.interference;
        seen.without_voided = estimates(own);
        seen.with_voided = estimates(Ratio {
            ci95: Some((low, high)),
            ..own
        });
        // The other cell's answer does not hang on its rounds.
        let notes = notes_text(&full.comparison, &full.plan, &full.context, 200);
        let (_, method) = notes.split_once("How the answers were found").unwrap();
        assert!(
            method.contains("0.969 [0.926, 1.014] with the disturbed rounds"),
            "{notes}"
        );
        let text = full.at_width(200);
        let first = text
            .lines()
            .find(|line| line.starts_with("note: "))
            .unwrap();
        first.starts_with(&format!("note: {name}"))
    };
    // An interval with 1 in it takes the answer away; one beside it does not.
    assert!(with_disturbed(0.9, 1.1));
    assert!(!with_disturbed(0.9, 0.99));
}

fn throughput(cell: &CellComparison) -> Ratio {
    cell.metric(Metric::Throughput).unwrap().ratio
}

#[test]
fn what_all_cells_share_is_said_once_above_them() {
    let mut full = full();
    for cell in &mut full.plan.cells {
        cell.state = deltabench_model::plan::DataState::Aged;
        cell.rate = Some(800.0);
    }
    full.plan.servers[2].burn_ns = Some(2000);
    full.plan.confirms = Some("20251121-0900-11aa".to_owned());
    full.plan.pins = Some(deltabench_model::plan::Pins {
        server: vec![0],
        client: vec![1],
    });
    full.plan.order = deltabench_model::plan::CellOrder::Published;
    full.plan.jobs.most = 10;
    assert_eq!(full.json()["plan"]["client_threads"], 10);
    assert!(full.html().contains("threads of the client, at most"));
    let text = full.text();
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("conditions: "));
    assert_eq!(
        line.unwrap(),
        "conditions: aged tables: after the published write phase; open loop at 800 ops/s, latency \
         from the scheduled start; over TLS; published order: each cell starts from the tables that \
         earlier cells left; pinned: server to core 0, client to core 1; up to 10 threads of the \
         client; postgres:18.6 burns 2000 ns of CPU more for each message, on purpose; measures the \
         changes of run 20251121-0900-11aa again"
    );
    assert!(!text.contains("(aged)") && !text.contains("800/s"));
}

#[test]
fn stopping_at_a_width_names_the_width_and_the_level() {
    use deltabench_model::plan::Stopping;
    let mut full = full();
    full.comparison.stopping = Stopping::Precision { half_width: 0.01 };
    full.comparison.cells[0].interval_level = 0.97;
    let wide = full.text();
    let wide = wide.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        wide.contains("(each cell until ±1 %, not reached in 4 cells)"),
        "{wide}"
    );
    full.comparison.stopping = Stopping::Precision { half_width: 0.2 };
    assert!(full.text().contains("(each cell until ±20 %)"));
    full.comparison.stopping = Stopping::Precision { half_width: 0.01 };
    assert!(
        full.html()
            .contains("97 %, because measuring stopped at a width")
    );
    let value = full.json();
    assert_eq!(
        value["stopping"],
        serde_json::json!({"mode": "precision", "half_width": 0.01})
    );
    assert_eq!(value["cells"][0]["interval_level"], 0.97);
    full.comparison.stopping = Stopping::Sequential { looks: vec![6, 12] };
    full.comparison.cells[0].interval_level = 0.98;
    let clear = "98 %, because measuring stopped early, at a clear difference";
    assert!(full.html().contains(clear));
}

#[test]
fn the_json_of_a_cell_has_every_new_fact_and_the_plain_one_leaves_them_out() {
    let value = full().json();
    let cell = &value["cells"][4];
    assert_eq!(cell["detection"]["outcome"], "recurred");
    assert_eq!(cell["detection"]["look"], 2);
    assert_eq!(
        (&cell["confirmation"], &cell["confirmed"]),
        (&"recurred".into(), &"fresh-load".into())
    );
    assert_eq!(value["cells"][5]["detection"]["blocks_left"], 3);
    assert_eq!(value["cells"][5]["minutes_to_verdict"], 1.4);
    assert_eq!(value["cells"][5]["published"]["per_operation"], 16.0);
    assert_eq!(value["cells"][2]["rate"], 500.0);
    assert_eq!(value["cells"][7]["state"], "aged");
    assert_eq!(value["cells"][6]["interference"]["contended"], true);
    let speed = &value["cells"][6]["host_speed"];
    assert_eq!(speed["slowdown"], 1.4);
    assert_eq!(
        (
            &speed["blocks"][1]["block"],
            &speed["blocks"][1]["slowdown"]
        ),
        (&1.into(), &1.4.into())
    );
    assert_eq!(speed["throughput"]["fast"]["estimate"], 0.99);
    assert_eq!(speed["throughput"]["slow"]["ci95"][1], 0.98);
    assert_eq!(speed["throughput"]["p"], 0.001);
    assert!(speed.get("server_cpu_us_per_op").is_none());
    assert!(cell.get("host_speed").is_none(), "not known, not there");
    assert_eq!(value["cells"][1]["warm_up"]["steady"], 7);
    assert_eq!(
        value["cells"][1]["warm_up"]["curves"][2]["server"],
        "postgres:18.6"
    );
    assert_eq!(value["ledger"]["flagged"], 2);
    let coverage = &value["ledger"]["coverage"];
    assert_eq!(
        (&coverage[2]["held"], &coverage[2]["too_narrow"]),
        (&81.into(), &true.into())
    );
    assert_eq!(coverage[5]["too_narrow"], false);
    assert_eq!(value["plan"]["transport"], "tls");
    let plain = Full::plain().json();
    assert!(plain.get("ledger").is_none() && plain["gate"].get("line").is_none());
    for key in [
        "rate",
        "p",
        "p_holm",
        "p_bh",
        "decided_at",
        "detection",
        "confirmation",
        "recurrence",
        "another_hour",
        "confirmed",
        "drifting",
        "warm_up",
        "blocks_to_verdict",
        "minutes_to_verdict",
    ] {
        assert!(plain["cells"][4].get(key).is_none(), "{key}");
    }
    assert!(
        plain["cells"][4]["interference"]
            .get("with_voided")
            .is_none()
    );
}

#[test]
fn published_figures_are_throughput_times_a_constant() {
    let full = full();
    let value = full.json();
    let cell = &value["cells"][5];
    let base = cell["metrics"]["throughput"]["base"].as_f64().unwrap();
    assert_eq!(cell["published"]["base"], 16.0 * base);
    assert_eq!(cell["published"]["unit"], "queries/s");
    let csv = full.csv();
    let line = csv
        .lines()
        .find(|line| line.starts_with("read-only-sum") && line.contains(",throughput,"))
        .unwrap();
    assert!(
        line.contains(",not-yet,") && line.contains(",48320,"),
        "{line}"
    );
    let other = csv
        .lines()
        .find(|line| line.contains(",latency_us_p50,"))
        .unwrap();
    assert!(other.ends_with(",,,"), "{other}");
}

#[test]
fn the_page_marks_looks_fresh_blocks_left_out_rounds_and_warm_up() {
    let (full, plain) = (full().html(), Full::plain().html());
    for (sign, times) in [
        // Six blocks behind one discovery and nine and one later behind the other, two metrics, the legend.
        ("class=\"found\"", 2 * (10 + 10) + 1),
        ("class=\"fresh\"", 2 * 2 * 6 + 1),
        ("class=\"warmup\"", 8),
    ] {
        assert_eq!(full.matches(sign).count(), times, "{sign}");
        assert_eq!(plain.matches(sign).count(), 0, "{sign}");
    }
    for sign in ["class=\"look\"", "steady in 7 of 16 visits"] {
        assert!(full.contains(sign), "{sign}");
        assert!(!plain.contains(sign), "{sign}");
    }
    // Three void rounds are in no strip of the fixture, so the plain page has the legend alone.
    assert_eq!(plain.matches("class=\"gap\"").count(), 1);
    assert_eq!(full.matches("class=\"gap\"").count(), 1 + 2);
    assert_eq!(full.matches("class=\"mean\"").count(), 4);
}

/// Verdicts that neither run has, for the guide.
fn others() -> Full {
    use crate::fixture::ratio;
    use deltabench_compare::comparison::Verdict;
    let mut others = Full::plain();
    let cell = &mut others.comparison.cells[2];
    (cell.verdict, cell.reason) = (
        Verdict::Unfit,
        "placebo is off by +2.4 % (p = 0.0021); not trusted: no change beyond ±3 %".to_owned(),
    );
    let mut faster = cell.clone();
    (faster.verdict, faster.reason) = (
        Verdict::Improvement,
        "faster by 3.3 % to 4.9 %, beyond ±3 %".to_owned(),
    );
    for (metric, (change, half)) in std::iter::zip(
        &mut faster.metrics,
        [(0.041, 0.008), (-0.039, 0.006), (-0.041, 0.1), (-0.04, 0.1)],
    ) {
        metric.ratio = ratio(change, half);
        metric.candidate = metric.base * (1.0 + change);
    }
    others.comparison.cells.push(faster);
    others
}

#[test]
fn every_example_of_the_guide_is_what_is_printed() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/reading.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    // The guide may break lines elsewhere.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (costed, withdrawn) = (costed(), withdrawn_cell());
    let options = TerminalOptions {
        width: 120,
        colour: false,
        verbose: false,
    };
    let costs = costs_table(&costed.comparison, &costed.plan, &costed.context, options);
    let tables = [full(), others(), costed, withdrawn].map(|full| full.at_width(120));
    let printed = words(&(tables.concat() + &costs + &full().text()));
    let examples: Vec<&str> = guide
        .split("```text\n")
        .skip(1)
        .filter_map(|part| part.split("```").next())
        .collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        assert!(printed.contains(&words(example)), "not printed: {example}");
    }
}

#[test]
fn the_page_says_what_a_cell_would_be_without_the_others() {
    use deltabench_compare::comparison::Verdict;
    let mut full = full();
    assert!(!full.html().contains("verdict without the other cells"));
    full.comparison.cells[7].alone = Verdict::Regression;
    assert!(
        full.html()
            .contains("<dt>verdict without the other cells</dt><dd>slower</dd>")
    );
    assert_eq!(full.json()["cells"][7]["alone"], "regression");
}
