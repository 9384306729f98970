//! Which workloads a request has, in which order.

use deltabench_model::plan::{Cell, CellId, CellOrder, DataState, Group, Plan};
use deltabench_model::problem::Problem;
use deltabench_run::planning::{Request, Selection};
use deltabench_workload::{Definition, Library, PublishedStep, published_order};

/// The cells of a request.
///
/// Errors: workloads that are not there, or are asked for twice.
pub(crate) fn cells(request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
    let mut cells: Vec<Cell> = Vec::new();
    for name in workload_names(request, library)? {
        for &clients in &request.clients {
            let cell = cell(&name, clients, request, library)?;
            if cells.contains(&cell) {
                let what = format!("{} at {clients} clients is named twice", cell.workload);
                return Err(Problem::new(what).hint("leave one of them out"));
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}

/// The workloads of a request, in report order or, if asked for, in the published one.
///
/// Errors: workloads that are not there.
fn workload_names(request: &Request, library: &Library) -> Result<Vec<String>, Problem> {
    let name = |definition: &&Definition| definition.name.clone();
    let published = request.order == CellOrder::Published;
    let mut names: Vec<String> = match &request.selection {
        Selection::All if published => published_names(|_| true),
        Selection::Named(asked) if published => {
            published_names(|name| asked.iter().any(|other| other == name))
        }
        Selection::Quick => library.quick().iter().map(name).collect(),
        Selection::All => library.published().iter().map(name).collect(),
        Selection::Named(names) => names.clone(),
    };
    let own = own_names(request)?;
    // A file's workload that is also named is no other one: no name means both a file's and a built-in one.
    names.retain(|name| !own.contains(name));
    names.extend(own);
    if let (Selection::Named(asked), true) = (&request.selection, published)
        && let Some(other) = asked.iter().find(|name| !names.contains(name))
    {
        library.get(other)?;
        return Err(
            Problem::new(format!("the published order does not contain {other}"))
                .hint("measure it without --order published"),
        );
    }
    if names.is_empty() {
        return Err(Problem::new("no workload to measure").hint("use --only NAME or --quick"));
    }
    Ok(names)
}

/// The workloads that the request's files bring.
fn own_names(request: &Request) -> Result<Vec<String>, Problem> {
    let sources = request.sources.iter();
    let names = sources.map(|source| Ok(Definition::parse(&source.file, &source.text)?.name));
    let mut names: Vec<String> = names.collect::<Result<_, Problem>>()?;
    let mixes = request.work.pgbench().map(|setup| &setup.mixes);
    names.extend(mixes.into_iter().flatten().map(|mix| mix.name.clone()));
    Ok(names)
}

/// The measured workloads of the published order that are wanted.
fn published_names(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    published_order()
        .iter()
        .filter_map(|step| step.measured())
        .filter(|name| wanted(name))
        .map(str::to_owned)
        .collect()
}

/// Whether the published order vacuums and checkpoints between the plan's previous cell and this one.
pub(super) fn settles_before(plan: &Plan, cell: CellId) -> bool {
    let place = |id: CellId| {
        let cell = plan.cell(id)?;
        published_order()
            .iter()
            .position(|step| step.measured() == Some(&cell.workload))
    };
    let previous = cell.0.checked_sub(1).map(CellId);
    let (Some(before), Some(this)) = (previous.and_then(place), place(cell)) else {
        return false;
    };
    published_order()
        .iter()
        .take(this)
        .skip(before)
        .any(|step| *step == PublishedStep::PostWrite)
}

fn cell(name: &str, clients: u32, request: &Request, library: &Library) -> Result<Cell, Problem> {
    let definition = library.get(name)?;
    let mix = request.work.pgbench().filter(|setup| setup.has(name));
    let told_to_write = mix.is_some_and(|setup| setup.writes);
    // The write phase of the aged state is on the tables of sysbench.
    let state = mix.map(|_| DataState::Fresh).or(definition.state());
    Ok(Cell {
        workload: name.to_owned(),
        group: match told_to_write {
            true => Group::Write,
            false => definition.group,
        },
        clients,
        writes: definition.writes || told_to_write,
        statements_per_operation: definition.statements_per_operation(),
        state: state.unwrap_or(request.state),
        rate: request.rate,
        published: definition.published_rate(&request.data, clients),
        reconnects: definition.reconnects(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{refusal, request, wish};
    use crate::workloads::Workloads;
    use deltabench_model::plan::{DataSize, Role, WorkloadSource};
    use deltabench_run::planning::{check_load, plan};

    #[test]
    fn a_plan_has_base_placebo_and_candidates_and_a_cell_for_each_quick_workload() {
        let library = Library::builtin().unwrap();
        let plan = plan(request(), &Workloads, (&wish("a"), &[wish("b")]), &library).unwrap();
        let roles: Vec<Role> = plan.servers.iter().map(|server| server.role).collect();
        assert_eq!(roles, [Role::Base, Role::Placebo, Role::Candidate]);
        assert_eq!(plan.cells.len(), 8);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_way_out() {
        assert!(refusal(|r| r.data.rows = 0).contains("--rows"));
        let large = |rows, tables| {
            let unnamed = Request {
                selection: Selection::Named(Vec::new()),
                data: DataSize { tables, rows },
                ..request()
            };
            check_load(&unnamed)
        };
        let ids = refusal(|r| r.data.rows = 3_000_000_000);
        assert!(ids.contains("use --rows 2147483647 or fewer"), "{ids}");
        // Tables of another benchmark have ids of their own.
        assert_eq!(large(9_000_000_000, 1), Ok(()));
        assert!(large(1 << 63, 2).unwrap_err().error.contains("10 billion"));
        assert!(refusal(|r| r.clients = vec![0]).contains("zero clients"));
        let crowd = refusal(|r| r.clients = vec![1, u32::MAX]);
        assert!(crowd.contains("use --clients 10000 or fewer"), "{crowd}");
        for slice_ms in [0, 60_001] {
            let slices = refusal(|r| r.timing.slice_ms = slice_ms);
            assert!(
                slices.contains("use --slice-ms between 1 and 60000"),
                "{slices}"
            );
        }
        let many = Request {
            clients: vec![1000],
            ..request()
        };
        let refused = plan(
            many,
            &Workloads,
            (&wish("a"), &[wish("b")]),
            &Library::builtin().unwrap(),
        );
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("max_connections=1010")
        );
        assert!(
            refusal(|r| r.selection = Selection::Named(vec!["point-qurey".into()]))
                .contains("point-query")
        );
        assert!(refusal(|r| r.clients = vec![1, 1]).contains("twice"));
        assert!(refusal(|r| r.delta = Some(0.0)).contains("--delta"));
        assert!(refusal(|r| r.rate = Some(-1.0)).contains("--rate"));
    }

    #[test]
    fn one_client_on_a_shared_core_probes_it_if_asked_and_nobody_else_can() {
        let library = Library::builtin().unwrap();
        let of = |change: fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            plan(request, &Workloads, (&wish("a"), &[wish("b")]), &library)
        };
        let probed = |plan: &Plan| {
            plan.cells
                .iter()
                .filter(|cell| plan.probes_core(cell))
                .count()
        };
        assert_eq!(probed(&of(|_| {}).unwrap()), 0, "not asked");
        assert_eq!(probed(&of(|r| r.probes = true).unwrap()), 8);
        let refused: [fn(&mut Request); 3] = [
            // A curve over clients has one placement, with a core for the client.
            |r| (r.probes, r.clients) = (true, vec![1, 4]),
            |r| (r.probes, r.clients) = (true, vec![4]),
            |r| (r.probes, r.rate) = (true, Some(100.0)),
        ];
        for change in refused {
            let said = of(change).unwrap_err().to_string();
            assert!(said.contains("--probes"), "{said}");
        }
    }

    #[test]
    fn a_workload_of_a_file_that_is_also_named_is_measured_once() {
        let builtin = Library::builtin().unwrap();
        let text = builtin.get("scan").unwrap().text();
        let source = |name: &str| WorkloadSource {
            file: format!("{name}.toml"),
            text: text.replacen("\"scan\"", &format!("\"{name}\""), 1),
        };
        let names = |only: &[&str], files: &[&str]| {
            let mut request = request();
            let only = only.iter().map(|name| (*name).to_owned());
            request.selection = Selection::Named(only.collect());
            request.sources = files.iter().map(|name| source(name)).collect();
            let library = Library::builtin().unwrap();
            let library = library.extended(&request.sources, &request.work).unwrap();
            let found = cells(&request, &library)?.into_iter();
            Ok::<_, Problem>(found.map(|cell| cell.workload).collect::<Vec<_>>())
        };
        // As a night tries again what it suspects of its file.
        assert_eq!(names(&["mine"], &["mine"]).unwrap(), ["mine"]);
        let both = names(&["mine", "point-query"], &["mine", "other"]);
        assert_eq!(both.unwrap(), ["point-query", "mine", "other"]);
        let twice = names(&["scan", "scan"], &[]).unwrap_err();
        assert!(twice.error.contains("named twice"), "{twice}");
    }

    #[test]
    fn the_published_order_is_kept_and_settles_after_its_write_phase() {
        let library = Library::builtin().unwrap();
        let request = Request {
            order: CellOrder::Published,
            selection: Selection::Named(
                ["scan", "read-write-100", "update-index"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            ..request()
        };
        let plan = plan(request, &Workloads, (&wish("a"), &[wish("b")]), &library).unwrap();
        let names: Vec<&str> = plan.cells.iter().map(|cell| &*cell.workload).collect();
        assert_eq!(names, ["update-index", "read-write-100", "scan"]);
        let settles: Vec<bool> = (0..3)
            .map(|cell| settles_before(&plan, CellId(cell)))
            .collect();
        assert_eq!(settles, [false, false, true]);
        let unknown = refusal(|r| {
            r.order = CellOrder::Published;
            r.selection = Selection::Named(vec!["delete-existing".into()]);
        });
        assert!(unknown.contains("published order"), "{unknown}");
    }
}
