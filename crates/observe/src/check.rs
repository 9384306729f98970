//! What on this host spoils measurements: what was seen, what that does to results, and how to mend it.

mod disk;
mod load;
mod processor;
mod room;

use crate::disk::DiskFacts;
use crate::host_sample::HostSample;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{Finding, FindingKind, Severity};

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that spoils measurements.
    Fine,
    /// The host does not tell.
    Unknown,
    /// Something that does, and how much that matters.
    ///
    /// On a host, `Note` widens intervals or limits what can be asked; `Confounder` can fall on one server
    /// more than on another however often they take turns; `Unfit` means that no length of run helps.
    Found(Severity),
}

/// One look at the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable kebab-case key, also that of the finding.
    pub kind: FindingKind,
    /// What was looked at, in a word or two.
    pub title: &'static str,
    /// What was seen, with its numbers.
    pub seen: String,
    pub outcome: Outcome,
    /// What it does to results; empty when fine or unknown.
    pub effect: String,
    /// How to mend it; empty when fine or unknown.
    pub fix: String,
}

impl Check {
    fn fine(kind: FindingKind, title: &'static str, seen: impl Into<String>) -> Self {
        Self {
            kind,
            title,
            seen: seen.into(),
            outcome: Outcome::Fine,
            effect: String::new(),
            fix: String::new(),
        }
    }

    fn unknown(kind: FindingKind, title: &'static str) -> Self {
        Self {
            outcome: Outcome::Unknown,
            ..Self::fine(kind, title, "this host does not report it")
        }
    }

    fn found(self, severity: Severity, effect: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Found(severity),
            effect: effect.into(),
            fix: fix.into(),
            ..self
        }
    }

    /// The finding that is kept with a run; `None` when fine or unknown.
    pub fn finding(&self) -> Option<Finding> {
        match self.outcome {
            Outcome::Found(severity) => Some(Finding::new(
                self.kind.clone(),
                severity,
                format!("{}: {}; {}", self.seen, self.effect, self.fix),
            )),
            Outcome::Fine | Outcome::Unknown => None,
        }
    }
}

/// Looks at everything on this host that bears on measurements.
///
/// Without a sample, other load and steal are judged by what the kernel averaged before; without a disk,
/// nothing is said about one. Take all of them before the servers start, or the load is our own.
pub fn preflight(
    facts: &HostFacts,
    sample: Option<&HostSample>,
    disk: Option<&DiskFacts>,
) -> Vec<Check> {
    let mut checks = processor::checks(facts);
    checks.extend(room::checks(facts, sample));
    checks.extend(load::checks(facts, sample));
    checks.extend(disk.map(disk::checks).unwrap_or_default());
    checks
}

/// What [`preflight`] finds in the facts alone, to be kept with a run.
pub fn host_findings(facts: &HostFacts) -> Vec<Finding> {
    preflight(facts, None, None)
        .iter()
        .filter_map(Check::finding)
        .collect()
}

