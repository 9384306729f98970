//! Where the servers' time went, from the samples of a run.

use crate::records::Records;
use crate::store_problem;
use crate::withdrawal::is_withdrawn;
use deltabench_compare::is_whole_step;
use deltabench_explain::sampled::{SampledBlock, SampledSide, cost, judged};
use deltabench_model::plan::{CellId, Plan, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::sampled::{KIND, ProfileScope, SampledCell, SampledStacks, SampledTime};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_store::{Store, StoreError};
use std::collections::BTreeMap;

/// A server in a block of a cell.
type Place = (CellId, u32, ServerId);

/// What was sampled of a run: by itself, and once it was over by runs that sample for it. Of a cell that
/// several of them have the latest is taken that is not withdrawn.
///
/// Errors: a record that is damaged, a store that cannot be read.
pub(crate) fn of_run(
    run: &str,
    records: &Records,
    plan: &Plan,
    store: &Store,
) -> Result<Vec<SampledCell>, Problem> {
    let mut found = sampled(&records.records, &records.slices, plan)?;
    for name in store.sampling_for(run).map_err(store_problem)? {
        let later = in_run(&name, store).map_err(store_problem)?;
        let (theirs, records, slices) = later;
        let theirs = theirs.relative_to(plan.base());
        let withdrawn = store.invalidations(&name).map_err(store_problem)?;
        let found_there = sampled(&records, &slices, &theirs)?.into_iter();
        for one in found_there.filter(|one| !is_withdrawn(&withdrawn, one.cell)) {
            // Their servers are the run's own, and their cells some of its cells.
            let planned = theirs.cell(one.cell);
            let mut cells = CellId::each().zip(&plan.cells);
            let Some((cell, _)) = cells.find(|(_, own)| Some(*own) == planned) else {
                continue;
            };
            found.retain(|known| (known.cell, known.candidate) != (cell, one.candidate));
            found.push(SampledCell { cell, ..one });
        }
    }
    Ok(found)
}

type Stored = (Plan, Vec<Record>, Vec<Slice>);

fn in_run(name: &str, store: &Store) -> Result<Stored, StoreError> {
    Ok((store.plan(name)?, store.records(name)?, store.slices(name)?))
}

/// The cells of which time was sampled in two blocks or more, for each candidate.
///
/// Errors: a record that is damaged.
fn sampled(records: &[Record], slices: &[Slice], plan: &Plan) -> Result<Vec<SampledCell>, Problem> {
    let mut stacks: BTreeMap<Place, SampledStacks> = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == KIND) {
        let place = (record.cell, record.block, record.server);
        stacks.insert(place, SampledStacks::from_payload(&record.payload)?);
    }
    if stacks.is_empty() {
        return Ok(Vec::new());
    }
    let sides = sides(stacks, slices);
    let servers = || ServerId::each().zip(&plan.servers);
    let placebo = servers().find(|(_, server)| server.role == Role::Placebo);
    let candidates = servers().filter(|(_, server)| server.role == Role::Candidate);
    let cells = || CellId::each().take(plan.cells.len());
    let of_placebo = |cell| {
        let (placebo, _) = placebo?;
        let copied = plan.compared_with(placebo);
        judged(&blocks(&sides, cell, &[copied], placebo), 0.0)
    };
    let placebos: Vec<Option<SampledTime>> = cells().map(of_placebo).collect();
    let mut found = Vec::new();
    for (candidate, _) in candidates {
        for (cell, placebo) in cells().zip(&placebos) {
            let lasting = placebo.as_ref().map_or(0.0, |placebo| placebo.lasting);
            let blocks = blocks(&sides, cell, &controls(plan, cell), candidate);
            if let Some(time) = judged(&blocks, lasting) {
                found.push(described(cell, candidate, time, placebo.clone(), &blocks));
            }
        }
    }
    Ok(found)
}

fn described(
    cell: CellId,
    candidate: ServerId,
    time: SampledTime,
    placebo: Option<SampledTime>,
    blocks: &[SampledBlock],
) -> SampledCell {
    let sides = || { blocks.iter() }.flat_map(|block| block.base.iter().chain([&block.other]));
    // All servers of a block were sampled in one visit, in the same way.
    let taken = || sides().map(|side| &side.stacks.taken);
    SampledCell {
        cell,
        candidate,
        time,
        placebo,
        biased: taken().any(|taken| taken.scope == ProfileScope::Process),
        rate: taken().map(|taken| taken.rate).min().unwrap_or(0),
        cost: cost(blocks),
        lost: taken().map(|taken| taken.lost).sum(),
    }
}

/// CPU of an operation in the slices of each place that count, beside its samples.
fn sides(stacks: BTreeMap<Place, SampledStacks>, slices: &[Slice]) -> BTreeMap<Place, SampledSide> {
    let mut spent: BTreeMap<Place, (u64, u64)> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.void.is_none()) {
        if let Some(cpu_ns) = slice.server_cpu_ns {
            let (sum, operations) = spent
                .entry((slice.cell, slice.block, slice.server))
                .or_default();
            *sum += cpu_ns;
            *operations += slice.operations;
        }
    }
    let side = |(place, stacks): (Place, SampledStacks)| {
        let (cpu_ns, operations) = *spent.get(&place)?;
        let operation_ns = to_f64(cpu_ns) / to_f64(operations.max(1));
        let side = SampledSide {
            operation_ns,
            stacks,
        };
        Some((place, side))
    };
    stacks.into_iter().filter_map(side).collect()
}

/// The copies of the base that candidates are compared with in a cell, as in their throughput.
fn controls(plan: &Plan, cell: CellId) -> Vec<ServerId> {
    let tied = plan
        .cell(cell)
        .is_some_and(|cell| !is_whole_step(plan, cell));
    let second = plan.second_control().filter(|_| tied);
    std::iter::once(plan.base()).chain(second).collect()
}

/// The blocks in which these servers were sampled.
fn blocks(
    sides: &BTreeMap<Place, SampledSide>,
    cell: CellId,
    base: &[ServerId],
    other: ServerId,
) -> Vec<SampledBlock> {
    let of_other = sides
        .iter()
        .filter(|((at, _, server), _)| *at == cell && *server == other);
    of_other
        .filter_map(|((_, block, _), other)| {
            let copies = base.iter().map(|copy| sides.get(&(cell, *block, *copy)));
            Some(SampledBlock {
                base: copies
                    .map(Option::<&SampledSide>::cloned)
                    .collect::<Option<_>>()?,
                other: other.clone(),
            })
        })
        .collect()
}
