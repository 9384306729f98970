//! A culprit in time: what a run next to its parent says beside the count.

use crate::remarks::LAYOUT;
use crate::words::p_value;
use deltabench_model::bisection::FEWEST_CULPRIT_BLOCKS;
use serde::Serialize;

/// One-sided p up to which time shows a culprit.
/// Source: as for differences of which there is one question only; a culprit is named by its count already.
const SHOWN: f64 = 0.01;

/// What a run measured of a culprit next to its parent.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// The run.
    pub run: String,
    pub is_finished: bool,
    /// Blocks that count.
    pub blocks: u32,
    pub clients: u32,
    /// Rows of the data.
    pub rows: u64,
    /// Whether throughput is judged, because the search was by it or CPU is not known; else CPU is.
    pub by_throughput: bool,
    pub cpu: Option<TimeChange>,
    pub throughput: Option<TimeChange>,
    /// By the metric that is judged.
    pub placebo: Option<TimeChange>,
    /// Two-sided p of the metric that is judged.
    pub p: Option<f64>,
    /// Why the run is unfit, or was withdrawn.
    pub unfit: Option<String>,
}

/// A culprit next to its parent, in a run with fresh blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InTime {
    /// The run.
    pub run: String,
    /// Blocks that count.
    pub blocks: u32,
    pub clients: u32,
    /// Rows of the data: those of a count, which may be fewer than those of the run that it explains.
    pub rows: u64,
    /// CPU of the server for each operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<TimeChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<TimeChange>,
    /// A second copy of the parent, by CPU per operation; by throughput where that is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placebo: Option<TimeChange>,
    /// One-sided p of "it does not cost more" for a culprit that takes more instructions, "not less" for one
    /// that takes fewer.
    pub p: Option<f64>,
    /// Whether throughput is judged; else CPU per operation is.
    pub by_throughput: bool,
    pub says: TimeSays,
    /// Why it cannot be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
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
    /// It changed the other way, by as little as the layout of code alone can do.
    OppositeLayout,
    /// Chance gives as much.
    NotShown,
    /// The run is unfit, its placebo differs, or too few blocks count.
    Untrusted,
    /// The run did not come to its end.
    Unfinished,
}

impl InTime {
    /// A culprit whose instructions changed by this share.
    pub fn new(timed: Timed, by_count: f64) -> Self {
        let cost = cost(timed.by_throughput, timed.cpu, timed.throughput);
        let p = cost.zip(timed.p).map(|(cost, p)| {
            let same_way = cost.change.signum() * by_count.signum() > 0.0;
            if same_way { p / 2.0 } else { 1.0 - p / 2.0 }
        });
        let doubt = doubt(&timed).filter(|_| timed.is_finished);
        let says = match (cost.and_then(|cost| cost.ci95), p) {
            _ if !timed.is_finished => TimeSays::Unfinished,
            (Some(ci95), Some(p)) if doubt.is_none() => says(ci95, p),
            _ => TimeSays::Untrusted,
        };
        Self {
            run: timed.run,
            blocks: timed.blocks,
            clients: timed.clients,
            rows: timed.rows,
            cpu: timed.cpu,
            throughput: timed.throughput,
            placebo: timed.placebo,
            p,
            by_throughput: timed.by_throughput,
            says,
            doubt,
        }
    }

    /// The change of what an operation costs, by the metric that is judged.
    pub fn cost(&self) -> Option<TimeChange> {
        cost(self.by_throughput, self.cpu, self.throughput)
    }

    /// The figures and what they say, a sentence each; `again` if the search itself was by time, so that
    /// these are fresh blocks of what it found.
    pub fn texts(&self, again: bool) -> Vec<String> {
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
        let figures = match figures.is_empty() {
            true => "nothing measured".to_owned(),
            false => format!("{}{p}", figures.join(", ")),
        };
        let (blocks, clients, rows) = (self.blocks, self.clients, self.rows);
        let clients = match clients {
            1 => "1 client".to_owned(),
            many => format!("{many} clients"),
        };
        vec![
            format!("in time: {figures}; {blocks} blocks, {clients}, {rows} rows"),
            self.sentence(again),
        ]
    }

