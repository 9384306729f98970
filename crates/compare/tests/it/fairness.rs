//! Differences between real servers (tests/data/postgres, written by make.sh there) and between made-up
//! ones.

use crate::builder::installation;
use deltabench_compare::{ServerFacts, fairness};
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::installation::{Build, Installation, Setting};
use std::path::Path;

/// A server as recorded.
struct Recorded {
    installation: Installation,
    settings: Vec<Setting>,
}

impl Recorded {
    fn new(version: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/postgres")
            .join(version);
        let build = std::fs::read_to_string(directory.join("build.txt")).unwrap();
        let [compiler, cflags, configure] = build.lines().collect::<Vec<_>>()[..] else {
            panic!("build.txt of {version} has three lines");
        };
        let build = Build {
            version_text: format!("PostgreSQL {version}"),
            compiler: compiler.to_owned(),
            cflags: cflags.to_owned(),
            configure: configure.to_owned(),
        };
        let settings = std::fs::read_to_string(directory.join("settings.tsv")).unwrap();
        Self {
            installation: Installation {
                build: Some(build),
                ..installation(version)
            },
            settings: settings.lines().map(setting_of_line).collect(),
        }
    }

    fn facts(&self, name: &str) -> ServerFacts<'_> {
        ServerFacts {
            name: name.to_owned(),
            installation: &self.installation,
            settings: &self.settings,
            data_checksums: false,
            asked_settings: &[],
            relation_bytes: None,
            huge_pages: None,
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let setting = self.settings.iter_mut().find(|s| s.name == name).unwrap();
        setting.value = value.to_owned();
        setting.source = "configuration file".to_owned();
    }
}

fn setting_of_line(line: &str) -> Setting {
    let optional = |field: &str| (field != "\\N").then(|| field.replace("\\\\", "\\"));
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, value, unit, boot_value, source] = fields[..] else {
        panic!("five fields: {line}")
    };
    Setting {
        name: name.to_owned(),
        value: optional(value).unwrap_or_default(),
        unit: optional(unit),
        boot_value: optional(boot_value),
        source: source.to_owned(),
    }
}

/// Findings between two recorded servers of different binaries.
fn between(base: &Recorded, candidate: &Recorded) -> Vec<Finding> {
    fairness(&base.facts("base"), &candidate.facts("candidate"))
}

fn kinds(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.kind.word()).collect()
}

fn text<'a>(findings: &'a [Finding], kind: &str) -> &'a str {
    let found = findings.iter().find(|finding| finding.kind == kind);
    &found
        .unwrap_or_else(|| panic!("no {kind} in {:?}", kinds(findings)))
        .text
}

fn severity(findings: &[Finding], kind: &str) -> Severity {
    findings
        .iter()
        .find(|finding| finding.kind == kind)
        .unwrap()
        .severity
}

#[test]
fn a_server_and_itself_differ_in_nothing_but_being_the_same() {
    for version in ["9.6.24", "15.18-debian", "18.6"] {
        let server = Recorded::new(version);
        let findings = between(&server, &server);
        let expected: &[&str] = if version == "18.6" {
            &["same-binary", "optimisation-low"]
        } else {
            &["same-binary"]
        };
        assert_eq!(kinds(&findings), expected, "{version}: {findings:#?}");
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::Note)
        );
    }
}

#[test]
fn two_releases_of_one_builder_differ_in_defaults_only() {
    let findings = between(&Recorded::new("17.5"), &Recorded::new("18.6"));
    assert_eq!(
        kinds(&findings),
        [
            "optimisation-low",
            "settings-differ",
            "settings-differ-harmless",
            "settings-only-in-base",
            "settings-only-in-candidate"
        ],
        "{findings:#?}"
    );
    assert_eq!(
        text(&findings, "optimisation-low"),
        "both sides are compiled with -Os, not -O2 as in production, so an operation takes more CPU \
         than in production"
    );
    let differing = text(&findings, "settings-differ");
    assert!(
        differing.contains("effective_io_concurrency 1 in base, 16 in candidate (defaults)"),
        "{differing}"
    );
    assert!(text(&findings, "settings-only-in-candidate").contains(", io_method, "));
}

#[test]
fn the_oldest_and_the_newest_differ_in_their_build_too() {
    let findings = between(&Recorded::new("9.6.24"), &Recorded::new("18.6"));
    assert_eq!(
        kinds(&findings),
        [
            "compiler-differs",
            "cflags-differ",
            "optimisation-low",
            "configure-differs",
            "settings-differ",
            "settings-differ-harmless",
            "defaults-differ",
            "settings-only-in-base",
            "settings-only-in-candidate"
        ]
    );
    assert_eq!(
        severity(&findings, "optimisation-low"),
        Severity::Confounder,
        "one side only"
    );
    assert_eq!(
        text(&findings, "cflags-differ"),
        "compiler flags differ: only base has -O2; only candidate has -Os, -fexcess-precision=standard"
    );
    assert_eq!(
        text(&findings, "compiler-differs"),
        "base was compiled by gcc (GCC) 4.4.7 20120313 (Red Hat 4.4.7-23), \
         candidate by gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0"
    );
    let configure = text(&findings, "configure-differs");
    assert!(
        configure.contains("--with-pam") && configure.contains("--with-icu"),
        "{configure}"
    );
    assert!(
        !configure.contains("prefix") && !configure.contains("/opt"),
        "paths are not options: {configure}"
    );
    // 16MB blocks in 9.6 and megabytes in 18 are the same gigabyte.
    let all = format!("{findings:?}");
    assert!(
        !all.contains("max_wal_size") && !all.contains("wal_segment_size"),
        "units are applied: {all}"
    );
}

