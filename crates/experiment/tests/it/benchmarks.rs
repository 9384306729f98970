//! `[pgbench]`, `[orders]` and `[insert]`.

use crate::{HEAD, refused, with};
use deltabench_experiment::kinds::{ScaleFactor, ScriptMix, ScriptName};
use deltabench_experiment::{Chosen, Experiment, Part};
use deltabench_model::work::insert::{InsertStep, Pacing};
use deltabench_model::work::orders::OrdersForm;
use deltabench_model::work::pgbench::{PartitionMethod, QueryMode};
use proptest::prelude::*;

const SERVER: &str = "servers = [{ target = \"postgres:18\", configuration = \"cx10a\" }]\n";

fn study(rest: &str) -> Experiment {
    with(&format!("{SERVER}{rest}"))
}

fn problem(rest: &str) -> String {
    refused(&format!("{HEAD}{SERVER}{rest}"))
}

fn script(name: &str, weight: u32) -> ScriptName {
    ScriptName {
        name: name.to_owned(),
        weight,
    }
}

fn coordinates(parts: &[Part]) -> Vec<String> {
    let shown = |part: &Part| {
        let values = part.coordinates.iter();
        let values: Vec<String> = values
            .map(|(axis, value)| format!("{axis} {value}"))
            .collect();
        values.join(", ")
    };
    parts.iter().map(shown).collect()
}

#[test]
fn a_file_without_either_has_neither() {
    let plain = study("");
    assert_eq!((plain.kinds.pgbench, plain.kinds.insert), (None, None));
    assert_eq!(plain.workloads.chosen, Chosen::Quick);
}

#[test]
fn order_entry_has_warehouses_as_an_axis_and_the_clients_of_workloads() {
    let plain = study("[orders]\n");
    let orders = plain.kinds.orders.as_ref().unwrap();
    assert_eq!(
        (orders.form, orders.mode),
        (OrdersForm::Statements, QueryMode::Prepared)
    );
    assert_eq!(plain.parts()[0].scale, ScaleFactor::Factor(4));
    assert_eq!(plain.workloads.chosen, Chosen::NONE);
    let study = study(
        "[workloads]\nclients = [1, 8]\n[orders]\nwarehouses = [2, \"half-memory\"]\nform = \"functions\"\n\
         transactions = [\"mix\"]\nmax_tries = 3\nforeign_keys = true\n",
    );
    let orders = study.kinds.orders.as_ref().unwrap();
    assert_eq!(study.workloads.clients, [1, 8]);
    assert_eq!(
        (orders.form, orders.max_tries),
        (OrdersForm::Functions, Some(3))
    );
    assert!(orders.foreign_keys);
    assert_eq!(
        coordinates(&study.parts()),
        ["warehouses 2", "warehouses half-memory"]
    );
    let picked = study.only(&["warehouses=2".to_owned()]).unwrap();
    assert_eq!(picked.parts().len(), 1);
}

#[test]
fn servers_that_work_without_a_break_have_a_configuration_and_no_visits() {
    let servers = "[[servers]]\ntarget = [\"postgres:17\", \"postgres:18\"]\n";
    let of = |configuration: &str, rest: &str| {
        let head = crate::HEAD.to_owned() + servers + configuration;
        let text = format!("{head}[pgbench]\n[measurement]\nsustained = \"5m\"\n{rest}");
        Experiment::read("s.toml", &text, None).map_err(|problem| problem.to_string())
    };
    let configuration = "configuration = \"cx10a\"\n";
    let study = of(configuration, "blocks = 6\n").unwrap();
    assert_eq!(study.measurement.sustained_seconds, Some(300));
    let refused = of("", "").unwrap_err();
    assert!(refused.contains("`configuration` is missing"), "{refused}");
    for key in ["visit_seconds = 1.0", "precision = \"1%\"", "waits = 10"] {
        let refused = of(configuration, &format!("{key}\n")).unwrap_err();
        assert!(
            refused.contains("and `sustained` exclude"),
            "{key}: {refused}"
        );
    }
    // A scale with one of them means it instead of the other.
    let scaled = of(
        configuration,
        "[scale.tiny]\nmeasurement = { visit_seconds = 0.4 }\n",
    );
    assert_eq!(scaled.unwrap().scales, ["tiny"]);
}

