//! The words of a run that a published page does not have.

use crate::digest::digest;
use deltabench_model::fact::MachineName;
use deltabench_model::plan::Plan;

/// What a run says of its machine, of places and people, with what stands for each.
pub(crate) fn withheld(plan: &Plan, machine: Option<MachineName>) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut add = |word: &str, instead: &str| words.push((word.to_owned(), instead.to_owned()));
    if let Some(MachineName(name)) = &machine {
        add(name, "(host)");
        add(machine_of(name), "(host)");
    }
    for planned in &plan.servers {
        let build = &planned.installation;
        let place = build.bin_dir.display().to_string();
        add(&place, &path_word(&place));
        let Some(remote) = &build.remote else {
            continue;
        };
        add(&remote.host, "(host)");
        add(&remote.user, "(user)");
        add(&remote.database, "(database)");
        let agent = remote.agent.as_deref().unwrap_or_default();
        add(agent.strip_prefix("ssh:").unwrap_or(agent), "(host)");
    }
    words.sort();
    words.dedup();
    words
}

/// `db1 (Intel, 2 cores)` is kept as the name of a machine: its own name comes first.
pub(crate) fn machine_of(name: &str) -> &str {
    name.split([' ', ',']).next().unwrap_or_default()
}

/// What stands for a path: two of them stay apart.
pub(crate) fn path_word(path: &str) -> String {
    let hash = digest(path);
    format!("(path {})", hash.get(..4).unwrap_or_default())
}
