//! What is stored before the first block: servers, host, and what follows from them.

use super::{Session, store_problem};
use crate::facts::{Buffers, Conditions, ServerData, StatementPlans};
use crate::fleet::Fleet;
use crate::occupancy::Occupancy;
use crate::readback::{ServerReadback, data_findings};
use deltabench_compare::{ServerFacts, fairness, words};
use deltabench_model::fact::{HostFacts, ServerHost, Settings};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Origin, Setting};
use deltabench_model::plan::{Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::host_findings;
use deltabench_server::tell;
use std::collections::BTreeSet;

/// Said of servers that run one at a time because of their memory.
const ROTATED: &str = "the servers do not fit into memory together, so each starts for its turns: the slices \
                       of a round are seconds apart, drift of the machine widens the intervals, and visits \
                       have only the counters of their slices";

/// Said of servers that run one at a time because the user wants that.
const ROTATED_BY_WISH: &str = "each server starts for its turns, as the user asked for: the slices of a \
                               round are seconds apart, drift of the machine widens the intervals, and \
                               visits have only the counters of their slices";

/// Said of servers that run one at a time because they are to work without a break.
const SUSTAINED: &str = "each server works alone and without a break in each block: the passes of a block \
                         are minutes apart, drift of the machine widens the intervals, and visits have \
                         only the counters of their slices";

impl Session<'_> {
    /// Stores what servers and host are, and what follows from it. A resumed run keeps the findings it has,
    /// and gets those of kinds that it lacks: a session before may have ended before it stored any of these.
    pub fn record(
        &mut self,
        fleet: &Fleet<'_>,
        readbacks: &[ServerReadback],
        host: &HostFacts,
    ) -> Result<(), Problem> {
        let conditions = Conditions {
            buffers: Some(Buffers {
                huge_pages: fleet.has_huge_pages(),
                shared_buffers_mb: fleet.has_own().then(|| fleet.shared_buffers_mb()),
            }),
            residence: fleet.occupancy(),
            limits: fleet.applied_limits(),
            cache: self.plan.cache,
        };
        self.fact(None, &conditions)?;
        self.fact(None, host)?;
        self.record_servers(readbacks)?;
        self.record_agents(fleet)?;
        let mut findings = host_findings(host);
        findings.extend(plan_findings(self.plan, readbacks));
        findings.extend(self.benchmark.findings(self.plan));
        findings.extend(data_findings(self.plan, readbacks));
        findings.extend(adapted(self.plan));
        findings.extend(self.fairness(fleet, readbacks));
        findings.extend(fleet.limit_findings().iter().cloned());
        findings.extend(fleet.remote_findings(readbacks));
        if !self.plan.work.has_passes() && fleet.occupancy() == Occupancy::Rotated {
            let timing = &self.plan.timing;
            let text = match (timing.sustained, timing.rotated) {
                (true, _) => SUSTAINED,
                (false, true) => ROTATED_BY_WISH,
                (false, false) => ROTATED,
            };
            findings.push(Finding::new(FindingKind::Rotated, Severity::Note, text));
        }
        let timed = self.plan.observing.counting.is_none();
        if timed && fleet.has_own() && !fleet.has_huge_pages() {
            findings.push(Finding::new(
                FindingKind::NoHugePages,
                Severity::Note,
                "shared buffers are in 4 KiB pages: production servers often have huge pages, and the spread \
                 between restarts may be larger",
            ));
        }
        findings.extend(self.shared_programs(fleet)?);
        let stored = self.store.findings(self.run).map_err(store_problem)?;
        let known: BTreeSet<&str> = stored.iter().map(|found| found.kind.word()).collect();
        findings.retain(|found| !known.contains(found.kind.word()));
        self.store
            .add_findings(self.run, &findings)
            .map_err(store_problem)
    }

    /// That servers run the installed files where each start should have a copy.
    fn shared_programs(&self, fleet: &Fleet<'_>) -> Result<Option<Finding>, Problem> {
        let shared = self.plan.own_executables && fleet.has_own() && !fleet.has_own_programs()?;
        Ok(shared.then(|| {
            Finding::new(
                FindingKind::ProgramsShared,
                Severity::Confounder,
                "the servers run the installed files, because the directory of their data is mounted \
                 noexec: where the pages of an executable lie moves a ratio by up to 2 %, restarts and \
                 further runs do not change it, and intervals do not contain it; choose a --cluster-dir on \
                 a file system that allows programs",
            )
        }))
    }

    /// Tells, and stores, what has gone wrong with agents since this was done last.
    pub fn tell_news(&mut self, fleet: &Fleet<'_>) -> Result<(), Problem> {
        let news = fleet.news();
        if news.is_empty() {
            return Ok(());
        }
        // A session before this one may have had the same.
        let known = self.store.findings(self.run).map_err(store_problem)?;
        for finding in news {
            self.observer.note(&finding.text);
            if !known.contains(&finding) {
                self.store
                    .add_finding(self.run, &finding)
                    .map_err(store_problem)?;
            }
        }
        Ok(())
    }

    /// Stores what has come out of the servers since the set-up and, if all blocks are done, of the client:
    /// of a part of the blocks it would be another figure, which stays when the rest has come.
    ///
    /// Errors: a store that cannot be read or written.
    pub fn conclude_servers(&mut self, fleet: &Fleet<'_>, ended: bool) -> Result<(), Problem> {
        self.record_late_findings(fleet)?;
        match ended {
            true => self.record_client_limits(),
            false => Ok(()),
        }
    }

    /// Stores what has come out about limits, caches and others' servers since the run was recorded.
    fn record_late_findings(&mut self, fleet: &Fleet<'_>) -> Result<(), Problem> {
        self.tell_news(fleet)?;
        let mut findings = fleet.limit_findings().to_vec();
        findings.extend(fleet.restart_findings());
        self.keep_findings(&findings)
    }

    fn record_servers(&mut self, readbacks: &[ServerReadback]) -> Result<(), Problem> {
        for (id, readback) in ServerId::each().zip(readbacks) {
            self.fact(Some(id), &readback.build)?;
            self.fact(Some(id), &Settings(readback.settings.clone()))?;
            self.fact(Some(id), &StatementPlans(&readback.plans))?;
            let data = ServerData {
                sizes: &readback.sizes,
                aging: readback.aging.as_ref(),
                copy_of: readback.copy_of,
                round_trip_us: readback.round_trip_us,
            };
            self.fact(Some(id), &data)?;
        }
        Ok(())
    }

    /// Stores, for each server that an agent tells of, the agent and its machine.
    fn record_agents(&mut self, fleet: &Fleet<'_>) -> Result<(), Problem> {
        for (id, watcher) in fleet.watched() {
            self.fact(Some(id), watcher.agent.about())?;
            self.fact(Some(id), &ServerHost(watcher.facts.clone()))?;
        }
        Ok(())
    }

    fn fairness(&self, fleet: &Fleet<'_>, readbacks: &[ServerReadback]) -> Vec<Finding> {
        // The stored plan knows the installation as files; the readback knows it as a running server.
        let described: Vec<_> = self
            .plan
            .servers
            .iter()
            .zip(readbacks)
            .map(|(server, readback)| {
                let mut installation = server.installation.clone();
                // Flags that may not be read are not the same as none.
                let readable =
                    installation.origin != Origin::Remote || !readback.build.cflags.is_empty();
                installation.build = readable.then(|| readback.build.clone());
                installation
            })
            .collect();
        let facts = |id: ServerId| -> Option<ServerFacts<'_>> {
            let place = id.index();
            let readback = readbacks.get(place)?;
            Some(ServerFacts {
                name: self.plan.server_name(id),
                installation: described.get(place)?,
                settings: &readback.settings,
                data_checksums: readback
                    .settings
                    .iter()
                    .any(|s| s.name == "data_checksums" && s.value == "on"),
                asked_settings: fleet.asked_settings(place),
                // The tables of the Insert Benchmark are yet to be made.
                relation_bytes: (!self.plan.work.has_passes()).then_some(readback.relation_bytes),
                huge_pages: (described.get(place)?.origin != Origin::Remote)
                    .then(|| fleet.has_huge_pages() && takes_huge_pages(&readback.settings)),
            })
        };
        let Some(base) = facts(self.plan.base()) else {
            return Vec::new();
        };
        self.plan
            .candidates()
            .into_iter()
            .filter_map(facts)
            .flat_map(|candidate| fairness(&base, &candidate))
            .collect()
    }
}

