//! Groups of servers: what does not fit into memory together is measured in several runs, each with the base,
//! its copy and as many candidates as fit.

use super::Planned;
use deltabench_experiment::Experiment;
use deltabench_kinds::run_half;
use deltabench_model::plan::{Plan, PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index};
use deltabench_run::estimate::fitting_together;
use deltabench_run::occupancy::Machine;

/// The same with each run divided into groups, if the file asks for it, or if its servers do not fit into the
/// memory of `machine` together and base, placebo and a candidate do. Settings that depend on the number of
/// servers are equal in all runs.
///
/// Errors: too few servers at a time for a comparison.
pub fn in_groups(
    experiment: &Experiment,
    planned: Planned,
    machine: &Machine,
) -> Result<Planned, Problem> {
    grouped(planned, experiment.measurement.servers_at_once, machine)
}

/// `asked`: the most servers at a time, if the file says it.
fn grouped(planned: Planned, asked: Option<u32>, machine: &Machine) -> Result<Planned, Problem> {
    let mut runs = Vec::new();
    for (name, plan) in planned.runs {
        let fitting = fitting_together(&plan, run_half(&plan.work), machine)?;
        let asked = asked.map(|asked| index(u64::from(asked)));
        let size = match (asked, fitting) {
            (Some(asked), Some(fitting)) => Some(asked.min(fitting)),
            (one, other) => one.or(other),
        };
        let plans = match size {
            Some(size) => groups(&plan, size, asked)?,
            None => vec![plan],
        };
        let several = plans.len() > 1;
        runs.extend((1..).zip(plans).map(|(number, plan): (u32, Plan)| {
            let name = match several {
                true => format!("{name}-{number}"),
                false => name.clone(),
            };
            (name, plan)
        }));
    }
    let sizes = runs.iter().map(|(_, plan)| plan.servers.len());
    let most = count(sizes.max().unwrap_or(0));
    for (_, plan) in &mut runs {
        run_half(&plan.work).fit_to_servers(plan, most);
    }
    Ok(Planned { runs, ..planned })
}

/// A plan divided into groups of at most `size` servers, as even as possible; the plan itself if all of them
/// are one group, or if no candidate fits together with the base.
fn groups(plan: &Plan, size: usize, asked: Option<usize>) -> Result<Vec<Plan>, Problem> {
    let is_candidate = |server: &&PlannedServer| server.role == Role::Candidate;
    let (candidates, controls): (Vec<&PlannedServer>, Vec<&PlannedServer>) =
        plan.servers.iter().partition(is_candidate);
    let beside = size.saturating_sub(controls.len());
    if candidates.len() <= beside || candidates.is_empty() {
        return Ok(vec![plan.clone()]);
    }
    if beside == 0 {
        return match asked.filter(|asked| *asked <= controls.len()) {
            Some(asked) => Err(too_few(asked, controls.len())),
            // They run one at a time.
            None => Ok(vec![plan.clone()]),
        };
    }
    let number = candidates.len().div_ceil(beside);
    let each = candidates.len().div_ceil(number);
    let groups: Vec<&[&PlannedServer]> = candidates.chunks(each).collect();
    let of = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let plan_of = |(number, group): (u32, &[&PlannedServer])| {
        let mut own = plan.clone();
        let servers = controls.iter().chain(group);
        own.servers = servers.map(|server| (*server).clone()).collect();
        if let Some(part) = &mut own.experiment {
            part.group = Some((number, of));
        }
        own
    };
    Ok((1..).zip(groups).map(plan_of).collect())
}

