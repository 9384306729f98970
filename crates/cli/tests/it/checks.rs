//! What deltabench says in JSON of the host and of itself, against `docs/reference/checks.schema.json`.

use crate::schema::assert_check;
use deltabench_compare::comparison::Verdict;
use deltabench_driver::peer::{Peer, PeerOutcome, PeerWork};
use deltabench_driver::selfbench::{PeerComparison, Rival, SelfbenchCell, SelfbenchRound};
use deltabench_model::plan::Placement;
use deltabench_selfcheck::calibrate::{Outcome, Size, Trial, calibration_json};
use deltabench_selfcheck::crosscheck::json::{CrosscheckJson, PgbenchCrosscheckJson};
use deltabench_selfcheck::crosscheck::packaged::Packaged;
use deltabench_selfcheck::crosscheck::pgbench::{PgbenchFound, PgbenchRequest, ScriptCrosscheck};
use deltabench_selfcheck::crosscheck::statements::{Profile, StatementRate};
use deltabench_selfcheck::crosscheck::tables::TablesFound;
use deltabench_selfcheck::crosscheck::{
    CrosscheckRequest, CrosscheckRound, Measured, Turn, WorkloadCrosscheck,
};
use deltabench_selfcheck::practice::{PairVerdict, practice_json};
use deltabench_selfcheck::selfbench::{SelfbenchJson, SelfbenchRequest};
use deltabench_testkit::small_run;
use serde::Serialize;
use serde_json::Value;
use std::process::Command;

/// As the commands write it.
fn written(document: &impl Serialize) -> Value {
    deltabench_report::of_no_run(serde_json::to_value(document).unwrap())
}

fn outcome(us: u64) -> PeerOutcome {
    PeerOutcome {
        operations: 1000,
        duration_ns: us * 1_000_000,
        client_cpu_ns: us * 400_000,
    }
}

#[test]
fn the_doctor() {
    let place = tempfile::tempdir().unwrap();
    let mut asked = Command::new(env!("CARGO_BIN_EXE_deltabench"));
    asked.arg("--lab").arg(place.path());
    let asked = asked.args(["doctor", "--no-pilot", "--json", "-"]);
    let document: Value = serde_json::from_slice(&asked.output().unwrap().stdout).unwrap();
    assert_check(&document);
    assert!(!document.to_string().contains("null"), "{document}");
}

#[test]
fn a_calibration_and_the_practice() {
    let size = |ci95| Size {
        truth: 0.97,
        estimate: 0.968,
        ci95,
    };
    let trial = |server_cpu| Trial {
        run: 1,
        workload: "point-query".to_owned(),
        verdict: Verdict::Regression,
        throughput: size(Some((0.96, 0.976))),
        server_cpu,
        contended: false,
    };
    let trials = [trial(Some(size(None))), trial(None)];
    let outcome = Outcome {
        share: None,
        burn_ns: None,
        trials: &trials,
    };
    let document = written(&calibration_json("postgres:18", &outcome));
    assert_check(&document);
    let interval = &document["trials"][0]["throughput"]["ci95"];
    assert_eq!(interval["low"], 0.96);
    assert_eq!(interval["level"], 0.95);
    assert!(document["all"]["regression_share_ci95"]["high"].is_number());
    let pair = |ci95: Option<(f64, f64)>| PairVerdict {
        pair: 1,
        practice_ratio: 1.0,
        practice_p: 0.5,
        deltabench_ratio: ci95.map(|_| 1.0),
        deltabench_ci95: ci95,
        deltabench_verdict: "no-change",
    };
    let document = written(&practice_json(
        "postgres:18",
        30,
        &[pair(Some((0.9, 1.1))), pair(None)],
    ));
    assert_check(&document);
    assert!(document["pairs"][1].get("deltabench_ratio").is_none());
}

#[test]
fn a_selfbench_of_the_client() {
    let rounds = [10, 11].map(|us| SelfbenchRound {
        own: outcome(us),
        rival: outcome(2 * us + 1),
    });
    let measured = PeerComparison {
        cell: SelfbenchCell {
            work: PeerWork::Point,
            clients: 1,
            jobs: 1,
            placement: Placement::SameCore,
            operations: 1000,
        },
        rival: Rival::Peer(Peer::Sysbench),
        rounds: rounds.to_vec(),
    };
    let request = SelfbenchRequest {
        installation: small_run::plan().servers[0].installation.clone(),
        clients: vec![1],
        jobs: vec![1],
        rounds: 2,
        seconds: 1.5,
        seed: 1,
    };
    let document = written(&SelfbenchJson::of(&request, &[measured]));
    assert_check(&document);
    assert!(document["rows"][0]["throughput_ci95"]["low"].is_number());
}

#[test]
fn crosschecks_with_sysbench_and_pgbench() {
    let profile = || Profile {
        statements: vec![StatementRate {
            id: "1".to_owned(),
            text: "SELECT 1".to_owned(),
            calls: 1.0,
            rows: vec![1.0],
            plans: None,
        }],
        once: vec!["BEGIN".to_owned()],
        transactions: None,
    };
    let turn = |us| Turn {
        outcome: outcome(us),
        server_ms: 10.0,
    };
    let rounds = [10, 11].map(|us| CrosscheckRound {
        own: turn(us),
        peer: turn(us + 1),
    });
    let measured = Measured {
        operations: 1000,
        arguments: vec!["run".to_owned()],
        own: profile(),
        peer: profile(),
        rounds: rounds.to_vec(),
    };
    let installation = small_run::plan().servers[0].installation.clone();
    let request = CrosscheckRequest {
        installation: installation.clone(),
        workloads: Vec::new(),
        rounds: 2,
        seconds: 0.5,
        rows: 1000,
        seed: u64::MAX,
    };
    let row = |packaged, measured| WorkloadCrosscheck {
        workload: "point-query".to_owned(),
        packaged,
        measured,
    };
    let script = Packaged::Script {
        script: "oltp_point_select",
        options: &[],
    };
    let rows = [
        row(script, Some(measured.clone())),
        row(Packaged::Nothing("no such script"), None),
    ];
    let document = written(&CrosscheckJson::of(
        &request,
        "sysbench 1.0".to_owned(),
        &rows,
    ));
    assert_check(&document);
    assert!(document["rows"][0]["throughput_ci95"]["high"].is_number());
    let request = PgbenchRequest {
        installation,
        scripts: Vec::new(),
        modes: Vec::new(),
        clients: vec![1],
        rounds: 2,
        seconds: 0.5,
        scale: 1,
        seed: 1,
    };
    let found = PgbenchFound {
        program: "/usr/bin/pgbench".into(),
        tables: vec![TablesFound {
            arguments: vec!["-s".to_owned(), "1".to_owned()],
            same: 7,
            own_only: Vec::new(),
            peer_only: Vec::new(),
            skipped: None,
        }],
        rows: vec![ScriptCrosscheck {
            script: "select-only",
            mode: deltabench_model::work::pgbench::QueryMode::Simple,
            clients: 1,
            measured,
        }],
    };
    assert_check(&written(&PgbenchCrosscheckJson::of(
        &request,
        "pgbench 18".to_owned(),
        found,
    )));
}
