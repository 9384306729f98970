//! A culprit in time: what a run next to its parent says beside the count.

use crate::remarks::LAYOUT;
use crate::words::p_value;
use serde::Serialize;

/// One-sided p up to which time shows a culprit.
/// Source: as for differences of which there is one question only; a culprit is named by its count already.
const SHOWN: f64 = 0.01;

/// A culprit next to its parent, in a run with fresh blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InTime {
    /// The run.
    pub run: String,
    /// Blocks that count.
    pub blocks: u32,
    /// CPU of the server for each operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<TimeChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<TimeChange>,
    /// A second copy of the parent, by CPU per operation; by throughput where CPU is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placebo: Option<TimeChange>,
    /// One-sided p of "it does not cost more" for a culprit that takes more instructions, "not less" for one
    /// that takes fewer.
    pub p: Option<f64>,
    pub says: TimeSays,
}

/// A relative change with its interval, as shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeChange {
    /// Culprit over parent - 1.
    pub change: f64,
    /// Absent with fewer than two blocks.
    pub ci95: Option<(f64, f64)>,
}

/// What time says of a culprit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeSays {
    /// It changed as the count did, by more than the layout of code can do.
    Agrees,
    /// It changed as the count did, by as little as the layout of code alone can do.
    Layout,
    /// It changed the other way, by more than the layout of code can do.
    Opposite,
    /// Chance gives as much.
    NotShown,
    /// The run did not come to its end.
    Unfinished,
}

impl InTime {
    /// A culprit whose instructions changed by the first of the last pair; the second is the two-sided p of
    /// the metric that is judged. The changes are those of CPU, throughput and the placebo.
    pub fn new(
        run: String,
        is_finished: bool,
        blocks: u32,
        (cpu, throughput, placebo): (Option<TimeChange>, Option<TimeChange>, Option<TimeChange>),
        (by_count, p): (f64, Option<f64>),
    ) -> Self {
        // More throughput is less time.
        let turned = |change: TimeChange| TimeChange {
            change: -change.change,
            ci95: change.ci95.map(|(low, high)| (-high, -low)),
        };
        let cost = cpu.or(throughput.map(turned));
        let p = cost.zip(p).map(|(cost, p)| {
            let same_way = cost.change.signum() * by_count.signum() > 0.0;
            if same_way { p / 2.0 } else { 1.0 - p / 2.0 }
        });
        let says = match (cost.and_then(|cost| cost.ci95), p) {
            _ if !is_finished => TimeSays::Unfinished,
            (Some(ci95), Some(p)) => says(ci95, p),
            // Fewer than two blocks count, because other load disturbed the rest.
            _ => TimeSays::NotShown,
        };
        Self {
            run,
            blocks,
            cpu,
            throughput,
            placebo,
            p,
            says,
        }
    }

    /// The figures and what they say, a sentence each.
    pub fn texts(&self) -> Vec<String> {
        let named = [
            ("CPU per operation", self.cpu),
            ("throughput", self.throughput),
            ("placebo", self.placebo),
        ];
        let figures: Vec<String> = named
            .into_iter()
            .filter_map(|(name, change)| Some(format!("{name} {}", change?.words())))
            .collect();
        let p = self
            .p
            .map_or_else(String::new, |p| format!(", one-sided p {}", p_value(p)));
        let blocks = self.blocks;
        let figures = match figures.is_empty() {
            true => "nothing measured".to_owned(),
            false => format!("{}{p}; {blocks} blocks", figures.join(", ")),
        };
        vec![format!("in time: {figures}"), self.says.words()]
    }
}

impl TimeChange {
    /// `+0.9 % [+0.5, +1.3]`.
    pub fn words(&self) -> String {
        let one = |share: f64| format!("{:+.1}", share * 100.0);
        let ci95 = self.ci95.map_or_else(String::new, |(low, high)| {
            format!(" [{}, {}]", one(low), one(high))
        });
        format!("{} %{ci95}", one(self.change))
    }
}

impl TimeSays {
    /// A sentence.
    pub fn words(self) -> String {
        let layout = LAYOUT * 100.0;
        match self {
            Self::Agrees => "time shows it too".to_owned(),
            Self::Layout => format!(
                "time shows a difference, but the layout of code alone can make one of {layout:.0} %: time \
                 cannot tell"
            ),
            Self::Opposite => {
                "time changed the other way: instructions are not what counts here".to_owned()
            }
            Self::NotShown => format!(
                "time does not show it: chance gives as much, and the layout of code alone about \
                 {layout:.0} %"
            ),
            Self::Unfinished => "its measurement in time did not come to its end".to_owned(),
        }
    }
}

fn says((low, high): (f64, f64), p: f64) -> TimeSays {
    let is_beyond = low.abs().min(high.abs()) >= LAYOUT && low.signum() * high.signum() > 0.0;
    match (p <= SHOWN, p >= 1.0 - SHOWN) {
        (true, _) if is_beyond => TimeSays::Agrees,
        (true, _) => TimeSays::Layout,
        (_, true) if is_beyond => TimeSays::Opposite,
        _ => TimeSays::NotShown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(change: f64, half: f64) -> Option<TimeChange> {
        Some(TimeChange {
            change,
            ci95: Some((change - half, change + half)),
        })
    }

    /// A culprit that takes more instructions, by CPU per operation.
    fn of(cpu: f64, half: f64, p: f64) -> InTime {
        let changes = (change(cpu, half), change(-cpu, half), change(0.001, half));
        InTime::new("r".to_owned(), true, 12, changes, (0.02, Some(p)))
    }

    #[test]
    fn time_agrees_only_beyond_chance_and_beyond_what_layout_can_do() {
        assert_eq!(of(0.02, 0.005, 1e-4).says, TimeSays::Agrees);
        assert_eq!(of(0.02, 0.015, 1e-4).says, TimeSays::Layout);
        assert_eq!(of(0.02, 0.03, 0.2).says, TimeSays::NotShown);
        assert_eq!(of(-0.02, 0.005, 1e-4).says, TimeSays::Opposite);
        assert_eq!(of(-0.005, 0.001, 1e-4).says, TimeSays::NotShown);
    }

    #[test]
    fn p_is_that_of_the_direction_of_the_count() {
        let p = |cpu: f64| of(cpu, 0.01, 0.04).p.unwrap();
        assert!((p(0.02) - 0.02).abs() < 1e-12);
        assert!((p(-0.02) - 0.98).abs() < 1e-12);
    }

    #[test]
    fn without_cpu_throughput_answers_and_a_run_that_goes_on_says_nothing() {
        let of = |is_finished| {
            let changes = (None, change(-0.05, 0.01), None);
            InTime::new("r".to_owned(), is_finished, 3, changes, (0.04, Some(1e-6)))
        };
        assert_eq!(of(true).says, TimeSays::Agrees);
        assert_eq!(of(false).says, TimeSays::Unfinished);
        let one_block = TimeChange {
            change: 0.3,
            ci95: None,
        };
        let changes = (Some(one_block), None, None);
        let of_one = InTime::new("r".to_owned(), true, 1, changes, (0.04, None));
        assert_eq!(of_one.says, TimeSays::NotShown);
        let texts = of(true).texts();
        assert!(
            texts[0].starts_with("in time: throughput -5.0 % [-6.0, -4.0], one-sided p"),
            "{texts:?}"
        );
        assert!(texts[0].ends_with("; 3 blocks"));
    }
}
