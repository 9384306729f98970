//! What `progress` asks for, and what `analyse` says of the same slices, in each stopping mode.

use crate::builder::*;
use deltabench_compare::comparison::{
    CellComparison, Confirmation, Detection, DetectionOutcome, Metric, Verdict,
};
use deltabench_compare::{CellProgress, analyse, ended_after, progress};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId, Stopping};
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{to_f64, to_u64};

use CellProgress::{Confirming, Decided, Measuring};

/// One cell of one candidate, four clients, at most 24 blocks with looks after 6, 12, 18 and 24.
fn sequential() -> Plan {
    let mut plan = plan(vec![cell(4, false)]);
    plan.timing.blocks = 24;
    plan.stopping = Stopping::Sequential {
        looks: deltabench_compare::looks(24),
    };
    plan
}

/// Where the only cell stands, and what is said of it, after so many blocks of these values.
fn after(plan: &Plan, blocks: u32, rates: &[f64], costs: &[f64]) -> (CellProgress, CellComparison) {
    let slices = slices(blocks, &[candidate(rates, costs)]);
    let comparison = analyse(plan, &slices, Vec::new());
    (progress(plan, &slices)[0], only_cell(&comparison).clone())
}

fn joined(parts: &[Vec<f64>]) -> Vec<f64> {
    parts.concat()
}

#[test]
fn between_looks_nothing_is_decided_however_clear() {
    let rates = around(0.5, 0.001, 24);
    for (blocks, next_look) in [(0, 6), (1, 6), (5, 6)] {
        let (progress, cell) = after(&sequential(), blocks, &rates, &[]);
        assert_eq!(progress, Measuring { next_look }, "{blocks}");
        assert_eq!(cell.verdict, Verdict::Inconclusive);
        assert_eq!((cell.looks, cell.decided_at, cell.p), (0, None, None));
    }
    let open = around(0.98, 0.05, 24);
    let (progress, cell) = after(&sequential(), 8, &open, &[]);
    assert_eq!(progress, Measuring { next_look: 12 });
    assert!(
        cell.reason.ends_with("next look after 12 blocks"),
        "{}",
        cell.reason
    );
    assert_eq!((cell.looks, cell.blocks), (1, 8));
    assert!(cell.blocks_to_verdict.unwrap() >= 4);
}

#[test]
fn equality_ends_a_cell_at_its_look_and_later_blocks_do_not_move_it() {
    let rates = joined(&[around(1.0, 0.005, 6), around(0.9, 0.005, 18)]);
    for blocks in [6, 7, 12, 24] {
        let (progress, cell) = after(&sequential(), blocks, &rates, &[]);
        assert_eq!(progress, Decided, "{blocks}");
        let told = cell.reason.ends_with(", at look 1 of 4");
        assert!(told, "what stops early looks small: {}", cell.reason);
        assert_eq!(cell.verdict, Verdict::NoChange);
        assert_eq!((cell.looks, cell.decided_at), (1, Some(1)));
        assert_eq!(metric(&cell, Metric::Throughput).blocks.len(), 6);
        assert_eq!(cell.blocks, blocks, "all counted blocks are told");
    }
}

#[test]
fn a_change_that_just_crosses_the_last_look_has_hardly_anything_left() {
    let mut told = Vec::new();
    for step in 0..60 {
        let rates = around(0.985 - 0.0005 * f64::from(step), 0.04, 24);
        let (_, cell) = after(&sequential(), 24, &rates, &[]);
        if cell.verdict == Verdict::Regression && cell.decided_at == Some(4) {
            let (_, left) = cell.reason.split_once("on average: ").unzip();
            told.extend(left.map(str::to_owned));
        }
    }
    let (nothing, rest) = told.split_at(1);
    assert_eq!(nothing, ["hardly anything is left without that"]);
    assert!(
        rest.iter().any(|one| one.starts_with("about -")),
        "{rest:?}"
    );
    let zero = |one: &&String| one.contains("-0.0") || one.contains("+");
    assert_eq!(told.iter().find(zero), None);
}