#[test]
fn the_published_procedure_has_its_own_times_and_excludes_what_it_has_its_own_of() {
    let of = |measurement: &str, rest: &str| {
        let servers = "[[servers]]\ntarget = [\"postgres:17\", \"postgres:18\"]\n";
        let head = crate::HEAD.to_owned() + servers + "configuration = \"cx10a\"\n";
        let text = format!("{head}[measurement]\n{measurement}{rest}");
        Experiment::read("s.toml", &text, None).map_err(|problem| problem.to_string())
    };
    let one = "residence = \"one\"\n";
    let found = of(one, "").unwrap().measurement.procedure.unwrap();
    assert_eq!((found.read_seconds, found.write_seconds), (300, 600));
    assert!(found.placebo && found.settle_seconds.is_none());
    assert!(found.primary_key && found.warmup_seconds.is_none());
    let keyless = format!("{one}primary_key = false\nwarmup = \"10m\"\n");
    let found = of(&keyless, "").unwrap().measurement.procedure.unwrap();
    assert_eq!(
        (found.primary_key, found.warmup_seconds),
        (false, Some(600))
    );
    let short = format!("{one}visit_seconds = 3\nwrite_seconds = 4\nplacebo = false\n");
    let found = of(&short, "").unwrap().measurement.procedure.unwrap();
    assert_eq!((found.read_seconds, found.write_seconds), (3, 4));
    assert!(!found.placebo);
    for rest in [
        "precision = \"1%\"\n",
        "slice_ms = 40\n",
        "sustained = \"5m\"\n",
        "[pgbench]\n",
        "[orders]\n",
        "[workloads]\nstate = \"aged\"\n",
        "[limits]\ncache = \"cold\"\n",
        "[workloads]\norder = \"drawn\"\n",
    ] {
        let refused = of(one, rest).unwrap_err();
        assert!(refused.contains("residence = \"one\""), "{rest}: {refused}");
    }
    for own in ["settle_seconds = 4\n", "primary_key = false\n"] {
        let refused = of(own, "").unwrap_err();
        assert!(refused.contains("published procedure only"), "{refused}");
    }
    let visits = of("write_seconds = 0.5\nwarmup = \"1m\"\n", "")
        .unwrap()
        .measurement;
    assert_eq!(
        (visits.write_seconds, visits.warmup.as_deref()),
        (Some(0.5), Some("1m"))
    );
    assert!(
        of("warmup = \"soon\"\n", "")
            .unwrap_err()
            .contains("warmup")
    );
    for key in ["write_seconds = 5", "probes = true"] {
        let refused = of(&format!("sustained = \"5m\"\n{key}\n"), "").unwrap_err();
        assert!(refused.contains("exclude each other"), "{refused}");
    }
    let rotated = "residence = \"rotated\"\n";
    let found = of(&format!("{rotated}write_seconds = 0.5\n"), "")
        .unwrap()
        .measurement;
    assert!(found.rotated && found.procedure.is_none());
    for rest in ["sustained = \"5m\"\n", "placebo = false\n", "[insert]\n"] {
        let refused = of(rotated, rest).unwrap_err();
        assert!(refused.contains("residence"), "{rest}: {refused}");
    }
    let at_once = "servers_at_once = 3\n";
    let found = of(at_once, "visit_seconds = 0.01\n").unwrap().measurement;
    assert_eq!((found.servers_at_once, found.rotated), (Some(3), false));
    for rest in [rotated, "sustained = \"5m\"\n", "[insert]\n"] {
        let refused = of(at_once, rest).unwrap_err();
        assert!(refused.contains("exclude each other"), "{rest}: {refused}");
    }
    // In turns there are several servers at a time.
    let turns = of(at_once, "[insert]\nturns = 2\n").unwrap();
    assert_eq!(turns.measurement.servers_at_once, Some(3));
    let refused = of(at_once, "[insert]\nturns = 0\n").unwrap_err();
    assert!(refused.contains("unless [insert] has `turns`"), "{refused}");
    let fraction = of(&format!("{one}visit_seconds = 0.5\n"), "").unwrap_err();
    assert!(fraction.contains("visit_seconds"), "{fraction}");
}

