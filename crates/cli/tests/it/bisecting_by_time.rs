//! `deltabench bisect --metric cpu` over real servers: a large step, a point with the server of another one,
//! a search that is killed.

use crate::bisecting::{answer, prebuilt};
use crate::counting::untested;
use crate::lab::{Lab, text};
use serde_json::Value;

fn of<'a>(answer: &'a Value, list: &str, field: &str) -> Vec<&'a str> {
    let all = answer[list].as_array().unwrap().iter();
    all.map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn a_search_by_time_needs_no_valgrind() {
    let lab = Lab::new();
    let programs = lab.valgrind("exit 1");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    // Both ends are one server, so nothing is measured.
    let same = format!("path:{}", prebuilt(&lab, "postgres:14").display());
    let said = |arguments: &[&str]| {
        let output = lab.command(arguments).env("PATH", &path).output().unwrap();
        let all = [output.stdout, output.stderr].concat();
        (output.status.code(), text(&all))
    };
    let bisect = ["bisect", "postgres:14", &same, "--only", "point-query"];
    for metric in ["auto", "count"] {
        let (code, said) = said(&[&bisect[..], &["--metric", metric]].concat());
        assert!(said.contains("valgrind does not run"), "{said}");
        assert_eq!(code, Some(2), "{said}");
    }
    for metric in ["throughput", "cpu"] {
        let (code, said) = said(&[&bisect[..], &["--metric", metric]].concat());
        assert!(said.contains("both ends are the same server"), "{said}");
        assert_eq!(code, Some(3), "{said}");
    }
    let list = text(&lab.run(&["list"]).stdout);
    let name = list.split(' ').find(|word| word.starts_with("bisect-"));
    let (code, said) = said(&["resume", name.unwrap()]);
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn a_large_step_is_found_by_time_and_a_killed_look_is_gone_on_with() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let same = format!("path:{}", prebuilt(&lab, "postgres:14").display());
    let servers = ["bisect", "postgres:14", &same, "postgres:18"];
    // Of 100 values: index scans take half of the CPU since 17.
    let options = ["--metric", "cpu", "--only", "hot-points", "--rows", "5000"];
    let few = ["--blocks", "6", "--huge-pages", "off"];
    let command = [&servers[..], &options, &few].concat();
    let mut child = lab.start(&command);
    lab.wait_for(&mut child, "bisection bisect-");
    lab.wait_for_servers(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    assert_eq!(lab.report()["by"], "cpu");

    let output = lab.run(&[&command[..], &["--json", "-"]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("going on with look bisect-"), "{said}");
    assert!(said.contains("has the same server as"), "{said}");
    let found = answer(&output);
    assert_eq!(found["end"], "found", "{found:#}");
    let [culprit] = found["culprits"].as_array().unwrap().as_slice() else {
        panic!("{found:#}")
    };
    assert_eq!(culprit["parent"]["target"], same);
    assert_eq!(of(culprit, "one_of", "target"), ["postgres:18"]);
    assert!(culprit["change"].as_f64().unwrap() < -0.2, "{found:#}");
    assert!(culprit.get("instructions").is_none(), "nothing was counted");
    // Of six; how many of them count is up to the machine, too.
    let blocks = culprit["in_time"]["blocks"].as_u64().unwrap();
    assert!((1..=6).contains(&blocks), "{found:#}");
    assert_eq!(of(&found, "looks", "outcome"), ["timed", "timed", "same"]);
    // Whether fresh blocks agree is up to the machine; the code says what they said.
    let agrees = culprit["in_time"]["says"] == "agrees";
    assert_eq!(
        output.status.code(),
        Some(if agrees { 0 } else { 3 }),
        "{said}"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());

    // What is known is not measured again.
    let again = lab.run(&[&command[..], &["--json", "-"]].concat());
    assert_eq!(answer(&again), found);
    let table = text(&lab.run(&["report", "last"]).stdout);
    assert!(
        table.contains("the step is here with a probability of"),
        "{table}"
    );
    let contradicts = lab.run(&[&command[..], &["--count-only"]].concat());
    assert_eq!(contradicts.status.code(), Some(2));
}
