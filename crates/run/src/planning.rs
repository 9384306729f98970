//! From what was asked to a plan, or a refusal before anything starts.

mod budget;
mod confirmation;
mod samples;
mod sensitivity;
mod sessions;
mod threads;

use crate::request::most_clients;
pub use crate::request::{Jobs, Request, Selection, ServerWish};
use crate::session::benchmark::Benchmark;
use deltabench_model::installation::Remote;
use deltabench_model::plan::{
    Cell, DataSize, Gate, PLAN_FORMAT, Placement, Plan, Role, Stopping, WorkloadSource,
};
use deltabench_model::problem::Problem;
use deltabench_model::timing::{BLOCKS, SLICE_MS, VISIT_SECONDS};
use deltabench_server::check_settings;
use deltabench_workload::{Library, Sbtest};
use std::ops::RangeInclusive;

pub use budget::fit;
pub use confirmation::confirmation;
pub use samples::{SamplesWish, samples};
pub use sensitivity::sensitivity;
pub use sessions::sessions;

/// δ of a request that names none: no cell is asked for more than its noise allows, and none for less than
/// this.
pub const DELTA_WIDEST: f64 = 0.05;
/// Shares that δ, a margin or a precision may be.
pub const SHARES: RangeInclusive<f64> = 0.001..=0.5;

/// Clients of a server at most: as many as an experiment file takes.
const CLIENTS_MAX: u32 = 10_000;

/// Connections that stay free for set-up work beside the clients.
const SPARE_CONNECTIONS: u32 = 10;

/// `max_connections` of every server unless a setting says otherwise.
pub const MAX_CONNECTIONS: u32 = 100;

/// Turns a request and its resolved targets into a plan.
///
/// Errors: a refusal for anything that cannot be measured as asked.
pub fn plan(
    request: Request,
    benchmark: &dyn Benchmark,
    (base, candidates): (&ServerWish, &[ServerWish]),
    library: &Library,
) -> Result<Plan, Problem> {
    benchmark.check(&request, library)?;
    let wishes: Vec<&ServerWish> = std::iter::once(base).chain(candidates).collect();
    benchmark.check_servers(&request, &wishes)?;
    check_distinct(request.same_target, &wishes)?;
    let cells = benchmark.cells(&request, library)?;
    let (placement_single, placement_multi) = of_curves(request.placement, &cells);
    let mut everyone = wishes.iter();
    let place = threads::Place {
        pins: request.pins.as_ref(),
        placement: placement_multi,
        elsewhere: everyone.all(|wish| {
            let remote = wish.installation.remote.as_ref();
            remote.is_some_and(Remote::is_elsewhere)
        }),
    };
    let most = cells.iter().map(|cell| cell.clients).max().unwrap_or(1);
    let jobs = threads::of(request.jobs, most, place);
    let mut servers = vec![base.planned(Role::Base)];
    servers.extend(request.placebo.then(|| base.planned(Role::Placebo)));
    servers.extend(candidates.iter().map(|wish| wish.planned(Role::Candidate)));
    let plan = Plan {
        format: PLAN_FORMAT.0.to_owned(),
        version: PLAN_FORMAT.1,
        seed: request.seed,
        servers,
        cells,
        data: request.data,
        timing: request.timing,
        placement_single,
        placement_multi,
        delta: widest_delta(request.delta, &request.gate),
        delta_from_noise: request.delta.is_none(),
        checksums: request.checksums,
        settings: request.settings,
        command: request.command,
        stopping: request.stopping,
        gate: request.gate,
        order: request.order,
        transport: request.transport,
        jobs,
        pins: request.pins,
        workloads: request.sources,
        confirms: None,
        counts: None,
        bisects: None,
        samples: None,
        own_executables: true,
        two_controls: true,
        probes: request.probes,
        session: None,
        sensitivity: None,
        limits: request.limits,
        cache: request.cache,
        observing: request.observing,
        experiment: None,
        extends: None,
        work: request.work,
    };
    check_probes(&plan)?;
    Ok(plan)
}

/// The δ of a plan: the asked one, but not above the margin that a gate asks about. A look would end a cell
/// at "no change" within a larger one, with the question of the margin open.
fn widest_delta(asked: Option<f64>, gate: &Gate) -> f64 {
    let margin = gate.not_worse_than.unwrap_or(f64::INFINITY);
    asked.map_or(DELTA_WIDEST, |delta| delta.min(margin))
}

