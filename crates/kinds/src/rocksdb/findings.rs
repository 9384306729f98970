//! What only the measurement shows of its own fairness.

use super::caches::cache_of;
use deltabench_compare::interference::disturbed;
use deltabench_compare::is_whole_step;
use deltabench_compare::thresholds::{LSM_FILES, LSM_TOLERANCE, WORK_TOLERANCE};
use deltabench_compare::words;
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::rocksdb::RocksdbStep;

/// All of them, for each candidate against the base.
pub(super) fn findings(plan: &Plan, slices: &[Slice], counters: &[VisitCounters]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for candidate in plan.candidates() {
        let sides = Sides {
            plan,
            counters,
            base: plan.base(),
            candidate,
        };
        found.extend(sides.other_work());
        found.extend(sides.other_shape());
    }
    found.extend(disturbances(plan, slices));
    found
}

/// A candidate and the base.
struct Sides<'a> {
    plan: &'a Plan,
    counters: &'a [VisitCounters],
    base: ServerId,
    candidate: ServerId,
}

impl Sides<'_> {
    /// Steps that only read and looked up another number of blocks for the same keys, or did not find as many
    /// of them in the block cache.
    ///
    /// Where caches are of two kinds, what they hold is what is measured: hits and misses change places, but
    /// their sum does not. Caches of one kind have to hold the same.
    fn other_work(&self) -> Option<Finding> {
        let for_each = |amount: f64, visit: &VisitCounters| {
            (visit.operations > 0).then(|| amount / to_f64(visit.operations))
        };
        let of = |visit: &VisitCounters, key: &str| visit.values.get(key).copied();
        let missed = |visit: &VisitCounters| for_each(of(visit, "block_cache_misses")?, visit);
        let touched = |visit: &VisitCounters| {
            let all = of(visit, "block_cache_hits")? + of(visit, "block_cache_misses")?;
            for_each(all, visit)
        };
        let (left, right) = (self.name(self.base), self.name(self.candidate));
        let one_kind = self.have_one_kind_of_cache();
        let texts = self.texts(only_reads, |cell| {
            let (base, candidate) = self.means(cell, touched)?;
            let by = candidate / base - 1.0;
            if base > 0.0 && by.abs() > WORK_TOLERANCE {
                let by = words::signed(by);
                return Some(format!(
                    "{base:.2} in {left}, {candidate:.2} in {right} ({by})"
                ));
            }
            let (before, after) = self.means(cell, missed).filter(|_| one_kind)?;
            let by = (after - before) / base;
            (base > 0.0 && by.abs() > WORK_TOLERANCE).then(|| {
                format!(
                    "of {base:.2} not in the cache {before:.2} in {left}, {after:.2} in {right} ({} of all)",
                    words::signed(by)
                )
            })
        });
        self.finding(
            FindingKind::own("other-work"),
            "the same keys took another number of blocks for an operation, or found fewer or more of them in \
             the block cache, so it is not the same work",
            &texts,
        )
    }

    fn have_one_kind_of_cache(&self) -> bool {
        let cache = |server: ServerId| {
            let planned = self.plan.server(server);
            planned.map(cache_of)
        };
        cache(self.base) == cache(self.candidate)
    }

    /// Trees of another size, or with other files in level 0, where they are read.
    fn other_shape(&self) -> Option<Finding> {
        let gauge = |key: &'static str| move |visit: &VisitCounters| visit.values.get(key).copied();
        let texts = self.texts(reads, |cell| {
            let mut parts = Vec::new();
            if let Some((base, candidate)) = self.means(cell, gauge("lsm_bytes")) {
                let by = candidate / base - 1.0;
                let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / 1_048_576.0);
                if base > 0.0 && by.abs() > LSM_TOLERANCE {
                    parts.push(format!(
                        "{} in {}, {} in {} ({})",
                        mebibytes(base),
                        self.name(self.base),
                        mebibytes(candidate),
                        self.name(self.candidate),
                        words::signed(by)
                    ));
                }
            }
            if let Some((base, candidate)) = self.means(cell, gauge("l0_files"))
                && (candidate - base).abs() > LSM_FILES
            {
                parts.push(format!(
                    "{base:.1} files in level 0 of {}, {candidate:.1} of {}",
                    self.name(self.base),
                    self.name(self.candidate)
                ));
            }
            (!parts.is_empty()).then(|| parts.join(", "))
        });
        self.finding(
            FindingKind::own("lsm-shape-differs"),
            "the trees that were read differ in shape",
            &texts,
        )
    }

    /// What there is to say of each cell of a kind.
    fn texts(
        &self,
        of_interest: fn(&Cell) -> bool,
        text: impl Fn(CellId) -> Option<String>,
    ) -> Vec<String> {
        let cells = CellId::each().zip(&self.plan.cells);
        cells
            .filter(|(_, cell)| of_interest(cell))
            .filter_map(|(id, _)| Some(format!("{}: {}", cell_name(self.plan, id), text(id)?)))
            .collect()
    }

    /// Means over the blocks of a cell that both sides know.
    fn means(
        &self,
        cell: CellId,
        of: impl Fn(&VisitCounters) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        let value = |server: ServerId, block: u32| {
            let mut visits = self.counters.iter().rev();
            let place = (server, cell, block);
            of(visits.find(|visit| (visit.server, visit.cell, visit.block) == place)?)
        };
        let both: Vec<(f64, f64)> = (0..self.plan.timing.blocks)
            .filter_map(|block| Some((value(self.base, block)?, value(self.candidate, block)?)))
            .collect();
        let number = to_f64(count(both.len()));
        let sum = both
            .iter()
            .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (number > 0.0).then(|| (sum.0 / number, sum.1 / number))
    }

    fn name(&self, server: ServerId) -> String {
        self.plan.server_name(server)
    }

    fn finding(&self, kind: FindingKind, before: &str, texts: &[String]) -> Option<Finding> {
        (!texts.is_empty()).then(|| {
            Finding::new(
                kind,
                Severity::Confounder,
                format!("{before}: {}", listed(texts)),
            )
        })
    }
}

