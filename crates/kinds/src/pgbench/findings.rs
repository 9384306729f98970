//! What a reader should know of what was measured with pgbench's scripts.

use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup};

/// Statements that make transactions of clients wait for each other at a branch.
fn writes_branches(mix: &PgbenchMix) -> bool {
    let drawn = mix.scripts.iter().filter(|script| script.weight > 0);
    drawn
        .map(|script| script.source.text.to_ascii_lowercase())
        .any(|text| {
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            words
                .windows(2)
                .any(|pair| pair == ["update", "pgbench_branches"])
        })
}

/// First version whose rows pgbench loads frozen.
const FREEZE_SINCE: u32 = 140_000;

/// Servers that are loaded otherwise than others, because pgbench does so by version.
fn not_frozen(plan: &Plan, setup: &PgbenchSetup) -> Option<Finding> {
    let old = |server: &&PlannedServer| server.installation.version_num < FREEZE_SINCE;
    let mut names: Vec<&str> = plan
        .servers
        .iter()
        .filter(old)
        .map(|server| server.installation.resolved.as_str())
        .collect();
    let all = names.len() == plan.servers.len();
    names.dedup();
    if all || names.is_empty() || setup.tables.server_side || setup.tables.scale == 0 {
        return None;
    }
    let text = format!(
        "{}: loaded without COPY FREEZE, which pgbench uses from 14 on; its rows are vacuumed but not \
         frozen, those of the others are frozen",
        names.join(", ")
    );
    Some(Finding::new(
        FindingKind::own("pgbench-not-frozen"),
        Severity::Note,
        text,
    ))
}

/// What a reader should know of what is measured with pgbench.
pub(crate) fn findings(plan: &Plan) -> Vec<Finding> {
    let Some(setup) = plan.work.pgbench() else {
        return Vec::new();
    };
    let scale = setup.tables.scale;
    let mut findings: Vec<Finding> = not_frozen(plan, setup).into_iter().collect();
    for mix in setup.mixes.iter().filter(|mix| writes_branches(mix)) {
        let cells = plan.cells.iter().filter(|cell| cell.workload == mix.name);
        let many: Vec<String> = cells
            .filter(|cell| cell.clients > scale && scale > 0)
            .map(|cell| cell.clients.to_string())
            .collect();
        if !many.is_empty() {
            let text = format!(
                "{} at {} clients has fewer branches (scale {scale}) than clients: transactions may \
                 wait for each other's rows, and that is measured too; --scale {} or more avoids it",
                mix.name,
                many.join(", "),
                many.last().map_or("", String::as_str),
            );
            findings.push(Finding::new(
                FindingKind::own("pgbench-contention"),
                Severity::Note,
                text,
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;
    use crate::pgbench::tests::setup;
    use deltabench_model::work::Work;

    #[test]
    fn more_clients_than_branches_are_told_where_branches_are_written() {
        let told = |text: &str, scale: u32| {
            let mut plan = plan_of(&["a", "a", "b"], 3);
            let mut setup = setup(text);
            setup.tables.scale = scale;
            for cell in &mut plan.cells {
                cell.workload = "mine".to_owned();
            }
            plan.work = Work::scripts(Some(setup));
            let found = findings(&plan);
            let texts = found.into_iter().map(|finding| finding.text);
            texts.collect::<Vec<_>>().join("; ")
        };
        let writing = "UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1;";
        assert!(told(writing, 1).contains("mine at 2, 3 clients has fewer branches (scale 1)"));
        assert_eq!(told(writing, 3), "");
        assert_eq!(told("SELECT bid FROM pgbench_branches;", 1), "");
    }
    #[test]
    fn rows_that_are_frozen_on_some_servers_only_are_told() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.work = Work::scripts(Some(setup("SELECT 1;")));
        assert_eq!(findings(&plan), []);
        for server in plan.servers.iter_mut().take(2) {
            server.installation.version_num = 90_624;
        }
        let told = findings(&plan).remove(0);
        assert_eq!(told.kind, "pgbench-not-frozen");
        assert!(told.text.starts_with("a: loaded without"), "{}", told.text);
        plan.servers[2].installation.version_num = 130_000;
        assert_eq!(findings(&plan), [], "all alike");
    }
}