#[test]
fn a_look_tests_equality_more_strictly_than_the_last_one() {
    // The 90 % interval of six blocks lies inside ±3 % and the first look's does not: open, not slower.
    let rates = around(0.985, 0.014, 24);
    let (progress, cell) = after(&sequential(), 6, &rates, &[]);
    let (low, high) = metric(&cell, Metric::Throughput).ratio.ci90.unwrap();
    assert!(low > 1.0 / 1.03 && high < 1.03);
    assert_eq!(
        (progress, cell.verdict),
        (Measuring { next_look: 12 }, Verdict::Inconclusive)
    );
    assert_eq!(
        after(&sequential(), 12, &rates, &[]).1.verdict,
        Verdict::NoChange
    );
}

#[test]
fn a_difference_before_the_last_look_is_measured_again_on_fresh_blocks() {
    let rates = joined(&[around(0.90, 0.004, 6), around(0.95, 0.004, 18)]);
    let outcome = |blocks| {
        let (progress, cell) = after(&sequential(), blocks, &rates, &[]);
        (progress, cell.clone(), cell.detection)
    };
    let (progress, cell, detection) = outcome(6);
    assert_eq!(progress, Confirming { blocks_left: 6 });
    assert_eq!(
        cell.verdict,
        Verdict::Inconclusive,
        "not yet a number to print"
    );
    assert!(
        cell.reason
            .contains("found slower at look 1, 6 more blocks to confirm it")
    );
    assert_eq!(
        detection.unwrap().outcome,
        DetectionOutcome::Confirming { blocks_left: 6 }
    );
    assert_eq!(outcome(9).0, Confirming { blocks_left: 3 });
    for blocks in [12, 24] {
        let (progress, cell, detection) = outcome(blocks);
        assert_eq!((progress, cell.verdict), (Decided, Verdict::Regression));
        let found = metric(&cell, Metric::Throughput);
        assert!(
            (found.ratio.estimate - 0.95).abs() < 1e-6,
            "fresh blocks alone"
        );
        assert_eq!(found.blocks.len(), 6);
        let Detection {
            look,
            blocks,
            throughput,
            p,
            outcome,
        } = detection.unwrap();
        assert_eq!((look, blocks), (1, 6));
        assert!(
            (throughput.estimate - 0.90).abs() < 1e-6,
            "kept as its own fact"
        );
        assert!(matches!(outcome, DetectionOutcome::Recurred { p } if p < 0.001));
        assert!(cell.p.unwrap() < p, "both together say more");
        assert!(
            cell.reason.contains("(look 1, recurred); +"),
            "{}",
            cell.reason
        );
    }
}

#[test]
fn a_clear_difference_ends_after_two_fresh_blocks_with_the_figures_of_all() {
    let rates = joined(&[around(0.90, 0.004, 6), around(0.92, 0.004, 18)]);
    assert_eq!(
        after(&sequential(), 7, &rates, &[]).0,
        Confirming { blocks_left: 5 }
    );
    for blocks in [8, 12, 24] {
        let (progress, cell) = after(&sequential(), blocks, &rates, &rates);
        assert_eq!((progress, cell.verdict), (Decided, Verdict::Regression));
        let found = metric(&cell, Metric::Throughput);
        assert_eq!(found.blocks.len(), 8);
        let all = (0.75 * 0.90_f64.ln() + 0.25 * 0.92_f64.ln()).exp();
        assert!((found.ratio.estimate - all).abs() < 1e-6);
        let cost = metric(&cell, Metric::ServerCpuPerOperation);
        assert_eq!(cost.blocks.len(), 8, "CPU has the same");
        assert_eq!((cell.looks, cell.decided_at), (1, Some(1)));
        assert_eq!((cell.interval_level, cell.detection.clone()), (0.98, None));
        assert!(
            cell.reason.contains("(look 1, clear after 8 blocks)"),
            "{}",
            cell.reason
        );
        // 2.5 times that of the eight blocks, as wide as the interval is.
        assert!(cell.p.unwrap() < 1e-5, "{:?}", cell.p);
    }
}

