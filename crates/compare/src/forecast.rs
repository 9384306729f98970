//! How long an answer takes, before it is measured.

use crate::comparison::{CellComparison, Metric};
use crate::judge::blocks_for;
use crate::thresholds::{
    EARLY_LEVEL, FORECAST_SD_LEVEL, MIN_BLOCKS, PRECISION_LEVEL, PRECISION_MIN_BLOCKS,
};
use crate::words;
use deltabench_model::units::{count, to_f64};
use deltabench_stats::chi_square::sd_at_most;
use deltabench_stats::summary::sample_sd;

/// Half-widths of the table, as shares.
pub const HALF_WIDTHS: [f64; 5] = [0.05, 0.03, 0.02, 0.01, 0.005];

/// What a pilot says about the time that answers take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    sd_throughput: Option<f64>,
    sd_cpu: Option<f64>,
    known_blocks: u32,
    seconds_per_block: f64,
    fixed_seconds: f64,
}

/// Minutes for one half-width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minutes {
    /// If the sd is what the pilot saw. Half of all runs need more.
    pub likely: f64,
    /// If it is as large as the pilot leaves room for, at 90 %; absent beyond a thousand blocks.
    pub at_most: Option<f64>,
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionForecast {
    /// Half-width of the 95 % interval, as a share.
    pub half_width: f64,
    /// Time for throughput; absent when not known, or beyond a thousand blocks.
    pub throughput: Option<Minutes>,
    /// Time for CPU per operation; absent likewise.
    pub server_cpu: Option<Minutes>,
}

/// A forecast from the sd of block log-ratios of the placebo.
///
/// Shape:  sd on the log scale, `None` where not known (no CPU clock, one block); `known_blocks` is the
/// number of blocks behind them; a block is everything from one restart to the next, with all cells; the
/// fixed part is loading and the like.
/// Source: B = ⌈t²(0.985; B−1)·sd²/h²⌉, at least [`PRECISION_MIN_BLOCKS`], or 6 or 7 with t(0.99): the rule
/// by which measuring stops at a width; h = ln(1 + half-width). Upper limit of sd:
/// χ². docs/sources/statistics.md#blocks.
pub fn forecast(
    sd_block_throughput: Option<f64>,
    sd_block_cpu: Option<f64>,
    known_blocks: u32,
    seconds_per_block: f64,
    fixed_seconds: f64,
) -> Forecast {
    Forecast {
        sd_throughput: sd_block_throughput,
        sd_cpu: sd_block_cpu,
        known_blocks,
        seconds_per_block,
        fixed_seconds,
    }
}

/// Standard deviation between blocks of a metric's log-ratio; `None` with fewer than two blocks.
pub fn block_sd(cell: &CellComparison, metric: Metric) -> Option<f64> {
    let found = cell.metrics.iter().find(|value| value.metric == metric)?;
    sample_sd(&found.blocks)
}

impl Forecast {
    /// The table, [`HALF_WIDTHS`] in order.
    pub fn rows(&self) -> Vec<PrecisionForecast> {
        HALF_WIDTHS.iter().map(|&half| self.row(half)).collect()
    }

    /// The time for any half-width, as a share.
    pub fn row(&self, half_width: f64) -> PrecisionForecast {
        PrecisionForecast {
            half_width,
            throughput: self.minutes(self.sd_throughput, half_width),
            server_cpu: self.minutes(self.sd_cpu, half_width),
        }
    }

    /// The narrowest half-width of throughput that a budget likely buys, as a share; absent where it does not
    /// buy [`MIN_BLOCKS`] blocks, or nothing is known.
    pub fn half_width_in(&self, minutes: f64) -> Option<f64> {
        let fits = |half: f64| {
            let found = self.minutes(self.sd_throughput, half);
            found.is_some_and(|found| found.likely <= minutes)
        };
        // From 0.01 % in steps of 2 %: nobody reads a third digit here.
        std::iter::successors(Some(1e-4), |half| Some(half * 1.02))
            .take_while(|half| *half < 10.0)
            .find(|&half| fits(half))
    }

    /// Why a budget does not fit the precision asked for: `unfit: ±2 % takes 3.3 h for throughput and
    /// takes 8 min for CPU per operation`; `None` where both likely fit, or nothing is known.
    pub fn unfit(&self, half_width: f64, budget_minutes: f64) -> Option<String> {
        let row = self.row(half_width);
        let known = [
            (self.sd_throughput, row.throughput, "throughput"),
            (self.sd_cpu, row.server_cpu, "CPU per operation"),
        ];
        let asked = || known.iter().filter(|(sd, ..)| sd.is_some());
        let fits =
            |found: &Option<Minutes>| found.is_some_and(|found| found.likely <= budget_minutes);
        if asked().all(|(_, minutes, _)| fits(minutes)) {
            return None;
        }
        let each = asked().map(|(_, minutes, what)| match minutes {
            Some(found) => format!("takes {} for {what}", duration(found.likely)),
            None => format!("is out of reach here for {what}"),
        });
        let each: Vec<String> = each.collect();
        let width = words::threshold(half_width);
        Some(format!("unfit: ±{width} {}", each.join(" and ")))
    }

    /// The table in a line: `±5 %: 3 min, ±3 %: 4 min, …`, of throughput; what cannot be had is left out.
    pub fn throughput_line(&self) -> String {
        self.line(|row| row.throughput)
    }

    /// The same for CPU per operation.
    pub fn server_cpu_line(&self) -> String {
        self.line(|row| row.server_cpu)
    }