#[test]
fn a_distribution_build_differs_in_llvm_and_linker_flags() {
    let findings = between(&Recorded::new("15.18-debian"), &Recorded::new("17.5"));
    assert_eq!(
        severity(&findings, "configure-differs"),
        Severity::Confounder
    );
    let configure = text(&findings, "configure-differs");
    assert!(
        configure.contains("--with-llvm") && configure.contains("LDFLAGS=-Wl,-z,relro"),
        "{configure}"
    );
    assert!(
        !configure.contains("zoneinfo") && !configure.contains("PROVE"),
        "{configure}"
    );
}

#[test]
fn settings_that_were_asked_to_differ_are_no_finding() {
    let (base, mut candidate) = (Recorded::new("18.6"), Recorded::new("18.6"));
    candidate.set("random_page_cost", "1.1");
    candidate.set("log_line_prefix", "%t ");
    let ours = [("Random_Page_Cost".to_owned(), "1.1".to_owned())];
    let mut facts = candidate.facts("candidate");
    let unasked = fairness(&base.facts("base"), &facts);
    assert_eq!(
        text(&unasked, "settings-differ"),
        "settings differ that you did not set: \
         random_page_cost 4 in base, 1.1 in candidate (default in base)"
    );
    assert_eq!(severity(&unasked, "settings-differ"), Severity::Confounder);
    assert_eq!(
        severity(&unasked, "settings-differ-harmless"),
        Severity::Note
    );
    facts.asked_settings = &ours;
    let asked = fairness(&base.facts("base"), &facts);
    assert!(!kinds(&asked).contains(&"settings-differ"), "{asked:#?}");
    assert!(
        kinds(&asked).contains(&"settings-differ-harmless"),
        "that one was not asked for"
    );
    // Asked alike on both sides, in force differently: that is exactly what nobody asked for.
    let mut base_facts = base.facts("base");
    base_facts.asked_settings = &ours;
    assert!(kinds(&fairness(&base_facts, &facts)).contains(&"settings-differ"));
}

#[test]
fn what_every_cluster_has_for_itself_is_no_finding() {
    let (base, mut candidate) = (Recorded::new("18.6"), Recorded::new("18.6"));
    for name in [
        "port",
        "data_directory",
        "unix_socket_directories",
        "shared_memory_size",
        "cluster_name",
    ] {
        candidate.set(name, "4711");
    }
    assert_eq!(
        kinds(&between(&base, &candidate)),
        ["same-binary", "optimisation-low"]
    );
}

#[test]
fn cluster_and_data_facts_are_told_with_both_values() {
    let server = Recorded::new("9.6.24");
    let (base, mut candidate) = (server.facts("base"), server.facts("postgres:18.6"));
    let base = ServerFacts {
        relation_bytes: Some(256 << 20),
        huge_pages: Some(true),
        ..base
    };
    candidate = ServerFacts {
        relation_bytes: Some(250 << 20),
        huge_pages: Some(false),
        data_checksums: true,
        ..candidate
    };
    let findings = fairness(&base, &candidate);
    assert_eq!(
        text(&findings, "checksums-differ"),
        "data checksums are off in base, on in postgres:18.6"
    );
    assert_eq!(
        text(&findings, "huge-pages-differ"),
        "huge pages for shared memory are on in base, off in postgres:18.6"
    );
    assert_eq!(
        text(&findings, "relation-size-differs"),
        "the same rows take 256.0 MiB in base, 250.0 MiB in postgres:18.6 (-2.3 %)"
    );
    candidate.relation_bytes = Some(0);
    let few_pages = ServerFacts {
        relation_bytes: Some(16 << 10),
        ..base.clone()
    };
    let of_size = |base: &ServerFacts<'_>| {
        let found = fairness(base, &candidate);
        kinds(&found).contains(&"relation-size-differs")
    };
    assert!(of_size(&base) && !of_size(&few_pages), "no rows at all");
    candidate.relation_bytes = Some(255 << 20);
    candidate.huge_pages = None;
    assert_eq!(
        kinds(&fairness(&base, &candidate)),
        ["same-binary", "checksums-differ"]
    );
}

#[test]
fn assertions_confound_even_when_both_sides_have_them() {
    let (base, mut candidate) = (Recorded::new("9.6.24"), Recorded::new("9.6.24"));
    candidate.set("debug_assertions", "on");
    let findings = between(&base, &candidate);
    assert_eq!(severity(&findings, "assertions-on"), Severity::Confounder);
    assert!(text(&findings, "assertions-on").starts_with("candidate checks assertions"));
    assert!(!kinds(&findings).contains(&"settings-differ"), "said once");
    assert!(
        text(&between(&candidate, &candidate), "assertions-on").starts_with("both sides check")
    );
}

#[test]
fn an_unknown_build_is_said_and_not_guessed() {
    let (base, mut candidate) = (Recorded::new("17.5"), Recorded::new("17.5"));
    candidate.installation.build = None;
    candidate.installation.binary_sha256 = "another".to_owned();
    candidate.settings.clear();
    let findings = between(&base, &candidate);
    assert_eq!(kinds(&findings), ["build-unknown"]);
    assert_eq!(
        findings[0].text,
        "deltabench does not know how candidate was compiled, so it did not compare builds"
    );
}
