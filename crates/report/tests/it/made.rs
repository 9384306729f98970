//! How the servers of a run were made, and runs with many of them.

use crate::fixture::{comparison, context, plan};
use crate::full::{Full, full};
use deltabench_compare::comparison::{Comparison, Verdict};
use deltabench_model::installation::{Origin, Recipe, Remote, RemoteTls};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{
    Adapted, Cell, CellId, ConfigurationUse, ExperimentPart, Plan, Role, WorkloadSource,
};
use deltabench_report::{TerminalOptions, html, json, markdown, terminal};
use serde_json::{Value, json};

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A part of an experiment: a base with an adapted configuration, a candidate that was built, one far away.
fn made() -> Plan {
    let mut plan = plan();
    plan.experiment = Some(ExperimentPart {
        execution: "small-server-20261121".to_owned(),
        experiment: "small-server".to_owned(),
        source: WorkloadSource {
            file: "small.toml".to_owned(),
            text: String::new(),
        },
        scale: Some("tiny".to_owned()),
        part: 2,
        of: 4,
        group: None,
        repetition: 1,
        coordinates: vec![pair("storage", "gp3-3000")],
        left_out: Vec::new(),
    });
    plan.servers[0].configuration = Some(ConfigurationUse {
        name: "cx10a_c8r32".to_owned(),
        adapted: vec![
            Adapted {
                asked: pair("io_method", "worker"),
                became: Vec::new(),
                why: "18 has io_method, 17 does not".to_owned(),
            },
            Adapted {
                asked: pair("checkpoint_segments", "64"),
                became: vec![pair("max_wal_size", "3GB")],
                why: "renamed in 9.5".to_owned(),
            },
        ],
    });
    let mut far = plan.servers[2].clone();
    let built = &mut plan.servers[2];
    built.label = Some("18 tuned".to_owned());
    built.coordinates = vec![pair("target", "postgres:18+o3")];
    built.installation.origin = Origin::Built;
    built.installation.recipe = Some(Recipe {
        variant: "o3_native".to_owned(),
        source: "c0ffee".to_owned(),
        system: "meson".to_owned(),
        options: vec!["--with-lz4".to_owned()],
        cflags: "-O3 -march=native".to_owned(),
        ldflags: String::new(),
        compiler: "gcc (Debian 12.2.0-14) 12.2.0".to_owned(),
        environment: vec![pair("AR", "gcc-ar")],
    });
    far.installation.origin = Origin::Remote;
    far.installation.binary_sha256 = String::new();
    far.installation.remote = Some(Remote {
        host: "db.example".to_owned(),
        port: 5433,
        user: "bench".to_owned(),
        database: "work".to_owned(),
        tls: RemoteTls::VerifyFull,
        root_certificate: None,
        agent: None,
    });
    plan.servers.push(far);
    plan
}

#[test]
fn what_was_adapted_built_and_reached_stands_in_page_markdown_and_json() {
    let (comparison, plan, context) = (comparison(), made(), context());
    let page = html(&comparison, &plan, &context);
    let markdown = markdown(&comparison, &plan, &context).replace('\\', "");
    for said in [
        "cx10a_c8r32",
        "io_method = worker dropped (18 has io_method, 17 does not)",
        "checkpoint_segments = 64 became max_wal_size = 3GB (renamed in 9.5)",
        "o3_native",
        "-O3 -march=native",
        "AR=gcc-ar",
        "db.example port 5433, database work as bench",
        "encrypted, with a trusted certificate for this host",
        "part 2 of 4 of the experiment small-server at scale tiny (storage gp3-3000)",
        "18 tuned",
    ] {
        assert!(page.contains(said), "page: {said}");
        assert!(markdown.contains(said), "markdown: {said}");
    }
    assert!(!markdown.contains("build LDFLAGS") && !page.contains("build LDFLAGS"));
    let far = markdown.split("  - reached at").next().unwrap();
    let far = far.lines().last().unwrap();
    assert!(
        !far.contains("SHA-256"),
        "a remote server has no binary here: {far}"
    );
}

#[test]
fn the_json_says_how_servers_were_made_without_nulls() {
    let text = json(
        deltabench_report::JsonVersion::One,
        &comparison(),
        &made(),
        &context(),
    );
    assert!(!text.contains("null"));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json["base"]["configuration"]["adapted"],
        json!([
            {"asked": ["io_method", "worker"], "became": [], "why": "18 has io_method, 17 does not"},
            {
                "asked": ["checkpoint_segments", "64"],
                "became": [["max_wal_size", "3GB"]],
                "why": "renamed in 9.5"
            }
        ])
    );
    let built = &json["candidates"][0];
    assert_eq!(
        (&built["label"], &built["origin"]),
        (&json!("18 tuned"), &json!("built"))
    );
    assert_eq!(built["recipe"]["options"], json!(["--with-lz4"]));
    assert_eq!(built["coordinates"], json!([["target", "postgres:18+o3"]]));
    assert_eq!(
        json["candidates"][1]["remote"],
        json!({"host": "db.example", "port": 5433, "user": "bench", "database": "work", "tls": "verify-full"})
    );
    assert_eq!(
        json["plan"]["experiment"],
        json!({"name": "small-server", "execution": "small-server-20261121", "scale": "tiny", "part": 2,
            "of": 4, "repetition": 1, "coordinates": [["storage", "gp3-3000"]]})
    );
}

