//! `[scale.NAME]` laid over the file.

use crate::{HEAD, STUDY, names, refused};
use deltabench_experiment::{Chosen, Experiment};

fn at(text: &str, scale: &str) -> Experiment {
    Experiment::read("x.toml", text, Some(scale)).unwrap()
}

#[test]
fn tables_merge_key_by_key_and_everything_else_replaces() {
    let tiny = at(STUDY, "tiny");
    assert_eq!(tiny.scale.as_deref(), Some("tiny"));
    assert_eq!(tiny.scales, ["tiny", "small"]);
    let parts = tiny.parts();
    assert_eq!(parts.len(), 2, "one size, repeated");
    assert_eq!((parts[0].rows, parts[0].tables), (20_000, 8));
    assert_eq!((&parts[0].memory, &parts[0].storage), (&None, &None));
    assert_eq!(tiny.workloads.clients, [1]);
    assert_eq!(tiny.workloads.files, ["my-workload.toml"]);
    assert_eq!(tiny.workloads.variants.len(), 2);
    assert_eq!(tiny.measurement.blocks, Some(6));
    assert_eq!(tiny.measurement.seed, Some(7));
    assert!(tiny.limits_optional);
    let small = at(STUDY, "small");
    assert_eq!(small.measurement.repetitions, 1);
    assert_eq!(small.parts().len(), 8);
}

#[test]
fn of_two_keys_that_exclude_each_other_the_scale_s_is_meant() {
    let tiny = at(STUDY, "tiny");
    assert_eq!(
        tiny.workloads.chosen,
        Chosen::Named(vec!["point-query".into()])
    );
    assert!(tiny.measurement.fixed && tiny.measurement.precision.is_none());
    let text = format!(
        "{HEAD}servers = [{{ target = \"postgres:18\" }}]\n\
         workloads.only = [\"scan\"]\nmeasurement.fixed = true\n\
         [scale.paper]\nworkloads.set = \"published\"\nmeasurement.precision = \"1%\"\n\
         [scale.same.measurement]\nfixed = false\n"
    );
    let paper = at(&text, "paper");
    assert_eq!(paper.workloads.chosen, Chosen::Published);
    assert_eq!(paper.measurement.precision.as_deref(), Some("1%"));
    assert!(!paper.measurement.fixed);
    assert!(!at(&text, "same").measurement.fixed);
}

#[test]
fn servers_and_base_can_be_others_at_a_scale() {
    let text = format!(
        "{HEAD}base = \"postgres:14.0\"\n[[servers]]\ntarget = [\"postgres:14.0\", \"postgres:15\"]\n\
         [scale.tiny]\nbase = \"postgres:17\"\n[[scale.tiny.servers]]\n\
         target = [\"postgres:18\", \"postgres:17\"]\n"
    );
    let tiny = at(&text, "tiny");
    assert_eq!(names(&tiny), ["postgres:18", "postgres:17"]);
    let base: Vec<bool> = tiny.servers().iter().map(|server| server.is_base).collect();
    assert_eq!(base, [false, true]);
    let forgotten = refused(&text.replace("base = \"postgres:17\"\n", ""));
    assert!(forgotten.contains("`base` \"postgres:14.0\" is none of the servers"));
    assert!(forgotten.contains("they are postgres:18, postgres:17\n"));
    assert!(forgotten.contains("read at scale `tiny`"), "{forgotten}");
}

#[test]
fn an_axis_keeps_its_place_when_a_scale_replaces_its_values() {
    let text = format!(
        "{HEAD}servers = [{{ target = \"postgres:18\" }}]\n[limits]\nstorage = \"as-is\"\n\
         memory = [\"1GB\", \"2GB\"]\n[scale.a.limits]\nstorage = [\"gp3-3000\", \"as-is\"]\n"
    );
    let parts = at(&text, "a").parts();
    let axes: Vec<&str> = parts[1]
        .coordinates
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(axes, ["storage", "memory"]);
}

#[test]
fn a_scale_that_is_not_there_is_refused_with_those_that_are() {
    let problem = Experiment::read("x.toml", STUDY, Some("tyny")).unwrap_err();
    assert_eq!(problem.error, "x.toml has no scale `tyny`");
    assert_eq!(problem.detail.unwrap(), "its scales are small, tiny");
    assert_eq!(problem.hint.unwrap(), "did you mean --scale tiny?");
    let text = format!("{HEAD}servers = [{{ target = \"postgres:18\" }}]\n");
    let problem = Experiment::read("x.toml", &text, Some("paper")).unwrap_err();
    assert!(problem.detail.unwrap().contains("it has no scales"));
    assert!(problem.hint.unwrap().contains("leave --scale out"));
}

#[test]
fn every_scale_is_checked_whichever_is_asked_for() {
    let wrong = STUDY.replace("repetitions = 1\n", "repetitions = 0\n");
    let problem = refused(&wrong);
    let place = wrong
        .lines()
        .position(|line| line == "repetitions = 0")
        .unwrap()
        + 1;
    assert!(problem.contains(&format!(
        "x.toml:{place}: [measurement]: `repetitions` is 0"
    )));
    assert!(problem.contains("read at scale `small`"), "{problem}");
}

#[test]
fn scales_are_for_sizes_and_not_for_what_the_file_is() {
    for (from, to, what) in [
        (
            "[scale.tiny]\n",
            "[scale.tiny]\nname = \"y\"\n",
            "`name` is the same at every scale",
        ),
        (
            "[scale.tiny]\n",
            "[scale.tiny]\nscale.x.data.rows = 200\n",
            "`scale` is the same at every",
        ),
        (
            "[scale.tiny]\n",
            "[scale.tiny]\nmesurement = {}\n",
            "unknown key `mesurement` in [scale.tiny]",
        ),
        (
            "[scale.tiny]\n",
            "[scale.tiny]\nmesurement = {}\n",
            "did you mean `measurement`?",
        ),
        ("[scale.tiny]\n", "[scale.\"a b\"]\n", "bad name \"a b\""),
        (
            "data.rows = 20_000\n",
            "data.row = 20_000\n",
            "unknown key `row` in [data]",
        ),
        (
            "data.rows = 20_000\n",
            "data = 20_000\n",
            "`data` must be a table, not a whole number",
        ),
    ] {
        let problem = refused(&STUDY.replacen(from, to, 1));
        assert!(problem.contains(what), "{to}\n{problem}");
    }
    assert!(refused(&format!("{HEAD}scale = 1\n")).contains("`scale` must be a table"));
    assert!(refused(&format!("{HEAD}[scale]\nx = 1\n")).contains("`x` must be a table"));
}
