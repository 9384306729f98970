//! The places of servers among each other, as published tables colour them.

use super::quartile::Quartile;
use super::report::{InsertReport, StepFigures};
use deltabench_compare::thresholds::{RANGE_ALIKE, RANGE_END};
use deltabench_model::plan::Role;
use deltabench_model::work::insert::InsertRole;

/// Fills the quartiles of the report.
pub(super) fn paint(report: &mut InsertReport) {
    for place in 0..report.steps.len() {
        let mut steps: Vec<&mut StepFigures> = report
            .servers
            .iter_mut()
            .filter(|row| row.role != Role::Placebo)
            .filter_map(|row| row.steps.get_mut(place))
            .collect();
        paint_throughput(&mut steps);
        paint_slowest(&mut steps);
    }
}

fn paint_throughput(steps: &mut [&mut StepFigures]) {
    let kept = |figures: &StepFigures| figures.service.is_none_or(|service| service.met);
    let ranked: Vec<f64> = steps
        .iter()
        .filter(|figures| kept(figures))
        .filter_map(|figures| Some(figures.throughput?.mean))
        .collect();
    for figures in steps {
        let place = |mean: f64| match kept(figures) {
            true => quartile(&ranked, mean),
            false => Quartile::Missed,
        };
        figures.quartile = figures.throughput.map(|throughput| place(throughput.mean));
    }
}

/// The slowest response of each role: of times the least is the best, so their inverses are ranked.
fn paint_slowest(steps: &mut [&mut StepFigures]) {
    let of_role = |role: InsertRole| -> Vec<f64> {
        steps
            .iter()
            .flat_map(|figures| &figures.response)
            .filter(|response| response.role == role)
            .map(|response| 1.0 / response.max_us)
            .collect()
    };
    let ranked = InsertRole::ALL.map(|role| (role, of_role(role)));
    for response in steps.iter_mut().flat_map(|figures| &mut figures.response) {
        let all = ranked.iter().find(|(role, _)| *role == response.role);
        response.quartile = all.map(|(_, all)| quartile(all, 1.0 / response.max_us));
    }
}

/// Where a value stands among all; larger is better.
fn quartile(all: &[f64], value: f64) -> Quartile {
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let gap = high - low;
    if gap <= 0.0 {
        Quartile::Between
    } else if value >= high - RANGE_END * gap {
        Quartile::Best
    } else if value <= low + RANGE_END * gap && low < RANGE_ALIKE * high {
        Quartile::Worst
    } else {
        Quartile::Between
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_range_are_coloured_and_like_values_are_never_red() {
        let of = |all: &[f64]| -> Vec<Quartile> {
            all.iter().map(|value| quartile(all, *value)).collect()
        };
        use Quartile::{Best, Between, Worst};
        assert_eq!(
            of(&[100.0, 60.0, 80.0, 91.0, 70.0]),
            [Best, Worst, Between, Best, Worst]
        );
        assert_eq!(of(&[100.0, 81.0, 80.0]), [Best, Between, Between]);
        assert_eq!(of(&[100.0, 79.0]), [Best, Worst]);
        assert_eq!(of(&[100.0, 100.0]), [Between, Between]);
        assert_eq!(of(&[100.0]), [Between]);
    }
}
