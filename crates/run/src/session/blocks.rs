//! The loop over all blocks, the same for every kind of benchmark.

use super::benchmark::{BlockEnd, BlockOrder, Blocks};
use super::progress::RunProgress;
use super::{Session, SessionEnd, store_problem};
use crate::events::BlockProgress;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_compare::{Records, analyse, blocks_needed, words};
use deltabench_model::fact::TimeUp;
use deltabench_model::plan::{CellId, Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use std::sync::atomic::Ordering;

/// That the time allowed is too short for a verdict, by what the first block took; nothing where the blocks
/// of the plan are too few for one.
fn few_blocks(plan: &Plan, elapsed: f64, block: f64) -> Option<String> {
    if u64::from(plan.timing.blocks) < count(MIN_BLOCKS) {
        return None;
    }
    let left = plan.timing.deadline_seconds? - elapsed;
    let needed = block * to_f64(blocks_needed(plan) - 1);
    (left < needed).then(|| {
        format!(
            "there are {:.1} min left, but the other blocks that a verdict needs take {:.1} min: allow more \
             time, or measure fewer cells",
            left.max(0.0) / 60.0,
            needed / 60.0
        )
    })
}

/// What came of a block.
enum Went {
    On,
    TimeUp,
    Interrupted,
}

impl Session<'_> {
    /// Goes through all blocks in which a cell is still open; what was postponed is begun again after the
    /// last one, until too many servers were lost.
    pub(super) fn blocks(
        &mut self,
        blocks: &mut dyn Blocks,
        progress: &mut RunProgress,
    ) -> Result<SessionEnd, Problem> {
        loop {
            progress.postponed.clear();
            for block in 0.. {
                let open = self.open_cells(block, &progress.slices);
                if open.is_empty() {
                    break;
                }
                if !progress.has_left(block, &open) {
                    continue;
                }
                let order = BlockOrder { block, open: &open };
                match self.one_block(order, blocks, progress)? {
                    Went::On => {}
                    Went::TimeUp => return Ok(SessionEnd::Finished),
                    Went::Interrupted => return Ok(SessionEnd::Interrupted),
                }
            }
            if progress.postponed.is_empty() {
                return Ok(SessionEnd::Finished);
            }
            self.observer.note(self.benchmark.begun_again());
        }
    }

    /// Measures what is left of a block, tells where the run stands, and looks at the time.
    fn one_block(
        &mut self,
        order: BlockOrder<'_>,
        blocks: &mut dyn Blocks,
        progress: &mut RunProgress,
    ) -> Result<Went, Problem> {
        let BlockOrder { block, open } = order;
        let started = self.clock.now();
        while progress.has_left(block, open) {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(Went::Interrupted);
            }
            self.observer.doing("starting the servers");
            match blocks.block(self, order, progress)? {
                BlockEnd::GoneThrough => {}
                BlockEnd::Postponed => {
                    progress.postponed.insert(block);
                    break;
                }
                BlockEnd::TimeUp => {
                    let note = format!(
                        "the time is up in the middle of block {}: it took longer than all the time that \
                         was allowed for it",
                        block + 1
                    );
                    self.observer.note(&note);
                    self.fact(None, &TimeUp(progress.reached))?;
                    return Ok(Went::TimeUp);
                }
                BlockEnd::Interrupted => return Ok(Went::Interrupted),
            }
        }
        let last = self.clock.since(started);
        progress.block_took(block, last);
        let is_over = self.report(block, progress)?;
        let elapsed = self.clock.since(self.began);
        let deadline = self.plan.timing.deadline_seconds;
        // What is looked at before the last block may be looked at differently when it is the last.
        let matters = !is_over || self.plan.stopping != Stopping::Fixed;
        if progress.reached == 1 && !is_over && !self.pilot {
            let note = few_blocks(self.plan, elapsed, last);
            note.into_iter().for_each(|note| self.observer.note(&note));
        }
        if matters && deadline.is_some_and(|deadline| elapsed + last > deadline) {
            self.observer.note("the time is up");
            // Known before any result of it: the last look is at what there is.
            self.fact(None, &TimeUp(progress.reached))?;
            return Ok(Went::TimeUp);
        }
        Ok(Went::On)
    }

    /// Says that a cell is measured from now on.
    pub fn doing(&mut self, cell: CellId) {
        if let Some(planned) = self.plan.cell(cell) {
            let workers = words::workers(self.plan, planned.clients);
            self.observer
                .doing(&format!("{} at {workers}", planned.workload));
        }
    }

    /// The cells that a block measures, by the slices of the blocks before it.
    fn open_cells(&self, block: u32, slices: &[Slice]) -> Vec<CellId> {
        let known = slices.partition_point(|slice| slice.block < block);
        let before = slices.get(..known).unwrap_or_default();
        self.benchmark.open_cells(self.plan, block, before)
    }

    /// Cells that go on after a block.
    fn open_after(&self, block: u32, progress: &RunProgress) -> Vec<CellId> {
        if !progress.postponed.is_empty() {
            return CellId::each().take(self.plan.cells.len()).collect();
        }
        let next = (block + 1..).map(|block| (block, self.open_cells(block, &progress.slices)));
        let mut left =
            next.skip_while(|(block, open)| !open.is_empty() && !progress.has_left(*block, open));
        left.next().map_or_else(Vec::new, |(_, open)| open)
    }

    /// What the data say so far, as the report will.
    fn comparison(&self, slices: &[Slice]) -> Result<Comparison, Problem> {
        let reader = self.benchmark.reader();
        let read_too = reader.reads_too();
        let findings = self.store.findings(self.run).map_err(store_problem)?;
        let (mut counters, mut recorded) = (Vec::new(), Vec::new());
        if read_too.counters {
            counters = self.store.counters(self.run).map_err(store_problem)?;
        }
        if read_too.records {
            recorded = self.store.records(self.run).map_err(store_problem)?;
        }
        let records = Records {
            slices,
            findings: &findings,
            counters: &counters,
            records: &recorded,
        };
        let reading = reader.read(self.plan, &records)?;
        Ok(analyse(self.plan, slices, reading))
    }

    /// Tells where the run stands after a block, and whether it is over.
    fn report(&mut self, block: u32, progress: &RunProgress) -> Result<bool, Problem> {
        let comparison = match progress.slices.is_empty() {
            true => None,
            false => Some(self.comparison(&progress.slices)?),
        };
        let open = self.open_after(block, progress);
        let cells = &self.plan.cells;
        let timing = &self.plan.timing;
        let postponed = u32::try_from(progress.postponed.len()).unwrap_or(u32::MAX);
        let left = timing.blocks.saturating_sub(block + 1);
        let left = left.saturating_add(postponed).max(1);
        let elapsed = self.clock.since(self.began);
        let remaining = if open.is_empty() {
            0.0
        } else {
            let allowed = timing.deadline_seconds.unwrap_or(f64::INFINITY) - elapsed;
            let visits = u64::from(left) * count(open.len());
            progress.forecast(left, visits).min(allowed.max(0.0))
        };
        self.observer.block(&BlockProgress {
            done: progress.reached,
            planned: timing.blocks,
            open_cells: u32::try_from(open.len()).unwrap_or(u32::MAX),
            cells: u32::try_from(cells.len()).unwrap_or(u32::MAX),
            worker: self.plan.work.worker(),
            elapsed_seconds: elapsed,
            remaining_seconds: remaining,
            passes: self.plan.work.has_passes(),
            comparison,
        });
        Ok(open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::few_blocks;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::Stopping;

    #[test]
    fn the_first_block_says_whether_the_time_is_enough_for_a_verdict() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.timing.blocks = 12;
        assert_eq!(few_blocks(&plan, 10.0, 100.0), None, "no time is set");
        plan.timing.deadline_seconds = Some(560.0);
        assert_eq!(few_blocks(&plan, 60.0, 100.0), None);
        let note = few_blocks(&plan, 90.0, 100.0).unwrap();
        assert!(
            note.contains("7.8 min left") && note.contains("take 8.3 min"),
            "{note}"
        );
        // A cell may have its width after as many.
        plan.stopping = Stopping::Precision { half_width: 0.01 };
        assert_eq!(few_blocks(&plan, 90.0, 100.0), Some(note));
        plan.timing.blocks = 3;
        let told = few_blocks(&plan, 500.0, 100.0);
        assert_eq!(told, None, "no time would make it six blocks");
    }
}