#[test]
fn order_entry_stands_in_place_of_other_workloads() {
    for other in [
        "[pgbench]\n",
        "[insert]\n",
        "[data]\nrows = 1000\n",
        "[workloads]\nonly = [\"scan\"]\n",
        "[workloads]\nstate = \"aged\"\n",
    ] {
        let refused = problem(&format!("[orders]\n{other}"));
        assert!(refused.contains("[orders]"), "{other}: {refused}");
    }
    assert!(problem("[orders]\nwarehouses = 0\n").contains("warehouses"));
    assert!(problem("[orders]\nwarehouses = \"big\"\n").contains("half-memory"));
    assert!(problem("[orders]\nwarehuses = 3\n").contains("warehouses"));
}

#[test]
fn pgbench_is_as_pgbench_is_when_nothing_is_said() {
    let pgbench = study("[pgbench]\n").kinds.pgbench.unwrap();
    let script = script("tpcb-like", 1);
    assert_eq!(pgbench.mixes.len(), 1);
    assert_eq!(pgbench.mixes[0].scripts, [script]);
    assert_eq!((pgbench.mode, pgbench.max_tries), (QueryMode::Simple, 1));
    assert_eq!(pgbench.tables.fillfactor, 100);
    assert!(!pgbench.writes && pgbench.latency_limit_ms.is_none());
    assert_eq!(
        study("[pgbench]\n").parts()[0].scale,
        ScaleFactor::Factor(1)
    );
}

#[test]
fn every_key_of_pgbench_is_told_as_written() {
    let pgbench = study(
        r#"
[pgbench]
scripts = ["select-only", "mine.sql", { name = "mix", scripts = ["se@3", "a/b@c.sql@1", "other.sql"] }]
mode = "prepared"
fillfactor = 90
foreign_keys = true
partitions = 4
partition_method = "hash"
unlogged = true
server_side = true
init = "more.sql"
variables = { n = "3", m = 4, x = 1.5 }
max_tries = 0
latency_limit = "1.5s"
writes = true
"#,
    )
    .kinds.pgbench
    .unwrap();
    let alone = |name: &str| ScriptMix {
        name: None,
        scripts: vec![script(name, 1)],
    };
    let mix = ScriptMix {
        name: Some("mix".to_owned()),
        scripts: vec![
            script("se", 3),
            script("a/b@c.sql", 1),
            script("other.sql", 1),
        ],
    };
    assert_eq!(
        pgbench.mixes,
        [alone("select-only"), alone("mine.sql"), mix]
    );
    assert!(pgbench.mixes[1].scripts[0].is_file() && !pgbench.mixes[0].scripts[0].is_file());
    assert_eq!(pgbench.mode, QueryMode::Prepared);
    assert_eq!(pgbench.tables.fillfactor, 90);
    assert_eq!(
        (pgbench.tables.partitions, pgbench.tables.partition_method),
        (4, PartitionMethod::Hash)
    );
    let tables = &pgbench.tables;
    assert!(tables.foreign_keys && tables.unlogged && tables.server_side && pgbench.writes);
    assert_eq!(pgbench.init.as_deref(), Some("more.sql"));
    let mut variables = pgbench.variables.clone();
    variables.sort();
    assert_eq!(
        variables,
        crate::pairs(&[("m", "4"), ("n", "3"), ("x", "1.5")])
    );
    assert_eq!(
        (pgbench.max_tries, pgbench.latency_limit_ms),
        (0, Some(1500.0))
    );
}

