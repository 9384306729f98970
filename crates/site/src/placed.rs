//! What a report says of the hosts that an execution was measured on.

use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::hosts::{Claims, HostValues, claims};
use deltabench_model::occasion::{HostClass, HostIdentity};
use deltabench_model::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// A unit of an execution that was measured.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    pub plan: &'a Plan,
    pub comparison: &'a Comparison,
    /// Where it was measured last.
    pub identity: &'a HostIdentity,
    /// The machine's name, in a few words.
    pub machine: &'a str,
    /// Units of a lane were to share a host.
    pub lane: u32,
}

impl Placed<'_> {
    /// The name of the machine without what it is; with the beginning of its identifier, since names come
    /// twice.
    fn host(&self) -> String {
        let name = self.machine.split(',').next().unwrap_or_default();
        let uid: String = self.identity.uid.chars().take(8).collect();
        match name == self.identity.uid {
            true => uid,
            false => format!("{name} ({uid})"),
        }
    }

    fn part(&self) -> String {
        let part = self.plan.experiment.as_ref();
        part.map_or_else(String::new, |part| part.part.to_string())
    }
}

/// Sentences about the hosts; none where nothing was measured on a fleet.
pub fn notes(runs: &[Placed<'_>]) -> Vec<String> {
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in runs {
        hosts.entry(run.host()).or_default().push(run.part());
    }
    if hosts.is_empty() {
        return Vec::new();
    }
    let each: Vec<String> = { hosts.iter() }
        .map(|(host, parts)| format!("{host}: parts {}", parts.join(", ")))
        .collect();
    let mut notes = vec![format!("measured on {}", each.join("; "))];
    notes.extend(differing(runs));
    notes.extend(split_lanes(runs));
    if hosts.len() > 1 {
        notes.extend(said(runs));
    }
    notes
}

/// That hosts differ in what is no matter of chance.
fn differing(runs: &[Placed<'_>]) -> Option<String> {
    let of = |what: &dyn Fn(&HostIdentity) -> String| -> BTreeSet<String> {
        runs.iter().map(|run| what(run.identity)).collect()
    };
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let found = [
        ("kernel", of(&|host| known(&host.kernel))),
        ("microcode", of(&|host| known(&host.microcode))),
        ("class", of(&|host| class(&host.class))),
    ];
    let words: Vec<String> = { found.into_iter() }
        .filter(|(_, values)| values.len() > 1)
        .map(|(what, values)| {
            let values: Vec<String> = values.into_iter().collect();
            format!("{what} ({})", values.join("; "))
        })
        .collect();
    (!words.is_empty()).then(|| format!("hosts-differ: hosts differ in {}", words.join(" and ")))
}

/// That units which were to share a host did not.
fn split_lanes(runs: &[Placed<'_>]) -> Vec<String> {
    let mut lanes: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for run in runs {
        lanes.entry(run.lane).or_default().insert(run.host());
    }
    let several = lanes.into_iter().filter(|(_, hosts)| hosts.len() > 1);
    several
        .map(|(lane, hosts)| {
            let hosts: Vec<String> = hosts.into_iter().collect();
            format!(
                "lane {lane} had to change its host ({}): figures across its parts contain the difference \
                 between these hosts",
                hosts.join(", ")
            )
        })
        .collect()
}

/// What each change is on the hosts of a class, and on a class against another.
fn said(runs: &[Placed<'_>]) -> Vec<String> {
    // What is the same but for the repetition.
    let mut changes: BTreeMap<String, Vec<HostValues>> = BTreeMap::new();
    for run in runs {
        for cell in &run.comparison.cells {
            let of_throughput = cell
                .metrics
                .iter()
                .find(|one| one.metric == Metric::Throughput);
            let Some(metric) = of_throughput else {
                continue;
            };
            let mut words = vec![format!("{} at {}", cell.workload, cell.clients)];
            let part = run
                .plan
                .experiment
                .iter()
                .flat_map(|part| &part.coordinates);
            words.extend(part.map(|(axis, value)| format!("{axis} {value}")));
            words.push(cell.candidate_name.clone());
            changes
                .entry(words.join(", "))
                .or_default()
                .push(HostValues {
                    host: run.host(),
                    class: class(&run.identity.class),
                    values: metric.blocks.clone(),
                });
        }
    }
    changes
        .iter()
        .flat_map(|(what, values)| sentences(what, &claims(values)))
        .collect()
}

fn sentences(what: &str, claims: &Claims) -> Vec<String> {
    let mut said = Vec::new();
    for class in claims.classes.iter().filter(|class| class.hosts > 1) {
        let change = change(class.change.estimate, class.change.ci95);
        said.push(match (class.holds, class.further) {
            (true, Some(further)) => format!(
                "{what}: {change} on hosts of this class ({} of {}); one more host of it: {}",
                class.hosts,
                class.class,
                interval(further)
            ),
            _ => format!(
                "{what}: {change} on these {} hosts; a claim on hosts of their class needs 3",
                class.hosts
            ),
        });
    }
    for pair in &claims.against {
        let (one, two) = (&pair.classes.0, &pair.classes.1);
        said.push(match pair.confounded {
            true => format!(
                "{what}: whether the change is as large on {two} as on {one} is confounded with the host; \
                 each class needs 2 hosts"
            ),
            false => format!(
                "{what}: change on {two} against {one}: {}",
                change(pair.ratio.estimate, pair.ratio.ci95)
            ),
        });
    }
    said
}

/// `-10.0 % [-10.5, -9.6]`.
fn change(estimate: f64, ci95: Option<(f64, f64)>) -> String {
    let ends = ci95.map_or_else(String::new, |ends| format!(" {}", interval(ends)));
    format!("{:+.1} %{ends}", 100.0 * (estimate - 1.0))
}

fn interval((low, high): (f64, f64)) -> String {
    format!(
        "[{:+.1}, {:+.1}]",
        100.0 * (low - 1.0),
        100.0 * (high - 1.0)
    )
}

/// A class in a few words.
fn class(class: &HostClass) -> String {
    let memory = class.memory_gib.map(|memory| format!("{memory} GiB"));
    let model = class
        .cpu_model
        .clone()
        .unwrap_or_else(|| "unknown processor".to_owned());
    let words = [Some(model), Some(format!("{} cores", class.cores)), memory];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
