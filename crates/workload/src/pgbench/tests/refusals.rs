//! Every refusal, with file and line.

use super::*;

fn refused(mode: QueryMode, script: &str) -> String {
    match parse(mode, script) {
        Ok(_) => panic!("`{script}` was not refused"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn every_refusal_says_file_and_line() {
    use QueryMode::{Prepared, Simple};
    for (mode, script, line, what) in [
        (
            Simple,
            "\n\\shell rm",
            2,
            "\\shell is not supported: it runs programs",
        ),
        (
            Simple,
            "\\setshell x echo 1",
            1,
            "\\setshell is not supported",
        ),
        (
            Simple,
            "select 1;\n\\setrandom x 1 2",
            2,
            "PostgreSQL 10 removed it",
        ),
        (Simple, "\\echo hi", 1, "invalid command \"echo\""),
        (Simple, "\\ste x 1", 1, "did you mean \\set?"),
        (Simple, "\\set", 1, "missing argument in command \"set\""),
        (Simple, "\\set x", 1, "syntax error"),
        (Simple, "\\set 1x 1", 1, "invalid variable name: \"1x\""),
        (Simple, "\\set x-y 1", 1, "invalid variable name: \"x-y\""),
        (Simple, "\\set x rnadom(1, 2)", 1, "did you mean `random`?"),
        (
            Simple,
            "\\set x 1\nselect 1;\n\\set y 1 +\\\n  +\\\n )",
            5,
            "syntax error",
        ),
        (Simple, "\\set abc 1\n\\set y :abd", 2, "did you mean :abc?"),
        (
            Simple,
            "\\if :nowhere\nselect 1;\n\\endif",
            1,
            "-D nowhere=value",
        ),
        (
            Simple,
            "\\sleep",
            1,
            "missing argument in command \"sleep\"",
        ),
        (Simple, "\\sleep 1 ms now", 1, "too many arguments"),
        (
            Simple,
            "\\sleep now",
            1,
            "invalid sleep time, must be an integer (now)",
        ),
        (Simple, "\\sleep 1.5 s", 1, "invalid sleep time"),
        (
            Simple,
            "\\sleep 1h",
            1,
            "unrecognized time unit, must be us, ms or s (h)",
        ),
        (Simple, "\\sleep 99999999999", 1, "too large"),
        (Simple, "\\sleep :t ms", 1, "undefined variable \"t\""),
        (Simple, "\\elif true", 1, "\\elif without matching \\if"),
        (Simple, "\\else", 1, "\\else without matching \\if"),
        (
            Simple,
            "select 1;\n\\endif",
            2,
            "\\endif without matching \\if",
        ),
        (
            Simple,
            "\n\\if 1\nselect 1;",
            2,
            "\\if without matching \\endif",
        ),
        (
            Simple,
            "\\if 1\n\\else\n\\else\n\\endif",
            3,
            "\\else after \\else",
        ),
        (
            Simple,
            "\\if 1\n\\else\n\\elif 1\n\\endif",
            3,
            "\\elif after \\else",
        ),
        (
            Simple,
            "\\if 1\n\\endif now",
            2,
            "unexpected argument in command \"endif\"",
        ),
        (Simple, "\\gset", 1, "\\gset must follow an SQL command"),
        (
            Simple,
            "select 1;\n\\set x 1\n\\gset",
            3,
            "\\gset must follow",
        ),
        (
            Simple,
            "select 1 as x \\gset\n\\aset",
            2,
            "\\aset must follow",
        ),
        (Simple, "select 1 as x \\gset a b", 1, "too many arguments"),
        (
            Simple,
            "select 1 as x \\gset 1a",
            1,
            "invalid variable name",
        ),
        (
            Simple,
            "\\startpipeline",
            1,
            "cannot use pipeline mode with the simple query",
        ),
        (Simple, "copy t from stdin;", 1, "COPY is not supported"),
        (
            Simple,
            "select 1;\ncopy (select 1) to stdout;",
            2,
            "COPY is not supported",
        ),
        (Simple, "select 'a;\nselect 1;", 1, "quoted string"),
        (Simple, "select :'a';", 1, "is psql's"),
        (
            Prepared,
            "select 1\\; select 2;",
            1,
            "joined by \\; cannot be sent in prepared mode",
        ),
        (
            Prepared,
            "select 1;\nselect '12:ab';",
            2,
            "`:ab` is in quotes",
        ),
        (
            Prepared,
            "\\set ab 1\nselect 1 -- :ab\n;",
            2,
            "`:ab` is in a comment",
        ),
        (
            Prepared,
            "select :nowhere;",
            1,
            "undefined variable \"nowhere\"",
        ),
        (
            Prepared,
            "\\startpipeline\nselect 1 as x \\gset\n\\endpipeline",
            2,
            "\\gset is not allowed in pipeline mode",
        ),
    ] {
        let said = refused(mode, script);
        let begins = format!("error: f.sql:{line}: ");
        assert!(said.starts_with(&begins), "`{script}`: {said}");
        assert!(said.contains(what), "`{script}`: {said}");
    }
    let many = format!("\\set a 1\nselect {}1;", ":a, ".repeat(256));
    assert!(refused(Prepared, &many).contains("too many arguments (maximum is 255)"));
    assert!(parse(Simple, &many).is_ok());
    assert!(refused(Simple, " -- nothing\n").contains("empty command list for script \"f.sql\""));
}

#[test]
fn a_mistake_in_an_expression_is_marked() {
    let problem = parse(QueryMode::Simple, "\\set x 1 +\\\n  2 $ 3").unwrap_err();
    assert_eq!(
        problem.to_string(),
        "error: f.sql:2: unexpected character ($) in command \"set\"\n\
         detail:   2 $ 3\n            ^"
    );
}

#[test]
fn what_is_not_about_a_script_is_refused_too() {
    let parse = |setup: &PgbenchSetup, scripts: &[(&str, u32)]| {
        Program::parse(setup, &mix(scripts)).map_err(|problem| problem.to_string())
    };
    let plain = setup(QueryMode::Simple, &[]);
    let error = parse(&plain, &[("select 1;", 0), ("select 2;", 0)]).unwrap_err();
    assert!(
        error.contains("total script weight of mix must not be zero"),
        "{error}"
    );
    let error = parse(&plain, &[("select 1;", u32::MAX)]).unwrap_err();
    assert!(
        error.contains("weight specification out of range"),
        "{error}"
    );
    let error = parse(&plain, &vec![("select 1;", 1); 129]).unwrap_err();
    assert!(error.contains("at most 128 SQL scripts"), "{error}");
    for wrong in [("1a", "1"), ("a", ""), ("a b", "1")] {
        let error = parse(&setup(QueryMode::Simple, &[wrong]), &[("select 1;", 1)]);
        let error = error.unwrap_err();
        assert!(error.contains("invalid variable definition"), "{error}");
    }
    let endless = PgbenchSetup {
        max_tries: 0,
        shared_names: false,
        reconnects: false,
        ..plain
    };
    let error = parse(&endless, &[("select 1;", 1)]).unwrap_err();
    assert!(error.contains("needs a latency limit"), "{error}");
    let limited = PgbenchSetup {
        latency_limit_ms: Some(1.5),
        ..endless
    };
    let program = parse(&limited, &[("select 1;", 1)]).unwrap();
    assert_eq!(program.latency_limit_ns, Some(1_500_000));
}

#[test]
fn a_deep_or_long_expression_is_refused_and_not_walked() {
    let deep = format!("\\set x {}1{}", "(".repeat(200), ")".repeat(200));
    assert!(refused(QueryMode::Simple, &deep).contains("levels deep"));
    let signs = format!("\\set x {}1", "- ".repeat(900));
    assert!(refused(QueryMode::Simple, &signs).contains("levels deep"));
    let long = format!("\\set x 1{}", " + 1".repeat(5000));
    assert!(refused(QueryMode::Simple, &long).contains("more than 1000 parts"));
    let sum = format!("\\set a 1\n\\set x :a{}\nselect :x;", " + :a".repeat(400));
    let program = parse(QueryMode::Simple, &sum).unwrap();
    assert_eq!(played(&program, 1).unwrap(), ["select 401;"]);
}
