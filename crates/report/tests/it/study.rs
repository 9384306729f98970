use crate::study_fixture::{large, small, study_context};
use deltabench_compare::comparison::Ratio;
use deltabench_compare::study::{Axis, Study, StudyTable};
use deltabench_report::{StudyContext, StudyFormat, TerminalOptions, render_study};
use serde_json::Value;

fn rendered(format: StudyFormat, study: &Study) -> String {
    render_study(format, study, &study_context(), OPTIONS)
}

const OPTIONS: TerminalOptions = TerminalOptions {
    width: 100,
    colour: false,
    verbose: false,
};

fn text(study: &Study, width: usize, colour: bool) -> String {
    let options = TerminalOptions {
        width,
        colour,
        verbose: false,
    };
    render_study(StudyFormat::Text, study, &study_context(), options)
}

#[test]
fn the_tables_on_a_terminal_of_80_columns() {
    insta::assert_snapshot!(text(&small(), 80, false));
}

#[test]
fn the_tables_on_a_terminal_of_160_columns() {
    insta::assert_snapshot!(text(&small(), 160, false));
}

#[test]
fn the_markdown_of_a_study() {
    insta::assert_snapshot!(rendered(StudyFormat::Markdown, &small()));
}

#[test]
fn the_json_of_a_study() {
    insta::assert_snapshot!(rendered(
        StudyFormat::Json(deltabench_report::JsonVersion::One),
        &small()
    ));
}

#[test]
fn the_csv_of_a_study() {
    insta::assert_snapshot!(rendered(StudyFormat::Csv, &small()));
}

#[test]
fn lines_keep_to_the_terminal_and_every_column_is_there() {
    for width in [60, 80, 100, 120, 200] {
        let text = text(&large(), width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let first = text.split("CPU per operation").next().unwrap();
        assert!(
            first.contains(" of 15"),
            "fifteen columns do not fit beside each other"
        );
        // Every workload in every piece, each figure once: 32 rows of 15, five means.
        let figures = first.split("spread of the ratios").next().unwrap();
        let signs = figures.matches('±').count();
        assert_eq!(signs, 14 * 32 + 14 * 5, "{width}");
    }
}

#[test]
fn colour_adds_nothing_but_colour_to_the_tables() {
    let coloured = text(&small(), 160, true);
    let mut plain = String::new();
    for (nth, part) in coloured.split('\u{1b}').enumerate() {
        plain.push_str(if nth == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        });
    }
    // Blanks at the end of a line may stand before the code that ends the colour.
    let trimmed = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    assert_eq!(trimmed(&plain), trimmed(&text(&small(), 160, false)));
    assert!(coloured.contains("\u{1b}[31m") && coloured.contains("\u{1b}[32m"));
}

#[test]
fn what_is_no_claim_stands_in_parentheses_in_every_form() {
    let text = text(&small(), 160, false);
    // Inconclusive although far into the band of published tables.
    assert!(text.contains("(0.939↓ ±8.0)?"), "{text}");
    assert!(text.contains("(1.010  ±?)  ?"), "{text}");
    let markdown = rendered(StudyFormat::Markdown, &small());
    assert!(markdown.contains("(0.939↓ ±8.0)?"), "{markdown}");
    assert!(markdown.contains("**0.930↓ ±0.4 ▼**"));
}

fn parsed(study: &Study) -> Value {
    serde_json::from_str(&rendered(
        StudyFormat::Json(deltabench_report::JsonVersion::One),
        study,
    ))
    .unwrap()
}

#[test]
fn json_and_csv_have_every_figure() {
    let study = large();
    let known = |table: &StudyTable| {
        table
            .rows
            .iter()
            .map(|row| row.figures.iter().flatten().count())
            .sum::<usize>()
    };
    let wanted: usize = study.tables.iter().map(known).sum();
    assert_eq!(
        rendered(StudyFormat::Csv, &study).lines().count(),
        wanted + 1
    );
    let json = parsed(&study);
    let tables = json["tables"].as_array().unwrap().iter();
    let rows = tables.flat_map(|table| table["rows"].as_array().unwrap());
    let figures: usize = rows
        .map(|row| row["figures"].as_array().unwrap().len())
        .sum();
    assert_eq!(figures, wanted);
    assert_eq!(
        (&json["format"], &json["version"]),
        (&"deltabench.study".into(), &1.into())
    );
    assert_eq!(json["counts"]["regression"].as_u64(), Some(counted(&study)));
}

/// Slower in the tables of servers, by throughput.
fn counted(study: &Study) -> u64 {
    use deltabench_compare::comparison::{Metric, Verdict};
    use deltabench_compare::study::Axis;
    let tables = study.tables.iter();
    let tables = tables.filter(|one| one.axis == Axis::Servers && one.metric == Metric::Throughput);
    let figures = tables
        .flat_map(|table| &table.rows)
        .flat_map(|row| row.figures.iter().flatten());
    let slower = figures.filter(|figure| figure.verdict == Some(Verdict::Regression));
    u64::try_from(slower.count()).unwrap()
}

#[test]
fn numbers_that_are_none_are_left_out_of_every_form() {
    let mut study = small();
    let figure = study.tables[0].rows[0].figures[1].as_mut().unwrap();
    figure.ratio.estimate = f64::NAN;
    let figure = study.tables[0].rows[0].figures[2].as_mut().unwrap();
    (figure.ratio.ci95, figure.absolute) = (Some((f64::NAN, 1.0)), f64::INFINITY);
    for format in StudyFormat::ALL {
        let text = rendered(format, &study);
        let text = if format == StudyFormat::Html {
            crate::page::without_script(&text)
        } else {
            text
        };
        for none in ["NaN", "inf"] {
            let said = text.replace("information", "");
            assert!(!said.contains(none), "{}: {none}", format.word());
        }
    }
}

