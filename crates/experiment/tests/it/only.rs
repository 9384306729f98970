//! `--only`.

use crate::{STUDY, names, read};
use deltabench_experiment::Experiment;

fn only(filters: &[&str]) -> Experiment {
    let filters: Vec<String> = filters.iter().map(|text| (*text).to_owned()).collect();
    read(STUDY).only(&filters).unwrap()
}

fn refused(filters: &[&str]) -> String {
    let filters: Vec<String> = filters.iter().map(|text| (*text).to_owned()).collect();
    read(STUDY).only(&filters).unwrap_err().to_string()
}

#[test]
fn nothing_asked_for_is_everything() {
    assert_eq!(only(&[]), read(STUDY));
}

#[test]
fn filters_of_one_kind_are_alternatives_and_different_kinds_must_all_hold() {
    let picked = only(&[
        "io_workers=4",
        "configuration=cx10b*",
        "configuration=cx10c*",
    ]);
    assert_eq!(
        names(&picked),
        [
            "postgres:14.0 cx10a_c8r32",
            "postgres:18 cx10b_c8r32 io_workers=4",
            "postgres:18 cx10c_c8r32 io_workers=4",
        ],
        "and the base stays"
    );
    let picked = only(&[
        "rows=200_000",
        "storage=gp3*",
        "memory=none",
        "repetition=2",
    ]);
    let parts = picked.parts();
    assert_eq!(parts.len(), 1);
    assert_eq!(
        (parts[0].rows, parts[0].repetition, parts[0].of_repetitions),
        (200_000, 2, 2)
    );
    // Where it stands in the study is the same whatever else was left out.
    assert!(read(STUDY).parts().contains(&parts[0]));
    assert_eq!(only(&["tables=8", "rows=*"]).parts().len(), 16);
    assert_eq!(only(&["clients=4"]).workloads.clients, [4]);
}

#[test]
fn servers_are_picked_by_label_name_or_target() {
    let last = |filter: &str| names(&only(&[filter])).pop().unwrap();
    assert_eq!(last("server=18 mine"), "18 mine");
    assert_eq!(last("server=postgres:18+mine"), "18 mine");
    assert_eq!(last("server=postgres:14"), "postgres:14 cx10a_c8r32");
    assert_eq!(
        last("server=*io_workers=2"),
        "postgres:18 cx10c_c8r32 io_workers=2"
    );
    assert_eq!(
        names(&only(&["server=postgres:14.0"])).len(),
        1,
        "the base alone"
    );
    assert_eq!(names(&only(&["server=postgres:18*"])).len(), 1 + 4 + 1);
}

#[test]
fn workloads_are_kept_as_a_wish() {
    let picked = only(&["point-query", "workload=update-*", "read-only-range=100"]);
    assert_eq!(
        picked.only_workloads,
        ["point-query", "update-*", "read-only-range=100"]
    );
    assert!(picked.wants_workload("point-query") && picked.wants_workload("update-index"));
    assert!(picked.wants_workload("read-only-range=100") && !picked.wants_workload("scan"));
    assert!(read(STUDY).wants_workload("scan"));
    let there = ["point-query", "update-index", "read-only-range=100"];
    picked.check_workloads(&there).unwrap();
    let typo = only(&["point-qurey"]).check_workloads(&there).unwrap_err();
    assert_eq!(typo.error, "`--only point-qurey` matches nothing");
    assert!(typo.detail.unwrap().contains("update-index"));
    assert_eq!(typo.hint.unwrap(), "did you mean point-query?");
}

#[test]
fn what_picks_nothing_is_refused_with_what_there_is() {
    let refusals: [(&[&str], &str); 11] = [
        (&["clients=2"], "detail: clients: 1, 4"),
        (&["rows=100"], "detail: rows: 200000, 50000000"),
        (&["storage=gp3-300"], "did you mean gp3-3000?"),
        (&["memory=4GB"], "detail: memory: 2GB, none"),
        (&["repetition=3"], "detail: repetition: 1, 2"),
        (
            &["server=postgres:17"],
            "detail: servers: postgres:14.0 cx10a_c8r32, postgres:14",
        ),
        (
            &["configuration=cx7"],
            "detail: configuration: cx10a_c8r32, cx10b_c8r32, cx10c_c8r32, steady",
        ),
        (
            &["io_workers=4", "server=18 mine"],
            "no server matches all of io_workers=4, server=18 mine",
        ),
        (&["client=4"], "did you mean --only clients=4?"),
        (&["io_worker=4"], "did you mean --only io_workers=4?"),
        (&[" "], "`--only` is empty"),
    ];
    for (filters, what) in refusals {
        let problem = refused(filters);
        assert!(problem.contains(what), "{filters:?}\n{problem}");
    }
}

#[test]
fn every_part_and_every_server_can_be_picked_alone_by_where_it_stands() {
    let study = read(STUDY);
    let filter = |(name, value): &(String, String)| format!("{name}={value}");
    for part in study.parts() {
        let mut filters: Vec<String> = part.coordinates.iter().map(filter).collect();
        filters.push(format!("repetition={}", part.repetition));
        let picked = study.only(&filters).unwrap();
        assert_eq!(picked.parts(), [part], "{filters:?}");
        assert_eq!(picked.servers(), study.servers());
    }
    for server in study.servers() {
        let filters: Vec<String> = server.coordinates.iter().map(filter).collect();
        let picked = study.only(&filters).unwrap();
        let others: Vec<_> = picked
            .servers()
            .iter()
            .filter(|other| !other.is_base)
            .collect();
        assert_eq!(
            others,
            if server.is_base { vec![] } else { vec![server] },
            "{filters:?}"
        );
    }
}

#[test]
fn repetitions_of_the_command_line_take_the_place_of_those_of_the_file() {
    let once = read(STUDY).repeated(1).unwrap().parts().len();
    let thrice = read(STUDY).repeated(3).unwrap();
    assert_eq!(thrice.measurement.repetitions, 3);
    let picked = thrice.only(&["repetition=3".to_owned()]).unwrap().parts();
    assert_eq!(picked.len(), once);
    assert!(
        picked
            .iter()
            .all(|part| (part.repetition, part.of_repetitions) == (3, 3))
    );
    // As in a file that says so: seeds follow from the numbers of parts.
    let written = STUDY.replace("repetitions = 2", "repetitions = 3");
    assert_ne!(written, STUDY);
    let again = read(STUDY).repeated(3).unwrap();
    assert_eq!(again.parts(), read(&written).parts());
    let refused = read(STUDY).repeated(2000).unwrap_err();
    assert!(
        refused
            .error
            .starts_with("2000 repetitions make 16000 parts"),
        "{refused}"
    );
}
