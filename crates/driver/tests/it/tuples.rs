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
    let with_values = |way| [&three, &none, &bad].map(|values| TupleText { way, sql, values });
    let texts = [
        "SELECT generate_series(1, 3)",
        "SELECT 1 WHERE false",
        "SELECT 1 / 0",
    ];
    let texts = texts.map(|sql| TupleText {
        way: Way::Simple,
        sql,
        values: &[],
    });
    // Of one connection each its own way.
    let mut mixed = with_values(Way::Prepared);
    mixed[0] = texts[0];
    mixed[1].way = Way::Extended;
    for cluster in clusters(&[]) {
        // Values have no place in a text, so they go by the extended protocol.
        for (way, tuples) in [
            ("text", &texts),
            ("values in a text", &with_values(Way::Simple)),
            ("extended", &with_values(Way::Extended)),
            ("prepared", &with_values(Way::Prepared)),
            ("mixed", &mixed),
        ] {
            let spec = TuplesSpec {
                before: &before,
                tuples,
                order: &[0, 1],
                limit: PATIENCE,
                answer: PATIENCE,
            };
            let mut line = Tuples::open(&cluster.endpoint(), &cluster.login(), &spec).unwrap();
            for (place, rows) in [(0, 3), (1, 0), (0, 3)] {
                let executed = line.execute(place).unwrap();
                assert_eq!(executed.rows, rows, "{way} {place}");
                assert!(executed.duration_ns > 0);
            }
            let error = line.execute(2).unwrap_err();
            assert!(matches!(&error, WireError::Server(error) if error.sqlstate.starts_with("22")));
            assert_eq!(line.execute(0).unwrap().rows, 3, "{way} after an error");
        }
    }
}

#[test]
fn every_prepared_text_is_planned_until_its_plan_cache_has_decided() {
    let number = |number: &str| [Some(number.to_owned())];
    let (one, two) = (number("1"), number("2"));
    let tuple = |sql, values| TupleText {
        way: Way::Prepared,
        sql,
        values,
    };
    // Both of two texts, one with two sets of values, and the one that counts.
    let tuples = [
        tuple("SELECT 1 WHERE $1 = 1", &one[..]),
        tuple("SELECT 2 WHERE $1 = 1", &one),
        tuple("SELECT 2 WHERE $1 = 1", &two),
        tuple("SELECT 1 FROM pg_prepared_statements", &[]),
        tuple(
            "SELECT 1 FROM pg_prepared_statements WHERE custom_plans = 5 AND generic_plans = 1",
            &[],
        ),
    ];
    for cluster in clusters(&[]) {
        let open = |tuples: &[TupleText<'_>]| {
            let spec = TuplesSpec {
                before: &[],
                tuples,
                order: &[2, 0, 1],
                limit: PATIENCE,
                answer: PATIENCE,
            };
            Tuples::open(&cluster.endpoint(), &cluster.login(), &spec)
        };
        let mut line = open(&tuples[..4]).unwrap();
        assert_eq!(line.execute(3).unwrap().rows, 3, "a text is prepared once");
        match open(&tuples) {
            Ok(mut line) => assert_eq!(line.execute(4).unwrap().rows, 2),
            // Before 14 a server does not say how often it has planned.
            Err(error) => assert_eq!(error.sqlstate(), Some("42703"), "{error}"),
        }
    }
}

#[test]
fn another_thread_ends_an_execution() {
    let tuples = [TupleText {
        way: Way::Extended,
        sql: "SELECT pg_sleep(3600)",
        values: &[],
    }];
    let spec = TuplesSpec {
        before: &[],
        tuples: &tuples,
        order: &[],
        limit: PATIENCE,
        answer: PATIENCE,
    };
    for cluster in clusters(&[]) {
        let mut line = Tuples::open(&cluster.endpoint(), &cluster.login(), &spec).unwrap();
        let cancel = line.cancel();
        let sleeping = std::thread::spawn(move || line.execute(0));
        // One that comes before the statement is lost.
        while !sleeping.is_finished() {
            cancel.send();
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let error = sleeping.join().unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), Some("57014"), "{error}");
    }
}
