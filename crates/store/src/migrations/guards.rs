//! Migration 17: what belongs to an archived run neither comes nor goes. Its bulk leaves with the row of
//! `archived` that names the sealed file. One text makes the triggers of all tables. It is a released step:
//! it never changes, and a table of a later step gets its triggers there.

/// The trigger that keeps new rows of a table away from an archived run: those for which `$is_of_it` holds,
/// where `$run` is their run.
macro_rules! closed {
    ($table:literal) => {
        closed!($table, "true", "new.run")
    };
    ($table:literal, $is_of_it:literal, $run:literal) => {
        concat!(
            "drop trigger if exists ",
            $table,
            "_not_archived;\ncreate trigger ",
            $table,
            "_not_archived before insert on ",
            $table,
            "\nwhen ",
            $is_of_it,
            " and exists (select 1 from archived_now where run = ",
            $run,
            ") begin\n    select raise(abort, 'the run is archived');\nend;\n"
        )
    };
}

/// The same of a table with bulk, and the trigger that lets its rows go while the run is archived.
macro_rules! moves {
    ($table:literal) => {
        moves!($table, ("true", "new.run"), ("true", "old.run"))
    };
    ($table:literal, ($comes:literal, $new:literal), ($goes:literal, $old:literal)) => {
        concat!(
            closed!($table, $comes, $new),
            "drop trigger ",
            $table,
            "_no_delete;\ncreate trigger ",
            $table,
            "_no_delete before delete on ",
            $table,
            "\nwhen not (",
            $goes,
            " and exists (select 1 from archived_now where run = ",
            $old,
            ")) begin\n    select raise(abort, 'records are never deleted');\nend;\n"
        )
    };
}

/// What may still be said of an archived run is not here: withdrawals, placebo results, and other facts.
pub(super) const SQL: &str = concat!(
    "-- What belongs to an archived run neither comes nor goes; its bulk leaves with the row that names its\n\
     -- sealed file.\n\
     create view archived_now as select run from archived a\n    \
     where state = 'archived' and id = (select max(id) from archived where run = a.run);\n",
    moves!("slice"),
    moves!(
        "slice_error",
        ("true", "(select run from slice where id = new.slice)"),
        ("true", "(select run from slice where id = old.slice)")
    ),
    moves!("sample"),
    moves!("visit_counters"),
    moves!("mark"),
    moves!("record"),
    moves!("instruction_profile"),
    moves!(
        "fact",
        ("new.kind in ('settings', 'warm_up')", "new.run"),
        ("old.kind in ('settings', 'warm_up')", "old.run")
    ),
    closed!("visit"),
    closed!("run_state"),
    closed!("finding"),
    closed!("instruction_count"),
    closed!("occasion"),
    closed!("cell_series"),
);
