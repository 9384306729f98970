//! What an execution would hand to the engine, before it does.

use super::submit::{
    LanesOfArray, Whole, arrays, check_limits, engine, gather_job, lanes_job, limits_at_once,
};
use crate::amounts::gigabytes;
use crate::console::print_stdout;
use crate::failure::Failure;
use deltabench_fleet::engine::{After, Submission};
use deltabench_fleet::file::{Copying, FleetFile};
use deltabench_fleet::lanes::{Lane, Lanes, Unit};
use deltabench_fleet::ship;
use deltabench_fleet::spool::Spool;
use deltabench_report::words::plural;
use std::path::Path;

/// How many units and lanes there are.
pub fn counts(lanes: &Lanes) -> String {
    let count = |many: usize, noun| plural(u64::try_from(many).unwrap_or(u64::MAX), noun);
    let (units, lanes) = (lanes.units.len(), lanes.lanes.len());
    format!("{} in {}", count(units, "unit"), count(lanes, "lane"))
}

/// Prints lanes, units, estimates, what is shipped, and the engine's lines.
pub fn print(file: &FleetFile, lanes: &Lanes) -> Result<u8, Failure> {
    let mut lines = vec![format!("{}: {}", lanes.execution, counts(lanes))];
    for lane in &lanes.lanes {
        lines.extend(of_lane(lane, lanes));
    }
    lines.push(String::new());
    let own = std::fs::metadata("/proc/self/exe").map_or(0, |data| data.len());
    lines.push(format!("ships deltabench, {}", gigabytes(own)));
    let mut all = own;
    for (_, tree, bytes) in ship::trees(lanes.units.iter().map(|unit| &unit.plan)) {
        lines.push(format!("ships {}, {}", tree.display(), gigabytes(bytes)));
        all = all.saturating_add(bytes);
    }
    if file.copy == Copying::Sbcast {
        lines.push(format!(
            "copies these to each host that takes a lane: at most {}, servers packed; removed from it at the \
             end of the execution",
            gigabytes(all)
        ));
    }
    lines.push(String::new());
    let spool = Spool::of(&file.shared, &lanes.execution);
    let all: Vec<u32> = lanes.lanes.iter().map(|lane| lane.lane).collect();
    // Where no cluster answers, nobody knows how it divides them.
    let limits = limits_at_once(file).unwrap_or_default();
    check_limits(limits, lanes)?;
    let most = limits.array;
    let arrays = arrays(&all, most);
    if arrays.len() > 1 {
        let (many, most) = (arrays.len(), most.unwrap_or_default());
        lines.push(format!(
            "{many} arrays, because this cluster takes at most {most} lanes in one"
        ));
        lines.push(String::new());
    }
    let engine = engine(file);
    let jobs = jobs((file, &spool, lanes), &arrays);
    for job in &jobs {
        let own = engine.preview(job);
        lines.extend(if own.is_empty() { submitted(job) } else { own });
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

/// The jobs that are handed in. Nobody knows yet how the engine calls those that others wait for.
fn jobs((file, spool, lanes): Whole<'_>, arrays: &[LanesOfArray]) -> Vec<Submission> {
    let before = ["JOB".to_owned()];
    let mut jobs: Vec<Submission> = Vec::new();
    for (number, array) in (1..).zip(arrays) {
        let mut job = lanes_job((file, spool, lanes), number, array);
        if number > 1 && file.hosts.is_some() {
            job.after = Some(After::End(before.to_vec()));
        }
        jobs.push(job);
    }
    if file.copy == Copying::Shared {
        let number = u32::try_from(jobs.len() + 1).unwrap_or(u32::MAX);
        jobs.push(gather_job((file, spool, lanes), number, &before));
    }
    jobs
}

fn of_lane(lane: &Lane, lanes: &Lanes) -> Vec<String> {
    let mut lines = vec![format!("lane {}: at most {} min", lane.lane, lane.minutes)];
    for unit in lane.units.iter().filter_map(|unit| lanes.unit(*unit)) {
        lines.push(format!(
            "  unit {:<3} {:>5.1} min  {}",
            unit.unit,
            unit.seconds / 60.0,
            coordinates(unit)
        ));
    }
    lines
}

fn coordinates(unit: &Unit) -> String {
    let Some(part) = &unit.plan.experiment else {
        return unit.run.clone();
    };
    let mut words: Vec<String> = vec![format!("part {} of {}", part.part, part.of)];
    words.extend(
        part.group
            .map(|(group, of)| format!("group {group} of {of}")),
    );
    let axes = part.coordinates.iter();
    words.extend(axes.map(|(axis, value)| format!("{axis} {value}")));
    words.push(format!("repetition {}", part.repetition));
    words.join(", ")
}

fn submitted(job: &Submission) -> Vec<String> {
    let words: Vec<String> = { job.command.iter() }
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let elements: Vec<String> = job.elements.iter().map(ToString::to_string).collect();
    vec![format!(
        "{}, elements {}: {} ELEMENT > {}",
        job.name,
        elements.join(","),
        words.join(" "),
        Path::new(&job.directory).display()
    )]
}
