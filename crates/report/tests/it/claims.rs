//! No report claims more than its run allows.

use crate::costs_fixture::{costed, withdrawn_cell, withdrawn_run};
use crate::full::{Full, full};
use deltabench_compare::comparison::Verdict;
use deltabench_report::{
    ConfirmationWithdrawn, DeltaChosen, Format, TerminalOptions, costs_table, render,
};

const OPTIONS: TerminalOptions = TerminalOptions {
    width: 400,
    colour: false,
    verbose: false,
};

fn form(format: Format, full: &Full) -> String {
    render(format, &full.comparison, &full.plan, &full.context, OPTIONS)
}

fn json(full: &Full) -> serde_json::Value {
    serde_json::from_str(&form(
        Format::Json(deltabench_report::JsonVersion::One),
        full,
    ))
    .unwrap()
}

/// Every form that has sentences begins with this one.
fn all_begin_with(full: &Full, sentence: &str) {
    for format in [Format::Text, Format::Markdown, Format::Html, Format::Junit] {
        let text = form(format, full).replace('\u{a0}', " ");
        // The page sets the word before a colon apart.
        let tail = sentence.split_once(": ").map_or(sentence, |(_, tail)| tail);
        let first = if format == Format::Html {
            "<h1>"
        } else {
            " vs "
        };
        let before = text.split(first).next().unwrap();
        let somewhere = format == Format::Junit && text.contains(tail);
        assert!(before.contains(tail) || somewhere, "{format:?}");
    }
}

#[test]
fn a_delta_that_was_chosen_afterwards_says_so_first() {
    let mut full = full();
    full.context.delta_chosen = Some(DeltaChosen {
        chosen: 0.03,
        planned: None,
    });
    let noise = "judged with δ ±3 %, chosen for this report; the run chose the δ of each cell from its noise";
    let page = form(Format::Html, &full).replace("&#39;", "'");
    assert!(page.contains("chosen for this report; the run chose the δ of each cell"));
    assert!(form(Format::Text, &full).starts_with(noise));
    full.context.delta_chosen = Some(DeltaChosen {
        chosen: 0.03,
        planned: Some(0.01),
    });
    let planned = "judged with δ ±3 %, chosen for this report; the run planned ±1 %";
    all_begin_with(&full, planned);
    assert!(
        form(Format::Markdown, &full).contains("deltabench report 20251121-1043-7f3a --delta 3%")
    );
    assert_eq!(json(&full)["delta_chosen"]["planned"], 0.01);
}

#[test]
fn another_base_than_planned_says_so_first() {
    let mut full = full();
    let (planned, candidate) = (full.plan.base(), full.plan.candidates()[0]);
    let base = full.plan.server(candidate).unwrap().name();
    full.plan = full.plan.relative_to(candidate);
    full.context.planned_base = Some(planned);
    all_begin_with(
        &full,
        "chosen for this report; the run was planned relative to",
    );
    let markdown = form(Format::Markdown, &full);
    let again = format!("deltabench report 20251121-1043-7f3a --base {base}");
    assert!(markdown.contains(&again), "{again}: {markdown}");
    let json = json(&full);
    assert_eq!(json["base"]["resolved"], base);
    assert_ne!(json["planned_base"]["resolved"], base);
}

#[test]
fn a_confirmation_that_was_withdrawn_is_no_secret() {
    let mut full = full();
    full.context.confirmation_withdrawn = vec![ConfirmationWithdrawn {
        run: "r-confirm".to_owned(),
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 0,
    }];
    all_begin_with(
        &full,
        "withdrawn: the run r-confirm that confirmed this one: a backup ran",
    );
    assert_eq!(
        json(&full)["confirmation_invalidations"][0]["run"],
        "r-confirm"
    );
}

