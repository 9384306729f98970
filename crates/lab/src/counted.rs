//! What was counted for a run: by itself, or once it was over by runs that count for it.
//!
//! Such a run has the cells that were wanted, each with one client, and no placebo: its places are not those
//! of the run that it counts for.

use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{Cell, CellId, Plan, Role, ServerId};
use deltabench_model::profile::Profile;
use deltabench_store::{RunState, Store, StoreError};

/// The name of the next run that counts for another, of which those are known already.
pub fn count_name(run: &str, known: &[String]) -> String {
    match known.len() {
        0 => format!("{run}-count"),
        counted => format!("{run}-count-{}", counted + 1),
    }
}

/// The cells that runs which are over have counted for a run, as far as their time allowed.
///
/// Errors: the store cannot be read.
pub fn counted_cells(run: &str, plan: &Plan, store: &Store) -> Result<Vec<CellId>, StoreError> {
    let known = store.runs()?;
    let mut cells = Vec::new();
    for name in store.counting_for(run)? {
        let is_over = |summary: &&deltabench_store::RunSummary| {
            summary.run == name && summary.state == RunState::Finished
        };
        if known.iter().any(|summary| is_over(&summary)) {
            let counting = store.plan(&name)?;
            let has = |(_, cell): &(CellId, &Cell)| place(&counting, cell).is_some();
            cells.extend(
                CellId::each()
                    .zip(&plan.cells)
                    .filter(has)
                    .map(|(id, _)| id),
            );
        }
    }
    Ok(cells)
}

/// Where the counts of a cell are.
struct Source {
    run: String,
    cell: CellId,
    counting: CellId,
    /// Each server here, and what the other run calls it.
    servers: Vec<(ServerId, ServerId)>,
    records: Vec<CountRecord>,
}

/// What was counted for a run.
pub(crate) struct Counted(Vec<Source>);

impl Counted {
    /// Of a cell that several runs have counted the latest is taken that has all servers.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(run: &str, plan: &Plan, store: &Store) -> Result<Self, StoreError> {
        let mut names = store.counting_for(run)?;
        names.reverse();
        let mut sources: Vec<Source> = Vec::new();
        for name in names {
            let (counting, records) = (store.plan(&name)?, store.counts(&name)?);
            let servers: Vec<_> = std::iter::zip(compared(plan), compared(&counting)).collect();
            for (cell, planned) in CellId::each().zip(&plan.cells) {
                let Some(found) = place(&counting, planned) else {
                    continue;
                };
                let of = |server| {
                    let own = move |record: &&CountRecord| {
                        (record.cell, record.server) == (found, server)
                    };
                    records.iter().filter(own)
                };
                let is_new = sources.iter().all(|source| source.cell != cell);
                if is_new
                    && servers
                        .iter()
                        .all(|(_, server)| of(*server).next().is_some())
                {
                    let own = servers.iter().flat_map(|(_, server)| of(*server));
                    sources.push(Source {
                        run: name.clone(),
                        cell,
                        counting: found,
                        records: own.copied().collect(),
                        servers: servers.clone(),
                    });
                }
            }
        }
        Ok(Self(sources))
    }

    /// All windows, as if the run had counted them itself.
    pub(crate) fn records(&self) -> Vec<CountRecord> {
        let Self(sources) = self;
        let of = |source: &Source| {
            let (cell, servers) = (source.cell, source.servers.clone());
            source
                .records
                .clone()
                .into_iter()
                .filter_map(move |record| {
                    let (server, _) = servers
                        .iter()
                        .find(|(_, theirs)| *theirs == record.server)?;
                    Some(CountRecord {
                        cell,
                        server: *server,
                        ..record
                    })
                })
        };
        sources.iter().flat_map(of).collect()
    }

    /// Where the instructions of a server went in a cell.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn profile(
        &self,
        (server, cell): (ServerId, CellId),
        store: &Store,
    ) -> Result<Option<Profile>, StoreError> {
        let Self(sources) = self;
        let source = sources.iter().find(|source| source.cell == cell);
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
