//! What a player does: branches, variables, sleeps, rows, pipelines.

use super::*;

#[test]
fn branches_are_taken_as_their_conditions_say() {
    let script = "\\if :a = 1\nselect 'one';\n\\elif :a = 2\nselect 'two';\n\\if :b\nselect 'b';\n\\endif\n\
                  \\elif :a / 0 = 1\nselect 'never';\n\\else\nselect 'other';\n\\endif\nselect 'end';";
    let run = |a: &str, b: &str| {
        let setup = setup(QueryMode::Simple, &[("a", a), ("b", b)]);
        played(&Program::parse(&setup, &mix(&[(script, 1)])).unwrap(), 1)
    };
    assert_eq!(run("1", "1").unwrap(), ["select 'one';", "select 'end';"]);
    assert_eq!(run("2", "0").unwrap(), ["select 'two';", "select 'end';"]);
    let both = ["select 'two';", "select 'b';", "select 'end';"];
    assert_eq!(run("2", "yes").unwrap(), both);
    let error = run("3", "1").unwrap_err().to_string();
    assert_eq!(error, "f.sql:8: division by zero");
    let otherwise = "\\if false\nselect 1;\n\\else\nselect 2;\n\\endif";
    let program = parse(QueryMode::Simple, otherwise).unwrap();
    assert_eq!(played(&program, 1).unwrap(), ["select 2;"]);
}

#[test]
fn variables_are_text_or_parameters() {
    let script = "\\set d 1.5\n\\set n null\n\\set b 1 = 1\nselect :d, :n, :b, ':d', :text, :later::int;\n\
                  \\set later 5\n";
    let given = [("text", "a b")];
    let program = Program::parse(&setup(QueryMode::Simple, &given), &mix(&[(script, 1)])).unwrap();
    let mut player = Player::new(&program, 0);
    let mut draws = Draws::new(1, 0);
    player.begin(&program, &mut draws);
    let first = "select 1.5, NULL, true, '1.5', a b, :later::int;";
    assert_eq!(rest(&mut player, &program).unwrap(), [first]);
    // What was set lasts.
    player.begin(&program, &mut draws);
    let second = "select 1.5, NULL, true, '1.5', a b, 5::int;";
    assert_eq!(rest(&mut player, &program).unwrap(), [second]);
    assert_eq!(program.statements()[0].parameters, 0);

    let script = script.replace("':d', ", "");
    let program = Program::parse(&setup(QueryMode::Extended, &given), &mix(&[(&script, 1)]));
    let program = program.unwrap();
    assert_eq!(
        program.statements()[0].sql,
        "select $1, $2, $3, $4, $5::int;"
    );
    assert_eq!(program.statements()[0].parameters, 5);
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut draws);
    assert_eq!(player.next(&program), Ok(Action::Send(0)));
    let parameter = |n: usize| {
        let mut out = b"x".to_vec();
        let is_set = player.write_parameter(&program, n, &mut out);
        is_set.then(|| String::from_utf8(out).unwrap())
    };
    let parameters: Vec<_> = (0..6).map(parameter).collect();
    let some = |text: &str| Some(format!("x{text}"));
    assert_eq!(
        parameters,
        [
            some("1.5"),
            some("NULL"),
            some("true"),
            some("a b"),
            None,
            None
        ]
    );
}

#[test]
fn automatic_variables_are_there_unless_the_user_gives_them() {
    let script = "\\set h hash(10)\nselect :scale, :client_id, :random_seed, :default_seed, :h;";
    let run = |given: &[(&str, &str)], client: u32| {
        let program = Program::parse(&setup(QueryMode::Simple, given), &mix(&[(script, 1)]));
        let program = program.unwrap();
        let mut player = Player::new(&program, client);
        player.begin(&program, &mut Draws::new(1, 0));
        rest(&mut player, &program).unwrap().remove(0)
    };
    // hash(10) of pgbench 18 with -D default_seed=5432.
    let hash = "-5817877081768721676";
    assert_eq!(run(&[], 3), format!("select 10, 3, 5432, 5432, {hash};"));
    let given = [("scale", "7"), ("client_id", "9"), ("random_seed", "x")];
    assert_eq!(run(&given, 3), format!("select 7, 9, x, 5432, {hash};"));
    assert!(!run(&[("default_seed", "1")], 0).contains(hash));
}

#[test]
fn sleeps_last_as_long_as_they_say() {
    let script = "\\set t 3\n\\sleep 2\n\\sleep 10 ms\n\\sleep 5us\n\\sleep :t MS\n\\sleep :t\n\\sleep -1\n\
                  \\sleep :text";
    let given = [("text", "7x")];
    let program = Program::parse(&setup(QueryMode::Simple, &given), &mix(&[(script, 1)])).unwrap();
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut Draws::new(1, 0));
    for us in [2_000_000, 10_000, 5, 3000, 3_000_000, 0, 7_000_000] {
        let sleep = Action::Sleep(std::time::Duration::from_micros(us));
        assert_eq!(player.next(&program), Ok(sleep));
    }
    assert_eq!(player.next(&program), Ok(Action::Done));
    let given = [("text", "soon")];
    let program = Program::parse(&setup(QueryMode::Simple, &given), &mix(&[(script, 1)])).unwrap();
    let error = played(&program, 1).unwrap_err().to_string();
    assert_eq!(
        error,
        "f.sql:8: sleep: invalid sleep time \"soon\" for variable \"text\""
    );
}

