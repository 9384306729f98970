//! Mixes of pgbench's scripts as workloads.

use deltabench_model::plan::{DataSize, Group, WorkloadSource};
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_workload::executable::Draws;
use deltabench_workload::pgbench::{Action, Player, builtin, builtin_names};
use deltabench_workload::{Definition, Library};

fn setup(mixes: Vec<PgbenchMix>, mode: QueryMode) -> PgbenchSetup {
    PgbenchSetup {
        tables: PgbenchTables {
            scale: 2,
            ..PgbenchTables::default()
        },
        mixes,
        mode,
        variables: Vec::new(),
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }
}

fn built_in(name: &str) -> PgbenchMix {
    PgbenchMix {
        name: format!("pgbench-{name}"),
        scripts: vec![builtin(name).unwrap()],
    }
}

fn own(file: &str, text: &str, weight: u32) -> PgbenchScript {
    PgbenchScript {
        source: WorkloadSource {
            file: file.to_owned(),
            text: text.to_owned(),
        },
        weight,
    }
}

const SIZE: DataSize = DataSize { tables: 0, rows: 0 };

#[test]
fn the_built_in_mixes_are_workloads_like_others() {
    let mixes = builtin_names().map(built_in);
    let shown = Library::builtin().unwrap().with_builtin_scripts().unwrap();
    for mix in &mixes {
        assert_eq!(
            shown.get(&mix.name).unwrap().text(),
            mix.scripts[0].source.text
        );
    }
    let setup = setup(mixes.to_vec(), QueryMode::Prepared);
    let library = Library::builtin()
        .unwrap()
        .with_pgbench(Some(&setup))
        .unwrap();
    for (name, group, statements) in [
        ("pgbench-tpcb-like", Group::Write, 7),
        ("pgbench-simple-update", Group::Write, 5),
        ("pgbench-select-only", Group::Point, 1),
    ] {
        let definition = library.get(name).unwrap();
        assert!(definition.is_script());
        assert_eq!(definition.group, group);
        assert_eq!(definition.writes, group == Group::Write);
        assert_eq!(definition.statements_per_operation(), statements);
        assert_eq!(definition.tables(), Some(&[][..]));
        assert_eq!(definition.table_names(&SIZE), Vec::<String>::new());
        let rate = definition.published_rate(&SIZE, 4);
        assert_eq!(
            (rate.per_operation, rate.unit.as_str()),
            (1.0, "transactions/s")
        );
        let executable = definition.compile(&SIZE).unwrap();
        let program = executable.program.as_ref().unwrap();
        assert_eq!(
            program.statements().len(),
            usize::try_from(statements).unwrap()
        );
        assert!((executable.statements_per_operation() - f64::from(statements)).abs() < 1e-9);
    }
    assert!(!library.get("point-query").unwrap().is_script());
    let twice = library.with_pgbench(Some(&setup)).unwrap_err().to_string();
    assert!(
        twice.contains("a workload `pgbench-tpcb-like` already exists"),
        "{twice}"
    );
}

#[test]
fn a_sample_shows_statements_with_their_values() {
    let setup = setup(vec![], QueryMode::Prepared);
    let definition = Definition::of_pgbench(&setup, &built_in("select-only")).unwrap();
    let samples = definition.sample(&SIZE, 7).unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].script.as_deref(), Some("<builtin: select only>"));
    let sql = &samples[0].statements[0];
    let (before, key) = sql.trim_end_matches(';').rsplit_once(' ').unwrap();
    assert_eq!(before, "SELECT abalance FROM pgbench_accounts WHERE aid =");
    assert!(
        (1..=200_000).contains(&key.parse::<u32>().unwrap()),
        "{key}"
    );
    assert_eq!(
        definition.text(),
        builtin("select-only").unwrap().source.text
    );
    assert_eq!(samples, definition.sample(&SIZE, 7).unwrap());
}

