//! What a replay says of statements that were committed on copies of the tables.

use crate::words::plural;
use deltabench_model::replayed::{Replayed, ReplayedStatement};
use deltabench_model::units::count;

/// `committed on a copy; …`: below the row of a write or lock.
pub(super) fn words(statement: &ReplayedStatement) -> Option<String> {
    let write = statement.write?;
    let mut words = "committed on a copy".to_owned();
    if write.once {
        words.push_str(", which takes each set of values once");
    }
    if write.dropped > 0 {
        words.push_str(&format!(
            "; {} of {} sets of values left out: a constraint refuses them on the base",
            write.dropped, statement.tuples
        ));
    }
    Some(words)
}

/// How many statements were executed on copies, and which values are left out.
pub(super) fn notes(replayed: &Replayed) -> Vec<String> {
    let writes = || {
        replayed
            .statements
            .iter()
            .filter_map(|statement| Some((statement, statement.write?)))
    };
    let all = count(writes().count());
    if all == 0 {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "writes: {} executed on a copy of the tables; the numbers of changed rows are compared, and not what \
         RETURNING returns",
        plural(all, "statement")
    )];
    let dropped = writes().filter(|(_, write)| write.dropped > 0);
    let (statements, values) = dropped.fold((0, 0), |(statements, values), (_, write)| {
        (statements + 1, values + write.dropped)
    });
    if values > 0 {
        notes.push(format!(
            "writes: {} of {} left out, because a constraint refuses them on the base",
            match values {
                1 => "1 set of values".to_owned(),
                values => format!("{values} sets of values"),
            },
            plural(statements, "statement")
        ));
    }
    notes
}

/// In which state writes were timed; nothing if none was.
pub(super) fn times_note(replayed: &Replayed) -> Option<String> {
    let is_timed = |statement: &ReplayedStatement| {
        let mut verdicts = statement.verdicts.iter();
        statement.write.is_some() && verdicts.any(|verdict| verdict.time.is_some())
    };
    replayed.statements.iter().any(is_timed).then(|| {
        "writes: committed on a copy of the database, new on each server for each visit to a statement; all \
         servers get the same sets of values in the same order; autovacuum is off, a commit does not wait \
         for the disk, and a checkpoint may fall into a visit"
            .to_owned()
    })
}
