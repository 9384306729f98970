//! What an execution would hand to the engine, before it does.

use super::submit::{engine, gather_job, lanes_job};
use crate::amounts::gigabytes;
use crate::console::print_stdout;
use crate::failure::Failure;
use deltabench_fleet::engine::Submission;
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
    let job = lanes_job(file, &spool, lanes, &all);
    let after = gather_job(file, &spool, lanes, "JOB");
    let engine = engine(file);
    let jobs = match file.copy {
        Copying::Shared => vec![&job, &after],
        Copying::Sbcast => vec![&job],
    };
    for job in jobs {
        let own = engine.preview(job);
        lines.extend(if own.is_empty() { submitted(job) } else { own });
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
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
