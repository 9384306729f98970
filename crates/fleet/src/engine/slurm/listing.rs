//! What `squeue`, `sacct` and `sinfo` print.

use crate::engine::{JobState, Limits, Node, Seen};
use deltabench_model::problem::Problem;

/// `squeue`, one line for each element. A reason may contain anything, so it is last.
pub(super) const SQUEUE: [&str; 4] = [
    "--noheader",
    "--states=all",
    "--array",
    "--Format=ArrayJobID:|,ArrayTaskID:|,State:|,NodeList:|,exit_code:|,Reason:",
];

/// `squeue` for elements that run, each with the job that it is.
pub(super) const RUNNING: [&str; 4] = [
    "--noheader",
    "--states=RUNNING",
    "--array",
    "--Format=JobID:|,ArrayJobID:|,ArrayTaskID:|,RestartCnt:|,NodeList:",
];

/// `squeue` for jobs and their comments.
pub(super) const BY_COMMENT: [&str; 3] = ["--noheader", "--states=all", "--format=%F|%k"];

/// `squeue` for jobs and their names.
pub(super) const BY_NAME: [&str; 3] = ["--noheader", "--states=all", "--format=%F|%j"];

/// `sacct` for jobs and their names, of the last 30 days.
pub(super) const SACCT_BY_NAME: [&str; 5] = [
    "--noheader",
    "--allocations",
    "--parsable2",
    "--starttime=now-30days",
    "--format=JobID,JobName",
];

/// `sacct` for what the controller has forgotten.
pub(super) const SACCT: [&str; 4] = [
    "--noheader",
    "--allocations",
    "--parsable2",
    "--format=JobID,State,ExitCode,NodeList",
];

/// `sinfo`, one line for each node and partition.
pub(super) const SINFO: [&str; 3] = ["--noheader", "--Node", "--format=%N|%T|%c|%m|%f|%E"];

/// The elements in a list of `squeue`.
///
/// Errors: a line is not of its form.
pub(super) fn elements(listed: &str) -> Result<Vec<Seen>, Problem> {
    let mut seen = Vec::new();
    for line in listed.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.splitn(6, '|').map(str::trim).collect();
        let [job, elements, state, node, code, reason] = fields.as_slice() else {
            return Err(strange("squeue", line));
        };
        // A job that is no array is none of ours.
        if *elements == "N/A" {
            continue;
        }
        let elements = numbers(elements).ok_or_else(|| strange("squeue", line))?;
        let state = state_of(state, node, exit_code(code), reason);
        seen.extend(elements.into_iter().map(|element| Seen {
            job: (*job).to_owned(),
            element,
            state: state.clone(),
        }));
    }
    Ok(seen)
}

/// An element that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The array.
    pub job: String,
    pub element: u32,
    /// The job that the element itself is.
    pub id: String,
    /// How often it was put back into the queue.
    pub restarts: u32,
    pub node: String,
}

impl Running {
    /// What tells this start of the element from all others.
    pub fn token(&self) -> String {
        format!("{}.{}", self.id, self.restarts)
    }
}

/// The elements in a list of [`RUNNING`].
///
/// Errors: a line is not of its form.
pub(super) fn running(listed: &str) -> Result<Vec<Running>, Problem> {
    let mut running = Vec::new();
    for line in listed.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
        let [id, job, element, restarts, node] = fields.as_slice() else {
            return Err(strange("squeue", line));
        };
        if *element == "N/A" {
            continue;
        }
        running.push(Running {
            job: (*job).to_owned(),
            element: element.parse().map_err(|_| strange("squeue", line))?,
            id: (*id).to_owned(),
            restarts: restarts.parse().map_err(|_| strange("squeue", line))?,
            node: (*node).to_owned(),
        });
    }
    Ok(running)
}

