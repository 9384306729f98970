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
        ([], []) => {
            Err(Problem::new(format!("the run has no target {target}"))
                .hint(format!("it has {names}")))
        }
        _ => Err(
            Problem::new(format!("several targets of the run are {target}"))
                .hint(format!("name one as the tables do: {names}")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::small_run::plan;

    #[test]
    fn a_target_is_named_as_typed_or_as_in_tables_and_one_name_for_two_is_refused() {
        let mut run = plan();
        let candidate = run.candidates().pop().unwrap();
        let server = run.servers.get_mut(candidate.index()).unwrap();
        server.installation.asked = "postgres:18".to_owned();
        for target in ["postgres:18", "postgres:18.6"] {
            assert_eq!(relative_to(&run, target).unwrap().base(), candidate);
        }
        let error = |run: &Plan, target: &str| relative_to(run, target).unwrap_err().error;
        assert!(error(&run, "postgres:16").contains("has no target postgres:16"));
        for server in &mut run.servers {
            server.label = Some("mine".to_owned());
        }
        assert!(error(&run, "mine").contains("several targets"));
        assert_eq!(
            relative_to(&run, "postgres:18.6").unwrap().base(),
            candidate
        );
    }
}