/// Whether a step leaves the tree as it is.
fn only_reads(cell: &Cell) -> bool {
    reads(cell)
        && RocksdbStep::from_name(&cell.workload).is_some_and(|step| !step.beside_a_writer())
}

fn reads(cell: &Cell) -> bool {
    !cell.writes
}

fn cell_name(plan: &Plan, cell: CellId) -> String {
    let planned = plan.cell(cell);
    planned.map_or_else(
        || "?".to_owned(),
        |cell| {
            format!(
                "{} at {}",
                cell.workload,
                words::things(cell.clients, "thread")
            )
        },
    )
}

/// Items that one sentence has room for.
const NAMED: usize = 6;

fn listed(texts: &[String]) -> String {
    let named: Vec<&str> = texts.iter().take(NAMED).map(String::as_str).collect();
    let more = match texts.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", named.join("; "))
}

/// The whole steps that other load disturbed: none is left out, as that would leave out its block.
fn disturbances(plan: &Plan, slices: &[Slice]) -> Option<Finding> {
    let is_whole = |slice: &Slice| {
        let planned = plan.cell(slice.cell);
        planned.is_some_and(|cell| is_whole_step(plan, cell))
    };
    let good = slices
        .iter()
        .filter(|slice| slice.void.is_none() && is_whole(slice));
    let number = good.clone().count();
    let texts: Vec<String> = good
        .filter(|slice| disturbed(std::iter::once(*slice)))
        .map(|slice| {
            format!(
                "{} on {} in block {}",
                cell_name(plan, slice.cell),
                plan.server_name(slice.server),
                slice.block + 1
            )
        })
        .collect();
    (!texts.is_empty()).then(|| {
        let text = format!(
            "other load disturbed {} of {number} whole steps, and none was left out: {}",
            texts.len(),
            listed(&texts)
        );
        Finding::new(FindingKind::own("disturbed-steps"), Severity::Note, text)
    })
}
