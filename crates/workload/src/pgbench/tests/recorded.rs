//! What is sent, against what pgbench itself was seen to send.

use super::*;

/// What the recorded runs of pgbench were given.
const GIVEN: [(&str, &str); 6] = [
    ("a", "42"),
    ("a_b1", "x"),
    ("d", "1.50"),
    ("t", "true"),
    ("f", "no"),
    ("n", "null"),
];

/// Columns and rows by which a server answers the captured statements of the recorded scripts: for each part,
/// columns as `name=value`.
fn answer(sql: &str) -> Vec<Vec<(&'static str, Option<&'static str>)>> {
    let x = |value| vec![vec![("x", value)]];
    match sql.trim_end() {
        "select 1 as x ; select 2 as y" => vec![vec![("x", Some("1"))], vec![("y", Some("2"))]],
        "select 7 as x" | "select 7 as x;" => x(Some("7")),
        "select 1 as x, 2 as y" => vec![vec![("x", Some("1")), ("y", Some("2"))]],
        "select 1 where false" => vec![],
        "select null::int as x" => x(None),
        "select 1 as x" => x(Some("1")),
        "select 'on' as x" => x(Some("on")),
        "select ' 12 ' as x" => x(Some(" 12 ")),
        other => panic!("no answer to `{other}`"),
    }
}

/// Statements of a transaction, with answers; in the extended mode with `$1 …`.
fn sent_all(program: &Program) -> Vec<String> {
    let mut player = Player::new(program, 0);
    player.begin(program, &mut Draws::new(1, 0));
    let mut all = Vec::new();
    loop {
        match player.next(program).unwrap() {
            Action::Send(number) => {
                let statement = &program.statements()[number];
                if statement.capture.is_some() {
                    for (part, row) in (0..).zip(answer(&statement.sql)) {
                        let columns: Vec<&[u8]> =
                            row.iter().map(|(name, _)| name.as_bytes()).collect();
                        let values: Vec<_> = row
                            .iter()
                            .map(|(_, value)| value.map(str::as_bytes))
                            .collect();
                        player.capture(program, part, &columns, &values).unwrap();
                    }
                    player.end_capture(program).unwrap();
                }
                all.push(match program.mode {
                    QueryMode::Simple => sent(&player, program),
                    _ => statement.sql.clone(),
                });
            }
            Action::Done => return all,
            _ => {}
        }
    }
}

#[test]
fn what_is_sent_is_what_pgbench_sends() {
    let recorded = include_str!("../../../tests/data/pgbench/18.6/scripts.txt");
    let plain = |text: &str| {
        text.replace('␊', "\n")
            .replace('␍', "\r")
            .replace('␉', "\t")
    };
    let (mut compared, mut refused) = (0, 0);
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (mode, script) = (fields.next().unwrap(), plain(fields.next().unwrap()));
        let expected: Vec<String> = fields.map(plain).collect();
        let gave_up = mode.ends_with('!');
        let mode = match mode.trim_end_matches('!') {
            "simple" => QueryMode::Simple,
            _ => QueryMode::Extended,
        };
        match Program::parse(&setup(mode, &GIVEN), &mix(&[(&script, 1)])) {
            // What pgbench does not get through may be refused before; it sends a null for a variable that
            // nothing sets.
            Err(problem) if gave_up || problem.error.contains("undefined variable") => refused += 1,
            Err(problem) => panic!("{script}: {problem}"),
            Ok(program) => {
                // pgbench's log leaves a newline at the end out.
                let ours = sent_all(&program).into_iter();
                let mut ours: Vec<String> = ours
                    .map(|sql| sql.trim_end_matches('\n').to_owned())
                    .collect();
                if gave_up {
                    ours.truncate(expected.len());
                }
                assert_eq!(ours, expected, "{script}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100 && refused > 5, "{compared} {refused}");
}
