//! What is refused, and what the user is told.

use crate::{HEAD, STUDY, refused};
use deltabench_experiment::Experiment;
use proptest::prelude::*;

/// What to replace in [`STUDY`], by what, and what the problem must then say.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "about =",
        "abuot =",
        "x.toml:4: unknown key `abuot` in the experiment",
    ),
    ("about =", "abuot =", "did you mean `about`?"),
    (
        "version = 1\n",
        "version = 2\n",
        "x.toml:2: the experiment: version 2 is newer",
    ),
    (
        "version = 1\n",
        "version = 0\n",
        "`version` is 0, but must be 1 to",
    ),
    ("version = 1\n", "", "key `version` is missing"),
    (
        ".experiment\"",
        ".workload\"",
        "x.toml:1: the experiment: `format` is \"deltabench.workload\"",
    ),
    (
        "name = \"small-server-cached\"\n",
        "",
        "key `name` is missing",
    ),
    (
        "\"small-server-cached\"",
        "\"small server\"",
        "x.toml:3: the experiment: bad name \"small server\"",
    ),
    (
        "\"small-server-cached\"",
        "\"small server\"",
        "for example \"small-server\"",
    ),
    (
        "\"14 to 18, all in memory\"",
        "14",
        "x.toml:4: the experiment: `about` must be a string, not a whole",
    ),
    ("name = \"", "name = \"\"\"", "x.toml:"),
    // Servers.
    (
        "configuration = \"cx10a",
        "configration = \"cx10a",
        "x.toml:10: unknown key `configration` in [[servers]]",
    ),
    (
        "configuration = \"cx10a",
        "configration = \"cx10a",
        "did you mean `configuration`?",
    ),
    (
        "[[servers]]\ntarget = \"postgres:18\"\n",
        "[[servers]]\n",
        "x.toml:12: [[servers]] entry 2: key `target`",
    ),
    (
        "\"postgres:14\"]",
        "\"postgers:14\"]",
        "x.toml:9: [[servers]] entry 1: unknown target `postgers:14`",
    ),
    (
        "\"postgres:14\"]",
        "\"postgers:14\"]",
        "did you mean postgres:14?",
    ),
    (
        "\"postgres:14\"]",
        "\"postgres:14.0\"]",
        "x.toml:9: [[servers]] entry 1: `target` has postgres:14.0 twice",
    ),
    (
        "[\"postgres:14.0\", \"postgres:14\"]",
        "[]",
        "`target` is an empty list",
    ),
    (
        "[\"postgres:14.0\", \"postgres:14\"]",
        "14",
        "`target` must be a string, not a whole number",
    ),
    (
        "configuration = \"cx10a_c8r32\"",
        "configuration = \"\"",
        "`configuration` is empty",
    ),
    (
        "\"cx10c_c8r32\"]",
        "\"cx10b_c8r32\"]",
        "`configuration` has cx10b_c8r32 twice",
    ),
    (
        "\"18 mine\"",
        "\"base\"",
        "tables already call another server \"base\"",
    ),
    ("\"18 mine\"", "\"a\\nb\"", "`label` has a line break"),
    (
        "\"18 mine\"",
        "\"postgres:14 cx10a_c8r32\"",
        "two servers are called \"postgres:14 cx10a_c8r32\"",
    ),
    (
        "optional = true\n\n[[",
        "label = \"18\"\n\n[[",
        "one `label` cannot name 4 servers",
    ),
    (
        "optional = true\n\n[[",
        "optional = 1\n\n[[",
        "`optional` must be true or false, not a whole number",
    ),
    (
        "target = \"postgres:18+mine\"",
        "target = \"postgres:14\"\nconfiguration = \"cx10a_c8r32\"",
        "appears twice",
    ),
    (
        "[2, 4]",
        "[2, 2]",
        "x.toml:15: `settings` of [[servers]] entry 2: `io_workers` has 2 twice",
    ),
    (
        "[2, 4]",
        "[2, [4]]",
        "`io_workers` must be a string, a number, true or false, not a list",
    ),
    (
        "Work_Mem =",
        "\"work mem\" =",
        "\"work mem\" is not the name of a setting",
    ),
    ("Work_Mem =", "Io_Workers =", "`io_workers` appears twice"),
    (
        "settings = {",
        "settings = 3 #",
        "`settings` must be a table, not a whole number",
    ),
    (
        "jit = false",
        "jit = inf",
        "`jit` must be a string, a number, true or false",
    ),
    (
        "jit = false",
        "jit = 99999999999999999999",
        "`jit` is 99999999999999999999, which is too large",
    ),
    // The base.
    (
        "\"postgres:14.0\"\n\n",
        "\"postgres:14.1\"\n\n",
        "x.toml:6: the experiment: `base` \"postgres:14.1\" is none",
    ),
    (
        "\"postgres:14.0\"\n\n",
        "\"postgres:18\"\n\n",
        "`base` \"postgres:18\" may be 4 servers",
    ),
    (
        "\"postgres:14.0\"\n\n",
        "\"postgres:18\"\n\n",
        "detail: they are postgres:18 cx10b_c8r32 io_workers=2, post",
    ),
    (
        "\"postgres:14.0\"\n\n",
        "\"postgres:18 cx10b_c8r32 io_workers=4\"\n\n",
        "the base, postgres:18 cx10b_c8r32 io_workers=4, cannot be optional",
    ),
    // Configurations and builds.
    (
        "[configurations.tuned]",
        "[configurations.\"a b\"]",
        "bad name \"a b\"",
    ),
    (
        "[configurations.tuned]",
        "[configurations.steady]",
        "`steady` is the configuration of servers without one",
    ),
    (
        "include = [\"cx10a_c8r32\"]\nset",
        "includes = []\nset",
        "unknown key `includes` in [configurations.tuned]",
    ),
    (
        "include = [\"cx10a_c8r32\"]\nset",
        "include = [\"tuned\"]\nset",
        "`tuned` includes itself",
    ),
    (
        "include = [\"cx10a_c8r32\"]\nset",
        "include = \"x\"\nset",
        "`include` must be a list of strings, not a string",
    ),
    (
        "set = { work_mem",
        "set = { a = [1], work_mem",
        "`a` must have one value here, not a list",
    ),
    (
        "\"vacuum_buffer_usage_limit\"",
        "\"Work_mem\"",
        "`work_mem` is both in `set` and in `unset`",
    ),
    (
        "\"meson\"",
        "\"mason\"",
        "x.toml:28: [builds.mine]: unknown system \"mason\"",
    ),
    ("\"meson\"", "\"mason\"", "did you mean \"meson\"?"),
    ("cflags =", "clfags =", "did you mean `cflags`?"),
    (
        "{ AR = \"gcc-ar\" }",
        "{ \"A R\" = \"gcc-ar\" }",
        "\"A R\" is not the name of an environment variable",
    ),
    (
        "[\"-Dlz4=enabled\"]",
        "[3]",
        "`options` must be a string, not a whole number",
    ),
    // Workloads.
    (
        "set = \"published\"",
        "set = \"publised\"",
        "[workloads]: unknown set \"publised\"",
    ),
    (
        "set = \"published\"",
        "set = \"publised\"",
        "did you mean \"published\"?",
    ),
    (
        "set = \"published\"",
        "set = \"quick\"\nonly = [\"scan\"]",
        "`set` and `only` exclude each other",
    ),
    (
        "clients = [1, 4]",
        "clients = [1, 0]",
        "`clients` is 0, but must be 1 to 10000",
    ),
    (
        "clients = [1, 4]",
        "clients = [4, 4]",
        "`clients` has 4 twice",
    ),
    (
        "clients = [1, 4]",
        "clients = [1.5]",
        "`clients` must be a whole number, not a number with a fraction",
    ),
    (
        "order = \"published\"",
        "order = \"random\"",
        "detail: known: drawn, published",
    ),
    (
        "state = \"aged\"",
        "state = \"old\"",
        "unknown state \"old\"",
    ),
    (
        "of = \"read-only-100\"\n",
        "",
        "[[workloads.variant]] entry 1: key `of` is missing",
    ),
    ("range = [100, 10_000]\n", "", "it changes nothing"),
    (
        "range = [100, 10_000]\n",
        "",
        "`deltabench workloads show read-only-100` shows its parameters",
    ),
    (
        "10_000]\n",
        "10_000]\n[[workloads.variant]]\nof = \"read-only-100\"\nrange = 100\n",
        "range = 100 appears twice",
    ),
    (
        "range = [100, 10_000]",
        "range = \"100\"",
        "`range` must be a whole number, not a string",
    ),
    // Data, limits, measurement.
    (
        "rows = [200_000,",
        "rows = [100,",
        "[data]: `rows` is 100, but must be 200 to 2147483647",
    ),
    ("tables = 8", "tabels = 8", "did you mean `tables`?"),
    (
        "[\"2GB\", \"none\"]",
        "[\"2GB\", \"2\"]",
        "[limits]: \"2\" is not an amount of memory",
    ),
    ("[\"2GB\", \"none\"]", "\"16MB\"", "write \"80MB\" or more"),
    (
        "storage = [\"gp3-3000\", \"as-is\"]",
        "storage = []",
        "`storage` is an empty list",
    ),
    (
        "cache = \"cold\"",
        "cache = \"cool\"",
        "did you mean \"cold\"?",
    ),
    (
        "repetitions = 2",
        "repetitions = 2.0",
        "`repetitions` must be a whole number",
    ),
    (
        "blocks = 12",
        "blocks = 0",
        "`blocks` is 0, but must be 1 to 10000",
    ),
    (
        "blocks = 12",
        "blocks = 12\nfixed = true",
        "`fixed` and `precision` exclude each other",
    ),
    (
        "precision = \"1%\"",
        "precision = \"one\"",
        "`precision` is \"one\", which is not a percentage",
    ),
    (
        "precision = \"1%\"",
        "precision = 1",
        "`precision` must be a string, not a whole number",
    ),
    (
        "delta = \"2%\"",
        "delta = \"90%\"",
        "`delta` is 90 %, but must be 0.1 % to 50 %",
    ),
    (
        "budget = \"2h\"",
        "budget = \"2\"",
        "`budget` is \"2\", which is not a time",
    ),
    (
        "visit_seconds = 1.5",
        "visit_seconds = 0",
        "`visit_seconds` is 0, but must be 0.01 to 3600",
    ),
    (
        "visit_seconds = 1.5",
        "visit_seconds = nan",
        "`visit_seconds` is nan, but must be",
    ),
    (
        "slice_ms = 40",
        "slice_ms = 40.5",
        "`slice_ms` must be a whole number",
    ),
    (
        "rate = 1000",
        "rate = 0.01",
        "`rate` is 0.01, but must be 0.1 to 10000000",
    ),
    ("\"tls\"", "\"ssl\"", "unknown transport \"ssl\""),
    (
        "checksums = \"default\"",
        "checksums = true",
        "`checksums` must be a string, not true or false",
    ),
    (
        "placement = \"split\"",
        "placement = \"same\"",
        "detail: known: same-core, split, free",
    ),
    (
        "waits = 10",
        "waits = 1001",
        "`waits` is 1001, but must be 0 to 1000",
    ),
    (
        "counters = false",
        "counter = false",
        "did you mean `counters`?",
    ),
    ("seed = 7", "seed = -1", "`seed` is -1, but must be 0 to"),
    (
        "[measurement]",
        "[mesurement]",
        "did you mean `measurement`?",
    ),
    ("seed = 7", "seed = ", "not TOML"),
];

