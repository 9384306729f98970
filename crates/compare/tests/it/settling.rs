//! What a look before the last one stops for: each condition where it alone decides.

use crate::builder::*;
use deltabench_compare::CellProgress::{Confirming, Measuring};
use deltabench_compare::{CellProgress, looks, progress};
use deltabench_model::plan::Stopping;

/// Where a cell stands after these blocks, in a plan of so many blocks and of so many cells, of which only
/// this one has been measured.
fn after(rates: &[f64], blocks: u32, cells: usize) -> CellProgress {
    let mut plan = plan(vec![cell(4, false); cells]);
    plan.timing.blocks = blocks;
    plan.stopping = Stopping::Sequential {
        looks: looks(blocks),
    };
    let measured = u32::try_from(rates.len()).unwrap();
    progress(&plan, &slices(measured, &[candidate(rates, &[])]))[0]
}

const CONFIRMS: CellProgress = Confirming { blocks_left: 6 };

#[test]
fn a_look_stops_for_a_difference_only_if_six_fresh_blocks_fit_in() {
    let clear = around(0.9, 0.004, 6);
    assert_eq!(after(&clear, 12, 1), CONFIRMS, "just enough");
    assert_eq!(after(&clear, 11, 1), Measuring { next_look: 9 });
}

#[test]
fn a_look_stops_only_for_what_fresh_blocks_would_very_likely_confirm() {
    // Both are different at the second look of four. Of the second one six blocks would show it in fewer than
    // nine of ten cases.
    assert_eq!(after(&around(0.94, 0.027, 12), 24, 1), CONFIRMS);
    let wide = after(&around(0.94, 0.030, 12), 24, 1);
    assert_eq!(wide, Measuring { next_look: 18 });
}

#[test]
fn a_look_stops_only_for_what_would_hold_in_the_whole_family() {
    let rates = around(0.94, 0.011, 6);
    assert_eq!(after(&rates, 24, 1), CONFIRMS);
    assert_eq!(after(&rates, 24, 1000), Measuring { next_look: 12 });
}