#[test]
fn a_clear_difference_stays_as_it_is_where_the_time_of_the_run_is_up_soon_after() {
    let rates = around(0.9, 0.004, 8);
    let (_, whole) = after(&sequential(), 8, &rates, &[]);
    for blocks in [9, 11, 12, 13, 24] {
        let mut plan = sequential();
        plan.stopping = ended_after(&plan.stopping, blocks);
        let (progress, cell) = after(&plan, 8, &rates, &[]);
        assert_eq!(progress, Decided, "{blocks}");
        assert_eq!(cell.metrics, whole.metrics, "{blocks}");
        assert_eq!((cell.verdict, cell.p), (whole.verdict, whole.p), "{blocks}");
    }
    // At a look after which six blocks do not fit in, too.
    let mut plan = sequential();
    plan.timing.blocks = 11;
    plan.stopping = Stopping::Sequential { looks: vec![6, 11] };
    assert_eq!(after(&plan, 6, &rates, &[]).0, Measuring { next_look: 11 });
    assert_eq!(after(&plan, 8, &rates, &[]).0, Decided);
}

#[test]
fn what_is_not_clear_or_turns_is_measured_again_as_before() {
    // The mean of eight blocks is 12.7 of its standard errors from zero, and 11.6.
    for (spread, wanted) in [(0.034, Decided), (0.037, Confirming { blocks_left: 4 })] {
        let rates = joined(&[around(0.92, 0.004, 6), around(0.92, spread, 2)]);
        assert_eq!(after(&sequential(), 8, &rates, &[]).0, wanted, "{spread}");
    }
    let turned = joined(&[around(0.90, 0.004, 6), around(1.05, 0.004, 18)]);
    let (progress, cell) = after(&sequential(), 8, &turned, &[]);
    assert_eq!(progress, Confirming { blocks_left: 4 });
    assert!(cell.detection.is_some());
}

#[test]
fn what_does_not_recur_is_inconclusive_and_says_so() {
    for fresh in [around(1.0, 0.05, 18), around(1.1, 0.01, 18)] {
        let rates = joined(&[around(0.90, 0.004, 6), fresh]);
        let (progress, cell) = after(&sequential(), 12, &rates, &[]);
        assert_eq!((progress, cell.verdict), (Decided, Verdict::Inconclusive));
        assert!(
            cell.reason
                .starts_with("found slower at look 1, did not recur"),
            "{}",
            cell.reason
        );
        let outcome = cell.detection.unwrap().outcome;
        assert!(matches!(outcome, DetectionOutcome::DidNotRecur { .. }));
    }
    // The 90 % interval of the fresh blocks lies within ±3 %, the 98 % interval does not.
    let rates = joined(&[around(0.90, 0.004, 6), around(0.99, 0.017, 18)]);
    let (progress, cell) = after(&sequential(), 12, &rates, &[]);
    assert_eq!((progress, cell.verdict), (Decided, Verdict::Inconclusive));
    let (low, high) = metric(&cell, Metric::Throughput).ratio.ci90.unwrap();
    assert!(low > 1.0 / 1.03 && high < 1.03);
    assert_eq!(
        cell.reason,
        "found slower at look 1; fresh blocks lie within ±3 %, but are too few to be sure"
    );
    assert_eq!(
        cell.blocks_to_verdict, None,
        "no block is left that could decide"
    );
}

#[test]
fn a_difference_that_fresh_blocks_show_to_be_small_is_no_change_and_keeps_its_size() {
    let rates = joined(&[around(1.06, 0.004, 6), around(1.026, 0.001, 18)]);
    for blocks in [12, 24] {
        let (progress, cell) = after(&sequential(), blocks, &rates, &[]);
        assert_eq!((progress, cell.verdict), (Decided, Verdict::NoChange));
        assert_eq!(
            cell.reason,
            "no change beyond ±3 % (measurably faster by 2.6 %); found faster at look 1"
        );
        let outcome = cell.detection.unwrap().outcome;
        assert!(matches!(outcome, DetectionOutcome::Recurred { .. }));
    }
    let back = joined(&[around(0.90, 0.004, 6), around(1.0, 0.004, 18)]);
    let (_, cell) = after(&sequential(), 12, &back, &[]);
    assert_eq!(cell.verdict, Verdict::NoChange);
    assert_eq!(
        cell.reason,
        "no change beyond ±3 %; found slower at look 1, did not recur"
    );
}