#[test]
fn pgbench_stands_alone_unless_other_workloads_are_named() {
    assert_eq!(study("[pgbench]\n").workloads.chosen, Chosen::NONE);
    let clients = study("[pgbench]\n[workloads]\nclients = [1, 4]\n").workloads;
    assert_eq!(
        (clients.chosen, clients.clients),
        (Chosen::NONE, vec![1, 4])
    );
    let only = study("[pgbench]\n[workloads]\nonly = [\"scan\"]\n[data]\nrows = 1000\n");
    assert_eq!(
        only.workloads.chosen,
        Chosen::Named(vec!["scan".to_owned()])
    );
    assert_eq!(only.parts()[0].rows, 1000);
    let quick = study("[pgbench]\n[workloads]\nset = \"quick\"\n").workloads;
    assert_eq!(quick.chosen, Chosen::Quick);
    let nothing = study("[pgbench]\n[workloads]\nonly = []\n").workloads;
    assert_eq!(nothing.chosen, Chosen::NONE);
}

#[test]
fn scales_and_rows_are_axes_where_the_file_has_them() {
    let parts = study(
        "[limits]\nmemory = [\"1GB\", \"none\"]\n\
         [pgbench]\nscale = [\"small\", \"half-memory\", 40, \"twice-memory\"]\n",
    )
    .parts();
    assert_eq!(
        coordinates(&parts)[..4],
        [
            "memory 1GB, scale 10",
            "memory 1GB, scale half-memory",
            "memory 1GB, scale 40",
            "memory 1GB, scale twice-memory",
        ]
    );
    assert_eq!(parts.len(), 8);
    let scales: Vec<ScaleFactor> = parts.iter().map(|part| part.scale).take(4).collect();
    assert_eq!(
        scales,
        [
            ScaleFactor::SMALL,
            ScaleFactor::HalfMemory,
            ScaleFactor::Factor(40),
            ScaleFactor::TwiceMemory
        ]
    );
    let parts = study("[insert]\nrows = [1000, 20_000]\n").parts();
    assert_eq!(coordinates(&parts), ["rows 1000", "rows 20000"]);
    assert_eq!(parts[1].rows, 20_000);
}

#[test]
fn scales_and_steps_can_be_picked() {
    let study = study("[pgbench]\nscale = [10, \"half-memory\"]\n");
    let only = |filter: &str| study.only(&[filter.to_owned()]);
    assert_eq!(only("scale=half*").unwrap().parts().len(), 1);
    assert_eq!(
        only("scale=1_0").unwrap().parts()[0].scale,
        ScaleFactor::SMALL
    );
    let idle = only("scale=11").unwrap_err().to_string();
    assert!(idle.contains("scale: 10, half-memory"), "{idle}");
    let picked = only("pgbench-select*").unwrap();
    assert!(picked.wants_workload("pgbench-select-only"));
    assert!(!picked.wants_workload("pgbench-tpcb-like"));
}

