//! Servers that have another time.

use crate::lab::{Lab, any_installation, slot};
use crate::query::Session;
use deltabench_server::{Clock, Slot};
use std::time::{Duration, Instant};

#[test]
fn a_server_has_the_time_that_it_is_given_and_its_limits_of_time_hold() {
    const AHEAD_NS: i64 = -400 * 86_400 * 1_000_000_000;
    let lab = Lab::new();
    let clock = Clock::install(lab.workspace().directory()).unwrap();
    let mut cluster = lab.cluster("c0", &any_installation());
    let set = Slot {
        environment: clock.environment(AHEAD_NS),
        ..slot(5500)
    };
    let endpoint = cluster.start(&set, &[]).unwrap().endpoint.clone();
    let mut session = Session::open(&endpoint);
    let mut ask = |sql: &str| session.query(sql)[0][0].clone().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let wanted = i64::try_from(now.unwrap().as_secs()).unwrap() - 400 * 86_400;
    for said in [
        "now()",
        "clock_timestamp()",
        "current_timestamp",
        "pg_postmaster_start_time()",
    ] {
        let said = ask(&format!("SELECT extract(epoch FROM {said})::bigint"));
        assert!(
            said.parse::<i64>().unwrap().abs_diff(wanted) < 60,
            "{said} {wanted}"
        );
    }
    // What waits reads no clock of the wall.
    let began = Instant::now();
    let slept = ask("SELECT clock_timestamp() - now() FROM pg_sleep(0.3)");
    assert!(slept.starts_with("00:00:"), "{slept}");
    assert!((300..60_000).contains(&began.elapsed().as_millis()));
    ask("SELECT set_config('statement_timeout', '200ms', false)");
    let began = Instant::now();
    session.query(
        "DO $$ BEGIN PERFORM pg_sleep(600); RAISE 'no limit';
         EXCEPTION WHEN query_canceled THEN NULL; END $$",
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    cluster.stop().unwrap();
}