fn too_few(asked: usize, controls: usize) -> Problem {
    Problem::new(format!(
        "servers_at_once = {asked} leaves no room for a comparison"
    ))
    .detail("the base, its copy if there is one, and a candidate run at the same time")
    .hint(format!(
        "write servers_at_once = {} or more, or residence = \"rotated\" for one server at a time",
        count(controls) + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::part_of;
    use deltabench_model::work::Work;
    use deltabench_model::work::insert::InsertSetup;
    use deltabench_testkit::small_insert;
    use deltabench_testkit::small_run::plan;

    /// A part with so many candidates.
    fn part(candidates: usize) -> Plan {
        let mut plan = plan();
        let like = plan.servers.remove(2);
        plan.servers
            .extend((0..candidates).map(|number| PlannedServer {
                label: Some(format!("c{number}")),
                ..like.clone()
            }));
        plan.experiment = Some(part_of("e"));
        plan
    }

    fn planned(plan: Plan) -> Planned {
        Planned {
            execution: "e".to_owned(),
            named: (String::new(), 0, 0),
            runs: vec![("e-1".to_owned(), plan)],
        }
    }

    fn machine(memory_mb: u64) -> Machine {
        Machine {
            cores: 8,
            memory_bytes: Some(memory_mb << 20),
            disk_bytes: None,
        }
    }

    #[test]
    fn each_group_has_the_base_its_copy_and_as_many_candidates_as_fit() {
        let done = grouped(planned(part(5)), Some(4), &machine(1 << 20)).unwrap();
        let names: Vec<&str> = done.runs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["e-1-1", "e-1-2", "e-1-3"]);
        let mut all = Vec::new();
        for (number, (_, plan)) in (1..).zip(&done.runs) {
            let group = plan.experiment.as_ref().unwrap().group;
            assert_eq!(group, Some((number, 3)));
            assert_eq!(plan.servers[0].role, Role::Base);
            assert_eq!(plan.servers[1].role, Role::Placebo);
            all.extend(plan.servers[2..].iter().map(PlannedServer::name));
        }
        assert_eq!(all, ["c0", "c1", "c2", "c3", "c4"]);
    }

    #[test]
    fn memory_decides_if_nobody_asks() {
        let one = fitting_mb();
        let number = |servers: u64, candidates| {
            let done = grouped(planned(part(candidates)), None, &machine(servers * one + 8));
            done.unwrap().runs.len()
        };
        assert_eq!(number(6, 4), 1, "all fit");
        assert_eq!(number(5, 4), 2);
        assert_eq!(number(4, 4), 2);
        assert_eq!(number(3, 4), 4);
        assert_eq!(number(2, 4), 1, "no candidate fits: one server at a time");
        let done = grouped(planned(part(4)), Some(5), &machine(3 * one + 8)).unwrap();
        assert_eq!(done.runs.len(), 4, "fewer fit than were asked for");
    }

    /// Memory of one server, MB.
    fn fitting_mb() -> u64 {
        let plan = part(1);
        let needs = run_half(&plan.work).needs(&plan).unwrap();
        needs.memory_bytes.div_ceil(1 << 20)
    }

    #[test]
    fn too_few_servers_at_a_time_are_refused() {
        let refused = grouped(planned(part(2)), Some(2), &machine(1 << 20));
        let refused = refused.err().unwrap();
        assert!(refused.hint.unwrap().contains("servers_at_once = 3"));
    }

    #[test]
    fn servers_in_turns_have_the_settings_of_the_largest_group() {
        let mut plan = part(5);
        plan.work = Work::Insert(InsertSetup {
            turns: 20,
            ..small_insert()
        });
        let done = grouped(planned(plan), Some(4), &machine(1 << 20)).unwrap();
        let sizes: Vec<usize> = done
            .runs
            .iter()
            .map(|(_, plan)| plan.servers.len())
            .collect();
        assert_eq!(sizes, [4, 4, 3]);
        let all = done.runs.iter().flat_map(|(_, plan)| &plan.servers);
        for server in all {
            let found = { server.settings.iter() }.find(|(name, _)| name == "checkpoint_timeout");
            assert_eq!(found.unwrap().1, "1200s", "4 times 5 min");
        }
    }

    #[test]
    fn servers_that_run_one_at_a_time_anyway_are_one_group() {
        let mut plan = part(4);
        plan.timing.rotated = true;
        let done = grouped(planned(plan), None, &machine(3 * fitting_mb() + 8));
        assert_eq!(done.unwrap().runs.len(), 1);
    }
}
