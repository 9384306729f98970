//! A place for fleets, the servers to put into them, and plans.

use deltabench_driver::admin::Client;
use deltabench_kinds::run_half;
use deltabench_model::endpoint::Login;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Cell, DataSize, DataState, Group, Plan, PlannedServer, Role, Timing};
use deltabench_model::problem::Problem;
use deltabench_run::fleet::{Fleet, Host, HugePagesWish};
use deltabench_run::load::address_for;
use deltabench_run::visit::Address;
use deltabench_server::ServerUser;
pub use deltabench_testkit::installations;
use deltabench_testkit::small_run::timing;
use deltabench_workload::Library;
use deltabench_workload::executable::Executable;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A directory that the server user can reach.
pub struct Lab {
    pub host: Host,
    // Removed when the lab is dropped.
    _scratch: tempfile::TempDir,
}

impl Lab {
    /// Where temporary files are, which may be in memory.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// On a disk, for what is about reading and writing one.
    pub fn on_disk() -> Self {
        Self::within(Path::new("/var/tmp"))
    }

    fn within(directory: &Path) -> Self {
        let scratch = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(directory)
            .unwrap();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let host = Host {
            workspaces: scratch.path().join("w"),
            cache: Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-cache"),
            user: ServerUser::choose(None).unwrap(),
            huge_pages: HugePagesWish::Off,
        };
        Self {
            host,
            _scratch: scratch,
        }
    }

    /// The servers of a run, empty.
    pub fn fleet<'a>(&self, plan: &'a Plan, run: &str) -> Result<Fleet<'a>, Problem> {
        let kind = run_half(&plan.work);
        Fleet::create(plan, kind, run, &self.host, &mut |_| {})
    }

    /// Whether nothing is left of any run.
    pub fn is_empty(&self) -> bool {
        match std::fs::read_dir(&self.host.workspaces) {
            Ok(mut left) => left.next().is_none(),
            // Runs made the directory, and the last one removed it.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

/// A cell of a workload with one client.
pub fn cell(workload: &str, writes: bool, state: DataState) -> Cell {
    Cell {
        workload: workload.to_owned(),
        group: Group::Point,
        clients: 1,
        writes,
        statements_per_operation: 1,
        state,
        rate: None,
        published: Default::default(),
        reconnects: false,
    }
}

/// A plan with these servers (the first is the base) and cells.
pub fn plan(installations: &[&Installation], cells: Vec<Cell>, rows: u64) -> Plan {
    let roles = [Role::Base, Role::Placebo]
        .into_iter()
        .chain(std::iter::repeat(Role::Candidate));
    let servers = installations.iter().zip(roles);
    Plan {
        checksums: Some(true),
        ..Plan::plain(
            11,
            servers
                .map(|(installation, role)| PlannedServer::new(role, (*installation).clone()))
                .collect(),
            cells,
            (
                DataSize { tables: 2, rows },
                Timing {
                    connections_per_visit: 1,
                    sustained: false,
                    ..timing(1)
                },
            ),
        )
    }
}

/// The plan's workloads, compiled.
pub fn executables(plan: &Plan) -> Vec<Executable> {
    let library = Library::of_plan(plan).unwrap();
    let compile = |cell: &Cell| library.get(&cell.workload)?.compile(&plan.data);
    plan.cells
        .iter()
        .map(|cell| compile(cell).unwrap())
        .collect()
}

/// The rows of a query on the tables of a cell.
pub fn ask(plan: &Plan, address: &Address, cell: &Cell, sql: &str) -> Vec<Vec<Option<String>>> {
    let address = address_for(address, plan.order, cell);
    connect(&address, &address.login).query(sql).unwrap()
}

/// The first value of a query on the tables of a cell.
pub fn value(plan: &Plan, address: &Address, cell: &Cell, sql: &str) -> String {
    ask(plan, address, cell, sql)
        .swap_remove(0)
        .swap_remove(0)
        .unwrap_or_default()
}

pub fn connect(address: &Address, login: &Login) -> Client {
    Client::connect(&address.endpoint, login, Duration::from_secs(60)).unwrap()
}