#[test]
fn problems_name_file_line_and_key() {
    for (from, to, what) in MISTAKES {
        assert!(STUDY.contains(from), "{from}");
        let problem = refused(&STUDY.replacen(from, to, 1));
        assert!(problem.starts_with("error: x.toml:"), "{problem}");
        assert!(
            problem.contains(what),
            "{from} -> {to}\nwanted {what}\n{problem}"
        );
    }
}

#[test]
fn a_study_has_servers_and_not_too_many_of_anything() {
    let rest = |rest: &str| refused(&format!("{HEAD}{rest}"));
    assert!(rest("").contains("there are no servers"));
    assert!(rest("servers = []\n").contains("there are no servers"));
    assert!(rest("[servers]\ntarget = 1\n").contains("tables, each headed [[servers]]"));
    assert!(rest("servers = [\"postgres:18\"]\n").contains("tables, each headed [[servers]]"));
    let sweep: Vec<String> = (0..15).map(|number| number.to_string()).collect();
    let sweep = sweep.join(", ");
    let many = format!(
        "[[servers]]\ntarget = \"postgres:18\"\nsettings = {{ a = [{sweep}], b = [{sweep}] }}\n"
    );
    assert!(rest(&many).contains("that makes 225 servers, but a study has at most 200"));
    let half = many.replacen(&sweep, "1, 2, 3, 4, 5, 6, 7, 8", 1);
    let twice = format!("{half}{}", half.replace(":18", ":17"));
    assert!(rest(&twice).contains("that makes 240 servers"));
    let server = "servers = [{ target = \"postgres:18\" }]\n";
    let parts = format!(
        "{server}[data]\nrows = [1000, 2000, 3000]\ntables = [{}]\n\
                         [measurement]\nrepetitions = 1000\n",
        "1, 2, 3, 4"
    );
    assert!(rest(&parts).contains("that makes 12000 parts"));
    let variants = format!(
        "{server}[[workloads.variant]]\nof = \"x\"\na = [{sweep}]\nb = [{sweep}]\nc = [{sweep}]\n"
    );
    assert!(rest(&variants).contains("more than 1000 workloads"));
}

