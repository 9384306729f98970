//! What a report says of the hosts that an execution was measured on.

use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::hosts::{Claims, HostValues, claims};
use deltabench_compare::odd_host::{BaseRate, odd_hosts};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::occasion::{HostClass, HostIdentity};
use deltabench_model::plan::{CellId, Plan};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that a note names, and changes that it gives for them.
const HOSTS: usize = 8;
const CHANGES: usize = 12;

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
    /// What somebody declared invalid.
    pub withdrawn: &'a [Invalidation],
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

    fn counts(&self, cell: CellId) -> bool {
        counts((self.comparison.host_ok, self.withdrawn), cell)
    }

    fn part(&self) -> Option<u32> {
        Some(self.plan.experiment.as_ref()?.part)
    }

    /// What is the same in all repetitions of a part.
    fn coordinates(&self) -> Vec<String> {
        let part = self.plan.experiment.iter();
        let axes = part.flat_map(|part| &part.coordinates);
        axes.map(|(axis, value)| format!("{axis} {value}"))
            .collect()
    }
}

/// Whether a cell of a run counts, as in the tables.
fn counts((host_ok, withdrawn): (bool, &[Invalidation]), cell: CellId) -> bool {
    let is_it = |one: &Invalidation| one.cell.is_none_or(|withdrawn| withdrawn == cell);
    host_ok && !withdrawn.iter().any(is_it)
}

