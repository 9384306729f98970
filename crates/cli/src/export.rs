//! `deltabench export`: runs as plain tables for notebooks.

mod rows;
pub mod schema;

use crate::arguments::results::{ExportArguments, ExportFormat};
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::replay::only_reported;
use crate::store::{open, store_problem};
use deltabench_lab::{PastRuns, analyse_among};
use deltabench_model::problem::Problem;
use deltabench_store::export::{Export, ExportError};
use rows::{Rows, general};
use std::io::Read;
use std::path::Path;

/// Writes the tables.
pub fn export(arguments: &ExportArguments, config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let mut runs: Vec<String> = Vec::new();
    for wanted in &arguments.runs {
        let run = store.find(wanted).map_err(Failure::Refused)?;
        // A run that is named twice would be counted twice.
        if !runs.contains(&run) {
            let plan = store.plan(&run).map_err(store_problem)?;
            only_reported(&run, &plan, "`export`")?;
            runs.push(run);
        }
    }
    check(&arguments.out, arguments.format, arguments.force).map_err(Failure::Refused)?;
    let tables = schema::tables();
    let mut export = match arguments.format {
        ExportFormat::Sqlite => Export::sqlite(&arguments.out, &tables, &schema::VIEWS),
        ExportFormat::CsvDir => Export::csv_directory(&arguments.out, &tables),
    }
    .map_err(unwritten)?;
    general(&mut export).map_err(unwritten)?;
    // What another hour would say comes from earlier runs: they are read once for all that are exported.
    let past = PastRuns::read(&store).map_err(Failure::Failed)?;
    for run in &runs {
        let plan = store.plan(run).map_err(store_problem)?;
        let analysed = analyse_among(run, &plan, &store, &past).map_err(Failure::Failed)?;
        let rows = Rows {
            run,
            plan: &analysed.plan,
            analysed: &analysed,
        };
        rows.write(&mut export)?;
    }
    export.finish().map_err(unwritten)?;
    say(&format!("wrote {}", arguments.out.display()));
    Ok(0)
}

/// An export that could not be written, as exit code 5.
fn unwritten(error: ExportError) -> Failure {
    Failure::Failed(
        Problem::new(error.to_string())
            .hint("check the path after --out; the files there are unchanged"),
    )
}

/// Refuses to write over what is there, unless it was said to; over a store never.
fn check(out: &Path, format: ExportFormat, force: bool) -> Result<(), Problem> {
    let refuse = |why: &str, hint: &str| {
        Err(Problem::new(format!("cannot export to {}", out.display()))
            .detail(why)
            .hint(hint))
    };
    let other = "choose another path with --out PATH";
    if out.file_name().is_none() {
        return refuse("it does not end in a name", other);
    }
    let directory = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) {
        return refuse("its directory does not exist", other);
    }
    let entries = std::fs::read_dir(out).map(|mut entries| entries.next().is_some());
    match (format, entries) {
        (ExportFormat::Sqlite, Ok(_)) => refuse("it is a directory", other),
        (ExportFormat::CsvDir, Ok(false)) => Ok(()),
        (ExportFormat::CsvDir, Ok(true)) if force => Ok(()),
        (ExportFormat::CsvDir, Ok(true)) => refuse(
            "it is not empty",
            "--force replaces the tables in it and leaves the rest",
        ),
        (_, Err(_)) if !out.exists() => Ok(()),
        (_, Err(_)) if is_store(out) => refuse("it is a store of deltabench", other),
        (ExportFormat::CsvDir, Err(_)) => refuse("it is not a directory", other),
        (ExportFormat::Sqlite, Err(_)) if force => Ok(()),
        (ExportFormat::Sqlite, Err(_)) => refuse("it exists", "--force overwrites it"),
    }
}