/// Refuses probes where no client can make them.
fn check_probes(plan: &Plan) -> Result<(), Problem> {
    let probed = plan.cells.iter().any(|cell| plan.probes_core(cell));
    if probed || !plan.probes {
        return Ok(());
    }
    Err(Problem::new("--probes has nothing to probe")
        .detail("probes need a closed loop of one client on the core of a server that runs here")
        .hint(
            "leave --probes (in a file: `probes`) out, or measure one client without --rate, --pin, \
             --placement split, --sustained and cold caches",
        ))
}

/// The placements of one client and of more: the same where a workload has several numbers of clients, or the
/// step from one client to more would be that of the placement.
fn of_curves(asked: (Placement, Placement), cells: &[Cell]) -> (Placement, Placement) {
    let several = |cell: &Cell| {
        let same = |other: &&Cell| (&other.workload, other.state) == (&cell.workload, cell.state);
        let mut others = cells.iter().filter(same);
        others.any(|other| other.clients > 1)
    };
    let mut alone = cells.iter().filter(|cell| cell.clients == 1);
    match alone.any(several) {
        true => (asked.1, asked.1),
        false => asked,
    }
}

/// Refuses blocks, slices, shares and rates that mean nothing.
///
/// Errors: what would measure nothing.
pub fn check_shape(request: &Request) -> Result<(), Problem> {
    check_shares(request)?;
    let writes = request.timing.write_seconds;
    if let Some(seconds) = writes {
        check_visit("--write-seconds", seconds)?;
    }
    let slice_ms = request.timing.slice_ms;
    if !SLICE_MS.contains(&slice_ms) {
        let (least, most) = (SLICE_MS.start(), SLICE_MS.end());
        return Err(
            Problem::new(format!("slices of {slice_ms} ms are out of range"))
                .hint(format!("use --slice-ms between {least} and {most}")),
        );
    }
    if request.timing.blocks == 0 {
        return Err(Problem::new("zero blocks measure nothing")
            .hint("use --blocks 6 or more for a verdict"));
    }
    let (blocks, most) = (request.timing.blocks, BLOCKS.end());
    if !BLOCKS.contains(&blocks) {
        return Err(Problem::new(format!("{blocks} blocks are too many"))
            .hint(format!("use --blocks {most} or fewer")));
    }
    Ok(())
}

/// Refuses shares and rates that mean nothing.
fn check_shares(request: &Request) -> Result<(), Problem> {
    let precision = match &request.stopping {
        Stopping::Precision { half_width } => Some(*half_width),
        _ => None,
    };
    let shares = [
        ("δ", "--delta", request.delta),
        ("margin", "--not-worse-than", request.gate.not_worse_than),
        ("precision", "--precision", precision),
    ];
    for (what, option, share) in shares {
        if let Some(share) = share {
            check_share(what, option, share)?;
        }
    }
    if let Some(rate) = request.rate.filter(|rate| !(0.1..=10e6).contains(rate)) {
        return Err(
            Problem::new(format!("a rate of {rate} per second is out of range"))
                .hint("use --rate between 0.1 and 10000000 operations per second"),
        );
    }
    Ok(())
}

/// Refuses a share that is `what`, from an `option`, and is none that anybody means.
///
/// Errors: out of [`SHARES`].
pub fn check_share(what: &str, option: &str, share: f64) -> Result<(), Problem> {
    if SHARES.contains(&share) {
        return Ok(());
    }
    Err(
        Problem::new(format!("a {what} of {} % is out of range", share * 100.0))
            .hint(format!("use {option} between 0.1% and 50%")),
    )
}

/// Refuses a visit of no time, or of more than an hour.
///
/// Errors: out of [`deltabench_model::timing::VISIT_SECONDS`].
pub fn check_visits(request: &Request) -> Result<(), Problem> {
    check_visit("--visit-seconds", request.timing.visit_seconds)
}