#[test]
fn figures_that_are_not_to_be_used_carry_a_cross() {
    let good = form(Format::Markdown, &costed());
    assert!(!good.contains("× : unfit or withdrawn"));
    let text = form(Format::Markdown, &withdrawn_cell());
    assert!(
        text.contains("× : unfit or withdrawn, do not use"),
        "{text}"
    );
    let row = text
        .lines()
        .find(|line| line.ends_with("range-covered-si at 1 client"));
    assert!(row.is_some_and(|row| row.starts_with("0.94×")), "{row:?}");
    let terminal = form(Format::Text, &withdrawn_cell());
    assert!(terminal.contains("× unfit, do not use"), "{terminal}");
    assert!(
        terminal
            .lines()
            .any(|line| line.contains("geometric mean of 8 ×"))
    );
    assert!(!form(Format::Text, &costed()).contains("× unfit"));
}

#[test]
fn nothing_slower_is_said_of_cells_with_an_answer_only() {
    let mut run = costed();
    for cell in &mut run.comparison.cells {
        cell.verdict = Verdict::NoChange;
    }
    assert!(form(Format::Html, &run).contains("No cell was found slower.<"));
    assert!(form(Format::Markdown, &run).contains("\nNo cell was found slower or faster.\n"));
    run.comparison.cells[0].verdict = Verdict::Inconclusive;
    let text = form(Format::Markdown, &run);
    let but = "No cell was found slower or faster, but 1 of 8 cells has no answer.";
    assert!(text.contains(but), "{text}");
    for cell in &mut run.comparison.cells {
        cell.verdict = Verdict::Unfit;
    }
    assert!(
        form(Format::Html, &run).contains("No cell has an answer: 8 of 8 cells have no answer.")
    );
    let mut gone = withdrawn_run();
    for cell in &mut gone.comparison.cells {
        cell.verdict = Verdict::Unfit;
    }
    assert!(form(Format::Html, &gone).contains("All results are withdrawn"));
}

#[test]
fn the_command_to_do_it_again_has_targets_and_seed_and_no_places() {
    let mut run = full();
    run.plan.command = [
        "/root/bin/deltabench",
        "--lab=/tmp/x",
        "compare",
        "postgres:17",
        "postgres:18",
        "--json",
        "-",
        "--clients",
        "1,4",
        "--html",
        "a b.html",
    ]
    .map(str::to_owned)
    .to_vec();
    run.plan.seed = 7;
    let text = form(Format::Markdown, &run);
    let again = "\ndeltabench compare postgres:17.11 postgres:18.6 --clients 1,4 --seed 7\n\
                 # as typed: /root/bin/deltabench --lab=/tmp/x compare ";
    assert!(text.contains(again), "{text}");
    // Any command that makes one comparison; words of options are no commands.
    for (name, before) in [("count", "calibrate"), ("pgbench", "replay")] {
        run.plan.command = [
            "deltabench",
            "--lab",
            before,
            name,
            "postgres:17",
            "postgres:18",
        ]
        .map(str::to_owned)
        .to_vec();
        let text = form(Format::Markdown, &run);
        let again = format!("\ndeltabench {name} postgres:17.11 postgres:18.6 --seed 7\n");
        assert!(text.contains(&again), "{text}");
    }
    run.plan.command = ["deltabench", "--lab", "compare", "calibrate", "postgres:18"]
        .map(str::to_owned)
        .to_vec();
    let text = form(Format::Markdown, &run);
    assert!(
        text.contains("\ndeltabench --lab compare calibrate postgres:18\n```"),
        "{text}"
    );
    run.plan.command = ["deltabench", "calibrate", "postgres:18"]
        .map(str::to_owned)
        .to_vec();
    let text = form(Format::Markdown, &run);
    assert!(
        text.contains("\ndeltabench calibrate postgres:18\n```"),
        "{text}"
    );
}

#[test]
fn a_move_far_beyond_the_placebo_has_no_false_digits() {
    let mut run = costed();
    run.comparison.cells[4].moved[0].surprise = 1.7e7;
    let text = costs_table(&run.comparison, &run.plan, &run.context, OPTIONS);
    assert!(text.contains("(> 1000 x the placebo's own)"), "{text}");
    assert!(text.contains("n x the placebo's own\" means that the counter moved n times"));
}

#[test]
fn a_burn_of_nothing_is_no_condition() {
    let mut run = full();
    run.plan.servers[2].burn_ns = Some(0);
    assert!(!form(Format::Text, &run).contains("burns"));
}