/// Numbers in a few words: `1 to 4, 7`.
fn ranges(numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Hosts that are unlike the others of their class: not in the change, but in what the base does on them.
fn odd(runs: &[Placed<'_>]) -> Vec<String> {
    let mut rates = Vec::new();
    for run in runs {
        let coordinates = run.coordinates().join(", ");
        for cell in { run.comparison.cells.iter() }.filter(|cell| run.counts(cell.cell)) {
            let throughput = cell
                .metrics
                .iter()
                .find(|one| one.metric == Metric::Throughput);
            rates.extend(throughput.map(|metric| BaseRate {
                host: run.host(),
                class: class(&run.identity.class),
                cell: format!("{}, {}, {coordinates}", cell.workload, cell.clients),
                rate: metric.base,
            }));
        }
    }
    let odd = odd_hosts(&rates).into_iter();
    odd.map(|odd| {
        format!(
            "odd-host: {}: the base is {:.1} % {} there than on the median of {} hosts of its class, and \
             up to {:.1} % is usual; its changes count like those of the other hosts",
            odd.host,
            100.0 * (odd.ratio - 1.0).abs(),
            if odd.ratio < 1.0 { "slower" } else { "faster" },
            odd.hosts,
            100.0 * odd.spread
        )
    })
    .collect()
}

/// Sentences about the hosts; none where nothing was measured on a fleet.
pub fn notes(runs: &[Placed<'_>]) -> Vec<String> {
    let mut hosts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for run in runs {
        hosts.entry(run.host()).or_default().extend(run.part());
    }
    if hosts.is_empty() {
        return Vec::new();
    }
    let each: Vec<String> = { hosts.iter() }
        .take(HOSTS)
        .map(|(host, parts)| format!("{host}: parts {}", ranges(parts)))
        .collect();
    let more = match hosts.len().saturating_sub(HOSTS) {
        0 => String::new(),
        more => format!("; and {more} more hosts"),
    };
    let mut notes = vec![format!("measured on {}{more}", each.join("; "))];
    notes.extend(odd(runs));
    let identities: Vec<&HostIdentity> = runs.iter().map(|run| run.identity).collect();
    notes.extend(differing(&identities));
    notes.extend(split_lanes(runs));
    if hosts.len() > 1 {
        notes.extend(said(runs));
    }
    notes
}

/// That hosts differ in what is no matter of chance.
fn differing(hosts: &[&HostIdentity]) -> Option<String> {
    let of = |what: &dyn Fn(&HostIdentity) -> String| -> BTreeSet<String> {
        hosts.iter().map(|host| what(host)).collect()
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
        for cell in { run.comparison.cells.iter() }.filter(|cell| run.counts(cell.cell)) {
            let of_throughput = cell
                .metrics
                .iter()
                .find(|one| one.metric == Metric::Throughput);
            let Some(metric) = of_throughput else {
                continue;
            };
            let mut words = vec![format!("{} at {}", cell.workload, cell.clients)];
            words.extend(run.coordinates());
            words.push(cell.candidate_name.clone());
            changes
                .entry(words.join(", "))
                .or_default()
                .push(HostValues {
                    host: run.host(),
                    class: class(&run.identity.class),
                    values: metric.sample(run.comparison.sessions),
                });
        }
    }
    let said = changes
        .iter()
        .map(|(what, values)| (what, claims(values)))
        .collect();
    largest(said)
}

/// Sentences on the changes that are largest on any class, where there are many; in the order of their names.
fn largest(mut changes: Vec<(&String, Claims)>) -> Vec<String> {
    let size = |claims: &Claims| {
        let each = claims.classes.iter();
        each.map(|class| class.change.estimate.ln().abs())
            .fold(0.0, f64::max)
    };
    let all = changes.len();
    if all > CHANGES {
        changes.sort_by(|one, other| size(&other.1).total_cmp(&size(&one.1)));
        changes.truncate(CHANGES);
        changes.sort_by(|one, other| one.0.cmp(other.0));
    }
    let mut said: Vec<String> = { changes.iter() }
        .flat_map(|(what, claims)| sentences(what, claims))
        .collect();
    if all > CHANGES && !said.is_empty() {
        said.push(format!(
            "of {all} changes these are the {CHANGES} largest; the tables have all of them"
        ));
    }
    said
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

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::hosts::{Claimed, OfClass};

    #[test]
    fn hosts_that_differ_in_kernel_or_class_are_said_to() {
        let host = |uid: &str| HostIdentity {
            uid: uid.to_owned(),
            class: HostClass::default(),
            kernel: Some("6.1.0".to_owned()),
            microcode: None,
        };
        let (one, same) = (host("a"), host("b"));
        assert_eq!(differing(&[&one, &same]), None);
        let mut newer = host("c");
        newer.kernel = Some("6.12.0".to_owned());
        newer.class.cores = 8;
        let said = differing(&[&one, &newer, &same]).unwrap();
        assert!(
            said.starts_with("hosts-differ: hosts differ in kernel (6.1.0; 6.12.0) and class ("),
            "{said}"
        );
        assert!(!said.contains("microcode"), "{said}");
    }

    #[test]
    fn what_an_unfit_host_measured_or_somebody_withdrew_is_no_part_of_a_claim() {
        let withdrawn = |cell: Option<u32>| Invalidation {
            cell: cell.map(CellId),
            reason: String::new(),
            at_unix_ms: 0,
        };
        let cell = CellId(1);
        assert!(counts((true, &[withdrawn(Some(2))]), cell));
        assert!(!counts((true, &[withdrawn(Some(1))]), cell));
        assert!(!counts((true, &[withdrawn(None)]), cell));
        assert!(!counts((false, &[]), cell));
    }

    #[test]
    fn numbers_that_follow_each_other_are_one_range() {
        let words = |numbers: &[u32]| ranges(&numbers.iter().copied().collect());
        assert_eq!(words(&[3, 1, 2, 7, 9, 10]), "1 to 3, 7, 9, 10");
        assert_eq!(words(&[]), "");
    }

    #[test]
    fn of_many_changes_the_largest_are_said_and_how_many_there_are() {
        let names: Vec<String> = (0..20).map(|number| format!("cell {number:02}")).collect();
        let changes = |count: usize| -> Vec<(&String, Claims)> {
            let claims = |number: u32| Claims {
                classes: vec![OfClass {
                    class: "epyc".to_owned(),
                    hosts: 2,
                    change: Claimed {
                        estimate: 1.0 - 0.01 * f64::from(number),
                        ci95: None,
                    },
                    further: None,
                    holds: false,
                }],
                hosts: Vec::new(),
                against: Vec::new(),
            };
            names.iter().zip((0..).map(claims)).take(count).collect()
        };
        let said = largest(changes(20));
        assert_eq!(said.len(), CHANGES + 1);
        assert!(said[0].starts_with("cell 08: -8.0 %"), "{said:?}");
        assert!(said[CHANGES].starts_with("of 20 changes these are the 12 largest"));
        assert_eq!(largest(changes(12)).len(), 12);
    }
}
