//! Hosts of a fleet that are unfit, broken or unknown, and units that leave them.

use super::{Fleet, text};
use std::fs;

#[test]
fn an_unfit_host_is_avoided_until_somebody_says_otherwise() {
    let fleet = Fleet::new();
    let output = fleet.run("a", "ms=1,unfit=3", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("unit 3 is unfit"), "{said}");
    assert!(said.contains("host a is avoided: as was asked"), "{said}");
    assert!(said.contains("drain HOST --undo --on FILE"), "{said}");
    let same = fleet.on("a", &["resume"]).output().unwrap();
    assert_eq!(same.status.code(), Some(5));
    assert!(!fleet.attempt(3, 2).exists(), "not on the same host");
    let undo = ["drain", "a", "--undo", "--on", "lab.toml"];
    let undone = fleet.on("a", &undo).output().unwrap();
    let said = text(&undone.stderr);
    assert_eq!(undone.status.code(), Some(0), "{said}");
    assert!(
        said.contains("a is used again") && said.contains("fleet resume study-"),
        "{said}"
    );
    let resumed = fleet.on("a", &["resume"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(1), "{}", text(&resumed.stderr));
    assert_eq!(fleet.word(3, 2).as_deref(), Some("sealed"));
    fleet.assert_whole();
    // Without a reason, or for a host that nobody knows, nothing is done.
    for (words, why) in [
        (
            &["drain", "a", "--on", "lab.toml"][..],
            "why is a to be avoided",
        ),
        (
            &["drain", "b", "--undo", "--on", "lab.toml"],
            "there is no host b",
        ),
    ] {
        let refused = fleet.on("a", words).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}

/// As on a full disk: without it, all units fail, and each has to be named to be tried again.
#[test]
fn a_host_on_which_unit_after_unit_fails_is_left() {
    let fleet = Fleet::new();
    // The lanes are 2, 1 and 4, 3.
    let output = fleet.run("a", "ms=1,fail=2,fail=1,fail=4", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let why =
        "host a is avoided: in a row 3 units failed, the last one: this unit fails, as was asked";
    assert!(said.contains(why), "{said}");
    assert!(said.contains("unit 3 is waiting"), "{said}");
    assert!(!fleet.attempt(3, 1).exists());
    // Another host takes what is left, and nothing that failed.
    let other = fleet.on("b", &["resume"]).output().unwrap();
    assert_eq!(other.status.code(), Some(5), "{}", text(&other.stderr));
    assert_eq!(fleet.word(3, 1).as_deref(), Some("sealed"));
    assert!(!fleet.attempt(4, 2).exists());
    // What failed before somebody overrules that does not count any more.
    let undo = ["drain", "a", "--undo", "--on", "lab.toml"];
    assert!(fleet.on("a", &undo).output().unwrap().status.success());
    fleet.on("a", &["resume", "last", "4"]).output().unwrap();
    assert_eq!(fleet.word(4, 2).as_deref(), Some("failed"));
    assert_eq!(
        fs::read_dir(fleet.spool().join("avoid")).unwrap().count(),
        0
    );
}

#[test]
fn the_unit_of_an_unfit_host_goes_elsewhere() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=1,unfit=3", &[]);
    let other = fleet.on("b", &["resume"]).output().unwrap();
    assert_eq!(other.status.code(), Some(1), "{}", text(&other.stderr));
    let said = text(&other.stdout);
    let said: Vec<&str> = said.split_whitespace().collect();
    let said = said.join(" ");
    assert!(
        said.contains("on these 2 hosts; a claim on hosts of their class needs 3"),
        "{said}"
    );
    fleet.assert_whole();
}

#[test]
fn a_host_that_cannot_keep_an_identifier_says_before_that_it_is_unfit() {
    let fleet = Fleet::new();
    let said = |state: Option<&str>| {
        let place = fleet.lab.path();
        let mut command = fleet.on(
            "a",
            &[
                "look", "shared", ".", "0", "--node", "a", "--local", "local",
            ],
        );
        if let Some(state) = state {
            command.env("DELTABENCH_STATE", state);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let names = fs::read_dir(place).unwrap().flatten();
        let answer = names.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default());
        answer
            .filter(|text| text.contains("ahead_ms"))
            .collect::<String>()
    };
    let kept = said(None);
    assert!(
        kept.contains("ahead_ms") && !kept.contains("identifier"),
        "{kept}"
    );
    let not = said(Some("/proc/none"));
    assert!(not.contains("it cannot keep an identifier"), "{not}");
}
