//! A machine that is not here, as `--for` describes it.

use crate::amounts::gigabytes;
use deltabench_document::amounts;
use deltabench_experiment::Part;
use deltabench_model::problem::{Problem, nearest};
use deltabench_run::occupancy::Machine;
use deltabench_run::planning::{Jobs, Request};

/// What a machine is described by.
const KEYS: [&str; 3] = ["cores", "memory", "disk"];

/// The machine of a text such as `cores=8,memory=32GB`. What it does not name is as here; without a disk it
/// has room for everything.
///
/// Errors: a key or an amount that cannot be read.
pub fn machine(text: &str) -> Result<Machine, Problem> {
    let mut machine = Machine::here();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let bad = || {
            Problem::new(format!("`{}` does not describe a machine", part.trim()))
                .hint("write for example --for cores=8,memory=32GB,disk=2TB")
        };
        let bytes = || {
            amounts::bytes(value)
                .filter(|bytes| *bytes > 0)
                .ok_or_else(bad)
        };
        match key.trim() {
            "cores" => {
                let cores = value.trim().parse().ok();
                machine.cores = cores
                    .filter(|cores| (1..=4096).contains(cores))
                    .ok_or_else(bad)?;
            }
            "memory" => machine.memory_bytes = Some(bytes()?),
            "disk" => machine.disk_bytes = Some(bytes()?),
            other => {
                let hint = nearest(other, KEYS).map(|near| format!("did you mean `{near}`?"));
                return Err(match hint {
                    Some(hint) => bad().hint(hint),
                    None => bad(),
                });
            }
        }
    }
    Ok(machine)
}

/// Gives a request what depends on the machine that it is made for.
///
/// Errors: a size that is a share of the memory of this machine.
pub fn fit(machine: &Machine, part: &Part, request: &mut Request) -> Result<(), Problem> {
    if part.scale.times_memory().is_some() && part.memory.is_none() {
        return Err(Problem::new(
            "the sizes of this file are shares of the memory of this machine",
        )
        .detail("so what it takes on another machine is not known here")
        .hint("write numbers, or limits.memory, or leave out --for"));
    }
    if let Jobs::Auto { cores } = &mut request.jobs {
        *cores = u32::try_from(machine.cores).unwrap_or(u32::MAX);
    }
    Ok(())
}

/// `8 cores, 32.0 GB of memory`.
pub fn told(machine: &Machine) -> String {
    let mut parts = vec![match machine.cores {
        1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    }];
    parts.extend(
        machine
            .memory_bytes
            .map(|bytes| format!("{} of memory", gigabytes(bytes))),
    );
    parts.extend(
        machine
            .disk_bytes
            .map(|bytes| format!("{} of disk", gigabytes(bytes))),
    );
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_is_said_of_it_and_else_as_here() {
        let found = machine("cores=8,memory=32GB").unwrap();
        assert_eq!((found.cores, found.memory_bytes), (8, Some(32 << 30)));
        assert_eq!(found.disk_bytes, None);
        assert_eq!(told(&found), "8 cores, 32.0 GB of memory");
        let disk = machine("disk=2TB").unwrap();
        assert_eq!(disk.disk_bytes, Some(2 << 40));
        assert_eq!(disk.cores, Machine::here().cores);
    }

    #[test]
    fn what_does_not_describe_a_machine_is_refused_with_what_would() {
        for text in ["", "8", "cores=0", "cores=x", "memory=32", "disk=0GB"] {
            let problem = machine(text).unwrap_err();
            assert!(
                problem.hint.unwrap().contains("cores=8,memory=32GB"),
                "{text}"
            );
        }
        assert!(
            machine("core=8")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("`cores`")
        );
    }
}
