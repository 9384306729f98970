//! A run's plan relative to another of its servers.

use deltabench_model::plan::{Plan, Role, ServerId};
use deltabench_model::problem::Problem;

/// The plan with this target for a base.
///
/// Errors: no server of the plan has that name, or several of them are that target.
pub fn relative_to(plan: &Plan, target: &str) -> Result<Plan, Problem> {
    let sides = || {
        let servers = ServerId::each().zip(&plan.servers);
        servers.filter(|(_, server)| server.role != Role::Placebo)
    };
    let by_name = sides().find(|(id, _)| plan.called(*id) == target);
    let meant = sides().filter(|(_, server)| {
        let installation = &server.installation;
        installation.resolved == target || installation.asked == target
    });
    let meant: Vec<ServerId> = meant.map(|(id, _)| id).collect();
    let names: Vec<String> = sides().map(|(id, _)| plan.called(id)).collect();
    let names = names.join(", ");
    match (by_name, meant.as_slice()) {
        (Some((base, _)), _) => Ok(plan.relative_to(base)),
        (None, [base]) => Ok(plan.relative_to(*base)),
        (None, []) => {
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
        assert_eq!(
            relative_to(&run, "postgres:18.6").unwrap().base(),
            candidate
        );
        // Of servers that have one name each has its own in the tables, and the hint names these.
        assert_eq!(relative_to(&run, "mine").unwrap().base(), run.base());
        assert_eq!(relative_to(&run, "mine (2)").unwrap().base(), candidate);
        for server in &mut run.servers {
            server.installation.resolved = "postgres:18.6".to_owned();
        }
        let several = relative_to(&run, "postgres:18.6").unwrap_err();
        assert!(several.error.contains("several targets"));
        assert!(several.hint.unwrap().ends_with("mine, mine (2)"));
    }
}