#[test]
fn the_sentence_says_what_got_slower_and_what_has_no_answer() {
    let json = parsed(&small());
    let summary = json["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("small-server-cached: of 11 comparisons of throughput, 2 slower"),
        "{summary}"
    );
    let slowest = json["extremes"][0].as_str().unwrap();
    let wanted = "slower most: point-query on postgres:18.6 cx10b_c8r32 at 1 client -7.0 %";
    assert!(slowest.starts_with(wanted), "{slowest}");
    assert!(
        summary.ends_with("5 without an answer, 1 unfit"),
        "{summary}"
    );
    let mut study = small();
    study.tables.remove(0);
    let summary = parsed(&study)["summary"].as_str().unwrap().to_owned();
    assert!(
        summary.contains(
            "throughput at 16 clients is 7.840 to 15.04 times that at 1, over 2 workloads"
        ),
        "{summary}"
    );
    for table in &mut study.tables {
        table.rows.truncate(1);
    }
    let summary = parsed(&study)["summary"].as_str().unwrap().to_owned();
    let one = " times that at 1, over 1 workload";
    assert!(
        summary.contains(one) && !summary.contains(" to "),
        "{summary}"
    );
    study.tables.clear();
    let summary = parsed(&study)["summary"].as_str().unwrap().to_owned();
    assert!(
        summary.ends_with("nothing can be compared yet"),
        "{summary}"
    );
}

#[test]
fn a_markdown_of_many_tables_stays_below_the_limit_of_a_comment() {
    let text = rendered(StudyFormat::Markdown, &large());
    assert!(text.chars().count() <= 65_000);
    assert!(text.contains("more; the page and the JSON have them all"));
    assert!(text.ends_with("deltabench 0.1.0\n"));
}

pub fn page(study: &Study) -> String {
    rendered(StudyFormat::Html, study)
}

const EVIL: &str = "</title></script><img src=x onerror=alert(1)>\"'&|*";

/// A study whose every name tries to be markup.
pub fn evil() -> String {
    let (mut study, mut context): (Study, StudyContext) = (small(), study_context());
    study.name = EVIL.to_owned();
    study.notes = vec![EVIL.to_owned()];
    for table in &mut study.tables {
        table.title = format!("{EVIL} {}", table.title);
        table.notes = vec![EVIL.to_owned()];
        table.coordinates.push((EVIL.to_owned(), EVIL.to_owned()));
        table
            .columns
            .iter_mut()
            .for_each(|column| column.name = EVIL.to_owned());
        table
            .rows
            .iter_mut()
            .for_each(|row| row.name = EVIL.to_owned());
    }
    context.runs[0].page = Some("javascript:alert(1)".to_owned());
    context.runs[0].withdrawn = Some(EVIL.to_owned());
    context.file.as_mut().unwrap().text = EVIL.to_owned();
    context.command = vec![EVIL.to_owned()];
    let markdown = render_study(StudyFormat::Markdown, &study, &context, OPTIONS);
    assert!(!markdown.contains("<img"));
    render_study(StudyFormat::Html, &study, &context, OPTIONS)
}

#[test]
fn the_page_of_a_study_escapes_whatever_it_is_given() {
    let page = evil();
    assert!(!page.contains("<img") && !page.contains("href=\"javascript"));
    assert_eq!(page.matches("<script").count(), 2);
}

#[test]
fn the_page_of_a_study_needs_nothing_else() {
    let page = page(&large());
    let own = crate::page::without_script(&page);
    for outside in ["http://", "https://", "<link", "@import", "url(", "src="] {
        assert!(!own.contains(outside), "{outside}");
    }
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("href=\"../20261121-1041-7f3a/report.html\""));
}

#[test]
fn the_same_study_gives_the_same_bytes() {
    for format in StudyFormat::ALL {
        assert_eq!(rendered(format, &small()), rendered(format, &small()));
    }
}

/// What [`deltabench_compare::study::study`] makes of runs, not of hands.
fn computed() -> Study {
    let (comparison, mut plan) = crate::text::two_candidates();
    plan.servers[2].label = Some("18 as it comes".to_owned());
    let run = |run, host| deltabench_compare::study::StudyRun {
        run,
        plan: &plan,
        comparison: &comparison,
        results: &[],
        host,
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    };
    deltabench_compare::study::study(&[run("a", "xeon"), run("b", "epyc")]).unwrap()
}

#[test]
fn a_study_that_was_computed_is_shown_in_every_form() {
    let study = computed();
    for format in StudyFormat::ALL {
        let shown = rendered(format, &study);
        for table in &study.tables {
            let title = table.title.replace('&', "&amp;");
            let escaped = title.replace('_', "\\_");
            assert!(
                shown.contains(&title) || shown.contains(&escaped),
                "{}: {title}",
                format.word()
            );
        }
    }
}

#[test]
fn what_is_1_by_definition_has_no_interval() {
    let mut study = small();
    let clients = { study.tables.iter_mut() }.find(|table| table.axis == Axis::Clients);
    let table = clients.unwrap();
    let one = Ratio {
        estimate: 1.0,
        ci95: None,
        ci90: None,
    };
    for row in &mut table.rows {
        let base = row.figures[table.base].as_mut().unwrap();
        (base.cpu, base.switches) = (Some(one), Some(one));
    }
    for text in [
        text(&study, 160, false),
        rendered(StudyFormat::Markdown, &study),
    ] {
        assert!(
            text.contains("CPU per operation relative to 1 client\n"),
            "{text}"
        );
        assert!(
            text.contains("1.000") && !text.contains("1.000 ±?"),
            "{text}"
        );
    }
}
