//! Which settings of the Insert Benchmark can be measured, and what cells and room they come to.

use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    CacheState, Cell, CellOrder, DataState, Group, PublishedRate, Stopping,
};
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::{
    InsertSetup, InsertStep, LARGE_BATCH, LOAD_BATCH, SMALL_BATCH,
};
use deltabench_run::planning::{Jobs, Request, Selection};

/// Rows that each client has to load at least: fewer are gone before a step has begun.
const ROWS_MIN: u64 = 1000;

/// Rows of all clients together at most.
const ROWS_MAX: u64 = 10_000_000_000;

/// Partitions of a table at most: more take longer to plan than to read.
const PARTITIONS_MAX: u32 = 1000;

/// The first version whose partitioned tables have a primary key.
const PARTITIONED_SINCE: u32 = 110_000;

/// Seconds of a step of queries at most: a week.
const SECONDS_MAX: u32 = 604_800;

/// Turns of a step at most: shorter ones are mostly thawing and freezing.
const TURNS_MAX: u32 = 1000;

/// Connections of each client: it inserts, deletes and queries.
const ROLES: u32 = 3;

/// Bytes of a row with its place in four indexes, while nothing that was deleted is used again.
///
/// Source: 207 for 400k rows after `l.x` (17.11 and 18.6: 32.1 MB of table, 50.5 MB of indexes), and room for
/// pages of indexes that rows at random places have split.
const ROW_BYTES: u64 = 250;

/// WAL of a pass against the bytes of its tables: every page in full once in an interval between checkpoints,
/// and twice that for the records.
///
/// Source: a pass of 632k inserted rows without a checkpoint in its writes wrote 270 MB (17.11, 18.6), 1.7
/// times the bytes that are estimated for them.
const WAL_SHARE: u64 = 3;

/// Refuses what cannot be measured.
///
/// Errors: sizes, steps and rates that make no benchmark, with what would.
pub fn check(setup: &InsertSetup) -> Result<(), Problem> {
    check_sizes(setup)?;
    check_steps(&setup.steps)?;
    check_rates(setup)
}

/// Refuses what goes together with the benchmark in no request.
///
/// Errors: those of [`check`]; workloads, states and rules that have no meaning for it.
pub fn check_request(setup: &InsertSetup, request: &Request) -> Result<(), Problem> {
    check(setup)?;
    let none = Selection::Named(Vec::new());
    if request.selection != none || !request.sources.is_empty() {
        return Err(Problem::new(
            "the Insert Benchmark cannot be measured together with workloads",
        )
        .detail("each of its steps starts from what earlier steps left")
        .hint("measure them in separate runs"));
    }
    check_threads(setup, request.jobs)?;
    if request.observing.profile.is_some() {
        return Err(Problem::new("the Insert Benchmark cannot be sampled")
            .detail("deltabench samples in slices that do not count, and its steps have no slices")
            .hint("leave out --sample"));
    }
    if request.cache != CacheState::AsIs {
        return Err(
            Problem::new("the Insert Benchmark keeps caches as its steps leave them")
                .hint("leave out --cache-state; --memory keeps the caches small"),
        );
    }
    if request.stopping != Stopping::Fixed {
        return Err(Problem::new("the Insert Benchmark cannot end early")
            .detail("with so few passes no look could decide")
            .hint("choose a number of passes, or a time"));
    }
    if request.state != DataState::Fresh || request.order != CellOrder::Drawn {
        return Err(Problem::new(
            "the Insert Benchmark creates its own tables and has its own order",
        )
        .hint("leave out the state of the tables and the order of cells"));
    }
    Ok(())
}

/// Refuses servers that deltabench does not start, and versions without the tables that are wanted.
///
/// Errors: it was there before; partitions before 11.
pub fn check_server(setup: &InsertSetup, installation: &Installation) -> Result<(), Problem> {
    // 0: not known before it is fetched or built.
    if setup.partitions > 0 && (1..PARTITIONED_SINCE).contains(&installation.version_num) {
        return Err(Problem::new(format!(
            "{} has no partitioned tables with a primary key",
            installation.resolved
        ))
        .detail("they came with version 11")
        .hint("leave out the partitions, or this version"));
    }
    if installation.remote.is_none() {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{} cannot run the Insert Benchmark",
        installation.resolved
    ))
    .detail(
        "each pass needs an empty server without other users, and reads its processes and files; a \
         server that already runs belongs to somebody else",
    )
    .hint("name a version or a build, for example postgres:18 or path:/opt/pg18"))
}

