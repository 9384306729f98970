//! What only the whole shows: parameters never used, transactions left open, writes that are not declared.

use super::Definition;
use super::script::{ScriptDefinition, StepDefinition};
use deltabench_model::problem::Problem;
use std::collections::HashSet;

impl Definition {
    /// Checks a definition that has been read.
    pub(super) fn check_use(&self) -> Result<(), Problem> {
        let used: HashSet<usize> = self
            .scripts
            .iter()
            .flat_map(|script| &script.steps)
            .flat_map(|step| step.template.parameters.clone())
            .collect();
        for (place, parameter) in self.parameters.iter().enumerate() {
            if !used.contains(&place) {
                let name = &parameter.name;
                let what = format!("parameter `{name}` is not used by any step");
                return Err(self.problem_at(parameter.line, what));
            }
        }
        for script in &self.scripts {
            self.check_transactions(script)?;
            for step in &script.steps {
                self.check_sequences(step)?;
            }
        }
        Ok(())
    }

    fn check_transactions(&self, script: &ScriptDefinition) -> Result<(), Problem> {
        let mut open: Option<&StepDefinition> = None;
        for step in &script.steps {
            let sql = step.template.sql("");
            let verb = sql.split_whitespace().next().unwrap_or_default();
            let verb = verb.to_ascii_uppercase();
            let problem = |what: &str| {
                let called = &step.called;
                Err(self.problem_at(step.line, format!("{called} is {verb}, but {what}")))
            };
            match verb.as_str() {
                "BEGIN" | "START" if open.is_some() || step.repeat > 1 => {
                    return problem("a transaction is open");
                }
                "BEGIN" | "START" => open = Some(step),
                "COMMIT" | "END" | "ROLLBACK" if open.is_none() || step.repeat > 1 => {
                    return problem("no transaction is open");
                }
                "COMMIT" | "END" | "ROLLBACK" => open = None,
                "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE" if !self.writes => {
                    return problem("`writes` is false");
                }
                _ => {}
            }
        }
        match open {
            Some(step) => {
                let what = format!("the transaction of {} is not closed", step.called);
                let problem = self.problem_at(step.line, what);
                Err(problem.hint("add a step with COMMIT"))
            }
            None => Ok(()),
        }
    }

    /// A sequence has one value for each operation, so a repeated step would use it again.
    fn check_sequences(&self, step: &StepDefinition) -> Result<(), Problem> {
        let mut used = step.template.parameters.iter();
        let sequence = used.find_map(|&place| {
            let parameter = self.parameters.get(place)?;
            parameter.is_sequence().then_some(&parameter.name)
        });
        match sequence {
            Some(name) if step.repeat > 1 => {
                let called = &step.called;
                let what = format!(
                    "{called} is repeated, but sequence `{name}` has one value for each operation"
                );
                Err(self.problem_at(step.line, what))
            }
            _ => Ok(()),
        }
    }
}
