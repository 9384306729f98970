//! Pieces that all tables are made of.

use super::collect::{Block, Place};
use super::{Column, Figure, StudyRow};
use crate::comparison::{Metric, Ratio, Verdict};
use crate::loads::Loads;
use deltabench_model::plan::Group;

/// A figure of the base column: exactly 1.
pub(super) const ONE: Ratio = Ratio {
    estimate: 1.0,
    ci95: None,
    ci90: None,
};

/// A figure with nothing but its ratio.
pub(super) fn figure(ratio: Ratio, absolute: f64, repetitions: u32) -> Figure {
    Figure {
        ratio,
        absolute,
        relative: None,
        verdict: None,
        repetitions,
        efficiency: None,
        cpu: None,
        switches: None,
        per_cost: None,
    }
}

/// The verdict of a figure that nobody judged: only that it is not to be used.
pub(super) fn unfit(unfit: bool) -> Option<Verdict> {
    unfit.then_some(Verdict::Unfit)
}

pub(super) fn column(name: impl Into<String>) -> Column {
    Column {
        name: name.into(),
        cost_per_month: None,
        measured: Vec::new(),
    }
}

/// A row, unless it is empty.
pub(super) fn row(name: &str, group: Group, figures: Vec<Option<Figure>>) -> Option<StudyRow> {
    figures.iter().any(Option::is_some).then(|| StudyRow {
        name: name.to_owned(),
        group,
        figures,
    })
}

/// Logarithms of throughput, or of CPU per operation where known, of each load's blocks.
pub(super) fn absolutes(places: &[Place<'_, '_>], metric: Metric) -> Loads {
    let value = |block: &Block| match metric {
        Metric::ServerCpuPerOperation => block.cpu,
        _ => Some(block.rate),
    };
    let known = |block: &Block| Some((block.block, value(block)?));
    let loads = |place: &Place<'_, '_>| place.loads(place.blocks().iter().filter_map(known));
    Loads::new(places.iter().flat_map(loads))
}

/// Log-ratios to the base of each load's blocks.
pub(super) fn ratios(places: &[Place<'_, '_>], metric: Metric) -> Loads {
    let loads = |place: &Place<'_, '_>| {
        let found = place.metric(metric);
        found.map_or_else(Vec::new, |found| found.by_session(place.sessions()))
    };
    Loads::new(places.iter().flat_map(loads))
}

/// The level of Student's interval that holds inside of each of these runs: the widest of theirs.
pub(super) fn level(places: &[Place<'_, '_>]) -> f64 {
    let levels = places.iter().filter_map(|place| place.comparison());
    levels
        .map(|comparison| comparison.interval_level)
        .fold(crate::thresholds::LEVEL_DIFFERENT, f64::max)
}