fn check_visit(option: &str, seconds: f64) -> Result<(), Problem> {
    if VISIT_SECONDS.contains(&seconds) {
        return Ok(());
    }
    let (least, most) = (VISIT_SECONDS.start(), VISIT_SECONDS.end());
    Err(
        Problem::new(format!("a visit of {seconds} seconds is out of range"))
            .hint(format!("use {option} between {least} and {most}")),
    )
}

/// Refuses a server that is there twice, unless that is meant.
fn check_distinct(same_target: bool, wishes: &[&ServerWish]) -> Result<(), Problem> {
    let mut seen: Vec<&ServerWish> = Vec::new();
    for wish in wishes {
        let same = seen.iter().find(|other| other.is_same(wish));
        if let Some(same) = same.filter(|_| !same_target) {
            let (same, other) = (&same.installation, &wish.installation);
            return Err(Problem::new(format!(
                "{} and {} are the same server",
                same.asked, other.asked
            ))
            .detail(if same.remote.is_some() {
                format!("both are {}", same.resolved)
            } else {
                let place = same.bin_dir.display();
                format!(
                    "both are {} in {place}, with the same settings",
                    same.resolved
                )
            })
            .hint("to compare a server with itself on purpose (an A/A run), add --same-target"));
        }
        seen.push(wish);
    }
    Ok(())
}

/// Refuses tables, settings and clients that no PostgreSQL server can be measured with.
///
/// Errors: too little or too much data, impossible counts and settings.
pub fn check_load(request: &Request) -> Result<(), Problem> {
    check_settings(&request.settings)?;
    if request.data.rows < 200 || request.data.tables == 0 {
        let DataSize { tables, rows } = request.data;
        return Err(
            Problem::new(format!("{tables} tables of {rows} rows are too few"))
                .detail("the workloads look up 100 rows at a time")
                .hint("use at least --tables 1 --rows 200; the default suits a comparison"),
        );
    }
    if uses_sbtest(request) {
        Sbtest::check(&request.data)?;
    }
    let DataSize { tables, rows } = request.data;
    if rows.saturating_mul(u64::from(tables)) > 10_000_000_000 {
        return Err(Problem::new("more than 10 billion rows").hint("lower --rows or --tables"));
    }
    check_clients(request)
}

/// Whether something is measured whose tables have the size that a request asks for: sysbench's workloads, a
/// file of the user's, or a script with those tables in it. Tables of other benchmarks have sizes of their
/// own.
pub fn uses_sbtest(request: &Request) -> bool {
    let mut texts = request.work.texts();
    request.selection != Selection::Named(Vec::new())
        || !request.sources.is_empty()
        || texts.any(|source: &WorkloadSource| source.text.contains("sbtest"))
}

fn check_clients(request: &Request) -> Result<(), Problem> {
    if request.clients.is_empty() {
        return Err(Problem::new("no client count given").hint("use --clients 1 or --clients 1,4"));
    }
    if request.clients.contains(&0) {
        return Err(
            Problem::new("zero clients send no load").hint("use --clients 1 or --clients 1,4")
        );
    }
    let clients = most_clients(request);
    if clients > CLIENTS_MAX {
        return Err(Problem::new(format!("{clients} clients are too many"))
            .hint(format!("use --clients {CLIENTS_MAX} or fewer")));
    }
    max_connections(&request.settings).map(drop)
}

/// Refuses settings of a PostgreSQL server that it cannot have, and more connections than it lets in.
///
/// Errors: the first of them.
pub fn check_server(
    request: &Request,
    benchmark: &dyn Benchmark,
    wish: &ServerWish,
) -> Result<(), Problem> {
    check_settings(&wish.settings)?;
    // A remote's own limit is asked of it.
    match wish.installation.remote {
        None => check_connections(request, benchmark, &wish.settings),
        Some(_) => Ok(()),
    }
}

/// Refuses more clients than a server of ours lets in; `own` are settings of its own.
///
/// Errors: how many there may be.
pub fn check_connections(
    request: &Request,
    benchmark: &dyn Benchmark,
    own: &[(String, String)],
) -> Result<(), Problem> {
    let settings: Vec<(String, String)> = request.settings.iter().chain(own).cloned().collect();
    let limit = max_connections(&settings)?;
    let (clients, most) = (most_clients(request), benchmark.connections(request));
    let needed = most.saturating_add(SPARE_CONNECTIONS);
    if needed <= limit {
        return Ok(());
    }
    // A value of its own wins.
    let instead = match own.iter().any(|(name, _)| name == "max_connections") {
        true => format!("its own max_connections={needed} (--candidate-set, or in the file)"),
        false => format!("--set max_connections={needed}"),
    };
    Err(Problem::new(format!(
        "{clients} clients do not fit under max_connections = {limit}"
    ))
    .detail(format!(
        "they make {most} connections, and {SPARE_CONNECTIONS} stay free for set-up work"
    ))
    .hint(format!("use fewer clients, or {instead}")))
}