    /// What time says.
    fn sentence(&self, again: bool) -> String {
        let layout = LAYOUT * 100.0;
        let cost = self.cost().and_then(|cost| cost.ci95);
        let between = cost.map_or_else(String::new, |(low, high)| {
            format!(" of {:+.1} to {:+.1} %", low * 100.0, high * 100.0)
        });
        let can_be_layout =
            format!("up to {layout:.0} % can be the layout of code alone: time cannot tell");
        match self.says {
            TimeSays::Agrees if again => "these fresh blocks show it, too".to_owned(),
            TimeSays::Agrees => "time shows it too".to_owned(),
            TimeSays::Layout if again => format!(
                "these fresh blocks show a cost{between}, and up to {layout:.0} % can be the layout of code \
                 alone: nobody is convicted"
            ),
            TimeSays::Layout => format!("time shows a cost{between}; {can_be_layout}"),
            TimeSays::Opposite | TimeSays::OppositeLayout if again => {
                "these fresh blocks show the opposite: nobody is convicted".to_owned()
            }
            TimeSays::Untrusted if again => format!(
                "these fresh blocks cannot be trusted, and nobody is convicted: {}",
                self.doubt.as_deref().unwrap_or("there is no interval")
            ),
            TimeSays::NotShown if again => {
                "these fresh blocks do not show it: nobody is convicted".to_owned()
            }
            TimeSays::Opposite => {
                "time changed the other way: instructions are not what counts here".to_owned()
            }
            TimeSays::OppositeLayout => {
                format!("time changed the other way, a cost{between}; {can_be_layout}")
            }
            TimeSays::NotShown => format!(
                "time does not show it: chance gives as much, and the layout of code alone about \
                 {layout:.0} %"
            ),
            TimeSays::Untrusted => format!(
                "time cannot be trusted: {}",
                self.doubt.as_deref().unwrap_or("there is no interval")
            ),
            TimeSays::Unfinished => "its measurement in time did not come to its end".to_owned(),
        }
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

/// The change of what an operation costs: CPU, or throughput turned around, because more of it is less time.
fn cost(
    by_throughput: bool,
    cpu: Option<TimeChange>,
    throughput: Option<TimeChange>,
) -> Option<TimeChange> {
    let turned = |change: TimeChange| TimeChange {
        change: -change.change,
        ci95: change.ci95.map(|(low, high)| (-high, -low)),
    };
    cpu.filter(|_| !by_throughput)
        .or_else(|| throughput.map(turned))
}

/// Why what was measured says nothing.
fn doubt(timed: &Timed) -> Option<String> {
    let of_placebo = timed.placebo.and_then(|placebo| {
        let (low, high) = placebo.ci95?;
        let differs = low > 0.0 || high < 0.0;
        differs.then(|| "two copies of the parent differ (placebo)".to_owned())
    });
    let too_few = || {
        (timed.blocks < FEWEST_CULPRIT_BLOCKS)
            .then(|| format!("fewer than {FEWEST_CULPRIT_BLOCKS} blocks count, which is too few"))
    };
    timed.unfit.clone().or(of_placebo).or_else(too_few)
}

fn says((low, high): (f64, f64), p: f64) -> TimeSays {
    let is_beyond = low.abs().min(high.abs()) >= LAYOUT && low.signum() * high.signum() > 0.0;
    match (p <= SHOWN, p >= 1.0 - SHOWN) {
        (true, _) if is_beyond => TimeSays::Agrees,
        (true, _) => TimeSays::Layout,
        (_, true) if is_beyond => TimeSays::Opposite,
        (_, true) => TimeSays::OppositeLayout,
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

    fn timed(cpu: f64, half: f64, p: f64) -> Timed {
        Timed {
            run: "r".to_owned(),
            is_finished: true,
            blocks: 12,
            clients: 1,
            rows: 20_000,
            by_throughput: false,
            cpu: change(cpu, half),
            throughput: change(-cpu, half),
            placebo: change(0.001, half.max(0.002)),
            p: Some(p),
            unfit: None,
        }
    }

    /// A culprit that takes more instructions, by CPU per operation.
    fn of(cpu: f64, half: f64, p: f64) -> InTime {
        InTime::new(timed(cpu, half, p), 0.02)
    }

    #[test]
    fn time_agrees_only_beyond_chance_and_beyond_what_layout_can_do() {
        assert_eq!(of(0.02, 0.005, 1e-4).says, TimeSays::Agrees);
        assert_eq!(of(0.02, 0.015, 1e-4).says, TimeSays::Layout);
        assert_eq!(of(0.02, 0.03, 0.2).says, TimeSays::NotShown);
        assert_eq!(of(-0.02, 0.005, 1e-4).says, TimeSays::Opposite);
        let small = of(-0.005, 0.001, 1e-4);
        assert_eq!(small.says, TimeSays::OppositeLayout);
        assert!(
            !small.texts(false)[1].contains("chance"),
            "{:?}",
            small.texts(false)
        );
        let wide = of(0.04, 0.031, 1e-4).texts(false);
        assert!(
            wide[1].contains("a cost of +0.9 to +7.1 %; up to 1 %"),
            "{wide:?}"
        );
    }

    #[test]
    fn fresh_blocks_of_a_search_by_time_convict_or_do_not() {
        let said = |cpu: f64, half: f64, p: f64| of(cpu, half, p).texts(true)[1].clone();
        assert!(said(0.02, 0.005, 1e-4).contains("show it, too"));
        assert!(said(0.02, 0.03, 0.2).contains("nobody is convicted"));
        assert!(said(-0.02, 0.005, 1e-4).contains("opposite: nobody"));
    }

    #[test]
    fn a_search_by_throughput_is_judged_by_it() {
        let waits = |by_throughput| {
            let timed = Timed {
                by_throughput,
                throughput: change(-0.2, 0.01),
                ..timed(0.0, 0.005, 1e-6)
            };
            InTime::new(timed, 0.2).says
        };
        assert_eq!(waits(true), TimeSays::Agrees);
        assert_ne!(waits(false), TimeSays::Agrees);
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
            let timed = Timed {
                is_finished,
                cpu: None,
                throughput: change(-0.05, 0.01),
                placebo: None,
                ..timed(0.0, 0.0, 1e-6)
            };
            InTime::new(timed, 0.04)
        };
        assert_eq!(of(true).says, TimeSays::Agrees);
        assert_eq!(of(false).says, TimeSays::Unfinished);
        let texts = of(true).texts(false);
        assert!(
            texts[0].starts_with("in time: throughput -5.0 % [-6.0, -4.0], one-sided p"),
            "{texts:?}"
        );
        assert!(
            texts[0].ends_with("; 12 blocks, 1 client, 20000 rows"),
            "{texts:?}"
        );
    }

    #[test]
    fn an_unfit_run_a_placebo_that_differs_and_a_few_blocks_are_not_trusted() {
        let said = |change: &dyn Fn(&mut Timed)| {
            let mut timed = timed(0.05, 0.005, 1e-6);
            change(&mut timed);
            InTime::new(timed, 0.02)
        };
        assert_eq!(said(&|_| {}).says, TimeSays::Agrees);
        let unfit = said(&|timed| timed.unfit = Some("the host swapped".to_owned()));
        let of_placebo = said(&|timed| timed.placebo = change(-0.02, 0.01));
        let few = said(&|timed| timed.blocks = FEWEST_CULPRIT_BLOCKS - 1);
        let nothing = said(&|timed| (timed.blocks, timed.cpu, timed.throughput) = (0, None, None));
        for (one, why) in [
            (unfit, "the host swapped"),
            (of_placebo, "placebo"),
            (few, "fewer than 6 blocks"),
            (nothing, "fewer than 6 blocks"),
        ] {
            assert_eq!(one.says, TimeSays::Untrusted);
            let texts = one.texts(false);
            assert!(
                texts[1].contains("cannot be trusted") && texts[1].contains(why),
                "{texts:?}"
            );
        }
    }
}
