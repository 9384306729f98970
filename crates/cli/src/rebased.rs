//! A run's plan relative to another of its servers.

use deltabench_model::plan::{Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;

/// The plan with this target for a base.
///
/// Errors: no server of the plan, or several of them, have that name.
pub fn relative_to(plan: &Plan, target: &str) -> Result<Plan, Problem> {
    let sides = || {
        let servers = ServerId::each().zip(&plan.servers);
        servers.filter(|(_, server)| server.role != Role::Placebo)
    };
    let named = |is_meant: &dyn Fn(&PlannedServer) -> bool| -> Vec<ServerId> {
        let meant = sides().filter(|(_, server)| is_meant(server));
        meant.map(|(id, _)| id).collect()
    };
    let by_name = named(&|server| server.name() == target);
    let meant = named(&|server| {
        let installation = &server.installation;
        installation.resolved == target || installation.asked == target
    });
    let names: Vec<String> = sides().map(|(_, server)| server.name()).collect();
    let names = names.join(", ");
    match (by_name.as_slice(), meant.as_slice()) {
        ([base], _) | (_, [base]) => Ok(plan.relative_to(*base)),
        (_, []) => {
            Err(Problem::new(format!("the run has no target {target}"))
                .hint(format!("it has {names}")))
        }
        _ => Err(
            Problem::new(format!("several targets of the run are {target}"))
                .hint(format!("name one as the tables do: {names}")),
        ),
    }
}
