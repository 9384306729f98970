//! Where servers live on this machine.

use crate::arguments::conditions::{HugePagesWord, Servers};
use crate::cluster_dirs;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use deltabench_kinds::run_half;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_observe::remove_left_over_cgroups;
use deltabench_run::estimate::occupancy;
use deltabench_run::fleet::{Host, HugePagesWish};
use deltabench_run::occupancy::Occupancy;
use deltabench_run::{limits, remote};
use deltabench_server::{ServerUser, Workspace, sweep};

/// The host of the request, after what killed runs left there has been cleared away.
pub fn swept_host(arguments: &Servers, config: &Config) -> Result<Host, Failure> {
    let host = host(arguments, config).map_err(Failure::Refused)?;
    let mut parents = cluster_dirs::remembered(&config.lab);
    parents.insert(host.workspaces.clone());
    for swept in parents.iter().flat_map(|parent| sweep(parent)) {
        say(&swept);
    }
    if arguments.cluster_dir.is_some() {
        cluster_dirs::remember(&config.lab, &host.workspaces);
    }
    // After the servers that were in them have been stopped.
    let groups = remove_left_over_cgroups();
    if groups > 0 {
        say(&format!(
            "removed {groups} control groups of meters of a killed run"
        ));
    }
    Ok(host)
}

/// The host as the options describe it.
///
/// Errors: no such account; a directory for clusters that cannot be used.
pub fn host(arguments: &Servers, config: &Config) -> Result<Host, Problem> {
    let user = ServerUser::choose(arguments.server_user.as_deref())?;
    let workspaces = match &arguments.cluster_dir {
        Some(directory) => std::path::absolute(directory).map_err(|error| {
            Problem::new(format!("bad directory {}", directory.display())).detail(error.to_string())
        })?,
        None => Workspace::default_parent(&user, &config.lab),
    };
    if arguments.cluster_dir.is_some() {
        Workspace::check_place(&workspaces, &user)?;
    }
    let huge_pages = match arguments.huge_pages {
        HugePagesWord::Try => HugePagesWish::Try,
        HugePagesWord::On => HugePagesWish::On,
        HugePagesWord::Off => HugePagesWish::Off,
    };
    Ok(Host {
        workspaces,
        cache: config.cache.clone(),
        user,
        huge_pages,
    })
}

/// Refuses samples of servers that are there for their turns only.
fn check_sampled(plan: &Plan, occupancy: Occupancy) -> Result<(), Problem> {
    let option = match (plan.observing.profile, plan.observing.waits_per_second) {
        _ if occupancy == Occupancy::Together => return Ok(()),
        (Some(_), _) => "--sample",
        (None, 0) => return Ok(()),
        (None, _) => "--waits",
    };
    let why = match plan.timing.rotated {
        true => "each runs only during its turns, as you asked for",
        false => "they do not fit into memory together, so each runs only during its turns",
    };
    Err(
        Problem::new("servers that run one at a time cannot be sampled")
            .detail(why)
            .hint(format!(
                "leave out {option}, or measure fewer rows (--rows)"
            )),
    )
}

/// Whether a plan can be carried out on this host, as far as can be said before anything is started.
pub fn check_fits(plan: &Plan, host: &Host) -> Result<(), Problem> {
    check_sampled(plan, occupancy(plan, run_half(&plan.work), host)?)?;
    limits::check(&plan.limits, &host.workspaces)?;
    remote::check(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::ProfilePlan;

    #[test]
    fn only_servers_that_run_together_are_sampled() {
        let mut plan = deltabench_testkit::small_run::plan();
        check_sampled(&plan, Occupancy::Rotated).unwrap();
        plan.observing.profile = Some(ProfilePlan {
            rate: 997,
            milliseconds: 1500,
            forced: false,
        });
        let hint = |plan: &Plan| {
            check_sampled(plan, Occupancy::Together).unwrap();
            let refused = check_sampled(plan, Occupancy::Rotated).unwrap_err();
            refused.hint.unwrap()
        };
        assert!(hint(&plan).contains("--sample"));
        plan.observing.profile = None;
        plan.observing.waits_per_second = 50;
        assert!(hint(&plan).contains("--waits"));
    }
}
