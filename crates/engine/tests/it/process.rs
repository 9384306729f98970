//! Workers of real libraries: frozen while they owe compactions, killed while they work.

use crate::lab::libraries;
use crate::place::Place;
use deltabench_engine::{EngineError, StepOrder, TurnOrder};
use deltabench_model::installation::Engine as Kind;
use deltabench_model::work::rocksdb::RocksdbStep;
use std::path::PathBuf;
use std::time::Duration;

fn place() -> Place {
    let mut place = Place::new(libraries().last().unwrap(), Kind::Rocksdb);
    // Small buffers, so that much is left to compact.
    place.setup.options = vec![
        ("write_buffer_size".into(), "262144".into()),
        ("target_file_size_base".into(), "262144".into()),
        ("max_bytes_for_level_base".into(), "524288".into()),
    ];
    place
}

const OVERWRITE: StepOrder = StepOrder {
    step: RocksdbStep::Overwriteandwait,
    threads: 2,
    seed: 7,
    batched: false,
};

const LOAD: StepOrder = StepOrder {
    step: RocksdbStep::Fillseq,
    threads: 1,
    seed: 7,
    batched: false,
};

fn turn(number: u32, operations: u64) -> TurnOrder {
    TurnOrder {
        number,
        operations,
        counted: false,
        settle: false,
    }
}

/// State of a process and the clock ticks that it used.
fn state(pid: u32) -> (char, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    (fields[0].chars().next().unwrap(), ticks)
}

#[test]
fn a_worker_that_owes_compactions_uses_no_core_between_its_turns() {
    let place = place();
    let (mut engine, _) = place.start().unwrap();
    engine.begin(LOAD).unwrap();
    engine.turn(turn(0, 20_000)).unwrap();
    engine.finish().unwrap();
    engine.begin(OVERWRITE).unwrap();
    for number in 0..3 {
        let turned = engine.turn(turn(number, 10_000)).unwrap();
        assert_eq!(turned.operations, 10_000);
        let before = state(engine.pid());
        assert_eq!(before.0, 'T');
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(state(engine.pid()), before);
    }
    let figures = engine.finish().unwrap();
    assert!(
        figures["compaction_write_bytes"] > 30_000.0 * 420.0,
        "it did owe them: {figures:?}"
    );
    let pid = engine.pid();
    engine.stop().unwrap();
    assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
}

#[test]
fn nothing_is_owed_after_a_turn_that_settles_and_what_is_owed_is_paid_for() {
    let place = place();
    let (mut engine, _) = place.start().unwrap();
    let order = |settle| TurnOrder {
        settle,
        ..turn(0, 20_000)
    };
    engine.begin(LOAD).unwrap();
    // Else a job of the load may be under way when the first step begins, and its time is not told.
    engine.turn(order(true)).unwrap();
    engine.finish().unwrap();
    let mut overwrite = |settle| {
        engine.begin(OVERWRITE).unwrap();
        let turned = engine.turn(order(settle)).unwrap();
        let figures = engine.finish().unwrap();
        assert!(figures.contains_key("compaction_ns"), "no job at its ends");
        (turned.cpu_ns, figures["finish_cpu_ns"], figures["drain_ns"])
    };
    let (_, _, settled) = overwrite(true);
    let (turned, end, owed) = overwrite(false);
    assert!(
        turned > 0 && end > 0.0 && settled < owed,
        "{settled} {owed}"
    );
    engine.stop().unwrap();
}

#[test]
fn a_library_that_crashes_in_mid_turn_is_lost_and_the_next_engine_works() {
    let place = place();
    let (mut engine, _) = place.start().unwrap();
    let pid = engine.pid();
    engine.begin(LOAD).unwrap();
    engine.turn(turn(0, 20_000)).unwrap();
    engine.finish().unwrap();
    engine.begin(OVERWRITE).unwrap();
    let lost = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Frozen until the turn begins.
            while state(pid).0 == 'T' {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(50));
            let pid = libc::pid_t::try_from(pid).unwrap();
            // A fault comes again when it is not mended: the first signal ends only the runtime's own search
            // for an overflow of the stack, and on a busy machine two are taken for one.
            // SAFETY: two integers; the pid is that of our worker, and is nobody's soon after it is reaped.
            while unsafe { libc::kill(pid, libc::SIGSEGV) } == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        engine.turn(turn(0, 5_000_000)).unwrap_err()
    });
    assert!(
        matches!(&lost, EngineError::Lost(words)
            if words.contains("ended by signal 11 (segmentation fault) in mid-turn")),
        "{lost:?}"
    );
    drop(engine);
    let (mut next, _) = place.start_in("next").unwrap();
    next.begin(LOAD).unwrap();
    assert_eq!(next.turn(turn(0, 20_000)).unwrap().operations, 20_000);
    next.stop().unwrap();
}
