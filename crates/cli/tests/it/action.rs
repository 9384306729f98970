//! The shell parts of `action.yml`, with programs that only write down how they were called.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory in the place of a CI job.
struct Job {
    directory: tempfile::TempDir,
}

impl Job {
    /// A job whose `deltabench compare` ends with this code, and whose report in Markdown with that one; the
    /// other forms end as they should.
    fn new(compare: u8, markdown: u8) -> Self {
        let job = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        job.program(
            "deltabench",
            &format!(
                "case $1 in\n\
                 compare) exit {compare} ;;\n\
                 report) code={compare}; while [ \"$1\" != --out ]; do \
                 [ \"$1\" != markdown ] || code={markdown}; shift; done; \
                 echo \"the report\" > \"$2\"; exit $code ;;\n\
                 esac"
            ),
        );
        job.program("gh", "exit 0");
        job.program("cargo", "exit 0");
        for tool in ["cat", "mkdir"] {
            std::os::unix::fs::symlink(Path::new("/bin").join(tool), job.path("bin").join(tool))
                .unwrap();
        }
        fs::create_dir(job.path("action")).unwrap();
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program on the job's path that writes its arguments into `calls`.
    fn program(&self, name: &str, rest: &str) {
        let calls = self.path("calls");
        let text = format!(
            "#!/bin/bash\necho \"{name} $*\" >> '{}'\n{rest}\n",
            calls.display()
        );
        let path = self.path("bin").join(name);
        fs::create_dir_all(self.path("bin")).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, step: &str, more: &[(&str, &str)]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/action");
        // What this machine has besides is not on it: a real `gh`, for example.
        let mut variables = BTreeMap::from([
            ("PATH", self.path("bin").display().to_string()),
            ("RUNNER_TEMP", self.path("temp").display().to_string()),
            (
                "GITHUB_ACTION_PATH",
                self.path("action").display().to_string(),
            ),
            ("GITHUB_REPOSITORY", "owner/postgres".to_owned()),
        ]);
        for name in ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
            variables.insert(name, self.path(name).display().to_string());
        }
        for (name, value) in more {
            variables.insert(name, (*value).to_owned());
        }
        let mut command = Command::new("/bin/bash");
        command.arg(script).arg(step).env_clear().envs(variables);
        command.current_dir(&self.directory).output().unwrap()
    }

    /// Where the report is if nobody says where it should be.
    fn report(&self) -> PathBuf {
        self.path("temp/deltabench-report")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

const TREES: [(&str, &str); 3] = [
    ("BASE", "/opt/base"),
    ("CANDIDATE", "/opt/patch"),
    ("ARGUMENTS", "--quick --not-worse-than 5%"),
];

#[test]
fn a_regression_is_reported_before_the_job_fails() {
    let job = Job::new(1, 1);
    assert!(job.run("compare", &TREES).status.success());
    let here = fs::canonicalize(&job.directory).unwrap();
    let (report, lab) = (job.report(), here.join("deltabench-lab"));
    let output = format!("code=1\nreport={}\n", report.display());
    assert_eq!(job.text("GITHUB_OUTPUT"), output);
    assert_eq!(job.text("GITHUB_STEP_SUMMARY"), "the report\n");
    let calls = job.text("calls");
    let compare = format!(
        "deltabench compare path:/opt/base path:/opt/patch --lab {} --quick --not-worse-than 5% \
         --html {}/report.html ",
        lab.display(),
        report.display()
    );
    assert!(calls.starts_with(&compare), "{calls}");
    assert_eq!(calls.lines().count(), 4, "{calls}");
}

#[test]
fn the_report_and_the_lab_are_where_the_job_wants_them() {
    let job = Job::new(0, 0);
    let places =
        ["elsewhere/report", "elsewhere/lab"].map(|name| job.path(name).display().to_string());
    let more = [("OUT", places[0].as_str()), ("LAB", places[1].as_str())];
    assert!(
        job.run("compare", &[&TREES[..], &more[..]].concat())
            .status
            .success()
    );
    assert!(job.path("elsewhere/report/report.md").is_file());
    let calls = job.text("calls");
    let lab = format!(" --lab {} ", places[1]);
    assert_eq!(calls.matches(&lab).count(), 4, "{calls}");
}

#[test]
fn what_was_not_measured_has_no_report() {
    let job = Job::new(2, 0);
    assert!(job.run("compare", &TREES).status.success());
    assert!(job.text("GITHUB_OUTPUT").starts_with("code=2\n"));
    assert_eq!(job.text("calls").lines().count(), 1);
    assert_eq!(job.text("GITHUB_STEP_SUMMARY"), "");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let job = Job::new(0, 5);
    assert!(job.run("compare", &TREES).status.success());
    assert!(job.text("GITHUB_OUTPUT").starts_with("code=5\n"));
}

#[test]
fn trees_that_are_not_named_fail_the_step() {
    let job = Job::new(0, 0);
    let output = job.run("compare", &[("CANDIDATE", "/opt/patch")]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("BASE"));
    assert_eq!(job.text("calls"), "");
}

#[test]
fn the_comment_is_the_report_and_forks_get_none() {
    let job = Job::new(1, 1);
    assert!(job.run("compare", &TREES).status.success());
    let report = job.report().display().to_string();
    let of_pull = |fork: &str| {
        let more = [
            ("REPORT", report.as_str()),
            ("PULL_REQUEST", "7"),
            ("FROM_FORK", fork),
        ];
        assert!(job.run("comment", &more).status.success());
        let calls = job.text("calls");
        calls.lines().filter(|line| line.starts_with("gh ")).count()
    };
    assert_eq!(of_pull("true"), 0);
    assert_eq!(of_pull("false"), 1);
    let comment = format!(
        "gh pr comment 7 --repo owner/postgres --edit-last --create-if-none --body-file {report}/report.md"
    );
    assert!(job.text("calls").contains(&comment));
    fs::remove_file(job.path("bin/gh")).unwrap();
    assert_eq!(of_pull("false"), 1);
}

#[test]
fn the_installed_program_is_on_the_path_of_later_steps() {
    let job = Job::new(0, 0);
    // In its own directory, because that has the file that names the toolchain.
    job.program("cargo", "[ \"$PWD\" = \"$GITHUB_ACTION_PATH\" ]");
    assert!(job.run("install", &[]).status.success());
    let calls = job.text("calls");
    let install = "cargo install --locked --quiet --path crates/cli --root";
    assert!(calls.contains(install), "{calls}");
    assert_eq!(
        job.text("GITHUB_PATH").trim_end(),
        job.path("temp/deltabench-tools/bin").display().to_string()
    );
    assert!(!job.run("elsewhere", &[]).status.success());
}

#[test]
fn a_text_of_the_action_with_a_colon_is_quoted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action.yml");
    let text = fs::read_to_string(file).unwrap();
    let values = text.lines().filter_map(|line| line.split_once(": "));
    let broken = |value: &str| !value.starts_with(['\'', '"']) && value.contains(": ");
    let broken: Vec<_> = values.filter(|(_, value)| broken(value)).collect();
    // YAML takes it for a mapping, and the whole file is refused.
    assert_eq!(broken, []);
}
