//! The plan of a replay's times.

use super::mix::members;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    Cell, DataSize, DataState, Group, Plan, PlannedServer, PublishedRate, Role, Timing,
};
use deltabench_model::replayed::{Replayed, ReplayedStatement};
use deltabench_model::work::Work;
use deltabench_model::work::replay::{ReplaySetup, TimedStatement};
use deltabench_run::planning::DELTA_WIDEST;

/// Measuring ends after so many times what it aims for: what disturbs a block should not cost the last one.
const STRETCH: f64 = 1.5;
/// Aim for the length of a slice, milliseconds.
const SLICE_MS: u32 = 40;

/// What a plan is made of.
#[derive(Debug)]
pub struct PlanWish<'a> {
    pub seed: u64,
    /// The servers with the settings that the user asked for, the base first.
    pub servers: Vec<(&'a Installation, &'a [(String, String)])>,
    /// What plans and results are.
    pub replayed: &'a Replayed,
    pub setup: ReplaySetup,
    pub blocks: u32,
    /// The smallest change that matters, as a share; absent: for each statement from its placebo's noise.
    pub delta: Option<f64>,
    pub checksums: Option<bool>,
    pub command: Vec<String>,
}

/// The plan: base, a copy of it as placebo, candidates; a cell for each statement, and one for the mix,
/// unless no statement fits that.
pub fn plan(mut wish: PlanWish<'_>) -> Plan {
    let server = |role, (installation, settings): &(&Installation, &[(String, String)])| {
        let mut server = PlannedServer::new(role, (*installation).clone());
        server.settings = settings.to_vec();
        server
    };
    let mut servers = Vec::new();
    if let Some((base, candidates)) = wish.servers.split_first() {
        servers.extend([server(Role::Base, base), server(Role::Placebo, base)]);
        servers.extend(candidates.iter().map(|wish| server(Role::Candidate, wish)));
    }
    if members(&wish.setup).is_empty() {
        wish.setup.mix = None;
    }
    let statements = wish.setup.statements.iter();
    let cells = statements.map(|statement| cell(statement, wish.replayed));
    let cells = cells.chain(wish.setup.mix.map(mix));
    let timing = Timing {
        blocks: wish.blocks,
        slice_ms: SLICE_MS,
        slice_jitter: 0.0,
        visit_seconds: 0.0,
        warmup_seconds: 0.0,
        connections_per_visit: 1,
        sustained: false,
        write_seconds: None,
        warmup_chosen: false,
        rotated: false,
        deadline_seconds: Some(STRETCH * wish.setup.budget_seconds),
    };
    let data = DataSize { tables: 0, rows: 0 };
    let cells = cells.collect();
    Plan {
        delta: wish.delta.unwrap_or(DELTA_WIDEST),
        delta_from_noise: wish.delta.is_none(),
        checksums: wish.checksums,
        command: wish.command,
        two_controls: true,
        work: Work::Replay(wish.setup),
        ..Plan::plain(wish.seed, servers, cells, (data, timing))
    }
}

/// The name of the cell that sends all statements.
pub const MIX: &str = "mix";

fn mix(clients: u32) -> Cell {
    Cell {
        workload: MIX.to_owned(),
        group: Group::Range,
        clients,
        reconnects: false,
        writes: false,
        statements_per_operation: 1,
        state: DataState::default(),
        rate: None,
        published: PublishedRate::default(),
    }
}

fn cell(statement: &TimedStatement, replayed: &Replayed) -> Cell {
    let place = usize::try_from(statement.place).ok();
    let known = place.and_then(|place| replayed.statements.get(place));
    let name = |known: &ReplayedStatement| known.name.clone();
    Cell {
        workload: known.and_then(name).unwrap_or_else(|| statement.id.clone()),
        group: Group::Range,
        clients: 1,
        writes: false,
        statements_per_operation: 1,
        state: DataState::default(),
        rate: None,
        published: PublishedRate::default(),
        reconnects: false,
    }
}