/// Threads of the client: clients that share a table have one, unless a number was asked for.
pub fn threads(setup: &InsertSetup, asked: Jobs) -> Jobs {
    match asked {
        Jobs::Auto { .. } if setup.shared_table => Jobs::Count(1),
        asked => asked,
    }
}

fn check_threads(setup: &InsertSetup, jobs: Jobs) -> Result<(), Problem> {
    match jobs {
        Jobs::Count(count @ 2..) if setup.shared_table => Err(Problem::new(format!(
            "{count} threads cannot serve clients that share a table"
        ))
        .detail(
            "the next delete of a table begins where the last one ended, whichever client sent it, so one \
             thread sends all of them",
        )
        .hint("leave out --jobs, or --shared-table: then each client has its own table")),
        _ => Ok(()),
    }
}

fn check_sizes(setup: &InsertSetup) -> Result<(), Problem> {
    if setup.clients == 0 {
        return Err(Problem::new("zero clients send no load").hint("use --clients 1 or more"));
    }
    if setup.rows < ROWS_MIN {
        return Err(Problem::new(format!("{} rows are too few", setup.rows))
            .detail("each client deletes the oldest rows of its table while it inserts new ones")
            .hint(format!("use at least --rows {ROWS_MIN}")));
    }
    if inserted(setup) > ROWS_MAX {
        return Err(Problem::new("more than 10 billion rows")
            .hint("lower --rows, --write-rows or --clients"));
    }
    whole(setup.rows, u64::from(LOAD_BATCH), "--rows")?;
    let writes = [InsertStep::WriteMany, InsertStep::WriteFew];
    if setup.steps.iter().any(|step| writes.contains(step)) {
        // Four fifths in statements of 50 rows, one fifth in statements of 5.
        let unit = u64::from(LARGE_BATCH * SMALL_BATCH);
        if setup.write_rows == 0 {
            return Err(
                Problem::new("l.i1 and l.i2 have no rows to write").hint(format!(
                    "use --write-rows {unit} or more, or leave them out with --steps"
                )),
            );
        }
        whole(setup.write_rows, unit, "--write-rows")?;
    }
    check_partitions(setup)?;
    if setup.turns > TURNS_MAX {
        return Err(Problem::new(format!("{} turns are too many", setup.turns))
            .detail(format!("a step is cut into 1 to {TURNS_MAX} turns"))
            .hint("use --turns 20"));
    }
    if setup.long_transaction_seconds == Some(0) {
        return Err(Problem::new("a transaction of 0 s holds nothing back")
            .hint("use --long-transaction 60s, or leave it out"));
    }
    Ok(())
}

fn check_partitions(setup: &InsertSetup) -> Result<(), Problem> {
    if setup.partitions == 1 || setup.partitions > PARTITIONS_MAX {
        return Err(Problem::new(format!(
            "{} is not a number of partitions",
            setup.partitions
        ))
        .detail(format!(
            "a table is cut into 2 to {PARTITIONS_MAX} ranges of its key"
        ))
        .hint("use --partitions 8, as published, or leave it out"));
    }
    match setup.rows_per_partition() {
        Some(rows) if rows < ROWS_MIN => Err(Problem::new(format!(
            "{rows} rows in each of {} partitions are too few",
            setup.partitions
        ))
        .hint(format!(
            "use --partitions {} or fewer, or more --rows",
            (setup.rows / ROWS_MIN).max(2)
        ))),
        _ => Ok(()),
    }
}

/// Refuses a number of rows that does not come out in whole statements.
fn whole(rows: u64, unit: u64, option: &str) -> Result<(), Problem> {
    if rows.is_multiple_of(unit) {
        return Ok(());
    }
    let nearest = rows.next_multiple_of(unit);
    Err(
        Problem::new(format!("{option} {rows} is not a multiple of {unit}"))
            .detail("all statements of a step have the same number of rows")
            .hint(format!("use {option} {nearest}")),
    )
}

/// Where a step belongs; steps of queries may come in any order.
fn rank(step: InsertStep) -> u32 {
    match step {
        InsertStep::LoadRows => 0,
        InsertStep::Index => 1,
        InsertStep::WriteMany => 2,
        InsertStep::WriteFew => 3,
        InsertStep::Range(_) | InsertStep::Point(_) => 4,
    }
}