#[test]
fn a_run_outside_of_an_experiment_says_nothing_of_one() {
    let (comparison, plan, context) = (comparison(), plan(), context());
    let json = json(
        deltabench_report::JsonVersion::One,
        &comparison,
        &plan,
        &context,
    );
    for field in [
        "experiment",
        "recipe",
        "remote",
        "configuration",
        "coordinates",
        "label",
    ] {
        assert!(!json.contains(&format!("\"{field}\"")), "{field}");
    }
    let page = crate::page::without_script(&html(&comparison, &plan, &context));
    assert!(!page.contains("build variant") && !page.contains("reached at"));
}

#[test]
fn a_mean_in_json_counts_the_cells_that_are_not_to_be_used() {
    let mut run = full();
    run.context.invalidations = vec![Invalidation {
        cell: Some(CellId(0)),
        reason: "another job ran".to_owned(),
        ..run
            .context
            .invalidations
            .first()
            .cloned()
            .unwrap_or(Invalidation {
                cell: None,
                reason: String::new(),
                at_unix_ms: 0,
            })
    }];
    let said: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &run.comparison,
        &run.plan,
        &run.context,
    ))
    .unwrap();
    let unfit = |cell: &Value| cell["cell"] == 0 || cell["verdict"] == "unfit";
    for summary in said["summaries"].as_array().unwrap() {
        let cells = said["cells"].as_array().unwrap().iter().filter(|cell| {
            cell["candidate"] == summary["candidate"]
                && (summary["group"].is_null() || summary["group"] == cell["group"])
        });
        let wanted = cells.filter(|cell| unfit(cell)).count();
        assert_eq!(summary["void_cells"], wanted, "{summary}");
    }
}

/// Six candidates with long names, 32 cells each.
pub fn many() -> Full {
    let mut run = Full {
        comparison: comparison(),
        plan: plan(),
        context: context(),
    };
    let template = run.plan.servers[2].clone();
    run.plan
        .servers
        .retain(|server| server.role != Role::Candidate);
    for workers in [2, 3, 4, 8, 16, 32] {
        let mut server = template.clone();
        server.label = Some(format!("postgres:18.6 cx10c_c8r32 io_workers={workers}"));
        run.plan.servers.push(server);
    }
    let planned: Vec<Cell> = (0..4)
        .flat_map(|round| {
            run.plan.cells.iter().map(move |cell| Cell {
                workload: format!("{}-{round}", cell.workload),
                ..cell.clone()
            })
        })
        .collect();
    run.plan.cells = planned;
    run.comparison = spread_out(&run.comparison, &run.plan);
    run
}

fn spread_out(comparison: &Comparison, plan: &Plan) -> Comparison {
    let mut all = comparison.clone();
    let candidates = plan.candidates();
    all.cells.clear();
    for (cell, planned) in CellId::each().zip(&plan.cells) {
        for candidate in &candidates {
            let mut one = comparison.cells[cell.index() % 8].clone();
            one.cell = cell;
            one.workload = planned.workload.clone();
            one.candidate = *candidate;
            one.candidate_name = plan.server_name(*candidate);
            all.cells.push(one);
        }
    }
    let summaries = comparison.summaries.iter();
    all.summaries = summaries
        .flat_map(|summary| {
            candidates.iter().map(move |candidate| {
                let mut one = summary.clone();
                (one.candidate, one.cells, one.of) =
                    (*candidate, summary.cells * 4, summary.of * 4);
                one
            })
        })
        .collect();
    for summary in &mut all.summaries {
        summary.candidate_name = plan.server_name(summary.candidate);
    }
    for (cell, planned) in CellId::each().zip(&plan.cells).skip(8) {
        let mut one = comparison.placebo_cells[cell.index() % 8].clone();
        (one.cell, one.workload) = (cell, planned.workload.clone());
        all.placebo_cells.push(one);
    }
    all
}

#[test]
fn six_candidates_of_32_cells_have_every_row_within_the_terminal() {
    let run = many();
    let options = TerminalOptions {
        width: 100,
        colour: false,
        verbose: false,
    };
    let text = terminal(&run.comparison, &run.plan, &run.context, options);
    let summaries = run.plan.candidates().len();
    for line in text.lines().skip(summaries) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert_eq!(text.matches("▼ range-covered-si-3 ").count(), 6);
    let slower = run
        .comparison
        .cells
        .iter()
        .filter(|cell| cell.verdict == Verdict::Regression);
    let rows = text.lines().filter(|line| line.starts_with('▼'));
    assert_eq!(rows.count(), slower.count());
    for workers in [2, 3, 4, 8, 16, 32] {
        let head = format!("postgres:18.6 cx10c_c8r32 io_workers={workers} vs postgres:17.11\n");
        assert_eq!(text.matches(&head).count(), 1, "{head}");
    }
    let page = run.page();
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<article ").count(), 192);
}
