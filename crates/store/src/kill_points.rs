//! Moments of moving a run at which tests kill the process. In the program itself they are nothing.

/// Marks a moment.
#[cfg(not(test))]
pub(crate) fn reached(_moment: &str) {}

/// Kills this process if a test asked for it at this moment.
#[cfg(test)]
pub(crate) fn reached(moment: &str) {
    tests::die_if_asked(moment);
}

#[cfg(test)]
mod tests {
    use crate::{FILE_NAME, RunState, Store};
    use deltabench_model::counter::{Mark, Sample};
    use deltabench_model::fact::Settings;
    use deltabench_model::plan::{CellId, ServerId};
    use deltabench_model::record::Record;
    use deltabench_model::slice::{ErrorCount, Slice};
    use deltabench_testkit::small_run;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    const AT: &str = "DELTABENCH_TEST_KILL_AT";
    const LAB: &str = "DELTABENCH_TEST_KILL_LAB";
    const WHAT: &str = "DELTABENCH_TEST_KILL_WHAT";

    pub fn die_if_asked(moment: &str) {
        if std::env::var(AT).is_ok_and(|at| at == moment) {
            let own = std::process::id().to_string();
            Command::new("kill").args(["-9", &own]).status().unwrap();
            unreachable!("killed");
        }
    }

    /// A finished run with bulk of several kinds.
    fn measured(store: &mut Store, run: &str) {
        let plan = small_run::plan();
        store.create_run(run, &plan, RunState::Running, 5).unwrap();
        store.begin_visit(run, CellId(0), 0).unwrap();
        for round in 0..12 {
            let slice = Slice {
                round,
                latency_histogram: run.bytes().cycle().take(500).collect(),
                errors: vec![ErrorCount {
                    sqlstate: "40001".to_owned(),
                    count: 1,
                    first_message: format!("{run} {round}"),
                }],
                ..small_run::bare_slice()
            };
            store.append(run, &slice).unwrap();
        }
        store.commit_visit(run, CellId(0), 0).unwrap();
        let (sample, mark, record) = small_run::beside_slices(run);
        store.add_samples(run, &[sample]).unwrap();
        store.add_marks(run, &[mark]).unwrap();
        store.add_record(run, &record).unwrap();
        let about = (Some(ServerId(1)), None);
        store.add_fact(run, about, &Settings(Vec::new())).unwrap();
        store.finish_run(run, RunState::Finished, 50).unwrap();
    }

    type Seen = (Vec<Slice>, Vec<Sample>, Vec<Mark>, Vec<Record>, usize);

    fn seen(store: &Store, run: &str) -> Seen {
        (
            store.slices(run).unwrap(),
            store.samples(run).unwrap(),
            store.marks(run).unwrap(),
            store.records(run).unwrap(),
            store.facts::<Settings>(run).unwrap().len(),
        )
    }

    /// Moves a run, in a process of its own that is killed.
    #[test]
    #[ignore = "started by the test below"]
    fn victim() {
        let (Some(lab), Ok(what)) = (std::env::var_os(LAB), std::env::var(WHAT)) else {
            return;
        };
        let mut store = Store::open(Path::new(&lab)).unwrap();
        match what.as_str() {
            "archive" => {
                store.archive("one", 99).unwrap();
                store.give_back().unwrap();
            }
            _ => drop(store.restore("one", 99).unwrap()),
        }
    }

    fn killed(lab: &Path, what: &str, at: &str) {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill_points::tests::victim", "--ignored"])
            .envs([(WHAT, what), (AT, at)])
            .env(LAB, lab)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9), "{what} never came to `{at}`");
    }

    const ARCHIVING: [&str; 18] = [
        "noted",
        "begun",
        "written",
        "durable",
        "named",
        "read back",
        "recorded",
        "slice_error",
        "slice",
        "sample",
        "visit_counters",
        "mark",
        "record",
        "instruction_profile",
        "fact",
        "compared",
        "committed",
        "shortened",
    ];

    /// Those of a restore: nothing is written before its transaction, and nothing after it.
    fn restoring() -> impl Iterator<Item = &'static str> {
        let is_own = |at: &&str| {
            !["noted", "begun", "written", "durable", "named", "shortened"].contains(at)
        };
        ARCHIVING.into_iter().filter(is_own)
    }

    #[test]
    fn killed_at_each_step_nothing_is_lost_and_the_next_one_ends() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        measured(&mut store, "one");
        measured(&mut store, "two");
        let before = (seen(&store, "one"), seen(&store, "two"));
        drop(store);
        // Another lab with the same directory of sealed files is writing there.
        let archive = lab.path().join("archive");
        std::fs::create_dir(&archive).unwrap();
        let foreign = archive.join(".sealing-of-another-lab");
        std::fs::write(&foreign, "half").unwrap();
        let drafts = || {
            let all = std::fs::read_dir(&archive).unwrap();
            let names = all.map(|one| one.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.starts_with('.')).count()
        };
        for at in ARCHIVING {
            killed(lab.path(), "archive", at);
            let mut store = Store::open(lab.path()).unwrap();
            assert_eq!((seen(&store, "one"), seen(&store, "two")), before, "{at}");
            let is_moved = ["committed", "shortened"].contains(&at);
            assert_eq!(store.archived("one").unwrap().is_some(), is_moved, "{at}");
            if !is_moved {
                store.archive("one", 99).unwrap();
            }
            assert_eq!((drafts(), foreign.is_file()), (1, true), "{at}");
            assert_eq!(seen(&store, "one"), before.0, "{at}");
            store.restore("one", 99).unwrap();
        }
        for at in restoring() {
            Store::open(lab.path()).unwrap().archive("one", 99).unwrap();
            killed(lab.path(), "restore", at);
            let mut store = Store::open(lab.path()).unwrap();
            assert_eq!((seen(&store, "one"), seen(&store, "two")), before, "{at}");
            let is_back = at == "committed";
            assert_eq!(store.archived("one").unwrap().is_none(), is_back, "{at}");
            if !is_back {
                store.restore("one", 99).unwrap();
            }
            assert_eq!(seen(&store, "one"), before.0, "{at}");
        }
        let check: String = rusqlite::Connection::open(lab.path().join(FILE_NAME))
            .unwrap()
            .query_row("pragma integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
    }

    #[test]
    fn a_run_that_moves_while_it_is_read_is_read_again() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        measured(&mut store, "one");
        measured(&mut store, "two");
        let before = seen(&store, "one");
        let id = store.run_id("one").unwrap();
        store.archive("one", 99).unwrap();
        // Its numbers go to another run, so that it gets new ones.
        measured(&mut store, "three");
        let mut other = Store::open(lab.path()).unwrap();
        let mut looks = 0;
        let count = |from: &rusqlite::Connection| -> i64 {
            {
                from.query_row("select count(*) from slice where run = ?1", [id], |row| {
                    row.get(0)
                })
            }
            .unwrap()
        };
        let found = store.with_bulk(id, |from, _| {
            looks += 1;
            if looks == 1 {
                other.restore("one", 99).unwrap();
            }
            // Back where it was, which is another move.
            if looks == 2 {
                other.archive("one", 100).unwrap();
            }
            Ok(count(from))
        });
        assert_eq!((found.unwrap(), looks), (12, 3));
        assert_eq!(seen(&store, "one"), before);
    }
}