    fn line(&self, of: impl Fn(&PrecisionForecast) -> Option<Minutes>) -> String {
        let rows = self.rows();
        let parts = rows.iter().filter_map(|row| {
            let minutes = of(row)?;
            Some(format!(
                "±{}: {}",
                words::threshold(row.half_width),
                duration(minutes.likely)
            ))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    fn minutes(&self, sd: Option<f64>, half_width: f64) -> Option<Minutes> {
        let sd = sd?;
        let time = |sd: f64| {
            let half = half_width.ln_1p();
            let blocks = blocks_at_width(sd, half)?;
            Some((self.fixed_seconds + to_f64(count(blocks)) * self.seconds_per_block) / 60.0)
        };
        let df = f64::from(self.known_blocks) - 1.0;
        Some(Minutes {
            likely: time(sd)?,
            at_most: (df > 0.0)
                .then(|| time(sd_at_most(sd, df, FORECAST_SD_LEVEL)))
                .flatten(),
        })
    }
}

/// The smallest number of blocks at which measuring stops at this width.
fn blocks_at_width(sd: f64, half: f64) -> Option<usize> {
    let few = MIN_BLOCKS..PRECISION_MIN_BLOCKS;
    let early = blocks_for(EARLY_LEVEL, sd, half, MIN_BLOCKS).filter(|few_of| few.contains(few_of));
    early.or_else(|| blocks_for(PRECISION_LEVEL, sd, half, PRECISION_MIN_BLOCKS))
}

/// Minutes as `40 s`, `8 min` or `3.3 h`.
pub fn duration(minutes: f64) -> String {
    if minutes < 0.95 {
        format!("{:.0} s", (minutes * 6.0).ceil() * 10.0)
    } else if minutes < 99.5 {
        format!("{minutes:.0} min")
    } else {
        format!("{:.1} h", minutes / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_stats::student::t_quantile;

    #[test]
    fn more_precision_takes_more_time_and_six_blocks_are_the_floor() {
        let forecast = forecast(Some(0.01), Some(0.004), 12, 20.0, 60.0);
        let rows = forecast.rows();
        let likely: Vec<f64> = rows
            .iter()
            .map(|row| row.throughput.unwrap().likely)
            .collect();
        assert!(likely.is_sorted(), "{likely:?}");
        assert!(
            (likely[0] - 180.0 / 60.0).abs() < 1e-9,
            "6 blocks of 20 s and a minute"
        );
        for row in &rows {
            let (speed, cpu) = (row.throughput.unwrap(), row.server_cpu.unwrap());
            assert!(cpu.likely <= speed.likely && speed.likely <= speed.at_most.unwrap());
        }
        // ±0.5 % at sd 1 %: the first n with t·sd/√n below it.
        let blocks = (8..)
            .find(|&n| {
                let n = f64::from(n);
                t_quantile(0.985, n - 1.0) * 0.01 / n.sqrt() < 0.005_f64.ln_1p()
            })
            .unwrap();
        let expected = (60.0 + 20.0 * f64::from(blocks)) / 60.0;
        assert!((likely[4] - expected).abs() < 1e-9, "{blocks} blocks");
        // t(0.99) of 6 and 7 blocks is 3.36 and 3.14 sd / √n, t(0.985) of 8 is 2.71.
        let of = |sd: f64| blocks_at_width(sd, 0.01);
        assert_eq!(
            [of(0.007), of(0.008), of(0.009)],
            [Some(6), Some(7), Some(8)]
        );
        assert_eq!(of(0.0125), Some(11));
    }

    #[test]
    fn a_budget_that_does_not_fit_is_refused_in_words() {
        let noisy = forecast(Some(0.2), Some(0.03), 6, 30.0, 30.0);
        assert_eq!(
            noisy.unfit(0.02, 60.0).unwrap(),
            "unfit: ±2 % takes 4.0 h for throughput and takes 8 min for CPU per operation"
        );
        assert_eq!(noisy.unfit(0.2, 60.0), None);
        let dear = forecast(Some(0.001), Some(0.2), 6, 30.0, 30.0);
        assert_eq!(
            dear.unfit(0.02, 60.0).unwrap(),
            "unfit: ±2 % takes 4 min for throughput and takes 4.0 h for CPU per operation"
        );
        let hopeless = forecast(Some(5.0), None, 6, 30.0, 30.0);
        assert_eq!(
            hopeless.unfit(0.01, 60.0).unwrap(),
            "unfit: ±1 % is out of reach here for throughput"
        );
        assert_eq!(forecast(None, None, 1, 30.0, 30.0).unfit(0.01, 1.0), None);
    }

    #[test]
    fn a_budget_buys_the_half_width_that_takes_as_long() {
        let forecast = forecast(Some(0.01), None, 6, 20.0, 60.0);
        let half = forecast.half_width_in(10.0).unwrap();
        assert!(forecast.row(half).throughput.unwrap().likely <= 10.0);
        assert!(forecast.row(half * 0.96).throughput.unwrap().likely > 10.0);
        assert_eq!(forecast.half_width_in(1.0), None, "not even six blocks");
    }

    #[test]
    fn times_read_well() {
        let words: Vec<String> = [0.2, 0.9, 1.2, 24.4, 99.0, 197.0].map(duration).into();
        assert_eq!(
            words,
            ["20 s", "60 s", "1 min", "24 min", "99 min", "3.3 h"]
        );
        let line = forecast(Some(0.01), None, 6, 20.0, 60.0).throughput_line();
        assert!(line.starts_with("±5 %: 3 min, ±3 %: 3 min"), "{line}");
    }
}