#[test]
fn a_difference_that_six_blocks_would_hardly_confirm_goes_on_to_the_last_look() {
    // p at the third look is far below its level, but six fresh blocks would find it in half of all cases.
    let rates = around(0.95, 0.05, 24);
    let (progress, cell) = after(&sequential(), 18, &rates, &[]);
    assert_eq!(
        (progress, cell.detection.clone()),
        (Measuring { next_look: 24 }, None)
    );
    assert!(cell.p.unwrap() < 0.02, "{:?}", cell.p);
    let (progress, cell) = after(&sequential(), 24, &rates, &[]);
    assert_eq!((progress, cell.verdict), (Decided, Verdict::Regression));
    assert_eq!((cell.decided_at, cell.detection.clone()), (Some(4), None));
    assert_eq!(metric(&cell, Metric::Throughput).blocks.len(), 24);
}

#[test]
fn a_difference_that_stalls_would_hide_from_six_blocks_goes_on() {
    // Every block is the same in all; with stalls one round of four takes longer and the others less.
    let rates = around(1.053, 0.02, 12);
    let stalling = |longer: f64| {
        let mut slices = slices(12, &[candidate(&rates, &[])]);
        for one in slices.iter_mut().filter(|one| one.server == CANDIDATE) {
            let more = if one.round == 3 {
                3.0 * longer
            } else {
                -longer
            };
            let duration = to_f64(one.duration_ns) * (1.0 + more);
            one.duration_ns = to_u64(duration);
        }
        progress(&sequential(), &slices)
    };
    assert_eq!(stalling(0.0), [Confirming { blocks_left: 6 }]);
    assert_eq!(stalling(0.025), [Measuring { next_look: 18 }]);
}

#[test]
fn open_cpu_gets_one_more_look_and_no_more() {
    let rates = around(1.0, 0.004, 24);
    let open = around(1.0, 0.08, 24);
    let (progress, cell) = after(&sequential(), 6, &rates, &open);
    assert_eq!(progress, Measuring { next_look: 12 });
    assert_eq!(cell.verdict, Verdict::NoChange, "throughput decides");
    assert_eq!(
        after(&sequential(), 9, &rates, &open).0,
        Measuring { next_look: 12 }
    );
    let (progress, cell) = after(&sequential(), 12, &rates, &open);
    assert_eq!(
        (progress, cell.verdict, cell.looks),
        (Decided, Verdict::NoChange, 2)
    );
    let sizes: Vec<usize> = cell
        .metrics
        .iter()
        .map(|found| found.blocks.len())
        .collect();
    assert_eq!(sizes, [6, 12], "each has the blocks that decided it");
    let equal = around(1.0, 0.004, 24);
    assert_eq!(after(&sequential(), 6, &rates, &equal).0, Decided);
}

#[test]
fn cpu_contradicts_throughput_at_looks_too() {
    let mut plan = sequential();
    plan.cells = vec![cell(1, false)];
    let (slower, same) = (around(0.9, 0.004, 24), around(1.0, 0.004, 24));
    let (progress, cell) = after(&plan, 12, &slower, &same);
    assert_eq!((progress, cell.verdict), (Decided, Verdict::Inconclusive));
    assert!(
        cell.reason
            .starts_with("contradicted by CPU: throughput slower by"),
        "{}",
        cell.reason
    );
    assert_eq!(
        metric(&cell, Metric::ServerCpuPerOperation).blocks.len(),
        8,
        "the same blocks"
    );
    let dearer = around(1.11, 0.004, 24);
    assert_eq!(
        after(&plan, 12, &slower, &dearer).1.verdict,
        Verdict::Regression
    );
}