fn check_steps(steps: &[InsertStep]) -> Result<(), Problem> {
    if steps.first() != Some(&InsertStep::LoadRows) {
        return Err(Problem::new("the first step is not l.i0")
            .detail("it creates the tables that all others need")
            .hint("begin --steps with l.i0"));
    }
    for (place, step) in steps.iter().enumerate() {
        if steps.iter().take(place).any(|earlier| earlier == step) {
            return Err(Problem::new(format!("{} is named twice", step.name()))
                .hint("leave one of them out"));
        }
    }
    for pair in steps.windows(2) {
        if let [one, next] = pair
            && rank(*one) > rank(*next)
        {
            return Err(
                Problem::new(format!("{} cannot come after {}", next.name(), one.name()))
                    .detail("each step starts from what earlier steps left")
                    .hint("keep the order l.i0, l.x, l.i1, l.i2, then steps of queries"),
            );
        }
    }
    let is_range = |step: &&InsertStep| matches!(step, InsertStep::Range(_));
    if let Some(range) = steps.iter().find(is_range)
        && !steps.contains(&InsertStep::Index)
    {
        return Err(
            Problem::new(format!("{} needs the indexes of l.x", range.name()))
                .detail("without them each of its queries reads the whole table")
                .hint("add l.x to --steps"),
        );
    }
    Ok(())
}

fn check_rates(setup: &InsertSetup) -> Result<(), Problem> {
    for step in &setup.steps {
        let Some(rate) = step.rate() else { continue };
        let unit = step.batch();
        if rate == 0 || !rate.is_multiple_of(unit) {
            return Err(Problem::new(format!(
                "a rate of {rate} rows per second is not a multiple of {unit}"
            ))
            .detail(format!(
                "one statement inserts {unit} rows, and a client sends a whole number of them each second"
            ))
            .hint(format!(
                "use --rates {}",
                rate.max(1).checked_next_multiple_of(unit).unwrap_or(unit)
            )));
        }
    }
    let queries = setup.steps.iter().any(|step| step.queries());
    if queries && !(1..=SECONDS_MAX).contains(&setup.query_seconds) {
        return Err(Problem::new(format!(
            "{} s are too short for a query step",
            setup.query_seconds
        ))
        .hint("use --seconds 20 or more; published studies use 1800"));
    }
    Ok(())
}

/// Rows that all clients insert in a pass.
pub fn inserted(setup: &InsertSetup) -> u64 {
    let each = setup.steps.iter().map(|step| setup.rows_of(*step));
    let each: u64 = each.fold(0, u64::saturating_add);
    each.saturating_mul(u64::from(setup.clients))
}

/// Connections that the benchmark holds at a time: the roles of each client, the look-ups of each table, and
/// a session with a long transaction.
pub fn connections(setup: &InsertSetup) -> u32 {
    let long = u32::from(setup.long_transaction_seconds.is_some());
    setup.clients.saturating_mul(ROLES) + setup.tables() + long
}

/// Bytes of tables and indexes at the end of a pass at most: nothing that was deleted is used again.
pub fn bytes(setup: &InsertSetup) -> u64 {
    inserted(setup).saturating_mul(ROW_BYTES)
}

/// Bytes of WAL that a pass writes, about.
pub fn wal_bytes(setup: &InsertSetup) -> u64 {
    bytes(setup).saturating_mul(WAL_SHARE)
}

