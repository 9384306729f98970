//! A lab that an earlier deltabench made says the same to this one: every report, export and list of it.
//!
//! `tests/labs/v1` holds the store (all kinds of runs, as small as they can be) and what the binary that made
//! it printed. What differs is left in `target/tmp/labs` as files, to be compared with `diff -r`.
//! `DELTABENCH_BLESS=1` keeps what is printed now as what is expected; `DELTABENCH_LABS_BINARY=FILE` asks
//! another binary, which is how the files were made.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Forms of the report of one run.
const FORMS: [&str; 10] = [
    "text",
    "json",
    "html",
    "markdown",
    "csv",
    "junit",
    "benchstat",
    "pgbench",
    "steps",
    "rocksdb",
];

/// Forms of the report of several.
const FORMS_OF_SEVERAL: [&str; 5] = ["text", "json", "html", "markdown", "csv"];

/// A name, and the arguments of its command; `{out}` stands for a directory that becomes files of its own.
type Asked = (String, Vec<String>);

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/labs/v1")
}

fn binary() -> PathBuf {
    let named = std::env::var_os("DELTABENCH_LABS_BINARY");
    named.map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_deltabench")),
        PathBuf::from,
    )
}

fn unpacked(file: &Path) -> Vec<u8> {
    let packed = std::fs::File::open(file).unwrap();
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn expected() -> BTreeMap<String, String> {
    let bytes = unpacked(&kept().join("outputs.tar.xz"));
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entry = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    };
    archive.entries().unwrap().map(entry).collect()
}

fn bless(outputs: &BTreeMap<String, String>) {
    let file = std::fs::File::create(kept().join("outputs.tar.xz")).unwrap();
    let packed = liblzma::write::XzEncoder::new(file, 9);
    let mut archive = tar::Builder::new(packed);
    for (name, text) in outputs {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len().try_into().unwrap());
        header.set_mode(0o644);
        header.set_cksum();
        archive
            .append_data(&mut header, name, text.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

fn names(store: &Path) -> (Vec<String>, Vec<String>) {
    let store = rusqlite::Connection::open(store).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut query = store.prepare(sql).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let runs = list("select name from run order by id");
    let executions = "select distinct plan ->> '$.experiment.execution' from run \
        where plan ->> '$.experiment.execution' is not null order by 1";
    (runs, list(executions))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A report of the run or execution in this form. Only the JSON has versions.
fn report(name: &str, form: &str) -> String {
    let version = if form == "json" {
        " --json-version 1"
    } else {
        ""
    };
    format!("report {name} --format {form}{version}")
}

/// All that is asked of the lab.
fn asked(runs: &[String], executions: &[String]) -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::new();
    let mut ask = |name: String, command: String| asked.push((name, words(&command)));
    ask("list".to_owned(), "list".to_owned());
    // Without this the machine that reads would choose what counts.
    ask("ledger".to_owned(), "ledger --all-hosts".to_owned());
    ask(
        "ledger.json".to_owned(),
        "ledger --all-hosts --json -".to_owned(),
    );
    for run in runs {
        for form in FORMS {
            ask(format!("{run}/report.{form}"), report(run, form));
        }
        ask(format!("{run}/costs"), format!("report {run} --costs"));
        ask(format!("{run}/delta"), format!("report {run} --delta 10"));
        ask(
            format!("{run}/export"),
            format!("export {run} --format csv-dir --out {{out}}"),
        );
    }
    for execution in executions {
        for form in FORMS_OF_SEVERAL {
            ask(
                format!("{execution}/report.{form}"),
                report(execution, form),
            );
        }
        ask(
            format!("{execution}/by-part"),
            format!("report {execution} --by part"),
        );
    }
    let all = runs.join(" ");
    ask("all/report.text".to_owned(), format!("report {all}"));
    asked
}

/// Without what the page brings with it for every run: styles and script. Their data stay.
fn without_bundle(mut page: String) -> String {
    for (begin, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
        if let Some(start) = page.find(begin) {
            let from = start + begin.len();
            if let Some(length) = page[from..].find(end) {
                page.replace_range(from..from + length, "");
            }
        }
    }
    page
}

/// What the binary says to one command: its output with its exit code, and the files that it wrote.
fn outputs(place: &Path, number: usize, (name, arguments): &Asked) -> Vec<(String, String)> {
    let out = format!("out{number}");
    let arguments = arguments.iter().map(|word| word.replace("{out}", &out));
    let done = Command::new(binary())
        .args(arguments)
        .args(["--lab", "lab"])
        .current_dir(place)
        .env("COLUMNS", "120")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8(done.stdout).unwrap();
    let said = String::from_utf8(done.stderr).unwrap().replace(&out, "OUT");
    let code = done.status.code().unwrap();
    let mut all = vec![
        (format!("{name}.stdout"), without_bundle(stdout)),
        (format!("{name}.said"), format!("exit code {code}\n{said}")),
    ];
    for entry in std::fs::read_dir(place.join(&out)).into_iter().flatten() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        all.push((format!("{name}/{file}"), text));
    }
    all
}

/// The lab in a directory of its own; the names of its runs and executions.
fn opened(place: &Path) -> (Vec<String>, Vec<String>) {
    let lab = place.join("lab");
    std::fs::create_dir(&lab).unwrap();
    let store = lab.join("deltabench.sqlite");
    std::fs::write(&store, unpacked(&kept().join("deltabench.sqlite.xz"))).unwrap();
    names(&store)
}

fn all_outputs(place: &Path) -> BTreeMap<String, String> {
    let (runs, executions) = opened(place);
    let lab = place.join("lab");
    for run in &runs {
        // A study links to the pages that are there.
        std::fs::write(lab.join(format!("{run}.html")), "").unwrap();
    }
    let asked = asked(&runs, &executions);
    let next = Mutex::new(asked.iter().enumerate());
    let outputs_so_far = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                loop {
                    let Some((number, one)) = next.lock().unwrap().next() else {
                        return;
                    };
                    let new = outputs(place, number, one);
                    outputs_so_far.lock().unwrap().extend(new);
                }
            });
        }
    });
    outputs_so_far.into_inner().unwrap()
}