/// The elements in a list of `sacct`.
///
/// Errors: a line is not of its form.
pub(super) fn accounted(listed: &str) -> Result<Vec<Seen>, Problem> {
    let mut seen = Vec::new();
    for line in listed.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.splitn(4, '|').map(str::trim).collect();
        let [id, state, code, node] = fields.as_slice() else {
            return Err(strange("sacct", line));
        };
        let Some((job, elements)) = id.split_once('_') else {
            continue;
        };
        let elements = numbers(elements).ok_or_else(|| strange("sacct", line))?;
        let state = state_of(state, node, exit_code(code), "");
        seen.extend(elements.into_iter().map(|element| Seen {
            job: job.to_owned(),
            element,
            state: state.clone(),
        }));
    }
    Ok(seen)
}

/// The job with this comment or name in a list of [`BY_COMMENT`] or [`BY_NAME`].
pub(super) fn with_text(listed: &str, text: &str) -> Option<String> {
    let mut lines = listed.lines().filter_map(|line| line.split_once('|'));
    let (job, _) = lines.find(|(_, found)| found.trim() == text)?;
    Some(job.trim().to_owned())
}

/// The nodes in a list of `sinfo`, each once.
///
/// Errors: a line is not of its form.
pub(super) fn nodes(listed: &str) -> Result<Vec<Node>, Problem> {
    let mut nodes: Vec<Node> = Vec::new();
    for line in listed.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.splitn(6, '|').map(str::trim).collect();
        let [name, state, cores, memory, features, reason] = fields.as_slice() else {
            return Err(strange("sinfo", line));
        };
        // A node of two partitions has two lines.
        if nodes.iter().any(|node| node.name == *name) {
            continue;
        }
        let absent = |text: &&str| matches!(*text, "none" | "(null)" | "");
        let features = Some(*features).filter(|text| !absent(text));
        let features = features.map(|text| text.split(',').map(str::to_owned).collect());
        nodes.push(Node {
            name: (*name).to_owned(),
            state: (*state).to_owned(),
            reason: Some(*reason)
                .filter(|text| !absent(text))
                .unwrap_or_default()
                .to_owned(),
            features: features.unwrap_or_default(),
            cores: cores.parse().map_err(|_| strange("sinfo", line))?,
            memory_mib: memory.parse().map_err(|_| strange("sinfo", line))?,
        });
    }
    Ok(nodes)
}

/// How much a cluster takes, by what `scontrol show config` prints.
///
/// Source: slurm.conf(5), MaxArraySize, MaxJobCount, SchedulerParameters. Numbers of elements are below the
/// first, and begin with 0.
///
/// Errors: a cluster without arrays.
pub(super) fn limits(config: &str) -> Result<Limits, Problem> {
    let lines = || config.lines().filter_map(|line| line.split_once('='));
    let text = |name: &str| lines().find_map(|(key, value)| (key.trim() == name).then_some(value));
    let number = |name: &str| text(name).and_then(|value| value.trim().parse::<u32>().ok());
    let parameters = text("SchedulerParameters").unwrap_or_default();
    let tasks = { parameters.split(',') }
        .filter_map(|word| word.trim().strip_prefix("max_array_tasks="))
        .find_map(|value| value.parse::<u32>().ok());
    let array = number("MaxArraySize").into_iter().chain(tasks).min();
    if array == Some(0) {
        return Err(Problem::new("this cluster has no arrays of jobs")
            .detail("MaxArraySize or max_array_tasks is 0 in its slurm.conf")
            .hint("ask who looks after the cluster: lanes are elements of arrays"));
    }
    Ok(Limits {
        array,
        jobs: number("MaxJobCount"),
    })
}

fn strange(program: &str, line: &str) -> Problem {
    Problem::new(format!(
        "{program} printed a line that deltabench does not understand"
    ))
    .detail(line)
    .hint("report it, with the output of: scontrol --version")
}

