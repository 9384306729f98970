//! What was counted for a run: by itself, or once it was over by runs that count for it.
//!
//! Such a run has the cells that were wanted, each with one client, and no placebo: its places are not those
//! of the run that it counts for.

use crate::withdrawal::is_withdrawn;
use deltabench_model::counts::CountRecord;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{Cell, CellId, Plan, Role, ServerId};
use deltabench_model::profile::Profile;
use deltabench_store::{RunState, Store, StoreError};
use std::collections::BTreeSet;

/// The cells that runs which are over have counted for a run, as far as their time allowed, in order.
///
/// Errors: the store cannot be read.
pub fn counted_cells(run: &str, plan: &Plan, store: &Store) -> Result<Vec<CellId>, StoreError> {
    let mut cells = BTreeSet::new();
    for name in store.counting_for(run)? {
        let reached = store.reached(&name)?;
        if reached.is_some_and(|reached| reached.state == RunState::Finished) {
            let (counting, withdrawn) = (store.plan(&name)?, store.invalidations(&name)?);
            cells.extend(common(plan, &counting, &withdrawn).map(|(cell, _)| cell));
        }
    }
    Ok(cells.into_iter().collect())
}

/// Where the counts of a cell are.
#[derive(Debug)]
struct Source {
    run: String,
    cell: CellId,
    counting: CellId,
    /// Each server here, and what the other run calls it.
    servers: Vec<(ServerId, ServerId)>,
}

/// What was counted for a run.
#[derive(Debug)]
pub(crate) struct Counted {
    /// All windows, as if the run had counted them itself.
    pub(crate) records: Vec<CountRecord>,
    sources: Vec<Source>,
}

impl Counted {
    /// Of a cell that several runs have counted the latest is taken that has all servers and is not
    /// withdrawn.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(run: &str, plan: &Plan, store: &Store) -> Result<Self, StoreError> {
        if plan.observing.counting.is_some() {
            return Self::by_itself(run, plan, store);
        }
        let mut names = store.counting_for(run)?;
        names.reverse();
        let (mut records, mut sources) = (Vec::new(), Vec::<Source>::new());
        for name in names {
            let (counting, windows) = (store.plan(&name)?, store.counts(&name)?);
            let withdrawn = store.invalidations(&name)?;
            let servers: Vec<_> = std::iter::zip(compared(plan), compared(&counting)).collect();
            for (cell, found) in common(plan, &counting, &withdrawn) {
                if sources.iter().any(|source| source.cell == cell) {
                    continue;
                }
                let of = |(own, theirs): &(ServerId, ServerId)| -> Vec<CountRecord> {
                    let windows = windows.iter();
                    let theirs = windows.filter(|one| (one.cell, one.server) == (found, *theirs));
                    let renamed = theirs.map(|one| CountRecord {
                        cell,
                        server: *own,
                        ..*one
                    });
                    renamed.collect()
                };
                let each: Vec<Vec<CountRecord>> = servers.iter().map(of).collect();
                if each.iter().all(|windows| !windows.is_empty()) {
                    records.extend(each.into_iter().flatten());
                    sources.push(Source {
                        run: name.clone(),
                        cell,
                        counting: found,
                        servers: servers.clone(),
                    });
                }
            }
        }
        Ok(Self { records, sources })
    }

    fn by_itself(run: &str, plan: &Plan, store: &Store) -> Result<Self, StoreError> {
        let servers = ServerId::each().take(plan.servers.len());
        let servers: Vec<_> = servers.map(|server| (server, server)).collect();
        let source = |cell| Source {
            run: run.to_owned(),
            cell,
            counting: cell,
            servers: servers.clone(),
        };
        Ok(Self {
            records: store.counts(run)?,
            sources: CellId::each().take(plan.cells.len()).map(source).collect(),
        })
    }

    /// Where the instructions of a server went in a cell.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn profile(
        &self,
        (server, cell): (ServerId, CellId),
        store: &Store,
    ) -> Result<Option<Profile>, StoreError> {
        let source = self.sources.iter().find(|source| source.cell == cell);
        let found = source.and_then(|source| {
            let (_, theirs) = source.servers.iter().find(|(own, _)| *own == server)?;
            Some((&source.run, *theirs, source.counting))
        });
        match found {
            Some((run, server, cell)) => store.count_profile(run, (server, cell)),
            None => Ok(None),
        }
    }
}

/// The cells of a plan that another one counts, each with its place there, but those withdrawn there.
fn common(
    plan: &Plan,
    counting: &Plan,
    withdrawn: &[Invalidation],
) -> impl Iterator<Item = (CellId, CellId)> {
    let cells = CellId::each().zip(&plan.cells);
    let found = cells.filter_map(|(id, cell)| Some((id, place(counting, cell)?)));
    found.filter(|(_, found)| !is_withdrawn(withdrawn, *found))
}

/// The servers of a plan without the placebo, in order.
fn compared(plan: &Plan) -> Vec<ServerId> {
    let servers = ServerId::each().zip(&plan.servers);
    let wanted = servers.filter(|(_, server)| server.role != Role::Placebo);
    wanted.map(|(id, _)| id).collect()
}

/// The cell of a plan that counts for another, whatever its clients.
fn place(counting: &Plan, cell: &Cell) -> Option<CellId> {
    let mut cells = CellId::each().zip(&counting.cells);
    let same = |one: &Cell| one.workload == cell.workload && one.state == cell.state;
    cells.find(|(_, one)| same(one)).map(|(id, _)| id)
}
