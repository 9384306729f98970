//! What an experiment would do, before it does anything.

use super::machine::told;
use crate::amounts::{gigabytes, hours};
use crate::console::print_stdout;
use crate::failure::Failure;
use crate::kinds::outlook::client;
use deltabench_experiment::Experiment;
use deltabench_kinds::{run_half, show_half};
use deltabench_model::installation::Engine;
use deltabench_model::plan::{Plan, PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use deltabench_observe::own_affinity;
use deltabench_run::estimate::{Estimate, estimate, estimate_on};
use deltabench_run::fleet::Host;
use deltabench_run::occupancy::{Machine, Occupancy};
use std::time::Duration;

/// Prints the plan: servers, cells, parts, and what each part takes of disk, memory and time.
///
/// Exit code 0, or 2 where a part does not fit on the host, or on the machine that somebody names; the table
/// says which.
pub fn print(
    experiment: &Experiment,
    runs: &[(String, Plan)],
    place: (&Host, Option<&Machine>),
) -> Result<u8, Failure> {
    let (_, machine) = place;
    let mut lines = title(experiment);
    if let Some((_, plan)) = runs.first() {
        lines.push(String::new());
        lines.extend(servers(runs));
        lines.push(String::new());
        lines.extend(cells(plan, machine));
    }
    lines.push(String::new());
    lines.extend(machine.map(|machine| format!("on a machine with {}", told(machine))));
    let (parts, refused) = parts(runs, place);
    lines.extend(parts);
    lines.extend(in_groups(runs));
    print_stdout(&lines.join("\n"))?;
    match refused {
        Some(problem) => Err(Failure::Refused(problem)),
        None => Ok(0),
    }
}

/// What the file calls itself.
fn title(experiment: &Experiment) -> Vec<String> {
    let name = match &experiment.scale {
        Some(scale) => format!("{} at scale {scale}", experiment.name),
        None => experiment.name.clone(),
    };
    std::iter::once(name).chain(experiment.subject()).collect()
}

/// The servers of all runs, each once: groups have the base in common.
fn servers(runs: &[(String, Plan)]) -> Vec<String> {
    let mut rows = vec![head(&["server", "role", "runs", "settings"])];
    for server in runs.iter().flat_map(|(_, plan)| &plan.servers) {
        let row = vec![
            server.name(),
            role(server).to_owned(),
            server.installation.resolved.clone(),
            settings(server),
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    left(&rows)
}

fn role(server: &PlannedServer) -> &'static str {
    match server.role {
        Role::Base => "base",
        Role::Placebo => "placebo",
        Role::Candidate => "candidate",
    }
}

/// `cx10a_c8r32: 24 settings, 2 adapted; io_workers = 4`.
fn settings(server: &PlannedServer) -> String {
    let swept: Vec<String> = server
        .coordinates
        .iter()
        .filter(|(axis, _)| server.settings.iter().any(|(name, _)| name == axis))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let mut parts = Vec::new();
    let engine = server.installation.engine != Engine::Postgres;
    match &server.configuration {
        _ if engine => parts.extend(options(server)),
        // What its program takes is not known before it is here.
        Some(used) if server.installation.binary_sha256.is_empty() => parts.push(format!(
            "{}: {} settings, which deltabench adapts after the download",
            used.name,
            server.settings.len()
        )),
        Some(used) => parts.push(format!(
            "{}: {} settings, {} adapted to this version",
            used.name,
            server.settings.len(),
            used.adapted.len()
        )),
        None if server.settings.is_empty() => parts.push("steady".to_owned()),
        None => parts.push(format!("steady and {} more", server.settings.len())),
    }
    parts.extend(swept);
    parts.join("; ")
}

/// Options of a library that are on no axis.
fn options(server: &PlannedServer) -> Vec<String> {
    let on_axis = |name: &String| server.coordinates.iter().any(|(axis, _)| axis == name);
    let own = server.settings.iter().filter(|(name, _)| !on_axis(name));
    own.map(|(name, value)| format!("{name} = {value}"))
        .collect()
}

fn cells(plan: &Plan, machine: Option<&Machine>) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut clients: Vec<u32> = Vec::new();
    for cell in &plan.cells {
        if !names.contains(&cell.workload.as_str()) {
            names.push(&cell.workload);
        }
        if !clients.contains(&cell.clients) {
            clients.push(cell.clients);
        }
    }
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    let mut lines = vec![
        format!(
            "{} {}: {}",
            plan.cells.len(),
            if plan.cells.len() == 1 {
                "cell"
            } else {
                "cells"
            },
            names.join(", ")
        ),
        match plan.work.is_embedded() {
            true => format!("threads: {}", clients.join(", ")),
            false => format!("clients: {}", clients.join(", ")),
        },
        show_half(&plan.work).block(plan),
    ];
    let cores = match machine {
        Some(machine) => (0..index(machine.cores)).collect(),
        None => own_affinity().unwrap_or_default(),
    };
    lines.extend(client(plan, &cores).map(|client| format!("client: {client}")));
    lines
}

/// A line for each part, and why one cannot be done. What one takes that does not fit is printed too, to see
/// what it would fit on.
fn parts(
    runs: &[(String, Plan)],
    (host, machine): (&Host, Option<&Machine>),
) -> (Vec<String>, Option<Problem>) {
    let mut rows = vec![head(&[
        "part",
        "tables",
        "memory",
        "disk at most",
        "set-up",
        "measuring at most",
    ])];
    let mut refused = None;
    let mut total = Duration::ZERO;
    let mut estimated = false;
    for (_, plan) in runs {
        let kind = run_half(&plan.work);
        let found = match machine {
            Some(machine) => estimate_on(plan, kind, machine),
            None => estimate(plan, kind, host),
        };
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                rows.push(vec![
                    name(plan),
                    show_half(&plan.work).data(plan),
                    "cannot be".to_owned(),
                ]);
                refused.get_or_insert(problem);
                continue;
            }
        };
        estimated = true;
        total += found.set_up + found.measuring;
        let mut row = vec![
            name(plan),
            show_half(&plan.work).data(plan),
            memory(&found),
            gigabytes(found.disk_bytes),
            hours(found.set_up.as_secs_f64()),
            hours(found.measuring.as_secs_f64()),
        ];
        if let Some(problem) = found.lacks {
            row.push("does not fit".to_owned());
            refused.get_or_insert(problem);
        }
        rows.push(row);
    }
    let mut lines = left(&rows);
    if estimated {
        lines.push(format!(
            "about {} in all, downloads and builds not counted",
            hours(total.as_secs_f64())
        ));
    }
    (lines, refused)
}

