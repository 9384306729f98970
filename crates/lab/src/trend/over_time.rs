//! A cell run by run.

use super::{HostTrend, Version};
use deltabench_trend::{Difference, Network};

/// A version in one run, relative to the anchor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrendPoint {
    /// Number of the run.
    pub run: usize,
    /// Number of the version.
    pub version: usize,
    /// What the run found, moved by the level of its base. Its interval is that of the hour.
    pub found: Difference,
    /// Whether other load disturbed most of its rounds.
    pub is_disturbed: bool,
}

impl HostTrend {
    /// What each run found in a cell, oldest first. Runs of another base are moved by its level, so that all
    /// are relative to the anchor of the network; those that nothing connects with it are left out.
    pub fn points(&self, cell: usize, network: &Network) -> Vec<TrendPoint> {
        let mut points = Vec::new();
        for (run, own) in self.measured(cell) {
            let Some(base) = network.level(own.base) else {
                continue;
            };
            let by = base.change.value;
            let moved = |(low, high): (f64, f64)| (low + by, high + by);
            let point = |version: &usize| {
                let found = own.difference(own.base, *version)?;
                Some(TrendPoint {
                    run,
                    version: *version,
                    found: Difference {
                        value: found.value + by,
                        ci95: moved(found.ci95),
                        ci90: moved(found.ci90),
                        ..found
                    },
                    is_disturbed: !own.is_sound,
                })
            };
            points.extend(own.candidates.keys().filter_map(point));
        }
        points
    }
}

impl Version {
    /// Whether people call it so: `postgres:18.4`, `18.4`, or as it was asked for.
    pub fn is_called(&self, asked: &str) -> bool {
        let build = &self.installation;
        self.name == asked
            || self.name.strip_prefix("postgres:") == Some(asked)
            || build.asked == asked
    }
}