/// Where an element is, from Slurm's word for it.
///
/// Source: squeue(1), JOB STATE CODES.
fn state_of(word: &str, node: &str, code: Option<i32>, reason: &str) -> JobState {
    // `CANCELLED by 1000` in the accounting.
    let word = word.split_whitespace().next().unwrap_or_default();
    match word {
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
        | "SPECIAL_EXIT" => {
            let reason = if word == "PENDING" { reason } else { word };
            JobState::Waiting(reason.to_owned())
        }
        // One that is completing has a node until its processes are gone.
        "RUNNING" | "COMPLETING" | "CONFIGURING" | "SUSPENDED" | "STOPPED" | "RESIZING"
        | "SIGNALING" | "STAGE_OUT" => JobState::Running(node.to_owned()),
        _ => JobState::Ended {
            how: word.to_owned(),
            code,
        },
    }
}

/// An exit code: `5:0` (code and signal) or the status that wait(2) gives. Absent if a signal ended it.
fn exit_code(text: &str) -> Option<i32> {
    if let Some((code, signal)) = text.split_once(':') {
        return (signal == "0").then(|| code.parse().ok()).flatten();
    }
    let status: i32 = text.parse().ok()?;
    (status & 0x7f == 0).then_some((status >> 8) & 0xff)
}