/// Whether a file is a lab's store: an SQLite file with its application id, at byte 68 of the header.
fn is_store(path: &Path) -> bool {
    let mut header = [0_u8; 72];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.ends_with(b"DLTB")
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::config::Config;
    use deltabench_acquire::Sources;
    use deltabench_compare::comparison::MetricComparison;
    use deltabench_model::counter::{Mark, Sample, VisitCounters};
    use deltabench_model::fact::MachineName;
    use deltabench_model::invalidation::Invalidation;
    use deltabench_model::plan::{CellId, ServerId};
    use deltabench_store::{RunState, Store};
    use deltabench_testkit::small_run::{keep, plan, slices};
    use rusqlite::Connection;

    /// A lab with a run of every kind of record.
    fn lab(lab: &Path) -> Config {
        let mut store = Store::open(lab).unwrap();
        store
            .create_run("one", &plan(), RunState::Running, 5)
            .unwrap();
        let slices = slices([0.9, 1.0, 1.0]);
        for block in 0..8 {
            for cell in 0..3 {
                store.begin_visit("one", CellId(cell), block).unwrap();
                for slice in slices
                    .iter()
                    .filter(|one| (one.cell, one.block) == (CellId(cell), block))
                {
                    store.append("one", slice).unwrap();
                }
                for server in 0..3 {
                    let wal = if server == 2 { 3000.0 } else { 2000.0 };
                    let counters = VisitCounters {
                        server: ServerId(server),
                        cell: CellId(cell),
                        block,
                        operations: 4000,
                        values: [
                            ("wal_bytes".to_owned(), wal),
                            ("database_bytes".to_owned(), 1e6),
                        ]
                        .into(),
                    };
                    store.add_counters("one", &counters).unwrap();
                }
                store.commit_visit("one", CellId(cell), block).unwrap();
            }
        }
        let values = [
            ("cpu_user".to_owned(), 12.5),
            ("server_cpu@2".to_owned(), 90.0),
        ];
        let sample = Sample {
            at_ns: 7,
            over_ns: 1_000_000_000,
            values: values.into(),
        };
        store.add_samples("one", &[sample]).unwrap();
        let mark = Mark {
            at_ns: 8,
            server: Some(ServerId(2)),
            kind: "checkpoint".to_owned(),
            text: "wrote 42 buffers".to_owned(),
        };
        store.add_marks("one", &[mark]).unwrap();
        let withdrawal = Invalidation {
            cell: Some(CellId(2)),
            reason: "a backup ran".to_owned(),
            at_unix_ms: 9,
        };
        store.invalidate("one", &withdrawal).unwrap();
        Config {
            lab: lab.to_owned(),
            cache: lab.to_owned(),
            sources: Sources::default(),
        }
    }

    fn arguments(out: &Path, format: ExportFormat) -> ExportArguments {
        ExportArguments {
            runs: vec!["last".to_owned(), "one".to_owned()],
            format,
            out: out.to_owned(),
            force: false,
        }
    }

    fn number(raw: &Connection, sql: &str) -> f64 {
        raw.query_row(&format!("select 1.0 * ({sql})"), [], |row| row.get(0))
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    #[test]
    fn every_table_has_the_records_of_the_run_once() {
        let place = tempfile::tempdir().unwrap();
        let config = lab(&place.path().join("lab"));
        let out = place.path().join("run.sqlite");
        export(&arguments(&out, ExportFormat::Sqlite), &config).unwrap();
        let raw = Connection::open(&out).unwrap();
        let expected = [
            ("runs", 1),
            ("servers", 3),
            ("cells", 3),
            ("verdicts", 6),
            ("slices", 8 * 3 * 4 * 3),
            ("slice_errors", 1),
            ("counters", 8 * 3 * 3 * 2),
            ("samples", 2),
            ("marks", 1),
            ("withdrawals", 1),
            ("blocks where metric = 'throughput'", 6 * 8),
            ("rounds", 6 * 8 * 4),
            ("results where metric = 'throughput'", 3),
            ("samples where series = 'server_cpu' and server = 2", 1),
            ("samples where series = 'cpu_user' and server is null", 1),
            ("cells where withdrawn = 'a backup ran'", 1),
        ];
        for (table, rows) in expected {
            let found = number(&raw, &format!("select count(*) from {table}"));
            assert!(
                (found - f64::from(rows)).abs() < 0.5,
                "{table}: {found}, not {rows}"
            );
        }
        let ratio = number(
            &raw,
            "select ratio from results \
             where workload = 'point-query' and clients = 1 and metric = 'throughput'",
        );
        assert!((ratio - 0.9).abs() < 1e-3, "{ratio}");
        let wal = number(
            &raw,
            "select avg(value) from visit_costs where metric = 'wal_bytes_per_op' and server = 2",
        );
        assert!((wal - 0.75).abs() < 1e-9, "{wal}");
        let seed: String = raw
            .query_row("select seed from runs", [], |row| row.get(0))
            .unwrap();
        assert_eq!(seed, u64::MAX.to_string());
    }

    /// Runs of one comparison, twenty minutes apart: so many, `r1` the first.
    fn repeated(lab: &Path, runs: i64) -> Config {
        let mut store = Store::open(lab).unwrap();
        let mut plan = plan();
        // The fixture's servers share a hash.
        plan.servers[2].installation.binary_sha256 = "cd".to_owned();
        (plan.gate.on, plan.gate.another_hour) = (true, true);
        for number in 1..=runs {
            let (run, begun) = (format!("r{number}"), number * 1_200_000);
            store
                .create_run(&run, &plan, RunState::Running, begun)
                .unwrap();
            let machine = MachineName("here".to_owned());
            store.add_fact(&run, (None, None), &machine).unwrap();
            // Hours that differ a little.
            let share = if number % 2 == 0 { 0.9 } else { 0.903 };
            keep(&mut store, &run, [share, 1.0, 1.0]);
            let ended = begun + 300_000;
            store.finish_run(&run, RunState::Finished, ended).unwrap();
        }
        Config {
            lab: lab.to_owned(),
            cache: lab.to_owned(),
            sources: Sources::default(),
        }
    }

    #[test]
    fn another_hour_is_exported_with_what_it_is_known_from_as_reports_say_it() {
        let place = tempfile::tempdir().unwrap();
        let config = repeated(&place.path().join("lab"), 8);
        let out = place.path().join("runs.sqlite");
        let mut arguments = arguments(&out, ExportFormat::Sqlite);
        arguments.runs = vec!["r1".to_owned(), "r8".to_owned()];
        export(&arguments, &config).unwrap();
        let raw = Connection::open(&out).unwrap();
        let store = Store::open(&config.lab).unwrap();
        for (run, from, assumed, expected) in [
            ("r1", "prior", true, (0.885_246, 0.921_107)),
            ("r8", "pair", false, (0.897_484, 0.905_528)),
        ] {
            for metric in ["throughput", "server_cpu_us_per_op"] {
                let sql = "select another_hour_ci95_low, another_hour_ci95_high, another_hour_from, \
                           another_hour_assumed, ci95_low, ci95_high from comparisons \
                           where run = ? and metric = ? and cell = 0 and candidate = 2";
                let (ends, known, this_hour): ((f64, f64), (String, bool), (f64, f64)) = raw
                    .query_row(sql, [run, metric], |row| {
                        let ends = (row.get(0)?, row.get(1)?);
                        let known = (row.get(2)?, row.get(3)?);
                        Ok((ends, known, (row.get(4)?, row.get(5)?)))
                    })
                    .unwrap();
                assert_eq!(known, (from.to_owned(), assumed), "{run} {metric}");
                let analysed = deltabench_lab::analyse(run, &store.plan(run).unwrap(), &store);
                let cell = &analysed.unwrap().comparison.cells[0];
                let of = |one: &&MetricComparison| one.metric.key() == metric;
                let reported = cell.metrics.iter().find(of).unwrap().hours.as_ref();
                assert_eq!(reported.unwrap().another.ci95, Some(ends), "{run} {metric}");
                if metric == "throughput" {
                    let (low, high): (f64, f64) = (ends.0 - expected.0, ends.1 - expected.1);
                    assert!(low.abs() < 1e-6 && high.abs() < 1e-6, "{run}: {ends:?}");
                }
                assert!(
                    ends.0 <= this_hour.0 && this_hour.1 <= ends.1,
                    "{run} {metric}"
                );
            }
        }
        // The gate is on another hour: only that of the last run is measured.
        for (run, code) in [("r1", 3.0), ("r8", 1.0)] {
            let found = number(
                &raw,
                &format!("select exit_code from runs where run = '{run}'"),
            );
            let analysed = deltabench_lab::analyse(run, &store.plan(run).unwrap(), &store);
            let reported = f64::from(deltabench_compare::exit_code(&analysed.unwrap().comparison));
            assert!((found - code).abs() < 0.5, "{run}: {found}");
            assert!((found - reported).abs() < 0.5, "{run}: {found}");
        }
        // Nobody asks what another hour would say of the placebo.
        let unknown = "select count(*) from comparisons where another_hour_ci95_low is null \
                       and another_hour_ci95_high is null and another_hour_from is null \
                       and another_hour_assumed is null and metric = 'throughput'";
        for (candidate, rows) in [(1, 6.0), (2, 0.0)] {
            let found = number(&raw, &format!("{unknown} and candidate = {candidate}"));
            assert!((found - rows).abs() < 0.5, "{candidate}: {found}");
        }
    }

    #[test]
    fn differences_in_microseconds_are_exported_with_their_ends() {
        let place = tempfile::tempdir().unwrap();
        let config = lab(&place.path().join("lab"));
        let out = place.path().join("run.sqlite");
        export(&arguments(&out, ExportFormat::Sqlite), &config).unwrap();
        let raw = Connection::open(&out).unwrap();
        let of = |column: &str, metric: &str| {
            let row = format!("cell = 0 and candidate = 2 and metric = '{metric}'");
            number(
                &raw,
                &format!("select {column} from comparisons where {row}"),
            )
        };
        // The base takes 100 us of time and 50 us of CPU, the candidate a ninth more of both.
        for (metric, difference) in [
            ("throughput", 100.0 / 9.0),
            ("server_cpu_us_per_op", 50.0 / 9.0),
        ] {
            let found = of("difference_us", metric);
            assert!((found - difference).abs() < 0.01, "{metric}: {found}");
            let low = of("difference_us_ci95_low", metric);
            let high = of("difference_us_ci95_high", metric);
            let half = (high - low) / 2.0;
            assert!(low < found && found < high, "{metric}: {low} {high}");
            assert!((half / found - 0.018).abs() < 0.001, "{metric}: {half}");
        }
    }

    #[test]
    fn the_statements_of_the_guide_run() {
        let place = tempfile::tempdir().unwrap();
        let config = lab(&place.path().join("lab"));
        let out = place.path().join("run.sqlite");
        export(&arguments(&out, ExportFormat::Sqlite), &config).unwrap();
        let raw = Connection::open(&out).unwrap();
        let guide = include_str!("../../../docs/guide/notebooks.md");
        let mut statements = 0;
        for block in guide.split("```sql\n").skip(1) {
            let sql = block.split("```").next().unwrap();
            let mut statement = raw.prepare(sql).unwrap();
            assert!(statement.query([]).unwrap().next().is_ok(), "{sql}");
            statements += 1;
        }
        assert!(statements >= 3);
    }

    #[test]
    fn both_forms_are_the_same_each_time_and_never_overwrite_unasked() {
        let place = tempfile::tempdir().unwrap();
        let config = lab(&place.path().join("lab"));
        let out = |name: &str| place.path().join(name);
        for (format, one, two) in [
            (ExportFormat::Sqlite, out("a.sqlite"), out("b.sqlite")),
            (ExportFormat::CsvDir, out("a"), out("b")),
        ] {
            for out in [&one, &two] {
                export(&arguments(out, format), &config).unwrap();
            }
            let refused = export(&arguments(&one, format), &config).unwrap_err();
            assert!(matches!(refused, Failure::Refused(_)), "{refused:?}");
            let mut forced = arguments(&one, format);
            forced.force = true;
            export(&forced, &config).unwrap();
        }
        let read = |path: std::path::PathBuf| std::fs::read(&path).unwrap();
        assert_eq!(read(out("a.sqlite")), read(out("b.sqlite")));
        for table in schema::tables() {
            let name = format!("{}.csv", table.name);
            let text = read(out("a").join(&name));
            assert_eq!(text, read(out("b").join(&name)), "{name}");
            assert!(text.starts_with(table.columns[0].name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_store_and_places_of_the_other_kind_are_never_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let config = lab(&place.path().join("lab"));
        let store = place.path().join("lab/deltabench.sqlite");
        let before = std::fs::metadata(&store).unwrap().len();
        for (out, format) in [
            (store.clone(), ExportFormat::Sqlite),
            (store.clone(), ExportFormat::CsvDir),
            (place.path().join("lab"), ExportFormat::Sqlite),
            (place.path().join("no/such"), ExportFormat::Sqlite),
            (place.path().join(".."), ExportFormat::CsvDir),
        ] {
            let mut arguments = arguments(&out, format);
            arguments.force = true;
            let refused = export(&arguments, &config).unwrap_err();
            assert!(matches!(refused, Failure::Refused(_)), "{refused:?}");
        }
        assert_eq!(std::fs::metadata(&store).unwrap().len(), before);
    }
}
