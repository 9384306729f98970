//! What cannot be counted, refused before anything starts.

use deltabench_model::plan::{CacheState, Cell, Limits, Plan, Transport};
use deltabench_model::problem::Problem;
use deltabench_server::Counter;
use deltabench_workload::{Definition, Library};

/// Settings that have a statement's work done where it is not counted, with the values that do not.
const ELSEWHERE: [(&str, &[&str], &str); 5] = [
    (
        "max_parallel_workers_per_gather",
        &["0"],
        "a parallel plan does part of a statement in other processes",
    ),
    (
        "debug_parallel_query",
        &["off", "false", "no", "0"],
        "it has plans made parallel",
    ),
    (
        "force_parallel_mode",
        &["off", "false", "no", "0"],
        "it has plans made parallel",
    ),
    (
        "jit",
        &["off", "false", "no", "0"],
        "the count would include the compiler's own instructions, and its code has no names",
    ),
    (
        "io_method",
        &["sync"],
        "io_uring and workers read for the backend outside of the count",
    ),
];

/// Refuses a plan that cannot be counted.
///
/// Errors: the first thing that is in the way, with a way out.
pub fn check(plan: &Plan) -> Result<(), Problem> {
    if let Some(server) = plan
        .servers
        .iter()
        .find(|server| server.installation.remote.is_some())
    {
        return Err(not_ours(&server.installation.asked));
    }
    if let Some(cell) = plan.cells.iter().find(|cell| cell.clients != 1) {
        return Err(several_clients(cell.clients));
    }
    for server in &plan.servers {
        check_settings(&[plan.settings.as_slice(), &server.settings].concat(), None)?;
    }
    check_texts(plan)?;
    if let Some(cell) = reconnecting(plan)? {
        return Err(Problem::new(format!("{} cannot be counted", cell.workload))
            .detail("it opens a connection for each operation, and a count is of one connection")
            .hint("leave it out"));
    }
    if plan.cells.iter().any(|cell| cell.rate.is_some()) {
        return Err(changes_nothing("a rate"));
    }
    check_conditions(&plan.limits, plan.cache, plan.transport)
}

/// The first cell whose operations have a connection each.
fn reconnecting(plan: &Plan) -> Result<Option<&Cell>, Problem> {
    if plan.work.has_passes() || plan.work.is_embedded() {
        return Ok(None);
    }
    let library = Library::of_plan(plan)?;
    let is = |cell: &&Cell| {
        library
            .get(&cell.workload)
            .is_ok_and(Definition::reconnects)
    };
    Ok(plan.cells.iter().find(is))
}

/// Refuses workloads and scripts that would be counted in pieces.
fn check_texts(plan: &Plan) -> Result<(), Problem> {
    let mut texts = plan.workloads.iter().chain(plan.work.script_sources());
    match texts.find(|source| Counter::is_mark_in(&source.text)) {
        None => Ok(()),
        Some(source) => Err(Problem::new(format!("{} cannot be counted", source.file))
            .detail("it names pg_backend_pid, but calls of that function start and end a count")
            .hint("leave that function out")),
    }
}

/// Refuses settings under which work is done where it is not counted; of one that is there twice the last
/// counts. `option` is the one that they were typed with, if one was.
///
/// Errors: the first of them, with the value that does not.
pub fn check_settings(settings: &[(String, String)], option: Option<&str>) -> Result<(), Problem> {
    for (name, harmless, why) in ELSEWHERE {
        let mut asked = settings.iter().rev();
        let found = asked.find(|(asked, _)| asked.eq_ignore_ascii_case(name));
        let value = found.map(|(_, value)| value.trim().to_ascii_lowercase());
        if let Some(value) = value.filter(|value| !harmless.contains(&value.as_str())) {
            let harmless = harmless.first().copied().unwrap_or_default();
            return Err(Problem::new(format!("{name} = {value} cannot be counted"))
                .detail(why)
                .hint(match option {
                    // A version that does not know the setting refuses any value.
                    Some(option) => format!("leave it out, or write {option} {name}={harmless}"),
                    None => format!("leave out {name}, or set it to {harmless}"),
                }));
        }
    }
    Ok(())
}

/// That more than one client is asked for.
pub fn several_clients(clients: u32) -> Problem {
    Problem::new(format!("{clients} clients cannot be counted"))
        .detail("how often clients wait for a lock depends on time, so instructions do, too")
        .hint("leave out --clients: counts use one client")
}

/// A server that was there before.
pub fn not_ours(target: &str) -> Problem {
    Problem::new(format!("{target} cannot be counted"))
        .detail(
            "the count begins at the first instruction of a server, so deltabench must start it",
        )
        .hint("name the same version as a target, for example postgres:18 or path:/opt/pg18")
}

/// Refuses conditions that servers are not counted under.
///
/// Errors: the first of them.
pub fn check_conditions(
    limits: &Limits,
    cache: CacheState,
    transport: Transport,
) -> Result<(), Problem> {
    let given = [
        (limits.memory_bytes.is_some(), "a limit of memory"),
        (limits.storage.is_some(), "a limit of the device"),
        (cache != CacheState::AsIs, "another state of caches"),
        (transport != Transport::Socket, "another transport"),
    ];
    let mut given = given.iter().filter(|(is_given, _)| *is_given);
    match given.next() {
        None => Ok(()),
        Some((_, what)) => Err(changes_nothing(what)),
    }
}

fn changes_nothing(what: &str) -> Problem {
    Problem::new(format!("{what} changes no count"))
        .detail("deltabench counts instructions on local sockets, in memory, without limits")
        .hint("leave it out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::WorkloadSource;

    fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn work_in_other_processes_and_compiled_code_are_refused_with_a_way_out() {
        for (name, value) in [
            ("jit", "on"),
            ("JIT", "On"),
            ("max_parallel_workers_per_gather", "2"),
            ("io_method", "io_uring"),
            ("io_method", "worker"),
            ("debug_parallel_query", "regress"),
        ] {
            let typed = settings(&[(name, value)]);
            let lower = name.to_ascii_lowercase();
            let hint = |option| check_settings(&typed, option).unwrap_err().hint.unwrap();
            let of_candidates = hint(Some("--candidate-set"));
            assert!(
                of_candidates.contains(&format!("leave it out, or write --candidate-set {lower}="))
            );
            assert!(hint(None).starts_with(&format!("leave out {lower}, or set it to ")));
        }
        let harmless = [("jit", "off"), ("work_mem", "64MB"), ("io_method", "sync")];
        check_settings(&settings(&harmless), None).unwrap();
    }

    #[test]
    fn a_workload_that_asks_for_marks_of_its_own_is_refused() {
        let mut plan = deltabench_testkit::small_run::plan();
        plan.cells.truncate(1);
        check(&plan).unwrap();
        plan.workloads.push(WorkloadSource {
            file: "mine.toml".to_owned(),
            text: "sql = \"SELECT PG_Backend_PID()\"".to_owned(),
        });
        let refused = check(&plan).unwrap_err();
        assert_eq!(refused.error, "mine.toml cannot be counted");
    }

    #[test]
    fn only_the_last_value_of_a_setting_counts() {
        check_settings(&settings(&[("jit", "on"), ("jit", "off")]), None).unwrap();
        assert!(check_settings(&settings(&[("jit", "off"), ("jit", "on")]), None).is_err());
    }
}