#[test]
fn workloads_of_ones_own_can_stand_alone_but_not_nothing() {
    let server = "servers = [{ target = \"postgres:18\" }]\nworkloads.only = []\n";
    assert!(
        refused(&format!("{HEAD}{server}")).contains("`only` is empty, and there are no files")
    );
    let own = crate::with(&format!("{server}workloads.files = [\"mine.toml\"]\n"));
    assert_eq!(
        own.workloads.chosen,
        deltabench_experiment::Chosen::Named(Vec::new())
    );
}

#[test]
fn a_configuration_that_sets_nothing_is_refused() {
    let text =
        "servers = [{ target = \"postgres:18\" }]\n[configurations.empty]\nunset = [\"jit\"]\n";
    let problem = refused(&format!("{HEAD}{text}"));
    assert!(
        problem.contains("x.toml:5: [configurations.empty]: it sets nothing"),
        "{problem}"
    );
}

#[test]
fn a_password_is_refused_wherever_it_stands_and_not_repeated() {
    let remote = "dsn:postgres://me:hunter2@db.example/bench";
    let server = format!("[[servers]]\ntarget = \"{remote}\"\n");
    let base = format!("base = \"{remote}\"\n[[servers]]\ntarget = \"postgres:18\"\n");
    for rest in [server, base] {
        let problem = refused(&format!("{HEAD}{rest}"));
        assert!(
            problem.contains("a password in a target would be stored"),
            "{problem}"
        );
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    let forgotten = "postgres://me:hunter2@db.example/bench";
    let server = format!("[[servers]]\ntarget = \"{forgotten}\"\n");
    let base = format!("base = \"{forgotten}\"\n[[servers]]\ntarget = \"postgres:18\"\n");
    for rest in [server, base] {
        let problem = refused(&format!("{HEAD}{rest}"));
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn a_newer_file_is_told_to_be_newer_whatever_else_it_has() {
    let newer = STUDY
        .replacen("version = 1\n", "version = 9\nnew = 1\n", 1)
        .replacen("[scale.tiny]\n", "[scale.tiny]\nnew = 1\n", 1);
    assert!(refused(&newer).contains("version 9 is newer than this deltabench"));
}

proptest! {
    /// Whatever is typed, the answer is a study or a problem with a place.
    #[test]
    fn damaged_files_are_read_or_refused_with_a_place(
        cuts in prop::collection::vec((0..STUDY.len(), 0..12usize), 1..4),
        put in "[ -~\n]{0,6}",
    ) {
        let mut text = STUDY.to_owned();
        for (at, length) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.replace_range(at..end, &put);
        }
        if let Err(problem) = Experiment::read("x.toml", &text, None) {
            prop_assert!(problem.error.starts_with("x.toml:"), "{}", problem);
            prop_assert!(!problem.error.contains('\n'), "{}", problem);
        }
    }

    /// Lines in another order, twice or not at all.
    #[test]
    fn shuffled_lines_are_read_or_refused_with_a_place(
        picked in prop::collection::vec(0..STUDY.lines().count(), 1..80),
    ) {
        let lines: Vec<&str> = STUDY.lines().collect();
        let mut text = HEAD.to_owned();
        for index in picked {
            text.push_str(lines[index]);
            text.push('\n');
        }
        if let Err(problem) = Experiment::read("x.toml", &text, None) {
            prop_assert!(problem.error.starts_with("x.toml:"), "{}", problem);
        }
    }
}