/// `max_connections` after the asked settings.
///
/// Errors: a value that is not a number.
pub fn max_connections(settings: &[(String, String)]) -> Result<u32, Problem> {
    match settings
        .iter()
        .rev()
        .find(|(name, _)| name == "max_connections")
    {
        None => Ok(MAX_CONNECTIONS),
        Some((_, value)) => value
            .parse()
            .map_err(|_| Problem::new(format!("max_connections = `{value}` is not a number"))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::plan::{Cell, DataState, Group, PlannedServer};
    use deltabench_testkit::installations::installed;
    use deltabench_testkit::small_run::timing;

    /// A plan with a server for each name and `cells` cells, which differ by their clients.
    pub(crate) fn plan_of(names: &[&str], cells: u32) -> Plan {
        let roles = [Role::Base, Role::Placebo]
            .into_iter()
            .chain(std::iter::repeat(Role::Candidate));
        let cell = |clients| Cell {
            workload: "point-query".to_owned(),
            group: Group::Point,
            clients,
            writes: false,
            statements_per_operation: 1,
            state: DataState::Fresh,
            rate: None,
            published: Default::default(),
            reconnects: false,
        };
        Plan {
            checksums: Some(true),
            ..Plan::plain(
                7,
                names
                    .iter()
                    .zip(roles)
                    .map(|(name, role)| PlannedServer::new(role, installed(name)))
                    .collect(),
                (1..=cells).map(cell).collect(),
                (
                    DataSize {
                        tables: 1,
                        rows: 1000,
                    },
                    timing(8),
                ),
            )
        }
    }

    #[test]
    fn a_curve_over_clients_has_one_placement() {
        let default = (Placement::SameCore, Placement::Split);
        let cells = |clients: &[u32]| -> Vec<Cell> {
            let one = |clients: &u32| Cell {
                clients: *clients,
                ..plan_of(&["a", "b"], 1).cells.remove(0)
            };
            clients.iter().map(one).collect()
        };
        let split = (Placement::Split, Placement::Split);
        assert_eq!(of_curves(default, &cells(&[1, 4])), split);
        assert_eq!(of_curves(default, &cells(&[1])), default);
        assert_eq!(of_curves(default, &cells(&[2, 4])), default);
        let same = (Placement::SameCore, Placement::SameCore);
        assert_eq!(of_curves(same, &cells(&[1, 4])), same);
        let mut apart = cells(&[1, 4]);
        apart[1].workload = "scan".to_owned();
        assert_eq!(of_curves(default, &apart), default);
    }

    #[test]
    fn an_asked_delta_is_at_most_the_margin_of_the_gate() {
        let of = |asked, margin| {
            let gate = Gate {
                not_worse_than: margin,
                ..Gate::default()
            };
            widest_delta(asked, &gate)
        };
        let same = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found}");
        same(of(Some(0.05), Some(0.03)), 0.03);
        same(of(Some(0.02), Some(0.03)), 0.02);
        same(of(Some(0.05), None), 0.05);
        same(of(None, Some(0.03)), DELTA_WIDEST);
    }

    #[test]
    fn the_same_server_on_both_sides_is_refused_unless_said() {
        let base = ServerWish::plain(installed("a"));
        let refused = check_distinct(false, &[&base, &base]).unwrap_err();
        assert!(refused.to_string().contains("--same-target"));
        let jit = ServerWish {
            settings: vec![("jit".to_owned(), "on".to_owned())],
            ..base.clone()
        };
        check_distinct(false, &[&base, &jit]).unwrap();
        assert!(check_distinct(false, &[&base, &jit, &jit]).is_err());
        check_distinct(true, &[&base, &base]).unwrap();
    }
}