#[test]
fn a_cell_is_open_while_any_candidate_is() {
    let mut plan = sequential();
    plan.servers.push(PlannedServer {
        role: Role::Candidate,
        ..plan.servers[2].clone()
    });
    let (equal, open) = (around(1.0, 0.004, 24), around(0.98, 0.06, 24));
    let slower = around(0.9, 0.004, 24);
    let of = |first: &[f64], second: &[f64], blocks| {
        let second = Blocks {
            server: ServerId(3),
            rates: second,
            costs: &[],
        };
        progress(&plan, &slices(blocks, &[candidate(first, &[]), second]))[0]
    };
    assert_eq!(of(&equal, &equal, 6), Decided);
    assert_eq!(of(&equal, &open, 6), Measuring { next_look: 12 });
    assert_eq!(of(&slower, &open, 6), Measuring { next_look: 12 });
    assert_eq!(of(&slower, &equal, 7), Confirming { blocks_left: 5 });
    assert_eq!(of(&equal, &open, 24), Decided, "the last look is the end");
}

#[test]
fn blocks_without_the_cell_are_no_visits_and_a_void_visit_is_one() {
    let rates = around(1.0, 0.004, 24);
    let mut slices = slices(12, &[candidate(&rates, &[])]);
    // Every other block visits the cell: six visits are the first look.
    slices.retain(|slice| slice.block % 2 == 0);
    assert_eq!(progress(&sequential(), &slices), [Decided]);
    // One of them void: the look is made, and five blocks give no verdict.
    for slice in slices.iter_mut().filter(|slice| slice.block == 4) {
        slice.void = Some(VoidReason::Stalled);
    }
    assert_eq!(
        progress(&sequential(), &slices),
        [Measuring { next_look: 12 }]
    );
}

#[test]
fn fixed_takes_all_blocks() {
    let plan = plan(vec![cell(4, false)]);
    let rates = around(0.5, 0.01, 8);
    assert_eq!(after(&plan, 7, &rates, &[]).0, Measuring { next_look: 8 });
    assert_eq!(after(&plan, 8, &rates, &[]).0, Decided);
}

#[test]
fn precision_stops_at_the_width_and_keeps_its_rate_by_a_wider_interval() {
    let mut plan = plan(vec![cell(4, false)]);
    plan.timing.blocks = 40;
    plan.stopping = Stopping::Precision { half_width: 0.01 };
    let narrow = around(1.0, 0.005, 40);
    assert_eq!(after(&plan, 3, &narrow, &[]).0, Measuring { next_look: 6 });
    let (progress, cell) = after(&plan, 40, &narrow, &[]);
    assert_eq!(progress, Decided);
    let of = |cell: &CellComparison| {
        let blocks = metric(cell, Metric::Throughput).blocks.len();
        (blocks, cell.interval_level)
    };
    assert_eq!(of(&cell), (6, 0.98), "six at least, and surer");
    // t(0.99; 6 or 7 − 1)·s/√n is too wide, t(0.985; 7)·s/√8 is not.
    let (_, cell) = after(&plan, 40, &around(1.0, 0.009, 40), &[]);
    assert_eq!(of(&cell), (8, 0.97));
    // t(0.985; n−1)·s/√n ≤ ln 1.01 with s = 2 %: n = 23, and even numbers keep the mean: 24.
    let wide = around(1.0, 0.02, 40);
    assert_eq!(after(&plan, 20, &wide, &[]).0, Measuring { next_look: 21 });
    let (progress, cell) = after(&plan, 40, &wide, &[]);
    let found = metric(&cell, Metric::Throughput);
    assert_eq!(progress, Decided);
    assert!(
        (22..=26).contains(&found.blocks.len()),
        "{}",
        found.blocks.len()
    );
    assert!((cell.interval_level - 0.97).abs() < 1e-12);
    let (low, high) = found.ratio.ci95.unwrap();
    assert!(
        (high / low).ln() / 2.0 <= 0.01_f64.ln_1p() + 1e-9,
        "what is printed is what was asked"
    );
    let (_, cell) = after(&plan, 40, &narrow, &wide);
    let blocks = metric(&cell, Metric::ServerCpuPerOperation).blocks.len();
    assert!(
        (22..=26).contains(&blocks),
        "CPU has to be as narrow: {blocks}"
    );
    assert!(cell.is_within(0.01) && !cell.is_within(0.009));
    // CPU of half of the blocks is asked for, and of fewer it is not.
    let of = |known: u32| {
        let mut all = slices(40, &[candidate(&narrow, &wide)]);
        for slice in all.iter_mut().filter(|slice| slice.block % 3 >= known) {
            slice.server_cpu_ns = None;
        }
        let found = analyse(&plan, &all, Vec::new());
        let cell = only_cell(&found);
        let blocks = metric(cell, Metric::Throughput).blocks.len();
        (blocks, cell.is_within(0.01))
    };
    let (blocks, is_within) = of(2);
    assert!(blocks > 20 && is_within, "{blocks}");
    assert_eq!(of(1), (6, true));
    let hopeless = around(1.0, 0.5, 40);
    assert_eq!(
        after(&plan, 40, &hopeless, &[]).0,
        Decided,
        "the plan has an end"
    );
}

