//! Hosts that see no directory of ours: the program is copied to each, looks there, and prints its answer.

use super::{Told, left_out, not_asked};
use crate::clock::now;
use crate::failure::Failure;
use crate::fleet::submit::{drained, engine, slurm};
use crate::interrupt;
use deltabench_fleet::engine::Node;
use deltabench_fleet::engine::slurm::{Place, Slurm};
use deltabench_fleet::file::FleetFile;
use deltabench_fleet::look::Look;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a host is asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// Removes the copy.
const REMOVE: &str = r#"rm -f "$1""#;

/// Asks each host that takes jobs, one after another; busy ones are asked again until that takes too long.
pub(super) fn ask(file: &FleetFile, program: &Path, wait: Duration) -> Result<Told, Failure> {
    let engine = engine(file);
    let drained = drained(file);
    let interrupted = interrupt::flag()?;
    let began = Instant::now();
    let (mut answers, mut left) = (Vec::new(), Vec::new());
    for node in engine.nodes().map_err(Failure::Failed)? {
        if let Some(line) = left_out(&node, &drained) {
            left.push(line);
            continue;
        }
        if !engine.suits(&node) {
            left.push(not_asked(
                &node.name,
                "it has not the features of `constraint`",
            ));
            continue;
        }
        let answer = loop {
            let answer = look(file, program, &node);
            let is_late = began.elapsed() >= wait || interrupted.load(Ordering::Relaxed);
            if answer.is_ok() || is_late {
                break answer;
            }
            std::thread::sleep(PAUSE);
        };
        answers.push((node.name, answer.map_err(|problem| words(&problem))));
    }
    Ok((0, answers, left))
}

fn words(problem: &Problem) -> String {
    problem
        .detail
        .clone()
        .unwrap_or_else(|| problem.error.clone())
}

/// What a host says of itself.
fn look(file: &FleetFile, program: &Path, node: &Node) -> Result<Look, Problem> {
    let slurm = slurm(file);
    let name = format!("deltabench-look-{}-{}", now().1, std::process::id());
    let to = PathBuf::from("/var/tmp").join(&name);
    let place = file.shared.join("check");
    let answer = place.join(&name);
    let cannot = |error: std::io::Error| {
        Problem::new(format!("cannot write {}", answer.display())).detail(error.to_string())
    };
    std::fs::create_dir_all(&place).map_err(cannot)?;
    let output = File::create(&answer).map_err(cannot)?;
    let mut words: Vec<OsString> = ["--offline", "fleet", "look", "-", "-", "0", "--print"]
        .map(OsString::from)
        .to_vec();
    words.extend([OsString::from("--node"), OsString::from(&node.name)]);
    if let Some(local) = &file.local {
        words.extend(["--local".into(), local.clone().into_os_string()]);
    }
    let said = slurm.run_copy(&node.name, (program, &to), &words, &output);
    let here = now().1;
    let text = std::fs::read_to_string(&answer).unwrap_or_default();
    std::fs::remove_file(&answer).ok();
    said?;
    removed(&slurm, &node.name, &to)?;
    let mut look: Look = serde_json::from_str(text.trim()).map_err(|error| {
        Problem::new("it has not said what it is like").detail(format!("{error}: {}", text.trim()))
    })?;
    look.ahead_ms = look.ahead_ms.saturating_sub(here);
    Ok(look)
}

fn removed(slurm: &Slurm, node: &str, copy: &Path) -> Result<(), Problem> {
    let nothing = File::create("/dev/null")
        .map_err(|error| Problem::new("cannot write /dev/null").detail(error.to_string()))?;
    let words = [copy.as_os_str().to_owned()];
    slurm.step(Place::On(node), (REMOVE, &words), &nothing)
}
