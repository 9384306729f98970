//! A server against itself, for a minute, before the first lane on a host: whether it can tell equal things.

use super::unit::Place;
use crate::bench::Bench;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::host::swept_host;
use crate::request::small;
use crate::store::store_problem;
use deltabench_compare::comparison::{CellComparison, Metric, Ratio};
use deltabench_fleet::lanes::Unit;
use deltabench_fleet::ship::settle;
use deltabench_kinds::run_half;
use deltabench_model::plan::Stopping;
use deltabench_model::work::Work;
use deltabench_run::planning::{self, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_store::Store;
use deltabench_workload::Library;

/// The workload: the shortest operation shows most of what a host does to it.
const ANCHOR: &str = "point-query";
const ROWS: u64 = 10_000;
const BLOCKS: u32 = 5;
/// Begin no block that would end after this many seconds of measuring.
const SECONDS: f64 = 60.0;
/// How far a server may be from itself, as a share.
const APART: f64 = 0.05;
/// Half of an interval that says nothing any more, as a share.
const WIDE: f64 = 0.25;

/// What came of it.
#[derive(Debug, PartialEq)]
pub enum Admission {
    Admitted,
    /// Why nothing can be measured there, in words.
    Unfit(String),
    /// Nothing was compared: the lane goes on, and the next one tries again.
    Untold,
    /// Somebody wants the lane to stop.
    Stopped,
}

/// Measures the base of a unit against itself. Where that cannot be done, the unit will say why.
///
/// Errors: a server that is not what was planned; a lab that cannot be written.
pub fn admission(unit: &Unit, place: &Place<'_>) -> Result<Admission, Failure> {
    let mut plan = unit.plan.clone();
    settle(&mut plan, &place.lanes.shipped, &place.local).map_err(Failure::Refused)?;
    let base = plan.servers.first().map(|server| &server.installation);
    let Some(base) = base.filter(|base| base.remote.is_none() && plan.work == Work::default())
    else {
        return Ok(Admission::Untold);
    };
    let target = ServerWish::plain(base.clone());
    let mut request = small(vec![ANCHOR.to_owned()], ROWS, BLOCKS, plan.seed);
    request.timing.deadline_seconds = Some(SECONDS);
    request.stopping = Stopping::Fixed;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let kind = run_half(&request.work);
    let sides = (&target, std::slice::from_ref(&target));
    let plan = planning::plan(request, kind, sides, &library).map_err(Failure::Refused)?;
    let lab = { place.local.join(&place.lanes.execution) }.join("admission");
    std::fs::remove_dir_all(&lab).ok();
    let config = Config {
        lab: lab.clone(),
        ..place.config.clone()
    };
    let mut bench = Bench {
        host: swept_host(place.servers, &config)?,
        store: Store::open(&lab).map_err(store_problem)?,
        interrupted: place.stop.now.clone(),
    };
    let measured = bench.measure_new(&plan, &library, None, false);
    drop(bench);
    // Also on a disk that got full meanwhile.
    std::fs::remove_dir_all(&lab).ok();
    let measured = measured?;
    if measured.end == SessionEnd::Interrupted {
        return Ok(Admission::Stopped);
    }
    let comparison = measured.judged.into_comparison();
    let cells = comparison.cells.iter().chain(&comparison.placebo_cells);
    let ratios: Vec<Ratio> = cells.filter_map(throughput).collect();
    let found = judged(&ratios);
    say(&match found {
        Admission::Untold => "against itself: too few blocks to tell".to_owned(),
        _ => format!("against itself: {}", in_words(&ratios)),
    });
    Ok(found)
}

/// Without an interval nothing is known of the host.
fn judged(ratios: &[Ratio]) -> Admission {
    match why_unfit(ratios) {
        Some(why) => Admission::Unfit(why),
        None if ratios.iter().any(|ratio| ratio.ci95.is_some()) => Admission::Admitted,
        None => Admission::Untold,
    }
}

fn throughput(cell: &CellComparison) -> Option<Ratio> {
    let mut metrics = cell.metrics.iter();
    let found = metrics.find(|one| one.metric == Metric::Throughput);
    found.map(|metric| metric.ratio)
}

fn in_words(ratios: &[Ratio]) -> String {
    let each = ratios.iter().map(|ratio| match ratio.ci95 {
        Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.estimate),
        None => format!("{:.3}", ratio.estimate),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Why a host is unfit on which a server has these ratios to itself.
fn why_unfit(ratios: &[Ratio]) -> Option<String> {
    for ratio in ratios {
        let Some((low, high)) = ratio.ci95 else {
            continue;
        };
        if low > 1.0 + APART || high < 1.0 - APART {
            return Some(format!(
                "a server differs from itself there: {}",
                in_words(&[*ratio])
            ));
        }
        if (high - low) / 2.0 > WIDE {
            return Some(format!(
                "a server cannot be compared with itself there: {}",
                in_words(&[*ratio])
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64) -> Ratio {
        Ratio {
            estimate: (low * high).sqrt(),
            ci95: Some((low, high)),
            ci90: None,
        }
    }

    #[test]
    fn a_host_is_unfit_on_which_equal_servers_differ_or_nothing_can_be_told() {
        assert_eq!(why_unfit(&[ratio(0.97, 1.02), ratio(0.9, 1.1)]), None);
        // A small difference is what a run's own placebo is for.
        assert_eq!(why_unfit(&[ratio(1.01, 1.08)]), None);
        let apart = why_unfit(&[ratio(0.97, 1.02), ratio(1.06, 1.12)]).unwrap();
        assert!(
            apart.contains("differs from itself there: 1.090 [1.060, 1.120]"),
            "{apart}"
        );
        assert!(why_unfit(&[ratio(0.8, 0.94)]).unwrap().contains("differs"));
        assert!(
            why_unfit(&[ratio(0.7, 1.3)])
                .unwrap()
                .contains("cannot be compared")
        );
        let one = Ratio {
            ci95: None,
            ..ratio(0.5, 0.5)
        };
        assert_eq!(
            judged(&[one]),
            Admission::Untold,
            "a single block says nothing"
        );
        assert_eq!(judged(&[]), Admission::Untold);
        assert_eq!(judged(&[one, ratio(0.97, 1.02)]), Admission::Admitted);
    }
}
