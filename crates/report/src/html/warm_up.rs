//! How the servers of a cell became warm.

use crate::context::{CellWarmUp, resolved};
use crate::words;
use deltabench_model::plan::{Plan, Role, ServerId};
use deltabench_model::units::{count, to_f64};
use maud::{Markup, html};
use std::fmt::Write;

/// Size of the chart in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// The share of steady visits, and the discarded rounds of one of them.
pub(super) fn chart(warm_up: &CellWarmUp, plan: &Plan) -> Markup {
    let curves: Vec<(ServerId, &[f64])> = ServerId::each()
        .zip(warm_up.us_per_operation.iter().map(Vec::as_slice))
        .filter(|(_, curve)| curve.len() > 1 && curve.iter().all(|us| us.is_finite()))
        .collect();
    let (low, high) = curves
        .iter()
        .flat_map(|(_, curve)| curve.iter())
        .fold((f64::INFINITY, 0.0_f64), |(low, high), us| {
            (low.min(*us), high.max(*us))
        });
    let rounds = curves
        .iter()
        .map(|(_, curve)| curve.len())
        .max()
        .unwrap_or(0);
    html! {
        p.metric {
            "warm-up: steady in " (warm_up.steady) " of " (words::plural(u64::from(warm_up.visits), "visit"))
        }
        @if rounds > 1 {
            @let label = format!("warm-up of one visit, {rounds} discarded rounds");
            div.warmup {
                span.scale { span { (words::number(high)) } span { (words::number(low)) " µs" } }
                svg width="100%" height="44" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img"
                    aria-label=(label) {
                    @for (server, curve) in &curves {
                        path class=(class(plan, *server)) d=(path(curve, rounds, low, high)) {}
                    }
                }
            }
            p.muted {
                "µs per operation in " (rounds) " discarded rounds of one visit: "
                @for (place, (server, _)) in curves.iter().enumerate() {
                    @if place > 0 { ", " }
                    span.nowrap {
                        svg.key width="22" height="10" aria-hidden="true" {
                            path class=(class(plan, *server)) d="M0 5H22" {}
                        }
                        (name(plan, *server))
                    }
                }
            }
        }
    }
}

fn name(plan: &Plan, server: ServerId) -> String {
    match role(plan, server) {
        Some(Role::Candidate) => resolved(plan, server),
        _ => plan.server_name(server),
    }
}

/// Each server has its own dashes besides its colour.
fn class(plan: &Plan, server: ServerId) -> &'static str {
    match role(plan, server) {
        Some(Role::Base) => "curve",
        Some(Role::Placebo) => "curve nought",
        _ => "curve side",
    }
}

fn role(plan: &Plan, server: ServerId) -> Option<Role> {
    plan.server(server).map(|server| server.role)
}

/// A line from the first round on the left to the last on the right, the lowest value at the bottom.
fn path(curve: &[f64], rounds: usize, low: f64, high: f64) -> String {
    let step = WIDTH / to_f64(count(rounds.saturating_sub(1).max(1)));
    let range = (high - low).max(f64::MIN_POSITIVE);
    let mut path = String::new();
    for (round, us) in curve.iter().enumerate() {
        let (x, y) = (step * to_f64(count(round)), HEIGHT * (high - us) / range);
        let sign = if round == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(path, "{sign}{x:.0} {y:.0}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_from_the_top_to_the_bottom() {
        assert_eq!(
            path(&[30.0, 20.0, 10.0], 3, 10.0, 30.0),
            "M0 0L500 50L1000 100"
        );
        assert_eq!(path(&[10.0, 10.0], 2, 10.0, 10.0), "M0 0L1000 0");
    }
}
