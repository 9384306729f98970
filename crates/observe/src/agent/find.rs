//! The main process of a server that is known by its backends.

use super::protocol::Backends;
use deltabench_model::problem::Problem;
use deltabench_proc::{field, process_ids};
use std::collections::BTreeMap;
use std::path::Path;

/// What the kernel calls the server's program.
const NAMES: [&str; 2] = ["postgres", "postmaster"];

/// A process that looks like one of a server.
struct Process {
    pid: u32,
    parent: u32,
    /// Its number where it lives, which in a container is not ours.
    inner: u32,
}

/// Finds the process whose children all these backends are.
///
/// Each must be called `postgres`, have the number that the server gave it (in the container that it may run
/// in) and name the role and the database in its title, so that a process of another machine that happens to
/// have the number is not taken for it. Their parent must be one, called `postgres` too.
///
/// Errors: no such process, or more than one.
pub(super) fn postmaster(proc: &Path, wanted: &Backends) -> Result<u32, Problem> {
    let servers = processes(proc);
    let mut families: BTreeMap<u32, usize> = BTreeMap::new();
    for &backend in &wanted.pids {
        let mut parents: Vec<u32> = servers
            .iter()
            .filter(|process| process.inner == backend)
            .filter(|process| works_for(proc, process.pid, wanted))
            .map(|process| process.parent)
            .filter(|&parent| servers.iter().any(|process| process.pid == parent))
            .collect();
        parents.sort_unstable();
        parents.dedup();
        for parent in parents {
            *families.entry(parent).or_default() += 1;
        }
    }
    families.retain(|_, backends| *backends == wanted.pids.len());
    let mut found = families.keys();
    match (found.next(), found.next()) {
        (Some(&postmaster), None) => Ok(postmaster),
        (None, _) => Err(missing(proc, wanted)),
        _ => Err(problem(wanted).detail(
            "several servers there have backends with these process IDs, in separate containers",
        )),
    }
}

fn processes(proc: &Path) -> Vec<Process> {
    let ids = process_ids(proc).unwrap_or_default();
    ids.into_iter()
        .filter_map(|pid| process(proc, pid))
        .collect()
}

fn process(proc: &Path, pid: u32) -> Option<Process> {
    let status = deltabench_proc::Process::below(proc, pid).status()?;
    if !NAMES.contains(&field(&status, "Name")?) {
        return None;
    }
    // proc_pid_status(5): its numbers from our namespace to its own; kernels before 4.1 do not tell.
    let inner =
        field(&status, "NSpid").and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
    Some(Process {
        pid,
        parent: field(&status, "PPid")?.parse().ok()?,
        inner: inner.unwrap_or(pid),
    })
}

/// Whether the title of a backend, `postgres: [CLUSTER: ]ROLE DATABASE CLIENT ACTIVITY`, names this role and
/// database. A title that was cut, because it has only the room of the first command line, fits if its end is
/// the beginning of them.
fn works_for(proc: &Path, pid: u32, wanted: &Backends) -> bool {
    let title = title(proc, pid);
    let whose = format!(" {} {} ", wanted.user, wanted.database);
    if title.contains(&whose) {
        return true;
    }
    let cut = |(end, _): (usize, char)| whose.get(..end).is_some_and(|part| title.ends_with(part));
    title.starts_with("postgres:") && whose.char_indices().skip(2).any(cut)
}

fn title(proc: &Path, pid: u32) -> String {
    let title = deltabench_proc::Process::below(proc, pid).title();
    title.unwrap_or_default()
}

fn problem(wanted: &Backends) -> Problem {
    let numbers: Vec<String> = wanted.pids.iter().map(u32::to_string).collect();
    Problem::new(format!(
        "the agent cannot find the server whose backends are {}",
        numbers.join(", ")
    ))
    .hint(
        "agent= must name the machine that the server runs on; behind a pooler or a proxy that is not \
         the machine of the address, and a managed service allows no login: leave agent= out there",
    )
}