/// The cells of the benchmark: its steps.
pub fn cells(setup: &InsertSetup) -> Vec<Cell> {
    let cell = |step: &InsertStep| Cell {
        workload: step.name(),
        group: match step {
            InsertStep::Range(_) => Group::Range,
            InsertStep::Point(_) => Group::Point,
            _ => Group::Write,
        },
        clients: setup.clients,
        writes: true,
        statements_per_operation: 1,
        state: DataState::Fresh,
        rate: None,
        reconnects: false,
        published: PublishedRate {
            per_operation: setup.published_per_operation(*step),
            unit: match step {
                InsertStep::Index => "indexed rows/s",
                step if step.queries() => "queries/s",
                _ => "rows/s",
            }
            .to_owned(),
        },
    };
    setup.steps.iter().map(cell).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::units::to_u64;
    use deltabench_testkit::small_insert;

    pub(crate) fn setup() -> InsertSetup {
        InsertSetup {
            clients: 2,
            rows: 10_000,
            write_rows: 5000,
            query_seconds: 10,
            steps: InsertStep::published(&[100, 500]),
            settle_seconds: Some(1),
            ..small_insert()
        }
    }

    fn refusal(change: impl FnOnce(&mut InsertSetup)) -> String {
        let mut changed = setup();
        change(&mut changed);
        check(&changed).unwrap_err().to_string()
    }

    #[test]
    fn more_rows_than_there_are_numbers_are_too_many() {
        assert!(refusal(|setup| setup.rows = u64::MAX).contains("10 billion"));
        assert!(refusal(|setup| setup.write_rows = u64::MAX).contains("10 billion"));
        let rate = refusal(|setup| {
            (setup.clients, setup.query_seconds) = (1, 1);
            setup.steps = InsertStep::published(&[u32::MAX]);
        });
        assert!(rate.contains("use --rates 50"), "{rate}");
    }

    #[test]
    fn the_published_steps_can_be_measured_and_each_is_a_cell() {
        let setup = setup();
        assert_eq!(check(&setup), Ok(()));
        let cells = cells(&setup);
        let names: Vec<&str> = cells.iter().map(|cell| cell.workload.as_str()).collect();
        assert_eq!(
            names,
            [
                "l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500"
            ]
        );
        let units: Vec<u64> = cells
            .iter()
            .map(|cell| to_u64(cell.published.per_operation))
            .collect();
        assert_eq!(units, [100, 20_200, 50, 5, 1, 1, 1, 1]);
        assert_eq!(cells[4].published.unit, "queries/s");
        assert!(cells.iter().all(|cell| cell.writes && cell.clients == 2));
    }

    #[test]
    fn what_makes_no_benchmark_is_refused_with_a_way_out() {
        assert!(refusal(|s| s.clients = 0).contains("--clients"));
        assert!(refusal(|s| s.rows = 100).ends_with("use at least --rows 1000"));
        assert!(refusal(|s| s.rows = 1010).contains("--rows 1100"));
        assert!(refusal(|s| s.write_rows = 260).contains("--write-rows 500"));
        assert!(refusal(|s| s.write_rows = 0).contains("no rows to write"));
        assert!(refusal(|s| s.rows = 100_000_000_000).contains("10 billion"));
        assert!(refusal(|s| s.steps = vec![InsertStep::Range(110)]).contains("l.i0"));
        assert!(refusal(|s| s.steps.swap(1, 2)).contains("l.x cannot come after l.i1"));
        assert!(refusal(|s| s.steps.push(InsertStep::Point(500))).contains("leave one of them"));
        assert!(
            refusal(|s| s.steps.retain(|step| *step != InsertStep::Index))
                .contains("needs the indexes")
        );
        assert!(refusal(|s| s.steps.push(InsertStep::Point(110))).contains("--rates 150"));
        assert!(refusal(|s| s.query_seconds = 0).contains("--seconds"));
        assert!(refusal(|s| s.long_transaction_seconds = Some(0)).contains("60s"));
        assert!(refusal(|s| s.partitions = 1).contains("2 to 1000"));
        assert!(refusal(|s| s.partitions = 20).contains("--partitions 10 or fewer"));
    }

    #[test]
    fn clients_that_share_a_table_have_one_thread_and_no_more_can_be_asked_for() {
        let mut setup = setup();
        let auto = Jobs::Auto { cores: 32 };
        assert_eq!(threads(&setup, auto), auto);
        assert_eq!(check_threads(&setup, Jobs::Count(8)), Ok(()));
        setup.shared_table = true;
        assert_eq!(threads(&setup, auto), Jobs::Count(1));
        assert_eq!(check_threads(&setup, threads(&setup, auto)), Ok(()));
        let asked = threads(&setup, Jobs::Count(2));
        let refused = check_threads(&setup, asked).unwrap_err().to_string();
        assert!(refused.contains("2 threads") && refused.contains("--shared-table"));
    }

    #[test]
    fn room_grows_with_all_that_is_inserted() {
        let mut setup = setup();
        // Two clients: 10,000 loaded, 100 for the indexes, 5000 written, 12,000 beside queries.
        assert_eq!(inserted(&setup), 2 * 27_100);
        assert_eq!(connections(&setup), 8);
        setup.shared_table = true;
        setup.long_transaction_seconds = Some(60);
        assert_eq!(connections(&setup), 8);
    }
}