/// Leaves two texts as files, and says where they part.
fn parted(name: &str, expected: &str, found: &str) -> String {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("labs");
    for (side, text) in [("expected", expected), ("found", found)] {
        let file = place.join(side).join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (old, new) = (lines(expected), lines(found));
    let at = (0..old.len().max(new.len()))
        .find(|at| old.get(*at) != new.get(*at))
        .unwrap_or_default();
    let shown = |lines: &[String]| -> String {
        let line = lines.get(at).map_or("(nothing)", String::as_str);
        line.chars().take(200).collect()
    };
    let (old, new) = (shown(&old), shown(&new));
    format!(
        "{name}, line {}:\n  expected {old}\n  found    {new}",
        at + 1
    )
}

#[test]
fn a_lab_of_the_first_format_says_what_it_said_to_the_binary_that_made_it() {
    let place = tempfile::tempdir().unwrap();
    let found = all_outputs(place.path());
    if std::env::var_os("DELTABENCH_BLESS").is_some() {
        return bless(&found);
    }
    let expected = expected();
    let _ = std::fs::remove_dir_all(Path::new(env!("CARGO_TARGET_TMPDIR")).join("labs"));
    let all: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let text =
        |of: &BTreeMap<String, String>, name: &str| of.get(name).cloned().unwrap_or_default();
    let parted: Vec<String> = all
        .into_iter()
        .filter(|name| expected.get(*name) != found.get(*name))
        .map(|name| parted(name, &text(&expected, name), &text(&found, name)))
        .collect();
    assert!(
        parted.is_empty(),
        "{} of {} outputs differ (diff -r {}/labs/expected .../found):\n{}",
        parted.len(),
        expected.len(),
        env!("CARGO_TARGET_TMPDIR"),
        parted.join("\n")
    );
}

/// What is asked of a lab whose runs are archived: each way to read them.
fn asked_of_archived(runs: &[String], executions: &[String]) -> Vec<Asked> {
    let forms = ["report.text", "report.json", "export", "delta"];
    let is_asked = |(name, _): &Asked| {
        let of_run = runs
            .iter()
            .any(|run| { forms.iter() }.any(|form| *name == format!("{run}/{form}")));
        let of_study = { executions.iter() }.any(|study| *name == format!("{study}/report.text"));
        of_run || of_study || ["ledger", "all/report.text"].contains(&name.as_str())
    };
    let mut all = asked(runs, executions);
    all.retain(is_asked);
    all
}

#[test]
fn an_archived_lab_says_the_same_byte_for_byte_and_is_smaller() {
    let place = tempfile::tempdir().unwrap();
    let (runs, executions) = opened(place.path());
    let lab = place.path().join("lab");
    for run in &runs {
        std::fs::write(lab.join(format!("{run}.html")), "").unwrap();
    }
    let run = |number, command: &str| {
        let asked = (command.to_owned(), words(command));
        outputs(place.path(), number, &asked).remove(0).1
    };
    let size = || {
        std::fs::metadata(lab.join("deltabench.sqlite"))
            .unwrap()
            .len()
    };
    // Opening it brings it to the newest schema.
    run(0, "list");
    let before = size();
    let dry = run(0, "archive --older 0d --dry-run");
    assert!(dry.contains("would move ") && size() == before, "{dry}");
    let moved = run(0, "archive --older 0d");
    assert!(moved.contains("; the store's file is "), "{moved}");
    assert!(size() < before * 2 / 3, "{} of {before}", size());
    let expected = expected();
    let mut parts = Vec::new();
    for (number, one) in asked_of_archived(&runs, &executions).iter().enumerate() {
        for (name, text) in outputs(place.path(), number + 1, one) {
            if expected.get(&name) != Some(&text) {
                let before = expected.get(&name).map_or("", String::as_str);
                parts.push(parted(&name, before, &text));
            }
        }
    }
    assert!(parts.is_empty(), "{}", parts.join("\n"));
    assert!(run(0, "list").contains("  archived"));
    assert!(run(0, "archive --check").contains(" can be used"));
    // One that is gone is said, whatever is asked, and nothing ends in a panic.
    let files = std::fs::read_dir(lab.join("archive")).unwrap();
    for file in files {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    for (number, one) in asked_of_archived(&runs, &executions).iter().enumerate() {
        let said = outputs(place.path(), number + 500, one);
        let (_, said) = said
            .iter()
            .find(|(name, _)| name.ends_with(".said"))
            .unwrap();
        assert!(
            said.contains("cannot be used") && !said.contains("panicked"),
            "{said}"
        );
    }
}

/// Reports of runs of every kind, and of an experiment.
#[test]
fn json_reports_are_as_their_schemas_say() {
    let place = tempfile::tempdir().unwrap();
    let (runs, executions) = opened(place.path());
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(reference.join(name)).unwrap()).unwrap()
    };
    let (of_runs, of_studies) = (schema("report.schema.json"), schema("study.schema.json"));
    let ledger = outputs(
        place.path(),
        0,
        &("ledger".to_owned(), words("ledger --all-hosts --json -")),
    );
    crate::schema::assert_check(&serde_json::from_str(&ledger[0].1).unwrap());
    let runs = runs.iter().map(|name| (name, &of_runs));
    let studies = executions.iter().map(|name| (name, &of_studies));
    for (name, schema) in runs.chain(studies) {
        let asked = words(&format!("report {name} --format json"));
        let outputs = outputs(place.path(), 0, &(name.clone(), asked));
        let (_, text) = &outputs[0];
        let document = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let breaches = crate::schema::breaches(schema, &document);
        assert!(breaches.is_empty(), "{name}:\n{}", breaches.join("\n"));
    }
}
