//! A line about each step that has ended.

use super::record::StepRecord;
use deltabench_model::plan::Plan;
use deltabench_model::units::{seconds, to_f64};
use deltabench_model::work::insert::{InsertSetup, InsertStep, SLA_SHARE};

/// What a step measured on one server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepProgress {
    /// Block, from 0: one pass on every server.
    block: u32,
    /// Blocks of the plan.
    blocks: u32,
    /// The server's name.
    server: String,
    /// The step's.
    step: String,
    /// What it took.
    seconds: f64,
    /// Its throughput, in published units.
    rate: f64,
    /// The unit.
    unit: String,
    /// Rows inserted beside queries per second, by all clients, and how many should be.
    background: Option<(f64, f64)>,
    /// Why it does not count.
    void: Option<String>,
}

impl StepProgress {
    /// The line.
    pub(super) fn line(&self) -> String {
        let head = format!(
            "pass {}/{}, {}: {:<6}",
            self.block + 1,
            self.blocks,
            self.server,
            self.step
        );
        if let Some(void) = &self.void {
            return format!("{head} does not count: {void}");
        }
        let mut line = format!(
            "{head} {:>7.1} s {:>9.0} {}",
            self.seconds, self.rate, self.unit
        );
        if let Some((kept, target)) = self.background {
            line.push_str(&format!(
                ", {kept:.0} of {target:.0} rows/s in the background"
            ));
            if kept < SLA_SHARE * target {
                line.push_str(" (SLA missed)");
            }
        }
        line
    }
}

/// What a record says of its step.
pub(super) fn progress_of(
    plan: &Plan,
    setup: &InsertSetup,
    record: &StepRecord,
    step: InsertStep,
) -> StepProgress {
    let cell = plan.cell(record.cell);
    let took = seconds(record.duration_ns);
    let factor = setup.published_per_operation(step);
    let rate = to_f64(record.operations) * factor / took.max(1e-9);
    let inserted: u64 = record.seconds.iter().map(|second| second.inserted).sum();
    StepProgress {
        block: record.block,
        blocks: plan.timing.blocks,
        server: plan.server_name(record.server),
        step: step.name(),
        seconds: took,
        rate,
        unit: cell.map_or_else(String::new, |cell| cell.published.unit.clone()),
        background: step.rate().map(|target| {
            let wanted = f64::from(target) * f64::from(setup.clients);
            (to_f64(inserted) / took.max(1e-9), wanted)
        }),
        void: record.void_detail.clone().filter(|_| record.void.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_what_it_came_to_and_whether_its_rate_was_kept() {
        let mut step = StepProgress {
            block: 0,
            blocks: 3,
            server: "base".to_owned(),
            step: "qr100".to_owned(),
            seconds: 20.04,
            rate: 5432.1,
            unit: "queries/s".to_owned(),
            background: Some((96.0, 100.0)),
            void: None,
        };
        assert_eq!(
            step.line(),
            "pass 1/3, base: qr100     20.0 s      5432 queries/s, 96 of 100 rows/s in the background"
        );
        step.background = Some((94.0, 100.0));
        assert!(step.line().ends_with("(SLA missed)"));
        step.void = Some("no answer".to_owned());
        assert_eq!(
            step.line(),
            "pass 1/3, base: qr100  does not count: no answer"
        );
    }
}