/// What groups are, if there are any.
fn in_groups(runs: &[(String, Plan)]) -> Option<String> {
    let group = |(_, plan): &(String, Plan)| plan.experiment.as_ref()?.group;
    runs.iter().find_map(group).map(|_| {
        "groups: not all servers run at a time; each group is a run with the base, and one group follows \
         another"
            .to_owned()
    })
}

fn name(plan: &Plan) -> String {
    let Some(part) = &plan.experiment else {
        return String::new();
    };
    let mut words = vec![format!("{} of {}", part.part, part.of)];
    words.extend(
        part.group
            .map(|(group, of)| format!("group {group} of {of}")),
    );
    words.extend(
        part.coordinates
            .iter()
            .map(|(axis, value)| format!("{axis} {value}")),
    );
    if part.repetition > 1 {
        words.push(format!("repetition {}", part.repetition));
    }
    words.join(", ")
}

fn memory(found: &Estimate) -> String {
    let how = match found.occupancy {
        Occupancy::Together => format!("{} servers at once", found.servers),
        Occupancy::Rotated => "one server at a time".to_owned(),
    };
    format!("{}, {how}", gigabytes(found.memory_bytes))
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Columns aligned to the left.
fn left(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths);
            let line: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            line.join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::ConfigurationUse;
    use deltabench_run::fleet::HugePagesWish;
    use deltabench_server::ServerUser;
    use std::path::Path;

    #[test]
    fn settings_of_a_server_that_is_not_here_are_not_said_to_need_no_adapting() {
        let mut server = deltabench_testkit::small_run::plan().servers.remove(0);
        server.settings = vec![("work_mem".to_owned(), "4MB".to_owned())];
        server.configuration = Some(ConfigurationUse {
            name: "cx10a".to_owned(),
            adapted: Vec::new(),
        });
        assert_eq!(
            settings(&server),
            "cx10a: 1 settings, 0 adapted to this version"
        );
        server.installation.binary_sha256.clear();
        assert_eq!(
            settings(&server),
            "cx10a: 1 settings, which deltabench adapts after the download"
        );
    }

    fn host(directory: &Path) -> Host {
        Host {
            workspaces: directory.to_owned(),
            cache: directory.to_owned(),
            user: ServerUser::choose(None).unwrap(),
            huge_pages: HugePagesWish::Off,
        }
    }

    #[test]
    fn a_part_that_does_not_fit_says_what_it_would_take() {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path());
        let mut plan = deltabench_testkit::small_run::plan();
        let small = estimate(&plan, run_half(&plan.work), &host).unwrap();
        assert_eq!(small.lacks, None);
        plan.data.rows = 1_000_000_000_000;
        let large = estimate(&plan, run_half(&plan.work), &host).unwrap();
        assert!(large.lacks.is_some() && large.disk_bytes > 100 << 40);
        let runs = [("r-1".to_owned(), plan)];
        let (lines, refused) = parts(&runs, (&host, None));
        assert!(refused.is_some());
        let [_, part, all] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        let figures = part.strip_suffix("  does not fit").unwrap().trim_end();
        assert!(figures.ends_with(" h"), "{part}");
        assert!(
            all.starts_with("about ") && !all.starts_with("about 0 s"),
            "{all}"
        );
    }

    #[test]
    fn another_machine_has_its_own_room_and_fewer_servers_of_it_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path());
        let runs = [("r-1".to_owned(), deltabench_testkit::small_run::plan())];
        let on = |memory_mb: u64, disk_mb: u64| {
            let machine = Machine {
                cores: 8,
                memory_bytes: Some(memory_mb << 20),
                disk_bytes: Some(disk_mb << 20),
            };
            let (lines, refused) = parts(&runs, (&host, Some(&machine)));
            (lines.join("\n"), refused)
        };
        let (large, none) = on(1 << 20, 1 << 20);
        assert!(
            none.is_none() && large.contains("servers at once"),
            "{large}"
        );
        let (small, none) = on(600, 1 << 20);
        assert!(
            none.is_none() && small.contains("one server at a time"),
            "{small}"
        );
        let (_, refused) = on(100, 1 << 20);
        assert!(refused.unwrap().error.contains("not enough memory"));
        let (_, refused) = on(1 << 20, 1);
        assert!(refused.unwrap().error.contains("not enough disk"));
    }
}
