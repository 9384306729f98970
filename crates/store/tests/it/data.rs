use deltabench_model::installation::{Installation, Origin};
use deltabench_model::plan::{
    Cell, CellId, DataSize, Group, Plan, PlannedServer, Role, ServerId, Timing,
};
use deltabench_model::slice::Slice;

fn server(role: Role, resolved: &str) -> PlannedServer {
    let installation = Installation {
        asked: resolved.to_owned(),
        resolved: resolved.to_owned(),
        origin: Origin::Path,
        bin_dir: "/opt/pg/bin".into(),
        version_num: 180_006,
        version: "18.6".to_owned(),
        binary_sha256: "00".repeat(32),
        build: None,
        recipe: None,
        remote: None,
        engine: deltabench_model::installation::Engine::Postgres,
    };
    PlannedServer::new(role, installation)
}

pub fn plan() -> Plan {
    let cell = |workload: &str| Cell {
        workload: workload.to_owned(),
        group: Group::Point,
        clients: 1,
        writes: false,
        statements_per_operation: 1,
        state: Default::default(),
        rate: None,
        published: Default::default(),
        reconnects: false,
    };
    Plan {
        checksums: Some(true),
        settings: vec![("work_mem".to_owned(), "4MB".to_owned())],
        command: vec!["deltabench".to_owned(), "compare".to_owned()],
        ..Plan::plain(
            u64::MAX - 1,
            vec![
                server(Role::Base, "postgres:17.11"),
                server(Role::Placebo, "postgres:17.11"),
                server(Role::Candidate, "postgres:18.6"),
            ],
            vec![cell("point-query"), cell("hot-points")],
            (
                DataSize {
                    tables: 1,
                    rows: 1000,
                },
                Timing {
                    blocks: 4,
                    slice_ms: 50,
                    slice_jitter: 0.2,
                    visit_seconds: 1.5,
                    warmup_seconds: 0.3,
                    connections_per_visit: 2,
                    sustained: false,
                    write_seconds: None,
                    warmup_chosen: false,
                    rotated: false,
                    deadline_seconds: None,
                },
            ),
        )
    }
}

pub fn slice(cell: u32, block: u32, round: u32) -> Slice {
    Slice {
        server: ServerId(round % 3),
        cell: CellId(cell),
        block,
        round,
        position: 0,
        connection: 0,
        started_ns: 1_763_721_780_000_000_000 + u64::from(round),
        duration_ns: 50_000_000,
        operations: 1000,
        failed: 0,
        rows: 1000,
        server_cpu_ns: Some(40_000_000),
        run_queue_wait_ns: None,
        client_cpu_ns: 9_000_000,
        foreign_cpu_ns: Some(0),
        steal_ns: None,
        latency_histogram: vec![7; 2000],
        scripts: Vec::new(),
        errors: Vec::new(),
        void: None,
        void_detail: None,
        idle_cpu_ns: None,
        background_cpu_ns: None,
        probe_ns: None,
        probing_ns: None,
        switches: None,
        cpu_pressure_ns: None,
        schedule_lag_ns: None,
    }
}
