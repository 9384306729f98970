//! Finished messages for sets of values, on real servers where `DELTABENCH_TEST_TREES` names some.

use crate::PATIENCE;
use crate::pgbench::clusters;
use deltabench_driver::WireError;
use deltabench_driver::tuples::{TupleText, Tuples, TuplesSpec, Way};

#[test]
fn each_way_of_sending_executes_the_tuple_that_is_named_and_survives_an_error() {
    let before = ["SET work_mem = '7MB'".to_owned()];
    let numbers = |number: &str| [Some(number.to_owned()), None];
    let (three, none, bad) = (numbers("3"), numbers("0"), numbers("x"));
    let sql = "SELECT n, $2::text FROM generate_series(1, $1::text::int) n
        WHERE current_setting('work_mem') = '7MB'";
    let tuple = |values| TupleText { sql, values };
    let with_values = [tuple(&three), tuple(&none), tuple(&bad)];
    let written = |sql| TupleText { sql, values: &[] };
    let texts = [
        written("SELECT generate_series(1, 3)"),
        written("SELECT 1 WHERE false"),
        written("SELECT 1 / 0"),
    ];
    for cluster in clusters(&[]) {
        // Values have no place in a text, so they go by the extended protocol.
        for (way, tuples) in [
            (Way::Simple, &texts),
            (Way::Simple, &with_values),
            (Way::Extended, &with_values),
            (Way::Prepared, &with_values),
        ] {
            let spec = TuplesSpec {
                before: &before,
                way,
                tuples,
                limit: PATIENCE,
            };
            let mut line = Tuples::open(&cluster.endpoint(), &cluster.login(), &spec).unwrap();
            assert_ne!(line.pid(), 0);
            for (place, rows) in [(0, 3), (1, 0), (0, 3)] {
                let executed = line.execute(place).unwrap();
                assert_eq!(executed.rows, rows, "{way:?} {place}");
                assert!(executed.duration_ns > 0);
            }
            let error = line.execute(2).unwrap_err();
            assert!(matches!(&error, WireError::Server(error) if error.sqlstate.starts_with("22")));
            assert_eq!(line.execute(0).unwrap().rows, 3, "{way:?} after an error");
        }
    }
}