#[test]
fn the_same_slices_give_the_same_answer_whatever_was_measured_later_in_other_cells() {
    let mut plan = sequential();
    plan.cells.push(cell(8, false));
    let first = slices(6, &[candidate(&around(1.0, 0.004, 6), &[])]);
    let second = slices(24, &[candidate(&around(0.98, 0.06, 24), &[])]);
    let second = second.into_iter().map(|slice| Slice {
        cell: CellId(1),
        ..slice
    });
    let all: Vec<Slice> = first.iter().cloned().chain(second).collect();
    assert_eq!(progress(&plan, &all), [Decided, Decided]);
    let (alone, both) = (
        analyse(&plan, &first, Vec::new()),
        analyse(&plan, &all, Vec::new()),
    );
    assert_eq!(alone.cells[0].metrics, both.cells[0].metrics);
}

#[test]
fn a_run_that_confirms_another_says_when_it_may_be_asked() {
    let mut plan = plan(vec![cell(4, false)]);
    plan.confirms = Some("20260101-first".to_owned());
    let (_, cell) = after(&plan, 8, &around(0.95, 0.01, 8), &[]);
    assert_eq!(cell.confirmation, Some(Confirmation::Open));
    assert_eq!(
        after(&plan, 7, &around(0.9, 0.01, 8), &[]).1.confirmation,
        None,
        "not all yet"
    );
    plan.confirms = None;
    assert_eq!(
        after(&plan, 8, &around(0.9, 0.01, 8), &[]).1.confirmation,
        None
    );
}

#[test]
fn open_cells_say_how_long_they_take_at_the_pace_of_the_run() {
    let rates = around(0.995, 0.06, 8);
    let mut slices = slices(8, &[candidate(&rates, &[])]);
    let plan = plan(vec![cell(4, false)]);
    let unknown = analyse(&plan, &slices, Vec::new());
    assert_eq!(only_cell(&unknown).minutes_to_verdict, None, "no clock");
    for slice in &mut slices {
        // A minute for each block, and a night between the fourth and the fifth.
        let night = if slice.block > 3 { 30_000 } else { 0 };
        slice.started_ns = (1_000_000 + 60 * u64::from(slice.block) + night) * 1_000_000_000;
    }
    let comparison = analyse(&plan, &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!(cell.blocks_to_verdict, Some(13));
    assert!((cell.minutes_to_verdict.unwrap() - 13.0).abs() < 1e-9);
    assert!(
        cell.reason.ends_with("needs about 13 more blocks"),
        "{}",
        cell.reason
    );
}

#[test]
fn a_server_on_its_own_is_measured_for_all_blocks() {
    let mut plan = sequential();
    plan.timing.blocks = 8;
    plan.servers.truncate(2);
    let equal = around(1.0, 0.004, 8);
    let base_and_placebo = |blocks| {
        let placebo = Blocks {
            server: PLACEBO,
            rates: &equal,
            costs: &[],
        };
        slices(blocks, &[placebo])
    };
    let open = Measuring { next_look: 8 };
    assert_eq!(progress(&plan, &[]), [open]);
    assert_eq!(progress(&plan, &base_and_placebo(7)), [open]);
    let all = base_and_placebo(8);
    assert_eq!(progress(&plan, &all), [Decided]);
    let exit = |slices| deltabench_compare::exit_code(&analyse(&plan, slices, Vec::new()));
    assert_eq!((exit(&all[..]), exit(&[])), (0, 5));
}