#[test]
fn workloads_beside_a_set_are_named_and_a_scale_may_name_all_instead() {
    let written = study(
        "[workloads]\nset = \"published\"\nalso = [\"delete\"]\n\
         [scale.tiny]\nworkloads.only = [\"scan\"]\n",
    );
    assert_eq!(written.workloads.chosen, Chosen::Published);
    assert_eq!(written.workloads.also, ["delete"]);
    let tiny = Experiment::read("x.toml", &written.text, Some("tiny")).unwrap();
    assert_eq!(
        tiny.workloads.chosen,
        Chosen::Named(vec!["scan".to_owned()])
    );
    assert!(tiny.workloads.also.is_empty());
    for (other, said) in [
        ("only = [\"scan\"]\n", "`also` and `only`"),
        ("order = \"published\"\n", "published order"),
    ] {
        let refused = problem(&format!("[workloads]\nalso = [\"delete\"]\n{other}"));
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn the_insert_benchmark_has_all_steps_when_nothing_is_said() {
    let written = study("[insert]\n");
    let insert = written.kinds.insert.as_ref().unwrap();
    assert_eq!(insert.steps, InsertStep::published(&[100, 500, 1000]));
    assert_eq!((insert.clients, insert.write_rows), (1, 1_000_000));
    assert_eq!((insert.query_seconds, insert.pacing), (120, Pacing::Spread));
    assert!(insert.placebo && insert.settle_seconds.is_none() && !insert.shared_table);
    assert_eq!(insert.turns, 0);
    assert_eq!(written.workloads.chosen, Chosen::NONE);
    assert_eq!(written.parts()[0].rows, 4_000_000);
}

#[test]
fn every_key_of_insert_is_told_as_written() {
    let written = study(
        "[insert]\nclients = 20\nrows = 400_000\nwrite_rows = 100_000\nrates = [50]\nseconds = 20\n\
         shared_table = true\npartitions = 8\npacing = \"burst\"\nsettle_seconds = 5\n\
         long_transaction = \"2m\"\nturns = 20\n\
         placebo = false\n[measurement]\nblocks = 3\n\
         [scale.tiny]\ninsert.steps = [\"l.i0\", \"l.x\", \"qp7\"]\n",
    );
    let insert = written.kinds.insert.clone().unwrap();
    assert_eq!(insert.steps, InsertStep::published(&[50]));
    assert_eq!(
        (insert.clients, written.workloads.clients.clone()),
        (20, vec![20])
    );
    assert_eq!((insert.write_rows, insert.query_seconds), (100_000, 20));
    assert_eq!(insert.pacing, Pacing::Burst);
    assert!(insert.shared_table && !insert.placebo);
    assert_eq!(insert.partitions, 8);
    assert_eq!((insert.settle_seconds, insert.turns), (Some(5), 20));
    assert_eq!(insert.long_transaction_seconds, Some(120));
    let tiny = Experiment::read("x.toml", &written.text, Some("tiny")).unwrap();
    let steps = [
        InsertStep::LoadRows,
        InsertStep::Index,
        InsertStep::Point(7),
    ];
    assert_eq!(
        tiny.kinds.insert.unwrap().steps,
        steps,
        "instead of the rates"
    );
}

/// What a file says, and what the problem must then say.
const MISTAKES: &[(&str, &str)] = &[
    ("[pgbench]\nscript = \"x\"\n", "did you mean `scripts`?"),
    (
        "[pgbench]\nscripts = []\n",
        "x.toml:6: [pgbench]: `scripts` is an empty list",
    ),
    (
        "[pgbench]\nscripts = [1]\n",
        "`scripts` must be a script, or a table { name, scripts }, not a whole",
    ),
    (
        "[pgbench]\nscripts = [\"a.sql\", \"a.sql\"]\n",
        "`scripts` has a.sql twice",
    ),
    (
        "[pgbench]\nscripts = [\"select-only@3\"]\n",
        "\"select-only@3\" has a weight, but is a single workload",
    ),
    (
        "[pgbench]\nscripts = { scripts = [\"a.sql\"] }\n",
        "key `name` is missing",
    ),
    (
        "[pgbench]\nscripts = { name = \"m\" }\n",
        "key `scripts` is missing",
    ),
    (
        "[pgbench]\nscripts = { name = \"m\", scripts = [\"a.sql@x\"] }\n",
        "\"a.sql@x\" is not a script and its weight",
    ),
    (
        "[pgbench]\nscripts = { name = \"m\", scripts = [\"a.sql@0\"] }\n",
        "all weights are 0",
    ),
    (
        "[pgbench]\nscripts = { nmae = \"m\" }\n",
        "did you mean `name`?",
    ),
    (
        "[pgbench]\nmode = [\"simple\"]\n",
        "`mode` must be a string, not a list",
    ),
    (
        "[pgbench]\nmode = \"prepare\"\n",
        "did you mean \"prepared\"?",
    ),
    (
        "[pgbench]\nscale = 0\n",
        "`scale` is 0, but must be 1 to 90000",
    ),
    ("[pgbench]\nscale = \"smal\"\n", "did you mean \"small\"?"),
    (
        "[pgbench]\nscale = [10, \"small\"]\n",
        "`scale` has 10 twice",
    ),
    (
        "[pgbench]\nscale = 1.5\n",
        "`scale` must be a whole number or a word",
    ),
    (
        "[pgbench]\npartition_method = \"hash\"\n",
        "has no effect without `partitions`",
    ),
    (
        "[pgbench]\nfillfactor = 5\n",
        "`fillfactor` is 5, but must be 10 to 100",
    ),
    ("[pgbench]\nmax_tries = 0\n", "latency_limit = \"1s\""),
    (
        "[pgbench]\nlatency_limit = \"50\"\n",
        "`latency_limit` is \"50\", which is not a time",
    ),
    (
        "[pgbench]\nvariables = { \"a b\" = 1 }\n",
        "\"a b\" is not the name of a variable",
    ),
    (
        "[pgbench]\nvariables = { n = [1] }\n",
        "`n` must be a string of one line that is not empty, or a number",
    ),
    (
        "[pgbench]\n[data]\nrows = 1000\n",
        "x.toml:6: the experiment: [data] has the sizes of sysbench's tables",
    ),
    (
        "[insert]\nclients = 0\n",
        "x.toml:6: [insert]: `clients` is 0, but must be 1 to 1000",
    ),
    ("[insert]\nrow = 1000\n", "did you mean `rows`?"),
    (
        "[insert]\nrows = 10\n",
        "[insert]: `rows` is 10, but must be 1000 to",
    ),
    ("[insert]\nsteps = [\"l.i9\"]\n", "did you mean \"l.i0\"?"),
    ("[insert]\nsteps = []\n", "`steps` is an empty list"),
    ("[insert]\nrates = []\n", "`rates` is an empty list"),
    (
        "[insert]\nrates = [1]\nsteps = [\"l.i0\"]\n",
        "`rates` and `steps` exclude each other",
    ),
    ("[insert]\npacing = \"bursts\"\n", "did you mean \"burst\"?"),
    (
        "[insert]\nturns = 1001\n",
        "`turns` is 1001, but must be 0 to 1000",
    ),
    ("[insert]\nturns = [0, 20]\n", "`turns`"),
    (
        "[insert]\nlong_transaction = \"1.5s\"\n",
        "which is not a time of whole seconds",
    ),
    (
        "[insert]\n[workloads]\nclients = 1\n",
        "[workloads] and [insert] exclude each other",
    ),
    (
        "[pgbench]\n[insert]\n",
        "[pgbench] and [insert] exclude each other",
    ),
    (
        "[insert]\n[data]\nrows = 1000\n",
        "`rows` and `write_rows` of [insert]",
    ),
    (
        "[insert]\n[measurement]\nvisit_seconds = 1\n",
        "x.toml:7: the experiment: `visit_seconds` of [measurement] and [insert] exclude each other",
    ),
    (
        "[insert]\n[measurement]\nprobes = true\n",
        "`probes` of [measurement] and [insert] exclude each other",
    ),
    (
        "[insert]\n[measurement]\nrate = 100\n",
        "background rates are `rates` of [insert]",
    ),
    (
        "[insert]\n[limits]\ncache = \"cold\"\n",
        "`cache` of [limits] and [insert] exclude",
    ),
];

#[test]
fn the_insert_benchmark_has_no_steady_servers_by_accident() {
    let file = |configuration: &str| {
        format!("{HEAD}[insert]\n[[servers]]\ntarget = \"postgres:18\"\n{configuration}")
    };
    let problem = refused(&file(""));
    assert!(
        problem.contains("x.toml:5: [[servers]] entry 1: `configuration` is missing"),
        "{problem}"
    );
    let steady = crate::read(&file("configuration = \"steady\"\n"));
    assert_eq!(steady.servers()[0].configuration, None);
}

#[test]
fn what_is_wrong_with_either_is_told_with_its_line() {
    for (rest, what) in MISTAKES {
        let problem = problem(rest);
        assert!(problem.starts_with("error: x.toml:"), "{problem}");
        assert!(problem.contains(what), "{rest}\nwanted {what}\n{problem}");
    }
}

proptest! {
    /// Lines of both in any order: a study, or a problem with a place.
    #[test]
    fn lines_of_mistakes_are_read_or_refused_with_a_place(
        picked in prop::collection::vec(0..MISTAKES.len(), 1..6),
        cut in 0..400usize,
    ) {
        let mut rest: String = picked.iter().map(|index| MISTAKES[*index].0).collect();
        rest.truncate(cut);
        let text = format!("{HEAD}{SERVER}{rest}");
        if let Err(problem) = Experiment::read("x.toml", &text, None) {
            prop_assert!(problem.error.starts_with("x.toml:"), "{}", problem);
            prop_assert!(!problem.error.contains('\n'), "{}", problem);
        }
    }
}