/// Whether a server was told to take huge pages.
fn takes_huge_pages(settings: &[Setting]) -> bool {
    let found = settings.iter().find(|setting| setting.name == "huge_pages");
    found.is_none_or(|setting| setting.value != "off")
}

/// What named configurations had to be changed for a version: what differs between the servers then was asked
/// alike, and is not.
fn adapted(plan: &Plan) -> Vec<Finding> {
    let of = |server: &PlannedServer| {
        let used = server.configuration.as_ref();
        used.map(|used| used.adapted.clone()).unwrap_or_default()
    };
    let base = plan.servers.get(plan.base().index());
    let of_base = base.map(of).unwrap_or_default();
    let compared = plan
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    let finding = |server: &PlannedServer| {
        let changed: Vec<String> = of(server).iter().map(tell).collect();
        let severity = if of(server) == of_base {
            Severity::Note
        } else {
            Severity::Confounder
        };
        let name = server
            .configuration
            .as_ref()
            .map_or("", |used| used.name.as_str());
        let text = format!(
            "{name} was adapted to {}: {}",
            server.installation.resolved,
            changed.join("; ")
        );
        (!changed.is_empty())
            .then(|| Finding::new(FindingKind::ConfigurationAdapted, severity, text))
    };
    compared.filter_map(finding).collect()
}