#[test]
fn a_mix_writes_if_a_script_does_or_the_user_says_so() {
    let mix = |texts: &[&str]| PgbenchMix {
        name: "mine".to_owned(),
        scripts: texts.iter().map(|text| own("my.sql", text, 1)).collect(),
    };
    let definition = |mix: &PgbenchMix, writes: bool| {
        let setup = PgbenchSetup {
            writes,
            ..setup(vec![], QueryMode::Simple)
        };
        Definition::of_pgbench(&setup, mix).unwrap()
    };
    let reads = mix(&["select f(1);"]);
    assert!(!definition(&reads, false).writes);
    assert!(definition(&reads, true).writes);
    let both = mix(&["select 1;", "begin;\nselect 1 for update;\nend;"]);
    let both = definition(&both, false);
    assert!(both.writes);
    assert_eq!(both.statements_per_operation(), 2);
    assert!(
        both.text().contains("-- my.sql @1\nselect 1;"),
        "{}",
        both.text()
    );
}

#[test]
fn keys_of_the_built_in_scripts_cover_the_tables() {
    let setup = setup(vec![], QueryMode::Simple);
    let definition = Definition::of_pgbench(&setup, &built_in("tpcb-like")).unwrap();
    let executable = definition.compile(&SIZE).unwrap();
    let program = executable.program.as_ref().unwrap();
    let (mut player, mut draws) = (Player::new(program, 0), Draws::new(1, 0));
    let mut branches = [0; 2];
    let mut tellers = [0; 20];
    let mut deltas = 0;
    for _ in 0..20_000 {
        player.begin(program, &mut draws);
        let mut last = String::new();
        while let Action::Send(_) = player.next(program).unwrap() {
            let mut sql = Vec::new();
            player.write_sql(program, &mut sql);
            let sql = String::from_utf8(sql).unwrap();
            if sql.starts_with("INSERT") {
                last = sql;
            }
        }
        let values = last.split_once("VALUES (").unwrap().1;
        let values: Vec<i64> = values
            .split(", ")
            .map_while(|value| value.parse().ok())
            .collect();
        let [teller, branch, account, delta] = values[..] else {
            panic!("{last}");
        };
        tellers[usize::try_from(teller - 1).unwrap()] += 1;
        branches[usize::try_from(branch - 1).unwrap()] += 1;
        assert!((1..=200_000).contains(&account) && (-5000..=5000).contains(&delta));
        deltas += delta;
    }
    // Expected 1000 and 10,000; standard deviations 31 and 71; of the sum of deltas 408,000.
    assert!(
        tellers.iter().all(|count| (860..1140).contains(count)),
        "{tellers:?}"
    );
    assert!(
        branches.iter().all(|count| (9700..10_300).contains(count)),
        "{branches:?}"
    );
    assert!(deltas.abs() < 1_900_000, "{deltas}");
}

#[test]
fn the_guide_shows_a_script_that_reads_and_the_problem_as_it_is() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/pgbench.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let scripts = guide.split_once("\n## Scripts\n").unwrap().1;
    let quoted = |language: &str| {
        let (_, rest) = scripts.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let parse = |text: &str| {
        let mix = PgbenchMix {
            name: "mine".to_owned(),
            scripts: vec![own("my.sql", text, 1)],
        };
        Definition::of_pgbench(&setup(vec![], QueryMode::Prepared), &mix)
    };
    let script = quoted("sql");
    let definition = parse(&script).unwrap();
    assert!(definition.writes);
    let sample = definition.sample(&SIZE, 1).unwrap();
    assert!(sample[0].statements[0].starts_with("SELECT abalance, bid"));
    let wrong = "-- my.sql\n\\set aid rnadom(1, 100000 * :scale)\n";
    let problem = parse(wrong).unwrap_err().to_string();
    assert_eq!(quoted("text").trim_end(), problem);
}

#[test]
fn names_that_clash_are_refused_with_what_can_be_done() {
    let mix = |name: &str, file: &str| PgbenchMix {
        name: name.to_owned(),
        scripts: vec![own(file, "select 1;", 1)],
    };
    let refused = |mixes: Vec<PgbenchMix>| {
        let library = Library::builtin().unwrap();
        library
            .with_pgbench(Some(&setup(mixes, QueryMode::Simple)))
            .unwrap_err()
    };
    let other = refused(vec![mix("my", "My.sql"), mix("my", "my.sql")]);
    assert_eq!(other.error, "My.sql and my.sql are both called `my`");
    assert!(other.hint.unwrap().contains("leave --each out"));
    let builtin = refused(vec![mix("scan", "scan.sql")]);
    assert_eq!(builtin.hint.as_deref(), Some("rename the file"));
    let twice = refused(vec![mix("my", "my.sql"), mix("my", "my.sql")]);
    assert_eq!(twice.error, "my.sql is named twice");
}