/// The numbers of elements: `4`, `3-7%2`, `[1,4-6]`, `0-8:4`. Absent if it is something else, or cut short.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    let text = text.split('%').next()?;
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once(':') {
            Some((range, step)) => (range, step.parse::<usize>().ok()?),
            None => (part, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if step == 0 || first > last {
            return None;
        }
        numbers.extend((first..=last).step_by(step));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(reason: &str) -> JobState {
        JobState::Waiting(reason.to_owned())
    }

    fn ended(how: &str, code: Option<i32>) -> JobState {
        JobState::Ended {
            how: how.to_owned(),
            code,
        }
    }

    #[test]
    fn a_recorded_list_gives_every_element() {
        let seen = elements(include_str!("../../../tests/data/slurm/squeue.txt")).unwrap();
        let of = |job: &str, element: u32| {
            let one = |seen: &&Seen| seen.job == job && seen.element == element;
            let found: Vec<&JobState> = seen.iter().filter(one).map(|seen| &seen.state).collect();
            assert_eq!(found.len(), 1, "{job}_{element}");
            found[0].clone()
        };
        assert_eq!(of("1", 1), ended("COMPLETED", Some(0)));
        assert_eq!(of("1", 3), ended("FAILED", Some(5)));
        // It ended with 75 and waits again.
        assert_eq!(of("1", 4), waiting("JobArrayTaskLimit"));
        assert_eq!(of("1", 5), JobState::Running("n2".to_owned()));
        assert_eq!(of("2", 1), waiting("Dependency"));
        assert_eq!(of("5", 2), ended("FAILED", None));
    }

    #[test]
    fn awkward_lines_are_understood() {
        let one = |line: &str| elements(line).unwrap();
        let many = one("1|3-7%2|PENDING||0|JobArrayTaskLimit\n");
        let numbers: Vec<u32> = many.iter().map(|seen| seen.element).collect();
        assert_eq!(numbers, [3, 4, 5, 6, 7]);
        let state = |line: &str| one(line)[0].state.clone();
        assert_eq!(
            state("8|2|PENDING||0|ReqNodeNotAvail, UnavailableNodes:n1|n2 \n"),
            waiting("ReqNodeNotAvail, UnavailableNodes:n1|n2")
        );
        assert_eq!(state("8|2|PENDING||1|BeginTime\n"), waiting("BeginTime"));
        assert_eq!(
            state("8|2|NODE_FAIL|n3|1|NodeDown\n"),
            ended("NODE_FAIL", None)
        );
        assert_eq!(
            state("8|2|TIMEOUT|n3|15|TimeLimit\n"),
            ended("TIMEOUT", None)
        );
        assert_eq!(
            state("8|2|FAILED|n3|19200|None\n"),
            ended("FAILED", Some(75))
        );
        assert_eq!(state("8|2|REQUEUE_HOLD||0|None\n"), waiting("REQUEUE_HOLD"));
        assert_eq!(
            state("8|2|COMPLETING|n3|0|None\n"),
            JobState::Running("n3".to_owned())
        );
        assert_eq!(one("9|N/A|RUNNING|n1|0|None\n"), []);
        assert_eq!(one("\n"), []);
        for strange in ["slurm is strange\n", "1|1,2,...|PENDING||0|None\n"] {
            assert!(elements(strange).is_err(), "{strange}");
        }
    }

    #[test]
    fn accounting_knows_elements_by_their_array() {
        let seen = accounted(
            "1_1|COMPLETED|0:0|n2\n1_2|CANCELLED by 0|0:15|n3\n1_[3-4%2]|PENDING|0:0|None assigned\n\
             7|COMPLETED|0:0|n1\n",
        );
        let seen: Vec<(u32, JobState)> = seen
            .unwrap()
            .into_iter()
            .map(|seen| (seen.element, seen.state))
            .collect();
        let expected = [
            (1, ended("COMPLETED", Some(0))),
            (2, ended("CANCELLED", None)),
            (3, waiting("")),
            (4, waiting("")),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn elements_that_run_have_a_job_of_their_own() {
        let listed = "15              |14|3|2|n1\n16|N/A|N/A|0|n2\n";
        let found = running(listed).unwrap();
        let wanted = Running {
            job: "14".to_owned(),
            element: 3,
            id: "15".to_owned(),
            restarts: 2,
            node: "n1".to_owned(),
        };
        assert_eq!(found, [wanted]);
        assert_eq!(found[0].token(), "15.2");
        assert!(running("slurm is strange\n").is_err());
    }

    #[test]
    fn numbers_have_ranges_and_steps_and_nothing_else() {
        assert_eq!(numbers("[1,4-6]"), Some(vec![1, 4, 5, 6]));
        assert_eq!(numbers("0-8:4%2"), Some(vec![0, 4, 8]));
        for bad in ["", "7-3", "1-3:0", "a", "1,2,..."] {
            assert_eq!(numbers(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_job_is_found_by_its_script() {
        let listed = "3|(null)\n12|/srv/a b/dlb-1.sh\n12|/srv/a b/dlb-1.sh\n";
        assert_eq!(
            with_text(listed, "/srv/a b/dlb-1.sh").as_deref(),
            Some("12")
        );
        assert_eq!(with_text(listed, "/srv/dlb-1.sh"), None);
    }

    #[test]
    fn limits_are_those_of_the_configuration() {
        let of = |array: &str, parameters: &str| {
            limits(&format!(
                "Configuration data as of 2026-11-26T22:30:00\nMaxArraySize            = {array}\n\
                 MaxJobCount             = 10000\nSchedulerParameters     = {parameters}\n"
            ))
        };
        let limits = |array| Limits {
            array: Some(array),
            jobs: Some(10_000),
        };
        assert_eq!(of("1001", "(null)").unwrap(), limits(1001));
        let few = "batch_sched_delay=0,max_array_tasks=200";
        assert_eq!(of("1001", few).unwrap(), limits(200));
        assert!(of("0", "(null)").unwrap_err().hint.is_some());
        assert_eq!(super::limits("").unwrap(), Limits::default());
    }

    #[test]
    fn nodes_have_features_and_reasons() {
        let nodes = nodes(include_str!("../../../tests/data/slurm/sinfo.txt")).unwrap();
        assert_eq!(nodes.len(), 3);
        let first = Node {
            name: "n1".to_owned(),
            state: "idle".to_owned(),
            reason: String::new(),
            features: vec!["epyc".to_owned(), "bare".to_owned()],
            cores: 2,
            memory_mib: 4000,
        };
        assert_eq!(nodes[0], first);
        assert_eq!(nodes[1].reason, "disk full | see ticket 12");
        assert_eq!(nodes[1].state, "drained");
        assert!(nodes[2].features.is_empty());
    }
}