/// A finding for every cell whose statements a server plans differently from the base.
fn plan_findings(plan: &Plan, readbacks: &[ServerReadback]) -> Vec<Finding> {
    let Some(base) = readbacks.get(plan.base().index()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (id, readback) in ServerId::each().zip(readbacks) {
        for ((cell, ours), theirs) in plan.cells.iter().zip(&base.plans).zip(&readback.plans) {
            if ours != theirs {
                findings.push(Finding::new(
                    FindingKind::PlanDiffers,
                    Severity::Confounder,
                    format!(
                        "{} at {} is planned differently: {} in base, {} in {}",
                        cell.workload,
                        words::workers(plan, cell.clients),
                        one_line(ours),
                        one_line(theirs),
                        plan.server_name(id)
                    ),
                ));
            }
        }
    }
    findings
}

fn one_line(plans: &[String]) -> String {
    let words = |plan: &String| plan.split_whitespace().collect::<Vec<_>>().join(" ");
    plans.iter().map(words).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_model::installation::Build;

    #[test]
    fn another_plan_is_told_of_one_client_or_several() {
        let plan = plan_of(&["a", "a", "b"], 2);
        let readback = |shape: &str| ServerReadback {
            build: Build {
                version_text: String::new(),
                compiler: String::new(),
                cflags: String::new(),
                configure: String::new(),
            },
            settings: Vec::new(),
            relation_bytes: 0,
            sizes: Vec::new(),
            aging: None,
            copy_of: None,
            round_trip_us: None,
            plans: vec![vec![shape.to_owned()]; 2],
        };
        let same = readback("Index  Scan");
        let all = [same.clone(), same, readback("Seq Scan")];
        let found = plan_findings(&plan, &all);
        let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].starts_with("point-query at 1 client is planned"),
            "{texts:?}"
        );
        assert!(
            texts[1].starts_with("point-query at 2 clients is planned"),
            "{texts:?}"
        );
        assert!(
            texts[0].contains(": Index Scan in base, Seq Scan in "),
            "{texts:?}"
        );
    }
}