#[test]
fn a_row_becomes_variables() {
    let script = "select 1 as a\\; select 2 as b, null as c \\gset p_\nselect :p_a, :p_b, ':p_c';\n\
                  select 1 as a\\; select 2 as b \\aset\nselect :a, :b;";
    let program = parse(QueryMode::Simple, script).unwrap();
    assert_eq!(program.statements()[0].parts, 2);
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut Draws::new(1, 0));
    assert_eq!(player.next(&program), Ok(Action::Send(0)));
    player.capture(&program, 0, &[b"a"], &[Some(b"1")]).unwrap();
    let columns: [&[u8]; 2] = [b"b", b"c"];
    player
        .capture(&program, 1, &columns, &[Some(b"2"), None])
        .unwrap();
    player.end_capture(&program).unwrap();
    assert_eq!(player.next(&program), Ok(Action::Send(1)));
    // Only the last part counts for \gset.
    assert_eq!(sent(&player, &program), "select :p_a, 2, '';");
    player.end_capture(&program).unwrap();
    assert_eq!(player.next(&program), Ok(Action::Send(2)));
    player.capture(&program, 0, &[b"a"], &[Some(b"1")]).unwrap();
    player.capture(&program, 0, &[b"a"], &[Some(b"8")]).unwrap();
    player.end_capture(&program).unwrap();
    assert_eq!(player.next(&program), Ok(Action::Send(3)));
    assert_eq!(sent(&player, &program), "select 8, :b;");
}

#[test]
fn a_gset_wants_one_row_and_names_that_can_be() {
    let script = "select 1;\nselect x from t \\gset\n";
    let program = parse(QueryMode::Prepared, script).unwrap();
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut Draws::new(1, 0));
    player.next(&program).unwrap();
    player.next(&program).unwrap();
    let error = player.end_capture(&program).unwrap_err();
    assert_eq!(error.to_string(), "f.sql:2: \\gset expected one row, got 0");
    player.capture(&program, 0, &[b"x"], &[Some(b"1")]).unwrap();
    let error = player.capture(&program, 0, &[b"x"], &[Some(b"1")]);
    assert_eq!(
        error,
        Err(ScriptError::Rows {
            at: "f.sql:2".to_owned(),
            rows: 2
        })
    );
    player.retry(&program);
    player.next(&program).unwrap();
    player.next(&program).unwrap();
    let error = player.capture(&program, 0, &[b"?column?"], &[Some(b"1")]);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "f.sql:2: invalid variable name: \"?column?\"");
}

#[test]
fn pipelines_are_passed_on_and_kept_in_order() {
    let script = "\\startpipeline\nselect 1;\n\\syncpipeline\nselect 2;\n\\endpipeline\nselect 3;";
    let program = parse(QueryMode::Prepared, script).unwrap();
    let pipelined = program
        .statements()
        .iter()
        .map(|statement| statement.pipelined);
    assert_eq!(pipelined.collect::<Vec<_>>(), [true, true, false]);
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut Draws::new(1, 0));
    for action in [
        Action::StartPipeline,
        Action::Send(0),
        Action::SyncPipeline,
        Action::Send(1),
        Action::EndPipeline,
        Action::Send(2),
        Action::Done,
        Action::Done,
    ] {
        assert_eq!(player.next(&program), Ok(action));
    }
    for (script, error) in [
        (
            "\\startpipeline\n\\startpipeline",
            "f.sql:2: already in pipeline mode",
        ),
        ("select 1;\n\\endpipeline", "f.sql:2: not in pipeline mode"),
        ("\\syncpipeline", "f.sql:1: not in pipeline mode"),
        (
            "\\startpipeline\nselect 1;",
            "f.sql:2: end of script reached with pipeline open",
        ),
        (
            "\\startpipeline\n\\if 1\nselect 1 as x \\gset\n\\endif\n\\endpipeline",
            "f.sql:3: \\gset is not allowed in pipeline mode",
        ),
    ] {
        let program = parse(QueryMode::Extended, script).unwrap();
        assert_eq!(played(&program, 1).unwrap_err().to_string(), error);
    }
}

#[test]
fn lines_are_counted_however_long_the_script() {
    let mut text = String::new();
    for number in 0..4000 {
        text += &format!("select {number},\n  :a;\n");
    }
    text += "\\if 1 = 2\nselect 1;\n\\endif\n\\set x 1 / 0\n";
    let program = parse(QueryMode::Simple, &text).unwrap();
    let error = played(&program, 1).unwrap_err().to_string();
    assert!(error.contains(":8004"), "{error}");
}
