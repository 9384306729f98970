//! From what was asked to a plan, or a refusal before anything starts.

use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    Cell, DataSize, PLAN_FORMAT, Placement, Plan, PlannedServer, Role, Timing,
};
use deltabench_model::problem::Problem;
use deltabench_server::check_settings;
use deltabench_workload::Library;

/// What a user asks of `deltabench compare` besides the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whether comparing a target with itself is meant.
    pub same_target: bool,
    /// Workloads; empty means the quick set.
    pub workloads: Vec<String>,
    /// Client counts.
    pub clients: Vec<u32>,
    /// Data set.
    pub data: DataSize,
    /// Shape of the measurement.
    pub timing: Timing,
    /// Placement for one client and for several.
    pub placement: (Placement, Placement),
    /// Smallest change that matters, as a share.
    pub delta: f64,
    /// Data checksums on every server, or each version's default.
    pub checksums: Option<bool>,
    /// Settings for every server.
    pub settings: Vec<(String, String)>,
    /// Seed of every draw.
    pub seed: u64,
    /// Command line, for the report.
    pub command: Vec<String>,
}

/// Connections that stay free for set-up work beside the clients.
const SPARE_CONNECTIONS: u32 = 10;

/// `max_connections` of every server unless a setting says otherwise.
pub const MAX_CONNECTIONS: u32 = 100;

/// Turns a request and its resolved targets into a plan.
///
/// Errors: a refusal for anything that cannot be measured as asked.
pub fn plan(
    request: Request,
    base: &Installation,
    candidates: &[Installation],
    library: &Library,
) -> Result<Plan, Problem> {
    check(&request, library)?;
    check_targets(request.same_target, base, candidates)?;
    let cells = cells(&request, library)?;
    let server = |role, installation: &Installation| PlannedServer {
        role,
        installation: installation.clone(),
        burn_ns: None,
    };
    let mut servers = vec![server(Role::Base, base), server(Role::Placebo, base)];
    servers.extend(
        candidates
            .iter()
            .map(|candidate| server(Role::Candidate, candidate)),
    );
    Ok(Plan {
        format: PLAN_FORMAT.0.to_owned(),
        version: PLAN_FORMAT.1,
        seed: request.seed,
        servers,
        cells,
        data: request.data,
        timing: request.timing,
        placement_single: request.placement.0,
        placement_multi: request.placement.1,
        delta: request.delta,
        checksums: request.checksums,
        settings: request.settings,
        command: request.command,
        stopping: Default::default(),
        gate: Default::default(),
        order: Default::default(),
        transport: Default::default(),
        pins: None,
        workloads: Vec::new(),
        confirms: None,
        delta_from_noise: false,
    })
}

/// Refuses what is wrong with a request whatever its targets are: to be called before anything is downloaded.
///
/// Errors: too little or too much data, impossible counts, unknown workloads.
pub fn check(request: &Request, library: &Library) -> Result<(), Problem> {
    cells(request, library)?;
    check_settings(&request.settings)?;
    if request.data.rows < 200 || request.data.tables == 0 {
        let DataSize { tables, rows } = request.data;
        return Err(
            Problem::new(format!("{tables} tables of {rows} rows are too few"))
                .detail("the workloads look up 100 rows at a time")
                .hint("use at least --tables 1 --rows 200; the default is fit for a comparison"),
        );
    }
    if request.data.rows * u64::from(request.data.tables) > 10_000_000_000 {
        return Err(Problem::new("more than 10 billion rows").hint("lower --rows or --tables"));
    }
    if !(0.001..=0.5).contains(&request.delta) {
        return Err(Problem::new(format!(
            "a δ of {} % is out of range",
            request.delta * 100.0
        ))
        .hint("use --delta between 0.1% and 50%"));
    }
    if request.timing.blocks == 0 || request.timing.slice_ms == 0 {
        return Err(
            Problem::new("zero blocks or slices of zero length measure nothing")
                .hint("use --blocks 6 or more for a verdict"),
        );
    }
    check_clients(request)
}

fn check_targets(
    same_target: bool,
    base: &Installation,
    candidates: &[Installation],
) -> Result<(), Problem> {
    let mut seen = vec![base];
    for candidate in candidates {
        let same = seen.iter().find(|other| other.bin_dir == candidate.bin_dir);
        if let Some(same) = same.filter(|_| !same_target) {
            return Err(Problem::new(format!(
                "{} and {} are the same server",
                same.asked, candidate.asked
            ))
            .detail(format!(
                "both are {} in {}",
                same.resolved,
                same.bin_dir.display()
            ))
            .hint("to compare a server with itself on purpose (an A/A run), add --same-target"));
        }
        seen.push(candidate);
    }
    Ok(())
}

