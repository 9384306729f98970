//! What each run of a cell says of its versions, with what hours may add.

use crate::hours::{Kind, Learned, kind};
use crate::{Assumed, Build, Measured, real};
use deltabench_stats::between::Scatter;
use deltabench_stats::summary::{mean, sample_sd};
use std::collections::BTreeMap;

/// What a run says of its versions: values of one variance, each with a level of the run added.
#[derive(Debug)]
pub(crate) struct Star {
    pub(crate) host: usize,
    pub(crate) values: BTreeMap<usize, f64>,
    /// Variance of each value.
    pub(crate) variance: f64,
    /// Variance of a log-ratio of two of them inside the run.
    pub(crate) within: f64,
}

impl Star {
    pub(crate) fn has(&self, version: usize) -> bool {
        self.values.contains_key(&version)
    }
}

/// What is known of hours for all runs of a cell: standard deviations by kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hours {
    pub(crate) near: f64,
    pub(crate) far: f64,
    /// The fewest degrees of freedom of those that take part.
    pub(crate) df: f64,
    pub(crate) assumed: bool,
}

impl Hours {
    pub(crate) fn known(series: usize, learned: &Learned, assumed: Assumed) -> Self {
        // What is within a run is added by each run itself.
        let precise: [f64; 2] = [0.0, 0.0];
        let of = |kind| learned.of(series, kind, &[&precise], assumed);
        let known = [of(Kind::Near), of(Kind::Far)];
        let sd = |at: &Option<deltabench_stats::repeated::BetweenHours>| {
            at.map_or(assumed.sd, |known| known.scatter.between())
        };
        let [near, far] = &known;
        let present = known.iter().flatten();
        Self {
            near: sd(near),
            far: sd(far),
            df: present
                .clone()
                .map(|one| one.scatter.df)
                .fold(f64::INFINITY, f64::min)
                .min(60.0),
            assumed: present.clone().any(|one| one.assumed),
        }
    }
}

/// The host, the base of a run and the number of its copies, and the blocks of each other version.
type OfRun = ((usize, usize, u32), BTreeMap<usize, Vec<f64>>);

/// What runs say of their versions; a run without two blocks of a version says nothing.
pub(crate) fn stars(cells: &[&Measured], builds: &[Build], hours: &Hours) -> Vec<Star> {
    // As of two servers with one copy each: values to the mean of two copies have 3/4 of that.
    let within = |(copies, blocks): (u32, &Vec<f64>)| Scatter {
        variance: sample_sd(blocks).unwrap_or(0.0).powi(2) / real(blocks.len()) * 2.0
            / (1.0 + 1.0 / f64::from(copies.max(1))),
        within: 0.0,
        df: real(blocks.len() - 1),
    };
    let blocks = |cell: &Measured| -> BTreeMap<usize, Vec<f64>> {
        let known = cell.candidates.keys();
        known
            .filter_map(|&version| Some((version, cell.contrast(cell.base, version)?)))
            .filter(|(_, blocks)| blocks.len() > 1)
            .collect()
    };
    let all: Vec<OfRun> = cells
        .iter()
        .map(|cell| ((cell.host, cell.base, cell.base_copies), blocks(cell)))
        .collect();
    let scatters: Vec<Scatter> = all
        .iter()
        .flat_map(|((_, _, copies), of)| of.values().map(|blocks| within((*copies, blocks))))
        .collect();
    let prior = Scatter::prior(&scatters);
    let star = |((host, base, copies), candidates): &OfRun| {
        let own = candidates.values().map(|blocks| within((*copies, blocks)));
        let own = own.map(|own| prior.map_or(own.variance, |prior| own.towards(&prior).variance));
        let within = mean(&own.collect::<Vec<f64>>())?;
        let is_far = |version: &usize| kind(builds, *base, *version) == Kind::Far;
        let sd = if candidates.keys().any(is_far) {
            hours.far
        } else {
            hours.near
        };
        let mut values: BTreeMap<usize, f64> = BTreeMap::from([(*base, 0.0)]);
        values.extend(
            candidates
                .iter()
                .filter_map(|(at, of)| Some((*at, mean(of)?))),
        );
        Some(Star {
            host: *host,
            values,
            within,
            variance: ((within + sd.powi(2)) / 2.0).max(f64::MIN_POSITIVE),
        })
    };
    all.iter().filter_map(star).collect()
}