fn missing(proc: &Path, wanted: &Backends) -> Problem {
    let seen =
        wanted.pids.iter().map(
            |&pid| match deltabench_proc::Process::below(proc, pid).name() {
                None => format!("process {pid} does not exist or is hidden (hidepid)"),
                Some(name) if !NAMES.contains(&name.as_str()) => format!("process {pid} is {name}"),
                Some(_) => format!("process {pid} is `{}`", title(proc, pid)),
            },
        );
    let mut seen: Vec<String> = seen.collect();
    seen.push(format!(
        "looked for: backends of {} in {} with one parent",
        wanted.user, wanted.database
    ));
    problem(wanted).detail(seen.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn add(&self, pid: u32, parent: u32, inner: Option<u32>, (name, title): (&str, &str)) {
            let dir = self.0.path().join(pid.to_string());
            fs::create_dir(&dir).unwrap();
            let inner = inner.map(|inner| format!(" {inner}")).unwrap_or_default();
            let status = format!("Name:\t{name}\nPPid:\t{parent}\nNSpid:\t{pid}{inner}\n");
            fs::write(dir.join("status"), status).unwrap();
            fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
            fs::write(dir.join("cmdline"), title.replace('|', "\0")).unwrap();
        }

        fn find(&self, pids: &[u32]) -> Result<u32, Problem> {
            let wanted = Backends {
                pids: pids.to_vec(),
                user: "me".to_owned(),
                database: "shop".to_owned(),
            };
            postmaster(self.0.path(), &wanted)
        }

        /// A server with a main process and two backends of `me` in `shop`.
        fn server(&self, pid: u32, inner: Option<u32>) {
            let within = |step: u32| inner.map(|inner| inner + step);
            self.add(pid, 1, inner, ("postgres", "/usr/bin/postgres|-D|/data|"));
            let writer = ("postgres", "postgres: main: walwriter   ");
            self.add(pid + 1, pid, within(1), writer);
            let one = ("postgres", "postgres: me shop 10.0.0.9(5000) idle");
            self.add(pid + 2, pid, within(2), one);
            let named = ("postgres", "postgres: main: me shop [local] SELECT||");
            self.add(pid + 3, pid, within(3), named);
        }
    }

    #[test]
    fn the_parent_of_all_backends_is_the_postmaster() {
        let tree = Tree::new();
        tree.server(100, None);
        tree.add(900, 1, None, ("sshd", "sshd: me shop "));
        assert_eq!(tree.find(&[102, 103]).unwrap(), 100);
        assert_eq!(tree.find(&[103]).unwrap(), 100);
    }

    #[test]
    fn what_is_no_backend_of_ours_is_refused_with_what_it_is() {
        let tree = Tree::new();
        tree.server(100, None);
        tree.server(200, None);
        tree.add(900, 1, None, ("sshd", "sshd: me shop "));
        let stranger = ("postgres", "postgres: you shop [local] idle");
        tree.add(300, 100, None, stranger);
        let orphan = ("postgres", "postgres: me shop [local] idle");
        tree.add(301, 900, None, orphan);
        for (pids, fact) in [
            (vec![101], "walwriter"),
            (vec![300], "postgres: you shop"),
            (vec![301], "postgres: me shop"),
            (vec![900], "process 900 is sshd"),
            (vec![102, 999], "process 999 does not exist"),
            (vec![102, 202], "process 102 is `postgres: me shop"),
        ] {
            let problem = tree.find(&pids).unwrap_err();
            let detail = problem.detail.unwrap_or_default();
            assert!(detail.contains(fact), "{pids:?}: {detail}");
            assert!(problem.error.contains(&pids[0].to_string()));
        }
    }

    #[test]
    fn a_server_in_a_container_is_found_by_its_numbers_in_there() {
        let tree = Tree::new();
        tree.server(5000, Some(1));
        assert_eq!(tree.find(&[3, 4]).unwrap(), 5000);
        let outer = tree.find(&[5002]).unwrap_err();
        assert!(outer.detail.unwrap().contains("5002"));
        tree.server(6000, Some(1));
        let twice = tree.find(&[3, 4]).unwrap_err();
        assert!(twice.detail.unwrap().contains("several servers"));
    }

    #[test]
    fn a_title_that_was_cut_fits_by_its_beginning() {
        let tree = Tree::new();
        tree.add(10, 1, None, ("postgres", "/usr/bin/postgres"));
        for (pid, title, fits) in [
            (11, "postgres: me sh", true),
            (12, "postgres: m", true),
            (13, "postgres: you", false),
            (14, "postgres: me", true),
            (15, "postgres: mel shop [local] idle", false),
            (16, "postgres: me shops [local] idle", false),
            (17, "postgres:", false),
        ] {
            tree.add(pid, 10, None, ("postgres", title));
            assert_eq!(tree.find(&[pid]).is_ok(), fits, "{title}");
        }
    }
}