fn check_clients(request: &Request) -> Result<(), Problem> {
    let limit = max_connections(&request.settings)?;
    match request.clients.iter().copied().max() {
        None => Err(Problem::new("no client count given").hint("use --clients 1 or --clients 1,4")),
        Some(_) if request.clients.contains(&0) => {
            Err(Problem::new("zero clients send no load").hint("use --clients 1 or --clients 1,4"))
        }
        Some(most) if most + SPARE_CONNECTIONS > limit => Err(Problem::new(format!(
            "{most} clients do not fit under max_connections = {limit}"
        ))
        .detail(format!(
            "{SPARE_CONNECTIONS} connections stay free for set-up work"
        ))
        .hint(format!(
            "use fewer clients, or --set max_connections={}",
            most + SPARE_CONNECTIONS
        ))),
        Some(_) => Ok(()),
    }
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

fn cells(request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
    let definitions = if request.workloads.is_empty() {
        library.quick()
    } else {
        request
            .workloads
            .iter()
            .map(|name| library.get(name))
            .collect::<Result<Vec<_>, _>>()?
    };
    let mut cells: Vec<Cell> = Vec::new();
    for definition in definitions {
        for &clients in &request.clients {
            let cell = Cell {
                workload: definition.name.clone(),
                group: definition.group,
                clients,
                writes: definition.writes,
                statements_per_operation: definition.statements_per_operation(),
                state: Default::default(),
                rate: None,
                published: Default::default(),
            };
            if cells.contains(&cell) {
                return Err(Problem::new(format!(
                    "{} at {clients} clients is asked for twice",
                    cell.workload
                )));
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::installation::Origin;

    pub(crate) fn installation(name: &str) -> Installation {
        Installation {
            asked: name.to_owned(),
            resolved: name.to_owned(),
            origin: Origin::Path,
            bin_dir: format!("/opt/{name}/bin").into(),
            version_num: 170_005,
            version: "17.5".to_owned(),
            binary_sha256: format!("sha-{name}"),
            build: None,
        }
    }

    pub(crate) fn timing() -> Timing {
        Timing {
            blocks: 8,
            slice_ms: 40,
            slice_jitter: 0.2,
            visit_seconds: 1.0,
            warmup_seconds: 0.3,
            connections_per_visit: 2,
            deadline_seconds: None,
        }
    }

    /// A plan with a server for each name and `cells` cells.
    pub(crate) fn plan_of(names: &[&str], cells: u32) -> Plan {
        let library = Library::builtin().unwrap();
        let (base, candidate) = (installation("a"), installation("b"));
        let mut plan = plan(request(), &base, &[candidate], &library).unwrap();
        let roles = [Role::Base, Role::Placebo]
            .into_iter()
            .chain(std::iter::repeat(Role::Candidate));
        plan.servers = names
            .iter()
            .zip(roles)
            .map(|(name, role)| PlannedServer {
                role,
                installation: installation(name),
                burn_ns: None,
            })
            .collect();
        plan.cells = (0..cells)
            .map(|number| Cell {
                clients: number + 1,
                ..plan.cells[0].clone()
            })
            .collect();
        plan
    }

    fn request() -> Request {
        Request {
            same_target: false,
            workloads: Vec::new(),
            clients: vec![1],
            data: DataSize {
                tables: 1,
                rows: 1000,
            },
            timing: timing(),
            placement: (Placement::SameCore, Placement::Split),
            delta: 0.03,
            checksums: Some(true),
            settings: Vec::new(),
            seed: 7,
            command: Vec::new(),
        }
    }

    fn refusal(change: impl FnOnce(&mut Request)) -> String {
        let mut request = request();
        change(&mut request);
        check(&request, &Library::builtin().unwrap())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_plan_has_base_placebo_and_candidates_and_a_cell_for_each_quick_workload() {
        let library = Library::builtin().unwrap();
        let candidates = [installation("b")];
        let plan = plan(request(), &installation("a"), &candidates, &library).unwrap();
        let roles: Vec<Role> = plan.servers.iter().map(|server| server.role).collect();
        assert_eq!(roles, [Role::Base, Role::Placebo, Role::Candidate]);
        assert_eq!(plan.cells.len(), 8);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_way_out() {
        assert!(refusal(|r| r.data.rows = 0).contains("--rows"));
        assert!(refusal(|r| r.clients = vec![0]).contains("zero clients"));
        assert!(refusal(|r| r.clients = vec![1000]).contains("max_connections=1010"));
        assert!(refusal(|r| r.workloads = vec!["point-qurey".into()]).contains("point-query"));
        assert!(refusal(|r| r.clients = vec![1, 1]).contains("twice"));
        assert!(refusal(|r| r.delta = 0.0).contains("--delta"));
    }

    #[test]
    fn the_same_server_on_both_sides_is_refused_unless_said() {
        let (library, base) = (Library::builtin().unwrap(), installation("a"));
        let refused = plan(request(), &base, std::slice::from_ref(&base), &library).unwrap_err();
        assert!(refused.to_string().contains("--same-target"));
        let said = Request {
            same_target: true,
            ..request()
        };
        assert!(plan(said, &base, std::slice::from_ref(&base), &library).is_ok());
    }
}
