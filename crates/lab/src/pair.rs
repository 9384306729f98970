//! Candidates in cells of runs: what two runs must have in common to say the same of one.

use crate::series::stored;
use deltabench_compare::comparison::CellComparison;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use sha2::{Digest, Sha256};

/// How much two servers have in common: the less, the more their ratio moves from hour to hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kin {
    /// One build with the same settings.
    Copy,
    /// One branch, made alike.
    Near,
    Far,
}

/// How much two servers have in common.
fn kin(base: &PlannedServer, candidate: &PlannedServer) -> Kin {
    if version_key(base) == version_key(candidate) {
        Kin::Copy
    } else if are_near(&base.installation, &candidate.installation) {
        Kin::Near
    } else {
        Kin::Far
    }
}

/// Whether two builds are of one branch, and made alike.
pub(crate) fn are_near(one: &Installation, other: &Installation) -> bool {
    let variant = |of: &Installation| of.recipe.as_ref().map(|made| made.variant.clone());
    (one.engine, one.origin, branch(one)) == (other.engine, other.origin, branch(other))
        && variant(one) == variant(other)
}

/// The number of its branch: 18 of 18.6, 906 of 9.6.24.
pub(crate) fn branch(installation: &Installation) -> u32 {
    match installation.version_num {
        old @ ..100_000 => old / 100,
        new => new / 10_000,
    }
}

/// Pairs that may stand for each other: as much alike, and with the same luck of where executables lie. What
/// a place for the whole run added to the hours is in the intervals of runs that draw it.
pub(crate) type Kind = (Kin, bool);

/// The beginning of a SHA-256, enough to tell the things of one lab apart.
pub(crate) type Hash = [u8; 16];

/// A candidate in a cell of a plan.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) cell: CellId,
    pub(crate) candidate: ServerId,
    /// Of the key of the cell's series.
    pub(crate) key: Hash,
    pub(crate) kind: Kind,
    /// Of what two runs must have in common to have made the same comparison.
    pub(crate) same: Hash,
}

impl Pair {
    pub(crate) fn is(&self, cell: &CellComparison) -> bool {
        self.cell == cell.cell && self.candidate == cell.candidate
    }

    /// Whether its sides are of two branches, or made in different ways.
    pub(crate) fn is_far(&self) -> bool {
        self.kind.0 == Kin::Far
    }
}

/// The candidates of a run in its cells.
///
/// Errors: the store cannot be read.
pub(crate) fn pairs(run: &str, plan: &Plan, store: &Store) -> Result<Vec<Pair>, Problem> {
    let series = stored(run, plan, store)?;
    let keys: Vec<&str> = series.iter().map(|one| one.key.as_str()).collect();
    let draws = plan.draws_executables();
    Ok(pairs_of(&plan.servers, plan.base(), &keys, draws))
}

/// The same of servers, one of them the base, and of the keys of cells.
pub(crate) fn pairs_of(
    servers: &[PlannedServer],
    base: ServerId,
    cells: &[&str],
    draws_executables: bool,
) -> Vec<Pair> {
    let Some(base) = servers.get(base.index()) else {
        return Vec::new();
    };
    // What was made slower on purpose is a copy of its base, and no version.
    let candidates = ServerId::each().zip(servers);
    let candidates: Vec<(ServerId, Kind, String)> = candidates
        .filter(|(_, planned)| planned.role == Role::Candidate && planned.burn_ns.is_none())
        .map(|(candidate, planned)| {
            let versions = format!("{} {}", version_key(base), version_key(planned));
            let kind = (kin(base, planned), draws_executables);
            (candidate, kind, versions)
        })
        .collect();
    let of_cell = |(id, key): (CellId, &&str)| {
        let of_key = hash(key);
        let pair = |(candidate, kind, versions): &(ServerId, Kind, String)| Pair {
            cell: id,
            candidate: *candidate,
            key: of_key,
            kind: *kind,
            same: hash(&format!("{versions} {key}")),
        };
        candidates.iter().map(pair).collect::<Vec<Pair>>()
    };
    CellId::each().zip(cells).flat_map(of_cell).collect()
}

fn hash(text: &str) -> Hash {
    let mut hash = Hash::default();
    let whole = Sha256::digest(text);
    for (slot, byte) in hash.iter_mut().zip(whole) {
        *slot = byte;
    }
    hash
}

/// What a server is, by content: its binary, wherever it lies, and what it runs with. Of a server that was
/// there before only its address is known.
pub fn version_key(planned: &PlannedServer) -> String {
    let build = &planned.installation;
    let binary = match build.binary_sha256.as_str() {
        "" => build.resolved.as_str(),
        hash => hash,
    };
    format!("{binary} {:?} {:?}", planned.settings, planned.burn_ns)
}