/// The severity of the highest limit that a value is above; limits ascend.
fn above(value: f64, limits: &[(f64, Severity)]) -> Option<Severity> {
    limits
        .iter()
        .rev()
        .find(|(limit, _)| value > *limit)
        .map(|(_, severity)| *severity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Fsync;
    use crate::host_sample::Neighbour;
    use deltabench_model::fact::CoreSpeed;

    fn calm() -> HostFacts {
        HostFacts {
            online_cores: 16,
            allowed_cores: Some(16),
            memory_bytes: Some(64 << 30),
            memory_available_bytes: Some(60 << 30),
            governors: vec!["performance".to_owned()],
            turbo: Some(false),
            smt: Some(false),
            numa_nodes: Some(1),
            swap_used_bytes: Some(0),
            transparent_huge_pages: Some("madvise".to_owned()),
            huge_pages_total: Some(1024),
            huge_pages_free: Some(1024),
            huge_page_bytes: Some(2 << 20),
            virtual_machine: Some(false),
            clock_source: Some("tsc".to_owned()),
            hardware_counters: Some(true),
            load_1min: Some(0.2),
            pressure_cpu_some_avg10: Some(0.5),
            steal_percent_since_boot: Some(0.0),
            ..HostFacts::default()
        }
    }

    fn quiet() -> HostSample {
        HostSample {
            seconds: 2.0,
            foreign_percent: 0.4,
            steal_percent: Some(0.0),
            pressure_percent: Some(0.1),
            swapped_pages: Some(0),
            neighbours: Vec::new(),
            core_speed: Some(CoreSpeed {
                arithmetic_ns: [0.64, 0.64, 0.65],
                memory_ns: 95.0,
            }),
        }
    }

    fn solid() -> DiskFacts {
        DiskFacts {
            directory: "/var/tmp".into(),
            file_system: Some("ext4".to_owned()),
            free_bytes: Some(100 << 30),
            fsync: Some(Fsync {
                count: 900,
                median_ns: 1_000_000,
                p99_ns: 3_000_000,
            }),
        }
    }

    fn found(checks: &[Check]) -> Vec<(&str, Severity)> {
        let found = checks.iter().filter_map(|check| match check.outcome {
            Outcome::Found(severity) => Some((check.kind.word(), severity)),
            _ => None,
        });
        found.collect()
    }

    #[test]
    fn a_calm_host_of_its_own_has_no_findings_and_all_checks() {
        let checks = preflight(&calm(), Some(&quiet()), Some(&solid()));
        assert_eq!(found(&checks), []);
        assert!(checks.iter().all(|check| check.outcome == Outcome::Fine));
        let mut kinds: Vec<&str> = checks.iter().map(|check| check.kind.word()).collect();
        assert_eq!(kinds.len(), 20, "{kinds:?}");
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 20, "every kind once");
    }

    #[test]
    fn nothing_is_found_in_what_is_not_known() {
        let checks = preflight(
            &HostFacts::default(),
            Some(&HostSample::default()),
            Some(&DiskFacts::default()),
        );
        assert_eq!(found(&checks), []);
        assert_eq!(host_findings(&HostFacts::default()), []);
    }

    #[test]
    fn each_fact_that_disturbs_has_its_finding() {
        type Disturb = fn(&mut HostFacts);
        let note = Severity::Note;
        let cases: [(&str, Severity, Disturb); 18] = [
            ("cpu-governor", note, |facts| {
                facts.governors.push("powersave".to_owned());
            }),
            ("turbo", note, |facts| facts.turbo = Some(true)),
            ("smt", note, |facts| facts.smt = Some(true)),
            ("few-cores", note, |facts| facts.online_cores = 2),
            ("few-cores", note, |facts| facts.allowed_cores = Some(3)),
            ("cpu-quota", Severity::Confounder, |facts| {
                facts.cpu_quota_cores = Some(4.0);
            }),
            ("cpu-quota", Severity::Unfit, |facts| {
                facts.cpu_quota_cores = Some(0.5);
            }),
            ("virtual-machine", note, |facts| {
                facts.virtual_machine = Some(true);
            }),
            ("steal", note, |facts| {
                facts.steal_percent_since_boot = Some(2.1);
            }),
            ("cpu-pressure", note, |facts| {
                facts.pressure_cpu_some_avg10 = Some(80.0);
            }),
            ("other-load", note, |facts| facts.load_1min = Some(8.1)),
            ("free-memory", note, |facts| {
                facts.memory_available_bytes = Some(1 << 30);
            }),
            ("free-memory", Severity::Unfit, |facts| {
                facts.memory_available_bytes = Some(100 << 20);
            }),
            ("swap", note, |facts| facts.swap_used_bytes = Some(4096)),
            ("transparent-huge-pages", note, |facts| {
                facts.transparent_huge_pages = Some("always".to_owned());
            }),
            ("huge-pages", note, |facts| {
                facts.huge_pages_free = Some(0);
                facts.huge_pages_reservable = Some(false);
            }),
            ("numa", note, |facts| facts.numa_nodes = Some(2)),
            ("clock-source", note, |facts| {
                facts.clock_source = Some("hpet".to_owned());
            }),
        ];
        for (kind, severity, disturb) in cases {
            let mut facts = calm();
            disturb(&mut facts);
            assert_eq!(found(&preflight(&facts, None, None)), [(kind, severity)]);
        }
    }

    #[test]
    fn each_sample_that_disturbs_has_its_finding() {
        type Disturb = fn(&mut HostSample);
        let cases: [(&str, Severity, Disturb); 8] = [
            ("core-speed", Severity::Note, |sample| {
                sample.core_speed = Some(CoreSpeed {
                    arithmetic_ns: [0.64, 0.71, 0.98],
                    memory_ns: 380.0,
                });
            }),
            ("other-load", Severity::Note, |sample| {
                sample.foreign_percent = 6.0;
            }),
            ("other-load", Severity::Confounder, |sample| {
                sample.foreign_percent = 30.0;
            }),
            ("other-load", Severity::Unfit, |sample| {
                sample.foreign_percent = 80.0;
            }),
            ("steal", Severity::Note, |sample| {
                sample.steal_percent = Some(3.0);
            }),
            ("steal", Severity::Unfit, |sample| {
                sample.steal_percent = Some(30.0);
            }),
            ("cpu-pressure", Severity::Note, |sample| {
                sample.pressure_percent = Some(20.0);
            }),
            ("swap", Severity::Confounder, |sample| {
                sample.swapped_pages = Some(7);
            }),
        ];
        for (kind, severity, disturb) in cases {
            let mut sample = quiet();
            disturb(&mut sample);
            let checks = preflight(&calm(), Some(&sample), None);
            assert_eq!(found(&checks), [(kind, severity)]);
        }
        // What was sampled now counts more than averages of the past.
        let busy_before = HostFacts {
            load_1min: Some(30.0),
            steal_percent_since_boot: Some(9.0),
            pressure_cpu_some_avg10: Some(90.0),
            ..calm()
        };
        assert_eq!(found(&preflight(&busy_before, Some(&quiet()), None)), []);
    }

    #[test]
    fn each_disk_that_disturbs_has_its_finding() {
        type Disturb = fn(&mut DiskFacts);
        let cases: [(&str, Severity, Disturb); 8] = [
            ("file-system", Severity::Note, |disk| {
                disk.file_system = Some("tmpfs".to_owned());
            }),
            ("file-system", Severity::Note, |disk| {
                disk.file_system = Some("btrfs".to_owned());
            }),
            ("file-system", Severity::Confounder, |disk| {
                disk.file_system = Some("nfs4".to_owned());
            }),
            ("disk-space", Severity::Note, |disk| {
                disk.free_bytes = Some(3 << 30);
            }),
            ("disk-space", Severity::Unfit, |disk| {
                disk.free_bytes = Some(500 << 20);
            }),
            ("fsync", Severity::Note, |disk| {
                disk.fsync.as_mut().unwrap().median_ns = 30_000_000;
            }),
            ("fsync", Severity::Note, |disk| {
                disk.fsync.as_mut().unwrap().p99_ns = 20_000_000;
            }),
            ("fsync", Severity::Note, |disk| {
                disk.fsync.as_mut().unwrap().median_ns = 900;
            }),
        ];
        for (kind, severity, disturb) in cases {
            let mut disk = solid();
            disturb(&mut disk);
            let checks = preflight(&calm(), None, Some(&disk));
            assert_eq!(found(&checks), [(kind, severity)]);
        }
    }

    #[test]
    fn a_finding_holds_what_was_seen_its_effect_and_its_fix() {
        let mut sample = quiet();
        sample.foreign_percent = 40.0;
        sample.neighbours = vec![
            Neighbour {
                name: "rustc".to_owned(),
                core_percent: 580.0,
            },
            Neighbour {
                name: "cc1".to_owned(),
                core_percent: 60.4,
            },
        ];
        let checks = preflight(&calm(), Some(&sample), None);
        let finding = checks.iter().find_map(Check::finding).unwrap();
        assert!(
            finding.text.starts_with(
                "others use 40 % of the cores (percent of one core: rustc 580, cc1 60): "
            ),
            "{}",
            finding.text
        );
        for check in preflight(&HostFacts::default(), None, None) {
            assert!(!check.seen.is_empty() && check.effect.is_empty() == check.fix.is_empty());
        }
        assert!(!finding.text.contains("  ") && !finding.text.ends_with('.'));
    }
}
